"""Statements that a person wants to last: rules of plain phrases, and what vetoes a sentence.

What a person asks to remember or to pin is their intent. What a rule merely recognises is a
question for a reviewer: on its own it does not qualify for promotion.
"""

from __future__ import annotations

from memtool.authoring.classification import classify, find_paths, strip_opening
from memtool.authoring.introductions import strip_introduction
from memtool.authoring.phrases import normalize
from memtool.sessions.extract.rules import (
    IMPORTANCE,
    PINNED,
    REMEMBER,
    STATEMENTS,
    SUGGESTING,
    read_rules,
)
from memtool.sessions.extract.sentences import (
    Sentence,
    find_content_words,
    to_sentence,
)
from memtool.sessions.model import INTENT, PIN
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memtool.sessions.extract.scene import Scene
    from memtool.sessions.model import Finding

NEVER_REMEMBERED = ("asks", "fault", "here")
"""Vetoes that hold for what a person asks to remember, too."""
MAX_WORDS = 45
"""Words of a statement by a rule; a longer sentence says more than one thing."""
MAX_SENTENCES, MAX_CHARACTERS = 25, 4_000
"""Of a message; a longer one was pasted, such as a specification written elsewhere."""
MIN_TERMS = 3
"""Content words of a statement that makes sense alone."""


class Stated(Value):
    """A sentence that a rule recognises: the rule, and the statement without its introduction."""

    rule: str
    text: str


def find(scene: Scene) -> Iterator[Finding]:
    """Yield the statements of people, in their order."""
    for message in scene.people:
        sentences = scene.sentences[message.number]
        is_long = is_pasted(sentences, message.text)
        for sentence in sentences:
            stated = read_statement(sentence, is_long=is_long)
            if stated is not None and stated.rule in IMPORTANCE:
                yield from _build_finding(stated, sentence, scene)


def read_statement(sentence: Sentence, *, is_long: bool = False) -> Stated | None:
    """Return what a sentence states by the first rule that recognises it; None if nothing.

    `is_long` says that the message is too long to have been typed: only what it asks to remember
    counts.
    """
    text = strip_opening(sentence.text)
    plain = normalize(text)
    rule = next((row.name for row in read_rules(STATEMENTS) if row.find(plain)), "")
    if not rule:
        return None
    is_asked = rule in (PINNED, REMEMBER)
    veto = _find_veto(text, plain)
    if veto and (not is_asked or veto in NEVER_REMEMBERED):
        return None
    if not is_asked and (is_long or count_words(text) > MAX_WORDS):
        return None
    return Stated(rule, strip_introduction(text) if is_asked else text)


def count_words(text: str) -> int:
    """Return about how many words a text has: in Chinese and Japanese two characters are one."""
    return len(text.split()) + sum(char >= "\u3040" for char in text) // 2


def _find_veto(text: str, plain: str) -> str:
    if text.rstrip("\"') ").endswith(("?", "\uff1f")):
        return "asks"
    return next((row.name for row in read_rules("vetoes") if row.find(plain)), "")


def _build_finding(stated: Stated, sentence: Sentence, scene: Scene) -> Iterator[Finding]:
    is_asked = stated.rule in (PINNED, REMEMBER)
    if len(find_content_words(stated.text)) < (1 if is_asked else MIN_TERMS):
        return
    signals = ((INTENT,) if is_asked else ()) + ((PIN,) if stated.rule == PINNED else ())
    files = find_paths(stated.text)
    yield scene.build_finding(
        classify(stated.text, files),
        to_sentence(stated.text),
        IMPORTANCE[stated.rule],
        (sentence.number,),
        confidence="high" if is_asked else "medium",
        place=sentence.place,
        signals=signals,
        files=files,
    )


def is_wish(sentences: Sequence[Sentence], *, is_long: bool) -> bool:
    """Return whether one of a message's sentences asks an agent to keep something."""
    made = (read_statement(sentence, is_long=is_long) for sentence in sentences)
    return any(stated is not None and stated.rule in SUGGESTING for stated in made)


def is_pasted(sentences: Sequence[Sentence], text: str) -> bool:
    """Return whether a message is too long to have been typed."""
    return len(sentences) > MAX_SENTENCES or len(text) > MAX_CHARACTERS


def is_retraction(sentences: Sequence[Sentence]) -> bool:
    """Return whether a message begins by taking back what was said before it."""
    return _begins(sentences, "retract")


def is_denial_of_fix(sentences: Sequence[Sentence]) -> bool:
    """Return whether a message begins by saying that a fix does not help, or is to be undone."""
    return _begins(sentences, "fails-still")


def _begins(sentences: Sequence[Sentence], rule: str) -> bool:
    if not sentences:
        return False
    plain = normalize(strip_opening(sentences[0].text))
    return any(row.name == rule and row.find(plain) for row in read_rules("retractions"))
