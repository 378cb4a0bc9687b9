"""The audit: what was done that git alone does not tell, intent before the act, outcome after.

An event is a line of the spool, which the ledger takes over. While an act runs, a locked file says
so; where the file is there and nobody holds it, the act was cut off, and whoever comes next tells.
Nothing here may disturb an act: where it cannot be kept, it is not.
"""

from __future__ import annotations

import os

from memtool.store import spool
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

KINDS: dict[str, str] = {
    "promote": "findings of sessions became memories, or strengthened them",
    "deny": "a finding was not promoted, since its memory was forgotten or replaced",
    "merge": "a memory that was said again was strengthened instead of written twice",
    "forget": "a memory was deleted softly",
    "restore": "a memory came back",
    "redact": "secrets or personal data were taken out of files",
    "purge": "memories were removed for good, or taken out of history",
    "maintain": "upkeep was applied",
    "capture": "a transcript was taken into a session",
    "session-end": "a session was ended",
    "session-purge": "a session was removed, or lost its messages",
    "hook-failed": "a hook of an agent host could not answer",
}
"""What is kept, by kind."""
KEPT_KINDS = ("forget", "purge", "redact")
"""Kinds that are kept for `KEPT_DAYS`, however much happens since."""
KEPT_DAYS = 90
INTENT, DONE, REFUSED, INTERRUPTED = "intent", "done", "refused", "interrupted"
PHASES = (INTENT, DONE, REFUSED, INTERRUPTED)
FOLDER = "intents"
MOST_SUBJECTS = 50
MOST_BYTES = 65_536
_MARK = "audit"
"""Begins the line of an event, where that of a note has a number."""
_FIELDS = 7


class Event(Value):
    """One phase of an act. `subjects` are ids or paths, `detail` a line that holds no secret.

    `operation` joins the phases of one act.
    """

    moment: int
    operation: str
    kind: str
    phase: str
    subjects: tuple[str, ...] = ()
    detail: str = ""


class Act:
    """An act that runs: its intent is noted, and a locked file stands for it until `end`."""

    def __init__(self, directory: str, event: Event) -> None:
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
        append(self._directory, done)
        if self._handle >= 0:
            _removed(_path(self._directory, self._event.operation))
            os.close(self._handle)


def operation() -> str:
    """Return a new name that joins the phases of an act."""
    return os.urandom(6).hex()


def append(directory: str, event: Event) -> None:
    """Append an event to the spool; where that cannot be written, without a word."""
    try:
        spool.append_line(directory, write(event))
    except OSError:
        return


def cut_off(directory: str, now: int) -> list[Event]:
    """Note what was begun and never ended, since its process is gone, and return it.

    Of what had ended only the outcome is noted, which may not have reached the spool.
    """
    try:
        names = sorted(os.listdir(os.path.join(directory, FOLDER)))
    except OSError:
        return []
    found = []
    for name in names:
        event = _abandoned(os.path.join(directory, FOLDER, name))
        if event is not None and event.phase != INTENT:
            append(directory, event)
        elif event is not None:
            found.append(event)
            append(directory, event.replace(moment=now, phase=INTERRUPTED))
    return found


def write(event: Event) -> bytes:
    """Return the line of an event, which spoils no other where it is torn."""
    subjects = " ".join(map(_word, event.subjects[:MOST_SUBJECTS]))
    fields = [_MARK, str(event.moment), _word(event.operation), event.kind, event.phase, subjects,
              " ".join(event.detail.split())[: spool.MOST_TEXT], spool.END]  # fmt: skip
    return ("\n" + "\t".join(fields) + "\n").encode(errors="replace")


def read(data: bytes) -> Iterator[Event]:
    """Yield the events of a file of notes. What is no whole line of one is passed over."""
    for line in data.split(b"\n"):
        if line.startswith(b"audit\t"):
            fields = line.decode(errors="replace").split("\t")
            if fields.pop() == spool.END and len(fields) == _FIELDS:
                event = _event(fields)
                if event is not None:
                    yield event


def _event(fields: list[str]) -> Event | None:
    _mark, moment, name, kind, phase, subjects, detail = fields
    if not moment.lstrip("-").isdecimal() or kind not in KINDS or phase not in PHASES:
        return None
    second = int(moment[:20])
    if abs(second) >= spool.MOST_MOMENT:
        return None
    return Event(second, name, kind, phase, tuple(subjects.split()), detail)


def _begun(directory: str, event: Event) -> int:
    """Note an intent, and return the locked file that stands for it; -1 where there is none."""
    import fcntl

    path = _path(directory, event.operation)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = -1
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        handle = os.open(path, flags, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if handle >= 0:
            os.close(handle)
            handle = -1
    if handle >= 0:
        _add(handle, event)
    append(directory, event)
    return handle


def _add(handle: int, event: Event) -> None:
    try:
        os.write(handle, write(event))
    except OSError:
        return


def _abandoned(path: str) -> Event | None:
    """Remove a file that nobody holds, and return its last event; None for one that is held."""
    import fcntl

    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        event = max(read(os.read(handle, MOST_BYTES)), key=_is_outcome, default=None)
        is_mine = os.fstat(handle).st_nlink > 0  # else somebody else has told it just now
        _removed(path)
    except OSError:
        return None
    finally:
        os.close(handle)
    return event if is_mine else None


def _is_outcome(event: Event) -> bool:
    return event.phase != INTENT


def _removed(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def _path(directory: str, name: str) -> str:
    return os.path.join(directory, FOLDER, name)


def _word(text: str) -> str:
    """Return a text without white space, which parts subjects."""
    return "%20".join(text.split())[: spool.MOST_TEXT]
