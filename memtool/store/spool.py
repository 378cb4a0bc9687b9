"""The spool: what answers leave behind for the ledger, one line each, in a file of the git dir.

Importing SQLite costs half an interpreter start, so an answer only appends a line; `ledger.fold`
takes the lines over now and then. Nobody waits: writers share a lock, whoever takes a file over
renames it first, and where a lock is held the next file is taken.
"""

from __future__ import annotations

import fcntl
import os

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FOLDER = "spool"
CURRENT = "notes"
SEALED_PREFIX = "sealed-"
MOST_ITEMS = 50
"""Memories of one answer that are noted, the first ones."""
MOST_TEXT = 200
"""Characters of a text that are noted."""
MOST_MOMENT = 1 << 40
"""No clock is later, and no answer took longer."""
_TRIES = 10
_FIELDS = 5
_ITEM_FIELDS = 4
END = "."
"""The last field of every line: what ends otherwise is torn."""


class Item(Value):
    """A memory that an answer showed, and why. `score` is None for what was not searched."""

    id: str
    tier: str = ""
    score: float | None = None
    reason: str = ""


class Note(Value):
    """One answer: the second, the verb, how long it took, and what it showed in order.

    `prompt` is the hash of what was asked, `session` the session it was for; empty without one.
    """

    moment: int
    verb: str
    elapsed_ms: float
    prompt: str = ""
    session: str = ""
    items: tuple[Item, ...] = ()


def append(directory: str, note: Note) -> int:
    """Append a note below the cache directory; return the size of the file of notes.

    Raises:
        OSError: it cannot be written there.
    """
    return append_line(directory, write(note))


def append_line(directory: str, line: bytes) -> int:
    """Append a line that begins and ends with a line feed; return the size of the file.

    Raises:
        OSError: it cannot be written there.
    """
    path = os.path.join(directory, FOLDER, CURRENT)
    for _try in range(_TRIES):
        handle = _open(path)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
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
    import time

    folder = os.path.join(directory, FOLDER)
    name = f"{SEALED_PREFIX}{time.time_ns():020}-{os.urandom(4).hex()}"
    try:  # noqa: SIM105  # contextlib would cost a third of an interpreter start
        os.rename(os.path.join(folder, CURRENT), os.path.join(folder, name))
    except FileNotFoundError:
        pass


def sealed(directory: str) -> list[str]:
    """Return the paths of the files that were set aside, the oldest first."""
    folder = os.path.join(directory, FOLDER)
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
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_nlink:
            return handle
    except BlockingIOError:
        pass
    os.close(handle)
    return None


def write(note: Note) -> bytes:
    """Return the line of a note. It begins with a line feed, so that a torn line spoils no other.

    Fields are parted by tabs: moment, verb, milliseconds, prompt, session, each memory as id, tier,
    score and reason between spaces, and a full stop.
    """
    fields = [
        str(note.moment), _word(note.verb), f"{note.elapsed_ms:.3f}", _word(note.prompt),
        _text(note.session),
    ]  # fmt: skip
    for item in note.items[:MOST_ITEMS]:
        score = "" if item.score is None else f"{item.score:.6g}"
        fields.append(f"{_word(item.id)} {_word(item.tier)} {score} {_text(item.reason)}")
    line = "\t".join([*fields, END])
    return f"\n{line}\n".encode(errors="replace")


def read(data: bytes) -> Iterator[Note]:
    """Yield the notes of a file. What is no whole line of one is passed over."""
    for line in data.split(b"\n"):
        note = _note(line.decode(errors="replace").split("\t"))
        if note is not None:
            yield note


def _note(fields: list[str]) -> Note | None:
    if fields.pop() != END or len(fields) < _FIELDS:
        return None
    try:
        moment, elapsed_ms = int(fields[0]), float(fields[2])
        items = tuple(_items(fields[_FIELDS:]))
    except ValueError:
        return None
    if not (abs(moment) < MOST_MOMENT and 0 <= elapsed_ms < MOST_MOMENT):
        return None
    return Note(moment, fields[1], elapsed_ms, fields[3], fields[4], items)


def _items(fields: Iterable[str]) -> Iterator[Item]:
    for field in fields:
        id_, tier, score, reason = field.split(" ", _ITEM_FIELDS - 1)
        yield Item(id_, tier, float(score) if score else None, reason)


def _open(path: str) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        return os.open(path, flags, 0o600)


def _word(text: str) -> str:
    """Return a text without white space, as ids and names are."""
    return "".join(text.split())[:MOST_TEXT]


def _text(text: str) -> str:
    return " ".join(text.split())[:MOST_TEXT]
