"""What a check looks at: the files, where they come from, and what came before them.

The checks see every source (the worktree, what git's index stages, a range of commits) in this one
form. So each rule is written once and holds for all of them.
"""

from __future__ import annotations

from memtool.memory import document
from memtool.memory.changes import Version
from memtool.memory.lineage import FileRow, Lineage, is_replaced, row_of
from memtool.memory.memory import Memory
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from memtool.gate.near_duplicates import Neighbours
    from memtool.memory.memory import Fields
    from memtool.memory.schema import Problem
    from memtool.store.config import Config
    from memtool.store.context import Context
    from memtool.store.git import TreeEntry
    from memtool.store.repository import Repository
    from memtool.store.snapshot import Kind
    from memtool.store.trust_rules import TrustRule
    from memtool.store.versions import Stamp


class File(Value):
    """One file of the content. `text` is empty where the bytes are no text.

    `memory` is None for a file that is no memory, or that cannot be read as one: `problems` says
    why. `mode` is git's, such as `100644`. `known` is what an earlier check of a whole tree kept
    of these bytes: it found nothing wrong with them.
    """

    path: str
    oid: str
    mode: str
    text: str
    memory: Memory | None
    problems: tuple[Problem, ...] = ()
    known: Known | None = None

    def line_of(self, key: str) -> int:
        """Return the line of a key of the frontmatter, from 1."""
        at = self.text.find(f"\n{key}:")
        return self.text.count("\n", 0, at + 1) + 1 if at >= 0 else 1

    @property
    def body_line(self) -> int:
        """The number of the line on which the body begins."""
        body = self.memory.body if self.memory else ""
        return self.text.count("\n", 0, len(self.text) - len(body)) + 1


class Text(Value):
    """A text that must hold no secret; `where` says which old commit holds it, empty for none.

    `oid` names its bytes as a blob, and is empty where nothing may be remembered about them.
    """

    path: str
    oid: str
    text: str
    where: str = ""
    is_message: bool = False
    """Whether it is the message of a commit, whose name the path is then."""


class ParentStep(Value):
    """What became of memories on the way from one commit: their versions there, and now.

    Only what differs is in it. `where` gives the commit that made a change, by id, where it is
    known. `commit` is the one that is compared with, empty for none. A new commit is one step, a
    merge has one from each parent.
    """

    before: tuple[Version, ...]
    after: tuple[Version, ...]
    where: dict[str, str]
    commit: str = ""

    def added(self) -> set[str]:
        """Return the paths of the memories whose ids the commit does not have."""
        before = {version.id for version in self.before}
        return {version.path for version in self.after if version.id not in before}


class OwnedChange(Value):
    """A protected file that is not what it was: its versions before, and the one after.

    `befores` are those of the commits where both ends parted, mostly one.
    """

    path: str
    befores: tuple[TreeEntry, ...]
    after: TreeEntry | None


class Protection(Value):
    """What the base of a range says of owners, and the protected files that the range changed."""

    context: Context
    base: str
    end: str
    directory: str
    rules: tuple[TrustRule, ...]
    gate: TrustRule | None
    signers: bytes
    olds: Mapping[str, tuple[TreeEntry, ...]]
    changes: tuple[OwnedChange, ...]
    signed: frozenset[str]
    """The ids for which the end has files with signatures, good or not."""
    is_settled: bool
    """Whether the trusted ref holds the end of the range already."""


class Content(Value):
    """The content that is checked.

    Checks look at `files` one by one, sorted by path; where `is_whole`, they are all there are.
    They search `texts` for secrets and `steps` for changed claims. `kin` knows the lineage of every
    memory of the tree that the files belong to, also of those not in `files`.
    """

    repository: Repository
    directory: str
    settings: Config
    now: int
    files: Sequence[File]
    kin: Kin
    head: str
    """The commit of the tree, or the one that a new commit will follow; empty for none."""
    kind: Kind
    """Where the files are: worktree, index, or commit."""
    is_whole: bool
    texts: Iterable[Text] = ()
    steps: Sequence[ParentStep] = ()
    problems: Sequence[Problem] = ()
    """What was wrong before any file could be opened: links, devices, unfinished merges."""
    new: frozenset[str] = frozenset()
    """The paths of memories that came with this content: no commit before has their ids."""
    parents: Sequence[str] = ()
    """The commits that a new commit will follow, HEAD first; none where commits are checked."""
    warned: frozenset[str] | None = None
    """The paths that get warnings; None for all. Errors are reported for every file."""
    near: Neighbours | None = None
    """The neighbours in the tree, where they were looked up before."""
    known: Mapping[Stamp, Known] | None = None
    """What was known of files before this check; None where nothing is to be kept."""
    purges: frozenset[str] = frozenset()
    """The ids that a purge is about to remove: its commit will name them in its trailer."""
    protection: Protection | None = None
    """What the base of a range says of owners, where its rules want signatures."""


