"""Threads: the memories of one session, task or parent, in the order of events.

A memory is in one thread at most. The name of the thread and the place in it are columns.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.memory.memory import Memory
    from memtool.store.tree import Record


SESSION = "session:"

MAX_THREAD_NAME_CHARS = 200


def find_thread_name(memory: Memory) -> str:
    """Return the name of a memory's thread: its session, else its task, else its first parent.

    The session is that of its key, else of its first source that is a session. Empty if there is
    no thread.
    """
    session = memory.text("session")
    if not session:
        sources = (source for source in memory.items("source") if source.startswith(SESSION))
        session = next(sources, "").removeprefix(SESSION).partition("#")[0]
    parent = next(iter(memory.items("parent")), "")
    named = (("session", session), ("task", memory.text("task_id")), ("parent", parent))
    name = next((f"{kind} {text}" for kind, text in named if text), "")
    return " ".join(name.split())[:MAX_THREAD_NAME_CHARS]


def thread_sort_key(record: Record) -> tuple[int, int, list[str], str]:
    """Return the sort key of a memory in its thread: by message of the session, time, then name.

    Numbers in names count as numbers, so that turn 10 comes after turn 9.
    """
    memory = record.memory
    message = 0
    for source in memory.items("source"):
        place = source.partition("#")[2] if source.startswith(SESSION) else ""
        if place.isdecimal() and place.isascii():
            message = int(place[:_MAX_DIGITS])
            break
    spaced = "".join(char if char.isdigit() else " " for char in record.id).split()
    digits = [part.rjust(_MAX_DIGITS, "0") for part in spaced]
    return message, memory.timestamp, digits, record.path


_MAX_DIGITS = 18


def format_sort_key(record: Record) -> str:
    """Return a text that sorts like `thread_sort_key`."""
    message, written, digits, path = thread_sort_key(record)
    numbers = (f"{message:018}", f"{written + _OFFSET_S:020}", *digits)
    return f"{' '.join(numbers)}  {path}"


# Makes seconds before 1970 positive, so that they sort as text.
_OFFSET_S = 1 << 60
