"""Derived data in SQLite: rows with checksums, one snapshot for a reader, one writer at a time.

This module owns the files, the connections and the locks; what the rows mean is up to the caller.
A folder holds the databases of one schema. A small pointer file names the current one, and a
database that is built anew gets a new name: SQLite must never find the write-ahead log of an old
file next to a new one. Nothing here is migrated: another format, other settings or another version
of a table have a pointer of their own.

Derived data costs time, never the answer. A damaged row raises `CorruptCache`. If a file cannot be
written, because of a lock, a full disk or missing permission, the file stays and the caller goes
on without it. `docs/state.md` describes the schema, the locks and what damage is found.
"""

from __future__ import annotations

import os
import sys
import time
from marshal import dumps
from zlib import crc32

from memtool.store import cache, files
from memtool.store.cache import CorruptCache
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from sqlite3 import Connection
    from typing import Any, Self

    Cell = str | bytes | int | float | None
    Row = tuple[Cell, ...]

_POINTER_KIND = "state 2"
_SUFFIXES = ("", "-wal", "-shm", "-journal")
"""The database itself, and the files that SQLite puts next to it."""
_BUSY_MS = 2_000
"""A backstop: writers wait for the kernel lock, which is fair; SQLite's own waiting is not."""
_POLL_S = 0.005
_UNFINISHED_S = 60
"""Age at which a database without a pointer goes. A reader may just have read the pointer."""
_UNUSED_S = 14 * 86_400
_TOUCH_S = 600
LOCKED = "locked by another process"
"""How the reason ends where only the time was too short to wait for another writer."""
_AT_ONCE = 500
"""Keys that one statement names; SQLite takes 999 at least."""
_MARSHAL_FORMAT = 2
"""Writes type, length and value, and no references: equal rows give equal bytes."""
_connection_types: list[Any] = []
"""The class of all connections, once one was made: `sqlite3` is imported no sooner."""
_shared: dict[tuple[str, str, int], State] = {}
"""What `State.shared` has opened in this process, by folder, key and thread."""


class Unavailable(Exception):  # a state of the place, not a fault of the program
    """The database cannot be used now: locked, no space, no permission. It is not damaged."""


