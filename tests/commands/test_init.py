from __future__ import annotations

import pytest
from conftest import PIPED, Sandbox

from memtool.commands.init import init, render
from memtool.commands.new import new
from memtool.errors import MemtoolError
from memtool.store.context import Context

FILES = (
    ".memory/config.toml",
    ".memory/_episodic.md",
    ".memory/_semantic.md",
    ".memory/_decision.md",
    ".memory/_state.md",
    ".gitattributes",
)
MERGE = ".memory/**/*.md merge=memtool\n"
LINES = f".memory/** -text\n{MERGE}"


@pytest.fixture
def fresh(sandbox: Sandbox) -> Sandbox:
    """A repository that has no memory directory."""
    (sandbox.path / ".memory").rmdir()
    return sandbox


def test_init_makes_settings_templates_and_the_line_for_git(fresh: Sandbox):
    """A repository is ready after one command."""
    made = init(fresh.context())
    assert made.written == FILES
    assert (fresh.path / ".gitattributes").read_text() == LINES
    assert fresh.context().settings.values == {}
    assert render(made, PIPED).splitlines()[0] == "wrote .memory/config.toml"


def test_git_does_not_convert_line_ends_of_memories(fresh: Sandbox):
    """The bytes of a memory are the same in every clone."""
    init(fresh.context())
    attributes = fresh.git("check-attr", "text", "--", ".memory/decision/2026-02/dec-a.md")
    assert attributes.strip().endswith("text: unset")


def test_doing_it_again_adds_only_what_is_missing(fresh: Sandbox):
    """Nobody's changes to templates or settings are undone."""
    init(fresh.context())
    fresh.write(".memory/_decision.md", "## Mine\n")
    (fresh.path / ".memory/_state.md").unlink()
    assert init(fresh.context()).written == (".memory/_state.md",)
    assert (fresh.path / ".memory/_decision.md").read_text() == "## Mine\n"
    again = init(fresh.context())
    assert again.written == ()
    assert render(again, PIPED).startswith(".memory is ready, nothing was missing")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("*.png binary\n", f"*.png binary\n{LINES}"),
        ("*.png binary", f"*.png binary\n{LINES}"),
        ("# .memory/** -text\n", f"# .memory/** -text\n{LINES}"),
        (".memory/** -text\r\n", f".memory/** -text\r\n{MERGE}"),
        (LINES.replace("\n", "\r\n"), LINES.replace("\n", "\r\n")),
    ],
)
def test_the_attributes_of_the_user_are_kept(fresh: Sandbox, before: str, after: str):
    """The lines are added at the end, each once."""
    fresh.write(".gitattributes", before)
    init(fresh.context())
    assert (fresh.path / ".gitattributes").read_bytes().decode() == after


def test_a_dry_run_makes_nothing(fresh: Sandbox):
    """The files are listed, and none is written."""
    made = init(fresh.context(), dry_run=True, commit=True)
    assert made.written == FILES
    assert render(made, PIPED).splitlines()[0] == "would write .memory/config.toml"
    assert [path.name for path in fresh.path.iterdir()] == [".git"]
    assert not (fresh.path / ".git/memtool").exists()


def test_a_commit_holds_just_these_files(fresh: Sandbox):
    """Other work in the repository stays as it was."""
    fresh.write("code.py", "staged\n")
    fresh.git("add", "code.py")
    made = init(fresh.context(), commit=True)
    assert made.commit == fresh.git("rev-parse", "HEAD").strip()
    assert set(fresh.git("show", "--format=", "--name-only", "HEAD").split()) == set(FILES)
    assert fresh.git("status", "--porcelain") == "A  code.py\n"


def test_a_commit_also_takes_what_was_written_before(fresh: Sandbox):
    """`init` names the command, and it commits the files that nobody committed since."""
    assert "next: memtool init --commit" in fresh.run("init").stdout.splitlines()
    done = fresh.run("init", "--commit")
    assert set(fresh.git("show", "--format=", "--name-only", "HEAD").split()) == set(FILES)
    short = fresh.git("rev-parse", "--short=7", "HEAD").strip()
    assert done.stdout.startswith(f".memory is ready, nothing was missing; committed as {short}\n")
    assert fresh.run("init", "--commit").stdout.startswith(
        ".memory is ready, nothing was missing\n"
    )


def test_a_commit_does_not_take_in_the_users_own_attributes(fresh: Sandbox):
    """Uncommitted changes of the user in a file that init must change are theirs to commit."""
    fresh.write(".gitattributes", "*.png binary\n")
    with pytest.raises(MemtoolError, match="has uncommitted changes"):
        init(fresh.context(), commit=True)
    assert not (fresh.path / ".memory").exists()


def test_another_directory_is_named_by_a_pointer_at_the_top(fresh: Sandbox):
    """Every later call finds the memories where init put them."""
    made = init(fresh.context(), directory="docs/memory/")
    assert made.directory == "docs/memory"
    assert ".memtool.toml" in made.written
    assert new(fresh.context(), "decision", "T", body="It is so, and this is why.").path.startswith(
        "docs/memory/decision/"
    )
    assert init(fresh.context()).written == ()


