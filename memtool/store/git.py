"""Git as a process: hardened settings, argv lists, its rows as values, and blobs in batches.

Every call is an argv list with hardened settings, so that nothing a repository carries is run:
no hooks, file system monitors, external diffs, text filters, pagers or signature programs of its
own choosing. Paths are literal, output is bytes, locks that reading does not need are not taken.
What git lists with `-z` is parsed here and nowhere else.

A process costs a hook a tenth of an interpreter start, whatever it is asked; and it must be asked
for sizes before contents, since nobody knows how large a blob is that somebody staged.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError, reason_of
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Self

    from memtool.store.process import Child, Done

    CommitListing = dict[str, tuple[str, str]]
    """Mode and object of each file by its path."""

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
"""Git settings that every call gets."""

# Variables by which a caller points git at a repository; a hook needs them, other calls must not
# inherit them (`git rev-parse --local-env-vars`).
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
"""What git says where it would fetch what a partial clone left out."""
_FOREIGN = "detected dubious ownership"
"""What git says of a repository of another user; its last line is the command that trusts it."""
_MOST_CONFLICTS = 127
"""`git merge-file` ends with the number of conflicts, at most so many; else it failed."""
REGULAR = ("100644", "100755")
"""The modes of a file, plain and executable ..."""
SUBMODULE = "160000"
LINKS = ("120000", SUBMODULE)
"""... and of what stands in the place of one."""
ARGUMENTS = 500
"""Paths of one call that only takes them as arguments: 120 KB at most are safe everywhere."""
MOST_LISTED = 4
"""Directories of which one process remembers the files of a commit ..."""
MOST_FILES = 50_000
"""... where these are not more, about 15 MB."""
_LOCKED = (".lock': File exists", "cannot lock ref")
_LOCK = ("Unable to create '", ".lock'")
_SEALED = ("Read-only file system", "Permission denied", "insufficient permission")


_listed: dict[tuple[str, str], tuple[str, CommitListing]] = {}
"""By working directory and directory the commit that was last listed, and its files."""


class GitError(MemtoolError):
    """Git refused. `stderr` is what it said, `status` its exit code."""

    def __init__(self, argv: Sequence[str], status: int, stderr: bytes) -> None:
        said = stderr.decode(errors="replace").strip()
        lines = [line for line in said.splitlines() if not line.startswith("warning: ")]
        first = lines[0] if lines else f"exit status {status}"
        hint = ""
        if first.startswith(_FETCHING) and first.endswith(_REFUSED):
            first = "this partial clone does not hold what it has to look at"
            hint = "git fetch --refetch --no-filter brings all of it"
        if _FOREIGN in said:
            hint = f"if you trust its owner: {said.splitlines()[-1].strip()}"
        message = f"git {argv[0]} failed: {first.removeprefix('fatal: ')}"
        super().__init__(message, hint=hint, code="git")
        self.stderr = said
        self.status = status

    @property
    def is_foreign(self) -> bool:
        """Tell whether git refuses the repository, since it belongs to another user."""
        return _FOREIGN in self.stderr

    @property
    def is_lock(self) -> bool:
        """Tell whether another git process held a lock, so that trying again may succeed."""
        return any(mark in self.stderr for mark in _LOCKED)

    @property
    def lock(self) -> str:
        """The path of the lock that git names, empty where it names none."""
        named = self.stderr.partition(_LOCK[0])[2].partition(_LOCK[1])
        return f"{named[0]}.lock" if named[1] else ""

    @property
    def is_sealed(self) -> bool:
        """Tell whether git's own directory cannot be written, as in the sandbox of an agent."""
        return not self.is_lock and any(mark in self.stderr for mark in _SEALED)


class TreeEntry(Value):
    """One row of `git ls-tree`: `kind` is blob, tree or commit."""

    path: str
    mode: str
    kind: str
    oid: str


