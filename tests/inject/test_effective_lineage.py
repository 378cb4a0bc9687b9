"""Effective lineage: a memory replaces another only if it is trusted enough."""

from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.inject.effective_lineage import EffectiveLineage, compute_effective_lineage


def stand(sandbox: Sandbox, least: str = "local", at: str | None = None) -> EffectiveLineage:
    ws = sandbox.context()
    tree = ws.tree(at)
    return compute_effective_lineage(tree, ws.provenance_reader(tree), least, ws.clock.now)


def remarks(effective: EffectiveLineage, id_: str) -> tuple[str, ...]:
    return effective.list_marks(id_, str) + effective.list_notes(id_, str)


def fetch(sandbox: Sandbox) -> None:
    """Make the present HEAD the remote's default branch as last fetched."""
    sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD")


def test_uncommitted_file_silences_nothing(sandbox: Sandbox) -> None:
    """An uncommitted file does not replace the memory it supersedes; both are disputed."""
    sandbox.memory("dec-old")
    sandbox.commit()
    sandbox.memory("dec-new", supersedes=("dec-old",))
    effective = stand(sandbox)
    assert effective.lineage.is_head("dec-old")
    assert effective.lineage.is_head("dec-new")
    assert effective.disputes == {"dec-old": ("dec-new",), "dec-new": ("dec-old",)}
    assert effective.list_marks("dec-old", str) == ("CONFLICT: dec-new is newer but not merged",)
    assert effective.list_marks("dec-new", str) == (
        "CONFLICT: it is newer than dec-old but not merged",
    )


def test_local_replaces_local(sandbox: Sandbox) -> None:
    """Between two memories of no trust, lineage decides."""
    sandbox.memory("dec-old")
    sandbox.memory("dec-new", supersedes=("dec-old",))
    effective = stand(sandbox)
    assert not effective.lineage.is_head("dec-old")
    assert effective.disputes == {}
    assert remarks(effective, "dec-new") == ()


def test_committed_replaces_trusted_and_says_so(sandbox: Sandbox) -> None:
    """A commit is enough to replace, and the block tells that the trusted ref lacks it."""
    sandbox.memory("dec-old")
    sandbox.commit()
    fetch(sandbox)
    sandbox.memory("dec-new", supersedes=("dec-old",))
    sandbox.commit()
    effective = stand(sandbox)
    assert not effective.lineage.is_head("dec-old")
    note = "supersedes dec-old on this branch, not merged yet"
    assert effective.list_notes("dec-new", str) == (note,)
    fetch(sandbox)
    assert remarks(stand(sandbox), "dec-new") == ()


def test_nothing_is_marked_for_lack_of_a_remote(sandbox: Sandbox) -> None:
    """Without a trusted ref a committed memory replaces without a word."""
    sandbox.memory("dec-old")
    sandbox.memory("dec-new", supersedes=("dec-old",))
    sandbox.commit()
    assert remarks(stand(sandbox), "dec-new") == ()


def test_bar_keeps_what_is_below_it_from_replacing(sandbox: Sandbox) -> None:
    """Where only trusted memories are injected, a committed one cannot silence a trusted one."""
    sandbox.memory("dec-old")
    sandbox.commit()
    fetch(sandbox)
    sandbox.memory("dec-new", supersedes=("dec-old",))
    sandbox.commit()
    for least in ("trusted", "signed"):
        assert stand(sandbox, least).lineage.is_head("dec-old")
        assert stand(sandbox, least).find_conflicts("dec-old") == ("dec-new",)


def test_fork_is_a_conflict_of_its_heads(sandbox: Sandbox) -> None:
    """Two heads that replace the same memory name each other."""
    sandbox.memory("dec-old")
    sandbox.memory("dec-b", supersedes=("dec-old",))
    sandbox.memory("dec-c", supersedes=("dec-old",))
    sandbox.commit()
    effective = stand(sandbox)
    assert effective.find_shown_rivals("dec-b") == ("dec-c",)
    assert effective.find_rivals("dec-c") == ("dec-b",)
    assert effective.ancestors == {("dec-b", "dec-c"): "dec-old"}


