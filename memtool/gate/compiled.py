"""Compiled patterns, kept beside Python's byte-code: nobody needs them compiled twice.

`re` turns a pattern into numbers, and the interpreter itself runs these. To import `re` and to
compile what one memory needs takes more instructions than Python's own start; to take the numbers
from here takes a thirtieth of that. They are found by the source of the pattern and belong to the
interpreter that compiled them, so they cannot be out of date. What is missing, damaged, or of
another interpreter is compiled by `re`.
"""

from __future__ import annotations

import marshal
import os
import sys
import zlib

from memtool import loading

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable

    Row = tuple[int, int, tuple[tuple[str, int], ...], bytes]
    """Flags, number of groups, the named ones, and the numbers in the byte order of the machine."""

PLACE = os.path.join(os.path.dirname(__file__), "__pycache__")
_SUM = 4

_kept: dict[str, bytes] = {}
"""Rows by source, each behind its checksum; filled when a pattern is first asked for."""


def pattern(source: str) -> re.Pattern[str] | None:
    """Return the compiled pattern of a source, None where it is not kept."""
    if not _kept:
        _kept.update(_load())
    row = _row(source, _kept.get(source, b""))
    if row is None:
        return None
    flags, groups, named, code = row
    names: list[str | None] = [None] * (groups + 1)
    for name, number in named:
        names[number] = name
    import _sre  # type: ignore[import-not-found]  # it is part of the interpreter

    numbers = memoryview(code).cast("I").tolist()
    found: re.Pattern[str] = _sre.compile(source, flags, numbers, groups, dict(named), tuple(names))
    return found


def keep(sources: Iterable[str]) -> None:
    """Keep the patterns of some sources, where Python would write byte-code."""
    if sys.dont_write_bytecode or sys.pycache_prefix is not None:
        return
    try:
        rows = _load() | {source: _compile(source) for source in sources}
    except (ImportError, AttributeError, TypeError):  # an interpreter that compiles otherwise
        return
    try:
        loading.put(_path(), _mark() + marshal.dumps(rows))
    except OSError:  # the installation belongs to somebody else
        return


def _path() -> str:
    return os.path.join(PLACE, f"patterns.{sys.implementation.cache_tag}.pack")


def _mark() -> bytes:
    """Return what the file begins with: which compiler wrote the numbers, and how."""
    import _sre

    return f"memtool patterns 1 {sys.version} {_sre.MAGIC} {_sre.CODESIZE}\n".encode()


def _load() -> dict[str, bytes]:
    try:
        with open(_path(), "rb", 0) as file:
            data = file.read()
        mark = _mark()
        if not data.startswith(mark):
            return {}
        rows: dict[str, bytes] = marshal.loads(memoryview(data)[len(mark) :])  # noqa: S302  # as byte-code is
    except (OSError, ImportError, EOFError, ValueError, TypeError):
        return {}
    return rows if isinstance(rows, dict) else {}


def _row(source: str, data: bytes) -> Row | None:
    if data[:_SUM] != _sum(source, data[_SUM:]) or not data:
        return None
    row: Row = marshal.loads(data[_SUM:])  # noqa: S302  # it is what was written
    return row


def _sum(source: str, data: bytes) -> bytes:
    return zlib.crc32(data, zlib.crc32(source.encode())).to_bytes(_SUM, "big")


def _compile(source: str) -> bytes:
    """Return the row of a source as bytes, behind its checksum."""
    from array import array
    from re import _compiler, _parser  # type: ignore[attr-defined]

    parsed = _parser.parse(source, 0)
    numbers = array("I", _compiler._code(parsed, 0))  # noqa: SLF001  # it has no other name
    state = parsed.state
    row: Row = (state.flags, state.groups - 1, tuple(state.groupdict.items()), numbers.tobytes())
    data = marshal.dumps(row)
    return _sum(source, data) + data
