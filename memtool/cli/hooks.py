"""The entry point of `memtool hook`: an agent host never sees an error.

Whatever happens, stdout gets the answer or the host's empty answer, and the exit code is 0: for
some hosts any other code refuses the user's prompt. After two seconds the empty answer is written.
Failures are written to `hook.log` if the repository is known.
"""

from __future__ import annotations

import os
import sys
import time

from memtool.calls import boundary, output
from memtool.commands import hook
from memtool.errors import MemtoolError
from memtool.store import process
from memtool.store.deadline import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from memtool.store.context import Context

LIMIT_S = 2.0
LOCAL_SHARE = 0.25
"""Share of the limit that is reserved for the local answer: no waiting for other repositories."""
MIN_WORK_S = LIMIT_S / 8
"""CPU seconds from which a late call counts as slow; with less it only waited."""
GRACE_S = 0.5
"""Time after the first interrupt until the process ends immediately."""
EXPECTED_CODES = frozenset({"no-memory", "no-repository", "no-directory"})
"""Codes that are not failures: the hook runs in all projects, also in those without memories."""


class _TimeLimitError(BaseException):
    """The time limit is over. Only the boundary may catch this."""


class _HostCall:
    """One call of a host: its arguments, its repository once known, and its single answer."""

    def __init__(self, args: Sequence[str]) -> None:
        self.args = list(args)
        self.began = time.perf_counter()
        self.deadline = Deadline(LIMIT_S * (1 - LOCAL_SHARE))
        self.context: Context | None = None
        self.session = ""
        self.refused_cache = ""
        """The user's own cache, for the note that git refuses the repository; else empty."""
        self.faults: list[str] = []
        """Environment variables that had to be ignored, each as a sentence."""
        self._empty_answer = hook.find_empty_answer(self.args[1:3])
        self._is_answered = False

    def answer(self, text: str | None = None) -> None:
        """Write a text, or the empty answer, unless an answer was written before."""
        if not self._is_answered:
            self._is_answered = True
            output.write(self._empty_answer if text is None else text)

    def give_up(self) -> None:
        """Write the empty answer without Python's stream, which may be busy, and end."""
        if not self._is_answered:
            self._is_answered = True
            os.write(1, self._empty_answer.encode())
        os._exit(0)


def main(args: Sequence[str]) -> int:
    """Answer `hook HOST EVENT` and return 0; after the limit interrupt, after the grace end."""
    call = _HostCall(args)
    alarms: list[int] = []

    def on_alarm(_number: int, _frame: Any) -> None:
        alarms.append(1)
        if len(alarms) > 1:
            call.give_up()
        raise _TimeLimitError

    old_handler = process.set_alarm(on_alarm, LIMIT_S, GRACE_S)
    try:
        failure = _attempt(call)
        call.answer()
        code = "hook-failed" if failure else ""
        output.log("hook", " ".join(call.args[1:3]), call.began, call.session, code)
        if failure:
            _report_failure(call, failure)
    except _TimeLimitError:  # while reporting the failure
        pass
    finally:
        process.end_alarm(old_handler)
    return 0


def _attempt(call: _HostCall) -> str:
    """Answer, and return the failure, empty for none."""

    def work() -> str:
        _answer(call)
        return "; ".join(call.faults)

    try:
        return boundary.run_process(work, _describe_failure)
    except _TimeLimitError:
        if call.context is not None and time.process_time() >= MIN_WORK_S:
            hook.finish_in_background(call.context)
        return f"no answer within {LIMIT_S:g} s"


def _describe_failure(error: Exception | KeyboardInterrupt) -> str:
    """Return the text of a failure for `hook.log`; empty if the error is not a failure."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, MemtoolError):
        return "" if error.code in EXPECTED_CODES else error.message
    import traceback  # a bug of ours must not stop the agent

    return "".join(traceback.format_exception(error))


def _answer(call: _HostCall) -> None:
    from memtool.cli import arguments

    parsed = arguments.parse(call.args)
    if isinstance(parsed, arguments.HelpPage):
        from memtool.cli import manual

        call.answer(manual.render_page(parsed))
        return
    if os.environ.get("MEMTOOL_OFF"):
        call.answer()
        return
    hook_event = hook.read_event(parsed.options["input"])
    call.session = hook_event.session
    host, event = parsed.positional
    is_dry = parsed.options["dry_run"]
    place = hook_event.cwd or parsed.directory
    try:
        context = call.context = _open(call, place)
    except MemtoolError as error:
        call.refused_cache = _find_cache_if_refused(place, error)
        if call.refused_cache and not is_dry:
            call.answer(
                hook.foreign_repository_message(host, event, hook_event, call.refused_cache) or None
            )
        raise
    context.caller.deadline = call.deadline
    try:
        value = hook.answer_event(context, host, event, hook_event, is_dry=is_dry)
    except MemtoolError as error:
        if not is_dry:
            call.answer(
                hook.settings_error_message(context, host, event, hook_event, error) or None
            )
        raise
    call.answer(output.to_json(value) if parsed.as_json else value.answer)
    from memtool.commands import _record  # only after the answer was written

    elapsed_ms = (time.perf_counter() - call.began) * 1000
    _record.record_answer(context, "hook", value, elapsed_ms)
    shown = ", ".join(item.id for item in value.items) or "nothing"
    hook.log_call(context.repository.cache_dir, call.args, f"{shown} in {elapsed_ms:.0f} ms")


def _find_cache_if_refused(directory: str, error: MemtoolError) -> str:
    """Return the user's own cache if git refuses a repository with memories, else empty."""
    from memtool.store import config, files, git, repository  # hardly any call fails here

    if not isinstance(error, git.GitError) or not error.is_foreign:
        return ""
    top = repository.find_worktree_above(directory)
    names = (config.DEFAULT_DIRECTORY, files.POINTER_NAME)
    if not top or not any(os.path.lexists(os.path.join(top, name)) for name in names):
        return ""
    return repository.find_user_cache(os.environ)


def _open(call: _HostCall, directory: str) -> Context:
    """Open the repository. An environment variable with an invalid value counts as not set.

    A switch counts as off, which shares and starts less than on.
    """
    from memtool.store.context import Context
    from memtool.store.repository import SWITCHES, VariableError, check_choices

    env = dict(os.environ)
    while True:
        try:
            check_choices(env)
            return Context.at(directory, env)
        except VariableError as error:
            call.faults.append(error.message)
            if error.name in SWITCHES:
                env[error.name] = "off"
            else:
                del env[error.name]


def _report_failure(call: _HostCall, failure: str) -> None:
    """Log a failure in the repository concerned, and show it if stderr is a terminal."""
    if sys.stderr is not None and (sys.stderr.isatty() or os.environ.get("MEMTOOL_DEBUG")):
        output.tell(f"memtool: {output.make_visible(failure)}")
    if not hook.is_logging_failures():
        return
    if call.refused_cache:
        hook.log_call(call.refused_cache, call.args, failure, is_failure=True)
        return
    try:
        context = call.context
        if context is None:
            from memtool.store.context import Context

            context = Context.at(".", os.environ)
        if os.path.isdir(os.path.join(context.repository.top, context.directory)):
            hook.log_call(context.repository.cache_dir, call.args, failure, is_failure=True)
            from memtool.commands import _record

            _record.record_failure(context)
    except MemtoolError:
        return
