"""OpenCode: the document that `opencode export` prints, and the database that it is made from.

Where OpenCode keeps its sessions has changed more than once; what it exports has not. The database
is opened read only, and one session of it is read as a document.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.sessions.model import Message, hashed_id
from memtool.sessions.transcripts.markup import moment_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from sqlite3 import Connection
    from typing import Any

    from memtool.sessions.transcripts.markup import TranscriptContext

AGENT = "opencode"
FINISHED = {"completed": True, "error": False}


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
    session, directory = info.get("id" if is_whole else "sessionID"), info.get("directory")
    if isinstance(session, str) and not context.session:
        context.session = session
    if isinstance(directory, str):
        context.cwd = directory
    for message in row["messages"] if is_whole else [row]:
        if isinstance(message, dict) and isinstance(message.get("info"), dict):
            parts = message.get("parts")
            yield from _message(message["info"], parts if isinstance(parts, list) else [], context)


def _message(
    info: Mapping[str, Any], parts: list[Any], context: TranscriptContext
) -> Iterator[Message]:
    role = info.get("role")
    moment = _moment(info)
    for number, part in enumerate(parts):
        if not isinstance(part, dict) or part.get("synthetic") or part.get("ignored"):
            continue  # what the host puts into a prompt
        origin = str(part.get("id") or f"{info.get('id')}:{number}")
        text = part.get("text")
        if part.get("type") == "text" and isinstance(text, str) and text.strip():
            if role == "user":
                yield Message(0, "user", text, moment=moment, origin=origin)
            elif role == "assistant":
                yield Message(0, "assistant", text, moment=moment, agent=AGENT, origin=origin)
        elif part.get("type") == "tool" and isinstance(part.get("state"), dict):
            yield from _tool(part, part["state"], context, moment, origin)


def _tool(
    part: Mapping[str, Any],
    state: Mapping[str, Any],
    context: TranscriptContext,
    moment: int,
    origin: str,
) -> Iterator[Message]:
    """Yield a call, and its answer where it has come."""
    moment = _moment(state) or moment
    yield context.called(origin, str(part.get("tool")), state.get("input"), moment=moment,
                         agent=AGENT, origin=origin)  # fmt: skip
    status = state.get("status")
    if isinstance(status, str) and status in FINISHED:
        text = state.get("output" if status == "completed" else "error")
        yield context.answered(
            origin, text if isinstance(text, str) else "", is_ok=_worked(state), moment=moment,
            agent=AGENT, origin=f"{origin}:answer",
        )  # fmt: skip


def _worked(state: Mapping[str, Any]) -> bool:
    """Tell whether a call worked: it was finished, and a command that it ran did not fail."""
    facts = state.get("metadata")
    code = facts.get("exit") if isinstance(facts, dict) else None
    return FINISHED[state["status"]] and not (type(code) is int and code)


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
        parts.setdefault(str(message), []).append(_data(data) | {"id": str(id_)})
    by_time = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id LIMIT ?"
    rows = held.execute(by_time, (session, _MOST_MESSAGES)).fetchall()
    return {
        "info": {"id": session, "directory": row[0]},
        "messages": [
            {"info": _data(data) | {"id": str(id_)}, "parts": parts.get(str(id_), [])}
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


def _data(text: object) -> dict[str, Any]:
    import json

    try:
        held = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        held = None
    return held if isinstance(held, dict) else {}
