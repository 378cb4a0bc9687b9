"""Derived data in SQLite: rows with checksums, one snapshot per reader, one writer at a time.

This module owns the files, connections and locks; callers define what the rows mean. A folder has
the databases of one schema, and a small pointer file names the current one. A rebuilt database gets
a new name: SQLite must never find the write-ahead log of an old file next to a new one. Nothing is
migrated: another format, other settings or another version of a table have their own pointer.

Losing derived data costs time, but never changes an answer. A damaged row raises
`CorruptCacheError`. If a file cannot be written, because of a lock, a full disk or missing
permission, it stays as it is and the caller continues without it. `docs/state.md` describes the
schema, the locks and the damage that is detected.
"""

from __future__ import annotations

import os
import sys
import time
from marshal import dumps
from zlib import crc32

from memtool.store import cache, files
from memtool.store.cache import CorruptCacheError
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
"""SQLite's own wait, which is not fair. Only a backstop: writers wait for the kernel lock."""
_POLL_INTERVAL_S = 0.005
_ABANDONED_AGE_S = 60
"""A database without a pointer is removed after this; a reader may just have read the pointer."""
_UNUSED_AGE_S = 14 * 86_400
_TOUCH_INTERVAL_S = 600
LOCKED_REASON = "locked by another process"
"""End of the reason if waiting for another writer took too long."""
_KEYS_PER_STATEMENT = 500
"""Keys per statement; SQLite allows at least 999."""
_MARSHAL_FORMAT = 2
"""A format without references, so that equal rows give equal bytes."""
_connection_types: list[Any] = []
"""The class of all connections, created with the first one: importing `sqlite3` takes time."""
_shared_states: dict[tuple[str, str, int], State] = {}
"""Databases opened by `State.open_shared` in this process, by folder, key and thread."""


class UnavailableError(Exception):  # about the environment, not a bug
    """The database cannot be used now: locked, no space, no permission. It is not damaged."""


class Table(Value):
    """A table with its columns in SQL; the first `key_columns` identify a row.

    `is_wide` means that rows may be large, so that SQLite keeps them out of the tree of keys.
    `indexes` are lists of columns in SQL, each optionally with a condition.
    """

    name: str
    columns: str
    key_columns: int
    is_wide: bool = False
    indexes: tuple[str, ...] = ()

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, without the checksum column `sum`."""
        return [column.split()[0] for column in self.columns.split(", ")]

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements that create the table and its indexes."""
        key = ", ".join(self.column_names[: self.key_columns])
        columns = f"{self.columns}, sum INT, PRIMARY KEY ({key})"
        table = f"CREATE TABLE {self.name} ({columns})" + ("" if self.is_wide else " WITHOUT ROWID")
        statements = [table]
        for index in self.indexes:
            columns, where, condition = index.partition(" WHERE ")
            name = f"{self.name}_{columns.partition(',')[0]}"
            statements.append(f"CREATE INDEX {name} ON {self.name}({columns}){where}{condition}")
        return tuple(statements)


class Schema(Value):
    """The tables of a database; `format` goes up if the meaning of rows changes."""

    format: int
    tables: tuple[Table, ...]

    @property
    def column_names(self) -> dict[str, list[str]]:
        """The names of the columns of each table."""
        return {table.name: table.column_names for table in self.tables}


