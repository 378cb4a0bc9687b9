"""Plain TOML: what the small reader takes, it reads as tomllib does."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memtool.plain_toml import read_plain

LINES = (
    "[a]",
    "[a.b]",
    "[b]",
    "[a.b.c]",
    "k = 1",
    "k = 0.5",
    'k = "text"',
    "k = true",
    "j = []",
    'j = ["x", "y z"]',
    "# note",
    "",
    "  k  =  -3 ",
    "k.l = 1",
    'k = "a\\n"',
    "k = 1 # c",
    "k = 01",
    "[[t]]",
    "[[a]]",
    "[[a.k]]",
    "[[b.k]]",
    "[[a.b]]",
    "[t]",
    "[[a.b]",
    "k = 'x'",
    "k = 'a\\.b\"c'",
    "k = ''",
    "k = 'a'b'",
    "j = ['x', \"y\"]",
    "k = '''",
    "'''",
    "  '''",
    "a 'quoted' line\t",
    "k = '''x'''",
    "k = nan",
    "k = [1]",
    'k = ["a,b"]',
    "[ a ]",
    "k = 1_0",
    "j = 1979-05-27",
)


def agrees(text: str) -> bool:
    """Whether the small reader declines, or reads what tomllib reads."""
    parsed = read_plain(text)
    if parsed is None:
        return True
    expected = tomllib.loads(text)
    return parsed == expected and repr(parsed) == repr(expected)


@given(st.lists(st.sampled_from(LINES)).map("\n".join))
@example("[a]\nk = 1\n[a.k]\n")
@example("k = 1\r\nj = 2\r\n")
def test_it_never_reads_otherwise(text: str) -> None:
    """Tables, doubles and odd spellings in any order: the same values, types and order."""
    assert agrees(text)


@given(st.text(alphabet=st.sampled_from("ab01-_.[]=\"#,\\' \t\r\n\x00é\u2028"), max_size=40))
def test_it_reads_nothing_that_is_no_toml(text: str) -> None:
    """Whatever tomllib refuses is declined."""
    assert agrees(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n",
        "[inject]\nbudget_tokens = 500\nthreshold = 0.25\n",
        '[[trust.rules]]\nmatch = "a"\n[[trust.rules]]\n\n[search]\nlimit = 5\n',
        "[categories.decision]\nttl_days = 0\n",
        '[trust]\nref = "origin/main"\n',
        'auth = ["login", "sign in"]\n',
        '[search]\nlimit = 5\n[inject]\ntrust = "trusted"',
        "[[shape]]\nkind = 'a'\npattern = '''\n[\"']x\\d{2}\n  |y\n'''\n[[shape]]\n",
    ],
)
def test_it_reads_what_is_written_most(text: str) -> None:
    """Settings and tables of data need no tomllib."""
    assert read_plain(text) == tomllib.loads(text)
