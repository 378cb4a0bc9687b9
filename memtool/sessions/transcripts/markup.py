"""Parts that all transcripts share: tool calls, texts, times and markup.

Blocks that memtool wrote are removed everywhere: injected text must never become evidence for
itself. Blocks that a host writes between tags are removed from text that people typed.
"""

from __future__ import annotations

import json
import posixpath
import re

from memtool.agents import PATCH_HEADS
from memtool.inject.block import FORMATS
from memtool.memory import timestamps
from memtool.sessions.model import Message, as_dict, as_list
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from memtool.inject.block import BlockFormat

MAX_CALLS = 200
"""Maximum calls without an answer; older ones are dropped."""
_PATHS = ("file_path", "filePath", "notebook_path", "absolute_path", "path", "filename", "file")
_COMMANDS = ("command", "cmd")
_LINES = (*_COMMANDS, *_PATHS, "pattern", "query", "url", "prompt", "description")
"""Arguments that describe a call; the first one present counts."""
_EPOCH_MS = 100_000_000_000
"""Larger numbers are milliseconds, smaller ones seconds."""
_LAST_MS = 253_402_300_799_000
"""The end of the year 9999."""


class ToolCall(Value):
    """A tool call that waits for its answer."""

    tool: str
    call: str
    files: tuple[str, ...]


