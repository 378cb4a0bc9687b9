"""Shared decisions: what several repositories of a fleet decided alike, or to the contrary.

The tests are the gate's own, over memories of different repositories: two say the same where
`near_duplicates` finds so, or where they state the same in title or first sentence; they contradict
each other where `contradictions` does. Both go by words, and read English: what two teams put in
quite different words is not found. A repository that replaced a memory which another one still
holds, under the same id, is a third kind: it was imported or copied, and has moved on.

`among` compares memories that are at hand, in about linear time: each is compared in full only with
those that share rare words with it. `beside` compares memories of the project with what a backend
finds for each, `everywhere` all decisions of the repositories on this machine.
"""

from __future__ import annotations

import time
from collections import Counter
from itertools import chain

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
from memtool.gate import contradictions, near_duplicates
from memtool.index import index
from memtool.memory import ids, timestamps
from memtool.memory.memory import is_generated
from memtool.search import retrieve
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from memtool.fleet.backend import FleetCandidate
    from memtool.gate.contradictions import Statement
    from memtool.memory.memory import Memory
    from memtool.store.context import Context
    from memtool.store.snapshot import Record

    Pair = tuple[int, int]
    """Places of two memories in a list, the smaller one first."""

SAME, CONTRARY, REPLACED = "same", "contrary", "replaced"
KINDS: dict[str, str] = {
    CONTRARY: "they cannot both hold",
    REPLACED: "one replaced what another still holds",
    SAME: "they decided the same",
}
"""What decisions of several repositories may be to each other, in the order they are listed."""
TYPES = contradictions.TYPES
"""Types whose memories claim something that holds."""
LIKENESS = 0.7
"""Least likeness of two memories that say the same. Less than for the duplicates of one repository:
two teams use other words for one thing, and nothing is refused for it."""
LEAST_SUBJECT = 2
"""Terms of the subject from which the same statement is about the same thing."""
_CHOOSING = (
    "use uses used adopt adopts adopted choose chooses chose prefer prefers must should always"
    " never need needs require requires run runs keep keeps store stores write writes"
)
CHOOSING = frozenset(_CHOOSING.split())
"""A sentence with one of these decides something; a title without one may only name a subject."""
LEAST_SHARED = 0.6
"""Share of all words from which it is worth to compare two texts by their terms."""
RARE_WORDS, FEW_WORDS, VERIFIED = 24, 4, 8
"""Words by which a text is looked for, how many of them there are even where they are common, and
how many texts are compared with it in full: those that share most of them."""
MOST_HOLDING, MOST_OF_ONE = 1_500, 5_000
"""Texts in which all these words may stand, and each."""
FIND_S = 5.0
"""Seconds that a backend may take to find what is like one memory: nobody waits for a prompt."""
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

    `reason` says in one line what is the same, or differs.
    """

    kind: str
    reason: str
    decisions: tuple[FleetDecision, ...]

    @property
    def repositories(self) -> tuple[str, ...]:
        """The names of the repositories, sorted."""
        return tuple(sorted({one.repository for one in self.decisions}))


class Comparison(Value):
    """What was found among so many memories of so many repositories.

    `is_cut` says that the time ran out, and some of what is nearly the same may be missing.
    """

    shared: tuple[SharedDecision, ...]
    compared: int
    repositories: int
    is_cut: bool = False


def counts(memory: Memory) -> bool:
    """Tell whether a memory claims something that may be shared: no trace, state or digest does."""
    return memory.type in TYPES and not is_generated(memory)


def beside(context: Context, records: Sequence[Record], seconds: float) -> Comparison:
    """Return what memories of the project share with those of other repositories.

    Each is one question to the backend. After so many seconds no other is asked.

    Raises:
        MemtoolError: nobody is set to ask, or nobody answers.
    """
    whom = required(context)
    backend = ask.backend_of(context, whom)
    late = _clock(seconds)
    tree = index.open(context)
    name = name_of(context.repository)
    origins = context.origins(tree, records)
    own = [Located(name, origins[one.path].commit, one.path, one.memory) for one in records]
    found: dict[tuple[str, str], Located] = {}
    is_cut = False
    for row in own:
        if late():
            is_cut = True
            break
        asked = retrieve.read(f"{row.memory.title}\n{row.memory.statement}")
        wanted = rank.question_of(asked, rank.own_statistics(tree.parts, asked))
        wanted = wanted.replace(types=TYPES, allow=whom.allow, without=name)
        try:
            candidates = backend.candidates(wanted, FIND_S) if wanted.weights else []
        except FleetUnavailable as error:
            raise _unavailable(error) from None
        found.update(((one.repository, one.path), one) for one in _read(context, candidates))
    compared = among([*own, *found.values()], late, lambda one: one.repository == name)
    return compared.replace(is_cut=compared.is_cut or is_cut)


def everywhere(context: Context, seconds: float) -> Comparison:
    """Return what the decisions of all repositories on this machine share, as last synced.

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
    late = _clock(seconds)
    backend = GitBackend(home_of(context.env), context.now)
    try:
        candidates = backend.all(FleetQuery({}, types=("decision",), allow=whom.allow))
        return among([*_read(context, candidates)], late)
    except FleetUnavailable as error:
        raise _unavailable(error) from None


