"""Candidates: the memories that may be shown in a block, and what decides about each of them."""

from __future__ import annotations

from memtool.memory import lifecycle, timestamps, visibility
from memtool.memory.likeness import SAME
from memtool.memory.trust import TRUST_LEVELS
from memtool.search.features import Facts
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any

    from memtool.index.reader import Catalog, IndexReader
    from memtool.inject.effective_lineage import EffectiveLineage
    from memtool.memory.fields import Category
    from memtool.memory.memory import Memory
    from memtool.store.config import Config
    from memtool.store.tree import Record

DIGITS = 6
"""Of a score, where it is shown: the last bits of an exponential differ between machines."""

PINNED = "pinned"
RETRIEVAL = "retrieval"
GOVERNING = "governing"
"""The tiers; a governing one is about a file that was changed or that the prompt names."""
SUMMARY = "summary"
"""The tier of what sums up others."""
PROJECT = "project"
GLOBAL = "global"
"""The scopes: whose memory it is, by the repository that it is in. A tier that is added to a block
may have a scope of its own."""


class Role(Value):
    """What decides about a candidate of a special kind: a feature sets it on what was found.

    It is shown in `tier`. From `share` of the best score on it comes first if it `leads`; below
    that it is left out, for the reason `too_low` if there is one. `objection` and `weakness` are
    reasons to leave it out: whatever it scores, and though it scores enough. While it is shown,
    what it `covers` and scores less is not.
    """

    tier: str
    share: float
    leads: bool = False
    objection: str = ""
    too_low: str = ""
    weakness: str = ""
    covers: Callable[[Memory], bool] = lambda _memory: False


class Candidate(Value):
    """A memory that may be shown. `score` is None where it stands beside one that was found."""

    record: Record
    tier: str
    score: float | None = None
    factors: Mapping[str, float] = {}
    beside: str = ""
    """The id of the memory that it conflicts with, where it is shown only for that."""
    related: str = ""
    """The id of the winner that it is related to, where it was found only because of that."""
    scope: str = PROJECT
    against: tuple[str, ...] = ()
    """The ids of what it conflicts with, where it is shown for itself."""
    role: Role | None = None
    """What decides about it beside its score, if it was found and is of a special kind."""
    repository: str = ""
    commit: str = ""
    """Of a memory of neither scope its `org/name`, and the full id of the commit it is from."""

    @property
    def is_brief(self) -> bool:
        """Whether it is shown as its statement though there is more: nobody asked for it."""
        memory = self.record.memory
        is_unasked = self.tier == GOVERNING and self.score is None
        return is_unasked and memory.statement.split() != memory.body.split()


class CandidateVerdict(Value):
    """Why a candidate was shown or not. `weights` are its factors as they were computed.

    `repository` is empty for a memory of the project or of the user.
    """

    json_fields = "id tier is_taken reason score factors scope repository"
    json_names = (("is_taken", "taken"),)
    json_optional = "repository"

    id: str
    tier: str
    is_taken: bool
    reason: str
    score: float | None = None
    weights: Mapping[str, float] = {}
    scope: str = PROJECT
    repository: str = ""

    @property
    def factors(self) -> dict[str, float]:
        """The factors as they are shown; few verdicts are."""
        return {name: round(value, DIGITS) for name, value in self.weights.items()}


class Gates(Value):
    """The numbers by which a block is chosen, each a setting of this name in `inject`.

    Of what was found so many are `looked_at`, and so many shown `per_source`. From
    a likeness of `duplicate_threshold` on two memories say the same, and from `digest_threshold` of
    the best score on a digest comes first. Where there is something more trusted, the less trusted
    get a `local_share` of a tier; at most `global_most` global memories stand in a block.
    """

    looked_at: int = 15
    per_source: int = 2
    duplicate_threshold: float = SAME
    digest_threshold: float = 0.8
    local_share: float = 0.4
    global_most: int = 2


def gates_of(config: Config) -> Gates:
    """Return the gates as the settings have them."""
    usual = Gates()
    return Gates(
        **{
            name: type(getattr(usual, name))(config.setting(f"inject.{name}"))
            for name in Gates.field_names
        }
    )


class Signal(Value):
    """What a feature tells of the memories of one repository.

    `mark` is the warning that a memory is shown with, empty for none; `details` are fields of its
    item in the block.
    """

    mark: Callable[[Record], str]
    details: Callable[[Record], Mapping[str, Any]]


