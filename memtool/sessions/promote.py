"""Promotion: points for findings, quarantine, and candidates that become memories.

The journal of promotions is beside the sessions and maps findings to memories, so that nothing is
promoted twice, and nothing again that somebody has forgotten since. Two findings that say nearly
the same support each other. What becomes of a candidate after its first day is decided here too,
and so is the number of findings that wait, which a session that starts reads at no cost.
"""

from __future__ import annotations

import os

from memtool.authoring import draft, write
from memtool.errors import MemtoolError
from memtool.gate import near_duplicates
from memtool.memory import lifecycle, timestamps
from memtool.memory.memory import Memory
from memtool.memory.schema import is_inside
from memtool.sessions import curate, findings, journal, model
from memtool.sessions.model import Finding, Head, PromotionPreset, fingerprint, printable
from memtool.sessions.store import Sessions
from memtool.store.commits import commit_files
from memtool.store.context import Context
from memtool.store.files import read_regular
from memtool.store.tree import Record, Tree
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Literal

    from memtool.memory.memory import Fields

JOURNAL = "promotions.jsonl"
TYPES = {"decision": "decision", "architecture": "decision", "error": "episodic"}
"""The type of memory for a category; all others are semantic."""
MOST_LINE = 300
ROOT_STEPS = 100
"""Forks of forks that are followed: a circle in damaged heads ends there."""


class Promotion(Value):
    """One row: which finding became, or strengthened, which memory, and when."""

    finding: str
    fingerprint: str
    session: str
    memory: str
    moment: int
    is_new: bool = True


def type_of(finding: Finding) -> str:
    """Return the type of the memory that a finding becomes."""
    return TYPES.get(finding.category, "semantic")


def fields_of(finding: Finding, head: Head | None) -> Fields:
    """Return the keys of a finding as a candidate, with the messages that back it as sources."""
    return {
        "category": finding.category,
        "status": "candidate",
        "confidence": finding.confidence,
        "source": sources(finding),
        "tags": finding.tags,
        "files": finding.files,
        "importance": f"{finding.importance:g}",
        "error_signature": one_line(finding.field("error_signature")),
        "agent": one_line(finding.field("agent") or (head.agent if head else "")),
        "session": finding.session,
    }


def sources(finding: Finding) -> tuple[str, ...]:
    """Return the messages of a finding as sources: `session:ID#N`."""
    return tuple(f"session:{finding.session}#{number}" for number in finding.messages)


def one_line(text: str) -> str:
    """Return a text as a key of a memory holds it: one line, not too long."""
    return " ".join(printable(text).split())[:MOST_LINE]


def sections_of(finding: Finding, head: Head | None) -> Iterable[str]:
    """Yield the sections of a trace as `NAME=TEXT`; only an error with its fix has them all."""
    if type_of(finding) != "episodic" or not finding.field("fix"):
        return
    branch = f", on the branch {head.branch}" if head and head.branch else ""
    yield f"Command={_code(finding.field('command') or 'not known')}"
    yield f"Failure={_code(finding.field('failure'))}"
    yield f"Changes={_code(finding.field('changes') or 'no file was changed')}"
    yield f"Environment=Seen in session {finding.session}{branch}."
    yield f"Fix={finding.field('fix')}."


