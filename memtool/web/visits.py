"""Visits: up to which commit the reader of this clone has been told what changed.

The mark is a private file in the cache directory, not a cookie: each start of the server has a host
name of its own, so cookies end with it. A visit begins with a login. It is told about what was
committed since the visit before began, so that nothing is missed that came in between.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from memtool.store import files
from memtool.value import HEX, Value

FILE = "visits.json"
VISIT_S = 3600
"""Seconds within which another login belongs to the same visit."""
_MAX_BYTES = 1024


class Visit(Value):
    """The visit that goes on. `commit` is HEAD when it began, and `second` the time.

    `since` and `since_second` are those of what the reader was told before, empty and 0 for never.
    """

    commit: str = ""
    second: int = 0
    since: str = ""
    since_second: int = 0


def read(directory: str) -> Visit:
    """Return the last visit of a clone by its cache directory; an empty one if none is known."""
    try:
        fields = json.loads(files.read_regular(os.path.join(directory, FILE), _MAX_BYTES))
        visit = Visit(**fields)
    except (OSError, ValueError, TypeError):
        return Visit()
    is_whole = all(type(second) is int for second in (visit.second, visit.since_second))
    is_whole &= all(type(id_) is str and HEX.issuperset(id_) for id_ in (visit.commit, visit.since))
    return visit if is_whole else Visit()


def begin(directory: str, head: str, now: int) -> None:
    """Note that somebody logged in: what was known at the visit before is known from now on."""
    last = read(directory)
    if last.second <= now < last.second + VISIT_S:
        return
    _write(directory, Visit(head, now, last.commit, last.second))


def mark_seen(directory: str, head: str, now: int) -> None:
    """Note that the reader knows everything up to a commit."""
    _write(directory, Visit(head, now, head, now))


def _write(directory: str, visit: Visit) -> None:
    with suppress(OSError):  # the next visit shows more than is new, which does no harm
        os.makedirs(directory, mode=0o700, exist_ok=True)
        files.write_private(directory, FILE, json.dumps(visit.plain()).encode())
