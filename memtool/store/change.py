"""A change, and the files that the branch has once it is in: a range of commits, or git's index.

A change goes into a commit, its target, which may have moved on since the change began. So its
files are laid over those of the target, path by path, and a memory that both changed is merged.
Two changes that are each fine and together are not are seen in this way when the second is looked
at, before it is merged.
"""

from __future__ import annotations

from memtool.memory.three_way import Sides
from memtool.store.git import REGULAR_MODES, GitError
from memtool.store.merging import merge_texts
from memtool.store.snapshot import Entry, is_memory_path
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from memtool.store.git import CommitListing, RawChange
    from memtool.store.repository import Repository
    from memtool.store.snapshot import Snapshot

MAX_MERGED_BYTES = 64 * 1024
"""A larger file is not a memory, and is not merged."""


class Change:
    """What git's index or a range of commits changes.

    `target` is the commit that the change goes into, `base` the one where it left that, and `new`
    its last commit, empty for git's index.
    """

    def __init__(self, repository: Repository, target: str, base: str, new: str) -> None:
        self.repository = repository
        self.target = target
        self.base = base
        self.new = new

    @property
    def head(self) -> str:
        """The last commit in the history of the change."""
        return self.new or self.target

    @property
    def is_behind(self) -> bool:
        """Whether the target has commits that the change lacks."""
        return self.target != self.base

    def list_arguments(self, *options: str) -> tuple[str, ...]:
        """Return the command of git that compares the base with the change; paths may follow."""
        if self.new:
            return ("diff-tree", "-r", *options, self.base, self.new)
        return ("diff-index", "--cached", "--ita-invisible-in-index", *options, self.base)

    @cached_property
    def rows(self) -> tuple[RawChange, ...]:
        """The changed files with their renames, without those of an unfinished merge."""
        rows = self.repository.git.diff_raw(*self.list_arguments("-M"))
        unmerged = {row.path for row in rows if row.status == "U"}
        return tuple(row for row in rows if row.path not in unmerged)

    @cached_property
    def paths(self) -> frozenset[str]:
        """All paths that the change touches, old ones of renamed files too."""
        return frozenset(path for row in self.rows for path in (row.path, row.old_path))

    def lay_over_files(self) -> CommitListing:
        """Return mode and blob of each file of the target with the change."""
        listing = dict(self.repository.git.files_below(self.target))
        for row in self.rows:
            if row.status[0] in "DR":
                listing.pop(row.old_path, None)
            if row.status != "D":
                listing[row.path] = row.mode, row.oid
        return listing

    def lay_over_memories(self, target: Snapshot, *, knows_keys: bool = True) -> Memories:
        """Return the memory files of the target with the change.

        `target` lists those that the target has. Without `knows_keys` memories are merged as text.
        """
        entries = {entry.path: entry for entry in target.entries}
        by_name = {_find_name(entry.path): entry for entry in target.entries}
        touched: set[str] = set()
        twice: dict[str, tuple[str, str, str]] = {}
        for row in self.rows:
            is_kept = row.mode in REGULAR_MODES and is_memory_path(row.path, target.directory)
            if not is_kept and not is_memory_path(row.old_path, target.directory):
                continue
            path, before = row.path, entries.get(row.old_path)
            if before is None and row.status != "A":  # the target may have moved it
                before = by_name.get(_find_name(row.old_path))
            if before is not None and row.status[0] in "DR":
                del entries[before.path]
            elif before is not None:
                path = before.path
            touched |= {row.old_path, path} if before is None else {before.path, path}
            if is_kept:
                entries[path] = Entry(path, row.oid, row.mode)
            is_same = before is not None and _find_name(before.path) == _find_name(path)
            if before is None or not (is_kept and is_same):
                continue
            if before.oid not in (row.old_oid, row.oid):
                base_oid = row.old_oid if row.old_oid.strip("0") else ""
                twice[path] = base_oid, before.oid, row.oid
        merged, conflicts = self._merge(twice, knows_keys=knows_keys)
        return Memories(
            target.replace(
                kind="commit" if self.new else "index",
                name=self.new or "index",
                entries=tuple(entries[path] for path in sorted(entries)),
            ),
            frozenset(touched),
            merged,
            conflicts,
        )

    def _merge(
        self, twice: Mapping[str, tuple[str, str, str]], *, knows_keys: bool
    ) -> tuple[dict[str, bytes], tuple[str, ...]]:
        """Merge files that both sides changed, each given by its blobs: base, ours and theirs."""
        merged: dict[str, bytes] = {}
        conflicts = []
        git = self.repository.git
        with git.open_objects():
            for path, (base_oid, *oids) in sorted(twice.items()):
                base, ours, theirs = self._read_texts(base_oid, *oids)
                try:
                    result = merge_texts(
                        git, Sides(base, ours or b"", theirs or b""), path, knows_keys=knows_keys
                    )
                except GitError:
                    conflicts.append(path)
                    continue
                if result.is_clean:
                    merged[path] = result.data
                else:
                    conflicts.append(path)
        return merged, tuple(conflicts)

    def _read_texts(self, *oids: str) -> Iterator[bytes | None]:
        """Yield the bytes of each blob; None for an empty id."""
        texts = self.repository.git.blobs([*filter(None, oids)], MAX_MERGED_BYTES)
        for oid in oids:
            yield next(texts) if oid else None


class Memories(Value):
    """The memory files of a target with a change.

    `touched` are the paths that differ from the target's, and `merged` the texts that no blob has.
    Files in `conflicts` cannot be merged, and are as the change has them.
    """

    snapshot: Snapshot
    touched: frozenset[str]
    merged: Mapping[str, bytes]
    conflicts: tuple[str, ...]


def _find_name(path: str) -> str:
    return path.rpartition("/")[2]
