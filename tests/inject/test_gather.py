"""Worlds: what the project says itself silences a global memory, the rest is one order."""

from __future__ import annotations

import pytest
from conftest import make_memory

from memtool.inject.candidates import GLOBAL, PINNED, RETRIEVAL, Candidate
from memtool.inject.select import joined, yielding
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
    return [one.record.id for one in candidates]


def test_one_order_by_score_and_the_project_first():
    """Where the scores are equal the project is before the user."""
    own = [candidate("own-a", 0.9), candidate("own-b", 0.5)]
    found, dropped = joined(own, [other("glo-a", 0.9), other("glo-b", 0.7)])
    assert ids(found) == ["own-a", "glo-a", "glo-b", "own-b"]
    assert dropped == []


def test_pinned_by_importance_and_the_project_first():
    """The more important comes first, whoever wrote it."""
    own = [candidate("own-a"), candidate("own-b", importance="0.2")]
    others = [other("glo-a", importance="0.9"), other("glo-b")]
    assert ids(joined(own, others)[0]) == ["glo-a", "own-a", "glo-b", "own-b"]


def test_what_stands_beside_stays_beside():
    """Two sides of a contradiction are not parted."""
    own = [candidate("own-a", 0.9), candidate("own-x").replace(tier=RETRIEVAL, beside="own-a")]
    found, _dropped = joined(own, [other("glo-a", 0.8)])
    assert ids(found) == ["own-a", "own-x", "glo-a"]


def test_the_threshold_is_a_share_of_the_best_of_both():
    """What was best where nothing was good is left out, with the reason."""
    own = [candidate("own-a", 1.0), candidate("own-b", 0.6)]
    found, dropped = joined(own, [other("glo-a", 0.4), other("glo-b", 0.39)], lambda _category: 0.5)
    assert ids(found) == ["own-a", "own-b"]
    assert [(one.id, one.scope) for one in dropped] == [("glo-a", GLOBAL), ("glo-b", GLOBAL)]
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
    """What it says as well, or says otherwise, is not said again by the user."""
    fields = {"type": "semantic"}
    own = candidate("own-a", 0.5, mine, **fields)
    same = other("glo-a", 0.9, theirs, **fields)
    retitled = [
        one.replace(record=Record(one.record.memory.with_fields(title="Rule"), one.record.path, ""))
        for one in (own, same, other("glo-b", 0.8, "Elephants are grey.\n", **fields))
    ]
    kept, dropped = yielding(retitled[:1], retitled[1:])
    assert ids(kept) == ["glo-b"]
    assert [(one.id, one.reason) for one in dropped] == [("glo-a", reason)]


def test_nothing_yields_to_silence():
    """Without anything of the project all global ones stay."""
    others = [other("glo-a", 0.9)]
    assert yielding([], others) == (others, [])
    assert yielding([candidate("own-a", 0.9)], []) == ([], [])
