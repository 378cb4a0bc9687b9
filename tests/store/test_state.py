"""Derived data in SQLite: rows are whole or refused, and whatever happens costs time, no answer."""

from __future__ import annotations

import fcntl
import inspect
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store.small_disk import ALONE, needs_small_disk

from memtool.index.schema import SCHEMA
from memtool.store import state as owner
from memtool.store.cache import CorruptCacheError
from memtool.store.facts import FACTS
from memtool.store.state import Rows, Schema, State, Table, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGE = Path(__file__).parents[2] / "docs" / "state.md"
NOBODY = 65534
CELLS = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
)


def row(number: int, data: bytes = b"data") -> tuple[str, bytes, bytes, bytes, int]:
    return "sample", b"basis", b"%06d" % number, data, number


def nothing(_rows: Rows) -> None:
    pass


def forty(rows: Rows) -> None:
    for number in range(40):
        rows.put("kept", *row(number, b"%d " % number * 60))


def contents(state: State) -> dict[object, tuple[object, ...]]:
    with state.read() as rows:
        return {stored[2]: stored for stored in rows.find("kept", "1 ORDER BY key")}


def made(place: Path, fill: Callable[[Rows], None] = forty) -> State:
    state = State.rebuild(str(place), FACTS, fill)
    assert state.note == ""
    return state


def opened(place: Path) -> State:
    state = State.open(str(place), FACTS)
    assert state is not None
    return state


SCENE = """
from __future__ import annotations
import os, sys, time
from memtool.store.facts import FACTS
from memtool.store.state import Rows, State
place = sys.argv[1]
""" + "".join(map(inspect.getsource, (row, nothing, forty, contents, made, opened)))
"""What processes of their own begin with: these functions, without all that tests import."""


