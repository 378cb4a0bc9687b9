"""The histories of prompts of Claude Code and Codex: `history.jsonl`, a prompt a line.

One file holds the prompts of all sessions, and nothing else of them.
"""

from __future__ import annotations

import json
import re

from memtool.sessions.transcripts.markup import parse_moment, without_command
from memtool.value import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from memtool.sessions.model import Message
    from memtool.sessions.transcripts.markup import TranscriptContext

_PASTED = re.compile(r"\[(?:Image|Pasted text) #\d+(?: \+\d+ lines)?\]")
"""Takes the place of what a person did not type."""
_EXPANDED = ("\n", "---\n")
"""How the text of a custom command starts, which Codex writes in place of what was typed."""


def knows_claude_history(row: Mapping[str, Any]) -> bool:
    """Return whether a line is from Claude Code's history."""
    return isinstance(row.get("display"), str) and "timestamp" in row and "type" not in row


def read_claude_history(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    """Yield the message of a prompt, without pasted text; of a command only what follows it."""
    context.enter("claude", row.get("timestamp"), row.get("sessionId"), row.get("project"))
    display = row.get("display")
    text = _PASTED.sub("", display) if isinstance(display, str) else ""
    yield from context.add_typed(without_command(text), _hash_row(row))


def knows_codex_history(row: Mapping[str, Any]) -> bool:
    """Return whether a line is from Codex's history."""
    return {"session_id", "text", "ts"} == row.keys() and isinstance(row["text"], str)


def read_codex_history(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    """Yield the message of a prompt, unless it is the text of a custom command."""
    text, moment = row.get("text"), row.get("ts")
    context.enter("codex", None, row.get("session_id"))
    context.moment = parse_moment(moment)
    if isinstance(text, str) and not text.startswith(_EXPANDED):
        yield from context.add_typed(without_command(text), _hash_row(row))


def _hash_row(row: Mapping[str, Any]) -> str:
    return digest(json.dumps(row, sort_keys=True).encode())
