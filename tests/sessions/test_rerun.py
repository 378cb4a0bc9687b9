"""Real repositories and real processes; their commands take a few milliseconds."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PIPED, Sandbox, read_terminal

from memtool.commands.verify import render, verify
from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.redaction.find import NOTHING
from memtool.search.verification import TraceRun
from memtool.sessions import rerun
from memtool.sessions.extract.failures import compute_failure_key, says
from memtool.store import sightings
from memtool.store.landing import build_landings

SIGNATURE = "ValueError: no port"
FAILING = "echo 'ValueError: no port'; exit 1\n"


class Traces:
    """A repository with a failure in its first commit, and traces of it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        sandbox.write("check.sh", FAILING)
        sandbox.write("sub/keep", "")
        self.failed = sandbox.commit("a failure")

    def then(self, text: str) -> str:
        """Commit another content of the command."""
        self.sandbox.write("check.sh", text)
        return self.sandbox.commit("and then")

    def trace(self, *argv: str, signature: str = SIGNATURE, **lines: str | None) -> str:
        """Write the trace of a command, uncommitted; None leaves a line out."""
        fields = {
            "argv": json.dumps(argv or ("sh", "check.sh")),
            "cwd": ".",
            "exit": "1",
            "commit": self.failed,
            "diff": "clean",
        } | lines
        rows = "\n".join(f"{key}: {text}" for key, text in fields.items() if text is not None)
        parts = {
            "Command": "sh check.sh",
            "Failure": signature,
            "Changes": "check.sh",
            "Environment": rows,
            "Fix": "A port.",
        }
        body = "\n\n".join(f"## {title}\n\n{text}" for title, text in parts.items())
        self.sandbox.memory("epi-a", f"{body}\n", type="episodic", error_signature=signature)
        return "epi-a"

    def run(self, limit_s: int = 20) -> TraceRun:
        """Run the trace again, without a question."""
        context = self.sandbox.context()
        tree = context.tree()
        landings = build_landings(context.provenance_reader(tree))
        record = tree["epi-a"]
        planned = rerun.plan(context, record.memory, record.path, landings, limit_s)
        return rerun.run_trace(context, planned, NOTHING)


