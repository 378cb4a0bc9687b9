"""Candidates: the memories that may be shown in a block, and the criteria for each of them."""

from __future__ import annotations

from memtool.inject.remarks import CANDIDATE_MARK, Remarks, name_ids
from memtool.memory import visibility
from memtool.memory.likeness import SAME
from memtool.memory.trust import TRUST_LEVELS
from memtool.search.features import Facts, no_moves
from memtool.search.named_ids import NAMED, NAMED_REASON
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any

    from memtool.index.reader import Catalog, IndexReader
    from memtool.inject.effective_lineage import EffectiveLineage
    from memtool.memory.fields import Category
    from memtool.memory.memory import Memory
    from memtool.search.features import Moves
    from memtool.store.config import Config
    from memtool.store.tree import Record

DIGITS = 6
"""Digits of a score in output: the last bits of an exponential differ between machines."""

PINNED = "pinned"
RETRIEVAL = "retrieval"
GOVERNING = "governing"
"""The tier of rules for files that were changed or that the prompt names."""
SUMMARY = "summary"
"""The tier of digests."""
PROJECT = "project"
GLOBAL = "global"
"""Whose memory it is, by its repository. An added tier may have a scope of its own."""


class Role(Value):
    """Criteria for a hit of a special kind, set by a feature.

    The hit is shown in `tier`. If it `leads` and reaches `share` of the best score, it comes first.
    If `too_low` is given and it does not reach that share, it is left out for this reason. It is
    left out for `objection` whatever its score, and for `weakness` even if its score is high
    enough. While it is shown, memories that it `covers` and that score less are not.
    """

    tier: str
    share: float
    leads: bool = False
    objection: str = ""
    too_low: str = ""
    weakness: str = ""
    covers: Callable[[Memory], bool] = lambda _memory: False


class Candidate(Value):
    """A memory that may be shown. `score` is None if it was not found by a search."""

    record: Record
    tier: str
    score: float | None = None
    factors: Mapping[str, float] = {}
    conflicts_with: str = ""
    """The id of the memory that it conflicts with, if it is shown only because of that."""
    related: str = ""
    """The id of the top hit that it is related to, if it was found only because of that."""
    scope: str = PROJECT
    against: tuple[str, ...] = ()
    """The ids of the memories that it conflicts with, if it is shown in its own right."""
    role: Role | None = None
    """Further criteria than its score, if it is a hit of a special kind."""
    topic: frozenset[bytes] = frozenset()
    """The rare words that it has of the prompt."""
    repository: str = ""
    commit: str = ""
    """`org/name` and the full commit id of a memory from another repository; else empty."""
    tie: str = ""
    """Why it probably governs a file, if no memory says so for certain; see `file_ties`."""
    supplement: Candidate | None = None
    """What may be shown below it, as one unit of the budget; see `supplements`."""
    is_supplied: bool = False
    """Whether its supplement is shown below it."""
    below: str = ""
    """The id of the memory that it is the supplement of, if it was found only because of that."""
    is_title_only: bool = False
    """Whether there is room for its title alone."""
    withheld: tuple[Record, ...] = ()
    """The withheld memories that it stands in for."""
    marks: tuple[str, ...] = ()
    """Further lines about it, for this block alone."""

    @property
    def is_named(self) -> bool:
        """Whether the prompt names it, so that it is shown whatever its score."""
        return NAMED in self.factors

    @property
    def is_brief(self) -> bool:
        """Whether only its statement is shown, though it has more: no prompt asked for it."""
        memory = self.record.memory
        is_unasked = self.score is None and (self.tier == GOVERNING or bool(self.below))
        is_part = is_unasked and memory.statement.split() != memory.body.split()
        return is_part or self.is_title_only


