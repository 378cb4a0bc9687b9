"""What reviewers made of the lessons of a clone."""

from __future__ import annotations

from commands.test_promote import listed, session
from conftest import Sandbox

WISH = "Remember: the crons run in UTC."
RULES = ("Never retry payments after a timeout.", "I prefer small pull requests to large ones.")


def rows(sandbox: Sandbox) -> dict[str, tuple[int, int, int, float | None]]:
    lessons = sandbox.json("eval", "--sessions")["lessons"]
    return {
        row["kind"]: (row["promoted"], row["dismissed"], row["waiting"], row["precision"])
        for row in lessons
    }


def test_lessons_are_counted_by_what_became_of_them(sandbox: Sandbox):
    """Kept, dismissed or waiting; the same words in two sessions are one lesson."""
    assert rows(sandbox) == {}
    sandbox.memory("dec-a")
    session(sandbox, WISH, *RULES)
    session(sandbox, WISH)
    assert rows(sandbox) == {
        "asked to remember": (0, 0, 1, None),
        "recognised by a rule": (0, 0, 2, None),
    }
    ids = {content: row["id"] for content, row in listed(sandbox).items()}
    assert sandbox.run("promote", "--finding", ids[RULES[0]]).returncode == 0
    assert sandbox.run("promote", "--dismiss", ids[RULES[1]], "--reason", "no").returncode == 0
    assert rows(sandbox)["recognised by a rule"] == (1, 1, 0, 0.5)
    assert "precision 0.50" in sandbox.run("eval", "--sessions").stdout


def test_a_forgotten_memory_was_not_worth_keeping(sandbox: Sandbox):
    """What a person promoted and then forgot counts as dismissed."""
    session(sandbox, WISH)
    (made,) = sandbox.json("promote", "--commit")["memories"]
    assert rows(sandbox) == {"asked to remember": (1, 0, 0, 1.0)}
    forgotten = sandbox.run("forget", made["id"], "--reason", "wrong", "--commit")
    assert forgotten.returncode == 0, forgotten.stderr
    assert rows(sandbox) == {"asked to remember": (0, 1, 0, 0.0)}


def test_it_goes_with_no_query(sandbox: Sandbox):
    """One sentence says so."""
    done = sandbox.run("eval", "--sessions", "--gated")
    assert (done.returncode, "takes no queries" in done.stderr) == (2, True)
