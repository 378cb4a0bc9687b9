"""History: the log of a memory, blame of its lines, renames, and the newest of several commits.

git gets only full commit ids and literal paths from here, never a user's text. Objects are read by
one `git cat-file`, so repositories with any hash work.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Self, TypeAlias

from memtool.errors import MemtoolError
from memtool.memory import ids, short_ids, timestamps
from memtool.memory.changes import Change, Version, id_from_path, is_renamed
from memtool.memory.lineage import Lineage
from memtool.memory.schema import is_id
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.store import messages, versions
from memtool.store.bases import is_straight
from memtool.store.git import REGULAR_MODES, GitError, Objects, RawChange, Touch
from memtool.store.landing import BROUGHT
from memtool.store.repository import Repository, no_global_memories_error
from memtool.store.snapshot import is_memory_path
from memtool.store.tree import Tree
from memtool.store.versions import Stamp, list_stamps
from memtool.value import Value, split_batches

COMMITS_PER_BATCH = 256
"""Commits that are compared with their parents by one git process."""
MAX_WALKS = 4
"""Number of histories that a process remembers."""
MAX_TOUCHES = 50_000
"""Changed files that a process remembers for each history; they take about 15 MB."""
MAX_COMMITS = 2_000
"""Number of commits for which a process remembers author, date and subject."""
MAX_FILE_BYTES = 4 << 20
"""Larger files of a commit are listed but not read."""
MAX_COMMIT_BYTES = 1 << 20
"""The texts of a longer commit object count as unreadable."""


class Commit(Value):
    """One commit. `date` is the author date, RFC 3339 in UTC; name and email are not verified.

    `trailers` are those of memtool, in order. `pull_request` has the form `#12` and is empty if the
    message names none; `co_authors` are names. Texts are empty if the commit object is broken.
    """

    id: str
    author: str
    email: str
    date: str
    subject: str
    trailers: messages.Trailers
    pull_request: str = ""
    co_authors: tuple[str, ...] = ()


def format_landing(commit: Commit, how: str) -> str:
    """Return a clause that names the commit in which another one landed.

    `how` is the method by which that commit was found.
    """
    what = "squash of " if how == BROUGHT else ""
    by = f" ({what}{commit.pull_request})" if commit.pull_request else ""
    return f"landed as {commit.id[:SHORT_ID_DIGITS]}{by}"


UNKNOWN_COMMIT = Commit("", "", "", "", "", ())
"""Placeholder for a commit that is missing, or that a shallow clone makes unreliable."""


class UpholdingCommit(Value):
    """A commit that upholds memories: its id, second and author, and the memories that it names.

    `by` is empty if the author's name is not printable on one line, `pull_request` if the message
    names none. `names` are as written in the message.
    """

    commit: str
    second: int
    by: str
    names: tuple[str, ...]
    pull_request: str = ""


def list_upholding_commits(repository: Repository, *revisions: str) -> list[UpholdingCommit]:
    """Return the commits that uphold memories, newest first; `revisions` are as for `git log`."""
    return [
        UpholdingCommit(
            logged.commit,
            logged.second,
            logged.author.strip() if logged.author.isprintable() else "",
            names,
            messages.find_pull_request(logged.text),
        )
        for logged in messages.log_messages_with(repository.git, messages.UPHOLDS, *revisions)
        if (names := messages.find_values(messages.parse_trailers(logged.text), messages.UPHOLDS))
    ]


class _WalkCache:
    """The history of a directory as cached by this process. It never gets stale.

    `newest` is a commit and the list of all commits up to it that changed files, newest first.
    `touches` has the changed files of some of them.
    """

    def __init__(self) -> None:
        self.newest: tuple[str, list[str]] = "", []
        self.touches: dict[str, tuple[Touch, ...]] = {}
        self.count = 0

    def add(self, touched: Mapping[str, tuple[Touch, ...]]) -> None:
        """Remember the changed files of commits, up to MAX_TOUCHES files."""
        for id_, touches in touched.items():
            if id_ not in self.touches and self.count + len(touches) <= MAX_TOUCHES:
                self.touches[id_] = touches
                self.count += len(touches)


_walk_caches: dict[tuple[str, ...], _WalkCache] = {}
_commit_cache: dict[tuple[str, str], Commit] = {}


class PathContent(Value):
    """The content of a commit at a path; `kind` is file, directory, link, submodule or large."""

    kind: str
    data: bytes = b""


def resolve_tip(repository: Repository, at: str | None = None) -> str:
    """Return the commit id of a revision, or of HEAD; empty before the first commit.

    Raises:
        MemtoolError: the revision does not name a commit.
    """
    if at is not None:
        return repository.git.resolve(at)
    return repository.git.head()


class RemovedMemory(Value):
    """The newest version of a memory that was removed, and the commit that removed it.

    If the commit only changed it, the file is still at HEAD, and was removed from the worktree.
    """

    path: str
    oid: str
    commit: str
    is_at_head: bool = False


def find_removed(
    repository: Repository, directory: str, wanted: str, at: str | None = None
) -> RemovedMemory | None:
    """Find a memory in history by its whole or short id; None if there is none, or several."""
    name = id_from_path(ids.without_commit(wanted))
    head = resolve_tip(repository, at) if is_id(name) else ""
    if not head:
        return None
    start, _hyphen, suffix = name.rpartition("-")
    places = [f":(glob){directory}/**/{file}.md" for file in (name, f"{start}-*-{suffix}")]
    try:
        # -m, since the commit may be a merge that dropped the file
        changes = repository.git.log_raw(
            *("log", "-1", "-m", "--no-renames", "--format=%H", head, "--", *places),
            env={"GIT_LITERAL_PATHSPECS": "0"},
        )
        touched = {
            change.path: RemovedMemory(
                change.path,
                change.oid if change.mode in REGULAR_MODES else change.old_oid,
                commit,
                is_at_head=change.mode in REGULAR_MODES,
            )
            for commit, change in changes
            if (id_ := id_from_path(change.path)) == name or short_ids.find_short(name, [id_])
        }
    except GitError:  # a partial clone may lack the trees of history
        return None
    return next(iter(touched.values())) if len(touched) == 1 else None


def find_path_at(repository: Repository, directory: str, commit: str, wanted: str) -> Stamp | None:
    """Find a memory of a commit by its whole or short id; None if there is none, or several."""
    name = id_from_path(ids.without_commit(wanted))
    blobs = {
        id_from_path(path): (path, oid)
        for path, oid in repository.git.blobs_below(commit, directory).items()
        if is_memory_path(path, directory)
    }
    matches = short_ids.find_begun(name, sorted(blobs))
    matches = [name] if name in blobs else matches
    return blobs[matches[0]] if len(matches) == 1 else None


class History:
    """The history of one repository. Use it in a `with` block, because it keeps a git process open.

    Every method raises MemtoolError if git fails. Commits are named by their full ids.
    """

    def __init__(self, repository: Repository) -> None:
        if not repository.is_created:
            raise no_global_memories_error()
        self._repository = repository
        self._git = repository.git
        self._objects = Objects(repository.git)
        self.boundary = repository.shallow_commits()
        self._commits: dict[str, Commit] = {}

    def __enter__(self) -> Self:
        self._objects.__enter__()
        return self

    def __exit__(self, *_error: object) -> None:
        self._objects.__exit__()

    def commit(self, id_: str) -> Commit:
        """Return a commit by its full id."""
        key = self._repository.common_dir, id_
        commit = self._commits.get(id_) or _commit_cache.get(key)
        if commit is None:
            commit = self._read_commit(id_)
            while len(_commit_cache) >= MAX_COMMITS:
                _commit_cache.pop(next(iter(_commit_cache)), None)
            _commit_cache[key] = commit
        self._commits[id_] = commit
        return commit

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
        except (GitError, LookupError, ValueError, OverflowError):  # missing or broken
            return UNKNOWN_COMMIT.replace(id=id_)
        subject = text.partition("\n")[0].strip()
        email = email.removesuffix(">")
        return Commit(
            id_,
            author,
            email,
            date,
            subject,
            messages.parse_trailers(text),
            messages.find_pull_request(text),
            messages.find_co_authors(text, author, email),
        )

    def find_author_commit(self, id_: str) -> Commit:
        """Return a commit; UNKNOWN_COMMIT for an empty id or a boundary of a shallow clone."""
        return self.commit(id_) if id_ and id_ not in self.boundary else UNKNOWN_COMMIT

    def walk(
        self, revision: str, directory: str, is_wanted: Callable[[str], bool] | None = None
    ) -> Iterator[tuple[str, tuple[Touch, ...]]]:
        """Yield each commit that changed files below a directory with these files, newest first.

        Children come before parents, regardless of dates. A merge counts only for files that differ
        from all its parents. `is_wanted` filters by path, except for renamed files. Costs two
        processes, and one more for every 256 commits.

        In a partial clone without the trees of history, the walk ends at the revision itself. In
        any partial clone, no file counts as renamed.
        """
        cache = self._find_cache(directory)
        try:
            commit_ids = self._list_commits(cache, revision, directory)
        except GitError:
            if not self._repository.is_partial:
                raise
            self.boundary |= {revision}
            yield (
                revision,
                tuple(
                    Touch(row.path, row.path, row.oid, "")
                    for row in self._git.ls_tree(revision, directory)
                    if row.mode in REGULAR_MODES and (is_wanted is None or is_wanted(row.path))
                ),
            )
            return
        for batch in split_batches(commit_ids, COMMITS_PER_BATCH):
            touched = {id_: cache.touches[id_] for id_ in batch if id_ in cache.touches}
            fresh = self._read_touches([id_ for id_ in batch if id_ not in touched], directory)
            cache.add(fresh)
            touched |= fresh
            for id_ in batch:
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

    def _find_cache(self, directory: str) -> _WalkCache:
        """Return this process's cache for the history of a directory."""
        repository = self._repository
        cut = ",".join(sorted(self.boundary))
        key = repository.common_dir, directory, cut, "partial" * repository.is_partial
        while key not in _walk_caches and len(_walk_caches) >= MAX_WALKS:
            _walk_caches.pop(next(iter(_walk_caches)), None)
        return _walk_caches.setdefault(key, _WalkCache())

    def _list_commits(self, cache: _WalkCache, revision: str, directory: str) -> list[str]:
        """List the commits that changed files below a directory, newest first."""
        last_revision, commit_ids = cache.newest
        if last_revision != revision:
            is_extended = bool(last_revision) and is_straight(
                self._repository, last_revision, revision
            )
            answer = self._git.line(
                "rev-list",
                "--full-history",
                "--topo-order",
                "--end-of-options",
                f"{last_revision}..{revision}" if is_extended else revision,
                "--",
                directory,
            )
            commit_ids = [*answer.split(), *(commit_ids if is_extended else ())]
            cache.newest = revision, commit_ids
        return commit_ids

    def _read_touches(self, commits: list[str], directory: str) -> dict[str, tuple[Touch, ...]]:
        """Read from git which files below a directory the commits changed, sorted by path."""
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
            touched[id_].append(_to_touch(row))
        return {
            id_: tuple(sorted(touches, key=lambda touch: touch.path))
            for id_, touches in touched.items()
        }

    def find_last_commit(self, revision: str, path: str) -> str:
        """Return the newest commit that changed a path; empty if none did."""
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
        """Return the commit that wrote each line of a file, following renames.

        Lines count from 1; `lines` limits the answer to a range, both ends inclusive. If a partial
        clone lacks the history, every line is attributed to the revision itself.
        """
        try:
            return self._blame(revision, path, lines)
        except GitError:
            if not self._repository.is_partial:
                raise
            content = self.read_path(revision, path)
            self.boundary |= {revision}
            first, last = lines or (1, content.data.count(b"\n") + 1 if content else 0)
            return dict.fromkeys(range(first, last + 1), revision)

    def _blame(self, revision: str, path: str, lines: tuple[int, int] | None) -> dict[int, str]:
        limit = ("-L", f"{lines[0]},{lines[1]}") if lines is not None else ()
        # The empty name disables configured blame.ignoreRevsFile, which would change authors.
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
        commit_by_line = {}
        for row in answer.split(b"\n"):  # only group headers count: an id and three numbers
            parts = row.decode(errors="replace").split(" ")
            if len(parts) == 4 and len(parts[0]) == len(revision) and "".join(parts[1:]).isdigit():
                for line in range(int(parts[2]), int(parts[2]) + int(parts[3])):
                    commit_by_line[line] = parts[0]
        return commit_by_line

    def find_newest(self, commits: Iterable[str]) -> str:
        """Return the commit that descends from all others; of unrelated ones the latest by date."""
        candidates = sorted(set(commits))
        if len(candidates) > 1:
            answer = self._git.line("merge-base", "--independent", *candidates)
            candidates = sorted(answer.split(), key=lambda id_: (self.commit(id_).date, id_))
        return candidates[-1] if candidates else ""

    def read_path(self, revision: str, path: str) -> PathContent | None:
        """Return the content of a commit at a path; None if there is none.

        Files over MAX_FILE_BYTES come without their bytes.
        """
        path = posixpath.normpath(path)
        if path == ".":
            return PathContent("directory")
        entry = next(iter(self._git.ls_tree(revision, path, recursive=False)), None)
        if entry is None or entry.path != path:
            return None
        if entry.kind != "blob":
            return PathContent("directory" if entry.kind == "tree" else "submodule")
        if entry.mode == "120000":
            return PathContent("link")
        (data,) = self._objects.blobs([entry.oid], MAX_FILE_BYTES)
        return PathContent("large") if len(data) > MAX_FILE_BYTES else PathContent("file", data)


