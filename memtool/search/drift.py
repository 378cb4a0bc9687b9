"""Drift of the memories of a tree: verdicts by `drift_verdict`, and the table that keeps them.

The verdict on a memory depends on its bytes and on HEAD alone; only whether a commit that HEAD does
not lead to is cited well depends on the trusted one, too. It is kept as a row of one file,
`<cache>/drift/<scope>-<HEAD>`, mapped as that of provenance is: a warm answer reads its few rows
and starts no git. After plain commits all rows hold but those whose files were touched. They stay
as they are; beside them is written what was touched since, with the rows that are new. A file that
is missing or damaged costs time, never the answer.
"""

from __future__ import annotations

import os
import sys

from memtool.memory import drift as rules
from memtool.memory.drift import BROKEN, SAME, UNKNOWN, Drift, FileDrift
from memtool.memory.trust import LOCAL
from memtool.search.features import governed
from memtool.store import cache
from memtool.store.bases import is_straight
from memtool.store.cache import GUARDED_BY_ROW, ROW_SECTIONS, CorruptCache, RowTable, Sections
from memtool.store.git import GitError
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from memtool.search.drift_verdict import DriftQuestion
    from memtool.store.commit_files import CommitFiles
    from memtool.store.provenance import Witness
    from memtool.store.repository import Repository
    from memtool.store.snapshot import Record, Tree

KIND = "drift 8"
SECTIONS = {**ROW_SECTIONS, "touched": "B", "newer": "B"}
"""`touched` is what rows may depend on of all changes since they were made; rows that were made
after these are a table by themselves in `newer`, or nothing."""
NEWER_MOST, TOUCHED_MOST = 500, 5_000
"""With more of either all rows are written again."""
KEPT = 4
TRIED = 2
"""Older tables that are looked at for rows that still hold."""
FEW = 2_000
"""A tree of no more memories is looked at as a whole, once one of them is asked for."""
_NEXT = "\x01"


