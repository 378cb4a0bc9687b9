"""The transcripts of Cursor: JSON lines without ids, times or tool answers."""

from __future__ import annotations

from memtool.sessions.model import as_dict
from memtool.sessions.transcripts import roles
from memtool.sessions.transcripts.markup import find_inside, without_tags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from memtool.sessions.model import Message
    from memtool.sessions.transcripts.markup import TranscriptContext

_TAGS = (
    "timestamp",
    "system_reminder",
    "attached_files",
    "open_and_recently_viewed_files",
    "user_info",
    "rules",
    "agent_skills",
    "git_status",
    "additional_data",
)
"""Tags around text that the host adds to what people typed."""
_TYPED = "user_query"
"""The tag around what people typed."""


def knows_cursor(row: Mapping[str, Any]) -> bool:
    """Return whether a line is Cursor's."""
    is_said = row.get("role") in roles.NAMES and "content" in as_dict(row.get("message"))
    return (is_said and "type" not in row) or row.get("type") == "turn_ended"


def read_cursor(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    """Yield the messages of a line."""
    yield from roles.read_line(row, as_dict(row.get("message")).get("content"), context, _clean)


def _clean(text: str) -> str:
    return without_tags(find_inside(text, _TYPED), _TAGS)
