"""Installation: every file of a host gets back its bytes, all steps are done or none."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import PIPED, Sandbox, read_terminal

from memtool.agents import AGENTS
from memtool.authoring.tree import with_attributes
from memtool.commands.install import install, render, uninstall
from memtool.errors import MemtoolError
from memtool.hosts.contracts import CONTRACTS
from memtool.hosts.edits import guard_command
from memtool.hosts.install import FileStep, apply_steps

HOOK_FILES = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "copilot": ".github/hooks/memtool.json",
    "cursor": ".cursor/hooks.json",
    "gemini": ".gemini/settings.json",
    "qwen": ".qwen/settings.json",
}
FLAT = ("copilot", "cursor")
"""Hosts without groups of handlers."""
SERVER_FILES = {
    "claude": ".mcp.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": "opencode.json",
    "copilot": ".github/mcp.json",
    "cursor": ".cursor/mcp.json",
    "qwen": ".qwen/settings.json",
}
THEIRS = {"type": "command", "command": "notify-send done"}


def files(root: Path) -> dict[str, bytes]:
    """Every file below a directory but those of git, by its path; directories end in a slash."""
    contents: dict[str, bytes] = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        inside = os.path.relpath(folder, root)
        contents |= {os.path.join(inside, name) + "/": b"" for name in folders}
        contents |= {os.path.join(inside, n): (Path(folder) / n).read_bytes() for n in names}
    return contents


def handlers(path: Path, *, is_flat: bool) -> dict[str, list[dict[str, object]]]:
    """The handlers of each event of a file of hooks, in order."""
    events = json.loads(path.read_text())["hooks"]
    if is_flat:
        return dict(events)
    return {
        name: [handler for g in groups for handler in g["hooks"]] for name, groups in events.items()
    }


@pytest.mark.parametrize("host", AGENTS)
@pytest.mark.parametrize("user", [False, True])
def test_uninstalling_leaves_no_trace(sandbox: Sandbox, host: str, *, user: bool) -> None:
    """Where nothing was before, nothing is left, not even an empty directory."""
    before = files(sandbox.path.parent)
    done = install(sandbox.context(), host, user=user, mcp=True)
    assert len(done.steps) >= (1 if (host, user) == ("cline", True) else 11)
    during = files(sandbox.path.parent)
    assert set(before) < set(during)
    assert install(sandbox.context(), host, user=user, mcp=True).steps == ()
    assert files(sandbox.path.parent) == during
    assert len(uninstall(sandbox.context(), host, user=user, yes=True).steps) == len(done.steps)
    assert files(sandbox.path.parent) == before
    assert uninstall(sandbox.context(), host, user=user).steps == ()


@pytest.mark.parametrize("host", HOOK_FILES)
def test_every_event_of_the_contracts_is_registered(sandbox: Sandbox, host: str) -> None:
    """The host calls memtool for each event, once."""
    install(sandbox.context(), host)
    registered = handlers(sandbox.path / HOOK_FILES[host], is_flat=host in FLAT)
    expected: dict[str, list[str]] = {}
    for row in CONTRACTS:
        if row.host == host:
            command = guard_command("memtool", ("hook", host, row.event))
            expected.setdefault(row.name, []).append(command)
    commands = {
        name: [handler.get("bash") or handler["command"] for handler in many]
        for name, many in registered.items()
    }
    assert commands == expected


@pytest.mark.parametrize("host", HOOK_FILES)
@pytest.mark.parametrize(
    "layout",
    [
        "{}",
        "{\n}\n",
        '{"theme": "dark"}',
        '{\n\t"b": 1,\n\t"a": [1,2]\n}\n',
        '\ufeff{\r\n    "hooks": {},\r\n    "x": "\u00fc"\r\n}\r\n',
    ],
)
def test_settings_get_back_their_bytes(sandbox: Sandbox, host: str, layout: str) -> None:
    """Order, indentation, line ends and a byte-order mark are as before."""
    path = sandbox.write(HOOK_FILES[host], layout)
    before = files(sandbox.path)
    install(sandbox.context(), host, mcp=True, yes=True)
    settings = json.loads(path.read_text(encoding="utf-8-sig"))
    assert {k: v for k, v in settings.items() if k not in ("hooks", "mcpServers", "version")} == {
        k: v for k, v in json.loads(layout.removeprefix("\ufeff")).items() if k != "hooks"
    }
    uninstall(sandbox.context(), host, yes=True)
    assert files(sandbox.path) == before


@pytest.mark.parametrize("host", HOOK_FILES)
def test_hooks_of_others_stay_in_place_and_order(sandbox: Sandbox, host: str) -> None:
    """Ours comes after them, and what they add later stays when ours goes."""
    event = next(row.name for row in CONTRACTS if row.host == host)
    is_flat = host in FLAT
    entry = THEIRS if is_flat else {"matcher": "startup", "hooks": [THEIRS]}
    text = json.dumps({"hooks": {event: [entry, entry]}}, indent=4)
    path = sandbox.write(HOOK_FILES[host], text)
    install(sandbox.context(), host, yes=True)
    hooks = handlers(path, is_flat=is_flat)[event]
    assert hooks[:2] == [THEIRS, THEIRS]
    assert len(hooks) == 3
    later = json.loads(path.read_text())
    later["hooks"][event].append(entry)
    path.write_text(json.dumps(later, indent=4))
    uninstall(sandbox.context(), host, yes=True)
    assert json.loads(path.read_text())["hooks"] == {event: [entry, entry, entry]}


def test_comments_stay_where_the_host_takes_them(sandbox: Sandbox) -> None:
    """Gemini and OpenCode read comments; a comment keeps its line."""
    text = '{\n  // which colours\n  "theme": "dark" // mine\n}\n'
    path = sandbox.write(".gemini/settings.json", text)
    install(sandbox.context(), "gemini", yes=True)
    assert path.read_text().startswith('{\n  // which colours\n  "theme": "dark", // mine\n')
    uninstall(sandbox.context(), "gemini", yes=True)
    assert path.read_text() == text
    with_comma = '{\n  "model": "x/y", // mine\n}\n'
    path = sandbox.write("opencode.jsonc", with_comma)
    install(sandbox.context(), "opencode", mcp=True, yes=True)
    assert '"mcp"' in path.read_text()
    assert not (sandbox.path / "opencode.json").exists()
    uninstall(sandbox.context(), "opencode", yes=True)
    assert path.read_text() == with_comma


@pytest.mark.parametrize(
    "text", ["", 'model = "x"', '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "o"\n']
)
def test_toml_settings_get_back_their_bytes(sandbox: Sandbox, text: str) -> None:
    """Comments and order stay; a table that was edited since is found by its name."""
    path = sandbox.write(".codex/config.toml", text)
    install(sandbox.context(), "codex", mcp=True, yes=True)
    servers = tomllib.loads(path.read_text())["mcp_servers"]
    assert servers["memtool"] == {"command": "memtool", "args": ["mcp"]}
    edited = path.read_text().replace('args = ["mcp"]', 'args = ["mcp"] # yes\nenv = {}')
    uninstall(sandbox.context(), "codex", yes=True)
    assert path.read_text() == text
    path.write_text(edited)
    uninstall(sandbox.context(), "codex", yes=True)
    remaining = tomllib.loads(path.read_text()).get("mcp_servers", {})
    assert set(remaining) == {"other"} & set(servers)


@pytest.mark.parametrize("host", SERVER_FILES)
def test_a_server_is_registered_only_if_asked_for(sandbox: Sandbox, host: str) -> None:
    """Without --mcp there is none; one of that name that is there stays as it is."""
    install(sandbox.context(), host)
    path = sandbox.path / SERVER_FILES[host]
    assert not path.exists() or b"mcp" not in path.read_bytes()
    install(sandbox.context(), host, mcp=True, yes=True)
    data = path.read_bytes()
    assert b"mcp" in data
    own = data.replace(b'"memtool"', b'"/opt/other"', 1) if host == "codex" else data
    path.write_bytes(own)
    assert install(sandbox.context(), host, mcp=True, yes=True).steps == ()


@pytest.mark.parametrize("host", SERVER_FILES)
def test_a_server_that_is_gone_is_mended(sandbox: Sandbox, host: str) -> None:
    """Only its program: what a user added to the entry stays. It needs no --mcp then."""
    install(sandbox.context(), host, mcp=True, yes=True)
    path = sandbox.path / SERVER_FILES[host]
    ours = path.read_bytes()
    mine = re.sub(rb'"mcp"(\s*\])', rb'"mcp", "--read-only"\1', ours)
    gone = re.sub(rb'"memtool"(,|\n)', rb'"/gone/bin/memtool"\1', mine, count=1)
    path.write_bytes(gone)
    assert b"/gone/" in gone
    assert install(sandbox.context(), host, yes=True).steps == (f"change {SERVER_FILES[host]}",)
    assert b"/gone/" not in path.read_bytes()
    assert b'"--read-only"' in path.read_bytes()
    uninstall(sandbox.context(), host, yes=True)
    assert not path.exists() or b"memtool" not in path.read_bytes()


@pytest.mark.parametrize("command", ["[]", "[7]", "{}", "7", "null"])
def test_an_odd_server_is_somebody_else_s(sandbox: Sandbox, command: str) -> None:
    """An entry without a command is neither started, repaired nor removed."""
    text = f'{{"mcpServers": {{"memtool": {{"command": {command}}}}}}}\n'
    sandbox.write(".mcp.json", text)
    install(sandbox.context(), "claude", mcp=True, yes=True)
    uninstall(sandbox.context(), "claude", yes=True)
    assert (sandbox.path / ".mcp.json").read_text() == text


def test_all_without_a_host_says_so(sandbox: Sandbox) -> None:
    """Only git is left then, and what to do instead is told."""
    ws = sandbox.context(PATH="/usr/bin:/bin")
    install(ws, all=True)
    assert any(note.startswith("no agent host is in use here") for note in ws.notes)


@pytest.mark.parametrize("host", HOOK_FILES)
def test_an_older_hook_is_brought_up_to_date_in_its_place(sandbox: Sandbox, host: str) -> None:
    """It is known by what it runs, wherever memtool is, and is not there twice."""
    install(sandbox.context(), host)
    path = sandbox.path / HOOK_FILES[host]
    current = path.read_bytes()
    rows = [group[0] for group in handlers(path, is_flat=host in FLAT).values()]
    commands = [row.get("bash") or row["command"] for row in rows]
    assert isinstance(commands[0], str)
    call = commands[0].partition("; ")[2].removesuffix(" || exit 0")
    older = current.replace(json.dumps(commands[0])[1:-1].encode(), call.encode())
    path.write_bytes(older.replace(b"memtool hook", b"/old/bin/memtool hook", 1))
    done = install(sandbox.context(), host, yes=True)
    assert done.steps == (f"change {HOOK_FILES[host]}",)
    assert path.read_bytes() == current


@pytest.mark.parametrize(
    ("host", "older", "is_ours"),
    [
        ("claude", "Edit|Write|MultiEdit|NotebookEdit", True),
        ("claude", "Edit|MyOwnTool", False),
        ("codex", "apply_patch|Edit|Write", True),
        ("gemini", "write_file|replace", True),
    ],
)
def test_a_hook_is_run_for_the_tools_of_this_version(
    sandbox: Sandbox, host: str, older: str, *, is_ours: bool
) -> None:
    """An older version had fewer tools. A matcher with others is the user's, and stays."""
    install(sandbox.context(), host)
    path = sandbox.path / HOOK_FILES[host]
    settings = json.loads(path.read_text())
    name = "AfterTool" if host == "gemini" else "PostToolUse"
    (group,) = settings["hooks"][name]
    current, group["matcher"] = group["matcher"], older
    path.write_text(json.dumps(settings, indent=2) + "\n")
    assert bool(install(sandbox.context(), host, yes=True).steps) == is_ours
    (group,) = json.loads(path.read_text())["hooks"][name]
    assert group["matcher"] == (current if is_ours else older)
    assert not install(sandbox.context(), host, yes=True).steps


