"""Redaction of sessions: secrets and personal data go out before a byte reaches the disk.

It owns how many texts are searched at once, and where a text that is too long is cut: always after
its secrets are out, since half a secret may not look like one.
"""

from __future__ import annotations

from memtool.redaction.find import NOTHING, find, marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from memtool.redaction.find import Allowlist
    from memtool.sessions.model import Message

FIELDS = ("text", "call", "tool", "agent", "origin")
MOST_CALL = 2_000
"""Characters of the line that says what a tool was called with, where messages are cut at all."""
_BETWEEN = "\n\0\n"
"""Separates the texts of one search: no detector's pattern reaches across it."""
_MOST_AT_ONCE = 1_000_000
"""Characters of one search; one search of many texts takes less than many searches."""


def cleaned(
    messages: Sequence[Message], allowed: Allowlist = NOTHING, most: int = 0
) -> list[Message]:
    """Return the messages without secrets; of a text longer than `most` both ends, if that is set.

    Calls are cut only then as well.

    Raises:
        MemtoolError: a text is longer than can be looked through.
    """
    texts = {getattr(message, name) for message in messages for name in FIELDS}
    texts.update(path for message in messages for path in message.files)
    clean = clean_texts(texts, allowed)
    return [_cleaned(message, clean, most) for message in messages]


def _cleaned(message: Message, clean: dict[str, str], most: int) -> Message:
    fields = {name: clean[getattr(message, name)] for name in FIELDS}
    if most:
        fields |= {name: _ends(fields[name], most) for name in FIELDS if name != "call"}
        fields["call"] = cut(fields["call"])
    made = message.replace(files=tuple(clean[path] for path in message.files), **fields)
    return message if made == message else made


def cut(line: str) -> str:
    """Return a line that is not too long to say what a tool was called with."""
    return line if len(line) <= MOST_CALL else f"{line[:MOST_CALL]} …"


def clean_texts(texts: set[str], allowed: Allowlist = NOTHING) -> dict[str, str]:
    """Return each text with what it is without secrets.

    Raises:
        MemtoolError: one is longer than can be looked through.
    """
    found = {}
    for together in _batches(sorted(texts)):
        joined = _BETWEEN.join(together)
        replaced = marks(joined, find(joined, allowed))
        at = number = 0
        for text in together:
            end = at + len(text)
            pieces: list[str] = []
            done = at
            while number < len(replaced) and replaced[number][0].start < end:
                secret, mark = replaced[number]
                if secret.end > at:
                    pieces += (joined[done : secret.start], mark)
                    done = min(secret.end, end)
                if secret.end > end:
                    break  # it reaches into the next text
                number += 1
            found[text] = "".join((*pieces, joined[done:end]))
            at = end + len(_BETWEEN)
    return found


def clean_row(row: dict[str, Any], allowed: Allowlist = NOTHING) -> dict[str, Any]:
    """Return a row of a journal without secrets, its long lines cut: keys as well as values.

    Raises:
        MemtoolError: a text is longer than can be looked through.
    """
    clean = clean_texts(set(_texts(row)), allowed)
    cleaned: dict[str, Any] = _mapped(row, clean)
    return cleaned


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _mapped(value: Any, clean: dict[str, str]) -> Any:
    if isinstance(value, str):
        return cut(clean[value])
    if isinstance(value, dict):
        return {clean[name]: _mapped(inner, clean) for name, inner in value.items()}
    return [_mapped(inner, clean) for inner in value] if isinstance(value, list) else value


def _ends(text: str, most: int) -> str:
    """Return a text, of a longer one both ends; tools say at the end what went wrong."""
    if len(text) <= most:
        return text
    head = most // 3
    tail = most - head
    return f"{text[:head]}\n[… {len(text) - most:,} characters left out …]\n{text[-tail:]}"


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts in runs that are looked through at once."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and size + len(text) > _MOST_AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text) + len(_BETWEEN)
    if batch:
        yield batch
