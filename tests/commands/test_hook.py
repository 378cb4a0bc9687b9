"""`memtool hook`, run as the hosts run it: their JSON on stdin, from some other directory."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Sandbox

from memtool.commands.hook import FOREIGN_REPOSITORY, UNREADABLE_SETTINGS, answer_event, hook
from memtool.errors import MemtoolError
from memtool.hosts.contracts import BY_EVENT, CONTRACTS, Contract, HookEvent, max_tokens
from memtool.index import unindexed
from memtool.inject import budget as budgets
from memtool.inject import session_seen
from memtool.sessions import background

DATA = Path(__file__).parents[1] / "hosts" / "data"
HOME = "/code/ada/project"
PROMPTS = [row for row in CONTRACTS if row.meaning == "prompt"]
STARTS = [row for row in CONTRACTS if row.meaning == "start" and row.name != "SubagentStart"]
EDITS = [row for row in CONTRACTS if row.meaning == "edit"]


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    """A committed store: a pinned memory, a decision about a file, one about another."""
    sandbox.write("src/auth/a.py", "x\n")
    sandbox.write("src/web/b.py", "x\n")
    sandbox.memory("dec-pinned", "Never force-push.\n", status="pinned")
    sandbox.memory(
        "dec-redis",
        "Sessions live in Redis, since they expire.\n",
        title="Sessions in Redis",
        files=("src/auth/*.py",),
    )
    sandbox.memory("dec-web", "Pages are plain HTML.\n", title="Plain HTML", files=("src/web/",))
    sandbox.commit()
    return sandbox


def ask(project: Sandbox, row: Contract, cwd: Path | None = None, **changes: Any) -> Any:
    """Send a host's own sample of an event, with changes, and return the answer's text."""
    event = (DATA / f"{row.host}-{row.event}.json").read_text().replace(HOME, str(project.path))
    done = project.run(
        "hook",
        row.host,
        row.event,
        stdin=json.dumps(json.loads(event) | changes),
        cwd=cwd or project.path.parent,
    )
    assert (done.returncode, done.stderr) == (0, "")
    if done.stdout == row.silence:
        return ""
    answer = json.loads(done.stdout)
    inner = answer.get("hookSpecificOutput", answer)
    return next(value for key, value in inner.items() if key != "hookEventName")


def log_of(project: Sandbox) -> str:
    place = project.path / ".git" / "memtool" / "hook.log"
    return place.read_text() if place.exists() else ""


def row(host: str, event: str) -> Contract:
    return BY_EVENT[host, event]


CLAUDE = row("claude", "user-prompt-submit")
START = row("claude", "session-start")


@pytest.mark.parametrize("contract", STARTS, ids=lambda row: row.host)
def test_a_session_starts_with_the_primer(project: Sandbox, contract: Contract):
    """Every host gets what is pinned and what governs the last commits, in its own format.

    One that takes no text at the start is given it with the first prompt.
    """
    done = project.run("inject", "--primer", "--for", contract.host)
    text = ask(project, contract)
    if not contract.answer:
        assert text == ""
        first = next(prompt for prompt in PROMPTS if prompt.host == contract.host)
        text = ask(project, first, prompt="please go on")
    assert text == done.stdout
    assert "Never force-push." in text
    assert "Sessions live in Redis" in text


def test_a_session_without_a_start_begins_with_its_first_prompt(project: Sandbox) -> None:
    """Copilot's start hook runs at the same time, so the primer and the block come together."""
    prompt = row("copilot", "user-prompt-submitted")
    text = ask(project, prompt, prompt="Why do sessions live in Redis?")
    assert text.count("Never force-push.") == 1
    assert "memtool remember" in text
    assert "dec-redis@" in text
    assert ask(project, prompt, prompt="Why do sessions live in Redis?", timestamp=2) == ""
    task = {"agentId": "b", "parentAgentId": "", "prompt": "Why do sessions live in Redis?"}
    assert "memtool remember" not in ask(project, prompt, **task)


