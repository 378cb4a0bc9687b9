"""Arguments that can only mean one thing are read; what is not certain is left to the binder."""

from __future__ import annotations

from typing import Any

import pytest

from memtool.calls.lenient import read_arguments
from memtool.calls.signature import Parameter

PARAMETERS = {
    "count": Parameter(name="count", kind=int),
    "share": Parameter(name="share", kind=float),
    "switch": Parameter(name="switch", kind=bool),
    "text": Parameter(name="text"),
    "words": Parameter(name="words", is_many=True),
    "numbers": Parameter(name="numbers", kind=int, is_many=True),
}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("count", "5", 5),
        ("count", " 5 ", 5),
        ("count", "-3", -3),
        ("count", "", None),
        ("count", "null", None),
        ("count", "five", "five"),
        ("count", "true", "true"),
        ("count", "[5]", "[5]"),
        ("count", "05", "05"),
        ("count", "1_0", "1_0"),
        ("count", True, True),
        ("share", "0.7", 0.7),
        ("share", "nan", "nan"),
        ("switch", "true", True),
        ("switch", "False", False),
        ("switch", "yes", "yes"),
        ("switch", "1", "1"),
        ("switch", 1, 1),
        ("text", "5", "5"),
        ("text", "", ""),
        ("text", "[1]", "[1]"),
        ("text", 5, 5),
        ("words", "a", ["a"]),
        ("words", "a, b", ["a, b"]),
        ("words", '["a", "b"]', ["a", "b"]),
        ("words", "[]", []),
        ("words", " ", None),
        ("words", "[dec-a@1234567]", ["[dec-a@1234567]"]),
        ("words", ["a"], ["a"]),
        ("words", {"a": 1}, {"a": 1}),
        ("words", None, None),
        ("numbers", "5", [5]),
        ("numbers", ["5", 6], [5, 6]),
        ("unknown", "5", "5"),
    ],
)
def test_a_value_is_read_where_it_is_clear(name: str, value: Any, expected: Any):
    """Numbers, booleans and lists as strings, and one value where a list is wanted."""
    (read,) = read_arguments(PARAMETERS, {name: value}).values()
    assert read == expected
    assert type(read) is type(expected)


def test_a_text_that_nests_without_end_is_a_text():
    """A parser that gives up leaves the value as it is."""
    text = "[" * 100_000
    assert read_arguments(PARAMETERS, {"words": text}) == {"words": [text]}
