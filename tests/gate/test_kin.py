from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Sandbox
from hypothesis import given
from hypothesis import strategies as st

from memtool.commands.check import check
from memtool.gate.kin import Kin, Row
from memtool.gate.near_duplicates import Rows, Table

IDS = [f"dec-{letter}" for letter in "abcdefgh"]
ROWS = st.lists(
    st.builds(
        Row,
        id=st.sampled_from(IDS),
        path=st.sampled_from([f".memory/{n}\t{n}\\t \n/" for n in range(12)]),
        status=st.sampled_from(["confirmed", "deleted"]),
        supersedes=st.lists(st.sampled_from([*IDS, "dec-none"]), max_size=3).map(tuple),
        oid=st.just("0" * 40),
        bits=st.integers(0, 7),
    ).map(lambda row: row.replace(
        path=f"{row.path}{row.id}.md",
        supersedes=() if row.status == "deleted" else row.supersedes,
    )),
    max_size=6,
    unique_by=lambda row: row.path,
)  # fmt: skip


def opened(rows: list[Row]) -> Table:
    return Table(memoryview(Table.pack(sorted(rows, key=lambda row: row.path))))


@given(ROWS, ROWS, st.lists(st.integers(0, 9)))
def test_a_table_with_changes_above_it_is_the_whole_tree(
    below: list[Row], above: list[Row], gone: list[int]
) -> None:
    """Rows hide those of the table that lie at their paths; every answer is that of one tree."""
    removed = {below[at].path for at in gone if at < len(below)}
    hidden = removed.union(row.path for row in above)
    left = [row for row in below if row.path not in hidden]
    layered, whole = Rows(above, opened(below), removed), Rows([*above, *left])
    one, other = Kin((), layered), Kin([*above, *left])
    for id_ in (*IDS, "dec-none", "dec-zzz"):
        assert [row.path for row in one.rows(id_)] == [row.path for row in other.rows(id_)]
        assert one.newer(id_) == other.newer(id_)
        assert one.around([id_]).supersedes == other.around([id_]).supersedes
    for bits in range(8):
        assert layered.like(bits) == whole.like(bits)
    assert layered.count == whole.count


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
    return [(p.id, p.code) for p in check(sandbox.context(), staged=True).problems]


def place(sandbox: Sandbox) -> Path:
    folder = sandbox.path / ".git/memtool/twins"
    (name,) = os.listdir(folder)
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
               "empty": b"", "other": data.replace(b"twins 3", b"twins 0")}[harm]  # fmt: skip
        path.write_bytes(new)
    assert found(begun) == expected


def test_a_tree_that_is_gone_makes_a_new_table(begun: Sandbox) -> None:
    """After a rewritten history the old tree cannot be compared with."""
    begun.memory("dec-new", "Queues are drained at night.\n", supersedes=("dec-none",))
    begun.git("add", ".")
    found(begun)
    path = place(begun)
    path.rename(path.with_name(f"{path.name[:-40]}{'1' * 40}"))
    assert found(begun) == [("dec-new", "dangling")]
    tree = begun.git("rev-parse", "HEAD^{tree}").strip()
    assert path.with_name(f"{path.name[:-40]}{tree}").exists()


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
