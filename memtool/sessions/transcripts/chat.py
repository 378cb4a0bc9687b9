"""Chats: lines of a role and a content, as Cursor writes them and many programs can.

Cursor writes no ids, no times and no answers of tools, and puts what was typed between tags.
"""

from __future__ import annotations

from memtool.sessions.message import Message
from memtool.sessions.transcripts.context import moment_of, text_of
from memtool.sessions.transcripts.markup import inside, without_tags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from memtool.sessions.transcripts.context import Context

ROLES = {"user": "user", "human": "user", "assistant": "assistant", "tool": "tool"}
_NAMES = (*ROLES, "system")
TAGS = ("timestamp", "system_reminder", "attached_files", "open_and_recently_viewed_files",
        "user_info", "rules", "agent_skills", "git_status", "additional_data")  # fmt: skip
TYPED = "user_query"


def knows_cursor(row: Mapping[str, Any]) -> bool:
    """Tell whether a line is one of Cursor."""
    held = row.get("message")
    is_said = row.get("role") in _NAMES and isinstance(held, dict) and "content" in held
    return (is_said and "type" not in row) or row.get("type") == "turn_ended"


def knows(row: Mapping[str, Any]) -> bool:
    """Tell whether a line is a role and a content."""
    return row.get("role") in _NAMES and "content" in row


def read(row: Mapping[str, Any], context: Context) -> Iterator[Message]:
    """Yield the messages of a line."""
    held = row.get("message")
    said = held if isinstance(held, dict) else row
    role = ROLES.get(str(row.get("role")), "")
    content = said.get("content")
    moment = moment_of(row.get("timestamp", row.get("created_at")))
    given = row.get("agent", row.get("name"))
    agent = given if isinstance(given, str) and role != "user" else ""
    origin = _origin(row, context)
    if role == "tool":
        call = str(row.get("tool_call_id"))
        yield context.answered(call, text_of(content), is_ok=None, moment=moment, agent=agent,
                               origin=origin)  # fmt: skip
    elif role:
        text = _typed(text_of(content)) if role == "user" else text_of(content)
        if text.strip():
            yield Message(0, role, text, moment=moment, agent=agent, origin=origin)
    for number, block in enumerate(content if isinstance(content, list) else []):
        place = f"{origin}:{number}"
        if isinstance(block, dict) and block.get("type") == "tool_use":
            yield context.called(str(block.get("id") or ""), str(block.get("name")),
                                 block.get("input"), moment=moment, agent=agent,
                                 origin=place)  # fmt: skip
        elif isinstance(block, dict) and block.get("type") == "tool_result":
            is_error = block.get("is_error")
            yield context.answered(str(block.get("tool_use_id")), text_of(block.get("content")),
                                   is_ok=not is_error if isinstance(is_error, bool) else None,
                                   moment=moment, agent=agent, origin=place)  # fmt: skip


def _typed(text: str) -> str:
    return without_tags(inside(text, TYPED), TAGS)


def _origin(row: Mapping[str, Any], context: Context) -> str:
    """Return the name of a line: its id, or its number and what it says."""
    given = row.get("id", row.get("uuid"))
    if isinstance(given, str) and given:
        return given
    import json
    from _blake2 import blake2b  # hashlib would import OpenSSL

    data = json.dumps(row, sort_keys=True).encode()
    return f"{context.line}-{blake2b(data, digest_size=6).hexdigest()}"
