"""How a reviewer judged what sessions taught in this clone: precision by kind of lesson.

A lesson counts as promoted if it became a memory that was not forgotten, and as dismissed if a
person dismissed it, or forgot the memory. The same statement in several sessions is one lesson.
"""

from __future__ import annotations

from memtool.memory.lifecycle import DELETED
from memtool.sessions import promote, store
from memtool.sessions.findings import learn_all, read_all_learned
from memtool.sessions.model import BY_MODEL, INTENT, RESOLVED, compute_fingerprint
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.sessions.model import Finding
    from memtool.store.context import Context

KINDS = ASKED, RULE, MODEL, FIX, COMMIT = (
    "asked to remember",
    "recognised by a rule",
    "found by the model",
    "failure with its fix",
    "read from commits",
)


class LessonJudgement(Value):
    """The lessons of one kind: how many were promoted, were dismissed, and wait for a reviewer.

    `precision` is the share promoted of those that were judged, None if none was.
    """

    kind: str
    promoted: int
    dismissed: int
    waiting: int
    precision: float | None


def judge_lessons(context: Context) -> tuple[LessonJudgement, ...]:
    """Return the judgement of each kind of lesson that is there. Raises MemtoolError."""
    sessions = store.open_sessions(context)
    heads = sessions.heads()[0]
    learn_all(context, sessions, [head.id for head in heads], with_model=False)
    learned = read_all_learned(sessions, heads)
    tree = context.tree()
    memories = {row.fingerprint: row.memory for row in promote.read_promotions(sessions)}
    outcomes: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
    for finding in learned.findings:
        mark = compute_fingerprint(finding.content)
        id_ = memories.get(mark, "")
        is_alive = id_ in tree and tree[id_].memory.status != DELETED
        outcome = "waiting"
        if is_alive:
            outcome = "promoted"
        elif id_ or learned.dismissals_of(finding):
            outcome = "dismissed"
        outcomes[_find_kind(finding)][mark] = outcome
    return tuple(
        _sum_up(kind, [*by_mark.values()]) for kind, by_mark in outcomes.items() if by_mark
    )


def _find_kind(finding: Finding) -> str:
    if finding.field("commit"):
        return COMMIT
    if RESOLVED in finding.signals:
        return FIX
    if INTENT in finding.signals:
        return ASKED
    return MODEL if finding.reader == BY_MODEL else RULE


def _sum_up(kind: str, outcomes: list[str]) -> LessonJudgement:
    promoted, dismissed = outcomes.count("promoted"), outcomes.count("dismissed")
    judged = promoted + dismissed
    precision = round(promoted / judged, 4) if judged else None
    return LessonJudgement(kind, promoted, dismissed, outcomes.count("waiting"), precision)