def test_an_unchanged_hook_is_not_rewritten(sandbox: Sandbox) -> None:
    """Codex asks for trust again when a hook changes: the bytes and the file stay the same."""
    install(sandbox.context(), "codex")
    path = sandbox.path / ".codex/hooks.json"
    before = path.stat()
    path.with_name("other.json").write_text("{}")
    install(sandbox.context(), "codex", yes=True)
    after = path.stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


def test_trust_is_spoken_of_when_a_hook_changed(sandbox: Sandbox) -> None:
    """And not when nothing did."""
    ws = sandbox.context()
    install(ws, "codex")
    assert any("/hooks" in note for note in ws.notes)
    ws = sandbox.context()
    install(ws, "codex")
    assert not any("/hooks" in note for note in ws.notes)


@pytest.mark.parametrize("host", AGENTS)
def test_what_another_level_has_is_not_written_twice(sandbox: Sandbox, host: str) -> None:
    """A hook in two levels would run twice; the note says which level has it."""
    install(sandbox.context(), host, user=True, mcp=True)
    before = files(sandbox.path)
    ws = sandbox.context()
    done = install(ws, host, mcp=True)
    assert [step for step in done.steps if "rules/" not in step] == []
    assert any("has it already: " in note for note in ws.notes)
    assert {k for k in files(sandbox.path) if "rules" not in k and k != "./.cursor/"} == set(before)


