"""Snapshots and trees: the memory files of a worktree, an index or a commit, as listed and as read.

A snapshot lists files with their blob ids. A tree holds the memories of one snapshot, with their
lineage and with what is wrong. Versions are single files of a tree or a commit, for comparisons.
"""

from __future__ import annotations

import errno
import os

from memtool.errors import MemtoolError, reason_of
from memtool.memory import lifecycle
from memtool.memory.changes import Version, stem
from memtool.memory.fields import DEFAULT_CATEGORIES
from memtool.memory.lineage import Lineage
from memtool.memory.memory import as_text
from memtool.store.files import TEMP_PREFIX, read_regular, reason
from memtool.store.git import LINKS, IndexEntry, TreeEntry
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Literal, Protocol

    from memtool.memory.fields import Category
    from memtool.memory.memory import Memory
    from memtool.memory.schema import Problem
    from memtool.store.git import Touch
    from memtool.store.repository import Repository

    Kind = Literal["worktree", "index", "commit"]

    class Masking(Protocol):
        """What takes secrets out of memories and problems that are to be shown."""

        def read(self, memory: Memory, data: bytes, oid: str) -> Memory:
            """Return a memory that was read from some bytes, masked."""

        def problem(self, problem: Problem) -> Problem:
            """Return a problem with a masked message."""


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
    return _problem(path, 1, "ignored", message, hint)


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
        problems.append(_problem(folder, 0, "unreadable", reason_of(error)))
        found = []
    for item in found:
        path = f"{folder}/{item.name}"
        if item.is_symlink():
            problems.append(not_a_file(path))
        elif item.is_dir(follow_symlinks=False):
            if item.name == ".git" or depth >= _MAX_DEPTH:
                problems.append(_problem(path, 0, "unreadable", "no memory lies this deep"))
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
    return _problem(
        path,
        0,
        "conflict-markers",
        "a merge is unfinished here",
        f"memtool resolve settles keys such as status; else keep one side, then git add {path}",
    )


