"""The store of sessions: private logs below the git directory.

head.json                     what it is: host, agent, worktree, branch, parent, status
    messages.jsonl                the messages, append-only
    messages-FIRST-LAST.jsonl.gz  older messages, compressed
    checkpoints.jsonl             where the work was every ten messages, and when one is asked for
    findings.jsonl                what was found in it

Everything is redacted before it is written, and numbers are given under the lock of
`messages.jsonl`, so that any number of processes may write to one session. At a checkpoint
everything before it is synced to the disk: a power cut takes no more than what came after.
"""

from __future__ import annotations

import os
import stat

from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.redaction.find import NOTHING, Allowlist
from memtool.sessions import journal, model, redaction
from memtool.sessions.journal import MessagesPart, Writer
from memtool.sessions.model import (
    FOLDER,
    Head,
    Message,
    is_id,
    line,
    message_row,
    read_head,
    read_message,
)
from memtool.store.context import Context
from memtool.store.files import read_regular
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

MESSAGES = "messages.jsonl"
CHECKPOINTS = "checkpoints.jsonl"
FINDINGS = "findings.jsonl"
HEAD = "head.json"
MEGABYTE = 1 << 20
_MOST_HEAD = 1 << 20


class Sessions(Value):
    """The sessions of one clone, with what may stand in them and how large they may be.

    `directory` is where they are; `allowed` what is no secret; `most_bytes` the most of one
    session, `most_total` of all.
    """

    directory: str
    allowed: Allowlist = NOTHING
    most_bytes: int = 10 * MEGABYTE
    most_total: int = 1_000 * MEGABYTE

    def folder(self, id: str) -> str:
        """Return the directory of a session, by its whole id.

        Raises:
            MemtoolError: there is none, or a link stands in its place.
        """
        if not is_id(id):
            raise _unknown(id)
        path = os.path.join(self.directory, id)
        for place in (self.directory, path):
            try:
                mode = os.lstat(place).st_mode
            except FileNotFoundError:
                raise _unknown(id) from None
            except OSError as error:
                raise journal.refusal(place, "read", error) from None
            if not stat.S_ISDIR(mode):
                raise MemtoolError(
                    f"{place} is no directory",
                    hint="remove it; sessions never leave their directory",
                    code="symlink",
                )
        return path

    def path(self, id: str, name: str) -> str:
        """Return the path of a file of a session, such as `FINDINGS`. Raises as `folder` does."""
        return os.path.join(self.folder(id), name)

    def ids(self) -> list[str]:
        """Return the ids of all sessions, sorted. Raises MemtoolError if they cannot be listed."""
        try:
            found = os.listdir(self.directory)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise journal.refusal(self.directory, "read", error) from None
        return sorted(filter(self._is_there, filter(is_id, found)))

    def _is_there(self, id: str) -> bool:
        return os.path.exists(os.path.join(self.directory, id, HEAD))

    def find(self, given: str) -> str:
        """Return the id that is meant by an id or the beginning of one.

        Raises:
            MemtoolError: no session is meant, or several.
        """
        if not is_id(given):
            raise _unknown(given)
        if self._is_there(given):
            return given
        found = [id_ for id_ in self.ids() if id_.startswith(given)]
        if len(found) > 1:
            raise MemtoolError(
                f"{len(found)} sessions begin with {given}",
                hint=f"one of {', '.join(found[:4])}{' …' if len(found) > 4 else ''}",
                code="ambiguous",
            )
        if not found:
            raise _unknown(given)
        return found[0]

    def head(self, id: str) -> Head:
        """Return what a session is. Raises MemtoolError where there is none, or it is damaged."""
        try:
            return _read_head(self.folder(id))
        except FileNotFoundError:
            raise _unknown(id) from None

    def heads(self) -> tuple[list[Head], list[str]]:
        """Return the heads of all sessions, and of the damaged ones what is wrong."""
        found, wrong = [], []
        for id_ in self.ids():
            try:
                found.append(self.head(id_))
            except MemtoolError as error:
                wrong.append(error.message)
        return found, wrong

    def create(self, head: Head) -> None:
        """Make the directory of a new session.

        Raises:
            Exists: there is one of that id.
            MemtoolError: the disk refuses.
        """
        path = os.path.join(self.directory, head.id)
        try:
            os.makedirs(self.directory, mode=journal.FOLDER_MODE, exist_ok=True)
            os.mkdir(path, journal.FOLDER_MODE)
        except FileExistsError:
            if os.path.lexists(path) and not os.path.exists(os.path.join(path, HEAD)):
                self.folder(head.id)  # a link is told; what a killed process left is taken over
            else:
                raise Exists(f"there is a session {head.id} already", code="exists") from None
        except OSError as error:
            raise journal.refusal(path, "written", error) from None
        write_head(path, head)

    def messages(self, id: str) -> tuple[list[Message], int]:
        """Return the messages of a session in order, and how many lines were torn.

        Raises:
            MemtoolError: there is no such session, or it cannot be read.
        """
        folder = self.folder(id)
        handle = journal.reading(os.path.join(folder, MESSAGES))
        try:
            return gathered(folder, b"" if handle is None else journal.whole(handle))
        finally:
            if handle is not None:
                os.close(handle)

    def last(self, id: str) -> Message | None:
        """Return the last message of a session, None where it has none.

        Raises:
            MemtoolError: there is no such session, or it cannot be read.
        """
        folder = self.folder(id)
        handle = journal.reading(os.path.join(folder, MESSAGES))
        if handle is None:
            return None
        try:
            end = journal.after_line_feed(handle, os.fstat(handle).st_size)
            rows, _torn = journal.parse(journal.last_lines(handle, end))
            found = read_message(rows[0]) if rows else None
            if found is None:
                known, _torn = gathered(folder, journal.whole(handle))
                found = known[-1] if known else None
            return found
        finally:
            os.close(handle)

    def size(self, id: str) -> int:
        """Return the bytes of a session on disk. Raises MemtoolError if it cannot be listed."""
        return _size(self.folder(id))


