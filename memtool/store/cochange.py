"""Files that change together in git, and files that the work at hand changed.

For each commit that is read from a table is kept, with a line for each path that has companions. A
warm answer finds its few lines there and starts no git; without it the answer is the same.

How closely two files belong together is the share of commits that they have in common, of the
average number of both: a file that every commit touches belongs to none. Bounds are those of
code-maat, but for fewer commits in common, as young repositories have few.

What a branch changed is kept for each commit, so that a session which starts asks git only for what
differs on disk; without it the answer is the same. Where git cannot say, nothing was changed.
"""

from __future__ import annotations

import os
from itertools import combinations

from memtool.errors import MemtoolError
from memtool.store import cache, kept
from memtool.store.files import read_or_none
from memtool.store.git import REGULAR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memtool.store.repository import Repository

KIND = "cochange 2"


def companions(
    repository: Repository, directory: str, head: str, files: Sequence[str], *, is_cached: bool
) -> tuple[str, ...]:
    """Return the paths that change together with some files, without these, sorted.

    Counted are the commits that lead to `head`; those of a merge, of many files at once, and the
    memories in `directory` are left out. Nothing where git cannot say.
    """
    if not head or not files:
        return ()
    table = _table(repository, directory, head, is_cached=is_cached)
    found = {name for path in files for name in _companions(table, os.fsencode(path))}
    return tuple(sorted(map(os.fsdecode, found.difference(map(os.fsencode, files)))))


def _companions(table: bytes, path: bytes) -> list[bytes]:
    """Look a path up: `path NUL companion NUL companion`, each line after a line feed."""
    wanted = b"\n%b\0" % path
    at = table.find(wanted)
    if at < 0:
        return []
    start = at + len(wanted)
    return table[start : table.index(b"\n", start)].split(b"\0")


def _table(repository: Repository, directory: str, head: str, *, is_cached: bool) -> bytes:
    """Return the lines for a commit, from the cache or from git, which are then kept."""
    cut = ",".join(sorted(repository.shallow_commits()))
    basis = cache.digest(directory, cut, head).encode()
    table = kept.read(repository.cache_dir, KIND, basis) if is_cached else None
    if table is None:
        table = counted(commits(repository, directory, head))
        if is_cached:
            kept.write(repository.cache_dir, KIND, basis, table)
    return table


COCHANGE_COMMITS = 500
"""Commits that are looked at, without merges: these repeat what their branches say."""
MOST_FILES = 30
"""A commit of more files than this moves or formats, and says nothing about any two of them."""
LEAST_COMMON = 3
LEAST_SHARE = 0.3
MOST_COMPANIONS = 5


def commits(repository: Repository, directory: str, head: str) -> list[list[bytes]]:
    """Return the files of each of the last commits, memories left out; one git process.

    Nothing where git cannot say, as in a clone without the trees of older commits.
    """
    try:
        found = repository.git.log_names(
            f"--max-count={COCHANGE_COMMITS}",
            "--no-merges",
            "--root",
            "--no-renames",
            "--format=%x00%H",
            "--end-of-options",
            head,
        )
    except MemtoolError:
        return []
    cut = repository.shallow_commits()  # such a commit seems to write all that it holds
    return [
        [os.fsencode(path) for path in names if not path.startswith(f"{directory}/")]
        for commit, names in found
        if commit not in cut
    ]


def counted(changes: Iterable[list[bytes]]) -> bytes:
    """Return the lines of the table for the files of each commit."""
    alone: dict[bytes, int] = {}
    common: dict[tuple[bytes, bytes], int] = {}
    for change in changes:
        files = sorted({path for path in change if b"\n" not in path})
        if len(files) > MOST_FILES:
            continue
        for path in files:
            alone[path] = alone.get(path, 0) + 1
        for pair in combinations(files, 2):
            common[pair] = common.get(pair, 0) + 1
    near: dict[bytes, list[tuple[float, bytes]]] = {}
    for (one, other), count in common.items():
        share = 2 * count / (alone[one] + alone[other])
        if count >= LEAST_COMMON and share >= LEAST_SHARE:
            near.setdefault(one, []).append((-share, other))
            near.setdefault(other, []).append((-share, one))
    lines = [b""]
    for path in sorted(near):
        best = sorted(near[path])[:MOST_COMPANIONS]
        lines.append(b"\0".join([path, *(name for _share, name in best)]))
    return b"\n".join([*lines, b""])


BRANCH_COMMITS = 10
"""The last commits that count where no branch parted from the trusted ref."""
MAX_BRANCH_COMMITS = 100
MAX_COMMIT_FILES = 50
"""A commit of more files is an import, a move or a formatting, and is not what work is about."""
MOST = 500
CHANGED_KIND = "lately 3"
_MAGIC = {"GIT_LITERAL_PATHSPECS": "0"}
"""Git passes the memories over itself: it need not look at ten thousand files on disk."""
MAX_COMPARED_FILES = 500
MAX_COMPARED_BYTES = 16 << 20
"""Bounds on the files whose bytes are compared with HEAD, all together."""


