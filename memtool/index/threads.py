"""Threads: the memories of one session, task or parent, in the order of what happened.

A memory is in one thread at most. The name of the thread and the place in it are columns.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.memory.memory import Memory
    from memtool.store.tree import Record


SESSION = "session:"

MOST_THREAD_NAME = 200


def thread_name(memory: Memory) -> str:
    """Return what a memory is a part of: its session, else its task, else its first parent.

    The session is that of its key, or of its first source that is one. Empty is none.
    """
    session = memory.text("session")
    if not session:
        sources = (one for one in memory.items("source") if one.startswith(SESSION))
        session = next(sources, "").removeprefix(SESSION).partition("#")[0]
    parent = next(iter(memory.items("parent")), "")
    named = (("session", session), ("task", memory.text("task_id")), ("parent", parent))
    name = next((f"{kind} {text}" for kind, text in named if text), "")
    return " ".join(name.split())[:MOST_THREAD_NAME]


def thread_order(record: Record) -> tuple[int, int, list[str], str]:
    """Sort key within a thread: by message of the session, by time, and then by name.

    Numbers in names count as numbers, so that turn 10 comes after turn 9.
    """
    memory = record.memory
    message = 0
    for source in memory.items("source"):
        place = source.partition("#")[2] if source.startswith(SESSION) else ""
        if place.isdecimal() and place.isascii():
            message = int(place[:_MOST_DIGITS])
            break
    spaced = "".join(char if char.isdigit() else " " for char in record.id).split()
    digits = [part.rjust(_MOST_DIGITS, "0") for part in spaced]
    return message, memory.timestamp, digits, record.path


_MOST_DIGITS = 18


def thread_place(record: Record) -> str:
    """Return a text that sorts as `thread_order` does."""
    message, written, digits, path = thread_order(record)
    numbers = (f"{message:018}", f"{written + _BEFORE_S:020}", *digits)
    return f"{' '.join(numbers)}  {path}"


_BEFORE_S = 1 << 60
"""Makes seconds before 1970 positive, so that they sort as texts."""
