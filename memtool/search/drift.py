"""Drift of the memories of a tree: verdicts by `drift_verdict`, and the rows that cache them.

A verdict depends only on the bytes of the memory and on HEAD. Whether a commit that HEAD does not
reach is cited well depends on the trusted commit too. Verdicts are cached as rows of the table
`drift`, so a warm answer reads a few rows and starts no git. After plain commits, all rows stay
valid except those whose files were touched; of these only the commit to compare with stays valid.
Missing or damaged rows cost time, but never change the answer.
"""

from __future__ import annotations

import os

from memtool.memory import drift as rules
from memtool.memory.drift import BROKEN, SAME, UNKNOWN, Drift, FileDrift, Move
from memtool.memory.sighting import NOTHING_SEEN
from memtool.memory.trust import LOCAL
from memtool.search.features import Moves, list_governed_paths
from memtool.store import bases, cache
from memtool.store.bases import DRIFT
from memtool.store.git import GitError
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from memtool.search.drift_questions import DriftBase, DriftQuestion
    from memtool.store.bases import BasisRow
    from memtool.store.commit_files import CommitFiles
    from memtool.store.landing import Landings
    from memtool.store.provenance import Basis, ProvenanceReader
    from memtool.store.repository import Repository
    from memtool.store.state import Row, Rows
    from memtool.store.tree import Record, Tree

SCOPE = "drift 13"
"""Version of the rows' meaning."""
MAX_JUDGED_AT_ONCE = 2_000
"""A tree of up to this many memories is judged as a whole once one of them is needed."""
_NEXT = "\x01"
_CELL_END = "\0"
_FILE_CELLS = 10