def _to_touch(row: RawChange) -> Touch:
    old_mode, old_oid = row.olds[0]
    return Touch(
        row.path,
        row.old_path,
        row.oid if row.mode in REGULAR_MODES else "",
        old_oid if old_mode in REGULAR_MODES else "",
    )


Walk: TypeAlias = "list[tuple[str, tuple[Touch, ...]]]"
"""Commits, newest first, with the memory files that each of them changed."""


class Trace(Value):
    """A memory through history. `names` are all ids of it and its lineage, with former ids."""

    id: str
    is_removed: bool
    names: frozenset[str]


class _HistoricIds(Value):
    """The newest version of each id in history that is not in the tree."""

    stamps: dict[str, Stamp]
    suspects: tuple[Touch, ...]
    """Files for which git detected a rename to another id."""


def trace(
    tree: Tree, walk: Walk, pending: Iterable[Change], categories: Collection[str], wanted: str
) -> Trace:
    """Find a memory in a tree or in history, with all ids that belong to it.

    `walk` is the whole history, `pending` the uncommitted changes. Only files of removed and
    renamed memories are read.

    Raises:
        MemtoolError: neither the tree nor history has the id, or it is ambiguous.
    """
    historic = _scan_walk(tree, walk)
    id_ = _find_id(tree, historic.stamps, wanted)
    read = versions.read_blobs(
        tree.location.repository,
        [*historic.stamps.values(), *list_stamps(historic.suspects)],
        categories,
    )
    renames = _find_renames(historic.suspects, read, pending)
    removed = [read[stamp].memory for name, stamp in historic.stamps.items() if name not in tree]
    lineages = (
        tree.lineage.as_proposed,
        Lineage(memory for memory in removed if memory is not None).as_proposed,
    )
    former_ids = _collect_reachable(id_, renames)
    present_ids = sorted(name for name in former_ids if name in tree)
    return Trace(
        id=present_ids[0] if present_ids and id_ not in tree else id_,
        is_removed=not present_ids and not _is_broken(tree, id_),
        names=frozenset(
            _collect_reachable(id_, renames, *(lineage.supersedes for lineage in lineages))
            | _collect_reachable(id_, renames, *(lineage.superseded_by for lineage in lineages))
        ),
    )


