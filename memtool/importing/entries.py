"""Entries of other stores, and the conversion of their keys to those of a memory.

Tables map the stores' names and words to ours. A value that does not fit its key, and a key without
equivalent, is left out with a warning; the entry is still imported.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from memtool import tables
from memtool.importing import originals
from memtool.importing.json_values import (
    CONFIDENCE_MINIMUMS,
    NoValueError,
    convert_value,
    find_at_paths,
    parse_json,
    parse_moment,
    parse_number,
    split_items,
    split_texts,
    to_scalar_text,
    to_text,
)
from memtool.importing.originals import ForeignRecord, ImportRequest, Original
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
from memtool.value import Value, format_count

CLOCK_SLACK_S = 300
"""Tolerated clock difference between machines; later moments are in the future."""

_FIELD_NAMES = tables.group_rows("importing/field_names")
NAMES = {key: names for key, names in _FIELD_NAMES.items() if not key.startswith(OWN_PREFIX)}
"""For each key of a memory, the names in stores: the first non-empty one counts, or all for lists.
Names are compared in snake_case, so that createdAt equals created_at."""
OWN_NAMES = {key: names for key, names in _FIELD_NAMES.items() if key.startswith(OWN_PREFIX)}
"""For each x- key that is preserved without effect, the names in stores."""
IGNORED_NAMES = frozenset(tables.group_rows("importing/left_out")["any"])
"""Names that are irrelevant or handled elsewhere, so that leaving them out gives no warning."""
MERGED_TABLES = ("metadata", "attributes")
"""Tables whose keys count as keys of the entry, unless it has them itself."""
TYPE_WORDS = {
    **{type_: (type_, "") for type_ in TYPES},
    **{
        word: (type_, category)
        for word, type_, category in tables.read_rows("importing/type_words")
    },
}
"""Type and category for stores' words; unknown words mean semantic."""
_VALUE_WORDS = tables.read_rows("importing/value_words")


def _select_words(field: str) -> dict[str, str]:
    return {word: value for name, word, value in _VALUE_WORDS if name == field}


