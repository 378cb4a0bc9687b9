"""Each state of a memory has the buttons of what can be done in it, and no others."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

import pytest
from web.test_refused_forms import Form, fill

from memtool.calls.procedures import HTTP, build_procedures
from memtool.web.actions import ACTIONS, SEVERAL, MemoryState, list_actions

if TYPE_CHECKING:
    from conftest import Sandbox
    from web.conftest import Web

IN_USE = ["correct", "pin", "deprecate", "archive", "forget"]


@pytest.mark.parametrize(
    ("memory", "keys"),
    [
        (MemoryState("candidate", True), ["confirm", *IN_USE]),
        (MemoryState("confirmed", True), ["confirm", *IN_USE]),
        (MemoryState("confirmed", True, True), ["still-holds", *IN_USE]),
        (MemoryState("confirmed", True, False, True), ["confirm", "accept-files", *IN_USE]),
        (
            MemoryState("pinned", True, last_step="pinned"),
            ["confirm", "correct", "unpin", "undo", "deprecate", "archive", "forget"],
        ),
        (MemoryState("confirmed", False), ["archive", "forget"]),
        (MemoryState("deprecated", True), ["correct", "restore", "archive", "forget"]),
        (MemoryState("archived", True), ["restore", "forget"]),
        (MemoryState("deleted", True), ["restore"]),
    ],
)
def test_the_state_decides(memory: MemoryState, keys: list[str]):
    """The table says what each state allows."""
    assert sorted(action.key for action in list_actions(memory)) == sorted(keys)


def test_every_action_is_a_verb_with_these_parameters():
    """A button sends nothing that its verb does not take."""
    procedures = build_procedures(HTTP)
    for action in ACTIONS:
        parameters = procedures[action.verb].parameters
        assert {"commit", *action.switches} <= set(parameters)
        assert not action.reason or "reason" in parameters
    for several in SEVERAL:
        assert {name for name, _label in several.fields} <= {*procedures[several.verb].parameters}


def test_each_button_does_what_it_says_and_undo_takes_it_back(sandbox: Sandbox, writer: Web):
    """All changes of a life go through the buttons of a page, each with a preview."""
    sandbox.memory("dec-a", "Seats are held.\n", status="candidate")
    sandbox.commit()
    page = "/m/dec-a"
    assert "undo dec-a" not in writer.get(page).text
    steps = [("confirm", ""), ("pin", ""), ("unpin", ""), ("deprecate", "old"), ("restore", "")]
    for key, reason in [*steps, ("archive", "old"), ("restore", ""), ("forget", "wrong")]:
        name = f"{key} dec-a"
        shown = writer.form(
            f"/do/{key}",
            fill(writer, page, name, reason=reason) if reason else fill(writer, page, name),
        )
        done = writer.form(f"/do/{key}", Form(shown, name).pairs)
        assert done.status == 200, key
        assert "undo dec-a" in done.text, key
        assert "git revert" not in done.text
    gone = writer.get(page)
    assert gone.status == 200
    forms = re.findall(r'name="form" value="([^"]+)"', gone.text)
    assert forms == ["restore dec-a", "undo dec-a"]
    assert "Undo: forgotten" in gone.text
    shown = writer.form("/do/undo", fill(writer, page, "undo dec-a"))
    assert writer.form("/do/undo", Form(shown, "undo dec-a").pairs).status == 200
    assert "forget dec-a" in writer.get(page).text
    assert sandbox.git("status", "--porcelain") == ""


def test_a_replaced_memory_offers_to_take_that_back(sandbox: Sandbox, writer: Web):
    """Nothing else of its life is offered, apart from putting it away."""
    sandbox.memory("dec-a", "Seats are held.\n")
    sandbox.commit()
    sandbox.run("supersede", "dec-a", "Seats wait", "--body", "A seat waits.", "--commit")
    page = writer.get("/m/dec-a").text
    assert "Undo: it was replaced" in page
    assert "Confirm that it holds" not in page


def test_a_server_that_reads_has_no_button(sandbox: Sandbox, web: Web):
    """Neither has the page of a past revision."""
    sandbox.memory("dec-a")
    sandbox.commit()
    assert "/do/" not in web.get("/m/dec-a").text
    assert "/do/" not in web.get("/m/dec-a?at=HEAD").text


def test_the_same_lesson_of_two_sessions_is_shown_once(sandbox: Sandbox, writer: Web):
    """With both sessions as links; one button dismisses all of it, and one brings it back."""
    statement = "From now on always sell the seats at the window first."
    sessions = []
    for title in ("one", "two"):
        sessions.append(sandbox.run("session", "start", "--title", title).stdout.strip())
        sandbox.run("session", "add", sessions[-1], "--role", "user", statement)
    rows = sandbox.json("promote", "--list")["findings"]
    assert [row["content"] for row in rows] == [rows[0]["content"]] * 2
    page = writer.get("/findings").text
    assert page.count(f">{rows[0]['content']}</a>") == 1
    assert all(f'href="/sessions/{session}"' in page for session in sessions)
    (name,) = re.findall(r'name="form" value="(dismiss [^"]+)"', page)
    assert Form(writer.get("/findings"), name).text.count('name="dismiss"') == 2
    sent = fill(writer, "/findings", name, reason="it held for a day")
    assert writer.form("/do/promote", sent).status == 303
    after = writer.get("/findings").text
    assert "1 lesson dismissed" in after
    assert "No lessons yet" in after
    (name,) = re.findall(r'name="form" value="(reopen [^"]+)"', after)
    assert writer.form("/do/promote", fill(writer, "/findings", name)).status == 303
    assert "dismissed" not in writer.get("/findings").text


def test_a_question_is_shown_with_the_message_around_it(sandbox: Sandbox, writer: Web):
    """A reviewer sees who found it and what the person said before and after, as text."""
    id_ = sandbox.run("session", "start", "--title", "one").stdout.strip()
    text = "The <b>queue</b> was long. From now on always sell the seats at the window first."
    sandbox.run("session", "add", id_, "--role", "user", text)
    page = writer.get("/findings").text
    assert "found by the rules, 1 point" in page
    assert f"In the message: “{html.escape(text)}”" in page


def test_a_lesson_of_a_commit_has_its_words(sandbox: Sandbox, writer: Web):
    """Its title stands before what the commit says, with the commit instead of a session."""
    sandbox.write("app.py", "x = 1\n")
    message = (
        "Keep sessions in Redis\n\nWe decided to keep the sessions in Redis, because the database "
        "is too slow for them and cannot expire rows by itself."
    )
    sandbox.git("add", ".")
    sandbox.git("commit", "-qm", message)
    sandbox.run("import", "git")
    page = writer.get("/findings").text
    rows = sandbox.json("promote", "--list")["findings"]
    assert [row["commit"] for row in rows if row["commit"]], "the commit states nothing"
    for row in rows:
        assert row["title"] in page
        assert f"commit <code>{row['commit'][:7]}" in page
    assert 'href="/sessions/"' not in page
