"""Tests of journals."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.errors import MemtoolError
from memtool.sessions import journal

if TYPE_CHECKING:
    from pathlib import Path

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
ROWS = st.lists(st.dictionaries(st.text(), VALUES, max_size=4), max_size=5)


@given(ROWS)
def test_rows_are_read_as_they_were_written(rows: list[dict[str, object]]) -> None:
    """Whatever JSON can say comes back, lone surrogates and line feeds in texts included."""
    assert journal.parse(journal.write(rows)) == (rows, 0)


@given(st.binary(max_size=300))
def test_no_bytes_make_reading_fail(data: bytes) -> None:
    """Foreign bytes are counted as torn, line by line."""
    rows, torn = journal.parse(data)
    assert all(isinstance(row, dict) for row in rows)
    assert len(rows) + torn == data.count(b"\n") + bool(data.rpartition(b"\n")[2])


def test_deep_brackets_are_a_torn_line() -> None:
    """A line that would exhaust the stack is one that is torn."""
    assert journal.parse(b"[" * 100_000 + b'\n{"a":1}\n') == ([{"a": 1}], 1)


@pytest.mark.parametrize("cut", [1, 4, 7])
def test_half_a_line_is_set_aside_and_reported(tmp_path: Path, cut: int) -> None:
    """The next writer cuts it off, keeps it, says so, and everything before it is whole."""
    path = tmp_path / "j.jsonl"
    journal.append(str(path), [{"n": 1}, {"n": 2}])
    line = journal.write([{"n": 3}])
    with path.open("ab") as file:
        file.write(line[:cut])
    assert journal.read(str(path)) == ([{"n": 1}, {"n": 2}], 1)
    assert journal.append(str(path), [{"n": 4}]) == 1
    assert journal.append(str(path), [{"n": 5}]) == 0
    assert journal.read(str(path)) == ([{"n": 1}, {"n": 2}, {"n": 4}, {"n": 5}], 0)
    assert (tmp_path / "j.jsonl.torn").read_bytes() == line[:cut] + b"\n"


def test_a_journal_that_is_only_half_a_line_becomes_empty(tmp_path: Path) -> None:
    """A process that was killed at its first write leaves nothing that is believed."""
    path = tmp_path / "j.jsonl"
    path.write_bytes(b'{"n"')
    with journal.Writer(str(path)) as writer:
        assert (writer.torn, writer.size, writer.read_last()) == (1, 0, b"")


@given(st.lists(st.integers(0, 70_000), max_size=6), st.integers(1, 4))
def test_the_last_lines_are_found(sizes: list[int], count: int) -> None:
    """However long lines are, the last ones are given, whole and in order."""
    lines = [b"x" * size + b"\n" for size in sizes]
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(b"".join(lines))
        tail = journal.read_last_lines(file.fileno(), file.tell(), count)
    assert tail == b"".join(lines[-count:])


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    """The journal, and what was cut off it, are files of mode 0600 whatever the umask is."""
    path = tmp_path / "j.jsonl"
    before = os.umask(0)
    try:
        journal.append(str(path), [{"n": 1}])
        with path.open("ab") as file:
            file.write(b"half")
        journal.append(str(path), [{"n": 2}])
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(place.stat().st_mode) for place in tmp_path.iterdir()}
    assert modes == {0o600}


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_only_a_real_file_is_opened(tmp_path: Path, kind: str) -> None:
    """No link is followed, no pipe waited for, no directory mistaken."""
    path = tmp_path / "j.jsonl"
    target = tmp_path / "target"
    target.write_bytes(b"")
    if kind == "link":
        path.symlink_to(target)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    for act in (lambda: journal.append(str(path), [{}]), lambda: journal.read(str(path))):
        with pytest.raises(MemtoolError, match="in the way") as caught:
            act()
        assert caught.value.code == "symlink"
    assert target.read_bytes() == b""


def test_a_full_disk_leaves_the_journal_as_it_was(tmp_path: Path) -> None:
    """Rows are written all or not at all; the next ones fit again."""
    path = str(tmp_path / "j.jsonl")
    script = (
        "import resource, sys\n"
        "from memtool.errors import MemtoolError\n"
        "from memtool.sessions import journal\n"
        "journal.append(sys.argv[1], [{'n': 1}])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40, 40))\n"
        "try:\n"
        "    journal.append(sys.argv[1], [{'text': 'x' * 100}])\n"
        "except MemtoolError as error:\n"
        "    print(error.code, error.message)\n"
        "journal.append(sys.argv[1], [{'n': 2}])\n"
    )
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, check=True)
    assert done.stdout.startswith(b"disk ")
    assert b"nothing was changed" in done.stdout
    assert journal.read(path) == ([{"n": 1}, {"n": 2}], 0)


def test_what_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    """A file below a file is refused; an absent one is empty."""
    (tmp_path / "file").write_text("")
    assert journal.read(str(tmp_path / "absent.jsonl")) == ([], 0)
    with pytest.raises(MemtoolError):
        journal.read(str(tmp_path / "file" / "j.jsonl"))


def test_a_row_is_one_line_of_json(tmp_path: Path) -> None:
    """Any program can read a journal."""
    path = tmp_path / "j.jsonl"
    journal.append(str(path), [{"text": "a\nb\u2028c é"}])
    (line,) = path.read_text(encoding="utf-8").split("\n")[:-1]
    assert json.loads(line) == {"text": "a\nb\u2028c é"}
