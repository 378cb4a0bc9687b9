"""Tests of summaries by rules, and of the lines that they are made of."""

from __future__ import annotations

import pytest

from memtool.sessions.lifecycle import FailedCall, find_failures, summarise
from memtool.sessions.model import MAX_LINE, Message, first_line


def tool(number: int, call: str, text: str = "", *, is_ok: bool | None) -> Message:
    return Message(number, "tool", text, tool="Bash", call=call, is_ok=is_ok)


def test_a_summary_says_what_was_asked_touched_failed_and_found() -> None:
    """In that order, each in a line."""
    messages = [
        Message(1, "user", "\n\nFix the build.\nIt is red."),
        Message(2, "assistant", "I will.", files=("a.py", "b.py")),
        tool(3, "make", "cc a.c\nboom\n----", is_ok=False),
        tool(4, "make", is_ok=True),
        tool(5, "lint", "bad", is_ok=False),
        Message(6, "user", "Go on."),
    ]
    assert summarise(messages, ["Use make"]).split("\n") == [
        "asked: Fix the build.",
        "asked: Go on.",
        "files: a.py, b.py",
        "failed: make in message 3: boom; worked in message 4",
        "failed: lint in message 5: bad; not seen to work",
        "found: Use make",
    ]
    assert summarise([], []) == "nothing was said"


def test_a_long_session_has_a_short_summary() -> None:
    """Of each kind the first are told, and how many more there are."""
    messages = [Message(n, "user", f"ask {n}", files=(f"f{n}",)) for n in range(1, 40)]
    messages += [tool(n, f"run {n}", "no", is_ok=False) for n in range(40, 60)]
    rows = summarise(messages, [f"title {n}" for n in range(20)]).split("\n")
    assert len(rows) == 3 + 1 + 1 + 5 + 1 + 5 + 1
    assert rows[3] == "asked: 36 more"
    assert rows[4].endswith("f12 and 27 more")


def test_a_call_that_failed_again_is_not_fixed() -> None:
    """The last result of a call counts."""
    failures = find_failures(
        [
            tool(1, "make", "one", is_ok=False),
            tool(2, "make", is_ok=True),
            tool(3, "make", "two", is_ok=False),
            tool(4, "other", is_ok=True),
            tool(5, "quiet", "x", is_ok=None),
        ]
    )
    assert failures == [FailedCall(3, "make", "two")]


def test_a_command_is_the_same_however_it_is_spelled() -> None:
    """It is for its program and its targets; scripts that are typed in are each their own."""
    failures = find_failures(
        [
            tool(1, "uv run pytest -q tests/a.py", "one", is_ok=False),
            tool(2, "python -c 'import a'", "two", is_ok=False),
            tool(3, "python -c 'import b'", is_ok=True),
            tool(4, ".venv/bin/pytest tests/a.py 2>&1 | tail -3", is_ok=True),
        ]
    )
    assert failures == [
        FailedCall(1, "uv run pytest -q tests/a.py", "one", 4),
        FailedCall(2, "python -c 'import a'", "two"),
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", ""),
        ("\n \n", ""),
        ("## Title\nbody", "## Title"),
        ("---\nbody", "body"),
        ("a\tb  c", "a b c"),
        ("x" * 500, "x" * (MAX_LINE - 2) + " …"),
    ],
)
def test_a_line_is_the_first_that_says_something(text: str, wanted: str) -> None:
    """White space is folded, and what is too long is cut, between words if it can be."""
    assert first_line(text) == wanted
    assert len(first_line("word " * 100)) <= MAX_LINE
