"""What a commit message says beyond its change: a decision, a revert, a break, or what is meant so.

A message gives at most one statement, by the words of `data/commit_words.tsv`. Most sentences that
say why, or what was used instead of what, end with the change: less than half of them told a
reviewer anything. So a choice counts only if its sentence says that it is deliberate, and then why;
and a revert only if it says what was wrong.
"""

from __future__ import annotations

import re

from memtool import tables
from memtool.sessions.model import MAX_CONTENT_CHARS, make_printable
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_MESSAGE_CHARS = 20_000
"""Characters of a message that are read: what matters is in its first lines."""
MAX_TITLE_CHARS = 100
MIN_WORDS, MAX_WORDS = 12, 70
"""Words of a sentence that states a choice: a shorter one lacks a part, a longer one is a list."""
MIN_CHARS = 30
"""Characters of a sentence in a script without spaces."""
MIN_REASON_WORDS = 10
"""Words of the reason for a revert: fewer only repeat the subject."""
MAX_CODE_MARKS = 8
"""Back-ticks of a sentence; one with more describes code line by line."""

TRAILER, REVERT, CHOICE, BREAK = "decision", "revert", "choice", "breaking change"
"""The kinds of statements."""
WEIGHTS = {TRAILER: 5, REVERT: 4, CHOICE: 3, BREAK: 2}
"""What is offered first."""


class Statement(Value):
    """What a message states, and its subject, each in one printable line."""

    kind: str
    title: str
    text: str
    weight: int


class Undoing(Value):
    """What a revert takes back: ids of commits, perhaps short, and the subject of one."""

    commits: tuple[str, ...] = ()
    subject: str = ""


def _compile(kind: str) -> re.Pattern[str]:
    """Compile a pattern of all words of a kind; words with spaces around them are matched whole."""
    parts = []
    for word in _WORDS[kind]:
        part = rf"(?<![\w-]){re.escape(word)}(?![\w/-])" if _has_spaces(word) else re.escape(word)
        parts.append(part if word != word.lower() else f"(?i:{part})")
    return re.compile("|".join(parts))


def _has_spaces(text: str) -> bool:
    """Return whether the script of a text puts spaces between words."""
    return all(ord(char) < 0x2E80 for char in text)


_WORDS = tables.group_rows("importing/commit_words")
_INTENT, _CAUSE, _RULE = _compile("intent"), _compile("cause"), _compile("rule")
_REMARK, _MINOR, _ACCIDENT = _compile("remark"), _compile("minor"), _compile("accident")
_HARM, _TRAILER = _compile("harm"), _compile("trailer")
_SINCE = re.compile(
    r"\bsince(?= (?:then|day|version|commit|v?\d|[0-9a-f]{7}))|\bever since", re.IGNORECASE
)
"""A time and no cause."""
_PREFIX = re.compile(r"[\w./-]{1,40}(?:\([^()]{1,60}\))?!?: +|\[[^\]]{1,40}\] *")
_NUMBER = re.compile(r" *\((?:#|!)\d+\)$")
_REVERT = re.compile(
    r"(?:[\w./-]{1,40}(?:\([^()]{1,60}\))?!?: +)?(?:revert(?:s|ed)?\b|reapply \")", re.IGNORECASE
)
_QUOTED = re.compile(r'revert:? "(.+)"', re.IGNORECASE)
_UNDONE = re.compile(
    r"this (?:partially |partly )?reverts? (?:commits? |[a-z ]{0,20})?([0-9a-f]{7,64})"
)
_REPEATS = re.compile(
    r"(?:this |partial )?(?:partially )?revert|[a-z]+(?:\([^()]*\))?!?: ", re.IGNORECASE
)
_BARE = re.compile(r"This reverts commits? [0-9a-f]{7,64}(?:\.|$)", re.IGNORECASE)
_QUOTE = re.compile(r'".*"')
_IDS = re.compile(r"\b[0-9a-f]{7,64}\b")
_BREAK = re.compile(r"BREAKING[ -]CHANGES?: *(.*)")
_OWN = re.compile(r"^(?:Memory-[A-Z][a-z]+|Maintain|Purges): ", re.MULTILINE)
_TAG = re.compile(r"[A-Z][\w]*(?:-[\w]+)+: ")
_POINTER = re.compile(
    r"(?:close[sd]?|fix(?:e[sd])?|refs?|resolve[sd]?|see|part of|related|issue|pr|cc|link)\b"
    r"[: ].{0,20}(?:#|https?:|[A-Z]+-)\d*|https?:|\(cherry picked",
    re.IGNORECASE,
)
_PASTED = ("    ", "\t", ">", "|", "#", "[", "$ ", "---", "===", "***", "<", "diff ", "Conflicts:")
_FENCES = ("```", "~~~")
_BULLET = re.compile(r" {0,3}(?:[-*+•]|\d{1,2}[.)]) +")
_END = re.compile(r"(?<=[.!?])[\"')`]* (?=[\"'`(]?[A-ZÀ-ÞА-Я`])|(?<=。)")


