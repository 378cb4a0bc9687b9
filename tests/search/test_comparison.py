"""Comparison: what differs in its look alone says the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from conftest import make_memory

from memtool.search import comparison
from memtool.search.comparison import ComparedText

if TYPE_CHECKING:
    from memtool.memory.memory import Memory


def says_same(first: Memory, other: Memory) -> bool:
    """Compare two memories by their words."""
    return comparison.says_same(ComparedText(first), ComparedText(other))


BODY = "Sessions are kept in redis with a time to live of thirty minutes, renewed at each request"


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (BODY.upper() + "!", True),
        (BODY.replace("kept", "holding"), True),
        (BODY.replace("thirty", "30"), False),
        (BODY.replace("are kept", "are not kept"), False),
        ("Sessions", False),
        (BODY + " and then " + " ".join(f"more{n}" for n in range(40)), False),
    ],
)
def test_what_differs_in_little_but_its_look_says_the_same(
    other: str,
    is_same: bool,  # noqa: FBT001  # one of the pairs above
) -> None:
    """Case and signs do not count; numbers and negations do, whatever else is the same."""
    first = make_memory("dec-a", BODY, title="Redis")
    second = make_memory("dec-b", other, title="redis")
    assert says_same(first, second) is is_same
    assert says_same(second, first) is is_same


def test_one_word_among_many_is_not_the_point() -> None:
    """Nearly all words must be the same; the type does not count."""
    long = " ".join(f"word{letter}{other}" for letter in "abcdef" for other in "ghijkl")
    first = make_memory("dec-a", long, title="Same")
    assert says_same(first, make_memory("dec-b", long + " extra", title="Same"))
    assert says_same(first, make_memory("sem-b", long, title="Same", type="semantic"))


def test_the_same_words_are_compared_without_case_and_space() -> None:
    """Of one type; wherever the title ends."""
    first = ComparedText(make_memory("dec-a", "in redis, mostly\n", title="Sessions live"))
    other = ComparedText(make_memory("dec-b", "redis,\n\n  MOSTLY\n", title="Sessions live in"))
    assert first.has_same_words(other)
    typed = make_memory("sem-b", "redis, mostly\n", title="Sessions live in", type="semantic")
    assert not first.has_same_words(ComparedText(typed))


def test_a_memory_that_names_another_one_says_something_else() -> None:
    """Whoever wrote it meant both."""
    first = make_memory("dec-a", BODY, title="Redis")
    second = make_memory("dec-b", BODY, title="redis", related_to=("dec-a",))
    assert not says_same(first, second)
    assert not says_same(second, first)
