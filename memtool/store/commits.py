"""Commits of just some files: what else the user has staged stays as it is."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from memtool.errors import MemtoolError
from memtool.store.files import locked
from memtool.store.git import GitError
from memtool.store.repository import Repository

LOCK_PATIENCE_S = 20.0
"""How long to wait for another git process before saying so."""


def commit_files(
    repository: Repository, paths: Sequence[str], subject: str, trailers: Mapping[str, str]
) -> str:
    """Commit the worktree's content of some paths, alone, and return the id of the commit.

    The user's hooks and signing apply as in any commit. Waits for locks of other processes.

    Raises:
        MemtoolError: a hook or git refused; the files are left as they are, uncommitted.
    """
    lines = "".join(f"{key}: {value}\n" for key, value in trailers.items())
    message = f"{subject}\n\n{lines}" if lines else f"{subject}\n"
    with locked(repository.cache_dir, "commit.lock"):
        new = _untracked(repository, paths)
        exactly = [f":(top,literal){path}" for path in paths]
        try:
            if new:
                _patiently(
                    repository,
                    [
                        "add",
                        "--intent-to-add",
                        "--force",
                        "--",
                        *[f":(top,literal){path}" for path in new],
                    ],
                )
            _patiently(
                repository,
                [
                    "commit",
                    "--quiet",
                    "--only",
                    "--cleanup=verbatim",
                    "--no-edit",
                    "--file=-",
                    "--",
                    *exactly,
                ],
                message.encode(),
            )
        except MemtoolError as error:
            if new:
                with suppress(MemtoolError):  # the refusal below is what the user must see
                    _patiently(
                        repository,
                        [
                            "rm",
                            "--cached",
                            "--quiet",
                            "--",
                            *[f":(top,literal){path}" for path in new],
                        ],
                    )
            raise MemtoolError(
                f"{', '.join(paths)} is written but not committed: {_reason(error)}",
                hint=_hint(error, paths),
                code="commit-refused",
            ) from None
        return repository.git.rev("HEAD")


def _untracked(repository: Repository, paths: Sequence[str]) -> list[str]:
    known = repository.git.run("ls-files", "-z", "--", *paths).split(b"\0")
    return [path for path in paths if os.fsencode(path) not in known]


def _patiently(repository: Repository, args: list[str], stdin: bytes | None = None) -> None:
    """Run git, trying again while another process holds a lock."""
    deadline = time.monotonic() + LOCK_PATIENCE_S
    pause_s = 0.01
    while True:
        try:
            repository.git.run(*args, stdin=stdin, with_hooks=True)
            return
        except GitError as error:
            if not error.is_lock or time.monotonic() + pause_s > deadline:
                raise
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.3)


def _reason(error: MemtoolError) -> str:
    if isinstance(error, GitError):
        return error.stderr.strip().splitlines()[0] if error.stderr.strip() else error.message
    return error.message


def _hint(error: MemtoolError, paths: Sequence[str]) -> str:
    again = f"git commit -- {' '.join(paths)}"
    if isinstance(error, GitError):
        if error.is_lock:
            return f"another git process holds a lock; when it is done: {again}"
        if "Please tell me who you are" in error.stderr or "user.email" in error.stderr:
            return f"git config user.name NAME and user.email ADDRESS, then {again}"
    return f"mend what git says, then {again}"