@pytest.mark.parametrize(
    "directory",
    [
        "..",
        "../x",
        "/tmp/x",
        "~/x",
        ".git",
        ".git/x",
        "x/.GIT",
        ".",
        "./x",
        "a//b",
        'a"b',
        "a b",
        "a\nb",
        "-x",
        "a*",
        "#a",
        "\x1b",
    ],
)
def test_a_name_that_is_no_plain_directory_inside_is_refused(fresh: Sandbox, directory: str):
    """The name is written into git attributes and TOML, where it must not be a pattern."""
    with pytest.raises(MemtoolError, match="is not a path inside the repository"):
        init(fresh.context(), directory=directory)
    assert [path.name for path in fresh.path.iterdir()] == [".git"]


@pytest.mark.parametrize("there", [".memory", "docs/memory"])
def test_memories_that_are_there_are_not_left_behind(fresh: Sandbox, there: str):
    """A second directory would hide the first one's memories."""
    init(fresh.context(), directory="" if there == ".memory" else there)
    with pytest.raises(MemtoolError) as caught:
        init(fresh.context(), directory="elsewhere")
    assert caught.value.message == f"the memories of this repository are in {there}"
    assert f"git mv {there} elsewhere" in caught.value.hint


def test_the_tree_of_another_tool_is_left_alone_and_can_stay(sandbox: Sandbox):
    """Beside a foreign `.memory` the memories go to a directory of their own."""
    sandbox.write(".memory/memory.jsonl", "{}\n")
    with pytest.raises(MemtoolError) as caught:
        init(sandbox.context())
    assert caught.value.code == "foreign-tree"
    assert init(sandbox.context(), directory="notes").directory == "notes"
    assert [path.name for path in (sandbox.path / ".memory").iterdir()] == ["memory.jsonl"]


def test_a_bare_repository_is_refused(sandbox: Sandbox):
    """It has no worktree to make a directory in."""
    sandbox.git("init", "--quiet", "--bare", "bare.git")
    with pytest.raises(MemtoolError) as caught:
        init(Context.at(str(sandbox.path / "bare.git"), sandbox.env))
    assert caught.value.code == "bare"


@pytest.mark.parametrize("path", [".memory", ".gitattributes/x"])
def test_what_stands_in_the_way_is_told(fresh: Sandbox, path: str):
    """A file in place of the directory, or the reverse, is reported in a sentence."""
    fresh.write(path, "in the way")
    with pytest.raises(MemtoolError):
        init(fresh.context())
    assert (fresh.path / path).read_text() == "in the way"


def test_the_hook_and_the_hosts_in_use_are_offered_until_they_are_there(sandbox: Sandbox) -> None:
    """Nothing is installed unasked; a repository with the framework gets its entry there."""
    (sandbox.path / ".claude").mkdir()
    done = sandbox.run("init")
    assert "next: memtool install git\nnext: memtool install claude\n" in done.stdout
    assert sandbox.json("init")["offers"] == ["memtool install git", "memtool install claude"]
    assert not (sandbox.path / ".git/hooks/pre-commit").exists()
    sandbox.write(".pre-commit-config.yaml", "repos: []\n")
    assert sandbox.json("init")["offers"][0] == "memtool install pre-commit"
    for host in ("git", "claude"):
        assert sandbox.run("install", host, "--yes").returncode == 0
    assert sandbox.json("init")["offers"] == []


@pytest.fixture
def adopting(fresh: Sandbox) -> Sandbox:
    """A repository with a history: decision records, an agent file, a formatter and an agent."""
    fresh.write("docs/adr/0001-use-go.md", "# 1. Use Go\n\n## Status\n\nAccepted\n\nBecause.\n")
    fresh.write("docs/adr/0002-use-rq.md", "# 2. Use RQ\n\n## Status\n\nProposed\n\nFor jobs.\n")
    fresh.write("AGENTS.md", "# Agents\n\n## Build\n\nRun make.\n")
    fresh.write("tests/docs/adr/0001-made-up.md", "# 1. Made up\n\nNothing.\n")
    fresh.write(".prettierignore", "dist")
    fresh.write(".claude/settings.json", "{}\n")
    fresh.commit()
    return fresh


def test_a_repository_with_a_history_is_shown_its_plan(adopting: Sandbox) -> None:
    """Stores with their counts, hooks and agents, by the names that --only takes; none of tests."""
    done = adopting.run("init", "--dry-run")
    plan = done.stdout.partition("found here:\n")[2].splitlines()
    assert len(adopting.json("init", "--dry-run")["plan"]) == len(plan)
    assert [row.split()[0] for row in plan] == [
        "AGENTS.md",
        "docs/adr",
        "git",
        "claude",
        ".prettierignore",
    ]
    assert plan[1].split("  ")[-1].strip() == "decision records (2)"
    assert not (adopting.path / ".memory").exists()


