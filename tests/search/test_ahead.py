"""Memories of the trusted branch are shown on an older branch, and hide none of its own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from behind import NEW, ONLY, fall_behind, fetch, on_trusted
from conftest import Sandbox

from memtool.index import index
from memtool.search import ahead
from memtool.search.ahead import AheadCounts
from memtool.search.stages import overlay_tree
from memtool.store import ahead as deltas
from memtool.store.context import Context
from memtool.store.deadline import Deadline
from memtool.store.git import Git

NEWER = "NEWER ON origin/main: dec-new Longer holds"


@pytest.fixture
def behind(sandbox: Sandbox) -> Sandbox:
    """A branch that is behind, in which one decision and one fact are not known yet."""
    fall_behind(sandbox)
    return sandbox


def notices(sandbox: Sandbox, *query: str) -> dict[str, str]:
    """Return what a search says about each of its results, by id."""
    results = sandbox.json("search", *(query or ("seat",)))["results"]
    return {result["id"]: result.get("notice", "") for result in results}


def counts(sandbox: Sandbox) -> AheadCounts:
    context = sandbox.context()
    return ahead.count_ahead(context, index.open(context), context.clock.now)


def test_a_search_shows_both_and_says_which_is_newer(behind: Sandbox):
    """The old decision stays, marked; the new one and the added memory are found."""
    assert notices(behind) == {
        "dec-old": NEWER,
        "dec-new": f"{ONLY}; it replaces dec-old",
        "sem-bow": ONLY,
    }
    text = behind.run("search", "seat").stdout
    assert NEWER in text
    assert ONLY in text


def test_what_only_the_trusted_branch_has_is_cited_with_its_commit(behind: Sandbox):
    """Trust and commit are those that it has there."""
    commit = behind.git("rev-parse", "origin/main").strip()
    (hit,) = (
        result for result in behind.json("search", "bow")["results"] if result["id"] == "sem-bow"
    )
    assert (hit["trust"], hit["commit"]) == ("trusted", commit)
    assert behind.json("search", "bow", MEMTOOL_NO_CACHE="1") | {"elapsed_ms": 0} == behind.json(
        "search", "bow"
    ) | {"elapsed_ms": 0}


def test_show_has_the_notice_of_either(behind: Sandbox):
    """Also a memory that is not in the worktree is shown in full."""
    old, new = behind.json("show", "dec-old"), behind.json("show", "dec-new")
    assert (old["notice"], old["newer"], old["superseded_by"]) == (NEWER, ["dec-new"], [])
    assert (new["notice"], new["body"]) == (f"{ONLY}; it replaces dec-old", NEW)
    assert NEWER in behind.run("show", "dec-old").stdout.splitlines()
    assert "notice" not in behind.json("show", "dec-tea")


def test_a_verb_of_the_worktree_says_where_a_memory_is(behind: Sandbox):
    """A memory that is not here cannot be corrected here."""
    done = behind.run("supersede", "dec-new", "Hold a seat for 30 minutes")
    assert done.returncode == 2
    assert "dec-new (Longer holds) is on origin/main, not on this branch\n" in done.stderr
    assert "hint: memtool show dec-new --at origin/main\n" in done.stderr


def test_status_counts_what_changed_since_the_branch_began(behind: Sandbox):
    """It names the trusted branch, its commit, and what to look at."""
    text = behind.run("status").stdout
    short = behind.git("rev-parse", "origin/main")[:7]
    assert f"trusted: origin/main at {short}\n" in text
    assert 'Changed on origin/main (1; "memtool show ID" says how):\n  dec-old  Holds\n' in text
    assert 'New on origin/main (2; "memtool search" finds them):\n  dec-new  Longer holds\n' in text
    assert behind.json("status")["ahead"] == {
        "changed": ["dec-old"],
        "changed_types": ["decision"],
        "added": ["dec-new", "sem-bow"],
        "unknown": "",
    }


@pytest.mark.parametrize(
    ("fields", "notice"),
    [
        (
            {
                "status": "deleted",
                "deleted": {"at": "2026-02-20T00:00:00Z", "by": "A", "reason": "we drink coffee"},
            },
            "FORGOTTEN ON origin/main: we drink coffee",
        ),
        ({"status": "deprecated"}, "DEPRECATED ON origin/main"),
        ({"status": "archived"}, ""),
        ({"tags": ["drinks"]}, ""),
    ],
)
def test_what_was_taken_back_is_marked(behind: Sandbox, fields: dict[str, str], notice: str):
    """Forgotten and deprecated is told; upkeep and labels are not."""
    on_trusted(behind, lambda sandbox: sandbox.memory("dec-tea", "Tea is at four.\n", **fields))
    assert notices(behind, "tea") == {"dec-tea": notice}


def test_a_removed_file_is_marked(behind: Sandbox):
    """As a purge leaves it behind, or whoever deletes a file."""
    on_trusted(behind, lambda sandbox: sandbox.git("rm", "--quiet", "--", tea(sandbox)))
    assert notices(behind, "tea") == {"dec-tea": "REMOVED ON origin/main"}


def test_a_trusted_branch_that_removed_all_of_them_marks_each(sandbox: Sandbox):
    """A change that only removes has no versions to read."""
    sandbox.memory("dec-tea", "Tea is at four.\n", title="Tea")
    sandbox.commit("begin")
    sandbox.git("branch", "topic")
    sandbox.git("rm", "--quiet", "-r", ".memory")
    sandbox.commit("remove")
    fetch(sandbox)
    sandbox.git("checkout", "--quiet", "topic")
    assert notices(sandbox, "tea") == {"dec-tea": "REMOVED ON origin/main"}
    assert counts(sandbox) == AheadCounts(("dec-tea",), ("decision",))


def tea(sandbox: Sandbox) -> str:
    return sandbox.git("ls-files", "*dec-tea.md").strip()


def test_a_chain_of_corrections_names_the_last_one(behind: Sandbox):
    """Intermediate corrections on the trusted branch are not shown."""
    on_trusted(
        behind,
        lambda sandbox: sandbox.memory(
            "dec-last", "Hold a seat for 30 minutes.\n", title="Last", supersedes=["dec-new"]
        ),
    )
    by_id = notices(behind)
    assert by_id["dec-old"] == "NEWER ON origin/main: dec-last Last"
    assert "dec-new" not in by_id


def test_a_correction_of_ones_own_is_shown_with_that_of_the_trusted_branch(behind: Sandbox):
    """Both replace the same memory, and neither is hidden."""
    behind.memory("dec-own", "Hold a seat for 10 minutes.\n", title="Own", supersedes=["dec-old"])
    assert notices(behind) == {
        "dec-own": "ALSO REPLACED ON origin/main: dec-old by dec-new Longer holds",
        "dec-new": f"{ONLY}; it replaces dec-old",
        "sem-bow": ONLY,
    }


def test_what_this_branch_has_settled_is_not_told(behind: Sandbox):
    """A memory here that names both as replaced is the answer to both."""
    behind.memory(
        "dec-both", "Hold a seat for 22 minutes.\n", title="Both", supersedes=["dec-old", "dec-new"]
    )
    assert notices(behind) == {"dec-both": "", "sem-bow": ONLY}


def test_a_candidate_of_the_trusted_branch_replaces_nothing(behind: Sandbox):
    """An unconfirmed memory is found, and marks no other."""
    on_trusted(
        behind,
        lambda sandbox: sandbox.memory(
            "dec-maybe", "Tea is at five.\n", supersedes=["dec-tea"], status="candidate"
        ),
    )
    assert notices(behind, "tea") == {"dec-tea": "", "dec-maybe": ONLY}


def test_what_the_branch_took_over_is_no_longer_new(behind: Sandbox):
    """A cherry-pick brings the memory and its lineage; a merge does so with all."""
    behind.git("cherry-pick", "origin/main")
    assert notices(behind) == {"dec-new": "", "sem-bow": ""}
    assert counts(behind) == AheadCounts()


def test_a_release_branch_says_that_it_is_right(behind: Sandbox):
    """Its own settings switch the marks off, wherever they are read."""
    behind.write(".memory/config.toml", '[inject]\nahead = "off"\n')
    behind.commit("release")
    assert notices(behind) == {"dec-old": ""}
    assert counts(behind) == AheadCounts()
    assert behind.run("show", "sem-bow").returncode == 2


def test_a_private_memory_is_neither_named_nor_found(behind: Sandbox):
    """The labels that keep a memory from an agent hold for those of the trusted branch as well."""
    on_trusted(
        behind,
        lambda sandbox: sandbox.memory(
            "dec-quiet",
            "Tea is for Ada.\n",
            title="Ada",
            supersedes=["dec-tea"],
            privacy=["secret"],
        ),
    )
    behind.write(".memory/config.toml", '[inject]\nexclude_privacy = ["secret"]\n')
    assert notices(behind, "tea") == {"dec-tea": "NEWER ON origin/main: dec-quiet"}


def test_without_the_trust_that_is_demanded_only_the_id_is_told(behind: Sandbox):
    """A title is text of a memory, too."""
    behind.write(".memory/config.toml", '[inject]\ntrust = "signed"\n')
    assert notices(behind)["dec-old"] == "NEWER ON origin/main: dec-new"


def test_a_secret_is_masked(behind: Sandbox):
    """It is masked as in any memory, in what is shown and in what is kept."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    deleted = {"at": "2026-02-20T00:00:00Z", "by": "A", "reason": f"it was {token}"}

    def leak(sandbox: Sandbox) -> None:
        sandbox.memory("sem-key", f"The key is {token}.\n")
        sandbox.memory("dec-tea", "Tea is at four.\n", status="deleted", deleted=deleted)

    on_trusted(behind, leak)
    notice = notices(behind, "tea")["dec-tea"]
    assert notice.startswith("FORGOTTEN ON origin/main: it was ")
    assert token not in notice
    results = behind.json("search", "key")["results"]
    assert [result["id"] for result in results] == ["sem-key"]
    assert token not in behind.run("show", "sem-key").stdout
    cache_dir = Path(behind.context().repository.cache_dir)
    assert all(token.encode() not in path.read_bytes() for path in cache_dir.rglob("*.db*"))


