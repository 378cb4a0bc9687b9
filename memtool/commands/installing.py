"""Installing: plans for hosts are shown, agreed to, and carried out while no other process does."""

from __future__ import annotations

import os
import sys

from memtool.errors import MemtoolError
from memtool.hosts.parts import MARK
from memtool.hosts.plan import Plan, alone, carry_out
from memtool.hosts.site import home_of
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from memtool.hosts.plan import Step
    from memtool.hosts.site import Site
    from memtool.store.repository import Repository
    from memtool.workspace import Workspace


class Installed(Value):
    """What was done for hosts, or with `dry_run` would be: one clause for each step, in order.

    `diff` shows the changes to settings that others write too.
    """

    host: str
    steps: tuple[str, ...]
    dry_run: bool = False
    diff: str = ""


def names_of(ws: Workspace, host: str, *, every: bool, user: bool, verb: str) -> list[str]:
    """Return the hosts that are meant: the one that is named, or all that are in use.

    Raises:
        MemtoolError: none or both are given, or the host cannot be used so.
    """
    from memtool.hosts import AGENTS, GIT, agent

    if bool(host) == every:
        raise MemtoolError(
            f"memtool {verb} needs a host, or --all" if not host else "HOST and --all: give one",
            hint=f"memtool {verb} claude, or one of {', '.join((*AGENTS, GIT))}",
        )
    if host == GIT and user:
        raise MemtoolError("git's hooks belong to one repository", hint=f"memtool {verb} git")
    if ws.is_global and host != GIT and not user:
        raise MemtoolError(
            "the global repository is no project of an agent",
            hint=f"memtool {verb} {host or '--all'} --user is for all your projects",
        )
    if ws.repository.is_bare:
        raise MemtoolError(
            "a bare repository has no work tree", hint="run it in a clone", code="bare"
        )
    if host:
        return [host]
    top = ws.repository.top
    used = [name for name in AGENTS if agent(name).is_used(top, ws.env)]
    return [*used, *([] if user else [GIT])]


def site_of(ws: Workspace, name: str, *, user: bool) -> Site:
    """Return where the files of an agent host are."""
    from memtool.commands import VERBS
    from memtool.hosts import agent

    verbs = [verb.name for verb in VERBS]
    return agent(name).site(ws.repository.top, ws.env, verbs, is_user=user)


def plan_of_git(ws: Workspace, planned: Callable[[Repository], list[Step]], *, every: bool) -> Plan:
    """Return the plan for git's hooks. Among all hosts it may be left out, and is told.

    Raises:
        MemtoolError: the hooks are somebody else's, and git was named.
    """
    try:
        return Plan(tuple(planned(ws.repository)))
    except MemtoolError as error:
        if not every:
            raise
        return Plan((), (f"git is left out: {error.message}",))


def run(
    ws: Workspace,
    names: list[str],
    plan_of: Callable[[str], Plan],
    *,
    yes: bool,
    dry_run: bool,
) -> Installed:
    """Plan for each host, ask where somebody can answer, and do it. Nothing is done by halves.

    Raises:
        MemtoolError: files of others would change and nobody agreed, or a host cannot be planned.
    """
    plan = _joined(plan_of(name) for name in names)
    asks = not (yes or dry_run) and bool(plan.steps) and _is_somebody_there()
    if asks and not _agrees(ws, plan):
        raise MemtoolError("nothing was changed", hint="answer y, or give --yes", code="refused")
    if not dry_run:
        with alone([ws.repository.top, home_of(ws.env)]):
            now = _joined(plan_of(name) for name in names)
            if asks and now.steps != plan.steps:
                raise MemtoolError(
                    "the files changed while you were reading",
                    hint="run the same command again",
                    code="changed",
                )
            plan = now
            _refuse_unasked(ws, plan, is_agreed=yes or asks)
            carry_out(plan.steps)
    ws.notes.extend(note for note in plan.notes if note not in ws.notes)
    steps = tuple(told(step, ws.repository.top) for step in plan.steps)
    return Installed(", ".join(names), steps, dry_run, _diff_of(ws, plan))


def render_installed(installed: Installed) -> str:
    """Return one line for each step, or that nothing is to be done; a dry run shows the changes."""
    if not installed.steps:
        return f"{installed.host}: nothing to change"
    if installed.dry_run:
        rows = [f"would {step}" for step in installed.steps]
        return "\n".join([*rows, *(["", installed.diff] if installed.diff else [])])
    return "\n".join(installed.steps)


def told(step: Step, top: str) -> str:
    """Return a step as a clause, with paths from the top where they lie below it."""
    path = step.path.removeprefix(f"{top}/")
    if step.kind == "keep":
        return f"rename {path} to {os.path.basename(step.target)}"
    if step.kind == "edit":
        return f"{'write' if step.before is None else 'change'} {path}"
    return f"{'remove' if step.kind == 'drop' else step.kind} {path}"


def _joined(plans: Iterable[Plan]) -> Plan:
    steps: list[Step] = []
    notes: list[str] = []
    for plan in plans:
        steps += plan.steps
        notes += plan.notes
    return Plan(tuple(steps), tuple(notes))


def _diff_of(ws: Workspace, plan: Plan) -> str:
    """Return the changes as a unified diff; files that are memtool's alone need none."""
    import difflib

    rows: list[str] = []
    for step in plan.steps:
        if step.kind != "edit" or MARK.encode() in step.data:
            continue
        path = step.path.removeprefix(f"{ws.repository.top}/")
        before, after = (
            data.decode(errors="replace").splitlines(keepends=True)
            for data in (step.before or b"", step.data)
        )
        old = path if step.before is not None else os.devnull
        rows += difflib.unified_diff(before, after, old, path)
    return "".join(row if row.endswith("\n") else f"{row}\n" for row in rows)


def _is_somebody_there() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def _agrees(ws: Workspace, plan: Plan) -> bool:
    """Show the plan on the terminal and ask."""
    diff = _diff_of(ws, plan)
    rows = [told(step, ws.repository.top) for step in plan.steps]
    text = "\n".join([*rows, *(["", diff.rstrip("\n"), ""] if diff else []), "do this? [y/N] "])
    # What files of others hold must not act on the terminal.
    sys.stderr.write("".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text))
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _refuse_unasked(ws: Workspace, plan: Plan, *, is_agreed: bool) -> None:
    foreign = [step for step in plan.steps if step.is_foreign and not _is_own(step)]
    if foreign and not is_agreed:
        path = foreign[0].path.removeprefix(f"{ws.repository.top}/")
        raise MemtoolError(
            f"{path} is not memtool's alone, and nobody is there to be asked; nothing was changed",
            hint="--dry-run shows the change, --yes makes it",
            code="unasked",
        )


def _is_own(step: Step) -> bool:
    return step.kind == "edit" and MARK.encode() in (step.before or b"")
