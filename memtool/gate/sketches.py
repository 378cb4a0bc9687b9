"""Sketches: a table of the signatures of a tree, found by binary search in a mapped file.

The file is named by the tree that it was made of and never changes. Only the blocks and rows that
a question touches are read, and their checksums are compared: a damaged table raises `Damaged`,
and whoever asks goes on without it.

Layout, all numbers in the byte order of the machine: magic, seven counts, the sum of the head; for
each of four columns the first entry and the sum of each block; the columns; ends and sums of the
rows; the rows. A column is sorted; its entries hold a 32-bit key above the number of a row.
"""

from __future__ import annotations

import mmap
import os
import sys
import zlib
from _bisect import bisect_left, bisect_right

from memtool.gate import kin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

FORMAT = "twins2"
_MAGIC = f"{FORMAT}-{sys.byteorder}".ljust(16).encode()
_BLOCK = 512
_COLUMNS = ("numbers", "fingerprints", "newer", "ids")
_LOW = (1 << 32) - 1
SHARED = 2
"""Numbers of their signatures that candidates share at least; one alone is a common phrase."""


class Damaged(Exception):
    """The file is not a whole table."""


class Row(kin.Row):
    """What is kept of one memory: its kin, its blob, and its signature.

    `supersedes` is what it effectively replaces.
    """

    oid: str
    fingerprint: int
    numbers: tuple[int, ...]


def build(rows: Sequence[Row]) -> bytes:
    """Return the bytes of a table of rows that are sorted by path."""
    columns = (
        sorted(number << 32 | at for at, row in enumerate(rows) for number in row.numbers),
        sorted(row.fingerprint >> 32 << 32 | at for at, row in enumerate(rows)),
        sorted({_key(old) << 32 | at for at, row in enumerate(rows) for old in row.supersedes}),
        sorted(_key(row.id) << 32 | at for at, row in enumerate(rows)),
    )
    head, body = b"", b""
    for column in columns:
        packed = _packed("Q", column)
        blocks = range(0, len(column), _BLOCK)
        head += _packed("Q", [column[at] for at in blocks])
        sums = [zlib.crc32(packed[at * 8 : (at + _BLOCK) * 8]) for at in blocks]
        head += _packed("Q", sums)
        body += packed
    texts = [_text(row) for row in rows]
    ends = [0]
    for text in texts:
        ends.append(ends[-1] + len(text))
    body += _packed("Q", ends) + _packed("Q", [zlib.crc32(text) for text in texts])
    counts = _packed("Q", [len(rows), *map(len, columns), ends[-1], len(head)])
    return (
        _MAGIC + counts + _packed("Q", [zlib.crc32(counts + head)]) + head + body + b"".join(texts)
    )


def _packed(code: str, numbers: Sequence[int]) -> bytes:
    from array import array

    return array(code, numbers).tobytes()


def _key(id_: str) -> int:
    return zlib.crc32(id_.encode(errors="surrogatepass"))


def _text(row: Row) -> bytes:
    parts = (row.path, row.oid, row.id, row.status, f"{row.fingerprint:x}", *row.supersedes)
    return "\0".join(parts).encode(errors="surrogateescape")


