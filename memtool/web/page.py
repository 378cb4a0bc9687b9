"""A row of the table of pages, and the query of a request."""

from __future__ import annotations

from urllib.parse import urlencode

from memtool.value import Value
from memtool.web.security import DeniedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from memtool.store.context import Context

    Values = Callable[[Context, "PageQuery"], dict[str, Any]]

MAX_ROWS = 200
MAX_TEXT = 2_000
"""Characters of one value of an address."""


class Page(Value):
    """A page. `values` takes the context and the query and returns the values of its template.

    `path` may contain `{name}` for a parameter. `menu` is its title in the menu; empty if it is not
    there. `is_private` marks a page with content outside of commits, such as the usage log or the
    sessions: it is not in the static site. `is_slow`: it may take over 0.1 s. If `feature` is set,
    the menu has the page only if the user has set that feature up.
    """

    path: str
    template: str
    values: Values
    menu: str = ""
    is_private: bool = False
    is_slow: bool = False
    feature: str = ""


class PageQuery:
    """The query of a request: the named parts of its path, and its query string."""

    def __init__(self, parts: Mapping[str, str], pairs: Iterable[tuple[str, str]] = ()) -> None:
        """Check and store both. Raises DeniedError if a value is too long, or not text."""
        self.parts = dict(parts)
        self.pairs = tuple((name, value) for name, value in pairs if value)
        for name, value in (*self.parts.items(), *self.pairs):
            if len(value) > MAX_TEXT or "\0" in value:
                raise DeniedError(
                    400, f"{name[:40]} is too long, or not text", hint="use a shorter text"
                )

    def text(self, name: str, default: str = "") -> str:
        """Return a value, the last one that was given."""
        if name in self.parts:
            return self.parts[name]
        values = [value for key, value in self.pairs if key == name]
        return values[-1].strip() if values else default

    def many(self, name: str) -> tuple[str, ...]:
        """Return every value that was given under a name."""
        return tuple(value.strip() for key, value in self.pairs if key == name)

    def number(self, name: str, default: int, maximum: int = MAX_ROWS) -> int:
        """Return a number from 0 on. Raises DeniedError if the text is not a number."""
        text = self.text(name)
        if not text:
            return default
        if not (text.isascii() and text.isdigit()) or int(text[:10]) > maximum:
            raise DeniedError(
                400,
                f"{name} must be a number up to {maximum}, not {text[:20]!r}",
                hint=f"{name}={default}",
            )
        return int(text)

    def with_(self, **changes: str) -> str:
        """Return what follows the `?` with some values changed; an empty one is left out."""
        pairs = [(name, value) for name, value in self.pairs if name not in changes]
        pairs += [(name, value) for name, value in changes.items() if value]
        return urlencode(pairs)
