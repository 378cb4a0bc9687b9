"""Proposals: an unconfirmed memory is shown next to the one it would replace."""

from __future__ import annotations

import pytest
from conftest import Sandbox

OLD, NEW = "dec-2026-02-01-use-celery-0001", "dec-2026-02-02-use-rq-0002"
SHORT_OLD, SHORT_NEW = "dec-0001", "dec-0002"
QUESTION = "which queue do background jobs use?"
PROPOSAL = f"{NEW} proposes to replace {OLD}"
SHORT_PROPOSAL = "dec-0002 proposes to replace dec-0001"


@pytest.fixture
def team(sandbox: Sandbox) -> Sandbox:
    """A committed decision about a file, and a committed candidate that supersedes it."""
    sandbox.write("jobs/worker.py", "queue = 'celery'\n")
    sandbox.memory(
        OLD, "Background jobs use the queue of Celery.\n", title="Use Celery", files=("jobs/*",)
    )
    sandbox.commit()
    done = sandbox.run(
        "supersede",
        "use-celery",
        "Use RQ",
        "--body",
        "Background jobs use the queue of RQ.",
        "--set",
        "status=candidate",
        "--id",
        NEW,
        "--commit",
    )
    assert "it proposes to replace dec-0001; to do it: memtool confirm dec-0002" in done.stderr
    return sandbox


def ask(sandbox: Sandbox, *options: str) -> list[str]:
    """Return the ids of a block, in alphabetical order."""
    return sorted(item["id"] for item in sandbox.json("inject", *options)["items"])


def listed(sandbox: Sandbox) -> list[str]:
    return sorted(memory["id"] for memory in sandbox.json("list")["memories"])


def test_both_are_shown_until_somebody_decides(team: Sandbox) -> None:
    """In blocks, by question and by file, in a primer, in search and in each report, marked."""
    assert ask(team, "--prompt", QUESTION) == [OLD, NEW]
    assert OLD in ask(team, "--files", "jobs/worker.py")
    text = team.run("inject", "--prompt", QUESTION).stdout
    assert f"would be superseded by {SHORT_NEW}, not confirmed" in text
    assert f"would supersede {SHORT_OLD}" in text
    assert team.run("search", "background jobs").stdout.count(SHORT_PROPOSAL) == 2
    assert "dec-0002  Use RQ  for dec-0001" in team.run("status").stdout
    for id_ in (OLD, NEW):
        assert team.json("why", id_)["proposals"] == [PROPOSAL]
        assert team.json("show", id_)["proposals"] == [PROPOSAL]
    assert listed(team) == [OLD, NEW]
    assert team.json("list", "is:superseded")["memories"] == []
    assert team.json("check")["problems"] == []


def test_a_pinned_decision_stays_pinned(team: Sandbox) -> None:
    """The primer shows the candidate next to the decision it would replace, marked."""
    team.run("pin", OLD, "--commit")
    text = team.run("inject", "--primer").stdout
    assert f"would be superseded by {SHORT_NEW}, not confirmed" in text
    assert f"[{SHORT_OLD}@" in text


def test_where_no_candidate_is_shown_the_old_one_is_as_it_was(team: Sandbox) -> None:
    """AGENTS.md has the confirmed memory alone, without a mark."""
    team.run("pin", OLD, "--commit")
    team.run("inject", "--into", "AGENTS.md")
    text = (team.path / "AGENTS.md").read_text()
    assert "queue of Celery" in text
    assert "RQ" not in text
    assert "PROPOSED" not in text


@pytest.mark.parametrize("verb", ["archive", "deprecate", "forget"])
def test_put_away_the_candidate_leaves_the_old_one_what_it_was(team: Sandbox, verb: str) -> None:
    """And undo brings the proposal back as it was."""
    team.run(verb, NEW, *(["--reason", "no"] if verb == "forget" else []), "--commit")
    assert ask(team, "--prompt", QUESTION) == [OLD]
    assert "PROPOSED" not in team.run("inject", "--prompt", QUESTION).stdout
    assert "Proposed replacements" not in team.run("status").stdout
    team.run("undo", NEW, "--commit")
    assert ask(team, "--prompt", QUESTION) == [OLD, NEW]
    assert team.json("show", NEW)["status"] == "candidate"


def test_upkeep_puts_an_expired_candidate_away_and_the_old_one_stays(team: Sandbox) -> None:
    """Half a year later the candidate is archived, and the decision is still the one that holds."""
    later = {"MEMTOOL_NOW": "2026-11-01T12:00:00Z"}
    team.run("maintain", "--weekly", "--apply", **later)
    assert team.json("show", NEW, **later)["status"] == "archived"
    assert team.json("show", NEW, **later)["retired"]["was"] == "candidate"
    items = team.json("inject", "--prompt", QUESTION, **later)["items"]
    assert [item["id"] for item in items] == [OLD]


