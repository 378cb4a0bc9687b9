"""`memtool auto`: the switch of everything that memtool writes down without being asked."""

from __future__ import annotations

from typing import Literal

from memtool.authoring import write
from memtool.store.context import Context
from memtool.value import Value

KEY = "capture.auto"


class Auto(Value):
    """Whether sessions are captured and promoted unasked; `off_by` names each who says no.

    `changed` says that the settings file is another one now.
    """

    on: bool
    off_by: tuple[str, ...]
    path: str
    changed: bool = False
    commit: str | None = None
    dry_run: bool = False


def auto(
    context: Context,
    switch: Literal["", "on", "off"] = "",
    *,
    commit: bool = False,
    dry_run: bool = False,
) -> Auto:
    """Say whether sessions are captured and promoted unasked, or switch that on or off.

    It is the setting capture.auto. Off stops all capture and promotion that nobody asked for, at
    once; what is there stays, and memtool capture, promote and remember work as before. With
    --global it holds in all projects: what the user has switched off, no project switches on. The
    variable MEMTOOL_OFF does the same for one process, and silences inject and the hooks as well.

    Example:
        memtool auto off
        memtool auto --global off

    Args:
        switch: on or off; without it nothing is changed
        commit: commit just the settings file
        dry_run: say what would change, write nothing
    """
    if not switch:
        return Auto(context.is_capturing, _off_by(context), context.config_path)
    is_on = switch == "on"
    done = write.set_option(context, KEY, is_on, commit=commit, dry_run=dry_run)
    off_by = tuple(who for who in _off_by(context) if who != context.config_path)
    off_by = off_by if is_on else (context.config_path, *off_by)
    return Auto(not off_by, off_by, context.config_path, done.changed, done.commit, dry_run)


def render(shown: Auto) -> str:
    """Return one line: on, or off and what switched it off; then whether the file was changed."""
    off = f"off, by {' and '.join(shown.off_by)}"
    rows = [f"automatic capture is {'on' if shown.on else off}"]
    if shown.changed:
        rows.append(("would change " if shown.dry_run else "changed ") + shown.path)
    return "\n".join(rows)


def _off_by(context: Context) -> tuple[str, ...]:
    switches = (
        (context.config_path, context.settings.given.get(KEY, True)),
        ("your global settings", context.settings.personal.get(KEY, True)),
        ("MEMTOOL_OFF", not context.is_off),
    )
    return tuple(who for who, is_on in switches if not is_on)
