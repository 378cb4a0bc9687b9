"""Provenance: commit, author, date and trust of each memory, computed by git once and cached.

Trust is computed, never read from a file: `local` (only here) < `committed` (in HEAD) < `trusted`
(the same path and bytes in the trusted ref, as last fetched) < `signed` (and a key that the trusted
ref itself allows has signed its last commit there, or its claim). It never means "reviewed".

Citations are rows of the table `citation`, one for each path of a commit. With them cached, an
answer starts no git process. After an ordinary commit only the rows of the paths it touched are
rewritten, so a long history is walked once. Missing or damaged rows cost time, but never change
the answer.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory.trust import CITED_DIGITS, LOCAL, TRUST_LEVELS, Origin, Proof
from memtool.store import bases, cache, kept
from memtool.store.bases import CITATION
from memtool.store.git import GitError
from memtool.store.repository import (
    read_branch_commit,
    read_head_commit,
    read_named_commit,
    read_symbolic_target,
)
from memtool.store.snapshot import Location
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Self

    from memtool.store.bases import BasisRow
    from memtool.store.git import RawChange
    from memtool.store.repository import Repository
    from memtool.store.state import Row
    from memtool.store.tree import Overlay, Record, Tree

    Touch = tuple[str, str, bool]
    """The last commit that touched a path, its blob (empty if deleted), and whether it added it."""

MAX_LISTED_PATHS = 50
"""Up to this many paths are passed to git one by one; for more the whole directory is walked."""


def list_blobs(repository: Repository, commit: str, *paths: str) -> dict[str, str]:
    """Return the blob of each file of a commit at or below some paths."""
    return {entry.path: entry.oid for entry in repository.git.ls_tree(commit, *paths)}


def walk_changes(
    repository: Repository,
    revisions: Sequence[str],
    paths: Collection[str],
    directories: Sequence[str],
    title_format: str = "%H",
    *,
    is_strict: bool = False,
) -> Iterator[tuple[str, RawChange]]:
    """Yield each change of some paths in the history of revisions, later commits first.

    Each comes with its commit's title in `title_format`. `directories` contain all paths, for the
    case that these are too many to list. A merge counts only for files that differ from all its
    parents. A partial clone may lack trees of older commits: it yields nothing, or with `is_strict`
    raises a GitError.
    """
    options = ("-c", "--full-history", "--topo-order", f"--format={title_format}", "--no-renames")
    limit = sorted(paths) if len(paths) <= MAX_LISTED_PATHS else directories
    arguments = ("--end-of-options", *revisions, "--", *limit)
    try:
        return repository.git.log_raw("log", *options, *arguments, is_wanted=paths.__contains__)
    except GitError:
        if is_strict or not repository.is_partial:
            raise
        return iter(())


def find_last_commits(
    repository: Repository,
    revision: str,
    paths: Iterable[str],
    directory: str,
    present: Mapping[str, str] | None = None,
    added: set[str] | None = None,
) -> dict[str, str]:
    """Return the newest commit that gave each path its present content, in one walk over history.

    `present` has the blob of each path, if the caller already has it. Newest is by descent, not by
    date, since authors can set any date. A commit does not count if its content was lost in a
    merge. Paths that the commit created are put into `added`.
    """
    present = list_blobs(repository, revision, directory) if present is None else present
    commit_by_path: dict[str, str] = {}
    for commit, row in walk_changes(repository, [revision], set(paths), [directory]):
        if present.get(row.path) == row.oid and row.path not in commit_by_path:
            commit_by_path[row.path] = commit
            if added is not None and not row.status.strip("A"):
                added.add(row.path)
    return commit_by_path


def read_authors(repository: Repository, commits: set[str]) -> dict[str, tuple[str, int]]:
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
    author_by_commit = {}
    for row in answer.decode(errors="replace").split("\0"):
        commit, _line, fields = row.partition("\n")
        second, _line, author = fields.partition("\n")
        if commit:
            author_by_commit[commit] = (author, int(second) if second.lstrip("-").isdigit() else 0)
    return author_by_commit


ROWS_VERSION = "citation 1"
"""Meaning and version of the rows; part of the key of each basis."""
PROOF_KIND, FILE_KIND = "proof", "file"
"""Kinds of further cached data: who signed which versions, and small files of a commit."""
_MAX_TRIES = 3
_CUT_STATE, _FIRST_STATE = "cut", "first"
"""States of a row: history is cut off there, or the commit added the path."""


class Citation(Value):
    """The origin of one path in one commit. Empty texts and 0 mean unknown.

    `trusted_oid` is the blob of the path in the trusted commit. If signatures count and the content
    there is the same, `trusted_commit` wrote it, unless history is cut off before. `is_first` means
    that the commit added the path.
    """

    oid: str
    commit: str
    author: str
    date: int
    is_shallow: bool
    trusted_oid: str
    trusted_commit: str
    is_first: bool = False

    @classmethod
    def from_cells(cls, cells: Any) -> Self:
        """Parse a row of the database."""
        oid, commit, author, date, state, trusted_oid, trusted_commit = cells
        is_cut, is_first = state == _CUT_STATE, state == _FIRST_STATE
        return cls(oid, commit, author, int(date), is_cut, trusted_oid, trusted_commit, is_first)

    @property
    def cells(self) -> Row:
        """The row of the database, without basis and path."""
        state = _CUT_STATE if self.is_shallow else _FIRST_STATE if self.is_first else ""
        date = str(self.date)  # git's dates may have 64 bits
        trusted = (self.trusted_oid, self.trusted_commit)
        return (self.oid, self.commit, self.author, date, state, *trusted)

    @property
    def is_trusted(self) -> bool:
        return self.oid == self.trusted_oid


ABSENT_CITATION = Citation("", "", "", 0, False, "", "")
"""Citation of a path that the commit does not contain."""


class Basis(Value):
    """The commits that rows depend on, by full id; `trusted_head` is empty if no ref is trusted."""

    repository: Repository
    directory: str
    head: str
    trusted_head: str
    allowed_signers: str

    @property
    def trust(self) -> str:
        """Digest of what the trusted columns depend on."""
        return cache.digest(self.trusted_head, self.allowed_signers)

    @property
    def row(self) -> BasisRow:
        """The basis as a row of the database."""
        cut = ",".join(sorted(self.repository.shallow_commits()))
        scope = cache.digest(ROWS_VERSION, self.directory, cut)
        return bases.create(self.repository, scope, self.trust, self.head)


class Citations:
    """The citations of one commit.

    For a path without a row git is asked, and the answer stored, even if the commit does not
    contain the path: after the loss of a row an existing file must not appear to be missing.
    """

    def __init__(
        self, basis: Basis, row: BasisRow, by_path: dict[str, Citation], *, is_whole: bool = False
    ) -> None:
        """Take the basis as a row of the database, and citations that override those stored there.

        `is_whole` means that these are all citations, so that none is read.
        """
        self._basis = basis
        self._row = row
        self._by_path = by_path
        self._is_whole = is_whole

    def read(self, paths: Iterable[str]) -> dict[str, Citation] | None:
        """Return citations by path, without paths that the commit does not contain.

        None means that the stored rows belong to another commit by now, or cannot be read.
        """
        wanted = set(paths)
        citations = {path: self._by_path[path] for path in wanted & self._by_path.keys()}
        if not self._is_whole and wanted - citations.keys():
            cache_dir = self._basis.repository.cache_dir
            rows = bases.read(cache_dir, CITATION, self._row, wanted - citations.keys())
            if rows is None:
                return None
            citations |= {path: Citation.from_cells(cells) for path, cells in rows.items()}
            missing = wanted - citations.keys()
            if missing:
                fresh = dict.fromkeys(missing, ABSENT_CITATION) | compute_citations(
                    self._basis, missing
                )
                bases.write(cache_dir, CITATION, self._row, _to_cells(fresh))
                citations |= fresh
            self._by_path |= citations
        return {path: row for path, row in citations.items() if row.oid}


def load_citations(basis: Basis) -> Citations:
    """Load the citations of a commit from the database, or compute and store them."""
    cache_dir, wanted = basis.repository.cache_dir, basis.row
    exact, older = bases.find_stored(cache_dir, wanted)
    if exact is not None:
        return Citations(basis, exact, {})
    citations: dict[str, Citation] | None = None
    for older_basis in bases.find_straight(basis.repository, older, basis.head):
        touches = _read_touches_since(basis, older_basis.head)
        has_same_trust = older_basis.trust == wanted.trust
        if has_same_trust and older_basis.worktree == wanted.worktree != b"":
            return _move_basis(basis, older_basis, touches)
        rows = bases.read(cache_dir, CITATION, older_basis)
        if rows is not None:
            older_citations = {path: Citation.from_cells(cells) for path, cells in rows.items()}
            if has_same_trust:
                citations = older_citations | _compute_touched(basis, touches)
            else:
                citations = compute_citations(basis, None, older_citations, touches)
            break
    if citations is None:
        citations = compute_citations(basis)
    bases.add(cache_dir, CITATION, wanted, _to_cells(citations))
    return Citations(basis, wanted, citations, is_whole=True)


def _to_cells(citations: Mapping[str, Citation]) -> dict[str, Row]:
    return {path: citation.cells for path, citation in citations.items()}


def _move_basis(basis: Basis, row: BasisRow, touches: Mapping[str, Touch]) -> Citations:
    """Move the rows of a worktree's basis to a later commit, with the changes since."""
    changed = _compute_touched(basis, touches)
    cells = _to_cells(changed)
    moved_row = bases.move(
        basis.repository.cache_dir, CITATION, row, basis.head, lambda _rows: cells
    )
    return Citations(basis, row, changed) if moved_row is None else Citations(basis, moved_row, {})


