"""TOML: read settings files without a heavy library, and edit them while keeping comments.

What `plain_toml` does not take is read by `tomllib`, whose import costs one and a half interpreter
starts.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.plain_toml import read_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, MutableMapping, Sequence
    from typing import Any

    TomlValue = str | int | float | bool | Sequence[str]

MAX_BYTES = 256 * 1024
DEFAULT_ENTRY = "default"
"""The entry of a table of numbers for all categories without their own number."""


def read(data: bytes, path: str) -> dict[str, Any]:
    """Parse TOML. Raises MemtoolError with the line of a syntax error."""
    if len(data) > MAX_BYTES:
        raise MemtoolError(
            f"{path} has {len(data):,} bytes, the limit is {MAX_BYTES:,}",
            hint=f"edit {path}",
            code="config",
        )
    try:
        text = data.decode()
        tables = read_plain(text)
        if tables is not None:
            return tables
        import tomllib  # costs more than an interpreter start

        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOML, UTF-8, too many digits or brackets
        raise MemtoolError(
            f"{path} is not TOML: {error}", hint=f"edit {path}", code="config"
        ) from None


def set_key(
    text: str,
    key: str | tuple[str, ...],
    value: TomlValue | None,
    divisible_keys: Collection[str] = (),
) -> str:
    """Return the text with a key set, or removed if the value is None.

    `key` is dotted, or a tuple if a part contains a dot. Missing tables are created; a table that
    becomes empty is removed, unless it has comments. Comments, order and spacing are kept.
    `divisible_keys` are those with a number or a table of numbers: if an entry gets a number, an
    existing plain number becomes the entry `default`.

    Raises:
        MemtoolError: the text is not TOML, or a part of the key is not a table there.
    """
    import tomlkit  # only needed to change a setting
    from tomlkit.exceptions import TOMLKitError

    *tables, name = key.split(".") if isinstance(key, str) else key
    try:
        document = tomlkit.parse(text)
        if key in divisible_keys and isinstance(_find_entry(document, tables, name), dict):
            tables, name = [*tables, name], DEFAULT_ENTRY
        elif ".".join(tables) in divisible_keys and value is not None:
            common = _find_entry(document, tables[:1], tables[1])
            if isinstance(common, int | float):
                document[tables[0]][tables[1]] = {DEFAULT_ENTRY: common}
        holders: list[MutableMapping[str, Any]] = [document]
        for part in tables:
            if part not in holders[-1]:
                if value is None:
                    return text
                holders[-1][part] = tomlkit.table()
            inner = holders[-1][part]
            if not isinstance(inner, dict):
                raise MemtoolError(f"cannot set {name}: {part} is not a table", code="config")
            holders.append(inner)
        if value is None:
            _remove(holders, [*tables, name])
        else:
            holders[-1][name] = value if isinstance(value, str | int | float) else list(value)
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise MemtoolError(f"not TOML: {error}", code="config") from None


def rename_key(text: str, old_key: str, key: str) -> str:
    """Return the text with a key `section.name` renamed; a value that the new one has is kept.

    Raises:
        MemtoolError: the text is not TOML.
    """
    import tomlkit  # only needed to change a setting
    from tomlkit.exceptions import TOMLKitError

    (old_section, old_name), (section, name) = old_key.split("."), key.split(".")
    try:
        document = tomlkit.parse(text)
        value = _find_entry(document, [old_section], old_name)
        if value is None:
            return text
        if _find_entry(document, [section], name) is None:
            document.setdefault(section, tomlkit.table())[name] = value
        _remove([document, document[old_section]], [old_section, old_name])
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise MemtoolError(f"not TOML: {error}", code="config") from None


def _find_entry(document: MutableMapping[str, Any], tables: Sequence[str], name: str) -> object:
    """Return the value of a name in nested tables; None if a table is missing."""
    entry: object = document
    for part in (*tables, name):
        entry = entry.get(part) if isinstance(entry, dict) else None
    return entry


def _remove(holders: list[MutableMapping[str, Any]], parts: list[str]) -> None:
    """Remove a key from the innermost table, then all tables that became empty."""
    if parts[-1] not in holders[-1]:
        return
    del holders[-1][parts[-1]]
    import tomlkit

    while len(holders) > 1 and not tomlkit.dumps(holders[-1]).strip():
        parts.pop()
        holders.pop()
        del holders[-1][parts[-1]]
