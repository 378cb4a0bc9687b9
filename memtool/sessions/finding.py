"""A finding: one statement that a session gave reason to keep, with the messages that back it.

It owns what a finding is and how it is written as a row. It is private to the clone: only
promotion makes a memory of it.
"""

from __future__ import annotations

from memtool.memory.fields import CONFIDENCES
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MOST_CONTENT = 600
"""Characters of a statement; what is longer is no single statement."""
ID_DIGITS = 12
_TEXTS = ("id", "session", "content", "title", "category", "confidence")
_LISTS = ("files", "tags", "signals")


class Finding(Value):
    """One statement about a project, redacted, with its evidence.

    `messages` are the numbers of the messages of the session that back it, in order; `importance`
    is 0 to 1; `signals` are names of `points.SIGNALS`. `fields` are pairs of a name and a text:
    `agent` (who worked), `said` (the moment of the last message), and for an error `command`,
    `failure`, `changes`, `fix` and `error_signature`.
    """

    id: str
    session: str
    content: str
    title: str
    category: str
    confidence: str
    importance: float
    messages: tuple[int, ...]
    files: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()

    def field(self, name: str) -> str:
        """Return one of `fields`, empty where it is absent."""
        return dict(self.fields).get(name, "")

    def plain(self) -> dict[str, Any]:
        """Return the row of a finding, as JSON has it."""
        return super().plain() | {"fields": dict(self.fields)}


def make_id(session: str, content: str) -> str:
    """Return `f-` and 12 hexadecimal digits: the same statement of a session is one finding."""
    from _blake2 import blake2b  # hashlib would import OpenSSL

    said = f"{session}\n{normal(content)}"
    return "f-" + blake2b(said.encode(errors="replace"), digest_size=ID_DIGITS // 2).hexdigest()


def fingerprint(content: str) -> str:
    """Return 16 hexadecimal digits of what is said, whichever session says it."""
    from _blake2 import blake2b

    return blake2b(normal(content).encode(errors="replace"), digest_size=8).hexdigest()


def normal(content: str) -> str:
    """Return a statement without what does not change it: case, white space, its last mark."""
    return " ".join(content.lower().split()).rstrip(".!")


def read(row: Mapping[str, Any]) -> Finding | None:
    """Read a row, None where it is not one of a finding: another version or a hand wrote it."""
    numbers, fields = row.get("messages"), row.get("fields", {})
    importance: Any = row.get("importance")
    if (
        not all(isinstance(row.get(name), str) and row[name] for name in _TEXTS)
        or row["confidence"] not in CONFIDENCES
        or type(importance) not in (int, float)
        or not 0 <= importance <= 1
        or not isinstance(numbers, list)
        or not all(type(number) is int for number in numbers)
        or not isinstance(fields, dict)
        or not all(_is_texts(row.get(name, [])) for name in _LISTS)
    ):
        return None
    made: dict[str, Any] = {name: row[name] for name in _TEXTS}
    made |= {name: tuple(row.get(name, ())) for name in _LISTS}
    kept = tuple((name, text) for name, text in fields.items() if isinstance(text, str))
    return Finding(**made, importance=float(importance), messages=tuple(numbers), fields=kept)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
