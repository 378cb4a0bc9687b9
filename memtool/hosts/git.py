"""Git as a host: hooks that run the gate, a driver that merges memories, lines for code owners.

The user's hooks stay in place, see `git_hooks`. Hooks shared by all repositories are refused. If
the pre-commit framework runs the gate by a hook, that hook is not changed, so that the gate runs
once.

The merge driver is a setting of the clone plus an attribute that all clones share. If memtool is
removed later, the driver falls back to git's text merge: a driver that only fails leaves one side
in the worktree, with no mark that the other is missing.

The lines for code owners are between two marks at the end of the forge's file, so that they
override earlier lines. Owners are never guessed.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile

from memtool.authoring.tree import ATTRIBUTES_NAME, read_bytes, with_attributes
from memtool.errors import MemtoolError
from memtool.hosts import git_hooks, pre_commit
from memtool.hosts.git_hooks import HOOKS
from memtool.hosts.install import FileStep, InstallPlan
from memtool.store.context import Context
from memtool.store.files import IGNORE_PATTERN, read_or_none
from memtool.store.repository import Repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

DRIVER_SECTION = "merge.memtool"
"""The section of git's settings for the merge driver."""
DRIVER_TITLE = "memories, key by key"
_DRIVER_TEMPLATE = """\
if [ -x @PYTHON@ ]; then @PYTHON@ -P -c 'from memtool.cli.main import command; command()' @CALL@
elif command -v memtool >/dev/null 2>&1; then memtool @CALL@
else (exit 127); fi; s=$?
[ $s -eq 0 ] && exit 0
[ $s -eq 1 ] && grep -q '^<<<<<<< ours' %A && exit 1
git merge-file -L ours -L base -L theirs %A %O %B
[ $? -eq 0 ]
"""
# A Python without memtool exits with 1, like a conflict: so a conflict must also have left its
# mark.
_DRIVER_CALL = "merge-file %O %A %B %P"


def plan_install(repository: Repository, directory: str) -> InstallPlan:
    """Plan to add or update our hooks and merge driver."""
    site = find_hook_site(repository, directory)
    steps = tuple(git_hooks.plan_install(site, find_framework_hooks(repository)))
    is_new = site.tool == git_hooks.LEFTHOOK and steps
    notes = (f"lefthook install makes the hooks for {git_hooks.LEFTHOOK_LOCAL}",) if is_new else ()
    return InstallPlan((*steps, *_plan_driver(repository, directory)), notes)


def plan_uninstall(repository: Repository) -> InstallPlan:
    """Plan to remove hooks, driver and lines of ours, and to restore earlier hooks."""
    # The attribute stays: other clones share it and may have the driver; without it, it is
    # harmless.
    steps = [*git_hooks.plan_uninstall(find_hook_site(repository, ""))]
    if read_driver(repository):
        steps.append(_plan_config(repository, ("--remove-section", DRIVER_SECTION)))
    steps += _plan_exclude(repository)
    return InstallPlan((*steps, *plan_without_code_owners(repository.top)))


def _plan_exclude(repository: Repository) -> Iterator[FileStep]:
    """Plan to remove the line about temporary files, which the next write would add again."""
    path = os.path.join(repository.common_dir, "info", "exclude")
    before = read_or_none(path) or b""
    lines = before.splitlines(keepends=True)
    after = b"".join(line for line in lines if line.rstrip() != IGNORE_PATTERN.encode())
    if after != before:
        yield FileStep("own" if after else "remove", path, data=after, before=before)


def read_driver(repository: Repository) -> str:
    """Read the command of the configured merge driver; empty if there is none."""
    return repository.git.line("config", "--get", f"{DRIVER_SECTION}.driver", allowed=(0, 1))


def is_driver_named(repository: Repository, directory: str) -> bool:
    """Return whether git's attributes name the driver for memories."""
    path = f"{directory}/decision/a.md"
    return repository.git.rows("check-attr", "-z", "merge", "--", path)[2:] == [b"memtool"]


