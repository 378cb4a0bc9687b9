"""The usage log: answers with their latency, and acts that git's history does not show.

An answer only appends a line to the spool, and `ledger.fold` moves the lines from time to time.
Writers never wait: they share a lock, the ledger renames a file before reading it, and a writer
that finds a file locked uses the next one.

An audited act has two lines, its intent and its outcome. A locked file marks a running act. A mark
file without a lock means that the act was interrupted, and the next act reports it. Logging must
not disturb an act, so errors are ignored.
"""

from __future__ import annotations

import os
import time

from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.store import files
from memtool.value import Value, first_few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

    from memtool.store.context import Context

OFF_VARIABLE = "MEMTOOL_NO_LEDGER"
ENABLED_SETTING = "ledger.enabled"


WORDS_SETTING = "ledger.words"


def is_enabled(context: Context) -> bool:
    """Return whether the usage log is enabled."""
    return not context.caller.env.get(OFF_VARIABLE) and bool(
        context.settings.setting(ENABLED_SETTING)
    )


def has_words(context: Context) -> bool:
    """Return whether the user wants the words of searches without a hit to be kept."""
    return is_enabled(context) and context.project.user_settings.text(WORDS_SETTING) == "on"


LEDGER = "ledger.db"
"""The database to which the lines are moved, next to the spool."""
SPOOL_FOLDER = "spool"
CURRENT = "notes"
SEALED_PREFIX = "sealed-"
MAX_ITEMS = 50
"""Memories that are logged for one answer."""
MAX_TEXT_CHARS = 200
"""Characters of a text that are logged."""
MAX_MOMENT = 1 << 40
"""Upper limit of plausible moments in seconds, and of latencies in milliseconds."""
_MAX_TRIES = 10
_NOTE_FIELDS = 5
_ITEM_FIELDS = 4
_DEPTH, _COST, _WORDS = "=", "~", "?"
"""Prefixes of the fields for the level, for cache and locks, and for the words of a search; no id
begins with them."""
_DAMAGED = "!"
END = "."
"""The last field of every line; a line without it is incomplete."""


class ShownItem(Value):
    """A memory that an answer showed, and why. `score` is None if there was no search."""

    id: str
    tier: str = ""
    score: float | None = None
    reason: str = ""


class Note(Value):
    """One answer: second, verb, latency, and the memories that it showed, in order.

    `prompt` is the hash of the query, `session` the session's id; empty without one. `depth` is the
    level that answered, empty without a query. `index` is `hit`, `read` or `built` (the worst if
    two were opened), empty if no index was opened. `is_damaged` means that a cache was damaged,
    `waited_ms` is the time spent waiting for locks of other processes. `words` is the redacted text
    of a search without a hit, empty unless the user wants it to be kept.
    """

    moment: int
    verb: str
    elapsed_ms: float
    prompt: str = ""
    session: str = ""
    items: tuple[ShownItem, ...] = ()
    depth: str = ""
    index: str = ""
    is_damaged: bool = False
    waited_ms: float = 0.0
    words: str = ""


def append_note(directory: str, note: Note) -> int:
    """Append a note below the cache directory; return the size of the file of notes.

    Raises:
        OSError: it cannot be written there.
    """
    return append_line(directory, format_note(note))


def append_line(directory: str, line: bytes) -> int:
    """Append a line that begins and ends with a line feed; return the size of the file.

    Raises:
        OSError: it cannot be written there.
    """
    path = os.path.join(directory, SPOOL_FOLDER, CURRENT)
    for _try in range(_MAX_TRIES):
        handle = files.open_to_append(path)
        try:
            files.lock(handle, is_shared=True, waits=False)
            if os.fstat(handle).st_nlink:  # otherwise the ledger has removed it since
                os.write(handle, line)
                return os.fstat(handle).st_size
        except BlockingIOError:
            pass  # the ledger has renamed it and is reading it
        finally:
            os.close(handle)
    import errno  # rarely needed

    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)


def seal(directory: str) -> None:
    """Rename the current spool file, so that the ledger can read it.

    Raises:
        OSError: it cannot be renamed.
    """
    folder = os.path.join(directory, SPOOL_FOLDER)
    name = f"{SEALED_PREFIX}{time.time_ns():020}-{os.urandom(4).hex()}"
    try:  # noqa: SIM105  # contextlib would cost a third of an interpreter start
        os.rename(os.path.join(folder, CURRENT), os.path.join(folder, name))
    except FileNotFoundError:
        pass


def list_sealed(directory: str) -> list[str]:
    """Return the paths of the sealed files, oldest first."""
    folder = os.path.join(directory, SPOOL_FOLDER)
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [os.path.join(folder, name) for name in sorted(names) if name.startswith(SEALED_PREFIX)]


