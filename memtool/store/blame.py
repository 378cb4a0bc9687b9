"""Blame: which commit wrote each line of a file.

One file is asked of `git blame`. The files of a whole commit are answered from one walk over
history, where git would need a process for each.
"""

from __future__ import annotations

from difflib import SequenceMatcher

from memtool.memory.changes import stem
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
"""Stands where a line has no commit yet."""
MAX_COMPARED = 3_000
"""Changed lines that are matched one by one: a memory of 64 KiB may have 65,536 equal ones."""


def lines(history: History, location: Location, head: str, path: str, data: bytes) -> list[str]:
    """Return the commit of each line of a file, in order, UNCOMMITTED for lines that have none.

    `data` is the file as the snapshot has it, `head` the commit that the snapshot belongs
    to. Git is never asked about the worktree itself, where it would run the filters of the
    repository; lines of the worktree are matched with those of the commit.
    """
    rows = data.split(b"\n")
    origin = _committed_path(location, head, path) if head else ""
    stored = history.stored(head, origin) if origin else None
    if stored is None or stored.kind != "file":
        return [UNCOMMITTED] * len(rows)
    blamed = history.blame(head, origin)
    found = [UNCOMMITTED] * len(rows)
    for old, new in matches(stored.data.split(b"\n"), rows):
        found[new] = blamed.get(old + 1, UNCOMMITTED)
    return _whole(found, rows)


def matches(before: list[bytes], after: list[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the positions of lines that stayed; none of a middle that is too long to compare."""
    shorter = min(len(before), len(after))
    head = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    rest = shorter - head
    tail = next((n for n in range(rest) if before[-1 - n] != after[-1 - n]), rest)
    yield from ((n, n) for n in range(head))
    yield from ((len(before) - n, len(after) - n) for n in range(1, tail + 1))
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if max(len(old), len(new)) <= MAX_COMPARED:
        for block in SequenceMatcher(None, old, new).get_matching_blocks():
            for step in range(block.size):
                yield head + block.a + step, head + block.b + step


def _committed_path(location: Location, head: str, path: str) -> str:
    """Return where the memory of a path lies in a commit; it may have moved since."""
    if location.kind == "commit":
        return path
    there = location.repository.git.blobs_below(head, location.directory)
    name = stem(path)
    same_id = [one for one in there if name in one and stem(one) == name]
    return path if path in same_id else min(same_id, default="")


def _whole(commits: list[str], rows: list[bytes]) -> list[str]:
    """Return the commits of lines, that of the last line for what follows its line feed."""
    if len(rows) > 1 and rows[-1] == b"":
        commits[-1] = commits[-2]
    return commits


class FileHistory(Value):
    """How a file came to its bytes: commits with the blobs that they left, the newest first.

    `is_straight` says that each blob was made of the next alone, so that lines can be followed.
    """

    steps: tuple[tuple[str, str], ...]
    is_straight: bool


class FileHistories:
    """The history of every memory of a commit, from one walk; `commits` are all that lead to it."""

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

    def author_of(self, id_: str) -> Commit:
        """Return the commit that wrote something."""
        return self._history.author_of(id_)

    def newest(self, commits: Iterable[str]) -> str:
        """Return the commit that no other one follows."""
        return min(commits, key=lambda id_: self._order.get(id_, -1), default="")

    def of(self, record: Record) -> FileHistory:
        """Return how the file of a memory came to its bytes."""
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

    def lines(self, record: Record) -> tuple[bytes, list[str]]:
        """Return the bytes of a memory's file, and the commit of each line."""
        past = self.of(record)
        blobs = [*self._git.blobs([oid for _commit, oid in past.steps] or [record.oid], MAX_BYTES)]
        rows = blobs[0].split(b"\n")
        if not past.is_straight:
            blamed = self._history.blame(self._head, record.path)
            commits = [blamed.get(number + 1, "") for number in range(len(rows))]
            return blobs[0], _whole(commits, rows)
        first, _oid = past.steps[-1]
        commits = [first] * (blobs[-1].count(b"\n") + 1)
        for at in range(len(past.steps) - 2, -1, -1):
            after = blobs[at].split(b"\n")
            next_ = [past.steps[at][0]] * len(after)
            for old, new in matches(blobs[at + 1].split(b"\n"), after):
                next_[new] = commits[old]
            commits = next_
        return blobs[0], _whole(commits, rows)
