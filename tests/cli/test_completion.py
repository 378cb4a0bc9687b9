"""Completion: what may stand at the end of a line, asked directly and by a real bash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.cli.completion import SAFE, candidates
from memtool.commands import VERBS, names

REDIS = "dec-2026-02-22-keep-sessions-in-redis-4k2p"
BILL = "sem-2026-03-02-bill-with-stripe-0001"


@pytest.fixture
def filled(sandbox: Sandbox) -> Sandbox:
    """A repository with two memories, a saved query and a session."""
    sandbox.memory(REDIS)
    sandbox.memory(BILL, type="semantic")
    sandbox.write(".memory/queries.toml", 'open = "is:candidate"\nred = "redis"\n')
    return sandbox


def words(sandbox: Sandbox, line: str, **options: bool) -> list[str]:
    return [one.word for one in candidates(line, sandbox.env, str(sandbox.path), **options)]


def test_every_verb_and_action_is_offered(sandbox: Sandbox) -> None:
    """The table of verbs is what there is; `help` takes the same."""
    assert words(sandbox, "memtool ") == [*names(), "help"]
    assert words(sandbox, "memtool help ") == [*names()]
    actions = [verb.name.split()[1] for verb in VERBS if verb.name.startswith("session ")]
    assert words(sandbox, "memtool session ") == actions
    for verb in VERBS:
        offered = words(sandbox, f"memtool {verb.name} --")
        assert {"--json", "--help"} <= set(offered), verb.name
        assert all(SAFE.issuperset(word) for word in offered)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("memtool sea", ["search"]),
        ("LANG=C /opt/bin/memtool -C . --json sea", ["search"]),
        ("memtool search --sort imp", ["importance"]),
        ("memtool search --sort=imp", ["--sort=importance"]),
        ("memtool search --explain x --exp", []),
        ("memtool new de", ["decision"]),
        ("memtool config search.acc", ["search.access"]),
        ("memtool show dec", [REDIS]),
        ("memtool show sessions", [REDIS]),
        ("memtool show 2026", []),
        ("memtool show x dec", []),
        ("memtool new decision T --supersedes sem", [BILL]),
        ("memtool forget sem", [BILL]),
        ("memtool list typ", ["type:"]),
        ("memtool list redis type:se", ["type:semantic"]),
        ("memtool list @o", ["@open"]),
        ("memtool list --limit ", []),
        ("memtool show 'dec", []),
        ("memtool -C ", []),
        ("memtool nosuch ", []),
        ("memtool", []),
        ("", []),
        ("git sta", []),
    ],
)
def test_a_line_is_completed_by_the_table_and_the_memories(
    filled: Sandbox, line: str, expected: list[str]
) -> None:
    """Verbs, options, values, settings, filters, saved queries, and ids by beginning or words."""
    assert words(filled, line) == expected


def test_a_shell_that_looks_inside_of_words_gets_ids_that_hold_it(filled: Sandbox) -> None:
    """fish finds `bill` in the middle of an id."""
    assert words(filled, "memtool pin bill", is_whole=True) == [BILL]
    assert words(filled, "memtool pin 2026", is_whole=True) == [REDIS, BILL]


def test_nothing_is_offered_where_nothing_can_be_read(sandbox: Sandbox, tmp_path: Path) -> None:
    """Outside of a repository there are no ids, but verbs; a broken file disturbs nobody."""
    outside = tmp_path / "outside"
    outside.mkdir()
    env = sandbox.env | {"GIT_CEILING_DIRECTORIES": str(tmp_path)}
    assert candidates("memtool show ", env, str(outside)) == []
    assert candidates("memtool sho", env, str(outside))[0].help
    assert candidates(f"memtool -C {outside} show ", env, str(sandbox.path)) == []
    sandbox.write(".memory/queries.toml", "=")
    sandbox.write(".memory/config.toml", "=")
    assert words(sandbox, "memtool list @") == words(sandbox, "memtool show x") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_printed_anywhere(sandbox: Sandbox, shell: str) -> None:
    """It needs no repository, asks memtool for the rest, and its shell finds no fault in it."""
    done = sandbox.run("completion", shell, "-C", "/")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"memtool completion {shell} --line" in done.stdout
    program = shutil.which(shell)
    if program:
        subprocess.run([program, "-n", "/dev/stdin"], input=done.stdout, text=True, check=True)


BASH = """
eval "$(memtool completion bash)"
ask() {
    COMP_LINE=$1 COMP_POINT=${#1} COMP_CWORD=$(($# - 2)) COMP_WORDS=("${@:2}")
    _memtool
    printf '%s\\n' "$1: ${COMPREPLY[*]}"
}
ask 'memtool sea' memtool sea
ask 'memtool search --sort imp' memtool search --sort imp
ask 'memtool search --sort=imp' memtool search --sort = imp
ask 'memtool list type:se' memtool list type : se
ask 'memtool list is:pin' memtool list is : pin
ask 'memtool list status:' memtool list status :
ask 'memtool show stripe' memtool show stripe
ask 'memtool show "; touch gone' memtool show '"; touch gone'
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_a_real_bash_gets_what_stands_behind_its_own_breaks(filled: Sandbox) -> None:
    """bash parts words at : and =, and replaces only what follows them."""
    here = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH],
        cwd=filled.path,
        env=filled.env | here,
        text=True,
        capture_output=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "memtool sea: search",
        "memtool search --sort imp: importance",
        "memtool search --sort=imp: importance",
        "memtool list type:se: semantic",
        "memtool list is:pin: pinned",
        "memtool list status:: candidate confirmed pinned deprecated archived deleted",
        f"memtool show stripe: {BILL}",
        'memtool show "; touch gone: ',
    ]
    assert not (filled.path / "gone").exists()
