"""Conversations as plain text or markdown: SpecStory, aider's history, and turns with names.

Who speaks is known by the marks of the format alone. What stands under no name that is known, and
all of a text in which nobody is named, is nobody's word: it gets the role `system`.
"""

from __future__ import annotations

import re

from memtool.sessions.model import Message
from memtool.sessions.transcripts.markup import moment_of
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY = "system"
"""The role of what has no speaker."""
_SPEAKERS = {
    **dict.fromkeys(("user", "human", "me", "you", "prompt"), "user"),
    **dict.fromkeys(
        (
            "agent",
            "ai",
            "assistant",
            "bot",
            "chatgpt",
            "claude",
            "claude code",
            "codex",
            "copilot",
            "cursor",
            "gemini",
            "github copilot",
            "gpt",
            "model",
            "opencode",
        ),
        "assistant",
    ),
    **dict.fromkeys(("output", "tool"), "tool"),
    "system": NOBODY,
}
"""Names that begin a turn as `User:`, `**User:**`, `## User` or `### Assistant`."""
_MARKS = {"> ": "user", "\u276f ": "user", "⏺ ": "assistant", "● ": "assistant", "⎿ ": "tool"}
"""How turns begin in what a terminal shows."""
_FENCES = ("```", "~~~")
_SPECSTORY = re.compile(r"^_\*\*(?P<name>[^(*]+?)(?: \((?P<about>[^*]*)\))?\*\*_$")
"""`_**User (TIME)**_`, `_**Agent (MODEL TIME)**_`."""
_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\dZ")
_AIDER = "# aider chat started at "
_AIDER_TYPED = "#### "
_AIDER_LINE_END = "  "
"""Ends each line that aider writes for a person; a heading in an answer has no such end."""
_AIDER_COMMAND = re.compile(r"^/(?:(?:ask|architect|code)\b ?)?")
_MAY_NAME = re.compile(r"^(?:#|\*\*)|^[A-Z][\w.-]*(?: [\w.-]+)?:(?: |$)")
"""A line that may begin the turn of somebody whose name is not known."""
_AROUND_NAME = re.compile(r"^[^\w]+|\s*\(.*\)$|\s+said$|[^\w)]+$")


class Turn(Value):
    """What one speaker says, as lines; `moment` is 0 where the text does not say when."""

    role: str
    lines: list[str]
    moment: int = 0


def read_text(text: str) -> Iterator[Message]:
    """Yield the turns of a conversation; of a text without speakers the paragraphs, as nobody's."""
    rows = text.replace("\r\n", "\n").split("\n")
    turns = _turns(rows)
    if turns is None:
        turns = [Turn(NOBODY, paragraph) for paragraph in _paragraphs(rows)]
    seen: dict[str, int] = {}
    for turn in turns:
        body = "\n".join(turn.lines).strip("\n")
        if body.strip():
            name = digest(f"{turn.role}\n{body}".encode(errors="surrogatepass"))
            seen[name] = seen.get(name, 0) + 1
            yield Message(0, turn.role, body, moment=turn.moment, origin=f"{name}-{seen[name]}")


def _turns(rows: list[str]) -> list[Turn] | None:
    """Return who said what, without what is before the first turn; None where nobody is named."""
    if any(row.startswith(_AIDER) for row in rows):
        return _aider_turns(rows)
    if any(_SPECSTORY.match(row.rstrip()) for row in rows):
        return _specstory_turns(rows)
    return _named_turns(rows)


def _specstory_turns(rows: list[str]) -> list[Turn]:
    """Return the turns below the headers of SpecStory; lines between two turns are no text."""
    turns: list[Turn] = []
    for is_fenced, row in _with_fences(rows):
        header = None if is_fenced else _SPECSTORY.match(row.rstrip())
        if header is not None:
            time = _TIME.search(header["about"] or "")
            moment = moment_of(time[0].replace(" ", "T")) if time else 0
            role = _SPEAKERS.get(header["name"].strip().lower(), NOBODY)
            turns.append(Turn(role, [], moment))
        elif turns and (is_fenced or row.strip() != "---"):
            turns[-1].lines.append(row)
    return turns


