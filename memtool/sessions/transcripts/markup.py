"""What the lines of any transcript have in common: calls of tools, texts, times and markup.

Blocks that memtool wrote are cut out of everything: what was injected must never come back as
evidence for itself. Blocks that a host writes between tags are cut out of what people typed.
"""

from __future__ import annotations

import json
import posixpath
import re

from memtool.agents import PATCH_HEADS
from memtool.inject.block import FORMATS
from memtool.memory import timestamps
from memtool.sessions.model import Message, dict_of, list_of
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from memtool.inject.block import BlockFormat

MOST_CALLS = 200
"""Calls that wait for their answer; what is older has none."""
_PATHS = ("file_path", "filePath", "notebook_path", "absolute_path", "path", "filename", "file")
_COMMANDS = ("command", "cmd")
_LINES = (*_COMMANDS, *_PATHS, "pattern", "query", "url", "prompt", "description")
"""Arguments that describe a call; the first that is there counts."""
_EPOCH_MS = 100_000_000_000
"""Numbers from here on are milliseconds, those before are seconds."""
_LAST_MS = 253_402_300_799_000
"""The end of the year 9999."""


class ToolCall(Value):
    """A call of a tool that was read, for the answer to it."""

    tool: str
    call: str
    files: tuple[str, ...]


class TranscriptContext:
    """What was read so far of one transcript, and the messages that its next lines make.

    `tops` are the worktrees that paths may lie in. `agent` and `moment` are those of the line
    that is being read.
    """

    def __init__(self, tops: Iterable[str], known: Mapping[str, Any] | None = None) -> None:
        self.tops = tuple(top for top in tops if top)
        known = known or {}
        self.session = _text(known.get("session"))
        self.cwd = _text(known.get("cwd"))
        self.line = known["line"] if type(known.get("line")) is int else 0
        self.agent = ""
        self.moment = 0
        self.is_mirrored = known.get("is_mirrored") is True
        """Whether typed text is in events of its own (Codex)."""
        self.typed_item = _text(known.get("typed_item"))
        """The hash of the last prompt that was an item, before there was any event."""
        self.is_itemised = False
        """Whether those are events about items, which may be repeated in the old way as well."""
        self.is_asked = known.get("is_asked") is True
        """Whether the last prompt was memtool's own."""
        self.calls: dict[str, ToolCall] = {}
        for id_, row in dict_of(known.get("calls")).items():
            if isinstance(row, list) and len(row) == 3 and isinstance(row[2], list):
                self.calls[id_] = ToolCall(_text(row[0]), _text(row[1]), tuple(map(_text, row[2])))

    def kept(self) -> dict[str, Any]:
        """Return what another capture needs to go on from here."""
        return {
            "session": self.session,
            "cwd": self.cwd,
            "line": self.line,
            "is_mirrored": self.is_mirrored,
            "is_asked": self.is_asked,
            "typed_item": self.typed_item,
            "calls": {
                id_: [one.tool, one.call, list(one.files)]
                for id_, one in list(self.calls.items())[-MOST_CALLS:]
            },
        }

    def enter(self, agent: str, time: Any, session: Any = None, cwd: Any = None) -> None:
        """Begin a line: who works, when, and the session and directory where it names them."""
        self.agent = agent
        self.moment = moment_of(time)
        self.session = self.session or _text(session)
        if isinstance(cwd, str):
            self.cwd = cwd

    def typed(self, text: str, origin: str) -> Iterator[Message]:
        """Yield what a person typed, if that is something."""
        if text.strip():
            yield Message(0, "user", text, moment=self.moment, origin=origin)

    def spoken(self, text: Any, origin: str) -> Iterator[Message]:
        """Yield what the assistant wrote, if that is something."""
        if isinstance(text, str) and text.strip():
            yield Message(0, "assistant", text, moment=self.moment, agent=self.agent, origin=origin)

    def called(self, id: str, tool: str, arguments: Any, origin: str) -> Message:
        """Return the message of a call, and remember it for its answer."""
        files = self.files_of(arguments)
        patched = ", ".join(files) if _patch(arguments) else ""
        if patched and _shell_patch(arguments):
            patched = f"{PATCHER} {patched}"  # else the shell would seem to run the first of them
        one = ToolCall(tool, patched or call_line(arguments), files)
        if id:
            self.calls[id] = one
        return Message(
            0,
            "assistant",
            changed_by(arguments),
            moment=self.moment,
            agent=self.agent,
            tool=tool,
            call=one.call,
            files=files,
            origin=origin,
        )

    def answered(self, id: str, text: str, origin: str, *, is_ok: bool | None) -> Message:
        """Return the message of an answer, with what was called."""
        one = self.calls.pop(id, ToolCall("", "", ()))
        return Message(
            0,
            "tool",
            text,
            moment=self.moment,
            agent=self.agent,
            tool=one.tool,
            call=one.call,
            is_ok=is_ok,
            files=one.files,
            origin=origin,
        )

    def blocks(
        self, content: Any, origin: str, *, has_texts: bool = False, is_ok: bool | None = None
    ) -> Iterator[Message]:
        """Yield the blocks of a message in Anthropic's form: calls and answers of tools.

        Where it has texts, each is a message as well. `is_ok` is for answers that do not say.
        """
        for number, block in enumerate(map(dict_of, list_of(content))):
            kind, place = block.get("type"), f"{origin}:{number}"
            if kind == "text" and has_texts:
                yield from self.spoken(block.get("text"), place)
            elif kind == "tool_use":
                id_ = str(block.get("id") or "")
                yield self.called(id_, str(block.get("name")), block.get("input"), place)
            elif kind == "tool_result":
                failed, text = block.get("is_error"), text_of(block.get("content"))
                is_known = isinstance(failed, bool)
                yield self.answered(
                    str(block.get("tool_use_id")),
                    text,
                    place,
                    is_ok=not failed if is_known else is_ok,
                )

    def files_of(self, arguments: Any) -> tuple[str, ...]:
        """Return the paths that the arguments of a call name, those in a patch included."""
        found: list[str] = []
        if isinstance(arguments, dict):
            found += [arguments[name] for name in _PATHS if isinstance(arguments.get(name), str)]
        patch = _patch(arguments)
        for line in patch.split("\n") if patch else ():
            found += [line[len(mark) :].strip() for mark in PATCH_HEADS if line.startswith(mark)]
        return tuple(dict.fromkeys(self.place(path) for path in found if path))

    def place(self, path: str) -> str:
        """Return a path from the top of its worktree, as it is where it lies in none."""
        full = posixpath.normpath(posixpath.join(self.cwd, path) if self.cwd else path)
        for top in self.tops:
            if full.startswith(f"{top}/"):
                return full[len(top) + 1 :]
        return posixpath.normpath(path)


