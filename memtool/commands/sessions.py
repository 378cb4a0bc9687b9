"""The sessions of a workspace: opened with its settings, drawn with its clock, told as text."""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.memory import moments
from memtool.sessions import model
from memtool.sessions.model import FOLDER, Head
from memtool.sessions.store import MEGABYTE, Exists, Sessions
from memtool.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_DRAWS = 1_000


def opened(ws: Workspace) -> Sessions:
    """Return the sessions of this clone, with the limits and allowances of the settings."""
    from memtool.redaction.find import allowlist

    return Sessions(
        directory=os.path.join(ws.repository.cache_dir, FOLDER),
        allowed=allowlist(ws.settings),
        most_bytes=ws.settings.count("sessions.session_mb") * MEGABYTE,
        most_total=ws.settings.count("sessions.total_mb") * MEGABYTE,
    )


def beginning(
    ws: Workspace,
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
    from memtool.sessions.model import line
    from memtool.sessions.redaction import clean_texts

    branch, top = _branch(ws), ws.repository.top
    clean = clean_texts({host, agent, title, branch, top}, sessions.allowed)
    return Head(
        id=id or model.draw_id(ws.now, ws.random(3)),
        started=started or ws.now,
        host=clean[host],
        agent=" ".join(clean[agent].split()),
        title=line(clean[title]),
        worktree=clean[top],
        branch=clean[branch],
    )


def make(ws: Workspace, head: Head, create: Callable[[Head], None]) -> Head:
    """Create a session under the first drawn id that is free, and return its head.

    Raises:
        MemtoolError: the disk refuses.
    """
    for _draw in range(_DRAWS):
        try:
            create(head)
        except Exists:
            head = head.replace(id=model.draw_id(ws.now, ws.random(3)))
        else:
            return head
    raise MemtoolError("no free id for a session was found", hint="run the same command again")


def moment(second: int) -> str:
    """Return a second as text, empty for none."""
    return moments.render(second) if second else ""


def size(count: int) -> str:
    """Return a number of bytes as a person reads it."""
    return f"{count / MEGABYTE:.1f} MB" if count >= MEGABYTE // 10 else f"{-(-count // 1024)} KB"


def _branch(ws: Workspace) -> str:
    answer = ws.repository.git.run("symbolic-ref", "-q", "--short", "HEAD", allowed=(0, 1))
    return answer.decode(errors="replace").strip()
