"""Files that change together in git, and files that the current branch has changed.

For each commit a table is cached, with a line for each path that has companions, so that an answer
needs no git process. The cache does not change answers.

The coupling of two files is the number of commits in common divided by the average of both counts,
so a file that every commit touches is coupled to none. Thresholds are those of code-maat, except
for fewer common commits, since young repositories have few.

The files changed by a branch are cached for each commit, so that the start of a session only asks
git for differences on disk. If git fails, no files count as changed.
"""

from __future__ import annotations

import os
from itertools import combinations

from memtool.errors import MemtoolError
from memtool.store import cache, kept
from memtool.store.files import read_or_none
from memtool.store.git import REGULAR_MODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memtool.store.repository import Repository

KIND = "cochange 2"


def find_companions(
    repository: Repository, directory: str, head: str, files: Sequence[str], *, is_cached: bool
) -> tuple[str, ...]:
    """Return the paths that change together with `files`, without these, sorted.

    Commits up to `head` count, except merges and commits of many files; memories in `directory` are
    left out. Empty if git fails.
    """
    if not head or not files:
        return ()
    table = _load_table(repository, directory, head, is_cached=is_cached)
    related = {name for path in files for name in _read_companions(table, os.fsencode(path))}
    return tuple(sorted(map(os.fsdecode, related.difference(map(os.fsencode, files)))))


def _read_companions(table: bytes, path: bytes) -> list[bytes]:
    """Look up a path in lines of `path NUL companion NUL companion`, each after a line feed."""
    wanted = b"\n%b\0" % path
    at = table.find(wanted)
    if at < 0:
        return []
    start = at + len(wanted)
    return table[start : table.index(b"\n", start)].split(b"\0")


def _load_table(repository: Repository, directory: str, head: str, *, is_cached: bool) -> bytes:
    """Return the table for a commit from the cache, or build and cache it."""
    cut = ",".join(sorted(repository.shallow_commits()))
    basis = cache.digest(directory, cut, head).encode()
    table = kept.read(repository.cache_dir, KIND, basis) if is_cached else None
    if table is None:
        table = build_table(list_commit_files(repository, directory, head))
        if is_cached:
            kept.write(repository.cache_dir, KIND, basis, table)
    return table


MAX_COCHANGE_COMMITS = 500
"""Commits that are counted. Merges are not, since they repeat the changes of their branches."""
MAX_FILES = 30
"""A commit of more files is a move or a formatting, which shows no coupling."""
MIN_COMMON_COMMITS = 3
MIN_SHARE = 0.3
MAX_COMPANIONS = 5


def list_commit_files(repository: Repository, directory: str, head: str) -> list[list[bytes]]:
    """Return the files of each of the last commits, without memories; one git process.

    Empty if git fails, as in a clone without the trees of older commits.
    """
    try:
        logged = repository.git.log_names(
            f"--max-count={MAX_COCHANGE_COMMITS}",
            "--no-merges",
            "--root",
            "--no-renames",
            "--format=%x00%H",
            "--end-of-options",
            head,
        )
    except MemtoolError:
        return []
    cut = repository.shallow_commits()  # such a commit seems to add all its files
    return [
        [os.fsencode(path) for path in names if not path.startswith(f"{directory}/")]
        for commit, names in logged
        if commit not in cut
    ]


def build_table(changes: Iterable[list[bytes]]) -> bytes:
    """Build the table from the files of each commit."""
    commit_counts: dict[bytes, int] = {}
    pair_counts: dict[tuple[bytes, bytes], int] = {}
    for change in changes:
        files = sorted({path for path in change if b"\n" not in path})
        if len(files) > MAX_FILES:
            continue
        for path in files:
            commit_counts[path] = commit_counts.get(path, 0) + 1
        for pair in combinations(files, 2):
            pair_counts[pair] = pair_counts.get(pair, 0) + 1
    companions_by_path: dict[bytes, list[tuple[float, bytes]]] = {}
    for (first, second), count in pair_counts.items():
        share = 2 * count / (commit_counts[first] + commit_counts[second])
        if count >= MIN_COMMON_COMMITS and share >= MIN_SHARE:
            companions_by_path.setdefault(first, []).append((-share, second))
            companions_by_path.setdefault(second, []).append((-share, first))
    lines = [b""]
    for path in sorted(companions_by_path):
        best = sorted(companions_by_path[path])[:MAX_COMPANIONS]
        lines.append(b"\0".join([path, *(name for _share, name in best)]))
    return b"\n".join([*lines, b""])


LAST_COMMITS = 10
"""Number of last commits that count if there is no branch off the trusted ref."""
MAX_BRANCH_COMMITS = 100
MAX_COMMIT_FILES = 50
"""A commit of more files is an import, a move or a formatting, and does not count as work."""
MAX_CHANGED_FILES = 500
CHANGED_KIND = "lately 3"
_PATHSPEC_ENV = {"GIT_LITERAL_PATHSPECS": "0"}
"""Lets git itself exclude the memories, so that it need not check ten thousand files on disk."""
MAX_COMPARED_FILES = 500
MAX_COMPARED_BYTES = 16 << 20
"""Limits for all files together that are compared with HEAD by content."""


