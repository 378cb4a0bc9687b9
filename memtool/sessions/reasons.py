"""Reasons: why a sentence that sounds like a rule is no lasting claim, each with an example."""

from __future__ import annotations

import re

from memtool.value import Value


class Reason(Value):
    """One reason, and the signs by which it is known."""

    name: str
    example: str
    sign: re.Pattern[str]


def _any(*signs: str) -> re.Pattern[str]:
    return re.compile("|".join(signs), re.IGNORECASE)


def _words(text: str) -> str:
    """Return a pattern for any of some words or phrases, which semicolons part."""
    return r"\b(?:" + "|".join(part.strip() for part in text.split(";")) + r")\b"


_ASKS = (
    "why|what|how|where|when|who|which|whose|do|does|did|is|are|was|were|can|could|would|will"
    "|shall|should|have|has|may|might"
)
_ASKED = (
    "you|we|i|it|he|she|they|the|this|that|there|about|if|is|are|do|does|did|can|could|should|would"
)
_NOW = "pr|one|commit|change|task|branch|session|test|time|file|patch|box"

REASONS: tuple[Reason, ...] = (
    Reason(
        "question", "Should we never log the customer id?",
        _any(r"\?\s*[\"')]?$",
             r", (?:do|did|is|are|have)(?:n't)? (?:we|you|it|they|i)[.!]?$",
             rf"^(?:{_ASKS})\s+(?:{_ASKED})\b"),
    ),
    Reason(
        "guess", "I think we should always use a queue.",
        _any(
            _words("maybe; perhaps; possibly; probably; presumably; apparently; might; could be"),
            _words("not sure; no idea; unsure; seems? (?:like|to); i feel like; let me think"),
            _words("i (?:think|guess|suppose|wonder|assume|believe); what if; suppose; imagine"),
            _words("hypothetically; in theory; would (?:be|have); (?:we|you|one) could"),
            _words("at some point; some day; someday; should we; we'd need"),
            r"^if (?:we|you|i|it|there|the)\b.*\b(?:would|could|might|then|don't|do not)\b",
        ),
    ),
    Reason(
        "report", "Tom says we always squash.",
        _any(
            _words("says?; said(?! so); (?<!i )wrote(?=:); told (?:me|us); claims?; claimed"),
            _words("according to; thinks; suggests"),
            r"^\s*[\"'\u201c\u2018].*[\"'\u201d\u2019][.!]?$",
        ),
    ),
    Reason(
        "joke", "Always commit to main, lol.",
        _any(
            _words("lol; lmao; rofl; haha+; hehe+; yeah right; oh sure; sure thing; as always"),
            _words("wow; because that (?:always|went|worked); revolutionary; genius; kidding"),
            r"(?:^|\s)/s\b",
            r"🙄|😂|🤣|;-?\)",
        ),
    ),
    Reason(
        "moment", "For now always use the old endpoint.",
        _any(
            _words("for now; right now; just now; not yet; not now; for the moment; at the moment"),
            _words("today; tonight; tomorrow; (?<!note for )later; temporarily; temporary"),
            _words("quick (?:fix|hack)"),
            _words("this time; just (?:this )?once; until (?:i|we|you|then); the last one"),
            _words(f"(?:for|in|on) this (?:{_NOW}); that (?:block|line|part|one)"),
            _words("(?:it's|is|are) already"),
            r"^just for\b",
        ),
    ),
)  # fmt: skip
"""The first that matches is the reason."""


def reason_of(text: str) -> str:
    """Return the name of the reason for which a sentence is no claim, empty for one that is."""
    bare = re.sub(r"`[^`]*`", "`", text).replace("\u2019", "'")  # quoted code is no speech
    return next((reason.name for reason in REASONS if reason.sign.search(bare)), "")
