"""Statements: the sentences by which a memory says what holds, taken apart so that two compare.

A statement has a sign (it says yes or no), a subject (its terms without the words of the tables
here and in `memory.signs`) and values in slots. Only title, opening text and the chosen option are
read: the rest of a memory weighs alternatives, and those would oppose everything.
"""

from __future__ import annotations

from memtool.gate.quantities import NUMBERS, measure
from memtool.memory import timestamps
from memtool.memory.signs import CHOOSING, NEGATORS, OPPOSITES, STOPPING, WEAK, word_set
from memtool.search.terms import is_stop, terms
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.memory.memory import Memory

CHOSEN = ("chosen", "decision", "rule")
"""Headings, lower case, whose text says what holds."""
MOST_STATEMENTS = 40
"""Of one memory: the first ones."""


PREFERRING = word_set("prefer prefers preferred favor favour favors choose chooses")
EXCEPTIONS = word_set("except unless otherwise")
"""A sentence with an exception states something finer than its first clause: it is left out."""
_ENDS_CLAUSE = word_set("because since so but whereas although though while which where")
_OPENS_CONTEXT = word_set("in on for with since at when if from within during under inside")
_ENDS_CHOICE = word_set("for in on when if with at within during as")
_LEADS_TO_PATH = word_set("in from at to under into is are be named called = :")
_COUNTED = word_set(
    "issue ticket pr step phase sprint chapter section part item figure table row line incident"
    " attempt round week day stage"
)
"""A number behind one of these words names a thing, and is no value of it."""
_NO_KEYS = word_set("note todo fixme see example fix command failure http https warning")
_SIGNS = {word: (concept, 1) for concept, yes, _no in OPPOSITES for word in yes} | {
    word: (concept, -1) for concept, _yes, no in OPPOSITES for word in no
}
_TURNS = word_set("turn turns turned switch switched")
_DEPENDING = frozenset([*NEGATORS, *_SIGNS, *_TURNS, *STOPPING, *NUMBERS, "on", "off"])
"""Words of letters alone whose part in a statement depends on what stands around them."""
_EDGES = "`*_\"'()[]{}<>,;:!?\u201c\u201d\u2018\u2019\u00ab\u00bb"


class Statement(Value):
    """One sentence, taken apart. `sign` is 1 or -1; `concept` a row of the opposites, or empty.

    `values` are (kind, value) in order; kinds are those of `quantities`, `path`, and `word` for the
    value of a key. `is_key` tells that it was written as `key: value`.
    """

    text: str
    sign: int
    concept: str
    subject: frozenset[str]
    values: tuple[tuple[str, str], ...] = ()
    is_key: bool = False


def statements(memory: Memory) -> tuple[Statement, ...]:
    """Return what a memory states, in reading order, without repeats."""
    found: dict[Statement, None] = {}
    for line in _lines(memory):
        key = _key(line)
        for statement in (key,) if key else _of_line(line):
            if statement.subject:
                found.setdefault(statement)
        if len(found) >= MOST_STATEMENTS:
            break
    return tuple(found)[:MOST_STATEMENTS]


def _lines(memory: Memory) -> Iterator[str]:
    """Yield title, paragraphs and list items of the opening and of the chosen option."""
    yield memory.title
    is_read = True
    paragraph: list[str] = []
    for line in [*memory.body.splitlines(), ""]:
        bare = line.strip()
        is_item = bare.startswith(("- ", "* ", "+ "))
        if paragraph and (not bare or is_item or bare.startswith("#") or _key(bare)):
            yield " ".join(paragraph)
            paragraph = []
        if bare.startswith("#"):
            is_read = bare.strip("# ").lower() in CHOSEN
        elif is_read and bare:
            paragraph.append(bare[2:] if is_item else bare)
            if _key(paragraph[-1]):
                yield paragraph.pop()


def _key(line: str) -> Statement | None:
    """Read `key: value` or `key = value` with one word on each side."""
    left, mark, right = line.partition("=")
    if not mark:
        left, mark, right = line.partition(":")
    key, value = left.strip(" -*`\"'"), right.strip(" `\"';,.")
    if not (mark and key and value) or not all(c.isalnum() or c in "_.-" for c in key):
        return None
    if key.lower() in _NO_KEYS or len(value.split()) > 2 or value.startswith(("//", "=", ":")):
        return None
    word, _space, unit = value.lower().partition(" ")
    measured, width = measure(word, unit)
    if " " in value and width != 2:
        return None
    subject = frozenset(terms(key))
    return Statement(line, 1, "", subject, (measured or ("word", value.lower()),), is_key=True)