def new_paths(files: Iterable[File], steps: Iterable[ParentStep]) -> frozenset[str]:
    """Return the paths of the files whose ids no parent has; of all where there is no parent."""
    found = {file.path for file in files}
    for step in steps:
        found &= step.added()
    return frozenset(found)


def read(
    path: str,
    oid: str,
    mode: str,
    data: bytes,
    categories: Collection[str],
    known: Known | None = None,
) -> File:
    """Read one memory file as far as possible; one that is known when it is asked for more."""
    if known is not None:
        recalled = RecalledMemory(known, lambda: document.read(data, path, categories))
        return File(path, oid, mode, data.decode(), Memory(stored=recalled), (), known)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    try:
        memory = document.read(data, path, categories)
    except document.Unreadable as error:
        return File(path, oid, mode, text, None, tuple(error.problems))
    return File(path, oid, mode, text, memory)


def version_of(file: File) -> Version:
    """Return a file as one side of a comparison."""
    fault = file.problems[0].message if file.problems else ""
    return Version(file.path, file.memory, fault)


Name = tuple[str, str, int, str]
"""What a file names: kind, target, line, and the text that names it (see `links.NamedTarget`)."""


class Known(Value):
    """What is kept of a file in which nothing was wrong.

    `latest` is the last second that it speaks of as past; `names` are what it names.
    """

    id: str
    status: str
    supersedes: tuple[str, ...]
    latest: int
    names: tuple[Name, ...]


class RecalledMemory:
    """A memory of which id, status and kin are known; the file is read when more is asked."""

    withheld = ()

    def __init__(self, known: Known, read: Callable[[], Memory]) -> None:
        self.known: Fields = {
            "id": known.id,
            "status": known.status,
            "supersedes": known.supersedes,
        }
        self._read = read

    @cached_property
    def _memory(self) -> Memory:
        return self._read()

    @property
    def timestamp(self) -> int:
        return self._memory.timestamp

    def fields(self) -> Fields:
        return self._memory.fields

    def body(self) -> str:
        return self._memory.body


MOST_KIN = 20_000
"""Memories of one lineage that are followed; a longer one is cut, and circles in it not seen."""


class Kin:
    """Which memory supersedes which in one tree: made of rows, or asking the memories of a tree."""

    def __init__(self, rows: Iterable[FileRow], tree: Neighbours | None = None) -> None:
        """Take rows, and those of a tree that knows all the others, and may know these too."""
        self._rows: dict[str, list[FileRow]] = {}
        self._newer: dict[str, list[FileRow]] = {}
        self._paths: set[str] = set()
        for row in rows:
            self._rows.setdefault(row.id, []).append(row)
            self._paths.add(row.path)
            for old in row.supersedes:
                self._newer.setdefault(old, []).append(row)
        self._tree = tree

    def rows(self, id_: str) -> list[FileRow]:
        """Return the files that have an id, sorted by path."""
        found = list(self._rows.get(id_, ()))
        if self._tree is not None:
            found += self._others(self._tree.called(id_))
        return sorted(found, key=lambda row: row.path)

    def _superseding(self, id_: str) -> list[FileRow]:
        """Return the files that supersede a memory directly, proposals too."""
        found = list(self._newer.get(id_, ()))
        if self._tree is not None:
            found += self._others(self._tree.newer(id_))
        return found

    def is_replaced(self, id_: str) -> bool:
        """Tell whether something confirmed takes the place of a memory."""
        return is_replaced(id_, self._superseding)

    def _others(self, rows: Iterable[FileRow]) -> Iterator[FileRow]:
        return (row for row in rows if row.path not in self._paths)

    def supersedes(self, id_: str) -> tuple[str, ...]:
        """Return what a memory supersedes, missing ids included, sorted."""
        return tuple(sorted({old for row in self.rows(id_) for old in row.supersedes}))

    def is_there(self, id_: str) -> bool:
        """Tell whether some file has this id."""
        return bool(self.rows(id_))

    def around(self, ids: Iterable[str]) -> Lineage:
        """Return the lineage of these memories and of all that are linked to them."""
        seen: set[str] = set()
        todo = sorted(set(ids), reverse=True)
        while todo and len(seen) < MOST_KIN:
            id_ = todo.pop()
            if id_ in seen:
                continue
            seen.add(id_)
            newer = (row.id for row in self._superseding(id_))
            todo += sorted({*self.supersedes(id_), *newer} - seen)
        return Lineage(row for id_ in sorted(seen) for row in self.rows(id_))


def kin_of(files: Iterable[File]) -> Kin:
    """Return the lineage of all files of a tree."""
    return Kin(row_of(file.memory, file.path) for file in files if file.memory is not None)
