"""Sources: whoever is asked answers in the order of the table, and one merge makes one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memtool.search.query import parse
from memtool.search.scope import MEMORY, NONE, SESSION
from memtool.search.sources import (
    NOTHING,
    Passage,
    Result,
    RoutedSource,
    SearchRequest,
    Source,
    SourceAnswer,
    ask_sources,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conftest import Sandbox

PASSAGE = Passage("session:a#1", "user", "2026-01-01T00:00:00Z", 1.0, "so it is")


def result(id: str) -> Result:
    """Return a memory that was found."""
    return Result(
        id,
        id,
        "decision",
        "decision",
        "confirmed",
        "high",
        f"{id}.md",
        "2026-01-01T00:00:00Z",
        None,
        "committed",
        due=False,
        unproven="",
        unsettled="",
        score=1.0,
        snippet="",
        factors={},
    )


def source(
    name: str, answer: SourceAnswer | None, *, is_alone: bool = False, flag: str = ""
) -> Source:
    """Return a source that says the same to everything."""
    return Source(
        name,
        lambda request: not flag or flag in request.options,
        lambda _request: RoutedSource(lambda _before: answer, is_alone),
    )


def request(sandbox: Sandbox, *options: str) -> SearchRequest:
    """Return a question with some flags."""
    return SearchRequest(sandbox.context(), parse("redis"), 5, options=frozenset(options))


def of(*ids: str) -> SourceAnswer:
    """Return the answer that some memories are."""
    return SourceAnswer(MEMORY, tuple(map(result, ids)), total=len(ids) + 1)


def test_answers_stand_in_the_order_of_the_table(sandbox: Sandbox) -> None:
    """Results and their numbers are those of all sources that answer."""
    rows = [source("own", of("dec-a")), source("mute", None), source("more", of("dec-b"))]
    answer = ask_sources(request(sandbox), rows)
    assert ([hit.id for hit in answer.results], answer.total) == (["dec-a", "dec-b"], 4)
    assert (answer.depth, answer.is_elsewhere) == (MEMORY, False)


def test_a_source_is_asked_only_by_its_flag(sandbox: Sandbox) -> None:
    """One that is not asked is not even read."""
    rows = [source("own", of("dec-a")), source("others", of("dec-b"), flag="others")]
    assert [hit.id for hit in ask_sources(request(sandbox), rows).results] == ["dec-a"]
    assert len(ask_sources(request(sandbox, "others"), rows).results) == 2


def test_one_that_is_meant_alone_silences_the_rest(sandbox: Sandbox) -> None:
    """A question to named repositories is none to this one."""
    answer = ask_sources(
        request(sandbox), [source("own", of("a")), source("named", of("b"), is_alone=True)]
    )
    assert ([hit.id for hit in answer.results], answer.is_elsewhere) == (["b"], True)


def test_what_nobody_reviewed_tells_the_depth_and_stands_apart(sandbox: Sandbox) -> None:
    """Passages are not results, and None if none of their sources was asked."""
    passages = SourceAnswer(SESSION, passages=(PASSAGE,))
    answer = ask_sources(request(sandbox), [source("own", of("a")), source("private", passages)])
    assert (answer.depth, answer.sessions, len(answer.results)) == (SESSION, (PASSAGE,), 1)
    assert ask_sources(request(sandbox), [source("own", of("a"))]).sessions is None


def test_a_later_source_hears_whether_one_before_it_suffices(sandbox: Sandbox) -> None:
    """So it may keep silent."""

    def answer(before: Sequence[SourceAnswer]) -> SourceAnswer | None:
        return None if all(earlier.suffices() for earlier in before) else of("dec-deep")

    deep = Source("deep", lambda _request: True, lambda _request: RoutedSource(answer))
    weak = of("dec-a").replace(suffices=lambda: False)
    assert len(ask_sources(request(sandbox), [source("own", of("dec-a")), deep]).results) == 1
    assert len(ask_sources(request(sandbox), [source("own", weak), deep]).results) == 2


def test_nothing_is_told_only_where_no_source_has_anything(sandbox: Sandbox) -> None:
    """The note of an earlier source goes when a later one answers."""
    search_request = request(sandbox)
    search_request.context.notes.append(NOTHING)
    answer = ask_sources(search_request, [source("own", SourceAnswer())])
    assert (search_request.context.notes, answer.depth) == ([NOTHING], NONE)
    ask_sources(search_request, [source("own", SourceAnswer()), source("others", of("dec-b"))])
    assert search_request.context.notes == []
