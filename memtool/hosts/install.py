"""Installation: plan which files of an agent host or of git change, ask, and change all or none.

A host is described by the edits of its files (`edits`) and by where these files are. A plan is a
list of steps on whole files, made of what is there; carrying it out checks that nothing changed
meanwhile, and a step that fails undoes those before it. Refused are links that lead out of the
repository, files that cannot be read or parsed, and changes to the files of others that nobody
agreed to.
"""

from __future__ import annotations

import difflib
import os
import pwd
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from memtool.agents import AGENTS
from memtool.errors import MemtoolError, reason_of
from memtool.hosts import GIT, HOSTS, PRE_COMMIT
from memtool.hosts.contracts import CONTRACTS, END, START, Contract
from memtool.hosts.edits import MARK, ConfigEdit, Hook, Site, WholeFile
from memtool.store import files
from memtool.store.context import Context
from memtool.store.files import read_or_none, read_regular
from memtool.store.progress import agrees, can_ask
from memtool.value import Value


class FileStep(Value):
    """One change of one file. All paths are absolute.

    `write` puts a program there, `edit` puts `data` where `before` is, None for no file; so does
    `own`, in which only lines change that are memtool's, so that nobody need be asked. `remove`
    deletes the file, with a `before` only if that is its content, and with a `target` also the
    directories below `target` that are empty then. `rename` moves the file to `target`.
    """

    kind: str
    path: str
    target: str = ""
    data: bytes = b""
    before: bytes | None = None

    def text(self, top: str) -> str:
        """Return it as a clause, with a path that is relative to `top` where it lies below."""
        path = self.path.removeprefix(f"{top}/")
        if self.kind == "rename":
            return f"rename {path} to {os.path.basename(self.target)}"
        if self.kind in ("edit", "own"):
            return f"{'write' if self.before is None else 'change'} {path}"
        return f"{self.kind} {path}"


class InstallPlan(Value):
    """Steps in order, and what the user should know about them."""

    steps: tuple[FileStep, ...]
    notes: tuple[str, ...] = ()


def carry_out(steps: Iterable[FileStep]) -> None:
    """Do the steps in order, all of them or none.

    Raises:
        MemtoolError: the disk refuses, or a file changed meanwhile; what was done is undone.
    """
    undo: list[Callable[[], None]] = []
    for step in steps:
        try:
            undo.append(_undoing(step))
            _do(step)
        except (OSError, MemtoolError) as error:
            for back in reversed(undo):
                with suppress(OSError, MemtoolError):
                    back()
            if isinstance(error, MemtoolError):
                raise
            raise MemtoolError(
                f"{step.path} cannot be changed: {reason_of(error)}; nothing was changed",
                hint="give yourself permission, then run the same command again",
                code="disk",
            ) from None


def _do(step: FileStep) -> None:
    if step.kind == "rename":
        os.rename(step.path, step.target)
    elif step.kind == "remove":
        if step.before is not None and read_or_none(step.path) != step.before:
            raise MemtoolError(
                f"{step.path} changed meanwhile", hint="run the same command again", code="changed"
            )
        os.unlink(step.path)
        if step.target:
            _remove_empty(os.path.dirname(step.path), step.target)
    elif step.kind in ("edit", "own"):
        _write(step.path, step.data, step.before)
    else:
        _write(step.path, step.data, read_or_none(step.path))
        mode = stat.S_IMODE(os.stat(step.path).st_mode)
        os.chmod(step.path, mode | (mode & 0o444) >> 2)  # who may read it may run it


def _undoing(step: FileStep) -> Callable[[], None]:
    """Return what undoes a step that is about to be done, and may then be half done."""
    if step.kind == "rename":

        def rename_back() -> None:
            if not os.path.lexists(step.path):
                os.rename(step.target, step.path)

        return rename_back
    data = read_or_none(step.path)
    mode = stat.S_IMODE(os.stat(step.path).st_mode) if data is not None else 0
    existing = os.path.dirname(step.path)
    while not os.path.isdir(existing):
        existing = os.path.dirname(existing)

    def restore() -> None:
        now = read_or_none(step.path)
        if data is not None:
            if now != data:
                _write(step.path, data, now)
            os.chmod(step.path, mode)
        else:
            if now == step.data:
                os.unlink(step.path)
            _remove_empty(os.path.dirname(step.path), existing)

    return restore


def _write(path: str, data: bytes, before: bytes | None) -> None:
    folder, name = os.path.split(path)
    os.makedirs(folder, exist_ok=True)
    files.replace(folder, name, data, expected=before)


def _remove_empty(folder: str, top: str) -> None:
    """Remove a directory and those above it, below `top`, as far as they are empty."""
    with suppress(OSError):  # not empty: there are files of others in it
        while folder.startswith(f"{top}/"):
            os.rmdir(folder)
            folder = os.path.dirname(folder)


