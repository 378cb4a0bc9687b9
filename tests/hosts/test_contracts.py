"""Contracts of the hosts: reading events, writing answers, and the log of hooks."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest
from hosts_live.proven import versions_in_docs
from hypothesis import given
from hypothesis import strategies as st

from memtool import agents
from memtool.agents import AGENTS
from memtool.hosts import contracts, diagnostics
from memtool.hosts.contracts import BY_EVENT, CONTRACTS, Contract, HookEvent, UnreadableEvent, read
from memtool.hosts.install import load_host

DATA = Path(__file__).with_name("data")
HOME = "/code/ada/project"

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def sample(row: Contract) -> bytes:
    """Return what the host sends with an event."""
    return (DATA / f"{row.host}-{row.event}.json").read_bytes()


EVERY = (*CONTRACTS, *contracts.RETIRED)


@pytest.mark.parametrize("row", EVERY, ids=lambda row: f"{row.host}-{row.event}")
def test_every_event_is_read_in_the_words_of_its_host(row: Contract) -> None:
    """Each has session and directory; prompt and files if the event has them."""
    parsed = read(sample(row))
    assert (len(parsed.session) > 20, parsed.cwd) == (True, HOME)
    has_prompt = row.meaning in (agents.PROMPT, agents.TASK) or row.name == "AfterAgent"
    assert bool(parsed.prompt) == has_prompt
    assert bool(parsed.command) == (row.meaning in (agents.COMMAND, agents.FAILURE))
    is_named = row.meaning == agents.EDIT or (row.host, row.event) == ("opencode", "prompt")
    assert [path.removeprefix(f"{HOME}/") for path in parsed.files] == ["src/auth/a.py"] * is_named


@pytest.mark.parametrize("row", CONTRACTS, ids=lambda row: f"{row.host}-{row.event}")
def test_every_answer_is_one_json_object(row: Contract) -> None:
    """Any text comes out as it went in; if the host reads no output, there is none."""
    text = 'a "block"\nwith \\ and \u2028, é, 😀 and {braces}'
    task = json.dumps({"prompt": "look", "description": "é"})
    output = row.format_output(text, task=task)
    if row.answer == agents.NO_ANSWER:
        assert output == row.silence
        return
    answer = json.loads(output)
    inner = answer.get("hookSpecificOutput", answer)
    if row.meaning == agents.TASK:
        assert inner["updatedInput"] == {"prompt": f"look\n\n{text}", "description": "é"}
    else:
        assert text in inner.values()
    assert inner.get("hookEventName", row.name) == row.name


def test_silence_is_nothing_or_json() -> None:
    """The empty answer never becomes text that a model reads."""
    for row in CONTRACTS:
        assert row.format_output("") == row.silence
        assert row.silence == "" or json.loads(row.silence) in ({}, {"text": ""})


@pytest.mark.parametrize("row", CONTRACTS, ids=lambda row: f"{row.host}-{row.event}")
def test_a_message_reaches_only_users_of_a_host_that_shows_it(row: Contract) -> None:
    """Elsewhere the output is as without it; there the model does not get it."""
    message = 'memtool: 1 "conflict": memtool status'
    if not row.shows_messages:
        assert row.format_output("text", message) == row.format_output("text")
        assert row.format_output("", message) == row.silence
        return
    both = json.loads(row.format_output("text", message))
    assert both.pop("systemMessage") == message
    assert both == json.loads(row.format_output("text"))
    assert json.loads(row.format_output("", message)) == {"systemMessage": message}


def test_the_versions_that_were_tried_are_those_of_the_documentation() -> None:
    """The table there is written by the runs with real clients."""
    tried = {
        name: load_host(name).tested_version for name in AGENTS if load_host(name).tested_version
    }
    assert tried == versions_in_docs()


def test_every_host_has_a_row_for_each_event_once() -> None:
    """The table is a table: an event is there once, and each host has a format of its block."""
    assert len(BY_EVENT) == len(EVERY)
    assert {row.host for row in CONTRACTS} == set(AGENTS)
    assert {path.stem for path in DATA.glob("*.json")} == {f"{r.host}-{r.event}" for r in EVERY}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b'"x"',
        b"{",
        b'{"cwd":',
        b"\xff\xfe{}",
        b"[" * 100_000,
        b'{"a": 1} {}',
        b'{"a":' + b"9" * 5_000 + b"}",
        b" " * (contracts.MAX_EVENT_BYTES + 1),
    ],
)
def test_what_is_no_event_is_unreadable(data: bytes) -> None:
    """One kind of error, whatever is wrong."""
    with pytest.raises(UnreadableEvent):
        read(data)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "session_id",
                "conversation_id",
                "cwd",
                "workspace_roots",
                "prompt",
                "files",
                "tool_name",
                "tool_input",
                "transcript_path",
                "source",
                "agent_id",
                "agentId",
                "clineVersion",
                "parentAgentId",
                "postToolUse",
                "sessionContext",
                "sessionId",
                "toolArgs",
                "toolName",
                "workspaceRoots",
            ]
        ),
        anything,
    )
)
def test_any_values_make_an_event(event: dict[str, object]) -> None:
    """A host that sends other types than expected is read as if it had not sent them."""
    parsed = read(json.dumps(event).encode())
    for name in HookEvent.field_names:
        value = getattr(parsed, name)
        for text in value if isinstance(value, tuple) else (value,):
            assert isinstance(text, str)
            text.encode()
    assert "\0" not in "".join((parsed.cwd, parsed.transcript, *parsed.files))


@pytest.mark.parametrize(
    ("sent", "prompt"),
    [
        ("<hook_context>a primer</hook_context>\n\nwhere is it?", "where is it?"),
        ("<hook_context></hook_context><hook_context>b</hook_context>/fix it", "/fix it"),
        ("<hook_context> that never ends", "<hook_context> that never ends"),
        ("what does <hook_context>x</hook_context> mean?",) * 2,
    ],
)
def test_what_hooks_put_before_a_prompt_is_no_prompt(sent: str, prompt: str) -> None:
    assert read(json.dumps({"prompt": sent}).encode()).prompt == prompt


@pytest.mark.parametrize(
    ("tool", "action", "files", "command"),
    [
        ("Bash", contracts.SHELL, (), "cat a.py"),
        ("Edit", contracts.EDITING, ("a.py",), ""),
        ("Glob", "", (), ""),
        ("Read", contracts.READING, ("a.py",), ""),
        ("exec_command", contracts.SHELL, (), "cat a.py"),
        ("read_file", contracts.READING, ("a.py",), ""),
        ("run_shell_command", contracts.SHELL, (), "cat a.py"),
    ],
)
def test_a_tool_has_files_or_a_command(
    tool: str, action: str, files: tuple[str, ...], command: str
) -> None:
    """Which of both counts depends on what the tool does; of any other tool, neither does."""
    event = {"tool_name": tool, "tool_input": {"file_path": "a.py", "command": "cat a.py"}}
    parsed = read(json.dumps(event).encode())
    assert (parsed.action, parsed.files, parsed.command) == (action, files, command)


def test_copilot_is_known_in_the_words_of_claude() -> None:
    """It runs the hooks of Claude Code as well; what they answer never reaches its model."""
    event = {
        "hook_event_name": "PostToolUse",
        "session_id": "6085608b-197a-4dbb-ace7-98c5048690f2",
        "timestamp": "2026-11-27T20:46:34.331Z",
        "cwd": "/code",
        "tool_name": "Read",
        "tool_input": {"path": "/code/a.py"},
    }
    assert read(json.dumps(event).encode()).client == "copilot"
    for row in CONTRACTS:
        assert read(sample(row)).client in ("", row.host)


def test_a_command_may_be_a_list_of_words() -> None:
    """It is one line then, in which each word is quoted."""
    words = ["bash", "-lc", "echo 'it is' > a.py"]
    event = {"tool_name": "shell", "tool_input": {"command": words}}
    command = read(json.dumps(event).encode()).command
    assert shlex.split(command) == words


def test_a_patch_names_every_file_that_it_touches() -> None:
    """Added, updated, deleted and moved files of one patch are all named, each once."""
    patch = (
        "*** Begin Patch\n*** Add File: a.py\n+x\n  *** Update File: b c.py\n*** Move to: d.py\n"
    )
    patch += "*** Delete File: e.py\n*** Update File: a.py\n*** End Patch"
    event = {"tool_name": "apply_patch", "tool_input": {"command": patch}}
    assert read(json.dumps(event).encode()).files == ("a.py", "b c.py", "d.py", "e.py")


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a.py", "unknown": {"path": "b.py"}},
        '{"path": "a.py"}',
        "*** Begin Patch\n*** Update File: a.py\n*** End Patch",
    ],
)
def test_arguments_of_a_tool_may_come_as_text(arguments: object) -> None:
    """Copilot sent JSON in a string before it sent an object, and sends a patch as it is."""
    event = {"sessionId": "s", "toolName": "edit", "toolArgs": arguments}
    assert read(json.dumps(event).encode()).files == ("a.py",)
    assert read(json.dumps(event | {"toolArgs": "{" * 100_000}).encode()).files == ()


def test_a_subagent_of_copilot_belongs_to_the_session_that_started_it() -> None:
    """Its own id is that of the agent, so that its context is one of the session's."""
    event = {"sessionId": "b", "agentId": "b", "parentAgentId": "a", "prompt": "look"}
    parsed = read(json.dumps(event).encode())
    assert (parsed.session, parsed.agent) == ("a", "b")


