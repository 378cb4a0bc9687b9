"""Renames: the current paths of files of earlier commits, as `git log --follow` finds them.

In the last commit that removed a path, git detects a rename if a new file in the same commit is
similar enough. The new path may be removed later, so renames are followed step by step. A copy
removes nothing, and does not count as a rename.
"""

from __future__ import annotations

from memtool.store.git import GitError
from memtool.store.provenance import MAX_LISTED_PATHS
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable

    from memtool.store.repository import Repository

CLOCK_SKEW_S = 7 * 86_400
"""A commit may seem to be older than its parents by this."""
MAX_STEPS = 20
"""Limit of successive renames of one file."""


class Rename(Value):
    """A renamed file. `names` are all its paths, from the requested one to the current one.

    `commit` is the full id of the commit that removed the first path.
    """

    names: tuple[str, ...]
    commit: str

    @property
    def current_path(self) -> str:
        """The current path."""
        return self.names[-1]


class Removals:
    """The commits that removed paths, for the paths that were looked up."""

    def __init__(self, repository: Repository, commit: str, since: int) -> None:
        """Take the commit whose history is searched, back to the second `since`."""
        self._repository = repository
        self._commit = commit
        self._since = since
        self._commit_by_path: dict[str, str] = {}
        self._renamed: dict[str, dict[str, str]] = {}
        self._added: dict[str, list[str]] = {}

    def look_up(self, paths: Iterable[str]) -> None:
        """Look up several paths at once."""
        wanted = set(paths) - self._commit_by_path.keys()
        if wanted:
            self._commit_by_path |= dict.fromkeys(wanted, "") | self._find_last_removals(wanted)
            self._read({self._commit_by_path[path] for path in wanted} - {"", *self._renamed})

    def find_commit(self, path: str) -> str:
        """Return the newest commit that removed a path; empty if unknown."""
        return self._commit_by_path.get(path, "")

    def find_new_path(self, path: str) -> str:
        """Return the new path of the file in that commit; empty if it was not a rename."""
        return self._renamed.get(self.find_commit(path), {}).get(path, "")

    def list_added_with(self, path: str) -> list[str]:
        """Return the files that were added in that commit."""
        return self._added.get(self.find_commit(path), [])

    def _find_last_removals(self, paths: Collection[str]) -> dict[str, str]:
        limit = sorted(paths) if len(paths) <= MAX_LISTED_PATHS else []
        rows = self._repository.git.log_raw(
            "log",
            "--topo-order",
            *([f"--since=@{self._since}"] if self._since > 0 else []),
            "--no-renames",
            "--diff-filter=D",
            "--format=%H",
            "--end-of-options",
            self._commit,
            "--",
            *limit,
            is_wanted=frozenset(paths).__contains__,
        )
        newest: dict[str, str] = {}
        for commit, row in rows:
            newest.setdefault(row.path, commit)
        return newest

    def _read(self, commits: Collection[str]) -> None:
        """Read the renamed and added files of commits."""
        if not commits:
            return
        for commit in commits:
            self._renamed[commit], self._added[commit] = {}, []
        question = "".join(f"{commit}\n" for commit in sorted(commits)).encode()
        rows = self._repository.git.log_raw(
            "diff-tree", "-r", "-M", "--diff-filter=AR", "--stdin", stdin=question
        )
        for commit, row in rows:
            if row.status.startswith("R"):
                self._renamed[commit][row.old_path] = row.path
            else:
                self._added[commit].append(row.path)


def follow_renames(
    repository: Repository,
    commit: str,
    present: Container[str],
    paths: Iterable[str],
    bases: Iterable[str],
) -> tuple[dict[str, Rename], Removals]:
    """Return the renames of paths in the history of a commit, and the removals of the others.

    `present` are the files of the commit. Only history since the oldest of `bases` is searched;
    these are commits in this clone. In a partial clone nothing is found, since older files would
    have to be fetched.
    """
    chains = {path: [path] for path in paths}
    if not chains or repository.is_partial:
        return {}, Removals(repository, commit, 0)
    removals = Removals(repository, commit, _find_oldest_second(repository, bases))
    open_chains = list(chains.values())
    for _step in range(MAX_STEPS):
        removals.look_up(chain[-1] for chain in open_chains)
        longer = []
        for chain in open_chains:
            new_path = removals.find_new_path(chain[-1])
            if new_path and new_path not in chain[1:]:
                chain.append(new_path)
                longer.append(chain)
        open_chains = [chain for chain in longer if chain[-1] not in present]
        if not open_chains:
            break
    return {
        path: Rename(tuple(chain), removals.find_commit(path))
        for path, chain in chains.items()
        if chain[-1] in present and chain[-1] != path
    }, removals


def find_staged_renames(repository: Repository, paths: Iterable[str]) -> list[str]:
    """Return the sorted old paths of files whose staged rename leads to one of `paths`."""
    wanted = set(paths)
    if not wanted or repository.is_bare or repository.is_partial:
        return []
    try:
        rows = repository.git.diff_raw("diff-index", "--cached", "-M", "--diff-filter=R", "HEAD")
    except GitError:  # there is no commit yet
        return []
    return sorted(row.old_path for row in rows if row.path in wanted)


def _find_oldest_second(repository: Repository, commits: Iterable[str]) -> int:
    """Return the commit date of the oldest commit in seconds, minus CLOCK_SKEW_S."""
    answer = repository.git.run(
        "log",
        "--no-walk=unsorted",
        "--stdin",
        "--format=%ct",
        stdin="".join(f"{commit}\n" for commit in sorted(set(commits))).encode(),
    )
    return min(map(int, answer.split()), default=0) - CLOCK_SKEW_S
