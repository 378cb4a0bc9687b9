"""The grammar of the query language: its text to tokens, and these to an expression.

What the language is stands in `query`, which knows plain words without all this.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.search import filters
from memtool.search.facts import flat
from memtool.search.query import Either, Expression, Filter, Group, Not, Phrase, Query, Word
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH = 20
"""Parentheses that may stand inside each other."""
EXCERPT = 72
"""Characters of a query that an error shows around the place."""


def parse(text: str) -> Query:
    """Read a query of any form. Raises MemtoolError as `query.parse` does."""
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
