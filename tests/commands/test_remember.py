from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.commands.remember import remember
from memtool.errors import MemtoolError
from memtool.memory import document


def test_words_become_a_confirmed_fact_of_the_user(sandbox: Sandbox):
    """The user's own words are the body, their first sentence the title."""
    made = remember(sandbox.context(), "Deploys", "run on Tuesdays. Never on Fridays!")
    memory = document.read((sandbox.path / made.path).read_bytes())
    assert memory.title == "Deploys run on Tuesdays"
    assert memory.body == "Deploys run on Tuesdays. Never on Fridays!\n"
    assert (memory.type, memory.status, memory.category) == ("semantic", "confirmed", "preference")
    assert (memory.confidence, memory.items("source")) == ("high", ("human:Ada",))


def test_options_reach_their_keys(sandbox: Sandbox):
    """Category, tags and files are said as in `new`."""
    made = remember(sandbox.context(), "It is so.", category="warning", tag=("a",), file=("x.py",))
    memory = document.read((sandbox.path / made.path).read_bytes())
    assert (memory.category, memory.items("tags"), memory.items("files")) == (
        "warning", ("a",), ("x.py",),
    )  # fmt: skip


def test_the_text_may_come_from_stdin(sandbox: Sandbox):
    """A lone dash reads stdin, line breaks and all."""
    done = sandbox.run("remember", "-", stdin="One line.\nAnother.\n")
    body = (sandbox.path / done.stdout.strip()).read_text().partition("\n---\n")[2]
    assert body == "One line.\nAnother.\n"


@pytest.mark.parametrize("words", [(), ("",), (" \n ",)])
def test_nothing_to_remember_is_told(sandbox: Sandbox, words: tuple[str, ...]):
    """An empty text makes no memory."""
    with pytest.raises(MemtoolError, match="there is nothing to remember"):
        remember(sandbox.context(), *words)


def test_an_unknown_category_is_told(sandbox: Sandbox):
    """The category table is the same as for `new`."""
    with pytest.raises(MemtoolError, match="did you mean preference"):
        remember(sandbox.context(), "It is so.", category="preferences")
