"""The ledger: usage counts, latencies and audited acts in SQLite, filled from the usage log.

Nothing depends on it: deleting it, or any file next to it, only loses statistics. Of a prompt it
has only the hash; the redacted words of searches without a hit are kept if the user sets
ledger.words, for MISS_DAYS days and MAX_MISSES queries. Beyond MAX_EVENTS the oldest audited acts
are deleted until EVENTS_AFTER_TRIM remain, except for deletions and redactions of the last 90 days.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress

from memtool.errors import MemtoolError, find_reason
from memtool.memory.timestamps import DAY_S
from memtool.store import files
from memtool.store.cache import BUILT, HIT, READ
from memtool.store.state import is_unavailable
from memtool.store.usage_counts import TIMEOUT_S, connect_to_read
from memtool.store.usage_log import (
    INTENT,
    LEDGER,
    RETAINED_KINDS,
    RETENTION_DAYS,
    SPOOL_FOLDER,
    AuditEvent,
    Note,
    claim,
    list_sealed,
    read_events,
    read_notes,
    read_waiting_notes,
    seal,
)
from memtool.value import Value

MAX_EVENTS = 5_000
EVENTS_AFTER_TRIM = 4_000
ONCE_KIND = "deny"
"""A kind that is stored once for the same subjects, since every promotion repeats it."""
RUNNING = "running"
_AUDIT_SCHEMA = """
CREATE TABLE IF NOT EXISTS audit (
    number INTEGER PRIMARY KEY, moment INTEGER NOT NULL, operation TEXT NOT NULL,
    kind TEXT NOT NULL, phase TEXT NOT NULL, subjects TEXT NOT NULL, detail TEXT NOT NULL)
"""


_DEPTHS_SCHEMA = """
CREATE TABLE IF NOT EXISTS depths (answer INTEGER PRIMARY KEY, depth TEXT NOT NULL)
"""


_COSTS_SCHEMA = """
CREATE TABLE IF NOT EXISTS costs (
    answer INTEGER PRIMARY KEY, state TEXT NOT NULL, is_damaged INTEGER NOT NULL,
    waited_ms REAL NOT NULL)
