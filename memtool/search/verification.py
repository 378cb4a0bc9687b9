"""Verification: does each source of a memory resolve, and is what it shows still the case.

Everything is asked of this clone: of git in one batch, of the tree, and of the private sessions;
sites only where the user lets them be asked.
What only a person, a program or a site can answer for is stated or unknown, never broken. The
verdict on a memory is that of its worst source; how many it has counts for nothing.
"""

from __future__ import annotations

import posixpath

from memtool.memory import drift as rules
from memtool.memory.schema import Source, parse_source
from memtool.memory.trust import LOCAL
from memtool.memory.visibility import is_alive, superseded
from memtool.search.drift_verdict import DriftQuestion, bases, judge
from memtool.store.commit_files import BlobTexts, CommitFiles
from memtool.store.git import SUBMODULE
from memtool.store.provenance import SHORT
from memtool.store.sources import (
    ABSENT,
    BEYOND_GIT,
    MISSING,
    NO_COMMIT,
    OK,
    UNBASED,
    UNKNOWN,
    UNREACHABLE,
    UNUSABLE,
    Citation,
    resolve,
)
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from memtool.memory.drift import FileDrift
    from memtool.memory.fields import Category
    from memtool.store.evidence import Evidence
    from memtool.store.provenance import Basis, Witness
    from memtool.store.repository import Repository
    from memtool.store.sources import Resolution
    from memtool.store.tree import Record, Tree

