"""The usage log: what was answered and how fast, what was changed that git cannot see.

An answer only appends a line to the spool, and `ledger.fold` takes the lines over now and then.
Nobody waits: writers share a lock, whoever takes a file over renames it first, and where a lock is
held the next file is taken.

An audited act has two lines, its intent and its outcome. While it runs, a locked file marks it;
where the file is there and nobody holds it, the act was cut off, and the next act reports it.
Nothing here may disturb an act: where it cannot be kept, it is not.
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

SWITCH = "MEMTOOL_NO_LEDGER"
SETTING = "ledger.enabled"


def is_kept(context: Context) -> bool:
    """Tell whether anything may be noted here."""
    return not context.caller.env.get(SWITCH) and bool(context.settings.setting(SETTING))


LEDGER = "ledger.db"
"""The database that takes the lines over, next to the spool."""
SPOOL_FOLDER = "spool"
CURRENT = "notes"
SEALED_PREFIX = "sealed-"
MOST_ITEMS = 50
"""Memories of one answer that are noted, the first ones."""
MOST_TEXT = 200
"""Characters of a text that are noted."""
MOST_MOMENT = 1 << 40
"""No clock is later, and no answer took longer."""
_TRIES = 10
_NOTE_FIELDS = 5
_ITEM_FIELDS = 4
_DEPTH, _COST = "=", "~"
"""Begin the fields of the level that answered, and of cache and locks; no id begins so."""
_DAMAGED = "!"
END = "."
"""The last field of every line: what ends otherwise is torn."""


class ShownItem(Value):
    """A memory that an answer showed, and why. `score` is None for what was not searched."""

    id: str
    tier: str = ""
    score: float | None = None
    reason: str = ""


class Note(Value):
    """One answer: the second, the verb, how long it took, and what it showed in order.

    `prompt` is the hash of what was asked, `session` the session it was for; empty without one.
    `depth` is the level that answered a question, empty where none was asked.
    `index` says what became of the index (`hit`, `read`, `built`, the worst where there were two),
    empty where none was opened; `is_damaged` whether any cache was, and `waited_ms` is the time in
    which another process held a lock.
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


def append_note(directory: str, note: Note) -> int:
    """Append a note below the cache directory; return the size of the file of notes.

    Raises:
        OSError: it cannot be written there.
    """
    return append_line(directory, note_line(note))


def append_line(directory: str, line: bytes) -> int:
    """Append a line that begins and ends with a line feed; return the size of the file.

    Raises:
        OSError: it cannot be written there.
    """
    path = os.path.join(directory, SPOOL_FOLDER, CURRENT)
    for _try in range(_TRIES):
        handle = files.open_to_append(path)
        try:
            files.lock(handle, is_shared=True, waits=False)
            if os.fstat(handle).st_nlink:  # else it was taken over since it was opened
                os.write(handle, line)
                return os.fstat(handle).st_size
        except BlockingIOError:
            pass  # it is being taken over, under another name
        finally:
            os.close(handle)
    import errno  # only for who waited in vain

    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)


def seal(directory: str) -> None:
    """Set the current file of notes aside, to be taken over.

    Raises:
        OSError: it cannot be renamed.
    """
    folder = os.path.join(directory, SPOOL_FOLDER)
    name = f"{SEALED_PREFIX}{time.time_ns():020}-{os.urandom(4).hex()}"
    try:  # noqa: SIM105  # contextlib would cost a third of an interpreter start
        os.rename(os.path.join(folder, CURRENT), os.path.join(folder, name))
    except FileNotFoundError:
        pass


def sealed(directory: str) -> list[str]:
    """Return the paths of the files that were set aside, the oldest first."""
    folder = os.path.join(directory, SPOOL_FOLDER)
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [os.path.join(folder, name) for name in sorted(names) if name.startswith(SEALED_PREFIX)]


