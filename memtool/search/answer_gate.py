"""The answer gate: does a memory hold enough of what a text says to be an answer to it?

A ranking always has a best; most prompts have no answer in the memories at all. So what is found
is weighed once more, against the text as a whole. Everything is counted in rare words: a word that
stands nowhere in the tree counts 1, a commoner one less, by its inverse document frequency, and an
everyday word less again (see `everyday_worth`). A memory then holds

    its words of the text  +  its adjacent pairs of them  +  those in its title and tags

and an answer holds at least a share of all words of the text, or as much as so many rare words,
whichever is less; words that no memory holds count, too: a text about something else is not
answered by its small talk. A word that a memory lacks counts half where another is like it, by its
4-grams: other endings, compounds, parts of a name. A text of four or more words, or of everyday
ones alone, is answered by one rare word's worth at least: a share of nearly nothing is in every
store. One of the best five by relevance must hold that much, else there is no answer; where
one does, others that hold 0.7 of it stand beside it.

Measured by `bench/silence.py` on questions about three public sets, in stores of all their
documents and of 60 of them: `hit`, those with an answer among the five that are shown; `talk` and
`coding`, prompts about no project that get something. In brackets is a share of 0.5, or three rare
words, without the floor. The numbers were chosen on the tuning half.

    half      store           hit            talk           coding         shown
    tuning    700 to 1,500    .669 (.655)    .056 (.633)    .167 (.844)    3.2 (3.7)
    held out  700 to 1,500    .654 (.652)    .067 (.767)    .333 (.844)    3.2 (3.7)
    tuning    60              .752 (.690)    .017 (.383)    .133 (.628)    2.0 (2.1)
    held out  60              .751 (.682)    .017 (.572)    .161 (.589)    2.0 (2.1)

A floor of 0.8 lets twice as much small talk pass, one of 1.2 costs .018 of the hits. A threshold of
0.5 instead of 0.6 shows 3.7 for .01 of the hits, one of 0.7 2.6 and costs .02: 0.6 is the highest
at which no half answers fewer questions than before.

Settings choose the strictness and the order of an answer by name, from the tables `PRESETS` and
`RERANKERS`. A repository cannot name code: a reranker of one's own is a function that is given to
`Scope` in Python.
"""

from __future__ import annotations

import math

from memtool import tables
from memtool.index import scoring
from memtool.index.analyzer import is_stop, shared_stops
from memtool.index.scoring import LEAST_COUNT, telling
from memtool.memory import lifecycle
from memtool.memory.trust import TRUST_LEVELS
from memtool.search import expansion, ranking, retrieve
from memtool.search.features import why_hidden
from memtool.search.retrieve import (
    MOST_MISSED,
    Found,
    Hit,
    Match,
    Missed,
    Retriever,
    by_score,
)
from memtool.store.config import BY_CATEGORY
from memtool.store.deadline import Deadline
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from memtool.index.scoring import Question
    from memtool.search.features import Facts
    from memtool.search.retrieve import Refusal, Rerank, Scope
    from memtool.store.config import Config
    from memtool.store.snapshot import Record


LIMIT_S = 0.2
"""Seconds after which an answer is given as far as it is known, where search.degrade is on."""

MOST_CANDIDATES = 500
"""Memories that are weighed for one question ..."""

NARROW_CANDIDATES = 10
"""... where answers were slow and the settings want less then ..."""

MOST_SHOWN = 15
"""... and the best of them that may be shown."""


WORTH = 0.3
"""What an everyday word is worth beside 1 for any other."""


_everyday: set[str] = set()


def everyday_worth(term: str) -> float:
    """Return how much a term tells in any text: 1, or less for an everyday word or a number."""
    if not _everyday:
        _everyday.update(tables.words("search/everyday_words"))
    return WORTH if term in _everyday or term.isdigit() else 1.0


MOST_ALONE = 300
"""Up to so many memories the trusted ones are weighed by the words of their own kind. In more, some
files change little of how rare a word is, and looking at all would cost the time of an answer."""

