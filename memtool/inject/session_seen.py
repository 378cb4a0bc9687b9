"""The memories and notices that a session has seen, so that none is shown twice.

Notices before a block count too: the preamble, and the one about global memories.

Each session has a small file below `shown/` of the cache directory, with a line for the version of
each memory that was shown. Lines are only appended, each in one write, so many processes may write
at once. A torn line or a lost file costs a repetition, no more.

The file `starts` next to them records when sessions started, and at which commit: later memories
are news. The number of findings that could be promoted is read here, too; promotion writes it.

A memory has changed if its bytes or its conflicts have. After its statement, the whole of it may be
shown on request, but not the statement again. Only requests about the current worktree count: a
request for a revision or another moment gets the complete answer.
"""

from __future__ import annotations

import os
from zlib import crc32

from memtool.store import files
from memtool.store.files import read_or_none
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from memtool.inject.candidates import Candidate, CandidateVerdict
    from memtool.inject.tiers import BlockEntry
    from memtool.store.context import Context
    from memtool.store.tree import Record

FOLDER = "shown"
COMMANDS = "commands"
"""Next to it: when the last command of each session began; see `command_files`."""
STARTS = "starts"
MAX_BYTES = 256 * 1024
"""Of one file: some 4,000 memories. In a longer session the rest may be shown again."""
KEPT_SESSIONS = 200
KEPT_S = 30 * 86_400
_NAME_BYTES = 8
_END = "."
"""The last field of every line: what ends otherwise is torn."""
_SHOWN_FIELDS = 3
_START_FIELDS = 4


class Start(Value):
    """The beginning of a session: the second, the commit that was checked out, its hashed name."""

    moment: int
    head: str
    session: str


def hash_session(session: str) -> str:
    """Return the hash by which a session is known here."""
    return digest(session.encode(errors="replace"), _NAME_BYTES)


def read(directory: str, session: str) -> frozenset[tuple[str, str]]:
    """Return the memories that a session has seen: each id with the version shown.

    `directory` is the cache directory of the repository.
    """
    rows = _read_lines(os.path.join(directory, FOLDER, hash_session(session)), _SHOWN_FIELDS)
    return frozenset((row[0], row[1]) for row in rows)


def add(directory: str, session: str, versions: Iterable[tuple[str, str]]) -> None:
    """Note that a session has seen memories. Where that cannot be written, it may see them again.

    Raises:
        OSError: it cannot be written there.
    """
    lines = "".join(f"\n{id_} {version} {_END}" for id_, version in versions)
    if lines:
        path = os.path.join(directory, FOLDER, hash_session(session))
        files.append(path, lines.encode(errors="replace"), MAX_BYTES)


def forget(directory: str, session: str) -> None:
    """Let a session see everything again: it lost its context."""
    try:
        os.unlink(os.path.join(directory, FOLDER, hash_session(session)))
    except OSError:
        return


def begin(
    directory: str, session: str, moment: int, head: str, *, is_resumed: bool = False
) -> None:
    """Note that a session begins, once, and drop the files of sessions of long ago.

    One that is resumed begins once more.

    Raises:
        OSError: it cannot be written there.
    """
    name = hash_session(session)
    path = os.path.join(directory, FOLDER, STARTS)
    starts = _read_starts(path)
    if is_resumed or not any(start.session == name for start in starts):
        if len(starts) >= 2 * KEPT_SESSIONS:
            _keep_last(path, starts[-KEPT_SESSIONS:])
        line = f"\n{moment} {head or '-'} {name} {_END}"
        files.append(path, line.encode(errors="replace"), MAX_BYTES)
        _sweep(os.path.join(directory, FOLDER), moment)
        _sweep(os.path.join(directory, COMMANDS), moment)


def find_earlier(directory: str, session: str) -> list[Start]:
    """Return the beginnings of the sessions before this one in order, as many as are kept."""
    name = hash_session(session)
    starts: list[Start] = []
    for start in _read_starts(os.path.join(directory, FOLDER, STARTS)):
        if start.session == name:
            break  # a later start is not this session's past
        starts.append(start)
    return starts


def find_beginnings(directory: str, session: str) -> list[Start]:
    """Return when a session began and was resumed, the oldest first, as far as that is kept."""
    name = hash_session(session)
    starts = _read_starts(os.path.join(directory, FOLDER, STARTS))
    return [start for start in starts if start.session == name]


def primed_line(directory: str, session: str) -> tuple[str, str]:
    """Return the line that says that a session was given the primer of its newest beginning."""
    return _PRIMED, str(len(find_beginnings(directory, session)))


def has_seen(directory: str, session: str) -> bool:
    """Return whether a session was shown a memory that it still has in its context."""
    return any(not id_.startswith(_MARK) for id_, _version in read(directory, session))


def forget_seen(directory: str, session: str, where: str) -> None:
    """Forget what a session has seen, once for each point at which its context was summed up."""
    mark = _SUMMED_UP, where
    if mark in read(directory, session):
        return
    forget(directory, session)
    try:
        add(directory, session, (mark,))
    except OSError:
        return


def is_due(directory: str, session: str) -> bool:
    """Return whether a session began, or lost its context, and has not been given the primer since.

    The answer at its start may have come too late for the host, or to a host that takes none there.
    """
    mark = primed_line(directory, session)
    return mark[1] != "0" and mark not in read(directory, session)


