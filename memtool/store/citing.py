"""Citing: makes the rows of `citations` by asking git, and keeps them for the next answer.

After a few plain commits the rows of what they did not touch are taken from an older table, so
that a long history is walked once, not after every commit.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from zlib import crc32

from memtool.store import ancestry, cache
from memtool.store.cache import CorruptCache
from memtool.store.citations import (
    KEPT,
    KIND,
    SEPARATOR,
    SIGNED,
    SIGNED_KIND,
    TABLE,
    Basis,
    Row,
    Table,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

TRIED = 2
"""Older tables that are looked at for rows that still hold."""


def made(basis: Basis) -> bytes:
    """Return the bytes of the table of a commit, and keep them where that is possible."""
    data = written(computed(basis))
    cache.write(basis.folder, basis.name, data, KEPT, TABLE)
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
        head = name.split("-")[2]
        if not ancestry.is_straight(repository, head, basis.head):
            continue
        with suppress(CorruptCache):
            table = Table(cache.mapped(os.path.join(basis.folder, name)))
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
    ends = [0]
    for raw in raws:
        ends.append(ends[-1] + len(raw))
    sections = {
        "hashes": _numbers(key for key, _name, _path in order),
        "ends": _numbers(ends),
        "sums": _numbers(crc32(raw, at) for at, raw in enumerate(raws)),
        "rows": b"".join(raws),
    }
    return cache.pack(KIND, (), sections, ("sums", "rows"))


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
    cache.keep(basis.folder, basis.signed_name, SIGNED_KIND, text.encode(), KEPT, SIGNED)
    return both