@pytest.fixture
def traces(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Traces:
    """Make traces; leftovers in the directory for temporary files are visible there."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    for name in rerun.UNATTENDED:  # the tests themselves may run in CI
        sandbox.env.pop(name, None)
    sandbox.env["LC_ALL"] = "C.UTF-8"  # why git fails is known in English only
    return Traces(sandbox)


def list_copies(tmp_path: Path) -> list[str]:
    return os.listdir(tmp_path / "temporary")


@pytest.mark.parametrize(
    ("text", "verdict", "outcomes"),
    [
        ("exit 0\n", "fixed", ["alike", "passed"]),
        ("true\n" + FAILING, "not fixed here", ["alike", "alike"]),
        ("echo 'KeyError: host'; exit 1\n", "failure changed", ["alike", "other"]),
        ("echo 'Network is unreachable'; exit 1\n", "holds", ["alike", "unrunnable"]),
        ("exit 127\n", "holds", ["alike", "unrunnable"]),
    ],
)
def test_what_became_of_a_failure(
    traces: Traces, tmp_path: Path, text: str, verdict: str, outcomes: list[str]
) -> None:
    """It is run where it failed, and then at HEAD; no copy is left."""
    head = traces.then(text)
    traces.trace()
    before = traces.sandbox.git("status", "--porcelain")
    result = traces.run()
    assert (result.verdict, [run.outcome for run in result.runs]) == (verdict, outcomes)
    assert (result.commit, result.head, result.exit) == (traces.failed, head, 1)
    assert result.signature == SIGNATURE
    assert list_copies(tmp_path) == []
    assert traces.sandbox.git("status", "--porcelain") == before
    assert traces.sandbox.git("worktree", "list").count("\n") == 1


def test_head_is_not_run_again_where_it_is_the_recorded_commit(traces: Traces) -> None:
    """It has just been run there."""
    traces.trace()
    result = traces.run()
    assert (result.verdict, len(result.runs)) == ("not fixed here", 1)


def note(traces: Traces) -> None:
    """Write the trace with its record of the commit, as memtool itself writes memories."""
    sandbox = traces.sandbox
    traces.trace()
    record = sandbox.context().tree()["epi-a"]
    (noted,) = sightings.with_sightings(sandbox.context().repository, [record.memory])
    sandbox.write(record.path, document.write(noted))
    sandbox.commit("note it")


def squash(traces: Traces) -> str:
    """Squash the branch that is checked out, and drop it with its commits."""
    sandbox = traces.sandbox
    sandbox.git("branch", "--quiet", "--move", "work")
    sandbox.git("switch", "--quiet", "--create", "main", "start")
    sandbox.git("merge", "--quiet", "--squash", "work")
    landed = sandbox.commit("land")
    sandbox.git("branch", "--quiet", "-D", "work")
    sandbox.git("reflog", "expire", "--expire=now", "--all")
    sandbox.git("gc", "--quiet", "--prune=now")
    return landed


def test_a_failure_that_was_squashed_with_its_fix_cannot_be_run(traces: Traces) -> None:
    """Neither commit around the landing holds it, which is not a reason to doubt it."""
    traces.then("exit 0\n")
    traces.sandbox.git("branch", "start")
    traces.failed = traces.then(FAILING)
    note(traces)
    traces.then("exit 0 # mended\n")
    landed = squash(traces)
    result = traces.run()
    assert (result.verdict, result.commit) == ("cannot run", landed)
    assert "squashed away" in result.detail


def test_a_failure_that_the_squash_still_holds_is_run_there(traces: Traces) -> None:
    traces.then("exit 0\n")
    traces.sandbox.git("branch", "start")
    traces.failed = traces.then(FAILING)
    note(traces)
    landed = squash(traces)
    traces.then("exit 0\n")
    result = traces.run()
    assert (result.verdict, [run.outcome for run in result.runs]) == ("fixed", ["alike", "passed"])
    assert result.commit == landed


def test_a_failure_that_the_squash_fixed_is_run_before_it(traces: Traces) -> None:
    """A failure on the branch existed on the main branch already."""
    traces.sandbox.git("branch", "start")
    traces.sandbox.write("sub/other", "")
    traces.failed = traces.sandbox.commit("look at it")
    note(traces)
    traces.then("exit 0\n")
    landed = squash(traces)
    result = traces.run()
    assert (result.verdict, result.commit) == ("fixed", landed)
    assert f"before {landed[:7]}" in result.detail


NOT_FOUND = "No such file or directory|Permission denied"
"""The second where the path names a folder that this user may not look into."""


@pytest.mark.parametrize(
    ("argv", "verdict", "detail"),
    [
        (("true",), "does not reproduce", "at the recorded commit it works"),
        (("sh", "-c", "echo 'KeyError: a'; exit 1"), "does not reproduce", "KeyError: a"),
        (("sh", "-c", "exit 3"), "cannot run", "exit code 3, and nothing that is known says how"),
        (("no-such-program-here",), "cannot run", NOT_FOUND),
        (("./check.sh",), "cannot run", "Permission denied"),
        (("sub",), "cannot run", NOT_FOUND),
        (("sh", "-c", "exit 125"), "cannot run", "cannot be tested"),
        (("sh", "-c", "exit 126"), "cannot run", "cannot be executed"),
        (("sh", "-c", "kill -9 $$"), "cannot run", "killed by signal 9"),
        (
            ("sh", "-c", "echo \"ModuleNotFoundError: No module named 'x'\"; exit 1"),
            "cannot run",
            "a module is missing",
        ),
        (("sh", "-c", "echo collected 0 items; exit 5"), "cannot run", "no test was found"),
        (("git", "commit", "--allow-empty", "-m", "x"), "cannot run", "git has no identity"),
        (("sh", "-c", "exit 5"), "cannot run", "no test was found"),
        (("sh", "-c", "echo 'ok (no tests to run)'"), "cannot run", "no test was found"),
        (
            ("sh", "-c", "echo 'curl: (6) Could not resolve host: x'; exit 6"),
            "cannot run",
            "the network was needed",
        ),
    ],
)
def test_what_cannot_be_run_is_unknown(
    traces: Traces, argv: tuple[str, ...], verdict: str, detail: str
) -> None:
    """The environment is never held against a trace."""
    traces.trace(*argv)
    result = traces.run()
    assert result.verdict == verdict
    assert any(part in result.detail for part in detail.split("|"))


@pytest.mark.parametrize(
    ("lines", "detail"),
    [
        ({"argv": None}, "names no argv"),
        ({"argv": "needs a shell"}, "needs a shell"),
        ({"argv": "redacted"}, "a secret was taken out"),
        ({"argv": "sh check.sh"}, "argv is no JSON list of words"),
        ({"cwd": "../.."}, "cwd is no directory inside"),
        ({"cwd": "nowhere"}, "there is no directory nowhere at"),
        ({"cwd": "link"}, "there is no directory link at"),
        ({"cwd": "check.sh"}, "there is no directory check.sh at"),
        ({"commit": "unknown"}, "the commit at which it failed is unknown"),
        ({"commit": "f" * 40}, "commit fffffff is not in this clone"),
        ({"diff": "a" * 64}, "uncommitted changes"),
        ({"diff": None}, "whether the worktree was clean is unknown"),
    ],
)
def test_a_section_that_does_not_tell_all_is_no_verdict(
    traces: Traces, lines: dict[str, str | None], detail: str
) -> None:
    """The section may have been edited by hand, so nothing is run from it."""
    (traces.sandbox.path / "link").symlink_to("/")
    traces.failed = traces.sandbox.commit("a link out of the worktree")
    traces.trace(**lines)
    result = traces.run()
    assert (result.verdict, [run for run in result.runs if run.exit is not None]) == (
        "cannot run",
        [],
    )
    assert detail in result.detail


def test_a_command_gets_little_of_its_caller(traces: Traces) -> None:
    """An empty home, few variables, no network but loopback, no input, and no terminal."""
    traces.sandbox.env["SERVICE_TOKEN"] = "only-for-the-caller"
    script = (
        'echo "[$SERVICE_TOKEN] $(ls -A "$HOME" | wc -l) $(git status --porcelain | wc -l)"; '
        'pwd; cat; (: </dev/tty) 2>/dev/null && echo terminal; echo "ValueError: no port"; exit 1'
    )
    traces.trace("sh", "-c", script, cwd="sub")
    (run,) = traces.run().runs
    first, where, *_lines = run.output.splitlines()
    assert (first, where.rpartition("/")[2]) == ("[] 0 0", "sub")
    assert "terminal" not in run.output
    if run.is_network_off:
        code = (
            "import socket; s = socket.create_server(('127.0.0.1', 0)); "
            "socket.create_connection(s.getsockname()); socket.create_connection(('192.0.2.1', 9))"
        )
        traces.trace(sys.executable, "-c", code)
        (run,) = traces.run().runs
        assert run.detail == "the network was needed"


def test_a_command_that_destroys_destroys_a_copy(traces: Traces, tmp_path: Path) -> None:
    """Neither the files, nor branches, settings and objects of the repository are touched."""
    git = traces.sandbox.git
    git("branch", "kept")
    before = (git("for-each-ref"), git("config", "--list", "--local"))
    script = (
        "git branch -D kept; git config user.name X; git commit --allow-empty -qm x;"
        "git update-ref -d refs/heads/main; rm -rf .git check.sh; mkdir d; touch d/f; chmod 0 d;"
        "echo 'ValueError: no port'; exit 1"
    )
    traces.trace("sh", "-c", script)
    assert traces.run().verdict == "not fixed here"
    traces.trace("rm", "-rf", ".")
    assert traces.run().verdict == "cannot run"
    assert (git("for-each-ref"), git("config", "--list", "--local")) == before
    assert git("status", "--porcelain") == "?? .memory/\n"
    assert git("fsck") == ""
    assert list_copies(tmp_path) == []


def test_filters_hooks_and_attributes_do_nothing(traces: Traces, tmp_path: Path) -> None:
    """A checkout runs no program of the repository or of the user."""
    ran = tmp_path / "ran"
    sandbox = traces.sandbox
    for name in ("post-checkout", "reference-transaction"):
        hook = sandbox.write(f".git/hooks/{name}", f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
    sandbox.write(".gitattributes", "*.sh filter=evil\n")
    sandbox.git("config", "core.hooksPath", os.devnull)
    traces.failed = sandbox.commit("attributes")
    sandbox.git("config", "--unset", "core.hooksPath")
    sandbox.git("config", "filter.evil.smudge", f"touch {ran}")
    sandbox.git("config", "filter.evil.required", "true")
    traces.trace()
    assert traces.run().verdict == "not fixed here"
    assert not ran.exists()


def test_nothing_outlives_a_command(traces: Traces, tmp_path: Path) -> None:
    """Not what left its group, ignores signals and holds the output open."""
    mark = tmp_path / "mark"
    inner = f"trap '' TERM INT HUP; echo $$ > {mark}; exec sleep 600"
    script = (
        f'setsid sh -c "{inner}" & while [ ! -s {mark} ]; do sleep 0.01; done;'
        "echo 'ValueError: no port'; exit 1"
    )
    traces.trace("sh", "-c", script.replace("$$", "\\$\\$"))
    began = time.monotonic()
    assert traces.run().verdict == "not fixed here"
    assert time.monotonic() - began < 60
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_a_command_ends_at_its_limit(traces: Traces) -> None:
    """It is unknown how it would have ended."""
    traces.trace("sh", "-c", "trap '' TERM; sleep 600")
    result = traces.run(limit_s=1)
    assert (result.verdict, result.detail) == ("cannot run", "it did not end within 1 s")


def test_of_a_huge_output_the_end_is_kept_without_secrets(traces: Traces) -> None:
    """A half line at the beginning goes, as it may hide what would have been found."""
    token = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    code = (
        "import sys\nfor n in range(60000): print('x' * 70)\n"
        f"print('token', '{token}'); print('\\x1b[2JValueError: no port'); sys.exit(1)"
    )
    traces.trace(sys.executable, "-c", code)
    (run,) = traces.run().runs
    assert run.outcome == "alike"
    assert token not in run.output
    assert "[REDACTED" in run.output
    assert "\x1b" not in run.output
    assert len(run.output) < 2_000


def test_two_runs_that_fail_alike_have_one_key() -> None:
    """Addresses, directories, ids, times and lines differ between two of them; words do not."""
    first = "OSError: [Errno 2] No such file: '/tmp/a1/x.txt' at 0x7f3a, 0.31 s at tests/a.py:read"
    other = "OSError: [Errno 2] No such file: '/var/b/x.txt' at 0xbeef, 12 s at a/tests/a.py:read"
    assert compute_failure_key(first) == compute_failure_key(other)
    assert compute_failure_key("E: line 3, id 3f2a9c41b7d0") == compute_failure_key(
        "E: line 9, id 00aa9c41b7d1"
    )
    assert compute_failure_key("ValueError: no port") != compute_failure_key("ValueError: no host")
    assert compute_failure_key("assert 1 == 2") != compute_failure_key("assert 1 == 3")


@pytest.mark.parametrize(
    ("text", "is_said"),
    [
        ("a.py:9:101: E501 Line too long (104 > 100)\nFound 1 error.", True),
        ("a.py:9:101: E501 Line too\n  long (104 > 100)", True),
        ("b.py:9:101: E501 Line too long (104 > 100)", False),
        ("a.py: all is well", False),
    ],
)
def test_an_output_says_more_than_its_last_failure(
    text: str,
    is_said: bool,  # noqa: FBT001  # a column
) -> None:
    """The words of a signature and the file of its frame suffice; a short word does not."""
    assert says(text, "E501 Line too long (104 > 100) at lib/a.py:run") == is_said
    assert not says(f"{text} error", "error")


def test_the_next_run_removes_what_a_killed_one_left(traces: Traces, tmp_path: Path) -> None:
    """Copies in use stay, and so do directories that only look like copies."""
    place = tmp_path / "temporary"
    for name in ("memtool-run-dead", "memtool-run-used", "memtool-other"):
        (place / name / "tree" / "locked").mkdir(parents=True)
    (place / "memtool-run-dead" / "tree" / "locked").chmod(0)
    (place / "memtool-run-link").symlink_to(place / "memtool-other")
    with (place / "memtool-run-file").open("w"):
        pass
    handle = os.open(place / "memtool-run-used", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    traces.trace()
    traces.run()
    os.close(handle)
    assert sorted(list_copies(tmp_path)) == [
        "memtool-other",
        "memtool-run-file",
        "memtool-run-link",
        "memtool-run-used",
    ]


def test_a_copy_that_cannot_be_made_is_no_verdict(traces: Traces) -> None:
    """An object of the commit is missing."""
    blob = traces.sandbox.git("rev-parse", f"{traces.failed}:check.sh").strip()
    traces.then("exit 0\n")
    traces.trace()
    (traces.sandbox.path / ".git/objects" / blob[:2] / blob[2:]).unlink()
    result = traces.run()
    assert (result.verdict, result.detail.partition(":")[0]) == (
        "cannot run",
        f"no copy of commit {traces.failed[:7]} can be made",
    )


def test_without_a_place_for_copies_there_is_no_verdict(
    traces: Traces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said, and nothing else happens."""
    traces.trace()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    result = traces.run()
    assert result.verdict == "cannot run"
    assert result.detail.endswith("can be made: No such file or directory")


@pytest.mark.parametrize(
    ("clone", "verdict"),
    [
        (("clone", "--quiet", "--depth=1"), "cannot run"),
        (("clone", "--quiet", "--filter=blob:none"), "cannot run"),
        (("clone", "--quiet", "--shared"), "fixed"),
        (("worktree", "add", "--quiet", "--detach"), "fixed"),
    ],
)
def test_every_kind_of_clone_runs_what_it_holds(
    traces: Traces, clone: tuple[str, ...], verdict: str
) -> None:
    """Missing objects are not fetched."""
    sandbox = traces.sandbox
    sandbox.git("config", "uploadpack.allowFilter", "true")
    traces.then("exit 0\n")
    place = sandbox.path.parent / "other"
    source = () if clone[0] == "worktree" else (f"file://{sandbox.path}",)
    sandbox.git(*clone, *source, str(place))
    (place / ".memory").mkdir(exist_ok=True)
    traces.sandbox = Sandbox(place, sandbox.env)
    traces.trace()
    assert traces.run().verdict == verdict


def test_objects_may_have_other_names(tmp_path: Path, environment: dict[str, str]) -> None:
    """A repository of SHA-256 gets a copy of its own kind."""
    path = tmp_path / "project"
    path.mkdir()
    sandbox = Sandbox(path, environment)
    sandbox.git("init", "--quiet", "--object-format=sha256")
    (path / ".memory").mkdir()
    traces = Traces(sandbox)
    traces.trace()
    assert traces.run().verdict == "not fixed here"


@pytest.mark.slow
def test_a_killed_run_takes_its_command_along(traces: Traces, tmp_path: Path) -> None:
    """And the next run removes its copy."""
    mark = tmp_path / "mark"
    traces.trace("sh", "-c", f"echo $$ > {mark}; trap '' TERM; sleep 600; sleep 600")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from memtool.sessions import rerun\n"
        "from memtool.redaction.find import NOTHING\nfrom memtool.store.context import Context\n"
        "c = Context.at('.'); r = c.tree()['epi-a']\n"
        "rerun.run_trace(c, rerun.plan(c, r.memory, r.path, None, 60), NOTHING)"
    )
    env = traces.sandbox.env | {"TMPDIR": str(tmp_path / "temporary")}
    running = subprocess.Popen([sys.executable, "-c", code, ""], cwd=traces.sandbox.path, env=env)
    _until(lambda: mark.exists() and mark.read_text().strip() != "")
    running.send_signal(signal.SIGKILL)
    running.wait()
    _until(lambda: not _is_there(int(mark.read_text())))
    assert len(list_copies(tmp_path)) == 1
    traces.trace()
    traces.run()
    assert list_copies(tmp_path) == []


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _until(is_so: Callable[[], bool]) -> None:
    for _step in range(2_000):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError("it never came so far")


