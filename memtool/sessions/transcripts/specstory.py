"""Conversations that SpecStory renders as markdown, of several hosts in nearly the same form.

A header names each speaker. A tool call is a block between tags, with its summary, arguments and
output; how they look depends on the host and on the version of SpecStory. Headers inside a block
or inside code belong to it: what a tool printed never becomes a person's words.
"""

from __future__ import annotations

import re

from memtool.agents import AGENTS, PATCH_HEADS
from memtool.sessions.model import Message, parse_json_row
from memtool.sessions.transcripts.markup import parse_moment, without_command
from memtool.sessions.transcripts.outcomes import split_outcome
from memtool.sessions.transcripts.scaffolding import without_host_text, without_reminders
from memtool.sessions.transcripts.turns import NOBODY, SPEAKERS, Fence, follow_fence, parse_fence
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from memtool.sessions.transcripts.markup import TranscriptContext

_HEADER = re.compile(r"^_\*\*(?P<name>[^(*]+?)(?: \((?P<about>[^*]*)\))?\*\*_$")
"""`_**User (TIME)**_`, `_**Agent (MODEL TIME)**_`, `_**Agent - sidechain**_`."""
_SIDECHAIN = "sidechain"
"""Marks the turns of a subagent: nobody typed its prompts."""
_SEPARATOR = "---"
_SESSION = re.compile(r"^<!-- (?P<product>[\w ]+?) Session (?P<id>\S+)")
_VSCODE = "vscode"
_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?P<second>:\d\d)?(?:\.\d+)?(?P<zone>Z|[+-]\d{4})")
_TOOL = re.compile(r'^<tool-use data-tool-type="(?P<type>[^"]*)" data-tool-name="(?P<name>[^"]*)">')
_THOUGHT = "<think>"
_TOOL_TAG = "<tool-use "
_ENDS = {_TOOL_TAG: "</tool-use>", _THOUGHT: "</think>"}
"""How blocks start, and how their last line ends."""
_SUMMARY = re.compile(r"<summary>(?P<text>.*?)</summary>\s*(?:</details>)?", re.DOTALL)
_TOOL_USE = re.compile(r"^Tool use: \*\*[^*]*\*\*\s*")
_REPLY = " \u23bf "
"""Starts the host's answer to a command of a person, in earlier versions."""
_PROMPT_COMMAND = "<command-message>"
"""Starts the host's text for a command that is a prompt; the next turn is that prompt."""
_LABEL = re.compile(
    r"^(?:\*\*)?(?P<label>Additional data|Error|Input|Output|Parameters|Result)"
    r"(?: \(truncated\))?:(?:\*\*)?(?: *(?P<text>\S.*))?$"
)
_PRINTED = ("Error", "Output", "Result")
"""Labels of what a tool returned."""
_ITEM = re.compile(r"^- (?P<name>\w+): `(?P<value>.*)$")
_NAMED = re.compile(r"\b(?P<name>include|path|pattern) `(?P<value>[^`]*)`")
_PATH = re.compile(r"^(?:Path: |\*\*(?:Add|Delete|Modify|Update): )`(?P<value>[^`]+)`(?:\*\*)?$")
_TITLE = re.compile(
    r"^• (?:(?P<edit>Delete|Edit|Read|Write) file|Run command): (?P<value>.+)$", re.DOTALL
)
_CHANGED = re.compile(
    r"^(?:The file (?P<updated>\S.*?) has been |File created successfully at: (?P<created>\S+)"
    r"|Success\. Updated the following files:\n[ADM] (?P<patched>\S+)"
    r"|Successfully [\w ]+ file: (?P<written>\S+?)\.?(?: \(|$))",
    re.MULTILINE,
)
"""How a tool reports the file that it changed, for hosts whose calls do not name it."""
_STATUS = re.compile(r"^Status: \*\*(?P<status>\w+)\*\*$")
_OUTCOMES = {"cancelled": False, "completed": True, "error": False}
_SHELL_TYPES = ("bash", "shell")
_DIFF, _JSON, _SHELL, _TEXT = "diff", "json", "bash", "text"
"""Languages of fenced code. Output is text, or names none."""
_TAG_LINES = ("</details>", "</details></tool-use>", "</tool-use>", "<details>")
_ESCAPING = ("cursor", "copilot", "")
"""Hosts whose output SpecStory writes with HTML's entities."""


