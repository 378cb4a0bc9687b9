"""Drift of the memories of a tree: verdicts by `drift_verdict`, and the rows that keep them.

The verdict on a memory depends on its bytes and on HEAD alone; only whether a commit that HEAD does
not lead to is cited well depends on the trusted one, too. It is kept as a row of the table `drift`:
a warm answer reads its few rows and starts no git. After plain commits all rows hold but those
whose files were touched; of these only the commit still holds that they compare with. Rows that are
missing or damaged cost time, never the answer.
"""

from __future__ import annotations

import os

from memtool.memory import drift as rules
from memtool.memory.drift import BROKEN, SAME, UNKNOWN, Drift, FileDrift
from memtool.memory.trust import LOCAL
from memtool.search.features import governed
from memtool.store import bases, cache
from memtool.store.bases import DRIFT
from memtool.store.git import GitError
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from memtool.search.drift_verdict import DriftQuestion
    from memtool.store.bases import BasisRow
    from memtool.store.commit_files import CommitFiles
    from memtool.store.provenance import Basis, Witness
    from memtool.store.repository import Repository
    from memtool.store.state import Row, Rows
    from memtool.store.tree import Record, Tree

SCOPE = "drift 9"
"""What the rows mean, and its version."""
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
        self._rows: dict[str, DriftRow] = {}
        self._read: set[str] = set()
        """Paths whose rows were looked for in the database."""
        self._new: set[str] = set()
        """Paths whose rows are not in the database yet."""
        self._basis: BasisRow | None = None
        """The rows of HEAD in the database, once they are looked for."""
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
        self._fetch(wanted)
        if any(self._kept(one) is None for one in wanted):
            is_small = self._tree.count <= FEW and self._is_cached
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
        found, rest, records = {}, [], list(records)
        self._fetch(records)
        for one in records:
            row = self._row(one)
            if row is not None:
                found[one.path] = row.level
            else:
                rest.append(one)
        return found | {path: drift.level for path, drift in self.of(rest).items()}

    def _look_at(self, records: Iterable[Record]) -> dict[str, Drift]:
        basis = self._witness.basis
        wanted = [one for one in records if _cites_code(one)]
        if basis is None or not wanted:
            return {}
        self._fetch(wanted)
        found = {one.path: drift for one in wanted if (drift := self._kept(one)) is not None}
        missing = [one for one in wanted if one.path not in found]
        if missing:
            found |= self._judge(basis, missing)
            unbased = [one for one in missing if one.path not in found]
            origins = self._witness.origins(unbased)
            found |= {
                one.path: _unbased(one, is_committed=origins[one.path] != LOCAL) for one in unbased
            }
        self._known |= found
        return found

    def _judge(self, basis: Basis, records: Sequence[Record]) -> dict[str, Drift]:
        """Return what became of the files of memories that there is a commit to compare with."""
        from memtool.search import drift_verdict  # a warm answer knows its rows
        from memtool.store.commit_files import CommitFiles

        oids = {one.path: one.oid for one in records}
        known = {path: base for path, (oid, base) in self._bases.items() if oids.get(path) == oid}
        asked = drift_verdict.questions(records, self._witness, known)
        if self._since:
            asked = [one.replace(base=self._since) for one in asked]
        asked = [one for one in asked if one.base]
        if not asked:
            return {}
        if self._head is None:
            self._head = CommitFiles(basis.repository, basis.head, is_worktree=self._is_worktree)
        judged = drift_verdict.judge(basis.repository, self._head, asked)
        cited = drift_verdict.qualities(basis, asked)
        self._qualities |= {path: quality for path, (quality, _trusted) in cited.items()}
        if self._is_cached:
            rows = {one.path: _row_of(one, *judged[one.path], *cited[one.path]) for one in asked}
            if basis.repository.is_partial:  # what is not here today may be tomorrow
                rows = {path: row for path, row in rows.items() if row.level != UNKNOWN}
            self._rows |= rows
            self._new |= rows.keys()
        return {path: drift for path, (drift, _watched) in judged.items()}

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
        self._qualities[record.path] = row.quality
        return found

    def _row(self, record: Record) -> DriftRow | None:
        """Return the row of a memory that still holds, None where there is none."""
        row = self._rows.get(record.path)
        if row is None or row.oid != record.oid:
            return None
        if not row.level or row.trusted not in ("", self._trusted_at):
            self._bases[record.path] = row.oid, row.base
            return None
        return row

    @property
    def _trusted_at(self) -> str:
        assert self._witness.basis is not None
        return self._witness.basis.trusted_at or "none"

    def _fetch(self, records: Iterable[Record]) -> None:
        """Read the rows of memories, each once."""
        paths = [one.path for one in records if one.path not in self._read]
        if not paths or self._witness.basis is None or not self._is_cached:
            return
        basis = self._basis = self._basis or self._find()
        self._read |= set(paths)
        if basis.number:
            rows = bases.read(self._cache_dir, DRIFT, basis, set(paths) - self._rows.keys())
            self._rows |= {path: DriftRow(*cells) for path, cells in (rows or {}).items()}

    def _find(self) -> BasisRow:
        """Return the rows of HEAD in the database, made from older ones if that is possible.

        Where they cannot be kept, or are those of another worktree, they are in this process.
        """
        basis = self._witness.basis
        assert basis is not None
        repository = basis.repository
        cut = ",".join(sorted(repository.shallow_commits()))
        wanted = bases.new(repository, cache.digest(SCOPE, basis.directory, cut), "", basis.head)
        exact, older = bases.known(self._cache_dir, wanted)
        if exact is not None:
            return exact
        for one in bases.straight(repository, older, basis.head):
            try:
                touched = _tokens(repository, one.head, basis.head)
            except GitError:
                continue

            if one.worktree == wanted.worktree != b"":
                moved = bases.move(self._cache_dir, DRIFT, one, basis.head, _staling(one, touched))
                if moved is not None:
                    return moved
            rows = bases.read(self._cache_dir, DRIFT, one)
            if rows is not None:
                held = {path: DriftRow(*cells) for path, cells in rows.items()}
                self._rows = held | _stale(held, touched)
                self._new |= held.keys()
                break
        return wanted

    def _keep(self) -> None:
        """Write the rows that are new."""
        if not self._new or not self._is_cached or self._basis is None:
            return
        cells = {path: self._rows[path].cells for path in self._new}
        self._new.clear()
        if self._basis.number:
            bases.write(self._cache_dir, DRIFT, self._basis, cells)
        else:
            self._basis = bases.add(self._cache_dir, DRIFT, self._basis, cells) or self._basis

    @property
    def _cache_dir(self) -> str:
        assert self._witness.basis is not None
        return self._witness.basis.repository.cache_dir


