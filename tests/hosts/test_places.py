"""Where memtool is installed: every host, in every place, for the project and for the user."""

from __future__ import annotations

import itertools
import json
import pwd
import shutil
import subprocess
import sys

import pytest
from conftest import Sandbox
from hosts.test_install import files

from memtool.agents import AGENTS, START
from memtool.commands.doctor import doctor
from memtool.commands.hook import answer_event
from memtool.commands.install import install, uninstall
from memtool.errors import MemtoolError
from memtool.hosts.contracts import (
    CONTRACTS,
    DUPLICATE_WINDOW_S,
    RESUME,
    Contract,
    is_duplicate,
    read,
)

PLACES = {"top": ".", "subdirectory": "packages/web", "worktree": "../linked"}
OWN = {
    ".claude/settings.json": '{"model":"opus",\r\n "hooks": {} }',
    ".codex/config.toml": 'model = "x" # mine',
    ".gemini/settings.json": '{\n\t"theme": "dark"\n}\n',
    ".cursor/hooks.json": '{"version": 1, "hooks": {"stop": [{"command": "notify-send done"}]}}\n',
    "opencode.json": '{ "model": "x/y" }\n',
}
"""What was there before, in forms that no program of ours would write."""
ANSWERED = [row for row in CONTRACTS if row.answer]


@pytest.fixture
def monorepo(sandbox: Sandbox) -> Sandbox:
    """A repository with a package below, a linked worktree, and settings of others."""
    for path, text in OWN.items():
        sandbox.write(path, text)
        inside = "opencode/opencode.json" if path == "opencode.json" else path
        sandbox.write(f"../home/{'.config/' if path == 'opencode.json' else ''}{inside}", text)
    sandbox.write("packages/web/a.py", "x = 1\n")
    sandbox.memory("dec-pinned", "Never force-push.\n", status="pinned")
    sandbox.commit()
    sandbox.git("worktree", "add", "--quiet", "../linked", "-b", "side")
    return sandbox


def at(monorepo: Sandbox, place: str) -> Sandbox:
    return Sandbox(monorepo.path / PLACES[place], monorepo.env)


@pytest.mark.parametrize("scope", ["project", "user"])
@pytest.mark.parametrize("place", PLACES)
def test_hosts_side_by_side_leave_each_other_alone(
    monorepo: Sandbox, place: str, scope: str
) -> None:
    """Each adds its own files and takes only those away, in whatever order; the bytes come back."""
    here, user = at(monorepo, place), scope == "user"
    root = monorepo.path.parent
    states = [files(root)]
    for host in AGENTS:
        install(here.context(), host, user=user, mcp=True, yes=True)
        states.append(files(root))
        assert install(here.context(), host, user=user, mcp=True, yes=True).steps == ()
    changes = [
        {path for path in after if after[path] != before.get(path)}
        for before, after in itertools.pairwise(states)
    ]
    assert all(changes)
    assert sum(map(len, changes)) == len(set.union(*changes))
    top = "home" if user else {"worktree": "linked"}.get(place, "project")
    assert all(path.startswith((f"./{top}/", f"{top}/")) for path in set.union(*changes))
    first = AGENTS[0]
    uninstall(here.context(), first, user=user, yes=True)
    remaining = files(root)
    assert {path: remaining.get(path) for path in set.union(*changes[1:])} == {
        path: states[-1][path] for path in set.union(*changes[1:])
    }
    for host in reversed(AGENTS[1:]):
        uninstall(here.context(), host, user=user, yes=True)
    assert files(root) == states[0]


@pytest.mark.parametrize("place", PLACES)
def test_the_user_s_own_and_the_project_s_come_and_go_apart(monorepo: Sandbox, place: str) -> None:
    """Who has it for one project may have it for all; either can be taken out, and updated."""
    here, root = at(monorepo, place), monorepo.path.parent
    before = files(root)
    for host in AGENTS:
        install(here.context(), host, yes=True)
    shared = files(root)
    for host in AGENTS:
        assert install(here.context(), host, user=True, yes=True).steps
        context = here.context()
        assert install(context, host, yes=True).steps == ()
        assert not any("has it already" in note for note in context.notes)
    for host in AGENTS:
        uninstall(here.context(), host, user=True, yes=True)
    assert files(root) == shared
    for host in AGENTS:
        uninstall(here.context(), host, yes=True)
    assert files(root) == before


