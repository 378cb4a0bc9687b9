"""Git as a host: hooks that run the gate before commits, and a driver that merges memories.

A hook of the user is kept: it is renamed, and ours runs it first, with the same arguments and
input. Uninstalling renames it back, so every byte is as before. Hooks that all repositories share
are refused. A hook by which the pre-commit framework runs the gate stays as it is, so that the gate
runs once.

The merge driver is a setting of the clone, beside an attribute that all clones share. What it runs
may be gone one day: then git's own text merge is run, since a driver that only fails leaves one
side in the worktree, without a mark that the other is missing.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile

from memtool import templates
from memtool.authoring.tree import ATTRIBUTES_NAME, bytes_of, with_attributes
from memtool.errors import MemtoolError
from memtool.hosts import pre_commit
from memtool.hosts.install import FileStep, InstallPlan, bytes_at
from memtool.store.repository import Repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

HOOKS = ("pre-commit", "pre-merge-commit", "post-merge")
"""The hooks that memtool has a template for. Git runs no pre-commit hook for a merge of its own."""
MARK = b"# installed by memtool: "
KEPT = ".before-memtool"
"""Ends the name under which a hook that was there before is kept."""
DRIVER = "merge.memtool"
"""The section of git's settings that describes the merge driver."""
TITLE = "memories, key by key"
_MERGE = """\
if [ -x @PYTHON@ ]; then @PYTHON@ -P -c 'from memtool.cli.main import command; command()' @CALL@
elif command -v memtool >/dev/null 2>&1; then memtool @CALL@
else (exit 127); fi; s=$?
[ $s -eq 0 ] && exit 0
[ $s -eq 1 ] && grep -q '^<<<<<<< ours' %A && exit 1
git merge-file -L ours -L base -L theirs %A %O %B
[ $? -eq 0 ]
"""
"""What git runs to merge a memory. A Python without memtool ends with 1, as a conflict does."""
_CALL = "merge-file %O %A %B %P"


def install(repository: Repository, directory: str) -> InstallPlan:
    """Plan hooks and merge driver: keep what is there, add ours; nothing that is up to date."""
    folder = hooks_folder(repository)
    run = run_by_the_framework(repository)
    steps = []
    for name in HOOKS:
        path = os.path.join(folder, name)
        wanted = script(name)
        if name in run:
            continue
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
    return InstallPlan((*steps, *_driver_steps(repository, directory)))


def uninstall(repository: Repository) -> InstallPlan:
    """Plan to remove our hooks and driver, and to put back the hooks that were there before.

    The attribute stays: it is shared with clones that have the driver, and harmless without.
    """
    folder = hooks_folder(repository)
    steps = []
    for name in HOOKS:
        path = os.path.join(folder, name)
        if is_ours(path):
            steps.append(FileStep("remove", path))
            if os.path.lexists(path + KEPT):
                steps.append(FileStep("rename", path + KEPT, path))
    if driver_of(repository):
        steps.append(_setting(repository, ("--remove-section", DRIVER)))
    return InstallPlan(tuple(steps))


def driver_of(repository: Repository) -> str:
    """Return what git runs here to merge a memory, empty where no driver is configured."""
    return repository.git.line("config", "--get", f"{DRIVER}.driver", allowed=(0, 1))


def is_driver_named(repository: Repository, directory: str) -> bool:
    """Tell whether git's attributes name the driver for memories."""
    path = f"{directory}/decision/a.md"
    return repository.git.rows("check-attr", "-z", "merge", "--", path)[2:] == [b"memtool"]


def driver() -> str:
    """Return the command of the merge driver, for the Python that runs now."""
    python = shlex.quote(sys.executable).replace("%", "%%")
    return _MERGE.strip().replace("@PYTHON@", python).replace("@CALL@", _CALL).replace("\n", "; ")


def _driver_steps(repository: Repository, directory: str) -> Iterator[FileStep]:
    if driver_of(repository) != driver():
        title, wanted = (f"{DRIVER}.name", TITLE), (f"{DRIVER}.driver", driver())
        yield _setting(repository, title, wanted)
    top = repository.top
    if os.path.isdir(os.path.join(top, directory)) and not is_driver_named(repository, directory):
        before = bytes_of(top, ATTRIBUTES_NAME)
        after = with_attributes(before or b"", directory)
        yield FileStep("own", os.path.join(top, ATTRIBUTES_NAME), data=after, before=before)


def _setting(repository: Repository, *edits: tuple[str, ...]) -> FileStep:
    """Return the change of this clone's settings that some calls of `git config` make."""
    path = os.path.join(repository.common_dir, "config")
    before = bytes_at(path)
    with tempfile.TemporaryDirectory(prefix="memtool-") as folder:
        copy = os.path.join(folder, "config")
        with open(copy, "wb") as file:
            file.write(before or b"")
        for edit in edits:
            repository.git.run("config", "--file", copy, *edit)
        after = bytes_at(copy)
    return FileStep("own", path, data=after or b"", before=before)


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


def run_by_the_framework(repository: Repository) -> tuple[str, ...]:
    """Return the hooks by which the pre-commit framework runs the gate in this clone."""
    folder = hooks_folder(repository)
    theirs = [name for name in HOOKS if pre_commit.is_script(os.path.join(folder, name))]
    return tuple(theirs) if theirs and pre_commit.is_installed(repository.top) else ()


def is_ours(path: str) -> bool:
    """Tell whether a hook was written by memtool."""
    return MARK in (bytes_at(path) or b"")[:400]


def script(name: str) -> bytes:
    """Return the hook of a name, for the Python that runs now."""
    text = templates.read(f"hooks/{name}")
    return text.replace("@PYTHON@", shlex.quote(sys.executable)).encode()