def test_uncommitted_file_does_not_settle_a_fork(sandbox: Sandbox) -> None:
    """The sides of a fork stay, in conflict, until something committed replaces both."""
    sandbox.memory("dec-old")
    sandbox.memory("dec-b", supersedes=("dec-old",))
    sandbox.memory("dec-c", supersedes=("dec-old",))
    sandbox.commit()
    sandbox.memory("dec-d", supersedes=("dec-b", "dec-c"))
    effective = stand(sandbox)
    assert effective.find_conflicts("dec-b") == ("dec-c", "dec-d")
    sandbox.commit()
    assert stand(sandbox).find_conflicts("dec-b") == ()


def test_uncommitted_rival_of_a_replacement_is_a_fork(sandbox: Sandbox) -> None:
    """A local memory conflicts with the committed successor, and the old one is gone."""
    sandbox.memory("dec-old")
    sandbox.memory("dec-b", supersedes=("dec-old",))
    sandbox.commit()
    sandbox.memory("dec-c", supersedes=("dec-old",))
    effective = stand(sandbox)
    assert not effective.lineage.is_head("dec-old")
    assert effective.find_rivals("dec-b") == ("dec-c",)
    assert effective.disputes == {}


def test_cycle_has_no_head(sandbox: Sandbox) -> None:
    """Members of a circle are never current."""
    sandbox.memory("dec-a", supersedes=("dec-b",))
    sandbox.memory("dec-b", supersedes=("dec-a",))
    sandbox.commit()
    effective = stand(sandbox)
    assert not effective.lineage.is_head("dec-a")
    assert not effective.lineage.is_head("dec-b")


def test_revision_has_nothing_local(sandbox: Sandbox) -> None:
    """In the tree of a commit everything is committed, whatever HEAD is."""
    sandbox.memory("dec-old")
    first = sandbox.commit()
    sandbox.memory("dec-new", supersedes=("dec-old",))
    second = sandbox.commit()
    sandbox.git("checkout", "--quiet", first)
    assert not stand(sandbox, at=second).lineage.is_head("dec-old")


def test_warning_names_only_a_few(sandbox: Sandbox) -> None:
    """A fork of many heads does not fill the block with ids."""
    sandbox.memory("dec-old")
    for number in range(9):
        sandbox.memory(f"dec-{number}x", supersedes=("dec-old",), status="candidate")
    effective = stand(sandbox)
    (note,) = effective.list_notes("dec-old", str)
    assert note == "would be superseded by dec-0x, dec-1x, dec-2x and 6 more, not confirmed"
    assert len(effective.find_conflicts("dec-old")) == 9


def test_an_edit_of_the_status_leaves_what_was_committed(sandbox: Sandbox) -> None:
    """Pinning a committed memory without committing that brings nothing old back."""
    sandbox.memory("dec-old")
    sandbox.memory("dec-new", supersedes=("dec-old",))
    sandbox.commit()
    sandbox.memory("dec-new", supersedes=("dec-old",), status="pinned")
    effective = stand(sandbox)
    assert not effective.lineage.is_head("dec-old")
    assert (effective.disputes, effective.unproven) == ({}, {})


def test_an_edit_of_what_it_supersedes_is_only_local(sandbox: Sandbox) -> None:
    """An edge added by an edit is disputed; committed ones hold."""
    for id_ in ("dec-old", "dec-other"):
        sandbox.memory(id_)
    sandbox.memory("dec-new", supersedes=("dec-old",))
    sandbox.commit()
    sandbox.memory("dec-new", supersedes=("dec-old", "dec-other"))
    effective = stand(sandbox)
    assert not effective.lineage.is_head("dec-old")
    assert effective.lineage.is_head("dec-other")
    assert effective.disputes == {"dec-new": ("dec-other",), "dec-other": ("dec-new",)}


