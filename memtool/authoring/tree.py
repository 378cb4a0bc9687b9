"""The tree that memories are written to: beginning it in a project, and the user's global one.

Beginning adds what is missing and changes nothing that is there. The global repository is made in a
directory next to its place, with its first commit, and then renamed: a reader sees all of it or
nothing, and of two processes that make it at once one is the first. It is not made inside another
repository, nor where git does not know who commits.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from contextlib import suppress

from memtool import templates
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import document
from memtool.memory.fields import TYPES
from memtool.store import config as config_file
from memtool.store import files, provenance
from memtool.store.commits import commit_files
from memtool.store.config import CONFIG_NAME, DEFAULT_DIRECTORY
from memtool.store.context import Context
from memtool.store.files import POINTER_NAME
from memtool.store.git import Git, GitError
from memtool.store.process import is_running
from memtool.store.repository import (
    GLOBAL_VARIABLE,
    Repository,
    discover,
    global_repository,
    is_global_made,
    owner,
    refuse,
)
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memtool.memory.schema import Problem

ATTRIBUTES_NAME = ".gitattributes"
CUT_OFF = frozenset(("no-frontmatter", "bad-yaml", "missing-key", "not-utf8", "no-text"))
"""What is wrong with a file that was cut off somewhere."""
BRANCH = "main"
"""The branch of a global repository that is made here."""
_PREFIX = ".memtool-"
"""Begins the name of what is being made, before the number of the process that makes it."""


class Initialized(Value):
    """Where the memories go, and which files were made or changed for it.

    `offers` are commands that would put memtool into the hooks and the agent hosts that are here.
    """

    directory: str
    written: tuple[str, ...]
    commit: str | None
    dry_run: bool = False
    offers: tuple[str, ...] = ()


def begin(context: Context, directory: str, *, commit: bool, dry_run: bool) -> Initialized:
    """Make the memory directory of a repository, or add what it lacks; `directory` may be empty.

    Raises:
        MemtoolError: it cannot be there, or the worktree has changes that would be committed.
    """
    if not (context.repository.is_made or dry_run):
        if directory:
            raise MemtoolError(
                f"the memories of the global repository are in {context.directory}",
                hint="memtool init --global",
            )
        make_global(context)
    repository = context.repository
    repository.refuse_bare("run memtool init in a clone")
    chosen = _chosen(context, directory) if directory else context.directory
    refuse(repository.top, chosen)
    context.project.refuse_newer()
    planned = _planned(context, chosen)
    if commit and ATTRIBUTES_NAME in planned and is_dirty(repository, ATTRIBUTES_NAME):
        raise MemtoolError(
            f"{ATTRIBUTES_NAME} has changes of yours that are not committed",
            hint=f"git commit {ATTRIBUTES_NAME}, or leave out --commit",
        )
    if not dry_run:
        written: list[str] = []
        with files.naming(written):
            for path, data in planned.items():
                before = bytes_of(repository.top, path)
                files.replace(repository.top, path, data, expected=before)
                written.append(path)
    done = None
    if commit and planned and not dry_run:
        done = commit_files(context, list(planned), "memory: begin", {})
    return Initialized(chosen, tuple(planned), done, dry_run)


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
    settings = templates.read("config.toml")
    if config_file.FORMAT > 1 and not os.path.lexists(os.path.join(top, directory)):
        # A tree that is there already may be an older one.
        settings = f"format = {config_file.FORMAT}\n\n{settings}"
    wanted = {f"{directory}/{CONFIG_NAME}": settings}
    for type_ in TYPES:
        wanted[f"{directory}/_{type_}.md"] = templates.read(f"memory/{type_}.md")
    planned = {
        path: text.encode()
        for path, text in wanted.items()
        if not os.path.lexists(os.path.join(top, path))
    }
    attributes = bytes_of(top, ATTRIBUTES_NAME) or b""
    if with_attributes(attributes, directory) != attributes:
        planned[ATTRIBUTES_NAME] = with_attributes(attributes, directory)
    if directory not in {DEFAULT_DIRECTORY, context.directory}:
        planned[POINTER_NAME] = f'directory = "{directory}"\n'.encode()
    return planned


def with_attributes(data: bytes, directory: str) -> bytes:
    """Return git's attributes with our lines: no line end is converted, and who merges memories."""
    for line in (f"{directory}/** -text", f"{directory}/**/*.md merge=memtool"):
        if line.encode() not in map(bytes.strip, data.splitlines()):
            gap = b"" if not data or data.endswith(b"\n") else b"\n"
            data += gap + line.encode() + b"\n"
    return data


def ready_global(context: Context, *, begins: bool) -> None:
    """Make sure that the global repository can be written to: it is there, and on a branch.

    One that is absent stays so unless the verb `begins` something.

    Raises:
        MemtoolError: it cannot be made, and nothing is left of it; or it has no branch.
    """
    if not context.repository.is_made:
        if begins:
            make_global(context)
        return
    git = context.repository.git
    if not git.run("symbolic-ref", "--quiet", "HEAD", allowed=(0, 1)):
        top = context.repository.top
        raise MemtoolError(
            f"the global repository {top} has no branch checked out, so a commit would be lost",
            hint=f"git -C {top} switch {BRANCH}",
            code="detached",
        )
    if begins and not context.project.is_begun:
        begin(context, "", commit=True, dry_run=False)


