"""The validity check: moments that cannot be, or have not been yet. Windows are the schema's."""

from __future__ import annotations

from memtool.gate.content import Content, File
from memtool.memory import moments
from memtool.memory.problem import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.memory.memory import Memory

SLACK_S = 300
"""Clocks of two machines differ; only what is later than this counts as the future."""
_STAMPED = ("checked", "deleted")
"""Keys that say who did something, and when."""


def check(content: Content) -> Iterator[Problem]:
    """Yield moments of the past that lie in the future, and memories that ended before they began.

    A window that ends before it begins is no valid memory, and the schema check tells so.
    """
    limit = content.now + SLACK_S
    for file in content.files:
        memory = file.memory
        if memory is None or (file.known is not None and file.known.latest <= limit):
            continue
        if memory.timestamp > limit:
            yield _warning(
                file,
                "timestamp",
                "future",
                f"it is dated {memory.text('timestamp')}, which is in the future",
                "correct the timestamp before it is committed, or the clock",
            )
        for key in _STAMPED:
            at = memory.table(key).get("at")
            if at and moments.parse(at) > limit:
                yield _warning(
                    file, key, "future", f"{key}.at is {at}, which is in the future",
                    f"correct {key}.at",
                )  # fmt: skip
        end = memory.text("valid_through")
        if end and moments.end(end) < memory.timestamp:
            yield _warning(
                file,
                "valid_through",
                "bad-window",
                f"it is valid through {end}, before it was written",
                "correct valid_through, or date the memory to when it held",
            )


def latest(memory: Memory) -> int:
    """Return the last second that a memory speaks of as past."""
    stamps = (memory.table(key).get("at") for key in _STAMPED)
    return max([memory.timestamp, *(moments.parse(at) for at in stamps if at)])


def _warning(file: File, key: str, code: str, message: str, hint: str) -> Problem:
    id_ = file.memory.id if file.memory else ""
    return Problem(file.path, file.line_of(key), code, message, hint, id=id_, severity="warning")
