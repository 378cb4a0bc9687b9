"""Provenance of the memories of a tree: last commit, author, date, and what git proves of them.

Trust is computed, never read from a file: `local` (only here) < `committed` (in HEAD) < `trusted`
(the same path and bytes in the trusted ref, as last fetched) < `signed` (and its last commit there
carries a good signature by a key that the trusted ref itself allows). It never means "reviewed".
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from memtool.errors import MemtoolError
from memtool.store.repository import Repository
from memtool.store.snapshot import Snapshot
from memtool.store.tree import Record
from memtool.value import Value

TRUST_LEVELS = ("local", "committed", "trusted", "signed")
SHORT = 10
"""Digits of a commit id where people read it. Fixed, since git's own choice differs by clone."""


class Origin(Value):
    """Where the present bytes of a memory come from. Empty texts and 0 mean: not known.

    `is_shallow` says that history was cut off before the commit that wrote it.
    """

    commit: str
    author: str
    date: int
    trust: str
    is_shallow: bool = False


def cite(id_: str, origin: Origin | None) -> str:
    """Return the citation `id@commit` of a memory, with `local` or `shallow` for no commit."""
    if origin is None or (not origin.commit and not origin.is_shallow):
        return f"{id_}@local"
    return f"{id_}@{origin.commit[:SHORT] or 'shallow'}"


def origins(
    snapshot: Snapshot, records: Iterable[Record], trusted_ref: str = "", allowed_signers: str = ""
) -> dict[str, Origin]:
    """Return the origin of each record by its path.

    Costs two or three git processes, whatever the number of records.
    """
    wanted = list(records)
    repository = snapshot.repository
    head = snapshot.name if snapshot.kind == "commit" else repository.git.head()
    if not head or not wanted:
        return {record.path: Origin("", "", 0, "local") for record in wanted}
    committed = _blobs(repository, head, snapshot.directory)
    trusted_at = resolve_trusted(repository, trusted_ref)
    trusted = _blobs(repository, trusted_at, snapshot.directory) if trusted_at else {}
    paths = [record.path for record in wanted]
    last = last_commits(repository, head, paths, snapshot.directory, committed)
    people = _authors(repository, set(last.values()))
    boundary = repository.shallow_commits()
    found = {}
    for record in wanted:
        commit = last.get(record.path, "")
        if committed.get(record.path) != record.oid:
            found[record.path] = Origin("", "", 0, "local")
            continue
        trust = "trusted" if trusted.get(record.path) == record.oid else "committed"
        if commit in boundary:
            found[record.path] = Origin("", "", 0, trust, is_shallow=True)
            continue
        author, date = people.get(commit, ("", 0))
        found[record.path] = Origin(commit, author, date, trust)
    certain = [path for path, origin in found.items() if origin.trust == "trusted"]
    if allowed_signers and certain:
        there = last_commits(repository, trusted_at, certain, snapshot.directory, trusted)
        signed = _signed(repository, set(there.values()) - boundary, trusted_at, allowed_signers)
        for path in certain:
            if there.get(path) in signed:
                found[path] = found[path].replace(trust="signed")
    return found


def resolve_trusted(repository: Repository, trusted_ref: str) -> str:
    """Return the commit of the trusted ref, empty where there is none.

    Without a setting it is the remote's default branch as last fetched.

    Raises:
        MemtoolError: a ref is configured and does not exist.
    """
    git = repository.git
    if trusted_ref:
        try:
            return git.rev(trusted_ref)
        except MemtoolError:
            raise MemtoolError(
                f"the trusted ref {trusted_ref!r} of the settings does not exist here",
                hint="git fetch, or memtool config trust.ref REF",
                code="config",
            ) from None
    for candidate in (
        "refs/remotes/origin/HEAD",
        "refs/remotes/origin/main",
        "refs/remotes/origin/master",
    ):
        answer = git.run(
            "rev-parse", "--verify", "--quiet", f"{candidate}^{{commit}}", allowed=(0, 1)
        )
        if answer:
            return answer.decode().strip()
    return ""


def last_commits(
    repository: Repository,
    revision: str,
    paths: Iterable[str],
    directory: str,
    blobs: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the newest commit that gave each path its present bytes, in one walk over history.

    `blobs` says which bytes are present, by path, if the caller knows it already. Newest is by
    descent, not by date: dates are whatever the author wrote. A commit that wrote other bytes on
    a branch, and lost them in the merge, does not count.
    """
    wanted = set(paths)
    present = _blobs(repository, revision, directory) if blobs is None else blobs
    limit = sorted(wanted) if len(wanted) <= 50 else [directory]
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


def _blobs(repository: Repository, commit: str, directory: str) -> dict[str, str]:
    answer = repository.git.run("ls-tree", "-r", "-z", "--full-tree", commit, "--", directory)
    found = {}
    for row in answer.split(b"\0")[:-1]:
        meta, _tab, raw = row.partition(b"\t")
        found[os.fsdecode(raw)] = meta.split()[2].decode()
    return found


def _authors(repository: Repository, commits: set[str]) -> dict[str, tuple[str, int]]:
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


def _signed(
    repository: Repository, commits: set[str], trusted_at: str, allowed_signers: str
) -> set[str]:
    """Return the commits with a good signature by a key that the trusted commit allows."""
    import tempfile

    keys = repository.git.run(
        "cat-file", "blob", f"{trusted_at}:{allowed_signers}", allowed=(0, 128)
    )
    if not keys:
        return set()
    with tempfile.NamedTemporaryFile(prefix="memtool-signers-") as file:
        file.write(keys)
        file.flush()
        return {commit for commit in sorted(commits) if _is_signed(repository, commit, file.name)}


def _is_signed(repository: Repository, commit: str, keys: str) -> bool:
    # Only ssh signatures: the others are good by the keyring of whoever looks, not by the file.
    settings: Mapping[str, str] = {
        "gpg.program": "false",
        "gpg.openpgp.program": "false",
        "gpg.x509.program": "false",
        "gpg.ssh.program": "ssh-keygen",
        "gpg.ssh.allowedSignersFile": keys,
    }
    options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    answer = repository.git.run(*options, "log", "-1", "--no-walk", "--format=%G?", commit)
    return answer.strip() == b"G"
