"""The ledger: usage counts, latencies and audited acts in SQLite, filled from the usage log.

Nothing depends on it: deleting it, or any file next to it, loses statistics only. It never holds a
prompt, only its hash. Audited acts are bounded: beyond `MOST` the oldest go until `LEFT` remain,
but for deletions and redactions of the last 90 days.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress

from memtool.errors import MemtoolError, reason_of
from memtool.memory.timestamps import DAY_S
from memtool.store import files
from memtool.store.cache import BUILT, HIT, READ
from memtool.store.state import is_unavailable
from memtool.store.usage_counts import PATIENCE_S, connect_to_read
from memtool.store.usage_log import (
    INTENT,
    KEPT_DAYS,
    KEPT_KINDS,
    LEDGER,
    SPOOL_FOLDER,
    AuditEvent,
    Note,
    claim,
    read_events,
    read_notes,
    seal,
    sealed,
    waiting,
)
from memtool.value import Value

MOST = 5_000
LEFT = 4_000
ONCE = "deny"
"""The kind that is kept once for the same subjects: every promotion comes upon it again."""
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
_LATER_SCHEMAS = (_AUDIT_SCHEMA, _DEPTHS_SCHEMA, _COSTS_SCHEMA, _SETTLED_SCHEMA, _FOLDED_SCHEMA)
"""Tables that an older ledger may lack."""


class CacheUse(Value):
    """How answers found the index: as it was, to be brought up to date, or to be made anew.

    `damaged` counts answers that came upon a damaged cache; `hit_share` is None without answers.
    """

    answers: int
    hits: int
    updates: int
    rebuilds: int
    damaged: int
    hit_share: float | None


class LockWaits(Value):
    """How many answers waited for a lock of another process, and how long in milliseconds."""

    waits: int
    total_ms: float
    longest_ms: float


class Act(Value):
    """One act: when it began, and its outcome: running, done, refused or interrupted."""

    moment: int
    kind: str
    outcome: str
    subjects: tuple[str, ...]
    detail: str
    operation: str


NAME = LEDGER
FORMAT = 1
KEPT_ANSWERS = 10_000
"""Answers that are kept in detail; of older ones only the counts remain."""
SAMPLES = 1_000
"""The last answers of a verb that its latencies are taken from."""
INJECTING = ("inject", "hook-start", "hook-edit")
"""What answers are noted as that nobody asked for: they reached an agent by themselves."""
FIRST_PLACES = 3
"""Results of a search that count as used; who sees more looks through a list."""
ASIDE = f"{NAME}.broken"
"""What a ledger that is no database becomes."""
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


class Counted(Value):
    """A memory, how many answers showed it, and the second of the last one."""

    id: str
    count: int
    last: int


class Injection(Value):
    """A memory that was injected: when, for the hash of which prompt, where and why."""

    moment: int
    id: str
    tier: str
    score: float | None
    reason: str
    prompt: str
    session: str


class Latency(Value):
    """How long a verb took, over its last answers: the median and the 95th percentile."""

    verb: str
    samples: int
    p50_ms: float
    p95_ms: float


class Ledger:
    """An open ledger, to be asked."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def answers(self) -> tuple[int, int | None]:
        """Return how many answers are kept in detail, and the second of the first one."""
        row = self._connection.execute("SELECT count(*), min(moment) FROM answers").fetchone()
        return int(row[0]), row[1]

    def latencies(self) -> list[Latency]:
        """Return how long each verb took, over its last answers, by name."""
        verbs = self._connection.execute("SELECT DISTINCT verb FROM answers ORDER BY verb")
        return [_latency(verb, self._samples(verb)) for (verb,) in verbs.fetchall()]

    def _samples(self, verb: str) -> list[float]:
        query = "SELECT elapsed_ms FROM answers WHERE verb = ? ORDER BY number DESC LIMIT ?"
        return sorted(ms for (ms,) in self._connection.execute(query, (verb, SAMPLES)))

    def timed(self) -> list[tuple[str, int, float]]:
        """Return the verb, second and milliseconds of each answer kept, the oldest first."""
        query = "SELECT verb, moment, elapsed_ms FROM answers ORDER BY moment, number"
        return self._connection.execute(query).fetchall()

    def missed(self, limit: int) -> list[Counted]:
        """Return questions that a search answered with nothing, the most asked first.

        Each is named by the hash of its prompt, which is all that is kept of it.
        """
        query = (
            "SELECT prompt, count(*), max(moment) FROM answers WHERE verb = 'search' "
            "AND NOT EXISTS (SELECT 1 FROM shown WHERE answer = number) "
            "GROUP BY prompt ORDER BY 2 DESC, 1 LIMIT ?"
        )
        return [Counted(*row) for row in self._connection.execute(query, (limit,))]

    def asked_ms(self) -> list[float]:
        """Return how long the last questions took, the oldest first."""
        query = "SELECT elapsed_ms FROM answers WHERE verb IN (?, ?) ORDER BY number DESC LIMIT ?"
        rows = self._connection.execute(query, (*ASKED, MOST_LATENCIES)).fetchall()
        return [ms for (ms,) in reversed(rows)]

    def depths(self) -> dict[str, int]:
        """Return how many questions each level answered, of those that are kept in detail."""
        if not self._has("depths"):
            return {}
        query = "SELECT depth, count(*) FROM depths GROUP BY depth ORDER BY 2 DESC, 1"
        return dict(self._connection.execute(query).fetchall())

    def cache_use(self) -> CacheUse:
        """Return how answers found the index, of those that are kept in detail."""
        if not self._has("costs"):
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
        """Return how long answers waited for locks, of those that are kept in detail."""
        if not self._has("costs"):
            return LockWaits(0, 0.0, 0.0)
        query = "SELECT count(*), total(waited_ms), max(waited_ms) FROM costs WHERE waited_ms > 0"
        waits, total_ms, longest_ms = self._connection.execute(query).fetchone()
        return LockWaits(waits, round(total_ms, 3), longest_ms or 0.0)

    def taken_together(self, verbs: Sequence[str]) -> Latency | None:
        """Return how long the last answers of some verbs took, as one; None where there are none.

        The `verb` of the row is empty.
        """
        marks = ",".join("?" * len(verbs))
        query = (
            f"SELECT elapsed_ms FROM answers WHERE verb IN ({marks}) ORDER BY number DESC LIMIT ?"  # noqa: S608  # question marks alone
        )
        found = sorted(ms for (ms,) in self._connection.execute(query, (*verbs, SAMPLES)))
        return _latency("", found) if found else None

    def _has(self, table: str) -> bool:
        """Tell whether there is a table: a ledger may be older than it."""
        query = "SELECT 1 FROM sqlite_master WHERE name = ?"
        return self._connection.execute(query, (table,)).fetchone() is not None

    def counts(self) -> list[tuple[str, int]]:
        """Return how many answers showed each memory, in no order."""
        query = "SELECT memory, sum(count) FROM counts GROUP BY memory"
        return self._connection.execute(query).fetchall()

    def used(self) -> list[tuple[str, int]]:
        """Return each memory with the second of each use, the oldest first.

        It was shown by its id, or stood among the first of a search.
        """
        query = (
            "SELECT memory, moment FROM shown JOIN answers ON answer = number "
            "WHERE verb = 'show' OR (verb = 'search' AND place < ?) ORDER BY moment, number"
        )
        return self._connection.execute(query, (FIRST_PLACES,)).fetchall()

    def most(self, verb: str, limit: int) -> list[Counted]:
        """Return the memories that a verb showed most, all verbs if it is empty; then by id."""
        query = (
            "SELECT memory, sum(count), max(last) FROM counts WHERE verb = ?1 OR ?1 = '' "
            "GROUP BY memory ORDER BY 2 DESC, 1 LIMIT ?2"
        )
        return [Counted(*row) for row in self._connection.execute(query, (verb, limit))]

    def most_injected(self, limit: int) -> list[Counted]:
        """Return the memories that agents got most, whether they asked or a hook answered."""
        query = (
            "SELECT memory, sum(count), max(last) FROM counts WHERE verb IN (?, ?, ?) "
            "GROUP BY memory ORDER BY 2 DESC, 1 LIMIT ?"
        )
        return [Counted(*row) for row in self._connection.execute(query, (*INJECTING, limit))]

    def injections(self, memory: str, limit: int) -> list[Injection]:
        """Return the last injections, newest first; of all memories if none is named.

        A limit of 0 means all. Those of one answer stand in the order of its block.
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
        """Return moment and id of each memory of the newest block that had any, in its order."""
        query = (
            "SELECT moment, memory FROM shown JOIN answers ON answer = number WHERE answer = ("
            "SELECT max(answer) FROM shown JOIN answers ON answer = number WHERE verb IN (?, ?, ?))"
            " ORDER BY place"
        )
        return self._connection.execute(query, INJECTING).fetchall()

    def acts(self) -> list[Act]:
        """Return what was done that git alone does not show, newest first."""
        if not self._has("audit"):
            return []
        query = "SELECT moment, operation, kind, phase, subjects, detail FROM audit ORDER BY number"
        found: dict[str, Act] = {}
        for moment, operation, kind, phase, subjects, detail in self._connection.execute(query):
            began = found.get(operation)
            outcome = RUNNING if phase == INTENT else phase
            at = began.moment if began else moment
            found[operation] = Act(at, kind, outcome, tuple(subjects.split()), detail, operation)
        return sorted(found.values(), key=lambda act: (-act.moment, act.operation))


def fold(directory: str, *, is_patient: bool = True) -> bool:
    """Take the notes of the spool over.

    `directory` is the cache directory of the repository. Each note is taken over exactly once,
    whoever is killed on the way. Where another process is at it, a patient caller waits and others
    leave it to it. Return whether the ledger was no database and was put aside.

    Raises:
        MemtoolError: the ledger cannot be written.
    """
    try:
        handle = files.open_folder(os.path.join(directory, SPOOL_FOLDER))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _refusal(directory, error) from None
    try:
        files.lock(handle, waits=is_patient)
        seal(directory)
        try:
            _fold(directory)
        except sqlite3.DatabaseError as error:
            if is_unavailable(error):
                raise
            _put_aside(directory)
            _fold(directory)
            return True
    except BlockingIOError:
        return False
    except (OSError, sqlite3.Error) as error:
        raise _refusal(directory, error) from None
    finally:
        os.close(handle)
    return False


@contextmanager
def reading(directory: str) -> Iterator[Ledger]:
    """Open the ledger to ask it; it is empty where there is none.

    Raises:
        MemtoolError: it is there, and cannot be read.
    """
    path = os.path.join(directory, NAME)
    try:
        with closing(_connect_to_read(path)) as connection:
            yield Ledger(connection)
    except sqlite3.Error as error:
        raise _refusal(directory, error) from None


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
        for path in sealed(directory):
            handle = claim(path)
            if handle is not None:
                try:
                    _take(connection, path, handle)
                    os.unlink(path)
                finally:
                    os.close(handle)
        left = {os.path.basename(path) for path in sealed(directory)}
        names = [name for (name,) in connection.execute("SELECT name FROM taken").fetchall()]
        gone = [(name,) for name in names if name not in left]
        connection.executemany("DELETE FROM taken WHERE name = ?", gone)


def _settle(connection: sqlite3.Connection, today: int) -> None:
    """Note what was counted before this day, the first time on a day that notes are taken over."""
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


ASKED = ("inject", "search")
"""The answers that somebody waits for and that a search makes."""
MOST_LATENCIES = 100
LEAST_LATENCIES = 20
"""Fewer answers have no 95th percentile."""
SLOW_MS = 300.0
HEALTHY, DEGRADED, TOO_FEW = "healthy", "degraded", "too few answers"


class Health(Value):
    """How long the last questions took.

    `state` is `healthy`, `degraded` where their 95th percentile is over `SLOW_MS`, or `too few
    answers`; `p95_ms` is None then.
    """

    state: str
    samples: int
    p95_ms: float | None


def health(directory: str) -> Health:
    """Return how long the last questions took, at most `MOST_LATENCIES` of them.

    Those that the spool still has are the last ones; the ledger counts as empty if it cannot be
    read.
    """
    try:
        with reading(directory) as held:
            found = held.asked_ms()
    except MemtoolError:
        found = []
    found += [note.elapsed_ms for note in waiting(directory) if note.verb in ASKED]
    samples = sorted(found[-MOST_LATENCIES:])
    if len(samples) < LEAST_LATENCIES:
        return Health(TOO_FEW, len(samples), None)
    p95_ms = samples[-(-len(samples) * 95 // 100) - 1]  # by nearest rank: one that was
    return Health(DEGRADED if p95_ms > SLOW_MS else HEALTHY, len(samples), p95_ms)


def _connect(path: str) -> sqlite3.Connection:
    """Open the database to write, making it where it is absent. Every statement is on its own."""
    if not os.path.exists(path):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    connection = sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None)
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


def _take(connection: sqlite3.Connection, path: str, handle: int) -> None:
    """Take over what of a file is not taken over yet: a killed process may have left it behind."""
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
    oldest = newest - KEPT_ANSWERS
    connection.execute("DELETE FROM shown WHERE answer <= ?", (oldest,))
    connection.execute("DELETE FROM depths WHERE answer <= ?", (oldest,))
    connection.execute("DELETE FROM costs WHERE answer <= ?", (oldest,))
    connection.execute("DELETE FROM answers WHERE number <= ?", (oldest,))


def _insert_events(connection: sqlite3.Connection, events: Iterable[AuditEvent]) -> None:
    """Take events over, and drop what is too old; what is kept once only is not repeated."""
    known = "SELECT 1 FROM audit WHERE kind = ? AND subjects = ?"
    for event in events:
        subjects = " ".join(event.subjects)
        if event.kind == ONCE and connection.execute(known, (event.kind, subjects)).fetchone():
            continue
        connection.execute(
            "INSERT INTO audit (moment, operation, kind, phase, subjects, detail) "
            "VALUES (?,?,?,?,?,?)",
            (event.moment, event.operation, event.kind, event.phase, subjects, event.detail),
        )
    count, last, newest = connection.execute(
        "SELECT count(*), max(number), max(moment) FROM audit"
    ).fetchone()
    if count > MOST:
        marks = ",".join("?" * len(KEPT_KINDS))
        connection.execute(
            f"DELETE FROM audit WHERE number <= ? AND NOT (kind IN ({marks}) AND moment >= ?)",  # noqa: S608  # question marks alone
            (last - LEFT, *KEPT_KINDS, newest - KEPT_DAYS * DAY_S),
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


def _latency(verb: str, samples: list[float]) -> Latency:
    """Return the percentiles of sorted samples, by nearest rank: each is a latency that was."""
    count = len(samples)
    p50_ms, p95_ms = (samples[-(-count * percent // 100) - 1] for percent in (50, 95))
    return Latency(verb, count, p50_ms, p95_ms)


def _put_aside(directory: str) -> None:
    path = os.path.join(directory, NAME)
    os.replace(path, os.path.join(directory, ASIDE))
    for beside in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.unlink(path + beside)


def _refusal(directory: str, error: OSError | sqlite3.Error) -> MemtoolError:
    reason = reason_of(error)
    return MemtoolError(
        f"the ledger cannot be used: {reason}",
        hint=files.chown_command(os.path.join(directory, NAME))
        or f"{NAME} in the memtool directory of git may be deleted: it holds statistics, and the "
        "audit of deletions is in audit.log as well",
        code="ledger",
    )
