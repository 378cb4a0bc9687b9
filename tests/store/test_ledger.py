from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from memtool.errors import MemtoolError
from memtool.store import ledger, usage_log
from memtool.store.ledger import Injection, UsageCount
from memtool.store.usage_counts import UsageCounts
from memtool.store.usage_log import Note, ShownItem

WRITER = """
import sys
from memtool.store import ledger, usage_log
from memtool.store.usage_log import Note, ShownItem
directory, name, count, full = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
for number in range(count):
    note = Note(number, "show", 1.0, "", name, (ShownItem(f"{name}-{number}"),))
    if usage_log.append_note(directory, note) >= full:
        ledger.fold(directory, is_patient=False)
    print(number, flush=True)
"""


def note(moment: int, verb: str, ms: float, *ids: str, prompt: str = "") -> Note:
    return Note(
        moment, verb, ms, prompt, "", tuple(ShownItem(id_, "retrieval", 1.5, "r") for id_ in ids)
    )


def noted(directory: Path, *notes: Note) -> None:
    for row in notes:
        usage_log.append_note(str(directory), row)
    ledger.fold(str(directory))


def shown(directory: Path, ids: list[str]) -> dict[str, int]:
    return UsageCounts(str(directory)).count_shown(ids)


def sessions(directory: Path) -> list[str]:
    with sqlite3.connect(directory / ledger.NAME) as connection:
        rows = connection.execute(
            "SELECT memory FROM shown JOIN answers ON answer = number ORDER BY memory"
        ).fetchall()
    connection.close()
    return [memory for (memory,) in rows]


def test_notes_become_counts_latencies_and_injections(tmp_path: Path) -> None:
    """Notes can be queried: how often, how long, which memories and for which prompt."""
    noted(
        tmp_path,
        note(10, "search", 4.0, "dec-a", "dec-b"),
        note(20, "inject", 8.0, "dec-a", prompt="feed"),
        note(30, "inject", 2.0),
    )
    with ledger.open_ledger(str(tmp_path)) as usage:
        assert usage.answers() == (3, 10)
        assert usage.most_injected(9) == [UsageCount("dec-a", 1, 20)]
        assert usage.most_shown("", 9) == [UsageCount("dec-a", 2, 20), UsageCount("dec-b", 1, 10)]
        assert usage.most_shown("inject", 9) == [UsageCount("dec-a", 1, 20)]
        injection = Injection(20, "dec-a", "retrieval", 1.5, "r", "feed", "")
        assert usage.injections("", 0) == usage.injections("dec-a", 1) == [injection]
        assert usage.injections("dec-b", 0) == []
    assert shown(tmp_path, ["dec-a", "dec-b"]) == {"dec-a": 2, "dec-b": 1}


def test_percentiles_are_latencies_that_were(tmp_path: Path) -> None:
    """By nearest rank: of 1 to 100 ms the median is 50 and the 95th percentile 95."""
    noted(tmp_path, *(note(n, "show", float(n)) for n in range(100, 0, -1)))
    with ledger.open_ledger(str(tmp_path)) as usage:
        (latency,) = usage.latencies()
    assert (latency.samples, latency.p50_ms, latency.p95_ms) == (100, 50.0, 95.0)


def test_a_memory_counts_once_per_answer(tmp_path: Path) -> None:
    """One that occurs twice in an answer was shown once."""
    noted(tmp_path, note(1, "inject", 1.0, "dec-a", "dec-a"))
    assert shown(tmp_path, ["dec-a"]) == {"dec-a": 1}


def test_injections_come_newest_first_in_the_order_of_their_block(tmp_path: Path) -> None:
    """A list cut by a limit holds the last ones."""
    noted(tmp_path, note(1, "inject", 1.0, "dec-c"), note(2, "inject", 1.0, "dec-b", "dec-a"))
    with ledger.open_ledger(str(tmp_path)) as usage:
        assert [injection.id for injection in usage.injections("", 0)] == [
            "dec-b",
            "dec-a",
            "dec-c",
        ]
        assert [injection.id for injection in usage.injections("", 2)] == ["dec-b", "dec-a"]


def test_folding_twice_counts_once(tmp_path: Path) -> None:
    """A second fold finds nothing new."""
    noted(tmp_path, note(1, "show", 1.0, "dec-a"))
    ledger.fold(str(tmp_path))
    assert shown(tmp_path, ["dec-a"]) == {"dec-a": 1}
    assert usage_log.list_sealed(str(tmp_path)) == []


def test_who_was_killed_between_taking_and_removing_counts_once(tmp_path: Path) -> None:
    """A file that was taken over but is still there is not counted again, but what came late is."""
    usage_log.append_note(str(tmp_path), note(1, "show", 1.0, "dec-a"))
    usage_log.seal(str(tmp_path))
    (path,) = usage_log.list_sealed(str(tmp_path))
    data = Path(path).read_bytes()
    ledger.fold(str(tmp_path))
    with sqlite3.connect(tmp_path / ledger.NAME) as connection:
        connection.execute("INSERT INTO taken VALUES (?, ?)", (os.path.basename(path), len(data)))
    connection.close()
    Path(path).write_bytes(data + usage_log.format_note(note(2, "show", 1.0, "dec-b")))
    ledger.fold(str(tmp_path))
    assert shown(tmp_path, ["dec-a", "dec-b"]) == {"dec-a": 1, "dec-b": 1}