class Table(Value):
    """A table: its columns in SQL, of which the first `key_columns` identify a row.

    `is_wide` says that rows may be large: SQLite keeps them out of the tree that it searches.
    `indexes` are columns to find rows by, in SQL, perhaps with a condition.
    """

    name: str
    columns: str
    key_columns: int
    is_wide: bool = False
    indexes: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the columns, without `sum`."""
        return [column.split()[0] for column in self.columns.split(", ")]

    @property
    def sql(self) -> tuple[str, ...]:
        """The statements that create the table and its indexes."""
        key = ", ".join(self.names[: self.key_columns])
        columns = f"{self.columns}, sum INT, PRIMARY KEY ({key})"
        table = f"CREATE TABLE {self.name} ({columns})" + ("" if self.is_wide else " WITHOUT ROWID")
        found = [table]
        for index in self.indexes:
            columns, where, condition = index.partition(" WHERE ")
            name = f"{self.name}_{columns.partition(',')[0]}"
            found.append(f"CREATE INDEX {name} ON {self.name}({columns}){where}{condition}")
        return tuple(found)


class Schema(Value):
    """The tables of a database; `format` counts changes of what the rows mean."""

    format: int
    tables: tuple[Table, ...]

    @property
    def names(self) -> dict[str, list[str]]:
        """The names of the columns of each table."""
        return {table.name: table.names for table in self.tables}


class Rows:
    """The rows of a database inside a transaction. Cells are str, bytes, int, float or None.

    A bool is no cell, nor is a str with surrogates: paths are bytes (`os.fsencode`). Every method
    raises CorruptCache if the database is damaged, and Unavailable if it cannot be used.
    """

    def __init__(self, connection: Connection, names: dict[str, list[str]], salt: int) -> None:
        """Take an open connection and the columns by table.

        `salt` makes the checksums those of this file.
        """
        self._connection = connection
        self._names = names
        self._salt = salt

    def one(self, table: str, *key: Cell) -> Row | None:
        """Return the row of a key without its checksum, None if there is none."""
        return next(self.some(table, self._where(table, key), *key), None)

    def some(self, table: str, where: str, *values: Cell) -> Iterator[Row]:
        """Return the rows that a condition in SQL holds for, as they are read."""
        names = ", ".join(self._names[table])
        with _Translated():
            statement = f"SELECT {names}, sum FROM {table} WHERE {where}"  # noqa: S608  # no values
            for whole in self._connection.execute(statement, values):
                row = whole[:-1]
                if _sum(table, row, self._salt) != whole[-1]:
                    raise CorruptCache(f"a row of the table {table} is damaged")
                yield row

    def many(self, table: str, prefix: Row, keys: Iterable[Cell]) -> Iterator[Row]:
        """Return the rows whose keys begin with some cells, followed by one of `keys`."""
        wanted = list(keys)
        where = self._where(table, prefix)
        column = self._names[table][len(prefix)]
        for at in range(0, len(wanted), _AT_ONCE):
            some = wanted[at : at + _AT_ONCE]
            marks = ",".join("?" * len(some))
            yield from self.some(table, f"{where} AND {column} IN ({marks})", *prefix, *some)

    def select(self, statement: str, *values: Cell) -> Iterator[Row]:
        """Return what a SELECT gives, as it is read, such as the keys of the rows that fit.

        No checksum guards it: whoever needs that reads the rows by `one` or `some`.
        """
        with _Translated():
            yield from self._connection.execute(statement, values)

    def put(self, table: str, *row: Cell) -> None:
        """Write a row over the one that has its key."""
        self.put_all(table, (row,))

    def put_all(self, table: str, rows: Iterable[Row]) -> None:
        """Write rows, each over the one that has its key."""
        marks = ", ".join("?" * (len(self._names[table]) + 1))
        with _Translated():
            self._connection.executemany(
                f"INSERT OR REPLACE INTO {table} VALUES ({marks})",  # noqa: S608  # no values
                ((*row, _sum(table, row, self._salt)) for row in rows),
            )

    def remove(self, table: str, *key: Cell) -> None:
        """Remove the rows whose keys begin with these cells."""
        with _Translated():
            where = self._where(table, key)
            self._connection.execute(f"DELETE FROM {table} WHERE {where}", key)  # noqa: S608

    def _where(self, table: str, key: Row) -> str:
        names = self._names[table][: len(key)]
        return " AND ".join(f"{name} = ?" for name in names) or "1"


def _sum(table: str, row: Row, salt: int) -> int:
    return crc32(dumps((table, *row), _MARSHAL_FORMAT), salt)


class Snapshot(Rows):
    """The rows as they are when a `with` begins, until it ends, whatever others write.

    Inside another `with` of the same connection it is the same snapshot.
    """

    _is_inner = False

    def __init__(
        self, owner: State, connection: Connection, names: dict[str, list[str]], salt: int
    ) -> None:
        """Take an open connection, which lives as long as its owner."""
        super().__init__(connection, names, salt)
        self._owner = owner

    def __enter__(self) -> Self:
        """Begin the transaction; SQLite takes the snapshot at the first read."""
        self._is_inner = self._connection.in_transaction
        if self._is_inner:
            return self
        with _Translated():
            self._connection.execute("BEGIN")
            self._connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        return self

    def __exit__(self, *_error: object) -> None:
        """End the transaction, which wrote nothing."""
        is_over = not self._connection.in_transaction  # SQLite ends it after some errors
        if not (self._is_inner or is_over):
            with _Translated():
                self._connection.execute("ROLLBACK")


class State:
    """A database of derived data. It belongs to the process that opened it, and to no fork of it.

    `note` says why it is in memory only, and is empty otherwise. Checksums begin with `salt`.
    """

    def __init__(
        self,
        connection: Connection,
        schema: Schema,
        pointer: str = "",
        path: str = "",
        *,
        salt: int | None = None,
    ) -> None:
        """Take an open connection; without a path it is to a database in memory.

        `salt` is that of the file that the rows were copied from.
        """
        self.path = path
        self.note = ""
        self.is_fixed = False
        """Whether it does not see what others write, since its place is read-only."""
        self._connection = connection
        self._schema = schema
        self._names = schema.names
        self._pointer = pointer
        self.salt = _salt(path) if salt is None else salt
        self._inode = os.stat(path).st_ino if path else 0
        self._seen = (0, 0)
        """Inode and time of the pointer when it was last read."""
        self._process = os.getpid()

    @classmethod
    def shared(cls, place: str, schema: Schema, *, key: str = "") -> State | None:
        """Return what `open` returns, opened once for all readers of a thread.

        Only `close_shared` closes it; so it is when another database has become the current one.

        Raises:
            CorruptCache: as `open` does.
        """
        own = place, key, thread_number()
        state = _shared.get(own)
        if state is not None:
            if state.is_reading or state.is_current():
                return state
            _shared.pop(own).close()
        found = cls.open(place, schema, key=key)
        if found is not None and not found.is_fixed:
            _shared[own] = found
        return found

    @classmethod
    def open(cls, place: str, schema: Schema, *, key: str = "") -> Self | None:
        """Return the current database of a folder, None if there is none; never create one.

        Of another schema or `key` there is none. A place that is read-only is read all the same
        if no write-ahead log is left there, since SQLite would have to write to read that.

        Raises:
            CorruptCache: it is not the database that the pointer names, or is damaged.
        """
        pointer = _pointer(place, schema, key)
        name = _current(pointer)
        if not name:
            return None
        return cls._at(pointer, os.path.join(place, name), schema)

    @classmethod
    def _at(cls, pointer: str, path: str, schema: Schema) -> Self | None:
        """Return the database at a path, None if it is gone or cannot be opened."""
        try:
            for mode in ("mode=rw", "mode=ro&immutable=1"):
                try:
                    connection = _connect(path, mode)
                except Unavailable:
                    continue
                state = cls(connection, schema, pointer, path)
                state.is_fixed = "immutable" in mode
                if time.time() - os.stat(pointer).st_mtime > _TOUCH_S:
                    cache.touch(pointer)
                return state
        except OSError:  # swept or dropped meanwhile
            return None
        return None

    @classmethod
    def last_used(cls, place: str, schema: Schema, *, key: str = "") -> float:
        """Return about when a database was last opened, in seconds since 1970; 0 without one."""
        try:
            return os.stat(_pointer(place, schema, key)).st_mtime
        except OSError:
            return 0.0

    @classmethod
    def rebuilt(
        cls,
        place: str,
        schema: Schema,
        fill: Callable[[Rows], None],
        *,
        key: str = "",
        instead_of: Self | None = None,
        copy_of: Self | None = None,
        wait_s: float | None = None,
        most: int = 0,
    ) -> Self:
        """Build a database under a new name and point to it; in memory if that is impossible.

        Args:
            fill: writes the rows. It may run twice, the second time for the database in memory.
            instead_of: what turned out to be unfit, None if `open` returned None. If another
                process has built a newer one meanwhile, that one is returned and `fill` never runs.
            copy_of: what the new database begins with, in place of empty tables.
            wait_s: seconds to wait for another builder or writer, None for as long as it takes.
            most: how many databases of the folder stay, those last used; 0 for all.
        """
        pointer = _pointer(place, schema, key)
        seen = os.path.basename(instead_of.path) if instead_of else ""
        try:
            with _Lock(place, wait_s):
                state = None if _current(pointer) == seen else cls._opened(place, schema, key)
                if state is None:
                    _build(pointer, schema, fill, copy_of)
                    _sweep(place, most)
                    state = cls._opened(place, schema, key)
            note = "" if state else f"{place}: what was built is gone again"
        except Unavailable as error:
            state, note = None, str(error)
        if state is not None:
            return state
        if copy_of is None:
            return cls.in_memory(schema, fill, note)
        state = copy_of.copied()
        state.note = note
        state.write(fill)
        return state

    @classmethod
    def _opened(cls, place: str, schema: Schema, key: str) -> Self | None:
        try:
            return cls.open(place, schema, key=key)
        except CorruptCache:
            return None

    @classmethod
    def in_memory(cls, schema: Schema, fill: Callable[[Rows], None], note: str = "") -> Self:
        """Return a database that ends with the process."""
        state = cls(own_connection(":memory:"), schema)
        state.note = note
        for statement in _statements(schema):
            state._connection.execute(statement)
        state.write(fill)
        return state

    def copied(self) -> Self:
        """Return a copy that ends with the process, and may be changed where this one may not."""
        connection = own_connection(":memory:")
        self.copy_to(connection)
        return type(self)(connection, self._schema, salt=self.salt)

    def copy_to(self, connection: Connection) -> None:
        """Copy the database over the one of a connection."""
        self._check_process()
        with _Translated():
            self._connection.backup(connection)

    def read(self) -> Snapshot:
        """Return the rows, for a `with`: all of one answer is read from one snapshot."""
        self._check_process()
        return Snapshot(self, self._connection, self._names, self.salt)

    def write(self, change: Callable[[Rows], None], *, wait_s: float = 0.0) -> str:
        """Change rows in one transaction; return why that was impossible, or nothing.

        `change` reads under the lock what it depends on, since another process may have done the
        work. What it raises undoes everything. A cache that cannot be written loses nothing.

        Raises:
            CorruptCache: the database is damaged.
        """
        self._check_process()
        if not self.path:
            self._change(self._connection, change, "SAVEPOINT change", "RELEASE change")
            return ""
        try:
            with _Lock(os.path.dirname(self.path), wait_s):
                if not self.is_current():
                    return f"{self.path}: another process has built a newer one"
                # A connection of its own: that of the readers may be in the middle of a snapshot.
                connection = _connect(self.path, "mode=rw")
                try:
                    self._change(connection, change, "BEGIN IMMEDIATE", "COMMIT")
                finally:
                    connection.close()
        except Unavailable as error:
            return str(error)
        return ""

    def _change(
        self, connection: Connection, change: Callable[[Rows], None], begin: str, end: str
    ) -> None:
        with _Translated():
            connection.execute(begin)
        try:
            change(Rows(connection, self._names, self.salt))
            with _Translated():
                connection.execute(end)
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK" if self.path else "ROLLBACK TO change")
                if not self.path:
                    connection.execute("RELEASE change")
            raise

    @property
    def is_reading(self) -> bool:
        """Whether a snapshot is being read."""
        return self._connection.in_transaction

    def is_current(self) -> bool:
        """Return whether the folder still has this database as its current one."""
        try:
            is_same = os.stat(self.path).st_ino == self._inode
            pointer = os.stat(self._pointer)
        except OSError:
            return not self.path
        seen = pointer.st_ino, pointer.st_mtime_ns
        if is_same and seen != self._seen:
            is_same = _current(self._pointer) == os.path.basename(self.path)
            self._seen = seen if is_same else (0, 0)
        return is_same

    @classmethod
    def damages(cls, place: str) -> list[str]:
        """Return the files of a folder that are not what was written, or cannot be read."""
        if not os.path.isdir(place):
            return [place] if os.path.lexists(place) else []
        found = []
        for name in sorted(os.listdir(place)):
            if ".db" in name:
                continue
            pointer = os.path.join(place, name)
            current = _current(pointer)
            found += cache.damages(pointer)
            path = os.path.join(place, current)
            if current and not cls._is_whole(pointer, path):
                found.append(path)
        return found

    @classmethod
    def _is_whole(cls, pointer: str, path: str) -> bool:
        try:
            state = cls._at(pointer, path, Schema(0, ()))  # whatever its tables are
        except CorruptCache:
            return False
        if state is None:
            return False
        try:
            return not state.damage()
        finally:
            state.close()

    def damage(self) -> str:
        """Return what is wrong with the database, or nothing; all of it is read."""
        ask = self._connection.execute
        try:
            with self.read(), _Translated():
                (verdict,) = ask("PRAGMA integrity_check(1)").fetchone()
                if verdict != "ok":
                    return str(verdict)
                (page_bytes,) = ask("PRAGMA page_size").fetchone()
                if self.path and os.stat(self.path).st_size % page_bytes:
                    return "the file is cut off, or longer than it was"
                tables = ask("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
                for (table,) in tables:
                    for *row, checksum in ask(f"SELECT * FROM {table}"):  # noqa: S608  # no values
                        if _sum(table, tuple(row), self.salt) != checksum:
                            return f"a row of the table {table} is damaged"
        except CorruptCache as error:
            return str(error)
        return ""

    def drop(self) -> None:
        """Make the folder forget this database, which is damaged. Other readers keep theirs."""
        if self.path and _current(self._pointer) == os.path.basename(self.path):
            cache.drop(self._pointer)
        self.close()

    def close(self) -> None:
        """Close the connection; the last one of all processes folds the write-ahead log in."""
        self._check_process()
        self._connection.close()

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise RuntimeError("a database of derived data was opened before a fork")


class _Translated:
    """Raise errors of SQLite and of the system as CorruptCache or Unavailable."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            return
        import sqlite3

        if isinstance(error, OSError):
            raise Unavailable(f"{error.filename}: {files.reason(error)}") from None
        if isinstance(error, UnicodeDecodeError):  # the message quotes a damaged schema
            raise CorruptCache("the schema is damaged") from None
        if not isinstance(error, sqlite3.DatabaseError) or isinstance(
            error, sqlite3.ProgrammingError
        ):
            return
        if is_unavailable(error):
            raise Unavailable(str(error)) from None
        raise CorruptCache(str(error)) from None


