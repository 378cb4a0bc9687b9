"""Tests of `memtool show`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from conftest import PIPED

from memtool.commands.show import render, show
from memtool.errors import MemtoolError

if TYPE_CHECKING:
    from conftest import Sandbox

BODY = "It is so.\n\n## Rationale\n\nBecause.\n"


@pytest.fixture
def filled(sandbox: Sandbox) -> Sandbox:
    """A memory with many keys, and memories that refer to it in every way."""
    sandbox.memory(
        "dec-a",
        BODY,
        tags=("x", "y"),
        importance="0.75",
        iteration="3",
        action_required="true",
        checked={"at": "2026-02-25T00:00:00Z", "by": "Ada"},
        **{"x-own": "mine"},
    )
    sandbox.memory("epi-fix", type="episodic", resolves=("dec-a",))
    sandbox.memory("sta-child", type="state", parent=("dec-a",))
    sandbox.memory("sta-later", type="state", blocked_by=("dec-a",))
    sandbox.memory("sem-sum", type="semantic", derived_from=("dec-a", "epi-fix"))
    sandbox.commit()
    sandbox.memory("dec-b", supersedes=("dec-a",))
    return sandbox


def test_the_json_holds_every_key_and_what_is_derived(filled: Sandbox) -> None:
    """One flat object has the row, the keys with their types, the text and the relations."""
    head = filled.git("rev-parse", "HEAD").strip()
    answer = filled.json("show", "dec-a")
    expected = {
        "id": "dec-a",
        "title": "Title of dec-a",
        "type": "decision",
        "category": "decision",
        "status": "confirmed",
        "confidence": "medium",
        "path": ".memory/decision/2026-02/dec-a.md",
        "timestamp": "2026-02-22T19:33:00Z",
        "commit": head,
        "trust": "committed",
        "source": ["human:Ada"],
        "tags": ["x", "y"],
        "importance": 0.75,
        "iteration": 3,
        "action_required": True,
        "checked": {"at": "2026-02-25T00:00:00Z", "by": "Ada"},
        "x-own": "mine",
        "body": BODY,
        "superseded_by": ["dec-b"],
        "heads": ["dec-b"],
        "resolved_by": ["epi-fix"],
        "children": ["sta-child"],
        "blocks": ["sta-later"],
        "derived": ["sem-sum"],
        "state": "alive",
        "expires_at": None,
        "due_at": "2026-05-26T00:00:00Z",
        "due": False,
        "author": "Ada",
    }
    assert answer == answer | expected
    assert [section["title"] for section in answer["sections"]] == ["", "Rationale"]
    assert len(answer["fingerprint"]) == 16


def test_the_text_form_reads_from_the_top(filled: Sandbox) -> None:
    """Title and citation, author and state, the body, what needs attention, other facts."""
    text = render(show(filled.context(), "dec-a"), filled.layout())
    head = filled.git("rev-parse", "HEAD").strip()
    title, state, *_notice = text.partition("\n\n")[0].splitlines()
    assert title == f"Title of dec-a  dec-a@{head[:7]}"
    assert state.startswith("decision by Ada, 2026-02-")
    assert f"\n\n{BODY}\n" in text
    facts = text.partition(f"\n\n{BODY}\n")[2].splitlines()
    rows = dict(re.split("  +", row[2:], maxsplit=1) for row in facts)
    assert facts[0].startswith("! Superseded by ")
    assert rows["Superseded by"] == "dec-b  Title of dec-b"
    assert rows["Tags"] == "x, y"
    assert rows["Review"] == "due after 2026-05-26"
    assert [*rows][-1] == "Id"


def test_a_local_memory_has_no_commit(filled: Sandbox) -> None:
    """An uncommitted memory is marked as such."""
    shown = show(filled.context(), "dec-b", all=True)
    assert (shown.commit, shown.trust, shown.citation) == (None, "local", "dec-b@local")
    assert shown.heads == ("dec-b",)
    text = render(shown, PIPED)
    assert text.startswith("Title of dec-b  dec-b\n")
    assert text.splitlines()[1].endswith(" · not committed")
    assert "\n  Trust " in text
    assert "\n  Commit " not in text


def test_the_beginning_of_an_id_or_its_path_is_enough(filled: Sandbox) -> None:
    """A unique prefix and a path name the same memory."""
    ws = filled.context()
    assert show(ws, "epi").id == "epi-fix"
    assert show(ws, ".memory/decision/2026-02/dec-a.md").id == "dec-a"


@pytest.mark.parametrize(
    ("wanted", "code"),
    [("dec-", "ambiguous-id"), ("nope", "unknown-id"), ("", "unknown-id"), ("*", "unknown-id")],
)
def test_an_id_that_names_no_one_memory_is_refused(filled: Sandbox, wanted: str, code: str) -> None:
    """Nothing is shown by luck."""
    with pytest.raises(MemtoolError) as caught:
        show(filled.context(), wanted)
    assert caught.value.code == code


def test_another_time_is_shown_as_it_was(filled: Sandbox) -> None:
    """At HEAD nothing supersedes the memory yet; long after its time it is due for review."""
    ws = filled.context()
    assert show(ws, "dec-a", at="HEAD").superseded_by == ()
    later = show(ws, "dec-a", as_of="2027-01-01")
    assert (later.state, later.due) == ("alive", True)
    assert "due since 2026-05-26" in render(later, PIPED)
    with pytest.raises(MemtoolError):
        show(ws, "dec-a", as_of="2020-01-01")


def test_a_circle_leads_to_no_head(sandbox: Sandbox) -> None:
    """If every successor replaces another, no memory is current."""
    sandbox.memory("dec-a", supersedes=("dec-b",))
    sandbox.memory("dec-b", supersedes=("dec-a",))
    shown = show(sandbox.context(), "dec-a")
    assert (shown.superseded_by, shown.heads) == (("dec-b",), ())


def test_pinned_memories_have_no_end(sandbox: Sandbox) -> None:
    """No end is null in JSON, not a far date."""
    sandbox.memory("dec-a", status="pinned")
    assert sandbox.json("show", "dec-a")["expires_at"] is None


@pytest.mark.parametrize("commit", ["9ff17e5fd2", "local", "shallow"])
def test_a_citation_is_taken_for_the_id_in_it(sandbox: Sandbox, commit: str) -> None:
    """The citation of a block can be pasted into any verb."""
    sandbox.memory("dec-redis", "Sessions live in Redis.\n")
    sandbox.commit()
    for cited in (f"dec-redis@{commit}", f"[dec-redis@{commit}]"):
        for verb in ("show", "why", "log", "blame", "confirm"):
            assert sandbox.run(verb, cited).returncode == 0
        assert len(sandbox.json("list", f"id:{cited}")["memories"]) == 1
    assert sandbox.run("show", "dec-redis@noon").returncode == 2
