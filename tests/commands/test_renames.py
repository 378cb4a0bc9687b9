"""Renames that git follows: decisions about a file follow it."""

from __future__ import annotations

import itertools
import json
import subprocess

import pytest
from conftest import Sandbox

from memtool.commands.archive import confirm
from memtool.commands.check import check
from memtool.commands.drift import drift
from memtool.commands.drift import render as render_drift
from memtool.commands.inject import inject
from memtool.commands.list import list as list_memories
from memtool.commands.review import render as render_review
from memtool.commands.review import review
from memtool.commands.search import search
from memtool.memory.drift import Move
from memtool.search import drift_verdict
from memtool.search.scope import build_drift_witness
from memtool.sessions import background
from memtool.store.context import Context

SESSIONS = itertools.count()
LINES = "".join(f"line {number} of the payments\n" for number in range(1, 41))


def lines_of(name: str) -> str:
    """Return a text that shares no line with that of another name."""
    return "".join(f"{name} has line {number}\n" for number in range(1, 31))


@pytest.fixture
def shop(sandbox: Sandbox) -> Sandbox:
    """A file, a folder and a glob, each with a decision about it."""
    sandbox.write("src/pay.py", LINES)
    for name in ("cards", "cash", "refunds"):
        sandbox.write(f"src/pay/{name}.py", lines_of(name))
    sandbox.write("src/pay/README.md", "How to pay.\n")
    sandbox.memory("dec-file", "Amounts are cents.\n", files=("src/pay.py",))
    sandbox.memory("dec-folder", "Providers are apart.\n", files=("src/pay/",))
    sandbox.memory("dec-glob", "Cards are tokens.\n", files=("src/pay/*.py",))
    sandbox.commit("one")
    return sandbox


def moves(sandbox: Sandbox, id_: str) -> list[tuple[str, str]]:
    """Return the old and the new path of what a memory names, as rows and without them."""
    cached, bare = (
        known_moves(sandbox.context(**env), id_) for env in ({}, {"MEMTOOL_NO_CACHE": "1"})
    )
    assert cached == bare
    return cached


def known_moves(context: Context, id_: str) -> list[tuple[str, str]]:
    tree = context.tree()
    witness = build_drift_witness(tree, lambda: context.provenance_reader(tree)).find_moves()
    return [(move.path, move.now) for move in witness.find(tree[id_])]


def governing(sandbox: Sandbox, path: str) -> list[str]:
    """Return which memories govern a path, for every part that asks."""
    listed = [row.id for row in list_memories(sandbox.context(), f"file:{path}").memories]
    searched = [hit.id for hit in search(sandbox.context(), f"file:{path}").results]
    injected = [item.id for item in inject(sandbox.context(), files=[path]).items]
    edited = edit(sandbox, path)
    assert sorted(listed) == sorted(searched) == sorted(injected)
    assert all(id_ in edited for id_ in listed)
    assert bool(listed) == bool(edited)
    return sorted(listed)


def edit(sandbox: Sandbox, path: str) -> str:
    """Return what an agent is told that has edited a file."""
    event = {
        "session_id": f"session-{next(SESSIONS)}",
        "cwd": str(sandbox.path),
        "tool_name": "Edit",
        "tool_input": {"file_path": str(sandbox.path / path)},
    }
    return sandbox.run("hook", "claude", "post-tool-use", stdin=json.dumps(event)).stdout


def test_a_renamed_file_takes_its_decision_along(shop: Sandbox) -> None:
    """It governs the new path for list, search, inject and the edit hook, and says the old one."""
    assert governing(shop, "src/pay.py") == ["dec-file"]
    shop.git("mv", "src/pay.py", "src/payments.py")
    commit = shop.commit("two")
    assert governing(shop, "src/payments.py") == ["dec-file"]
    (row,) = drift(shop.context(), "dec-file").memories
    assert row.drift.moves == (Move("src/pay.py", "src/payments.py", commit),)
    assert "RENAMED: src/payments.py was src/pay.py" in edit(shop, "src/payments.py")
    context = shop.context()
    list_memories(context, "file:src/payments.py")
    assert "dec-file: [RENAMED] src/payments.py was src/pay.py" in context.notes
    assert search(shop.context(), "file:src/payments.py").results[0].renamed


