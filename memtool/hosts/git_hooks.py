"""Hooks of git: ours together with the user's, which work exactly as before.

A missing hook is written whole. In a shell hook of the user, a block of lines is inserted below the
first line, so that the hook keeps its name, arguments, input and exit code. If a tool regenerates
the hooks, none of them is changed: memtool's entry goes into the tool's own file, or an error shows
the lines for it. Uninstalling restores every byte.

If memtool is missing later, the hooks refuse only commits that touch memories.
"""

from __future__ import annotations

import os
import re
import shlex
import sys

from memtool import templates
from memtool.errors import MemtoolError
from memtool.hosts import pre_commit
from memtool.hosts.install import FileStep
from memtool.store.files import read_or_none
from memtool.store.repository import Repository
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

HOOKS = ("pre-commit", "pre-merge-commit", "post-merge")
"""The hooks that memtool has templates for. Git does not run pre-commit for an automatic merge."""
GATES = HOOKS[:2]
MARK = b"# installed by memtool: "
"""Start of the second line of a file that belongs to memtool alone."""
BACKUP_SUFFIX = ".before-memtool"
"""Suffix of the copy of an earlier hook; today only of one that git did not run."""
BEGIN, END = "# >>> memtool", "# <<< memtool"
GATE_CALL = b"memtool check"
"""In each hook, or entry in a tool's file, that runs the gate, also one written by hand."""
LEFTHOOK_LOCAL = "lefthook-local.yml"
_SHELL = re.compile(rb"#![ \t]*(/\S*/)?(env[ \t]+(-S[ \t]+)?)?(ba|da|z|k|a)?sh([ \t\r\n]|$)")
_BLOCK = re.compile(rf"^{BEGIN}.*?^{END}\n".encode(), re.MULTILINE | re.DOTALL)
_ENDINGS = ("yml", "yaml", "toml", "json")
_LEFTHOOK_LOCAL_FILES = tuple(f"{dot}lefthook-local.{end}" for dot in ("", ".") for end in _ENDINGS)
_LEFTHOOK_FILES = (
    *(f"{dot}lefthook.{end}" for dot in ("", ".") for end in _ENDINGS),
    *_LEFTHOOK_LOCAL_FILES,
)
UNTRACKED_FILES = ("node_modules", *_LEFTHOOK_LOCAL_FILES)
"""Files that hook tools need at the top of a worktree and that are not committed."""
_SIMPLE_FILES = (
    ".simple-git-hooks.cjs",
    ".simple-git-hooks.js",
    ".simple-git-hooks.mjs",
    ".simple-git-hooks.json",
    "simple-git-hooks.cjs",
    "simple-git-hooks.js",
    "simple-git-hooks.mjs",
    "simple-git-hooks.json",
)
HUSKY, LEFTHOOK, SIMPLE, OVERCOMMIT = "husky", "lefthook", "simple-git-hooks", "overcommit"


class HookSite(Value):
    """The hooks directory of a repository, and the tool that manages it (empty for none)."""

    top: str
    folder: str
    directory: str
    tool: str

    def find_path(self, name: str) -> str:
        """Return the file of a hook that memtool may write."""
        above = os.path.dirname(self.folder) if self.tool == HUSKY else self.folder
        return os.path.join(above, name)

    def read_files(self, paths: tuple[str, ...]) -> bytes:
        """Return the contents of files at the top, concatenated."""
        return b"\n".join(read_or_none(os.path.join(self.top, path)) or b"" for path in paths)

    @property
    def gate_command(self) -> str:
        """The gate as one shell command, for files that all clones share."""
        place = shlex.quote(self.directory)
        return (
            "if command -v memtool >/dev/null 2>&1; then memtool check --staged; "
            f"else git diff --cached --quiet -- {place}; fi"
        )


def detect_site(repository: Repository, directory: str, folder: str) -> HookSite:
    """Detect the tool that manages a hooks folder, by its traces there and its settings files."""
    top = repository.top
    texts = b"\n".join(read_or_none(os.path.join(folder, name)) or b"" for name in HOOKS)
    plain = HookSite(top, folder, directory, "")
    is_husky = os.path.basename(folder) == "_" and os.path.isfile(os.path.join(folder, "h"))
    if is_husky:
        return plain.replace(tool=HUSKY)
    if b"call_lefthook" in texts or any(_is_file(top, name) for name in _LEFTHOOK_FILES):
        return plain.replace(tool=LEFTHOOK)
    package = read_or_none(os.path.join(top, "package.json")) or b""
    if re.search(rb'"simple-git-hooks"\s*:\s*[{]', package) or any(
        _is_file(top, name) for name in _SIMPLE_FILES
    ):
        return plain.replace(tool=SIMPLE)
    if b"overcommit" in texts.lower():
        return plain.replace(tool=OVERCOMMIT)
    return plain


