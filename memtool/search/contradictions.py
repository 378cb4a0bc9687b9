"""Contradictions: memories whose title or first sentence may not both hold.

Two tests, by words alone: one says yes and the other no to the same subject, or both give one
thing two values. They read English, and find what two people put in nearly the same words, which
is about half of what contradicts. Each finding asks a person to look, so a sentence that hedges,
asks, or names an exception states nothing here, and a number that names a thing is no value.

A contradiction is *certain* if the two statements are the same but for the sign or for one value,
and nothing else in title or first sentence sets the memories apart; any other one is *suspected*.
What is certain is marked wherever the memories are shown, what is suspected is counted and listed.
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
MOST_QUOTED = 100
"""Characters of a sentence in a reason."""
LEAST_FOR_EXTRA = 3
"""Terms that the narrower of two subjects needs before the other may have one more."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEGATORS = _words("never cannot avoid avoids avoiding")
"""Each turns the sign of its clause; so do words that end in n't, `not` behind an auxiliary,
`no` at the start, `no longer`, and `stop` before a verb."""
_AUXILIARY = _words(
    "do does did is are was were be been must should shall can may will would need has have"
)
_IN_PHRASE = _words("none neither nor without")
"""They deny a part of the sentence, and nobody can tell which by words alone."""
_STOPPING = _words("stop stops stopped")
_TURNS = _words("turn turns turned switch switched")
_HEDGES = _words(
    "except unless otherwise only if whether maybe perhaps possibly probably might could seems"
)
"""A sentence with one of them states something finer than a sign or a value."""
_ENDS_CLAUSE = _words("because since so but whereas although though while which where")
_OPENS_CONTEXT = _words("in on for with since at when from within during under inside")
_ENDS_CHOICE = _words("for in on when with at within during as")
_CHOOSING = _words("instead rather over")
_DENYING = _words("never not")
_PLACING = _words("to into in with from by through via over on at")
MOST_DENIED = 7
"""Words behind the comma of `…, never to Z`; what is longer says more than that."""
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
"""Words that say how strongly, not what: they are no part of a subject."""

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
"""Units in lower case and singular: what they measure, and how much of its base unit."""
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
"""Behind one of these words a bare number is a value; behind any other it names a thing."""
_TAKES_VERSION = _words("use uses require requires need needs adopt target targets support")
"""`use node 20` gives a version; `node 20 builds` and `team 1 owns` name what they speak of."""
_LEADS_TO_PATH = _words("in from at to under into is are be named called = :")

_DEPENDING = frozenset(
    [*NEGATORS, *_IN_PHRASE, *_SIGNS, *_TURNS, *_STOPPING, *_NUMBERS, "on", "off", "not", "no"]
)
"""Words of letters alone whose part in a statement depends on the words around them."""
_EDGES = "`*_\"'()[]<>,;:!?\u201c\u201d\u2018\u2019\u00ab\u00bb"


_ARTICLES = _words("a an the")
_QUANTIFIERS = _words("all every each just")
"""Weak words that say of how much something holds."""
_ASKING = _words("what how why who whether when")
"""What follows one of these is a clause of its own."""
_DENY_NOUNS = _words("no avoid avoids avoiding")
_PRONOUNS = _words("it they this that these those them its their here there he she")
_CODE = frozenset("()[]{}|<>=+\\")
"""Characters of code and of asides; a statement with one is compared with care."""
_GOES_ON = _words("because since so and it they that")
"""What follows the clause and begins with one of these says more, and limits nothing."""
_NEED = _words("need needs needed have has required requires")
"""`need not` denies that something must be, and not that it is."""
_PAST = _words(
    "was were did had been took lasted went came ran got grew rose fell saw hit cost failed crashed"
)
_DIRECTING = _words(
    "use uses used adopt adopts adopted choose prefer always must should have has allow allows"
    " allowed"
)
"""They make a decision of a noun: `mocks` is a heading."""
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
"""Opposites of which one denies the other; `add` and `remove` may both be done."""
MOMENT_DIGITS = 10
"""A number of so many digits is a moment in seconds, or an id."""
CERTAIN_VALUES = frozenset({"time", "size", "share", "number"})