def test_a_deleted_version_vouches_for_nothing(sandbox: Sandbox) -> None:
    """A memory committed as deleted replaced nothing, so restoring it is a local claim."""
    sandbox.memory("dec-old")
    sandbox.memory("dec-new", supersedes=("dec-old",), status="deleted")
    sandbox.commit()
    sandbox.memory("dec-new", supersedes=("dec-old",))
    assert stand(sandbox).lineage.is_head("dec-old")


def test_an_edge_is_as_trusted_as_the_version_that_has_it(sandbox: Sandbox) -> None:
    """A status changed in a commit that is not published yet leaves a published edge proven."""
    sandbox.memory("dec-old")
    sandbox.memory("dec-new", supersedes=("dec-old",))
    sandbox.commit()
    fetch(sandbox)
    for is_committed in (False, True):
        sandbox.memory("dec-new", supersedes=("dec-old",), status="pinned")
        if is_committed:
            sandbox.commit()
        effective = stand(sandbox, "trusted")
        assert not effective.lineage.is_head("dec-old")
        assert remarks(effective, "dec-new") == ()


def test_a_candidate_stands_beside_what_it_proposes_to_replace(sandbox: Sandbox) -> None:
    """Both are heads, both are marked, and each brings the other along."""
    sandbox.memory("dec-old")
    sandbox.memory("dec-new", supersedes=("dec-old",), status="candidate")
    sandbox.commit()
    effective = stand(sandbox)
    assert effective.lineage.is_head("dec-old")
    assert (
        effective.find_shown_rivals("dec-old")
        == effective.find_conflicts("dec-old")
        == ("dec-new",)
    )
    assert effective.find_shown_rivals("dec-new") == ("dec-old",)
    assert effective.list_notes("dec-old", str) == (
        "would be superseded by dec-new, not confirmed",
    )
    assert effective.list_notes("dec-new", str) == ("would supersede dec-old",)


@pytest.mark.parametrize("fields", [{"status": "archived"}, {"valid_through": "2026-02-23"}])
def test_a_proposal_that_is_over_leaves_no_mark(sandbox: Sandbox, fields: dict[str, str]) -> None:
    """When a candidate is archived or has expired, the old memory is what it was."""
    away = {"at": "2026-02-23T00:00:00Z", "by": "Ada", "was": "candidate"}
    fields = {"status": "candidate"} | fields
    sandbox.memory("dec-old")
    sandbox.memory("dec-new", supersedes=("dec-old",), retired=away, **fields)
    sandbox.commit()
    effective = stand(sandbox)
    assert effective.lineage.is_head("dec-old")
    assert remarks(effective, "dec-old") == effective.find_conflicts("dec-old") == ()


def test_a_proposal_is_about_what_took_the_place_meanwhile(sandbox: Sandbox) -> None:
    """Where something else replaced the old memory, the candidate would replace that."""
    sandbox.memory("dec-old")
    sandbox.memory("dec-new", supersedes=("dec-old",), status="candidate")
    sandbox.memory("dec-other", supersedes=("dec-old",))
    sandbox.commit()
    assert stand(sandbox).find_conflicts("dec-new") == ("dec-other",)


def test_nobody_confirms_by_a_file_that_is_not_committed(sandbox: Sandbox) -> None:
    """A committed proposal that only the worktree confirms is disputed, and silences nothing."""
    sandbox.memory("dec-old")
    sandbox.memory("dec-new", supersedes=("dec-old",), status="candidate")
    sandbox.commit()
    sandbox.memory("dec-new", supersedes=("dec-old",))
    effective = stand(sandbox)
    assert effective.lineage.is_head("dec-old")
    assert effective.disputes == {"dec-old": ("dec-new",), "dec-new": ("dec-old",)}
    sandbox.memory("dec-new", supersedes=("dec-old",), status="candidate")
    sandbox.memory("dec-late", supersedes=("dec-new",))  # what it replaces would speak through it
    assert stand(sandbox).lineage.is_head("dec-old")
