"""Git as a process: hardened settings, argument lists, parsed output, and blobs in batches.

Every call has hardened settings, so that nothing in a repository can run a program: no hooks, file
system monitors, external diffs, text filters, pagers or signature programs. Paths are literal,
output is bytes, and no locks are taken for reading. Only this module parses git's `-z` output.

Each process costs about a tenth of an interpreter start. Sizes are read before contents, because a
staged blob may be of any size.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError, find_reason
from memtool.value import Value, first_few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Self

    from memtool.store.process import Child, ProcessResult

    CommitListing = dict[str, tuple[str, str]]
    """Mode and object id of each file by path."""

TIMEOUT_S = 60.0
HARDENING: dict[str, str] = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.quotePath": "false",
    "core.pager": "cat",
    "log.showSignature": "false",
    "safe.bareRepository": "explicit",
    "protocol.allow": "never",
    "log.follow": "false",
    "log.showRoot": "true",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "diff.external": "",
}
"""Git settings of every call."""

# Variables that point git at a repository: hooks need them, other calls must not inherit them
# (`git rev-parse --local-env-vars`).
LOCATION_VARIABLES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
    "GIT_CEILING_DIRECTORIES",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
)
_FETCHING, _REFUSED = "fatal: transport '", "' not allowed"
"""git's message if it would have to fetch an object that a partial clone left out."""
_FOREIGN_MESSAGE = "detected dubious ownership"
"""git's message for a repository of another user; its last line is the command to trust it."""
_MAX_CONFLICTS = 127
"""`git merge-file` exits with the number of conflicts up to this; higher values are failures."""
REGULAR_MODES = ("100644", "100755")
"""Modes of plain and executable files."""
SUBMODULE_MODE = "160000"
LINK_MODES = ("120000", SUBMODULE_MODE)
"""Modes of symbolic links and submodules."""
MAX_PATH_ARGUMENTS = 500
"""Paths per call of a command that takes them only as arguments: 120 KB are safe everywhere."""
MAX_BRANCHES = 5
"""Branches that the error about an unknown revision names."""
MAX_LISTINGS = 4
"""Directories for which a process remembers the files of the last listed commit."""
MAX_LISTED_FILES = 50_000
"""Longer listings are not remembered; this many take about 15 MB."""
_LOCK_MESSAGES = (".lock': File exists", "cannot lock ref")
_LOCK_PATH_ENDS = ("Unable to create '", ".lock'")
_READ_ONLY_MESSAGES = ("Read-only file system", "Permission denied", "insufficient permission")


_listings: dict[tuple[str, str], tuple[str, CommitListing]] = {}
"""The last listed commit and its files, by working directory and listed directory."""


class GitError(MemtoolError):
    """A git command failed with this `stderr` and exit `status`."""

    def __init__(self, argv: Sequence[str], status: int, stderr: bytes) -> None:
        text = stderr.decode(errors="replace").strip()
        lines = [line for line in text.splitlines() if not line.startswith("warning: ")]
        first = lines[0] if lines else f"exit status {status}"
        hint = ""
        if first.startswith(_FETCHING) and first.endswith(_REFUSED):
            first = "this partial clone does not hold what it has to look at"
            hint = "git fetch --refetch --no-filter brings all of it"
        if _FOREIGN_MESSAGE in text:
            hint = f"if you trust its owner: {text.splitlines()[-1].strip()}"
        message = f"git {argv[0]} failed: {first.removeprefix('fatal: ')}"
        super().__init__(message, hint=hint, code="git")
        self.stderr = text
        self.status = status

    @property
    def is_foreign(self) -> bool:
        """Whether git refuses the repository because it belongs to another user."""
        return _FOREIGN_MESSAGE in self.stderr

    @property
    def is_lock(self) -> bool:
        """Whether another git process held a lock, so that a retry may succeed."""
        return any(mark in self.stderr for mark in _LOCK_MESSAGES)

    @property
    def lock(self) -> str:
        """Path of the lock file in git's message; empty if there is none."""
        named = self.stderr.partition(_LOCK_PATH_ENDS[0])[2].partition(_LOCK_PATH_ENDS[1])
        return f"{named[0]}.lock" if named[1] else ""

    @property
    def is_read_only(self) -> bool:
        """Whether the git directory is not writable, as in an agent's sandbox."""
        return not self.is_lock and any(mark in self.stderr for mark in _READ_ONLY_MESSAGES)


