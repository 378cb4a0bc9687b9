"""The cache of segments: whatever its state, the answer is the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memtool.index import analyzer, index, postings
from memtool.index.scoring import Document, question

DOCUMENTS = tuple(
    Document(f"k{n}", (("title", f"number {n}"), ("body", "git tree lock"[: 4 + 3 * n])))
    for n in range(5)
)
IDENTITY = [(document.key, f"id{n}") for n, document in enumerate(DOCUMENTS)]
Hits = list[tuple[str, float]]


class Asked:
    """Opens the index of some documents and counts how often it had to be built."""

    def __init__(self, folder: Path, count: int = 5) -> None:
        self.folder = folder
        self.built = 0
        self.note = ""
        self.count = count

    def documents(self) -> tuple[Document, ...]:
        self.built += 1
        return DOCUMENTS[: self.count]

    def hits(self) -> Hits:
        opened = index.open_index(str(self.folder), self.documents, IDENTITY[: self.count])
        found = opened.search(question("git lock 3"), 100)
        self.note = opened.note
        return [(opened.key(number), score) for number, score, _parts in found]


@pytest.fixture
def expected(tmp_path: Path) -> Hits:
    """The answer without any cache."""
    return Asked(tmp_path / "elsewhere").hits()


def stored(folder: Path) -> Path:
    return folder / "index" / index.name_of(IDENTITY)


def test_an_index_is_built_once(tmp_path: Path, expected: Hits) -> None:
    """The second question finds the files of the first, and needs no documents."""
    asked = Asked(tmp_path)
    assert (asked.hits(), asked.hits(), asked.built) == (expected, expected, 1)
    assert os.listdir(tmp_path / "index") == [index.name_of(IDENTITY)]
    assert not asked.note


def test_the_name_says_the_content(monkeypatch: pytest.MonkeyPatch) -> None:
    """Order does not count; another key, id, format or tokenizer makes another name."""
    names = {
        index.name_of(IDENTITY),
        index.name_of(reversed(IDENTITY)),
        index.name_of(IDENTITY[1:]),
        index.name_of([("k0", "id1"), *IDENTITY[1:]]),
    }
    monkeypatch.setattr(index, "TOKENIZER", "other")
    names.add(index.name_of(IDENTITY))
    monkeypatch.setattr(postings, "FORMAT", "other")
    names.add(index.name_of(IDENTITY))
    assert len(names) == 5
    assert analyzer.TOKENIZER != "other"


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def empty(file: Path) -> None:
    os.truncate(file, 0)


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    for place in range(len(data) // 2, len(data)):
        data[place] ^= 4
    file.write_bytes(data)


def as_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("damage", [Path.unlink, truncate, empty, flip, as_directory])
@pytest.mark.parametrize("name", [postings.SIDECAR, *(row[0] for row in postings.ARRAYS.values())])
def test_damaged_files_are_replaced(
    tmp_path: Path, expected: Hits, damage: Callable[[Path], None], name: str
) -> None:
    """A missing, cut or changed file costs one building, and is whole the next time."""
    asked = Asked(tmp_path)
    asked.hits()
    damage(stored(tmp_path) / name)
    assert (asked.hits(), asked.built, asked.note) == (expected, 2, "")
    assert (asked.hits(), asked.built) == (expected, 2)


def test_files_of_another_version_are_replaced(tmp_path: Path, expected: Hits) -> None:
    """A header of another format is not read."""
    asked = Asked(tmp_path)
    asked.hits()
    sidecar = stored(tmp_path) / postings.SIDECAR
    written = f"segment {postings.FORMAT} ".encode()
    sidecar.write_bytes(sidecar.read_bytes().replace(written, b"segment 0 ", 1))
    assert (asked.hits(), asked.built) == (expected, 2)


@pytest.mark.parametrize("place", ["index", "index/NAME"])
def test_a_file_in_the_way_is_no_trouble(tmp_path: Path, expected: Hits, place: str) -> None:
    """Where a directory should be and a file is, the answer is the same."""
    blocked = tmp_path / place.replace("NAME", index.name_of(IDENTITY))
    blocked.parent.mkdir(exist_ok=True)
    blocked.write_text("in the way")
    asked = Asked(tmp_path)
    assert asked.hits() == expected
    assert bool(asked.note) == (place == "index")


def test_an_unwritable_cache_gives_one_note(expected: Hits) -> None:
    """Where nothing can be written, the index lives in memory, and the user hears why."""
    asked = Asked(Path("/proc/none"))
    assert asked.hits() == expected
    assert asked.note.startswith("the search index is not kept: /proc/none/index: ")


def test_only_the_last_used_stay(tmp_path: Path) -> None:
    """Old segments and what killed writers left go when a new one comes."""
    folder = tmp_path / "index"
    for age in range(8):
        old = folder / f"{age:032}"
        old.mkdir(parents=True)
        (old / postings.SIDECAR).write_text("old")
        os.utime(old, (10_000 - age, 10_000 - age))
    (folder / ".tmp-1-dead").mkdir()
    os.utime(folder / ".tmp-1-dead", (10_000, 10_000))
    (folder / ".tmp-2-alive").mkdir()
    Asked(tmp_path).hits()
    others = [f"{age:032}" for age in range(index.KEPT - 1)]
    assert sorted(os.listdir(folder)) == sorted([*others, ".tmp-2-alive", stored(tmp_path).name])


def test_nothing_is_an_index_too(tmp_path: Path) -> None:
    """No documents at all are built, kept and asked like any others."""
    asked = Asked(tmp_path, count=0)
    assert (asked.hits(), asked.hits(), asked.built, asked.note) == ([], [], 1, "")


def test_processes_may_build_at_the_same_time(tmp_path: Path, expected: Hits) -> None:
    """Racing builders all answer, one directory stays, and nothing is left over."""
    code = f"""
import sys
from memtool.index import index
from memtool.index.scoring import Document, question
documents = [Document(f"k{{n}}", (("title", f"number {{n}}"),
             ("body", "git tree lock"[: 4 + 3 * n]))) for n in range(5)]
sys.stdin.readline()
opened = index.open_index({str(tmp_path)!r}, lambda: documents,
                         [(d.key, f"id{{n}}") for n, d in enumerate(documents)])
print([(opened.key(n), s) for n, s, _ in opened.search(question("git lock 3"), 100)], opened.note)
"""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _racer in range(3)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    outputs = [racer.communicate()[0].strip() for racer in racers]
    assert outputs == [str(expected)] * 3
    assert os.listdir(tmp_path / "index") == [index.name_of(IDENTITY)]
