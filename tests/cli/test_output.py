from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.cli import output
from memtool.value import Value


class Pair(Value):
    left: str
    right: tuple[int, ...]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\rb", "a\\rb"),
        ("bell\x07", "bell\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("right\u202eleft", "right\\u202eleft"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("line\u2028break", "line\\u2028break"),
        ("caf\udce9", "caf\\udce9"),
    ],
)
def test_what_acts_on_a_terminal_is_shown_as_a_code(raw: str, shown: str):
    """Text from files never moves the cursor, colours, hides or reorders."""
    assert output.visible(raw) == shown


@pytest.mark.parametrize(
    "text", ["a\n\tb", "naïve", "日本", "👩\u200d💻", "10\u00a0km", "\u0645\u06cc\u200c\u062e"]
)
def test_what_people_write_stays(text: str):
    """Joiners and spaces that scripts and emoji need are harmless."""
    assert output.visible(text) == text


@given(st.text())
def test_shown_text_is_printable_but_for_line_feeds_tabs_and_joiners(text: str):
    """Nothing else that is invisible passes, whatever the text."""
    kept = "\n\t\u200c\u200d\u00a0\u202f\u3000"
    assert all(char.isprintable() or char in kept for char in output.visible(text))


def test_text_ends_in_one_line_feed_unless_it_is_empty():
    """An empty answer prints nothing at all."""
    assert output.as_text("a") == "a\n"
    assert output.as_text("a\n") == "a\n"
    assert output.as_text("") == ""


def test_json_is_ascii_and_gives_back_what_went_in():
    """Any program reads the JSON, whatever its encoding."""
    made = output.as_json(Pair("caf\u00e9 \x1b", (1, 2)))
    assert made.isascii()
    assert json.loads(made) == {"left": "caf\u00e9 \x1b", "right": [1, 2]}
