"""Edits of JSON text that keep every other byte.

Comments and trailing commas are accepted if the host accepts them. Duplicate names in one object
are refused, because parsers differ on which of them counts.

Removing an added value restores the previous text exactly. The layout alone records how a value was
added: one that was put into an existing empty container directly follows the bracket, `{"a": …`. If
its container was created for it, it follows a blank or a line feed, and both are removed together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from memtool.errors import MemtoolError
from memtool.value import Value, cached_property

Path = Sequence[str | int]

MAX_DEPTH = 100
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None}
_SPACE = " \t\r\n"


class Node(Value):
    """A value at [start, end) of the text, with the children of an object or array in order."""

    start: int
    end: int
    value: Any
    children: tuple[JsonMember, ...] = ()

    def find_child(self, key: str | int) -> JsonMember | None:
        """Return the member of a name, or the item at an index; None if missing."""
        return next((child for child in self.children if child.key == key), None)


class JsonMember(Value):
    """A member or item. `start` is its position (of a member: of its name).

    `comma` is the position of the comma after it, -1 if there is none.
    """

    key: str | int
    start: int
    node: Node
    comma: int


def format_position(text: str, position: int) -> str:
    """Format a position as `LINE:COLUMN`, both from 1."""
    before = text[:position]
    return f"{before.count(chr(10)) + 1}:{position - before.rfind(chr(10))}"


def _find_comments_end(text: str, start: int, end: int, *, same_line: bool = False) -> int:
    """Return the end of the last comment in a range, `start` if there is none.

    With `same_line`, only comments that begin on the line of `start` count.
    """
    last = position = start
    while position < end:
        if text[position] == "/":
            position = last = _find_comment_end(text, position)
        elif same_line and text[position] == "\n":
            break
        else:
            position += 1
    return last


def _find_comment_end(text: str, position: int) -> int:
    """Return the end of the comment at a position; -1 if there is none or it has no end."""
    if text.startswith("//", position):
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        return end - (text[end - 1] == "\r")
    end = text.find("*/", position + 2) if text.startswith("/*", position) else -1
    return end + 2 if end >= 0 else -1


class _JsonReader:
    """One pass over a text."""

    def __init__(self, text: str, name: str, *, comments: bool) -> None:
        self.text = text
        self.name = name
        self.comments = comments
        self.position = 0

    def read_document(self) -> Node:
        self.skip_blanks()
        node = self.read_node(0)
        self.skip_blanks()
        if self.position < len(self.text):
            raise self.error("more text after the end of the value")
        return node

    def error(self, what: str) -> MemtoolError:
        return MemtoolError(
            f"{self.name}:{format_position(self.text, self.position)} is not JSON: {what}; "
            "nothing was changed",
            hint=f"fix {self.name}, then run the command again",
            code="broken-settings",
        )

    def skip_blanks(self) -> None:
        """Skip blanks, and comments if they are allowed."""
        text = self.text
        while self.position < len(text):
            if text[self.position] in _SPACE:
                self.position += 1
            elif text[self.position] == "/" and self.comments:
                end = _find_comment_end(text, self.position)
                if end < 0:
                    raise self.error("a comment that is none or does not end")
                self.position = end
            else:
                return

    def read_node(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self.error(f"more than {MAX_DEPTH} levels")
        start = self.position
        first = self.text[start : start + 1]
        if first == "{":
            children = self.read_children("}", depth)
            value: Any = {child.key: child.node.value for child in children}
            return Node(start, self.position, value, children)
        if first == "[":
            children = self.read_children("]", depth)
            return Node(start, self.position, [child.node.value for child in children], children)
        if first == '"':
            text = self.read_string()
            return Node(start, self.position, text)
        return self.read_scalar(start)

    def read_scalar(self, start: int) -> Node:
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

    def read_string(self) -> str:
        try:
            value, self.position = json.JSONDecoder().raw_decode(self.text, self.position)
        except json.JSONDecodeError as error:
            self.position = error.pos
            raise self.error("a text that does not end, or holds what must be escaped") from None
        assert isinstance(value, str)
        return value

    def read_children(self, close: str, depth: int) -> tuple[JsonMember, ...]:
        """Read members or items up to the closing bracket."""
        members: list[JsonMember] = []
        names: set[str] = set()
        self.position += 1
        self.skip_blanks()
        while not self.text.startswith(close, self.position):
            if members and members[-1].comma < 0:
                raise self.error(f"a comma or {close} is missing")
            start = self.position
            key: str | int = len(members)
            if close == "}":
                key = self.read_key(names)
            node = self.read_node(depth + 1)
            self.skip_blanks()
            comma = -1
            if self.text.startswith(",", self.position):
                comma = self.position
                self.position += 1
                self.skip_blanks()
                if self.text.startswith(close, self.position) and not self.comments:
                    raise self.error(f"a comma before {close}")
            members.append(JsonMember(key, start, node, comma))
        self.position += 1
        return tuple(members)

    def read_key(self, names: set[str]) -> str:
        """Read a name and its colon."""
        if not self.text.startswith('"', self.position):
            raise self.error("a name in quotes is missing")
        start = self.position
        name = self.read_string()
        if name in names:
            self.position = start
            raise self.error(f"{name!r} stands there twice")
        names.add(name)
        self.skip_blanks()
        if not self.text.startswith(":", self.position):
            raise self.error("a colon is missing")
        self.position += 1
        self.skip_blanks()
        return name


INDENT = "  "


class JsonDocument:
    """A JSON text, parsed once; an edit returns a new document.

    `name` is its name in errors, `comments` whether it may have comments.
    """

    def __init__(self, text: str, name: str, *, comments: bool = False) -> None:
        self.text = text
        self.name = name
        self.comments = comments

    @cached_property
    def root(self) -> Node:
        """The whole text. Raises MemtoolError if it is not a JSON object."""
        root = _JsonReader(self.text, self.name, comments=self.comments).read_document()
        if not isinstance(root.value, dict):
            raise self._wrong_type("it", root)
        return root

    def find_value(self, path: Path) -> Any:
        """Return the value at a path; None if missing."""
        node: Node | None = self.root
        for key in path:
            child = node.find_child(key) if node else None
            node = child.node if child else None
        return node.value if node else None

    def put(self, path: Path, value: Any) -> JsonDocument:
        """Set a member, creating missing objects on the way."""
        holder, missing = self._find_holder(path)
        if not missing:
            return self._replace_range(
                holder.start, holder.end, self._format_value(value, holder.start)
            )
        *outer, first = reversed(missing)
        for key in outer:
            value = _NewContainer({key: value})
        return self._insert_child(holder, first, value)

    def append(self, path: Path, value: Any) -> JsonDocument:
        """Add an item at the end of a list, creating the list if missing."""
        holder, missing = self._find_holder(path)
        if missing:
            return self.put(path, _NewContainer([value]))
        if not isinstance(holder.value, list):
            raise self._wrong_type(path[-1], holder, "a list")
        return self._insert_child(holder, None, value)

    def drop(self, path: Path) -> JsonDocument:
        """Remove the value at a path, and the containers that were created only for it."""
        nodes = [self.root]
        for key in path:
            child = nodes[-1].find_child(key)
            if child is None:
                return self
            nodes.append(child.node)
        depth = len(path) - 1
        while depth > 0 and self._was_made_for(nodes[depth]):
            depth -= 1
        return self._remove_child(nodes[depth], path[depth])

    def _wrong_type(self, key: str | int, node: Node, wanted: str = "an object") -> MemtoolError:
        """Build the error for a value of the wrong type on the way to an edit."""
        where = format_position(self.text, node.start)
        return MemtoolError(
            f"{self.name}:{where}: {key} is not {wanted}; nothing was changed",
            hint=f"fix {self.name}, then run the command again",
            code="broken-settings",
        )

    def _find_holder(self, path: Path) -> tuple[Node, Path]:
        """Return the innermost existing node, and the part of the path that is missing."""
        node = self.root
        for number, key in enumerate(path):
            child = node.find_child(key)
            if child is None:
                if not isinstance(node.value, dict):
                    raise self._wrong_type(path[number - 1], node)
                return node, path[number:]
            node = child.node
        return node, ()

    def _replace_range(self, start: int, end: int, text: str) -> JsonDocument:
        whole = self.text[:start] + text + self.text[end:]
        return JsonDocument(whole, self.name, comments=self.comments)

    def _insert_child(self, holder: Node, key: str | int | None, value: Any) -> JsonDocument:
        """Add a child at the end of a container."""
        named = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
        if not holder.children:
            at = holder.start + 1
            return self._replace_range(at, at, named + self._format_value(value, holder.start))
        last = holder.children[-1]
        comma = last.node.end if last.comma < 0 else last.comma + 1
        end = _find_comments_end(self.text, comma, holder.end - 1, same_line=True)
        comment = self.text[comma:end]  # a comment next to the last value stays there
        gap = self._find_gap(holder, last)
        if "\n" not in gap and self.text.rfind("//", comma, end) > self.text.rfind(
            "*/", comma, end
        ):
            gap = self._newline + self._find_indent(holder.start) + INDENT
        child = named + self._format_value(value, holder.start, gap)
        if last.comma < 0:
            return self._replace_range(comma, end, f",{comment}{gap}{child}")
        return self._replace_range(comma, end, f"{comment}{gap}{child},")

    def _remove_child(self, holder: Node, key: str | int) -> JsonDocument:
        """Remove a child of a container, and its comma."""
        number = next(n for n, child in enumerate(holder.children) if child.key == key)
        child = holder.children[number]
        after = self.text[child.node.end : child.comma] if child.comma >= 0 else ""
        if number == 0:
            start = holder.start + 1 if len(holder.children) == 1 else child.start
            end = self._find_next_start(holder, number)
            return self._replace_range(start, end, after)
        before = holder.children[number - 1].comma
        comment = self.text[before + 1 : _find_comments_end(self.text, before + 1, child.start)]
        end = child.node.end if child.comma < 0 else child.comma + 1
        following = (after + self.text[end:]).lstrip(" \t")[:1]
        if "//" in comment and following not in "\r\n":
            comment += self._newline  # ends the // comment
        if child.comma >= 0:
            return self._replace_range(before + 1, end, comment + after)
        return self._replace_range(before, end, comment)

    def _find_next_start(self, holder: Node, number: int) -> int:
        """Return where the text continues after the first child: the next, or after its comma."""
        child = holder.children[number]
        if len(holder.children) == 1:
            return child.node.end if child.comma < 0 else child.comma + 1
        following = holder.children[number + 1].start
        return next(
            (at for at in range(child.comma + 1, following) if not self.text[at].isspace()),
            following,
        )

    def _was_made_for(self, holder: Node) -> bool:
        """Return whether a container was created for its only child."""
        if len(holder.children) != 1:
            return False
        (child,) = holder.children
        lead = self.text[holder.start + 1 : child.start]
        trail = self.text[child.node.end : holder.end - 1]
        return lead != "" and not lead.strip() and not trail.strip()

    def _find_gap(self, holder: Node, last: JsonMember) -> str:
        """Return the blanks before a new last child: the same as before the current last one."""
        number = len(holder.children) - 1
        begin = holder.children[number - 1].comma if number else holder.start
        lead = self.text[begin + 1 : last.start]
        if "\n" in lead:
            return self._newline + self._find_indent(last.start)
        return "" if number and not lead else " "

    def _find_indent(self, position: int) -> str:
        """Return the indentation of the line at a position."""
        line = self.text[self.text.rfind("\n", 0, position) + 1 : position]
        return line[: len(line) - len(line.lstrip(" \t"))]

    @property
    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    @property
    def _unit(self) -> str:
        """The indentation of one level: that of the first child of the document."""
        children = self.root.children
        lead = self.text[: children[0].start].rpartition("\n") if children else ("", "", "")
        return lead[2] if lead[1] and lead[2] and not lead[2].strip() else INDENT

    def _format_value(self, value: Any, holder: int, gap: str | None = None) -> str:
        """Format a value; on one line if the whole document is on one."""
        is_inline = gap is not None and "\n" not in gap
        if is_inline and "\n" not in self.text.strip():
            return _format_inline(value)
        margin = gap.rpartition("\n")[2] if gap and not is_inline else self._find_indent(holder)
        rows = json.dumps(_unwrap(value), indent=self._unit, ensure_ascii=False).split("\n")
        return (self._newline + margin).join(rows)


class _NewContainer(Value):
    """An object or list created to hold one value, and removed with it."""

    inner: Any


def _unwrap(value: Any) -> Any:
    if isinstance(value, _NewContainer):
        return _unwrap(value.inner)
    if isinstance(value, dict):
        return {key: _unwrap(item) for key, item in value.items()}
    return [_unwrap(item) for item in value] if isinstance(value, list) else value


def _format_inline(value: Any) -> str:
    """Format a value on one line; a new container gets blanks inside its brackets."""
    if not isinstance(value, _NewContainer):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value.inner, list):
        return f"[ {_format_inline(value.inner[0])} ]"
    ((key, item),) = value.inner.items()
    return f"{{ {json.dumps(key, ensure_ascii=False)}: {_format_inline(item)} }}"
