"""The entry point: run the verb of a command line, its value to stdout, its error to stderr.

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
from memtool.store.cache import CorruptCacheError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, NoReturn, TypeVar

    from memtool.calls.bind import Call
    from memtool.commands._layout import Layout
    from memtool.store.context import Context

    Answer = TypeVar("Answer")

GC_THRESHOLD = 200_000
"""Allocated objects before the garbage collector runs."""


def command() -> NoReturn:
    """Run the command line of this process, and end the process."""
    # Python's tear-down takes as long as loading a dozen modules, so it is skipped: output is
    # flushed, and nothing else outlives a verb. The garbage collector rarely runs for that reason.
    import gc

    gc.set_threshold(GC_THRESHOLD)
    status = main()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):  # the reader is gone
            continue
    state = sys.modules.get("memtool.store.state")
    if state is not None:
        state.close_shared()
    os._exit(status)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return the exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    before, name, after = arguments.split_at_verb(args)
    if name in BOUNDARIES:
        boundary_module = __import__(BOUNDARIES[name], fromlist=["main"])
        return int(boundary_module.main([name, *after, *before]))
    return run(args)


BOUNDARIES = {"hook": "memtool.cli.hooks"}
"""Verbs with a boundary of their own: agents never see an error."""
SERVERS = {
    "completion": "memtool.cli.completion",
    "mcp": "memtool.mcp",
    "serve": "memtool.web",
    "site": "memtool.web",
}
"""Verbs that need a module of their own to serve them."""
NO_REPOSITORY = ("demo", "schema", "fleet status", "fleet sync", "fleet similar")
"""Verbs that also work without a repository."""


def run(args: list[str]) -> int:
    """Run one command line and return the exit code."""
    began, verb = time.perf_counter(), arguments.split_at_verb(args)[1]
    status, code = boundary.run_process(lambda: (_run(args), ""), lambda error: _end(error, args))
    output.log("cli", verb or "help", began, error=code)
    return status


def _end(error: Exception | KeyboardInterrupt, args: list[str]) -> tuple[int, str]:
    """Report an error; return the exit code and the code of the error."""
    if isinstance(error, KeyboardInterrupt):
        if arguments.split_at_verb(args)[1] not in SERVERS:  # servers usually end this way
            output.tell("memtool: interrupted", os.environ)
        return 130, "interrupted"
    refusal = boundary.to_refusal(error)
    _report(refusal, args)
    return refusal.exit_code, refusal.code


def _run(args: list[str]) -> int:
    began = time.perf_counter()
    call = arguments.parse(args)
    if isinstance(call, arguments.HelpPage):
        output.write(_render_page(call))
        return 0
    from memtool.store.repository import check_choices

    check_choices(os.environ)
    if call.face.name in SERVERS:  # opens repositories and writes stdout itself
        server = __import__(SERVERS[call.face.name], fromlist=["serve"])
        return int(server.serve(call, os.environ))
    context = _open_context(call)
    context.notes.extend(call.notes)
    context.caller.is_person = sys.stdout is not None and sys.stdout.isatty()

    layouts: list[Layout] = []

    def render(value: Any, layout: Layout) -> str | Iterator[str]:
        if call.as_json:
            return output.to_json(value)
        layouts[:] = [layout]
        text = call.face.render(value, layout)
        return output.to_text(text) if isinstance(text, str) else text

    value, text = _with_progress(
        call.face.name,
        lambda: run_verb(
            context, call.face, call.positional, call.options, render, width=output.find_width()
        ),
    )
    if not isinstance(text, str):
        _stream(context, text)
    else:
        _write(call, context, text)
    for layout in layouts:
        for report in layout.reports:
            output.tell(output.make_visible(report), os.environ, "report", end=" ")
    shorten = layouts[0].shorten if layouts else str
    for note in context.notes:
        output.tell(f"memtool: {output.make_visible(shorten(note))}", os.environ, "note")
    from memtool.commands import _record  # only after the answer was written

    verb = call.face.name.partition(" ")[0]
    _record.record_answer(context, verb, value, (time.perf_counter() - began) * 1000)
    return int(getattr(value, "exit_code", 0))


def _write(call: Call, context: Context, text: str) -> None:
    """Write an answer; at a terminal in colours, and a long one in the user's pager.

    A format that was asked for is for another program, and has no colours.
    """
    if not call.as_json and call.options.get("format") in (None, "", "text"):
        text = output.paint(text, sys.stdout, os.environ)
    may_page = call.may_page and context.caller.is_person and not call.as_json
    if not (may_page and _page(call, context, text)):
        output.write(text)


def _page(call: Call, context: Context, text: str) -> bool:
    """Show a long text in the pager; return False if it has to be written."""
    from memtool.cli import pager  # programs and agents never need it

    is_paged = call.face.name not in pager.UNPAGED
    return is_paged and pager.show(text, context.repository.git, os.environ)


def _with_progress(verb: str, answer: Callable[[], Answer]) -> Answer:
    """Answer; at a terminal, show after a second which verb is running."""
    if sys.stderr is None or not sys.stderr.isatty():
        return answer()
    from memtool.store.progress import Progress  # not for programs and agents

    with Progress(sys.stderr, verb):
        return answer()


def _stream(context: Context, parts: Iterator[str]) -> None:
    """Write an answer in parts, each as soon as it is made, until the reader closes the pipe.

    Raises:
        MemtoolError: a derived file is damaged; parts of the answer may be written already.
    """
    try:
        for part in parts:
            if not output.write(part):
                return
    except CorruptCacheError as error:
        derived.drop_all(context.repository)
        raise MemtoolError(
            f"the answer is incomplete: a derived file is damaged ({error})",
            hint="run the command again, which rebuilds the file",
            code="damaged",
        ) from None


def _render_page(page: arguments.HelpPage) -> str:
    if page.name == "version":
        from memtool.version import __version__

        return f"memtool {__version__}\n"
    from memtool.cli import manual

    return manual.render_page(page)


def _open_context(call: Call) -> Context:
    """Open the repository of a call, or the global one for verbs that need no repository."""
    from memtool.store.context import Context

    if call.is_global:
        return Context.at_global(os.environ)
    try:
        return Context.at(call.directory, os.environ)
    except MemtoolError as error:
        needs_none = call.options.get("user") or call.face.name in NO_REPOSITORY
        if error.code != "no-repository" or not needs_none:
            raise
        context = Context.at_global(os.environ)
        context.caller.cwd = os.path.abspath(call.directory)
        return context


def _report(error: MemtoolError, args: list[str]) -> None:
    if not arguments.wants_json(args):
        message, hint = error.shorten(error.message), error.shorten(error.hint)
        output.tell(f"memtool: {output.make_visible(message)}", os.environ, "error")
        for line in filter(None, hint.split("\n")):
            output.tell(f"hint: {output.make_visible(line)}", os.environ, "hint")
        return
    from memtool.memory import timestamps

    body = {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "recoverable": error.recoverable,
        "timestamp": timestamps.render(int(time.time())),
    }
    output.tell(output.to_json({"error": body}).rstrip("\n"))