def call_line(arguments: Any) -> str:
    """Return in one line what a tool was called with; it is cut once it has no secrets."""
    if isinstance(arguments, dict):
        for name in _LINES:
            value = arguments.get(name)
            if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
                # `bash -lc SCRIPT` is the script.
                is_script = len(value) == 3 and value[1] in ("-lc", "-c")
                value = value[2] if is_script else " ".join(value)
            if isinstance(value, str) and value.strip():
                value = value.strip().replace("\n", "; ") if name in _COMMANDS else value
                return " ".join(value.split())
        arguments = json.dumps(arguments, ensure_ascii=False) if arguments else ""
    return " ".join(arguments.split()) if isinstance(arguments, str) else ""


def changed_by(arguments: Any) -> str:
    """Return what an edit takes out and puts in, as lines of a diff; empty for any other call."""
    if not isinstance(arguments, dict):
        return _patch(arguments)
    rows = []
    edits = arguments.get("edits")
    for edit in edits if isinstance(edits, list) else [arguments]:
        if not isinstance(edit, dict):
            continue
        for mark, names in (("-", ("old_string", "oldString")), ("+", ("new_string", "newString"))):
            text = next((edit[name] for name in names if isinstance(edit.get(name), str)), "")
            rows += [f"{mark}{line}" for line in text.split("\n")] if text else []
    return "\n".join(rows) or _patch(arguments)


PATCHER = "apply_patch"
"""The program to which a patch may be given by the shell."""
_PATCH_BLOCK = re.compile(
    r"\*\*\* Begin Patch\b.*?(?:^\*\*\* End Patch|\Z)", re.DOTALL | re.MULTILINE
)


def _shell_patch(arguments: Any) -> str:
    """Return the patch that a command line hands to `apply_patch`, empty where it hands none."""
    if not isinstance(arguments, dict):
        return ""
    for name in _COMMANDS:
        value = arguments.get(name)
        words = value if isinstance(value, list) else [value]
        line = "\n".join(word for word in words if isinstance(word, str))
        found = _PATCH_BLOCK.search(line) if PATCHER in line else None
        if found is not None:
            return found[0]
    return ""


