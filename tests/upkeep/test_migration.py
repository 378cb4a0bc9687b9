from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
from conftest import Sandbox
from upkeep.future import NEWEST, STEPS

from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.memory.memory import Fields
from memtool.store import config, toml
from memtool.upkeep import migration
from memtool.upkeep.migration import FormatStep

CALL = (sys.executable, "-m", "upkeep.future")
FOLDER = str(Path(__file__).parents[1])
"""memtool with these formats, as a process of its own."""


@pytest.fixture
def store(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """A tree of format 1, committed, below a memtool that knows formats 1 to 4."""
    monkeypatch.setattr(migration, "STEPS", STEPS)
    monkeypatch.setattr(config, "FORMAT", NEWEST)
    sandbox.memory("dec-a", importance="0.5", **{"x-note": "stays"})
    sandbox.memory("sem-b", type="semantic", category="warning", status="pinned")
    sandbox.memory("sem-c", "Ask first.\n", type="semantic", supersedes=("sem-b",))
    sandbox.write(".memory/config.toml", "# ours\n[search]\nlimit = 7 # few\n")
    sandbox.write(".memory/_semantic.md", "a template\n")
    sandbox.commit("begin")
    return sandbox


def tree_of(store: Sandbox, revision: str = "HEAD") -> str:
    return store.git("rev-parse", f"{revision}:.memory").strip()


def claims(store: Sandbox) -> dict[str, tuple[Fields, str]]:
    """Return the claim of every memory, by its id."""
    by_id = {}
    for place in (store.path / ".memory").rglob("*.md"):
        if not place.name.startswith("_"):
            memory = document.read(place.read_bytes())
            fields = {k: v for k, v in memory.fields.items() if k not in ("privacy", "importance")}
            by_id[memory.id] = fields, memory.body
    return by_id


def test_each_step_leads_to_the_next_format():
    """There is one format more than there are steps, and a tree that names none has the first."""
    assert len(migration.STEPS) + 1 == config.FORMAT
    assert config.parse(b"", "config.toml").format == 1


def test_a_plan_changes_nothing(store: Sandbox):
    """The steps are told with the files that they change, and every byte stays."""
    answer = store.json("migrate")
    assert (answer["from"], answer["to"], answer["commit"]) == (1, NEWEST, None)
    settings = ".memory/config.toml"
    assert [(step["name"], step["files"]) for step in answer["steps"]] == [
        ("warnings are labelled", [settings, ".memory/semantic/2026-02/sem-b.md"]),
        (
            "months are no folders",
            [
                settings,
                *(
                    f".memory/{name}.md"
                    for name in (
                        "decision/2026-02/dec-a",
                        "semantic/2026-02/sem-b",
                        "semantic/2026-02/sem-c",
                    )
                ),
            ],
        ),
        ("the usual importance is left out", [settings, ".memory/decision/dec-a.md"]),
    ]
    assert store.json("migrate", "--commit", "--dry-run")["commit"] is None
    assert store.git("status", "--porcelain") == ""
    assert store.git("rev-list", "--count", "HEAD").strip() == "1"


@pytest.mark.parametrize(("old", "new"), list(combinations(range(1, NEWEST + 1), 2)))
def test_every_format_leads_to_every_later_one(store: Sandbox, old: int, new: int):
    """It is one commit without a claim changed, the gate takes it, again it is nothing to do."""
    before = claims(store)
    if old > 1:
        store.json("migrate", "--to", str(old), "--commit")
    start = store.git("rev-parse", "HEAD").strip()
    answer = store.json("migrate", "--to", str(new), "--commit")
    assert (answer["from"], answer["to"], len(answer["steps"])) == (old, new, new - old)
    assert store.git("rev-list", "--count", f"{start}..HEAD").strip() == "1"
    assert store.git("status", "--porcelain") == ""
    assert claims(store) == before
    assert store.context().settings.format == new
    checked = store.json("check", "--range", f"{start}..HEAD")
    assert [problem for problem in checked["problems"] if problem["severity"] == "error"] == []
    again = store.json("migrate", "--to", str(new), "--commit")
    assert (again["steps"], again["commit"]) == ([], None)


def test_no_step_changes_what_has_a_later_format(store: Sandbox):
    """On a migrated tree with its number set back, all steps change the number alone."""
    store.json("migrate", "--commit")
    before = tree_of(store)
    text = (store.path / ".memory/config.toml").read_text()
    store.write(".memory/config.toml", toml.set_key(text, "format", 1))
    store.commit("set back")
    answer = store.json("migrate", "--commit")
    assert [step["files"] for step in answer["steps"]] == [[".memory/config.toml"]] * 3
    assert tree_of(store) == before


def test_files_of_an_older_branch_are_migrated_after_the_merge(store: Sandbox):
    """A branch from before brings files and edits of the old format; migrate finds them again."""
    store.git("branch", "old")
    store.json("migrate", "--commit")
    store.git("switch", "--quiet", "old")
    store.memory("sta-late", type="state", category="warning", importance="0.5")
    store.run("archive", "sem-c", "--commit")
    store.commit("meanwhile")
    store.git("switch", "--quiet", "main")
    store.git("merge", "--quiet", "--no-edit", "old")
    assert store.context().tree().find("sem-c").memory.status == "archived"
    answer = store.json("migrate", "--commit")
    assert (answer["from"], answer["to"]) == (NEWEST, NEWEST)
    late = ".memory/state/2026-02/sta-late.md"
    assert [step["files"] for step in answer["steps"]] == [
        [late],
        [late],
        [".memory/state/sta-late.md"],
    ]
    assert (store.path / ".memory/state/sta-late.md").exists()
    assert store.json("migrate", "--commit")["commit"] is None


def test_many_steps_are_the_same_as_one_by_one(store: Sandbox):
    """The way through every format ends at the same bytes as the way at once."""
    start = store.git("rev-parse", "HEAD").strip()
    store.json("migrate", "--commit")
    at_once = tree_of(store)
    store.git("reset", "--quiet", "--hard", start)
    for number in range(2, NEWEST + 1):
        store.json("migrate", "--to", str(number), "--commit")
    assert tree_of(store) == at_once
    text = (store.path / ".memory/config.toml").read_text()
    assert text.startswith("# ours\n")
    assert toml.read(text.encode(), "") == {"format": NEWEST, "inject": {"candidate_pool": 7}}


def test_revert_takes_it_back(store: Sandbox):
    """After git revert every byte is as before; the gate takes that, and it can be done again."""
    before = tree_of(store)
    done = store.json("migrate", "--commit")["commit"]
    store.git("revert", "--no-edit", done)
    assert tree_of(store) == before
    checked = store.json("check", "--range", f"{done}..HEAD")
    assert [problem for problem in checked["problems"] if problem["severity"] == "error"] == []
    store.json("migrate", "--commit")
    assert tree_of(store) == tree_of(store, done)


def test_the_hook_lets_a_migration_pass_and_no_other_move(store: Sandbox):
    """Files may move only if the format changes in the same commit."""
    call = f"PYTHONPATH={FOLDER} exec {' '.join(CALL)} check --staged"
    store.write(".git/hooks/pre-commit", f"#!/bin/sh\n{call}\n").chmod(0o755)
    store.git("mv", ".memory/decision/2026-02/dec-a.md", ".memory/decision/dec-a.md")
    refused = store.run("check", "--staged")
    assert refused.returncode == 1
    assert "moved it was moved from .memory/decision/2026-02/dec-a.md" in refused.stdout
    store.git("reset", "--quiet", "--hard")
    done = store.run("migrate", "--commit")
    assert done.returncode == 0, done.stderr
    assert "git revert" in done.stdout


@pytest.mark.parametrize("wrong", ["staged", "changed", "new", "settings"])
def test_what_is_not_committed_refuses(store: Sandbox, wrong: str):
    """A migration is one commit of its own: it includes no other changes."""
    if wrong == "settings":
        store.write(".memory/config.toml", "[search]\nlimit = 8\n")
    elif wrong == "new":
        store.memory("dec-new")
    else:
        store.memory("dec-a", "Otherwise.\n")
    if wrong == "staged":
        store.git("add", ".memory")
    done = store.run("migrate", "--commit")
    assert done.returncode == 2
    assert "has uncommitted changes" in done.stderr
    assert store.run("migrate").returncode == 0


def test_an_unfinished_merge_refuses(store: Sandbox):
    """The commit would conclude the merge."""
    head = store.git("rev-parse", "HEAD").strip()
    (store.path / ".git/MERGE_HEAD").write_text(f"{head}\n")
    done = store.run("migrate", "--commit")
    assert (done.returncode, done.stderr) == (
        2,
        "memtool: a merge is unfinished\nhint: git merge --continue or --abort\n",
    )


@pytest.mark.parametrize(
    ("to", "message"),
    [
        ("5", "unknown format 5; this memtool has formats 1 to 4"),
        ("-1", "unknown format -1; this memtool has formats 1 to 4"),
        ("1", "the tree has format 2, and there is no way back to 1"),
    ],
)
def test_a_format_that_no_step_leads_to_is_refused(store: Sandbox, to: str, message: str):
    """The sentence says which are known, and which way leads back."""
    store.json("migrate", "--to", "2", "--commit")
    done = store.run("migrate", f"--to={to}", "--commit", "--json")
    assert done.returncode == 2
    assert message in done.stderr
    assert '"unknown-format"' in done.stderr


def test_a_file_that_cannot_be_read_is_not_left_behind(store: Sandbox):
    """Nothing is migrated while one file is unreadable: it would keep its old form for good."""
    store.write(".memory/semantic/2026-02/sem-d.md", "no frontmatter\n")
    store.commit("broken")
    done = store.run("migrate", "--commit")
    assert done.returncode == 2
    assert "sem-d.md cannot be read" in done.stderr
    assert "memtool check" in done.stderr


def test_a_step_cannot_rewrite_a_claim(store: Sandbox, monkeypatch: pytest.MonkeyPatch):
    """Whatever a step returns, titles and names are not its business."""
    for step in (
        FormatStep("bad", keys=lambda _fields: {"title": "Other"}),
        FormatStep("bad", place=lambda _fields, _place: "semantic/other.md"),
    ):
        monkeypatch.setattr(migration, "STEPS", (step, *migration.STEPS[1:]))
        with pytest.raises(ValueError, match="the step bad would"):
            migration.plan(store.context(), 2)


def test_a_step_that_makes_no_memory_refuses(store: Sandbox, monkeypatch: pytest.MonkeyPatch):
    """A value that no key can hold is seen before anything is written."""
    step = FormatStep("bad", keys=lambda _fields: {"status": "excellent"})
    monkeypatch.setattr(migration, "STEPS", (step, *migration.STEPS[1:]))
    with pytest.raises(MemtoolError, match="cannot be read"):
        migration.plan(store.context(), 2)


@pytest.mark.parametrize("when", ["pre-commit", "refused"])
def test_a_migration_that_was_cut_off_is_taken_back(store: Sandbox, when: str):
    """Killed before its commit, or refused by a hook: the next one starts from the old bytes."""
    before = tree_of(store)
    hook = store.write(
        ".git/hooks/pre-commit",
        "#!/bin/sh\nexit 1\n" if when == "refused" else "#!/bin/sh\nkill -9 0\n",
    )
    hook.chmod(0o755)
    killed = subprocess.run(
        [*CALL, "migrate", "--commit"],
        cwd=store.path,
        env=store.env | {"PYTHONPATH": FOLDER},
        check=False,
        start_new_session=True,
        capture_output=True,
    )
    assert killed.returncode == (2 if when == "refused" else -9)
    hook.unlink()
    if when == "refused":
        assert b"nothing was changed" in killed.stderr
        assert store.git("status", "--porcelain") == ""
    for lock in Path(store.path).glob(".git/*.lock"):
        lock.unlink()  # as git asks for where it was killed
    done = store.run("migrate", "--commit")
    assert done.returncode == 0, done.stderr
    assert ("nothing was changed" in done.stderr or "are removed" in done.stderr) == (
        when != "refused"
    )
    assert store.git("rev-list", "--count", "HEAD").strip() == "2"
    assert store.git("status", "--porcelain") == ""
    assert tree_of(store, "HEAD~1") == before
    assert not os.path.exists(store.path / ".git/memtool/maintain.intent")


def test_a_new_tree_begins_with_the_newest_format(store: Sandbox, tmp_path: Path):
    """Only in an empty directory: one without settings may be an older tree."""
    (store.path / ".memory/config.toml").unlink()
    store.run("init")
    assert store.context().settings.format == 1
    other = Sandbox(tmp_path / "other", store.env)
    other.path.mkdir()
    other.git("init", "--quiet")
    other.run("init")
    assert other.context().settings.format == NEWEST
    assert "memtool migrate" in store.run("doctor").stdout