def test_the_main_agent_of_cline_is_no_subagent() -> None:
    """It has an id as well, and no parent."""
    event = {"clineVersion": "", "taskId": "t", "agent_id": "a", "parent_agent_id": None}
    assert read(json.dumps(event).encode()).agent == ""
    assert read(json.dumps(event | {"parent_agent_id": "p"}).encode()).agent == "a"


@pytest.mark.parametrize("session", ["", "../../etc/passwd", "a/b", "a.b", "s\0"])
def test_a_name_from_outside_leads_nowhere(session: str) -> None:
    """Where the path of a transcript is made of it, it is a plain name."""
    agent = agents.BY_NAME["copilot"]
    assert agent.find_transcript(session, {"HOME": "/home/ada"}) == ""
    assert agent.find_transcript("a-1", {"HOME": "/home/ada"}) == (
        "/home/ada/.copilot/session-state/a-1/events.jsonl"
    )
    assert agent.find_transcript("a-1", {"COPILOT_HOME": "/c"}).startswith("/c/session-state/")


def test_what_is_too_large_is_not_read():
    """A host may send along what a tool printed; time is short."""
    with pytest.raises(UnreadableEvent, match="more than"):
        read(b'{"prompt":"' + b"x" * contracts.MAX_EVENT_BYTES + b'"}')


