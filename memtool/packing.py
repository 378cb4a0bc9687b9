"""Packing: writes the packs of `loading`, each in an interpreter that imports nothing else."""

from __future__ import annotations

import marshal
import os
import sys
from importlib.machinery import PathFinder, SourceFileLoader

from memtool import loading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import ClassVar

    from memtool.loading import Row, Stamp

BASE = "memtool.cli.main"
"""What is there before a pack is opened."""
_ALWAYS = ("memtool.workspace", "memtool.store.plain_toml", "memtool.commands.noting")
_CATALOG = ("memtool.index.index",)
_VERB = ("memtool.cli.running", *_ALWAYS)
_HOOK = ("memtool.cli.hooks", "memtool.cli.arguments", *_ALWAYS)
ROOTS: dict[str, tuple[str, ...]] = {
    "check": (
        *_VERB, "memtool.store.process", "memtool.commands.check", "memtool.gate.differences"
    ),
    "check-staged": (
        "memtool.commands.progress", "memtool.gate.staged", "memtool.gate.places",
        "memtool.gate.gate", "memtool.gate.verdicts", "memtool.store.objects",
        "memtool.inject.marked",
    ),
    "check-new": (
        "memtool.gate.signatures", "memtool.gate.allowing", "memtool.gate.redaction",
        "memtool.gate.detectors", "memtool.gate.context", "memtool.gate.compiled",
    ),
    "hook": (*_HOOK, *_CATALOG, "memtool.commands.hook", "memtool.commands.inject"),
    "inject": (*_VERB, *_CATALOG, "memtool.commands.inject"),
    "search": (*_VERB, *_CATALOG, "memtool.commands.search"),
}  # fmt: skip
"""What a verb imports on its usual way, step by step: what these import is found by itself."""
_PROGRAM = """
import os, sys
os.setsid()  # whoever ends a hook does not end this
os.closerange(3, 1024)  # nor waits for it
sys.path.insert(0, sys.argv[1])
import memtool  # this one, and nothing else from there
del sys.path[0]
from memtool import packing
packing.write(sys.argv[2])
"""


def start(verb: str) -> int:
    """Write the pack of a verb in a process of its own; return its id, 0 for none.

    -P: modules are never looked for where the process happens to be.
    """
    argv = [sys.executable, "-P", "-c", _PROGRAM, os.path.dirname(loading.HERE), verb]
    quiet = [(os.POSIX_SPAWN_OPEN, handle, os.devnull, os.O_RDWR, 0) for handle in (0, 1, 2)]
    try:
        return os.posix_spawn(sys.executable, argv, os.environ, file_actions=quiet)
    except (OSError, ValueError):
        return 0


def missing() -> list[str]:
    """Return the verbs whose pack is not there, or of other sources; none where none is read."""
    if not loading.is_possible():
        return []
    return [verb for verb in loading.PACKED if not all(map(loading.rows_of, packs(verb)))]


def packs(verb: str) -> tuple[str, ...]:
    """Return the names of the packs of a verb, in the order in which they are opened."""
    return (verb, *loading.PARTS.get(verb, ()))


def make(verbs: Sequence[str]) -> list[str]:
    """Write the packs of these verbs; return those that are there now."""
    for process in filter(None, map(start, verbs)):
        os.waitpid(process, 0)
    absent = missing()
    return [verb for verb in verbs if verb not in absent]


def write(verb: str) -> None:
    """Write the packs of a verb, in a process that has imported nothing else of memtool.

    Raises:
        OSError: one cannot be written.
    """
    sys.dont_write_bytecode = False  # a pack is byte-code, and was asked for
    done = 0
    for name in packs(verb):
        modules = imported(ROOTS[name])
        loading.put(loading.place_of(name), _packed(modules[done:]))
        done = len(modules)


def _packed(modules: Sequence[ModuleType]) -> bytes:
    # Before their byte-code is read, so that what is written in between is noticed.
    stamps = tuple(map(_stamp, (__file__, *(str(module.__file__) for module in modules))))
    return loading.PACK_HEADER + marshal.dumps((stamps, tuple(map(_row, modules))))


def _stamp(source: str) -> Stamp:
    status = os.stat(source)
    return source[len(loading.HERE) + 1 :], int(status.st_mtime), status.st_size


def _row(module: ModuleType) -> Row:
    """Return the row of a module; without code where its byte-code does not go by the time."""
    source = str(module.__file__)
    code = loading.code_of(source, module.__cached__)
    return module.__name__, source[len(loading.HERE) + 1 :], code


def imported(roots: Sequence[str]) -> list[ModuleType]:
    """Import modules and return all that this took, each behind those that it imports."""
    __import__(BASE)
    if _Recorder not in sys.meta_path:
        sys.meta_path.insert(0, _Recorder)
    for name in roots:
        __import__(name)
    return _Recorder.complete


class _Recorder(SourceFileLoader):
    """Python's own finder and loader, which notes every module that is complete."""

    complete: ClassVar[list[ModuleType]] = []

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a module of ours with this loader; the others are left to Python."""
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and name.startswith(loading.PACKAGE):
            assert spec.origin is not None
            spec.loader = _Recorder(name, spec.origin)
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Run a module, and note it."""
        super().exec_module(module)
        self.complete.append(module)