def read_statement(message: str) -> Statement | None:
    """Return what a message states beyond its change; None if it states nothing.

    A commit of memtool itself states nothing: its memories do.
    """
    subject, body = _split(message)
    kind, text = _find_statement(subject, body)
    title = _clean_title(subject)
    if not (text and title) or _OWN.search(body):
        return None
    return Statement(kind, title, text, WEIGHTS[kind])


def _find_statement(subject: str, body: str) -> tuple[str, str]:
    """Return kind and text of the first statement; an empty text if there is none."""
    text = _find_trailer(body)
    if text:
        return TRAILER, text
    # Without an empty line below, the first line is no subject.
    is_formed = body.startswith("\n")
    text = _find_revert_reason(subject, body) if is_formed else ""
    if text and not _MINOR.search(subject):
        return REVERT, text
    text = _find_break(body)
    if text:
        return BREAK, text
    text = _find_choice(body) if is_formed and not _REVERT.match(subject) else ""
    return CHOICE, "" if text and _MINOR.search(subject) else text


def find_undoing(message: str) -> Undoing | None:
    """Return what a message takes back; None if it is not that of a revert."""
    subject, body = _split(message)
    first = body.strip().partition("\n\n")[0]
    if not (_REVERT.match(subject) or first.lower().startswith("this reverts")):
        return None
    undone = " ".join(body.split())
    match = _UNDONE.search(undone.lower())
    quoted = _QUOTED.match(_PREFIX.sub("", subject, count=1)) or _QUOTED.match(subject)
    # A reverted merge also names the commit from which it reverts.
    named = undone[match.start(1) :].partition("reversing")[0].partition(". ")[0] if match else ""
    return Undoing(tuple(_IDS.findall(named.lower())), quoted[1] if quoted else "")


def _split(message: str) -> tuple[str, str]:
    subject, _line, body = message[:MAX_MESSAGE_CHARS].strip().partition("\n")
    return subject.strip(), body.replace("\r", "")


def _clean_title(subject: str) -> str:
    """Return a subject as a title: without number, printable, and not too long."""
    title = " ".join(make_printable(_NUMBER.sub("", subject)).split())
    if len(title) <= MAX_TITLE_CHARS:
        return title
    cut = title[: MAX_TITLE_CHARS - 2]
    return f"{cut.rpartition(' ')[0] or cut} …"


def _clean_text(text: str) -> str:
    """Return a text as one printable line; empty if it is too long for a single statement."""
    line = " ".join(make_printable(text).split())
    return line if len(line) <= MAX_CONTENT_CHARS else ""


def _find_trailer(body: str) -> str:
    """Return the text of the last trailer that states a decision, and of its reason."""
    if not any(f"{word}:" in body for word in _WORDS["trailer"]):
        return ""
    values = dict(_list_fields(body, _TRAILER))
    text = " ".join(value if value[-1] in ".!?。" else f"{value}." for value in values.values())
    return _clean_text(text)


