"""Set-up of hooks and agents: the plan for a host by its name, and offers to a new user."""

from __future__ import annotations

import os
from functools import partial

from memtool.agents import AGENTS
from memtool.authoring.adoption import Adopted, Offer
from memtool.hosts import (
    AGENTS_MD,
    GIT,
    PRE_COMMIT,
    agents_md,
    diagnostics,
    git,
    install,
    pre_commit,
)
from memtool.hosts.install import InstallPlan, load_host
from memtool.value import first_few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.store.context import Context


def plan_host(
    context: Context, name: str, *, is_user: bool = False, with_server: bool = False
) -> InstallPlan:
    """Plan to install an agent host, the block of AGENTS.md, or the hooks of git."""
    if name == GIT:
        return git.plan_install(context.repository, context.directory)
    if name == AGENTS_MD:
        return agents_md.plan_install(context)
    host = load_host(name)
    return host.plan_install(host.build_site(context, is_user=is_user), with_server=with_server)


def plan_removal(context: Context, name: str, *, is_user: bool = False) -> InstallPlan:
    """Plan to uninstall what `plan_host` installs."""
    if name == GIT:
        return git.plan_uninstall(context.repository)
    if name == AGENTS_MD:
        return agents_md.plan_uninstall(context)
    host = load_host(name)
    return host.plan_uninstall(host.build_site(context, is_user=is_user))


def find_offers(context: Context) -> Iterator[Offer]:
    """Yield an offer for git's hooks, and for each agent host in use without memtool."""
    result = diagnostics.hooks(context)
    if result.state != diagnostics.GOOD:
        yield _offer_gate(context, result)
    for host in map(load_host, AGENTS):
        sites = [host.build_site(context, is_user=False)]
        if os.path.isabs(host.home(context.caller.env)):
            sites.append(host.build_site(context, is_user=True))
        if host.is_used(context) and not any(
            any(map(site.has, host.parts(site))) for site in sites
        ):
            what = f"{host.title}: hooks, commands and a skill"
            command = f"memtool install {host.name}"
            yield Offer(host.name, what, command, partial(_install, host.name))


def _offer_gate(context: Context, result: diagnostics.CheckResult) -> Offer:
    """Return the offer of git's hooks, or of an entry for the framework that has them."""
    has_framework = os.path.exists(os.path.join(context.repository.top, pre_commit.CONFIG))
    if has_framework and result.state == diagnostics.ABSENT:
        what = f"an entry in {pre_commit.CONFIG} that checks memories"
        return Offer(PRE_COMMIT, what, "memtool install pre-commit", partial(_install, PRE_COMMIT))
    tool = git.find_hook_site(context.repository, context.directory).tool
    what = f"git's hooks{f', by {tool}' if tool else ''}: they check and merge memories"
    is_ours = result.hint == "memtool install git"
    return Offer(GIT, what, result.hint, partial(_install, GIT) if is_ours else None)


def _install(name: str, context: Context) -> Adopted:
    """Install a host without asking again; return the files of the tree that it changed."""
    top = context.repository.top
    inside: dict[str, None] = {}

    def build_plan(host: str) -> InstallPlan:
        plan = plan_host(context, host)
        names = (os.path.relpath(step.path, top).replace(os.sep, "/") for step in plan.steps)
        inside.update((name, None) for name in names if not name.startswith(("../", ".git/")))
        return plan

    done = install.install_hosts(context, [name], build_plan, yes=True, dry_run=False, every=False)
    return Adopted(tuple(inside), (f"{name}: {first_few(done.steps, 2)}",))
