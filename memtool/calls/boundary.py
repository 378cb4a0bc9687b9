"""The error boundaries: any exception becomes a `MemtoolError`.

There are two, and no other code catches everything: a process ends with its first error, while a
server refuses one request and continues.
"""

from __future__ import annotations

import os
import time

from memtool.calls import output
from memtool.errors import MemtoolError, find_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Answer = TypeVar("Answer")


def run_process(
    work: Callable[[], Answer], failed: Callable[[Exception | KeyboardInterrupt], Answer]
) -> Answer:
    """Return the result of `work`; if it raises, that of `failed` for the error."""
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
    """Return the answer to a request; if that raises, also by a bug, the result of `refused`.

    Args:
        work: answers the request.
        refused: returns or raises the error response.
        log_as: component and operation for the log; None to log nothing.
        protocol_error: exceptions to pass on, since the transport handles them.
    """
    began, code = time.perf_counter(), ""
    try:
        return work()
    except protocol_error:
        raise
    except Exception as error:  # noqa: BLE001  # the boundary
        refusal = to_refusal(error)
        code = refusal.code
        return refused(refusal)
    finally:
        if log_as is not None:
            output.log(*log_as, began, error=code)


def to_refusal(error: Exception) -> MemtoolError:
    """Convert an error for users; the traceback of a bug goes to a log file."""
    return error if isinstance(error, MemtoolError) else _log_bug(error)


def _log_bug(error: Exception) -> MemtoolError:
    """Write the traceback to a log file, and build an error that names the file."""
    # A full or broken disk is not a bug, wherever the error occurs.
    import errno

    full = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
    if isinstance(error, OSError) and (error.errno in full or "temporary dir" in str(error)):
        where = f" ({error.filename})" if error.filename else ""
        return MemtoolError(
            f"the disk refused: {find_reason(error)}{where}",
            hint="df -h . /tmp\nTMPDIR sets another directory for temporary files",
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