STATUS_WORDS = _select_words("status")
CONFIDENCE_WORDS = _select_words("confidence")
IMPORTANCE_WORDS = _select_words("importance")
TEMPORAL_WORDS = _select_words("temporal_class")
RELATION_WORDS = {name: name for name in RELATIONS} | _select_words("relation")
"""The relation for each of the stores' words; unknown words mean related_to.

What an entry is based on is its premise. Of what it depends on, a decision needs the content, and
other entries, such as tasks, the end.
"""
LINKS = frozenset({*RELATIONS, "superseded_by", "based_on", "depends_on"})
"""All names of relations here; the last three are no keys of a memory."""
INVERSE_RELATIONS = _select_words("inverse")
"""Names of lists of back links, and the relation of the listed entries to this one."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SENTENCE = re.compile(r"[.!?](?=\s|$)")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_HEADING = re.compile(r"#{1,6}\s+(.*)")
MAX_TITLE_CHARS = 90
"""Limit of a title that is taken from the first sentence of a text."""


class StoreEntry(Value):
    """An entry of a store: its values by name, its location, and defaults for missing values.

    `names` are further names by which other entries refer to it.
    """

    values: Mapping[str, Any]
    original: Original
    lines: tuple[int, int] = (1, 1)
    defaults: Mapping[str, str] = {}
    names: tuple[str, ...] = ()
    part: str = ""


def build_records(
    entries: Sequence[StoreEntry | Problem], request: ImportRequest
) -> Iterator[ForeignRecord | Problem]:
    """Yield the record of each entry, with problems and warnings in their place.

    At the end, yield a warning for each unknown name, with the number of its entries.
    """
    placed_entries = [
        entry.replace(values=_place_values(entry.values, request))
        if isinstance(entry, StoreEntry)
        else entry
        for entry in entries
    ]
    scale = _find_scale(entry for entry in placed_entries if isinstance(entry, StoreEntry))
    back_links = _find_back_links(
        [entry for entry in placed_entries if isinstance(entry, StoreEntry)]
    )
    omitted: dict[tuple[str, str], int] = {}
    for entry in placed_entries:
        if isinstance(entry, Problem):
            yield entry
            continue
        for name in _find_unknown(entry.values):
            omitted[entry.original.shown, name] = omitted.get((entry.original.shown, name), 0) + 1
        yield from _build_record(entry, request, scale, back_links)
    for (place, name), count in sorted(omitted.items()):
        many = format_count(count, "entry has", "entries have")
        shown = originals.to_line(name, 60)
        what = f"{many} {shown}, which no memory has; it is left out"
        mapped = shlex.quote(f"x-{ids.make_slug(shown)}={shown}")
        hint = f"--map {mapped} keeps it"
        yield Problem(place, 0, "left-out", what, hint, severity="warning")


def to_snake_case(name: str) -> str:
    """Return a name in snake_case."""
    return _CAMEL.sub("_", name).lower().replace("-", "_").replace(" ", "_")


def find_relation(word: str, default: str) -> str:
    """Return the relation for a word such as `part_of` or `is part of`, else the default."""
    return RELATION_WORDS.get(to_snake_case(word).removeprefix("is_"), default)


def _place_values(values: Mapping[str, Any], request: ImportRequest) -> dict[str, Any]:
    """Return the values of an entry by name, with mapped ones under names of the tables."""
    own = _merge_tables(values)
    for name, paths in request.places.items():
        value = find_at_paths(values, paths)
        value = find_at_paths(own, paths) if value is None else value
        for path in paths if value is not None else ():
            own.pop(to_snake_case(path.partition(".")[0]), None)
        if value is not None:
            own[NAMES.get(name, (to_snake_case(name),))[0]] = value
    return own


def _merge_tables(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of an entry by snake_case name, merged with those of its tables."""
    own = {to_snake_case(str(name)): value for name, value in values.items()}
    for table in MERGED_TABLES:
        inner = own.get(table)
        if isinstance(inner, str) and inner.startswith("{"):
            inner = parse_json(inner)
        if isinstance(inner, dict):
            own = {to_snake_case(str(name)): value for name, value in inner.items()} | own
    return own


