"""Loading: the modules of memtool from byte-code, in fewer steps than Python takes.

Python looks for a module in every way that there is, which takes it 75 us for each of ours. They
can only be in one place, so `Loader` takes 40. A verb that somebody waits for needs 50 to 70 of
them, always the same: they stand in one file, its pack, in the order in which each finds what it
imports, and `unpack` runs one after the other. That takes 15, of which 3 ask for the source.

Byte-code is taken exactly where Python would take it, which is where the time and the size of its
source are what they were. Whatever is in doubt (no byte-code, another kind of it, optimised, in an
archive) is left to Python. `packing` writes the packs.
"""

from __future__ import annotations

import marshal
import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER, ExtensionFileLoader
from _imp import _fix_co_filename, extension_suffixes  # type: ignore[attr-defined]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType

    Stamp = tuple[str, int, int]
    """A source below the package, its time in seconds, and its size."""
    Row = tuple[str, str, CodeType | None]
    """The name of a module, its source below the package, and its byte-code."""
else:
    ModuleType = type(sys)  # `types` makes a class for everything that there is

PACKAGE = "memtool."
HERE = os.path.dirname(__file__)
PACKED = ("check", "hook", "inject", "search")
"""Verbs that have a pack."""
PARTS = {"check": ("check-staged", "check-new")}
"""Further packs of a verb, for what only some of its calls need: each comes behind those before."""
COMPILED = frozenset({"Stemmer", "_bisect", "_blake2", "fcntl", "math", "mmap", "zlib"})
"""Compiled modules that the hot verbs need. Python lists every directory up to the one where it
finds the first of them, which takes as long as loading ten modules of ours."""
_COMPILED_ENDING = next(iter(extension_suffixes()), "")
_BY_TIME = MAGIC_NUMBER + bytes(4)
"""How byte-code begins that is valid as long as time and size of its source are the same."""
_HEADER_BYTES = 16
_ENDING = f".{sys.implementation.cache_tag}.pyc"
PACK_HEADER = b"memtool pack 1\n" + MAGIC_NUMBER


class Loader:
    """A finder and loader for `sys.meta_path`."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module with its byte-code, None where Python is to look for it."""
        if name in COMPILED:
            return _compiled(name)
        if not name.startswith(PACKAGE) or not path:
            return None
        stem = name.rpartition(".")[2]
        for folder, file in ((path[0], stem), (f"{path[0]}/{stem}", "__init__")):
            source, kept = f"{folder}/{file}.py", f"{folder}/__pycache__/{file}{_ENDING}"
            code = code_of(source, kept)
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


class Site:
    """A finder for the end of `sys.meta_path`: runs `site` for what is not found without it."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Look again, in all places that `site` knows of."""
        sys.meta_path.remove(cls)
        run_site()
        specs = (finder.find_spec(name, path, target) for finder in sys.meta_path)
        return next(filter(None, specs), None)


LOADER = Loader()


def _compiled(name: str) -> ModuleSpec | None:
    """Return a compiled module that lies in the search path, None where Python is to look."""
    for folder in filter(None, sys.path):  # never where the process happens to be
        file = f"{folder}/{name}{_COMPILED_ENDING}"
        try:
            os.stat(file)
        except OSError:
            continue
        spec = ModuleSpec(name, ExtensionFileLoader(name, file), origin=file)
        spec.has_location = True
        return spec
    return None


def run_site() -> None:
    """Do what Python does before its first line, unless it is told not to."""
    import site

    site.main()


def is_possible() -> bool:
    """Tell whether Python itself would take byte-code from beside the source."""
    return not sys.flags.optimize and sys.pycache_prefix is None


def is_kept() -> bool:
    """Tell whether Python itself would write byte-code beside the source."""
    return not sys.dont_write_bytecode and os.access(f"{HERE}/__pycache__", os.W_OK)


def install() -> bool:
    """Load what is imported from now on in this way, if Python itself would take byte-code."""
    is_installed = is_possible()
    if is_installed:
        sys.meta_path.insert(0, LOADER)
    return is_installed


def place_of(verb: str) -> str:
    """Return where the pack of a verb lies: beside the byte-code that Python writes."""
    return f"{HERE}/__pycache__/{verb}.{sys.implementation.cache_tag}.pack"


def put(place: str, data: bytes) -> None:
    """Write a file beside byte-code, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    beside = f"{place}.{os.getpid()}"
    try:
        with open(beside, "xb") as file:
            file.write(data)
        os.replace(beside, place)
    except OSError:
        if os.path.exists(beside):
            os.unlink(beside)
        raise


def unpack(verb: str) -> bool:
    """Import the modules of a verb from its pack; return whether there is one of these sources.

    `memtool.cli.main` is there already.

    Raises:
        Exception: what a module raised; it is not imported then, nor is what comes after it.
    """
    rows = rows_of(verb)
    modules = sys.modules
    for name, path, code in rows:
        if name in modules:
            continue
        if code is None:
            __import__(name)
            continue
        source = f"{HERE}/{path}"
        folder, _slash, file = source.rpartition("/")
        _fix_co_filename(code, source)  # it may have been compiled elsewhere
        spec = ModuleSpec(name, LOADER, origin=source)  # type: ignore[arg-type]
        spec.has_location = True
        spec._initializing = False  # type: ignore[attr-defined]  # noqa: SLF001  # looked for at every import
        spec.cached = kept = f"{folder}/__pycache__/{file[:-3]}{_ENDING}"
        module = ModuleType(name)
        namespace = module.__dict__
        parent, _dot, stem = name.rpartition(".")
        if file == "__init__.py":
            spec.submodule_search_locations = namespace["__path__"] = [folder]
            namespace["__package__"] = name
        else:
            namespace["__package__"] = parent
        namespace["__spec__"] = spec
        namespace["__loader__"] = LOADER
        namespace["__file__"] = source
        namespace["__cached__"] = kept
        modules[name] = module
        try:
            exec(code, namespace)  # noqa: S102  # what an import is
        except BaseException:
            del modules[name]
            raise
        setattr(modules[parent], stem, module)
    return bool(rows)


def unpack_part(name: str) -> None:
    """Import the modules of a further pack, where this process takes modules from packs."""
    if LOADER in sys.meta_path:
        unpack(name)


def rows_of(verb: str) -> tuple[Row, ...]:
    """Read the pack of a verb; nothing where there is none, or where a source is another now."""
    try:
        handle = os.open(place_of(verb), os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.read(handle, os.fstat(handle).st_size)
        finally:
            os.close(handle)
        if not data.startswith(PACK_HEADER):
            return ()
        stamps: tuple[Stamp, ...]
        rows: tuple[Row, ...]
        stamps, rows = marshal.loads(memoryview(data)[len(PACK_HEADER) :])  # noqa: S302  # as Python
        for path, seconds, size in stamps:
            status = os.stat(f"{HERE}/{path}")
            if status.st_size != size or int(status.st_mtime) != seconds:
                return ()
    except (OSError, EOFError, ValueError, TypeError):
        return ()
    return rows


def code_of(source: str, kept: str) -> CodeType | None:
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
