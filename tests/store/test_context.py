"""The workspace: one repository, with its directory, settings, clock and chance."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import NOW, Sandbox

from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.store.context import Context
from memtool.store.project import parse_directory


def test_the_clock_is_what_the_environment_says(sandbox: Sandbox) -> None:
    """MEMTOOL_NOW is a moment or a day; without it the machine's clock counts."""
    assert sandbox.context().clock.now == timestamps.parse(NOW)
    assert sandbox.context(MEMTOOL_NOW="2026-01-01").clock.now == timestamps.start("2026-01-01")
    assert sandbox.context(MEMTOOL_NOW="").clock.now > timestamps.parse(NOW) - 365 * 86_400
    for wrong in ("tomorrow", "30d", "2026-02-30"):
        with pytest.raises(MemtoolError, match="MEMTOOL_NOW must be a moment, not "):
            _ = sandbox.context(MEMTOOL_NOW=wrong).clock.now


def test_chance_is_repeatable_with_a_seed(sandbox: Sandbox) -> None:
    """The same seed gives the same bytes in the same order, each time others."""
    first, other = sandbox.context(), sandbox.context()
    drawn = [first.caller.random(3) for _ in range(4)]
    assert drawn == [other.caller.random(3) for _ in range(4)]
    assert len(set(drawn)) == 4
    assert drawn[0] != sandbox.context(MEMTOOL_SEED="other").caller.random(3)
    free = Context.at(
        str(sandbox.path), {k: v for k, v in sandbox.env.items() if k != "MEMTOOL_SEED"}
    )
    assert len(free.caller.random(8)) == 8


def test_moments_count_from_now(sandbox: Sandbox) -> None:
    """Ages are taken from the workspace's clock, and other words are refused."""
    workspace = sandbox.context()
    assert workspace.clock.parse_moment("1d") == workspace.clock.now - 86_400
    assert workspace.clock.parse_as_of(None) == workspace.clock.now
    with pytest.raises(MemtoolError) as caught:
        workspace.clock.parse_moment("soon")
    assert caught.value.code == "bad-time"


def test_the_directory_may_be_named_at_the_top(sandbox: Sandbox) -> None:
    """`.memtool.toml` names the directory of the memories; the default is `.memory`."""
    assert sandbox.context().directory == ".memory"
    sandbox.write(".memtool.toml", 'directory = "docs/memory/"\n')
    sandbox.write("docs/memory/config.toml", "[search]\nlimit = 3\n")
    workspace = sandbox.context()
    assert (workspace.directory, workspace.project.config_path) == (
        "docs/memory",
        "docs/memory/config.toml",
    )
    assert workspace.settings.count("search.limit") == 3
    assert workspace.tree().records == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "directory = 1",
        'directory = ""',
        'directory = "/etc"',
        'directory = "../x"',
        'directory = "~/x"',
        'directory = ".git"',
        'directory = ".git/x"',
        'directory = "a/.GIT/b"',
        'directory = "."',
        'directory = "./a"',
        'directory = "a//b"',
        'directory = "a\\\\b"',
        'directory = "a\\nb"',
        'directory = ["a"]',
        "directory = ",
        "\0",
    ],
)
def test_a_directory_outside_or_inside_git_is_refused(text: str) -> None:
    """The pointer names a directory of the worktree, in its plain spelling, or is an error."""
    with pytest.raises(MemtoolError) as caught:
        parse_directory(text.encode())
    assert caught.value.code == "config"


def test_settings_that_are_no_file_are_not_opened(sandbox: Sandbox, tmp_path: Path) -> None:
    """A link or a pipe in the place of the settings is an error, never followed or waited for."""
    config = sandbox.path / ".memory" / "config.toml"
    (tmp_path / "outside").write_text("[search]\nlimit = 3\n")
    for make in (
        lambda: config.symlink_to(tmp_path / "outside"),
        lambda: config.symlink_to("/dev/zero"),
        lambda: os.mkfifo(config),
        config.mkdir,
    ):
        make()
        with pytest.raises(MemtoolError) as caught:
            _ = sandbox.context().settings
        message = ".memory/config.toml cannot be read: it is a link, or no plain file"
        assert (caught.value.code, caught.value.message) == ("config", message)
        if config.is_dir():
            config.rmdir()
        else:
            config.unlink()
    assert sandbox.context().settings.count("search.limit") == 10


