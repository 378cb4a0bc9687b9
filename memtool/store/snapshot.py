"""Snapshots: the memory files of a worktree, of git's index or of a commit, with their blob ids."""

from __future__ import annotations

import errno
import os

from memtool.errors import find_reason
from memtool.store.files import TEMP_PREFIX, describe_error, read_regular
from memtool.store.git import LINK_MODES, IndexEntry, TreeEntry
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Literal

    from memtool.memory.schema import Problem
    from memtool.store.repository import Repository

    Kind = Literal["worktree", "index", "commit"]


_MAX_LISTED_PATHS = 50
"""Up to this many paths are passed to git one by one."""
_MAX_DEPTH = 12
_EMPTY_BLOBS = frozenset(
    {
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
        "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
    }
)
_INTENT_TO_ADD = 1 << 29  # CE_INTENT_TO_ADD in git's read-cache.h


class Entry(Value):
    """One file that may be a memory. `oid` is its blob id, empty for a file of the worktree."""

    path: str
    oid: str
    mode: str


class Location(Value):
    """The location of a tree's memory files. `name` is `worktree`, `index` or a commit id."""

    repository: Repository
    directory: str
    kind: Kind
    name: str

    def list_files(self) -> Snapshot:
        """List the current files."""
        revisions = {"worktree": None, "index": ":index", "commit": self.name}
        return take_snapshot(self.repository, self.directory, revisions[self.kind])


class Snapshot(Location):
    """The memory files of one tree at one moment, sorted by path (relative to the top).

    Problems are files that are not allowed in a memory tree, such as symbolic links; they are never
    opened.
    """

    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...]

    def read(self, skipped_paths: Collection[str] = ()) -> Iterator[tuple[Entry, bytes | Problem]]:
        """Yield each entry with its content, or with the problem why it could not be read.

        Stored entries whose path is in `skipped_paths` are left out.
        """
        worktree = [entry for entry in self.entries if not entry.oid]
        ends = LineEnds(self.repository, self.directory)
        for entry in worktree:
            yield entry, ends.read_file(entry.path)
        stored = [entry for entry in self.entries if entry.oid and entry.path not in skipped_paths]
        if not stored:
            return
        from memtool.memory.document import MAX_BYTES

        blobs = self.repository.git.blobs([entry.oid for entry in stored], MAX_BYTES)
        yield from zip(stored, blobs, strict=True)


def is_memory_path(path: str, directory: str) -> bool:
    """Return whether a path can be a memory: `.md` below the directory, not `_…` or README."""
    return path.startswith(directory + "/") and _is_memory_name(path.rpartition("/")[2])


def _is_memory_name(name: str) -> bool:
    return name.endswith(".md") and not name.startswith(("_", "README", TEMP_PREFIX))


def take_snapshot(repository: Repository, directory: str, at: str | None) -> Snapshot:
    """List the files of the worktree, of git's index (`:index`) or of a revision.

    Raises:
        MemtoolError: the revision does not name a commit, or there is no worktree.
    """
    if at == ":index":
        return snapshot_index(repository, directory)
    if at is not None:
        return snapshot_commit(repository, directory, at)
    return snapshot_worktree(repository, directory)


def snapshot_worktree(repository: Repository, directory: str) -> Snapshot:
    """List the files on disk. Files that a sparse checkout leaves out come from the index."""
    repository.refuse_bare("add --at REV to read the memories of a commit, such as --at HEAD")
    entries: list[Entry] = []
    problems: list[Problem] = []
    parts = directory.split("/")
    above = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    link = next(
        (parent for parent in above if os.path.islink(os.path.join(repository.top, parent))), None
    )
    if link is None:
        _scan(repository.top, directory, entries, problems, 0)
        hidden = find_ignored(repository, directory, [entry.path for entry in entries])
        entries = [entry for entry in entries if entry.path not in hidden]
        problems.extend(map(build_ignored_problem, sorted(hidden)))
    else:
        problems.append(build_link_problem(link))
    if os.path.exists(os.path.join(repository.git_dir, "info", "sparse-checkout")):
        present_paths = {entry.path for entry in entries}
        entries.extend(
            Entry(row.path, row.oid, row.mode)
            for row in repository.git.ls_files(directory)
            if row.is_skipped
            and is_memory_path(row.path, directory)
            and row.path not in present_paths
        )
    return _build_snapshot(repository, directory, "worktree", "worktree", entries, problems)