def test_a_look_confirms_no_proposal(sandbox: Sandbox) -> None:
    """Upkeep leaves it to a person, whoever opened it, unless a commit upholds it."""
    sandbox.memory(OLD, "Background jobs use the queue of Celery.\n")
    sandbox.memory(NEW, "Jobs use RQ.\n", status="candidate", supersedes=(OLD,))
    sandbox.commit()
    sandbox.run("show", NEW)
    later = {"MEMTOOL_NOW": "2026-03-05T12:00:00Z"}
    answer = sandbox.json("maintain", "--nightly", **later)
    assert answer["steps"] == []
    assert f"it would replace {OLD}" in str(answer["flags"])
    sandbox.git("commit", "--quiet", "--allow-empty", "--message", f"go\n\nUpholds: {NEW}")
    (step,) = sandbox.json("maintain", "--nightly", **later)["steps"]
    assert (step["do"], step["id"]) == ("confirm", NEW)


def test_who_settles_for_a_candidate_confirms_it(team: Sandbox) -> None:
    """The memory that resolve writes replaces both sides, the proposal and what holds."""
    team.run("resolve", NEW, OLD, "--keep", NEW, "--reason", "RQ it is.", "--commit")
    (item,) = team.json("inject", "--prompt", QUESTION)["items"]
    assert "queue of RQ" in item["text"]
    assert "[CANDIDATE]" not in item["text"]


@pytest.mark.parametrize("verb", ["confirm", "pin"])
def test_confirmed_it_replaces(team: Sandbox, verb: str) -> None:
    """From the confirmation on the old one is superseded, and the history says by what."""
    done = team.run(verb, NEW, "--commit")
    assert "dec-0002 replaces dec-0001 from now on" in done.stderr
    assert ask(team, "--prompt", QUESTION) == [NEW]
    assert [memory["id"] for memory in team.json("list", "is:superseded")["memories"]] == [OLD]
    (event,) = [event for event in team.json("log", OLD)["events"] if event["kind"] == "superseded"]
    assert event["details"]["by"] == NEW
    team.run("archive", NEW, "--commit")
    assert ask(team, "--prompt", QUESTION) == []  # it was replaced, and stays so


def test_a_proposal_is_no_side_of_a_fork_until_it_is_confirmed(team: Sandbox) -> None:
    """Then confirm says that the fork is open and what settles it; so does supersede of a side."""
    other, third = "dec-2026-02-03-use-dramatiq-0003", "dec-2026-02-04-use-huey-0004"
    done = team.run(
        "supersede", OLD, "Use Dramatiq", "--body", "Jobs use Dramatiq.", "--id", other, "--commit"
    )
    assert "as well" not in done.stderr
    assert team.json("conflicts")["conflicts"] == []
    done = team.run("confirm", NEW, "--commit")
    assert "dec-0003 replaces dec-0001 as well: memtool resolve dec-0002 dec-0003" in done.stderr
    assert "! Conflict    dec-0003  Use Dramatiq" in team.run("show", NEW).stdout
    done = team.run("supersede", NEW, "Use Huey", "--body", "Jobs use Huey.", "--id", third)
    assert "memtool resolve dec-0004 dec-0003 --keep dec-0004" in done.stderr
    settled = team.run("resolve", third, other, "--keep", third, "--reason", "Huey is enough.")
    assert settled.returncode == 0
    assert team.json("conflicts")["conflicts"] == []


def test_a_record_that_is_only_proposed_replaces_nothing(sandbox: Sandbox) -> None:
    """Imported decisions follow the same rule, and importing them again finds no difference."""
    sandbox.write(
        "adr/0001-two.md",
        "# 1. Two sources\n\n## Status\n\nAccepted\n\n## Decision\n\n"
        "Templates live in two sources.\n",
    )
    sandbox.write(
        "adr/0002-one.md",
        "# 2. One source\n\n## Status\n\nProposed\n\nSupersedes "
        "[1](0001-two.md)\n\n## Decision\n\nTemplates live in one source.\n",
    )
    sandbox.commit()
    sandbox.run("import", "adr", "adr", "--commit")
    prompt = ("--prompt", "how many sources do templates live in?")
    assert ask(sandbox, *prompt) == ["adr-0001-two", "adr-0002-one"]
    again = sandbox.run("import", "adr", "adr")
    assert "0 written, 2 unchanged" in again.stdout + again.stderr