class Turn(Value):
    """A speaker's turn: pieces of lines, each a run of text or one block."""

    role: str
    pieces: list[list[str]]
    moment: int = 0


class Block:
    """What the lines of a tool's block hold, below the summary; `printed` is None for no output."""

    def __init__(self) -> None:
        self.arguments: dict[str, Any] = {}
        self.paths: list[str] = []
        self.quoted: list[str] = []
        """Lines that are nothing but code between backticks."""
        self.code: list[tuple[str, str]] = []
        """The language and text of fenced code that is not output."""
        self.printed: str | None = None
        self.is_ok: bool | None = None


def knows_specstory(rows: Sequence[str]) -> bool:
    """Return whether a text has SpecStory's headers."""
    return any(_HEADER.match(row.rstrip()) for row in rows)


def read_specstory(rows: Sequence[str], context: TranscriptContext) -> Iterator[Message]:
    """Yield the messages of a conversation; thoughts and the turns of subagents are left out."""
    agent = ""
    session = next(filter(None, map(_SESSION.match, rows[:_HEAD_LINES])), None)
    if session is not None:
        agent = _find_agent(session["product"].lower())
        context.enter(agent, None, session["id"])
    prompt_moment = -1
    for turn in _split_turns(rows):
        context.agent, context.moment = agent, turn.moment
        whole = "\n".join(line for piece in turn.pieces for line in piece).strip("\n")
        if turn.role == "user" and _is_printed(whole):
            yield Message(0, NOBODY, whole, moment=turn.moment)
        elif turn.role == "user":
            if turn.moment != prompt_moment:
                yield from context.add_typed(_find_typed(whole), "")
            prompt_moment = turn.moment if whole.startswith(_PROMPT_COMMAND) else -1
        elif turn.role == "assistant":
            for piece in turn.pieces:
                yield from _read_piece(piece, context)
        elif turn.role and whole.strip():
            yield Message(0, turn.role, whole, moment=turn.moment)


_HEAD_LINES = 20
"""Number of lines in which the session is named."""


def _find_typed(text: str) -> str:
    lines = [line for line in text.split("\n") if not line.startswith(_REPLY)]
    return without_command(without_host_text("\n".join(lines)))


def _is_printed(text: str) -> bool:
    """Return whether a turn ends a block that began before it: then a tool printed its header."""
    return _ENDS[_TOOL_TAG] in text and _TOOL_TAG not in text


def _find_agent(product: str) -> str:
    return next(
        (name for name in AGENTS if name in product), "copilot" if _VSCODE in product else ""
    )


def _split_turns(rows: Sequence[str]) -> list[Turn]:
    """Split a text at its headers; the text before the first is dropped.

    The header of a person comes after a separator, or after another turn of a person.
    """
    turns: list[Turn] = []
    opening: Fence | None = None
    is_separated = True
    at = 0
    while at < len(rows):
        row, start = rows[at].rstrip(), at
        at += 1
        role = turns[-1].role if turns else ""
        header = _HEADER.match(row) if opening is None else None
        ending = next((end for begin, end in _ENDS.items() if row.startswith(begin)), "")
        if header is not None and (is_separated or not _is_person(header)):
            turns.append(_begin_turn(header))
            is_separated = turns[-1].role == "user"
        elif ending and opening is None and role != "user":
            at = _find_end(rows, start, ending)
            if turns:
                turns[-1].pieces.extend(([*rows[start:at]], []))
            is_separated = False
        else:
            opening, is_fenced = follow_fence(row, opening), opening is not None
            is_rule = row == _SEPARATOR and not is_fenced
            is_separated = is_rule or (is_separated and (not row or role == "user" or not turns))
            if turns and not is_rule:
                turns[-1].pieces[-1].append(rows[start])
    return turns


