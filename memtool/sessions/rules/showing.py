"""What an assistant found out and a tool had shown before: both are needed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memtool.index.analyzer import is_stop, terms
from memtool.sessions.claim import Claim, paths_in, sentence
from memtool.sessions.scene import Scene
from memtool.sessions.speech import typed

IMPORTANCE = 0.5
REACH = 8
"""Messages before an assistant's words in which their evidence stands."""
LEAST_NAMES = 2
"""Names, paths and numbers of the statement that a tool has printed."""
LEAST_SHARE = 0.5
"""Share of the statement's words that the same answer of a tool holds."""
ALMOST_ALL = 0.75
"""With this share of the words, one name is enough."""
MOST_EVIDENCE = 20_000

_FOUND = re.compile(
    r"^(?:so |and |the |found it[:,.!] )*(?:(?:(?:root|real|actual|underlying) (?:problem|reason)"
    r"|(?:(?:root|real|actual|underlying) )?(?:cause|culprit))(?: of [\w -]{2,40})? (?:is|was)"
    r"|(?:it )?turns out|(?=\w[\w -]{1,40} (?:is|was|are|were) caused by))\b(?: that)?,? ?",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\b(?:probably|maybe|perhaps|might|could be|likely|seems?|appears?|suspect|i think|let me"
    r"|i'll|hypothesis|possibly|not sure)\b|\?",
    re.IGNORECASE,
)
_NAME = re.compile(r"`[^`]+`|\b\w*[a-z][A-Z]\w*|\b[A-Z]{2,}\w*")
"""Code, and words that are spelled as only names are."""
_BREAK = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


def find(scene: Scene) -> Iterator[Claim]:
    """Yield causes that an assistant named after a tool had printed what they rest on."""
    recent: list[tuple[int, frozenset[str]]] = []
    for message in scene.messages:
        if message.role == "tool" and message.text and message.number not in scene.own:
            words = frozenset(terms(message.text[:MOST_EVIDENCE]))
            recent = [*recent[1 - REACH :], (message.number, words)]
        if message.role != "assistant" or message.tool:
            continue
        near = [item for item in recent if item[0] >= message.number - REACH]
        for piece in _BREAK.split(typed(message.text)) if near else ():
            opening = _FOUND.match(piece.strip())
            if opening is None or _DOUBT.search(piece):
                continue
            said = piece.strip()[opening.end() :]
            shown = _evidence(said, near)
            if shown:
                yield Claim(
                    category="discovery",
                    content=sentence(said),
                    confidence="medium",
                    importance=IMPORTANCE,
                    messages=(shown, message.number),
                    files=paths_in(said),
                    is_said=False,
                )


def _evidence(said: str, near: list[tuple[int, frozenset[str]]]) -> int:
    """Return the number of the answer that shows a statement, 0 for none; the latest wins."""
    content = {term for term in terms(said) if not is_stop(term)}
    names = {term for term in content if not term.isalpha()}
    names |= {found[-1] for name in _NAME.findall(said) if (found := terms(name))}
    for number, words in reversed(near):
        shown = len(content & words)
        share = shown / len(content) if content else 0
        if len(names & words) >= LEAST_NAMES and share >= LEAST_SHARE:
            return number
        if names & words and shown > LEAST_NAMES and share >= ALMOST_ALL:
            return number
    return 0
