"""Options: the table of settings by name, and whether a file gives them as they may be."""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory.categories import DEFAULT_CATEGORIES, Category
from memtool.store.config import PERSONAL, ROWS, Config, Setting
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from memtool.store.config import Row

FINGERPRINT_DIGITS = 16
"""Hexadecimal digits that name a secret in a table of what is allowed."""
MOST_IN_CATEGORY = 1_000_000
CATEGORY_KEYS = ("weight", "ttl_days", "decay_per_day", "temporal_class")
_HEX = frozenset("0123456789abcdef")


class Option(Value):
    """One setting `section.name`. Numbers lie between `least` and `most`, both allowed.

    No text of a list or table is empty; the keys of a table are fingerprints of secrets.
    `is_personal` says that it is about the user: where a project is silent, the settings beside
    their global memories hold.
    """

    key: str
    default: Setting
    doc: str
    least: float = 0
    most: float = 0
    choices: tuple[str, ...] = ()
    is_personal: bool = False


def _option(row: Row) -> Option:
    key, default, doc, *rest = row
    allowed: Any = rest[0] if rest else (0, 0)
    is_choice = isinstance(allowed[0], str)
    least, most = (0, 0) if is_choice else allowed
    return Option(
        key, default, doc, least, most, allowed if is_choice else (), is_personal=key in PERSONAL
    )


OPTIONS: tuple[Option, ...] = tuple(map(_option, ROWS))
BY_KEY: dict[str, Option] = {option.key: option for option in OPTIONS}


def option(key: str) -> Option:
    """Return the row of a key, which may also name one entry of a table, as `section.name.entry`.

    Raises:
        MemtoolError: there is none; the hint names the nearest.
    """
    if key in BY_KEY:
        return BY_KEY[key]
    table = BY_KEY.get(key.rpartition(".")[0])
    if table is not None and isinstance(table.default, dict):
        return table
    import difflib

    near = difflib.get_close_matches(key, BY_KEY, n=2, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else "memtool config lists every setting"
    raise MemtoolError(f"there is no setting {key!r}", hint=hint, code="config")


def parsed(tables: dict[str, Any], path: str) -> Config:
    """Return the settings that the tables of a file give.

    Raises:
        MemtoolError: there is no such setting, or it cannot be so.
    """
    categories = dict(DEFAULT_CATEGORIES)
    for name, row in _table(tables.pop("categories", {}), "categories", path).items():
        categories[name] = _category(name, _table(row, f"categories.{name}", path), path)
    given: dict[str, Setting] = {}
    for section, table in tables.items():
        for name, value in _table(table, section, path).items():
            key = f"{section}.{name}"
            given[key] = checked(option(key), value, path)
    return Config(given=given, categories=categories)


def checked(row: Option, value: object, path: str) -> Setting:
    """Return a value as the option wants it. Raises MemtoolError where it does not fit."""
    if isinstance(row.default, tuple):
        if not isinstance(value, list | tuple) or not all(map(_is_said, value)):
            raise _refusal(path, row.key, "must be a list of texts, none of them empty")
        return tuple(value)
    if isinstance(row.default, dict):
        return _reasons(row, value, path)
    wanted = type(row.default)
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, str | int | float) or type(value) is not wanted:
        names = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
        raise _refusal(path, row.key, f"must be {names[wanted]}")
    if row.choices and value not in row.choices:
        raise _refusal(path, row.key, f"must be one of {', '.join(row.choices)}")
    if isinstance(value, int | float) and wanted is not bool and not row.least <= value <= row.most:
        raise _refusal(path, row.key, f"must be between {row.least:g} and {row.most:g}")
    return value


def _reasons(row: Option, value: object, path: str) -> dict[str, str]:
    if not isinstance(value, dict) or not all(map(_is_said, value.values())):
        raise _refusal(path, row.key, 'must be a table of lines FINGERPRINT = "the reason"')
    for name in value:
        if len(name) != FINGERPRINT_DIGITS or not _HEX.issuperset(name):
            raise _refusal(
                path, f"{row.key}.{name}", f"must be named by {FINGERPRINT_DIGITS} of 0-9 a-f"
            )
    return {name: value[name] for name in sorted(value)}


def _is_said(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _table(value: object, name: str, path: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _refusal(path, name, "must be a table")
    return value


def _category(name: str, row: Mapping[str, Any], path: str) -> Category:
    from memtool.memory.fields import TEMPORAL_CLASSES
    from memtool.memory.schema import is_id

    where = f"categories.{name}"
    if not is_id(name):
        raise _refusal(path, where, "must be a name of 3 or more of a-z 0-9 . _ -")
    unknown = sorted(set(row) - {*CATEGORY_KEYS, "doc"})
    if unknown:
        raise _refusal(path, f"{where}.{unknown[0]}", f"is not one of {', '.join(CATEGORY_KEYS)}")
    for key in CATEGORY_KEYS[:3]:
        value = row.get(key, 0)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not 0 <= value <= MOST_IN_CATEGORY  # not so for nan either
        ):
            raise _refusal(path, f"{where}.{key}", f"must be from 0 to {MOST_IN_CATEGORY:,}")
    base = DEFAULT_CATEGORIES.get(name, Category(name, 1.0, 0, 0.003, "long_term", ""))
    temporal_class = row.get("temporal_class", base.temporal_class)
    if temporal_class not in TEMPORAL_CLASSES:
        raise _refusal(path, f"{where}.temporal_class",
                       f"must be one of {', '.join(TEMPORAL_CLASSES)}")  # fmt: skip
    return Category(
        name=name,
        weight=float(row.get("weight", base.weight)),
        ttl_days=int(row.get("ttl_days", base.ttl_days)),
        decay_per_day=float(row.get("decay_per_day", base.decay_per_day)),
        temporal_class=temporal_class,
        doc=str(row.get("doc", base.doc)),
    )


def _refusal(path: str, key: str, what: str) -> MemtoolError:
    return MemtoolError(f"{path}: {key} {what}", hint=f"edit {path}, or memtool config KEY VALUE",
                        code="config")  # fmt: skip