def test_a_host_that_runs_the_hook_of_another_gets_nothing(project: Sandbox) -> None:
    """Copilot may also run the hooks of Claude Code; its own answer is enough."""
    event = {"sessionId": "s", "cwd": str(project.path), "prompt": "Why Redis?"}
    done = project.run("hook", "claude", "user-prompt-submit", stdin=json.dumps(event))
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    "contract",
    [row for row in PROMPTS if row.host in {start.host for start in STARTS}],
    ids=lambda row: row.host,
)
def test_a_prompt_gets_its_block(project: Sandbox, contract: Contract):
    """The block is the one of `inject` for the same prompt and the files that it names."""
    text = ask(project, contract)
    prompt = json.loads((DATA / f"{contract.host}-{contract.event}.json").read_text())["prompt"]
    done = project.run(
        "inject", "--prompt", prompt, "--files", "src/auth/a.py", "--for", contract.host
    )
    assert text == done.stdout
    assert "dec-redis@" in text


@pytest.mark.parametrize("contract", EDITS, ids=lambda row: row.host)
def test_an_edit_gets_what_governs_the_file(project: Sandbox, contract: Contract):
    """The decision about the file is shown once in the session, no other one, and no pinned one."""
    text = ask(project, contract)
    assert "Sessions live in Redis" in text
    assert "Pages are plain HTML" not in text
    assert "force-push" not in text
    assert ask(project, contract) == ""


@pytest.mark.parametrize(
    "contract", [c for c in CONTRACTS if not c.answer], ids=lambda row: f"{row.host}-{row.event}"
)
def test_where_nobody_listens_nothing_is_said(project: Sandbox, contract: Contract):
    """Text that the model never sees is not written; the ledger records the event."""
    assert ask(project, contract) == ""
    verbs = {row["verb"] for row in project.json("stats")["latencies"]}
    assert f"hook-{contract.meaning}" in verbs


def test_an_edit_is_told_what_holds_only(project: Sandbox):
    """Superseded or dropped memories govern nothing; memories themselves are not governed."""
    files = ("src/auth/*.py", ".memory/**")
    project.memory("dec-gone", "Sessions live in files.\n", status="deprecated", files=files)
    project.memory("dec-old", "Sessions live in Mongo.\n", files=files)
    project.memory("dec-new", "Sessions live in Redis.\n", files=files, supersedes=("dec-old",))
    project.commit()
    edit = row("claude", "post-tool-use")
    answer = ask(project, edit)
    assert ("dec-new" in answer, "dec-old" in answer, "dec-gone" in answer) == (True, False, False)
    memory = {"file_path": str(project.path / ".memory/decision/dec-new.md")}
    assert ask(project, edit, session_id="s-2", tool_input=memory) == ""


def test_nothing_is_shown_twice_in_a_session(project: Sandbox):
    """The second prompt gets only what is new; another session gets it all."""
    first = ask(project, CLAUDE)
    assert "dec-pinned" in first
    assert ask(project, CLAUDE) == ""
    project.memory(
        "dec-late",
        "Sessions live in Redis, in its second database, on purpose.\n",
        title="Why sessions live in Redis",
    )
    second = ask(project, CLAUDE)
    assert "dec-late" in second
    assert "dec-redis@" not in second
    assert "dec-pinned" in ask(project, CLAUDE, session_id="another")


def test_a_changed_memory_is_shown_again(project: Sandbox):
    """Not the same bytes, not the same memory: the session hears of the change."""
    ask(project, CLAUDE)
    project.memory(
        "dec-redis",
        "Sessions live in Redis, since they expire.\n",
        title="Sessions in Redis",
        files=("src/auth/*.py",),
        importance="0.9",
    )
    assert "since they expire" in ask(project, CLAUDE)