class DriftWitness:
    """What became of the files of the memories of one tree, as HEAD or its own commit has them."""

    def __init__(
        self,
        tree: Tree,
        witness: Callable[[], Witness],
        since: str = "",
        *,
        is_worktree: bool = False,
    ) -> None:
        """Take a tree; `since` is a commit to compare with instead of each memory's own.

        `is_worktree` looks at files as they lie in the worktree instead of at those of HEAD.
        """
        self._tree = tree
        self._since = since
        self._is_worktree = is_worktree
        self._ask = witness
        self._known: dict[str, Drift] = {}
        self._qualities: dict[str, str] = {}
        self._bases: dict[str, tuple[str, str]] = {}
        self._table: DriftTable | None = None
        self._rows: dict[str, list[str]] = {}
        """Those that are in no table of HEAD yet."""
        self._is_moved = False
        """Whether the table was one of an older commit."""
        self._is_read = False
        self._head: CommitFiles | None = None

    @cached_property
    def _witness(self) -> Witness:
        return self._ask()

    @property
    def _is_cached(self) -> bool:
        return self._witness.is_cached and not self._since and not self._is_worktree

    def __call__(self, record: Record) -> Drift | None:
        """Return what became of the files of a memory, None where it names none.

        What was looked at until now is kept.
        """
        if governed(record):
            self.expect((record,))
        self._keep()
        return self._known.get(record.path) if governed(record) else None

    def quality(self, record: Record) -> str:
        """Return whether the commits and files that a memory cites resolve.

        That is `resolved`, `unresolved`, or empty where it cites none, or nobody can tell.
        """
        self.expect((record,))
        return self._qualities.get(record.path, "")

    def expect(self, records: Iterable[Record]) -> None:
        """Look at memories that will be asked for together, or at all of a small tree.

        What was found of a few is kept later, since ranking asks for one after the other.
        """
        wanted = [one for one in records if one.path not in self._known and _cites_code(one)]
        if not wanted or self._witness.basis is None:
            return
        if any(self._kept(one) is None for one in wanted):
            is_small = len(self._tree.records) <= FEW and self._is_cached
            if is_small:
                self._look_at(self._tree.records)
                self._keep()
            else:
                self._look_at(wanted)

    def level(self, record: Record) -> str:
        """Return the level of a memory, `same` where it names no files."""
        if not governed(record):
            return SAME
        self.expect((record,))
        found = self._known.get(record.path)
        return SAME if found is None else found.level

    def of(self, records: Iterable[Record]) -> dict[str, Drift]:
        """Return what became of the files of memories by path; those that name none are not in it.

        What was not known before is kept.
        """
        found = self._look_at(one for one in records if governed(one))
        self._keep()
        return found

    def levels(self, records: Iterable[Record]) -> dict[str, str]:
        """Return the levels of what `of` returns, quickly for many memories."""
        found, rest = {}, []
        for one in records:
            row = self._row(one)
            if row is not None:
                found[one.path] = row[_LEVEL]
            else:
                rest.append(one)
        return found | {path: drift.level for path, drift in self.of(rest).items()}

    def _look_at(self, records: Iterable[Record]) -> dict[str, Drift]:
        basis = self._witness.basis
        wanted = [one for one in records if _cites_code(one)]
        if basis is None or not wanted:
            return {}
        found = {one.path: drift for one in wanted if (drift := self._kept(one)) is not None}
        missing = [one for one in wanted if one.path not in found]
        if missing:
            from memtool.search import drift_verdict  # a warm answer knows its rows
            from memtool.store.commit_files import CommitFiles

            known = {
                one.path: base
                for one in missing
                for oid, base in [self._bases.get(one.path, ("", ""))]
                if oid == one.oid
            }
            asked = drift_verdict.questions(missing, self._witness, known)
            if self._since:
                asked = [one.replace(base=self._since) for one in asked]
            asked = [one for one in asked if one.base]
            fresh: dict[str, tuple[Drift, set[str]]] = {}
            if asked:
                if self._head is None:
                    is_worktree = self._is_worktree
                    self._head = CommitFiles(basis.repository, basis.head, is_worktree=is_worktree)
                fresh = drift_verdict.judge(basis.repository, self._head, asked)
            cited = drift_verdict.qualities(basis, asked) if asked else {}
            rows = {one.path: _texts(one, *fresh[one.path], *cited[one.path]) for one in asked}
            found |= {path: drift for path, (drift, _watched) in fresh.items()}
            self._qualities |= {path: quality for path, (quality, _trusted) in cited.items()}
            if basis.repository.is_partial:  # what is not here today may be tomorrow
                rows = {path: row for path, row in rows.items() if row[_LEVEL] != UNKNOWN}
            unbased = [one for one in missing if one.path not in found]
            origins = self._witness.origins(unbased)
            found |= {
                one.path: _unbased(one, is_committed=origins[one.path] != LOCAL) for one in unbased
            }
            self._rows |= rows if self._is_cached else {}
        self._known |= found
        return found

    def broken(self, records: Iterable[Record]) -> dict[str, str]:
        """Return by id, in order, why memories are broken."""
        records = list(records)
        found = self.of(records)
        return {
            one.id: rules.reason(found[one.path])
            for one in records
            if one.path in found and found[one.path].level == BROKEN
        }

    def _kept(self, record: Record) -> Drift | None:
        """Return what is known of a memory, without looking at its files."""
        found = self._known.get(record.path)
        row = self._row(record) if found is None else None
        if row is None:
            return found
        found = self._known[record.path] = _drift(row)
        self._qualities[record.path] = row[_QUALITY]
        return found

    def _row(self, record: Record) -> list[str] | None:
        """Return the row of a memory that still holds, None where there is none."""
        if self._witness.basis is None or not self._is_cached:
            return None
        if not self._is_read:
            self._is_read = True
            self._table = self._read()
        row, is_good = self._rows.get(record.path), True
        if row is None and self._table is not None:
            try:
                row, is_good = self._table.row(record.path)
            except CorruptCache:
                self._table = None
        if row is None or row[0] != record.oid:
            return None
        if not is_good or row[_TRUSTED] not in ("", self._trusted_at):
            self._bases[record.path] = row[0], row[1]
            return None
        return row

    @property
    def _trusted_at(self) -> str:
        assert self._witness.basis is not None
        return self._witness.basis.trusted_at or "none"

    def _read(self) -> DriftTable | None:
        basis = self._witness.basis
        assert basis is not None
        try:
            return DriftTable(cache.mapped(os.path.join(self._folder, self._name(basis.head))))
        except CorruptCache:
            found = self._older()
            self._is_moved = found is not None
            return found

    def _older(self) -> DriftTable | None:
        """Return an older table, without the rows that hold no longer."""
        basis = self._witness.basis
        assert basis is not None
        repository = basis.repository
        if repository.is_partial:
            return None
        scope = self._name("")
        for name in cache.newest(self._folder, scope)[:TRIED]:
            head = name.removeprefix(scope)
            try:
                if is_straight(repository, head, basis.head):
                    table = DriftTable(cache.mapped(os.path.join(self._folder, name)))
                    table.touch(_tokens(repository, head, basis.head))
                    return table
            except (CorruptCache, GitError):
                continue
        return None

    def _keep(self) -> None:
        """Write what no table has yet; all at once, since a table is written as a whole."""
        if not self._rows and not self._is_moved:
            return
        basis = self._witness.basis
        assert basis is not None
        data = _written(self._rows) if self._table is None else self._table.extended(self._rows)
        self._table, self._rows, self._is_moved = DriftTable(memoryview(data)), {}, False
        cache.write(self._folder, self._name(basis.head), data, KEPT)

    @property
    def _folder(self) -> str:
        assert self._witness.basis is not None
        return os.path.join(self._witness.basis.repository.cache_dir, "drift")

    def _name(self, head: str) -> str:
        basis = self._witness.basis
        assert basis is not None
        cut = ",".join(sorted(basis.repository.shallow_commits()))
        return f"{cache.digest(KIND, sys.byteorder, basis.directory, cut)}-{head}"


