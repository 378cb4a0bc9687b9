"""JSON edited in place: one value put in or taken out, every other byte kept.

Taking out what was just put in gives the very text from before. Nothing is noted for it; how a
value stands tells where it came from. A value that found its place empty follows the bracket at
once, `{"a": …`; one whose place was made for it stands after a blank or on a line of its own, and
then the place goes with it.
"""

from __future__ import annotations

import json

from memtool.errors import MemtoolError
from memtool.hosts import json_text
from memtool.hosts.json_text import Child, Node
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Path = Sequence[str | int]

INDENT = "  "


class Document(Value):
    """A JSON text, what errors call it, and whether comments may stand in it."""

    text: str
    name: str
    comments: bool = False

    def root(self) -> Node:
        """Read it. Raises MemtoolError where it is not JSON, or no object."""
        root = json_text.read(self.text, self.name, comments=self.comments)
        if not isinstance(root.value, dict):
            raise self.wrong_type("it", root)
        return root

    def value(self, path: Path) -> Any:
        """Return the value at a path, None where there is none."""
        node: Node | None = self.root()
        for key in path:
            child = node.child(key) if node else None
            node = child.node if child else None
        return node.value if node else None

    def put(self, path: Path, value: Any) -> Document:
        """Return it with a member set; objects on the way are made where they are missing."""
        holder, missing = self._reach(path)
        if not missing:
            return self._with(holder.start, holder.end, self._dumped(value, holder.start))
        *outer, first = reversed(missing)
        for key in outer:
            value = _Made({key: value})
        return self._inserted(holder, first, value)

    def append(self, path: Path, value: Any) -> Document:
        """Return it with an item at the end of a list; the list is made where it is missing."""
        holder, missing = self._reach(path)
        if missing:
            return self.put(path, _Made([value]))
        if not isinstance(holder.value, list):
            raise self.wrong_type(path[-1], holder, "a list")
        return self._inserted(holder, None, value)

    def drop(self, path: Path) -> Document:
        """Return it without the value at a path, and without the places made only for it."""
        nodes = [self.root()]
        for key in path:
            child = nodes[-1].child(key)
            if child is None:
                return self
            nodes.append(child.node)
        depth = len(path) - 1
        while depth > 0 and self._was_made_for(nodes[depth]):
            depth -= 1
        return self._without(nodes[depth], path[depth])

    def wrong_type(self, key: str | int, node: Node, wanted: str = "an object") -> MemtoolError:
        """Return the error for a value that cannot hold what is to be put into it."""
        where = json_text.place_of(self.text, node.start)
        return MemtoolError(
            f"{self.name}:{where}: {key} is not {wanted}; nothing was changed",
            hint=f"mend {self.name}, then run the same command again",
            code="broken-settings",
        )

    def _reach(self, path: Path) -> tuple[Node, Path]:
        """Return the innermost node that is there, and the rest of the path."""
        node = self.root()
        for number, key in enumerate(path):
            child = node.child(key)
            if child is None:
                if not isinstance(node.value, dict):
                    raise self.wrong_type(path[number - 1], node)
                return node, path[number:]
            node = child.node
        return node, ()

    def _with(self, start: int, end: int, text: str) -> Document:
        return self.replace(text=self.text[:start] + text + self.text[end:])

    def _inserted(self, holder: Node, key: str | int | None, value: Any) -> Document:
        """Put a child at the end of a holder."""
        named = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
        if not holder.children:
            at = holder.start + 1
            return self._with(at, at, named + self._dumped(value, holder.start))
        last = holder.children[-1]
        comma = last.node.end if last.comma < 0 else last.comma + 1
        end = json_text.comments_end(self.text, comma, holder.end - 1, same_line=True)
        noted = self.text[comma:end]  # a comment beside the last value stays beside it
        gap = self._gap(holder, last)
        if "\n" not in gap and self.text.rfind("//", comma, end) > self.text.rfind(
            "*/", comma, end
        ):
            gap = self._newline + self._indent_at(holder.start) + INDENT
        said = named + self._dumped(value, holder.start, gap)
        if last.comma < 0:
            return self._with(comma, end, f",{noted}{gap}{said}")
        return self._with(comma, end, f"{noted}{gap}{said},")

    def _without(self, holder: Node, key: str | int) -> Document:
        """Take a child out of a holder, with the comma that it needed."""
        number = next(n for n, child in enumerate(holder.children) if child.key == key)
        child = holder.children[number]
        after = self.text[child.node.end : child.comma] if child.comma >= 0 else ""
        if number == 0:
            start = holder.start + 1 if len(holder.children) == 1 else child.start
            end = self._next_start(holder, number)
            return self._with(start, end, after)
        before = holder.children[number - 1].comma
        noted = self.text[before + 1 : json_text.comments_end(self.text, before + 1, child.start)]
        end = child.node.end if child.comma < 0 else child.comma + 1
        following = (after + self.text[end:]).lstrip(" \t")[:1]
        if "//" in noted and following not in "\r\n":
            noted += self._newline  # or the comment would go on
        if child.comma >= 0:
            return self._with(before + 1, end, noted + after)
        return self._with(before, end, noted)

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

    def _gap(self, holder: Node, last: Child) -> str:
        """Return what stands before a new last child: as before the one that is last now."""
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
        children = self.root().children
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
