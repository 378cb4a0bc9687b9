"""Provenance: commit, author, date and trust of each memory, asked of git once and stored.

Trust is computed, never read from a file: `local` (only here) < `committed` (in HEAD) < `trusted`
(the same path and bytes in the trusted ref, as last fetched) < `signed` (and a key that the trusted
ref itself allows has signed its last commit there, or its claim). It never means "reviewed".

One cache file for each commit that is read from, `citations/table-<scope>-<commit>-<trust>`, mapped
and never changed: hashes of the paths in order, and a row for each. A warm answer finds its few
rows there and starts no git. After plain commits the file is extended: the older table as it was,
and before it the rows of what these commits touched, so that a long history is walked once.

A file that is missing, damaged or of another version costs time, never the answer.
"""

from __future__ import annotations

import os
import sys

from memtool.errors import MemtoolError
from memtool.memory.trust import LOCAL, TRUST_LEVELS, Origin, Proof
from memtool.store import cache
from memtool.store.cache import (
    GUARDED_BY_ROW,
    ROW_SECTIONS,
    CorruptCache,
    RowTable,
    Sections,
    TextRows,
)
from memtool.store.git import GitError
from memtool.store.repository import branch_commit, head_commit, named_commit
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from memtool.store.repository import Repository
    from memtool.store.snapshot import Record, Snapshot

LISTED_MOST = 50
"""Paths that are named to git one by one; for more the whole directory is walked."""
STEPS_MOST = 1_000
"""Commits between two states that are looked at one by one."""


def blobs(repository: Repository, commit: str, *paths: str) -> dict[str, str]:
    """Return the blob of each file of a commit at some paths, or below them."""
    return {entry.path: entry.oid for entry in repository.git.ls_tree(commit, *paths)}


def last_commits(
    repository: Repository,
    revision: str,
    paths: Iterable[str],
    directory: str,
    present: Mapping[str, str] | None = None,
    added: set[str] | None = None,
) -> dict[str, str]:
    """Return the newest commit that gave each path its present bytes, in one walk over history.

    `present` says which bytes those are, by path, if the caller knows it already. Newest is by
    descent, not by date: dates are whatever the author wrote. A commit that wrote other bytes on
    a branch, and lost them in the merge, does not count. The paths that were not there before that
    commit are put into `added`.
    """
    wanted = set(paths)
    present = blobs(repository, revision, directory) if present is None else present
    limit = sorted(wanted) if len(wanted) <= LISTED_MOST else [directory]
    try:
        rows = repository.git.log_raw(
            "log", "-c", "--full-history", "--topo-order", "--format=%H", "--no-renames",
            "--end-of-options", revision, "--", *limit, is_wanted=wanted.__contains__,
        )  # fmt: skip
    except GitError:
        if not repository.is_partial:
            raise
        return {}  # the trees of older commits are not here
    last: dict[str, str] = {}
    for commit, row in rows:
        if present.get(row.path) == row.oid and row.path not in last:
            last[row.path] = commit
            if added is not None and not row.status.strip("A"):
                added.add(row.path)
    return last


def is_straight(repository: Repository, old: str, new: str) -> bool:
    """Tell whether a few commits without a merge among them lead from one commit to another.

    Then what they did not touch has the same last commit in both.
    """
    answer = repository.git.run(
        "rev-list", "--parents", "--topo-order", f"--max-count={STEPS_MOST}",
        "--end-of-options", f"{old}..{new}", allowed=(0, 128),
    )  # fmt: skip
    at = new
    for row in answer.decode().splitlines():
        commit, *parents = row.split()
        if commit != at or len(parents) != 1:
            return False
        at = parents[0]
    return at == old


def authors(repository: Repository, commits: set[str]) -> dict[str, tuple[str, int]]:
    """Return (author, second of writing) of each commit."""
    if not commits:
        return {}
    answer = repository.git.run(
        "log",
        "--no-walk=unsorted",
        "--stdin",
        "-z",
        "--format=%H%n%at%n%an",
        stdin="\n".join(sorted(commits)).encode() + b"\n",
    )
    found = {}
    for row in answer.decode(errors="replace").split("\0"):
        commit, _line, rest = row.partition("\n")
        second, _line, author = rest.partition("\n")
        if commit:
            found[commit] = (author, int(second) if second.lstrip("-").isdigit() else 0)
    return found


