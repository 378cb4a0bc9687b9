"""Snapshots: the memory files of a worktree, an index or a commit, with their blob ids."""

from __future__ import annotations

import errno
import os

from memtool.memory import document
from memtool.memory.changes import Version, stem
from memtool.memory.problem import Problem
from memtool.store.files import TEMP_PREFIX, read_regular
from memtool.store.repository import Repository
from memtool.store.tree import Tree
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from typing import Literal

    from memtool.memory.memory import Memory
    from memtool.store.history import Touch  # importing it costs nine interpreter starts

    Kind = Literal["worktree", "index", "commit"]

_MAX_DEPTH = 12
_EMPTY_BLOBS = frozenset({
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
})  # fmt: skip
_INTENT_TO_ADD = 1 << 29  # CE_INTENT_TO_ADD in git's read-cache.h


class Entry(Value):
    """One file that may be a memory. `oid` is its blob, empty for a file of the worktree."""

    path: str
    oid: str
    mode: str


class Snapshot(Value):
    """The memory files of one tree at one instant. `name` is `worktree`, `index` or a commit id.

    Entries are sorted by path, which is relative to the top. Problems are files that a memory
    tree must not hold, such as symbolic links; they are never opened.
    """

    repository: Repository
    directory: str
    kind: Kind
    name: str
    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...]

    def read(self) -> Iterator[tuple[Entry, bytes | Problem]]:
        """Yield each entry with its bytes, or with the problem that kept them from being read."""
        worktree = [entry for entry in self.entries if not entry.oid]
        for entry in worktree:
            yield entry, read_file(self.repository.top, entry.path)
        stored = [entry for entry in self.entries if entry.oid]
        if not stored:
            return
        from memtool.memory.document import MAX_BYTES

        yield from zip(
            stored,
            self.repository.git.blobs([entry.oid for entry in stored], MAX_BYTES),
            strict=True,
        )


def is_memory_path(path: str, directory: str) -> bool:
    """Tell whether a path is where a memory may be: `.md` below the directory, no `_` or README."""
    return path.startswith(directory + "/") and _is_memory_name(path.rpartition("/")[2])


def _is_memory_name(name: str) -> bool:
    return name.endswith(".md") and not name.startswith(("_", "README", TEMP_PREFIX))


def of_worktree(repository: Repository, directory: str) -> Snapshot:
    """Take the files on disk. Sparse checkouts get the files they left out from the index."""
    repository.refuse_bare("add --at REV to read the memories of a commit, such as --at HEAD")
    entries: list[Entry] = []
    problems: list[Problem] = []
    parts = directory.split("/")
    above = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    link = next((p for p in above if os.path.islink(os.path.join(repository.top, p))), None)
    if link is None:
        _scan(repository.top, directory, entries, problems, 0)
    else:
        problems.append(not_a_file(link))
    if os.path.exists(os.path.join(repository.git_dir, "info", "sparse-checkout")):
        there = {entry.path for entry in entries}
        left_out = _left_out(repository, directory)
        entries.extend(entry for entry in left_out if entry.path not in there)
    return _snapshot(repository, directory, "worktree", "worktree", entries, problems)


def of_index(repository: Repository, directory: str) -> Snapshot:
    """Take what git's index holds: exactly what `git commit` would commit."""
    answer = repository.git.run("ls-files", "--stage", "-z", "--", directory)
    return _from_listing(repository, directory, "index", "index", answer)


def of_commit(repository: Repository, directory: str, revision: str) -> Snapshot:
    """Take the tree of a commit. Raises MemtoolError where the revision names none."""
    commit = repository.git.rev(revision)
    answer = repository.git.run("ls-tree", "-r", "-z", "--full-tree", commit, "--", directory)
    return _from_listing(repository, directory, "commit", commit, answer)


def _from_listing(
    repository: Repository, directory: str, kind: Kind, name: str, answer: bytes
) -> Snapshot:
    entries: dict[str, Entry] = {}
    problems = []
    for row in answer.split(b"\0")[:-1]:
        meta, _tab, raw = row.partition(b"\t")
        mode, *rest = meta.decode().split()
        oid = rest[0] if kind == "index" else rest[1]
        path = os.fsdecode(raw)
        if mode in ("120000", "160000"):
            problems.append(not_a_file(path))
        elif kind == "index" and rest[1] != "0":
            problems.append(unmerged(path))
        elif oid in _EMPTY_BLOBS and kind == "index" and _is_intent(repository, path):
            continue
        elif is_memory_path(path, directory):
            entries.setdefault(path, Entry(path, oid, mode))
    return _snapshot(repository, directory, kind, name, list(entries.values()), problems)


