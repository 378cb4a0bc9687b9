"""Hooks of git: ours beside those of others, which behave to the byte as before.

A hook that is not there is written whole. Into a shell hook of the user a block of lines is put
below its first line, so that it keeps its name, arguments, input and exit code. Where a tool makes
the hooks anew, nothing is written among them: memtool's entry goes into the tool's own file, or
the lines for it are named. Uninstalling restores every byte.

Where memtool is gone, only commits that touch memories are refused.
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
"""The hooks that memtool has a template for. Git runs no pre-commit hook for a merge of its own."""
GATES = HOOKS[:2]
MARK = b"# installed by memtool: "
"""Begins the second line of a file that is memtool's alone."""
KEPT = ".before-memtool"
"""Ends the name under which a hook that was there before is kept: today one that git never ran."""
BEGIN, END = "# >>> memtool", "# <<< memtool"
CALL = b"memtool check"
"""What a hook, or an entry in a tool's file, holds that runs the gate, whoever wrote it."""
LEFTHOOK_LOCAL = "lefthook-local.yml"
_SHELL = re.compile(rb"#![ \t]*(/\S*/)?(env[ \t]+(-S[ \t]+)?)?(ba|da|z|k|a)?sh([ \t\r\n]|$)")
_BLOCK = re.compile(rf"^{BEGIN}.*?^{END}\n".encode(), re.MULTILINE | re.DOTALL)
_ENDINGS = ("yml", "yaml", "toml", "json")
_LEFTHOOK_LOCAL = tuple(f"{dot}lefthook-local.{end}" for dot in ("", ".") for end in _ENDINGS)
_LEFTHOOK = (*(f"{dot}lefthook.{end}" for dot in ("", ".") for end in _ENDINGS), *_LEFTHOOK_LOCAL)
BROUGHT = ("node_modules", *_LEFTHOOK_LOCAL)
"""What tools of hooks look for at the top of a worktree, and no commit holds."""
_SIMPLE = (
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
    """Where git takes the hooks of a repository from, and which tool makes them there."""

    top: str
    folder: str
    directory: str
    tool: str

    def path(self, name: str) -> str:
        """Return the file that memtool may write for a hook."""
        above = os.path.dirname(self.folder) if self.tool == HUSKY else self.folder
        return os.path.join(above, name)

    def named(self, paths: tuple[str, ...]) -> bytes:
        """Return the texts of some files at the top, one below the other."""
        return b"\n".join(read_or_none(os.path.join(self.top, path)) or b"" for path in paths)

    @property
    def line(self) -> str:
        """The gate as one command for files that all clones share."""
        place = shlex.quote(self.directory)
        return (
            "if command -v memtool >/dev/null 2>&1; then memtool check --staged; "
            f"else git diff --cached --quiet -- {place}; fi"
        )


def site_of(repository: Repository, directory: str, folder: str) -> HookSite:
    """Look which tool makes the hooks in a folder, by what it left there and its files."""
    top = repository.top
    texts = b"\n".join(read_or_none(os.path.join(folder, name)) or b"" for name in HOOKS)
    plain = HookSite(top, folder, directory, "")
    is_husky = os.path.basename(folder) == "_" and os.path.isfile(os.path.join(folder, "h"))
    if is_husky:
        return plain.replace(tool=HUSKY)
    if b"call_lefthook" in texts or any(_is_file(top, name) for name in _LEFTHOOK):
        return plain.replace(tool=LEFTHOOK)
    package = read_or_none(os.path.join(top, "package.json")) or b""
    if re.search(rb'"simple-git-hooks"\s*:\s*[{]', package) or any(
        _is_file(top, name) for name in _SIMPLE
    ):
        return plain.replace(tool=SIMPLE)
    if b"overcommit" in texts.lower():
        return plain.replace(tool=OVERCOMMIT)
    return plain


def install(site: HookSite, skipped: tuple[str, ...]) -> Iterator[FileStep]:
    """Plan what lets git run our hooks but the skipped ones; nothing that is up to date.

    Raises:
        MemtoolError: a hook or a tool's file is to be changed by its owner, who is told the lines.
    """
    if site.tool == LEFTHOOK:
        yield from _lefthook(site)
        return
    if site.tool == SIMPLE:
        if CALL not in site.named((*_SIMPLE, "package.json")):
            entries = " and ".join(GATES)
            raise _refusal(
                "simple-git-hooks makes the hooks here anew",
                f"add to {entries} of its settings: {site.line}; then npx simple-git-hooks",
            )
        return
    if site.tool == OVERCOMMIT and CALL not in _of_overcommit(site):
        raise _refusal(
            "overcommit makes the hooks here anew",
            "add below PreCommit: in .overcommit.yml: MemtoolCheck: {enabled: true, "
            "required_executable: 'sh', command: ['sh', '-c', "
            f'"{site.line}"]}}',
        )
    for name in HOOKS:
        path = os.path.join(site.folder, name)
        if name in skipped or (site.tool == OVERCOMMIT and _is_overcommit(path)):
            continue
        yield from _hook(site, name)


def _hook(site: HookSite, name: str) -> Iterator[FileStep]:  # one case a branch
    """Plan one hook: back to its name what an older memtool renamed, then our file or block."""
    if site.tool == HUSKY:  # an older memtool wrote among what husky makes
        yield from _without(os.path.join(site.folder, name))
    path = site.path(name)
    is_mine = is_ours(path)
    is_run = site.tool == HUSKY or os.access(path, os.X_OK)
    before = read_or_none(path)
    if os.path.islink(path) or (before is None and os.path.lexists(path)):
        if CALL not in _read(path):
            raise _refusal(
                f"{path} is a link or no file", f"add to what it runs: {site.line} || exit $?"
            )
        return
    if is_mine and os.access(path + KEPT, os.X_OK):
        yield from _without(path)
        before, is_mine = read_or_none(path + KEPT), False
    elif before is not None and not is_mine and not is_run and not os.path.lexists(path + KEPT):
        yield FileStep("rename", path, path + KEPT)
        before = None
    if before is None or is_mine:
        yield from _whole(site, name, before, is_run=is_run)
        return
    after = _with_block(site, name, path, before)
    if after != before:
        yield FileStep("own", path, data=after, before=before)


def _whole(site: HookSite, name: str, before: bytes | None, *, is_run: bool) -> Iterator[FileStep]:
    """Plan a file that is memtool's alone; husky runs one that nobody may execute, too."""
    path = site.path(name)
    wanted = script(name, site.directory, is_shared=site.tool == HUSKY)
    if before == wanted and is_run:
        return
    if site.tool == HUSKY:
        yield FileStep("own", path, data=wanted, before=before)
    else:
        yield FileStep("write", path, data=wanted)


def _with_block(site: HookSite, name: str, path: str, before: bytes) -> bytes:
    """Return a hook of the user with our lines. Raises MemtoolError where it is no shell script."""
    block = _block(name, site)
    if BEGIN.encode() in before:
        return _BLOCK.sub(lambda _found: block, before, count=1)
    if CALL in before:  # somebody wrote it by hand
        return before
    if pre_commit.is_script(path):
        raise _refusal(
            f"the pre-commit framework makes {path}",
            f"memtool install pre-commit, then {pre_commit.INSTALL}",
        )
    if not before.startswith(b"#!"):
        if b"\0" in before:
            raise _no_shell(path, site)
        return block + before
    if not _SHELL.match(before):
        raise _no_shell(path, site)
    first, feed, rest = before.partition(b"\n")
    if not feed:  # it does nothing
        raise _refusal(f"{path} is an empty script", f"remove it: {path}")
    return first + b"\n" + block + rest


def _no_shell(path: str, site: HookSite) -> MemtoolError:
    return _refusal(
        f"{path} is no shell script",
        f"let it run this first, and stop where that fails: {site.line}",
    )


def _refusal(what: str, hint: str) -> MemtoolError:
    return MemtoolError(f"{what}; memtool changes nothing there", hint=hint, code="hook-taken")


def _lefthook(site: HookSite) -> Iterator[FileStep]:
    """Plan the entry in lefthook's local file, which it reads beside the shared one."""
    for name in HOOKS:
        yield from _without(os.path.join(site.folder, name))
    wanted = _lefthook_text(site)
    path = os.path.join(site.top, LEFTHOOK_LOCAL)
    before = read_or_none(path)
    if before is not None and MARK in before[:400]:
        if before != wanted:
            yield FileStep("own", path, data=wanted, before=before)
        return
    if CALL in site.named(_LEFTHOOK):
        return
    local = [name for name in _LEFTHOOK_LOCAL if _is_file(site.top, name)]
    if local:
        rows = " | ".join(wanted.decode().splitlines()[1:])
        raise _refusal(
            f"lefthook makes the hooks here anew, and {local[0]} is yours",
            f"add to {local[0]}, each | a new line: {rows}",
        )
    yield FileStep("own", path, data=wanted)


def _lefthook_text(site: HookSite) -> bytes:
    rows = [f"{MARK.decode()}`memtool uninstall git` removes it, `lefthook install` reads it."]
    for name in GATES:
        rows += [f"{name}:", "  commands:", "    memtool:", "      run: >-", f"        {site.line}"]
    return ("\n".join(rows) + "\n").encode()


def uninstall(site: HookSite) -> Iterator[FileStep]:
    """Plan to take our hooks, blocks and entries out, and give names back."""
    local = os.path.join(site.top, LEFTHOOK_LOCAL)
    if is_ours(local):
        yield FileStep("remove", local)
    for name in HOOKS:
        for path in dict.fromkeys((os.path.join(site.folder, name), site.path(name))):
            yield from _without(path)


def _without(path: str) -> Iterator[FileStep]:
    """Plan to take us out of one file, which becomes what it was before."""
    data = read_or_none(path)
    if is_ours(path):
        yield FileStep("remove", path)
        if os.path.lexists(path + KEPT):
            yield FileStep("rename", path + KEPT, path)
    elif data is not None and BEGIN.encode() in data:
        yield FileStep("own", path, data=_BLOCK.sub(b"", data, count=1), before=data)


def is_ours(path: str) -> bool:
    """Tell whether a file was written by memtool, and is its alone."""
    return MARK in (read_or_none(path) or b"")[:400]


def script(name: str, directory: str, *, is_shared: bool = False) -> bytes:
    """Return the hook of a name, for the Python that runs now, or for any where it `is_shared`."""
    python = "''" if is_shared else shlex.quote(sys.executable)
    text = templates.read(f"hooks/{name}").replace("@DIRECTORY@", shlex.quote(directory))
    return text.replace("@PYTHON@", python).encode()


def _block(name: str, site: HookSite) -> bytes:
    """Return the lines for a hook of the user; they take none of its input."""
    text = script(name, site.directory, is_shared=site.tool == HUSKY).decode()
    _shebang, what, _how, body = text.split("\n", 3)
    title = what.removeprefix(MARK.decode())
    return (
        f"{BEGIN}: {title} `memtool uninstall git` takes these lines out.\n"
        f"(\n{body}) </dev/null || exit $?\n{END}\n"
    ).encode()


AGAIN = {
    HUSKY: "npx husky",
    LEFTHOOK: "lefthook install",
    SIMPLE: "npx simple-git-hooks",
    OVERCOMMIT: "overcommit --install",
}
"""How each tool makes the hooks anew."""


def entry_of(site: HookSite) -> str:
    """Return the file of the tool that has the entry for the gate, empty for none."""
    files = {
        LEFTHOOK: _LEFTHOOK,
        SIMPLE: (*_SIMPLE, "package.json"),
        OVERCOMMIT: (".overcommit.yml", ".local-overcommit.yml"),
    }
    if site.tool == HUSKY:
        own = site.path(GATES[0])
        return os.path.relpath(own, site.top) if CALL in _read(own) else ""
    return next((name for name in files.get(site.tool, ()) if CALL in site.named((name,))), "")


def reached(site: HookSite, name: str) -> str:
    """Return the file by which git would run the gate at a hook, found by reading; empty for none.

    The pre-commit framework is not looked at.
    """
    path = os.path.join(site.folder, name)
    if not os.access(path, os.X_OK) or os.path.isdir(path):
        return ""
    data = _read(path)
    if _runs_us(data):
        return path
    if site.tool == HUSKY:
        own = site.path(name)
        return own if _runs_us(_read(own)) else ""
    if site.tool == LEFTHOOK and b"call_lefthook" in data and CALL in site.named(_LEFTHOOK):
        return path
    if _is_overcommit(path) and CALL in _of_overcommit(site):
        return path
    return ""


def _runs_us(data: bytes) -> bool:
    return MARK in data[:400] or BEGIN.encode() in data or CALL in data


def _of_overcommit(site: HookSite) -> bytes:
    return site.named((".overcommit.yml", ".local-overcommit.yml"))


def _is_overcommit(path: str) -> bool:
    return b"overcommit" in _read(path).lower()


def _is_file(top: str, name: str) -> bool:
    return os.path.isfile(os.path.join(top, name))


def _read(path: str) -> bytes:
    """Return the bytes of a file, behind links as well; nothing of one that cannot be read."""
    return read_or_none(os.path.realpath(path)) or b""
