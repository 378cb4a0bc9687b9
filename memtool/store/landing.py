"""Find the commits in which commits rewritten by a squash, a rebase or an amend have landed.

A rewritten commit is found by a message that names it, as `git merge --squash` and `cherry-pick -x`
write it, or by its author date, which rebase, amend and cherry-pick keep. Otherwise it has landed
with the memory that cites it: in the oldest commit whose version of the memory has the citation.

Results are rows of the table `landing`; for a later commit only the new part of history is
searched. git is only asked if a cited commit is not in history.
"""

from __future__ import annotations

from memtool.store import bases, cache
from memtool.store.bases import LANDING
from memtool.store.provenance import walk_changes
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memtool.store.bases import BasisRow
    from memtool.store.provenance import Basis, ProvenanceReader
    from memtool.store.state import Row

ROWS_VERSION = "landing 1"
"""Meaning and version of the rows; part of the key of each basis."""
NAMED, AUTHORED, BROUGHT = "named", "authored", "brought"
"""How a commit was found: a message names the lost one, it has the same author date, or it added
the memory that cites the lost one."""
_NAMES_A_COMMIT = r"(?m)(?:^[ \t]*commit |\(cherry picked from commit )([0-9a-f]{40,64})\b"
_MAX_MEMORY_BYTES = 1 << 20
_CITATION_PREFIXES = (b":", b"@", b" ")
"""Characters before the id of a commit in a memory."""


class Landing(Value):
    """The full id of the commit in which a lost one has landed, and how it was found."""

    commit: str
    how: str


class LostCommit(Value):
    """A commit that is not in history, as named by the memory at a path.

    `second` is the author date, 0 if unknown.
    """

    path: str
    name: str
    second: int = 0


def build_landings(reader: ProvenanceReader) -> Landings | None:
    """Return the landings for the history of a reader; None before the first commit."""
    if reader.basis is None:
        return None
    return Landings(reader.basis, is_cached=reader.is_cached, is_hurried=reader.is_hurried)