def test_a_review_names_the_decision_about_a_file_that_was_renamed_before(shop: Sandbox) -> None:
    """The change knows the new path alone."""
    shop.git("mv", "src/pay.py", "src/payments.py")
    shop.commit("two")
    shop.write("src/payments.py", LINES + "one more\n")
    shop.commit("three")
    report = review(shop.context(), "HEAD^..HEAD")
    assert [(memory.id, memory.was) for memory in report.files[0].memories] == [
        ("dec-file", "src/pay.py")
    ]
    rows = render_review(report, shop.layout()).splitlines()
    assert rows[1] == "src/payments.py"
    assert "  not mentioned  dec-file  Title of dec-file  names src/pay.py" in rows


def test_a_renamed_folder_takes_its_decisions_along(shop: Sandbox) -> None:
    """A folder and a glob below it have another beginning."""
    shop.git("mv", "src/pay", "src/payments")
    shop.commit("two")
    assert moves(shop, "dec-folder") == [("src/pay", "src/payments")]
    assert moves(shop, "dec-glob") == [("src/pay/*.py", "src/payments/*.py")]
    assert governing(shop, "src/payments/cards.py") == ["dec-folder", "dec-glob"]
    assert governing(shop, "src/payments/new.py") == ["dec-folder", "dec-glob"]
    assert governing(shop, "src/payments/README.md") == ["dec-folder"]


def test_a_glob_moves_with_most_of_its_files(shop: Sandbox) -> None:
    """With one of three it stays; with two of three it governs both places."""
    shop.git("rm", "-q", "src/pay/README.md")
    shop.commit("before")
    shop.write("src/payments/new.py", "x = 1\n")
    shop.git("mv", "src/pay/cards.py", "src/payments/cards.py")
    shop.commit("two")
    assert moves(shop, "dec-glob") == []
    assert governing(shop, "src/payments/cards.py") == []
    shop.git("mv", "src/pay/cash.py", "src/payments/cash.py")
    shop.commit("three")
    assert moves(shop, "dec-glob") == [("src/pay/*.py", "src/payments/*.py")]
    assert governing(shop, "src/payments/cash.py") == ["dec-glob"]
    assert "dec-glob" in governing(shop, "src/pay/refunds.py")


def test_a_file_is_followed_from_rename_to_rename(shop: Sandbox) -> None:
    """Each step is a rename to git, though hardly a line is left at the end."""
    moves(shop, "dec-file")
    shop.git("mv", "src/pay.py", "src/payments.py")
    shop.commit("two")
    half = "".join(LINES.splitlines(keepends=True)[:25])
    shop.write("src/payments.py", half + lines_of("other"))
    shop.commit("three")
    shop.git("mv", "src/payments.py", "lib.py")
    shop.commit("four")
    shop.write("lib.py", lines_of("other") + lines_of("else"))
    shop.commit("five")
    assert moves(shop, "dec-file") == [("src/pay.py", "lib.py")]
    assert governing(shop, "lib.py") == ["dec-file"]
    assert governing(shop, "src/payments.py") == []
    shop.git("mv", "lib.py", "src/pay.py")
    shop.commit("back")
    assert moves(shop, "dec-file") == []


def test_a_rename_on_a_branch_that_is_squashed_is_one(shop: Sandbox) -> None:
    """The squash renames the file, as the branch did; also with the memory in it."""
    shop.git("checkout", "-q", "-b", "topic")
    shop.memory("dec-late", "Refunds are cents, too.\n", files=("src/pay.py",))
    shop.commit("a memory")
    shop.git("mv", "src/pay.py", "src/payments.py")
    shop.commit("a rename")
    shop.write("src/payments.py", LINES + "a line\n")
    shop.commit("an edit")
    shop.git("checkout", "-q", "-")
    shop.git("merge", "--squash", "--quiet", "topic")
    shop.commit("squashed")
    assert moves(shop, "dec-file") == [("src/pay.py", "src/payments.py")]
    assert governing(shop, "src/payments.py") == ["dec-file", "dec-late"]


def test_a_copy_is_no_rename(shop: Sandbox) -> None:
    """The file is still there, and the copy is not governed."""
    shop.write("src/payments.py", LINES)
    shop.commit("two")
    assert moves(shop, "dec-file") == []
    assert governing(shop, "src/payments.py") == []
    assert governing(shop, "src/pay.py") == ["dec-file"]


