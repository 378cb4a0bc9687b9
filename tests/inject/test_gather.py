"""Worlds: what the project says itself silences a global memory, the rest is one order."""

from __future__ import annotations

import pytest
from conftest import make_memory

from memtool.inject.candidates import GLOBAL, PINNED, RETRIEVAL, Candidate
from memtool.inject.select import merge_by_weight, yield_to
from memtool.store.tree import Record


def candidate(
    id: str, score: float | None = None, body: str = "", scope: str = "project", **fields: str
) -> Candidate:
    memory = make_memory(id, body or f"About {id}.\n", title=f"Title of {id}", **fields)
    record = Record(memory, f".memory/{id}.md", "")
    return Candidate(record, PINNED if score is None else RETRIEVAL, score, scope=scope)


def other(id: str, score: float | None = None, body: str = "", **fields: str) -> Candidate:
    return candidate(id, score, body, GLOBAL, **fields)


def ids(candidates: list[Candidate]) -> list[str]:
    return [hit.record.id for hit in candidates]


def test_one_order_by_score_and_the_project_first():
    """Where the scores are equal the project is before the user."""
    own = [candidate("own-a", 0.9), candidate("own-b", 0.5)]
    merged, dropped = merge_by_weight(own, [other("glo-a", 0.9), other("glo-b", 0.7)])
    assert ids(merged) == ["own-a", "glo-a", "glo-b", "own-b"]
    assert dropped == []


def test_pinned_by_importance_and_the_project_first():
    """The more important comes first, whoever wrote it."""
    own = [candidate("own-a"), candidate("own-b", importance="0.2")]
    theirs = [other("glo-a", importance="0.9"), other("glo-b")]
    assert ids(merge_by_weight(own, theirs)[0]) == ["glo-a", "own-a", "glo-b", "own-b"]


def test_what_stands_beside_stays_beside():
    """Two sides of a contradiction are not parted."""
    own = [
        candidate("own-a", 0.9),
        candidate("own-x").replace(tier=RETRIEVAL, conflicts_with="own-a"),
    ]
    merged, _dropped = merge_by_weight(own, [other("glo-a", 0.8)])
    assert ids(merged) == ["own-a", "own-x", "glo-a"]


def test_the_threshold_is_a_share_of_the_best_of_both():
    """The best of a poor repository is left out, with the reason."""
    own = [candidate("own-a", 1.0), candidate("own-b", 0.6)]
    merged, dropped = merge_by_weight(
        own, [other("glo-a", 0.4), other("glo-b", 0.39)], lambda _category: 0.5
    )
    assert ids(merged) == ["own-a", "own-b"]
    assert [(verdict.id, verdict.scope) for verdict in dropped] == [
        ("glo-a", GLOBAL),
        ("glo-b", GLOBAL),
    ]
    assert dropped[0].reason == "below the threshold 0.500, 0.5 of the best score"


@pytest.mark.parametrize(
    ("mine", "theirs", "reason"),
    [
        ("Use tabs.\n", "Use tabs.\n", "the project's own-a says the same"),
        (
            "Commit messages begin with the topic, a colon, and one short imperative sentence.\n",
            "Commit messages begin with their topic, a colon, and one short imperative sentence.\n",
            "the project's own-a says the same",
        ),
        (
            "Never push to the main branch directly.\n",
            "Push to the main branch directly.\n",
            "it may contradict the project's own-a",
        ),
        (
            "The request timeout is 30 seconds.\n",
            "The request timeout is 60 seconds.\n",
            "it may contradict the project's own-a",
        ),
    ],
)
def test_the_project_speaks_for_itself(mine: str, theirs: str, reason: str):
    """A global memory is dropped if the project says the same or the contrary."""
    fields = {"type": "semantic"}
    own = candidate("own-a", 0.5, mine, **fields)
    same = other("glo-a", 0.9, theirs, **fields)
    retitled = [
        hit.replace(record=Record(hit.record.memory.with_fields(title="Rule"), hit.record.path, ""))
        for hit in (own, same, other("glo-b", 0.8, "Elephants are grey.\n", **fields))
    ]
    remaining, dropped = yield_to(retitled[:1], retitled[1:])
    assert ids(remaining) == ["glo-b"]
    assert [(verdict.id, verdict.reason) for verdict in dropped] == [("glo-a", reason)]


def test_nothing_yields_to_silence():
    """Without anything of the project all global ones stay."""
    theirs = [other("glo-a", 0.9)]
    assert yield_to([], theirs) == (theirs, [])
    assert yield_to([candidate("own-a", 0.9)], []) == ([], [])
