"""Codex: rollout files, each line an envelope of time, type and payload.

What a person typed is in events of its own; the items of role `user` hold the host's scaffolding
as well. Older files have no events, and no envelope: there the scaffolding is recognised by how
it begins.
"""

from __future__ import annotations

import json

from memtool.sessions.model import json_row, json_value
from memtool.sessions.transcripts.markup import text_of, without_tags
from memtool.value import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from memtool.sessions.model import Message
    from memtool.sessions.transcripts.markup import TranscriptContext

AGENT = "codex"
ENVELOPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
CALLS = ("function_call", "custom_tool_call", "local_shell_call")
ANSWERS = ("function_call_output", "custom_tool_call_output")
ITEMS = ("message", "reasoning", *CALLS, *ANSWERS)
TAGS = ("user_instructions", "environment_context", "permissions", "turn_aborted", "skill",
        "INSTRUCTIONS", "subagent_notification", "user_shell_command")  # fmt: skip
NOTICES = ("# AGENTS.md instructions", "<user_instructions>", "<environment_context>")
EXIT_CODES = ("Exit code: ", "Process exited with code ")


def knows(row: Mapping[str, Any]) -> bool:
    """Tell whether a line is one of a rollout, with an envelope or, as once, without."""
    if isinstance(row.get("payload"), dict):
        return row.get("type") in ENVELOPES
    return (row.get("type") in ITEMS and "sessionId" not in row) or _is_meta(row)


def _is_meta(row: Mapping[str, Any]) -> bool:
    """Tell whether a line without envelope is the first one of an old rollout."""
    return {"id", "timestamp", "instructions"} <= row.keys() and "type" not in row


def read(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    """Yield the messages of a line."""
    payload = row.get("payload")
    item = payload if isinstance(payload, dict) else row
    kind = row.get("type") if isinstance(payload, dict) else "response_item"
    is_about = kind in ("session_meta", "turn_context") or _is_meta(row)
    facts = (item.get("id"), item.get("cwd")) if is_about else ()
    context.enter(AGENT, row.get("timestamp"), *facts)
    # Rollouts name calls, but no messages.
    origin = digest(json.dumps(row, sort_keys=True).encode())
    if kind == "event_msg":
        context.is_mirrored = True
        yield from context.typed(without_tags(_typed(item, context), TAGS), origin)
    elif kind == "response_item":
        yield from _item(item, context, origin)


def _typed(event: Mapping[str, Any], context: TranscriptContext) -> str:
    """Return what a person typed of an event: in an item of its own, or as older files have it."""
    item, text = event.get("item"), event.get("message")
    if event.get("type") == "item_completed" and isinstance(item, dict):
        if item.get("type") != "UserMessage":
            return ""
        context.is_itemised = True
        return text_of(item.get("content"))
    is_typed = event.get("type") == "user_message" and not context.is_itemised
    return text if is_typed and isinstance(text, str) else ""


def _item(item: Mapping[str, Any], context: TranscriptContext, origin: str) -> Iterator[Message]:
    kind = item.get("type")
    call = str(item.get("call_id") or item.get("id") or "")
    if kind == "message":
        text = text_of(item.get("content"))
        if item.get("role") == "assistant":
            yield from context.spoken(text, origin)
        elif item.get("role") == "user" and not context.is_mirrored:
            typed = "" if text.startswith(NOTICES) else without_tags(text, TAGS)
            yield from context.typed(typed, origin)
    elif kind in CALLS:
        yield context.called(call, str(item.get("name") or "shell"), _arguments(item), origin)
    elif kind in ANSWERS:
        text, is_ok = _output(item.get("output"))
        yield context.answered(call, text, origin, is_ok=is_ok)


def _arguments(item: Mapping[str, Any]) -> Any:
    """Return the arguments of a call: JSON text, the text of a patch, or an action."""
    given = item.get("arguments", item.get("input", item.get("action")))
    held = json_value(given) if isinstance(given, str) and given.lstrip().startswith("{") else None
    return given if held is None else held


def _output(output: Any) -> tuple[str, bool | None]:
    """Return what a call printed, and whether it worked, in each of the forms that it has had."""
    if isinstance(output, str) and output.lstrip().startswith("{"):
        output = json_row(output) or output
    if isinstance(output, dict) and "output" in output:
        facts = output.get("metadata")
        code = facts.get("exit_code") if isinstance(facts, dict) else None
        return text_of(output["output"]), code == 0 if type(code) is int else None
    if isinstance(output, dict) and isinstance(output.get("success"), bool):
        return text_of(output.get("content")), output["success"]
    text = text_of(output)
    head, mark, body = text.partition("\nOutput:\n")
    found = [line[len(start) :].strip() for line in head.split("\n")
             for start in EXIT_CODES if line.startswith(start)]  # fmt: skip
    code_text = found[-1] if found else ""
    is_ok = code_text == "0" if code_text.lstrip("-").isdigit() else None
    return (body if mark and is_ok is not None else text), is_ok
