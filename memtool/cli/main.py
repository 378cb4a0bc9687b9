"""The entry point: one command line to a verb, its value to stdout, its error to stderr.

A closed pipe is success.
"""

from __future__ import annotations

import os
import sys
import time

from memtool.calls import boundary, output
from memtool.calls.verb import run_verb
from memtool.cli import arguments
from memtool.errors import MemtoolError
from memtool.store import derived
from memtool.store.cache import CorruptCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, NoReturn, TypeVar

    from memtool.calls.bind import Call
    from memtool.store.context import Context

    Answer = TypeVar("Answer")

GARBAGE = 200_000
"""Objects that may be made before the garbage collector looks for cycles among them."""


def command() -> NoReturn:
    """Run the command line of this process, and end it.

    It leaves without Python's tear-down, which takes as long as loading a dozen modules; what was
    written is flushed, and nothing else outlives a verb. For the same reason the garbage collector
    hardly runs.
    """
    import gc

    gc.set_threshold(GARBAGE)
    status = main()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):  # nobody is left to read it
            continue
    state = sys.modules.get("memtool.store.state")
    if state is not None:
        state.close_shared()
    os._exit(status)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return the exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    before, name, after = arguments.split(args)
    if name == "hook":
        from memtool.cli import hooks  # a boundary of its own: agents never see an error

        return hooks.main([name, *after, *before])
    return run(args)


SURFACES = {
    "completion": "memtool.cli.completion",
    "mcp": "memtool.mcp",
    "serve": "memtool.web",
    "site": "memtool.web",
}
"""Verbs that need more than a verb knows, and the module that serves them."""
NO_REPOSITORY = ("demo", "schema", "fleet status", "fleet sync", "fleet similar")
"""Verbs that answer without a repository, too."""


def run(args: list[str]) -> int:
    """Run one command line and return the exit code."""
    began, verb = time.perf_counter(), arguments.split(args)[1]
    status, code = boundary.run_process(lambda: (_run(args), ""), lambda error: _end(error, args))
    output.log("cli", verb or "help", began, error=code)
    return status


def _end(error: Exception | KeyboardInterrupt, args: list[str]) -> tuple[int, str]:
    """Report an error; return the exit code and the code of the error."""
    if isinstance(error, KeyboardInterrupt):
        if arguments.split(args)[1] not in SURFACES:  # of a server it is the usual end
            output.tell("memtool: interrupted", os.environ)
        return 130, "interrupted"
    refusal = boundary.as_refusal(error)
    _report(refusal, args)
    return refusal.exit_code, refusal.code


def _run(args: list[str]) -> int:
    began = time.perf_counter()
    call = arguments.parse(args)
    if isinstance(call, arguments.HelpPage):
        output.write(_page(call))
        return 0
    from memtool.store.repository import check_choices

    check_choices(os.environ)
    if call.face.name in SURFACES:  # it opens repositories itself, and stdout is its own
        surface = __import__(SURFACES[call.face.name], fromlist=["serve"])
        return int(surface.serve(call, os.environ))
    context = _opened(call)
    context.caller.is_person = sys.stdout is not None and sys.stdout.isatty()

    def shape(value: Any) -> str | Iterator[str]:
        if call.as_json:
            return output.as_json(value)
        text = call.face.render(value)
        return output.as_text(text) if isinstance(text, str) else text

    value, text = _timed(
        call.face.name,
        lambda: run_verb(context, call.face, call.positional, call.options, shape),
    )
    if not isinstance(text, str):
        _stream(context, text)
    else:
        output.write(text if call.as_json else output.painted(text, sys.stdout, os.environ))
    for note in context.notes:
        output.tell(f"memtool: {output.visible(note)}", os.environ, "note")
    from memtool.commands import _record  # only now: the answer is out

    verb = call.face.name.partition(" ")[0]
    _record.note(context, verb, value, (time.perf_counter() - began) * 1000)
    return int(getattr(value, "exit_code", 0))


def _timed(verb: str, answer: Callable[[], Answer]) -> Answer:
    """Answer; where a terminal waits for over a second it is shown which verb is at work."""
    if sys.stderr is None or not sys.stderr.isatty():
        return answer()
    from memtool.store.progress import Progress  # programs and agents see none

    with Progress(sys.stderr, verb):
        return answer()


def _stream(context: Context, parts: Iterator[str]) -> None:
    """Write an answer of many parts, each as soon as it is made, until nobody reads it any more.

    Raises:
        MemtoolError: a derived file turns out to be damaged; parts may be written by then.
    """
    try:
        for part in parts:
            if not output.write(part):
                return
    except CorruptCache as error:
        derived.drop(context.repository)
        raise MemtoolError(
            f"a derived file is damaged ({error}), so the answer is cut off",
            hint="ask again: the next command makes the derived file anew",
            code="damaged",
        ) from None


def _page(page: arguments.HelpPage) -> str:
    if page.name == "version":
        from memtool.version import __version__

        return f"memtool {__version__}\n"
    from memtool.cli import manual

    return manual.text(page)


def _opened(call: Call) -> Context:
    """Open the repository of a call; what holds for all projects of a user needs none."""
    from memtool.store.context import Context

    if call.is_global:
        return Context.at_global(os.environ)
    try:
        return Context.at(call.directory, os.environ)
    except MemtoolError as error:
        needs_none = call.options.get("user") or call.face.name in NO_REPOSITORY
        if error.code != "no-repository" or not needs_none:
            raise
        found = Context.at_global(os.environ)
        found.caller.cwd = os.path.abspath(call.directory)
        return found


def _report(error: MemtoolError, args: list[str]) -> None:
    if not arguments.wants_json(args):
        output.tell(f"memtool: {output.visible(error.message)}", os.environ, "error")
        if error.hint:
            output.tell(f"hint: {output.visible(error.hint)}", os.environ, "hint")
        return
    from memtool.memory import timestamps

    body = {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "recoverable": error.recoverable,
        "timestamp": timestamps.render(int(time.time())),
    }
    output.tell(output.as_json({"error": body}).rstrip("\n"))
