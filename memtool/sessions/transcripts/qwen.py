"""The transcripts of Qwen Code: JSON lines, with the parts of Gemini's API as messages."""

from __future__ import annotations

from memtool.sessions.model import as_dict, as_list
from memtool.sessions.transcripts.markup import join_text, without_tags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from memtool.sessions.model import Message
    from memtool.sessions.transcripts.markup import TranscriptContext

_TAGS = ("qwen:user-prompt-submit-context", "system-reminder")
"""Tags around text that the host adds to what people typed."""
_OUTCOMES = {"success": True, "error": False, "cancelled": False}


def knows_qwen(row: Mapping[str, Any]) -> bool:
    """Return whether a line is Qwen Code's."""
    has_parts = "parts" in as_dict(row.get("message")) or "systemPayload" in row
    return has_parts and isinstance(row.get("sessionId"), str)


def read_qwen(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    """Yield the messages of a line; the model's thinking is left out."""
    context.enter("qwen", row.get("timestamp"), row.get("sessionId"), row.get("cwd"))
    uuid = row.get("uuid")
    origin = uuid if isinstance(uuid, str) else f"line-{context.line}"
    parts = as_list(as_dict(row.get("message")).get("parts"))
    is_typed = row.get("provenance", "real_user") == "real_user" and "subtype" not in row
    if row.get("type") == "user" and is_typed:
        yield from context.add_typed(_read_typed(row, parts), origin)
    elif row.get("type") == "assistant":
        for number, part in enumerate(map(as_dict, parts)):
            call, place = as_dict(part.get("functionCall")), f"{origin}:{number}"
            if call:
                id_ = str(call.get("id") or "")
                yield context.add_call(id_, str(call.get("name")), call.get("args"), place)
            elif not part.get("thought"):
                yield from context.spoken(part.get("text"), place)
    elif row.get("type") == "tool_result":
        for number, part in enumerate(map(as_dict, parts)):
            answer = as_dict(part.get("functionResponse"))
            if answer:
                text, is_ok = _read_answer(answer, as_dict(row.get("toolCallResult")))
                id_ = str(answer.get("id") or "")
                yield context.add_answer(id_, text, f"{origin}:{number}", is_ok=is_ok)


def _read_typed(row: Mapping[str, Any], parts: list[Any]) -> str:
    """Return the text that a person typed; after a slash command what follows its name."""
    whole = without_tags(join_text(parts), _TAGS)
    shown = as_dict(row.get("systemPayload")).get("displayText")
    if not isinstance(shown, str):
        return whole
    # The message has the text of the command instead.
    is_command = shown.startswith("/") and not whole.startswith(shown)
    return shown.partition(" ")[2] if is_command else shown


def _read_answer(answer: Mapping[str, Any], result: Mapping[str, Any]) -> tuple[str, bool | None]:
    """Return what a tool printed, and whether it worked."""
    shown, response = as_dict(result.get("resultDisplay")), as_dict(answer.get("response"))
    status = result.get("status")
    is_ok = _OUTCOMES.get(status) if isinstance(status, str) else None
    if shown.get("type") == "shell_result":  # without the lines about the command
        return join_text(shown.get("output")), is_ok and shown.get("exitCode") in (None, 0)
    return join_text(response.get("output") or response.get("error")), is_ok
