"""Settling what rests on a changed premise: with `confirm`, with `supersede`, and back."""

from __future__ import annotations

import pytest
from conftest import Sandbox
from tower import NEW, NORTH, OLD, PLAN, replace_premise, write_tower

from memtool.authoring.tree import with_attributes
from memtool.commands.archive import confirm
from memtool.commands.new import supersede
from memtool.errors import MemtoolError
from memtool.hosts import git as host
from memtool.search.unsettled import Unsettled

LATER = "sem-2026-02-03-towers-over-60-floors-c9d4"
OTHER = "dec-2026-02-01-south-tower-5h6j"


@pytest.fixture
def tower(sandbox: Sandbox) -> Sandbox:
    """A premise that was replaced, a conclusion, and what rests on that."""
    write_tower(sandbox)
    return sandbox


@pytest.fixture
def standing(sandbox: Sandbox) -> Sandbox:
    """The same before the premise was replaced, with a second conclusion."""
    write_tower(sandbox, is_replaced=False)
    sandbox.memory(
        OTHER,
        "The south tower has 41 floors and is reviewed as well.\n",
        title="The south tower is reviewed",
        source=(f"memory:{OLD}",),
    )
    sandbox.commit()
    return sandbox


def unsettled(sandbox: Sandbox) -> dict[str, list[str]]:
    """Return the names of the causes of each unsettled memory."""
    context = sandbox.context()
    causes = Unsettled(context.tree(), context.clock.now).all
    listed = sandbox.run("list", "is:unsettled", "--json").stdout
    assert all(id_ in listed for id_ in causes)
    return {id_: sorted(own) for id_, own in causes.items()}


def accepted(sandbox: Sandbox, id_: str) -> tuple[str, ...]:
    return sandbox.context().tree()[id_].memory.items("settled_on")


def succeed(sandbox: Sandbox, *words: str) -> str:
    """Run a verb; return what it prints."""
    done = sandbox.run(*words)
    assert done.returncode == 0, done.stderr
    return done.stderr


def refuse(sandbox: Sandbox, *words: str) -> str:
    """Run a verb that refuses and changes nothing; return what it prints."""
    before = sandbox.git("status", "--porcelain"), sandbox.git("rev-parse", "HEAD")
    done = sandbox.run(*words)
    assert done.returncode == 2, done.stdout
    assert (sandbox.git("status", "--porcelain"), sandbox.git("rev-parse", "HEAD")) == before
    return done.stderr


def test_a_plain_confirmation_is_refused_until_somebody_looked(tower: Sandbox) -> None:
    """With what changed, and both ways on; of what rests on it, the way is to settle the lowest."""
    assert refuse(tower, "confirm", NORTH, "--commit") == (
        'memtool: cannot confirm "The north tower gets a class F review" (dec-2g54): '
        "sem-k3f9 is now sem-b7x2\n"
        "hint: memtool supersede dec-2g54 TITLE\n"
        "hint: still true: memtool confirm dec-2g54 --still-holds\n"
    )
    reply = refuse(tower, "confirm", PLAN)
    assert "dec-2g54 rests on what is now sem-b7x2" in reply
    assert "still true: memtool confirm dec-2g54 --still-holds" in reply
    assert tower.json("confirm", NEW)["changes"]


def test_a_premise_changes_and_is_settled_and_changes_again(tower: Sandbox) -> None:
    """The lowest settles what rests on it, in one commit, until another cause comes."""
    assert unsettled(tower) == {NORTH: [f"memory:{NEW}"], PLAN: [f"memory:{NEW}"]}
    reply = succeed(tower, "confirm", NORTH, "--still-holds", "--commit")
    assert "dec-2g54 still holds, although sem-k3f9 is now sem-b7x2\n" in reply
    assert "1 memory that rests on it is settled too: sem-r8d3\n" in reply
    assert accepted(tower, NORTH) == (f"memory:{NEW}",)
    assert tower.context().tree()[NORTH].memory.table("checked")["at"]
    assert unsettled(tower) == {}
    assert tower.git("status", "--porcelain") == ""
    assert tower.run("check").returncode == 0
    tower.memory(LATER, "A tower over 60 floors needs it.\n", supersedes=(NEW,))
    tower.commit()
    assert unsettled(tower) == {NORTH: [f"memory:{LATER}"], PLAN: [f"memory:{LATER}"]}
    succeed(tower, "confirm", NORTH, "--still-holds", "--commit")
    assert accepted(tower, NORTH) == (f"memory:{NEW}", f"memory:{LATER}")
    succeed(tower, "deprecate", LATER, "--commit")
    assert unsettled(tower) == {NORTH: [f"without:{LATER}"], PLAN: [f"without:{LATER}"]}
    succeed(tower, "confirm", NORTH, "--still-holds", "--commit")
    assert unsettled(tower) == {}


