"""The secrets check: nothing that looks like a secret or like personal data is kept.

It owns the check of files, the refusal of texts that are to become memories, and the verdicts:
which blobs were searched and found clean. Verdicts are a file of the cache, one id a line, named
by the detectors and settings that it was made with. Ids are only added; a file that has grown too
long is begun again.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.gate.content import Content, Text
from memtool.memory.schema import Problem
from memtool.store import cache
from memtool.store.cache import CorruptCache
from memtool.store.config import CONFIG_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memtool.redaction.find import Allowlist, Detection
    from memtool.store.config import Config

MOST_SHOWN = 20
"""Detections of one file that are shown as problems."""
MOST_BYTES = 16 << 20
MOST_SOUGHT = 100
"""Ids that are looked for one by one."""
ROOM = "gate"
"""The directory below the cache directory for what the gate can work out again."""
RULES = ("memory", "index", "search", "redaction", "gate")
"""The rooms of the package whose code decides what a check finds."""
MOST_NAMED = 5
"""Detections that a refusal names."""


def check(content: Content) -> Iterator[Problem]:
    """Yield each secret by kind and line. No message shows any part of it."""
    verdicts = Verdicts(content.repository.cache_dir, content.settings)
    allowed = None
    for text in content.texts:
        if verdicts.is_clean(text.oid):
            continue
        from memtool.redaction import find as detectors  # most commits have no new text

        allowed = allowed or detectors.allowlist(content.settings)
        found = detectors.find(text.text, allowed)
        if not found:
            verdicts.add(text.oid)
        yield from problems(text, unexpected(text.path, found, content.directory, content.settings))
    verdicts.save()


def unexpected(
    path: str, found: Sequence[Detection], directory: str, settings: Config
) -> Sequence[Detection]:
    """Drop the addresses of owners and signers, in the two files that are there to name them."""
    named = {settings.text("trust.allowed_signers")}
    if settings.rules:
        named.add(f"{directory}/{CONFIG_NAME}")
    return [one for one in found if one.kind != "email"] if path in named else found


def problems(text: Text, found: Sequence[Detection]) -> Iterator[Problem]:
    """Yield the problems of one text; `where` of the text ends each message."""
    place = f" {text.where}" if text.where else ""
    hint = f"memtool redact {text.path}"
    if text.where:
        hint = f"change the secret where it is used, then {hint}, and memtool purge --history"
    if text.is_message:
        hint = "change the secret where it is used, and reword the commit before it is pushed"
    for one in found[:MOST_SHOWN]:
        message = f"it holds what looks like {_described(one.kind)}{place}"
        yield Problem(text.path, one.line, code(one.kind), message, hint)
    if len(found) > MOST_SHOWN:
        message = f"it holds {len(found) - MOST_SHOWN:,} more of the kind{place}"
        yield Problem(text.path, 0, "secret", message, hint)


def refuse_secrets(
    text: str, allowed: Allowlist | None = None, *, known: str = "", name: str = "the memory"
) -> None:
    """Refuse a text that holds a secret or personal data, other than what `known` holds as well.

    `name` is what the refusal calls the text.

    Raises:
        MemtoolError: it does; kinds and lines are named, never what was found.
    """
    from memtool.redaction import find as detectors

    def named(text: str, allowed: Allowlist) -> list[tuple[str, Detection]]:
        found = detectors.find(text, allowed)
        return [(detectors.fingerprint(text[one.start : one.end]), one) for one in found]

    found = named(text, allowed or detectors.NOTHING)
    if found and known:
        before = {mark for mark, _one in named(known, detectors.NOTHING)}
        found = [(mark, one) for mark, one in found if mark not in before]
    if not found:
        return
    places = [f"{_described(one.kind)} in {_place(text, one)}" for _mark, one in found[:MOST_NAMED]]
    places += [f"and {len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else []
    mark, first = found[0]
    raise MemtoolError(
        f"{name} would hold {', '.join(places)}; nothing was written",
        hint=f"take it out, or write [REDACTED:{first.kind}] in its place; if it is harmless: "
        f'memtool config redaction.allow.{mark} "the reason"',
        code=code(first.kind),
    )


def _place(text: str, found: Detection) -> str:
    """Return where a detection is: of a memory, whose file is not written, its key or line."""
    from memtool.redaction.citations import header_end

    end = header_end(text)
    if found.start >= end:
        line = text.count("\n", end, found.start) + 1
        return f"line {line} of its text" if end else f"line {found.line}"
    rows = reversed(text[: found.start].split("\n"))
    key = next((row.partition(":")[0] for row in rows if row[:1].isalpha()), "")
    return f"its {key or 'header'}"


def code(kind: str) -> str:
    """Return the problem code of a kind of detection."""
    from memtool.redaction.find import is_personal

    return "personal-data" if is_personal(kind) else "secret"


def _described(kind: str) -> str:
    return f"{'a secret' if code(kind) == 'secret' else 'personal data'} ({kind})"


class Verdicts:
    """The clean blobs of one repository, under the present detectors and settings."""

    def __init__(self, cache_dir: str, settings: Config) -> None:
        self._folder = os.path.join(cache_dir, ROOM)
        version = cache.code_version(("redaction",), sorted(settings.given.items()))
        self._path = os.path.join(self._folder, f"clean-{version}")
        self._new: list[str] = []
        self._asked = 0
        self._seen: set[str] = set()
        self._known = _read(self._path)

    def is_clean(self, oid: str) -> bool:
        """Return whether a blob was found clean before."""
        if not oid or oid in self._seen:
            return bool(oid)
        self._asked += 1
        if self._asked == MOST_SOUGHT:  # a whole tree: taking the file apart costs less by now
            self._seen.update(self._known.decode(errors="replace").split("\n"))
        return self._asked < MOST_SOUGHT and self._known.find(f"{oid}\n".encode()) >= 0

    def add(self, oid: str) -> None:
        """Remember that a blob is clean."""
        if oid and oid not in self._seen:
            self._seen.add(oid)
            self._new.append(oid)

    def save(self) -> None:
        """Write what is new; where the cache cannot be written, the next check searches again."""
        if not self._new:
            return
        rows = "".join(f"{oid}\n" for oid in self._new).encode()
        known = self._known if len(self._known) <= MOST_BYTES else b""
        name = os.path.basename(self._path)
        if not cache.write(self._folder, name, known + rows, 1, "clean-"):
            self._known = known + rows
            self._new.clear()


def _read(path: str) -> bytes:
    """Return the rows that are kept, nothing where they are damaged."""
    try:
        return bytes(cache.mapped(path, is_whole=True))
    except CorruptCache:
        return b""