def run(code: str, *args: object) -> subprocess.Popen[str]:
    """Start a process with the names of `SCENE`."""
    words = [sys.executable, "-c", SCENE + code, *map(str, args)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def output(process: subprocess.Popen[str]) -> str:
    text = process.communicate()[0]
    assert process.returncode == 0
    return text


@given(st.lists(CELLS, min_size=3, max_size=3))
def test_a_row_comes_back_as_it_was_put(cells: list[owner.Cell]) -> None:
    """Each type and value, from a table without types of its own."""
    schema = Schema(1, (Table("sample", "name TEXT, a, b, c", 1),))
    state = State.create_in_memory(schema, lambda rows: rows.put("sample", "x", *cells))
    with state.read() as rows:
        stored = rows.get("sample", "x")
        assert stored == ("x", *cells)
        assert list(map(type, stored[1:])) == list(map(type, cells))
        assert rows.get("sample", "y") is None


def test_rows_are_replaced_and_removed_by_key(tmp_path: Path) -> None:
    """A second `put` replaces; a key that is not whole removes all rows that begin with it."""
    state = made(tmp_path)

    def change(rows: Rows) -> None:
        rows.put("kept", *row(1, b"new"))
        rows.put("kept", "other", *row(1)[1:])
        rows.remove("kept", *row(2)[:3])

    assert state.write(change) == ""
    stored = contents(opened(tmp_path))
    assert len(stored) == 39
    assert state.write(lambda rows: rows.remove("kept", "sample", b"basis")) == ""
    with opened(tmp_path).read() as rows:
        assert [cells[0] for cells in rows.find("kept", "1")] == ["other"]


def test_rows_are_found_by_an_index() -> None:
    """A wide table keeps large rows, and a condition on a column is answered by its index."""
    table = Table("sample", "n INTEGER, a INT, b", 1, is_wide=True, indexes=("a, n WHERE a > 1",))
    rows = [(n, n % 4, bytes(9_000)) for n in range(40)]
    state = State.create_in_memory(
        Schema(1, (table,)), lambda writer: writer.put_all("sample", rows)
    )
    with state.read() as reader:
        assert list(reader.find("sample", "n < 40")) == rows
        statement = "SELECT n FROM sample WHERE a > 1 AND a > 2"
        assert [n for (n,) in reader.select(statement)] == list(range(3, 40, 4))
        ((*_numbers, plan),) = reader.select(f"EXPLAIN QUERY PLAN {statement}")
        assert "sample_a" in str(plan)


def test_a_copy_changes_by_itself(tmp_path: Path) -> None:
    """A copy in memory has the same rows, and what is written to it stays there."""
    state = made(tmp_path)
    copy = state.copy_to_memory()
    before = contents(state)
    assert contents(copy) == before
    assert copy.write(lambda rows: rows.remove("kept")) == ""
    assert not contents(copy)
    assert contents(state) == before


def test_a_new_database_may_begin_with_a_copy(tmp_path: Path) -> None:
    """It has the rows of the other one, in a file of its own, and what is written on top."""
    state = made(tmp_path / "a")
    extra = ("sample", b"basis", b"other", b"more", 1)
    copy = State.rebuild(
        str(tmp_path / "b"), FACTS, lambda rows: rows.put("kept", *extra), copy_of=state
    )
    assert len(contents(copy)) == len(contents(state)) + 1
    again = State.open(str(tmp_path / "b"), FACTS)
    assert again is not None
    assert contents(again) == contents(copy)
    assert State.find_damaged_files(str(tmp_path / "b")) == []


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
@pytest.mark.parametrize("damage", [Path.mkdir, lambda path: path.symlink_to("/nowhere/at/all")])
def test_what_is_in_the_place_of_a_log_is_damage(
    tmp_path: Path, suffix: str, damage: Callable[[Path], None]
) -> None:
    """Otherwise the database could never be written again, nor repaired."""
    state = made(tmp_path)
    state.close()
    damage(Path(state.path + suffix))
    with pytest.raises(CorruptCacheError):
        State.open(str(tmp_path), FACTS)
    assert State.find_damaged_files(str(tmp_path)) == [state.path]


def test_only_the_databases_last_used_stay(tmp_path: Path) -> None:
    """With `most`, the least recently used of a folder go."""
    for n in range(5):
        State.rebuild(str(tmp_path), FACTS, forty, key=str(n), max_databases=2)
        for path in tmp_path.glob("*-*"):
            status = path.stat()
            os.utime(path, (status.st_atime - 100, status.st_mtime - 100))
    there = [n for n in range(5) if State.open(str(tmp_path), FACTS, key=str(n)) is not None]
    assert there == [3, 4]


def test_opening_never_creates(tmp_path: Path) -> None:
    """No folder, no pointer, or a database that was swept: None, and nothing is written."""
    assert State.open(str(tmp_path / "none"), FACTS) is None
    assert os.listdir(tmp_path) == []
    path = Path(made(tmp_path).path)
    path.unlink()
    assert State.open(str(tmp_path), FACTS) is None
    assert not path.exists()


def test_another_format_is_absent_and_keeps_its_own(tmp_path: Path) -> None:
    """Two versions and two settings never share a database, nor drop that of the other."""
    made(tmp_path)
    variants = (
        (Schema(FACTS.format + 1, FACTS.tables), ""),
        (Schema(FACTS.format, (*FACTS.tables, Table("more", "a INT", 1))), ""),
        (FACTS, "settings"),
    )
    for schema, key in variants:
        assert State.open(str(tmp_path), schema, key=key) is None
        State.rebuild(str(tmp_path), schema, nothing, key=key)
        assert State.open(str(tmp_path), schema, key=key) is not None
    assert len(contents(opened(tmp_path))) == 40


def test_a_reader_sees_one_state(tmp_path: Path) -> None:
    """Another process changes rows between two reads of one snapshot; the next one has them."""
    state = made(tmp_path)
    with state.read() as rows:
        first = rows.get("kept", *row(0)[:3])
        output(run("print(opened(place).write(lambda rows: rows.remove('kept')))", tmp_path))
        assert rows.get("kept", *row(0)[:3]) == first
        assert len(list(rows.find("kept", "1"))) == 40
        assert state.write(lambda rows: rows.put("kept", *row(7))) == ""
        assert len(list(rows.find("kept", "1"))) == 40
    assert list(contents(state)) == [b"000007"]


@pytest.mark.parametrize("is_in_memory", [True, False])
def test_a_change_that_raises_undoes_all(tmp_path: Path, *, is_in_memory: bool) -> None:
    """No half of a transaction is ever seen."""
    state = State.create_in_memory(FACTS, forty) if is_in_memory else made(tmp_path)
    before = contents(state)

    def change(rows: Rows) -> None:
        rows.remove("kept")
        rows.put("kept", *row(99))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        state.write(change)
    assert contents(state) == before
    assert state.write(lambda rows: rows.put("kept", *row(99))) == ""
    assert len(contents(state)) == 41


def test_a_writer_without_the_lock_goes_on(tmp_path: Path) -> None:
    """It is refused at once, or waits for as long as it is told; readers never wait."""
    state = made(tmp_path)
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    for wait_s in (0.0, 0.02):
        note = state.write(forty, wait_s=wait_s)
        assert note == f"{tmp_path}: locked by another process"
    assert len(contents(opened(tmp_path))) == 40
    alone = State.rebuild(str(tmp_path), FACTS, forty, instead_of=state, wait_s=0.0)
    assert alone.note == f"{tmp_path}: locked by another process"
    assert len(contents(alone)) == 40
    release = threading.Timer(0.02, os.close, [handle])
    release.start()
    assert state.write(nothing, wait_s=60.0) == ""
    release.join()


ADD = """
def add(rows):
    found = rows.get("kept", *row(0)[:3])
    rows.put("kept", *row(0)[:4], found[4] + 1)
state = opened(place)
print([note for note in (state.write(add, wait_s=60.0) for _ in range(25)) if note])
"""


def test_several_writers_lose_nothing(tmp_path: Path) -> None:
    """Each looks again under the lock, so that the sum is exact, and none fails as locked."""
    state = made(tmp_path, lambda rows: rows.put("kept", *row(0)))
    writers = [run(ADD, tmp_path) for _ in range(4)]
    assert [output(writer) for writer in writers] == ["[]\n"] * 4
    with state.read() as rows:
        assert rows.get("kept", *row(0)[:3]) == (*row(0)[:4], 100)


BUILD = """
def fill(rows):
    print("built", flush=True)
    forty(rows)
    time.sleep(0.2)
state = State.open(str(place), FACTS) or State.rebuild(str(place), FACTS, fill)
print(len(contents(state)), repr(state.note))
"""


def test_one_of_several_processes_builds(tmp_path: Path) -> None:
    """The others wait for it, and take what it has built."""
    builders = [run(BUILD, tmp_path) for _ in range(4)]
    texts = sorted(output(builder) for builder in builders)
    assert texts == ["40 ''\n"] * 3 + ["built\n40 ''\n"]


def test_a_newer_database_leaves_its_readers_alone(tmp_path: Path) -> None:
    """It has a name of its own; who reads the old one goes on, and sees that it is not current."""
    old = made(tmp_path)
    with old.read() as rows:
        new = State.rebuild(str(tmp_path), FACTS, nothing, instead_of=old)
        assert new.path != old.path
        assert len(list(rows.find("kept", "1"))) == 40
    assert (old.is_current(), new.is_current()) == (False, True)
    assert old.write(forty) == f"{old.path}: another process has built a newer one"
    assert contents(opened(tmp_path)) == {}
    third = State.rebuild(str(tmp_path), FACTS, forty, instead_of=old)
    assert third.path == new.path


def test_what_nobody_points_at_is_swept(tmp_path: Path) -> None:
    """Unfinished files of killed builders after a minute, other settings after two weeks."""
    state = made(tmp_path)
    now = time.time()
    ages = {"young.db": 30, "old.db": 90, "old.db-wal": 90, "old.db-journal": 90}
    for name, age_s in ages.items():
        (tmp_path / name).write_bytes(b"half")
        os.utime(tmp_path / name, (now - age_s, now - age_s))
    other = State.rebuild(str(tmp_path), FACTS, forty, key="unused")
    day_s = 86_400
    for path in tmp_path.glob(Path(other.path).name.rsplit("-", 2)[0] + "*"):
        os.utime(path, (now - 15 * day_s, now - 15 * day_s))
    os.utime(state.path, (now - 15 * day_s, now - 15 * day_s))
    newer = State.rebuild(str(tmp_path), FACTS, forty, key="third")
    names = {path.name for path in tmp_path.glob("*.db")}
    assert names == {Path(state.path).name, Path(newer.path).name, "young.db"}
    assert not list(tmp_path.glob("old.db*"))
    assert State.open(str(tmp_path), FACTS, key="unused") is None


def test_a_pointer_in_use_stays(tmp_path: Path) -> None:
    """Opening notes the use, once a day."""
    path = Path(made(tmp_path).path)
    pointer = path.with_name(path.name.rsplit("-", 2)[0])
    old_s = time.time() - 13 * 86_400
    os.utime(pointer, (old_s, old_s))
    opened(tmp_path)
    assert pointer.stat().st_mtime > old_s + 86_400


def test_no_flipped_bit_changes_a_row(tmp_path: Path) -> None:
    """Each row that comes back was put; a missing one costs work, not an answer."""
    state = made(tmp_path)
    expected = contents(state)
    state.close()
    path = Path(state.path)
    whole = path.read_bytes()
    counts = {"noticed": 0, "harmless": 0}
    chance = random.Random(29)
    for _ in range(400):
        at = chance.randrange(len(whole) * 8)
        bent = bytearray(whole)
        bent[at // 8] ^= 1 << at % 8
        path.write_bytes(bent)
        try:
            bent_state = State.open(str(tmp_path), FACTS)
            if bent_state is None:
                continue
            with bent_state.read() as rows:
                for number in range(40):
                    stored = rows.get("kept", *row(number)[:3])
                    assert stored in (None, expected[row(number)[2]])
            found_rows = contents(bent_state)
            assert found_rows.items() <= expected.items()
            counts["harmless"] += 1
        except (CorruptCacheError, UnavailableError):
            counts["noticed"] += 1
    assert counts["noticed"] > 60
    assert counts["harmless"] > 10


def test_doctor_reads_everything(tmp_path: Path) -> None:
    """A whole database has no damage; a flipped bit of a value, and of a page, is named."""
    state = made(tmp_path)
    assert state.find_damage() == ""
    state.close()
    path = Path(state.path)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"17 17 17 17", b"17 17 17 18", 1))
    assert opened(tmp_path).find_damage() == "a row of the table kept is damaged"
    path.write_bytes(data[:5000] + bytes(3000) + data[8000:])
    assert opened(tmp_path).find_damage() != ""


