"""Filters: every `name:value` of the query language, and whether a record satisfies an expression.

A row of the filter table reads its value once into a predicate, which is then asked about each
record. Superseded, deleted, archived, expired and pending memories are left out, unless a filter
that the record satisfies asks for that state by name: `status:archived` shows archived ones,
`is:superseded` superseded ones, `id:` with a whole id whatever it names. A filter behind `-` asks
for nothing.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory import ids, lifecycle, timestamps
from memtool.memory.fields import CONFIDENCES, SOURCE_KINDS, STATUSES, TYPES
from memtool.memory.trust import TRUST_LEVELS
from memtool.memory.visibility import HIDDEN, PRIVATE, SUPERSEDED
from memtool.search.features import Facts, flat, governed
from memtool.search.query import (
    FILTER_VALUES,
    RELATIONS,
    Either,
    Expression,
    Filter,
    Group,
    Not,
    Phrase,
    Query,
    Word,
    bad_query,
)
from memtool.store.files import governs, name_matches
from memtool.store.tree import Record
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from memtool.store.tree import Record, Tree

    Predicate = Callable[[Record, Facts], bool]

    Lifted = frozenset[str]
    Test = Callable[[Record], Lifted | None]
    """Says None where a record does not match, else the hidden states that the query asked for."""


class FilterRow(Value):
    """One row. `read` turns a value into a predicate; it raises ValueError with one clause.

    A relation is read with its depth, too: by how many steps it may lead to a memory.

    `lifts` gives the hidden states that a value asks for by name.
    """

    name: str
    doc: str
    read: Callable[..., Predicate]
    lifts: Callable[[str], frozenset[str]] = lambda _value: frozenset()


def _choice(value: str, known: Collection[str]) -> str:
    found = value.lower()
    if found in known:
        return found
    import difflib  # only a wrong word pays for it

    near = difflib.get_close_matches(found, sorted(known), n=1)
    meant = f" (did you mean {near[0]}?)" if near else ""
    raise ValueError(f"{value!r} is not one of {', '.join(known)}{meant}")


def _choices(value: str, known: Collection[str]) -> frozenset[str]:
    """Read one word or several with commas between them."""
    return frozenset(_choice(one, known) for one in value.split(","))


def _type(value: str, _facts: Facts) -> Predicate:
    wanted = _choices(value, TYPES)
    return lambda record, _facts: record.memory.type in wanted


def _category(value: str, facts: Facts) -> Predicate:
    wanted = _choices(value, facts.categories)
    return lambda record, _facts: record.memory.category in wanted


def _status(value: str, _facts: Facts) -> Predicate:
    wanted = _choices(value, STATUSES)
    return lambda record, _facts: record.memory.status in wanted


def _words(key: str) -> Callable[[str, Facts], Predicate]:
    """Return what reads a glob for the items of a list."""

    def read(value: str, _facts: Facts) -> Predicate:
        wanted = value.casefold()
        return lambda record, _facts: any(
            name_matches(wanted, item.casefold()) for item in record.memory.items(key)
        )

    return read


def _line(key: str) -> Callable[[str, Facts], Predicate]:
    """Return what reads a glob for a line."""

    def read(value: str, _facts: Facts) -> Predicate:
        wanted = value.casefold()
        return lambda record, _facts: name_matches(wanted, record.memory.text(key).casefold())

    return read


def _passage(key: str) -> Callable[[str, Facts], Predicate]:
    """Return what reads words that stand next to each other in a line."""

    def read(value: str, _facts: Facts) -> Predicate:
        wanted = flat(value)
        if not wanted.strip():
            raise ValueError("there is no word in it")
        return lambda record, _facts: wanted in flat(record.memory.text(key))

    return read


def _file(value: str, _facts: Facts) -> Predicate:
    wanted = value.removeprefix("./")
    by_name = "/" not in wanted

    def names(record: Record, _facts: Facts) -> bool:
        return any(
            governs(entry, wanted)
            or governs(wanted, entry)
            or (by_name and name_matches(wanted, entry.rstrip("/").rpartition("/")[2]))
            for entry in governed(record)
        )

    return names


def _compared(value: str, read: Callable[[str], float]) -> Callable[[float], bool]:
    """Read `>=x`, `<=x`, `>x`, `<x`, `=x` or `x` into a test of a number."""
    mark = next((m for m in (">=", "<=", ">", "<", "=") if value.startswith(m)), "")
    limit = read(value[len(mark) :])
    tests: dict[str, Callable[[float], bool]] = {
        ">=": lambda number: number >= limit,
        "<=": lambda number: number <= limit,
        ">": lambda number: number > limit,
        "<": lambda number: number < limit,
    }
    return tests.get(mark, lambda number: number == limit)


def _confidence(value: str, _facts: Facts) -> Predicate:
    test = _compared(value, lambda text: CONFIDENCES.index(_choice(text, CONFIDENCES)))
    return lambda record, _facts: test(CONFIDENCES.index(record.memory.confidence))


def _importance(value: str, _facts: Facts) -> Predicate:
    def share(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise ValueError(f"{text!r} is not a number") from None
        if not 0 <= number <= 1:
            raise ValueError(f"{text} is not between 0 and 1")
        return number

    test = _compared(value, share)
    return lambda record, _facts: test(record.memory.importance)


def _iteration(value: str, _facts: Facts) -> Predicate:
    def count(text: str) -> int:
        if not (text.isascii() and text.isdigit()):
            raise ValueError(f"{text!r} is not a whole number")
        return int(text[:18])

    test = _compared(value, count)
    return lambda record, _facts: (
        bool(text := record.memory.text("iteration")) and test(int(text[:18]))
    )


def _moment(value: str, now: int) -> int:
    try:
        return timestamps.parse_when(value, now)
    except (ValueError, IndexError):
        raise ValueError(f"{value!r} is not a time such as 30d, 12h or 2026-01-31") from None


def _since(value: str, facts: Facts) -> Predicate:
    first = _moment(value, facts.now)
    return lambda record, _facts: record.memory.timestamp >= first


def _until(value: str, facts: Facts) -> Predicate:
    last = _moment(value, facts.now)
    if len(value) == 10 and value[4] == "-":
        last = timestamps.end(value)
    return lambda record, _facts: record.memory.timestamp <= last


def _source(value: str, _facts: Facts) -> Predicate:
    wanted = value.casefold()

    def comes_from(record: Record, _facts: Facts) -> bool:
        for source in record.memory.items("source"):
            kind, _colon, rest = source.casefold().partition(":")
            if wanted in SOURCE_KINDS:
                if kind == wanted:
                    return True
            elif rest.startswith(wanted) or source.casefold().startswith(wanted):
                return True
        return False

    return comes_from


def _author(value: str, _facts: Facts) -> Predicate:
    wanted = value.casefold()
    return lambda record, facts: wanted in facts.origins[record.path].author.casefold()


def _id(value: str, _facts: Facts) -> Predicate:
    wanted = ids.without_commit(value.casefold())
    return lambda record, _facts: name_matches(wanted, record.id)


def _has_status(status: str) -> Predicate:
    return lambda record, _facts: record.memory.status == status


def _has_state(state: str) -> Predicate:
    return lambda record, facts: facts.state(record) == state


def _has_trust(least: int) -> Predicate:
    return lambda record, facts: facts.trust(record) >= least


CONFLICTED = "conflicted"
IS: dict[str, Predicate] = {
    "head": lambda record, facts: facts.lineage.is_head(record.id),
    SUPERSEDED: lambda record, facts: not facts.lineage.is_head(record.id),
    **{status: _has_status(status) for status in STATUSES},
    lifecycle.ALIVE: lambda record, facts: not facts.hidden(record),
    lifecycle.EXPIRED: _has_state(lifecycle.EXPIRED),
    "due": lambda record, facts: facts.is_due(record),
    lifecycle.PENDING: _has_state(lifecycle.PENDING),
    CONFLICTED: lambda record, facts: record.id in facts.conflicted,
    "drifted": lambda record, facts: facts.is_drifted(record),
    "local": lambda record, facts: facts.trust(record) == 0,
    **{level: _has_trust(place) for place, level in enumerate(TRUST_LEVELS) if place},
}
"""What `is:` can ask. `committed`, `trusted` and `signed` mean that or more, `local` just that."""


def _is(value: str, facts: Facts) -> Predicate:
    chosen = _choice(value, IS)
    if chosen != CONFLICTED:
        return IS[chosen]
    from memtool.search import (
        conflicts,
    )  # it compares all memories, or reads what was found of them

    found = conflicts.contradictions(facts.tree, facts.now, facts.tree.cache_dir)
    ids = facts.conflicted.union(*(one.ids for one in found if not one.accepted))
    return lambda record, _facts: record.id in ids


def _named_state(value: str) -> frozenset[str]:
    if value.lower() == CONFLICTED:  # the members of a circle supersede each other
        return frozenset({SUPERSEDED})
    return frozenset(value.lower().split(",")) & frozenset(HIDDEN)


def _exact_id(value: str) -> frozenset[str]:
    return frozenset() if "*" in value or "?" in value else frozenset(HIDDEN)


def _replacing(_value: str) -> frozenset[str]:
    return frozenset({SUPERSEDED})  # what replaces one memory may be replaced by another


def _leads(name: str) -> Callable[[str, Facts, int], Predicate]:
    """Return what reads a memory, and finds those that a relation leads from to it."""
    key = RELATIONS[name]

    def read(value: str, facts: Facts, depth: int) -> Predicate:
        first = _meant(value, facts.tree, key)
        found, edge = {first}, {first}
        known = None if depth == 1 else _naming_by(facts.tree, key)
        steps = 0
        while edge and (not depth or steps < depth):
            near = {one for id_ in edge for one in _beside(facts.tree, id_, name, known)}
            edge = near - found
            found |= near
            steps += 1
        found.discard(first)
        return lambda record, _facts: record.id in found

    return read


def _meant(value: str, tree: Tree, key: str) -> str:
    """Return the id of a memory, also of one that is gone, but named.

    Raises:
        MemtoolError: no memory is meant, or several.
    """
    try:
        return tree.find(value).id
    except MemtoolError as error:
        if error.code == "unknown-id" and any(
            value in record.memory.items(key) for record in tree.naming(value)
        ):
            return value
        raise


def _naming_by(tree: Tree, key: str) -> dict[str, list[str]]:
    """Return the ids of the memories that name each id in a key: many steps need all of them."""
    found: dict[str, list[str]] = {}
    for record in tree.records:
        for id_ in record.memory.items(key):
            found.setdefault(id_, []).append(record.id)
    return found


def _beside(
    tree: Tree, id_: str, name: str, known: Mapping[str, list[str]] | None
) -> Iterator[str]:
    """Yield what leads to a memory in one step; `known` is what names each id, if it is known."""
    key = RELATIONS[name]
    if known is not None:
        yield from known.get(id_, ())
    else:
        yield from (one.id for one in tree.naming(id_) if id_ in one.memory.items(key))
    if name == "related" and id_ in tree:
        yield from tree[id_].memory.items(key)


def _elsewhere(name: str) -> Callable[[str, Facts], Predicate]:
    """Return what refuses a filter that says which other repositories are asked."""

    def read(_value: str, _facts: Facts) -> Predicate:
        raise MemtoolError(
            f"{name}: says which other repositories are asked, so it stands by itself, beside the "
            "words of a question to them",
            hint=f"memtool search --fleet WORDS {name}:NAME",
            code="bad-query",
        )

    return read


_TABLE: tuple[FilterRow, ...] = (
    FilterRow("type", "the kind of memory", _type),
    FilterRow("category", "the category, the type's where none is written", _category),
    FilterRow("tag", "has the tag", _words("tags")),
    FilterRow("file", "governs the file, or names it as a source", _file),
    FilterRow("status", "where it stands in its life", _status, _named_state),
    FilterRow("confidence", "how sure the author is", _confidence),
    FilterRow("importance", "0.5 where nobody said", _importance),
    FilterRow("since", "written then or later", _since),
    FilterRow("until", "written then or earlier; a date counts to its end", _until),
    FilterRow("source", "where the claim comes from", _source),
    FilterRow("author", "who made its last commit; nobody where it is not committed", _author),
    FilterRow("error", "stands in the error signature", _passage("error_signature")),
    FilterRow("task", "belongs to the task", _line("task_id")),
    FilterRow("session", "comes from the session", _line("session")),
    FilterRow("iteration", "which attempt at the task", _iteration),
    FilterRow("environment", "stands in where it was seen", _passage("environment")),
    FilterRow(
        "privacy",
        "has the label for handling",
        _words("privacy"),
        lambda _value: frozenset({PRIVATE}),
    ),
    FilterRow("supersedes", "replaces the memory", _leads("supersedes"), _replacing),
    FilterRow("related", "names the memory as related, or is named so by it", _leads("related")),
    FilterRow("parent", "belongs to the memory", _leads("parent")),
    FilterRow("id", "has the id; a whole id is found in any state", _id, _exact_id),
    FilterRow("is", "what is derived about it", _is, _named_state),
    FilterRow("repo", "with search --fleet: is of the repository", _elsewhere("repo")),
    FilterRow("team", "with search --fleet: is of a repository of the team", _elsewhere("team")),
)


FILTERS: dict[str, FilterRow] = {row.name: row for row in _TABLE}
"""Every filter by name, in the order of the manual."""


_NOTHING: Lifted = frozenset()


def matcher(
    query: Query, facts: Facts, *, words_match: bool = False, is_hidden: bool = False
) -> Callable[[Record], bool]:
    """Return the predicate of a query.

    `words_match` takes the words of a simple query as found, where only records are asked about
    that the index gave for them. `is_hidden` asks for what it would show, were it not hidden.

    Raises:
        MemtoolError: a filter cannot take its value; a caret shows the place.
    """
    if words_match and query.is_plain and not is_hidden:
        return facts.is_current
    root: Expression = query.root
    if words_match and isinstance(root, Group) and query.is_by_words:
        root = Group(tuple(item for item in root.items if not isinstance(item, Word)))
    test = _test(root, query, facts)

    def matches(record: Record) -> bool:
        lifted = test(record)
        return lifted is not None and (facts.hidden(record) <= lifted) != is_hidden

    return matches


def _test(node: Expression, query: Query, facts: Facts) -> Test:
    if isinstance(node, Group):
        return _group(node, query, facts)
    if isinstance(node, Either):
        return _either([_group(group, query, facts) for group in node.groups])
    if isinstance(node, Filter):
        return _filter(node, query, facts)
    if isinstance(node, Not):
        inner = _test(node.inner, query, facts)
        return lambda record: _NOTHING if inner(record) is None else None
    if isinstance(node, Phrase):
        phrase = node.text
        return lambda record: _NOTHING if facts.has_phrase(record, phrase) else None
    return _any_word([node.text], facts)


def _any_word(words: list[str], facts: Facts) -> Test:
    return lambda record: _NOTHING if any(facts.has_word(record, word) for word in words) else None


def _group(group: Group, query: Query, facts: Facts) -> Test:
    # What needs no reading of the text comes first; the order changes nothing else.
    items = sorted(group.items, key=lambda item: not isinstance(item, Filter))
    tests = [_test(item, query, facts) for item in items if not isinstance(item, Word)]
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


def _filter(node: Filter, query: Query, facts: Facts) -> Test:
    row = FILTERS[node.name]
    try:
        depth = (query.depth,) if node.name in RELATIONS else ()
        holds = row.read(node.value, facts, *depth)
    except ValueError as error:
        raise bad_query(
            query.text,
            node.at,
            node.end,
            f"{node.name}: {error}",
            f"{node.name}: takes {FILTER_VALUES[node.name]}",
        ) from None
    lifts = row.lifts(node.value)
    return lambda record: lifts if holds(record, facts) else None