def is_unavailable(error: Exception) -> bool:
    """Tell whether an error of SQLite says nothing against the file: locked, full, forbidden."""
    import sqlite3

    # Text that is not UTF-8 has no code: it was found by Python, and is damage.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    return code in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
    )


class _Lock:
    """Hold the kernel's lock on a folder during a `with`, making the folder if it is absent."""

    def __init__(self, place: str, wait_s: float | None) -> None:
        self._place = place
        self._wait_s = wait_s
        self._handle = -1

    def __enter__(self) -> None:
        with _Translated():
            os.makedirs(self._place, mode=0o700, exist_ok=True)
            self._handle = files.open_folder(self._place)
        try:
            if not self._is_taken():
                self._wait()
        except BaseException:
            self.__exit__()
            raise

    def _wait(self) -> None:
        began = time.monotonic()
        while self._wait_s is None or time.monotonic() - began < self._wait_s:
            time.sleep(_POLL_S)
            if self._is_taken():
                files.note_wait(time.monotonic() - began)
                return
        raise Unavailable(f"{self._place}: {LOCKED}")

    def _is_taken(self) -> bool:
        with _Translated():
            try:
                files.lock(self._handle, waits=False)
            except BlockingIOError:
                return False
        return True

    def __exit__(self, *_error: object) -> None:
        os.close(self._handle)