def test_the_local_level_of_claude_counts_too(sandbox: Sandbox) -> None:
    """One user's own settings for a project are looked at, never written."""
    local = {
        "hooks": {
            "Stop": [
                {
                    "hooks": [
                        {
                            "type": "command",
                            "command": "/x/memtool",
                            "args": ["hook", "claude", "stop"],
                        }
                    ]
                }
            ]
        }
    }
    path = sandbox.write(".claude/settings.local.json", json.dumps(local))
    install(sandbox.context(), "claude")
    assert "Stop" not in handlers(sandbox.path / ".claude/settings.json", is_flat=False)
    assert json.loads(path.read_text()) == local


def test_hooks_in_the_toml_of_codex_count_too(sandbox: Sandbox) -> None:
    """Codex takes hooks from both of its files, and would run both."""
    sandbox.write(
        ".codex/config.toml",
        '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\n'
        'command = "memtool hook codex stop"\n',
    )
    install(sandbox.context(), "codex")
    assert "Stop" not in handlers(sandbox.path / ".codex/hooks.json", is_flat=False)


def test_a_command_that_somebody_else_wrote_stays(sandbox: Sandbox) -> None:
    """It has the name of ours, not our mark; ours has it, until the user takes the mark out."""
    path = sandbox.write(".claude/commands/remember.md", "Mine.\n")
    ws = sandbox.context()
    install(ws, "claude")
    assert path.read_text() == "Mine.\n"
    assert any(".claude/commands/remember.md is not memtool's" in note for note in ws.notes)
    ours = sandbox.path / ".claude/commands/forget.md"
    text = ours.read_text()
    ours.write_text(text.replace("installed by memtool", "mine"))
    uninstall(sandbox.context(), "claude", yes=True)
    assert sorted(p.name for p in path.parent.iterdir()) == ["forget.md", "remember.md"]


