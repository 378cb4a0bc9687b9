"""Verification: checks whether each source of a memory resolves, and still shows what it did.

Everything is looked up in this clone: git objects in one batch, the tree, and the private sessions.
Sites are requested only if the user allows it. A source that only a person, a program or a site can
confirm is stated or unknown, never broken. The verdict on a memory is that of its worst source; the
number of sources does not matter. A conclusion is no better than what it rests on.
"""

from __future__ import annotations

import posixpath

from memtool.memory import drift as rules
from memtool.memory.premises import BROKEN as CODE_GONE
from memtool.memory.premises import MISSING as NOT_HERE
from memtool.memory.premises import REPLACED, WITHOUT, describe_cause
from memtool.memory.schema import Source, parse_source
from memtool.memory.sighting import NOTHING_SEEN, Sighting, parse_sighting
from memtool.memory.subjects import Subjects
from memtool.memory.trust import CITED_DIGITS, LOCAL, SHORT_ID_DIGITS
from memtool.memory.visibility import is_alive
from memtool.search.drift import DriftWitness
from memtool.search.drift_questions import DriftBase, DriftQuestion, find_bases
from memtool.search.drift_verdict import judge
from memtool.search.unsettled import Unsettled
from memtool.store.commit_files import BlobTexts, CommitFiles
from memtool.store.git import SUBMODULE_MODE
from memtool.store.history import History, format_landing
from memtool.store.landing import build_landings
from memtool.store.sources import (
    ABSENT,
    BEYOND_GIT,
    LANDED,
    MISSING,
    NO_BASE,
    NO_COMMIT,
    OK,
    SQUASHED,
    UNKNOWN,
    UNREACHABLE,
    UNRECORDED,
    UNUSABLE,
    Citation,
    explain_absent,
    resolve,
)
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from memtool.memory.drift import FileDrift
    from memtool.memory.fields import Category
    from memtool.memory.premises import Cause
    from memtool.memory.sighting import SeenFile
    from memtool.store.evidence import Evidence
    from memtool.store.provenance import Basis, ProvenanceReader
    from memtool.store.repository import Repository
    from memtool.store.sources import Resolution
    from memtool.store.tree import Record, Tree

SOUND, WEAK, BROKEN = "sound", "weak", "broken"
VERDICTS = (BROKEN, WEAK, UNKNOWN, SOUND)
"""Worst first; `unknown` is a memory without a source that can be looked up here."""
OUT_OF_USE = "out of use"
STATUSES: dict[str, tuple[str, str]] = {
    "ok": (SOUND, "it resolves, and shows what it showed"),
    LANDED: (SOUND, "the commit was rewritten by a squash, a rebase or an amend, and has landed"),
    "moved": (SOUND, "the file or the lines are elsewhere now"),
    "changed": (WEAK, "half of the file is another, or the cited lines are"),
    "superseded": (WEAK, "a newer memory replaces the one that is cited"),
    OUT_OF_USE: (
        WEAK,
        "the memory that is cited is forgotten, deprecated, archived or ended",
    ),
    "unsettled": (WEAK, "the memory that is cited, or one below it, no longer holds"),
    WEAK: (WEAK, "a source of the memory that is cited is weak"),
    BROKEN: (BROKEN, "a source of the memory that is cited is broken"),
    UNREACHABLE: (
        BROKEN,
        "a commit that leads to neither HEAD nor the trusted ref",
    ),
    "gone": (BROKEN, "the file is no longer there"),
    MISSING: (BROKEN, "nothing here has ever been called so"),
    "malformed": (BROKEN, "it is no address"),
    "dead": (BROKEN, "with --online: the site answers that there is no such page"),
    UNKNOWN: (UNKNOWN, "this clone cannot tell"),
    "stated": (UNKNOWN, "a person or a program said so, which nothing can prove"),
}
"""Status of a source: the verdict on a memory that has nothing worse, and the meaning."""


