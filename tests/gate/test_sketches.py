from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memtool.gate import sketches
from memtool.gate.sketches import Damaged, Row, Table, build


def row(at: int, *numbers: int, supersedes: tuple[str, ...] = ()) -> Row:
    return Row(f"sem-{at}", f".memory/m{at}.md", "confirmed", supersedes, f"{at:040x}",
               at << 32 | 7, numbers)  # fmt: skip


def opened(rows: list[Row]) -> Table:
    return Table(memoryview(build(rows)))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(0, 50), unique=True).map(sorted), max_size=40))
def test_a_table_finds_what_was_put_in(lists: list[list[int]]):
    """Every number leads to the rows that hold it, in order, and to no other."""
    table = opened([row(at, *numbers) for at, numbers in enumerate(lists)])
    for number in range(52):
        expected = [at for at, numbers in enumerate(lists) if number in numbers]
        assert table.holding(number) == expected
    assert [list(found.numbers) for found in table.rows()] == lists


def test_a_table_of_several_blocks_is_searched_whole():
    """Numbers at the edges of blocks, and one that fills several, are found."""
    rows = [row(at, 5, 1000 + at) for at in range(2000)]
    table = opened(rows)
    assert table.holding(5) == list(range(2000))
    assert [table.holding(1000 + at) for at in (0, 511, 512, 1999)] == [[0], [511], [512], [1999]]
    assert table.holding((1 << 32) - 1) == []


def test_fingerprints_ids_and_successors_are_found():
    """They are compared in full, not only by their keys."""
    table = opened([row(1, 3), row(2, 3, supersedes=("sem-1", "sem-gone"))])
    assert table.saying(1 << 32 | 7) == [0]
    assert table.saying(1 << 32 | 8) == []
    assert table.newer("sem-1") == [1]
    assert table.newer("sem-2") == []
    assert [table.called(f"sem-{at}") for at in (1, 2, 3)] == [[0], [1], []]
    assert table.row(1).supersedes == ("sem-1", "sem-gone")


def test_the_same_rows_give_the_same_bytes():
    """A table depends on nothing but its rows."""
    rows = [row(at, at, at + 1) for at in range(5)]
    assert build(rows) == build(list(rows))


def test_an_empty_table_is_a_table():
    """A tree without memories has nothing to find."""
    table = opened([])
    assert table.holding(1) == []
    assert table.newer("sem-1") == table.called("sem-1") == []
    assert list(table.rows()) == []


def test_every_damaged_byte_is_noticed_or_harmless():
    """An answer from a damaged file is the right one, or Damaged."""
    rows = [row(at, at % 7, 100 + at, supersedes=(f"sem-{at - 1}",)) for at in range(9)]
    data = build(rows)
    whole = opened(rows)
    expected = [whole.holding(3), whole.saying(3 << 32 | 7), whole.newer("sem-3"),
                whole.called("sem-5")]  # fmt: skip
    for at in range(len(data)):
        broken = data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :]
        try:
            table = Table(memoryview(broken))
            answers = [table.holding(3), table.saying(3 << 32 | 7), table.newer("sem-3"),
                       table.called("sem-5")]  # fmt: skip
            assert [table.row(number) for number in answers[0]] == [whole.row(3)]
        except Damaged:
            continue
        assert answers == expected, at


@pytest.mark.parametrize("data", [b"", b"x", b"\0" * 500, b"twins1-little".ljust(200, b"\0")])
def test_what_is_no_table_is_damaged(tmp_path: Path, data: bytes):
    """Empty, short, foreign and older files are not read."""
    place = tmp_path / "file"
    place.write_bytes(data)
    with pytest.raises(Damaged):
        Table.open(str(place))


def test_cut_tables_are_damaged():
    """A table that was not written to its end is none."""
    data = build([row(1, 2)])
    for length in range(len(data)):
        with pytest.raises(Damaged):
            Table(memoryview(data[:length]))


def test_a_missing_file_is_damaged(tmp_path: Path):
    """Whoever asks makes it."""
    with pytest.raises(Damaged):
        Table.open(str(tmp_path / "nothing"))


def test_only_the_tables_last_used_stay(tmp_path: Path):
    """The cache does not grow with every commit."""
    folder = str(tmp_path / "twins")
    for at in range(6):
        name = f"{sketches.FORMAT}-{at}"
        assert sketches.store(folder, name, build([]), kept=3) == ""
        os.utime(tmp_path / "twins" / name, (at, at))
    assert sketches.tables(folder) == [f"{sketches.FORMAT}-{at}" for at in (5, 4, 3)]
    assert len(os.listdir(folder)) == 3


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path):
    """The reason is returned, nothing is raised."""
    (tmp_path / "twins").write_text("a file")
    assert sketches.store(str(tmp_path / "twins"), "twins2-x", b"", kept=3).endswith(
        ("Not a directory", "File exists")
    )
    assert sketches.tables(str(tmp_path / "twins")) == []