_KEPT_OF_FILES = ("path", "now", "level", "why", "name", "lines", "share", "lines_now", "naming")


class DriftRow(Value):
    """What is kept of a memory: its blob, the commit compared with, and the verdict.

    `level` is empty where something was touched since that the verdict depends on. `trusted` is the
    trusted commit where that matters. `watched` is what it depends on, `files` its files as JSON.
    """

    oid: str
    base: str
    level: str
    quality: str
    trusted: str
    watched: bytes
    files: str

    @property
    def cells(self) -> Row:
        """The row of the database, without basis and path."""
        verdict = (self.level, self.quality, self.trusted, self.watched, self.files)
        return (self.oid, self.base, *verdict)

    def holds(self, path: str, touched: set[str]) -> bool:
        """Tell whether the verdict holds after some changes: none touched what it depends on."""
        watched = os.fsdecode(self.watched).split(_NEXT)
        return path not in touched and touched.isdisjoint(watched) and not self.trusted


def _stale(rows: Mapping[str, DriftRow], touched: set[str]) -> dict[str, DriftRow]:
    """Return the rows that do not hold after some changes, without their verdict."""
    return {
        path: row.replace(level="")
        for path, row in rows.items()
        if row.level and not row.holds(path, touched)
    }


def _staling(basis: BasisRow, touched: set[str]) -> Callable[[Rows], dict[str, Row]]:
    def stale(rows: Rows) -> dict[str, Row]:
        held = {path: DriftRow(*cells) for path, cells in bases.all_of(rows, DRIFT, basis)}
        return {path: row.cells for path, row in _stale(held, touched).items()}

    return stale


def _cites_code(record: Record) -> bool:
    """Tell whether a memory names files or commits."""
    return bool(governed(record)) or any(
        source.startswith("commit:") for source in record.memory.items("source")
    )


def _row_of(
    asked: DriftQuestion, drift: Drift, watched: Iterable[str], quality: str, trusted: str
) -> DriftRow:
    import json

    files = json.dumps(
        [[getattr(one, name) for name in _KEPT_OF_FILES] for one in drift.files],
        separators=(",", ":"),
    )
    kept = os.fsencode(_NEXT.join(sorted(watched)))
    return DriftRow(asked.oid, asked.base, drift.level, quality, trusted, kept, files)


def _drift(row: DriftRow) -> Drift:
    if row.files == "[]":
        return Drift(row.level, row.base)
    import json  # most memories have not drifted

    files = []
    for path, now, how, why, name, lines, share, moved, naming in json.loads(row.files):
        cited, there, named = (
            None if pair is None else (pair[0], pair[1]) for pair in (lines, moved, naming)
        )
        files.append(FileDrift(path, now, how, why, name, cited, share, there, named))
    return Drift(row.level, row.base, tuple(files))


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
