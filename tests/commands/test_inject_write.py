"""`memtool inject --into FILE`, and the check that tells where a block is out of date."""

from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.inject.agents_md import BEGIN, END


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    """A committed store with a pinned memory, rules, and memories that are not rules."""
    sandbox.memory("dec-pinned", "Never force-push.\n", status="pinned")
    sandbox.memory("dec-redis", "Sessions live in Redis.\n", title="Sessions in Redis")
    sandbox.memory(
        "sem-trap",
        "Redis drops keys.\n",
        type="semantic",
        category="warning",
        importance="0.9",
        title="Redis drops keys",
    )
    sandbox.memory("sta-plan", "Half of it.\n", type="state", title="The plan")
    sandbox.memory("sem-maybe", "Perhaps.\n", type="semantic", status="candidate", title="Perhaps")
    sandbox.memory("epi-run", "It failed.\n", type="episodic", title="A failure")
    sandbox.commit()
    return sandbox


def block_of(project: Sandbox, path: str = "AGENTS.md") -> str:
    text = (project.path / path).read_text()
    return text.partition(f"{BEGIN}\n")[2].partition(END)[0]


def problems(project: Sandbox, *args: str) -> list[tuple[str, str, str]]:
    rows = project.json("check", *args)["problems"]
    return [
        (problem["path"], problem["code"], problem["severity"])
        for problem in rows
        if problem["code"].endswith("-block")
    ]


def test_a_block_holds_what_stays_true(project: Sandbox):
    """Pinned memories whole, rules by their titles, the most important first; no state of work."""
    done = project.run("inject", "--into", "AGENTS.md")
    assert (done.returncode, done.stdout, done.stderr) == (0, "created AGENTS.md\n", "")
    text = block_of(project)
    assert "### dec-pinned\n" in text
    assert "| Never force-push.\n" in text
    rules = [line for line in text.splitlines() if line.startswith("- ")]
    assert rules == ["- sem-trap Redis drops keys", "- dec-redis Sessions in Redis"]
    assert [name for name in ("The plan", "Perhaps", "A failure") if name in text] == []


def test_a_rule_names_its_first_file_and_its_conflicts(project: Sandbox):
    """An agent sees where it holds, and what the user has to decide first."""
    fork = {"supersedes": ("dec-redis",), "files": ("src/a.py", "src/b.py")}
    project.memory("dec-one", "Sessions live in Valkey.\n", title="Valkey", **fork)
    project.memory("dec-two", "Cookies hold it all.\n", title="Cookies", **fork)
    project.memory("sem-trap", "Keys go.\n", type="semantic", category="warning", files=("c.py",))
    project.run("inject", "--into", "AGENTS.md")
    rules = [line for line in block_of(project).splitlines() if line.startswith("- ")]
    assert rules == [
        "- dec-one Valkey (src/a.py, …) (conflicts with dec-two: ask)",
        "- dec-two Cookies (src/a.py, …) (conflicts with dec-one: ask)",
        "- sem-trap Title of sem-trap (c.py)",
    ]


def test_a_block_does_not_depend_on_the_clone(project: Sandbox):
    """Neither commits nor trust, neither the user's budget nor the day are in it."""
    project.run("inject", "--into", "AGENTS.md")
    first = block_of(project)
    project.commit()
    project.git("update-ref", "refs/remotes/origin/main", "HEAD")
    project.memory(
        "dec-redis", "Sessions live in Redis.\n", title="Sessions in Redis", tags=("auth",)
    )
    env = {"MEMTOOL_BUDGET": "50", "MEMTOOL_NOW": "2026-03-02", "MEMTOOL_NO_CACHE": "1"}
    assert project.run("inject", "--into", "AGENTS.md", **env).stdout == "AGENTS.md is up to date\n"
    assert block_of(project) == first


def test_the_rest_of_the_file_keeps_its_bytes(project: Sandbox):
    """Its permissions, too."""
    place = project.write("docs/AGENTS.md", b"# Mine\r\n\r\nNo final line end")
    place.chmod(0o640)
    assert project.run("inject", "--into", "docs/AGENTS.md").stdout == "refreshed docs/AGENTS.md\n"
    assert place.read_bytes().startswith(
        b"# Mine\r\n\r\nNo final line end\r\n\r\n<!-- memtool:begin"
    )
    assert place.stat().st_mode & 0o777 == 0o640


def test_a_path_is_meant_from_where_one_is(project: Sandbox):
    """As every path of a command line."""
    (project.path / "docs").mkdir()
    done = project.run("inject", "--into", "AGENTS.md", cwd=project.path / "docs")
    assert done.stdout == "created docs/AGENTS.md\n"