LEADERS = 5
"""One of so many of the best must be an answer."""

FOLLOWING = 0.7
"""Share of that which is enough for others, where one is."""

MANY_WORDS = 4
"""From so many words on, and where all are everyday ones, an answer must hold the floor."""


ALIKE = 0.5
"""What a word of the text adds of its worth where a memory holds another that is like it."""

LEAST_ALIKE = 0.7
"""Share of a word's 4-grams that must stand in one other word: endings, compounds, names."""

LEAST_GRAMS = 2


def is_alike(term: bytes, text: bytes) -> bool:
    """Tell whether a text as terms holds a word that is like a term, such as `datenbanken`."""
    word, size = term.decode(), scoring.GRAM_LENGTH
    grams = [word[at : at + size] for at in range(len(word) - size + 1)]
    if len(grams) < LEAST_GRAMS or not word.isalpha():
        return False
    least = math.ceil(LEAST_ALIKE * len(grams))
    for gram in grams[: len(grams) - least + 1]:  # what lacks all of these lacks too many
        raw = gram.encode()
        at = text.find(raw)
        while at >= 0:
            end = text.find(b" ", at)
            other = text[text.rfind(b" ", 0, at) + 1 : end].decode()
            if sum(part in other for part in grams) >= least:
                return True
            at = text.find(raw, end)
    return False


class Strictness(Value):
    """How much an answer must hold: a `share` of the text, or so many rare words, if less.

    `floor` is the least, in rare words, for a text of `MANY_WORDS` or of everyday words alone: what
    is near nothing of its small worth is no answer.
    """

    share: float
    most: float
    floor: float

    def least(self, whole: float, *, is_floored: bool) -> float:
        """Return what an answer must hold of a text that is worth so many rare words."""
        least = min(self.share * whole, self.most)
        return max(least, self.floor) if is_floored else least


class Gatekeeper:
    """What one text asks of an answer.

    `said` are the words of the text, `asked` the same with what aliases and near words add, which
    count with their weights. `df` tells in how many of `count` memories a term stands. A category
    may have a strictness of its own in `special`.
    """

    def __init__(
        self,
        said: Question,
        asked: Question,
        count: int,
        df: Callable[[str], int],
        strictness: Strictness,
        special: Mapping[str, Strictness] = {},
    ) -> None:
        count = max(count, LEAST_COUNT)
        rare = scoring.idf(count, 0)
        stops = shared_stops(said.weights)
        own = {
            term: everyday_worth(term)
            for term in asked.weights
            if not is_stop(term) and term not in stops
        }
        self._worth = {
            term: worth * scoring.idf(count, df(term)) / rare for term, worth in own.items()
        }
        self._held = [
            (term.encode(), f" {term} ".encode(), share * worth)
            for term, worth in sorted(self._worth.items())
            if (share := min(1.0, asked.weights[term]))
        ]
        """Each term, as it stands in a text, and what it adds."""
        self._pairs = [
            (first.encode(), second.encode(), self._worth[first] + self._worth[second])
            for first, second in sorted(asked.pairs)
            if first in self._worth and second in self._worth
        ]
        whole = sum(self._worth.get(term, 0.0) for term in said.weights)
        is_floored = len(said.weights) >= MANY_WORDS or all(
            own.get(term, 0.0) < 1.0 for term in said.weights
        )
        self._whole = whole
        self._least = strictness.least(whole, is_floored=is_floored)
        """What an answer must hold, in rare words, and what in some categories."""
        self._special = {
            category: one.least(whole, is_floored=is_floored) for category, one in special.items()
        }

    def share_of(self, match: Match, text: bytes) -> float:
        """Return how much of what an answer of its category must hold a match holds."""
        return self.share(text, match.record.memory.category if self._special else "")

    def share(self, text: bytes, category: str = "") -> float:
        """Return how much of what an answer must hold a text as terms holds; 1 is enough."""
        if self._whole <= 0.0:
            return 0.0
        least = self._special.get(category, self._least)
        head = scoring.head_of(text)
        found = 0.0
        there = set()
        absent: list[tuple[bytes, float]] = []
        for term, spaced, worth in self._held:
            if spaced not in text:
                absent.append((term, worth))
            else:
                there.add(term)
                found += worth * (2.0 if term in head else 1.0)
        found += sum(
            worth
            for first, second, worth in self._pairs
            if first in there and second in there and b" %b %b " % (first, second) in text
        )
        if found < least and found + ALIKE * sum(worth for _, worth in absent) >= FOLLOWING * least:
            found += ALIKE * sum(worth for term, worth in absent if is_alike(term, text))
        return found / least if least else 1.0


