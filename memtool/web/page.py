"""What a page is: a row of the table of pages, and the question that it answers."""

from __future__ import annotations

from urllib.parse import urlencode

from memtool.value import Value
from memtool.web.security import Denied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from memtool.store.context import Context

    Values = Callable[[Context, "PageQuery"], dict[str, Any]]

MOST_ROWS = 200
MOST_TEXT = 2_000
"""Characters of one value of an address."""


class Page(Value):
    """A page. `values` takes the context and the question and returns what the template shows.

    `path` may hold `{name}` for a part of it. `menu` is its title in the menu, empty where it is
    not there. `is_private` says that it shows what is in no commit: the usage log or the sessions,
    so that it is no page of the static site. `is_slow` says that it may take over 0.1 s. Only where
    the user has set the `feature` up the menu has it.
    """

    path: str
    template: str
    values: Values
    menu: str = ""
    is_private: bool = False
    is_slow: bool = False
    feature: str = ""


class PageQuery:
    """What is asked of a page: the named parts of its path, and what follows the `?`."""

    def __init__(self, parts: Mapping[str, str], pairs: Iterable[tuple[str, str]] = ()) -> None:
        """Take both. Raises Denied where a value is too long, or no text."""
        self.parts = dict(parts)
        self.pairs = tuple((name, value) for name, value in pairs if value)
        for name, value in (*self.parts.items(), *self.pairs):
            if len(value) > MOST_TEXT or "\0" in value:
                raise Denied(400, f"{name[:40]} is too long, or no text", hint="give a shorter one")

    def text(self, name: str, default: str = "") -> str:
        """Return a value, the last one that was given."""
        if name in self.parts:
            return self.parts[name]
        found = [value for key, value in self.pairs if key == name]
        return found[-1].strip() if found else default

    def many(self, name: str) -> tuple[str, ...]:
        """Return every value that was given under a name."""
        return tuple(value.strip() for key, value in self.pairs if key == name)

    def number(self, name: str, default: int, most: int = MOST_ROWS) -> int:
        """Return a number from 0 on. Raises Denied where the text is none."""
        text = self.text(name)
        if not text:
            return default
        if not (text.isascii() and text.isdigit()) or int(text[:10]) > most:
            raise Denied(
                400, f"{name} is a number up to {most}, not {text[:20]!r}", hint=f"{name}={default}"
            )
        return int(text)

    def with_(self, **changes: str) -> str:
        """Return what follows the `?` with some values changed; an empty one is left out."""
        kept = [(name, value) for name, value in self.pairs if name not in changes]
        kept += [(name, value) for name, value in changes.items() if value]
        return urlencode(kept)
