"""One message of a session: what somebody said, or what a tool was asked and answered."""

from __future__ import annotations

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ROLES = ("user", "assistant", "tool", "system")


class Message(Value):
    """One message. Everything in it is redacted before it is kept.

    Only what a person typed has the role `user`: what hosts put into a prompt, commands and
    summaries of theirs has not.
    """

    number: int
    """Its place in the session, from 1; 0 before it has one."""
    role: str
    """`user` a person, `assistant`, `tool` what a tool answered, or `system`."""
    text: str
    moment: int = 0
    """Unix seconds; 0 where nobody said when."""
    agent: str = ""
    """Who spoke or called: `claude`, `codex`, or a name."""
    tool: str = ""
    """The tool that was called, or that answered."""
    call: str = ""
    """What it was called with, in one line: a command line, or a path."""
    is_ok: bool | None = None
    """Whether a tool said that it worked; None for what is no result, or does not say."""
    files: tuple[str, ...] = ()
    """Paths that it touched, from the top of the repository where they lie below it."""
    origin: str = ""
    """Names the line of the transcript that it came from."""


_ALWAYS = ("number", "role", "text")
_TEXTS = ("role", "text", "agent", "tool", "call", "origin")
_EMPTY: tuple[object, ...] = (None, "", 0, [])
_DEFAULTS = {**dict.fromkeys(Message.field_names), **Message.field_defaults}


def row(message: Message) -> dict[str, Any]:
    """Return a message for the journal: `number` first, nothing that is empty."""
    fields = message.plain()
    return {
        name: value
        for name, value in fields.items()
        if name in _ALWAYS or value is False or value not in _EMPTY
    }


def read(row: Mapping[str, Any]) -> Message | None:
    """Return the message of a row, None where a field is missing or of the wrong kind."""
    fields = {name: row.get(name, default) for name, default in _DEFAULTS.items()}
    files = fields["files"]
    if (
        any(type(fields[name]) is not int for name in ("number", "moment"))
        or any(type(fields[name]) is not str for name in _TEXTS)
        or fields["role"] not in ROLES
        or fields["is_ok"] not in (None, True, False)
        or not isinstance(files, list | tuple)
        or any(type(path) is not str for path in files)
    ):
        return None
    return Message(**fields | {"files": tuple(files)})
