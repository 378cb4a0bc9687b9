"""Rewriting: the bytes of one file without what must not be kept, all others as they were.

A memory stays a memory: where a mark in the frontmatter would not read back as the same key, the
key is written anew, in quotes.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.gate import redaction
from memtool.gate.redaction import Allowed
from memtool.memory import document
from memtool.memory.changes import changed_keys, is_redacted
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Literal

    from memtool.memory.memory import FieldValue, Memory

    Strategy = Literal["redact", "hash", "token"]

MOST_BYTES = redaction.MOST_CHARACTERS


class Found(Value):
    """One finding as it may be shown: its kind, its line from 1, and the name to allow it by."""

    kind: str
    line: int
    fingerprint: str


class Rewriting(Value):
    """What was found in the bytes of a file, and the bytes without it."""

    found: tuple[Found, ...]
    data: bytes


class Rules(Value):
    """How files are rewritten: what is allowed, by which marks, and what a memory may be.

    `key` is for the strategy `hash` alone; `categories` are those that memories may name.
    """

    allowed: Allowed
    strategy: Strategy
    key: bytes
    categories: Collection[str]


def rewrite(data: bytes, path: str, rules: Rules) -> Rewriting:
    """Replace every finding in the bytes of a file. Bytes that are no UTF-8 keep their places.

    Raises:
        MemtoolError: it is no text, is too large, or what is to go holds a memory together.
    """
    if len(data) > MOST_BYTES:
        raise MemtoolError(
            f"{path} has {len(data):,} bytes, {MOST_BYTES:,} can be looked through",
            hint="name smaller files",
            code="too-large",
        )
    if b"\0" in data:
        raise MemtoolError(
            f"{path} is no text: it holds NUL bytes",
            hint="name text files; a secret in another file goes with git rm",
            code="binary",
        )
    text = data.decode(errors="surrogateescape")
    findings = redaction.find(text, rules.allowed)
    if not findings:
        return Rewriting((), data)
    found = tuple(
        Found(f.kind, f.line, redaction.fingerprint(text[f.start : f.end])) for f in findings
    )
    marks = redaction.marks(text, findings, rules.strategy, rules.key)
    after = redaction.marked(text, marks).encode(errors="surrogateescape")
    memory = _memory(data, path, rules)
    if memory is not None:
        header_end = len(text) - len(memory.body)
        in_body = redaction.marked(text, [(f, mark) for f, mark in marks if f.start >= header_end])
        wanted = memory.replace(body=in_body[header_end:])
        if not _is_same(wanted, after, path, rules):
            secrets = [(text[f.start : f.end], mark) for f, mark in marks if f.start < header_end]
            rewritten = _rewritten(in_body, wanted, path, secrets, rules)
            if rewritten is None:
                raise MemtoolError(
                    f"{path} would be no memory without the {found[0].kind} in line "
                    f"{found[0].line}",
                    hint="write the memory anew without it, and git rm this file",
                    code="redaction",
                )
            after = rewritten
    return Rewriting(found, after)


def _memory(data: bytes, path: str, rules: Rules) -> Memory | None:
    try:
        return document.read(data, path, rules.categories)
    except document.Unreadable:
        return None


def _is_same(wanted: Memory, data: bytes, path: str, rules: Rules) -> bool:
    """Tell whether bytes are the memory that is wanted, but for marks in its keys."""
    after = _memory(data, path, rules)
    return (
        after is not None
        and (after.id, after.body) == (wanted.id, wanted.body)
        and all(
            is_redacted(wanted.fields.get(key), after.fields.get(key))
            for key in changed_keys(wanted, after)
        )
    )


def _rewritten(
    text: str, wanted: Memory, path: str, secrets: Sequence[tuple[str, str]], rules: Rules
) -> bytes | None:
    """Return a text with the keys that hold secrets written anew, None where that is no memory."""
    changes = {
        key: new for key, old in wanted.fields.items() if (new := _marked(old, secrets)) != old
    }
    try:
        after = document.edit(text.encode(), changes, path)
    except document.Unreadable:
        return None
    is_clean = not redaction.find(after.decode(), rules.allowed)
    return after if is_clean and _is_same(wanted, after, path, rules) else None


def _marked(value: FieldValue, secrets: Sequence[tuple[str, str]]) -> FieldValue:
    if isinstance(value, dict):
        return {name: _without(text, secrets) for name, text in value.items()}
    if isinstance(value, tuple):
        return tuple(_without(text, secrets) for text in value)
    return _without(value, secrets)


def _without(text: str, secrets: Sequence[tuple[str, str]]) -> str:
    for secret, mark in secrets:
        text = text.replace(secret, mark)
    return text