def test_of_a_file_that_was_split_the_parts_are_told_and_not_assumed(shop: Sandbox) -> None:
    """None of the parts has half of it."""
    rows = LINES.splitlines(keepends=True)
    shop.git("rm", "-q", "src/pay.py")
    shop.write("src/a.py", "".join(rows[:14]) + lines_of("a"))
    shop.write("lib/b.py", "".join(rows[14:27]) + lines_of("b"))
    shop.write("lib/c.py", lines_of("c"))
    shop.commit("two")
    assert moves(shop, "dec-file") == []
    assert governing(shop, "src/a.py") == []
    text = render_drift(drift(shop.context(), "dec-file"), shop.layout())
    assert "src/pay.py is no longer there; it probably moved to src/a.py and lib/b.py" in text
    (problem,) = check(shop.context()).problems
    assert (
        "src/pay.py does not match any file; it probably moved to src/a.py and lib/b.py"
        in problem.message
    )
    assert problem.hint.startswith("memtool supersede dec-file TITLE --file ")


def test_of_a_file_that_was_joined_with_others_its_new_place_is_not_assumed(shop: Sandbox) -> None:
    """All of it is in a larger new file, which git takes for no rename."""
    shop.git("rm", "-q", "src/pay.py")
    shop.write("src/all.py", lines_of("a") + lines_of("b") + LINES + lines_of("c"))
    shop.commit("two")
    assert moves(shop, "dec-file") == []
    assert governing(shop, "src/all.py") == []
    text = render_drift(drift(shop.context(), "dec-file"), shop.layout())
    assert "src/pay.py probably moved to src/all.py" in text
    (problem,) = check(shop.context()).problems
    assert problem.message == "src/pay.py probably moved to src/all.py"
    assert problem.hint == "memtool supersede dec-file TITLE --file src/all.py"
    assert shop.json("maintain", "--only", "renames")["steps"] == []


def test_a_copy_that_takes_the_place_of_its_file_later_is_a_rename(shop: Sandbox) -> None:
    """Squashed it would be one, too: the bytes are the same."""
    shop.write("src/payments.py", LINES)
    shop.commit("copied")
    shop.git("rm", "-q", "src/pay.py")
    shop.commit("removed")
    assert moves(shop, "dec-file") == [("src/pay.py", "src/payments.py")]


def test_a_confirmation_after_the_rename_changes_nothing_about_it(shop: Sandbox) -> None:
    """The file is followed from the commit that added the memory."""
    shop.git("mv", "src/pay.py", "src/payments.py")
    shop.git("mv", "src/pay", "src/payments")
    shop.commit("two")
    for id_ in ("dec-file", "dec-glob"):
        confirm(shop.context(), id_, commit=True)
    assert moves(shop, "dec-file") == [("src/pay.py", "src/payments.py")]
    assert moves(shop, "dec-glob") == [("src/pay/*.py", "src/payments/*.py")]
    assert governing(shop, "src/payments.py") == ["dec-file"]
    shop.write("src/payments.py", lines_of("other"))
    shop.commit("three")
    (row,) = drift(shop.context(), "dec-file").memories
    assert (row.drift.level, row.drift.files[0].now) == ("changed", "src/payments.py")


def test_what_was_renamed_before_the_memory_was_written_is_not_meant(shop: Sandbox) -> None:
    """A memory may name a file that is to come; an old one of that name was another."""
    shop.git("mv", "src/pay.py", "src/payments.py")
    shop.commit("two")
    shop.memory("dec-coming", "It will be here.\n", files=("src/pay.py",))
    shop.commit("three")
    assert moves(shop, "dec-coming") == []
    assert governing(shop, "src/payments.py") == ["dec-file"]


def codes(sandbox: Sandbox) -> list[tuple[str, str]]:
    return [(problem.id, problem.code) for problem in check(sandbox.context()).problems]


def test_check_warns_once_with_the_command(shop: Sandbox) -> None:
    """Not for the file and the source each, and not before the rename is committed."""
    shop.memory(
        "dec-both",
        "Both.\n",
        files=("src/pay.py",),
        source=("file:src/pay.py#L1-L3", "file:src/pay/cash.py"),
    )
    shop.commit("a memory")
    shop.git("mv", "src/pay.py", "src/payments.py")
    shop.git("mv", "src/pay/cash.py", "src/cash.py")
    assert codes(shop) == []
    commit = shop.commit("two")
    assert codes(shop) == [("dec-both", "renamed-file"), ("dec-file", "renamed-file")]
    problem = check(shop.context()).problems[0]
    assert problem.severity == "warning"
    assert problem.message == (
        f"src/pay.py is now src/payments.py (renamed in {commit[:7]}); 1 more of its paths moved"
    )
    assert problem.hint == "memtool maintain --only renames --apply"