def _of_line(line: str) -> Iterator[Statement]:
    for sentence in _sentences(line):
        words = sentence.split()
        plain = [_plain(word) for word in words]
        if not EXCEPTIONS.isdisjoint(plain):
            continue
        clause = plain[: _clause_length(words, plain)]
        split = _choice(clause)
        if split is None:
            yield _statement(sentence, clause, 1)
        else:
            chosen, passed, context = split
            yield _statement(sentence, [*chosen, *context], 1)
            yield _statement(sentence, [*passed, *context], -1)


def _sentences(line: str) -> Iterator[str]:
    """Yield the sentences of a line: a mark ends one only before a space."""
    start = 0
    for at in range(1, len(line)):
        if line[at] == " " and line[at - 1] in ".!?;":
            yield line[start:at].strip()
            start = at
    yield line[start:].strip()


def _clause_length(words: list[str], plain: list[str]) -> int:
    """Count the words up to the first comma or conjunction, over an opening such as `In CI,`."""
    for at, word in enumerate(plain):
        if at and word in _ENDS_CLAUSE:
            return at
        is_opening = plain[0] in _OPENS_CONTEXT and at < 5
        if words[at][-1] in ",:" and not is_opening:
            return at + 1
    return len(plain)


def _choice(clause: list[str]) -> tuple[list[str], list[str], list[str]] | None:
    """Split `X instead of Y for Z` into X, Y and Z."""
    if CHOOSING.isdisjoint(clause):
        return None
    for at, word in enumerate(clause):
        after = clause[at + 1] if at + 1 < len(clause) else ""
        width = 2 if (word, after) in (("instead", "of"), ("rather", "than")) else 0
        if word == "over" and PREFERRING.intersection(clause[:at]):
            width = 1
        if width and at:
            rest = range(at + width, len(clause))
            ends = next((n for n in rest if clause[n] in _ENDS_CHOICE), len(clause))
            return clause[:at], clause[at + width : ends], clause[ends:]
    return None


def _statement(text: str, plain: list[str], sign: int) -> Statement:
    """Take a clause apart by the tables."""
    concept = ""
    subject: list[str] = []
    values: list[tuple[str, str]] = []
    passed = 0
    is_turned = not _TURNS.isdisjoint(plain)
    for at, word in enumerate(plain):
        before = plain[at - 1] if at else ""
        after = plain[at + 1] if at + 1 < len(plain) else ""
        if at < passed or not word:
            continue
        simple = _simple(word)
        if simple is not None:
            subject += simple
            continue
        measured, width = (None, 0) if _is_named(plain, at) else measure(word, after)
        if is_turned and (word in ("on", "off") or word in _TURNS):
            concept, sign = "enable", -sign if word == "off" else sign
        elif word in NEGATORS or word.endswith("n't") or _is_stopping(word, after):
            sign = -sign
        elif word in _SIGNS:
            concept, factor = _SIGNS[word]
            sign *= factor
        elif measured is not None:
            values.append(measured)
            passed = at + width
        elif before in _LEADS_TO_PATH and _is_path(word):
            values.append(("path", word.rstrip("/")))
        elif word not in WEAK:
            subject += [term for term in terms(word) if not is_stop(term)]
    return Statement(text, sign, concept, frozenset(subject), tuple(values))


_simple_words: dict[str, tuple[str, ...] | None] = {}
_MOST_KNOWN = 1 << 16


def _simple(word: str) -> tuple[str, ...] | None:
    """Return what a word adds to a subject wherever it stands; None where that depends.

    Nearly all words are such, so this is remembered.
    """
    if word not in _simple_words:
        if len(_simple_words) >= _MOST_KNOWN:
            _simple_words.clear()
        is_free = word.isalpha() and word not in _DEPENDING
        if not is_free:
            _simple_words[word] = None
        elif word in WEAK:
            _simple_words[word] = ()
        else:
            _simple_words[word] = tuple(term for term in terms(word) if not is_stop(term))
    return _simple_words[word]


def _plain(word: str) -> str:
    """Return a word in lower case without what stands around it."""
    if word.isalpha():
        return word.lower()
    return word.strip(_EDGES).replace("\u2019", "'").rstrip(".").lower()


def _is_named(words: list[str], at: int) -> bool:
    """Tell whether a number is a name, as in `step 3` or `since version 2`."""
    before, farther = words[at - 1] if at else "", words[at - 2] if at > 1 else ""
    return before in _COUNTED or (before == "version" and farther in _OPENS_CONTEXT)


def _is_stopping(word: str, after: str) -> bool:
    return word in STOPPING and after.endswith("ing")


def _is_path(word: str) -> bool:
    if _is_date(word) or "://" in word:
        return False
    _stem, dot, ending = word.rpartition(".")
    return "/" in word or (bool(dot) and 1 <= len(ending) <= 5 and ending.isalnum())


def _is_date(word: str) -> bool:
    try:
        timestamps.start(word)
    except ValueError:
        return False
    return True