def test_only_a_trusted_trace_is_run_without_a_question(traces: Traces) -> None:
    """The result is shown, kept by the ledger, and said by the next verify that runs nothing."""
    traces.then("exit 0\n")
    traces.trace()
    sandbox = traces.sandbox
    with pytest.raises(MemtoolError, match="is only local, not trusted") as caught:
        verify(sandbox.context(), "epi-a", run=True, yes=True)
    assert caught.value.code == "no-consent"
    head = sandbox.commit("a trace")
    sandbox.git("update-ref", "refs/remotes/origin/main", head)
    memory = sandbox.json("verify", "epi-a", "--run", "--yes")["memories"][0]
    assert (memory["run"]["verdict"], memory["trace"]["reproduces"]) == ("fixed", True)
    assert sorted(memory["run"]) == [
        "commit",
        "detail",
        "differs",
        "environment",
        "exit",
        "head",
        "runs",
        "seconds",
        "signature",
        "verdict",
    ]
    later = sandbox.json("verify", "epi-a")["memories"][0]
    assert (later["run"], later["trace"]["result"], later["trace"]["reproduces"]) == (
        None,
        "fixed",
        True,
    )
    assert "fixed, as run on 2026-03-01" in render(verify(sandbox.context(), "epi-a"), PIPED)
    assert "fixed: at HEAD it works" in sandbox.run("log", "--audit").stdout
    assert sandbox.git("status", "--porcelain") == ""


