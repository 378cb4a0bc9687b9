"""Lines with a role and a content, a form that several hosts write in ways of their own."""

from __future__ import annotations

import json

from memtool.sessions.transcripts.markup import join_text
from memtool.value import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from memtool.sessions.model import Message
    from memtool.sessions.transcripts.markup import TranscriptContext

_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "tool": "tool"}
NAMES = (*_ROLES, "system")
"""The roles that lines name."""


def read_line(
    row: Mapping[str, Any], content: Any, context: TranscriptContext, clean: Callable[[str], str]
) -> Iterator[Message]:
    """Yield the messages of a line; `clean` returns what a person typed of a user's text."""
    role = _ROLES.get(str(row.get("role")), "")
    name = row.get("agent", row.get("name"))
    agent = name if isinstance(name, str) and role != "user" else ""
    context.enter(agent, row.get("timestamp", row.get("created_at")))
    origin = _find_origin(row, context)
    text = join_text(content)
    if role == "tool":
        yield context.add_answer(str(row.get("tool_call_id")), text, origin, is_ok=None)
    elif role == "user":
        yield from context.add_typed(clean(text), origin)
    elif role == "assistant":
        yield from context.spoken(text, origin)
    yield from context.blocks(content, origin)


def _find_origin(row: Mapping[str, Any], context: TranscriptContext) -> str:
    """Return the origin of a line: its id, or its number and a hash of its content."""
    native_id = row.get("id", row.get("uuid"))
    if isinstance(native_id, str) and native_id:
        return native_id
    return f"{context.line}-{digest(json.dumps(row, sort_keys=True).encode(), 6)}"