class TranscriptContext:
    """The state of reading one transcript; it also builds the messages of the next lines.

    `tops` are the worktrees that paths may be in. `agent` and `moment` belong to the current line.
    """

    def __init__(self, tops: Iterable[str], state: Mapping[str, Any] | None = None) -> None:
        self.tops = tuple(top for top in tops if top)
        state = state or {}
        self.session = _get_text(state.get("session"))
        self.cwd = _get_text(state.get("cwd"))
        self.line = state["line"] if type(state.get("line")) is int else 0
        self.agent = ""
        self.moment = 0
        self.is_mirrored = state.get("is_mirrored") is True
        """Whether typed text comes in separate events (Codex)."""
        self.typed_item = _get_text(state.get("typed_item"))
        """Hash of the last prompt that came as an item, before the first event."""
        self.is_itemised = False
        """Whether the events contain items; the same text may then come in the old form as well."""
        self.is_asked = state.get("is_asked") is True
        """Whether the last prompt was memtool's own."""
        self.calls: dict[str, ToolCall] = {}
        for id_, row in as_dict(state.get("calls")).items():
            if isinstance(row, list) and len(row) == 3 and isinstance(row[2], list):
                self.calls[id_] = ToolCall(
                    _get_text(row[0]), _get_text(row[1]), tuple(map(_get_text, row[2]))
                )

    def state(self) -> dict[str, Any]:
        """Return the state that another capture needs to go on from here."""
        return {
            "session": self.session,
            "cwd": self.cwd,
            "line": self.line,
            "is_mirrored": self.is_mirrored,
            "is_asked": self.is_asked,
            "typed_item": self.typed_item,
            "calls": {
                id_: [call.tool, call.call, list(call.files)]
                for id_, call in list(self.calls.items())[-MAX_CALLS:]
            },
        }

    def enter(self, agent: str, time: Any, session: Any = None, cwd: Any = None) -> None:
        """Start a line: agent, time, and the session and directory if the line has them."""
        self.agent = agent
        self.moment = parse_moment(time)
        self.session = self.session or _get_text(session)
        if isinstance(cwd, str):
            self.cwd = cwd

    def add_typed(self, text: str, origin: str) -> Iterator[Message]:
        """Yield the message of typed text, unless it is empty."""
        if text.strip():
            yield Message(0, "user", text, moment=self.moment, origin=origin)

    def spoken(self, text: Any, origin: str) -> Iterator[Message]:
        """Yield the message of an assistant's text, unless it is empty."""
        if isinstance(text, str) and text.strip():
            yield Message(0, "assistant", text, moment=self.moment, agent=self.agent, origin=origin)

    def add_call(self, id: str, tool: str, arguments: Any, origin: str) -> Message:
        """Return the message of a call, and remember the call for its answer."""
        files = self.find_files(arguments)
        patched = ", ".join(files) if _patch(arguments) else ""
        if patched and _find_shell_patch(arguments):
            patched = f"{PATCHER} {patched}"  # otherwise the shell would seem to run the first path
        call = ToolCall(tool, patched or call_line(arguments), files)
        if id:
            self.calls[id] = call
        return Message(
            0,
            "assistant",
            format_change(arguments),
            moment=self.moment,
            agent=self.agent,
            tool=tool,
            call=call.call,
            files=files,
            origin=origin,
        )

    def add_answer(self, id: str, text: str, origin: str, *, is_ok: bool | None) -> Message:
        """Return the message of an answer, with the call it belongs to."""
        call = self.calls.pop(id, ToolCall("", "", ()))
        return Message(
            0,
            "tool",
            text,
            moment=self.moment,
            agent=self.agent,
            tool=call.tool,
            call=call.call,
            is_ok=is_ok,
            files=call.files,
            origin=origin,
        )

    def blocks(
        self, content: Any, origin: str, *, has_texts: bool = False, is_ok: bool | None = None
    ) -> Iterator[Message]:
        """Yield the messages of content blocks in Anthropic's format: tool calls and answers.

        With `has_texts`, text blocks become messages as well. `is_ok` applies to answers that do
        not report it.
        """
        for number, block in enumerate(map(as_dict, as_list(content))):
            kind, place = block.get("type"), f"{origin}:{number}"
            if kind == "text" and has_texts:
                yield from self.spoken(block.get("text"), place)
            elif kind == "tool_use":
                id_ = str(block.get("id") or "")
                yield self.add_call(id_, str(block.get("name")), block.get("input"), place)
            elif kind == "tool_result":
                failed, text = block.get("is_error"), join_text(block.get("content"))
                is_known = isinstance(failed, bool)
                yield self.add_answer(
                    str(block.get("tool_use_id")),
                    text,
                    place,
                    is_ok=not failed if is_known else is_ok,
                )

    def find_files(self, arguments: Any) -> tuple[str, ...]:
        """Return the paths in a call's arguments, including those in a patch."""
        files: list[str] = []
        if isinstance(arguments, dict):
            files += [arguments[name] for name in _PATHS if isinstance(arguments.get(name), str)]
        patch = _patch(arguments)
        for line in patch.split("\n") if patch else ():
            files += [line[len(mark) :].strip() for mark in PATCH_HEADS if line.startswith(mark)]
        return tuple(dict.fromkeys(self.relative_path(path) for path in files if path))

    def relative_path(self, path: str) -> str:
        """Return a path relative to the top of its worktree, or unchanged if it is in none."""
        full = posixpath.normpath(posixpath.join(self.cwd, path) if self.cwd else path)
        for top in self.tops:
            if full.startswith(f"{top}/"):
                return full[len(top) + 1 :]
        return posixpath.normpath(path)

    def is_inside(self, path: str) -> bool:
        """Return whether an absolute path is in one of the worktrees, or is one."""
        return f"{posixpath.normpath(path)}/".startswith(tuple(f"{top}/" for top in self.tops))


def call_line(arguments: Any) -> str:
    """Return a call's arguments in one line; it is cut only after redaction."""
    if isinstance(arguments, dict):
        for name in _LINES:
            value = arguments.get(name)
            if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
                # For `bash -lc SCRIPT` show only the script.
                is_script = len(value) == 3 and value[1] in ("-lc", "-c")
                value = value[2] if is_script else " ".join(value)
            if isinstance(value, str) and value.strip():
                value = value.strip().replace("\n", "; ") if name in _COMMANDS else value
                return " ".join(value.split())
        arguments = json.dumps(arguments, ensure_ascii=False) if arguments else ""
    return " ".join(arguments.split()) if isinstance(arguments, str) else ""


def format_change(arguments: Any) -> str:
    """Return an edit's removed and added lines as a diff; empty for any other call."""
    if not isinstance(arguments, dict):
        return _patch(arguments)
    rows = []
    edits = arguments.get("edits")
    for edit in edits if isinstance(edits, list) else [arguments]:
        if not isinstance(edit, dict):
            continue
        for mark, names in _CHANGES:
            text = next((edit[name] for name in names if isinstance(edit.get(name), str)), "")
            rows += [f"{mark}{line}" for line in text.split("\n")] if text else []
    return "\n".join(rows) or _patch(arguments)