def find_ignored(repository: Repository, directory: str, paths: Sequence[str]) -> frozenset[str]:
    """Return the paths that git ignores, among `paths` in a directory; never tracked files."""
    if not paths:
        return frozenset()
    where = paths if len(paths) <= _MAX_LISTED_PATHS else (directory,)
    options = ("--others", "--ignored", "--exclude-standard", "-z")
    return frozenset(repository.git.names("ls-files", *options, "--", *where)).intersection(paths)


def build_ignored_problem(path: str) -> Problem:
    """Build the problem of a file that git ignores: it would be shown, but never reviewed."""
    message = "git ignores it, so nobody would see it in a review"
    hint = f"git check-ignore -v {path} names the rule: take it out, or remove the file"
    return build_problem(path, 1, "ignored", message, hint)


def snapshot_index(repository: Repository, directory: str) -> Snapshot:
    """List the files in git's index: exactly those that `git commit` would commit."""
    return _build_from_rows(
        repository, directory, "index", "index", repository.git.ls_files(directory)
    )


def snapshot_commit(repository: Repository, directory: str, revision: str) -> Snapshot:
    """List the files of a commit. Raises MemtoolError if the revision does not name one."""
    commit = repository.git.resolve(revision)
    listed = repository.git.ls_tree(commit, directory)
    return _build_from_rows(repository, directory, "commit", commit, listed)


def _build_from_rows(
    repository: Repository,
    directory: str,
    kind: Kind,
    name: str,
    rows: Iterable[TreeEntry | IndexEntry],
) -> Snapshot:
    entries: dict[str, Entry] = {}
    problems = []
    for row in rows:
        path = row.path
        if row.mode in LINK_MODES:
            problems.append(build_link_problem(path))
        elif isinstance(row, IndexEntry) and row.stage != "0":
            problems.append(build_unmerged_problem(path))
        elif kind == "index" and row.oid in _EMPTY_BLOBS and _is_intent(repository, path):
            continue
        elif is_memory_path(path, directory):
            entries.setdefault(path, Entry(path, row.oid, row.mode))
    return _build_snapshot(repository, directory, kind, name, list(entries.values()), problems)


def _build_snapshot(
    repository: Repository,
    directory: str,
    kind: Kind,
    name: str,
    entries: list[Entry],
    problems: list[Problem],
) -> Snapshot:
    return Snapshot(
        repository=repository,
        directory=directory,
        kind=kind,
        name=name,
        entries=tuple(sorted(entries, key=lambda entry: entry.path)),
        problems=tuple(sorted(problems, key=lambda problem: problem.path)),
    )


def _scan(top: str, folder: str, entries: list[Entry], problems: list[Problem], depth: int) -> None:
    """Collect files below a folder without following links."""
    names, below = list_folder(top, folder, depth, problems)
    entries.extend(Entry(f"{folder}/{name}", "", "") for name in names)
    for name in below:
        _scan(top, f"{folder}/{name}", entries, problems, depth + 1)


def list_folder(
    top: str, folder: str, depth: int, problems: list[Problem]
) -> tuple[list[str], list[str]]:
    """Return the names of possible memory files and of folders, both sorted.

    `depth` is 0 for the memory directory. Files that are not allowed are added to `problems`.
    """
    files: list[str] = []
    folders: list[str] = []
    try:
        items = sorted(os.scandir(os.path.join(top, folder)), key=lambda item: item.name)
    except FileNotFoundError:
        items = []
    except OSError as error:
        problems.append(build_problem(folder, 0, "unreadable", find_reason(error)))
        items = []
    for item in items:
        path = f"{folder}/{item.name}"
        if item.is_symlink():
            problems.append(build_link_problem(path))
        elif item.is_dir(follow_symlinks=False):
            if item.name == ".git" or depth >= _MAX_DEPTH:
                problems.append(build_problem(path, 0, "unreadable", "no memory lies this deep"))
            else:
                folders.append(item.name)
        elif _is_memory_name(item.name):
            if item.is_file(follow_symlinks=False):
                files.append(item.name)
            else:
                problems.append(build_link_problem(path))
    return files, folders


