"""Installing hooks, commands and servers for an agent host: a plan of files, then its steps."""

from __future__ import annotations

import errno
import os
import shlex
import stat
import sys
from contextlib import contextmanager, suppress

from memtool.errors import MemtoolError
from memtool.hosts.contracts import CONTRACTS, END, START
from memtool.hosts.edits import MARK, ConfigEdit, Hook, WholeFile
from memtool.store import files
from memtool.store.files import read_regular
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from memtool.store.context import Context
    from memtool.store.repository import Repository

MODE = 0o755
"""The permissions of a hook; the user's mask is taken off."""


class FileStep(Value):
    """One step: what is done to the file at a path. All paths are absolute.

    `write` puts a program there, `remove` takes it away, `keep` renames a file to `target`. `edit`
    puts `data` where `before` is, None for no file; `drop` removes a file that holds `before`, and
    the directories below `target` that are empty then.
    """

    kind: str
    path: str
    target: str = ""
    data: bytes = b""
    before: bytes | None = None

    @property
    def is_foreign(self) -> bool:
        """Whether it changes the bytes of a file that memtool may not have written."""
        return self.kind == "edit" and self.before is not None


class InstallPlan(Value):
    """Steps in order, and what the user should know beside them."""

    steps: tuple[FileStep, ...]
    notes: tuple[str, ...] = ()


