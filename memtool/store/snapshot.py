"""Snapshots: the memory files of a worktree, an index or a commit, listed with their blob ids."""

from __future__ import annotations

import errno
import os

from memtool.errors import reason_of
from memtool.store.files import TEMP_PREFIX, read_regular, reason
from memtool.store.git import LINKS, IndexEntry, TreeEntry
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Literal

    from memtool.memory.schema import Problem
    from memtool.store.repository import Repository

    Kind = Literal["worktree", "index", "commit"]


_FEW_PATHS = 50
"""Paths that git is asked about one by one."""
_MAX_DEPTH = 12
_EMPTY_BLOBS = frozenset(
    {
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
        "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
    }
)
_INTENT_TO_ADD = 1 << 29  # CE_INTENT_TO_ADD in git's read-cache.h


class Entry(Value):
    """One file that may be a memory. `oid` is its blob, empty for a file of the worktree."""

    path: str
    oid: str
    mode: str


class Location(Value):
    """Where the memory files of a tree are. `name` is `worktree`, `index` or a commit id."""

    repository: Repository
    directory: str
    kind: Kind
    name: str

    def list_files(self) -> Snapshot:
        """List the files that are there now."""
        revisions = {"worktree": None, "index": ":index", "commit": self.name}
        return take(self.repository, self.directory, revisions[self.kind])


class Snapshot(Location):
    """The memory files of one tree at one instant, sorted by their path, relative to the top.

    Problems are files that a memory tree must not hold, such as symbolic links; they are never
    opened.
    """

    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...]

    def read(self, known: Collection[str] = ()) -> Iterator[tuple[Entry, bytes | Problem]]:
        """Yield each entry with its bytes, or with the problem that kept them from being read.

        Those with a path that is `known` are left out.
        """
        worktree = [entry for entry in self.entries if not entry.oid]
        ends = LineEnds(self.repository, self.directory)
        for entry in worktree:
            yield entry, ends.read_file(entry.path)
        stored = [one for one in self.entries if one.oid and one.path not in known]
        if not stored:
            return
        from memtool.memory.document import MAX_BYTES

        blobs = self.repository.git.blobs([entry.oid for entry in stored], MAX_BYTES)
        yield from zip(stored, blobs, strict=True)


def is_memory_path(path: str, directory: str) -> bool:
    """Tell whether a path is where a memory may be: `.md` below the directory, no `_` or README."""
    return path.startswith(directory + "/") and _is_memory_name(path.rpartition("/")[2])


def _is_memory_name(name: str) -> bool:
    return name.endswith(".md") and not name.startswith(("_", "README", TEMP_PREFIX))


def take(repository: Repository, directory: str, at: str | None) -> Snapshot:
    """Return the files of the worktree, of git's index (`:index`) or of a revision.

    Raises:
        MemtoolError: the revision names no commit, or there is no worktree.
    """
    if at == ":index":
        return of_index(repository, directory)
    if at is not None:
        return of_commit(repository, directory, at)
    return of_worktree(repository, directory)


def of_worktree(repository: Repository, directory: str) -> Snapshot:
    """Take the files on disk. Sparse checkouts get the files they left out from the index."""
    repository.refuse_bare("add --at REV to read the memories of a commit, such as --at HEAD")
    entries: list[Entry] = []
    problems: list[Problem] = []
    parts = directory.split("/")
    above = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    link = next((p for p in above if os.path.islink(os.path.join(repository.top, p))), None)
    if link is None:
        _scan(repository.top, directory, entries, problems, 0)
        hidden = ignored(repository, directory, [entry.path for entry in entries])
        entries = [entry for entry in entries if entry.path not in hidden]
        problems.extend(map(not_reviewed, sorted(hidden)))
    else:
        problems.append(not_a_file(link))
    if os.path.exists(os.path.join(repository.git_dir, "info", "sparse-checkout")):
        there = {entry.path for entry in entries}
        entries.extend(
            Entry(row.path, row.oid, row.mode)
            for row in repository.git.ls_files(directory)
            if row.is_skipped and is_memory_path(row.path, directory) and row.path not in there
        )
    return _snapshot(repository, directory, "worktree", "worktree", entries, problems)


def ignored(repository: Repository, directory: str, paths: Sequence[str]) -> frozenset[str]:
    """Return which of some paths in a directory git ignores; what is tracked is never ignored."""
    if not paths:
        return frozenset()
    where = paths if len(paths) <= _FEW_PATHS else (directory,)
    options = ("--others", "--ignored", "--exclude-standard", "-z")
    return frozenset(repository.git.names("ls-files", *options, "--", *where)).intersection(paths)


def not_reviewed(path: str) -> Problem:
    """Return the problem of a file that git ignores: it would be shown, and never reviewed."""
    message = "git ignores it, so nobody would see it in a review"
    hint = f"git check-ignore -v {path} names the rule: take it out, or remove the file"
    return problem_at(path, 1, "ignored", message, hint)


def of_index(repository: Repository, directory: str) -> Snapshot:
    """Take what git's index holds: exactly what `git commit` would commit."""
    return _listed(repository, directory, "index", "index", repository.git.ls_files(directory))


def of_commit(repository: Repository, directory: str, revision: str) -> Snapshot:
    """Take the tree of a commit. Raises MemtoolError where the revision names none."""
    commit = repository.git.rev(revision)
    listed = repository.git.ls_tree(commit, directory)
    return _listed(repository, directory, "commit", commit, listed)


