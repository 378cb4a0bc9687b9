"""The sentences that a person typed, without what they pasted, quoted or only considered.

It owns what counts as a person's own claim. Code, logs, quotes, tags of hosts and the blocks that
memtool injected are taken out first; questions, guesses, reports of others, jokes and what holds
for the moment only are marked by the reason for which they are no claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memtool import tables
from memtool.index.analyzer import is_stop, terms
from memtool.sessions.transcripts.markup import without_own
from memtool.value import Value


class Reason(Value):
    """One reason, and the signs by which it is known."""

    name: str
    example: str
    sign: re.Pattern[str]


def any_of(*signs: str) -> re.Pattern[str]:
    """Return a pattern that matches any of some signs, whatever the case."""
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
        "question",
        "Should we never log the customer id?",
        any_of(
            r"\?\s*[\"')]?$",
            r", (?:do|did|is|are|have)(?:n't)? (?:we|you|it|they|i)[.!]?$",
            rf"^(?:{_ASKS})\s+(?:{_ASKED})\b",
        ),
    ),
    Reason(
        "guess",
        "I think we should always use a queue.",
        any_of(
            _words("maybe; perhaps; possibly; probably; presumably; apparently; might; could be"),
            _words("not sure; no idea; unsure; seems? (?:like|to); i feel like; let me think"),
            _words("i (?:think|guess|suppose|wonder|assume|believe); what if; suppose; imagine"),
            _words("hypothetically; in theory; would (?:be|have); (?:we|you|one) could"),
            _words("at some point; some day; someday; should we; we'd need"),
            r"^if (?:we|you|i|it|there|the)\b.*\b(?:would|could|might|then|don't|do not)\b",
        ),
    ),
    Reason(
        "report",
        "Tom says we always squash.",
        any_of(
            _words("says?; said(?! so); (?<!i )wrote(?=:); told (?:me|us); claims?; claimed"),
            _words("according to; thinks; suggests"),
            r"^\s*[\"'\u201c\u2018].*[\"'\u201d\u2019][.!]?$",
        ),
    ),
    Reason(
        "joke",
        "Always commit to main, lol.",
        any_of(
            _words("lol; lmao; rofl; haha+; hehe+; yeah right; oh sure; sure thing; as always"),
            _words("wow; because that (?:always|went|worked); revolutionary; genius; kidding"),
            r"(?:^|\s)/s\b",
            r"🙄|😂|🤣|;-?\)",
        ),
    ),
    Reason(
        "moment",
        "For now always use the old endpoint.",
        any_of(
            _words("for now; right now; just now; not yet; not now; for the moment; at the moment"),
            _words("today; tonight; tomorrow; (?<!note for )later; temporarily; temporary"),
            _words("quick (?:fix|hack)"),
            _words("this time; just (?:this )?once; until (?:i|we|you|then); the last one"),
            _words(f"(?:for|in|on) this (?:{_NOW}); that (?:block|line|part|one)"),
            _words("(?:it's|is|are) already"),
            r"^just for\b",
        ),
    ),
)
"""The first that matches is the reason."""


def reason_of(text: str) -> str:
    """Return the name of the reason for which a sentence is no claim, empty for one that is."""
    bare = re.sub(r"`[^`]*`", "`", text).replace("\u2019", "'")  # quoted code is no speech
    return next((reason.name for reason in REASONS if reason.sign.search(bare)), "")


MOST_TEXT = 20_000
"""Characters of one message that are read; nobody types more."""
MOST_SENTENCES = 40
"""A message with more sentences was pasted: only its first and last ones are looked at."""
EDGE_SENTENCES = 3
MOST_WORDS = 60
"""A sentence with more words is no single statement, unless somebody asks to keep it."""

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


PINNED = any_of(r"^(?:please )?pin(?: (?:this|that)\b[:,]?|:) ?(?=\S)")
"""Asks to pin what follows; to pin the version of a package is a task."""
ASKED = any_of(
    r"^(?:please |pls |and |also )*"
    r"(?:remember|note|keep in mind|bear in mind|don't forget|do not forget|make a note"
    r"|for the record|for (?:future )?reference|memo|important|fyi)\b"
    r"(?: (?:for|to) (?:later|the future|yourself)\b)?"
    r"(?! (?:to|when|me|how|the time|this|it)\b) ?(?:that\b)?[:,!]? ?"
)
"""Asks outright to keep what follows; `remember to` is a task."""


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
            bare = opening_off(said)
            is_asked = PINNED.match(bare) or ASKED.match(bare)
            if not said or (len(said.split()) > MOST_WORDS and not is_asked):
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
    """Return a text without what is between the tags of a host, one search for each tag."""
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


_PATH = re.compile(
    r"(?<![\w/@:.-])(?:\.?[A-Za-z_][\w-]*/)+(?:[\w.-]*\w)?"
    r"|\b[\w-]+\.(?:py|pyi|js|mjs|jsx|ts|tsx|go|rs|rb|java|kt|c|h|cc|cpp|cs|php|sh|sql|md|rst|toml"
    r"|yaml|yml|json|ini|cfg|css|scss|html|vue|svelte|tf|proto|graphql|lock)\b"
    r"|\b(?:Dockerfile|Makefile|Jenkinsfile|Cargo\.toml|go\.mod)\b"
)
_SUBJECTS = frozenset(tables.words("sessions/subjects"))
MOST_FILES = 8
MOST_TAGS = 5


def paths_in(text: str) -> tuple[str, ...]:
    """Return the paths that a text names, in order; URLs are none."""
    found = (match[0].strip("/") for match in _PATH.finditer(text))
    return tuple(dict.fromkeys(path for path in found if not path.startswith("..")))[:MOST_FILES]


def tags_of(text: str) -> tuple[str, ...]:
    """Return the tools and subjects that a text names, sorted."""
    named = {word.strip("`*_\"'()[],;:.!").lower() for word in text.split()}
    return tuple(sorted(named & _SUBJECTS))[:MOST_TAGS]


def content_words(text: str) -> list[str]:
    """Return the words of a text that have a meaning of their own, as the index writes them."""
    return [term for term in terms(text) if not is_stop(term)]


def sentence(text: str) -> str:
    """Return a text as one sentence: a capital first, a full stop at the end."""
    text = " ".join(text.split()).strip(" ,;:-")
    first, _space, _rest = text.partition(" ")
    if text[:1].islower() and first.isalpha():
        text = text[0].upper() + text[1:]
    return text if text.endswith((".", "!", "`.")) else f"{text}."
