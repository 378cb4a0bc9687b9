"""The caller of a verb: user or agent, working directory, time limit and environment."""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.store.repository import check_choices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from memtool.store.deadline import Deadline
    from memtool.store.repository import Repository

_TOO_MANY_DIGITS = 10
"""A number of tokens must have fewer digits than this."""


class Caller:
    """The user or program that a verb runs for."""

    def __init__(self, env: Mapping[str, str], cwd: str) -> None:
        self.env = env
        self.cwd = cwd
        self.agent = ""
        """The agent that acts for the user, if the interface knows it."""
        self.is_person = False
        """Whether a person reads the answer at a terminal."""
        self.is_resident = False
        """Whether the process serves many calls, so that loading data once pays off."""
        self.deadline: Deadline | None = None
        """Time limit for waiting, if there is one."""
        self.is_unfinished = False
        """Whether time was too short to derive something, so that another process should do it."""
        self._draw_count = 0

    @property
    def is_off(self) -> bool:
        """Whether hooks give no answers and capture nothing."""
        return bool(self.env.get("MEMTOOL_OFF"))

    @property
    def is_personal(self) -> bool:
        """Whether the user's own memories and settings are used in addition to the project's."""
        return self.is_on("MEMTOOL_PERSONAL", default=True)

    def is_on(self, variable: str, *, default: bool) -> bool:
        """Return the value of an on/off variable. Raises VariableError for any other value."""
        check_choices(self.env, (variable,))
        return (self.env.get(variable) or ("on" if default else "off")) == "on"

    def can_cache(self, repository: Repository) -> bool:
        """Whether derived data of a repository may be read from and written to its cache."""
        return not self.env.get("MEMTOOL_NO_CACHE") and repository.is_created

    @property
    def budget_tokens(self) -> int | None:
        """The token limit of a block in the environment; None if not set."""
        value = self.env.get("MEMTOOL_BUDGET")
        if not value:
            return None
        if not (value.isascii() and value.isdigit() and len(value) < _TOO_MANY_DIGITS):
            raise MemtoolError(
                f"MEMTOOL_BUDGET must be a number of tokens, not {value!r}",
                hint="MEMTOOL_BUDGET=1200\nunset MEMTOOL_BUDGET",
                code="environment",
            )
        return int(value)

    def random(self, count: int) -> bytes:
        """Return random bytes; with `MEMTOOL_SEED` the same ones in every run."""
        seed = self.env.get("MEMTOOL_SEED")
        if seed is None:
            return os.urandom(count)
        import hashlib

        self._draw_count += 1
        return hashlib.sha256(f"{seed}/{self._draw_count}".encode()).digest()[:count]