class Rows:
    """The rows of a database inside a transaction. Cells are str, bytes, int, float or None.

    Cells cannot be bool, or str with surrogates: store paths as bytes (`os.fsencode`). Every method
    raises CorruptCacheError if the database is damaged, UnavailableError if it cannot be used.
    """

    def __init__(self, connection: Connection, names: dict[str, list[str]], salt: int) -> None:
        """Take an open connection, the columns by table, and the salt of the file's checksums."""
        self._connection = connection
        self._names = names
        self._salt = salt

    def get(self, table: str, *key: Cell) -> Row | None:
        """Return the row of a key without its checksum; None if there is none."""
        return next(self.find(table, self._where(table, key), *key), None)

    def find(self, table: str, where: str, *values: Cell) -> Iterator[Row]:
        """Yield the rows that satisfy a condition in SQL."""
        names = ", ".join(self._names[table])
        with _ErrorTranslation():
            statement = f"SELECT {names}, sum FROM {table} WHERE {where}"  # noqa: S608  # no values
            for whole in self._connection.execute(statement, values):
                row = whole[:-1]
                if _checksum(table, row, self._salt) != whole[-1]:
                    raise CorruptCacheError(f"a row of the table {table} is damaged")
                yield row

    def find_many(self, table: str, prefix: Row, keys: Iterable[Cell]) -> Iterator[Row]:
        """Yield the rows whose key begins with the cells of `prefix`, followed by one of `keys`."""
        wanted = list(keys)
        where = self._where(table, prefix)
        column = self._names[table][len(prefix)]
        for at in range(0, len(wanted), _KEYS_PER_STATEMENT):
            batch = wanted[at : at + _KEYS_PER_STATEMENT]
            marks = ",".join("?" * len(batch))
            yield from self.find(table, f"{where} AND {column} IN ({marks})", *prefix, *batch)

    def select(self, statement: str, *values: Cell) -> Iterator[Row]:
        """Yield the rows of a SELECT, such as the keys of matching rows.

        Checksums are not verified; `get` and `find` do that.
        """
        with _ErrorTranslation():
            yield from self._connection.execute(statement, values)

    def put(self, table: str, *row: Cell) -> None:
        """Insert a row, or replace the one with the same key."""
        self.put_all(table, (row,))

    def put_all(self, table: str, rows: Iterable[Row]) -> None:
        """Insert rows, or replace those with the same keys."""
        marks = ", ".join("?" * (len(self._names[table]) + 1))
        with _ErrorTranslation():
            self._connection.executemany(
                f"INSERT OR REPLACE INTO {table} VALUES ({marks})",  # noqa: S608  # no values
                ((*row, _checksum(table, row, self._salt)) for row in rows),
            )

    def remove(self, table: str, *key: Cell) -> None:
        """Delete the rows whose key begins with these cells."""
        with _ErrorTranslation():
            where = self._where(table, key)
            self._connection.execute(f"DELETE FROM {table} WHERE {where}", key)  # noqa: S608

    def _where(self, table: str, key: Row) -> str:
        names = self._names[table][: len(key)]
        return " AND ".join(f"{name} = ?" for name in names) or "1"


def _checksum(table: str, row: Row, salt: int) -> int:
    return crc32(dumps((table, *row), _MARSHAL_FORMAT), salt)


class Snapshot(Rows):
    """The rows as of the begin of a `with` block, unaffected by other writers.

    A `with` inside another one on the same connection shares its snapshot.
    """

    _is_inner = False

    def __init__(
        self, owner: State, connection: Connection, names: dict[str, list[str]], salt: int
    ) -> None:
        """Take an open connection, and its owner, to keep the connection alive."""
        super().__init__(connection, names, salt)
        self._owner = owner

    def __enter__(self) -> Self:
        """Begin the transaction. SQLite takes the snapshot at the first read, so read once."""
        self._is_inner = self._connection.in_transaction
        if self._is_inner:
            return self
        with _ErrorTranslation():
            self._connection.execute("BEGIN")
            self._connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        return self

    def __exit__(self, *_error: object) -> None:
        """End the transaction, which has not written anything."""
        is_over = not self._connection.in_transaction  # SQLite ends it after some errors
        if not (self._is_inner or is_over):
            with _ErrorTranslation():
                self._connection.execute("ROLLBACK")


