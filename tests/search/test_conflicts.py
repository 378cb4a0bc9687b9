from __future__ import annotations

from conftest import Sandbox

from memtool.gate.near_duplicates import DuplicateIndex, find_repetitions
from memtool.search.conflicts import Conflict, find_contradictions, find_living

YES = {"title": "Use Celery for jobs", "body": "Use Celery for background jobs.\n"}
NO = {"title": "Do not use Celery", "body": "Do not use Celery for background jobs.\n"}


def list_conflicts(sandbox: Sandbox) -> list[Conflict]:
    ws = sandbox.context()
    return find_contradictions(ws.tree(), ws.clock.now)


def test_forks_and_oppositions_are_told_in_order(sandbox: Sandbox):
    """Forks first, each with its ids in sorted order."""
    sandbox.memory("dec-a", **YES)
    sandbox.memory("dec-b", **NO)
    sandbox.memory("dec-old", "Old words.\n")
    sandbox.memory("dec-z", "Zebra text.\n", supersedes=("dec-old",))
    sandbox.memory("dec-y", "Yellow text.\n", supersedes=("dec-old",))
    assert [
        (conflict.kind, conflict.ids, conflict.accepted) for conflict in list_conflicts(sandbox)
    ] == [
        ("fork", ("dec-y", "dec-z"), False),
        ("opposition", ("dec-a", "dec-b"), False),
    ]
    assert list_conflicts(sandbox)[0].reason == "both replace dec-old"


def test_heads_of_a_fork_are_not_told_twice(sandbox: Sandbox):
    """That they also oppose each other adds nothing."""
    sandbox.memory("dec-old", "Old words.\n")
    sandbox.memory("dec-a", **YES, supersedes=("dec-old",))
    sandbox.memory("dec-b", **NO, supersedes=("dec-old",))
    assert [conflict.kind for conflict in list_conflicts(sandbox)] == ["fork"]


def test_only_living_heads_contradict_each_other(sandbox: Sandbox):
    """Superseded, archived, deprecated and expired memories state nothing any more."""
    sandbox.memory("dec-a", **YES)
    for fields in (
        {"status": "archived"},
        {"status": "deprecated"},
        {"valid_through": "2026-02-25"},
    ):
        sandbox.memory("dec-b", **NO, **fields)
        assert list_conflicts(sandbox) == []
    sandbox.memory("dec-b", **NO)
    assert len(list_conflicts(sandbox)) == 1
    sandbox.memory("dec-c", "Other words.\n", supersedes=("dec-a",))
    assert list_conflicts(sandbox) == []
    ws = sandbox.context()
    assert [r.id for r in find_living(ws.tree(), ws.clock.now)] == ["dec-b", "dec-c"]


def test_one_side_that_names_the_other_accepts_the_conflict(sandbox: Sandbox):
    """It does not matter which; of three heads every two must know of each other."""
    sandbox.memory("dec-a", **YES)
    sandbox.memory("dec-b", **NO, conflicts_accepted=("dec-a",))
    assert [conflict.accepted for conflict in list_conflicts(sandbox)] == [True]
    sandbox.memory("dec-old", "Old words.\n")
    for name, accepted in (("x", ("dec-y",)), ("y", ()), ("z", ("dec-x",))):
        sandbox.memory(
            f"dec-{name}", f"{name} text.\n", supersedes=("dec-old",), conflicts_accepted=accepted
        )
    assert [(conflict.kind, conflict.accepted) for conflict in list_conflicts(sandbox)] == [
        ("fork", False),
        ("opposition", True),
    ]


def test_repetitions_are_told_once(sandbox: Sandbox):
    """Two memories that repeat each other are one conflict."""
    body = "Sessions live in Redis because the cookie store grew.\n"
    sandbox.memory("dec-a", body, title="Sessions")
    sandbox.memory("dec-b", body, title="Sessions")
    ws = sandbox.context()
    tree = ws.tree()
    near = DuplicateIndex(tree.records)
    repetitions = find_repetitions(
        tree, tree.records, near, 0.8, ws.clock.now, ws.settings.categories
    )
    assert [(repetition.kind, repetition.ids, repetition.reason) for repetition in repetitions] == [
        ("duplicate", ("dec-a", "dec-b"), "the same words")
    ]


def test_an_id_that_stands_twice_does_not_contradict_itself(sandbox: Sandbox):
    """Two files with one id are another problem, told elsewhere."""
    sandbox.memory("dec-a", **YES)
    text = (sandbox.path / sandbox.memory("dec-x", **NO)).read_text().replace("dec-x", "dec-a")
    (sandbox.path / ".memory/decision/2026-02/dec-x.md").unlink()
    sandbox.write(".memory/other/dec-a.md", text)
    assert list_conflicts(sandbox) == []
