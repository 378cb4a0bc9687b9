"""The entry point: arguments to a verb, its value to stdout, and the one error boundary.

Exit codes: 0 fine, 1 problems found, 2 user, settings or git error, 3 a bug, 130 interrupted.
A closed pipe is success.
"""

from __future__ import annotations

import os
import sys

from memtool.errors import MemtoolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

EXIT_BUG = 3
EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return the exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    wants_json = "--json" in args
    try:
        code = _run(args)
        sys.stdout.flush()
    except MemtoolError as error:
        _tell(error, wants_json=wants_json)
        return error.exit_code
    except BrokenPipeError:
        # The reader has seen enough. Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001  # the one boundary: a traceback is for the log
        return _bug(error, wants_json=wants_json)
    return code


def _run(args: list[str]) -> int:
    from memtool.cli import arguments, output
    from memtool.cli.signature import interface

    call = arguments.parse(args)
    if isinstance(call, str):
        sys.stdout.write(call)
        return 0
    from memtool.workspace import Workspace

    workspace = Workspace.at(call.directory, os.environ)
    verb = interface(call.verb)
    value = verb.run(workspace, *call.positional, **call.options)
    text = output.as_json(value) if call.as_json else output.as_text(verb.render(value))
    output.write(text)
    for note in workspace.notes:
        sys.stderr.write(f"memtool: {output.visible(note)}\n")
    return int(getattr(value, "exit_code", 0))


def _tell(error: MemtoolError, *, wants_json: bool) -> None:
    from memtool.cli import output

    if wants_json:
        import time

        from memtool.memory import moments

        body = {
            "code": error.code,
            "message": error.message,
            "hint": error.hint,
            "recoverable": error.recoverable,
            "timestamp": moments.render(int(time.time())),
        }
        sys.stderr.write(output.as_json({"error": body}))
        return
    sys.stderr.write(f"memtool: {output.visible(error.message)}\n")
    if error.hint:
        sys.stderr.write(f"hint: {output.visible(error.hint)}\n")


def _bug(error: Exception, *, wants_json: bool) -> int:
    """Write the traceback to a log file and say where it is."""
    import tempfile
    import traceback

    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="memtool-bug-", suffix=".log", delete=False, encoding="utf-8"
        ) as log:
            log.write("".join(traceback.format_exception(error)))
        where = f"the details are in {log.name}; please report them"
    except OSError:
        where = "the log could not be written; MEMTOOL_DEBUG=1 shows the details"
    if os.environ.get("MEMTOOL_DEBUG"):
        traceback.print_exception(error)
    bug = MemtoolError(
        f"a bug: {type(error).__name__}: {error}", hint=where, code="bug", recoverable=False
    )
    _tell(bug, wants_json=wants_json)
    return EXIT_BUG
