"""The content that checks run over: files, their source, and the versions before them.

Every source (the worktree, git's index, a range of commits) has this one form. So each rule is
written once and applies to all of them.
"""

from __future__ import annotations

from memtool.memory import document
from memtool.memory.changes import Version
from memtool.memory.lineage import FileRow, Lineage, build_row, is_replaced
from memtool.memory.memory import Memory
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from memtool.gate.near_duplicates import DuplicateIndex
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
    """One file of the content. `text` is empty if the bytes are not text.

    `memory` is None if the file is not a memory or cannot be read as one; `problems` has the
    reasons. `mode` is git's, such as `100644`. `cached` is the result of an earlier check that
    found no problem in these bytes.
    """

    path: str
    oid: str
    mode: str
    text: str
    memory: Memory | None
    problems: tuple[Problem, ...] = ()
    cached: CachedCheck | None = None

    def find_line(self, key: str) -> int:
        """Return the line of a key of the frontmatter, from 1."""
        at = self.text.find(f"\n{key}:")
        return self.text.count("\n", 0, at + 1) + 1 if at >= 0 else 1

    @property
    def body_line(self) -> int:
        """The number of the line on which the body begins."""
        body = self.memory.body if self.memory else ""
        return self.text.count("\n", 0, len(self.text) - len(body)) + 1


class Text(Value):
    """A text that must not contain secrets.

    `where` names the old commit that contains it, else it is empty. `oid` is the blob id of its
    bytes, empty if no verdict may be cached for them.
    """

    path: str
    oid: str
    text: str
    where: str = ""
    is_message: bool = False
    """Whether it is a commit message; `path` then names the commit."""


class ParentStep(Value):
    """The memories that differ from one parent commit: their versions there, and now.

    `where` names the commit that made a change, by memory id, if it is known. `commit` is the
    parent, empty for none. A new commit has one step, a merge one from each parent.
    """

    before: tuple[Version, ...]
    after: tuple[Version, ...]
    where: dict[str, str]
    commit: str = ""
    holding_commits: Mapping[str, str] = {}
    """In a range: a commit that has the version before, by id of each removed or changed memory."""

    def find_added(self) -> set[str]:
        """Return the paths of the memories whose ids the parent does not have."""
        before = {version.id for version in self.before}
        return {version.path for version in self.after if version.id not in before}


class OwnedChange(Value):
    """A protected file that changed: its versions before, and the one after.

    `befores` are the versions in the merge bases of both ends, usually one.
    """

    path: str
    befores: tuple[TreeEntry, ...]
    after: TreeEntry | None


class Protection(Value):
    """The trust rules of a range's base, and the protected files that the range changed."""

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
    """The ids for which the end has signature files, valid or not."""
    is_settled: bool
    """Whether the trusted ref already contains the end of the range."""


class Content(Value):
    """The content that is checked.

    Checks read `files`, sorted by path; if `is_whole`, they are all files of the tree. They search
    `texts` for secrets and `steps` for changed claims. `supersede_index` has the rows of
    all memories of the tree, also of those not in `files`.
    """

    repository: Repository
    directory: str
    settings: Config
    now: int
    files: Sequence[File]
    supersede_index: SupersedeIndex
    head: str
    """The commit of the tree, or the one that a new commit will follow; empty for none."""
    kind: Kind
    """The source of the files: worktree, index or commit."""
    is_whole: bool
    texts: Iterable[Text] = ()
    steps: Sequence[ParentStep] = ()
    problems: Sequence[Problem] = ()
    """Problems of files that could not be opened: links, devices, unfinished merges."""
    new: frozenset[str] = frozenset()
    """The paths of new memories: no parent has their ids."""
    parents: Sequence[str] = ()
    """The parents of a commit to be made, HEAD first; none if existing commits are checked."""
    warned: frozenset[str] | None = None
    """The paths that get warnings; None for all. Errors are reported for every file."""
    duplicate_index: DuplicateIndex | None = None
    """The memories to compare with, if they were looked up before."""
    cached_checks: Mapping[Stamp, CachedCheck] | None = None
    """Results of earlier checks; None if those of this check are not to be cached."""
    purges: frozenset[str] = frozenset()
    """The ids that a purge is about to remove; its commit will name them in a trailer."""
    protection: Protection | None = None
    """The trust rules of a range's base, if they require signatures."""
    trusted: str = ""
    """The commit of the trusted ref, empty for none."""


