"""The entry point of `memtool hook`: an agent host never sees an error.

Whatever happens, stdout holds the answer or the host's empty one, and the exit code is 0: to some
hosts any other means that the prompt of the user is refused. After two seconds the empty answer is
given. What went wrong is written to `hook.log` where the repository is known.
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
OWN_SHARE = 0.25
"""Share of the limit in which no other repository is waited for, so that the local answer is given.
"""
WORK_S = LIMIT_S / 8
"""Seconds of work from which on a call that is late was slow, and did not only wait."""
GRACE_S = 0.5
"""After the limit a call is interrupted, and once more after this time it ends on the spot."""
NORMAL = frozenset({"no-memory", "no-repository", "no-directory"})
"""Codes of what is no failure: memtool is installed for all projects, and this one has no use."""


class _TooLate(BaseException):
    """The time is over; nothing may catch it but the boundary."""


class _HostCall:
    """One call of a host: its words, the repository once it is known, and its one answer."""

    def __init__(self, args: Sequence[str]) -> None:
        self.args = list(args)
        self.began = time.perf_counter()
        self.deadline = Deadline(LIMIT_S * (1 - OWN_SHARE))
        self.context: Context | None = None
        self.session = ""
        self.refused_cache = ""
        """Where it is noted that git refuses the repository: in the user's own cache."""
        self.faults: list[str] = []
        """Variables that had to be passed over, each as a sentence."""
        self._silence = hook.silence(self.args[1:3])
        self._is_answered = False

    def answer(self, text: str | None = None) -> None:
        """Write a text, or the empty answer, unless something was written before."""
        if not self._is_answered:
            self._is_answered = True
            output.write(self._silence if text is None else text)

    def give_up(self) -> None:
        """Write the empty answer without Python's own stream, which may be in use; and end."""
        if not self._is_answered:
            self._is_answered = True
            os.write(1, self._silence.encode())
        os._exit(0)


def main(args: Sequence[str]) -> int:
    """Answer `hook HOST EVENT`, and return 0; interrupted after the limit, at once after that."""
    call = _HostCall(args)
    rings: list[int] = []

    def ring(_number: int, _frame: Any) -> None:
        rings.append(1)
        if len(rings) > 1:
            call.give_up()
        raise _TooLate

    before = process.set_alarm(ring, LIMIT_S, GRACE_S)
    try:
        failure = _attempt(call)
        call.answer()
        code = "hook-failed" if failure else ""
        output.log("hook", " ".join(call.args[1:3]), call.began, call.session, code)
        if failure:
            _complain(call, failure)
    except _TooLate:  # while it was complaining
        pass
    finally:
        process.end_alarm(before)
    return 0


def _attempt(call: _HostCall) -> str:
    """Answer, and return what went wrong; empty where nothing did."""

    def work() -> str:
        _answer(call)
        return "; ".join(call.faults)

    try:
        return boundary.run_process(work, _failure)
    except _TooLate:
        if call.context is not None and time.process_time() >= WORK_S:
            hook.finish_apart(call.context)
        return f"no answer within {LIMIT_S:g} s"


def _failure(error: Exception | KeyboardInterrupt) -> str:
    """Return what went wrong, for `hook.log`; empty for what is no failure."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, MemtoolError):
        return "" if error.code in NORMAL else error.message
    import traceback  # a bug of ours must not stop the agent

    return "".join(traceback.format_exception(error))


def _answer(call: _HostCall) -> None:
    from memtool.cli import arguments

    parsed = arguments.parse(call.args)
    if isinstance(parsed, arguments.HelpPage):
        from memtool.cli import manual

        call.answer(manual.text(parsed))
        return
    if os.environ.get("MEMTOOL_OFF"):
        call.answer()
        return
    given = hook.read(parsed.options["input"])
    call.session = given.session
    host, event = parsed.positional
    is_dry = parsed.options["dry_run"]
    place = given.cwd or parsed.directory
    try:
        context = call.context = _open(call, place)
    except MemtoolError as error:
        call.refused_cache = _cache_if_refused(place, error)
        if call.refused_cache and not is_dry:
            call.answer(hook.refusal(host, event, given, call.refused_cache) or None)
        raise
    context.caller.deadline = call.deadline
    try:
        value = hook.answered(context, host, event, given, is_dry=is_dry)
    except MemtoolError as error:
        if not is_dry:
            call.answer(hook.excuse(context, host, event, given, error) or None)
        raise
    call.answer(output.as_json(value) if parsed.as_json else value.answer)
    from memtool.commands import _record  # only now: the answer is out

    elapsed_ms = (time.perf_counter() - call.began) * 1000
    _record.note(context, "hook", value, elapsed_ms)
    shown = ", ".join(item.id for item in value.items) or "nothing"
    hook.log(context.repository.cache_dir, call.args, f"{shown} in {elapsed_ms:.0f} ms")


def _cache_if_refused(directory: str, error: MemtoolError) -> str:
    """Return the user's own cache where git refuses a repository that has memories, else empty."""
    from memtool.store import config, files, git, repository  # hardly any call fails here

    if not isinstance(error, git.GitError) or not error.is_foreign:
        return ""
    top = repository.worktree_above(directory)
    names = (config.DEFAULT_DIRECTORY, files.POINTER_NAME)
    if not top or not any(os.path.lexists(os.path.join(top, name)) for name in names):
        return ""
    return repository.user_cache(os.environ)


def _open(call: _HostCall, directory: str) -> Context:
    """Open the repository. A variable with a value that it cannot have counts as not set.

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


def _complain(call: _HostCall, failure: str) -> None:
    """Note what went wrong in the repository that it was about, and show a person at a terminal."""
    if sys.stderr is not None and (sys.stderr.isatty() or os.environ.get("MEMTOOL_DEBUG")):
        output.tell(f"memtool: {output.visible(failure)}")
    if not hook.is_logging_failures():
        return
    if call.refused_cache:
        hook.log(call.refused_cache, call.args, failure, is_failure=True)
        return
    try:
        context = call.context
        if context is None:
            from memtool.store.context import Context

            context = Context.at(".", os.environ)
        if os.path.isdir(os.path.join(context.repository.top, context.directory)):
            hook.log(context.repository.cache_dir, call.args, failure, is_failure=True)
            from memtool.commands import _record

            _record.note_failure(context)
    except MemtoolError:
        return
