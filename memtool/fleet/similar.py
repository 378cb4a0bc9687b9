"""Shared decisions: equal and contrary decisions in different repositories of a fleet.

The criteria are the gate's, applied to memories of different repositories. Two are the same if
`near_duplicates` finds them, or if they state the same in title or first sentence; two are contrary
if `contradictions` finds them. Both compare English words, so decisions in very different words are
not found. A third kind is a memory that one repository replaced and another still has under the
same id: it was imported or copied.

`compare_memories` takes about linear time: equal and contrary decisions are found by their
statements, near-duplicates by `search.word_join`. Secrets are masked only in results, since masking
everything takes longer than the comparison.

`compare_project` compares memories of the project with the candidates of a backend for each;
`compare_fleet` compares all decisions of the repositories on this machine.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from memtool.errors import MemtoolError
from memtool.fleet import ask, rank
from memtool.fleet.backend import (
    FleetQuery,
    FleetUnavailable,
    find_fleet_home,
    require_settings,
)
from memtool.fleet.git_backend import GitBackend
from memtool.fleet.repositories import find_name
from memtool.index import index, scoring
from memtool.memory import ids, likeness, timestamps
from memtool.memory.memory import is_generated
from memtool.redaction.mask import Mask
from memtool.search import comparison, contradictions
from memtool.search.word_join import FLEET, WordNumbers, join_similar
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

    IsLate = Callable[[float], bool]
    """Returns whether a share of the time, from 0 to 1, is over."""

SAME, CONTRARY, REPLACED = "same", "contrary", "replaced"
KINDS: dict[str, str] = {
    CONTRARY: "they cannot both hold",
    REPLACED: "one replaced what another still holds",
    SAME: "they decided the same",
}
"""Relations between decisions, in the order of the list."""
TYPES = contradictions.TYPES
"""Types of memories that make a claim."""
MIN_SUBJECT_TERMS = 2
"""Minimum of terms in a subject: with fewer, equal statements may be about different things."""
_DECISION_WORDS = (
    "use uses used adopt adopts adopted choose chooses chose prefer prefers must should always"
    " never need needs require requires run runs keep keeps store stores write writes"
)
DECISION_WORDS = frozenset(_DECISION_WORDS.split())
"""Words of a sentence that decides something; a title without them may only name a subject."""
QUERY_TIMEOUT_S = 5.0
"""Limit of one query to a backend; longer than for a prompt, as no agent is waiting."""
MAX_ASKING_SHARE, MAX_READING_SHARE = 0.5, 0.75
"""Shares of the time after which queries and reading stop, to leave time for the comparison."""
# Memories with the same statement that are compared with a contrary one. More would give the same
# group.
MAX_COMPARED = 50
MAX_MEMBERS, MAX_VALUES = 100, 5
"""Limits for the decisions of a group, and for the values in its reason."""
MIN_SHOWN = 20
"""Groups that are shown even after the time limit."""
MAX_CACHED_TEXTS = 1 << 14
_STEP = 256
"""Memories between two checks of the time."""


class LocatedMemory(Value):
    """A memory with its repository, commit (empty if uncommitted) and path."""

    repository: str
    commit: str
    path: str
    memory: Memory


class FleetDecision(Value):
    """One decision of a group, as shown.

    `date` is a day. If the decisions differ in a value, `value` is this one's.
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
    """A group of decisions in at least two repositories, ordered by day, repository and id.

    `kind` is one of `KINDS`; `reason` is one line. `count` counts all decisions, of which
    `decisions` has the first `MAX_MEMBERS`; `repositories` are the sorted names of all their
    repositories.
    """

    kind: str
    reason: str
    count: int
    decisions: tuple[FleetDecision, ...]
    repositories: tuple[str, ...]


class Comparison(Value):
    """The result of comparing `compared` memories of `repositories` repositories.

    `kinds` counts all groups by kind; `shared` has the first of them. `left_out` is a clause on
    what was skipped for lack of time; empty if nothing was.
    """

    shared: tuple[SharedDecision, ...]
    kinds: Mapping[str, int]
    compared: int
    repositories: int
    left_out: str = ""


