"""Chats in the form of a model's API: JSON lines with a role and a content."""

from __future__ import annotations

from memtool.sessions.transcripts import roles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from memtool.sessions.model import Message
    from memtool.sessions.transcripts.markup import TranscriptContext


def knows_chat(row: Mapping[str, Any]) -> bool:
    """Return whether a line has a role and a content."""
    return row.get("role") in roles.NAMES and "content" in row


def read_chat(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    """Yield the messages of a line."""
    yield from roles.read_line(row, row.get("content"), context, str)
