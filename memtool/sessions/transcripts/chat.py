"""Conversations without a host's own format: lines of a role and a content, or plain text.

Cursor writes no ids, no times and no answers of tools, and puts what was typed between tags. In
plain text and markdown who speaks is named before it, or it is all what a person wrote.
"""

from __future__ import annotations

import json

from memtool.sessions.model import Message
from memtool.sessions.transcripts.markup import inside, text_of, without_tags
from memtool.value import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from memtool.sessions.transcripts.markup import TranscriptContext

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


def read(row: Mapping[str, Any], context: TranscriptContext) -> Iterator[Message]:
    """Yield the messages of a line."""
    held = row.get("message")
    content = (held if isinstance(held, dict) else row).get("content")
    role = ROLES.get(str(row.get("role")), "")
    name = row.get("agent", row.get("name"))
    agent = name if isinstance(name, str) and role != "user" else ""
    context.enter(agent, row.get("timestamp", row.get("created_at")))
    origin = _origin(row, context)
    text = text_of(content)
    if role == "tool":
        yield context.answered(str(row.get("tool_call_id")), text, origin, is_ok=None)
    elif role == "user":
        yield from context.typed(without_tags(inside(text, TYPED), TAGS), origin)
    elif role == "assistant":
        yield from context.spoken(text, origin)
    yield from context.blocks(content, origin)


def _origin(row: Mapping[str, Any], context: TranscriptContext) -> str:
    """Return the name of a line: its id, or its number and a hash of its content."""
    given = row.get("id", row.get("uuid"))
    if isinstance(given, str) and given:
        return given
    return f"{context.line}-{digest(json.dumps(row, sort_keys=True).encode(), 6)}"


SPEAKERS = {
    "user": "user", "human": "user", "me": "user", "you": "user", "prompt": "user",
    "assistant": "assistant", "ai": "assistant", "agent": "assistant", "claude": "assistant",
    "codex": "assistant", "gemini": "assistant", "gpt": "assistant", "chatgpt": "assistant",
    "cursor": "assistant", "opencode": "assistant", "model": "assistant", "tool": "tool",
    "output": "tool", "system": "system",
}  # fmt: skip
"""Names that begin a turn as `User:`, `**User:**`, `## User` or `### Assistant`."""
MARKS = {"> ": "user", "\u276f ": "user", "⏺ ": "assistant", "● ": "assistant", "⎿ ": "tool"}
"""How turns begin in what a terminal shows."""
FENCES = ("```", "~~~")


def read_text(text: str) -> Iterator[Message]:
    """Yield the turns of a conversation, or the paragraphs of anything else."""
    rows = text.replace("\r\n", "\n").split("\n")
    turns = _turns(rows)
    if turns is None:
        turns = [("user", paragraph) for paragraph in _paragraphs(rows)]
    seen: dict[str, int] = {}
    for role, said in turns:
        body = "\n".join(said).strip("\n")
        if body.strip():
            name = digest(f"{role}\n{body}".encode(errors="surrogatepass"))
            seen[name] = seen.get(name, 0) + 1
            yield Message(0, role, body, origin=f"{name}-{seen[name]}")


def _turns(rows: list[str]) -> list[tuple[str, list[str]]] | None:
    """Return who said what, None where nobody is named; what is said before is left out."""
    is_screen = any(row.startswith(("⏺ ", "● ")) for row in rows)
    turns: list[tuple[str, list[str]]] = []
    fence = ""
    for row in rows:
        fence = _fence_after(fence, row)
        role, rest = ("", "") if fence else _speaker(row, is_screen=is_screen)
        if role:
            turns.append((role, [rest] if rest else []))
        elif turns:
            turns[-1][1].append(row)
    roles = {role for role, _said in turns}
    return turns if "user" in roles and len(turns) > 1 else None


def _speaker(row: str, *, is_screen: bool) -> tuple[str, str]:
    """Return the role that a line begins a turn of, and what it says already."""
    if is_screen:
        for mark, role in MARKS.items():
            if row.lstrip(" " if mark == "⎿ " else "").startswith(mark):
                return role, row.partition(mark)[2]
    line = row.strip()
    is_heading = line.startswith("#")
    bare = line.lstrip("#").strip()
    is_bold = bare.startswith("**")
    name, colon, rest = bare.strip("*" if is_bold else "").partition(":")
    name = name.strip("* ").lower()
    if name not in SPEAKERS or not (colon or is_heading or (is_bold and bare.endswith("**"))):
        return "", ""
    return SPEAKERS[name], rest.lstrip("* ") if colon else ""


def _paragraphs(rows: list[str]) -> Iterator[list[str]]:
    """Yield runs of lines between empty ones; what is fenced holds together."""
    run: list[str] = []
    fence = ""
    for row in rows:
        fence = _fence_after(fence, row)
        if row.strip() or fence:
            run.append(row)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _fence_after(fence: str, row: str) -> str:
    """Return the fence that is open after a line."""
    start = row.lstrip()[:3]
    if fence:
        return "" if start == fence and not row.strip().strip(fence[0]) else fence
    return start if start in FENCES else ""
