"""Purging: which memories are due, which are held back, and which go along."""

from __future__ import annotations

from conftest import Sandbox

from memtool.memory import memory
from memtool.upkeep import purge
from memtool.upkeep.purge import DUE, HELD, LATER

DAY_S = 86_400
NOW = 1_772_366_400  # 2026-03-01T12:00:00Z


def forgotten(sandbox: Sandbox, id_: str, at: str = "2026-01-01T00:00:00Z") -> str:
    return sandbox.memory(id_, status="deleted", deleted={"at": at, "reason": "gone"})


def planned(sandbox: Sandbox) -> dict[str, tuple[str, str]]:
    ws = sandbox.context()
    head = ws.tree("HEAD") if ws.repository.git.head() else None
    candidates = purge.plan(ws.tree(), head, NOW, 30)
    return {candidate.record.id: (candidate.state, candidate.reason) for candidate in candidates}


def test_what_was_forgotten_is_due_after_thirty_days(sandbox: Sandbox) -> None:
    """To the second; other memories are not in the plan."""
    forgotten(sandbox, "dec-old", "2026-01-30T12:00:00Z")
    forgotten(sandbox, "dec-new", "2026-01-30T12:00:01Z")
    sandbox.memory("dec-here")
    sandbox.commit()
    assert planned(sandbox) == {"dec-new": (LATER, "gone"), "dec-old": (DUE, "gone")}


def test_a_deletion_that_nobody_could_see_does_not_count(sandbox: Sandbox) -> None:
    """HEAD must hold it as it is here."""
    sandbox.memory("dec-a")
    forgotten(sandbox, "dec-b")
    sandbox.commit()
    forgotten(sandbox, "dec-a")
    forgotten(sandbox, "dec-b", "2026-01-02T00:00:00Z")
    assert planned(sandbox) == {
        "dec-a": (HELD, "its deletion is not committed yet"),
        "dec-b": (HELD, "it has changes that are not committed"),
    }


def test_a_purge_that_was_cut_off_is_still_due(sandbox: Sandbox) -> None:
    """The file is gone from the worktree, and HEAD has it."""
    path = forgotten(sandbox, "dec-a")
    sandbox.commit()
    (sandbox.path / path).unlink()
    assert planned(sandbox) == {"dec-a": (DUE, "gone")}


def test_what_never_was_committed_may_go_as_well(sandbox: Sandbox) -> None:
    """Before the first commit there is no HEAD to ask."""
    forgotten(sandbox, "dec-a")
    assert planned(sandbox) == {"dec-a": (DUE, "gone")}


def along(sandbox: Sandbox, *ids: str) -> dict[str, str]:
    pairs = purge.find_derived(sandbox.context().tree(), ids)
    return {record.id: origin for record, origin in pairs}


def test_what_was_derived_from_it_alone_goes_along_and_so_on(sandbox: Sandbox) -> None:
    """A memory with another origin stays."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b")
    sandbox.memory("sem-one", derived_from=("dec-a",))
    sandbox.memory("sem-two", derived_from=("sem-one", "dec-a"))
    sandbox.memory("sem-both", derived_from=("dec-a", "dec-b"))
    assert along(sandbox, "dec-a") == {"sem-one": "dec-a", "sem-two": "sem-one"}


def test_a_circle_of_derivation_ends(sandbox: Sandbox) -> None:
    """Memories that are derived from each other, and from themselves, are looked at once."""
    sandbox.memory("dec-a", derived_from=("dec-b",))
    sandbox.memory("dec-b", derived_from=("dec-a", "dec-b"))
    sandbox.memory("dec-c", derived_from=("dec-c",))
    assert along(sandbox, "dec-a") == {"dec-b": "dec-a"}
    assert along(sandbox, "dec-x") == {}


def test_old_digests_that_quote_it_go_and_the_last_is_to_be_renewed(sandbox: Sandbox) -> None:
    """A digest in use sums up others too, and is only told."""
    fields = {"type": "semantic", "source": (f"{memory.SOURCE}0",)}
    sandbox.memory("sem-old", derived_from=("dec-a", "dec-b"), **fields)
    assert along(sandbox, "dec-a") == {}
    mentions = purge.find_mentions(sandbox.context().tree(), ("dec-a",))
    assert [mention.id for mention in mentions] == ["sem-old"]
    sandbox.memory("sem-new", supersedes=("sem-old",), derived_from=("dec-b",), **fields)
    assert along(sandbox, "dec-a") == {"sem-old": "dec-a"}
    assert purge.find_mentions(sandbox.context().tree(), ("dec-a",)) == []
