"""Claude Code: one JSON object a line, of which those of people, the model and tools are read.

A line of type `user` is what somebody typed only if nothing says otherwise: the answers of tools,
summaries, reminders and slash commands have that type as well.
"""

from __future__ import annotations

from memtool.sessions.model import Message
from memtool.sessions.transcripts.markup import moment_of, text_of, without_tags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

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
    """Yield the messages of a line."""
    session, cwd = row.get("sessionId"), row.get("cwd")
    if isinstance(session, str) and not context.session:
        context.session = session
    if isinstance(cwd, str):
        context.cwd = cwd
    said = row.get("message")
    kind = row.get("type")
    if kind not in ("user", "assistant") or not isinstance(said, dict) or row.get("isSidechain"):
        return
    uuid = row.get("uuid")
    origin = uuid if isinstance(uuid, str) else f"line-{context.line}"
    moment = moment_of(row.get("timestamp"))
    content = said.get("content")
    blocks = content if isinstance(content, list) else []
    if kind == "assistant":
        yield from _spoken(content, blocks, context, moment, origin)
        return
    for number, block in enumerate(blocks):
        if isinstance(block, dict) and block.get("type") == "tool_result":
            is_error = block.get("is_error")
            yield context.answered(
                str(block.get("tool_use_id")),
                _answer(block, row.get("toolUseResult")),
                is_ok=not is_error if isinstance(is_error, bool) else True,
                moment=moment,
                agent=AGENT,
                origin=f"{origin}:{number}",
            )
    typed = typed_text(content, row)
    if typed:
        yield Message(0, "user", typed, moment=moment, origin=origin)


def typed_text(content: Any, row: Mapping[str, Any]) -> str:
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


def _spoken(
    content: Any, blocks: list[Any], context: TranscriptContext, moment: int, origin: str
) -> Iterator[Message]:
    """Yield what the model said and called; what it only thought is left out."""
    if isinstance(content, str) and content.strip():
        yield Message(0, "assistant", content, moment=moment, agent=AGENT, origin=origin)
    for number, block in enumerate(blocks):
        if not isinstance(block, dict):
            continue
        place = f"{origin}:{number}"
        text = block.get("text")
        if block.get("type") == "text" and isinstance(text, str) and text.strip():
            yield Message(0, "assistant", text, moment=moment, agent=AGENT, origin=place)
        elif block.get("type") == "tool_use":
            yield context.called(str(block.get("id")), str(block.get("name")), block.get("input"),
                                 moment=moment, agent=AGENT, origin=place)  # fmt: skip


def _answer(block: Mapping[str, Any], result: Any) -> str:
    """Return what a tool printed: what the model got, without the host's reminders."""
    text = without_tags(text_of(block.get("content")), ("system-reminder", "persisted-output"))
    if not text and isinstance(result, dict):
        printed = [result.get(name) for name in ("stdout", "stderr")]
        text = "\n".join(part for part in printed if isinstance(part, str) and part)
    return text
