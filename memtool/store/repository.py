"""The repository: where it is, which commits its refs name, whose memory directory it holds.

An ordinary checkout or linked worktree is found by reading `.git`, and refs are read from files,
without a child process. Every other case (variables, bare repositories, odd layouts, somebody
else's files, tags, reftables) is left to git. The user's global repository is an ordinary one in
the user's data directory; as long as there is none, an absent one takes its place: it holds
nothing, and nothing can be written below it.
"""

from __future__ import annotations

import os
import sys

from memtool.errors import MemtoolError, reason_of
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
"""Variables that take one of a few words."""
NOWHERE = os.devnull
"""The git directory of a repository that is not made yet: nobody can make a file below it."""
_MOVED_BY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_CEILING_DIRECTORIES")


class VariableError(MemtoolError):
    """An environment variable cannot have its value; `name` is that of the variable."""

    def __init__(self, name: str, fault: str, example: str) -> None:
        hint = f"{name}={example}, or unset it"
        super().__init__(f"{name} {fault}", hint=hint, code="environment")
        self.name = name


def check_choices(env: Mapping[str, str], names: Iterable[str] = CHOICES) -> None:
    """Look at the variables that take one of a few words; an empty one counts as not set.

    Raises:
        VariableError: one has another value.
    """
    for name in names:
        given, choices = env.get(name, ""), CHOICES[name]
        if given and given not in choices:
            fault = f"is {given!r}, which is not one of {', '.join(choices)}"
            raise VariableError(name, fault, choices[-1])