def test_a_detached_head_is_a_branch_too(behind: Sandbox):
    """Only the commit counts."""
    behind.git("checkout", "--quiet", "--detach")
    assert notices(behind)["dec-old"] == NEWER


def test_a_force_pushed_trusted_branch_is_taken_as_it_is_now(behind: Sandbox):
    """Memories that it lost are not reported, not even from a cache."""
    assert notices(behind)["dec-old"] == NEWER
    behind.git("checkout", "--quiet", "--detach", "topic")
    behind.memory("sem-new", "Seats are numbered from the stern.\n", type="semantic")
    fetch(behind, behind.commit("instead"))
    behind.git("checkout", "--quiet", "topic")
    assert notices(behind) == {"dec-old": "", "sem-new": ONLY}


def test_a_trusted_branch_that_leads_here_knows_nothing_more(behind: Sandbox):
    """As on a branch that is up to date, or before a fetch."""
    fetch(behind, "topic~0")
    behind.write("src/seats.py", "HOLD = 21\n")
    behind.commit("work")
    assert notices(behind) == {"dec-old": ""}
    assert counts(behind) == AheadCounts()


def test_without_a_trusted_ref_nothing_is_told(behind: Sandbox):
    """As in a repository without a remote."""
    behind.git("update-ref", "-d", "refs/remotes/origin/main")
    assert notices(behind) == {"dec-old": ""}
    assert "trusted:" not in behind.run("status").stdout


