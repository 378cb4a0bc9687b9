"""Saved queries: a name expands to its query, and its parameters are filled in."""

from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.errors import MemtoolError
from memtool.search import saved
from memtool.search.saved import SavedQuery

FILE = b"""
pinned = "type:decision is:pinned"
[open]
query = "is:candidate OR is:conflicted"
doc = "what somebody has to look at"
"""


def test_a_file_holds_queries_by_name() -> None:
    """A text is a query, a table has one and says what it is for."""
    assert saved.parse_saved(FILE, "q") == {
        "open": SavedQuery("open", "is:candidate OR is:conflicted", "what somebody has to look at"),
        "pinned": SavedQuery("pinned", "type:decision is:pinned", ""),
    }
    assert saved.parse_saved(None, "q") == {}


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
    assert saved.find_saved_name(text) == name


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
    name = saved.find_saved_name(text)
    assert name is not None
    assert saved.expand_saved(text, name, saved.parse_saved(FILE, "q"), "q") == expected


@pytest.mark.parametrize(
    ("name", "file", "hint"),
    [
        ("opem", FILE, 'did you mean @open?; for the text itself write "@opem" in double quotes'),
        ("zz", FILE, 'the saved queries are @open, @pinned; for the text itself write "@zz"'),
        ("", FILE, "the saved queries are @open, @pinned"),
        ("zz", None, 'write NAME = "QUERY" into q'),
    ],
)
def test_an_unknown_name_gets_the_nearest(name: str, file: bytes | None, hint: str) -> None:
    """The error says which queries there are, and how to look for the text itself."""
    with pytest.raises(MemtoolError) as caught:
        saved.expand_saved(f"@{name}", name, saved.parse_saved(file, "q"), "q")
    assert caught.value.message == f"no saved query @{name}"
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
        (b"a = 'colour:red'", "q: a: unknown filter 'colour'"),
        (b"a = ", "q is not TOML"),
        (b"\xff", "q is not TOML"),
    ],
)
def test_a_file_that_is_wrong_says_where(data: bytes, message: str) -> None:
    """The row is named, and for a query the place in it."""
    with pytest.raises(MemtoolError) as caught:
        saved.parse_saved(data, "q")
    assert caught.value.message.startswith(message)


RECENT = b"""
recent = "tag:{tag} since:{age=30d}"
failed = 'error:"KeyError: {name}" {what=redis} type:{type=state,decision}'
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@recent tag=auth", "tag:auth since:30d"),
        ("@recent age=7d tag=auth redis a=b", "tag:auth since:7d redis a=b"),
        ('@recent tag="rate limit"', 'tag:"rate limit" since:30d'),
        ("@recent tag=x)OR(is:deleted", 'tag:"x)OR(is:deleted" since:30d'),
        ("@recent tag=-x", 'tag:"-x" since:30d'),
        ("@failed name=CONFIG", 'error:"KeyError: CONFIG" redis type:state,decision'),
        ("@failed name=a what=OR", 'error:"KeyError: a" "OR" type:state,decision'),
    ],
)
def test_parameters_are_filled_in_and_are_never_operators(text: str, expected: str) -> None:
    """A value is one word or one quoted text, whatever it holds; what follows narrows as ever."""
    name = saved.find_saved_name(text)
    assert name is not None
    assert saved.expand_saved(text, name, saved.parse_saved(RECENT, "q"), "q") == expected


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("@recent", "@recent needs tag", "memtool search @recent tag=TAG"),
        ("@recent redis tag=auth", "@recent needs tag", "memtool search @recent tag=TAG"),
        ("@recent tga=auth", "@recent has no parameter 'tga'", "its parameters are tag, age\n"),
        ('@recent tag=a"b', "tag must not contain a double quote", "@recent tag=TAG"),
        ("@", "no saved query @", "the saved queries are @failed name=NAME, @recent tag=TAG"),
    ],
)
def test_a_call_that_lacks_something_says_what(text: str, message: str, hint: str) -> None:
    """The hint is the call as it should be."""
    name = saved.find_saved_name(text)
    assert name is not None
    with pytest.raises(MemtoolError) as caught:
        saved.expand_saved(text, name, saved.parse_saved(RECENT, "q"), "q")
    assert caught.value.message == message
    assert caught.value.hint.startswith(hint)


def test_a_value_of_several_words_is_one_word_of_a_command_line(sandbox: Sandbox) -> None:
    """`memtool list @recent "tag=rate limit"` needs no further quotes."""
    sandbox.memory("dec-a", tags=("rate limit",))
    sandbox.memory("dec-b", tags=("rate",))
    sandbox.write(".memory/queries.toml", RECENT.decode())
    context = sandbox.context()
    query = saved.expand_words(context, ("@recent", "tag=rate limit", "age=9d"))
    assert query == 'tag:"rate limit" since:9d'