class Exists(MemtoolError):
    """A session of that id is already there."""


def gathered(folder: str, live: bytes) -> tuple[list[Message], int]:
    """Return the messages of all parts and of the journal, and how many lines were torn.

    The journal is locked by the caller: nothing moves into a part meanwhile.

    Raises:
        MemtoolError: a part cannot be read.
    """
    found: dict[int, Message] = {}
    torn = 0
    for data in (*map(journal.opened, journal.parts(folder)), live):
        rows, bad = journal.parse(data)
        read = [read_message(row) for row in rows]
        torn += bad + read.count(None)
        for one in read:
            if one is not None:
                found.setdefault(one.number, one)
    return [found[number] for number in sorted(found)], torn


def _size(folder: str) -> int:
    try:
        with os.scandir(folder) as entries:
            return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
    except OSError as error:
        raise journal.refusal(folder, "read", error) from None


def _unknown(id: str) -> MemtoolError:
    return MemtoolError(
        f"there is no session {id!r}",
        hint="memtool session list shows them, memtool session start begins one",
        code="no-session",
    )


def _read_head(folder: str) -> Head:
    """Read the head of the session in a directory.

    Raises:
        FileNotFoundError: there is none.
        MemtoolError: it cannot be read, or another hand wrote it.
    """
    import json

    path = os.path.join(folder, HEAD)
    try:
        row = json.loads(read_regular(path, _MOST_HEAD))
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path) from None
    except OSError as error:
        raise journal.refusal(path, "read", error) from None
    except (ValueError, RecursionError):
        row = None
    found = read_head(row) if isinstance(row, dict) else None
    if found is None:
        raise MemtoolError(
            f"{path} is damaged",
            hint="restore the file, or remove the directory that it is in",
            code="session-damaged",
        )
    return found


def write_head(folder: str, head: Head) -> None:
    """Write the head of a session. Raises MemtoolError where the disk refuses."""
    import json

    row = {name: value for name, value in head.plain().items() if value not in ("", 0)}
    text = json.dumps(row, indent=1, ensure_ascii=False) + "\n"
    journal.put(os.path.join(folder, HEAD), text.encode(errors="backslashreplace"))


EVERY = 10
"""Messages between automatic checkpoints."""
_MOST_FILES = 20


