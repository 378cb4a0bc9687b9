"""Provenance: commit, author, date and trust of each memory, asked of git once and stored.

Trust is computed, never read from a file: `local` (only here) < `committed` (in HEAD) < `trusted`
(the same path and bytes in the trusted ref, as last fetched) < `signed` (and a key that the trusted
ref itself allows has signed its last commit there, or its claim). It never means "reviewed".

Citations are rows of the table `citation`, one for each path of a commit that is read from. A warm
answer finds its few rows there and starts no git. After plain commits only the rows of what these
touched are written anew, so that a long history is walked once. Rows that are missing or damaged
cost time, never the answer.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory.trust import LOCAL, TRUST_LEVELS, Origin, Proof
from memtool.store import bases, cache, kept
from memtool.store.bases import CITATION
from memtool.store.git import GitError
from memtool.store.repository import branch_commit, head_commit, named_commit
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
    from memtool.store.tree import Record

    Touch = tuple[str, str, bool]
    """The last commit that touched a path, the blob, empty for none, and whether it added it."""

LISTED_MOST = 50
"""Paths that are named to git one by one; for more the whole directory is walked."""


def blobs(repository: Repository, commit: str, *paths: str) -> dict[str, str]:
    """Return the blob of each file of a commit at some paths, or below them."""
    return {entry.path: entry.oid for entry in repository.git.ls_tree(commit, *paths)}


def changes_of(
    repository: Repository,
    revisions: Sequence[str],
    paths: Collection[str],
    above: Sequence[str],
    form: str = "%H",
    *,
    is_strict: bool = False,
) -> Iterator[tuple[str, RawChange]]:
    """Yield each change of some paths in the history of revisions, later commits first.

    With it goes what `form` makes of its commit. `above` are directories that hold all paths, for
    the case that these are too many to name. Of a merge only what differs from all its parents
    counts. In a partial clone, which may lack trees of older commits, there may be none, or, with
    `is_strict`, a GitError.
    """
    options = ("-c", "--full-history", "--topo-order", f"--format={form}", "--no-renames")
    limit = sorted(paths) if len(paths) <= LISTED_MOST else above
    ends = ("--end-of-options", *revisions, "--", *limit)
    try:
        return repository.git.log_raw("log", *options, *ends, is_wanted=paths.__contains__)
    except GitError:
        if is_strict or not repository.is_partial:
            raise
        return iter(())


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
    present = blobs(repository, revision, directory) if present is None else present
    last: dict[str, str] = {}
    for commit, row in changes_of(repository, [revision], set(paths), [directory]):
        if present.get(row.path) == row.oid and row.path not in last:
            last[row.path] = commit
            if added is not None and not row.status.strip("A"):
                added.add(row.path)
    return last


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


SCOPE = "citation 1"
"""What the rows mean, and its version."""
PROOF, FILE = "proof", "file"
"""Kinds of what is kept besides: who signed which versions, and small files of a commit."""
_TRIES = 3
_CUT, _FIRST = "cut", "first"
"""States of a row: history ends there, or the commit added the path."""


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

    @classmethod
    def of(cls, cells: Any) -> Self:
        """Return the citation that a row of the database has."""
        oid, commit, author, date, state, trusted_oid, trusted_commit = cells
        is_cut, is_first = state == _CUT, state == _FIRST
        return cls(oid, commit, author, int(date), is_cut, trusted_oid, trusted_commit, is_first)

    @property
    def cells(self) -> Row:
        """The row of the database, without basis and path."""
        state = _CUT if self.is_shallow else _FIRST if self.is_first else ""
        date = str(self.date)  # git may know numbers of 64 bits
        trusted = (self.trusted_oid, self.trusted_commit)
        return (self.oid, self.commit, self.author, date, state, *trusted)

    @property
    def is_trusted(self) -> bool:
        return self.oid == self.trusted_oid


GONE = Citation("", "", "", 0, False, "", "")
"""Stands for a path that the commit does not hold."""


class Basis(Value):
    """What rows depend on. Ids are full; `trusted_at` is empty where no ref is trusted."""

    repository: Repository
    directory: str
    head: str
    trusted_at: str
    allowed_signers: str

    @property
    def trust(self) -> str:
        """What the trusted columns depend on."""
        return cache.digest(self.trusted_at, self.allowed_signers)

    @property
    def row(self) -> BasisRow:
        """The basis as the database names it."""
        cut = ",".join(sorted(self.repository.shallow_commits()))
        scope = cache.digest(SCOPE, self.directory, cut)
        return bases.new(self.repository, scope, self.trust, self.head)


class Citations:
    """The citations of one commit.

    A path that has no row is asked of git, and its row is kept, also if the commit does not hold
    it: a row may be lost, and then it must not seem that there is no such file.
    """

    def __init__(
        self, basis: Basis, row: BasisRow, known: dict[str, Citation], *, is_whole: bool = False
    ) -> None:
        """Take the basis as the database has it, and rows that hold in place of those there.

        `is_whole` says that these are all rows, and nothing is read.
        """
        self._basis = basis
        self._row = row
        self._known = known
        self._is_whole = is_whole

    def of(self, paths: Iterable[str]) -> dict[str, Citation] | None:
        """Return citations by path, without paths that the commit does not hold.

        None is for rows that are no longer those of this commit, or cannot be read.
        """
        wanted = set(paths)
        found = {path: self._known[path] for path in wanted & self._known.keys()}
        if not self._is_whole and wanted - found.keys():
            cache_dir = self._basis.repository.cache_dir
            rows = bases.read(cache_dir, CITATION, self._row, wanted - found.keys())
            if rows is None:
                return None
            found |= {path: Citation.of(cells) for path, cells in rows.items()}
            missing = wanted - found.keys()
            if missing:
                asked = dict.fromkeys(missing, GONE) | computed(self._basis, missing)
                bases.write(cache_dir, CITATION, self._row, _cells(asked))
                found |= asked
            self._known |= found
        return {path: row for path, row in found.items() if row.oid}


def citations_of(basis: Basis) -> Citations:
    """Return the citations of a commit, from the database or from git, which are then kept."""
    cache_dir, wanted = basis.repository.cache_dir, basis.row
    exact, older = bases.known(cache_dir, wanted)
    if exact is not None:
        return Citations(basis, exact, {})
    found: dict[str, Citation] | None = None
    for one in bases.straight(basis.repository, older, basis.head):
        newest = _since(basis, one.head)
        has_same_trust = one.trust == wanted.trust
        if has_same_trust and one.worktree == wanted.worktree != b"":
            return _moved(basis, one, newest)
        rows = bases.read(cache_dir, CITATION, one)
        if rows is not None:
            held = {path: Citation.of(cells) for path, cells in rows.items()}
            if has_same_trust:
                found = held | _changed(basis, newest)
            else:
                found = computed(basis, None, held, newest)
            break
    if found is None:
        found = computed(basis)
    bases.add(cache_dir, CITATION, wanted, _cells(found))
    return Citations(basis, wanted, found, is_whole=True)


def _cells(citations: Mapping[str, Citation]) -> dict[str, Row]:
    return {path: one.cells for path, one in citations.items()}


def _moved(basis: Basis, row: BasisRow, newest: Mapping[str, Touch]) -> Citations:
    """Let the rows of a worktree's basis follow it to a later commit."""
    changed = _changed(basis, newest)
    cells = _cells(changed)
    moved = bases.move(basis.repository.cache_dir, CITATION, row, basis.head, lambda _rows: cells)
    return Citations(basis, row, changed) if moved is None else Citations(basis, moved, {})


