"""The tree that memories are written to: creating it in a project, and the global repository.

Creating a tree adds missing files and changes no existing one. The global repository is created in
a directory next to its place, with its first commit, and then renamed: readers see all of it or
nothing, and if two processes create it at once, one wins. It is not created inside another
repository, or if git has no author identity.
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
from memtool.store.git import MAX_PATH_ARGUMENTS, Git, GitError
from memtool.store.process import is_running
from memtool.store.repository import (
    GLOBAL_VARIABLE,
    Repository,
    discover,
    find_foreign_tool,
    is_global_created,
    open_global_repository,
    refuse_foreign_tree,
)
from memtool.value import Value, first_few, split_batches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memtool.memory.schema import Problem

ATTRIBUTES_NAME = ".gitattributes"
MAX_HINT_PATHS = 5
CUT_OFF = frozenset(("no-frontmatter", "bad-yaml", "missing-key", "not-utf8", "no-text"))
"""Codes of problems that a truncated file may have."""
BRANCH = "main"
"""The branch of a new global repository."""
_PREFIX = ".memtool-"
"""Begins the name of an unfinished repository; the id of the process that makes it follows."""


class InitResult(Value):
    """The memory directory, and the files that were created or changed for it.

    `plan` has a row for each thing that can be set up here: its `name`, `what` it is, and the
    `command` for it alone. `offers` are the commands of what is not set up, and `lines` say what
    is.
    """

    json_fields = "directory written commit dry_run offers plan lines"

    directory: str
    written: tuple[str, ...]
    commit: str | None
    dry_run: bool = False
    offers: tuple[str, ...] = ()
    plan: tuple[dict[str, str], ...] = ()
    lines: tuple[str, ...] = ()


def begin(context: Context, directory: str, *, commit: bool, dry_run: bool) -> InitResult:
    """Create the memory directory of a repository, or add missing files to it.

    An empty `directory` means the current or the default one. A commit also takes the files that
    an earlier call wrote and nobody committed.

    Raises:
        MemtoolError: the directory is not possible, or changes of the user would be committed.
    """
    if not (context.repository.is_created or dry_run):
        if directory:
            raise MemtoolError(
                f"the memories of the global repository are in {context.directory}",
                hint="memtool init --global",
            )
        make_global(context)
    repository = context.repository
    repository.refuse_bare("run memtool init in a clone")
    chosen = _choose_directory(context, directory) if directory else context.directory
    refuse_foreign_tree(repository.top, chosen)
    context.project.refuse_newer()
    planned = _plan_files(context, chosen)
    if commit and ATTRIBUTES_NAME in planned:
        refuse_dirty(repository, [ATTRIBUTES_NAME], "cannot commit")
    if not dry_run:
        written: list[str] = []
        with files.reporting_done(written):
            for path, data in planned.items():
                before = read_bytes(repository.top, path)
                files.replace(repository.top, path, data, expected=before)
                written.append(path)
    done = None
    if commit and not dry_run:
        paths = dict.fromkeys((*planned, *find_uncommitted_own(context)))
        done = commit_files(context, list(paths), "begin", {}) if paths else None
    return InitResult(chosen, tuple(planned), done, dry_run)


def _choose_directory(context: Context, directory: str) -> str:
    """Return the requested directory, normalised. Raises MemtoolError if it is not possible."""
    chosen = directory.strip().rstrip("/")
    parts = chosen.split("/")
    if not all(map(_is_name, parts)):
        raise MemtoolError(
            f"{directory!r} is not a path inside the repository of letters, digits and . _ -",
            hint="memtool init --directory docs/memory",
        )
    is_taken = chosen != context.directory and (
        context.directory != DEFAULT_DIRECTORY or _holds_ours(context.repository.top)
    )
    if is_taken:
        raise MemtoolError(
            f"the memories of this repository are in {context.directory}",
            hint=f"git mv {context.directory} {chosen}\n"
            f'write directory = "{chosen}" into {POINTER_NAME}',
        )
    return chosen


def _is_name(part: str) -> bool:
    """Return whether a part of a path needs no quotes in git's attributes and TOML."""
    harmless = part.replace(".", "").replace("_", "a").replace("-", "a")
    return harmless.isalnum() and part[0] != "-" and part.lower() != ".git"


