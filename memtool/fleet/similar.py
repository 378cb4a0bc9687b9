"""Shared decisions: what several repositories of a fleet decided alike, or to the contrary.

The tests are the gate's own, over memories of different repositories: two say the same where
`near_duplicates` finds so, or where they state the same in title or first sentence; they contradict
each other where `contradictions` does. Both go by words, and read English: what two teams put in
quite different words is not found. A repository that replaced a memory which another one still
holds, under the same id, is a third kind: it was imported or copied, and has moved on.

`compare` takes about linear time: what says the same, or the contrary, is found by what it states,
and what says nearly the same by `search.word_join`. Secrets are masked in what is
shown alone: to mask everything takes longer than to compare it.

`compare_project` compares memories of the project with what a backend finds for each,
`compare_fleet` all decisions of the repositories on this machine.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from memtool.errors import MemtoolError
from memtool.fleet import ask, rank
from memtool.fleet.backend import (
    FleetQuery,
    FleetUnavailable,
    home_of,
    required,
)
from memtool.fleet.git_backend import GitBackend
from memtool.fleet.repositories import name_of
from memtool.index import index, scoring
from memtool.memory import ids, likeness, timestamps
from memtool.memory.memory import is_generated
from memtool.redaction.mask import Mask
from memtool.search import comparison, contradictions
from memtool.search.word_join import FLEET, WordNumbers, joined
from memtool.store.deadline import Deadline
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from memtool.fleet.backend import FleetCandidate
    from memtool.memory.memory import Memory
    from memtool.search.contradictions import Statement
    from memtool.store.context import Context
    from memtool.store.tree import Record

    Late = Callable[[float], bool]
    """Tells whether a share of the time is over, from 0 to 1."""

SAME, CONTRARY, REPLACED = "same", "contrary", "replaced"
KINDS: dict[str, str] = {
    CONTRARY: "they cannot both hold",
    REPLACED: "one replaced what another still holds",
    SAME: "they decided the same",
}
"""What decisions of several repositories may be to each other, in the order they are listed."""
TYPES = contradictions.TYPES
"""Types whose memories claim something that holds."""
LEAST_SUBJECT = 2
"""Terms of the subject from which the same statement is about the same thing."""
_CHOOSING = (
    "use uses used adopt adopts adopted choose chooses chose prefer prefers must should always"
    " never need needs require requires run runs keep keeps store stores write writes"
)
CHOOSING = frozenset(_CHOOSING.split())
"""A sentence with one of these decides something; a title without one may only name a subject."""
FIND_S = 5.0
"""Seconds that a backend may take to find what is like one memory: nobody waits for a prompt."""
ASKING, READING = 0.5, 0.75
"""Shares of the time after which no other memory is asked about, and none is read, so that those
that were are compared."""
MOST_MET = 50
"""Memories that state one thing, each of which is compared with one that states the contrary: they
are one group with so many as with all."""
MOST_MEMBERS, MOST_VALUES = 100, 5
"""Decisions of a group that are shown, and values that its reason names."""
LEAST_SHOWN = 20
"""Groups that are shown however late it is."""
MOST_KNOWN = 1 << 14
"""Texts whose terms are in memory at once."""
_STEP = 256
"""Memories after which the time is looked at."""


class Located(Value):
    """A memory of a repository at its path in a commit, which is empty for what is in none."""

    repository: str
    commit: str
    path: str
    memory: Memory


class FleetDecision(Value):
    """One side of what is shared, as it is shown.

    `date` is its day, `value` what it gives to the thing in which they differ, if that is a value.
    """

    repository: str
    id: str
    title: str
    type: str
    date: str
    commit: str
    path: str
    supersedes: tuple[str, ...]
    value: str = ""


class SharedDecision(Value):
    """Decisions of at least two repositories, of a kind of `KINDS`, by day, repository and id.

    `reason` says in one line what is the same, or differs. `count` is how many they are, of which
    `decisions` are the first `MOST_MEMBERS`; `repositories` are the names of all theirs, sorted.
    """

    kind: str
    reason: str
    count: int
    decisions: tuple[FleetDecision, ...]
    repositories: tuple[str, ...]


class Comparison(Value):
    """What was found among so many memories of so many repositories.

    `kinds` counts all groups by kind, of which `shared` are the first. `left_out` says in one
    clause what the time did not suffice for, and is empty where it did.
    """

    shared: tuple[SharedDecision, ...]
    kinds: Mapping[str, int]
    compared: int
    repositories: int
    left_out: str = ""


def counts(memory: Memory) -> bool:
    """Tell whether a memory claims something that may be shared: no trace, state or digest does."""
    return memory.type in TYPES and not is_generated(memory)


def compare_project(
    context: Context, records: Sequence[Record], seconds: float, most: int | None = None
) -> Comparison:
    """Return what memories of the project share with those of other repositories.

    Each is one question to the backend. After so many seconds no other is asked. `most` is how many
    groups are shown, None for all.

    Raises:
        MemtoolError: nobody is set to ask, or nobody answers.
    """
    whom = required(context)
    backend = ask.backend_of(context, whom)
    deadline = Deadline(seconds)
    tree = index.open(context)
    name = name_of(context.repository)
    origins = context.origins(tree, records)
    own = [Located(name, origins[one.path].commit, one.path, one.memory) for one in records]
    found: dict[tuple[str, str], Located] = {}
    left_out = ""
    for number, row in enumerate(own):
        if deadline.has_passed(ASKING):
            left_out = f"others were asked about the first {number:,} of {len(own):,} memories"
            break
        asked = scoring.question(f"{row.memory.title}\n{row.memory.statement}")
        wanted = rank.question_of(asked, tree.index.statistics(asked.weights))
        wanted = wanted.replace(types=TYPES, allow=whom.allow, without=name)
        try:
            candidates = backend.candidates(wanted, FIND_S) if wanted.weights else []
        except FleetUnavailable as error:
            raise _unavailable(error) from None
        found.update(((one.repository, one.path), one) for one in _read(context, candidates))
    compared = compare(
        [*own, *found.values()],
        deadline.has_passed,
        lambda one: one.repository == name,
        most,
        Mask(context.settings),
    )
    return compared.replace(left_out="; ".join(filter(None, (left_out, compared.left_out))))


def compare_fleet(context: Context, seconds: float, most: int | None = None) -> Comparison:
    """Return what the decisions of all repositories on this machine share, as last synced.

    `most` is how many groups are shown, None for all.

    Raises:
        MemtoolError: nobody is set to ask, a server is, or nothing was synced.
    """
    whom = required(context)
    if whom.url:
        raise MemtoolError(
            "a server is asked about some memories, and does not give all of them",
            hint="memtool fleet similar compares the decisions of this repository",
            code="no-fleet",
        )
    deadline = Deadline(seconds)
    backend = GitBackend(home_of(context.caller.env), context.clock.now)
    try:
        candidates = backend.all(FleetQuery({}, types=("decision",), allow=whom.allow))
        mask = Mask(context.settings)
        return compare(_read(context, candidates), deadline.has_passed, most=most, mask=mask)
    except FleetUnavailable as error:
        raise _unavailable(error) from None


def _unavailable(error: FleetUnavailable) -> MemtoolError:
    return MemtoolError(
        f"no other repository answered: {error}",
        hint="memtool fleet status says which there are",
        code="no-fleet",
    )


def _read(context: Context, candidates: Iterable[FleetCandidate]) -> Iterator[Located]:
    """Yield the memories of candidates that are alive."""
    reader = rank.CandidateReader(ask.result_filter(context))
    for one in candidates:
        memory = reader.memory(one) if reader.is_shown(one) else None
        if memory is not None:
            yield Located(one.repository, one.commit, one.path, memory)


def compare(
    found: Iterable[Located],
    is_late: Late = lambda _share: False,
    about: Callable[[Located], bool] = lambda _one: True,
    most: int | None = None,
    mask: Mask | None = None,
) -> Comparison:
    """Return what memories of different repositories share, each group once.

    Only groups with a memory that it is `about` are returned, and of these the first `most`, with
    secrets masked. Where `is_late` says so, what was found until then is; the quickest tests come
    first.
    """
    parts, left_out = _tokenize(found, is_late)
    rows = [part.row for part in parts]
    groups = _replaced(rows)
    clashes = contradictions.find(
        [row.memory for row in rows],
        [part.stated for part in parts],
        MOST_MET,
        lambda: is_late(1.0),
    )
    if is_late(1.0):
        left_out.append("what may be contrary was not compared to its end")
    groups += _contrary(rows, clashes)
    same = DisjointSets()
    firsts = _say_the_same(parts, same)
    left_out += _say_nearly_the_same(parts, firsts, same, is_late)
    groups += _same(rows, same)
    kept = sorted(
        (one for one in groups if any(about(rows[at]) for at in one.members)),
        key=lambda one: _order(one, rows),
    )
    shown = []
    masked = _masking(mask)
    for number, group in enumerate(kept[:most]):
        if number >= LEAST_SHOWN and is_late(1.0):
            left_out.append(f"the groups after the first {number:,} are counted, and not shown")
            break
        shown.append(_shared(group, rows, masked))
    return Comparison(
        tuple(shown),
        Counter(one.kind for one in kept),
        len(rows),
        len({row.repository for row in rows}),
        "; ".join(left_out),
    )


class _Part(Value):
    """A memory taken apart: what it states, what identifies its text, and its words as numbers."""

    row: Located
    stated: Sequence[Statement]
    text: str
    words: array[int]


def _tokenize(found: Iterable[Located], is_late: Late) -> tuple[list[_Part], list[str]]:
    """Return memories that count, by repository and path, and what the time did not suffice for."""
    numbers = WordNumbers()
    known: dict[tuple[str, str], _Part] = {}
    left_out = []
    for number, row in enumerate(found):
        if number % _STEP == 0 and number and is_late(READING):
            left_out.append(f"only the first {number:,} decisions were read")
            break
        if counts(row.memory):
            stated = contradictions.statements(row.memory)
            part = _Part(row, stated, ids.fingerprint(row.memory), numbers.of(row.memory))
            known[row.repository, row.path] = part
    return [part for _key, part in sorted(known.items())], left_out


class _Group(Value):
    """The places of memories that share something, and the values that some of them give.

    `quoted` are those whose sentences the reason quotes.
    """

    kind: str
    reason: str
    members: Sequence[int]
    values: Mapping[int, str] = {}
    quoted: Sequence[int] = ()


def _order(group: _Group, rows: Sequence[Located]) -> tuple[object, ...]:
    """Sort key: kinds in the order of their table, those of most repositories first, then by id."""
    first = rows[_by_day(group.members, rows)[0]]
    place = list(KINDS).index(group.kind)
    count = len({rows[at].repository for at in group.members})
    return place, -count, first.memory.id, first.repository, group.reason


def _by_day(members: Iterable[int], rows: Sequence[Located]) -> list[int]:
    def key(at: int) -> tuple[str, str, str]:
        row = rows[at]
        return timestamps.date(row.memory.timestamp), row.repository, row.memory.id

    return sorted(members, key=key)


def _masking(mask: Mask | None) -> Callable[[Memory], tuple[str, bool]]:
    """Return what gives the title of a memory as it is shown, and whether it states a secret.

    Of the same text, which many repositories may have, this is found out once.
    """
    known: dict[tuple[str, str], tuple[str, bool]] = {}

    def masked(memory: Memory) -> tuple[str, bool]:
        if mask is None:
            return memory.title, False
        key = memory.title, memory.body
        if key not in known:
            told = mask.memory(memory)
            is_secret = (told.title, told.statement) != (memory.title, memory.statement)
            known[key] = told.title, is_secret
        return known[key]

    return masked


def _shared(
    group: _Group, rows: Sequence[Located], masked: Callable[[Memory], tuple[str, bool]]
) -> SharedDecision:
    """Return a group as it is shown: where one of it states a secret, no sentence is quoted."""
    shown = []
    places = _by_day(group.members, rows)[:MOST_MEMBERS]
    told = {at: masked(rows[at].memory) for at in (*places, *group.quoted)}
    is_told = group.kind != CONTRARY or not any(is_secret for _title, is_secret in told.values())
    for at in places:
        row, memory = rows[at], rows[at].memory
        shown.append(
            FleetDecision(
                row.repository,
                memory.id,
                told[at][0],
                memory.type,
                timestamps.date(memory.timestamp),
                row.commit,
                row.path,
                memory.supersedes,
                group.values.get(at, "") if is_told else "",
            )
        )
    return SharedDecision(
        group.kind,
        group.reason if is_told else KINDS[group.kind],
        len(group.members),
        tuple(shown),
        tuple(sorted({rows[at].repository for at in group.members})),
    )


def _replaced(rows: Sequence[Located]) -> list[_Group]:
    """Return what a repository replaced and another one still holds, by its id."""
    holding: dict[str, list[int]] = {}
    replacing: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        holding.setdefault(row.memory.id, []).append(at)
        for old in row.memory.replaces:
            replacing.setdefault(old, []).append(at)
    groups = []
    for old, new in replacing.items():
        sides = [new, holding.get(old, [])]
        homes = [{rows[at].repository for at in side} for side in sides]
        apart, held = (
            [at for at in side if others - {rows[at].repository}]
            for side, others in zip(sides, reversed(homes), strict=True)
        )
        if apart and held:
            first, *more = sorted({rows[at].repository for at in apart})
            who = f"{first} and {len(more):,} more" if more else first
            groups.append(_Group(REPLACED, f"{who} replaced {old}", [*apart, *held]))
    return groups


def _contrary(
    rows: Sequence[Located], found: Iterable[contradictions.Contradiction]
) -> list[_Group]:
    """Return what contradicts each other across repositories, with all about one thing as one."""
    topics: dict[str, list[contradictions.Contradiction]] = {}
    for one in found:
        if rows[one.one].repository != rows[one.other].repository:
            topics.setdefault(one.topic, []).append(one)
    groups = []
    for clashes in topics.values():
        topic = DisjointSets()
        values: dict[int, str] = {}
        first: dict[int, contradictions.Contradiction] = {}
        for one in clashes:
            topic.join(one.one, one.other)
            values.update(zip((one.one, one.other), one.values, strict=False))
            first.setdefault(one.one, one)
        for members in topic.groups():
            told: dict[str, int] = {}
            for at in members:
                if at in values:
                    told.setdefault(values[at], at)
            named = [*told][:MOST_VALUES]
            more = [f"{len(told) - MOST_VALUES:,} more"] if len(told) > MOST_VALUES else []
            clash = next(first[at] for at in members if at in first)
            reason = " against ".join([*named, *more]) or clash.reason
            quoted = [told[value] for value in named] or [clash.one, clash.other]
            groups.append(_Group(CONTRARY, reason, members, values, quoted))
    return groups


def _say_the_same(parts: Sequence[_Part], same: DisjointSets) -> dict[int, set[str]]:
    """Join what has the same words as another, or states the same.

    Returned are the places of the texts that differ, each with the repositories that have it.
    """
    words: dict[object, list[int]] = {}
    claims: dict[object, list[int]] = {}
    for at, part in enumerate(parts):
        words.setdefault(part.text, []).append(at)
        for said in part.stated:
            if len(said.subject) >= LEAST_SUBJECT and _decides(said):
                key = said.sign, said.concept, said.subject, said.values
                claims.setdefault(key, []).append(at)
    for groups, how in ((words, "the same words"), (claims, "they state the same")):
        for first, *others in groups.values():
            for other in others:
                same.join(first, other, how)
    return {places[0]: {parts[at].row.repository for at in places} for places in words.values()}


def _decides(said: Statement) -> bool:
    return bool(said.concept) or not CHOOSING.isdisjoint(said.text.lower().split())


def _say_nearly_the_same(
    parts: Sequence[_Part], homes: Mapping[int, set[str]], same: DisjointSets, is_late: Late
) -> list[str]:
    """Join what has nearly the same words; return what the time did not suffice for.

    `homes` are the texts that are compared, by place, with the repositories that have each.
    """

    @lru_cache(MOST_KNOWN)
    def compared(place: int) -> comparison.ComparedText:
        return comparison.ComparedText(parts[place].row.memory)

    def may_join(at: int, other: int) -> bool:
        is_at_home = len(homes[at]) == 1 and homes[at] == homes[other]
        return not is_at_home and same.first(at) != same.first(other)

    texts = {at: parts[at].words for at in homes}
    for looked, (at, near) in enumerate(joined(texts, FLEET, may_join=may_join)):
        if looked % _STEP == 0 and is_late(1.0):
            seen = f"the first {looked:,} of {len(texts):,} texts"
            return [f"what says nearly the same was looked for in {seen}"]
        for other in near:
            if may_join(at, other):
                alike = comparison.likeness_of(compared(at), compared(other), likeness.SAME)
                if alike >= likeness.SAME:
                    same.join(at, other, f"nearly the same words ({alike:.2f})")
    return []


def _same(rows: Sequence[Located], same: DisjointSets) -> list[_Group]:
    """Return the groups of what says the same, of more than one repository each."""
    groups = []
    reasons: dict[int, list[str]] = {}
    for at, why in same.why:
        reasons.setdefault(same.first(at), []).append(why)
    for members in same.groups():
        if len({rows[at].repository for at in members}) > 1:
            first, *others = dict.fromkeys(reasons[same.first(members[0])])
            reason = "the same, or nearly the same words" if others else first
            groups.append(_Group(SAME, reason, members))
    return groups


class DisjointSets:
    """Disjoint sets of places (Tarjan 1975), and why sets were joined."""

    def __init__(self) -> None:
        self._leader: dict[int, int] = {}
        self.why: list[tuple[int, str]] = []
        """A place of each two sets that became one, and why."""

    def first(self, at: int) -> int:
        """Return the place that stands for the set of one."""
        leader = self._leader
        while leader.setdefault(at, at) != at:
            leader[at] = leader[leader[at]]
            at = leader[at]
        return at

    def join(self, one: int, other: int, why: str = "") -> None:
        """Make the sets of two places one; `why` counts where they were two until now."""
        low, high = sorted((self.first(one), self.first(other)))
        if low != high:
            self._leader[high] = low
            self.why.append((low, why))

    def groups(self) -> list[list[int]]:
        """Return the sets of more than one place, each sorted, in the order of their first."""
        found: dict[int, list[int]] = {}
        for at in sorted(self._leader):
            found.setdefault(self.first(at), []).append(at)
        return [members for _first, members in sorted(found.items()) if len(members) > 1]
