"""Plain TOML: a small reader for settings and tables of data that are read at every start.

`tomllib` costs more than one and a half interpreter starts. This reader takes what is written most,
and returns None for anything else. A property test checks that both agree on all that it takes.

    # a comment
    [section]  [section.name]  [[section.list]]
    key = "text"    key = 'text'    key = 12    key = 0.5    key = true    key = ["text", 'text']
    key = '''
    lines, up to one with three quotes alone
    '''
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_WORDS = {"true": True, "false": False}
_MAX_DIGITS = 15
QUOTES = "'''"
"""What stands alone before and behind a text of several lines."""


def read_plain(text: str) -> dict[str, Any] | None:
    """Parse plain TOML; None if the text has anything that is not plain."""
    tables: dict[str, Any] = {}
    table = tables
    opened: set[str] = set()
    rows = iter(text.replace("\r\n", "\n").split("\n"))
    for row in rows:
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
        value_text = value_text.lstrip(" \t")
        value = _parse_lines(rows) if value_text == QUOTES else _parse_value(value_text)
        if not equals or value is None or not _is_bare(key) or key in table:
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
    return _parse_text(text) if text[:1] in ('"', "'") else _parse_number(text)


def _parse_lines(rows: Iterator[str]) -> str | None:
    """Parse a text of several lines, up to its closing quotes."""
    lines: list[str] = []
    for row in rows:
        if row == QUOTES:
            return "".join(lines)
        if QUOTES in row or not row.replace("\t", " ").isprintable():
            return None
        lines.append(f"{row}\n")
    return None


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
    inner, quote = text[1:-1], text[:1]
    is_whole = len(text) > 1 and quote in ('"', "'") and text[-1] == quote
    is_plain = quote not in inner and (quote == "'" or "\\" not in inner)
    return inner if is_whole and is_plain and inner.isprintable() else None


def _parse_number(text: str) -> int | float | None:
    whole, point, part = text.removeprefix("-").partition(".")
    digits = whole + part
    if not (whole and digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS):
        return None
    if (len(whole) > 1 and whole[0] == "0") or bool(point) != bool(part):
        return None
    return float(text) if point else int(text)