def _clock(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def _unavailable(error: FleetUnavailable) -> MemtoolError:
    return MemtoolError(
        f"no other repository answered: {error}",
        hint="memtool fleet status says which there are",
        code="no-fleet",
    )


def _read(context: Context, candidates: Iterable[FleetCandidate]) -> Iterator[Located]:
    """Yield the memories of candidates that are alive, with secrets masked; others have none."""
    checked = rank.CheckedBytes(ask.showing_of(context))
    for one in filter(checked.is_shown, candidates):
        yield Located(one.repository, one.commit, one.path, checked.masked(one))


def among(
    found: Sequence[Located],
    is_late: Callable[[], bool] = lambda: False,
    about: Callable[[Located], bool] = lambda _one: True,
) -> Comparison:
    """Return what memories of different repositories share, each group once.

    Only groups with a memory that it is `about` are returned. Where `is_late` says so, what was
    found until then is; the quickest tests come first.
    """
    known = {(one.repository, one.path): one for one in found if counts(one.memory)}
    rows = [known[at] for at in sorted(known)]
    memories = [row.memory for row in rows]
    stated = [contradictions.statements(memory) for memory in memories]
    groups = [*_replaced(rows), *_contrary(rows, contradictions.find(memories, stated))]
    same = _in_the_same_words(memories, stated)
    is_cut = _add_nearly_the_same(rows, same, is_late)
    groups += _same(rows, same)
    wanted = {(one.repository, one.id) for one in map(_shown, filter(about, rows))}
    kept = [
        group
        for group in groups
        if any((one.repository, one.id) in wanted for one in group.decisions)
    ]
    return Comparison(
        tuple(sorted(kept, key=_order)),
        len(rows),
        len({row.repository for row in rows}),
        is_cut,
    )


def _order(group: SharedDecision) -> tuple[object, ...]:
    """Sort key: kinds in the order of their table, those of most repositories first, then by id."""
    first = group.decisions[0]
    place = list(KINDS).index(group.kind)
    return place, -len(group.repositories), first.id, first.repository, group.reason


def _shown(row: Located, value: str = "") -> FleetDecision:
    memory = row.memory
    return FleetDecision(
        row.repository,
        memory.id,
        memory.title,
        memory.type,
        timestamps.date(memory.timestamp),
        row.commit,
        row.path,
        memory.supersedes,
        value,
    )


def _group(kind: str, reason: str, members: Iterable[FleetDecision]) -> SharedDecision:
    kept = sorted(members, key=lambda one: (one.date, one.repository, one.id))
    return SharedDecision(kind, reason, tuple(kept))


def _replaced(rows: Sequence[Located]) -> Iterator[SharedDecision]:
    """Yield what one repository replaced and another one still holds, by its id."""
    holding: dict[str, list[Located]] = {}
    for row in rows:
        holding.setdefault(row.memory.id, []).append(row)
    for row in rows:
        for old in row.memory.supersedes:
            others = [one for one in holding.get(old, ()) if one.repository != row.repository]
            if others:
                reason = f"{row.repository} replaced {old}"
                yield _group(REPLACED, reason, map(_shown, [row, *others]))


def _contrary(
    rows: Sequence[Located], found: Iterable[contradictions.Contradiction]
) -> list[SharedDecision]:
    """Return what contradicts each other across repositories, with all about one thing as one."""
    topics: dict[str, list[contradictions.Contradiction]] = {}
    for one in found:
        if rows[one.one].repository != rows[one.other].repository:
            topics.setdefault(one.topic, []).append(one)
    groups = []
    for clashes in topics.values():
        for members in _joined((one.one, one.other) for one in clashes):
            own = [one for one in clashes if one.one in members]
            values: dict[int, str] = {}
            for one in own:
                values.update(zip((one.one, one.other), one.values, strict=False))
            told = dict.fromkeys(values[at] for at in sorted(values))
            reason = " against ".join(told) if told else own[0].reason
            shown = [_shown(rows[at], values.get(at, "")) for at in members]
            groups.append(_group(CONTRARY, reason, shown))
    return groups


def _in_the_same_words(
    memories: Sequence[Memory], stated: Sequence[Sequence[Statement]]
) -> dict[Pair, str]:
    """Return what has the same words as another, or states the same, and how."""
    words: dict[object, list[int]] = {}
    claims: dict[object, list[int]] = {}
    for at, memory in enumerate(memories):
        words.setdefault(ids.fingerprint(memory), []).append(at)
        for said in stated[at]:
            if len(said.subject) >= LEAST_SUBJECT and _decides(said):
                key = said.sign, said.concept, said.subject, said.values
                claims.setdefault(key, []).append(at)
    found: dict[Pair, str] = {}
    for groups, how in ((claims, "they state the same"), (words, "the same words")):
        for places in groups.values():  # one memory may state a thing twice
            first, *others = dict.fromkeys(places)
            found.update(((first, other), how) for other in others)
    return found


def _decides(said: Statement) -> bool:
    return bool(said.concept) or not CHOOSING.isdisjoint(said.text.lower().split())


def _add_nearly_the_same(
    rows: Sequence[Located], same: dict[Pair, str], is_late: Callable[[], bool]
) -> bool:
    """Add what has nearly the same words; tell whether the time ran out before all was seen."""
    if is_late():
        return True
    texts = [near_duplicates.words_in(row.memory) for row in rows]
    contents: dict[int, frozenset[str]] = {}
    group = {at: number for number, members in enumerate(_joined(same)) for at in members}
    seen: set[Pair] = set()
    for at, other in _alike(texts):
        if other is None:
            if is_late():
                return True
            continue
        pair = (min(at, other), max(at, other))
        is_known = at in group and group[at] == group.get(other)
        if is_known or pair in seen or rows[at].repository == rows[other].repository:
            continue
        seen.add(pair)
        for place in pair:
            if place not in contents:
                contents[place] = near_duplicates.content_of(rows[place].memory)
        if near_duplicates.cosine(*(contents[place] for place in pair)) < LIKENESS:
            continue
        likeness = near_duplicates.likeness(*(rows[place].memory for place in pair))
        if likeness >= LIKENESS:
            same[pair] = f"nearly the same words ({likeness:.2f})"
    return False


def _alike(texts: Sequence[frozenset[bytes]]) -> Iterator[tuple[int, int | None]]:
    """Yield two texts, given as words, that may be nearly the same; now and then nothing.

    They share at least half of the rare words of one of them. How many texts hold these is bounded,
    so that the time grows with the number of texts, and not with that of their pairs.
    """
    holding: dict[bytes, list[int]] = {}
    for at, words in enumerate(texts):
        for word in words:
            holding.setdefault(word, []).append(at)
    for at, words in enumerate(texts):
        if at % _STEP == 0:
            yield at, None
        rare: list[bytes] = []
        looked_at = 0
        for number, word in sorted((len(holding[word]), word) for word in words):
            is_enough = len(rare) >= FEW_WORDS and looked_at + number > MOST_HOLDING
            if is_enough or len(rare) >= RARE_WORDS or number > MOST_OF_ONE:
                break
            if number > 1:
                rare.append(word)
                looked_at += number
        shared = Counter(chain.from_iterable(holding[word] for word in rare))
        shared.pop(at, None)
        least = max(1, len(rare) // 2)
        near = sorted((-count, other) for other, count in shared.items() if count >= least)
        for _count, other in near[:VERIFIED]:
            if near_duplicates.shared_words(words, texts[other]) >= LEAST_SHARED:
                yield at, other


def _same(rows: Sequence[Located], pairs: dict[Pair, str]) -> Iterator[SharedDecision]:
    """Yield the groups of what says the same, of more than one repository each."""
    for members in _joined(pairs):
        if len({rows[at].repository for at in members}) > 1:
            how = dict.fromkeys(told for pair, told in sorted(pairs.items()) if pair[0] in members)
            reason = next(iter(how)) if len(how) == 1 else "the same, or nearly the same words"
            yield _group(SAME, reason, (_shown(rows[at]) for at in members))


def _joined(pairs: Iterable[Pair]) -> list[list[int]]:
    """Return the sets of places that pairs connect, each sorted, in the order of their first."""
    leader: dict[int, int] = {}

    def first(at: int) -> int:
        while leader.setdefault(at, at) != at:
            leader[at] = leader[leader[at]]
            at = leader[at]
        return at

    for one, other in pairs:
        low, high = sorted((first(one), first(other)))
        leader[high] = low
    groups: dict[int, list[int]] = {}
    for at in sorted(leader):
        groups.setdefault(first(at), []).append(at)
    return [groups[at] for at in sorted(groups)]
