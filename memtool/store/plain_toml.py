"""Plain TOML: a reader of the few spellings that settings use, which needs no import.

It answers None for anything else, and `config.read_toml` then asks `tomllib`, at one and a half
times the cost of an interpreter start. Whatever this reader accepts means the same to `tomllib`: a
property test holds it.

    # a comment
    [section]  [section.name]
    key = "text"    key = 12    key = 0.5    key = true    key = ["text", "text"]
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_WORDS = {"true": True, "false": False}
_MOST_DIGITS = 15


def read(text: str) -> dict[str, Any] | None:
    """Return the tables of a text, None where it holds anything that is not plain."""
    tables: dict[str, Any] = {}
    table = tables
    opened = set()
    for row in text.replace("\r\n", "\n").split("\n"):
        line = row.strip(" \t")
        if not line or line[0] == "#":
            if not line.replace("\t", " ").isprintable():
                return None
            continue
        if line[0] == "[":
            names = line[1:-1].split(".")
            # A table that is opened again, or after one inside it, is for tomllib to judge.
            if line[-1] != "]" or not all(map(_is_bare, names)) or line in opened:
                return None
            opened.add(line)
            table = tables
            for name in names:
                table = table.setdefault(name, {})
                if not isinstance(table, dict):
                    return None
            if table:
                return None
            continue
        key, equals, rest = line.partition("=")
        key = key.rstrip(" \t")
        value = _value(rest.lstrip(" \t")) if equals else None
        if value is None or not _is_bare(key) or key in table:
            return None
        table[key] = value
    return tables


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
