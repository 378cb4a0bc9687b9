"""Input that several verbs share: standard input, which only this module reads, and `--limit`."""

from __future__ import annotations

import sys

from memtool.errors import MemtoolError
from memtool.store.context import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass


def read_stdin(max_bytes: int, *, is_cut: bool = False) -> bytes:
    """Read standard input.

    With `is_cut` the input is cut at `max_bytes`, and empty if stdin is closed.

    Raises:
        MemtoolError: without `is_cut`, if stdin is closed or has more than `max_bytes`.
    """
    if is_cut:
        return sys.stdin.buffer.read(max_bytes) if sys.stdin is not None else b""
    if sys.stdin is None:
        raise MemtoolError("cannot read stdin: it is closed", hint="pass the text as an argument")
    if sys.stdin.isatty():
        from memtool.store.progress import paused  # the user is typing

        with paused():
            data = sys.stdin.buffer.read(max_bytes + 1)
    else:
        data = sys.stdin.buffer.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise MemtoolError(
            f"stdin is longer than {max_bytes:,} bytes",
            hint="split it, or put it into a file and cite that with --source file:PATH",
            code="too-large",
        )
    return data


def read_body(argument: str) -> str:
    """Return the text of a memory: the argument itself, or standard input for `-`.

    Raises:
        MemtoolError: stdin is closed, too long, or not UTF-8.
    """
    if argument != "-":
        return argument
    from memtool.memory import document

    data = read_stdin(document.MAX_BYTES)
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise MemtoolError(
            f"stdin is not UTF-8 (line {line})",
            hint="iconv -f ISO-8859-1 -t UTF-8",
            code="not-utf8",
        ) from None


NO_LIMIT = 2**31 - 1
"""The value of `--limit 0` in every verb: more than any store has."""


def resolve_limit(context: Context, limit: int | None) -> int:
    """Return the number of rows for `--limit`; None means the setting search.limit, 0 means all."""
    return context.settings.count("search.limit") if limit is None else all_if_zero(limit)


def all_if_zero(limit: int) -> int:
    """Return the number of rows for a `--limit`; 0 means all."""
    return limit or NO_LIMIT


def fold_usage_log(context: Context, consequence: str = "answers are not counted") -> None:
    """Move the latest usage notes into the ledger; if that fails, note the `consequence`.

    Words of searches are deleted if the user does not want them to be kept any more.
    """
    from memtool.store import ledger, usage_log  # imports SQLite

    directory = context.repository.cache_dir
    try:
        is_new = ledger.fold(directory)
        if not usage_log.has_words(context):
            ledger.delete_words(directory)
        if is_new:
            context.notes.append(
                f"{ledger.NAME} was damaged and renamed to {ledger.BROKEN_NAME}: "
                "counting starts again"
            )
    except MemtoolError as error:
        context.notes.append(f"the latest {consequence}: {error}")
