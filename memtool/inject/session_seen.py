"""What a session has seen already, so that nothing is shown to it twice.

That goes for the notices in front of a block, too: what the block is, and what is global in it.

One small file per session below `shown/` of the cache directory: a line for each memory that was
shown, with the version of it. Lines are only appended, each in one write, so many processes may do
so at once; a torn line costs nothing but a repetition, and so does a file that is lost.

Beside them `starts` says when sessions began, and at which commit: what came since is news. How
many findings wait to be promoted is read here as well; promotion writes it.

A memory changed where its bytes did, or what conflicts with it. What was shown as its statement
only may come whole when somebody asks, but not as its statement again. Only what is asked about the
worktree as it stands now counts: who looks back at a revision or a moment wants all of the answer.
"""

from __future__ import annotations

import os
from zlib import crc32

from memtool.inject.candidates import CandidateVerdict, verdict
from memtool.store import files
from memtool.store.files import read_or_none
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from memtool.inject.candidates import Candidate
    from memtool.inject.tiers import BlockEntry
    from memtool.store.context import Context
    from memtool.store.tree import Record

FOLDER = "shown"
STARTS = "starts"
MOST_BYTES = 256 * 1024
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


def named(session: str) -> str:
    """Return the hash by which a session is known here."""
    return digest(session.encode(errors="replace"), _NAME_BYTES)


def read(directory: str, session: str) -> frozenset[tuple[str, str]]:
    """Return what a session has seen: each memory's id with the version that it was shown in.

    `directory` is the cache directory of the repository.
    """
    rows = _lines(os.path.join(directory, FOLDER, named(session)), _SHOWN_FIELDS)
    return frozenset((row[0], row[1]) for row in rows)


def add(directory: str, session: str, versions: Iterable[tuple[str, str]]) -> None:
    """Note that a session has seen memories. Where that cannot be written, it may see them again.

    Raises:
        OSError: it cannot be written there.
    """
    lines = "".join(f"\n{id_} {version} {_END}" for id_, version in versions)
    if lines:
        path = os.path.join(directory, FOLDER, named(session))
        files.append(path, lines.encode(errors="replace"), MOST_BYTES)


def forget(directory: str, session: str) -> None:
    """Let a session see everything again: it lost its context."""
    try:
        os.unlink(os.path.join(directory, FOLDER, named(session)))
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
    name = named(session)
    path = os.path.join(directory, FOLDER, STARTS)
    starts = _starts(path)
    if is_resumed or not any(start.session == name for start in starts):
        if len(starts) >= 2 * KEPT_SESSIONS:
            _keep_last(path, starts[-KEPT_SESSIONS:])
        line = f"\n{moment} {head or '-'} {name} {_END}"
        files.append(path, line.encode(errors="replace"), MOST_BYTES)
        _sweep(os.path.join(directory, FOLDER), moment)


def earlier(directory: str, session: str) -> list[Start]:
    """Return the beginnings of the sessions before this one in order, as many as are kept."""
    name = named(session)
    found: list[Start] = []
    for start in _starts(os.path.join(directory, FOLDER, STARTS)):
        if start.session == name:
            break  # what began after it is no past of its own
        found.append(start)
    return found


def beginnings(directory: str, session: str) -> list[Start]:
    """Return when a session began and was resumed, the oldest first, as far as that is kept."""
    name = named(session)
    starts = _starts(os.path.join(directory, FOLDER, STARTS))
    return [start for start in starts if start.session == name]


def primed(directory: str, session: str) -> tuple[str, str]:
    """Return the line that says that a session was given the primer of its newest beginning."""
    return _PRIMED, str(len(beginnings(directory, session)))


def has_seen(directory: str, session: str) -> bool:
    """Tell whether a session was shown a memory that it still has in its context."""
    return any(not id_.startswith(_MARK) for id_, _version in read(directory, session))


def summed_up(directory: str, session: str, where: str) -> None:
    """Forget what a session has seen, once for each place at which its context was summed up."""
    mark = _SUMMED_UP, where
    if mark in read(directory, session):
        return
    forget(directory, session)
    try:
        add(directory, session, (mark,))
    except OSError:
        return


