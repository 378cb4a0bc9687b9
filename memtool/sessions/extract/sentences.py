"""The sentences that a person typed, without pasted and quoted text.

This module owns which sentences are a person's own claims. Code, logs, quotes, tags of hosts and
memtool's own blocks are removed first. Questions, guesses, reports of others, jokes and temporary
statements are not claims; each is marked with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memtool import tables
from memtool.index.analyzer import is_stop, terms
from memtool.sessions.transcripts.markup import without_own
from memtool.value import Value


class Reason(Value):
    """A reason why a sentence is not a claim, and the pattern that shows it."""

    name: str
    example: str
    sign: re.Pattern[str]


def compile_any(*signs: str) -> re.Pattern[str]:
    """Compile a case-insensitive pattern that matches any of the given ones."""
    return re.compile("|".join(signs), re.IGNORECASE)


def compile_words(text: str) -> str:
    """Build a pattern that matches any of the words or phrases, separated by semicolons."""
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
        "question",
        "Should we never log the customer id?",
        compile_any(
            r"\?\s*[\"')]?$",
            r", (?:do|did|is|are|have)(?:n't)? (?:we|you|it|they|i)[.!]?$",
            rf"^(?:{_ASKS})\s+(?:{_ASKED})\b",
        ),
    ),
    Reason(
        "guess",
        "I think we should always use a queue.",
        compile_any(
            compile_words(
                "maybe; perhaps; possibly; probably; presumably; apparently; might; could be"
            ),
            compile_words(
                "not sure; no idea; unsure; seems? (?:like|to); i feel like; let me think"
            ),
            compile_words(
                "i (?:think|guess|suppose|wonder|assume|believe); what if; suppose; imagine"
            ),
            compile_words("hypothetically; in theory; would (?:be|have); (?:we|you|one) could"),
            compile_words("at some point; some day; someday; should we; we'd need"),
            r"^if (?:we|you|i|it|there|the)\b.*\b(?:would|could|might|then|don't|do not)\b",
        ),
    ),
    Reason(
        "report",
        "Tom says we always squash.",
        compile_any(
            compile_words(
                "says?; said(?! so); (?<!i )wrote(?=:); told (?:me|us); claims?; claimed"
            ),
            compile_words("according to; thinks; suggests"),
            r"^\s*[\"'\u201c\u2018].*[\"'\u201d\u2019][.!]?$",
        ),
    ),
    Reason(
        "joke",
        "Always commit to main, lol.",
        compile_any(
            compile_words(
                "lol; lmao; rofl; haha+; hehe+; yeah right; oh sure; sure thing; as always"
            ),
            compile_words(
                "wow; because that (?:always|went|worked); revolutionary; genius; kidding"
            ),
            r"(?:^|\s)/s\b",
            r"🙄|😂|🤣|;-?\)",
        ),
    ),
    Reason(
        "moment",
        "For now always use the old endpoint.",
        compile_any(
            compile_words(
                "for now; right now; just now; not yet; not now; for the moment; at the moment"
            ),
            compile_words("today; tonight; tomorrow; (?<!note for )later; temporarily; temporary"),
            compile_words("quick (?:fix|hack)"),
            compile_words("this time; just (?:this )?once; until (?:i|we|you|then); the last one"),
            compile_words(f"(?:for|in|on) this (?:{_NOW}); that (?:block|line|part|one)"),
            compile_words("(?:it's|is|are) already"),
            r"^just for\b",
        ),
    ),
)
"""The first match is the reason."""


def find_reason(text: str) -> str:
    """Return why a sentence is not a claim; empty if it is one."""
    bare = re.sub(r"`[^`]*`", "`", text).replace("\u2019", "'")  # quoted code is not speech
    return next((reason.name for reason in REASONS if reason.sign.search(bare)), "")


MAX_TEXT = 20_000
"""Maximum characters of a message that are read; people do not type more."""
MAX_SENTENCES = 40
"""A message with more sentences was pasted: only its first and last ones are read."""
EDGE_SENTENCES = 3
MAX_WORDS = 60
"""A longer sentence is not a single statement, unless the person asks to remember it."""

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
"""A line of a log, stack trace, diff, shell or table."""
_CODE_END = re.compile(
    r"[;{}]\s*$|^\s*(?:import|from|def|class|func|const|let|var|return)\s\S+.*[(=:{]"
)
_ITEM = re.compile(r"^\s*(?:[-*•+]|\d{1,2}[.)])\s+")
_BREAK = re.compile(r"(?<=[.!?])[\"')\]]?\s+(?=\S)")
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|no|nr)\.$", re.IGNORECASE)
_QUOTED = re.compile(r"[\"\u201c](?=[^\"\u201c\u201d]*[.!?]\s)[^\"\u201c\u201d]{20,4000}[\"\u201d]")
"""Several sentences in quotation marks: someone else's words."""
_BARE_NOT = re.compile(
    r"\b(do|does|did|is|are|was|were|have|has|must|should|could|would|ca|wo)nt\b", re.IGNORECASE
)
"""Missing apostrophe, as in `dont`."""
_OPENING = re.compile(
    r"^(?:(?:ok(?:ay)?|so|well|also|and|but|oh|ah|hmm+|um+|btw|by the way|please|hey|hi|right|good"
    r"|great|nice|cool|perfect|thanks|thank you|thx|makes sense|sounds good|yes|yep|yeah|no|nope"
    r"|actually|in general|before you start|one more thing|ah right"
    r"|good to know|general (?:remark|note|comment|rule)|reminder|ps)\b[,.!:;]*\s+)+",
    re.IGNORECASE,
)
"""Opening words that add nothing to a sentence."""


