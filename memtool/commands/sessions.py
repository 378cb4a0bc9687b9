"""The sessions of a context: opened with its settings, drawn with its clock, told as text."""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.sessions import names
from memtool.sessions.head import Head
from memtool.sessions.names import FOLDER
from memtool.sessions.store import MEGABYTE, Exists, Sessions
from memtool.store.context import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_DRAWS = 1_000


def opened(context: Context) -> Sessions:
    """Return the sessions of this clone, with the limits and allowances of the settings."""
    from memtool.gate.allowing import allowed

    return Sessions(
        directory=os.path.join(context.repository.cache_dir, FOLDER),
        allowed=allowed(context.settings),
        most_bytes=context.settings.count("sessions.session_mb") * MEGABYTE,
        most_total=context.settings.count("sessions.total_mb") * MEGABYTE,
    )


def beginning(
    context: Context,
    sessions: Sessions,
    *,
    id: str = "",
    host: str = "",
    agent: str = "",
    title: str = "",
    started: int = 0,
) -> Head:
    """Return the head of a session that begins here, now and under a new id unless they are given.

    The title is the first line of what is given.
    """
    from memtool.sessions.cleaning import clean_texts
    from memtool.sessions.wording import line

    branch, top = _branch(context), context.repository.top
    clean = clean_texts({host, agent, title, branch, top}, sessions.allowed)
    return Head(
        id=id or names.draw(context.now, context.random(3)),
        started=started or context.now,
        host=clean[host],
        agent=" ".join(clean[agent].split()),
        title=line(clean[title]),
        worktree=clean[top],
        branch=clean[branch],
    )


def make(context: Context, head: Head, create: Callable[[Head], None]) -> Head:
    """Create a session under the first drawn id that is free, and return its head.

    Raises:
        MemtoolError: the disk refuses.
    """
    for _draw in range(_DRAWS):
        try:
            create(head)
        except Exists:
            head = head.replace(id=names.draw(context.now, context.random(3)))
        else:
            return head
    raise MemtoolError("no free id for a session was found", hint="run the same command again")


def moment(second: int) -> str:
    """Return a second as text, empty for none."""
    return timestamps.render(second) if second else ""


def size(count: int) -> str:
    """Return a number of bytes as a person reads it."""
    return f"{count / MEGABYTE:.1f} MB" if count >= MEGABYTE // 10 else f"{-(-count // 1024)} KB"


def _branch(context: Context) -> str:
    answer = context.repository.git.run("symbolic-ref", "-q", "--short", "HEAD", allowed=(0, 1))
    return answer.decode(errors="replace").strip()
