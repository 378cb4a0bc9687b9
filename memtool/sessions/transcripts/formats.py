"""The formats of transcripts: for each host, how to recognise its lines and read their messages.

Only text that a person typed gets the role `user`. Hosts store tool answers, summaries, reminders
and their own commands under the same role. Each reader has its own rules to tell them apart.
"""

from __future__ import annotations

import json

from memtool.errors import MemtoolError
from memtool.sessions.model import Message, as_dict, as_list, hash_id, parse_json, parse_json_row
from memtool.sessions.transcripts.aider import knows_aider, read_aider
from memtool.sessions.transcripts.claude import knows_claude, read_claude
from memtool.sessions.transcripts.copilot import knows_copilot, read_copilot
from memtool.sessions.transcripts.history import (
    knows_claude_history,
    knows_codex_history,
    read_claude_history,
    read_codex_history,
)
from memtool.sessions.transcripts.markup import find_inside, join_text, parse_moment, without_tags
from memtool.sessions.transcripts.outcomes import split_gemini_outcome, split_outcome
from memtool.sessions.transcripts.plain_text import read_text
from memtool.sessions.transcripts.qwen import knows_qwen, read_qwen
from memtool.sessions.transcripts.specstory import knows_specstory, read_specstory
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from sqlite3 import Connection
    from typing import Any

    from memtool.sessions.transcripts.markup import TranscriptContext


_CODEX_ENVELOPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_CODEX_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_CODEX_ANSWERS = ("function_call_output", "custom_tool_call_output")
_CODEX_ITEMS = ("message", "reasoning", *_CODEX_CALLS, *_CODEX_ANSWERS)
_CODEX_TAGS = (
    "user_instructions",
    "environment_context",
    "permissions",
    "turn_aborted",
    "skill",
    "INSTRUCTIONS",
    "subagent_notification",
    "user_shell_command",
)
_CODEX_REQUEST = "\n## My request for Codex:\n"
"""Comes before what a person typed, below the files that are open in an editor."""
_CODEX_NOTICES = ("# AGENTS.md instructions", "<user_instructions>", "<environment_context>")


def knows_codex(row: Mapping[str, Any]) -> bool:
    """Return whether a line is from a rollout, with an envelope or, in old files, without."""
    if isinstance(row.get("payload"), dict):
        return row.get("type") in _CODEX_ENVELOPES
    return (row.get("type") in _CODEX_ITEMS and "sessionId" not in row) or _is_codex_meta(row)


def _is_codex_meta(row: Mapping[str, Any]) -> bool:
    """Return whether a line without an envelope is the first one of an old rollout."""
    return {"id", "timestamp", "instructions"} <= row.keys() and "type" not in row


