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

if TYPE_CHECKING:
    from conftest import Sandbox

VERBS = ("search", "inject", "hook", "check", "silent hook")
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
    "silent hook": EVENT,
    "check": {"select"},  # git is a child that is waited for
}
PROMPT = "why do sessions expire in redis"
REPORT = """
import os, sys
began = frozenset(sys.modules)
leave = os._exit
def report(status):
    others = {name.partition(".")[0] for name in sys.modules.keys() - began} - {"memtool"}
    print(status, *sorted(others), file=sys.stderr, flush=True)
    leave(status)
os._exit = report
from memtool.cli.main import command
command()
"""


def loaded(sandbox: Sandbox, verb: str, session: str) -> tuple[set[str], bytes]:
    """Run a verb as a process; return the packages of others that it loads, and its answer."""
    event = json.dumps({"cwd": str(sandbox.path), "session_id": session, "prompt": PROMPT})
    calls = {
        "search": ["search", PROMPT],
        "inject": ["inject", "--prompt", PROMPT],
        "hook": ["hook", "claude", "user-prompt-submit", "--input", event],
        "silent hook": ["hook", "claude", "stop", "--input", event],
        "check": ["check", "--staged"],
    }
    env = {name: value for name, value in sandbox.env.items() if name != "MEMTOOL_SEED"}
    argv = [sys.executable, "-c", REPORT, *calls[verb]]
    done = subprocess.run(argv, cwd=sandbox.path, env=env, capture_output=True, check=True)
    status, *others = done.stderr.decode().splitlines()[-1].split()
    assert status == "0"
    return set(others), done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_a_hot_verb_loads_nothing_heavy(sandbox: Sandbox, verb: str) -> None:
    """What an agent or a commit waits for loads no heavy package."""
    for number in range(3):
        sandbox.memory(f"dec-{number}", f"Sessions expire in redis, {number} says.\n")
    sandbox.commit()
    loaded(sandbox, verb, "first")  # builds the index
    time.sleep(2.1)  # a file that changed within two seconds is read again
    loaded(sandbox, verb, "second")
    others, answer = loaded(sandbox, verb, "third")
    assert bool(answer) == (verb not in ("check", "silent hook"))
    assert not (others & HEAVY) - ALLOWED[verb]
