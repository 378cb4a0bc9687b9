"""Real clients, headless, against a made-up model: what reaches the model is what counts.

Every scenario runs in every client that can play it. With `MEMTOOL_PROVEN=write` the table in
docs/agents.md is written from what passed.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator

import pytest
from conftest import Sandbox
from hosts_live import clients
from hosts_live.clients import CLAUDE, CLINE, GEMINI, OPENCODE, Client
from hosts_live.model_server import Call, ModelServer
from hosts_live.proven import SCENARIOS, write_table
from hosts_live.team import (
    CHARGE,
    DECISION,
    GUIDE,
    OTHER,
    OTHER_QUESTION,
    PINNED,
    QUESTION,
    WARNING,
    ask,
    memory_of,
    planted,
    run,
)

from memtool.sessions.transcripts.markup import ASKED

pytestmark = pytest.mark.live

CAPTURE_S = 20
RULE = "From now on never call the payment provider without a timeout of five seconds."
SECRET = "postgres://ada:" + "hunter22vX9qLm@db.internal/shop"
MAX_PRIMER_CHARS, MAX_BLOCK_CHARS = 2_500, 1_500
"""Characters of the primer of three memories, and of a block of one or two."""

Proven = Callable[[Client, str], None]
every = pytest.mark.parametrize("client", clients.FULL, ids=str)


@pytest.fixture(scope="module")
def proven() -> Iterator[Proven]:
    """Note what passed, by scenario and client; the table is written once all is done."""
    passed: set[tuple[str, str]] = set()

    def note(client: Client, scenario: str) -> None:
        assert scenario in SCENARIOS
        passed.add((scenario, client.name))

    yield note
    if os.environ.get("MEMTOOL_PROVEN") == "write":
        write_table(passed, {client.name: clients.version(client.name) for client in clients.ALL})


def ended_sessions(team: Sandbox, client: Client) -> str:
    """Wait for a session to end, and list it: hooks capture in the background."""
    listed = ""
    for _try in range(CAPTURE_S * 10):
        listed = team.process("session", "list", "--status", "ended").stdout
        if listed:
            break
        if not client.has_end:
            time.sleep(2)  # until the capture is done
            for session in json.loads(run(team, "session", "list", "--json"))["sessions"]:
                run(team, "session", "end", session["id"])
        time.sleep(0.1)
    return listed


@every
def test_a_session_is_given_each_memory_once(
    client: Client, bare: Sandbox, model: ModelServer, proven: Proven
) -> None:
    team = planted(bare, client, model)
    charge = team.path / CHARGE
    model.play(
        *client.edit(charge, "    return 1", "    return 2"),
        *client.edit(charge, "    return 2", "    return 3"),
        "The charge is three.",
    )
    last = ask(team, client, model, QUESTION)
    assert charge.read_text().endswith("return 3\n")
    first = model.turns[0]
    for text in (GUIDE, PINNED, DECISION):
        assert (first.text.count(text), last.text.count(text)) == (1, 1), text
    assert OTHER not in first.text
    assert sum(map(len, memory_of(first))) <= MAX_PRIMER_CHARS + MAX_BLOCK_CHARS
    proven(client, "primer and block once")
    assert f"| {WARNING}" not in first.text
    assert last.text.count(f"| {WARNING}") == 1
    proven(client, "warning at an edit once")
    assert all(DECISION not in request.text for request in model.requests if not request.is_turn)
    # What went before stays as it was: clients pay for what changes of it.
    assert last.text.startswith(first.text.rstrip()[:200])


@every
def test_a_session_that_is_resumed_is_given_what_is_new(
    client: Client, bare: Sandbox, model: ModelServer, proven: Proven
) -> None:
    team = planted(bare, client, model)
    ask(team, client, model, QUESTION)
    before = model.turns[-1]
    model.play()
    done = client.ask(team, model.url, OTHER_QUESTION, resume=True)
    assert done.returncode == 0, done.stderr
    after = model.turns[-1]
    assert before.text.count(DECISION) == 1
    for text in (GUIDE, PINNED, DECISION, OTHER):
        assert after.text.count(text) == 1, text
    assert sum(map(len, memory_of(after))) <= sum(map(len, memory_of(before))) + MAX_BLOCK_CHARS
    proven(client, "nothing again on resume")


@every
def test_two_installations_and_a_neighbour_are_as_one(
    client: Client, bare: Sandbox, model: ModelServer, proven: Proven
) -> None:
    """All clients are installed in the project, and this one for the user as well.

    The second session starts in a package, where some clients read the user's settings only.
    """
    team = planted(bare, client, model)
    for other in clients.FULL:
        run(team, "install", other.name, "--yes")
    run(team, "install", client.name, "--user", "--yes")
    charge = team.path / CHARGE
    package = Sandbox(team.path / "app", team.env)
    for place, old, new in ((team, 1, 2), (package, 2, 3)):
        model.play(*client.edit(charge, f"    return {old}", f"    return {new}"), "Done.")
        done = client.ask(place, model.url, QUESTION)
        assert done.returncode == 0, done.stderr
        last = model.turns[-1].text
        for text in (GUIDE, PINNED, DECISION, f"| {WARNING}"):
            assert last.count(text) == 1, (place.path.name, text)
        proven(
            client,
            "works in a subdirectory"
            if place is package
            else "each once with hooks of user and project",
        )
    ended_sessions(team, client)
    listed = json.loads(run(team, "session", "list", "--json"))["sessions"]
    assert len(listed) == 2
    for session in listed:
        shown = run(team, "session", "show", session["id"], "--messages")
        assert len(re.findall(r"^#\d+ \S+ user\b", shown, re.MULTILINE)) == 1


@every
def test_what_was_typed_and_what_failed_is_kept(
    client: Client, bare: Sandbox, model: ModelServer, proven: Proven
) -> None:
    team = planted(bare, client, model)
    failure = "echo 'ConnectionError: the pool of 5 is exhausted'; exit 1"
    script = team.write("check.sh", f"grep -q 'return 2' {CHARGE} || {{ {failure}; }}\n")
    model.play(
        client.shell(f"sh {script.name}"),
        *client.edit(team.path / CHARGE, "    return 1", "    return 2"),
        client.shell(f"sh {script.name}"),
        "It passes.",
    )
    ask(team, client, model, f"{RULE} The database is {SECRET}.")
    listed = ended_sessions(team, client)
    assert "From now on never call" in listed
    run(team, "config", "capture.traces", "on")
    output = run(team, "promote", "--list", "--json")
    assert "payment provider" in output
    assert "pool of 5 is exhausted" in output
    proven(client, "rule and fix are lessons")
    stored = [
        path.read_bytes() for path in (team.path / ".git/memtool").rglob("*") if path.is_file()
    ]
    assert stored
    assert not any(b"hunter22vX9qLm" in data for data in stored)
    proven(client, "secrets kept nowhere")


@pytest.mark.parametrize("client", [CLAUDE, OPENCODE], ids=str)
def test_the_worktree_is_looked_at_when_a_command_fails(
    client: Client, bare: Sandbox, model: ModelServer
) -> None:
    """The trace records its state, so that the failure can be run again."""
    bare.write("check.sh", f"grep -q 'return 2' {CHARGE} || {{ echo 'ValueError: no'; exit 3; }}\n")
    team = planted(bare, client, model)
    team.git("add", "--all")
    team.git("commit", "--quiet", "--message", "app: a check, and memtool")
    failed = team.git("rev-parse", "HEAD").strip()
    model.play(
        client.shell("sh check.sh"),
        *client.edit(team.path / CHARGE, "    return 1", "    return 2"),
        client.shell("sh check.sh"),
        "It passes.",
    )
    ask(team, client, model, "please go on")
    ended_sessions(team, client)
    run(team, "config", "capture.traces", "on")
    rows = json.loads(run(team, "promote", "--list", "--json"))["findings"]
    (error,) = (row["id"] for row in rows if row["category"] == "error")
    assert run(team, "promote", "--finding", error)
    (path,) = team.path.glob(".memory/episodic/*/*.md")
    lines = path.read_text().splitlines()
    assert 'argv: ["sh", "check.sh"]' in lines
    assert {"cwd: .", "exit: 3", f"commit: {failed}", "diff: clean"} <= set(lines)


READERS = (clients.CLINE, clients.CODEX, clients.COPILOT, OPENCODE, clients.QWEN)
"""Clients that read AGENTS.md by themselves."""


@pytest.mark.parametrize("client", READERS, ids=str)
def test_the_block_of_agents_md_reaches_the_model(
    client: Client, bare: Sandbox, model: ModelServer, proven: Proven
) -> None:
    """Without any hook: this is what every other agent gets that reads the file."""
    client.configure(bare, model.url)
    run(bare, "install", "agents-md")
    ask(bare, client, model, QUESTION)
    assert model.turns[0].text.count(PINNED) == 1
    proven(client, "block of AGENTS.md")


def test_cline_is_warned_at_an_edit(bare: Sandbox, model: ModelServer, proven: Proven) -> None:
    """Its hooks answer a tool only."""
    team = planted(bare, CLINE, model)
    charge = team.path / CHARGE
    model.play(
        *CLINE.edit(charge, "    return 1", "    return 2"),
        *CLINE.edit(charge, "    return 2", "    return 3"),
        "The charge is three.",
    )
    last = ask(team, CLINE, model, QUESTION)
    assert charge.read_text().endswith("return 3\n")
    assert f"| {WARNING}" not in model.turns[0].text
    assert last.text.count(f"| {WARNING}") == 1
    proven(CLINE, "warning at an edit once")


@pytest.mark.parametrize("client", clients.ALL, ids=str)
def test_without_memtool_the_agent_works(
    client: Client, bare: Sandbox, model: ModelServer, proven: Proven
) -> None:
    """A teammate who does not have it, or has a broken one, is not stopped by shared settings."""
    team = planted(bare, client, model)
    broken = team.path.parent / "broken"
    broken.mkdir()
    (broken / "memtool").write_text("#!/nowhere/python\n")
    (broken / "memtool").chmod(0o755)
    node, system = team.env["PATH"].split(os.pathsep)[1:3]
    for first in (str(broken), ""):
        path = os.pathsep.join(filter(None, (first, node, system, "/bin")))
        model.play("Fine.")
        done = client.ask(team, model.url, QUESTION, PATH=path)
        assert done.returncode == 0, done.stderr
        assert "Fine." in done.stdout
        assert QUESTION in model.turns[0].text
    proven(client, "works without memtool")


SLASH = {
    "claude": ("/remember", "/fix"),
    "codex": ("$remember", ""),
    "gemini": ("/remember", "/fix"),
    "opencode": ("remember", "fix"),
    "qwen": ("/remember", "/fix"),
}
OWN = {
    "claude": (".claude/commands/fix.md", "Mend carefully: $ARGUMENTS\n"),
    "gemini": (".gemini/commands/fix.toml", 'prompt = "Mend carefully: {{args}}"\n'),
    "opencode": (".opencode/command/fix.md", "Mend carefully: $ARGUMENTS\n"),
    "qwen": (".qwen/commands/fix.toml", 'prompt = "Mend carefully: {{args}}"\n'),
}


@pytest.mark.parametrize("client", [c for c in clients.ALL if c.name in SLASH], ids=str)
def test_slash_commands_work_and_what_follows_is_evidence(
    client: Client, bare: Sandbox, model: ModelServer, proven: Proven
) -> None:
    team = planted(bare, client, model)
    ours, own = SLASH[client.name]
    if own:
        team.write(*OWN[client.name])
    for name, text in ((ours, "memtool remember"), (own, "Mend carefully: ")):
        if name:
            model.play("Done.")
            words = ("--command", name, RULE) if client is OPENCODE else (f"{name} {RULE}",)
            ask(team, client, model, *words)
            assert text in model.turns[0].text
    ended_sessions(team, client)
    sessions = run(team, "session", "list", "--json")
    assert "From now on never call" in sessions
    stored = [
        path.read_text(errors="replace")
        for path in (team.path / ".git/memtool").rglob("*")
        if path.is_file()
    ]
    assert not any("Mend carefully" in text for text in stored)
    proven(client, "slash commands")


@every
def test_the_server_answers(
    client: Client, bare: Sandbox, model: ModelServer, proven: Proven
) -> None:
    team = planted(bare, client, model, "--mcp")
    model.play(
        client.shell("sleep 1"), Call(client.search, {"query": "sessions postgres"}), "Done."
    )
    last = ask(team, client, model, "please go on", **client.trust)
    assert DECISION in last.text
    proven(client, "MCP")


def test_a_subagent_gets_the_short_primer(
    bare: Sandbox, model: ModelServer, proven: Proven
) -> None:
    team = planted(bare, CLAUDE, model)
    task = {"description": "look", "prompt": "look around", "subagent_type": "general-purpose"}
    model.play(Call("Agent", task), "Seen.", "Done.")
    ask(team, CLAUDE, model, "please go on")
    (own,) = [turn for turn in model.turns if "please go on" not in turn.text]
    assert own.text.count(PINNED) == 1
    assert GUIDE not in own.text
    proven(CLAUDE, "short primer for subagents")


@every
def test_an_edit_by_shell_is_warned_once(
    client: Client, bare: Sandbox, model: ModelServer, proven: Proven
) -> None:
    """Also if the command line does not name the file; what only looks elsewhere is silent."""
    bare.write("run.py", f"open({CHARGE!r}, 'a').write('# run\\n')\n")
    team = planted(bare, client, model)
    model.play(
        client.shell("ls app; cat app/other.py"),
        client.shell("python3 run.py"),
        client.shell(f"cd app/billing && sed -i 's/return 1/return 2/' charge.py && cat {CHARGE}"),
        "Done.",
    )
    last = ask(team, client, model, "please go on")
    assert "return 2" in (team.path / CHARGE).read_text()
    before, after = model.turns[1].text, model.turns[2].text
    assert (before.count(f"| {WARNING}"), after.count(f"| {WARNING}")) == (0, 1)
    assert f"This command changed {CHARGE}." in after
    assert last.text.count(f"| {WARNING}") == 1
    proven(client, "warning at a shell command once")


@every
def test_a_failure_comes_before_the_command_runs(
    client: Client, bare: Sandbox, model: ModelServer, proven: Proven
) -> None:
    """It is held once, whatever its spelling; then it runs."""
    bare.write("check.sh", "echo ran >> ran.txt\n")
    trap = "The check needs the tunnel to staging"
    sections = ("--section", "Command=sh check.sh", "--section", "Fix=Open the tunnel first.")
    run(bare, "new", "episodic", trap, "--category", "error", *sections, "--commit")
    team = planted(bare, client, model)
    command = f"cd {team.path} && FAST=1 bash ./check.sh --quiet"
    # The same call again would have the same id, which some clients take for a mistake.
    lines = (command, f"{command} --again", f"{command} --and-again")
    model.play(*map(client.shell, lines), "Done.")
    last = ask(team, client, model, "please go on")
    assert trap in model.turns[1].text
    assert (team.path / "ran.txt").read_text() == "ran\n" * 2
    assert last.text.count(f"| {trap}") == 1
    proven(client, "failure before the command runs")


def test_the_task_of_a_subagent_gets_its_own_block(
    bare: Sandbox, model: ModelServer, proven: Proven
) -> None:
    """It arrives in the subagent's first request, behind its task, and nowhere else."""
    team = planted(bare, CLAUDE, model)
    task = {"description": "look", "prompt": OTHER_QUESTION, "subagent_type": "general-purpose"}
    model.play(Call("Agent", task), "Seen.", "Done.")
    ask(team, CLAUDE, model, "please go on")
    (own,) = [turn for turn in model.turns if "please go on" not in turn.text]
    assert (own.text.count(OTHER), own.text.count(PINNED)) == (1, 1)
    assert own.text.index(OTHER_QUESTION) < own.text.index(OTHER)
    assert DECISION not in own.text
    assert all(OTHER not in turn.text for turn in model.turns if turn is not own)
    proven(CLAUDE, "block for the task of a subagent")


