"""Entries: what other stores keep of one memory, and what each key of theirs becomes here.

Tables say how stores call what a memory has, and what their words mean. A value that its key cannot
hold is left out with a warning, and so is a key that has no place; the entry is taken all the same.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from memtool import tables
from memtool.importing import originals
from memtool.importing.json_values import (
    CONFIDENCE_FROM,
    NoValueError,
    as_number,
    as_text,
    at_path,
    items_of,
    json_of,
    moment_of,
    parts_of,
    shown,
    value_of,
)
from memtool.importing.originals import ForeignRecord, Original
from memtool.memory import ids, schema, timestamps
from memtool.memory.fields import (
    BY_NAME,
    DEFAULT_CATEGORIES,
    LIST_KINDS,
    OWN_PREFIX,
    RELATIONS,
    TYPES,
)
from memtool.memory.memory import Fields, FieldValue
from memtool.memory.schema import Problem
from memtool.value import Value, plural

CLOCK_SLACK_S = 300
"""Clocks of two machines differ; only what is later than this counts as the future."""

_FIELD_NAMES = tables.grouped("importing/field_names")
NAMES = {key: names for key, names in _FIELD_NAMES.items() if not key.startswith(OWN_PREFIX)}
"""For each key of a memory, how stores call it: the first that says something counts, of lists all
do. Names are compared in snake_case, so that createdAt is created_at."""
OWN = {key: names for key, names in _FIELD_NAMES.items() if key.startswith(OWN_PREFIX)}
"""What is kept as a key of the user's own, without an effect, under which names stores have it."""
UNTOLD = frozenset(tables.grouped("importing/left_out")["any"])
"""Names that are no memory's business, or have an effect of their own; none is told as left out."""
MERGED = ("metadata", "attributes")
"""Tables in an entry whose keys count as those of the entry, unless it has them itself."""
TYPE_WORDS = {
    **{type_: (type_, "") for type_ in TYPES},
    **{word: (type_, category) for word, type_, category in tables.rows("importing/type_words")},
}
"""Type and category for the words by which stores say what an entry is; all else is semantic."""
_VALUE_WORDS = tables.rows("importing/value_words")


def _words_of(field: str) -> dict[str, str]:
    return {word: value for name, word, value in _VALUE_WORDS if name == field}


STATUS_WORDS = _words_of("status")
CONFIDENCE_WORDS = _words_of("confidence")
IMPORTANCE_WORDS = _words_of("importance")
TEMPORAL_WORDS = _words_of("temporal_class")
RELATION_WORDS = {name: name for name in RELATIONS} | _words_of("relation")
"""The relation for each word by which stores name one; all other words mean related_to."""
INVERSE = _words_of("inverse")
"""Names of lists that say of other entries what those do not say themselves."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SENTENCE = re.compile(r"[.!?](?=\s|$)")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_HEADING = re.compile(r"#{1,6}\s+(.*)")
MOST_TITLE = 90
"""Characters of a title that is made of the first sentence of a text."""


class StoreRequest(Value):
    """What a store is imported for: the top of the repository, its categories, the clock.

    `project` is the one whose entries are wanted, where a store has several; empty for that of the
    repository. `places` says where keys are found that the tables know nothing of.
    """

    top: str
    categories: Collection[str] = tuple(DEFAULT_CATEGORIES)
    now: int = 0
    project: str = ""
    places: Mapping[str, Sequence[str]] = {}


class StoreEntry(Value):
    """An entry of a store: its values by name, where it is, and what holds where it says nothing.

    `names` are other names by which entries refer to it.
    """

    values: Mapping[str, Any]
    original: Original
    lines: tuple[int, int] = (1, 1)
    defaults: Mapping[str, str] = {}
    names: tuple[str, ...] = ()
    part: str = ""


def records(
    entries: Sequence[StoreEntry | Problem], asked: StoreRequest
) -> Iterator[ForeignRecord | Problem]:
    """Yield the record of each entry, and problems and warnings where they belong.

    At the end comes a warning for each name that has no place, with the number of its entries.
    """
    wholes = [
        entry.replace(values=_placed(entry.values, asked))
        if isinstance(entry, StoreEntry)
        else entry
        for entry in entries
    ]
    most = _scale(entry for entry in wholes if isinstance(entry, StoreEntry))
    told = _told_by_others([entry for entry in wholes if isinstance(entry, StoreEntry)])
    left: dict[tuple[str, str], int] = {}
    for entry in wholes:
        if isinstance(entry, Problem):
            yield entry
            continue
        for name in _unknown(entry.values):
            left[entry.original.shown, name] = left.get((entry.original.shown, name), 0) + 1
        yield from _record(entry, asked, most, told)
    for (place, name), count in sorted(left.items()):
        many = plural(count, "entry has", "entries have")
        shown = originals.line(name, 60)
        what = f"{many} {shown}, which no memory has; it is left out"
        mapped = shlex.quote(f"x-{ids.slug(shown)}={shown}")
        hint = f"--map {mapped} keeps it"
        yield Problem(place, 0, "left-out", what, hint, severity="warning")


def snake(name: str) -> str:
    """Return a name in snake_case."""
    return _CAMEL.sub("_", name).lower().replace("-", "_").replace(" ", "_")


def relation_of(word: str, usual: str) -> str:
    """Return the relation that a word such as `part_of` or `is part of` means, else the usual."""
    return RELATION_WORDS.get(snake(word).removeprefix("is_"), usual)


def _placed(values: Mapping[str, Any], asked: StoreRequest) -> dict[str, Any]:
    """Return the values of an entry by names that the tables know, and those that were mapped."""
    own = _merged(values)
    for name, paths in asked.places.items():
        found = at_path(values, paths)
        found = at_path(own, paths) if found is None else found
        for path in paths if found is not None else ():
            own.pop(snake(path.partition(".")[0]), None)
        if found is not None:
            own[NAMES.get(name, (snake(name),))[0]] = found
    return own


def _merged(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of an entry by names in snake_case, with those of its tables below them."""
    own = {snake(str(name)): value for name, value in values.items()}
    for table in MERGED:
        inner = own.get(table)
        if isinstance(inner, str) and inner.startswith("{"):
            inner = json_of(inner)
        if isinstance(inner, dict):
            own = {snake(str(name)): value for name, value in inner.items()} | own
    return own


