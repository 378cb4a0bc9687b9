"""Running the command of a trace again: at the commit where it failed, and at HEAD.

It owns what is run, where, and what the outcome says. Each run has a repository of its own in the
directory for temporary files, which borrows the objects of this one: a command that commits,
rewrites or deletes does so in a copy that is thrown away, with hooks, filters, submodules and
settings of nobody. A copy that a killed process left behind goes with the next run. This contains
accidents. It is no sandbox: the command is the user's own process, and absolute paths are what they
are.

Nothing here asks whether it may: `refuse_unattended` and the verb do.
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
from memtool.errors import MemtoolError, reason_of
from memtool.memory import timestamps
from memtool.memory.environment import SECTION, FailureEnvironment, read_environment
from memtool.memory.memory import sections
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
from memtool.sessions.extract.error_fix import failure_key, failure_of, says
from memtool.sessions.model import printable
from memtool.sessions.store import clean_texts
from memtool.store import files, ledger, usage_log
from memtool.store.context import Context
from memtool.store.deadline import Deadline
from memtool.store.git import LOCATION_VARIABLES, Git
from memtool.store.provenance import SHORT
from memtool.store.sources import AMBIGUOUS, commit_states
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.memory.memory import Memory
    from memtool.redaction.find import Allowlist
    from memtool.store.repository import Repository

ACT = "run"
"""Under this kind the audit keeps every run, from which the last result is read."""
LIMIT_S = 60
MOST_S = 3_600
MOST_OUTPUT = 64 * 1024
"""Bytes of an output that are kept: the last ones."""
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
"""Variables that a command gets from the caller, beside `LC_…`: where programs are, and words."""
UNATTENDED: dict[str, str] = {
    "CI": "CI",
    "CLAUDE_PROJECT_DIR": "a hook",
    "GIT_INDEX_FILE": "a hook of git",
    "GIT_EXEC_PATH": "a hook of git",
}
"""Variables of places from which nothing is ever run, and what sets them."""
ALIKE, PASSED, OTHER, UNRUNNABLE = "alike", "passed", "other", "unrunnable"
_NOT_RUN = {125: "cannot be tested", 126: "cannot be executed", 127: "was not found"}
"""Exit codes that say so, as `git bisect run` has them."""
_NO_TEST = 5
"""What pytest and unittest end with where no test was found."""
_HINDRANCES = tables.rows("sessions/hindrances")
"""What an output says if the failure is one of the surroundings, and nothing of the code."""
_EMPTY_RUNS = ("no tests to run", "Ran 0 tests", "collected 0 items")
"""What an output says of a run that succeeds because it tests nothing."""


class RerunPlan(Value):
    """What would be run: `obstacle` says why nothing is, empty where all is well.

    `commit` and `head` are full ids; `key` is the hash of the failure that is looked for.
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


def plan(context: Context, memory: Memory, limit_s: int) -> RerunPlan:
    """Return what it would take to run the command of a trace again; nothing is run.

    Raises:
        MemtoolError: the memory is no trace, or the limit is none.
    """
    if not 0 < limit_s <= MOST_S:
        raise MemtoolError(
            f"--seconds takes 1 to {MOST_S}, not {limit_s}", hint="--seconds 300", code="bad-limit"
        )
    signature = memory.text("error_signature")
    text = next((part.text for part in sections(memory.body) if part.title == SECTION), "")
    environment, obstacle = FailureEnvironment(), ""
    try:
        environment = read_environment(text)
    except ValueError as error:
        obstacle = str(error)
    if not signature and not environment.failure:
        raise MemtoolError(
            f"{memory.id} is no trace of a failure: it has no error_signature",
            hint='memtool list "type:episodic" lists what has one',
            code="no-trace",
        )
    obstacle = obstacle or environment.obstacle
    head, commit = context.repository.git.head(), ""
    if not obstacle:
        context.repository.refuse_bare("run it in a clone")
        state = commit_states(context.repository, [environment.commit])[environment.commit]
        commit, cut = state.commit, environment.commit[:SHORT]
        if state.type == AMBIGUOUS:
            obstacle = f"several commits begin with {cut}"
        elif not commit:
            obstacle = f"commit {cut} is not in this clone"
    return RerunPlan(
        id=memory.id,
        title=memory.title,
        signature=signature,
        key=environment.failure or failure_key(signature),
        environment=environment,
        commit=commit,
        head=head,
        obstacle=obstacle,
        limit_s=limit_s,
    )