def test_an_entry_is_one_paragraph(tmp_path: Path) -> None:
    """Further lines of an entry are indented, so that each entry can be told from the next."""
    contracts.log_outcome(str(tmp_path / "deep"), "NOW", "hook claude stop", "first\nsecond\n")
    contracts.log_outcome(str(tmp_path / "deep"), "NOW", "hook claude stop", "third \udcff")
    log = (tmp_path / "deep" / contracts.LOG_NAME).read_text()
    assert log == "NOW hook claude stop: first\n  second\nNOW hook claude stop: third \\udcff\n"
    assert (tmp_path / "deep" / contracts.LOG_NAME).stat().st_mode & 0o777 == 0o600


def test_the_log_stays_small(tmp_path: Path) -> None:
    """Two files of bounded size are all that is ever kept."""
    for number in range(100):
        contracts.log_outcome(str(tmp_path), "NOW", "hook", f"{number} " + "x" * 10_000)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == [contracts.LOG_NAME, f"{contracts.LOG_NAME}.old"]
    assert all(
        file.stat().st_size <= contracts.MAX_LOG_BYTES + contracts.MAX_ENTRY_BYTES for file in files
    )
    assert files[0].read_text().splitlines()[-1].startswith("NOW hook: 99 ")


@pytest.mark.parametrize("kind", ["link", "directory", "pipe"])
def test_only_a_real_file_is_written(tmp_path: Path, kind: str) -> None:
    """Whatever is in its place, no other file is written, and the hook does not wait."""
    place, other = tmp_path / contracts.LOG_NAME, tmp_path / "other"
    other.write_text("")
    if kind == "link":
        place.symlink_to(other)
    elif kind == "directory":
        place.mkdir()
    else:
        os.mkfifo(place)
    contracts.log_outcome(str(tmp_path), "NOW", "hook", "failed")
    assert other.read_text() == ""


@pytest.mark.parametrize(
    ("value", "levels"),
    [
        ("", {"error"}),
        ("error", {"error"}),
        ("off", set()),
        ("all", {"error", "all"}),
        ("loud", {"error"}),
    ],
)
def test_the_variable_says_what_is_kept(value: str, levels: set[str]) -> None:
    """Errors are logged unless it is off; unknown values are ignored."""
    assert {level for level in ("error", "all") if contracts.is_logged(level, value)} == levels


@pytest.mark.parametrize(
    "row",
    [row for row in CONTRACTS if row.meaning in (agents.START, agents.PROMPT)],
    ids=lambda row: f"{row.host}-{row.event}",
)
def test_doctor_rehearses_what_the_host_sends(row: Contract):
    """Key by key and type by type as recorded, for this project and prompt, without a session."""
    recorded = json.loads((DATA / f"{row.host}-{row.event}.json").read_text())
    made = diagnostics.build_sample(load_host(row.host), row, "/code/ada/{pro}", "why {name}?")
    assert {key: type(value) for key, value in made.items()} == {
        key: type(value) for key, value in recorded.items()
    }
    parsed = read(json.dumps(made).encode())
    assert (parsed.session, parsed.cwd) == ("", "/code/ada/{pro}")
    assert parsed.prompt == ("why {name}?" if row.meaning == "prompt" else "")