class CandidateVerdict(Value):
    """Why a candidate was shown or not. `weights` are its factors, unrounded.

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
        """The factors, rounded for output."""
        # A property, since few verdicts are ever printed.
        return {name: round(value, DIGITS) for name, value in self.weights.items()}


class Gates(Value):
    """The thresholds for choosing a block, each a setting of this name in `inject`.

    `candidate_pool` is the number of hits examined, `per_source` the number shown from one source.
    Two memories whose likeness reaches `duplicate_threshold` say the same. A digest that reaches
    `digest_threshold` of the best score comes first. Next to more trusted memories the less trusted
    get a `local_share` of a tier. A block has at most `global_most` global memories.
    """

    candidate_pool: int = 15
    per_source: int = 2
    duplicate_threshold: float = SAME
    digest_threshold: float = 0.8
    local_share: float = 0.4
    global_most: int = 2


def read_gates(config: Config) -> Gates:
    """Read the gates from the settings."""
    usual = Gates()
    return Gates(
        **{
            name: type(getattr(usual, name))(config.setting(f"inject.{name}"))
            for name in Gates.field_names
        }
    )


class Supplement(Value):
    """A memory that belongs below another one. `mark` is the line about that one, if it is there.

    It takes no place from other memories of its tier; see `tiers.fill`.
    """

    record: Record
    mark: str


class Signal(Value):
    """What a feature adds to the memories of one repository.

    `mark` returns the line about a memory, empty for none; `details` the fields of its item in the
    block; `companions` the ids to show next to it, even if they say the same. A memory that
    `is_guest` ranks after all others.

    `facts` are names and values in its head, `brief` is the mark next to a title that is shown
    alone. A memory for which `withholding` returns a line is not shown unless it is pinned: its
    `supplement` stands in, with that line.
    """

    mark: Callable[[Record], str]
    details: Callable[[Record], Mapping[str, Any]]
    companions: Callable[[Record], Sequence[str]] = lambda _record: ()
    is_guest: Callable[[Record], bool] = lambda _record: False
    facts: Callable[[Record], Sequence[tuple[str, str]]] = lambda _record: ()
    brief: Callable[[Record], str] = lambda _record: ""
    supplement: Callable[[Record], Supplement | None] = lambda _record: None
    withholding: Callable[[Record], str] = lambda _record: ""


class Eligibility(Value):
    """Criteria for a memory other than relevance: lineage, lifecycle and trust, as of `now`.

    `scope` says whose memories these are: the project's, or the user's global ones. `trust` returns
    the level of a record; None if every memory has enough.
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
    """The notes on memories that differ between worktree and trusted ref, by path."""
    withholds: Collection[str] = ()
    """The privacy labels, in lower case, that keep a memory from agents."""

    signals: Sequence[Signal] = ()
    moves: Callable[[], Moves] = no_moves
    """Finds the renamed files among those that the memories name."""

    contradicting: Mapping[str, tuple[str, ...]] = {}
    """The memories that certainly contradict each other, among those that may be shown together:
    by the id of each, in the order of `conflicts.mark_contradicting`."""

    @property
    def index(self) -> IndexReader:
        """The index of the memories; its statistics count only current memories."""
        lineage = self.standing.lineage
        return Facts(self.tree, self.now, dict, lineage).index

    def find_remarks(self, record: Record, *, is_supplied: bool = False) -> Remarks:
        """Return what an agent must know about a memory; ids are short.

        `is_supplied` says that its supplement is shown below it.
        """
        shorten = self.tree.short_ids.shorten
        marks = [*self.standing.list_marks(record.id, shorten)]
        lacking = self.find_unproven(record)
        if lacking:
            marks.append(f"UNPROVEN: {lacking}")
        for signal in self.signals:
            supplement = signal.supplement(record) if is_supplied else None
            marks.append(signal.mark(record) if supplement is None else supplement.mark)
        marks = [*filter(None, marks)]
        if record.memory.status == "candidate":
            marks.insert(0, CANDIDATE_MARK)
        notes = [*self.standing.list_notes(record.id, shorten)]
        if record.path in self.changed:
            notes.append(self.changed[record.path])
        rivals = [*map(shorten, self.find_rivals(record.id))]
        facts = tuple(fact for signal in self.signals for fact in signal.facts(record))
        return Remarks(tuple(marks), tuple(notes), name_ids(rivals), facts)

    def find_supplement(self, record: Record) -> Supplement | None:
        """Return the memory that belongs below another one, None for none."""
        supplements = (signal.supplement(record) for signal in self.signals)
        return next(filter(None, supplements), None)

    def find_withholding(self, record: Record) -> str:
        """Return the line that replaces a memory which is not shown unless pinned, else empty."""
        lines = (signal.withholding(record) for signal in self.signals)
        return next(filter(None, lines), "")

    def list_briefs(self, record: Record) -> list[str]:
        """Return the marks next to the title of a memory that is shown alone."""
        return [*filter(None, (signal.brief(record) for signal in self.signals))]

    def list_warnings(self, record: Record) -> tuple[str, ...]:
        """Return all remarks on a memory as texts; if one of them changes, it is news."""
        remarks = self.find_remarks(record)
        return (*remarks.marks, *remarks.notes, *filter(None, [remarks.rivals]))

    def find_rivals(self, id_: str) -> tuple[str, ...]:
        """Return the ids of the memories of which one alone can hold, without proposals."""
        standing = self.standing
        return tuple(
            dict.fromkeys(
                (
                    *standing.find_rivals(id_),
                    *standing.disputes.get(id_, ()),
                    *self._find_contrary(id_),
                )
            )
        )

    def find_unproven(self, record: Record) -> str:
        """Return what a memory lacks to fulfil its trust rule; empty if it does or has no rule."""
        return "" if self.standing.gaps is None else self.standing.gaps(record)

    def rank(self, record: Record, trust: str) -> int:
        """Return how far a memory is trusted, from 0.

        A signature counts only if the memory fulfils its trust rule.
        """
        # Otherwise it could displace a memory that an owner has signed, as its equal.
        rank = TRUST_LEVELS.index(trust)
        return min(rank, 2) if rank and self.find_unproven(record) else rank

    def details(self, record: Record) -> dict[str, Any]:
        """Return the fields that the signals add to the item of a memory, by name."""
        details: dict[str, Any] = {}
        for signal in self.signals:
            details.update(signal.details(record))
        return details

    def find_refusal(self, record: Record) -> str:
        """Return why a memory may not be shown: it is not current, or not trusted enough."""
        reason = self.find_objection(record.memory)
        if reason or self.trust is None or self.least_trust == TRUST_LEVELS[0]:
            return reason
        return visibility.find_distrust(self.trust(record), self.least_trust)

    def find_companions(self, record: Record) -> list[Record]:
        """Return the current memories that conflict with one, or that signals show next to it."""
        ids = (*self.standing.find_shown_rivals(record.id), *self._find_contrary(record.id))
        companions = (
            self.tree[other] for other in dict.fromkeys((*ids, *self._paired_ids(record)))
        )
        return [other for other in companions if not self.find_objection(other.memory)]

    def _paired_ids(self, record: Record) -> Iterable[str]:
        """Return the ids that signals show next to a memory."""
        return (id_ for signal in self.signals for id_ in signal.companions(record))

    def is_paired(self, record: Record, other: Record) -> bool:
        """Return whether signals show two memories together, even if they say the same."""
        return other.id in self._paired_ids(record) or record.id in self._paired_ids(other)

    def is_guest(self, record: Record) -> bool:
        """Return whether a memory ranks after all others."""
        return any(signal.is_guest(record) for signal in self.signals)

    def find_conflicts(self, id_: str) -> tuple[str, ...]:
        """Return the ids of all memories that conflict with one, sorted."""
        return tuple(sorted({*self.standing.find_conflicts(id_), *self._find_contrary(id_)}))

    def _find_contrary(self, id_: str) -> tuple[str, ...]:
        return tuple(other for other in self.contradicting.get(id_, ()) if other != id_)

    def with_contradictions(self, records: Iterable[Record]) -> Eligibility:
        """Return a copy that knows which of these memories contradict each other.

        Only the first memories are compared. Conflicts that lineage reports are not repeated.
        """
        shown = [record for record in records if not self.find_objection(record.memory)]
        if not shown[1:]:
            return self
        from memtool.search import conflicts  # many answers have one memory, or none

        ids = conflicts.mark_contradicting(shown).keys()
        trusted = [record for record in shown if record.id in ids and not self.find_refusal(record)]
        contradictions = {}
        for id_, sides in conflicts.mark_contradicting(trusted).items() if trusted else ():
            conflict_ids = self.standing.find_conflicts(id_)
            new = tuple(side for side in sides if side not in conflict_ids)
            if new[1:]:
                contradictions[id_] = new
        return self.replace(contradicting=contradictions) if contradictions else self

    def find_objection(self, memory: Memory) -> str:
        """Return why a memory is not current knowledge for an agent; empty if it is."""
        newer = self.standing.lineage.superseded_by.get(memory.id, ())
        return visibility.find_objection(memory, newer, self.withholds, self.now, self.categories)


