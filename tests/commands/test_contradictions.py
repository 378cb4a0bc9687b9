"""Contradictions are told: what is certain is marked where memories are shown, the rest counted."""

from __future__ import annotations

import json

import pytest
from conftest import PIPED, Sandbox

from memtool.commands.config import config
from memtool.commands.conflicts import conflicts
from memtool.commands.inject import inject
from memtool.commands.list import list as list_memories
from memtool.commands.search import render as render_search
from memtool.commands.search import search
from memtool.commands.status import render as render_status
from memtool.commands.status import status
from memtool.hosts.diagnostics import check_repository

BOTH = "dec-never, dec-always contradict each other, the newest first: ask the user which holds"

LINE = (
    "CONFLICT, not settled: dec-never (newer) and dec-always contradict each other. "
    "Ask the user which one holds before you rely on either.\n"
)


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
    block = inject(shop.context(), prompt="how do we paginate admin exports?")
    assert [(item.id, item.conflicts) for item in block.items][:2] == [
        ("dec-never", ("dec-always",)),
        ("dec-always", ("dec-never",)),
    ]
    assert block.text.count(LINE) == 1
    assert block.text.index(LINE) < block.text.index("[dec-never@")
    assert ", conflicts with dec-always\n" in block.text


def test_file_rules_and_the_primer_mark_it_too(shop: Sandbox) -> None:
    """Whatever shows the two of them together says that only one can hold."""
    assert LINE in inject(shop.context(), files=("src/export.py",)).text
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
    assert LINE in inject(shop.context(), primer=True).text


def test_search_says_which_results_contradict_each_other(shop: Sandbox) -> None:
    """In text and JSON; a result is not marked if its opposite is not shown."""
    answer = search(shop.context(), "paginate", "admin", "exports")
    text = str(render_search(answer, PIPED))
    assert "\n   decision · 2026-02-01 · conflicts with dec-always · " in text
    assert "\n   decision · 2026-01-01 · conflicts with dec-never · " in text
    marks = {
        row["id"]: row.get("conflict") for row in json.loads(json.dumps(answer.plain()))["results"]
    }
    assert marks == {"dec-always": f"[CONFLICT] {BOTH}", "dec-never": f"[CONFLICT] {BOTH}"}
    other = search(shop.context(), "license header")
    assert "conflict" not in str(render_search(other, PIPED))


def test_status_and_doctor_count_what_is_suspected(shop: Sandbox) -> None:
    """Certain ones are named, suspected ones are a number; a fork is a problem of its own."""
    report = status(shop.context())
    assert (report.contradicting, report.suspected) == (("dec-always", "dec-never"), 1)
    text = render_status(report, shop.layout())
    assert 'Conflicts to settle (2; "memtool conflicts" shows both sides):\n' in text
    assert "\n  dec-never  Admin exports: never paginate" in text
    assert "  against dec-always\n" in text
    assert "Suspected contradictions (1): memtool conflicts\n" in text
    (sign,) = [result for result in check_repository(shop.context()) if result.name == "conflicts"]
    assert sign.detail == "1 fork, 1 contradiction, 1 more suspected"


def test_a_filter_finds_forks_certain_and_suspected_ones(shop: Sandbox) -> None:
    """`is:conflicted` finds every conflict that is to be settled."""
    listing = list_memories(shop.context(), "is:conflicted", sort="id")
    assert [memory.id for memory in listing.memories] == [
        "dec-add",
        "dec-always",
        "dec-drop",
        "dec-never",
        "dec-one",
        "dec-two",
    ]
    certain = {conflict.ids: conflict.certainty for conflict in conflicts(shop.context()).conflicts}
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
    answer = search(shop.context(), "paginate admin exports")
    assert "conflict" not in str(render_search(answer, PIPED))
    assert status(shop.context()).contradicting == ()
    assert "dec-never" not in [
        memory.id for memory in list_memories(shop.context(), "is:conflicted").memories
    ]


def test_what_has_not_the_trust_casts_no_doubt(shop: Sandbox) -> None:
    """An uncommitted file is not shown, and marks no shown memory."""
    config(shop.context(), "inject.trust", "committed")
    shop.git("rm", "-q", "--cached", next((shop.path / ".memory").rglob("dec-never.md")).as_posix())
    shop.git("add", ".memory/config.toml")
    shop.git("commit", "-qm", "dec-never is in no commit")
    block = inject(shop.context(), prompt="how do we paginate admin exports?")
    assert "dec-always" in block.text
    assert "contradict each other" not in block.text
