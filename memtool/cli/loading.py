"""Loading: the modules of memtool from the byte-code that Python keeps beside them.

Python looks for a module in every way that there is, which takes it 75 us for each of ours. They
can only be in one place, so this takes 40; a cold answer, which needs 60 of them, comes a fifth of
an interpreter start sooner.

Nothing is kept here, and nothing is decided: byte-code is taken exactly where Python would take
it, which is where its header names the version, the time and the size that are now. Whatever is in
doubt (no byte-code, another kind of it, optimised, in an archive) is left to Python.
"""

from __future__ import annotations

import marshal
import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER
from _imp import _fix_co_filename  # type: ignore[attr-defined]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType

PACKAGE = "memtool."
_BY_TIME = MAGIC_NUMBER + bytes(4)
"""How byte-code begins that is valid as long as time and size of its source are the same."""
_HEADER_BYTES = 16
_ENDING = f".{sys.implementation.cache_tag}.pyc"


class Loader:
    """A finder and loader for `sys.meta_path`."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module with its byte-code, None where Python is to look for it."""
        if not name.startswith(PACKAGE) or not path:
            return None
        stem = name.rpartition(".")[2]
        for folder, file in ((path[0], stem), (f"{path[0]}/{stem}", "__init__")):
            source, kept = f"{folder}/{file}.py", f"{folder}/__pycache__/{file}{_ENDING}"
            code = _code(source, kept)
            if code is not None:
                spec = ModuleSpec(name, self, origin=source, loader_state=code)  # type: ignore[arg-type]
                spec.has_location, spec.cached = True, kept
                if file == "__init__":
                    spec.submodule_search_locations = [folder]
                return spec
        return None

    def create_module(self, _spec: ModuleSpec) -> None:
        """Let Python make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the code of a module that was found."""
        spec = module.__spec__
        assert spec is not None
        code, spec.loader_state = spec.loader_state, None
        exec(code, module.__dict__)  # noqa: S102  # what an import is


def install() -> None:
    """Load what is imported from now on in this way, if Python itself would take byte-code."""
    if not sys.flags.optimize and sys.pycache_prefix is None:
        sys.meta_path.insert(0, Loader())


def _code(source: str, kept: str) -> CodeType | None:
    """Return the code of a source file from its byte-code, None where that is not its own."""
    try:
        status = os.stat(source)
        with open(kept, "rb", 0) as file:
            data = file.read()
    except OSError:
        return None
    header = _BY_TIME + b"".join(
        (number & 0xFFFFFFFF).to_bytes(4, "little")
        for number in (int(status.st_mtime), status.st_size)
    )
    if data[:_HEADER_BYTES] != header:
        return None
    try:
        code: CodeType = marshal.loads(memoryview(data)[_HEADER_BYTES:])  # noqa: S302  # as Python
    except (EOFError, ValueError, TypeError):
        return None
    _fix_co_filename(code, source)  # it may have been compiled elsewhere
    return code