def _snapshot(
    repository: Repository,
    directory: str,
    kind: Kind,
    name: str,
    entries: list[Entry],
    problems: list[Problem],
) -> Snapshot:
    return Snapshot(
        repository=repository,
        directory=directory,
        kind=kind,
        name=name,
        entries=tuple(sorted(entries, key=lambda entry: entry.path)),
        problems=tuple(sorted(problems, key=lambda problem: problem.path)),
    )


def _scan(top: str, folder: str, entries: list[Entry], problems: list[Problem], depth: int) -> None:
    """Collect files below a folder, following no link."""
    names, below = list_folder(top, folder, depth, problems)
    entries.extend(Entry(f"{folder}/{name}", "", "") for name in names)
    for name in below:
        _scan(top, f"{folder}/{name}", entries, problems, depth + 1)


def list_folder(
    top: str, folder: str, depth: int, problems: list[Problem]
) -> tuple[list[str], list[str]]:
    """Return the names of the files that may be memories, and of the folders, both sorted.

    `depth` is 0 for the memory directory. What must not lie there is added to the problems.
    """
    files: list[str] = []
    folders: list[str] = []
    try:
        found = sorted(os.scandir(os.path.join(top, folder)), key=lambda item: item.name)
    except FileNotFoundError:
        found = []
    except OSError as error:
        problems.append(Problem(folder, 0, "unreadable", os.strerror(error.errno or 0)))
        found = []
    for item in found:
        path = f"{folder}/{item.name}"
        if item.is_symlink():
            problems.append(not_a_file(path))
        elif item.is_dir(follow_symlinks=False):
            if item.name == ".git" or depth >= _MAX_DEPTH:
                problems.append(Problem(path, 0, "unreadable", "no memory lies this deep"))
            else:
                folders.append(item.name)
        elif _is_memory_name(item.name):
            if item.is_file(follow_symlinks=False):
                files.append(item.name)
            else:
                problems.append(not_a_file(path))
    return files, folders


def _left_out(repository: Repository, directory: str) -> Iterator[Entry]:
    answer = repository.git.run("ls-files", "--stage", "-t", "-z", "--", directory)
    for row in answer.split(b"\0")[:-1]:
        meta, _tab, raw = row.partition(b"\t")
        tag, mode, oid, _stage = meta.decode().split()
        path = os.fsdecode(raw)
        if tag == "S" and is_memory_path(path, directory):
            yield Entry(path, oid, mode)


def _is_intent(repository: Repository, path: str) -> bool:
    """Tell whether `git add --intent-to-add` made an empty entry, which no commit takes along."""
    shown = repository.git.run("ls-files", "--debug", "--", path)
    flags = int(shown.rpartition(b"flags: ")[2].split()[0], 16)
    return bool(flags & _INTENT_TO_ADD)


def unmerged(path: str) -> Problem:
    """Return the problem of a file whose merge is not finished."""
    return Problem(
        path,
        0,
        "conflict-markers",
        "a merge is unfinished here",
        f"keep one side, then git add {path}",
    )


def not_a_file(path: str) -> Problem:
    """Return the problem of a link, device or submodule in the memory tree."""
    return Problem(
        path,
        0,
        "symlink",
        "it is a link or device, not a file",
        f"git rm {path}, and write the memory as a file",
    )


def read_file(top: str, path: str) -> bytes | Problem:
    """Return the bytes of a file of the worktree, or the problem that kept it from being read."""
    from memtool.memory.document import MAX_BYTES  # reading a memory needs it anyway

    try:
        return read_regular(f"{top}/{path}", MAX_BYTES + 1)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return not_a_file(path)
        return Problem(
            path,
            0,
            "unreadable",
            f"it cannot be read: {os.strerror(error.errno or 0)}",
            "give yourself permission to read it",
        )


Stamp = tuple[str, str]
"""Path and blob id: what one version is made of."""


def of_blobs(
    repository: Repository, wanted: Iterable[Stamp], categories: Collection[str]
) -> dict[Stamp, Version]:
    """Read versions of memory files from their blobs, with one git process."""
    stamps = sorted(set(wanted))
    blobs = repository.git.blobs([oid for _path, oid in stamps], document.MAX_BYTES)
    return {
        stamp: of_bytes(data, stamp[0], categories)
        for stamp, data in zip(stamps, blobs, strict=True)
    }


