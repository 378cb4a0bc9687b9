"""The store of sessions: private logs below the git directory.

    head.json                     what it is: host, agent, worktree, branch, parent, status
    messages.jsonl                the messages, append-only
    messages-FIRST-LAST.jsonl.gz  older messages, compressed by earlier versions
    checkpoints.jsonl             where the work was every ten messages, and when one is asked for
    findings.jsonl                what was found in it

Everything is redacted before it is written: secrets and personal data go out first, and only then
is a text that is too long cut, since half a secret may not look like one. Numbers are given under
the lock of `messages.jsonl`, so that any number of processes may write to one session. At a
checkpoint everything before it is synced to the disk: a power cut takes no more than what came
after.
"""

from __future__ import annotations

import json
import os
import stat

from memtool.errors import MemtoolError
from memtool.redaction.find import NOTHING, Allowlist, allowlist, find, redact
from memtool.sessions import consent, journal
from memtool.sessions.journal import Writer
from memtool.sessions.model import (
    CUT,
    FOLDER,
    Head,
    Message,
    hashed_id,
    id_of_host,
    is_id,
    json_row,
    line,
    read_head,
    read_message,
    read_row,
    row_of,
)
from memtool.store.context import Context
from memtool.store.files import read_regular
from memtool.value import Value, batches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

MESSAGES = "messages.jsonl"
CHECKPOINTS = "checkpoints.jsonl"
FINDINGS = "findings.jsonl"
HEAD = "head.json"
MEGABYTE = 1 << 20
_MOST_HEAD = 1 << 20


class Sessions(Value):
    """The sessions of one clone, with what may be stored in them and how large they may be.

    `directory` is where they are; `allowed` what is no secret; `most_bytes` the most of one
    session, `most_total` of all. Findings are extracted where `is_extracting`, of the `categories`
    alone if there are some.
    """

    directory: str
    allowed: Allowlist = NOTHING
    most_bytes: int = 50 * MEGABYTE
    most_total: int = 1_000 * MEGABYTE
    is_extracting: bool = True
    categories: tuple[str, ...] = ()

    def folder(self, id: str) -> str:
        """Return the directory of a session, by its whole id.

        Raises:
            MemtoolError: there is none, or a link is in its place.
        """
        if not is_id(id):
            raise unknown(id)
        path = os.path.join(self.directory, id)
        for place in (self.directory, path):
            with journal.refused(place, "read"):
                try:
                    mode = os.lstat(place).st_mode
                except FileNotFoundError:
                    raise unknown(id) from None
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

    def named(self, host: str, given: str) -> str:
        """Return the name for the id that a host gave its session, never one that is a secret."""
        is_clean = self.clean(given) == given
        return id_of_host(host, given) if is_clean else hashed_id(host, given)

    def clean(self, text: str) -> str:
        """Return a text without secrets. Raises MemtoolError where it is too long to search."""
        return clean_texts({text}, self.allowed)[text]

    def ids(self) -> list[str]:
        """Return the ids of all sessions, sorted. Raises MemtoolError if they cannot be listed."""
        with journal.refused(self.directory, "read"):
            try:
                found = os.listdir(self.directory)
            except FileNotFoundError:
                return []
        return sorted(filter(self._is_there, filter(is_id, found)))

    def _is_there(self, id: str) -> bool:
        return os.path.exists(os.path.join(self.directory, id, HEAD))

    def find(self, given: str) -> str:
        """Return the id that is meant by an id or the beginning of one.

        Raises:
            MemtoolError: no session is meant, or several.
        """
        if not is_id(given):
            raise unknown(given)
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
            raise unknown(given)
        return found[0]

    def head(self, id: str) -> Head:
        """Return the head of a session. Raises MemtoolError where it is absent or damaged."""
        path = self.path(id, HEAD)
        with journal.refused(path, "read"):
            try:
                row = json_row(read_regular(path, _MOST_HEAD))
            except (FileNotFoundError, NotADirectoryError):
                raise unknown(id) from None
        found = None if row is None else read_head(row)
        if found is None:
            raise MemtoolError(
                f"{path} is damaged",
                hint="memtool doctor --fix sets it aside and rebuilds it from the messages",
                code="session-damaged",
            )
        return found

    def heads(self) -> tuple[list[Head], list[str]]:
        """Return the heads of all sessions, and of the damaged ones what is wrong."""
        found, wrong = [], []
        for id_ in self.ids():
            try:
                found.append(self.head(id_))
            except MemtoolError as error:
                wrong.append(f"{error.message}; {error.hint}")
        return found, wrong

    def create(self, head: Head, findings: Sequence[Mapping[str, Any]] = ()) -> None:
        """Make the directory of a new session, with the findings of its parent if it has one.

        Raises:
            Exists: there is one of that id.
            MemtoolError: the disk refuses.
        """
        path = os.path.join(self.directory, head.id)
        with journal.refused(path, "written"):
            try:
                os.makedirs(self.directory, mode=journal.FOLDER_MODE, exist_ok=True)
                os.mkdir(path, journal.FOLDER_MODE)
            except FileExistsError:
                if not os.path.lexists(path) or os.path.exists(os.path.join(path, HEAD)):
                    raise Exists(f"there is a session {head.id} already", code="exists") from None
                self.folder(head.id)  # refuses a link; what a killed process left is taken over
        write_head(path, head)
        if findings:
            journal.append(os.path.join(path, FINDINGS), findings)

    def messages(self, id: str) -> tuple[list[Message], int]:
        """Return the messages of a session in order, and how many lines were torn.

        Raises:
            MemtoolError: there is no such session, or it cannot be read.
        """
        folder = self.folder(id)
        with journal.reading(os.path.join(folder, MESSAGES)) as handle:
            return gathered(folder, journal.whole(handle))

    def last(self, id: str) -> Message | None:
        """Return the last message of a session, None where it has none.

        Raises:
            MemtoolError: there is no such session, or it cannot be read.
        """
        folder = self.folder(id)
        with journal.reading(os.path.join(folder, MESSAGES)) as handle:
            if handle is None:
                return None
            end = journal.after_line_feed(handle, os.fstat(handle).st_size)
            found = _messages_of(journal.last_lines(handle, end))
            found = found or gathered(folder, journal.whole(handle))[0]
            return found[-1] if found else None

    def size(self, id: str) -> int:
        """Return the bytes of a session on disk. Raises MemtoolError if it cannot be listed."""
        folder = self.folder(id)
        with journal.refused(folder, "read"), os.scandir(folder) as entries:
            return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)


