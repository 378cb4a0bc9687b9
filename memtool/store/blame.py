"""Blame: the commit that wrote each line of a file.

A single file uses `git blame`. For all files of a commit one walk over history is enough, while git
would need a process for each.
"""

from __future__ import annotations

from difflib import SequenceMatcher

from memtool.memory.changes import id_from_path
from memtool.memory.document import MAX_BYTES
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from memtool.store.git import Git, Touch
    from memtool.store.history import Commit, History
    from memtool.store.snapshot import Location
    from memtool.store.tree import Record

UNCOMMITTED = ""
"""Commit of a line that is not committed yet."""
MAX_COMPARED = 3_000
"""Limit of changed lines that are matched: a memory of 64 KiB may have 65,536 equal lines."""


def blame_lines(
    history: History, location: Location, head: str, path: str, data: bytes
) -> list[str]:
    """Return the commit of each line of a file, in order; UNCOMMITTED for lines without one.

    `data` is the file in the snapshot, `head` the commit of the snapshot. git never blames the
    worktree itself, since it would run the repository's filters; lines of the worktree are matched
    with those of the commit.
    """
    rows = data.split(b"\n")
    origin = _find_committed_path(location, head, path) if head else ""
    stored = history.read_path(head, origin) if origin else None
    if stored is None or stored.kind != "file":
        return [UNCOMMITTED] * len(rows)
    blamed = history.blame(head, origin)
    commits = [UNCOMMITTED] * len(rows)
    for old, new in match_lines(stored.data.split(b"\n"), rows):
        commits[new] = blamed.get(old + 1, UNCOMMITTED)
    return _fill_last_line(commits, rows)


def match_lines(before: list[bytes], after: list[bytes]) -> Iterator[tuple[int, int]]:
    """Yield old and new positions of unchanged lines; none from a middle over MAX_COMPARED."""
    shorter = min(len(before), len(after))
    head = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    remaining = shorter - head
    tail = next((n for n in range(remaining) if before[-1 - n] != after[-1 - n]), remaining)
    yield from ((n, n) for n in range(head))
    yield from ((len(before) - n, len(after) - n) for n in range(1, tail + 1))
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if max(len(old), len(new)) <= MAX_COMPARED:
        for block in SequenceMatcher(None, old, new).get_matching_blocks():
            for step in range(block.size):
                yield head + block.a + step, head + block.b + step


def _find_committed_path(location: Location, head: str, path: str) -> str:
    """Return the path of a memory in a commit; it may have moved since."""
    if location.kind == "commit":
        return path
    blobs = location.repository.git.blobs_below(head, location.directory)
    name = id_from_path(path)
    same_id = [path for path in blobs if name in path and id_from_path(path) == name]
    return path if path in same_id else min(same_id, default="")


def _fill_last_line(commits: list[str], rows: list[bytes]) -> list[str]:
    """Give the empty text after the last line feed the commit of the last line."""
    if len(rows) > 1 and rows[-1] == b"":
        commits[-1] = commits[-2]
    return commits


class FileHistory(Value):
    """The history of a file's content: commits with the resulting blobs, newest first.

    `is_straight` means that each blob derives from the next one only, so lines can be followed.
    """

    steps: tuple[tuple[str, str], ...]
    is_straight: bool


class FileHistories:
    """The history of every memory of a commit, from one walk; `commits` are all its ancestors."""

    def __init__(self, git: Git, history: History, head: str, directory: str) -> None:
        self._git = git
        self._history = history
        self._head = head
        self._order: dict[str, int] = {}
        self._touches: dict[str, list[tuple[str, Touch]]] = {}
        for number, (commit, touches) in enumerate(history.walk(head, directory)):
            self._order[commit] = number
            for touch in touches:
                self._touches.setdefault(touch.path, []).append((commit, touch))
        self.commits = frozenset(git.line("rev-list", head).split())
        self._merges = frozenset(git.line("rev-list", "--min-parents=2", head).split())

    def find_author_commit(self, id_: str) -> Commit:
        """Return a commit; UNKNOWN_COMMIT for an empty id or a boundary of a shallow clone."""
        return self._history.find_author_commit(id_)

    def find_newest(self, commits: Iterable[str]) -> str:
        """Return the newest of some commits, by their order in the walk."""
        return min(commits, key=lambda id_: self._order.get(id_, -1), default="")

    def trace(self, record: Record) -> FileHistory:
        """Return the history of a memory's file."""
        steps: list[tuple[str, str]] = []
        path, oid, after = record.path, record.oid, -1
        while oid:
            for commit, touch in self._touches.get(path, ()):
                if touch.oid == oid and self._order[commit] > after:
                    break
            else:
                return FileHistory(tuple(steps), is_straight=False)
            steps.append((commit, oid))
            path, oid, after = touch.old_path, touch.old_oid, self._order[commit]
        is_straight = not any(commit in self._merges for commit, _oid in steps)
        return FileHistory(tuple(steps), is_straight)

    def blame_lines(self, record: Record) -> tuple[bytes, list[str]]:
        """Return the content of a memory's file, and the commit of each line."""
        file_history = self.trace(record)
        blobs = [
            *self._git.blobs(
                [oid for _commit, oid in file_history.steps] or [record.oid], MAX_BYTES
            )
        ]
        rows = blobs[0].split(b"\n")
        if not file_history.is_straight:
            blamed = self._history.blame(self._head, record.path)
            commits = [blamed.get(number + 1, "") for number in range(len(rows))]
            return blobs[0], _fill_last_line(commits, rows)
        first, _oid = file_history.steps[-1]
        commits = [first] * (blobs[-1].count(b"\n") + 1)
        for at in range(len(file_history.steps) - 2, -1, -1):
            after = blobs[at].split(b"\n")
            next_ = [file_history.steps[at][0]] * len(after)
            for old, new in match_lines(blobs[at + 1].split(b"\n"), after):
                next_[new] = commits[old]
            commits = next_
        return blobs[0], _fill_last_line(commits, rows)