_CHANGES = (
    ("-", ("old_string", "oldString", "old_str")),
    ("+", ("new_string", "newString", "new_str")),
)
"""Arguments of an edit: what it removes, and what it adds."""
PATCHER = "apply_patch"
"""The program that takes a patch from the shell."""
_PATCH_BLOCK = re.compile(
    r"\*\*\* Begin Patch\b.*?(?:^\*\*\* End Patch|\Z)", re.DOTALL | re.MULTILINE
)


def _find_shell_patch(arguments: Any) -> str:
    """Return the patch that a command line passes to `apply_patch`, empty if none."""
    if not isinstance(arguments, dict):
        return ""
    for name in _COMMANDS:
        value = arguments.get(name)
        words = value if isinstance(value, list) else [value]
        line = "\n".join(word for word in words if isinstance(word, str))
        match = _PATCH_BLOCK.search(line) if PATCHER in line else None
        if match is not None:
            return match[0]
    return ""


def _patch(arguments: Any) -> str:
    if shell := _find_shell_patch(arguments):
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


def join_text(content: Any) -> str:
    """Return the text of a message: a string, or the joined text blocks of a list."""
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


def parse_moment(value: Any) -> int:
    """Parse a transcript's time to Unix seconds: RFC 3339 text or an epoch; 0 for anything else."""
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


def _get_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


ASKED = "[memtool asks; nobody typed this]"
"""The first line of memtool's own prompts. A host that resumes a session writes the prompt into the
transcript; neither it nor its answer counts as something that was said."""


def is_asked(text: str) -> bool:
    """Return whether a prompt is one of memtool's own."""
    return text.lstrip("\"' \n").startswith(ASKED)


OWN = "memtool"
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-9;:?<=>]{0,40}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)|[@-Z_=>78])"
)
"""Terminal sequences: colours, cursor moves, titles, links and short commands."""
_BREAKS = re.compile(r"&&|\$\(|[;|()`&{}\n]")
"""Separators between the commands of a line."""
_BEFORE = frozenset(("command", "env", "exec", "nohup", "run", "sudo", "time", "uv", "uvx"))
"""Words that may come before a program's name."""


def _compile_block_pattern(form: BlockFormat) -> re.Pattern[str]:
    """Compile the pattern of memtool's own block.

    A block that was cut off extends to the end of the text.
    """
    before, _name, behind = form.opening.partition("{boundary}")
    behind = behind.partition("{preamble}")[0].strip("\n")
    closing = "(?P=name)".join(map(re.escape, form.closing.strip("\n").split("{boundary}")))
    return re.compile(
        rf"{re.escape(before)}(?P<name>[0-9a-f]{{1,64}}){re.escape(behind)}(?:.*?{closing}\n*|.*)",
        re.DOTALL,
    )


_OWN_BLOCKS = tuple(map(_compile_block_pattern, FORMATS))


def without_own(text: str) -> str:
    """Remove memtool's own blocks; one that was cut off extends to the end."""
    for pattern in _OWN_BLOCKS:
        text = pattern.sub("", text)
    return text


def without_colours(text: str) -> str:
    """Remove terminal sequences from a text."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def is_own_call(message: Message) -> bool:
    """Return whether a call ran memtool: by the tool's name, or by a command in its line."""
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
    """Remove the blocks between tags; one that is not closed extends to the end."""
    if "<" not in text:
        return text
    names = "|".join(map(re.escape, tags))
    return re.sub(rf"<({names})(?=[> \n]|\Z)(?:.*?</\1>|.*)", "", text, flags=re.DOTALL).strip()


_COMMAND = re.compile(r"[/\\][\w:.-]+(?:\s+(?P<text>.*))?", re.DOTALL)
"""A slash command; a path has another slash."""


def without_command(text: str) -> str:
    """Return a prompt without the name of a slash command at its start."""
    command = _COMMAND.fullmatch(text.strip())
    return ((command["text"] or "") if command else text).strip()


def find_inside(text: str, tag: str) -> str:
    """Return the text between a tag and its end, or the whole text without the tag."""
    start = text.find(f"<{tag}>")
    if start < 0:
        return text
    return text[start + len(tag) + 2 :].partition(f"</{tag}>")[0].strip("\n")