def _code(text: str) -> str:
    """Return a text as code that no part of it can end."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def promotions(sessions: Sessions) -> list[Promotion]:
    """Return what was promoted in this clone, oldest first. Raises MemtoolError."""
    rows, _torn = journal.read(os.path.join(sessions.directory, JOURNAL))
    kinds = {"finding": str, "fingerprint": str, "session": str, "memory": str, "moment": int}
    return [
        Promotion(**{name: row[name] for name in kinds}, is_new=row.get("is_new") is not False)
        for row in rows
        if all(type(row.get(name)) is kind for name, kind in kinds.items())
    ]


def record(
    sessions: Sessions, finding: Finding, memory: str, now: int, *, is_new: bool
) -> Promotion:
    """Note that a finding became a memory, or strengthened one. Raises MemtoolError."""
    made = Promotion(finding.id, fingerprint(finding.content), finding.session, memory, now, is_new)
    journal.append(os.path.join(sessions.directory, JOURNAL), [made.plain()])
    return made


def said_at(finding: Finding, head: Head | None) -> int:
    """Return the second in which a finding was last said, 0 where nobody knows."""
    text = finding.field("said")
    try:
        return timestamps.parse(text) if text else (head.started if head else 0)
    except ValueError:
        return head.started if head else 0


def roots(heads: Iterable[Head]) -> dict[str, str]:
    """Return for each session the one that it was forked from in the end, itself without one."""
    parents = {head.id: head.parent for head in heads}
    found = {}
    for id_ in parents:
        root = id_
        for _step in range(ROOT_STEPS):
            if not parents.get(root):
                break
            root = parents[root]
        found[id_] = root
    return found


LIKENESS = 0.7
"""Two findings with this likeness say the same: words that people speak differ more than files."""
MOST_COMPARED = 12
"""Findings that one is compared with in full: those that share most words."""


class Support(Value):
    """How many sessions and agents say what a finding says, its own included."""

    sessions: int
    agents: int


def supports(all_: Sequence[Finding], roots: Mapping[str, str]) -> dict[str, Support]:
    """Return the support of each finding by its id.

    `roots` maps a session to the one that it was forked from in the end: a fork repeats what its
    parent heard, and is no second witness.
    """
    exact: dict[str, list[int]] = {}
    for at, one in enumerate(all_):
        exact.setdefault(fingerprint(one.content), []).append(at)
    groups = list(exact.values())
    near = _near([all_[group[0]] for group in groups])
    found: dict[str, Support] = {}
    for number, group in enumerate(groups):
        same = [at for other in (number, *near[number]) for at in groups[other]]
        sessions = {roots.get(all_[at].session, all_[at].session) for at in same}
        agents = {name for at in same if (name := all_[at].field("agent"))}
        for at in group:
            found[all_[at].id] = Support(len(sessions), max(1, len(agents)))
    return found


def _near(heads: Sequence[Finding]) -> list[list[int]]:
    """Return for each finding the others that say nearly the same, by their places."""
    memories = [as_memory(one) for one in heads]
    words = [near_duplicates.words_in(one) for one in memories]
    near = near_duplicates.joined(words, MOST_COMPARED)
    pairs = {tuple(sorted((at, other))) for at, others in enumerate(near) for other in others}
    found: list[list[int]] = [[] for _one in heads]
    for one, other in sorted(pairs):
        if near_duplicates.likeness(memories[one], memories[other]) >= LIKENESS:
            found[one].append(other)
            found[other].append(one)
    return found


def as_memory(finding: Finding) -> Memory:
    """Return a finding as a memory that compares with others; it has no id and is not written."""
    return Memory(fields={"type": "semantic", "title": finding.content}, body="")


QUARANTINE_S = 24 * 3600
FADE = 0.8
"""A candidate that nobody looked at weighs this much of its importance."""


class Quarantine(Value):
    """`wait`, `confirm`, `fade`, or `none` for what is no candidate; and the importance by then.

    Nothing is written here. `memtool maintain` proposes the change of the file, and commits it when
    it is asked to; a file that says `faded` does so no second time.
    """

    state: Literal["none", "wait", "confirm", "fade"]
    importance: float


def quarantine(status: str, importance: float, written: int, accesses: int, now: int) -> Quarantine:
    """Return what becomes of a memory; `written` and `now` are seconds, accesses since then.

    A clock that runs behind the one that wrote it lets it wait.
    """
    if status != "candidate":
        return Quarantine("none", importance)
    if now - written < QUARANTINE_S:
        return Quarantine("wait", importance)
    if accesses > 0:
        return Quarantine("confirm", importance)
    return Quarantine("fade", round(importance * FADE, 4))


WAITING = "waiting"
_MOST_WAITING = 20


def note_waiting(directory: str, count: int) -> None:
    """Note the number beside the sessions; not if it is there, or the disk refuses."""
    if count == waiting(directory):
        return
    try:
        journal.put(os.path.join(directory, WAITING), b"%d\n" % count)
    except MemtoolError:
        return


def waiting(directory: str) -> int:
    """Return the number that was noted last, 0 for none."""
    try:
        said = read_regular(os.path.join(directory, WAITING), _MOST_WAITING).strip()
    except OSError:
        return 0
    return int(said) if said.isdigit() else 0


class Judged(Value):
    """A finding with its signals and points. `lack` says why it is not promoted, empty if it is to.

    `memory` is the id of what it was promoted to, empty where it was not.
    """

    finding: Finding
    head: Head | None
    signals: tuple[str, ...]
    points: int
    lack: str
    memory: str = ""
    blocker: str = ""
    """The memory for whose sake it is denied."""

    @property
    def is_denied(self) -> bool:
        return bool(self.blocker)


class PromotedBefore(Value):
    """What was promoted before, by finding and by fingerprint, and the memories as they stand."""

    by_finding: dict[str, Promotion]
    by_fingerprint: dict[str, Promotion]
    tree: Tree | None
    by_source: dict[tuple[tuple[str, ...], str], str]
    dead: tuple[Record, ...]
    """Memories that were forgotten, or that others took the place of."""
    threshold: float


def judge(
    context: Context,
    sessions: Sessions,
    heads: Sequence[Head],
    read: Mapping[str, Finding],
    preset: PromotionPreset,
    chosen: Collection[str] = (),
) -> list[Judged]:
    """Return findings with their points, those with most first.

    `read` are those to be judged, by id; all that is known of other sessions counts as witness.
    `chosen` are ids of findings that a person picked, which need no points.

    Raises:
        MemtoolError: a journal or the memories cannot be read.
    """
    all_ = dict(read)
    for head in heads:
        for one in findings.known(sessions, head.id).findings:
            all_.setdefault(one.id, one)
    support = supports(list(all_.values()), roots(heads))
    past = remembered(context, sessions)
    by_id = {head.id: head for head in heads}
    judged = []
    for one in read.values():
        witness, is_chosen = support[one.id], one.id in chosen
        meant = one.replace(signals=(*one.signals, model.INTENT)) if is_chosen else one
        signals = model.signals_of(meant, witness.sessions, witness.agents)
        total = model.points_of(signals)
        lack = "" if is_chosen else model.shortfall(one, total, preset)
        judged.append(_against(past, Judged(one, by_id.get(one.session), signals, total, lack)))
    return sorted(judged, key=lambda one: (-one.points, -one.finding.importance, one.finding.id))


def count(context: Context, sessions: Sessions) -> None:
    """Note how many findings would be promoted now, for the start of the next session.

    Where they cannot be judged, what was noted before stands.
    """
    try:
        heads, _wrong = sessions.heads()
        read = {one.id: one for h in heads for one in findings.known(sessions, h.id).findings}
        preset = model.PRESETS[context.settings.text("promote.preset")]
        judged = judge(context, sessions, heads, read, preset)
    except MemtoolError:
        return
    note_waiting(sessions.directory, sum(not one.lack for one in judged))


def remembered(context: Context, sessions: Sessions) -> PromotedBefore:
    """Return what was promoted, and what the memories of the worktree say to it."""
    rows = promotions(sessions)
    try:
        tree: Tree | None = context.tree()
    except MemtoolError as error:
        if error.code != "no-memory":
            raise
        tree = None
    records = tree.records if tree is not None else ()
    dead = tuple(
        record
        for record in records
        if record.memory.status == "deleted"
        or (tree is not None and not tree.lineage.is_head(record.id))
    )
    return PromotedBefore(
        by_finding={row.finding: row for row in rows},
        by_fingerprint={row.fingerprint: row for row in rows},
        tree=tree,
        by_source={
            (record.memory.items("source"), record.memory.title): record.id for record in records
        },
        dead=dead,
        threshold=context.settings.number(near_duplicates.THRESHOLD_KEY),
    )


def _against(past: PromotedBefore, judged: Judged) -> Judged:
    """Return a finding with what the past says to it: promoted, forgotten, or replaced since."""
    one = judged.finding
    row = past.by_finding.get(one.id)
    known = row.memory if row else past.by_source.get((sources(one), one.title), "")
    if known and not _is_deleted(past, known):
        return judged.replace(lack=f"promoted already: {known}", memory=known)
    earlier = known or _memory_of_twin(past, one)
    if earlier and _is_deleted(past, earlier):
        return _denied(judged, earlier, "was forgotten; memtool restore brings it back")
    for record in () if judged.lack else past.dead:
        if near_duplicates.likeness(as_memory(one), _said(record)) < past.threshold:
            continue
        if record.memory.status == "deleted":
            return _denied(judged, record.id, "was forgotten; memtool restore brings it back")
        newer = _newer(past, record.id)
        if newer is not None and newer.memory.timestamp >= said_at(one, judged.head):
            return _denied(judged, newer.id, f"has replaced {record.id}, which said so")
    return judged


def _memory_of_twin(past: PromotedBefore, one: Finding) -> str:
    row = past.by_fingerprint.get(model.fingerprint(one.content))
    return row.memory if row else ""


def _denied(judged: Judged, id_: str, why: str) -> Judged:
    return judged.replace(lack=f"denied: {id_} {why}", blocker=id_)


def _is_deleted(past: PromotedBefore, id_: str) -> bool:
    record = past.tree.by_id.get(id_) if past.tree is not None else None
    return record is not None and record.memory.status == "deleted"


def _newer(past: PromotedBefore, id_: str) -> Record | None:
    """Return the newest memory that took the place of one."""
    assert past.tree is not None
    heads = past.tree.lineage.heads_of(id_)
    found = [past.tree.by_id[head] for head in heads if head in past.tree.by_id]
    return max(found, key=lambda record: (record.memory.timestamp, record.id), default=None)


def _said(record: Record) -> Memory:
    """Return a memory as its statement alone, to compare it with a finding."""
    memory = record.memory
    return Memory(fields={"type": "semantic", "title": memory.statement or memory.title}, body="")


FATAL = ("disk", "bare", "no-memory")
"""Codes of errors that the next finding would meet as well."""


class Made(Value):
    """A memory that a finding became, or that it strengthened because it says so already."""

    finding: str
    id: str
    path: str
    is_new: bool


def make(context: Context, sessions: Sessions, judged: Judged, *, dry_run: bool) -> Made | None:
    """Write the memory of one finding, or strengthen the one that says so; None if it is refused.

    One that the gate refuses is told, and keeps no other from being promoted.
    """
    one = judged.finding
    memory = memory_of(context, judged)
    try:
        written = write.write_new(context, memory, repeats="strengthen", dry_run=dry_run)
    except MemtoolError as error:
        if error.code in FATAL:
            raise
        context.notes.append(f"{one.id} is not promoted: {error.message}")
        return None
    is_new = written.duplicate_of is None
    if not dry_run:
        record(sessions, one, written.id, context.now, is_new=is_new)
    return Made(one.id, written.id, written.path, is_new)


def alive_heads(context: Context, tree: Tree) -> list[Record]:
    """Return the heads that are alive, deprecated ones too: what a candidate has to go with."""
    return [
        record
        for record in tree.records
        if tree.lineage.is_head(record.id)
        and lifecycle.state(record.memory, context.now, context.settings.categories)
        == lifecycle.ALIVE
    ]


def tell_opposed(context: Context, ids: Collection[str]) -> None:
    """Say which candidates that were just made contradict what stands: both are kept."""
    alive = alive_heads(context, context.tree())
    new = [record for record in alive if record.id in ids]
    others = [record for record in alive if record.id not in ids]
    for action in curate.by_rules(new, others):
        context.notes.append(
            f"{action.id} may contradict {action.to}; memtool curate proposes what to do"
        )


def memory_of(context: Context, judged: Judged) -> Memory:
    """Return the candidate that a finding becomes."""
    one, head = judged.finding, judged.head
    return draft.draft(
        context,
        type_of(one),
        one.title,
        body=one.content,
        section=tuple(sections_of(one, head)),
        fields=fields_of(one, head) | {"files": _here(context, one)},
    )


def _here(context: Context, finding: Finding) -> tuple[str, ...]:
    """Return the files of a finding that are in the worktree: others would only look drifted."""
    top = context.repository.top
    return tuple(
        path
        for path in finding.files
        if is_inside(path) and os.path.lexists(os.path.join(top, path))
    )


def commit(context: Context, made: Sequence[Made]) -> str:
    """Commit what was made, in one commit and alone. Raises MemtoolError where git refuses."""
    ids = sorted({one.id for one in made})
    paths = sorted({one.path for one in made})
    what = ids[0] if len(ids) == 1 else f"{len(ids)} findings of sessions"
    return commit_files(
        context.repository, paths, f"memory: promote {what}", {"Memory-Id": ", ".join(ids)}
    )
