"""Files that change together, and files that the work at hand changed, in real histories."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.store import cochange
from memtool.store.git import Git
from memtool.store.repository import discover, read_head_commit


def touch(sandbox: Sandbox, *paths: str, times: int = 1) -> str:
    """Change some files in one commit, several times, and return the last commit."""
    commit = ""
    for _time in range(times):
        for path in paths:
            sandbox.write(path, f"{sandbox.tick}\n")
        commit = sandbox.commit()
    return commit


def companions(
    sandbox: Sandbox, *files: str, head: str = "HEAD", is_cached: bool = False
) -> tuple[str, ...]:
    head = sandbox.git("rev-parse", head).strip()
    repository = discover(str(sandbox.path), sandbox.env)
    return cochange.find_companions(repository, ".memory", head, files, is_cached=is_cached)


def test_what_changes_together_is_found_from_both_sides(sandbox: Sandbox) -> None:
    """Three commits in common say so, two do not."""
    touch(sandbox, "src/a.py", "tests/a.py", times=2)
    assert companions(sandbox, "src/a.py") == ()
    touch(sandbox, "src/a.py", "tests/a.py", "README")
    assert companions(sandbox, "src/a.py") == ("tests/a.py",)
    assert companions(sandbox, "tests/a.py") == ("src/a.py",)
    assert companions(sandbox, "README") == companions(sandbox, "src", "no/such") == ()


def test_what_is_open_is_nobodys_companion(sandbox: Sandbox) -> None:
    """Of several open files only others are named, each once and in order."""
    touch(sandbox, "a", "b", "c", times=3)
    assert companions(sandbox, "b", "a") == ("c",)
    assert companions(sandbox, "b") == ("a", "c")


def test_a_file_that_every_commit_touches_belongs_to_none(sandbox: Sandbox) -> None:
    """The share counts the commits of both, so that a change log says nothing."""
    touch(sandbox, "CHANGES", "a", "b", "versions", times=3)
    touch(sandbox, "CHANGES", times=20)
    touch(sandbox, "versions", times=20)
    assert companions(sandbox, "a") == ("b",)
    assert companions(sandbox, "CHANGES") == companions(sandbox, "versions") == ()


def test_large_commits_and_memories_say_nothing(sandbox: Sandbox) -> None:
    """Neither reformatting everything nor committing a memory with code relates two files."""
    many = [f"src/{number:02}" for number in range(cochange.MAX_FILES)]
    touch(sandbox, *many, "one-more", times=3)
    assert companions(sandbox, "src/00") == ()
    touch(sandbox, *many, ".memory/note.md", times=3)
    assert companions(sandbox, "src/00") == tuple(many[1 : 1 + cochange.MAX_COMPANIONS])
    assert companions(sandbox, ".memory/note.md") == ()


def test_merges_are_not_counted_twice(sandbox: Sandbox) -> None:
    """A branch counts by its commits, not by its merge."""
    touch(sandbox, "base")
    sandbox.git("switch", "--quiet", "--create", "topic")
    touch(sandbox, "a", "b", times=2)
    sandbox.git("switch", "--quiet", "main")
    touch(sandbox, "base")
    sandbox.git("merge", "--quiet", "--no-ff", "--message", "merge", "topic")
    assert companions(sandbox, "a") == ()


def test_strange_names_are_names(sandbox: Sandbox) -> None:
    """Spaces, quotes, other scripts and odd bytes; only line feeds are skipped."""
    odd = ("with space", 'q"uote', "größe", "commit", "-x", os.fsdecode(b"raw\xff"))
    touch(sandbox, *odd, "two\nlines", times=3)
    assert companions(sandbox, "-x") == tuple(sorted(set(odd) - {"-x"}))
    assert companions(sandbox, "two\nlines") == ()


def test_only_what_leads_to_the_commit_counts(sandbox: Sandbox) -> None:
    """An older commit knows what was before it; a checked out one has no branch."""
    old = touch(sandbox, "a", "b", times=3)
    touch(sandbox, "a", "c", times=3)
    assert companions(sandbox, "a", head=old) == ("b",)
    assert companions(sandbox, "a") == ("b", "c")
    sandbox.git("switch", "--quiet", "--detach", old)
    assert companions(sandbox, "a") == ("b",)


def test_where_a_shallow_clone_ends_nothing_is_counted(sandbox: Sandbox, tmp_path: Path) -> None:
    """The last commit that a clone holds seems to write everything, and says nothing."""
    touch(sandbox, "a", "b")
    touch(sandbox, "a", times=2)
    touch(sandbox, "a", "b", times=3)
    clone = tmp_path / "clone"
    for depth, expected in ((3, ()), (4, ("b",))):
        sandbox.git("clone", "--quiet", f"--depth={depth}", f"file://{sandbox.path}", str(clone))
        repository = discover(str(clone), sandbox.env)
        head = repository.git.head()
        result = cochange.find_companions(repository, ".memory", head, ["a"], is_cached=True)
        assert result == expected
        clone.rename(tmp_path / f"clone-{depth}")


def test_the_cache_changes_no_answer(sandbox: Sandbox) -> None:
    """It is read without git, and another commit has its own."""
    touch(sandbox, "a", "b", times=3)
    cold = companions(sandbox, "a", is_cached=True)
    head = sandbox.git("rev-parse", "HEAD").strip()
    unable = discover(str(sandbox.path), sandbox.env | {"PATH": "/nowhere"})
    args = (unable, ".memory", head, ["a"])
    assert (
        cold
        == companions(sandbox, "a")
        == cochange.find_companions(*args, is_cached=True)
        == ("b",)
    )
    touch(sandbox, "a", "c", times=3)
    assert companions(sandbox, "a", is_cached=True) == companions(sandbox, "a") == ("b", "c")


def test_where_git_cannot_say_nothing_changes_together(sandbox: Sandbox) -> None:
    """Before the first commit, or for a missing one, there is no answer and no error."""
    repository = discover(str(sandbox.path), sandbox.env)
    assert isinstance(repository.git, Git)
    for head in ("", "1" * 40):
        result = cochange.find_companions(repository, ".memory", head, ["a"], is_cached=False)
        assert result == ()


def test_a_memory_about_a_companion_comes_before_one_that_is_about_neither(
    sandbox: Sandbox,
) -> None:
    """The factor of files shows it, in `inject` as in its explanation."""
    touch(sandbox, "src/login.py", "etc/session.toml", times=3)
    sandbox.memory("dec-a", "The session cookie lives a day.\n", title="Cookie", files=("lib/x",))
    sandbox.memory(
        "dec-b",
        "The session cookie lives a day or two.\n",
        title="Cookie",
        files=("etc/session.toml",),
    )
    sandbox.commit()
    args = (
        "inject",
        "--prompt",
        "how long does a session cookie live?",
        "--explain",
        "--format",
        "json",
    )
    for files, expected in (((), 1.0), (("--files", "src/login.py"), 1.05)):
        verdicts = sandbox.json(*args, *files)["explain"]
        factors = {verdict["id"]: verdict["factors"]["files"] for verdict in verdicts}
        assert factors == {"dec-a": 1.0, "dec-b": expected}


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
    trusted_at = repository.git.resolve(trusted) if trusted else ""
    results = [
        cochange.find_changed_files(
            repository,
            ".memory",
            head,
            trusted_at,
            is_checked_out=is_checked_out,
            is_cached=is_cached,
        )
        for is_cached in (False, True, True)
    ]
    assert results == 3 * results[:1]
    return list(results[0])


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
    """On the trusted ref, and if there is none."""
    for number in range(cochange.LAST_COMMITS):
        project.write(f"n{number}.py", "1\n")
        project.commit()
    expected = [f"n{number}.py" for number in range(cochange.LAST_COMMITS)]
    assert changed(project) == expected
    assert changed(project, "HEAD") == expected
    assert changed(project, is_checked_out=False) == expected


def test_what_git_cannot_say_is_nothing(sandbox: Sandbox) -> None:
    """No commit yet, or one that is not here."""
    repository = sandbox.context().repository
    assert cochange.find_changed_files(repository, ".memory", "", "", is_checked_out=True) == ()
    assert (
        cochange.find_changed_files(repository, ".memory", "0" * 40, "1" * 40, is_checked_out=True)
        == ()
    )
    assert cochange.find_arrived(repository, ".memory", "0" * 40, "1" * 40) == frozenset()


def test_memories_arrive_with_commits(project: Sandbox) -> None:
    """Those that came, also with a merge; neither changed ones nor other files."""
    old = project.git("rev-parse", "HEAD").strip()
    project.memory("dec-a", "Changed.\n")
    path = project.memory("dec-new")
    project.write(".memory/config.toml", "")
    project.write("x.py", "1\n")
    new = project.commit()
    repository = project.context().repository
    assert cochange.find_arrived(repository, ".memory", old, new) == {path}
    assert cochange.find_arrived(repository, ".memory", new, new) == frozenset()


def test_every_commit_counts_among_the_last(project: Sandbox) -> None:
    """One of memories alone, an empty one and a merge too; a merge adds no file of its own."""
    project.git("checkout", "--quiet", "-b", "work")
    project.write("work.py", "1\n")
    project.commit()
    project.git("checkout", "--quiet", "main")
    for number in range(cochange.LAST_COMMITS - 4):
        project.write(f"n{number}.py", "1\n")
        project.commit()
    project.memory("dec-c")
    project.commit()
    project.git("merge", "--quiet", "--no-edit", "work")
    project.git("commit", "--quiet", "--allow-empty", "-m", "nothing")
    numbered = [f"n{number}.py" for number in range(cochange.LAST_COMMITS - 4)]
    assert changed(project) == [*numbered, "work.py"]
    project.git("commit", "--quiet", "--allow-empty", "-m", "nothing again")
    assert len(changed(project)) == len(numbered)


def test_a_memory_directory_of_odd_name_is_left_out(sandbox: Sandbox) -> None:
    """Its name is not a pattern, and one that begins alike is another directory."""
    sandbox.write("[a]*/dec-a.md", "1\n")
    sandbox.write("[a]*b/c.py", "1\n")
    sandbox.write("a/d.py", "1\n")
    sandbox.commit()
    repository = sandbox.context().repository
    sandbox.write("[a]*/dec-a.md", "2\n")
    paths = cochange.find_changed_files(
        repository, "[a]*", repository.git.head(), "", is_checked_out=True
    )
    assert paths == ("[a]*b/c.py", "a/d.py")


def test_what_commits_say_is_asked_once(project: Sandbox, tmp_path: Path) -> None:
    """A second look starts git for what differs on disk alone; each head has its own fact."""
    changed(project)
    trace = tmp_path / "trace"
    repository = project.context(GIT_TRACE=str(trace)).repository
    head = read_head_commit(repository) or ""
    cochange.find_changed_files(
        repository, ".memory", head, "", is_checked_out=True, is_cached=True
    )
    ran = [line for line in trace.read_text().splitlines() if "built-in: git " in line]
    assert [line.partition("built-in: git ")[2].split()[0] for line in ran] == ["diff-index"]
    project.write("c.py", "1\n")
    project.commit()
    assert changed(project) == ["a.py", "b.py", "c.py"]


def test_a_commit_of_many_files_changes_none_of_them(project: Sandbox) -> None:
    """An import or a formatting is not work on its files, on a branch as on the trusted ref."""
    many = [f"docs/{number:02}.rst" for number in range(cochange.MAX_COMMIT_FILES)]
    touch(project, *many)
    assert changed(project) == ["a.py", "b.py", *many]
    trusted = touch(project, *many, "one-more")
    assert changed(project) == ["a.py", "b.py", *many]
    project.git("switch", "--quiet", "--create", "work")
    touch(project, *many, "a.py")
    touch(project, "b.py")
    assert changed(project, trusted) == changed(project, trusted, is_checked_out=False) == ["b.py"]


def test_where_a_shallow_clone_ends_nothing_is_changed(project: Sandbox, tmp_path: Path) -> None:
    """The last commit that a clone holds seems to write every file of the project."""
    touch(project, "c.py")
    clone = tmp_path / "clone"
    project.git("clone", "--quiet", "--depth=1", f"file://{project.path}", str(clone))
    repository = discover(str(clone), project.env)
    head = repository.git.head()
    for is_cached in (False, True, True):
        paths = cochange.find_changed_files(
            repository, ".memory", head, "", is_checked_out=True, is_cached=is_cached
        )
        assert paths == ()


def test_files_whose_times_alone_are_new_are_not_changed(project: Sandbox) -> None:
    """A copied repository before its first `git status`; bytes decide, and CRLF is LF."""
    trusted = touch(project, "c.py")
    project.git("switch", "--quiet", "--create", "work")
    project.git("commit", "--quiet", "--allow-empty", "-m", "nothing")
    project.write(".git/info/attributes", "b.py text\n")
    project.write("b.py", "1\r\n")
    project.write("c.py", "other\n")
    for name in ("a.py", "b.py", "c.py"):
        os.utime(project.path / name, (1, 1))
    listed = project.git("diff-index", "--name-only", "HEAD").split()
    assert listed == ["a.py", "b.py", "c.py"]
    assert changed(project, trusted) == ["c.py"]
