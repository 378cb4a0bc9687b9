"""Frontmatter that people wrote: any YAML that is a flat mapping of text, and nothing else.

python-frontmatter finds the fences; the header is then read event by event. Nothing is ever
composed, so nothing recurses (the C composer of PyYAML dies at 100,000 brackets), and every scalar
stays the text that was written: no type guessing, no aliases, anchors, tags, merges or duplicates.

It imports PyYAML, which costs three interpreter starts: `document` asks it only for what
`frontmatter` does not know.
"""

from __future__ import annotations

import re

import yaml
from frontmatter.default_handlers import YAMLHandler

from memtool.memory.memory import Fields, FieldValue
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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


class FenceHandler(YAMLHandler):
    """Three hyphens fence a header; four are a line of markdown, which python-frontmatter takes."""

    FM_BOUNDARY = re.compile(r"^---[ \t\r]*$", re.MULTILINE)


HANDLER = FenceHandler()


def split(text: str) -> tuple[str, str] | None:
    """Split a document into header and body; None if it does not begin with a closed block.

    The header keeps the line feed after the opening fence, so its line numbers are those of the
    file.
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
        fields, starts = reader.read_document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = (error.problem or error.context or "not YAML").replace("\n", " ")
        raise NotStrict(what, (mark.line if mark else 0) + 1) from None
    except NotStrict:
        raise
    except yaml.reader.ReaderError:
        raise NotStrict("control characters are not allowed", _find_control_line(header)) from None
    except (yaml.YAMLError, ValueError, OverflowError):  # the reader in Python passes on chr()'s
        raise NotStrict("not YAML") from None
    return Header(fields=fields, spans=_find_spans(header, starts))


def _find_control_line(header: str) -> int:
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

    def read_next(self) -> yaml.Event:
        event = next(self.events)
        line = _line_number(event)
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

    def read_document(self) -> tuple[Fields, list[tuple[str, int, int]]]:
        """Return the fields, and key, first line and least last line of each."""
        self.read_next()  # the stream's start
        event = self.read_next()
        if isinstance(event, yaml.StreamEndEvent):
            raise NotStrict("it is empty")
        if getattr(event, "explicit", False):
            raise NotStrict("it holds the start of a YAML document", _line_number(event))
        event = self.read_next()
        if not isinstance(event, yaml.MappingStartEvent) or event.flow_style:
            raise NotStrict("it is not a list of `key: value` lines", _line_number(event))
        fields: Fields = {}
        starts: list[tuple[str, int, int]] = []
        while not isinstance(event := self.read_next(), yaml.MappingEndEvent):
            line = _line_number(event)
            key = self.read_scalar(event, "a key")
            # Also `? key`; `edit` could not replace such lines.
            if event.start_mark and event.start_mark.column:
                raise NotStrict(f"the key {key} is not at the start of its line", line)
            if key in fields:
                raise NotStrict(f"the key {key} stands twice", line)
            if key == "<<":
                raise NotStrict("merge keys (<<) are not allowed", line)
            fields[key] = self.read_value(key)
            starts.append((key, line, max(line, self.reached)))
        event = self.read_next()
        if getattr(event, "explicit", False):
            raise NotStrict("it holds the end of a YAML document", _line_number(event))
        if not isinstance(event := self.read_next(), yaml.StreamEndEvent):
            raise NotStrict("it holds a second YAML document", _line_number(event))
        return fields, starts

    def read_value(self, key: str) -> FieldValue:
        event = self.read_next()
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(event := self.read_next(), yaml.SequenceEndEvent):
                items.append(self.read_scalar(event, f"an item of {key}"))
            return tuple(items)
        if isinstance(event, yaml.MappingStartEvent):
            table: dict[str, str] = {}
            while not isinstance(event := self.read_next(), yaml.MappingEndEvent):
                name = self.read_scalar(event, f"a key of {key}")
                if name in table:
                    raise NotStrict(f"{key}.{name} stands twice", _line_number(event))
                table[name] = self.read_scalar(self.read_next(), f"{key}.{name}")
            return table
        return self.read_scalar(event, key)

    def read_scalar(self, event: yaml.Event, what: str) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise NotStrict(f"{what} is not one line of text", _line_number(event))
        return str(event.value)


def _line_number(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _find_spans(header: str, starts: list[tuple[str, int, int]]) -> dict[str, tuple[int, int]]:
    rows = header.split("\n")
    spans = {}
    for number, (key, first, least) in enumerate(starts):
        last = starts[number + 1][1] - 1 if number + 1 < len(starts) else len(rows)
        while last > least and (not rows[last - 1].strip() or rows[last - 1].startswith("#")):
            last -= 1
        spans[key] = (first, last)
    return spans