def plan_install(site: HookSite, skipped: tuple[str, ...]) -> Iterator[FileStep]:
    """Plan to add or update our hooks, except the skipped ones.

    Raises:
        MemtoolError: the user must change a hook or a tool's file; the error shows the lines.
    """
    if site.tool == LEFTHOOK:
        yield from _plan_lefthook(site)
        return
    if site.tool == SIMPLE:
        if GATE_CALL not in site.read_files((*_SIMPLE_FILES, "package.json")):
            entries = " and ".join(GATES)
            raise _refusal_error(
                "simple-git-hooks rewrites the hooks of this repository",
                f"add to {entries} of its settings: {site.gate_command}\nnpx simple-git-hooks",
            )
        return
    if site.tool == OVERCOMMIT and GATE_CALL not in _read_overcommit(site):
        raise _refusal_error(
            "overcommit rewrites the hooks of this repository",
            "add below PreCommit: in .overcommit.yml: MemtoolCheck: {enabled: true, "
            "required_executable: 'sh', command: ['sh', '-c', "
            f'"{site.gate_command}"]}}',
        )
    for name in HOOKS:
        path = os.path.join(site.folder, name)
        if name in skipped or (site.tool == OVERCOMMIT and _is_overcommit(path)):
            continue
        yield from _plan_hook(site, name)


def _plan_hook(site: HookSite, name: str) -> Iterator[FileStep]:  # one case a branch
    """Plan one hook: restore one that an older memtool renamed, then add our file or block."""
    if site.tool == HUSKY:  # an older memtool wrote into husky's generated files
        yield from _plan_removal(os.path.join(site.folder, name))
    path = site.find_path(name)
    is_mine = is_ours(path)
    is_run = site.tool == HUSKY or os.access(path, os.X_OK)
    before = read_or_none(path)
    if os.path.islink(path) or (before is None and os.path.lexists(path)):
        if GATE_CALL not in _read(path):
            raise _refusal_error(
                f"{path} is a link, or not a regular file",
                f"add to the script that it runs: {site.gate_command} || exit $?",
            )
        return
    if is_mine and os.access(path + BACKUP_SUFFIX, os.X_OK):
        yield from _plan_removal(path)
        before, is_mine = read_or_none(path + BACKUP_SUFFIX), False
    elif (
        before is not None
        and not is_mine
        and not is_run
        and not os.path.lexists(path + BACKUP_SUFFIX)
    ):
        yield FileStep("rename", path, path + BACKUP_SUFFIX)
        before = None
    if before is None or is_mine:
        yield from _plan_own_file(site, name, before, is_run=is_run)
        return
    after = _insert_block(site, name, path, before)
    if after != before:
        yield FileStep("own", path, data=after, before=before)


def _plan_own_file(
    site: HookSite, name: str, before: bytes | None, *, is_run: bool
) -> Iterator[FileStep]:
    """Plan a file that belongs to memtool alone; husky does not need it to be executable."""
    path = site.find_path(name)
    wanted = build_script(name, site.directory, is_shared=site.tool == HUSKY)
    if before == wanted and is_run:
        return
    if site.tool == HUSKY:
        yield FileStep("own", path, data=wanted, before=before)
    else:
        yield FileStep("write", path, data=wanted)


def _insert_block(site: HookSite, name: str, path: str, before: bytes) -> bytes:
    """Insert our block into a user's hook. Raises MemtoolError if it is not a shell script."""
    block = _build_block(name, site)
    if BEGIN.encode() in before:
        return _BLOCK.sub(lambda _match: block, before, count=1)
    if GATE_CALL in before:  # written by hand
        return before
    if pre_commit.is_script(path):
        raise _refusal_error(
            f"the pre-commit framework writes {path}",
            f"memtool install pre-commit\n{pre_commit.INSTALL_COMMAND}",
        )
    if not before.startswith(b"#!"):
        if b"\0" in before:
            raise _not_shell_error(path, site)
        return block + before
    if not _SHELL.match(before):
        raise _not_shell_error(path, site)
    first, newline, following = before.partition(b"\n")
    if not newline:  # it does nothing
        raise _refusal_error(f"{path} is an empty script", f"rm {path}")
    return first + b"\n" + block + following


def _not_shell_error(path: str, site: HookSite) -> MemtoolError:
    return _refusal_error(
        f"{path} is not a shell script",
        f"run this in it first, and stop if it fails: {site.gate_command}",
    )


def _refusal_error(what: str, hint: str) -> MemtoolError:
    return MemtoolError(f"cannot install the hook: {what}", hint=hint, code="hook-taken")


def _plan_lefthook(site: HookSite) -> Iterator[FileStep]:
    """Plan the entry in lefthook's local file, which it reads in addition to the shared one."""
    for name in HOOKS:
        yield from _plan_removal(os.path.join(site.folder, name))
    wanted = _format_lefthook(site)
    path = os.path.join(site.top, LEFTHOOK_LOCAL)
    before = read_or_none(path)
    if before is not None and MARK in before[:400]:
        if before != wanted:
            yield FileStep("own", path, data=wanted, before=before)
        return
    if GATE_CALL in site.read_files(_LEFTHOOK_FILES):
        return
    local = [name for name in _LEFTHOOK_LOCAL_FILES if _is_file(site.top, name)]
    if local:
        rows = " | ".join(wanted.decode().splitlines()[1:])
        raise _refusal_error(
            f"lefthook rewrites the hooks of this repository, and {local[0]} is yours",
            f"add to {local[0]}, each | a new line: {rows}",
        )
    yield FileStep("own", path, data=wanted)


