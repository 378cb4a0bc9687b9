"""The store of sessions: one directory each below the git directory, shared by all worktrees.

    head.json                     what it is: host, agent, worktree, branch, parent, status
    messages.jsonl                the messages, append-only
    messages-FIRST-LAST.jsonl.gz  older messages, compressed
    checkpoints.jsonl             where the work stood every ten messages
    findings.jsonl                what was found in it

Everything is redacted before it is written, and numbers are given under the lock of
`messages.jsonl`, so that any number of processes may write to one session.
"""

from __future__ import annotations

import os
import stat

from memtool.errors import MemtoolError
from memtool.redaction.find import NOTHING, Allowlist
from memtool.sessions import head as heads
from memtool.sessions import journal, names, parts, private
from memtool.sessions import message as messages
from memtool.sessions.head import Head
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.sessions.message import Message

MESSAGES = "messages.jsonl"
CHECKPOINTS = "checkpoints.jsonl"
FINDINGS = "findings.jsonl"
MEGABYTE = 1 << 20


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
        if not names.is_name(id):
            raise _unknown(id)
        path = os.path.join(self.directory, id)
        for place in (self.directory, path):
            try:
                mode = os.lstat(place).st_mode
            except FileNotFoundError:
                raise _unknown(id) from None
            except OSError as error:
                raise private.refusal(place, "read", error) from None
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
            raise private.refusal(self.directory, "read", error) from None
        return sorted(filter(self._is_there, filter(names.is_name, found)))

    def _is_there(self, id: str) -> bool:
        return os.path.exists(os.path.join(self.directory, id, heads.NAME))

    def find(self, given: str) -> str:
        """Return the id that is meant by an id or the beginning of one.

        Raises:
            MemtoolError: no session is meant, or several.
        """
        if not names.is_name(given):
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
            return heads.read(self.folder(id))
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
            os.makedirs(self.directory, mode=private.FOLDER_MODE, exist_ok=True)
            os.mkdir(path, private.FOLDER_MODE)
        except FileExistsError:
            if os.path.lexists(path) and not os.path.exists(os.path.join(path, heads.NAME)):
                self.folder(head.id)  # a link is told; what a killed process left is taken over
            else:
                raise Exists(f"there is a session {head.id} already", code="exists") from None
        except OSError as error:
            raise private.refusal(path, "written", error) from None
        heads.write(path, head)

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
            found = messages.read(rows[0]) if rows else None
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
    for data in (*map(parts.opened, parts.parts(folder)), live):
        rows, bad = journal.parse(data)
        read = [messages.read(row) for row in rows]
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
        raise private.refusal(folder, "read", error) from None


def _unknown(id: str) -> MemtoolError:
    return MemtoolError(
        f"there is no session {id!r}",
        hint="memtool session list shows them, memtool session start begins one",
        code="no-session",
    )