class DriftWitness:
    """Reports what happened to the files of one tree's memories, as of HEAD or the worktree."""

    def __init__(
        self,
        tree: Tree,
        witness: Callable[[], ProvenanceReader],
        since: str = "",
        *,
        is_worktree: bool = False,
        files: Callable[[], CommitFiles] | None = None,
    ) -> None:
        """Take a tree; `since` is a commit to compare with instead of each memory's own.

        `is_worktree` compares with the files in the worktree instead of those in HEAD, and `files`
        with those that it returns.
        """
        self._tree = tree
        self._since = since
        self._is_worktree = is_worktree
        self._get_files = files
        self._get_witness = witness
        self._drifts: dict[str, Drift] = {}
        self._qualities: dict[str, str] = {}
        self._bases: dict[str, tuple[str, DriftBase]] = {}
        self._rows: dict[str, DriftRow] = {}
        self._paths_read: set[str] = set()
        """Paths whose rows were looked up in the database."""
        self._new: set[str] = set()
        """Paths whose rows are not in the database yet."""
        self._basis: BasisRow | None = None
        """The rows of HEAD in the database, once looked up."""
        self._head: CommitFiles | None = None

    @cached_property
    def _witness(self) -> ProvenanceReader:
        return self._get_witness()

    @cached_property
    def _landings(self) -> Landings | None:
        from memtool.store.landing import build_landings  # a warm answer knows its rows

        return build_landings(self._witness)

    @property
    def _is_cached(self) -> bool:
        is_head = not self._is_worktree and self._get_files is None
        return self._witness.is_cached and not self._since and is_head

    def __call__(self, record: Record) -> Drift | None:
        """Return what happened to the files of a memory, None if it names none.

        New verdicts so far are written to the cache.
        """
        if list_governed_paths(record):
            self.expect((record,))
        self._keep()
        return self._drifts.get(record.path) if list_governed_paths(record) else None

    def find_quality(self, record: Record) -> str:
        """Return whether the commits and files that a memory cites resolve.

        `resolved`, `unresolved`, or empty if it cites none or git cannot tell.
        """
        self.expect((record,))
        return self._qualities.get(record.path, "")

    def expect(self, records: Iterable[Record]) -> None:
        """Judge memories that will be needed together, or all of a small tree.

        New verdicts on a few memories are written later, because ranking asks one by one.
        """
        wanted = [
            record
            for record in records
            if record.path not in self._drifts and self._is_judged(record)
        ]
        if not wanted or self._witness.basis is None:
            return
        self._fetch(wanted)
        if any(self._find_stored(record) is None for record in wanted):
            if self.is_small and self._is_cached:
                self._look_at(self._tree.records)
                self._keep()
            else:
                self._look_at(wanted)

    def find_level(self, record: Record) -> str:
        """Return the drift level of a memory, `same` if it names no files."""
        if not list_governed_paths(record):
            return SAME
        self.expect((record,))
        drift = self._drifts.get(record.path)
        return SAME if drift is None else drift.level

    def find(self, records: Iterable[Record]) -> dict[str, Drift]:
        """Return the drift of memories by path, without those that name no files.

        New verdicts are written to the cache.
        """
        drifts = self._look_at(record for record in records if list_governed_paths(record))
        self._keep()
        return drifts

    def find_levels(self, records: Iterable[Record]) -> dict[str, str]:
        """Return the level of each memory that `find` returns, quickly for many memories."""
        levels, unjudged, records = {}, [], list(records)
        self._fetch(records)
        for record in records:
            row = self._find_row(record)
            if row is not None:
                levels[record.path] = row.level
            else:
                unjudged.append(record)
        return levels | {path: drift.level for path, drift in self.find(unjudged).items()}

    @property
    def is_small(self) -> bool:
        """Whether all memories of the tree may be judged once one of them is needed."""
        return self._tree.count <= MAX_JUDGED_AT_ONCE

    def find_moves(self) -> Moves:
        """Return the renamed files, folders and globs that memories name."""
        if self._witness.basis is not None:
            self.find_levels(self._tree.naming_files(lambda _path: True))
        return self._collect_moves()

    def find_stored_moves(self, *, is_hurried: bool) -> Moves:
        """Return the moves found so far, fast enough for a prompt.

        In a small tree, files are judged again after a commit, unless `is_hurried`.
        """
        if self._witness.basis is None:
            return self._collect_moves()
        is_known = self._fetch_moved()
        is_patient = self.is_small and self._is_cached and not is_hurried
        return self.find_moves() if is_patient and not is_known else self._collect_moves()

    def is_waiting(self) -> bool:
        """Return whether files were touched since the last verdicts, or there are none yet."""
        if self._witness.basis is None or not self._is_cached or self._fetch_moved():
            return False
        return bool(self._rows or self._tree.naming_files(lambda _path: True))

    def _collect_moves(self) -> Moves:
        moves = {
            path: (row.oid, _parse_moves(row)) for path, row in self._rows.items() if row.moves
        }
        for path, drift in self._drifts.items():
            record = self._tree.get(path.rpartition("/")[2].removesuffix(".md"))
            moves[path] = record.oid if record else "", drift.moves
        return Moves(moves)

    def _fetch_moved(self) -> bool:
        """Read the rows of memories that name renamed paths; tell whether all rows are valid."""
        if not self._is_cached:
            return False
        basis = self._basis = self._basis or self._find()
        if basis.number:
            where = "moves != x'' OR level = ''"
            rows = bases.read(self._cache_dir, DRIFT, basis, where=where) or {}
            self._rows = {path: DriftRow(*cells) for path, cells in rows.items()} | self._rows
        is_begun = bool(basis.number or self._rows)
        return is_begun and all(row.level for row in self._rows.values())

    def _look_at(self, records: Iterable[Record]) -> dict[str, Drift]:
        basis = self._witness.basis
        wanted = [record for record in records if self._is_judged(record)]
        if basis is None or not wanted:
            return {}
        self._fetch(wanted)
        drifts = {
            record.path: drift
            for record in wanted
            if (drift := self._find_stored(record)) is not None
        }
        missing = [record for record in wanted if record.path not in drifts]
        if missing:
            drifts |= self._judge(basis, missing)
            unbased = [record for record in missing if record.path not in drifts]
            origins = self._witness.origins(unbased)
            drifts |= {
                record.path: _unbased_drift(record, is_committed=origins[record.path] != LOCAL)
                for record in unbased
            }
        self._drifts |= drifts
        return drifts

    def _is_judged(self, record: Record) -> bool:
        """Return whether a memory names files or commits and is not from an overlay."""
        return not self._tree.is_from_overlay(record) and _cites_code(record)

    def _judge(self, basis: Basis, records: Sequence[Record]) -> dict[str, Drift]:
        """Return the drift of those memories that have a commit to compare with."""
        from memtool.search import drift_questions, drift_verdict  # a warm answer knows its rows
        from memtool.store.commit_files import CommitFiles

        oids = {record.path: record.oid for record in records}
        stored_bases = {
            path: base for path, (oid, base) in self._bases.items() if oids.get(path) == oid
        }
        questions = drift_questions.build_questions(
            records, self._witness, self._landings, stored_bases
        )
        if self._since:
            base = drift_questions.DriftBase(self._since)
            questions = [question.replace(base=base, seen=NOTHING_SEEN) for question in questions]
        questions = [question for question in questions if question.base.commit]
        if not questions:
            return {}
        if self._head is None and self._get_files is not None:
            self._head = self._get_files()
        elif self._head is None:
            self._head = CommitFiles(basis.repository, basis.head, is_worktree=self._is_worktree)
        judged = drift_verdict.judge(basis.repository, self._head, questions)
        cited = drift_questions.judge_qualities(basis, questions, self._landings)
        self._qualities |= {path: quality for path, (quality, _trusted) in cited.items()}
        if self._is_cached:
            rows = {
                question.path: _build_row(question, *judged[question.path], *cited[question.path])
                for question in questions
            }
            # Objects missing here, or not looked up in a hurry, may be available tomorrow.
            if basis.repository.is_partial or self._witness.is_hurried:
                rows = {path: row for path, row in rows.items() if row.level != UNKNOWN}
            self._rows |= rows
            self._new |= rows.keys()
        return {path: drift for path, (drift, _watched) in judged.items()}

    def find_broken(self, records: Iterable[Record]) -> dict[str, str]:
        """Return by id, in order, why memories are broken."""
        records = list(records)
        drifts = self.find(records)
        return {
            record.id: rules.summarize(drifts[record.path])
            for record in records
            if record.path in drifts and drifts[record.path].level == BROKEN
        }

    def _find_stored(self, record: Record) -> Drift | None:
        """Return the cached drift of a memory, without examining its files."""
        drift = self._drifts.get(record.path)
        row = self._find_row(record) if drift is None else None
        if row is None:
            return drift
        drift = self._drifts[record.path] = _parse_drift(row)
        self._qualities[record.path] = row.quality
        return drift

    def _find_row(self, record: Record) -> DriftRow | None:
        """Return the valid row of a memory, None if there is none."""
        row = self._rows.get(record.path)
        if row is None or row.oid != record.oid:
            return None
        if not row.level or row.trusted not in ("", self._trusted_at):
            self._bases[record.path] = row.oid, row.drift_base
            return None
        return row

    @property
    def _trusted_at(self) -> str:
        assert self._witness.basis is not None
        return self._witness.basis.trusted_head or "none"

    def _fetch(self, records: Iterable[Record]) -> None:
        """Read the rows of memories, each once."""
        paths = [record.path for record in records if record.path not in self._paths_read]
        if not paths or self._witness.basis is None or not self._is_cached:
            return
        basis = self._basis = self._basis or self._find()
        self._paths_read |= set(paths)
        if basis.number:
            rows = bases.read(self._cache_dir, DRIFT, basis, set(paths) - self._rows.keys())
            self._rows |= {path: DriftRow(*cells) for path, cells in (rows or {}).items()}

    def _find(self) -> BasisRow:
        """Return the rows of HEAD in the database, derived from older ones if possible.

        If they cannot be stored, or belong to another worktree, they stay in this process.
        """
        basis = self._witness.basis
        assert basis is not None
        repository = basis.repository
        cut = ",".join(sorted(repository.shallow_commits()))
        wanted = bases.create(repository, cache.digest(SCOPE, basis.directory, cut), "", basis.head)
        exact, older = bases.find_stored(self._cache_dir, wanted)
        if exact is not None:
            return exact
        for older_basis in bases.find_straight(repository, older, basis.head):
            try:
                touched = _find_tokens(repository, older_basis.head, basis.head)
            except GitError:
                continue

            if older_basis.worktree == wanted.worktree != b"":
                moved = bases.move(
                    self._cache_dir,
                    DRIFT,
                    older_basis,
                    basis.head,
                    _build_stale_filter(older_basis, touched),
                )
                if moved is not None:
                    return moved
            rows = bases.read(self._cache_dir, DRIFT, older_basis)
            if rows is not None:
                stored_rows = {path: DriftRow(*cells) for path, cells in rows.items()}
                self._rows = stored_rows | _find_stale(stored_rows, touched)
                self._new |= stored_rows.keys()
                break
        return wanted

    def _keep(self) -> None:
        """Write the new rows."""
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