class TreeEntry(Value):
    """One row of `git ls-tree`: `kind` is blob, tree or commit."""

    path: str
    mode: str
    kind: str
    oid: str


class IndexEntry(Value):
    """One row of `git ls-files --stage`; `stage` is 0, or 1 to 3 in an unfinished merge."""

    path: str
    mode: str
    oid: str
    stage: str
    is_skipped: bool
    """Whether a sparse checkout leaves the file out of the worktree."""


class RawChange(Value):
    """One row of `--raw`: a file before and after. A mode of zeros means that there is no file.

    `olds` has mode and blob in each parent, or a single pair if two trees were compared. `old_path`
    differs from `path` if git detected a rename or a copy.
    """

    path: str
    old_path: str
    mode: str
    oid: str
    status: str
    olds: tuple[tuple[str, str], ...]

    @property
    def old_mode(self) -> str:
        return self.olds[0][0]

    @property
    def old_oid(self) -> str:
        return self.olds[0][1]


class Touch(Value):
    """One file that a commit changed. A blob id is empty if there is no regular file on that side.

    `old_path` differs from `path` if git detected a rename.
    """

    path: str
    old_path: str
    oid: str
    old_oid: str


def build_environment(base: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a git process: the caller's, with C locale and without prompts."""
    return dict(base) | {
        "LC_ALL": "C.UTF-8",
        "LANGUAGE": "",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_ALLOW_PROTOCOL": "none",  # a partial clone would fetch what is missing
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "true",
        "GIT_ASKPASS": "true",
    }


_LISTING_COMMANDS = ("diff-index", "ls-files", "status")
"""Commands whose answer for a missing repository is an empty list."""


class Git:
    """Git in one directory, with one environment.

    `absent` builds the error for a repository that does not exist yet. git can then only read the
    user's settings.
    """

    def __init__(
        self,
        directory: str,
        env: Mapping[str, str],
        absent: Callable[[], MemtoolError] | None = None,
    ) -> None:
        self.directory = directory
        self._absent = absent
        self.env = build_environment(env)
        self.user_env = dict(env) | {"LC_ALL": "C.UTF-8", "LANGUAGE": "", "GIT_EDITOR": "true"}
        self._objects: Objects | None = None
        self._commits: set[str] = set()
        """Full ids that git named as commits, so that it is not asked again whether they are."""

    def run(
        self,
        *args: str,
        stdin: bytes | None = None,
        allowed: Iterable[int] = (0,),
        env: Mapping[str, str] | None = None,
        with_hooks: bool = False,
        timeout_s: float = TIMEOUT_S,
        settings: Mapping[str, str] = {},
    ) -> bytes:
        """Run git and return its stdout. `settings` are additional git settings.

        For a repository that does not exist yet the output is empty if exit status 1 is allowed or
        the command lists files.

        `with_hooks` runs git as the user would, with hooks and filters and without a time limit:
        only for commits that the user asked for. Programs started by hooks must not inherit the
        hardening, and killing git would leave its locks behind.

        Raises:
            GitError: the exit status is not allowed.
            MemtoolError: git is not installed, or did not answer in time.
        """
        done = self._run(
            args, stdin, env, with_hooks=with_hooks, timeout_s=timeout_s, settings=settings
        )
        if done.status in allowed:
            return done.stdout
        if self._absent is None:
            raise self.build_error(args, done.status, done.stderr)
        if 1 in allowed or args[0] in _LISTING_COMMANDS:
            return b""
        raise self._absent()

    def _run(
        self,
        args: Sequence[str],
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        *,
        with_hooks: bool = False,
        timeout_s: float = TIMEOUT_S,
        settings: Mapping[str, str] = {},
    ) -> ProcessResult:
        full_env = (self.user_env if with_hooks else self.env) | dict(env or {})
        from memtool.store import process  # answers from the cache need no git

        argv = self._argv(args, {**({} if with_hooks else HARDENING), **settings})
        try:
            return process.run(argv, full_env, stdin or b"", None if with_hooks else timeout_s)
        except OSError as error:  # includes TimeoutError
            raise build_start_error(args[0], error, timeout_s) from None

    def line(self, *args: str, allowed: Iterable[int] = (0,)) -> str:
        """Run git and return its single line of output, without the line feed."""
        return self.run(*args, allowed=allowed).decode(errors="surrogateescape").rstrip("\n")

    def rows(
        self, *args: str, env: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S
    ) -> list[bytes]:
        """Run a command with NUL-separated output, and return the parts that are not empty."""
        return [row for row in self.run(*args, env=env, timeout_s=timeout_s).split(b"\0") if row]

    def names(self, *args: str, env: Mapping[str, str] | None = None) -> list[str]:
        """Run a command that lists paths with `-z`, and return the paths in its order."""
        return [os.fsdecode(row) for row in self.rows(*args, env=env)]

    def ls_tree(
        self,
        revision: str,
        *paths: str,
        recursive: bool = True,
        with_folders: bool = False,
        allowed: Iterable[int] = (0,),
    ) -> list[TreeEntry]:
        """List a revision at and below some paths, or the whole revision if no path is given.

        `with_folders` also lists the folders above the entries. Without it git leaves out a folder
        that is requested together with a file in it.
        """
        options = ("-r",) * recursive + ("-t",) * with_folders
        answer = self.run(
            "ls-tree", *options, "-z", "--full-tree", revision, "--", *paths, allowed=allowed
        )
        entries = []
        for row in os.fsdecode(answer).split("\0")[:-1]:
            meta, _tab, path = row.partition("\t")
            mode, kind, oid = meta.split()
            entries.append(TreeEntry(path, mode, kind, oid))
        return entries

    def blobs_below(self, commit: str, directory: str) -> dict[str, str]:
        """Return the blob of each file of a commit below a directory; `commit` is a full id."""
        listed = self.files_below(commit, directory)
        return {path: oid for path, (_mode, oid) in listed.items()}

    def files_below(self, commit: str, directory: str = "") -> CommitListing:
        """Return the files of a commit below a directory, or all files; `commit` is a full id.

        Commits never change, so the process remembers the last listing, and for another commit
        asks git only for the difference. Callers must not modify the result.
        """
        key = self.directory, directory
        listed_commit, listing = _listings.get(key, ("", {}))
        if listed_commit == commit:
            return listing
        paths = (directory,) if directory else ()
        try:
            files = (
                self._update_listing(listing, listed_commit, commit, *paths)
                if listed_commit
                else None
            )
        except GitError:  # the last listed commit no longer exists
            files = None
        if files is None:
            files = {entry.path: (entry.mode, entry.oid) for entry in self.ls_tree(commit, *paths)}
        _listings.pop(key, None)
        if len(files) <= MAX_LISTED_FILES:
            while len(_listings) >= MAX_LISTINGS:
                _listings.pop(next(iter(_listings)), None)
            _listings[key] = commit, files
        return files

    def _update_listing(
        self, listing: CommitListing, old: str, new: str, *paths: str
    ) -> CommitListing:
        rows = self.diff_raw(
            "diff-tree", "-r", "--no-renames", "--ignore-submodules=none", old, new, "--", *paths
        )
        updated = dict(listing)
        for row in rows:
            if row.status == "D":
                updated.pop(row.path, None)
            else:
                updated[row.path] = row.mode, row.oid
        return updated

    def ls_files(self, *paths: str, options: Sequence[str] = ()) -> list[IndexEntry]:
        """List git's index at and below some paths, or the whole index if no path is given."""
        answer = self.run("ls-files", "--stage", "-t", "-z", *options, "--", *paths)
        entries = []
        for row in answer.split(b"\0")[:-1]:
            meta, _tab, raw = row.partition(b"\t")
            tag, mode, oid, stage = meta.decode().split()
            entries.append(IndexEntry(os.fsdecode(raw), mode, oid, stage, tag == "S"))
        return entries

    def status(
        self, *paths: str, untracked: str = "all", timeout_s: float = TIMEOUT_S
    ) -> list[tuple[str, str]]:
        """Return status letters and path of each file that differs from HEAD or is untracked.

        With `untracked="normal"` a new directory is listed instead of its files.
        """
        rows = self.rows(
            "status",
            "--porcelain",
            "-z",
            f"--untracked-files={untracked}",
            "--no-renames",
            "--",
            *paths,
            timeout_s=timeout_s,
        )
        return [(row[:2].decode(), os.fsdecode(row[3:])) for row in rows]

    def diff_raw(self, *args: str, env: Mapping[str, str] | None = None) -> list[RawChange]:
        """Run `diff-tree`, `diff-index` or `diff-files` and return the changes."""
        command, *arguments = args
        answer = self.run(command, "--raw", "-z", "--no-abbrev", *arguments, env=env)
        return [change for _title, change in _parse_changes(answer)]

    def log_raw(
        self,
        *args: str,
        stdin: bytes | None = None,
        is_wanted: Callable[[str], bool] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Iterator[tuple[str, RawChange]]:
        """Yield each file that commits changed, with the title of its commit, in git's order.

        The command is `log`, with a `--format` for the title, or `diff-tree --stdin`, whose title
        is the commit id. Commits without changes are left out. `is_wanted` filters by path, except
        for renamed files.
        """
        command, *arguments = args
        options = ("--raw", "-z", "--no-abbrev", "--no-ext-diff")
        return _parse_changes(
            self.run(command, *options, *arguments, stdin=stdin, env=env), is_wanted
        )

    def log_names(
        self, *args: str, env: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S
    ) -> list[tuple[str, list[str]]]:
        """Return the formatted title of each commit that `log` lists, with the files it changed.

        `--format` must begin with `%x00`, which cannot be part of a path, to mark titles.
        """
        commits: list[tuple[str, list[str]]] = []
        is_title = False
        options = ("--name-only", "-z", "--no-ext-diff")
        answer = self.run("log", *options, *args, env=env, timeout_s=timeout_s)
        for token in answer.split(b"\0"):
            if is_title:
                commits.append((token.decode(errors="replace"), []))
            elif token:
                names = commits[-1][1]
                names.append(os.fsdecode(token if names else token.removeprefix(b"\n")))
            is_title = not token
        return commits

    def worktrees(self) -> dict[str, str]:
        """Return the path of the worktree for each checked-out branch, by full ref name."""
        worktree_by_branch = {}
        path = ""
        for row in self.rows("worktree", "list", "--porcelain", "-z"):
            key, _space, value = os.fsdecode(row).partition(" ")
            if key == "worktree":
                path = value
            elif key == "branch":
                worktree_by_branch[value] = path
        return worktree_by_branch

    def merge_texts(self, base: bytes, ours: bytes, theirs: bytes) -> tuple[bytes, bool]:
        """Merge three texts line by line; return the result, and True if there is no conflict.

        Conflicts are between markers that name the sides `ours` and `theirs`.

        Raises:
            GitError: the texts are binary or too large.
        """
        import tempfile  # only merges need it

        texts = {"ours": ours, "base": base, "theirs": theirs}
        with tempfile.TemporaryDirectory(prefix="memtool-merge-") as folder:
            for name, text in texts.items():
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(text)
            labels = [part for name in texts for part in ("-L", name)]
            paths = [os.path.join(folder, name) for name in texts]
            args = ("merge-file", "-p", *labels, *paths)
            done = self._run(args)
        if not 0 <= done.status <= _MAX_CONFLICTS:
            raise self.build_error(args, done.status, done.stderr)
        return done.stdout, done.status == 0

    def resolve(self, revision: str) -> str:
        """Return the full id of the commit that a revision names.

        Raises:
            MemtoolError: there is no such commit.
        """
        if revision in self._commits:
            return revision
        # --end-of-options: a revision such as `--output=x` is a name, never an option.
        answer = self.run(
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            f"{revision}^{{commit}}".replace("\0", "\n"),  # arguments cannot contain NUL
            allowed=(0, 1, 128),
        )
        if answer.count(b"\n") != 1 or answer.startswith(b"^"):
            is_cut = self.line("rev-parse", "--is-shallow-repository") == "true"
            if is_cut:
                raise MemtoolError(
                    f'no revision "{revision}" in this shallow clone',
                    hint="git fetch --unshallow\nin CI: fetch-depth: 0",
                    code="unknown-revision",
                )
            branches, near = self._list_near_branches(revision)
            noun = "branch is" if len(branches) == 1 else "branches are"
            shown = f"; the {noun} {first_few(branches, MAX_BRANCHES)}" if branches else ""
            raise MemtoolError(
                f'no revision "{revision}"{shown}',
                hint=f"did you mean {near}?" if near else "git log --oneline --all",
                code="unknown-revision",
            )
        commit = answer.decode().strip()
        self._commits.add(commit)
        return commit

    def _list_near_branches(self, name: str) -> tuple[list[str], str]:
        """Return the local branches, those most similar to a name first, and the one that is near.

        The latter is empty if none is, and may be a branch of a remote.
        """
        from difflib import SequenceMatcher, get_close_matches  # for a mistyped name only

        refs = [
            ref
            for ref in self.line("for-each-ref", "--format=%(refname)").split("\n")
            if ref.startswith(("refs/heads/", "refs/remotes/")) and not ref.endswith("/HEAD")
        ]
        local = [ref[len("refs/heads/") :] for ref in refs if ref.startswith("refs/heads/")]
        remote = [ref[len("refs/remotes/") :] for ref in refs if ref.startswith("refs/remotes/")]
        near = get_close_matches(name, [*local, *remote], n=1)
        local.sort(key=lambda branch: -SequenceMatcher(None, name, branch).ratio())
        return local, "".join(near)

    def head(self) -> str:
        """Return the id of HEAD; empty before the first commit."""
        commit = self.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}", allowed=(0, 1))
        if commit:
            self._commits.add(commit)
        return commit

    def blobs(self, oids: Sequence[str], max_bytes: int) -> Iterator[bytes]:
        """Yield the content of each blob, in order. Raises GitError if one is missing.

        A blob of more than `max_bytes` is never loaded: `max_bytes + 1` zeros take its place.
        """
        if self._objects is not None:
            yield from self._objects.blobs(oids, max_bytes)
            return

        with Objects(self) as objects:
            yield from objects.blobs(oids, max_bytes)

    def infos(self, names: Sequence[str]) -> list[tuple[str, str, int] | None]:
        """Return id, type and size of each object; None for a missing one.

        A name is anything that git resolves to an object, without a line feed.
        """
        if self._objects is not None:
            return self._objects.infos(names)

        with Objects(self) as objects:
            return objects.infos(names)

    def list_objects(self) -> frozenset[str]:
        """Return the ids of all local objects. Never fetches, even in a partial clone."""
        answer = self.run("cat-file", "--batch-check=%(objectname)", "--batch-all-objects")
        return frozenset(answer.decode().split())

    def open_objects(self) -> Objects:
        """Return a context manager in which one git process answers all `blobs` and `infos` calls.

        One inside another uses the same process. For use by a single thread.
        """
        if self._objects is None:
            self._objects = Objects(self, self._close_objects)
        return self._objects

    def _close_objects(self) -> None:
        self._objects = None

    def start(self, *args: str) -> Child:
        """Start git as a process that answers requests. Raises MemtoolError if it cannot start."""
        from memtool.store import process

        try:
            return process.Child(self._argv(args, HARDENING), self.env)
        except OSError as error:
            raise build_start_error(args[0], error) from None

    def read_lines(self, *args: str) -> Iterator[bytes]:
        """Yield the lines of an answer that may be long, while git runs, however long that takes.

        Raises:
            GitError: git failed.
        """
        child = self.start(*args)
        status, error_text = 0, b""
        try:
            error_text = yield from child.read_lines()
        finally:
            status = child.close()
        if status:
            raise self.build_error(args, status, error_text)

    def build_error(self, args: Sequence[str], status: int, stderr: bytes) -> MemtoolError:
        """Build the error for a command that failed."""
        if not os.path.isdir(self.directory):
            return MemtoolError(f"no directory {self.directory}", code="git")
        return GitError(args, status, stderr)

    def _argv(self, args: Sequence[str], settings: Mapping[str, str]) -> list[str]:
        setting_args = [
            part for key, value in settings.items() for part in ("-c", f"{key}={value}")
        ]
        return ["git", "-C", self.directory, "--no-pager", *setting_args, *args]


def _parse_changes(
    answer: bytes, is_wanted: Callable[[str], bool] | None = None
) -> Iterator[tuple[str, RawChange]]:
    """Parse the output of `--raw -z`: yield each row with the last title before it.

    A row is `:modes blobs status`, with one more colon, mode and blob for each parent beyond the
    first. The path follows, and a second path after a rename or a copy.
    """
    title = ""
    tokens = iter(os.fsdecode(answer).split("\0"))
    for token in tokens:
        row = token.lstrip("\n")
        if not row.startswith(":"):
            title = row or title
            continue
        old_path = path = next(tokens)
        parents = len(row) - len(row.lstrip(":"))
        status = row.rpartition(" ")[2]
        if parents == 1 and status[0] in "RC":
            path = next(tokens)
        elif is_wanted is not None and not is_wanted(path):
            continue
        parts = row[parents:].split(" ")
        if parents == 1:
            yield (
                title,
                RawChange(path, old_path, parts[1], parts[3], status, ((parts[0], parts[2]),)),
            )
            continue
        olds = tuple(zip(parts[:parents], parts[parents + 1 : -2], strict=True))
        yield title, RawChange(path, old_path, parts[parents], parts[-2], status, olds)


def build_start_error(verb: str, error: OSError, timeout_s: float = TIMEOUT_S) -> MemtoolError:
    """Build the error for a git process that could not start or did not end in time."""
    if isinstance(error, FileNotFoundError):
        return MemtoolError("git is not installed", hint="install git 2.38 or newer", code="git")
    if isinstance(error, TimeoutError):
        return MemtoolError(
            f"git {verb} did not answer within {timeout_s:.0f} s",
            hint="git status\nif that hangs too: is .gitignore or .gitattributes a pipe?",
            code="git",
        )
    # for example an argument list that is too long for the system
    reason = find_reason(error)
    return MemtoolError(f"cannot start git {verb}: {reason}", code="git")


class Objects:
    """Reads objects of a repository through one `git cat-file` that runs until the context ends.

    The process starts at the first request; `on_close` is called at the end. The context may be
    entered several times, and ends with the outermost.
    """

    def __init__(self, git: Git, on_close: Callable[[], None] = lambda: None) -> None:
        self._git = git
        self._on_close = on_close
        self._child: Child | None = None
        self._depth = 0

    def __enter__(self) -> Self:
        self._depth += 1
        return self

    def __exit__(self, *_error: object) -> None:
        self._depth -= 1
        if self._depth:
            return
        self._on_close()
        if self._child is not None:
            self._child.close()
            self._child = None

    def infos(self, names: Sequence[str]) -> list[tuple[str, str, int] | None]:
        """Return id, type and size of each object, as `Git.infos` does."""
        if not names:
            return []
        request = "".join(f"info {name}\n" for name in names).encode(errors="surrogateescape")
        infos: list[tuple[str, str, int] | None] = []
        for row in self._ask(request, lines=len(names)).splitlines():
            *_name, size = parts = row.decode(errors="replace").split(" ")
            is_there = size.isdigit() and len(parts) == 3
            infos.append((parts[0], parts[1], int(size)) if is_there else None)
        return infos

    def blobs(self, oids: Sequence[str], max_bytes: int) -> Iterator[bytes]:
        """Yield the content of each blob, as `Git.blobs` does."""
        infos = self.infos(oids)
        sizes = []
        requests = []
        length = 0
        for oid, info in zip(oids, infos, strict=True):
            if info is None:
                raise GitError(("cat-file",), 1, f"object {oid} is missing".encode())
            sizes.append(info[2])
            if info[2] <= max_bytes:
                requests.append(f"contents {oid}\n")
                length += len(f"{info[0]} {info[1]} {info[2]}\n") + info[2] + 1
        answer = self._ask("".join(requests).encode(), size=length) if requests else b""
        position = 0
        for size in sizes:
            if size > max_bytes:
                yield bytes(max_bytes + 1)
                continue
            start = answer.index(b"\n", position) + 1
            yield answer[start : start + size]
            position = start + size + 1

    def _ask(self, request: bytes, *, lines: int = 0, size: int = 0) -> bytes:
        if self._child is None:
            self._child = self._git.start("cat-file", "--batch-command", "--buffer")
        try:
            return self._child.request(
                request + b"flush\n", lines=lines, size=size, timeout_s=TIMEOUT_S
            )
        except EOFError as error:
            raise self._git.build_error(("cat-file",), 1, str(error).encode()) from None
        except TimeoutError as error:
            self._child.kill()
            raise build_start_error("cat-file", error) from None
