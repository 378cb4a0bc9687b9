"""`memtool install` and `uninstall`: set up the hooks that call memtool, and remove them."""

from __future__ import annotations

from typing import Annotated

from memtool.agents import AGENTS
from memtool.authoring.adoption import find_ignored
from memtool.commands._layout import Layout
from memtool.errors import MemtoolError
from memtool.hosts import HOSTS
from memtool.hosts.install import Host, InstallPlan, InstallResult, render_result
from memtool.store.context import Context
from memtool.value import first_few

__all__ = ["install", "render", "uninstall"]


def install(
    context: Context,
    host: Annotated[str, HOSTS] = "",
    *,
    all: bool = False,
    user: bool = False,
    mcp: bool = False,
    codeowners: str | None = None,
    yes: bool = False,
    dry_run: bool = False,
) -> InstallResult:
    """Connect an agent to memtool, or git's hooks.

        agents       {AGENTS}: hooks that begin a session with the primer and add what matters to
                     a prompt; slash commands such as /remember; a skill
        agents-md    a block in AGENTS.md for all other agents, which git's hook renews after
                     merges into the default branch
        git          hooks that check commits, also with husky and lefthook; a driver that merges
                     memories
        pre-commit   the same check, in .pre-commit-config.yaml

    Files of an agent belong to the project: commit them, or use --user. Git's hooks are not
    committed: every clone installs its own. What others wrote in a file stays. Changes are shown
    first on a terminal; elsewhere files of others only change with --yes.

    Example:
        memtool install git
        memtool install claude --dry-run
        memtool install git --codeowners @your-org/payments

    Args:
        host: {HOSTS}
        all: install for every agent in use here, and git
        user: for all of your projects, instead of this one
        mcp: also the MCP server
        codeowners: with git, who must review memories: @ORG/TEAM, @USER
        yes: change files of others without asking
        dry_run: show what would be done, change nothing
    """
    from memtool.hosts import GIT, git, install
    from memtool.hosts.install import load_host
    from memtool.hosts.setup import plan_host

    names = install.choose_hosts(context, host, every=all, user=user, verb="install")
    if codeowners is not None and GIT not in names:
        raise MemtoolError(
            "--codeowners is an option of install git",
            hint="memtool install git --codeowners @ORG/TEAM",
        )

    def build_plan(name: str) -> InstallPlan:
        plan = plan_host(context, name, is_user=user, with_server=mcp)
        if name != GIT:
            written.update(step.path for step in plan.steps if not user)
        elif codeowners is not None:
            steps = git.plan_code_owners(context, codeowners)
            return InstallPlan((*plan.steps, *steps), plan.notes)
        return plan

    written: set[str] = set()
    agents = [name for name in names if name in AGENTS]
    unused = [
        agent_host for agent_host in map(load_host, agents) if not agent_host.is_used(context)
    ]
    done = install.install_hosts(context, names, build_plan, yes=yes, dry_run=dry_run, every=all)
    context.notes.extend(
        f"{agent_host.title} is not in use on this machine" for agent_host in unused
    )
    if all and not agents:
        context.notes.append(
            f"no agent host is in use here; to install anyway: memtool install {AGENTS[0]}"
        )
    if not user:
        _note_subdirectory(
            context,
            [
                agent_host
                for agent_host in map(load_host, agents)
                if not agent_host.reads_top_folder
            ],
        )
    if written:
        _note_ignored(context, sorted(written))
    if names != [GIT]:
        _note_missing(context, user=user)
    return done


def uninstall(
    context: Context,
    host: Annotated[str, HOSTS] = "",
    *,
    all: bool = False,
    user: bool = False,
    yes: bool = False,
    dry_run: bool = False,
) -> InstallResult:
    """Disconnect an agent from memtool, or remove git's hooks.

    Files and settings are as they were before memtool install. What others wrote is not touched. On
    a terminal the changes are shown first.

    Example:
        memtool uninstall claude
        memtool uninstall git --dry-run

    Args:
        host: {HOSTS}
        all: every agent that is connected, and git
        user: for all of your projects, instead of this one
        yes: change files of others without asking
        dry_run: show what would be done, change nothing
    """
    from memtool.hosts import install
    from memtool.hosts.setup import plan_removal

    names = install.choose_hosts(context, host, every=all, user=user, verb="uninstall")
    if all:  # also where the host itself is gone by now
        names = list(AGENTS if user else HOSTS)

    def build_plan(name: str) -> InstallPlan:
        return plan_removal(context, name, is_user=user)

    return install.install_hosts(context, names, build_plan, yes=yes, dry_run=dry_run, every=all)


def render(result: InstallResult, _layout: Layout) -> str:
    """Return a line per step, and in a dry run the diff."""
    return render_result(result)


def _note_subdirectory(context: Context, hosts: list[Host]) -> None:
    """Note which hosts, started in this subdirectory, will not read the files at the top."""
    from memtool.hosts.install import is_in_subdirectory

    if hosts and is_in_subdirectory(context):
        who = " and ".join(host.title for host in hosts)
        which = hosts[0].name if len(hosts) == 1 else "--all"
        context.notes.append(
            f"{who}, started in a subdirectory, does not read the top of the repository: "
            f"memtool install {which} --user"
        )


def _note_ignored(context: Context, paths: list[str]) -> None:
    """Note that git ignores files of the project, so that other clones do not get them."""
    ignored = sorted(find_ignored(context, paths))
    if ignored:
        ignored[0] = first = ignored[0].removeprefix(f"{context.repository.top}/")
        context.notes.append(
            f"git ignores {first_few(ignored, 1)}, so other clones do not get it: "
            f"git check-ignore -v {first}"
        )


def _note_missing(context: Context, *, user: bool) -> None:
    """Note that hooks will not find memtool itself, or a memory directory."""
    import os
    import shutil

    from memtool import installation

    if not user and shutil.which("memtool", path=context.caller.env.get("PATH")) is None:
        context.notes.append(
            f"the hooks run memtool, which is not on your PATH: {installation.install_on_path()}"
        )
    if not context.is_global and not os.path.isdir(
        os.path.join(context.repository.top, context.directory)
    ):
        context.notes.append(f"no {context.directory} yet, so agents get nothing: memtool init")