@pytest.mark.parametrize("host", AGENTS)
def test_without_a_home_the_project_can_still_be_set_up(
    monorepo: Sandbox, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """In a container there may be none, or none that can be written; `--user` says so."""

    def unknown(_uid: int) -> pwd.struct_passwd:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    before = files(monorepo.path.parent)
    inherited = {k: v for k, v in monorepo.env.items() if not k.startswith("XDG_")}
    homes = (("", "there is no home"), ("~", "there is no home"), ("/dev/null", "Not a directory"))
    for (home, words), place in zip(homes, PLACES, strict=True):
        there = Sandbox(at(monorepo, place).path, {**inherited, "HOME": home})
        install(there.context(), host, mcp=True, yes=True)
        assert files(monorepo.path.parent) != before
        assert answer_event(
            there.context(), "claude", "session-start", read(b"{}"), is_dry=True
        ).items
        uninstall(there.context(), host, yes=True)
        with pytest.raises(MemtoolError, match=words) as error:
            install(there.context(), host, user=True, yes=True)
        assert error.value.hint
        assert files(monorepo.path.parent) == before


def test_git_has_one_set_of_hooks_for_all_worktrees(monorepo: Sandbox) -> None:
    """Installed in one and removed in another, from a subdirectory; old hooks are restored."""
    own = monorepo.path / ".git" / "hooks" / "pre-commit"
    own.parent.mkdir(exist_ok=True)
    own.write_text("#!/bin/sh\nexit 0\n")
    before = files(monorepo.path / ".git" / "hooks"), (monorepo.path / ".git/config").read_bytes()
    install(at(monorepo, "worktree").context(), "git", yes=True)
    steps = install(at(monorepo, "subdirectory").context(), "git", yes=True).steps
    assert [step for step in steps if ".gitattributes" not in step] == []
    uninstall(at(monorepo, "subdirectory").context(), "git", yes=True)
    after = files(monorepo.path / ".git" / "hooks"), (monorepo.path / ".git/config").read_bytes()
    assert after == before


def test_a_note_names_the_hosts_that_look_no_higher(monorepo: Sandbox) -> None:
    """They read no settings above the directory in which they are started."""
    for host, looks_up in (("claude", False), ("gemini", False), ("codex", True)):
        for place in ("subdirectory", "top"):
            context = at(monorepo, place).context()
            install(context, host, dry_run=True)
            is_noted = any(f"memtool install {host} --user" in note for note in context.notes)
            assert is_noted == (not looks_up and place == "subdirectory"), (host, place)


def test_a_note_says_that_git_ignores_what_was_written(sandbox: Sandbox) -> None:
    """A project that ignores the folder of a host shares none of it."""
    sandbox.write(".gitignore", ".claude/\n")
    for host, is_noted in (("claude", True), ("codex", False)):
        context = sandbox.context()
        install(context, host, yes=True)
        assert any("git ignores .claude/" in note for note in context.notes) == is_noted


def test_doctor_sees_a_host_that_looks_no_higher(
    monorepo: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is installed and works, but not for a session that starts here; a home is not needed."""
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    install(monorepo.context(), "claude", yes=True)
    signs = {
        place: [sign.name for sign in doctor(at(monorepo, place).context(HOME=""), "claude").signs]
        for place in ("top", "subdirectory")
    }
    assert ["subdirectory" in names for names in signs.values()] == [False, True]
    assert all("installed" in names for names in signs.values())
    install(monorepo.context(), "claude", user=True, yes=True)
    there = doctor(at(monorepo, "subdirectory").context(), "claude")
    assert [sign.name for sign in there.signs].count("installed") == 2
    assert "subdirectory" not in [sign.name for sign in there.signs]


@pytest.mark.parametrize("row", ANSWERED, ids=lambda row: f"{row.host}-{row.event}")
def test_an_event_handed_over_twice_is_answered_once(monorepo: Sandbox, row: Contract) -> None:
    """By the hooks of project and user; another event is another one, and so is a later one."""
    context, cache = monorepo.context(), monorepo.context().repository.cache_dir
    event = {"session_id": "s1", "prompt": "go on", "cwd": str(monorepo.path), "source": RESUME}
    hook_event = read(json.dumps(event).encode())
    answer_event(context, row.host, row.event, hook_event, is_dry=True)  # notes nothing
    if row.meaning == START:
        assert answer_event(context, row.host, row.event, hook_event, is_dry=False).items
        assert not answer_event(context, row.host, row.event, hook_event, is_dry=False).items
    else:
        assert not is_duplicate(cache, row, hook_event, 1_000)
    other = read(json.dumps(event | {"prompt": "stop"}).encode())
    assert not is_duplicate(cache, row, other, 2_000)
    assert is_duplicate(cache, row, other, 2_000 + DUPLICATE_WINDOW_S - 1)
    assert not is_duplicate(cache, row, other, 2_000 + DUPLICATE_WINDOW_S)


def test_of_two_processes_at_once_one_answers(monorepo: Sandbox) -> None:
    """However close together a host starts them."""
    event = json.dumps({"session_id": "s1", "cwd": str(monorepo.path), "source": "startup"})
    call = [sys.executable, "-m", "memtool", "hook", "claude", "session-start"]
    running = [
        subprocess.Popen(
            call,
            cwd="/",
            env=monorepo.env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _number in range(3)
    ]
    for process in running:
        assert process.stdin is not None
        process.stdin.write(event)
        process.stdin.close()
        process.stdin = None
    answers = [process.communicate()[0] for process in running]
    assert sum("Never force-push." in text for text in answers) == 1
    assert sum(text == "" for text in answers) == 2


def test_cursor_is_answered_by_its_own_hooks(monorepo: Sandbox) -> None:
    """It runs those of Claude Code as well, which then say and capture nothing."""
    event = {"conversation_id": "c1", "cursor_version": "3.1", "workspace_roots": ["/x"]}
    hook_event = read(json.dumps(event).encode())
    assert answer_event(
        monorepo.context(), "cursor", "session-start", hook_event, is_dry=True
    ).items
    for row in CONTRACTS:
        if row.host == "claude":
            done = answer_event(monorepo.context(), "claude", row.event, hook_event, is_dry=False)
            assert (done.answer, done.items) == ("", ())


def test_a_repository_without_a_memory_is_left_alone(sandbox: Sandbox) -> None:
    """Hooks of the user run in every repository."""
    shutil.rmtree(sandbox.path / ".memory")
    before = files(sandbox.path), sorted(path.name for path in (sandbox.path / ".git").iterdir())
    hook_event = read(b'{"session_id": "s1"}')
    with pytest.raises(MemtoolError, match=r"no \.memory"):
        answer_event(sandbox.context(), "claude", "session-start", hook_event, is_dry=False)
    after = files(sandbox.path), sorted(path.name for path in (sandbox.path / ".git").iterdir())
    assert after == before
