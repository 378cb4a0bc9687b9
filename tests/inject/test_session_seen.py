"""Memories that sessions have seen: small files that many processes append to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memtool.inject import session_seen

DAY_S = 86_400


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "memtool")


def last(folder: str, session: str) -> session_seen.Start | None:
    """The beginning of the session before this one."""
    return next(reversed(session_seen.find_earlier(folder, session)), None)


def test_what_was_added_is_read(folder: str) -> None:
    """Each session has its own; an unknown session has seen nothing."""
    session_seen.add(folder, "s1", [("dec-a", "1"), ("dec-b", "2")])
    session_seen.add(folder, "s1", [("dec-a", "3")])
    session_seen.add(folder, "s2", [("dec-c", "4")])
    assert session_seen.read(folder, "s1") == {("dec-a", "1"), ("dec-b", "2"), ("dec-a", "3")}
    assert session_seen.read(folder, "s2") == {("dec-c", "4")}
    assert session_seen.read(folder, "s3") == frozenset()
    session_seen.forget(folder, "s1")
    session_seen.forget(folder, "s1")
    assert session_seen.read(folder, "s1") == frozenset()


@pytest.mark.parametrize("name", ["../../x", "a/b", "", "é\udcff", "x" * 10_000, "starts"])
def test_any_name_of_a_session_is_a_file_inside(folder: str, name: str) -> None:
    """Hosts choose the names: they are hashed, so that none leads elsewhere or is too long."""
    session_seen.add(folder, name, [("dec-a", "1")])
    assert session_seen.read(folder, name) == {("dec-a", "1")}
    (place,) = (Path(folder) / session_seen.FOLDER).iterdir()
    assert place.name == session_seen.hash_session(name)
    assert place.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_torn_line_costs_only_itself(folder: str, cut: int) -> None:
    """Whatever is left of a write that was killed, every whole line is read."""
    session_seen.add(folder, "s", [("dec-a", "1")])
    place = Path(folder) / session_seen.FOLDER / session_seen.hash_session("s")
    with place.open("ab") as file:
        file.write(b"\ndec-torn 123456789012345678 .\n"[:cut])
    session_seen.add(folder, "s", [("dec-b", "2")])
    assert {("dec-a", "1"), ("dec-b", "2")} <= session_seen.read(folder, "s")
    assert session_seen.read(folder, "s") - {("dec-a", "1"), ("dec-b", "2")} <= {
        ("dec-torn", "123456789012345678")
    }


@pytest.mark.slow
def test_many_processes_add_at_once(folder: str) -> None:
    """Nothing of what sixteen processes add is lost."""
    script = (
        "import sys; from memtool.inject import session_seen\n"
        "for n in range(20): session_seen.add(sys.argv[1], 's', [(f'dec-{sys.argv[2]}-{n}', 'v')])"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", script, folder, str(number)])
        for number in range(16)
    ]
    assert [process.wait() for process in started] == [0] * 16
    expected = {(f"dec-{worker}-{n}", "v") for worker in range(16) for n in range(20)}
    assert session_seen.read(folder, "s") == expected


def test_a_file_stops_growing(folder: str) -> None:
    """A session without end shows things again rather than fill the disk."""
    for number in range(60):
        session_seen.add(
            folder, "s", [(f"dec-{number:03}-{n:04}" + "x" * 80, "v") for n in range(100)]
        )
    size = (Path(folder) / session_seen.FOLDER / session_seen.hash_session("s")).stat().st_size
    assert size < session_seen.MAX_BYTES + 16 * 1024


def test_the_session_before_is_known(folder: str) -> None:
    """A session that goes on asks for what was before it began, not for itself."""
    assert last(folder, "s1") is None
    session_seen.begin(folder, "s1", 100, "a" * 40)
    assert last(folder, "s1") is None
    session_seen.begin(folder, "s2", 200, "")
    session_seen.begin(folder, "s1", 300, "b" * 40)
    first = last(folder, "s2")
    assert first is not None
    assert (first.moment, first.head) == (100, "a" * 40)
    assert last(folder, "s1") is None
    newest = last(folder, "s3")
    assert newest is not None
    assert (newest.moment, newest.head) == (200, "")


def test_old_sessions_are_swept(folder: str) -> None:
    """Notes of old sessions, and of too many of them, are deleted."""
    for number in range(session_seen.KEPT_SESSIONS + 20):
        session_seen.add(folder, f"s{number}", [("dec-a", "1")])
    place = Path(folder) / session_seen.FOLDER
    old = place / session_seen.hash_session("s7")
    os.utime(old, (1_000, 1_000))
    session_seen.begin(folder, "new", int(old.parent.stat().st_mtime), "")
    names = {file.name for file in place.iterdir()}
    assert len(names) == session_seen.KEPT_SESSIONS + 1
    assert old.name not in names


def test_beginnings_do_not_pile_up(folder: str) -> None:
    """Of thousands of sessions the last ones are remembered."""
    for number in range(3 * session_seen.KEPT_SESSIONS):
        session_seen.begin(folder, f"s{number}", number, "")
    newest = last(folder, "next")
    assert newest is not None
    assert newest.moment == 3 * session_seen.KEPT_SESSIONS - 1
    lines = (Path(folder) / session_seen.FOLDER / session_seen.STARTS).read_text().split("\n")
    assert sum(bool(line) for line in lines) <= 2 * session_seen.KEPT_SESSIONS


@pytest.mark.parametrize("data", [b"", b"\0\0", b"x y z .\n", b"1 - a b .\n", b"\xff \xfe a ."])
def test_a_file_of_beginnings_may_hold_anything(folder: str, data: bytes) -> None:
    """Invalid rows are skipped."""
    place = Path(folder) / session_seen.FOLDER
    place.mkdir(parents=True)
    (place / session_seen.STARTS).write_bytes(data)
    assert last(folder, "s") is None
    session_seen.begin(folder, "s", 5, "")
    newest = last(folder, "other")
    assert newest is not None
    assert newest.moment == 5
