"""TOML: files of settings, read without a heavy library, and edits that keep their comments.

`read_plain` knows plain TOML only and answers None for anything else; `read` then asks `tomllib`,
at one and a half times the cost of an interpreter start. Whatever `read_plain` accepts means the
same to `tomllib`: a property test holds it.

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

MOST_BYTES = 256 * 1024
ELSE = "default"
"""The entry of a table of numbers that counts where no other does."""


def read(data: bytes, path: str) -> dict[str, Any]:
    """Parse TOML bytes. Raises MemtoolError with the line where they are wrong."""
    if len(data) > MOST_BYTES:
        raise MemtoolError(
            f"{path} has {len(data):,} bytes, {MOST_BYTES:,} are allowed",
            hint=f"edit {path}",
            code="config",
        )
    try:
        text = data.decode()
        known = read_plain(text)
        if known is not None:
            return known
        import tomllib  # more than an interpreter start, so only where it is needed

        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # of TOML, UTF-8, digits or brackets
        raise MemtoolError(
            f"{path} is not TOML: {error}", hint=f"edit {path}", code="config"
        ) from None


_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_WORDS = {"true": True, "false": False}
_MOST_DIGITS = 15


def read_plain(text: str) -> dict[str, Any] | None:
    """Return the tables of a text, None where it holds anything that is not plain."""
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
            found = _begun(tables, line, opened)
            if found is None:
                return None
            table = found
            continue
        key, equals, rest = line.partition("=")
        key = key.rstrip(" \t")
        value = _value(rest.lstrip(" \t")) if equals else None
        if value is None or not _is_bare(key) or key in table:
            return None
        table[key] = value
    return tables


def _begun(tables: dict[str, Any], line: str, opened: set[str]) -> dict[str, Any] | None:
    """Return the new table that a line in brackets begins, None where it may be none.

    A table that is opened again, or after one inside it, is for tomllib to judge, and so is what
    lies inside of a list.
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


def _value(text: str) -> str | int | float | bool | list[str] | None:
    if text in _WORDS:
        return _WORDS[text]
    if text[:1] == "[" and text[-1:] == "]":
        return _texts(text[1:-1].strip(" \t"))
    return _text(text) if text[:1] == '"' else _number(text)


def _texts(inner: str) -> list[str] | None:
    """Return the texts of a list; one with a comma inside is not plain."""
    found = []
    for part in inner.split(",") if inner else ():
        text = _text(part.strip(" \t"))
        if text is None:
            return None
        found.append(text)
    return found


def _text(text: str) -> str | None:
    inner = text[1:-1]
    is_whole = len(text) > 1 and text[0] == text[-1] == '"'
    return inner if is_whole and inner.isprintable() and not {'"', "\\"} & {*inner} else None


def _number(text: str) -> int | float | None:
    whole, point, part = text.removeprefix("-").partition(".")
    digits = whole + part
    if not (whole and digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        return None
    if (len(whole) > 1 and whole[0] == "0") or bool(point) != bool(part):
        return None
    return float(text) if point else int(text)


def set_key(
    text: str,
    key: str | tuple[str, ...],
    value: TomlValue | None,
    divided: Collection[str] = (),
) -> str:
    """Return the text with a key set, or removed where the value is None.

    `key` is dotted, or a tuple of parts where a part itself may hold a dot. Missing tables are
    made; a table that loses its last key goes too, unless comments stand in it. Comments, order
    and spacing stay as they are. `divided` are the keys whose number may also be a table: where one
    of its entries gets a number, the one that was there becomes its `default`.

    Raises:
        MemtoolError: the text is not TOML, or a part of the key is not a table there.
    """
    import tomlkit  # only who changes a setting
    from tomlkit.exceptions import TOMLKitError

    *tables, name = key.split(".") if isinstance(key, str) else key
    try:
        document = tomlkit.parse(text)
        if key in divided and isinstance(_entry(document, tables, name), dict):
            tables, name = [*tables, name], ELSE
        elif ".".join(tables) in divided and value is not None:
            common = _entry(document, tables[:1], tables[1])
            if isinstance(common, int | float):
                document[tables[0]][tables[1]] = {ELSE: common}
        holders: list[MutableMapping[str, Any]] = [document]
        for part in tables:
            if part not in holders[-1]:
                if value is None:
                    return text
                holders[-1][part] = tomlkit.table()
            inner = holders[-1][part]
            if not isinstance(inner, dict):
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


def _entry(document: MutableMapping[str, Any], tables: Sequence[str], name: str) -> object:
    """Return what stands at a name in nested tables, None where one of them is missing."""
    found: object = document
    for part in (*tables, name):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _remove(holders: list[MutableMapping[str, Any]], parts: list[str]) -> None:
    """Drop a key from the innermost holder, then the tables that hold nothing any more."""
    if parts[-1] not in holders[-1]:
        return
    del holders[-1][parts[-1]]
    import tomlkit

    while len(holders) > 1 and not tomlkit.dumps(holders[-1]).strip():
        parts.pop()
        holders.pop()
        del holders[-1][parts[-1]]