class CheckedSource(Value):
    """One source and its status, one of `STATUSES`, with a clause for people.

    For files, `then` is the cited place as `PATH#L1-L9@COMMIT`, and `now` its place in HEAD.
    `commit` is the full id of the commit that is cited, or that the memory was checked at.
    """

    source: str
    kind: str
    status: str
    detail: str
    then: str = ""
    now: str = ""
    commit: str = ""


class FailureEvidence(Value):
    """How far a trace of a failure is proven: each True, False, or None if unknown.

    `pointer`: the output and the commit that it names resolve. `current`: no newer memory has its
    signature. `reproduces`: the last run of its command at the recorded commit failed alike.
    `result` is the verdict of that run (one of `RUN_VERDICTS`) and `ran` its time; commands run on
    request only.
    """

    pointer: bool | None
    current: bool
    reproduces: bool | None = None
    result: str = ""
    ran: str = ""


HOLDS, FIXED, NOT_FIXED = "holds", "fixed", "not fixed here"
CHANGED, GONE, CANNOT_RUN = "failure changed", "does not reproduce", "cannot run"
RUN_VERDICTS: dict[str, tuple[bool | None, str]] = {
    HOLDS: (True, "it fails so at the recorded commit; HEAD could not be asked"),
    FIXED: (True, "it fails so at the recorded commit, and works at HEAD"),
    NOT_FIXED: (True, "it fails so at the recorded commit, and at HEAD"),
    CHANGED: (True, "it fails so at the recorded commit, and in another way at HEAD"),
    GONE: (False, "at the recorded commit it works, or fails in another way"),
    CANNOT_RUN: (None, "nobody can tell: it could not be run, or not to its end"),
}
"""Verdict of running a trace's command: whether the failure reproduces, and the meaning."""


class CommandRun(Value):
    """One run of a command at a commit.

    `outcome` is `alike`, `passed`, `other` or `unrunnable`, and `detail` a clause about it. `exit`
    is None if it did not end by itself. `output` has its last lines, without secrets.
    """

    commit: str
    outcome: str
    detail: str
    exit: int | None
    signature: str
    seconds: float
    is_network_off: bool
    output: str


class TraceRun(Value):
    """The result of running a trace's command again.

    `exit` and `signature` are those at the recorded commit. `environment` is the recorded one, and
    `differs` lists its differences to this machine.
    """

    verdict: str
    detail: str
    commit: str
    head: str
    exit: int | None
    signature: str
    seconds: float
    environment: dict[str, str]
    differs: tuple[str, ...]
    runs: tuple[CommandRun, ...]


class Verification(Value):
    """The verdict on one memory. `newer` are the newer living traces of its signature.

    `run` is the result of running its command now, None if not requested.
    """

    id: str
    title: str
    verdict: str
    sources: tuple[CheckedSource, ...]
    newer: tuple[str, ...] = ()
    trace: FailureEvidence | None = None
    run: TraceRun | None = None


