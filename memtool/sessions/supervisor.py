"""The supervisor of one command: a separate program that ends all processes of the command.

    python -I -S supervisor.py REPORT SECONDS DIRECTORY PROGRAM [ARGUMENT …]

On Linux it adopts orphaned descendants, so that no process outlives the command, even one that left
the process group and ignores signals. It ends the command at its time limit, and when its own
standard input closes, because then no caller is waiting. If the system lets a user do so, it cuts
the command off from the network except for loopback.

It imports only the standard library, no module of memtool. It reports to the file descriptor
REPORT, one line each: `network off`, `unstarted ERRNO`, then `exit CODE`, `signal NUMBER`, `limit`
or `stopped`.
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
"""Time to kill all descendants. It suffices unless they are started faster than they can be killed.
"""
PAUSE_S = 0.002


def main(args: list[str]) -> int:
    """Run a command to its end, report the outcome, and leave no process behind."""
    report, limit_s, directory, argv = int(args[0]), float(args[1]), args[2], args[3:]
    os.set_inheritable(report, False)
    _adopt()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # the caller decides, by closing our stdin
    child = os.fork()
    if child == 0:
        _become(report, directory, argv)
    outcome = _watch(child, woken, limit_s)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    _end_all()
    os.write(report, f"{outcome}\n".encode())
    return 0


def _adopt() -> None:
    """Adopt orphaned descendants, if the system supports it."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _become(report: int, directory: str, argv: list[str]) -> None:
    """Replace this process with the command, in a session of its own."""
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
        os.execvp(argv[0], argv)  # noqa: S606  # no shell wanted
    except OSError as error:
        os.write(report, f"unstarted {error.errno}\n".encode())
    finally:
        os._exit(UNSTARTED)


def _has_left_network() -> bool:
    """Move to a network with loopback only; return whether that worked.

    The user id stays the same inside, so file permissions do not change.
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


def _watch(child: int, woken: int, limit_s: float) -> str:
    """Wait until the command ends, reaches its limit, or the caller is gone; return the outcome."""
    deadline = time.monotonic() + limit_s
    while True:
        status = _reap(child)
        if status is not None:
            code = os.waitstatus_to_exitcode(status)
            return f"exit {code}" if code >= 0 else f"signal {-code}"
        time_left = deadline - time.monotonic()
        if time_left <= 0:
            return "limit"
        ready, _writable, _odd = select.select([0, woken], [], [], time_left)
        if 0 in ready and not os.read(0, 1):
            return "stopped"
        if woken in ready:
            os.read(woken, 4_096)


def _reap(child: int) -> int | None:
    """Reap all ended processes; return the child's status, None while it runs."""
    exit_status = None
    with suppress(ChildProcessError):
        while True:
            id_, status = os.waitpid(-1, os.WNOHANG)
            if id_ == 0:
                break
            if id_ == child:
                exit_status = status
    return exit_status


def _end_all() -> None:
    """Kill children until none are left: the children of a killed child become ours."""
    deadline = time.monotonic() + KILLING_S
    while time.monotonic() < deadline:
        for id_ in _list_children():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(id_, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(PAUSE_S)


def _list_children() -> list[int]:
    """Return the ids of our children; empty without /proc."""
    own = str(os.getpid())
    children = []
    with suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # A program's name may contain anything, so parse what follows it.
                fields = file.read().rpartition(b")")[2].split()
                if fields[1].decode() == own:
                    children.append(int(name))
    return children


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
