from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memtool.cli import main as cli
from memtool.errors import MemtoolError
from memtool.store import derived, files
from memtool.store.cache import CorruptCacheError

if TYPE_CHECKING:
    from conftest import Sandbox

HEAVY = ("git", "yaml", "bm25s", "numpy", "frontmatter", "markdown_it", "tomlkit", "argparse")


def modules_after(code: str) -> set[str]:
    """Return the modules that a fresh interpreter holds after some code."""
    script = f"import sys\n{code}\nprint(' '.join(sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def run_here(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    """Run a command line in this process, in the sandbox's environment."""
    for name, value in sandbox.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(sandbox.path)
    return cli.main(args)


def test_the_answer_goes_to_stdout_and_nothing_else(sandbox: Sandbox):
    """Stdout is data: a script may read the path of a new memory from it; the receipt is not."""
    done = sandbox.run(
        "new", "decision", "Keep it", "--id", "dec-a", "--body", "It is so, and this is why."
    )
    assert done.stdout == ".memory/decision/2026-03/dec-a.md\n"
    receipt = "Wrote dec-a  Keep it\n  decision; not committed (--commit does it)\n"
    assert (done.returncode, done.stderr) == (0, receipt)


def test_an_error_goes_to_stderr_with_a_hint_and_ends_with_2(sandbox: Sandbox):
    """The error and the next command are talk, not data."""
    done = sandbox.run("pin", "dec-a")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ('memtool: no memory is called "dec-a"\nhint: memtool search dec-a\n')


@pytest.mark.parametrize("args", [("--json", "pin", "dec-a"), ("pin", "dec-a", "--json")])
def test_an_error_is_json_where_json_was_asked_for(sandbox: Sandbox, args: tuple[str, ...]):
    """A program gets an object with five keys on stderr."""
    done = sandbox.run(*args)
    assert (done.returncode, done.stdout) == (2, "")
    error = json.loads(done.stderr)["error"]
    assert set(error) == {"code", "message", "hint", "recoverable", "timestamp"}
    assert (error["code"], error["recoverable"]) == ("unknown-id", True)
    assert error["timestamp"].endswith("Z")


def test_a_wrong_call_is_json_too(sandbox: Sandbox):
    """Errors before any verb runs follow `--json` as well."""
    done = sandbox.run("nwe", "--json")
    assert done.returncode == 2
    assert json.loads(done.stderr)["error"]["code"] == "usage"


def test_a_reader_that_leaves_is_no_error(sandbox: Sandbox):
    """`memtool … | head -1` ends with success and without a complaint."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "memtool", "--help"],
        cwd=sandbox.path,
        env=sandbox.env,
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_full_disk_behind_stdout_is_told(sandbox: Sandbox):
    """An answer that cannot be written is an error, not silence and not a bug."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "memtool", "--help"],
            cwd=sandbox.path,
            env=sandbox.env,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == b"memtool: cannot write the answer: No space left on device\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_bug(sandbox: Sandbox, closed: str):
    """A caller may close any of the three streams."""
    command = f'exec "$0" -m memtool remember "It is so." {closed}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable], cwd=sandbox.path, env=sandbox.env, check=False
    )
    assert done.returncode == 0
    assert len(list(sandbox.path.glob(".memory/semantic/*/*.md"))) == 1