def home_of(env: Mapping[str, str]) -> str:
    """Return the home directory of the user, empty where the system knows none."""
    given = env.get("HOME", "")
    if os.path.isabs(given):
        return given
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:  # a container may run as a user that it does not know
        return ""


def _program(env: Mapping[str, str]) -> str:
    """Return the path of the memtool that runs now; its name where only that is known."""
    here = os.path.join(os.path.dirname(sys.executable), "memtool")
    if os.access(here, os.X_OK):
        return here
    return shutil.which("memtool", path=env.get("PATH")) or "memtool"


def is_below(context: Context) -> bool:
    """Tell whether we are in a subdirectory of the repository."""
    return os.path.realpath(context.caller.cwd) != os.path.realpath(context.repository.top)


class Host(Value):
    """A program that runs memtool.

    `folder` is its directory, or only file, in a project; `home` returns the directory for all
    projects of the user. `parts` returns all edits but that of the MCP server, `retired` those of
    older versions of memtool. `trust` is what the user has to do before the host runs a new hook;
    `refusal` asks the host itself which hooks it does not run, and returns that in words, empty for
    none. `tried` is the version in which all of it was proven in real sessions, empty for a host
    that has none without a screen. `looks_up` tells whether a session that starts in a subdirectory
    reads the files at the top of the project.
    """

    name: str
    title: str
    program: str
    folder: str
    home: Callable[[Mapping[str, str]], str]
    parts: Callable[[Site], list[ConfigEdit]]
    server: Callable[[Site], ConfigEdit] | None = None
    trust: str = ""
    retired: Callable[[Site], list[ConfigEdit]] = lambda _site: []
    refusal: Callable[[Site, Mapping[str, str]], str] = lambda _site, _env: ""
    tried: str = ""
    looks_up: bool = True

    def site(self, context: Context, *, is_user: bool) -> Site:
        """Return where its files are, for the project or for all projects of the user.

        Raises:
            MemtoolError: the user has no directory for them.
        """
        project, home = context.repository.top, home_of(context.caller.env)
        inside, everywhere = os.path.join(project, self.folder), self.home(context.caller.env)
        if is_user and not os.path.isabs(everywhere):
            raise MemtoolError(
                f"there is no home directory here for the files of {self.title}",
                hint="set HOME to a directory that you may write to, or leave out --user",
                code="no-home",
            )
        above = home if everywhere.startswith(f"{home}/") else os.path.dirname(everywhere)
        return Site(
            folder=everywhere if is_user else inside,
            other=inside if is_user else everywhere,
            top=above if is_user else project,
            home=home,
            project=project,
            program=_program(context.caller.env) if is_user else "memtool",
            is_user=is_user,
        )

    def is_program(self, env: Mapping[str, str]) -> bool:
        """Tell whether the program of the host is on the path."""
        return bool(shutil.which(self.program, path=env.get("PATH")))

    def is_used(self, context: Context) -> bool:
        """Tell whether the project or the user has files of it, or its program is on the path."""
        env = context.caller.env
        places = (os.path.join(context.repository.top, self.folder), self.home(env))
        return any(map(os.path.isdir, places)) or self.is_program(env)

    def install(self, site: Site, *, with_server: bool = False) -> InstallPlan:
        """Plan what is missing or older. A server that is registered is updated unasked.

        Raises:
            MemtoolError: a file of the host is broken or cannot be read.
        """
        parts = self.parts(site)
        server = self.server(site) if self.server else None
        if server is not None and (with_server or site.has(server)):
            parts.append(server)
        wanted: list[ConfigEdit] = []
        present: dict[str, list[str]] = {}
        for part in parts:
            place = "" if site.has(part) else _other_level(part, site)
            if place:
                level = site.other if place.startswith(f"{site.other}/") else place
                present.setdefault(site.shown(level), []).append(_name(part))
            else:
                wanted.append(part)
        notes = [f"{level} has it already: {', '.join(who)}" for level, who in present.items()]
        steps = []
        is_hooked = False
        retired = _by_path(self.retired(site))
        for path, group in _by_path(wanted).items():
            before = after = site.read(path)
            for part in retired.get(path, ()):
                after = part.take(after) if after and part.has(after) else after
            for part in group:
                last, after = after, part.put(after)
                is_hooked |= part.is_hook and after != last
            if after != before and after is not None:
                steps.append(FileStep("edit", site.real(path), data=after, before=before))
            if not all(part.has(after or b"") for part in group):
                notes.append(f"{site.shown(path)} is somebody else's, and stays as it is")
        if is_hooked and self.trust:
            notes.append(self.trust)
        return InstallPlan(tuple(steps), tuple(dict.fromkeys(notes)))

    def uninstall(self, site: Site) -> InstallPlan:
        """Plan to take everything of memtool out again.

        Raises:
            MemtoolError: a file of the host is broken or cannot be read.
        """
        steps = []
        server = [self.server(site)] if self.server else []
        for path, group in _by_path([*self.parts(site), *self.retired(site), *server]).items():
            before = site.read(path)
            ours = [part for part in group if before is not None and part.has(before)]
            if before is None or not ours:
                continue
            after = _without(before, ours)
            if after is None:
                steps.append(FileStep("remove", site.real(path), target=site.top, before=before))
            elif after != before:
                steps.append(FileStep("edit", site.real(path), data=after, before=before))
        return InstallPlan(tuple(steps))


