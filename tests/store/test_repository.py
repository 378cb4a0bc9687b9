"""Finding the repository: the same answers as git, from wherever memtool is called."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.errors import MemtoolError
from memtool.store import repository
from memtool.store.repository import Repository, discover


def ask_git(directory: Path, env: dict[str, str]) -> tuple[str, str, str] | None:
    """Top (empty if bare), git directory and common directory, as git says them."""

    def line(*args: str) -> str | None:
        done = subprocess.run(
            ["git", "rev-parse", "--path-format=absolute", *args],
            cwd=directory,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        return None if done.returncode else done.stdout.strip()

    git_dir, common = line("--git-dir"), line("--git-common-dir")
    if git_dir is None or common is None:
        return None
    return (line("--show-toplevel") or "", git_dir, common)


def same_as_git(directory: Path, env: dict[str, str]) -> Repository:
    """Discover, compare with git, and return what was found."""
    discovered = discover(str(directory), env)
    real = [
        os.path.realpath(p) if p else ""
        for p in (discovered.top, discovered.git_dir, discovered.common_dir)
    ]
    expected = ask_git(directory, env)
    assert expected is not None
    assert [os.path.realpath(p) if p else "" for p in expected] == real
    return discovered


def test_the_top_and_any_directory_below_it(sandbox: Sandbox) -> None:
    """From the top, a subdirectory or through a link, the repository is the same."""
    deep = sandbox.path / "a" / "b"
    deep.mkdir(parents=True)
    link = sandbox.path.parent / "link"
    link.symlink_to(deep)
    tops = {same_as_git(place, sandbox.env).top for place in (sandbox.path, deep, link)}
    assert tops == {os.path.realpath(sandbox.path)}


def test_an_ordinary_checkout_needs_no_process(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain repository and a linked worktree are found by reading files."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("worktree", "add", "--quiet", "../linked")
    monkeypatch.setattr(repository, "ask_git", lambda *_: pytest.fail("git was asked"))
    for place in (sandbox.path, sandbox.path.parent / "linked"):
        assert discover(str(place), sandbox.env).top == os.path.realpath(place)


def test_linked_worktrees_share_the_common_directory(sandbox: Sandbox) -> None:
    """A linked worktree has its own top and git directory, and the cache of all."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("worktree", "add", "--quiet", "../linked")
    main = same_as_git(sandbox.path, sandbox.env)
    linked = same_as_git(sandbox.path.parent / "linked" / ".memory", sandbox.env)
    assert linked.top != main.top
    assert linked.git_dir != main.git_dir
    assert linked.cache_dir == main.cache_dir


def test_detached_and_unborn(sandbox: Sandbox) -> None:
    """Neither a missing first commit nor a detached HEAD changes what is found."""
    unborn = same_as_git(sandbox.path, sandbox.env)
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "--detach")
    assert same_as_git(sandbox.path, sandbox.env).top == unborn.top


def test_a_submodule_has_its_own_memory(sandbox: Sandbox, tmp_path: Path) -> None:
    """Inside a submodule the innermost repository counts, never the one around it."""
    inner = tmp_path / "inner"
    inner.mkdir()
    other = Sandbox(inner, sandbox.env)
    other.git("init", "--quiet")
    other.memory("sem-inner")
    other.commit()
    sandbox.git(
        "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(inner), "sub"
    )
    discovered = same_as_git(sandbox.path / "sub" / ".memory", sandbox.env)
    assert discovered.top == os.path.realpath(sandbox.path / "sub")
    assert same_as_git(sandbox.path, sandbox.env).top == os.path.realpath(sandbox.path)


def test_a_git_file_by_hand(sandbox: Sandbox, tmp_path: Path) -> None:
    """`git init --separate-git-dir` leaves a file with an absolute path; a relative one works."""
    place = tmp_path / "separate"
    sandbox.git("init", "--quiet", "--separate-git-dir", str(tmp_path / "elsewhere"), str(place))
    same_as_git(place, sandbox.env)
    (place / ".git").write_text("gitdir: ../elsewhere\n")
    same_as_git(place, sandbox.env)


def test_bare_repositories_are_read_from_themselves(sandbox: Sandbox, tmp_path: Path) -> None:
    """A bare repository has no top; it must be named itself, and may be read."""
    sandbox.memory("dec-a")
    commit = sandbox.commit()
    sandbox.git("clone", "--quiet", "--bare", ".", "../bare.git")
    bare = tmp_path / "bare.git"
    discovered = same_as_git(bare, sandbox.env)
    assert discovered.is_bare
    assert discovered.git.resolve("HEAD") == commit
    with pytest.raises(MemtoolError, match="is inside a git directory"):
        discover(str(bare / "refs"), sandbox.env)


