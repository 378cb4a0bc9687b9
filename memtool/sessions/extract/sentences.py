"""The sentences that a person typed, without pasted and quoted text.

Code, logs, quotes, tags of hosts and memtool's own blocks are removed first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memtool import tables
from memtool.index.analyzer import is_stop, terms
from memtool.sessions.transcripts.markup import without_own
from memtool.value import Value

MAX_TEXT = 20_000
"""Maximum characters of a message that are read; people do not type more."""
_FENCE = re.compile(r"^[ \t]*(```|~~~)")
_TAG = re.compile(r"<([a-z][a-z_-]{2,40})(?: [^<>\n]{1,200})?>")
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
    r"|[\w./-]+:(?:\d+(?::\d+)?| line \d+):"
    r"|[{}\[\]\u26a0\u2716\u2717]"
    r"|\|"
    r")"
)
"""A line of a log, stack trace, diff, shell or table."""
_CODE_END = re.compile(
    r"[;{}]\s*$|^\s*(?:import|from|def|class|func|const|let|var|return)\s\S+.*[(=:{]"
)
_ITEM = re.compile(r"^\s*(?:[-*•+]|\d{1,2}[.)])\s+")
_BREAK = re.compile(r"(?<=[.!?])[\"')\]]?\s+(?=\S)|(?<=[\u3002\uff01\uff1f])(?=\S)")
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|no|nr)\.$", re.IGNORECASE)
_QUOTED = re.compile(r"[\"\u201c](?=[^\"\u201c\u201d]*[.!?]\s)[^\"\u201c\u201d]{20,4000}[\"\u201d]")
"""Several sentences in quotation marks: someone else's words."""
_BARE_NOT = re.compile(
    r"\b(do|does|did|is|are|was|were|have|has|must|should|could|would|ca|wo)nt\b", re.IGNORECASE
)
"""Missing apostrophe, as in `dont`."""


class Sentence(Value):
    """One sentence of a message: `place` is its index there, from 0."""

    number: int
    place: int
    text: str


def split_sentences(number: int, text: str) -> tuple[Sentence, ...]:
    """Split a message into the sentences that a person typed, in order."""
    pieces = (
        _BARE_NOT.sub(r"\1n't", " ".join(piece.split()))
        for line in _join_lines(strip_pasted(text))
        for piece in _split_pieces(line)
    )
    return tuple(Sentence(number, place, piece) for place, piece in enumerate(filter(None, pieces)))


def strip_pasted(text: str) -> str:
    """Remove code, logs, quotes, host tags and memtool's own blocks from a text."""
    text = without_own(text)[:MAX_TEXT]
    text = _QUOTED.sub("", _without_tagged(text))
    lines: list[str] = []
    is_fenced = False
    for line in text.splitlines():
        if _FENCE.match(line):
            is_fenced = not is_fenced
        elif not (is_fenced or _is_pasted(line)):
            lines.append(line)
    return "\n".join(lines)


def _without_tagged(text: str) -> str:
    """Remove the text between host tags, with one search for each tag."""
    lines: list[str] = []
    unclosed: set[str] = set()
    at = 0
    while (tag := _TAG.search(text, at)) is not None:
        end = -1 if tag[1] in unclosed else text.find(f"</{tag[1]}>", tag.end())
        if end < 0:
            unclosed.add(tag[1])
            lines.append(text[at : tag.end()])
            at = tag.end()
        else:
            lines.append(text[at : tag.start()])
            at = end + len(f"</{tag[1]}>")
    return "".join((*lines, text[at:]))


def _is_pasted(line: str) -> bool:
    if line.startswith((">", "\t", "    ")) and not _ITEM.match(line):
        return True
    return bool(_LOG.match(line) or _CODE_END.search(line))


def _join_lines(text: str) -> Iterator[str]:
    """Yield the paragraphs of a text, each as one line, and the items of its lists."""
    paragraph: list[str] = []
    for line in [*text.splitlines(), ""]:
        bare = line.strip()
        item = _ITEM.match(line)
        if paragraph and (not bare or item or bare.startswith("#")):
            yield " ".join(paragraph).rstrip(":")
            paragraph = []
        if item:
            yield line[item.end() :].strip()
        elif bare and not bare.startswith("#"):
            paragraph.append(bare)


def _split_pieces(line: str) -> Iterator[str]:
    start = 0
    for match in _BREAK.finditer(line):
        if not _ABBREVIATED.search(line[start : match.start()]):
            yield line[start : match.start()]
            start = match.end()
    yield line[start:]


_SUBJECTS = frozenset(tables.read_words("sessions/subjects"))
MAX_TAGS = 5


def find_tags(text: str) -> tuple[str, ...]:
    """Return the tools and subjects that a text names, sorted."""
    named = {word.strip("`*_\"'()[],;:.!").lower() for word in text.split()}
    return tuple(sorted(named & _SUBJECTS))[:MAX_TAGS]


def find_content_words(text: str) -> list[str]:
    """Return the content words of a text, as index terms."""
    return [term for term in terms(text) if not is_stop(term)]


def to_sentence(text: str) -> str:
    """Format a text as a sentence: a capital first, a full stop at the end."""
    text = " ".join(text.split()).strip(" ,;:-")
    first, _space, _tail = text.partition(" ")
    if text[:1].islower() and first.isalpha():
        text = text[0].upper() + text[1:]
    return text if text.endswith((".", "!", "`.", "\u3002", "\uff01")) else f"{text}."