def is_comparable(memory: Memory) -> bool:
    """Return whether a memory makes a claim; traces, states and digests do not."""
    return memory.type in TYPES and not is_generated(memory)


def compare_project(
    context: Context, records: Sequence[Record], seconds: float, limit: int | None = None
) -> Comparison:
    """Compare memories of the project with those of other repositories.

    Each memory is one query to the backend. `seconds` limits the time, `limit` the number of groups
    shown (None for all).

    Raises:
        MemtoolError: no fleet is configured, or it does not answer.
    """
    fleet = require_settings(context)
    backend = ask.choose_backend(context, fleet)
    deadline = Deadline(seconds)
    tree = index.open(context)
    name = find_name(context.repository)
    origins = context.origins(tree, records)
    own = [
        LocatedMemory(name, origins[record.path].commit, record.path, record.memory)
        for record in records
    ]
    foreign: dict[tuple[str, str], LocatedMemory] = {}
    left_out = ""
    for number, row in enumerate(own):
        if deadline.has_passed(MAX_ASKING_SHARE):
            left_out = f"others were asked about the first {number:,} of {len(own):,} memories"
            break
        question = scoring.parse_question(f"{row.memory.title}\n{row.memory.statement}")
        query = rank.build_query(question, tree.index.statistics(question.weights))
        query = query.replace(types=TYPES, allow=fleet.allow, excluded=name)
        try:
            candidates = backend.find_candidates(query, QUERY_TIMEOUT_S) if query.weights else []
        except FleetUnavailable as error:
            raise _unavailable_error(error) from None
        foreign.update(
            ((located.repository, located.path), located)
            for located in _read_memories(context, candidates)
        )
    result = compare_memories(
        [*own, *foreign.values()],
        deadline.has_passed,
        lambda located: located.repository == name,
        limit,
        Mask(context.settings),
    )
    return result.replace(left_out="; ".join(filter(None, (left_out, result.left_out))))


def compare_fleet(context: Context, seconds: float, limit: int | None = None) -> Comparison:
    """Compare the decisions of all repositories on this machine, as last synced.

    `limit` is the number of groups shown, None for all.

    Raises:
        MemtoolError: no fleet is configured, it is a server, or there was no sync.
    """
    fleet = require_settings(context)
    if fleet.url:
        raise MemtoolError(
            "cannot compare all memories of the fleet: a server is configured",
            hint="the decisions of this repository: memtool fleet similar",
            code="no-fleet",
        )
    deadline = Deadline(seconds)
    backend = GitBackend(find_fleet_home(context.caller.env), context.clock.now)
    try:
        candidates = backend.find_all(FleetQuery({}, types=("decision",), allow=fleet.allow))
        mask = Mask(context.settings)
        return compare_memories(
            _read_memories(context, candidates), deadline.has_passed, limit=limit, mask=mask
        )
    except FleetUnavailable as error:
        raise _unavailable_error(error) from None


def _unavailable_error(error: FleetUnavailable) -> MemtoolError:
    return MemtoolError(
        f"no other repository answered: {error}",
        hint="memtool fleet status",
        code="no-fleet",
    )


def _read_memories(
    context: Context, candidates: Iterable[FleetCandidate]
) -> Iterator[LocatedMemory]:
    """Yield the memories of candidates that may be shown."""
    reader = rank.CandidateReader(ask.build_result_filter(context))
    for candidate in candidates:
        memory = reader.read_memory(candidate) if reader.can_show(candidate) else None
        if memory is not None:
            yield LocatedMemory(candidate.repository, candidate.commit, candidate.path, memory)