def test_everything_is_set_up_in_one_commit_that_can_be_reverted(adopting: Sandbox) -> None:
    """--yes imports and installs; a revert takes back the tree, uninstall what is not in it."""
    before = adopting.git("rev-parse", "HEAD^{tree}")
    answer = adopting.json("init", "--yes")
    assert answer["offers"] == []
    assert adopting.git("rev-list", "--count", "HEAD").strip() == "2"
    assert adopting.git("rev-parse", "HEAD").strip() == answer["commit"]
    assert adopting.git("status", "--porcelain") == ""
    assert (adopting.path / ".prettierignore").read_text() == "dist\n.memory/\n"
    tree = adopting.context().tree()
    assert {"adr-0001-use-go", "adr-0002-use-rq"} < set(tree.ids)
    assert (adopting.path / ".git/hooks/pre-commit").exists()
    assert adopting.json("init")["offers"] == []
    adopting.git("revert", "--no-edit", "HEAD")
    assert adopting.git("rev-parse", "HEAD^{tree}") == before
    assert adopting.run("uninstall", "--all", "--yes").returncode == 0
    assert not (adopting.path / ".git/hooks/pre-commit").exists()


def test_only_what_is_named_is_set_up(adopting: Sandbox) -> None:
    """The others stay offered; a name that is not in the plan is refused before all else."""
    done = adopting.run("init", "--only", "docs/nope")
    assert (done.returncode, (adopting.path / ".memory").exists()) == (2, False)
    assert "AGENTS.md, docs/adr, git, claude, .prettierignore" in done.stderr
    assert adopting.run("init", "--only", "").returncode == 2
    answer = adopting.json("init", "--only", "docs/adr,.prettierignore")
    assert [line.partition(":")[0] for line in answer["lines"]] == ["docs/adr", ".prettierignore"]
    assert answer["offers"] == [
        "memtool import claude .",
        "memtool install git",
        "memtool install claude",
    ]


def test_stores_are_named_as_in_the_plan_and_refused_records_are_counted(
    adopting: Sandbox,
) -> None:
    """A secret is not a warning among others, and no store is called by a dot."""
    adopting.write("AGENTS.md", "# Agents\n\n## Build\n\nThe password is demo-Shop-2026.\n")
    adopting.write("docs/adr/README.md", "# Records\n")
    adopting.commit()
    done = adopting.run("init", "--yes")
    assert "set up AGENTS.md: rules and sections of agent files, 0 of 1" in done.stdout
    assert "AGENTS.md: 1 refused: memtool import claude . --dry-run" in done.stderr
    assert "docs/adr: 1 warning: memtool import adr docs/adr --dry-run" in done.stderr


def test_the_users_own_changes_are_left_to_them(adopting: Sandbox) -> None:
    """A file that had changes before is written, and not committed."""
    adopting.write(".prettierignore", "dist\nmine\n")
    done = adopting.run("init", "--only", ".prettierignore", "--only", "docs/adr")
    assert "left for you to commit" in done.stderr
    assert adopting.git("status", "--porcelain") == " M .prettierignore\n"
    assert (adopting.path / ".prettierignore").read_text() == "dist\nmine\n.memory/\n"


def test_commits_fit_the_history(adopting: Sandbox) -> None:
    """A team with conventional commits gets them from the first commit of memtool on."""
    for number in range(12):
        adopting.write("a.txt", f"{number}\n")
        adopting.commit(f"feat(api): step {number}")
    names = [row["name"] for row in adopting.json("init", "--dry-run")["plan"]]
    assert "commit.subject" in names
    adopting.run("init", "--yes")
    assert adopting.git("log", "-1", "--format=%s").strip() == "docs(memory): begin"
    assert "commit.subject" not in [row["name"] for row in adopting.json("init")["plan"]]


def test_what_cannot_be_set_up_is_told_and_the_others_are(adopting: Sandbox) -> None:
    """One refusal does not stop the import of everything else."""
    (adopting.path / ".claude/settings.json").write_text("no JSON\n")
    done = adopting.run("init", "--yes")
    assert done.returncode == 0
    assert "set up claude:" in done.stdout
    assert "try memtool install claude" in done.stdout
    assert "adr-0001-use-go" in adopting.context().tree().ids


def test_a_formatter_is_told_to_leave_memories_alone(sandbox: Sandbox):
    """The ignore file of a formatter that is there gets a line offered, until it has one."""
    (sandbox.path / ".prettierignore").write_text("dist\n")
    offered = "next: echo .memory/ >> .prettierignore"
    assert offered in sandbox.run("init").stdout
    assert ".remarkignore" not in sandbox.run("init").stdout
    (sandbox.path / ".prettierignore").write_text("dist\n/.memory/\n")
    assert offered not in sandbox.run("init").stdout
