"""The files of a commit or of the worktree by path, blob, name and folder; blobs as texts.

Nothing is fetched: a blob that a partial clone lacks has no text.
"""

from __future__ import annotations

import os
import posixpath
from bisect import bisect_left

from memtool.memory import drift as rules
from memtool.store.files import read_regular
from memtool.store.git import LINK_MODES, REGULAR_MODES
from memtool.store.snapshot import make_blob_hash
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator, Mapping

    from memtool.store.git import CommitListing
    from memtool.store.repository import Repository

MAX_BLOB_BYTES = 1 << 20
"""A larger file is not read."""
MAX_CANDIDATES = 20
"""Files that are compared with a removed one."""
MAX_FOLDER_FILES = 1_000
"""Limit of files below one folder of an older commit; a larger folder is not listed."""
MAX_FOLDERS = 200
"""Limit of subfolders of a listed folder."""
MAX_LOADED_BYTES = 64 << 20
"""Limit of the texts in memory while many memories are checked."""
_NOTHING: Mapping[str, bytes] = {}


class CommitFiles:
    """The files of one commit by path and by blob, or those of the worktree based on it.

    `listing` has other files than the commit's, as when a change is laid over it. `own_texts` are
    contents that differ from the commit, by the blob id that git would assign.
    """

    def __init__(
        self,
        repository: Repository,
        commit: str,
        *,
        is_worktree: bool = False,
        listing: CommitListing | None = None,
    ) -> None:
        self.commit = commit
        # Requests to git have one path per line.
        listed = repository.git.files_below(commit) if listing is None else listing
        self.entries = {path: entry for path, entry in listed.items() if "\n" not in path}
        self.own_texts: dict[str, bytes] = {}
        if is_worktree:
            self._apply_worktree(repository)

    def _apply_worktree(self, repository: Repository) -> None:
        blob_id = make_blob_hash(repository.object_format)
        for _state, path in repository.git.status():
            try:
                data = read_regular(os.path.join(repository.top, path), MAX_BLOB_BYTES + 1)
            except (FileNotFoundError, NotADirectoryError):
                self.entries.pop(path, None)
            except OSError:  # a link, a folder, or unreadable
                self.entries[path] = (LINK_MODES[0], "")
            else:
                oid = blob_id(data)
                self.own_texts[oid] = data
                self.entries[path] = (REGULAR_MODES[0], oid)

    @cached_property
    def oids(self) -> dict[str, str]:
        """The blob of each file that is neither a link nor a submodule."""
        return {path: oid for path, (mode, oid) in self.entries.items() if mode in REGULAR_MODES}

    @cached_property
    def sorted_paths(self) -> list[str]:
        """All paths, sorted."""
        return sorted(self.entries)

    @cached_property
    def _groups(self) -> tuple[dict[str, list[str]], dict[str, list[str]], dict[str, list[str]]]:
        """The files by blob, by name and by folder; only needed for a removed file."""
        by_oid: dict[str, list[str]] = {}
        by_name: dict[str, list[str]] = {}
        by_folder: dict[str, list[str]] = {}
        for path in sorted(self.oids):
            folder, _slash, name = path.rpartition("/")
            by_oid.setdefault(self.oids[path], []).append(path)
            by_name.setdefault(name, []).append(path)
            by_folder.setdefault(folder, []).append(path)
        return by_oid, by_name, by_folder

    def find_by_prefix(self, start: str) -> Iterator[str]:
        """Yield the paths with a prefix."""
        at = bisect_left(self.sorted_paths, start)
        while at < len(self.sorted_paths) and self.sorted_paths[at].startswith(start):
            yield self.sorted_paths[at]
            at += 1

    def find_similar(self, path: str, oid: str) -> list[str]:
        """Return files that a removed one may have become: same content, name, or folder."""
        folder, _slash, name = path.rpartition("/")
        ending = posixpath.splitext(name)[1]
        by_oid, by_name, by_folder = self._groups
        in_folder = [
            neighbour for neighbour in by_folder.get(folder, ()) if neighbour.endswith(ending)
        ]
        groups = (by_oid.get(oid, ()), by_name.get(name, ()), in_folder)
        return list(dict.fromkeys(path for group in groups for path in group))[:MAX_CANDIDATES]


