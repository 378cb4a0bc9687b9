"""Commits of single files: the user's own work stays as it is, whatever happens."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.errors import MemtoolError
from memtool.store import commits, git_locks
from memtool.store.commits import commit_files
from memtool.store.git import GitError
from memtool.store.repository import Repository


def commit(sandbox: Sandbox, *paths: str, summary: str = "add", **trailers: str) -> str:
    return commit_files(sandbox.context(), paths, summary, trailers) or ""


def refused(sandbox: Sandbox, *paths: str) -> MemtoolError:
    with pytest.raises(MemtoolError) as caught:
        commit(sandbox, *paths)
    assert caught.value.code == "commit-refused"
    assert f"{paths[0]} is written but not committed" in caught.value.message
    return caught.value


def users_work(sandbox: Sandbox) -> tuple[str, str, str]:
    """Index, unstaged changes and stash-like state outside of the memory directory."""
    outside = ("--", ".", ":!.memory")
    return (
        sandbox.git("ls-files", "--stage", *outside),
        sandbox.git("diff", *outside),
        sandbox.git("status", "--porcelain", *outside),
    )


@pytest.fixture
def busy(sandbox: Sandbox) -> Sandbox:
    """A repository with staged, unstaged, new, removed and half-staged work."""
    for name in ("staged", "edited", "both", "removed", "gone"):
        sandbox.write(name, f"{name}\n")
    sandbox.memory("dec-old", "old\n")
    sandbox.commit()
    sandbox.write("staged", "staged 2\n")
    sandbox.write("both", "both 2\n")
    sandbox.write("added", "added\n")
    sandbox.git("add", "staged", "both", "added")
    sandbox.git("rm", "--quiet", "removed")
    sandbox.write("edited", "edited 2\n")
    sandbox.write("both", "both 3\n")
    sandbox.write("untracked", "untracked\n")
    sandbox.write("intended", "intended\n")
    sandbox.git("add", "--intent-to-add", "intended")
    (sandbox.path / "gone").unlink()
    return sandbox


def test_only_the_named_file_is_committed(busy: Sandbox) -> None:
    """A new and a changed memory are committed; staged and unstaged work stays to the byte."""
    before = users_work(busy)
    for path in (busy.memory("dec-new"), busy.memory("dec-old", "changed\n")):
        made = commit(busy, path, summary="add", **{"Memory-Id": "dec-new"})
        assert busy.git("rev-parse", "HEAD").strip() == made
        assert busy.git("show", "--name-only", "--format=", "HEAD").split() == [path]
        assert users_work(busy) == before
    assert busy.git("log", "-1", "--format=%B").strip() == "memory: add\n\nMemory-Id: dec-new"
    assert (
        busy.git("log", "-1", "--format=%(trailers:key=Memory-Id,valueonly)").strip() == "dec-new"
    )


def test_a_staged_version_of_the_memory_is_overtaken_by_the_file(busy: Sandbox) -> None:
    """The file is committed as it is now, and the index agrees afterwards."""
    path = busy.memory("dec-new", "staged\n")
    busy.git("add", path)
    busy.memory("dec-new", "as it stands\n")
    commit(busy, path)
    assert "as it stands" in busy.git("show", f"HEAD:{path}")
    assert busy.git("status", "--porcelain", "--", ".memory") == ""


def test_the_first_commit_of_a_repository(sandbox: Sandbox) -> None:
    """On an unborn branch the memory becomes the first commit, and staged work waits."""
    sandbox.write("staged", "staged\n")
    sandbox.git("add", "staged")
    path = sandbox.memory("dec-a")
    commit(sandbox, path)
    assert sandbox.git("ls-tree", "-r", "--name-only", "HEAD").split() == [path]
    assert sandbox.git("status", "--porcelain") == "A  staged\n"


def test_a_linked_worktree_commits_on_its_own_branch(sandbox: Sandbox) -> None:
    """Other worktrees do not see the commit."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("worktree", "add", "--quiet", "-b", "side", "../linked", "main")
    linked = Sandbox(sandbox.path.parent / "linked", sandbox.env)
    made = commit(linked, linked.memory("dec-c"))
    assert sandbox.git("rev-parse", "side").strip() == made
    assert sandbox.git("status", "--porcelain") == ""


