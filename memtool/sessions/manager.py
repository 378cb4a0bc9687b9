"""The manager: after a session, it makes candidates and plans what to do with them.

This module owns when both run, the pending plan, and the manager's own log, all private to the
clone. It applies nothing: only `memtool curate` carries out a plan, on request.
"""

from __future__ import annotations

import os

from memtool.memory import timestamps
from memtool.sessions import background, consent, journal
from memtool.sessions.model import FOLDER, as_dict, as_list, parse_json_row, read_row, to_json_line
from memtool.sessions.promote import MAX_ACTIONS, Action
from memtool.store import files
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.store.context import Context

PLAN = os.path.join(FOLDER, "plan")
LOG = os.path.join(FOLDER, "manager.log")
"""Both relative to the private directory."""
MAX_BYTES = 256 * 1024
MAX_LOG_BYTES = 64 * 1024
MAX_ENTRY_BYTES = 2_000


class WaitingPlan(Value):
    """A pending plan: when it was made, by `rules` or which model, and its steps."""

    moment: int
    by: str
    actions: tuple[Action, ...]


def start(context: Context, session: str) -> bool:
    """Start the follow-up work that the user wants, in the background; return whether any started.

    Candidates are made first; the plan considers them (see `go_on`).
    """
    if consent.is_promoting(context):
        return _start(context, "promote", session, "--auto")
    return go_on(context, session)


def go_on(context: Context, session: str) -> bool:
    """Start planning for candidates in the background, if the user wants it."""
    is_wanted = consent.is_managing(context)
    return is_wanted and _start(context, "curate", "--keep", "--session", session)


def _start(context: Context, *words: str) -> bool:
    top = context.repository.top or context.repository.git_dir
    return bool(background.start(["-C", top, *words], context.caller.env))


def keep(context: Context, by: str, actions: Sequence[Action]) -> None:
    """Store a plan in place of the previous one; an empty plan only removes that.

    Raises:
        MemtoolError: the disk refuses.
    """
    if not actions:
        drop(context)
        return
    row = {"moment": context.clock.now, "by": by, "actions": [action.plain() for action in actions]}
    path = os.path.join(context.repository.cache_dir, PLAN)
    with journal.explain_errors(path, "written"):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    journal.write_file(path, to_json_line(row).encode())


def read_waiting(context: Context) -> WaitingPlan | None:
    """Return the pending plan, None if there is none or it cannot be read."""
    path = os.path.join(context.repository.cache_dir, PLAN)
    row = as_dict(parse_json_row(files.read_or_none(path, MAX_BYTES) or b""))
    read = [
        read_row(Action, fields)
        for fields in as_list(row.get("actions"))
        if isinstance(fields, dict)
    ]
    actions = tuple(action for action in read[:MAX_ACTIONS] if action is not None)
    moment, by = row.get("moment"), row.get("by")
    if not actions or type(moment) is not int or not isinstance(by, str):
        return None
    return WaitingPlan(moment, by, actions)


def drop(context: Context) -> None:
    """Remove the pending plan, if there is one."""
    try:
        os.unlink(os.path.join(context.repository.cache_dir, PLAN))
    except OSError:
        return


def note(context: Context, session: str, outcome: str) -> None:
    """Log the outcome of a run."""
    entry = f"{timestamps.render(context.clock.now)} {session or '-'}: {' '.join(outcome.split())}"
    path = os.path.join(context.repository.cache_dir, LOG)
    files.append_to_log(
        path, entry.encode(errors="replace")[:MAX_ENTRY_BYTES] + b"\n", MAX_LOG_BYTES
    )