def build_driver() -> str:
    """Build the command of the merge driver, for the running Python."""
    python = shlex.quote(sys.executable).replace("%", "%%")
    return (
        _DRIVER_TEMPLATE.strip()
        .replace("@PYTHON@", python)
        .replace("@CALL@", _DRIVER_CALL)
        .replace("\n", "; ")
    )


def _plan_driver(repository: Repository, directory: str) -> Iterator[FileStep]:
    if read_driver(repository) != build_driver():
        title, wanted = (
            (f"{DRIVER_SECTION}.name", DRIVER_TITLE),
            (f"{DRIVER_SECTION}.driver", build_driver()),
        )
        yield _plan_config(repository, title, wanted)
    top = repository.top
    if os.path.isdir(os.path.join(top, directory)) and not is_driver_named(repository, directory):
        before = read_bytes(top, ATTRIBUTES_NAME)
        after = with_attributes(before or b"", directory)
        yield FileStep("own", os.path.join(top, ATTRIBUTES_NAME), data=after, before=before)


def _plan_config(repository: Repository, *edits: tuple[str, ...]) -> FileStep:
    """Plan a change of this clone's settings by calls of `git config`."""
    path = os.path.join(repository.common_dir, "config")
    before = read_or_none(path)
    with tempfile.TemporaryDirectory(prefix="memtool-") as folder:
        copy = os.path.join(folder, "config")
        with open(copy, "wb") as file:
            file.write(before or b"")
        for edit in edits:
            repository.git.run("config", "--file", copy, *edit)
        after = read_or_none(copy)
    return FileStep("own", path, data=after or b"", before=before)


def find_hooks_folder(repository: Repository) -> str:
    """Return the directory of this repository's hooks.

    Raises:
        MemtoolError: all repositories of the user or the machine share it.
    """
    git = repository.git
    # with_hooks: otherwise our own hardening points core.hooksPath at nothing.
    answer = git.run("rev-parse", "--path-format=absolute", "--git-path", "hooks", with_hooks=True)
    folder = os.fsdecode(answer).rstrip("\n")
    scope = git.run(
        "config", "--show-scope", "--get", "core.hooksPath", with_hooks=True, allowed=(0, 1)
    ).split(b"\t")[0]
    if scope in (b"global", b"system"):
        raise MemtoolError(
            f"the hooks are in {folder}, for all repositories, by the {scope.decode()} "
            "core.hooksPath",
            hint="hooks of this repository: git config core.hooksPath .git/hooks\n"
            "or add to the shared hook: memtool check --staged",
            code="hook-taken",
        )
    return folder


def find_framework_hooks(repository: Repository) -> tuple[str, ...]:
    """Return the hooks in which the pre-commit framework runs the gate in this clone."""
    folder = find_hooks_folder(repository)
    theirs = [name for name in HOOKS if pre_commit.is_script(os.path.join(folder, name))]
    return tuple(theirs) if theirs and pre_commit.is_installed(repository.top) else ()


def find_hook_site(repository: Repository, directory: str) -> git_hooks.HookSite:
    """Find the directory of git's hooks, and the tool that manages them."""
    return git_hooks.detect_site(repository, directory, find_hooks_folder(repository))


OWNER_FILES = (
    ".github/CODEOWNERS",
    "CODEOWNERS",
    "docs/CODEOWNERS",
    ".gitlab/CODEOWNERS",
    ".gitea/CODEOWNERS",
    ".forgejo/CODEOWNERS",
)
"""Files that forges read for code owners, in GitHub's order; a new file gets the second name."""
_OWNERS_BEGIN = "# >>> memtool: who must review changes of memories"
_OWNERS_END = "# <<< memtool"
_OWNER = re.compile(r"@[A-Za-z0-9][\w.-]*(/[\w.-]+)*|[\w.+-]+@[\w-]+(\.[\w-]+)+")


