"""Ending, forking and pruning: what becomes of a session after its last message."""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.sessions import cleaning, journal, learning, parts, private
from memtool.sessions import head as heads
from memtool.sessions.adding import refuse_ended
from memtool.sessions.head import Head
from memtool.sessions.journal import Writer
from memtool.sessions.store import FINDINGS, MEGABYTE, MESSAGES, Sessions, gathered
from memtool.sessions.summary import summary
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from memtool.sessions.message import Message

PRUNE_TO = 0.8
"""Share of the total limit that pruning goes down to."""


class Pruned(Value):
    """Sessions whose messages were removed, the oldest first, and the bytes that it freed."""

    ids: tuple[str, ...]
    freed: int
    size: int


def end(
    sessions: Sessions, id: str, said: str, now: int, *, dry_run: bool = False
) -> tuple[Head, int]:
    """End a session with a summary, by rules where none is said; return its head and messages.

    Raises:
        MemtoolError: there is no such session, it has ended, or the disk refuses.
    """
    folder = sessions.folder(id)
    clean = cleaning.clean_texts({said}, sessions.allowed)[said]
    if dry_run:
        head = sessions.head(id)
        refuse_ended(head)
        return _ended(sessions, head, sessions.messages(id)[0], clean, now)
    with Writer(os.path.join(folder, MESSAGES)) as writer:
        head = sessions.head(id)
        refuse_ended(head)
        known, _torn = gathered(folder, writer.whole())
        ended = _ended(sessions, head, known, clean, now)
        try:
            writer.sync()
        except OSError as error:
            raise private.refusal(writer.path, "written", error) from None
        heads.write(folder, ended[0])
    return ended


def _ended(
    sessions: Sessions, head: Head, known: Sequence[Message], said: str, now: int
) -> tuple[Head, int]:
    titles = [one.title for one in learning.known(sessions, head.id).findings]
    said = said or summary(known, titles)
    return head.replace(status="ended", ended=now, summary=said), len(known)


def forked(sessions: Sessions, parent: str, child: Head) -> tuple[Head, list[dict[str, Any]]]:
    """Return the head of a session that goes on from another one, and the findings that it takes.

    They stay findings of the parent, whose messages prove them.

    Raises:
        MemtoolError: there is no such parent, or it cannot be read.
    """
    rows, _torn = journal.read(sessions.path(parent, FINDINGS))
    last = sessions.last(parent)
    return child.replace(parent=parent, parent_messages=last.number if last else 0), rows


def fork(sessions: Sessions, head: Head, findings: list[dict[str, Any]]) -> None:
    """Make a session that was forked.

    Raises:
        Exists: there is one of that id.
        MemtoolError: the disk refuses.
    """
    sessions.create(head)
    if findings:
        journal.append(sessions.path(head.id, FINDINGS), findings)


def prune(sessions: Sessions, *, dry_run: bool = False) -> Pruned:
    """Remove the messages of the sessions that ended first, until all are well below the limit.

    Heads, checkpoints and findings stay.

    Raises:
        MemtoolError: something cannot be read or removed.
    """
    sizes = {id_: sessions.size(id_) for id_ in sessions.ids()}
    size = sum(sizes.values())
    done: list[str] = []
    freed = 0
    for head in sorted(sessions.heads()[0], key=lambda head: (head.ended, head.id)):
        if size - freed <= PRUNE_TO * sessions.most_total:
            break
        if head.status == "ended":
            folder = sessions.folder(head.id)
            freed += _messages_size(folder) if dry_run else _removed(sessions, head.id, folder)
            done.append(head.id)
    return Pruned(tuple(done), freed, size - freed)


def _messages_size(folder: str) -> int:
    sizes = [part.size for part in parts.parts(folder)]
    try:
        return os.stat(os.path.join(folder, MESSAGES)).st_size + sum(sizes)
    except FileNotFoundError:
        return sum(sizes)


def _removed(sessions: Sessions, id: str, folder: str) -> int:
    """Remove the messages of a session that has ended; return how many bytes they had."""
    with Writer(os.path.join(folder, MESSAGES)) as writer:
        head = sessions.head(id)
        if head.status != "ended":  # somebody opened it again meanwhile
            return 0
        freed = _messages_size(folder)
        heads.write(folder, head.replace(status="pruned"))
        try:
            for part in parts.parts(folder):
                os.unlink(part.path)
            writer.clear()
        except OSError as error:
            raise private.refusal(folder, "written", error) from None
    return freed


def refuse_full(sessions: Sessions) -> None:
    """Raise MemtoolError where all sessions together have reached their limit."""
    size = sum(sessions.size(id_) for id_ in sessions.ids())
    if size >= sessions.most_total:
        raise MemtoolError(
            f"the sessions of this clone take {size / MEGABYTE:,.0f} MB, "
            f"{sessions.most_total / MEGABYTE:,.0f} are allowed",
            hint="memtool session prune removes the messages of the oldest, or raise "
            "sessions.total_mb",
            code="sessions-full",
        )