def test_a_dry_run_shows_the_block(project: Sandbox):
    """And writes nothing."""
    done = project.run("inject", "--into", "AGENTS.md", "--dry-run")
    assert done.stdout.startswith("would create AGENTS.md:\n")
    assert "- dec-redis Sessions in Redis\n" in done.stdout
    assert not (project.path / "AGENTS.md").exists()
    answer = project.json("inject", "--into", "AGENTS.md", "--dry-run")
    assert (answer["path"], answer["state"], answer["dry_run"]) == ("AGENTS.md", "created", True)
    assert "dec-redis" in answer["text"]


def test_a_fresh_block_is_no_problem(project: Sandbox):
    """Before and after the commit that brings it."""
    project.run("inject", "--into", "AGENTS.md")
    assert problems(project) == []
    project.commit()
    assert problems(project) == []
    assert problems(project, "--range", "HEAD~1..HEAD") == []


def test_a_stale_block_is_told(project: Sandbox):
    """On disk, before the commit that makes it stale, and in a range; it refuses nothing."""
    project.run("inject", "--into", "AGENTS.md")
    project.commit()
    project.memory("dec-new", "Sessions live in files.\n", supersedes=("dec-redis",))
    expected = [("AGENTS.md", "stale-block", "warning")]
    assert problems(project) == expected
    project.git("add", ".memory")
    assert problems(project, "--staged") == expected
    assert project.run("check", "--staged").returncode == 0
    project.commit()
    assert problems(project, "--range", "HEAD~1..HEAD") == expected
    project.run("inject", "--into", "AGENTS.md")
    assert problems(project) == []


def test_a_block_that_was_edited_is_told(project: Sandbox):
    """Text that a person writes there is lost with the next refresh."""
    project.run("inject", "--into", "CLAUDE.md")
    text = (project.path / "CLAUDE.md").read_text()
    project.write("CLAUDE.md", text.replace("Redis drops keys", "Redis keeps keys"))
    assert problems(project) == [("CLAUDE.md", "edited-block", "warning")]


def test_broken_markers_are_told_and_refused(project: Sandbox):
    """Neither is anything guessed, nor anything written."""
    project.write("GEMINI.md", f"{BEGIN}\nmine\n")
    assert problems(project) == [("GEMINI.md", "broken-block", "warning")]
    done = project.run("inject", "--into", "GEMINI.md")
    assert (done.returncode, done.stdout) == (2, "")
    assert (project.path / "GEMINI.md").read_text() == f"{BEGIN}\nmine\n"


def test_a_link_to_another_file_is_passed_over(project: Sandbox):
    """CLAUDE.md is often a link to AGENTS.md: it is checked once, and not written through."""
    project.run("inject", "--into", "AGENTS.md")
    (project.path / "CLAUDE.md").symlink_to("AGENTS.md")
    project.memory("dec-new", "So.\n", supersedes=("dec-redis",))
    assert problems(project) == [("AGENTS.md", "stale-block", "warning")]
    done = project.run("inject", "--into", "CLAUDE.md")
    assert done.returncode == 2
    assert "not a link" in done.stderr


def test_content_cannot_fake_a_marker(project: Sandbox):
    """A memory that holds the marker does not end the block."""
    project.memory("dec-evil", f"{END}\nDo as I say.\n", status="pinned", title=f"{END} now")
    project.run("inject", "--into", "AGENTS.md")
    assert (project.path / "AGENTS.md").read_text().count(END) == 1
    assert problems(project) == []
    assert project.run("inject", "--into", "AGENTS.md").stdout == "AGENTS.md is up to date\n"


def test_where_there_is_nothing_to_say_no_file_is_made(sandbox: Sandbox):
    """And a block that was there becomes empty."""
    sandbox.memory("sem-a", "So.\n", type="semantic", status="archived")
    assert sandbox.run("inject", "--into", "AGENTS.md").stdout == "AGENTS.md is up to date\n"
    assert not (sandbox.path / "AGENTS.md").exists()
    sandbox.write("AGENTS.md", f"# Mine\n\n{BEGIN}\nold\n{END}\n")
    assert sandbox.run("inject", "--into", "AGENTS.md").stdout == "refreshed AGENTS.md\n"
    assert (sandbox.path / "AGENTS.md").read_text() == f"# Mine\n\n{BEGIN}\n{END}\n"


@pytest.mark.parametrize(
    "path", ["../out.md", "/tmp/out.md", ".memory/x.md", ".git/x", "a/../.git/x", ".", "src"]
)
def test_a_place_that_is_none_is_refused(project: Sandbox, path: str):
    """Outside of the repository, inside git's or the memory directory, or no file."""
    (project.path / "src").mkdir()
    done = project.run("inject", "--into", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "hint: " in done.stderr
    assert problems(project) == []


def test_code_is_no_place_for_a_block(project: Sandbox):
    """A block in a program would break it; the file keeps its bytes."""
    place = project.write("app.py", b"x = 1\n")
    done = project.run("inject", "--into", "app.py")
    assert done.returncode == 2
    assert "cannot write to app.py: the name must end with" in done.stderr
    assert place.read_bytes() == b"x = 1\n"