def compare_memories(
    memories: Iterable[LocatedMemory],
    is_late: IsLate = lambda _share: False,
    is_relevant: Callable[[LocatedMemory], bool] = lambda _memory: True,
    limit: int | None = None,
    mask: Mask | None = None,
) -> Comparison:
    """Find groups of memories from different repositories that are equal or contrary.

    Only groups with a relevant memory are returned, and of these the first `limit`, with secrets
    masked. When time is over, the result is incomplete; the fastest tests come first.
    """
    parts, left_out = _tokenize(memories, is_late)
    rows = [part.row for part in parts]
    groups = _find_replaced(rows)
    clashes = contradictions.find(
        [row.memory for row in rows],
        [part.stated for part in parts],
        MAX_COMPARED,
        lambda: is_late(1.0),
    )
    if is_late(1.0):
        left_out.append("what may be contrary was not compared to its end")
    groups += _find_contrary(rows, clashes)
    same_sets = DisjointSets()
    firsts = _join_equal(parts, same_sets)
    left_out += _join_near_equal(parts, firsts, same_sets, is_late)
    groups += _group_same(rows, same_sets)
    relevant = sorted(
        (group for group in groups if any(is_relevant(rows[place]) for place in group.members)),
        key=lambda group: _sort_key(group, rows),
    )
    shown = []
    mask_title = _make_title_masker(mask)
    for number, group in enumerate(relevant[:limit]):
        if number >= MIN_SHOWN and is_late(1.0):
            left_out.append(f"the groups after the first {number:,} are counted, and not shown")
            break
        shown.append(_build_shared(group, rows, mask_title))
    return Comparison(
        tuple(shown),
        Counter(group.kind for group in relevant),
        len(rows),
        len({row.repository for row in rows}),
        "; ".join(left_out),
    )


class _TokenizedMemory(Value):
    """A memory with its statements, the fingerprint of its text, and its words as numbers."""

    row: LocatedMemory
    stated: Sequence[Statement]
    text: str
    words: array[int]


def _tokenize(
    memories: Iterable[LocatedMemory], is_late: IsLate
) -> tuple[list[_TokenizedMemory], list[str]]:
    """Return comparable memories by repository and path, and clauses on what was skipped."""
    numbers = WordNumbers()
    parts: dict[tuple[str, str], _TokenizedMemory] = {}
    left_out = []
    for number, row in enumerate(memories):
        if number % _STEP == 0 and number and is_late(MAX_READING_SHARE):
            left_out.append(f"only the first {number:,} decisions were read")
            break
        if is_comparable(row.memory):
            stated = contradictions.parse_statements(row.memory)
            part = _TokenizedMemory(
                row, stated, ids.compute_fingerprint(row.memory), numbers.number(row.memory)
            )
            parts[row.repository, row.path] = part
    return [part for _key, part in sorted(parts.items())], left_out


class _Group(Value):
    """A group: positions of its memories, and the values that some of them state.

    `quoted` are the memories that the reason quotes.
    """

    kind: str
    reason: str
    members: Sequence[int]
    values: Mapping[int, str] = {}
    quoted: Sequence[int] = ()


def _sort_key(group: _Group, rows: Sequence[LocatedMemory]) -> tuple[object, ...]:
    """Sort key: by kind in the order of the table, then most repositories, then id."""
    first = rows[_sort_by_day(group.members, rows)[0]]
    place = list(KINDS).index(group.kind)
    count = len({rows[at].repository for at in group.members})
    return place, -count, first.memory.id, first.repository, group.reason


def _sort_by_day(members: Iterable[int], rows: Sequence[LocatedMemory]) -> list[int]:
    def key(at: int) -> tuple[str, str, str]:
        row = rows[at]
        return timestamps.format_date(row.memory.timestamp), row.repository, row.memory.id

    return sorted(members, key=key)


def _make_title_masker(mask: Mask | None) -> Callable[[Memory], tuple[str, bool]]:
    """Return a function from a memory to its masked title, and whether it states a secret.

    Results are cached by text, as many repositories may have the same one.
    """
    masked_titles: dict[tuple[str, str], tuple[str, bool]] = {}

    def mask_title(memory: Memory) -> tuple[str, bool]:
        if mask is None:
            return memory.title, False
        key = memory.title, memory.body
        if key not in masked_titles:
            masked_memory = mask.memory(memory)
            is_secret = (masked_memory.title, masked_memory.statement) != (
                memory.title,
                memory.statement,
            )
            masked_titles[key] = masked_memory.title, is_secret
        return masked_titles[key]

    return mask_title


