from __future__ import annotations

from memtool.commands._render import WIDEST, columns


def test_rows_are_aligned_without_spaces_at_their_end() -> None:
    """Cells of a column begin at the same place; a column without text takes no room."""
    assert columns([("a", "", "bb", ""), ("aaa", "", "b", "c")]) == ["a    bb", "aaa  b   c"]
    assert columns([]) == []


def test_one_long_cell_pushes_only_its_own_row() -> None:
    """A very long cell does not move the columns of other rows further than the limit."""
    rows = columns([("x" * 200, "end"), ("y", "end")])
    assert rows[1].index("end") == WIDEST + 2
