"""The one error that users see: what is wrong, and what to do next."""

from __future__ import annotations


class MemtoolError(Exception):
    """Something the user can act on; printed as `memtool: message` and `hint: …`.

    `code` is a stable kebab-case name for programs, `exit_code` what the process ends with
    (1 problems found, 2 user, config or git error), `recoverable` whether the same call may
    succeed later or with other arguments.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        code: str = "usage",
        exit_code: int = 2,
        recoverable: bool = True,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code
        self.exit_code = exit_code
        self.recoverable = recoverable
