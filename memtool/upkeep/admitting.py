"""Admitting: records with a secret stay outside, or go in without it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memtool.gate.checks import secrets
from memtool.memory.memory import Fields, FieldValue
from memtool.memory.problem import Problem
from memtool.redaction import find as redaction
from memtool.redaction.find import Allowlist
from memtool.upkeep.draft import Draft


def admit(
    drafts: Iterable[Draft], allowed: Allowlist, *, redacts: bool
) -> tuple[list[Draft], list[Problem]]:
    """Refuse drafts that hold secrets or personal data; with `redacts` take these out of them."""
    admitted = []
    problems = []
    for given in drafts:
        draft = _redacted(given, allowed) if redacts else given
        texts = ["id: " + draft.id, *_texts(draft.fields), draft.body]
        kinds = {detection.kind for detection in redaction.find("\n".join(texts), allowed)}
        if kinds:
            ranked = sorted(kinds, key=lambda kind: (redaction.is_personal(kind), kind))
            held = f"it holds {', '.join(ranked)}"
            problems.append(draft.problem(secrets.code(ranked[0]), held, _hint(redacts=redacts)))
        else:
            admitted.append(draft)
    return admitted, problems


def _hint(*, redacts: bool) -> str:
    if redacts:
        return "it stands in the title, or is known by its key alone: correct the record"
    return (
        "memtool import FROM PATH --redact takes it out; memtool config redaction.allow_emails "
        "and redaction.allow_domains let addresses stand"
    )


def _redacted(draft: Draft, allowed: Allowlist) -> Draft:
    """Return a draft with marks in its body and values; not in the title, of which its id is made.

    A secret that is known by its key alone stays, and is refused.
    """

    def without(value: FieldValue) -> FieldValue:
        if isinstance(value, dict):
            return {name: text_without(text) for name, text in value.items()}
        return text_without(value) if isinstance(value, str) else tuple(map(text_without, value))

    def text_without(text: str) -> str:
        return redaction.redact(text, redaction.find(text, allowed))

    kept = ("id", "title")
    fields = {k: v if k in kept else without(v) for k, v in draft.fields.items()}
    return draft.replace(body=text_without(draft.body), fields=fields)


def _texts(fields: Fields) -> Iterator[str]:
    for key, value in fields.items():
        for text in value if isinstance(value, tuple) else (value,):
            yield f"{key}: {text}"