class Repository:
    """One repository as seen from one worktree. Paths are absolute; `top` is empty if bare."""

    def __init__(
        self,
        top: str,
        git_dir: str,
        common_dir: str,
        make: Callable[[], Git],
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.top = top
        self.git_dir = git_dir
        self.common_dir = common_dir
        self._make = make
        storage = _storage(top, common_dir, env) if env else ""
        self.cache_dir = storage or os.path.join(common_dir, "memtool")
        """Where derived and private files go; it need not exist, and may not be writable."""
        self.own_dir = os.path.join(storage, digest(os.fsencode(git_dir))) if storage else git_dir
        """The same for what belongs to this worktree alone: below `memtool` in there."""

    @cached_property
    def git(self) -> Git:
        """Git in this repository."""
        return self._make()

    @property
    def is_bare(self) -> bool:
        return not self.top

    @property
    def is_made(self) -> bool:
        return self.git_dir != NOWHERE

    @property
    def is_shallow(self) -> bool:
        """Tell whether history was cut off, so that authors and dates are not to be trusted."""
        return os.path.exists(os.path.join(self.common_dir, "shallow"))

    @cached_property
    def is_partial(self) -> bool:
        """Tell whether objects of history may be absent: git fetches those when it needs them.

        memtool fetches nothing, so that what these objects would tell is unknown.
        """
        try:
            with open(os.path.join(self.common_dir, "config"), "rb") as file:
                text = b"".join(file.read(1 << 20).lower().split())
        except OSError:
            return False
        return b"promisor=" in text or b"partialclone" in text

    def shallow_commits(self) -> frozenset[str]:
        """Return the commits where a shallow clone ends: they seem to write all that they hold."""
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
        """Raise MemtoolError where there is no work tree; `hint` names what works instead."""
        if self.is_bare:
            raise MemtoolError("a bare repository has no work tree", hint=hint, code="bare")


def _storage(top: str, common_dir: str, env: Mapping[str, str]) -> str:
    """Return the directory that the environment gives a repository, empty where it names none.

    Raises:
        VariableError: it depends on where we are, what is private would lie in the worktree, or it
            is no directory and none can be made there.
    """
    given = env.get(STORAGE_VARIABLE)
    if not given:
        return ""
    example = "/path/to/a/directory outside of the repository"
    if not os.path.isabs(given) or "\0" in given:
        raise VariableError(
            STORAGE_VARIABLE, f"is {given!r}, which is not an absolute path", example
        )
    place, own = os.path.realpath(given), os.path.realpath(common_dir)
    root = os.path.realpath(top) if top else ""
    is_inside = place == root or place.startswith(root + os.sep)
    if root and is_inside and not place.startswith(own + os.sep):
        fault = f"lies in the worktree {top}, where private files do not belong"
        raise VariableError(STORAGE_VARIABLE, fault, example)
    try:
        os.makedirs(place, exist_ok=True)
    except OSError as error:
        fault = f"is {given!r}, where no directory can be made: {reason_of(error)}"
        raise VariableError(STORAGE_VARIABLE, fault, example) from None
    name = os.path.basename(os.path.dirname(own) if own.endswith("/.git") else own)
    return os.path.join(place, f"{name}-{digest(os.fsencode(own))}")


def discover(directory: str, env: Mapping[str, str]) -> Repository:
    """Find the repository that a directory lies in.

    Raises:
        MemtoolError: there is none, or git refuses it.
    """
    try:
        start = os.path.abspath(directory)
    except FileNotFoundError:  # the working directory was removed
        raise MemtoolError("the current directory is gone", code="no-directory") from None
    if not os.path.isdir(start):
        raise MemtoolError(f"there is no directory {directory}", code="no-directory")
    if not any(name in env for name in _MOVED_BY):
        found = _walk_up(start, env)
        if found is not None:
            return found

    return asked(start, env)


def global_directory(env: Mapping[str, str]) -> str:
    """Return where the user's global repository is or would be, empty where there is no place.

    Raises:
        MemtoolError: the environment names a place that depends on where we are.
    """
    given = env.get(GLOBAL_VARIABLE)
    if given:
        if not os.path.isabs(given) or "\0" in given:
            raise MemtoolError(
                f"{GLOBAL_VARIABLE} is {given!r}, which is not an absolute path",
                hint=f"{GLOBAL_VARIABLE}=/path/to/a/directory, or unset it",
                code="global",
            )
        return os.path.normpath(given)
    data, home = env.get("XDG_DATA_HOME", ""), env.get("HOME", "")
    if os.path.isabs(data):  # the standard says to pass over any other
        return os.path.join(data, "memtool")
    shares = "Library/Application Support" if sys.platform == "darwin" else ".local/share"
    return os.path.join(home, shares, "memtool") if os.path.isabs(home) else ""


def user_cache(env: Mapping[str, str]) -> str:
    """Return memtool's directory in the user's cache, empty where the environment names no home."""
    cache, home = env.get("XDG_CACHE_HOME", ""), env.get("HOME", "")
    if os.path.isabs(cache):
        return os.path.join(cache, "memtool")
    return os.path.join(home, ".cache", "memtool") if os.path.isabs(home) else ""


def worktree_above(directory: str) -> str:
    """Return the next directory at or above one that has a `.git`, empty where there is none."""
    place = os.path.abspath(directory)
    while not os.path.lexists(os.path.join(place, ".git")):
        parent = os.path.dirname(place)
        if parent == place:
            return ""
        place = parent
    return place


def is_global_made(directory: str) -> bool:
    """Tell whether the global repository is there, by one look.

    Raises:
        MemtoolError: it cannot be read, or is no directory.
    """
    what = f"the global repository {directory} cannot be read"
    with files.refusing(what, f"{GLOBAL_VARIABLE} names another directory", "global"):
        try:
            os.stat(os.path.join(directory, ".git"))
        except FileNotFoundError:
            return False
    return True


def _walk_up(start: str, env: Mapping[str, str]) -> Repository | None:
    """Find a plain checkout; None leaves the question to git."""
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
        return _plain(top, dot_git, env) if _is_mine(status) else None


def _plain(top: str, dot_git: str, env: Mapping[str, str]) -> Repository | None:
    """Return the ordinary checkout or linked worktree at a directory; None leaves it to git."""
    git_dir = dot_git if os.path.isdir(dot_git) else _pointed_to(dot_git, top)
    if git_dir is None or not os.path.exists(os.path.join(git_dir, "HEAD")):
        return None
    if not (_is_mine(os.stat(top)) and _is_mine(os.stat(git_dir))):
        return None
    common_dir = common_dir_of(git_dir)
    if common_dir is None or not os.path.isdir(os.path.join(common_dir, "objects")):
        return None
    own = os.path.join(git_dir, "config.worktree")
    if _is_unusual(os.path.join(common_dir, "config")) or _is_unusual(own, required=False):
        return None
    return Repository(top, git_dir, common_dir, lambda: Git(top, env), env)


def _is_mine(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid()  # safe.directory is git's question


def _pointed_to(dot_git: str, top: str) -> str | None:
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


def common_dir_of(git_dir: str) -> str | None:
    """Return what the worktrees of a git directory share, None where nobody can say."""
    try:
        with open(os.path.join(git_dir, "commondir"), encoding="utf-8") as file:
            return os.path.normpath(os.path.join(git_dir, file.read(4096).rstrip("\r\n")))
    except FileNotFoundError:
        return git_dir
    except (OSError, ValueError):
        return None


def _is_unusual(config: str, *, required: bool = True) -> bool:
    """Tell whether a settings file may move the worktree or say that there is none."""
    try:
        text = b"".join(files.read_regular(config, 1 << 20).lower().split())  # a pipe would wait
    except FileNotFoundError:
        return required
    except OSError:
        return True
    # `bare` alone, `bare=1` and `bare=yes` all mean true.
    signs = (b"worktree=", b"bare", b"[include")
    return any(sign in text.replace(b"bare=false", b"") for sign in signs)


def asked(start: str, env: Mapping[str, str]) -> Repository:
    """Return the repository that a directory lies in, as git says.

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
                hint="git init makes one; memtool -C DIR looks in another directory",
                code="no-repository",
            ) from None
        if "work tree" in error.stderr:  # called from inside the git directory
            top = ""
        elif "bare repository" in error.stderr:  # safe.bareRepository=explicit
            return _bare(start, env)
        else:
            raise
    if not top and "GIT_DIR" not in env:
        home, place = os.path.realpath(git_dir), os.path.realpath(start)
        return _bare(start if place.startswith(f"{home}{os.sep}") else git_dir, env)
    if "GIT_DIR" in env:  # may be relative to where we were called, and git will run at the top
        env = dict(env) | {"GIT_DIR": git_dir} | ({"GIT_WORK_TREE": top} if top else {})
    return Repository(top, git_dir, common_dir, lambda: Git(top or start, env), env)


def _bare(start: str, env: Mapping[str, str]) -> Repository:
    """Name a bare repository explicitly, as git demands since a clone may smuggle one in.

    Only a directory that itself is the repository counts, not one above it.
    """
    if not all(os.path.exists(os.path.join(start, name)) for name in ("HEAD", "objects", "refs")):
        raise MemtoolError(
            f"{start} lies inside a git directory",
            hint="memtool -C DIR with the top of the worktree, or the bare repository itself",
            code="no-repository",
        )
    git = Git(start, dict(env) | {"GIT_DIR": start})
    git.run("rev-parse", "--git-dir")  # git's own refusal, if any, goes to the user
    return Repository("", start, common_dir_of(start) or start, lambda: git, env)


ABSENT = ""
"""There is certainly no such ref, or it points to one that is not there."""
BRANCHES = ("refs/heads/", "refs/remotes/")
"""Refs that hold commits themselves; a tag may have to be peeled."""
_REFTABLE = b"ref: refs/heads/.invalid"
_MOST_HOPS = 5
_EXPRESSION = frozenset(" ~^:?*[\\@{\0\n")


def head_commit(repository: Repository) -> str | None:
    """Return the commit that is checked out, None where git has to say."""
    return _followed_ref(repository, _ref_line(repository.git_dir, "HEAD"), 0) or None


def checked_out(repository: Repository) -> str:
    """Return the full name of the branch that is checked out, or the commit of a detached HEAD."""
    line = _ref_line(repository.git_dir, "HEAD")
    if line is not None and line != _REFTABLE:
        return os.fsdecode(line)
    if not repository.is_made:
        return ""
    git = repository.git
    return git.line("symbolic-ref", "--quiet", "HEAD", allowed=(0, 1)) or git.head() or ""


def branch_commit(repository: Repository, name: str) -> str | None:
    """Return the commit of a branch by its full name, `ABSENT`, or None where git has to say."""
    if not name.startswith(BRANCHES) or not _EXPRESSION.isdisjoint(name) or ".." in name:
        return None
    return _ref(repository, name, 0)


def named_commit(repository: Repository, name: str) -> str | None:
    """Return the commit that a short name such as `origin/main` means, None where git has to say.

    Git looks in the git directory itself, then for any ref and tag, before it takes a branch.
    """
    if not name or not _EXPRESSION.isdisjoint(name) or ".." in name or HEX.issuperset(name):
        return None
    for before in ("", "refs/", "refs/tags/"):
        if _ref(repository, before + name, 0) != ABSENT:
            return None
    for kind in BRANCHES:
        commit = branch_commit(repository, kind + name)
        if commit != ABSENT:
            return commit
    return None


def _ref(repository: Repository, name: str, hops: int) -> str | None:
    line = _ref_line(repository.common_dir, name)
    return _packed_ref(repository, name) if line is None else _followed_ref(repository, line, hops)


def _followed_ref(repository: Repository, line: bytes | None, hops: int) -> str | None:
    """Return the commit that the content of a ref leads to."""
    if line is None or line == _REFTABLE or hops > _MOST_HOPS:
        return None
    text = line.decode(errors="replace")
    if not text.startswith("ref: "):
        return text if len(text) in (40, 64) and HEX.issuperset(text) else None
    name = text[5:].strip()
    if not name.startswith(BRANCHES) or ".." in name:
        return None
    return _ref(repository, name, hops + 1)


def _ref_line(folder: str, name: str) -> bytes | None:
    """Return the content of a ref's own file, None where there is none."""
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


def _packed_ref(repository: Repository, name: str) -> str | None:
    """Return the commit of a ref in `packed-refs`, a line `commit name` each."""
    if _ref_line(repository.git_dir, "HEAD") in (None, _REFTABLE):
        return None  # refs are no files here
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


def global_repository(env: Mapping[str, str]) -> Repository:
    """Open the global repository, or a stand-in for an absent one.

    Raises:
        MemtoolError: there is no place for it, or something else is there.
    """
    place = global_directory(env)
    if not place:
        raise MemtoolError(
            "there is no place for global memories, since HOME is not set",
            hint=f"{GLOBAL_VARIABLE}=/path/to/a/directory names one",
            code="global",
        )
    if not is_global_made(place):
        if not _holds_files(place):
            nowhere = local_environment(env) | {"GIT_DIR": NOWHERE}
            git = Git(os.sep, nowhere, absent=no_global_memories)
            return Repository(place, NOWHERE, NOWHERE, lambda: git)
        if not is_global_made(place):  # else another process has made it meanwhile
            raise MemtoolError(
                f"{place} holds files and is no git repository",
                hint=f"git init {place}, or name an empty directory with {GLOBAL_VARIABLE}",
                code="global",
            )
    found = discover(place, local_environment(env))
    if found.top != os.path.realpath(place):
        raise MemtoolError(
            f"{place} is not the top of a git repository with a work tree",
            hint=f"git init {place}, or name another directory with {GLOBAL_VARIABLE}",
            code="global",
        )
    return found


def _holds_files(place: str) -> bool:
    """Tell whether a directory holds anything: files that are not ours to put into git."""
    try:
        return bool(os.listdir(place))
    except FileNotFoundError:
        return False


def no_global_memories() -> MemtoolError:
    """Return the refusal of what an absent repository cannot answer."""
    return MemtoolError(NO_GLOBAL, hint=FIRST_GLOBAL, code="no-memory")


def local_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what points git at the repository that a hook runs for."""
    return {key: value for key, value in env.items() if key not in LOCATION_VARIABLES}


MARKS: tuple[tuple[str, str], ...] = (
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
"""Files by which the trees of other tools are known, and whose they are."""


def owner(top: str, directory: str) -> str | None:
    """Return whose tree a directory is, None where nothing shows that it is not ours."""
    path = os.path.join(top, directory)
    try:
        names = {n for n in os.listdir(path) if not n.startswith((".", "_", "README"))}
    except OSError:
        return None
    if "config.toml" in names or not names:
        return None
    for mark, tool in MARKS:
        if mark in names:
            return tool
    ours = {"decision", "semantic", "episodic", "state", "aliases.toml", "queries.toml"}
    if names & ours or any(_is_memory(os.path.join(path, name)) for name in sorted(names)[:20]):
        return None
    return "another tool"


def _is_memory(path: str) -> bool:
    """Tell whether a file begins as a memory does, so that one without any settings is ours."""
    head = (files.read_or_none(path, 4096) if path.endswith(".md") else None) or b""
    return head.startswith(b"---") and b"\nid:" in head and b"\ntimestamp:" in head


def refuse(top: str, directory: str) -> None:
    """Raise MemtoolError where the directory is another tool's."""
    tool = owner(top, directory)
    if tool is not None:
        raise MemtoolError(
            f"{directory} belongs to {tool}, memtool does not touch it",
            hint="memtool init --directory NAME keeps the memories of memtool in another place",
            code="foreign-tree",
        )


EMPTY_TREE = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""What the first commit is compared with: git knows these trees without having them."""
MERGE_ENV = "GITHEAD_"
"""`git merge` names what it merges so in the environment of its hooks, before MERGE_HEAD exists."""


def staged_changes(
    repository: Repository, directory: str, env: Mapping[str, str]
) -> tuple[list[list[RawChange]], str]:
    """Return where git's index differs from HEAD and from each commit that is being merged.

    Each list has one row a path, sorted: those below the memory directory, and the file that names
    it. Also returns `HEAD`, or nothing before the first commit. It is all that a commit without
    memories costs.
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
    others = (git.diff_raw(*index, parent, "--", *paths) for parent in merged(repository, env))
    return [by_path(rows), *map(by_path, others)], head


def by_path(rows: Iterable[RawChange]) -> list[RawChange]:
    """Return one row for each path, sorted: an unfinished merge has two."""
    found: dict[str, RawChange] = {}
    for row in rows:
        if row.path not in found or row.status == "U":
            found[row.path] = row
    return [found[path] for path in sorted(found)]


def merged(repository: Repository, env: Mapping[str, str]) -> list[str]:
    """Return the commits that the next commit will join to HEAD, none outside of a merge."""
    try:
        with open(os.path.join(repository.git_dir, "MERGE_HEAD"), encoding="ascii") as file:
            return file.read().split()
    except (OSError, UnicodeDecodeError):
        return sorted(name[len(MERGE_ENV) :] for name in env if name.startswith(MERGE_ENV))


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
    "MEMTOOL_DEBUG": "any text; a bug prints its traceback beside writing it to a log file, and a "
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
    "VISUAL, EDITOR": "the editor that --edit opens, the first of them that is set, else vi",
    "USER": "who wrote a memory, where git knows no user.name",
    "PATH": "where git is, and which agent hosts there are",
    "HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME": "where the model of search.semantic lies by its name; "
    "memtool/fleet in XDG_CACHE_HOME, by default ~/.cache, keeps what a fleet is asked by",
    "CLAUDE_CONFIG_DIR, CODEX_HOME, GEMINI_CLI_HOME, XDG_CONFIG_HOME": "where agent hosts keep "
    "what holds for all projects",
}
"""What each variable, or each of several, is for."""
