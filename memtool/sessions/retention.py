"""Retention: what is stored of sessions, how much room it takes, and how it goes.

It owns the limit of all sessions together, pruning, deletion, and the repair of damaged ones. A
deleted session goes with everything that was made of it in private, also with what forks took over;
that it was deleted is kept, so that a capture of its transcript does not bring back what was said
before. Repair removes nothing: a damaged file is set aside next to the one that takes its place.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress

from memtool.agents import BLOCK_FORMATS
from memtool.errors import MemtoolError
from memtool.memory.timestamps import DAY_S
from memtool.sessions import findings, journal
from memtool.sessions.journal import Writer
from memtool.sessions.lifecycle import summarise
from memtool.sessions.model import Head, Message, is_id, json_row, line, read_row
from memtool.sessions.store import (
    CHECKPOINTS,
    FINDINGS,
    HEAD,
    MEGABYTE,
    MESSAGES,
    NEARLY_FULL,
    Checkpoint,
    Sessions,
    gathered,
    unknown,
    write_head,
)
from memtool.store.files import read_regular
from memtool.value import Value, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

DELETED = "deleted.jsonl"
"""Next to the sessions: which ones were deleted, and when."""
DOOMED = ".deleted-"
"""Begins the name of a session that is being removed; one that was left is removed later."""
ASIDE = ".damaged"
"""Ends the name of a file that was set aside."""
JOURNALS = (MESSAGES, CHECKPOINTS, FINDINGS)
PRUNE_TO = 0.8
"""Share of the total limit that pruning goes down to."""
MOST_READ = 64 * MEGABYTE
"""Of logs that are read through for damage where nobody asked for all of them."""


class Footprint(Value):
    """What all sessions take together, damaged ones too; `size` and `limit` in bytes."""

    sessions: int
    size: int
    limit: int

    @property
    def share(self) -> float:
        """The part of the limit that is used; over 1 where it was lowered since."""
        return self.size / self.limit

    @property
    def is_nearly_full(self) -> bool:
        """Whether there will soon be no room for another session."""
        return self.share >= NEARLY_FULL

    def text(self) -> str:
        """Return it as a person reads it."""
        room = f"{self.size / MEGABYTE:,.1f} of {self.limit / MEGABYTE:,g} MB"
        return f"{plural(self.sessions, 'session')}, {room} ({self.share:.1%})"


def sizes(sessions: Sessions) -> dict[str, int]:
    """Return the bytes of each session by its id, damaged ones too; links are not followed."""
    return {id_: _size(os.path.join(sessions.directory, id_)) for id_ in _folders(sessions)}


def stored(sessions: Sessions) -> Footprint:
    """Return what all sessions take together. Raises MemtoolError where they cannot be listed."""
    found = sizes(sessions)
    return Footprint(len(found), sum(found.values()), sessions.most_total)


def refuse_full(sessions: Sessions) -> None:
    """Raise MemtoolError where all sessions together have reached their limit."""
    now = stored(sessions)
    if now.size >= now.limit:
        raise MemtoolError(
            f"the sessions of this clone take {now.size / MEGABYTE:,.0f} MB, "
            f"{now.limit / MEGABYTE:,.0f} are allowed",
            hint="memtool session prune removes the messages of the oldest, or raise "
            "sessions.total_mb",
            code="sessions-full",
        )


def _folders(sessions: Sessions) -> list[str]:
    """Return the names of everything in the place of a session: directories, and links."""
    with journal.refused(sessions.directory, "read"):
        try:
            with os.scandir(sessions.directory) as entries:
                found = [one.name for one in entries if one.is_symlink() or one.is_dir()]
        except FileNotFoundError:
            return []
    return sorted(filter(is_id, found))


def _size(path: str) -> int:
    """Return the bytes of the files in a directory; 0 where it cannot be listed."""
    try:
        if os.path.islink(path):
            return 0
        with os.scandir(path) as entries:
            return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
    except OSError:
        return 0


class Pruned(Value):
    """Sessions whose messages were removed, the oldest first, and the bytes that it freed.

    `size` is what all of them take now; `wrong` says which could not be pruned, and why.
    """

    ids: tuple[str, ...]
    freed: int
    size: int
    wrong: tuple[str, ...] = ()


def prune(
    sessions: Sessions,
    *,
    before: int | None = None,
    ids: Collection[str] | None = None,
    dry_run: bool = False,
) -> Pruned:
    """Remove the messages of the sessions that ended first, until all are well below the limit.

    With `before` it is all that ended before that moment instead, with `ids` these. Heads,
    checkpoints and findings stay.

    Raises:
        MemtoolError: the sessions cannot be listed.
    """
    _sweep(sessions, dry_run=dry_run)
    size = stored(sessions).size
    done: list[str] = []
    wrong: list[str] = []
    freed = 0
    for head in sorted(sessions.heads()[0], key=lambda head: (head.ended, head.id)):
        if head.status != "ended" or (ids is not None and head.id not in ids):
            continue
        if before is not None:
            if head.ended >= before:
                break
        elif ids is None and size - freed <= PRUNE_TO * sessions.most_total:
            break
        try:
            folder = sessions.folder(head.id)
            freed += _messages_size(folder) if dry_run else _emptied(sessions, head.id, folder)
        except MemtoolError as error:
            wrong.append(f"{head.id} is not pruned: {error.message}")
            continue
        done.append(head.id)
    return Pruned(tuple(done), freed, size - freed, tuple(wrong))


def _messages_size(folder: str) -> int:
    paths = [os.path.join(folder, MESSAGES), *journal.parts(folder)]
    return sum(os.stat(path).st_size for path in paths if os.path.exists(path))


def _emptied(sessions: Sessions, id: str, folder: str) -> int:
    """Remove the messages of a session that has ended; return how many bytes they had."""
    with Writer(os.path.join(folder, MESSAGES)) as writer:
        head = sessions.head(id)
        if head.status != "ended":  # somebody opened it again meanwhile
            return 0
        freed = _messages_size(folder)
        write_head(folder, head.replace(status="pruned"))
        with journal.refused(folder, "written"):
            for part in journal.parts(folder):
                os.unlink(part)
        writer.clear()
    return freed


class Deletion(Value):
    """A session that was deleted: the bytes that it freed, and the forks that lost findings.

    `wrong` says what could not be done; the session itself is gone.
    """

    id: str
    freed: int
    forks: tuple[str, ...]
    wrong: tuple[str, ...] = ()


class _Deleted(Value):
    """A row of the journal of deletions."""

    id: str
    moment: int


def delete(sessions: Sessions, id: str, now: int, *, dry_run: bool = False) -> Deletion:
    """Delete a session for good, with its findings and those that forks of it took over.

    Raises:
        MemtoolError: there is none of that id, a link is in its place, or the disk refuses.
    """
    folder = sessions.folder(id)
    freed = _size(folder)
    forks = tuple(one for one in sessions.ids() if one != id and _holds(sessions, one, id))
    if dry_run:
        return Deletion(id, freed, forks)
    wrong: list[str] = []
    with _noting(wrong, "a capture may bring it back"):
        row = _Deleted(id, now).plain()
        journal.append(os.path.join(sessions.directory, DELETED), [row])
    doomed = os.path.join(sessions.directory, DOOMED + id)
    shutil.rmtree(doomed, ignore_errors=True)
    with ExitStack() as held:
        with suppress(MemtoolError):  # something else in the place of its messages goes as well
            held.enter_context(Writer(os.path.join(folder, MESSAGES)))
        with journal.refused(folder, "written"):
            os.rename(folder, doomed)  # in one step: who waits to write to it finds no session
    for fork in forks:
        with _noting(wrong, f"{fork} keeps findings of it"):
            _forget(sessions, fork, id)
    so = "memtool session prune removes the rest"
    with _noting(wrong, so), journal.refused(doomed, "written"):
        shutil.rmtree(doomed)
    return Deletion(id, freed, forks, tuple(wrong))


@contextmanager
def _noting(wrong: list[str], so: str) -> Iterator[None]:
    """Go on after a refusal, and collect it with what follows from it."""
    try:
        yield
    except MemtoolError as error:
        wrong.append(f"{error.message}; {so}")


def _holds(sessions: Sessions, id: str, parent: str) -> bool:
    """Tell whether a session holds findings of another one."""
    try:
        rows, _torn = journal.read(sessions.path(id, FINDINGS))
    except MemtoolError:
        return False
    return any(row.get("session") == parent for row in rows)


def _forget(sessions: Sessions, id: str, parent: str) -> None:
    """Take what another session found out of the findings of a session."""
    with Writer(sessions.path(id, FINDINGS)) as writer:
        rows, _bad = journal.parse(writer.whole())
        kept = journal.write(row for row in rows if row.get("session") != parent)
        # What is lost where the disk refuses now is found again in the messages.
        writer.clear()
        writer.write(kept)


def _sweep(sessions: Sessions, *, dry_run: bool) -> None:
    """Remove what a deletion that was cut off has left."""
    if dry_run:
        return
    with suppress(OSError), os.scandir(sessions.directory) as entries:
        for entry in entries:
            if entry.name.startswith(DOOMED) and entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)


def deleted_at(sessions: Sessions, id: str) -> int:
    """Return the second at which a session was deleted last, 0 if it never was.

    Raises:
        MemtoolError: the journal of deletions cannot be read.
    """
    rows, _torn = journal.read(os.path.join(sessions.directory, DELETED))
    found = [one for row in rows if (one := read_row(_Deleted, row)) is not None]
    return max((one.moment for one in found if one.id == id), default=0)


def last_used(sessions: Sessions, id: str) -> int:
    """Return the second at which something was last added to a session, or to its files."""
    with suppress(MemtoolError):
        head, last = sessions.head(id), sessions.last(id)
        moment = max(head.started, head.ended, last.moment if last else 0)
        if moment:
            return moment
    folder = sessions.folder(id)
    with journal.refused(folder, "read"), os.scandir(folder) as entries:
        return int(max((one.stat(follow_symlinks=False).st_mtime for one in entries), default=0))


def find(sessions: Sessions, given: str) -> str:
    """Return the id that is meant, of a damaged session only its whole id.

    Raises:
        MemtoolError: no session is meant, or several.
    """
    return given if given in _folders(sessions) else sessions.find(given)


class Damage(Value):
    """What is wrong with a session. `is_lost` says that it cannot be used until it is repaired.

    `is_mendable` false: something is in its place that is no session, and stays.
    """

    id: str
    what: str
    is_lost: bool
    is_mendable: bool = True


def damages(sessions: Sessions, most: int | None = MOST_READ) -> list[Damage]:
    """Return the damaged sessions by id: all heads, and the newest logs of so many bytes.

    Raises:
        MemtoolError: the sessions cannot be listed.
    """
    found = {id_: one for id_ in _folders(sessions) if (one := _head_damage(sessions, id_))}
    whole = [id_ for id_, size in sizes(sessions).items() if size and id_ not in found]
    for id_ in sorted(whole, key=lambda id_: (-_changed(sessions, id_), id_)):
        if most is not None:
            most -= _size(os.path.join(sessions.directory, id_))
            if most < 0:
                break
        if one := _log_damage(sessions, id_):
            found[id_] = one
    return [found[id_] for id_ in sorted(found)]


def _changed(sessions: Sessions, id: str) -> float:
    try:
        return os.stat(os.path.join(sessions.directory, id)).st_mtime
    except OSError:
        return 0.0


def _head_damage(sessions: Sessions, id: str) -> Damage | None:
    try:
        folder = sessions.folder(id)
    except MemtoolError as error:
        return Damage(id, error.message, is_lost=False, is_mendable=False)
    try:
        head = sessions.head(id)
    except MemtoolError as error:
        if error.code == "session-damaged":
            return Damage(id, "its head is damaged", is_lost=True)
        if error.code != unknown(id).code:
            return Damage(id, error.message, is_lost=True, is_mendable=False)
        if any(os.path.lexists(os.path.join(folder, name)) for name in JOURNALS):
            return Damage(id, "its head is missing", is_lost=True)
        return None  # it is just being begun
    if head.id != id:
        return Damage(id, f"its head is that of {line(head.id)}", is_lost=True)
    return None


def _log_damage(sessions: Sessions, id: str) -> Damage | None:
    """Return what is wrong with the journals of a session."""
    try:
        folder = sessions.folder(id)
        torn = {name: journal.read(os.path.join(folder, name))[1] for name in JOURNALS}
    except MemtoolError as error:
        return Damage(id, error.message, is_lost=True, is_mendable=False)
    wrong = [
        f"{count} line of {name} is damaged"
        if count == 1
        else f"{count} lines of {name} are damaged"
        for name, count in torn.items()
        if count
    ]
    return Damage(id, "; ".join(wrong), is_lost=False) if wrong else None


def repair(sessions: Sessions, id: str, now: int) -> list[str]:
    """Set the damaged files of a session aside and rebuild them; return what was done.

    Messages keep their numbers. A head is rebuilt from the messages: what it alone knew, such as
    the branch, is in the file that was set aside.

    Raises:
        MemtoolError: something is there that cannot be read, or the disk refuses.
    """
    folder = sessions.folder(id)
    done: list[str] = []
    with Writer(os.path.join(folder, MESSAGES)) as writer:
        _mend(writer, done)
        for name in (CHECKPOINTS, FINDINGS):
            path = os.path.join(folder, name)
            if os.path.lexists(path):
                with Writer(path) as other:
                    _mend(other, done)
        damage = _head_damage(sessions, id)
        if damage is not None:
            known, _torn = gathered(folder, writer.whole())
            if os.path.lexists(os.path.join(folder, HEAD)):
                _set_aside(os.path.join(folder, HEAD))
            write_head(folder, _rebuilt(sessions, id, known, now))
            done.append(HEAD)
    return done


def _set_aside(path: str) -> None:
    with journal.refused(path, "read"):
        data = read_regular(path)
    journal.put(path + ASIDE, data)


def _mend(writer: Writer, done: list[str]) -> None:
    """Take the damaged lines out of a journal, of which a whole copy is set aside first."""
    data = writer.whole()
    _rows, bad = journal.parse(data)
    if not bad:
        if writer.torn:  # opening it for writing has set half a line aside
            done.append(os.path.basename(writer.path))
        return
    journal.put(writer.path + ASIDE, data)
    kept = b"".join(row for row in data.splitlines(keepends=True) if json_row(row) is not None)
    writer.clear()
    writer.write(kept)
    done.append(os.path.basename(writer.path))


def _rebuilt(sessions: Sessions, id: str, known: Sequence[Message], now: int) -> Head:
    """Return the head that the log of a session gives.

    It is open where it was used within a day; without messages, what else is there says that
    they were pruned.
    """
    made = findings.known(sessions, id).findings
    rows, _torn = journal.read(sessions.path(id, CHECKPOINTS))
    marks = [one for row in rows if (one := read_row(Checkpoint, row)) is not None]
    moments = [one.moment for one in known if one.moment]
    moments += [one.moment for one in marks if one.moment]
    agents = Counter(one.agent for one in known if one.agent).most_common(1)
    agent = agents[0][0] if agents else ""
    parents = {one.session for one in made} - {id}
    parent = parents.pop() if len(parents) == 1 else ""
    last = max(moments, default=now)
    is_open = bool(known) and now - last < DAY_S
    status = "open" if is_open else "ended" if known or not (made or marks) else "pruned"
    titles = [one.title for one in made]
    asked = next((one.text for one in known if one.role == "user"), "")
    return Head(
        id=id,
        started=min(moments, default=last),
        host=agent if agent in BLOCK_FORMATS else "",
        agent=agent,
        title=line(asked),
        parent=parent,
        parent_messages=max(
            (n for one in made if one.session == parent for n in one.messages), default=0
        ),
        status=status,
        ended=0 if is_open else last,
        summary="" if is_open else summarise(known, titles),
    )
