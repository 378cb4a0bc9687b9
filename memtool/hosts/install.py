"""Installation: plan changes to the files of an agent host or of git, ask, and apply all or none.

A host is described by the edits of its files (`edits`) and by their location. A plan is a list of
steps on whole files, computed from the current files. Applying it verifies that nothing changed in
between; a failing step undoes the previous ones. Links that lead out of the repository, files that
cannot be read or parsed, and changes to foreign files without the user's consent are refused.
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
from types import MappingProxyType
from typing import Any

from memtool.agents import AGENTS, END, START
from memtool.errors import MemtoolError, find_reason
from memtool.hosts import AGENTS_MD, GIT, HOSTS, PRE_COMMIT
from memtool.hosts.contracts import CONTRACTS, Contract
from memtool.hosts.edits import MARK, ConfigEdit, Hook, Site, WholeFile
from memtool.store import files
from memtool.store.context import Context
from memtool.store.files import read_or_none, read_regular
from memtool.store.progress import can_prompt, confirm
from memtool.value import Value


class FileStep(Value):
    """One change of one file. All paths are absolute.

    `write` creates an executable. `edit` replaces `before` (None for no file) by `data`; so does
    `own`, which changes only memtool's lines and therefore needs no consent. `remove` deletes the
    file: with a `before` only if that is its content, with a `target` also the directories below
    `target` that become empty. `rename` moves the file to `target`.
    """

    kind: str
    path: str
    target: str = ""
    data: bytes = b""
    before: bytes | None = None

    def text(self, top: str) -> str:
        """Describe the step, with the path relative to `top` if it is inside."""
        path = self.path.removeprefix(f"{top}/")
        if self.kind == "rename":
            return f"rename {path} to {os.path.basename(self.target)}"
        if self.kind in ("edit", "own"):
            return f"{'write' if self.before is None else 'change'} {path}"
        return f"{self.kind} {path}"


class InstallPlan(Value):
    """Steps in order, and notes about them for the user."""

    steps: tuple[FileStep, ...]
    notes: tuple[str, ...] = ()


def apply_steps(steps: Iterable[FileStep]) -> None:
    """Apply the steps in order, all or none.

    Raises:
        MemtoolError: a write failed, or a file changed in between; finished steps are undone.
    """
    undo_functions: list[Callable[[], None]] = []
    for step in steps:
        try:
            undo_functions.append(_make_undo(step))
            _apply(step)
        except (OSError, MemtoolError) as error:
            for undo in reversed(undo_functions):
                with suppress(OSError, MemtoolError):
                    undo()
            if isinstance(error, MemtoolError):
                raise
            raise MemtoolError(
                f"cannot change {step.path}: {find_reason(error)}; nothing was changed",
                hint=f"make {step.path} writable, then run the command again",
                code="disk",
            ) from None


def _apply(step: FileStep) -> None:
    if step.kind == "rename":
        os.rename(step.path, step.target)
    elif step.kind == "remove":
        if step.before is not None and read_or_none(step.path) != step.before:
            raise MemtoolError(
                f"{step.path} was changed in the meantime",
                hint="run the command again",
                code="changed",
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


def _make_undo(step: FileStep) -> Callable[[], None]:
    """Return a function that undoes a step, also if the step was only partly applied."""
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
        current = read_or_none(step.path)
        if data is not None:
            if current != data:
                _write(step.path, data, current)
            os.chmod(step.path, mode)
        else:
            if current == step.data:
                os.unlink(step.path)
            _remove_empty(os.path.dirname(step.path), existing)

    return restore


def _write(path: str, data: bytes, before: bytes | None) -> None:
    folder, name = os.path.split(path)
    os.makedirs(folder, exist_ok=True)
    files.replace(folder, name, data, expected=before)


def _remove_empty(folder: str, top: str) -> None:
    """Remove a directory and its parents below `top`, up to the first that is not empty."""
    with suppress(OSError):  # not empty: it has files of other programs
        while folder.startswith(f"{top}/"):
            os.rmdir(folder)
            folder = os.path.dirname(folder)


def find_home(env: Mapping[str, str]) -> str:
    """Return the home directory of the user; empty if unknown."""
    home = env.get("HOME", "")
    if os.path.isabs(home):
        return home
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:  # a container may run as a user without an account
        return ""


def _find_program(env: Mapping[str, str]) -> str:
    """Return the path of the running memtool, or its bare name if the path is unknown."""
    here = os.path.join(os.path.dirname(sys.executable), "memtool")
    if os.access(here, os.X_OK):
        return here
    return shutil.which("memtool", path=env.get("PATH")) or "memtool"


def is_in_subdirectory(context: Context) -> bool:
    """Return whether the working directory is a subdirectory of the repository."""
    return os.path.realpath(context.caller.cwd) != os.path.realpath(context.repository.top)


SAMPLE = {
    "session_id": "",
    "transcript_path": "{project}/none.jsonl",
    "cwd": "{project}",
    "hook_event_name": "{name}",
}
"""What most hosts send with every event."""


class Host(Value):
    """A program that runs memtool.

    `folder` is its directory (or only file) in a project; `home` returns the directory for all
    projects of the user. `parts` returns all edits except the MCP server, `retired` the edits of
    older versions of memtool. `trust` says what the user must do before the host runs a new hook.
    `refusal` asks the host which hooks it skips and returns a sentence, empty if none. `tried` is
    the version that was tested in real sessions; empty for a host that only has a graphical one.
    `looks_up` is whether a session in a subdirectory reads the files at the top of the project.
    `sign` is the directory in a project that shows that the host is in use, if `folder` does not.
    `samples` are recorded events that give text to the agent, by the argument of `memtool hook`;
    without a session id, so that none is stored.
    """

    name: str
    title: str
    program: str
    folder: str
    home: Callable[[Mapping[str, str]], str]
    parts: Callable[[Site], list[ConfigEdit]]
    server: Callable[[Site], ConfigEdit] | None = None
    trust_hint: str = ""
    retired: Callable[[Site], list[ConfigEdit]] = lambda _site: []
    refusal: Callable[[Site, Mapping[str, str]], str] = lambda _site, _env: ""
    tested_version: str = ""
    reads_top_folder: bool = True
    sign: str = ""
    samples: Mapping[str, Mapping[str, object]] = MappingProxyType({})

    def build_site(self, context: Context, *, is_user: bool) -> Site:
        """Return the location of its files, for the project or for all projects of the user.

        Raises:
            MemtoolError: the user has no home directory.
        """
        project, home = context.repository.top, find_home(context.caller.env)
        project_folder, user_folder = (
            os.path.join(project, self.folder),
            self.home(context.caller.env),
        )
        if is_user and not os.path.isabs(user_folder):
            raise MemtoolError(
                f"cannot install for {self.title}: there is no home directory",
                hint="set HOME to a directory that you can write to, or leave out --user",
                code="no-home",
            )
        above = home if user_folder.startswith(f"{home}/") else os.path.dirname(user_folder)
        return Site(
            folder=user_folder if is_user else project_folder,
            other_folder=project_folder if is_user else user_folder,
            top=above if is_user else project,
            home=home,
            project=project,
            program=_find_program(context.caller.env) if is_user else "memtool",
            is_user=is_user,
        )

    def has_program(self, env: Mapping[str, str]) -> bool:
        """Return whether the program of the host is on the PATH."""
        return bool(shutil.which(self.program, path=env.get("PATH")))

    def is_used(self, context: Context) -> bool:
        """Return whether the project or user has its files, or its program is on the PATH."""
        env = context.caller.env
        inside = os.path.join(context.repository.top, self.sign or self.folder)
        places = (inside, self.home(env))
        return any(map(os.path.isdir, places)) or self.has_program(env)

    def plan_install(self, site: Site, *, with_server: bool = False) -> InstallPlan:
        """Plan to add missing parts and update old ones, also a server that is registered already.

        Raises:
            MemtoolError: a file of the host is broken or cannot be read.
        """
        parts = self.parts(site)
        server = self.server(site) if self.server else None
        if server is not None and (with_server or site.has(server)):
            parts.append(server)
        wanted: list[ConfigEdit] = []
        parts_elsewhere: dict[str, list[str]] = {}
        for part in parts:
            other_file = "" if site.has(part) else _find_other_level(part, site)
            if other_file:
                level = (
                    site.other_folder
                    if other_file.startswith(f"{site.other_folder}/")
                    else other_file
                )
                parts_elsewhere.setdefault(site.format_path(level), []).append(_name_part(part))
            else:
                wanted.append(part)
        notes = [
            f"{level} has it already: {', '.join(names)}"
            for level, names in parts_elsewhere.items()
        ]
        steps = []
        is_hooked = False
        retired = _group_by_path(self.retired(site))
        for path, group in _group_by_path(wanted).items():
            before = after = site.read(path)
            is_script = False
            for part in retired.get(path, ()):
                after = part.remove(after) if after and part.has(after) else after
            for part in group:
                previous, after = after, part.add(after)
                is_script = isinstance(part, WholeFile) and part.is_executable
                is_hooked |= (part.is_hook or is_script) and after != previous
            if after != before and after is not None:
                kind = "write" if is_script else "edit"
                steps.append(FileStep(kind, site.resolve_path(path), data=after, before=before))
            if not all(part.has(after or b"") for part in group):
                notes.append(f"{site.format_path(path)} is not memtool's and stays as it is")
        if is_hooked and self.trust_hint:
            notes.append(self.trust_hint)
        return InstallPlan(tuple(steps), tuple(dict.fromkeys(notes)))

    def plan_uninstall(self, site: Site) -> InstallPlan:
        """Plan to remove all parts of memtool.

        Raises:
            MemtoolError: a file of the host is broken or cannot be read.
        """
        steps = []
        server = [self.server(site)] if self.server else []
        for path, group in _group_by_path(
            [*self.parts(site), *self.retired(site), *server]
        ).items():
            before = site.read(path)
            ours = [part for part in group if before is not None and part.has(before)]
            if before is None or not ours:
                continue
            after = _remove_parts(before, ours)
            if after is None:
                steps.append(
                    FileStep("remove", site.resolve_path(path), target=site.top, before=before)
                )
            elif after != before:
                steps.append(FileStep("edit", site.resolve_path(path), data=after, before=before))
        return InstallPlan(tuple(steps))


# How long a host waits for a hook. Codex allows at most 3 seconds at the end of a session.
TIMEOUTS_S = {START: 10, END: 3}
DEFAULT_TIMEOUT_S = 5


def load_host(name: str) -> Host:
    """Load an agent host, or the pre-commit framework, by name."""
    module = f"memtool.hosts.{name.replace('-', '_')}"
    host: Host = __import__(module, fromlist=["HOST"]).HOST
    return host


def build_hooks(
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
    command_key: str = "command",
    timeout_key: str = "timeout",
    rows: tuple[Contract, ...] = CONTRACTS,
) -> list[ConfigEdit]:
    """Build the hooks of a host that keeps them in one settings file.

    `levels` are further files that may have them, `matchers` are keyed by the meaning of an event,
    `unit` is the host's units of time in a second. The keys are the host's names of a command line
    and of its time limit. `rows` are the contracts to choose from.
    """
    path, elsewhere = site.find_paths(file)
    return [
        Hook(
            path=path,
            elsewhere=(*elsewhere, *levels),
            name=site.format_path(path),
            start=dict(start or {}),
            comments=comments,
            event=row.name,
            program=site.program,
            call=("hook", host, row.event),
            extra={timeout_key: TIMEOUTS_S.get(row.meaning, DEFAULT_TIMEOUT_S) * unit},
            matcher=(matchers or {}).get(row.meaning, ""),
            is_grouped=grouped,
            key=command_key,
        )
        for row in rows
        if row.host == host
    ]


def _remove_parts(before: bytes, ours: list[ConfigEdit]) -> bytes | None:
    """Return a file without our parts; None if it has nothing else."""
    only_ours: bytes | None = None
    for part in ours:
        only_ours = part.add(only_ours)
    if before == only_ours:
        return None
    after: bytes | None = before
    for part in reversed(ours):
        after = after if after is None else part.remove(after)
    return after


def _find_other_level(part: ConfigEdit, site: Site) -> str:
    """Return the file of another level that already has a part; empty if none."""
    for path in part.elsewhere:
        # A part in one project does not serve the user's other projects.
        if not os.path.isabs(path) or (site.is_user and not path.startswith(f"{site.folder}/")):
            continue
        try:
            if path != part.path and part.has(read_regular(os.path.realpath(path))):
                return path
        except OSError:
            continue
    return ""


def _group_by_path(parts: Iterable[ConfigEdit]) -> dict[str, list[ConfigEdit]]:
    groups: dict[str, list[ConfigEdit]] = {}
    for part in parts:
        groups.setdefault(part.path, []).append(part)
    return groups


def _name_part(part: ConfigEdit) -> str:
    """Return the name of a part in a note: its event, "MCP server", or its command."""
    if isinstance(part, Hook):
        return part.event
    if not isinstance(part, WholeFile):
        return "MCP server"
    folder, name = os.path.split(part.path)
    stem = name.partition(".")[0]
    return os.path.basename(folder) if stem == "SKILL" else stem


class InstallResult(Value):
    """The changes made for hosts (or planned, with `dry_run`): one clause per step, in order.

    `diff` shows the changes to settings files that memtool shares with others.
    """

    host: str
    steps: tuple[str, ...]
    dry_run: bool = False
    diff: str = ""


def render_result(result: InstallResult) -> str:
    """Render one line per step, and in a dry run the diff."""
    if not result.steps:
        return f"{result.host}: nothing to change"
    if result.dry_run:
        rows = [f"would {step}" for step in result.steps]
        return "\n".join([*rows, *(["", result.diff] if result.diff else [])])
    return "\n".join(result.steps)


def choose_hosts(context: Context, host: str, *, every: bool, user: bool, verb: str) -> list[str]:
    """Return the named host, or with `every` all hosts in use and git.

    Raises:
        MemtoolError: neither or both were given, or the host does not support this.
    """
    is_of_repository = host in (AGENTS_MD, GIT, PRE_COMMIT)
    if bool(host) == every:
        raise MemtoolError(
            f"memtool {verb} needs a host, or --all"
            if not host
            else "HOST and --all exclude each other",
            hint=f"memtool {verb} {AGENTS[0]}\nHOST is one of {', '.join(HOSTS)}",
        )
    if is_of_repository and user:
        raise MemtoolError(
            f"--user does not apply to {host}: it belongs to one repository",
            hint=f"memtool {verb} {host}",
        )
    if context.is_global and not is_of_repository and not user:
        raise MemtoolError(
            "cannot install into the global repository",
            hint=f"for all your projects: memtool {verb} {host or '--all'} --user",
        )
    context.repository.refuse_bare("run it in a clone")
    if host:
        return [host]
    used = [name for name in AGENTS if load_host(name).is_used(context)]
    return [*used, *([] if user else [GIT])]


def install_hosts(
    context: Context,
    names: list[str],
    make_plan: Callable[[str], InstallPlan],
    *,
    yes: bool,
    dry_run: bool,
    every: bool,
) -> InstallResult:
    """Plan for each host, ask the user at a terminal, and apply everything or nothing.

    The plan is made under a lock that keeps other processes from installing. If the user is asked,
    it is also made before, and must be the same afterwards. With `every`, git is skipped if its
    hooks cannot be planned.

    Raises:
        MemtoolError: foreign files would change without consent, or a host cannot be planned.
    """
    preview = None
    if dry_run or (not yes and can_prompt()):
        plan = preview = _plan_all(names, make_plan, every=every)
    if preview is not None and preview.steps and not dry_run and not _ask_consent(context, preview):
        raise MemtoolError(
            "nothing was changed: the answer was not y",
            hint="answer y, or add --yes",
            code="refused",
        )
    if not dry_run:
        with _lock_directories([context.repository.top, find_home(context.caller.env)]):
            plan = _plan_all(names, make_plan, every=every)
            if preview is not None and plan.steps != preview.steps:
                raise MemtoolError(
                    "the files changed in the meantime",
                    hint="run the command again",
                    code="changed",
                )
            if not yes and preview is None:
                _refuse_unasked(context, plan)
            apply_steps(plan.steps)
    context.notes.extend(note for note in plan.notes if note not in context.notes)
    steps = tuple(step.text(context.repository.top) for step in plan.steps)
    return InstallResult(", ".join(names), steps, dry_run, _build_diff(context, plan))


def _plan_all(
    names: Iterable[str], make_plan: Callable[[str], InstallPlan], *, every: bool
) -> InstallPlan:
    steps: list[FileStep] = []
    notes: list[str] = []
    for name in names:
        try:
            plan = make_plan(name)
        except MemtoolError as error:
            if name != GIT or not every:
                raise
            notes.append(f"git is left out: {error.message}")
            continue
        steps += plan.steps
        notes += plan.notes
    return InstallPlan(tuple(steps), tuple(notes))


@contextmanager
def _lock_directories(directories: Iterable[str]) -> Iterator[None]:
    """Keep other memtool processes from installing below the same directories.

    The directories themselves are locked, so no lock file remains.
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


def _build_diff(context: Context, plan: InstallPlan) -> str:
    """Return the changes as a unified diff, without files that belong to memtool alone."""
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


def _ask_consent(context: Context, plan: InstallPlan) -> bool:
    """Show the plan on the terminal and ask for consent."""
    diff = _build_diff(context, plan)
    rows = [step.text(context.repository.top) for step in plan.steps]
    return confirm(
        "\n".join([*rows, *(["", diff.rstrip("\n"), ""] if diff else []), "do this? [y/N] "])
    )


def _refuse_unasked(context: Context, plan: InstallPlan) -> None:
    """Raise MemtoolError if a file would change that does not belong to memtool alone."""
    for step in plan.steps:
        if step.kind == "edit" and step.before is not None and MARK.encode() not in step.before:
            raise MemtoolError(
                f"{step.path.removeprefix(f'{context.repository.top}/')} is not only memtool's, "
                "and there is no terminal to ask for consent; nothing was changed",
                hint="to see the change: --dry-run\nto make it: --yes",
                code="no-consent",
            )