def _scan_walk(tree: Tree, walk: Walk) -> _HistoricIds:
    present = set(tree.ids)
    stamps: dict[str, Stamp] = {}
    suspects: list[Touch] = []
    for _commit, touches in walk:
        for touch in touches:
            new, old = id_from_path(touch.path), id_from_path(touch.old_path)
            if new not in present and (touch.oid or touch.old_oid):
                newest = (touch.path, touch.oid) if touch.oid else (touch.old_path, touch.old_oid)
                stamps.setdefault(new, newest)
            if new != old and touch.old_oid:
                suspects.append(touch)
                if old not in present:
                    stamps.setdefault(old, (touch.old_path, touch.old_oid))
    return _HistoricIds(stamps, tuple(suspects))


def _find_id(tree: Tree, stamps: Mapping[str, Stamp], wanted: str) -> str:
    """Return the id of a memory in the tree, or of one that is only in history."""
    name = id_from_path(ids.without_commit(wanted))
    removed = short_ids.find_begun(name, sorted(stamps))
    if name in stamps or (len(removed) == 1 and not short_ids.find_begun(name, tree.ids)):
        return name if name in stamps else removed[0]
    try:
        return tree.find(wanted).id
    except MemtoolError as error:
        removed = short_ids.find_meant(name, sorted(stamps))
        if error.code != "unknown-id" or len(removed) != 1:
            raise
        return removed[0]


def _is_broken(tree: Tree, id_: str) -> bool:
    return any(id_from_path(problem.path) == id_ for problem in tree.problems)


def _find_renames(
    suspects: Iterable[Touch], read: Mapping[Stamp, Version], pending: Iterable[Change]
) -> dict[str, set[str]]:
    """Return the ids that name the same memory, in both directions."""
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
    for first, second_id in pairs:
        names.setdefault(first, set()).add(second_id)
        names.setdefault(second_id, set()).add(first)
    return names


def _collect_reachable(start: str, *graphs: Mapping[str, Iterable[str]]) -> set[str]:
    """Return all ids that are reachable from an id, with the id itself."""
    reached = {start}
    todo = [start]
    while todo:
        id_ = todo.pop()
        new_ids = {neighbour for by_id in graphs for neighbour in by_id.get(id_, ())} - reached
        reached |= new_ids
        todo += new_ids
    return reached
