from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.commands.archive import archive, confirm, deprecate, pin, restore, unpin
from memtool.commands.forget import forget
from memtool.commands.purge import purge
from memtool.errors import MemtoolError
from memtool.memory import lifecycle


def test_every_verb_takes_words_of_an_id(sandbox: Sandbox) -> None:
    """A few words of an id are enough, from pinning to the last step of a purge."""
    name = "sem-2026-03-02-bill-with-stripe-0001"
    sandbox.memory(name, type="semantic")
    sandbox.memory("sem-2026-03-02-keep-sessions-0002", type="semantic")
    for verb in (pin, unpin, confirm, deprecate, archive, restore):
        assert verb(sandbox.context(), "stripe").id == name
    assert [memory.id for memory in forget(sandbox.context(), "bill", reason="gone").forgotten] == [
        name
    ]
    with pytest.raises(MemtoolError, match=rf"\({name}\) is not due until"):
        purge(sandbox.context(), "stripe-bill")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("candidate", "confirmed"),
        ("confirmed", "confirmed"),
        ("pinned", "pinned"),
        ("deprecated", "confirmed"),
        ("archived", "confirmed"),
    ],
)
def test_a_confirmed_memory_lives(sandbox: Sandbox, before: str, after: str):
    """Whoever vouches for a memory brings it back to life; a pinned one stays pinned."""
    sandbox.memory("dec-a", status=before)
    confirm(sandbox.context(), "dec-a")
    assert sandbox.context().tree()["dec-a"].memory.status == after


def test_moment_person_and_commit_of_the_look_are_recorded(sandbox: Sandbox):
    """Drift is measured from the commit at which the memory was last confirmed."""
    sandbox.memory("dec-a")
    head = sandbox.commit()
    confirm(sandbox.context(), "dec-a")
    assert sandbox.context().tree()["dec-a"].memory.table("checked") == {
        "at": "2026-03-01T12:00:00Z",
        "by": "Ada",
        "commit": head,
    }


def test_before_the_first_commit_there_is_none_to_record(sandbox: Sandbox):
    """A new repository has no commit to name."""
    sandbox.memory("dec-a")
    confirm(sandbox.context(), "dec-a")
    assert "commit" not in sandbox.context().tree()["dec-a"].memory.table("checked")


def test_the_time_to_live_counts_from_the_confirmation(sandbox: Sandbox):
    """An expired memory is alive again."""
    sandbox.memory("dec-a", type="state")
    ws = sandbox.context(MEMTOOL_NOW="2027-01-01T00:00:00Z")
    assert lifecycle.find_state(ws.tree()["dec-a"].memory, ws.clock.now) == lifecycle.EXPIRED
    confirm(ws, "dec-a")
    assert lifecycle.find_state(ws.tree()["dec-a"].memory, ws.clock.now) == lifecycle.ALIVE


@pytest.mark.parametrize("status", ["candidate", "confirmed", "deprecated", "archived"])
def test_any_living_memory_can_be_pinned(sandbox: Sandbox, status: str):
    """Pinning says more than confirming, and less than nothing is lost."""
    path = sandbox.memory("dec-a", status=status)
    changed = pin(sandbox.context(), "dec-a")
    assert changed.changes == {"status": (status, "pinned")}
    assert "\nstatus: pinned\n" in (sandbox.path / path).read_text()


def test_json_says_what_changed(sandbox: Sandbox):
    """Programs see each key with its old and its new value."""
    sandbox.memory("dec-a")
    answer = sandbox.json("pin", "dec-a")
    assert answer["changes"] == {"status": ["", "pinned"]}
    assert (answer["id"], answer["commit"]) == ("dec-a", None)


