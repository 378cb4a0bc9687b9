from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.store import usage_log
from memtool.store.usage_log import Latency

IDS = st.from_regex(r"[a-z0-9][a-z0-9._-]{2,12}", fullmatch=True)


@given(st.dictionaries(IDS, st.integers(1, 10**6), max_size=40), st.lists(IDS, max_size=10))
def test_every_count_is_found_and_no_other(counts: dict[str, int], strangers: list[str]) -> None:
    """Searching the file by halves gives what a dict would, also for ids that begin alike."""
    with tempfile.TemporaryDirectory() as folder:
        usage_log.write_tallies(folder, counts.items(), [])
        wanted = [*counts, *strangers, *(id_[:-1] for id_ in counts)]
        assert usage_log.accesses(folder, wanted) == {id_: counts.get(id_, 0) for id_ in wanted}


def test_without_files_nothing_was_counted(tmp_path: Path) -> None:
    """A deleted ledger means zeros, not an error."""
    assert usage_log.accesses(str(tmp_path), ["dec-a"]) == {"dec-a": 0}
    assert usage_log.latencies(str(tmp_path)) == []
    assert usage_log.p95(str(tmp_path), "search") == (0.0, 0)


def test_latencies_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Median, 95th percentile and the number of samples come back per verb."""
    rows = [Latency("inject", 3, 1.5, 2.25), Latency("search", 7, 10.0, 400.125)]
    usage_log.write_tallies(str(tmp_path), [], rows)
    assert usage_log.latencies(str(tmp_path)) == rows
    assert usage_log.p95(str(tmp_path), "search") == (400.125, 7)
    assert usage_log.latency(str(tmp_path), "show") == Latency("show", 0, 0.0, 0.0)


@pytest.mark.parametrize("data", [b"", b"\n\n", b"dec-a", b"dec-a\tmany\n", b"\0\xff\n" * 9])
def test_broken_files_count_nothing(tmp_path: Path, data: bytes) -> None:
    """Whatever stands in the files, asking gives zeros."""
    (tmp_path / usage_log.ACCESSES).write_bytes(data)
    (tmp_path / usage_log.LATENCIES).write_bytes(data)
    assert usage_log.accesses(str(tmp_path), ["dec-a", "zzz"]) == {"dec-a": 0, "zzz": 0}
    assert usage_log.latencies(str(tmp_path)) == []


def test_asking_needs_no_database() -> None:
    """What ranking asks must not cost the import of SQLite."""
    script = (
        "import sys; from memtool.store import tallies; "
        "tallies.accesses('/nowhere', ['dec-a']); tallies.p95('/nowhere', 'search'); "
        "print(sorted({'sqlite3', '_sqlite3', 'json', 're', 'typing'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
