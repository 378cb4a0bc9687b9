"""Versions: the memory files of trees and blobs, readable or not, ready to be compared."""

from __future__ import annotations

from memtool.memory import document
from memtool.memory.changes import Version, stem
from memtool.store.repository import Repository
from memtool.store.snapshot import Snapshot
from memtool.store.tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from memtool.memory.memory import Memory
    from memtool.store.history import Touch  # importing it costs nine interpreter starts

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
    records = tuple(tree.records)  # a catalog looks each of them up, every time
    present = {record.path: record.oid for record in records}
    after = [
        Version(record.path, record.memory)
        for record in records
        if stored.get(record.path) != record.oid
    ]
    after.extend(_faulty(tree))
    gone = [(path, oid) for path, oid in stored.items() if present.get(path) != oid]
    before = of_blobs(tree.snapshot.repository, gone, categories)
    links = _unopened(head) if head else ()
    return (*(before[stamp] for stamp in sorted(before)), *links), tuple(after)


def _unopened(taken: Snapshot) -> tuple[Version, ...]:
    """Return what lies where memories do and was not opened, such as links."""
    return tuple(
        Version(problem.path, None, problem.message)
        for problem in taken.problems
        if problem.path.endswith(".md")
    )


def _faulty(tree: Tree) -> tuple[Version, ...]:
    if not tree.problems:
        return ()
    readable = {record.path for record in tree.records}
    found: dict[str, Version] = {}
    for problem in tree.problems:
        if problem.path.endswith(".md") and problem.path not in readable:
            found.setdefault(problem.path, Version(problem.path, None, problem.message))
    return tuple(found.values())
