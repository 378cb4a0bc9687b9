"""`memtool eval`: how well searches find what they should, and what lessons were worth."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from memtool.commands import _filters
from memtool.commands._layout import Layout
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory.schema import Problem
from memtool.search import evaluation
from memtool.search.evaluation import GOLDEN_NAME, GoldenQuery, parse
from memtool.search.features import Facts
from memtool.search.prose import search_prose
from memtool.search.retrieve import Hit, Scope, SearchResult
from memtool.search.scope import build_scope
from memtool.sessions.judgement import LessonJudgement, judge_lessons
from memtool.store.context import Context
from memtool.store.files import explaining_errors, read_regular
from memtool.value import Value

DIGITS = 4
"""Decimal places of a measure."""
SCORE_DIGITS = 6
MAX_BYTES = 256 << 20


class QueryResult(Value):
    """The result of one query. `ranks` has the rank of each expected memory that was found.

    `missed` are the expected ids that were not found, `results` all ids that were, in order.
    """

    qid: str
    query: str
    measures: dict[str, float]
    ranks: dict[str, int]
    missed: tuple[str, ...]
    results: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """Return the fields of the JSON, with each measure as a field of its own."""
        fields = super().plain()
        measures = _round_measures(fields.pop("measures"))
        return {"qid": fields.pop("qid"), "query": fields.pop("query"), **measures, **fields}


class CachedScope(Scope):
    """A scope for many queries: facts are computed once, not once per query."""

    cached_facts: Facts | None = None

    def facts(self) -> Facts:
        return super().facts() if self.cached_facts is None else self.cached_facts


class EvalReport(Value):
    """The means over all queries, by the names of `evaluation.MEASURES`.

    `below` has the floors that were not reached. `problems` are golden queries that expect a memory
    that does not exist (errors), or one that a search hides, such as a superseded one (warnings).
    `query_results` is None without --verbose, `lessons` without --sessions.
    """

    json_names = (("query_results", "asked"),)
    json_optional = "query_results lessons"

    queries: int
    measures: dict[str, float]
    below: dict[str, float]
    problems: tuple[Problem, ...]
    query_results: tuple[QueryResult, ...] | None = None
    lessons: tuple[LessonJudgement, ...] | None = None

    @property
    def exit_code(self) -> int:
        """1 if a floor was not reached, or an expected memory does not exist."""
        errors = any(problem.severity == "error" for problem in self.problems)
        return 1 if self.below or errors else 0

    def plain(self) -> dict[str, Any]:
        """Return the fields of the JSON, with each measure as a field of its own."""
        fields = super().plain()
        measures = _round_measures(fields.pop("measures"))
        return {"queries": fields.pop("queries"), **measures, **fields}


def eval(  # noqa: A001  # a verb is named as the user types it
    context: Context,
    golden: str = "",
    *,
    verbose: bool = False,
    run: str = "",
    floor: tuple[str, ...] = (),
    limit: int = evaluation.MAX_RANK,
    gated: bool = False,
    at: str | None = None,
    as_of: str | None = None,
    sessions: bool = False,
) -> EvalReport:
    """Measure how well searches find what they should.

    A line of the file is a query and the memories that it should find, such as {"qid": "q1",
    "query": "where do sessions live?", "expect": ["dec-2g54"]}. It may also have "files", which are
    open, and "as_of", the time of the query.

    It prints recall@5, recall@10, mrr@10 and ndcg@10. Exit code 1 means that a measure is below its
    --floor, or that an expected memory does not exist.

    With --sessions it measures instead which lessons of this clone's sessions were worth keeping:
    those that became memories, of those that were kept or dismissed.

    Example:
        memtool eval
        memtool eval .memory/golden.jsonl --floor recall@5=0.8

    Args:
        golden: the file of queries; by default .memory/golden.jsonl
        verbose: show what each query found and missed
        run: write the results to this file: qid, id, rank, score
        floor: the minimum of a measure; may be repeated
        limit: results per query, at least 10; 0 for all
        gated: leave out what inject would hold back
        at: a revision instead of the worktree
        as_of: the time of queries that name none
        sessions: measure what sessions taught, by what reviewers kept
    """
    if sessions:
        if golden or run or floor or gated or at or as_of:
            raise MemtoolError(
                "--sessions takes no queries and no options about them",
                hint="memtool eval --sessions",
                code="usage",
            )
        return EvalReport(0, {}, {}, (), lessons=judge_lessons(context))
    floors = dict(_parse_floor(text) for text in floor)
    max_results = _filters.all_if_zero(limit)
    name = golden or f"{context.directory}/{GOLDEN_NAME}"
    path = os.path.join(
        context.caller.cwd if golden else context.repository.top or context.caller.cwd, name
    )
    queries = parse(_read_queries(path, name), name)
    depth = max(max_results, evaluation.MAX_RANK)
    answers: dict[str, SearchResult] = {}
    problems: list[Problem] = []
    for moment in sorted({query.as_of for query in queries}):
        moment_queries = [query for query in queries if query.as_of == moment]
        scope = _open_scope(context, moment_queries[0], name, at, moment or as_of)
        for query in moment_queries:
            answers[query.qid] = search_prose(
                scope, query.query, query.files, depth, is_gated=gated
            )
        problems += _find_problems(moment_queries, scope, name)
    if run:
        rows = [
            row
            for query in queries
            for row in _format_run_rows(query, answers[query.qid].hits[:max_results])
        ]
        _write_run(os.path.join(context.caller.cwd, run), run, "".join(rows))
    context.notes += dict.fromkeys(note for answer in answers.values() for note in answer.notes)
    results = tuple(_score_query(query, answers[query.qid]) for query in queries)
    means = evaluation.compute_means([result.measures for result in results])
    return EvalReport(
        queries=len(results),
        measures=means,
        below={measure: minimum for measure, minimum in floors.items() if means[measure] < minimum},
        problems=tuple(sorted(problems, key=lambda problem: (problem.line, problem.id))),
        query_results=tuple(
            result.replace(results=result.results[:max_results]) for result in results
        )
        if verbose
        else None,
    )


def render(report: EvalReport, layout: Layout) -> str:
    """Return the queries with --verbose, then the means with their floors, then the problems."""
    if report.lessons is not None:
        return _format_lessons(report.lessons, layout)
    lines = []
    if report.query_results:
        rows = [_format_query(result, layout) for result in report.query_results]
        lines += [*layout.table(rows, title=3, drop=(4,)), ""]
    means = [
        (
            name,
            f"{value:.4f}",
            f"below {report.below[name]:g}" if name in report.below else "",
        )
        for name, value in report.measures.items()
    ]
    lines += layout.table([("queries", f"{report.queries}", ""), *means], title=2)
    lines += [problem.text() for problem in report.problems]
    return "\n".join(lines)


def _format_lessons(lessons: Sequence[LessonJudgement], layout: Layout) -> str:
    if not lessons:
        layout.report("no session has taught anything yet")
        return ""
    rows = [
        (
            row.kind,
            f"{row.promoted} promoted",
            f"{row.dismissed} dismissed",
            f"{row.waiting} waiting",
            "" if row.precision is None else f"precision {row.precision:.2f}",
        )
        for row in lessons
    ]
    return "\n".join(layout.table(rows, title=0))


def _format_query(result: QueryResult, layout: Layout) -> tuple[str, ...]:
    ranks = [f"{layout.short(id_)} at {rank}" for id_, rank in result.ranks.items()]
    missed = [f"{layout.short(id_)} not found" for id_ in result.missed]
    recall, gain = result.measures["recall@5"], result.measures["ndcg@10"]
    return (
        result.qid,
        f"{recall:.2f}",
        f"{gain:.2f}",
        result.query,
        "; ".join(ranks + missed),
    )


def _parse_floor(text: str) -> tuple[str, float]:
    """Parse `MEASURE=NUMBER`. Raises MemtoolError if it is not that."""
    name, _equals, number = text.partition("=")
    if name not in evaluation.MEASURES:
        raise MemtoolError(
            f"unknown measure {name!r}", hint=f"the measures are {', '.join(evaluation.MEASURES)}"
        )
    try:
        minimum = float(number)
    except ValueError:
        minimum = -1.0
    if not 0 <= minimum <= 1:
        raise MemtoolError(
            f"--floor {name} takes a number from 0 to 1, not {number!r}",
            hint=f"--floor {name}=0.6",
        )
    return name, minimum


def _read_queries(path: str, name: str) -> bytes:
    hint = "memtool eval FILE"
    with explaining_errors(f"{name} cannot be read", hint, "bad-golden"):
        data = read_regular(path, MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise MemtoolError(f"{name} has more than {MAX_BYTES:,} bytes", code="bad-golden")
    return data


def _open_scope(
    context: Context, query: GoldenQuery, name: str, at: str | None, as_of: str | None
) -> Scope:
    """Open the scope for all queries of one moment.

    Usage of this clone does not count, so that measures are the same on every machine.
    """
    try:
        tree = index.open(context, at, as_of, exact=True)
        scope = build_scope(context, tree, context.clock.parse_as_of(as_of)).replace(is_replay=True)
    except MemtoolError as error:
        if not query.as_of or error.code != "bad-time":
            raise
        raise MemtoolError(
            f"{name}:{query.line}: {error.message}", hint=error.hint, code=error.code
        ) from None
    fields = {field: getattr(scope, field) for field in Scope.field_names}
    return CachedScope(**fields, cached_facts=scope.facts())


def _score_query(query: GoldenQuery, answer: SearchResult) -> QueryResult:
    ranked = tuple(hit.record.id for hit in answer.hits)
    ranks = {id_: rank for rank, id_ in enumerate(ranked, 1) if id_ in query.expect}
    return QueryResult(
        qid=query.qid,
        query=query.query,
        measures=evaluation.compute_measures(ranked, query.expect),
        ranks=ranks,
        missed=tuple(id_ for id_ in query.expect if id_ not in ranks),
        results=ranked,
    )


def _round_measures(measures: dict[str, float]) -> dict[str, float]:
    return {name: round(value, DIGITS) for name, value in measures.items()}


def _format_run_rows(query: GoldenQuery, hits: Iterable[Hit]) -> Iterator[str]:
    for rank, hit in enumerate(hits, 1):
        yield f"{query.qid}\t{hit.record.id}\t{rank}\t{hit.score:.{SCORE_DIGITS}f}\n"


def _find_problems(queries: Iterable[GoldenQuery], scope: Scope, name: str) -> Iterator[Problem]:
    facts = scope.facts()
    for query in queries:
        for id_ in query.expect:
            record = scope.tree.get(id_)
            states = sorted(facts.find_hiding_states(record)) if record else []
            if record is None:
                message = f"{query.qid} expects {id_}, which is not here"
                hint = "memtool list shows every id"
                yield Problem(name, query.line, "dangling", message, hint, id_)
            elif states:
                message = f"{query.qid} expects {id_}, which is {' and '.join(states)}"
                hint = f"memtool show {id_}"
                yield Problem(name, query.line, "unreachable", message, hint, id_, "warning")


def _write_run(path: str, name: str, text: str) -> None:
    hint = "name a file in a directory that is there"
    with (
        explaining_errors(f"{name} cannot be written", hint),
        open(path, "w", encoding="utf-8", newline="\n") as file,
    ):
        file.write(text)