def test_sixteen_processes_lose_nothing(tmp_path: Path) -> None:
    """16 x 100 notes at once, with folds in between, give 1,600 notes, each once."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), f"w{n:02}", "100", "3000"],
            stdout=subprocess.DEVNULL,
        )
        for n in range(16)
    ]
    assert [writer.wait() for writer in writers] == [0] * 16
    ledger.fold(str(tmp_path))
    assert sessions(tmp_path) == sorted(f"w{n:02}-{k}" for n in range(16) for k in range(100))
    assert os.listdir(tmp_path / usage_log.SPOOL_FOLDER) == []


@pytest.mark.slow
def test_killed_processes_leave_whole_notes(tmp_path: Path) -> None:
    """Whenever a process is killed, all that it had noted is there, and nothing half."""
    seen: list[int] = []
    for round_, least in enumerate((1, 7, 30)):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), f"w{round_}", "100000", "2000"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) >= least:
                break
        writer.send_signal(signal.SIGKILL)
        lines = [
            line for line in writer.stdout.read().splitlines(keepends=True) if line[-1] == "\n"
        ]
        writer.stdout.close()
        writer.wait()
        seen.append(int(lines[-1]) if lines else least)
    ledger.fold(str(tmp_path))
    ids = sessions(tmp_path)
    assert len(ids) == len(set(ids))
    for round_, last in enumerate(seen):
        own = [id_ for id_ in ids if id_.startswith(f"w{round_}-")]
        assert last + 1 <= len(own)
        assert sorted(own) == sorted(f"w{round_}-{number}" for number in range(len(own)))


@pytest.mark.parametrize("data", [b"no database", b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_broken_ledger_is_put_aside(tmp_path: Path, data: bytes) -> None:
    """A damaged database costs the old statistics, not the new ones."""
    (tmp_path / ledger.NAME).write_bytes(data)
    noted(tmp_path, note(1, "show", 1.0, "dec-a"))
    assert shown(tmp_path, ["dec-a"]) == {"dec-a": 1}
    assert (tmp_path / "ledger.db.broken").read_bytes() == data


def test_a_ledger_of_another_format_is_put_aside(tmp_path: Path) -> None:
    """One that another version made is neither misread nor destroyed."""
    with sqlite3.connect(tmp_path / ledger.NAME) as connection:
        connection.execute("CREATE TABLE other (x)")
    connection.close()
    noted(tmp_path, note(1, "show", 1.0, "dec-a"))
    assert (tmp_path / "ledger.db.broken").exists()
    assert shown(tmp_path, ["dec-a"]) == {"dec-a": 1}


def test_a_database_that_another_process_holds_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock is not damage: the notes wait in the spool until it is gone."""
    noted(tmp_path, note(1, "show", 1.0, "dec-a"))
    usage_log.append_note(str(tmp_path), note(2, "show", 1.0, "dec-a"))
    monkeypatch.setattr(ledger, "TIMEOUT_S", 0.0)
    connection = sqlite3.connect(tmp_path / ledger.NAME, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(MemtoolError, match="locked"):
        ledger.fold(str(tmp_path))
    connection.execute("ROLLBACK")
    connection.close()
    ledger.fold(str(tmp_path))
    assert shown(tmp_path, ["dec-a"]) == {"dec-a": 2}


def test_a_deleted_ledger_is_an_empty_one(tmp_path: Path) -> None:
    """Nothing is made for a question, and nothing is known."""
    ledger.fold(str(tmp_path))
    with ledger.open_ledger(str(tmp_path)) as usage:
        assert (usage.answers(), usage.latencies(), usage.most_shown("", 5)) == ((0, None), [], [])
        assert usage.injections("", 0) == []
    assert os.listdir(tmp_path) == []


def test_old_answers_are_forgotten_and_counts_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger does not grow for ever."""
    monkeypatch.setattr(ledger, "MAX_ANSWERS", 3)
    noted(tmp_path, *(note(n, "inject", 1.0, "dec-a") for n in range(10)))
    with ledger.open_ledger(str(tmp_path)) as usage:
        assert usage.answers() == (3, 7)
        assert len(usage.injections("", 0)) == 3
        assert usage.most_shown("", 1) == [UsageCount("dec-a", 10, 9)]


def test_words_of_searches_are_bounded(tmp_path: Path) -> None:
    """By number and by age, the oldest go first; deleted, none is left."""
    day = 86_400
    old = Note(0, "search", 1.0, words="old")
    noted(tmp_path, old, Note(ledger.MISS_DAYS * day, "search", 1.0, words="kept"))
    with ledger.open_ledger(str(tmp_path)) as usage:
        assert {row.id for row in usage.missed_words(-1)} == {"old", "kept"}
    late = (ledger.MISS_DAYS + 1) * day
    numbers = range(ledger.MAX_MISSES)
    noted(tmp_path, *(Note(late + n, "search", 1.0, words=f"query {n}") for n in numbers))
    with ledger.open_ledger(str(tmp_path)) as usage:
        assert {row.id for row in usage.missed_words(-1)} == {f"query {n}" for n in numbers}
    ledger.delete_words(str(tmp_path))
    with ledger.open_ledger(str(tmp_path)) as usage:
        assert usage.missed_words(-1) == []


def test_nobody_else_may_read_the_ledger(tmp_path: Path) -> None:
    """Usage is private to its user."""
    noted(tmp_path, note(1, "show", 1.0, "dec-a"))
    usage_log.append_note(str(tmp_path), note(1, "show", 1.0, "dec-a"))
    for path in (ledger.NAME, "spool/notes"):
        assert (tmp_path / path).stat().st_mode & 0o077 == 0, path


def test_few_modules_import_sqlite() -> None:
    """Half an interpreter start is paid here, and where databases of others are read."""
    root = Path(usage_log.__file__).parents[1]
    users = {path.name for path in root.rglob("*.py") if "import sqlite3" in path.read_text()}
    assert users == {"ledger.py", "state.py", "opencode.py", "claude_mem.py"}