def opened(context: Context) -> Sessions:
    """Return the sessions of this clone, with the limits and allowances of the settings."""
    return Sessions(
        directory=os.path.join(context.repository.cache_dir, FOLDER),
        allowed=allowlist(context.settings),
        most_bytes=context.settings.count("sessions.session_mb") * MEGABYTE,
        most_total=context.settings.count("sessions.total_mb") * MEGABYTE,
        is_extracting=consent.is_extracting(context),
        categories=tuple(sorted(context.settings.texts("extraction.categories"))),
    )


class Exists(MemtoolError):
    """A session of that id is already there."""


def gathered(folder: str, live: bytes) -> tuple[list[Message], int]:
    """Return the messages of all parts and of the journal, and how many lines were torn.

    Raises:
        MemtoolError: a part cannot be read.
    """
    found: dict[int, Message] = {}
    torn = 0
    for data in (*map(journal.opened, journal.parts(folder)), live):
        rows, bad = journal.parse(data)
        read = _messages(rows)
        torn += bad + len(rows) - len(read)
        for one in read:
            found.setdefault(one.number, one)
    return [found[number] for number in sorted(found)], torn


def _messages(rows: Iterable[Mapping[str, Any]]) -> list[Message]:
    return [one for one in map(read_message, rows) if one is not None]


def _messages_of(lines: bytes) -> list[Message]:
    return _messages(journal.parse(lines)[0])


def unknown(id: str) -> MemtoolError:
    """Return the refusal of an id that no session has."""
    return MemtoolError(
        f"there is no session {id!r}",
        hint="memtool session list shows them, memtool session start begins one",
        code="no-session",
    )


def write_head(folder: str, head: Head) -> None:
    """Write the head of a session. Raises MemtoolError where the disk refuses."""
    text = json.dumps(row_of(head), indent=1, ensure_ascii=False) + "\n"
    journal.put(os.path.join(folder, HEAD), text.encode(errors="backslashreplace"))