class Landings:
    """Finds where lost commits have landed, in the history of HEAD and of the trusted ref."""

    def __init__(self, basis: Basis, *, is_cached: bool = True, is_hurried: bool = False) -> None:
        """Take the commits whose history counts; with `is_hurried` only the cache is used."""
        self._basis = basis
        self._is_cached = is_cached
        self._is_hurried = is_hurried
        self._row: BasisRow | None = None
        self._landing_by_key: dict[str, Landing | None] = {}

    def find(self, wanted: Iterable[LostCommit]) -> dict[LostCommit, Landing]:
        """Return the landing of each commit that has one."""
        keys = {_key(lost): lost for lost in wanted}
        self._read(keys)
        missing = [lost for key, lost in keys.items() if key not in self._landing_by_key]
        if missing and not self._is_hurried:
            self._store({_key(lost): landing for lost, landing in self._search(missing).items()})
        landings = {lost: self._landing_by_key.get(key) for key, lost in keys.items()}
        return {lost: landing for lost, landing in landings.items() if landing is not None}

    def find_bringing_commits(
        self, wanted: Iterable[tuple[str, str]]
    ) -> dict[tuple[str, str], str]:
        """Return the oldest commit whose version of a memory names a commit, by path and name.

        Pairs that are in no commit of HEAD's history are left out.
        """
        lost_by_pair = {(path, name): LostCommit(path, name, -1) for path, name in wanted}
        landings = self.find(lost_by_pair.values())
        return {
            pair: landings[lost].commit for pair, lost in lost_by_pair.items() if lost in landings
        }

    def has_landed(self, commit: str) -> bool:
        """Return whether a commit is in the history of the trusted ref."""
        trusted_head = self._basis.trusted_head
        git = self._basis.repository.git
        return (
            bool(trusted_head)
            and not git.run("rev-list", "--max-count=1", commit, f"^{trusted_head}").strip()
        )

    def _read(self, keys: Iterable[str]) -> None:
        missing = set(keys) - self._landing_by_key.keys()
        if not missing or not self._is_cached:
            return
        if self._row is None:
            self._row = self._find_basis()
        if self._row.number:
            rows = bases.read(self._cache_dir, LANDING, self._row, missing)
            self._landing_by_key |= _parse_landings(rows or {})

    def _find_basis(self) -> BasisRow:
        """Return the basis of the rows; rows move along as long as history only grows."""
        basis = self._basis
        repository = basis.repository
        cut = ",".join(sorted(repository.shallow_commits()))
        scope = cache.digest(ROWS_VERSION, basis.directory, cut)
        wanted = bases.create(repository, scope, basis.trusted_head, basis.head)
        exact, older = bases.find_stored(self._cache_dir, wanted)
        if exact is not None:
            return exact
        for row in older[: bases.MAX_TRIED] if not self._is_hurried else ():
            old_tips = [commit for commit in (row.head, row.trust) if commit]
            if not self._has_grown_from(old_tips):
                continue
            rows = bases.read(self._cache_dir, LANDING, row)
            if rows is None:
                continue
            self._landing_by_key = _parse_landings(rows)
            absent = [
                _parse_lost(key) for key, landing in self._landing_by_key.items() if landing is None
            ]
            later = (
                self._search(absent, tuple(f"^{commit}" for commit in old_tips)) if absent else {}
            )
            self._landing_by_key |= {_key(lost): landing for lost, landing in later.items()}
            return (
                bases.add(self._cache_dir, LANDING, wanted, _to_cells(self._landing_by_key))
                or wanted
            )
        return wanted

    def _has_grown_from(self, old_tips: Sequence[str]) -> bool:
        """Return whether history still contains all old tips."""
        tips = [f"^{commit}" for commit in self._tips]
        git = self._basis.repository.git
        answer = git.run("rev-list", "--max-count=1", *old_tips, *tips, allowed=(0, 128))
        infos = git.infos([f"{commit}^{{commit}}" for commit in old_tips])
        return None not in infos and not answer.strip()

    def _store(self, landings: Mapping[str, Landing | None]) -> None:
        self._landing_by_key |= landings
        if self._row is None or not self._is_cached:
            return
        if self._row.number:
            bases.write(self._cache_dir, LANDING, self._row, _to_cells(landings))
        else:
            cells = _to_cells(self._landing_by_key)
            self._row = bases.add(self._cache_dir, LANDING, self._row, cells) or self._row

    @property
    def _cache_dir(self) -> str:
        return self._basis.repository.cache_dir

    @property
    def _tips(self) -> list[str]:
        return list(dict.fromkeys(filter(None, (self._basis.head, self._basis.trusted_head))))

    def _search(
        self, wanted: Sequence[LostCommit], limits: Sequence[str] = ()
    ) -> dict[LostCommit, Landing | None]:
        """Search history for commits, without the part excluded by the revisions in `limits`."""
        brought = self._search_memories({(lost.path, lost.name) for lost in wanted}, limits)
        rewritten = [lost for lost in wanted if lost.second >= 0]
        copies = self._search_messages(rewritten, brought, limits) if rewritten else {}
        landings: dict[LostCommit, Landing | None] = {}
        for lost in wanted:
            commit = brought.get((lost.path, lost.name), "")
            landings[lost] = copies.get(lost) or (Landing(commit, BROUGHT) if commit else None)
        return landings

    def _search_memories(
        self, wanted: set[tuple[str, str]], limits: Sequence[str]
    ) -> dict[tuple[str, str], str]:
        """Return the oldest commit whose version of a memory names a commit, by path and name."""
        names: dict[str, list[str]] = {}
        for path, name in wanted:
            names.setdefault(path, []).append(name)
        basis, repository = self._basis, self._basis.repository
        revisions = [basis.head, *limits]
        changes = list(walk_changes(repository, revisions, names.keys(), [basis.directory]))
        oids = dict.fromkeys(change.oid for _commit, change in changes if change.status != "D")
        present = (
            repository.git.list_objects().intersection(oids) if repository.is_partial else oids
        )
        texts = dict(
            zip(present, repository.git.blobs(list(present), _MAX_MEMORY_BYTES), strict=True)
        )
        cut = repository.shallow_commits()
        oldest: dict[tuple[str, str], str] = {}
        for commit, change in changes:  # later commits come first, so the oldest wins
            text = texts.get(change.oid, b"")
            for name in names[change.path]:
                if commit not in cut and any(
                    mark + name.encode() in text for mark in _CITATION_PREFIXES
                ):
                    oldest[change.path, name] = commit
        return oldest

    def _search_messages(
        self,
        wanted: Sequence[LostCommit],
        brought: Mapping[tuple[str, str], str],
        limits: Sequence[str],
    ) -> dict[LostCommit, Landing]:
        """Return the copies of commits that are found by a message or by the author date.

        If there are several, it is the nearest one before the commit that added the memory.
        """
        import re  # rarely needed

        seconds = {lost.second for lost in wanted if lost.second}
        order: dict[str, int] = {}
        commits_by_second: dict[int, list[str]] = {}
        naming_commits: list[tuple[str, str]] = []
        rows = self._basis.repository.git.rows(
            "log", "-z", "--topo-order", "--format=%H %at%n%B", *self._tips, *limits
        )
        for number, row in enumerate(rows):
            title, _line, message = row.decode(errors="replace").partition("\n")
            commit, second = title.split(" ")
            order[commit] = number
            if int(second) in seconds:
                commits_by_second.setdefault(int(second), []).append(commit)
            if "commit " in message:
                naming_commits += [(name, commit) for name in re.findall(_NAMES_A_COMMIT, message)]
        copies = {}
        for lost in wanted:
            brought_at = order.get(brought.get((lost.path, lost.name), ""), -1)
            named_commits = [
                commit for name, commit in naming_commits if name.startswith(lost.name)
            ]
            for how, commits in (
                (NAMED, named_commits),
                (AUTHORED, commits_by_second.get(lost.second, ())),
            ):
                if commits and lost not in copies:
                    nearest = min(
                        commits,
                        key=lambda candidate: (
                            order[candidate] < brought_at,
                            abs(order[candidate] - brought_at),
                        ),
                    )
                    copies[lost] = Landing(nearest, how)
        return copies


def _key(lost: LostCommit) -> str:
    return f"{lost.path}\0{lost.name}\0{lost.second}"


def _parse_lost(key: str) -> LostCommit:
    path, name, second = key.split("\0")
    return LostCommit(path, name, int(second))


def _to_cells(landings: Mapping[str, Landing | None]) -> dict[str, Row]:
    return {
        key: (landing.commit, landing.how) if landing else ("", "")
        for key, landing in landings.items()
    }


def _parse_landings(rows: Mapping[str, Sequence[str]]) -> dict[str, Landing | None]:
    return {key: Landing(commit, how) if commit else None for key, (commit, how) in rows.items()}
