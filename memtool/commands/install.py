"""`memtool install`: put memtool where it is called at the right moment."""

from __future__ import annotations

import os

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from memtool.hosts.plan import Step
    from memtool.workspace import Workspace


class Installed(Value):
    """What was done for a host, or with `dry_run` would be: one clause for each step, in order."""

    host: str
    steps: tuple[str, ...]
    dry_run: bool = False


def install(ws: Workspace, host: Literal["git"], *, dry_run: bool = False) -> Installed:
    """Put memtool into the hooks of this repository.

    git: a pre-commit and a pre-merge-commit hook run memtool check --staged, and a post-merge
    hook tells what a merge brought. A hook of yours is kept and runs first. Doing it again changes
    nothing. Other clones need it too: hooks are not committed. Those who use the pre-commit
    framework take the hook memtool-check there instead.

    Example:
        memtool install git

    Args:
        host: where to install it
        dry_run: say what would be done, change nothing
    """
    from memtool.hosts import HOSTS
    from memtool.hosts.plan import carry_out

    steps = HOSTS[host][0](ws.repository)
    if not dry_run:
        carry_out(steps)
    return Installed(host, tuple(told(step, ws.repository.top) for step in steps), dry_run)


def render(installed: Installed) -> str:
    """Return one line for each step, or that nothing is to be done."""
    if not installed.steps:
        return f"{installed.host}: nothing to change"
    rows = [f"would {step}" if installed.dry_run else step for step in installed.steps]
    return "\n".join(rows)


def told(step: Step, top: str) -> str:
    """Return a step as a clause, with paths from the top where they lie below it."""
    path = step.path.removeprefix(f"{top}/")
    if step.kind == "keep":
        return f"rename {path} to {os.path.basename(step.target)}"
    return f"{step.kind} {path}"
