"""Conversations as plain text or markdown with named turns, and any other text.

Only the marks of the format show who speaks. Text under an unknown name, and a text without any
names, has no speaker: it gets the role `system`.
"""

from __future__ import annotations

import re

from memtool.sessions.transcripts.turns import NOBODY, SPEAKERS, Turn, with_fences

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memtool.sessions.model import Message
    from memtool.sessions.transcripts.markup import TranscriptContext

_MARKS = {"> ": "user", "\u276f ": "user", "⏺ ": "assistant", "● ": "assistant", "⎿ ": "tool"}
"""How turns start in a copied terminal screen."""
_MAY_NAME = re.compile(r"^(?:#|\*\*)|^[A-Z][\w.-]*(?: [\w.-]+)?:(?: |$)")
"""A line that may start the turn of an unknown speaker."""
_AROUND_NAME = re.compile(r"^[^\w]+|\s*\(.*\)$|\s+said$|[^\w)]+$")


def read_text(rows: Sequence[str], _context: TranscriptContext) -> Iterator[Message]:
    """Yield the turns of a conversation, or the paragraphs of a text without speakers."""
    turns = _read_named_turns(rows)
    if turns is None:
        turns = [Turn(NOBODY, paragraph) for paragraph in _split_paragraphs(rows)]
    for turn in turns:
        yield from turn.messages


def _read_named_turns(rows: Sequence[str]) -> list[Turn] | None:
    """Split a text into turns that start with a name; None if the speakers are unclear.

    An unknown name in the same style as a speaker's starts a turn without a speaker. A text with
    only a person's turns counts if no other line could be another speaker's.
    """
    is_screen = any(row.startswith(("⏺ ", "● ")) for row in rows)
    begun = [
        ("", "", "") if is_fenced else _parse_speaker(row, is_screen=is_screen)
        for is_fenced, row in with_fences(rows)
    ]
    styles = {style for style, role, _tail in begun if role}
    roles = {role for _style, role, _tail in begun}
    if "user" not in roles:
        return None
    if roles.isdisjoint(("assistant", "tool")):
        unnamed = [row for row, (_style, role, _tail) in zip(rows, begun, strict=True) if not role]
        if any(map(_MAY_NAME.match, unnamed)):
            return None
    turns: list[Turn] = []
    for row, (style, role, tail) in zip(rows, begun, strict=True):
        if role or (style and style in styles):
            turns.append(Turn(role or NOBODY, [tail] if tail else []))
        elif turns:
            turns[-1].lines.append(row)
    return turns


def _parse_speaker(row: str, *, is_screen: bool) -> tuple[str, str, str]:
    """Return the style, role and rest of a line that may start a turn.

    The role is empty for an unknown name, and the style too if the line marks no name.
    """
    if is_screen:
        for mark, role in _MARKS.items():
            if row.lstrip(" " if mark == "⎿ " else "").startswith(mark):
                return "screen", role, row.partition(mark)[2]
    line = row.strip()
    bare = line.lstrip("#").strip()
    level = line[: len(line) - len(line.lstrip("#"))]
    is_bold = bare.startswith("**")
    name, colon, tail = bare.strip("*" if is_bold else "").partition(":")
    if level:
        style = level
    elif is_bold and (colon or bare.endswith("**")):
        style = "**"
    else:
        style = ""
        if not colon:
            return "", "", ""
    name = name.strip("* ")
    name = _AROUND_NAME.sub("", name) if style else name
    role = SPEAKERS.get(name.lower(), "")
    return style or ("name:" if role else ""), role, tail.lstrip("* ") if colon and role else ""


def _split_paragraphs(rows: Sequence[str]) -> Iterator[list[str]]:
    """Yield groups of lines between empty ones; fenced code stays together."""
    run: list[str] = []
    for is_fenced, row in with_fences(rows):
        if row.strip() or is_fenced:
            run.append(row)
        elif run:
            yield run
            run = []
    if run:
        yield run