def _holds_ours(top: str) -> bool:
    """Return whether the default directory has memories, or at least our settings."""
    try:
        is_empty = not os.listdir(os.path.join(top, DEFAULT_DIRECTORY))
    except OSError:
        return False
    return not is_empty and find_foreign_tool(top, DEFAULT_DIRECTORY) is None


def _plan_files(context: Context, directory: str) -> dict[str, bytes]:
    """Return the new bytes of files that are missing or lack our lines, by path."""
    top = context.repository.top
    settings = templates.read("config.toml")
    if config_file.FORMAT > 1 and not os.path.lexists(os.path.join(top, directory)):
        # A tree that exists already may have an older format.
        settings = f"format = {config_file.FORMAT}\n\n{settings}"
    wanted = {f"{directory}/{CONFIG_NAME}": settings}
    for type_ in TYPES:
        wanted[f"{directory}/_{type_}.md"] = templates.read(f"memory/{type_}.md")
    planned = {
        path: text.encode()
        for path, text in wanted.items()
        if not os.path.lexists(os.path.join(top, path))
    }
    attributes = read_bytes(top, ATTRIBUTES_NAME) or b""
    if with_attributes(attributes, directory) != attributes:
        planned[ATTRIBUTES_NAME] = with_attributes(attributes, directory)
    if directory not in {DEFAULT_DIRECTORY, context.directory}:
        planned[POINTER_NAME] = f'directory = "{directory}"\n'.encode()
    return planned


def find_uncommitted_own(context: Context) -> list[str]:
    """Return the files that `begin` writes, and that were never committed."""
    names = [CONFIG_NAME, *(f"_{type_}.md" for type_ in TYPES)]
    own = {f"{context.directory}/{name}" for name in names} | {ATTRIBUTES_NAME, POINTER_NAME}
    status = context.repository.git.status(context.directory, ATTRIBUTES_NAME, POINTER_NAME)
    return [path for letters, path in status if letters == "??" and path in own]


def with_attributes(data: bytes, directory: str) -> bytes:
    """Add our lines to git's attributes: no line end conversion, and the merge driver."""
    for line in (f"{directory}/** -text", f"{directory}/**/*.md merge=memtool"):
        if line.encode() not in map(bytes.strip, data.splitlines()):
            gap = b"" if not data or data.endswith(b"\n") else b"\n"
            data += gap + line.encode() + b"\n"
    return data


def require_global(context: Context, *, begins: bool) -> None:
    """Make sure that the global repository can be written to: it exists, and is on a branch.

    An absent one is created only if the verb `begins` something.

    Raises:
        MemtoolError: it cannot be created (then nothing is left of it), or it is on no branch.
    """
    if not context.repository.is_created:
        if begins:
            make_global(context)
        return
    git = context.repository.git
    if not git.run("symbolic-ref", "--quiet", "HEAD", allowed=(0, 1)):
        top = context.repository.top
        raise MemtoolError(
            f"cannot commit: the global repository {top} has no branch checked out",
            hint=f"git -C {top} switch {BRANCH}",
            code="detached",
        )
    if begins and not context.project.has_directory:
        begin(context, "", commit=True, dry_run=False)


def make_global(context: Context) -> None:
    """Create the global repository, and enter it.

    Raises:
        MemtoolError: its place is inside another repository or not writable, or git has no author
            identity.
    """
    place = context.repository.top
    parent = os.path.dirname(place)
    _refuse_within(context, place)
    hint = f"git init {place}\nor set {GLOBAL_VARIABLE} to another directory"
    with files.explaining_errors(f"the global repository {place} cannot be made", hint, "global"):
        os.makedirs(parent, mode=0o700, exist_ok=True)
        _sweep(parent)
        temp = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent)
        try:
            _fill(context, temp)
            try:
                os.rename(temp, place)
            except OSError:
                if not is_global_created(place):  # otherwise another process was faster
                    raise
        finally:
            shutil.rmtree(temp, ignore_errors=True)
    context.enter(open_global_repository(context.caller.env))
    context.notes.append(f"the global repository is {place}")


def _fill(context: Context, directory: str) -> None:
    git = Git(directory, context.caller.env)
    git.run("init", "--quiet", f"--initial-branch={BRANCH}")
    try:
        for name in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
            git.run("var", name)
    except GitError:
        raise MemtoolError(
            "nothing was written: global memories are committed, and git has no author name",
            hint="git config --global user.name NAME\ngit config --global user.email ADDRESS",
            code="no-identity",
        ) from None
    made = Context(discover(directory, context.caller.env), context.caller.env, directory)
    begin(made, "", commit=True, dry_run=False)


