"""The store of sessions: private logs below the git directory.

    head.json                     host, agent, worktree, branch, parent, status
    messages.jsonl                the messages, append-only
    messages-FIRST-LAST.jsonl.gz  older messages, compressed by earlier versions
    checkpoints.jsonl             the state of the work, every ten messages and on request
    findings.jsonl                its findings

Everything is redacted before it is written. Secrets and personal data are removed first, and only
then are long texts cut, since half a secret may not be recognised. Numbers are assigned under the
lock of `messages.jsonl`, so any number of processes may write to one session. Each checkpoint first
syncs the messages to the disk, so a power cut loses only later ones.
"""

from __future__ import annotations

import json
import os
import stat

from memtool.errors import MemtoolError
from memtool.redaction.find import NOTHING, Allowlist, build_allowlist, clean_text
from memtool.sessions import consent, journal
from memtool.sessions.journal import Writer
from memtool.sessions.model import (
    CUT,
    FOLDER,
    Message,
    Session,
    as_row,
    first_line,
    hash_id,
    is_id,
    name_host_session,
    parse_json_row,
    read_head,
    read_message,
    read_row,
)
from memtool.store.context import Context
from memtool.store.files import read_regular
from memtool.value import Value, split_batches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

MESSAGES = "messages.jsonl"
CHECKPOINTS = "checkpoints.jsonl"
FINDINGS = "findings.jsonl"
HEAD = "head.json"
MEGABYTE = 1 << 20
_MAX_HEAD = 1 << 20


class Sessions(Value):
    """The sessions of one clone, and the limits for storing them.

    `directory` is where they are stored. `allowed` are findings of redaction that are permitted.
    `most_bytes` limits one session, `most_total` all of them. Findings are extracted only if
    `is_extracting`, and only of the `categories` if there are any.
    """

    directory: str
    allowed: Allowlist = NOTHING
    most_bytes: int = 50 * MEGABYTE
    most_total: int = 1_000 * MEGABYTE
    is_extracting: bool = True
    categories: tuple[str, ...] = ()

    def folder(self, id: str) -> str:
        """Return the directory of a session, by its full id.

        Raises:
            MemtoolError: it does not exist, or is a link.
        """
        if not is_id(id):
            raise unknown_session_error(id)
        path = os.path.join(self.directory, id)
        for place in (self.directory, path):
            with journal.explain_errors(place, "read"):
                try:
                    mode = os.lstat(place).st_mode
                except FileNotFoundError:
                    raise unknown_session_error(id) from None
            if not stat.S_ISDIR(mode):
                raise MemtoolError(
                    f"{place} is not a directory",
                    hint=f"rm {place}",
                    code="symlink",
                )
        return path

    def path(self, id: str, name: str) -> str:
        """Return the path of a session's file, such as `FINDINGS`. Raises as `folder` does."""
        return os.path.join(self.folder(id), name)

    def find_name(self, host: str, host_id: str) -> str:
        """Return the session id for a host's own id; an id that looks like a secret is hashed."""
        is_clean = self.clean(host_id) == host_id
        return name_host_session(host, host_id) if is_clean else hash_id(host, host_id)

    def clean(self, text: str) -> str:
        """Redact a text. Raises MemtoolError if it is too long to search."""
        return clean_texts({text}, self.allowed)[text]

    def ids(self) -> list[str]:
        """Return the ids of all sessions, sorted. Raises MemtoolError if they cannot be listed."""
        with journal.explain_errors(self.directory, "read"):
            try:
                names = os.listdir(self.directory)
            except FileNotFoundError:
                return []
        return sorted(filter(self._is_there, filter(is_id, names)))

    def _is_there(self, id: str) -> bool:
        return os.path.exists(os.path.join(self.directory, id, HEAD))

    def find(self, text: str) -> str:
        """Resolve an id or a prefix of one to a session id.

        Raises:
            MemtoolError: no session matches, or several do.
        """
        if not is_id(text):
            raise unknown_session_error(text)
        if self._is_there(text):
            return text
        matches = [id_ for id_ in self.ids() if id_.startswith(text)]
        if len(matches) > 1:
            raise MemtoolError(
                f"{len(matches)} sessions begin with {text}",
                hint=f"did you mean {' or '.join(matches[:4])}{' …' if len(matches) > 4 else ''}?",
                code="ambiguous-id",
            )
        if not matches:
            raise unknown_session_error(text)
        return matches[0]

    def head(self, id: str) -> Session:
        """Return the head of a session. Raises MemtoolError if it is missing or damaged."""
        path = self.path(id, HEAD)
        with journal.explain_errors(path, "read"):
            try:
                row = parse_json_row(read_regular(path, _MAX_HEAD))
            except (FileNotFoundError, NotADirectoryError):
                raise unknown_session_error(id) from None
        head = None if row is None else read_head(row)
        if head is None:
            raise MemtoolError(
                f"cannot read the session: {path} is damaged",
                hint="rebuild it from the messages: memtool doctor --fix",
                code="session-damaged",
            )
        return head

    def heads(self) -> tuple[list[Session], list[str]]:
        """Return the heads of all sessions, and an error message for each damaged one."""
        heads, wrong = [], []
        for id_ in self.ids():
            try:
                heads.append(self.head(id_))
            except MemtoolError as error:
                wrong.append(error.as_line)
        return heads, wrong

    def create(self, head: Session, findings: Sequence[Mapping[str, Any]] = ()) -> None:
        """Create a new session, with the findings of its parent if it has one.

        Raises:
            SessionExistsError: a session with this id exists.
            MemtoolError: it cannot be written.
        """
        path = os.path.join(self.directory, head.id)
        with journal.explain_errors(path, "written"):
            try:
                os.makedirs(self.directory, mode=journal.FOLDER_MODE, exist_ok=True)
                os.mkdir(path, journal.FOLDER_MODE)
            except FileExistsError:
                if not os.path.lexists(path) or os.path.exists(os.path.join(path, HEAD)):
                    raise SessionExistsError(
                        f"the session {head.id} already exists", code="exists"
                    ) from None
                self.folder(head.id)  # refuses a link; without a head it is reused
        write_head(path, head)
        if findings:
            journal.append(os.path.join(path, FINDINGS), findings)

    def messages(self, id: str) -> tuple[list[Message], int]:
        """Return the messages of a session in order, and the number of torn lines.

        Raises:
            MemtoolError: the session does not exist or cannot be read.
        """
        folder = self.folder(id)
        with journal.open_for_reading(os.path.join(folder, MESSAGES)) as handle:
            return gather(folder, journal.read_whole(handle))

    def read_last(self, id: str) -> Message | None:
        """Return the last message of a session, None if it has none.

        Raises:
            MemtoolError: the session does not exist or cannot be read.
        """
        folder = self.folder(id)
        with journal.open_for_reading(os.path.join(folder, MESSAGES)) as handle:
            if handle is None:
                return None
            end = journal.find_line_start(handle, os.fstat(handle).st_size)
            messages = _parse_messages(journal.read_last_lines(handle, end))
            messages = messages or gather(folder, journal.read_whole(handle))[0]
            return messages[-1] if messages else None

    def size(self, id: str) -> int:
        """Return the size of a session in bytes. Raises MemtoolError if it cannot be listed."""
        folder = self.folder(id)
        with journal.explain_errors(folder, "read"), os.scandir(folder) as entries:
            return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)