def _scale(entries: Iterator[StoreEntry]) -> float:
    """Return the number that means most important: 1, but 10 or 100 where most are above 1."""
    found = [as_number(first(entry.values, NAMES["importance"])) for entry in entries]
    numbers = sorted(number for number in found if number is not None)
    if not numbers or numbers[len(numbers) // 2] <= 1:
        return 1.0
    return 10.0 if numbers[-1] <= 10 else 100.0


def _told_by_others(entries: Sequence[StoreEntry]) -> dict[str, dict[str, list[str]]]:
    """Return the relations of entries that only other entries name, by name and relation."""
    found: dict[str, dict[str, list[str]]] = {}
    for entry in entries:
        name = as_text(first(entry.values, NAMES["id"]))
        for key, relation in INVERSE.items():
            for other in _names(entry.values.get(key)) if name else ():
                found.setdefault(other, {}).setdefault(relation, []).append(name)
    return found


def _unknown(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of an entry that have no place, or whose place another name has taken."""
    taken = {name for key in ("title", "body") for name in _others(values, NAMES[key])}
    for name, value in values.items():
        has_place = (
            name in UNTOLD or name.startswith("x_") or (name in _KNOWN and name not in taken)
        )
        if not has_place and not _is_silent(value):
            yield name


_KNOWN = frozenset().union(*NAMES.values(), *OWN.values())


def _others(values: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return the names that say something else than the first one that says anything."""
    said = [name for name in names if not _is_silent(values.get(name))]
    return [name for name in said[1:] if values[name] != values[said[0]]]


def _record(
    entry: StoreEntry,
    asked: StoreRequest,
    most: float,
    told: Mapping[str, Mapping[str, Sequence[str]]],
) -> Iterator[ForeignRecord | Problem]:
    values = entry.values
    body = _body(values)
    title = as_text(first(values, NAMES["title"])) or _titled(values, body)
    name = as_text(first(values, NAMES["id"]))
    if not (title.strip() or body.strip()):
        what = "the entry says nothing; it is left out"
        place, line = entry.original.shown, entry.lines[0]
        yield Problem(place, line, "empty-entry", what, "", severity="warning")
        return
    fields: Fields = {}
    for key, value in _values(entry, asked, most):
        if isinstance(value, NoValueError):
            what = f"{key}: {value}; it is left out"
            hint = f"--set {key}=VALUE sets it for all"
            place, line = entry.original.shown, entry.lines[0]
            yield Problem(place, line, "bad-value", what, hint, severity="warning")
        else:
            fields[key] = value
    for relation, others in told.get(name, {}).items():
        fields[relation] = tuple(dict.fromkeys((*_listed(fields.get(relation)), *others)))
    newer = _listed(fields.pop("superseded_by", ()))
    prefix = ids.TYPE_PREFIX.get(str(fields["type"]), "rec")
    key = name or f"{title} {originals.digest(body)}"
    yield ForeignRecord(
        key=key,
        id=originals.as_id(name or ids.slug(title), prefix),
        fields=fields | {"title": originals.line(title, originals.TITLE_LENGTH)},
        body=body,
        original=entry.original,
        lines=entry.lines,
        names=entry.names,
        superseded_by=newer,
        part=entry.part or key,
    )


def _titled(values: Mapping[str, Any], body: str) -> str:
    """Return a title for an entry without one; of a pair of key and value, the key begins it."""
    key = as_text(values.get("key")) if "value" in values else ""
    made = title_of(body)
    return f"{key}: {made}" if key and made and values.get("id") else made or key


def _values(
    entry: StoreEntry, asked: StoreRequest, most: float
) -> Iterator[tuple[str, FieldValue | NoValueError]]:
    """Yield each key that an entry has something for, with its value or why it does not fit."""
    yield from _derived(entry, asked)
    for key, names in NAMES.items():
        if key in ("id", "title", "body", "type", "category"):
            continue
        found = _all(entry.values, names) if key in LISTS else first(entry.values, names)
        if _is_silent(found):
            continue
        try:
            yield from _fitting(key, found, asked, most)
        except NoValueError as error:
            yield key, error
    yield from _own(entry.values)


def _derived(entry: StoreEntry, asked: StoreRequest) -> Iterator[tuple[str, str]]:
    """Yield what follows from words of an entry, and what holds where it says nothing."""
    values = entry.values
    type_, category = _kind(values, entry.defaults)
    yield "type", type_
    if category in asked.categories:
        yield "category", category
    for key in ("status", "confidence"):
        if key in entry.defaults:
            yield key, entry.defaults[key]
    if as_text(values.get("exclude_from_retrieval")) == "true":
        yield "status", "archived"
    for what in ("decision", "implementation"):
        if as_text(values.get(f"awaiting_{what}")) == "true":
            yield "awaiting", what


def _own(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield keys of the user's own: what has no effect here, and what was one of these already."""
    for own, names in OWN.items():
        found = first(values, names)
        if _is_silent(found) or (own == "x-confidence" and as_number(found) is None):
            continue
        if own == "x-updated":
            if found == first(values, NAMES["timestamp"]):
                continue
            found = moment_of(found) if isinstance(found, str | int | float) else found
        line = found if isinstance(found, str) else json.dumps(found, sort_keys=True)
        yield own, originals.line(line, schema.MAX_LINE)
    for name, found in values.items():
        own = name.replace("_", "-")
        if own.startswith(OWN_PREFIX) and len(own) > len(OWN_PREFIX):
            yield own, originals.line(as_text(found), schema.MAX_LINE)


def _is_silent(value: Any) -> bool:
    return value in (None, "", [], {})


LISTS = frozenset(
    {name for name, field in BY_NAME.items() if field.kind in LIST_KINDS} | {"superseded_by"}
)
"""Keys that hold lists, of which all names of a store are joined."""


def _fitting(
    key: str, found: Any, asked: StoreRequest, most: float
) -> Iterator[tuple[str, FieldValue]]:
    """Yield what a value becomes, mostly one key. Raises NoValueError where nothing fits."""
    if key in RELATIONS or key == "superseded_by":
        yield from _relations(key, found)
        return
    outside: list[str] = []
    if key == "importance":
        value: FieldValue = _importance(found, most)
    elif key == "files":
        paths = {one: _path(one, asked.top) for one in items_of(found)}
        value = tuple(dict.fromkeys(filter(None, paths.values())))
        outside = [one for one, path in paths.items() if not path]
    else:
        value = _CONVERTERS.get(key, lambda found: value_of(key, found))(found)
    if outside:
        shown_ = originals.line(", ".join(outside), 200)
        yield from _fitting(key, list(value), asked, most)
        raise NoValueError(f"{shown_} is outside of the repository")
    if value in ("", ()):
        return
    fault = schema.value_fault(BY_NAME[key], value, asked.categories)
    if fault:
        raise NoValueError(originals.line(fault, 200))
    if key == "timestamp" and timestamps.parse(str(value)) > asked.now + CLOCK_SLACK_S:
        raise NoValueError(f"{value} is in the future")
    yield key, value


def _word(found: Any) -> str:
    return snake(as_text(found))


def _status(found: Any) -> str:
    word = _word(found)
    return STATUS_WORDS.get(word) or originals.state(word.replace("_", " ")) or "candidate"


def _confidence(found: Any) -> str:
    """Return a level: of a number up to 1, or else of 10 or 100, or of a word."""
    number = as_number(found)
    if number is None:
        return CONFIDENCE_WORDS.get(_word(found), _word(found))
    number /= 1 if number <= 1 else 10 if number <= 10 else 100
    return next(level for level, least in CONFIDENCE_FROM if number >= least)


def _importance(found: Any, most: float) -> str:
    number = as_number(found)
    if number is None:
        return IMPORTANCE_WORDS.get(_word(found), as_text(found))
    return f"{round(number / most, 4):g}"


def _tags(found: Any) -> tuple[str, ...]:
    lines = (originals.line(item.lstrip("#"), 100) for item in items_of(found))
    return tuple(dict.fromkeys(filter(None, lines)))[: schema.MAX_ITEMS]


def _moment(found: Any) -> str:
    """Return a moment; seconds since 1970 may be text, as in a front matter."""
    text = as_text(found)
    is_number = text.isascii() and text.isdigit() and 9 <= len(text) <= 13
    return moment_of(int(text) if is_number else found)


def _when(found: Any) -> str:
    """Return a moment, or a day as it is: the end of a day is another moment than its beginning."""
    return as_text(found) if _DAY.fullmatch(as_text(found)) else moment_of(found)


def _sources(found: Any) -> tuple[str, ...]:
    return tuple(one for one in items_of(found) if not schema.source_fault(one))


_CONVERTERS: dict[str, Callable[[Any], FieldValue]] = {
    "status": _status,
    "confidence": _confidence,
    "temporal_class": lambda found: TEMPORAL_WORDS.get(_word(found), _word(found)),
    "tags": _tags,
    "source": _sources,
    "timestamp": _moment,
    "valid_from": _when,
    "valid_through": _when,
}
"""Keys whose values need more than the form of their kind."""


def _path(text: str, top: str) -> str:
    """Return a path from the top of the repository, empty for one that lies outside."""
    if os.path.isabs(text):
        text = os.path.relpath(text, os.path.realpath(top)).replace(os.sep, "/")
    text = text.removeprefix("./")
    return text if schema.is_inside(text) and schema.is_line(text) else ""


def _relations(key: str, found: Any) -> Iterator[tuple[str, FieldValue]]:
    """Yield relations: names, or tables of a name and the kind of the relation."""
    by_relation: dict[str, list[str]] = {}
    for one in found if isinstance(found, list) else [found]:
        relation, target = key, one
        if isinstance(one, dict):
            values = _merged(one)
            kind = as_text(first(values, ("type", "relation", "relation_type", "relationship")))
            relation = relation_of(kind, key)
            target = first(values, ("id", "target", "target_id", "to", "memory_id", "name"))
        for name in _names(target):
            by_relation.setdefault(relation, []).append(name)
    for relation, names in by_relation.items():
        yield relation, tuple(dict.fromkeys(names))[: schema.MAX_ITEMS]


def _names(value: Any) -> list[str]:
    parts = value if isinstance(value, list) else as_text(value).split(",")
    return [text for text in (as_text(part).strip("[] ") for part in parts) if text]


def _listed(value: FieldValue | None) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def _kind(values: Mapping[str, Any], defaults: Mapping[str, str]) -> tuple[str, str]:
    """Return type and category, from the first word that says either."""
    said = [snake(as_text(values.get(name))) for name in (*NAMES["type"], *NAMES["category"])]
    # Of `user_preference` and `preference_food` one part says it.
    words = [part for word in said for part in (word, *word.split("_")[::-1])]
    words = [part if part in TYPE_WORDS else part.removesuffix("s") for part in words]
    known = [TYPE_WORDS[word] for word in words if word in TYPE_WORDS]
    type_ = known[0][0] if known else defaults.get("type", "semantic")
    categories = [word for word in words if word in DEFAULT_CATEGORIES]
    categories += [category for _type, category in known if category]
    return type_, (categories or [defaults.get("category", "")])[0]


def _body(values: Mapping[str, Any]) -> str:
    """Return the text of an entry, with why it was kept where it says so."""
    found = first(values, NAMES["body"])
    body = found if isinstance(found, str) else shown(found)
    why = as_text(values.get("reasoning"))
    if why and why not in body:
        body = f"{body.rstrip()}\n\nWhy it was kept: {why}"
    return body


def title_of(body: str) -> str:
    """Return a title for a text: its first heading, or its first sentence, cut at a word."""
    line = next((row.strip() for row in body.split("\n") if row.strip()), "")
    heading = _HEADING.fullmatch(line)
    line = (heading[1] if heading else line).strip("*_ ").removeprefix("- ")
    end = _SENTENCE.search(line)
    sentence = line[: end.start()] if end and end.start() > 2 else line
    if len(sentence) <= MOST_TITLE:
        return sentence
    cut = sentence[: MOST_TITLE - 1]
    return f"{cut.rpartition(' ')[0] or cut}…"


def first(values: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the first value that says something under one of the names, or None."""
    return next(
        (values[name] for name in names if values.get(name) not in (None, "", [], {})), None
    )


def _all(values: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """Return the items under all of the names."""
    found: list[Any] = []
    for name in names:
        value = values.get(name)
        if isinstance(value, list):
            found += value
        elif isinstance(value, str):
            found += parts_of(value)
        elif value is not None and value != {}:
            found.append(value)
    return found
