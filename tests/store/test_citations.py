"""Citations: the table says what git says, whatever happened to it, and starts no git."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from conftest import Sandbox
from hypothesis import given
from hypothesis import strategies as st

from memtool.store import provenance
from memtool.store.cache import CorruptCache
from memtool.store.provenance import Basis, Citation, Origin, ProvenanceTable, Witness


def basis(sandbox: Sandbox) -> Basis:
    found = Witness(sandbox.context().snapshot()).basis
    assert found is not None
    return found


def tables(sandbox: Sandbox) -> list[Path]:
    return sorted((sandbox.path / ".git" / "memtool" / "citations").glob("*"))


def both(sandbox: Sandbox, **settings: str) -> dict[str, Origin]:
    """Origins by id, the same from the cache and from git."""
    tree = sandbox.context().tree()
    found = Witness(tree.snapshot, **settings).origins(tree.records)
    plain = Witness(tree.snapshot, is_cached=False, **settings).origins(tree.records)
    assert found == plain
    return {record.id: found[record.path] for record in tree.records}


def without_git(sandbox: Sandbox) -> Sandbox:
    """The same repository for processes that cannot start git."""
    return Sandbox(sandbox.path, sandbox.env | {"PATH": "/nowhere"})


paths = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
oids = st.text("0123456789abcdef", min_size=1, max_size=8)
rows = st.builds(Citation, oids, words, words, st.integers(), st.booleans(), words, words)


@given(st.dictionaries(paths, rows, max_size=12), paths)
def test_a_table_holds_what_was_put_in(found: dict[str, Citation], absent: str) -> None:
    """Every row comes back, and no other is there."""
    table = ProvenanceTable(memoryview(provenance.written(found)))
    assert {path: table.row(path) for path in found} == found
    assert table.row(absent) == found.get(absent)


def test_damage_is_never_an_answer(sandbox: Sandbox) -> None:
    """A flipped bit or a cut gives the true row or a refusal, for every place and every path."""
    row = Citation(
        "ab" * 20, "cd" * 20, "Ada", 17, is_shallow=False, trusted_oid="", trusted_commit=""
    )
    found = {f".memory/{n}.md": row.replace(date=n) for n in range(9)}
    whole = provenance.written(found)
    draw = random.Random(1)
    for at in range(len(whole)):
        bent = bytearray(whole)
        bent[at] ^= 1 << draw.randrange(8)
        for data in (bytes(bent), whole[:at]):
            for path in (*found, ".memory/none.md"):
                try:
                    answer = ProvenanceTable(memoryview(data)).row(path)
                except CorruptCache:
                    continue
                assert answer == found.get(path)


def test_the_warm_answer_starts_no_git(sandbox: Sandbox) -> None:
    """Once the table is there, citations and trust come without a child process."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b")
    sandbox.commit()
    sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD")
    sandbox.memory("dec-b", "other\n")
    sandbox.memory("dec-c")
    expected = both(sandbox)
    assert [origin.trust for origin in expected.values()] == ["trusted", "local", "local"]
    first = sandbox.context()
    first.origins(first.tree(), first.tree().records)
    ws = without_git(sandbox).context()
    tree = ws.tree()
    assert ws.origins(tree, tree.records) == {r.path: expected[r.id] for r in tree.records}


@pytest.mark.parametrize("damage", ["empty", "cut", "flip", "folder", "none"])
def test_a_broken_cache_costs_time_only(sandbox: Sandbox, damage: str) -> None:
    """Missing, cut, changed or in the way: git answers, and the table is whole again."""
    for name in ("a", "b", "c"):
        sandbox.memory(f"dec-{name}")
    sandbox.commit()
    expected = both(sandbox)
    (place,) = tables(sandbox)
    data = place.read_bytes()
    place.unlink()
    if damage == "folder":
        place.mkdir()
    elif damage != "none":
        bent = {"empty": b"", "cut": data[:-9], "flip": data[:60] + b"?" + data[61:]}
        place.write_bytes(bent[damage])
    assert both(sandbox) == expected
    if damage != "folder":
        assert tables(sandbox)[0].read_bytes() == data


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_cache_costs_time_only(sandbox: Sandbox) -> None:
    """Where nothing can be kept, git is asked every time."""
    sandbox.memory("dec-a")
    sandbox.commit()
    (sandbox.path / ".git").chmod(0o555)
    try:
        assert both(sandbox)["dec-a"].trust == "committed"
    finally:
        (sandbox.path / ".git").chmod(0o755)