"""
_SETTLED_SCHEMA = """
CREATE TABLE IF NOT EXISTS settled (memory TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID
"""
_FOLDED_SCHEMA = "CREATE TABLE IF NOT EXISTS folded (day INTEGER NOT NULL)"
_MISSES_SCHEMA = """
CREATE TABLE IF NOT EXISTS misses (
    words TEXT PRIMARY KEY, count INTEGER NOT NULL, last INTEGER NOT NULL) WITHOUT ROWID
"""
_LATER_SCHEMAS = (
    _AUDIT_SCHEMA,
    _DEPTHS_SCHEMA,
    _COSTS_SCHEMA,
    _SETTLED_SCHEMA,
    _FOLDED_SCHEMA,
    _MISSES_SCHEMA,
)
"""Tables that an older ledger may lack."""


class CacheUse(Value):
    """How many answers found a current index (`hits`), updated it, or rebuilt it.

    `damaged` counts answers that met a damaged cache; `hit_share` is None without answers.
    """

    answers: int
    hits: int
    updates: int
    rebuilds: int
    damaged: int
    hit_share: float | None


class LockWaits(Value):
    """Number of answers that waited for a lock of another process, and the waiting times."""

    waits: int
    total_ms: float
    longest_ms: float


class Act(Value):
    """One audited act, with its start; `outcome` is running, done, refused or interrupted."""

    moment: int
    kind: str
    outcome: str
    subjects: tuple[str, ...]
    detail: str
    operation: str


NAME = LEDGER
FORMAT = 1
MAX_ANSWERS = 10_000
"""Answers with details; for older ones only the counts remain."""
MAX_MISSES, MISS_DAYS = 200, 90
"""Searches without a hit whose words are kept, the newest; and the days since the last one."""
MAX_SAMPLES = 1_000
"""Last answers of a verb from which latencies are computed."""
INJECT_VERBS = ("inject", "hook-start", "hook-edit")
"""Verbs of answers that an agent got without asking."""
USED_PLACES = 3
"""The first results of a search count as used; a user who sees more is browsing."""
BROKEN_NAME = f"{NAME}.broken"
"""New name of a ledger that is not a valid database."""
_SCHEMA = """
CREATE TABLE answers (
    number INTEGER PRIMARY KEY, moment INTEGER NOT NULL, verb TEXT NOT NULL,
    elapsed_ms REAL NOT NULL, prompt TEXT NOT NULL, session TEXT NOT NULL);
CREATE INDEX answers_by_verb ON answers (verb, number);
CREATE TABLE shown (
    answer INTEGER NOT NULL, place INTEGER NOT NULL, memory TEXT NOT NULL, tier TEXT NOT NULL,
    score REAL, reason TEXT NOT NULL, PRIMARY KEY (answer, place)) WITHOUT ROWID;
CREATE INDEX shown_by_memory ON shown (memory, answer);
CREATE TABLE counts (
    memory TEXT NOT NULL, verb TEXT NOT NULL, count INTEGER NOT NULL, last INTEGER NOT NULL,
    PRIMARY KEY (memory, verb)) WITHOUT ROWID;
CREATE TABLE taken (name TEXT PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID;
"""


class UsageCount(Value):
    """A memory, the number of answers that showed it, and the second of the last one."""

    id: str
    count: int
    last: int


class WarningUse(Value):
    """Warnings at edits: all, and those after which the session edited again."""

    count: int
    edited_again: int


class Injection(Value):
    """A memory that was injected; `prompt` is a hash."""

    moment: int
    id: str
    tier: str
    score: float | None
    reason: str
    prompt: str
    session: str


class Latency(Value):
    """Median and 95th percentile of the time that the last answers of a verb took."""

    verb: str
    samples: int
    p50_ms: float
    p95_ms: float


class Ledger:
    """An open ledger for queries."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def answers(self) -> tuple[int, int | None]:
        """Return the number of answers with details, and the second of the first one."""
        row = self._connection.execute("SELECT count(*), min(moment) FROM answers").fetchone()
        return int(row[0]), row[1]

    def latencies(self) -> list[Latency]:
        """Return the latency of each verb, sorted by verb."""
        verbs = self._connection.execute("SELECT DISTINCT verb FROM answers ORDER BY verb")
        return [_build_latency(verb, self._samples(verb)) for (verb,) in verbs.fetchall()]

    def _samples(self, verb: str) -> list[float]:
        query = "SELECT elapsed_ms FROM answers WHERE verb = ? ORDER BY number DESC LIMIT ?"
        return sorted(ms for (ms,) in self._connection.execute(query, (verb, MAX_SAMPLES)))

    def timings(self) -> list[tuple[str, int, float]]:
        """Return verb, second and milliseconds of each stored answer, oldest first."""
        query = "SELECT verb, moment, elapsed_ms FROM answers ORDER BY moment, number"
        return self._connection.execute(query).fetchall()

    def missed_queries(self, limit: int) -> list[UsageCount]:
        """Return the searches without results, most frequent first.

        The id of a row is the hash of the query; see `missed_words` for the words.
        """
        query = (
            "SELECT prompt, count(*), max(moment) FROM answers WHERE verb = 'search' "
            "AND NOT EXISTS (SELECT 1 FROM shown WHERE answer = number) "
            "GROUP BY prompt ORDER BY 2 DESC, 1 LIMIT ?"
        )
        return [UsageCount(*row) for row in self._connection.execute(query, (limit,))]

    def missed_words(self, limit: int) -> list[UsageCount]:
        """Return the searches without results whose words were kept, most frequent first.

        The id of a row is the redacted text of the query.
        """
        if not self._has_table("misses"):
            return []
        query = (
            "SELECT words, count, last FROM misses ORDER BY count DESC, last DESC, words LIMIT ?"
        )
        return [UsageCount(*row) for row in self._connection.execute(query, (limit,))]

    def query_times_ms(self) -> list[float]:
        """Return the milliseconds that the last queries took, oldest first."""
        query = "SELECT elapsed_ms FROM answers WHERE verb IN (?, ?) ORDER BY number DESC LIMIT ?"
        rows = self._connection.execute(query, (*QUERY_VERBS, MAX_LATENCIES)).fetchall()
        return [ms for (ms,) in reversed(rows)]

    def depths(self) -> dict[str, int]:
        """Return the number of queries that each level answered, among answers with details."""
        if not self._has_table("depths"):
            return {}
        query = "SELECT depth, count(*) FROM depths GROUP BY depth ORDER BY 2 DESC, 1"
        return dict(self._connection.execute(query).fetchall())

    def cache_use(self) -> CacheUse:
        """Return how answers with details found the index."""
        if not self._has_table("costs"):
            return CacheUse(0, 0, 0, 0, 0, None)
        query = "SELECT state, count(*), sum(is_damaged) FROM costs GROUP BY state"
        rows = self._connection.execute(query).fetchall()
        counts = {state: count for state, count, _damaged in rows}
        hits, updates, rebuilds = (counts.get(state, 0) for state in (HIT, READ, BUILT))
        answers = hits + updates + rebuilds
        damaged = sum(number for _state, _count, number in rows)
        share = round(hits / answers, 4) if answers else None
        return CacheUse(answers, hits, updates, rebuilds, damaged, share)

    def lock_waits(self) -> LockWaits:
        """Return how long answers with details waited for locks."""
        if not self._has_table("costs"):
            return LockWaits(0, 0.0, 0.0)
        query = "SELECT count(*), total(waited_ms), max(waited_ms) FROM costs WHERE waited_ms > 0"
        waits, total_ms, longest_ms = self._connection.execute(query).fetchone()
        return LockWaits(waits, round(total_ms, 3), longest_ms or 0.0)

    def combined_latency(self, verbs: Sequence[str]) -> Latency | None:
        """Return the combined latency of verbs, with an empty `verb`; None without answers."""
        marks = ",".join("?" * len(verbs))
        query = (
            f"SELECT elapsed_ms FROM answers WHERE verb IN ({marks}) ORDER BY number DESC LIMIT ?"  # noqa: S608  # question marks alone
        )
        samples = sorted(ms for (ms,) in self._connection.execute(query, (*verbs, MAX_SAMPLES)))
        return _build_latency("", samples) if samples else None

    def _has_table(self, table: str) -> bool:
        """Return whether a table exists; an older ledger may lack it."""
        query = "SELECT 1 FROM sqlite_master WHERE name = ?"
        return self._connection.execute(query, (table,)).fetchone() is not None

    def counts(self) -> list[tuple[str, int]]:
        """Return the number of answers that showed each memory, in any order."""
        query = "SELECT memory, sum(count) FROM counts GROUP BY memory"
        return self._connection.execute(query).fetchall()

    def count_by_verb(self, memory: str) -> dict[str, tuple[int, int]]:
        """Return how many answers of each verb showed a memory, and the second of the last one."""
        query = "SELECT verb, count, last FROM counts WHERE memory = ?"
        rows = self._connection.execute(query, (memory,)).fetchall()
        return {verb: (count, last) for verb, count, last in rows}

    def uses(self) -> list[tuple[str, int]]:
        """Return memory and second of each use, oldest first.

        A use is a `show` by id, or a place among the first results of a search.
        """
        query = (
            "SELECT memory, moment FROM shown JOIN answers ON answer = number "
            "WHERE verb = 'show' OR (verb = 'search' AND place < ?) ORDER BY moment, number"
        )
        return self._connection.execute(query, (USED_PLACES,)).fetchall()

    def most_shown(self, verb: str, limit: int) -> list[UsageCount]:
        """Return the memories that a verb, or any verb if empty, showed most often; then by id."""
        query = (
            "SELECT memory, sum(count), max(last) FROM counts WHERE verb = ?1 OR ?1 = '' "
            "GROUP BY memory ORDER BY 2 DESC, 1 LIMIT ?2"
        )
        return [UsageCount(*row) for row in self._connection.execute(query, (verb, limit))]

    def most_injected(self, limit: int) -> list[UsageCount]:
        """Return the memories that agents got most often, by request or through a hook."""
        query = (
            "SELECT memory, sum(count), max(last) FROM counts WHERE verb IN (?, ?, ?) "
            "GROUP BY memory ORDER BY 2 DESC, 1 LIMIT ?"
        )
        return [UsageCount(*row) for row in self._connection.execute(query, (*INJECT_VERBS, limit))]

    def warning_use(self) -> WarningUse:
        """Count the warnings at edits, and those that an edit of the same session followed."""
        query = """
            WITH last AS (
                SELECT session, max(number) AS number FROM answers
                WHERE verb = 'hook-edit' AND session <> '' GROUP BY session)
            SELECT count(*), total(last.number > answers.number)
            FROM answers LEFT JOIN last USING (session)
            WHERE verb = 'hook-edit'
                AND EXISTS (SELECT 1 FROM shown WHERE answer = answers.number)
        """
        count, edited_again = self._connection.execute(query).fetchone()
        return WarningUse(count, int(edited_again))

    def shown_ids(self) -> frozenset[str]:
        """Return the ids of all memories that any answer showed."""
        rows = self._connection.execute("SELECT DISTINCT memory FROM counts")
        return frozenset(id_ for (id_,) in rows)

    def injections(self, memory: str, limit: int) -> list[Injection]:
        """Return the last injections, newest first; of all memories if `memory` is empty.

        A limit of 0 means all. Memories of one answer are in the order of its block.
        """
        query = (
            "SELECT moment, memory, tier, score, reason, prompt, session "
            "FROM shown JOIN answers ON answer = number "
            "WHERE verb IN ('inject', 'hook-start', 'hook-edit') AND (memory = ?1 OR ?1 = '') "
            "ORDER BY moment DESC, number DESC, place LIMIT ?2"
        )
        rows = self._connection.execute(query, (memory, limit or -1))
        return [Injection(*row) for row in rows]

    def last_injected(self) -> list[tuple[int, str]]:
        """Return moment and id of each memory of the newest block with memories, in its order."""
        query = (
            "SELECT moment, memory FROM shown JOIN answers ON answer = number WHERE answer = ("
            "SELECT max(answer) FROM shown JOIN answers ON answer = number WHERE verb IN (?, ?, ?))"
            " ORDER BY place"
        )
        return self._connection.execute(query, INJECT_VERBS).fetchall()

    def acts(self) -> list[Act]:
        """Return the audited acts, newest first."""
        if not self._has_table("audit"):
            return []
        query = "SELECT moment, operation, kind, phase, subjects, detail FROM audit ORDER BY number"
        act_by_operation: dict[str, Act] = {}
        for moment, operation, kind, phase, subjects, detail in self._connection.execute(query):
            earlier = act_by_operation.get(operation)
            outcome = RUNNING if phase == INTENT else phase
            start = earlier.moment if earlier else moment
            act_by_operation[operation] = Act(
                start, kind, outcome, tuple(subjects.split()), detail, operation
            )
        return sorted(act_by_operation.values(), key=lambda act: (-act.moment, act.operation))


def fold(directory: str, *, is_patient: bool = True) -> bool:
    """Move the notes of the spool into the ledger.

    `directory` is the cache directory of the repository. Each note is moved exactly once, even if a
    process is killed. If another process is doing the same, a patient caller waits and any other
    returns. Return whether the ledger was not a valid database and was renamed.

    Raises:
        MemtoolError: the ledger cannot be written.
    """
    try:
        handle = files.open_folder(os.path.join(directory, SPOOL_FOLDER))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _build_error(directory, error) from None
    try:
        files.lock(handle, waits=is_patient)
        seal(directory)
        try:
            _fold(directory)
        except sqlite3.DatabaseError as error:
            if is_unavailable(error):
                raise
            _rename_broken(directory)
            _fold(directory)
            return True
    except BlockingIOError:
        return False
    except (OSError, sqlite3.Error) as error:
        raise _build_error(directory, error) from None
    finally:
        os.close(handle)
    return False


def delete_words(directory: str) -> None:
    """Delete the words of searches from the ledger, and from its files on the disk.

    Raises:
        MemtoolError: the ledger cannot be written.
    """
    with open_ledger(directory) as usage:
        if not usage.missed_words(1):
            return
    try:
        with closing(_connect(os.path.join(directory, NAME))) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("DELETE FROM misses")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # it would have them, too
    except (OSError, sqlite3.Error) as error:
        raise _build_error(directory, error) from None


@contextmanager
def open_ledger(directory: str) -> Iterator[Ledger]:
    """Open the ledger for queries; a missing one is empty.

    Raises:
        MemtoolError: it exists, but cannot be read.
    """
    path = os.path.join(directory, NAME)
    try:
        with closing(_connect_to_read(path)) as connection:
            yield Ledger(connection)
    except sqlite3.Error as error:
        raise _build_error(directory, error) from None


def _connect_to_read(path: str) -> sqlite3.Connection:
    if not os.path.exists(path):
        connection = sqlite3.connect(":memory:")
        connection.executescript(_SCHEMA)
        for schema in _LATER_SCHEMAS:
            connection.execute(schema)
        return connection
    return connect_to_read(path)


def _fold(directory: str) -> None:
    with closing(_connect(os.path.join(directory, NAME))) as connection:
        _settle(connection, int(time.time()) // DAY_S)
        for path in list_sealed(directory):
            handle = claim(path)
            if handle is not None:
                try:
                    _import_file(connection, path, handle)
                    os.unlink(path)
                finally:
                    os.close(handle)
        remaining = {os.path.basename(path) for path in list_sealed(directory)}
        names = [name for (name,) in connection.execute("SELECT name FROM taken").fetchall()]
        finished = [(name,) for name in names if name not in remaining]
        connection.executemany("DELETE FROM taken WHERE name = ?", finished)


def _settle(connection: sqlite3.Connection, today: int) -> None:
    """Store the counts as of the day's begin, if this is the first fold of the day."""
    row = connection.execute("SELECT day FROM folded").fetchone()
    if row is not None and row[0] >= today:
        return
    with _transaction(connection):
        connection.execute("DELETE FROM settled")
        connection.execute(
            "INSERT INTO settled SELECT memory, sum(count) FROM counts GROUP BY memory"
        )
        connection.execute("DELETE FROM folded")
        connection.execute("INSERT INTO folded VALUES (?)", (today,))


QUERY_VERBS = ("inject", "search")
"""Verbs of answers that need a search and that a user or agent waits for."""
MAX_LATENCIES = 100
MIN_LATENCIES = 20
"""With fewer answers there is no 95th percentile."""
SLOW_MS = 300.0
HEALTHY, DEGRADED, TOO_FEW = "healthy", "degraded", "too few answers"


class Health(Value):
    """How long the last queries took.

    `state` is `healthy`, `degraded` if their 95th percentile is over SLOW_MS, or `too few answers`,
    in which case `p95_ms` is None.
    """

    state: str
    samples: int
    p95_ms: float | None


def compute_health(directory: str) -> Health:
    """Return the health of the last MAX_LATENCIES queries, those still in the spool included.

    A ledger that cannot be read counts as empty.
    """
    try:
        with open_ledger(directory) as ledger:
            times_ms = ledger.query_times_ms()
    except MemtoolError:
        times_ms = []
    times_ms += [
        note.elapsed_ms for note in read_waiting_notes(directory) if note.verb in QUERY_VERBS
    ]
    samples = sorted(times_ms[-MAX_LATENCIES:])
    if len(samples) < MIN_LATENCIES:
        return Health(TOO_FEW, len(samples), None)
    p95_ms = samples[-(-len(samples) * 95 // 100) - 1]  # nearest rank
    return Health(DEGRADED if p95_ms > SLOW_MS else HEALTHY, len(samples), p95_ms)


def _connect(path: str) -> sqlite3.Connection:
    """Open the database for writing in autocommit mode; create it if it is missing."""
    if not os.path.exists(path):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    connection = sqlite3.connect(path, timeout=TIMEOUT_S, isolation_level=None)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != FORMAT:
            if connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                raise sqlite3.DatabaseError(f"its format is {version}, not {FORMAT}")
            connection.execute("PRAGMA journal_mode = WAL")
            with _transaction(connection):
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("PRAGMA synchronous = NORMAL")
        for schema in _LATER_SCHEMAS:
            connection.execute(schema)
    except BaseException:
        connection.close()
        raise
    return connection


def _import_file(connection: sqlite3.Connection, path: str, handle: int) -> None:
    """Move the part of a file that is not in the ledger yet; a killed process may have begun it."""
    name = os.path.basename(path)
    with open(handle, "rb", closefd=False) as file:
        data = file.read()
    with _transaction(connection):
        row = connection.execute("SELECT bytes FROM taken WHERE name = ?", (name,)).fetchone()
        new = data[row[0] if row else 0 :]
        _insert_notes(connection, read_notes(new))
        _insert_events(connection, read_events(new))
        connection.execute("INSERT OR REPLACE INTO taken VALUES (?, ?)", (name, len(data)))


def _insert_notes(connection: sqlite3.Connection, notes: Iterable[Note]) -> None:
    newest = 0
    for note in notes:
        newest = (
            connection.execute(
                (
                    "INSERT INTO answers (moment, verb, elapsed_ms, prompt, session) VALUES "
                    "(?,?,?,?,?)"
                ),
                (note.moment, note.verb, note.elapsed_ms, note.prompt, note.session),
            ).lastrowid
            or newest
        )
        if note.words:
            connection.execute(
                "INSERT INTO misses VALUES (?, 1, ?) ON CONFLICT DO UPDATE "
                "SET count = count + 1, last = max(last, excluded.last)",
                (note.words, note.moment),
            )
        if note.depth:
            connection.execute("INSERT INTO depths VALUES (?, ?)", (newest, note.depth))
        if note.index or note.is_damaged or note.waited_ms:
            cost = (newest, note.index, note.is_damaged, note.waited_ms)
            connection.execute("INSERT INTO costs VALUES (?, ?, ?, ?)", cost)
        connection.executemany(
            "INSERT INTO shown VALUES (?,?,?,?,?,?)",
            (
                (newest, place, item.id, item.tier, item.score, item.reason)
                for place, item in enumerate(note.items)
            ),
        )
        connection.executemany(
            "INSERT INTO counts VALUES (?, ?, 1, ?) ON CONFLICT DO UPDATE "
            "SET count = count + 1, last = max(last, excluded.last)",
            ((id_, note.verb, note.moment) for id_ in {item.id for item in note.items}),
        )
    connection.execute(
        "DELETE FROM misses WHERE last < (SELECT max(last) FROM misses) - ? "
        "OR words NOT IN (SELECT words FROM misses ORDER BY last DESC, words LIMIT ?)",
        (MISS_DAYS * DAY_S, MAX_MISSES),
    )
    oldest = newest - MAX_ANSWERS
    connection.execute("DELETE FROM shown WHERE answer <= ?", (oldest,))
    connection.execute("DELETE FROM depths WHERE answer <= ?", (oldest,))
    connection.execute("DELETE FROM costs WHERE answer <= ?", (oldest,))
    connection.execute("DELETE FROM answers WHERE number <= ?", (oldest,))


def _insert_events(connection: sqlite3.Connection, events: Iterable[AuditEvent]) -> None:
    """Insert events, except for repeated ones of ONCE_KIND, and delete the oldest."""
    query = "SELECT 1 FROM audit WHERE kind = ? AND subjects = ?"
    for event in events:
        subjects = " ".join(event.subjects)
        if event.kind == ONCE_KIND and connection.execute(query, (event.kind, subjects)).fetchone():
            continue
        connection.execute(
            "INSERT INTO audit (moment, operation, kind, phase, subjects, detail) "
            "VALUES (?,?,?,?,?,?)",
            (event.moment, event.operation, event.kind, event.phase, subjects, event.detail),
        )
    count, last, newest = connection.execute(
        "SELECT count(*), max(number), max(moment) FROM audit"
    ).fetchone()
    if count > MAX_EVENTS:
        marks = ",".join("?" * len(RETAINED_KINDS))
        connection.execute(
            f"DELETE FROM audit WHERE number <= ? AND NOT (kind IN ({marks}) AND moment >= ?)",  # noqa: S608  # question marks alone
            (last - EVENTS_AFTER_TRIM, *RETAINED_KINDS, newest - RETENTION_DAYS * DAY_S),
        )


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _build_latency(verb: str, samples: list[float]) -> Latency:
    """Return the percentiles of sorted samples by nearest rank, so each is an actual sample."""
    count = len(samples)
    p50_ms, p95_ms = (samples[-(-count * percent // 100) - 1] for percent in (50, 95))
    return Latency(verb, count, p50_ms, p95_ms)


def _rename_broken(directory: str) -> None:
    path = os.path.join(directory, NAME)
    os.replace(path, os.path.join(directory, BROKEN_NAME))
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.unlink(path + suffix)


def _build_error(directory: str, error: OSError | sqlite3.Error) -> MemtoolError:
    reason = find_reason(error)
    return MemtoolError(
        f"cannot use the usage statistics: {reason}",
        hint=files.build_chown_command(os.path.join(directory, NAME))
        or f"{NAME} in the memtool directory of git can be deleted: it has only statistics",
        code="ledger",
    )
