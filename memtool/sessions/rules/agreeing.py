"""What a person agrees to: an assistant's proposal with a plain yes, or an option of its list."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memtool.index.analyzer import is_stop, terms
from memtool.sessions.claim import Claim, paths_in, sentence
from memtool.sessions.scene import Scene
from memtool.sessions.speech import typed

MOST_YES_WORDS = 8
"""A longer answer says something of its own."""
LEAST_TERMS = 4
LAST_LINES = 6
"""Of what the assistant said: a proposal stands at the end, where the answer was asked for."""
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
_LASTING = r"use|go with|adopt|switch (?:\S+ ){0,4}?to|standardi[sz]e on|migrate|replace"
_VERBS = rf"(?P<verb>{_LASTING}|keep|store|put|move|model|drop|support)"
_ASKING = re.compile(rf"^(?:so,? )?(?:should|shall) (?:we|i) (?:then )?{_VERBS}\b (?P<rest>.+)\?$",
                     re.IGNORECASE)  # fmt: skip
_ADVISING = re.compile(
    r"^(?:so |therefore |overall |here |then )*(?:i(?:'d| would)?|my) (?:strongly )?(?:recommend"
    r"|suggest|propose|recommendation is|suggestion is|proposal is)(?: to| that we| we)?:? "
    rf"(?:{_VERBS} )?(?P<rest>.+?)[.!]?$",
    re.IGNORECASE,
)
_COULD = re.compile(rf"^(?:so |then )?(?:we (?:could|can)|let's) (?P<verb>{_LASTING})\b "
                    r"(?P<rest>.+?)[.!]?$", re.IGNORECASE)  # fmt: skip
"""Said of much that is only work; so these are the verbs of what lasts."""
_TAG = re.compile(
    r"^(?:ok(?:ay)?|agreed|agree|sounds? (?:good|ok)|is that ok(?:ay)?"
    r"|does that (?:work|sound good)(?: for you)?|do you agree"
    r"|shall i(?: go ahead| do (?:that|it|so))?|right|good|alright)\?$",
    re.IGNORECASE,
)
"""A question that only asks for the yes to what stands before it."""
_OBJECT = re.compile(r"^(?:it|this|that|them|these|those|me)\b", re.IGNORECASE)
_BREAK = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")
_CHOICE = re.compile(
    r"^(?:ok(?:ay)?,? |yes,? )?(?:(?:let's |i'd |we'll |i'll |please )?(?:go with|take|use|do|pick"
    r"|choose|prefer) )?(?:the )?(?:(?:option|number|variant|no\.?|#) ?(?P<label>\d|[a-e])\b"
    r"|(?P<nth>first|second|third|fourth) (?:one|option))(?P<rest>.*)$",
    re.IGNORECASE,
)
_NTH = {"first": "1", "second": "2", "third": "3", "fourth": "4"}
_LISTED = re.compile(r"^\s*(?:[*_]*option )?(?P<label>\d|[a-e])[.):][*_]* +(?P<text>.+)$",
                     re.IGNORECASE)  # fmt: skip


def find(scene: Scene) -> Iterator[Claim]:
    """Yield decisions that an assistant worded and a person made."""
    for message in scene.people:
        proposer = scene.before.get(message.number)
        answer = " ".join(typed(message.text).replace("\u2019", "'").split())
        if proposer is None or not answer:
            continue
        choice = _CHOICE.match(answer)
        if choice:
            is_plain = not _NOT_PLAIN.search(choice["rest"])
            said = _option(proposer.text, choice) if is_plain else ""
        else:
            said = proposal(proposer.text) if is_yes(answer) else ""
        if said and sum(not is_stop(term) for term in terms(said)) >= LEAST_TERMS:
            yield Claim(
                category="decision",
                content=sentence(said),
                confidence="medium",
                importance=IMPORTANCE,
                messages=(proposer.number, message.number),
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
    pieces = [piece for line in lines[-LAST_LINES:] for piece in _BREAK.split(line)]
    if len(pieces) > 1 and _TAG.match(pieces[-1].strip()):
        pieces.pop()
    asked = [match for piece in pieces if (match := _ASKING.match(piece.strip()))]
    if asked:
        return _worded(asked[0]) if len(asked) == 1 and pieces[-1].strip() == asked[0][0] else ""
    if any(piece.rstrip().endswith("?") for piece in pieces):
        return ""  # the yes answers that question
    advised = [
        match
        for piece in map(str.strip, pieces)
        if (match := _ADVISING.match(piece) or _COULD.match(piece))
    ]
    return _worded(advised[0]) if len(advised) == 1 else ""


def _worded(match: re.Match[str]) -> str:
    rest = match["rest"].strip()
    if _OBJECT.match(rest):
        return ""
    return f"{match['verb'] or 'Go with'} {rest}" if match["verb"] else _noun(rest)


def _noun(rest: str) -> str:
    """Turn `using X` and `X` into a statement."""
    first, _space, others = rest.partition(" ")
    if first.lower().endswith("ing") and others:
        return rest
    return f"Go with {rest}"


def _option(text: str, choice: re.Match[str]) -> str:
    label = (choice["label"] or _NTH[(choice["nth"] or "").lower()]).lower()
    found = [
        match["text"]
        for line in typed(text).splitlines()
        if (match := _LISTED.match(line)) and match["label"].lower() == label
    ]
    return found[0].strip("*_ ") if len(found) == 1 else ""
