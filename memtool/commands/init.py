"""`memtool init`: the memory directory of a repository."""

from __future__ import annotations

import os

from memtool import templates
from memtool.authoring import write
from memtool.errors import MemtoolError
from memtool.memory.fields import TYPES
from memtool.store import files
from memtool.store.commits import commit_files
from memtool.store.config import CONFIG_NAME, DEFAULT_DIRECTORY, POINTER_NAME
from memtool.store.context import Context
from memtool.store.repository import owner, refuse
from memtool.value import Value

ATTRIBUTES_NAME = ".gitattributes"


class Initialized(Value):
    """Where the memories go, and which files were made or changed for it."""

    directory: str
    written: tuple[str, ...]
    commit: str | None
    dry_run: bool = False


def init(
    context: Context, *, directory: str = "", commit: bool = False, dry_run: bool = False
) -> Initialized:
    """Make the memory directory of a repository: settings, templates, and a line for git.

    Doing it again adds only what is missing. The templates, .memory/_decision.md and so on, are
    yours to change. The line in .gitattributes keeps git from converting line ends in memories.

    Example:
        memtool init --commit

    Args:
        directory: keep the memories here instead of .memory; .memtool.toml at the top says so
        commit: commit just these files
        dry_run: say which files would be written, write nothing
    """
    if not (context.repository.is_made or dry_run):
        if directory:
            raise MemtoolError(
                f"the memories of the global repository are in {context.directory}",
                hint="memtool init --global",
            )
        write.make(context)
    repository = context.repository
    if repository.is_bare:
        raise MemtoolError(
            "a bare repository has no work tree to write to",
            hint="run memtool init in a clone",
            code="bare",
        )
    chosen = _chosen(context, directory) if directory else context.directory
    refuse(repository.top, chosen)
    planned = _planned(context, chosen)
    if commit and ATTRIBUTES_NAME in planned and write.is_dirty(repository, ATTRIBUTES_NAME):
        raise MemtoolError(
            f"{ATTRIBUTES_NAME} has changes of yours that are not committed",
            hint=f"git commit {ATTRIBUTES_NAME}, or leave out --commit",
        )
    if not dry_run:
        for path, data in planned.items():
            before = write.bytes_of(repository.top, path)
            files.replace(repository.top, path, data, expected=before)
    done = None
    if commit and planned and not dry_run:
        done = commit_files(repository, list(planned), "memory: begin", {})
    return Initialized(chosen, tuple(planned), done, dry_run)


def render(initialized: Initialized) -> str:
    """Return one line per file, then what to do next."""
    if not initialized.written:
        return f"{initialized.directory} is ready, nothing was missing"
    rows = [f"wrote {path}" for path in initialized.written]
    if initialized.dry_run:
        return "\n".join(f"would write {path}" for path in initialized.written)
    return "\n".join([*rows, 'next: memtool new decision "TITLE", or memtool import adr DIR'])


def _chosen(context: Context, directory: str) -> str:
    """Return the directory that was asked for. Raises MemtoolError where none can be there."""
    chosen = directory.strip().rstrip("/")
    parts = chosen.split("/")
    if not all(map(_is_name, parts)):
        raise MemtoolError(
            f"{directory!r} is not a directory inside the repository, of letters, digits and . _ -",
            hint="memtool init --directory docs/memory",
        )
    is_taken = chosen != context.directory and (
        context.directory != DEFAULT_DIRECTORY or _holds_ours(context.repository.top)
    )
    if is_taken:
        raise MemtoolError(
            f"the memories of this repository are in {context.directory}",
            hint=f'git mv {context.directory} {chosen}, and write directory = "{chosen}" '
            f"into {POINTER_NAME}",
        )
    return chosen


def _is_name(part: str) -> bool:
    """Tell whether git's attributes and TOML take a part of a path without quotes."""
    harmless = part.replace(".", "").replace("_", "a").replace("-", "a")
    return harmless.isalnum() and part[0] != "-" and part.lower() != ".git"


def _holds_ours(top: str) -> bool:
    """Tell whether the default directory holds memories, or at least our settings."""
    try:
        is_empty = not os.listdir(os.path.join(top, DEFAULT_DIRECTORY))
    except OSError:
        return False
    return not is_empty and owner(top, DEFAULT_DIRECTORY) is None


def _planned(context: Context, directory: str) -> dict[str, bytes]:
    """Return the files that are missing or lack our line, with the bytes that they shall have."""
    top = context.repository.top
    wanted = {f"{directory}/{CONFIG_NAME}": templates.read("config.toml")}
    for type_ in TYPES:
        wanted[f"{directory}/_{type_}.md"] = templates.read(f"memory/{type_}.md")
    planned = {
        path: text.encode()
        for path, text in wanted.items()
        if not os.path.lexists(os.path.join(top, path))
    }
    line = f"{directory}/** -text\n".encode()
    attributes = write.bytes_of(top, ATTRIBUTES_NAME) or b""
    if line.strip() not in map(bytes.strip, attributes.splitlines()):
        gap = b"" if not attributes or attributes.endswith(b"\n") else b"\n"
        planned[ATTRIBUTES_NAME] = attributes + gap + line
    if directory not in {DEFAULT_DIRECTORY, context.directory}:
        planned[POINTER_NAME] = f'directory = "{directory}"\n'.encode()
    return planned