def open_sessions(context: Context) -> Sessions:
    """Return the sessions of this clone, with the limits of the settings."""
    return Sessions(
        directory=os.path.join(context.repository.cache_dir, FOLDER),
        allowed=build_allowlist(context.settings),
        most_total=context.settings.count("sessions.total_mb") * MEGABYTE,
        is_extracting=consent.is_extracting(context),
        categories=tuple(sorted(context.settings.texts("extraction.categories"))),
    )


class SessionExistsError(MemtoolError):
    """A session with this id already exists."""


def gather(folder: str, live: bytes) -> tuple[list[Message], int]:
    """Return the messages of all parts and the journal, and the number of torn lines.

    Raises:
        MemtoolError: a part cannot be read.
    """
    by_number: dict[int, Message] = {}
    torn = 0
    for data in (*map(journal.read_part, journal.list_parts(folder)), live):
        rows, bad = journal.parse(data)
        read = _messages_from_rows(rows)
        torn += bad + len(rows) - len(read)
        for message in read:
            by_number.setdefault(message.number, message)
    return [by_number[number] for number in sorted(by_number)], torn


def _messages_from_rows(rows: Iterable[Mapping[str, Any]]) -> list[Message]:
    return [message for message in map(read_message, rows) if message is not None]


def _parse_messages(lines: bytes) -> list[Message]:
    return _messages_from_rows(journal.parse(lines)[0])


def unknown_session_error(id: str) -> MemtoolError:
    """Return the error for an id that no session has."""
    return MemtoolError(
        f"no session is called {id!r}",
        hint="memtool session list\nmemtool session start",
        code="no-session",
    )


def write_head(folder: str, head: Session) -> None:
    """Write the head of a session. Raises MemtoolError if it cannot be written."""
    text = json.dumps(as_row(head), indent=1, ensure_ascii=False) + "\n"
    journal.write_file(os.path.join(folder, HEAD), text.encode(errors="backslashreplace"))


NEARLY_FULL = 0.9
"""Share of the limit from which a session is reported as nearly full."""
_TORN = (
    "a line that a killed process left half written was set aside in "
    f"{MESSAGES}{journal.TORN_SUFFIX}; everything before it is whole"
)


