"""Examining: what memtool needs of the machine and of the repository, one sign for each thing."""

from __future__ import annotations

import os
import shutil
import sys

from memtool.errors import MemtoolError
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.workspace import Workspace

GOOD, ABSENT, WARNING, BROKEN = "good", "absent", "warning", "broken"
OLDEST_GIT = (2, 28)
RECENT_S = 7 * 86_400
"""How long a failure of a hook is told."""
DERIVED = ("index", "state", "gate")
"""What lies below memtool's directory in git's, and is made again from the files."""


class Sign(Value):
    """One thing that was looked at. `area` is memtool, repository or a host.

    `shown` is what an agent would see.
    """

    area: str
    name: str
    state: str
    detail: str
    hint: str = ""
    shown: str = ""


def of_memtool(ws: Workspace) -> Iterator[Sign]:
    """Look at the program: where it is, how it starts, and whether its modules are compiled."""
    from memtool import __version__

    version = ".".join(map(str, sys.version_info[:3]))
    yield Sign("memtool", "version", GOOD, f"{__version__}, Python {version}")
    yield _launcher(ws)
    yield _byte_code()
    if ws.env.get("MEMTOOL_OFF"):
        yield Sign("memtool", "switch", WARNING, "MEMTOOL_OFF is set: agents get nothing")


def of_repository(ws: Workspace) -> Iterator[Sign]:
    """Look at git, the settings, the trusted ref, the index and the ledger."""
    yield _git(ws)
    for look in (_settings, _trusted, _index, _ledger, _hooks, _log):
        try:
            yield look(ws)
        except MemtoolError as error:
            name = look.__name__.lstrip("_")
            yield Sign("repository", name, BROKEN, error.message, error.hint)


def _package() -> str:
    import memtool

    return os.path.dirname(memtool.__file__)


def uncompiled() -> list[str]:
    """Return the modules of memtool whose byte code is not there, or older."""
    found = []
    for folder, folders, names in os.walk(_package()):
        folders[:] = [name for name in folders if name != "__pycache__"]
        paths = (os.path.join(folder, name) for name in names if name.endswith(".py"))
        found += [path for path in paths if not _is_compiled(path)]
    return sorted(found)


def mend(ws: Workspace) -> Iterator[str]:
    """Make again what is derived, and yield what was done."""
    if any(sign.state == BROKEN for sign in _signs(_index, ws)):
        for name in DERIVED:
            place = os.path.join(ws.repository.cache_dir, name)
            if os.path.isdir(place):
                shutil.rmtree(place, ignore_errors=True)
            elif os.path.lexists(place):
                os.unlink(place)
        ws.catalog(exact=True)
        yield "made the search index anew"
    if any(sign.state == BROKEN for sign in _signs(_ledger, ws)):
        from memtool.store import ledger

        ledger.fold(ws.repository.cache_dir)
        yield "put a broken ledger aside: statistics begin anew"


def _signs(look: object, ws: Workspace) -> list[Sign]:
    assert callable(look)
    try:
        return [look(ws)]
    except MemtoolError as error:
        return [Sign("repository", "", BROKEN, error.message)]


def _is_compiled(path: str) -> bool:
    from importlib.util import cache_from_source

    try:
        with open(cache_from_source(path), "rb") as file:
            head = file.read(16)
        status = os.stat(path)
    except OSError:
        return False
    flags = int.from_bytes(head[4:8], "little")
    written = int(status.st_mtime) & 0xFFFFFFFF
    return bool(flags) or int.from_bytes(head[8:12], "little") == written


def _byte_code() -> Sign:
    missing = len(uncompiled())
    if missing:
        return Sign(
            "memtool", "byte code", WARNING,
            f"{missing} modules are compiled anew at every start",
            f"python3 -m compileall -q {_package()}",
        )  # fmt: skip
    return Sign("memtool", "byte code", GOOD, "compiled")


