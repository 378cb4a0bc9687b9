"""Evaluation: golden queries, and measures of the quality of a ranking.

A golden query is a question with the ids of the memories that answer it, one JSON object per line:

    {"qid": "q1", "query": "where do sessions live?", "expect": ["dec-a"],
     "files": ["src/auth.py"], "as_of": "2026-02-22"}

`files` are the open files, `as_of` the moment to search as of; both are optional. Empty lines are
ignored.

Every measure takes the ids in rank order, best first and without repeats, and the expected ids, at
least one; its value is between 0 and 1. Relevance is binary, and the mean over queries is
unweighted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from memtool.errors import MemtoolError
from memtool.value import Value

GOLDEN_NAME = "golden.jsonl"

KEYS: dict[str, type] = {"qid": str, "query": str, "expect": list, "files": list, "as_of": str}

_REQUIRED = ("qid", "query", "expect")

_NAMES: dict[type, str] = {str: "a text", list: "a list of texts"}


class GoldenQuery(Value):
    """One golden query and its line number. `as_of` is empty for now."""

    qid: str
    query: str
    expect: tuple[str, ...]
    files: tuple[str, ...]
    as_of: str
    line: int


def parse(data: bytes, path: str) -> tuple[GoldenQuery, ...]:
    """Return the golden queries of a file, in its order; at least one.

    Raises:
        MemtoolError: a line is not a golden query, or there is none; the message names the line.
    """
    queries: dict[str, GoldenQuery] = {}
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        golden = _parse_golden(_parse_object(line, f"{path}:{number}"), f"{path}:{number}", number)
        first = queries.setdefault(golden.qid, golden)
        if first is not golden:
            raise _build_error(
                f"{path}:{number}", f"qid {golden.qid!r} is also in line {first.line}"
            )
    if not queries:
        raise MemtoolError(
            f"no golden query in {path}",
            hint='a line is {"qid": "q1", "query": "where …?", "expect": ["dec-…"]}',
            code="bad-golden",
        )
    return tuple(queries.values())


def _parse_object(line: bytes, where: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:  # of JSON, UTF-8, digits or brackets
        reason = getattr(error, "msg", "") or "it is not UTF-8 text, or nested too deep"
        raise _build_error(where, f"is not JSON: {reason}") from None
    if not isinstance(row, dict):
        raise _build_error(where, "is not a JSON object")
    return row


def _parse_golden(row: Mapping[str, Any], where: str, number: int) -> GoldenQuery:
    unknown = sorted(set(row) - set(KEYS))
    if unknown:
        raise _build_error(where, f"{unknown[0]!r} is not one of {', '.join(KEYS)}")
    for key, kind in KEYS.items():
        value = row.get(key)
        if value is None and key not in _REQUIRED:
            continue
        texts: list[Any] = value if isinstance(value, list) else [value]
        if not isinstance(value, kind) or not all(isinstance(text, str) for text in texts):
            raise _build_error(where, f"{key} must be {_NAMES[kind]}")
        if key in _REQUIRED and not all(text.strip() for text in texts or [""]):
            raise _build_error(where, f"{key} must not be empty")
    if any(char in row["qid"] for char in "\t\r\n"):
        raise _build_error(where, "qid must not contain a tab or line feed")
    return GoldenQuery(
        qid=row["qid"],
        query=row["query"],
        expect=tuple(dict.fromkeys(row["expect"])),
        files=tuple(row.get("files") or ()),
        as_of=row.get("as_of") or "",
        line=number,
    )


def _build_error(where: str, what: str) -> MemtoolError:
    return MemtoolError(
        f"{where}: {what}",
        hint='a line is {"qid": TEXT, "query": TEXT, "expect": [ID, …]}, '
        'optional: "files": [PATH, …] and "as_of": TIME',
        code="bad-golden",
    )


MAX_RANK = 10
"""Rank to which measures look."""


def recall(ranked: Sequence[str], expected: Collection[str], depth: int) -> float:
    """Return the share of the expected ids that are in the first `depth` ranks.

    Manning, Raghavan and Schütze, Introduction to Information Retrieval (2008), section 8.4. With
    more expected ids than `depth`, it cannot reach 1.
    """
    return len(set(ranked[:depth]) & set(expected)) / len(set(expected))


def reciprocal_rank(ranked: Sequence[str], expected: Collection[str], depth: int) -> float:
    """Return 1 / rank of the first expected id; 0 if none is in the first `depth` ranks.

    Its mean is MRR: Voorhees, The TREC-8 Question Answering Track Report (1999).
    """
    return next((1 / rank for rank, id_ in enumerate(ranked[:depth], 1) if id_ in expected), 0.0)


def ndcg(ranked: Sequence[str], expected: Collection[str], depth: int) -> float:
    """Return the discounted gain of a ranking as a share of the best possible one.

    Each expected id gains 1 / log2(rank + 1). Järvelin and Kekäläinen, Cumulated Gain-Based
    Evaluation of IR Techniques (2002), with binary gains and in the form of trec_eval, which
    discounts the second rank too.
    """
    ranks = [rank for rank, id_ in enumerate(ranked[:depth], 1) if id_ in expected]
    best = range(1, min(len(set(expected)), depth) + 1)
    return math.fsum(map(_discount, ranks)) / math.fsum(map(_discount, best))


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)


Measure = Callable[[Sequence[str], Collection[str]], float]


MEASURES: dict[str, Measure] = {
    "recall@5": lambda ranked, expected: recall(ranked, expected, 5),
    "recall@10": lambda ranked, expected: recall(ranked, expected, MAX_RANK),
    "mrr@10": lambda ranked, expected: reciprocal_rank(ranked, expected, MAX_RANK),
    "ndcg@10": lambda ranked, expected: ndcg(ranked, expected, MAX_RANK),
}
"""The measures of `memtool eval`, in display order."""


def compute_measures(ranked: Sequence[str], expected: Collection[str]) -> dict[str, float]:
    """Return every measure of one ranking, by name."""
    return {name: function(ranked, expected) for name, function in MEASURES.items()}


def compute_means(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each measure over at least one query."""
    return {name: math.fsum(row[name] for row in rows) / len(rows) for name in MEASURES}
