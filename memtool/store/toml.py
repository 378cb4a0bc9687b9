"""TOML: read settings files without a heavy library, and edit them while keeping comments.

`read_plain` supports only plain TOML and returns None for anything else; `read` then uses
`tomllib`, whose import costs one and a half interpreter starts. A property test checks that both
agree on everything that `read_plain` accepts.

    # a comment
    [section]  [section.name]  [[section.list]]
    key = "text"    key = 12    key = 0.5    key = true    key = ["text", "text"]
"""

from __future__ import annotations

from memtool.errors import MemtoolError

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


_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_WORDS = {"true": True, "false": False}
_MAX_DIGITS = 15


def read_plain(text: str) -> dict[str, Any] | None:
    """Parse plain TOML; None if the text has anything that is not plain."""
    tables: dict[str, Any] = {}
    table = tables
    opened: set[str] = set()
    for row in text.replace("\r\n", "\n").split("\n"):
        line = row.strip(" \t")
        if not line or line[0] == "#":
            if not line.replace("\t", " ").isprintable():
                return None
            continue
        if line[0] == "[":
            section = _open_table(tables, line, opened)
            if section is None:
                return None
            table = section
            continue
        key, equals, value_text = line.partition("=")
        key = key.rstrip(" \t")
        value = _parse_value(value_text.lstrip(" \t")) if equals else None
        if value is None or not _is_bare(key) or key in table:
            return None
        table[key] = value
    return tables


def _open_table(tables: dict[str, Any], line: str, opened: set[str]) -> dict[str, Any] | None:
    """Return the new table for a line in brackets; None leaves the case to tomllib.

    Those cases are a table that is opened again or after a subtable, and tables inside of a list.
    """
    is_list = line[:2] == "[["
    names = (line[2:-2] if is_list else line[1:-1]).split(".")
    if not line.endswith("]]" if is_list else "]") or not all(map(_is_bare, names)):
        return None
    holder: Any = tables
    for name in names[:-1]:
        holder = holder.setdefault(name, {})
        if not isinstance(holder, dict):
            return None
    is_again = line in opened
    opened.add(line)
    if is_list and (is_again or names[-1] not in holder):
        holder.setdefault(names[-1], []).append({})
        return holder[names[-1]][-1]  # type: ignore[no-any-return]
    table = holder.setdefault(names[-1], {})
    return None if is_list or is_again or table != {} else table


def _is_bare(name: str) -> bool:
    return bool(name) and _BARE.issuperset(name)


def _parse_value(text: str) -> str | int | float | bool | list[str] | None:
    if text in _WORDS:
        return _WORDS[text]
    if text[:1] == "[" and text[-1:] == "]":
        return _parse_texts(text[1:-1].strip(" \t"))
    return _parse_text(text) if text[:1] == '"' else _parse_number(text)


def _parse_texts(inner: str) -> list[str] | None:
    """Parse the texts of a list; None for a text with a comma, which is not plain."""
    texts = []
    for part in inner.split(",") if inner else ():
        text = _parse_text(part.strip(" \t"))
        if text is None:
            return None
        texts.append(text)
    return texts


def _parse_text(text: str) -> str | None:
    inner = text[1:-1]
    is_whole = len(text) > 1 and text[0] == text[-1] == '"'
    return inner if is_whole and inner.isprintable() and not {'"', "\\"} & {*inner} else None


def _parse_number(text: str) -> int | float | None:
    whole, point, part = text.removeprefix("-").partition(".")
    digits = whole + part
    if not (whole and digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS):
        return None
    if (len(whole) > 1 and whole[0] == "0") or bool(point) != bool(part):
        return None
    return float(text) if point else int(text)


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