def two_sides(sandbox: Sandbox) -> None:
    """Let `side` and `main` each change one file, so that no operation joins them cleanly."""
    sandbox.memory("dec-old", "old\n")
    sandbox.write("both", "before\n")
    sandbox.commit()
    for branch in ("side", "main"):
        sandbox.git("checkout", "--quiet", *(["-b"] if branch == "side" else []), branch)
        sandbox.write("both", f"{branch}\n")
        sandbox.commit()
    sandbox.git("checkout", "--quiet", "side")


STANDSTILLS = {
    "a rebase": (["rebase", "main"], ["rebase", "--abort"]),
    "a cherry-pick": (["cherry-pick", "main"], ["cherry-pick", "--abort"]),
    "a revert": (["revert", "--no-edit", "HEAD~1"], ["revert", "--abort"]),
    "a bisect": (["bisect", "start"], ["bisect", "reset"]),
    "HEAD is detached": (["checkout", "--quiet", "--detach"], ["checkout", "--quiet", "main"]),
}


@pytest.mark.parametrize("what", STANDSTILLS)
def test_a_commit_that_would_be_lost_is_not_made(sandbox: Sandbox, what: str) -> None:
    """The file is written, stays when the operation is given up, and its note says what to do."""
    two_sides(sandbox)
    begin, end = STANDSTILLS[what]
    if what == "a revert":
        sandbox.write("both", "again\n")
        sandbox.commit()
    sandbox.git(*begin, check=False)
    before = sandbox.git("rev-parse", "HEAD")
    done = sandbox.run(
        "new", "decision", "Kept all the same", "--body", "A reason.", "--commit", "--json"
    )
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["commit"]) == (0, None)
    assert done.stderr.count("not committed") == 1
    assert what in done.stderr
    assert f"git add -- {answer['path']} && git commit" in done.stderr
    assert sandbox.git("rev-parse", "HEAD") == before
    assert sandbox.git("ls-files", answer["path"]) == ""
    sandbox.git(*end)
    assert (sandbox.path / answer["path"]).exists()
    hint = done.stderr.partition("git add -- ")[2].splitlines()[0]
    assert hint.count(answer["path"]) == 2


def test_a_known_file_is_named_because_an_abort_takes_its_change_back(sandbox: Sandbox) -> None:
    """Only a new file outlives `git rebase --abort`."""
    two_sides(sandbox)
    sandbox.git("rebase", "main", check=False)
    context = sandbox.context()
    new, old = sandbox.memory("dec-new"), sandbox.memory("dec-old", "changed\n")
    assert commit_files(context, [new, old], "add", {}) is None
    assert f"its --abort takes back changes of {old};" in context.notes[0]


