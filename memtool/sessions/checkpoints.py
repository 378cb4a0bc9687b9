"""Checkpoints: where the work of a session stood, every ten messages and whenever one is asked for.

At a checkpoint everything before it is synced to the disk, so that a power cut takes no more than
what came after.
"""

from __future__ import annotations

from memtool.sessions.wording import line
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from memtool.sessions.message import Message

EVERY = 10
"""Messages between automatic checkpoints."""
MOST_FILES = 20


class Checkpoint(Value):
    """Where the work stood after a message. `note` is what somebody said; empty if automatic.

    `asked` is what a person last asked for, `files` what was touched and `failures` how many calls
    of tools failed, since the checkpoint before.
    """

    message: int
    moment: int
    note: str = ""
    asked: str = ""
    files: tuple[str, ...] = ()
    failures: int = 0


def automatic(before: Sequence[Message], new: Sequence[Message], moment: int) -> list[Checkpoint]:
    """Return the checkpoints that new messages bring; `before` are the last ones ahead of them."""
    known = [*before, *new]
    start = new[0].number if new else 0
    return [
        checkpoint([near for near in known if one.number - EVERY < near.number <= one.number],
                   moment)
        for one in new
        if one.number % EVERY == 0 and one.number >= start
    ]  # fmt: skip


def checkpoint(messages: Sequence[Message], moment: int, note: str = "") -> Checkpoint:
    """Return the checkpoint after messages, which are those since the last one."""
    asked = [one.text for one in messages if one.role == "user"]
    touched = dict.fromkeys(path for one in messages for path in one.files)
    return Checkpoint(
        message=messages[-1].number if messages else 0,
        moment=moment,
        note=note,
        asked=line(asked[-1]) if asked else "",
        files=tuple(touched)[:MOST_FILES],
        failures=sum(one.is_ok is False for one in messages),
    )


def read(row: Mapping[str, Any]) -> Checkpoint | None:
    """Return the checkpoint of a row of the journal, None where it holds none."""
    files = row.get("files", [])
    numbers = [row.get(name, 0) for name in ("message", "moment", "failures")]
    texts = [row.get(name, "") for name in ("note", "asked")]
    if (
        not all(type(number) is int for number in numbers)
        or not isinstance(files, list)
        or not all(isinstance(text, str) for text in (*texts, *files))
    ):
        return None
    message, moment, failures = numbers
    note, asked = texts
    return Checkpoint(message, moment, note, asked, tuple(files), failures)
