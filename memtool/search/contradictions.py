"""Contradictions: memories whose title or first sentence may not both hold.

There are two tests, by words alone: one memory says yes and the other no to the same subject, or
both give one thing two values. They read English, and detect contradictions in nearly the same
words, which is about half of all. Each one asks a person to look. So a sentence that hedges, asks,
or names an exception states nothing here, and a number that names a thing is not a value.

A contradiction is *certain* if the two statements are the same except for the sign or for one
value, and nothing else in title or first sentence sets the memories apart; any other is
*suspected*. Certain ones are marked wherever the memories are shown, suspected ones are counted and
listed.
"""

from __future__ import annotations

import sys
from itertools import chain, pairwise, product

from memtool.index.analyzer import is_stop, terms
from memtool.memory import timestamps
from memtool.memory.memory import is_generated
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from memtool.memory.memory import Memory

    Quantity = tuple[str, str]
    """A kind (`time`, `size`, `share`, `number`) and the value in its base unit."""

OPPOSITION = "opposition"
VALUES = "values"
CERTAIN = "certain"
SUSPECTED = "suspected"
TYPES = ("decision", "semantic")
"""Types whose memories can contradict each other: a trace or a state was true at its time."""
MAX_QUOTED = 100
"""Characters of a sentence in a reason."""
MIN_FOR_EXTRA = 3
"""Terms that the narrower of two subjects needs before the other may have one more."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEGATORS = _words("never cannot avoid avoids avoiding")
"""Each reverses the sign of its clause. So do `n't`, `not` after an auxiliary, `no` at the start,
`no longer`, and `stop` before a verb."""
_AUXILIARY = _words(
    "do does did is are was were be been must should shall can may will would need has have"
)
_IN_PHRASE = _words("none neither nor without")
"""They deny a part of the sentence, and words alone do not show which."""
_STOPPING = _words("stop stops stopped")
_TURNS = _words("turn turns turned switch switched")
_HEDGES = _words(
    "except unless otherwise only if whether maybe perhaps possibly probably might could seems"
)
"""A sentence with one of them states something subtler than a sign or a value."""
_ENDS_CLAUSE = _words("because since so but whereas although though while which where")
_OPENS_CONTEXT = _words("in on for with since at when from within during under inside")
_ENDS_CHOICE = _words("for in on when with at within during as")
_CHOOSING = _words("instead rather over")
_DENYING = _words("never not")
_PLACING = _words("to into in with from by through via over on at")
MAX_DENIED = 7
"""Words after the comma of `…, never to Z`; a longer clause says more than that."""
_PREFERRING = _words("prefer prefers preferred favor favour favors choose chooses")
_CONCEPTS: dict[str, tuple[str, str]] = {
    "enable": (
        "enable enables enabled enabling activate activated",
        "disable disables disabled disabling deactivate deactivated",
    ),
    "allow": (
        "allow allows allowed permit permits permitted",
        """forbid forbids forbidden prohibit prohibits prohibited ban banned disallow
              disallowed deny denied""",
    ),
    "add": (
        "add adds added adding include includes included keep keeps",
        """remove removes removed removing exclude excludes excluded drop drops dropped delete
            deletes deleted""",
    ),
    "require": (
        "require requires required mandatory obligatory compulsory",
        "optional unnecessary voluntary",
    ),
    "accept": ("accept accepts accepted", "reject rejects rejected refuse refuses refused"),
}
"""Concept: words that affirm it, words that deny it."""
_SIGNS = {word: (concept, 1) for concept, (yes, _no) in _CONCEPTS.items() for word in yes.split()}
_SIGNS |= {word: (concept, -1) for concept, (_yes, no) in _CONCEPTS.items() for word in no.split()}
_WEAK = _words(
    "use uses used using adopt adopts adopted choose chooses chosen prefer prefers preferred favor"
    " favour always must should shall need needs needed have has may can could would ought please"
    " every all each any just ever we you it they also still be is are was were been being do does"
    " did at let's"
)
"""Words of degree that are not part of a subject."""

_UNITS: dict[str, tuple[str, float]] = {
    "ms": ("time", 0.001),
    "millisecond": ("time", 0.001),
    "s": ("time", 1),
    "sec": ("time", 1),
    "second": ("time", 1),
    "min": ("time", 60),
    "minute": ("time", 60),
    "h": ("time", 3600),
    "hour": ("time", 3600),
    "day": ("time", 86_400),
    "week": ("time", 604_800),
    "b": ("size", 1),
    "byte": ("size", 1),
    "kb": ("size", 1e3),
    "mb": ("size", 1e6),
    "gb": ("size", 1e9),
    "tb": ("size", 1e12),
    "kib": ("size", 2**10),
    "mib": ("size", 2**20),
    "gib": ("size", 2**30),
    "%": ("share", 0.01),
    "percent": ("share", 0.01),
}
"""Units in lower case and singular: the quantity, and the factor to its base unit."""
_COUNTS = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBERS: dict[str, int] = {word: number for number, word in enumerate(_COUNTS.split())} | {
    "fifteen": 15,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "ninety": 90,
    "hundred": 100,
    "thousand": 1000,
    "million": 1_000_000,
}
_LONGEST_NUMBER = 24
_DIGITS = frozenset("0123456789")
_BOUNDS = "v^~=><"
_YEARS = range(1900, 2101)
_GIVES_NUMBER = _words(
    "is are be to of by least most than exactly max min maximum minimum limit port have has had"
    " need needs = up every after within under over about allow allows require requires"
)
"""After one of these words a bare number is a value; after any other it names a thing."""
_TAKES_VERSION = _words("use uses require requires need needs adopt target targets support")
"""`use node 20` gives a version; `node 20 builds` and `team 1 owns` name their subject."""
_LEADS_TO_PATH = _words("in from at to under into is are be named called = :")

_DEPENDING = frozenset(
    [*NEGATORS, *_IN_PHRASE, *_SIGNS, *_TURNS, *_STOPPING, *_NUMBERS, "on", "off", "not", "no"]
)
"""Words of letters alone whose part in a statement depends on the words around them."""
_EDGES = "`*_\"'()[]<>,;:!?\u201c\u201d\u2018\u2019\u00ab\u00bb"


_ARTICLES = _words("a an the")
_QUANTIFIERS = _words("all every each just")
"""Weak words for how much of something a statement covers."""
_ASKING = _words("what how why who whether when")
"""Each begins a clause of its own."""
_DENY_NOUNS = _words("no avoid avoids avoiding")
_PRONOUNS = _words("it they this that these those them its their here there he she")
_CODE = frozenset("()[]{}|<>=+\\")
"""Characters of code and of asides; a statement with one is compared with care."""
_GOES_ON = _words("because since so and it they that")
"""If one of these begins the text after the clause, that text limits nothing."""
_NEED = _words("need needs needed have has required requires")
"""`need not` denies that something must be, and not that it is."""
_PAST = _words(
    "was were did had been took lasted went came ran got grew rose fell saw hit cost failed crashed"
)
_DIRECTING = _words(
    "use uses used adopt adopts adopted choose prefer always must should have has allow allows"
    " allowed"
)
"""They turn a noun into a decision: `mocks` alone is a heading."""
_LIMITING = _words("under over below above after before per up")
_PERFECT = _PAST | _words("have has")
_BASE_VERBS = """
accept add allow answer apply ask attend backup become begin bill bind block build cache call
cancel cap change charge check clean close collect commit compress contain cover create delay
delete deliver deploy drop end exceed exit expire fail fetch finish flush follow give go grow
handle hold ignore import keep kill last limit listen live load lock log look lose make mark merge
migrate move need nest open parse pass pay pin poll process publish pull purge push read receive
refresh refund reject release remove renew repeat replace report reserve reset respond restart
retain retry return review rotate round run sample save scale scan schedule send serve set ship
shut sign sleep span spend split squash start stay stop store sync take test throttle time trigger
truncate update upload wait warn write
"""
_VERBS = (
    (_AUXILIARY | _words(_BASE_VERBS) | _words("use uses adopt prefer choose takes goes"))
    | {f"{word}s" for word in _BASE_VERBS.split()}
    | {f"{word}es" for word in _BASE_VERBS.split()}
    | {f"{word[:-1]}ies" for word in _BASE_VERBS.split() if word.endswith("y")}
    | {"limited", "capped", "lasts", "nesting"}
)
"""A sentence without one of them is taken for a heading."""
_ADDS = _words("support supports supported target targets include includes including also another")
"""With one of these both values may hold."""
CERTAIN_CONCEPTS = ("", "enable")
"""Concepts whose opposites exclude each other; `add` and `remove` may both be done."""
MOMENT_DIGITS = 10
"""A number of this many digits is a time in seconds, or an id."""
CERTAIN_VALUES = frozenset({"time", "size", "share", "number"})


class Statement(Value):
    """One parsed sentence. `sign` is 1 or -1.

    `concept` is a row of the opposites, `=` for a setting written as `key: value`, or empty.
    `subject` are the terms without the words of the tables. `values` are (kind, value) in order,
    where the kind is that of a quantity, or `path`; `spelled` has them as written.

    `clause` are its words in lower case, empty if the sentence says more than one clause.
    """

    text: str
    sign: int
    concept: str
    subject: frozenset[str]
    values: tuple[Quantity, ...] = ()
    spelled: tuple[str, ...] = ()
    clause: tuple[str, ...] = ()


class Frame(Value):
    """The subject of a statement, in order: its terms without sign, and the kinds of its values.

    `first` is its first word, `negator` the word that denies it, and `is_command` is set if that
    comes first, as in `never do it`.
    """

    terms: tuple[str, ...]
    negator: str = ""
    first: str = ""
    is_command: bool = False


_DROPPED = (_WEAK | _ARTICLES) - _QUANTIFIERS
"""Words that are not part of a frame."""


class Contradiction(Value):
    """Two memories, by their position in the list that was compared, and the sentences that differ.

    `certainty` is `certain` or `suspected`. `topic` is the same for all contradictions about one
    thing. `values` are the values that the two memories give it, empty without values.
    """

    first: int
    other: int
    kind: str
    reason: str
    topic: str
    values: tuple[str, ...] = ()
    certainty: str = SUSPECTED


def find_between(memory: Memory, other: Memory) -> Contradiction | None:
    """Return the first contradiction of two memories, None if both can hold."""
    return next(iter(find((memory, other))), None)


def find(
    memories: Sequence[Memory],
    stated: Iterable[Sequence[Statement]] = (),
    max_pairs: int = sys.maxsize,
    is_late: Callable[[], bool] = lambda: False,
) -> list[Contradiction]:
    """Return all pairs of memories that may contradict each other, in the order of the list.

    `stated` has the statements of each, if known. Of memories with the same statement, each is
    paired with at most `max_pairs` contrary ones: thousands would make too many pairs, and each is
    still paired with the first of them. Comparison stops once `is_late` returns true.
    """
    groups: dict[tuple[str, frozenset[str]], list[tuple[int, Statement]]] = {}
    for at, own_statements in enumerate(stated or map(parse_statements, memories)):
        for statement in own_statements:
            groups.setdefault((statement.concept, statement.subject), []).append((at, statement))
    contradictions: dict[tuple[int, int], Contradiction] = {}
    for (concept, subject), group in groups.items():
        if is_late():
            break
        _find_meeting(memories, group, group, contradictions, max_pairs, is_late)
        for term in subject if len(subject) > MIN_FOR_EXTRA else ():
            narrower = groups.get((concept, subject - {term}))
            if narrower:
                _find_meeting(memories, narrower, group, contradictions, max_pairs, is_late)
    return [contradictions[pair] for pair in sorted(contradictions)]


def _find_meeting(
    memories: Sequence[Memory],
    some: Sequence[tuple[int, Statement]],
    other_statements: Sequence[tuple[int, Statement]],
    contradictions: dict[tuple[int, int], Contradiction],
    max_pairs: int,
    is_late: Callable[[], bool],
) -> None:
    """Add the contradictions between statements of nearly one subject.

    Equal statements are compared as one, so that many equal memories cost no more than few.
    """
    for index, other in product(_group_alike(some), _group_alike(other_statements)):
        if is_late():
            return
        kind = classify(index[0][1], other[0][1])
        pairs = chain(
            product(index, other[:max_pairs]), product(index[:max_pairs], other[max_pairs:])
        )
        for (at, mine), (other_at, theirs) in pairs if kind else ():
            pair = (min(at, other_at), max(at, other_at))
            if at == other_at or (
                pair in contradictions and contradictions[pair].certainty == CERTAIN
            ):
                continue
            is_certain = _says_the_contrary(mine, theirs, kind) and not (
                _is_apart(memories[at], memories[other_at], mine, theirs)
            )
            if pair in contradictions and not is_certain:
                continue
            if len(mine.subject) == 1 and not _is_related(memories[at], memories[other_at]):
                continue
            first, second = (mine, theirs) if at < other_at else (theirs, mine)
            contradictions[pair] = Contradiction(
                *pair,
                kind,
                f"{_quote(first)} against {_quote(second)}",
                " ".join([first.concept, *sorted(first.subject & second.subject)]),
                _find_differing(first, second) if kind == VALUES else (),
                CERTAIN if is_certain else SUSPECTED,
            )


def _find_differing(statement: Statement, other: Statement) -> tuple[str, str]:
    """Return the value in which two statements differ, as each spells it."""
    pairs = zip(statement.values, other.values, strict=True)
    at = next(number for number, (mine, theirs) in enumerate(pairs) if mine != theirs)
    return statement.spelled[at], other.spelled[at]


def _group_alike(group: Sequence[tuple[int, Statement]]) -> list[list[tuple[int, Statement]]]:
    """Group the statements that compare in the same way."""
    groups: dict[tuple[object, ...], list[tuple[int, Statement]]] = {}
    for at, first in group:
        key = (first.sign, first.values, first.subject, _is_claim(first))
        groups.setdefault(key, []).append((at, first))
    return list(groups.values())


def classify(statement: Statement, other: Statement) -> str:
    """Return `opposition`, `values`, or an empty text if both statements can hold."""
    extra = statement.subject ^ other.subject
    if statement.concept != other.concept or len(extra) > 1:
        return ""
    if extra and min(len(statement.subject), len(other.subject)) < MIN_FOR_EXTRA:
        return ""
    if statement.sign != other.sign:
        is_same = statement.values == other.values or not statement.values or not other.values
        return OPPOSITION if is_same else ""
    if extra or not (_is_claim(statement) and _is_claim(other)):
        return ""
    kinds = [kind for kind, _value in statement.values]
    if kinds != [kind for kind, _value in other.values]:
        return ""
    pairs = zip(statement.values, other.values, strict=True)
    return VALUES if sum(mine != theirs for mine, theirs in pairs) == 1 else ""


def _says_the_contrary(statement: Statement, other: Statement, kind: str) -> bool:
    """Return whether two statements are the same except for the sign, or for one value."""
    frame, other_frame = _find_frame(statement), _find_frame(other)
    if not frame.terms or frame.terms != other_frame.terms:
        return False
    words, other_words = (
        frozenset(map(_to_plain, side.text.split())) for side in (statement, other)
    )
    code = () if statement.concept == "=" else statement.text + other.text
    if (
        not _CODE.isdisjoint(code)
        or (words | other_words) & (_PRONOUNS | _ASKING)
        or words & _PERFECT != other_words & _PERFECT
        or any(_lacks_subject(side, frame) for side in (statement, other))
    ):
        return False
    if kind == VALUES:
        return _gives_other_value(statement, other, words | other_words)
    if statement.sign < 0:
        frame, other_frame, words, other_words = other_frame, frame, other_words, words
    is_same = (
        statement.concept in CERTAIN_CONCEPTS
        or words & _SIGNS.keys() == other_words & _SIGNS.keys()
    )
    is_same &= statement.values == other.values
    return is_same and _is_denied(frame, other_frame, words, other_words, statement.concept)


def _gives_other_value(statement: Statement, other: Statement, words: frozenset[str]) -> bool:
    """Return whether two statements of one frame give a thing two values that cannot both hold."""
    is_given = all(map(_is_given, statement.values, other.values, statement.spelled, other.spelled))
    is_named = any(word.startswith("v") or word.count(".") > 1 for word in statement.spelled)
    if not is_given or (is_named and words.isdisjoint(_TAKES_VERSION | {"version"})):
        return False
    is_heading = statement.concept != "=" and words.isdisjoint(_VERBS)
    return not (is_heading or words & (_ADDS | _PAST | {"from"}))


def _is_denied(
    affirmed: Frame, denied: Frame, yes: frozenset[str], no: frozenset[str], concept: str
) -> bool:
    """Return whether a sentence with the words `no` fully denies one with the words `yes`."""
    is_partial = "always" in no and denied.negator != "never"
    if is_partial or denied.negator.startswith("may ") or no & _NEED > yes & _NEED:
        return False
    is_same_word = affirmed.first == denied.first
    is_short = len(denied.terms) == 1
    if is_short and not is_same_word:
        return False
    if is_short or denied.negator in _DENY_NOUNS:
        return concept == "enable" or not yes.isdisjoint(_DIRECTING)
    is_sentence = bool(yes & (_WEAK | _SIGNS.keys() | _TURNS))
    return is_sentence or (denied.is_command and is_same_word)


def _lacks_subject(statement: Statement, frame: Frame) -> bool:
    """Return whether a sentence leaves out its subject: `Can be empty`, `Keep under 72`."""
    words = list(map(_to_plain, statement.text.split()))
    first = words[0]
    has_verb = any(word in _VERBS and before != "to" for before, word in pairwise(words))
    is_opened = (first.endswith("ing") and not has_verb) or (first in _SIGNS and first[-1] in "ds")
    is_opened |= first in (_AUXILIARY - {"do"} | {"cannot", "can't"}) or first[:1] in _DIGITS
    has_participle = any(word.endswith("ed") and word in _SIGNS for word in words)
    is_verbless = has_participle and _AUXILIARY.isdisjoint(words)
    return is_opened or is_verbless or _is_dangling(statement, frame)


def _is_dangling(statement: Statement, frame: Frame) -> bool:
    """Return whether a verb lacks its object, as in `Listen on port 80`."""
    leads = _PLACING | _OPENS_CONTEXT | _LIMITING
    if not statement.clause or statement.clause[0] in leads:
        return False
    second = frame.terms[1:2] if statement.clause[0] == frame.first else ()
    return not leads.isdisjoint((frame.terms[0], *second))


def _is_given(mine: Quantity, theirs: Quantity, spelled: str, other_spelled: str) -> bool:
    """Return whether a value was chosen: paths may both hold, and 4.42 s was measured."""
    if mine == theirs:
        return True
    is_measured = mine[0] == "time" and "." in spelled + other_spelled
    is_measured |= mine[0] == "number" and max(map(len, (mine[1], theirs[1]))) >= MOMENT_DIGITS
    return mine[0] in CERTAIN_VALUES and not is_measured and not _is_equal(mine[1], theirs[1])


def _is_equal(value: str, other: str) -> bool:
    """Return whether two numbers are equal: `0.40` and `0.4`, unless they are versions."""
    return max(value.count("."), other.count(".")) < 2 and float(value) == float(other)


def _is_apart(memory: Memory, other: Memory, mine: Statement, theirs: Statement) -> bool:
    """Return whether other fields or words of two memories may keep them from conflicting.

    They govern different files, hold in different places, or one of them has limiting or naming
    words that the other lacks.
    """
    from memtool.store.files import matches_or_contains  # most memories contradict none

    for key in ("environment", "domain", "feature"):
        if memory.text(key) != other.text(key) and memory.text(key) and other.text(key):
            return True
    files, other_files = memory.items("files"), other.items("files")
    if (
        files
        and other_files
        and not any(
            matches_or_contains(file, path) or matches_or_contains(path, file)
            for file in files
            for path in other_files
        )
    ):
        return True
    return _says_more(memory, mine, other) or _says_more(other, theirs, memory)


def _says_more(memory: Memory, statement: Statement, other: Memory) -> bool:
    """Return whether title or first sentence of a memory limit its statement.

    They do not if the other memory says the same there except for the sign or a value.
    """
    title, sentence = _first_sentence(memory.title), _first_sentence(memory.paragraph)
    own = statement.subject | _value_terms(statement)
    shared = own | _subject_terms(other.title) | _subject_terms(_first_sentence(other.paragraph))
    frames = {_find_frame(sentence).terms for sentence in (statement, *parse_statements(other))} - {
        ()
    }
    for text in {title, sentence} - {statement.text, ""}:
        sentence_terms = _subject_terms(text)
        if not _HEDGES.isdisjoint(map(_to_plain, text.split())):
            return True
        if text == title and statement.concept != "=" and not sentence_terms <= shared:
            return True
        is_restated = any(
            sentence is not None and _find_frame(sentence).terms in frames
            for sentence in _parse_sentence(text)
        )
        if statement.subject <= sentence_terms and not (sentence_terms <= own or is_restated):
            return True
    return False


def _subject_terms(text: str) -> frozenset[str]:
    """Return the terms of a text that are part of a subject."""
    plain = (_to_plain(word) for word in text.split())
    return frozenset(
        term for word in plain if word not in _DEPENDING for term in _find_content(word)
    )


def _value_terms(statement: Statement) -> frozenset[str]:
    return frozenset(
        term for value in statement.spelled for word in value.split() for term in terms(word)
    )


def _is_claim(statement: Statement) -> bool:
    """Return whether a value is given to something: `Python Release Schedule` only names it.

    A memory about itself, as in `This page lists ...`, gives none either.
    """
    words = statement.text.split()
    first = words[0].lower()
    is_sentence = first in _TAKES_VERSION or any(word[0].islower() for word in words)
    return statement.concept == "=" or (first != "this" and is_sentence)


def _is_related(memory: Memory, other: Memory) -> bool:
    """Return whether two memories share a file, a tag, or a word of their titles.

    Only then does a subject of one term mean the same in both.
    """
    mine, theirs = (
        (memory.items("files"), memory.items("tags"), _find_content(memory.title))
        for memory in (memory, other)
    )
    return any(
        not set(some).isdisjoint(other_words)
        for some, other_words in zip(mine, theirs, strict=True)
    )


def _quote(statement: Statement) -> str:
    text = statement.text
    text = text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 1] + "…"
    return f'"{text.rstrip(".")}"'


def parse_statements(memory: Memory) -> tuple[Statement, ...]:
    """Return the statements in a memory's title and first sentence, without repeats.

    A generated digest states nothing beyond its sources, and traces and states were true at their
    time.
    """
    if memory.type not in TYPES or is_generated(memory):
        return ()
    statements: dict[Statement, None] = {}
    for sentence in dict.fromkeys(
        (_first_sentence(memory.title), _first_sentence(memory.paragraph))
    ):
        for statement in _parse_sentence(sentence):
            if statement is not None and statement.subject:
                statements.setdefault(statement)
    return tuple(statements)


def _first_sentence(text: str) -> str:
    """Return a text up to the end of its first sentence, without a list bullet."""
    text = text.strip()
    text = text[2:] if text.startswith(("- ", "* ", "+ ")) else text
    ends = [at for mark in (". ", "! ", "? ", "; ") if (at := text.find(mark)) >= 0]
    return text[: min(ends) + 1] if ends else text


def _parse_sentence(sentence: str) -> Iterator[Statement | None]:
    """Yield the statements of a sentence: one, two for a choice, none if it is not a claim."""
    setting = _parse_setting(sentence)
    if setting is not None:
        yield setting
        return
    words = sentence.split()
    plain = [_to_plain(word) for word in words]
    if (
        not words
        or sentence.endswith(("?", ":"))
        or not _HEDGES.isdisjoint(plain)
        or "{" in sentence
    ):
        return
    length = _clause_length(words, plain)
    clause, tail = plain[:length], plain[length:]
    choice = _parse_choice(clause)
    if choice is None:
        stated = _parse_statement(sentence, clause, 1)
        is_whole = not tail or tail[0] in _GOES_ON
        yield stated.replace(clause=tuple(clause)) if stated and is_whole else stated
        denied = _find_denied(clause, tail)
        if denied:
            yield _parse_statement(sentence, denied, -1)
    else:
        chosen, passed, context = choice
        yield _parse_statement(sentence, [*chosen, *context], 1)
        yield _parse_statement(sentence, [*passed, *context], -1)


def _parse_setting(line: str) -> Statement | None:
    """Parse `key_name: 88` or `key.name = 30 s`: a key of several parts with a quantity."""
    key_text, mark, right = line.partition("=")
    if not mark:
        key_text, mark, right = line.partition(":")
    key, value = key_text.strip(" *`\"'"), right.strip(" `\"';,.").lower()
    if not (key and value) or not all(c.isalnum() or c in "_.-" for c in key):
        return None
    word, _space, unit = value.partition(" ")
    measured, width = parse_measure(word, unit)
    if measured is None or (unit and width != 2) or not any(c in "_.-" for c in key):
        return None
    # Such a line of a file is about the section above it.
    is_code = "-" in key or not {line[:1], right.strip()[:1]}.isdisjoint("'\"")
    subject = frozenset(terms(key))
    return Statement(line, 1, "=", subject, (measured,), (value,), () if is_code else (key,))


def _clause_length(words: list[str], plain: list[str]) -> int:
    """Count the words up to the first comma or conjunction, except in openings (`In CI,`)."""
    for at, word in enumerate(plain):
        if at and word in _ENDS_CLAUSE:
            return at
        is_opening = plain[0] in _OPENS_CONTEXT and at < 5
        if words[at][-1] in ",:" and not is_opening:
            return at + 1
    return len(plain)


def _parse_choice(clause: list[str]) -> tuple[list[str], list[str], list[str]] | None:
    """Split `X instead of Y for Z` into X, Y and Z."""
    if _CHOOSING.isdisjoint(clause):
        return None
    for at, word in enumerate(clause):
        after = clause[at + 1] if at + 1 < len(clause) else ""
        width = 2 if (word, after) in (("instead", "of"), ("rather", "than")) else 0
        if word == "over" and _PREFERRING.intersection(clause[:at]):
            width = 1
        if width and at:
            following = range(at + width, len(clause))
            ends = next((n for n in following if clause[n] in _ENDS_CHOICE), len(clause))
            return clause[:at], clause[at + width : ends], clause[ends:]
    return None


def _find_denied(clause: list[str], following: list[str]) -> list[str]:
    """Return the clause denied by `X to Y, never to Z`, `X to Z`; empty if there is none."""
    if len(following) < 3 or following[0] not in _DENYING or len(following) > MAX_DENIED:
        return []
    preposition, after = following[1], following[2:]
    if preposition not in _PLACING or preposition not in clause or "" in after:
        return []
    return [*clause[: clause.index(preposition) + 1], *after]


def _parse_statement(text: str, plain: list[str], sign: int) -> Statement | None:
    """Parse a clause by the tables; None if it denies only a part of itself."""
    concept = ""
    subject: list[str] = []
    values: list[Quantity] = []
    spelled: list[str] = []
    passed = 0
    is_turned = not _TURNS.isdisjoint(plain)
    for at, word in enumerate(plain):
        if at < passed or not word:
            continue
        if word.isalpha() and word not in _DEPENDING:
            subject += _find_content(word)
            continue
        before = plain[at - 1] if at else ""
        after = plain[at + 1] if at + 1 < len(plain) else ""
        measured, width = parse_measure(word, after)
        if is_turned and (word in ("on", "off") or word in _TURNS):
            concept, sign = "enable", -sign if word == "off" else sign
        elif _denies(plain, at):
            sign = -sign
            passed = at + (2 if word == "no" and after == "longer" else 1)
        elif word in ("not", "no") or word in _IN_PHRASE:
            return None
        elif word in _SIGNS:
            concept, factor = _SIGNS[word]
            sign *= factor
        elif measured is not None and not _is_name(plain, at, width, measured):
            values.append(measured)
            passed = at + width
            spelled.append(" ".join(plain[at:passed]))
        elif before in _LEADS_TO_PATH and _is_path(word):
            values.append(("path", word.rstrip("/")))
            spelled.append(word)
        else:
            subject += _find_content(word) if measured is None else (word,)
    return Statement(text, sign, concept, frozenset(subject), tuple(values), tuple(spelled))


def _find_frame(statement: Statement) -> Frame:
    """Return the subject of a statement, in order; no terms if its sentence says more."""
    clause = list(statement.clause)
    if statement.concept == "=":
        return Frame(tuple(sorted(statement.subject)) if clause else ())
    frame: list[str] = []
    negator = first = ""
    is_command = False
    passed = 0
    is_turned = not _TURNS.isdisjoint(clause)
    for at, word in enumerate(clause):
        if at < passed or word in ("", *_SIGNS) or (is_turned and word in ("on", "off", *_TURNS)):
            continue
        before = clause[at - 1] if at else ""
        after = clause[at + 1] if at + 1 < len(clause) else ""
        measured, width = parse_measure(word, after)
        if _denies(clause, at):
            negator, is_command = f"{before} {word}" if before == "may" else word, not first
            passed = at + (2 if word == "no" and after == "longer" else 1)
        elif measured is not None and not _is_name(clause, at, width, measured):
            frame.append(f"#{measured[0]}")
            passed = at + width
        elif word not in _DROPPED:
            frame += _find_content(word) or (word,)
            first = first or word
    return Frame(tuple(frame), negator, first, is_command)


def _denies(plain: list[str], at: int) -> bool:
    """Return whether a word reverses the sign of its whole clause."""
    word, before = plain[at], plain[at - 1] if at else ""
    after = plain[at + 1] if at + 1 < len(plain) else ""
    if word == "not":
        return before in _AUXILIARY
    if word == "no":
        return not at or after == "longer"
    is_stopping = word in _STOPPING and after.endswith("ing")
    return word in NEGATORS or word.endswith("n't") or is_stopping


def _is_name(plain: list[str], at: int, width: int, measured: Quantity) -> bool:
    """Return whether a number names a thing, as in `team 1`, `sprint 12`, `python 3.12` and `2026`.

    With a unit it is always a value. A bare number is one after a word that gives numbers, as a
    version to use, or if the thing that it names is the only one of its kind.
    """
    kind, digits = measured
    if kind != "number":
        return False
    if digits.isdigit() and len(digits) == 4 and int(digits) in _YEARS:
        return True
    before, farther = plain[at - 1] if at else "", plain[at - 2] if at > 1 else ""
    is_only = plain[at + width : at + width + 2] in (["is", "the"], ["are", "the"])
    return not (before in _GIVES_NUMBER or (before and farther in _TAKES_VERSION) or is_only)


_known_words: dict[str, tuple[str, ...]] = {}
_MAX_KNOWN = 1 << 16


def _find_content(text: str) -> tuple[str, ...]:
    """Return the terms of a text that are part of a subject, cached because words repeat."""
    content = _known_words.get(text)
    if content is None:
        if len(_known_words) >= _MAX_KNOWN:
            _known_words.clear()
        is_weak = text in _WEAK
        content = () if is_weak else tuple(term for term in terms(text) if not is_stop(term))
        _known_words[text] = content
    return content


def _to_plain(word: str) -> str:
    """Return a word in lower case without the punctuation around it."""
    if word.isalpha():
        return word.lower()
    return word.strip(_EDGES).replace("\u2019", "'").rstrip(".").lower()


def _is_path(word: str) -> bool:
    if "://" in word or "{" in word:
        return False
    try:
        timestamps.start(word)
    except ValueError:
        _stem, dot, ending = word.rpartition(".")
        return "/" in word or (bool(dot) and 1 <= len(ending) <= 5 and ending.isalnum())
    return False  # a date


def parse_measure(word: str, after: str = "") -> tuple[Quantity | None, int]:
    """Return the quantity that a word gives, or None, and its words: `10MB` has 1, `10 MB` 2.

    Both words are in lower case. `1 min` and `60 s` are the same, `3.10` and `3.1` are not.
    """
    is_number = word[:1] in _DIGITS or word[:1] in _BOUNDS or word in _NUMBERS
    if not word or len(word) > _LONGEST_NUMBER or not is_number:
        return None, 0
    digits, unit_text = _split(str(_NUMBERS.get(word, word.lstrip(_BOUNDS))))
    if not digits:
        return None, 0
    is_version = digits.count(".") > 1
    unit = None if is_version else _parse_unit(unit_text or after)
    if unit_text:
        return (_scale(digits, unit), 1) if unit else (None, 0)
    return (_scale(digits, unit), 2) if unit else (("number", digits), 1)


def _parse_unit(word: str) -> tuple[str, float] | None:
    return _UNITS.get(word.removesuffix("s") if len(word) > 2 else word)


def _scale(digits: str, unit: tuple[str, float]) -> Quantity:
    return unit[0], f"{float(digits) * unit[1]:.12g}"


def _split(word: str) -> tuple[str, str]:
    """Split a number, with points and thousands' commas, from the text after it."""
    at = 0
    while at < len(word) and (word[at] in _DIGITS or word[at] in ".,"):
        at += 1
    digits = word[:at].replace(",", "").rstrip(".")
    is_number = digits[:1] in _DIGITS and ".." not in digits if digits else False
    return (digits, word[at:]) if is_number else ("", word)