def test_every_slash_command_has_its_verb(sandbox: Sandbox) -> None:
    """Each names a verb that memtool has, and is described in one line."""
    from memtool.commands import BY_NAME
    from memtool.hosts.edits import COMMANDS, load_commands, load_skill

    assert set(COMMANDS.values()) <= set(BY_NAME)
    for prompt in [*load_commands(), load_skill()]:
        assert prompt.description
        assert "\n" not in prompt.description
    for row in load_skill().body.splitlines() + [
        r for p in load_commands() for r in p.body.split("`")
    ]:
        for part in row.split("`"):
            words = part.split()
            if words[:1] == ["memtool"] and len(words) > 1 and words[1].islower():
                assert words[1] in BY_NAME, part


def test_the_list_command_knows_every_category(sandbox: Sandbox) -> None:
    """`/memory-list warning` lists warnings, so its text has to name what is a category."""
    from memtool.hosts.edits import load_commands
    from memtool.memory.fields import CATEGORIES

    (listed,) = (prompt.body for prompt in load_commands() if prompt.name == "memory-list")
    assert [row.name for row in CATEGORIES if row.name not in listed] == []


def test_the_forms_of_the_hosts_can_be_read(sandbox: Sandbox) -> None:
    """YAML front matter, TOML, and a placeholder that the host knows."""
    import yaml

    for host in AGENTS:
        install(sandbox.context(), host)
    for path in sorted(sandbox.path.rglob("*.md")) + sorted(sandbox.path.rglob("*.mdc")):
        text = path.read_text()
        if ".cursor/commands" in str(path) or ".clinerules/workflows" in str(path):
            assert "$ARGUMENTS" not in text
            continue
        head = yaml.safe_load(text.split("---\n")[1])
        assert head["description"]
        assert path.name != "SKILL.md" or head["name"] == path.parent.name
    for path in sorted(sandbox.path.rglob("*.toml")):
        table = tomllib.loads(path.read_text())
        assert set(table) == {"description", "prompt"}
        assert "$ARGUMENTS" not in table["prompt"]
    assert "{{args}}" in (sandbox.path / ".gemini/commands/remember.toml").read_text()


