"""Candidates: pinned, retrieved and summary memories, and the budget they share.

Pinned memories come first, then what answers the prompt. Each tier has a most number and a share
of the tokens; what does not fit is left out whole, never cut off inside a sentence.

A token is estimated as four bytes of UTF-8, rounded up. That is what English and code come to in
the tokenizers of today's models; other scripts cost fewer tokens than this says, never many more.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory import lifecycle, timestamps, visibility
from memtool.memory.drift import mark
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
    from memtool.memory.drift import Drift
    from memtool.memory.fields import Category
    from memtool.memory.memory import Memory
    from memtool.search.drift import DriftWitness
    from memtool.store.config import Config
    from memtool.store.snapshot import Record

BYTES_PER_TOKEN = 4

WHOLE_TOKENS = 250
"""A memory is shown whole up to this size, else its first paragraph."""

DIGITS = 6
"""Of a score, where it is shown: the last bits of an exponential differ between machines."""

PINNED = "pinned"
RETRIEVAL = "retrieval"
GOVERNING = "governing"
"""The tiers; a governing one is about a file that was changed or that the prompt names."""
SUMMARY = "summary"
"""The tier of what sums up others: digests, and in a primer the session before."""
PROJECT = "project"
GLOBAL = "global"
FLEET = "fleet"
"""The scopes: whose memory it is, by the repository that it is in; that of the fleet is also a tier
of its own, and stands for the trust that there is in it, less than `local`."""


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
    suffices: bool = True
    """Whether what is shown of a digest answers the prompt by itself."""
    repository: str = ""
    commit: str = ""
    """Of a memory of the fleet its `org/name`, and the full id of the commit it was read from."""

    @property
    def is_brief(self) -> bool:
        """Whether it is shown as its statement though there is more: nobody asked for it."""
        memory = self.record.memory
        is_unasked = self.tier == GOVERNING and self.score is None
        return is_unasked and memory.statement.split() != memory.body.split()


class CandidateVerdict(Value):
    """Why a candidate was shown or not. `weights` are its factors as they were computed.

    `repository` is that of a memory of the fleet, empty for others.
    """

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

    def plain(self) -> dict[str, Any]:
        """Return the JSON shape, in which the fate is called `taken`."""
        names = {"is_taken": "taken", "weights": "factors"}
        fields = super().plain() | {"weights": self.factors}
        if not self.repository:
            del fields["repository"]
        return {names.get(name, name): value for name, value in fields.items()}


class BlockEntry(Value):
    """A candidate in the block, as it is written there."""

    candidate: Candidate
    text: str

    @property
    def tokens(self) -> int:
        """What its text costs."""
        return tokens(self.text)


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
        **{name: type(getattr(usual, name))(config.setting(f"inject.{name}"))
           for name in Gates.field_names}
    )  # fmt: skip


class Cap:
    """What some candidates may take together of a tier, or of a whole block; `fill` counts it down.

    Without `tokens` only the number counts. What is beyond a soft one comes last, what is beyond
    another one not at all.
    """

    def __init__(
        self,
        holds: Callable[[Candidate], bool],
        reason: str,
        places: int,
        tokens: int | None = None,
        *,
        is_soft: bool = False,
    ) -> None:
        self.holds = holds
        self.reason = reason
        self.places = places
        self.tokens = tokens
        self.is_soft = is_soft
        self.refused = 0
        """How many were left out for it."""

    def is_beyond(self, candidate: Candidate, tokens: int) -> bool:
        """Tell whether a candidate of so many tokens would take too much."""
        if not self.holds(candidate):
            return False
        return self.places < 1 or (self.tokens is not None and tokens > self.tokens)

    def take(self, candidate: Candidate, tokens: int, places: int = 1) -> None:
        """Count what a candidate takes."""
        if self.holds(candidate):
            self.places -= places
            self.tokens = None if self.tokens is None else self.tokens - tokens


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

    drift: DriftWitness | None = None
    """What tells what became of the files of memories, None where they are not this project's."""
    contradicting: Mapping[str, tuple[str, ...]] = {}
    """Of those that may be shown together, the memories that certainly contradict each other, by
    the id of each of them, in the order of `conflicts.marked`."""

    @property
    def index(self) -> IndexReader:
        """The index of the memories, in whose statistics only what is current counts."""
        lineage = self.standing.lineage
        return Facts(self.tree, self.now, self.categories, dict, lineage).index

    def marks(self, record: Record) -> tuple[str, ...]:
        """Return the warnings that a memory is shown with."""
        marks = self.standing.marks(record.id)
        if record.id in self.contradicting:
            from memtool.search import conflicts  # few memories contradict another one

            marks = (*marks, conflicts.mark(self.contradicting[record.id]))
        lacking = self.unproven(record)
        if lacking:
            marks = (f"[UNPROVEN] {lacking}", *marks)
        drifted = mark(self.drift_of(record))
        if drifted:
            marks = (*marks, drifted)
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

    def drift_of(self, record: Record) -> Drift | None:
        """Return what became of the files of a memory, None where it names none."""
        return None if self.drift is None else self.drift(record)

    def refusal(self, record: Record) -> str:
        """Return why a memory may not be shown: it is not current, or has not enough trust."""
        reason = self.objection(record.memory)
        if reason or self.trust is None or self.least_trust == TRUST_LEVELS[0]:
            return reason
        return visibility.distrust(self.trust(record), self.least_trust)

    def beside(self, record: Record) -> list[Record]:
        """Return the current memories that conflict with one."""
        ids = dict.fromkeys((*self.standing.others(record.id), *self._contrary_to(record.id)))
        found = (self.tree.by_id[other] for other in ids)
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