def refuse_unattended(context: Context) -> None:
    """Raise MemtoolError where nothing may be run, whoever agreed: CI, hooks and servers."""
    found = [
        what
        for name, what in UNATTENDED.items()
        if context.caller.env.get(name, "").lower() not in ("", "0", "false")
    ]
    found += ["a server"] if context.caller.is_resident else []
    if found:
        raise MemtoolError(
            f"{found[0]} is no place to run the command of a memory",
            hint="run it in a terminal of your own",
            code="no-consent",
        )


def carry_out(context: Context, planned: RerunPlan, allowed: Allowlist) -> TraceRun:
    """Run a command at the recorded commit and, where it fails there alike, at HEAD.

    Raises:
        MemtoolError: git is missing.
    """
    if planned.obstacle:
        return _result(context, planned, CANNOT_RUN, planned.obstacle, ())
    sweep()
    first = _run(context, planned, planned.commit, allowed)
    if first.outcome == UNRUNNABLE:
        return _result(context, planned, CANNOT_RUN, first.detail, (first,))
    if first.outcome != ALIKE:
        return _result(context, planned, GONE, f"at the recorded commit {first.detail}", (first,))
    if planned.head == planned.commit:
        return _result(context, planned, NOT_FIXED, "HEAD is the recorded commit", (first,))
    second = _run(context, planned, planned.head, allowed)
    verdict = {ALIKE: NOT_FIXED, PASSED: FIXED, OTHER: CHANGED, UNRUNNABLE: HOLDS}[second.outcome]
    return _result(context, planned, verdict, f"at HEAD {second.detail}", (first, second))


def _result(
    context: Context, planned: RerunPlan, verdict: str, detail: str, runs: tuple[CommandRun, ...]
) -> TraceRun:
    known = planned.environment
    stated = {
        "argv": printable(shown(known)) if known.argv else known.lack,
        "cwd": known.cwd,
        "exit": "" if known.exit is None else str(known.exit),
        "diff": known.diff,
        **dict(known.facts),
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
        differs=tuple(_differences(context, known)) if runs else (),
        runs=runs,
    )


def _differences(context: Context, known: FailureEnvironment) -> Iterator[str]:
    """Yield what of the surroundings is otherwise here and now than where it failed."""
    then = dict(known.facts)
    if not then:
        return
    deadline = Deadline(failure_state.BUDGET_S)
    for key, text in failure_state.facts_of(context, known.cwd, deadline).items():
        if then.get(key, text) != text:
            is_lock = key.startswith("lock ")
            yield f"{printable(key)} has changed" if is_lock else f"{key} {text}, then {then[key]}"


def shown(environment: FailureEnvironment) -> str:
    """Return the words of a command as a person would type them."""
    return shlex.join(environment.argv)


class RunResult(Value):
    """The last result of a trace: a verdict of `RUN_VERDICTS`, and the second of the run."""

    verdict: str
    moment: int


def results(context: Context) -> dict[str, RunResult]:
    """Return the last result of every trace that was run in this clone, by id.

    Where the ledger cannot be read a note says so, and there are none.
    """
    if not usage_log.is_kept(context):
        return {}
    with suppress(MemtoolError):  # it cannot be written: what it has will do
        ledger.fold(context.repository.cache_dir)
    try:
        with ledger.reading(context.repository.cache_dir) as held:
            acts = held.acts()
    except MemtoolError as error:
        context.notes.append(f"earlier runs are not known: {error.message}")
        return {}
    found: dict[str, RunResult] = {}
    for act in reversed(acts):
        verdict = act.detail.partition(":")[0]
        if act.kind == ACT and act.outcome == "done" and verdict in RUN_VERDICTS:
            found |= dict.fromkeys(act.subjects, RunResult(verdict, act.moment))
    return found