class Statement(Value):
    """One sentence, taken apart. `sign` is 1 or -1.

    `concept` is a row of the opposites, `=` for a setting written as `key: value`, or empty.
    `subject` are the terms without the words of the tables; `values` are (kind, value) in order,
    kinds those of a quantity, or `path`, and `spelled` is how the text has them.

    `clause` are the words in lower case that state it, none if the sentence says more than that.
    """

    text: str
    sign: int
    concept: str
    subject: frozenset[str]
    values: tuple[Quantity, ...] = ()
    spelled: tuple[str, ...] = ()
    clause: tuple[str, ...] = ()


class Frame(Value):
    """What a statement is about, in order: its terms without sign, and the kinds of its values.

    `first` is its first word, `negator` the word that denies it, and `is_command` tells whether
    that comes first, as in `never do it`.
    """

    terms: tuple[str, ...]
    negator: str = ""
    first: str = ""
    is_command: bool = False


_DROPPED = (_WEAK | _ARTICLES) - _QUANTIFIERS
"""Words that are no part of a frame."""


class Contradiction(Value):
    """Two memories, by their place in the list that was asked, and the sentences that differ.

    `certainty` is `certain` or `suspected`. `topic` is the same for all that contradict each other
    about one thing. `values` is what each of them gives it, empty where it is no value.
    """

    one: int
    other: int
    kind: str
    reason: str
    topic: str
    values: tuple[str, ...] = ()
    certainty: str = SUSPECTED


def between(one: Memory, other: Memory) -> Contradiction | None:
    """Return the first contradiction of two memories, None where both can hold."""
    return next(iter(find((one, other))), None)


def find(
    memories: Sequence[Memory],
    stated: Iterable[Sequence[Statement]] = (),
    most: int = sys.maxsize,
    is_late: Callable[[], bool] = lambda: False,
) -> list[Contradiction]:
    """Return every two memories that may contradict each other, once each, in the list's order.

    `stated` is what each of them states, where that is known already. Of memories that state the
    same thing each meets only so many that state the contrary: where thousands do, their pairs are
    too many, and with the first of them each is met. Once `is_late` says so no more are compared.
    """
    groups: dict[tuple[str, frozenset[str]], list[tuple[int, Statement]]] = {}
    for at, said in enumerate(stated or map(statements, memories)):
        for statement in said:
            groups.setdefault((statement.concept, statement.subject), []).append((at, statement))
    found: dict[tuple[int, int], Contradiction] = {}
    for (concept, subject), group in groups.items():
        if is_late():
            break
        _meet(memories, group, group, found, most, is_late)
        for term in subject if len(subject) > LEAST_FOR_EXTRA else ():
            narrower = groups.get((concept, subject - {term}))
            if narrower:
                _meet(memories, narrower, group, found, most, is_late)
    return [found[pair] for pair in sorted(found)]


def _meet(
    memories: Sequence[Memory],
    some: Sequence[tuple[int, Statement]],
    others: Sequence[tuple[int, Statement]],
    found: dict[tuple[int, int], Contradiction],
    most: int,
    is_late: Callable[[], bool],
) -> None:
    """Add the contradictions between statements of nearly one subject.

    What says the same is compared as one, so that many equal memories cost no more than few.
    """
    for one, other in product(_alike(some), _alike(others)):
        if is_late():
            return
        kind = kind_of(one[0][1], other[0][1])
        pairs = chain(product(one, other[:most]), product(one[:most], other[most:]))
        for (at, mine), (other_at, theirs) in pairs if kind else ():
            pair = (min(at, other_at), max(at, other_at))
            if at == other_at or (pair in found and found[pair].certainty == CERTAIN):
                continue
            is_certain = _says_the_contrary(mine, theirs, kind) and not (
                _is_apart(memories[at], memories[other_at], mine, theirs)
            )
            if pair in found and not is_certain:
                continue
            if len(mine.subject) == 1 and not _is_related(memories[at], memories[other_at]):
                continue
            first, second = (mine, theirs) if at < other_at else (theirs, mine)
            found[pair] = Contradiction(
                *pair,
                kind,
                f"{_quoted(first)} against {_quoted(second)}",
                " ".join([first.concept, *sorted(first.subject & second.subject)]),
                _differing(first, second) if kind == VALUES else (),
                CERTAIN if is_certain else SUSPECTED,
            )