def read_cached_file(
    repository: Repository, commit: str, path: str, read: Callable[[], bytes | None]
) -> bytes | None:
    """Return a small file of a commit through the cache; None if the commit has none.

    `read` reads it from git if it is not cached.
    """
    basis, key = commit.encode(), path.encode()
    cached = kept.read(repository.cache_dir, FILE_KIND, basis, key)
    if cached is None:
        data = read()
        cached = b"-" if data is None else b"+" + data
        kept.write(repository.cache_dir, FILE_KIND, basis, cached, key)
    return cached[1:] if cached[:1] == b"+" else None


MAX_SIGNERS_BYTES = 256 * 1024
"""A larger allowed-signers file is ignored."""
DEFAULT_BRANCHES = (
    "refs/remotes/origin/HEAD",
    "refs/remotes/origin/main",
    "refs/remotes/origin/master",
)
"""Candidates for the remote's default branch, in the order of lookup."""


def cite(id_: str, origin: Origin | None) -> str:
    """Return the citation `id@commit` of a memory; without a commit `id@local` or `id@shallow`."""
    if origin is None or (not origin.commit and not origin.is_shallow):
        return f"{id_}@local"
    return f"{id_}@{origin.commit[:CITED_DIGITS] or 'shallow'}"


class ProvenanceReader:
    """Reads the provenance of the records of one snapshot.

    `trusted_ref` and `allowed_signers` are the settings of these names. Without `is_cached` git is
    asked about the wanted records only and nothing is stored; the answers are the same. A hook sets
    `is_hurried`, so that all of history is not searched for rewritten commits.
    `readers_by_path` has the reader for each record that comes from another commit.
    """

    def __init__(
        self,
        location: Location,
        trusted_ref: str = "",
        allowed_signers: str = "",
        *,
        is_cached: bool = True,
        is_hurried: bool = False,
        readers_by_path: Mapping[str, ProvenanceReader] | None = None,
    ) -> None:
        self.location = location
        self.trusted_ref = trusted_ref
        self.allowed_signers = allowed_signers
        self.is_cached = is_cached
        self.is_hurried = is_hurried
        self._citations: Citations | None = None
        self._readers_by_path = readers_by_path or {}
        self._proofs: dict[str, tuple[str, ...]] = {}

    def with_commit(
        self, commit: str, paths: Iterable[str], citations: Mapping[str, Row] | None = None
    ) -> ProvenanceReader:
        """Return a reader that takes the records at some paths from another commit.

        `citations` are the rows of all these paths, if the caller has them.
        """
        repository, directory = self.location.repository, self.location.directory
        commit_location = Location(repository, directory, "commit", commit)
        trust_settings = self.trusted_ref, self.allowed_signers
        commit_reader = ProvenanceReader(commit_location, *trust_settings, is_cached=self.is_cached)
        if citations is not None and commit_reader.basis is not None:
            rows = {path: Citation.from_cells(cells) for path, cells in citations.items()}
            commit_reader._citations = Citations(
                commit_reader.basis, commit_reader.basis.row, rows, is_whole=True
            )
        readers_by_path = {**self._readers_by_path, **dict.fromkeys(paths, commit_reader)}
        return ProvenanceReader(
            self.location,
            *trust_settings,
            is_cached=self.is_cached,
            is_hurried=self.is_hurried,
            readers_by_path=readers_by_path,
        )

    @cached_property
    def basis(self) -> Basis | None:
        """The commits that answers depend on; None before the first commit."""
        repository = self.location.repository
        is_commit = self.location.kind == "commit"
        head = self.location.name if is_commit else find_head_commit(repository)
        if not head:
            return None
        trusted_at = resolve_trusted(repository, self.trusted_ref)
        return Basis(repository, self.location.directory, head, trusted_at, self.allowed_signers)

    def with_overlay(self, overlay: Overlay | None) -> ProvenanceReader:
        """Return a reader that includes the memories of an overlay, if there is one."""
        if overlay is None:
            return self
        return self.with_commit(overlay.commit, overlay.citations, overlay.citations)

    def origins(self, records: Iterable[Record]) -> dict[str, Origin]:
        """Return the origin of each record, by path."""
        groups: dict[ProvenanceReader, list[Record]] = {}
        for record in records:
            groups.setdefault(self._readers_by_path.get(record.path, self), []).append(record)
        origins: dict[str, Origin] = {}
        for reader, wanted in groups.items():
            origins |= self._own_origins(wanted) if reader is self else reader.origins(wanted)
        return origins

    def _own_origins(self, wanted: list[Record]) -> dict[str, Origin]:
        rows = self._read_citations(wanted)
        origins = {}
        for record in wanted:
            row = rows.get(record.path)
            if row is None or row.oid != record.oid:
                origins[record.path] = LOCAL
                continue
            level = TRUST_LEVELS[2 if row.is_trusted else 1]
            origins[record.path] = Origin(
                row.commit, row.author, row.date, level, row.is_shallow, row.is_first
            )
        if self.allowed_signers:
            self._raise_to_signed(origins, rows)
        return origins

    def versions(self, records: Iterable[Record]) -> dict[str, dict[str, str]]:
        """Return the committed blobs of each path, with the trust of each blob.

        They may differ from the record's own blob. A path that is in no commit is left out.
        """
        rows = self._read_citations(list(records))
        return {
            path: {
                row.oid: TRUST_LEVELS[2 if row.is_trusted else 1],
                **({row.trusted_oid: TRUST_LEVELS[2]} if row.trusted_oid else {}),
            }
            for path, row in rows.items()
        }

    def _read_citations(self, records: list[Record]) -> dict[str, Citation]:
        if self.basis is None or not records:
            return {}
        paths = [record.path for record in records]
        if not self.is_cached and self._citations is None:
            return compute_citations(self.basis, paths)
        for _attempt in range(_MAX_TRIES):
            self._citations = self._citations or load_citations(self.basis)
            citations = self._citations.read(paths)
            if citations is not None:
                return citations
            self._citations = None  # another process has moved the rows to another commit
        return compute_citations(self.basis, paths)

    def _raise_to_signed(self, origins: dict[str, Origin], rows: Mapping[str, Citation]) -> None:
        """Raise trust from trusted to signed if the commit or the claim has a valid signature."""
        key_by_path = {
            path: (rows[path].trusted_commit, rows[path].oid)
            for path, origin in origins.items()
            if origin.trust == TRUST_LEVELS[2]
        }
        if self.basis is None or not key_by_path:
            return
        cache_dir, signers = self.basis.repository.cache_dir, self.basis.trust.encode()
        keys = {" ".join(key) for key in key_by_path.values()} - self._proofs.keys()
        if keys and self.is_cached:
            self._proofs |= kept.read_texts(cache_dir, PROOF_KIND, signers, keys)
        missing = [
            (path, *key) for path, key in key_by_path.items() if " ".join(key) not in self._proofs
        ]
        if missing:
            fresh = _read_proofs(self.basis, missing, is_cached=self.is_cached)
            self._proofs |= fresh
            if self.is_cached:
                kept.write_texts(cache_dir, PROOF_KIND, signers, fresh)
        for path, key in key_by_path.items():
            texts = self._proofs.get(" ".join(key))
            if texts:
                signatures = tuple(map(Proof, texts[::2], texts[1::2]))
                origins[path] = origins[path].replace(trust=TRUST_LEVELS[3], proofs=signatures)