class DriftRow(Value):
    """The cached verdict on a memory: its blob, the commit compared with, and the result.

    `level` is empty if something that the verdict depends on was touched since. `trusted` is the
    trusted commit, if it matters. `watched` is what the verdict depends on. `files` has the result
    for each file, in cells rather than JSON, which would cost a search more than all its rows.
    `moves` are the renamed paths that it names, in cells as well. `landed` is 1 if the base is the
    commit in which a lost one has landed.
    """

    oid: str
    base: str
    level: str
    quality: str
    trusted: str
    watched: bytes
    files: bytes
    moves: bytes
    landed: int

    @property
    def drift_base(self) -> DriftBase:
        from memtool.search.drift_questions import DriftBase  # only what has changed is judged anew

        return DriftBase(self.base, bool(self.landed))

    @property
    def cells(self) -> Row:
        """The row of the database, without basis and path."""
        verdict = (self.level, self.quality, self.trusted, self.watched, self.files, self.moves)
        return (self.oid, self.base, *verdict, self.landed)

    def holds(self, path: str, touched: set[str]) -> bool:
        """Return whether the verdict is still valid: no change touched what it depends on."""
        watched = os.fsdecode(self.watched).split(_NEXT)
        return path not in touched and touched.isdisjoint(watched) and not self.trusted


