"""`memtool uninstall`: take memtool out of a host, as if it had never been there."""

from __future__ import annotations

from memtool.commands.install import Installed, render, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from memtool.workspace import Workspace

__all__ = ["render", "uninstall"]


def uninstall(ws: Workspace, host: Literal["git"], *, dry_run: bool = False) -> Installed:
    """Take memtool out of the hooks of this repository.

    Hooks that were there before get their names back, with every byte. Hooks that memtool did not
    write are left alone.

    Example:
        memtool uninstall git

    Args:
        host: where to take it out
        dry_run: say what would be done, change nothing
    """
    from memtool.hosts import HOSTS
    from memtool.hosts.plan import carry_out

    steps = HOSTS[host][1](ws.repository)
    if not dry_run:
        carry_out(steps)
    return Installed(host, tuple(told(step, ws.repository.top) for step in steps), dry_run)