def _build_shared(
    group: _Group, rows: Sequence[LocatedMemory], mask_title: Callable[[Memory], tuple[str, bool]]
) -> SharedDecision:
    """Build the result of a group; quotes no sentence if a memory states a secret."""
    shown = []
    places = _sort_by_day(group.members, rows)[:MAX_MEMBERS]
    titles = {at: mask_title(rows[at].memory) for at in (*places, *group.quoted)}
    can_quote = group.kind != CONTRARY or not any(
        is_secret for _title, is_secret in titles.values()
    )
    for at in places:
        row, memory = rows[at], rows[at].memory
        shown.append(
            FleetDecision(
                row.repository,
                memory.id,
                titles[at][0],
                memory.type,
                timestamps.format_date(memory.timestamp),
                row.commit,
                row.path,
                memory.supersedes,
                group.values.get(at, "") if can_quote else "",
            )
        )
    return SharedDecision(
        group.kind,
        group.reason if can_quote else KINDS[group.kind],
        len(group.members),
        tuple(shown),
        tuple(sorted({rows[at].repository for at in group.members})),
    )


def _find_replaced(rows: Sequence[LocatedMemory]) -> list[_Group]:
    """Find memories that one repository replaced and another still has, by id."""
    holding: dict[str, list[int]] = {}
    replacing: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        holding.setdefault(row.memory.id, []).append(at)
        for old_id in row.memory.replaces:
            replacing.setdefault(old_id, []).append(at)
    groups = []
    for old_id, replacements in replacing.items():
        sides = [replacements, holding.get(old_id, [])]
        repositories_of_sides = [{rows[at].repository for at in side} for side in sides]
        replacers, holders = (
            [at for at in side if opposite - {rows[at].repository}]
            for side, opposite in zip(sides, reversed(repositories_of_sides), strict=True)
        )
        if replacers and holders:
            first, *further = sorted({rows[at].repository for at in replacers})
            who = f"{first} and {len(further):,} more" if further else first
            groups.append(_Group(REPLACED, f"{who} replaced {old_id}", [*replacers, *holders]))
    return groups


def _find_contrary(
    rows: Sequence[LocatedMemory], clashes_found: Iterable[contradictions.Contradiction]
) -> list[_Group]:
    """Group the contradictions between repositories by topic."""
    topics: dict[str, list[contradictions.Contradiction]] = {}
    for contradiction in clashes_found:
        if rows[contradiction.first].repository != rows[contradiction.other].repository:
            topics.setdefault(contradiction.topic, []).append(contradiction)
    groups = []
    for clashes in topics.values():
        topic = DisjointSets()
        values: dict[int, str] = {}
        first: dict[int, contradictions.Contradiction] = {}
        for contradiction in clashes:
            topic.union(contradiction.first, contradiction.other)
            values.update(
                zip((contradiction.first, contradiction.other), contradiction.values, strict=False)
            )
            first.setdefault(contradiction.first, contradiction)
        for members in topic.groups():
            place_by_value: dict[str, int] = {}
            for at in members:
                if at in values:
                    place_by_value.setdefault(values[at], at)
            named_values = [*place_by_value][:MAX_VALUES]
            rest_clause = (
                [f"{len(place_by_value) - MAX_VALUES:,} more"]
                if len(place_by_value) > MAX_VALUES
                else []
            )
            clash = next(first[at] for at in members if at in first)
            reason = " against ".join([*named_values, *rest_clause]) or clash.reason
            quoted = [place_by_value[value] for value in named_values] or [clash.first, clash.other]
            groups.append(_Group(CONTRARY, reason, members, values, quoted))
    return groups


