"""Judging: the findings of all sessions, with the points that each has and what it still lacks."""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.gate import duplicates
from memtool.memory.memory import Memory
from memtool.sessions import agreement, learning, points, promoting, waiting
from memtool.sessions import finding as findings
from memtool.sessions.finding import Finding
from memtool.sessions.head import Head
from memtool.sessions.points import Preset
from memtool.sessions.promoting import Promotion
from memtool.sessions.store import Sessions
from memtool.store.context import Context
from memtool.store.tree import Record, Tree
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


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
    preset: Preset,
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
        for one in learning.known(sessions, head.id).findings:
            all_.setdefault(one.id, one)
    support = agreement.supports(list(all_.values()), promoting.roots(heads))
    past = remembered(context, sessions)
    by_id = {head.id: head for head in heads}
    judged = []
    for one in read.values():
        witness, is_chosen = support[one.id], one.id in chosen
        meant = one.replace(signals=(*one.signals, points.INTENT)) if is_chosen else one
        signals = points.signals_of(meant, witness.sessions, witness.agents)
        total = points.total(signals)
        lack = "" if is_chosen else points.shortfall(one, total, preset)
        judged.append(_against(past, Judged(one, by_id.get(one.session), signals, total, lack)))
    return sorted(judged, key=lambda one: (-one.points, -one.finding.importance, one.finding.id))


def count(context: Context, sessions: Sessions) -> None:
    """Note how many findings would be promoted now, for the start of the next session.

    Where they cannot be judged, what was noted before stands.
    """
    try:
        heads, _wrong = sessions.heads()
        read = {one.id: one for h in heads for one in learning.known(sessions, h.id).findings}
        preset = points.PRESETS[context.settings.text("promote.preset")]
        judged = judge(context, sessions, heads, read, preset)
    except MemtoolError:
        return
    waiting.note(sessions.directory, sum(not one.lack for one in judged))


def remembered(context: Context, sessions: Sessions) -> PromotedBefore:
    """Return what was promoted, and what the memories of the worktree say to it."""
    rows = promoting.promotions(sessions)
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
        threshold=context.settings.number(duplicates.THRESHOLD_KEY),
    )


def _against(past: PromotedBefore, judged: Judged) -> Judged:
    """Return a finding with what the past says to it: promoted, forgotten, or replaced since."""
    one = judged.finding
    row = past.by_finding.get(one.id)
    known = row.memory if row else past.by_source.get((promoting.sources(one), one.title), "")
    if known and not _is_deleted(past, known):
        return judged.replace(lack=f"promoted already: {known}", memory=known)
    earlier = known or _memory_of_twin(past, one)
    if earlier and _is_deleted(past, earlier):
        return _denied(judged, earlier, "was forgotten; memtool restore brings it back")
    for record in () if judged.lack else past.dead:
        if duplicates.likeness(agreement.as_memory(one), _said(record)) < past.threshold:
            continue
        if record.memory.status == "deleted":
            return _denied(judged, record.id, "was forgotten; memtool restore brings it back")
        newer = _newer(past, record.id)
        if newer is not None and newer.memory.timestamp >= promoting.said_at(one, judged.head):
            return _denied(judged, newer.id, f"has replaced {record.id}, which said so")
    return judged


def _memory_of_twin(past: PromotedBefore, one: Finding) -> str:
    row = past.by_fingerprint.get(findings.fingerprint(one.content))
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