def thread_number() -> int:
    """Return the number of the thread: a connection is in one transaction at a time."""
    threading = sys.modules.get("threading")  # else nobody has started a thread
    return 0 if threading is None else threading.get_ident()


def close_shared() -> None:
    """Close what is open for all readers, as each process should that ends or forks.

    The last one to do so leaves no write-ahead log behind, so that the place may be read-only.
    """
    while _shared:
        _shared.popitem()[1].close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=close_shared)


def _pointer(place: str, schema: Schema, key: str) -> str:
    """Return the path of the pointer, which is named by all that the rows depend on."""
    return os.path.join(place, f"{_schema_key(schema)}-{cache.digest(key, size=4)}")


def _schema_key(schema: Schema) -> str:
    return cache.digest(str(schema.format), *_statements(schema), size=4)


def _statements(schema: Schema) -> list[str]:
    """Return what creates the tables of a schema."""
    return [statement for table in schema.tables for statement in table.sql]


def _current(pointer: str) -> str:
    """Return the name of the database that a pointer names, or nothing."""
    return (cache.read(pointer, _POINTER_KIND) or b"").decode()


def _salt(path: str) -> int:
    """Return a number of 31 bits that rows and header of a file and of its copies share.

    The file's name contains it. A database in memory has none.
    """
    return int(os.path.basename(path).split("-")[2], 16) if path else 0


