"""JSON read with places: where in the text each value stands, so that it can be edited there.

Comments and a comma after the last value are taken where the host takes them. Names that occur
twice in one object are refused: which of them counts is up to the reader.
"""

from __future__ import annotations

import re

from memtool.errors import MemtoolError
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_DEPTH = 100
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None}
_SPACE = " \t\r\n"


class Node(Value):
    """A value of the text at [start, end). Children are those of an object or array, in order."""

    start: int
    end: int
    value: Any
    children: tuple[Child, ...] = ()

    def child(self, key: str | int) -> Child | None:
        """Return the member of a name, or the item of a number; None where there is none."""
        return next((child for child in self.children if child.key == key), None)


class Child(Value):
    """A member or item; `start` is where it begins, for a member its name.

    `comma` is where the comma after it stands, -1 where there is none.
    """

    key: str | int
    start: int
    node: Node
    comma: int


def read(text: str, name: str, *, comments: bool = False) -> Node:
    """Return the value that a text holds; `name` is what errors call the text.

    Raises:
        MemtoolError: it is not JSON, with line and column.
    """
    return _Reader(text, name, comments=comments).whole()


def place_of(text: str, position: int) -> str:
    """Return a position as `LINE:COLUMN`, both from 1."""
    before = text[:position]
    return f"{before.count(chr(10)) + 1}:{position - before.rfind(chr(10))}"


def comments_end(text: str, start: int, end: int, *, same_line: bool = False) -> int:
    """Return where the last comment between two values ends, `start` where there is none.

    With `same_line` only comments that begin on the line of `start` count.
    """
    last = position = start
    while position < end:
        if text[position] == "/":
            position = last = _skipped(text, position)
        elif same_line and text[position] == "\n":
            break
        else:
            position += 1
    return last


def _skipped(text: str, position: int) -> int:
    """Return where the comment at a position ends, -1 where it is none or does not end."""
    if text.startswith("//", position):
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        return end - (text[end - 1] == "\r")
    end = text.find("*/", position + 2) if text.startswith("/*", position) else -1
    return end + 2 if end >= 0 else -1


class _Reader:
    """One pass over a text."""

    def __init__(self, text: str, name: str, *, comments: bool) -> None:
        self.text = text
        self.name = name
        self.comments = comments
        self.position = 0

    def whole(self) -> Node:
        self.skip()
        node = self.node(0)
        self.skip()
        if self.position < len(self.text):
            raise self.error("more text after the end of the value")
        return node

    def error(self, what: str) -> MemtoolError:
        return MemtoolError(
            f"{self.name}:{place_of(self.text, self.position)} is not JSON: {what}; "
            "nothing was changed",
            hint=f"mend {self.name}, then run the same command again",
            code="broken-settings",
        )

    def skip(self) -> None:
        """Go over blanks, and comments where they are allowed."""
        text = self.text
        while self.position < len(text):
            if text[self.position] in _SPACE:
                self.position += 1
            elif text[self.position] == "/" and self.comments:
                end = _skipped(text, self.position)
                if end < 0:
                    raise self.error("a comment that is none or does not end")
                self.position = end
            else:
                return

    def node(self, depth: int) -> Node:
        if depth > MOST_DEPTH:
            raise self.error(f"more than {MOST_DEPTH} levels")
        start = self.position
        first = self.text[start : start + 1]
        if first == "{":
            children = self.children("}", depth)
            value: Any = {child.key: child.node.value for child in children}
            return Node(start, self.position, value, children)
        if first == "[":
            children = self.children("]", depth)
            return Node(start, self.position, [child.node.value for child in children], children)
        if first == '"':
            text = self.string()
            return Node(start, self.position, text)
        return self.plain(start)

    def plain(self, start: int) -> Node:
        for word, value in _WORDS.items():
            if self.text.startswith(word, start):
                self.position += len(word)
                return Node(start, self.position, value)
        number = _NUMBER.match(self.text, start)
        if number is None:
            raise self.error("a value is missing" if start < len(self.text) else "it ends too soon")
        self.position = number.end()
        digits = number.group()
        is_whole = digits.removeprefix("-").isdigit()
        if is_whole and len(digits) > 300:
            raise self.error("a number of more than 300 digits")
        return Node(start, self.position, int(digits) if is_whole else float(digits))

    def string(self) -> str:
        from json import JSONDecodeError, JSONDecoder

        try:
            value, self.position = JSONDecoder().raw_decode(self.text, self.position)
        except JSONDecodeError as error:
            self.position = error.pos
            raise self.error("a text that does not end, or holds what must be escaped") from None
        assert isinstance(value, str)
        return value

    def children(self, close: str, depth: int) -> tuple[Child, ...]:
        """Read members or items to the closing bracket."""
        found: list[Child] = []
        names: set[str] = set()
        self.position += 1
        self.skip()
        while not self.text.startswith(close, self.position):
            if found and found[-1].comma < 0:
                raise self.error(f"a comma or {close} is missing")
            start = self.position
            key: str | int = len(found)
            if close == "}":
                key = self.key(names)
            node = self.node(depth + 1)
            self.skip()
            comma = -1
            if self.text.startswith(",", self.position):
                comma = self.position
                self.position += 1
                self.skip()
                if self.text.startswith(close, self.position) and not self.comments:
                    raise self.error(f"a comma before {close}")
            found.append(Child(key, start, node, comma))
        self.position += 1
        return tuple(found)

    def key(self, names: set[str]) -> str:
        """Read a name and its colon."""
        if not self.text.startswith('"', self.position):
            raise self.error("a name in quotes is missing")
        start = self.position
        name = self.string()
        if name in names:
            self.position = start
            raise self.error(f"{name!r} stands there twice")
        names.add(name)
        self.skip()
        if not self.text.startswith(":", self.position):
            raise self.error("a colon is missing")
        self.position += 1
        self.skip()
        return name
