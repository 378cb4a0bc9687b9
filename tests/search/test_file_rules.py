from __future__ import annotations

import pytest
from conftest import make_memory

from memtool.memory.memory import FieldValue
from memtool.search.filters import is_ruling, rules
from memtool.store.snapshot import Record


def record(id: str = "dec-a", body: str = "It is so.\n", **fields: FieldValue) -> Record:
    return Record(make_memory(id, body, **fields), f".memory/decision/2026-02/{id}.md", "")


def how(one: Record, *paths: str) -> str:
    return " ".join(rule.by for rule in rules([one], {"key": paths})["key"])


@pytest.mark.parametrize(
    ("pattern", "path", "by"),
    [
        ("src/a.py", "src/a.py", "files"),
        ("src", "src/a/b.py", "files"),
        ("src/", "src/a/b.py", "files"),
        ("src", "srcs/a.py", ""),
        ("*.py", "a.py", "files"),
        ("*.py", "src/a.py", ""),
        ("**/*.py", "src/a.py", "files"),
        ("src/?.py", "src/a.py", "files"),
        ("app/[id]/page.tsx", "app/[id]/page.tsx", "files"),
        ("src/a.py", "src", ""),
    ],
)
def test_files_govern_as_globs_and_directories(pattern: str, path: str, by: str) -> None:
    """A name governs itself and all below it; stars and question marks are wildcards."""
    assert how(record(files=(pattern,)), path) == by


@pytest.mark.parametrize(
    ("source", "by"),
    [
        ("file:src/a.py", "source"),
        ("file:src/a.py#L3-L9@0123abcd", "source"),
        ("file:./src/../src/a.py", "source"),
        ("file:src/b.py", ""),
        ("url:src/a.py", ""),
    ],
)
def test_file_sources_govern(source: str, by: str) -> None:
    """What a memory was read off of is what it speaks about."""
    assert how(record(source=(source,)), "src/a.py") == by


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("See [it](src/a.py).", "link"),
        ("See [it](/src/a.py#L3).", "link"),
        ("See [it](../../../src/a.py).", "link"),
        ("See [it][1].\n\n[1]: src/a.py", "link"),
        ("See [all](src/).", "link"),
        ("See [it](https://acme.dev/src/a.py).", ""),
        ("`[it](src/a.py)`", ""),
        ("See [it](../../../../src/a.py).", ""),
        ("See [me](#here) and [up](.).", ""),
        ("See [it](src/*.py).", ""),
    ],
)
def test_links_of_the_body_govern(text: str, by: str) -> None:
    """Links count from the top and from the memory's own place, and never outside."""
    assert how(record(body=text + "\n"), "src/a.py") == by


def test_a_memory_is_there_once_with_its_strongest_way() -> None:
    """Both paths of a renamed file count, and memories come in the order of their ids."""
    one = record("dec-b", "[a](src/a.py)\n", files=("src/*.py", "src"), source=("file:src/a.py",))
    other = record("dec-a", files=("old.py",))
    found = rules([one, other], {"new": ("src/a.py", "old.py"), "none": ("x",)})
    assert [(rule.record.id, rule.by) for rule in found["new"]] == [
        ("dec-a", "files"), ("dec-b", "files")
    ]  # fmt: skip
    assert found["none"] == ()


@pytest.mark.parametrize(
    ("fields", "rulings"),
    [
        ({}, 1),
        ({"status": "pinned"}, 1),
        ({"status": "candidate"}, 0),
        ({"status": "deprecated"}, 0),
        ({"type": "semantic"}, 0),
        ({"type": "semantic", "category": "warning"}, 1),
    ],
)
def test_decisions_and_warnings_rule_where_somebody_vouches(
    fields: dict[str, FieldValue], rulings: int
) -> None:
    """Facts and candidates are worth knowing, but no change has to answer to them."""
    assert is_ruling(record(**fields)) == rulings
