"""A block on a branch that is behind: both decisions, the newer one marked, and new ones."""

from __future__ import annotations

import json

import pytest
from behind import NEW_ID, OLD, OLD_ID, ONLY, fall_behind, on_trusted
from conftest import Sandbox

from memtool.inject import session_primer

PROMPT = "how long do we hold a seat while a booking is paid?"
NEWER = "NEWER ON origin/main: dec-new Longer holds"


@pytest.fixture
def behind(sandbox: Sandbox) -> Sandbox:
    """A branch that is behind; both decisions govern a file."""
    fall_behind(sandbox, files=["src/seats.py"])
    return sandbox


def ids(sandbox: Sandbox, *args: str) -> list[str]:
    return [item["id"] for item in sandbox.json("inject", *args)["items"]]


def test_a_block_has_both_and_says_which_is_newer(behind: Sandbox):
    """The old decision with its notice, and the text of the new one next to it."""
    answer = behind.json("inject", "--prompt", PROMPT)
    old, new = (
        next(item for item in answer["items"] if item["id"] == id_) for id_ in (OLD_ID, NEW_ID)
    )
    assert old["newer"] == [NEW_ID]
    assert NEWER in old["text"]
    assert f"{ONLY}; it replaces dec-old" in new["text"]
    assert "newer" not in new
    assert "CONFLICT" not in answer["text"]
    assert behind.json("inject", "--prompt", PROMPT, MEMTOOL_NO_CACHE="1") == answer


def test_what_answers_by_its_old_words_alone_brings_the_new_text(behind: Sandbox):
    """The correction may share no word with the prompt."""
    on_trusted(
        behind,
        lambda sandbox: sandbox.memory(
            "dec-last", "Reserve berths for an hour.\n", title="Berths", supersedes=["dec-new"]
        ),
    )
    assert ids(behind, "--prompt", PROMPT) == ["dec-old", "dec-last"]


def test_without_room_for_its_text_the_newer_one_is_named(behind: Sandbox):
    """The notice is on the memory itself."""
    on_trusted(
        behind,
        lambda sandbox: sandbox.memory(
            "dec-last", f"{'Berths are cold. ' * 200}\n", title="Berths", supersedes=["dec-new"]
        ),
    )
    answer = behind.json("inject", "--prompt", PROMPT, "--budget", "160")
    assert [item["id"] for item in answer["items"]] == ["dec-old"]
    assert "NEWER ON origin/main: dec-last Berths" in answer["text"]


def test_the_same_words_do_not_fold_one_into_the_other(behind: Sandbox):
    """A memory of the branch is never left out for what only the trusted branch has."""
    on_trusted(
        behind,
        lambda sandbox: sandbox.memory(
            "sem-same", OLD.replace("Hold", "We hold"), type="semantic", title="Same"
        ),
    )
    behind.memory("sem-own", OLD.replace("Hold", "We now hold"), type="semantic", title="Own")
    shown = ids(behind, "--prompt", PROMPT)
    assert "dec-old" in shown
    assert "sem-same" not in shown


def test_a_pin_of_the_trusted_branch_is_in_the_primer(behind: Sandbox):
    """With its note, as anything that is only there."""
    on_trusted(
        behind,
        lambda sandbox: sandbox.memory(
            "dec-force", "Never force-push.\n", title="Force", status="pinned"
        ),
    )
    text = behind.run("inject", "--primer").stdout
    assert "[dec-force@" in text
    assert ONLY in text


def test_pins_of_the_trusted_branch_take_no_place_of_others(behind: Sandbox):
    """Of five places the branch's own pins get as many as they need."""

    def pins(sandbox: Sandbox) -> None:
        for number in range(4):
            body = f"Rule {'abcd'[number] * 9} holds for {'wxyz'[number] * 7}.\n"
            sandbox.memory(f"dec-theirs-{number}", body, status="pinned", importance="1.0")

    on_trusted(behind, pins)
    for number in range(3):
        body = f"Mind {'efg'[number] * 9} before {'rst'[number] * 7}.\n"
        behind.memory(f"dec-own-{number}", body, status="pinned", importance="0.1")
    behind.commit("pins")
    pinned = [
        item for item in behind.json("inject", "--primer")["items"] if item["tier"] == "pinned"
    ]
    assert [item["id"] for item in pinned[:3]] == ["dec-own-0", "dec-own-1", "dec-own-2"]
    assert len(pinned) == 5