def test_a_trusted_ref_that_is_gone_stops_no_search(behind: Sandbox):
    """Status says so."""
    behind.git("update-ref", "-d", "refs/remotes/origin/main")
    behind.write(".memory/config.toml", '[trust]\nref = "origin/main"\n')
    context = behind.context()
    tree = index.open(context)
    assert overlay_tree(context, tree, context.clock.now) is tree
    assert "does not exist here" in behind.run("status").stderr


def test_unrelated_histories_are_not_compared(behind: Sandbox):
    """Status says why."""
    behind.git("checkout", "--quiet", "--orphan", "other")
    behind.commit("other")
    assert notices(behind) == {"dec-old": ""}
    assert counts(behind) == AheadCounts(unknown=deltas.UNRELATED)
    assert deltas.UNRELATED in behind.run("status").stdout


def test_a_shallow_clone_may_lack_the_place_where_branches_parted(behind: Sandbox, tmp_path: Path):
    """It is told by status, and found once the clone is deepened."""
    behind.write("src/seats.py", "HOLD = 21\n")
    behind.commit("work")
    behind.git("checkout", "--quiet", "-B", "main", "origin/main")
    place = tmp_path / "shallow"
    url = behind.path.as_uri()
    options = ("--depth", "1", "--no-single-branch", "--branch", "topic")
    behind.git("clone", "--quiet", *options, url, str(place))
    clone = Sandbox(place, behind.env)
    assert notices(clone) == {"dec-old": ""}
    assert deltas.CUT in clone.run("status").stdout
    clone.git("fetch", "--quiet", "--unshallow")
    assert notices(clone)["dec-old"] == NEWER


