"""Capture: add the new messages of a transcript to a session.

Any number of captures may run at once. The journal of captures is the lock, and records how far
each transcript was read. Messages keep the id of their transcript line, so nothing is added twice
even if that journal is lost. A host that forks a session copies its lines into a new transcript,
with the same ids. Such a copy becomes a fork of the original session, and does not count as a
second witness.
"""

from __future__ import annotations

import os
from contextlib import suppress

from memtool.agents import BY_NAME
from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.sessions import failure_state, journal, lifecycle, retention, store
from memtool.sessions.journal import Writer
from memtool.sessions.model import Message, Session, read_row
from memtool.sessions.store import MESSAGES, SessionExistsError, Sessions, clean_row, clean_texts
from memtool.sessions.transcripts import reader
from memtool.sessions.transcripts.reader import Mark, Reading
from memtool.store.files import read_regular
from memtool.value import Value, digest, split_batches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, BinaryIO

CAPTURES = "captures.jsonl"
MAX_TEXT_CHARS = 16_000
"""Maximum characters of a stored message: a session records what happened, not all that was
printed."""
BATCH_MESSAGES = 500
"""Number of messages written at once."""
FUTURE_S = timestamps.DAY_S
_MAX_SESSIONS = 50
"""Number of sessions searched for a parent, latest start first."""


class Transcript(Value):
    """A transcript to capture. `path` is empty if its bytes come from stdin."""

    file: BinaryIO
    path: str
    tops: tuple[str, ...]
    host: str = ""
    session: str = ""
    """The session to add it to; by default the one that it names."""


class Capture(Value):
    """The messages that a capture added to a session, as stored.

    `broken` counts lines that could not be read, `future` messages dated in the future, and `lost`
    those that did not fit into a full session.
    """

    session: str
    host: str
    messages: tuple[Message, ...]
    broken: int
    future: int
    is_new: bool
    """Whether the capture created the session."""
    notes: tuple[str, ...] = ()
    lost: int = 0


def capture(
    sessions: Sessions,
    transcript: Transcript,
    begin: Callable[[str, Reading], Session],
    now: int,
    *,
    dry_run: bool = False,
) -> Capture:
    """Add the new messages of a transcript to its session; `begin` makes the head of a new one.

    Raises:
        MemtoolError: it is not a transcript, the session is full, or the disk refuses.
    """
    id_ = transcript.session
    is_new = False
    if not id_ or id_ not in sessions.ids():
        read = _read(transcript, None)
        if read.is_copy and read.session in sessions.ids():
            note = f"{read.session} was captured from its own transcript; this copy adds nothing"
            return _capture(read.session, read, (), now).replace(notes=(note,))
        id_ = id_ or _find_id(sessions, transcript, read)
        if id_ not in sessions.ids():
            read = _after_retention(sessions, id_, read)
            if not read.messages:
                return _capture(id_, read, (), now).replace(notes=_list_notes(sessions, id_))
            head = begin(id_, read)
            findings: list[dict[str, Any]] = []
            named = _name_origins(sessions, read)
            parent, shared = _find_parent(sessions, id_, read.host, named)
            if parent:
                head, copied = lifecycle.fork(sessions, parent, head, is_kept=not dry_run)
                head = head.replace(parent_messages=shared)
                findings = [row for row in copied if max(row["messages"], default=0) <= shared]
            if dry_run:
                origins = _read_origins(sessions, parent) if parent else set()
                new = [message for message in named if message.origin not in origins]
                made = _capture(id_, read, new, now, is_new=True)
                return made.replace(notes=_list_notes(sessions, id_))
            with suppress(SessionExistsError):  # another capture may have just created it
                sessions.create(head, findings)
                is_new = True
    path = os.path.join(sessions.folder(id_), CAPTURES)
    notes = _list_notes(sessions, id_)
    if dry_run:
        read, new, _number = _find_new(
            sessions, transcript, id_, _index_rows(journal.read(path)[0])
        )
        return _capture(id_, read, new, now).replace(notes=notes)
    notes = (*_repair(sessions, id_, now), *notes)
    with Writer(path) as marks:
        done = _continue(sessions, transcript, id_, marks, now)
    return done.replace(is_new=is_new, notes=(*notes, *done.notes))


def _find_id(sessions: Sessions, transcript: Transcript, read: Reading) -> str:
    """Return the session id for a transcript; that of a copy is not the id of the original."""
    if read.is_copy and read.session:
        return sessions.find_name(read.host, f"{read.host}-{read.session}")
    return sessions.find_name(read.host, read.session or _name(transcript))


def _after_retention(sessions: Sessions, id: str, read: Reading) -> Reading:
    """Drop the messages sent before the session was deleted."""
    gone = retention.find_deletion(sessions, id)
    if not gone:
        return read
    return read.replace(
        messages=tuple(message for message in read.messages if message.moment > gone)
    )


def _list_notes(sessions: Sessions, id: str) -> tuple[str, ...]:
    """Return the note for the user if a session was deleted before."""
    gone = retention.find_deletion(sessions, id)
    if not gone:
        return ()
    left_out = f"{id} was deleted on {timestamps.render(gone)}: what was said before is left out"
    return (f"{left_out}; --session NAME takes all of it into another session",)


def _repair(sessions: Sessions, id: str, now: int) -> tuple[str, ...]:
    """Repair a session with a damaged head, and return notes for the user."""
    try:
        sessions.head(id)
    except MemtoolError as error:
        if error.code != "session-damaged":
            raise
        retention.repair(sessions, id, now)
        return (f"{error.message}; it was set aside, and rebuilt from the messages",)
    return ()


