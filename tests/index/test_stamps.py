"""Stamps: what a worktree looked like comes back as it was written."""

from __future__ import annotations

import os

import pytest

from memtool.index import stamps
from memtool.index.schema import SCHEMA
from memtool.index.stamps import NO_MEMORY, Folder, Stamps
from memtool.memory.schema import Problem
from memtool.store.state import Rows, State


def folder(path: str, *names: str, at: int = 5, problems: tuple[Problem, ...] = ()) -> Folder:
    files = {name: ((10 + n, 20 + n, at + n, 40 + n), n - 1) for n, name in enumerate(names)}
    return Folder(path, (0, 1, at, 3), files, problems)


def write_state(*folders: Folder, taken_ns: int = 1 << 62) -> State:
    def write(rows: Rows) -> None:
        for row in folders:
            stamps.write(rows, row, taken_ns)

    return State.create_in_memory(SCHEMA, write)


def test_folders_and_files_come_back() -> None:
    """Names may be any bytes but a slash; folders are sorted by path."""
    problem = Problem("a/link", 0, "symlink", "it is\na link", "git rm", "", "warning")
    rows = [
        folder("a", "z\udcfe.md", "b\nc.md", "é.md", problems=(problem, problem)),
        folder("a-b", "x.md"),
        folder("a/c"),
    ]
    with write_state(*reversed(rows)).read() as reader:
        stored = Stamps(reader)
        assert stored.files == 4
        assert list(stored.folders) == ["a", "a-b", "a/c"]
        assert stored.problems == {"a": (problem, problem)}
        assert stored.doubtful == {}
        for row in rows:
            restored = stored.read_folder(row.path)
            assert (restored.path, restored.status, restored.files, restored.problems) == (
                row.path,
                row.status,
                row.files,
                row.problems,
            )
            names, stats = stored.read_statuses(row.path)
            assert names == sorted(row.files)
            assert stats == [part for name in names for part in row.files[name][0]]
            for name, (status, _number) in row.files.items():
                assert stored.find_status(f"{row.path}/{name}") == status
        assert stored.find_status("a/none.md") is None
        assert stored.find_status("none/x.md") is None


def test_a_folder_is_replaced_or_forgotten_as_a_whole() -> None:
    """A rewritten folder has no old rows, and a forgotten one has none."""
    problem = Problem("a/link", 0, "symlink", "it is a link")
    state = write_state(folder("a", "x.md", problems=(problem,)), folder("b", "y.md"))

    def change(rows: Rows) -> None:
        stamps.write(rows, folder("a", "z.md"), 1 << 62)
        stamps.forget(rows, "b")

    state.write(change)
    with state.read() as rows:
        stored = Stamps(rows)
        assert list(stored.folders) == ["a"]
        assert list(stored.read_folder("a").files) == ["z.md"]
        assert (stored.problems, stored.files) == ({}, 1)


def test_what_was_new_is_doubtful() -> None:
    """Files and folders whose status is younger than the reading by less than two seconds."""
    now_ns = 100 * stamps.DOUBT_NS
    new, old = now_ns - stamps.DOUBT_NS + 1, now_ns - stamps.DOUBT_NS - 9
    folders = (
        folder("a", "x.md", "y.md", at=new - 1),
        folder("b", "z.md", at=old),
        folder("c", at=new),
    )
    with write_state(*folders, taken_ns=now_ns).read() as rows:
        assert Stamps(rows).doubtful == {"a": {"y.md"}, "c": frozenset()}


@pytest.mark.parametrize("size", [1 << 40, 1 << 63, (1 << 64) - 1])
def test_any_inode_can_be_kept(size: int) -> None:
    """Some file systems number files up to 64 bits."""
    row = (33188, size, 1, 1, 0, 0, 5, 1, 2, 3)
    status = os.stat_result(row, {"st_mtime_ns": 1, "st_ctime_ns": 2})
    stat = stamps.to_stat(status)
    with write_state(Folder("a", stat, {"x.md": (stat, NO_MEMORY)})).read() as rows:
        assert Stamps(rows).read_folder("a").files == {"x.md": (stat, NO_MEMORY)}