def _is_intent(repository: Repository, path: str) -> bool:
    """Return whether an entry is from `git add --intent-to-add`, which is never committed."""
    shown = repository.git.run("ls-files", "--debug", "--", path)
    flags = int(shown.rpartition(b"flags: ")[2].split()[0], 16)
    return bool(flags & _INTENT_TO_ADD)


def build_unmerged_problem(path: str) -> Problem:
    """Build the problem of a file in an unfinished merge."""
    return build_problem(
        path,
        0,
        "conflict-markers",
        "a merge is unfinished here",
        f"memtool resolve settles keys such as status; else keep one side, then git add {path}",
    )


def build_link_problem(path: str) -> Problem:
    """Build the problem of a link, device or submodule in the memory tree."""
    return build_problem(
        path,
        0,
        "symlink",
        "it is a link or device, not a file",
        f"git rm {path}, and write the memory as a file",
    )


class LineEnds:
    """Reads files with the line ends that git would store.

    A checkout with `core.autocrlf`, or with the attribute `text`, has CRLF on disk and LF in its
    blobs. Normalised memories are the same in every clone. git is asked once, and only if a file
    has CRLF.
    """

    def __init__(self, repository: Repository, directory: str) -> None:
        self._repository = repository
        self._directory = directory

    def read_file(self, path: str) -> bytes | Problem:
        """Read a file as git would store it; return a problem if it cannot be read."""
        data = read_file(self._repository.top, path)
        if isinstance(data, bytes) and b"\r\n" in data and path in self._normalised_paths:
            return data.replace(b"\r\n", b"\n")
        return data

    @cached_property
    def _normalised_paths(self) -> frozenset[str]:
        """Paths that git normalises from CRLF (unless the blob already contains CRLF)."""
        git = self._repository.git
        setting = git.line("config", "--get", "core.autocrlf", allowed=(0, 1)).lower()
        is_usual = setting not in ("", "false", "no", "off", "0")
        paths = set()
        for row in git.rows(
            "ls-files", "--eol", "-z", "--cached", "--others", "--", self._directory
        ):
            details, _tab, name = row.partition(b"\t")
            stored, _here, *attributes = details.decode().split()
            text = attributes[0].removeprefix("attr/") if attributes else ""
            has_crlf = stored in ("i/crlf", "i/mixed")
            if text == "text" or (
                text in ("", "text=auto") and not has_crlf and (is_usual or text == "text=auto")
            ):
                paths.add(os.fsdecode(name))
        return frozenset(paths)


def read_file(top: str, path: str) -> bytes | Problem:
    """Read a file of the worktree; return a problem if it cannot be read."""
    from memtool.memory.document import MAX_BYTES  # imported for reading a memory anyway

    try:
        return read_regular(f"{top}/{path}", MAX_BYTES + 1)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return build_link_problem(path)
        return build_problem(
            path,
            0,
            "unreadable",
            f"it cannot be read: {describe_error(error)}",
            "give yourself permission to read it",
        )


def make_blob_hash(object_format: str) -> Callable[[bytes], str]:
    """Return the function that computes git's blob ids; no filters apply to memories."""
    import hashlib

    digest = getattr(hashlib, object_format)  # `hashlib.new` looks it up each time

    def blob_id(data: bytes) -> str:
        oid: str = digest(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()
        return oid

    return blob_id


def build_problem(
    path: str, line: int, code: str, message: str, hint: str = "", id_: str = ""
) -> Problem:
    """Build a problem of a file."""
    from memtool.memory.schema import Problem  # rarely needed

    return Problem(path, line, code, message, hint, id_)
