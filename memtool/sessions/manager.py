"""The manager: after a session, candidates and what curation proposes, for the user to look at.

It owns when they run, the plan that waits, and a log of its own, all private to the clone. Nothing
is applied here: a plan is carried out by `memtool curate`, and only by who asks for it.
"""

from __future__ import annotations

import os

from memtool.memory import timestamps
from memtool.sessions import background, consent, journal
from memtool.sessions.model import FOLDER, dict_of, json_line, json_row, list_of, read_row
from memtool.sessions.promote import MOST_ACTIONS, Action
from memtool.store import files
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.store.context import Context

PLAN = os.path.join(FOLDER, "plan")
LOG = os.path.join(FOLDER, "manager.log")
"""Both below the private directory."""
MOST_BYTES = 256 * 1024
MOST_LOG = 64 * 1024
MOST_ENTRY = 2_000


class WaitingPlan(Value):
    """A plan that waits: when it was made, by `rules` or which model, and its steps."""

    moment: int
    by: str
    actions: tuple[Action, ...]


def start(context: Context, session: str) -> bool:
    """Start what the user wants after a session, in the background; return whether anything was.

    Candidates are made first, and a plan looks at them (see `go_on`).
    """
    if consent.is_promoting(context):
        return _start(context, "promote", session, "--auto")
    return go_on(context, session)


def go_on(context: Context, session: str) -> bool:
    """Start the plan for candidates in the background, where the user wants one."""
    is_wanted = consent.is_managing(context)
    return is_wanted and _start(context, "curate", "--keep", "--session", session)


def _start(context: Context, *words: str) -> bool:
    top = context.repository.top or context.repository.git_dir
    return bool(background.start(["-C", top, *words], context.caller.env))


def keep(context: Context, by: str, actions: Sequence[Action]) -> None:
    """Let a plan wait in the place of the one before; an empty one leaves none.

    Raises:
        MemtoolError: the disk refuses.
    """
    if not actions:
        drop(context)
        return
    row = {"moment": context.clock.now, "by": by, "actions": [one.plain() for one in actions]}
    path = os.path.join(context.repository.cache_dir, PLAN)
    with journal.refused(path, "written"):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    journal.put(path, json_line(row).encode())


def waiting(context: Context) -> WaitingPlan | None:
    """Return the plan that waits, None where there is none, or none that can be read."""
    path = os.path.join(context.repository.cache_dir, PLAN)
    row = dict_of(json_row(files.read_or_none(path, MOST_BYTES) or b""))
    read = [read_row(Action, one) for one in list_of(row.get("actions")) if isinstance(one, dict)]
    actions = tuple(one for one in read[:MOST_ACTIONS] if one is not None)
    moment, by = row.get("moment"), row.get("by")
    if not actions or type(moment) is not int or not isinstance(by, str):
        return None
    return WaitingPlan(moment, by, actions)


def drop(context: Context) -> None:
    """Take the plan away that waits, if there is one."""
    try:
        os.unlink(os.path.join(context.repository.cache_dir, PLAN))
    except OSError:
        return


def note(context: Context, session: str, outcome: str) -> None:
    """Write what a run came to into the log."""
    entry = f"{timestamps.render(context.clock.now)} {session or '-'}: {' '.join(outcome.split())}"
    path = os.path.join(context.repository.cache_dir, LOG)
    files.append_to_log(path, entry.encode(errors="replace")[:MOST_ENTRY] + b"\n", MOST_LOG)
