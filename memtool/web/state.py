"""State: a stamp of all that a page depends on, and the answers that are good while it holds.

The stamp is made of the status of files, never of their contents: HEAD, git's index, refs, the
memory directory, the settings, the usage log and the sessions. Time passes, too (memories expire),
so it changes every minute.

Where the index has to be built, a process of its own does it: it takes long, and more memory than
all the rest, which a process that goes on would keep.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time

from memtool.commands import _features
from memtool.index import index
from memtool.store.repository import find_global_directory
from memtool.value import Value, digest
from memtool.web import visits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.calls.run import ServedRepository
    from memtool.store.context import Context

SHARE = 20
"""A stamp is good for this many times the time that it took, so stamps cost at most 5 %."""
MIN_S, MAX_S = 0.05, 1.0
MINUTE_S = 60
MAX_ANSWERS, MAX_BYTES = 512, 16 << 20
FEW = 300
"""Up to this many files are indexed in the server itself, in half a second."""
BUILD = "status"
"""The verb of the first page: it reads the index and most of what is cached next to it."""
USAGE = ("spool", "ledger.db", "ledger.db-wal", "audit.log", visits.FILE)
SESSIONS = "sessions"


class Stamp(Value):
    """The state of the repository: memories with git's data about them, and private data."""

    memories: str
    private: str
    to_build: int = 0
    """Files to be read to build the index; 0 if it is up to date."""


class StateMonitor:
    """Makes stamps of a repository, as often as is cheap."""

    def __init__(self, place: ServedRepository) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._due = 0.0
        self._stamp: Stamp | None = None

    @property
    def last(self) -> Stamp | None:
        """The last stamp, however old it is."""
        return self._stamp

    @property
    def fresh(self) -> Stamp | None:
        """The last stamp while it is young enough, else None."""
        return self._stamp if time.monotonic() < self._due else None

    def forget(self) -> None:
        """Make a new stamp for the next answer: something was written."""
        self._due = 0.0

    def look(self) -> Stamp:
        """Return a recent stamp. Raises MemtoolError if the repository is gone."""
        with self._lock:
            if (stamp := self.fresh) is not None:
                return stamp
            began = time.monotonic()
            context = self._place.open()
            made, last = _read_stamp(context), self._stamp
            if last is None or last.to_build or last.memories != made.memories:
                made = made.replace(to_build=index.count_files_to_build(context))
            self._stamp = made
            took = time.monotonic() - began
            self._due = began + min(MAX_S, max(MIN_S, SHARE * took))
            return made


class IndexBuild:
    """The process that builds a missing index."""

    def __init__(self, watch: StateMonitor, place: ServedRepository) -> None:
        self._watch = watch
        self._place = place
        self._task: asyncio.Task[None] | None = None
        self._is_vain = False

    def wait_for(self, stamp: Stamp) -> asyncio.Task[None] | None:
        """Return the task to wait for before an answer, started if needed; None if none."""
        if self._task is not None and not self._task.done():
            return self._task
        if stamp.to_build <= FEW or self._is_vain:
            return None
        self._task = asyncio.create_task(self._run())
        return self._task

    async def _run(self) -> None:
        place = self._place
        where = ["--global"] if place.is_global else ["-C", os.path.abspath(place.directory)]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "memtool",
            *where,
            BUILD,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env={**place.env, "MEMTOOL_NO_LEDGER": "1"},
        )
        try:
            await process.wait()
        finally:
            if process.returncode is None:  # the server ends
                process.kill()
                await process.wait()
        self._watch.forget()
        stamp = await asyncio.to_thread(self._watch.look)
        self._is_vain = stamp.to_build > FEW  # it cannot be kept: each answer builds its own


class AnswerCache:
    """Answers by request, each valid for one stamp; the oldest is dropped first."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, ...], tuple[str, str, bytes]] = {}
        self._bytes = 0

    def get(self, key: tuple[str, ...], stamp: str) -> tuple[str, bytes] | None:
        """Return the tag and bytes of an answer that still holds."""
        cached = self._entries.get(key)
        return cached[1:] if cached is not None and cached[0] == stamp else None

    def put(self, key: tuple[str, ...], stamp: str, body: bytes) -> str:
        """Keep an answer and return its tag."""
        old = self._entries.pop(key, None)
        self._bytes += len(body) - (len(old[2]) if old else 0)
        tag = f'"{digest(body)}"'
        self._entries[key] = stamp, tag, body
        while len(self._entries) > MAX_ANSWERS or (
            self._bytes > MAX_BYTES and len(self._entries) > 1
        ):
            self._bytes -= len(self._entries.pop(next(iter(self._entries)))[2])
        return tag


def _read_stamp(context: Context) -> Stamp:
    repository = context.repository
    minute = str(int(time.time()) // MINUTE_S)
    rows = [minute, *_list_git_status(repository.git_dir, repository.common_dir)]
    if repository.top:
        rows += _list_file_status(os.path.join(repository.top, context.directory))
        rows.append(_file_status(os.path.join(repository.top, ".memtool.toml")))
    signers = context.project.trust_settings.text("trust.allowed_signers")
    rows.append(_file_status(os.path.join(repository.top, os.path.expanduser(signers))))
    place = find_global_directory(context.caller.env) if context.caller.is_personal else ""
    if place and not context.is_global:
        rows += (_file_status(os.path.join(place, name)) for name in (".memory", ".git/index"))
    rows += map(_file_status, _features.list_state_files(context))
    cache = repository.cache_dir
    private = [row for name in USAGE for row in _list_file_status(os.path.join(cache, name))]
    private += _list_file_status(os.path.join(cache, SESSIONS))
    memories = digest("\n".join(rows).encode(errors="surrogateescape"))
    return Stamp(memories, digest("\n".join([memories, *private]).encode(errors="surrogateescape")))


def _list_git_status(git_dir: str, common_dir: str) -> Iterator[str]:
    for path in (f"{git_dir}/HEAD", f"{git_dir}/index", f"{common_dir}/packed-refs"):
        yield _file_status(path)
    yield from _list_file_status(f"{common_dir}/refs")
    yield _file_status(f"{common_dir}/config")


def _list_file_status(path: str) -> Iterator[str]:
    """Yield the status of a file, or of all files below a directory."""
    todo = [path]
    while todo:
        folder = todo.pop()
        try:
            with os.scandir(folder) as scanned:
                entries = sorted(scanned, key=lambda entry: entry.name)
        except NotADirectoryError:
            yield _file_status(folder)
            continue
        except OSError:
            yield f"{folder} -"
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
            else:
                yield _file_status(entry.path)


def _file_status(path: str) -> str:
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return f"{path} -"
    return f"{path} {status.st_mtime_ns} {status.st_size} {status.st_ino}"
