"""The cache: a damaged file is refused, a writer never leaves half of one, and nothing raises."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool import tables
from memtool.store import cache

KIND = "sample 1"


@given(st.binary(max_size=99))
def test_damage_is_never_read(value: bytes) -> None:
    """A flipped bit, a truncated or a longer file is not a value; nor is another kind."""
    with tempfile.TemporaryDirectory() as folder:
        cache.write(folder, "name", KIND, value)
        path = Path(folder, "name")
        data = path.read_bytes()
        assert cache.read(str(path), KIND) == value
        assert cache.read(str(path), "sample 2") is None
        for at in range(len(data)):
            for bent in (data[:at] + bytes([data[at] ^ 0x20]) + data[at + 1 :], data[:at]):
                path.write_bytes(bent)
                assert cache.read(str(path), KIND) is None
        path.write_bytes(data + b"x")
        assert cache.read(str(path), KIND) is None


@pytest.mark.parametrize("place", ["missing", "empty", "folder"])
def test_what_is_no_file_has_no_value(tmp_path: Path, place: str) -> None:
    """A missing file, an empty one and a folder are what a damaged one is."""
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    assert cache.read(str(tmp_path / place), KIND) is None


def test_a_file_in_the_place_of_another_has_no_value(tmp_path: Path) -> None:
    """Its seal names the file and its folder."""
    cache.write(str(tmp_path / "a"), "x", KIND, b"value")
    for place in ("a/y", "b/x"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_bytes((tmp_path / "a/x").read_bytes())
        assert cache.read(str(tmp_path / place), KIND) is None


def test_a_small_value_comes_back_until_it_is_damaged(tmp_path: Path) -> None:
    """Bytes are kept whole, or are None."""
    assert cache.write(str(tmp_path), "name", KIND, b"a\0b") == ""
    path = tmp_path / "name"
    assert cache.read(str(path), KIND) == b"a\0b"
    assert cache.find_damaged(str(path)) == []
    path.write_bytes(path.read_bytes().replace(b"a", b"b", 1))
    assert cache.read(str(path), KIND) is None
    assert cache.find_damaged(str(path)) == [str(path)]
    assert cache.find_damaged(str(tmp_path / "none")) == []


def test_nothing_that_is_written_raises(tmp_path: Path) -> None:
    """Where a file is in the way a note says so; a folder makes way, and nothing is left behind."""
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "taken" / "name").mkdir(parents=True)
    assert cache.write(str(tmp_path / "file"), "x", KIND, b"").startswith(f"{tmp_path}/file: ")
    assert cache.write(str(tmp_path / "taken"), "name", KIND, b"") == ""
    assert os.listdir(tmp_path / "taken") == ["name"]
    assert cache.write("/proc/none", "x", KIND, b"")
    cache.sweep(str(tmp_path / "none"))
    cache.drop(str(tmp_path / "none"))
    cache.touch(str(tmp_path / "none"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_gives_a_note(tmp_path: Path) -> None:
    """A read-only cache is not an error."""
    tmp_path.chmod(0o555)
    assert cache.write(str(tmp_path), "x", KIND, b"old").endswith("Permission denied")


def test_leftovers_of_killed_writers_go(tmp_path: Path) -> None:
    """Files and folders older than an hour; current writes stay."""
    for name, age_s in (("old", 2 * cache.STALE_AGE_S), ("new", 1)):
        for path in (tmp_path / f".tmp-{name}", tmp_path / f".tmp-{name}-folder" / "inner"):
            path.parent.mkdir(exist_ok=True)
            path.write_text("x")
        for path in (tmp_path / f".tmp-{name}", tmp_path / f".tmp-{name}-folder"):
            when = path.stat().st_mtime - age_s
            os.utime(path, (when, when))
    cache.write(str(tmp_path), "x", KIND, b"old")
    assert sorted(os.listdir(tmp_path)) == [".tmp-new", ".tmp-new-folder", "x"]


def test_a_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    """Whatever moment a process ends at, a reader finds the old bytes or the new ones."""
    cache.write(str(tmp_path), "x", KIND, b"old")
    code = (
        "import os, sys\nfrom memtool.store import cache\n"
        "os.replace = lambda *_, **__: os._exit(9)\n"
        f"cache.write({str(tmp_path)!r}, 'x', {KIND!r}, b'new')\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert cache.read(str(tmp_path / "x"), KIND) == b"old"
    assert len(os.listdir(tmp_path)) == 2


def test_many_writers_leave_one_whole_file(tmp_path: Path) -> None:
    """Writers and readers at once: every reader sees a whole file."""

    def work(number: int) -> bytes | None:
        cache.write(str(tmp_path), "x", KIND, b"%d" % number * 1000)
        return cache.read(str(tmp_path / "x"), KIND)

    with ThreadPoolExecutor(8) as pool:
        contents = list(pool.map(work, range(200)))
    assert all(data is not None and len(set(data.split())) == 1 for data in contents)
    assert os.listdir(tmp_path) == ["x"]


def test_digests_tell_texts_apart() -> None:
    """Where one text ends counts, and any path has a digest."""
    assert cache.digest("a", "b") != cache.digest("ab")
    assert len(cache.digest("\udcff", size=16)) == 32
    assert cache.compute_code_version(["store"], 1) != cache.compute_code_version(["store"], 2)


def test_the_version_of_code_follows_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict that other rows led to is not used."""
    before = cache.compute_code_version(["redaction"])
    monkeypatch.setattr(tables, "FOLDER", "no-such-folder")
    assert cache.compute_code_version(["redaction"]) != before