def test_a_memory_that_is_contested_now_is_shown_again(project: Sandbox):
    """Its bytes are the same, but the agent has to know that another one says otherwise."""
    ask(project, CLAUDE)
    project.memory(
        "dec-new",
        "Sessions live in Postgres.\n",
        title="Sessions in Postgres",
        supersedes=("dec-redis",),
    )
    text = ask(project, CLAUDE)
    assert "CONFLICT: dec-new is newer but not merged" in text
    assert "dec-redis@" in text


def test_an_agent_hears_once_of_what_was_taken_out_of_use_here(project: Sandbox):
    """A decision that only the trusted ref has is named if it would have been shown."""
    project.git("update-ref", "refs/remotes/origin/main", "HEAD")
    project.memory("dec-pinned", "Never force-push.\n", status="archived")
    project.memory(
        "dec-redis",
        "Sessions live in Redis, since they expire.\n",
        title="Sessions in Redis",
        status="deprecated",
        files=("src/auth/*.py",),
    )
    notice = "Not shown, since edited on this branch and not merged yet: "
    how = " (`memtool show ID --at origin/main`)\n"
    assert f"{notice}dec-pinned{how}" in ask(project, START)
    text = ask(project, CLAUDE)
    assert (f"{notice}dec-redis{how}" in text, "dec-pinned" in text) == (True, False)
    assert ask(project, CLAUDE) == ""
    edit = row("claude", "post-tool-use")
    assert ask(project, edit) == ""
    assert f"{notice}dec-redis{how}" in ask(project, edit, session_id="another")
    assert ask(project, edit, session_id="another") == ""
    both = ask(project, CLAUDE, session_id="a third")
    assert f"{notice}dec-pinned, dec-redis{how}" in both


@pytest.mark.parametrize("source", ["startup", "clear", "compact", "fork"])
def test_after_its_context_was_lost_a_session_is_told_again(project: Sandbox, source: str):
    """The primer comes again, and what is in it does not come again after that."""
    assert "dec-pinned" in ask(project, START)
    assert "dec-pinned" not in ask(project, CLAUDE)
    assert "dec-pinned" in ask(project, START, source=source)
    assert "dec-pinned" not in ask(project, CLAUDE)


def test_a_session_that_is_resumed_is_given_what_is_new(project: Sandbox):
    """Memories already in the context are not shown again, nor at the next prompt."""
    ask(project, START)
    ask(project, CLAUDE)
    assert ask(project, START, source="resume") == ""
    assert ask(project, CLAUDE) == ""
    project.memory("dec-new", "Never rebase main.\n", status="pinned")
    project.commit()
    text = ask(project, START, source="resume")
    assert "Never rebase main." in text
    assert "force-push" not in text
    assert "memtool remember" not in text
    assert ask(project, START, source="resume") == ""


def test_a_resumed_session_that_was_shown_nothing_gets_the_whole_primer(project: Sandbox):
    """It began before memtool was installed, or longer ago than is kept."""
    assert "memtool remember" in ask(project, START, source="resume")


def test_a_primer_that_came_too_late_is_given_with_the_next_prompt(project: Sandbox):
    """The session began, and was not given it: once, and with nothing twice."""
    text = ask(project, START)
    session = json.loads((DATA / "claude-session-start.json").read_text())["session_id"]
    cache = project.context().repository.cache_dir
    session_seen.forget(cache, session)
    both = ask(project, CLAUDE)
    assert both.startswith(text)
    assert both.count("dec-pinned@") == both.count("dec-redis@") == 1
    assert ask(project, CLAUDE) == ""


