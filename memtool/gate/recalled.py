"""Recalled memories: what an earlier check kept of a file, in the place of reading it again."""

from __future__ import annotations

from memtool.memory.memory import Memory
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from memtool.memory.memory import Fields

Name = tuple[str, str, int, str]
"""What a file names: kind, target, line, and how it says so (see `links.Wanted`)."""


class Known(Value):
    """What is kept of a file in which nothing was wrong.

    `latest` is the last second that it speaks of as past; `names` are what it names.
    """

    id: str
    status: str
    supersedes: tuple[str, ...]
    latest: int
    names: tuple[Name, ...]


class Recalled(Memory):
    """A memory of which id, status and kin are known; all else is read where it is asked for."""

    known: Known
    read: Callable[[], Memory]
    whole: list[Memory]

    def __init__(self, known: Known, read: Callable[[], Memory]) -> None:
        object.__setattr__(self, "known", known)
        object.__setattr__(self, "read", read)
        object.__setattr__(self, "whole", [])

    @property
    def id(self) -> str:
        return self.known.id

    @property
    def status(self) -> str:
        return self.known.status

    @property
    def supersedes(self) -> tuple[str, ...]:
        return self.known.supersedes

    @property  # type: ignore[misc]  # no attribute, but read like one
    def fields(self) -> Fields:
        return self._memory.fields

    @property  # type: ignore[misc]
    def body(self) -> str:
        return self._memory.body

    @property
    def _memory(self) -> Memory:
        if not self.whole:
            self.whole.append(self.read())
        return self.whole[0]
