"""Why something was found: the detector, the row or the word that gave it away, and its form."""

from __future__ import annotations

from memtool.redaction import assignments, entropy, find, tokens
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_WORD = 40
"""Characters of an announcing word that are shown."""


class Explanation(Value):
    """Why a detection was made; no part of the secret is in it.

    `by` is what gave it away: a word beside it, its prefix, or its form. `detector` says what was
    looked for, `form` what the value is like, and why it is no placeholder.
    """

    detector: str
    by: str
    form: str


def explain(text: str, detections: Iterable[find.Detection]) -> Iterator[Explanation]:
    """Yield why each detection of `find` was made in a text, which is searched once for all."""
    lower = find.lower_in_place(text)
    spans_by_doc = {row.doc: list(row.find(text, lower)) for row in find.DETECTORS}
    announced = list(assignments.find_announced(text, lower))
    for detection in detections:
        start, end = detection.start, detection.end
        docs = [row.doc for row in find.DETECTORS if detection.kind in row.kinds]
        direct = (
            doc
            for doc in docs
            if any(low < end and start < high for _kind, low, high in spans_by_doc[doc])
        )
        doc = next(direct, "")
        by = ""
        if detection.kind in ("password", "secret"):
            words = (word for _kind, low, high, word in announced if low < end and start < high)
            word = " ".join(next(words, "").split())[:MAX_WORD]
            by = f"the word {word!r}" if word else ""
        prefix = tokens.find_prefix(text, start)
        if not by and prefix:
            by = f"the prefix {prefix!r}"
        by = by or ("its form" if doc else "its pieces, read as one")
        yield Explanation(doc or docs[0], by, describe_form(text[start:end]))


def describe_form(value: str) -> str:
    """Return what a value is like in one clause: its length, its characters and its entropy."""
    present = {
        "small letters": any(map(str.islower, value)),
        "capitals": any(map(str.isupper, value)),
        "digits": any(map(str.isdigit, value)),
        "signs": not all(map(str.isalnum, value)),
    }
    kinds = [name for name, is_there in present.items() if is_there]
    bits = entropy.compute_entropy(value)
    return (
        f"{len(value)} characters ({', '.join(kinds)}) of {bits:.1f} bits each: "
        "no example value, no reference to a variable or file"
    )