def objection(share: float) -> str:
    """Return why what holds such a share of what an answer must hold is no answer."""
    return f"it holds {share:.2f} of what an answer must hold"


def which_pass(shares: Sequence[float]) -> list[bool]:
    """Tell which of the candidates of one question pass, from their shares, the best first."""
    is_answered = any(share >= 1.0 for share in shares[:LEADERS])
    return [is_answered and share >= FOLLOWING for share in shares]


class Preset(Value):
    """`strictness` is what an answer must hold, `threshold` a share of the best score."""

    doc: str
    strictness: Strictness
    threshold: float


PRESETS: dict[str, Preset] = {
    "balanced": Preset("what is probably an answer", Strictness(0.4, 2.4, 1.0), 0.6),
    "precision": Preset("what is almost certainly one, more often nothing",
                        Strictness(0.6, 3.5, 1.0), 0.8),
}  # fmt: skip


def preset(config: Config, category: str = "") -> Preset:
    """Return the preset that the settings name, with their own numbers in place of its.

    A category has its own number where the settings give one, else that of all others.
    """
    found = PRESETS[config.text("search.preset")]

    def number(name: str, otherwise: float) -> float:
        is_given = not config.given.keys().isdisjoint((name, f"{name}.{category}"))
        return config.number(name, category) if is_given else otherwise

    strictness = found.strictness
    return Preset(
        found.doc,
        Strictness(
            number("inject.share", strictness.share),
            number("inject.most", strictness.most),
            number("inject.floor", strictness.floor),
        ),
        number("inject.threshold", found.threshold),
    )


def threshold(config: Config) -> Callable[[str], float]:
    """Return what gives the threshold of a category, a share of the best score."""
    known: dict[str, float] = {}

    def of_category(category: str) -> float:
        if category not in known:
            known[category] = preset(config, category).threshold
        return known[category]

    return of_category


def limits(config: Config) -> tuple[Strictness, dict[str, Strictness]]:
    """Return how much an answer must hold, and how much in the categories that differ."""
    special = {
        key.rpartition(".")[2] for key in config.given if key.rpartition(".")[0] in BY_CATEGORY
    }
    return preset(config).strictness, {
        category: preset(config, category).strictness for category in sorted(special)
    }


def _ordered(most: Callable[[Hit], float]) -> Rerank:
    """Return what orders hits by a number, the highest first, and then by id and path."""
    return lambda hits: sorted(hits, key=lambda hit: (-most(hit), hit.record.id, hit.record.path))


RERANKERS: dict[str, Rerank] = {
    "score": lambda hits: hits,
    "relevance": _ordered(lambda hit: hit.factors["relevance"]),
    "newest": _ordered(lambda hit: lifecycle.confirmed_at(hit.record.memory)),
}
"""Orders of what is shown: by relevance and all factors, by relevance alone, or by the last
confirmation. What is found does not depend on them."""


