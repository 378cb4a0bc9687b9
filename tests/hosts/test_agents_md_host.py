"""`install agents-md`: the block in AGENTS.md, and its renewal by git's hook."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.commands.install import install, uninstall
from memtool.errors import MemtoolError
from memtool.inject.agents_md import BEGIN, END

RULE = "Sessions live in Redis"


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    """A repository with a confirmed decision, and git's hooks."""
    sandbox.env["PATH"] = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    sandbox.memory("dec-redis", f"{RULE}.\n", title=RULE, status="confirmed")
    sandbox.commit()
    install(sandbox.context(), "git")
    return sandbox


@pytest.mark.parametrize("text", [None, "# Ours\n", "# Ours", "# Ours\r\n\r\n", "\ufeff# Ours\n"])
def test_the_file_gets_back_its_bytes(project: Sandbox, text: str | None) -> None:
    """What the user wrote stays; uninstall leaves the file, or no file, as it was."""
    path = project.path / "AGENTS.md"
    if text is not None:
        path.write_bytes(text.encode())
    assert install(project.context(), "agents-md", yes=True).steps
    assert path.read_bytes().decode().startswith(text or BEGIN)
    assert RULE in path.read_text()
    assert install(project.context(), "agents-md", yes=True).steps == ()
    uninstall(project.context(), "agents-md", yes=True)
    assert (path.read_bytes().decode() if path.exists() else None) == text


def test_a_foreign_file_only_changes_with_consent(project: Sandbox) -> None:
    """Nobody can be asked here; a dry run shows the block."""
    project.write("AGENTS.md", "# Ours\n")
    with pytest.raises(MemtoolError, match="no terminal to ask"):
        install(project.context(), "agents-md")
    assert f"+{BEGIN}" in install(project.context(), "agents-md", dry_run=True).diff
    assert (project.path / "AGENTS.md").read_text() == "# Ours\n"


def test_broken_marks_are_refused(project: Sandbox) -> None:
    """Which part of the file is ours is unclear."""
    project.write("AGENTS.md", f"{BEGIN}\nmine\n")
    for change in (install, uninstall):
        with pytest.raises(MemtoolError, match="once: see line 1"):
            change(project.context(), "agents-md", yes=True)


def test_it_belongs_to_one_repository(project: Sandbox) -> None:
    """There is no AGENTS.md of all projects."""
    with pytest.raises(MemtoolError, match="--user does not apply to agents-md"):
        install(project.context(), "agents-md", user=True)


def merge(project: Sandbox, into: str) -> str:
    """Merge a new decision of a branch into another branch; return what AGENTS.md says then."""
    project.git("checkout", "--quiet", "-b", "topic")
    project.memory("dec-html", "Pages are plain HTML.\n", title="Plain HTML", status="confirmed")
    project.commit()
    assert "Plain HTML" not in (project.path / "AGENTS.md").read_text()
    project.git(
        "checkout",
        "--quiet",
        *(["-b"] if into != "main" else []),
        into,
        *(["main"] if into != "main" else []),
    )
    project.git("merge", "--quiet", "--no-ff", "--no-edit", "topic")
    return (project.path / "AGENTS.md").read_text()


@pytest.fixture
def marked(project: Sandbox) -> Sandbox:
    """The same, with the block committed."""
    install(project.context(), "agents-md")
    project.git("add", "AGENTS.md")
    project.commit()
    return project


def test_a_merge_into_the_default_branch_renews_the_block(marked: Sandbox) -> None:
    """A topic branch does not touch it, so that two of them never conflict over it."""
    assert "Plain HTML" in merge(marked, "main")


def test_a_merge_elsewhere_does_not(marked: Sandbox) -> None:
    """The block of another branch comes with its merge into the default branch."""
    assert "Plain HTML" not in merge(marked, "release")


def test_what_somebody_edited_is_not_renewed(marked: Sandbox) -> None:
    """It would be lost without a word; `inject --into` does it on purpose."""
    path = marked.path / "AGENTS.md"
    path.write_text(path.read_text().replace(END, f"Mine.\n{END}"))
    marked.git("add", "AGENTS.md")
    marked.commit()
    text = merge(marked, "main")
    assert "Mine." in text
    assert "Plain HTML" not in text
    assert marked.run("inject", "--into", "AGENTS.md", "--renew").stdout.startswith(
        "AGENTS.md stays"
    )


def test_without_a_block_nothing_is_written(project: Sandbox) -> None:
    """The hook renews only what somebody installed."""
    project.write("AGENTS.md", "# Ours\n")
    assert project.run("inject", "--into", "AGENTS.md", "--renew").returncode == 0
    assert (project.path / "AGENTS.md").read_text() == "# Ours\n"
