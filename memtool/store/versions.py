"""Versions: single files of a tree or a commit, for comparisons."""

from __future__ import annotations

from memtool.memory.changes import Version, stem
from memtool.store.snapshot import is_memory_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from memtool.memory.memory import Memory
    from memtool.store.git import Touch
    from memtool.store.repository import Repository
    from memtool.store.snapshot import Snapshot
    from memtool.store.tree import Tree

ABSENT = "unknown: this partial clone does not hold it"
"""What stands for a blob that only the remote has."""

Stamp = tuple[str, str]
"""Path and blob id: what one version is made of."""


def of_blobs(
    repository: Repository, wanted: Iterable[Stamp], categories: Collection[str]
) -> dict[Stamp, Version]:
    """Read versions of memory files from their blobs, with one git process.

    Of what a partial clone does not hold nothing but the path is known.
    """
    from memtool.memory.document import MAX_BYTES

    stamps = sorted(set(wanted))
    absent: dict[Stamp, Version] = {}
    if stamps and repository.is_partial:
        here = repository.git.present()
        absent = {
            stamp: Version(stamp[0], None, ABSENT) for stamp in stamps if stamp[1] not in here
        }
        stamps = [stamp for stamp in stamps if stamp not in absent]
    blobs = repository.git.blobs([oid for _path, oid in stamps], MAX_BYTES)
    read = {
        stamp: of_bytes(data, stamp[0], categories)
        for stamp, data in zip(stamps, blobs, strict=True)
    }
    return read | absent


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
    from memtool.memory import document

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
    before = of_blobs(tree.location.repository, gone, categories)
    links = _unopened(head) if head else ()
    return (*(before[stamp] for stamp in sorted(before)), *links), tuple(after)


def is_committed(tree: Tree, commit: str) -> bool:
    """Tell whether a commit holds exactly the memories of a tree, and no link or broken file."""
    taken = tree.location
    stored = taken.repository.git.blobs_below(commit, taken.directory)
    present = tree.blobs
    if any(stored.get(path) != oid for path, oid in present.items()):
        return False
    return not any(path not in present and is_memory_path(path, taken.directory) for path in stored)


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