LIMITS_S = {START: 10, END: 3}
"""Seconds that a host waits for the hook of an event. Codex gives the last one no more than 3."""
LIMIT_S = 5


def agent(name: str) -> Host:
    """Return an agent host, or the pre-commit framework, by its name."""
    module = f"memtool.hosts.{name.replace('-', '_')}"
    found: Host = __import__(module, fromlist=["HOST"]).HOST
    return found


def hooks(
    host: str,
    site: Site,
    file: str,
    *,
    levels: tuple[str, ...] = (),
    matchers: Mapping[str, str] | None = None,
    start: Mapping[str, Any] | None = None,
    grouped: bool = True,
    comments: bool = False,
    unit: int = 1,
    rows: tuple[Contract, ...] = CONTRACTS,
) -> list[ConfigEdit]:
    """Return the hooks of a host that has them in one settings file, for some of the contracts.

    `levels` are more files that may have them, `matchers` are by what an event means, `unit` is
    what the host counts for a second.
    """
    path, elsewhere = site.at(file)
    return [
        Hook(
            path=path,
            elsewhere=(*elsewhere, *levels),
            name=site.shown(path),
            start=dict(start or {}),
            comments=comments,
            event=row.name,
            program=site.program,
            call=("hook", host, row.event),
            more={"timeout": LIMITS_S.get(row.meaning, LIMIT_S) * unit},
            matcher=(matchers or {}).get(row.meaning, ""),
            grouped=grouped,
        )
        for row in rows
        if row.host == host
    ]


def _without(before: bytes, ours: list[ConfigEdit]) -> bytes | None:
    """Return a file without our parts; None where it never held anything else."""
    made: bytes | None = None
    for part in ours:
        made = part.put(made)
    if before == made:
        return None
    after: bytes | None = before
    for part in reversed(ours):
        after = after if after is None else part.take(after)
    return after


def _other_level(part: ConfigEdit, site: Site) -> str:
    """Return the file of another level that has a part already, empty for none.

    What one project has says nothing about all the others of the user.
    """
    for path in part.elsewhere:
        if not os.path.isabs(path) or (site.is_user and not path.startswith(f"{site.folder}/")):
            continue
        try:
            if path != part.path and part.has(read_regular(os.path.realpath(path))):
                return path
        except OSError:
            continue
    return ""


def _by_path(parts: Iterable[ConfigEdit]) -> dict[str, list[ConfigEdit]]:
    groups: dict[str, list[ConfigEdit]] = {}
    for part in parts:
        groups.setdefault(part.path, []).append(part)
    return groups


def _name(part: ConfigEdit) -> str:
    """Return what a note calls a part: by its event, as the server, or by its command."""
    if isinstance(part, Hook):
        return part.event
    if not isinstance(part, WholeFile):
        return "MCP server"
    folder, name = os.path.split(part.path)
    stem = name.partition(".")[0]
    return os.path.basename(folder) if stem == "SKILL" else stem


class Installed(Value):
    """What was done for hosts, or with `dry_run` would be: one clause for each step, in order.

    `diff` shows the changes to settings that others write too.
    """

    host: str
    steps: tuple[str, ...]
    dry_run: bool = False
    diff: str = ""


def render_installed(installed: Installed) -> str:
    """Return one line for each step, or that there is nothing to do; a dry run shows the diff."""
    if not installed.steps:
        return f"{installed.host}: nothing to change"
    if installed.dry_run:
        rows = [f"would {step}" for step in installed.steps]
        return "\n".join([*rows, *(["", installed.diff] if installed.diff else [])])
    return "\n".join(installed.steps)