def file_at(
    repository: Repository, commit: str, path: str, read: Callable[[], bytes | None]
) -> bytes | None:
    """Return a small file of a commit, None where it has none; `read` asks git, at most once."""
    basis, key = commit.encode(), path.encode()
    known = kept.read(repository.cache_dir, FILE, basis, key)
    if known is None:
        data = read()
        known = b"-" if data is None else b"+" + data
        kept.write(repository.cache_dir, FILE, basis, known, key)
    return known[1:] if known[:1] == b"+" else None


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
    `elsewhere` has, by path, who knows the records that another commit has there.
    """

    def __init__(
        self,
        location: Location,
        trusted_ref: str = "",
        allowed_signers: str = "",
        *,
        is_cached: bool = True,
        elsewhere: Mapping[str, Witness] | None = None,
    ) -> None:
        self.location = location
        self.trusted_ref = trusted_ref
        self.allowed_signers = allowed_signers
        self.is_cached = is_cached
        self._citations: Citations | None = None
        self._elsewhere = elsewhere or {}
        self._proofs: dict[str, tuple[str, ...]] = {}

    def with_commit(self, commit: str, paths: Iterable[str]) -> Witness:
        """Return a witness of the same snapshot with the records of a commit at some paths."""
        repository, directory = self.location.repository, self.location.directory
        there = Location(repository, directory, "commit", commit)
        own = self.trusted_ref, self.allowed_signers
        other = Witness(there, *own, is_cached=self.is_cached)
        elsewhere = {**self._elsewhere, **dict.fromkeys(paths, other)}
        return Witness(self.location, *own, is_cached=self.is_cached, elsewhere=elsewhere)

    @cached_property
    def basis(self) -> Basis | None:
        """The commits that the answers depend on; None before the first commit."""
        repository = self.location.repository
        is_commit = self.location.kind == "commit"
        head = self.location.name if is_commit else head_of(repository)
        if not head:
            return None
        trusted_at = resolve_trusted(repository, self.trusted_ref)
        return Basis(repository, self.location.directory, head, trusted_at, self.allowed_signers)

    def origins(self, records: Iterable[Record]) -> dict[str, Origin]:
        """Return the origin of each record by its path."""
        groups: dict[Witness, list[Record]] = {}
        for record in records:
            groups.setdefault(self._elsewhere.get(record.path, self), []).append(record)
        found: dict[str, Origin] = {}
        for witness, wanted in groups.items():
            found |= self._own_origins(wanted) if witness is self else witness.origins(wanted)
        return found

    def _own_origins(self, wanted: list[Record]) -> dict[str, Origin]:
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
        for _attempt in range(_TRIES):
            self._citations = self._citations or citations_of(self.basis)
            found = self._citations.of(paths)
            if found is not None:
                return found
            self._citations = None  # another process needs the rows for another commit
        return computed(self.basis, paths)

    def _lift(self, found: dict[str, Origin], rows: Mapping[str, Citation]) -> None:
        """Raise what is trusted to signed, where somebody has signed its commit or its claim."""
        asked = {
            path: (rows[path].trusted_commit, rows[path].oid)
            for path, origin in found.items()
            if origin.trust == TRUST_LEVELS[2]
        }
        if self.basis is None or not asked:
            return
        cache_dir, signers = self.basis.repository.cache_dir, self.basis.trust.encode()
        keys = {" ".join(key) for key in asked.values()} - self._proofs.keys()
        if keys and self.is_cached:
            self._proofs |= kept.read_texts(cache_dir, PROOF, signers, keys)
        missing = [(path, *key) for path, key in asked.items() if " ".join(key) not in self._proofs]
        if missing:
            new = _ask_proofs(self.basis, missing, is_cached=self.is_cached)
            self._proofs |= new
            if self.is_cached:
                kept.write_texts(cache_dir, PROOF, signers, new)
        for path, key in asked.items():
            texts = self._proofs.get(" ".join(key))
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
    room = repository.cache_dir if is_cached else ""
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


def _changed(basis: Basis, newest: Mapping[str, Touch]) -> dict[str, Citation]:
    """Return the rows of what was touched."""
    present = {path: oid for path, (_commit, oid, _is_first) in newest.items() if oid}
    return dict.fromkeys(newest, GONE) | _rows(basis, present, *_last(newest))


def computed(
    basis: Basis,
    paths: Collection[str] | None = None,
    older: Mapping[str, Citation] = {},
    newest: Mapping[str, Touch] = {},
) -> dict[str, Citation]:
    """Return the row of every path of the directory, or of some; None means all.

    `older` are rows of an older commit, and `newest` what was touched since. Costs a few git
    processes.
    """
    listed = _listed(basis, paths) if paths is not None else [basis.directory]
    present = blobs(basis.repository, basis.head, *listed)
    if paths is not None:
        present = {path: present[path] for path in paths if path in present}
    known = {
        path: row
        for path, row in older.items()
        if path not in newest and row.oid == present.get(path)
    }
    last, added = _last(newest)
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


def _last(newest: Mapping[str, Touch]) -> tuple[dict[str, str], set[str]]:
    """Return the last commit of each path that was touched, and those that it added."""
    return (
        {path: commit for path, (commit, _oid, _is_first) in newest.items()},
        {path for path, (_commit, _oid, is_first) in newest.items() if is_first},
    )


def _since(basis: Basis, head: str) -> dict[str, Touch]:
    """Return what was touched since a commit, by path."""
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
    newest: dict[str, Touch] = {}
    for commit, row in rows:
        oid = "" if row.status == "D" else row.oid
        newest.setdefault(row.path, (commit, oid, row.status == "A"))
    return newest
