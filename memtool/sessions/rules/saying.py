"""What a person says once and for all, sentence by sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memtool.index.analyzer import is_stop, terms
from memtool.sessions.claim import REASONED, Claim, paths_in, sentence
from memtool.sessions.points import INTENT, PIN
from memtool.sessions.rules.phrases import ASKED, LEADS, PHRASES, PINNED, Phrase
from memtool.sessions.scene import Scene
from memtool.sessions.speech import Sentence, opening_off

_NO = re.compile(r"\b(?:no|nope|actually)\b", re.IGNORECASE)
LEAST_TERMS = 3
"""Words with a meaning that a statement needs to stand alone."""
ASKED_IMPORTANCE = 0.8
LEAD_IMPORTANCE = 0.65


def find(scene: Scene) -> Iterator[Claim]:
    """Yield what people say once and for all."""
    for message in scene.people:
        for said in scene.said[message.number]:
            claim = None if said.reason else claim_of(said)
            if claim is not None:
                yield claim


def claim_of(said: Sentence) -> Claim | None:
    """Return the claim of one sentence, None where it makes none."""
    text = opening_off(said.text).replace("\u2019", "'")
    pinned = PINNED.match(text)
    text = text[pinned.end() :] if pinned else text
    asked = ASKED.match(text)
    text = text[asked.end() :] if asked else text
    phrase = phrase_of(text, said.text[: len(said.text) - len(text)])
    lead = _lead(said.lead)
    if phrase is not None:
        category, importance, is_intent = phrase.category, phrase.importance, phrase.is_intent
        text = phrase.cut.sub("", text, count=1) if phrase.cut else text
    elif lead:
        category, importance, is_intent = lead, LEAD_IMPORTANCE, True
    elif asked or pinned:
        category, importance, is_intent = "discovery", ASKED_IMPORTANCE, True
    else:
        return None
    if sum(not is_stop(term) for term in terms(text)) < LEAST_TERMS:
        return None
    is_asked = bool(asked or pinned)
    signals = ((INTENT,) if is_intent or is_asked else ()) + ((PIN,) if pinned else ())
    return Claim(
        category=category,
        content=sentence(text),
        confidence="high" if signals else "medium",
        importance=max(importance, ASKED_IMPORTANCE) if is_asked else importance,
        messages=(said.number,),
        place=said.place,
        signals=signals,
        files=paths_in(text),
    )


def phrase_of(text: str, opening: str = "") -> Phrase | None:
    """Return the first phrase of the table that a sentence holds, after the words that open it."""
    for phrase in PHRASES:
        if (
            phrase.sign.search(text)
            and (not phrase.needs_reason or REASONED.search(text))
            and (not phrase.after_no or _NO.search(opening))
        ):
            return phrase
    return None


def _lead(lead: str) -> str:
    if not lead or "?" in lead:
        return ""
    return next((category for category, sign in LEADS if sign.search(lead)), "")