def _format_lefthook(site: HookSite) -> bytes:
    rows = [f"{MARK.decode()}`memtool uninstall git` removes it, `lefthook install` reads it."]
    for name in GATES:
        rows += [
            f"{name}:",
            "  commands:",
            "    memtool:",
            "      run: >-",
            f"        {site.gate_command}",
        ]
    return ("\n".join(rows) + "\n").encode()


def plan_uninstall(site: HookSite) -> Iterator[FileStep]:
    """Plan to remove our hooks, blocks and entries, and to restore renamed hooks."""
    local = os.path.join(site.top, LEFTHOOK_LOCAL)
    if is_ours(local):
        yield FileStep("remove", local)
    for name in HOOKS:
        for path in dict.fromkeys((os.path.join(site.folder, name), site.find_path(name))):
            yield from _plan_removal(path)


def _plan_removal(path: str) -> Iterator[FileStep]:
    """Plan to remove us from one file and restore its previous content."""
    data = read_or_none(path)
    if is_ours(path):
        yield FileStep("remove", path)
        if os.path.lexists(path + BACKUP_SUFFIX):
            yield FileStep("rename", path + BACKUP_SUFFIX, path)
    elif data is not None and BEGIN.encode() in data:
        yield FileStep("own", path, data=_BLOCK.sub(b"", data, count=1), before=data)


def is_ours(path: str) -> bool:
    """Return whether a file belongs to memtool alone."""
    return MARK in (read_or_none(path) or b"")[:400]


def build_script(name: str, directory: str, *, is_shared: bool = False) -> bytes:
    """Build a hook for the running Python, or for any Python if it `is_shared`."""
    python = "''" if is_shared else shlex.quote(sys.executable)
    text = templates.read(f"hooks/{name}").replace("@DIRECTORY@", shlex.quote(directory))
    return text.replace("@PYTHON@", python).encode()


def _build_block(name: str, site: HookSite) -> bytes:
    """Build the block for a user's hook; it reads none of the hook's input."""
    text = build_script(name, site.directory, is_shared=site.tool == HUSKY).decode()
    _shebang, what, _how, body = text.split("\n", 3)
    title = what.removeprefix(MARK.decode())
    return (
        f"{BEGIN}: {title} `memtool uninstall git` takes these lines out.\n"
        f"(\n{body}) </dev/null || exit $?\n{END}\n"
    ).encode()


REINSTALL_COMMANDS = {
    HUSKY: "npx husky",
    LEFTHOOK: "lefthook install",
    SIMPLE: "npx simple-git-hooks",
    OVERCOMMIT: "overcommit --install",
}
"""The command of each tool that regenerates the hooks."""


def find_tool_entry(site: HookSite) -> str:
    """Return the tool's file that has an entry for the gate; empty if none."""
    files = {
        LEFTHOOK: _LEFTHOOK_FILES,
        SIMPLE: (*_SIMPLE_FILES, "package.json"),
        OVERCOMMIT: (".overcommit.yml", ".local-overcommit.yml"),
    }
    if site.tool == HUSKY:
        own = site.find_path(GATES[0])
        return os.path.relpath(own, site.top) if GATE_CALL in _read(own) else ""
    return next(
        (name for name in files.get(site.tool, ()) if GATE_CALL in site.read_files((name,))), ""
    )


def find_gate_hook(site: HookSite, name: str) -> str:
    """Return the file through which git would run the gate at a hook; empty if none.

    This only reads files, and ignores the pre-commit framework.
    """
    path = os.path.join(site.folder, name)
    if not os.access(path, os.X_OK) or os.path.isdir(path):
        return ""
    data = _read(path)
    if _runs_gate(data):
        return path
    if site.tool == HUSKY:
        own = site.find_path(name)
        return own if _runs_gate(_read(own)) else ""
    if (
        site.tool == LEFTHOOK
        and b"call_lefthook" in data
        and GATE_CALL in site.read_files(_LEFTHOOK_FILES)
    ):
        return path
    if _is_overcommit(path) and GATE_CALL in _read_overcommit(site):
        return path
    return ""


def _runs_gate(data: bytes) -> bool:
    return MARK in data[:400] or BEGIN.encode() in data or GATE_CALL in data


def _read_overcommit(site: HookSite) -> bytes:
    return site.read_files((".overcommit.yml", ".local-overcommit.yml"))


def _is_overcommit(path: str) -> bool:
    return b"overcommit" in _read(path).lower()


def _is_file(top: str, name: str) -> bool:
    return os.path.isfile(os.path.join(top, name))


def _read(path: str) -> bytes:
    """Read a file, following links; empty if it cannot be read."""
    return read_or_none(os.path.realpath(path)) or b""