def test_a_superseded_memory_is_not_pinned(sandbox: Sandbox):
    """It would never be injected; the hint pins the head."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b", supersedes=("dec-a",))
    with pytest.raises(MemtoolError) as caught:
        pin(sandbox.context(), "dec-a")
    assert caught.value.hint == "memtool pin dec-b"


def test_unpin_undoes_pin(sandbox: Sandbox):
    """A memory that was pinned and unpinned is confirmed."""
    sandbox.memory("dec-a", status="confirmed")
    pin(sandbox.context(), "dec-a")
    assert unpin(sandbox.context(), "dec-a").changes == {"status": ("pinned", "confirmed")}


@pytest.mark.parametrize("status", ["candidate", "deprecated", "archived"])
def test_what_was_never_pinned_is_not_confirmed_by_the_way(sandbox: Sandbox, status: str):
    """Unpinning does not bring back what was put away, nor vouch for a candidate."""
    sandbox.memory("dec-a", status=status)
    with pytest.raises(MemtoolError) as caught:
        unpin(sandbox.context(), "dec-a")
    assert (caught.value.code, caught.value.message) == (
        "not-pinned",
        f'cannot unpin: "Title of dec-a" (dec-a) is {status}, not pinned',
    )


def test_a_deprecated_memory_can_be_restored(sandbox: Sandbox):
    """Deprecation changes the status and nothing else."""
    path = sandbox.memory("dec-a", status="confirmed")
    before = (sandbox.path / path).read_bytes()
    assert deprecate(sandbox.context(), "dec-a").changes == {"status": ("confirmed", "deprecated")}
    restore(sandbox.context(), "dec-a")
    assert (sandbox.path / path).read_bytes() == before


def test_an_archived_memory_stays_where_it_is_but_is_not_alive(sandbox: Sandbox):
    """Archiving is a status: the file is neither moved nor deleted."""
    path = sandbox.memory("dec-a")
    assert archive(sandbox.context(), "dec-a").path == path
    ws = sandbox.context()
    assert lifecycle.find_state(ws.tree()["dec-a"].memory, ws.clock.now) == lifecycle.ARCHIVED


DELETED = {"at": "2026-02-23T00:00:00Z", "by": "Ada", "reason": "wrong"}


@pytest.mark.parametrize("was", ["confirmed", "pinned", "candidate", "archived"])
def test_a_forgotten_memory_gets_the_status_that_it_had(sandbox: Sandbox, was: str):
    """Forgetting and restoring leaves no trace in the file."""
    path = sandbox.memory("dec-a", status="deleted", deleted=DELETED | {"was": was})
    restore(sandbox.context(), "dec-a")
    text = (sandbox.path / path).read_text()
    assert f"\nstatus: {was}\n" in text
    assert "deleted" not in text


def test_without_a_former_status_it_is_confirmed(sandbox: Sandbox):
    """A deletion that was written by hand can be undone as well."""
    sandbox.memory("dec-a", status="deleted", deleted=DELETED)
    restore(sandbox.context(), "dec-a")
    assert sandbox.context().tree()["dec-a"].memory.status == "confirmed"


def test_a_former_status_that_is_none_is_refused(sandbox: Sandbox):
    """A file that was tampered with is told, and left as it is."""
    path = sandbox.memory("dec-a", status="deleted", deleted=DELETED | {"was": "hero"})
    before = (sandbox.path / path).read_bytes()
    with pytest.raises(MemtoolError, match="'hero' is not one of"):
        restore(sandbox.context(), "dec-a")
    assert (sandbox.path / path).read_bytes() == before


@pytest.mark.parametrize("status", ["archived", "deprecated"])
def test_what_was_put_away_is_confirmed(sandbox: Sandbox, status: str):
    """Restoring undoes archive and deprecate."""
    sandbox.memory("dec-a", status=status)
    assert restore(sandbox.context(), "dec-a").changes == {"status": (status, "confirmed")}


@pytest.mark.parametrize("status", ["candidate", "confirmed", "pinned"])
def test_what_was_never_put_away_is_left_alone(sandbox: Sandbox, status: str):
    """There is nothing to undo."""
    sandbox.memory("dec-a", status=status)
    assert restore(sandbox.context(), "dec-a").changes == {}