KIND = "citations 4"
SECTIONS = {**ROW_SECTIONS, "newer": "B"}
"""`newer` is a table by itself, or nothing: what later commits touched goes before all else."""
NEWER_MOST = 500
"""With more rows in `newer` than that, all rows are written again."""
TABLE = "table-"
"""How the names of files begin that hold the rows of a commit."""
KEPT = 4
"""Files of each sort that stay: those last made, since branches and worktrees share the cache."""
PROOFS_KIND, FILE_KIND = "proofs 1", "file 1"
FILE = "file-"
"""How the names of files begin that hold one small file of a commit."""
PROOFS = "proofs-"
"""How the names of files begin that hold who signed which versions of memories."""


class Citation(Value):
    """What git says of one path in one commit. Empty texts and 0 mean: not known.

    `trusted_oid` is the blob at the path in the trusted commit. Where signatures count, and the
    same bytes stand there, `trusted_commit` wrote them, unless history was cut off before.
    `is_first` says that the commit added the path.
    """

    oid: str
    commit: str
    author: str
    date: int
    is_shallow: bool
    trusted_oid: str
    trusted_commit: str
    is_first: bool = False

    @property
    def is_trusted(self) -> bool:
        return self.oid == self.trusted_oid


GONE = Citation("", "", "", 0, False, "", "")
"""Stands in newer rows for a path that was removed."""


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
        cut = ",".join(sorted(self.repository.shallow_commits()))
        return TABLE + cache.digest(KIND, sys.byteorder, self.directory, cut)

    @property
    def name(self) -> str:
        return f"{self.scope}-{self.head}-{self.trust}"

    @property
    def trust(self) -> str:
        """The last part of the file's name: what the trusted columns depend on."""
        return cache.digest(self.trusted_at, self.allowed_signers)

    @property
    def proofs_name(self) -> str:
        return PROOFS + self.trust


def folder(repository: Repository) -> str:
    """Return where the tables are kept."""
    return os.path.join(repository.cache_dir, "citations")


class ProvenanceTable:
    """The rows of one commit."""

    def __init__(self, raw: memoryview) -> None:
        """Take the bytes of a file. Raises CorruptCache."""
        self._sections = Sections(raw, KIND, SECTIONS)
        newer = self._sections["newer"]
        self._newer = ProvenanceTable(newer) if newer.nbytes else None
        self._table = RowTable(self._sections)

    def row(self, path: str) -> Citation | None:
        """Return the row of a path, None where the commit does not hold it. Raises CorruptCache."""
        found = self._newer.own_row(path) if self._newer is not None else None
        found = found or self.own_row(path)
        return found if found is not None and found.oid else None

    def own_row(self, path: str) -> Citation | None:
        """Return the row of a path without what is newer. Raises CorruptCache."""
        texts = self._table.row(path)
        return None if texts is None else _row(texts)

    def own_rows(self) -> dict[str, Citation]:
        """Return all rows by path without what is newer. Raises CorruptCache."""
        return {path: _row(texts) for path, texts in self._table.rows().items()}

    def extended(self, found: dict[str, Citation]) -> bytes | None:
        """Return the bytes of this table with newer rows, None where these are too many.

        Raises:
            CorruptCache: a row cannot be read.
        """
        if self._newer is not None:
            found = self._newer.own_rows() | found
        if len(found) > NEWER_MOST:
            return None
        self._table.check()  # no damage is passed on
        sections = {name: bytes(self._sections.unchecked(name)) for name in SECTIONS}
        return cache.pack(KIND, (), sections | {"newer": written(found)}, GUARDED_BY_ROW)


_CUT, _FIRST = "cut", "first"


def _row(texts: list[str]) -> Citation:
    oid, commit, author, date, state, trusted_oid, trusted_commit = texts
    is_cut, is_first = state == _CUT, state == _FIRST
    return Citation(oid, commit, author, int(date), is_cut, trusted_oid, trusted_commit, is_first)


def table_of(basis: Basis) -> ProvenanceTable:
    """Return the table of a commit, from the cache or from git, which is then kept."""
    try:
        return ProvenanceTable(cache.mapped(os.path.join(basis.folder, basis.name)))
    except CorruptCache:
        return ProvenanceTable(memoryview(made(basis)))


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


MOST_SIGNERS = 256 * 1024
"""Bytes of an allowed-signers file that are read."""
SHORT = 10
"""Digits of a commit id where people read it. Fixed, since git's own choice differs by clone."""
DEFAULT_BRANCHES = (
    "refs/remotes/origin/HEAD",
    "refs/remotes/origin/main",
    "refs/remotes/origin/master",
)
"""Where the remote's default branch is looked for, in this order."""