class FolderReader:
    """Lists the files below folders of commits, by tree id; each tree is read once."""

    def __init__(self, repository: Repository) -> None:
        self._git = repository.git
        self._id_bytes = 32 if repository.object_format == "sha256" else 20
        self._read: dict[str, list[tuple[bytes, bytes, str]]] = {}

    def list_below(self, tree: str, start: str) -> dict[str, str] | None:
        """Return path and blob of each regular file below a folder; None if there are too many.

        `start` is the prefix of each path.
        """
        blob_by_path: dict[str, str] = {}
        todo = [(tree, start)]
        for _folder in range(MAX_FOLDERS):
            if not todo or len(blob_by_path) > MAX_FOLDER_FILES:
                break
            oid, prefix = todo.pop()
            for mode, name, entry in self._entries(oid):
                path = f"{prefix}{os.fsdecode(name)}"
                if mode == b"40000":
                    todo.append((entry, f"{path}/"))
                elif mode.decode() in REGULAR_MODES:
                    blob_by_path[path] = entry
        return None if todo or len(blob_by_path) > MAX_FOLDER_FILES else blob_by_path

    def _entries(self, tree: str) -> list[tuple[bytes, bytes, str]]:
        """Parse a tree object; each entry is `MODE NAME`, NUL, and the bytes of the id."""
        if tree not in self._read:
            entries = self._read[tree] = []
            (data,) = self._git.blobs([tree], MAX_BLOB_BYTES)
            at = 0
            while at < len(data) <= MAX_BLOB_BYTES:
                end = data.index(b"\0", at)
                mode, _space, name = data[at:end].partition(b" ")
                at = end + 1 + self._id_bytes
                entries.append((mode, name, data[end + 1 : at].hex()))
        return self._read[tree]


class BlobTexts:
    """Blobs as texts, with bounded memory use; None for a blob that is not text."""

    def __init__(self, repository: Repository, own_texts: Mapping[str, bytes] = _NOTHING) -> None:
        self._git = repository.git
        self._is_partial = repository.is_partial
        self._own_texts = own_texts
        self._texts: dict[str, str | None] = {}
        self._rows: dict[str, list[str]] = {}
        self._counts: dict[str, Counter[str]] = {}
        self._size = 0

    def load(self, oids: Iterable[str]) -> None:
        """Load missing texts; beyond MAX_LOADED_BYTES all loaded ones are dropped first."""
        wanted = list(dict.fromkeys(oids))
        if self._size > MAX_LOADED_BYTES:
            for cached in (self._texts, self._rows, self._counts):
                cached.clear()
            self._size = 0
        missing = [oid for oid in wanted if oid not in self._texts]
        for oid in missing:
            if oid in self._own_texts:
                self._store(oid, self._own_texts[oid])
        missing = [oid for oid in missing if oid not in self._own_texts]
        if self._is_partial:  # nothing is fetched
            present = self._git.list_objects()
            self._texts |= {oid: None for oid in missing if oid not in present}
            missing = [oid for oid in missing if oid in present]
        for oid, data in zip(missing, self._git.blobs(missing, MAX_BLOB_BYTES), strict=True):
            self._store(oid, data)

    def _store(self, oid: str, data: bytes) -> None:
        self._size += len(data)
        try:
            is_text = len(data) <= MAX_BLOB_BYTES and b"\0" not in data
            self._texts[oid] = data.decode() if is_text else None
        except UnicodeDecodeError:
            self._texts[oid] = None

    def text(self, oid: str) -> str | None:
        """Return a loaded text; None if the blob is not text."""
        return self._texts[oid]

    def rows(self, oid: str) -> list[str]:
        """Return the lines of a text without blanks."""
        if oid not in self._rows:
            self._rows[oid] = rules.strip_lines(self._texts[oid] or "")
        return self._rows[oid]

    def counts(self, oid: str) -> Counter[str]:
        """Return the number of occurrences of each line."""
        if oid not in self._counts:
            self._counts[oid] = rules.count_lines(self.rows(oid))
        return self._counts[oid]
