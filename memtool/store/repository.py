"""The repository: its location, the commits of its refs, and the tool that owns its memories.

For an ordinary checkout or linked worktree this reads `.git` and the files of refs, without a child
process. Every other case (variables, bare repositories, unusual layouts, files of another user,
tags, reftables) is left to git. The user's global repository is an ordinary one in the user's data
directory. Until it exists, a stand-in takes its place, which is empty and cannot be written to.
"""

from __future__ import annotations

import os
import sys

from memtool.errors import MemtoolError, find_reason
from memtool.store import files
from memtool.store.files import POINTER_NAME
from memtool.store.git import LOCATION_VARIABLES, Git, GitError
from memtool.value import HEX, cached_property, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from memtool.store.git import RawChange

GLOBAL_VARIABLE = "MEMTOOL_GLOBAL"
STORAGE_VARIABLE = "MEMTOOL_STORAGE"
SWITCHES = ("MEMTOOL_PERSONAL", "MEMTOOL_MANAGER")
CHOICES: dict[str, tuple[str, ...]] = dict.fromkeys(SWITCHES, ("on", "off"))
CHOICES["MEMTOOL_LOG"] = ("json", "all", "error", "off")
"""Variables with a fixed set of values."""
NO_GIT_DIR = os.devnull
"""The git directory of a repository that does not exist yet: no file can be created below it."""
_LOCATING_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_CEILING_DIRECTORIES")


class VariableError(MemtoolError):
    """The environment variable `name` has an invalid value."""

    def __init__(self, name: str, fault: str, example: str) -> None:
        hint = f"{name}={example}, or unset it"
        super().__init__(f"{name} {fault}", hint=hint, code="environment")
        self.name = name


def check_choices(env: Mapping[str, str], names: Iterable[str] = CHOICES) -> None:
    """Check the variables that have a fixed set of values; an empty one counts as not set.

    Raises:
        VariableError: a variable has another value.
    """
    for name in names:
        value, choices = env.get(name, ""), CHOICES[name]
        if value and value not in choices:
            fault = f"is {value!r}, which is not one of {', '.join(choices)}"
            raise VariableError(name, fault, choices[-1])