def _launcher(ws: Workspace) -> Sign:
    place = shutil.which("memtool", path=ws.env.get("PATH"))
    if place is None:
        return Sign(
            "memtool", "command", WARNING, "memtool is not on the PATH, where hooks look for it",
            "pipx install memtool, or add its directory to PATH",
        )  # fmt: skip
    try:
        with open(place, "rb") as file:
            text = file.read(4096)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        return Sign("memtool", "command", BROKEN, f"{place} cannot be read: {reason}")
    program = text.partition(b"\n")[0].removeprefix(b"#!").strip().partition(b" ")[0]
    if b"python" in program and os.path.realpath(program) != os.fsencode(
        os.path.realpath(sys.executable)
    ):
        return Sign("memtool", "command", WARNING, f"{place} runs another Python than this memtool")
    return Sign("memtool", "command", GOOD, place)


def _git(ws: Workspace) -> Sign:
    said = ws.repository.git.line("--version")
    numbers = said.removeprefix("git version ").split(".")
    try:
        version = (int(numbers[0]), int(numbers[1]))
    except (ValueError, IndexError):
        return Sign("repository", "git", WARNING, f"{said!r} names no version")
    if version < OLDEST_GIT:
        wanted = ".".join(map(str, OLDEST_GIT))
        return Sign("repository", "git", BROKEN, said, f"memtool needs git {wanted} or newer")
    return Sign("repository", "git", GOOD, said)


def _settings(ws: Workspace) -> Sign:
    ws.refuse_absent()
    given = ws.settings  # reads it
    del given
    return Sign("repository", "settings", GOOD, ws.config_path)


def _trusted(ws: Workspace) -> Sign:
    from memtool.store import provenance

    commit = provenance.resolve_trusted(ws.repository, ws.trust_settings.text("trust.ref"))
    if not commit:
        return Sign("repository", "trusted ref", GOOD, "none: there is no remote")
    return Sign("repository", "trusted ref", GOOD, commit[: provenance.SHORT])


def _index(ws: Workspace) -> Sign:
    """Compare what the cache answers with what is read from the files."""
    tree = ws.tree()
    stored = ws.catalog(exact=True)
    if [(one.id, one.path, one.memory) for one in stored.records] != [
        (one.id, one.path, one.memory) for one in tree.records
    ]:
        return Sign(
            "repository", "index", BROKEN, "the cache gives other memories than the files",
            "memtool doctor --fix makes it anew",
        )  # fmt: skip
    if ws.is_cached and tree.records and not os.access(ws.repository.cache_dir, os.W_OK):
        place = ws.repository.cache_dir
        return Sign(
            "repository", "index", WARNING, f"{place} cannot be written: every answer is slower"
        )
    return Sign("repository", "index", GOOD, f"{len(tree.records)} memories, as in the files")


def _ledger(ws: Workspace) -> Sign:
    from memtool.store import ledger

    with ledger.reading(ws.repository.cache_dir) as held:
        answers, _since = held.answers()
    return Sign("repository", "ledger", GOOD, f"{answers} answers noted")


def _hooks(ws: Workspace) -> Sign:
    from memtool.hosts import git

    if ws.repository.is_bare:
        return Sign("repository", "hooks", ABSENT, "a bare repository commits nothing")
    missing = {os.path.basename(step.path) for step in git.install(ws.repository)}
    if not missing:
        return Sign("repository", "hooks", GOOD, ", ".join(git.HOOKS))
    folder = git.hooks_folder(ws.repository)
    present = [name for name in git.HOOKS if git.is_ours(os.path.join(folder, name))]
    state = WARNING if present else ABSENT
    what = f"missing or older: {', '.join(sorted(missing))}" if present else "not installed"
    return Sign("repository", "hooks", state, what, "memtool install git")


def _log(ws: Workspace) -> Sign:
    """Look for what no agent was told: hooks fail in silence."""
    from memtool.hosts import log
    from memtool.memory import moments

    moment, _space, what = log.last_failure(ws.repository.cache_dir).partition(" ")
    if not what or moment < moments.render(ws.now - RECENT_S):
        return Sign("repository", "hook log", GOOD, "no failure of late")
    detail = f"{moment[:10]}: {what}"
    where = os.path.join(ws.repository.cache_dir, log.NAME)
    return Sign("repository", "hook log", WARNING, detail, f"{where} holds the rest")
