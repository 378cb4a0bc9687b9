r"""Frontmatter to fields: a fast reader for the form memtool writes, strict YAML for the rest.

The reader knows one spelling of each thing and answers None for any other; `document` then asks
the strict YAML reader. Whatever this one accepts means the same in YAML: a property test holds it.
It needs no import, so that commands that meet a changed file stay as fast as those that do not.

    key: plain text            key: "quoted \" text"       key: [flow, list]
    key:                       key:
      - block                    sub: line
      - list                     other: line

python-frontmatter finds the fences; the header is then read event by event. Nothing is ever
composed, so nothing recurses (the C composer of PyYAML dies at 100,000 brackets), and every scalar
stays the text that was written: no type guessing, no aliases, anchors, tags, merges or duplicates.
"""

from __future__ import annotations

from collections.abc import Iterator

import yaml
from frontmatter.default_handlers import YAMLHandler

from memtool.memory.fields import BY_NAME, order
from memtool.memory.memory import Fields, FieldValue
from memtool.value import Value

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
    """Tell whether YAML reads the text unquoted as exactly itself, in a block or a flow list."""
    if not text or (text[0] not in _PLAIN_START and not (text[0].isalpha() and text[0] > "\x7f")):
        return False
    if text[-1] in " :" or ": " in text or " #" in text or not text.isprintable():
        return False
    if text[0] == "=" and len(text) == 1:  # YAML 1.1 has a type for a lone "="
        return False
    return not flow or _FLOW_BREAKERS.isdisjoint(text)


def split_plain(text: str) -> tuple[str, str] | None:
    """Split a document into header and body, where both fences stand as memtool writes them."""
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
        key, colon, rest = rows[number].partition(":")
        if not colon or key in fields or not (key in BY_NAME or is_key(key)):
            return None
        lines[key] = number + 2
        number += 1
        value: FieldValue | None
        if rest:
            value = _inline(rest)
        else:
            first = number
            while number < len(rows) and rows[number].startswith("  "):
                number += 1
            value = _block(rows[first:number])
        if value is None:
            return None
        fields[key] = value
    return (fields, lines) if fields else None


def is_key(key: str) -> bool:
    """Tell whether a key may stand unquoted: a word with hyphens, at most 120 characters.

    In YAML `y: 1` has the key `y` for us, as every scalar is text; past 1024 it has no key.
    """
    if not key or len(key) > MAX_KEY or not key[0].isalpha():
        return False
    return key.replace("_", "a").replace("-", "a").isalnum()


def _inline(rest: str) -> FieldValue | None:
    if rest[0] != " ":
        return None
    value = rest[1:]
    if not value.startswith("["):
        return _scalar(value)
    if not value.endswith("]"):
        return None
    return _flow_items(value[1:-1])


def _flow_items(inner: str) -> tuple[str, ...] | None:
    if not inner:
        return ()
    if '"' not in inner:
        plain = inner.split(", ")
        return tuple(plain) if all(is_plain(item, flow=True) for item in plain) else None
    items = []
    while True:
        if inner.startswith('"'):
            close = _closing_quote(inner)
            item = _scalar(inner[: close + 1]) if close else None
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


def _closing_quote(text: str) -> int:
    position = 1
    while position < len(text):
        if text[position] == "\\":
            position += 2
        elif text[position] == '"':
            return position
        else:
            position += 1
    return 0


def _block(rows: list[str]) -> FieldValue | None:
    if not rows:
        return None
    if rows[0].startswith("  - "):
        items = [_scalar(row[4:]) if row.startswith("  - ") else None for row in rows]
        known = tuple(item for item in items if item is not None)
        return known if len(known) == len(rows) else None
    table: dict[str, str] = {}
    for row in rows:
        key, colon, rest = row[2:].partition(": ")
        value = _scalar(rest) if colon and is_key(key) and key not in table else None
        if value is None:
            return None
        table[key] = value
    return table


def _scalar(text: str) -> str | None:
    if not text.startswith('"'):
        return text if is_plain(text) else None
    if len(text) < 2 or _closing_quote(text) != len(text) - 1 or not text.isprintable():
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
    return '"' + "".join(map(_escaped, text)) + '"'


def _is_guessed(text: str) -> bool:
    if text.lower() in _YAML_WORDS or not any(map(str.isalpha, text)):
        return True
    return text[0] in _NUMERIC_START and _NUMERIC.issuperset(text)


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
    named = {"\n": "\\n", "\t": "\\t"}.get(char)
    return named or (f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}")


