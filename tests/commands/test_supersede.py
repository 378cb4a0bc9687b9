from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.commands.supersede import supersede
from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.memory.memory import Memory


def made_by(sandbox: Sandbox, *args: str, **options: object) -> Memory:
    made = supersede(sandbox.context(), *args, **options)  # type: ignore[arg-type]
    return document.read((sandbox.path / made.path).read_bytes(), made.path)


def test_the_new_memory_names_the_old_one_which_keeps_every_byte(sandbox: Sandbox):
    """A correction is a new file; lineage does the rest."""
    path = sandbox.memory("dec-a")
    before = (sandbox.path / path).read_bytes()
    memory = made_by(sandbox, "dec-a", "Another way", body="So.")
    assert memory.supersedes == ("dec-a",)
    assert (sandbox.path / path).read_bytes() == before
    assert sandbox.context().tree().lineage.superseded_by["dec-a"] == (memory.id,)


def test_what_it_is_found_by_is_taken_over(sandbox: Sandbox):
    """A correction is found where the memory that it corrects was found, and handled like it."""
    kept = {
        "category": "architecture",
        "tags": ("a", "b"),
        "files": ("src/**",),
        "aliases": ("cache",),
        "trigger_phrases": ("which cache",),
        "domain": "billing",
        "importance": "0.9",
        "scope": "global",
        "privacy": ("internal",),
    }
    own = {"valid_through": "2026-12-31", "task_id": "T-1", "confidence": "low"}
    sandbox.memory("dec-a", **kept, **own)  # type: ignore[arg-type]
    memory = made_by(sandbox, "dec-a", "Another way")
    assert {key: memory.fields.get(key) for key in kept} == kept
    assert memory.confidence == "medium"
    assert "valid_through" not in memory.fields
    assert "task_id" not in memory.fields


def test_what_is_given_wins_over_what_is_taken_over(sandbox: Sandbox):
    """Options of the correction are the last word."""
    sandbox.memory("dec-a", tags=("a",), category="architecture", importance="0.9")
    memory = made_by(
        sandbox, "dec-a", "T", tag=("new",), category="warning", importance=0.0, id="dec-b",
        set=("scope=global",),
    )  # fmt: skip
    assert memory.items("tags") == ("new",)
    assert memory.category == "warning"
    assert memory.importance == 0.0
    assert (memory.id, memory.text("scope")) == ("dec-b", "global")


def test_another_type_has_its_own_category(sandbox: Sandbox):
    """The category of a decision says nothing about a fact."""
    sandbox.memory("dec-a", category="decision")
    assert made_by(sandbox, "dec-a", "T", type="semantic").category == "pattern"


def test_a_pinned_memory_stays_pinned_through_its_correction(sandbox: Sandbox):
    """A correction does not fall out of the tier that somebody put its subject into."""
    sandbox.memory("dec-a", status="pinned")
    assert made_by(sandbox, "dec-a", "T").status == "pinned"


@pytest.mark.parametrize("status", ["candidate", "deprecated", "archived"])
def test_a_correction_is_confirmed_whatever_the_old_one_was(sandbox: Sandbox, status: str):
    """Who writes a correction stands for it."""
    sandbox.memory("dec-a", status=status)
    assert made_by(sandbox, "dec-a", "T").status == "confirmed"


def test_a_fork_is_joined_by_naming_the_other_head(sandbox: Sandbox):
    """One memory that supersedes both heads settles a fork."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b", supersedes=("dec-a",))
    sandbox.memory("dec-c", supersedes=("dec-a",))
    memory = made_by(sandbox, "dec-b", "Both", supersedes=("dec-c", "dec-b"))
    assert memory.supersedes == ("dec-b", "dec-c")
    assert sandbox.context().tree().lineage.forks() == ()


def test_what_is_superseded_already_leads_to_its_heads(sandbox: Sandbox):
    """The hint is the command for the memory that holds now."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b", supersedes=("dec-a",))
    with pytest.raises(MemtoolError) as caught:
        supersede(sandbox.context(), "dec-a", "T")
    assert (caught.value.code, caught.value.hint) == ("not-a-head", "memtool supersede dec-b")


def test_a_path_names_a_memory_too(sandbox: Sandbox):
    """What `new` printed can be pasted."""
    path = sandbox.memory("dec-a")
    assert made_by(sandbox, path, "T").supersedes == ("dec-a",)
