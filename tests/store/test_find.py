"""How text names a memory: `Tree.find`, in the order of its rules."""

from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.errors import MemtoolError

SEAT = "dec-2026-08-10-hold-a-seat-for-20-minutes-2g54"
OLD = "dec-2026-05-12-hold-a-seat-for-15-minutes-h1yz"


def find(sandbox: Sandbox, text: str) -> str:
    return sandbox.context().tree().find(text).id


def test_a_short_id_means_its_memory(sandbox: Sandbox) -> None:
    """With its date too, or as a block cites it."""
    sandbox.memory(SEAT)
    sandbox.memory(OLD)
    for text in ("dec-2g54", "dec-2026-08-10-2g54", "[dec-2g54@local]", "dec-2g54@abe7ae3", SEAT):
        assert find(sandbox, text) == SEAT, text


def test_of_two_with_one_short_id_the_commit_tells_which(sandbox: Sandbox) -> None:
    other = SEAT.replace("2026-08-10", "2026-08-11")
    for id_ in (SEAT, other):
        sandbox.memory(id_)
        sandbox.commit(id_)
    first = sandbox.git("rev-parse", "HEAD~1").strip()
    assert find(sandbox, f"dec-2g54@{first[:7]}") == SEAT
    assert find(sandbox, "dec-2026-08-11-2g54") == other
    with pytest.raises(MemtoolError, match='"dec-2g54" matches 2 memories') as caught:
        find(sandbox, "dec-2g54")
    assert SEAT in str(caught.value)
    assert other in str(caught.value)


def test_words_mean_the_one_memory_in_use(sandbox: Sandbox) -> None:
    """The superseded one is meant by its id alone."""
    sandbox.memory(OLD)
    sandbox.memory(SEAT, supersedes=(OLD,))
    assert find(sandbox, "hold a seat") == SEAT
    assert find(sandbox, "dec-h1yz") == OLD
    assert find(sandbox, "15 minutes") == OLD


def test_several_matches_are_named_with_their_titles(sandbox: Sandbox) -> None:
    sandbox.memory(SEAT, title="Hold a seat for 20 minutes")
    sandbox.memory(OLD, title="Hold a seat for 15 minutes")
    with pytest.raises(MemtoolError, match='"seat" matches 2 active memories') as caught:
        find(sandbox, "seat")
    assert str(caught.value).splitlines()[1:] == [
        f"  {OLD}  Hold a seat for 15 minutes",
        f"  {SEAT}  Hold a seat for 20 minutes",
    ]


def test_the_id_filter_takes_a_short_id(sandbox: Sandbox) -> None:
    sandbox.memory(SEAT)
    sandbox.memory(OLD)
    rows = sandbox.run("list", "id:dec-2g54").stdout
    assert SEAT in rows
    assert OLD not in rows
