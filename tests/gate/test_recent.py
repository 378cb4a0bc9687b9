from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Sandbox
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memtool.commands.check import check
from memtool.gate import recent
from memtool.gate.sketches import Row

TEXT = st.text(st.characters(exclude_characters="\0\n", codec="utf-8"), max_size=9)
ROWS = st.lists(
    st.builds(
        Row,
        id=TEXT,
        path=TEXT.map(lambda text: f".memory/{text}.md"),
        status=st.sampled_from(["confirmed", "deleted"]),
        supersedes=st.lists(TEXT.filter(bool), max_size=2).map(tuple),
        oid=st.sampled_from(["1" * 40, "2" * 40]),
        fingerprint=st.integers(0, (1 << 64) - 1),
        numbers=st.sets(st.integers(0, (1 << 32) - 1), max_size=4).map(sorted).map(tuple),
    ),
    max_size=6,
    unique_by=lambda row: (row.path, row.oid),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(ROWS, ROWS)
def test_what_was_added_is_loaded(tmp_path: Path, first: list[Row], second: list[Row]) -> None:
    """Every row comes back as it was, of several additions the last one, and nothing unasked."""
    path = tmp_path / "recent"
    path.unlink(missing_ok=True)
    recent.add(str(path), first)
    recent.add(str(path), second)
    expected = {(row.path, row.oid): row for row in [*first, *second]}
    assert recent.load(str(path), [*expected, ("other", "3" * 40)]) == expected
    assert recent.load(str(path), []) == {}


def test_damaged_lines_are_no_rows(tmp_path: Path) -> None:
    """Each byte is in a checksum: a row is as it was, or is not there."""
    path = tmp_path / "recent"
    row = Row("dec-a", ".memory/dec-a.md", "confirmed", ("dec-b",), "1" * 40, 7, (1, 2))
    recent.add(str(path), [row, row.replace(path=".memory/dec-c.md")])
    data = path.read_bytes()
    wanted = [(row.path, row.oid)]
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x15]) + data[at + 1 :])
        assert list(recent.load(str(path), wanted).values()) in ([], [row])
        path.write_bytes(data[:at])
        assert list(recent.load(str(path), wanted).values()) in ([], [row])


def test_a_path_with_a_line_feed_is_not_kept(tmp_path: Path) -> None:
    """It would be two lines; that memory is read each time."""
    path = tmp_path / "recent"
    row = Row("dec-a", ".memory/a\n/dec-a.md", "confirmed", (), "1" * 40, 7, ())
    recent.add(str(path), [row])
    assert not path.exists()


def test_a_long_file_is_begun_again(tmp_path: Path) -> None:
    """The cache does not grow with history."""
    path = tmp_path / "recent"
    path.write_bytes(b"x" * (recent.MOST_BYTES + 1))
    row = Row("dec-a", ".memory/dec-a.md", "confirmed", (), "1" * 40, 7, ())
    recent.add(str(path), [row])
    assert path.stat().st_size < 200
    assert list(recent.load(str(path), [(row.path, row.oid)]).values()) == [row]


@pytest.mark.parametrize("harm", ["gone", "cut", "unwritable", "directory"])
def test_the_answer_does_not_depend_on_recent_rows(sandbox: Sandbox, harm: str) -> None:
    """A twin of a memory that was committed after the table is found, whatever became of them."""
    sandbox.memory("dec-a", "All about one, and seven more.\n")
    sandbox.commit()
    sandbox.memory("dec-b", "Queues are drained at night by one worker.\n", title="Queues")
    sandbox.git("add", ".")
    assert check(sandbox.context(), staged=True).problems == ()
    sandbox.commit()
    folder = sandbox.path / ".git/memtool/twins"
    (path,) = [place for place in folder.iterdir() if place.name.startswith("recent-")]
    if harm == "cut":
        os.truncate(path, 30)
    elif harm != "unwritable":
        path.unlink()
    if harm == "directory":
        path.mkdir()
    elif harm == "unwritable":
        path.write_bytes(b"")
        path.chmod(0o400)
    sandbox.memory("dec-c", "Queues are drained at night by one worker.\n", title="Queues")
    sandbox.git("add", ".")
    for _time in range(2):
        (problem,) = check(sandbox.context(), staged=True).problems
        assert (problem.id, problem.code) == ("dec-c", "duplicate")