def test_before_there_is_an_index_pinned_memories_and_rules_are_given(
    project: Sandbox, monkeypatch: pytest.MonkeyPatch
):
    """Many memories are indexed in the background; those shown at once are not repeated."""
    project.memory("dec-old", "Always rebase.\n", status="pinned", title="Rebase always")
    project.memory("dec-new", "Always merge.\n", title="Merge always", supersedes=["dec-old"])
    project.commit()
    cache = Path(project.context().repository.cache_dir)
    shutil.rmtree(cache, ignore_errors=True)
    monkeypatch.setattr(unindexed, "MIN_FILES", 3)
    started: list[str] = []
    monkeypatch.setattr(background, "warm", lambda *_args: started.append("index"))
    text = ask(project, START)
    assert "dec-pinned@" in text
    assert "memtool remember" in text
    assert "dec-web@" not in text
    assert "dec-old@" not in text
    text = ask(project, CLAUDE, prompt="what holds for src/web/b.py?")
    assert "dec-web@" in text
    assert "dec-pinned@" not in text
    assert "dec-redis@" in text
    assert ask(project, row("claude", "post-tool-use")) == ""
    assert len(started) == 3
    monkeypatch.undo()
    project.run("search", "anything")
    text = ask(project, CLAUDE, prompt="do we merge or rebase?")
    assert "dec-new@" in text
    for seen in ("dec-pinned@", "dec-web@", "dec-redis@", "memtool remember"):
        assert seen not in text


@pytest.mark.root
def test_a_repository_that_git_refuses_is_told_to_a_session_once(sandbox: Sandbox):
    """Nothing is written to what git does not trust: the log is in the user's own cache."""
    sandbox.memory("dec-pinned", "Never force-push.\n", status="pinned")
    sandbox.commit()
    cache = sandbox.path.parent / "cache"
    sandbox.env["XDG_CACHE_HOME"] = str(cache)
    os.chown(sandbox.path, 12_345, 12_345)
    assert ask(sandbox, START) == FOREIGN_REPOSITORY
    assert ask(sandbox, CLAUDE) == ask(sandbox, row("claude", "post-tool-use")) == ""
    assert ask(sandbox, CLAUDE, session_id="other") == FOREIGN_REPOSITORY
    log = (cache / "memtool" / "hook.log").read_text()
    assert "hook claude session-start: failed: git rev-parse failed: detected dubious" in log
    assert not (sandbox.path / ".git" / "memtool" / "hook.log").exists()
    shutil.rmtree(sandbox.path / ".memory")
    assert ask(sandbox, START, session_id="third") == ""


@pytest.mark.parametrize("damage", [b"[inject\n", b"ignore = 'all rules'\n", b"\xff\xfe"])
def test_broken_settings_are_told_to_a_session_once(project: Sandbox, damage: bytes):
    """Nothing from the file is quoted; the log has the details, as for every failure."""
    (project.path / ".memory" / "config.toml").write_bytes(damage)
    answer = ask(project, START)
    assert answer == UNREADABLE_SETTINGS
    assert ask(project, CLAUDE) == ask(project, row("claude", "post-tool-use")) == ""
    assert ask(project, CLAUDE, session_id="other") == UNREADABLE_SETTINGS
    assert "config.toml" in log_of(project)
    (project.path / ".memory" / "config.toml").unlink()
    assert "dec-pinned@" in ask(project, CLAUDE)


def test_gemini_is_given_the_primer_again_once_its_context_was_summed_up(
    project: Sandbox, tmp_path: Path
):
    """Its transcript tells, not the event that comes before every request."""
    prompt = row("gemini", "before-agent")
    path = tmp_path / "session.jsonl"
    path.write_text('{"sessionId": "s"}\n')
    ask(project, row("gemini", "session-start"))
    assert "dec-pinned" in ask(project, prompt, transcript_path=str(path))
    assert ask(project, row("gemini", "pre-compress")) == ""
    assert ask(project, prompt, transcript_path=str(path)) == ""
    with path.open("a") as file:
        file.write('{"$set": {"messages": [{"content": "<state_snapshot>..."}]}}\n')
    assert "dec-pinned" in ask(project, prompt, transcript_path=str(path))
    assert ask(project, prompt, transcript_path=str(path)) == ""
    assert ask(project, row("gemini", "session-start"), source="resume") == ""
    assert ask(project, prompt, transcript_path=str(path)) == ""