MAX_DEPTH = 16
"""Openers that a header may nest before it is refused unread; a memory needs two."""

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NotStrict(ValueError):
    """The header is not a flat mapping of text, lists and small tables. `line` counts from 1."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


class Header(Value):
    """A header that was read. `spans` gives the first and last line of each key, from 1."""

    fields: Fields
    spans: dict[str, tuple[int, int]]


HANDLER = YAMLHandler()


def split(text: str) -> tuple[str, str] | None:
    """Split a document into header and body, or return None where no closed block opens it.

    The header keeps the line feed after the opening fence, so its line numbers are the file's.
    """
    if not HANDLER.detect(text):
        return None
    try:
        _, body = HANDLER.split(text)
    except ValueError:  # the block is never closed: python-frontmatter finds two parts, not three
        return None
    # The pattern of a fence swallows the blank lines behind it; here they belong to what follows.
    fence_end = text.rindex("-", 0, len(text) - len(body)) + 1
    header = text[len(text) - len(text.lstrip("-")) : text.rindex("\n", 0, fence_end) + 1]
    return header, text[fence_end:].partition("\n")[2]


def read_header(header: str) -> Header:
    """Read a header as text, lists of text and tables of text.

    Raises:
        NotStrict: it is anything else; the message is one clause, with the line.
    """
    _refuse_breaks(header)
    _refuse_depth(header)
    try:
        reader = _YamlReader(yaml.parse(header, Loader=LOADER))
        fields, starts = reader.document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = (error.problem or error.context or "not YAML").replace("\n", " ")
        raise NotStrict(what, (mark.line if mark else 0) + 1) from None
    except NotStrict:
        raise
    except yaml.reader.ReaderError:
        raise NotStrict("control characters are not allowed", _control_line(header)) from None
    except (yaml.YAMLError, ValueError, OverflowError):  # the reader in Python passes on chr()'s
        raise NotStrict("not YAML") from None
    return Header(fields=fields, spans=_spans(header, starts))


def _control_line(header: str) -> int:
    # The error counts bytes or characters, as the reader is in C or Python: look for oneself.
    bad = yaml.reader.Reader.NON_PRINTABLE.search(header)
    return header.count("\n", 0, bad.start() if bad else 0) + 1


def _refuse_breaks(header: str) -> None:
    """YAML ends a line at four more characters; then its line numbers would not be the file's."""
    for number, line in enumerate(header.split("\n"), 1):
        if any(mark in line.removesuffix("\r") for mark in "\r\x85\u2028\u2029"):
            raise NotStrict("a line ends in something else than a line feed", number)


def _refuse_depth(header: str) -> None:
    depth = 0
    for number, line in enumerate(header.split("\n"), 1):
        depth += line.count("[") + line.count("{") - line.count("]") - line.count("}")
        if depth > MAX_DEPTH or line.count("[") > 8 * MAX_DEPTH:
            raise NotStrict("brackets nest too deeply", number)
        depth = max(depth, 0)


class _YamlReader:
    """Walks YAML events in order; its state is the place in the stream."""

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self.events = events
        self.reached = 1
        """The last line that something was written on, from 1."""

    def next(self) -> yaml.Event:
        event = next(self.events)
        line = _line(event)
        if isinstance(event, yaml.AliasEvent):
            raise NotStrict("aliases (*name) are not allowed", line)
        if getattr(event, "anchor", None):
            raise NotStrict("anchors (&name) are not allowed", line)
        tag = getattr(event, "tag", None)
        if tag:
            raise NotStrict(f"tags such as {tag} are not allowed", line)
        begin, end = event.start_mark, event.end_mark
        if begin and end and end.index > begin.index:  # the end of a block is an empty event
            self.reached = max(self.reached, end.line + (end.column > 0))
        return event

    def document(self) -> tuple[Fields, list[tuple[str, int, int]]]:
        """Return the fields, and key, first line and least last line of each."""
        self.next()  # the stream's start
        event = self.next()
        if isinstance(event, yaml.StreamEndEvent):
            raise NotStrict("it is empty")
        if getattr(event, "explicit", False):
            raise NotStrict("it holds the start of a YAML document", _line(event))
        event = self.next()
        if not isinstance(event, yaml.MappingStartEvent) or event.flow_style:
            raise NotStrict("it is not a list of `key: value` lines", _line(event))
        fields: Fields = {}
        starts: list[tuple[str, int, int]] = []
        while not isinstance(event := self.next(), yaml.MappingEndEvent):
            line = _line(event)
            key = self.scalar(event, "a key")
            if (
                event.start_mark and event.start_mark.column
            ):  # also `? key`; `edit` could not replace such lines
                raise NotStrict(f"the key {key} is not at the start of its line", line)
            if key in fields:
                raise NotStrict(f"the key {key} stands twice", line)
            if key == "<<":
                raise NotStrict("merge keys (<<) are not allowed", line)
            fields[key] = self.value(key)
            starts.append((key, line, max(line, self.reached)))
        event = self.next()
        if getattr(event, "explicit", False):
            raise NotStrict("it holds the end of a YAML document", _line(event))
        if not isinstance(event := self.next(), yaml.StreamEndEvent):
            raise NotStrict("it holds a second YAML document", _line(event))
        return fields, starts

    def value(self, key: str) -> FieldValue:
        event = self.next()
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(event := self.next(), yaml.SequenceEndEvent):
                items.append(self.scalar(event, f"an item of {key}"))
            return tuple(items)
        if isinstance(event, yaml.MappingStartEvent):
            table: dict[str, str] = {}
            while not isinstance(event := self.next(), yaml.MappingEndEvent):
                name = self.scalar(event, f"a key of {key}")
                if name in table:
                    raise NotStrict(f"{key}.{name} stands twice", _line(event))
                table[name] = self.scalar(self.next(), f"{key}.{name}")
            return table
        return self.scalar(event, key)

    def scalar(self, event: yaml.Event, what: str) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise NotStrict(f"{what} is not one line of text", _line(event))
        return str(event.value)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _spans(header: str, starts: list[tuple[str, int, int]]) -> dict[str, tuple[int, int]]:
    rows = header.split("\n")
    spans = {}
    for number, (key, first, least) in enumerate(starts):
        last = starts[number + 1][1] - 1 if number + 1 < len(starts) else len(rows)
        while last > least and (not rows[last - 1].strip() or rows[last - 1].startswith("#")):
            last -= 1
        spans[key] = (first, last)
    return spans