def not_a_file(path: str) -> Problem:
    """Return the problem of a link, device or submodule in the memory tree."""
    return _problem(
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
        return _problem(
            path,
            0,
            "unreadable",
            f"it cannot be read: {reason(error)}",
            "give yourself permission to read it",
        )


class Record(Value):
    """A memory and where it lies: its path from the top, and the id of its bytes as a blob."""

    memory: Memory
    path: str
    oid: str

    @property
    def id(self) -> str:
        return self.memory.id


class Tree:
    """The memories of a snapshot by id. Of several files with one id, the first by path counts.

    Each kind of tree says how it holds them: `records`, `problems` and `get`. All else follows
    from these; a tree with columns (see `index.reader`) answers it without opening the memories.
    """

    is_partial = False
    """Whether only some of the memories are here, until there is an index of all."""

    def __init__(self, location: Location, categories: Mapping[str, Category]) -> None:
        self.location = location
        self.categories = categories

    @property
    def records(self) -> tuple[Record, ...]:
        """All memories, by id and then by path."""
        raise NotImplementedError

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with single files, by path, line and code."""
        raise NotImplementedError

    def get(self, id_: str) -> Record | None:
        """Return the memory with an id."""
        raise NotImplementedError

    def __getitem__(self, id_: str) -> Record:
        record = self.get(id_)
        if record is None:
            raise KeyError(id_)
        return record

    def __contains__(self, id_: str) -> bool:
        return self.get(id_) is not None

    @property
    def cache_dir(self) -> str:
        """Where to keep what follows from these memories, empty for nowhere."""
        return ""

    @property
    def count(self) -> int:
        """How many memories there are."""
        return len(self.records)

    @cached_property
    def lineage(self) -> Lineage:
        """Which of these memories supersedes which."""
        return Lineage(record.memory for record in self.records)

    @cached_property
    def ids(self) -> list[str]:
        """The ids of all memories, sorted, each once."""
        return list(dict.fromkeys(record.id for record in self.records))

    @cached_property
    def blobs(self) -> dict[str, str]:
        """The blob of each memory by its path."""
        return {record.path: record.oid for record in self.records}

    @property
    def moments(self) -> list[int]:
        """The second at which each memory was written, in any order."""
        return [record.memory.timestamp for record in self.records]

    def count_by(self, key: str) -> dict[str, int]:
        """Return how many memories have each value of `type`, `category` or `status`, sorted."""
        found: dict[str, int] = {}
        for record in self.records:
            value = getattr(record.memory, key)
            found[value] = found.get(value, 0) + 1
        return dict(sorted(found.items()))

    def with_ids(self, ids: Collection[str]) -> list[Record]:
        """Return the memories with one of some ids, by id and then by path."""
        return [record for record in self.records if record.id in ids] if ids else []

    @property
    def pinned(self) -> list[Record]:
        """The pinned memories, by path."""
        found = self.of_kinds(lambda kind: kind.status == "pinned")
        firsts = (record for record in found if self[record.id].path == record.path)
        return sorted(firsts, key=lambda record: record.path)

    def state(self, record: Record, now: int) -> str:
        """Return the lifecycle state of a memory at a second, such as `alive`."""
        return lifecycle.state(record.memory, now, self.categories)

    def stored_text(self, record: Record) -> bytes:  # noqa: ARG002  # of an index
        """Return the text of a memory as terms (see `scoring.searchable`), empty if not stored."""
        return b""

    def is_due(self, record: Record, now: int) -> bool:
        """Tell whether a memory is due for review at a second."""
        return lifecycle.is_due(record.memory, now, self.categories)

    # In any order:

    def alive(self, now: int) -> list[Record]:
        """Return the memories that are alive at a second."""
        return [one for one in self.records if self.state(one, now) == lifecycle.ALIVE]

    def not_alive(self, now: int) -> list[Record]:
        """Return the memories that are not alive at a second."""
        return [one for one in self.records if self.state(one, now) != lifecycle.ALIVE]

    def due(self, now: int) -> list[Record]:
        """Return the memories that are due for review at a second."""
        return [one for one in self.records if self.is_due(one, now)]

    def written_after(self, second: int) -> list[Record]:
        """Return the memories that were written after a second."""
        return [one for one in self.records if one.memory.timestamp > second]

    def of_kinds(self, fits: Callable[[Memory], bool]) -> list[Record]:
        """Return the memories whose kind fits: what all of a kind have, see `index.memories`."""
        return [one for one in self.records if fits(one.memory)]

    def naming(self, id_: str) -> list[Record]:
        """Return every memory that names an id in one of its fields, and perhaps others."""
        return [one for one in self.records if _names(one.memory, id_)]

    def naming_files(self, fits: Callable[[str], bool]) -> list[Record]:
        """Return the memories that name a path that fits in `files` or as a source."""
        return [one for one in self.records if any(map(fits, one.memory.named_paths()))]

    def latest_of_kinds(self, fits: Callable[[Memory], bool]) -> Iterator[Record]:
        """Yield the memories whose kind fits, the newest first, each opened when it is taken."""
        yield from sorted(self.of_kinds(fits), key=newest)

    def find(self, wanted: str, *, by_words: bool = True) -> Record:
        """Return the memory with an id or a citation, or the only one that a part can mean.

        A part is the beginning of an id, or, unless `by_words` is off, words that it holds.

        Raises:
            MemtoolError: none does, or several do; the hint names them.
        """
        from memtool.memory import ids

        wanted = ids.without_commit(wanted)
        if wanted.startswith(self.location.directory + "/"):
            wanted = stem(wanted)
        if wanted in self:
            return self[wanted]
        broken = [p for p in self.problems if wanted and p.path.endswith(f"/{wanted}.md")]
        if broken:
            line = f"line {broken[0].line}, " if broken[0].line else ""
            raise MemtoolError(
                f"{broken[0].path} is not readable: {line}{broken[0].message}",
                hint=broken[0].hint,
                code=broken[0].code,
            )
        matches = ids.meant(wanted, self.ids, by_words=by_words)
        if len(matches) == 1:
            return self[matches[0]]
        if matches:
            shown = ", ".join(matches[:5]) + (", …" if len(matches) > 5 else "")
            how = "begin with" if matches[0].startswith(wanted) else "hold the words"
            raise MemtoolError(
                f"{len(matches)} memories {how} {wanted!r}",
                hint=f"name one: {shown}",
                code="ambiguous-id",
            )
        near = ids.nearest(wanted, self.ids)
        raise MemtoolError(
            f"no memory has the id {wanted!r}",
            hint=f"did you mean {' or '.join(near)}?" if near else "memtool list shows every id",
            code="unknown-id",
        )


class ReadTree(Tree):
    """The memories of a snapshot that was read as a whole."""

    def __init__(
        self,
        location: Location,
        records: Iterable[Record] = (),
        problems: Iterable[Problem] = (),
        categories: Mapping[str, Category] = DEFAULT_CATEGORIES,
    ) -> None:
        super().__init__(location, categories)
        self._records = tuple(sorted(records, key=lambda record: (record.id, record.path)))
        self._problems = tuple(problems)
        self._by_id: dict[str, Record] = {}
        for record in self._records:
            self._by_id.setdefault(record.id, record)

    @property
    def records(self) -> tuple[Record, ...]:
        return self._records

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self._problems

    def get(self, id_: str) -> Record | None:
        return self._by_id.get(id_)


def _names(memory: Memory, id_: str) -> bool:
    return any(id_ in as_text(value) for value in memory.fields.values())


def newest(record: Record) -> tuple[int, str]:
    """Return the key by which records come newest first."""
    return (-record.memory.timestamp, record.path)


def read_tree(
    snapshot: Snapshot,
    categories: Mapping[str, Category] = DEFAULT_CATEGORIES,
    as_of: int | None = None,
    mask: Masking | None = None,
    known: Mapping[str, Record] = {},
) -> ReadTree:
    """Read all memories of a snapshot. Files that are none become problems.

    `as_of` leaves out what was written after that second, as if it had not happened yet. `mask`
    takes secrets out of what is to be shown; without it memories are as they were written. `known`
    are files by path that somebody has read before, in the same way.
    """
    from memtool.memory import document  # a warm catalog reads no file
    from memtool.memory.schema import Problem
    from memtool.memory.three_way import divided

    records = [one for one in known.values() if as_of is None or one.memory.timestamp <= as_of]
    problems = list(snapshot.problems)
    hash_blob = blob_hash(snapshot.repository.object_format)
    read = document.Reader(categories).read
    for entry, data in snapshot.read(known):
        if isinstance(data, Problem):
            problems.append(data)
            continue
        try:
            memory = read(data, entry.path)
        except document.Unreadable as error:
            both = divided(data, entry.path, categories)
            faults = error.problems if both is None else [both.problem]
            problems.extend(faults if mask is None else map(mask.problem, faults))
            if both is None:
                continue
            memory = both.memory
        if as_of is None or memory.timestamp <= as_of:
            oid = entry.oid or hash_blob(data)
            seen = memory if mask is None else mask.read(memory, data, oid)
            records.append(Record(seen, entry.path, oid))
    firsts: dict[str, Record] = {}
    for record in sorted(records, key=lambda record: record.path):
        first = firsts.setdefault(record.id, record)
        if first is not record:
            problems += [duplicate(first, record), duplicate(record, first)]
    problems.sort(key=lambda problem: (problem.path, problem.line, problem.code))
    return ReadTree(snapshot, records, problems, categories)


def lineage_problems(tree: Tree, purged: Collection[str] = ()) -> list[Problem]:
    """Return circles and dangling ids (errors) and forks (warnings) as problems, by path.

    What was purged may be missing.
    """
    found = [
        _of(
            tree,
            id_,
            "cycle",
            f"it supersedes itself through {', '.join(cycle)}",
            "drop one supersedes of the circle",
        )
        for cycle in tree.lineage.cycles()
        for id_ in cycle
    ]
    found += [
        _of(
            tree,
            newer,
            "dangling",
            f"it supersedes {missing}, which is not here",
            f"git log --all -- '*{missing}.md' tells where it went",
        )
        for newer, missing in tree.lineage.dangling()
        if missing not in purged
    ]
    for fork in tree.lineage.forks():
        for head in fork.heads:
            problem = _of(
                tree,
                head,
                "fork",
                f"{' and '.join(fork.heads)} both replace {fork.ancestor}",
                f"memtool supersede {fork.heads[0]} TITLE --supersedes {fork.heads[1]}",
            )
            found.append(problem.replace(severity="warning"))
    return sorted(found, key=lambda problem: (problem.path, problem.code))


def _of(tree: Tree, id_: str, code: str, message: str, hint: str) -> Problem:
    return _problem(tree[id_].path, 1, code, message, hint, id_)


def duplicate(one: Record, other: Record) -> Problem:
    """Return the problem of a memory whose id another one has too."""
    return _problem(
        one.path,
        1,
        "duplicate-id",
        f"{other.path} has the same id {one.id}",
        "give one of them another id and file name",
        one.id,
    )


def blob_hash(object_format: str) -> Callable[[bytes], str]:
    """Return the function that names bytes as git does; `.memory` is never filtered."""
    import hashlib

    digest = getattr(hashlib, object_format)  # `hashlib.new` looks it up each time

    def blob_id(data: bytes) -> str:
        found: str = digest(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()
        return found

    return blob_id


def _problem(
    path: str, line: int, code: str, message: str, hint: str = "", id_: str = ""
) -> Problem:
    from memtool.memory.schema import Problem  # a warm search meets none

    return Problem(path, line, code, message, hint, id_)


ABSENT = "unknown: this partial clone does not hold it"
"""What stands for a blob that only the remote has."""

Stamp = tuple[str, str]
"""Path and blob id: what one version is made of."""


def of_blobs(
    repository: Repository, wanted: Iterable[Stamp], categories: Collection[str]
) -> dict[Stamp, Version]:
    """Read versions of memory files from their blobs, with one git process.

    Of what a partial clone does not hold nothing but the path is known.
    """
    from memtool.memory.document import MAX_BYTES

    stamps = sorted(set(wanted))
    absent: dict[Stamp, Version] = {}
    if stamps and repository.is_partial:
        here = repository.git.present()
        absent = {
            stamp: Version(stamp[0], None, ABSENT) for stamp in stamps if stamp[1] not in here
        }
        stamps = [stamp for stamp in stamps if stamp not in absent]
    blobs = repository.git.blobs([oid for _path, oid in stamps], MAX_BYTES)
    read = {
        stamp: of_bytes(data, stamp[0], categories)
        for stamp, data in zip(stamps, blobs, strict=True)
    }
    return read | absent


def of_stamps(
    repository: Repository,
    wanted: Iterable[Stamp],
    categories: Collection[str],
    held: Mapping[Stamp, Memory],
) -> dict[Stamp, Version]:
    """Return versions of memory files; those that a tree holds are not read again."""
    stamps = set(wanted)
    found = {stamp: Version(stamp[0], held[stamp]) for stamp in stamps & held.keys()}
    return found | of_blobs(repository, stamps - held.keys(), categories)


def stamps_of(touches: Iterable[Touch]) -> Iterator[Stamp]:
    """Yield what the files of a commit were and became."""
    for touch in touches:
        if touch.old_oid:
            yield touch.old_path, touch.old_oid
        if touch.oid:
            yield touch.path, touch.oid


def of_bytes(data: bytes, path: str, categories: Collection[str]) -> Version:
    """Read one version of a memory file."""
    from memtool.memory import document

    try:
        return Version(path, document.read(data, path, categories))
    except document.Unreadable as error:
        return Version(path, None, error.problems[0].message)


def of_tree(tree: Tree) -> tuple[Version, ...]:
    """Return every file of a tree, those that are not memories with their fault."""
    readable = tuple(Version(record.path, record.memory) for record in tree.records)
    return readable + _faulty(tree)


def between(
    old: Snapshot, new: Snapshot, categories: Collection[str]
) -> tuple[tuple[Version, ...], tuple[Version, ...]]:
    """Return what of one commit another no longer has as it was, and what it has instead.

    Only files that differ are read.
    """
    before = {(entry.path, entry.oid) for entry in old.entries}
    after = {(entry.path, entry.oid) for entry in new.entries}
    read = of_blobs(old.repository, before ^ after, categories)
    gone = tuple(read[stamp] for stamp in sorted(before - after))
    come = tuple(read[stamp] for stamp in sorted(after - before))
    return gone + _unopened(old), come + _unopened(new)


def called(
    taken: Snapshot, ids: Collection[str], categories: Collection[str]
) -> dict[str, Version]:
    """Read the memories of a commit that have one of some ids."""
    wanted = [(entry.path, entry.oid) for entry in taken.entries if stem(entry.path) in ids]
    read = of_blobs(taken.repository, wanted, categories) if wanted else {}
    return {read[stamp].id: read[stamp] for stamp in sorted(read)}


def uncommitted(
    tree: Tree, head: Snapshot | None, categories: Collection[str]
) -> tuple[tuple[Version, ...], tuple[Version, ...]]:
    """Return what of HEAD the worktree no longer has as it was, and what it has instead.

    Only files that differ are read from HEAD, which is None before the first commit.
    """
    stored = {entry.path: entry.oid for entry in head.entries} if head else {}
    present = tree.blobs
    changed = {path for path, oid in present.items() if stored.get(path) != oid}
    after = [
        Version(record.path, record.memory)
        for record in tree.with_ids({stem(path) for path in changed})
        if record.path in changed
    ]
    after.extend(_faulty(tree))
    gone = [(path, oid) for path, oid in stored.items() if present.get(path) != oid]
    before = of_blobs(tree.location.repository, gone, categories)
    links = _unopened(head) if head else ()
    return (*(before[stamp] for stamp in sorted(before)), *links), tuple(after)


def is_committed(tree: Tree, commit: str) -> bool:
    """Tell whether a commit holds exactly the memories of a tree, and no link or broken file."""
    taken = tree.location
    stored = taken.repository.git.blobs_below(commit, taken.directory)
    present = tree.blobs
    if any(stored.get(path) != oid for path, oid in present.items()):
        return False
    return not any(path not in present and is_memory_path(path, taken.directory) for path in stored)


def _unopened(taken: Snapshot) -> tuple[Version, ...]:
    """Return what lies where memories do and was not opened, such as links."""
    return tuple(
        Version(problem.path, None, problem.message)
        for problem in taken.problems
        if problem.path.endswith(".md")
    )


def _faulty(tree: Tree) -> tuple[Version, ...]:
    paths = [problem.path for problem in tree.problems if problem.path.endswith(".md")]
    readable = {record.path for record in tree.with_ids(set(map(stem, paths)))}
    found: dict[str, Version] = {}
    for problem in tree.problems:
        if problem.path.endswith(".md") and problem.path not in readable:
            found.setdefault(problem.path, Version(problem.path, None, problem.message))
    return tuple(found.values())