def test_a_worktree_of_a_bare_repository_has_a_top(sandbox: Sandbox, tmp_path: Path) -> None:
    """The settings say bare, but a linked worktree is none."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("clone", "--quiet", "--bare", ".", "../bare.git")
    subprocess.run(
        ["git", "--git-dir", "../bare.git", "worktree", "add", "-q", str(tmp_path / "w")],
        cwd=sandbox.path,
        env=sandbox.env,
        check=True,
        capture_output=True,
    )
    assert not same_as_git(tmp_path / "w", sandbox.env).is_bare


def test_inside_the_git_directory_there_is_no_worktree(sandbox: Sandbox) -> None:
    """In `.git` itself memtool reads as in a bare repository; deeper inside it refuses."""
    discovered = same_as_git(sandbox.path / ".git", sandbox.env)
    assert discovered.is_bare
    with pytest.raises(MemtoolError, match="is inside a git directory"):
        discover(str(sandbox.path / ".git" / "refs"), sandbox.env)


@pytest.mark.parametrize("spelling", ["bare = true", "bare", "bare=yes", "BARE = 1"])
def test_settings_may_say_that_there_is_no_worktree(sandbox: Sandbox, spelling: str) -> None:
    """Every way of writing core.bare is git's to understand."""
    config = sandbox.path / ".git" / "config"
    config.write_text(config.read_text().replace("bare = false", spelling))
    assert same_as_git(sandbox.path / ".git", sandbox.env).is_bare
    assert discover(str(sandbox.path), sandbox.env).is_bare


@pytest.mark.parametrize("where", ["config", "config.worktree", "include"])
def test_settings_may_move_the_worktree(sandbox: Sandbox, tmp_path: Path, where: str) -> None:
    """core.worktree is obeyed, whichever file holds it."""
    (tmp_path / "moved").mkdir()
    text = f"[core]\n\tworktree = {tmp_path / 'moved'}\n"
    config = sandbox.path / ".git" / "config"
    if where == "include":
        (tmp_path / "more").write_text(text)
        text = f"[include]\n\tpath = {tmp_path / 'more'}\n"
    if where == "config.worktree":
        sandbox.git("config", "extensions.worktreeConfig", "true")
        sandbox.git("config", "core.repositoryFormatVersion", "1")
        (sandbox.path / ".git" / "config.worktree").write_text(text)
    else:
        config.write_text(config.read_text() + text)
    discovered = discover(str(sandbox.path), sandbox.env)
    top = sandbox.git("rev-parse", "--show-toplevel").strip()
    assert os.path.realpath(top) == os.path.realpath(discovered.top)
    assert (os.path.realpath(discovered.top) == os.path.realpath(tmp_path / "moved")) is (
        os.path.realpath(top) == os.path.realpath(tmp_path / "moved")
    )


def test_variables_point_at_a_repository(sandbox: Sandbox, tmp_path: Path) -> None:
    """GIT_DIR and GIT_WORK_TREE win over the current directory, relative or not."""
    other = tmp_path / "other"
    other.mkdir()
    sandbox.memory("dec-a")
    commit = sandbox.commit()
    absolute = {"GIT_DIR": str(sandbox.path / ".git"), "GIT_WORK_TREE": str(sandbox.path)}
    assert same_as_git(other, sandbox.env | absolute).git.resolve("HEAD") == commit
    deep = sandbox.path / "deep"
    deep.mkdir()
    relative = {"GIT_DIR": "../.git", "GIT_WORK_TREE": ".."}
    discovered = same_as_git(deep, sandbox.env | relative)
    assert discovered.top == os.path.realpath(sandbox.path)
    assert discovered.git.resolve("HEAD") == commit
    alone = same_as_git(other, sandbox.env | {"GIT_DIR": str(sandbox.path / ".git")})
    assert alone.top == os.path.realpath(other)


def test_ceilings_stop_the_search(sandbox: Sandbox) -> None:
    """GIT_CEILING_DIRECTORIES keeps memtool from walking up, as it keeps git."""
    deep = sandbox.path / "a" / "b"
    deep.mkdir(parents=True)
    env = sandbox.env | {"GIT_CEILING_DIRECTORIES": str(sandbox.path / "a")}
    assert ask_git(deep, env) is None
    with pytest.raises(MemtoolError, match="not in a git repository"):
        discover(str(deep), env)


@pytest.mark.parametrize("content", [None, "", "gitdir: nowhere\n", "nonsense", "\0\xff"])
def test_a_broken_git_entry_is_told(sandbox: Sandbox, tmp_path: Path, content: str | None) -> None:
    """An empty `.git` directory or a file that points nowhere ends in one sentence."""
    place = tmp_path / "broken"
    place.mkdir()
    if content is None:
        (place / ".git").mkdir()
    else:
        (place / ".git").write_text(content, encoding="latin-1")
    with pytest.raises(MemtoolError) as caught:
        discover(str(place), sandbox.env)
    assert caught.value.exit_code == 2