class State:
    """A database of derived data. A fork of the process that opened it must not use it.

    `note` is the reason why the database is only in memory, empty otherwise. `salt` is the start
    value of checksums.
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
        """Take an open connection; without a path the database is in memory.

        `salt` is that of the file from which the rows were copied.
        """
        self.path = path
        self.note = ""
        self.is_immutable = False
        """Whether changes by others are not visible, because the folder is read-only."""
        self._connection = connection
        self._schema = schema
        self._names = schema.column_names
        self._pointer = pointer
        self.salt = _parse_salt(path) if salt is None else salt
        self._inode = os.stat(path).st_ino if path else 0
        self._seen = (0, 0)
        """Inode and modification time of the pointer when it was last read."""
        self._process = os.getpid()

    @classmethod
    def open_shared(cls, folder: str, schema: Schema, *, key: str = "") -> State | None:
        """Return the same as `open`, but open the database only once per thread.

        `close_shared` closes it, or this method after another database has become current.

        Raises:
            CorruptCacheError: as `open` does.
        """
        shared_key = folder, key, get_thread_id()
        state = _shared_states.get(shared_key)
        if state is not None:
            if state.is_reading or state.is_current():
                return state
            _shared_states.pop(shared_key).close()
        opened = cls.open(folder, schema, key=key)
        if opened is not None and not opened.is_immutable:
            _shared_states[shared_key] = opened
        return opened

    @classmethod
    def open(cls, folder: str, schema: Schema, *, key: str = "") -> Self | None:
        """Open the current database of a folder for a schema and `key`; None if there is none.

        A read-only folder can be read unless it has a write-ahead log, since SQLite would have to
        write in order to read that.

        Raises:
            CorruptCacheError: it is not the database that the pointer names, or is damaged.
        """
        pointer = _pointer_path(folder, schema, key)
        name = _read_current(pointer)
        if not name:
            return None
        return cls._open_at(pointer, os.path.join(folder, name), schema)

    @classmethod
    def _open_at(cls, pointer: str, path: str, schema: Schema) -> Self | None:
        """Open the database at a path; None if it is gone or cannot be opened."""
        try:
            for mode in ("mode=rw", "mode=ro&immutable=1"):
                try:
                    connection = _connect(path, mode)
                except UnavailableError:
                    continue
                state = cls(connection, schema, pointer, path)
                state.is_immutable = "immutable" in mode
                if time.time() - os.stat(pointer).st_mtime > _TOUCH_INTERVAL_S:
                    cache.touch(pointer)
                return state
        except OSError:  # swept or dropped meanwhile
            return None
        return None

    @classmethod
    def read_last_used(cls, folder: str, schema: Schema, *, key: str = "") -> float:
        """Return about when the database was last opened, in seconds since 1970; 0 without one."""
        try:
            return os.stat(_pointer_path(folder, schema, key)).st_mtime
        except OSError:
            return 0.0

    @classmethod
    def rebuild(
        cls,
        folder: str,
        schema: Schema,
        fill: Callable[[Rows], None],
        *,
        key: str = "",
        instead_of: Self | None = None,
        copy_of: Self | None = None,
        wait_s: float | None = None,
        max_databases: int = 0,
    ) -> Self:
        """Build a database under a new name and point to it; in memory if that is impossible.

        Args:
            fill: writes the rows. It may run twice, the second time for the database in memory.
            instead_of: the unsuitable database, None if `open` returned None. If another process
                has built a newer one meanwhile, that one is returned and `fill` is not called.
            copy_of: a database to start from, instead of empty tables.
            wait_s: seconds to wait for another builder or writer, None for no limit.
            max_databases: how many last used databases of the folder are kept; 0 for all.
        """
        pointer = _pointer_path(folder, schema, key)
        seen = os.path.basename(instead_of.path) if instead_of else ""
        try:
            with _Lock(folder, wait_s):
                state = (
                    None
                    if _read_current(pointer) == seen
                    else cls._open_or_none(folder, schema, key)
                )
                if state is None:
                    _build(pointer, schema, fill, copy_of)
                    _sweep(folder, max_databases)
                    state = cls._open_or_none(folder, schema, key)
            note = "" if state else f"{folder}: what was built is gone again"
        except UnavailableError as error:
            state, note = None, str(error)
        if state is not None:
            return state
        if copy_of is None:
            return cls.create_in_memory(schema, fill, note)
        state = copy_of.copy_to_memory()
        state.note = note
        state.write(fill)
        return state

    @classmethod
    def _open_or_none(cls, folder: str, schema: Schema, key: str) -> Self | None:
        try:
            return cls.open(folder, schema, key=key)
        except CorruptCacheError:
            return None

    @classmethod
    def create_in_memory(cls, schema: Schema, fill: Callable[[Rows], None], note: str = "") -> Self:
        """Create a database in memory."""
        state = cls(open_connection(":memory:"), schema)
        state.note = note
        for statement in _list_statements(schema):
            state._connection.execute(statement)
        state.write(fill)
        return state

    def copy_to_memory(self) -> Self:
        """Return a writable copy in memory."""
        connection = open_connection(":memory:")
        self.copy_to(connection)
        return type(self)(connection, self._schema, salt=self.salt)

    def copy_to(self, connection: Connection) -> None:
        """Replace the database of a connection by a copy of this one."""
        self._check_process()
        with _ErrorTranslation():
            self._connection.backup(connection)

    def read(self) -> Snapshot:
        """Return the rows for use in a `with` block, so that an answer comes from one snapshot."""
        self._check_process()
        return Snapshot(self, self._connection, self._names, self.salt)

    def write(self, change: Callable[[Rows], None], *, wait_s: float = 0.0) -> str:
        """Change rows in one transaction; return why that was impossible, empty on success.

        `change` must read what it depends on inside the transaction, since another process may have
        done the work. If it raises, everything is rolled back.

        Raises:
            CorruptCacheError: the database is damaged.
        """
        self._check_process()
        if not self.path:
            self._change(self._connection, change, "SAVEPOINT change", "RELEASE change")
            return ""
        try:
            with _Lock(os.path.dirname(self.path), wait_s):
                if not self.is_current():
                    return f"{self.path}: another process has built a newer one"
                # A separate connection: the readers' one may be in the middle of a snapshot.
                connection = _connect(self.path, "mode=rw")
                try:
                    self._change(connection, change, "BEGIN IMMEDIATE", "COMMIT")
                finally:
                    connection.close()
        except UnavailableError as error:
            return str(error)
        return ""

    def _change(
        self, connection: Connection, change: Callable[[Rows], None], begin: str, end: str
    ) -> None:
        with _ErrorTranslation():
            connection.execute(begin)
        try:
            change(Rows(connection, self._names, self.salt))
            with _ErrorTranslation():
                connection.execute(end)
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK" if self.path else "ROLLBACK TO change")
                if not self.path:
                    connection.execute("RELEASE change")
            raise

    @property
    def is_reading(self) -> bool:
        """Whether a snapshot is open."""
        return self._connection.in_transaction

    def is_current(self) -> bool:
        """Return whether this is still the current database of its folder."""
        try:
            is_same = os.stat(self.path).st_ino == self._inode
            pointer = os.stat(self._pointer)
        except OSError:
            return not self.path
        seen = pointer.st_ino, pointer.st_mtime_ns
        if is_same and seen != self._seen:
            is_same = _read_current(self._pointer) == os.path.basename(self.path)
            self._seen = seen if is_same else (0, 0)
        return is_same

    @classmethod
    def find_damaged_files(cls, folder: str) -> list[str]:
        """Return the files of a folder that are damaged or cannot be read."""
        if not os.path.isdir(folder):
            return [folder] if os.path.lexists(folder) else []
        damaged = []
        for name in sorted(os.listdir(folder)):
            if ".db" in name:
                continue
            pointer = os.path.join(folder, name)
            current = _read_current(pointer)
            damaged += cache.find_damaged(pointer)
            path = os.path.join(folder, current)
            if current and not cls._is_whole(pointer, path):
                damaged.append(path)
        return damaged

    @classmethod
    def _is_whole(cls, pointer: str, path: str) -> bool:
        try:
            state = cls._open_at(pointer, path, Schema(0, ()))  # works with any tables
        except CorruptCacheError:
            return False
        if state is None:
            return False
        try:
            return not state.find_damage()
        finally:
            state.close()

    def find_damage(self) -> str:
        """Read the whole database and return the first damage; empty if there is none."""
        execute = self._connection.execute
        try:
            with self.read(), _ErrorTranslation():
                (verdict,) = execute("PRAGMA integrity_check(1)").fetchone()
                if verdict != "ok":
                    return str(verdict)
                (page_bytes,) = execute("PRAGMA page_size").fetchone()
                if self.path and os.stat(self.path).st_size % page_bytes:
                    return "the file is cut off, or longer than it was"
                tables = execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
                for (table,) in tables:
                    for *row, checksum in execute(f"SELECT * FROM {table}"):  # noqa: S608  # no values
                        if _checksum(table, tuple(row), self.salt) != checksum:
                            return f"a row of the table {table} is damaged"
        except CorruptCacheError as error:
            return str(error)
        return ""

    def drop(self) -> None:
        """Remove the pointer to this damaged database and close it. Other readers keep theirs."""
        if self.path and _read_current(self._pointer) == os.path.basename(self.path):
            cache.drop(self._pointer)
        self.close()

    def close(self) -> None:
        """Close the connection; the last one of all processes merges the write-ahead log."""
        self._check_process()
        self._connection.close()

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise RuntimeError("a database of derived data was opened before a fork")


class _ErrorTranslation:
    """Turns errors of SQLite and of the system into CorruptCacheError or UnavailableError."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            return
        import sqlite3

        if isinstance(error, OSError):
            raise UnavailableError(f"{error.filename}: {files.describe_error(error)}") from None
        if isinstance(error, UnicodeDecodeError):  # SQLite's message quotes a damaged schema
            raise CorruptCacheError("the schema is damaged") from None
        if not isinstance(error, sqlite3.DatabaseError) or isinstance(
            error, sqlite3.ProgrammingError
        ):
            return
        if is_unavailable(error):
            raise UnavailableError(str(error)) from None
        raise CorruptCacheError(str(error)) from None