def find_new_paths(files: Iterable[File], steps: Iterable[ParentStep]) -> frozenset[str]:
    """Return the paths of the files whose ids no parent has; all if there is no parent."""
    paths = {file.path for file in files}
    for step in steps:
        paths &= step.find_added()
    return frozenset(paths)


def read_file(
    path: str,
    oid: str,
    mode: str,
    data: bytes,
    categories: Collection[str],
    cached: CachedCheck | None = None,
) -> File:
    """Read one memory file as far as possible; with a cached check it is parsed only on demand."""
    if cached is not None:
        lazy_memory = LazyMemory(cached, lambda: document.read(data, path, categories))
        return File(path, oid, mode, data.decode(), Memory(stored=lazy_memory), (), cached)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    try:
        memory = document.read(data, path, categories)
    except document.Unreadable as error:
        return File(path, oid, mode, text, None, tuple(error.problems))
    return File(path, oid, mode, text, memory)


def to_version(file: File) -> Version:
    """Return a file as a version, for comparing."""
    fault = file.problems[0].message if file.problems else ""
    return Version(file.path, file.memory, fault)


CachedTarget = tuple[str, str, int, str]
"""Kind, target, line, and the text that names the target (see `links.NamedTarget`)."""


class CachedCheck(Value):
    """The cached result of a check that found no problem in a file.

    `latest` is the latest second that the memory states as past; `names` are its references.
    """

    id: str
    status: str
    supersedes: tuple[str, ...]
    latest: int
    names: tuple[CachedTarget, ...]


class LazyMemory:
    """A memory with cached id, status and supersedes; the file is parsed when more is needed."""

    withheld = ()

    def __init__(self, cached: CachedCheck, read: Callable[[], Memory]) -> None:
        self.parsed: Fields = {
            "id": cached.id,
            "status": cached.status,
            "supersedes": cached.supersedes,
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


MAX_LINEAGE = 20_000
"""Memories of one lineage that are followed; in a larger one cycles may be missed."""


class SupersedeIndex:
    """The supersede rows of one tree, from files or from the memories of a tree."""

    def __init__(self, rows: Iterable[FileRow], tree: DuplicateIndex | None = None) -> None:
        """Take rows, and a tree that has all other rows, and may have these too."""
        self._rows: dict[str, list[FileRow]] = {}
        self._newer: dict[str, list[FileRow]] = {}
        self._paths: set[str] = set()
        for row in rows:
            self._rows.setdefault(row.id, []).append(row)
            self._paths.add(row.path)
            for old in row.supersedes:
                self._newer.setdefault(old, []).append(row)
        self._tree = tree

    def find_rows(self, id_: str) -> list[FileRow]:
        """Return the rows with an id, sorted by path."""
        rows = list(self._rows.get(id_, ()))
        if self._tree is not None:
            rows += self._skip_own_paths(self._tree.find_by_id(id_))
        return sorted(rows, key=lambda row: row.path)

    def _find_newer(self, id_: str) -> list[FileRow]:
        """Return the rows that supersede a memory directly, proposals too."""
        rows = list(self._newer.get(id_, ()))
        if self._tree is not None:
            rows += self._skip_own_paths(self._tree.find_newer(id_))
        return rows

    def is_replaced(self, id_: str) -> bool:
        """Return whether a confirmed memory supersedes this one."""
        return is_replaced(id_, self._find_newer)

    def _skip_own_paths(self, rows: Iterable[FileRow]) -> Iterator[FileRow]:
        return (row for row in rows if row.path not in self._paths)

    def find_superseded(self, id_: str) -> tuple[str, ...]:
        """Return the ids that a memory supersedes, missing ones included, sorted."""
        return tuple(sorted({old for row in self.find_rows(id_) for old in row.supersedes}))

    def has_id(self, id_: str) -> bool:
        """Return whether a file has this id."""
        return bool(self.find_rows(id_))

    def build_lineage(self, ids: Iterable[str]) -> Lineage:
        """Return the lineage of these memories and of all memories linked to them."""
        seen: set[str] = set()
        todo = sorted(set(ids), reverse=True)
        while todo and len(seen) < MAX_LINEAGE:
            id_ = todo.pop()
            if id_ in seen:
                continue
            seen.add(id_)
            newer = (row.id for row in self._find_newer(id_))
            todo += sorted({*self.find_superseded(id_), *newer} - seen)
        return Lineage(row for id_ in sorted(seen) for row in self.find_rows(id_))


def index_files(files: Iterable[File]) -> SupersedeIndex:
    """Return the supersede rows of all files of a tree."""
    return SupersedeIndex(
        build_row(file.memory, file.path) for file in files if file.memory is not None
    )
