"""The transcripts of OpenCode: exported sessions, and its database."""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.sessions.model import as_dict, as_list, hash_id, parse_json_row
from memtool.sessions.transcripts.markup import parse_moment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from sqlite3 import Connection
    from typing import Any

    from memtool.sessions.model import Message
    from memtool.sessions.transcripts.markup import TranscriptContext

_MAX_ROWS = 20_000
_MAX_SESSIONS = 1_000
_WAIT_S = 5


def knows_opencode(row: Mapping[str, Any]) -> bool:
    """Return whether a row is an exported OpenCode session, or one of its messages."""
    has_more = any(isinstance(row.get(name), list) for name in ("parts", "messages"))
    return has_more and isinstance(row.get("info"), dict)


def read_opencode(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    """Yield the messages of an exported session, or of a single message."""
    if not knows_opencode(row):
        return
    info = row["info"]
    is_whole = isinstance(row.get("messages"), list)
    session = info.get("id" if is_whole else "sessionID")
    context.enter("opencode", None, session, info.get("directory"))
    for message in row["messages"] if is_whole else [row]:
        if isinstance(as_dict(message).get("info"), dict):
            yield from _read_message(message["info"], as_list(message.get("parts")), context)


def _read_message(
    info: Mapping[str, Any], parts: list[Any], context: TranscriptContext
) -> Iterator[Message]:
    text_of_role = {"user": context.add_typed, "assistant": context.spoken}.get(
        str(info.get("role"))
    )
    moment = _find_moment(info)
    for number, part in enumerate(parts):
        if not isinstance(part, dict) or part.get("synthetic") or part.get("ignored"):
            continue  # text that the host adds to a prompt
        context.moment = moment
        origin = str(part.get("id") or f"{info.get('id')}:{number}")
        text, state = part.get("text"), part.get("state")
        if part.get("type") == "text" and isinstance(text, str) and text_of_role is not None:
            yield from text_of_role(_find_typed(part, text), origin)
        elif part.get("type") == "tool" and isinstance(state, dict):
            context.moment = _find_moment(state) or moment
            yield context.add_call(origin, str(part.get("tool")), state.get("input"), origin)
            yield from _read_answer(state, context, origin)


def _find_typed(part: Mapping[str, Any], text: str) -> str:
    """Return the typed text of a part.

    For a slash command, memtool's plugin stores the text after the name, because the part's own
    text is the command's. `opencode run` puts a message of several words in quotation marks.
    """
    typed = as_dict(part.get("metadata")).get("typed")
    text = typed if isinstance(typed, str) else text
    inner = text[1:-1].replace('\\"', "\0")
    is_quoted = text[:1] == text[-1:] == '"' and " " in inner and '"' not in inner
    return inner.replace("\0", '"') if is_quoted else text


def _read_answer(
    state: Mapping[str, Any], context: TranscriptContext, origin: str
) -> Iterator[Message]:
    """Yield the answer to a call, if there is one; a command that it ran may have failed."""
    status = state.get("status")
    if status not in ("completed", "error"):
        return
    text = state.get("output" if status == "completed" else "error")
    code = as_dict(state.get("metadata")).get("exit")
    is_ok = status == "completed" and not (type(code) is int and code)
    text = text if isinstance(text, str) else ""
    yield context.add_answer(origin, text, f"{origin}:answer", is_ok=is_ok)


def _find_moment(row: Mapping[str, Any]) -> int:
    time = as_dict(row.get("time"))
    return parse_moment(time.get("created", time.get("start")))


def read_opencode_database(path: str, session: str, tops: Sequence[str]) -> dict[str, Any]:
    """Return a session in the form of `opencode export`: the named one, or the last in a worktree.

    OpenCode has changed its storage more than once, but not its export format. The database is
    opened read-only.

    Raises:
        MemtoolError: it is not an OpenCode database, or has no such session.
    """
    import sqlite3

    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    try:
        connection = sqlite3.connect(f"file:{quoted}?mode=ro", uri=True, timeout=_WAIT_S)
        try:
            return _read_session(connection, path, session, tops)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise MemtoolError(
            f"{path} is a database, but not a readable one of OpenCode: {error}",
            hint="opencode export SESSION | memtool capture -",
            code="foreign-transcript",
        ) from None


def _read_session(
    connection: Connection, path: str, session: str, tops: Sequence[str]
) -> dict[str, Any]:
    if not session:
        newest = "SELECT id, directory FROM session WHERE parent_id IS NULL "
        session_rows = connection.execute(
            newest + "ORDER BY time_updated DESC LIMIT ?", (_MAX_SESSIONS,)
        )
        below = tuple(f"{top}/" for top in tops if top)
        session = next(
            (str(id_) for id_, place in session_rows if f"{place}/".startswith(below)), ""
        )
    session = _find_id(connection, session)
    row = connection.execute("SELECT directory FROM session WHERE id = ?", (session,)).fetchone()
    if row is None:
        what = f"no session {session}" if session else "no session of this worktree"
        raise MemtoolError(
            f"{path} has {what}",
            hint="opencode session list\nname one with --session ID",
            code="no-session",
        )
    parts: dict[str, list[dict[str, Any]]] = {}
    by_message = "SELECT message_id, id, data FROM part WHERE session_id = ? ORDER BY id"
    for message, id_, data in connection.execute(by_message, (session,)):
        parts.setdefault(str(message), []).append((parse_json_row(data) or {}) | {"id": str(id_)})
    by_time = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id LIMIT ?"
    rows = connection.execute(by_time, (session, _MAX_ROWS)).fetchall()
    return {
        "info": {"id": session, "directory": row[0]},
        "messages": [
            {
                "info": (parse_json_row(data) or {}) | {"id": str(id_)},
                "parts": parts.get(str(id_), []),
            }
            for id_, data in rows
        ],
    }


def _find_id(connection: Connection, session: str) -> str:
    """Return OpenCode's own id for a session; ours may be a hash of it."""
    if not session.startswith("opencode-"):
        return session
    newest = "SELECT id FROM session ORDER BY time_updated DESC LIMIT ?"
    ids = [str(id_) for (id_,) in connection.execute(newest, (_MAX_SESSIONS,))]
    return next((id_ for id_ in ids if hash_id("opencode", id_) == session), session)