def is_unavailable(error: Exception) -> bool:
    """Return whether an error of SQLite is no sign of damage: locked, disk full, no permission."""
    import sqlite3

    # Python itself reports text that is not UTF-8, without a code; that is damage.
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
    """Holds the kernel's lock on a folder during a `with` block, and creates a missing folder."""

    def __init__(self, folder: str, wait_s: float | None) -> None:
        self._folder = folder
        self._wait_s = wait_s
        self._handle = -1

    def __enter__(self) -> None:
        with _ErrorTranslation():
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            self._handle = files.open_folder(self._folder)
        try:
            if not self._try_lock():
                self._wait()
        except BaseException:
            self.__exit__()
            raise

    def _wait(self) -> None:
        start_s = time.monotonic()
        while self._wait_s is None or time.monotonic() - start_s < self._wait_s:
            time.sleep(_POLL_INTERVAL_S)
            if self._try_lock():
                files.note_wait(time.monotonic() - start_s)
                return
        raise UnavailableError(f"{self._folder}: {LOCKED_REASON}")

    def _try_lock(self) -> bool:
        with _ErrorTranslation():
            try:
                files.lock(self._handle, waits=False)
            except BlockingIOError:
                return False
        return True

    def __exit__(self, *_error: object) -> None:
        os.close(self._handle)


