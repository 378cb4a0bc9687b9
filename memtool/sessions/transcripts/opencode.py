"""OpenCode: the document that `opencode export` prints, and the database that it is made from.

Where OpenCode keeps its sessions has changed more than once; what it exports has not. The database
is opened read only, and one session of it is read as a document.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.sessions.model import hashed_id, json_row
from memtool.sessions.transcripts.markup import moment_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from sqlite3 import Connection
    from typing import Any

    from memtool.sessions.model import Message
    from memtool.sessions.transcripts.markup import TranscriptContext

AGENT = "opencode"


def knows(row: Mapping[str, Any]) -> bool:
    """Tell whether a document is an exported session, or a line one of its messages."""
    if isinstance(row.get("parts"), list):
        return isinstance(row.get("info"), dict)
    held = row.get("messages")
    return isinstance(row.get("info"), dict) and isinstance(held, list)


def read(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    """Yield the messages of a document, or of one message."""
    if not knows(row):
        return
    info = row["info"]
    is_whole = isinstance(row.get("messages"), list)
    context.enter(AGENT, None, info.get("id" if is_whole else "sessionID"), info.get("directory"))
    for message in row["messages"] if is_whole else [row]:
        if isinstance(message, dict) and isinstance(message.get("info"), dict):
            parts = message.get("parts")
            yield from _message(message["info"], parts if isinstance(parts, list) else [], context)


def _message(
    info: Mapping[str, Any], parts: list[Any], context: TranscriptContext
) -> Iterator[Message]:
    said = {"user": context.typed, "assistant": context.spoken}.get(str(info.get("role")))
    moment = _moment(info)
    for number, part in enumerate(parts):
        if not isinstance(part, dict) or part.get("synthetic") or part.get("ignored"):
            continue  # what the host puts into a prompt
        context.moment = moment
        origin = str(part.get("id") or f"{info.get('id')}:{number}")
        text, state = part.get("text"), part.get("state")
        if part.get("type") == "text" and isinstance(text, str) and said is not None:
            yield from said(text, origin)
        elif part.get("type") == "tool" and isinstance(state, dict):
            context.moment = _moment(state) or moment
            yield context.called(origin, str(part.get("tool")), state.get("input"), origin)
            yield from _answer(state, context, origin)


def _answer(state: Mapping[str, Any], context: TranscriptContext, origin: str) -> Iterator[Message]:
    """Yield the answer to a call, where it has come; a command that it ran may have failed."""
    status = state.get("status")
    if status not in ("completed", "error"):
        return
    text, facts = state.get("output" if status == "completed" else "error"), state.get("metadata")
    code = facts.get("exit") if isinstance(facts, dict) else None
    is_ok = status == "completed" and not (type(code) is int and code)
    text = text if isinstance(text, str) else ""
    yield context.answered(origin, text, f"{origin}:answer", is_ok=is_ok)


def _moment(row: Mapping[str, Any]) -> int:
    time = row.get("time")
    return moment_of(time.get("created", time.get("start"))) if isinstance(time, dict) else 0


_MOST_MESSAGES = 20_000
_MOST_SESSIONS = 1_000
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
        found = held.execute(newest + "ORDER BY time_updated DESC LIMIT ?", (_MOST_SESSIONS,))
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
        parts.setdefault(str(message), []).append((json_row(data) or {}) | {"id": str(id_)})
    by_time = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id LIMIT ?"
    rows = held.execute(by_time, (session, _MOST_MESSAGES)).fetchall()
    return {
        "info": {"id": session, "directory": row[0]},
        "messages": [
            {"info": (json_row(data) or {}) | {"id": str(id_)}, "parts": parts.get(str(id_), [])}
            for id_, data in rows
        ],
    }


def _known(held: Connection, session: str) -> str:
    """Return the id of OpenCode that a session is named for here, which may be a hash of it."""
    if not session.startswith(f"{AGENT}-"):
        return session
    newest = "SELECT id FROM session ORDER BY time_updated DESC LIMIT ?"
    ids = [str(id_) for (id_,) in held.execute(newest, (_MOST_SESSIONS,))]
    return next((id_ for id_ in ids if hashed_id(AGENT, id_) == session), session)


def _is_below(directory: str, tops: Sequence[str]) -> bool:
    return any(directory == top or directory.startswith(f"{top}/") for top in tops if top)
