from __future__ import annotations

import os
import subprocess
import sys

import pytest

from memtool.store import process

ENV = {"PATH": f"{os.path.dirname(sys.executable)}:/usr/bin:/bin"}


def test_much_input_and_output_at_once() -> None:
    """Neither side waits for the other, however much goes through both pipes."""
    data = os.urandom(1 << 20) * 3
    done = process.run(["cat"], ENV, data)
    assert (done.status, done.stdout == data, done.stderr) == (0, True, b"")


def test_status_and_both_outputs() -> None:
    """The exit code and what was told come back."""
    done = process.run(["sh", "-c", "echo out; echo err >&2; exit 3"], ENV)
    assert done == process.ProcessResult(3, b"out\n", b"err\n")


def test_a_signal_is_a_negative_status() -> None:
    """As `subprocess` counts."""
    assert process.run(["sh", "-c", "kill -9 $$"], ENV).status == -9


def test_a_reader_that_does_not_read_is_no_error() -> None:
    """Unread input is dropped."""
    assert process.run(["true"], ENV, bytes(1 << 20)).status == 0


def test_a_program_is_found_on_its_own_path(tmp_path) -> None:
    """Not on the path of this process; a directory is not a program."""
    with pytest.raises(OSError):  # noqa: PT011  # which one is the system's choice
        process.run(["cat"], {"PATH": str(tmp_path)})
    tool = tmp_path / "cat"
    tool.write_text("#!/bin/sh\necho mine\n")
    tool.chmod(0o755)
    assert process.run(["cat"], {"PATH": f"{tmp_path}:/bin"}).stdout == b"mine\n"


def test_what_takes_too_long_is_killed() -> None:
    """And no child is left behind. A process of its own has no children of other tests."""
    script = """
import os
from memtool.store import process
try:
    process.run(["sleep", "60"], dict(os.environ), timeout_s=0.05)
except TimeoutError:
    print("killed")
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("alone")
"""
    done = process.run([sys.executable, "-c", script], dict(os.environ), timeout_s=60)
    assert done.stdout == b"killed\nalone\n"


def test_a_child_dies_of_a_broken_pipe() -> None:
    """Python ignores that signal; its children must not."""
    done = process.run(["sh", "-c", "yes | head -n 1"], ENV, timeout_s=20)
    assert (done.status, done.stdout) == (0, b"y\n")


def test_closed_standard_streams_do_not_mix_up_the_pipes() -> None:
    """A caller may have closed its own input and outputs."""
    script = (
        "import os, sys; from memtool.store import process\n"
        "for fd in (0, 1, 2): os.close(fd)\n"
        "done = process.run(['sh', '-c', 'cat; echo err >&2'], dict(os.environ), b'in')\n"
        "os._exit(0 if (done.stdout, done.stderr) == (b'in', b'err\\n') else 1)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
