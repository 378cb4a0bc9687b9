"""Hot verbs load little: an agent waits for them at every prompt, a person at every commit.

Each module costs a start about as much as reading two memories does, and some of the standard
library's cost more than all of ours. Which modules they are may change, so there are only numbers.
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

MOST = {"search": 43, "inject": 51, "hook": 56, "check": 20}
"""How many modules of ours a verb may load; packages are not counted."""
HEAVY = frozenset({
    "argparse", "ast", "asyncio", "collections", "contextlib", "copy", "dataclasses",
    "datetime", "difflib", "enum", "functools", "hashlib", "importlib", "inspect", "json",
    "logging", "operator", "pathlib", "pickle", "random", "re", "select", "shutil", "signal",
    "socket", "sqlite3", "string", "struct", "subprocess", "tempfile", "textwrap", "threading",
    "tokenize", "tomllib", "traceback", "types", "typing", "unicodedata", "urllib", "warnings",
    "weakref",
    "bm25s", "frontmatter", "git", "markdown_it", "numpy", "tomlkit", "yaml",
})  # fmt: skip
"""Of the standard library and the packages we depend on, what a hot verb does not import."""
ALLOWED = {
    # What json needs, and what the module needs that owns the alarm.
    "hook": {"collections", "enum", "functools", "json", "operator", "re", "select", "types"},
    "check": {"select"},  # git is a child that is waited for
}
PROMPT = "why do sessions expire in redis"
REPORT = """
import os, sys
began = frozenset(sys.modules)
leave = os._exit
def report(status):
    ours = [name for name, module in sys.modules.items()
            if name.startswith("memtool.") and not hasattr(module, "__path__")]
    others = {name.partition(".")[0] for name in sys.modules.keys() - began} - {"memtool"}
    print(status, len(ours), *sorted(others), file=sys.stderr, flush=True)
    leave(status)
os._exit = report
from memtool.cli.main import command
command()
"""


def loaded(sandbox: Sandbox, verb: str, session: str) -> tuple[int, set[str], bytes]:
    """Run a verb as a process; return how many modules of ours it loads, the others, its answer."""
    event = json.dumps({"cwd": str(sandbox.path), "session_id": session, "prompt": PROMPT})
    calls = {
        "search": ["search", PROMPT],
        "inject": ["inject", "--prompt", PROMPT],
        "hook": ["hook", "claude", "user-prompt-submit", "--input", event],
        "check": ["check", "--staged"],
    }
    env = {name: value for name, value in sandbox.env.items() if name != "MEMTOOL_SEED"}
    argv = [sys.executable, "-c", REPORT, *calls[verb]]
    done = subprocess.run(argv, cwd=sandbox.path, env=env, capture_output=True, check=True)
    status, ours, *others = done.stderr.decode().splitlines()[-1].split()
    assert status == "0"
    return int(ours), set(others), done.stdout


@pytest.mark.parametrize("verb", MOST)
def test_a_hot_verb_loads_few_modules_and_nothing_heavy(sandbox: Sandbox, verb: str) -> None:
    """What an agent or a commit waits for loads a bounded part of memtool and no heavy library."""
    for number in range(3):
        sandbox.memory(f"dec-{number}", f"Sessions expire in redis, {number} says.\n")
    sandbox.commit()
    loaded(sandbox, verb, "first")  # builds the index
    time.sleep(2.1)  # a file that changed within two seconds is read again
    loaded(sandbox, verb, "second")
    ours, others, answer = loaded(sandbox, verb, "third")
    assert bool(answer) == (verb != "check")
    assert ours <= MOST[verb]
    assert not (others & HEAVY) - ALLOWED.get(verb, set())