def _find_scale(entries: Iterator[StoreEntry]) -> float:
    """Return the maximum of the importance scale: 1, or 10 or 100 if most values are above 1."""
    parsed = [parse_number(find_first(entry.values, NAMES["importance"])) for entry in entries]
    numbers = sorted(number for number in parsed if number is not None)
    if not numbers or numbers[len(numbers) // 2] <= 1:
        return 1.0
    return 10.0 if numbers[-1] <= 10 else 100.0


def _find_back_links(entries: Sequence[StoreEntry]) -> dict[str, dict[str, list[str]]]:
    """Return relations that only the target entry lists, by name and relation."""
    back_links: dict[str, dict[str, list[str]]] = {}
    for entry in entries:
        name = to_scalar_text(find_first(entry.values, NAMES["id"]))
        for key, relation in INVERSE_RELATIONS.items():
            for other in _split_names(entry.values.get(key)) if name else ():
                back_links.setdefault(other, {}).setdefault(relation, []).append(name)
    return back_links


def _find_unknown(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of an entry that are unknown, or replaced by an equivalent one."""
    shadowed = {name for key in ("title", "body") for name in _find_shadowed(values, NAMES[key])}
    for name, value in values.items():
        has_place = (
            name in IGNORED_NAMES
            or name.startswith("x_")
            or (name in ALL_NAMES and name not in shadowed)
        )
        if not has_place and not _is_empty(value):
            yield name


ALL_NAMES = frozenset().union(*NAMES.values(), *OWN_NAMES.values())
"""All names of the tables."""


def _find_shadowed(values: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return the names whose value differs from that of the first non-empty one."""
    filled = [name for name in names if not _is_empty(values.get(name))]
    return [name for name in filled[1:] if values[name] != values[filled[0]]]


def _build_record(
    entry: StoreEntry,
    request: ImportRequest,
    scale: float,
    back_links: Mapping[str, Mapping[str, Sequence[str]]],
) -> Iterator[ForeignRecord | Problem]:
    values = entry.values
    body = _build_body(values)
    title = to_scalar_text(find_first(values, NAMES["title"])) or _build_title(values, body)
    name = to_scalar_text(find_first(values, NAMES["id"]))
    if not (title.strip() or body.strip()):
        what = "the entry says nothing; it is left out"
        place, line = entry.original.shown, entry.lines[0]
        yield Problem(place, line, "empty-entry", what, "", severity="warning")
        return
    fields: Fields = {}
    for key, value in _convert_values(entry, request, scale):
        if isinstance(value, NoValueError):
            what = f"{key}: {value}; it is left out"
            hint = f"--set {key}=VALUE sets it for all"
            place, line = entry.original.shown, entry.lines[0]
            yield Problem(place, line, "bad-value", what, hint, severity="warning")
        else:
            fields[key] = value
    for relation, sources in back_links.get(name, {}).items():
        fields[relation] = tuple(dict.fromkeys((*_to_tuple(fields.get(relation)), *sources)))
    newer = _to_tuple(fields.pop("superseded_by", ()))
    premises = _to_tuple(fields.pop("based_on", ()))
    needs = _to_tuple(fields.pop("depends_on", ()))
    if fields["type"] == "decision":
        premises += needs
    elif needs:
        fields["blocked_by"] = tuple(dict.fromkeys((*_to_tuple(fields.get("blocked_by")), *needs)))
    prefix = ids.TYPE_PREFIX.get(str(fields["type"]), "rec")
    key = name or f"{title} {originals.digest(body)}"
    yield ForeignRecord(
        key=key,
        id=originals.to_id(name or ids.make_slug(title), prefix),
        fields=fields | {"title": originals.to_line(title, originals.MAX_TITLE_CHARS)},
        body=body,
        original=entry.original,
        lines=entry.lines,
        names=entry.names,
        superseded_by=newer,
        premises=tuple(dict.fromkeys(premises)),
        part=entry.part or key,
    )


def _build_title(values: Mapping[str, Any], body: str) -> str:
    """Build a title for an entry without one; of a key-value pair it begins with the key."""
    key = to_scalar_text(values.get("key")) if "value" in values else ""
    from_body = find_title(body)
    return f"{key}: {from_body}" if key and from_body and values.get("id") else from_body or key


def _convert_values(
    entry: StoreEntry, request: ImportRequest, scale: float
) -> Iterator[tuple[str, FieldValue | NoValueError]]:
    """Yield each key that an entry has, with its value or the error."""
    yield from _derive_values(entry, request)
    for key, names in NAMES.items():
        if key in ("id", "title", "body", "type", "category"):
            continue
        value = (
            _find_all(entry.values, names) if key in LIST_KEYS else find_first(entry.values, names)
        )
        if _is_empty(value):
            continue
        try:
            yield from _convert_value(key, value, request, scale)
        except NoValueError as error:
            yield key, error
    yield from _convert_own(entry.values)


def _derive_values(entry: StoreEntry, request: ImportRequest) -> Iterator[tuple[str, str]]:
    """Yield values derived from words of an entry, and defaults."""
    values = entry.values
    type_, category = _find_kind(values, entry.defaults)
    yield "type", type_
    if category in request.categories:
        yield "category", category
    for key in ("status", "confidence"):
        if key in entry.defaults:
            yield key, entry.defaults[key]
    if to_scalar_text(values.get("exclude_from_retrieval")) == "true":
        yield "status", "archived"
    for what in ("decision", "implementation"):
        if to_scalar_text(values.get(f"awaiting_{what}")) == "true":
            yield "awaiting", what


def _convert_own(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield x- keys: values without effect here, and keys that were x- keys already."""
    for own, names in OWN_NAMES.items():
        value = find_first(values, names)
        if _is_empty(value) or (own == "x-confidence" and parse_number(value) is None):
            continue
        if own == "x-updated":
            if value == find_first(values, NAMES["timestamp"]):
                continue
            value = parse_moment(value) if isinstance(value, str | int | float) else value
        line = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        yield own, originals.to_line(line, schema.MAX_LINE)
    for name, value in values.items():
        own = name.replace("_", "-")
        if own.startswith(OWN_PREFIX) and len(own) > len(OWN_PREFIX):
            yield own, originals.to_line(to_scalar_text(value), schema.MAX_LINE)


def _is_empty(value: Any) -> bool:
    return value in (None, "", [], {})


LIST_KEYS = frozenset({name for name, field in BY_NAME.items() if field.kind in LIST_KINDS} | LINKS)
"""Keys with lists; their values under all names are combined."""


def _convert_value(
    key: str, raw: Any, request: ImportRequest, scale: float
) -> Iterator[tuple[str, FieldValue]]:
    """Convert a value, usually to one key. Raises NoValueError if it does not fit."""
    if key in LINKS:
        yield from _convert_relations(key, raw)
        return
    outside: list[str] = []
    if key == "importance":
        value: FieldValue = _convert_importance(raw, scale)
    elif key == "files":
        paths = {item: _to_repository_path(item, request.top) for item in split_texts(raw)}
        value = tuple(dict.fromkeys(filter(None, paths.values())))
        outside = [item for item, path in paths.items() if not path]
    else:
        value = _CONVERTERS.get(key, lambda raw: convert_value(key, raw))(raw)
    if outside:
        shown_ = originals.to_line(", ".join(outside), 200)
        yield from _convert_value(key, list(value), request, scale)
        raise NoValueError(f"{shown_} is outside the repository")
    if value in ("", ()):
        return
    fault = schema.find_value_fault(BY_NAME[key], value, request.categories)
    if fault:
        raise NoValueError(originals.to_line(fault, 200))
    if key == "timestamp" and timestamps.parse(str(value)) > request.now + CLOCK_SLACK_S:
        raise NoValueError(f"{value} is in the future")
    yield key, value


def _to_word(value: Any) -> str:
    return to_snake_case(to_scalar_text(value))


def _convert_status(value: Any) -> str:
    word = _to_word(value)
    return STATUS_WORDS.get(word) or originals.find_state(word.replace("_", " ")) or "candidate"


def _convert_confidence(value: Any) -> str:
    """Return the level for a number on a scale to 1, 10 or 100, or for a word."""
    number = parse_number(value)
    if number is None:
        return CONFIDENCE_WORDS.get(_to_word(value), _to_word(value))
    number /= 1 if number <= 1 else 10 if number <= 10 else 100
    return next(level for level, minimum in CONFIDENCE_MINIMUMS if number >= minimum)


def _convert_importance(value: Any, scale: float) -> str:
    number = parse_number(value)
    if number is None:
        return IMPORTANCE_WORDS.get(_to_word(value), to_scalar_text(value))
    return f"{round(number / scale, 4):g}"


def _convert_tags(value: Any) -> tuple[str, ...]:
    lines = (originals.to_line(item.lstrip("#"), 100) for item in split_texts(value))
    return tuple(dict.fromkeys(filter(None, lines)))[: schema.MAX_ITEMS]


def _convert_moment(value: Any) -> str:
    """Return a moment; seconds since 1970 may be text, as in front matter."""
    text = to_scalar_text(value)
    is_number = text.isascii() and text.isdigit() and 9 <= len(text) <= 13
    return parse_moment(int(text) if is_number else value)


def _convert_day(value: Any) -> str:
    """Return a moment, or a day unchanged, as its start and end are different moments."""
    return to_scalar_text(value) if _DAY.fullmatch(to_scalar_text(value)) else parse_moment(value)


def _convert_sources(value: Any) -> tuple[str, ...]:
    return tuple(item for item in split_texts(value) if not schema.find_source_fault(item))


_CONVERTERS: dict[str, Callable[[Any], FieldValue]] = {
    "status": _convert_status,
    "confidence": _convert_confidence,
    "temporal_class": lambda value: TEMPORAL_WORDS.get(_to_word(value), _to_word(value)),
    "tags": _convert_tags,
    "source": _convert_sources,
    "timestamp": _convert_moment,
    "valid_from": _convert_day,
    "valid_through": _convert_day,
}
"""Keys whose values need a special conversion."""


def _to_repository_path(text: str, top: str) -> str:
    """Return a path relative to the top of the repository; empty if outside."""
    if os.path.isabs(text):
        text = os.path.relpath(text, os.path.realpath(top)).replace(os.sep, "/")
    text = text.removeprefix("./")
    return text if schema.is_inside(text) and schema.is_line(text) else ""


def _convert_relations(key: str, value: Any) -> Iterator[tuple[str, FieldValue]]:
    """Yield relations from names, or from tables with a name and a relation."""
    by_relation: dict[str, list[str]] = {}
    for item in value if isinstance(value, list) else [value]:
        relation, target = key, item
        if isinstance(item, dict):
            values = _merge_tables(item)
            kind = to_scalar_text(
                find_first(values, ("type", "relation", "relation_type", "relationship"))
            )
            relation = find_relation(kind, key)
            target = find_first(values, ("id", "target", "target_id", "to", "memory_id", "name"))
        for name in _split_names(target):
            by_relation.setdefault(relation, []).append(name)
    for relation, names in by_relation.items():
        yield relation, tuple(dict.fromkeys(names))[: schema.MAX_ITEMS]


def _split_names(value: Any) -> list[str]:
    parts = value if isinstance(value, list) else to_scalar_text(value).split(",")
    return [text for text in (to_scalar_text(part).strip("[] ") for part in parts) if text]


def _to_tuple(value: FieldValue | None) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def _find_kind(values: Mapping[str, Any], defaults: Mapping[str, str]) -> tuple[str, str]:
    """Return type and category, from the first known words."""
    texts = [
        to_snake_case(to_scalar_text(values.get(name)))
        for name in (*NAMES["type"], *NAMES["category"])
    ]
    # In `user_preference` and `preference_food`, one part is a known word.
    words = [part for word in texts for part in (word, *word.split("_")[::-1])]
    words = [part if part in TYPE_WORDS else part.removesuffix("s") for part in words]
    meanings = [TYPE_WORDS[word] for word in words if word in TYPE_WORDS]
    type_ = meanings[0][0] if meanings else defaults.get("type", "semantic")
    categories = [word for word in words if word in DEFAULT_CATEGORIES]
    categories += [category for _type, category in meanings if category]
    return type_, (categories or [defaults.get("category", "")])[0]


def _build_body(values: Mapping[str, Any]) -> str:
    """Return the text of an entry, with the reason for keeping it if given."""
    value = find_first(values, NAMES["body"])
    body = value if isinstance(value, str) else to_text(value)
    why = to_scalar_text(values.get("reasoning"))
    if why and why not in body:
        body = f"{body.rstrip()}\n\nWhy it was kept: {why}"
    return body


def find_title(body: str) -> str:
    """Return a title for a text: its first heading or sentence, cut at a word."""
    line = next((row.strip() for row in body.split("\n") if row.strip()), "")
    heading = _HEADING.fullmatch(line)
    line = (heading[1] if heading else line).strip("*_ ").removeprefix("- ")
    end = _SENTENCE.search(line)
    sentence = line[: end.start()] if end and end.start() > 2 else line
    if len(sentence) <= MAX_TITLE_CHARS:
        return sentence
    cut = sentence[: MAX_TITLE_CHARS - 1]
    return f"{cut.rpartition(' ')[0] or cut}…"


def find_first(values: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the first non-empty value under one of the names, or None."""
    return next(
        (values[name] for name in names if values.get(name) not in (None, "", [], {})), None
    )


def _find_all(values: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """Return the items under all of the names."""
    items: list[Any] = []
    for name in names:
        value = values.get(name)
        if isinstance(value, list):
            items += value
        elif isinstance(value, str):
            items += split_items(value)
        elif value is not None and value != {}:
            items.append(value)
    return items
