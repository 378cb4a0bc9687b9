"""The head of a session: what it is, where it was worked, and whether it has ended."""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.sessions import private
from memtool.store.files import read_regular
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "head.json"
STATUSES = ("open", "ended", "pruned")
_MOST_BYTES = 1 << 20


class Head(Value):
    """A session. Moments are Unix seconds, 0 for none; texts are redacted, empty for none."""

    id: str
    started: int
    host: str = ""
    """The agent host that it was captured from, such as `claude`."""
    agent: str = ""
    """Who works, unless a message says another."""
    title: str = ""
    parent: str = ""
    """The session that it was forked from."""
    parent_messages: int = 0
    """How many messages the parent had by then."""
    worktree: str = ""
    """The top of the worktree in which it began."""
    branch: str = ""
    status: str = "open"
    """`open`, `ended`, or `pruned`: ended, and its messages were removed."""
    ended: int = 0
    summary: str = ""


def read(folder: str) -> Head:
    """Read the head of the session in a directory.

    Raises:
        FileNotFoundError: there is none.
        MemtoolError: it cannot be read, or another hand wrote it.
    """
    import json

    path = os.path.join(folder, NAME)
    try:
        row = json.loads(read_regular(path, _MOST_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path) from None
    except OSError as error:
        raise private.refusal(path, "read", error) from None
    except (ValueError, RecursionError):
        row = None
    found = _head(row) if isinstance(row, dict) else None
    if found is None:
        raise MemtoolError(
            f"{path} is damaged",
            hint="restore the file, or remove the directory that it is in",
            code="session-damaged",
        )
    return found


def write(folder: str, head: Head) -> None:
    """Write the head of a session. Raises MemtoolError where the disk refuses."""
    import json

    row = {name: value for name, value in head.plain().items() if value not in ("", 0)}
    text = json.dumps(row, indent=1, ensure_ascii=False) + "\n"
    private.put(os.path.join(folder, NAME), text.encode(errors="backslashreplace"))


def _head(row: dict[str, Any]) -> Head | None:
    """Return the head that a row holds, None where it holds none; unknown keys are passed over."""
    defaults = Head("", 0).plain()
    fields: dict[str, Any] = {name: row.get(name, default) for name, default in defaults.items()}
    if any(type(value) is not type(defaults[name]) for name, value in fields.items()):
        return None
    found = Head(**fields)
    return found if found.id and found.status in STATUSES else None