def _differing(one: Statement, other: Statement) -> tuple[str, str]:
    """Return the value that two statements do not share, as each spells it."""
    pairs = zip(one.values, other.values, strict=True)
    at = next(number for number, (mine, theirs) in enumerate(pairs) if mine != theirs)
    return one.spelled[at], other.spelled[at]


def _alike(group: Sequence[tuple[int, Statement]]) -> list[list[tuple[int, Statement]]]:
    """Return the statements of a group in runs that compare in the same way."""
    found: dict[tuple[object, ...], list[tuple[int, Statement]]] = {}
    for at, one in group:
        key = (one.sign, one.values, one.subject, _is_claim(one))
        found.setdefault(key, []).append((at, one))
    return list(found.values())


def kind_of(one: Statement, other: Statement) -> str:
    """Return `opposition`, `values`, or an empty text where both statements can hold."""
    extra = one.subject ^ other.subject
    if one.concept != other.concept or len(extra) > 1:
        return ""
    if extra and min(len(one.subject), len(other.subject)) < LEAST_FOR_EXTRA:
        return ""
    if one.sign != other.sign:
        is_same = one.values == other.values or not one.values or not other.values
        return OPPOSITION if is_same else ""
    if extra or not (_is_claim(one) and _is_claim(other)):
        return ""
    kinds = [kind for kind, _value in one.values]
    if kinds != [kind for kind, _value in other.values]:
        return ""
    pairs = zip(one.values, other.values, strict=True)
    return VALUES if sum(mine != theirs for mine, theirs in pairs) == 1 else ""


def _says_the_contrary(one: Statement, other: Statement, kind: str) -> bool:
    """Tell whether two statements are the same but for the sign, or for one value."""
    frame, other_frame = _frame(one), _frame(other)
    if not frame.terms or frame.terms != other_frame.terms:
        return False
    words, other_words = (frozenset(map(_plain, side.text.split())) for side in (one, other))
    code = () if one.concept == "=" else one.text + other.text
    if (
        not _CODE.isdisjoint(code)
        or (words | other_words) & (_PRONOUNS | _ASKING)
        or words & _PERFECT != other_words & _PERFECT
        or any(_lacks_subject(side, frame) for side in (one, other))
    ):
        return False
    if kind == VALUES:
        return _gives_other_value(one, other, words | other_words)
    if one.sign < 0:
        frame, other_frame, words, other_words = other_frame, frame, other_words, words
    is_same = (
        one.concept in CERTAIN_CONCEPTS or words & _SIGNS.keys() == other_words & _SIGNS.keys()
    )
    is_same &= one.values == other.values
    return is_same and _is_denied(frame, other_frame, words, other_words, one.concept)


def _gives_other_value(one: Statement, other: Statement, words: frozenset[str]) -> bool:
    """Tell whether two statements of one frame give a thing two values that cannot both hold."""
    is_given = all(map(_is_given, one.values, other.values, one.spelled, other.spelled))
    is_named = any(word.startswith("v") or word.count(".") > 1 for word in one.spelled)
    if not is_given or (is_named and words.isdisjoint(_TAKES_VERSION | {"version"})):
        return False
    is_heading = one.concept != "=" and words.isdisjoint(_VERBS)
    return not (is_heading or words & (_ADDS | _PAST | {"from"}))


def _is_denied(
    affirmed: Frame, denied: Frame, yes: frozenset[str], no: frozenset[str], concept: str
) -> bool:
    """Tell whether a sentence with the words `no` denies all that one with the words `yes` says."""
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
    """Tell whether a sentence leaves out what it is about: `Can be empty`, `Keep under 72`."""
    words = list(map(_plain, statement.text.split()))
    first = words[0]
    has_verb = any(word in _VERBS and before != "to" for before, word in pairwise(words))
    is_opened = (first.endswith("ing") and not has_verb) or (first in _SIGNS and first[-1] in "ds")
    is_opened |= first in (_AUXILIARY - {"do"} | {"cannot", "can't"}) or first[:1] in _DIGITS
    has_participle = any(word.endswith("ed") and word in _SIGNS for word in words)
    is_verbless = has_participle and _AUXILIARY.isdisjoint(words)
    return is_opened or is_verbless or _is_dangling(statement, frame)


