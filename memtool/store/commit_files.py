"""The files of a commit or of the worktree by path, blob, name and folder; blobs as texts.

Nothing is fetched: what a partial clone does not hold is no text.
"""

from __future__ import annotations

import os
import posixpath
from bisect import bisect_left

from memtool.memory import drift as rules
from memtool.store.files import read_regular
from memtool.store.git import LINKS, REGULAR
from memtool.store.snapshot import blob_hash
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator, Mapping

    from memtool.store.repository import Repository

MOST_BYTES = 1 << 20
"""A larger file is not read."""
MOST_CANDIDATES = 20
"""Files that are compared with one that is gone."""
HELD_BYTES = 64 << 20
"""Of texts that are held while many memories are looked at."""
_NOTHING: Mapping[str, bytes] = {}


class CommitFiles:
    """The files of one commit by path and by blob, or those of the worktree that began with it.

    `own` are the texts that differ from the commit, by the id that git would give them.
    """

    def __init__(self, repository: Repository, commit: str, *, is_worktree: bool = False) -> None:
        # Git is asked about one path a line.
        listed = repository.git.files_below(commit)
        self.entries = {path: one for path, one in listed.items() if "\n" not in path}
        self.own: dict[str, bytes] = {}
        if is_worktree:
            self._take_worktree(repository)

    def _take_worktree(self, repository: Repository) -> None:
        blob_id = blob_hash(repository.object_format)
        for _state, path in repository.git.status():
            try:
                data = read_regular(os.path.join(repository.top, path), MOST_BYTES + 1)
            except (FileNotFoundError, NotADirectoryError):
                self.entries.pop(path, None)
            except OSError:  # a link, a folder, or not to be read
                self.entries[path] = (LINKS[0], "")
            else:
                oid = blob_id(data)
                self.own[oid] = data
                self.entries[path] = (REGULAR[0], oid)

    @cached_property
    def oids(self) -> dict[str, str]:
        """The blob of each file that is neither a link nor a submodule."""
        return {path: oid for path, (mode, oid) in self.entries.items() if mode in REGULAR}

    @cached_property
    def order(self) -> list[str]:
        """All paths, sorted."""
        return sorted(self.entries)

    @cached_property
    def _alike(self) -> tuple[dict[str, list[str]], dict[str, list[str]], dict[str, list[str]]]:
        """The files by blob, by name and by folder, which only a gone file asks for."""
        by_oid: dict[str, list[str]] = {}
        by_name: dict[str, list[str]] = {}
        by_folder: dict[str, list[str]] = {}
        for path in sorted(self.oids):
            folder, _slash, name = path.rpartition("/")
            by_oid.setdefault(self.oids[path], []).append(path)
            by_name.setdefault(name, []).append(path)
            by_folder.setdefault(folder, []).append(path)
        return by_oid, by_name, by_folder

    def below(self, start: str) -> Iterator[str]:
        """Yield the paths that begin with a text."""
        at = bisect_left(self.order, start)
        while at < len(self.order) and self.order[at].startswith(start):
            yield self.order[at]
            at += 1

    def near(self, path: str, oid: str) -> list[str]:
        """Return the files that a gone one may have become: of its bytes, its name, its folder."""
        folder, _slash, name = path.rpartition("/")
        ending = posixpath.splitext(name)[1]
        by_oid, by_name, by_folder = self._alike
        beside = [one for one in by_folder.get(folder, ()) if one.endswith(ending)]
        found = (by_oid.get(oid, ()), by_name.get(name, ()), beside)
        return list(dict.fromkeys(one for those in found for one in those))[:MOST_CANDIDATES]


class BlobTexts:
    """Blobs as texts, a bounded number of them at a time; None for what is no text."""

    def __init__(self, repository: Repository, own: Mapping[str, bytes] = _NOTHING) -> None:
        self._git = repository.git
        self._is_partial = repository.is_partial
        self._own = own
        self._held: dict[str, str | None] = {}
        self._rows: dict[str, list[str]] = {}
        self._counts: dict[str, Counter[str]] = {}
        self._size = 0

    def load(self, oids: Iterable[str]) -> None:
        """Read what is not held; of too much all is dropped first."""
        wanted = list(dict.fromkeys(oids))
        if self._size > HELD_BYTES:
            for held in (self._held, self._rows, self._counts):
                held.clear()
            self._size = 0
        missing = [oid for oid in wanted if oid not in self._held]
        for oid in missing:
            if oid in self._own:
                self._hold(oid, self._own[oid])
        missing = [oid for oid in missing if oid not in self._own]
        if self._is_partial:  # nothing is fetched
            here = self._git.present()
            self._held |= {oid: None for oid in missing if oid not in here}
            missing = [oid for oid in missing if oid in here]
        for oid, data in zip(missing, self._git.blobs(missing, MOST_BYTES), strict=True):
            self._hold(oid, data)

    def _hold(self, oid: str, data: bytes) -> None:
        self._size += len(data)
        try:
            is_text = len(data) <= MOST_BYTES and b"\0" not in data
            self._held[oid] = data.decode() if is_text else None
        except UnicodeDecodeError:
            self._held[oid] = None

    def text(self, oid: str) -> str | None:
        """Return a text that was loaded, None for what is none."""
        return self._held[oid]

    def rows(self, oid: str) -> list[str]:
        """Return the lines of a text without blanks."""
        if oid not in self._rows:
            self._rows[oid] = rules.lines_of(self._held[oid] or "")
        return self._rows[oid]

    def counts(self, oid: str) -> Counter[str]:
        """Return how often each line stands in a text."""
        if oid not in self._counts:
            self._counts[oid] = rules.counted(self.rows(oid))
        return self._counts[oid]