class IndexEntry(Value):
    """One row of `git ls-files --stage`: `stage` is 0, or 1 to 3 in an unfinished merge."""

    path: str
    mode: str
    oid: str
    stage: str
    is_skipped: bool
    """Whether the worktree leaves the file out."""


class RawChange(Value):
    """One row of `--raw`: a file as it was and as it is. A mode of zeros means: no file.

    `olds` are mode and blob in each parent, one where two trees are compared. `old_path` differs
    from `path` where git found a rename or a copy.
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
    """One file that a commit changed. A blob id is empty where there was or is no regular file.

    `old_path` differs from `path` where git found the file renamed.
    """

    path: str
    old_path: str
    oid: str
    old_oid: str


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a git process: the caller's, in plain English and unattended."""
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


_LISTINGS = ("diff-index", "ls-files", "status")
"""Commands that list what is there, which is nothing where no repository is."""


class Git:
    """Git in one directory, with one environment.

    `absent` makes the error for a repository that is not there yet: git then knows the user's
    settings, and nothing of anything else.
    """

    def __init__(
        self,
        directory: str,
        env: Mapping[str, str],
        absent: Callable[[], MemtoolError] | None = None,
    ) -> None:
        self.directory = directory
        self._absent = absent
        self.env = environment(env)
        self.user_env = dict(env) | {"LC_ALL": "C.UTF-8", "LANGUAGE": "", "GIT_EDITOR": "true"}
        self._objects: Objects | None = None

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
        """Run git, with some settings of its own, and return its stdout.

        Of an absent repository a caller who takes 1 for `there is none`, or asks what there is,
        gets that.

        `with_hooks` runs git as the user would, with hooks and filters, and without a time limit:
        only for commits that the user asked for. What hooks start must not inherit the hardening,
        and a git that is killed leaves its locks behind.

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
            raise self.failed(args, done.status, done.stderr)
        if 1 in allowed or args[0] in _LISTINGS:
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
    ) -> Done:
        full_env = (self.user_env if with_hooks else self.env) | dict(env or {})
        from memtool.store import process  # warm answers need no git

        argv = self._argv(args, {**({} if with_hooks else HARDENING), **settings})
        try:
            return process.run(argv, full_env, stdin or b"", None if with_hooks else timeout_s)
        except OSError as error:  # TimeoutError among them
            raise unstarted(args[0], error, timeout_s) from None

    def line(self, *args: str, allowed: Iterable[int] = (0,)) -> str:
        """Run git and return its one line of output, without the line feed."""
        return self.run(*args, allowed=allowed).decode(errors="surrogateescape").rstrip("\n")

    def rows(
        self, *args: str, env: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S
    ) -> list[bytes]:
        """Run a command that parts its answer by NUL, and return the parts that are not empty."""
        return [row for row in self.run(*args, env=env, timeout_s=timeout_s).split(b"\0") if row]

    def names(self, *args: str, env: Mapping[str, str] | None = None) -> list[str]:
        """Run a command that lists paths with `-z`, and return them in its order."""
        return [os.fsdecode(row) for row in self.rows(*args, env=env)]

    def ls_tree(
        self,
        revision: str,
        *paths: str,
        recursive: bool = True,
        with_folders: bool = False,
        allowed: Iterable[int] = (0,),
    ) -> list[TreeEntry]:
        """Return what a revision holds at some paths, or below them; all of it without any.

        `with_folders` also gives the folders above what is found. Without it git leaves out a
        folder that is asked for together with a file of it.
        """
        options = ("-r",) * recursive + ("-t",) * with_folders
        answer = self.run(
            "ls-tree", *options, "-z", "--full-tree", revision, "--", *paths, allowed=allowed
        )
        found = []
        for row in os.fsdecode(answer).split("\0")[:-1]:
            meta, _tab, path = row.partition("\t")
            mode, kind, oid = meta.split()
            found.append(TreeEntry(path, mode, kind, oid))
        return found

    def blobs_below(self, commit: str, directory: str) -> dict[str, str]:
        """Return the blob of each file of a commit below a directory; `commit` is its full id."""
        listed = self.files_below(commit, directory)
        return {path: oid for path, (_mode, oid) in listed.items()}

    def files_below(self, commit: str, directory: str = "") -> CommitListing:
        """Return the files of a commit below a directory, or all; `commit` is its full id.

        No commit changes, so the process remembers the last answer, which is nobody's to change; of
        another commit git is asked only how it differs.
        """
        key = self.directory, directory
        last, known = _listed.get(key, ("", {}))
        if last == commit:
            return known
        where = (directory,) if directory else ()
        try:
            found = self._changed_files(known, last, commit, *where) if last else None
        except GitError:  # the last one is here no more
            found = None
        if found is None:
            found = {one.path: (one.mode, one.oid) for one in self.ls_tree(commit, *where)}
        _listed.pop(key, None)
        if len(found) <= MOST_FILES:
            while len(_listed) >= MOST_LISTED:
                _listed.pop(next(iter(_listed)), None)
            _listed[key] = commit, found
        return found

    def _changed_files(
        self, known: CommitListing, old: str, new: str, *where: str
    ) -> CommitListing:
        rows = self.diff_raw(
            "diff-tree", "-r", "--no-renames", "--ignore-submodules=none", old, new, "--", *where
        )
        found = dict(known)
        for row in rows:
            if row.status == "D":
                found.pop(row.path, None)
            else:
                found[row.path] = row.mode, row.oid
        return found

    def ls_files(self, *paths: str, options: Sequence[str] = ()) -> list[IndexEntry]:
        """Return what the index holds at some paths, or below them; all of it without any."""
        answer = self.run("ls-files", "--stage", "-t", "-z", *options, "--", *paths)
        found = []
        for row in answer.split(b"\0")[:-1]:
            meta, _tab, raw = row.partition(b"\t")
            tag, mode, oid, stage = meta.decode().split()
            found.append(IndexEntry(os.fsdecode(raw), mode, oid, stage, tag == "S"))
        return found

    def status(
        self, *paths: str, untracked: str = "all", timeout_s: float = TIMEOUT_S
    ) -> list[tuple[str, str]]:
        """Return the two letters and the path of each file that differs from HEAD or is new.

        With `normal` a new directory stands for all that is in it.
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
        """Return what `diff-tree`, `diff-index` or `diff-files` with these arguments lists."""
        command, *rest = args
        answer = self.run(command, "--raw", "-z", "--no-abbrev", *rest, env=env)
        return [change for _title, change in _changes(answer)]

    def log_raw(
        self,
        *args: str,
        stdin: bytes | None = None,
        is_wanted: Callable[[str], bool] | None = None,
    ) -> Iterator[tuple[str, RawChange]]:
        """Yield each file that commits changed, with the title of its commit, in git's order.

        The command is `log`, whose `--format` makes the title, or `diff-tree --stdin`, whose title
        is the commit. One that changed nothing is left out. `is_wanted` is asked about the path of
        each file that was not renamed.
        """
        command, *rest = args
        options = ("--raw", "-z", "--no-abbrev", "--no-ext-diff")
        return _changes(self.run(command, *options, *rest, stdin=stdin), is_wanted)

    def log_names(
        self, *args: str, env: Mapping[str, str] | None = None
    ) -> list[tuple[str, list[str]]]:
        """Return each commit that `log` lists, as `title` formats it, with the files it changed.

        `--format` must begin with `%x00`, which no path holds, so that titles are known.
        """
        found: list[tuple[str, list[str]]] = []
        is_title = False
        answer = self.run("log", "--name-only", "-z", "--no-ext-diff", *args, env=env)
        for token in answer.split(b"\0"):
            if is_title:
                found.append((token.decode(), []))
            elif token:
                names = found[-1][1]
                names.append(os.fsdecode(token if names else token.removeprefix(b"\n")))
            is_title = not token
        return found

    def worktrees(self) -> dict[str, str]:
        """Return the worktree in which each branch is checked out, by the full name of the ref."""
        found = {}
        place = ""
        for row in self.rows("worktree", "list", "--porcelain", "-z"):
            key, _space, value = os.fsdecode(row).partition(" ")
            if key == "worktree":
                place = value
            elif key == "branch":
                found[value] = place
        return found

    def merge_texts(self, base: bytes, ours: bytes, theirs: bytes) -> tuple[bytes, bool]:
        """Merge three texts line by line; return the result, and whether nothing conflicts in it.

        What conflicts is between markers that name the sides `ours` and `theirs`.

        Raises:
            GitError: they are no text, or larger than git merges.
        """
        import tempfile  # only merges need it

        texts = {"ours": ours, "base": base, "theirs": theirs}
        with tempfile.TemporaryDirectory(prefix="memtool-merge-") as folder:
            for name, text in texts.items():
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(text)
            labels = [part for name in texts for part in ("-L", name)]
            places = [os.path.join(folder, name) for name in texts]
            args = ("merge-file", "-p", *labels, *places)
            done = self._run(args)
        if not 0 <= done.status <= _MOST_CONFLICTS:
            raise self.failed(args, done.status, done.stderr)
        return done.stdout, done.status == 0

    def rev(self, revision: str) -> str:
        """Return the full id of the commit that a revision names.

        Raises:
            MemtoolError: it names none.
        """
        # --end-of-options: a revision such as `--output=x` is a name, never an option.
        answer = self.run(
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            f"{revision}^{{commit}}".replace("\0", "\n"),  # no argument holds NUL, no name either
            allowed=(0, 1, 128),
        )
        if answer.count(b"\n") != 1 or answer.startswith(b"^"):
            is_cut = self.line("rev-parse", "--is-shallow-repository") == "true"
            branch = self.line("symbolic-ref", "--quiet", "--short", "HEAD", allowed=(0, 1))
            here = f"the branch here is {branch}; " if branch and branch != revision else ""
            raise MemtoolError(
                f"there is no revision {revision!r}" + (" in this shallow clone" if is_cut else ""),
                hint="git fetch --unshallow brings its history; in CI, fetch-depth: 0"
                if is_cut
                else f"{here}git log --oneline --all shows the commits of this clone",
                code="unknown-revision",
            )
        return answer.decode().strip()

    def head(self) -> str:
        """Return the id of the commit that is checked out; empty before the first one."""
        return self.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}", allowed=(0, 1))

    def blobs(self, oids: Sequence[str], most: int) -> Iterator[bytes]:
        """Yield the content of each blob, in order. Raises GitError where one is missing.

        A blob of more than `most` bytes is never loaded: `most + 1` zeros stand for it.
        """
        if self._objects is not None:
            yield from self._objects.blobs(oids, most)
            return

        with Objects(self) as objects:
            yield from objects.blobs(oids, most)

    def infos(self, names: Sequence[str]) -> list[tuple[str, str, int] | None]:
        """Return id, type and size of each object, None for what is not there.

        A name may be anything that git knows objects by, without a line feed.
        """
        if self._objects is not None:
            return self._objects.infos(names)

        with Objects(self) as objects:
            return objects.infos(names)

    def present(self) -> frozenset[str]:
        """Return the ids of all objects that are here; where some are absent nothing is fetched."""
        answer = self.run("cat-file", "--batch-check=%(objectname)", "--batch-all-objects")
        return frozenset(answer.decode().split())

    def reading(self) -> Objects:
        """Return a context in which one process of git answers every `blobs`; for one thread."""
        self._objects = Objects(self, self._end_reading)
        return self._objects

    def _end_reading(self) -> None:
        self._objects = None

    def started(self, *args: str) -> Child:
        """Start git, to be asked while it runs. Raises MemtoolError where that is impossible."""
        from memtool.store import process

        try:
            return process.Child(self._argv(args, HARDENING), self.env)
        except OSError as error:
            raise unstarted(args[0], error) from None

    def failed(self, args: Sequence[str], status: int, stderr: bytes) -> MemtoolError:
        """Return why git refused."""
        if not os.path.isdir(self.directory):
            return MemtoolError(f"there is no directory {self.directory}", code="git")
        return GitError(args, status, stderr)

    def _argv(self, args: Sequence[str], settings: Mapping[str, str]) -> list[str]:
        given = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        return ["git", "-C", self.directory, "--no-pager", *given, *args]