def test_a_subagent_gets_the_short_primer(project: Sandbox):
    """The memories without the guide; its session has seen nothing by that, nor begun."""
    text = ask(project, row("claude", "subagent-start"))
    assert "Never force-push." in text
    assert "memtool remember" not in text
    assert "dec-pinned" in ask(project, CLAUDE)
    assert ask(project, row("claude", "post-tool-use"), agent_id="a6019615ae45862b4") == ""


def test_a_helper_of_a_session_has_a_context_of_its_own(project: Sandbox):
    """A helper has not seen the memories that its session saw."""
    edit = row("claude", "post-tool-use")
    assert ask(project, edit) != ""
    assert ask(project, edit, agent_id="agent-1") != ""
    assert ask(project, edit, agent_id="agent-1") == ""


def test_the_ledger_knows_what_hooks_showed(project: Sandbox):
    """The log of injections names the session and the tiers."""
    ask(project, START)
    ask(project, CLAUDE, session_id="s-2")
    shown = project.json("log", "--injected", "--limit", "0")["injections"]
    assert {(injection["session"], injection["tier"]) for injection in shown} >= {
        ("s-2", "pinned"),
        ("s-2", "governing"),
        ("8c35adc1-5d0e-4a0f-9a53-1f6f0a2f7c11", "governing"),
    }


def test_injections_of_every_kind_are_counted(project: Sandbox):
    """Memories injected by hooks count like those a user requested."""
    ask(project, START)
    ask(project, CLAUDE, session_id="s-2")
    ask(project, row("claude", "post-tool-use"), session_id="s-3")
    counts = {memory["id"]: memory["count"] for memory in project.json("stats")["most_injected"]}
    assert (counts["dec-pinned"], counts["dec-redis"]) == (2, 3)


def test_what_was_told_in_short_is_told_whole_when_asked_for(project: Sandbox):
    """A statement at the start and at an edit, once; all of it at a prompt that it answers."""
    project.memory(
        "dec-redis",
        "Sessions live in Redis.\n\n## Rationale\n\nThey expire.\n",
        title="Sessions in Redis",
        files=("src/auth/*.py",),
    )
    project.commit()
    edit = row("claude", "post-tool-use")
    assert "They expire" not in ask(project, edit, session_id="s")
    assert ask(project, edit, session_id="s") == ""
    assert "They expire" in ask(project, CLAUDE, session_id="s")
    assert ask(project, CLAUDE, session_id="s") == ""
    assert ask(project, edit, session_id="s") == ""


def test_the_directory_that_the_host_names_decides(project: Sandbox, tmp_path: Path):
    """The process may run in another repository, or in none."""
    other = tmp_path / "other"
    other.mkdir()
    project.git("init", "--quiet", str(other))
    assert "dec-redis" in ask(project, CLAUDE, cwd=other)
    assert ask(project, CLAUDE, cwd=project.path, session_id="s2") != ""
    event = {"cwd": str(other), "prompt": "sessions redis"}
    done = project.run("hook", "claude", "user-prompt-submit", stdin=json.dumps(event))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (other / ".git" / "memtool").exists()


@pytest.mark.parametrize("host", ["claude", "codex", "gemini", "opencode"])
def test_no_answer_is_longer_than_its_host_shows(project: Sandbox, host: str):
    """However much the settings allow and the memories say."""
    project.write(
        ".memory/config.toml",
        "[inject]\nbudget_tokens = 100000\nmax_pinned = 50\n"
        "pinned_tokens = 100000\nretrieval_tokens = 100000\n",
    )
    for number in range(20):
        project.memory(
            f"dec-p{number:02}",
            f"Rule {number}: sessions. " + "redis é " * 300 + "\n",
            status="pinned",
            title=f"Rule {number} about sessions",
        )
    project.commit()
    for contract in (row for row in CONTRACTS if row.host == host and row.answer):
        text = ask(project, contract, session_id=contract.event)
        assert budgets.estimate_tokens(text) <= max_tokens(host)
        assert len(text) <= 10_000


