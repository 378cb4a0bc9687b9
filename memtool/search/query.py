"""The query language: text to an expression. What the expression means for a record: `matching`.

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
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.search import filters
from memtool.search.facts import flat
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH = 20
"""Parentheses that may stand inside each other."""
MAX_LENGTH = 200_000
"""Characters of a query; a prompt is not a query, and goes through `prose.search_prose`."""
EXCERPT = 72
"""Characters of a query that an error shows around the place."""


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
    """A parsed query. `root` is a group or alternatives of groups; `text` is what was written."""

    text: str
    root: Group | Either

    @property
    def words(self) -> tuple[str, ...]:
        """What ranks: words and the texts of phrases in order, not those behind a `-`."""
        return tuple(node.text for node in positive(self.root) if isinstance(node, Word | Phrase))

    @property
    def has_words(self) -> bool:
        """Tell whether the outermost group holds ranked words, so that one of them has to occur."""
        return isinstance(self.root, Group) and any(
            isinstance(item, Word) for item in self.root.items
        )

    @property
    def is_simple(self) -> bool:
        """Tell whether it is one group without parentheses or alternatives."""
        return isinstance(self.root, Group) and not any(
            isinstance(item, Group | Either) for item in self.root.items
        )


def positive(node: Expression) -> Iterator[Word | Phrase | Filter]:
    """Yield the leaves that are not behind a `-`, in the order of the query."""
    if isinstance(node, Group | Either):
        for part in node.items if isinstance(node, Group) else node.groups:
            yield from positive(part)
    elif not isinstance(node, Not):
        yield node


def parse(text: str) -> Query:
    """Read a query; an empty one is a group of nothing, which everything satisfies.

    Raises:
        MemtoolError: with code `bad-query`, the query and a caret under the place.
    """
    if len(text) > MAX_LENGTH:
        raise MemtoolError(
            f"the query has {len(text):,} characters, {MAX_LENGTH:,} are allowed",
            hint="memtool inject --prompt takes long texts",
            code="bad-query",
        )
    parser = _Parser(text, tuple(_tokens(text)))
    root = parser.either(0)
    if parser.position < len(parser.tokens):
        stray = parser.tokens[parser.position]
        raise bad_query(text, stray.at, stray.end, "this parenthesis was never opened", _QUOTE_HINT)
    return Query(text, root)


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


_QUOTE_HINT = 'put text that is no operator in double quotes: "main(argv"'


class _Token(Value):
    """A piece of the query; `kind` is `(`, `)`, `-`, `OR`, `word`, `phrase` or `filter`."""

    kind: str
    at: int
    end: int
    text: str = ""
    value: str = ""


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        char = text[at]
        if char.isspace():
            at += 1
            continue
        if char in "()":
            token = _Token(char, at, at + 1)
        elif char == '"':
            token = _quoted(text, at)
        elif char == "-" and text[at + 1 : at + 2].strip() not in ("", "-", ")"):
            token = _Token("-", at, at + 1)
        else:
            token = _bare(text, at)
        yield token
        at = token.end


def _quoted(text: str, at: int) -> _Token:
    r"""Read `"…"`; inside, `\"` is a quote and `\\` a backslash."""
    out = []
    place = at + 1
    while place < len(text) and text[place] != '"':
        if text[place] == "\\" and text[place + 1 : place + 2] in ('"', "\\"):
            place += 1
        out.append(text[place])
        place += 1
    if place >= len(text):
        raise bad_query(
            text, at, at + 1, "this quote is never closed", 'close it, or leave it out: "a phrase"'
        )
    phrase = "".join(out)
    if not flat(phrase).strip():
        raise bad_query(text, at, place + 1, "this phrase holds no word", "write a word in it")
    return _Token("phrase", at, place + 1, phrase)


def _bare(text: str, at: int) -> _Token:
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
        known = name.lower() in filters.FILTERS
        if not value and text[end : end + 1] == '"':
            quoted = _quoted(text, end)
            value, end = quoted.text, quoted.end
        if known or value:
            return _filter(text, at, end, name.lower(), value)
    return _Token("OR" if run == "OR" else "word", at, end, run)


def _is_name(name: str) -> bool:
    return name.isascii() and name.replace("_", "a").replace("-", "a").isalpha()


def _filter(text: str, at: int, end: int, name: str, value: str) -> _Token:
    if name not in filters.FILTERS:
        import difflib  # only a wrong name pays for it

        near = difflib.get_close_matches(name, filters.FILTERS, n=2, cutoff=0.5)
        meant = f"did you mean {' or '.join(f'{one}:' for one in near)}? " if near else ""
        raise bad_query(
            text,
            at,
            at + len(name),
            f"there is no filter {name!r}",
            f"{meant}filters are {', '.join(filters.FILTERS)}; "
            'text with a colon goes in double quotes',
        )  # fmt: skip
    if not value:
        row = filters.FILTERS[name]
        raise bad_query(text, at, end, f"{name}: needs a value", f"{name}: takes {row.takes}")
    return _Token("filter", at, end, name, value)


class _Parser:
    """Walks the tokens; its state is the place among them."""

    def __init__(self, text: str, tokens: tuple[_Token, ...]) -> None:
        self.text = text
        self.tokens = tokens
        self.position = 0

    @property
    def kind(self) -> str:
        return self.tokens[self.position].kind if self.position < len(self.tokens) else ""

    def either(self, depth: int) -> Group | Either:
        """Read groups up to a closing parenthesis or the end."""
        groups = [self.group(depth)]
        while self.kind == "OR":
            token = self.tokens[self.position]
            self.position += 1
            groups.append(self.group(depth))
            if not (groups[-2].items and groups[-1].items):
                raise bad_query(
                    self.text,
                    token.at,
                    token.end,
                    "OR needs something on both sides",
                    'for the word itself write "or"',
                )
        return groups[0] if len(groups) == 1 else Either(tuple(groups))

    def group(self, depth: int) -> Group:
        """Read items up to OR, a closing parenthesis or the end."""
        items = []
        while self.kind not in ("", "OR", ")"):
            items.append(self.item(depth))
        return Group(tuple(items))

    def item(self, depth: int) -> Expression:
        """Read one item, with its `-`."""
        token = self.tokens[self.position]
        self.position += 1
        if token.kind == "-":
            inner = self.item(depth)
            return Not(Phrase(inner.text) if isinstance(inner, Word) else inner)
        if token.kind == "(":
            return self.parenthesis(token, depth + 1)
        if token.kind == "filter":
            return Filter(token.text, token.value, token.at, token.end)
        return Phrase(token.text) if token.kind == "phrase" else Word(token.text)

    def parenthesis(self, opening: _Token, depth: int) -> Group | Either:
        """Read the inside of a parenthesis and what closes it."""
        if depth > MAX_DEPTH:
            raise bad_query(
                self.text,
                opening.at,
                opening.end,
                f"parentheses stand in each other more than {MAX_DEPTH} deep",
                _QUOTE_HINT,
            )
        inner = self.either(depth)
        if self.kind != ")":
            message = "this parenthesis is never closed"
            raise bad_query(self.text, opening.at, opening.end, message, _QUOTE_HINT)
        closing = self.tokens[self.position]
        self.position += 1
        if isinstance(inner, Group) and not inner.items:
            raise bad_query(
                self.text, opening.at, closing.end, "this parenthesis is empty", _QUOTE_HINT
            )
        return inner