BROKEN = [
    ("claude", ".claude/settings.json", '{\n  "a": 1,\n}', "settings.json:3:1 is not JSON"),
    ("claude", ".claude/settings.json", "", "settings.json:1:1 is not JSON"),
    ("claude", ".claude/settings.json", '{"hooks": []}', "settings.json:1:11: hooks is not"),
    ("claude", ".claude/settings.json", '{"hooks": {"Stop": {}}}', "Stop is not a list"),
    ("claude", ".claude/settings.json", '{"a": 1 // no\n}', "settings.json:1:9 is not JSON"),
    ("codex", ".codex/hooks.json", "[1]", "hooks.json:1:1: it is not an object"),
    ("codex", ".codex/hooks.json", '{"hooks": ', "hooks.json:1:11 is not JSON"),
    ("codex", ".codex/config.toml", "a = [", "config.toml is not TOML"),
    ("codex", ".codex/config.toml", "mcp_servers = 1\n", "mcp_servers is not a table"),
    ("codex", ".codex/config.toml", "mcp_servers = {}\n", "config.toml is not TOML"),
    ("gemini", ".gemini/settings.json", '{"a": 1 /* b }', "settings.json:1:9 is not JSON"),
    ("cursor", ".cursor/hooks.json", '{"hooks": {"stop": 1}}', "stop is not a list"),
    ("opencode", "opencode.json", '{"mcp": "no"}', "mcp is not an object"),
]


