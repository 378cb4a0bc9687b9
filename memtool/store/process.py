"""Child processes without `subprocess`, whose import costs more than an interpreter start.

Three pipes and a poll, so that parent and child cannot deadlock. For POSIX systems only.
"""

from __future__ import annotations

import _signal as signals  # type: ignore[import-not-found]  # `signal` would import `enum`
import os
import select
import sys

from memtool.store.deadline import Deadline
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from typing import Any

CHUNK_BYTES = 65_536
_MAX_POLL_MS = 1 << 31
"""The longest time for one poll."""
_READY = select.POLLIN | select.POLLHUP | select.POLLERR


def set_alarm(callback: Callable[[int, Any], None], first_s: float, then_s: float) -> Any:
    """Call a function after `first_s`, then every `then_s`; return the argument for `end_alarm`.

    Raises:
        ValueError: this is not the main thread.
    """
    previous = signals.signal(signals.SIGALRM, callback)
    signals.setitimer(signals.ITIMER_REAL, first_s, then_s)
    return previous


def end_alarm(previous: Any) -> None:
    """Stop the calls, and restore the previous signal handler."""
    signals.setitimer(signals.ITIMER_REAL, 0)
    signals.signal(signals.SIGALRM, previous)


def is_running(process: int) -> bool:
    """Return whether a process seems to be running, under any user."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to another user
        return True
    return True


def end_group(leader: int) -> None:
    """Kill a process and its process group."""
    try:
        os.killpg(leader, 9)
    except (ProcessLookupError, PermissionError):
        return


_DETACHED_PREAMBLE = """
import os, signal
os.setsid()
os.closerange(3, 1024)
os.nice(10)
os.chdir("/")
signal.alarm({})
"""


def start_detached(program: str, args: list[str], env: Mapping[str, str], max_s: int) -> int:
    """Start a Python program in its own session, without streams; it is killed after `max_s`.

    Return the process id, 0 if it could not be started.
    """
    # -P: never import modules from the current directory.
    quiet = [(os.POSIX_SPAWN_OPEN, handle, os.devnull, os.O_RDWR, 0) for handle in (0, 1, 2)]
    argv = [sys.executable, "-P", "-c", _DETACHED_PREAMBLE.format(max_s) + program, *args]
    try:
        return os.posix_spawn(sys.executable, argv, dict(env), file_actions=quiet)
    except (OSError, ValueError):
        return 0


class ProcessResult(Value):
    """Exit status of a process, negative for the signal that killed it, and its output."""

    status: int
    stdout: bytes
    stderr: bytes


def run(
    argv: list[str],
    env: Mapping[str, str],
    stdin: bytes = b"",
    timeout_s: float | None = None,
) -> ProcessResult:
    """Run a program from the PATH in the current directory and wait for its end.

    Raises:
        OSError: it cannot be started.
        TimeoutError: it took too long, and was killed.
    """
    child = Child(argv, env)
    try:
        chunks = _exchange(*child.pipes, stdin, Deadline(timeout_s))
    except BaseException:
        child.kill()
        child.wait()
        raise
    return ProcessResult(child.wait(), *chunks)


class Child:
    """A running program; `pipes` are its stdin, stdout and stderr.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, argv: list[str], env: Mapping[str, str]) -> None:
        child_stdin, stdin = _create_pipe()
        stdout, child_stdout = _create_pipe()
        stderr, child_stderr = _create_pipe()
        child_pipes = (child_stdin, child_stdout, child_stderr)
        self.pipes = (stdin, stdout, stderr)
        actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(child_pipes)]
        try:
            try:
                self._id = os.posix_spawn(
                    _find_program(argv[0], env),
                    argv,
                    env,
                    file_actions=actions,
                    setsigdef=(signals.SIGPIPE, signals.SIGXFSZ),  # Python ignores both
                )
            finally:
                for fd in child_pipes:
                    os.close(fd)
        except BaseException:
            self._close()
            raise

    def request(
        self, message: bytes, *, lines: int = 0, size: int = 0, timeout_s: float | None = None
    ) -> bytes:
        """Write a request, and return the next lines or bytes of the program's output.

        Raises:
            EOFError: the program ended; the message is its stderr.
            TimeoutError: it took too long.
        """
        stdin, stdout, stderr = self.pipes
        deadline = Deadline(timeout_s)
        unsent = memoryview(message)
        chunks: list[bytes] = []
        error_text = b""
        poll = select.poll()
        for fd, events in ((stderr, _READY), (stdout, _READY), (stdin, select.POLLOUT)):
            os.set_blocking(fd, False)
            poll.register(fd, events)
        remaining = lines or size
        while unsent or remaining > 0:
            for fd, _event in poll.poll(_compute_wait_ms(deadline)):
                if fd == stdin:
                    unsent = _write_some(fd, unsent)
                    if not unsent:
                        poll.unregister(stdin)
                    continue
                data = os.read(fd, CHUNK_BYTES)
                if not data and fd == stdout:
                    raise EOFError(error_text.decode(errors="replace"))
                if fd == stdout:
                    chunks.append(data)
                    remaining -= data.count(b"\n") if lines else len(data)
                elif data:
                    error_text += data
                else:
                    poll.unregister(stderr)
        return b"".join(chunks)

    def wait(self) -> int:
        """Wait for the end and return the exit status, negative for the signal that killed it."""
        return os.waitstatus_to_exitcode(os.waitpid(self._id, 0)[1])

    def read_lines(self) -> Generator[bytes, None, bytes]:
        """Yield the lines of its output while it runs, and return its stderr."""
        _stdin, stdout, stderr = self.pipes
        poll = select.poll()
        poll.register(stdout, _READY)
        poll.register(stderr, _READY)
        line = error_text = b""
        number_open = 2
        while number_open:
            for fd, _event in poll.poll():
                data = os.read(fd, CHUNK_BYTES)
                if not data:
                    poll.unregister(fd)
                    number_open -= 1
                elif fd == stderr:
                    error_text += data
                else:
                    *lines, line = (line + data).split(b"\n")
                    yield from lines
        return error_text

    def close(self) -> int:
        """Close the pipes, which ends the program; wait for it and return its exit status."""
        self._close()
        return self.wait()

    def kill(self) -> None:
        """Kill the program."""
        os.kill(self._id, 9)

    def _close(self) -> None:
        for fd in self.pipes:
            os.close(fd)


