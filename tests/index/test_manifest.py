"""States: what a worktree looked like comes back as it was written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memtool.index import manifest, reader, stored_fields
from memtool.index.manifest import NO_MEMORY, Folder, Manifest
from memtool.memory.schema import Problem
from memtool.store import cache
from memtool.store.cache import CorruptCache

NOTHING = (stored_fields.pack([], {}), reader.pack_texts([]))


def folder(path: str, *names: str, at: int = 5, problems: tuple[Problem, ...] = ()) -> Folder:
    files = {name: ((10 + n, 20 + n, at + n, 40 + n), n - 2) for n, name in enumerate(names)}
    return Folder(path, (0, 1, at, 3), files, problems)


def packed(*folders: Folder, taken_ns: int = 10**19) -> bytes:
    basis = ("key", "segment", (3, 1))
    return manifest.pack(basis, min(taken_ns, 1 << 62), {f.path: f for f in folders}, None, NOTHING)


def test_folders_and_files_come_back() -> None:
    """Names may be any bytes but a slash; folders are sorted by path, files by name."""
    problem = Problem("a/link", 0, "symlink", "it is\na link", "git rm", "", "warning")
    rows = [
        folder("a-b", "x.md"),
        folder("a", "z\udcfe.md", "b\nc.md", "é.md", problems=(problem, problem)),
        folder("a/c"),
    ]
    found = Manifest(memoryview(packed(*rows)))
    assert (found.key, found.segment, found.files) == ("key", "segment", 4)
    assert set(found.dead) == {1, 3}
    assert found.folders == ["a", "a-b", "a/c"]
    assert found.problems == {"a": (problem, problem)}
    assert found.doubtful == {}
    assert found.carrying == ["a", "a-b"]
    for row in rows:
        number = found.place_of(row.path)
        assert number is not None
        one = found.folder(number)
        assert (one.path, one.status, one.files, one.problems) == (
            row.path, row.status, row.files, row.problems)  # fmt: skip
        names, stats = found.listed(number)
        assert names == sorted(row.files)
        assert stats == [part for name in names for part in row.files[name][0]]
        for name, (status, _slot) in row.files.items():
            assert found.status_of(f"{row.path}/{name}") == status
    assert found.status_of("a/none.md") is None
    assert found.status_of("none/x.md") is None
    assert found.place_of("b") is None


def test_unchanged_folders_are_taken_from_the_state_before() -> None:
    """The new state is the same as if they had been listed again."""
    problem = Problem("a/link", 0, "symlink", "it is a link")
    one, other = folder("a", "x.md", "y.md", problems=(problem,)), folder("b", "z.md")
    before = Manifest(memoryview(packed(one, other)))
    basis = ("key", "segment", (3, 1))
    changed = folder("b", "new.md")
    after = manifest.pack(basis, 1 << 62, {"b": changed}, (before, [0]), NOTHING)
    kept = Manifest(memoryview(after))
    plain = Manifest(memoryview(packed(one, changed)))
    assert kept.folders == plain.folders
    assert [kept.folder(n).files for n in (0, 1)] == [plain.folder(n).files for n in (0, 1)]
    assert (kept.problems, kept.files) == (plain.problems, plain.files)


def test_a_new_folder_finds_its_place_among_unchanged_ones() -> None:
    """A state that takes over some folders is as one made of all of them."""
    rows = [folder(path, f"{path}.md") for path in ("a", "b", "d", "e", "f")]
    before = Manifest(memoryview(packed(*rows)))
    basis = ("key", "segment", (3, 1))
    new, changed = folder("c", "1.md", "2.md"), folder("e")
    both = {"c": new, "e": changed}
    after = Manifest(
        memoryview(manifest.pack(basis, 1 << 62, both, (before, [0, 1, 2, 4]), NOTHING))
    )
    expected = Manifest(memoryview(packed(rows[0], rows[1], new, rows[2], changed, rows[4])))
    assert after.folders == expected.folders
    for number in range(6):
        assert after.raw(number) == expected.raw(number)
        assert after.status(number) == expected.status(number)


def test_what_was_new_is_doubtful() -> None:
    """Files and folders whose status is younger than the reading by less than two seconds."""
    taken = 100 * manifest.DOUBT_NS
    new, old = taken - manifest.DOUBT_NS + 1, taken - manifest.DOUBT_NS - 9
    rows = (
        folder("a", "x.md", "y.md", at=new - 1),
        folder("b", "z.md", at=old),
        folder("c", at=new),
    )
    found = Manifest(memoryview(packed(*rows, taken_ns=taken)))
    assert found.doubtful == {"a": ("y.md",), "c": ()}


def test_a_damaged_state_is_none(tmp_path: Path) -> None:
    """Any flipped bit shows when it is read, or stays without effect."""
    raw = packed(folder("a", "x.md", "y.md"), folder("b", "z.md"))
    whole = Manifest(memoryview(raw))
    expected = [whole.folder(n).files for n in (0, 1)]
    damaged = 0
    for place in range(len(raw)):
        data = bytearray(raw)
        data[place] ^= 1 << (place % 8)
        try:
            found = Manifest(memoryview(bytes(data)))
            assert (found.key, found.folders) == ("key", ["a", "b"])
            assert [found.folder(n).files for n in (0, 1)] == expected
        except CorruptCache:
            damaged += 1
    assert damaged > 100
    assert manifest.load(str(tmp_path)) is None
    (tmp_path / "memtool").mkdir()
    (tmp_path / manifest.FILE).write_bytes(b"")
    assert manifest.load(str(tmp_path)) is None


def test_leftovers_of_killed_writers_are_swept(tmp_path: Path) -> None:
    """The next writer removes what is older than an hour, and nothing else."""
    (tmp_path / "memtool").mkdir()
    for name, age_s in (("old", 2 * cache.STALE_S), ("new", 1)):
        left = tmp_path / "memtool" / f"{cache.TEMP_PREFIX}{name}"
        left.write_text("x")
        now = left.stat().st_mtime
        os.utime(left, (now - age_s, now - age_s))
    assert manifest.store(str(tmp_path), packed(folder("a"))) == ""
    assert sorted(path.name for path in (tmp_path / "memtool").iterdir()) == [
        f"{cache.TEMP_PREFIX}new", "manifest"]  # fmt: skip
    kept = manifest.load(str(tmp_path))
    assert kept is not None
    assert kept.folders == ["a"]


def test_what_cannot_be_written_gives_a_note(tmp_path: Path) -> None:
    """The state is then not kept, and nothing else happens."""
    (tmp_path / "memtool").write_text("in the way")
    assert "is not kept" in manifest.store(str(tmp_path), packed(folder("a")))


@pytest.mark.parametrize("size", [1 << 40, 1 << 63, (1 << 64) - 1])
def test_any_inode_can_be_kept(size: int) -> None:
    """Some file systems number files up to 64 bits."""
    rows = (33188, size, 1, 1, 0, 0, 5, 1, 2, 3)
    status = os.stat_result(rows, {"st_mtime_ns": 1, "st_ctime_ns": 2})
    found = manifest.stat_of(status)
    raw = packed(Folder("a", found, {"x.md": (found, NO_MEMORY)}))
    assert Manifest(memoryview(raw)).folder(0).files == {"x.md": (found, NO_MEMORY)}