class TrustLevels:
    """The trust level of each record of a tree; `make_reader` is called for the first of them."""

    def __init__(self, tree: Tree, make_reader: Callable[[], ProvenanceReader]) -> None:
        self._tree = tree
        self._make_reader = make_reader
        self._origins: dict[str, Origin] = {}

    @cached_property
    def _reader(self) -> ProvenanceReader:
        return self._make_reader()

    def __call__(self, record: Record) -> str:
        """Return the trust level of a record, one of `TRUST_LEVELS`."""
        self.prefetch((record,))
        return self._origins[record.path].trust

    def prefetch(self, records: Iterable[Record]) -> None:
        """Load the levels of several records at once; without a cache those of the whole tree."""
        unknown = [record for record in records if record.path not in self._origins]
        if unknown:
            is_cached = self._reader.is_cached
            self._origins |= self._reader.origins(unknown if is_cached else self._tree.records)


def _read_proofs(
    basis: Basis, missing: Iterable[tuple[str, str, str]], *, is_cached: bool
) -> dict[str, tuple[str, ...]]:
    """Return who signed versions of memories, each given as path, commit and blob.

    The key is `commit blob`. The values alternate between the kind of signature and the signer.
    """
    from memtool.store import signatures  # not needed if the answers are cached

    versions = [signatures.SignedVersion(path, oid, commit) for path, commit, oid in missing]
    repository, trusted_head = basis.repository, basis.trusted_head
    signers = read_signers(repository, trusted_head, basis.allowed_signers, is_cached=is_cached)
    cache_dir = repository.cache_dir if is_cached else ""
    proofs = signatures.find_proofs(
        repository, trusted_head, basis.directory, versions, signers, cache_dir
    )
    if proofs is None:
        return {}  # ssh-keygen is missing; not cached, since it may be installed later
    return {
        f"{question.commit} {question.oid}": tuple(
            text for pair in proofs[question.path] for text in pair
        )
        for question in versions
    }


