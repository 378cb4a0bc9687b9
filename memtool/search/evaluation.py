"""Evaluation: golden queries, and measures of how good a ranking is.

A golden query is a question with the ids of the memories that answer it, one JSON object a line:

    {"qid": "q1", "query": "where do sessions live?", "expect": ["dec-a"],
     "files": ["src/auth.py"], "as_of": "2026-02-22"}

`files` are the files that are open, `as_of` the moment to ask from; both may be left out. Empty
lines are passed over.

Every measure takes the ids in rank order, the best first and none twice, and the expected ids, of
which there is at least one; it lies between 0 and 1. Relevance is yes or no, and the mean over
queries is the plain one.
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


class Golden(Value):
    """One golden query and the line that it stands on. `as_of` is empty for now."""

    qid: str
    query: str
    expect: tuple[str, ...]
    files: tuple[str, ...]
    as_of: str
    line: int


def parse(data: bytes, path: str) -> tuple[Golden, ...]:
    """Return the golden queries of a file, in its order; at least one.

    Raises:
        MemtoolError: a line is no golden query, or there is none; the message names the line.
    """
    found: dict[str, Golden] = {}
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        golden = _golden(_object(line, f"{path}:{number}"), f"{path}:{number}", number)
        first = found.setdefault(golden.qid, golden)
        if first is not golden:
            raise _refusal(f"{path}:{number}", f"qid {golden.qid!r} is that of line {first.line}")
    if not found:
        raise MemtoolError(
            f"there is no golden query in {path}",
            hint='write lines such as {"qid": "q1", "query": "where …?", "expect": ["dec-…"]}',
            code="bad-golden",
        )
    return tuple(found.values())


def _object(line: bytes, where: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:  # of JSON, UTF-8, digits or brackets
        reason = getattr(error, "msg", "") or "it is not UTF-8 text, or nested too deep"
        raise _refusal(where, f"is not JSON: {reason}") from None
    if not isinstance(row, dict):
        raise _refusal(where, "is not a JSON object")
    return row


def _golden(row: Mapping[str, Any], where: str, number: int) -> Golden:
    unknown = sorted(set(row) - set(KEYS))
    if unknown:
        raise _refusal(where, f"{unknown[0]!r} is not one of {', '.join(KEYS)}")
    for key, kind in KEYS.items():
        value = row.get(key)
        if value is None and key not in _REQUIRED:
            continue
        texts: list[Any] = value if isinstance(value, list) else [value]
        if not isinstance(value, kind) or not all(isinstance(text, str) for text in texts):
            raise _refusal(where, f"{key} must be {_NAMES[kind]}")
        if key in _REQUIRED and not all(text.strip() for text in texts or [""]):
            raise _refusal(where, f"{key} must not be empty")
    if any(char in row["qid"] for char in "\t\r\n"):
        raise _refusal(where, "qid must not hold a tab or line feed")
    return Golden(
        qid=row["qid"],
        query=row["query"],
        expect=tuple(dict.fromkeys(row["expect"])),
        files=tuple(row.get("files") or ()),
        as_of=row.get("as_of") or "",
        line=number,
    )


def _refusal(where: str, what: str) -> MemtoolError:
    return MemtoolError(
        f"{where}: {what}",
        hint='a line is {"qid": TEXT, "query": TEXT, "expect": [ID, …]}, '
        'and if wanted "files": [PATH, …] and "as_of": TIME',
        code="bad-golden",
    )


DEPTH = 10
"""The rank down to which measures look."""


def recall(ranked: Sequence[str], expected: Collection[str], depth: int) -> float:
    """Return the share of the expected ids that stand at or above a rank.

    Manning, Raghavan and Schütze, Introduction to Information Retrieval (2008), section 8.4. Where
    more ids are expected than `depth`, 1 cannot be reached.
    """
    return len(set(ranked[:depth]) & set(expected)) / len(set(expected))


def reciprocal_rank(ranked: Sequence[str], expected: Collection[str], depth: int) -> float:
    """Return 1 / rank of the first expected id; 0 where none stands at or above `depth`.

    Its mean is MRR: Voorhees, The TREC-8 Question Answering Track Report (1999).
    """
    return next((1 / rank for rank, id_ in enumerate(ranked[:depth], 1) if id_ in expected), 0.0)


def ndcg(ranked: Sequence[str], expected: Collection[str], depth: int) -> float:
    """Return the discounted gain of a ranking as a share of the best that is possible.

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
    "recall@10": lambda ranked, expected: recall(ranked, expected, DEPTH),
    "mrr@10": lambda ranked, expected: reciprocal_rank(ranked, expected, DEPTH),
    "ndcg@10": lambda ranked, expected: ndcg(ranked, expected, DEPTH),
}
"""The measures of `memtool eval`, in the order in which they are shown."""


def measure(ranked: Sequence[str], expected: Collection[str]) -> dict[str, float]:
    """Return every measure of one ranking, by name."""
    return {name: function(ranked, expected) for name, function in MEASURES.items()}


def mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each measure over at least one query."""
    return {name: math.fsum(row[name] for row in rows) / len(rows) for name in MEASURES}