def test_a_dry_run_leaves_nothing_behind(project: Sandbox):
    """A dry run changes no later answer, and no statistics."""
    event = json.dumps({"cwd": str(project.path), "session_id": "s", "prompt": "sessions redis"})
    args = ("hook", "claude", "user-prompt-submit", "--dry-run")
    first = project.run(*args, stdin=event)
    assert first.stdout == project.run(*args, stdin=event).stdout != ""
    project.run("hook", "claude", "session-start", "--dry-run", stdin=event)
    assert not (project.path / ".git" / "memtool" / "shown").exists()
    assert project.json("stats")["latencies"] == []


def test_the_answer_has_a_json_form(project: Sandbox):
    """A person or a test sees which memories were shown."""
    event = json.dumps({"prompt": "sessions redis", "session_id": "s"})
    answer = json.loads(
        project.run("hook", "claude", "user-prompt-submit", "--json", stdin=event).stdout
    )
    assert (answer["meaning"], answer["session"]) == ("prompt", "s")
    assert answer["ids"] == ["dec-pinned", "dec-redis"]


def test_off_means_off(project: Sandbox):
    """With MEMTOOL_OFF every host gets its empty answer, and nothing is noted."""
    for contract in CONTRACTS:
        event = (DATA / f"{contract.host}-{contract.event}.json").read_text()
        done = project.run(
            "hook",
            contract.host,
            contract.event,
            MEMTOOL_OFF="1",
            stdin=event.replace(HOME, str(project.path)),
        )
        assert (done.returncode, done.stdout) == (0, contract.silence)
    assert not (project.path / ".git" / "memtool").exists()


@pytest.mark.parametrize(
    "stdin",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'{"prompt": "x"',
        b"\xff\xfe",
        b"[" * 200_000,
        b"x" * 20_000_000,
        b'{"cwd": "/nowhere/at/all"}',
        b'{"cwd": "a\\u0000b", "prompt": 7}',
    ],
)
def test_whatever_a_host_sends_it_is_never_disturbed(project: Sandbox, stdin: bytes):
    """The host's empty answer, nothing on stderr, and 0."""
    for contract in (CLAUDE, row("gemini", "before-agent"), row("codex", "stop")):
        done = project.run("hook", contract.host, contract.event, stdin=stdin)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == contract.silence or json.loads(done.stdout)
    assert "Traceback" not in log_of(project)  # it is no bug of ours


CALLS = [
    (),
    ("claude",),
    ("claude", "nope"),
    ("nope", "stop"),
    ("claude", "stop", "more"),
    ("claude", "stop", "--nope"),
]


