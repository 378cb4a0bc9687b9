"""Picks from the stored fields, and what governs files."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from conftest import Sandbox, make_memory
from hypothesis import given
from hypothesis import strategies as st

from memtool.index import index
from memtool.memory.memory import FieldValue
from memtool.search import picks
from memtool.search.features import list_governed_paths
from memtool.search.picks import is_governing, is_ruling
from memtool.store.files import matches_or_contains
from memtool.store.tree import Record, Tree, newest_first_key

names = st.lists(
    st.sampled_from(["a", "b", "*", "**", "?", "a*", ".", ""]), min_size=1, max_size=4
).map("/".join)
paths = st.lists(st.sampled_from(["a", "b", "ab", "c"]), min_size=1, max_size=4).map("/".join)


@pytest.fixture
def several(sandbox: Sandbox) -> Sandbox:
    """A store with every kind of field that is asked for, some of it only said in a text."""
    sandbox.memory("dec-a", "type state status candidate\n", files=("src/a.py", "docs/"))
    sandbox.memory("dec-b", source=("file:src/b.py#L1@abc", "human:Ada"), importance="0.9")
    sandbox.memory("dec-glob", files=("lib/**/*.py",), status="pinned")
    sandbox.memory("dec-old", files=("src/a.py",), status="deprecated")
    sandbox.memory(
        "sem-warn", type="semantic", category="warning", files=("src/a.py",), title="files src/b.py"
    )
    sandbox.memory("sem-a", type="semantic", files=("src/a.py",), awaiting="decision")
    sandbox.memory(
        "sem-maybe", type="semantic", status="candidate", timestamp="2026-02-25T00:00:00Z"
    )
    sandbox.memory("sta-a", type="state", tags=("files", "source"), title="files")
    sandbox.memory("sta-b", type="state", timestamp="2026-02-24T00:00:00Z")
    return sandbox


def both(sandbox: Sandbox, pick: Callable[[Tree], Iterable[Record]]) -> list[str]:
    """Pick from the files, from the index, and from the index with a change; all agree."""
    trees = [index.open(sandbox.context()) for _warm in range(2)]
    picked = [[memory.id for memory in pick(tree)] for tree in (*trees, sandbox.context().tree())]
    assert picked[0] == picked[1] == picked[2]
    return picked[0]


def test_a_field_is_found_by_its_value(several: Sandbox) -> None:
    """Not by the same words in a text; the newest come first."""
    assert both(several, lambda tree: picks.pick(tree, ("type", "state"))) == [
        "sta-b",
        "sta-a",
    ]
    assert both(several, lambda tree: picks.pick(tree, ("status", "candidate"))) == ["sem-maybe"]
    assert both(several, lambda tree: picks.pick(tree, ("awaiting", picks.ANY))) == ["sem-a"]
    assert both(several, lambda tree: picks.pick(tree, ("type", "sta"))) == []


def test_a_changed_memory_counts_as_it_is_now(several: Sandbox) -> None:
    """An older version in the index is not an answer."""
    assert both(several, lambda tree: picks.pick(tree, ("status", "candidate"))) == ["sem-maybe"]
    several.memory("sem-maybe", type="semantic")
    several.memory("sem-new", type="semantic", status="candidate")
    assert both(several, lambda tree: picks.pick(tree, ("status", "candidate"))) == ["sem-new"]


def test_thousands_are_opened_as_they_are_taken(several: Sandbox) -> None:
    """All come, each once, the newest first, by path in a second; who takes one has opened few."""
    for number in range(9):
        second = f"2026-02-2{number % 2}T00:00:00Z"
        several.memory(f"sta-{number}", type="state", timestamp=second)
    expected = ["sta-b", *(f"sta-{n}" for n in (1, 3, 5, 7, 0, 2, 4, 6, 8))]
    ids = both(several, lambda tree: picks.pick(tree, ("type", "state")))
    assert [id_ for id_ in ids if id_ != "sta-a"] == expected
    tree = index.open(several.context())
    assert tree.index is not None
    before = tree.index.count_cached
    assert next(picks.pick(tree, ("type", "state"))).id == "sta-b"
    assert tree.index.count_cached - before <= 6


def test_what_was_written_after_a_second_is_found(several: Sandbox) -> None:
    """Later, not at that second."""
    second = several.context().clock.parse_moment("2026-02-24")
    assert both(several, lambda tree: tree.written_after(second)) == ["sem-maybe"]
    assert len(both(several, lambda tree: sorted(tree.written_after(0), key=newest_first_key))) == 9


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["src/a.py"], ["dec-a", "sem-warn"]),
        (["src/b.py"], ["dec-b"]),
        (["docs/deep/x.md"], ["dec-a"]),
        (["lib/x/y.py"], ["dec-glob"]),
        (["lib/y.js", "other.py", "src/a.pyc", "src"], []),
        ([], []),
        (["docs/x.md", "src/b.py"], ["dec-a", "dec-b"]),
    ],
)
def test_decisions_and_warnings_govern_files(
    several: Sandbox, files: list[str], expected: list[str]
) -> None:
    """By path, by directory, by glob and by source; deprecated ones and others do not."""
    assert both(several, lambda tree: picks.find_ruling(tree, files)) == expected


@given(names, st.lists(paths, min_size=1, max_size=3))
def test_a_name_governs_what_its_glob_governs(entry: str, files: list[str]) -> None:
    """The quick look at directories changes no answer."""
    above = {"", *(part for path in files for part in picks.find_parents(path))}
    plain = "/".join(part for part in entry.split("/") if part not in ("", "."))
    expected = bool(plain) and any(matches_or_contains(plain, path) for path in files)
    assert picks._is_named(entry, above, files) == expected


def test_every_governed_entry_is_looked_at(several: Sandbox) -> None:
    """Every entry of a memory's lists is found through the stored lists."""
    for record in several.context().tree().records:
        for entry in list_governed_paths(record):
            if "*" not in entry and record.id in ("dec-a", "dec-b", "sem-warn"):
                path = entry.rstrip("/")
                assert record.id in both(several, lambda tree, p=path: picks.find_ruling(tree, [p]))


def record(id: str = "dec-a", body: str = "It is so.\n", **fields: FieldValue) -> Record:
    return Record(make_memory(id, body, **fields), f".memory/decision/2026-02/{id}.md", "")


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


@pytest.mark.parametrize(
    ("fields", "governs"),
    [
        ({}, 1),
        ({"category": "pattern", "files": ("src/",)}, 1),
        ({"category": "pattern", "files": ("src/",), "status": "candidate"}, 0),
        ({"category": "pattern", "source": ("file:src/a.py",)}, 0),
        ({"category": "discovery", "files": ("src/",)}, 0),
    ],
)
def test_a_convention_governs_the_files_that_it_lists(
    fields: dict[str, FieldValue], governs: int
) -> None:
    """A source is where it was seen; a file that is listed is what it is for."""
    kind = {"type": "semantic"} if fields else {}
    assert is_governing(record(**kind, **fields)) == governs
