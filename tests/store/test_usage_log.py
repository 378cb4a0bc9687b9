from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.store import usage_log

IDS = st.from_regex(r"[a-z0-9][a-z0-9._-]{2,12}", fullmatch=True)


@given(st.dictionaries(IDS, st.integers(1, 10**6), max_size=40), st.lists(IDS, max_size=10))
def test_every_count_is_found_and_no_other(counts: dict[str, int], strangers: list[str]) -> None:
    """Searching the file by halves gives what a dict would, also for ids that begin alike."""
    with tempfile.TemporaryDirectory() as folder:
        usage_log.write_accesses(folder, counts.items())
        wanted = [*counts, *strangers, *(id_[:-1] for id_ in counts)]
        assert usage_log.accesses(folder, wanted) == {id_: counts.get(id_, 0) for id_ in wanted}


def test_without_files_nothing_was_counted(tmp_path: Path) -> None:
    """A deleted ledger means zeros, not an error."""
    assert usage_log.accesses(str(tmp_path), ["dec-a"]) == {"dec-a": 0}


@pytest.mark.parametrize("data", [b"", b"\n\n", b"dec-a", b"dec-a\tmany\n", b"\0\xff\n" * 9])
def test_broken_files_count_nothing(tmp_path: Path, data: bytes) -> None:
    """Whatever the file holds, asking gives zeros."""
    (tmp_path / usage_log.ACCESSES).write_bytes(data)
    assert usage_log.accesses(str(tmp_path), ["dec-a", "zzz"]) == {"dec-a": 0, "zzz": 0}


def test_asking_needs_no_database() -> None:
    """What ranking asks must not cost the import of SQLite."""
    script = (
        "import sys; from memtool.store import usage_log; "
        "usage_log.accesses('/nowhere', ['dec-a']); "
        "print(sorted({'sqlite3', '_sqlite3', 'json', 're', 'typing'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
