"""The transcripts of Claude Code: JSON lines, with the blocks of Anthropic's API as messages."""

from __future__ import annotations

from memtool.sessions.model import as_dict
from memtool.sessions.transcripts.markup import join_text
from memtool.sessions.transcripts.scaffolding import without_host_text, without_reminders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from memtool.sessions.model import Message
    from memtool.sessions.transcripts.markup import TranscriptContext

_NOTES = ("summary", "file-history-snapshot", "queue-operation", "custom-title")
"""Line types that may have no session id."""
_NOT_TYPED = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isSidechain")


def knows_claude(row: Mapping[str, Any]) -> bool:
    """Return whether a line is Claude Code's."""
    kind = row.get("type")
    if "parts" in as_dict(row.get("message")) or "systemPayload" in row:
        return False  # a host that took over its lines, and puts other messages into them
    if kind in ("user", "assistant") and isinstance(row.get("message"), dict):
        return "uuid" in row or "sessionId" in row
    if kind in _NOTES:
        return True
    return "sessionId" in row and isinstance(kind, str) and "startTime" not in row


def read_claude(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    """Yield the messages of a Claude Code line; the model's thinking is left out.

    A line of type `user` is typed text only if nothing contradicts that: tool answers, summaries,
    reminders and slash commands have the same type.
    """
    context.enter("claude", row.get("timestamp"), row.get("sessionId"), row.get("cwd"))
    message, kind, uuid = row.get("message"), row.get("type"), row.get("uuid")
    if kind not in ("user", "assistant") or not isinstance(message, dict) or row.get("isSidechain"):
        return
    origin = uuid if isinstance(uuid, str) else f"line-{context.line}"
    content = message.get("content")
    if kind == "assistant":
        if isinstance(content, str):
            yield from context.spoken(content, origin)
        yield from context.blocks(content, origin, has_texts=True)
        return
    for answer in context.blocks(content, origin, is_ok=True):
        text = without_reminders(answer.text)
        yield answer.replace(text=text or _printed(row.get("toolUseResult")))
    yield from context.add_typed(_typed(content, row), origin)


def _typed(content: Any, row: Mapping[str, Any]) -> str:
    """Return the text that a person typed on a line, empty if the host wrote it.

    For a slash command it is the text after the name; the host's text for it is a separate line.
    """
    if any(row.get(name) for name in _NOT_TYPED):
        return ""
    if as_dict(row.get("origin")).get("kind") not in (None, "human"):
        return ""
    if isinstance(content, list):
        content = [
            part for part in content if isinstance(part, str) or as_dict(part).get("type") == "text"
        ]
    return without_host_text(join_text(content))


def _printed(result: Any) -> str:
    """Return a tool's output if the model did not get it."""
    printed = [as_dict(result).get(name) for name in ("stdout", "stderr")]
    return "\n".join(part for part in printed if isinstance(part, str) and part)
