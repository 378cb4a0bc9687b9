"""The query language: text to an expression.

What an expression means for a memory is in `filters`.

    query  := group ("OR" group)*          alternatives; OR binds loosest and is written in capitals
    group  := item*                        what stands side by side
    item   := ["-"] ( WORD | "PHRASE" | NAME:VALUE | NAME:"VALUE" | "(" query ")" )

- Words are ranked, not required: of the words of one group at least one has to occur, and what
  holds more of them, and rarer ones, comes first. A word that must occur is a phrase: `"redis"`.
- A phrase must occur as written, but for case, punctuation and white space. Its words rank too.
- Filters must hold, all filters of a group. A value with spaces is quoted: `error:"KeyError: X"`.
- `-` before a word, phrase, filter or parenthesis leaves out what matches it; such a word is taken
  literally, as a phrase is.
- `A OR B` takes what satisfies either group: `type:state OR type:decision redis` means all states,
  and decisions about redis.
- A parenthesis is a group of its own inside another, and has to be satisfied as a whole:
  `redis (cache OR session)` wants redis, and one of the two.

Not operators: a `-` or `(` inside a word (`pre-commit`, `main()`), a lone `-`, `--flag`, `or`, a
colon after anything but letters (`src/a.py:12`, `10:30`), `std::vector`, `https://…`, and a word
that ends in a colon without being the name of a filter (`KeyError:`).

What was meant as an operator and cannot be one (a quote or parenthesis without its partner, an
`OR` without two sides, a filter that nobody knows or that has no value) is a slip. Who lists or
forgets by filters is told so by an error, since a filter that is passed over lists too much. Who
searches has pasted a text, such as what a compiler said: there it is a word, and a note says so.
A filter with a typing error in its name, `typ:decision`, is an error for everybody.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory.fields import STATUSES, TYPES
from memtool.search.features import flat
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


FILTER_VALUES: dict[str, str] = {
    "type": "one or more of " + ", ".join(TYPES),
    "category": "rows of the category table",
    "tag": "a tag or a glob such as auth*",
    "file": "a path, a directory, a file name or a glob",
    "status": "one or more of " + ", ".join(STATUSES),
    "confidence": "low, medium or high, after >= <= > < if wanted",
    "importance": "0 to 1, after >= <= > < if wanted",
    "since": "a date, a moment, or an age such as 30d",
    "until": "a date, a moment, or an age such as 30d",
    "source": "a kind such as commit, or the beginning of a source",
    "author": "a part of a name",
    "error": "words of an error",
    "task": "a task or a glob",
    "session": "a session or a glob",
    "iteration": "a number, after >= <= > < if wanted",
    "environment": "words of where it was seen",
    "privacy": "a label or a glob",
    "supersedes": "a memory, by its id or words of it",
    "related": "a memory, by its id or words of it",
    "parent": "a memory, by its id or words of it",
    "id": "an id, or a glob such as dec-*",
    "is": "one of head, superseded, candidate, confirmed, pinned, deprecated, archived, "
    "deleted, alive, expired, due, pending, conflicted, drifted, local, committed, trusted, signed",
    "repo": "other repositories, each ORG/NAME or a glob such as acme/*, with search --fleet",
    "team": "a team or a glob, whose repositories are asked, with search --fleet",
}
"""What each filter takes, by the name before its colon; `filters` says what it means."""


class Word(Value):
    """One ranked word."""

    text: str


class Phrase(Value):
    """Words that must occur next to each other."""

    text: str


class Filter(Value):
    """One filter. `at` and `end` are its place in the query."""

    name: str
    value: str
    at: int
    end: int


class Not(Value):
    """What must not match."""

    inner: Expression


class Group(Value):
    """What stands side by side."""

    items: tuple[Expression, ...]


class Either(Value):
    """Two or more alternatives."""

    groups: tuple[Group, ...]


Expression = Word | Phrase | Filter | Not | Group | Either


class Query(Value):
    """A parsed query. `root` is a group or alternatives of groups; `text` is what was written.

    `depth` says how many steps its filters of relations go, 0 as many as there are.
    """

    text: str
    root: Group | Either
    depth: int = 1

    @property
    def words(self) -> tuple[str, ...]:
        """What ranks: words and the texts of phrases in order, not those behind a `-`."""
        return tuple(node.text for node in positive(self.root) if isinstance(node, Word | Phrase))

    @property
    def is_by_words(self) -> bool:
        """Whether one of its words has to occur: it is one group of which one is a word."""
        items = self.root.items if isinstance(self.root, Group) else ()
        has_words = any(isinstance(item, Word) for item in items)
        return has_words and not any(isinstance(item, Group | Either) for item in items)

    @property
    def is_plain(self) -> bool:
        """Tell whether it is nothing but words."""
        return isinstance(self.root, Group) and all(
            isinstance(item, Word) for item in self.root.items
        )


def leaves(node: Expression) -> Iterator[Word | Phrase | Filter]:
    """Yield all leaves in the order of the query."""
    if isinstance(node, Group | Either):
        for part in node.items if isinstance(node, Group) else node.groups:
            yield from leaves(part)
    elif isinstance(node, Not):
        yield from leaves(node.inner)
    else:
        yield node


def positive(node: Expression) -> Iterator[Word | Phrase | Filter]:
    """Yield the leaves that are not behind a `-`, in the order of the query."""
    if isinstance(node, Group | Either):
        for part in node.items if isinstance(node, Group) else node.groups:
            yield from positive(part)
    elif not isinstance(node, Not):
        yield node


RELATIONS = {"supersedes": "supersedes", "related": "related_to", "parent": "parent"}
"""Filters that follow a relation, with its key: what leads to a memory, by `--depth` steps."""


def with_depth(query: Query, depth: int | None) -> Query:
    """Return a query whose relations go so many steps, 0 as many as there are; None is one.

    Raises:
        MemtoolError: no relation is asked for.
    """
    if depth is None:
        return query
    asked = (leaf.name for leaf in leaves(query.root) if isinstance(leaf, Filter))
    if not any(name in RELATIONS for name in asked):
        names = ", ".join(f"{name}:" for name in RELATIONS)
        raise MemtoolError(
            f"--depth is for the steps of a relation: {names}",
            hint="such as parent:ID --depth 2",
            code="bad-query",
        )
    return query.replace(depth=depth)


MAX_LENGTH = 200_000
"""Characters of a query; a prompt is not a query, and goes through `prose.search_prose`."""

_OPERATORS = frozenset('"():')
"""What makes more than a word of a word that does not begin with a dash."""


MAX_DEPTH = 20
"""Parentheses that may stand inside each other."""


def parse(text: str) -> Query:
    """Read a query; an empty one is a group of nothing, which everything satisfies.

    Raises:
        MemtoolError: with code `bad-query`, the query and a caret under the place.
    """
    query, slips = _read(text)
    if slips:
        raise slips[0]
    return query


def parse_any(text: str) -> tuple[Query, tuple[str, ...]]:
    """Read a text as a query in which a slip is a word; with it notes that say what was a slip.

    Raises:
        MemtoolError: the text is far too long, or the name of a filter is misspelled.
    """
    query, slips = _read(text)
    told = dict.fromkeys(
        f"{slip.message.splitlines()[0]}, so it is read as text; {slip.hint}" for slip in slips
    )
    notes = [*told][:MOST_NOTES]
    if len(told) > MOST_NOTES:
        notes.append(f"{len(told) - MOST_NOTES} more operators are read as text")
    return query, tuple(notes)


MOST_NOTES = 3
"""Slips that are told of one text; a page of a log may hold hundreds."""


def _read(text: str) -> tuple[Query, list[MemtoolError]]:
    """Return a query and its slips, in the order in which they were seen."""
    if len(text) > MAX_LENGTH:
        raise MemtoolError(
            f"the query has {len(text):,} characters, {MAX_LENGTH:,} are allowed",
            hint="memtool inject --prompt takes long texts",
            code="bad-query",
        )
    words = text.split()
    if _OPERATORS.isdisjoint(text) and not any(w[0] == "-" or w == "OR" for w in words):
        return Query(text, Group(tuple(map(Word, words)))), []
    return read_operators(text)


def read_operators(text: str) -> tuple[Query, list[MemtoolError]]:
    """Read a query of any form, and its slips, which are words in it."""
    slips: list[MemtoolError] = []
    tokens = _paired(text, _tokens(text, slips), slips)
    root = _Parser(text, tokens, slips).either()
    if slips and isinstance(root, Group) and not root.items:
        root = Group((Word(text),))  # what holds no word finds nothing, not everything
    return Query(text, root), slips


_QUOTE_HINT = "text that is no operator goes in double quotes"


class _Token(Value):
    """A piece of the query; `kind` is `(`, `)`, `-`, `OR`, `word`, `phrase` or `filter`."""

    kind: str
    at: int
    end: int
    text: str = ""
    value: str = ""


def _tokens(text: str, slips: list[MemtoolError]) -> list[_Token]:
    """Return the pieces of a query; a quote that makes no phrase goes, with the `-` before it."""
    tokens: list[_Token] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char.isspace():
            at += 1
            continue
        if char in "()":
            token = _Token(char, at, at + 1)
        elif char == '"':
            phrase, at_end = _quoted(text, at, slips)
            if phrase is None:
                _drop_dash(tokens)
                at = at_end
                continue
            token = _Token("phrase", at, at_end, phrase)
        elif char == "-" and text[at + 1 : at + 2].strip() not in ("", "-", ")"):
            token = _Token("-", at, at + 1)
        else:
            token = _bare(text, at, slips)
        tokens.append(token)
        at = token.end
    return tokens


def _drop_dash(tokens: list[_Token]) -> None:
    """Take away the `-` of what was just left out: it must not leave out what follows."""
    if tokens and tokens[-1].kind == "-":
        tokens.pop()


def _paired(text: str, tokens: Sequence[_Token], slips: list[MemtoolError]) -> list[_Token]:
    """Return the tokens without parentheses that have no partner, or stand too deep."""
    opened: list[tuple[int, bool]] = []
    strays: dict[int, str] = {}
    depth = 0
    for place, token in enumerate(tokens):
        if token.kind == "(":
            is_deep = depth >= MAX_DEPTH
            if is_deep:
                strays[place] = f"parentheses stand in each other more than {MAX_DEPTH} deep"
            opened.append((place, not is_deep))
            depth += not is_deep
        elif token.kind == ")" and not opened:
            strays[place] = "this parenthesis was never opened"
        elif token.kind == ")":
            counts = opened.pop()[1]
            depth -= counts
            strays |= {} if counts else {place: ""}
    strays |= dict.fromkeys(
        (p for p, counts in opened if counts), "this parenthesis is never closed"
    )
    for message in dict.fromkeys(filter(None, strays.values())):
        stray = tokens[next(place for place in sorted(strays) if strays[place] == message)]
        slips.append(bad_query(text, stray.at, stray.end, message, _QUOTE_HINT))
    kept: list[_Token] = []
    for place, token in enumerate(tokens):
        if place not in strays:
            kept.append(token)
        elif token.kind == "(":
            _drop_dash(kept)
    return kept


def _quoted(text: str, at: int, slips: list[MemtoolError]) -> tuple[str | None, int]:
    r"""Read `"…"`, in which `\"` is a quote and `\\` a backslash; return where it ends, too.

    None is no phrase: it holds no word, or is never closed; then only the quote is passed over.
    """
    out = []
    place = at + 1
    while place < len(text) and text[place] != '"':
        if text[place] == "\\" and text[place + 1 : place + 2] in ('"', "\\"):
            place += 1
        out.append(text[place])
        place += 1
    if place >= len(text):
        hint = 'close it, or leave it out: "a phrase"'
        slips.append(bad_query(text, at, at + 1, "this quote is never closed", hint))
        return None, at + 1
    phrase = "".join(out)
    if not flat(phrase).strip():
        message, hint = "this phrase holds no word", "write a word in it"
        slips.append(bad_query(text, at, place + 1, message, hint))
        return None, place + 1
    return phrase, place + 1


def _bare(text: str, at: int, slips: list[MemtoolError]) -> _Token:
    """Read a filter, or a word up to white space, a quote, or a parenthesis that is not its own."""
    end, depth = at, 0
    while end < len(text) and not text[end].isspace() and text[end] != '"':
        depth += (text[end] == "(") - (text[end] == ")")
        if depth < 0:
            break
        end += 1
    run = text[at:end]
    name, colon, value = run.partition(":")
    if colon and _is_name(name) and not value.startswith((":", "//")):
        name = name.lower()
        if not value and text[end : end + 1] == '"':
            quoted, end = _quoted(text, end, slips)
            if quoted is None:
                return _Token("word", at, end, run)
            value = quoted
        slip = _filter_slip(text, at, end, name, value)
        if slip is None and value:
            return _Token("filter", at, end, name, value)
        if slip is not None:
            slips.append(slip)
            return _Token("word", at, end, text[at:end])
    return _Token("OR" if run == "OR" else "word", at, end, run)


def _is_name(name: str) -> bool:
    return name.isascii() and name.replace("_", "a").replace("-", "a").isalpha()


def _filter_slip(text: str, at: int, end: int, name: str, value: str) -> MemtoolError | None:
    """Return what is wrong with a filter; a word that ends in a colon need not be one.

    Raises:
        MemtoolError: it is one, with a typing error in its name.
    """
    if name in FILTER_VALUES:
        if value:
            return None
        hint = f"as a filter, {name}: takes {FILTER_VALUES[name]}"
        if name in _COMPARED:
            hint += f"; if the shell took the rest, quote it: '{name}:{_COMPARED[name]}'"
        return bad_query(text, at, end, f"{name}: needs a value", hint)
    if not value:
        return None
    import difflib  # only a wrong name pays for it

    near = difflib.get_close_matches(name, FILTER_VALUES, n=2, cutoff=0.5)
    meant = f"did you mean {' or '.join(f'{one}:' for one in near)}? " if near else ""
    known = f"filters are {', '.join(FILTER_VALUES)}; text with a colon goes in double quotes"
    error = bad_query(text, at, at + len(name), f"there is no filter {name!r}", meant + known)
    if difflib.get_close_matches(name, near, cutoff=MISSPELLED):
        raise error  # a filter was meant, and what it leaves out would be found
    return error


MISSPELLED = 0.8
"""How like the name of a filter a word is that is one with a typing error."""

_COMPARED = {"confidence": ">=medium", "importance": ">0.5", "iteration": ">=2"}
"""Filters whose values may begin with what a shell takes for itself, with an example."""


class _Parser:
    """Walks tokens whose parentheses are paired; its state is the place among them."""

    def __init__(self, text: str, tokens: Sequence[_Token], slips: list[MemtoolError]) -> None:
        self.text = text
        self.tokens = tokens
        self.slips = slips
        self.position = 0

    @property
    def kind(self) -> str:
        return self.tokens[self.position].kind if self.position < len(self.tokens) else ""

    def slip(self, at: int, end: int, message: str, hint: str) -> None:
        """Take down what cannot be an operator."""
        self.slips.append(bad_query(self.text, at, end, message, hint))

    def either(self) -> Group | Either:
        """Read groups up to a closing parenthesis or the end; those that hold nothing are none."""
        groups = [self.group()]
        while self.kind == "OR":
            token = self.tokens[self.position]
            self.position += 1
            groups.append(self.group())
            if not (groups[-2].items and groups[-1].items):
                hint = 'for the word itself write "or"'
                self.slip(token.at, token.end, "OR needs something on both sides", hint)
        filled = tuple(group for group in groups if group.items)
        return Either(filled) if len(filled) > 1 else (filled or groups)[0]

    def group(self) -> Group:
        """Read items up to OR, a closing parenthesis or the end."""
        items = []
        while self.kind not in ("", "OR", ")"):
            item = self.item()
            if item is not None:
                items.append(item)
        return Group(tuple(items))

    def item(self) -> Expression | None:
        """Read one item, with its `-`; None is a parenthesis that holds nothing."""
        token = self.tokens[self.position]
        self.position += 1
        if token.kind == "-":
            inner = self.item()
            if inner is None:
                return None
            return Not(Phrase(inner.text) if isinstance(inner, Word) else inner)
        if token.kind == "(":
            return self.parenthesis(token)
        if token.kind == "filter":
            return Filter(token.text, token.value, token.at, token.end)
        return Phrase(token.text) if token.kind == "phrase" else Word(token.text)

    def parenthesis(self, opening: _Token) -> Group | Either | None:
        """Read the inside of a parenthesis and what closes it."""
        inner = self.either()
        closing = self.tokens[self.position]
        self.position += 1
        if isinstance(inner, Group) and not inner.items:
            self.slip(opening.at, closing.end, "this parenthesis is empty", _QUOTE_HINT)
            return None
        return inner


EXCERPT = 72
"""Characters of a query that an error shows around the place."""


def bad_query(text: str, at: int, end: int, message: str, hint: str) -> MemtoolError:
    """Return the error for a place in a query: the message, the query, and carets below it."""
    first = max(0, min(at - EXCERPT // 2, len(text) - EXCERPT))
    shown = "".join(char if char.isprintable() else " " for char in text[first : first + EXCERPT])
    before = "…" if first else ""
    after = "…" if first + EXCERPT < len(text) else ""
    length = max(1, min(end, first + EXCERPT) - at)
    carets = " " * (at - first + len(before)) + "^" * length
    return MemtoolError(
        f"{message}\n  {before}{shown}{after}\n  {carets}", hint=hint, code="bad-query"
    )
