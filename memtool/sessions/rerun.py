"""Re-runs: run the command of a trace at the commit where it failed, and at HEAD.

This module owns what is run, where, and what the outcome means. Each run gets its own repository in
the directory for temporary files, which borrows the objects of this one. A command that commits,
rewrites or deletes does so in a copy that is thrown away, without the user's hooks, filters,
submodules and settings. A copy that a killed process left behind is removed by the next run. The
copy guards against accidents; it is not a security sandbox. The command runs as the user, and
absolute paths lead to the real files.

Nothing here asks for consent: `refuse_unattended` and the verb do.
"""

from __future__ import annotations

import json
import os
import selectors
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from memtool import tables
from memtool.errors import MemtoolError, find_reason
from memtool.memory import timestamps
from memtool.memory.environment import FailureEnvironment, parse_environment
from memtool.memory.schema import Source
from memtool.memory.sighting import parse_sighting
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.search.verification import (
    CANNOT_RUN,
    CHANGED,
    FIXED,
    GONE,
    HOLDS,
    NOT_FIXED,
    RUN_VERDICTS,
    CommandRun,
    TraceRun,
)
from memtool.sessions import failure_state, supervisor
from memtool.sessions.extract.failures import compute_failure_key, find_failure, says
from memtool.sessions.model import make_printable
from memtool.sessions.store import clean_texts
from memtool.store import files, ledger, usage_log
from memtool.store.context import Context
from memtool.store.deadline import Deadline
from memtool.store.git import LOCATION_VARIABLES, Git
from memtool.store.sources import LANDED, UNRECORDED, Citation, explain_absent, resolve
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.memory.memory import Memory
    from memtool.redaction.find import Allowlist
    from memtool.store.landing import Landings
    from memtool.store.repository import Repository

ACT = "run"
"""The kind of audited act under which each run is recorded; the last result is read from it."""
LIMIT_S = 60
MAX_S = 3_600
MAX_OUTPUT = 64 * 1024
"""Bytes of the output that are kept, from its end."""
SHOWN_LINES = 12
PREFIX, NEW_PREFIX = "memtool-run-", "memtool-new-"
PASSED_ON = frozenset(
    (
        "PATH",
        "LANG",
        "LANGUAGE",
        "TZ",
        "USER",
        "LOGNAME",
        "SHELL",
        "GOROOT",
        "JAVA_HOME",
        "RUSTUP_HOME",
        "PYENV_ROOT",
        "RBENV_ROOT",
    )
)
"""Variables that a command inherits, in addition to `LC_…`: program paths and languages."""
UNATTENDED: dict[str, str] = {
    "CI": "CI",
    "CLAUDE_PROJECT_DIR": "a hook",
    "GIT_INDEX_FILE": "a hook of git",
    "GIT_EXEC_PATH": "a hook of git",
}
"""Variables that mark an environment in which nothing is ever run, and what sets them."""
ALIKE, PASSED, OTHER, UNRUNNABLE = "alike", "passed", "other", "unrunnable"
_NOT_RUN = {125: "cannot be tested", 126: "cannot be executed", 127: "was not found"}
"""Exit codes with the meaning that `git bisect run` gives them."""
_NO_TEST = 5
"""Exit code of pytest and unittest if no test was found."""
_HINDRANCES = tables.read_rows("sessions/hindrances")
"""Output that shows that the environment failed, not the code."""
_EMPTY_RUNS = ("no tests to run", "Ran 0 tests", "collected 0 items")
"""Output of a run that succeeds because it tests nothing."""


class RerunPlan(Value):
    """A planned run. `obstacle` says why nothing can be run, empty if it can.

    `commit` and `head` are full ids; `key` is the hash of the failure to look for. If the recorded
    commit was rewritten, `commit` is the one in which it landed and `has_landed` is true. `before`
    is then that commit's first parent, empty if none: a squash usually contains both the failure
    and its fix.
    """

    id: str
    title: str
    signature: str
    key: str
    environment: FailureEnvironment
    commit: str
    head: str
    obstacle: str
    limit_s: int = LIMIT_S
    has_landed: bool = False
    before: str = ""