def test_a_pipe_named_git_does_not_block(sandbox: Sandbox, tmp_path: Path) -> None:
    """A FIFO in the place of `.git` is left to git, and never opened."""
    os.mkfifo(tmp_path / ".git")
    with pytest.raises(MemtoolError):
        discover(str(tmp_path), sandbox.env)


@pytest.mark.parametrize(
    ("directory", "code"),
    [(".", "no-repository"), ("absent", "no-directory"), ("\0", "no-directory")],
)
def test_no_repository_is_told_with_the_next_step(
    sandbox: Sandbox, tmp_path: Path, directory: str, code: str
) -> None:
    """Outside of any repository, or nowhere, the error says what to do."""
    with pytest.raises(MemtoolError) as caught:
        discover(str(tmp_path / directory), sandbox.env)
    assert caught.value.code == code


def test_a_directory_that_was_removed_is_told(sandbox: Sandbox, tmp_path: Path) -> None:
    """A shell in a deleted directory gets no traceback."""
    code = (
        "import os, sys; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\n"
        "from memtool.errors import MemtoolError\n"
        "from memtool.store.repository import discover\n"
        "try: discover('.', os.environ)\n"
        "except MemtoolError as error: print(error.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=sandbox.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("no-directory\n", "")


@pytest.mark.root
@pytest.mark.parametrize("what", ["top", ".git"])
def test_a_repository_of_somebody_else_is_refused_as_git_refuses_it(
    sandbox: Sandbox, what: str
) -> None:
    """safe.directory is git's question; memtool does not read past its refusal."""
    sandbox.memory("dec-a")
    sandbox.commit()
    os.chown(sandbox.path if what == "top" else sandbox.path / ".git", 12_345, 12_345)
    if ask_git(sandbox.path, sandbox.env) is None:
        with pytest.raises(MemtoolError, match="dubious ownership") as refused:
            discover(str(sandbox.path), sandbox.env)
        assert "git config --global --add safe.directory " in refused.value.hint
    (sandbox.path.parent / "trusting").write_text("[safe]\n\tdirectory = *\n")
    trusting = sandbox.env | {"GIT_CONFIG_GLOBAL": str(sandbox.path.parent / "trusting")}
    assert same_as_git(sandbox.path, trusting).top == os.path.realpath(sandbox.path)


def test_object_formats(sandbox: Sandbox, tmp_path: Path) -> None:
    """A repository with SHA-256 names its objects so."""
    place = tmp_path / "sha256"
    sandbox.git("init", "--quiet", "--object-format=sha256", str(place))
    assert same_as_git(place, sandbox.env).object_format == "sha256"
    assert same_as_git(sandbox.path, sandbox.env).object_format == "sha1"


@pytest.fixture
def history(sandbox: Sandbox) -> Sandbox:
    """Two commits, a branch, a tag, and a remote with a packed default branch."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("branch", "side/one")
    sandbox.memory("dec-b")
    sandbox.commit()
    sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD~1")
    sandbox.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    sandbox.git("tag", "-m", "one", "v1")
    return sandbox


def rev(sandbox: Sandbox, name: str) -> str:
    return sandbox.git(
        "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", check=False
    ).strip()


NAMES = (
    "refs/heads/main",
    "refs/heads/side/one",
    "refs/heads/gone",
    "refs/heads/side",
    "refs/remotes/origin/HEAD",
    "refs/remotes/origin/main",
    "refs/remotes/origin/gone",
    "refs/tags/v1",
    "HEAD",
    "main~1",
    "refs/heads/../heads/main",
    "refs/heads/main^0",
    "",
)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_branch_is_what_git_says(history: Sandbox, name: str, *, packed: bool) -> None:
    """Loose or packed, present or absent; None only hands the question over."""
    if packed:
        history.git("pack-refs", "--all")
    commit = repository.read_branch_commit(history.context().repository, name)
    assert commit in (None, rev(history, name))
    assert (commit is None) == (
        not name.startswith(repository.BRANCHES) or ".." in name or "^" in name
    )


@pytest.mark.parametrize("packed", [False, True])
def test_head_is_what_git_says(history: Sandbox, *, packed: bool) -> None:
    """On a branch, detached, in a linked worktree, and while a ref is being written."""
    if packed:
        history.git("pack-refs", "--all")
    assert repository.read_head_commit(history.context().repository) == rev(history, "HEAD")
    history.git("worktree", "add", "--quiet", "../other", "side/one")
    other = Sandbox(history.path.parent / "other", history.env)
    assert (
        repository.read_head_commit(other.context().repository)
        == rev(other, "HEAD")
        != rev(history, "HEAD")
    )
    history.git("checkout", "--quiet", "--detach", "HEAD~1")
    assert repository.read_head_commit(history.context().repository) == rev(history, "HEAD")
    (history.path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (history.path / ".git" / "refs" / "heads" / "main").write_text("half")
    assert repository.read_head_commit(history.context().repository) is None


def test_an_unborn_branch_is_left_to_git(sandbox: Sandbox) -> None:
    """Nothing is claimed before the first commit."""
    assert repository.read_head_commit(sandbox.context().repository) is None


def test_a_reftable_is_left_to_git(history: Sandbox) -> None:
    """With a reftable, a missing ref file means nothing."""
    history.git("pack-refs", "--all")
    (history.path / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")
    discovered = history.context().repository
    assert repository.read_head_commit(discovered) is None
    assert repository.read_branch_commit(discovered, "refs/remotes/origin/main") is None


SHORT = (
    "main",
    "side/one",
    "origin/main",
    "origin",
    "gone",
    "v1",
    "HEAD",
    "abcd",
    "main~1",
    "@",
    "origin/../main",
    "heads/main",
)


@pytest.mark.parametrize("name", SHORT)
def test_a_short_name_is_what_git_says(history: Sandbox, name: str) -> None:
    """A tag before a branch, a branch before a remote's; possible commits are left to git."""
    assert repository.read_named_commit(history.context().repository, name) in (
        None,
        "",
        rev(history, name),
    )
    history.git("tag", "main", "side/one")
    assert repository.read_named_commit(history.context().repository, "main") is None


def test_circles_of_refs_end(history: Sandbox) -> None:
    """A ref that names itself is git's to complain about."""
    place = history.path / ".git" / "refs" / "heads" / "loop"
    place.write_text("ref: refs/heads/loop\n")
    assert repository.read_branch_commit(history.context().repository, "refs/heads/loop") is None


@pytest.mark.parametrize("mark", repository.FOREIGN_MARKS, ids=lambda mark: mark[0])
def test_trees_of_other_tools_are_known_by_a_file(sandbox: Sandbox, mark: tuple[str, str]) -> None:
    """Each mark names its tool, and the refusal says so."""
    name, tool = mark
    sandbox.write(f".memory/{name}", "")
    assert repository.find_foreign_tool(str(sandbox.path), ".memory") == tool
    with pytest.raises(
        MemtoolError, match=rf"^cannot use \.memory: it belongs to {tool}"
    ) as caught:
        repository.refuse_foreign_tree(str(sandbox.path), ".memory")
    assert caught.value.code == "foreign-tree"


@pytest.mark.parametrize(
    "names",
    [
        [],
        [".gitkeep"],
        [".gitattributes", "README.md", "_decision.md"],
        ["decision/2026-02/dec-a.md"],
        ["aliases.toml"],
        ["config.toml", "MEMORY.md"],
        [".tmp-1-ab-x.md"],
        [".DS_Store"],
    ],
    ids=lambda names: ",".join(names) or "empty",
)
def test_our_trees_are_ours(sandbox: Sandbox, names: list[str]) -> None:
    """An empty directory, our own files, and files that show nothing belong to memtool."""
    for name in names:
        sandbox.write(f".memory/{name}", "")
    assert repository.find_foreign_tool(str(sandbox.path), ".memory") is None
    repository.refuse_foreign_tree(str(sandbox.path), ".memory")


def test_unknown_files_belong_to_another_tool(sandbox: Sandbox) -> None:
    """Where nothing is ours, memtool does not move in."""
    sandbox.write(".memory/notes.md", "")
    assert repository.find_foreign_tool(str(sandbox.path), ".memory") == "another tool"


def test_a_directory_that_is_absent_belongs_to_nobody(sandbox: Sandbox) -> None:
    """Neither an absent directory nor a file in its place shows an owner."""
    sandbox.write("file", "")
    assert (
        repository.find_foreign_tool(str(sandbox.path), "absent")
        is repository.find_foreign_tool(str(sandbox.path), "file")
        is None
    )


def test_verbs_do_not_write_into_foreign_trees(sandbox: Sandbox) -> None:
    """`new` refuses, and the directory keeps what it held."""
    sandbox.write(".memory/MEMORY.md", "theirs")
    done = sandbox.run("new", "semantic", "A fact", "--body", "It is so.")
    assert (done.returncode, done.stdout) == (2, "")
    assert "belongs to a MEMORY.md tool" in done.stderr
    assert [path.name for path in (sandbox.path / ".memory").iterdir()] == ["MEMORY.md"]
