"""Settings: one table of options, read from `config.toml` in the memory directory.

The table is the only place that names an option: it validates, gives defaults, and is printed by
`memtool config` and in the manual. Anything unknown is an error, never a silent default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memtool.errors import MemtoolError
from memtool.memory.categories import DEFAULT_CATEGORIES, Category
from memtool.memory.fields import TEMPORAL_CLASSES
from memtool.value import Value

CONFIG_NAME = "config.toml"
POINTER_NAME = ".memtool.toml"
"""At the top of a repository: says in which directory the memories are, if not `.memory`."""
DEFAULT_DIRECTORY = ".memory"

Setting = str | int | float | bool


class Option(Value):
    """One setting `section.name`. Numbers lie between `least` and `most`, both allowed."""

    key: str
    default: Setting
    doc: str
    least: float = 0
    most: float = 0
    choices: tuple[str, ...] = ()


OPTIONS: tuple[Option, ...] = (
    Option("trust.ref", "", "the ref whose tree is trusted; by default the remote's default "
           "branch as last fetched, whose own settings decide: no branch vouches for itself"),
    Option("trust.allowed_signers", "", "path of the allowed-signers file inside the trusted ref; "
           "read from the same settings"),
    Option("search.limit", 10, "results of search and list when --limit is not given", 1, 100_000),
    Option("inject.budget_tokens", 2_000, "most tokens of an injected block", 0, 100_000),
    Option("inject.pinned_most", 5, "most memories in the pinned tier", 0, 50),
    Option("inject.pinned_tokens", 400, "most tokens of the pinned tier", 0, 100_000),
    Option("inject.retrieval_most", 5, "most memories in the retrieval tier", 0, 50),
    Option("inject.retrieval_tokens", 1_500, "most tokens of the retrieval tier", 0, 100_000),
    Option("inject.threshold", 0.5, "drop what scores below this share of the best hit", 0, 1),
    Option("inject.trust", "local", "least trust of what is injected",
           choices=("local", "committed", "trusted", "signed")),
)  # fmt: skip
BY_KEY: dict[str, Option] = {option.key: option for option in OPTIONS}
MOST_BYTES = 256 * 1024
MOST_IN_CATEGORY = 1_000_000
CATEGORY_KEYS = ("weight", "ttl_days", "decay_per_day", "temporal_class")


class Config(Value):
    """The settings of one tree. `given` holds what the file says, by dotted key."""

    given: dict[str, Setting]
    categories: dict[str, Category]

    def setting(self, key: str) -> Setting:
        """Return a setting or its default. Raises MemtoolError for an unknown key."""
        return self.given.get(key, option(key).default)

    def number(self, key: str) -> float:
        """Return a numeric setting."""
        return float(self.setting(key))

    def count(self, key: str) -> int:
        """Return a whole-number setting."""
        return int(self.setting(key))

    def text(self, key: str) -> str:
        """Return a text setting."""
        return str(self.setting(key))


DEFAULTS = Config(given={}, categories=DEFAULT_CATEGORIES)


def option(key: str) -> Option:
    """Return the row of a key.

    Raises:
        MemtoolError: there is none; the hint names the nearest.
    """
    if key in BY_KEY:
        return BY_KEY[key]
    import difflib

    near = difflib.get_close_matches(key, BY_KEY, n=2, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else "memtool config lists every setting"
    raise MemtoolError(f"there is no setting {key!r}", hint=hint, code="config")


def parse(data: bytes, path: str) -> Config:
    """Read a config file.

    Raises:
        MemtoolError: it is not TOML, or holds a setting that does not exist or cannot be so.
    """
    tables = read_toml(data, path)
    categories = dict(DEFAULT_CATEGORIES)
    for name, row in _table(tables.pop("categories", {}), "categories", path).items():
        categories[name] = _category(name, _table(row, f"categories.{name}", path), path)
    given: dict[str, Setting] = {}
    for section, table in tables.items():
        for name, value in _table(table, section, path).items():
            key = f"{section}.{name}"
            given[key] = checked(option(key), value, path)
    return Config(given=given, categories=categories)


def read_toml(data: bytes, path: str) -> dict[str, Any]:
    """Parse TOML bytes. Raises MemtoolError with the line where they are wrong."""
    import tomllib  # half an interpreter start, so only where a file is there

    if len(data) > MOST_BYTES:
        raise MemtoolError(f"{path} has {len(data):,} bytes, {MOST_BYTES:,} are allowed",
                           hint=f"edit {path}", code="config")  # fmt: skip
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:  # of TOML, UTF-8, digits or brackets
        raise MemtoolError(f"{path} is not TOML: {error}", hint=f"edit {path}",
                           code="config") from None  # fmt: skip


def checked(row: Option, value: object, path: str) -> Setting:
    """Return a value as the option wants it. Raises MemtoolError where it does not fit."""
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


def _table(value: object, name: str, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _refusal(path, name, "must be a table")
    return value


def _category(name: str, row: Mapping[str, Any], path: str) -> Category:
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