def plan(
    context: Context, memory: Memory, path: str, landings: Landings | None, limit_s: int
) -> RerunPlan:
    """Plan a re-run of a trace's command; nothing is run.

    `path` is the memory's file. It is used to look up a rewritten commit in `landings`.

    Raises:
        MemtoolError: the memory is not a trace, or the limit is out of range.
    """
    if not 0 < limit_s <= MAX_S:
        raise MemtoolError(
            f"--seconds must be between 1 and {MAX_S}, not {limit_s}",
            hint="--seconds 300",
        )
    signature = memory.text("error_signature")
    environment, obstacle = FailureEnvironment(), ""
    try:
        environment = parse_environment(memory.body)
    except ValueError as error:
        obstacle = str(error)
    if not signature and not environment.failure:
        raise MemtoolError(
            f'cannot run "{memory.title}" ({memory.id}): it has no error_signature',
            hint="memtool list type:episodic",
            code="no-trace",
        )
    obstacle = obstacle or environment.obstacle
    head, commit, before = context.repository.git.head(), "", ""
    has_landed = False
    if not obstacle:
        context.repository.refuse_bare("run it in a clone")
        source = Source("commit", environment.commit, None, environment.commit)
        second = parse_sighting(memory).find_second(environment.commit)
        cited = Citation(source, "", path, second)
        state = resolve(context.repository, [cited], (), landings)[cited]
        commit, cut = state.commit, environment.commit[:SHORT_ID_DIGITS]
        has_landed = state.status == LANDED
        if has_landed:
            before = context.repository.git.line(
                "rev-parse", "--verify", "--quiet", f"{commit}^", allowed=(0, 1)
            )
        elif not commit or state.type == UNRECORDED:
            commit = ""
            obstacle = f"commit {cut} {explain_absent(cut, state)[0]}"
    return RerunPlan(
        id=memory.id,
        title=memory.title,
        signature=signature,
        key=environment.failure or compute_failure_key(signature),
        environment=environment,
        commit=commit,
        head=head,
        obstacle=obstacle,
        limit_s=limit_s,
        has_landed=has_landed,
        before=before,
    )


def refuse_unattended(context: Context) -> None:
    """Raise MemtoolError if nothing may be run, whoever agreed: in CI, hooks and servers."""
    conditions = [
        what
        for name, what in UNATTENDED.items()
        if context.caller.env.get(name, "").lower() not in ("", "0", "false")
    ]
    conditions += ["a server"] if context.caller.is_resident else []
    if conditions:
        raise MemtoolError(
            f"cannot run the command of a memory in {conditions[0]}",
            hint="run it in your own terminal",
            code="no-consent",
        )


def run_trace(context: Context, planned: RerunPlan, allowed: Allowlist) -> TraceRun:
    """Run a command at the recorded commit and, if it fails there the same way, at HEAD.

    Raises:
        MemtoolError: git is missing.
    """
    if planned.obstacle:
        return _build_result(context, planned, CANNOT_RUN, planned.obstacle, ())
    sweep()
    first = _run(context, planned, planned.commit, allowed)
    if first.outcome == UNRUNNABLE:
        return _build_result(context, planned, CANNOT_RUN, first.detail, (first,))
    if first.outcome != ALIKE and planned.has_landed:
        return _run_before_first(context, planned, first, allowed)
    if first.outcome != ALIKE:
        return _build_result(
            context, planned, GONE, f"at the recorded commit {first.detail}", (first,)
        )
    if planned.head == planned.commit:
        return _build_result(context, planned, NOT_FIXED, "HEAD is the recorded commit", (first,))
    second = _run(context, planned, planned.head, allowed)
    verdict = {ALIKE: NOT_FIXED, PASSED: FIXED, OTHER: CHANGED, UNRUNNABLE: HOLDS}[second.outcome]
    return _build_result(context, planned, verdict, f"at HEAD {second.detail}", (first, second))


