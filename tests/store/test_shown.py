"""What sessions have seen: small files that many processes append to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memtool.store import shown

DAY_S = 86_400


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "memtool")


def test_what_was_added_is_read(folder: str) -> None:
    """Each session has its own; what was never noted is nothing."""
    shown.add(folder, "s1", [("dec-a", "1"), ("dec-b", "2")])
    shown.add(folder, "s1", [("dec-a", "3")])
    shown.add(folder, "s2", [("dec-c", "4")])
    assert shown.read(folder, "s1") == {("dec-a", "1"), ("dec-b", "2"), ("dec-a", "3")}
    assert shown.read(folder, "s2") == {("dec-c", "4")}
    assert shown.read(folder, "s3") == frozenset()
    shown.forget(folder, "s1")
    shown.forget(folder, "s1")
    assert shown.read(folder, "s1") == frozenset()


@pytest.mark.parametrize("name", ["../../x", "a/b", "", "é\udcff", "x" * 10_000, "starts"])
def test_any_name_of_a_session_is_a_file_inside(folder: str, name: str) -> None:
    """Hosts choose the names: they are hashed, so that none leads elsewhere or is too long."""
    shown.add(folder, name, [("dec-a", "1")])
    assert shown.read(folder, name) == {("dec-a", "1")}
    (place,) = (Path(folder) / shown.FOLDER).iterdir()
    assert place.name == shown.named(name)
    assert place.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_torn_line_costs_only_itself(folder: str, cut: int) -> None:
    """Whatever is left of a write that was killed, every whole line is read."""
    shown.add(folder, "s", [("dec-a", "1")])
    place = Path(folder) / shown.FOLDER / shown.named("s")
    with place.open("ab") as file:
        file.write(b"\ndec-torn 123456789012345678 .\n"[:cut])
    shown.add(folder, "s", [("dec-b", "2")])
    assert {("dec-a", "1"), ("dec-b", "2")} <= shown.read(folder, "s")
    assert shown.read(folder, "s") - {("dec-a", "1"), ("dec-b", "2")} <= {
        ("dec-torn", "123456789012345678")
    }


@pytest.mark.slow
def test_many_processes_add_at_once(folder: str) -> None:
    """Nothing of what sixteen processes add is lost."""
    script = (
        "import sys; from memtool.store import shown\n"
        "for n in range(20): shown.add(sys.argv[1], 's', [(f'dec-{sys.argv[2]}-{n}', 'v')])"
    )
    started = [subprocess.Popen([sys.executable, "-c", script, folder, str(number)])
               for number in range(16)]  # fmt: skip
    assert [process.wait() for process in started] == [0] * 16
    expected = {(f"dec-{one}-{n}", "v") for one in range(16) for n in range(20)}
    assert shown.read(folder, "s") == expected


def test_a_file_stops_growing(folder: str) -> None:
    """A session without end shows things again rather than fill the disk."""
    for number in range(60):
        shown.add(folder, "s", [(f"dec-{number:03}-{n:04}" + "x" * 80, "v") for n in range(100)])
    size = (Path(folder) / shown.FOLDER / shown.named("s")).stat().st_size
    assert size < shown.MOST_BYTES + 16 * 1024


def test_the_session_before_is_known(folder: str) -> None:
    """A session that goes on asks for what was before it began, not for itself."""
    assert shown.last(folder, "s1") is None
    shown.begin(folder, "s1", 100, "a" * 40)
    assert shown.last(folder, "s1") is None
    shown.begin(folder, "s2", 200, "")
    shown.begin(folder, "s1", 300, "b" * 40)
    first = shown.last(folder, "s2")
    assert first is not None
    assert (first.moment, first.head) == (100, "a" * 40)
    assert shown.last(folder, "s1") is None
    newest = shown.last(folder, "s3")
    assert newest is not None
    assert (newest.moment, newest.head) == (200, "")


def test_old_sessions_are_swept(folder: str) -> None:
    """What sessions of long ago saw, and more of them than anybody runs, does not pile up."""
    for number in range(shown.KEPT_SESSIONS + 20):
        shown.add(folder, f"s{number}", [("dec-a", "1")])
    place = Path(folder) / shown.FOLDER
    old = place / shown.named("s7")
    os.utime(old, (1_000, 1_000))
    shown.begin(folder, "new", int(old.parent.stat().st_mtime), "")
    names = {file.name for file in place.iterdir()}
    assert len(names) == shown.KEPT_SESSIONS + 1
    assert old.name not in names


def test_beginnings_do_not_pile_up(folder: str) -> None:
    """Of thousands of sessions the last ones are remembered."""
    for number in range(3 * shown.KEPT_SESSIONS):
        shown.begin(folder, f"s{number}", number, "")
    last = shown.last(folder, "next")
    assert last is not None
    assert last.moment == 3 * shown.KEPT_SESSIONS - 1
    lines = (Path(folder) / shown.FOLDER / shown.STARTS).read_text().split("\n")
    assert sum(bool(line) for line in lines) <= 2 * shown.KEPT_SESSIONS


@pytest.mark.parametrize("data", [b"", b"\0\0", b"x y z .\n", b"1 - a b .\n", b"\xff \xfe a ."])
def test_a_file_of_beginnings_may_hold_anything(folder: str, data: bytes) -> None:
    """What is no beginning is passed over."""
    place = Path(folder) / shown.FOLDER
    place.mkdir(parents=True)
    (place / shown.STARTS).write_bytes(data)
    assert shown.last(folder, "s") is None
    shown.begin(folder, "s", 5, "")
    last = shown.last(folder, "other")
    assert last is not None
    assert last.moment == 5
