"""Offers: commands that install memtool where it is missing, for a new user."""

from __future__ import annotations

import os

from memtool.agents import AGENTS
from memtool.hosts import diagnostics, pre_commit
from memtool.hosts.install import load_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.store.context import Context


def find_offers(context: Context) -> Iterator[str]:
    """Yield install commands for git's hook, and for each agent host in use without memtool."""
    result = diagnostics.hooks(context)
    if result.state != diagnostics.GOOD:
        has_framework = os.path.exists(os.path.join(context.repository.top, pre_commit.CONFIG))
        is_new = has_framework and result.state == diagnostics.ABSENT
        yield "memtool install pre-commit" if is_new else result.hint
    for host in map(load_host, AGENTS):
        sites = [host.build_site(context, is_user=False)]
        if os.path.isabs(host.home(context.caller.env)):
            sites.append(host.build_site(context, is_user=True))
        if host.is_used(context) and not any(
            any(map(site.has, host.parts(site))) for site in sites
        ):
            yield f"memtool install {host.name}"
