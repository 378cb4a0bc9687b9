"""Regular expressions that are compiled when they are first used.

To compile all that redaction knows takes longer than Python takes to start, and to import `re` half
as long. Most texts need none.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from re import Match
    from typing import Any

METHODS = ("match", "search", "finditer", "findall", "split", "sub")
"""The methods of a compiled pattern that are used."""


class Pattern:
    """A regular expression with the methods of a compiled one."""

    def __init__(self, source: str) -> None:
        self.source = source

    if TYPE_CHECKING:

        def match(self, text: str, start: int = 0, end: int = 0) -> Match[str] | None: ...
        def search(self, text: str, start: int = 0, end: int = 0) -> Match[str] | None: ...
        def finditer(self, text: str, start: int = 0, end: int = 0) -> Iterator[Match[str]]: ...
        def findall(self, text: str) -> list[str]: ...
        def split(self, text: str) -> list[str]: ...
        def sub(self, new: Any, text: str) -> str: ...

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(name)
        import re

        compiled = re.compile(self.source)
        for method in METHODS:  # plain attributes from now on
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)
