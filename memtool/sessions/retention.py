"""Retention: the disk space of sessions, and how they are pruned, deleted and repaired.

This module owns the limit of all sessions together. A deleted session goes with everything private
made from it, including the findings that forks took over. The deletion itself stays on record, so
that a capture of the transcript does not bring back older messages. Repair removes nothing: a
damaged file is set aside next to its replacement.
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
from memtool.sessions.model import Message, Session, first_line, is_id, parse_json_row, read_row
from memtool.sessions.store import (
    CHECKPOINTS,
    FINDINGS,
    HEAD,
    MEGABYTE,
    MESSAGES,
    NEARLY_FULL,
    Checkpoint,
    Sessions,
    gather,
    unknown_session_error,
    write_head,
)
from memtool.store.files import read_regular
from memtool.value import Value, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

DELETED = "deleted.jsonl"
"""The journal of deleted sessions and when, next to the sessions."""
DOOMED = ".deleted-"
"""Prefix of a directory that is being deleted; one left behind is removed later."""
ASIDE = ".damaged"
"""Suffix of a damaged file that was set aside."""
JOURNALS = (MESSAGES, CHECKPOINTS, FINDINGS)
PRUNE_TO = 0.8
"""Share of the total limit that pruning aims for."""
MAX_READ = 64 * MEGABYTE
"""Bytes of logs that are checked for damage unless a full check is requested."""


class Footprint(Value):
    """Disk use of all sessions together, including damaged ones; `size` and `limit` in bytes."""

    sessions: int
    size: int
    limit: int

    @property
    def share(self) -> float:
        """Used share of the limit; over 1 if the limit was lowered since."""
        return self.size / self.limit

    @property
    def is_nearly_full(self) -> bool:
        """Whether the sessions are close to their limit."""
        return self.share >= NEARLY_FULL

    def text(self) -> str:
        """Format the disk use for a person."""
        room = f"{self.size / MEGABYTE:,.1f} of {self.limit / MEGABYTE:,g} MB"
        return f"{format_count(self.sessions, 'session')}, {room} ({self.share:.1%})"


def measure_sizes(sessions: Sessions) -> dict[str, int]:
    """Return each session's size in bytes, by id, including damaged ones; links are ignored."""
    return {
        id_: _measure_size(os.path.join(sessions.directory, id_)) for id_ in _list_folders(sessions)
    }


def measure(sessions: Sessions) -> Footprint:
    """Return the disk use of all sessions. Raises MemtoolError if they cannot be listed."""
    size_by_session = measure_sizes(sessions)
    return Footprint(len(size_by_session), sum(size_by_session.values()), sessions.most_total)


def refuse_full(sessions: Sessions) -> None:
    """Raise MemtoolError if all sessions together have reached their limit."""
    now = measure(sessions)
    if now.size >= now.limit:
        raise MemtoolError(
            f"the sessions of this clone take {now.size / MEGABYTE:,.0f} MB, "
            f"the limit is {now.limit / MEGABYTE:,.0f} MB",
            hint="remove old messages: memtool session prune\n"
            "raise the limit: memtool config sessions.total_mb MB",
            code="sessions-full",
        )


def _list_folders(sessions: Sessions) -> list[str]:
    """Return the names of all session directories, and of links in their place."""
    with journal.explain_errors(sessions.directory, "read"):
        try:
            with os.scandir(sessions.directory) as entries:
                names = [entry.name for entry in entries if entry.is_symlink() or entry.is_dir()]
        except FileNotFoundError:
            return []
    return sorted(filter(is_id, names))


def _measure_size(path: str) -> int:
    """Return the size of a directory's files in bytes; 0 if it cannot be listed."""
    try:
        if os.path.islink(path):
            return 0
        with os.scandir(path) as entries:
            return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
    except OSError:
        return 0


