"""The plugin of OpenCode, loaded by node with a host that is played, and a real memtool process."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Sandbox

import memtool
from memtool.commands.install import install

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not here")

PLAY = """
const { default: plugin } = await import(process.argv[2])
const steps = JSON.parse(process.argv[3])
const directory = process.argv[4]
const heard = []
const hooks = {}
let wake
const queue = []
async function* subscribe() {
  while (true) {
    while (queue.length) yield queue.shift()
    await new Promise((resolve) => { wake = resolve })
  }
}
const second = {
  location: { directory },
  session: { hook: async (name, callback) => { hooks[name] = callback } },
  event: { subscribe },
}
const first = await plugin.server({ directory, worktree: directory })
const stop = await plugin.setup(second)
for (const [generation, name, input, output] of steps) {
  const began = Date.now()
  let error = ""
  if (generation === 1) {
    try {
      await first[name](input, output)
    } catch (raised) {
      error = raised.message
    }
  }
  else if (name === "event") {
    queue.push(input)
    wake?.()
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  else await hooks[name](input)
  heard.push({ output: output ?? null, input: input ?? null, error, ms: Date.now() - began })
}
stop()
console.log(JSON.stringify({ id: plugin.id, hooks: Object.keys(hooks), heard }))
process.exit(0)
"""


def play(
    sandbox: Sandbox, *steps: list[Any], program: str = "", limit_ms: int = 10_000
) -> dict[str, Any]:
    """Load the installed plugin and call its hooks one after the other."""
    path = sandbox.path / ".opencode/plugins/memtool.js"
    text = path.read_text()
    own = program or str(Path(sys.executable).with_name("memtool"))
    assert '"memtool"' in text
    module = sandbox.path.parent / "plugin.mjs"
    text = text.replace("LIMIT_MS = 5000", f"LIMIT_MS = {limit_ms}")
    module.write_text(
        text.replace('const PROGRAM = "memtool"', f"const PROGRAM = {json.dumps(own)}")
    )
    stage = sandbox.path.parent / "stage.mjs"
    stage.write_text(PLAY)
    done = subprocess.run(
        ["node", str(stage), str(module), json.dumps(steps), str(sandbox.path)],
        cwd=sandbox.path,
        env={**sandbox.env, "PYTHONPATH": str(Path(memtool.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.fixture
def planted(unhurried: Sandbox) -> Sandbox:
    """A repository with two memories and the plugin."""
    sandbox = unhurried
    sandbox.memory("dec-a", "Sessions live in Redis.\n", title="Keep sessions in Redis")
    sandbox.memory("dec-b", "Deploys run on Tuesdays.\n", title="Deploys run on Tuesdays")
    sandbox.commit()
    install(sandbox.context(), "opencode")
    return sandbox


def part(text: str, **extra: object) -> dict[str, Any]:
    return {
        "id": "prt_1",
        "sessionID": "s1",
        "messageID": "m1",
        "type": "text",
        "text": text,
    } | extra


def message(text: str, session: str = "s1", id: str = "m1", **extra: object) -> list[Any]:
    output = {"message": {}, "parts": [part(text, **extra)]}
    return [1, "chat.message", {"sessionID": session, "messageID": id}, output]


def attached(step: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what was added to the parts of a message."""
    added: list[dict[str, Any]] = step["output"]["parts"][1:]
    return added


def read_attached(step: dict[str, Any]) -> str:
    return "".join(row["text"] for row in attached(step))


def test_the_first_generation_gets_primer_and_block(planted: Sandbox) -> None:
    """They are stored with the prompt that they are for, each once; nothing before it changes."""
    first, second, third, other = play(
        planted,
        message("where do sessions live?"),
        message("when do deploys run?", id="m2"),
        message("where do sessions live, really?", id="m3"),
        message("when do deploys run?", "s2"),
    )["heard"]
    (added,) = attached(first)
    assert added["id"] > "prt_1"
    assert (added["sessionID"], added["messageID"]) == ("s1", "m1")
    assert "memtool remember" in added["text"]
    assert "[dec-a@" in added["text"]
    assert "memtool remember" not in read_attached(second)
    assert "[dec-b@" in read_attached(second)
    assert "[dec-a@" not in read_attached(third)
    assert "memtool remember" in read_attached(other)


def test_what_is_attached_goes_to_the_conversation_only(planted: Sandbox) -> None:
    """A part that is ignored is in no request for a title; those of others stay as they are."""
    theirs = part("theirs", ignored=True)
    ours = part("a block", ignored=True, synthetic=True, metadata={"memtool": True})
    (first, second) = play(
        planted,
        message("where do sessions live?"),
        [1, "experimental.chat.messages.transform", {}, {"messages": [{"parts": [theirs, ours]}]}],
    )["heard"]
    assert [(row["ignored"], row["synthetic"]) for row in attached(first)] == [(True, True)]
    shown = second["output"]["messages"][0]["parts"]
    assert [row["ignored"] for row in shown] == [True, False]


def test_a_session_that_goes_on_in_another_process_is_given_what_is_new(planted: Sandbox) -> None:
    """The plugin does not know it, but what was shown is stored with the session."""
    assert "memtool remember" in read_attached(
        play(planted, message("where do sessions live?"))["heard"][0]
    )
    again = play(planted, message("where do sessions live?"), message("when do deploys run?"))
    assert [read_attached(step) for step in again["heard"]] == ["", ""]


def test_a_tool_gets_what_governs_its_file(planted: Sandbox) -> None:
    """It comes once, with the result of the tool; a tool that shows no file brings nothing."""
    planted.memory("dec-c", "Never log cards.\n", title="No cards", files=("pay/*.py",))
    planted.write("pay/a.py", "x")
    planted.commit()
    args = {"filePath": str(planted.path / "pay/a.py")}
    steps = [
        [1, "tool.execute.after", {"tool": tool, "sessionID": "s1", "args": args}, {"output": "ok"}]
        for tool in ("glob", "read", "edit")
    ]
    outputs = [step["output"]["output"] for step in play(planted, *steps)["heard"]]
    assert outputs[0] == outputs[2] == "ok"
    assert outputs[1].startswith("ok\n\n[memory ")
    assert "Never log cards." in outputs[1]


def test_a_command_that_fails_is_looked_at(planted: Sandbox) -> None:
    """The worktree is noted as it is then; the model is told nothing, nor asked for what works."""
    failed = {"output": "ValueError: no", "metadata": {"exit": 3}}
    worked = {"output": "ok", "metadata": {"exit": 0}}
    steps = [
        [
            1,
            "tool.execute.after",
            {"tool": tool, "sessionID": "s-1", "args": {"command": "make"}},
            output,
        ]
        for tool, output in (("bash", failed), ("bash", worked), ("edit", failed))
    ]
    heard = play(planted, *steps)["heard"]
    assert [step["output"]["output"] for step in heard] == [
        "ValueError: no",
        "ok",
        "ValueError: no",
    ]
    (path,) = planted.path.glob(".git/memtool/sessions/*/states.jsonl")
    (row,) = path.read_text().splitlines()
    assert 'argv: ["make"]\ncwd: .\nexit: 3\n' in json.loads(row)["state"]


def test_a_command_gets_what_governs_its_files(planted: Sandbox) -> None:
    """It comes with the result, if the command names the file."""
    planted.memory("dec-c", "Never log cards.\n", title="No cards", files=("pay/a.py",))
    planted.write("pay/a.py", "x")
    planted.commit()
    steps = [
        [1, f"tool.execute.{when}", {"tool": "bash", "sessionID": "s-1", "args": args}, output]
        for args in ({"command": "make pay"}, {"command": "cat pay/a.py"})
        for when, output in (("before", {"args": args}), ("after", {"output": "ok"}))
    ]
    _before, other, _again, named = play(planted, *steps)["heard"]
    assert other["output"]["output"] == "ok"
    assert named["output"]["output"].startswith("ok\n\n[memory ")
    assert "pay/a.py is governed by:" in named["output"]["output"]


def test_a_command_that_has_failed_before_is_held_once(planted: Sandbox) -> None:
    """Its result is the failure; the same command runs when it comes again."""
    planted.memory(
        "epi-a",
        "The tunnel is closed.\n\n## Command\n\nmake pay\n",
        title="The tunnel is closed",
        type="episodic",
        category="error",
    )
    planted.commit()
    output = {"args": {"command": "make -s pay"}}
    calls = [
        [1, "tool.execute.before", {"tool": tool, "sessionID": "s-1", "callID": id_}, output]
        for tool, id_ in (("edit", "c-1"), ("bash", "c-2"), ("bash", "c-3"))
    ]
    errors = [step["error"] for step in play(planted, *calls)["heard"]]
    assert errors[0] == errors[2] == ""
    assert "Not run yet" in errors[1]
    assert "The tunnel is closed" in errors[1]


@pytest.mark.parametrize(
    ("text", "extra"),
    [
        ('"where do sessions live?"', {}),
        ("Look it up: where do sessions live?", {"metadata": {"typed": "where do sessions live?"}}),
    ],
)
def test_what_the_host_adds_to_a_prompt_is_not_asked(
    planted: Sandbox, text: str, extra: dict[str, Any]
) -> None:
    """`run` puts quotation marks around it, a command its own words."""
    program, sent = planted.path.parent / "program", planted.path.parent / "sent"
    program.write_text(f'#!/bin/sh\n[ $3 != prompt ] || cat > {sent}\necho \'{{"text": ""}}\'\n')
    program.chmod(0o755)
    play(planted, message(text, **extra), program=str(program))
    assert json.loads(sent.read_text())["prompt"] == "where do sessions live?"


def test_a_command_keeps_what_was_typed_after_it(planted: Sandbox) -> None:
    output = {"parts": [part("Remember what follows: x y")]}
    step = [1, "command.execute.before", {"sessionID": "s1", "arguments": "x y"}, output]
    (heard,) = play(planted, step)["heard"]
    assert heard["output"]["parts"][0]["metadata"] == {"typed": "x y"}


def test_the_second_generation_gets_the_same(planted: Sandbox) -> None:
    """Its hooks are asked for in setup, and its prompt is the newest of the request."""
    messages = [
        {
            "role": "user",
            "id": "m1",
            "content": [{"type": "text", "text": "where do sessions live?"}],
        }
    ]
    event = {"sessionID": "s1", "messages": messages, "system": []}
    played = play(
        planted,
        [2, "context", event],
        [2, "event", {"type": "session.deleted", "data": {"sessionID": "s1"}}],
    )
    assert (played["id"], sorted(played["hooks"])) == ("memtool", ["compaction", "context"])
    texts = [part["text"] for part in played["heard"][0]["input"]["system"]]
    assert "memtool remember" in texts[0]
    assert "[dec-a@" in texts[1]


def test_after_a_compaction_it_is_said_again(planted: Sandbox) -> None:
    """The summary may have lost it."""
    _first, _compacted, again = play(
        planted,
        message("where do sessions live?"),
        [1, "experimental.session.compacting", {"sessionID": "s1"}, {"context": []}],
        message("where do sessions live?", id="m2"),
    )["heard"]
    assert "memtool remember" in read_attached(again)
    assert "[dec-a@" in read_attached(again)


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["exit 3", "echo '{\"text\": 7}'", "echo no json", "sleep 20"])
def test_no_hook_ever_fails_a_turn(planted: Sandbox, answer: str) -> None:
    """Not without a program, an answer, or arguments; one that hangs is given up."""
    program = planted.path.parent / "program"
    program.write_text(f"#!/bin/sh\n{answer.replace('sleep', 'exec sleep')}\n")
    program.chmod(0o755)
    heard = play(planted, message("where?"), program=str(program), limit_ms=500)["heard"]
    assert attached(heard[0]) == []
    assert heard[0]["ms"] < 10_000


def test_nonsense_is_survived(planted: Sandbox) -> None:
    """Whatever the host sends, and whether or not memtool is there."""
    played = play(
        planted,
        [1, "chat.message", None, None],
        [1, "chat.message", {"sessionID": "s1"}, {"parts": "no"}],
        [1, "event", {"event": None}, None],
        [1, "event", {"event": {"type": "session.idle", "properties": {}}}, None],
        [1, "experimental.chat.messages.transform", {}, {"messages": [None, {"parts": 7}]}],
        [1, "tool.execute.before", {"tool": "bash"}, None],
        [1, "tool.execute.after", {"tool": "edit"}, None],
        [1, "command.execute.before", {}, {"parts": None}],
        message("where?"),
        program="/nowhere/memtool",
    )
    assert attached(played["heard"][-1]) == []
    assert [step["error"] for step in played["heard"]] == [""] * len(played["heard"])