def find_changed_files(
    repository: Repository,
    directory: str,
    head: str,
    trusted_at: str,
    *,
    is_checked_out: bool,
    is_cached: bool = False,
) -> tuple[str, ...]:
    """Return the files of a branch's commits, or of the last ones, and those changed on disk.

    Paths are relative to the top and sorted. Not included are memories, files of a commit with more
    than MAX_COMMIT_FILES, files of the boundary commit of a shallow clone, and untracked files,
    since finding them means reading every directory.
    """
    if not head:
        return ()
    try:
        list_past_files = _load_branch_files if is_cached else _list_branch_files
        paths = set(list_past_files(repository, directory, head, trusted_at))
        if is_checked_out:
            paths |= _find_changed_on_disk(repository, directory, head)
    except MemtoolError:
        return ()
    return tuple(sorted(paths, key=os.fsencode)[:MAX_CHANGED_FILES])


def _without_memories(directory: str) -> tuple[str, str]:
    return ":(top)", f":(top,exclude,literal){directory}"


def _find_changed_on_disk(repository: Repository, directory: str, head: str) -> set[str]:
    """Return the files that differ from a commit in the index or in the worktree.

    Until the next `git status`, git also lists files with only a new timestamp: in a copied
    repository, all of them. So contents are compared, within limits; beyond them a file counts as
    unchanged.
    """
    paths = set()
    files_left, bytes_left = MAX_COMPARED_FILES, MAX_COMPARED_BYTES
    for row in repository.git.diff_raw(
        "diff-index",
        "-r",
        "--no-renames",
        head,
        "--",
        *_without_memories(directory),
        env=_PATHSPEC_ENV,
    ):
        is_dirty = row.mode == row.old_mode in REGULAR_MODES and not row.oid.strip("0")
        if is_dirty:
            if files_left <= 0 or bytes_left <= 0:
                continue
            data = read_or_none(f"{repository.top}/{row.path}", bytes_left) or b""
            files_left, bytes_left = files_left - 1, bytes_left - len(data)
            if _is_blob(data, row.old_oid, repository.object_format):
                continue
        paths.add(row.path)
    return paths


def _is_blob(data: bytes, oid: str, object_format: str) -> bool:
    """Return whether a blob has this content; git may have stored CRLF as LF."""
    from memtool.store.snapshot import make_blob_hash  # rarely needed

    hash_blob = make_blob_hash(object_format)
    return oid in (hash_blob(data), hash_blob(data.replace(b"\r\n", b"\n")))


def _list_branch_files(
    repository: Repository, directory: str, head: str, trusted_at: str
) -> list[str]:
    """Return the files of the commits since the branch left the trusted ref, sorted.

    If it is not a branch, the last few commits count. Merges have no files of their own.
    """
    git = repository.git
    base = git.line("merge-base", head, trusted_at, allowed=(0, 1)) if trusted_at else ""
    is_branch = base not in ("", head)
    max_commits = MAX_BRANCH_COMMITS if is_branch else LAST_COMMITS
    revisions = [head, f"^{base}"] if is_branch else [head]
    # --sparse: a commit of memories only has no files here, but counts among the last commits.
    commits = git.log_names(
        f"--max-count={max_commits}",
        "--format=%x00%H",
        "--root",
        "--no-renames",
        "--full-history",
        "--sparse",
        "--end-of-options",
        *revisions,
        "--",
        *_without_memories(directory),
        env=_PATHSPEC_ENV,
    )
    cut = repository.shallow_commits()  # such a commit seems to add all its files
    return sorted(
        {
            path
            for commit, names in commits
            if commit not in cut and len(names) <= MAX_COMMIT_FILES
            for path in names
        }
    )


def _load_branch_files(
    repository: Repository, directory: str, head: str, trusted_at: str
) -> list[str]:
    """Return the files of `_list_branch_files` through the cache."""
    cut = ",".join(sorted(repository.shallow_commits()))
    basis = cache.digest(directory, cut, trusted_at, head).encode()
    cached = kept.read(repository.cache_dir, CHANGED_KIND, basis)
    if cached is None:
        paths = _list_branch_files(repository, directory, head, trusted_at)
        data = os.fsencode("\0".join(paths))
        kept.write(repository.cache_dir, CHANGED_KIND, basis, data)
        return paths
    return [path for path in os.fsdecode(cached).split("\0") if path]


def find_arrived(repository: Repository, directory: str, old: str, new: str) -> frozenset[str]:
    """Return the paths of the memories in commit `new` that are not in `old`.

    Empty if the old commit no longer exists.
    """
    if not old or not new or old == new:
        return frozenset()
    try:
        paths = repository.git.names(
            "diff-tree",
            "-r",
            "-z",
            "--name-only",
            "--no-renames",
            "--diff-filter=A",
            old,
            new,
            "--",
            directory,
        )
    except MemtoolError:
        return frozenset()
    from memtool.store import snapshot  # rarely needed

    return frozenset(path for path in paths if snapshot.is_memory_path(path, directory))