def _is_person(header: re.Match[str]) -> bool:
    return SPEAKERS.get(header["name"].strip().lower()) == "user"


def _begin_turn(header: re.Match[str]) -> Turn:
    """Return the turn that a header starts; its role is empty for a subagent."""
    about = header["about"] or ""
    time = _TIME.search(about)
    moment = 0
    if time:
        zone = time["zone"] if time["zone"] == "Z" else f"{time['zone'][:3]}:{time['zone'][3:]}"
        clock = time[0].removesuffix(time["zone"]).replace(" ", "T")
        moment = parse_moment(f"{clock}{'' if time['second'] else ':00'}{zone}")
    is_sidechain = _SIDECHAIN in about or _SIDECHAIN in header["name"]
    role = "" if is_sidechain else SPEAKERS.get(header["name"].strip().lower(), NOBODY)
    return Turn(role, [[]], moment)


def _find_end(rows: Sequence[str], start: int, ending: str) -> int:
    """Return the index after a block; one without an end extends to the end of the text.

    A tool may print fences and the ending itself: the ending counts outside of code only. Some
    hosts put the output between fences that do not outnumber its own, so the line before the
    ending may seem to open code: then the ending counts, too.
    """
    if rows[start].rstrip().endswith(ending):
        return start + 1
    opening: Fence | None = None
    opened = -1
    last = start
    for at in range(start + 1, len(rows)):
        row = rows[at].rstrip()
        is_end = row in (ending, f"</details>{ending}")
        is_end = is_end or (row.endswith(ending) and ending != _ENDS[_TOOL_TAG])
        is_misread = opening is not None and opened == last and not opening.info
        if is_end and (opening is None or is_misread or ending != _ENDS[_TOOL_TAG]):
            return at + 1
        if opening is None and parse_fence(row) is not None:
            opened = at
        opening = follow_fence(row, opening)
        last = at if row not in ("", "</details>") else last
    return len(rows)


def _read_piece(lines: list[str], context: TranscriptContext) -> Iterator[Message]:
    """Yield the messages of a piece of an agent's turn: its text, or a call and its answer."""
    opening = _TOOL.match(lines[0]) if lines else None
    if opening is not None:
        yield from _read_tool(opening, lines, context)
    elif not (lines and lines[0].startswith(_THOUGHT)):
        yield from context.spoken("\n".join(lines).strip("\n"), "")


def _read_tool(
    opening: re.Match[str], lines: list[str], context: TranscriptContext
) -> Iterator[Message]:
    """Yield the call of a block, and its answer, which is empty if the block shows no output."""
    from html import unescape

    whole = "\n".join([lines[0][opening.end() :], *lines[1:]])
    summary = _SUMMARY.search(whole)
    title = _TOOL_USE.sub("", unescape(summary["text"]).strip()) if summary else ""
    body = (whole[summary.end() :] if summary else whole).split("\n")
    kind = opening["type"]
    block = _read_block([row for row in body if row.strip() not in _TAG_LINES], kind)
    printed = unescape(block.printed or "") if context.agent in _ESCAPING else block.printed or ""
    printed, has_worked = split_outcome(without_reminders(printed).strip("\n"))
    change = "\n".join(text for info, text in block.code if info == _DIFF)
    arguments = _find_arguments(kind, title, block, printed, change)
    if not (arguments or printed):
        return  # Cursor's calls are followed by an empty block of the same name
    call = context.add_call(_ID, unescape(opening["name"]), arguments, "")
    yield call.replace(text=change) if change else call
    is_ok = has_worked if block.is_ok is None else block.is_ok
    # Claude Code marks each failure in the output.
    is_ok = True if is_ok is None and context.agent == "claude" else is_ok
    yield context.add_answer(_ID, printed, "", is_ok=is_ok)


_ID = "call"
"""The id of the one call that waits for its answer."""


