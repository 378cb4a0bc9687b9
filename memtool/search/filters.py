"""Filters: every `name:value` of the query language, and the test of a record by an expression.

A row of the filter table reads its value once into a predicate, which is then applied to each
record. Superseded, deleted, archived, expired and pending memories are left out, unless a filter
that the record satisfies names that state: `status:archived` shows archived ones, `is:superseded`
superseded ones, and `id:` with a whole id shows that memory in any state. A filter behind `-` names
no state.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory import ids, lifecycle, short_ids, timestamps
from memtool.memory.fields import CONFIDENCES, SOURCE_KINDS, STATUSES, TYPES
from memtool.memory.trust import TRUST_LEVELS
from memtool.memory.visibility import HIDDEN, PRIVATE, SUPERSEDED
from memtool.search.features import Facts, normalize_words
from memtool.search.query import (
    FILTER_VALUES,
    RELATION_FIELDS,
    Alternatives,
    Expression,
    Filter,
    Group,
    Not,
    Phrase,
    Query,
    Word,
    build_query_error,
)
from memtool.store.files import matches_name, matches_or_contains
from memtool.store.tree import Record
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from memtool.store.tree import Record, Tree

    Predicate = Callable[[Record, Facts], bool]

    Lifted = frozenset[str]
    Test = Callable[[Record], Lifted | None]
    """Returns None if a record does not match, else the hidden states that the query names."""


class FilterRow(Value):
    """One row. `read` turns a value into a predicate; it raises ValueError with one clause.

    For a relation, `read` also gets the depth: the maximum number of steps to a memory.

    `lifts` returns the hidden states that a value names.
    """

    name: str
    doc: str
    read: Callable[..., Predicate]
    lifts: Callable[[str], frozenset[str]] = lambda _value: frozenset()


def _parse_choice(value: str, choices: Collection[str]) -> str:
    choice = value.lower()
    if choice in choices:
        return choice
    import difflib  # only a wrong word pays for it

    near = difflib.get_close_matches(choice, sorted(choices), n=1)
    meant = f" (did you mean {near[0]}?)" if near else ""
    raise ValueError(f"{value!r} is not one of {', '.join(choices)}{meant}")


def _parse_choices(value: str, choices: Collection[str]) -> frozenset[str]:
    """Parse one word, or several separated by commas."""
    return frozenset(_parse_choice(item, choices) for item in value.split(","))


def _parse_type(value: str, _facts: Facts) -> Predicate:
    wanted = _parse_choices(value, TYPES)
    return lambda record, _facts: record.memory.type in wanted


def _parse_category(value: str, facts: Facts) -> Predicate:
    wanted = _parse_choices(value, facts.categories)
    return lambda record, _facts: record.memory.category in wanted


def _parse_status(value: str, _facts: Facts) -> Predicate:
    wanted = _parse_choices(value, STATUSES)
    return lambda record, _facts: record.memory.status in wanted


def _build_glob_reader(key: str) -> Callable[[str, Facts], Predicate]:
    """Build a reader of globs for the items of a list field."""

    def read(value: str, _facts: Facts) -> Predicate:
        wanted = value.casefold()
        return lambda record, _facts: any(
            matches_name(wanted, item.casefold()) for item in record.memory.items(key)
        )

    return read


def _build_line_reader(key: str) -> Callable[[str, Facts], Predicate]:
    """Build a reader of globs for a text field."""

    def read(value: str, _facts: Facts) -> Predicate:
        wanted = value.casefold()
        return lambda record, _facts: matches_name(wanted, record.memory.text(key).casefold())

    return read


def _build_passage_reader(key: str) -> Callable[[str, Facts], Predicate]:
    """Build a reader of words that must be next to each other in a text field."""

    def read(value: str, _facts: Facts) -> Predicate:
        wanted = normalize_words(value)
        if not wanted.strip():
            raise ValueError("there is no word in it")
        return lambda record, _facts: wanted in normalize_words(record.memory.text(key))

    return read


def _parse_file(value: str, facts: Facts) -> Predicate:
    wanted = value.removeprefix("./")
    by_name = "/" not in wanted

    def names(record: Record, _facts: Facts) -> bool:
        return any(
            matches_or_contains(entry, wanted)
            or matches_or_contains(wanted, entry)
            or (by_name and matches_name(wanted, entry.rstrip("/").rpartition("/")[2]))
            for entry in (*facts.moves.list_governed_paths(record), *record.memory.cited_paths())
        )

    return names


def _parse_comparison(value: str, read: Callable[[str], float]) -> Callable[[float], bool]:
    """Parse `>=x`, `<=x`, `>x`, `<x`, `=x` or `x` into a test of a number."""
    mark = next((m for m in (">=", "<=", ">", "<", "=") if value.startswith(m)), "")
    limit = read(value[len(mark) :])
    tests: dict[str, Callable[[float], bool]] = {
        ">=": lambda number: number >= limit,
        "<=": lambda number: number <= limit,
        ">": lambda number: number > limit,
        "<": lambda number: number < limit,
    }
    return tests.get(mark, lambda number: number == limit)


def _parse_confidence(value: str, _facts: Facts) -> Predicate:
    test = _parse_comparison(
        value, lambda text: CONFIDENCES.index(_parse_choice(text, CONFIDENCES))
    )
    return lambda record, _facts: test(CONFIDENCES.index(record.memory.confidence))


def _parse_importance(value: str, _facts: Facts) -> Predicate:
    def parse_share(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise ValueError(f"{text!r} is not a number") from None
        if not 0 <= number <= 1:
            raise ValueError(f"{text} is not between 0 and 1")
        return number

    test = _parse_comparison(value, parse_share)
    return lambda record, _facts: test(record.memory.importance)


def _parse_iteration(value: str, _facts: Facts) -> Predicate:
    def parse_count(text: str) -> int:
        if not (text.isascii() and text.isdigit()):
            raise ValueError(f"{text!r} is not a whole number")
        return int(text[:18])

    test = _parse_comparison(value, parse_count)
    return lambda record, _facts: (
        bool(text := record.memory.text("iteration")) and test(int(text[:18]))
    )


def _parse_moment(value: str, now: int) -> int:
    try:
        return timestamps.parse_when(value, now)
    except (ValueError, IndexError):
        raise ValueError(f"{value!r} is not a time such as 30d, 12h or 2026-01-31") from None


def _parse_since(value: str, facts: Facts) -> Predicate:
    first = _parse_moment(value, facts.now)
    return lambda record, _facts: record.memory.timestamp >= first


def _parse_until(value: str, facts: Facts) -> Predicate:
    last = _parse_moment(value, facts.now)
    if len(value) == 10 and value[4] == "-":
        last = timestamps.end(value)
    return lambda record, _facts: record.memory.timestamp <= last


def _parse_source(value: str, _facts: Facts) -> Predicate:
    wanted = value.casefold()
    is_glob = "*" in wanted or "?" in wanted

    def fits(source: str) -> bool:
        kind, _colon, tail = source.partition(":")
        if wanted in SOURCE_KINDS:
            return kind == wanted
        if is_glob and kind == "file":
            # Lines and a commit may follow the path.
            paths = (tail, tail.partition("#")[0], tail.rpartition("@")[0])
            return any(matches_or_contains(wanted.removeprefix("file:"), path) for path in paths)
        if is_glob:
            return matches_name(wanted, tail) or matches_name(wanted, source)
        return tail.startswith(wanted) or source.startswith(wanted)

    def comes_from(record: Record, _facts: Facts) -> bool:
        return any(fits(source.casefold()) for source in record.memory.items("source"))

    return comes_from


def _parse_author(value: str, _facts: Facts) -> Predicate:
    wanted = value.casefold()
    return lambda record, facts: wanted in facts.origins[record.path].author.casefold()


def _parse_id(value: str, facts: Facts) -> Predicate:
    wanted = ids.without_commit(value.casefold())
    matches = frozenset(short_ids.find_short(wanted, facts.tree.ids))
    return lambda record, _facts: record.id in matches or matches_name(wanted, record.id)


def _has_status(status: str) -> Predicate:
    return lambda record, _facts: record.memory.status == status


def _has_state(state: str) -> Predicate:
    return lambda record, facts: facts.state(record) == state


def _has_trust(min_trust: int) -> Predicate:
    return lambda record, facts: facts.trust(record) >= min_trust


CONFLICTED, DRIFTED, UNSETTLED = "conflicted", "drifted", "unsettled"
IS_VALUES: dict[str, Predicate] = {
    "head": lambda record, facts: facts.lineage.is_head(record.id),
    SUPERSEDED: lambda record, facts: not facts.lineage.is_head(record.id),
    **{status: _has_status(status) for status in STATUSES},
    lifecycle.ALIVE: lambda record, facts: not facts.find_hiding_states(record),
    lifecycle.EXPIRED: _has_state(lifecycle.EXPIRED),
    "expiring": lambda record, facts: facts.is_expiring(record),
    "due": lambda record, facts: facts.is_due(record),
    lifecycle.PENDING: _has_state(lifecycle.PENDING),
    CONFLICTED: lambda record, facts: record.id in facts.conflicted,
    DRIFTED: lambda record, facts: facts.is_drifted(record),
    UNSETTLED: lambda record, facts: facts.is_drifted(record),
    "local": lambda record, facts: facts.trust(record) == 0,
    **{level: _has_trust(place) for place, level in enumerate(TRUST_LEVELS) if place},
}
"""Values of `is:`. `committed`, `trusted` and `signed` mean that or more, `local` only that."""


def _parse_is(value: str, facts: Facts) -> Predicate:
    chosen = _parse_choice(value, IS_VALUES)
    if chosen in (DRIFTED, UNSETTLED):
        facts.expect_drift()
    if chosen == UNSETTLED:
        from memtool.search.unsettled import Unsettled  # it reads all edges

        causes = Unsettled(facts.tree, facts.now, facts.drift, facts.lineage).all
        return lambda record, facts: record.id in causes or facts.is_drifted(record)
    if chosen != CONFLICTED:
        return IS_VALUES[chosen]
    # Imported late: it compares all memories, or reads the stored comparison.
    from memtool.search import conflicts

    known_conflicts = conflicts.find_contradictions(facts.tree, facts.now, facts.tree.cache_dir)
    ids = facts.conflicted.union(
        *(conflict.ids for conflict in known_conflicts if not conflict.accepted)
    )
    return lambda record, _facts: record.id in ids


def _lift_named_states(value: str) -> frozenset[str]:
    if value.lower() == CONFLICTED:  # the members of a circle supersede each other
        return frozenset({SUPERSEDED})
    return frozenset(value.lower().split(",")) & frozenset(HIDDEN)


def _lift_for_exact_id(value: str) -> frozenset[str]:
    return frozenset() if "*" in value or "?" in value else frozenset(HIDDEN)


def _lift_superseded(_value: str) -> frozenset[str]:
    return frozenset({SUPERSEDED})  # what replaces one memory may be replaced by another


def _build_relation_reader(name: str) -> Callable[[str, Facts, int], Predicate]:
    """Build a reader of a memory that finds those leading to it by a relation."""
    key = RELATION_FIELDS[name]

    def read(value: str, facts: Facts, depth: int) -> Predicate:
        first = _resolve_id(value, facts.tree, key)
        reached, edge = {first}, {first}
        naming = None if depth == 1 else _map_names(facts.tree, key)
        steps = 0
        while edge and (not depth or steps < depth):
            near = {
                near_id for id_ in edge for near_id in _related_ids(facts.tree, id_, name, naming)
            }
            edge = near - reached
            reached |= near
            steps += 1
        reached.discard(first)
        return lambda record, _facts: record.id in reached

    return read


def _resolve_id(value: str, tree: Tree, key: str) -> str:
    """Return the id of a memory, even of a deleted one if other memories name it.

    Raises:
        MemtoolError: no memory matches, or several do.
    """
    try:
        return tree.find(value).id
    except MemtoolError as error:
        if error.code == "unknown-id" and any(
            value in record.memory.items(key) for record in tree.naming(value)
        ):
            return value
        raise


def _map_names(tree: Tree, key: str) -> dict[str, list[str]]:
    """Map each id in a field to the memories that name it; many steps need all of them."""
    naming: dict[str, list[str]] = {}
    for record in tree.records:
        for id_ in record.memory.items(key):
            naming.setdefault(id_, []).append(record.id)
    return naming


def _related_ids(
    tree: Tree, id_: str, name: str, naming: Mapping[str, list[str]] | None
) -> Iterator[str]:
    """Yield the ids that lead to a memory in one step; `naming` maps ids to what names them."""
    key = RELATION_FIELDS[name]
    if naming is not None:
        yield from naming.get(id_, ())
    else:
        yield from (record.id for record in tree.naming(id_) if id_ in record.memory.items(key))
    if name == "related" and id_ in tree:
        yield from tree[id_].memory.items(key)


def _build_refusal(name: str) -> Callable[[str, Facts], Predicate]:
    """Build a reader that refuses a filter for the choice of other repositories."""

    def read(_value: str, _facts: Facts) -> Predicate:
        raise MemtoolError(
            f"{name}: selects other repositories, so it cannot be combined with this",
            hint=f"memtool search --fleet WORDS {name}:NAME",
            code="bad-query",
        )

    return read


_TABLE: tuple[FilterRow, ...] = (
    FilterRow("type", "type of memory", _parse_type),
    FilterRow("category", "category; by default that of the type", _parse_category),
    FilterRow("tag", "tag", _build_glob_reader("tags")),
    FilterRow("file", "a file that it governs or cites", _parse_file),
    FilterRow("status", "status", _parse_status, _lift_named_states),
    FilterRow("confidence", "how sure the author is", _parse_confidence),
    FilterRow("importance", "importance; 0.5 if not set", _parse_importance),
    FilterRow("since", "written then or later", _parse_since),
    FilterRow("until", "written then or earlier, including that day", _parse_until),
    FilterRow("source", "where it comes from", _parse_source),
    FilterRow("author", "author of its last commit", _parse_author),
    FilterRow("error", "error that it is about", _build_passage_reader("error_signature")),
    FilterRow("task", "task that it belongs to", _build_line_reader("task_id")),
    FilterRow("session", "session that it comes from", _build_line_reader("session")),
    FilterRow("iteration", "attempt at the task", _parse_iteration),
    FilterRow(
        "environment", "environment in which it was seen", _build_passage_reader("environment")
    ),
    FilterRow(
        "privacy",
        "label of privacy",
        _build_glob_reader("privacy"),
        lambda _value: frozenset({PRIVATE}),
    ),
    FilterRow(
        "supersedes", "replaces this memory", _build_relation_reader("supersedes"), _lift_superseded
    ),
    FilterRow(
        "related",
        "related to this memory, in either direction",
        _build_relation_reader("related"),
    ),
    FilterRow("parent", "part of this memory", _build_relation_reader("parent")),
    FilterRow("id", "id; a whole id is found in any state", _parse_id, _lift_for_exact_id),
    FilterRow("is", "state, see memtool help states", _parse_is, _lift_named_states),
    FilterRow("repo", "with search --fleet: only from these repositories", _build_refusal("repo")),
    FilterRow(
        "team", "with search --fleet: only from repositories of this team", _build_refusal("team")
    ),
)


FILTERS: dict[str, FilterRow] = {row.name: row for row in _TABLE}
"""Every filter by name, in the order of the manual."""


_NOTHING_LIFTED: Lifted = frozenset()


def build_matcher(
    query: Query, facts: Facts, *, words_match: bool = False, is_hidden: bool = False
) -> Callable[[Record], bool]:
    """Return the predicate of a query.

    `words_match` assumes that the words of a simple query match; use it only for records that the
    index returned for them. `is_hidden` matches what the query would show if it were not hidden.

    Raises:
        MemtoolError: a filter has a bad value; a caret shows the position.
    """
    if words_match and query.is_plain and not is_hidden:
        return facts.is_current
    root: Expression = query.root
    if words_match and isinstance(root, Group) and query.is_by_words:
        root = Group(tuple(item for item in root.items if not isinstance(item, Word)))
    test = _build_test(root, query, facts)

    def matches(record: Record) -> bool:
        lifted = test(record)
        return lifted is not None and (facts.find_hiding_states(record) <= lifted) != is_hidden

    return matches


def _build_test(node: Expression, query: Query, facts: Facts) -> Test:
    if isinstance(node, Group):
        return _test_group(node, query, facts)
    if isinstance(node, Alternatives):
        return _test_alternatives([_test_group(group, query, facts) for group in node.groups])
    if isinstance(node, Filter):
        return _test_filter(node, query, facts)
    if isinstance(node, Not):
        inner = _build_test(node.inner, query, facts)
        return lambda record: _NOTHING_LIFTED if inner(record) is None else None
    if isinstance(node, Phrase):
        phrase = node.text
        return lambda record: _NOTHING_LIFTED if facts.has_phrase(record, phrase) else None
    return _test_any_word([node.text], facts)


def _test_any_word(words: list[str], facts: Facts) -> Test:
    return lambda record: (
        _NOTHING_LIFTED if any(facts.has_word(record, word) for word in words) else None
    )


def _test_group(group: Group, query: Query, facts: Facts) -> Test:
    # Filters come first because they need not read the text; the order changes nothing else.
    items = sorted(group.items, key=lambda item: not isinstance(item, Filter))
    tests = [_build_test(item, query, facts) for item in items if not isinstance(item, Word)]
    words = [item.text for item in group.items if isinstance(item, Word)]
    if words:
        tests.append(_test_any_word(words, facts))

    def test_all(record: Record) -> Lifted | None:
        lifted = _NOTHING_LIFTED
        for test in tests:
            decided = test(record)
            if decided is None:
                return None
            lifted |= decided
        return lifted

    return test_all


def _test_alternatives(tests: list[Test]) -> Test:
    def test_any(record: Record) -> Lifted | None:
        lifted_parts = [lifted for test in tests if (lifted := test(record)) is not None]
        return _NOTHING_LIFTED.union(*lifted_parts) if lifted_parts else None

    return test_any


def _test_filter(node: Filter, query: Query, facts: Facts) -> Test:
    row = FILTERS[node.name]
    try:
        depth = (query.depth,) if node.name in RELATION_FIELDS else ()
        holds = row.read(node.value, facts, *depth)
    except ValueError as error:
        raise build_query_error(
            query.text,
            node.at,
            node.end,
            f"{node.name}: {error}",
            f"{node.name}: takes {FILTER_VALUES[node.name]}",
        ) from None
    lifts = row.lifts(node.value)
    return lambda record: lifts if holds(record, facts) else None
