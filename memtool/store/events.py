"""Events: the table of the ledger that holds the audit, and the acts that its rows tell of.

It is bounded: beyond `MOST` the oldest go until `LEFT` remain, but for deletions and redactions of
the last 90 days.
"""

from __future__ import annotations

from memtool.memory.moments import DAY_S
from memtool.store.audit import INTENT, KEPT_DAYS, KEPT_KINDS, Event
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Connection

MOST = 5_000
LEFT = 4_000
ONCE = "deny"
"""The kind that is kept once for the same subjects: every promotion comes upon it again."""
RUNNING = "running"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS audit (
    number INTEGER PRIMARY KEY, moment INTEGER NOT NULL, operation TEXT NOT NULL,
    kind TEXT NOT NULL, phase TEXT NOT NULL, subjects TEXT NOT NULL, detail TEXT NOT NULL)
"""


class Act(Value):
    """One act: when it began, and its outcome: running, done, refused or interrupted."""

    moment: int
    kind: str
    outcome: str
    subjects: tuple[str, ...]
    detail: str
    operation: str


def prepare(connection: Connection) -> None:
    """Make the table where it is absent: a ledger may be older than the audit."""
    connection.execute(_SCHEMA)


def insert(connection: Connection, events: Iterable[Event]) -> None:
    """Take events over, inside a transaction of the caller, and drop what is too old."""
    for event in events:
        subjects = " ".join(event.subjects)
        if event.kind == ONCE and _is_known(connection, event.kind, subjects):
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


def acts(connection: Connection) -> list[Act]:
    """Return the acts, those that began last first. A ledger without the table has none."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'audit'").fetchone():
        return []
    query = "SELECT moment, operation, kind, phase, subjects, detail FROM audit ORDER BY number"
    found: dict[str, Act] = {}
    for moment, operation, kind, phase, subjects, detail in connection.execute(query):
        began = found.get(operation)
        outcome = RUNNING if phase == INTENT else phase
        at = began.moment if began else moment
        found[operation] = Act(at, kind, outcome, tuple(subjects.split()), detail, operation)
    return sorted(found.values(), key=lambda act: (-act.moment, act.operation))


def _is_known(connection: Connection, kind: str, subjects: str) -> bool:
    query = "SELECT 1 FROM audit WHERE kind = ? AND subjects = ?"
    return connection.execute(query, (kind, subjects)).fetchone() is not None