def test_where_jujutsu_works_it_takes_the_file_in(sandbox: Sandbox) -> None:
    """It keeps HEAD detached all the time, so a commit by git does not help."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "--detach")
    (sandbox.path / ".jj").mkdir()
    context = sandbox.context()
    path = sandbox.memory("dec-b")
    assert commit_files(context, [path], "add", {}) is None
    assert context.notes[0].endswith(f"jj takes it into its own commit: jj commit {path}")


def test_what_is_taken_back_without_a_branch_is_not_committed(sandbox: Sandbox) -> None:
    """Undo goes the same way as everything that commits."""
    sandbox.memory("dec-old", "old\n")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "-b", "side")
    args = ("dec-old", "Another way", "--body", "So.", "--commit", "--json")
    made = json.loads(sandbox.run("supersede", *args).stdout)
    assert made["commit"]
    sandbox.git("checkout", "--quiet", "--detach")
    head = sandbox.git("rev-parse", "HEAD")
    done = sandbox.run("undo", "dec-old", "--commit", "--json")
    assert (done.returncode, json.loads(done.stdout)["commit"]) == (0, None)
    assert ", not committed: HEAD is detached" in done.stderr
    assert sandbox.git("rev-parse", "HEAD") == head


def test_a_killed_commit_leaves_no_entry_that_git_refuses(sandbox: Sandbox) -> None:
    """Entries of `git add --intent-to-add` are reported, and gone with the next commit or mend."""
    sandbox.memory("dec-a")
    sandbox.commit()
    leftover = sandbox.memory("dec-left")
    sandbox.git("add", "--intent-to-add", leftover)
    sandbox.write("mine", "mine\n")
    sandbox.git("add", "--intent-to-add", "mine")
    output = sandbox.run("doctor").stdout
    assert "unfinished commits" in output
    assert leftover in output
    commit(sandbox, sandbox.memory("dec-new"))
    assert sandbox.git("status", "--porcelain", "-uall") == f" A mine\n?? {leftover}\n"
    sandbox.git("add", "--intent-to-add", leftover)
    assert f"{leftover}:0: unfinished-commit" in sandbox.run("check").stdout
    sandbox.run("doctor", "--fix")
    assert sandbox.git("ls-files", leftover) == ""


def test_an_ignored_memory_directory_is_committed_all_the_same(sandbox: Sandbox) -> None:
    """Who asks for a commit gets one, whatever .gitignore says."""
    sandbox.write(".gitignore", ".memory\n")
    path = sandbox.memory("dec-a")
    commit(sandbox, path)
    assert sandbox.git("ls-files", ".memory").split() == [path]


def test_odd_names_and_texts_are_taken_literally(sandbox: Sandbox) -> None:
    """Patterns in a path match nothing else; line feeds in texts begin no trailer of their own."""
    sandbox.write(".memory/dec-x.md", "no\n")
    sandbox.write(".memory/*.md", "yes\n")
    commit(sandbox, ".memory/*.md", summary="a\nb", Reason="c\nMemory-Id: forged\n\n# d")
    assert sandbox.git("ls-files").split() == [".memory/*.md"]
    message = "memory: a b\n\nReason: c Memory-Id: forged # d"
    assert sandbox.git("log", "-1", "--format=%B").strip() == message


def test_during_a_merge_the_file_goes_in_with_it(busy: Sandbox) -> None:
    """A commit of single files is not possible then; the file is staged, and nothing else is."""
    busy.git("reset", "--quiet", "--hard")
    for branch, text in (("other", "theirs\n"), ("main", "ours\n")):
        busy.git("checkout", "--quiet", *(["-b"] if branch == "other" else []), branch)
        busy.write("both", text)
        busy.commit()
    busy.git("merge", "other", check=False)
    before = users_work(busy)
    path = busy.memory("dec-new")
    context = busy.context()
    assert commit_files(context, [path], "add", {}) is None
    assert f"{path} is written and staged, not committed: a merge is unf" in context.notes[0]
    assert users_work(busy) == before
    busy.write("both", "joined\n")
    busy.git("add", "both")
    busy.git("commit", "--quiet", "-m", "merge")
    assert busy.git("ls-tree", "--name-only", "HEAD", path).strip() == path


def test_a_hook_that_refuses_leaves_everything_as_it_was(busy: Sandbox) -> None:
    """The file stays, uncommitted and unstaged, and the user sees what the hook said."""
    hook = busy.write(".git/hooks/pre-commit", "#!/bin/sh\necho 'tests are red'\nexit 1\n")
    hook.chmod(0o755)
    before = users_work(busy)
    head = busy.git("rev-parse", "HEAD")
    new, old = busy.memory("dec-new"), busy.memory("dec-old", "changed\n")
    for path, expected in ((new, f"?? {new}\n"), (old, f" M {old}\n")):
        error = refused(busy, path)
        assert "tests are red" in error.message
        assert f"git commit -- {path}" in error.hint
        assert busy.git("status", "--porcelain", "--", path) == expected
        assert users_work(busy) == before
    assert busy.git("rev-parse", "HEAD") == head
    error = refused(busy, new)
    hook.unlink()
    command = error.hint.partition(", then ")[2]
    subprocess.run(
        ["sh", "-c", command],
        cwd=busy.path,
        check=True,
        stdout=subprocess.DEVNULL,
        env=busy.env | {"GIT_EDITOR": "echo by hand >"},
    )
    assert busy.git("show", "--name-only", "--format=", "HEAD").split() == [new]


def test_the_hint_for_many_files_names_no_others(sandbox: Sandbox) -> None:
    """Their directories if they have no common one, and never the whole worktree."""
    sandbox.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n").chmod(0o755)
    paths = [sandbox.memory(f"dec-{number}") for number in range(6)]
    assert refused_many(sandbox, *paths).endswith("git commit -- .memory/decision/2026-02")
    sandbox.write(".gitattributes", "x\n")
    hint = refused_many(sandbox, *paths, ".gitattributes")
    assert hint.endswith("git commit -- .gitattributes .memory")


def refused_many(sandbox: Sandbox, *paths: str) -> str:
    with pytest.raises(MemtoolError) as caught:
        commit(sandbox, *paths)
    return caught.value.hint


def test_hooks_of_the_user_run_and_see_the_file(sandbox: Sandbox) -> None:
    """A commit that the user asked for is an ordinary one: the hook sees the memory staged."""
    hook = sandbox.write(
        ".git/hooks/pre-commit", "#!/bin/sh\ngit diff --cached --name-only >seen\n"
    )
    hook.chmod(0o755)
    path = sandbox.memory("dec-a")
    commit(sandbox, path)
    assert (sandbox.path / "seen").read_text().split() == [path]


def test_without_an_identity_the_hint_says_how_to_set_one(sandbox: Sandbox) -> None:
    """Git does not know who commits; the file stays."""
    sandbox.env = {
        k: v for k, v in sandbox.env.items() if not k.startswith(("GIT_AUTHOR", "GIT_COMM"))
    }
    sandbox.git("config", "user.useConfigOnly", "true")
    path = sandbox.memory("dec-a")
    assert "git config user.name" in refused(sandbox, path).hint
    assert sandbox.git("status", "--porcelain", "--", path) == f"?? {path}\n"


def test_a_sparse_checkout_is_widened_by_the_hint(sandbox: Sandbox) -> None:
    """Git takes no file outside of it; the hint's command lets the same commit pass."""
    sandbox.write("docs/a.md", "text")
    sandbox.commit()
    sandbox.git("sparse-checkout", "set", "docs")
    path = sandbox.memory("dec-a")
    assert refused(sandbox, path).hint.startswith("git sparse-checkout add .memory, then git add")
    sandbox.git("sparse-checkout", "add", ".memory")
    assert commit(sandbox, path)


