"""`memtool doctor`: whether everything that memtool needs is installed, current and working."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from memtool.agents import AGENTS
from memtool.commands import _features
from memtool.commands._layout import Layout
from memtool.errors import MemtoolError
from memtool.hosts import diagnostics, unattended
from memtool.hosts.diagnostics import ABSENT, BROKEN, GOOD, WARNING, CheckResult
from memtool.hosts.edits import Site
from memtool.hosts.install import Host, is_in_subdirectory
from memtool.store.context import Context
from memtool.value import Value, first_few, format_count

MARKS = {GOOD: "ok", ABSENT: "-", WARNING: "!", BROKEN: "BROKEN"}
MAX_VIEW_ROWS = 6
"""Lines of the text that an agent would see."""


class DoctorReport(Value):
    """The results in the order of the checks, and what --fix mended before.

    `host` is the only host that was checked, empty for all.
    """

    signs: tuple[CheckResult, ...]
    mended: tuple[str, ...] = ()
    host: str = ""
    is_verbose: bool = False

    def plain(self) -> dict[str, Any]:
        """Return the shape of `--json`: a summary of health, the results, and what was mended.

        It is healthy if nothing is broken; `issues` also list warnings.
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
        """1 if something is broken, for scripts."""
        return int(any(sign.state == BROKEN for sign in self.signs))


def doctor(
    context: Context,
    host: Annotated[str, AGENTS] = "",
    *,
    ci: bool = False,
    fix: bool = False,
    probe: bool = False,
    yes: bool = False,
    verbose: bool = False,
) -> DoctorReport:
    """Check that memtool, the repository and each agent work.

    What is checked:
        repository   git, settings, disk space, unreadable memories, index, sessions, hooks, stores
                     that have changed since they were imported
        agents       whether memtool is installed and current, and whether the hooks run; a sample
                     event is sent to each hook
        --ci         before an agent works unattended: what would keep it silent is an error
        --probe      a commit and a merge in a temporary worktree, to prove that git runs the check

    Exit code 1 means that something is broken.

    Example:
        memtool doctor
        memtool doctor claude
        memtool doctor --probe
        memtool doctor --ci claude

    Args:
        host: {AGENTS}; by default all in use
        ci: fail if an agent in a job would get no memories
        fix: rebuild derived files that are broken; memories are never changed
        probe: prove that git runs the check, after asking
        yes: with --probe, do not ask
        verbose: list every check, and what agents would see; short: -v
    """
    mended = tuple(diagnostics.repair(context)) if fix else ()
    signs: list[CheckResult] = []
    if not host:
        signs += [*diagnostics.check_memtool(context), *diagnostics.check_repository(context)]
        signs += _check_stores(context)
    if probe:
        signs += _probe_hooks(context, yes=yes)
    signs += _check_hosts(context, host)
    if ci:
        signs = list(unattended.judge(context, signs, host))
    context.notes.clear()  # problems are reported as results
    return DoctorReport(tuple(signs), mended, host, verbose)


def _check_stores(context: Context) -> Iterator[CheckResult]:
    """Yield a warning for each store that has changed since it was imported."""
    try:
        changes = _features.list_changes(context)
    except MemtoolError:  # without readable memories there is nothing to compare
        return
    for change in changes:
        yield CheckResult("repository", "stores", WARNING, change.what, change.command)


def _probe_hooks(context: Context, *, yes: bool) -> tuple[CheckResult, ...]:
    """Prove that git runs the gate. Raises MemtoolError unless the user agrees."""
    from memtool.hosts import git_probe
    from memtool.store.progress import can_prompt, confirm

    if not yes and not (can_prompt() and confirm(git_probe.CONSENT_QUESTION)):
        raise MemtoolError(
            "nothing was run: --probe runs all hooks of the repository and needs consent",
            hint="memtool doctor --probe --yes",
            code="refused",
        )
    return git_probe.run_probe(context)


def render(report: DoctorReport, layout: Layout) -> str:
    """Return what is wrong first, with hints, then how many checks passed.

    With a host or --verbose each check is a line, with what the agent would see.
    """
    rows = [f"mended: {what}" for what in report.mended]
    if report.host or report.is_verbose:
        return "\n".join([*rows, *_format_areas(report.signs, layout)])
    for state in (BROKEN, WARNING):
        for sign in report.signs:
            if sign.state == state:
                detail = layout.shorten(sign.detail)
                rows += layout.wrap(f"{MARKS[state]} {sign.area}: {sign.name}: {detail}")
                rows += layout.wrap(f"hint: {sign.hint}" * bool(sign.hint), "  ")
    passed = sum(sign.state == GOOD for sign in report.signs)
    absent = [sign for sign in report.signs if sign.state == ABSENT]
    if absent:
        shown = "; ".join(f"{sign.area}: {sign.name}: {sign.detail}" for sign in absent)
        rows += layout.wrap(f"not in use: {shown}")
    rows.append(f"{format_count(passed, 'check')} passed (--verbose lists them)")
    return "\n".join(rows)


