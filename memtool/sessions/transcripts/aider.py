"""The chat history of aider: `#### ` is the person, `> ` is aider itself, the rest the model."""

from __future__ import annotations

import re

from memtool.sessions.transcripts.markup import parse_moment
from memtool.sessions.transcripts.turns import NOBODY, Turn, with_fences

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memtool.sessions.model import Message
    from memtool.sessions.transcripts.markup import TranscriptContext

_START = "# aider chat started at "
_TYPED = "#### "
_LINE_END = "  "
"""Ends each line that a person typed in aider; headings in an answer have no such end."""
_COMMAND = re.compile(r"^/(?P<name>[a-z][a-z-]*)(?: |$)")
_MODES = ("architect", "ask", "code")
"""Commands that pass the text behind their name to the model."""
_NOT_TYPED = re.compile(r"^(?:<blank>|.*\? \(Y\)es/\(N\)o.*)$")
"""What aider writes in place of a prompt: that it was empty, or a question with its answer."""


def knows_aider(rows: Sequence[str]) -> bool:
    """Return whether a text is aider's history."""
    return any(row.startswith(_START) for row in rows)


def read_aider(rows: Sequence[str], _context: TranscriptContext) -> Iterator[Message]:
    """Yield the turns of aider's history.

    Each run of aider begins with its time, which has no zone; it is read as UTC.

    If no line has the ending that aider gives to a person's lines, for example because an editor
    trimmed the file, each such heading outside of code counts as a person's.
    """
    is_whole = any(row.startswith(_TYPED) and row.endswith(_LINE_END) for row in rows)
    turns: list[Turn] = []
    moment = 0
    for is_fenced, row in with_fences(rows):
        is_typed = row.startswith(_TYPED) and (
            row.endswith(_LINE_END) if is_whole else not is_fenced
        )
        if row.startswith(_START):
            moment = parse_moment(f"{row.removeprefix(_START).strip().replace(' ', 'T')}Z")
            role, text = NOBODY, ""
        elif is_typed:
            role, text = "user", row.removeprefix(_TYPED).rstrip()
        elif row.startswith("> "):
            role, text = "tool", row.removeprefix("> ")
        else:
            role, text = "assistant", row
        if not turns or turns[-1].role != role:
            turns.append(Turn(role, [], moment))
        turns[-1].lines.append(text)
    answer: list[str] = []
    for turn in turns:
        lines = turn.lines
        if turn.role == "assistant" and any(map(str.strip, lines)):
            answer = _split_words(lines)
        elif turn.role == "user":
            # An architect's plan goes to the editor model as if it had been typed.
            lines = [] if _split_words(lines) == answer else _find_typed(lines)
        yield from turn.replace(lines=lines).messages


def _split_words(lines: list[str]) -> list[str]:
    return " ".join(lines).split()


def _find_typed(lines: list[str]) -> list[str]:
    """Return what a person typed to the model; of a command only the part passed on."""
    command = _COMMAND.match(lines[0])
    if command is not None:
        lines = [lines[0][command.end() :], *lines[1:]] if command["name"] in _MODES else []
    return [line for line in lines if not _NOT_TYPED.match(line)]