def _patch(arguments: Any) -> str:
    if shell := _shell_patch(arguments):
        return shell
    if isinstance(arguments, dict):
        arguments = next(
            (
                arguments[name]
                for name in ("input", "patch", "patchText")
                if isinstance(arguments.get(name), str)
            ),
            "",
        )
    is_patch = isinstance(arguments, str) and arguments.lstrip().startswith("*** Begin Patch")
    return arguments if is_patch else ""


def text_of(content: Any) -> str:
    """Return the text of a message: a string, or the text blocks of a list, one a paragraph."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return ""
    texts = [
        block if isinstance(block, str) else block.get("text")
        for block in content
        if isinstance(block, str | dict)
    ]
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def moment_of(value: Any) -> int:
    """Return a time of a transcript in Unix seconds: RFC 3339 text or an epoch; 0 for neither."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return 0
    if isinstance(value, str):
        try:
            return max(0, timestamps.parse(value))
        except ValueError:
            return 0
    if not 0 <= value < _LAST_MS:
        return 0
    return int(value // 1000 if value >= _EPOCH_MS else value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


ASKED = "[memtool asks; nobody typed this]"
"""The first line of what is sent to a model: a host that goes on in a session of its own writes it
into the transcript, where neither it nor the answer is anybody's word."""


def is_asked(text: str) -> bool:
    """Tell whether a prompt is one of memtool's own."""
    return text.lstrip("\"' \n").startswith(ASKED)


OWN = "memtool"
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-9;:?<=>]{0,40}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)|[@-Z_=>78])"
)
"""Colours and moves of a terminal, titles and links, short commands."""
_BREAKS = re.compile(r"&&|\$\(|[;|()`&{}\n]")
"""What separates the commands of a line."""
_BEFORE = frozenset(("command", "env", "exec", "nohup", "run", "sudo", "time", "uv", "uvx"))
"""Words that may precede the name of a program."""


def _block_pattern(form: BlockFormat) -> re.Pattern[str]:
    """Return what matches a block that memtool wrote; one that was cut off ends the text."""
    before, _name, behind = form.opening.partition("{boundary}")
    behind = behind.partition("{preamble}")[0].strip("\n")
    closing = "(?P=name)".join(map(re.escape, form.closing.strip("\n").split("{boundary}")))
    return re.compile(
        rf"{re.escape(before)}(?P<name>[0-9a-f]{{1,64}}){re.escape(behind)}(?:.*?{closing}\n*|.*)",
        re.DOTALL,
    )


_OWN_BLOCKS = tuple(map(_block_pattern, FORMATS))


def without_own(text: str) -> str:
    """Return a text without the blocks that memtool wrote; one that was cut off ends the text."""
    for pattern in _OWN_BLOCKS:
        text = pattern.sub("", text)
    return text


def without_colours(text: str) -> str:
    """Return a text without the sequences by which a terminal is coloured, titled and moved in."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def is_own_call(message: Message) -> bool:
    """Tell whether a tool was memtool itself: by its name, or by a command of its line."""
    if OWN in message.tool.lower():
        return True
    if OWN not in message.call:
        return False
    return any(_is_own(command.split()) for command in _BREAKS.split(message.call))


def _is_own(words: list[str]) -> bool:
    while words and (words[0] in _BEFORE or "=" in words[0]):
        words = words[1:]
    program = words[0].strip("\"'").rpartition("/")[2] if words else ""
    is_module = program.startswith("python") and words[1:3] == ["-m", OWN]
    return program == OWN or is_module


def without_tags(text: str, tags: Iterable[str]) -> str:
    """Return a text without the blocks between tags; one that is not closed ends the text."""
    if "<" not in text:
        return text
    names = "|".join(map(re.escape, tags))
    return re.sub(rf"<({names})(?=[> \n]|\Z)(?:.*?</\1>|.*)", "", text, flags=re.DOTALL).strip()


def inside(text: str, tag: str) -> str:
    """Return what is between a tag and its end, or the whole text where it has none."""
    start = text.find(f"<{tag}>")
    if start < 0:
        return text
    return text[start + len(tag) + 2 :].partition(f"</{tag}>")[0].strip("\n")