def claim(path: str) -> int | None:
    """Open a file that was set aside and lock it against writers; None if somebody holds it.

    Raises:
        OSError: it cannot be opened, other than because it is gone.
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


def note_line(note: Note) -> bytes:
    """Return the line of a note. It begins with a line feed, so that a torn line spoils no other.

    Fields are parted by tabs: moment, verb, milliseconds, prompt, session, `=` and the level that
    answered, `~` and what became of index, caches and locks, each memory as id, tier, score and
    reason between spaces, and a full stop.
    """
    fields = [
        str(note.moment),
        _word(note.verb),
        f"{note.elapsed_ms:.3f}",
        _word(note.prompt),
        _text(note.session),
    ]
    fields += [f"{_DEPTH}{_word(note.depth)}"] if note.depth else []
    if note.index or note.is_damaged or note.waited_ms:
        mark = _DAMAGED if note.is_damaged else ""
        fields.append(f"{_COST}{_word(note.index)} {mark} {note.waited_ms:.3f}")
    for item in note.items[:MOST_ITEMS]:
        score = "" if item.score is None else f"{item.score:.6g}"
        fields.append(f"{_word(item.id)} {_word(item.tier)} {score} {_text(item.reason)}")
    line = "\t".join([*fields, END])
    return f"\n{line}\n".encode(errors="replace")


def read_notes(data: bytes) -> Iterator[Note]:
    """Yield the notes of a file. What is no whole line of one is passed over."""
    for line in data.split(b"\n"):
        note = _note_of(line.decode(errors="replace").split("\t"))
        if note is not None:
            yield note


def waiting(directory: str) -> Iterator[Note]:
    """Yield the notes that the ledger has not taken over yet, the oldest first."""
    for path in (*sealed(directory), os.path.join(directory, SPOOL_FOLDER, CURRENT)):
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError:
            continue
        yield from read_notes(data)


def _note_of(fields: list[str]) -> Note | None:
    if fields.pop() != END or len(fields) < _NOTE_FIELDS:
        return None
    depth, cost = _marked(fields, _DEPTH), _marked(fields, _COST)
    try:
        moment, elapsed_ms = int(fields[0]), float(fields[2])
        items = tuple(_items(fields[_NOTE_FIELDS:]))
        state, mark, waited = (cost or "  0").split(" ")
        waited_ms = float(waited)
    except ValueError:
        return None
    is_sane = 0 <= elapsed_ms < MOST_MOMENT and 0 <= waited_ms < MOST_MOMENT
    if not (abs(moment) < MOST_MOMENT and is_sane):
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
    )


def _marked(fields: list[str], mark: str) -> str:
    """Take the first field after those of every note out, if it has a mark; return its text."""
    is_there = fields[_NOTE_FIELDS:] and fields[_NOTE_FIELDS].startswith(mark)
    return fields.pop(_NOTE_FIELDS).removeprefix(mark) if is_there else ""


def _items(fields: Iterable[str]) -> Iterator[ShownItem]:
    for field in fields:
        id_, tier, score, reason = field.split(" ", _ITEM_FIELDS - 1)
        yield ShownItem(id_, tier, float(score) if score else None, reason)


def _word(text: str) -> str:
    """Return a text without white space, as ids and names are."""
    return "".join(text.split())[:MOST_TEXT]


def _text(text: str) -> str:
    return " ".join(text.split())[:MOST_TEXT]


KINDS: dict[str, str] = {
    "promote": "findings of sessions became memories, or strengthened them",
    "deny": "a finding was not promoted, since its memory was forgotten or replaced",
    "dismiss": "findings are not proposed any more; the reason is kept with their session",
    "reopen": "findings that were dismissed are proposed again",
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
"""What is kept, by kind."""
LASTING = ("deny", "forget", "purge", "redact", "session-purge")
"""Kinds whose outcome is also a line of a plain file beside the ledger, which outlives it."""
LASTING_FILE = "audit.log"
KEPT_KINDS = ("forget", "purge", "redact")
"""Kinds that are kept for `KEPT_DAYS`, however much happens since."""
KEPT_DAYS = 90
INTENT, DONE, REFUSED, INTERRUPTED = "intent", "done", "refused", "interrupted"
PHASES = (INTENT, DONE, REFUSED, INTERRUPTED)
INTENTS_FOLDER = "intents"
MOST_SUBJECTS = 50
AUDIT_BYTES = 65_536
_MARK = "audit"
"""Begins the line of an event, where that of a note has a number."""
_EVENT_FIELDS = 7


class AuditEvent(Value):
    """One phase of an act. `subjects` are ids or paths, `detail` a line that holds no secret.

    `operation` joins the phases of one act.
    """

    moment: int
    operation: str
    kind: str
    phase: str
    subjects: tuple[str, ...] = ()
    detail: str = ""


class RunningAct:
    """An act that runs: its intent is noted, and a locked file marks it until `end`."""

    def __init__(self, directory: str, event: AuditEvent) -> None:
        """Note the intent below the cache directory; where that refuses, nothing is kept."""
        self._directory = directory
        self._event = event
        self._handle = _begun(directory, event)

    def end(self, moment: int, phase: str, subjects: Iterable[str] = (), detail: str = "") -> None:
        """Note the outcome; the subjects and detail of the intent hold unless others are given."""
        done = self._event.replace(
            moment=moment,
            phase=phase,
            subjects=tuple(subjects) or self._event.subjects,
            detail=detail or self._event.detail,
        )
        if self._handle >= 0:
            _add(self._handle, done)  # first of all: what is killed from here on was done
        append_event(self._directory, done)
        if self._handle >= 0:
            _removed(_path(self._directory, self._event.operation))
            os.close(self._handle)


def operation() -> str:
    """Return a new name that joins the phases of an act."""
    return os.urandom(6).hex()


def append_event(directory: str, event: AuditEvent) -> None:
    """Append an event to the spool; where that cannot be written, without a word.

    The outcome of an act that somebody may ask about for years is a line of a plain file, too.
    """
    if event.kind in LASTING and event.phase != INTENT:
        _keep(directory, event)
    try:
        append_line(directory, event_line(event))
    except OSError:
        return


def lasting(directory: str) -> list[AuditEvent]:
    """Return what the plain file holds, the oldest first: nothing where there is none."""
    try:
        return list(read_events(files.read_regular(os.path.join(directory, LASTING_FILE))))
    except OSError:
        return []


def _keep(directory: str, event: AuditEvent) -> None:
    """Append an outcome to the plain file; a finding that is denied again only once."""
    same = (event.kind, event.subjects)
    if event.kind == "deny" and any((o.kind, o.subjects) == same for o in lasting(directory)):
        return
    try:
        files.append(os.path.join(directory, LASTING_FILE), event_line(event))
    except OSError:
        return


def cut_off(directory: str, now: int) -> list[AuditEvent]:
    """Note what was begun and never ended, since its process is gone, and return it.

    Of what has ended only the outcome is noted, which may not have reached the spool.
    """
    try:
        names = sorted(os.listdir(os.path.join(directory, INTENTS_FOLDER)))
    except OSError:
        return []
    found = []
    for name in names:
        event = _abandoned(os.path.join(directory, INTENTS_FOLDER, name))
        if event is not None and event.phase != INTENT:
            append_event(directory, event)
        elif event is not None:
            found.append(event)
            append_event(directory, event.replace(moment=now, phase=INTERRUPTED))
    return found


def event_line(event: AuditEvent) -> bytes:
    """Return the line of an event, which spoils no other where it is torn."""
    subjects = " ".join(map(_subject, event.subjects[:MOST_SUBJECTS]))
    fields = [
        _MARK,
        str(event.moment),
        _subject(event.operation),
        event.kind,
        event.phase,
        subjects,
        " ".join(event.detail.split())[:MOST_TEXT],
        END,
    ]
    return ("\n" + "\t".join(fields) + "\n").encode(errors="replace")


def read_events(data: bytes) -> Iterator[AuditEvent]:
    """Yield the events of a file of notes. What is no whole line of one is passed over."""
    for line in data.split(b"\n"):
        if line.startswith(b"audit\t"):
            fields = line.decode(errors="replace").split("\t")
            if fields.pop() == END and len(fields) == _EVENT_FIELDS:
                event = _event(fields)
                if event is not None:
                    yield event


def _event(fields: list[str]) -> AuditEvent | None:
    _mark, moment, name, kind, phase, subjects, detail = fields
    if not moment.lstrip("-").isdecimal() or kind not in KINDS or phase not in PHASES:
        return None
    second = int(moment[:20])
    if abs(second) >= MOST_MOMENT:
        return None
    return AuditEvent(second, name, kind, phase, tuple(subjects.split()), detail)


def _begun(directory: str, event: AuditEvent) -> int:
    """Note an intent, and return the locked file that marks it; -1 where there is none."""
    path = _path(directory, event.operation)
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
        _add(handle, event)
    append_event(directory, event)
    return handle


def _add(handle: int, event: AuditEvent) -> None:
    try:
        os.write(handle, event_line(event))
    except OSError:
        return


def _abandoned(path: str) -> AuditEvent | None:
    """Remove a file that nobody holds, and return its last event; None for one that is held."""
    try:
        handle = files.open_file(path)
    except OSError:
        return None
    try:
        files.lock(handle, waits=False)
        event = max(read_events(os.read(handle, AUDIT_BYTES)), key=_is_outcome, default=None)
        is_mine = os.fstat(handle).st_nlink > 0  # else another process has reported it just now
        _removed(path)
    except OSError:
        return None
    finally:
        os.close(handle)
    return event if is_mine else None


def _is_outcome(event: AuditEvent) -> bool:
    return event.phase != INTENT


def _removed(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def _path(directory: str, name: str) -> str:
    return os.path.join(directory, INTENTS_FOLDER, name)


def _subject(text: str) -> str:
    """Return a text without white space, which parts subjects."""
    return "%20".join(text.split())[:MOST_TEXT]


class Acting:
    """A block in which something is done. `subjects` and `detail` may be set while it runs."""

    def __init__(self, context: Context, event: AuditEvent | None) -> None:
        self._ws = context
        self._event = event
        self.subjects: tuple[str, ...] = event.subjects if event else ()
        self.detail = event.detail if event else ""

    def __enter__(self) -> Self:
        if self._event is not None:
            directory = self._ws.repository.cache_dir
            tell_cut_off(self._ws)
            self._act = RunningAct(directory, self._event)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self._event is None:
            return
        phase = DONE if error is None else INTERRUPTED
        if isinstance(error, MemtoolError):
            phase, self.detail = REFUSED, error.code
        self._act.end(self._ws.clock.now, phase, self.subjects, self.detail)


def act(
    context: Context, kind: str, *subjects: str, detail: str = "", dry_run: bool = False
) -> Acting:
    """Return a block whose begin and end are noted; a dry run leaves nothing behind.

    `kind` is one of `KINDS`; neither subjects nor detail may hold a secret.
    """
    if dry_run or not is_kept(context):
        return Acting(context, None)
    name = operation()
    return Acting(context, AuditEvent(context.clock.now, name, kind, INTENT, subjects, detail))


def tell(context: Context, kind: str, subjects: Iterable[str], detail: str = "") -> None:
    """Note what is done already, or was decided: it has no intent."""
    if is_kept(context):
        event = AuditEvent(context.clock.now, operation(), kind, DONE, tuple(subjects), detail)
        append_event(context.repository.cache_dir, event)


def tell_cut_off(context: Context) -> None:
    """Tell the user of acts that were begun before and never ended."""
    for event in cut_off(context.repository.cache_dir, context.clock.now):
        named = first_few(event.subjects, 3, ", …")
        context.notes.append(
            f"{event.kind} of {named or 'nothing named'} was cut off on "
            f"{timestamps.render(event.moment)}; memtool log --audit shows it"
        )


CHANGES = {"forget": "forget", "restore": "restore", "strengthen": "merge", "undo": "undo"}
"""Changes of a memory in place that the audit keeps, by the verb that makes them."""


def changing(context: Context, verb: str, id: str, why: str) -> Acting:
    """Return the block in which a memory is changed in place; kept are the verbs of `CHANGES`."""
    return act(context, CHANGES.get(verb, ""), id, detail=why, dry_run=verb not in CHANGES)