def _is_dangling(statement: Statement, frame: Frame) -> bool:
    """Tell whether a verb comes without the object that it is about, as in `Listen on port 80`."""
    leads = _PLACING | _OPENS_CONTEXT | _LIMITING
    if not statement.clause or statement.clause[0] in leads:
        return False
    second = frame.terms[1:2] if statement.clause[0] == frame.first else ()
    return not leads.isdisjoint((frame.terms[0], *second))


def _is_given(mine: Quantity, theirs: Quantity, spelled: str, other_spelled: str) -> bool:
    """Tell whether a value is one that somebody chose: paths may both hold, 4.42 s was measured."""
    if mine == theirs:
        return True
    is_measured = mine[0] == "time" and "." in spelled + other_spelled
    is_measured |= mine[0] == "number" and max(map(len, (mine[1], theirs[1]))) >= MOMENT_DIGITS
    return mine[0] in CERTAIN_VALUES and not is_measured and not _is_equal(mine[1], theirs[1])


def _is_equal(value: str, other: str) -> bool:
    """Tell whether two numbers are one: `0.40` and `0.4`, if they are no versions."""
    return max(value.count("."), other.count(".")) < 2 and float(value) == float(other)


def _is_apart(one: Memory, other: Memory, mine: Statement, theirs: Statement) -> bool:
    """Tell whether what two memories say beside their statements may keep them from clashing.

    They govern other files, hold in other places, or one of them limits or names what it speaks of
    in words that the other does not have.
    """
    from memtool.store.files import governs  # most memories contradict none

    for key in ("environment", "domain", "feature"):
        if one.text(key) != other.text(key) and one.text(key) and other.text(key):
            return True
    files, other_files = one.items("files"), other.items("files")
    if (
        files
        and other_files
        and not any(
            governs(file, path) or governs(path, file) for file in files for path in other_files
        )
    ):
        return True
    return _says_more(one, mine, other) or _says_more(other, theirs, one)


def _says_more(memory: Memory, said: Statement, other: Memory) -> bool:
    """Tell whether title or first sentence of a memory limit what it states.

    They do not where the other memory says the same there but for the sign or a value.
    """
    title, sentence = _first_sentence(memory.title), _first_sentence(memory.paragraph)
    own = said.subject | _values_of(said)
    shared = own | _all_terms(other.title) | _all_terms(_first_sentence(other.paragraph))
    frames = {_frame(one).terms for one in (said, *statements(other))} - {()}
    for text in {title, sentence} - {said.text, ""}:
        found = _all_terms(text)
        if not _HEDGES.isdisjoint(map(_plain, text.split())):
            return True
        if text == title and said.concept != "=" and not found <= shared:
            return True
        is_restated = any(
            one is not None and _frame(one).terms in frames for one in _of_sentence(text)
        )
        if said.subject <= found and not (found <= own or is_restated):
            return True
    return False


def _all_terms(text: str) -> frozenset[str]:
    """Return the terms of a text that are part of a subject."""
    plain = (_plain(word) for word in text.split())
    return frozenset(term for word in plain if word not in _DEPENDING for term in _content(word))


def _values_of(said: Statement) -> frozenset[str]:
    return frozenset(
        term for value in said.spelled for word in value.split() for term in terms(word)
    )


def _is_claim(statement: Statement) -> bool:
    """Tell whether a value is given to something: `Python Release Schedule` only names it.

    Nor is it where a memory speaks of itself, as `This page lists ...` does.
    """
    words = statement.text.split()
    first = words[0].lower()
    is_sentence = first in _TAKES_VERSION or any(word[0].islower() for word in words)
    return statement.concept == "=" or (first != "this" and is_sentence)


def _is_related(one: Memory, other: Memory) -> bool:
    """Tell whether two memories share a file, a tag, or a word of their titles.

    Only then is a subject of one term the same in both.
    """
    mine, theirs = (
        (memory.items("files"), memory.items("tags"), _content(memory.title))
        for memory in (one, other)
    )
    return any(not set(some).isdisjoint(others) for some, others in zip(mine, theirs, strict=True))


