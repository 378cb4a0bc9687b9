"""Offers: what to install where memtool is not, as commands for whoever just began."""

from __future__ import annotations

import os

from memtool.agents import AGENTS
from memtool.hosts import diagnostics, pre_commit
from memtool.hosts.install import agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.store.context import Context


def offers(context: Context) -> Iterator[str]:
    """Yield commands for the hook of git, and for each agent host in use that lacks memtool."""
    sign = diagnostics.hooks(context)
    if sign.state != diagnostics.GOOD:
        is_framed = os.path.exists(os.path.join(context.repository.top, pre_commit.CONFIG))
        is_new = is_framed and sign.state == diagnostics.ABSENT
        yield "memtool install pre-commit" if is_new else sign.hint
    for host in map(agent, AGENTS):
        sites = [host.site(context, is_user=False)]
        if os.path.isabs(host.home(context.caller.env)):
            sites.append(host.site(context, is_user=True))
        if host.is_used(context) and not any(
            any(map(site.has, host.parts(site))) for site in sites
        ):
            yield f"memtool install {host.name}"