class Eligibility(Value):
    """What decides about a memory beside its relevance: lineage, life and trust, at one second.

    `scope` says whose memories these are: the project's, or the user's global ones. `trust` tells
    the level of a record, None where every memory has enough.
    """

    tree: Catalog
    standing: EffectiveLineage
    now: int
    categories: Mapping[str, Category]
    least_trust: str
    scope: str = PROJECT
    gates: Gates = Gates()
    trust: Callable[[Record], str] | None = None
    changed: Mapping[str, str] = {}
    """The marks of memories that the worktree has otherwise than the trusted ref, by path."""
    withholds: Collection[str] = ()
    """The labels of privacy, in lower case, with which a memory is for no agent."""

    signals: Sequence[Signal] = ()
    contradicting: Mapping[str, tuple[str, ...]] = {}
    """Of those that may be shown together, the memories that certainly contradict each other, by
    the id of each of them, in the order of `conflicts.marked`."""

    @property
    def index(self) -> IndexReader:
        """The index of the memories, in whose statistics only what is current counts."""
        lineage = self.standing.lineage
        return Facts(self.tree, self.now, dict, lineage).index

    def marks(self, record: Record) -> tuple[str, ...]:
        """Return the warnings that a memory is shown with."""
        marks = self.standing.marks(record.id)
        if record.id in self.contradicting:
            from memtool.search import conflicts  # few memories contradict another one

            marks = (*marks, conflicts.mark(self.contradicting[record.id]))
        lacking = self.unproven(record)
        if lacking:
            marks = (f"[UNPROVEN] {lacking}", *marks)
        signalled = (signal.mark(record) for signal in self.signals)
        marks = (*marks, *filter(None, signalled))
        if record.path in self.changed:
            marks = (*marks, self.changed[record.path])
        if record.memory.status == "candidate":
            marks = ("[CANDIDATE] nobody has confirmed it", *marks)
        due = self.due_since(record.memory)
        return (f"[DUE] for review since {due}", *marks) if due else marks

    def unproven(self, record: Record) -> str:
        """Return what a memory lacks to fulfil its trust rule; empty where it does, or has none."""
        return "" if self.standing.gaps is None else self.standing.gaps(record)

    def rank(self, record: Record, trust: str) -> int:
        """Return how far a memory is trusted, from 0; not as signed, if not by whom its rule wants.

        So it does not stand beside what an owner has signed, to take its place or to say the same.
        """
        found = TRUST_LEVELS.index(trust)
        return min(found, 2) if found and self.unproven(record) else found

    def details(self, record: Record) -> dict[str, Any]:
        """Return what the signals add to the item of a memory, by the names of its fields."""
        details: dict[str, Any] = {}
        for signal in self.signals:
            details.update(signal.details(record))
        return details

    def refusal(self, record: Record) -> str:
        """Return why a memory may not be shown: it is not current, or has not enough trust."""
        reason = self.objection(record.memory)
        if reason or self.trust is None or self.least_trust == TRUST_LEVELS[0]:
            return reason
        return visibility.distrust(self.trust(record), self.least_trust)

    def beside(self, record: Record) -> list[Record]:
        """Return the current memories that conflict with one."""
        ids = dict.fromkeys((*self.standing.others(record.id), *self._contrary_to(record.id)))
        found = (self.tree[other] for other in ids)
        return [other for other in found if not self.objection(other.memory)]

    def conflicts(self, id_: str) -> tuple[str, ...]:
        """Return the ids of all memories that conflict with one, sorted."""
        return tuple(sorted({*self.standing.conflicts(id_), *self._contrary_to(id_)}))

    def _contrary_to(self, id_: str) -> tuple[str, ...]:
        return tuple(other for other in self.contradicting.get(id_, ()) if other != id_)

    def with_contradictions(self, records: Iterable[Record]) -> Eligibility:
        """Return it with which of the memories that may be shown together contradict each other.

        Only the first of them are compared, and what lineage says already is not said again.
        """
        shown = [one for one in records if not self.objection(one.memory)]
        if not shown[1:]:
            return self
        from memtool.search import conflicts  # many answers hold one memory, or none

        ids = conflicts.marked(shown).keys()
        trusted = [one for one in shown if one.id in ids and not self.refusal(one)]
        found = {}
        for id_, sides in conflicts.marked(trusted).items() if trusted else ():
            known = self.standing.conflicts(id_)
            new = tuple(side for side in sides if side not in known)
            if new[1:]:
                found[id_] = new
        return self.replace(contradicting=found) if found else self

    def objection(self, memory: Memory) -> str:
        """Return why a memory is not current knowledge for an agent; empty where it is."""
        newer = self.standing.lineage.superseded_by.get(memory.id, ())
        return visibility.objection(memory, newer, self.withholds, self.now, self.categories)

    def due_since(self, memory: Memory) -> str:
        """Return the day on which a memory became due for review; empty where it is not due."""
        end = lifecycle.due_at(memory, self.categories)
        return "" if end is None or end >= self.now else timestamps.date(end)


def most_trusted_first(record: Record, grounds: Eligibility) -> tuple[float | str, ...]:
    """Return the sort key by trust, then most important first, then newest, then by id."""
    rank = 0 if grounds.trust is None else grounds.rank(record, grounds.trust(record))
    return (-rank, -record.memory.importance, -record.memory.timestamp, record.id)


def pinned(grounds: Eligibility) -> list[Candidate]:
    """Return the pinned memories: most trusted first, then most important, newest, by id."""
    found = [record for record in grounds.tree.pinned if not grounds.objection(record.memory)]
    found.sort(key=lambda one: most_trusted_first(one, grounds))
    return [Candidate(record, PINNED, scope=grounds.scope) for record in found]


def verdict(candidate: Candidate, reason: str, *, is_taken: bool) -> CandidateVerdict:
    """Return the fate of a candidate."""
    if candidate.beside:
        reason = f"beside {candidate.beside}, which it conflicts with; {reason}"
    if candidate.against and is_taken:
        reason = f"{reason}; conflicts with {', '.join(candidate.against)}"
    if candidate.related:
        reason = f"{candidate.related} is related to it; {reason}"
    return CandidateVerdict(
        candidate.record.id,
        candidate.tier,
        is_taken,
        reason,
        rounded(candidate.score),
        candidate.factors,
        candidate.scope,
        candidate.repository,
    )


def rounded(score: float | None) -> float | None:
    """Return a score as it is shown."""
    return None if score is None else round(score, DIGITS)
