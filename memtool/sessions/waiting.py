"""Waiting: how many findings had enough evidence for a memory when they were judged last.

A number in a file of its own, so that a session that starts is told at no cost. What is lost of it
comes back with the next promotion.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.store.files import read_regular

NAME = "waiting"
_MOST_BYTES = 20


def note(directory: str, count: int) -> None:
    """Note the number beside the sessions; nothing where it stands, or where the disk refuses."""
    from memtool.sessions import private

    if count == noted(directory):
        return
    try:
        private.put(os.path.join(directory, NAME), b"%d\n" % count)
    except MemtoolError:
        return


def noted(directory: str) -> int:
    """Return the number that was noted last, 0 for none."""
    try:
        said = read_regular(os.path.join(directory, NAME), _MOST_BYTES).strip()
    except OSError:
        return 0
    return int(said) if said.isdigit() else 0