def verify(
    tree: Tree,
    witness: ProvenanceReader,
    records: Sequence[Record],
    sessions: Mapping[str, Evidence],
    sites: Mapping[str, tuple[str, str]],
    now: int,
    categories: Mapping[str, Category],
) -> list[Verification]:
    """Return the verdicts on memories of a tree, in their order.

    `sessions` has the evidence for each source `session:…`, by its text; a session that is not in
    it is not in this clone. `sites` has status and detail of the requested sites. Before the first
    commit, git cannot tell anything.
    """
    unsettled = Unsettled(tree, now, DriftWitness(tree, lambda: witness))
    reached = {record.id: record for record in records}
    below = filter(None, map(tree.get, unsettled.list_below(reached)))
    reached |= {record.id: record for record in below if record.id not in reached}
    unsettled.find(reached)  # all at once, not each chain again for each of its memories
    parsed = {
        record.path: [(text, parse_source(text)) for text in record.memory.items("source")]
        for record in reached.values()
    }
    basis = witness.basis
    by_git: dict[tuple[str, str], CheckedSource] = {}
    if basis is not None:
        by_git = _check_by_git(basis, witness, [*reached.values()], parsed)

    def is_living(record: Record) -> bool:
        return is_alive(record.memory, now, categories)

    verifications: dict[str, Verification] = {}
    for record in reached.values():
        sources: list[CheckedSource] = []
        for text, source in parsed[record.path]:
            checked = by_git.get((record.path, text))
            if checked is None and source.kind == "memory":
                checked = _check_memory(unsettled, record, text)
            elif checked is None and source.kind == "session":
                checked = _check_session(text, sessions.get(text))
            elif checked is None:
                checked = _check_other(text, source, sites)
            sources.append(checked)
        sources += _check_derived(unsettled, record)
        newer = _find_newer(tree, is_living, record)
        verifications[record.id] = Verification(
            record.id,
            record.memory.title,
            _compute_verdict(sources, is_outdated=bool(newer)),
            tuple(sources),
            newer,
            _build_evidence(record, sources, newer),
        )
    _spread_verdicts(unsettled, verifications)
    return [verifications[record.id] for record in records]


def _spread_verdicts(unsettled: Unsettled, verifications: dict[str, Verification]) -> None:
    """Give each conclusion the verdict of its worst premise, by the sources that these cite.

    Causes are not spread: they flow by rules of their own, and stop where somebody settled them.
    """
    resting: dict[str, list[tuple[str, str]]] = {}
    for id_ in verifications:
        for premise in unsettled.list_premises(id_):
            for head in unsettled.lineage.find_heads(premise):
                resting.setdefault(head, []).append((id_, premise))
    for verdict in (BROKEN, WEAK):
        todo = [id_ for id_, own in verifications.items() if _judge_own(own) == verdict]
        while todo:
            id_ = todo.pop()
            for conclusion, premise in resting.get(id_, ()):
                before = verifications[conclusion]
                after = _with_premise(before, premise, verdict)
                if after != before:
                    verifications[conclusion] = after
                    todo.append(conclusion)


def _judge_own(verification: Verification) -> str:
    """Return the verdict on a memory without what it rests on."""
    own = [source for source in verification.sources if source.kind != "memory"]
    return _compute_verdict(own, is_outdated=bool(verification.newer))


def _with_premise(verification: Verification, premise: str, verdict: str) -> Verification:
    """Return a verdict that is no better than that on a premise."""
    cited = (f"memory:{premise}", f"derived_from:{premise}")
    rows = {source.source: source for source in verification.sources}
    text = next((text for text in cited if text in rows), cited[1])
    row = rows.get(text, CheckedSource(text, "memory", OK, ""))
    if VERDICTS.index(STATUSES[row.status][0]) <= VERDICTS.index(verdict):
        return verification
    detail = f"a source of {premise} is {verdict}"
    rows[text] = row.replace(status=verdict, detail=detail)
    worst = min(verification.verdict, verdict, key=VERDICTS.index)
    return verification.replace(verdict=worst, sources=tuple(rows.values()))


def _compute_verdict(sources: Iterable[CheckedSource], *, is_outdated: bool) -> str:
    verdicts = {STATUSES[source.status][0] for source in sources}
    if is_outdated:
        verdicts.add(WEAK)
    # One source that resolves is enough, even if others cannot be looked up.
    order = (BROKEN, WEAK, SOUND, UNKNOWN)
    return next((verdict for verdict in order if verdict in verdicts), UNKNOWN)


def _check_memory(unsettled: Unsettled, record: Record, text: str) -> CheckedSource:
    id_ = text.partition(":")[2]
    cause = unsettled.find_through(record.id, id_)
    if cause is not None:
        return _report_cause(text, cause)
    target = unsettled.tree.get(id_)
    if target is None:
        is_accepted = f"{WITHOUT}{id_}" in unsettled.list_settled(record.id)
        status = OK if is_accepted else MISSING
        return CheckedSource(text, "memory", status, f"there is no memory {id_}")
    if target.memory.status == "archived" and unsettled.lineage.is_head(id_):
        return CheckedSource(text, "memory", OUT_OF_USE, f"{id_} is archived")
    return CheckedSource(text, "memory", OK, target.memory.title)