def _read_starts(path: str) -> list[Start]:
    return [
        Start(int(moment), head.strip("-"), session)
        for moment, head, session, _end in _read_lines(path, _START_FIELDS)
        if moment.isdecimal()
    ]


def _read_lines(path: str, fields: int) -> list[list[str]]:
    """Return the fields of the complete lines of a file; none if there is no file."""
    data = read_or_none(path, MAX_BYTES) or b""
    rows = [line.split(" ") for line in data.decode(errors="replace").split("\n")]
    return [row for row in rows if len(row) == fields and row[-1] == _END]


def _keep_last(path: str, starts: Iterable[Start]) -> None:
    """Rewrite the file of beginnings. One that is appended meanwhile may be lost: news only."""
    lines = "".join(
        f"\n{start.moment} {start.head or '-'} {start.session} {_END}" for start in starts
    )
    files.write_private(*os.path.split(path), lines.encode(errors="replace"))


def _sweep(folder: str, now: int) -> None:
    ages: list[tuple[float, str]] = []
    if not os.path.isdir(folder):
        return
    with os.scandir(folder) as items:
        for item in items:
            if item.name != STARTS:
                try:
                    ages.append((item.stat(follow_symlinks=False).st_mtime, item.path))
                except OSError:
                    continue
    ages.sort(reverse=True)
    for number, (age, path) in enumerate(ages):
        if number >= KEPT_SESSIONS or age < now - KEPT_S:
            try:
                os.unlink(path)
            except OSError:
                continue


_MARK = "="
_NOTICE, _PRIMED, _SUMMED_UP = "=notice", "=primed", "=summed-up"
"""Stand in a line for the id of a memory; no id begins with the mark."""


def notice_line(text: str) -> tuple[str, str]:
    """Return the line that says that a session was given a notice; another text is another one."""
    return _NOTICE, digest(text.encode(), _NAME_BYTES)


SILENCED = "silenced"
"""Replaces the version of a memory whose removal from use the session has been told."""
_OID_DIGITS = 16
_BRIEF = "~"
"""Ends the version of a memory of which only the statement was shown."""


class SeenMemories(Value):
    """What one session has seen: nothing without a session. `marks` gives a memory's warnings."""

    session: str
    seen: frozenset[tuple[str, str]]
    marks: Callable[[Record], tuple[str, ...]]

    def version_of(self, record: Record) -> tuple[str, str]:
        """Return the id of a memory with what would have to change for it to be news."""
        marks = self.marks(record)
        contested = f"-{crc32(chr(10).join(marks).encode()):08x}" if marks else ""
        return record.id, record.oid[:_OID_DIGITS] + contested

    def has_seen(self, record: Record) -> bool:
        """Return whether the session has seen a memory, at least its statement."""
        if not self.seen:
            return False
        id_, version = self.version_of(record)
        return not self.seen.isdisjoint(((id_, version), (id_, version + _BRIEF)))

    def split_fresh(
        self, chosen: Iterable[Candidate]
    ) -> tuple[list[Candidate], list[CandidateVerdict]]:
        """Return those that the session has not seen, and verdicts about the others."""
        if not self.seen:
            return list(chosen), []
        from memtool.inject.candidates import build_verdict  # the hook of a command needs none

        fresh_candidates, dropped = [], []
        for candidate in chosen:
            id_, version = self.version_of(candidate.record)
            is_told = candidate.is_brief and (id_, version + _BRIEF) in self.seen
            if is_told or (id_, version) in self.seen:
                reason = "this session has seen it"
                dropped.append(build_verdict(candidate, reason, is_taken=False))
            else:
                fresh_candidates.append(candidate)
        return fresh_candidates, dropped

    def list_versions(self, entries: Iterable[BlockEntry]) -> tuple[tuple[str, str], ...]:
        """Return the versions that the session sees now, or knows to be withheld."""
        versions = []
        for entry in entries if self.session else ():
            id_, version = self.version_of(entry.candidate.record)
            versions.append((id_, version + _BRIEF * entry.candidate.is_brief))
            versions += map(self.version_of, entry.candidate.withheld)
        return tuple(versions)


def read_seen(
    context: Context,
    session: str,
    marks: Callable[[Record], tuple[str, ...]],
    versions: Iterable[tuple[str, str]] = (),
) -> SeenMemories:
    """Return what a session has seen in this clone; nothing if its name is empty.

    `versions` is shown to it at this moment.
    """
    seen = read(context.repository.cache_dir, session) if session else frozenset()
    return SeenMemories(session, seen.union(versions), marks)


def keep(context: Context, answer: Any) -> None:
    """Record what an answer showed to its session; if that fails, it may be shown again."""
    try:
        add(context.repository.cache_dir, answer.session, answer.versions)
    except OSError:
        return


WAITING = os.path.join("sessions", "waiting")
"""Below the private directory: how many findings have the evidence to be promoted, by then."""
_MAX_DIGITS = 20


def count_waiting(cache_dir: str) -> int:
    """Return how many findings could be promoted; 0 if no number is stored."""
    data = (read_or_none(os.path.join(cache_dir, WAITING), _MAX_DIGITS) or b"").strip()
    return int(data) if data.isdigit() else 0
