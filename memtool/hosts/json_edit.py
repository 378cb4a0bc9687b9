"""Edits of JSON text that keep every other byte.

Comments and a comma after the last value are accepted where the host accepts them. Names that occur
twice in one object are refused: which of them counts is up to the reader.

Removing what was just added gives the very text from before. Nothing is stored for that; the layout
says where a value came from. A value that was put into an empty container follows its bracket at
once, `{"a": …`; one whose container was made for it follows a blank or begins a line of its own,
and then the container is removed with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from memtool.errors import MemtoolError
from memtool.value import Value, cached_property

Path = Sequence[str | int]

MOST_DEPTH = 100
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None}
_SPACE = " \t\r\n"


class Node(Value):
    """A value of the text at [start, end). Children are those of an object or array, in order."""

    start: int
    end: int
    value: Any
    children: tuple[JsonMember, ...] = ()

    def child(self, key: str | int) -> JsonMember | None:
        """Return the member of a name, or the item of a number; None where there is none."""
        return next((child for child in self.children if child.key == key), None)


class JsonMember(Value):
    """A member or item; `start` is where it begins, for a member its name.

    `comma` is the position of the comma after it, -1 where there is none.
    """

    key: str | int
    start: int
    node: Node
    comma: int


def place_of(text: str, position: int) -> str:
    """Return a position as `LINE:COLUMN`, both from 1."""
    before = text[:position]
    return f"{before.count(chr(10)) + 1}:{position - before.rfind(chr(10))}"


def _comments_end(text: str, start: int, end: int, *, same_line: bool = False) -> int:
    """Return where the last comment between two values ends, `start` where there is none.

    With `same_line` only comments that begin on the line of `start` count.
    """
    last = position = start
    while position < end:
        if text[position] == "/":
            position = last = _comment_end(text, position)
        elif same_line and text[position] == "\n":
            break
        else:
            position += 1
    return last


def _comment_end(text: str, position: int) -> int:
    """Return where the comment at a position ends, -1 where it is none or does not end."""
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
                end = _comment_end(text, self.position)
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
        try:
            value, self.position = json.JSONDecoder().raw_decode(self.text, self.position)
        except json.JSONDecodeError as error:
            self.position = error.pos
            raise self.error("a text that does not end, or holds what must be escaped") from None
        assert isinstance(value, str)
        return value

    def children(self, close: str, depth: int) -> tuple[JsonMember, ...]:
        """Read members or items to the closing bracket."""
        found: list[JsonMember] = []
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
            found.append(JsonMember(key, start, node, comma))
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


INDENT = "  "


class JsonDocument:
    """A JSON text, which is parsed once; an edit returns another document.

    `name` is what errors call it, `comments` says whether it may have comments.
    """

    def __init__(self, text: str, name: str, *, comments: bool = False) -> None:
        self.text = text
        self.name = name
        self.comments = comments

    @cached_property
    def root(self) -> Node:
        """The whole text. Raises MemtoolError where it is not JSON, or no object."""
        root = _JsonReader(self.text, self.name, comments=self.comments).whole()
        if not isinstance(root.value, dict):
            raise self._wrong_type("it", root)
        return root

    def value(self, path: Path) -> Any:
        """Return the value at a path, None where there is none."""
        node: Node | None = self.root
        for key in path:
            child = node.child(key) if node else None
            node = child.node if child else None
        return node.value if node else None

    def put(self, path: Path, value: Any) -> JsonDocument:
        """Return it with a member set; missing objects on the way are added."""
        holder, missing = self._reach(path)
        if not missing:
            return self._with(holder.start, holder.end, self._dumped(value, holder.start))
        *outer, first = reversed(missing)
        for key in outer:
            value = _Made({key: value})
        return self._inserted(holder, first, value)

    def append(self, path: Path, value: Any) -> JsonDocument:
        """Return it with an item at the end of a list, which is added where it is missing."""
        holder, missing = self._reach(path)
        if missing:
            return self.put(path, _Made([value]))
        if not isinstance(holder.value, list):
            raise self._wrong_type(path[-1], holder, "a list")
        return self._inserted(holder, None, value)

    def drop(self, path: Path) -> JsonDocument:
        """Return it without the value at a path, and without the containers made only for it."""
        nodes = [self.root]
        for key in path:
            child = nodes[-1].child(key)
            if child is None:
                return self
            nodes.append(child.node)
        depth = len(path) - 1
        while depth > 0 and self._was_made_for(nodes[depth]):
            depth -= 1
        return self._without(nodes[depth], path[depth])

    def _wrong_type(self, key: str | int, node: Node, wanted: str = "an object") -> MemtoolError:
        """Return the error for a value that cannot hold what is to be put into it."""
        where = place_of(self.text, node.start)
        return MemtoolError(
            f"{self.name}:{where}: {key} is not {wanted}; nothing was changed",
            hint=f"mend {self.name}, then run the same command again",
            code="broken-settings",
        )

    def _reach(self, path: Path) -> tuple[Node, Path]:
        """Return the innermost node that is there, and the rest of the path."""
        node = self.root
        for number, key in enumerate(path):
            child = node.child(key)
            if child is None:
                if not isinstance(node.value, dict):
                    raise self._wrong_type(path[number - 1], node)
                return node, path[number:]
            node = child.node
        return node, ()

    def _with(self, start: int, end: int, text: str) -> JsonDocument:
        whole = self.text[:start] + text + self.text[end:]
        return JsonDocument(whole, self.name, comments=self.comments)

    def _inserted(self, holder: Node, key: str | int | None, value: Any) -> JsonDocument:
        """Put a child at the end of a holder."""
        named = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
        if not holder.children:
            at = holder.start + 1
            return self._with(at, at, named + self._dumped(value, holder.start))
        last = holder.children[-1]
        comma = last.node.end if last.comma < 0 else last.comma + 1
        end = _comments_end(self.text, comma, holder.end - 1, same_line=True)
        comment = self.text[comma:end]  # one next to the last value stays there
        gap = self._gap(holder, last)
        if "\n" not in gap and self.text.rfind("//", comma, end) > self.text.rfind(
            "*/", comma, end
        ):
            gap = self._newline + self._indent_at(holder.start) + INDENT
        child = named + self._dumped(value, holder.start, gap)
        if last.comma < 0:
            return self._with(comma, end, f",{comment}{gap}{child}")
        return self._with(comma, end, f"{comment}{gap}{child},")

    def _without(self, holder: Node, key: str | int) -> JsonDocument:
        """Remove a child of a holder, with the comma that it needed."""
        number = next(n for n, child in enumerate(holder.children) if child.key == key)
        child = holder.children[number]
        after = self.text[child.node.end : child.comma] if child.comma >= 0 else ""
        if number == 0:
            start = holder.start + 1 if len(holder.children) == 1 else child.start
            end = self._next_start(holder, number)
            return self._with(start, end, after)
        before = holder.children[number - 1].comma
        comment = self.text[before + 1 : _comments_end(self.text, before + 1, child.start)]
        end = child.node.end if child.comma < 0 else child.comma + 1
        following = (after + self.text[end:]).lstrip(" \t")[:1]
        if "//" in comment and following not in "\r\n":
            comment += self._newline  # or it would go on
        if child.comma >= 0:
            return self._with(before + 1, end, comment + after)
        return self._with(before, end, comment)

    def _next_start(self, holder: Node, number: int) -> int:
        """Return where the text goes on after the first child: at the next, or after its comma."""
        child = holder.children[number]
        if len(holder.children) == 1:
            return child.node.end if child.comma < 0 else child.comma + 1
        following = holder.children[number + 1].start
        return next(
            (at for at in range(child.comma + 1, following) if not self.text[at].isspace()),
            following,
        )

    def _was_made_for(self, holder: Node) -> bool:
        """Tell whether a holder was made for its only child."""
        if len(holder.children) != 1:
            return False
        (child,) = holder.children
        lead = self.text[holder.start + 1 : child.start]
        trail = self.text[child.node.end : holder.end - 1]
        return lead != "" and not lead.strip() and not trail.strip()

    def _gap(self, holder: Node, last: JsonMember) -> str:
        """Return the blanks before a new last child: as before the one that is last now."""
        number = len(holder.children) - 1
        begin = holder.children[number - 1].comma if number else holder.start
        lead = self.text[begin + 1 : last.start]
        if "\n" in lead:
            return self._newline + self._indent_at(last.start)
        return "" if number and not lead else " "

    def _indent_at(self, position: int) -> str:
        """Return the blanks that the line of a position begins with."""
        line = self.text[self.text.rfind("\n", 0, position) + 1 : position]
        return line[: len(line) - len(line.lstrip(" \t"))]

    @property
    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    @property
    def _unit(self) -> str:
        """What one level is indented by: as the first child of the whole."""
        children = self.root.children
        lead = self.text[: children[0].start].rpartition("\n") if children else ("", "", "")
        return lead[2] if lead[1] and lead[2] and not lead[2].strip() else INDENT

    def _dumped(self, value: Any, holder: int, gap: str | None = None) -> str:
        """Return a value as text, on one line where the whole document is on one."""
        is_beside = gap is not None and "\n" not in gap
        if is_beside and "\n" not in self.text.strip():
            return _on_one_line(value)
        margin = gap.rpartition("\n")[2] if gap and not is_beside else self._indent_at(holder)
        rows = json.dumps(_plain(value), indent=self._unit, ensure_ascii=False).split("\n")
        return (self._newline + margin).join(rows)


class _Made(Value):
    """An object or list that is made to hold one value, and is taken out with it."""

    inner: Any


def _plain(value: Any) -> Any:
    if isinstance(value, _Made):
        return _plain(value.inner)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _on_one_line(value: Any) -> str:
    """Return a value on one line; what is made for it has blanks inside its brackets."""
    if not isinstance(value, _Made):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value.inner, list):
        return f"[ {_on_one_line(value.inner[0])} ]"
    ((key, item),) = value.inner.items()
    return f"{{ {json.dumps(key, ensure_ascii=False)}: {_on_one_line(item)} }}"
