"""Contradictions are told: what is certain is marked where memories are shown, the rest counted."""

from __future__ import annotations

import json

import pytest
from conftest import Sandbox

from memtool.commands.config import config
from memtool.commands.conflicts import conflicts
from memtool.commands.inject import inject
from memtool.commands.list import list as list_memories
from memtool.commands.search import render as render_search
from memtool.commands.search import search
from memtool.commands.status import render as render_status
from memtool.commands.status import status
from memtool.hosts.diagnostics import of_repository

BOTH = "dec-never, dec-always contradict each other, the newest first: ask the user which holds"


@pytest.fixture
def shop(sandbox: Sandbox) -> Sandbox:
    """One certain contradiction, one that is suspected, and a fork."""
    sandbox.memory(
        "dec-always",
        "Always paginate admin exports.\n",
        title="Admin exports: always paginate",
        timestamp="2026-01-01T00:00:00Z",
        files=("src/export.py",),
    )
    sandbox.memory(
        "dec-never",
        "Never paginate admin exports.\n",
        title="Admin exports: never paginate",
        timestamp="2026-02-01T00:00:00Z",
        files=("src/export.py",),
    )
    sandbox.memory("dec-add", "Add a license header to every file.\n", title="License header")
    sandbox.memory("dec-drop", "Remove the license header from every file.\n", title="No header")
    sandbox.memory("dec-old", "Deploy by hand.\n", title="Deploy by hand")
    sandbox.memory("dec-one", "Deploy by a job.\n", title="A job deploys", supersedes=("dec-old",))
    sandbox.memory("dec-two", "Deploy by a bot.\n", title="A bot deploys", supersedes=("dec-old",))
    sandbox.write("src/export.py", "pages = 1\n")
    sandbox.commit("one")
    return sandbox


def test_a_block_marks_both_sides_with_both_ids_the_newest_first(shop: Sandbox) -> None:
    """An agent is told to ask, and sees the newer decision before the older one."""
    found = inject(shop.context(), prompt="how do we paginate admin exports?")
    assert [(one.id, one.conflicts) for one in found.items][:2] == [
        ("dec-never", ("dec-always",)),
        ("dec-always", ("dec-never",)),
    ]
    assert found.text.count(f"[CONFLICT] {BOTH}") == 2


def test_file_rules_and_the_primer_mark_it_too(shop: Sandbox) -> None:
    """Whatever shows the two of them together says that only one can hold."""
    assert BOTH in inject(shop.context(), files=("src/export.py",)).text
    shop.memory(
        "dec-always",
        "Always paginate admin exports.\n",
        title="Always",
        status="pinned",
        timestamp="2026-01-01T00:00:00Z",
    )
    shop.memory(
        "dec-never",
        "Never paginate admin exports.\n",
        title="Never",
        status="pinned",
        timestamp="2026-02-01T00:00:00Z",
    )
    shop.commit("pinned")
    assert BOTH in inject(shop.context(), primer=True).text


def test_search_says_which_results_contradict_each_other(shop: Sandbox) -> None:
    """In its text and as JSON; a result whose opposite is no result is not marked."""
    found = search(shop.context(), "paginate", "admin", "exports")
    assert f"[CONFLICT] {BOTH}" in str(render_search(found))
    marks = {
        row["id"]: row.get("conflict") for row in json.loads(json.dumps(found.plain()))["results"]
    }
    assert marks == {"dec-always": f"[CONFLICT] {BOTH}", "dec-never": f"[CONFLICT] {BOTH}"}
    assert "CONFLICT" not in str(render_search(search(shop.context(), "license header")))


def test_status_and_doctor_count_what_is_suspected(shop: Sandbox) -> None:
    """Certain ones are named, suspected ones are a number; a fork is a problem of its own."""
    found = status(shop.context())
    assert (found.contradicting, found.suspected) == (("dec-always", "dec-never"), 1)
    text = render_status(found)
    assert "contradicting each other (memtool conflicts shows which): dec-always, dec-never" in text
    assert "suspected contradictions (memtool conflicts shows them): 1 pair" in text
    (sign,) = [one for one in of_repository(shop.context()) if one.name == "conflicts"]
    assert sign.detail == "1 fork, 1 contradiction, 1 more suspected"


def test_a_filter_finds_forks_certain_and_suspected_ones(shop: Sandbox) -> None:
    """`is:conflicted` is all that somebody has to settle."""
    found = list_memories(shop.context(), "is:conflicted", sort="id")
    assert [one.id for one in found.memories] == [
        "dec-add",
        "dec-always",
        "dec-drop",
        "dec-never",
        "dec-one",
        "dec-two",
    ]
    certain = {one.ids: one.certainty for one in conflicts(shop.context()).conflicts}
    assert certain == {
        ("dec-always", "dec-never"): "certain",
        ("dec-add", "dec-drop"): "suspected",
        ("dec-one", "dec-two"): "certain",
    }


def test_what_a_person_accepted_is_marked_nowhere(shop: Sandbox) -> None:
    """`conflicts_accepted` of one side is enough."""
    path = next((shop.path / ".memory").rglob("dec-never.md"))
    path.write_text(
        path.read_text().replace("\n---\n", "\nconflicts_accepted:\n  - dec-always\n---\n")
    )
    shop.commit("accepted")
    assert "CONFLICT" not in inject(shop.context(), prompt="how do we paginate admin exports?").text
    assert "CONFLICT" not in str(render_search(search(shop.context(), "paginate admin exports")))
    assert status(shop.context()).contradicting == ()
    assert "dec-never" not in [
        one.id for one in list_memories(shop.context(), "is:conflicted").memories
    ]


def test_what_has_not_the_trust_casts_no_doubt(shop: Sandbox) -> None:
    """A file that nobody committed is not shown, and marks nothing that is."""
    config(shop.context(), "inject.trust", "committed")
    shop.git("rm", "-q", "--cached", next((shop.path / ".memory").rglob("dec-never.md")).as_posix())
    shop.git("add", ".memory/config.toml")
    shop.git("commit", "-qm", "dec-never is in no commit")
    found = inject(shop.context(), prompt="how do we paginate admin exports?")
    assert "dec-always" in found.text
    assert "contradict each other" not in found.text