@pytest.mark.parametrize(("host", "path", "text", "message"), BROKEN)
def test_a_broken_file_is_refused_and_nothing_is_written(
    sandbox: Sandbox, host: str, path: str, text: str, message: str
) -> None:
    """One sentence with line and column, whatever else could have been written."""
    sandbox.write(path, text)
    before = files(sandbox.path)
    done = sandbox.run("install", host, "--mcp", "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert files(sandbox.path) == before


def test_bytes_that_are_no_text_are_refused(sandbox: Sandbox) -> None:
    """A file in another encoding is told, not mangled."""
    sandbox.write(".claude/settings.json", b'{"a": "\xe9"}')
    done = sandbox.run("install", "claude", "--yes")
    assert (done.returncode, "is not UTF-8 text at byte 7" in done.stderr) == (2, True)


def test_what_is_no_file_is_refused(sandbox: Sandbox) -> None:
    """A directory, a pipe, a loop of links, a file in place of a directory."""
    place = sandbox.path / ".claude" / "settings.json"
    place.mkdir(parents=True)
    done = sandbox.run("install", "claude", "--yes")
    assert (done.returncode, "cannot be read: it is no regular file" in done.stderr) == (2, True)
    place.rmdir()
    os.mkfifo(place)
    done = sandbox.run("install", "claude", "--yes")
    assert (done.returncode, "cannot be read: it is no regular file" in done.stderr) == (2, True)
    place.unlink()
    place.symlink_to("settings.json")
    done = sandbox.run("install", "claude", "--yes")
    assert (done.returncode, "cannot be read" in done.stderr) == (2, True)
    place.unlink()
    place.parent.rmdir()
    sandbox.write(".claude", "a file")
    done = sandbox.run("install", "claude", "--yes")
    assert (done.returncode, "cannot change " in done.stderr) == (2, True)
    assert files(sandbox.path).keys() == {"./.memory/", "./.claude"}


def test_a_link_out_of_the_repository_is_refused(sandbox: Sandbox) -> None:
    """A repository must not make memtool write elsewhere; the user's own links are followed."""
    outside = sandbox.path.parent / "outside"
    outside.mkdir()
    (sandbox.path / ".claude").symlink_to(outside)
    done = sandbox.run("install", "claude", "--yes")
    assert (done.returncode, "a place outside the repository" in done.stderr) == (2, True)
    assert list(outside.iterdir()) == []
    home = sandbox.path.parent / "home"
    (outside / "settings.json").write_text("{}")
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").symlink_to(outside / "settings.json")
    (sandbox.path / ".claude").unlink()
    install(sandbox.context(), "claude", user=True, yes=True)
    assert (home / ".claude" / "settings.json").is_symlink()
    assert "session-start" in (outside / "settings.json").read_text()
    uninstall(sandbox.context(), "claude", user=True, yes=True)
    assert (outside / "settings.json").read_text() == "{}"


def test_files_of_others_need_a_yes(sandbox: Sandbox) -> None:
    """Without a terminal nothing of theirs changes unasked; a dry run shows what would."""
    path = sandbox.write(".claude/settings.json", '{\n  "theme": "dark"\n}\n')
    done = sandbox.run("install", "claude")
    assert (done.returncode, "to make it: --yes" in done.stderr) == (2, True)
    assert files(sandbox.path).keys() == {"./.memory/", "./.claude/", ".claude/settings.json"}
    shown = sandbox.run("install", "claude", "--dry-run")
    assert shown.returncode == 0
    assert '-  "theme": "dark"\n+  "theme": "dark",\n' in shown.stdout
    assert path.read_text() == '{\n  "theme": "dark"\n}\n'
    assert sandbox.run("install", "claude", "--yes").returncode == 0


def test_somebody_at_a_terminal_is_asked(sandbox: Sandbox) -> None:
    """The diff is shown; anything but yes changes nothing."""
    import pty

    sandbox.write(
        ".claude/settings.json", '{\n  "theme": "\x1b[31m"\n}\n'.replace("\x1b", "\\u001b")
    )
    for answer, expected in ((b"\n", False), (b"y\n", True)):
        ours, theirs = pty.openpty()
        os.write(ours, answer)
        done = subprocess.run(
            [sys.executable, "-m", "memtool", "install", "claude"],
            cwd=sandbox.path,
            env=sandbox.env,
            stdin=theirs,
            stderr=theirs,
            stdout=subprocess.PIPE,
            check=False,
        )
        os.close(theirs)
        shown = read_terminal(ours).replace("\r\n", "")
        os.close(ours)
        assert "do this? [y/N]" in shown
        assert "hook claude session-start" in shown
        assert (done.returncode == 0) == expected
        assert (sandbox.path / ".claude/commands").exists() == expected


@pytest.mark.slow
def test_two_installs_at_once_are_one(sandbox: Sandbox) -> None:
    """Whoever comes second finds it done; nothing is there twice or torn."""
    sandbox.write(".gemini/settings.json", '{\n  "theme": "dark"\n}\n')
    words = [sys.executable, "-m", "memtool", "install", "gemini", "--yes"]
    running = [
        subprocess.Popen(
            words, cwd=sandbox.path, env=sandbox.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _number in range(6)
    ]
    errors = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0] * 6, errors
    registered = handlers(sandbox.path / ".gemini/settings.json", is_flat=False)
    assert {name: len(many) for name, many in registered.items()} == dict.fromkeys(registered, 1)
    assert not [name for name in files(sandbox.path) if "tmp" in name]


def test_all_means_every_host_in_use(sandbox: Sandbox) -> None:
    """A directory in the project or at home, or a program on the path; git always."""
    (sandbox.path / ".gemini").mkdir()
    sandbox.write(".gitattributes", with_attributes(b"", ".memory"))
    sandbox.commit()
    (sandbox.path.parent / "home" / ".codex").mkdir()
    tools = sandbox.path.parent / "tools"
    tools.mkdir()
    (tools / "opencode").write_text("#!/bin/sh\n")
    (tools / "opencode").chmod(0o755)
    env = {"PATH": f"{tools}:/usr/bin:/bin"}
    done = install(sandbox.context(**env), all=True, dry_run=True)
    assert done.host == "codex, gemini, opencode, git"
    assert install(sandbox.context(**env), all=True).steps == done.steps
    assert not (sandbox.path / ".claude").exists()
    assert len(uninstall(sandbox.context(PATH="/usr/bin:/bin"), all=True, yes=True).steps) == len(
        done.steps
    )
    assert sandbox.git("status", "--short") == ""


def test_hooks_that_all_repositories_share_do_not_stop_the_others(sandbox: Sandbox) -> None:
    """Among all hosts git is left out and told; named alone it is an error."""
    (sandbox.path / ".claude").mkdir()
    settings = sandbox.path.parent / "gitconfig"
    settings.write_text(f"[core]\n\thooksPath = {sandbox.path.parent}/shared\n")
    ws = sandbox.context(GIT_CONFIG_GLOBAL=str(settings), PATH="/usr/bin:/bin")
    assert install(ws, all=True).host == "claude, git"
    assert any("git is left out: the hooks are in" in note for note in ws.notes)
    assert (sandbox.path / ".claude/settings.json").exists()
    with pytest.raises(MemtoolError, match="for all repositories"):
        install(ws, "git")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "needs a host, or --all"),
        (("claude", "--all"), "exclude each other"),
        (("vim",), ", ".join([*AGENTS, "agents-md", "git"])),
        (("git", "--user"), "belongs to one repository"),
    ],
)
def test_a_wrong_call_is_one_sentence(
    sandbox: Sandbox, words: tuple[str, ...], message: str
) -> None:
    """With the next command as a hint."""
    done = sandbox.run("install", *words)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert "hint: " in done.stderr