def _continue(
    sessions: Sessions, transcript: Transcript, id: str, marks: Writer, now: int
) -> Capture:
    """Add the new messages; the caller holds the journal of captures.

    Messages that do not fit into a full session still count as read.
    """
    rows = _index_rows(journal.parse(marks.read_whole())[0])
    read, new, number = _find_new(sessions, transcript, id, rows)
    new = failure_state.attach_states(sessions.folder(id), new)
    messages: list[Message] = []
    notes: dict[str, None] = {}
    for some in split_batches(new, BATCH_MESSAGES):
        try:
            added = store.add(sessions, id, some, now, reopen=True, most_text=MAX_TEXT_CHARS)
        except MemtoolError as error:
            if error.code != "session-full":
                raise
            notes[error.as_line] = None
            break
        messages += added.messages
        notes |= dict.fromkeys(added.notes)
    if transcript.path:
        place = _journal_name(transcript, sessions)
        row = {"path": place, "moment": now, "number": number + len(messages)}
        rows[place] = clean_row(read.mark.plain(), sessions.allowed) | row
        # Losing the rows between these two steps is harmless: the next capture only takes longer.
        marks.clear()
        marks.append(rows.values())
    done = _capture(id, read, messages, now)
    return done.replace(notes=tuple(notes), lost=len(new) - len(messages))


def _capture(
    id: str, read: Reading, messages: Sequence[Message], now: int, *, is_new: bool = False
) -> Capture:
    future = sum(message.moment > now + FUTURE_S for message in messages)
    return Capture(id, read.host, tuple(messages), read.broken, future, is_new)


def _name(transcript: Transcript) -> str:
    """Name a transcript that names no session: its path, or a hash of its bytes."""
    if transcript.path:
        return transcript.path
    transcript.file.seek(0)
    return f"stdin {digest(transcript.file.read())}"


def _journal_name(transcript: Transcript, sessions: Sessions) -> str:
    """Return a transcript's name in the journal of captures: its path, hashed if it is secret."""
    path = transcript.path
    return path if sessions.clean(path) == path else digest(os.fsencode(path))


def _index_rows(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Index the rows of the journal of captures by transcript."""
    return {row["path"]: row for row in rows if isinstance(row.get("path"), str)}


def _find_new(
    sessions: Sessions, transcript: Transcript, id: str, rows: dict[str, dict[str, Any]]
) -> tuple[Reading, list[Message], int]:
    """Return the reading, its new messages, and the number of the session's last message."""
    before = rows.get(_journal_name(transcript, sessions), {})
    read = _after_retention(sessions, id, _read(transcript, read_row(Mark, before)))
    last = sessions.read_last(id)
    number = last.number if last else 0
    is_certain = not read.is_new and before.get("number") == number
    origins = set() if is_certain else _read_origins(sessions, id)
    return (
        read,
        [message for message in _name_origins(sessions, read) if message.origin not in origins],
        number,
    )


def _read(transcript: Transcript, mark: Mark | None) -> Reading:
    return reader.read(
        transcript.file,
        transcript.path or "stdin",
        transcript.tops,
        host=transcript.host,
        session=transcript.session,
        mark=mark,
    )


def _name_origins(sessions: Sessions, read: Reading) -> list[Message]:
    """Return the messages with stable origins: one that looks like a secret is hashed.

    If secrets were cut out instead, many origins would become the same.
    """
    clean = clean_texts({message.origin for message in read.messages}, sessions.allowed)
    return [
        message
        if clean[message.origin] == message.origin
        else message.replace(origin=digest(message.origin.encode(errors="surrogatepass")))
        for message in read.messages
    ]


def _find_parent(
    sessions: Sessions, id: str, host: str, messages: Sequence[Message]
) -> tuple[str, int]:
    """Return the session that contains the first of these messages, and the last number they share.

    The id is empty if there is none. If several match, the one that began last is returned.
    """
    first = next((message.origin for message in messages if message.origin), "")
    if host not in BY_NAME or not BY_NAME[host].has_message_ids or not first:
        return "", 0
    mark = journal.write([{"origin": first}])[1:-2]
    heads = [head for head in sessions.heads()[0] if head.host == host and head.id != id]
    heads.sort(key=lambda head: (head.started, head.id), reverse=True)
    copied = {message.origin for message in messages}
    for head in heads[:_MAX_SESSIONS]:
        if any(mark in data for data in _iterate_journals(sessions, head.id)):
            parent_messages, _torn = sessions.messages(head.id)
            shared = [message.number for message in parent_messages if message.origin in copied]
            if shared:
                return head.id, shared[-1]
    return "", 0


def _iterate_journals(sessions: Sessions, id: str) -> Iterator[bytes]:
    folder = sessions.folder(id)
    with suppress(OSError):  # it has no messages
        yield read_regular(os.path.join(folder, MESSAGES))
        yield from map(journal.read_part, journal.list_parts(folder))


def _read_origins(sessions: Sessions, id: str) -> set[str]:
    """Return the origins of a session's messages, and those of its ancestors."""
    origins: set[str] = set()
    seen: set[str] = set()
    name = id
    while name and name not in seen:
        seen.add(name)
        try:
            messages, _torn = sessions.messages(name)
            before = sessions.head(name).parent
        except MemtoolError:  # a parent was removed by hand
            if name == id:
                raise
            break
        origins.update(message.origin for message in messages if message.origin)
        name = before
    return origins