def test_a_dropped_database_is_made_anew(tmp_path: Path) -> None:
    """After damage the folder forgets it; the next one has a new name."""
    state = made(tmp_path)
    state.drop()
    assert State.open(str(tmp_path), FACTS) is None
    new = made(tmp_path)
    assert new.path != state.path
    assert len(contents(new)) == 40


def swap_database(mine: Path, other: Path) -> None:
    shutil.copyfile(other, mine)


def swap_log(mine: Path, other: Path) -> None:
    shutil.copyfile(other, f"{other}.copy")
    for suffix in ("-wal", "-shm"):
        shutil.copyfile(f"{other}{suffix}", f"{mine}{suffix}")


@pytest.mark.parametrize("swap", [swap_database, swap_log])
def test_a_file_of_another_database_gives_no_row(
    tmp_path: Path, swap: Callable[[Path, Path], None]
) -> None:
    """The name of a file is in its header and in the checksum of each row."""
    mine, other = made(tmp_path / "mine", nothing), made(tmp_path / "other", nothing)
    mine.close()
    other.write(forty)  # the log is there as long as `other` is open
    swap(Path(mine.path), Path(other.path))
    with pytest.raises(CorruptCacheError):
        contents(opened(tmp_path / "mine"))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/nowhere/at/all")


