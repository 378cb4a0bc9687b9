"""Bases: rows are those of one commit, or nothing."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from memtool.store import bases, facts
from memtool.store.bases import DRIFT, BasisRow

if TYPE_CHECKING:
    from memtool.store.state import Row

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PATHS = st.binary(min_size=1).map(os.fsdecode)
CELLS = st.tuples(
    TEXTS, TEXTS, TEXTS, TEXTS, TEXTS, st.binary(), st.binary(), st.binary(), st.just(0)
)
NOW = 2_000_000_000


def basis(head: str = "head", worktree: bytes = b"", used: int = NOW) -> BasisRow:
    return BasisRow(0, "scope", "", head, worktree, used)


def cells(text: str) -> Row:
    return (text, "", "", "", "", b"", b"", b"", 0)


def added(place: Path, wanted: BasisRow, *paths: str) -> BasisRow:
    stored = bases.add(str(place), DRIFT, wanted, {path: cells(wanted.head) for path in paths})
    assert stored is not None
    return stored


def heads(place: Path) -> list[str]:
    """The commits that the database has rows of, and those of the rows themselves."""
    _exact, older = bases.find_stored(str(place), basis("none"))
    rows = facts.read(str(place), lambda rows: [row[2] for row in rows.find(DRIFT, "1")])
    assert sorted(candidate.head for candidate in older) == sorted(map(str, rows or []))
    return [candidate.head for candidate in older]


@given(st.dictionaries(PATHS, CELLS, max_size=9), PATHS)
def test_rows_come_back_by_path(rows: dict[str, Row], other: str) -> None:
    """Any path, any text; of a path without a row there is none."""
    with tempfile.TemporaryDirectory() as place:
        stored = bases.add(place, DRIFT, basis(), rows)
        assert stored is not None
        assert bases.find_stored(place, basis()) == (stored, [])
        expected = {path: list(row) for path, row in rows.items()}
        assert bases.read(place, DRIFT, stored) == expected
        assert bases.read(place, DRIFT, stored, [*rows, other]) == expected


def test_many_paths_are_asked_for_at_once(tmp_path: Path) -> None:
    """More than one statement takes."""
    paths = [f"{number}.md" for number in range(2_000)]
    stored = added(tmp_path, basis(), *paths)
    rows = bases.read(str(tmp_path), DRIFT, stored, paths[::2])
    assert rows is not None
    assert sorted(rows) == sorted(paths[::2])


def test_rows_that_moved_on_are_read_and_written_by_nobody(tmp_path: Path) -> None:
    """Whoever has the old commit in hand finds nothing, and changes nothing."""
    place = str(tmp_path)
    old = added(tmp_path, basis(), "a", "b")
    new = bases.move(place, DRIFT, old, "next", lambda _rows: {"b": cells("new")})
    assert new == old.replace(head="next", used=new.used if new else 0)
    assert bases.read(place, DRIFT, old) is None
    bases.write(place, DRIFT, old, {"a": cells("late")})
    assert bases.move(place, DRIFT, old, "other", lambda _rows: {}) is None
    assert new is not None
    assert bases.read(place, DRIFT, new) == {"a": list(cells("head")), "b": list(cells("new"))}


def test_the_bases_that_were_used_last_stay(tmp_path: Path) -> None:
    """Four of each worktree, and none that was unused for a month."""
    for number in range(6):
        added(tmp_path, basis(f"own {number}", b"own", NOW + number), "a")
    added(tmp_path, basis("other", b"other", NOW - 1), "a")
    assert heads(tmp_path) == ["own 5", "own 4", "own 3", "own 2", "other"]
    added(tmp_path, basis("late", b"late", NOW + facts.MAX_UNUSED_S + 3), "a")
    assert heads(tmp_path) == ["late", "own 5", "own 4", "own 3"]
    added(tmp_path, basis("late", b"late", NOW + facts.MAX_UNUSED_S + 4), "a")
    assert heads(tmp_path)[0] == "late"


def test_the_own_worktree_comes_first(tmp_path: Path) -> None:
    """Its rows can move on; of the others, those that were used last have more that holds."""
    for number, worktree in enumerate((b"own", b"x", b"y")):
        added(tmp_path, basis(f"{number}", worktree, NOW + number), "a")
    _exact, older = bases.find_stored(str(tmp_path), basis("none", b"own"))
    assert [row.worktree for row in older] == [b"own", b"y", b"x"]
