"""The error boundary: where whatever goes wrong becomes a refusal.

There are two, and nothing else catches everything: a process ends with its first error, while a
server refuses one request and goes on.
"""

from __future__ import annotations

import os
import time

from memtool.calls import output
from memtool.errors import MemtoolError, reason_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Answer = TypeVar("Answer")


def run_process(
    work: Callable[[], Answer], failed: Callable[[Exception | KeyboardInterrupt], Answer]
) -> Answer:
    """Return the answer of a process, or what `failed` makes of its error."""
    try:
        return work()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # the boundary
        return failed(error)


def answer_request(
    work: Callable[[], Answer],
    refused: Callable[[MemtoolError], Answer],
    *,
    log_as: tuple[str, str] | None = None,
    protocol_error: type[Exception] | tuple[()] = (),
) -> Answer:
    """Return the answer of a request, or what `refused` makes of its error; a bug is one, too.

    Args:
        work: answers the request.
        refused: returns, or raises, what is sent in place of an answer.
        log_as: component and operation for the log; None for a request that is not logged.
        protocol_error: what the transport sends by itself.
    """
    began, code = time.perf_counter(), ""
    try:
        return work()
    except protocol_error:
        raise
    except Exception as error:  # noqa: BLE001  # the boundary
        refusal = as_refusal(error)
        code = refusal.code
        return refused(refusal)
    finally:
        if log_as is not None:
            output.log(*log_as, began, error=code)


def as_refusal(error: Exception) -> MemtoolError:
    """Return an error as the one that users see; of a bug, the traceback goes to a log file."""
    return error if isinstance(error, MemtoolError) else _bug(error)


def _bug(error: Exception) -> MemtoolError:
    """Write the traceback to a log file and return an error that says where it is.

    A disk that is full or broken is no bug of ours, wherever it shows.
    """
    import errno

    full = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
    if isinstance(error, OSError) and (error.errno in full or "temporary dir" in str(error)):
        where = f" ({error.filename})" if error.filename else ""
        return MemtoolError(
            f"the disk refuses: {reason_of(error)}{where}",
            hint="df -h . /tmp shows what is full; TMPDIR names another place for temporary files",
            code="disk",
        )
    import tempfile
    import traceback

    try:
        with tempfile.NamedTemporaryFile(
            "w",
            prefix="memtool-bug-",
            suffix=".log",
            delete=False,
            encoding="utf-8",
            errors="backslashreplace",
        ) as log:
            log.write("".join(traceback.format_exception(error)))
        where = f"the details are in {log.name}; please report them"
    except OSError:
        where = "the log could not be written; MEMTOOL_DEBUG=1 shows the details"
    if os.environ.get("MEMTOOL_DEBUG"):
        traceback.print_exception(error)
    return MemtoolError(
        f"a bug: {type(error).__name__}: {error}",
        hint=where,
        code="bug",
        exit_code=3,
        recoverable=False,
    )
