"""The indexes of revisions: whatever their state, the answer is the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from memtool.index import index, keys, open_index, revision
from memtool.index.index import open_catalog
from memtool.index.scoring import parse_question
from memtool.memory import timestamps
from memtool.search.features import Facts
from memtool.search.retrieve import Retriever
from memtool.store.cache import CorruptCacheError
from tests.conftest import NOW

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Sandbox

Hits = list[tuple[str, float]]


@pytest.fixture
def filled(sandbox: Sandbox) -> Sandbox:
    """Twelve committed memories."""
    for number in range(12):
        sandbox.memory(f"dec-{number:02}", f"{('git tree', 'lock')[number % 2]} {number}.\n")
    sandbox.commit()
    return sandbox


def hits(sandbox: Sandbox, *, cached: bool = True) -> Hits:
    """Return the hits of HEAD; a damaged index is dropped, and asked once more."""
    context = sandbox.context(**({} if cached else {"MEMTOOL_NO_CACHE": "1"}))

    def ask() -> Hits:
        catalog = open_catalog(context, "HEAD")
        facts = Facts(catalog, timestamps.parse(NOW), dict)
        best = Retriever(facts).find_best(parse_question("git lock 3"), 30, facts.is_current)
        return sorted((match.record.path, match.raw) for match in best)

    try:
        return ask()
    except CorruptCacheError:
        index.drop(context.repository)
        return ask()


def folder(sandbox: Sandbox) -> Path:
    return sandbox.path / ".git/memtool/trees"


def stored(sandbox: Sandbox) -> Path:
    (path,) = folder(sandbox).glob("*.db")
    return path


def forbid_building(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memtool.index.build.build", lambda *_a: pytest.fail("built again"))


def test_an_index_is_built_once(filled: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second question finds the files of the first."""
    first = hits(filled)
    assert len(first) == 12
    forbid_building(monkeypatch)
    assert hits(filled) == first == hits(filled)


def test_a_commit_begins_with_the_index_of_the_worktree(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what differs is indexed, and nothing of the worktree is left."""
    expected = hits(filled, cached=False)
    filled.memory("dec-03", "git lock lock 3.\n")
    filled.memory("dec-99", "git lock 3.\n")
    index.open(filled.context())
    forbid_building(monkeypatch)
    assert hits(filled) == expected


def test_without_a_cache_nothing_is_kept(filled: Sandbox) -> None:
    """The answer is the same, and nothing is written."""
    uncached = hits(filled, cached=False)
    assert not folder(filled).exists()
    assert hits(filled) == uncached


def test_the_name_says_the_content() -> None:
    """Order does not count; another path, id or key makes another name."""
    files = [("a", "1"), ("b", "2")]
    names = {
        keys.revision_key("key", files),
        keys.revision_key("key", reversed(files)),
        keys.revision_key("key", files[1:]),
        keys.revision_key("key", [("a", "2"), ("b", "1")]),
        keys.revision_key("other", files),
    }
    assert len(names) == 4


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def empty(file: Path) -> None:
    os.truncate(file, 0)


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    for place in range(len(data) // 2, len(data)):
        data[place] ^= 4
    file.write_bytes(data)


def remove(file: Path) -> None:
    file.unlink()


def as_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("damage", [remove, truncate, empty, flip, as_directory])
def test_damaged_files_are_replaced(
    filled: Sandbox, damage: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing, cut or changed file costs one building, and is whole the next time."""
    expected = hits(filled)
    damage(stored(filled))
    assert hits(filled) == expected
    forbid_building(monkeypatch)
    assert hits(filled) == expected


@pytest.mark.parametrize("place", ["trees", "trees/NAME"])
def test_a_file_in_the_way_is_no_trouble(filled: Sandbox, place: str) -> None:
    """Where a directory should be and a file is, the answer is the same."""
    expected = hits(filled)
    name = stored(filled).name
    shutil.rmtree(folder(filled))
    blocked = filled.path / ".git/memtool" / place.replace("NAME", name)
    blocked.parent.mkdir(exist_ok=True)
    blocked.write_text("in the way")
    assert hits(filled) == expected


def test_only_the_last_used_stay(filled: Sandbox) -> None:
    """Unused indexes of revisions are deleted when a new one is built."""
    for number in range(revision.MAX_TREES + 2):
        filled.memory(f"dec-x{number}", "git\n")
        filled.commit()
        hits(filled)
        for file in folder(filled).iterdir():
            status = file.stat()
            os.utime(file, (status.st_atime - 100, status.st_mtime - 100))
    assert len(list(folder(filled).glob("*.db"))) == revision.MAX_TREES


def test_a_damaged_index_is_dropped_and_the_verb_asked_again(filled: Sandbox) -> None:
    """The command line, in a process of its own, prints one whole answer and no traceback."""
    question_ = ("search", "--json", "git lock", "--at", "HEAD")
    expected = filled.run(*question_)
    flip(stored(filled))
    done = filled.run(*question_)
    assert (done.returncode, done.stderr) == (0, expected.stderr)
    assert [line for line in done.stdout.splitlines() if "_ms" not in line] == [
        line for line in expected.stdout.splitlines() if "_ms" not in line
    ]


def test_a_damaged_index_that_cannot_be_removed_is_not_used(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Python API answers from the files."""
    from memtool.api import Project

    def titles() -> list[str]:
        return [hit.id for hit in Project.at(str(filled.path), filled.env).search("git").results]

    expected = titles()
    open_index._open_indexes.clear()
    (database,) = (filled.path / ".git/memtool/index").glob("*.db")
    flip(database)
    monkeypatch.setattr("memtool.store.cache.drop", lambda _path: None)
    assert titles() == expected != []


def test_processes_may_build_at_the_same_time(filled: Sandbox) -> None:
    """Racing builders all answer, one database stays, and nothing is left over."""
    expected = filled.run("search", "git lock", "--at", "HEAD").stdout
    shutil.rmtree(folder(filled))
    racers = [
        subprocess.Popen(
            [sys.executable, "-m", "memtool", "search", "git lock", "--at", "HEAD"],
            cwd=filled.path,
            env=filled.env,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _racer in range(3)
    ]
    assert [racer.communicate()[0] for racer in racers] == [expected] * 3
    assert len(list(folder(filled).glob("*.db"))) == 1