def _quoted(statement: Statement) -> str:
    text = statement.text
    text = text if len(text) <= MOST_QUOTED else text[: MOST_QUOTED - 1] + "…"
    return f'"{text.rstrip(".")}"'


def statements(memory: Memory) -> tuple[Statement, ...]:
    """Return what a memory states in its title and its first sentence, without repeats.

    A digest that memtool wrote states nothing but what its sources state, and traces and states
    were true at their time.
    """
    if memory.type not in TYPES or is_generated(memory):
        return ()
    found: dict[Statement, None] = {}
    for sentence in dict.fromkeys(
        (_first_sentence(memory.title), _first_sentence(memory.paragraph))
    ):
        for statement in _of_sentence(sentence):
            if statement is not None and statement.subject:
                found.setdefault(statement)
    return tuple(found)


def _first_sentence(text: str) -> str:
    """Return a text up to the first mark that ends a sentence, without the bullet of a list."""
    text = text.strip()
    text = text[2:] if text.startswith(("- ", "* ", "+ ")) else text
    ends = [at for mark in (". ", "! ", "? ", "; ") if (at := text.find(mark)) >= 0]
    return text[: min(ends) + 1] if ends else text


def _of_sentence(sentence: str) -> Iterator[Statement | None]:
    """Yield what a sentence states: one thing, two for a choice, nothing where it is no claim."""
    setting = _setting(sentence)
    if setting is not None:
        yield setting
        return
    words = sentence.split()
    plain = [_plain(word) for word in words]
    if (
        not words
        or sentence.endswith(("?", ":"))
        or not _HEDGES.isdisjoint(plain)
        or "{" in sentence
    ):
        return
    length = _clause_length(words, plain)
    clause, rest = plain[:length], plain[length:]
    choice = _choice(clause)
    if choice is None:
        stated = _statement(sentence, clause, 1)
        is_whole = not rest or rest[0] in _GOES_ON
        yield stated.replace(clause=tuple(clause)) if stated and is_whole else stated
        denied = _denied(clause, rest)
        if denied:
            yield _statement(sentence, denied, -1)
    else:
        chosen, passed, context = choice
        yield _statement(sentence, [*chosen, *context], 1)
        yield _statement(sentence, [*passed, *context], -1)


def _setting(line: str) -> Statement | None:
    """Read `key_name: 88` or `key.name = 30 s`: a key of several parts that gets a quantity."""
    left, mark, right = line.partition("=")
    if not mark:
        left, mark, right = line.partition(":")
    key, value = left.strip(" *`\"'"), right.strip(" `\"';,.").lower()
    if not (key and value) or not all(c.isalnum() or c in "_.-" for c in key):
        return None
    word, _space, unit = value.partition(" ")
    measured, width = measure(word, unit)
    if measured is None or (unit and width != 2) or not any(c in "_.-" for c in key):
        return None
    # Such a line of a file is about whatever is above it.
    is_code = "-" in key or not {line[:1], right.strip()[:1]}.isdisjoint("'\"")
    subject = frozenset(terms(key))
    return Statement(line, 1, "=", subject, (measured,), (value,), () if is_code else (key,))


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
        if word == "over" and _PREFERRING.intersection(clause[:at]):
            width = 1
        if width and at:
            rest = range(at + width, len(clause))
            ends = next((n for n in rest if clause[n] in _ENDS_CHOICE), len(clause))
            return clause[:at], clause[at + width : ends], clause[ends:]
    return None


def _denied(clause: list[str], rest: list[str]) -> list[str]:
    """Return what `X to Y, never to Z` denies, `X to Z`; empty where nothing like it follows."""
    if len(rest) < 3 or rest[0] not in _DENYING or len(rest) > MOST_DENIED:
        return []
    preposition, after = rest[1], rest[2:]
    if preposition not in _PLACING or preposition not in clause or "" in after:
        return []
    return [*clause[: clause.index(preposition) + 1], *after]


def _statement(text: str, plain: list[str], sign: int) -> Statement | None:
    """Take a clause apart by the tables; None where it denies only a part of itself."""
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
            subject += _content(word)
            continue
        before = plain[at - 1] if at else ""
        after = plain[at + 1] if at + 1 < len(plain) else ""
        measured, width = measure(word, after)
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
            subject += _content(word) if measured is None else (word,)
    return Statement(text, sign, concept, frozenset(subject), tuple(values), tuple(spelled))