def missed_in_prose(
    reader: Retriever,
    asked: Question,
    keeper: Gatekeeper,
    candidates: Sequence[Match],
    refuses: Refusal | None,
) -> tuple[Missed, ...]:
    """Return what would have answered but is hidden, then what holds too little, best first.

    What may not be shown for a reason of its own is hidden, too.
    """
    facts = reader.facts

    def why(record: Record) -> str:
        return why_hidden(record, facts) or (refuses(record) if refuses is not None else "")

    best = reader.best(asked, MOST_MISSED, lambda record: bool(why(record)))
    answering = [
        match for match in best if keeper.share_of(match, facts.text(match.record)) >= FOLLOWING
    ]
    shares = [keeper.share_of(match, reader.text(match)) for match in candidates]
    passing = which_pass(shares)
    objections = [
        Missed(match.record, objection(share))
        for match, share, passes in zip(candidates, shares, passing, strict=True)
        if not passes
    ]
    away = [Missed(match.record, why(match.record)) for match in answering]
    return (*away, *objections[:MOST_MISSED])


WINNERS = 5
"""How many of the best bring along what they are related to."""

RELATIONS = ("related_to", "resolves", "parent", "derived_from")


def search_prose(
    scope: Scope,
    text: str,
    files: tuple[str, ...],
    limit: int,
    *,
    is_gated: bool = True,
    explain: bool = False,
) -> Found:
    """Find what answers a prompt or any other text, in which nothing is an operator.

    `files` are the paths that are open: what governs one of them gains a little. Only living heads
    are found, and only those that hold enough of what the text is about; there may be none. Where
    the text asks for nothing, what governs the files is found. `is_gated=False` leaves the
    gatekeeper out, which shows how well the ranking is.
    """
    deadline = Deadline(LIMIT_S, scope.clock) if scope.clock else Deadline(None)
    facts = scope.facts()
    said = scoring.question(text, scope.language)
    asked = said.replace(weights=expansion.expand(said.weights, scope.aliases, scope.language))
    if not telling(asked):
        return _governing(scope, facts, files, limit)
    reader = Retriever(facts)
    asked = retrieve.readable(asked, reader)
    notes = list(filter(None, [reader.index.note]))
    strictness = limits(scope.config)
    keeper = Gatekeeper(said, asked, reader.index.count, reader.index.df, *strictness)
    most = min(max(limit, scoring.CANDIDATES), MOST_CANDIDATES)
    most = NARROW_CANDIDATES if scope.is_narrow else most
    notes += [retrieve.SLOW] if scope.is_narrow else []
    is_cut = False
    ranked = scoring.led(asked, said, text, scope.language)
    candidates = _candidates(scope, reader, ranked, most)
    highest = _discount(scope, reader, ranked, candidates)
    candidates = retrieve.by_relevance(candidates)
    answers = candidates
    if is_gated:
        shares = _shares(candidates, keeper, reader, deadline)
        is_cut = len(shares) < len(candidates)
        if is_cut:
            notes.append(f"stopped after {LIMIT_S * 1000:.0f} ms, at {len(shares)} of "
                         f"{len(candidates)} candidates: these are the best so far")  # fmt: skip
        passing = _passing(scope, reader, candidates, shares, lambda texts: Gatekeeper(
            said, asked, len(texts), lambda term: _count_holding(texts, term), *strictness,
        ))  # fmt: skip
        answers = [match for match, passes in zip(candidates, passing, strict=False) if passes]
    at = retrieve.situation(scope, text, files, answers)
    best = 0.0
    if candidates:
        best = candidates[0].raw / reader.held(said, asked, candidates[0])
    weighed = (retrieve.hit_of(match, best, facts, at) for match in answers)
    hits = sorted(weighed, key=by_score)
    total = len(answers)
    is_late = bool(hits) and deadline.has_passed()
    if is_late and not is_cut:
        notes.append(f"stopped after {LIMIT_S * 1000:.0f} ms, before what the best are related to")
    if hits and not (is_late or scope.is_narrow):
        related = _related(hits[:WINNERS], candidates, reader, ranked, keeper, scope.refuses,
                           lambda matches: _discount(scope, reader, ranked, matches, highest),
                           lambda match: retrieve.hit_of(match, best, facts, at))  # fmt: skip
        total += len(related)
        hits += related
    hits = _reranked(scope, sorted(hits, key=by_score))
    missed: tuple[Missed, ...] = ()
    if explain:
        missed = missed_in_prose(reader, asked, keeper, candidates, scope.refuses)
    expired = _count_expired(reader, asked, keeper, deadline)
    return Found(
        _first(scope, hits, limit), total, tuple(notes), missed, expired,
        is_degraded=is_cut or is_late or scope.is_narrow,
    )  # fmt: skip


