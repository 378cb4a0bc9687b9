"""The database of OpenCode, which keeps its sessions in SQLite: read only, one session of it."""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.sessions import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Connection
    from typing import Any

HOST = "opencode"
MAGIC = b"SQLite format 3\0"
MOST_MESSAGES = 20_000
MOST_SESSIONS = 1_000
_WAIT_S = 5


def document(path: str, session: str, tops: Sequence[str]) -> dict[str, Any]:
    """Return a session as `opencode export` prints it: the one named, or the last in a worktree.

    Raises:
        MemtoolError: it is no database of OpenCode, or holds no such session.
    """
    import sqlite3

    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    try:
        held = sqlite3.connect(f"file:{quoted}?mode=ro", uri=True, timeout=_WAIT_S)
        try:
            return _session(held, path, session, tops)
        finally:
            held.close()
    except sqlite3.Error as error:
        raise MemtoolError(
            f"{path} is a database, but not one of OpenCode that can be read: {error}",
            hint="opencode export SESSION | memtool capture -",
            code="foreign-transcript",
        ) from None


def _session(held: Connection, path: str, session: str, tops: Sequence[str]) -> dict[str, Any]:
    if not session:
        newest = "SELECT id, directory FROM session WHERE parent_id IS NULL "
        found = held.execute(newest + "ORDER BY time_updated DESC LIMIT ?", (MOST_SESSIONS,))
        session = next((str(id_) for id_, place in found if _is_below(str(place), tops)), "")
    session = _known(held, session)
    row = held.execute("SELECT directory FROM session WHERE id = ?", (session,)).fetchone()
    if row is None:
        what = f"no session {session}" if session else "no session of this worktree"
        raise MemtoolError(
            f"{path} holds {what}",
            hint="opencode session list shows them; name one as --session ID",
            code="no-session",
        )
    parts: dict[str, list[dict[str, Any]]] = {}
    by_message = "SELECT message_id, id, data FROM part WHERE session_id = ? ORDER BY id"
    for message, id_, data in held.execute(by_message, (session,)):
        parts.setdefault(str(message), []).append(_data(data) | {"id": str(id_)})
    by_time = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id LIMIT ?"
    rows = held.execute(by_time, (session, MOST_MESSAGES)).fetchall()
    return {
        "info": {"id": session, "directory": row[0]},
        "messages": [
            {"info": _data(data) | {"id": str(id_)}, "parts": parts.get(str(id_), [])}
            for id_, data in rows
        ],
    }


def _known(held: Connection, session: str) -> str:
    """Return the id of OpenCode that a session is named for here, which may be a hash of it."""
    if not session.startswith(f"{HOST}-"):
        return session
    newest = "SELECT id FROM session ORDER BY time_updated DESC LIMIT ?"
    ids = [str(id_) for (id_,) in held.execute(newest, (MOST_SESSIONS,))]
    return next((id_ for id_ in ids if names.hashed(HOST, id_) == session), session)


def _is_below(directory: str, tops: Sequence[str]) -> bool:
    return any(directory == top or directory.startswith(f"{top}/") for top in tops if top)


def _data(text: object) -> dict[str, Any]:
    import json

    try:
        held = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        held = None
    return held if isinstance(held, dict) else {}
