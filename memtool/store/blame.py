"""Blame: which commit each line of a memory file comes from, as the file stands in a tree."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from memtool.memory.changes import stem
from memtool.store.snapshot import Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.history import History  # importing it costs nine interpreter starts

UNCOMMITTED = ""
"""Stands where a line has no commit yet."""
MAX_COMPARED = 3_000
"""Changed lines that are matched one by one: a memory of 64 KiB may have 65,536 equal ones."""


def lines(history: History, snapshot: Snapshot, head: str, path: str, data: bytes) -> list[str]:
    """Return the commit of each line of a file, in order, UNCOMMITTED for lines that have none.

    `data` is the file as it stands in the snapshot, `head` the commit that the snapshot belongs
    to. Git is never asked about the worktree itself, where it would run the filters of the
    repository; lines of the worktree are matched with those of the commit.
    """
    rows = data.split(b"\n")
    origin = _committed_path(snapshot, head, path) if head else ""
    stored = history.stored(head, origin) if origin else None
    if stored is None or stored.kind != "file":
        return [UNCOMMITTED] * len(rows)
    blamed = history.blame(head, origin)
    found = [UNCOMMITTED] * len(rows)
    for old, new in _matches(stored.data.split(b"\n"), rows):
        found[new] = blamed.get(old + 1, UNCOMMITTED)
    if len(rows) > 1 and rows[-1] == b"":
        found[-1] = found[-2]  # what stands behind the last line feed is no line
    return found


def _matches(before: list[bytes], after: list[bytes]) -> Iterator[tuple[int, int]]:
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


def _committed_path(snapshot: Snapshot, head: str, path: str) -> str:
    """Return where the memory of a path lies in a commit; it may have moved since."""
    if snapshot.kind == "commit":
        return path
    answer = snapshot.repository.git.run(
        "ls-tree", "-r", "-z", "--name-only", "--full-tree", head, "--", snapshot.directory
    )
    paths = [row.decode(errors="surrogateescape") for row in answer.split(b"\0")]
    same_id = [other for other in paths if stem(other) == stem(path)]
    return path if path in same_id else min(same_id, default="")
