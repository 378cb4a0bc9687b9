"""The secrets check: nothing that looks like a secret or like personal data is kept."""

from __future__ import annotations

from memtool.gate.content import Content, Text
from memtool.memory.problem import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memtool.gate.redaction import Allowed, Finding

MOST_TOLD = 20
"""Findings that are told of one file."""


def check(content: Content) -> Iterator[Problem]:
    """Yield each secret by kind and line. No message shows any part of it."""
    from memtool.gate.verdicts import Verdicts

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
    from memtool.gate import redaction  # patterns: three interpreter starts

    return redaction.find(text.text, allowed)


def problems(text: Text, found: Sequence[Finding]) -> Iterator[Problem]:
    """Yield the problems of one text; `where` of the text ends each message."""
    from memtool.gate import redaction

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
