"""Counts of the ledger as a ranking asks for them: right, or zero, and never an error."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from memtool.store import ledger, usage_counts, usage_log
from memtool.store.usage_counts import UsageCounts
from memtool.store.usage_log import Note, ShownItem

if TYPE_CHECKING:
    from pathlib import Path

DAY_S = 86_400


def show(directory: Path, verb: str = "search", *ids: str) -> None:
    """Let an answer show memories, and take it over."""
    items = tuple(ShownItem(id_) for id_ in ids or ("dec-a",))
    usage_log.append_note(str(directory), Note(1, verb, 1.0, items=items))
    ledger.fold(str(directory))


def test_every_count_is_found_and_no_other(tmp_path: Path) -> None:
    """Of all verbs together; of many ids at once."""
    show(tmp_path, "search", "dec-a", "dec-ab")
    show(tmp_path, "inject", "dec-a")
    strangers = [f"dec-{number}" for number in range(1_200)]
    counts = UsageCounts(str(tmp_path)).count_shown(["dec-a", *strangers, "dec-ab"])
    assert counts == {**dict.fromkeys(strangers, 0), "dec-a": 2, "dec-ab": 1}


@pytest.mark.parametrize("data", [None, b"", b"no database", b"SQLite format 3\0" + b"\xff" * 4096])
def test_what_cannot_be_read_was_never_shown(tmp_path: Path, data: bytes | None) -> None:
    """A ledger that is deleted, empty or damaged means zeros, not an error."""
    if data is not None:
        (tmp_path / usage_log.LEDGER).write_bytes(data)
    counts = UsageCounts(str(tmp_path))
    assert counts.count_shown(["dec-a"]) == counts.count_settled(["dec-a"]) == {"dec-a": 0}


def test_a_ledger_of_an_older_version_has_no_settled_counts(tmp_path: Path) -> None:
    """They are there once notes are taken over."""
    show(tmp_path)
    with sqlite3.connect(tmp_path / usage_log.LEDGER) as connection:
        connection.executescript("DROP TABLE settled; DROP TABLE folded")
    connection.close()
    assert UsageCounts(str(tmp_path)).count_settled(["dec-a"]) == {"dec-a": 0}
    show(tmp_path)
    assert UsageCounts(str(tmp_path)).count_settled(["dec-a"]) == {"dec-a": 1}


def test_settled_counts_are_those_of_the_last_day_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is taken over on a day, its first reader and its last one read the same."""
    now = [100.0 * DAY_S]
    for module in (ledger, usage_counts):
        monkeypatch.setattr(module.time, "time", lambda: now[0])

    def settled() -> int:
        return UsageCounts(str(tmp_path)).count_settled(["dec-a"])["dec-a"]

    assert settled() == 0
    for _time in range(2):
        show(tmp_path)
        assert settled() == 0
    now[0] += DAY_S
    for _time in range(2):
        assert settled() == 2
        show(tmp_path)
    assert settled() == 2
    now[0] += DAY_S
    assert settled() == 4