SOUND, WEAK, BROKEN = "sound", "weak", "broken"
VERDICTS = (BROKEN, WEAK, UNKNOWN, SOUND)
"""From the worst on; `unknown` is a memory of which no source can be looked up here."""
STATUSES: dict[str, tuple[str, str]] = {
    "ok": (SOUND, "it resolves, and shows what it showed"),
    "moved": (SOUND, "the file or the lines are elsewhere now"),
    "changed": (WEAK, "half of the file is another, or the cited lines are"),
    "superseded": (WEAK, "a newer memory replaces the one that is cited"),
    "deleted": (WEAK, "the memory that is cited is out of use"),
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
"""What becomes of a source, with the verdict on a memory that has nothing worse, and what it means.
"""


class CheckedSource(Value):
    """One source and what became of it: one of `STATUSES`, with a clause for people.

    Of files `then` is what was cited, as `PATH#L1-L9@COMMIT`, and `now` where it is in HEAD;
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
    """How far a trace of a failure is proven, each True, False, or None where nobody can tell.

    `pointer`: the output and the commit that it names resolve. `current`: no newer memory has its
    signature. `reproduces`: the last run of its command at the recorded commit failed alike, of
    which `result` is the verdict (one of `RUN_VERDICTS`) and `ran` the moment; nothing runs unless
    it is asked for.
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
"""What a run of a trace's command says, with whether the failure reproduces, and what it means."""


class CommandRun(Value):
    """One run of a command at a commit.

    `outcome` is `alike`, `passed`, `other` or `unrunnable`, and `detail` a clause about it. `exit`
    is None where it did not end by itself. `output` are its last lines, without secrets.
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
    """What running a trace's command again said.

    `exit` and `signature` are those at the recorded commit; `environment` is what the trace says of
    the run that it recorded, `differs` what of it is otherwise on this machine.
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
    """The verdict on one memory. `newer` are the living traces of its signature that are newer.

    `run` is what running its command has just said, None where that was not asked for.
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
    witness: Witness,
    records: Sequence[Record],
    sessions: Mapping[str, Evidence],
    sites: Mapping[str, tuple[str, str]],
    now: int,
    categories: Mapping[str, Category],
) -> list[Verification]:
    """Return the verdict on memories of a tree, in their order.

    `sessions` tells what became of sources `session:…`, by their text; what is not in it is not
    here. `sites` has status and answer of those that were asked. Before the first commit nothing of
    git can be told.
    """
    parsed = {
        record.path: [(text, parse_source(text)) for text in record.memory.items("source")]
        for record in records
    }
    basis = witness.basis
    by_git: dict[tuple[str, str], CheckedSource] = {}
    if basis is not None:
        by_git = _by_git(basis, witness, records, parsed)

    def lives(record: Record) -> bool:
        return is_alive(record.memory, now, categories)

    found = []
    for record in records:
        sources = []
        for text, source in parsed[record.path]:
            one = by_git.get((record.path, text))
            if one is None and source.kind == "memory":
                one = _memory(tree, lives, text, source.target)
            elif one is None and source.kind == "session":
                one = _session(text, sessions.get(text))
            elif one is None:
                one = _other(text, source, sites)
            sources.append(one)
        newer = _newer(tree, lives, record)
        found.append(
            Verification(
                record.id,
                record.memory.title,
                _verdict(sources, is_outdated=bool(newer)),
                tuple(sources),
                newer,
                _evidence(record, sources, newer),
            )
        )
    return found


def _verdict(sources: Iterable[CheckedSource], *, is_outdated: bool) -> str:
    verdicts = {STATUSES[one.status][0] for one in sources}
    if is_outdated:
        verdicts.add(WEAK)
    # One source that resolves is enough beside others that nobody can look up.
    order = (BROKEN, WEAK, SOUND, UNKNOWN)
    return next((one for one in order if one in verdicts), UNKNOWN)


def _memory(tree: Tree, lives: Callable[[Record], bool], text: str, id_: str) -> CheckedSource:
    record = tree.get(id_)
    if record is None:
        return CheckedSource(text, "memory", MISSING, f"there is no memory {id_}")
    newer = tree.lineage.superseded_by.get(id_)
    if newer:
        return CheckedSource(text, "memory", "superseded", superseded(newer))
    if not any(map(lives, tree.with_ids((id_,)))) or record.memory.status == "deprecated":
        return CheckedSource(text, "memory", "deleted", f"{id_} is out of use")
    return CheckedSource(text, "memory", OK, record.memory.title)


def _session(text: str, found: Evidence | None) -> CheckedSource:
    if found is None:
        return CheckedSource(text, "session", UNKNOWN, "a session of another clone")
    detail = "it is here, private to this clone" if found.status == OK else found.detail
    return CheckedSource(text, "session", found.status, detail)


def _other(text: str, source: Source, sites: Mapping[str, tuple[str, str]]) -> CheckedSource:
    kind = source.kind
    if kind == "url" and source.target in sites:
        return CheckedSource(text, kind, *sites[source.target])
    if kind == "url" and not is_address(source.target):
        return CheckedSource(text, kind, "malformed", "it is no http or https address")
    if kind in ("human", "tool"):
        return CheckedSource(text, kind, "stated", BEYOND_GIT[kind])
    return CheckedSource(text, kind, UNKNOWN, BEYOND_GIT.get(kind, "there is no commit yet"))


def is_address(text: str) -> bool:
    """Tell whether a text is an http or https address with a host that could exist."""
    from urllib.parse import urlsplit  # few memories cite a site

    try:
        parts = urlsplit(text)
        host, _port = parts.hostname or "", parts.port
    except ValueError:
        return False
    is_plain = text.isprintable() and not any(char.isspace() for char in text)
    return is_plain and parts.scheme in ("http", "https") and bool(host.strip("."))


def _newer(tree: Tree, lives: Callable[[Record], bool], record: Record) -> tuple[str, ...]:
    """Return the living memories of the same failure that are newer, by id."""
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


def _evidence(
    record: Record, sources: Iterable[CheckedSource], newer: Sequence[str]
) -> FailureEvidence | None:
    if not record.memory.text("error_signature"):
        return None
    pointers = [one.status for one in sources if one.kind in ("commit", "session")]
    pointer = None
    if pointers and UNKNOWN not in pointers:
        pointer = all(status == OK for status in pointers)
    return FailureEvidence(pointer, not newer)


def _by_git(
    basis: Basis,
    witness: Witness,
    records: Sequence[Record],
    parsed: Mapping[str, Sequence[tuple[str, Source]]],
) -> dict[tuple[str, str], CheckedSource]:
    """Return what git says of commits and files, by the path of the memory and the source."""
    origins, since = witness.origins(records), bases(records, witness)
    cited = {
        (path, text): Citation(source, since[path])
        for path, rows in parsed.items()
        for text, source in rows
        if source.kind in ("commit", "file")
    }
    resolved = resolve(basis.repository, cited.values(), (basis.head, basis.trusted_at))
    head = CommitFiles(basis.repository, basis.head)
    found = {}
    files = {}
    for key, citation in cited.items():
        source, resolution = citation.source, resolved[citation]
        if source.kind == "file" and resolution.status == OK:
            files[key] = source, resolution
        elif _is_of_commit(source, resolution):
            found[key] = _commit(key[1], source, resolution)
        else:
            is_local = origins[key[0]] == LOCAL
            found[key] = _lost_file(key[1], source, resolution, head, is_local=is_local)
    return found | _files(basis.repository, head, files)


def _is_of_commit(source: Source, resolution: Resolution) -> bool:
    """Tell whether a resolution is about the commit that the source names."""
    is_lost = resolution.status == UNREACHABLE or not resolution.commit
    return source.kind == "commit" or bool(source.commit and is_lost)


def _commit(text: str, source: Source, resolution: Resolution) -> CheckedSource:
    name, status = source.commit[:SHORT], resolution.status
    details = {
        OK: f"commit {name} leads to HEAD or the trusted ref",
        UNREACHABLE: f"commit {name} is here, and leads to neither HEAD nor the trusted ref",
        MISSING: f"commit {name} is not in this clone",
        UNKNOWN: f"commit {name} is not in this clone, which need not hold it, or not the only one",
    }
    return CheckedSource(text, source.kind, status, details[status], commit=resolution.commit)


def _lost_file(
    text: str, source: Source, resolution: Resolution, head: CommitFiles, *, is_local: bool
) -> CheckedSource:
    """Say of a file why nothing is known of it at the commit where it was looked up."""
    file, at = posixpath.normpath(source.target), resolution.commit[:SHORT]
    cut = "this clone ends before the commit that wrote the memory"
    details = {
        UNUSABLE: f"{file} is git's own",
        UNBASED: "the memory is not committed yet" if is_local else cut,
        NO_COMMIT: f"commit {at} is not in this clone",
        SUBMODULE: f"{file} is a submodule",
        ABSENT: "this partial clone does not hold it",
        "": f"{file} was not there at {at}",
    }
    row = CheckedSource(text, "file", resolution.status, details[resolution.type])
    if resolution.type in (UNUSABLE, UNBASED):
        return row
    now = file if resolution.type == SUBMODULE and file in head.entries else ""
    return row.replace(then=_then(source, resolution), now=now, commit=resolution.commit)


def _then(source: Source, resolution: Resolution) -> str:
    file = posixpath.normpath(source.target)
    return f"{file}{_span(source.lines)}@{resolution.commit[:SHORT]}"


def _files(
    repository: Repository,
    head: CommitFiles,
    cited: Mapping[tuple[str, str], tuple[Source, Resolution]],
) -> dict[tuple[str, str], CheckedSource]:
    """Return what became of files that were there when they were cited."""
    asked = []
    for key, (source, resolution) in cited.items():
        file = posixpath.normpath(source.target)
        lines = ((file, source.lines),) if source.lines else ()
        asked.append(DriftQuestion(_key(*key), "", "", (file,), lines, resolution.commit))
    drifts = judge(repository, head, asked)
    texts = BlobTexts(repository)
    texts.load(one.oid for source, one in cited.values() if source.lines and one.type == "blob")
    found = {}
    for (path, text), (source, resolution) in cited.items():
        file, at = posixpath.normpath(source.target), resolution.commit[:SHORT]
        then = _then(source, resolution)
        row = CheckedSource(text, "file", OK, "", then, commit=resolution.commit)
        is_text = source.lines and resolution.type == "blob"
        count = len(texts.rows(resolution.oid)) if is_text else 0
        if source.lines and 0 < count < source.lines[1]:
            row = row.replace(status=MISSING, detail=f"{file} had only {count} lines at {at}")
        elif resolution.type == "tree" and any(head.below(f"{file}/")):
            row = row.replace(detail=f"{file} is a folder that is there", now=file)
        else:
            files = drifts[_key(path, text)][0].files
            row = _file(row, source, file, files[0] if files else None)
        found[path, text] = row
    return found


def _key(path: str, text: str) -> str:
    """Name one source of one memory; no path holds NUL."""
    return f"{path}\0{text}"


_WHY = {"gone": "gone", "lines": "changed"}


def _file(row: CheckedSource, source: Source, file: str, drift: FileDrift | None) -> CheckedSource:
    if drift is None:
        detail = f"{file} is as it was"
        return row.replace(detail=detail, now=f"{file}{_span(source.lines)}")
    detail, now = rules.clause(drift), drift.now or drift.path
    if drift.level == rules.UNKNOWN:
        return row.replace(status=UNKNOWN, detail=detail)
    if drift.level == rules.BROKEN:
        gone = "" if drift.why == "gone" else now
        return row.replace(status=_WHY[drift.why], detail=detail, now=gone)
    lines = drift.lines_now or source.lines
    has_moved = now != file or lines != source.lines
    # Cited lines that stand elsewhere are what was cited, whatever else became of the file.
    is_changed = drift.level == rules.CHANGED and not source.lines
    status = "changed" if is_changed else "moved" if has_moved else OK
    return row.replace(status=status, detail=detail, now=f"{now}{_span(lines)}")


def _span(lines: tuple[int, int] | None) -> str:
    return f"#L{lines[0]}-L{lines[1]}" if lines else ""