def _changes(
    answer: bytes, is_wanted: Callable[[str], bool] | None = None
) -> Iterator[tuple[str, RawChange]]:
    """Yield the rows of `--raw -z`, each with the last title before it.

    `:modes blobs status`, with one colon, mode and blob more for each parent beyond the first;
    then the path, and a second one after a rename or a copy.
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


def unstarted(verb: str, error: OSError, timeout_s: float = TIMEOUT_S) -> MemtoolError:
    """Return why git could not be run to its end."""
    if isinstance(error, FileNotFoundError):
        return MemtoolError("git is not installed", hint="install git 2.38 or newer", code="git")
    if isinstance(error, TimeoutError):
        return MemtoolError(
            f"git {verb} did not answer within {timeout_s:.0f} s",
            hint="git status shows whether git waits there too, as it does for a pipe in the place "
            "of a .gitignore or .gitattributes",
            code="git",
        )
    # such as an argument that is too long for the system
    reason = reason_of(error)
    return MemtoolError(f"git {verb} cannot be started: {reason}", code="git")


class Objects:
    """The objects of a repository, by one `git cat-file` that runs until the context ends.

    It is started by the first question; `over` is called at the end.
    """

    def __init__(self, git: Git, over: Callable[[], None] = lambda: None) -> None:
        self._git = git
        self._over = over
        self._child: Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._over()
        if self._child is not None:
            self._child.close()
            self._child = None

    def infos(self, names: Sequence[str]) -> list[tuple[str, str, int] | None]:
        """Return ids, types and sizes as `Git.infos` does."""
        if not names:
            return []
        asked = "".join(f"info {name}\n" for name in names).encode(errors="surrogateescape")
        found: list[tuple[str, str, int] | None] = []
        for row in self._ask(asked, lines=len(names)).splitlines():
            *_name, size = parts = row.decode(errors="replace").split(" ")
            is_there = size.isdigit() and len(parts) == 3
            found.append((parts[0], parts[1], int(size)) if is_there else None)
        return found

    def blobs(self, oids: Sequence[str], most: int) -> Iterator[bytes]:
        """Yield contents as `Git.blobs` does."""
        infos = self.infos(oids)
        sizes = []
        asked = []
        length = 0
        for oid, info in zip(oids, infos, strict=True):
            if info is None:
                raise GitError(("cat-file",), 1, f"object {oid} is missing".encode())
            sizes.append(info[2])
            if info[2] <= most:
                asked.append(f"contents {oid}\n")
                length += len(f"{info[0]} {info[1]} {info[2]}\n") + info[2] + 1
        answer = self._ask("".join(asked).encode(), size=length) if asked else b""
        position = 0
        for size in sizes:
            if size > most:
                yield bytes(most + 1)
                continue
            start = answer.index(b"\n", position) + 1
            yield answer[start : start + size]
            position = start + size + 1

    def _ask(self, question: bytes, *, lines: int = 0, size: int = 0) -> bytes:
        if self._child is None:
            self._child = self._git.started("cat-file", "--batch-command", "--buffer")
        try:
            return self._child.ask(
                question + b"flush\n", lines=lines, size=size, timeout_s=TIMEOUT_S
            )
        except EOFError as error:
            raise self._git.failed(("cat-file",), 1, str(error).encode()) from None
        except TimeoutError as error:
            self._child.kill()
            raise unstarted("cat-file", error) from None