def read_signers(repository: Repository, commit: str, path: str, *, is_cached: bool) -> bytes:
    """Return the allowed-signers file of a commit; empty if it is missing or too large."""

    def read() -> bytes | None:
        content = repository.git.run("cat-file", "blob", f"{commit}:{path}", allowed=(0, 128))
        return content or None

    if not path or not commit:
        return b""
    data = read_cached_file(repository, commit, path, read) if is_cached else read()
    return data if data is not None and len(data) <= MAX_SIGNERS_BYTES else b""


def find_head_commit(repository: Repository) -> str:
    """Return the commit of HEAD; empty before the first commit."""
    return read_head_commit(repository) or repository.git.head()


def resolve_trusted(repository: Repository, trusted_ref: str) -> str:
    """Return the commit of the trusted ref; empty if there is none.

    Without a setting the trusted ref is the remote's default branch as last fetched.

    Raises:
        MemtoolError: the configured ref does not exist.
    """
    if trusted_ref:
        ref_commit = read_branch_commit(repository, trusted_ref) or read_named_commit(
            repository, trusted_ref
        )
        try:
            return ref_commit or repository.git.resolve(trusted_ref)
        except MemtoolError:
            raise MemtoolError(
                f"the trusted branch {trusted_ref!r} (trust.ref) does not exist here",
                hint="git fetch\nmemtool config trust.ref REF",
                code="config",
            ) from None
    for candidate in DEFAULT_BRANCHES:
        commit = read_branch_commit(repository, candidate)
        if commit is None:
            commit = repository.git.line(
                "rev-parse", "--verify", "--quiet", f"{candidate}^{{commit}}", allowed=(0, 1)
            )
        if commit:
            return commit
    return ""