def test_every_history_gives_the_same_with_and_without_a_table(sandbox: Sandbox) -> None:
    """Commits, edits, reverts, deletions, renames, merges, resets: never another origin."""
    draw = random.Random(5)
    sandbox.memory("dec-0")
    sandbox.commit()
    for step in range(1, 26):
        kind = draw.choice(("add", "edit", "edit", "delete", "merge", "reset", "push", "none"))
        name = f"dec-{draw.randrange(step)}"
        if kind == "add":
            sandbox.memory(f"dec-{step}")
        elif kind == "edit":
            sandbox.memory(name, draw.choice(("one\n", "two\n")))
        elif kind == "delete":
            sandbox.git(
                "rm", "--quiet", "-f", "--ignore-unmatch", f".memory/decision/2026-02/{name}.md"
            )
        elif kind == "merge":
            sandbox.git("checkout", "--quiet", "-b", f"side{step}", "HEAD~1", check=False)
            sandbox.memory(f"dec-side{step}")
            sandbox.memory(name, "two\n")
            sandbox.git("add", ".")
            sandbox.git("commit", "--quiet", "--allow-empty", "-m", "side")
            sandbox.git("checkout", "--quiet", "main")
            sandbox.git("merge", "--quiet", "--no-edit", "-X", "ours", f"side{step}", check=False)
        elif kind == "reset":
            sandbox.git("reset", "--quiet", "--hard", "HEAD~1", check=False)
        elif kind == "push":
            sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD")
        sandbox.git("add", "--all")
        sandbox.git("commit", "--quiet", "--allow-empty", "-m", kind)
        both(sandbox)
    assert len(tables(sandbox)) <= provenance.KEPT


def test_plain_commits_reuse_the_older_table(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a straight commit only what it touched is looked for in history."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b")
    first = sandbox.commit()
    both(sandbox)
    sandbox.memory("dec-b", "other\n")
    second = sandbox.commit()
    monkeypatch.setattr(provenance, "last_commits", lambda *_a, **_k: pytest.fail("walked"))
    table = provenance.table_of(basis(sandbox))
    found = [table.row(f".memory/decision/2026-02/dec-{name}.md") for name in "ab"]
    assert [row.commit for row in found if row] == [first, second]


def test_an_extended_table_forgets_what_was_removed_and_is_written_again_when_long(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commit after commit the rows are those that git gives, whatever lies above the first ones."""
    for name in "abcdef":
        sandbox.memory(f"dec-{name}")
    sandbox.commit()
    both(sandbox)
    monkeypatch.setattr(provenance, "NEWER_MOST", 3)
    for name in "abcde":
        sandbox.git("rm", "-q", f".memory/decision/2026-02/dec-{name}.md")
        sandbox.memory("dec-f", f"after {name}\n")
        sandbox.commit()
        assert f"dec-{name}" not in both(sandbox)
        table = provenance.table_of(basis(sandbox))
        assert table.row(f".memory/decision/2026-02/dec-{name}.md") is None
        row = table.row(".memory/decision/2026-02/dec-f.md")
        assert row is not None
        assert row.commit == sandbox.git("rev-parse", "HEAD").strip()


def test_a_table_of_another_clone_depth_is_not_used(sandbox: Sandbox, tmp_path: Path) -> None:
    """When a shallow clone is deepened, the authors become known."""
    sandbox.memory("dec-a")
    first = sandbox.commit()
    sandbox.memory("dec-b")
    sandbox.commit()
    sandbox.git("clone", "--quiet", "--depth", "1", f"file://{sandbox.path}", str(tmp_path / "c"))
    clone = Sandbox(tmp_path / "c", sandbox.env)
    assert both(clone)["dec-a"].is_shallow
    clone.git("fetch", "--quiet", "--unshallow")
    assert both(clone)["dec-a"].commit == first


def test_a_file_of_a_commit_is_read_once(sandbox: Sandbox) -> None:
    """The settings of the trusted side are kept, absent ones too; a bent copy is read anew."""
    commit = "1" * 40
    repository = sandbox.context().repository
    for data in (b"[trust]\n", None):
        name = f"x-{data!r}"
        assert provenance.file_at(repository, commit, name, lambda data=data: data) == data
        assert provenance.file_at(repository, commit, name, lambda: b"other") == data
    for place in tables(sandbox):
        place.write_bytes(b"?" + place.read_bytes()[1:])
    assert provenance.file_at(repository, commit, "x-None", lambda: b"new") == b"new"