def test_a_bare_repository_has_nothing_to_install_into(sandbox: Sandbox) -> None:
    """It is told, also for git."""
    sandbox.git("config", "core.bare", "true")
    done = sandbox.run("install", "claude")
    assert (done.returncode, "bare" in done.stderr) == (2, True)


def test_the_places_of_the_hosts_can_be_moved(sandbox: Sandbox) -> None:
    """Each host has a variable for its own directory of all projects."""
    moved = sandbox.path.parent / "moved"
    env = {
        "CLAUDE_CONFIG_DIR": str(moved / "cl"),
        "CODEX_HOME": str(moved / "cx"),
        "GEMINI_CLI_HOME": str(moved / "gm"),
        "XDG_CONFIG_HOME": str(moved / "xdg"),
    }
    before = files(sandbox.path.parent / "home")
    for host in ("claude", "codex", "gemini", "opencode"):
        install(sandbox.context(**env), host, user=True, mcp=True)
    assert files(sandbox.path.parent / "home") == before
    written = files(moved)
    assert {
        "cl/settings.json",
        "cl/.claude.json",
        "cx/hooks.json",
        "cx/config.toml",
        "gm/.gemini/settings.json",
        "xdg/opencode/plugins/memtool.js",
        "xdg/opencode/opencode.json",
    } <= set(written)


def test_for_all_projects_no_repository_is_needed(sandbox: Sandbox) -> None:
    """Nor the word --global, whose repository has no agent of its own."""
    home = sandbox.path.parent / "home"
    for words in (("--global",), ()):
        done = sandbox.run(*words, "install", "claude", "--user", cwd=home)
        assert done.returncode == 0, done.stderr
        assert "memtool init" not in done.stderr
        assert (home / ".claude/settings.json").exists()
        done = sandbox.run(*words, "uninstall", "claude", "--user", cwd=home)
        assert done.returncode == 0, done.stderr
        assert not (home / ".claude").exists()
    done = sandbox.run("install", "claude", cwd=home)
    assert (done.returncode, "is not in a git repository" in done.stderr) == (2, True)
    done = sandbox.run("--global", "install", "claude", cwd=home)
    assert (done.returncode, "into the global repository" in done.stderr) == (2, True)


def test_a_host_that_is_not_there_is_told(sandbox: Sandbox) -> None:
    """Its files are still written: other developers of the project may have it."""
    ws = sandbox.context(PATH="/usr/bin:/bin")
    assert install(ws, "cursor").steps
    assert "Cursor is not in use on this machine" in ws.notes
    assert any("is not on your PATH" in note for note in ws.notes)


def test_a_repository_without_memories_is_told(sandbox: Sandbox) -> None:
    """The hooks are silent there until it has some."""
    (sandbox.path / ".memory").rmdir()
    ws = sandbox.context()
    install(ws, "claude")
    assert any(note.endswith("memtool init") for note in ws.notes)


def test_for_all_projects_the_program_is_named_by_its_path(sandbox: Sandbox) -> None:
    """Settings of a user are not shared; a host that was started elsewhere may lack the path."""
    install(sandbox.context(), "claude", user=True)
    path = sandbox.path.parent / "home/.claude/settings.json"
    command = handlers(path, is_flat=False)["Stop"][0]["command"]
    assert isinstance(command, str)
    program = command.split()[2]
    assert command == guard_command(program, ("hook", "claude", "stop"))
    assert os.access(program, os.X_OK)