def format_trusted_ref(repository: Repository, trusted_ref: str) -> str:
    """Return the short name of the trusted ref, such as `origin/main`; empty if there is none.

    `trusted_ref` is the setting of this name.
    """
    if trusted_ref:
        return trusted_ref.removeprefix("refs/remotes/").removeprefix("refs/heads/")
    trusted_head = resolve_trusted(repository, "")
    if not trusted_head:
        return ""
    default = read_symbolic_target(repository, DEFAULT_BRANCHES[0])
    names = (name for name in (default, *DEFAULT_BRANCHES[1:]) if name)
    matching_names = (
        name for name in names if read_branch_commit(repository, name) == trusted_head
    )
    return next(matching_names, default or DEFAULT_BRANCHES[0]).removeprefix("refs/remotes/")


def _compute_touched(basis: Basis, touches: Mapping[str, Touch]) -> dict[str, Citation]:
    present = {path: oid for path, (_commit, oid, _is_first) in touches.items() if oid}
    return dict.fromkeys(touches, ABSENT_CITATION) | _build_citations(
        basis, present, *_split_touches(touches)
    )


def compute_citations(
    basis: Basis,
    paths: Collection[str] | None = None,
    older_citations: Mapping[str, Citation] = {},
    touches: Mapping[str, Touch] = {},
) -> dict[str, Citation]:
    """Compute the citations of some paths, or of the whole directory if `paths` is None.

    `older_citations` are those of an older commit, `touches` the changes since. Costs a few git
    processes.
    """
    pathspecs = _choose_pathspecs(basis, paths) if paths is not None else [basis.directory]
    present = list_blobs(basis.repository, basis.head, *pathspecs)
    if paths is not None:
        present = {path: present[path] for path in paths if path in present}
    unchanged = {
        path: row
        for path, row in older_citations.items()
        if path not in touches and row.oid == present.get(path)
    }
    commit_by_path, added = _split_touches(touches)
    unknown = [path for path in present if path not in unchanged and path not in commit_by_path]
    if unknown:
        commit_by_path |= find_last_commits(
            basis.repository, basis.head, unknown, basis.directory, present, added
        )
    return _build_citations(basis, present, commit_by_path, added, unchanged)