def test_nothing_is_run_where_nobody_agreed(traces: Traces, tmp_path: Path) -> None:
    """Not in CI, from a hook or a server, without a terminal, nor by a call without `yes`."""
    sandbox = traces.sandbox
    traces.trace("touch", str(tmp_path / "ran"))
    head = sandbox.commit("a trace")
    sandbox.git("update-ref", "refs/remotes/origin/main", head)
    resident = sandbox.context()
    resident.caller.is_resident = True
    for context, is_agreed, reason in (
        (sandbox.context(), False, "there is no terminal to ask"),
        (sandbox.context(), True, "names places outside of the copy"),
        (sandbox.context(CI="true"), True, "a memory in CI"),
        (sandbox.context(GIT_INDEX_FILE=".git/index"), True, "a memory in a hook of git"),
        (sandbox.context(CLAUDE_PROJECT_DIR="/"), True, "a memory in a hook"),
        (resident, True, "a memory in a server"),
    ):
        with pytest.raises(MemtoolError, match=reason) as caught:
            verify(context, "epi-a", run=True, yes=is_agreed)
        assert caught.value.code == "no-consent"
    done = sandbox.run("verify", "epi-a", "--run")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no terminal to ask" in done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("answer", "is_run"), [(b"\n", False), (b"y\n", True)])
