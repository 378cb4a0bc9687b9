"""Capture: a transcript into a session, only what is new, any number of captures at once.

The journal of captures is the lock: it says how far each transcript was read. Messages keep
the name of their line, so that nothing is taken twice even where that journal is lost. A
host that forks a session copies its lines into a new transcript, under their own names: such a
copy goes on from the session that it was made of, and does not look like a second witness.
"""

from __future__ import annotations

import os
from contextlib import suppress

from memtool.agents import NAMING_AGENTS
from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.sessions import failure_state, journal, lifecycle, retention, store
from memtool.sessions.journal import Writer
from memtool.sessions.model import Head, Message, read_row
from memtool.sessions.store import MESSAGES, Exists, Sessions, clean_row, clean_texts
from memtool.sessions.transcripts import reader
from memtool.sessions.transcripts.reader import Mark, Reading
from memtool.store.files import read_regular
from memtool.value import Value, batches, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, BinaryIO

CAPTURES = "captures.jsonl"
MOST_TEXT = 16_000
"""Characters that are kept of a message; a session is what happened, not what was printed."""
AT_ONCE = 500
"""Messages that are written together."""
FUTURE_S = timestamps.DAY_S
_MOST_SESSIONS = 50
"""Sessions among which a parent is looked for, the ones that began last."""


class Transcript(Value):
    """A transcript to capture. `path` is empty where its bytes come from stdin."""

    file: BinaryIO
    path: str
    tops: tuple[str, ...]
    host: str = ""
    session: str = ""
    """The session that it goes into; by default the one that it names."""


class Capture(Value):
    """What a capture took into a session, as it is stored.

    `broken` counts lines that could not be read, `future` messages whose time lies in the future,
    `lost` those that the session has no room for.
    """

    session: str
    host: str
    messages: tuple[Message, ...]
    broken: int
    future: int
    is_new: bool
    """Whether the session was begun for it."""
    notes: tuple[str, ...] = ()
    lost: int = 0


def capture(
    sessions: Sessions,
    transcript: Transcript,
    begin: Callable[[str, Reading], Head],
    now: int,
    *,
    dry_run: bool = False,
) -> Capture:
    """Take what is new in a transcript into its session, which `begin` makes a head for.

    Raises:
        MemtoolError: it is no transcript, the session is full, or the disk refuses.
    """
    id_ = transcript.session
    is_new = False
    if not id_ or id_ not in sessions.ids():
        read = _read(transcript, None)
        id_ = id_ or sessions.named(read.host, read.session or _name(transcript))
        if id_ not in sessions.ids():
            read = _kept(sessions, id_, read)
            if not read.messages and retention.deleted_at(sessions, id_):
                return _capture(id_, read, (), now).replace(notes=_notes(sessions, id_))
            head = begin(id_, read)
            findings: list[dict[str, Any]] = []
            named = _named(sessions, read)
            parent, shared = _parent(sessions, id_, read.host, named)
            if parent:
                head, taken = lifecycle.forked(sessions, parent, head, is_kept=not dry_run)
                head = head.replace(parent_messages=shared)
                findings = [row for row in taken if max(row["messages"], default=0) <= shared]
            if dry_run:
                known = _origins(sessions, parent) if parent else set()
                new = [one for one in named if one.origin not in known]
                made = _capture(id_, read, new, now, is_new=True)
                return made.replace(notes=_notes(sessions, id_))
            with suppress(Exists):  # another capture may have begun it just now
                sessions.create(head, findings)
                is_new = True
    path = os.path.join(sessions.folder(id_), CAPTURES)
    notes = _notes(sessions, id_)
    if dry_run:
        read, new, _number = _new(sessions, transcript, id_, _rows(journal.read(path)[0]))
        return _capture(id_, read, new, now).replace(notes=notes)
    notes = (*_repaired(sessions, id_, now), *notes)
    with Writer(path) as marks:
        done = _continued(sessions, transcript, id_, marks, now)
    return done.replace(is_new=is_new, notes=(*notes, *done.notes))


def _kept(sessions: Sessions, id: str, read: Reading) -> Reading:
    """Return what was read without what was said before the session was deleted."""
    gone = retention.deleted_at(sessions, id)
    if not gone:
        return read
    return read.replace(messages=tuple(one for one in read.messages if one.moment > gone))


def _notes(sessions: Sessions, id: str) -> tuple[str, ...]:
    """Return what the user should know of a session that was deleted."""
    gone = retention.deleted_at(sessions, id)
    if not gone:
        return ()
    left_out = f"{id} was deleted on {timestamps.render(gone)}: what was said before is left out"
    return (f"{left_out}; --session NAME takes all of it into another session",)


def _repaired(sessions: Sessions, id: str, now: int) -> tuple[str, ...]:
    """Repair a session whose head is damaged, and return what the user should know of it."""
    try:
        sessions.head(id)
    except MemtoolError as error:
        if error.code != "session-damaged":
            raise
        retention.repair(sessions, id, now)
        return (f"{error.message}; it was set aside, and rebuilt from the messages",)
    return ()