def _check_derived(unsettled: Unsettled, record: Record) -> Iterator[CheckedSource]:
    """Yield the premises of `derived_from` that make a memory unsettled."""
    cited = record.memory.items("source")
    for premise in unsettled.list_premises(record.id):
        cause = unsettled.find_through(record.id, premise)
        if cause is not None and f"memory:{premise}" not in cited:
            yield _report_cause(f"derived_from:{premise}", cause)


def _report_cause(text: str, cause: Cause) -> CheckedSource:
    if cause.reason == NOT_HERE:
        status = MISSING if cause.is_direct else BROKEN
    elif not cause.is_direct or cause.reason == CODE_GONE:
        status = "unsettled"
    else:
        status = "superseded" if cause.reason == REPLACED else OUT_OF_USE
    return CheckedSource(text, "memory", status, describe_cause(cause))


def _check_session(text: str, evidence: Evidence | None) -> CheckedSource:
    if evidence is None:
        return CheckedSource(text, "session", UNKNOWN, "a session of another clone")
    detail = "it is here, private to this clone" if evidence.status == OK else evidence.detail
    return CheckedSource(text, "session", evidence.status, detail)


def _check_other(text: str, source: Source, sites: Mapping[str, tuple[str, str]]) -> CheckedSource:
    kind = source.kind
    if kind == "url" and source.target in sites:
        return CheckedSource(text, kind, *sites[source.target])
    if kind == "url" and not is_address(source.target):
        return CheckedSource(text, kind, "malformed", "it is no http or https address")
    if kind in ("human", "tool"):
        return CheckedSource(text, kind, "stated", BEYOND_GIT[kind])
    return CheckedSource(text, kind, UNKNOWN, BEYOND_GIT.get(kind, "there is no commit yet"))


def is_address(text: str) -> bool:
    """Return whether a text is an http or https address with a host that could exist."""
    from urllib.parse import urlsplit  # few memories cite a site

    try:
        parts = urlsplit(text)
        host, _port = parts.hostname or "", parts.port
    except ValueError:
        return False
    is_plain = text.isprintable() and not any(char.isspace() for char in text)
    return is_plain and parts.scheme in ("http", "https") and bool(host.strip("."))


def _find_newer(tree: Tree, lives: Callable[[Record], bool], record: Record) -> tuple[str, ...]:
    """Return the newer living memories of the same failure, by id."""
    signature = record.memory.text("error_signature")
    if not signature:
        return ()
    return tuple(
        sorted(
            other.id
            for other in tree.records
            if other.memory.text("error_signature") == signature
            and other.memory.timestamp > record.memory.timestamp
            and lives(other)
            and tree.lineage.is_head(other.id)
        )
    )


def _build_evidence(
    record: Record, sources: Iterable[CheckedSource], newer: Sequence[str]
) -> FailureEvidence | None:
    if not record.memory.text("error_signature"):
        return None
    pointers = [source.status for source in sources if source.kind in ("commit", "session")]
    pointer = None
    if pointers and UNKNOWN not in pointers:
        pointer = all(status == OK for status in pointers)
    return FailureEvidence(pointer, not newer)