def _join_equal(parts: Sequence[_TokenizedMemory], same_sets: DisjointSets) -> dict[int, set[str]]:
    """Join memories with the same words or the same statement.

    Return the positions of distinct texts, each with the repositories that have it.
    """
    words: dict[object, list[int]] = {}
    claims: dict[object, list[int]] = {}
    for at, part in enumerate(parts):
        words.setdefault(part.text, []).append(at)
        for statement in part.stated:
            if len(statement.subject) >= MIN_SUBJECT_TERMS and _decides(statement):
                key = statement.sign, statement.concept, statement.subject, statement.values
                claims.setdefault(key, []).append(at)
    for groups, why in ((words, "the same words"), (claims, "they state the same")):
        for first, *tail in groups.values():
            for other in tail:
                same_sets.union(first, other, why)
    return {places[0]: {parts[at].row.repository for at in places} for places in words.values()}


def _decides(statement: Statement) -> bool:
    return bool(statement.concept) or not DECISION_WORDS.isdisjoint(statement.text.lower().split())


def _join_near_equal(
    parts: Sequence[_TokenizedMemory],
    repositories_by_place: Mapping[int, set[str]],
    same_sets: DisjointSets,
    is_late: IsLate,
) -> list[str]:
    """Join memories with nearly the same words; return clauses on what was skipped.

    `repositories_by_place` has the positions of the texts to compare.
    """

    @lru_cache(MAX_CACHED_TEXTS)
    def load_text(place: int) -> comparison.ComparedText:
        return comparison.ComparedText(parts[place].row.memory)

    def may_join(at: int, other: int) -> bool:
        is_at_home = (
            len(repositories_by_place[at]) == 1
            and repositories_by_place[at] == repositories_by_place[other]
        )
        return not is_at_home and same_sets.find_root(at) != same_sets.find_root(other)

    texts = {at: parts[at].words for at in repositories_by_place}
    for looked, (at, near) in enumerate(join_similar(texts, FLEET, may_join=may_join)):
        if looked % _STEP == 0 and is_late(1.0):
            seen = f"the first {looked:,} of {len(texts):,} texts"
            return [f"what says nearly the same was looked for in {seen}"]
        for other in near:
            if may_join(at, other):
                alike = comparison.compute_likeness(load_text(at), load_text(other), likeness.SAME)
                if alike >= likeness.SAME:
                    same_sets.union(at, other, f"nearly the same words ({alike:.2f})")
    return []


def _group_same(rows: Sequence[LocatedMemory], same_sets: DisjointSets) -> list[_Group]:
    """Return the groups of equal memories from more than one repository."""
    groups = []
    reasons: dict[int, list[str]] = {}
    for at, why in same_sets.why:
        reasons.setdefault(same_sets.find_root(at), []).append(why)
    for members in same_sets.groups():
        if len({rows[at].repository for at in members}) > 1:
            first, *further = dict.fromkeys(reasons[same_sets.find_root(members[0])])
            reason = "the same, or nearly the same words" if further else first
            groups.append(_Group(SAME, reason, members))
    return groups


class DisjointSets:
    """Disjoint sets of positions (Tarjan 1975), with the reasons for each union."""

    def __init__(self) -> None:
        self._leader: dict[int, int] = {}
        self.why: list[tuple[int, str]] = []
        """A position and the reason, for each union of two sets."""

    def find_root(self, at: int) -> int:
        """Return the representative of the set of a position."""
        leader = self._leader
        while leader.setdefault(at, at) != at:
            leader[at] = leader[leader[at]]
            at = leader[at]
        return at

    def union(self, place: int, other_place: int, why: str = "") -> None:
        """Unite the sets of two positions; `why` is recorded if they were different."""
        low, high = sorted((self.find_root(place), self.find_root(other_place)))
        if low != high:
            self._leader[high] = low
            self.why.append((low, why))

    def groups(self) -> list[list[int]]:
        """Return the sets of more than one position, sorted, in the order of their first."""
        members_by_root: dict[int, list[int]] = {}
        for at in sorted(self._leader):
            members_by_root.setdefault(self.find_root(at), []).append(at)
        return [members for _first, members in sorted(members_by_root.items()) if len(members) > 1]
