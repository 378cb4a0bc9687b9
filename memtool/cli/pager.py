"""The pager: at a terminal, text that is longer than it is shown as git shows its own.

The pager is `MEMTOOL_PAGER`, else that of git: `GIT_PAGER`, `core.pager`, `PAGER`, or less. `cat`
or an empty value, and `--no-pager`, switch it off.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from memtool.store.git import Git

VARIABLE = "MEMTOOL_PAGER"
DEFAULTS = {"LESS": "FRX", "LV": "-c"}
"""Set if the user has not set them, as git does: colours, and no pager for a single screen."""
UNPAGED = ("config", "demo", "export", "hook", "inject", "schema")
"""Verbs whose text is for a program or a file, or never long."""


def find_pager(git: Git, env: Mapping[str, str]) -> str:
    """Return the command of the user's pager, empty for none; in the order of git(1)."""
    configured = None
    if VARIABLE not in env and "GIT_PAGER" not in env:
        # The last value is our own: git is run without a pager here.
        *values, _own = git.line("config", "--get-all", "core.pager", allowed=(0, 1)).split("\n")
        configured = values[-1] if values else None
    chosen = (env.get(VARIABLE), env.get("GIT_PAGER"), configured, env.get("PAGER"), "less")
    command = next(name for name in chosen if name is not None).strip()
    return "" if command == "cat" else command


def is_long(text: str, height: int) -> bool:
    """Return whether a text does not fit on a terminal of some lines, with the prompt below."""
    return text.count("\n") >= height


def show(text: str, git: Git, env: Mapping[str, str]) -> bool:
    """Show a long text in the pager; return False if there is none, or the text is short.

    It returns when the user leaves the pager, so that notes come below the text.
    """
    if sys.stdout is None or not sys.stdout.isatty():
        return False
    try:
        height = os.get_terminal_size(sys.stdout.fileno()).lines
    except OSError:
        return False
    # A terminal without a size, as of a test or an editor, reports 0 lines.
    command = find_pager(git, env) if height and is_long(text, height) else ""
    return bool(command) and _run(command, text, env)


def _run(command: str, text: str, env: Mapping[str, str]) -> bool:
    import signal
    import subprocess

    sys.stdout.flush()
    try:
        # The user's own setting, which git runs by the shell as well: `less -F | cat` is allowed.
        process = subprocess.Popen(
            ["sh", "-c", command], stdin=subprocess.PIPE, env=DEFAULTS | dict(env)
        )
    except OSError:
        return False
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the pager
    try:
        process.communicate(text.encode(errors="backslashreplace"))
    except BrokenPipeError:
        pass
    finally:
        signal.signal(signal.SIGINT, before)
    return process.returncode not in (126, 127)  # the shell did not find the pager