def read_codex(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    """Yield the messages of a rollout's line: an envelope of time, type and payload.

    Typed text comes in separate events, because items of role `user` also contain the host's
    scaffolding. Older files have neither events nor envelopes: there, scaffolding is recognised by
    how it starts.
    """
    payload = row.get("payload")
    item = payload if isinstance(payload, dict) else row
    kind = row.get("type") if isinstance(payload, dict) else "response_item"
    is_about = kind in ("session_meta", "turn_context") or _is_codex_meta(row)
    facts = (item.get("id"), item.get("cwd")) if is_about else ()
    context.enter("codex", row.get("timestamp"), *facts)
    # Rollouts give ids to calls, but not to messages.
    origin = digest(json.dumps(row, sort_keys=True).encode())
    if kind == "event_msg":
        context.is_mirrored = True
        typed = _without_codex_text(_codex_typed(item, context))
        if typed.strip():
            is_again, context.typed_item = context.typed_item == _hash(typed), ""
            yield from () if is_again else context.add_typed(typed, origin)
    elif kind == "response_item":
        yield from _codex_item(item, context, origin)


def _without_codex_text(text: str) -> str:
    """Return what a person typed, without what an editor puts before it."""
    _before, mark, request = text.partition(_CODEX_REQUEST)
    return without_tags(request if mark else text, _CODEX_TAGS).strip("\n")


def _hash(text: str) -> str:
    return digest(text.strip().encode(errors="surrogatepass"))


def _codex_typed(event: Mapping[str, Any], context: TranscriptContext) -> str:
    """Return an event's typed text: in an item of its own, or in the older form."""
    item, text = event.get("item"), event.get("message")
    if event.get("type") == "item_completed" and isinstance(item, dict):
        if item.get("type") != "UserMessage":
            return ""
        context.is_itemised = True
        return join_text(item.get("content"))
    is_typed = event.get("type") == "user_message" and not context.is_itemised
    return text if is_typed and isinstance(text, str) else ""


def _codex_item(
    item: Mapping[str, Any], context: TranscriptContext, origin: str
) -> Iterator[Message]:
    kind = item.get("type")
    call = str(item.get("call_id") or item.get("id") or "")
    if kind == "message":
        text = join_text(item.get("content"))
        if item.get("role") == "assistant":
            yield from context.spoken(text, origin)
        elif item.get("role") == "user" and not context.is_mirrored:
            typed = "" if text.startswith(_CODEX_NOTICES) else _without_codex_text(text)
            if typed.strip():
                context.typed_item = _hash(typed)  # the first event may repeat it
            yield from context.add_typed(typed, origin)
    elif kind in _CODEX_CALLS:
        yield context.add_call(
            call, str(item.get("name") or "shell"), _codex_arguments(item), origin
        )
    elif kind in _CODEX_ANSWERS:
        text, is_ok = _codex_output(item.get("output"))
        yield context.add_answer(call, text, origin, is_ok=is_ok)


def _codex_arguments(item: Mapping[str, Any]) -> Any:
    """Return the arguments of a call: parsed JSON, the text of a patch, or an action."""
    arguments = item.get("arguments", item.get("input", item.get("action")))
    parsed = (
        parse_json(arguments)
        if isinstance(arguments, str) and arguments.lstrip().startswith("{")
        else None
    )
    return arguments if parsed is None else parsed


def _codex_output(output: Any) -> tuple[str, bool | None]:
    """Return a call's output and whether it worked, for all of Codex's formats."""
    if isinstance(output, str) and output.lstrip().startswith("{"):
        output = parse_json_row(output) or output
    if isinstance(output, dict) and "output" in output:
        code = as_dict(output.get("metadata")).get("exit_code")
        return join_text(output["output"]), code == 0 if type(code) is int else None
    if isinstance(output, dict) and isinstance(output.get("success"), bool):
        return join_text(output.get("content")), output["success"]
    return split_outcome(join_text(output))


_GEMINI_TYPES = ("user", "gemini", "info", "error", "warning")
_GEMINI_TAGS = (
    "session_context",
    "hook_context",
    "state_snapshot",
    "system-reminder",
    "user_query_meta",
)
_GEMINI_OUTCOMES = {"success": True, "error": False, "cancelled": False}


def knows_gemini(row: Mapping[str, Any]) -> bool:
    """Return whether a line or document is Gemini's."""
    if isinstance(row.get("sessionId"), str) and "startTime" in row:
        return True
    return "$set" in row or "$rewindTo" in row or _is_gemini_message(row)


def read_gemini(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    """Yield the messages of a line, or of a whole document in older versions.

    A message is written again whenever a tool answers, and `$set` may repeat all of them. Each part
    has its own origin, so it is added only once.
    """
    context.enter("gemini", None, row.get("sessionId"))
    items = row.get("messages") or as_dict(row.get("$set")).get("messages")
    for message in items if isinstance(items, list) else [row]:
        if isinstance(message, dict) and _is_gemini_message(message):
            yield from _gemini_message(message, context)


def _is_gemini_message(row: Mapping[str, Any]) -> bool:
    return row.get("type") in _GEMINI_TYPES and isinstance(row.get("id"), str) and "uuid" not in row


def _gemini_message(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    origin = row["id"]
    moment = parse_moment(row.get("timestamp"))
    context.moment = moment
    if row["type"] == "user":
        typed = join_text(row.get("displayContent") or row.get("content"))
        yield from context.add_typed(without_tags(typed, _GEMINI_TAGS), origin)
    if row["type"] != "gemini":
        return
    yield from context.spoken(join_text(row.get("content")), origin)
    for number, call in enumerate(as_list(row.get("toolCalls"))):
        if isinstance(call, dict):
            context.moment = parse_moment(call.get("timestamp")) or moment
            yield from _gemini_call(call, context, f"{origin}:{call.get('id') or number}")


def _gemini_call(
    call: Mapping[str, Any], context: TranscriptContext, origin: str
) -> Iterator[Message]:
    """Yield a call, and its answer if there is one."""
    yield context.add_call(origin, str(call.get("name")), call.get("args"), origin)
    status, text = call.get("status"), _gemini_answer(call)
    is_ok = _GEMINI_OUTCOMES.get(status) if isinstance(status, str) else None
    text, has_worked = split_gemini_outcome(without_tags(text, ("hook_context",)))
    is_ok = False if has_worked is False else is_ok  # a failed command has `success` as well
    if text or is_ok is not None:
        yield context.add_answer(origin, text, f"{origin}:answer", is_ok=is_ok)


def _gemini_answer(call: Mapping[str, Any]) -> str:
    """Return a tool's answer: the output or error of its response, or the displayed text."""
    parts = call.get("result")
    texts = []
    for part in parts if isinstance(parts, list) else [parts]:
        response = as_dict(as_dict(part).get("functionResponse")).get("response")
        if isinstance(response, dict):
            texts += [join_text(response[name]) for name in ("output", "error") if name in response]
        else:
            texts.append(join_text(part))
    shown = call.get("resultDisplay")
    text = "\n".join(text for text in texts if text)
    return text or (shown if isinstance(shown, str) else "")


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
            yield from _opencode_message(message["info"], as_list(message.get("parts")), context)


def _opencode_message(
    info: Mapping[str, Any], parts: list[Any], context: TranscriptContext
) -> Iterator[Message]:
    text_of_role = {"user": context.add_typed, "assistant": context.spoken}.get(
        str(info.get("role"))
    )
    moment = _opencode_moment(info)
    for number, part in enumerate(parts):
        if not isinstance(part, dict) or part.get("synthetic") or part.get("ignored"):
            continue  # text that the host adds to a prompt
        context.moment = moment
        origin = str(part.get("id") or f"{info.get('id')}:{number}")
        text, state = part.get("text"), part.get("state")
        if part.get("type") == "text" and isinstance(text, str) and text_of_role is not None:
            yield from text_of_role(_opencode_typed(part, text), origin)
        elif part.get("type") == "tool" and isinstance(state, dict):
            context.moment = _opencode_moment(state) or moment
            yield context.add_call(origin, str(part.get("tool")), state.get("input"), origin)
            yield from _opencode_answer(state, context, origin)


def _opencode_typed(part: Mapping[str, Any], text: str) -> str:
    """Return the typed text of a part.

    For a slash command, memtool's plugin stores the text after the name, because the part's own
    text is the command's. `opencode run` puts a message of several words in quotation marks.
    """
    typed = as_dict(part.get("metadata")).get("typed")
    text = typed if isinstance(typed, str) else text
    inner = text[1:-1].replace('\\"', "\0")
    is_quoted = text[:1] == text[-1:] == '"' and " " in inner and '"' not in inner
    return inner.replace("\0", '"') if is_quoted else text


def _opencode_answer(
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


def _opencode_moment(row: Mapping[str, Any]) -> int:
    time = as_dict(row.get("time"))
    return parse_moment(time.get("created", time.get("start")))


_MAX_ROWS = 20_000
_MAX_SESSIONS = 1_000
_WAIT_S = 5


def read_opencode_document(path: str, session: str, tops: Sequence[str]) -> dict[str, Any]:
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
            return _read_opencode_session(connection, path, session, tops)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise MemtoolError(
            f"{path} is a database, but not a readable one of OpenCode: {error}",
            hint="opencode export SESSION | memtool capture -",
            code="foreign-transcript",
        ) from None


def _read_opencode_session(
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
    session = _find_opencode_id(connection, session)
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


def _find_opencode_id(connection: Connection, session: str) -> str:
    """Return OpenCode's own id for a session; ours may be a hash of it."""
    if not session.startswith("opencode-"):
        return session
    newest = "SELECT id FROM session ORDER BY time_updated DESC LIMIT ?"
    ids = [str(id_) for (id_,) in connection.execute(newest, (_MAX_SESSIONS,))]
    return next((id_ for id_ in ids if hash_id("opencode", id_) == session), session)


_CHAT_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "tool": "tool"}
_CHAT_NAMES = (*_CHAT_ROLES, "system")
_CURSOR_TAGS = (
    "timestamp",
    "system_reminder",
    "attached_files",
    "open_and_recently_viewed_files",
    "user_info",
    "rules",
    "agent_skills",
    "git_status",
    "additional_data",
)
_CURSOR_TYPED = "user_query"


def knows_cursor(row: Mapping[str, Any]) -> bool:
    """Return whether a line is Cursor's."""
    is_said = row.get("role") in _CHAT_NAMES and "content" in as_dict(row.get("message"))
    return (is_said and "type" not in row) or row.get("type") == "turn_ended"


def knows_chat(row: Mapping[str, Any]) -> bool:
    """Return whether a line has a role and a content."""
    return row.get("role") in _CHAT_NAMES and "content" in row


def read_chat(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    """Yield the messages of a line.

    Cursor writes no ids, times or tool answers, and puts typed text between tags.
    """
    content = (as_dict(row.get("message")) or row).get("content")
    role = _CHAT_ROLES.get(str(row.get("role")), "")
    name = row.get("agent", row.get("name"))
    agent = name if isinstance(name, str) and role != "user" else ""
    context.enter(agent, row.get("timestamp", row.get("created_at")))
    origin = _find_origin(row, context)
    text = join_text(content)
    if role == "tool":
        yield context.add_answer(str(row.get("tool_call_id")), text, origin, is_ok=None)
    elif role == "user":
        yield from context.add_typed(
            without_tags(find_inside(text, _CURSOR_TYPED), _CURSOR_TAGS), origin
        )
    elif role == "assistant":
        yield from context.spoken(text, origin)
    yield from context.blocks(content, origin)


def _find_origin(row: Mapping[str, Any], context: TranscriptContext) -> str:
    """Return the origin of a line: its id, or its number and a hash of its content."""
    native_id = row.get("id", row.get("uuid"))
    if isinstance(native_id, str) and native_id:
        return native_id
    return f"{context.line}-{digest(json.dumps(row, sort_keys=True).encode(), 6)}"


class Format(Value):
    """How one format is recognised and read: by its rows of JSON, or by all lines of a text.

    A file with a `session_key` holds the sessions of many, under this key of its rows;
    `directory_key` is that of the directory in which a session ran, empty if no row has it.
    """

    knows: Callable[[Any], bool]
    read: Callable[[Any, TranscriptContext], Iterator[Message]]
    is_text: bool = False
    session_key: str = ""
    directory_key: str = ""

    @property
    def is_copy(self) -> bool:
        """Whether it tells of sessions of which the host has a transcript of its own."""
        return self.is_text or bool(self.session_key)


PLAIN = "plain"
FORMATS: dict[str, Format] = {
    "claude": Format(knows_claude, read_claude),
    "codex": Format(knows_codex, read_codex),
    "copilot": Format(knows_copilot, read_copilot),
    "gemini": Format(knows_gemini, read_gemini),
    "opencode": Format(knows_opencode, read_opencode),
    "qwen": Format(knows_qwen, read_qwen),
    "cursor": Format(knows_cursor, read_chat),
    "chat": Format(knows_chat, read_chat),
    "claude-history": Format(
        knows_claude_history,
        read_claude_history,
        session_key="sessionId",
        directory_key="project",
    ),
    "codex-history": Format(knows_codex_history, read_codex_history, session_key="session_id"),
    "aider": Format(knows_aider, read_aider, is_text=True),
    "specstory": Format(knows_specstory, read_specstory, is_text=True),
    PLAIN: Format(lambda _rows: True, read_text, is_text=True),
}
"""All formats; the first one that knows most rows, or that knows a text, is chosen."""