def _frame(statement: Statement) -> Frame:
    """Return what a statement is about, in order; no terms if its sentence says more."""
    clause = list(statement.clause)
    if statement.concept == "=":
        return Frame(tuple(sorted(statement.subject)) if clause else ())
    found: list[str] = []
    negator = first = ""
    is_command = False
    passed = 0
    is_turned = not _TURNS.isdisjoint(clause)
    for at, word in enumerate(clause):
        if at < passed or word in ("", *_SIGNS) or (is_turned and word in ("on", "off", *_TURNS)):
            continue
        before = clause[at - 1] if at else ""
        after = clause[at + 1] if at + 1 < len(clause) else ""
        measured, width = measure(word, after)
        if _denies(clause, at):
            negator, is_command = f"{before} {word}" if before == "may" else word, not first
            passed = at + (2 if word == "no" and after == "longer" else 1)
        elif measured is not None and not _is_name(clause, at, width, measured):
            found.append(f"#{measured[0]}")
            passed = at + width
        elif word not in _DROPPED:
            found += _content(word) or (word,)
            first = first or word
    return Frame(tuple(found), negator, first, is_command)


def _denies(plain: list[str], at: int) -> bool:
    """Tell whether a word turns the sign of its whole clause."""
    word, before = plain[at], plain[at - 1] if at else ""
    after = plain[at + 1] if at + 1 < len(plain) else ""
    if word == "not":
        return before in _AUXILIARY
    if word == "no":
        return not at or after == "longer"
    is_stopping = word in _STOPPING and after.endswith("ing")
    return word in NEGATORS or word.endswith("n't") or is_stopping


def _is_name(plain: list[str], at: int, width: int, measured: Quantity) -> bool:
    """Tell whether a number names a thing, as in `team 1`, `sprint 12`, `python 3.12` and `2026`.

    One with a unit is a value anywhere. A bare one is behind a word that gives numbers, where it
    is the version that something is to use, or where what it names is the only one of its kind.
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
_MOST_KNOWN = 1 << 16


def _content(text: str) -> tuple[str, ...]:
    """Return the terms of a text that are part of a subject; nearly all are asked for again."""
    found = _known_words.get(text)
    if found is None:
        if len(_known_words) >= _MOST_KNOWN:
            _known_words.clear()
        is_weak = text in _WEAK
        found = () if is_weak else tuple(term for term in terms(text) if not is_stop(term))
        _known_words[text] = found
    return found


def _plain(word: str) -> str:
    """Return a word in lower case without the marks around it."""
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


def measure(word: str, after: str = "") -> tuple[Quantity | None, int]:
    """Return what a word measures, or None, and how many words that takes: `10MB` 1, `10 MB` 2.

    Both words are in lower case. `1 min` and `60 s` are the same, `3.10` and `3.1` are not.
    """
    is_number = word[:1] in _DIGITS or word[:1] in _BOUNDS or word in _NUMBERS
    if not word or len(word) > _LONGEST_NUMBER or not is_number:
        return None, 0
    digits, rest = _split(str(_NUMBERS.get(word, word.lstrip(_BOUNDS))))
    if not digits:
        return None, 0
    is_version = digits.count(".") > 1
    unit = None if is_version else _unit(rest or after)
    if rest:
        return (_scaled(digits, unit), 1) if unit else (None, 0)
    return (_scaled(digits, unit), 2) if unit else (("number", digits), 1)


def _unit(word: str) -> tuple[str, float] | None:
    return _UNITS.get(word.removesuffix("s") if len(word) > 2 else word)


def _scaled(digits: str, unit: tuple[str, float]) -> Quantity:
    return unit[0], f"{float(digits) * unit[1]:.12g}"


def _split(word: str) -> tuple[str, str]:
    """Split a number, with points and thousands' commas, from what follows it."""
    at = 0
    while at < len(word) and (word[at] in _DIGITS or word[at] in ".,"):
        at += 1
    digits = word[:at].replace(",", "").rstrip(".")
    is_number = digits[:1] in _DIGITS and ".." not in digits if digits else False
    return (digits, word[at:]) if is_number else ("", word)