def claim(path: str) -> int | None:
    """Open a sealed file and lock it against writers; None if it is gone or locked.

    Raises:
        OSError: it cannot be opened for another reason.
    """
    try:
        handle = files.open_file(path)
    except FileNotFoundError:
        return None
    try:
        files.lock(handle, waits=False)
        if os.fstat(handle).st_nlink:
            return handle
    except BlockingIOError:
        pass
    os.close(handle)
    return None


def format_note(note: Note) -> bytes:
    """Return the line of a note. It starts with a line feed, in case the last line is incomplete.

    Fields are separated by tabs: moment, verb, milliseconds, prompt, session, `=` and the level
    that answered, `~` and the state of index, caches and locks, `?` and the words of a search
    without a hit, each memory as id, tier, score and reason separated by spaces, and a full stop.
    """
    fields = [
        str(note.moment),
        _to_word(note.verb),
        f"{note.elapsed_ms:.3f}",
        _to_word(note.prompt),
        _to_line(note.session),
    ]
    fields += [f"{_DEPTH}{_to_word(note.depth)}"] if note.depth else []
    if note.index or note.is_damaged or note.waited_ms:
        mark = _DAMAGED if note.is_damaged else ""
        fields.append(f"{_COST}{_to_word(note.index)} {mark} {note.waited_ms:.3f}")
    fields += [f"{_WORDS}{_to_line(note.words)}"] if note.words else []
    for item in note.items[:MAX_ITEMS]:
        score = "" if item.score is None else f"{item.score:.6g}"
        fields.append(f"{_to_word(item.id)} {_to_word(item.tier)} {score} {_to_line(item.reason)}")
    line = "\t".join([*fields, END])
    return f"\n{line}\n".encode(errors="replace")


def read_notes(data: bytes) -> Iterator[Note]:
    """Yield the notes of a file; other and incomplete lines are skipped."""
    for line in data.split(b"\n"):
        note = _parse_note(line.decode(errors="replace").split("\t"))
        if note is not None:
            yield note


def read_waiting_notes(directory: str) -> Iterator[Note]:
    """Yield the notes that are not in the ledger yet, oldest first."""
    for path in (*list_sealed(directory), os.path.join(directory, SPOOL_FOLDER, CURRENT)):
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError:
            continue
        yield from read_notes(data)


def _parse_note(fields: list[str]) -> Note | None:
    if fields.pop() != END or len(fields) < _NOTE_FIELDS:
        return None
    depth, cost = _take_marked(fields, _DEPTH), _take_marked(fields, _COST)
    words = _take_marked(fields, _WORDS)
    try:
        moment, elapsed_ms = int(fields[0]), float(fields[2])
        items = tuple(_parse_items(fields[_NOTE_FIELDS:]))
        state, mark, waited = (cost or "  0").split(" ")
        waited_ms = float(waited)
    except ValueError:
        return None
    is_sane = 0 <= elapsed_ms < MAX_MOMENT and 0 <= waited_ms < MAX_MOMENT
    if not (abs(moment) < MAX_MOMENT and is_sane):
        return None
    return Note(
        moment,
        fields[1],
        elapsed_ms,
        fields[3],
        fields[4],
        items,
        depth,
        state,
        mark == _DAMAGED,
        waited_ms,
        words,
    )


def _take_marked(fields: list[str], mark: str) -> str:
    """Remove the first optional field if it begins with a mark, and return its text."""
    is_there = fields[_NOTE_FIELDS:] and fields[_NOTE_FIELDS].startswith(mark)
    return fields.pop(_NOTE_FIELDS).removeprefix(mark) if is_there else ""


def _parse_items(fields: Iterable[str]) -> Iterator[ShownItem]:
    for field in fields:
        id_, tier, score, reason = field.split(" ", _ITEM_FIELDS - 1)
        yield ShownItem(id_, tier, float(score) if score else None, reason)


def _to_word(text: str) -> str:
    """Return a text without white space, shortened."""
    return "".join(text.split())[:MAX_TEXT_CHARS]


def _to_line(text: str) -> str:
    return " ".join(text.split())[:MAX_TEXT_CHARS]