def test_maintain_writes_the_new_paths_as_one_commit(shop: Sandbox) -> None:
    """A new memory replaces each that names an old path; nothing confirmed is edited."""
    shop.memory("dec-draft", "A draft.\n", files=("src/pay.py", "x/*.py"), status="candidate")
    shop.memory(
        "dec-source",
        "Lines 3 to 5 of it, payments_of.\n",
        source=("file:src/pay.py#L3-L5", "human:Ada"),
        checked={"at": "2026-02-23T00:00:00Z", "by": "Ada"},
        status="pinned",
    )
    base = shop.commit("memories")
    shop.git("mv", "src/pay.py", "src/payments.py")
    shop.git("mv", "src/pay", "src/payments")
    shop.commit("two")
    before = {path: path.read_bytes() for path in (shop.path / ".memory").rglob("*.md")}
    planned = shop.json("maintain", "--only", "renames")
    assert [(step["do"], step["is_new"]) for step in planned["steps"]].count(("rename", True)) == 4
    assert shop.git("status", "--porcelain") == ""
    done = shop.json("maintain", "--only", "renames", "--apply")
    assert shop.git("log", "--format=%s", "-1") == "memory: maintain: 5 given new paths\n"
    assert done["commit"] == shop.git("rev-parse", "HEAD").strip()
    tree = shop.context().tree()
    heads = {tree[tree.lineage.find_heads(id_)[0]].memory.fields["files"] for id_ in FILED}
    assert heads == {("src/payments.py",), ("src/payments",), ("src/payments/*.py",)}
    assert tree["dec-draft"].memory.items("files") == ("src/payments.py", "x/*.py")
    changed = {path.stem for path, data in before.items() if path.read_bytes() != data}
    assert changed == {"dec-draft"}
    made = tree[tree.lineage.find_heads("dec-source")[0]].memory
    assert made.items("source") == (f"file:src/pay.py#L3-L5@{base[:10]}", "human:Ada")
    assert made.items("files") == ("src/payments.py",)
    assert made.status == "pinned"
    assert made.table("checked")["at"] == "2026-02-23T00:00:00Z"
    assert made.table("checked")["saw"].startswith("src/payments.py=")
    assert made.timestamp == tree["dec-source"].memory.timestamp
    assert shop.json("maintain", "--only", "renames")["steps"] == []
    assert codes(shop) == [("dec-draft", "no-such-file")]
    listed = list_memories(shop.context(), "file:src/payments.py").memories
    assert {row.id for row in listed} == {
        tree.lineage.find_heads(id_)[0] for id_ in ("dec-draft", "dec-file", "dec-source")
    }
    assert shop.run("check", "--range", "HEAD~1..HEAD").returncode == 0


FILED = ("dec-file", "dec-folder", "dec-glob")


def test_two_clones_give_the_same_new_paths(shop: Sandbox) -> None:
    """The same rename makes the same file on two branches, so that they merge."""
    shop.git("mv", "src/pay.py", "src/payments.py")
    start = shop.commit("two")
    trees = []
    for branch in ("one", "other"):
        shop.git("checkout", "-q", "-b", branch, start)
        shop.write(f"{branch}.txt", branch)
        shop.commit(branch)
        shop.json("maintain", "--only", "renames", "--apply")
        trees.append(shop.git("ls-tree", "-r", "HEAD", ".memory"))
    assert trees[0] == trees[1]
    shop.git("merge", "--quiet", "--no-edit", "one")
    assert shop.context().tree().lineage.find_forks() == ()


def test_what_has_drifted_is_left_to_people(shop: Sandbox) -> None:
    """It has to be corrected in any case: check says how."""
    shop.memory("dec-name", "We call line_maker.\n", files=("src/pay.py",))
    shop.write("src/pay.py", f"def line_maker(): ...\n{LINES}")
    shop.commit("before")
    shop.git("mv", "src/pay.py", "src/payments.py")
    shop.write("src/payments.py", LINES)
    shop.commit("two")
    assert [step["title"] for step in shop.json("maintain", "--only", "renames")["steps"]] == [
        "Title of dec-file"
    ]
    problem = next(
        problem for problem in check(shop.context()).problems if problem.id == "dec-name"
    )
    assert problem.hint == "memtool supersede dec-name TITLE --file src/payments.py"


