from __future__ import annotations

import pytest

from memtool.errors import MemtoolError
from memtool.search import query
from memtool.search.query import Saved

FILE = b"""
pinned = "type:decision is:pinned"
[open]
query = "is:candidate OR is:conflicted"
doc = "what somebody has to look at"
"""


def test_a_file_holds_queries_by_name() -> None:
    """A text is a query, a table has one and says what it is for."""
    assert query.parse_saved(FILE, "q") == {
        "open": Saved("open", "is:candidate OR is:conflicted", "what somebody has to look at"),
        "pinned": Saved("pinned", "type:decision is:pinned", ""),
    }
    assert query.parse_saved(None, "q") == {}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("@open", "open"),
        ("@open redis", "open"),
        ("@a", "a"),
        ("@", ""),
        ("@ open", ""),
        ("open @x", None),
        ('"@open"', None),
        ("@angular/core", None),
        ("@Override", None),
        ("@@open", None),
        ("", None),
    ],
)
def test_a_name_stands_first_and_looks_like_one(text: str, name: str | None) -> None:
    """What cannot be the name of a query is text that is looked for."""
    assert query.saved_name(text) == name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@pinned", "type:decision is:pinned"),
        ("@pinned  redis cache", "type:decision is:pinned redis cache"),
        ("@open", "is:candidate OR is:conflicted"),
        ("@open tag:x", "(is:candidate OR is:conflicted) tag:x"),
    ],
)
def test_a_name_becomes_its_query_and_the_rest_narrows_it(text: str, expected: str) -> None:
    """Alternatives get parentheses, since OR binds loosest."""
    name = query.saved_name(text)
    assert name is not None
    assert query.expand_saved(text, name, query.parse_saved(FILE, "q"), "q") == expected


@pytest.mark.parametrize(
    ("name", "file", "hint"),
    [
        ("opem", FILE, 'did you mean @open?; for the text itself write "@opem" in double quotes'),
        ("zz", FILE, 'there are @open, @pinned; for the text itself write "@zz"'),
        ("", FILE, "there are @open, @pinned"),
        ("zz", None, 'write NAME = "QUERY" into q'),
    ],
)
def test_an_unknown_name_gets_the_nearest(name: str, file: bytes | None, hint: str) -> None:
    """The error says which queries there are, and how to look for the text itself."""
    with pytest.raises(MemtoolError) as caught:
        query.expand_saved(f"@{name}", name, query.parse_saved(file, "q"), "q")
    assert caught.value.message == f"no query is saved as @{name}"
    assert caught.value.hint.startswith(hint)
    assert caught.value.code == "unknown-query"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a = 3", "q: a must be a query, or a table"),
        (b"[a]\ndoc = 'x'", "q: a must be a query, or a table"),
        (b"[a]\nquery = 'x'\nname = 'y'", "q: a.name is not one of query, doc"),
        (b"[a]\nquery = 'x'\ndoc = 1", "q: a.doc must be text"),
        (b"A = 'x'", "q: 'A' must be a name"),
        (b"'a b' = 'x'", "q: 'a b' must be a name"),
        (b"'' = 'x'", "q: '' must be a name"),
        (b"a = ' '", "q: a must not be empty"),
        (b"a = '(x'", "q: a: this parenthesis is never closed"),
        (b"a = 'colour:red'", "q: a: there is no filter 'colour'"),
        (b"a = ", "q is not TOML"),
        (b"\xff", "q is not TOML"),
    ],
)
def test_a_file_that_is_wrong_says_where(data: bytes, message: str) -> None:
    """The row is named, and for a query the place in it."""
    with pytest.raises(MemtoolError) as caught:
        query.parse_saved(data, "q")
    assert caught.value.message.startswith(message)
