from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest
from conftest import Sandbox, read_terminal
from hypothesis import given
from hypothesis import strategies as st

from memtool.calls import output
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
    assert output.make_visible(raw) == shown


@pytest.mark.parametrize(
    "text", ["a\n\tb", "naïve", "日本", "👩\u200d💻", "10\u00a0km", "\u0645\u06cc\u200c\u062e"]
)
def test_what_people_write_stays(text: str):
    """Joiners and spaces that scripts and emoji need are harmless."""
    assert output.make_visible(text) == text


@given(st.text())
def test_shown_text_is_printable_but_for_line_feeds_tabs_and_joiners(text: str):
    """Nothing else that is invisible passes, whatever the text."""
    allowed = "\n\t\u200c\u200d\u00a0\u202f\u3000"
    assert all(char.isprintable() or char in allowed for char in output.make_visible(text))


def test_text_ends_in_one_line_feed_unless_it_is_empty():
    """An empty answer prints nothing at all."""
    assert output.to_text("a") == "a\n"
    assert output.to_text("a\n") == "a\n"
    assert output.to_text("") == ""


def test_json_is_ascii_and_gives_back_what_went_in():
    """Any program reads the JSON, whatever its encoding."""
    made = output.to_json(Pair("caf\u00e9 \x1b", (1, 2)))
    assert made.isascii()
    assert json.loads(made) == {"left": "caf\u00e9 \x1b", "right": [1, 2]}


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


TERM = {"TERM": "xterm"}


def test_ids_titles_and_problems_have_colours_on_a_terminal() -> None:
    """They are highlighted; the text itself is the same."""
    text = (
        "1. 1\n   [dec-redis@9d20258]\n2. No citation\n3. Not committed  [dec-redis]\n"
        ".memory/dec-2026-02-22-a-b-k3f9.md:3: bad-value it is dec-2026-02-22-a-b-k3f9, or not\n"
        "sem-2026-03-02-bill-0001  2026-03-02  x@acme.dev 10:30: x\n"
    )
    painted = output.paint(text, Screen(), TERM)
    assert painted == (
        "1. \x1b[1m1\x1b[0m\n   [\x1b[36mdec-redis@9d20258\x1b[0m]\n2. No citation\n"
        "3. \x1b[1mNot committed\x1b[0m  [dec-redis]\n"
        "\x1b[1m.memory/dec-2026-02-22-a-b-k3f9.md:3:\x1b[0m \x1b[33mbad-value\x1b[0m it is "
        "\x1b[36mdec-2026-02-22-a-b-k3f9\x1b[0m, or not\n"
        "\x1b[36msem-2026-03-02-bill-0001\x1b[0m  2026-03-02  x@acme.dev 10:30: x\n"
    )


@pytest.mark.parametrize(
    ("stream", "env"),
    [
        (Screen(), TERM | {"NO_COLOR": "1"}),
        (Screen(), {"TERM": "dumb"}),
        (Screen(), {}),
        (io.StringIO(), TERM),
        (None, TERM),
    ],
)
def test_nobody_gets_colours_who_cannot_use_them(
    stream: io.StringIO | None, env: dict[str, str]
) -> None:
    """Pipes, files, plain terminals and users of NO_COLOR get the text alone."""
    assert output.paint("1. dec-a@local", stream, env) == "1. dec-a@local"
    assert output.has_colours(Screen(), TERM | {"NO_COLOR": ""})


def test_a_real_terminal_gets_colours_and_json_none(sandbox: Sandbox) -> None:
    """Answers and errors, through a real process; a memory cannot colour anything itself."""
    sandbox.memory("dec-2026-02-22-a-b-k3f9", title="\u00e9t\u00e9")
    command = [sys.executable, "-m", "memtool"]
    env = sandbox.env | TERM
    shown = {}
    primer = ("inject", "--primer")
    formatted = (*primer, "--format", "markdown")
    for args in (("list",), ("list", "--json"), ("show", "nothing"), primer, formatted):
        main, side = os.openpty()
        subprocess.run(
            [*command, *args], cwd=sandbox.path, env=env, stdout=side, stderr=side, check=False
        )
        os.close(side)
        # On a busy machine, lines of progress come first, and are wiped.
        shown[args] = read_terminal(main).replace("\r\n", "\n").rpartition("\r")[2]
        os.close(main)
    # A machine under load shows its progress before the answer.
    assert "\x1b[36mdec-k3f9\x1b[0m  \u00e9t\u00e9  " in shown["list",]
    assert "\x1b" not in shown["list", "--json"]
    assert "\x1b[36mdec-k3f9" in shown[primer]
    assert "dec-k3f9" in shown[formatted]
    assert "\x1b[36m" not in shown[formatted]  # a note on stderr has its colour
    assert "\x1b[1;31mmemtool:\x1b[0m no memory is called" in shown["show", "nothing"]
    assert "\x1b[32mhint:\x1b[0m" in shown["show", "nothing"]


def test_a_line_end_of_two_characters_is_a_line_end() -> None:
    """A text with CRLF is shown as its lines; a lone carriage return is shown as what it is."""
    assert output.make_visible("a\r\nb\r\n") == "a\nb\n"
    assert output.make_visible("a\rb") == "a\\rb"
