"""What the lines of any transcript have in common: calls of tools, texts, times and markup.

Blocks that memtool wrote are cut out of everything: what was injected must never come back as
evidence for itself. Blocks that a host writes between tags are cut out of what people typed.
"""

from __future__ import annotations

from memtool.inject.block import FORMATS
from memtool.memory import timestamps
from memtool.sessions.model import Message
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

MOST_CALLS = 200
"""Calls that wait for their answer; what is older has none."""
_PATHS = ("file_path", "filePath", "notebook_path", "absolute_path", "path", "filename", "file")
_COMMANDS = ("command", "cmd")
_SAYING = (*_COMMANDS, *_PATHS, "pattern", "query", "url", "prompt", "description")
"""Arguments that say what a call was, the first that is there."""
_PATCHED = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")
_EPOCH_MS = 100_000_000_000
"""Numbers from here on are milliseconds, those before are seconds."""
_LAST_MS = 253_402_300_799_000
"""The end of the year 9999."""


class ToolCall(Value):
    """A call of a tool that has been seen, for the answer to it."""

    tool: str
    call: str
    files: tuple[str, ...]


class TranscriptContext:
    """What was read so far of one transcript. `tops` are the worktrees that paths may lie in."""

    def __init__(self, tops: Iterable[str], known: Mapping[str, Any] | None = None) -> None:
        self.tops = tuple(top for top in tops if top)
        known = known or {}
        self.session = _text(known.get("session"))
        self.cwd = _text(known.get("cwd"))
        self.line = known["line"] if type(known.get("line")) is int else 0
        self.is_mirrored = known.get("is_mirrored") is True
        """Whether typed text stands in events of its own (Codex)."""
        self.is_itemised = False
        """Whether those are events about items, which may be told of in the old way as well."""
        self.calls: dict[str, ToolCall] = {}
        for id_, row in _pairs(known.get("calls")):
            if isinstance(row, list) and len(row) == 3 and isinstance(row[2], list):
                self.calls[id_] = ToolCall(_text(row[0]), _text(row[1]), tuple(map(_text, row[2])))

    def kept(self) -> dict[str, Any]:
        """Return what another capture needs to go on from here."""
        return {
            "session": self.session,
            "cwd": self.cwd,
            "line": self.line,
            "is_mirrored": self.is_mirrored,
            "calls": {id_: [one.tool, one.call, list(one.files)]
                      for id_, one in list(self.calls.items())[-MOST_CALLS:]},
        }  # fmt: skip

    def called(self, id: str, tool: str, arguments: Any, **fields: Any) -> Message:
        """Return the message of a call, and remember it for its answer."""
        files = self.files_of(arguments)
        patched = ", ".join(files) if _patch(arguments) else ""
        one = ToolCall(tool, patched or said_by(arguments), files)
        if id:
            self.calls[id] = one
        return Message(0, "assistant", changed_by(arguments), tool=tool, call=one.call,
                       files=one.files, **fields)  # fmt: skip

    def answered(self, id: str, text: str, *, is_ok: bool | None, **fields: Any) -> Message:
        """Return the message of an answer, with what was called."""
        one = self.calls.pop(id, ToolCall("", "", ()))
        return Message(0, "tool", text, tool=one.tool, call=one.call, is_ok=is_ok, files=one.files,
                       **fields)  # fmt: skip

    def files_of(self, arguments: Any) -> tuple[str, ...]:
        """Return the paths that the arguments of a call name, those in a patch included."""
        found: list[str] = []
        if isinstance(arguments, dict):
            found += [arguments[name] for name in _PATHS if isinstance(arguments.get(name), str)]
        patch = _patch(arguments)
        for line in patch.split("\n") if patch else ():
            found += [line[len(mark) :].strip() for mark in _PATCHED if line.startswith(mark)]
        return tuple(dict.fromkeys(self.place(path) for path in found if path))

    def place(self, path: str) -> str:
        """Return a path from the top of its worktree, as it is where it lies in none."""
        import posixpath

        full = posixpath.normpath(posixpath.join(self.cwd, path) if self.cwd else path)
        for top in self.tops:
            if full.startswith(f"{top}/"):
                return full[len(top) + 1 :]
        return posixpath.normpath(path)


def said_by(arguments: Any) -> str:
    """Return in one line what a tool was called with."""
    if isinstance(arguments, dict):
        for name in _SAYING:
            value = arguments.get(name)
            if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
                value = _command(value)
            if isinstance(value, str) and value.strip():
                return one_line(value.strip().replace("\n", "; ") if name in _COMMANDS else value)
        import json

        return one_line(json.dumps(arguments, ensure_ascii=False)) if arguments else ""
    return one_line(arguments) if isinstance(arguments, str) else ""


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


