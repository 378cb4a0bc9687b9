"""Tests of explaining: every memory that would have answered is named, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from memtool.search.answer_gate import search_prose
from memtool.search.query import parse
from memtool.search.retrieve import search_query

if TYPE_CHECKING:
    from conftest import Sandbox


@pytest.fixture
def hidden(sandbox: Sandbox) -> Sandbox:
    """One living memory about redis, and one in each hidden state."""
    deleted = {"at": "2026-02-25T00:00:00Z", "by": "Ada", "reason": "wrong"}
    sandbox.memory("dec-archived", "Redis.\n", status="archived")
    sandbox.memory("dec-deleted", "Redis.\n", status="deleted", deleted=deleted)
    sandbox.memory("dec-expired", "Redis.\n", valid_through="2026-02-25")
    sandbox.memory("dec-old-state", "Redis.\n", type="state", timestamp="2026-02-01T00:00:00Z")
    sandbox.memory("dec-pending", "Redis.\n", valid_from="2026-04-01")
    sandbox.memory("dec-old", "Redis.\n")
    sandbox.memory("dec-new", "Redis.\n", supersedes=("dec-old",))
    sandbox.memory("dec-other", "About the colour of walls.\n", status="archived")
    return sandbox


REASONS = {
    "dec-archived": "archived",
    "dec-deleted": "deleted",
    "dec-expired": "expired on 2026-02-25",
    "dec-old-state": "expired on 2026-02-15",
    "dec-pending": "pending, valid from 2026-04-01",
    "dec-old": "superseded by dec-new",
}


def test_what_a_query_leaves_out_is_named(hidden: Sandbox) -> None:
    """Only what satisfies the rest of the query, and only where it was asked for."""
    found = search_query(hidden.scope(), parse("redis"), 10, explain=True)
    assert [hit.record.id for hit in found.hits] == ["dec-new"]
    assert {one.record.id: one.reason for one in found.missed} == REASONS
    assert search_query(hidden.scope(), parse("redis"), 10).missed == ()
    found = search_query(hidden.scope(), parse("redis type:state"), 10, explain=True)
    assert [one.record.id for one in found.missed] == ["dec-old-state"]
    found = search_query(hidden.scope(), parse("redis is:archived"), 10, explain=True)
    assert "dec-archived" not in {one.record.id for one in found.missed}


def test_what_a_prompt_does_not_get_is_named(hidden: Sandbox) -> None:
    """Beside what is hidden, what holds too little of the prompt."""
    found = search_prose(hidden.scope(), "why redis?", (), 10, explain=True)
    assert [hit.record.id for hit in found.hits] == ["dec-new"]
    assert {one.record.id: one.reason for one in found.missed} == REASONS
    text = "walls, ships, oceans and a redis of elephants in Amsterdam"
    found = search_prose(hidden.scope(), text, (), 10, explain=True)
    assert found.hits == ()
    (missed,) = found.missed
    assert missed.record.id == "dec-new"
    assert missed.reason.endswith("of what an answer must hold")
