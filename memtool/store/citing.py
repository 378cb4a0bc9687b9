"""Citing: makes the rows of `citations` by asking git, and keeps them for the next answer.

After a few plain commits the rows of what they did not touch are taken from an older table, so
that a long history is walked once, not after every commit.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from zlib import crc32

from memtool.store import ancestry
from memtool.store.citations import (
    FILE,
    HEADER_BYTES,
    MAGIC,
    SEPARATOR,
    SIGNED,
    Basis,
    Broken,
    Row,
    Table,
    sealed,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

KEPT = 4
"""Tables that stay: those last made, since branches and worktrees share the cache."""
TRIED = 2
"""Older tables that are looked at for rows that still hold."""
TEMP_PREFIX = ".tmp-"
STALE_S = 3600
_MOST_BYTES = 1 << 32


def made(basis: Basis) -> bytes:
    """Return the bytes of the table of a commit, and keep them where that is possible."""
    data = written(computed(basis))
    store(basis.folder, basis.name, data)
    return data


def computed(basis: Basis, paths: Collection[str] | None = None) -> dict[str, Row]:
    """Return the row of every path of the directory, or of some; None means all.

    For all of them an older table helps. Costs a few git processes.
    """
    repository, directory = basis.repository, basis.directory
    present = ancestry.blobs(repository, basis.head, directory)
    wanted = list(present) if paths is None else [path for path in paths if path in present]
    trusted = ancestry.blobs(repository, basis.trusted_at, directory) if basis.trusted_at else {}
    known, last = _known(basis, present) if paths is None else ({}, {})
    unknown = [path for path in wanted if path not in known and path not in last]
    if unknown:
        walked = ancestry.last_commits(repository, basis.head, unknown, directory, present)
        last = last | walked
    there = _there(basis, wanted, present, trusted)
    people = ancestry.authors(repository, set(last.values()))
    boundary = repository.shallow_commits()
    found = {}
    for path in wanted:
        row = known.get(path)
        if row is None:
            commit = last.get(path, "")
            is_shallow = commit in boundary
            author, date = ("", 0) if is_shallow else people.get(commit, ("", 0))
            commit = "" if is_shallow else commit
            row = Row(present[path], commit, author, date, is_shallow, "", "")
        own = there.get(path, "")
        own = "" if own in boundary else own
        found[path] = row.replace(trusted_oid=trusted.get(path, ""), trusted_commit=own)
    return found


def _there(
    basis: Basis, wanted: Iterable[str], present: dict[str, str], trusted: dict[str, str]
) -> dict[str, str]:
    """Return the commit in the trusted ref that wrote each path, where signatures count."""
    if not basis.allowed_signers:
        return {}
    same = [path for path in wanted if trusted.get(path) == present[path]]
    return ancestry.last_commits(
        basis.repository, basis.trusted_at, same, basis.directory, trusted
    ) if same else {}  # fmt: skip


def _known(basis: Basis, present: dict[str, str]) -> tuple[dict[str, Row], dict[str, str]]:
    """Return the rows of an older table that still hold, and the last commits of what came since.

    Nothing where history is not straight: then even untouched files may have another last commit.
    """
    repository, directory = basis.repository, basis.directory
    for name in _older(basis)[:TRIED]:
        head = name.split("-")[1]
        if not ancestry.is_straight(repository, head, basis.head):
            continue
        with suppress(Broken):
            table = Table.open(os.path.join(basis.folder, name))
            since = f"{head}..{basis.head}"
            last = ancestry.last_commits(repository, since, present, directory, present)
            found = {}
            for path, oid in present.items():
                row = None if path in last else table.row(path)
                if row is not None and row.oid == oid:
                    found[path] = row
            return found, last
    return {}, {}


def _older(basis: Basis) -> list[str]:
    """Return the names of the tables of the same scope, the newest first."""
    ages = []
    with suppress(OSError):
        names = [name for name in os.listdir(basis.folder) if name.startswith(f"{basis.scope}-")]
        ages = [(os.stat(os.path.join(basis.folder, name)).st_mtime_ns, name) for name in names]
    return [name for _age, name in sorted(ages, reverse=True)]


def written(found: dict[str, Row]) -> bytes:
    """Return the bytes of a table."""
    order = sorted((crc32(os.fsencode(path)), os.fsencode(path), path) for path in found)
    raws = [SEPARATOR.join([name, *_fields(found[path])]) for _key, name, path in order]
    start = HEADER_BYTES + 12 * len(raws) + 4
    ends = [start]
    for raw in raws:
        ends.append(ends[-1] + len(raw))
    hashes = _numbers(key for key, _name, _path in order)
    offsets = _numbers(end % _MOST_BYTES for end in ends)
    sums = _numbers(crc32(raw, at) for at, raw in enumerate(raws))
    header = _numbers((len(raws), crc32(offsets, crc32(hashes)), ends[-1] % _MOST_BYTES))
    return b"".join([MAGIC, header, hashes, offsets, sums, *raws])


def _fields(row: Row) -> list[bytes]:
    cut = "cut" if row.is_shallow else ""
    texts = (row.oid, row.commit, row.author, str(row.date), cut, row.trusted_oid,
             row.trusted_commit)  # fmt: skip
    return [text.encode(errors="surrogateescape").replace(SEPARATOR, b" ") for text in texts]


def _numbers(values: Iterable[int]) -> bytes:
    return b"".join(value.to_bytes(4, sys.byteorder) for value in values)


def signed(basis: Basis, commits: set[str], known: dict[str, bool]) -> dict[str, bool]:
    """Ask whether an allowed key signed some commits, and keep the answers beside known ones."""
    good = ancestry.signed(basis.repository, commits, basis.trusted_at, basis.allowed_signers)
    both = known | {commit: commit in good for commit in commits}
    text = "".join(f"{commit} {'+' if both[commit] else '-'}\n" for commit in sorted(both))
    store(basis.folder, basis.signed_name, sealed(text.encode()))
    return both


def store(folder: str, name: str, data: bytes) -> None:
    """Put a file in its place. Where that is impossible, git is asked again the next time."""
    with suppress(OSError):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        temp = os.path.join(folder, f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(4).hex()}")
        try:
            with open(temp, "xb") as file:
                file.write(data)
            os.replace(temp, os.path.join(folder, name))
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temp)
        _sweep(folder)


def _sweep(folder: str) -> None:
    """Remove the tables that were made longest ago, and what killed writers left."""
    ages = []
    for item in os.scandir(folder):
        with suppress(OSError):
            ages.append((item.stat().st_mtime, item.name))
    ages.sort(reverse=True)
    for prefix, most in (("", KEPT), (SIGNED, KEPT), (FILE, KEPT), (TEMP_PREFIX, 0)):
        kind = [item for item in ages if _kind(item[1]) == prefix]
        for age, name in kind[most:]:
            if prefix != TEMP_PREFIX or age < ages[0][0] - STALE_S:
                with suppress(OSError):
                    os.unlink(os.path.join(folder, name))


def _kind(name: str) -> str:
    return next((prefix for prefix in (SIGNED, FILE, TEMP_PREFIX) if name.startswith(prefix)), "")
