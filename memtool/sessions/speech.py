"""Speech: the sentences that a person typed, without what they pasted, quoted or only wondered.

It owns what counts as a person's own claim. Code, logs, quotes, tags of hosts and the blocks that
memtool injected are taken out first; questions, guesses, reports of others, jokes and what holds
for the moment only are marked by the reason for which they are no claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memtool.sessions.reasons import reason_of
from memtool.sessions.transcripts.markup import without_own
from memtool.value import Value

MOST_TEXT = 20_000
"""Characters of one message that are read; nobody types more."""
MOST_SENTENCES = 40
"""A message with more sentences was pasted: only its first and last ones are looked at."""
EDGE_SENTENCES = 3
MOST_WORDS = 60
"""A sentence with more words is no single statement."""

_FENCE = re.compile(r"^[ \t]*(```|~~~)")
_TAG = re.compile(r"<([a-z][a-z_-]{2,40})>")
_LOG = re.compile(
    r"^\s*(?:"
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d"
    r"|\[?\d\d:\d\d:\d\d"
    r"|\[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\]?[ :]"
    r"|Traceback \(most recent"
    r"|File \".*\", line \d"
    r"|at [\w.$<>]+ ?\("
    r"|(?:[+-]{3}|@@|diff --git|index [0-9a-f]{6,})"
    r"|[+-](?![ \d-])"
    r"|\+ "
    r"|(?:\$|>>>|\.\.\.|#|%|\u276f|\u279c) "
    r"|npm (?:ERR!|WARN)"
    r"|(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception)\b:"
    r"|[\w./-]+:\d+(?::\d+)?:"
    r"|[{}\[\]]"
    r"|\|"
    r")"
)
"""A line of a log, a trace, a diff, a shell or a table."""
_CODE_END = re.compile(
    r"[;{}]\s*$|^\s*(?:import|from|def|class|func|const|let|var|return)\s\S+.*[(=:{]"
)
_ITEM = re.compile(r"^\s*(?:[-*•+]|\d{1,2}[.)])\s+")
_BREAK = re.compile(r"(?<=[.!?])[\"')\]]?\s+(?=\S)")
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|no|nr)\.$", re.IGNORECASE)
_QUOTED = re.compile(r"[\"\u201c](?=[^\"\u201c\u201d]*[.!?]\s)[^\"\u201c\u201d]{20,4000}[\"\u201d]")
"""Several sentences between quotation marks: somebody else's."""
_BARE_NOT = re.compile(
    r"\b(do|does|did|is|are|was|were|have|has|must|should|could|would|ca|wo)nt\b", re.IGNORECASE
)
"""`dont`: as people type who are in a hurry."""
_OPENING = re.compile(
    r"^(?:(?:ok(?:ay)?|so|well|also|and|but|oh|ah|hmm+|um+|btw|by the way|please|hey|hi|right|good"
    r"|great|nice|cool|perfect|thanks|thank you|thx|makes sense|sounds good|yes|yep|yeah|no|nope"
    r"|actually|in general|before you start|one more thing|ah right"
    r"|good to know|general (?:remark|note|comment|rule)|reminder|ps)\b[,.!:;]*\s+)+",
    re.IGNORECASE,
)
"""Words that open a sentence without adding to it."""


class Sentence(Value):
    """One sentence of a message: `place` counts from 0 in it; `lead` is the line that leads a list.

    `reason` says why it is no claim, empty for one that is.
    """

    number: int
    place: int
    text: str
    lead: str = ""
    reason: str = ""


def sentences(number: int, text: str) -> tuple[Sentence, ...]:
    """Return the sentences that a person typed in one message, in order."""
    found: list[Sentence] = []
    for lead, line in _lines(typed(text)):
        for piece in _pieces(line):
            said = _BARE_NOT.sub(r"\1n't", " ".join(piece.split()))
            if not said or len(said.split()) > MOST_WORDS:
                continue
            found.append(Sentence(number, len(found), said, lead, reason_of(said)))
    if len(found) > MOST_SENTENCES:
        return (*found[:EDGE_SENTENCES], *found[-EDGE_SENTENCES:])
    return tuple(found)


def typed(text: str) -> str:
    """Return a text without code, logs, quotes, tags, and blocks that memtool injected."""
    text = without_own(text)[:MOST_TEXT]
    text = _QUOTED.sub("", _without_tagged(text))
    kept: list[str] = []
    is_fenced = False
    for line in text.splitlines():
        if _FENCE.match(line):
            is_fenced = not is_fenced
        elif not (is_fenced or _is_pasted(line)):
            kept.append(line)
    return "\n".join(kept)


def _without_tagged(text: str) -> str:
    """Return a text without what stands between the tags of a host, one search for each tag."""
    kept: list[str] = []
    unclosed: set[str] = set()
    at = 0
    while (tag := _TAG.search(text, at)) is not None:
        end = -1 if tag[1] in unclosed else text.find(f"</{tag[1]}>", tag.end())
        if end < 0:
            unclosed.add(tag[1])
            kept.append(text[at : tag.end()])
            at = tag.end()
        else:
            kept.append(text[at : tag.start()])
            at = end + len(f"</{tag[1]}>")
    return "".join((*kept, text[at:]))


def opening_off(text: str) -> str:
    """Return a sentence without the words that only open it."""
    return _OPENING.sub("", text, count=1) or text


def _is_pasted(line: str) -> bool:
    if line.startswith((">", "\t", "    ")) and not _ITEM.match(line):
        return True
    return bool(_LOG.match(line) or _CODE_END.search(line))


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield (lead, line): wrapped lines are joined, items of a list stand alone with their lead."""
    lead = ""
    paragraph: list[str] = []
    for line in [*text.splitlines(), ""]:
        bare = line.strip()
        item = _ITEM.match(line)
        if paragraph and (not bare or item or bare.startswith("#")):
            joined = " ".join(paragraph)
            paragraph = []
            lead = joined if joined.endswith(":") else ""
            yield "", joined.rstrip(":")
        if item:
            yield lead, line[item.end() :].strip()
        elif bare.startswith("#"):
            lead = ""
        elif bare:
            paragraph.append(bare)


def _pieces(line: str) -> Iterator[str]:
    """Yield the sentences of a line."""
    start = 0
    for match in _BREAK.finditer(line):
        if not _ABBREVIATED.search(line[start : match.start()]):
            yield line[start : match.start()]
            start = match.end()
    yield line[start:]
