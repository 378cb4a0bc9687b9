"""The form of every table of data: whoever adds a row needs to know no code, and can break none."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import memtool
from memtool import tables
from memtool.plain_toml import read_plain

ROOT = Path(memtool.__file__).parent
FILES = sorted(ROOT.glob(f"*/{tables.FOLDER}/*"))
TABLES = [path for path in FILES if path.suffix == ".tsv"]
UNSORTED = {
    "importing/field_names",
    "redaction/announcing_words",
    "sessions/failure_lines",
    "sessions/hindrances",
}
"""Tables whose order means something."""


def name_of(path: Path) -> str:
    return f"{path.parts[-3]}/{path.stem}"


def test_there_are_tables_and_nothing_else() -> None:
    """A file is found by the name that code asks for."""
    assert TABLES
    assert {path.suffix for path in FILES} <= {".tsv", ".toml"}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_says_what_it_is(path: Path) -> None:
    """It is UTF-8 with plain line ends, and begins with a comment."""
    text = path.read_bytes().decode()
    assert text.startswith("# ")
    assert text.endswith("\n")
    assert "\r" not in text
    assert [line for line in text.split("\n") if line.startswith("#") and len(line) > 100] == []
    if path.suffix == ".toml":
        assert read_plain(text) == tomllib.loads(text)


@pytest.mark.parametrize("path", TABLES, ids=name_of)
def test_a_table_has_named_columns_and_whole_rows(path: Path) -> None:
    """Every row has a field for every column, without spaces around it, and occurs once."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    columns = lines[0].split("\t")
    rows = tables.read_rows(name_of(path))
    assert ["\t".join(row) for row in rows] == lines[1:]
    assert all(column.isidentifier() and column.islower() for column in columns)
    assert [row for row in rows if len(row) != len(columns) or not row[0]] == []
    assert [row for row in rows if any(field != field.strip() for field in row)] == []
    assert sorted(map(tuple, rows)) == sorted({tuple(row) for row in rows})
    if name_of(path) not in UNSORTED:
        assert rows == sorted(rows)