class Repository:
    """One repository as seen from one worktree. Paths are absolute; `top` is empty if bare."""

    def __init__(
        self,
        top: str,
        git_dir: str,
        common_dir: str,
        make_git: Callable[[], Git],
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.top = top
        self.git_dir = git_dir
        self.common_dir = common_dir
        self._make_git = make_git
        storage = _find_storage(top, common_dir, env) if env else ""
        self.cache_dir = storage or os.path.join(common_dir, "memtool")
        """Directory of derived and private files; it may be missing or not writable."""
        self.worktree_cache_dir = (
            os.path.join(storage, digest(os.fsencode(git_dir))) if storage else git_dir
        )
        """Parent of the `memtool` directory with the derived files of this worktree alone."""

    @cached_property
    def git(self) -> Git:
        """Git in this repository."""
        return self._make_git()

    @property
    def is_bare(self) -> bool:
        return not self.top

    @property
    def is_created(self) -> bool:
        return self.git_dir != NO_GIT_DIR

    @property
    def is_shallow(self) -> bool:
        """Whether this is a shallow clone: authors and dates may be wrong."""
        return os.path.exists(os.path.join(self.common_dir, "shallow"))

    @cached_property
    def is_partial(self) -> bool:
        """Whether this is a partial clone: objects of history may be missing.

        git would fetch them when needed. memtool never fetches, so their content is unknown.
        """
        try:
            with open(os.path.join(self.common_dir, "config"), "rb") as file:
                text = b"".join(file.read(1 << 20).lower().split())
        except OSError:
            return False
        return b"promisor=" in text or b"partialclone" in text

    def shallow_commits(self) -> frozenset[str]:
        """Return the boundary commits of a shallow clone, which seem to add all their files."""
        try:
            with open(os.path.join(self.common_dir, "shallow"), encoding="ascii") as file:
                return frozenset(file.read().split())
        except (FileNotFoundError, NotADirectoryError):
            return frozenset()

    @property
    def object_format(self) -> str:
        """The hash that names objects: `sha1` or `sha256`."""
        try:
            with open(os.path.join(self.common_dir, "config"), "rb") as file:
                text = b"".join(file.read(1 << 20).lower().split())
        except OSError:
            return "sha1"
        return "sha256" if b"objectformat=sha256" in text else "sha1"

    def refuse_bare(self, hint: str) -> None:
        """Raise MemtoolError if there is no worktree; `hint` names what works instead."""
        if self.is_bare:
            raise MemtoolError("a bare repository has no worktree", hint=hint, code="bare")


def _find_storage(top: str, common_dir: str, env: Mapping[str, str]) -> str:
    """Return the repository's directory below MEMTOOL_STORAGE; empty if that is not set.

    Raises:
        VariableError: the path is relative, is inside the worktree, or cannot be created.
    """
    value = env.get(STORAGE_VARIABLE)
    if not value:
        return ""
    example = "/path/to/a/directory outside of the repository"
    if not os.path.isabs(value) or "\0" in value:
        raise VariableError(STORAGE_VARIABLE, f"must be an absolute path, not {value!r}", example)
    place, real_common_dir = os.path.realpath(value), os.path.realpath(common_dir)
    root = os.path.realpath(top) if top else ""
    is_inside = place == root or place.startswith(root + os.sep)
    if root and is_inside and not place.startswith(real_common_dir + os.sep):
        fault = f"lies in the worktree {top}, where private files do not belong"
        raise VariableError(STORAGE_VARIABLE, fault, example)
    try:
        os.makedirs(place, exist_ok=True)
    except OSError as error:
        fault = f"is {value!r}, where no directory can be made: {find_reason(error)}"
        raise VariableError(STORAGE_VARIABLE, fault, example) from None
    name = os.path.basename(
        os.path.dirname(real_common_dir) if real_common_dir.endswith("/.git") else real_common_dir
    )
    return os.path.join(place, f"{name}-{digest(os.fsencode(real_common_dir))}")


def discover(directory: str, env: Mapping[str, str]) -> Repository:
    """Find the repository that contains a directory.

    Raises:
        MemtoolError: there is none, or git refuses it.
    """
    try:
        start = os.path.abspath(directory)
    except FileNotFoundError:  # the working directory was removed
        raise MemtoolError("the current directory is gone", code="no-directory") from None
    if not os.path.isdir(start):
        raise MemtoolError(f"no directory {directory}", code="no-directory")
    if not any(name in env for name in _LOCATING_VARIABLES):
        repository = _walk_up(start, env)
        if repository is not None:
            return repository

    return ask_git(start, env)


def find_global_directory(env: Mapping[str, str]) -> str:
    """Return the path of the user's global repository, made or not; empty if HOME is not set.

    Raises:
        MemtoolError: the environment names a relative path.
    """
    value = env.get(GLOBAL_VARIABLE)
    if value:
        if not os.path.isabs(value) or "\0" in value:
            raise MemtoolError(
                f"{GLOBAL_VARIABLE} must be an absolute path, not {value!r}",
                hint=f"{GLOBAL_VARIABLE}=/path/to/a/directory\nunset {GLOBAL_VARIABLE}",
                code="global",
            )
        return os.path.normpath(value)
    data, home = env.get("XDG_DATA_HOME", ""), env.get("HOME", "")
    if os.path.isabs(data):  # the XDG standard says to ignore relative paths
        return os.path.join(data, "memtool")
    shares = "Library/Application Support" if sys.platform == "darwin" else ".local/share"
    return os.path.join(home, shares, "memtool") if os.path.isabs(home) else ""


def find_user_cache(env: Mapping[str, str]) -> str:
    """Return memtool's directory in the user's cache; empty if HOME is not set."""
    cache, home = env.get("XDG_CACHE_HOME", ""), env.get("HOME", "")
    if os.path.isabs(cache):
        return os.path.join(cache, "memtool")
    return os.path.join(home, ".cache", "memtool") if os.path.isabs(home) else ""


def find_worktree_above(directory: str) -> str:
    """Return the nearest directory at or above this one that has a `.git`; empty if none has."""
    place = os.path.abspath(directory)
    while not os.path.lexists(os.path.join(place, ".git")):
        parent = os.path.dirname(place)
        if parent == place:
            return ""
        place = parent
    return place


def is_global_created(directory: str) -> bool:
    """Check with one stat call whether the global repository exists.

    Raises:
        MemtoolError: it cannot be read, or is not a directory.
    """
    what = f"the global repository {directory} cannot be read"
    with files.explaining_errors(what, f"{GLOBAL_VARIABLE} names another directory", "global"):
        try:
            os.stat(os.path.join(directory, ".git"))
        except FileNotFoundError:
            return False
    return True


def _walk_up(start: str, env: Mapping[str, str]) -> Repository | None:
    """Find a plain checkout at or above a directory; None means that git has to answer."""
    top = os.path.realpath(start)
    device = os.stat(top).st_dev
    while True:
        dot_git = os.path.join(top, ".git")
        try:
            status = os.stat(dot_git)
        except OSError:
            if os.path.exists(os.path.join(top, "HEAD")):
                return None  # perhaps inside a git directory, or a bare repository
            parent = os.path.dirname(top)
            if parent == top or os.stat(parent).st_dev != device:
                return None
            top = parent
            continue
        return _open_plain(top, dot_git, env) if _is_mine(status) else None


def _open_plain(top: str, dot_git: str, env: Mapping[str, str]) -> Repository | None:
    """Open the ordinary checkout or linked worktree at a directory; None leaves it to git."""
    git_dir = dot_git if os.path.isdir(dot_git) else _read_git_file(dot_git, top)
    if git_dir is None or not os.path.exists(os.path.join(git_dir, "HEAD")):
        return None
    if not (_is_mine(os.stat(top)) and _is_mine(os.stat(git_dir))):
        return None
    common_dir = read_common_dir(git_dir)
    if common_dir is None or not os.path.isdir(os.path.join(common_dir, "objects")):
        return None
    worktree_config = os.path.join(git_dir, "config.worktree")
    if _is_unusual(os.path.join(common_dir, "config")) or _is_unusual(
        worktree_config, required=False
    ):
        return None
    return Repository(top, git_dir, common_dir, lambda: Git(top, env), env)


def _is_mine(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid()  # otherwise git has to check safe.directory


def _read_git_file(dot_git: str, top: str) -> str | None:
    if not os.path.isfile(dot_git):
        return None
    try:
        with open(dot_git, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(8192)
    except OSError:
        return None
    if not text.startswith("gitdir: "):
        return None
    return os.path.normpath(os.path.join(top, text[8:].rstrip("\r\n")))


def read_common_dir(git_dir: str) -> str | None:
    """Return the directory that the worktrees of a git directory share; None if unreadable."""
    try:
        with open(os.path.join(git_dir, "commondir"), encoding="utf-8") as file:
            return os.path.normpath(os.path.join(git_dir, file.read(4096).rstrip("\r\n")))
    except FileNotFoundError:
        return git_dir
    except (OSError, ValueError):
        return None


def _is_unusual(config: str, *, required: bool = True) -> bool:
    """Return whether git settings may move the worktree or make the repository bare."""
    try:
        text = b"".join(files.read_regular(config, 1 << 20).lower().split())  # a pipe would wait
    except FileNotFoundError:
        return required
    except OSError:
        return True
    # `bare` alone, `bare=1` and `bare=yes` all mean true.
    signs = (b"worktree=", b"bare", b"[include")
    return any(sign in text.replace(b"bare=false", b"") for sign in signs)


def ask_git(start: str, env: Mapping[str, str]) -> Repository:
    """Ask git which repository contains a directory.

    Raises:
        MemtoolError: there is none, or git refuses it.
    """
    git = Git(start, env)
    try:
        answer = git.run(
            "rev-parse",
            "--path-format=absolute",
            "--is-bare-repository",
            "--git-dir",
            "--git-common-dir",
        )
        bare, git_dir, common_dir = answer.decode(errors="surrogateescape").splitlines()
        top = "" if bare == "true" else git.line("rev-parse", "--show-toplevel")
    except GitError as error:
        if "not a git repository" in error.stderr:
            raise MemtoolError(
                f"{start} is not in a git repository",
                hint="git init\nin another directory: memtool -C DIR status",
                code="no-repository",
            ) from None
        if "work tree" in error.stderr:  # called from inside the git directory
            top = ""
        elif "bare repository" in error.stderr:  # safe.bareRepository=explicit
            return _open_bare(start, env)
        else:
            raise
    if not top and "GIT_DIR" not in env:
        home, place = os.path.realpath(git_dir), os.path.realpath(start)
        return _open_bare(start if place.startswith(f"{home}{os.sep}") else git_dir, env)
    if "GIT_DIR" in env:  # may be relative to the caller's directory, but git will run at the top
        env = dict(env) | {"GIT_DIR": git_dir} | ({"GIT_WORK_TREE": top} if top else {})
    return Repository(top, git_dir, common_dir, lambda: Git(top or start, env), env)


def _open_bare(start: str, env: Mapping[str, str]) -> Repository:
    """Open a bare repository by its explicit path. The directory itself has to be the repository.

    git demands this because a clone may contain a bare repository with malicious settings.
    """
    if not all(os.path.exists(os.path.join(start, name)) for name in ("HEAD", "objects", "refs")):
        raise MemtoolError(
            f"{start} is inside a git directory",
            hint="in the worktree: memtool -C DIR status",
            code="no-repository",
        )
    git = Git(start, dict(env) | {"GIT_DIR": start})
    git.run("rev-parse", "--git-dir")  # if git refuses, the user sees its message
    return Repository("", start, read_common_dir(start) or start, lambda: git, env)


ABSENT = ""
"""Answer if a ref certainly does not exist, or points to one that does not."""
BRANCHES = ("refs/heads/", "refs/remotes/")
"""Prefixes of refs that always name commits; a tag may have to be peeled."""
_REFTABLE = b"ref: refs/heads/.invalid"
_MAX_HOPS = 5
_EXPRESSION = frozenset(" ~^:?*[\\@{\0\n")


def read_head_commit(repository: Repository) -> str | None:
    """Return the commit of HEAD, read from files; None if only git can tell."""
    return _follow_ref(repository, _read_ref_file(repository.git_dir, "HEAD"), 0) or None


def read_head_ref(repository: Repository) -> str:
    """Return the full name of the current branch, or the commit of a detached HEAD."""
    line = _read_ref_file(repository.git_dir, "HEAD")
    if line is not None and line != _REFTABLE:
        return os.fsdecode(line)
    if not repository.is_created:
        return ""
    git = repository.git
    return git.line("symbolic-ref", "--quiet", "HEAD", allowed=(0, 1)) or git.head() or ""


def read_branch_commit(repository: Repository, name: str) -> str | None:
    """Return the commit of a branch by its full name, `ABSENT`, or None if only git can tell."""
    if not name.startswith(BRANCHES) or not _EXPRESSION.isdisjoint(name) or ".." in name:
        return None
    return _read_ref(repository, name, 0)


def read_symbolic_target(repository: Repository, name: str) -> str:
    """Return the full name of the branch that a symbolic ref points to; empty if it has none."""
    line = _read_ref_file(repository.common_dir, name) or b""
    if not line and _read_ref_file(repository.git_dir, "HEAD") == _REFTABLE:
        return repository.git.line("symbolic-ref", "--quiet", name, allowed=(0, 1, 128))
    target = os.fsdecode(line.removeprefix(b"ref: ").strip())
    return target if line.startswith(b"ref: ") and target.startswith(BRANCHES) else ""


def read_named_commit(repository: Repository, name: str) -> str | None:
    """Return the commit of a short name such as `origin/main`; None if only git can tell.

    The order is git's: first the git directory itself, then any ref, tags, and last branches.
    """
    if not name or not _EXPRESSION.isdisjoint(name) or ".." in name or HEX.issuperset(name):
        return None
    for prefix in ("", "refs/", "refs/tags/"):
        if _read_ref(repository, prefix + name, 0) != ABSENT:
            return None
    for kind in BRANCHES:
        commit = read_branch_commit(repository, kind + name)
        if commit != ABSENT:
            return commit
    return None


def _read_ref(repository: Repository, name: str, hops: int) -> str | None:
    line = _read_ref_file(repository.common_dir, name)
    return (
        _read_packed_ref(repository, name) if line is None else _follow_ref(repository, line, hops)
    )


def _follow_ref(repository: Repository, line: bytes | None, hops: int) -> str | None:
    if line is None or line == _REFTABLE or hops > _MAX_HOPS:
        return None
    text = line.decode(errors="replace")
    if not text.startswith("ref: "):
        return text if len(text) in (40, 64) and HEX.issuperset(text) else None
    name = text[5:].strip()
    if not name.startswith(BRANCHES) or ".." in name:
        return None
    return _read_ref(repository, name, hops + 1)


def _read_ref_file(folder: str, name: str) -> bytes | None:
    """Return the content of a ref's own file; None if there is none."""
    try:
        handle = os.open(os.path.join(folder, name), os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(handle, 4096).rstrip()
    except OSError:  # a directory of refs
        return None
    finally:
        os.close(handle)


def _read_packed_ref(repository: Repository, name: str) -> str | None:
    """Return the commit of a ref in `packed-refs`, a line `commit name` each."""
    if _read_ref_file(repository.git_dir, "HEAD") in (None, _REFTABLE):
        return None  # a reftable, so refs are not files
    try:
        with open(os.path.join(repository.common_dir, "packed-refs"), "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return ABSENT
    except OSError:
        return None
    at = data.find(b" " + os.fsencode(name) + b"\n")
    if at < 0:
        return ABSENT
    commit = data[data.rfind(b"\n", 0, at) + 1 : at].decode(errors="replace")
    return commit if HEX.issuperset(commit) else None


NO_GLOBAL = "there are no global memories yet"
FIRST_GLOBAL = 'memtool remember --global "TEXT" writes the first'


def open_global_repository(env: Mapping[str, str]) -> Repository:
    """Open the global repository, or a stand-in if it does not exist yet.

    Raises:
        MemtoolError: HOME is not set, or the directory holds something else.
    """
    place = find_global_directory(env)
    if not place:
        raise MemtoolError(
            "cannot find the global memories: HOME is not set",
            hint=f"set HOME, or {GLOBAL_VARIABLE}=/path/to/a/directory",
            code="global",
        )
    if not is_global_created(place):
        if not _has_files(place):
            nowhere = without_location(env) | {"GIT_DIR": NO_GIT_DIR}
            git = Git(os.sep, nowhere, absent=no_global_memories_error)
            return Repository(place, NO_GIT_DIR, NO_GIT_DIR, lambda: git)
        if not is_global_created(place):  # another process may have created it meanwhile
            raise MemtoolError(
                f"cannot use {place} for global memories: not empty, and not a git repository",
                hint=f"git init {place}\nor set {GLOBAL_VARIABLE} to an empty directory",
                code="global",
            )
    repository = discover(place, without_location(env))
    if repository.top != os.path.realpath(place):
        raise MemtoolError(
            f"cannot use {place} for global memories: it is not the top of a worktree",
            hint=f"git init {place}\nor set {GLOBAL_VARIABLE} to another directory",
            code="global",
        )
    return repository


def _has_files(place: str) -> bool:
    """Return whether a directory has any content, which memtool must not put into git."""
    try:
        return bool(os.listdir(place))
    except FileNotFoundError:
        return False


def no_global_memories_error() -> MemtoolError:
    """Return the error for a question that a missing global repository cannot answer."""
    return MemtoolError(NO_GLOBAL, hint=FIRST_GLOBAL, code="no-memory")


def without_location(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables that point git at a hook's repository."""
    return {key: value for key, value in env.items() if key not in LOCATION_VARIABLES}


FOREIGN_MARKS: tuple[tuple[str, str], ...] = (
    ("memory.json", "the MCP memory server"),
    ("memory.jsonl", "the MCP memory server"),
    ("MEMORY.md", "a MEMORY.md tool"),
    ("mem.yaml", "MEM"),
    ("brain.md", "brain.md"),
    ("wiki", "memwiki"),
    ("projectbrief.md", "a memory bank"),
    ("activeContext.md", "a memory bank"),
    ("basic-memory.db", "basic-memory"),
    ("beads.db", "beads"),
    ("issues.jsonl", "beads"),
)
"""Files that identify the trees of other tools, with the name of the tool."""


def find_foreign_tool(top: str, directory: str) -> str | None:
    """Return the name of the other tool that owns a directory; None if it may be memtool's."""
    path = os.path.join(top, directory)
    try:
        names = {n for n in os.listdir(path) if not n.startswith((".", "_", "README"))}
    except OSError:
        return None
    if "config.toml" in names or not names:
        return None
    for mark, tool in FOREIGN_MARKS:
        if mark in names:
            return tool
    ours = {"decision", "semantic", "episodic", "state", "aliases.toml", "queries.toml"}
    if names & ours or any(_is_memory(os.path.join(path, name)) for name in sorted(names)[:20]):
        return None
    return "another tool"


def _is_memory(path: str) -> bool:
    """Return whether a file begins like a memory: a tree of memtool may have no settings file."""
    head = (files.read_or_none(path, 4096) if path.endswith(".md") else None) or b""
    return head.startswith(b"---") and b"\nid:" in head and b"\ntimestamp:" in head


def refuse_foreign_tree(top: str, directory: str) -> None:
    """Raise MemtoolError if a directory belongs to another tool."""
    tool = find_foreign_tool(top, directory)
    if tool is not None:
        raise MemtoolError(
            f"cannot use {directory}: it belongs to {tool}",
            hint="memtool init --directory NAME",
            code="foreign-tree",
        )


EMPTY_TREE = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""Ids of the empty tree by object format, to compare a first commit with. git always knows them."""
MERGE_VARIABLE_PREFIX = "GITHEAD_"
"""Prefix of the variables in which `git merge` passes merged commits to its hooks.

They exist before MERGE_HEAD does.
"""


def list_staged_changes(
    repository: Repository, directory: str, env: Mapping[str, str]
) -> tuple[list[list[RawChange]], str]:
    """Compare git's index with HEAD and with each commit that is being merged.

    Each list has one row per path, sorted: paths below the memory directory, and the file that
    names it. Also returns `HEAD`, or an empty text before the first commit. A commit without
    memories costs only this call.
    """
    paths = (directory, POINTER_NAME)
    index = ("diff-index", "--cached", "--ita-invisible-in-index", "--no-renames")
    git, head = repository.git, "HEAD"
    try:
        rows = git.diff_raw(*index, head, "--", *paths)
    except GitError:
        if git.head():
            raise
        head = ""
        rows = git.diff_raw(*index, EMPTY_TREE[repository.object_format], "--", *paths)
    merge_changes = (
        git.diff_raw(*index, parent, "--", *paths) for parent in read_merge_heads(repository, env)
    )
    return [keep_one_per_path(rows), *map(keep_one_per_path, merge_changes)], head


def keep_one_per_path(rows: Iterable[RawChange]) -> list[RawChange]:
    """Return one row per path, sorted by path: git lists two for an unfinished merge."""
    row_by_path: dict[str, RawChange] = {}
    for row in rows:
        if row.path not in row_by_path or row.status == "U":
            row_by_path[row.path] = row
    return [row_by_path[path] for path in sorted(row_by_path)]


def read_merge_heads(repository: Repository, env: Mapping[str, str]) -> list[str]:
    """Return the commits that are being merged into HEAD; none outside of a merge."""
    try:
        with open(os.path.join(repository.git_dir, "MERGE_HEAD"), encoding="ascii") as file:
            return file.read().split()
    except (OSError, UnicodeDecodeError):
        return sorted(
            name[len(MERGE_VARIABLE_PREFIX) :]
            for name in env
            if name.startswith(MERGE_VARIABLE_PREFIX)
        )


ENVIRONMENT: dict[str, str] = {
    "MEMTOOL_OFF": "any text; inject and the hooks of agents answer nothing, nothing is captured",
    "MEMTOOL_GLOBAL": "the directory of the global repository, an absolute path",
    "XDG_DATA_HOME, HOME": "without MEMTOOL_GLOBAL it is memtool in the user's data directory",
    "MEMTOOL_PERSONAL": "off; nothing of the user's own is used: no global memories, no settings",
    "MEMTOOL_MANAGER": "on or off, in place of the user's own manager.enabled",
    "MEMTOOL_STORAGE": "the directory for what is derived and private, an absolute path outside of "
    "the repository, in place of memtool in its git directory; each repository has a part of it",
    "MEMTOOL_BUDGET": "most tokens of an injected block, in place of inject.budget_tokens",
    "MEMTOOL_LOG": "what the log of the hooks holds: off, error (what failed; the default) or all; "
    "json: as error, and one JSON line on stderr for each operation: time, level, component, "
    "operation, session, milliseconds, error",
    "MEMTOOL_NOW": "the moment or day that counts as now, for tests and scripts",
    "MEMTOOL_SEED": "any text; the random part of new ids is then the same in every run",
    "MEMTOOL_NO_LEDGER": "any text; nothing is noted for statistics: ledger.enabled = false",
    "MEMTOOL_NO_CACHE": "any text; nothing derived is read or kept: the same answers, slower",
    "MEMTOOL_DEBUG": "any text; a bug prints its traceback, too, and a "
    "hook of an agent says what went wrong",
    "MEMTOOL_PORT": "the port of memtool serve, in place of 8765",
    "MEMTOOL_HOST": "localhost, 127.0.0.1 or ::1: where memtool serve listens; nothing beyond",
    "MEMTOOL_API_URL": "the address on this machine under which memtool serve is reached as well, "
    "such as the near end of a tunnel: http://localhost:9000",
    "MEMTOOL_FLEET_URL": "the server that search --fleet asks, in place of the user's fleet.url",
    "MEMTOOL_FLEET_USER, MEMTOOL_FLEET_PASSWORD": "who asks that server, or publishes to it",
    "MEMTOOL_FLEET_KEY": "in place of both: a JSON web token, sent as Authorization: Bearer, "
    "or an API key of OpenSearch 3.7 or later, sent as ApiKey",
    "MEMTOOL_PURGES": "ids that a purge names to the hook of its own commit; set by memtool alone",
    "NO_COLOR": "any text; no colours, which only a terminal gets",
    "TERM": "where it is dumb, or not set, there are no colours either",
    "COLUMNS": "the width of text on a terminal in cells, in place of its own",
    "MEMTOOL_PAGER": "the pager of text that is longer than the terminal, in place of git's; "
    "cat or an empty text: none, as --no-pager",
    "PAGER": "the pager if neither MEMTOOL_PAGER nor git has another, else less",
    "VISUAL, EDITOR": "the editor that --edit opens, the first of them that is set, else vi",
    "USER": "who wrote a memory, where git knows no user.name",
    "PATH": "where git is, and which agent hosts there are",
    "XDG_CACHE_HOME": "memtool in it, by default in ~/.cache, keeps what a fleet is asked by and "
    "the sentence model of search by meaning",
    "CLAUDE_CONFIG_DIR, CODEX_HOME, GEMINI_CLI_HOME, XDG_CONFIG_HOME": "where agent hosts keep "
    "what holds for all projects",
    "COPILOT_HOME, QWEN_HOME": "where Copilot CLI and Qwen Code keep it",
    "QWEN_CODE_MEMORY_BASE_DIR, QWEN_RUNTIME_DIR": "where Qwen Code keeps its memories",
}
"""Purpose of each environment variable; a key may name several, separated by commas."""