def _compute_wait_ms(deadline: Deadline) -> float | None:
    """Return how long a poll may wait, None for no limit. Raises TimeoutError if time is up."""
    remaining_ms = deadline.timeout_s() * 1000
    return remaining_ms if remaining_ms < _MAX_POLL_MS else None


def _find_program(name: str, env: Mapping[str, str]) -> str:
    """Return the path of a program, by the PATH in its own environment, not in ours."""
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    places = (os.path.join(folder or ".", name) for folder in folders)
    return next((path for path in places if os.access(path, os.X_OK)), f"./{name}/missing")


def _create_pipe() -> tuple[int, int]:
    """Return a pipe with file descriptors above 2, even if our standard streams are closed."""
    low: list[int] = []
    high: list[int] = []
    for end in os.pipe():
        fd = end
        while fd < 3:
            low.append(fd)
            fd = os.dup(fd)
        high.append(fd)
    for fd in low:
        os.close(fd)
    return high[0], high[1]


def _exchange(
    stdin_pipe: int, stdout_pipe: int, stderr_pipe: int, stdin: bytes, deadline: Deadline
) -> tuple[bytes, bytes]:
    """Write stdin and read both outputs to the end; closes the three pipes."""
    chunks: dict[int, list[bytes]] = {stdout_pipe: [], stderr_pipe: []}
    unsent = memoryview(stdin)
    waiting = {stdout_pipe: _READY, stderr_pipe: _READY, stdin_pipe: select.POLLOUT}
    poll = select.poll()
    try:
        for fd, events in waiting.items():
            os.set_blocking(fd, False)
            poll.register(fd, events)
        while waiting:
            for fd, _event in poll.poll(_compute_wait_ms(deadline)):
                if fd == stdin_pipe:
                    unsent = _write_some(fd, unsent)
                    is_done = not unsent
                else:
                    data = os.read(fd, CHUNK_BYTES)
                    chunks[fd].append(data)
                    is_done = not data
                if is_done:
                    poll.unregister(fd)
                    del waiting[fd]
                    os.close(fd)
    finally:
        for fd in waiting:
            os.close(fd)
    return b"".join(chunks[stdout_pipe]), b"".join(chunks[stderr_pipe])


def _write_some(fd: int, unsent: memoryview) -> memoryview:
    """Write as much as the pipe takes, and return the rest; empty if the reader has closed."""
    try:
        return unsent[os.write(fd, unsent) :] if unsent else unsent
    except BlockingIOError:
        return unsent
    except BrokenPipeError:
        return unsent[:0]
