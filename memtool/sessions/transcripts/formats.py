"""The formats of transcripts, one row each, and which of them a file has: its content decides."""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.sessions.transcripts import chat, claude, codex, gemini, opencode
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from memtool.sessions.message import Message
    from memtool.sessions.transcripts.context import Context

PLAIN = "plain"
DOCUMENT = "document"
"""JSON that its first line does not hold whole."""


class Format(Value):
    """A format of JSON: `knows` tells its lines or documents, `read` yields their messages."""

    host: str
    knows: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Mapping[str, Any], Context], Iterator[Message]]


FORMATS: tuple[Format, ...] = (
    Format("claude", claude.knows, claude.read),
    Format("codex", codex.knows, codex.read),
    Format("gemini", gemini.knows, gemini.read),
    Format("opencode", opencode.knows, opencode.read),
    Format("cursor", chat.knows_cursor, chat.read),
    Format("chat", chat.knows, chat.read),
)
BY_HOST: dict[str, Format] = {row.host: row for row in FORMATS}
HOSTS = (*BY_HOST, PLAIN)


def detected(start: bytes, path: str) -> str:
    """Return the host that a transcript is from, by its first lines; `plain` for a text.

    A document that its first line does not hold whole is `document`, and told by its keys.

    Raises:
        MemtoolError: it is empty, binary, or JSON that no host writes.
    """
    if not start.strip():
        raise foreign(path, "is empty")
    if b"\0" in start:
        raise foreign(path, "is no text")
    if is_document(start):
        return DOCUMENT
    rows, are_most = _rows_of(start)
    return told_by(rows, path) if are_most else PLAIN


def is_document(start: bytes) -> bool:
    """Tell whether a file is one of JSON that its first line does not hold whole."""
    first = start.lstrip().partition(b"\n")[0].rstrip()
    return first[:1] in (b"{", b"[") and row_of(first) is None and not _rows_of(start)[1]


def _rows_of(start: bytes) -> tuple[list[dict[str, Any]], bool]:
    """Return the JSON objects among some lines, and whether most lines are some."""
    lines = [line for line in start.split(b"\n") if line.strip()]
    rows = [row for row in map(row_of, lines) if row is not None]
    return rows, bool(rows) and len(rows) * 2 >= len(lines)


def told_by(rows: Sequence[Mapping[str, Any]], path: str) -> str:
    """Return the host whose format most rows have. Raises MemtoolError where it is nobody's."""
    known = {form.host: sum(map(form.knows, rows)) for form in FORMATS}
    host = max(known, key=lambda name: known[name])
    if not known[host]:
        raise foreign(path, "is JSON, but no transcript that is known")
    return host


def row_of(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a line, None where it holds none."""
    import json

    try:
        row = json.loads(line)
    except UnicodeDecodeError:  # a byte that a tool printed: the rest of the line counts
        return row_of(line.decode(errors="replace").encode())
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def document(data: bytes, path: str) -> list[dict[str, Any]]:
    """Return the rows of a document: itself, or the objects of a list.

    Raises:
        MemtoolError: it is broken, or holds none.
    """
    import json

    try:
        held = json.loads(data)
    except (ValueError, RecursionError):
        raise foreign(path, "is cut off or broken: it begins as JSON, and is none") from None
    rows = [row for row in held if isinstance(row, dict)] if isinstance(held, list) else [held]
    if not rows:
        raise foreign(path, "is JSON, but no transcript that is known")
    return rows


def foreign(path: str, what: str) -> MemtoolError:
    """Return the refusal of a file that is no transcript."""
    return MemtoolError(
        f"{path} {what}",
        hint=f"known are transcripts of {', '.join(BY_HOST)}, markdown and plain text",
        code="foreign-transcript",
    )