def test_without_a_memory_directory_the_hint_is_init(sandbox: Sandbox) -> None:
    """Reading says what makes the directory; another revision may have one."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("rm", "-r", "--quiet", ".memory")
    with pytest.raises(MemtoolError) as caught:
        sandbox.context().tree()
    assert (caught.value.code, caught.value.hint) == ("no-memory", "memtool init")
    assert [record.id for record in sandbox.context().tree("HEAD").records] == ["dec-a"]


def test_files_that_are_no_memories_are_noted_once(sandbox: Sandbox) -> None:
    """Skipped files are reported next to the answer."""
    sandbox.memory("dec-a")
    sandbox.write(".memory/x.md", "no header")
    sandbox.write(".memory/y.md", "no header")
    workspace = sandbox.context()
    for _ in range(2):
        workspace.tree()
    (note,) = workspace.notes
    assert note.startswith("2 files are not memories")
    assert ".memory/x.md:1: no-frontmatter" in note


def test_a_bare_repository_has_the_settings_of_its_head(sandbox: Sandbox, tmp_path: Path) -> None:
    """Pointer and settings are read from the commit if there is no worktree."""
    bare = tmp_path / "bare.git"
    sandbox.git("init", "--quiet", "--bare", str(bare))
    assert Context.at(str(bare), sandbox.env).settings.count("search.limit") == 10
    sandbox.write(".memtool.toml", 'directory = "mem"\n')
    sandbox.write("mem/config.toml", "[search]\nlimit = 3\n")
    sandbox.commit()
    sandbox.git("push", "--quiet", str(bare), "main")
    Sandbox(bare, sandbox.env).git("--git-dir=.", "symbolic-ref", "HEAD", "refs/heads/main")
    workspace = Context.at(str(bare), sandbox.env)
    assert (workspace.directory, workspace.settings.count("search.limit")) == ("mem", 3)


def test_a_subdirectory_and_a_linked_worktree_see_their_own_files(sandbox: Sandbox) -> None:
    """The document set is the worktree's, from any directory in it."""
    sandbox.memory("dec-a")
    sandbox.write("src/a.py", "")
    sandbox.commit()
    sandbox.git("worktree", "add", "--quiet", "../linked")
    linked = Sandbox(sandbox.path.parent / "linked", sandbox.env)
    linked.memory("dec-b")
    for place, ids in ((sandbox.path / "src", ["dec-a"]), (linked.path, ["dec-a", "dec-b"])):
        tree = Context.at(str(place), sandbox.env).tree()
        assert [record.id for record in tree.records] == ids


def test_a_branch_does_not_vouch_for_itself(sandbox: Sandbox) -> None:
    """Where a remote has a default branch, its settings say what is trusted, not the worktree's."""
    sandbox.memory("dec-a")
    first = sandbox.commit()
    sandbox.git("update-ref", "refs/remotes/origin/main", first)
    sandbox.memory("dec-b")
    sandbox.write(".memory/config.toml", '[trust]\nref = "HEAD"\n')
    sandbox.commit()
    ws = sandbox.context()
    tree = ws.tree()
    trust = {path[-8:-3]: origin.trust for path, origin in ws.origins(tree, tree.records).items()}
    assert trust == {"dec-a": "trusted", "dec-b": "committed"}