def test_somebody_at_a_terminal_is_asked(
    traces: Traces,
    tmp_path: Path,
    answer: bytes,
    is_run: bool,  # noqa: FBT001  # a column
) -> None:
    """Every word of the command is shown, and what is in it cannot act on the terminal."""
    ran = tmp_path / "ran"
    traces.trace("touch", str(ran), "\x1b[2J")
    ours, theirs = os.openpty()
    os.write(ours, answer)
    done = subprocess.run(
        [sys.executable, "-m", "memtool", "verify", "epi-a", "--run"],
        cwd=traces.sandbox.path,
        env=traces.sandbox.env,
        stdin=theirs,
        stderr=theirs,
        stdout=theirs,
        check=False,
    )
    os.close(theirs)
    shown = read_terminal(ours).replace("\r\n", "\n")
    os.close(ours)
    assert f"touch {ran} '\\x1b[2J'" in shown
    assert "names places outside of the copy" in shown
    assert "\x1b[2J" not in shown
    assert ran.exists() == is_run
    assert (done.returncode == 0) == is_run


def test_an_editable_install_is_imported_from_the_copy(traces: Traces, tmp_path: Path) -> None:
    """Else a run would tell of the worktree, whichever commit it is of."""
    sandbox = traces.sandbox
    sandbox.write("pyproject.toml", "")
    sandbox.write("src/shop.py", "raise ValueError('no port')\n")
    traces.failed = sandbox.commit("a failure")
    sandbox.write("src/shop.py", "")
    sandbox.commit("and then")
    venv.create(tmp_path / "venv", symlinks=True)
    (site,) = (tmp_path / "venv").glob("lib/python3*/site-packages")
    (site / "shop.pth").write_text(f"{sandbox.path}/src\n")
    sandbox.env["PATH"] = f"{tmp_path}/venv/bin:{sandbox.env['PATH']}"
    traces.trace("python", "-c", "import shop")
    assert traces.run().verdict == "fixed"