def test_a_set_that_moved_in_part_is_named_at_both_places(shop: Sandbox) -> None:
    """The old glob still has a file."""
    shop.git("rm", "-q", "src/pay/README.md")
    shop.git("mv", "src/pay/cards.py", "src/cards.py")
    shop.git("mv", "src/pay/cash.py", "src/cash.py")
    shop.commit("two")
    shop.json("maintain", "--only", "renames", "--apply")
    tree = shop.context().tree()
    made = tree[tree.lineage.find_heads("dec-glob")[0]].memory
    assert made.items("files") == ("src/pay/*.py", "src/*.py")


def test_another_file_at_the_old_path_is_told(shop: Sandbox) -> None:
    """Both paths are governed: the one the memory names, and the one its file moved to."""
    shop.git("mv", "src/pay.py", "src/payments.py")
    commit = shop.commit("two")
    shop.write("src/pay.py", lines_of("another"))
    shop.commit("three")
    (row,) = drift(shop.context(), "dec-file").memories
    assert row.drift.level == "touched"
    assert row.drift.moves == (Move("src/pay.py", "src/payments.py", commit, is_taken=True),)
    assert governing(shop, "src/pay.py") == governing(shop, "src/payments.py") == ["dec-file"]
    note = "RENAMED: src/payments.py was src/pay.py (other files are there today)"
    assert note in edit(shop, "src/pay.py")
    (step,) = shop.json("maintain", "--only", "renames")["steps"]
    assert step["why"].endswith(", and other files are at the old path")
    shop.json("maintain", "--only", "renames", "--apply")
    tree = shop.context().tree()
    made = tree[tree.lineage.find_heads("dec-file")[0]].memory
    assert made.items("files") == ("src/pay.py", "src/payments.py")
    assert shop.json("maintain", "--only", "renames")["steps"] == []


def test_a_rewritten_file_was_renamed_by_nobody(shop: Sandbox) -> None:
    """Even if a file of its name was renamed before the memory was written."""
    shop.git("mv", "src/pay/cash.py", "src/cash.py")
    shop.commit("before")
    shop.write("src/pay/cash.py", lines_of("new"))
    shop.memory("dec-late", "It is new.\n", files=("src/pay/cash.py",))
    shop.commit("a memory")
    shop.write("src/pay/cash.py", lines_of("newer"))
    shop.write("src/pay.py", lines_of("other"))
    shop.commit("rewritten")
    assert moves(shop, "dec-late") == moves(shop, "dec-file") == []


def test_drift_goes_on_behind_the_new_paths(shop: Sandbox) -> None:
    """Changes before the new memory count as much as those after it."""
    shop.git("mv", "src/pay.py", "src/payments.py")
    rows = LINES.splitlines(keepends=True)
    shop.write("src/payments.py", "".join(rows[:25]) + lines_of("other"))
    shop.commit("two")
    before = drift(shop.context(), "dec-file").memories[0].drift
    shop.json("maintain", "--only", "renames", "--apply")
    shop.write("src/payments.py", lines_of("other"))
    shop.commit("three")
    tree = shop.context().tree()
    after = drift(shop.context(), tree.lineage.find_heads("dec-file")[0]).memories[0].drift
    assert (before.level, after.level) == ("touched", "changed")


def test_a_memory_whose_commit_is_not_here_is_followed_too(shop: Sandbox) -> None:
    """It was confirmed at a commit that a rebase threw away."""
    checked = {"at": "2026-02-23T00:00:00Z", "by": "Ada", "commit": "f" * 40}
    shop.memory("dec-lost", "It is so.\n", files=("src/pay.py",), checked=checked)
    shop.commit("a memory")
    shop.git("mv", "src/pay.py", "src/payments.py")
    shop.commit("two")
    assert moves(shop, "dec-lost") == [("src/pay.py", "src/payments.py")]


def test_what_rules_nothing_is_found_by_the_new_path_too(shop: Sandbox) -> None:
    """A pattern is not a rule, and ranks higher while its file is open."""
    shop.memory(
        "sem-cents", "Money is cents.\n", type="semantic", category="pattern", files=("src/pay/",)
    )
    shop.commit("a pattern")
    shop.git("mv", "src/pay", "src/payments")
    shop.commit("two")
    items = inject(shop.context(), files=["src/payments/cash.py"]).items
    assert "sem-cents" in [item.id for item in items]


