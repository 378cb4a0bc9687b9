"""Ancestry, asked of git: which commit gave each memory file its present bytes, and who signed it.

This is the slow side of `provenance`: it starts git, walks history, and is imported only where
the table of `citations` does not know the answer yet.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memtool.store.repository import Repository

LISTED_MOST = 50
"""Paths that are named to git one by one; for more the whole directory is walked."""
STEPS_MOST = 1_000
"""Commits between two states that are looked at one by one."""


def blobs(repository: Repository, commit: str, directory: str) -> dict[str, str]:
    """Return the blob of each path below a directory of a commit."""
    answer = repository.git.run("ls-tree", "-r", "-z", "--full-tree", commit, "--", directory)
    found = {}
    for row in answer.split(b"\0")[:-1]:
        meta, _tab, raw = row.partition(b"\t")
        found[os.fsdecode(raw)] = meta.split()[2].decode()
    return found


def last_commits(
    repository: Repository,
    revision: str,
    paths: Iterable[str],
    directory: str,
    present: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the newest commit that gave each path its present bytes, in one walk over history.

    `present` says which bytes those are, by path, if the caller knows it already. Newest is by
    descent, not by date: dates are whatever the author wrote. A commit that wrote other bytes on
    a branch, and lost them in the merge, does not count.
    """
    wanted = set(paths)
    present = blobs(repository, revision, directory) if present is None else present
    limit = sorted(wanted) if len(wanted) <= LISTED_MOST else [directory]
    answer = repository.git.run(
        "log",
        "-c",
        "--full-history",
        "--topo-order",
        "--format=commit:%H",
        "--raw",
        "--no-abbrev",
        "-z",
        "--no-renames",
        "--no-ext-diff",
        "--end-of-options",
        revision,
        "--",
        *limit,
    )
    last: dict[str, str] = {}
    commit = ""
    blob = ""
    for token in answer.split(b"\0"):
        text = token.lstrip(b"\n")
        if text.startswith(b"commit:"):
            commit = text[7:].decode()
        elif text.startswith(b":"):  # modes and blobs of the parents, then of the commit; what
            blob = text.split()[-2].decode()
        elif text:
            path = os.fsdecode(text)
            if path in wanted and present.get(path) == blob:
                last.setdefault(path, commit)
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


def signed(
    repository: Repository, commits: set[str], trusted_at: str, allowed_signers: str
) -> set[str]:
    """Return the commits with a good signature by a key that the trusted commit allows."""
    import tempfile

    keys = repository.git.run(
        "cat-file", "blob", f"{trusted_at}:{allowed_signers}", allowed=(0, 128)
    )
    if not keys or not commits:
        return set()
    with tempfile.NamedTemporaryFile(prefix="memtool-signers-") as file:
        file.write(keys)
        file.flush()
        # Only ssh signatures: the others are good by the keyring of whoever looks, not by the file.
        settings: Mapping[str, str] = {
            "gpg.program": "false",
            "gpg.openpgp.program": "false",
            "gpg.x509.program": "false",
            "gpg.ssh.program": "ssh-keygen",
            "gpg.ssh.allowedSignersFile": file.name,
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        answer = repository.git.run(
            *options, "log", "--no-walk=unsorted", "--stdin", "--format=%H %G?",
            stdin="\n".join(sorted(commits)).encode() + b"\n",
        )  # fmt: skip
    rows = (row.split() for row in answer.decode().splitlines())
    return {commit for commit, verdict in rows if verdict == "G"}
