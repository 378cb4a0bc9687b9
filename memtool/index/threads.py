"""Threads: the memories of one session, task or parent, in the order of what happened.

A memory is in one thread at most. Its name and place are columns of the stored fields; a thread
that is spread over the base segment and what changed since is put together when it is asked for.
"""

from __future__ import annotations

from memtool.index import postings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.memory.memory import Memory
    from memtool.store.snapshot import Record


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


def sections(records: Sequence[Record]) -> dict[str, bytes]:
    """Return the sections of stored fields that hold threads; all are empty where there is none.

    They are the names, the place of the thread of each memory counted from 1, the members of all
    threads in their order, and where those of each end.
    """
    members: dict[str, list[int]] = {}
    for number, record in enumerate(records):
        name = thread_name(record.memory)
        if name:
            members.setdefault(name, []).append(number)
    names = sorted(members)
    thread_of = [0] * len(records) if names else []
    threaded: list[int] = []
    ends = [0] if names else []
    for place, name in enumerate(names, 1):
        threaded += sorted(members[name], key=lambda number: thread_order(records[number]))
        ends.append(len(threaded))
        for number in members[name]:
            thread_of[number] = place
    return {
        "threads": "".join(f"{name}\n" for name in names).encode(errors="surrogatepass"),
        "thread_of": postings.column("I", thread_of),
        "threaded": postings.column("I", threaded),
        "thread_ends": postings.column("I", ends),
    }
