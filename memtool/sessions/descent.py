"""Descent: which session a transcript goes on from, where a host copied one to fork it.

A copy begins with the lines of the first, under their own names. Taken again, they would look as if
they had been said in two sessions.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.sessions import journal, parts
from memtool.sessions.store import MESSAGES, Sessions
from memtool.store.files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memtool.sessions.message import Message

HOSTS = ("claude", "codex", "gemini", "opencode")
"""Hosts whose lines have names that no other line has."""
MOST_SESSIONS = 50
"""Sessions that are looked through, the ones that began last."""


def parent(sessions: Sessions, id: str, host: str, messages: Sequence[Message]) -> tuple[str, int]:
    """Return the session that holds the first of these messages, and the last number they share.

    Without such a session the id is empty. Of several it is the one that began last.
    """
    first = next((one.origin for one in messages if one.origin), "")
    if host not in HOSTS or not first:
        return "", 0
    mark = journal.write([{"origin": first}])[1:-2]
    heads = [head for head in sessions.heads()[0] if head.host == host and head.id != id]
    heads.sort(key=lambda head: (head.started, head.id), reverse=True)
    copied = {one.origin for one in messages}
    for head in heads[:MOST_SESSIONS]:
        if any(mark in data for data in _journals(sessions, head.id)):
            known, _torn = sessions.messages(head.id)
            shared = [one.number for one in known if one.origin in copied]
            if shared:
                return head.id, shared[-1]
    return "", 0


def origins(sessions: Sessions, id: str) -> set[str]:
    """Return the names of the lines that a session was made from, and those before it."""
    found: set[str] = set()
    seen: set[str] = set()
    name = id
    while name and name not in seen:
        seen.add(name)
        try:
            known, _torn = sessions.messages(name)
            before = sessions.head(name).parent
        except MemtoolError:  # a parent was removed by hand
            if name == id:
                raise
            break
        found.update(one.origin for one in known if one.origin)
        name = before
    return found


def _journals(sessions: Sessions, id: str) -> Iterator[bytes]:
    folder = sessions.folder(id)
    try:
        yield read_regular(os.path.join(folder, MESSAGES))
    except OSError:
        return
    yield from map(parts.opened, parts.parts(folder))