def test_a_lock_that_stays_is_named(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memtool waits for another git process, then says that it is in the way."""
    monkeypatch.setattr(git_locks, "LOCK_TIMEOUT_S", 0.1)
    path = sandbox.memory("dec-a")
    sandbox.write(".git/index.lock", "")
    error = refused(sandbox, path)
    assert ".git/index.lock has been there for 0 seconds" in error.message
    assert "another git process holds a lock" in error.hint
    (sandbox.path / ".git" / "index.lock").unlink()
    assert sandbox.git("status", "--porcelain") == "?? .memory/\n"
    commit(sandbox, path)


def test_a_lock_that_was_left_behind_is_named_at_once(sandbox: Sandbox) -> None:
    """Nobody waits twenty seconds for a process that is gone."""
    path = sandbox.memory("dec-a")
    lock = sandbox.write(".git/index.lock", "")
    os.utime(lock, (time.time() - 7_300, time.time() - 7_300))
    began = time.monotonic()
    error = refused(sandbox, path)
    assert time.monotonic() - began < git_locks.LOCK_TIMEOUT_S / 2
    assert ".git/index.lock has been there for 2 hours" in error.message
    assert "no git process works in this repository" in error.message
    assert error.hint.startswith(f"rm {lock}, then git add")
    assert sandbox.git("status", "--porcelain") == "?? .memory/\n"


def test_a_lock_whose_writer_lives_is_waited_for(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that waits for its editor holds a lock for as long as that takes."""
    monkeypatch.setattr(git_locks, "LOCK_TIMEOUT_S", 0.3)
    path = sandbox.memory("dec-a")
    sandbox.write("x", "x")
    sandbox.git("add", "x")
    started = sandbox.path / "started"  # git writes the lock until then
    editor = sandbox.write("editor", f"#!/bin/sh\ntouch '{started}'\nsleep 60\n")
    editor.chmod(0o755)
    lock = sandbox.path / ".git/index.lock"
    writer = subprocess.Popen(
        ["git", "commit", "--all"],
        cwd=sandbox.path,
        env=sandbox.env | {"GIT_EDITOR": str(editor)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        for _try in range(500):
            if started.exists():
                break
            time.sleep(0.01)
        os.utime(lock, (time.time() - 90, time.time() - 90))
        error = refused(sandbox, path)
    finally:
        os.killpg(writer.pid, signal.SIGKILL)
        writer.wait()
    assert "for 1 minute; git works here as process " in error.message
    assert "another git process holds a lock" in error.hint


def test_where_git_cannot_write_the_file_is_kept_for_later(sandbox: Sandbox) -> None:
    """As in the sandbox of an agent, with a writable worktree and a read-only .git."""
    sandbox.run("init", "--commit")
    script = (
        "mount --bind .git .git && mount -o remount,ro,bind .git && "
        f"exec {sys.executable} -m memtool remember 'Deploys run on Tuesdays.' --commit"
    )
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script],
        cwd=sandbox.path,
        env=sandbox.env,
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("no namespaces here")
    assert done.returncode == 2
    assert "written but not committed" in done.stderr
    assert "commit later: git add -- .memory/semantic/" in done.stderr
    assert "Tuesdays" in sandbox.run("list").stdout


@pytest.mark.slow
def test_sixteen_processes_that_commit_at_once_all_succeed(sandbox: Sandbox) -> None:
    """Each memory is written and committed, with its trailer, and the repository is sound."""
    sandbox.memory("dec-base")
    sandbox.commit()
    args = [sys.executable, "-m", "memtool", "new", "semantic"]
    env = {k: v for k, v in sandbox.env.items() if k != "MEMTOOL_SEED"}
    running = [
        subprocess.Popen(
            [*args, f"Fact {number}", "--body", f"It is {number}.", "--commit"],
            cwd=sandbox.path,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(16)
    ]
    paths = []
    for process in running:
        out, err = process.communicate()
        assert process.returncode == 0, err
        paths.append(out.splitlines()[-1])
    log = sandbox.git("log", "--format=%(trailers:key=Memory-Id,valueonly)", "HEAD~16..HEAD")
    assert sorted(log.split()) == sorted(Path(path).stem for path in paths)
    assert sandbox.git("status", "--porcelain") == ""
    sandbox.git("fsck", "--strict")


LOST = """#!/bin/sh
[ "$1" = committed ] || exit 0
rm -f .git/index.lock
{more}
"""
"""A hook that runs when HEAD has moved, and makes git fail to write its index after it."""


def test_a_commit_whose_index_could_not_be_written_is_a_commit(sandbox: Sandbox) -> None:
    """HEAD has moved: git's index is made to follow, and the commit is returned."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.write(".git/hooks/reference-transaction", LOST.format(more="")).chmod(0o755)
    before = sandbox.git("rev-parse", "HEAD")
    made = commit(sandbox, sandbox.memory("dec-b"))
    assert sandbox.git("rev-parse", "HEAD", "HEAD^").split() == [made, before.strip()]
    assert sandbox.git("status", "--porcelain") == ""


def test_an_index_that_cannot_follow_is_named(sandbox: Sandbox) -> None:
    """The message says that the commit is made, and how the index is mended."""
    sandbox.memory("dec-a")
    sandbox.commit()
    hook = LOST.format(more="mv .git/index .git/kept; mkdir -p .git/index/x")
    sandbox.write(".git/hooks/reference-transaction", hook).chmod(0o755)
    path = sandbox.memory("dec-b")
    with pytest.raises(MemtoolError) as caught:
        commit(sandbox, path)
    shutil.rmtree(sandbox.path / ".git/index")
    (sandbox.path / ".git/kept").rename(sandbox.path / ".git/index")
    assert caught.value.code == "index-behind"
    assert sandbox.git("rev-parse", "HEAD")[:7] in caught.value.message
    assert caught.value.hint == f"git reset -- {path}"
    (sandbox.path / ".git/hooks/reference-transaction").unlink()
    sandbox.git("reset", "--quiet", "--", path)
    assert sandbox.git("status", "--porcelain") == ""


def removal(sandbox: Sandbox, *paths: str, new: tuple[str, ...] = ()) -> str:
    return commit_files(sandbox.context(), new, "remove", {}, removed=paths) or ""


def test_a_removal_leaves_the_users_work_alone(busy: Sandbox) -> None:
    """One commit removes some files and has others; index and worktree follow, and nothing else."""
    before = users_work(busy)
    new = busy.memory("dec-new")
    old = ".memory/decision/2026-02/dec-old.md"
    made = removal(busy, old, new=(new,))
    changed = busy.git("show", "--no-renames", "--name-status", "--format=", made).split()
    assert changed == ["A", new, "D", old]
    assert users_work(busy) == before
    assert busy.git("status", "--porcelain", "--", ".memory") == ""


def test_no_file_goes_before_the_commit_is_there(
    busy: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk git refuses, and on a broken one the file stays: each message is true."""
    old = ".memory/decision/2026-02/dec-old.md"
    real = commits.run_patiently
    full = GitError(["commit"], 128, b"fatal: unable to write: No space left on device")

    def refuse(repository: Repository, args: list[str], *extra: object) -> None:
        if args[0] == "commit":
            raise full
        real(repository, args, *extra)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(commits, "run_patiently", refuse)
        with pytest.raises(MemtoolError, match="nothing was removed: unable to write: No space"):
            removal(busy, old)
    before = users_work(busy)
    assert busy.git("status", "--porcelain", "--", ".memory") == ""
    broken = MemtoolError(f"{old} cannot be removed: Input/output error", code="disk")

    def stays(*_args: object) -> None:
        raise broken

    monkeypatch.setattr(commits, "remove", stays)
    with pytest.raises(MemtoolError, match=r"commit \w{10} is made, but .* cannot be removed"):
        removal(busy, old)
    assert busy.git("status", "--porcelain", "-uall", "--", ".memory") == f"?? {old}\n"
    assert users_work(busy) == before


def test_a_removal_concludes_nothing_that_the_user_began(busy: Sandbox) -> None:
    """In a merge the commit would be the merge itself."""
    busy.git("reset", "--quiet", "--hard")
    busy.git("commit", "--quiet", "--allow-empty", "-m", "mine")
    busy.git("branch", "other", "HEAD^")
    busy.git("checkout", "--quiet", "other")
    busy.git("commit", "--quiet", "--allow-empty", "-m", "theirs")
    busy.git("merge", "--quiet", "--no-commit", "--no-ff", "main")
    with pytest.raises(MemtoolError, match="nothing was removed: a merge is unfinished") as caught:
        removal(busy, ".memory/decision/2026-02/dec-old.md")
    assert caught.value.code == "merging"