def _is_best_trusted(scope: Scope, record: Record) -> bool:
    """Tell whether a memory has as much trust as there is in this repository."""
    assert scope.trust is not None
    return TRUST_LEVELS.index(scope.trust(record)) >= TRUST_LEVELS.index(scope.best_trust)


def _candidates(scope: Scope, reader: Retriever, asked: Question, most: int) -> list[Match]:
    """Return the best matches that may be shown, the best first.

    Where less trusted ones fill all places, the best of the trusted are weighed beside them:
    however many files somebody puts into a worktree, they take no place of what git vouches for.
    """
    facts, refuses = reader.facts, scope.refuses
    found = reader.best(asked, most, facts.is_current, refuses)
    if refuses is None or scope.trust is None or len(found) < most:
        return found
    if all(_is_best_trusted(scope, match.record) for match in found):
        return found

    def is_less(record: Record) -> str:
        return refuses(record) or ("" if _is_best_trusted(scope, record) else "less trusted")

    trusted = reader.best(asked, most, facts.is_current, is_less)
    paths = {match.record.path for match in (*found, *trusted)}
    if len(paths) == len(found):
        return found
    # Scores are comparable only within one look.
    return reader.best(asked, len(paths), lambda record: record.path in paths)


def _discount(
    scope: Scope, reader: Retriever, asked: Question, matches: Sequence[Match], highest: int = 0
) -> int:
    """Let what the less trusted say of themselves count for nothing beside the more trusted.

    Tags, aliases and trigger phrases stand in no block, and make of any text the best match. The
    highest level of trust is returned, `highest` or that of a match.
    """
    if scope.refuses is None or scope.trust is None:
        return highest
    best = TRUST_LEVELS.index(scope.best_trust)
    levels = [min(best, TRUST_LEVELS.index(scope.trust(match.record))) for match in matches]
    highest = max([highest, *levels])
    for match, level in zip(matches, levels, strict=True):
        if level < highest:
            reader.discount(match, asked)
    return highest


def _passing(
    scope: Scope,
    reader: Retriever,
    candidates: Sequence[Match],
    shares: Sequence[float],
    keeper_of: Callable[[Sequence[bytes]], Gatekeeper],
) -> list[bool]:
    """Tell which candidates pass: among all, or the trusted ones among themselves.

    In a small tree the trusted are weighed as if there were nothing else: a few files more would
    make the words of the question common there, and no answer to it would hold enough.
    `keeper_of` gives the keeper of a tree of some texts.
    """
    passing = which_pass(shares)
    if scope.refuses is None or scope.trust is None or all(passing):
        return passing
    own = [n for n in range(len(shares)) if _is_best_trusted(scope, candidates[n].record)]
    weighed = [shares[number] for number in own]
    if own and reader.index.count <= MOST_ALONE:
        records = [one for one in reader.facts.current_records() if _is_best_trusted(scope, one)]
        if len(records) < reader.index.count:
            keeper = keeper_of(list(map(reader.facts.text, records)))
            some = [candidates[number] for number in own]
            weighed = [keeper.share_of(match, reader.text(match)) for match in some]
    alone = which_pass(weighed)
    for number, passes in zip(own, alone, strict=True):
        passing[number] = passing[number] or passes
    return passing


