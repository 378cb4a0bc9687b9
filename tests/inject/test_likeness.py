"""Tests of likeness: what repeats, and what only looks alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from conftest import make_memory

from memtool.inject import select
from memtool.inject.select import Wording, sources

if TYPE_CHECKING:
    from memtool.memory.memory import Memory


def says_same(one: Memory, other: Memory) -> bool:
    """Compare two memories by their words."""
    return select.says_same(Wording(one), Wording(other))


BODY = "Sessions are kept in redis with a time to live of thirty minutes, renewed at each request"


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (BODY.upper() + "!", True),
        (BODY.replace("kept", "holding"), False),
        (BODY.replace("thirty", "30"), False),
        (BODY + " 2", False),
        (BODY.replace("are kept", "are not kept"), False),
        ("Sessions", False),
        (BODY + " and then " + "more " * 40, False),
    ],
)
def test_what_differs_in_little_but_its_look_says_the_same(
    other: str,
    is_same: bool,  # noqa: FBT001  # one of the pairs above
) -> None:
    """Case and signs do not count; numbers and negations do, whatever else is the same."""
    one = make_memory("dec-a", BODY, title="Redis")
    two = make_memory("dec-b", other, title="redis")
    assert says_same(one, two) is is_same
    assert says_same(two, one) is is_same


def test_one_word_among_many_is_not_the_point() -> None:
    """Nearly all words must be the same, in a text of some length, of the same type."""
    long = " ".join(f"word{letter}{other}" for letter in "abcdef" for other in "ghijkl")
    one = make_memory("dec-a", long, title="Same")
    assert says_same(one, make_memory("dec-b", long + " extra", title="Same"))
    assert not says_same(one, make_memory("sem-b", long, title="Same", type="semantic"))
    assert not says_same(
        make_memory("dec-a", "a b", title="x"), make_memory("dec-b", "a b", title="x")
    )


def test_a_source_is_a_thing_not_a_place_in_it() -> None:
    """Lines and versions of one file are one source; people and tools are none."""
    memory = make_memory(
        source=("file:a.md#L1-L2", "file:a.md@abc", "human:Ada", "tool:pytest", "session:s#4",
                "url:https://example.org/#part")
    )  # fmt: skip
    assert sources(memory) == ("file:a.md", "session:s", "url:https://example.org/#part")