def _run_before_first(
    context: Context, planned: RerunPlan, first: CommandRun, allowed: Allowlist
) -> TraceRun:
    """Run a command at the parent of the commit in which the recorded one landed."""
    runs: tuple[CommandRun, ...] = (first,)
    if planned.before:
        second = _run(context, planned, planned.before, allowed)
        if second.outcome == ALIKE and first.outcome == PASSED:
            at = planned.commit[:SHORT_ID_DIGITS]
            detail = f"it fails so before {at}, in which the recorded commit has landed"
            return _build_result(context, planned, FIXED, detail, (second, first))
        runs = (first, second)
    detail = "the state in which it failed was squashed away, or rewritten"
    return _build_result(context, planned, CANNOT_RUN, detail, runs)


def _build_result(
    context: Context, planned: RerunPlan, verdict: str, detail: str, runs: tuple[CommandRun, ...]
) -> TraceRun:
    environment = planned.environment
    stated = {
        "argv": make_printable(format_command(environment))
        if environment.argv
        else environment.lack,
        "cwd": environment.cwd,
        "exit": "" if environment.exit is None else str(environment.exit),
        "diff": environment.diff,
        **dict(environment.facts),
    }
    return TraceRun(
        verdict=verdict,
        detail=detail,
        commit=planned.commit,
        head=planned.head,
        exit=runs[0].exit if runs else None,
        signature=runs[0].signature if runs else "",
        seconds=round(sum(run.seconds for run in runs), 2),
        environment={key: value for key, value in stated.items() if value},
        differs=tuple(_find_differences(context, environment)) if runs else (),
        runs=runs,
    )


def _find_differences(context: Context, environment: FailureEnvironment) -> Iterator[str]:
    """Yield how the environment differs from the one in which the command failed."""
    then = dict(environment.facts)
    if not then:
        return
    deadline = Deadline(failure_state.BUDGET_S)
    for key, text in failure_state.read_facts(context, environment.cwd, deadline).items():
        if then.get(key, text) != text:
            is_lock = key.startswith("lock ")
            yield (
                f"{make_printable(key)} has changed"
                if is_lock
                else f"{key} {text}, then {then[key]}"
            )


def format_command(environment: FailureEnvironment) -> str:
    """Format a command as a person would type it."""
    return shlex.join(environment.argv)


class RunResult(Value):
    """The last result of a trace: a verdict from `RUN_VERDICTS`, and the second of the run."""

    verdict: str
    moment: int


def read_results(context: Context) -> dict[str, RunResult]:
    """Return the last result of each trace that was run in this clone, by memory id.

    If the ledger cannot be read, a note is added and there are none.
    """
    if not usage_log.is_enabled(context):
        return {}
    with suppress(MemtoolError):  # it cannot be written: read it as it is
        ledger.fold(context.repository.cache_dir)
    try:
        with ledger.open_ledger(context.repository.cache_dir) as usage:
            acts = usage.acts()
    except MemtoolError as error:
        context.notes.append(f"earlier runs are unknown: {error.message}")
        return {}
    results: dict[str, RunResult] = {}
    for act in reversed(acts):
        verdict = act.detail.partition(":")[0]
        if act.kind == ACT and act.outcome == "done" and verdict in RUN_VERDICTS:
            results |= dict.fromkeys(act.subjects, RunResult(verdict, act.moment))
    return results


def format_moment(result: RunResult) -> str:
    """Format the time of a run."""
    return timestamps.render(result.moment)


def _run(context: Context, planned: RerunPlan, commit: str, allowed: Allowlist) -> CommandRun:
    """Run a command in a new copy of one commit."""
    try:
        return _run_copy(context, planned, commit, allowed)
    except MemtoolError as error:
        why = error.message
    except OSError as error:
        why = find_reason(error)
    return _unrunnable(commit, f"no copy of commit {commit[:SHORT_ID_DIGITS]} can be made: {why}")