def _count_holding(texts: Sequence[bytes], term: str) -> int:
    wanted = f" {term} ".encode()
    return sum(wanted in text for text in texts)


def _first(scope: Scope, hits: Sequence[Hit], limit: int) -> tuple[Hit, ...]:
    """Return the first hits; where they may be shown to an agent, also the first trusted ones."""
    first, rest = hits[: max(0, limit)], hits[max(0, limit) :]
    if not rest or scope.refuses is None or scope.trust is None:
        return tuple(first)
    held = sum(_is_best_trusted(scope, hit.record) for hit in first)
    trusted = [hit for hit in rest if _is_best_trusted(scope, hit.record)]
    return (*first, *trusted[: max(0, limit - held)])


def _count_expired(
    reader: Retriever, asked: Question, keeper: Gatekeeper, deadline: Deadline
) -> int:
    """Return how many memories answer a text by themselves, and are left out for their age alone.

    Of very many only some are looked at.
    """
    numbers = reader.facts.expired()
    if not numbers or deadline.has_passed():
        return 0
    numbers &= reader.index.holding_any(telling(asked))
    looked_at = sorted(numbers, key=reader.index.path)[:MOST_CANDIDATES]
    return sum(keeper.share(reader.index.text(number)) >= 1.0 for number in looked_at)


def _shares(
    candidates: Sequence[Match], keeper: Gatekeeper, reader: Retriever, deadline: Deadline
) -> list[float]:
    """Return how much candidates hold of what an answer must hold, as far as the time allows."""
    shares: list[float] = []
    for match in candidates:
        if len(shares) >= LEADERS and deadline.has_passed():
            break
        shares.append(keeper.share_of(match, reader.text(match)))
    return shares


def _governing(scope: Scope, facts: Facts, files: tuple[str, ...], limit: int) -> Found:
    """Find what governs files, among the memories that name the most words of their paths."""
    asked = scoring.question("\n".join(files), scope.language)
    if not telling(asked):
        return Found((), 0)
    reader = Retriever(facts)
    known = _candidates(scope, reader, reader.narrowed(asked), MOST_CANDIDATES)
    near = [match for match in known if ranking.is_near(match.record, files)]
    for match in near:
        match.raw = 1.0
        match.through = ""
    at = retrieve.situation(scope, "", files, near)
    hits = sorted((retrieve.hit_of(match, 1.0, facts, at) for match in near), key=by_score)
    notes = tuple(filter(None, [reader.index.note]))
    return Found(_first(scope, hits, limit), len(hits), notes)


def _related(
    winners: Sequence[Hit],
    candidates: Sequence[Match],
    reader: Retriever,
    asked: Question,
    keeper: Gatekeeper,
    refuses: Refusal | None,
    discount: Callable[[Sequence[Match]], object],
    hit: Callable[[Match], Hit],
) -> list[Hit]:
    """Return what the best hits are related to, and what answers by itself, too."""
    facts = reader.facts
    owners: dict[str, str] = {}
    for winner in winners:
        for relation in RELATIONS:
            for id_ in winner.record.memory.items(relation):
                owners.setdefault(id_, winner.record.id)
    if not owners:
        return []
    for match in candidates:
        owners.pop(match.record.id, None)
    records = [facts.tree.by_id.get(id_) for id_ in sorted(owners)]
    paths = {record.path for record in records if record is not None and facts.is_current(record)}
    if not paths:
        return []
    found = reader.best(asked, len(paths), lambda record: record.path in paths, refuses)
    discount(found)
    return [
        hit(match).replace(related=owners[match.record.id])
        for match in found
        if keeper.share_of(match, reader.text(match)) >= FOLLOWING
    ]


def _reranked(scope: Scope, hits: list[Hit]) -> list[Hit]:
    """Return the hits with those that may be shown in the order of the reranker."""
    rerank = scope.rerank or RERANKERS[scope.config.text("search.rerank")]
    most = MOST_SHOWN
    return [*rerank(hits[:most]), *hits[most:]]
