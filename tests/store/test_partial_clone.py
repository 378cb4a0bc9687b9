"""Partial clones: right answers if possible, else unknown; nothing is ever fetched."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Sandbox

PROMPT = "when do deploys of the shop run?"
READING = (
    ("inject", "--prompt", PROMPT),
    ("inject", "--primer"),
    ("search", "deploys"),
    ("list",),
    ("status",),
    ("show", "sem-b"),
    ("why", "sem-b"),
    ("blame", "sem-b"),
    ("log",),
    ("log", "sem-b"),
    ("conflicts",),
    ("check",),
    ("maintain",),
    ("export",),
    ("stats",),
    ("search", "deploys", "--at", "HEAD"),
)


@pytest.fixture
def history(sandbox: Sandbox) -> Sandbox:
    """A repository with a memory that changed twice and was replaced."""
    sandbox.git("config", "uploadpack.allowFilter", "true")
    for status in ("confirmed", "deprecated", "confirmed"):
        sandbox.memory(
            "sem-a", "Deploys of the shop run on Tuesdays only.\n", type="semantic", status=status
        )
        sandbox.commit()
    sandbox.memory(
        "sem-b",
        "Deploys of the shop run on Thursdays only.\n",
        type="semantic",
        supersedes=("sem-a",),
    )
    sandbox.commit()
    return sandbox


def partial(history: Sandbox, place: Path, left_out: str) -> Sandbox:
    """Clone a repository without some objects, which only the remote has then."""
    history.git("clone", "--quiet", f"--filter={left_out}", f"file://{history.path}", str(place))
    return Sandbox(place, history.env)


@pytest.mark.parametrize("left_out", ["tree:0", "blob:none"])
@pytest.mark.parametrize("args", READING, ids=" ".join)
def test_reading_verbs_answer(history: Sandbox, tmp_path: Path, left_out: str, args: tuple):
    """None of them fails for what is not here, and none fetches it."""
    clone = partial(history, tmp_path / "clone", left_out)
    before = clone.git("cat-file", "--batch-all-objects", "--batch-check")
    done = clone.run(*args)
    assert done.returncode == 0, done.stderr
    assert clone.git("cat-file", "--batch-all-objects", "--batch-check") == before


def test_without_blobs_every_citation_is_right(history: Sandbox, tmp_path: Path):
    """Trees say which commit wrote a file; only what an old version said is unknown."""
    clone = partial(history, tmp_path / "clone", "blob:none")
    head = history.git("rev-parse", "HEAD").strip()
    shown = clone.json("show", "sem-b")
    assert (shown["commit"], shown["trust"]) == (head, "trusted")
    events = clone.json("log", "sem-a")["events"]
    assert [event["kind"] for event in events][-1] == "added"
    assert "unknown: this partial clone does not hold it" in clone.run("log", "sem-a").stdout


def test_without_trees_trust_is_right_and_the_commit_unknown(history: Sandbox, tmp_path: Path):
    """The checked-out files are in the trusted ref; their authors are unknown."""
    clone = partial(history, tmp_path / "clone", "tree:0")
    shown = clone.json("show", "sem-b")
    assert (shown["commit"], shown["author"], shown["trust"]) == (None, "", "trusted")
    text = clone.run("search", "deploys").stdout
    assert "[sem-b]\n" in text  # no commit is cited
    assert "not committed" not in text
    assert {event["kind"] for event in clone.json("log")["events"]} == {"unknown"}
    assert "git fetch --refetch --no-filter" in clone.run("log").stderr


def test_a_local_change_is_local_there_too(history: Sandbox, tmp_path: Path):
    """Missing history does not affect uncommitted files."""
    clone = partial(history, tmp_path / "clone", "tree:0")
    clone.memory("sem-new", "Deploys need the VPN.\n", type="semantic")
    assert clone.json("show", "sem-new")["trust"] == "local"
    assert " · not committed\n" in clone.run("search", "vpn").stdout


def test_what_needs_absent_trees_says_how_to_get_them(history: Sandbox, tmp_path: Path):
    """A gate over commits that are not here refuses, and names the command that helps."""
    clone = partial(history, tmp_path / "clone", "tree:0")
    done = clone.run("check", "--range", "HEAD~1..HEAD")
    assert done.returncode == 2
    assert "this partial clone does not hold what it has to look at" in done.stderr
    assert "hint: git fetch --refetch --no-filter brings all of it" in done.stderr


@pytest.mark.parametrize("left_out", ["tree:0", "blob:none"])
def test_a_branch_that_is_behind_is_told_what_is_here(
    history: Sandbox, tmp_path: Path, left_out: str
):
    """New memories of the trusted branch are found once their text is here; none is fetched."""
    history.git("branch", "topic")
    history.memory("sem-new", "Deploys of the shop need a second person.\n", type="semantic")
    history.commit()
    clone = partial(history, tmp_path / "clone", left_out)
    clone.git("checkout", "--quiet", "origin/topic")
    assert deploys(clone) == {"sem-b", "sem-new"}
    history.memory("sem-late", "Deploys of the shop need the VPN.\n", type="semantic")
    history.commit()
    clone.git("fetch", "--quiet", "origin")
    before = clone.git("cat-file", "--batch-all-objects", "--batch-check")
    assert deploys(clone) >= {"sem-b"}
    assert "sem-late" not in deploys(clone)
    assert clone.run("status").returncode == 0
    assert clone.git("cat-file", "--batch-all-objects", "--batch-check") == before
    clone.git("checkout", "--quiet", "origin/main")
    clone.git("checkout", "--quiet", "origin/topic")
    assert deploys(clone) == {"sem-b", "sem-new", "sem-late"}


def deploys(clone: Sandbox) -> set[str]:
    return {result["id"] for result in clone.json("search", "deploys")["results"]}