def test_undo_takes_a_settling_back(tower: Sandbox) -> None:
    """Together with the confirmation, whether it is committed or not."""
    for commit in ([], ["--commit"]):
        succeed(tower, "confirm", NORTH, "--still-holds", *commit)
        assert unsettled(tower) == {}
        succeed(tower, "undo", NORTH, *commit)
        memory = tower.context().tree()[NORTH].memory
        assert (memory.items("settled_on"), memory.table("checked")) == ((), {})
        assert NORTH in unsettled(tower)
        assert tower.git("status", "--porcelain") == ""


def test_several_are_settled_in_one_commit(tower: Sandbox) -> None:
    """By a query as well; each accepts the causes of its own."""
    before = tower.git("rev-list", "--count", "HEAD")
    reply = succeed(tower, "confirm", "is:unsettled", "--still-holds", "--commit")
    assert "dec-2g54 still holds, although sem-k3f9 is now sem-b7x2\n" in reply
    assert "sem-r8d3 still holds, although dec-2g54 rests on what is now sem-b7x2\n" in reply
    assert "settled too" not in reply
    assert int(tower.git("rev-list", "--count", "HEAD")) == int(before) + 1
    assert accepted(tower, NORTH) == accepted(tower, PLAN) == (f"memory:{NEW}",)


def test_drift_and_premises_are_settled_alike_and_told_apart(tower: Sandbox) -> None:
    """To confirm a broken premise heals what rests on it, without a cause."""
    code = tower.write("app/review.py", "CLASS = 'F'\n")
    tower.memory("sem-file", "app/review.py decides.\n", files=("app/review.py",))
    tower.memory("dec-on-file", "So we ask it.\n", source=("memory:sem-file",))
    tower.commit()
    code.unlink()
    tower.commit()
    assert "sem-file" in refuse(tower, "confirm", "sem-file", "--commit")
    reply = refuse(tower, "confirm", "dec-on-file", "--commit")
    assert "what sem-file cites is gone" in reply
    reply = succeed(tower, "confirm", "sem-file", "--still-holds", "--commit")
    assert "sem-file still holds, although what it cites is gone\n" in reply
    assert "1 memory that rests on it is settled too: dec-on-file\n" in reply
    assert accepted(tower, "sem-file") == ()
    assert "sem-r8d3" not in reply
    assert tower.json("confirm", "dec-on-file")["changes"]


def test_without_a_cause_it_is_a_plain_confirmation(standing: Sandbox) -> None:
    """Nothing is added, and a note says so."""
    reply = succeed(standing, "confirm", NORTH, "--still-holds", "--commit")
    assert "nothing was settled: what is cited still holds here\n" in reply
    assert accepted(standing, NORTH) == ()


def test_more_causes_than_the_walk_keeps_are_all_settled(sandbox: Sandbox) -> None:
    """One act is enough for a memory that rests on many."""
    names = [f"sem-premise-{number:02}" for number in range(40)]
    for name in names:
        sandbox.memory(name, f"About {name * 2}.\n", status="deprecated")
    sandbox.memory("dec-a", source=tuple(f"memory:{name}" for name in names))
    sandbox.commit()
    succeed(sandbox, "confirm", "dec-a", "--still-holds", "--commit")
    assert accepted(sandbox, "dec-a") == tuple(f"without:{name}" for name in names)
    assert unsettled(sandbox) == {}


def settle_on_branches(tower: Sandbox) -> None:
    """Let two branches settle another cause each."""
    tower.write(".gitattributes", with_attributes(b"", ".memory"))
    tower.git("config", "merge.memtool.driver", host.build_driver())
    tower.commit()
    tower.git("switch", "--quiet", "--create", "two")
    succeed(tower, "confirm", NORTH, "--still-holds", "--commit")
    tower.git("switch", "--quiet", "main")
    tower.memory(LATER, "A tower over 60 floors needs it.\n", supersedes=(NEW,))
    tower.commit()
    succeed(tower, "confirm", NORTH, "--still-holds", "--commit")


