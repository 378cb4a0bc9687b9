"""What several verbs read: standard input and `--limit`. Standard input is read nowhere else."""

from __future__ import annotations

import sys

from memtool.errors import MemtoolError
from memtool.store.context import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass


def read_stdin(most: int, *, is_cut: bool = False) -> bytes:
    """Return what is on stdin; `is_cut` takes no more than that much of it, and nothing if closed.

    Raises:
        MemtoolError: stdin is closed, or holds more bytes than that.
    """
    if is_cut:
        return sys.stdin.buffer.read(most) if sys.stdin is not None else b""
    if sys.stdin is None:
        raise MemtoolError("there is no stdin to read from", hint="give the text as an argument")
    if sys.stdin.isatty():
        from memtool.store.progress import paused  # somebody is writing it here and now

        with paused():
            data = sys.stdin.buffer.read(most + 1)
    else:
        data = sys.stdin.buffer.read(most + 1)
    if len(data) > most:
        raise MemtoolError(
            f"what is on stdin is longer than {most:,} bytes",
            hint="split it, or keep it in a file and name that with --source file:PATH",
            code="too-large",
        )
    return data


def body_text(given: str) -> str:
    """Return the text of a memory as it is given, or what is on stdin where that is `-`.

    Raises:
        MemtoolError: stdin is closed, too long, or not UTF-8.
    """
    if given != "-":
        return given
    from memtool.memory import document

    data = read_stdin(document.MAX_BYTES)
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise MemtoolError(
            f"the text on stdin is not UTF-8, the first odd byte is in line {line}",
            hint="iconv -f ISO-8859-1 -t UTF-8 converts such a text",
            code="not-utf8",
        ) from None


ALL = 2**31 - 1
"""More than any store holds: what `--limit 0` means, in every verb."""


def limit_of(context: Context, limit: int | None) -> int:
    """Return `--limit`, by default the setting search.limit."""
    return context.settings.count("search.limit") if limit is None else most_of(limit)


def most_of(limit: int) -> int:
    """Return how many a `--limit` admits: 0 is all."""
    return limit or ALL


def take_over(context: Context, so: str = "answers are not counted") -> None:
    """Take the latest notes over into the ledger; where that is not possible, note what follows."""
    from memtool.store import ledger  # imports SQLite

    try:
        if ledger.fold(context.repository.cache_dir):
            context.notes.append(
                f"{ledger.NAME} was damaged and is {ledger.ASIDE} now: what is counted begins again"
            )
    except MemtoolError as error:
        context.notes.append(f"the latest {so}: {error}")