PINNED = compile_any(r"^(?:please )?pin(?: (?:this|that)\b[:,]?|:) ?(?=\S)")
"""Asks to pin the following text. Pinning the version of a package is a task instead."""
ASKED = compile_any(
    r"^(?:please |pls |and |also )*"
    r"(?:remember|note|keep in mind|bear in mind|don't forget|do not forget|make a note"
    r"|for the record|for (?:future )?reference|memo|important|fyi)\b"
    r"(?: (?:for|to) (?:later|the future|yourself)\b)?"
    r"(?! (?:to|when|me|how|the time|this|it)\b) ?(?:that\b)?[:,!]? ?"
)
"""Asks to remember the following text. `remember to` is a task instead."""


class Sentence(Value):
    """One sentence of a message: `place` is its index, `lead` the line that introduces its list.

    `reason` says why it is not a claim, empty if it is.
    """

    number: int
    place: int
    text: str
    lead: str = ""
    reason: str = ""


def split_sentences(number: int, text: str) -> tuple[Sentence, ...]:
    """Split a message into the sentences that a person typed, in order."""
    sentences: list[Sentence] = []
    for lead, line in _join_lines(strip_pasted(text)):
        for piece in _split_pieces(line):
            cleaned = _BARE_NOT.sub(r"\1n't", " ".join(piece.split()))
            bare = strip_opening(cleaned)
            is_asked = PINNED.match(bare) or ASKED.match(bare)
            if not cleaned or (len(cleaned.split()) > MAX_WORDS and not is_asked):
                continue
            sentences.append(Sentence(number, len(sentences), cleaned, lead, find_reason(cleaned)))
    if len(sentences) > MAX_SENTENCES:
        return (*sentences[:EDGE_SENTENCES], *sentences[-EDGE_SENTENCES:])
    return tuple(sentences)


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


def strip_opening(text: str) -> str:
    """Remove the opening words that add nothing to a sentence."""
    return _OPENING.sub("", text, count=1) or text


def _is_pasted(line: str) -> bool:
    if line.startswith((">", "\t", "    ")) and not _ITEM.match(line):
        return True
    return bool(_LOG.match(line) or _CODE_END.search(line))


def _join_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield (lead, line). Wrapped lines are joined; each list item comes alone, with its lead."""
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


def _split_pieces(line: str) -> Iterator[str]:
    start = 0
    for match in _BREAK.finditer(line):
        if not _ABBREVIATED.search(line[start : match.start()]):
            yield line[start : match.start()]
            start = match.end()
    yield line[start:]


_PATH = re.compile(
    r"(?<![\w/@:.-])(?:\.?[A-Za-z_][\w-]*/)+(?:[\w.-]*\w)?"
    r"|\b[\w-]+\.(?:py|pyi|js|mjs|jsx|ts|tsx|go|rs|rb|java|kt|c|h|cc|cpp|cs|php|sh|sql|md|rst|toml"
    r"|yaml|yml|json|ini|cfg|css|scss|html|vue|svelte|tf|proto|graphql|lock)\b"
    r"|\b(?:Dockerfile|Makefile|Jenkinsfile|Cargo\.toml|go\.mod)\b"
)
_SUBJECTS = frozenset(tables.read_words("sessions/subjects"))
MAX_FILES = 8
MAX_TAGS = 5


def find_paths(text: str) -> tuple[str, ...]:
    """Return the paths that a text names, in order; URLs do not count."""
    paths = (match[0].strip("/") for match in _PATH.finditer(text))
    return tuple(dict.fromkeys(path for path in paths if not path.startswith("..")))[:MAX_FILES]


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
    return text if text.endswith((".", "!", "`.")) else f"{text}."