def test_a_candidate_of_the_trusted_branch_waits_for_nobody_here(behind: Sandbox):
    """It cannot be confirmed in this branch, and is no news; its title is that of a candidate."""
    session_primer.begin(behind.context(), "one")
    on_trusted(
        behind,
        lambda sandbox: sandbox.memory("sem-maybe", "Tea is at five.\n", status="candidate"),
    )
    text = behind.run("inject", "--primer", "--session", "two").stdout
    assert [line for line in text.splitlines() if "sem-maybe" in line] == [
        "| sem-maybe Title of sem-maybe (candidate)"
    ]


def test_news_name_the_branch_that_they_are_on(behind: Sandbox):
    """A session that was here before is told what was added there since."""
    session_primer.begin(behind.context(), "one")
    on_trusted(
        behind,
        lambda sandbox: sandbox.memory(
            "sem-late", "Tea is at six.\n", title="Late tea", timestamp="2026-03-02T10:00:00Z"
        ),
    )
    text = behind.run(
        "inject", "--primer", "--session", "two", MEMTOOL_NOW="2026-03-03T00:00:00Z"
    ).stdout
    assert f"2026-03-02 sem-late Late tea ({ONLY})" in text


def test_an_edit_warning_has_them(behind: Sandbox):
    """Rules about the file, from both branches."""
    event = {
        "cwd": str(behind.path),
        "session_id": "one",
        "hook_event_name": "PostToolUse",
        "tool_name": "Edit",
        "tool_input": {"file_path": str(behind.path / "src/seats.py")},
    }
    done = behind.run("hook", "claude", "post-tool-use", "--input", json.dumps(event))
    assert NEWER in done.stdout
    assert "dec-new@" in done.stdout


def test_a_session_is_shown_each_once(behind: Sandbox):
    """As any memory, whatever branch it is of."""
    args = ("inject", "--prompt", PROMPT, "--session", "one")
    assert "dec-new@" in behind.run(*args).stdout
    assert behind.run(*args).stdout == ""


def test_a_release_branch_says_that_it_is_right(behind: Sandbox):
    """Its own settings leave out what the trusted branch has decided since."""
    behind.write(".memory/config.toml", '[inject]\nahead = "off"\n')
    behind.commit("release")
    answer = behind.json("inject", "--prompt", PROMPT)
    assert [item["id"] for item in answer["items"]] == ["dec-old"]
    assert "origin/main" not in answer["text"]


@pytest.mark.parametrize(("mode", "shown"), [("mark", {OLD_ID, NEW_ID}), ("off", {OLD_ID})])
def test_a_block_of_trusted_memories_hides_nothing_either(
    behind: Sandbox, mode: str, shown: set[str]
):
    """New memories of the trusted branch replace none here, whatever trust is demanded."""
    behind.write(".memory/config.toml", f'[inject]\ntrust = "trusted"\nahead = "{mode}"\n')
    assert set(ids(behind, "--prompt", PROMPT)) == shown


def test_a_replay_is_of_its_moment(behind: Sandbox):
    """A revision and a moment know nothing of what was fetched since."""
    assert ids(behind, "--prompt", PROMPT, "--at", "HEAD") == ["dec-old"]
    assert ids(behind, "--prompt", PROMPT, "--as-of", "2026-02-28") == ["dec-old"]


def test_the_agents_file_has_none_of_it(behind: Sandbox):
    """It is committed, so it is of the branch alone."""
    behind.write("AGENTS.md", "# Agents\n")
    behind.run("inject", "--into", "AGENTS.md")
    text = (behind.path / "AGENTS.md").read_text()
    assert "dec-old" in text
    assert "origin/main" not in text