def randomize(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(9000))


@pytest.mark.parametrize("damage", [cut, empty, make_folder, make_link, randomize])
@pytest.mark.parametrize("is_pointer", [True, False])
def test_a_damaged_file_is_replaced(
    tmp_path: Path, damage: Callable[[Path], None], *, is_pointer: bool
) -> None:
    """Whatever is in the place of the database or of its pointer, a newer one takes its place."""
    state = made(tmp_path)
    state.close()
    path = Path(state.path)
    damage(path.with_name(path.name.rsplit("-", 2)[0]) if is_pointer else path)
    try:
        damaged = State.open(str(tmp_path), FACTS)
        assert damaged is None or contents(damaged) == {}
    except CorruptCacheError:
        pass
    new = State.rebuild(str(tmp_path), FACTS, forty)
    if new.path == state.path:  # the half of a file that opens is found by its reader
        new.drop()
        new = State.rebuild(str(tmp_path), FACTS, forty)
    assert new.note == ""
    assert len(contents(opened(tmp_path))) == 40


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    """Rows are kept in memory instead, with the reason."""
    (tmp_path / "file").write_text("in the way")
    state = State.rebuild(str(tmp_path / "file"), FACTS, forty)
    assert "file: " in state.note
    assert len(contents(state)) == 40
    assert state.is_current()
    assert State.open(str(tmp_path / "file"), FACTS) is None


