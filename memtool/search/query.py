"""The query language: parses text into an expression.

The meaning of an expression for a memory is in `filters`.

    query  := group ("OR" group)*          alternatives; OR binds loosest and is written in capitals
    group  := item*                        items side by side
    item   := ["-"] ( WORD | "PHRASE" | NAME:VALUE | NAME:"VALUE" | "(" query ")" )

- Words are ranked, not required: at least one word of a group has to occur, and memories with more
  of them, and rarer ones, come first. A word that must occur is a phrase: `"redis"`.
- A phrase must occur as written, except for case, punctuation and white space. Its words rank too.
- Filters must hold, all filters of a group. A value with spaces is quoted: `error:"KeyError: X"`.
- `-` before a word, phrase, filter or parenthesis excludes what matches it; such a word is taken
  literally, like a phrase.
- `A OR B` matches what satisfies either group: `type:state OR type:decision redis` means all
  states, and decisions about redis.
- A parenthesis with an operator in it is a group inside another, and must be satisfied as a whole:
  `redis (cache OR session)` wants redis, and one of the two.

Not operators: parentheses with only words and phrases in them, which belong to the group around
them (`hold a seat (please)`), a `-` or `(` inside a word (`pre-commit`, `main()`), a lone `-`,
`--flag`, `or`, a colon after anything but letters (`src/a.py:12`, `10:30`), `std::vector`,
`https://…`, and a word that ends in a colon but is not the name of a filter (`KeyError:`).

A slip is something meant as an operator that cannot be one: a quote or parenthesis without its
partner, an `OR` without two sides, a filter that is unknown or has no value. For a user who lists
or forgets by filters a slip is an error, since ignoring a filter lists too much. A user who
searches has probably pasted a text, such as compiler output: there a slip is read as a word, with a
note. A filter with a typing error in its name, `typ:decision`, is always an error.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory.fields import STATUSES, TYPES
from memtool.memory.lifecycle import EXPIRES_SOON_DAYS
from memtool.search.features import normalize_words
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


STATES: dict[str, str] = {
    "head": "nothing supersedes it",
    "superseded": "a newer memory replaces it",
    "candidate": "proposed, and not confirmed yet",
    "confirmed": "a user confirmed it; the status of new memories",
    "pinned": "confirmed, and every session of an agent begins with it",
    "deprecated": "still found, but agents are not shown it unasked",
    "archived": "put away; only found if asked for",
    "deleted": "forgotten; memtool restore brings it back",
    "alive": "active: in none of the states that are left out by default",
    "expired": "its time is over; only found if asked for",
    "expiring": f"active, and expires within {EXPIRES_SOON_DAYS} days",
    "due": "its last confirmation is so old that it should be reviewed",
    "pending": "not valid yet (valid_from); only found if asked for",
    "conflicted": "it contradicts another memory, or both replace the same one",
    "drifted": "the code that it names has changed (memtool drift)",
    "unsettled": "what it rests on no longer holds, or a file that it cites is gone",
    "local": "not committed",
    "committed": "committed, or more",
    "trusted": "on the trusted branch, or more",
    "signed": "signed with a key that the trusted branch allows",
}
"""The values of `is:`, and their meanings."""

FILTER_VALUES: dict[str, str] = {
    "type": "one or more of " + ", ".join(TYPES),
    "category": "one or more categories",
    "tag": "a tag, or a glob such as auth*",
    "file": "a path, directory, file name or glob",
    "status": "one or more of " + ", ".join(STATUSES),
    "confidence": "low, medium or high, or a comparison such as >=medium",
    "importance": "0 to 1, or a comparison such as >0.5",
    "since": "a date, a time, or an age such as 30d",
    "until": "a date, a time, or an age such as 30d",
    "source": "a kind such as commit, the beginning of a source, or a glob",
    "author": "part of a name",
    "error": "words of an error",
    "task": "an id or glob",
    "session": "an id or glob",
    "iteration": "a number, or a comparison such as >=2",
    "environment": "words",
    "privacy": "a label or glob",
    "supersedes": "a memory, by id or words",
    "related": "a memory, by id or words",
    "parent": "a memory, by id or words",
    "id": "an id, or a glob such as dec-*",
    "is": f"one of {', '.join(STATES)}",
    "repo": "ORG/NAME, or a glob such as acme/*",
    "team": "a team, or a glob",
}
"""The values that each filter takes, by the name before its colon."""


class Word(Value):
    """One ranked word."""

    text: str


class Phrase(Value):
    """Words that must occur next to each other."""

    text: str


class Filter(Value):
    """One filter. `at` and `end` are its position in the query."""

    name: str
    value: str
    at: int
    end: int


class Not(Value):
    """An expression that must not match."""

    inner: Expression


class Group(Value):
    """Items side by side."""

    items: tuple[Expression, ...]


class Alternatives(Value):
    """Two or more alternatives."""

    groups: tuple[Group, ...]


Expression = Word | Phrase | Filter | Not | Group | Alternatives


class Query(Value):
    """A parsed query. `root` is a group, or alternatives of groups; `text` is the query as written.

    `depth` is the number of steps that relation filters follow, 0 for no limit.
    """

    text: str
    root: Group | Alternatives
    depth: int = 1

    @property
    def words(self) -> tuple[str, ...]:
        """The ranked words: words and texts of phrases in order, but not those behind a `-`."""
        return tuple(
            node.text for node in find_positive_leaves(self.root) if isinstance(node, Word | Phrase)
        )

    @property
    def is_by_words(self) -> bool:
        """Whether one of its words must occur: it is one group with at least one word."""
        items = self.root.items if isinstance(self.root, Group) else ()
        has_words = any(isinstance(item, Word) for item in items)
        return has_words and not any(isinstance(item, Group | Alternatives) for item in items)

    @property
    def is_plain(self) -> bool:
        """Whether it consists of words only."""
        return isinstance(self.root, Group) and all(
            isinstance(item, Word) for item in self.root.items
        )


def find_leaves(node: Expression) -> Iterator[Word | Phrase | Filter]:
    """Yield all leaves, in query order."""
    if isinstance(node, Group | Alternatives):
        for part in node.items if isinstance(node, Group) else node.groups:
            yield from find_leaves(part)
    elif isinstance(node, Not):
        yield from find_leaves(node.inner)
    else:
        yield node


def find_positive_leaves(node: Expression) -> Iterator[Word | Phrase | Filter]:
    """Yield the leaves that are not behind a `-`, in query order."""
    if isinstance(node, Group | Alternatives):
        for part in node.items if isinstance(node, Group) else node.groups:
            yield from find_positive_leaves(part)
    elif not isinstance(node, Not):
        yield node


RELATION_FIELDS = {"supersedes": "supersedes", "related": "related_to", "parent": "parent"}
"""Filters that follow a relation up to `--depth` steps, with the field of that relation."""


def with_depth(query: Query, depth: int | None) -> Query:
    """Return a query whose relation filters follow `depth` steps, 0 for no limit, None for one.

    Raises:
        MemtoolError: the query has no relation filter.
    """
    if depth is None:
        return query
    filter_names = (leaf.name for leaf in find_leaves(query.root) if isinstance(leaf, Filter))
    if not any(name in RELATION_FIELDS for name in filter_names):
        names = ", ".join(f"{name}:" for name in RELATION_FIELDS)
        raise MemtoolError(
            f"--depth needs a relation: {names}",
            hint="for example: memtool search parent:ID --depth 2",
            code="bad-query",
        )
    return query.replace(depth=depth)


MAX_QUERY_CHARACTERS = 200_000
"""Limit for a query; a prompt is not a query, and goes through `prose.search_prose`."""

_OPERATORS = frozenset('"():')
"""Characters that make a word more than a word."""


MAX_NESTING = 20
"""Parentheses that may be nested in each other."""


def parse(text: str) -> Query:
    """Parse a query; an empty one is an empty group, which everything satisfies.

    Raises:
        MemtoolError: with code `bad-query`, the query and a caret under the position.
    """
    query, slips = _read(text)
    if slips:
        raise slips[0]
    return query


def parse_leniently(text: str) -> tuple[Query, tuple[str, ...]]:
    """Parse a query, reading slips as words; return it with notes on the slips.

    Raises:
        MemtoolError: the text is far too long, or the name of a filter is misspelled.
    """
    query, slips = _read(text)
    told_slips = dict.fromkeys(
        f"{slip.message.splitlines()[0]}, so it is read as text; {slip.hint}" for slip in slips
    )
    notes = [*told_slips][:MAX_NOTES]
    if len(told_slips) > MAX_NOTES:
        notes.append(f"{len(told_slips) - MAX_NOTES} more operators are read as text")
    return query, tuple(notes)


MAX_NOTES = 3
"""Slips reported for one text; a page of a log may have hundreds."""


def _read(text: str) -> tuple[Query, list[MemtoolError]]:
    """Return a query and its slips, in the order in which they were found."""
    if len(text) > MAX_QUERY_CHARACTERS:
        raise MemtoolError(
            f"the query has {len(text):,} characters, the limit is {MAX_QUERY_CHARACTERS:,}",
            hint="for long texts: memtool inject --prompt TEXT",
            code="bad-query",
        )
    words = text.split()
    if _OPERATORS.isdisjoint(text) and not any(w[0] == "-" or w == "OR" for w in words):
        return Query(text, Group(tuple(map(Word, words)))), []
    return read_operators(text)


def read_operators(text: str) -> tuple[Query, list[MemtoolError]]:
    """Parse a query with operators; return it with its slips, which it reads as words."""
    slips: list[MemtoolError] = []
    tokens = _pair_parentheses(text, _tokenize(text, slips), slips)
    root = _Parser(text, tokens, slips).parse_alternatives()
    if slips and isinstance(root, Group) and not root.items:
        root = Group((Word(text),))  # what holds no word finds nothing, not everything
    return Query(text, root), slips


_QUOTE_HINT = "put text that is not an operator in double quotes"


class _Token(Value):
    """A token of the query; `kind` is `(`, `)`, `-`, `OR`, `word`, `phrase` or `filter`."""

    kind: str
    at: int
    end: int
    text: str = ""
    value: str = ""


def _tokenize(text: str, slips: list[MemtoolError]) -> list[_Token]:
    """Split a query into tokens; a quote that is not a phrase goes, with the `-` before it."""
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
            phrase, at_end = _read_quoted(text, at, slips)
            if phrase is None:
                _drop_dash(tokens)
                at = at_end
                continue
            token = _Token("phrase", at, at_end, phrase)
        elif char == "-" and text[at + 1 : at + 2].strip() not in ("", "-", ")"):
            token = _Token("-", at, at + 1)
        else:
            token = _read_bare(text, at, slips)
        tokens.append(token)
        at = token.end
    return tokens


def _drop_dash(tokens: list[_Token]) -> None:
    """Drop the `-` of an item that was just dropped, so that it does not exclude the next item."""
    if tokens and tokens[-1].kind == "-":
        tokens.pop()


def _pair_parentheses(
    text: str, tokens: Sequence[_Token], slips: list[MemtoolError]
) -> list[_Token]:
    """Drop parentheses that have no partner or are nested too deep."""
    opened: list[tuple[int, bool]] = []
    strays: dict[int, str] = {}
    depth = 0
    for place, token in enumerate(tokens):
        if token.kind == "(":
            is_deep = depth >= MAX_NESTING
            if is_deep:
                strays[place] = f"parentheses stand in each other more than {MAX_NESTING} deep"
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
        slips.append(build_query_error(text, stray.at, stray.end, message, _QUOTE_HINT))
    paired: list[_Token] = []
    for place, token in enumerate(tokens):
        if place not in strays:
            paired.append(token)
        elif token.kind == "(":
            _drop_dash(paired)
    return paired


def _read_quoted(text: str, at: int, slips: list[MemtoolError]) -> tuple[str | None, int]:
    r"""Read `"…"`, in which `\"` is a quote and `\\` a backslash; return the phrase and its end.

    None if it has no word or is never closed; in the latter case only the quote is skipped.
    """
    out = []
    place = at + 1
    while place < len(text) and text[place] != '"':
        if text[place] == "\\" and text[place + 1 : place + 2] in ('"', "\\"):
            place += 1
        out.append(text[place])
        place += 1
    if place >= len(text):
        hint = 'close it: "a phrase"'
        slips.append(build_query_error(text, at, at + 1, "this quote is never closed", hint))
        return None, at + 1
    phrase = "".join(out)
    if not normalize_words(phrase).strip():
        message, hint = "this phrase has no words", "put a word in it"
        slips.append(build_query_error(text, at, place + 1, message, hint))
        return None, place + 1
    return phrase, place + 1


def _read_bare(text: str, at: int, slips: list[MemtoolError]) -> _Token:
    """Read a filter, or a word up to white space, a quote or an unbalanced parenthesis."""
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
            quoted, end = _read_quoted(text, end, slips)
            if quoted is None:
                return _Token("word", at, end, run)
            value = quoted
        slip = _find_filter_slip(text, at, end, name, value)
        if slip is None and value:
            return _Token("filter", at, end, name, value)
        if slip is not None:
            slips.append(slip)
            return _Token("word", at, end, text[at:end])
    return _Token("OR" if run == "OR" else "word", at, end, run)


def _is_name(name: str) -> bool:
    return name.isascii() and name.replace("_", "a").replace("-", "a").isalpha()


def _find_filter_slip(text: str, at: int, end: int, name: str, value: str) -> MemtoolError | None:
    """Return the problem with a filter; a word that ends in a colon need not be one.

    Raises:
        MemtoolError: the name of the filter is misspelled.
    """
    if name in FILTER_VALUES:
        if value:
            return None
        hint = f"as a filter, {name}: takes {FILTER_VALUES[name]}"
        if name in _COMPARISON_EXAMPLES:
            hint += f"; quote it for the shell: '{name}:{_COMPARISON_EXAMPLES[name]}'"
        return build_query_error(text, at, end, f"{name}: needs a value", hint)
    if not value:
        return None
    import difflib  # only a wrong name pays for it

    near = difflib.get_close_matches(name, FILTER_VALUES, n=2, cutoff=0.5)
    meant = f"did you mean {' or '.join(f'{name}:' for name in near)}? " if near else ""
    names = f"the filters are {', '.join(FILTER_VALUES)}; put text with a colon in double quotes"
    error = build_query_error(text, at, at + len(name), f"unknown filter {name!r}", meant + names)
    if difflib.get_close_matches(name, near, cutoff=MISSPELLING_CUTOFF):
        raise error  # a filter was meant, and what it leaves out would be found
    return error


MISSPELLING_CUTOFF = 0.8
"""Similarity to a filter name above which a word counts as that name misspelled."""

_COMPARISON_EXAMPLES = {"confidence": ">=medium", "importance": ">0.5", "iteration": ">=2"}
"""Filters whose values may begin with a character that shells interpret, each with an example."""


class _Parser:
    """Parses tokens whose parentheses are paired; its state is the position among them."""

    def __init__(self, text: str, tokens: Sequence[_Token], slips: list[MemtoolError]) -> None:
        self.text = text
        self.tokens = tokens
        self.slips = slips
        self.position = 0

    @property
    def kind(self) -> str:
        return self.tokens[self.position].kind if self.position < len(self.tokens) else ""

    def add_slip(self, at: int, end: int, message: str, hint: str) -> None:
        """Record an operator that cannot be one."""
        self.slips.append(build_query_error(self.text, at, end, message, hint))

    def parse_alternatives(self) -> Group | Alternatives:
        """Parse groups up to a closing parenthesis or the end, dropping empty ones."""
        groups = [self.parse_group()]
        while self.kind == "OR":
            token = self.tokens[self.position]
            self.position += 1
            groups.append(self.parse_group())
            if not (groups[-2].items and groups[-1].items):
                hint = 'for the word itself write "or"'
                self.add_slip(token.at, token.end, "OR needs something on both sides", hint)
        filled = tuple(group for group in groups if group.items)
        return Alternatives(filled) if len(filled) > 1 else (filled or groups)[0]

    def parse_group(self) -> Group:
        """Parse items up to OR, a closing parenthesis or the end."""
        items: list[Expression] = []
        while self.kind not in ("", "OR", ")"):
            item = self.parse_item()
            if isinstance(item, Group) and _is_text(item):
                items += item.items
            elif item is not None:
                items.append(item)
        return Group(tuple(items))

    def parse_item(self) -> Expression | None:
        """Parse one item with its `-`; None for an empty parenthesis."""
        token = self.tokens[self.position]
        self.position += 1
        if token.kind == "-":
            inner = self.parse_item()
            if inner is None:
                return None
            return Not(Phrase(inner.text) if isinstance(inner, Word) else inner)
        if token.kind == "(":
            return self.parse_parenthesis(token)
        if token.kind == "filter":
            return Filter(token.text, token.value, token.at, token.end)
        return Phrase(token.text) if token.kind == "phrase" else Word(token.text)

    def parse_parenthesis(self, opening: _Token) -> Group | Alternatives | None:
        """Parse the inside of a parenthesis and its closing one."""
        inner = self.parse_alternatives()
        closing = self.tokens[self.position]
        self.position += 1
        if isinstance(inner, Group) and not inner.items:
            self.add_slip(opening.at, closing.end, "this parenthesis is empty", _QUOTE_HINT)
            return None
        return inner


def _is_text(group: Group) -> bool:
    """Return whether a group has no operators, such as `(#2252)` at the end of a commit title."""
    return all(isinstance(item, Word | Phrase) for item in group.items)


EXCERPT_CHARACTERS = 72
"""Characters of a query that an error shows around the position."""


def build_query_error(text: str, at: int, end: int, message: str, hint: str) -> MemtoolError:
    """Build the error for a part of a query: the message, the query, and carets below that part."""
    first = max(0, min(at - EXCERPT_CHARACTERS // 2, len(text) - EXCERPT_CHARACTERS))
    shown = "".join(
        char if char.isprintable() else " " for char in text[first : first + EXCERPT_CHARACTERS]
    )
    before = "…" if first else ""
    after = "…" if first + EXCERPT_CHARACTERS < len(text) else ""
    length = max(1, min(end, first + EXCERPT_CHARACTERS) - at)
    carets = " " * (at - first + len(before)) + "^" * length
    return MemtoolError(
        f"{message}\n  {before}{shown}{after}\n  {carets}", hint=hint, code="bad-query"
    )
