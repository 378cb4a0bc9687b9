"""The secrets check, and the cache of blobs that were searched already.

A file of the cache, one id a line, named by the detectors and settings that it was made with. Ids
are only added; a file that has grown too long is begun again.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.gate import redaction
from memtool.gate.content import Content, Text
from memtool.gate.redaction import NOTHING, Allowed, Finding
from memtool.memory.problem import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memtool.store.config import Config

MOST_TOLD = 20
"""Findings that are told of one file."""


def check(content: Content) -> Iterator[Problem]:
    """Yield each secret by kind and line. No message shows any part of it."""
    verdicts = Verdicts(content.repository.cache_dir, content.settings)
    allowed = None
    for text in content.texts:
        if verdicts.is_clean(text.oid):
            continue
        if allowed is None:
            from memtool.gate.allowing import allowed as allowed_by

            allowed = allowed_by(content.settings)
        found = find(text, allowed)
        if not found:
            verdicts.add(text.oid)
        yield from problems(text, found)
    verdicts.save()


def find(text: Text, allowed: Allowed) -> Sequence[Finding]:
    """Return what a text must not hold."""
    return redaction.find(text.text, allowed)


def problems(text: Text, found: Sequence[Finding]) -> Iterator[Problem]:
    """Yield the problems of one text; `where` of the text ends each message."""
    place = f" {text.where}" if text.where else ""
    hint = f"memtool redact {text.path}"
    if text.where:
        hint = f"change the secret where it is used, then {hint}, and memtool purge --history"
    for finding in found[:MOST_TOLD]:
        is_personal = redaction.is_personal(finding.kind)
        what = "personal data" if is_personal else "a secret"
        yield Problem(
            text.path,
            finding.line,
            "personal-data" if is_personal else "secret",
            f"it holds what looks like {what} ({finding.kind}){place}",
            hint,
        )
    if len(found) > MOST_TOLD:
        yield Problem(
            text.path,
            0,
            "secret",
            f"it holds {len(found) - MOST_TOLD:,} more of the kind{place}",
            hint,
        )


MOST_BYTES = 16 << 20
MOST_SOUGHT = 100
"""Ids that are looked for one by one."""
ROOM = "gate"
"""The directory below the cache directory in which the gate keeps what it may forget."""


class Verdicts:
    """The clean blobs of one repository, under the present detectors and settings."""

    def __init__(self, cache_dir: str, settings: Config) -> None:
        self._folder = os.path.join(cache_dir, ROOM)
        self._path = os.path.join(self._folder, f"clean-{_rules(settings)}")
        self._new: list[str] = []
        self._asked = 0
        self._seen: set[str] = set()
        self._known = _read(self._path)

    def is_clean(self, oid: str) -> bool:
        """Tell whether a blob was found clean before."""
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
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        if len(self._known) > MOST_BYTES:
            flags |= os.O_TRUNC
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            is_new = not os.path.exists(self._path)
            handle = os.open(self._path, flags, 0o600)
            try:
                os.write(handle, "".join(f"{oid}\n" for oid in self._new).encode())
            finally:
                os.close(handle)
            if is_new:
                _sweep(self._folder, self._path)
        except OSError:
            return
        self._new.clear()


def _rules(settings: Config) -> str:
    """Name the detectors by the sizes and times of their modules, and the settings by content."""
    from _blake2 import blake2b  # hashlib would import OpenSSL

    folder = os.path.dirname(os.path.abspath(__file__))
    rows = [repr(sorted(settings.given.items()))]
    for entry in sorted(os.scandir(folder), key=lambda item: item.name):
        if entry.name.endswith(".py"):
            status = entry.stat()
            rows.append(f"{entry.name} {status.st_size} {status.st_mtime_ns}")
    return blake2b("\n".join(rows).encode(), digest_size=8).hexdigest()


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _sweep(folder: str, kept: str) -> None:
    """Remove the verdicts of other detectors and settings."""
    for entry in list(os.scandir(folder)):
        if entry.name.startswith("clean-") and entry.path != kept:
            os.unlink(entry.path)


def refuse_secrets(text: str, allowed: Allowed = NOTHING, *, known: str = "") -> None:
    """Refuse a text that holds a secret or personal data, other than what `known` holds as well.

    Raises:
        MemtoolError: it does; kinds and lines are named, never what was found.
    """
    findings = redaction.find(text, allowed)
    if findings and known:
        before = {fingerprint_of(known, finding) for finding in redaction.find(known)}
        findings = tuple(f for f in findings if fingerprint_of(text, f) not in before)
    if findings:
        raise MemtoolError(
            f"the memory would hold {told(findings)}; nothing was written",
            hint=hint(text, findings[0]),
            code=code(findings[0].kind),
        )


def told(findings: tuple[Finding, ...]) -> str:
    """Return what was found, and in which lines, as a clause without the text of it."""
    places = [f"{_named(finding)} in line {finding.line}" for finding in findings[:_SHOWN]]
    more = len(findings) - len(places)
    return ", ".join(places) + (f", and {more} more" if more > 0 else "")


def hint(text: str, finding: Finding) -> str:
    """Return how to go on: without the secret, or with leave for it by its fingerprint."""
    setting = f"redaction.allow.{fingerprint_of(text, finding)}"
    return (
        f"take it out, or write [REDACTED:{finding.kind}] in its place; "
        f'if it is harmless: memtool config {setting} "the reason"'
    )


def fingerprint_of(text: str, finding: Finding) -> str:
    """Return the fingerprint of what was found, by which it is allowed."""
    return redaction.fingerprint(text[finding.start : finding.end])


def code(kind: str) -> str:
    """Return the problem code of a kind of finding."""
    return "personal-data" if redaction.is_personal(kind) else "secret"


_SHOWN = 5


def _named(finding: Finding) -> str:
    if redaction.is_personal(finding.kind):
        return f"personal data ({finding.kind})"
    return f"a secret ({finding.kind})"