KILLED = """
if sys.argv[2] == "build":
    def fill(rows):
        print("begun", flush=True)
        for number in range(20000):
            rows.put("kept", *row(number))
    while True:
        State.rebuild(str(place), FACTS, fill, instead_of=State.open(str(place), FACTS))
state = opened(place)
print("begun", flush=True)
step = 0
while True:
    step += 1
    def change(rows):
        for number in range(40):
            rows.put("kept", *row(number, b"%d" % step))
    state.write(change)
"""


@pytest.mark.parametrize("what", ["build", "write"])
def test_a_killed_writer_leaves_no_half(tmp_path: Path, what: str) -> None:
    """After SIGKILL at any moment all rows are of one transaction, and the lock is free."""
    chance = random.Random(what)
    made(tmp_path).close()
    for _ in range(8):
        victim = run(KILLED, tmp_path, what)
        assert victim.stdout is not None
        victim.stdout.readline()
        time.sleep(chance.random() / 20)
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
        state = opened(tmp_path)
        assert state.find_damage() == ""
        stored = contents(state)
        assert len(stored) in (40, 20_000)
        if what == "write":
            assert len({cells[3] for cells in stored.values()}) in (1, 40)
        assert state.write(nothing) == ""
        state.close()


TMPFS = """
set -e
mount -t tmpfs -o size=200k tmpfs "$1"
"$2" -B -c "$3" "$1"
mount -o remount,bind,ro "$1"
"$2" -B -c "$4" "$1"
"""
FULL = (
    SCENE
    + """
def much(rows):
    for number in range(100, 400):
        rows.put("kept", *row(number, bytes(2000)))
state = made(place)
before = sorted(os.listdir(place))
print(state.write(much))
print(len(contents(state)))
alone = State.rebuild(str(place), FACTS, much, instead_of=state)
print(alone.note, len(contents(alone)))
print(sorted(os.listdir(place)) == before, state.is_current())
state.close()
state = opened(place)
print(state.find_damage() == "", len(contents(state)))
"""
)
READ_ONLY = (
    SCENE
    + """
state = opened(place)
print(len(contents(state)), state.write(forty) != "")
alone = State.rebuild(str(place), FACTS, forty, instead_of=state)
print(alone.note != "", len(contents(alone)))
"""
)


@needs_small_disk
def test_a_full_or_read_only_disk_costs_nothing(tmp_path: Path) -> None:
    """The good file stays, the unfinished one goes, and what does not fit is in memory."""
    words = [*ALONE, "sh", "-c", TMPFS, "sh", str(tmp_path), sys.executable]
    done = subprocess.run([*words, FULL, READ_ONLY], capture_output=True, text=True, check=False)
    full = "database or disk is full"
    expected = [full, "40", f"{full} 300", "True True", "True 40", "40 True", "True 40"]
    assert done.stdout.splitlines() == expected, done.stderr


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that other users reach."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.mark.root
@pytest.mark.parametrize("has_log", [True, False])
def test_another_user_reads_what_is_whole(shared: Path, *, has_log: bool) -> None:
    """In a folder that is not theirs: the rows, or nothing if only a writer could read the log."""
    place = shared / "place"
    state = made(place)
    state.write(lambda rows: rows.put("kept", *row(99)))
    saved = {name: Path(name).read_bytes() for name in (state.path, f"{state.path}-wal")}
    state.close()
    if has_log:  # as a process leaves it that ends without closing
        for name, data in saved.items():
            Path(name).write_bytes(data)
    place.chmod(0o755)
    for path in place.iterdir():
        path.chmod(0o644)
    before = sorted(os.listdir(place))
    child = os.fork()
    if not child:
        code = 9
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            theirs = State.open(str(place), FACTS)
            alone = State.rebuild(str(place), FACTS, forty, instead_of=theirs)
            assert alone.note
            assert len(contents(alone)) == 40
            if theirs is None:
                code = 1
            elif len(contents(theirs)) == 41 and theirs.write(forty):
                code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == int(has_log)
    assert sorted(os.listdir(place)) == before
    assert len(contents(opened(place))) == 41