def _run_copy(context: Context, planned: RerunPlan, commit: str, allowed: Allowlist) -> CommandRun:
    """Run a command as `_run` does. Raises MemtoolError or OSError if no copy can be made."""
    with _folder() as folder:
        top = os.path.join(folder, "tree")
        _check_out(context.repository, top, commit, context.caller.env)
        directory = os.path.realpath(os.path.join(top, planned.environment.cwd))
        is_inside = f"{directory}/".startswith(f"{os.path.realpath(top)}/")
        if not is_inside or not os.path.isdir(directory):
            cut = commit[:SHORT_ID_DIGITS]
            return _unrunnable(commit, f"there is no directory {planned.environment.cwd} at {cut}")
        env = _build_environment(context.caller.env, folder)
        env |= _find_imports(env, os.path.realpath(context.repository.top), os.path.realpath(top))
        began = time.monotonic()
        ended = _run_supervised(planned, directory, env)
        return _judge(planned, commit, ended, time.monotonic() - began, folder, allowed)


def _unrunnable(commit: str, detail: str) -> CommandRun:
    return CommandRun(commit, UNRUNNABLE, detail, None, "", 0.0, is_network_off=False, output="")


def _build_environment(base: Mapping[str, str], folder: str) -> dict[str, str]:
    """Build a command's environment: a few inherited variables, and directories of its own."""
    variables = {
        key: text for key, text in base.items() if key in PASSED_ON or key.startswith("LC_")
    }
    own = {"HOME": "home", "TMPDIR": "tmp", "XDG_RUNTIME_DIR": "tmp"}
    for name in ("home", "tmp"):
        os.mkdir(os.path.join(folder, name), 0o700)
    return (
        variables
        | {key: os.path.join(folder, name) for key, name in own.items()}
        | {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "TERM": "dumb",
        }
    )


_PYTHON_MARKS = ("pyproject.toml", "setup.py", "setup.cfg")
_IMPORTS = """
import json, sys
from importlib import metadata
top = sys.argv[1]
found = [path for path in sys.path if path == top or path.startswith(top + "/")]
for one in metadata.distributions():
    about = json.loads(one.read_text("direct_url.json") or "{}")
    if about.get("dir_info", {}).get("editable") and about.get("url") == "file://" + top:
        found += [top, top + "/src"]
print(json.dumps(found))
"""
PROBE_S = 10.0


def _find_imports(env: Mapping[str, str], top: str, copy: str) -> dict[str, str]:
    """Return a PYTHONPATH that makes Python import from the copy instead of the worktree.

    A project installed in editable mode is imported from the worktree, whatever commit is checked
    out: a run would test the wrong files.
    """
    if not any(os.path.lexists(os.path.join(copy, name)) for name in _PYTHON_MARKS):
        return {}
    for program in ("python", "python3"):
        try:
            done = subprocess.run(
                [shutil.which(program, path=env.get("PATH")) or program, "-c", _IMPORTS, top],
                cwd="/",
                env=dict(env),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROBE_S,
                check=True,
            )
            modules = json.loads(done.stdout)
        except (OSError, ValueError, subprocess.SubprocessError):
            continue
        paths = [copy + path[len(top) :] for path in dict.fromkeys(modules)]
        there = [path for path in paths if os.path.isdir(path)]
        return {"PYTHONPATH": os.pathsep.join(there)} if there else {}
    return {}