NEARLY_FULL = 0.9
"""From this share of its limit on, a session is reported as nearly full."""
_TORN = (
    "a line that a killed process left half written was set aside in "
    f"{MESSAGES}{journal.TORN_SUFFIX}; everything before it is whole"
)


class Added(Value):
    """What was added, as it is stored, and notes about the session for the user."""

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
    clean = cleaned(new, sessions.allowed, most_text)
    with Writer(os.path.join(folder, MESSAGES)) as writer:
        head = sessions.head(id)
        refuse_ended(head, reopen=reopen)
        last = _last_number(folder, writer)
        before = _messages_of(writer.last(EVERY))
        worker = {"assistant": head.agent, "tool": head.agent}
        numbered = [
            one.replace(number=last + place, agent=one.agent or worker.get(one.role, ""))
            for place, one in enumerate(clean, start=1)
        ]
        data = journal.write(map(row_of, numbered))
        notes = [_TORN] if writer.torn else []
        notes += _with_room(sessions, id, len(data))
        writer.write(data)
        if head.status != "open":
            write_head(folder, head.replace(status="open", ended=0, summary=""))
        _write_checkpoints(folder, writer, _automatic([*before, *numbered], last, now))
    return Added(tuple(numbered), tuple(notes))


def refuse_ended(head: Head, *, reopen: bool = False) -> None:
    """Raise MemtoolError where a session has ended, and is not to be opened again."""
    if head.status == "pruned" or (head.status != "open" and not reopen):
        how = f"memtool session fork {head.id} goes on in a new one"
        raise MemtoolError(
            f"session {head.id} has ended",
            hint=how if head.status == "pruned" else f"--reopen adds to it, {how}",
            code="session-ended",
        )


def _last_number(folder: str, writer: Writer) -> int:
    """Return the last number that was given."""
    # Where the last line is no message of ours, all are read.
    known = _messages_of(writer.last()) or _messages_of(writer.whole())
    return max(
        [*(one.number for one in known), *map(journal.last_number, journal.parts(folder)), 0]
    )


def _with_room(sessions: Sessions, id: str, length: int) -> list[str]:
    """Return notes for the user where a session will be nearly full.

    Raises:
        MemtoolError: there is no room for so many bytes.
    """
    most = sessions.most_bytes
    size = sessions.size(id) + length
    said = f"{size / MEGABYTE:.1f} of {most / MEGABYTE:g} MB"
    if size > most:
        raise MemtoolError(
            f"session {id} is full: that would be {said}",
            hint=f"memtool session end {id} and start another, or raise sessions.session_mb",
            code="session-full",
        )
    return [f"session {id} is nearly full: {said}"] if size >= NEARLY_FULL * most else []


EVERY = 10
"""Messages between automatic checkpoints."""
_MOST_FILES = 20


class Checkpoint(Value):
    """Where the work was after a message. `note` is given by hand; empty if automatic.

    `asked` is what a person last asked for, `files` what was touched and `failures` how many calls
    of tools failed, since the checkpoint before.
    """

    message: int = 0
    moment: int = 0
    note: str = ""
    asked: str = ""
    files: tuple[str, ...] = ()
    failures: int = 0


def checkpoints(sessions: Sessions, id: str) -> tuple[list[Checkpoint], int]:
    """Return the checkpoints of a session, and how many lines were torn. Raises MemtoolError."""
    rows, torn = journal.read(sessions.path(id, CHECKPOINTS))
    return [one for row in rows if (one := read_row(Checkpoint, row)) is not None], torn


def mark(sessions: Sessions, id: str, note: str, now: int) -> Checkpoint:
    """Make a checkpoint by hand, with a note.

    Raises:
        MemtoolError: there is no such session, it has ended, or the disk refuses.
    """
    folder = sessions.folder(id)
    clean = sessions.clean(note)
    with Writer(os.path.join(folder, MESSAGES)) as writer:
        refuse_ended(sessions.head(id))
        known, _torn = gathered(folder, writer.whole())
        done = max((one.message for one in checkpoints(sessions, id)[0]), default=0)
        made = _checkpoint([one for one in known if one.number > done], now, clean)
        made = made.replace(message=known[-1].number if known else 0)
        _write_checkpoints(folder, writer, [made])
    return made


