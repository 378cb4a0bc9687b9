"""Git as a host: hooks that run the gate, a driver that merges memories, lines for code owners.

A hook of the user stays where it is, see `git_hooks`. Hooks that all repositories share are
refused. A hook by which the pre-commit framework runs the gate stays as it is, so that the gate
runs once.

The merge driver is a setting of the clone, beside an attribute that all clones share. What it runs
may be gone one day: then git's own text merge is run, since a driver that only fails leaves one
side in the worktree, without a mark that the other is missing.

The lines for code owners stand between two marks at the end of the file that the forge reads, where
they win over lines before them. Who owns is never guessed.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile

from memtool.authoring.tree import ATTRIBUTES_NAME, bytes_of, with_attributes
from memtool.errors import MemtoolError
from memtool.hosts import git_hooks, pre_commit
from memtool.hosts.git_hooks import HOOKS
from memtool.hosts.install import FileStep, InstallPlan
from memtool.store.context import Context
from memtool.store.files import read_or_none
from memtool.store.repository import Repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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
    site = site_of(repository, directory)
    steps = tuple(git_hooks.install(site, run_by_the_framework(repository)))
    is_new = site.tool == git_hooks.LEFTHOOK and steps
    notes = (f"lefthook install makes the hooks for {git_hooks.LEFTHOOK_LOCAL}",) if is_new else ()
    return InstallPlan((*steps, *_driver_steps(repository, directory)), notes)


def uninstall(repository: Repository) -> InstallPlan:
    """Plan to remove our hooks, driver and lines, and put back the hooks that were there before.

    The attribute stays: it is shared with clones that have the driver, and harmless without.
    """
    steps = [*git_hooks.uninstall(site_of(repository, ""))]
    if driver_of(repository):
        steps.append(_setting(repository, ("--remove-section", DRIVER)))
    return InstallPlan((*steps, *without_code_owners(repository.top)))


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
    before = read_or_none(path)
    with tempfile.TemporaryDirectory(prefix="memtool-") as folder:
        copy = os.path.join(folder, "config")
        with open(copy, "wb") as file:
            file.write(before or b"")
        for edit in edits:
            repository.git.run("config", "--file", copy, *edit)
        after = read_or_none(copy)
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


def site_of(repository: Repository, directory: str) -> git_hooks.HookSite:
    """Return where git takes the hooks from, and which tool makes them."""
    return git_hooks.site_of(repository, directory, hooks_folder(repository))


OWNER_FILES = (
    ".github/CODEOWNERS",
    "CODEOWNERS",
    "docs/CODEOWNERS",
    ".gitlab/CODEOWNERS",
    ".gitea/CODEOWNERS",
    ".forgejo/CODEOWNERS",
)
"""Where forges look for code owners, in the order of GitHub; a new file is the second."""
_OWNERS_BEGIN = "# >>> memtool: who must review changes of memories"
_OWNERS_END = "# <<< memtool"
_OWNER = re.compile(r"@[A-Za-z0-9][\w.-]*(/[\w.-]+)*|[\w.+-]+@[\w-]+(\.[\w-]+)+")


def with_code_owners(context: Context, owners: str) -> list[FileStep]:
    """Plan to let the forge ask some owners where memories of trust rules, or the gate, change.

    Raises:
        MemtoolError: these are no names that a forge knows, or the file cannot be read.
    """
    names = owners.replace(",", " ").split()
    wrong = [name for name in names if not _OWNER.fullmatch(name)]
    if wrong or not names:
        what = f"{wrong[0]!r} is no code owner" if wrong else "nobody is named as code owner"
        raise MemtoolError(
            what,
            hint="memtool install git --codeowners @ORG/TEAM, or @USER, or an "
            "address; several with commas between them",
        )
    top = context.repository.top
    there = (name for name in OWNER_FILES if os.path.lexists(os.path.join(top, name)))
    name = next(there, OWNER_FILES[1])
    path, before = os.path.join(top, name), _owner_file(top, name)
    rows = [f"{place} {' '.join(names)}" for place in _owned_places(context, name)]
    block = "\n".join([_OWNERS_BEGIN, *rows, _OWNERS_END])
    rest = _without_owners(before) if before is not None else None
    if rest is None:
        after = f"{block}\n"
    elif rest.endswith("\n"):
        after = f"{rest}{block}\n"
    else:  # without a line feed at the end there is none after ours either
        after = f"{rest}\n{block}"
    data = after.encode("utf-8", "surrogateescape")
    if data == before:
        return []
    return [FileStep("edit", path, data=data, before=before)]


def _owned_places(context: Context, name: str) -> list[str]:
    """Return what code owners own, as their file writes it: what a rule may be about, and the gate.

    A forge knows paths alone: a rule about tags, categories or ids owns the memory directory.
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
        places = [one for one in places if one == inside or not one.startswith(inside)]
    return [one.replace(" ", "\\ ") for one in dict.fromkeys(places)]


def without_code_owners(top: str) -> list[FileStep]:
    """Return the steps that take our lines out again; a file that held nothing else goes."""
    steps = []
    for name in OWNER_FILES:
        path = os.path.join(top, name)
        before = read_or_none(path)
        if before is None or _OWNERS_BEGIN.encode() not in before:
            continue
        rest = _without_owners(before)
        if rest is None:
            steps.append(FileStep("remove", path, target=top, before=before))
        elif rest.encode("utf-8", "surrogateescape") != before:
            data = rest.encode("utf-8", "surrogateescape")
            steps.append(FileStep("own", path, data=data, before=before))
    return steps


def _without_owners(data: bytes) -> str | None:
    """Return the text of a file without our lines, None where it holds nothing else."""
    text = data.decode("utf-8", "surrogateescape")
    before, begin, rest = text.partition(_OWNERS_BEGIN)
    if not begin:
        return text
    _ours, end, after = rest.partition(_OWNERS_END)
    if not end or (before and not before.endswith("\n")):
        return text  # somebody edited the marks
    if not before and after == "\n":
        return None
    return before.removesuffix("\n") if not after else before + after.removeprefix("\n")


def _owner_file(top: str, name: str) -> bytes | None:
    path = os.path.join(top, name)
    data = read_or_none(path)
    if data is None and os.path.lexists(path):
        raise MemtoolError(
            f"{name} is no file that can be read, or it is a link",
            hint=f"make {name} a file of its own, or remove it",
            code="broken-settings",
        )
    return data
