"""One child process, started with little: `subprocess` costs more than an interpreter start.

Three pipes and a poll, so that neither side ever waits for the other. For POSIX systems only.
"""

from __future__ import annotations

import os
import select
import time

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

CHUNK = 65_536
_READY = select.POLLIN | select.POLLHUP | select.POLLERR


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
    given, feed = _pipe()
    heard, out = _pipe()
    told, err = _pipe()
    ours, theirs = (feed, heard, told), (given, out, err)
    actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(theirs)]
    try:
        # Python ignores both signals, a child must not. `signal` would import `enum`.
        from _signal import SIGPIPE, SIGXFSZ  # type: ignore[import-not-found]

        try:
            child = os.posix_spawn(
                _found(argv[0], env), argv, env, file_actions=actions, setsigdef=(SIGPIPE, SIGXFSZ)
            )
        finally:
            for fd in theirs:
                os.close(fd)
    except BaseException:
        for fd in ours:
            os.close(fd)
        raise
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    try:
        chunks = _listen(feed, heard, told, stdin, deadline)
    except BaseException:
        os.kill(child, 9)
        os.waitpid(child, 0)
        raise
    _child, status = os.waitpid(child, 0)
    return Done(os.waitstatus_to_exitcode(status), *chunks)


def _found(name: str, env: Mapping[str, str]) -> str:
    """Return where a program is, by the PATH that it will have itself, not by ours."""
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    places = (os.path.join(folder or ".", name) for folder in folders)
    return next((path for path in places if os.access(path, os.X_OK)), f"./{name}/missing")


def _pipe() -> tuple[int, int]:
    """Return a pipe whose ends are none of the child's first three, should ours be closed."""
    from fcntl import F_DUPFD_CLOEXEC, fcntl

    low = os.pipe()
    high = tuple(fcntl(fd, F_DUPFD_CLOEXEC, 3) if fd < 3 else fd for fd in low)
    for fd in low:
        if fd < 3:
            os.close(fd)
    return high[0], high[1]


def _listen(
    feed: int, heard: int, told: int, stdin: bytes, deadline: float | None
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
            left = None if deadline is None else (deadline - time.monotonic()) * 1000
            if left is not None and left <= 0:
                raise TimeoutError
            for fd, _event in poll.poll(left):
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
