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
from memtool.store.repository import global_directory
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.calls.run import ServedRepository
    from memtool.store.context import Context

SHARE = 20
"""A stamp is made again after so many times the time that it took, so 5 % of it at most."""
LEAST_S, MOST_S = 0.05, 1.0
MINUTE_S = 60
MOST_ANSWERS, MOST_BYTES = 512, 16 << 20
FEW = 300
"""So many files are indexed where the answer is made, in half a second."""
BUILD = "status"
"""The verb of the first page: with the index it looks up all that is kept beside it."""
USAGE = ("spool", "ledger.db", "ledger.db-wal", "audit.log")
SESSIONS = "sessions"


class Stamp(Value):
    """What was there: the memories with all that git says of them, and what is private here."""

    memories: str
    private: str
    to_build: int = 0
    """How many files are to be read to build the index; 0 where it is there."""


class Watch:
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
    def known(self) -> Stamp | None:
        """The last stamp while it is young enough, else None."""
        return self._stamp if time.monotonic() < self._due else None

    def forget(self) -> None:
        """Make a new stamp for the next answer: something was written."""
        self._due = 0.0

    def look(self) -> Stamp:
        """Return a stamp that is young enough. Raises MemtoolError where the repository is gone."""
        with self._lock:
            if (stamp := self.known) is not None:
                return stamp
            began = time.monotonic()
            context = self._place.open()
            made, last = _stamp(context), self._stamp
            if last is None or last.to_build or last.memories != made.memories:
                made = made.replace(to_build=index.count_to_build(context))
            self._stamp = made
            took = time.monotonic() - began
            self._due = began + min(MOST_S, max(LEAST_S, SHARE * took))
            return made


class IndexBuild:
    """The process that builds the index, where there is none."""

    def __init__(self, watch: Watch, place: ServedRepository) -> None:
        self._watch = watch
        self._place = place
        self._task: asyncio.Task[None] | None = None
        self._is_vain = False

    def awaited(self, stamp: Stamp) -> asyncio.Task[None] | None:
        """Return what an answer has to wait for, begun if need be; None where it need not wait."""
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
    """Answers by what was asked, each good for one stamp; the oldest goes first."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, ...], tuple[str, str, bytes]] = {}
        self._bytes = 0

    def get(self, key: tuple[str, ...], stamp: str) -> tuple[str, bytes] | None:
        """Return the tag and bytes of an answer that still holds."""
        kept = self._kept.get(key)
        return kept[1:] if kept is not None and kept[0] == stamp else None

    def put(self, key: tuple[str, ...], stamp: str, body: bytes) -> str:
        """Keep an answer and return its tag."""
        old = self._kept.pop(key, None)
        self._bytes += len(body) - (len(old[2]) if old else 0)
        tag = f'"{digest(body)}"'
        self._kept[key] = stamp, tag, body
        while len(self._kept) > MOST_ANSWERS or (self._bytes > MOST_BYTES and len(self._kept) > 1):
            self._bytes -= len(self._kept.pop(next(iter(self._kept)))[2])
        return tag


def _stamp(context: Context) -> Stamp:
    repository = context.repository
    minute = str(int(time.time()) // MINUTE_S)
    rows = [minute, *_git(repository.git_dir, repository.common_dir)]
    if repository.top:
        rows += _files(os.path.join(repository.top, context.directory))
        rows.append(_status(os.path.join(repository.top, ".memtool.toml")))
    signers = context.project.trust_settings.text("trust.allowed_signers")
    rows.append(_status(os.path.join(repository.top, os.path.expanduser(signers))))
    place = global_directory(context.caller.env) if context.caller.is_personal else ""
    if place and not context.is_global:
        rows += (_status(os.path.join(place, name)) for name in (".memory", ".git/index"))
    rows += map(_status, _features.state_files(context))
    cache = repository.cache_dir
    private = [row for name in USAGE for row in _files(os.path.join(cache, name))]
    private += _files(os.path.join(cache, SESSIONS))
    memories = digest("\n".join(rows).encode(errors="surrogateescape"))
    return Stamp(memories, digest("\n".join([memories, *private]).encode(errors="surrogateescape")))


def _git(git_dir: str, common_dir: str) -> Iterator[str]:
    for path in (f"{git_dir}/HEAD", f"{git_dir}/index", f"{common_dir}/packed-refs"):
        yield _status(path)
    yield from _files(f"{common_dir}/refs")
    yield _status(f"{common_dir}/config")


def _files(path: str) -> Iterator[str]:
    """Yield the status of a file, or of all files below a directory."""
    todo = [path]
    while todo:
        folder = todo.pop()
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except NotADirectoryError:
            yield _status(folder)
            continue
        except OSError:
            yield f"{folder} -"
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
            else:
                yield _status(entry.path)


def _status(path: str) -> str:
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return f"{path} -"
    return f"{path} {found.st_mtime_ns} {found.st_size} {found.st_ino}"