def own_connection(target: str, timeout_s: float = _BUSY_MS / 1000) -> Connection:
    """Return a connection that closes itself when nothing refers to it, except in a fork.

    Python's own complains about that, and it may be part of a circle of objects.
    """
    import sqlite3

    if not _connection_types:

        class OwnConnection(sqlite3.Connection):
            process = 0

            def __del__(self) -> None:
                if self.process == os.getpid():
                    self.close()

        _connection_types.append(OwnConnection)
    connection: Connection = sqlite3.connect(
        target,
        uri=True,
        timeout=timeout_s,
        isolation_level=None,
        check_same_thread=False,
        factory=_connection_types[0],
    )
    connection.process = os.getpid()  # type: ignore[attr-defined]  # of the class above
    return connection


def _connect(path: str, mode: str, *, is_new: bool = False) -> Connection:
    for suffix in _SUFFIXES[1:]:
        if os.path.lexists(path + suffix) and not os.path.isfile(path + suffix):
            raise CorruptCache(f"{path}{suffix} is no file")
    if "immutable" in mode and _has_log(path):
        raise Unavailable(f"{path}: its write-ahead log cannot be read")
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    with _Translated():
        connection = own_connection(f"file:{quoted}?{mode}")
    try:
        with _Translated():
            for setting in ("synchronous=NORMAL", "journal_size_limit=16000000"):
                connection.execute(f"PRAGMA {setting}")
            connection.execute("PRAGMA mmap_size=1000000000")
            (number,) = connection.execute("PRAGMA application_id").fetchone()
        if not is_new and number != _salt(path):
            raise CorruptCache(f"{path} is another file")
    except BaseException:
        connection.close()
        raise
    return connection


