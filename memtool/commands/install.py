"""`memtool install` and `uninstall`: put memtool where it is called, and take it out again."""

from __future__ import annotations

from typing import Annotated

from memtool.agents import AGENTS
from memtool.errors import MemtoolError
from memtool.hosts import HOSTS
from memtool.hosts.install import Host, Installed, InstallPlan
from memtool.hosts.install import render_installed as render
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
) -> Installed:
    """Put memtool into an agent host, into the hooks of git, or into those of pre-commit.

    claude, codex, gemini, opencode, cursor: hooks that begin a session with the primer, add what
    matters to each prompt and hand the session over for capture; slash commands such as /remember;
    and a skill that teaches the agent to write, correct and search. The files are those of this
    project, to be committed, or with --user those of all your projects. Everything that others
    wrote there stays, byte for byte. What you have for all your projects is not written into one;
    where both are there, a session is given everything once.

    git: a pre-commit and a pre-merge-commit hook run memtool check --staged, and a post-merge hook
    tells what a merge brought. Into a shell hook of yours a few lines are put at its beginning; it
    behaves as before. Where husky makes the hooks, the entry goes into .husky/, with lefthook into
    lefthook-local.yml; for simple-git-hooks, overcommit and hooks in other languages you are told
    what to add. Where memtool is gone, only commits that touch memories are refused. A merge
    driver joins what two branches did to one memory, key by key; .gitattributes names it. Other
    clones need it too: hooks and drivers are not committed. With --codeowners the forge asks these
    owners for a review where the folders of trust rules (without any: of decisions) or the
    settings of the gate change; the lines stand at the end of CODEOWNERS, to be committed, and
    uninstall removes them.

    pre-commit: for those who use that framework, in place of git. The hook memtool-check is added
    to .pre-commit-config.yaml, whose comments and order stay; a file that pre-commit itself does
    not accept is refused. Other clones then need pre-commit install.

    On a terminal the changes are shown first, and made if you agree. Without one, files that
    memtool did not write change only with --yes. Doing it again changes nothing.

    Example:
        memtool install git
        memtool install git --codeowners @your-org/payments --dry-run
        memtool install claude --dry-run
        memtool install --all --yes

    Args:
        host: where to install it
        all: every host in use: its program is on the path, or this project or you have files of it
        user: for all projects of yours, instead of for this one
        mcp: also the MCP server
        codeowners: with git, who must review memories: @ORG/TEAM, @USER or an address
        yes: change files that others wrote without asking
        dry_run: show what would be done, change nothing
    """
    from memtool.hosts import GIT, git, install
    from memtool.hosts.install import agent

    names = install.names_of(context, host, every=all, user=user, verb="install")
    if codeowners is not None and GIT not in names:
        raise MemtoolError(
            "--codeowners belongs to git", hint="memtool install git --codeowners @ORG/TEAM"
        )

    def plan_of(name: str) -> InstallPlan:
        if name == GIT:
            plan = git.install(context.repository, context.directory)
            steps = [] if codeowners is None else git.with_code_owners(context, codeowners)
            return InstallPlan((*plan.steps, *steps), plan.notes)
        host = agent(name)
        plan = host.install(host.site(context, is_user=user), with_server=mcp)
        written.update(step.path for step in plan.steps if not user)
        return plan

    written: set[str] = set()
    agents = [name for name in names if name in AGENTS]
    unused = [one for one in map(agent, agents) if not one.is_used(context)]
    done = install.run(context, names, plan_of, yes=yes, dry_run=dry_run, every=all)
    context.notes.extend(f"{one.title} is not in use on this machine" for one in unused)
    if all and not agents:
        context.notes.append(
            "no agent host is in use here: memtool install claude puts it there anyway"
        )
    if not user:
        _note_below(context, [one for one in map(agent, agents) if not one.looks_up])
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
) -> Installed:
    """Take memtool out of an agent host, or out of the hooks of git or pre-commit.

    Settings get back the bytes that they had, files and directories that memtool made are removed,
    and hooks of git that were there before get their bytes back; the setting of the merge driver
    and the lines for code owners go, the attribute stays. What memtool did not write is left alone.
    On a terminal the changes are shown first; without one, files that others write too change only
    with --yes.

    Example:
        memtool uninstall git

    Args:
        host: where to take it out
        all: out of every host that has it
        user: out of all projects of yours, instead of this one
        yes: change files that others write too without asking
        dry_run: show what would be done, change nothing
    """
    from memtool.hosts import GIT, PRE_COMMIT, git, install
    from memtool.hosts.install import agent

    names = install.names_of(context, host, every=all, user=user, verb="uninstall")
    if all:  # also where the host itself is gone by now
        names = [*AGENTS, *([] if user else [GIT, PRE_COMMIT])]

    def plan_of(name: str) -> InstallPlan:
        if name == GIT:
            return git.uninstall(context.repository)
        host = agent(name)
        return host.uninstall(host.site(context, is_user=user))

    return install.run(context, names, plan_of, yes=yes, dry_run=dry_run, every=all)


def _note_below(context: Context, hosts: list[Host]) -> None:
    """Note which hosts will not read what is at the top where they are started here, below it."""
    from memtool.hosts.install import is_below

    if hosts and is_below(context):
        who = " and ".join(host.title for host in hosts)
        which = hosts[0].name if len(hosts) == 1 else "--all"
        context.notes.append(
            f"{who}, started in a subdirectory, will not look at the top of the repository: "
            f"memtool install {which} --user serves it there"
        )


def _note_ignored(context: Context, paths: list[str]) -> None:
    """Note that git ignores files of the project, so that nobody else gets them."""
    plain = {"GIT_LITERAL_PATHSPECS": "0"}  # git refuses to look at rules with literal paths
    found = context.repository.git.run("check-ignore", "--", *paths, allowed=(0, 1), env=plain)
    ignored = found.decode(errors="replace").splitlines()
    if ignored:
        ignored[0] = first = ignored[0].removeprefix(f"{context.repository.top}/")
        context.notes.append(
            f"git ignores {first_few(ignored, 1)}, so no other clone gets it: "
            f"git check-ignore -v {first} names the rule"
        )


def _note_missing(context: Context, *, user: bool) -> None:
    """Note what the hooks will not find: memtool itself, or a memory directory."""
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
        context.notes.append(
            f"there is no {context.directory} yet, so agents get nothing: memtool init"
        )