def of_stamps(
    repository: Repository,
    wanted: Iterable[Stamp],
    categories: Collection[str],
    held: Mapping[Stamp, Memory],
) -> dict[Stamp, Version]:
    """Return versions of memory files; those that a tree holds are not read again."""
    stamps = set(wanted)
    found = {stamp: Version(stamp[0], held[stamp]) for stamp in stamps & held.keys()}
    return found | of_blobs(repository, stamps - held.keys(), categories)


def stamps_of(touches: Iterable[Touch]) -> Iterator[Stamp]:
    """Yield what the files of a commit were and became."""
    for touch in touches:
        if touch.old_oid:
            yield touch.old_path, touch.old_oid
        if touch.oid:
            yield touch.path, touch.oid


def of_bytes(data: bytes, path: str, categories: Collection[str]) -> Version:
    """Read one version of a memory file."""
    try:
        return Version(path, document.read(data, path, categories))
    except document.Unreadable as error:
        return Version(path, None, error.problems[0].message)


def of_tree(tree: Tree) -> tuple[Version, ...]:
    """Return every file of a tree, those that are not memories with their fault."""
    readable = tuple(Version(record.path, record.memory) for record in tree.records)
    return readable + _faulty(tree)


def between(
    old: Snapshot, new: Snapshot, categories: Collection[str]
) -> tuple[tuple[Version, ...], tuple[Version, ...]]:
    """Return what of one commit another no longer has as it was, and what it has instead.

    Only files that differ are read.
    """
    before = {(entry.path, entry.oid) for entry in old.entries}
    after = {(entry.path, entry.oid) for entry in new.entries}
    read = of_blobs(old.repository, before ^ after, categories)
    gone = tuple(read[stamp] for stamp in sorted(before - after))
    come = tuple(read[stamp] for stamp in sorted(after - before))
    return gone + _unopened(old), come + _unopened(new)


def called(
    taken: Snapshot, ids: Collection[str], categories: Collection[str]
) -> dict[str, Version]:
    """Read the memories of a commit that have one of some ids."""
    wanted = [(entry.path, entry.oid) for entry in taken.entries if stem(entry.path) in ids]
    read = of_blobs(taken.repository, wanted, categories) if wanted else {}
    return {read[stamp].id: read[stamp] for stamp in sorted(read)}


def uncommitted(
    tree: Tree, head: Snapshot | None, categories: Collection[str]
) -> tuple[tuple[Version, ...], tuple[Version, ...]]:
    """Return what of HEAD the worktree no longer has as it was, and what it has instead.

    Only files that differ are read from HEAD, which is None before the first commit.
    """
    stored = {entry.path: entry.oid for entry in head.entries} if head else {}
    present = tree.blobs
    changed = {path for path, oid in present.items() if stored.get(path) != oid}
    after = [
        Version(record.path, record.memory)
        for record in tree.with_ids({stem(path) for path in changed})
        if record.path in changed
    ]
    after.extend(_faulty(tree))
    gone = [(path, oid) for path, oid in stored.items() if present.get(path) != oid]
    before = of_blobs(tree.snapshot.repository, gone, categories)
    links = _unopened(head) if head else ()
    return (*(before[stamp] for stamp in sorted(before)), *links), tuple(after)


def is_committed(tree: Tree, commit: str) -> bool:
    """Tell whether a commit holds exactly the memories of a tree, and no link or broken file."""
    taken = tree.snapshot
    answer = taken.repository.git.run(
        "ls-tree", "-r", "-z", "--full-tree", commit, "--", taken.directory
    )
    stored = {}
    for row in answer.split(b"\0")[:-1]:
        meta, _tab, raw = row.partition(b"\t")
        path = os.fsdecode(raw)
        if is_memory_path(path, taken.directory):
            stored[path] = meta.rpartition(b" ")[2].decode()
    return stored == tree.blobs


def _unopened(taken: Snapshot) -> tuple[Version, ...]:
    """Return what lies where memories do and was not opened, such as links."""
    return tuple(
        Version(problem.path, None, problem.message)
        for problem in taken.problems
        if problem.path.endswith(".md")
    )


def _faulty(tree: Tree) -> tuple[Version, ...]:
    paths = [problem.path for problem in tree.problems if problem.path.endswith(".md")]
    readable = {record.path for record in tree.with_ids(set(map(stem, paths)))}
    found: dict[str, Version] = {}
    for problem in tree.problems:
        if problem.path.endswith(".md") and problem.path not in readable:
            found.setdefault(problem.path, Version(problem.path, None, problem.message))
    return tuple(found.values())