@contextmanager
def alone(directories: Iterable[str]) -> Iterator[None]:
    """Keep other memtool processes from installing below the same directories meanwhile.

    The directories themselves are locked, so nothing is left behind.
    """
    import fcntl

    handles: list[int] = []
    try:
        for directory in sorted(set(directories)):
            with suppress(OSError):  # what cannot be opened is told by the steps
                handles.append(os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
                fcntl.flock(handles[-1], fcntl.LOCK_EX)
        yield
    finally:
        for handle in handles:
            os.close(handle)


def carry_out(steps: Iterable[FileStep]) -> None:
    """Do the steps in order, all of them or none.

    Raises:
        MemtoolError: the disk refuses, or a file changed meanwhile; what was done is undone.
    """
    undo: list[Callable[[], None]] = []
    for step in steps:
        try:
            undo.append(_way_back(step))
            _do(step)
        except (OSError, MemtoolError) as error:
            for back in reversed(undo):
                with suppress(OSError):
                    back()
            if isinstance(error, MemtoolError):
                raise
            raise MemtoolError(
                f"{step.path} cannot be changed: {os.strerror(error.errno or 0)}; "
                "nothing was changed",
                hint="give yourself permission, then run the same command again",
                code="disk",
            ) from None


def _do(step: FileStep) -> None:
    if step.kind == "keep":
        os.rename(step.path, step.target)
    elif step.kind == "remove":
        os.unlink(step.path)
    elif step.kind == "edit":
        _edit(step)
    elif step.kind == "drop":
        _drop(step)
    else:
        _write(step.path, step.data)


def _way_back(step: FileStep) -> Callable[[], None]:
    """Return what undoes a step that is about to be done, and may then be done by half."""
    if step.kind == "keep":

        def rename() -> None:
            if not os.path.lexists(step.path):
                os.rename(step.target, step.path)

        return rename
    data = bytes_at(step.path)
    mode = stat.S_IMODE(os.stat(step.path).st_mode) if data is not None else 0
    stays = os.path.dirname(step.path)
    while not os.path.isdir(stays):
        stays = os.path.dirname(stays)

    def restore() -> None:
        now = bytes_at(step.path)
        if data is not None and now != data:
            _write(step.path, data, mode)
        elif data is None:
            if now == step.data:
                os.unlink(step.path)
            _remove_empty(os.path.dirname(step.path), stays)

    return restore


def bytes_at(path: str) -> bytes | None:
    """Return the bytes of a file, None where there is no file that can be read."""
    try:
        return read_regular(path)
    except OSError:
        return None


def is_program(path: str) -> bool:
    """Tell whether a file may be run."""
    try:
        return bool(os.stat(path).st_mode & stat.S_IXUSR)
    except OSError:
        return False


def _edit(step: FileStep) -> None:
    folder, name = os.path.split(step.path)
    os.makedirs(folder, exist_ok=True)
    files.replace(folder, name, step.data, expected=step.before)


def _drop(step: FileStep) -> None:
    if bytes_at(step.path) != step.before:
        raise MemtoolError(
            f"{step.path} changed meanwhile", hint="run the same command again", code="changed"
        )
    os.unlink(step.path)
    _remove_empty(os.path.dirname(step.path), step.target)


def _remove_empty(folder: str, top: str) -> None:
    """Remove a directory and those above it, below `top`, as far as they are empty."""
    with suppress(OSError):  # not empty: somebody else's files are in it
        while folder.startswith(f"{top}/"):
            os.rmdir(folder)
            folder = os.path.dirname(folder)


def _write(path: str, data: bytes, mode: int = MODE) -> None:
    """Write a program whole or not at all."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temp = f"{path}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.replace(temp, path)
    except BaseException:
        os.unlink(temp)
        raise


class Site(Value):
    """One level of a host.

    `folder` is the host's directory, `other` that of the other level; `top` is where removing
    empty directories ends. `home` and `project` are the directories that the levels lie in.
    `program` runs memtool: its name where files are shared with others, who have it elsewhere.
    `verbs` are those that there are.
    """

    folder: str
    other: str
    top: str
    home: str
    project: str
    program: str
    verbs: frozenset[str]
    is_user: bool

    def at(self, name: str) -> tuple[str, tuple[str, ...]]:
        """Return the path of a file of the host, and where the other level has it."""
        return os.path.join(self.folder, name), (os.path.join(self.other, name),)

    def shown(self, path: str) -> str:
        """Return a path as the user knows it: from the top of the project, or from home."""
        if path.startswith(f"{self.project}/"):
            return path[len(self.project) + 1 :]
        return f"~{path[len(self.home) :]}" if path.startswith(f"{self.home}/") else path


def home_of(env: Mapping[str, str]) -> str:
    """Return the home directory of the user."""
    return env.get("HOME") or os.path.expanduser("~")


def program_of(env: Mapping[str, str]) -> str:
    """Return the path of the memtool that runs now; its name where only that is known."""
    import shutil

    beside = os.path.join(os.path.dirname(sys.executable), "memtool")
    if os.access(beside, os.X_OK):
        return beside
    return shutil.which("memtool", path=env.get("PATH")) or "memtool"


LIMITS_S = {START: 10, END: 3}
"""Seconds that a host waits for the hook of an event. Codex gives the last one no more than 3."""
LIMIT_S = 5


class Host(Value):
    """An agent host.

    `folder` is its directory in a project, `home` returns that for all projects. `parts` returns
    everything but the server. `trust` says what the user has to do before the host runs a hook.
    """

    name: str
    title: str
    program: str
    folder: str
    home: Callable[[Mapping[str, str]], str]
    parts: Callable[[Site], list[ConfigEdit]]
    server: Callable[[Site], ConfigEdit]
    trust: str = ""

    def site(
        self, project: str, env: Mapping[str, str], verbs: Iterable[str], *, is_user: bool
    ) -> Site:
        """Return where its files are, for a project or for all projects of the user."""
        inside, everywhere, home = os.path.join(project, self.folder), self.home(env), home_of(env)
        return Site(
            folder=everywhere if is_user else inside,
            other=inside if is_user else everywhere,
            top=project if not is_user else _above(everywhere, home),
            home=home,
            project=project,
            program=program_of(env) if is_user else "memtool",
            verbs=frozenset(verbs),
            is_user=is_user,
        )

    def is_used(self, project: str, env: Mapping[str, str]) -> bool:
        """Tell whether the project or the user has files of it, or its program is on the path."""
        import shutil

        places = (os.path.join(project, self.folder), self.home(env))
        return any(map(os.path.isdir, places)) or bool(
            shutil.which(self.program, path=env.get("PATH"))
        )

    def install(self, site: Site, *, with_server: bool = False) -> InstallPlan:
        """Plan what is missing or older; a server that is there counts, too.

        Raises:
            MemtoolError: a file of the host is broken or cannot be read.
        """
        server = self.server(site)
        is_served = with_server or _is_there(server, site)
        parts = self.parts(site) + ([server] if is_served else [])
        wanted: list[ConfigEdit] = []
        present: dict[str, list[str]] = {}
        for part in parts:
            place = _found_elsewhere(part)
            if place:
                level = site.other if place.startswith(f"{site.other}/") else place
                present.setdefault(site.shown(level), []).append(_named(part))
            else:
                wanted.append(part)
        notes = [f"{level} has it already: {', '.join(who)}" for level, who in present.items()]
        steps = []
        is_hooked = False
        for path, group in _by_path(wanted).items():
            before = after = read(path, site)
            for part in group:
                last, after = after, part.put(after)
                is_hooked |= isinstance(part, Hook) and after != last
            if after != before and after is not None:
                steps.append(FileStep("edit", real(path, site), data=after, before=before))
            missing = [part for part in group if not part.has(after or b"")]
            if missing:
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
        for path, group in _by_path([*self.parts(site), self.server(site)]).items():
            before = read(path, site)
            ours = [part for part in group if before is not None and part.has(before)]
            if before is None or not ours:
                continue
            after = _without(before, ours)
            if after is None:
                steps.append(FileStep("drop", real(path, site), target=site.top, before=before))
            elif after != before:
                steps.append(FileStep("edit", real(path, site), data=after, before=before))
        return InstallPlan(tuple(steps))


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
) -> list[ConfigEdit]:
    """Return the hooks of a host that has them in one file of settings.

    `levels` are more files that may have them, `matchers` stand by what an event means, `unit` is
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
            command=f"{shlex.quote(site.program)} hook {host} {row.event}",
            more={"timeout": LIMITS_S.get(row.meaning, LIMIT_S) * unit},
            matcher=(matchers or {}).get(row.meaning, ""),
            grouped=grouped,
        )
        for row in CONTRACTS
        if row.host == host
    ]