class PruneReport(Value):
    """The pruned sessions, oldest first, and the bytes that were freed.

    `size` is what remains; `wrong` lists the sessions that could not be pruned, with reasons.
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
) -> PruneReport:
    """Remove the messages of the sessions that ended first, until all are well below the limit.

    With `before`, prune all that ended before that second instead; with `ids`, exactly these.
    Heads, checkpoints and findings stay.

    Raises:
        MemtoolError: the sessions cannot be listed.
    """
    _sweep(sessions, dry_run=dry_run)
    size = measure(sessions).size
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
            freed += _measure_messages(folder) if dry_run else _empty(sessions, head.id, folder)
        except MemtoolError as error:
            wrong.append(f"{head.id} is not pruned: {error.message}")
            continue
        done.append(head.id)
    return PruneReport(tuple(done), freed, size - freed, tuple(wrong))


def _measure_messages(folder: str) -> int:
    paths = [os.path.join(folder, MESSAGES), *journal.list_parts(folder)]
    return sum(os.stat(path).st_size for path in paths if os.path.exists(path))


def _empty(sessions: Sessions, id: str, folder: str) -> int:
    """Remove the messages of an ended session; return the number of bytes freed."""
    with Writer(os.path.join(folder, MESSAGES)) as writer:
        head = sessions.head(id)
        if head.status != "ended":  # it was reopened meanwhile
            return 0
        freed = _measure_messages(folder)
        write_head(folder, head.replace(status="pruned"))
        with journal.explain_errors(folder, "written"):
            for part in journal.list_parts(folder):
                os.unlink(part)
        writer.clear()
    return freed


class Deletion(Value):
    """A deleted session: the bytes that were freed, and the forks that lost findings.

    `wrong` lists the steps that failed; the session itself is gone.
    """

    id: str
    freed: int
    forks: tuple[str, ...]
    wrong: tuple[str, ...] = ()


class _DeletionRow(Value):
    """A row of the journal of deletions."""

    id: str
    moment: int


def delete(sessions: Sessions, id: str, now: int, *, dry_run: bool = False) -> Deletion:
    """Delete a session for good, with its findings, including those that forks took over.

    Raises:
        MemtoolError: the session does not exist or is a link, or the disk refuses.
    """
    folder = sessions.folder(id)
    freed = _measure_size(folder)
    forks = tuple(
        session_id
        for session_id in sessions.ids()
        if session_id != id and _holds(sessions, session_id, id)
    )
    if dry_run:
        return Deletion(id, freed, forks)
    wrong: list[str] = []
    with _noting(wrong, "a capture may bring it back"):
        row = _DeletionRow(id, now).plain()
        journal.append(os.path.join(sessions.directory, DELETED), [row])
    doomed = os.path.join(sessions.directory, DOOMED + id)
    shutil.rmtree(doomed, ignore_errors=True)
    with ExitStack() as locks:
        with suppress(MemtoolError):  # if its messages are not a journal, delete them unlocked
            locks.enter_context(Writer(os.path.join(folder, MESSAGES)))
        with journal.explain_errors(folder, "written"):
            # In one step: a process waiting to write then finds no session.
            os.rename(folder, doomed)
    for fork in forks:
        with _noting(wrong, f"{fork} keeps findings of it"):
            _forget(sessions, fork, id)
    so = "memtool session prune removes the rest"
    with _noting(wrong, so), journal.explain_errors(doomed, "written"):
        shutil.rmtree(doomed)
    return Deletion(id, freed, forks, tuple(wrong))


@contextmanager
def _noting(wrong: list[str], so: str) -> Iterator[None]:
    """Collect an error with its consequence, and continue."""
    try:
        yield
    except MemtoolError as error:
        wrong.append(f"{error.message}; {so}")


def _holds(sessions: Sessions, id: str, parent: str) -> bool:
    """Return whether a session has findings of another one."""
    try:
        rows, _torn = journal.read(sessions.path(id, FINDINGS))
    except MemtoolError:
        return False
    return any(row.get("session") == parent for row in rows)


def _forget(sessions: Sessions, id: str, parent: str) -> None:
    """Remove another session's findings from a session."""
    with Writer(sessions.path(id, FINDINGS)) as writer:
        rows, _bad = journal.parse(writer.read_whole())
        remaining = journal.write(row for row in rows if row.get("session") != parent)
        # If the disk refuses now, the findings are extracted again from the messages.
        writer.clear()
        writer.write(remaining)


def _sweep(sessions: Sessions, *, dry_run: bool) -> None:
    """Finish deletions that were interrupted."""
    if dry_run:
        return
    with suppress(OSError), os.scandir(sessions.directory) as entries:
        for entry in entries:
            if entry.name.startswith(DOOMED) and entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)


def find_deletion(sessions: Sessions, id: str) -> int:
    """Return the second at which a session was last deleted, 0 if never.

    Raises:
        MemtoolError: the journal of deletions cannot be read.
    """
    rows, _torn = journal.read(os.path.join(sessions.directory, DELETED))
    deletions = [deletion for row in rows if (deletion := read_row(_DeletionRow, row)) is not None]
    return max((deletion.moment for deletion in deletions if deletion.id == id), default=0)


def find_last_used(sessions: Sessions, id: str) -> int:
    """Return the second at which a session or one of its files last changed."""
    with suppress(MemtoolError):
        head, last = sessions.head(id), sessions.read_last(id)
        moment = max(head.started, head.ended, last.moment if last else 0)
        if moment:
            return moment
    folder = sessions.folder(id)
    with journal.explain_errors(folder, "read"), os.scandir(folder) as entries:
        return int(
            max((entry.stat(follow_symlinks=False).st_mtime for entry in entries), default=0)
        )


def find(sessions: Sessions, text: str) -> str:
    """Resolve an id or a prefix of one to a session id. A damaged session needs its full id.

    Raises:
        MemtoolError: no session matches, or several do.
    """
    return text if text in _list_folders(sessions) else sessions.find(text)


class Damage(Value):
    """The damage of a session. `is_lost` means that it cannot be used until repaired.

    `is_mendable` is false if something that is not a session is in its place.
    """

    id: str
    what: str
    is_lost: bool
    is_mendable: bool = True