class Checkpoint(Value):
    """Where the work stood after a message. `note` is what somebody said; empty if automatic.

    `asked` is what a person last asked for, `files` what was touched and `failures` how many calls
    of tools failed, since the checkpoint before.
    """

    message: int
    moment: int
    note: str = ""
    asked: str = ""
    files: tuple[str, ...] = ()
    failures: int = 0


def _automatic(before: Sequence[Message], new: Sequence[Message], moment: int) -> list[Checkpoint]:
    """Return the checkpoints that new messages bring; `before` are the last ones ahead of them."""
    known = [*before, *new]
    start = new[0].number if new else 0
    return [
        _checkpoint([near for near in known if one.number - EVERY < near.number <= one.number],
                   moment)
        for one in new
        if one.number % EVERY == 0 and one.number >= start
    ]  # fmt: skip


def _checkpoint(messages: Sequence[Message], moment: int, note: str = "") -> Checkpoint:
    """Return the checkpoint after messages, which are those since the last one."""
    asked = [one.text for one in messages if one.role == "user"]
    touched = dict.fromkeys(path for one in messages for path in one.files)
    return Checkpoint(
        message=messages[-1].number if messages else 0,
        moment=moment,
        note=note,
        asked=line(asked[-1]) if asked else "",
        files=tuple(touched)[:_MOST_FILES],
        failures=sum(one.is_ok is False for one in messages),
    )


def read_checkpoint(row: Mapping[str, Any]) -> Checkpoint | None:
    """Return the checkpoint of a row of the journal, None where it holds none."""
    files = row.get("files", [])
    numbers = [row.get(name, 0) for name in ("message", "moment", "failures")]
    texts = [row.get(name, "") for name in ("note", "asked")]
    if (
        not all(type(number) is int for number in numbers)
        or not isinstance(files, list)
        or not all(isinstance(text, str) for text in (*texts, *files))
    ):
        return None
    message, moment, failures = numbers
    note, asked = texts
    return Checkpoint(message, moment, note, asked, tuple(files), failures)


NEARLY_FULL = 0.9
"""From this share of its limit on, a session is compressed, and said to be nearly full."""
_WORTH_COMPRESSING = 0.05
"""Share of the limit from which compressing is worth a part of its own."""
_ROW_START = b'{"number":'


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
    clean = redaction.cleaned(new, sessions.allowed, most_text)
    with Writer(os.path.join(folder, MESSAGES)) as writer:
        head = sessions.head(id)
        refuse_ended(head, reopen=reopen)
        older = journal.parts(folder)
        last = _settled(writer, older)
        before = writer.last(EVERY)
        numbered = [
            one.replace(number=last + place, agent=one.agent or _speaker(one, head))
            for place, one in enumerate(clean, start=1)
        ]
        data = journal.write(map(message_row, numbered))
        notes = _torn_note(writer)
        notes += _with_room(sessions, folder, writer, older, last, len(data))
        writer.write(data)
        if head.status != "open":
            write_head(folder, head.replace(status="open", ended=0, summary=""))
        reached = _automatic(_messages_of(before), numbered, now)
        if reached:
            _keep(folder, writer, reached)
    return Added(tuple(numbered), notes)


def mark(sessions: Sessions, id: str, note: str, now: int) -> Checkpoint:
    """Make a checkpoint by hand, with a note.

    Raises:
        MemtoolError: there is no such session, it has ended, or the disk refuses.
    """
    folder = sessions.folder(id)
    said = redaction.clean_texts({note}, sessions.allowed)[note]
    with Writer(os.path.join(folder, MESSAGES)) as writer:
        refuse_ended(sessions.head(id))
        known, _torn = gathered(folder, writer.whole())
        rows, _torn = journal.read(os.path.join(folder, CHECKPOINTS))
        done = max((one.message for one in map(read_checkpoint, rows) if one), default=0)
        since = [one for one in known if one.number > done]
        made = _checkpoint(since, now, said)
        _keep(folder, writer, [made.replace(message=known[-1].number if known else 0)])
    return made


