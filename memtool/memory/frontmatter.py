r"""Frontmatter in the form that memtool writes: fields to text, and text to fields.

The reader knows one spelling of each thing and answers None for any other; `document` then asks
`strict`. Whatever this one accepts means the same in YAML: a property test holds it.
It needs no import, so that commands that meet a changed file stay as fast as those that do not.

    key: plain text            key: "quoted \" text"       key: [flow, list]
    key:                       key:
      - block                    sub: line
      - list                     other: line
"""

from __future__ import annotations

from memtool.memory.fields import BY_NAME, order
from memtool.memory.memory import Fields, FieldValue

MAX_KEY = 120
_PLAIN_START = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./(<=^$+;~\\"
)
_FLOW_BREAKERS = frozenset(",[]{}:?#\"'")
_NUMERIC_START = frozenset("0123456789.+")
_NUMERIC = frozenset("0123456789abcdefABCDEFxoTZtzinN.:+-_")
"""Letters of numbers and dates in any reader that guesses: 0x1F, 1e5, .inf, 2026-02-22T19:33Z."""
_YAML_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n", "~"})
_UNTYPED_KINDS = frozenset({"moment", "when", "number", "share", "count", "flag", "mapping"})
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}


def is_plain(text: str, *, flow: bool = False) -> bool:
    """Return whether YAML reads the text unquoted as exactly itself, in a block or a flow list."""
    if not text or (text[0] not in _PLAIN_START and not (text[0].isalpha() and text[0] > "\x7f")):
        return False
    if text[-1] in " :" or ": " in text or " #" in text or not text.isprintable():
        return False
    if text[0] == "=" and len(text) == 1:  # YAML 1.1 has a type for a lone "="
        return False
    return not flow or _FLOW_BREAKERS.isdisjoint(text)


def split_plain(text: str) -> tuple[str, str] | None:
    """Split a document into header and body if both fences are written as memtool writes them."""
    if not text.startswith("---\n"):
        return None
    close = text.find("\n---\n", 3)
    if close >= 0:
        return text[4 : close + 1], text[close + 5 :]
    return (text[4:-3], "") if text.endswith("\n---") else None


def read(header: str) -> tuple[Fields, dict[str, int]] | None:
    """Return the fields and the line of each key (the opening fence is line 1), or None."""
    if "\r" in header or "\t" in header:
        return None
    fields: Fields = {}
    lines: dict[str, int] = {}
    rows = header.split("\n")
    if rows.pop() != "":
        return None
    number = 0
    while number < len(rows):
        key, colon, value_text = rows[number].partition(":")
        if not colon or key in fields or not (key in BY_NAME or is_key(key)):
            return None
        lines[key] = number + 2
        number += 1
        value: FieldValue | None
        if value_text:
            value = _parse_inline(value_text)
        else:
            first = number
            while number < len(rows) and rows[number].startswith("  "):
                number += 1
            value = _parse_block(rows[first:number])
        if value is None:
            return None
        fields[key] = value
    return (fields, lines) if fields else None


def is_key(key: str) -> bool:
    """Return whether a key needs no quotes: a word with hyphens, at most 120 characters.

    In YAML `y: 1` has the key `y` for us, as every scalar is text. A key of more than 1024
    characters would not be a key.
    """
    if not key or len(key) > MAX_KEY or not key[0].isalpha():
        return False
    return key.replace("_", "a").replace("-", "a").isalnum()


def _parse_inline(text: str) -> FieldValue | None:
    if text[0] != " ":
        return None
    value = text[1:]
    if not value.startswith("["):
        return _parse_scalar(value)
    if not value.endswith("]"):
        return None
    return _parse_flow_items(value[1:-1])


def _parse_flow_items(inner: str) -> tuple[str, ...] | None:
    if not inner:
        return ()
    if '"' not in inner:
        plain = inner.split(", ")
        return tuple(plain) if all(is_plain(item, flow=True) for item in plain) else None
    items = []
    while True:
        if inner.startswith('"'):
            close = _find_closing_quote(inner)
            item = _parse_scalar(inner[: close + 1]) if close else None
            inner = inner[close + 1 :]
        else:
            end = inner.find(",")
            end = len(inner) if end < 0 else end
            item = inner[:end] if is_plain(inner[:end], flow=True) else None
            inner = inner[end:]
        if item is None:
            return None
        items.append(item)
        if not inner:
            return tuple(items)
        if not inner.startswith(", "):
            return None
        inner = inner[2:]


def _find_closing_quote(text: str) -> int:
    position = 1
    while position < len(text):
        if text[position] == "\\":
            position += 2
        elif text[position] == '"':
            return position
        else:
            position += 1
    return 0


def _parse_block(rows: list[str]) -> FieldValue | None:
    if not rows:
        return None
    if rows[0].startswith("  - "):
        items = [_parse_scalar(row[4:]) if row.startswith("  - ") else None for row in rows]
        values = tuple(item for item in items if item is not None)
        return values if len(values) == len(rows) else None
    table: dict[str, str] = {}
    for row in rows:
        key, colon, value_text = row[2:].partition(": ")
        value = _parse_scalar(value_text) if colon and is_key(key) and key not in table else None
        if value is None:
            return None
        table[key] = value
    return table


def _parse_scalar(text: str) -> str | None:
    if not text.startswith('"'):
        return text if is_plain(text) else None
    if len(text) < 2 or _find_closing_quote(text) != len(text) - 1 or not text.isprintable():
        return None
    if "\\" not in text:
        return text[1:-1]
    out = []
    position = 1
    while position < len(text) - 1:
        char = text[position]
        if char != "\\":
            out.append(char)
            position += 1
            continue
        escape = text[position + 1]
        if escape in _ESCAPES:
            out.append(_ESCAPES[escape])
            position += 2
        elif escape == "u":
            digits = text[position + 2 : position + 6]
            if len(digits) != 4 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
                return None
            code = int(digits, 16)
            if 0xD800 <= code < 0xE000:
                return None
            out.append(chr(code))
            position += 6
        else:
            return None
    return "".join(out)


def write(fields: Fields) -> str:
    """Return the header lines of the fields in canonical order, without the fences."""
    return "".join(write_key(key, fields[key]) for key in sorted(fields, key=order))


def write_key(key: str, value: FieldValue) -> str:
    """Return the line or lines of one key, each with its line feed."""
    field = BY_NAME.get(key)
    typed = field is None or field.kind not in _UNTYPED_KINDS
    if isinstance(value, dict):
        rows = (f"  {name}: {write_scalar(item, typed=False)}\n" for name, item in value.items())
        return f"{key}:\n{''.join(rows)}"
    if isinstance(value, str):
        return f"{key}: {write_scalar(value, typed=typed)}\n"
    if value and field is not None and field.block:
        return f"{key}:\n{''.join(f'  - {write_scalar(item)}{chr(10)}' for item in value)}"
    return f"{key}: [{', '.join(write_scalar(item, flow=True) for item in value)}]\n"


def write_scalar(text: str, *, flow: bool = False, typed: bool = True) -> str:
    """Write one scalar, quoted where YAML (or a reader that guesses types) would see other text."""
    if is_plain(text, flow=flow) and not (typed and _is_guessed(text)):
        return text
    return '"' + "".join(map(_escape, text)) + '"'


def _is_guessed(text: str) -> bool:
    if text.lower() in _YAML_WORDS or not any(map(str.isalpha, text)):
        return True
    return text[0] in _NUMERIC_START and _NUMERIC.issuperset(text)


def _escape(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
    named = {"\n": "\\n", "\t": "\\t"}.get(char)
    return named or (f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}")