def test_a_warm_answer_starts_no_git(behind: Sandbox, monkeypatch: pytest.MonkeyPatch):
    """All that is asked is in rows; a new commit of the branch asks for its base alone."""
    calls: list[str] = []
    run = Git.run

    def noted(self: Git, command: str, *args: str, **options: object) -> bytes:
        calls.append(command)
        return run(self, command, *args, **options)  # type: ignore[arg-type]

    def overlay() -> list[str]:
        context = behind.context()
        tree = index.open(context)
        calls.clear()
        assert overlay_tree(context, tree, context.clock.now).overlay is not None
        return [*calls]

    monkeypatch.setattr(Git, "run", noted)
    first = [command for command in overlay() if command != "ls-tree"]  # settings
    assert first[:2] == ["merge-base", "diff-tree"]
    assert overlay() == []
    behind.write("src/seats.py", "HOLD = 21\n")
    behind.commit("work")
    assert overlay() == ["merge-base"]
    assert overlay() == []


@pytest.mark.parametrize("limit", ["MAX_HURRIED_S", "MAX_HURRIED_FILES"])
def test_a_hook_waits_for_no_long_history(
    behind: Sandbox, monkeypatch: pytest.MonkeyPatch, limit: str
):
    """Slow work is left to another process, and read from its rows afterwards."""

    def overlay(context: Context) -> bool:
        tree = index.open(context)
        return overlay_tree(context, tree, context.clock.now).overlay is not None

    monkeypatch.setattr(deltas, limit, 0)
    hook = behind.context()
    hook.caller.deadline = Deadline(60)
    assert (overlay(hook), hook.caller.is_unfinished) == (False, True)
    assert overlay(behind.context())
    hook.caller.is_unfinished = False
    assert (overlay(hook), hook.caller.is_unfinished) == (True, False)


def test_a_damaged_index_of_it_is_made_anew(behind: Sandbox):
    """As everything that is derived."""
    expected = notices(behind)
    place = Path(behind.context().repository.cache_dir, "few")
    for path in place.iterdir():
        if path.is_file() and path.stat().st_size > 100:
            path.write_bytes(b"\0" * path.stat().st_size)
    assert notices(behind) == expected
    shutil.rmtree(place)
    assert notices(behind) == expected


def test_status_and_doctor_say_when_it_was_fetched(behind: Sandbox, tmp_path: Path):
    """By FETCH_HEAD, and only of a fetch of that branch."""
    behind.git("checkout", "--quiet", "-B", "main", "origin/main")
    place = tmp_path / "clone"
    behind.git("clone", "--quiet", str(behind.path), str(place))
    clone = Sandbox(place, behind.env)
    clone.git("fetch", "--quiet", "origin")
    moment = 1_900_000_000
    os.utime(place / ".git/FETCH_HEAD", (moment, moment))
    assert clone.json("status")["fetched_at"] == "2030-03-17T17:46:40Z"
    short = clone.git("rev-parse", "origin/main")[:7]
    text = clone.run("status").stdout
    assert f"trusted: origin/main at {short}\nLast fetched 2030-03-17\n" in text
    freshness = f"origin/main at {short}, last fetched 2030-03-17T17:46:40Z"
    assert freshness in clone.run("doctor", "--verbose").stdout
    clone.git("fetch", "--quiet", "origin", "topic")
    os.utime(place / ".git/FETCH_HEAD", (moment + 60, moment + 60))
    assert clone.json("status")["fetched_at"] != "2030-03-17T17:47:40Z"


def test_a_fork_is_told_of_the_branch_that_it_is_a_fork_of(behind: Sandbox):
    """With remotes `upstream` and `origin`, init and doctor propose upstream's default branch."""
    assert "trust.ref" not in behind.run("doctor").stdout
    behind.git("update-ref", "refs/remotes/upstream/trunk", "origin/main")
    behind.git("symbolic-ref", "refs/remotes/upstream/HEAD", "refs/remotes/upstream/trunk")
    assert "memtool config trust.ref upstream/trunk" in behind.run("doctor").stdout
    assert "next: memtool config trust.ref upstream/trunk" in behind.run("init").stdout
    behind.write(".memory/config.toml", '[trust]\nref = "upstream/trunk"\n')
    fetch(behind, behind.commit("settings"))
    assert "memtool config trust.ref" not in behind.run("doctor").stdout
    assert counts(behind) == AheadCounts(("dec-old",), ("decision",), ("dec-new", "sem-bow"))
    assert notices(behind)["sem-bow"] == "on upstream/trunk, not in this branch yet"
