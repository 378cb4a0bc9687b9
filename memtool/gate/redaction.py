"""Finding secrets and personal data in text, and cutting them out.

It owns what a finding is, which one wins where several detectors see the same, what is allowed,
and the marks that replace what was found. It never shows a secret: a finding has a place and a
kind, and nothing here puts the text of one into a message.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.gate.pattern import Pattern
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from re import Match
    from typing import Literal

MOST_CHARACTERS = 16_000_000
BLANK = "\0"
"""Stands for each character that is already cut out: no detector's pattern reaches across it."""
MOST_ROUNDS = 6
PERSONAL_KINDS = frozenset(("card", "email", "phone", "ssn"))

_KINDS = r"[ \t]{1,3}(?P<kinds>[a-z][a-z-]{1,40}(?:,? ?[a-z][a-z-]{1,40}){0,8})"
ALLOW = Pattern(rf"memtool:[ \t]{{0,3}}allow{_KINDS}")
"""`memtool: allow KIND`, in a comment of any form: findings of that kind may stand on this line."""

ALLOW_FILE = Pattern(
    rf"memtool:[ \t]{{0,3}}allow-file{_KINDS}[ \t]{{1,3}}--(?=[ \t]{{1,3}}(?!--)[^\s>])"
)
"""`memtool: allow-file KIND -- REASON`: findings of that kind may stand anywhere in this file.

It does so much that it counts only with a reason.
"""

MARK = Pattern(r"\[REDACTED:(?P<kind>[a-z][a-z0-9-]{1,40})(?::(?P<label>[0-9a-f]{1,12}))?\]")


class Finding(Value):
    """A secret or a piece of personal data: characters `start` to `end`, on `line` from 1."""

    kind: str
    start: int
    end: int
    line: int


class Allowed(Value):
    """What may stand here: addresses, domains with what is below them, fingerprints of secrets."""

    emails: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    fingerprints: frozenset[str] = frozenset()


NOTHING = Allowed()


def kinds() -> frozenset[str]:
    """Return every kind that a finding may have."""
    from memtool.gate import prefixes, shapes

    named = {row[0] for row in prefixes.ROWS} | {row[0] for row in shapes.ROWS}
    return frozenset(
        named
        | {"private-key", "url-password", "password", "secret", "high-entropy"}
        | PERSONAL_KINDS
    )


def is_personal(kind: str) -> bool:
    """Say whether a kind is personal data; every other kind is a secret."""
    return kind in PERSONAL_KINDS


def find(text: str, allowed: Allowed = NOTHING) -> tuple[Finding, ...]:
    """Return what must not be kept: in order of place, none overlapping another.

    What is found is blanked and the rest is searched again, until nothing is new, so that a
    redacted text holds nothing to be found.

    Raises:
        MemtoolError: the text is longer than can be looked through; it is never passed unseen.
    """
    if len(text) > MOST_CHARACTERS:
        raise MemtoolError(
            f"the text has {len(text):,} characters, {MOST_CHARACTERS:,} can be checked",
            hint="split it, or leave out what is not text",
            code="too-large",
        )
    seen = _without_marks(text)
    spans: list[tuple[str, int, int]] = []
    for _round in range(MOST_ROUNDS):
        new = _search(seen)
        if not new:
            break
        spans += new
        pieces: list[str] = []
        at = 0
        for _kind, start, end in new:
            pieces += (seen[at:start], BLANK * (end - start))
            at = end
        seen = "".join((*pieces, seen[at:]))
    return _permitted(text, sorted(spans, key=lambda span: span[1]), allowed)


def _without_marks(text: str) -> str:
    """Return the text with marks and allow comments blanked: no secret reaches into one."""
    if "[REDACTED:" in text:
        known = kinds()
        text = MARK.sub(lambda m: BLANK * len(m[0]) if m["kind"] in known else m[0], text)
    if "memtool:" in text:
        for comment in (ALLOW, ALLOW_FILE):
            text = comment.sub(lambda m: BLANK * len(m[0]), text)
    return text


def _search(text: str) -> list[tuple[str, int, int]]:
    """Return the spans of one look, merged: secrets are united, personal data gives way to them."""
    from memtool.gate.detectors import DETECTORS

    lower = _lowered(text)
    secrets: list[tuple[int, int, int, str]] = []
    personal: list[tuple[int, int, int, str]] = []
    for rank, (_name, is_triggered, detect) in enumerate(DETECTORS):
        for kind, start, end in detect(text, lower) if is_triggered(text, lower) else ():
            if end > start:
                (personal if is_personal(kind) else secrets).append((start, end, rank, kind))
    merged: list[tuple[int, int, int, str]] = []
    for span in sorted(secrets):
        if merged and span[0] < merged[-1][1]:
            last = merged.pop()
            rank, kind = min(last[2:], span[2:])
            merged.append((last[0], max(last[1], span[1]), rank, kind))
        else:
            merged.append(span)
    if personal:
        for span in sorted(personal, key=lambda span: (span[2], span[0], -span[1])):
            if all(span[1] <= other[0] or other[1] <= span[0] for other in merged):
                merged.append(span)
        merged.sort()
    return [(kind, start, end) for start, end, _rank, kind in merged]