KINDS: dict[str, str] = {
    "promote": "lessons of sessions became memories, or strengthened them",
    "deny": "a lesson was not promoted, since its memory was forgotten or replaced",
    "dismiss": "lessons are not proposed any more; the reason is kept with their session",
    "reopen": "lessons that were dismissed are proposed again",
    "merge": "a memory that was said again was strengthened instead of written twice",
    "forget": "a memory was deleted softly",
    "restore": "a memory came back",
    "undo": "the newest step of a memory was taken back",
    "still-holds": "a memory was confirmed although drift called it broken, by the rule named",
    "run": "the command of a trace was run again, by somebody who agreed to it",
    "redact": "secrets or personal data were taken out of files",
    "purge": "memories were removed for good, or taken out of history",
    "maintain": "upkeep was applied",
    "capture": "a transcript was taken into a session",
    "session-end": "a session was ended",
    "session-purge": "a session was removed, or lost its messages",
    "hook-failed": "a hook of an agent host could not answer",
}
"""Description of each kind of audited act."""
LASTING_KINDS = ("deny", "forget", "purge", "redact", "session-purge")
"""Kinds whose outcome is also stored in a plain file next to the ledger, which outlives it."""
LASTING_FILE = "audit.log"
RETAINED_KINDS = ("forget", "purge", "redact")
"""Kinds that are kept for RETENTION_DAYS, regardless of the number of later acts."""
RETENTION_DAYS = 90
INTENT, DONE, REFUSED, INTERRUPTED = "intent", "done", "refused", "interrupted"
PHASES = (INTENT, DONE, REFUSED, INTERRUPTED)
INTENTS_FOLDER = "intents"
MAX_SUBJECTS = 50
MAX_INTENT_BYTES = 65_536
_MARK = "audit"
"""First field of the line of an event; the line of a note begins with a number."""
_EVENT_FIELDS = 7


class AuditEvent(Value):
    """One phase of an act. `subjects` are ids or paths, `detail` a line without secrets.

    `operation` is the id that the phases of one act share.
    """

    moment: int
    operation: str
    kind: str
    phase: str
    subjects: tuple[str, ...] = ()
    detail: str = ""


class RunningAct:
    """A running act: its intent is logged, and a locked file marks it until `end`."""

    def __init__(self, directory: str, event: AuditEvent) -> None:
        """Log the intent below the cache directory. Errors are ignored."""
        self._directory = directory
        self._event = event
        self._handle = _log_intent(directory, event)

    def end(self, moment: int, phase: str, subjects: Iterable[str] = (), detail: str = "") -> None:
        """Log the outcome, with subjects and detail of the intent unless others are passed."""
        done = self._event.replace(
            moment=moment,
            phase=phase,
            subjects=tuple(subjects) or self._event.subjects,
            detail=detail or self._event.detail,
        )
        if self._handle >= 0:
            _write_event(self._handle, done)  # first: a process killed after this counts as done
        append_event(self._directory, done)
        if self._handle >= 0:
            _remove_if_possible(_intent_path(self._directory, self._event.operation))
            os.close(self._handle)


def create_operation_id() -> str:
    """Return a new id for the phases of an act."""
    return os.urandom(6).hex()


def append_event(directory: str, event: AuditEvent) -> None:
    """Append an event to the spool; errors are ignored.

    An outcome of LASTING_KINDS, which may be needed after years, also goes to a plain file.
    """
    if event.kind in LASTING_KINDS and event.phase != INTENT:
        _append_lasting(directory, event)
    try:
        append_line(directory, format_event(event))
    except OSError:
        return


def read_lasting_events(directory: str) -> list[AuditEvent]:
    """Return the events of the plain file, oldest first; empty if there is no file."""
    try:
        return list(read_events(files.read_regular(os.path.join(directory, LASTING_FILE))))
    except OSError:
        return []


def _append_lasting(directory: str, event: AuditEvent) -> None:
    """Append an outcome to the plain file; repeated denials of a finding only once."""
    same = (event.kind, event.subjects)
    if event.kind == "deny" and any(
        (event_before.kind, event_before.subjects) == same
        for event_before in read_lasting_events(directory)
    ):
        return
    try:
        files.append(os.path.join(directory, LASTING_FILE), format_event(event))
    except OSError:
        return


def take_interrupted(directory: str, now: int) -> list[AuditEvent]:
    """Log and return the acts that never ended because their process is gone.

    If the mark file of an act has an outcome, only that is logged, as it may not be in the spool.
    """
    try:
        names = sorted(os.listdir(os.path.join(directory, INTENTS_FOLDER)))
    except OSError:
        return []
    interrupted = []
    for name in names:
        event = _take_abandoned(os.path.join(directory, INTENTS_FOLDER, name))
        if event is not None and event.phase != INTENT:
            append_event(directory, event)
        elif event is not None:
            interrupted.append(event)
            append_event(directory, event.replace(moment=now, phase=INTERRUPTED))
    return interrupted


def format_event(event: AuditEvent) -> bytes:
    """Return the line of an event. It starts with a line feed, in case the last is incomplete."""
    subjects = " ".join(map(_to_subject, event.subjects[:MAX_SUBJECTS]))
    fields = [
        _MARK,
        str(event.moment),
        _to_subject(event.operation),
        event.kind,
        event.phase,
        subjects,
        " ".join(event.detail.split())[:MAX_TEXT_CHARS],
        END,
    ]
    return ("\n" + "\t".join(fields) + "\n").encode(errors="replace")


