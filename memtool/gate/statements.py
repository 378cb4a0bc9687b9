"""Statements: the sentences by which a memory says what holds, taken apart so that two compare.

A statement has a sign (it says yes or no), a subject (its terms without the words of the tables
below) and values in slots. Only title, opening text and the chosen option are read: the rest of
a memory weighs alternatives, and those would oppose everything.
"""

from __future__ import annotations

from memtool.gate.quantities import measure
from memtool.memory import moments
from memtool.search.terms import is_stop, terms
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.memory.memory import Memory

TYPES = ("decision", "semantic")
"""Types whose memories can contradict each other: a trace or a state was true at its time."""
CHOSEN = ("chosen", "decision", "rule")
"""Headings, lower case, whose text says what holds."""
MOST_STATEMENTS = 40
"""Of one memory: the first ones."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEGATORS = _words("not no never cannot avoid avoids avoiding neither nor none without")
"""Each turns the sign of its clause; so do words that end in n't, and `stop` before a verb."""
OPPOSITES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("enable", ("enable", "enables", "enabled", "enabling", "activate", "activated"),
     ("disable", "disables", "disabled", "disabling", "deactivate", "deactivated")),
    ("allow", ("allow", "allows", "allowed", "permit", "permits", "permitted"),
     ("forbid", "forbids", "forbidden", "prohibit", "prohibits", "prohibited", "ban", "banned",
      "disallow", "disallowed", "deny", "denied")),
    ("add", ("add", "adds", "added", "adding", "include", "includes", "included", "keep", "keeps"),
     ("remove", "removes", "removed", "removing", "exclude", "excludes", "excluded", "drop",
      "drops", "dropped", "delete", "deletes", "deleted")),
    ("require", ("require", "requires", "required", "mandatory", "obligatory", "compulsory"),
     ("optional", "unnecessary", "voluntary")),
    ("accept", ("accept", "accepts", "accepted"),
     ("reject", "rejects", "rejected", "refuse", "refuses", "refused")),
    ("synchronous", ("synchronous", "synchronously", "sync"),
     ("asynchronous", "asynchronously", "async")),
    ("public", ("public",), ("private",)),
    ("mutable", ("mutable",), ("immutable",)),
)  # fmt: skip
"""Concept, words that affirm it, words that deny it."""
WEAK = _words(
    "use uses used using adopt adopts adopted choose chooses chosen prefer prefers preferred favor"
    " favour always must should shall need needs needed have has may can could would ought please"
    " every all each any only just ever we you it they also still be is are was were been being"
    " do does did at let's"
)
"""Words that say how strongly, not what: they are no part of a subject."""
PREFERRING = _words("prefer prefers preferred favor favour favors choose chooses")
EXCEPTIONS = _words("except unless otherwise")
"""A sentence with an exception states something finer than its first clause: it is left out."""
_ENDS_CLAUSE = _words("because since so but whereas although though while which where")
_OPENS_CONTEXT = _words("in on for with since at when if from within during under inside")
_ENDS_CHOICE = _words("for in on when if with at within during as")
_LEADS_TO_PATH = _words("in from at to under into is are be named called = :")
_COUNTED = _words(
    "issue ticket pr step phase sprint chapter section part item figure table row line incident"
    " attempt round week day stage"
)
"""A number behind one of these words names a thing, and is no value of it."""
_NO_KEYS = _words("note todo fixme see example fix command failure http https warning")
_SIGNS = {word: (concept, 1) for concept, yes, _no in OPPOSITES for word in yes} | {
    word: (concept, -1) for concept, _yes, no in OPPOSITES for word in no
}
_TURNS = _words("turn turns turned switch switched")
_CHOOSING = _words("instead rather over")
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
    if _CHOOSING.isdisjoint(clause):
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


def _plain(word: str) -> str:
    """Return a word in lower case without what stands around it."""
    return word.strip(_EDGES).replace("\u2019", "'").rstrip(".").lower()


def _is_named(words: list[str], at: int) -> bool:
    """Tell whether a number is a name, as in `step 3` or `since version 2`."""
    before, farther = words[at - 1] if at else "", words[at - 2] if at > 1 else ""
    return before in _COUNTED or (before == "version" and farther in _OPENS_CONTEXT)


def _is_stopping(word: str, after: str) -> bool:
    return word in ("stop", "stops", "stopped") and after.endswith("ing")


def _is_path(word: str) -> bool:
    if _is_date(word) or "://" in word:
        return False
    _stem, dot, ending = word.rpartition(".")
    return "/" in word or (bool(dot) and 1 <= len(ending) <= 5 and ending.isalnum())


def _is_date(word: str) -> bool:
    try:
        moments.start(word)
    except ValueError:
        return False
    return True