def _lowered(text: str) -> str:
    """Return the text in lower case with every character in its place."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def _permitted(
    text: str, spans: Sequence[tuple[str, int, int]], allowed: Allowed
) -> tuple[Finding, ...]:
    findings: list[Finding] = []
    everywhere = _kinds_of(ALLOW_FILE.finditer(text)) if "memtool:" in text else ()
    line, at, line_end = 1, 0, -1
    permitted: Collection[str] = ()
    for kind, start, end in spans:
        line += text.count("\n", at, start)
        at = start
        if start > line_end:
            permitted, line_end = _allowed_on_line(text, start)
        if kind in everywhere or kind in permitted or _is_allowed(text[start:end], kind, allowed):
            continue
        findings.append(Finding(kind, start, end, line))
    return tuple(findings)


def _allowed_on_line(text: str, at: int) -> tuple[Collection[str], int]:
    """Return the kinds that the line around a place allows, and where the line ends."""
    first = text.rfind("\n", 0, at) + 1
    last = text.find("\n", at)
    last = last if last >= 0 else len(text)
    if text.find("memtool:", first, last) < 0:
        return (), last
    return _kinds_of(ALLOW.finditer(text, first, last)), last


def _kinds_of(matches: Iterable[Match[str]]) -> frozenset[str]:
    """Return the kinds that comments allow."""
    return frozenset(kind for match in matches for kind in match["kinds"].replace(",", " ").split())


def _is_allowed(secret: str, kind: str, allowed: Allowed) -> bool:
    if allowed.fingerprints and fingerprint(secret) in allowed.fingerprints:
        return True
    if kind != "email":
        return False
    address = secret.lower()
    host = address.rpartition("@")[2]
    return address in allowed.emails or any(
        host == domain or host.endswith("." + domain) for domain in allowed.domains
    )


def fingerprint(secret: str) -> str:
    """Return 16 hex digits that name a secret in the allow list, without showing it."""
    from hashlib import blake2b

    return blake2b(secret.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def redact(
    text: str,
    findings: Sequence[Finding],
    strategy: Literal["redact", "hash", "token"] = "redact",
    key: bytes = b"",
) -> str:
    """Return the text with every finding replaced by its mark; all else keeps its characters.

    Raises:
        MemtoolError: `hash` without a key: short passwords could be guessed from such a hash.
    """
    return marked(text, marks(text, findings, strategy, key))


def marks(
    text: str,
    findings: Sequence[Finding],
    strategy: Literal["redact", "hash", "token"] = "redact",
    key: bytes = b"",
) -> list[tuple[Finding, str]]:
    """Return every finding with its mark, in order of place.

    `redact` gives `[REDACTED:kind]`, `hash` adds 8 hex digits of the keyed hash of the secret,
    `token` a number, equal for equal secrets in this text.

    Raises:
        MemtoolError: `hash` without a key.
    """
    if strategy == "hash" and not key:
        raise MemtoolError(
            "the hash strategy needs a key", hint="use the strategy token", code="redaction-key"
        )
    labels: dict[str, str] = {}
    used = [int(mark["label"]) for mark in MARK.finditer(text) if (mark["label"] or "").isdigit()]
    next_number = max(used, default=0) + 1
    found = []
    for finding in sorted(findings, key=lambda finding: finding.start):
        secret = text[finding.start : finding.end]
        if strategy == "hash":
            labels.setdefault(secret, f":{_keyed(secret, key)}")
        elif strategy == "token":
            labels.setdefault(secret, f":{next_number + len(labels)}")
        found.append((finding, f"[REDACTED:{finding.kind}{labels.get(secret, '')}]"))
    return found


def marked(text: str, found: Sequence[tuple[Finding, str]]) -> str:
    """Return the text with marks in the places of findings, which are in order."""
    pieces: list[str] = []
    at = 0
    for finding, mark in found:
        pieces += (text[at : finding.start], mark)
        at = finding.end
    return "".join((*pieces, text[at:]))


def _keyed(secret: str, key: bytes) -> str:
    from hashlib import blake2b

    data = secret.encode(errors="surrogatepass")
    return blake2b(data, digest_size=4, key=key[:64]).hexdigest()
