"""The cache: a damaged file is refused, a writer never leaves half of one, and nothing raises."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool import tables
from memtool.store import cache
from memtool.store.cache import CorruptCache, Sections

KIND = "sample 1"
TYPES = {"names": "B", "numbers": "I", "rows": "B"}
SECTIONS = {"names": b"one two", "numbers": bytes(range(12)), "rows": b"with sums of their own"}
DATA = cache.pack(KIND, [3, -1], SECTIONS, ["rows"])


def contents(data: bytes) -> dict[str, bytes]:
    sections = Sections(memoryview(data), KIND, TYPES)
    assert sections.numbers == [3, -1]
    found = {name: bytes(sections[name]) for name in ("names", "numbers")}
    return found | {"rows": bytes(sections.unchecked("rows"))}


@given(st.lists(st.integers()), st.dictionaries(st.sampled_from("abc"), st.binary(max_size=40)))
def test_what_was_packed_comes_back(numbers: list[int], sections: dict[str, bytes]) -> None:
    """Numbers and sections of any size, empty ones too; every section begins at a multiple of 8."""
    data = cache.pack(KIND, numbers, sections)
    found = Sections(memoryview(data), KIND, dict.fromkeys(sections, "B"))
    assert found.numbers == numbers
    assert {name: bytes(found[name]) for name in sections} == sections
    assert len(data) % 8 == 0


def test_damage_is_never_read() -> None:
    """A flipped bit of any byte raises CorruptCache, or lies in padding and unguarded rows."""
    rows = DATA.index(SECTIONS["rows"])
    for at in range(len(DATA)):
        bent = DATA[:at] + bytes([DATA[at] ^ 0x20]) + DATA[at + 1 :]
        try:
            found = contents(bent)
        except CorruptCache:
            continue
        assert found == contents(DATA) or rows <= at < rows + len(SECTIONS["rows"])


@pytest.mark.parametrize("cut", range(0, len(DATA), 5))
def test_a_file_that_is_cut_or_longer_is_refused(cut: int) -> None:
    """Every byte of the file counts."""
    for data in (DATA[:cut], DATA + b"x" * (cut + 1)):
        with pytest.raises(CorruptCache):
            contents(data)


@pytest.mark.parametrize("kind", ["sample 2", "sample", "other 1"])
def test_another_kind_or_version_is_refused(kind: str) -> None:
    """A file is read by the code that wrote its version alone."""
    with pytest.raises(CorruptCache):
        Sections(memoryview(DATA), kind, TYPES)
    with pytest.raises(CorruptCache):
        Sections(memoryview(DATA), KIND, TYPES | {"more": "B"})


@pytest.mark.parametrize("place", ["missing", "empty", "folder"])
def test_what_cannot_be_mapped_is_corrupt(tmp_path: Path, place: str) -> None:
    """A missing file, an empty one and a folder are what a damaged one is."""
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(CorruptCache):
        cache.mapped(str(tmp_path / place))
    assert cache.read(str(tmp_path / place), KIND) is None


def test_a_small_value_comes_back_until_it_is_damaged(tmp_path: Path) -> None:
    """Bytes are kept whole, or are None."""
    assert cache.keep(str(tmp_path), "name", KIND, b"a\0b") == ""
    path = tmp_path / "name"
    assert cache.read(str(path), KIND) == b"a\0b"
    assert cache.damages(str(path)) == []
    path.write_bytes(path.read_bytes().replace(b"a", b"b", 1))
    assert cache.read(str(path), KIND) is None
    assert cache.damages(str(path)) == [str(path)]
    assert cache.damages(str(tmp_path / "none")) == []


def test_nothing_that_is_written_raises(tmp_path: Path) -> None:
    """Where a file is in the way a note says so; a folder makes way, and nothing is left behind."""
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "taken" / "name").mkdir(parents=True)
    assert cache.write(str(tmp_path / "file"), "x", DATA).startswith(f"{tmp_path}/file: ")
    assert cache.write(str(tmp_path / "taken"), "name", DATA) == ""
    assert os.listdir(tmp_path / "taken") == ["name"]
    assert cache.write("/proc/none", "x", DATA)
    cache.sweep(str(tmp_path / "none"))
    cache.drop(str(tmp_path / "none"))
    cache.touch(str(tmp_path / "none"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_gives_a_note(tmp_path: Path) -> None:
    """A read-only cache is no error."""
    tmp_path.chmod(0o555)
    assert cache.write(str(tmp_path), "x", DATA).endswith("Permission denied")


def test_leftovers_of_killed_writers_go(tmp_path: Path) -> None:
    """Files and folders that are older than an hour; what is being written now stays."""
    for name, age_s in (("old", 2 * cache.STALE_S), ("new", 1)):
        for path in (tmp_path / f".tmp-{name}", tmp_path / f".tmp-{name}-folder" / "inner"):
            path.parent.mkdir(exist_ok=True)
            path.write_text("x")
        for path in (tmp_path / f".tmp-{name}", tmp_path / f".tmp-{name}-folder"):
            when = path.stat().st_mtime - age_s
            os.utime(path, (when, when))
    cache.write(str(tmp_path), "x", DATA)
    assert sorted(os.listdir(tmp_path)) == [".tmp-new", ".tmp-new-folder", "x"]


def test_a_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    """Whatever moment a process ends at, a reader finds the old bytes or the new ones."""
    cache.write(str(tmp_path), "x", DATA)
    code = (
        "import os, sys\nfrom memtool.store import cache\n"
        "os.replace = lambda *_, **__: os._exit(9)\n"
        f"cache.write({str(tmp_path)!r}, 'x', b'new')\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert (tmp_path / "x").read_bytes() == cache.sealed(str(tmp_path / "x"), DATA)
    assert len(os.listdir(tmp_path)) == 2


def test_many_writers_leave_one_whole_file(tmp_path: Path) -> None:
    """Writers and readers at once: every reader sees a whole file."""

    def work(number: int) -> bytes | None:
        cache.keep(str(tmp_path), "x", KIND, b"%d" % number * 1000)
        return cache.read(str(tmp_path / "x"), KIND)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(200)))
    assert all(data is not None and len(set(data.split())) == 1 for data in found)
    assert os.listdir(tmp_path) == ["x"]


def test_digests_tell_texts_apart() -> None:
    """Where one text ends counts, and any path has a digest."""
    assert cache.digest("a", "b") != cache.digest("ab")
    assert len(cache.digest("\udcff", size=16)) == 32
    assert cache.code_version(["store"], 1) != cache.code_version(["store"], 2)


def test_the_version_of_code_follows_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict that other rows led to is not used."""
    before = cache.code_version(["redaction"])
    monkeypatch.setattr(tables, "FOLDER", "no-such-folder")
    assert cache.code_version(["redaction"]) != before