def is_due(directory: str, session: str) -> bool:
    """Tell whether a session began, or lost its context, and has not been given the primer since.

    The answer at its start may have come too late for the host, or to a host that takes none there.
    """
    mark = primed(directory, session)
    return mark[1] != "0" and mark not in read(directory, session)


def _starts(path: str) -> list[Start]:
    return [
        Start(int(moment), head.strip("-"), session)
        for moment, head, session, _end in _lines(path, _START_FIELDS)
        if moment.isdecimal()
    ]


def _lines(path: str, fields: int) -> list[list[str]]:
    """Return the fields of the whole lines of a file; none where there is no file."""
    data = read_or_none(path, MOST_BYTES) or b""
    rows = [line.split(" ") for line in data.decode(errors="replace").split("\n")]
    return [row for row in rows if len(row) == fields and row[-1] == _END]


def _keep_last(path: str, starts: Iterable[Start]) -> None:
    """Rewrite the file of beginnings. One that is appended meanwhile may be lost: news only."""
    lines = "".join(f"\n{one.moment} {one.head or '-'} {one.session} {_END}" for one in starts)
    files.put(*os.path.split(path), lines.encode(errors="replace"))


def _sweep(folder: str, now: int) -> None:
    ages = []
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


def notice(text: str) -> tuple[str, str]:
    """Return the line that says that a session was given a notice; another text is another one."""
    return _NOTICE, digest(text.encode(), _NAME_BYTES)


SILENCED = "silenced"
"""Stands for the version of a memory of which the session knows that it was taken out of use."""
_OID_DIGITS = 16
_BRIEF = "~"
"""Ends the version of what was shown as its statement only."""


class SeenMemories(Value):
    """What one session has seen: nothing without a session. `marks` gives a memory's warnings."""

    session: str
    seen: frozenset[tuple[str, str]]
    marks: Callable[[Record], tuple[str, ...]]

    def version(self, record: Record) -> tuple[str, str]:
        """Return the id of a memory with what would have to change for it to be news."""
        marks = self.marks(record)
        contested = f"-{crc32(chr(10).join(marks).encode()):08x}" if marks else ""
        return record.id, record.oid[:_OID_DIGITS] + contested

    def fresh(self, chosen: Iterable[Candidate]) -> tuple[list[Candidate], list[CandidateVerdict]]:
        """Return those that the session has not seen, and verdicts about the others."""
        if not self.seen:
            return list(chosen), []
        kept, dropped = [], []
        for candidate in chosen:
            id_, version = self.version(candidate.record)
            is_told = candidate.is_brief and (id_, version + _BRIEF) in self.seen
            if is_told or (id_, version) in self.seen:
                reason = "this session has seen it"
                dropped.append(verdict(candidate, reason, is_taken=False))
            else:
                kept.append(candidate)
        return kept, dropped

    def versions(self, taken: Iterable[BlockEntry]) -> tuple[tuple[str, str], ...]:
        """Return what the session sees now."""
        found = []
        for one in taken if self.session else ():
            id_, version = self.version(one.candidate.record)
            found.append((id_, version + _BRIEF * one.candidate.is_brief))
        return tuple(found)


def seen_memories(
    context: Context,
    session: str,
    marks: Callable[[Record], tuple[str, ...]],
    more: Iterable[tuple[str, str]] = (),
) -> SeenMemories:
    """Return what a session has seen in this clone: nothing where its name is empty.

    `more` is what it is shown at this moment.
    """
    seen = read(context.repository.cache_dir, session) if session else frozenset()
    return SeenMemories(session, seen.union(more), marks)


def keep(context: Context, answer: Any) -> None:
    """Note what an answer showed to its session; where that cannot be noted, it may come again."""
    try:
        add(context.repository.cache_dir, answer.session, answer.versions)
    except OSError:
        return


WAITING = os.path.join("sessions", "waiting")
"""Below the private directory: how many findings have the evidence to be promoted, by then."""
_MOST_DIGITS = 20


def waiting(cache_dir: str) -> int:
    """Return how many findings wait to be promoted; 0 where no number is stored."""
    data = (read_or_none(os.path.join(cache_dir, WAITING), _MOST_DIGITS) or b"").strip()
    return int(data) if data.isdigit() else 0