def trust_order(record: Record, grounds: Eligibility) -> tuple[float | str, ...]:
    """Return the sort key: most trusted, then most important, then newest first, then by id."""
    rank = 0 if grounds.trust is None else grounds.rank(record, grounds.trust(record))
    return (-rank, -record.memory.importance, -record.memory.timestamp, record.id)


def find_pinned(grounds: Eligibility) -> list[Candidate]:
    """Return the pinned memories in the order of `trust_order`."""
    pins = [record for record in grounds.tree.pinned if not grounds.find_objection(record.memory)]
    pins.sort(key=lambda record: trust_order(record, grounds))
    return [Candidate(record, PINNED, scope=grounds.scope) for record in pins]


def build_verdict(candidate: Candidate, reason: str, *, is_taken: bool) -> CandidateVerdict:
    """Build the verdict on a candidate; its conflicts and relations are added to `reason`."""
    if candidate.conflicts_with:
        reason = f"beside {candidate.conflicts_with}, which it conflicts with; {reason}"
    if candidate.against and is_taken:
        reason = f"{reason}; conflicts with {', '.join(candidate.against)}"
    if candidate.is_named:
        reason = f"{NAMED_REASON}; {reason}"
    if candidate.tie:
        reason = f"{candidate.tie}; {reason}"
    if candidate.below:
        reason = f"below {candidate.below}, to which it belongs; {reason}"
    if candidate.withheld:
        names = ", ".join(record.id for record in candidate.withheld)
        reason = f"it stands in for {names}; {reason}"
    if candidate.related:
        reason = f"{candidate.related} is related to it; {reason}"
    return CandidateVerdict(
        candidate.record.id,
        candidate.tier,
        is_taken,
        reason,
        round_score(candidate.score),
        candidate.factors,
        candidate.scope,
        candidate.repository,
    )


def round_score(score: float | None) -> float | None:
    """Round a score for output; None stays None."""
    return None if score is None else round(score, DIGITS)
