"""`memtool eval`: how well a search finds what golden queries expect."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from memtool.commands import _filters
from memtool.commands._render import columns
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory.schema import Problem
from memtool.search import evaluation
from memtool.search.evaluation import GOLDEN_NAME, Golden, parse
from memtool.search.features import Facts
from memtool.search.prose import search_prose
from memtool.search.retrieve import Found, Hit, Scope
from memtool.search.scope import scope_of
from memtool.store.context import Context
from memtool.store.files import read_regular, refusing
from memtool.value import Value

DIGITS = 4
"""Digits of a measure behind the point."""
SCORE_DIGITS = 6
MOST_BYTES = 256 << 20


class QueryResult(Value):
    """What one query gave. `ranks` holds the rank of each expected memory that was found.

    `missed` are the expected ones that were not found, `results` the ids that were, in order.
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
        found = _rounded(fields.pop("measures"))
        return {"qid": fields.pop("qid"), "query": fields.pop("query"), **found, **fields}


class KeptScope(Scope):
    """A scope for many queries: each fact is worked out once, not once per query."""

    kept: Facts | None = None

    def facts(self) -> Facts:
        """Return the facts that are kept, fresh ones where none are."""
        return super().facts() if self.kept is None else self.kept


class Evaluated(Value):
    """The means over all queries, by the names of `evaluation.MEASURES`.

    `below` holds the floors that were not reached. `problems` are the lines that expect what is not
    there (errors), or what no prose can find, such as a superseded memory (warnings). `asked` is
    None unless every query was to be shown.
    """

    json_optional = "asked"

    queries: int
    measures: dict[str, float]
    below: dict[str, float]
    problems: tuple[Problem, ...]
    asked: tuple[QueryResult, ...] | None = None

    @property
    def exit_code(self) -> int:
        """1 where a floor was not reached, or a memory is expected that is not there."""
        errors = any(problem.severity == "error" for problem in self.problems)
        return 1 if self.below or errors else 0

    def plain(self) -> dict[str, Any]:
        """Return the fields of the JSON, with each measure as a field of its own."""
        fields = super().plain()
        found = _rounded(fields.pop("measures"))
        return {"queries": fields.pop("queries"), **found, **fields}


def eval(  # noqa: A001  # a verb is named as the user types it
    context: Context,
    golden: str = "",
    *,
    verbose: bool = False,
    run: str = "",
    floor: tuple[str, ...] = (),
    limit: int = evaluation.DEPTH,
    gated: bool = False,
    at: str | None = None,
    as_of: str | None = None,
) -> Evaluated:
    """Measure how well a search finds what golden queries expect.

    A line of the file is {"qid": "q1", "query": "where do sessions live?", "expect": ["dec-a"]},
    and if wanted "files": ["src/auth.py"], which are open, and "as_of": the moment to ask from.
    Queries are prose, in which nothing is an operator, and only living heads are found. What is
    measured is the ranking; with --gated it is what inject would let pass, where a memory that
    holds too little of the query is not found at all.

    Measured are recall@5, recall@10, mrr@10 and ndcg@10, as means over all queries. The exit code
    is 1 where a measure is below its floor, or where a memory is expected that does not exist.

    Example:
        memtool eval .memory/golden.jsonl --floor recall@5=0.8

    Args:
        golden: the golden queries; golden.jsonl of the memory directory where none is named
        verbose: show every query: what was found at which rank, and what was not
        run: write the results to this file, a line of qid, id, rank and score each, with tabs
        floor: a measure and the least it may be, such as recall@5=0.6
        limit: results per query in the run file and in --verbose, 0 for all; at least 10 are ranked
        gated: leave out what holds too little of the query, as inject does
        at: the memories of this revision instead of the worktree
        as_of: ask from this moment where a query names none
    """
    floors = dict(_floor(text) for text in floor)
    most = _filters.most_of(limit)
    name = golden or f"{context.directory}/{GOLDEN_NAME}"
    place = os.path.join(
        context.caller.cwd if golden else context.repository.top or context.caller.cwd, name
    )
    queries = parse(_read(place, name), name)
    depth = max(most, evaluation.DEPTH)
    found: dict[str, Found] = {}
    problems: list[Problem] = []
    for moment in sorted({query.as_of for query in queries}):
        those = [query for query in queries if query.as_of == moment]
        scope = _scope(context, those[0], name, at, moment or as_of)
        for query in those:
            found[query.qid] = search_prose(scope, query.query, query.files, depth, is_gated=gated)
        problems += _problems(those, scope, name)
    if run:
        rows = [row for query in queries for row in _run_rows(query, found[query.qid].hits[:most])]
        _write(os.path.join(context.caller.cwd, run), run, "".join(rows))
    context.notes += dict.fromkeys(note for one in found.values() for note in one.notes)
    asked = tuple(_asked(query, found[query.qid]) for query in queries)
    means = evaluation.mean([one.measures for one in asked])
    return Evaluated(
        queries=len(asked),
        measures=means,
        below={measure: least for measure, least in floors.items() if means[measure] < least},
        problems=tuple(sorted(problems, key=lambda problem: (problem.line, problem.id))),
        asked=tuple(one.replace(results=one.results[:most]) for one in asked) if verbose else None,
    )