@pytest.mark.parametrize("body", ["", "exit 127", "exit 126", "exit 2", "kill -9 $$"])
def test_a_memtool_that_is_missing_or_broken_stops_nobody(tmp_path: Path, body: str) -> None:
    """Some hosts stop the agent at any exit code but 0 and 1; the settings are shared."""
    program = tmp_path / "a folder" / "memtool"
    if body:
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
    command = guard_command(str(program), ("hook", "gemini", "before-agent"))
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
    assert body or not done.stderr


def test_an_event_that_is_asked_for_no_longer_is_taken_out(sandbox: Sandbox) -> None:
    """Gemini sent it before every request; hooks of others stay."""
    theirs = {"type": "command", "command": "theirs"}
    old = {"type": "command", "command": "memtool hook gemini pre-compress", "timeout": 5000}
    hooks = {"PreCompress": [{"hooks": [theirs]}, {"hooks": [old]}]}
    path = sandbox.write(".gemini/settings.json", json.dumps({"hooks": hooks}))
    install(sandbox.context(), "gemini", yes=True)
    assert handlers(path, is_flat=False)["PreCompress"] == [theirs]
    path.write_text(json.dumps({"hooks": hooks}))
    uninstall(sandbox.context(), "gemini", yes=True)
    assert json.loads(path.read_text())["hooks"] == {"PreCompress": [{"hooks": [theirs]}]}


def test_what_is_said_names_each_file(sandbox: Sandbox) -> None:
    """One line a step; a second time there is nothing to say."""
    done = install(sandbox.context(), "cursor")
    assert render(done, PIPED).splitlines()[0] == "write .cursor/hooks.json"
    assert render(install(sandbox.context(), "cursor"), PIPED) == "cursor: nothing to change"


def state(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(root)): (
            path.read_bytes() if path.is_file() else b"",
            stat.S_IMODE(path.stat().st_mode),
        )
        for path in sorted(root.rglob("*"))
    }


def steps(root: Path) -> list[FileStep]:
    """One step of each kind, in an order that could be carried out."""
    (root / "hook").write_text("theirs\n")
    (root / "hook").chmod(0o700)
    (root / "old").write_text("old\n")
    (root / "settings").write_text("{}")
    (root / "settings").chmod(0o600)
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / "ours").write_text("ours\n")
    top = str(root)
    return [
        FileStep("rename", f"{top}/hook", f"{top}/hook.kept"),
        FileStep("write", f"{top}/hook", data=b"#!/bin/sh\n"),
        FileStep("remove", f"{top}/old"),
        FileStep("edit", f"{top}/settings", data=b'{"a": 1}', before=b"{}"),
        FileStep("edit", f"{top}/new/er/one", data=b"one\n"),
        FileStep("remove", f"{top}/deep/er/ours", target=top, before=b"ours\n"),
    ]


def test_every_kind_of_step_is_done(tmp_path: Path) -> None:
    """Settings keep their permissions, programs may be run, empty directories go."""
    apply_steps(steps(tmp_path))
    assert {name: data for name, (data, _mode) in state(tmp_path).items()} == {
        "hook": b"#!/bin/sh\n",
        "hook.kept": b"theirs\n",
        "new": b"",
        "new/er": b"",
        "new/er/one": b"one\n",
        "settings": b'{"a": 1}',
    }
    assert stat.S_IMODE((tmp_path / "settings").stat().st_mode) == 0o600
    assert (tmp_path / "hook").stat().st_mode & 0o100


@pytest.mark.parametrize("count", range(7))
@pytest.mark.parametrize(
    "last",
    [
        FileStep("edit", "/proc/nothing/x", data=b"x"),
        FileStep("rename", "/nowhere/a", "/nowhere/b"),
        FileStep("remove", "/nowhere/a"),
        FileStep("remove", "/nowhere/a", target="/", before=b"x"),
        FileStep("edit", "ROOT/settings", data=b"x", before=b"other bytes"),
    ],
    ids=["makes", "renames", "removes", "drops", "changed"],
)
def test_a_refusal_undoes_what_was_done(tmp_path: Path, count: int, last: FileStep) -> None:
    """Bytes, permissions and directories are as before, whichever step it is."""
    planned = steps(tmp_path)[:count]
    before = state(tmp_path)
    path = last.path.replace("ROOT", str(tmp_path))
    with pytest.raises(MemtoolError):
        apply_steps([*planned, last.replace(path=path)])
    assert state(tmp_path) == before
