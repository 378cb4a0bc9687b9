"""`memtool doctor`: whether everything that memtool needs is there, current and working."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from memtool.errors import MemtoolError
from memtool.hosts import diagnostics
from memtool.hosts.diagnostics import ABSENT, BROKEN, GOOD, WARNING, Sign
from memtool.hosts.install import Host, Site
from memtool.store.context import Context
from memtool.value import Value

MARKS = {GOOD: "ok", ABSENT: "-", WARNING: "!", BROKEN: "BROKEN"}
MOST_ROWS = 6
"""Lines shown of what an agent would see."""


class Diagnosed(Value):
    """The signs in the order in which they were looked at, and what was mended before."""

    signs: tuple[Sign, ...]
    mended: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 where something is broken, for scripts."""
        return int(any(sign.state == BROKEN for sign in self.signs))


def doctor(
    context: Context,
    host: Literal["", "claude", "codex", "gemini", "opencode", "cursor"] = "",
    *,
    fix: bool = False,
) -> Diagnosed:
    """Tell whether memtool, the repository and each agent host are as they should be.

    Of a host: whether memtool is installed there, whether its files are those that this version
    writes, and whether its hooks work: they are run with a sample event, as the host runs them, and
    what the agent would see is shown. Where something is broken, the exit code is 1.

    Example:
        memtool doctor
        memtool doctor claude

    Args:
        host: only this host; all that are in use without it
        fix: make the caches anew where they are broken
    """
    mended = tuple(diagnostics.mend(context)) if fix else ()
    signs: list[Sign] = []
    if not host:
        signs += [*diagnostics.of_memtool(context), *diagnostics.of_repository(context)]
    signs += _of_hosts(context, host)
    context.notes.clear()  # what is wrong is the answer here
    return Diagnosed(tuple(signs), mended)


def render(diagnosed: Diagnosed) -> str:
    """Return a block for each area: one line a sign, with the next step and the agent's view."""
    rows = [f"mended: {what}" for what in diagnosed.mended]
    area = ""
    for sign in diagnosed.signs:
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


def _of_hosts(context: Context, only: str) -> Iterator[Sign]:
    from memtool.hosts import AGENTS, agent

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
        sites = [host.site(context, is_user=is_user) for is_user in (False, True)]
        levels = [(site, any(map(site.has, host.parts(site)))) for site in sites]
        if not any(installed for _site, installed in levels):
            detail = "not installed" if is_used else "not installed; the host is not in use here"
            yield Sign(name, "installed", ABSENT, detail, f"memtool install {name}")
            continue
        prompt = prompt or _sample(context)
        for site, installed in levels:
            if installed:
                yield from _of_site(context, host, site, prompt)


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
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        detail = f"missing or older: {', '.join(paths[:3])}{more}"
        yield Sign(host.name, "current", WARNING, detail, f"{again} brings them up to date")
        if any(part.path == step.path for part in host.parts(site)[:1] for step in steps):
            return  # the hooks are not those that this version would run
    else:
        yield Sign(host.name, "current", GOOD, "as this version writes it")
    from memtool.hosts.diagnostics import rehearse

    for one in rehearse(host, site, prompt, context.env):
        name = f"works: {one.event}"
        if one.fault:
            yield Sign(host.name, name, BROKEN, one.fault, "memtool hook --help")
            continue
        seen = f"the agent sees {len(one.text):,} characters" if one.text else "nothing to say"
        yield Sign(host.name, name, GOOD, f"{seen}, {one.took_ms:.0f} ms", shown=one.text)


def _sample(context: Context) -> str:
    """Return a prompt that some memory answers, where there is one."""
    try:
        memories = [one.memory for one in context.tree().records]
    except MemtoolError:
        memories = []
    confirmed = [memory.title for memory in memories if memory.status == "confirmed"]
    return confirmed[-1] if confirmed else "What do we know about this project?"