@pytest.mark.parametrize("args", CALLS)
def test_whatever_it_is_called_with_it_is_never_disturbed(project: Sandbox, args: tuple[str, ...]):
    """A settings file of another version must not stop the agent; the log tells of it."""
    done = project.run("hook", *args, stdin="{}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert log_of(project).count("\n") == 1
    assert "hook-failed" in {row["verb"] for row in project.json("stats")["latencies"]}


def test_a_bug_is_told_in_the_log_only(project: Sandbox):
    """A traceback is for the log."""
    (project.path / ".memory" / "aliases.toml").write_bytes(b"")
    project.write("broken/memtool_breaks.py", "")
    site = project.path / "broken" / "sitecustomize.py"
    site.write_text(
        "import memtool.inject.answer as i\ndef inject(*_a, **_k): 1 / 0\ni.build_block = inject\n"
    )
    event = json.dumps({"cwd": str(project.path), "prompt": "x"})
    done = project.process(
        "hook", "gemini", "before-agent", stdin=event, PYTHONPATH=str(site.parent)
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "{}", "")
    assert "ZeroDivisionError" in log_of(project)


def test_after_two_seconds_the_agent_goes_on(project: Sandbox):
    """A machine that hangs costs two seconds, not the session; the log tells of it."""
    site = project.path / "slow" / "sitecustomize.py"
    project.write(
        "slow/sitecustomize.py",
        "import time\nimport memtool.inject.answer as i\n"
        "def inject(*_a, **_k):\n    time.sleep(60)\ni.build_block = inject\n",
    )
    event = json.dumps({"cwd": str(project.path), "prompt": "x"})
    began = time.monotonic()
    done = project.process(
        "hook", "gemini", "before-agent", stdin=event, PYTHONPATH=str(site.parent)
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "{}", "")
    assert time.monotonic() - began < 30
    assert "no answer within 2 s" in log_of(project)


def test_a_git_that_hangs_is_left_behind(project: Sandbox, tmp_path: Path):
    """Also a child process costs two seconds only, and it does not outlive the hook."""
    folder = tmp_path / "bin"
    folder.mkdir()
    pid_file = tmp_path / "pid"
    (folder / "git").write_text(f"#!/bin/sh\necho $$ > {pid_file}\nexec sleep 600\n")
    (folder / "git").chmod(0o755)
    event = json.dumps({"cwd": str(project.path), "session_id": "s", "prompt": "redis"})
    path = f"{folder}:{project.env['PATH']}"
    done = project.process("hook", "gemini", "before-agent", stdin=event, PATH=path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "{}", "")
    assert not Path(f"/proc/{pid_file.read_text().strip()}").exists()


def test_what_swallows_the_interruption_is_ended(project: Sandbox):
    """Code that catches every exception or cannot be interrupted does not delay the hook."""
    site = project.path / "slow" / "sitecustomize.py"
    project.write(
        "slow/sitecustomize.py",
        "import time\nimport memtool.inject.answer as i\n"
        "def inject(*_a, **_k):\n    while True:\n        try:\n            time.sleep(60)\n"
        "        except BaseException:\n            pass\ni.build_block = inject\n",
    )
    event = json.dumps({"cwd": str(project.path), "prompt": "x"})
    done = project.process(
        "hook", "gemini", "before-agent", stdin=event, PYTHONPATH=str(site.parent)
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "{}", "")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_git_directory_that_cannot_be_written_is_no_reason_to_be_silent(project: Sandbox):
    """The answer does not depend on what is noted."""
    ask(project, CLAUDE, session_id="warm")
    for folder, _names, _files in os.walk(project.path / ".git"):
        os.chmod(folder, 0o500)
    try:
        assert "dec-redis" in ask(project, CLAUDE)
        assert "dec-pinned" in ask(project, START)
    finally:
        for folder, _names, _files in os.walk(project.path / ".git"):
            os.chmod(folder, 0o700)


def test_files_in_the_way_of_notes_are_no_reason_to_be_silent(project: Sandbox):
    """The answer is the same if another file blocks the notes."""
    project.write(".git/memtool", "in the way\n")
    assert "dec-redis" in ask(project, CLAUDE)
    assert "dec-pinned" in ask(project, START)


def test_a_repository_without_memories_is_left_alone(sandbox: Sandbox):
    """No word, no log, no file in the git directory."""
    (sandbox.path / ".memory").rmdir()
    for contract in CONTRACTS:
        assert ask(sandbox, contract) == ""
    assert not (sandbox.path / ".git" / "memtool").exists()


def test_an_empty_memory_has_nothing_to_say(sandbox: Sandbox):
    """No memories, no primer and no block."""
    for contract in CONTRACTS:
        assert ask(sandbox, contract) == ""


def test_the_log_of_everything_names_what_was_shown(project: Sandbox):
    """With MEMTOOL_LOG=all each call is one line; with off not even a failure is."""
    event = json.dumps({"cwd": str(project.path), "prompt": "sessions redis"})
    project.run("hook", "claude", "user-prompt-submit", stdin=event, MEMTOOL_LOG="all")
    assert "hook claude user-prompt-submit: dec-pinned, dec-redis in " in log_of(project)
    before = log_of(project)
    project.run("hook", "claude", "user-prompt-submit", stdin="{", MEMTOOL_LOG="off")
    assert log_of(project) == before


ENDINGS = [row("claude", event) for event in ("pre-compact", "stop", "session-end")]


@pytest.mark.parametrize("contract", ENDINGS, ids=lambda row: row.event)
def test_transcripts_are_handed_on(project: Sandbox, tmp_path: Path, contract: Contract):
    """Another process captures what was said; the hook does not wait for it."""
    transcript = tmp_path / "transcript.jsonl"
    transcript.write_text(
        json.dumps(
            {
                "type": "user",
                "uuid": "u1",
                "sessionId": "s",
                "cwd": str(project.path),
                "timestamp": "2026-03-01T10:00:00Z",
                "message": {"role": "user", "content": "Never deploy on Fridays."},
            }
        )
        + "\n"
    )
    ask(project, contract, transcript_path=str(transcript))
    place = project.path / ".git" / "memtool" / "sessions"
    for _try in range(200):
        if any("Fridays" in file.read_text() for file in place.rglob("messages.jsonl")):
            break
        time.sleep(0.1)
    else:
        pytest.fail("nothing was captured")


@pytest.mark.parametrize("event", ["idle", "deleted"])
def test_a_host_that_keeps_sessions_itself_names_no_transcript(
    project: Sandbox, monkeypatch: pytest.MonkeyPatch, event: str
):
    """The capture knows where OpenCode has them."""
    captured: list[tuple[object, ...]] = []
    monkeypatch.setattr(
        "memtool.sessions.background.capture_hook", lambda _ws, *a: captured.append(a)
    )
    hook_event = HookEvent(session="ses_1")
    answer_event(project.context(), "opencode", event, hook_event, is_dry=True)
    answer_event(
        project.context(), "opencode", event, hook_event.replace(agent="helper"), is_dry=False
    )
    assert captured == []
    answer_event(project.context(), "opencode", event, hook_event, is_dry=False)
    name = "session-end" if event == "deleted" else event
    assert captured == [("opencode", "ses_1", "", name)]


def test_where_nothing_is_to_be_captured_nothing_is(project: Sandbox, tmp_path: Path):
    """Where it is switched off, of a helper, in a dry run, of a file that is none."""
    transcript = tmp_path / "transcript.jsonl"
    transcript.write_text('{"type": "user", "message": {"role": "user", "content": "So."}}\n')
    stop = row("claude", "stop")
    ask(project, stop, transcript_path=str(transcript), agent_id="helper")
    ask(project, stop, transcript_path=str(tmp_path))
    ask(project, stop, transcript_path="relative.jsonl")
    event = json.dumps({"session_id": "s", "transcript_path": str(transcript)})
    project.run("hook", "claude", "stop", "--dry-run", stdin=event)
    project.write(".memory/config.toml", "[capture]\nauto = false\n")
    project.run("hook", "claude", "stop", stdin=event)
    time.sleep(0.5)
    assert not (project.path / ".git" / "memtool" / "sessions").exists()


def test_the_verb_itself_tells_what_is_wrong(project: Sandbox):
    """From Python it complains like any other verb; no host ever sees that, with -C neither."""
    with pytest.raises(MemtoolError, match="does not answer the event 'nope' of claude"):
        hook(project.context(), "claude", "nope", input="{}")
    with pytest.raises(MemtoolError, match="cannot read the input of the hook"):
        hook(project.context(), "claude", "stop", input="{")
    for event, sent in (("nope", "{}"), ("stop", "{")):
        done = project.run("-C", str(project.path), "hook", "claude", event, stdin=sent)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
