"""The table of a tree: what kin needs to know of each memory, in a file where one is found fast.

One line a memory, sorted by id, each with a checksum: id, status, path, what it supersedes, what
supersedes it. The first line names the commit whose tree it is. Git then says what differs from
that commit, so the table stays of use over many commits; when too much differs it is made anew.
Missing, damaged or unwritable, it costs the time of reading the tree, never the answer.
"""

from __future__ import annotations

import os
import zlib

from memtool.gate.differences import differences
from memtool.gate.kin import Kin, Row, effective, row_of
from memtool.gate.verdicts import ROOM
from memtool.memory.document import MAX_BYTES
from memtool.store import snapshot, versions
from memtool.store.git import GitError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from mmap import mmap
    from typing import Self

    from memtool.gate.differences import Difference
    from memtool.store.repository import Repository

FORMAT = "memtool-kin 1"
MOST_DIFFERENT = 300
"""Files that may differ from the table before it is made anew."""


class Damaged(Exception):
    """A line of the table is not what was written."""


class Table:
    """A table of one tree, mapped. `commit` is the tree's; methods raise Damaged."""

    def __init__(self, data: mmap | bytes, commit: str, start: int) -> None:
        self._data = data
        self.commit = commit
        self._start = start

    @classmethod
    def open(cls, path: str, name: str) -> Self | None:
        """Open the table of that name; None where there is none that can be used."""
        from mmap import ACCESS_READ, mmap

        try:
            with open(path, "rb") as file:
                data = mmap(file.fileno(), 0, access=ACCESS_READ)
        except (OSError, ValueError):  # mmap takes no empty file
            return None
        end = data.find(b"\n", 0, 400)
        parts = data[:end].decode(errors="replace").split("\t") if end > 0 else []
        if len(parts) != 3 or parts[0] != FORMAT or parts[1] != name or data[-1:] != b"\n":
            return None
        return cls(data, parts[2], end + 1)

    def rows(self, id_: str) -> list[Row]:
        """Return the memories with an id."""
        return [row for row, _newer in self._lines(id_) if row.path]

    def newer(self, id_: str) -> list[str]:
        """Return the ids of what supersedes an id, also where no memory has it."""
        found: set[str] = set()
        for _row, newer in self._lines(id_):
            found.update(newer)
        return sorted(found)

    def _lines(self, id_: str) -> list[tuple[Row, tuple[str, ...]]]:
        wanted = id_.encode(errors="surrogateescape")
        low, high = self._start, len(self._data)
        while low < high:
            middle = self._line_start((low + high) // 2)
            key, _rest, end = self._line(middle)
            if key < wanted:
                low = end
            else:
                high = middle
        found = []
        while low < len(self._data):
            key, rest, low = self._line(low)
            if key != wanted:
                break
            found.append(_parsed(id_, rest))
        return found

    def _line_start(self, at: int) -> int:
        return max(self._start, self._data.rfind(b"\n", self._start, at) + 1)

    def _line(self, start: int) -> tuple[bytes, bytes, int]:
        """Return id, the rest, and where the next line starts."""
        end = self._data.find(b"\n", start)
        line = self._data[start:end]
        body, _tab, check = line.rpartition(b"\t")
        if check != b"%08x" % zlib.crc32(body):
            raise Damaged
        key, _tab, rest = body.partition(b"\t")
        return key, rest, end + 1


def kin(
    repository: Repository,
    directory: str,
    categories: Collection[str],
    staged: Sequence[Difference],
    own: Iterable[Row],
) -> Kin:
    """Return the kin of what is staged: `own` rows above the table of a commit near HEAD."""
    rows = list(own)
    folder = os.path.join(repository.cache_dir, ROOM)
    name = _name(directory, categories)
    path = os.path.join(folder, f"kin-{name}")
    table = Table.open(path, name)
    since = _since(repository, directory, table)
    if table is None or since is None or len(since) > MOST_DIFFERENT + len(staged):
        table, since = _made(repository, directory, categories, path, name), staged
    try:
        return _above(repository, directory, categories, rows, staged, table, since)
    except Damaged:
        table = _made(repository, directory, categories, path, name)
        return _above(repository, directory, categories, rows, staged, table, staged)


def _since(
    repository: Repository, directory: str, table: Table | None
) -> Sequence[Difference] | None:
    """Return where the index differs from the tree of a table; None if its commit is gone."""
    if table is None:
        return None
    try:
        return differences(repository, directory, table.commit)[0]
    except GitError:
        return None


def _above(
    repository: Repository,
    directory: str,
    categories: Collection[str],
    own: list[Row],
    staged: Sequence[Difference],
    table: Table,
    since: Sequence[Difference],
) -> Kin:
    """Put above a table what differs from it; read what was committed since it was made."""
    known = {row.path for row in own} | {row.path for row in staged}
    committed = [
        (row.path, row.oid)
        for row in since
        if row.path not in known
        and row.mode in ("100644", "100755")
        and snapshot.is_memory_path(row.path, directory)
    ]
    read = versions.of_blobs(repository, committed, categories)
    rows = [row_of(v.memory, v.path) for v in read.values() if v.memory is not None]
    found = Kin(
        [*own, *rows],
        table=table.rows,
        newer=table.newer,
        hidden=frozenset(known | {row.path for row in since}),
    )
    for row in own:  # what is damaged shows while the table can still be made anew
        found.around([row.id])
    return found


def _made(
    repository: Repository,
    directory: str,
    categories: Collection[str],
    path: str,
    name: str,
) -> Table:
    """Read the tree of HEAD, and keep its table if the cache can be written."""
    head = repository.git.head()
    entries = snapshot.of_commit(repository, directory, head).entries
    blobs = repository.git.blobs([entry.oid for entry in entries], MAX_BYTES)
    rows = []
    for entry, data in zip(entries, blobs, strict=True):
        version = versions.of_bytes(data, entry.path, categories)
        if version.memory is not None:
            rows.append(row_of(version.memory, entry.path))
    data = written(rows, head, name)
    _keep(path, data)
    return Table(data, head, data.index(b"\n") + 1)


def written(rows: Iterable[Row], commit: str, name: str) -> bytes:
    """Return the bytes of a table. An id that is superseded but not there has a line, no path."""
    newer: dict[str, set[str]] = {}
    known = sorted(rows, key=lambda row: (row.id.encode(), row.path))
    for row in known:
        for old in effective(row):
            newer.setdefault(old, set()).add(row.id)
    missing = [Row(id_, "", "", ()) for id_ in newer.keys() - {row.id for row in known}]
    lines = [f"{FORMAT}\t{name}\t{commit}".encode()]
    for row in sorted([*known, *missing], key=lambda row: (row.id.encode(), row.path)):
        place = row.path.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")
        above = ",".join(sorted(newer.get(row.id, ())))
        text = "\t".join((row.id, row.status, place, ",".join(row.supersedes), above))
        body = text.encode(errors="surrogateescape")
        lines.append(b"%s\t%08x" % (body, zlib.crc32(body)))
    return b"\n".join(lines) + b"\n"


def _parsed(id_: str, rest: bytes) -> tuple[Row, tuple[str, ...]]:
    text = rest.decode(errors="surrogateescape")
    status, place, older, newer = text.split("\t")
    if "\\" in place:
        parts = place.split("\\\\")
        place = "\\".join(part.replace("\\t", "\t").replace("\\n", "\n") for part in parts)
    row = Row(id_, place, status, tuple(filter(None, older.split(","))))
    return row, tuple(filter(None, newer.split(",")))


def _name(directory: str, categories: Collection[str]) -> str:
    """Name a table by what decides which files are memories."""
    from _blake2 import blake2b  # hashlib would import OpenSSL

    text = "\n".join((directory, *sorted(categories)))
    return blake2b(text.encode(errors="surrogateescape"), digest_size=6).hexdigest()


def _keep(path: str, data: bytes) -> None:
    temp = f"{path}.{os.getpid()}-{os.urandom(4).hex()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(temp, "xb") as file:
            file.write(data)
        os.replace(temp, path)
    except OSError:
        if os.path.exists(temp):
            os.unlink(temp)