def test_memtool_asks_in_the_session_and_gets_no_reply_there(
    bare: Sandbox, model: ModelServer, proven: Proven
) -> None:
    """The host goes on in the session that ended: it knows what was said, and its hooks are off."""
    team = planted(bare, CLAUDE, model)
    fact = "Turns out the webhook signature is computed over the raw body, not the JSON."
    injected = memory_of(ask(team, CLAUDE, model, fact))
    assert ended_sessions(team, CLAUDE)
    (session,) = json.loads(run(team, "session", "list", "--json"))["sessions"]
    team.env.update(CLAUDE.env(model.url), MEMTOOL_GLOBAL=str(team.path.parent / "global"))
    words = f"{clients.programs() / 'claude'},--resume,{{session}},-p,--tools="
    run(team, "--global", "config", "extraction.resume", words)
    statement = "The webhook signature is computed over the raw body."
    finding = {
        "content": statement,
        "category": "discovery",
        "confidence": 0.92,
        "importance": 0.8,
        "messages": [1],
    }
    model.play()
    model.aside = json.dumps({"findings": [finding]})
    run(team, "promote")
    request = model.requests[-1]
    assert request.tools == set()
    assert request.text.count(fact) == 2  # in the conversation, and with its number
    assert request.text.index(fact) < request.text.index(ASKED)
    assert memory_of(request) == injected
    assert statement in run(team, "promote", "--list")
    model.play()
    assert CLAUDE.ask(team, model.url, "please go on", resume=True).returncode == 0
    for _try in range(CAPTURE_S * 10):
        shown = run(team, "session", "show", session["id"], "--messages")
        if "please go on" in shown:
            break
        time.sleep(0.1)
    assert "please go on" in shown
    assert ASKED not in shown
    assert statement not in shown
    proven(CLAUDE, "goes on in a session for memtool")


def test_after_a_compaction_the_primer_comes_again(
    bare: Sandbox, model: ModelServer, proven: Proven
) -> None:
    """Gemini alone can be made to sum up a context of a few messages."""
    team = planted(bare, GEMINI, model)
    ask(team, GEMINI, model, QUESTION)
    model.aside = "<state_snapshot>They spoke of sessions.</state_snapshot>"
    GEMINI.configure(team, model.url, **clients.GEMINI_COMPACTING)
    GEMINI.ask(team, model.url, "please go on", resume=True)
    GEMINI.configure(team, model.url)
    GEMINI.ask(team, model.url, QUESTION, resume=True)
    last = model.turns[-1]
    assert "They spoke of sessions." in last.text
    for text in (GUIDE, PINNED, DECISION):
        assert last.text.count(text) == 1, text
    proven(GEMINI, "primer after a compaction")