def _listed(
    repository: Repository,
    directory: str,
    kind: Kind,
    name: str,
    listed: Iterable[TreeEntry | IndexEntry],
) -> Snapshot:
    """Return the snapshot of what git lists."""
    entries: dict[str, Entry] = {}
    problems = []
    for row in listed:
        path = row.path
        if row.mode in LINKS:
            problems.append(not_a_file(path))
        elif isinstance(row, IndexEntry) and row.stage != "0":
            problems.append(unmerged(path))
        elif kind == "index" and row.oid in _EMPTY_BLOBS and _is_intent(repository, path):
            continue
        elif is_memory_path(path, directory):
            entries.setdefault(path, Entry(path, row.oid, row.mode))
    return _snapshot(repository, directory, kind, name, list(entries.values()), problems)


def _snapshot(
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
    """Collect files below a folder, following no link."""
    names, below = list_folder(top, folder, depth, problems)
    entries.extend(Entry(f"{folder}/{name}", "", "") for name in names)
    for name in below:
        _scan(top, f"{folder}/{name}", entries, problems, depth + 1)


def list_folder(
    top: str, folder: str, depth: int, problems: list[Problem]
) -> tuple[list[str], list[str]]:
    """Return the names of the files that may be memories, and of the folders, both sorted.

    `depth` is 0 for the memory directory. What must not lie there is added to the problems.
    """
    files: list[str] = []
    folders: list[str] = []
    try:
        found = sorted(os.scandir(os.path.join(top, folder)), key=lambda item: item.name)
    except FileNotFoundError:
        found = []
    except OSError as error:
        problems.append(problem_at(folder, 0, "unreadable", reason_of(error)))
        found = []
    for item in found:
        path = f"{folder}/{item.name}"
        if item.is_symlink():
            problems.append(not_a_file(path))
        elif item.is_dir(follow_symlinks=False):
            if item.name == ".git" or depth >= _MAX_DEPTH:
                problems.append(problem_at(path, 0, "unreadable", "no memory lies this deep"))
            else:
                folders.append(item.name)
        elif _is_memory_name(item.name):
            if item.is_file(follow_symlinks=False):
                files.append(item.name)
            else:
                problems.append(not_a_file(path))
    return files, folders


def _is_intent(repository: Repository, path: str) -> bool:
    """Tell whether `git add --intent-to-add` made an empty entry, which no commit takes along."""
    shown = repository.git.run("ls-files", "--debug", "--", path)
    flags = int(shown.rpartition(b"flags: ")[2].split()[0], 16)
    return bool(flags & _INTENT_TO_ADD)


def unmerged(path: str) -> Problem:
    """Return the problem of a file whose merge is not finished."""
    return problem_at(
        path,
        0,
        "conflict-markers",
        "a merge is unfinished here",
        f"memtool resolve settles keys such as status; else keep one side, then git add {path}",
    )


def not_a_file(path: str) -> Problem:
    """Return the problem of a link, device or submodule in the memory tree."""
    return problem_at(
        path,
        0,
        "symlink",
        "it is a link or device, not a file",
        f"git rm {path}, and write the memory as a file",
    )


class LineEnds:
    """What git makes of line ends when files are added, asked once and only where one has CRLF.

    A checkout with `core.autocrlf`, or with the attribute `text`, has CRLF on disk and LF in its
    blobs. Memories are read as git would store them, so that they are the same in every clone.
    """

    def __init__(self, repository: Repository, directory: str) -> None:
        self._repository = repository
        self._directory = directory

    def read_file(self, path: str) -> bytes | Problem:
        """Return the bytes of a file as git would store them, or the problem that kept them."""
        data = read_file(self._repository.top, path)
        if isinstance(data, bytes) and b"\r\n" in data and path in self._converted:
            return data.replace(b"\r\n", b"\n")
        return data

    @cached_property
    def _converted(self) -> frozenset[str]:
        """The paths of which git drops each CR before LF: not where the blob has some already."""
        git = self._repository.git
        setting = git.line("config", "--get", "core.autocrlf", allowed=(0, 1)).lower()
        is_usual = setting not in ("", "false", "no", "off", "0")
        found = set()
        for row in git.rows(
            "ls-files", "--eol", "-z", "--cached", "--others", "--", self._directory
        ):
            said, _tab, name = row.partition(b"\t")
            stored, _here, *attributes = said.decode().split()
            text = attributes[0].removeprefix("attr/") if attributes else ""
            has_crlf = stored in ("i/crlf", "i/mixed")
            if text == "text" or (
                text in ("", "text=auto") and not has_crlf and (is_usual or text == "text=auto")
            ):
                found.add(os.fsdecode(name))
        return frozenset(found)


def read_file(top: str, path: str) -> bytes | Problem:
    """Return the bytes of a file of the worktree, or the problem that kept it from being read."""
    from memtool.memory.document import MAX_BYTES  # reading a memory needs it anyway

    try:
        return read_regular(f"{top}/{path}", MAX_BYTES + 1)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return not_a_file(path)
        return problem_at(
            path,
            0,
            "unreadable",
            f"it cannot be read: {reason(error)}",
            "give yourself permission to read it",
        )


def blob_hash(object_format: str) -> Callable[[bytes], str]:
    """Return the function that names bytes as git does; `.memory` is never filtered."""
    import hashlib

    digest = getattr(hashlib, object_format)  # `hashlib.new` looks it up each time

    def blob_id(data: bytes) -> str:
        found: str = digest(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()
        return found

    return blob_id


def problem_at(
    path: str, line: int, code: str, message: str, hint: str = "", id_: str = ""
) -> Problem:
    """Return a problem of a file."""
    from memtool.memory.schema import Problem  # a warm search meets none

    return Problem(path, line, code, message, hint, id_)