class AddResult(Value):
    """The added messages as stored, and notes for the user."""

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
) -> AddResult:
    """Add messages to a session, all or none; each gets the next number.

    `reopen` opens a session that has ended. Only both ends of a text longer than `most_text` are
    stored, if that is set.

    Raises:
        MemtoolError: the session does not exist, has ended or is full, or the disk refuses.
    """
    folder = sessions.folder(id)
    # Redact before taking the lock: other writers wait for it.
    clean = clean_messages(new, sessions.allowed, most_text)
    with Writer(os.path.join(folder, MESSAGES)) as writer:
        head = sessions.head(id)
        refuse_ended(head, reopen=reopen)
        last = _find_last_number(folder, writer)
        before = _parse_messages(writer.read_last(CHECKPOINT_INTERVAL))
        worker = {"assistant": head.agent, "tool": head.agent}
        numbered = [
            message.replace(
                number=last + place, agent=message.agent or worker.get(message.role, "")
            )
            for place, message in enumerate(clean, start=1)
        ]
        data = journal.write(map(as_row, numbered))
        notes = [_TORN] if writer.torn else []
        notes += _check_room(sessions, id, len(data))
        writer.write(data)
        if head.status != "open":
            write_head(folder, head.replace(status="open", ended=0, summary=""))
        _write_checkpoints(folder, writer, _make_automatic([*before, *numbered], last, now))
    return AddResult(tuple(numbered), tuple(notes))


def refuse_ended(head: Session, *, reopen: bool = False) -> None:
    """Raise MemtoolError if a session has ended and `reopen` does not apply."""
    if head.status == "pruned" or (head.status != "open" and not reopen):
        how = f"memtool session fork {head.id} goes on in a new one"
        raise MemtoolError(
            f"cannot add to session {head.id}: it has ended",
            hint=how if head.status == "pruned" else f"--reopen adds to it, {how}",
            code="session-ended",
        )


def _find_last_number(folder: str, writer: Writer) -> int:
    """Return the last message number of a session."""
    # If the last line is not a valid message, read them all.
    messages = _parse_messages(writer.read_last()) or _parse_messages(writer.read_whole())
    return max(
        [
            *(message.number for message in messages),
            *map(journal.find_last_number, journal.list_parts(folder)),
            0,
        ]
    )


def _check_room(sessions: Sessions, id: str, length: int) -> list[str]:
    """Return a note if a session will be nearly full with `length` more bytes.

    Raises:
        MemtoolError: the session would exceed its limit.
    """
    max_bytes = sessions.most_bytes
    size = sessions.size(id) + length
    sizes = f"{size / MEGABYTE:.1f} of {max_bytes / MEGABYTE:g} MB"
    if size > max_bytes:
        raise MemtoolError(
            f"cannot add to session {id}, which is full: {sizes}",
            hint=f"memtool session end {id}\nmemtool session fork {id}",
            code="session-full",
        )
    return [f"session {id} is nearly full: {sizes}"] if size >= NEARLY_FULL * max_bytes else []


CHECKPOINT_INTERVAL = 10
"""Number of messages between automatic checkpoints."""
_MAX_FILES = 20


class Checkpoint(Value):
    """The state of the work after a message. `note` is written by hand; empty if automatic.

    Since the previous checkpoint, `prompt` is the person's last request, `files` are the touched
    paths, and `failures` counts the tool calls that failed.
    """

    json_names = (("prompt", "asked"),)

    message: int = 0
    moment: int = 0
    note: str = ""
    prompt: str = ""
    files: tuple[str, ...] = ()
    failures: int = 0


def read_checkpoints(sessions: Sessions, id: str) -> tuple[list[Checkpoint], int]:
    """Return the checkpoints of a session, and the number of torn lines. Raises MemtoolError."""
    rows, torn = journal.read(sessions.path(id, CHECKPOINTS))
    return [
        checkpoint for row in rows if (checkpoint := read_row(Checkpoint, row)) is not None
    ], torn


def add_checkpoint(sessions: Sessions, id: str, note: str, now: int) -> Checkpoint:
    """Add a checkpoint by hand, with a note.

    Raises:
        MemtoolError: the session does not exist or has ended, or the disk refuses.
    """
    folder = sessions.folder(id)
    clean = sessions.clean(note)
    with Writer(os.path.join(folder, MESSAGES)) as writer:
        refuse_ended(sessions.head(id))
        messages, _torn = gather(folder, writer.read_whole())
        done = max(
            (checkpoint.message for checkpoint in read_checkpoints(sessions, id)[0]), default=0
        )
        made = _make_checkpoint(
            [message for message in messages if message.number > done], now, clean
        )
        made = made.replace(message=messages[-1].number if messages else 0)
        _write_checkpoints(folder, writer, [made])
    return made


