"""Taking content: a whole tree as files, rows and steps; what each door of the gate shares."""

from __future__ import annotations

import os

from memtool.gate.content import File, Step, Text, read, version_of
from memtool.gate.kin import row_of
from memtool.memory.problem import Problem
from memtool.store import snapshot
from memtool.store.tree import Record, blob_hash
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from memtool.gate.kin import Row
    from memtool.gate.recalled import Known
    from memtool.memory.changes import Version
    from memtool.store.repository import Repository
    from memtool.store.snapshot import Snapshot
    from memtool.store.versions import Stamp


class Whole(Value):
    """A whole tree that was read: its files by path, and what could not be opened."""

    files: tuple[File, ...]
    problems: tuple[Problem, ...]

    def rows(self) -> list[Row]:
        """Return what kin needs to know of each memory."""
        return [row_of(file.memory, file.path) for file in self.files if file.memory is not None]

    def records(self) -> Sequence[Record]:
        """Return the readable memories, sorted by id and path."""
        found = [Record(f.memory, f.path, f.oid) for f in self.files if f.memory is not None]
        return tuple(sorted(found, key=lambda record: (record.memory.id, record.path)))

    def texts(self) -> list[Text]:
        """Return the texts of all files."""
        return [Text(file.path, file.oid, file.text) for file in self.files]


def read_whole(
    taken: Snapshot, categories: Collection[str], known: Mapping[Stamp, Known] | None = None
) -> Whole:
    """Read every file of a snapshot; of those that are known, no more than their bytes."""
    known = known or {}
    files = []
    problems = list(taken.problems)
    hash_blob = blob_hash(taken.repository.object_format)
    for entry, data in taken.read():
        if isinstance(data, Problem):
            problems.append(data)
            continue
        mode = entry.mode or _mode_of(os.path.join(taken.repository.top, entry.path))
        oid = entry.oid or hash_blob(data)
        files.append(read(entry.path, oid, mode, data, categories, known.get((entry.path, oid))))
    return Whole(tuple(sorted(files, key=lambda file: file.path)), tuple(problems))


def _mode_of(path: str) -> str:
    try:
        return "100755" if os.lstat(path).st_mode & 0o100 else "100644"
    except OSError:
        return "100644"


def step_from(
    repository: Repository,
    directory: str,
    commit: str,
    files: Mapping[str, File],
    categories: Collection[str],
) -> Step:
    """Compare a whole tree with that of a commit."""
    from memtool.store import versions  # a staged memory is compared without

    stored = {
        entry.path: entry.oid for entry in snapshot.of_commit(repository, directory, commit).entries
    }
    gone = {
        (path, oid) for path, oid in stored.items() if path not in files or files[path].oid != oid
    }
    before = versions.of_blobs(repository, gone, categories)
    after = [file for path, file in files.items() if stored.get(path) != file.oid]
    return Step(
        before=tuple(before[stamp] for stamp in sorted(before)),
        after=tuple(map(version_of, after)),
        where={},
    )


def earlier_versions(
    repository: Repository, directory: str, head: str, categories: Collection[str]
) -> Callable[[str], Sequence[Version]]:
    """Return a function that gives the versions of an id in the parents of a commit."""

    def find(id_: str) -> Sequence[Version]:
        if not head:
            return ()
        parents = repository.git.line("rev-parse", f"{head}^@").split()
        return versions_in(repository, directory, parents, categories, id_)

    return find


def versions_in(
    repository: Repository,
    directory: str,
    commits: Iterable[str],
    categories: Collection[str],
    id_: str,
) -> Sequence[Version]:
    """Return the versions of an id in some commits."""
    from memtool.store import versions  # a staged memory seldom asks

    stamps: set[Stamp] = set()
    for commit in commits:
        for entry in snapshot.of_commit(repository, directory, commit).entries:
            if entry.path.endswith(f"/{id_}.md"):
                stamps.add((entry.path, entry.oid))
    found = versions.of_blobs(repository, stamps, categories)
    return tuple(found[stamp] for stamp in sorted(found))


def parted(repository: Repository, directory: str, commits: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that tells whether an id was there where some commits parted."""
    known: list[frozenset[str]] = []

    def was_there(id_: str) -> bool:
        if not known:
            bases = repository.git.line("merge-base", "--octopus", *commits, allowed=(0, 1)).split()
            paths = (
                entry.path
                for base in bases
                for entry in snapshot.of_commit(repository, directory, base).entries
            )
            known.append(frozenset(p.rpartition("/")[2].removesuffix(".md") for p in paths))
        return id_ in known[0]

    return was_there