@pytest.mark.parametrize("way", ["merge", "rebase"])
def test_two_branches_settle_and_nothing_is_lost(tower: Sandbox, way: str) -> None:
    """The driver unites what both accepted, and the memories pass the check."""
    settle_on_branches(tower)
    if way == "merge":
        tower.git("merge", "--quiet", "--no-edit", "two")
    else:
        tower.git("rebase", "--quiet", "two")
    assert accepted(tower, NORTH) == (f"memory:{NEW}", f"memory:{LATER}")
    assert unsettled(tower) == {}
    assert tower.run("check").returncode == 0


def test_ids_that_are_gone_are_no_problem(tower: Sandbox) -> None:
    """Nor are repeated ones, written by hand; what is no cause is named with its line."""
    path = tower.path / f".memory/decision/2026-02/{NORTH}.md"
    text = path.read_text()
    lines = f"settled_on:\n  - memory:sem-gone\n  - memory:{NEW}\n  - memory:{NEW}\n---\nThe north"
    path.write_text(text.replace("---\nThe north", lines))
    assert unsettled(tower) == {}
    done = tower.run("check")
    assert (done.returncode, "sem-gone" in done.stdout) == (0, False)
    path.write_text(text.replace("---\nThe north", lines.replace("memory:sem-gone", "sem-gone")))
    line = text.split("---\nThe north")[0].count("\n") + 1
    assert (
        f"{NORTH}.md:{line}: bad-value settled_on: 'sem-gone' is not a cause: write memory:ID or "
        "without:ID" in tower.run("check").stdout
    )


# supersede --with-conclusions

REWORDED = ("supersede", OLD, "Towers over 40 floors have a class F review")
TEXT = ("--body", "A tower of more than 40 floors has a class F review first.")


def test_a_premise_in_other_words_unsettles_nothing(standing: Sandbox) -> None:
    """Each direct conclusion accepts the new words, in the same commit."""
    reply = succeed(standing, *REWORDED, *TEXT, "--with-conclusions", "--commit")
    assert "2 memories that rest on sem-k3f9 are settled: dec-2g54, dec-5h6j\n" in reply
    assert unsettled(standing) == {}
    assert standing.git("status", "--porcelain") == ""
    (new,) = (i for i in standing.context().tree().ids if i not in (OLD, NORTH, PLAN, OTHER))
    assert accepted(standing, NORTH) == accepted(standing, OTHER) == (f"memory:{new}",)
    assert accepted(standing, PLAN) == ()
    assert standing.git("show", "--name-only", "--format=").count(".md") == 3
    assert standing.run("check").returncode == 0
    again = ("supersede", new, "Towers with over 40 floors are reviewed as class F")
    body = ("--body", "Class F applies to towers with more than 40 floors.")
    succeed(standing, *again, *body, "--with-conclusions", "--commit")
    assert unsettled(standing) == {}


def test_it_is_needed(standing: Sandbox) -> None:
    """Without it a note says what is unsettled now."""
    reply = succeed(standing, *REWORDED, *TEXT, "--commit")
    assert "3 memories rest on it and are unsettled (memtool list is:unsettled)\n" in reply
    assert set(unsettled(standing)) == {NORTH, OTHER, PLAN}


def test_a_correction_that_loses_its_premises_says_so(tower: Sandbox) -> None:
    """It has only the premises that it names, and the old one's no longer unsettle it."""
    call = ("supersede", NORTH, "The north tower needs no class F review", "--body", "44 floors.")
    note = "the old memory rested on sem-k3f9, the new one on none; if it should: --source memory:"
    assert f"{note}sem-b7x2\n" in succeed(tower, *call, "--dry-run")
    reply = succeed(tower, *call, "--source", f"memory:{NEW}", "--commit")
    assert "the old memory rested on" not in reply


def test_what_was_unsettled_before_stays_so(tower: Sandbox) -> None:
    """Other words of the new premise say nothing of the change before."""
    call = ("supersede", NEW, "Towers over 50 floors have a class F review")
    reply = succeed(tower, *call, *TEXT, "--with-conclusions", "--commit")
    assert "nothing rests on sem-b7x2, so there is nothing to settle\n" in reply
    assert set(unsettled(tower)) == {NORTH, PLAN}


@pytest.mark.parametrize("options", [["--commit"], []])
def test_undo_takes_all_of_it_back(standing: Sandbox, options: list[str]) -> None:
    """The new memory and the lines of the conclusions; not committed, or in one commit."""
    before = standing.git("rev-parse", "HEAD^{tree}")
    succeed(standing, *REWORDED, *TEXT, "--with-conclusions", *options)
    assert accepted(standing, NORTH)
    succeed(standing, "undo", OLD, *options)
    assert standing.git("status", "--porcelain") == ""
    assert standing.git("rev-parse", "HEAD^{tree}") == before
    assert unsettled(standing) == {}