def _format_areas(signs: Iterable[CheckResult], layout: Layout) -> Iterator[str]:
    """Yield a block for each area: a line for each result, with its hint and the agent's view."""
    area = ""
    for sign in signs:
        if sign.area != area:
            yield from ([""] if area else [])
            area = sign.area
            yield area
        yield f"  {MARKS[sign.state]:<7}{sign.name:<27}{layout.shorten(sign.detail)}"
        if sign.hint:
            yield f"         hint: {sign.hint}"
        lines = sign.shown.strip().split("\n") if sign.shown else []
        yield from (f"         | {line}" for line in lines[:MAX_VIEW_ROWS])
        if len(lines) > MAX_VIEW_ROWS:
            yield f"         | ... and {format_count(len(lines) - MAX_VIEW_ROWS, 'more line')}"


def _check_hosts(context: Context, only: str) -> Iterator[CheckResult]:
    from memtool.hosts.install import load_host

    if context.repository.is_bare:
        if only:
            yield CheckResult(only, "installed", ABSENT, "no agent works in a bare repository")
        return
    prompt = ""
    for name in [only] if only else AGENTS:
        host = load_host(name)
        is_used = host.is_used(context)
        if not is_used and not only:
            continue
        sites = [host.build_site(context, is_user=False)]
        # Without an absolute home it cannot be installed for the user.
        if os.path.isabs(host.home(context.caller.env)):
            sites.append(host.build_site(context, is_user=True))
        levels = [(site, any(map(site.has, host.parts(site)))) for site in sites]
        if not any(installed for _site, installed in levels):
            detail = "not installed" if is_used else "not installed; the host is not in use here"
            yield CheckResult(name, "installed", ABSENT, detail, f"memtool install {name}")
            continue
        prompt = prompt or _sample_prompt(context)
        for site, installed in levels:
            if installed:
                yield from _check_site(context, host, site, prompt)
        is_found = host.reads_top_folder or any(
            site.is_user and installed for site, installed in levels
        )
        if not is_found and is_in_subdirectory(context):
            detail = f"{host.title} started in this directory reads no files at the top"
            hint = f"memtool install {name} --user"
            yield CheckResult(name, "subdirectory", WARNING, detail, hint)


def _check_site(context: Context, host: Host, site: Site, prompt: str) -> Iterator[CheckResult]:
    level = "all projects" if site.is_user else "project"
    yield CheckResult(host.name, "installed", GOOD, f"for {level}: {site.format_path(site.folder)}")
    again = f"memtool install {host.name}{' --user' if site.is_user else ''}"
    try:
        steps = host.plan_install(site).steps
    except MemtoolError as error:
        yield CheckResult(host.name, "current", BROKEN, error.message, error.hint)
        return
    if steps:
        paths = [site.format_path(step.path) for step in steps]
        detail = f"missing or older: {first_few(paths, 3)}"
        yield CheckResult(host.name, "current", WARNING, detail, f"{again} brings them up to date")
        if any(part.path == step.path for part in host.parts(site)[:1] for step in steps):
            return  # do not run hooks of another version
    else:
        yield CheckResult(host.name, "current", GOOD, "as this version writes it")
    if host.has_program(context.caller.env):
        yield from diagnostics.check_program(host, site, context.caller.env)
    from memtool.hosts.diagnostics import try_hooks

    for trial in try_hooks(host, site, prompt, context.caller.env):
        name = f"works: {trial.event}"
        if trial.fault:
            yield CheckResult(host.name, name, BROKEN, trial.fault, "memtool hook --help")
            continue
        seen = f"the agent sees {len(trial.text):,} characters" if trial.text else "nothing to say"
        yield CheckResult(
            host.name, name, GOOD, f"{seen}, {trial.took_ms:.0f} ms", shown=trial.text
        )


def _sample_prompt(context: Context) -> str:
    """Return a prompt that a memory answers, if there is a confirmed memory."""
    try:
        memories = [record.memory for record in context.whole_tree.records]
    except MemtoolError:
        memories = []
    confirmed = [memory.title for memory in memories if memory.status == "confirmed"]
    return confirmed[-1] if confirmed else "What do we know about this project?"