def test_the_text_on_a_closed_stdin_is_missed_in_a_sentence(sandbox: Sandbox):
    """`--body -` without a stdin is a wrong call."""
    command = 'exec "$0" -m memtool new decision T --body - <&-'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable],
        cwd=sandbox.path,
        env=sandbox.env,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert b"cannot read stdin" in done.stderr


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8"])
def test_text_survives_any_locale(sandbox: Sandbox, locale: str):
    """Arguments, files and answers are UTF-8 whatever LANG says."""
    done = sandbox.run(
        "new",
        "decision",
        "Schlüssel → 鍵",
        "--id",
        "dec-a",
        "--dry-run",
        "--body",
        "It is so, and this is why.",
        LC_ALL=locale,
        LANG=locale,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "title: Schlüssel → 鍵" in done.stdout


def test_an_argument_in_another_encoding_is_told(sandbox: Sandbox):
    """Bytes that are not UTF-8 are refused with a hint."""
    done = subprocess.run(
        [sys.executable.encode(), b"-m", b"memtool", b"remember", b"caf\xe9"],
        cwd=sandbox.path,
        env=sandbox.env,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert b"is not UTF-8 text" in done.stderr


def test_a_directory_with_any_name_is_worked_in(sandbox: Sandbox, tmp_path: Path):
    """`-C` takes the bytes of a path as they are, before and after the verb."""
    odd = os.fsencode(tmp_path) + b"/caf\xe9 \x1b[31m"
    os.rename(sandbox.path, odd)
    for args in ([b"-C", odd, b"status"], [b"status", b"-C", odd]):
        done = subprocess.run(
            [sys.executable.encode(), b"-m", b"memtool", *args],
            env=sandbox.env,
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")


def test_control_characters_of_a_memory_never_reach_the_terminal(sandbox: Sandbox):
    """A hostile body, which got past the gate, is shown as codes in every text answer."""
    sandbox.memory("dec-odd", "Look \x1b]0;owned\x07 here \u202e.\n")
    done = sandbox.run("show", "dec-odd")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert "Look \\x1b]0;owned\\x07 here \\u202e." in done.stdout


def test_control_characters_of_an_argument_never_reach_the_terminal(sandbox: Sandbox):
    """Errors quote what was given, as codes."""
    done = sandbox.run("pin", "\x1b[31mred")
    assert "\x1b" not in done.stderr
    assert "x1b[31mred" in done.stderr


def test_there_is_no_colour(sandbox: Sandbox):
    """No answer holds an escape sequence, so NO_COLOR changes nothing."""
    plain = sandbox.run("--help")
    assert plain.stdout == sandbox.run("--help", NO_COLOR="1", CLICOLOR_FORCE="1").stdout
    assert "\x1b" not in plain.stdout


def test_a_note_goes_to_stderr(sandbox: Sandbox):
    """Notes do not mix with the answer."""
    sandbox.write(".memory/decision/broken.md", "no memory")
    sandbox.memory("dec-a")
    done = sandbox.run("pin", "dec-a")
    assert done.returncode == 0
    assert "\nmemtool: 1 file is not a memory" in done.stderr
    assert "not a memory" not in done.stdout


def test_no_repository_is_told(sandbox: Sandbox, tmp_path: Path):
    """Outside of git the hint leads in."""
    outside = tmp_path / "outside"
    outside.mkdir()
    done = sandbox.run("status", cwd=outside, GIT_CEILING_DIRECTORIES=str(tmp_path))
    assert done.returncode == 2
    assert "is not in a git repository" in done.stderr
    assert "hint: git init" in done.stderr


def test_no_directory_is_told(sandbox: Sandbox):
    """`-C` to nowhere is a wrong call."""
    done = sandbox.run("-C", "nowhere", "status")
    assert done.returncode == 2
    assert done.stderr == "memtool: no directory nowhere\n"


def test_problems_end_with_1_and_stay_on_stdout(sandbox: Sandbox):
    """Exit code 1 says that the answer itself names problems."""
    sandbox.write(".memory/decision/broken.md", "no memory")
    done = sandbox.run("status")
    assert (done.returncode, done.stderr) == (1, "")
    assert ".memory/decision/broken.md:1: no-frontmatter" in done.stdout


def test_a_bug_is_logged_and_ends_with_3(
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
):
    """A fault of memtool shows one sentence; the traceback goes to a file that is named."""
    from memtool.commands import status

    def broken(_ws: object, **_options: object) -> None:
        raise ZeroDivisionError("oops \x1b[31m")

    broken.__doc__ = "Break.\n\nArgs:\n"
    broken.__annotations__ = {}
    broken.__kwdefaults__ = {}
    monkeypatch.setattr(status, "status", broken)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert run_here(sandbox, monkeypatch, "status") == 3
    out, err = capfd.readouterr()
    assert out == ""
    assert "memtool: a bug: ZeroDivisionError: oops \\x1b[31m" in err
    (log,) = tmp_path.glob("memtool-bug-*.log")
    assert str(log) in err
    assert "Traceback" in log.read_text()
    assert "Traceback" not in err


def test_a_full_disk_is_no_bug(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch):
    """Where a library writes its temporary files, or anywhere else: one sentence, exit code 2."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")

    def full(*_args: object, **_options: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device", "/tmp/x")

    monkeypatch.setattr("memtool.index.build.build", full)
    done = sandbox.run("search", "redis")
    assert (done.returncode, done.stdout) == (2, "")
    assert "memtool: the disk refused: No space left on device (/tmp/x)\nhint: df -h" in done.stderr


def test_an_interruption_ends_with_130(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Ctrl-C ends without a traceback, as shells expect."""
    from memtool.commands import status

    def interrupted(_ws: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(status, "status", interrupted)
    assert run_here(sandbox, monkeypatch, "status") == 130
    assert capsys.readouterr() == ("", "memtool: interrupted\n")


def test_python_dash_m_and_the_script_are_one(sandbox: Sandbox):
    """The installed script does what `python -m memtool` does."""
    script = Path(sys.executable).with_name("memtool")
    done = subprocess.run([str(script), "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == sandbox.run("--version").stdout


def test_the_version_loads_nothing_heavy():
    """`memtool --version` starts at the speed of the interpreter."""
    loaded = modules_after("from memtool.cli.main import main\nmain(['--version'])")
    assert not loaded & {*HEAVY, "json", "inspect"}


def test_a_call_is_parsed_without_argparse_inspect_or_typing():
    """Every cold start loads little before its verb runs."""
    code = "from memtool.cli import main"
    assert not modules_after(code) & {*HEAVY, "json", "inspect", "typing", "re"}


def test_the_package_itself_loads_nothing():
    """`import memtool` costs nothing until a repository is opened."""
    loaded = modules_after("import memtool")
    assert {name for name in loaded if name.startswith("memtool")} == {"memtool"}


@pytest.mark.parametrize("written", [(), ("a.md",)])
def test_a_verb_that_has_written_does_not_run_twice(
    sandbox: Sandbox, written: tuple[str, ...]
) -> None:
    """Where the index turns out to be damaged, a verb runs again only if no file was written."""
    runs = []

    def ask() -> str:
        runs.append("run")
        if len(runs) > 1:
            return "answer"
        for name in written:
            files.create(str(sandbox.path), f".memory/{name}", b"")
        raise CorruptCacheError("a section")

    if written:
        with pytest.raises(MemtoolError) as caught:
            derived.retry_if_damaged(sandbox.context(), ask)
        assert (caught.value.code, len(runs)) == ("damaged", 1)
    else:
        assert derived.retry_if_damaged(sandbox.context(), ask) == "answer"


def test_each_operation_is_a_json_line_where_the_environment_asks(sandbox: Sandbox):
    """Of verbs, hooks and tools of a server; never with a text of a memory or of an error."""
    sandbox.memory("dec-a", "Sessions live in Postgres.\n")
    event = {"session_id": "s9", "cwd": str(sandbox.path), "prompt": "where do sessions live?"}
    calls = [
        (("list",), "", "cli", "list", None),
        (("show", "Postgres-secret"), "", "cli", "show", "unknown-id"),
        (("nosuch",), "", "cli", "nosuch", "usage"),
        (
            ("hook", "claude", "user-prompt-submit"),
            json.dumps(event),
            "hook",
            "claude user-prompt-submit",
            None,
        ),
        (
            ("hook", "claude", "user-prompt-submit"),
            "{",
            "hook",
            "claude user-prompt-submit",
            "hook-failed",
        ),
    ]
    for args, stdin, component, operation, error in calls:
        done = sandbox.run(*args, stdin=stdin, MEMTOOL_LOG="json")
        if component == "cli":
            plain = sandbox.run(*args, stdin=stdin)
            assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
        row = json.loads(done.stderr.splitlines()[-1])
        assert list(row) == [
            "time",
            "level",
            "component",
            "operation",
            "session",
            "milliseconds",
            "error",
        ]
        assert (row["component"], row["operation"], row["error"]) == (component, operation, error)
        assert row["level"] == ("error" if error else "info")
        assert row["milliseconds"] >= 0
        assert "Postgres" not in json.dumps(row)
        assert row["session"] == ("s9" if args[0] == "hook" and not error else "")
