"""Provenance of the memories of a tree: last commit, author, date, and what git proves of them.

Trust is computed, never read from a file: `local` (only here) < `committed` (in HEAD) < `trusted`
(the same path and bytes in the trusted ref, as last fetched) < `signed` (and its last commit there
carries a good signature by a key that the trusted ref itself allows). It never means "reviewed".
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.store import citations, refs
from memtool.store.cache import CorruptCache
from memtool.store.citations import Basis
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memtool.store.citations import Row
    from memtool.store.repository import Repository
    from memtool.store.snapshot import Snapshot
    from memtool.store.tree import Record

TRUST_LEVELS = ("local", "committed", "trusted", "signed")
SHORT = 10
"""Digits of a commit id where people read it. Fixed, since git's own choice differs by clone."""
DEFAULT_BRANCHES = (
    "refs/remotes/origin/HEAD",
    "refs/remotes/origin/main",
    "refs/remotes/origin/master",
)
"""Where the remote's default branch is looked for, in this order."""


class Origin(Value):
    """Where the present bytes of a memory come from. Empty texts and 0 mean: not known.

    `is_shallow` says that history was cut off before the commit that wrote it.
    """

    commit: str
    author: str
    date: int
    trust: str
    is_shallow: bool = False


LOCAL = Origin("", "", 0, TRUST_LEVELS[0])


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
        self._table: citations.Table | None = None

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
            found[record.path] = Origin(row.commit, row.author, row.date, level, row.is_shallow)
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

    def _rows(self, records: list[Record]) -> dict[str, Row]:
        if self.basis is None or not records:
            return {}
        paths = [record.path for record in records]
        if not self.is_cached:
            from memtool.store import citing

            return citing.computed(self.basis, paths)
        try:
            return self._kept(self.basis, paths)
        except CorruptCache:
            from memtool.store import citing

            self._table = citations.Table(memoryview(citing.made(self.basis)))
            return self._kept(self.basis, paths)

    def _kept(self, basis: Basis, paths: list[str]) -> dict[str, Row]:
        """Look paths up in the table. Raises CorruptCache."""
        if self._table is None:
            self._table = citations.table_of(basis)
        table = self._table
        return {path: row for path in paths if (row := table.row(path)) is not None}

    def _lift(self, found: dict[str, Origin], rows: Mapping[str, Row]) -> None:
        """Raise what is trusted to signed, where its commit in the trusted ref is."""
        asked = {path: rows[path].trusted_commit for path, origin in found.items()
                 if origin.trust == TRUST_LEVELS[2] and rows[path].trusted_commit}  # fmt: skip
        if self.basis is None or not asked:
            return
        commits = set(asked.values())
        if self.is_cached:
            good = citations.signed(self.basis, commits)
        else:
            from memtool.store import ancestry

            trusted_at = self.basis.trusted_at
            repository = self.snapshot.repository
            good = ancestry.signed(repository, commits, trusted_at, self.allowed_signers)
        for path, commit in asked.items():
            if commit in good:
                found[path] = found[path].replace(trust=TRUST_LEVELS[3])


def head_of(repository: Repository) -> str:
    """Return the commit that is checked out, empty before the first one."""
    return refs.head(repository) or repository.git.head()


def resolve_trusted(repository: Repository, trusted_ref: str) -> str:
    """Return the commit of the trusted ref, empty where there is none.

    Without a setting it is the remote's default branch as last fetched.

    Raises:
        MemtoolError: a ref is configured and does not exist.
    """
    if trusted_ref:
        known = refs.branch(repository, trusted_ref) or refs.named(repository, trusted_ref)
        return known or _asked(repository, trusted_ref)
    for candidate in DEFAULT_BRANCHES:
        commit = refs.branch(repository, candidate)
        if commit is None:
            answer = repository.git.run(
                "rev-parse", "--verify", "--quiet", f"{candidate}^{{commit}}", allowed=(0, 1)
            )
            commit = answer.decode().strip()
        if commit:
            return commit
    return ""


def _asked(repository: Repository, trusted_ref: str) -> str:
    try:
        return repository.git.rev(trusted_ref)
    except MemtoolError:
        raise MemtoolError(
            f"the trusted ref {trusted_ref!r} of the settings does not exist here",
            hint="git fetch, or memtool config trust.ref REF",
            code="config",
        ) from None