def get_thread_id() -> int:
    """Return the id of the thread: a connection can only have one transaction at a time."""
    threading = sys.modules.get("threading")  # if not imported, there is only one thread
    return 0 if threading is None else threading.get_ident()


def close_shared() -> None:
    """Close all shared databases; call this before a process ends or forks.

    The last process to do so leaves no write-ahead log, so that the folder may become read-only.
    """
    while _shared_states:
        _shared_states.popitem()[1].close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=close_shared)


def _pointer_path(folder: str, schema: Schema, key: str) -> str:
    """Return the path of the pointer, whose name depends on schema and key."""
    return os.path.join(folder, f"{_schema_key(schema)}-{cache.digest(key, size=4)}")


def _schema_key(schema: Schema) -> str:
    return cache.digest(str(schema.format), *_list_statements(schema), size=4)


def _list_statements(schema: Schema) -> list[str]:
    """Return the statements that create the tables of a schema."""
    return [statement for table in schema.tables for statement in table.statements]


def _read_current(pointer: str) -> str:
    """Return the database name in a pointer file; empty if there is none."""
    return (cache.read(pointer, _POINTER_KIND) or b"").decode()


def _parse_salt(path: str) -> int:
    """Return the salt in the name of a database: 31 bits, the same for copies; 0 in memory."""
    return int(os.path.basename(path).split("-")[2], 16) if path else 0