def _continued(
    sessions: Sessions, transcript: Transcript, id: str, marks: Writer, now: int
) -> Capture:
    """Take over what is new; the caller holds the journal of captures.

    What a full session has no room for counts as read all the same.
    """
    rows = _rows(journal.parse(marks.whole())[0])
    read, new, number = _new(sessions, transcript, id, rows)
    new = failure_state.attached(sessions.folder(id), new)
    kept: list[Message] = []
    notes: dict[str, None] = {}
    for some in batches(new, AT_ONCE):
        try:
            added = store.add(sessions, id, some, now, reopen=True, most_text=MOST_TEXT)
        except MemtoolError as error:
            if error.code != "session-full":
                raise
            notes[f"{error.message}; {error.hint}"] = None
            break
        kept += added.messages
        notes |= dict.fromkeys(added.notes)
    if transcript.path:
        place = _place(transcript, sessions)
        row = {"path": place, "moment": now, "number": number + len(kept)}
        rows[place] = clean_row(read.mark.plain(), sessions.allowed) | row
        # Without them a capture only takes longer, so they may be lost between the two steps.
        marks.clear()
        marks.append(rows.values())
    done = _capture(id, read, kept, now)
    return done.replace(notes=tuple(notes), lost=len(new) - len(kept))


def _capture(
    id: str, read: Reading, messages: Sequence[Message], now: int, *, is_new: bool = False
) -> Capture:
    future = sum(one.moment > now + FUTURE_S for one in messages)
    return Capture(id, read.host, tuple(messages), read.broken, future, is_new)


def _name(transcript: Transcript) -> str:
    """Return the name of a transcript that names no session: its path, or a hash of its bytes."""
    if transcript.path:
        return transcript.path
    transcript.file.seek(0)
    return f"stdin {digest(transcript.file.read())}"


def _place(transcript: Transcript, sessions: Sessions) -> str:
    """Return the name of a transcript in the journal of captures: its path, if it is no secret."""
    path = transcript.path
    return path if sessions.clean(path) == path else digest(os.fsencode(path))


def _rows(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the rows of the journal of captures by the transcript that each is about."""
    return {row["path"]: row for row in rows if isinstance(row.get("path"), str)}


def _new(
    sessions: Sessions, transcript: Transcript, id: str, rows: dict[str, dict[str, Any]]
) -> tuple[Reading, list[Message], int]:
    """Return what was read, what of it is new, and the number of the last message there is."""
    before = rows.get(_place(transcript, sessions), {})
    read = _kept(sessions, id, _read(transcript, read_row(Mark, before)))
    last = sessions.last(id)
    number = last.number if last else 0
    is_certain = not read.is_new and before.get("number") == number
    known = set() if is_certain else _origins(sessions, id)
    return read, [one for one in _named(sessions, read) if one.origin not in known], number


def _read(transcript: Transcript, mark: Mark | None) -> Reading:
    return reader.read(
        transcript.file,
        transcript.path or "stdin",
        transcript.tops,
        host=transcript.host,
        session=transcript.session,
        mark=mark,
    )


def _named(sessions: Sessions, read: Reading) -> list[Message]:
    """Return what was read with origins that stay as they are: one like a secret is hashed.

    Cut out, many would become the same.
    """
    clean = clean_texts({one.origin for one in read.messages}, sessions.allowed)
    return [
        one
        if clean[one.origin] == one.origin
        else one.replace(origin=digest(one.origin.encode(errors="surrogatepass")))
        for one in read.messages
    ]


def _parent(sessions: Sessions, id: str, host: str, messages: Sequence[Message]) -> tuple[str, int]:
    """Return the session that holds the first of these messages, and the last number they share.

    Without such a session the id is empty. Of several it is the one that began last.
    """
    first = next((one.origin for one in messages if one.origin), "")
    if host not in NAMING_AGENTS or not first:
        return "", 0
    mark = journal.write([{"origin": first}])[1:-2]
    heads = [head for head in sessions.heads()[0] if head.host == host and head.id != id]
    heads.sort(key=lambda head: (head.started, head.id), reverse=True)
    copied = {one.origin for one in messages}
    for head in heads[:_MOST_SESSIONS]:
        if any(mark in data for data in _journals(sessions, head.id)):
            known, _torn = sessions.messages(head.id)
            shared = [one.number for one in known if one.origin in copied]
            if shared:
                return head.id, shared[-1]
    return "", 0


def _journals(sessions: Sessions, id: str) -> Iterator[bytes]:
    folder = sessions.folder(id)
    with suppress(OSError):  # it has no messages
        yield read_regular(os.path.join(folder, MESSAGES))
        yield from map(journal.opened, journal.parts(folder))


def _origins(sessions: Sessions, id: str) -> set[str]:
    """Return the names of the lines that a session was made from, and those before it."""
    found: set[str] = set()
    seen: set[str] = set()
    name = id
    while name and name not in seen:
        seen.add(name)
        try:
            known, _torn = sessions.messages(name)
            before = sessions.head(name).parent
        except MemtoolError:  # a parent was removed by hand
            if name == id:
                raise
            break
        found.update(one.origin for one in known if one.origin)
        name = before
    return found
