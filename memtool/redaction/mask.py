"""Masking a memory: what may be shown of one that holds what the gate would refuse.

A secret can get into a file past the gate: by a commit without hooks, by hand, by another tool. The
file keeps its bytes until `redact` changes them, but nobody who reads memories is shown the secret:
a mark stands in its place, in memory alone. Keys that only choose, name or count (the id, the
status, moments, other memories) are what they are, since nothing works without them.
"""

from __future__ import annotations

from functools import lru_cache

from memtool.memory import document
from memtool.memory.fields import BY_NAME
from memtool.memory.memory import Memory
from memtool.redaction import citations
from memtool.redaction.find import build_allowlist, clean_text, find, make_marks, mark_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from memtool.memory.changes import Detail
    from memtool.memory.memory import Fields, FieldValue
    from memtool.memory.schema import Problem
    from memtool.redaction.find import Allowlist, Detection, Settings

    Secret = tuple[str, str]
    """A text that is not shown, and its kind."""

SAYING = frozenset({"line", "sources", "words", "paths", "mapping"})
"""Kinds of keys that hold words of somebody; a secret is masked in these."""
TOLD = frozenset({"reason", "by", "fault"})
"""Details of a change that are somebody's words, or quote them."""
MAX_LINES = 4_096
"""Short texts that one process remembers masked: a log shows the same ones again and again."""
MIN_PIECE = 4
"""Characters of a line of a secret that is looked for by itself."""


class Mask:
    """What masks memories under the settings of one repository."""

    def __init__(self, settings: Settings, clean: Collection[str] = ()) -> None:
        """Take the settings, which allow some texts, and blobs that were found clean before."""
        self._allowed = build_allowlist(settings)
        self._clean = clean

    def read(self, memory: Memory, data: bytes, oid: str = "") -> Memory:
        """Return a memory that was read from some bytes, masked where the gate refuses these."""
        if oid and oid in self._clean:
            return memory
        return mask_memory(memory, data.decode(errors="replace"), self._allowed)

    def memory(self, memory: Memory) -> Memory:
        """Return a memory whose file is not at hand, masked by its canonical text."""
        return mask_memory(memory, document.write(memory).decode(errors="replace"), self._allowed)

    def for_file(self, memory: Memory, data: bytes) -> Callable[[str], str]:
        """Return what masks texts that were cut out of a file, such as one of its sections."""
        secrets, _kinds = _find_secrets(memory, data.decode(errors="replace"), self._allowed)
        return lambda text: _clean(text, secrets)

    def line(self, text: str) -> str:
        """Return a short text, such as a title or a message, masked."""
        return _mask_line(text, self._allowed) if text else text

    def problem(self, problem: Problem) -> Problem:
        """Return a problem that quotes no secret."""
        return problem.replace(message=self.line(problem.message), hint=self.line(problem.hint))

    def details(self, details: dict[str, Detail]) -> dict[str, Detail]:
        """Return the details of a change with what somebody said in it masked."""
        return {
            key: self.line(value) if key in TOLD and isinstance(value, str) else value
            for key, value in details.items()
        }


@lru_cache(MAX_LINES)
def _mask_line(text: str, allowed: Allowlist) -> str:
    return clean_text(text, allowed)


def mask_memory(memory: Memory, text: str, allowed: Allowlist) -> Memory:
    """Return a memory with a mark in place of each detection in its text.

    `text` is that of its file. A value that does not stand there as it is, since it was escaped,
    is searched by itself.
    """
    secrets, kinds = _find_secrets(memory, text, allowed)
    if not kinds:
        return memory
    fields = {
        key: _without(value, secrets) if _is_saying(key) else value
        for key, value in memory.fields.items()
    }
    start = max(0, len(text) - len(memory.body))
    return Memory(fields, _mask_body(text, start, find(text, allowed)), tuple(sorted(kinds)))


def _find_secrets(memory: Memory, text: str, allowed: Allowlist) -> tuple[list[Secret], set[str]]:
    """Return what is to be masked in a memory, the longest first, and the kinds of it."""
    findings = find(text, allowed)
    kinds = {finding.kind for finding in findings}
    secrets = [
        piece
        for finding in findings
        for piece in _split_secret(text[finding.start : finding.end], finding.kind)
    ]
    header = text[: citations.find_header_end(text)]
    for key, value in _texts_outside_header(memory.fields, header) if "\\" in header else ():
        line, begin = f"---\n{key}: {value}\n---\n", len(key) + 6
        for finding in find(line, allowed):
            if finding.end > begin:
                kinds.add(finding.kind)
                secrets.append((line[max(finding.start, begin) : finding.end], finding.kind))
    return sorted(secrets, key=lambda secret: (-len(secret[0]), secret)), kinds


def _is_saying(key: str) -> bool:
    return BY_NAME[key].kind in SAYING if key in BY_NAME else True


def _iterate_texts(value: FieldValue) -> Iterable[str]:
    if isinstance(value, str):
        return (value,)
    return value.values() if isinstance(value, dict) else value


def _texts_outside_header(fields: Fields, header: str) -> Iterable[tuple[str, str]]:
    """Yield the texts of the keys that do not stand in the header as they are."""
    for key, value in fields.items():
        for text in _iterate_texts(value) if _is_saying(key) else ():
            if text not in header:
                yield key, text


def _split_secret(secret: str, kind: str) -> Iterable[Secret]:
    """Yield a secret and, where it goes over several lines of a header, each of these."""
    yield secret, kind
    if "\n" in secret:
        for line in secret.split("\n"):
            piece = line.strip().removeprefix("- ").strip("\"' ")
            if len(piece) >= MIN_PIECE:
                yield piece, kind


def _without(value: FieldValue, secrets: list[Secret]) -> FieldValue:
    if isinstance(value, dict):
        return {name: _clean(text, secrets) for name, text in value.items()}
    if isinstance(value, tuple):
        return tuple(_clean(text, secrets) for text in value)
    return _clean(value, secrets)


def _clean(text: str, secrets: list[Secret]) -> str:
    for secret, kind in secrets:
        text = text.replace(secret, f"[REDACTED:{kind}]")
    return text


def _mask_body(text: str, start: int, findings: Iterable[Detection]) -> str:
    """Return the body, which begins at a place of the text, with marks."""
    inside = [
        finding.replace(start=max(finding.start, start) - start, end=finding.end - start)
        for finding in findings
        if finding.end > start
    ]
    body = text[start:]
    return mark_text(body, make_marks(body, inside))
