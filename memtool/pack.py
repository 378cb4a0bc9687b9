"""The pack: the byte-code of all modules in one file, for a cold start.

Python looks for each module on disk, opens its byte-code and reads it, a tenth of a millisecond
each. A search needs some fifty: half of what it costs in all. So the first run that finds modules
outside of the pack writes it anew, beside Python's own byte-code in `__pycache__`, and later runs
map that one file. As with Python's, a module whose source has another time or size is passed over,
and nothing is written under `PYTHONDONTWRITEBYTECODE` or where the directory is read-only.
"""

from __future__ import annotations

import marshal
import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

    Row = tuple[int, int, int, int, bool]
    """Time and size of the source, start and end of its byte-code, and whether it is a package."""

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = __name__.rpartition(".")[0]
MAGIC = b"memtool pack 1\n" + MAGIC_NUMBER
NUMBER_BYTES = 8
_HEADER_BYTES = len(MAGIC) + 2 * NUMBER_BYTES
"""The magic, the size of the file, and that of the table of rows, which follows."""


class Pack:
    """A finder and loader of packed modules, for `sys.meta_path`."""

    def __init__(self, data: memoryview, rows: dict[str, Row]) -> None:
        self.data = data
        self.rows = rows
        self.is_complete = True
        """Whether the pack had every module that was asked for."""

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a packed module, None for any other or if its source changed."""
        if not name.startswith(PACKAGE + "."):
            return None
        row = self.rows.get(name)
        if row is None or stamp(source(name, is_package=row[4])) != row[:2]:
            self.is_complete = False
            return None
        if row[2] == row[3]:  # its byte-code is of a kind that cannot be packed
            return None
        # Python asks a loader for its methods, not for its class.
        return ModuleSpec(name, self, is_package=row[4])  # type: ignore[arg-type]

    def create_module(self, _spec: ModuleSpec) -> ModuleType | None:
        """Leave the making of the module to Python."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Run the packed byte-code of a module."""
        _time, _size, start, end, is_package = self.rows[module.__name__]
        place = source(module.__name__, is_package=is_package)
        module.__file__ = place
        if is_package:
            module.__path__ = [os.path.dirname(place)]
        exec(marshal.loads(self.data[start:end]), module.__dict__)  # noqa: S102, S302  # own files


def use() -> Pack | None:
    """Take modules from the pack from now on; None where byte-code is kept elsewhere."""
    if sys.pycache_prefix is not None or __spec__ is None or not __spec__.cached:
        return None
    pack = _opened(_place(__spec__.cached)) or Pack(memoryview(b""), {})
    sys.meta_path.insert(0, pack)
    return pack


def keep(pack: Pack | None) -> None:
    """Write the pack anew if it lacked something; to be called when the answer is out."""
    if pack is not None and not pack.is_complete and not sys.dont_write_bytecode:
        make()


def make() -> bool:
    """Write the pack of all modules that have byte-code; tell whether there is one now."""
    if __spec__ is None or not __spec__.cached:
        return False
    place = _place(__spec__.cached)
    if not os.access(os.path.dirname(place), os.W_OK):
        return False
    rows: dict[str, Row] = {}
    codes = []
    size = 0
    for name, is_package in _modules(HERE, PACKAGE):
        path = source(name, is_package=is_package)
        own = stamp(path)
        code = _byte_code(path, __spec__.cached)
        if code is not None:
            rows[name] = (*own, size, size + len(code), is_package)
            codes.append(code)
            size += len(code)
    shift = _HEADER_BYTES
    while True:  # the table says where things lie, and its size depends on it
        table = marshal.dumps({n: (t, s, a + shift, b + shift, p)
                               for n, (t, s, a, b, p) in rows.items()})  # fmt: skip
        if _HEADER_BYTES + len(table) == shift:
            break
        shift = _HEADER_BYTES + len(table)
    numbers = (shift + size, len(table))
    header = MAGIC + b"".join(number.to_bytes(NUMBER_BYTES, "little") for number in numbers)
    temp = f"{place}.{os.getpid()}"
    try:
        with open(temp, "xb") as file:
            file.write(b"".join([header, table, *codes]))
        os.replace(temp, place)
    except OSError:
        return False
    return True


def source(name: str, *, is_package: bool) -> str:
    """Return where the source of a module lies."""
    inside = name[len(PACKAGE) :].replace(".", os.sep)
    return f"{HERE}{inside}{os.sep}__init__.py" if is_package else f"{HERE}{inside}.py"


def stamp(path: str) -> tuple[int, int]:
    """Return time and size of a file, by which it is known again; zeros for none."""
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


def _place(own_byte_code: str) -> str:
    """Return where the pack lies: beside the byte-code of this module, named like it."""
    return own_byte_code.removesuffix("c") + ".bin"


def _opened(place: str) -> Pack | None:
    import mmap

    try:
        handle = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = memoryview(mmap.mmap(handle, 0, access=mmap.ACCESS_READ))
        finally:
            os.close(handle)
    except (OSError, ValueError):  # ValueError: an empty file cannot be mapped
        return None
    start = len(MAGIC)
    whole, table = (
        int.from_bytes(data[at : at + NUMBER_BYTES], "little")
        for at in (start, start + NUMBER_BYTES)
    )
    if data[:start] != MAGIC or whole != len(data):
        return None
    rows: dict[str, Row] = marshal.loads(data[_HEADER_BYTES : _HEADER_BYTES + table])  # noqa: S302
    return Pack(data, rows)


def _modules(folder: str, package: str) -> Iterator[tuple[str, bool]]:
    """Yield the name of every module below a package, and whether it is one itself."""
    for item in sorted(os.scandir(folder), key=lambda item: item.name):
        name = f"{package}.{item.name.removesuffix('.py')}"
        if item.name.endswith(".py") and item.name != "__init__.py":
            yield name, False
        elif os.path.exists(os.path.join(item.path, "__init__.py")):
            yield name, True
            yield from _modules(item.path, name)


def _byte_code(path: str, own_byte_code: str) -> bytes | None:
    """Return the byte-code that Python keeps for a source, None where it is missing or old.

    Empty where Python does not go by the time of the source.
    """
    ending = os.path.basename(own_byte_code).removeprefix("pack")
    folder, name = os.path.split(path)
    place = os.path.join(folder, "__pycache__", name.removesuffix(".py") + ending)
    try:
        with open(place, "rb") as file:
            data = file.read()
        status = os.stat(path)
    except OSError:
        return None
    # PEP 552: flags, then time and size of the source; others hold a hash in their place.
    flags, *stamped = (int.from_bytes(data[at : at + 4], "little") for at in (4, 8, 12))
    if data[:4] != MAGIC_NUMBER or len(data) < 16:
        return None
    if flags:
        return b""
    expected = [int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF]
    return data[16:] if stamped == expected else None
