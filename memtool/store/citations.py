"""Citations: a table beside the search index of what git says about every committed memory.

One file for each commit that is read from, `<cache>/citations/<scope>-<commit>-<trust>`, mapped
and never changed: hashes of the paths in order, and a row for each. A warm answer finds its few
rows here and starts no git. `citing` makes the tables.

Every row is guarded by a checksum, and the hashes are checked before a path is called absent. A
file that is missing, damaged or of another version costs time, never the answer.
"""

from __future__ import annotations

import os
from _bisect import bisect_left
from zlib import crc32

from memtool.store import cache
from memtool.store.cache import CorruptCache, Sections
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from memtool.store.repository import Repository

KIND = "citations 2"
SECTIONS = {"hashes": "I", "ends": "I", "sums": "I", "rows": "B"}
TABLE = "table-"
"""How the names of files begin that hold the rows of a commit."""
SEPARATOR = b"\0"
KEPT = 4
"""Files of each sort that stay: those last made, since branches and worktrees share the cache."""
SIGNED_KIND, FILE_KIND = "signed 1", "file 1"
FILE = "file-"
"""How the names of files begin that hold one small file of a commit."""
SIGNED = "signed-"
"""How the names of files begin that hold which commits an allowed key has signed."""


class Row(Value):
    """What git says of one path in one commit. Empty texts and 0 mean: not known.

    `trusted_oid` is the blob at the path in the trusted commit. Where signatures count, and the
    same bytes stand there, `trusted_commit` wrote them, unless history was cut off before.
    """

    oid: str
    commit: str
    author: str
    date: int
    is_shallow: bool
    trusted_oid: str
    trusted_commit: str

    @property
    def is_trusted(self) -> bool:
        return self.oid == self.trusted_oid


class Basis(Value):
    """What rows depend on. Ids are full; `trusted_at` is empty where no ref is trusted."""

    repository: Repository
    directory: str
    head: str
    trusted_at: str
    allowed_signers: str

    @property
    def folder(self) -> str:
        return folder(self.repository)

    @property
    def scope(self) -> str:
        """The first part of the file's name: tables of one scope can be made from each other."""
        import sys

        cut = ",".join(sorted(self.repository.shallow_commits()))
        return TABLE + cache.digest(KIND, sys.byteorder, self.directory, cut)

    @property
    def name(self) -> str:
        return f"{self.scope}-{self.head}-{cache.digest(self.trusted_at, self.allowed_signers)}"

    @property
    def signed_name(self) -> str:
        return SIGNED + cache.digest(self.trusted_at, self.allowed_signers)


def folder(repository: Repository) -> str:
    """Return where the tables are kept."""
    return os.path.join(repository.cache_dir, "citations")


class Table:
    """The rows of one commit."""

    def __init__(self, raw: memoryview) -> None:
        """Take the bytes of a file. Raises CorruptCache."""
        self._sections = Sections(raw, KIND, SECTIONS)
        self._hashes, self._ends, self._sums, self._rows = map(self._sections.unchecked, SECTIONS)
        if not len(self._hashes) == len(self._sums) == len(self._ends) - 1:
            raise CorruptCache("the sections do not fit together")

    def row(self, path: str) -> Row | None:
        """Return the row of a path, None where the commit does not hold it. Raises CorruptCache."""
        wanted = os.fsencode(path)
        key = crc32(wanted)
        at = bisect_left(self._hashes, key)
        while at < len(self._hashes) and self._hashes[at] == key:
            name, *fields = self._fields(at)
            if name == wanted:
                return _row(fields)
            at += 1
        _whole = self._sections["hashes"], self._sections["ends"]  # what the search went by
        return None

    def _fields(self, at: int) -> list[bytes]:
        raw = bytes(self._rows[self._ends[at] : self._ends[at + 1]])
        if crc32(raw, at) != self._sums[at]:
            raise CorruptCache(f"row {at} is damaged")
        return raw.split(SEPARATOR)


def _row(fields: list[bytes]) -> Row:
    oid, commit, author, date, is_shallow, trusted_oid, trusted_commit = (
        field.decode(errors="surrogateescape") for field in fields
    )
    is_cut = bool(is_shallow)
    return Row(oid, commit, author, int(date), is_cut, trusted_oid, trusted_commit)


def table_of(basis: Basis) -> Table:
    """Return the table of a commit, from the cache or from git, which is then kept."""
    try:
        return Table(cache.mapped(os.path.join(basis.folder, basis.name)))
    except CorruptCache:
        from memtool.store import citing

        return Table(memoryview(citing.made(basis)))


def signed(basis: Basis, commits: set[str]) -> set[str]:
    """Return the commits that are signed by a key that the trusted commit allows."""
    text = cache.read(os.path.join(basis.folder, basis.signed_name), SIGNED_KIND) or b""
    known = {line[:-2]: line[-1] == "+" for line in text.decode().splitlines()}
    if not commits <= known.keys():
        from memtool.store import citing

        known = citing.signed(basis, commits - known.keys(), known)
    return {commit for commit in commits if known[commit]}


def file_at(
    repository: Repository, commit: str, path: str, read: Callable[[], bytes | None]
) -> bytes | None:
    """Return a small file of a commit, None where it has none; `read` asks git, at most once."""
    name = FILE + cache.digest(commit, path)
    kept = cache.read(os.path.join(folder(repository), name), FILE_KIND)
    if kept is None:
        data = read()
        kept = b"-" if data is None else b"+" + data
        cache.keep(folder(repository), name, FILE_KIND, kept, KEPT, FILE)
    return kept[1:] if kept[:1] == b"+" else None
