"""What a person agrees to: an assistant's proposal with a plain yes right behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memtool.sessions.extract.scene import Scene
from memtool.sessions.extract.sentences import content_words, paths_in, sentence, typed
from memtool.sessions.model import Finding

MOST_YES_WORDS = 8
"""A longer answer says something of its own."""
LEAST_TERMS = 4
LAST_LINES = 6
"""Of what the assistant said: a proposal is at the end, where the answer was asked for."""
IMPORTANCE = 0.6

_YES = re.compile(
    r"^(?:yes|yep|yeah|yup|agreed|exactly|sounds good|go ahead|do (?:it|that)|perfect|approved|lgtm"
    r"|makes sense|let's do (?:that|it|this)|sure|ok(?:ay)?(?=[,!. ]+(?:do|go|let's|yes)))\b|^👍",
    re.IGNORECASE,
)
_NOT_PLAIN = re.compile(
    r"\b(?:but|no|not|except|instead|wait|later|first|for now|this time|though|only|don't)\b|\?",
    re.IGNORECASE,
)
_VERBS = (
    r"(?P<verb>use|go with|adopt|switch (?:\S+ ){0,4}?to|standardi[sz]e on|migrate|replace|keep"
    r"|store|put|move|model|drop|support)"
)
_ASKING = re.compile(rf"^(?:so,? )?(?:should|shall) (?:we|i) (?:then )?{_VERBS}\b (?P<rest>.+)\?$",
                     re.IGNORECASE)  # fmt: skip
_ADVISING = re.compile(
    r"^(?:so |therefore |overall |here |then )*(?:i(?:'d| would)?|my) (?:strongly )?(?:recommend"
    r"|suggest|propose|recommendation is|suggestion is|proposal is)(?: to| that we| we)?:? "
    rf"(?:{_VERBS} )?(?P<rest>.+?)[.!]?$",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"^(?:ok(?:ay)?|agreed|agree|sounds? (?:good|ok)|is that ok(?:ay)?"
    r"|does that (?:work|sound good)(?: for you)?|do you agree"
    r"|shall i(?: go ahead| do (?:that|it|so))?|right|good|alright)\?$",
    re.IGNORECASE,
)
"""A question that only asks for the yes to what is before it."""
_OBJECT = re.compile(r"^(?:it|this|that|them|these|those|me)\b", re.IGNORECASE)
_BREAK = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


def find(scene: Scene) -> Iterator[Finding]:
    """Yield decisions that an assistant worded and a person made."""
    for message in scene.people:
        proposer = scene.before.get(message.number)
        answer = " ".join(typed(message.text).replace("\u2019", "'").split())
        said = proposal(proposer.text) if proposer is not None and is_yes(answer) else ""
        if proposer is not None and len(content_words(said)) >= LEAST_TERMS:
            yield scene.finding(
                "decision",
                sentence(said),
                IMPORTANCE,
                (proposer.number, message.number),
                files=paths_in(said),
            )


def is_yes(answer: str) -> bool:
    """Tell whether an answer is nothing but a yes."""
    if len(answer.split()) > MOST_YES_WORDS or _NOT_PLAIN.search(answer):
        return False
    return bool(_YES.match(answer))


def proposal(text: str) -> str:
    """Return what an assistant proposes at the end of a text, as a statement; empty for nothing.

    Two proposals in one text leave open which one a yes is for.
    """
    lines = [line.strip() for line in typed(text).splitlines() if line.strip()]
    pieces = [piece.strip() for line in lines[-LAST_LINES:] for piece in _BREAK.split(line)]
    if len(pieces) > 1 and _TAG.match(pieces[-1]):
        pieces.pop()
    asked = [match for piece in pieces if (match := _ASKING.match(piece))]
    if asked:
        return _worded(asked[0]) if len(asked) == 1 and pieces[-1] == asked[0][0] else ""
    if any(piece.endswith("?") for piece in pieces):
        return ""  # the yes answers that question
    advised = [match for piece in pieces if (match := _ADVISING.match(piece))]
    return _worded(advised[0]) if len(advised) == 1 else ""


def _worded(match: re.Match[str]) -> str:
    """Return a proposal as a statement: `using X` stays, `X` becomes `Go with X`."""
    rest = match["rest"].strip()
    if _OBJECT.match(rest):
        return ""
    if match["verb"]:
        return f"{match['verb']} {rest}"
    first, _space, others = rest.partition(" ")
    return rest if first.lower().endswith("ing") and others else f"Go with {rest}"
