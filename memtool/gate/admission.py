"""Admission: no text with a secret in it becomes a memory."""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.gate import redaction
from memtool.gate.redaction import NOTHING, Allowed, Finding


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
