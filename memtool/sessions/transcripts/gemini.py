"""Gemini: a header line, then messages; formerly one document with all of them.

A message is written again whenever a tool answers, and `$set` may bring all of them once more:
each part has a name of its own, so that it is taken once.
"""

from __future__ import annotations

from memtool.sessions.transcripts.markup import moment_of, text_of, without_tags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from memtool.sessions.model import Message
    from memtool.sessions.transcripts.markup import TranscriptContext

AGENT = "gemini"
TYPES = ("user", "gemini", "info", "error", "warning")
TAGS = ("session_context", "hook_context", "state_snapshot", "system-reminder", "user_query_meta")
OUTCOMES = {"success": True, "error": False, "cancelled": False}


def knows(row: Mapping[str, Any]) -> bool:
    """Tell whether a line or a document is one of Gemini."""
    if isinstance(row.get("sessionId"), str) and "startTime" in row:
        return True
    return "$set" in row or "$rewindTo" in row or _is_message(row)


def read(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    """Yield the messages of a line, or of a whole document."""
    context.enter(AGENT, None, row.get("sessionId"))
    patch = row.get("$set")
    held = row.get("messages") or (patch.get("messages") if isinstance(patch, dict) else None)
    for message in held if isinstance(held, list) else [row]:
        if isinstance(message, dict) and _is_message(message):
            yield from _message(message, context)


def _is_message(row: Mapping[str, Any]) -> bool:
    return row.get("type") in TYPES and isinstance(row.get("id"), str) and "uuid" not in row


def _message(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    origin = row["id"]
    moment = moment_of(row.get("timestamp"))
    context.moment = moment
    if row["type"] == "user":
        typed = text_of(row.get("displayContent") or row.get("content"))
        yield from context.typed(without_tags(typed, TAGS), origin)
    if row["type"] != "gemini":
        return
    yield from context.spoken(text_of(row.get("content")), origin)
    calls = row.get("toolCalls")
    for number, call in enumerate(calls if isinstance(calls, list) else []):
        if isinstance(call, dict):
            context.moment = moment_of(call.get("timestamp")) or moment
            yield from _call(call, context, f"{origin}:{call.get('id') or number}")


def _call(call: Mapping[str, Any], context: TranscriptContext, origin: str) -> Iterator[Message]:
    """Yield a call, and its answer where it has come."""
    yield context.called(origin, str(call.get("name")), call.get("args"), origin)
    status, text = call.get("status"), _answer(call)
    is_ok = OUTCOMES.get(status) if isinstance(status, str) else None
    if text or is_ok is not None:
        yield context.answered(origin, text, f"{origin}:answer", is_ok=is_ok)


def _answer(call: Mapping[str, Any]) -> str:
    """Return what a tool gave back: the output or error of its response, or what was shown."""
    parts = call.get("result")
    texts = []
    for part in parts if isinstance(parts, list) else [parts]:
        response = part.get("functionResponse") if isinstance(part, dict) else None
        given = response.get("response") if isinstance(response, dict) else None
        if isinstance(given, dict):
            texts += [text_of(given[name]) for name in ("output", "error") if name in given]
        else:
            texts.append(text_of(part))
    shown = call.get("resultDisplay")
    text = "\n".join(text for text in texts if text)
    return text or (shown if isinstance(shown, str) else "")