def test_what_is_private_may_lie_elsewhere(sandbox: Sandbox, tmp_path: Path) -> None:
    """Where the git directory is read-only, the index and the sessions have a directory outside."""
    sandbox.memory("dec-a", body="Sessions are kept in Postgres.\n")
    sandbox.commit()
    storage = tmp_path / "kept" / "here"
    env = {"MEMTOOL_STORAGE": str(storage)}
    os.chmod(sandbox.path / ".git", 0o500)
    try:
        assert sandbox.json("search", "sessions", **env)["total"] == 1
        id_ = sandbox.json("session", "start", **env)["id"]
        assert sandbox.run("session", "add", id_, "hello", "--role", "user", **env).returncode == 0
    finally:
        os.chmod(sandbox.path / ".git", 0o700)
    (own,) = storage.iterdir()
    assert own.name.startswith(f"{sandbox.path.name}-")
    assert not (sandbox.path / ".git/memtool").exists()
    assert sandbox.json("session", "show", id_, **env)["messages"][0]["text"] == "hello"
    assert sandbox.run("session", "show", id_).returncode == 2
    assert (own / "sessions").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MEMTOOL_MANAGER", "maybe"),
        ("MEMTOOL_LOG", "foo"),
        ("MEMTOOL_PERSONAL", "no"),
        ("MEMTOOL_STORAGE", "/dev/null"),
        ("MEMTOOL_STORAGE", "/dev/null/below"),
    ],
)
def test_a_variable_with_another_value_is_refused_and_told_to_hooks(
    sandbox: Sandbox, name: str, value: str
) -> None:
    """A verb names variable and value; a hook answers as without it, and its log says so."""
    sandbox.memory("dec-a", body="Sessions are kept in Postgres.\n")
    sandbox.commit()
    done = sandbox.run("status", **{name: value})
    assert done.returncode == 2
    assert done.stderr.startswith(f"memtool: {name} is {value!r}, ")
    assert f"hint: {name}=" in done.stderr
    event = json.dumps({"cwd": str(sandbox.path), "prompt": "where are sessions kept?"})
    answered = sandbox.run("hook", "claude", "user-prompt-submit", stdin=event, **{name: value})
    assert (answered.returncode, "kept in Postgres" in answered.stdout) == (0, True)
    log = (sandbox.path / ".git/memtool/hook.log").read_text()
    assert f"failed: {name} is {value!r}, " in log


@pytest.mark.parametrize("place", ["relative", ".", "TOP", "TOP/.memory/private"])
def test_private_files_stay_out_of_the_worktree(sandbox: Sandbox, place: str) -> None:
    """A place that could be committed, or that depends on where we are, is refused."""
    storage = place.replace("TOP", str(sandbox.path))
    done = sandbox.run("status", MEMTOOL_STORAGE=storage)
    assert (done.returncode, "MEMTOOL_STORAGE" in done.stderr) == (2, True)
    assert "hint: MEMTOOL_STORAGE=" in done.stderr


def test_nothing_of_the_users_own_is_used_where_that_is_off(sandbox: Sandbox) -> None:
    """Neither their memories nor their settings; --global still works."""
    sandbox.run("remember", "--global", "Never use tabs in any project of mine.")
    sandbox.run("config", "--global", "search.limit", "3")
    off = sandbox.context(MEMTOOL_PERSONAL="off")
    assert (off.global_context, off.settings.count("search.limit")) == (None, 10)
    on = sandbox.context()
    assert on.global_context is not None
    assert on.settings.count("search.limit") == 3
    assert sandbox.json("list", "--global", MEMTOOL_PERSONAL="off")["total"] == 1
    done = sandbox.run("status", MEMTOOL_PERSONAL="no")
    assert (done.returncode, "not one of on, off" in done.stderr) == (2, True)


def test_an_id_is_drawn_for_a_text_on_a_branch_of_a_clone(sandbox: Sandbox, tmp_path: Path):
    """The same text draws the same bytes here, and others on a branch, in a worktree or a clone."""
    del sandbox.env["MEMTOOL_SEED"]
    sandbox.git("commit", "--quiet", "--allow-empty", "--message", "begin")
    places = [sandbox.path, tmp_path / "worktree", tmp_path / "clone"]
    sandbox.git("worktree", "add", "--quiet", "-b", "other", str(places[1]))
    sandbox.git("clone", "--quiet", str(sandbox.path), str(places[2]))

    def draw(place: Path, *claim: str) -> bytes:
        return Context.at(str(place), sandbox.env).random_id_bytes(*claim)

    drawn = [draw(place, "a") for place in places] + [draw(sandbox.path, "b")]
    assert drawn[0] == draw(sandbox.path, "a")
    sandbox.git("checkout", "--quiet", "-b", "third")
    drawn.append(draw(sandbox.path, "a"))
    assert len(set(drawn)) == len(drawn) == 5