def test_a_fork_opens_its_own(tmp_path: Path) -> None:
    """SQLite's locks are those of a process: using the parent's connection would break them."""
    state = made(tmp_path)
    child = os.fork()
    if not child:
        code = 9
        try:
            state.read()
        except RuntimeError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_many_keys_are_asked_for_together(tmp_path: Path) -> None:
    """More than one statement takes; those without a row are left out."""
    state = made(tmp_path)
    keys = [b"%06d" % number for number in range(-2, 1_200, 2)]
    with state.read() as rows:
        stored_keys = [cells[2] for cells in rows.find_many("kept", ("sample", b"basis"), keys)]
        assert sorted(map(str, stored_keys)) == [
            str(b"%06d" % number) for number in range(0, 40, 2)
        ]
        assert list(rows.find_many("kept", ("other", b"basis"), keys)) == []


def test_a_thread_has_one_open_database_until_another_is_current(tmp_path: Path) -> None:
    """Readers share a connection, and one snapshot if they nest; a fork finds it closed."""
    assert State.open_shared(str(tmp_path), FACTS) is None
    first = made(tmp_path)
    state = State.open_shared(str(tmp_path), FACTS)
    assert state is not None
    with state.read() as rows:
        first.write(lambda rows: rows.put("kept", *row(99)))
        with state.read() as inner:
            assert inner.get("kept", *row(99)[:3]) is None
        assert rows.get("kept", *row(99)[:3]) is None
    with state.read() as rows:
        assert rows.get("kept", *row(99)[:3]) == row(99)
    assert State.open_shared(str(tmp_path), FACTS) is state
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(State.open_shared, str(tmp_path), FACTS).result() is not state
    State.rebuild(str(tmp_path), FACTS, forty, instead_of=first)
    newer = State.open_shared(str(tmp_path), FACTS)
    assert newer is not None
    assert newer is not state
    child = os.fork()
    if not child:
        own = State.open_shared(str(tmp_path), FACTS)
        os._exit(0 if own is not None and own is not newer and len(contents(own)) == 40 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    shutil.rmtree(tmp_path)
    assert State.open_shared(str(tmp_path), FACTS) is None


def test_a_name_that_is_no_address(tmp_path: Path) -> None:
    """Folders may have any name that the file system takes."""
    for name in (b"a b?c#d%41", b"\xff\xfe"):
        place = os.path.join(str(tmp_path), os.fsdecode(name))
        assert State.rebuild(place, FACTS, forty).note == ""
        state = State.open(place, FACTS)
        assert state is not None
        assert len(contents(state)) == 40


def test_nothing_is_loaded_where_nothing_is_kept(tmp_path: Path) -> None:
    """Asking for a database that is not there loads no SQLite."""
    code = (
        "import sys\nfrom memtool.store.facts import FACTS\n"
        "from memtool.store.state import State\n"
        "print(State.open(sys.argv[1], FACTS), 'sqlite3' in sys.modules)"
    )
    words = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "None False\n"


def test_the_page_has_the_schema() -> None:
    """The page on derived data shows each table as the code creates it, and no other."""
    shown = re.findall(r"(?m)^CREATE .*$", PAGE.read_text(encoding="utf-8"))
    tables = (*FACTS.tables, *SCHEMA.tables)
    assert [line.rstrip(";") for line in shown] == [
        sql for table in tables for sql in table.statements
    ]
