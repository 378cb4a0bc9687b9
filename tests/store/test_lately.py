"""Which files the work at hand is about, in real histories."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.store import cochange
from memtool.store.repository import head_commit


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    sandbox.write("a.py", "1\n")
    sandbox.write("b.py", "1\n")
    sandbox.memory("dec-a")
    sandbox.commit()
    return sandbox


def changed(sandbox: Sandbox, trusted: str = "", *, is_checked_out: bool = True) -> list[str]:
    repository = sandbox.context().repository
    head = repository.git.head()
    trusted_at = repository.git.rev(trusted) if trusted else ""
    found = [
        cochange.changed(repository, ".memory", head, trusted_at, is_checked_out=is_checked_out,
                       is_cached=is_cached)
        for is_cached in (False, True, True)
    ]  # fmt: skip
    assert found == 3 * found[:1]
    return list(found[0])


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
    for number in range(cochange.BRANCH_COMMITS):
        project.write(f"n{number}.py", "1\n")
        project.commit()
    expected = [f"n{number}.py" for number in range(cochange.BRANCH_COMMITS)]
    assert changed(project) == expected
    assert changed(project, "HEAD") == expected
    assert changed(project, is_checked_out=False) == expected


def test_what_git_cannot_say_is_nothing(sandbox: Sandbox) -> None:
    """No commit yet, or one that is not here."""
    repository = sandbox.context().repository
    assert cochange.changed(repository, ".memory", "", "", is_checked_out=True) == ()
    assert cochange.changed(repository, ".memory", "0" * 40, "1" * 40, is_checked_out=True) == ()
    assert cochange.arrived(repository, ".memory", "0" * 40, "1" * 40) == frozenset()


def test_memories_arrive_with_commits(project: Sandbox) -> None:
    """Those that came, also with a merge; neither changed ones nor other files."""
    old = project.git("rev-parse", "HEAD").strip()
    project.memory("dec-a", "Changed.\n")
    path = project.memory("dec-new")
    project.write(".memory/config.toml", "")
    project.write("x.py", "1\n")
    new = project.commit()
    repository = project.context().repository
    assert cochange.arrived(repository, ".memory", old, new) == {path}
    assert cochange.arrived(repository, ".memory", new, new) == frozenset()


def test_every_commit_counts_among_the_last(project: Sandbox) -> None:
    """One of memories alone, an empty one and a merge too; a merge adds no file of its own."""
    project.git("checkout", "--quiet", "-b", "work")
    project.write("work.py", "1\n")
    project.commit()
    project.git("checkout", "--quiet", "main")
    for number in range(cochange.BRANCH_COMMITS - 4):
        project.write(f"n{number}.py", "1\n")
        project.commit()
    project.memory("dec-c")
    project.commit()
    project.git("merge", "--quiet", "--no-edit", "work")
    project.git("commit", "--quiet", "--allow-empty", "-m", "nothing")
    numbered = [f"n{number}.py" for number in range(cochange.BRANCH_COMMITS - 4)]
    assert changed(project) == [*numbered, "work.py"]
    project.git("commit", "--quiet", "--allow-empty", "-m", "nothing again")
    assert len(changed(project)) == len(numbered)


def test_a_memory_directory_of_odd_name_is_left_out(sandbox: Sandbox) -> None:
    """Its name is no pattern, and one that begins alike is another directory."""
    sandbox.write("[a]*/dec-a.md", "1\n")
    sandbox.write("[a]*b/c.py", "1\n")
    sandbox.write("a/d.py", "1\n")
    sandbox.commit()
    repository = sandbox.context().repository
    sandbox.write("[a]*/dec-a.md", "2\n")
    found = cochange.changed(repository, "[a]*", repository.git.head(), "", is_checked_out=True)
    assert found == ("[a]*b/c.py", "a/d.py")


@pytest.mark.parametrize("harm", [b"", b"00000000\nmain", b"?" * 40])
def test_a_damaged_cache_changes_no_answer(project: Sandbox, harm: bytes) -> None:
    """What is not what was written is asked of git again, and kept again."""
    expected = changed(project)
    (kept,) = (project.path / ".git" / "memtool" / "lately").iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(harm)
    assert changed(project) == expected == ["a.py", "b.py"]
    assert kept.read_bytes() == whole


def test_what_commits_say_is_asked_once(project: Sandbox, tmp_path: Path) -> None:
    """A second look starts git for what differs on disk alone; each head has its own file."""
    changed(project)
    trace = tmp_path / "trace"
    repository = project.context(GIT_TRACE=str(trace)).repository
    head = head_commit(repository) or ""
    cochange.changed(repository, ".memory", head, "", is_checked_out=True, is_cached=True)
    ran = [line for line in trace.read_text().splitlines() if "built-in: git " in line]
    assert [line.partition("built-in: git ")[2].split()[0] for line in ran] == ["diff-index"]
    project.write("c.py", "1\n")
    project.commit()
    assert changed(project) == ["a.py", "b.py", "c.py"]