def find_damages(sessions: Sessions, limit: int | None = MAX_READ) -> list[Damage]:
    """Return the damaged sessions, sorted by id.

    All heads are checked, and the newest logs up to `limit` bytes.

    Raises:
        MemtoolError: the sessions cannot be listed.
    """
    damages_by_id = {
        id_: damage
        for id_ in _list_folders(sessions)
        if (damage := _find_head_damage(sessions, id_))
    }
    whole = [
        id_ for id_, size in measure_sizes(sessions).items() if size and id_ not in damages_by_id
    ]
    for id_ in sorted(whole, key=lambda id_: (-_changed_at(sessions, id_), id_)):
        if limit is not None:
            limit -= _measure_size(os.path.join(sessions.directory, id_))
            if limit < 0:
                break
        if damage := _log_damage(sessions, id_):
            damages_by_id[id_] = damage
    return [damages_by_id[id_] for id_ in sorted(damages_by_id)]


def _changed_at(sessions: Sessions, id: str) -> float:
    try:
        return os.stat(os.path.join(sessions.directory, id)).st_mtime
    except OSError:
        return 0.0


def _find_head_damage(sessions: Sessions, id: str) -> Damage | None:
    try:
        folder = sessions.folder(id)
    except MemtoolError as error:
        return Damage(id, error.message, is_lost=False, is_mendable=False)
    try:
        head = sessions.head(id)
    except MemtoolError as error:
        if error.code == "session-damaged":
            return Damage(id, "its head is damaged", is_lost=True)
        if error.code != unknown_session_error(id).code:
            return Damage(id, error.message, is_lost=True, is_mendable=False)
        if any(os.path.lexists(os.path.join(folder, name)) for name in JOURNALS):
            return Damage(id, "its head is missing", is_lost=True)
        return None  # it is just being created
    if head.id != id:
        return Damage(id, f"its head is that of {first_line(head.id)}", is_lost=True)
    return None


def _log_damage(sessions: Sessions, id: str) -> Damage | None:
    """Return the damage in a session's journals."""
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
    """Set aside a session's damaged files and rebuild them; return the names of those files.

    Messages keep their numbers. A head is rebuilt from the messages. Facts that only the old head
    had, such as the branch, remain in the file that was set aside.

    Raises:
        MemtoolError: a file cannot be read, or the disk refuses.
    """
    folder = sessions.folder(id)
    done: list[str] = []
    with Writer(os.path.join(folder, MESSAGES)) as writer:
        _remove_damaged(writer, done)
        for name in (CHECKPOINTS, FINDINGS):
            path = os.path.join(folder, name)
            if os.path.lexists(path):
                with Writer(path) as other:
                    _remove_damaged(other, done)
        damage = _find_head_damage(sessions, id)
        if damage is not None:
            messages, _torn = gather(folder, writer.read_whole())
            if os.path.lexists(os.path.join(folder, HEAD)):
                _set_aside(os.path.join(folder, HEAD))
            write_head(folder, _rebuild(sessions, id, messages, now))
            done.append(HEAD)
    return done


def _set_aside(path: str) -> None:
    with journal.explain_errors(path, "read"):
        data = read_regular(path)
    journal.write_file(path + ASIDE, data)


def _remove_damaged(writer: Writer, done: list[str]) -> None:
    """Remove the damaged lines of a journal, after setting aside a full copy."""
    data = writer.read_whole()
    _rows, bad = journal.parse(data)
    if not bad:
        if writer.torn:  # opening it has already set half a line aside
            done.append(os.path.basename(writer.path))
        return
    journal.write_file(writer.path + ASIDE, data)
    intact = b"".join(
        row for row in data.splitlines(keepends=True) if parse_json_row(row) is not None
    )
    writer.clear()
    writer.write(intact)
    done.append(os.path.basename(writer.path))


def _rebuild(sessions: Sessions, id: str, messages: Sequence[Message], now: int) -> Session:
    """Rebuild a head from a session's journals.

    The session is open if it was used within a day. If it has findings or checkpoints but no
    messages, it was pruned.
    """
    made = findings.read_learned(sessions, id).findings
    rows, _torn = journal.read(sessions.path(id, CHECKPOINTS))
    marks = [mark for row in rows if (mark := read_row(Checkpoint, row)) is not None]
    moments = [message.moment for message in messages if message.moment]
    moments += [mark.moment for mark in marks if mark.moment]
    agents = Counter(message.agent for message in messages if message.agent).most_common(1)
    agent = agents[0][0] if agents else ""
    parents = {finding.session for finding in made} - {id}
    parent = parents.pop() if len(parents) == 1 else ""
    last = max(moments, default=now)
    is_open = bool(messages) and now - last < DAY_S
    status = "open" if is_open else "ended" if messages or not (made or marks) else "pruned"
    titles = [finding.title for finding in made]
    first_prompt = next((message.text for message in messages if message.role == "user"), "")
    return Session(
        id=id,
        started=min(moments, default=last),
        host=agent if agent in BLOCK_FORMATS else "",
        agent=agent,
        title=first_line(first_prompt),
        parent=parent,
        parent_messages=max(
            (n for finding in made if finding.session == parent for n in finding.messages),
            default=0,
        ),
        status=status,
        ended=0 if is_open else last,
        summary="" if is_open else summarise(messages, titles),
    )