def _sweep(parent: str) -> None:
    """Remove unfinished repositories of processes that were killed."""
    for name in os.listdir(parent):
        number = name.removeprefix(_PREFIX).partition("-")[0]
        if name.startswith(_PREFIX) and number.isdecimal() and not is_running(int(number)):
            shutil.rmtree(os.path.join(parent, name), ignore_errors=True)


def _refuse_within(context: Context, place: str) -> None:
    """Raise MemtoolError if the place is part of another repository."""
    above = os.path.dirname(place)  # another process may just have created `place` itself
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    try:
        around = discover(above, context.caller.env)
    except MemtoolError as error:
        if error.code == "no-repository":
            return
        raise
    if not around.is_bare:
        plain = {"GIT_LITERAL_PATHSPECS": "0"}  # check-ignore rejects literal pathspecs
        if around.git.run("check-ignore", "--", place, allowed=(0, 1), env=plain):
            return
    raise MemtoolError(
        f"cannot use {place} for global memories: it is inside the repository "
        f"{around.top or around.git_dir}",
        hint=f"{GLOBAL_VARIABLE} must name a directory outside any repository",
        code="global",
    )


def is_dirty(repository: Repository, path: str) -> bool:
    """Return whether a file differs from HEAD or is not tracked."""
    return bool(repository.git.status(path))


def find_dirty(repository: Repository, paths: Sequence[str]) -> set[str]:
    """Return the files that differ from HEAD or are not tracked."""
    return {
        path
        for batch in split_batches(paths, MAX_PATH_ARGUMENTS)
        for _letters, path in repository.git.status(*batch)
    }


def refuse_dirty(repository: Repository, paths: Sequence[str], obstacle: str) -> None:
    """Raise MemtoolError if one of the files differs from HEAD, since a commit would include that.

    `obstacle` is how the message begins: what cannot be done.
    """
    dirty = sorted(find_dirty(repository, paths))
    if dirty:
        raise MemtoolError(
            f"{obstacle}: {first_few(dirty, 1)} has uncommitted changes",
            hint=f"git commit -- {' '.join(dirty[:MAX_HINT_PATHS])}\nor leave out --commit",
            code="dirty",
        )


def find_never_committed(context: Context, ids: Sequence[str]) -> list[str]:
    """Return the paths of memories, and of those they supersede, that are in no commit.

    They belong into the commit of the memory that supersedes them: else it would name memories that
    the commit does not contain.
    """
    todo, unseen = [*ids], dict[str, None]()
    tree = index.open(context) if todo else None
    while todo and tree is not None:
        record = tree.get(todo.pop())
        if record is not None and record.path not in unseen:
            letters = {row[0] for row in context.repository.git.status(record.path)}
            if letters & {"??", "A ", "AM"}:
                unseen[record.path] = None
                todo += record.memory.supersedes
    return [*unseen]


def read_bytes(top: str, path: str) -> bytes | None:
    """Return the bytes of a file of the worktree, None if it does not exist.

    Raises:
        MemtoolError: it exists and cannot be read.
    """
    with files.explaining_errors(f"{path} cannot be read", "move what is there out of the way"):
        try:
            return files.read_regular(os.path.join(top, path))
        except (FileNotFoundError, NotADirectoryError):
            return None


def restore_command(path: str) -> str:
    """Return the hint to restore a truncated file from HEAD."""
    return f"git checkout HEAD -- {shlex.quote(path)} brings back the whole file"


def with_way_back(context: Context, problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Replace the hint of a problem with the command to restore the file, if HEAD has it whole."""
    # A full disk may have truncated the file, or an editor that crashed may have emptied it.
    reported = tuple(problems)
    paths = {problem.path for problem in reported if problem.code in CUT_OFF}
    repository = context.repository
    head = repository.git.head() if paths and not repository.is_bare else ""
    stored = provenance.list_blobs(repository, head, *sorted(paths)) if head else {}
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
        problem.replace(hint=restore_command(problem.path))
        if problem.path in whole and problem.code in CUT_OFF
        else problem
        for problem in reported
    )