def test_undo_after_a_push_keeps_the_new_memory(standing: Sandbox) -> None:
    """A third repeats the old words, and what rests on it is settled as it was."""
    succeed(standing, *REWORDED, *TEXT, "--with-conclusions", "--commit")
    standing.git("branch", "other")
    succeed(standing, "undo", OLD, "--commit")
    assert unsettled(standing) == {}


def test_a_conclusion_alone_can_be_taken_back(standing: Sandbox) -> None:
    """It is unsettled then, and the others are not."""
    succeed(standing, *REWORDED, *TEXT, "--with-conclusions", "--commit")
    assert "settled" in standing.run("log", NORTH).stdout
    succeed(standing, "undo", NORTH, "--commit")
    assert set(unsettled(standing)) == {NORTH, PLAN}


def test_changes_of_others_are_not_committed_with_it(standing: Sandbox) -> None:
    """Nothing is written then; without --commit all stays in the worktree."""
    path = standing.path / f".memory/decision/2026-02/{OTHER}.md"
    path.write_text(path.read_text().replace("confidence", "importance: 0.9\nconfidence"))
    reply = refuse(standing, *REWORDED, *TEXT, "--with-conclusions", "--commit")
    assert "dec-2026-02-01-south-tower-5h6j.md has uncommitted changes" in reply
    succeed(standing, *REWORDED, *TEXT, "--with-conclusions")
    assert unsettled(standing) == {}
    assert accepted(standing, OTHER)


def test_a_conclusion_that_cannot_be_changed_stops_it(standing: Sandbox) -> None:
    """A merge is unfinished in its file: neither it nor the new memory is written."""
    path = standing.path / f".memory/decision/2026-02/{OTHER}.md"
    text = path.read_text()
    sides = "<<<<<<< a\nimportance: 0.9\n=======\nimportance: 0.8\n>>>>>>> b\n"
    path.write_text(text.replace("confidence: medium\n", f"{sides}confidence: medium\n"))
    refuse(standing, *REWORDED, *TEXT, "--with-conclusions")
    assert not accepted(standing, NORTH)


def test_an_agent_only_proposes(standing: Sandbox) -> None:
    """A candidate replaces nothing, and settles nothing."""
    context = standing.context()
    context.caller.agent = "robot"
    with pytest.raises(MemtoolError, match="a candidate replaces nothing") as refused:
        supersede(context, OLD, REWORDED[2], body=TEXT[1], with_conclusions=True)
    assert refused.value.code == "agent"
    with pytest.raises(MemtoolError, match="only the user can confirm"):
        confirm(context, NORTH, still_holds=True)
    assert standing.git("status", "--porcelain") == ""


def test_a_dry_run_writes_nothing(standing: Sandbox) -> None:
    """It names what it would settle."""
    reply = succeed(standing, *REWORDED, *TEXT, "--with-conclusions", "--dry-run")
    assert "2 memories that rest on sem-k3f9 would be settled: dec-2g54, dec-5h6j\n" in reply
    assert standing.git("status", "--porcelain") == ""
    reply = succeed(standing, "confirm", NORTH, "--still-holds", "--dry-run")
    assert "unsettled" not in reply


# What an act leaves unsettled


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (("forget", OLD, "--reason", "wrong"), 3),
        (("deprecate", OLD), 3),
        (("archive", OLD), 0),
        (("deprecate", OLD, "--dry-run"), 0),
        (("deprecate", PLAN), 0),
    ],
)
def test_an_act_says_what_it_leaves_unsettled(
    standing: Sandbox, words: tuple[str, ...], count: int
) -> None:
    """In one line; what is put away has passed and was not false."""
    note = f"{count} memories rest on it and are unsettled (memtool list is:unsettled)\n"
    assert (note in succeed(standing, *words)) == bool(count)
    assert len(unsettled(standing)) == count


def test_replaced_and_replaced_again(sandbox: Sandbox) -> None:
    """The note after a second change counts what it reaches, although it cites the first."""
    write_tower(sandbox, is_replaced=False)
    replace_premise(sandbox)
    reply = succeed(sandbox, "supersede", NEW, "Towers over 60 floors need it", *TEXT)
    assert "2 memories rest on it and are unsettled" in reply