def _read_block(rows: list[str], kind: str) -> Block:
    """Read the lines of a block one by one: labels, paths, code, and what they stand for."""
    block, label, at = Block(), "", 0
    while at < len(rows):
        row, start = rows[at].rstrip(), at
        at += 1
        fence = parse_fence(row)
        if fence is not None:
            is_content = kind == "write" and not block.code and f"{fence.mark}{_TEXT}" in rows[at:]
            is_output = label in _PRINTED or (
                not label and fence.info in ("", _TEXT) and not (is_content and not fence.info)
            )
            at = _find_closing(rows, start, fence, is_last=is_output and fence.info != _JSON)
            _add_code(
                block, fence.info, "\n".join(rows[start + 1 : at]), label, is_output=is_output
            )
            at, label = at + 1, ""
        elif match := _LABEL.match(row):
            label = match["label"]
            if match["text"] and parse_fence(match["text"]):
                at, rows[start] = start, match["text"]
            elif match["text"] and label in _PRINTED:
                block.printed = "\n".join([match["text"], *rows[at:]]).strip()
                block.is_ok = False if label == "Error" else block.is_ok
                break
        elif match := _ITEM.match(row):
            while not row.endswith("`") and at < len(rows) and not _ITEM.match(rows[at]):
                row, at = f"{row}\n{rows[at].rstrip()}", at + 1
            block.arguments[match["name"]] = row[match.start("value") :].removesuffix("`")
        elif match := _STATUS.match(row):
            block.is_ok = _OUTCOMES.get(match["status"], block.is_ok)
        else:
            _add_line(block, row.strip())
    return block


def _find_closing(rows: list[str], start: int, opening: Fence, *, is_last: bool) -> int:
    """Return the index of the line that ends code: the first one that may, or the last."""
    places = (at for at in range(start + 1, len(rows)) if _closes(rows[at], opening))
    if is_last:
        places = (at for at in range(len(rows) - 1, start, -1) if _closes(rows[at], opening))
    return next(places, len(rows))


def _closes(row: str, opening: Fence) -> bool:
    fence = parse_fence(row)
    return fence is not None and fence.closes(opening)


def _add_code(block: Block, info: str, text: str, label: str, *, is_output: bool) -> None:
    parsed = parse_json_row(text) if info == _JSON and not is_output else None
    if parsed is not None:
        block.arguments |= parsed
    elif is_output:
        block.printed = text if block.printed is None else f"{block.printed}\n{text}"
        block.is_ok = False if label == "Error" else block.is_ok
    elif label:
        block.arguments.setdefault("description", text)
    else:
        block.code.append((info, text))


def _add_line(block: Block, row: str) -> None:
    if match := _PATH.match(row):
        block.paths.append(match["value"])
    elif named := _NAMED.findall(row):
        block.arguments |= dict(named)
    elif len(row) > 2 and row[0] == row[-1] == "`":
        block.quoted.append(row[1:-1])
    elif row and not block.code:
        block.arguments.setdefault("description", row)


def _find_arguments(
    kind: str, title: str, block: Block, printed: str, change: str
) -> dict[str, Any]:
    """Return the arguments of a call under the names that hosts use, as far as a block has them."""
    match = _TITLE.match(title)
    value = match["value"].strip() if match else title.strip("`• ")
    scripts = [text for info, text in block.code if info == _SHELL]
    if kind in _SHELL_TYPES:
        command = next(iter([*scripts, *block.quoted, *filter(None, [value])]), "")
        return {"command": command, **block.arguments} if command else block.arguments
    paths = [*block.paths, *([value] if match and match["edit"] else [])]
    if not paths and kind == "read" and not title.startswith("•"):
        paths = [*block.quoted, *filter(None, [value])][:1]
    if not paths and kind == "write":
        paths = [next(filter(None, match.groups())) for match in _CHANGED.finditer(printed)][:1]
    if change and paths:
        heads = "\n".join(f"{PATCH_HEADS[1]}{path}" for path in dict.fromkeys(paths))
        return {"patch": f"*** Begin Patch\n{heads}\n{change}\n*** End Patch"}
    if paths:
        return {"file_path": paths[0], **block.arguments}
    return block.arguments or (
        {"description": value or block.quoted[0]} if value or block.quoted else {}
    )
