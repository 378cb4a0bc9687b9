"""Matching: whether a record satisfies the expression of a query.

Superseded, deleted, archived, expired and pending memories are left out, unless a filter that the
record satisfies asks for that state by name: `status:archived` shows archived ones, `is:superseded`
superseded ones, `id:` with a whole id whatever it names. A filter behind `-` asks for nothing.
"""

from __future__ import annotations

from memtool.search.facts import Facts
from memtool.search.filters import FILTERS
from memtool.search.query import Either, Expression, Filter, Group, Not, Phrase, Query, Word
from memtool.store.tree import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Lifted = frozenset[str]
    Test = Callable[[Record], Lifted | None]
    """Says None where a record does not match, else the hidden states that the query asked for."""


_NOTHING: Lifted = frozenset()


def matcher(query: Query, facts: Facts, *, words_match: bool = False) -> Callable[[Record], bool]:
    """Return the predicate of a query.

    `words_match` takes the words of a simple query as found, where only records are asked about
    that the index gave for them.

    Raises:
        MemtoolError: a filter cannot take its value; a caret shows the place.
    """
    if words_match and query.is_plain:
        return facts.is_current
    test = _whole_test(query, facts, words_match=words_match)

    def matches(record: Record) -> bool:
        lifted = test(record)
        return lifted is not None and facts.hidden(record) <= lifted

    return matches


def hidden_matcher(query: Query, facts: Facts) -> Callable[[Record], bool]:
    """Return the predicate of what a simple query would show, were it not hidden.

    It takes the words as found. Raises MemtoolError as `matcher` does.
    """
    test = _whole_test(query, facts, words_match=True)

    def matches(record: Record) -> bool:
        lifted = test(record)
        return lifted is not None and not facts.hidden(record) <= lifted

    return matches


def _whole_test(query: Query, facts: Facts, *, words_match: bool) -> Test:
    if not (query.is_simple and words_match):
        return _test(query.root, query.text, facts)
    items = query.root.items if isinstance(query.root, Group) else ()
    root = Group(tuple(item for item in items if not isinstance(item, Word)))
    return _test(root, query.text, facts)


def _test(node: Expression, text: str, facts: Facts) -> Test:
    if isinstance(node, Group):
        return _group(node, text, facts)
    if isinstance(node, Either):
        return _either([_group(group, text, facts) for group in node.groups])
    if isinstance(node, Filter):
        return _filter(node, text, facts)
    if isinstance(node, Not):
        inner = _test(node.inner, text, facts)
        return lambda record: _NOTHING if inner(record) is None else None
    if isinstance(node, Phrase):
        phrase = node.text
        return lambda record: _NOTHING if facts.has_phrase(record, phrase) else None
    return _any_word([node.text], facts)


def _any_word(words: list[str], facts: Facts) -> Test:
    return lambda record: _NOTHING if any(facts.has_word(record, word) for word in words) else None


def _group(group: Group, text: str, facts: Facts) -> Test:
    # What needs no reading of the text comes first; the order changes nothing else.
    items = sorted(group.items, key=lambda item: not isinstance(item, Filter))
    tests = [_test(item, text, facts) for item in items if not isinstance(item, Word)]
    words = [item.text for item in group.items if isinstance(item, Word)]
    if words:
        tests.append(_any_word(words, facts))

    def every(record: Record) -> Lifted | None:
        lifted = _NOTHING
        for test in tests:
            found = test(record)
            if found is None:
                return None
            lifted |= found
        return lifted

    return every


def _either(tests: list[Test]) -> Test:
    def some(record: Record) -> Lifted | None:
        found = [lifted for test in tests if (lifted := test(record)) is not None]
        return _NOTHING.union(*found) if found else None

    return some


def _filter(node: Filter, text: str, facts: Facts) -> Test:
    row = FILTERS[node.name]
    try:
        holds = row.read(node.value, facts)
    except ValueError as error:
        from memtool.search.grammar import bad_query

        raise bad_query(
            text, node.at, node.end, f"{node.name}: {error}", f"{node.name}: takes {row.takes}"
        ) from None
    lifts = row.lifts(node.value)
    return lambda record: lifts if holds(record, facts) else None
