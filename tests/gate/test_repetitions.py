"""Repetitions of a living memory: its own words, a sentence of it, or its title."""

from __future__ import annotations

import pytest
from conftest import Sandbox, make_memory

from memtool.commands.check import check
from memtool.commands.import_ import import_
from memtool.commands.inject import inject
from memtool.commands.new import new, remember, supersede
from memtool.errors import MemtoolError
from memtool.memory import likeness

BODY = """Keep bookings in PostgreSQL. A ferry sails once, so that a seat sold twice
is the worst error.

## Options considered

Keep bookings in SQLite.

## Rationale

It locks rows. Nobody has to run another server.
"""


@pytest.fixture
def harbor(sandbox: Sandbox) -> Sandbox:
    """One decision with sections, committed and in the index."""
    sandbox.memory("dec-bookings", BODY, title="Bookings are in PostgreSQL")
    sandbox.commit("one")
    return sandbox


@pytest.mark.parametrize(
    "text",
    [
        "Bookings are in PostgreSQL",
        "Keep bookings in PostgreSQL.",
        "keep bookings in postgresql",
        "Nobody has to run another server.",
        "A ferry sails once, so that a seat sold twice is the worst error.",
    ],
)
def test_the_title_the_opening_and_each_sentence_are_said_already(harbor: Sandbox, text: str):
    """Marks, case and the ends of lines do not count; nothing is written."""
    with pytest.raises(
        MemtoolError, match=r"\(dec-bookings\) says this already, and more"
    ) as caught:
        remember(harbor.context(), text)
    assert "memtool supersede dec-bookings" in str(caught.value.hint)
    inject(harbor.context(), prompt="bookings")  # makes the index
    with pytest.raises(MemtoolError, match=r"\(dec-bookings\) says this already, and more"):
        remember(harbor.context(), text)


def test_what_was_not_chosen_is_not_said(harbor: Sandbox):
    """An option that a decision considered may be remembered."""
    assert remember(harbor.context(), "Keep bookings in SQLite.").path


def test_a_title_of_the_same_type_is_taken(harbor: Sandbox):
    """In another type it is another claim; a successor may have the title."""
    title, sections = "Bookings are in PostgreSQL", ("Rationale=Cheaper.", "Chosen=B.")
    body = "Something else entirely is meant here."
    with pytest.raises(MemtoolError, match=r"\(dec-bookings\) has the same title"):
        new(harbor.context(), "decision", title, body=body, section=sections)
    assert new(harbor.context(), "semantic", title, body=body, source=("human:Ada",)).path
    done = supersede(
        harbor.context(), "dec-bookings", title, body="Keep bookings in PostgreSQL 17."
    )
    assert done.path
    assert not [
        problem for problem in check(harbor.context()).problems if problem.code == "duplicate"
    ]


def test_the_gate_refuses_a_file_with_the_title_of_another(harbor: Sandbox):
    """Whoever wrote it; a relation says that both are meant."""
    fields = {"title": "Bookings are in PostgreSQL"}
    harbor.memory("dec-twice", "Another text that shares nothing.\n", **fields)
    harbor.git("add", ".memory")
    (problem,) = [
        problem for problem in check(harbor.context()).problems if problem.code == "duplicate"
    ]
    assert (problem.id, problem.severity) == ("dec-twice", "error")
    harbor.memory(
        "dec-twice", "Another text that shares nothing.\n", **fields, related_to=("dec-bookings",)
    )
    assert not [
        problem for problem in check(harbor.context()).problems if problem.code == "duplicate"
    ]


def test_an_import_warns_and_keeps_what_has_a_title_that_is_there(harbor: Sandbox):
    """It names the other memory, so that the gate takes it."""
    harbor.write(
        "docs/adr/0001-bookings.md",
        "# Bookings are in PostgreSQL\n\n## Status\n\nAccepted\n\n## Decision\n\nOther words.\n",
    )
    harbor.commit("adr")
    result = import_(harbor.context(), "adr", "docs/adr", commit=True)
    assert len(result.memories) == 1
    assert any(
        "under the same title as dec-bookings" in problem.message for problem in result.problems
    )
    assert not [
        problem for problem in check(harbor.context()).problems if problem.severity == "error"
    ]


def test_a_block_folds_what_the_gate_would_refuse(sandbox: Sandbox):
    """One measure: two memories at .91 are not shown one below the other."""
    text = "Refunds go back to the card that paid, within five working days after the sailing"
    sandbox.memory(
        "sem-a", f"{text} was cancelled.\n", title="Refunds go to the card", type="semantic"
    )
    sandbox.memory(
        "sem-b", f"{text} got cancelled, always.\n", title="Refunds: to the card", type="semantic"
    )
    sandbox.commit("both")
    block = inject(sandbox.context(), prompt="where do refunds of a cancelled sailing go?")
    assert len(block.items) == 1
    sandbox.memory(
        "sem-b",
        f"{text} got cancelled, always.\n",
        title="Refunds: to the card",
        type="semantic",
        related_to=("sem-a",),
    )
    block = inject(sandbox.context(), prompt="where do refunds of a cancelled sailing go?")
    assert len(block.items) == 2


def test_the_measure_is_pure_and_needs_all_sentences():
    """A text with one sentence more is not said by the other."""
    old = make_memory("dec-a", BODY, title="Bookings are in PostgreSQL")
    both = make_memory(
        "dec-b", "It locks rows. Keep bookings in PostgreSQL.\n", title="It locks rows"
    )
    longer = make_memory("dec-c", "It locks rows. It is fast.\n", title="It locks rows")
    assert likeness.is_said_by(both, old)
    assert not likeness.is_said_by(longer, old)
    assert not likeness.is_said_by(old, both)
