"""Versions: single files of a tree or a commit, for comparisons."""

from __future__ import annotations

from memtool.memory.changes import Version, id_from_path
from memtool.store.snapshot import is_memory_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from memtool.memory.memory import Memory
    from memtool.store.git import Touch
    from memtool.store.repository import Repository
    from memtool.store.snapshot import Snapshot
    from memtool.store.tree import Tree

ABSENT_FAULT = "unknown: this partial clone does not hold it"
"""Fault of a version whose blob only the remote has."""

Stamp = tuple[str, str]
"""Path and blob id of one version."""


def read_blobs(
    repository: Repository, wanted: Iterable[Stamp], categories: Collection[str]
) -> dict[Stamp, Version]:
    """Read versions of memory files from their blobs, with one git process.

    A version that a partial clone lacks has only its path.
    """
    from memtool.memory.document import MAX_BYTES

    stamps = sorted(set(wanted))
    absent: dict[Stamp, Version] = {}
    if stamps and repository.is_partial:
        present = repository.git.list_objects()
        absent = {
            stamp: Version(stamp[0], None, ABSENT_FAULT)
            for stamp in stamps
            if stamp[1] not in present
        }
        stamps = [stamp for stamp in stamps if stamp not in absent]
    blobs = repository.git.blobs([oid for _path, oid in stamps], MAX_BYTES)
    read = {
        stamp: parse_version(data, stamp[0], categories)
        for stamp, data in zip(stamps, blobs, strict=True)
    }
    return read | absent


def read_stamps(
    repository: Repository,
    wanted: Iterable[Stamp],
    categories: Collection[str],
    loaded: Mapping[Stamp, Memory],
) -> dict[Stamp, Version]:
    """Return versions of memory files; those in `loaded` are not read again."""
    stamps = set(wanted)
    versions = {stamp: Version(stamp[0], loaded[stamp]) for stamp in stamps & loaded.keys()}
    return versions | read_blobs(repository, stamps - loaded.keys(), categories)


def list_stamps(touches: Iterable[Touch]) -> Iterator[Stamp]:
    """Yield the old and new versions of the files that a commit changed."""
    for touch in touches:
        if touch.old_oid:
            yield touch.old_path, touch.old_oid
        if touch.oid:
            yield touch.path, touch.oid


def parse_version(data: bytes, path: str, categories: Collection[str]) -> Version:
    """Read one version of a memory file."""
    from memtool.memory import document

    try:
        return Version(path, document.read(data, path, categories))
    except document.Unreadable as error:
        return Version(path, None, error.problems[0].message)


def list_versions(tree: Tree) -> tuple[Version, ...]:
    """Return a version for every file of a tree; files that are not memories have a fault."""
    readable = tuple(Version(record.path, record.memory) for record in tree.records)
    return readable + _list_faulty(tree)


def compare_snapshots(
    old: Snapshot, new: Snapshot, categories: Collection[str]
) -> tuple[tuple[Version, ...], tuple[Version, ...]]:
    """Return the changed files of two commits: their old versions, and their new ones.

    Only files that differ are read.
    """
    before = {(entry.path, entry.oid) for entry in old.entries}
    after = {(entry.path, entry.oid) for entry in new.entries}
    read = read_blobs(old.repository, before ^ after, categories)
    old_versions = tuple(read[stamp] for stamp in sorted(before - after))
    new_versions = tuple(read[stamp] for stamp in sorted(after - before))
    return old_versions + _list_unopened(old), new_versions + _list_unopened(new)


def read_by_id(
    snapshot: Snapshot, ids: Collection[str], categories: Collection[str]
) -> dict[str, Version]:
    """Read the memories of a commit with these ids."""
    wanted = [
        (entry.path, entry.oid) for entry in snapshot.entries if id_from_path(entry.path) in ids
    ]
    read = read_blobs(snapshot.repository, wanted, categories) if wanted else {}
    return {read[stamp].id: read[stamp] for stamp in sorted(read)}


def find_uncommitted(
    tree: Tree, head: Snapshot | None, categories: Collection[str]
) -> tuple[tuple[Version, ...], tuple[Version, ...]]:
    """Return the uncommitted changes: old versions from HEAD, and new ones from the worktree.

    Only files that differ are read from HEAD, which is None before the first commit.
    """
    stored = {entry.path: entry.oid for entry in head.entries} if head else {}
    present = tree.blobs
    changed = {path for path, oid in present.items() if stored.get(path) != oid}
    after = [
        Version(record.path, record.memory)
        for record in tree.with_ids({id_from_path(path) for path in changed})
        if record.path in changed
    ]
    after.extend(_list_faulty(tree))
    old_stamps = [(path, oid) for path, oid in stored.items() if present.get(path) != oid]
    before = read_blobs(tree.location.repository, old_stamps, categories)
    links = _list_unopened(head) if head else ()
    return (*(before[stamp] for stamp in sorted(before)), *links), tuple(after)


def is_committed(tree: Tree, commit: str) -> bool:
    """Return whether a commit has exactly the memories of a tree, and no link or broken file."""
    location = tree.location
    stored = location.repository.git.blobs_below(commit, location.directory)
    present = tree.blobs
    if any(stored.get(path) != oid for path, oid in present.items()):
        return False
    return not any(
        path not in present and is_memory_path(path, location.directory) for path in stored
    )


def _list_unopened(snapshot: Snapshot) -> tuple[Version, ...]:
    """Return versions for files that were not opened, such as links."""
    return tuple(
        Version(problem.path, None, problem.message)
        for problem in snapshot.problems
        if problem.path.endswith(".md")
    )


def _list_faulty(tree: Tree) -> tuple[Version, ...]:
    paths = [problem.path for problem in tree.problems if problem.path.endswith(".md")]
    readable = {record.path for record in tree.with_ids(set(map(id_from_path, paths)))}
    faulty: dict[str, Version] = {}
    for problem in tree.problems:
        if problem.path.endswith(".md") and problem.path not in readable:
            faulty.setdefault(problem.path, Version(problem.path, None, problem.message))
    return tuple(faulty.values())