def _make_automatic(messages: Sequence[Message], last: int, moment: int) -> list[Checkpoint]:
    """Return the automatic checkpoints due for messages after number `last`."""
    return [
        _make_checkpoint(
            [
                message
                for message in messages
                if number - CHECKPOINT_INTERVAL < message.number <= number
            ],
            moment,
        )
        for number in (message.number for message in messages if message.number > last)
        if number % CHECKPOINT_INTERVAL == 0
    ]


def _make_checkpoint(messages: Sequence[Message], moment: int, note: str = "") -> Checkpoint:
    """Return the checkpoint for the messages since the previous one."""
    requests = [message.text for message in messages if message.role == "user"]
    touched = dict.fromkeys(path for message in messages for path in message.files)
    return Checkpoint(
        message=messages[-1].number if messages else 0,
        moment=moment,
        note=note,
        prompt=first_line(requests[-1]) if requests else "",
        files=tuple(touched)[:_MAX_FILES],
        failures=sum(message.is_ok is False for message in messages),
    )


def _write_checkpoints(folder: str, writer: Writer, made: Sequence[Checkpoint]) -> None:
    """Sync the messages, then append checkpoints. Raises MemtoolError if the disk refuses."""
    if made:
        writer.sync()
        journal.append(os.path.join(folder, CHECKPOINTS), map(as_row, made))


REDACTED_FIELDS = ("text", "call", "tool", "agent", "origin")
MAX_CALL = 2_000
"""Maximum characters of a stored call. It applies only if messages are cut at all."""
_BETWEEN = "\n\0\n"
"""Separates the texts that are searched together; hardly any detector matches across it."""
_MAX_AT_ONCE = 1_000_000
"""Characters searched at once; one search of many texts is faster than many searches."""


def clean_messages(
    messages: Sequence[Message], allowed: Allowlist = NOTHING, max_chars: int = 0
) -> list[Message]:
    """Redact messages; if `max_chars` is set, store only both ends of longer texts.

    Calls are cut in this case as well.

    Raises:
        MemtoolError: a text is too long to search.
    """
    texts = {getattr(message, name) for message in messages for name in REDACTED_FIELDS}
    texts.update(path for message in messages for path in message.files)
    clean = clean_texts(texts, allowed)
    return [_clean_message(message, clean, max_chars) for message in messages]


def _clean_message(message: Message, clean: dict[str, str], max_chars: int) -> Message:
    fields = {name: clean[getattr(message, name)] for name in REDACTED_FIELDS}
    if max_chars:
        fields |= {
            name: _keep_ends(fields[name], max_chars) for name in REDACTED_FIELDS if name != "call"
        }
        fields["call"] = cut(fields["call"])
    made = message.replace(files=tuple(clean[path] for path in message.files), **fields)
    return message if made == message else made


def cut(line: str) -> str:
    """Cut a call to `MAX_CALL` characters."""
    return line if len(line) <= MAX_CALL else line[:MAX_CALL] + CUT


def clean_texts(texts: set[str], allowed: Allowlist = NOTHING) -> dict[str, str]:
    """Return the redacted form of each text.

    Raises:
        MemtoolError: a text is too long to search.
    """
    cleaned_texts: dict[str, str] = {}
    for together in split_batches(sorted(texts), max_size=_MAX_AT_ONCE, size_of=len):
        joined = _BETWEEN.join(together)
        clean = clean_text(joined, allowed).split(_BETWEEN)
        if not joined.count(_BETWEEN) + 1 == len(clean) == len(together):
            # A text contains the separator, or a secret spans it: redact each text by itself.
            clean = [clean_text(text, allowed) for text in together]
        cleaned_texts.update(zip(together, clean, strict=True))
    return cleaned_texts


def clean_row(row: dict[str, Any], allowed: Allowlist = NOTHING) -> dict[str, Any]:
    """Redact a journal row, keys as well as values, and cut its long lines.

    Raises:
        MemtoolError: a text is too long to search.
    """
    clean = clean_texts(set(_iterate_texts(row)), allowed)
    cleaned: dict[str, Any] = _map_texts(row, clean)
    return cleaned


def _iterate_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _iterate_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _iterate_texts(inner)


def _map_texts(value: Any, clean: dict[str, str]) -> Any:
    if isinstance(value, str):
        return cut(clean[value])
    if isinstance(value, dict):
        return {clean[name]: _map_texts(inner, clean) for name, inner in value.items()}
    return [_map_texts(inner, clean) for inner in value] if isinstance(value, list) else value


def _keep_ends(text: str, max_chars: int) -> str:
    """Return a text, or only both ends of a long one: tools report errors at the end."""
    if len(text) <= max_chars:
        return text
    head = max_chars // 3
    tail = max_chars - head
    return f"{text[:head]}\n[… {len(text) - max_chars:,} characters left out …]\n{text[-tail:]}"
