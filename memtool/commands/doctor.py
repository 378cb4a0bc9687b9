"""`memtool doctor`: whether everything that memtool needs is there, current and working."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Annotated, Any

from memtool.agents import AGENTS
from memtool.errors import MemtoolError
from memtool.hosts import diagnostics
from memtool.hosts.diagnostics import ABSENT, BROKEN, GOOD, WARNING, Sign
from memtool.hosts.edits import Site
from memtool.hosts.install import Host, is_below
from memtool.store.context import Context
from memtool.value import Value, first_few

MARKS = {GOOD: "ok", ABSENT: "-", WARNING: "!", BROKEN: "BROKEN"}
MOST_ROWS = 6
"""Lines shown of what an agent would see."""


class Diagnosed(Value):
    """The signs in the order in which they were looked at, and what was mended before.

    `host` is the one that was asked about, empty for all.
    """

    signs: tuple[Sign, ...]
    mended: tuple[str, ...] = ()
    host: str = ""
    is_verbose: bool = False

    def plain(self) -> dict[str, Any]:
        """Return the shape of `--json`: health in short, the signs, and what was mended.

        It is healthy where nothing is broken; `issues` also name what is only worth a look.
        """
        wrong = [sign for sign in self.signs if sign.state in (BROKEN, WARNING)]
        hints = [sign.hint for sign in wrong if sign.hint]
        return {
            "healthy": not self.exit_code,
            "issues": [f"{sign.area}: {sign.name}: {sign.detail}" for sign in wrong],
            "recommendations": list(dict.fromkeys(hints)),
            "signs": [sign.plain() for sign in self.signs],
            "mended": list(self.mended),
        }

    @property
    def exit_code(self) -> int:
        """1 where something is broken, for scripts."""
        return int(any(sign.state == BROKEN for sign in self.signs))


def doctor(
    context: Context,
    host: Annotated[str, AGENTS] = "",
    *,
    fix: bool = False,
    probe: bool = False,
    yes: bool = False,
    verbose: bool = False,
) -> Diagnosed:
    """Tell whether memtool, the repository and each agent host are as they should be.

    Of a host: whether memtool is installed there, whether its files are those that this version
    writes, whether the host is of a version that was tried and accepts the hooks, and whether they
    work: they are run with a sample event, as the host runs them. Of the host that is named, what
    the agent would see is shown; otherwise each host that works is one line. Where something is
    broken, the exit code is 1.

    Of the repository: git, settings, the trusted ref, limits that this worktree would widen,
    whether a file can be written and how much room is left, a lock that was left behind, memories
    that cannot be read (and whether the last commit has them whole), those due for review, drift,
    index, ledger, sessions, hooks, the merge driver, and what hooks failed at of late. Whether git
    runs the gate is found by reading; --probe proves it, after asking, by a commit and a merge in a
    temporary worktree, at which all hooks of the repository run.

    Example:
        memtool doctor
        memtool doctor claude
        memtool doctor --probe
        memtool doctor -v

    Args:
        host: only this host; all that are in use without it
        fix: make anew what is derived and broken; memories are never touched
        probe: prove that git runs the gate at a commit and at a merge
        yes: with --probe, do not ask
        verbose: each sign of each host, and what agents would see; -v for short
    """
    mended = tuple(diagnostics.mend(context)) if fix else ()
    signs: list[Sign] = []
    if not host:
        signs += [*diagnostics.of_memtool(context), *diagnostics.of_repository(context)]
    if probe:
        signs += _probed(context, yes=yes)
    signs += _of_hosts(context, host)
    context.notes.clear()  # what is wrong is the answer here
    return Diagnosed(tuple(signs), mended, host, verbose)


def _probed(context: Context, *, yes: bool) -> tuple[Sign, ...]:
    """Prove that git runs the gate. Raises MemtoolError where nobody agrees to that."""
    from memtool.hosts import git_probe
    from memtool.store.progress import agrees, can_ask

    if not yes and not (can_ask() and agrees(git_probe.QUESTION)):
        raise MemtoolError(
            "nothing was tried: a probe runs all hooks of the repository",
            hint="memtool doctor --probe, and answer y; without a terminal --probe --yes",
            code="refused",
        )
    return git_probe.probe(context)


def render(diagnosed: Diagnosed) -> str:
    """Return a block for each area: one line a sign, with the next step and the agent's view.

    Where no host was named, one that works is one line, without that view.
    """
    rows = [f"mended: {what}" for what in diagnosed.mended]
    area = ""
    is_long = diagnosed.host or diagnosed.is_verbose
    for sign in diagnosed.signs if is_long else _in_short(diagnosed.signs):
        if sign.area != area:
            area = sign.area
            rows += [*([""] if rows else []), area]
        rows.append(f"  {MARKS[sign.state]:<7}{sign.name:<27}{sign.detail}")
        if sign.hint:
            rows.append(f"         hint: {sign.hint}")
        lines = sign.shown.strip().split("\n") if sign.shown else []
        rows += [f"         | {line}" for line in lines[:MOST_ROWS]]
        if len(lines) > MOST_ROWS:
            rows.append(f"         | ... and {len(lines) - MOST_ROWS} more lines")
    return "\n".join(rows)


def _in_short(signs: Iterable[Sign]) -> Iterator[Sign]:
    """Yield the signs without those of a host that are good, but for one that says so."""
    for area, group in groupby(signs, key=lambda sign: sign.area):
        own = list(group)
        if area not in AGENTS:
            yield from own
            continue
        worse = [sign.replace(shown="") for sign in own if sign.state != GOOD]
        if not worse:
            seen = [sign.detail for sign in own if sign.name.startswith("works: ")]
            what = "; ".join([own[0].detail, *seen[-1:]])
            yield Sign(area, "works", GOOD, what, f"memtool doctor {area} shows what it sees")
        yield from worse


def _of_hosts(context: Context, only: str) -> Iterator[Sign]:
    from memtool.hosts.install import agent

    if context.repository.is_bare:
        if only:
            yield Sign(only, "installed", ABSENT, "no agent works in a bare repository")
        return
    prompt = ""
    for name in [only] if only else AGENTS:
        host = agent(name)
        is_used = host.is_used(context)
        if not is_used and not only:
            continue
        sites = [host.site(context, is_user=False)]
        if os.path.isabs(host.home(context.caller.env)):  # else there is nowhere to have it
            sites.append(host.site(context, is_user=True))
        levels = [(site, any(map(site.has, host.parts(site)))) for site in sites]
        if not any(installed for _site, installed in levels):
            detail = "not installed" if is_used else "not installed; the host is not in use here"
            yield Sign(name, "installed", ABSENT, detail, f"memtool install {name}")
            continue
        prompt = prompt or _sample(context)
        for site, installed in levels:
            if installed:
                yield from _of_site(context, host, site, prompt)
        is_found = host.looks_up or any(one.is_user and installed for one, installed in levels)
        if not is_found and is_below(context):
            detail = f"{host.title} started in this directory reads no files at the top"
            hint = f"memtool install {name} --user"
            yield Sign(name, "subdirectory", WARNING, detail, hint)


def _of_site(context: Context, host: Host, site: Site, prompt: str) -> Iterator[Sign]:
    level = "all projects" if site.is_user else "project"
    yield Sign(host.name, "installed", GOOD, f"for {level}: {site.shown(site.folder)}")
    again = f"memtool install {host.name}{' --user' if site.is_user else ''}"
    try:
        steps = host.install(site).steps
    except MemtoolError as error:
        yield Sign(host.name, "current", BROKEN, error.message, error.hint)
        return
    if steps:
        paths = [site.shown(step.path) for step in steps]
        detail = f"missing or older: {first_few(paths, 3)}"
        yield Sign(host.name, "current", WARNING, detail, f"{again} brings them up to date")
        if any(part.path == step.path for part in host.parts(site)[:1] for step in steps):
            return  # the hooks are not those that this version would run
    else:
        yield Sign(host.name, "current", GOOD, "as this version writes it")
    if host.is_program(context.caller.env):
        yield from diagnostics.of_program(host, site, context.caller.env)
    from memtool.hosts.diagnostics import rehearse

    for one in rehearse(host, site, prompt, context.caller.env):
        name = f"works: {one.event}"
        if one.fault:
            yield Sign(host.name, name, BROKEN, one.fault, "memtool hook --help")
            continue
        seen = f"the agent sees {len(one.text):,} characters" if one.text else "nothing to say"
        yield Sign(host.name, name, GOOD, f"{seen}, {one.took_ms:.0f} ms", shown=one.text)


def _sample(context: Context) -> str:
    """Return a prompt that some memory answers, where there is one."""
    try:
        memories = [one.memory for one in context.whole_tree.records]
    except MemtoolError:
        memories = []
    confirmed = [memory.title for memory in memories if memory.status == "confirmed"]
    return confirmed[-1] if confirmed else "What do we know about this project?"