def names_of(context: Context, host: str, *, every: bool, user: bool, verb: str) -> list[str]:
    """Return the hosts that are meant: the one that is named, or all that are in use, and git.

    Raises:
        MemtoolError: none or both are given, or the host cannot be used so.
    """
    is_git = host in (GIT, PRE_COMMIT)
    if bool(host) == every:
        raise MemtoolError(
            f"memtool {verb} needs a host, or --all" if not host else "HOST and --all: give one",
            hint=f"memtool {verb} claude, or one of {', '.join(HOSTS)}",
        )
    if is_git and user:
        raise MemtoolError("git's hooks belong to one repository", hint=f"memtool {verb} {host}")
    if context.is_global and not is_git and not user:
        raise MemtoolError(
            "the global repository is no project of an agent",
            hint=f"memtool {verb} {host or '--all'} --user is for all your projects",
        )
    context.repository.refuse_bare("run it in a clone")
    if host:
        return [host]
    used = [name for name in AGENTS if agent(name).is_used(context)]
    return [*used, *([] if user else [GIT])]


def run(
    context: Context,
    names: list[str],
    plan_of: Callable[[str], InstallPlan],
    *,
    yes: bool,
    dry_run: bool,
    every: bool,
) -> Installed:
    """Plan for each host, ask where somebody can answer, and do all of it or nothing.

    The plan is made while other processes are kept from installing. Only where the user is asked
    it is made before, too, and must still be the same then. Among `every` host, git is left out
    where its hooks cannot be planned.

    Raises:
        MemtoolError: files of others would change and nobody agreed, or a host cannot be planned.
    """
    shown = None
    if dry_run or (not yes and can_ask()):
        plan = shown = _planned(names, plan_of, every=every)
    if shown is not None and shown.steps and not dry_run and not _agrees(context, shown):
        raise MemtoolError("nothing was changed", hint="answer y, or give --yes", code="refused")
    if not dry_run:
        with _locked([context.repository.top, home_of(context.caller.env)]):
            plan = _planned(names, plan_of, every=every)
            if shown is not None and plan.steps != shown.steps:
                raise MemtoolError(
                    "the files changed while you were reading",
                    hint="run the same command again",
                    code="changed",
                )
            if not yes and shown is None:
                _refuse_unasked(context, plan)
            carry_out(plan.steps)
    context.notes.extend(note for note in plan.notes if note not in context.notes)
    steps = tuple(step.text(context.repository.top) for step in plan.steps)
    return Installed(", ".join(names), steps, dry_run, _diff(context, plan))


def _planned(
    names: Iterable[str], plan_of: Callable[[str], InstallPlan], *, every: bool
) -> InstallPlan:
    steps: list[FileStep] = []
    notes: list[str] = []
    for name in names:
        try:
            plan = plan_of(name)
        except MemtoolError as error:
            if name != GIT or not every:
                raise
            notes.append(f"git is left out: {error.message}")
            continue
        steps += plan.steps
        notes += plan.notes
    return InstallPlan(tuple(steps), tuple(notes))


@contextmanager
def _locked(directories: Iterable[str]) -> Iterator[None]:
    """Keep other memtool processes from installing below the same directories meanwhile.

    The directories themselves are locked, so nothing is left behind.
    """
    handles: list[int] = []
    try:
        for directory in sorted(set(directories)):
            with suppress(OSError):  # the steps report what cannot be opened
                handles.append(files.open_folder(directory))
                files.lock(handles[-1])
        yield
    finally:
        for handle in handles:
            os.close(handle)


def _diff(context: Context, plan: InstallPlan) -> str:
    """Return the changes as a unified diff; files that are memtool's alone need none."""
    rows: list[str] = []
    for step in plan.steps:
        if step.kind != "edit" or MARK.encode() in step.data:
            continue
        path = step.path.removeprefix(f"{context.repository.top}/")
        before, after = (
            data.decode(errors="replace").splitlines(keepends=True)
            for data in (step.before or b"", step.data)
        )
        old = path if step.before is not None else os.devnull
        rows += difflib.unified_diff(before, after, old, path)
    return "".join(row if row.endswith("\n") else f"{row}\n" for row in rows)


def _agrees(context: Context, plan: InstallPlan) -> bool:
    """Show the plan on the terminal and ask."""
    diff = _diff(context, plan)
    rows = [step.text(context.repository.top) for step in plan.steps]
    return agrees(
        "\n".join([*rows, *(["", diff.rstrip("\n"), ""] if diff else []), "do this? [y/N] "])
    )


def _refuse_unasked(context: Context, plan: InstallPlan) -> None:
    """Raise MemtoolError where a file would change that is not memtool's alone."""
    for step in plan.steps:
        if step.kind == "edit" and step.before is not None and MARK.encode() not in step.before:
            raise MemtoolError(
                f"{step.path.removeprefix(f'{context.repository.top}/')} is not memtool's alone, "
                "and nobody is there to be asked; nothing was changed",
                hint="--dry-run shows the change, --yes makes it",
                code="unasked",
            )