def _check_out(repository: Repository, top: str, commit: str, env: Mapping[str, str]) -> None:
    """Create a repository that borrows the objects of another one, and check out a commit.

    It has no settings and so no filters: files are exactly as committed. It also has the refs, so
    that a command finds its branches and tags. Raises MemtoolError if git refuses.
    """
    os.mkdir(top, 0o700)
    plain = {key: text for key, text in env.items() if key not in LOCATION_VARIABLES}
    git = Git(top, plain | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"})
    git.run(
        "init",
        "--quiet",
        "--template=",
        f"--object-format={repository.object_format}",
        "--initial-branch=memtool-run",
    )
    inner = os.path.join(top, ".git")
    objects = os.path.join(repository.common_dir, "objects")
    os.makedirs(os.path.join(inner, "objects", "info"), exist_ok=True)
    with open(os.path.join(inner, "objects", "info", "alternates"), "wb") as file:
        file.write(os.fsencode(objects) + b"\n")
    refs = repository.git.run(
        "for-each-ref",
        "--format=%(objectname) %(refname)",
        "refs/heads",
        "refs/tags",
        "refs/remotes",
    )
    with open(os.path.join(inner, "packed-refs"), "wb") as file:
        file.write(refs)
    if repository.is_shallow:
        shutil.copyfile(os.path.join(repository.common_dir, "shallow"), f"{inner}/shallow")
    git.run("-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", "--force", commit)


class _CommandOutcome(Value):
    """The supervisor's report on a command, and the last bytes of its output."""

    report: dict[str, str]
    output: bytes
    is_cut: bool


def _run_supervised(planned: RerunPlan, directory: str, env: Mapping[str, str]) -> _CommandOutcome:
    """Run a command under a supervisor, and wait until all of its processes have ended."""
    report_end, report = os.pipe()
    argv = [
        sys.executable,
        "-I",
        "-S",
        supervisor.__file__,
        str(report),
        str(planned.limit_s),
        directory,
        *planned.environment.argv,
    ]
    try:
        child = subprocess.Popen(
            argv,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(report,),
            cwd="/",
        )
    except (OSError, ValueError) as error:
        os.close(report_end)
        os.close(report)
        return _CommandOutcome(
            {"unstarted": str(getattr(error, "errno", 0) or 0)}, b"", is_cut=False
        )
    os.close(report)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        lines, output, is_cut = _read_report(report_end, child.stdout.fileno(), planned.limit_s)
    finally:
        child.stdin.close()  # makes a supervisor that is still running end everything
        try:
            child.wait(supervisor.KILLING_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()
        os.close(report_end)
    rows = (line.partition(" ") for line in lines.decode(errors="replace").splitlines())
    return _CommandOutcome({name: value for name, _space, value in rows}, output, is_cut)


def _read_report(report: int, printed: int, limit_s: float) -> tuple[bytes, bytes, bool]:
    """Return the supervisor's report, the last bytes of output, and whether output was dropped."""
    buffers = {report: bytearray(), printed: bytearray()}
    is_cut = False
    deadline = Deadline(limit_s + supervisor.KILLING_S)
    with selectors.DefaultSelector() as waiting:
        for handle in buffers:
            os.set_blocking(handle, False)
            waiting.register(handle, selectors.EVENT_READ)
        while report in (key.fd for key in waiting.get_map().values()):
            time_left = deadline.remaining_s()
            ready = waiting.select(time_left)
            if not ready and not time_left:
                break
            for key, _events in ready:
                data = os.read(key.fd, MAX_OUTPUT)
                if not data:
                    waiting.unregister(key.fd)
                buffers[key.fd] += data
                is_cut |= len(buffers[key.fd]) > MAX_OUTPUT
                del buffers[key.fd][:-MAX_OUTPUT]
    with suppress(BlockingIOError):  # do not wait for a process that still holds it open
        while data := os.read(printed, MAX_OUTPUT):
            buffers[printed] += data
            is_cut |= len(buffers[printed]) > MAX_OUTPUT
            del buffers[printed][:-MAX_OUTPUT]
    return bytes(buffers[report]), bytes(buffers[printed]), is_cut


def _judge(
    planned: RerunPlan,
    commit: str,
    ended: _CommandOutcome,
    seconds: float,
    folder: str,
    allowed: Allowlist,
) -> CommandRun:
    """Judge a run: it failed as recorded, worked, failed in another way, or proves nothing."""
    text = ended.output.decode(errors="replace")
    for place in (os.path.realpath(folder), folder):
        text = text.replace(f"{place}/tree/", "")
    text = text.partition("\n")[2] if ended.is_cut else text  # half a line may hide a secret
    text = clean_texts({text}, allowed)[text]
    report, argv = ended.report, planned.environment.argv
    code = report.get("exit", "")
    status = int(code) if code.isdigit() else None
    failure = find_failure(text) if status != 0 else None
    signature = make_printable(failure.signature) if failure else ""
    outcome, detail = _judge_outcome(planned, report, status, text, signature)
    if "unstarted" in report:
        errno = report["unstarted"]
        reason = os.strerror(int(errno)) if errno.isdigit() else "it cannot be started"
        outcome, detail, status = UNRUNNABLE, f"{make_printable(argv[0])}: {reason}", None
    return CommandRun(
        commit=commit,
        outcome=outcome,
        detail=detail,
        exit=status,
        signature=signature,
        seconds=round(seconds, 2),
        is_network_off="network" in report,
        output="\n".join(map(make_printable, text.rstrip().splitlines()[-SHOWN_LINES:])),
    )


def _judge_outcome(
    planned: RerunPlan, report: Mapping[str, str], status: int | None, text: str, signature: str
) -> tuple[str, str]:
    """Return the outcome and a phrase; the code is not blamed for failures of the environment."""
    if status is None:
        ends = {
            "limit": f"it did not end within {planned.limit_s} s",
            "signal": f"it was killed by signal {report.get('signal', '')}",
        }
        why = next((text for name, text in ends.items() if name in report), "it was cut off")
        return UNRUNNABLE, why
    if status == 0:
        empty = next((mark for mark in _EMPTY_RUNS if mark in text), "")
        return (UNRUNNABLE, "no test was found") if empty else (PASSED, "it works")
    if status in _NOT_RUN:
        return UNRUNNABLE, f"a program {_NOT_RUN[status]} (exit code {status})"
    if signature and compute_failure_key(signature) == planned.key:
        return ALIKE, "it fails so"
    if says(text, planned.signature):
        return ALIKE, "it fails so, among other things"
    for reason, mark in _HINDRANCES:
        if mark in text:
            return UNRUNNABLE, reason
    if status == _NO_TEST and not signature:
        return UNRUNNABLE, "no test was found"
    if not signature:
        return UNRUNNABLE, f"it fails with exit code {status}, and nothing that is known says how"
    return OTHER, f"it fails with {signature}"


@contextmanager
def _folder() -> Iterator[str]:
    """Yield a new temporary directory, locked while in use, and remove it afterwards."""
    made = tempfile.mkdtemp(prefix=NEW_PREFIX)
    handle = files.open_folder(made)
    try:
        files.lock(handle)
        folder = os.path.join(os.path.dirname(made), PREFIX + made.rpartition(NEW_PREFIX)[2])
        os.rename(made, folder)  # only from now on may other runs treat it as left behind
        try:
            yield folder
        finally:
            _remove(folder)
    finally:
        os.close(handle)


def sweep() -> None:
    """Remove the temporary directories of killed runs."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if not entry.name.startswith(PREFIX):
                continue
            with suppress(OSError):
                handle = files.open_folder(entry.path, follows=False)
                try:
                    if os.fstat(handle).st_uid == os.geteuid():
                        files.lock(handle, waits=False)
                        _remove(entry.path)
                finally:
                    os.close(handle)


def _remove(folder: str) -> None:
    """Remove a directory, whatever permissions the command set in it."""
    for place, names, _files in os.walk(folder):
        for name in (".", *names):
            path = os.path.join(place, name)
            with suppress(OSError):
                if stat.S_ISDIR(os.lstat(path).st_mode):
                    os.chmod(path, stat.S_IRWXU)  # the command may have removed our permissions
    shutil.rmtree(folder, ignore_errors=True)