def real(path: str, site: Site) -> str:
    """Return where a file really is.

    Raises:
        MemtoolError: a link leads out of the project.
    """
    place = os.path.realpath(path)
    if not site.is_user and not place.startswith(f"{os.path.realpath(site.project)}/"):
        raise MemtoolError(
            f"{site.shown(path)} is a link that leads out of the repository",
            hint="remove the link, or use --user",
            code="symlink",
        )
    return place


def read(path: str, site: Site) -> bytes | None:
    """Return the bytes of a file of a host, None for no file.

    Raises:
        MemtoolError: it cannot be read.
    """
    place = real(path, site)
    try:
        if not stat.S_ISREG(os.stat(place).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return read_regular(place)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MemtoolError(
            f"{site.shown(path)} cannot be read: {error.strerror}; nothing was changed",
            hint="make it a file that you may read, or remove it",
            code="broken-settings",
        ) from None


def _is_there(part: ConfigEdit, site: Site) -> bool:
    """Tell whether a part is in its file, as far as that can be read."""
    try:
        data = read(part.path, site)
    except MemtoolError:
        return False
    return data is not None and part.has(data)


def _without(before: bytes, ours: list[ConfigEdit]) -> bytes | None:
    """Return a file without our parts; None where nothing else was ever in it."""
    made: bytes | None = None
    for part in ours:
        made = part.put(made)
    if before == made:
        return None
    after: bytes | None = before
    for part in reversed(ours):
        after = after if after is None else part.take(after)
    return after


def _found_elsewhere(part: ConfigEdit) -> str:
    """Return the file of another level that has a part already."""
    for path in part.elsewhere:
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


def _above(folder: str, home: str) -> str:
    """Return the directory that stays when a host's own one is empty."""
    return home if folder.startswith(f"{home}/") else os.path.dirname(folder)


def _named(part: ConfigEdit) -> str:
    """Return what a part is called in a note: an event, a server, or a command."""
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


def names_of(context: Context, host: str, *, every: bool, user: bool, verb: str) -> list[str]:
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
    if context.is_global and host != GIT and not user:
        raise MemtoolError(
            "the global repository is no project of an agent",
            hint=f"memtool {verb} {host or '--all'} --user is for all your projects",
        )
    context.repository.refuse_bare("run it in a clone")
    if host:
        return [host]
    top = context.repository.top
    used = [name for name in AGENTS if agent(name).is_used(top, context.env)]
    return [*used, *([] if user else [GIT])]


def site_of(context: Context, name: str, *, user: bool) -> Site:
    """Return where the files of an agent host are."""
    from memtool.commands import names
    from memtool.hosts import agent

    return agent(name).site(context.repository.top, context.env, names(), is_user=user)


def plan_of_git(
    context: Context, planned: Callable[[Repository], list[FileStep]], *, every: bool
) -> InstallPlan:
    """Return the plan for git's hooks. Among all hosts it may be left out, and is told.

    Raises:
        MemtoolError: the hooks are somebody else's, and git was named.
    """
    try:
        return InstallPlan(tuple(planned(context.repository)))
    except MemtoolError as error:
        if not every:
            raise
        return InstallPlan((), (f"git is left out: {error.message}",))


def run(
    context: Context,
    names: list[str],
    plan_of: Callable[[str], InstallPlan],
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
    if asks and not _agrees(context, plan):
        raise MemtoolError("nothing was changed", hint="answer y, or give --yes", code="refused")
    if not dry_run:
        with alone([context.repository.top, home_of(context.env)]):
            now = _joined(plan_of(name) for name in names)
            if asks and now.steps != plan.steps:
                raise MemtoolError(
                    "the files changed while you were reading",
                    hint="run the same command again",
                    code="changed",
                )
            plan = now
            _refuse_unasked(context, plan, is_agreed=yes or asks)
            carry_out(plan.steps)
    context.notes.extend(note for note in plan.notes if note not in context.notes)
    steps = tuple(told(step, context.repository.top) for step in plan.steps)
    return Installed(", ".join(names), steps, dry_run, _diff_of(context, plan))


def render_installed(installed: Installed) -> str:
    """Return one line for each step, or that nothing is to be done; a dry run shows the changes."""
    if not installed.steps:
        return f"{installed.host}: nothing to change"
    if installed.dry_run:
        rows = [f"would {step}" for step in installed.steps]
        return "\n".join([*rows, *(["", installed.diff] if installed.diff else [])])
    return "\n".join(installed.steps)


def told(step: FileStep, top: str) -> str:
    """Return a step as a clause, with paths from the top where they lie below it."""
    path = step.path.removeprefix(f"{top}/")
    if step.kind == "keep":
        return f"rename {path} to {os.path.basename(step.target)}"
    if step.kind == "edit":
        return f"{'write' if step.before is None else 'change'} {path}"
    return f"{'remove' if step.kind == 'drop' else step.kind} {path}"


def _joined(plans: Iterable[InstallPlan]) -> InstallPlan:
    steps: list[FileStep] = []
    notes: list[str] = []
    for plan in plans:
        steps += plan.steps
        notes += plan.notes
    return InstallPlan(tuple(steps), tuple(notes))


def _diff_of(context: Context, plan: InstallPlan) -> str:
    """Return the changes as a unified diff; files that are memtool's alone need none."""
    import difflib

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


def _is_somebody_there() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def _agrees(context: Context, plan: InstallPlan) -> bool:
    """Show the plan on the terminal and ask."""
    diff = _diff_of(context, plan)
    rows = [told(step, context.repository.top) for step in plan.steps]
    text = "\n".join([*rows, *(["", diff.rstrip("\n"), ""] if diff else []), "do this? [y/N] "])
    # What files of others hold must not act on the terminal.
    sys.stderr.write("".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text))
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _refuse_unasked(context: Context, plan: InstallPlan, *, is_agreed: bool) -> None:
    foreign = [step for step in plan.steps if step.is_foreign and not _is_own(step)]
    if foreign and not is_agreed:
        path = foreign[0].path.removeprefix(f"{context.repository.top}/")
        raise MemtoolError(
            f"{path} is not memtool's alone, and nobody is there to be asked; nothing was changed",
            hint="--dry-run shows the change, --yes makes it",
            code="unasked",
        )


def _is_own(step: FileStep) -> bool:
    return step.kind == "edit" and MARK.encode() in (step.before or b"")
