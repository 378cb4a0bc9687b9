"""Explanation: every gate of a search says what it held back, and why."""

from __future__ import annotations

import pytest
from conftest import Sandbox


@pytest.fixture
def store(sandbox: Sandbox) -> Sandbox:
    """One memory for each gate of the question `where do redis sessions live`."""
    sandbox.memory("dec-redis", "Redis sessions live on the cache host.\n")
    sandbox.memory("dec-also", "Redis sessions live on.\n")
    sandbox.memory("dec-third", "Where redis is, sessions are.\n")
    sandbox.memory("dec-gone", "Redis sessions live in Redis.\n", status="archived")
    sandbox.memory("sem-kind", "Redis sessions live long.\n", type="semantic")
    sandbox.memory("dec-far", "Lint runs in the pipeline.\n")
    for number in range(6):
        sandbox.memory(f"dec-live{number}", f"People {number} live here and there.\n")
    sandbox.commit()
    return sandbox


QUESTION = ("search", "redis sessions live", "type:decision", "--limit", "2")


@pytest.mark.parametrize(
    ("id_", "gate", "reason"),
    [
        ("dec-redis", "none", "it is number "),
        ("dec-third", "limit", "the limit is 2"),
        ("dec-gone", "state", "archived"),
        ("sem-kind", "filter", "type:decision does not admit it"),
        ("dec-far", "words", "it holds none of the words redis, sessions, live"),
    ],
)
def test_one_memory_is_explained(store: Sandbox, id_: str, gate: str, reason: str) -> None:
    """The first gate that holds it back is named, in text and in JSON."""
    explanation = store.json(*QUESTION, "--why-not", id_)["why_not"]
    assert (explanation["id"], explanation["gate"]) == (id_, gate)
    assert reason in explanation["reason"]
    named = f"{id_}  Title of {id_}"
    assert store.run(*QUESTION, "--why-not", id_).stdout == f"{named}: {explanation['reason']}\n"


def test_an_unknown_memory_is_an_error(store: Sandbox) -> None:
    """A missing memory cannot be explained."""
    done = store.run(*QUESTION, "--why-not", "dec-nothing")
    assert done.returncode == 2
    assert "dec-nothing" in done.stderr


def test_every_gate_says_what_it_held_back(store: Sandbox) -> None:
    """State, filter and limit, and what an agent would not be given."""
    rows = store.json(*QUESTION, "--explain")["held_back"]
    gates = {row["id"]: row["gate"] for row in rows}
    assert gates["dec-gone"] == "state"
    assert gates["sem-kind"] == "filter"
    assert gates["dec-third"] == "limit"
    wide = store.json("search", "redis sessions live", "--explain")["held_back"]
    assert ("dec-live0", "answer") in [(row["id"], row["gate"]) for row in wide]
    assert (
        "not given to agents: dec-live0: it "
        in store.run("search", "redis sessions live", "--explain").stderr
    )
    assert "held_back" not in store.json(*QUESTION)


def test_scores_of_two_questions_can_be_compared(store: Sandbox) -> None:
    """Who holds all words of a question scores higher than who holds one of another's."""
    full = store.json("search", "redis sessions live")["results"][0]
    part = store.json("search", "redis elephants dance")["results"][0]
    assert full["factors"]["relevance"] == 1
    assert 0 < part["factors"]["relevance"] < 0.6
    assert part["score"] < full["score"]


def test_the_order_does_not_change(store: Sandbox) -> None:
    """Words of the index decide the order; words outside it do not."""
    ids = [
        [result["id"] for result in store.json("search", text)["results"]]
        for text in ("redis sessions live", "redis sessions live elephants")
    ]
    assert ids[0] == ids[1]
