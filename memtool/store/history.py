"""History: the log of a memory, blame of its lines, renames, the commits that others rest on.

It gives git full commit ids and literal paths only, never a user's text, and reads objects by one
`git cat-file`, so that it does not matter by which hash a repository names them.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Self, TypeAlias

from memtool.errors import MemtoolError
from memtool.memory import ids, timestamps
from memtool.memory.changes import Change, Version, is_renamed, stem
from memtool.memory.lineage import Lineage
from memtool.store import versions
from memtool.store.bases import is_straight
from memtool.store.git import REGULAR, GitError, Objects, RawChange, Touch
from memtool.store.repository import Repository, no_global_memories
from memtool.store.tree import Tree
from memtool.store.versions import Stamp, stamps_of
from memtool.value import Value, batches

BATCH = 256
"""Commits that are compared with their parents by one git process."""
MOST_WALKS = 4
"""Histories that one process remembers ..."""
MOST_TOUCHES = 50_000
"""... with so many changed files each, about 15 MB."""
MOST_COMMITS = 2_000
"""Commits of which one process remembers author, date and subject."""
MAX_FILE_BYTES = 4 << 20
"""Larger files of a commit are named but not read."""
MAX_COMMIT_BYTES = 1 << 20
"""A longer commit is one whose texts cannot be read."""


class Commit(Value):
    """One commit. `date` is when it was authored, RFC 3339 in UTC; name and email are unchecked.

    `trailers` are the `Key: value` lines of the last paragraph, in order. Texts are empty where
    the commit is so broken that they cannot be read.
    """

    id: str
    author: str
    email: str
    date: str
    subject: str
    trailers: tuple[tuple[str, str], ...]

    def trailer(self, key: str) -> str:
        """Return the last value of a trailer, whatever its case; empty where there is none."""
        found = [value for name, value in self.trailers if name.lower() == key.lower()]
        return found[-1] if found else ""


NOBODY = Commit("", "", "", "", "", ())
"""Stands for a commit that is not there, or not to be trusted."""


UPHOLDS = "Upholds"
"""The trailer by which a commit says that it keeps to a memory."""


class Upholding(Value):
    """A commit that upholds memories: its id, second and author, and the names as it has them.

    `by` is empty where the author's name cannot be printed on one line.
    """

    commit: str
    second: int
    by: str
    names: tuple[str, ...]


def upholding(repository: Repository, *revisions: str) -> list[Upholding]:
    """Return the commits with the trailer, the newest first; `revisions` are arguments of log."""
    rows = repository.git.rows(
        "log",
        "-z",
        "--regexp-ignore-case",
        f"--grep=^{UPHOLDS}:",
        f"--format=%H %ct %an%n%(trailers:key={UPHOLDS},valueonly,unfold,separator=%x20)",
        *revisions,
    )
    found = []
    for row in rows:
        about, _line, names = row.decode(errors="replace").partition("\n")
        commit, second, author = about.split(" ", 2)
        by = author.strip() if author.isprintable() else ""
        found.append(Upholding(commit, int(second), by, tuple(names.replace(",", " ").split())))
    return found


class _Walked:
    """What one process knows of the history of a directory: no commit ever changes.

    `newest` is a commit with all commits up to it that changed files, newest first, `touches` the
    files of some of them.
    """

    def __init__(self) -> None:
        self.newest: tuple[str, list[str]] = "", []
        self.touches: dict[str, tuple[Touch, ...]] = {}
        self.count = 0

    def add(self, touched: Mapping[str, tuple[Touch, ...]]) -> None:
        """Remember the files of commits, as long as there is room."""
        for id_, touches in touched.items():
            if id_ not in self.touches and self.count + len(touches) <= MOST_TOUCHES:
                self.touches[id_] = touches
                self.count += len(touches)


_walked: dict[tuple[str, ...], _Walked] = {}
_commits: dict[tuple[str, str], Commit] = {}


class Stored(Value):
    """What a commit holds at a path; `kind` is file, directory, link, submodule or large."""

    kind: str
    data: bytes = b""


def tip(repository: Repository, at: str | None = None) -> str:
    """Return the commit id of a revision, or of HEAD; empty before the first commit.

    Raises:
        MemtoolError: a revision is given and names no commit.
    """
    if at is not None:
        return repository.git.rev(at)
    return repository.git.head()


class History:
    """The history of one repository. Use it in a `with` block: it holds git processes.

    Every method raises MemtoolError where git refuses. Commits are named by their full ids.
    """

    def __init__(self, repository: Repository) -> None:
        if not repository.is_made:
            raise no_global_memories()
        self._repository = repository
        self._git = repository.git
        self._objects = Objects(repository.git)
        self.boundary = repository.shallow_commits()
        self._commits: dict[str, Commit] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._objects.__exit__()

    def commit(self, id_: str) -> Commit:
        """Return a commit by its full id."""
        key = self._repository.common_dir, id_
        found = self._commits.get(id_) or _commits.get(key)
        if found is None:
            found = self._read_commit(id_)
            while len(_commits) >= MOST_COMMITS:
                _commits.pop(next(iter(_commits)), None)
            _commits[key] = found
        self._commits[id_] = found
        return found

    def _read_commit(self, id_: str) -> Commit:
        try:
            (data,) = self._objects.blobs([id_], MAX_COMMIT_BYTES)
            head, _blank, message = data.partition(b"\n\n")
            fields = dict(row.partition(b" ")[::2] for row in reversed(head.split(b"\n")))
            encoding = fields.get(b"encoding", b"utf-8").decode()
            person, second, _zone = fields[b"author"].decode(encoding, "replace").rsplit(" ", 2)
            author, _open, email = person.partition(" <")
            date = timestamps.render(int(second))
            text = message.decode(encoding, "replace")
        except (GitError, LookupError, ValueError, OverflowError):  # absent, or broken
            return NOBODY.replace(id=id_)
        subject = text.partition("\n")[0].strip()
        return Commit(id_, author, email.removesuffix(">"), date, subject, _trailers(text))

    def author_of(self, id_: str) -> Commit:
        """Return the commit that wrote something; NOBODY for none, and where history is cut off."""
        return self.commit(id_) if id_ and id_ not in self.boundary else NOBODY

    def walk(
        self, revision: str, directory: str, is_wanted: Callable[[str], bool] | None = None
    ) -> Iterator[tuple[str, tuple[Touch, ...]]]:
        """Yield each commit that changed files below a directory with these files, newest first.

        Children come before parents, whatever their dates say. Of a merge only files count that
        differ from all its parents. `is_wanted` is asked about the path of each file that was not
        renamed. Two processes, and one more for every 256 commits.

        A partial clone without the trees of history ends as a shallow one does, at the revision
        itself; where blobs are absent, no file counts as renamed.
        """
        known = self._known(directory)
        try:
            found = self._ids(known, revision, directory)
        except GitError:
            if not self._repository.is_partial:
                raise
            self.boundary |= {revision}
            yield (
                revision,
                tuple(
                    Touch(row.path, row.path, row.oid, "")
                    for row in self._git.ls_tree(revision, directory)
                    if row.mode in REGULAR and (is_wanted is None or is_wanted(row.path))
                ),
            )
            return
        for some in batches(found, BATCH):
            touched = {id_: known.touches[id_] for id_ in some if id_ in known.touches}
            fresh = self._touched([id_ for id_ in some if id_ not in touched], directory)
            known.add(fresh)
            touched |= fresh
            for id_ in some:
                yield (
                    id_,
                    tuple(
                        touch
                        for touch in touched[id_]
                        if is_wanted is None
                        or touch.path != touch.old_path
                        or is_wanted(touch.path)
                    ),
                )

    def _known(self, directory: str) -> _Walked:
        """Return what this process remembers of the history of a directory."""
        repository = self._repository
        cut = ",".join(sorted(self.boundary))
        key = repository.common_dir, directory, cut, "partial" * repository.is_partial
        while key not in _walked and len(_walked) >= MOST_WALKS:
            _walked.pop(next(iter(_walked)), None)
        return _walked.setdefault(key, _Walked())

    def _ids(self, known: _Walked, revision: str, directory: str) -> list[str]:
        """Return the commits that changed files below a directory, newest first."""
        last, ids = known.newest
        if last != revision:
            is_more = bool(last) and is_straight(self._repository, last, revision)
            answer = self._git.line(
                "rev-list",
                "--full-history",
                "--topo-order",
                "--end-of-options",
                f"{last}..{revision}" if is_more else revision,
                "--",
                directory,
            )
            ids = [*answer.split(), *(ids if is_more else ())]
            known.newest = revision, ids
        return ids

    def _touched(self, commits: list[str], directory: str) -> dict[str, tuple[Touch, ...]]:
        """Ask git which files below a directory some commits changed, by path."""
        if not commits:
            return {}
        touched: dict[str, list[Touch]] = {id_: [] for id_ in commits}
        renames = "--no-renames" if self._repository.is_partial else "-M"
        rows = self._git.log_raw(
            "diff-tree",
            "--stdin",
            "-r",
            renames,
            "-c",
            "--root",
            "--",
            directory,
            stdin="\n".join(touched).encode() + b"\n",
        )
        for id_, row in rows:
            touched[id_].append(_touch(row))
        return {
            id_: tuple(sorted(touches, key=lambda touch: touch.path))
            for id_, touches in touched.items()
        }

    def last(self, revision: str, path: str) -> str:
        """Return the newest commit that changed a path, empty where none did."""
        try:
            return self._git.line(
                "rev-list",
                "--max-count=1",
                "--topo-order",
                "--end-of-options",
                revision,
                "--",
                path,
            )
        except GitError:
            if not self._repository.is_partial:
                raise
            self.boundary |= {revision}
            return revision

    def blame(
        self, revision: str, path: str, lines: tuple[int, int] | None = None
    ) -> dict[int, str]:
        """Return which commit wrote each line of a file of a commit, following renames.

        Lines count from 1; `lines` limits the answer to a range, both ends inclusive. Where a
        partial clone cannot tell, all are of the revision, as at the boundary of a shallow one.
        """
        try:
            return self._blame(revision, path, lines)
        except GitError:
            if not self._repository.is_partial:
                raise
            found = self.stored(revision, path)
            self.boundary |= {revision}
            first, last = lines or (1, found.data.count(b"\n") + 1 if found else 0)
            return dict.fromkeys(range(first, last + 1), revision)

    def _blame(self, revision: str, path: str, lines: tuple[int, int] | None) -> dict[int, str]:
        limit = ("-L", f"{lines[0]},{lines[1]}") if lines is not None else ()
        # An empty name forgets the lists of commits to pass over, which would name another author.
        answer = self._git.run(
            "blame",
            "--incremental",
            "--no-textconv",
            "--ignore-revs-file=",
            *limit,
            revision,
            "--",
            path,
        )
        found = {}
        for row in answer.split(b"\n"):  # an id with three numbers, then what begins with a word
            parts = row.decode(errors="replace").split(" ")
            if len(parts) == 4 and len(parts[0]) == len(revision) and "".join(parts[1:]).isdigit():
                for line in range(int(parts[2]), int(parts[2]) + int(parts[3])):
                    found[line] = parts[0]
        return found

    def newest(self, commits: Iterable[str]) -> str:
        """Return the commit that all others lead to; of unrelated ones the latest by its date."""
        wanted = sorted(set(commits))
        if len(wanted) > 1:
            answer = self._git.line("merge-base", "--independent", *wanted)
            wanted = sorted(answer.split(), key=lambda id_: (self.commit(id_).date, id_))
        return wanted[-1] if wanted else ""

    def stored(self, revision: str, path: str) -> Stored | None:
        """Return what a commit holds at a path; files over 4 MiB come without their bytes."""
        path = posixpath.normpath(path)
        if path == ".":
            return Stored("directory")
        entry = next(iter(self._git.ls_tree(revision, path, recursive=False)), None)
        if entry is None or entry.path != path:
            return None
        if entry.kind != "blob":
            return Stored("directory" if entry.kind == "tree" else "submodule")
        if entry.mode == "120000":
            return Stored("link")
        (data,) = self._objects.blobs([entry.oid], MAX_FILE_BYTES)
        return Stored("large") if len(data) > MAX_FILE_BYTES else Stored("file", data)


def _touch(row: RawChange) -> Touch:
    old_mode, old_oid = row.olds[0]
    return Touch(
        row.path,
        row.old_path,
        row.oid if row.mode in REGULAR else "",
        old_oid if old_mode in REGULAR else "",
    )


def _trailers(message: str) -> tuple[tuple[str, str], ...]:
    """Read the last paragraph as trailers if all of it is."""
    paragraphs = message.replace("\r\n", "\n").strip("\n").split("\n\n")
    found: list[tuple[str, str]] = []
    for line in paragraphs[-1].split("\n") if len(paragraphs) > 1 else ():
        key, colon, value = line.partition(":")
        if found and line[:1] in " \t" and line.strip():
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
        elif colon and key.replace("-", "a").isalnum():
            found.append((key, value.strip()))
        elif not line.startswith("(cherry picked from commit "):
            return ()
    return tuple(found)


Walk: TypeAlias = "list[tuple[str, tuple[Touch, ...]]]"
"""Commits, newest first, with the memory files that each one changed."""


class Trace(Value):
    """A memory through history: its id, and every id of it and of its lineage, old names too."""

    id: str
    is_removed: bool
    names: frozenset[str]


class _Seen(Value):
    """What history knows of names: the newest version of those that are not in the tree."""

    stamps: dict[str, Stamp]
    suspects: tuple[Touch, ...]
    """Files that git found renamed to another id."""


def trace(
    tree: Tree, walk: Walk, pending: Iterable[Change], categories: Collection[str], wanted: str
) -> Trace:
    """Find a memory in a tree or in history, and all ids that belong to its story.

    `walk` is the whole history; `pending` what is not committed. Only files of removed and of
    renamed memories are read.

    Raises:
        MemtoolError: neither the tree nor history knows the id, or several ids begin so.
    """
    seen = _seen(tree, walk)
    id_ = _find(tree, seen.stamps, wanted)
    read = versions.of_blobs(
        tree.location.repository,
        [*seen.stamps.values(), *stamps_of(seen.suspects)],
        categories,
    )
    renamed = _renamed(seen.suspects, read, pending)
    gone = [read[stamp].memory for name, stamp in seen.stamps.items() if name not in tree]
    lineages = (
        tree.lineage.as_proposed,
        Lineage(memory for memory in gone if memory is not None).as_proposed,
    )
    own = _reach(id_, renamed)
    known = sorted(name for name in own if name in tree)
    return Trace(
        id=known[0] if known and id_ not in tree else id_,
        is_removed=not known and not _is_broken(tree, id_),
        names=frozenset(
            _reach(id_, renamed, *(lineage.supersedes for lineage in lineages))
            | _reach(id_, renamed, *(lineage.superseded_by for lineage in lineages))
        ),
    )


def _seen(tree: Tree, walk: Walk) -> _Seen:
    present = set(tree.ids)
    stamps: dict[str, Stamp] = {}
    suspects: list[Touch] = []
    for _commit, touches in walk:
        for touch in touches:
            new, old = stem(touch.path), stem(touch.old_path)
            if new not in present and (touch.oid or touch.old_oid):
                newest = (touch.path, touch.oid) if touch.oid else (touch.old_path, touch.old_oid)
                stamps.setdefault(new, newest)
            if new != old and touch.old_oid:
                suspects.append(touch)
                if old not in present:
                    stamps.setdefault(old, (touch.old_path, touch.old_oid))
    return _Seen(stamps, tuple(suspects))


def _find(tree: Tree, stamps: Mapping[str, Stamp], wanted: str) -> str:
    """Return the id of a memory of the tree, or of one that only history knows."""
    name = stem(ids.without_commit(wanted))
    gone = ids.meant(name, sorted(stamps), by_words=False)
    if name in stamps or (len(gone) == 1 and not ids.meant(name, tree.ids, by_words=False)):
        return name if name in stamps else gone[0]
    try:
        return tree.find(wanted).id
    except MemtoolError as error:
        gone = ids.meant(name, sorted(stamps))
        if error.code != "unknown-id" or len(gone) != 1:
            raise
        return gone[0]


def _is_broken(tree: Tree, id_: str) -> bool:
    return any(stem(problem.path) == id_ for problem in tree.problems)


def _renamed(
    suspects: Iterable[Touch], read: Mapping[Stamp, Version], pending: Iterable[Change]
) -> dict[str, set[str]]:
    """Return which ids are names of one memory, in both directions."""
    pairs: list[tuple[str, str]] = []
    for touch in suspects:
        old, new = read.get((touch.old_path, touch.old_oid)), read.get((touch.path, touch.oid))
        if old and new and is_renamed(old, new):
            pairs.append((old.id, new.id))
    for change in pending:
        old_id = change.details.get("from_id")
        if isinstance(old_id, str):
            pairs.append((old_id, change.id))
    names: dict[str, set[str]] = {}
    for one, other in pairs:
        names.setdefault(one, set()).add(other)
        names.setdefault(other, set()).add(one)
    return names


def _reach(start: str, *edges: Mapping[str, Iterable[str]]) -> set[str]:
    """Return all ids that edges lead to, from one on."""
    found = {start}
    todo = [start]
    while todo:
        id_ = todo.pop()
        near = {one for known in edges for one in known.get(id_, ())} - found
        found |= near
        todo += near
    return found