def _aider_turns(rows: list[str]) -> list[Turn]:
    """Return the turns of aider's history: `#### ` is the person, `> ` aider itself.

    Where no line ends as aider ends those of a person, as when an editor has trimmed the file, each
    such heading outside of code is taken for one.
    """
    is_whole = any(row.startswith(_AIDER_TYPED) and row.endswith(_AIDER_LINE_END) for row in rows)
    turns: list[Turn] = []
    for is_fenced, row in _with_fences(rows):
        is_typed = row.startswith(_AIDER_TYPED) and (
            row.endswith(_AIDER_LINE_END) if is_whole else not is_fenced
        )
        if is_typed:
            role, said = "user", _aider_typed(row.removeprefix(_AIDER_TYPED).rstrip())
        elif row.startswith("> "):
            role, said = "tool", row.removeprefix("> ")
        elif row.startswith(_AIDER):
            role, said = NOBODY, ""
        else:
            role, said = "assistant", row
        if not turns or turns[-1].role != role:
            turns.append(Turn(role, []))
        turns[-1].lines.append(said)
    return turns


def _aider_typed(line: str) -> str:
    """Return what a person says on a line; of a command only what it hands on to the model."""
    command = _AIDER_COMMAND.match(line)
    if command is None:
        return line
    return line[command.end() :] if len(command[0]) > 1 else ""


def _named_turns(rows: list[str]) -> list[Turn] | None:
    """Return the turns that begin with a name; None where it is not clear who speaks.

    A heading or a bold name that stands as those of the speakers do, and is none that is known,
    begins what nobody says. A person alone is heard where no other line may be another's turn.
    """
    is_screen = any(row.startswith(("⏺ ", "● ")) for row in rows)
    begun = [
        ("", "", "") if is_fenced else _speaker(row, is_screen=is_screen)
        for is_fenced, row in _with_fences(rows)
    ]
    styles = {style for style, role, _rest in begun if role}
    roles = {role for _style, role, _rest in begun}
    if "user" not in roles:
        return None
    if roles.isdisjoint(("assistant", "tool")):
        others = [row for row, (_style, role, _rest) in zip(rows, begun, strict=True) if not role]
        if any(map(_MAY_NAME.match, others)):
            return None
    turns: list[Turn] = []
    for row, (style, role, rest) in zip(rows, begun, strict=True):
        if role or (style and style in styles):
            turns.append(Turn(role or NOBODY, [rest] if rest else []))
        elif turns:
            turns[-1].lines.append(row)
    return turns


def _speaker(row: str, *, is_screen: bool) -> tuple[str, str, str]:
    """Return the style of a line that may begin a turn, the role, and what it says already.

    The role is empty for a name that is not known, the style as well where nothing marks a name.
    """
    if is_screen:
        for mark, role in _MARKS.items():
            if row.lstrip(" " if mark == "⎿ " else "").startswith(mark):
                return "screen", role, row.partition(mark)[2]
    line = row.strip()
    bare = line.lstrip("#").strip()
    level = line[: len(line) - len(line.lstrip("#"))]
    is_bold = bare.startswith("**")
    name, colon, rest = bare.strip("*" if is_bold else "").partition(":")
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
    return style or ("name:" if role else ""), role, rest.lstrip("* ") if colon and role else ""


def _paragraphs(rows: list[str]) -> Iterator[list[str]]:
    """Yield runs of lines between empty ones; what is fenced holds together."""
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
    """Yield each line behind whether it is code or opens it; the line that ends it counts not."""
    fence = ""
    for row in rows:
        start = row.lstrip()[:3]
        if fence:
            fence = "" if start == fence and not row.strip().strip(fence[0]) else fence
        elif start in _FENCES:
            fence = start
        yield bool(fence), row
