"""The transcripts of Gemini CLI: a message a line, or all in one document."""

from __future__ import annotations

from memtool.sessions.model import as_dict, as_list
from memtool.sessions.transcripts.markup import join_text, parse_moment, without_tags
from memtool.sessions.transcripts.outcomes import split_gemini_outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from memtool.sessions.model import Message
    from memtool.sessions.transcripts.markup import TranscriptContext

_TYPES = ("user", "gemini", "info", "error", "warning")
_TAGS = (
    "session_context",
    "hook_context",
    "state_snapshot",
    "system-reminder",
    "user_query_meta",
)
_OUTCOMES = {"success": True, "error": False, "cancelled": False}


def knows_gemini(row: Mapping[str, Any]) -> bool:
    """Return whether a line or document is Gemini's."""
    if isinstance(row.get("sessionId"), str) and "startTime" in row:
        return True
    return "$set" in row or "$rewindTo" in row or _is_message(row)


def read_gemini(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    """Yield the messages of a line, or of a whole document in older versions.

    A message is written again whenever a tool answers, and `$set` may repeat all of them. Each part
    has its own origin, so it is added only once.
    """
    context.enter("gemini", None, row.get("sessionId"))
    items = row.get("messages") or as_dict(row.get("$set")).get("messages")
    for message in items if isinstance(items, list) else [row]:
        if isinstance(message, dict) and _is_message(message):
            yield from _read_message(message, context)


def _is_message(row: Mapping[str, Any]) -> bool:
    return row.get("type") in _TYPES and isinstance(row.get("id"), str) and "uuid" not in row


def _read_message(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    origin = row["id"]
    moment = parse_moment(row.get("timestamp"))
    context.moment = moment
    if row["type"] == "user":
        typed = join_text(row.get("displayContent") or row.get("content"))
        yield from context.add_typed(without_tags(typed, _TAGS), origin)
    if row["type"] != "gemini":
        return
    yield from context.spoken(join_text(row.get("content")), origin)
    for number, call in enumerate(as_list(row.get("toolCalls"))):
        if isinstance(call, dict):
            context.moment = parse_moment(call.get("timestamp")) or moment
            yield from _read_call(call, context, f"{origin}:{call.get('id') or number}")


def _read_call(
    call: Mapping[str, Any], context: TranscriptContext, origin: str
) -> Iterator[Message]:
    """Yield a call, and its answer if there is one."""
    yield context.add_call(origin, str(call.get("name")), call.get("args"), origin)
    status, text = call.get("status"), _find_answer(call)
    is_ok = _OUTCOMES.get(status) if isinstance(status, str) else None
    text, has_worked = split_gemini_outcome(without_tags(text, ("hook_context",)))
    is_ok = False if has_worked is False else is_ok  # a failed command has `success` as well
    if text or is_ok is not None:
        yield context.add_answer(origin, text, f"{origin}:answer", is_ok=is_ok)


def _find_answer(call: Mapping[str, Any]) -> str:
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
