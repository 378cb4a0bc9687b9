"""The entry point: how a process starts that answers one command line, and how it ends.

It is loaded by Python itself, before a pack can be, so that it holds little; `running` does the
rest.
"""

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
    verb = _unpacked(sys.argv[1:2])
    status = main()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):  # nobody is left to read it
            continue
    if verb:
        from memtool import packing

        packing.start(verb)
    os._exit(status)


def _unpacked(args: list[str]) -> str:
    """Import the modules of a hot verb at once; return the verb if its pack must be made first."""
    from memtool import loading

    (verb,) = args if args and args[0] in loading.PACKED else ("",)
    if sys.flags.no_site and verb:
        sys.meta_path.append(loading.Site)
    elif sys.flags.no_site:
        loading.run_site()
    if not loading.install():
        return ""
    try:
        is_there = not verb or loading.unpack(verb)
    except Exception:  # noqa: BLE001  # it is met again where it is imported, and told there
        return ""
    return "" if is_there or not loading.is_kept() else verb


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return the exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    if args[:1] == ["hook"]:
        from memtool.cli import hooks  # a boundary of its own: agents never hear of an error

        return hooks.main(args)
    from memtool.cli import running

    return running.run(args)