def plan_code_owners(context: Context, owners: str) -> list[FileStep]:
    """Plan to make the owners reviewers of memories under trust rules, and of the gate's files.

    Raises:
        MemtoolError: a name is not valid for a forge, or the file cannot be read.
    """
    names = owners.replace(",", " ").split()
    wrong = [name for name in names if not _OWNER.fullmatch(name)]
    if wrong or not names:
        what = f"{wrong[0]!r} is not a code owner" if wrong else "--codeowners needs a code owner"
        raise MemtoolError(
            what,
            hint="memtool install git --codeowners @ORG/TEAM",
        )
    top = context.repository.top
    existing = (name for name in OWNER_FILES if os.path.lexists(os.path.join(top, name)))
    name = next(existing, OWNER_FILES[1])
    path, before = os.path.join(top, name), _read_owner_file(top, name)
    rows = [f"{place} {' '.join(names)}" for place in _find_owned_paths(context, name)]
    block = "\n".join([_OWNERS_BEGIN, *rows, _OWNERS_END])
    without_block = _remove_owners_block(before) if before is not None else None
    if without_block is None:
        after = f"{block}\n"
    elif without_block.endswith("\n"):
        after = f"{without_block}{block}\n"
    else:  # no final line feed before, so none after our block either
        after = f"{without_block}\n{block}"
    data = after.encode("utf-8", "surrogateescape")
    if data == before:
        return []
    return [FileStep("edit", path, data=data, before=before)]


def _find_owned_paths(context: Context, name: str) -> list[str]:
    """Return the paths that need review, in the file's syntax: those of rules, and of the gate.

    A forge only knows paths, so a rule for tags, categories or ids covers the memory directory.
    """
    directory = context.directory
    places = []
    for rule in context.settings.rules or context.project.trust_rules:
        terms = dict(rule.terms)
        if "path" in terms:
            places += [f"/{path}" for path in terms["path"]]
        elif "type" in terms:
            places += [f"/{directory}/{type_}/" for type_ in terms["type"]]
        elif terms:
            places.append(f"/{directory}/")
    places = places or [f"/{directory}/decision/"]
    signers = context.settings.text("trust.allowed_signers")
    places += [
        f"/{context.project.config_path}",
        f"/{ATTRIBUTES_NAME}",
        *([f"/{signers}"] * bool(signers)),
    ]
    places.append(f"/{name}")
    if f"/{directory}/" in places:
        inside = f"/{directory}/"
        places = [place for place in places if place == inside or not place.startswith(inside)]
    return [place.replace(" ", "\\ ") for place in dict.fromkeys(places)]


def plan_without_code_owners(top: str) -> list[FileStep]:
    """Plan to remove our lines, and the file if it has nothing else."""
    steps = []
    for name in OWNER_FILES:
        path = os.path.join(top, name)
        before = read_or_none(path)
        if before is None or _OWNERS_BEGIN.encode() not in before:
            continue
        without_block = _remove_owners_block(before)
        if without_block is None:
            steps.append(FileStep("remove", path, target=top, before=before))
        elif without_block.encode("utf-8", "surrogateescape") != before:
            data = without_block.encode("utf-8", "surrogateescape")
            steps.append(FileStep("own", path, data=data, before=before))
    return steps


def _remove_owners_block(data: bytes) -> str | None:
    """Return the text of a file without our lines; None if it has nothing else."""
    text = data.decode("utf-8", "surrogateescape")
    before, begin, following = text.partition(_OWNERS_BEGIN)
    if not begin:
        return text
    _ours, end, after = following.partition(_OWNERS_END)
    if not end or (before and not before.endswith("\n")):
        return text  # a user edited the marks
    if not before and after == "\n":
        return None
    return before.removesuffix("\n") if not after else before + after.removeprefix("\n")


def _read_owner_file(top: str, name: str) -> bytes | None:
    path = os.path.join(top, name)
    data = read_or_none(path)
    if data is None and os.path.lexists(path):
        raise MemtoolError(
            f"{name} is not a readable file, or is a link",
            hint=f"replace {name} with a regular file, or remove it",
            code="broken-settings",
        )
    return data
