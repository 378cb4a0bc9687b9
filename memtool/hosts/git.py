"""Git as a host: hooks that run the gate before commits, and report after merges.

A hook of the user is kept: it is renamed, and ours runs it first, with the same arguments and
input. Uninstalling renames it back, so every byte is as before. Hooks that all repositories share
are refused.
"""

from __future__ import annotations

import os
import shlex
import sys

from memtool import templates
from memtool.errors import MemtoolError
from memtool.hosts.install import FileStep, InstallPlan, bytes_at
from memtool.store.repository import Repository

HOOKS = ("pre-commit", "pre-merge-commit", "post-merge")
"""The hooks that memtool has a template for. Git runs no pre-commit hook for a merge of its own."""
MARK = b"# installed by memtool: "
KEPT = ".before-memtool"
"""Ends the name under which a hook that was there before is kept."""


def install(repository: Repository) -> InstallPlan:
    """Plan the hooks: keep what is there, write ours; nothing for those that are up to date."""
    folder = hooks_folder(repository)
    steps = []
    for name in HOOKS:
        path = os.path.join(folder, name)
        wanted = script(name)
        if bytes_at(path) == wanted and os.access(path, os.X_OK):
            continue
        if os.path.lexists(path) and not is_ours(path):
            if os.path.lexists(path + KEPT):
                raise MemtoolError(
                    f"{path} is somebody else's, and {name}{KEPT} is there already",
                    hint=f"see what each of them does, and remove one: {path + KEPT}",
                    code="hook-taken",
                )
            steps.append(FileStep("rename", path, path + KEPT))
        steps.append(FileStep("write", path, data=wanted))
    return InstallPlan(tuple(steps))


def uninstall(repository: Repository) -> InstallPlan:
    """Plan to remove our hooks, and to put back those that were there before."""
    folder = hooks_folder(repository)
    steps = []
    for name in HOOKS:
        path = os.path.join(folder, name)
        if is_ours(path):
            steps.append(FileStep("remove", path))
            if os.path.lexists(path + KEPT):
                steps.append(FileStep("rename", path + KEPT, path))
    return InstallPlan(tuple(steps))


def hooks_folder(repository: Repository) -> str:
    """Return the directory that git takes this repository's hooks from.

    Raises:
        MemtoolError: it belongs to every repository of the user or the machine.
    """
    git = repository.git
    # Without the hardening, which points core.hooksPath at nothing.
    answer = git.run("rev-parse", "--path-format=absolute", "--git-path", "hooks", with_hooks=True)
    folder = os.fsdecode(answer).rstrip("\n")
    scope = git.run(
        "config", "--show-scope", "--get", "core.hooksPath", with_hooks=True, allowed=(0, 1)
    ).split(b"\t")[0]
    if scope in (b"global", b"system"):
        raise MemtoolError(
            f"the hooks are in {folder}, for all repositories, by the {scope.decode()} "
            "core.hooksPath",
            hint="git config core.hooksPath .git/hooks gives this repository its own; or write "
            "`memtool check --staged` into the shared hook",
            code="shared-hooks",
        )
    return folder


def is_ours(path: str) -> bool:
    """Tell whether a hook was written by memtool."""
    return MARK in (bytes_at(path) or b"")[:400]


def script(name: str) -> bytes:
    """Return the hook of a name, for the Python that runs now."""
    text = templates.read(f"hooks/{name}")
    return text.replace("@PYTHON@", shlex.quote(sys.executable)).encode()
