from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Sandbox
from hypothesis import given
from hypothesis import strategies as st

from memtool.commands.check import check
from memtool.gate import table
from memtool.gate.kin import Kin, Row
from memtool.gate.table import Damaged, Table

IDS = [f"dec-{letter}" for letter in "abcdefgh"]
ROWS = st.lists(
    st.builds(
        Row,
        id=st.sampled_from(IDS),
        path=st.sampled_from([f".memory/{n}\t{n}\\t\n.md" for n in range(12)]),
        status=st.sampled_from(["confirmed", "deleted"]),
        supersedes=st.lists(st.sampled_from([*IDS, "dec-none"]), max_size=3).map(tuple),
    ),
    max_size=10,
    unique_by=lambda row: row.path,
)


def opened(rows: list[Row]) -> Table:
    data = table.written(rows, "c" * 40, "name")
    return Table(data, "c" * 40, data.index(b"\n") + 1)


@given(ROWS, ROWS)
def test_a_table_with_changes_above_it_is_the_whole_tree(
    below: list[Row], above: list[Row]
) -> None:
    """Rows hide those of the table that lie at their paths; every answer is that of one tree."""
    made = opened(below)
    hidden = frozenset(row.path for row in above)
    layered = Kin(above, table=made.rows, newer=made.newer, hidden=hidden)
    whole = Kin([*above, *(row for row in below if row.path not in hidden)])
    for id_ in (*IDS, "dec-none", "dec-zzz"):
        assert layered.rows(id_) == whole.rows(id_)
        assert layered.newer(id_) == whole.newer(id_)
        assert layered.around([id_]).supersedes == whole.around([id_]).supersedes


@given(ROWS.filter(bool), st.data())
def test_a_flipped_bit_is_never_believed(rows: list[Row], data: st.DataObject) -> None:
    """Each line that is looked at has a checksum."""
    good = table.written(rows, "c" * 40, "name")
    start = good.index(b"\n") + 1
    at = data.draw(st.integers(start, len(good) - 2))
    bad = bytearray(good)
    bad[at] ^= 1 << data.draw(st.integers(0, 7))
    honest, flipped = Table(good, "", start), Table(bytes(bad), "", start)
    for id_ in IDS:
        try:
            assert flipped.rows(id_) == honest.rows(id_)
        except Damaged:
            continue


def test_a_long_chain_is_walked_without_recursion() -> None:
    """Two thousand memories, each superseding the one before."""
    rows = [
        Row(f"d-{n}", f"{n}.md", "confirmed", (f"d-{n - 1}",) if n else ()) for n in range(2000)
    ]
    lineage = Kin(rows).around(["d-1000"])
    assert len(lineage.supersedes) == 2000
    assert lineage.heads_of("d-0") == ("d-1999",)


@pytest.fixture
def begun(sandbox: Sandbox) -> Sandbox:
    for number in range(5):
        sandbox.memory(f"dec-{number}xx", f"All about {number}, and {number * 7} more.\n")
    sandbox.commit()
    return sandbox


def found(sandbox: Sandbox) -> list[tuple[str, str]]:
    return [(p.id, p.code) for p in check(sandbox.workspace(), staged=True).problems]


def place(sandbox: Sandbox) -> Path:
    folder = sandbox.path / ".git/memtool/gate"
    (name,) = [name for name in os.listdir(folder) if name.startswith("kin-")]
    return folder / name


def test_the_table_serves_later_commits(begun: Sandbox) -> None:
    """What was committed since is read from git; the table stays as it is."""
    begun.memory("dec-new", "Queues are drained at night.\n", supersedes=("dec-1xx",))
    begun.git("add", ".")
    assert found(begun) == []
    kept = place(begun).read_bytes()
    begun.commit()
    begun.memory("dec-other", "Each table has an owner.\n", supersedes=("dec-1xx",))
    begun.memory("dec-third", "Releases are on Mondays.\n", supersedes=("dec-2xx", "dec-new"))
    begun.git("add", ".")
    assert found(begun) == [("dec-other", "not-a-head"), ("dec-third", "fork")]
    assert place(begun).read_bytes() == kept


@pytest.mark.parametrize("harm", ["cut", "flip", "empty", "gone", "other", "directory"])
def test_a_damaged_table_is_made_anew(begun: Sandbox, harm: str) -> None:
    """The answer is the same, whatever became of the cache."""
    begun.memory("dec-1xx-2", "Queues are drained at night.\n", supersedes=("dec-1xx", "dec-none"))
    begun.git("add", ".")
    expected = found(begun)
    assert expected == [("dec-1xx-2", "dangling")]
    path = place(begun)
    data = path.read_bytes()
    path.unlink()
    if harm == "directory":
        path.mkdir()
    elif harm != "gone":
        new = {"cut": data[: len(data) // 2], "flip": data.replace(b"confirmed", b"Confirmed"),
               "empty": b"", "other": b"memtool-kin 0\tx\ty\n"}[harm]  # fmt: skip
        path.write_bytes(new)
    assert found(begun) == expected


def test_a_commit_that_is_gone_makes_a_new_table(begun: Sandbox) -> None:
    """After a rewritten history the old commit cannot be compared with."""
    begun.memory("dec-new", "Queues are drained at night.\n", supersedes=("dec-none",))
    begun.git("add", ".")
    found(begun)
    path = place(begun)
    data = path.read_bytes()
    head = begun.git("rev-parse", "HEAD").strip().encode()
    path.write_bytes(data.replace(head, b"1" * 40))
    assert found(begun) == [("dec-new", "dangling")]
    assert head in path.read_bytes()[:200]


def test_two_branches_share_one_table(begun: Sandbox) -> None:
    """Switching between them changes answers, not their truth."""
    begun.git("checkout", "--quiet", "-b", "side")
    begun.memory("dec-side", "Queues are drained at night.\n")
    begun.commit()
    begun.memory("dec-new", "Each table has an owner.\n", supersedes=("dec-side",))
    begun.git("add", ".")
    assert found(begun) == []
    begun.git("checkout", "--quiet", "main")
    begun.git("add", ".")
    assert found(begun) == [("dec-new", "dangling")]