class Table:
    """A mapped table."""

    def __init__(self, data: memoryview) -> None:
        """Take the bytes of a table. Raises Damaged where its head is not whole."""
        start = len(_MAGIC) + 8 * (len(_COLUMNS) + 4)
        if len(data) < start or bytes(data[: len(_MAGIC)]) != _MAGIC:
            raise Damaged("it is no table of this version")
        *counts, guard = data[len(_MAGIC) : start].cast("Q")
        self.count, *lengths, text_length, head_length = counts
        whole = start + head_length + 8 * (sum(lengths) + 2 * self.count + 1) + text_length
        if whole != len(data) or head_length % 8:
            raise Damaged("it is cut off")
        if (
            zlib.crc32(data[len(_MAGIC) : start - 8].tobytes() + data[start : start + head_length])
            != guard
        ):
            raise Damaged("its head is damaged")
        at, to = start, start + head_length
        self._columns: dict[str, tuple[memoryview, memoryview, memoryview]] = {}
        for name, length in zip(_COLUMNS, lengths, strict=True):
            blocks = -(-length // _BLOCK)
            first, sums = (data[at + 8 * n * blocks :][: 8 * blocks].cast("Q") for n in (0, 1))
            self._columns[name] = first, sums, data[to : to + 8 * length].cast("Q")
            at, to = at + 16 * blocks, to + 8 * length
        if at != start + head_length:
            raise Damaged("its head does not fit its columns")
        self._ends = data[to : to + 8 * (self.count + 1)].cast("Q")
        to += 8 * (self.count + 1)
        self._sums = data[to : to + 8 * self.count].cast("Q")
        self._texts = data[to + 8 * self.count :]
        self._checked: set[tuple[str, int]] = set()
        self._rows: dict[int, Row] = {}

    @classmethod
    def open(cls, path: str) -> Self:
        """Map a file. Raises Damaged, also where it is missing."""
        try:
            with open(path, "rb") as file:
                return cls(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
        except (OSError, ValueError) as error:  # an empty file cannot be mapped
            raise Damaged(str(error)) from None

    def holding(self, number: int) -> list[int]:
        """Return the rows whose signature holds a number, in order."""
        return self._found("numbers", number)

    def saying(self, fingerprint: int) -> list[int]:
        """Return the rows with a fingerprint, in order."""
        found = self._found("fingerprints", fingerprint >> 32)
        return [at for at in found if self.row(at).fingerprint == fingerprint]

    def newer(self, id_: str) -> list[int]:
        """Return the rows that supersede an id, in order."""
        return [at for at in self._found("newer", _key(id_)) if id_ in self.row(at).supersedes]

    def called(self, id_: str) -> list[int]:
        """Return the rows with an id, in order."""
        return [at for at in self._found("ids", _key(id_)) if self.row(at).id == id_]

    def row(self, at: int) -> Row:
        """Return a row without its numbers. Raises Damaged."""
        if at not in self._rows:
            if at >= self.count:
                raise Damaged("a column names a row that is not there")
            self._rows[at] = self._row(at, ())
        return self._rows[at]

    def _row(self, at: int, numbers: tuple[int, ...]) -> Row:
        text = bytes(self._texts[self._ends[at] : self._ends[at + 1]])
        if zlib.crc32(text) != self._sums[at]:
            raise Damaged(f"row {at} is damaged")
        path, oid, id_, status, print_, *old = text.decode(errors="surrogateescape").split("\0")
        return Row(id_, path, status, tuple(old), oid, int(print_, 16), numbers)

    def rows(self) -> Iterator[Row]:
        """Yield every row with its numbers, in order. Raises Damaged."""
        first, _sums, column = self._columns["numbers"]
        numbers: list[list[int]] = [[] for _at in range(self.count)]
        for block in range(len(first)):
            self._check("numbers", block)
        for entry in column:
            numbers[entry & _LOW].append(entry >> 32)
        for at in range(self.count):
            yield self._row(at, tuple(numbers[at]))

    def _found(self, name: str, key: int) -> list[int]:
        """Return the rows of a key, in order."""
        first, _sums, column = self._columns[name]
        low, high = key << 32, key << 32 | _LOW
        begin = max(0, bisect_left(first, low) - 1)
        end = bisect_right(first, high)
        for block in range(begin, end):
            self._check(name, block)
        start = bisect_left(column, low, begin * _BLOCK, min(end * _BLOCK, len(column)))
        stop = bisect_right(column, high, start, min(end * _BLOCK, len(column)))
        return [entry & _LOW for entry in column[start:stop]]

    def _check(self, name: str, block: int) -> None:
        if (name, block) not in self._checked:
            _first, sums, column = self._columns[name]
            if zlib.crc32(column[block * _BLOCK : (block + 1) * _BLOCK]) != sums[block]:
                raise Damaged(f"block {block} of {name} is damaged")
            self._checked.add((name, block))


def tables(folder: str) -> list[str]:
    """Return the names of the trees that have a table, the last used first."""
    try:
        with os.scandir(folder) as entries:
            found = [
                (-entry.stat().st_mtime_ns, entry.name)
                for entry in entries
                if entry.name.startswith(FORMAT + "-")
            ]
    except OSError:
        return []
    return [name for _age, name in sorted(found)]


def store(folder: str, name: str, data: bytes, *, kept: int) -> str:
    """Put a table in its place, and drop all but those last used; return why it is impossible."""
    temp = os.path.join(folder, f".tmp-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        try:
            with open(temp, "xb") as file:
                file.write(data)
            os.replace(temp, os.path.join(folder, name))
        finally:
            if os.path.exists(temp):
                os.unlink(temp)
        for old in [other for other in tables(folder) if other != name][kept - 1 :]:
            os.unlink(os.path.join(folder, old))
    except FileNotFoundError:
        return ""  # another process has swept the same table
    except OSError as error:
        return f"{folder}: {os.strerror(error.errno or 0)}"
    return ""