def _find_stale(rows: Mapping[str, DriftRow], touched: set[str]) -> dict[str, DriftRow]:
    """Return the rows that are no longer valid, without their verdict."""
    return {
        path: row.replace(level="")
        for path, row in rows.items()
        if row.level and not row.holds(path, touched)
    }


def _build_stale_filter(basis: BasisRow, touched: set[str]) -> Callable[[Rows], dict[str, Row]]:
    def stale(rows: Rows) -> dict[str, Row]:
        stored_rows = {path: DriftRow(*cells) for path, cells in bases.read_all(rows, DRIFT, basis)}
        return {path: row.cells for path, row in _find_stale(stored_rows, touched).items()}

    return stale


def _cites_code(record: Record) -> bool:
    """Return whether a memory names files or commits."""
    return bool(list_governed_paths(record)) or any(
        source.startswith("commit:") for source in record.memory.items("source")
    )


def _build_row(
    question: DriftQuestion, drift: Drift, watched: Iterable[str], quality: str, trusted: str
) -> DriftRow:
    watched_paths = os.fsencode(_NEXT.join(sorted(watched)))
    moves = (part for move in drift.moves for part in _to_parts(move))
    return DriftRow(
        question.oid,
        question.base.commit,
        drift.level,
        quality,
        trusted,
        watched_paths,
        _pack(drift.files),
        os.fsencode(_CELL_END.join(moves)),
        int(question.base.has_landed),
    )


def _parse_drift(row: DriftRow) -> Drift:
    files = tuple(_unpack(row.files))
    return Drift(row.level, row.base, files, _parse_moves(row), bool(row.landed))


def _pack(files: Iterable[FileDrift]) -> bytes:
    cells: list[str] = []
    for file in files:
        share = "" if file.share is None else repr(file.share)
        since_landing = "+" if file.since_landing else ""
        ranges = (file.lines, file.lines_now, file.naming)
        pairs = ("" if pair is None else f"{pair[0]} {pair[1]}" for pair in ranges)
        cells += [file.path, file.now, file.level, file.why, file.name, share, since_landing]
        cells += pairs
    return _CELL_END.join(cells).encode(errors="surrogatepass")


def _unpack(packed: bytes) -> Iterator[FileDrift]:
    text = packed.decode(errors="surrogatepass")
    cells = iter(text.split(_CELL_END) if text else ())
    for row in zip(*[cells] * _FILE_CELLS, strict=True):
        path, now, level, why, name, share, since_landing, *pairs = row
        lines, lines_now, naming = map(_parse_pair, pairs)
        changed = float(share) if share else None
        yield FileDrift(
            path,
            now,
            level,
            why,
            name,
            lines,
            changed,
            lines_now,
            naming,
            since_landing=bool(since_landing),
        )


def _parse_pair(text: str) -> tuple[int, int] | None:
    first, _space, second = text.partition(" ")
    return (int(first), int(second)) if text else None


def _to_parts(move: Move) -> tuple[str, ...]:
    how = "probable" if move.is_probable else "taken" if move.is_taken else ""
    return move.path, move.now, move.commit, how


def _parse_moves(row: DriftRow) -> tuple[Move, ...]:
    parts = iter(os.fsdecode(row.moves).split(_CELL_END) if row.moves else ())
    return tuple(
        Move(path, now, commit, is_taken=how == "taken", is_probable=how == "probable")
        for path, now, commit, how in zip(*[parts] * 4, strict=True)
    )


def _unbased_drift(record: Record, *, is_committed: bool) -> Drift:
    cut = "this clone ends before the commit that wrote it"
    why = cut if is_committed else "not committed yet"
    named = dict.fromkeys(list_governed_paths(record))
    files = tuple(FileDrift(path, path, UNKNOWN, "", why) for path in named)
    return Drift(UNKNOWN, "", files)


def _find_tokens(repository: Repository, old: str, new: str) -> set[str]:
    """Return the tokens of a diff that rows may depend on.

    These are the changed paths with the folders above them, and name, folder and blob of new files.
    """
    tokens = {"/"}
    for row in repository.git.diff_raw("diff-tree", "-r", "--no-renames", old, new):
        tokens.add(row.path)
        at = row.path.rfind("/")
        while at > 0 and (above := row.path[: at + 1]) not in tokens:
            tokens.add(above)
            at = row.path.rfind("/", 0, at)
        if row.status != "D":
            folder, _slash, name = row.path.rpartition("/")
            tokens |= {f"+{name}", f"+{folder}/", f"={row.oid}"}
    return tokens
