"""Citations: a table beside the search index of what git says about every committed memory.

One file for each commit that is read from, `<cache>/citations/<scope>-<commit>-<trust>`, mapped
and never changed: hashes of the paths in order, and a row for each. A warm answer finds its few
rows here and starts no git. `citing` makes the tables.

Every row is guarded by a checksum, and the hashes are checked before a path is called absent. A
file that is missing, damaged or of another version costs time, never the answer.
"""

from __future__ import annotations

import mmap
import os
from _bisect import bisect_left
from zlib import crc32

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from memtool.store.repository import Repository

MAGIC = b"memtool citations 1\n"
HEADER_BYTES = 32
"""The magic, then the number of rows, the checksum of hashes and ends, and the size of the file."""
SEPARATOR = b"\0"
FILE = "file-"
"""How the names of files begin that hold one small file of a commit."""
SIGNED = "signed-"
"""How the names of files begin that hold which commits an allowed key has signed."""


class Broken(Exception):
    """The file is not a table of this version, or damaged."""


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
        return digest(MAGIC.decode(), sys.byteorder, self.directory, cut)

    @property
    def name(self) -> str:
        return f"{self.scope}-{self.head}-{digest(self.trusted_at, self.allowed_signers)}"

    @property
    def signed_name(self) -> str:
        return SIGNED + digest(self.trusted_at, self.allowed_signers)


def folder(repository: Repository) -> str:
    """Return where the tables are kept."""
    return os.path.join(repository.cache_dir, "citations")


def digest(*parts: str) -> str:
    """Return 16 hexadecimal digits that name some texts without NUL."""
    from _blake2 import blake2b  # hashlib would import OpenSSL

    joined = "\0".join(parts).encode(errors="surrogateescape")
    return blake2b(joined, digest_size=8).hexdigest()


class Table:
    """The rows of one commit."""

    def __init__(self, data: memoryview) -> None:
        """Take the bytes of a file. Raises Broken."""
        header = bytes(data[:HEADER_BYTES])
        if len(header) < HEADER_BYTES or not header.startswith(MAGIC):
            raise Broken("not a table of this version")
        count, self._checksum, size = memoryview(header[len(MAGIC) :]).cast("I")
        if size != len(data) or HEADER_BYTES + 12 * count + 4 > size:
            raise Broken("the table is cut off, or longer than it was")
        numbers = data[HEADER_BYTES : HEADER_BYTES + 12 * count + 4].cast("I")
        self._hashes, self._ends = numbers[:count], numbers[count : 2 * count + 1]
        self._sums = numbers[2 * count + 1 :]
        self._data = data
        self._is_whole = False

    @classmethod
    def open(cls, path: str) -> Self:
        """Map a file. Raises Broken, also where it is missing."""
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                return cls(memoryview(mmap.mmap(handle, 0, access=mmap.ACCESS_READ)))
            finally:
                os.close(handle)
        except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
            raise Broken(str(error)) from None

    def row(self, path: str) -> Row | None:
        """Return the row of a path, None where the commit does not hold it. Raises Broken."""
        wanted = os.fsencode(path)
        key = crc32(wanted)
        at = bisect_left(self._hashes, key)
        while at < len(self._hashes) and self._hashes[at] == key:
            name, *fields = self._fields(at)
            if name == wanted:
                return _row(fields)
            at += 1
        self._check()
        return None

    def _fields(self, at: int) -> list[bytes]:
        raw = bytes(self._data[self._ends[at] : self._ends[at + 1]])
        if crc32(raw, at) != self._sums[at]:
            raise Broken(f"row {at} is damaged")
        return raw.split(SEPARATOR)

    def _check(self) -> None:
        """Check what a search went by, once. Raises Broken."""
        if not self._is_whole and crc32(self._ends, crc32(self._hashes)) != self._checksum:
            raise Broken("the hashes are damaged")
        self._is_whole = True


def _row(fields: list[bytes]) -> Row:
    oid, commit, author, date, is_shallow, trusted_oid, trusted_commit = (
        field.decode(errors="surrogateescape") for field in fields
    )
    is_cut = bool(is_shallow)
    return Row(oid, commit, author, int(date), is_cut, trusted_oid, trusted_commit)


def table_of(basis: Basis) -> Table:
    """Return the table of a commit, from the cache or from git, which is then kept."""
    try:
        return Table.open(os.path.join(basis.folder, basis.name))
    except Broken:
        from memtool.store import citing

        return Table(memoryview(citing.made(basis)))


def signed(basis: Basis, commits: set[str]) -> set[str]:
    """Return the commits that are signed by a key that the trusted commit allows."""
    known: dict[str, bool] = {}
    try:
        with open(os.path.join(basis.folder, basis.signed_name), "rb") as file:
            lines = unsealed(file.read()).decode().splitlines()
        known = {line[:-2]: line[-1] == "+" for line in lines}
    except (OSError, Broken):
        known = {}
    if not commits <= known.keys():
        from memtool.store import citing

        known = citing.signed(basis, commits - known.keys(), known)
    return {commit for commit in commits if known[commit]}


def file_at(
    repository: Repository, commit: str, path: str, read: Callable[[], bytes | None]
) -> bytes | None:
    """Return a small file of a commit, None where it has none; `read` asks git, at most once."""
    name = FILE + digest(commit, path)
    try:
        with open(os.path.join(folder(repository), name), "rb") as file:
            kept = unsealed(file.read())
        return kept[1:] if kept[:1] == b"+" else None
    except (OSError, Broken):
        from memtool.store import citing

        data = read()
        citing.store(folder(repository), name, sealed(b"-" if data is None else b"+" + data))
        return data


def sealed(data: bytes) -> bytes:
    """Return bytes with their checksum before them."""
    return b"%08x\n" % crc32(data) + data


def unsealed(data: bytes) -> bytes:
    """Return the bytes without their checksum. Raises Broken where it is another."""
    if data[:9] != b"%08x\n" % crc32(data[9:]):
        raise Broken("the file is damaged")
    return data[9:]