def cite(id_: str, origin: Origin | None) -> str:
    """Return the citation `id@commit` of a memory, with `local` or `shallow` for no commit."""
    if origin is None or (not origin.commit and not origin.is_shallow):
        return f"{id_}@local"
    return f"{id_}@{origin.commit[:SHORT] or 'shallow'}"


class Witness:
    """What git can say about the records of one snapshot.

    `trusted_ref` and `allowed_signers` are the settings of these names. Without `is_cached` git is
    asked about the wanted records alone, and nothing is kept: the answers are the same.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        trusted_ref: str = "",
        allowed_signers: str = "",
        *,
        is_cached: bool = True,
    ) -> None:
        self.snapshot = snapshot
        self.trusted_ref = trusted_ref
        self.allowed_signers = allowed_signers
        self.is_cached = is_cached
        self._table: ProvenanceTable | None = None
        self._proofs: TextRows | None = None

    @cached_property
    def basis(self) -> Basis | None:
        """The commits that the answers depend on; None before the first commit."""
        repository = self.snapshot.repository
        is_commit = self.snapshot.kind == "commit"
        head = self.snapshot.name if is_commit else head_of(repository)
        if not head:
            return None
        trusted_at = resolve_trusted(repository, self.trusted_ref)
        return Basis(repository, self.snapshot.directory, head, trusted_at, self.allowed_signers)

    def origins(self, records: Iterable[Record]) -> dict[str, Origin]:
        """Return the origin of each record by its path."""
        wanted = list(records)
        rows = self._rows(wanted)
        found = {}
        for record in wanted:
            row = rows.get(record.path)
            if row is None or row.oid != record.oid:
                found[record.path] = LOCAL
                continue
            level = TRUST_LEVELS[2 if row.is_trusted else 1]
            found[record.path] = Origin(
                row.commit, row.author, row.date, level, row.is_shallow, row.is_first
            )
        if self.allowed_signers:
            self._lift(found, rows)
        return found

    def versions(self, records: Iterable[Record]) -> dict[str, dict[str, str]]:
        """Return, by path, the blobs that stand there in commits, each with the trust it has.

        They may be other ones than the record's own. A path that is in no commit is left out.
        """
        rows = self._rows(list(records))
        return {
            path: {
                row.oid: TRUST_LEVELS[2 if row.is_trusted else 1],
                **({row.trusted_oid: TRUST_LEVELS[2]} if row.trusted_oid else {}),
            }
            for path, row in rows.items()
        }

    def _rows(self, records: list[Record]) -> dict[str, Citation]:
        if self.basis is None or not records:
            return {}
        paths = [record.path for record in records]
        if not self.is_cached:
            return computed(self.basis, paths)
        try:
            return self._kept(self.basis, paths)
        except CorruptCache:
            self._table = ProvenanceTable(memoryview(made(self.basis)))
            return self._kept(self.basis, paths)

    def _kept(self, basis: Basis, paths: list[str]) -> dict[str, Citation]:
        """Look paths up in the table. Raises CorruptCache."""
        if self._table is None:
            self._table = table_of(basis)
        table = self._table
        return {path: row for path in paths if (row := table.row(path)) is not None}

    def _lift(self, found: dict[str, Origin], rows: Mapping[str, Citation]) -> None:
        """Raise what is trusted to signed, where somebody has signed its commit or its claim."""
        asked = {path: (rows[path].trusted_commit, rows[path].oid)
                 for path, origin in found.items() if origin.trust == TRUST_LEVELS[2]}  # fmt: skip
        if self.basis is None or not asked:
            return
        if self._proofs is None:
            room = self.basis.folder if self.is_cached else ""
            self._proofs = TextRows(room, self.basis.proofs_name, PROOFS_KIND, KEPT, PROOFS)
        rows_of = self._proofs
        missing = [
            (path, *key) for path, key in asked.items() if rows_of.get(" ".join(key)) is None
        ]
        if missing:
            rows_of.add(_ask_proofs(self.basis, missing, is_cached=self.is_cached))
        for path, key in asked.items():
            texts = rows_of.get(" ".join(key))
            if texts:
                signatures = tuple(map(Proof, texts[::2], texts[1::2]))
                found[path] = found[path].replace(trust=TRUST_LEVELS[3], proofs=signatures)


def _ask_proofs(
    basis: Basis, missing: Iterable[tuple[str, str, str]], *, is_cached: bool
) -> dict[str, tuple[str, ...]]:
    """Return who signed versions of memories; each is path, commit and blob.

    A row is known by commit and blob, and gives how and by whom, in turn.
    """
    from memtool.store import signatures  # a warm answer checks none

    asked = [signatures.Asked(path, oid, commit) for path, commit, oid in missing]
    repository, at = basis.repository, basis.trusted_at
    signers = signers_at(repository, at, basis.allowed_signers, is_cached=is_cached)
    room = basis.folder if is_cached else ""
    found = signatures.proofs(repository, at, basis.directory, asked, signers, room)
    if found is None:
        return {}  # nobody can look here, which another time may be otherwise
    return {
        f"{one.commit} {one.oid}": tuple(text for pair in found[one.path] for text in pair)
        for one in asked
    }


def signers_at(repository: Repository, commit: str, path: str, *, is_cached: bool) -> bytes:
    """Return the allowed-signers file of a commit, nothing where it has none or a huge one."""

    def read() -> bytes | None:
        found = repository.git.run("cat-file", "blob", f"{commit}:{path}", allowed=(0, 128))
        return found or None

    if not path or not commit:
        return b""
    data = file_at(repository, commit, path, read) if is_cached else read()
    return data if data is not None and len(data) <= MOST_SIGNERS else b""


def head_of(repository: Repository) -> str:
    """Return the commit that is checked out, empty before the first one."""
    return head_commit(repository) or repository.git.head()


def resolve_trusted(repository: Repository, trusted_ref: str) -> str:
    """Return the commit of the trusted ref, empty where there is none.

    Without a setting it is the remote's default branch as last fetched.

    Raises:
        MemtoolError: a ref is configured and does not exist.
    """
    if trusted_ref:
        known = branch_commit(repository, trusted_ref) or named_commit(repository, trusted_ref)
        try:
            return known or repository.git.rev(trusted_ref)
        except MemtoolError:
            raise MemtoolError(
                f"the trusted ref {trusted_ref!r} of the settings does not exist here",
                hint="git fetch, or memtool config trust.ref REF",
                code="config",
            ) from None
    for candidate in DEFAULT_BRANCHES:
        commit = branch_commit(repository, candidate)
        if commit is None:
            commit = repository.git.line(
                "rev-parse", "--verify", "--quiet", f"{candidate}^{{commit}}", allowed=(0, 1)
            )
        if commit:
            return commit
    return ""


def trusted_name(repository: Repository, trusted_ref: str) -> str:
    """Return what people call the trusted ref, such as `origin/main`; empty where there is none.

    `trusted_ref` is the setting of this name.
    """
    if trusted_ref:
        return trusted_ref.removeprefix("refs/remotes/").removeprefix("refs/heads/")
    at = resolve_trusted(repository, "")
    if not at:
        return ""
    named = (name for name in DEFAULT_BRANCHES[1:] if branch_commit(repository, name) == at)
    return next(named, DEFAULT_BRANCHES[0]).removeprefix("refs/remotes/")


TRIED = 2
"""Older tables that are looked at for rows that still hold."""


def made(basis: Basis) -> bytes:
    """Return the bytes of the table of a commit, and keep them where that is possible."""
    data = _extended(basis) or written(computed(basis))
    cache.write(basis.folder, basis.name, data, KEPT, TABLE)
    return data


def _extended(basis: Basis) -> bytes | None:
    """Return an older table with what commits since have touched above it, None without one."""
    for table, head, trust in _straight(basis):
        newest = _since(basis, head)
        if trust != basis.trust or len(newest) > NEWER_MOST:
            continue
        gone = dict.fromkeys((path for path, touch in newest.items() if not touch[1]), GONE)
        present = {path: oid for path, (_commit, oid, _is_first) in newest.items() if oid}
        last, added = _last(newest)
        try:
            data = table.extended(gone | _rows(basis, present, last, added))
        except CorruptCache:
            continue
        if data is not None:
            return data
    return None


def computed(basis: Basis, paths: Collection[str] | None = None) -> dict[str, Citation]:
    """Return the row of every path of the directory, or of some; None means all.

    For all of them an older table helps. Costs a few git processes.
    """
    listed = _listed(basis, paths) if paths is not None else [basis.directory]
    present = blobs(basis.repository, basis.head, *listed)
    if paths is not None:
        present = {path: present[path] for path in paths if path in present}
    known, last, added = _known(basis, present) if paths is None else ({}, {}, set())
    unknown = [path for path in present if path not in known and path not in last]
    if unknown:
        last |= last_commits(basis.repository, basis.head, unknown, basis.directory, present, added)
    return _rows(basis, present, last, added, known)


def _listed(basis: Basis, paths: Collection[str]) -> list[str]:
    """Return how paths are named to git: one by one, or all of the directory for many."""
    return sorted(paths) if 0 < len(paths) <= LISTED_MOST else [basis.directory]


def _rows(
    basis: Basis,
    present: Mapping[str, str],
    last: Mapping[str, str],
    added: Collection[str],
    known: Mapping[str, Citation] = {},
) -> dict[str, Citation]:
    """Return the rows of paths, of their blobs and last commits, or of what is known of them.

    What the trusted ref holds is asked in any case: it may be another one than it was.
    """
    repository = basis.repository
    trusted = {}
    if basis.trusted_at and present:
        try:
            trusted = blobs(repository, basis.trusted_at, *_listed(basis, present))
        except GitError:
            if not repository.is_partial:
                raise
            trusted = {}  # nobody can tell what it holds
    there: dict[str, str] = {}
    same = [path for path, oid in present.items() if trusted.get(path) == oid]
    if basis.allowed_signers and same:
        there = last_commits(repository, basis.trusted_at, same, basis.directory, trusted)
    people = authors(repository, {last[path] for path in present if path in last})
    boundary = repository.shallow_commits()
    found = {}
    for path, oid in present.items():
        row = known.get(path)
        if row is None:
            commit = last.get(path, "")
            is_shallow = commit in boundary or not commit
            author, date = ("", 0) if is_shallow else people.get(commit, ("", 0))
            is_first = path in added and not is_shallow
            commit = "" if is_shallow else commit
            row = Citation(oid, commit, author, date, is_shallow, "", "", is_first)
        own = there.get(path, "")
        own = "" if own in boundary else own
        found[path] = row.replace(trusted_oid=trusted.get(path, ""), trusted_commit=own)
    return found


def _known(
    basis: Basis, present: Mapping[str, str]
) -> tuple[dict[str, Citation], dict[str, str], set[str]]:
    """Return the rows of an older table that still hold, and last commits and additions since.

    Such a table knows another trusted ref, or too little of what was touched since.
    """
    for table, head, _trust in _straight(basis):
        newest = _since(basis, head)
        try:
            rows = {path: table.row(path) for path in present if path not in newest}
        except CorruptCache:
            continue
        found = {path: row for path, row in rows.items() if row and row.oid == present[path]}
        return found, *_last(newest)
    return {}, {}, set()


def _last(newest: Mapping[str, tuple[str, str, bool]]) -> tuple[dict[str, str], set[str]]:
    """Return the last commit of each path that was touched, and those that it added."""
    return (
        {path: commit for path, (commit, _oid, _is_first) in newest.items()},
        {path for path, (_commit, _oid, is_first) in newest.items() if is_first},
    )


def _straight(basis: Basis) -> Iterator[tuple[ProvenanceTable, str, str]]:
    """Yield older tables with their commit and trust, where a straight history leads from them.

    Elsewhere even a file that nobody touched may have another last commit.
    """
    if basis.repository.is_partial:
        return  # trees in between may be absent
    for name in cache.newest(basis.folder, f"{basis.scope}-")[:TRIED]:
        _table, _scope, head, trust = name.split("-")
        if is_straight(basis.repository, head, basis.head):
            try:
                yield ProvenanceTable(cache.mapped(os.path.join(basis.folder, name))), head, trust
            except CorruptCache:
                continue


def _since(basis: Basis, head: str) -> dict[str, tuple[str, str, bool]]:
    """Return the last commit and the blob of each path that was touched since, and if it added it.

    The blob is empty where the path was removed.
    """
    rows = basis.repository.git.log_raw(
        "log", "--full-history", "--topo-order", "--format=%H", "--no-renames",
        "--end-of-options", f"{head}..{basis.head}", "--", basis.directory,
    )  # fmt: skip
    newest: dict[str, tuple[str, str, bool]] = {}
    for commit, row in rows:
        oid = "" if row.status == "D" else row.oid
        newest.setdefault(row.path, (commit, oid, row.status == "A"))
    return newest


def written(found: dict[str, Citation]) -> bytes:
    """Return the bytes of a table."""
    sections = cache.row_sections({path: _texts(row) for path, row in found.items()})
    return cache.pack(KIND, (), sections | {"newer": b""}, GUARDED_BY_ROW)


def _texts(row: Citation) -> tuple[str, ...]:
    state = _CUT if row.is_shallow else _FIRST if row.is_first else ""
    return (row.oid, row.commit, row.author, str(row.date), state, row.trusted_oid,
            row.trusted_commit)  # fmt: skip