def _patch(arguments: Any) -> str:
    if isinstance(arguments, dict):
        arguments = next((arguments[name] for name in ("input", "patch", "patchText")
                          if isinstance(arguments.get(name), str)), "")  # fmt: skip
    is_patch = isinstance(arguments, str) and arguments.lstrip().startswith("*** Begin Patch")
    return arguments if is_patch else ""


def _command(words: list[str]) -> str:
    """Return a list of arguments as a line; `bash -lc SCRIPT` is the script."""
    if len(words) == 3 and words[1] in ("-lc", "-c"):
        return words[2]
    return " ".join(words)


def one_line(text: str) -> str:
    """Return a text in one line; it is cut when it has no secrets any more."""
    return " ".join(text.split())


def text_of(content: Any) -> str:
    """Return the text of a message: a string, or the text blocks of a list, one a paragraph."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return ""
    texts = [block if isinstance(block, str) else block.get("text") for block in content
             if isinstance(block, str | dict)]  # fmt: skip
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


def _pairs(value: Any) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, dict) else ()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


HEX = frozenset("0123456789abcdef")
MOST_NAME = 64
"""Characters of the name of a block."""
OWN = "memtool"
ESCAPES = (
    r"\[[0-9;:?<=>]{0,40}[ -/]{0,4}[@-~]",
    r"\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)",
    "[@-Z_=>78]",
)
"""What may follow an escape character: colours and moves, titles and links, short commands."""
BREAKS = ("&&", "||", "$(", ";", "|", "(", ")", "`", "&", "{", "}")
"""What stands between the commands of a line."""
BEFORE = frozenset(("command", "env", "exec", "nohup", "run", "sudo", "time", "uv", "uvx"))
"""Words that may stand before the name of a program."""


def _frames() -> Iterator[tuple[str, str, str]]:
    """Yield what stands before the name of a block, right behind it, and at the end of it."""
    for form in FORMATS:
        before, _name, behind = form.opening.partition("{boundary}")
        yield before, behind.partition("{preamble}")[0].strip("\n"), form.closing.strip("\n")


FRAMES = tuple(_frames())


def without_own(text: str) -> str:
    """Return a text without the blocks that memtool wrote; one that was cut off ends the text."""
    for before, behind, closing in FRAMES:
        pieces = []
        at = done = 0
        while (start := text.find(before, at)) >= 0:
            at = start + len(before)
            name = text[at : max(at, text.find(behind, at, at + MOST_NAME))]
            if not name or not HEX.issuperset(name):
                continue
            pieces.append(text[done:start])
            at = done = _behind(text, closing.replace("{boundary}", name), at)
            while text.startswith("\n", done):
                done += 1
        text = "".join((*pieces, text[done:]))
    return text


def _behind(text: str, mark: str, at: int) -> int:
    """Return the place behind a mark, the end of the text where there is none."""
    found = text.find(mark, at)
    return len(text) if found < 0 else found + len(mark)


def without_colours(text: str) -> str:
    """Return a text without the sequences by which a terminal is coloured, titled and moved in."""
    if "\x1b" not in text:
        return text
    import re

    return re.sub("\x1b(?:" + "|".join(ESCAPES) + ")", "", text)


def is_own_call(message: Message) -> bool:
    """Tell whether a tool was memtool itself: by its name, or by a command of its line."""
    if OWN in message.tool.lower():
        return True
    if OWN not in message.call:
        return False
    line = message.call
    for mark in BREAKS:
        line = line.replace(mark, "\n")
    return any(_is_own(command.split()) for command in line.split("\n"))


def _is_own(words: list[str]) -> bool:
    while words and (words[0] in BEFORE or "=" in words[0]):
        words = words[1:]
    program = words[0].strip("\"'").rpartition("/")[2] if words else ""
    is_module = program.startswith("python") and words[1:3] == ["-m", OWN]
    return program == OWN or is_module


def without_tags(text: str, tags: Iterable[str]) -> str:
    """Return a text without the blocks between tags; one that is not closed ends the text."""
    if "<" not in text:
        return text
    for tag in tags:
        pieces = []
        at = done = 0
        while (start := text.find(f"<{tag}", at)) >= 0:
            at = start + len(tag) + 1
            if text[at : at + 1] not in (">", " ", "\n", ""):
                continue
            pieces.append(text[done:start])
            at = done = _behind(text, f"</{tag}>", at)
        text = "".join((*pieces, text[done:]))
    return text.strip()


def inside(text: str, tag: str) -> str:
    """Return what stands between a tag, or the whole text where it has none."""
    start = text.find(f"<{tag}>")
    if start < 0:
        return text
    return text[start + len(tag) + 2 :].partition(f"</{tag}>")[0].strip("\n")