def _choose_pathspecs(basis: Basis, paths: Collection[str]) -> list[str]:
    """Return the paths to pass to git: one by one, or the directory if there are many."""
    return sorted(paths) if 0 < len(paths) <= MAX_LISTED_PATHS else [basis.directory]


def _build_citations(
    basis: Basis,
    present: Mapping[str, str],
    commit_by_path: Mapping[str, str],
    added: Collection[str],
    unchanged: Mapping[str, Citation] = {},
) -> dict[str, Citation]:
    """Build citations from blobs and last commits, or from the `unchanged` ones.

    The blobs of the trusted ref are always read again, since it may have moved.
    """
    repository = basis.repository
    trusted = {}
    if basis.trusted_head and present:
        try:
            trusted = list_blobs(repository, basis.trusted_head, *_choose_pathspecs(basis, present))
        except GitError:
            if not repository.is_partial:
                raise
            trusted = {}  # its tree is not in this partial clone
    trusted_commit_by_path: dict[str, str] = {}
    same_paths = [path for path, oid in present.items() if trusted.get(path) == oid]
    if basis.allowed_signers and same_paths:
        trusted_commit_by_path = find_last_commits(
            repository, basis.trusted_head, same_paths, basis.directory, trusted
        )
    author_by_commit = read_authors(
        repository, {commit_by_path[path] for path in present if path in commit_by_path}
    )
    boundary = repository.shallow_commits()
    citations = {}
    for path, oid in present.items():
        row = unchanged.get(path)
        if row is None:
            commit = commit_by_path.get(path, "")
            is_shallow = commit in boundary or not commit
            author, date = ("", 0) if is_shallow else author_by_commit.get(commit, ("", 0))
            is_first = path in added and not is_shallow
            commit = "" if is_shallow else commit
            row = Citation(oid, commit, author, date, is_shallow, "", "", is_first)
        trusted_commit = trusted_commit_by_path.get(path, "")
        trusted_commit = "" if trusted_commit in boundary else trusted_commit
        citations[path] = row.replace(
            trusted_oid=trusted.get(path, ""), trusted_commit=trusted_commit
        )
    return citations


def _split_touches(touches: Mapping[str, Touch]) -> tuple[dict[str, str], set[str]]:
    """Return the last commit of each touched path, and the paths that were added."""
    return (
        {path: commit for path, (commit, _oid, _is_first) in touches.items()},
        {path for path, (_commit, _oid, is_first) in touches.items() if is_first},
    )


def _read_touches_since(basis: Basis, head: str) -> dict[str, Touch]:
    """Return the last touch of each path since a commit."""
    rows = basis.repository.git.log_raw(
        "log",
        "--full-history",
        "--topo-order",
        "--format=%H",
        "--no-renames",
        "--end-of-options",
        f"{head}..{basis.head}",
        "--",
        basis.directory,
    )
    touches: dict[str, Touch] = {}
    for commit, row in rows:
        oid = "" if row.status == "D" else row.oid
        touches.setdefault(row.path, (commit, oid, row.status == "A"))
    return touches
