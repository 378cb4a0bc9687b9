"""Proposals: a memory that nobody has confirmed stands beside what it would replace."""

from __future__ import annotations

import pytest
from conftest import Sandbox

OLD, NEW = "dec-2026-02-01-use-celery-0001", "dec-2026-02-02-use-rq-0002"
QUESTION = "which queue do background jobs use?"
PROPOSAL = f"{NEW} proposes to replace {OLD}"


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
    assert f"it proposes to replace {OLD}, which holds until memtool confirm {NEW}" in done.stderr
    return sandbox


def asked(sandbox: Sandbox, *options: str) -> list[str]:
    """Return the ids of a block, in alphabetical order."""
    return sorted(one["id"] for one in sandbox.json("inject", *options)["items"])


def listed(sandbox: Sandbox) -> list[str]:
    return sorted(one["id"] for one in sandbox.json("list")["memories"])


def test_both_are_shown_until_somebody_decides(team: Sandbox) -> None:
    """In blocks, by question and by file, in a primer, in search and in each report, marked."""
    assert asked(team, "--prompt", QUESTION) == [OLD, NEW]
    assert OLD in asked(team, "--files", "jobs/worker.py")
    text = team.run("inject", "--prompt", QUESTION).stdout
    assert f"[PROPOSED] {NEW} would replace it" in text
    assert f"[PROPOSED] to replace {OLD}" in text
    assert f"to replace {OLD}: {NEW}" in team.run("inject", "--primer").stdout
    assert team.run("search", "background jobs").stdout.count(PROPOSAL) == 2
    assert PROPOSAL in team.run("status").stdout
    for id_ in (OLD, NEW):
        assert team.json("why", id_)["proposals"] == [PROPOSAL]
        assert team.json("show", id_)["proposals"] == [PROPOSAL]
    assert listed(team) == [OLD, NEW]
    assert team.json("list", "is:superseded")["memories"] == []
    assert team.json("check")["problems"] == []


def test_a_pinned_decision_stays_pinned(team: Sandbox) -> None:
    """The candidate stands in the primer beside what it would replace, marked."""
    team.run("pin", OLD, "--commit")
    text = team.run("inject", "--primer").stdout
    assert f"[PROPOSED] {NEW} would replace it" in text
    assert f"[{OLD}@" in text


def test_where_no_candidate_is_shown_the_old_one_is_as_it_was(team: Sandbox) -> None:
    """AGENTS.md has the confirmed memory alone, without a mark."""
    team.run("pin", OLD, "--commit")
    team.run("inject", "--write", "AGENTS.md")
    text = (team.path / "AGENTS.md").read_text()
    assert "queue of Celery" in text
    assert "RQ" not in text
    assert "PROPOSED" not in text


@pytest.mark.parametrize("verb", ["archive", "deprecate", "forget"])
def test_put_away_the_candidate_leaves_the_old_one_what_it_was(team: Sandbox, verb: str) -> None:
    """And undo brings the proposal back as it was."""
    team.run(verb, NEW, *(["--why", "no"] if verb == "forget" else []), "--commit")
    assert asked(team, "--prompt", QUESTION) == [OLD]
    assert "PROPOSED" not in team.run("inject", "--prompt", QUESTION).stdout
    assert PROPOSAL not in team.run("status").stdout
    team.run("undo", NEW, "--commit")
    assert asked(team, "--prompt", QUESTION) == [OLD, NEW]
    assert team.json("show", NEW)["status"] == "candidate"


def test_upkeep_puts_an_expired_candidate_away_and_the_old_one_stays(team: Sandbox) -> None:
    """Half a year later the candidate is archived, and the decision is still the one that holds."""
    later = {"MEMTOOL_NOW": "2026-11-01T12:00:00Z"}
    team.run("maintain", "--weekly", "--apply", **later)
    assert team.json("show", NEW, **later)["status"] == "archived"
    assert team.json("show", NEW, **later)["retired"]["was"] == "candidate"
    found = team.json("inject", "--prompt", QUESTION, **later)["items"]
    assert [one["id"] for one in found] == [OLD]


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
    team.run("resolve", NEW, OLD, "--keep", NEW, "--why", "RQ it is.", "--commit")
    (item,) = team.json("inject", "--prompt", QUESTION)["items"]
    assert "queue of RQ" in item["text"]
    assert "[CANDIDATE]" not in item["text"]


@pytest.mark.parametrize("verb", ["confirm", "pin"])
def test_confirmed_it_replaces(team: Sandbox, verb: str) -> None:
    """From the confirmation on the old one is superseded, and the history says by what."""
    done = team.run(verb, NEW, "--commit")
    assert f"{NEW} replaces {OLD} from now on" in done.stderr
    assert asked(team, "--prompt", QUESTION) == [NEW]
    assert [one["id"] for one in team.json("list", "is:superseded")["memories"]] == [OLD]
    (event,) = [one for one in team.json("log", OLD)["events"] if one["kind"] == "superseded"]
    assert event["details"]["by"] == NEW
    team.run("archive", NEW, "--commit")
    assert asked(team, "--prompt", QUESTION) == []  # it was replaced, and stays so


def test_a_proposal_is_no_side_of_a_fork_until_it_is_confirmed(team: Sandbox) -> None:
    """Then confirm says that the fork is open and what settles it; so does supersede of a side."""
    other, third = "dec-2026-02-03-use-dramatiq-0003", "dec-2026-02-04-use-huey-0004"
    done = team.run(
        "supersede", OLD, "Use Dramatiq", "--body", "Jobs use Dramatiq.", "--id", other, "--commit"
    )
    assert "as well" not in done.stderr
    assert team.json("conflicts")["conflicts"] == []
    done = team.run("confirm", NEW, "--commit")
    assert f"{other} replaces {OLD} as well: memtool resolve {NEW} {other}" in done.stderr
    assert f"with {other}" in team.run("show", NEW).stdout
    done = team.run("supersede", NEW, "Use Huey", "--body", "Jobs use Huey.", "--id", third)
    assert f"memtool resolve {third} {other} --keep {third}" in done.stderr
    settled = team.run("resolve", third, other, "--keep", third, "--why", "Huey is enough.")
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
    assert asked(sandbox, *prompt) == ["adr-0001-two", "adr-0002-one"]
    again = sandbox.run("import", "adr", "adr")
    assert "0 written, 2 unchanged" in again.stdout + again.stderr
