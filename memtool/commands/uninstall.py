"""`memtool uninstall`: take memtool out of a host, as if it had never been there."""

from __future__ import annotations

from memtool.hosts.install import Installed
from memtool.hosts.install import render_installed as render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from memtool.hosts.install import InstallPlan
    from memtool.store.context import Context

__all__ = ["render", "uninstall"]


def uninstall(
    context: Context,
    host: Literal["", "claude", "codex", "gemini", "opencode", "cursor", "git", "pre-commit"] = "",
    *,
    all: bool = False,
    user: bool = False,
    yes: bool = False,
    dry_run: bool = False,
) -> Installed:
    """Take memtool out of an agent host, or out of the hooks of git or pre-commit.

    Settings get back the bytes that they had, files and directories that memtool made are removed,
    and hooks of git that were there before get their names back. What memtool did not write is left
    alone. On a terminal the changes are shown first; without one, files that others write too
    change only with --yes.

    Example:
        memtool uninstall git

    Args:
        host: where to take it out
        all: out of every host that has it
        user: out of all projects of yours, instead of this one
        yes: change files that others write too without asking
        dry_run: show what would be done, change nothing
    """
    from memtool.hosts import AGENTS, GIT, PRE_COMMIT, agent, git, install

    names = install.names_of(context, host, every=all, user=user, verb="uninstall")
    if all:  # also where the host itself is gone by now
        names = [*AGENTS, *([] if user else [GIT, PRE_COMMIT])]

    def plan_of(name: str) -> InstallPlan:
        if name == GIT:
            return git.uninstall(context.repository)
        host = agent(name)
        return host.uninstall(host.site(context, is_user=user))

    return install.run(context, names, plan_of, yes=yes, dry_run=dry_run, every=all)
