"""Hot verbs load no heavy package: an agent waits for them at each prompt, a person at each commit.

Some modules of the standard library cost a start more than all of ours together. What a start takes
as a whole is measured by `bench/cold.py`, beside a bare interpreter in the same run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from memtool.store import facts

if TYPE_CHECKING:
    from typing import Any

    from conftest import Sandbox

VERBS = ("search", "inject", "hook", "hook of a command", "check", "silent hook")
SILENT = ("check", "hook of a command", "silent hook")
HEAVY = frozenset(
    {
        "argparse",
        "ast",
        "asyncio",
        "collections",
        "contextlib",
        "copy",
        "dataclasses",
        "datetime",
        "difflib",
        "enum",
        "functools",
        "hashlib",
        "importlib",
        "inspect",
        "json",
        "logging",
        "operator",
        "pathlib",
        "pickle",
        "random",
        "re",
        "select",
        "shutil",
        "signal",
        "socket",
        "sqlite3",
        "string",
        "struct",
        "subprocess",
        "tempfile",
        "textwrap",
        "threading",
        "tokenize",
        "tomllib",
        "traceback",
        "types",
        "typing",
        "unicodedata",
        "urllib",
        "warnings",
        "weakref",
        "bm25s",
        "frontmatter",
        "git",
        "markdown_it",
        "numpy",
        "tomlkit",
        "yaml",
    }
)
"""Of the standard library and the packages we depend on, what a hot verb does not import."""
DATABASE = {
    "collections",
    "datetime",
    "functools",
    "operator",
    "sqlite3",
    "types",
    "warnings",
}
"""What facts about commits are read with: those who look at no memory do without."""
EVENT = {"collections", "enum", "functools", "json", "operator", "re", "select", "types"}
"""What json needs, and what the module needs that owns the alarm."""
ALLOWED = {
    "search": DATABASE,
    "inject": DATABASE,
    "hook": DATABASE | EVENT,
    "hook of a command": DATABASE | EVENT,
    "silent hook": EVENT,
    "check": {"select"},  # git is a child that is waited for
}
FOR_PEOPLE = {"memtool.cli.pager", "memtool.memory.short_ids", "memtool.store.provenance"}
"""Modules of ours that only text for people needs: a terminal, short ids, trust."""
PROMPT = "why do sessions expire in redis"
REPORT = """
import os, sys
began = frozenset(sys.modules)
leave = os._exit
def report(status):
    others = {
        name if name.startswith("memtool.") else name.partition(".")[0]
        for name in sys.modules.keys() - began
    }
    print(status, *sorted(others), file=sys.stderr, flush=True)
    leave(status)
os._exit = report
from memtool.cli.main import command
command()
"""


def loaded(sandbox: Sandbox, verb: str, session: str) -> tuple[set[str], bytes]:
    """Run a verb as a process; return the packages and modules that it loads, and its answer."""
    sent = {"cwd": str(sandbox.path), "session_id": session, "prompt": PROMPT}
    event = json.dumps(sent)
    command = json.dumps(sent | {"tool_name": "Bash", "tool_input": {"command": "make | cat a"}})
    calls = {
        "search": ["search", PROMPT],
        "inject": ["inject", "--prompt", PROMPT],
        "hook": ["hook", "claude", "user-prompt-submit", "--input", event],
        "hook of a command": ["hook", "claude", "pre-command", "--input", command],
        "silent hook": ["hook", "claude", "stop", "--input", event],
        "check": ["check", "--staged"],
    }
    env = {name: value for name, value in sandbox.env.items() if name != "MEMTOOL_SEED"}
    argv = [sys.executable, "-c", REPORT, *calls[verb]]
    done = subprocess.run(argv, cwd=sandbox.path, env=env, capture_output=True, check=True)
    status, *modules = done.stderr.decode().splitlines()[-1].split()
    assert status == "0"
    return set(modules), done.stdout


def test_a_hot_verb_loads_nothing_heavy(sandbox: Sandbox) -> None:
    """An agent or a commit does not wait for a heavy package."""
    for number in range(3):
        sandbox.memory(f"dec-{number}", f"Sessions expire in redis, {number} says.\n")
    sandbox.commit()
    loaded(sandbox, "search", "first")  # builds the index
    time.sleep(2.1)  # a file that changed within two seconds is read again
    for verb in VERBS:
        loaded(sandbox, verb, "second")
        modules, answer = loaded(sandbox, verb, "third")
        assert bool(answer) == (verb not in SILENT), verb
        assert not (modules & HEAVY) - ALLOWED[verb], verb
        assert "memtool.cli.pager" not in modules, verb
        assert bool(answer) or not modules & FOR_PEOPLE, verb


@pytest.mark.parametrize("verb", ["search", "inject"])
def test_more_hits_are_not_asked_for_one_by_one(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """Trust and drift of forty hits take a few transactions, not one for each of them."""
    for number in range(40):
        sandbox.memory(f"dec-{number:02}", f"Sessions expire in redis, {number} says.\n")
        sandbox.memory(f"err-{number:02}", f"Redis sessions, {number}.\n", files=("src/a.py",))
    sandbox.write("src/a.py", "a = 1\n")
    sandbox.commit()
    argv = ["search", PROMPT] if verb == "search" else ["inject", "--prompt", PROMPT]
    answer = sandbox.run(*argv).stdout  # builds the index and the rows
    transactions = 0
    read = facts.read

    def count(*args: Any) -> Any:
        nonlocal transactions
        transactions += 1
        return read(*args)

    monkeypatch.setattr(facts, "read", count)
    assert sandbox.run(*argv).stdout == answer
    assert 0 < transactions <= 8