def _check_by_git(
    basis: Basis,
    witness: ProvenanceReader,
    records: Sequence[Record],
    parsed: Mapping[str, Sequence[tuple[str, Source]]],
) -> dict[tuple[str, str], CheckedSource]:
    """Check commits and files in git, by the path of the memory and the source."""
    landings = build_landings(witness)
    origins, since = witness.origins(records), find_bases(records, witness, landings)
    seen = {record.path: parse_sighting(record.memory) for record in records}
    unpinned = {  # a confirmed file is compared with its commit, while that is here
        record.path
        for record in records
        if "commit" not in record.memory.table("checked") or since[record.path].has_landed
    }
    cited = {
        (path, text): Citation(
            source, since[path].commit, path, seen[path].find_second(source.commit)
        )
        for path, rows in parsed.items()
        for text, source in rows
        if source.kind in ("commit", "file")
    }
    tips = (basis.head, basis.trusted_head)
    resolved = resolve(basis.repository, cited.values(), tips, landings)
    head = CommitFiles(basis.repository, basis.head)
    with History(basis.repository) as history:
        landed = {
            state.commit: format_landing(history.commit(state.commit), state.how)
            for state in resolved.values()
            if state.how
        }
    checked = {}
    files = {}
    for key, citation in cited.items():
        source, resolution = citation.source, resolved[citation]
        as_seen = None
        if _has_landed(resolution) if source.commit else key[0] in unpinned:
            as_seen = seen[key[0]].find_file(posixpath.normpath(source.target), source.commit)
        # A file that a squash removed did exist if the memory records it.
        is_known = resolution.status in (OK, LANDED) or (_has_landed(resolution) and as_seen)
        if source.kind == "file" and is_known:
            files[key] = CitedFile(source, resolution, as_seen)
        elif _is_of_commit(source, resolution):
            checked[key] = _check_commit(key[1], source, resolution, landed)
        else:
            is_local = origins[key[0]] == LOCAL
            checked[key] = _describe_lost_file(key[1], source, resolution, head, is_local=is_local)
    return checked | _check_files(basis.repository, head, files)


def _has_landed(resolution: Resolution) -> bool:
    """Return whether the examined commit is the one in which the cited commit has landed."""
    return resolution.status == LANDED or resolution.type == SQUASHED


def _is_of_commit(source: Source, resolution: Resolution) -> bool:
    """Return whether a resolution is about the commit that the source names."""
    is_lost = resolution.status == UNREACHABLE or not resolution.commit
    return source.kind == "commit" or bool(source.commit and is_lost)


def _check_commit(
    text: str, source: Source, resolution: Resolution, landed: Mapping[str, str]
) -> CheckedSource:
    name, status = source.commit[:SHORT_ID_DIGITS], resolution.status
    if resolution.type == UNRECORDED:
        detail = f"commit {name} {explain_absent(name, resolution)[0]}"
        return CheckedSource(text, source.kind, status, detail, commit=resolution.commit)
    details = {
        OK: f"commit {name} leads to HEAD or the trusted ref",
        LANDED: f"commit {name} has {landed.get(resolution.commit, '')}",
        UNREACHABLE: f"commit {name} is here, and leads to neither HEAD nor the trusted ref",
        MISSING: f"commit {name} is not in this clone",
        UNKNOWN: f"commit {name} is not in this clone, which need not hold it, or not the only one",
    }
    return CheckedSource(text, source.kind, status, details[status], commit=resolution.commit)


def _describe_lost_file(
    text: str, source: Source, resolution: Resolution, head: CommitFiles, *, is_local: bool
) -> CheckedSource:
    """Describe why a file is unknown at the commit where it was looked up."""
    file, at = posixpath.normpath(source.target), resolution.commit[:SHORT_ID_DIGITS]
    cut = "this clone ends before the commit that wrote the memory"
    details = {
        UNUSABLE: f"{file} is git's own",
        NO_BASE: "the memory is not committed yet" if is_local else cut,
        NO_COMMIT: f"commit {at} is not in this clone",
        SUBMODULE_MODE: f"{file} is a submodule",
        ABSENT: "this partial clone does not hold it",
        SQUASHED: f"commit {source.commit[:SHORT_ID_DIGITS]} has landed as {at}, "
        f"which does not hold {file}",
        "": f"{file} was not there at {at}",
    }
    row = CheckedSource(text, "file", resolution.status, details[resolution.type])
    if resolution.type in (UNUSABLE, NO_BASE):
        return row
    now = file if resolution.type == SUBMODULE_MODE and file in head.entries else ""
    return row.replace(then=_describe_state(source, resolution), now=now, commit=resolution.commit)


