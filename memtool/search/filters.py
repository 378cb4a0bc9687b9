"""The filter table: every `name:value` of the query language, and what it asks of a record.

A row reads the value once into a predicate; the predicate is then asked about each record.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory import lifecycle, timestamps
from memtool.memory.fields import CONFIDENCES, SOURCE_KINDS, STATUSES, TYPES
from memtool.search import globs
from memtool.search.facts import HIDDEN, SUPERSEDED, Facts, flat, governed
from memtool.store.provenance import TRUST_LEVELS
from memtool.store.tree import Record
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    Predicate = Callable[[Record, Facts], bool]


class Filter(Value):
    """One row. `read` turns a value into a predicate; it raises ValueError with one clause.

    `lifts` gives the hidden states that a value asks for by name.
    """

    name: str
    takes: str
    doc: str
    read: Callable[[str, Facts], Predicate]
    lifts: Callable[[str], frozenset[str]] = lambda _value: frozenset()


def _choice(value: str, known: Collection[str]) -> str:
    found = value.lower()
    if found in known:
        return found
    import difflib  # only a wrong word pays for it

    near = difflib.get_close_matches(found, sorted(known), n=1)
    meant = f" (did you mean {near[0]}?)" if near else ""
    raise ValueError(f"{value!r} is not one of {', '.join(known)}{meant}")


def _type(value: str, _facts: Facts) -> Predicate:
    wanted = _choice(value, TYPES)
    return lambda record, _facts: record.memory.type == wanted


def _category(value: str, facts: Facts) -> Predicate:
    wanted = _choice(value, facts.categories)
    return lambda record, _facts: record.memory.category == wanted


def _status(value: str, _facts: Facts) -> Predicate:
    wanted = _choice(value, STATUSES)
    return lambda record, _facts: record.memory.status == wanted


def _tag(value: str, _facts: Facts) -> Predicate:
    wanted = value.casefold()
    return lambda record, _facts: any(
        globs.name_matches(wanted, tag.casefold()) for tag in record.memory.items("tags")
    )


def _file(value: str, _facts: Facts) -> Predicate:
    wanted = value.removeprefix("./")
    by_name = "/" not in wanted

    def names(record: Record, _facts: Facts) -> bool:
        return any(
            globs.governs(entry, wanted)
            or globs.governs(wanted, entry)
            or (by_name and globs.name_matches(wanted, entry.rstrip("/").rpartition("/")[2]))
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


def _error(value: str, _facts: Facts) -> Predicate:
    wanted = flat(value)
    if not wanted.strip():
        raise ValueError("there is no word in it")
    return lambda record, _facts: wanted in flat(record.memory.text("error_signature"))


def _task(value: str, _facts: Facts) -> Predicate:
    wanted = value.casefold()
    return lambda record, _facts: globs.name_matches(
        wanted, record.memory.text("task_id").casefold()
    )


def _id(value: str, _facts: Facts) -> Predicate:
    wanted = value.casefold()
    return lambda record, _facts: globs.name_matches(wanted, record.id)


def _has_status(status: str) -> Predicate:
    return lambda record, _facts: record.memory.status == status


def _has_state(state: str) -> Predicate:
    return lambda record, facts: facts.state(record) == state


def _has_trust(least: int) -> Predicate:
    return lambda record, facts: facts.trust(record) >= least


IS: dict[str, Predicate] = {
    "head": lambda record, facts: facts.lineage.is_head(record.id),
    SUPERSEDED: lambda record, facts: not facts.lineage.is_head(record.id),
    **{status: _has_status(status) for status in STATUSES},
    lifecycle.ALIVE: lambda record, facts: not facts.hidden(record),
    lifecycle.EXPIRED: _has_state(lifecycle.EXPIRED),
    lifecycle.PENDING: _has_state(lifecycle.PENDING),
    "conflicted": lambda record, facts: record.id in facts.conflicted,
    "local": lambda record, facts: facts.trust(record) == 0,
    **{level: _has_trust(place) for place, level in enumerate(TRUST_LEVELS) if place},
}
"""What `is:` can ask. `committed`, `trusted` and `signed` mean that or more, `local` just that."""

NOT_YET = {"drifted": "whether the code still matches a memory is not worked out yet"}
"""Words of `is:` that have a meaning, but no answer: they are refused, never answered wrongly."""


def _is(value: str, _facts: Facts) -> Predicate:
    if value.lower() in NOT_YET:
        raise MemtoolError(
            f"is:{value.lower()} is not available: {NOT_YET[value.lower()]}",
            hint=f"leave it out; is: takes {', '.join(IS)}",
            code="not-available",
        )
    return IS[_choice(value, IS)]


def _named_state(value: str) -> frozenset[str]:
    if value.lower() == "conflicted":  # the members of a circle supersede each other
        return frozenset({SUPERSEDED})
    return frozenset({value.lower()}) & frozenset(HIDDEN)


def _exact_id(value: str) -> frozenset[str]:
    return frozenset() if "*" in value or "?" in value else frozenset(HIDDEN)


_TABLE: tuple[Filter, ...] = (
    Filter("type", "one of " + ", ".join(TYPES), "the kind of memory", _type),
    Filter("category", "a row of the category table", "the category, the type's where none is"
           " written", _category),
    Filter("tag", "a tag or a glob such as auth*", "has the tag", _tag),
    Filter("file", "a path, a directory, a file name or a glob", "governs the file, or names it"
           " as a source", _file),
    Filter("status", "one of " + ", ".join(STATUSES), "where it stands in its life", _status,
           _named_state),
    Filter("confidence", "low, medium or high, after >= <= > < if wanted", "how sure the author is",
           _confidence),
    Filter("importance", "0 to 1, after >= <= > < if wanted", "0.5 where nobody said", _importance),
    Filter("since", "a date, a moment, or an age such as 30d", "written then or later", _since),
    Filter("until", "a date, a moment, or an age such as 30d", "written then or earlier; a date"
           " counts to its end", _until),
    Filter("source", "a kind such as commit, or the beginning of a source", "where the claim comes"
           " from", _source),
    Filter("author", "a part of a name", "who made the last commit to it; nobody where it is not"
           " committed", _author),
    Filter("error", "words of an error", "stands in the error signature", _error),
    Filter("task", "a task or a glob", "belongs to the task", _task),
    Filter("id", "an id, or a glob such as dec-*", "has the id; a whole id is found in any state",
           _id, _exact_id),
    Filter("is", "one of " + ", ".join(IS), "what is derived about it", _is, _named_state),
)  # fmt: skip

FILTERS: dict[str, Filter] = {row.name: row for row in _TABLE}
"""Every filter by name, in the order of the manual."""