def test_what_is_otherwise_here_is_said(traces: Traces) -> None:
    """Another machine, or another lock file, may be why a failure does not come again."""
    traces.sandbox.write("go.sum", "x\n")
    traces.trace(**{"os": "plan9", "arch": os.uname().machine, "lock go.sum": "a" * 64})
    result = traces.run()
    system = os.uname().sysname.lower()
    assert result.differs == (f"os {system}, then plan9", "lock go.sum has changed")
    assert result.environment["os"] == "plan9"


@pytest.mark.parametrize(
    ("ids", "options", "code"),
    [
        (("dec-a",), {}, "no-trace"),
        (("dec-nowhere",), {}, "unknown-id"),
        ((), {}, "usage"),
        (("dec-a", "epi-a"), {}, "usage"),
        (("epi-a",), {"at": "HEAD"}, "usage"),
        (("epi-a",), {"seconds": 0}, "usage"),
        (("epi-a",), {"seconds": 1 << 40}, "usage"),
    ],
)
def test_bad_calls_get_a_sentence(
    traces: Traces, ids: tuple[str, ...], options: dict[str, int], code: str
) -> None:
    """One trace is run at a time."""
    traces.sandbox.memory("dec-a")
    traces.trace()
    with pytest.raises(MemtoolError) as caught:
        verify(traces.sandbox.context(), *ids, run=True, yes=True, **options)
    assert caught.value.code == code


def test_a_trace_that_cannot_be_run_asks_nobody(traces: Traces) -> None:
    """It is unknown, and not broken."""
    traces.trace(argv="needs a shell")
    report = verify(traces.sandbox.context(), "epi-a", run=True)
    (memory,) = report.memories
    assert (memory.verdict, memory.run and memory.run.verdict, report.exit_code) == (
        "unknown",
        "cannot run",
        0,
    )
    assert "cannot run: the command needs a shell, and none is started" in render(report, PIPED)