def _has_log(path: str) -> bool:
    try:
        return os.stat(f"{path}-wal").st_size > 0
    except OSError:
        return False


def _build(
    pointer: str, schema: Schema, fill: Callable[[Rows], None], copy_of: State | None = None
) -> None:
    """Build a database, whole on the disk before the pointer names it.

    Raises:
        Unavailable: it cannot be written; nothing is left behind.
    """
    place, key = os.path.split(pointer)
    salt = copy_of.salt if copy_of else int.from_bytes(os.urandom(4), "big") >> 1
    path = os.path.join(place, f"{key}-{salt:08x}-{os.urandom(8).hex()}.db")
    try:
        with _Translated():
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        connection = _connect(path, "mode=rw", is_new=True)
        try:
            # A half file is thrown away, so no journal is needed. What is mapped fills the memory.
            with _Translated():
                for setting in ("journal_mode=OFF", "synchronous=OFF", "mmap_size=0"):
                    connection.execute(f"PRAGMA {setting}")
                if copy_of:
                    copy_of.copy_to(connection)
                connection.execute("BEGIN")
                if not copy_of:
                    connection.execute(f"PRAGMA application_id={salt}")
                    for statement in _statements(schema):
                        connection.execute(statement)
            fill(Rows(connection, schema.names, salt))
            with _Translated():
                connection.execute("COMMIT")
                connection.execute("PRAGMA journal_mode=WAL")
        finally:
            connection.close()
        with _Translated():
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        note = cache.keep(place, key, _POINTER_KIND, os.path.basename(path).encode())
        if note:
            raise Unavailable(note)
    except BaseException:
        for suffix in _SUFFIXES:
            cache.drop(path + suffix)
        raise


def _sweep(place: str, most: int = 0) -> None:
    """Remove databases that no pointer names, and pointers that were not used for long.

    Of the others the `most` that were last used stay, or all. The caller holds the lock, so no
    other builder is at work.
    """
    now = time.time()
    pointers = []
    databases = []
    for entry in sorted(os.scandir(place), key=lambda entry: entry.name):
        stem, is_database, _suffix = entry.name.partition(".db")
        try:
            age_s = now - entry.stat(follow_symlinks=False).st_mtime
        except OSError:  # SQLite has removed a log
            continue
        if is_database:
            databases.append((f"{stem}.db", entry.path, age_s))
        elif age_s > _UNUSED_S:
            cache.drop(entry.path)
        else:
            pointers.append((age_s, entry.path))
    pointers.sort()
    for _age_s, pointer in pointers[most or len(pointers) :]:
        cache.drop(pointer)
    named = {_current(pointer) for _age_s, pointer in pointers}
    for name, path, age_s in databases:
        if name not in named and age_s > _UNFINISHED_S:
            cache.drop(path)