def read_events(data: bytes) -> Iterator[AuditEvent]:
    """Yield the events of a spool file; other and incomplete lines are skipped."""
    for line in data.split(b"\n"):
        if line.startswith(b"audit\t"):
            fields = line.decode(errors="replace").split("\t")
            if fields.pop() == END and len(fields) == _EVENT_FIELDS:
                event = _parse_event(fields)
                if event is not None:
                    yield event


def _parse_event(fields: list[str]) -> AuditEvent | None:
    _mark, moment, name, kind, phase, subjects, detail = fields
    if not moment.lstrip("-").isdecimal() or kind not in KINDS or phase not in PHASES:
        return None
    second = int(moment[:20])
    if abs(second) >= MAX_MOMENT:
        return None
    return AuditEvent(second, name, kind, phase, tuple(subjects.split()), detail)


def _log_intent(directory: str, event: AuditEvent) -> int:
    """Log an intent, and return the handle of the locked mark file; -1 if there is none."""
    path = _intent_path(directory, event.operation)
    handle = -1
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        handle = files.open_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        files.lock(handle, waits=False)
    except OSError:
        if handle >= 0:
            os.close(handle)
            handle = -1
    if handle >= 0:
        _write_event(handle, event)
    append_event(directory, event)
    return handle


def _write_event(handle: int, event: AuditEvent) -> None:
    try:
        os.write(handle, format_event(event))
    except OSError:
        return


def _take_abandoned(path: str) -> AuditEvent | None:
    """Remove a mark file and return its last event; None if its act still runs."""
    try:
        handle = files.open_file(path)
    except OSError:
        return None
    try:
        files.lock(handle, waits=False)
        event = max(read_events(os.read(handle, MAX_INTENT_BYTES)), key=_is_outcome, default=None)
        is_mine = os.fstat(handle).st_nlink > 0  # otherwise another process has just reported it
        _remove_if_possible(path)
    except OSError:
        return None
    finally:
        os.close(handle)
    return event if is_mine else None


def _is_outcome(event: AuditEvent) -> bool:
    return event.phase != INTENT


def _remove_if_possible(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def _intent_path(directory: str, name: str) -> str:
    return os.path.join(directory, INTENTS_FOLDER, name)


def _to_subject(text: str) -> str:
    """Return a text with white space escaped, since that separates subjects."""
    return "%20".join(text.split())[:MAX_TEXT_CHARS]


class AuditScope:
    """Logs an act around a `with` block, which may set `subjects` and `detail`."""

    def __init__(self, context: Context, event: AuditEvent | None) -> None:
        self._context = context
        self._event = event
        self.subjects: tuple[str, ...] = event.subjects if event else ()
        self.detail = event.detail if event else ""

    def __enter__(self) -> Self:
        if self._event is not None:
            directory = self._context.repository.cache_dir
            report_interrupted(self._context)
            self._act = RunningAct(directory, self._event)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self._event is None:
            return
        phase = DONE if error is None else INTERRUPTED
        if isinstance(error, MemtoolError):
            phase, self.detail = REFUSED, error.code
        self._act.end(self._context.clock.now, phase, self.subjects, self.detail)


def audit(
    context: Context, kind: str, *subjects: str, detail: str = "", dry_run: bool = False
) -> AuditScope:
    """Return a context manager that logs begin and end of an act, except in a dry run.

    `kind` is one of KINDS; subjects and detail must not contain secrets.
    """
    if dry_run or not is_enabled(context):
        return AuditScope(context, None)
    name = create_operation_id()
    return AuditScope(context, AuditEvent(context.clock.now, name, kind, INTENT, subjects, detail))


def log_done(context: Context, kind: str, subjects: Iterable[str], detail: str = "") -> None:
    """Log an act that is already done, without an intent."""
    if is_enabled(context):
        event = AuditEvent(
            context.clock.now, create_operation_id(), kind, DONE, tuple(subjects), detail
        )
        append_event(context.repository.cache_dir, event)


def report_interrupted(context: Context) -> None:
    """Report interrupted acts to the user."""
    for event in take_interrupted(context.repository.cache_dir, context.clock.now):
        named = first_few(event.subjects, 3, ", …")
        context.notes.append(
            f"{event.kind} of {named or 'nothing named'} was cut off on "
            f"{timestamps.render(event.moment)}: memtool log --audit"
        )


CHANGES = {"forget": "forget", "restore": "restore", "strengthen": "merge", "undo": "undo"}
"""Kind of the audited act for each verb that changes a memory in place."""


def audit_change(context: Context, verb: str, id: str, reason: str) -> AuditScope:
    """Return a context manager that logs a change in place, if its verb is in CHANGES."""
    return audit(context, CHANGES.get(verb, ""), id, detail=reason, dry_run=verb not in CHANGES)