def moment_of(result: RunResult) -> str:
    """Return when a trace was last run, as text."""
    return timestamps.render(result.moment)


def _run(context: Context, planned: RerunPlan, commit: str, allowed: Allowlist) -> CommandRun:
    """Run a command in a fresh copy of one commit."""
    try:
        return _run_copy(context, planned, commit, allowed)
    except MemtoolError as error:
        why = error.message
    except OSError as error:
        why = reason_of(error)
    return _unrunnable(commit, f"no copy of commit {commit[:SHORT]} can be made: {why}")


def _run_copy(context: Context, planned: RerunPlan, commit: str, allowed: Allowlist) -> CommandRun:
    """Run a command as `_run` does. Raises MemtoolError or OSError where no copy can be made."""
    with _folder() as folder:
        top = os.path.join(folder, "tree")
        _check_out(context.repository, top, commit, context.caller.env)
        directory = os.path.realpath(os.path.join(top, planned.environment.cwd))
        is_inside = f"{directory}/".startswith(f"{os.path.realpath(top)}/")
        if not is_inside or not os.path.isdir(directory):
            cut = commit[:SHORT]
            return _unrunnable(commit, f"there is no directory {planned.environment.cwd} at {cut}")
        env = _environment(context.caller.env, folder)
        env |= _imports(env, os.path.realpath(context.repository.top), os.path.realpath(top))
        began = time.monotonic()
        ended = _supervised(planned, directory, env)
        return _judged(planned, commit, ended, time.monotonic() - began, folder, allowed)


def _unrunnable(commit: str, detail: str) -> CommandRun:
    return CommandRun(commit, UNRUNNABLE, detail, None, "", 0.0, is_network_off=False, output="")


