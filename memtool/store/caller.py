"""Who asks, from where, how long they wait, and what their environment says."""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.store.repository import check_choices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from memtool.store.deadline import Deadline
    from memtool.store.repository import Repository

_DIGITS = 10
"""More than a number of tokens has."""


class Caller:
    """The user or program that a verb runs for."""

    def __init__(self, env: Mapping[str, str], cwd: str) -> None:
        self.env = env
        self.cwd = cwd
        self.agent = ""
        """The program that speaks for the user, where the interface knows it."""
        self.is_person = False
        """Whether a person reads the answer at a terminal, and no program."""
        self.is_resident = False
        """Whether the process answers many calls, so that what is loaded once serves them all."""
        self.deadline: Deadline | None = None
        """The moment from which on nobody else is waited for, if there is one."""
        self._drawn = 0

    @property
    def is_off(self) -> bool:
        """Whether hooks answer nothing and capture nothing."""
        return bool(self.env.get("MEMTOOL_OFF"))

    @property
    def is_personal(self) -> bool:
        """Whether the user's own memories and settings are used beside those of the project."""
        return self.is_on("MEMTOOL_PERSONAL", default=True)

    def is_on(self, variable: str, *, default: bool) -> bool:
        """Return what a variable says. Raises VariableError where it is neither on nor off."""
        check_choices(self.env, (variable,))
        return (self.env.get(variable) or ("on" if default else "off")) == "on"

    def is_caching(self, repository: Repository) -> bool:
        """Whether what is derived of a repository may be read from and written to its cache."""
        return not self.env.get("MEMTOOL_NO_CACHE") and repository.is_made

    @property
    def budget_tokens(self) -> int | None:
        """Most tokens of a block as the environment has it, None where it says nothing."""
        given = self.env.get("MEMTOOL_BUDGET")
        if not given:
            return None
        if not (given.isascii() and given.isdigit() and len(given) < _DIGITS):
            raise MemtoolError(
                f"MEMTOOL_BUDGET is {given!r}, which is not a number of tokens",
                hint="MEMTOOL_BUDGET=1200, or unset it",
                code="bad-budget",
            )
        return int(given)

    def random(self, count: int) -> bytes:
        """Return random bytes; with `MEMTOOL_SEED` the same ones in every run."""
        seed = self.env.get("MEMTOOL_SEED")
        if seed is None:
            return os.urandom(count)
        import hashlib

        self._drawn += 1
        return hashlib.sha256(f"{seed}/{self._drawn}".encode()).digest()[:count]
