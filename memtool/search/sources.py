"""Sources: where a search looks for answers, and the one merge that puts them in order.

A source is a row of a table that the caller gives, in the order in which its answers stand. The
memories of the project are one (`search/memories.py`); the others are features, and register.
"""

from __future__ import annotations

import time

from memtool.search.scope import DIGEST, MEMORY, NONE, SESSION, MemoryRow
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memtool.index.reader import IndexReader
    from memtool.search.explanation import GateVerdict
    from memtool.search.query import Query
    from memtool.store.context import Context

NOTHING = "no memory matches"
ALL_OTHERS = "repo:*"
"""The filter that asks all other repositories, and this one not."""
SCORE_DIGITS = 6
"""Digits of a score behind the point."""


class Result(MemoryRow):
    """A memory that was found. `score` is the product of `factors`.

    `cosine` tells how near its meaning is to the question, None where only words were searched.
    """

    json_fields = (
        "id title type category status confidence score path timestamp commit trust due unproven "
        "snippet factors cosine drift proposal conflict repository"
    )
    json_optional = "cosine drift proposal conflict repository"

    score: float
    snippet: str
    factors: dict[str, float]
    through: str = ""
    cosine: float | None = None
    is_digest: bool = False
    drift: str = ""
    """What is no longer there of the files that it names, and since when; empty where all is."""
    proposal: str = ""
    """Which unconfirmed memory proposes to replace which, where it is one of them."""
    conflict: str = ""
    """Which results contradict each other, where it is one of them."""
    repository: str = ""
    """The other repository that says it, as `org/name`; empty for a memory of this one."""


class Passage(Value):
    """A finding or message that holds what was asked. `kind` is `finding` or who spoke.

    `source` cites it as a memory would: `session:ID#N`. `score` is the share of the words of the
    question that it holds.
    """

    source: str
    kind: str
    moment: str
    score: float
    snippet: str


class SearchRequest(Value):
    """What was asked. `options` are the flags that are for one source or stage alone.

    `slips` are notes on what was meant as an operator and cannot be one.
    """

    context: Context
    query: Query
    limit: int
    offset: int = 0
    sort: str = "score"
    at: str | None = None
    as_of: str | None = None
    exact: bool = False
    explain: bool = False
    why_not: str = ""
    options: frozenset[str] = frozenset()
    slips: tuple[str, ...] = ()

    @property
    def most(self) -> int:
        """The results that are looked for, with those that are passed over."""
        return self.offset + self.limit

    @property
    def is_plain(self) -> bool:
        """Whether it asks for the first results of this moment."""
        return (self.at, self.as_of, self.offset) == (None, None, 0)


class SourceAnswer(Value):
    """What one source says, the best first; `total` counts what it has beyond the limit, too.

    `depth` is the level of it, `none` where there is nothing. `suffices` tells whether a deeper
    source need not be asked. `passages` are what nobody has reviewed, None where none are asked.
    `others` counts results of other repositories, and `own_index` is that of this one's memories.
    """

    depth: str = NONE
    results: tuple[Result, ...] = ()
    total: int = 0
    others: int = 0
    passages: tuple[Passage, ...] | None = None
    freshness: str = ""
    expired: int = 0
    is_degraded: bool = False
    held_back: tuple[GateVerdict, ...] | None = None
    why_not: GateVerdict | None = None
    own_index: Callable[[], IndexReader] | None = None
    suffices: Callable[[], bool] = lambda: True


class Asked(Value):
    """A source that has read a request: `answer` is given what those before it said.

    It may have no answer. `is_alone` tells that no other source is meant.
    """

    answer: Callable[[Sequence[SourceAnswer]], SourceAnswer | None]
    is_alone: bool = False


class Source(Value):
    """A row: whether a request asks a source, and how it reads it.

    Nothing of a source is loaded where it is not asked. `read` raises MemtoolError for what the
    source cannot be asked.
    """

    name: str
    is_asked: Callable[[SearchRequest], bool]
    read: Callable[[SearchRequest], Asked]


class Searched(Value):
    """Results in order; `total` counts all that match, before the limit.

    `others` of them are of other repositories, of which at most sixty count: those whose words
    answer best. `is_elsewhere` tells that only these were asked.

    `freshness` is `exact` where every file was checked for a change, else `dir-exact`. `depth` is
    the level that answered: `digest` where one suffices, which then comes first, or all results are
    digests; `session` where private sessions say something to it; `none` where nothing was found;
    else `memory`. `sessions` is None unless they were asked.

    `expired` counts what matches but for its age; `degraded` tells that less was looked at, since
    this machine is slow (search.degrade). `held_back` is what each gate held back, where that is
    explained, and `why_not` what became of the one memory that was asked about.
    """

    json_fields = (
        "query total elapsed_ms freshness depth results sessions expired degraded held_back "
        "why_not others"
    )
    json_optional = "sessions degraded held_back why_not others"

    query: str
    total: int
    elapsed_ms: float
    freshness: str
    depth: str
    results: tuple[Result, ...]
    explain: bool = False
    sessions: tuple[Passage, ...] | None = None
    expired: int = 0
    degraded: bool = False
    held_back: tuple[GateVerdict, ...] | None = None
    why_not: GateVerdict | None = None
    offset: int = 0
    format: str = "text"
    others: int = 0
    is_elsewhere: bool = False


def ask(request: SearchRequest, sources: Iterable[Source]) -> Searched:
    """Ask all sources that a request is for, in order, and return their answers as one."""
    began = time.perf_counter()
    asked = [source.read(request) for source in sources if source.is_asked(request)]
    alone = [one for one in asked if one.is_alone]
    request.context.notes.extend(request.slips)
    answers: list[SourceAnswer] = []
    for one in alone or asked:
        answer = one.answer(answers)
        answers += [] if answer is None else [answer]
    merged = _merged(request, answers)
    elapsed_ms = round((time.perf_counter() - began) * 1000, 1)
    return merged.replace(elapsed_ms=elapsed_ms, is_elsewhere=bool(alone))


def _merged(request: SearchRequest, answers: Sequence[SourceAnswer]) -> Searched:
    """Return the answers of several sources as one, each behind those before it."""
    notes = request.context.notes
    results = tuple(result for one in answers for result in one.results)
    if results and NOTHING in notes:
        notes.remove(NOTHING)
    passages = [one.passages for one in answers if one.passages is not None]
    return Searched(
        query=request.query.text,
        total=sum(one.total for one in answers),
        elapsed_ms=0.0,
        freshness=next((one.freshness for one in answers if one.freshness), ""),
        depth=_depth([one.depth for one in answers]),
        results=results,
        explain=request.explain,
        sessions=sum(passages, ()) if passages else None,
        expired=sum(one.expired for one in answers),
        degraded=any(one.is_degraded for one in answers),
        held_back=next((one.held_back for one in answers if one.held_back is not None), None),
        why_not=next((one.why_not for one in answers if one.why_not is not None), None),
        offset=request.offset,
        others=sum(one.others for one in answers),
    )


def _depth(depths: Sequence[str]) -> str:
    """Return the level that answered: what nobody has reviewed is told first of all."""
    if SESSION in depths:
        return SESSION
    return next((depth for depth in (DIGEST, MEMORY) if depth in depths), NONE)
