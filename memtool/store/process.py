"""Child processes, started with little: `subprocess` costs more than an interpreter start.

Three pipes and a poll, so that neither side ever waits for the other. For POSIX systems only.
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
    from collections.abc import Callable, Mapping
    from typing import Any

CHUNK = 65_536
_LONGEST_MS = 1 << 31
"""What a poll can wait."""
_READY = select.POLLIN | select.POLLHUP | select.POLLERR


def set_alarm(ring: Callable[[int, Any], None], first_s: float, then_s: float) -> Any:
    """Call a function after some time, and then again and again; return what `end_alarm` needs.

    Raises:
        ValueError: this is not the main thread.
    """
    before = signals.signal(signals.SIGALRM, ring)
    signals.setitimer(signals.ITIMER_REAL, first_s, then_s)
    return before


def end_alarm(before: Any) -> None:
    """Call the function no more, and restore what handled the signal before."""
    signals.setitimer(signals.ITIMER_REAL, 0)
    signals.signal(signals.SIGALRM, before)


def is_running(process: int) -> bool:
    """Tell whether a process runs, whoever owns it, as far as can be seen from here."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is somebody else's
        return True
    return True


def end_group(leader: int) -> None:
    """End a process at once, with all that it started in its group."""
    try:
        os.killpg(leader, 9)
    except (ProcessLookupError, PermissionError):
        return


_APART = """
import os, signal
os.setsid()
os.closerange(3, 1024)
os.nice(10)
os.chdir("/")
signal.alarm({})
"""


def start_apart(program: str, args: list[str], env: Mapping[str, str], most_s: int) -> int:
    """Start a Python program in a session of its own, without streams; it ends after `most_s`.

    -P: modules are never looked for where the process happens to be. Return the process, 0 where
    none could be started.
    """
    quiet = [(os.POSIX_SPAWN_OPEN, handle, os.devnull, os.O_RDWR, 0) for handle in (0, 1, 2)]
    argv = [sys.executable, "-P", "-c", _APART.format(most_s) + program, *args]
    try:
        return os.posix_spawn(sys.executable, argv, dict(env), file_actions=quiet)
    except (OSError, ValueError):
        return 0


class Done(Value):
    """How a process ended: its exit status, negative for the signal that killed it, and output."""

    status: int
    stdout: bytes
    stderr: bytes


def run(
    argv: list[str],
    env: Mapping[str, str],
    stdin: bytes = b"",
    timeout_s: float | None = None,
) -> Done:
    """Run a program of the path to its end, in the directory of this process.

    Raises:
        OSError: it cannot be started.
        TimeoutError: it took too long, and was killed.
    """
    child = Child(argv, env)
    try:
        chunks = _listen(*child.pipes, stdin, Deadline(timeout_s))
    except BaseException:
        child.kill()
        child.wait()
        raise
    return Done(child.wait(), *chunks)


class Child:
    """A program that runs next to this process; `pipes` are its stdin, stdout and stderr.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, argv: list[str], env: Mapping[str, str]) -> None:
        given, feed = _pipe()
        heard, out = _pipe()
        told, err = _pipe()
        theirs = (given, out, err)
        self.pipes = (feed, heard, told)
        actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(theirs)]
        try:
            try:
                self._id = os.posix_spawn(
                    _found(argv[0], env),
                    argv,
                    env,
                    file_actions=actions,
                    setsigdef=(signals.SIGPIPE, signals.SIGXFSZ),  # Python ignores both
                )
            finally:
                for fd in theirs:
                    os.close(fd)
        except BaseException:
            self._close()
            raise

    def ask(
        self, question: bytes, *, lines: int = 0, size: int = 0, timeout_s: float | None = None
    ) -> bytes:
        """Write a question, and return the next lines, or bytes, of what the program answers.

        Raises:
            EOFError: it ended instead; the message is its stderr.
            TimeoutError: it took too long.
        """
        feed, heard, told = self.pipes
        deadline = Deadline(timeout_s)
        rest = memoryview(question)
        chunks: list[bytes] = []
        said = b""
        poll = select.poll()
        for fd, events in ((told, _READY), (heard, _READY), (feed, select.POLLOUT)):
            os.set_blocking(fd, False)
            poll.register(fd, events)
        left = lines or size
        while rest or left > 0:
            for fd, _event in poll.poll(_wait_ms(deadline)):
                if fd == feed:
                    rest = _fed(fd, rest)
                    if not rest:
                        poll.unregister(feed)
                    continue
                data = os.read(fd, CHUNK)
                if not data and fd == heard:
                    raise EOFError(said.decode(errors="replace"))
                if fd == heard:
                    chunks.append(data)
                    left -= data.count(b"\n") if lines else len(data)
                elif data:
                    said += data
                else:
                    poll.unregister(told)
        return b"".join(chunks)

    def wait(self) -> int:
        """Return the exit status, when it ends; negative for the signal that killed it."""
        return os.waitstatus_to_exitcode(os.waitpid(self._id, 0)[1])

    def close(self) -> None:
        """Close the pipes, at which it ends, and wait for that."""
        self._close()
        self.wait()

    def kill(self) -> None:
        """End it at once."""
        os.kill(self._id, 9)

    def _close(self) -> None:
        for fd in self.pipes:
            os.close(fd)


def _wait_ms(deadline: Deadline) -> float | None:
    """Return how long a poll may wait, None for ever. Raises TimeoutError where it is over."""
    left = deadline.timeout_s() * 1000
    return left if left < _LONGEST_MS else None


def _found(name: str, env: Mapping[str, str]) -> str:
    """Return where a program is, by the PATH that it will have itself, not by ours."""
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    places = (os.path.join(folder or ".", name) for folder in folders)
    return next((path for path in places if os.access(path, os.X_OK)), f"./{name}/missing")


def _pipe() -> tuple[int, int]:
    """Return a pipe whose ends are none of the child's first three, should ours be closed."""
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


def _listen(
    feed: int, heard: int, told: int, stdin: bytes, deadline: Deadline
) -> tuple[bytes, bytes]:
    """Write all of stdin and read both outputs to their ends; closes the three pipes."""
    chunks: dict[int, list[bytes]] = {heard: [], told: []}
    rest = memoryview(stdin)
    waiting = {heard: _READY, told: _READY, feed: select.POLLOUT}
    poll = select.poll()
    try:
        for fd, events in waiting.items():
            os.set_blocking(fd, False)
            poll.register(fd, events)
        while waiting:
            for fd, _event in poll.poll(_wait_ms(deadline)):
                if fd == feed:
                    rest = _fed(fd, rest)
                    is_over = not rest
                else:
                    data = os.read(fd, CHUNK)
                    chunks[fd].append(data)
                    is_over = not data
                if is_over:
                    poll.unregister(fd)
                    del waiting[fd]
                    os.close(fd)
    finally:
        for fd in waiting:
            os.close(fd)
    return b"".join(chunks[heard]), b"".join(chunks[told])


def _fed(fd: int, rest: memoryview) -> memoryview:
    """Write what the pipe takes, and return the rest: nothing, where nobody reads any more."""
    try:
        return rest[os.write(fd, rest) :] if rest else rest
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        return rest[:0]