class DriftTable:
    """The rows of a file: blob, commit, level, what it depends on, files, quality, trusted commit.

    Some are older than the rest, and hold where nothing was touched that they depend on.
    """

    def __init__(self, raw: memoryview) -> None:
        """Take the bytes of a file. Raises CorruptCache where it is none, or damaged."""
        self._sections = Sections(raw, KIND, SECTIONS)
        self._table = RowTable(self._sections)
        self._table.check()
        newer = self._sections["newer"]
        self._newer: dict[str, list[str]] = {}
        if newer.nbytes:
            self._newer = RowTable(Sections(newer, KIND, ROW_SECTIONS)).rows()
        touched = bytes(self._sections["touched"]).decode(errors="surrogateescape")
        self._touched = set(filter(None, touched.split(_NEXT)))

    def row(self, path: str) -> tuple[list[str] | None, bool]:
        """Return the row of a path, None for none, and whether it holds. Raises CorruptCache."""
        found = self._newer.get(path)
        if found is not None:
            return found, True
        found = self._table.row(path)
        return found, found is not None and _holds(path, found, self._touched)

    def touch(self, touched: set[str]) -> None:
        """Let all rows be older than some changes; `/` is touched by every one."""
        self._newer = {p: row for p, row in self._newer.items() if _holds(p, row, touched)}
        self._touched |= touched

    def extended(self, rows: dict[str, list[str]]) -> bytes:
        """Return the bytes of a file with these and further rows. Raises CorruptCache."""
        newer = self._newer | rows
        if len(newer) > NEWER_MOST or len(self._touched) > TOUCHED_MOST:
            older = self._table.rows().items()
            held = {path: row for path, row in older if _holds(path, row, self._touched)}
            return _written(held | newer)
        self._table.check()
        kept = {name: bytes(self._sections.unchecked(name)) for name in ROW_SECTIONS}
        return _written(newer, kept, self._touched)


def _holds(path: str, row: list[str], touched: set[str]) -> bool:
    """Tell whether a row holds after some changes: none touched what it depends on."""
    if not touched:
        return True
    is_same = path not in touched and touched.isdisjoint(row[_WATCHED].split(_NEXT))
    return is_same and not row[_TRUSTED]


def _written(
    rows: dict[str, list[str]], older: dict[str, bytes] | None = None, touched: Iterable[str] = ()
) -> bytes:
    """Return the bytes of a file, of rows alone or with the sections of older ones."""
    own = cache.row_sections(rows)
    newer = cache.pack(KIND, (), own, GUARDED_BY_ROW) if older is not None and rows else b""
    marks = _NEXT.join(sorted(touched)).encode(errors="surrogateescape")
    sections = (own if older is None else older) | {"touched": marks, "newer": newer}
    return cache.pack(KIND, (), sections, GUARDED_BY_ROW)


_KEPT_OF_FILES = ("path", "now", "level", "why", "name", "lines", "share", "lines_now", "naming")


_LEVEL, _WATCHED, _QUALITY, _TRUSTED = 2, 3, 5, 6


def _cites_code(record: Record) -> bool:
    """Tell whether a memory names files or commits."""
    return bool(governed(record)) or any(
        source.startswith("commit:") for source in record.memory.items("source")
    )


def _texts(
    asked: DriftQuestion, drift: Drift, watched: Iterable[str], quality: str, trusted: str
) -> list[str]:
    import json

    files = json.dumps([[getattr(one, name) for name in _KEPT_OF_FILES]
                        for one in drift.files], separators=(",", ":"))  # fmt: skip
    kept = _NEXT.join(sorted(watched))
    return [asked.oid, asked.base, drift.level, kept, files, quality, trusted]


def _drift(row: list[str]) -> Drift:
    _oid, base, level, _kept, rows, *_cited = row
    if rows == "[]":
        return Drift(level, base)
    import json  # most memories have not drifted

    files = []
    for path, now, how, why, name, lines, share, moved, naming in json.loads(rows):
        cited, there, named = (
            None if pair is None else (pair[0], pair[1]) for pair in (lines, moved, naming)
        )
        files.append(FileDrift(path, now, how, why, name, cited, share, there, named))
    return Drift(level, base, tuple(files))


def _unbased(record: Record, *, is_committed: bool) -> Drift:
    cut = "this clone ends before the commit that wrote it"
    why = cut if is_committed else "not committed yet"
    named = dict.fromkeys(governed(record))
    files = tuple(FileDrift(path, path, UNKNOWN, "", why) for path in named)
    return Drift(UNKNOWN, "", files)


def _tokens(repository: Repository, old: str, new: str) -> set[str]:
    """Return what rows may depend on of the changes between two commits.

    That is the paths with the folders above them, and of new files name, folder and blob.
    """
    found = {"/"}
    for row in repository.git.diff_raw("diff-tree", "-r", "--no-renames", old, new):
        found.add(row.path)
        at = row.path.rfind("/")
        while at > 0 and (above := row.path[: at + 1]) not in found:
            found.add(above)
            at = row.path.rfind("/", 0, at)
        if row.status != "D":
            folder, _slash, name = row.path.rpartition("/")
            found |= {f"+{name}", f"+{folder}/", f"={row.oid}"}
    return found
