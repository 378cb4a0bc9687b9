"""Sources: the places that a search asks for answers, and the merge of their answers.

A source is a row of a table from the caller, in the order in which answers are shown. The memories
of the project are one source (`search/memories.py`); the others are features, and register.
"""

from __future__ import annotations

import time

from memtool.search.retrieve import OFF
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
"""The filter that searches all other repositories, but not this one."""
SCORE_DIGITS = 6


class Result(MemoryRow):
    """A memory that was found. `score` is the product of `factors`.

    `cosine` is the similarity of meaning to the question, None if only words were searched.
    """

    json_fields = (
        "id title type category status confidence score path timestamp commit trust due unproven "
        "unsettled snippet factors cosine drift renamed proposal conflict notice repository"
    )
    json_optional = "cosine drift renamed proposal conflict notice repository"

    score: float
    snippet: str
    factors: dict[str, float]
    through: str = ""
    cosine: float | None = None
    is_digest: bool = False
    drift: str = ""
    """Which of its files are gone, and since when; empty if none."""
    renamed: str = ""
    """Which of its files have been renamed; empty if none."""
    proposal: str = ""
    """Which unconfirmed memory proposes to replace which, if it is one of them."""
    conflict: str = ""
    """Which results contradict each other, if it is one of them."""
    rivals: tuple[str, ...] = ()
    """The results, and the other sides of its fork, that contradict it."""
    notice: str = ""
    """Its change on the trusted branch that this branch lacks, or that it exists only there."""
    repository: str = ""
    """The other repository that has it, as `org/name`; empty for a memory of this one."""


class Passage(Value):
    """A finding or message that matches. `kind` is `finding` or the speaker.

    `source` cites it as a memory would: `session:ID#N`. `score` is the share of the question's
    words that it contains.
    """

    source: str
    kind: str
    moment: str
    score: float
    snippet: str


class SearchRequest(Value):
    """A search request. `options` are the flags for a single source or stage.

    `slips` are notes on text meant as an operator that cannot be one.
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
    def max_results(self) -> int:
        """Number of results to find, including those that the offset skips."""
        return self.offset + self.limit

    @property
    def is_plain(self) -> bool:
        """Whether it asks for the first results as of now."""
        return (self.at, self.as_of, self.offset) == (None, None, 0)


class Meaning(Value):
    """How much meaning counted in a search.

    `coverage` is the share of the question's worth that the best match by words contains. `weight`
    is what the nearest memory gains because of it, if the best by words has 1.
    """

    json_fields = "coverage weight"

    coverage: float
    weight: float


class SourceAnswer(Value):
    """The answer of one source, best first; `total` includes results beyond the limit.

    `depth` is its level, `none` without results. `suffices` returns whether deeper sources can be
    skipped. `passages` have not been reviewed; None if not requested. `elsewhere` counts results of
    other repositories, and `own_index` returns the index of this repository.
    """

    depth: str = NONE
    results: tuple[Result, ...] = ()
    total: int = 0
    elsewhere: int = 0
    passages: tuple[Passage, ...] | None = None
    freshness: str = ""
    expired: int = 0
    is_degraded: bool = False
    semantic: str = OFF
    meaning: Meaning | None = None
    held_back: tuple[GateVerdict, ...] | None = None
    why_not: GateVerdict | None = None
    own_index: Callable[[], IndexReader] | None = None
    suffices: Callable[[], bool] = lambda: True


class RoutedSource(Value):
    """A source that has read a request: `answer` gets the answers of the sources before it.

    It may return None. `is_alone` means that no other source is to be asked.
    """

    answer: Callable[[Sequence[SourceAnswer]], SourceAnswer | None]
    is_alone: bool = False


class Source(Value):
    """A row: whether a request concerns a source, and how the source reads it.

    The source is not loaded otherwise. `read` raises MemtoolError for a request that the source
    cannot answer.
    """

    name: str
    is_asked: Callable[[SearchRequest], bool]
    read: Callable[[SearchRequest], RoutedSource]


class SearchAnswer(Value):
    """Results in order; `total` counts all matches, before the limit.

    `elsewhere` of them come from other repositories, of which at most the sixty best by words are
    searched. `is_elsewhere` means that only other repositories were searched.

    `freshness` is `exact` if every file was checked for changes, else `dir-exact`. `depth` is the
    level that answered: `digest` if one suffices (it comes first) or all results are digests,
    `session` if private sessions match, `none` if nothing was found, else `memory`. `sessions` is
    None unless they were searched.

    `semantic` tells whether the meanings of some, all or no memories were compared with the
    question: `partial`, `full` or `off`. `meaning` is how much that counted, if explained.

    `expired` counts matches left out for their age alone; `degraded` means that less was examined
    because this machine is slow (search.degrade). `held_back` lists what each gate held back, if
    explained, and `why_not` is the verdict on the one memory asked about.
    """

    json_names = (("elsewhere", "others"),)
    json_fields = (
        "query total elapsed_ms freshness depth semantic results sessions expired degraded meaning "
        "held_back why_not elsewhere"
    )
    json_optional = "sessions degraded meaning held_back why_not elsewhere"

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
    semantic: str = OFF
    meaning: Meaning | None = None
    held_back: tuple[GateVerdict, ...] | None = None
    why_not: GateVerdict | None = None
    offset: int = 0
    format: str = "text"
    elsewhere: int = 0
    is_elsewhere: bool = False


def ask_sources(request: SearchRequest, sources: Iterable[Source]) -> SearchAnswer:
    """Ask all sources that a request concerns, in order, and merge their answers."""
    began = time.perf_counter()
    answered = [source.read(request) for source in sources if source.is_asked(request)]
    alone = [answer for answer in answered if answer.is_alone]
    request.context.notes.extend(request.slips)
    answers: list[SourceAnswer] = []
    for source_answer in alone or answered:
        answer = source_answer.answer(answers)
        answers += [] if answer is None else [answer]
    merged = _merge(request, answers)
    elapsed_ms = round((time.perf_counter() - began) * 1000, 1)
    return merged.replace(elapsed_ms=elapsed_ms, is_elsewhere=bool(alone))


def _merge(request: SearchRequest, answers: Sequence[SourceAnswer]) -> SearchAnswer:
    """Merge the answers of several sources, in their order."""
    notes = request.context.notes
    results = tuple(result for answer in answers for result in answer.results)
    if results and NOTHING in notes:
        notes.remove(NOTHING)
    passages = [answer.passages for answer in answers if answer.passages is not None]
    return SearchAnswer(
        query=request.query.text,
        total=sum(answer.total for answer in answers),
        elapsed_ms=0.0,
        freshness=next((answer.freshness for answer in answers if answer.freshness), ""),
        depth=_choose_depth([answer.depth for answer in answers]),
        results=results,
        explain=request.explain,
        sessions=sum(passages, ()) if passages else None,
        expired=sum(answer.expired for answer in answers),
        degraded=any(answer.is_degraded for answer in answers),
        semantic=next((answer.semantic for answer in answers if answer.semantic != OFF), OFF),
        meaning=next((answer.meaning for answer in answers if answer.meaning is not None), None),
        held_back=next(
            (answer.held_back for answer in answers if answer.held_back is not None), None
        ),
        why_not=next((answer.why_not for answer in answers if answer.why_not is not None), None),
        offset=request.offset,
        elsewhere=sum(answer.elsewhere for answer in answers),
    )


def _choose_depth(depths: Sequence[str]) -> str:
    """Return the level that answered; unreviewed sessions are reported first."""
    if SESSION in depths:
        return SESSION
    return next((depth for depth in (DIGEST, MEMORY) if depth in depths), NONE)
