"""The transcripts of Codex: rollouts, JSON lines with an envelope of time, type and payload."""

from __future__ import annotations

import json

from memtool.sessions.model import as_dict, parse_json, parse_json_row
from memtool.sessions.transcripts.markup import join_text, without_tags
from memtool.sessions.transcripts.outcomes import split_outcome
from memtool.value import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from memtool.sessions.model import Message
    from memtool.sessions.transcripts.markup import TranscriptContext

_ENVELOPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_ANSWERS = ("function_call_output", "custom_tool_call_output")
_ITEMS = ("message", "reasoning", *_CALLS, *_ANSWERS)
_TAGS = (
    "user_instructions",
    "environment_context",
    "permissions",
    "turn_aborted",
    "skill",
    "INSTRUCTIONS",
    "subagent_notification",
    "user_shell_command",
)
_REQUEST = "\n## My request for Codex:\n"
"""Comes before what a person typed, below the files that are open in an editor."""
_NOTICES = ("# AGENTS.md instructions", "<user_instructions>", "<environment_context>")


def knows_codex(row: Mapping[str, Any]) -> bool:
    """Return whether a line is from a rollout, with an envelope or, in old files, without."""
    if isinstance(row.get("payload"), dict):
        return row.get("type") in _ENVELOPES
    return (row.get("type") in _ITEMS and "sessionId" not in row) or _is_meta(row)


def _is_meta(row: Mapping[str, Any]) -> bool:
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
    is_about = kind in ("session_meta", "turn_context") or _is_meta(row)
    facts = (item.get("id"), item.get("cwd")) if is_about else ()
    context.enter("codex", row.get("timestamp"), *facts)
    # Rollouts give ids to calls, but not to messages.
    origin = digest(json.dumps(row, sort_keys=True).encode())
    if kind == "event_msg":
        context.is_mirrored = True
        typed = _without_text(_typed(item, context))
        if typed.strip():
            is_again, context.typed_item = context.typed_item == _hash(typed), ""
            yield from () if is_again else context.add_typed(typed, origin)
    elif kind == "response_item":
        yield from _item(item, context, origin)


def _without_text(text: str) -> str:
    """Return what a person typed, without what an editor puts before it."""
    _before, mark, request = text.partition(_REQUEST)
    return without_tags(request if mark else text, _TAGS).strip("\n")


def _hash(text: str) -> str:
    return digest(text.strip().encode(errors="surrogatepass"))


def _typed(event: Mapping[str, Any], context: TranscriptContext) -> str:
    """Return an event's typed text: in an item of its own, or in the older form."""
    item, text = event.get("item"), event.get("message")
    if event.get("type") == "item_completed" and isinstance(item, dict):
        if item.get("type") != "UserMessage":
            return ""
        context.is_itemised = True
        return join_text(item.get("content"))
    is_typed = event.get("type") == "user_message" and not context.is_itemised
    return text if is_typed and isinstance(text, str) else ""


def _item(item: Mapping[str, Any], context: TranscriptContext, origin: str) -> Iterator[Message]:
    kind = item.get("type")
    call = str(item.get("call_id") or item.get("id") or "")
    if kind == "message":
        text = join_text(item.get("content"))
        if item.get("role") == "assistant":
            yield from context.spoken(text, origin)
        elif item.get("role") == "user" and not context.is_mirrored:
            typed = "" if text.startswith(_NOTICES) else _without_text(text)
            if typed.strip():
                context.typed_item = _hash(typed)  # the first event may repeat it
            yield from context.add_typed(typed, origin)
    elif kind in _CALLS:
        yield context.add_call(call, str(item.get("name") or "shell"), _arguments(item), origin)
    elif kind in _ANSWERS:
        text, is_ok = _output(item.get("output"))
        yield context.add_answer(call, text, origin, is_ok=is_ok)


def _arguments(item: Mapping[str, Any]) -> Any:
    """Return the arguments of a call: parsed JSON, the text of a patch, or an action."""
    arguments = item.get("arguments", item.get("input", item.get("action")))
    parsed = (
        parse_json(arguments)
        if isinstance(arguments, str) and arguments.lstrip().startswith("{")
        else None
    )
    return arguments if parsed is None else parsed


def _output(output: Any) -> tuple[str, bool | None]:
    """Return a call's output and whether it worked, for all of Codex's formats."""
    if isinstance(output, str) and output.lstrip().startswith("{"):
        output = parse_json_row(output) or output
    if isinstance(output, dict) and "output" in output:
        code = as_dict(output.get("metadata")).get("exit_code")
        return join_text(output["output"]), code == 0 if type(code) is int else None
    if isinstance(output, dict) and isinstance(output.get("success"), bool):
        return join_text(output.get("content")), output["success"]
    return split_outcome(join_text(output))
