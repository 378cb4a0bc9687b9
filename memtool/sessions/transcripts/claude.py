"""Claude Code: one JSON object a line, of which those of people, the model and tools are read.

A line of type `user` is what somebody typed only if nothing says otherwise: the answers of tools,
summaries, reminders and slash commands have that type as well.
"""

from __future__ import annotations

from memtool.sessions.transcripts.markup import text_of, without_tags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from memtool.sessions.model import Message
    from memtool.sessions.transcripts.markup import TranscriptContext

AGENT = "claude"
NOTES = ("summary", "file-history-snapshot", "queue-operation", "custom-title")
"""Types of lines that may name no session."""
NOT_TYPED = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isSidechain")
TAGS = (
    "system-reminder", "command-name", "command-message", "command-args", "command-contents",
    "local-command-stdout", "local-command-stderr", "local-command-caveat", "bash-input",
    "bash-stdout", "bash-stderr", "task-notification", "user-prompt-submit-hook", "ide_opened_file",
    "ide_selection", "ide_diagnostics", "persisted-output", "teammate-message",
)  # fmt: skip
"""Tags between which the host writes into what people typed."""
REMINDERS = ("system-reminder", "persisted-output")
"""Those between which it writes into what tools printed."""
NOTICES = ("[Request interrupted by user", "Caveat: The messages below", "Stop hook feedback:",
           "This session is being continued from a previous conversation")  # fmt: skip
"""How texts begin that the host writes in the place of a person."""


def knows(row: Mapping[str, Any]) -> bool:
    """Tell whether a line is one of Claude Code."""
    kind = row.get("type")
    if kind in ("user", "assistant") and isinstance(row.get("message"), dict):
        return "uuid" in row or "sessionId" in row
    if kind in NOTES:
        return True
    return "sessionId" in row and isinstance(kind, str) and "startTime" not in row


def read(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    """Yield the messages of a line; what the model only thought is left out."""
    context.enter(AGENT, row.get("timestamp"), row.get("sessionId"), row.get("cwd"))
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
        text = without_tags(answer.text, REMINDERS)
        yield answer.replace(text=text or _printed(row.get("toolUseResult")))
    yield from context.typed(_typed(content, row), origin)


def _typed(content: Any, row: Mapping[str, Any]) -> str:
    """Return what a person typed on a line, empty where it was the host."""
    if any(row.get(name) for name in NOT_TYPED):
        return ""
    source = row.get("origin")
    if isinstance(source, dict) and source.get("kind") not in (None, "human"):
        return ""
    if isinstance(content, list):
        content = [block for block in content
                   if isinstance(block, str) or (isinstance(block, dict)
                                                 and block.get("type") == "text")]  # fmt: skip
    text = without_tags(text_of(content), TAGS)
    return "" if text.startswith(NOTICES) else text


def _printed(result: Any) -> str:
    """Return what a tool printed, where the model was given nothing of it."""
    if not isinstance(result, dict):
        return ""
    printed = [result.get(name) for name in ("stdout", "stderr")]
    return "\n".join(part for part in printed if isinstance(part, str) and part)
