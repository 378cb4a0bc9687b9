"""The entry point: how a process starts that answers one command line, and how it ends."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

GARBAGE = 200_000
"""Objects that may be made before Python looks for circles among them; a verb makes a few."""


def command() -> NoReturn:
    """Run the command line of this process, and end it.

    It ends without Python's own tidying up, which takes as long as loading a dozen modules; what
    was written is flushed, and nothing else outlives a verb. For the same reason the collector of
    garbage, which counts every function of a module, hardly runs.
    """
    import gc

    gc.set_threshold(GARBAGE)
    status = main()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):  # nobody is left to read it
            continue
    os._exit(status)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return the exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    if args[:1] == ["hook"]:
        from memtool.cli import hooks  # a boundary of its own: agents never hear of an error

        return hooks.main(args)
    from memtool.cli import running

    return running.run(args)