def _environment(base: Mapping[str, str], folder: str) -> dict[str, str]:
    """Return what a command gets of the caller's environment, with directories of its own."""
    kept = {key: text for key, text in base.items() if key in PASSED_ON or key.startswith("LC_")}
    own = {"HOME": "home", "TMPDIR": "tmp", "XDG_RUNTIME_DIR": "tmp"}
    for name in ("home", "tmp"):
        os.mkdir(os.path.join(folder, name), 0o700)
    return (
        kept
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


def _imports(env: Mapping[str, str], top: str, copy: str) -> dict[str, str]:
    """Return a variable by which Python imports from a copy what it imports from the worktree.

    A project that is installed in editable mode is imported from the worktree, whichever commit a
    command belongs to: a run would tell of the wrong files.
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
            found = json.loads(done.stdout)
        except (OSError, ValueError, subprocess.SubprocessError):
            continue
        paths = [copy + path[len(top) :] for path in dict.fromkeys(found)]
        there = [path for path in paths if os.path.isdir(path)]
        return {"PYTHONPATH": os.pathsep.join(there)} if there else {}
    return {}


def _check_out(repository: Repository, top: str, commit: str, env: Mapping[str, str]) -> None:
    """Make a repository that borrows the objects of another one, and check a commit out.

    Filters are settings, and it has none: files are what the commit holds. It has the refs too, so
    that a command finds its branches and tags. Raises MemtoolError where git refuses.
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


class _Ended(Value):
    """How a command ended, as its supervisor reports it, and the last bytes of its output."""

    report: dict[str, str]
    output: bytes
    is_cut: bool


def _supervised(planned: RerunPlan, directory: str, env: Mapping[str, str]) -> _Ended:
    """Run a command below a supervisor, and wait until nothing of it is left."""
    told, report = os.pipe()
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
        os.close(told)
        os.close(report)
        return _Ended({"unstarted": str(getattr(error, "errno", 0) or 0)}, b"", is_cut=False)
    os.close(report)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        lines, output, is_cut = _heard(told, child.stdout.fileno(), planned.limit_s)
    finally:
        child.stdin.close()  # at which a supervisor that still runs ends everything
        try:
            child.wait(supervisor.KILLING_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()
        os.close(told)
    rows = (line.partition(" ") for line in lines.decode(errors="replace").splitlines())
    return _Ended({name: rest for name, _space, rest in rows}, output, is_cut)


def _heard(told: int, printed: int, limit_s: float) -> tuple[bytes, bytes, bool]:
    """Return a supervisor's report, the last bytes of the output, and whether there was more."""
    kept = {told: bytearray(), printed: bytearray()}
    is_cut = False
    deadline = Deadline(limit_s + supervisor.KILLING_S)
    with selectors.DefaultSelector() as waiting:
        for handle in kept:
            os.set_blocking(handle, False)
            waiting.register(handle, selectors.EVENT_READ)
        while told in (key.fd for key in waiting.get_map().values()):
            left = deadline.left_s()
            ready = waiting.select(left)
            if not ready and not left:
                break
            for key, _events in ready:
                data = os.read(key.fd, MOST_OUTPUT)
                if not data:
                    waiting.unregister(key.fd)
                kept[key.fd] += data
                is_cut |= len(kept[key.fd]) > MOST_OUTPUT
                del kept[key.fd][:-MOST_OUTPUT]
    with suppress(BlockingIOError):  # who still holds it open is not waited for
        while data := os.read(printed, MOST_OUTPUT):
            kept[printed] += data
            is_cut |= len(kept[printed]) > MOST_OUTPUT
            del kept[printed][:-MOST_OUTPUT]
    return bytes(kept[told]), bytes(kept[printed]), is_cut


def _judged(
    planned: RerunPlan,
    commit: str,
    ended: _Ended,
    seconds: float,
    folder: str,
    allowed: Allowlist,
) -> CommandRun:
    """Return what a run says: whether it failed as recorded, worked, failed otherwise, or none."""
    text = ended.output.decode(errors="replace")
    for place in (os.path.realpath(folder), folder):
        text = text.replace(f"{place}/tree/", "")
    text = text.partition("\n")[2] if ended.is_cut else text  # half a line may hide a secret
    text = clean_texts({text}, allowed)[text]
    report, argv = ended.report, planned.environment.argv
    code = report.get("exit", "")
    status = int(code) if code.isdigit() else None
    failure = failure_of(text) if status != 0 else None
    signature = printable(failure.signature) if failure else ""
    outcome, detail = _outcome(planned, report, status, text, signature)
    if "unstarted" in report:
        errno = report["unstarted"]
        reason = os.strerror(int(errno)) if errno.isdigit() else "it cannot be started"
        outcome, detail, status = UNRUNNABLE, f"{printable(argv[0])}: {reason}", None
    return CommandRun(
        commit=commit,
        outcome=outcome,
        detail=detail,
        exit=status,
        signature=signature,
        seconds=round(seconds, 2),
        is_network_off="network" in report,
        output="\n".join(map(printable, text.rstrip().splitlines()[-SHOWN_LINES:])),
    )


def _outcome(
    planned: RerunPlan, report: Mapping[str, str], status: int | None, text: str, signature: str
) -> tuple[str, str]:
    """Return outcome and a clause; what may lie in the surroundings is never held against it."""
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
    if signature and failure_key(signature) == planned.key:
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
    """Give a new directory for temporary files, locked while it is used, and remove it."""
    made = tempfile.mkdtemp(prefix=NEW_PREFIX)
    handle = files.open_folder(made)
    try:
        files.lock(handle)
        folder = os.path.join(os.path.dirname(made), PREFIX + made.rpartition(NEW_PREFIX)[2])
        os.rename(made, folder)  # only now may others take it for one that was left behind
        try:
            yield folder
        finally:
            _remove(folder)
    finally:
        os.close(handle)


def sweep() -> None:
    """Remove what killed runs left in the directory for temporary files."""
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
    """Remove a directory with all that a command may have made of it."""
    for place, names, _files in os.walk(folder):
        for name in (".", *names):
            path = os.path.join(place, name)
            with suppress(OSError):
                if stat.S_ISDIR(os.lstat(path).st_mode):
                    os.chmod(path, stat.S_IRWXU)  # it may have locked itself out
    shutil.rmtree(folder, ignore_errors=True)