def render(evaluated: Evaluated) -> str:
    """Return the queries if wanted, then the means with their floors, then what is wrong."""
    lines = []
    if evaluated.asked:
        lines += [*columns(_told(one) for one in evaluated.asked), ""]
    means = [
        (
            name,
            f"{value:.4f}",
            f"below {evaluated.below[name]:g}" if name in evaluated.below else "",
        )
        for name, value in evaluated.measures.items()
    ]
    lines += columns([("queries", f"{evaluated.queries}", ""), *means])
    lines += [problem.text() for problem in evaluated.problems]
    return "\n".join(lines)


def _told(one: QueryResult) -> tuple[str, ...]:
    ranks = [f"{id_} at {rank}" for id_, rank in one.ranks.items()]
    missed = [f"{id_} not found" for id_ in one.missed]
    recall, gain = one.measures["recall@5"], one.measures["ndcg@10"]
    return (one.qid, f"{recall:.2f}", f"{gain:.2f}", one.query[:60], "; ".join(ranks + missed))


def _floor(text: str) -> tuple[str, float]:
    """Read `MEASURE=NUMBER`. Raises MemtoolError where it is not that."""
    name, _equals, number = text.partition("=")
    if name not in evaluation.MEASURES:
        raise MemtoolError(
            f"there is no measure {name!r}", hint=f"measures are {', '.join(evaluation.MEASURES)}"
        )
    try:
        least = float(number)
    except ValueError:
        least = -1.0
    if not 0 <= least <= 1:
        raise MemtoolError(
            f"the floor of {name} must be a number from 0 to 1, not {number!r}",
            hint=f"--floor {name}=0.6",
        )
    return name, least


def _read(place: str, name: str) -> bytes:
    hint = "memtool eval FILE, with a golden query on each line"
    with refusing(f"{name} cannot be read", hint, "bad-golden"):
        data = read_regular(place, MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise MemtoolError(f"{name} has more than {MOST_BYTES:,} bytes", code="bad-golden")
    return data


def _scope(context: Context, query: Golden, name: str, at: str | None, as_of: str | None) -> Scope:
    """Return what is searched from a moment, read and opened once for all queries of it.

    What this clone was shown does not count: measures are the same on every machine.
    """
    try:
        tree = index.open(context, at, as_of, exact=True)
        scope = scope_of(context, tree, context.clock.moment_of(as_of)).replace(is_replay=True)
    except MemtoolError as error:
        if not query.as_of or error.code != "bad-time":
            raise
        raise MemtoolError(
            f"{name}:{query.line}: {error.message}", hint=error.hint, code=error.code
        ) from None
    fields = {field: getattr(scope, field) for field in Scope.field_names}
    return KeptScope(**fields, kept=scope.facts())


def _asked(query: Golden, found: Found) -> QueryResult:
    ranked = tuple(hit.record.id for hit in found.hits)
    ranks = {id_: rank for rank, id_ in enumerate(ranked, 1) if id_ in query.expect}
    return QueryResult(
        qid=query.qid,
        query=query.query,
        measures=evaluation.measure(ranked, query.expect),
        ranks=ranks,
        missed=tuple(id_ for id_ in query.expect if id_ not in ranks),
        results=ranked,
    )


def _rounded(found: dict[str, float]) -> dict[str, float]:
    return {name: round(value, DIGITS) for name, value in found.items()}


def _run_rows(query: Golden, hits: Iterable[Hit]) -> Iterator[str]:
    for rank, hit in enumerate(hits, 1):
        yield f"{query.qid}\t{hit.record.id}\t{rank}\t{hit.score:.{SCORE_DIGITS}f}\n"


def _problems(queries: Iterable[Golden], scope: Scope, name: str) -> Iterator[Problem]:
    facts = scope.facts()
    for query in queries:
        for id_ in query.expect:
            record = scope.tree.get(id_)
            states = sorted(facts.hidden(record)) if record else []
            if record is None:
                message = f"{query.qid} expects {id_}, which is not here"
                hint = "memtool list shows every id"
                yield Problem(name, query.line, "dangling", message, hint, id_)
            elif states:
                message = f"{query.qid} expects {id_}, which is {' and '.join(states)}"
                hint = f"memtool show {id_} says what took its place"
                yield Problem(name, query.line, "unreachable", message, hint, id_, "warning")


def _write(place: str, name: str, text: str) -> None:
    hint = "name a file in a directory that is there"
    with (
        refusing(f"{name} cannot be written", hint),
        open(place, "w", encoding="utf-8", newline="\n") as file,
    ):
        file.write(text)
