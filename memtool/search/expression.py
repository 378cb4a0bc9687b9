"""The query language: text to an expression. How it is read: `grammar`; what it means: `matching`.

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
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


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

    @property
    def is_plain(self) -> bool:
        """Tell whether it is nothing but words."""
        return isinstance(self.root, Group) and all(
            isinstance(item, Word) for item in self.root.items
        )


def positive(node: Expression) -> Iterator[Word | Phrase | Filter]:
    """Yield the leaves that are not behind a `-`, in the order of the query."""
    if isinstance(node, Group | Either):
        for part in node.items if isinstance(node, Group) else node.groups:
            yield from positive(part)
    elif not isinstance(node, Not):
        yield node


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