def _keep(folder: str, writer: Writer, made: Sequence[Checkpoint]) -> None:
    """Sync the messages, then note the checkpoints. Raises MemtoolError where the disk refuses."""
    try:
        writer.sync()
    except OSError as error:
        raise journal.refusal(writer.path, "written", error) from None
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


def _torn_note(writer: Writer) -> tuple[str, ...]:
    """Return what to say about the half line that was cut off a journal."""
    if not writer.torn:
        return ()
    aside = os.path.basename(writer.path) + journal.TORN_SUFFIX
    said = "a line that a killed process left half written was set aside in"
    return (f"{said} {aside}; everything before it is whole",)


def _settled(writer: Writer, older: Sequence[MessagesPart]) -> int:
    """Return the last number that was given; what is in a part already leaves the journal."""
    behind = older[-1].last if older else 0
    last = _number(writer.last())
    if last is None:  # by another hand, so all lines are asked
        last = max((one.number for one in _messages_of(writer.whole())), default=0)
    if writer.size and 0 < last <= behind:
        try:
            writer.clear()
        except OSError as error:
            raise journal.refusal(writer.path, "written", error) from None
    return max(last, behind)


def _number(line: bytes) -> int | None:
    """Return the number of a line, 0 for none at all, None where it says none."""
    if not line:
        return 0
    digits = line[len(_ROW_START) :].partition(b",")[0]
    return int(digits) if line.startswith(_ROW_START) and digits.isdigit() else None


def _messages_of(lines: bytes) -> list[Message]:
    rows, _torn = journal.parse(lines)
    return [one for one in map(read_message, rows) if one is not None]


def _speaker(message: Message, head: Head) -> str:
    return head.agent if message.role in ("assistant", "tool") else ""


def _with_room(
    sessions: Sessions,
    folder: str,
    writer: Writer,
    older: Sequence[MessagesPart],
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
    if writer.size > _WORTH_COMPRESSING * most:
        first = older[-1].last + 1 if older else 1
        journal.compress(folder, writer, first, last)
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


_DRAWS = 1_000


def opened(context: Context) -> Sessions:
    """Return the sessions of this clone, with the limits and allowances of the settings."""
    from memtool.redaction.find import allowlist

    return Sessions(
        directory=os.path.join(context.repository.cache_dir, FOLDER),
        allowed=allowlist(context.settings),
        most_bytes=context.settings.count("sessions.session_mb") * MEGABYTE,
        most_total=context.settings.count("sessions.total_mb") * MEGABYTE,
    )


def beginning(
    context: Context,
    sessions: Sessions,
    *,
    id: str = "",
    host: str = "",
    agent: str = "",
    title: str = "",
    started: int = 0,
) -> Head:
    """Return the head of a session that begins here, now and under a new id unless they are given.

    The title is the first line of what is given.
    """
    from memtool.sessions.redaction import clean_texts

    branch, top = _branch(context), context.repository.top
    clean = clean_texts({host, agent, title, branch, top}, sessions.allowed)
    return Head(
        id=id or model.draw_id(context.now, context.random(3)),
        started=started or context.now,
        host=clean[host],
        agent=" ".join(clean[agent].split()),
        title=line(clean[title]),
        worktree=clean[top],
        branch=clean[branch],
    )


def make(context: Context, head: Head, create: Callable[[Head], None]) -> Head:
    """Create a session under the first drawn id that is free, and return its head.

    Raises:
        MemtoolError: the disk refuses.
    """
    for _draw in range(_DRAWS):
        try:
            create(head)
        except Exists:
            head = head.replace(id=model.draw_id(context.now, context.random(3)))
        else:
            return head
    raise MemtoolError("no free id for a session was found", hint="run the same command again")


def moment(second: int) -> str:
    """Return a second as text, empty for none."""
    return timestamps.render(second) if second else ""


def size(count: int) -> str:
    """Return a number of bytes as a person reads it."""
    return f"{count / MEGABYTE:.1f} MB" if count >= MEGABYTE // 10 else f"{-(-count // 1024)} KB"


def _branch(context: Context) -> str:
    answer = context.repository.git.run("symbolic-ref", "-q", "--short", "HEAD", allowed=(0, 1))
    return answer.decode(errors="replace").strip()
