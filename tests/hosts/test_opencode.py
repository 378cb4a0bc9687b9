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
  if (generation === 1) await first[name](input, output)
  else if (name === "event") {
    queue.push(input)
    wake?.()
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  else await hooks[name](input)
  heard.push({ output: output ?? null, input: input ?? null, ms: Date.now() - began })
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
        cwd=sandbox.path, env=sandbox.env, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def planted(unhurried: Sandbox) -> Sandbox:
    """A repository with two memories and the plugin."""
    sandbox = unhurried
    sandbox.memory("dec-a", "Sessions live in Redis.\n", title="Keep sessions in Redis")
    sandbox.memory("dec-b", "Deploys run on Tuesdays.\n", title="Deploys run on Tuesdays")
    sandbox.commit()
    install(sandbox.context(), "opencode")
    return sandbox


def message(text: str, session: str = "s1", id: str = "m1") -> list[Any]:
    return [
        1, "chat.message", {"sessionID": session, "messageID": id},
        {"message": {}, "parts": [{"type": "text", "text": text}]},
    ]  # fmt: skip


def system(session: str = "s1") -> list[Any]:
    return [1, "experimental.chat.system.transform", {"sessionID": session}, {"system": ["base"]}]


def test_the_first_generation_gets_primer_and_block(planted: Sandbox) -> None:
    """They stay in the system prompt of every request of the session, each once."""
    heard = play(
        planted,
        message("where do sessions live?"),
        system(),
        message("when do deploys run?", id="m2"),
        system(),
        system("s2"),
    )["heard"]
    first, second, other = (heard[n]["output"]["system"] for n in (1, 3, 4))
    assert first[0] == "base"
    assert "memtool remember" in first[1]
    assert "[dec-a@" in first[2]
    assert second[: len(first)] == first
    assert "[dec-b@" in second[-1]
    assert not any("[dec-" in text for text in other[2:])


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
    heard = play(
        planted,
        message("where do sessions live?"),
        [1, "experimental.session.compacting", {"sessionID": "s1"}, {"context": []}],
        system(),
        message("where do sessions live?", id="m2"),
        system(),
    )["heard"]
    assert not any("[dec-a@" in text for text in heard[2]["output"]["system"][2:])
    assert "[dec-a@" in heard[4]["output"]["system"][-1]


@pytest.mark.parametrize("answer", ["exit 3", "echo '{\"text\": 7}'", "echo no json", "sleep 20"])
def test_no_hook_ever_fails_a_turn(planted: Sandbox, answer: str) -> None:
    """Not without a program, an answer, or arguments; one that hangs is given up."""
    program = planted.path.parent / "program"
    program.write_text(f"#!/bin/sh\n{answer.replace('sleep', 'exec sleep')}\n")
    program.chmod(0o755)
    heard = play(planted, message("where?"), system(), program=str(program), limit_ms=500)["heard"]
    assert heard[-1]["output"] == {"system": ["base"]}
    assert heard[0]["ms"] < 10_000


def test_nonsense_is_survived(planted: Sandbox) -> None:
    """Whatever the host sends, and whether or not memtool is there."""
    played = play(
        planted,
        [1, "chat.message", None, None],
        [1, "chat.message", {"sessionID": "s1"}, {"parts": "no"}],
        [1, "event", {"event": None}, None],
        [1, "event", {"event": {"type": "session.idle", "properties": {}}}, None],
        message("where?"),
        system(),
        program="/nowhere/memtool",
    )
    assert played["heard"][-1]["output"] == {"system": ["base"]}
