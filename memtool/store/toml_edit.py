"""TOML edited in place: one key set or removed, every other byte kept. The only user of tomlkit."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from memtool.errors import MemtoolError

TomlValue = str | int | float | bool | Sequence[str]


def set_key(text: str, key: str | tuple[str, ...], value: TomlValue | None) -> str:
    """Return the text with a key set, or removed where the value is None.

    `key` is dotted, or a tuple of parts where a part itself may hold a dot. Missing tables are
    made; a table that loses its last key goes too, unless comments stand in it. Comments, order
    and spacing stay as they are.

    Raises:
        MemtoolError: the text is not TOML, or a part of the key is not a table there.
    """
    *tables, name = key.split(".") if isinstance(key, str) else key
    try:
        document = tomlkit.parse(text)
        holders: list[MutableMapping[str, Any]] = [document]
        for part in tables:
            if part not in holders[-1]:
                if value is None:
                    return text
                holders[-1][part] = tomlkit.table()
            inner = holders[-1][part]
            if not isinstance(inner, MutableMapping):
                raise MemtoolError(
                    f"{part} is not a table there, so it cannot hold {name}", code="config"
                )
            holders.append(inner)
        if value is None:
            _remove(holders, [*tables, name])
        else:
            holders[-1][name] = value if isinstance(value, str | int | float) else list(value)
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise MemtoolError(f"not TOML: {error}", code="config") from None


def _remove(holders: list[MutableMapping[str, Any]], parts: list[str]) -> None:
    """Drop a key from the innermost holder, then the tables that hold nothing any more."""
    if parts[-1] not in holders[-1]:
        return
    del holders[-1][parts[-1]]
    while len(holders) > 1 and not tomlkit.dumps(holders[-1]).strip():
        parts.pop()
        holders.pop()
        del holders[-1][parts[-1]]
