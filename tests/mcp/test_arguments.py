from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memtool.errors import MemtoolError
from memtool.mcp import call
from memtool.mcp.tools import tools

TOOLS = tools()


def read(name: str, **given: Any) -> tuple[list[Any], dict[str, Any]]:
    return call.read(TOOLS[name], given)


def test_a_call_reaches_the_verb_in_its_types():
    """Places in order, names as the verb spells them, lists as tuples, defaults filled in."""
    places, names = read("supersede", title="T", old="dec-a", tag=["a", "b"], importance=1)
    assert places == ["dec-a", "T"]
    assert (names["tag"], names["importance"], names["commit"]) == (("a", "b"), 1.0, False)
    assert type(names["importance"]) is float
    assert read("inject", **{"for": "claude"})[1]["for_"] == "claude"
    assert read("search", query="a b", limit=5.0) == (
        ["a b"],
        read("search", query="a b", limit=5)[1],
    )
    assert read("conflicts", ids=["x", "y"])[0] == ["x", "y"]


def test_null_means_not_given():
    """Some clients send every argument, empty ones as null."""
    assert read("search", query="x", limit=None, at=None) == read("search", query="x")


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("search", {}, "query is missing"),
        ("search", {"query": None}, "query is missing"),
        ("search", {"query": "  "}, "query is missing"),
        ("forget", {"wanted": "dec-a"}, "why is missing"),
        ("resolve", {"ids": [], "keep": "both", "why": "x"}, "ids is missing"),
        ("search", {"query": 7}, "query takes a text, not a whole number"),
        ("search", {"query": ["a", "b"]}, "query takes a text, not a list"),
        ("search", {"query": "x", "limit": "5"}, "limit takes a whole number, not a text"),
        ("search", {"query": "x", "limit": 1.5}, "limit takes a whole number, not such a number"),
        ("search", {"query": "x", "limit": True}, "limit takes a whole number, not true or false"),
        ("search", {"query": "x", "limit": 10**30}, "limit takes a whole number"),
        ("search", {"query": "x", "limit": float("inf")}, "limit takes a whole number"),
        ("new", {"type": "decision", "title": "T", "importance": float("nan")}, "importance takes"),
        ("search", {"query": "x", "sort": "best"}, "sort is one of score, newest"),
        ("new", {"type": "wish", "title": "T"}, "type is one of decision, semantic"),
        ("new", {"type": "decision", "title": "T", "tag": "a"}, "tag takes a list of texts, not a"),
        ("new", {"type": "decision", "title": "T", "tag": [{}]}, "tag takes a text, not an object"),
        ("new", {"type": "decision", "title": "T", "tag": ["a"] * 1001}, "tag takes 1,000 items"),
        ("new", {"type": "decision", "title": "T", "body": "-"}, "body is -"),
        ("new", {"type": "decision", "title": "T", "edit": True}, "new has no argument 'edit'"),
        ("new", {"type": "decision", "title": "T", "id": "dec-x"}, "new has no argument 'id'"),
        ("new", {"type": "decision", "title": "T", "set": ["status=pinned"]}, "set takes no 'st"),
        ("new", {"type": "decision", "title": "T", "set": ["x-a=b"]}, "set takes no 'x-a' here"),
        ("remember", {"text": "x" * (1 << 20) + "x"}, "text has 1,048,577 characters, 1,048,576"),
        ("show", {"id": "x" * 10_001}, "id has 10,001 characters"),
        ("show", {"id": "a\0b"}, "id is not Unicode text"),
        ("show", {"id": "a\ud800"}, "id is not Unicode text"),
        ("show", {"ide": "x" * 1000}, "show has no argument 'ide'"),
    ],
)  # fmt: skip
def test_a_bad_call_is_refused_with_one_sentence(name: str, given: dict[str, Any], told: str):
    """The verb never sees it, and what was wrong is said without showing a value."""
    with pytest.raises(MemtoolError) as caught:
        call.read(TOOLS[name], given)
    assert caught.value.message.startswith(told)
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../other", "a/../../other", "~/x", "out/x", "/tmp", "..", "~"]
)
def test_a_path_stays_in_the_repository(tmp_path: Path, path: str):
    """Neither dots nor an absolute path nor a link lead out of it."""
    top = tmp_path / "top"
    top.mkdir()
    (top / "out").symlink_to(tmp_path)
    with pytest.raises(MemtoolError, match="is not in the repository"):
        call.refuse_outside(str(top), str(top), [path])


def test_paths_inside_are_taken(tmp_path: Path):
    """From a directory below the top, too, and where nothing is there yet."""
    below = tmp_path / "a"
    below.mkdir()
    inside = ["../b.py", "c/**/*.py", ".", "..", str(tmp_path / "d"), "..a", "~a/../b"]
    call.refuse_outside(str(tmp_path), str(below), inside[:-1])