def make_global(context: Context) -> None:
    """Make the global repository, and go on in it.

    Raises:
        MemtoolError: its place is within another repository, not writable, or git does not know
            who commits.
    """
    place = context.repository.top
    parent = os.path.dirname(place)
    _refuse_within(context, place)
    hint = f"git init {place}, or name another directory with {GLOBAL_VARIABLE}"
    with files.refusing(f"the global repository {place} cannot be made", hint, "global"):
        os.makedirs(parent, mode=0o700, exist_ok=True)
        _sweep(parent)
        temp = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent)
        try:
            _fill(context, temp)
            try:
                os.rename(temp, place)
            except OSError:
                if not is_global_made(place):  # otherwise another process was faster
                    raise
        finally:
            shutil.rmtree(temp, ignore_errors=True)
    context.enter(global_repository(context.caller.env))
    context.notes.append(f"the global repository is {place}")


def _fill(context: Context, directory: str) -> None:
    git = Git(directory, context.caller.env)
    git.run("init", "--quiet", f"--initial-branch={BRANCH}")
    try:
        for name in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
            git.run("var", name)
    except GitError:
        raise MemtoolError(
            "git does not know who you are, and global memories are committed; nothing was written",
            hint="git config --global user.name NAME; git config --global user.email ADDRESS",
            code="no-identity",
        ) from None
    made = Context(discover(directory, context.caller.env), context.caller.env, directory)
    begin(made, "", commit=True, dry_run=False)


def _sweep(parent: str) -> None:
    """Remove what a process left behind that was killed while it made the repository."""
    for name in os.listdir(parent):
        number = name.removeprefix(_PREFIX).partition("-")[0]
        if name.startswith(_PREFIX) and number.isdecimal() and not is_running(int(number)):
            shutil.rmtree(os.path.join(parent, name), ignore_errors=True)


def _refuse_within(context: Context, place: str) -> None:
    """Raise MemtoolError where another repository would take this one for a part of itself."""
    above = os.path.dirname(place)  # another process may just have made what is in its place
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    try:
        around = discover(above, context.caller.env)
    except MemtoolError as error:
        if error.code == "no-repository":
            return
        raise
    if not around.is_bare:
        plain = {"GIT_LITERAL_PATHSPECS": "0"}  # paths are literal there, and git says no to this
        if around.git.run("check-ignore", "--", place, allowed=(0, 1), env=plain):
            return
    raise MemtoolError(
        f"{place} lies inside the repository {around.top or around.git_dir}",
        hint=f"{GLOBAL_VARIABLE} names a directory outside of every repository",
        code="global",
    )


def is_dirty(repository: Repository, path: str) -> bool:
    """Tell whether a file differs from what HEAD holds, or is not tracked."""
    return bool(repository.git.status(path))


def never_committed(context: Context, ids: Sequence[str]) -> list[str]:
    """Return the paths of memories, and of what they supersede, that no commit holds.

    They go into the commit of what supersedes them, which else would name what is not there.
    """
    todo, found = [*ids], dict[str, None]()
    tree = index.open(context) if todo else None
    while todo and tree is not None:
        record = tree.get(todo.pop())
        if record is not None and record.path not in found:
            letters = {row[0] for row in context.repository.git.status(record.path)}
            if letters & {"??", "A ", "AM"}:
                found[record.path] = None
                todo += record.memory.supersedes
    return [*found]


def bytes_of(top: str, path: str) -> bytes | None:
    """Return the bytes of a file of the worktree, None where there is none.

    Raises:
        MemtoolError: something is there that cannot be read.
    """
    with files.refusing(f"{path} cannot be read", "move what is there out of the way"):
        try:
            return files.read_regular(os.path.join(top, path))
        except (FileNotFoundError, NotADirectoryError):
            return None


def way_back(path: str) -> str:
    """Return the hint by which a file that was cut off becomes what HEAD has."""
    return f"git checkout HEAD -- {shlex.quote(path)} brings back the whole file"


def with_way_back(context: Context, problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return problems whose hint says so where HEAD has a whole memory in place of what is here.

    A file may have been cut off by a full disk, or emptied by an editor that died.
    """
    found = tuple(problems)
    paths = {one.path for one in found if one.code in CUT_OFF}
    repository = context.repository
    head = repository.git.head() if paths and not repository.is_bare else ""
    stored = provenance.blobs(repository, head, *sorted(paths)) if head else {}
    whole: set[str] = set()
    for path, data in (
        zip(stored, repository.git.blobs([*stored.values()], document.MAX_BYTES), strict=True)
        if stored
        else ()
    ):
        with suppress(document.Unreadable):
            document.read(data, path, context.settings.categories)
            whole.add(path)
    return tuple(
        one.replace(hint=way_back(one.path)) if one.path in whole and one.code in CUT_OFF else one
        for one in found
    )
