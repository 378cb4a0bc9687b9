"""The programs that `docs/learning.md` names for `extraction.command`, by its own command lines."""

from __future__ import annotations

import json
import shlex
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from commands.test_promote import session
from conftest import Sandbox
from sessions.model_program import RAW

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (Path(__file__).parents[2] / "docs" / "learning.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line)
    for line in PAGE.splitlines()
    if line.startswith("memtool --global config extraction.command")
]
SCRIPT = PAGE.partition("```python\n")[2].partition("```")[0]
SAID = "Turns out the webhook signature is computed over the raw body, not the JSON."
CONTENT = RAW["content"]
STUB = """#!{python}
import json, os, sys
with open({record!r}, "w", encoding="utf-8") as file:
    json.dump([sys.argv[1:], sys.stdin.read(), os.environ.get("MEMTOOL_OFF")], file)
print({answer!r})
"""
"""A program that writes down how it was called, and answers."""
FORMS = {
    "claude": "{}",
    "codex": "{}\n",
    "gemini": "```json\n{}\n```",
    "ollama": "{}\n\n",
    "llm": "Here are the findings:\n\n{}\n",
}
"""How each of the programs prints what its model answers."""


def answer_with(*rows: dict[str, Any]) -> str:
    return json.dumps({"findings": [RAW | row for row in rows]})


@pytest.fixture
def user(sandbox: Sandbox) -> Sandbox:
    """A user with settings of their own, and a folder that is first on the path."""
    folder = sandbox.path.parent / "bin"
    folder.mkdir()
    sandbox.env["MEMTOOL_GLOBAL"] = str(sandbox.path.parent / "global")
    sandbox.env["PATH"] = f"{folder}:{sandbox.env['PATH']}"
    return sandbox


def put(user: Sandbox, name: str, text: str) -> None:
    path = user.path.parent / "bin" / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def put_stub(user: Sandbox, name: str, answer: str) -> Path:
    record = user.path.parent / f"{name}.json"
    put(user, name, STUB.format(python=sys.executable, record=str(record), answer=answer))
    return record


def read_with(user: Sandbox, command: list[str], *texts: str) -> list[dict[str, Any]]:
    """Set a command line of the page, let the program read a session, and list the findings."""
    done = user.run(*command[1:])
    assert done.returncode == 0, done.stderr
    session(user, *texts)
    done = user.run("promote")
    assert "were used instead" not in done.stderr
    rows: list[dict[str, Any]] = user.json("promote", "--list")["findings"]
    return rows


def find_program(command: list[str]) -> str:
    return command[-1].split(",")[0]


def test_the_page_names_three_ways_without_a_key():
    """The user's agent in print mode, a model of the machine, a script."""
    assert [find_program(command) for command in COMMANDS] == [*FORMS, "ask-local-model"]


@pytest.mark.parametrize("command", COMMANDS[:-1], ids=find_program)
def test_a_documented_program_reads_sessions(user: Sandbox, command: list[str]):
    """It gets its own words and the prompt on stdin, and what it finds is marked as its own."""
    name = find_program(command)
    record = put_stub(user, name, FORMS[name].format(answer_with({})))
    (row,) = read_with(user, command, SAID)
    assert (row["content"], row["reader"]) == (CONTENT, "model")
    arguments, prompt, off = json.loads(record.read_text(encoding="utf-8"))
    assert [name, *arguments] == command[-1].split(",")
    assert (SAID in prompt, off) == (True, "1")


class ChatHandler(BaseHTTPRequestHandler):
    """A server with the chat interface of OpenAI, whose model finds one statement."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_whole = self.path == "/v1/chat/completions" and SAID in request["messages"][0]["content"]
        message = {"role": "assistant", "content": answer_with({}) if is_whole else "what?"}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"choices": [{"message": message}]}).encode())

    def log_message(self, *_args: object) -> None:
        """Print nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a running model server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), ChatHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_the_documented_script_asks_a_model_server(user: Sandbox, port: int):
    """It works as printed on the page, but for the port."""
    assert "localhost:8080" in SCRIPT
    put(user, "ask-local-model", SCRIPT.replace("localhost:8080", f"127.0.0.1:{port}"))
    (row,) = read_with(user, COMMANDS[-1], SAID)
    assert (row["content"], row["reader"]) == (CONTENT, "model")


def test_what_a_model_proposes_passes_the_vetoes_of_the_rules(user: Sandbox):
    """A secret that it puts together of harmless messages, and a long tale, are no findings."""
    secret = "k9Xq2" + "Lm4Zt8"
    texts = (SAID, "The password of the database is in the vault.", f"Name the branch {secret}.")
    rows = (
        {},
        {"content": f"The password of the database is {secret}.", "messages": [2, 3]},
        {"content": f"{CONTENT} " * 6},
    )
    put_stub(user, "claude", answer_with(*rows))
    (row,) = read_with(user, COMMANDS[0], *texts)
    assert row["content"] == CONTENT
    findings = next((user.path / ".git/memtool/sessions").glob("*/findings.jsonl"))
    assert secret not in findings.read_text(encoding="utf-8")
