"""Adding: messages into a session, redacted, numbered and within its limit."""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.sessions import checkpoints, cleaning, journal, parts, private
from memtool.sessions import head as heads
from memtool.sessions import message as messages
from memtool.sessions.journal import Writer
from memtool.sessions.message import Message
from memtool.sessions.store import CHECKPOINTS, MEGABYTE, MESSAGES, Sessions, gathered
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.sessions.head import Head

NEARLY_FULL = 0.9
"""From this share of its limit on, a session is compressed, and said to be nearly full."""
_WORTH = 0.05
"""Share of the limit from which compressing is worth a part of its own."""
_START = b'{"number":'


class Added(Value):
    """What was added, as it is kept, and what should be said about the session."""

    messages: tuple[Message, ...]
    notes: tuple[str, ...] = ()


def add(
    sessions: Sessions,
    id: str,
    new: Sequence[Message],
    now: int,
    *,
    reopen: bool = False,
    most_text: int = 0,
) -> Added:
    """Add messages to a session, all or none; each gets the next number.

    Where the session has ended, `reopen` opens it again. Of a text longer than `most_text`, if
    that is set, both ends are kept.

    Raises:
        MemtoolError: there is no such session, it has ended, it is full, or the disk refuses.
    """
    folder = sessions.folder(id)
    # Before the lock: others wait for that.
    clean = cleaning.cleaned(new, sessions.allowed, most_text)
    with Writer(os.path.join(folder, MESSAGES)) as writer:
        head = sessions.head(id)
        refuse_ended(head, reopen=reopen)
        older = parts.parts(folder)
        last = _settled(writer, older)
        before = writer.last(checkpoints.EVERY)
        numbered = [
            one.replace(number=last + place, agent=one.agent or _speaker(one, head))
            for place, one in enumerate(clean, start=1)
        ]
        data = journal.write(map(messages.row, numbered))
        notes = torn_note(writer)
        notes += _with_room(sessions, folder, writer, older, last, len(data))
        writer.write(data)
        if head.status != "open":
            heads.write(folder, head.replace(status="open", ended=0, summary=""))
        reached = checkpoints.automatic(_read(before), numbered, now)
        if reached:
            keep(folder, writer, reached)
    return Added(tuple(numbered), notes)


def mark(sessions: Sessions, id: str, note: str, now: int) -> checkpoints.Checkpoint:
    """Make a checkpoint by hand, with a note.

    Raises:
        MemtoolError: there is no such session, it has ended, or the disk refuses.
    """
    folder = sessions.folder(id)
    said = cleaning.clean_texts({note}, sessions.allowed)[note]
    with Writer(os.path.join(folder, MESSAGES)) as writer:
        refuse_ended(sessions.head(id))
        known, _torn = gathered(folder, writer.whole())
        rows, _torn = journal.read(os.path.join(folder, CHECKPOINTS))
        done = max((one.message for one in map(checkpoints.read, rows) if one), default=0)
        since = [one for one in known if one.number > done]
        made = checkpoints.checkpoint(since, now, said)
        keep(folder, writer, [made.replace(message=known[-1].number if known else 0)])
    return made


def keep(folder: str, writer: Writer, made: Sequence[checkpoints.Checkpoint]) -> None:
    """Sync the messages, then note the checkpoints. Raises MemtoolError where the disk refuses."""
    try:
        writer.sync()
    except OSError as error:
        raise private.refusal(writer.path, "written", error) from None
    rows = [
        {name: value for name, value in one.plain().items() if value not in ("", 0, [])}
        for one in made
    ]
    journal.append(os.path.join(folder, CHECKPOINTS), rows)


def refuse_ended(head: Head, *, reopen: bool = False) -> None:
    """Raise MemtoolError where a session has ended, and is not to be opened again."""
    if head.status == "pruned" or (head.status != "open" and not reopen):
        how = f"memtool session fork {head.id} goes on in a new one"
        raise MemtoolError(
            f"session {head.id} has ended",
            hint=how if head.status == "pruned" else f"--reopen adds to it, {how}",
            code="session-ended",
        )


def torn_note(writer: Writer) -> tuple[str, ...]:
    """Return what to say about the half line that was cut off a journal."""
    if not writer.torn:
        return ()
    aside = os.path.basename(writer.path) + journal.TORN_SUFFIX
    said = "a line that a killed process left half written was set aside in"
    return (f"{said} {aside}; everything before it is whole",)


def _settled(writer: Writer, older: Sequence[parts.Part]) -> int:
    """Return the last number that was given; what is in a part already leaves the journal."""
    behind = older[-1].last if older else 0
    last = _number(writer.last())
    if last is None:  # by another hand, so all lines are asked
        last = max((one.number for one in _read(writer.whole())), default=0)
    if writer.size and 0 < last <= behind:
        try:
            writer.clear()
        except OSError as error:
            raise private.refusal(writer.path, "written", error) from None
    return max(last, behind)


def _number(line: bytes) -> int | None:
    """Return the number of a line, 0 for none at all, None where it says none."""
    if not line:
        return 0
    digits = line[len(_START) :].partition(b",")[0]
    return int(digits) if line.startswith(_START) and digits.isdigit() else None


def _read(lines: bytes) -> list[Message]:
    rows, _torn = journal.parse(lines)
    return [one for one in map(messages.read, rows) if one is not None]


def _speaker(message: Message, head: Head) -> str:
    return head.agent if message.role in ("assistant", "tool") else ""


def _with_room(
    sessions: Sessions,
    folder: str,
    writer: Writer,
    older: Sequence[parts.Part],
    last: int,
    length: int,
) -> tuple[str, ...]:
    """Compress what is there when the session is nearly full; return what to say.

    Raises:
        MemtoolError: there is no room for so many bytes even then.
    """
    id_ = os.path.basename(folder)
    most = sessions.most_bytes
    size = sessions.size(id_)
    if size + length < NEARLY_FULL * most:
        return ()
    if writer.size > _WORTH * most:
        first = older[-1].last + 1 if older else 1
        parts.compress(folder, writer, first, last)
        size = sessions.size(id_)
    said = f"{(size + length) / MEGABYTE:.1f} of {most / MEGABYTE:g} MB"
    if size + length > most:
        raise MemtoolError(
            f"session {id_} is full: that would be {said}",
            hint=f"memtool session end {id_} and start another, or raise sessions.session_mb",
            code="session-full",
        )
    if size + length < NEARLY_FULL * most:
        reached = f"session {id_} reached {NEARLY_FULL:.0%} of its limit"
        return (f"{reached}; its messages were compressed, it has {said} now",)
    return (f"session {id_} is nearly full: {said}",)