def test_an_edit_looks_at_rows_alone_and_lets_others_fill_them(
    shop: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first edit after the commit may miss a rename, the next one does not."""
    verbs: list[list[str]] = []

    def start(args: list[str], _env: object) -> int:
        verbs.append(args[2:])
        return 0

    monkeypatch.setattr(background, "start", start)
    drift(shop.context())
    assert edit(shop, "src/pay.py")
    assert verbs == []
    shop.git("mv", "src/pay.py", "src/payments.py")
    shop.commit("two")
    monkeypatch.setattr(drift_verdict, "judge", None)
    assert edit(shop, "src/payments.py") == ""
    assert verbs == [["drift", "--json"]]
    monkeypatch.undo()
    assert shop.run(*verbs[0]).returncode == 0
    assert "dec-file" in edit(shop, "src/payments.py")


def test_show_names_the_new_paths(shop: Sandbox) -> None:
    """Also for globs, although drift checks single files only."""
    shop.git("mv", "src/pay", "src/payments")
    shop.commit("two")
    text = shop.run("show", "dec-glob").stdout
    assert "\n  Renamed  src/payments/*.py (was src/pay/*.py)\n" in text


def test_a_new_path_that_is_no_text_is_not_followed(shop: Sandbox) -> None:
    """Nobody could write it down, and no terminal should get it."""
    shop.git("mv", "src/pay.py", "src/pay\x1b[31m.py")
    shop.git("mv", "src/pay/cash.py", "src/pay/ca\nsh.py")
    shop.commit("two")
    assert moves(shop, "dec-file") == []
    assert "\x1b" not in render_drift(drift(shop.context(), "dec-file"), shop.layout())
    assert (
        check(shop.context())
        .problems[0]
        .message.startswith("files: src/pay.py does not match any file")
    )


def test_a_shallow_clone_follows_memories_that_it_holds_the_commit_of(shop: Sandbox) -> None:
    """For the others it is unknown which files they named."""
    shop.memory("dec-late", "It is so.\n", files=("src/pay.py",))
    shop.commit("a memory")
    shop.git("mv", "src/pay.py", "src/payments.py")
    shop.commit("two")
    clone = Sandbox(shop.path.parent / "clone", shop.env)
    shop.git("clone", "-q", "--depth=3", f"file://{shop.path}", str(clone.path))
    assert clone.git("rev-parse", "--is-shallow-repository") == "true\n"
    assert moves(clone, "dec-late") == [("src/pay.py", "src/payments.py")]
    assert moves(clone, "dec-file") == []


def test_commits_without_a_date_are_followed(sandbox: Sandbox) -> None:
    """A second of 0 limits no walk."""
    env = sandbox.env
    sandbox.write("src/pay.py", LINES)
    sandbox.memory("dec-file", "Amounts are cents.\n", files=("src/pay.py",))
    for number, step in enumerate(("add", "mv")):
        if step == "mv":
            sandbox.git("mv", "src/pay.py", "src/payments.py")
        sandbox.git("add", "--all")
        dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"@{number} +0000")
        subprocess.run(
            ["git", "commit", "-q", "-m", step], cwd=sandbox.path, env=env | dates, check=True
        )
    assert moves(sandbox, "dec-file") == [("src/pay.py", "src/payments.py")]


def test_a_staged_rename_is_known_to_an_edit(shop: Sandbox) -> None:
    """An agent edits what it has just moved, and commits later."""
    shop.git("mv", "src/pay.py", "src/payments.py")
    shop.write("src/payments.py", LINES + "one more\n")
    assert "dec-file" in edit(shop, "src/payments.py")
    assert [item.id for item in inject(shop.context(), files=["src/payments.py"]).items] == [
        "dec-file"
    ]
    assert edit(shop, "src/other.py") == ""


def test_what_moves_within_a_folder_is_governed_as_before(shop: Sandbox) -> None:
    """The folder and the glob still name it."""
    shop.memory("dec-deep", "All of it.\n", files=("src/**/*.py",))
    shop.commit("a memory")
    for name in ("cards", "cash", "refunds"):
        shop.git("mv", f"src/pay/{name}.py", f"src/pay/{name}s.py")
    (shop.path / "src/pay/ways").mkdir()
    shop.git("mv", "src/pay/README.md", "src/pay/ways/README.md")
    shop.git("mv", "src/pay.py", "src/pay/pay.py")
    shop.commit("two")
    assert [moves(shop, id_) for id_ in ("dec-folder", "dec-glob", "dec-deep")] == [[], [], []]
    assert "dec-folder" in governing(shop, "src/pay/ways/README.md")