def fill(
    candidates: Iterable[Candidate],
    write: Callable[[Candidate, bool], str],
    most: int,
    share: int,
    room: int,
    caps: Sequence[Cap] = (),
) -> tuple[list[BlockEntry], list[CandidateVerdict]]:
    """Take candidates in order while they fit into `share` tokens and `room` bytes.

    Each enters as its first paragraph; then what is small enough is shown whole, in the same
    order, as long as that fits too. `write(candidate, is_whole)` gives the text. What is beyond
    one of the `caps` is left out, or taken after all others where the cap is soft.
    """
    taken: list[BlockEntry] = []
    wholes: list[str] = []
    verdicts: list[CandidateVerdict] = []
    waiting = list(candidates)
    first = len(waiting)
    for place, candidate in enumerate(waiting):  # it grows by what comes last
        if len(taken) >= most:
            verdicts.append(verdict(candidate, f"the tier holds {most}", is_taken=False))
            continue
        brief = write(candidate, False)
        whole = brief if _is_long(candidate.record.memory, brief) else write(candidate, True)
        one = BlockEntry(candidate, min(whole, brief, key=_size))
        beyond = [cap for cap in caps if cap.is_beyond(candidate, one.tokens)]
        if place < first and beyond and all(cap.is_soft for cap in beyond):
            waiting.append(candidate)
            continue
        hard = next((cap for cap in beyond if not cap.is_soft), None)
        if hard is not None:
            hard.refused += 1
            verdicts.append(verdict(candidate, hard.reason, is_taken=False))
            continue
        if one.tokens > share or _size(one.text) > room:
            left = max(0, min(share, room // BYTES_PER_TOKEN))
            reason = f"over budget: {one.tokens} tokens, {left} left"
            verdicts.append(verdict(candidate, reason, is_taken=False))
            continue
        share -= one.tokens
        room -= _size(one.text)
        for cap in caps:
            cap.take(candidate, one.tokens)
        taken.append(one)
        wholes.append(whole)
    for number, (one, text) in enumerate(zip(taken, wholes, strict=True)):
        cost = tokens(text)
        more, bytes_more = cost - one.tokens, _size(text) - _size(one.text)
        is_beyond = any(cap.holds(one.candidate) and cap.tokens is not None and more > cap.tokens
                        for cap in caps)  # fmt: skip
        if cost <= WHOLE_TOKENS and more <= share and bytes_more <= room and not is_beyond:
            for cap in caps:
                cap.take(one.candidate, more, 0)
            share -= more
            room -= bytes_more
            taken[number] = BlockEntry(one.candidate, text)
    verdicts += [verdict(one.candidate, f"{one.tokens} tokens", is_taken=True) for one in taken]
    return taken, verdicts


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


def _is_long(memory: Memory, brief: str) -> bool:
    """Tell whether a memory is shown in brief whatever room there is; writing it adds to its size.

    Most are, and a whole one of some pages need then not be written, only to be left out.
    """
    least = len(memory.body.strip("\r\n"))
    return least > WHOLE_TOKENS * BYTES_PER_TOKEN and least > _size(brief)


def _size(text: str) -> int:
    return len(text.encode())


class Budget(Value):
    """Tokens of one block. The shares never exceed the total.

    `bridge` leads from the session before to this one: in a primer it holds the state of the work
    and what is new. `summary` holds what sums up others. Whatever is short is taken from the last
    share first, in the order pinned, bridge, retrieval, summary; what stays empty goes to retrieval
    in the answer to a prompt, and to the bridge in a primer, where nothing was asked.
    """

    total: int
    pinned: int
    bridge: int
    retrieval: int
    summary: int
    retrieval_most: int = 0
    """What the settings allow for retrieval, however much stays empty elsewhere."""
    fleet: int = 0
    """What memories of other repositories may take of what the others leave; 0 without a fleet."""

    def to_retrieval(self, pinned: int, summary: int = 0) -> Budget:
        """Return what the answer to a prompt has left, by the tokens that two tiers used."""
        left = max(0, self.total - pinned - summary)
        retrieval = min(self.retrieval_most, left)
        return self.replace(pinned=pinned, bridge=0, retrieval=retrieval, summary=summary)

    def to_bridge(self, pinned: int, summary: int) -> Budget:
        """Return the shares of a primer, by the tokens that two tiers used."""
        left = max(0, self.total - pinned - summary)
        return self.replace(pinned=pinned, bridge=left, retrieval=0, summary=summary)


ROWS: tuple[tuple[int, tuple[int, int, int, int, int]], ...] = (
    (8_000, (640, 200, 500, 300, 200)),
    (20_000, (1_600, 200, 700, 500, 200)),
    (50_000, (4_000, 320, 1_840, 1_196, 600)),
    (100_000, (5_000, 400, 2_300, 1_500, 600)),
)
"""Tokens that the agent's window still has, and the (total, pinned, bridge, retrieval, summary)
that a block may take of them. Between rows the numbers lie on the straight line.
"""


def tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return -(-_size(text) // BYTES_PER_TOKEN)


def plan(config: Config, budget: int | None, remaining: int | None) -> Budget:
    """Share out the tokens that were given, or that what remains allows, or of the settings.

    Raises:
        MemtoolError: a number is negative.
    """
    for name, number in (("--budget", budget), ("--remaining", remaining)):
        if number is not None and number < 0:
            raise MemtoolError(
                f"{name} {number} is negative",
                hint=f"{name} takes a number of tokens, 0 or more",
                code="bad-budget",
            )
    pinned_most = config.count("inject.pinned_tokens")
    retrieval_most = config.count("inject.retrieval_tokens")
    if budget is None and remaining is not None:
        total, pinned, bridge, retrieval, summary = allowed(remaining)
        shares = (min(pinned, pinned_most), bridge, min(retrieval, retrieval_most), summary)
        return _cut(total, shares, retrieval_most)
    total = config.count("inject.budget_tokens") if budget is None else budget
    return _cut(total, (pinned_most, 0, retrieval_most, 0), retrieval_most)


def allowed(remaining: int) -> tuple[int, ...]:
    """Return the row of the table for a number of remaining tokens, rounded down.

    Below the first row its numbers shrink in proportion, above the last they stay.
    """
    low, below = 0, (0, 0, 0, 0, 0)
    for high, above in ROWS:
        if remaining <= high:
            part, whole = remaining - low, high - low
            return tuple(b + (a - b) * part // whole for b, a in zip(below, above, strict=True))
        low, below = high, above
    return below


def _cut(total: int, wanted: tuple[int, int, int, int], retrieval_most: int) -> Budget:
    left = total
    granted = []
    for share in wanted:
        granted.append(min(share, left))
        left -= granted[-1]
    pinned, bridge, retrieval, summary = granted
    return Budget(total, pinned, bridge, retrieval, summary, retrieval_most)
