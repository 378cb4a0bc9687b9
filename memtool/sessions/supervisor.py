"""The supervisor of one command: a program of its own, which ends all that the command started.

    python -I -S supervisor.py REPORT SECONDS DIRECTORY PROGRAM [ARGUMENT …]

It is the parent of whatever its children leave behind (on Linux), so that nothing outlives the
command, not what left its process group and ignores every signal that can be ignored. It ends the
command at its limit, and when its own standard input ends, since then nobody waits any more. Of the
network the command has loopback alone where the system lets a user take the rest away.

It imports the standard library alone and no module of memtool. What became of the command goes to
the file descriptor REPORT, a line each: `network off`, `unstarted ERRNO`, then `exit CODE`,
`signal NUMBER`, `limit` or `stopped`.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import struct
import sys
import time
from contextlib import suppress

PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWUSER, CLONE_NEWNET = 0x1000_0000, 0x4000_0000
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1
UNSTARTED = 127
KILLING_S = 10.0
"""Seconds in which all descendants are gone, unless somebody makes them faster than they go."""
PAUSE_S = 0.002


def main(args: list[str]) -> int:
    """Run a command to its end, report what became of it, and leave nothing of it behind."""
    report, limit_s, directory, argv = int(args[0]), float(args[1]), args[2], args[3:]
    os.set_inheritable(report, False)
    _adopt()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # whoever waits decides, and closes our stdin
    child = os.fork()
    if child == 0:
        _become(report, directory, argv)
    outcome = _watched(child, woken, limit_s)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    _end_all()
    os.write(report, f"{outcome}\n".encode())
    return 0


def _adopt() -> None:
    """Become the parent of all orphans among the descendants, where the system knows that."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _become(report: int, directory: str, argv: list[str]) -> None:
    """Turn this process into the command, in a session of its own."""
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        if _has_left_network():
            os.write(report, b"network off\n")
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        nowhere = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nowhere, 0)
        os.chdir(directory)
        os.execvp(argv[0], argv)  # noqa: S606  # there is to be none
    except OSError as error:
        os.write(report, f"unstarted {error.errno}\n".encode())
    finally:
        os._exit(UNSTARTED)


def _has_left_network() -> bool:
    """Leave the network for one that has loopback alone; tell whether that was possible.

    The user is the same inside as outside, so that rights to files are what they were.
    """
    user, group = os.getuid(), os.getgid()
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
            return False
    except (OSError, AttributeError):
        return False
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with suppress(OSError), open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    import fcntl
    import socket

    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        fcntl.ioctl(end, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    return True


def _watched(child: int, woken: int, limit_s: float) -> str:
    """Wait until the command has ended, its time is over, or nobody waits; return the outcome."""
    deadline = time.monotonic() + limit_s
    while True:
        status = _reaped(child)
        if status is not None:
            code = os.waitstatus_to_exitcode(status)
            return f"exit {code}" if code >= 0 else f"signal {-code}"
        left = deadline - time.monotonic()
        if left <= 0:
            return "limit"
        ready, _writable, _odd = select.select([0, woken], [], [], left)
        if 0 in ready and not os.read(0, 1):
            return "stopped"
        if woken in ready:
            os.read(woken, 4_096)


def _reaped(child: int) -> int | None:
    """Take note of all processes that have ended; return the status of one, None while it runs."""
    found = None
    with suppress(ChildProcessError):
        while True:
            id_, status = os.waitpid(-1, os.WNOHANG)
            if id_ == 0:
                break
            if id_ == child:
                found = status
    return found


def _end_all() -> None:
    """Kill children until there are none: those of a child that was killed become ours."""
    deadline = time.monotonic() + KILLING_S
    while time.monotonic() < deadline:
        for id_ in _children():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(id_, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(PAUSE_S)


def _children() -> list[int]:
    """Return our children; without /proc there are none that could be found."""
    own = str(os.getpid())
    found = []
    with suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # The name of a program may hold anything, so what follows it is looked at.
                fields = file.read().rpartition(b")")[2].split()
                if fields[1].decode() == own:
                    found.append(int(name))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
