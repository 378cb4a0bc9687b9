"""Conversations as plain text or markdown: SpecStory, aider's history, and named turns.

Only the marks of the format show who speaks. Text under an unknown name, and a text without any
names, has no speaker: it gets the role `system`.
"""

from __future__ import annotations

import re

from memtool.agents import AGENTS
from memtool.sessions.model import Message
from memtool.sessions.transcripts.markup import parse_moment
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY = "system"
"""The role of text without a known speaker."""
_SPEAKERS = {
    **dict.fromkeys(("user", "human", "me", "you", "prompt"), "user"),
    **dict.fromkeys(
        (
            *AGENTS,
            "agent",
            "ai",
            "assistant",
            "bot",
            "chatgpt",
            "claude code",
            "copilot",
            "github copilot",
            "gpt",
            "model",
        ),
        "assistant",
    ),
    **dict.fromkeys(("output", "tool"), "tool"),
    "system": NOBODY,
}
"""Names that start a turn, as in `User:`, `**User:**`, `## User` or `### Assistant`."""
_MARKS = {"> ": "user", "\u276f ": "user", "⏺ ": "assistant", "● ": "assistant", "⎿ ": "tool"}
"""How turns start in a copied terminal screen."""
_FENCES = ("```", "~~~")
_SPECSTORY = re.compile(r"^_\*\*(?P<name>[^(*]+?)(?: \((?P<about>[^*]*)\))?\*\*_$")
"""`_**User (TIME)**_`, `_**Agent (MODEL TIME)**_`."""
_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\dZ")
_AIDER = "# aider chat started at "
_AIDER_TYPED = "#### "
_AIDER_LINE_END = "  "
"""Ends each line that a person typed in aider; headings in an answer have no such end."""
_AIDER_COMMAND = re.compile(r"^/(?:(?:ask|architect|code)\b ?)?")
_MAY_NAME = re.compile(r"^(?:#|\*\*)|^[A-Z][\w.-]*(?: [\w.-]+)?:(?: |$)")
"""A line that may start the turn of an unknown speaker."""
_AROUND_NAME = re.compile(r"^[^\w]+|\s*\(.*\)$|\s+said$|[^\w)]+$")


class Turn(Value):
    """One turn of a speaker, as lines; `moment` is 0 if the text does not give it."""

    role: str
    lines: list[str]
    moment: int = 0


def read_text(text: str) -> Iterator[Message]:
    """Yield the turns of a conversation, or the paragraphs of a text without speakers."""
    rows = text.replace("\r\n", "\n").split("\n")
    turns = _split_turns(rows)
    if turns is None:
        turns = [Turn(NOBODY, paragraph) for paragraph in _split_paragraphs(rows)]
    seen: dict[str, int] = {}
    for turn in turns:
        body = "\n".join(turn.lines).strip("\n")
        if body.strip():
            name = digest(f"{turn.role}\n{body}".encode(errors="surrogatepass"))
            seen[name] = seen.get(name, 0) + 1
            yield Message(0, turn.role, body, moment=turn.moment, origin=f"{name}-{seen[name]}")


def _split_turns(rows: list[str]) -> list[Turn] | None:
    """Split a text into turns, dropping the text before the first; None if no speaker is named."""
    if any(row.startswith(_AIDER) for row in rows):
        return _split_aider_turns(rows)
    if any(_SPECSTORY.match(row.rstrip()) for row in rows):
        return _split_specstory_turns(rows)
    return _read_named_turns(rows)


def _split_specstory_turns(rows: list[str]) -> list[Turn]:
    """Split a text at SpecStory's headers; separators between turns are dropped."""
    turns: list[Turn] = []
    for is_fenced, row in _with_fences(rows):
        header = None if is_fenced else _SPECSTORY.match(row.rstrip())
        if header is not None:
            time = _TIME.search(header["about"] or "")
            moment = parse_moment(time[0].replace(" ", "T")) if time else 0
            role = _SPEAKERS.get(header["name"].strip().lower(), NOBODY)
            turns.append(Turn(role, [], moment))
        elif turns and (is_fenced or row.strip() != "---"):
            turns[-1].lines.append(row)
    return turns


def _split_aider_turns(rows: list[str]) -> list[Turn]:
    """Split aider's history into turns: `#### ` is the person, `> ` is aider itself.

    If no line has the ending that aider gives to a person's lines, for example because an editor
    trimmed the file, each such heading outside of code counts as a person's.
    """
    is_whole = any(row.startswith(_AIDER_TYPED) and row.endswith(_AIDER_LINE_END) for row in rows)
    turns: list[Turn] = []
    for is_fenced, row in _with_fences(rows):
        is_typed = row.startswith(_AIDER_TYPED) and (
            row.endswith(_AIDER_LINE_END) if is_whole else not is_fenced
        )
        if is_typed:
            role, text = "user", _read_aider_typed(row.removeprefix(_AIDER_TYPED).rstrip())
        elif row.startswith("> "):
            role, text = "tool", row.removeprefix("> ")
        elif row.startswith(_AIDER):
            role, text = NOBODY, ""
        else:
            role, text = "assistant", row
        if not turns or turns[-1].role != role:
            turns.append(Turn(role, []))
        turns[-1].lines.append(text)
    return turns


def _read_aider_typed(line: str) -> str:
    """Return a person's text on a line; for a command only the part passed to the model."""
    command = _AIDER_COMMAND.match(line)
    if command is None:
        return line
    return line[command.end() :] if len(command[0]) > 1 else ""


def _read_named_turns(rows: list[str]) -> list[Turn] | None:
    """Split a text into turns that start with a name; None if the speakers are unclear.

    An unknown name in the same style as a speaker's starts a turn without a speaker. A text with
    only a person's turns counts if no other line could be another speaker's.
    """
    is_screen = any(row.startswith(("⏺ ", "● ")) for row in rows)
    begun = [
        ("", "", "") if is_fenced else _parse_speaker(row, is_screen=is_screen)
        for is_fenced, row in _with_fences(rows)
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
    role = _SPEAKERS.get(name.lower(), "")
    return style or ("name:" if role else ""), role, tail.lstrip("* ") if colon and role else ""


def _split_paragraphs(rows: list[str]) -> Iterator[list[str]]:
    """Yield groups of lines between empty ones; fenced code stays together."""
    run: list[str] = []
    for is_fenced, row in _with_fences(rows):
        if row.strip() or is_fenced:
            run.append(row)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _with_fences(rows: list[str]) -> Iterator[tuple[bool, str]]:
    """Yield (is fenced, line); the opening fence counts as code, the closing one does not."""
    fence = ""
    for row in rows:
        start = row.lstrip()[:3]
        if fence:
            fence = "" if start == fence and not row.strip().strip(fence[0]) else fence
        elif start in _FENCES:
            fence = start
        yield bool(fence), row
