"""Which files the work at hand is about, in real histories."""

from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.store import lately


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    sandbox.write("a.py", "1\n")
    sandbox.write("b.py", "1\n")
    sandbox.memory("dec-a")
    sandbox.commit()
    return sandbox


def changed(sandbox: Sandbox, trusted: str = "", *, is_checked_out: bool = True) -> list[str]:
    repository = sandbox.workspace().repository
    head = repository.git.head()
    trusted_at = repository.git.rev(trusted) if trusted else ""
    found = lately.changed(
        repository, ".memory", head, trusted_at, is_checked_out=is_checked_out
    )  # fmt: skip
    return list(found)


def test_a_branch_is_what_parted_from_the_trusted_ref(project: Sandbox) -> None:
    """Its commits and what differs on disk; neither memories nor what the trusted ref did."""
    project.git("checkout", "--quiet", "-b", "work")
    project.write("c é.py", "1\n")
    project.memory("dec-b")
    project.commit()
    project.git("checkout", "--quiet", "main")
    project.write("a.py", "2\n")
    project.commit()
    project.git("checkout", "--quiet", "work")
    assert changed(project, "main") == ["c é.py"]
    project.write("b.py", "3\n")
    project.write("new.py", "unknown to git\n")
    assert changed(project, "main") == ["b.py", "c é.py"]
    assert changed(project, "main", is_checked_out=False) == ["c é.py"]


def test_without_a_branch_it_is_the_last_commits(project: Sandbox) -> None:
    """On the trusted ref, and where there is none."""
    for number in range(lately.COMMITS):
        project.write(f"n{number}.py", "1\n")
        project.commit()
    expected = [f"n{number}.py" for number in range(lately.COMMITS)]
    assert changed(project) == expected
    assert changed(project, "HEAD") == expected
    assert changed(project, is_checked_out=False) == expected


def test_what_git_cannot_say_is_nothing(sandbox: Sandbox) -> None:
    """No commit yet, or one that is not here."""
    repository = sandbox.workspace().repository
    assert lately.changed(repository, ".memory", "", "", is_checked_out=True) == ()
    assert lately.changed(repository, ".memory", "0" * 40, "1" * 40, is_checked_out=True) == ()
    assert lately.arrived(repository, ".memory", "0" * 40, "1" * 40) == frozenset()


def test_memories_arrive_with_commits(project: Sandbox) -> None:
    """Those that came, also with a merge; neither changed ones nor other files."""
    old = project.git("rev-parse", "HEAD").strip()
    project.memory("dec-a", "Changed.\n")
    path = project.memory("dec-new")
    project.write(".memory/config.toml", "")
    project.write("x.py", "1\n")
    new = project.commit()
    repository = project.workspace().repository
    assert lately.arrived(repository, ".memory", old, new) == {path}
    assert lately.arrived(repository, ".memory", new, new) == frozenset()
