"""The time of the last fetch of the trusted branch, from files in the git directory."""

from __future__ import annotations

import os

from memtool.store import provenance
from memtool.store.files import read_regular
from memtool.store.repository import read_branch_commit, read_symbolic_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.store.repository import Repository

MAX_LOG_BYTES = 64 * 1024
"""How much of the end of a reflog, and of FETCH_HEAD, is read."""
REMOTE_REF_PREFIX = "refs/remotes/"
UPSTREAM = "upstream"
"""Conventional name of the remote from which a fork was made."""


def find_last_fetch(repository: Repository, trusted_ref: str) -> int:
    """Return the second at which the trusted branch was last fetched, cloned or pushed to.

    It is 0 for a local branch, or if git has no record. `trusted_ref` is the setting of this name.
    """
    name = provenance.format_trusted_ref(repository, trusted_ref)
    if not name or not _is_fetched(repository, name):
        return 0
    return max(
        (*_read_fetch_times(repository, name), *_read_reflog_times(repository, name)), default=0
    )


def find_upstream_branch(repository: Repository) -> str:
    """Return the default branch of the repository from which this one was forked; empty if none.

    It is a branch of the remote `upstream` as last fetched: that of its HEAD, or the one with the
    same name as the default branch of `origin`.
    """
    origin_branch = provenance.format_trusted_ref(repository, "")
    if not origin_branch.startswith("origin/"):
        return ""
    head = read_symbolic_target(repository, f"{REMOTE_REF_PREFIX}{UPSTREAM}/HEAD").removeprefix(
        REMOTE_REF_PREFIX
    )
    names = (
        head,
        f"{UPSTREAM}/{origin_branch.partition('/')[2]}",
        f"{UPSTREAM}/main",
        f"{UPSTREAM}/master",
    )
    return next((name for name in names if name and _is_fetched(repository, name)), "")


def _is_fetched(repository: Repository, name: str) -> bool:
    """Return whether a remote branch exists, by its short name such as `origin/main`."""
    commit = read_branch_commit(repository, REMOTE_REF_PREFIX + name)
    if commit is None:
        verify = ("rev-parse", "--verify", "--quiet", REMOTE_REF_PREFIX + name)
        commit = repository.git.line(*verify, allowed=(0, 1))
    return bool(commit)


def _read_fetch_times(repository: Repository, name: str) -> Iterator[int]:
    """Yield the times at which FETCH_HEAD was written, for the clone and for this worktree."""
    remote, _slash, branch = name.partition("/")
    url = repository.git.line("config", "--get", f"remote.{remote}.url", allowed=(0, 1))
    url_end = url.rstrip("/").removesuffix(".git").rpartition("@")[2].rpartition("://")[2]
    for folder in {repository.git_dir, repository.common_dir}:
        path = os.path.join(folder, "FETCH_HEAD")
        try:
            text = read_regular(path, MAX_LOG_BYTES).decode(errors="replace")
            second = int(os.stat(path).st_mtime)
        except OSError:
            continue
        rows = (row for row in text.splitlines() if f"branch '{branch}' of " in row)
        if any(row.rpartition(" of ")[2].endswith(url_end) for row in rows):
            yield second


def _read_reflog_times(repository: Repository, name: str) -> Iterator[int]:
    """Yield the times at which the branch last moved, and at which it was cloned."""
    remote = name.partition("/")[0]
    for ref in (name, f"{remote}/HEAD"):
        path = os.path.join(repository.common_dir, "logs", "refs", "remotes", ref)
        try:
            with open(path, "rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - MAX_LOG_BYTES))
                rows = log.read().splitlines()
        except OSError:
            continue
        committer = rows[-1].partition(b"\t")[0].split() if rows else []
        if len(committer) > 2 and committer[-2].isdigit():
            yield int(committer[-2])