def open_connection(target: str, timeout_s: float = _BUSY_MS / 1000) -> Connection:
    """Open a connection that closes itself when it is garbage-collected, except in a fork.

    Python's own connections warn then, and a State may be part of a reference cycle.
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
            raise CorruptCacheError(f"{path}{suffix} is no file")
    if "immutable" in mode and _has_write_ahead_log(path):
        raise UnavailableError(f"{path}: its write-ahead log cannot be read")
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    with _ErrorTranslation():
        connection = open_connection(f"file:{quoted}?{mode}")
    try:
        with _ErrorTranslation():
            for setting in ("synchronous=NORMAL", "journal_size_limit=16000000"):
                connection.execute(f"PRAGMA {setting}")
            connection.execute("PRAGMA mmap_size=1000000000")
            (number,) = connection.execute("PRAGMA application_id").fetchone()
        if not is_new and number != _parse_salt(path):
            raise CorruptCacheError(f"{path} is another file")
    except BaseException:
        connection.close()
        raise
    return connection


def _has_write_ahead_log(path: str) -> bool:
    try:
        return os.stat(f"{path}-wal").st_size > 0
    except OSError:
        return False


def _build(
    pointer: str, schema: Schema, fill: Callable[[Rows], None], copy_of: State | None = None
) -> None:
    """Build a database, synced to disk before the pointer names it.

    Raises:
        UnavailableError: it cannot be written; nothing is left behind.
    """
    folder, key = os.path.split(pointer)
    salt = copy_of.salt if copy_of else int.from_bytes(os.urandom(4), "big") >> 1
    path = os.path.join(folder, f"{key}-{salt:08x}-{os.urandom(8).hex()}.db")
    try:
        with _ErrorTranslation():
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        connection = _connect(path, "mode=rw", is_new=True)
        try:
            # An unfinished file is deleted, so no journal is needed. Mapping would fill the memory.
            with _ErrorTranslation():
                for setting in ("journal_mode=OFF", "synchronous=OFF", "mmap_size=0"):
                    connection.execute(f"PRAGMA {setting}")
                if copy_of:
                    copy_of.copy_to(connection)
                connection.execute("BEGIN")
                if not copy_of:
                    connection.execute(f"PRAGMA application_id={salt}")
                    for statement in _list_statements(schema):
                        connection.execute(statement)
            fill(Rows(connection, schema.column_names, salt))
            with _ErrorTranslation():
                connection.execute("COMMIT")
                connection.execute("PRAGMA journal_mode=WAL")
        finally:
            connection.close()
        with _ErrorTranslation():
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        note = cache.write(folder, key, _POINTER_KIND, os.path.basename(path).encode())
        if note:
            raise UnavailableError(note)
    except BaseException:
        for suffix in _SUFFIXES:
            cache.drop(path + suffix)
        raise


def _sweep(folder: str, max_databases: int = 0) -> None:
    """Remove databases without a pointer, and pointers that were not used for a long time.

    Of the others the last used `max_databases` are kept, or all. The caller holds the lock, so no
    other process is building.
    """
    now = time.time()
    pointers = []
    databases = []
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        stem, is_database, _suffix = entry.name.partition(".db")
        try:
            age_s = now - entry.stat(follow_symlinks=False).st_mtime
        except OSError:  # SQLite has removed a log
            continue
        if is_database:
            databases.append((f"{stem}.db", entry.path, age_s))
        elif age_s > _UNUSED_AGE_S:
            cache.drop(entry.path)
        else:
            pointers.append((age_s, entry.path))
    pointers.sort()
    for _age_s, pointer in pointers[max_databases or len(pointers) :]:
        cache.drop(pointer)
    current_names = {_read_current(pointer) for _age_s, pointer in pointers}
    for name, path, age_s in databases:
        if name not in current_names and age_s > _ABANDONED_AGE_S:
            cache.drop(path)
