"""Why something was found: the detector, the row or the word that gave it away, and its form."""

from __future__ import annotations

from memtool.redaction import assignments, entropy, find, tokens
from memtool.value import Value

MAX_WORD = 40
"""Characters of an announcing word that are shown."""


class Explanation(Value):
    """Why a detection was made; no part of the secret is in it.

    `by` is what gave it away: a word beside it, its prefix, or its form. `detector` says what was
    looked for.
    `form` says what the value is like, and why it is no placeholder.
    """

    detector: str
    by: str
    form: str


def explain(text: str, detection: find.Detection) -> Explanation:
    """Return why a detection of `find` was made in a text."""
    start, end = detection.start, detection.end
    lower = text.lower() if len(text.lower()) == len(text) else text
    doc = by = ""
    for detector in find.DETECTORS:
        if detection.kind in detector.kinds and any(
            low < end and start < high for _kind, low, high in detector.find(text, lower)
        ):
            doc = detector.doc
            break
    if detection.kind in ("password", "secret"):
        words = assignments.find_announced(text, lower)
        word = next((word for _kind, low, high, word in words if low < end and start < high), "")
        by = f"the word {' '.join(word.split())[:MAX_WORD]!r}" if word else ""
    prefix = tokens.find_prefix(text, start)
    if not by and prefix:
        by = f"the prefix {prefix!r}"
    if not doc:
        doc = next(row.doc for row in find.DETECTORS if detection.kind in row.kinds)
        by = by or "its pieces, read as one"
    return Explanation(doc, by or "its form", describe_form(text[start:end]))


def describe_form(value: str) -> str:
    """Return what a value is like in one clause: its length, its characters and its entropy."""
    names = ("small letters", "capitals", "digits", "signs")
    present = [
        any(char.islower() for char in value),
        any(char.isupper() for char in value),
        any(char.isdigit() for char in value),
        any(not char.isalnum() for char in value),
    ]
    kinds = [name for name, is_there in zip(names, present, strict=True) if is_there]
    bits = entropy.compute_entropy(value)
    return (
        f"{len(value)} characters ({', '.join(kinds)}) of {bits:.1f} bits each: "
        "no example value, no reference to a variable or file"
    )
