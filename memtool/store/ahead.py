"""Memory files that the trusted branch has changed since the current branch began, and by whom.

These are the files of `git diff HEAD...TRUSTED` below the memory directory, with the commit that
wrote each version. They are computed once for each pair of commits: with the cache an answer reads
two rows and starts no git process. Nothing is fetched.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.store import cache, kept
from memtool.store.git import REGULAR_MODES, TIMEOUT_S, GitError
from memtool.store.provenance import ABSENT_CITATION, Citation, find_last_commits, read_authors
from memtool.store.snapshot import is_memory_path
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from memtool.store.provenance import Basis
    from memtool.store.repository import Repository

KIND = "ahead 1"
"""Kind and version of the cached facts."""
UNRELATED = "both histories have no commit in common"
CUT = "this shallow clone ends before the commit at which the branches parted"
ABSENT = "this partial clone does not hold the trees to compare"


MAX_HURRIED_S = 0.2
"""Time limit of a hook for finding the merge base. Reading the citations of the changes takes about
as long again, since both walk the commits in between."""
MAX_HURRIED_FILES = 200
"""Limit of changed files for a hook; reading and indexing this many takes about 0.25 s."""


class Delta(Value):
    """The files that the trusted branch has changed, by path with the citation of its version.

    A citation without a blob means that the file was removed there. `unknown` is the reason if the
    changes cannot be computed, else empty. `is_late` means that a hook has no time to compute them.
    """

    changes: Mapping[str, Citation] = {}
    unknown: str = ""
    is_late: bool = False


NO_DELTA, LATE_DELTA = Delta(), Delta(is_late=True)


def find_delta(basis: Basis, *, is_cached: bool, is_hurried: bool = False) -> Delta:
    """Return the changes of the trusted branch since HEAD's branch began.

    With `is_hurried` they must be cached or quick to compute.
    """
    if basis.trusted_head in ("", basis.head):
        return NO_DELTA
    try:
        base = _find_base(basis, is_cached=is_cached, is_hurried=is_hurried)
        if base == basis.trusted_head:
            return NO_DELTA
        if not base:
            return Delta(unknown=CUT if basis.repository.is_shallow else UNRELATED)
        changes = _find_changes(basis, base, is_cached=is_cached, is_hurried=is_hurried)
    except _TooSlowError:
        return LATE_DELTA
    except GitError:
        if not basis.repository.is_partial:
            raise
        return Delta(unknown=ABSENT)
    return Delta(changes)


class _TooSlowError(Exception):
    """The computation takes too long for a hook."""


def _find_base(basis: Basis, *, is_cached: bool, is_hurried: bool) -> str:
    """Return the merge base of HEAD and the trusted branch; empty if there is none."""
    cache_dir, trusted = basis.repository.cache_dir, basis.trusted_head.encode()
    key = f"base {_digest_boundary(basis.repository)} {basis.head}".encode()
    data = kept.read(cache_dir, KIND, trusted, key) if is_cached else None
    if data is None:
        args = ("merge-base", basis.head, basis.trusted_head)
        limit_s = MAX_HURRIED_S if is_hurried else TIMEOUT_S
        try:
            data = basis.repository.git.run(*args, allowed=(0, 1), timeout_s=limit_s).strip()
        except GitError:
            raise
        except MemtoolError as error:
            if not is_hurried:
                raise
            raise _TooSlowError from error
        if is_cached:
            kept.write(cache_dir, KIND, trusted, data, key)
    return data.decode()


def _find_changes(
    basis: Basis, base: str, *, is_cached: bool, is_hurried: bool
) -> dict[str, Citation]:
    """Return the citations of the files that differ between a commit and the trusted one."""
    cache_dir, trusted = basis.repository.cache_dir, basis.trusted_head.encode()
    key = f"diff {_digest_boundary(basis.repository)} {basis.directory} {base}"
    if is_cached:
        rows = kept.read_texts(cache_dir, KIND, trusted, (key,)).get(key)
        if rows is not None:
            width = 1 + len(ABSENT_CITATION.cells)
            parts = (rows[at : at + width] for at in range(0, len(rows), width))
            return {path: Citation.from_cells(cells) for path, *cells in parts}
    changes = _compare(basis, base, MAX_HURRIED_FILES if is_hurried else None)
    if is_cached:
        texts = [str(text) for path, row in changes.items() for text in (path, *row.cells)]
        kept.write_texts(cache_dir, KIND, trusted, {key: texts})
    return changes


def _digest_boundary(repository: Repository) -> str:
    """Return a digest of the shallow boundary: results change if the clone is deepened."""
    return cache.digest(*sorted(repository.shallow_commits()))


def _compare(basis: Basis, base: str, max_files: int | None) -> dict[str, Citation]:
    """Compare two commits with git. Raises _TooSlowError for more than `max_files` changes.

    Paths that are not printable cannot be memories.
    """
    repository, directory, trusted = basis.repository, basis.directory, basis.trusted_head
    options = ("diff-tree", "-r", "--no-renames", base, trusted, "--", directory)
    rows = {
        row.path: row.oid if row.mode in REGULAR_MODES else ""
        for row in repository.git.diff_raw(*options)
        if is_memory_path(row.path, directory) and row.path.isprintable()
    }
    if max_files is not None and len(rows) > max_files:
        raise _TooSlowError
    present = {path: oid for path, oid in rows.items() if oid}
    added: set[str] = set()
    commit_by_path = find_last_commits(
        repository, f"{base}..{trusted}", present, directory, present, added
    )
    boundary = repository.shallow_commits()
    author_by_commit = read_authors(repository, set(commit_by_path.values()) - boundary)
    changes = {}
    for path, oid in sorted(rows.items()):
        commit = "" if commit_by_path.get(path) in boundary else commit_by_path.get(path, "")
        author, date = author_by_commit.get(commit, ("", 0))
        is_known = bool(commit)
        is_first = is_known and path in added
        changes[path] = (
            Citation(oid, commit, author, date, not is_known, oid, commit, is_first)
            if oid
            else ABSENT_CITATION
        )
    return changes