def changed(
    repository: Repository,
    directory: str,
    head: str,
    trusted_at: str,
    *,
    is_checked_out: bool,
    is_cached: bool = False,
) -> tuple[str, ...]:
    """Return the files of a branch's commits, or of the last ones, and what differs on disk.

    Paths are from the top, sorted; memories are not among them. Neither are the files of a commit
    that touched more than `MAX_COMMIT_FILES`, of the one at which a shallow clone ends, and files
    that git does not know yet, since looking for them means reading every directory.
    """
    if not head:
        return ()
    try:
        past = _kept_past if is_cached else _past
        paths = set(past(repository, directory, head, trusted_at))
        if is_checked_out:
            paths |= _changed_on_disk(repository, directory, head)
    except MemtoolError:
        return ()
    return tuple(sorted(paths, key=os.fsencode)[:MOST])


def _others(directory: str) -> tuple[str, str]:
    return ":(top)", f":(top,exclude,literal){directory}"


def _changed_on_disk(repository: Repository, directory: str, head: str) -> set[str]:
    """Return the files that differ from a commit in the index or in the worktree.

    Git also lists files whose times alone are new, until a `git status` has read them: all of them
    in a copied repository. So the bytes decide, within bounds; beyond these a file counts as
    unchanged.
    """
    found = set()
    files_left, bytes_left = MAX_COMPARED_FILES, MAX_COMPARED_BYTES
    for row in repository.git.diff_raw(
        "diff-index", "-r", "--no-renames", head, "--", *_others(directory), env=_MAGIC
    ):
        is_dirty = row.mode == row.old_mode in REGULAR and not row.oid.strip("0")
        if is_dirty:
            if files_left <= 0 or bytes_left <= 0:
                continue
            data = read_or_none(f"{repository.top}/{row.path}", bytes_left) or b""
            files_left, bytes_left = files_left - 1, bytes_left - len(data)
            if _is_blob(data, row.old_oid, repository.object_format):
                continue
        found.add(row.path)
    return found


def _is_blob(data: bytes, oid: str, object_format: str) -> bool:
    """Tell whether a blob has these bytes; git may have stored CRLF as LF."""
    from memtool.store.snapshot import blob_hash  # few worktrees have such files

    hash_blob = blob_hash(object_format)
    return oid in (hash_blob(data), hash_blob(data.replace(b"\r\n", b"\n")))


def _past(repository: Repository, directory: str, head: str, trusted_at: str) -> list[str]:
    """Return the files of the commits since a branch parted from the trusted ref, sorted.

    Where none parted, the last few commits count. A merge has no files of its own.
    """
    git = repository.git
    base = git.line("merge-base", head, trusted_at, allowed=(0, 1)) if trusted_at else ""
    is_branch = base not in ("", head)
    most = MAX_BRANCH_COMMITS if is_branch else BRANCH_COMMITS
    revisions = [head, f"^{base}"] if is_branch else [head]
    # Memories are left out of a commit's files, not the commits of memories alone out of the last.
    commits = git.log_names(
        f"--max-count={most}",
        "--format=%x00%H",
        "--root",
        "--no-renames",
        "--full-history",
        "--sparse",
        "--end-of-options",
        *revisions,
        "--",
        *_others(directory),
        env=_MAGIC,
    )
    cut = repository.shallow_commits()  # such a commit seems to write all that it holds
    return sorted(
        {
            path
            for commit, names in commits
            if commit not in cut and len(names) <= MAX_COMMIT_FILES
            for path in names
        }
    )


def _kept_past(repository: Repository, directory: str, head: str, trusted_at: str) -> list[str]:
    """Return what `_past` says, from the cache or from git, which is then kept."""
    cut = ",".join(sorted(repository.shallow_commits()))
    basis = cache.digest(directory, cut, trusted_at, head).encode()
    known = kept.read(repository.cache_dir, CHANGED_KIND, basis)
    if known is None:
        paths = _past(repository, directory, head, trusted_at)
        data = os.fsencode("\0".join(paths))
        kept.write(repository.cache_dir, CHANGED_KIND, basis, data)
        return paths
    return [path for path in os.fsdecode(known).split("\0") if path]


def arrived(repository: Repository, directory: str, old: str, new: str) -> frozenset[str]:
    """Return the paths of the memories that one commit holds and an older one does not.

    Nothing where the older one is not here any more.
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
    from memtool.store import snapshot  # few sessions find another commit

    return frozenset(path for path in paths if snapshot.is_memory_path(path, directory))