def _list_fields(body: str, key: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield key and value of lines `KEY: VALUE`; the value goes on to an empty line or a field."""
    lines = body.split("\n")
    for number, line in enumerate(lines):
        match = key.match(line)
        if match is None or line[match.end() : match.end() + 1] != ":":
            continue
        parts = [line[match.end() + 1 :]]
        for next_line in lines[number + 1 :]:
            is_field = _TAG.match(next_line) or re.match(r"[A-ZÀ-Þ][\wÀ-ÿ]+: ", next_line)
            if not next_line.strip() or is_field:
                break
            parts.append(next_line)
        value = " ".join(" ".join(parts).split())
        if value:
            yield match[0].lower(), value


def _find_break(body: str) -> str:
    """Return the text after BREAKING CHANGE, up to an empty line."""
    if "BREAKING" not in body:
        return ""
    lines = iter(body.split("\n"))
    for line in lines:
        match = _BREAK.match(line)
        if match is None:
            continue
        parts = [match[1]]
        for next_line in lines:
            if not next_line.strip():
                if any(parts):
                    break
            elif _TAG.match(next_line) or _POINTER.match(next_line):
                break
            else:
                parts.append(_BULLET.sub("", next_line))
        text = _clean_text(" ".join(parts))
        plain_words = [word for word in text.split() if word.strip(".,:;()").isalpha()]
        return text if len(plain_words) >= MIN_WORDS and _RULE.search(text) else ""
    return ""


def _find_revert_reason(subject: str, body: str) -> str:
    """Return what was wrong with what a commit reverts; empty if it does not tell."""
    if find_undoing(f"{subject}\n{body}") is None or _ACCIDENT.search(body):
        return ""
    sentences: list[str] = []
    for paragraph in _list_paragraphs(body):
        for sentence in _END.split(paragraph):
            reason = _BARE.sub("", sentence).strip()
            is_repeated = _REPEATS.match(reason) and not _HARM.search(_QUOTE.sub("", reason))
            if reason and not (is_repeated or reason.endswith(":") or reason.strip(".") in subject):
                sentences.append(reason)
        if sentences:
            break
    text = _fit(sentences)
    is_harm = _HARM.search(f"{_QUOTE.sub('', subject)} {text}")
    is_telling = is_harm and len(text.split()) >= MIN_REASON_WORDS
    return text if is_telling and not _MINOR.search(text) else ""


def _fit(sentences: list[str]) -> str:
    """Join as many sentences as fit into a statement."""
    text = ""
    for sentence in sentences:
        longer = _clean_text(f"{text} {sentence}")
        if not longer:
            break
        text = longer
    return text


def _find_choice(body: str) -> str:
    """Return the first sentence that states both a choice and its reason; empty if none does."""
    lowered = " ".join(body.lower().split())
    if not any(word in lowered for word in _WORDS["intent"]):
        return ""
    for paragraph in _list_paragraphs(body):
        for sentence in _END.split(paragraph):
            if _states_choice(sentence) and _is_single(sentence):
                return _clean_text(sentence)
    return ""


def _is_single(sentence: str) -> bool:
    """Return whether a sentence is long enough for two things, and no list, code or lead."""
    words = len(sentence.split())
    is_long = words >= MIN_WORDS or (not _has_spaces(sentence) and len(sentence) >= MIN_CHARS)
    is_short = words <= MAX_WORDS and sentence.count("`") <= MAX_CODE_MARKS
    return is_long and is_short and not sentence.endswith(":")


def _states_choice(sentence: str) -> bool:
    """Return whether a sentence states a choice, then its reason, about something that lasts."""
    intent = _INTENT.search(sentence)
    if intent is None or _MINOR.search(sentence) or _REMARK.search(sentence):
        return False
    return bool(_CAUSE.search(_SINCE.sub("", sentence[intent.end() :])))


def _list_paragraphs(body: str) -> Iterator[str]:
    """Yield the prose of a body: paragraphs and list items, each in one line.

    Code, quotes, tables, headings, comments of templates, trailers and pointers are left out.
    """
    lines: list[str] = []
    is_fenced = is_comment = False
    for line in (*body.split("\n"), ""):
        if line.lstrip().startswith(_FENCES):
            is_fenced = not is_fenced
            continue
        is_comment = (is_comment or line.startswith("<!--")) and "-->" not in line
        is_left_out = is_fenced or is_comment or line.startswith(_PASTED)
        if is_left_out or not line.strip() or _TAG.match(line) or _POINTER.match(line):
            if lines:
                yield " ".join(" ".join(lines).split())
            lines = []
            continue
        bullet = _BULLET.match(line)
        if bullet and lines:
            yield " ".join(" ".join(lines).split())
            lines = []
        lines.append(line[bullet.end() :] if bullet else line)