def _automatic(known: Sequence[Message], last: int, moment: int) -> list[Checkpoint]:
    """Return the checkpoints that messages after number `last` bring."""
    return [
        _checkpoint([one for one in known if number - EVERY < one.number <= number], moment)
        for number in (one.number for one in known if one.number > last)
        if number % EVERY == 0
    ]


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


def _write_checkpoints(folder: str, writer: Writer, made: Sequence[Checkpoint]) -> None:
    """Sync the messages, then append checkpoints. Raises MemtoolError where the disk refuses."""
    if made:
        writer.sync()
        journal.append(os.path.join(folder, CHECKPOINTS), map(row_of, made))


REDACTED_FIELDS = ("text", "call", "tool", "agent", "origin")
MOST_CALL = 2_000
"""Characters of the line that says what a tool was called with, where messages are cut at all."""
_BETWEEN = "\n\0\n"
"""Separates the texts of one search; hardly any detector's pattern reaches across it."""
_MOST_AT_ONCE = 1_000_000
"""Characters of one search; one search of many texts takes less than many searches."""


def cleaned(
    messages: Sequence[Message], allowed: Allowlist = NOTHING, most: int = 0
) -> list[Message]:
    """Return the messages without secrets; of a text longer than `most` both ends, if that is set.

    Calls are cut only then as well.

    Raises:
        MemtoolError: a text is longer than can be looked through.
    """
    texts = {getattr(message, name) for message in messages for name in REDACTED_FIELDS}
    texts.update(path for message in messages for path in message.files)
    clean = clean_texts(texts, allowed)
    return [_cleaned(message, clean, most) for message in messages]


def _cleaned(message: Message, clean: dict[str, str], most: int) -> Message:
    fields = {name: clean[getattr(message, name)] for name in REDACTED_FIELDS}
    if most:
        fields |= {name: _ends(fields[name], most) for name in REDACTED_FIELDS if name != "call"}
        fields["call"] = cut(fields["call"])
    made = message.replace(files=tuple(clean[path] for path in message.files), **fields)
    return message if made == message else made


def cut(line: str) -> str:
    """Return a line that is not too long to say what a tool was called with."""
    return line if len(line) <= MOST_CALL else line[:MOST_CALL] + CUT


def clean_texts(texts: set[str], allowed: Allowlist = NOTHING) -> dict[str, str]:
    """Return each text with what it is without secrets.

    Raises:
        MemtoolError: one is longer than can be looked through.
    """
    found: dict[str, str] = {}
    for together in batches(sorted(texts), most_size=_MOST_AT_ONCE, size_of=len):
        joined = _BETWEEN.join(together)
        clean = redact(joined, find(joined, allowed)).split(_BETWEEN)
        if not joined.count(_BETWEEN) + 1 == len(clean) == len(together):
            # A text holds the separator, or a secret reaches across it.
            clean = [redact(text, find(text, allowed)) for text in together]
        found.update(zip(together, clean, strict=True))
    return found


def clean_row(row: dict[str, Any], allowed: Allowlist = NOTHING) -> dict[str, Any]:
    """Return a row of a journal without secrets, its long lines cut: keys as well as values.

    Raises:
        MemtoolError: a text is longer than can be looked through.
    """
    clean = clean_texts(set(_texts(row)), allowed)
    cleaned: dict[str, Any] = _mapped(row, clean)
    return cleaned


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _mapped(value: Any, clean: dict[str, str]) -> Any:
    if isinstance(value, str):
        return cut(clean[value])
    if isinstance(value, dict):
        return {clean[name]: _mapped(inner, clean) for name, inner in value.items()}
    return [_mapped(inner, clean) for inner in value] if isinstance(value, list) else value


def _ends(text: str, most: int) -> str:
    """Return a text, of a longer one both ends; tools say at the end what went wrong."""
    if len(text) <= most:
        return text
    head = most // 3
    tail = most - head
    return f"{text[:head]}\n[… {len(text) - most:,} characters left out …]\n{text[-tail:]}"
