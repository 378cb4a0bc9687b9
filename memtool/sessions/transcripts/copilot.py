"""The transcripts of GitHub Copilot CLI: `events.jsonl`, an event a line."""

from __future__ import annotations

import re

from memtool.sessions.model import as_dict, as_list
from memtool.sessions.transcripts.markup import join_text, without_tags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from memtool.sessions.model import Message
    from memtool.sessions.transcripts.markup import TranscriptContext

_PREFIXES = ("assistant.", "hook.", "session.", "skill.", "subagent.", "system.", "tool.", "user.")
_ADDED = re.compile(
    r'\n\nTool "[^"\n]*" \w+\. Additional guidance from \w+ hooks:\n.*\Z'
    r"|\n?<shellId: \S+ completed with exit code -?\d+>",
    re.DOTALL,
)
"""What the host adds to the output of a tool."""


def knows_copilot(row: Mapping[str, Any]) -> bool:
    """Return whether a line is Copilot's."""
    kind = row.get("type")
    return (
        isinstance(kind, str)
        and kind.startswith(_PREFIXES)
        and isinstance(row.get("data"), dict)
        and "parentId" in row
    )


def read_copilot(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    """Yield the messages of an event; those of subagents and the model's thinking are left out."""
    data, kind, id_ = as_dict(row.get("data")), row.get("type"), row.get("id")
    cwd = as_dict(data.get("context")).get("cwd")
    context.enter("copilot", row.get("timestamp"), data.get("sessionId"), cwd)
    if "agentId" in row:
        return
    origin = id_ if isinstance(id_, str) else f"line-{context.line}"
    if kind == "user.message" and "source" not in data:
        typed = without_tags(join_text(data.get("content")), ("system_reminder",))
        yield from context.add_typed(typed, origin)
    elif kind == "assistant.message":
        yield from context.spoken(data.get("content"), origin)
        for number, call in enumerate(map(as_dict, as_list(data.get("toolRequests")))):
            call_id, name = str(call.get("toolCallId") or ""), str(call.get("name"))
            yield context.add_call(call_id, name, call.get("arguments"), f"{origin}:{number}")
    elif kind == "tool.execution_complete":
        text, is_ok = _read_answer(data)
        yield context.add_answer(str(data.get("toolCallId")), text, origin, is_ok=is_ok)


def _read_answer(data: Mapping[str, Any]) -> tuple[str, bool | None]:
    """Return what a tool printed, and whether it worked; a failed command has `success`, too."""
    result, error = as_dict(data.get("result")), as_dict(data.get("error"))
    text = join_text(result.get("content") or error.get("message"))
    is_ok, code = data.get("success"), as_dict(data.get("shellExecution")).get("exitCode")
    if not isinstance(is_ok, bool):
        return text, None
    return _ADDED.sub("", text), is_ok and code in (None, 0)
