"""The page about the code names modules that exist, and every room of the house."""

from __future__ import annotations

import re
from pathlib import Path

import memtool

PACKAGE = Path(memtool.__file__).parent
PAGE = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_every_module_that_the_page_names_exists() -> None:
    """A reader who follows a verb file by file finds each file."""
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", PAGE))
    tops = (PACKAGE, PACKAGE.parent)
    assert {name for name in named if not any((top / name).exists() for top in tops)} == set()


def test_every_path_that_contributors_are_sent_to_exists() -> None:
    """Files and folders of the page on contributing; not those that a reader makes."""
    page = (PACKAGE.parent / "docs" / "contributing.md").read_text(encoding="utf-8")
    quoted = " ".join(
        re.findall(r"`([^`\n]+)`", page) + re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    )
    named = set(re.findall(r"(?<![\w/.-])(?:\.ci|bench|docs|memtool|tests)/[\w./*-]+", quoted))
    assert len(named) > 30
    made = set(re.findall(r"`([\w/]+\.py)`:\n\n```python\n", page))
    absent = {name for name in named - made if not list(PACKAGE.parent.glob(name))}
    assert {name for name in absent if "NAME" not in name and "FILE" not in name} == set()


def test_every_name_that_contributors_are_sent_to_exists() -> None:
    """`NAME` in `path/of/module.py`, and what the fixture `sandbox` can do."""
    page = (PACKAGE.parent / "docs" / "contributing.md").read_text(encoding="utf-8")
    pairs = re.findall(r"`([A-Za-z_]+)`\s(?:in|of)\s`((?:memtool|tests)/[\w/]+\.py)`", page)
    pairs += [(name, "tests/conftest.py") for name in re.findall(r"`sandbox\.(\w+)\(", page)]
    assert len(pairs) > 8
    absent = [
        (name, path)
        for name, path in pairs
        if not re.search(
            rf"(?m)^\s*(?:def |class )?{name}\b",
            (PACKAGE.parent / path).read_text(encoding="utf-8"),
        )
    ]
    assert absent == []


def test_every_room_is_drawn() -> None:
    """The layers name each package of memtool once."""
    layers = PAGE.partition("```\n")[2].partition("```")[0]
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert {room for room in rooms if layers.count(f"{room}/ ") != 1} == set()


def test_the_glossary_is_sorted() -> None:
    """A word is found where a reader looks for it."""
    words = re.findall(r"(?m)^\| ([a-z][a-z -]+) \|", PAGE.partition("## Glossary")[2])[1:]
    assert words == sorted(words)
