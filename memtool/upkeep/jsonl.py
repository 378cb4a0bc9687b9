"""JSON lines: the objects of a file, one a line, read with bounds, plain or compressed by gzip."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from io import BufferedReader
from typing import Any

from memtool.errors import MemtoolError
from memtool.memory.problem import Problem
from memtool.upkeep import originals
from memtool.upkeep.originals import Original

MAX_LINE_BYTES = 4 << 20
"""A line above this length is passed over unread; a memory holds 64 KB."""
_GZIP = b"\x1f\x8b"


def opened(source: Original) -> tuple[Original, BufferedReader]:
    """Open a file of lines. The original then says whether it is compressed.

    Raises:
        MemtoolError: it is no file, or may not be read.
    """
    try:
        file = originals.open_plain(source)
    except OSError as error:
        raise _no_lines(source, f"cannot be read: {error.strerror}") from None
    return source.replace(is_compressed=file.peek(2)[:2] == _GZIP), file


def objects(source: Original, plain: BufferedReader) -> Iterator[tuple[int, Any]]:
    """Yield each line that is not blank with its number: a dict, or the problem that it is none.

    Raises:
        MemtoolError: the first line shows that the file is something else.
    """
    for number, line in _lines(source, plain):
        if isinstance(line, Problem):
            yield number, line
            continue
        if number == 1:
            _refuse_other(source, line)
        try:
            row = json.loads(line)
            fault = "" if isinstance(row, dict) else "it is another kind of value"
        except (ValueError, RecursionError) as error:
            row, fault = None, str(getattr(error, "msg", "it cannot be read"))
        yield (
            number,
            _problem(source, number, "not-json", f"it is no JSON object: {fault}")
            if fault
            else row,
        )


def _lines(source: Original, plain: BufferedReader) -> Iterator[tuple[int, bytes | Problem]]:
    file: BufferedReader | gzip.GzipFile = plain
    if source.is_compressed:
        file = gzip.GzipFile(fileobj=plain)
    number = 0
    while True:
        number += 1
        try:
            line = file.readline(MAX_LINE_BYTES + 1)
            is_cut = len(line) > MAX_LINE_BYTES and not line.endswith(b"\n")
            rest = line
            while is_cut and rest and not rest.endswith(b"\n"):
                rest = file.readline(MAX_LINE_BYTES)
        except (OSError, EOFError, zlib.error):  # what gzip says of broken files
            what = "the compressed file is broken here, the rest is lost"
            yield number, _problem(source, number, "unreadable", what)
            return
        if not line:
            return
        if is_cut:
            what = f"the line is longer than {MAX_LINE_BYTES:,} bytes"
            yield number, _problem(source, number, "too-large", what)
        elif line.strip():
            yield number, line


def _problem(source: Original, number: int, code: str, what: str) -> Problem:
    return Problem(source.shown, number, code, what, "correct or remove the line")


def _refuse_other(source: Original, line: bytes) -> None:
    try:
        is_text = "\0" not in line.decode()
    except UnicodeDecodeError:
        is_text = False
    if not is_text:
        raise _no_lines(source, "is no UTF-8 text")
    if line.lstrip().startswith(b"["):
        hint = f"jq -c '.[]' {source.shown} > records.jsonl makes lines of it"
        raise _no_lines(source, "is one JSON list", hint)


def _no_lines(source: Original, what: str, hint: str = "") -> MemtoolError:
    return MemtoolError(
        f"{source.shown} {what}",
        hint=hint or "name a file with one JSON object a line, plain or .gz",
        code="no-file",
    )