def _describe_state(source: Source, resolution: Resolution) -> str:
    file = posixpath.normpath(source.target)
    return f"{file}{_format_span(source.lines)}@{resolution.commit[:CITED_DIGITS]}"


class CitedFile(Value):
    """A file source, its resolution in git, and the recorded file, if there is one."""

    source: Source
    resolution: Resolution
    seen: SeenFile | None


def _check_files(
    repository: Repository, head: CommitFiles, cited: Mapping[tuple[str, str], CitedFile]
) -> dict[tuple[str, str], CheckedSource]:
    """Check files that existed when they were cited."""
    citations = []
    for key, cited_file in cited.items():
        source, resolution = cited_file.source, cited_file.resolution
        file = posixpath.normpath(source.target)
        lines = ((file, source.lines),) if source.lines else ()
        base = DriftBase(resolution.commit, _has_landed(resolution))
        seen = NOTHING_SEEN
        if cited_file.seen is not None:
            seen = Sighting({file: cited_file.seen}, None, {})
        citations.append(DriftQuestion(_key(*key), "", Subjects((file,), lines), base, (), seen))
    drifts = judge(repository, head, citations)
    texts = BlobTexts(repository)
    texts.load(
        citation.resolution.oid
        for citation in cited.values()
        if citation.source.lines and citation.resolution.type == "blob"
    )
    checked = {}
    for (path, text), cited_file in cited.items():
        source, resolution = cited_file.source, cited_file.resolution
        file, at = posixpath.normpath(source.target), resolution.commit[:SHORT_ID_DIGITS]
        then = _describe_state(source, resolution)
        row = CheckedSource(text, "file", OK, "", then, commit=resolution.commit)
        is_text = source.lines and resolution.type == "blob" and cited_file.seen is None
        count = len(texts.rows(resolution.oid)) if is_text else 0
        if source.lines and 0 < count < source.lines[1]:
            row = row.replace(status=MISSING, detail=f"{file} had only {count} lines at {at}")
        elif resolution.type == "tree" and any(head.find_by_prefix(f"{file}/")):
            row = row.replace(detail=f"{file} is a folder that is there", now=file)
        else:
            files = drifts[_key(path, text)][0].files
            row = _check_file(row, source, file, files[0] if files else None)
        checked[path, text] = row
    return checked


def _key(path: str, text: str) -> str:
    """Return a key for one source of one memory; no path has NUL."""
    return f"{path}\0{text}"


_WHY = {"gone": "gone", "lines": "changed"}


def _check_file(
    row: CheckedSource, source: Source, file: str, drift: FileDrift | None
) -> CheckedSource:
    if drift is None:
        detail = f"{file} is as it was"
        return row.replace(detail=detail, now=f"{file}{_format_span(source.lines)}")
    detail, now = rules.describe_file(drift), drift.now or drift.path
    if drift.level == rules.UNKNOWN:
        return row.replace(status=UNKNOWN, detail=detail)
    if drift.level == rules.BROKEN:
        gone = "" if drift.why == "gone" else now
        return row.replace(status=_WHY[drift.why], detail=detail, now=gone)
    lines = drift.lines_now or source.lines
    has_moved = now != file or lines != source.lines
    # Cited lines that moved are still the cited lines, even if other parts of the file changed.
    is_changed = drift.level == rules.CHANGED and not source.lines
    status = "changed" if is_changed else "moved" if has_moved else OK
    return row.replace(status=status, detail=detail, now=f"{now}{_format_span(lines)}")


def _format_span(lines: tuple[int, int] | None) -> str:
    return f"#L{lines[0]}-L{lines[1]}" if lines else ""
