"""Completion: what may stand at the end of a line, asked directly, by a real bash and a zsh."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.cli.completion import SAFE, find_completions
from memtool.cli.topics import TOPICS
from memtool.commands import VERBS, names

REDIS = "dec-2026-02-22-keep-sessions-in-redis-4k2p"
BILL = "sem-2026-03-02-bill-with-stripe-0001"
SHORT_REDIS, SHORT_BILL = "dec-4k2p", "sem-0001"


@pytest.fixture
def filled(sandbox: Sandbox) -> Sandbox:
    """A repository with two memories, a saved query and a session."""
    sandbox.memory(REDIS, title="Keep sessions in Redis")
    sandbox.memory(BILL, type="semantic", title="Bill with Stripe")
    sandbox.write(".memory/queries.toml", 'open = "is:candidate"\nred = "redis"\n')
    return sandbox


def words(sandbox: Sandbox, line: str, **options: bool) -> list[str]:
    return [
        completion.word
        for completion in find_completions(line, sandbox.env, str(sandbox.path), **options)
    ]


def run_shell(sandbox: Sandbox, *command: str) -> list[str]:
    """Run a shell in which `memtool` is on PATH, and return its lines."""
    here = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        command,
        cwd=sandbox.path,
        env=sandbox.env | here,
        text=True,
        capture_output=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_every_verb_and_action_is_offered(sandbox: Sandbox) -> None:
    """The table of verbs is what there is; `help` takes topics as well."""
    assert words(sandbox, "memtool ") == [*names(), "help"]
    assert words(sandbox, "memtool help ") == [*names(), *TOPICS]
    assert words(sandbox, "memtool help exi") == ["exit-codes"]
    assert words(sandbox, "memtool help --a") == ["--all"]
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
        ("memtool config search.acc", ["search.access_boost"]),
        ("memtool show dec", [SHORT_REDIS]),
        ("memtool show dec-2026", [REDIS]),
        ("memtool show sessions", [SHORT_REDIS]),
        ("memtool show 2026", [SHORT_REDIS, SHORT_BILL]),
        ("memtool show nosuch", []),
        ("memtool show x dec", []),
        ("memtool new decision T --supersedes sem", [SHORT_BILL]),
        ("memtool forget sem", [SHORT_BILL]),
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
    """Verbs, options, values, settings, filters, saved queries, and ids by beginning or words.

    An id is short unless more than the short one was typed.
    """
    assert words(filled, line) == expected


def test_a_word_of_a_title_gives_what_is_in_use_first(filled: Sandbox) -> None:
    """A memory that was replaced may still be meant, but rarely is."""
    new = "sem-2026-03-03-bill-with-stripe-or-paypal-0002"
    filled.memory(new, type="semantic", title="Bill with Stripe or PayPal", supersedes=(BILL,))
    assert words(filled, "memtool show stripe") == ["sem-0002", SHORT_BILL]


@pytest.mark.parametrize(
    ("shell", "title"),
    [("bash", ""), ("zsh", "\tBill with Stripe"), ("fish", "\tBill with Stripe")],
)
def test_a_shell_that_shows_descriptions_gets_titles(
    filled: Sandbox, shell: str, title: str
) -> None:
    """After a tab; bash would insert them."""
    done = filled.run("completion", shell, "--line", "memtool show sem-")
    assert done.stdout == f"{SHORT_BILL}{title}\n"


def test_a_shell_that_looks_inside_of_words_gets_ids_that_hold_it(filled: Sandbox) -> None:
    """fish finds `bill` in the middle of an id."""
    assert words(filled, "memtool pin bill", is_whole=True) == [BILL]
    assert words(filled, "memtool pin 2026", is_whole=True) == [REDIS, BILL]


def test_nothing_is_offered_where_nothing_can_be_read(sandbox: Sandbox, tmp_path: Path) -> None:
    """Outside a repository verbs are offered but no ids; a broken file is ignored."""
    outside = tmp_path / "outside"
    outside.mkdir()
    env = sandbox.env | {"GIT_CEILING_DIRECTORIES": str(tmp_path)}
    assert find_completions("memtool show ", env, str(outside)) == []
    assert find_completions("memtool sho", env, str(outside))[0].help
    assert find_completions(f"memtool -C {outside} show ", env, str(sandbox.path)) == []
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
    lines = run_shell(filled, "bash", "--norc", "-c", BASH)
    assert lines == [
        "memtool sea: search",
        "memtool search --sort imp: importance",
        "memtool search --sort=imp: importance",
        "memtool list type:se: semantic",
        "memtool list is:pin: pinned",
        "memtool list status:: candidate confirmed pinned deprecated archived deleted",
        f"memtool show stripe: {SHORT_BILL}",
        'memtool show "; touch gone: ',
    ]
    assert not (filled.path / "gone").exists()


ZSH = """
typeset -A compstate
compadd() { print -r -- "${(@q+)@}"; (( $#shown )) && print -rl -- $shown }
_files() { print files }
eval "$(memtool completion zsh)"
ask() {
    local -a words=("$@")
    local PREFIX=${@[-1]} CURRENT=$#
    compstate[insert]=unambiguous
    print -r -- "$*:"
    _memtool
    print -r -- $compstate[insert]
}
ask memtool list typ
ask memtool show stripe
ask memtool show sem-
ask memtool show 2026
ask memtool show nosuch
"""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
def test_a_real_zsh_gets_short_ids_with_titles(filled: Sandbox) -> None:
    """TAB goes through the ids that a word means: they have no beginning in common with it."""
    lines = run_shell(filled, "zsh", "-f", "-c", ZSH)
    closed = "-U -V memtool -l -d shown --"
    redis, bill = f"{SHORT_REDIS}  Keep sessions in Redis", f"{SHORT_BILL}  Bill with Stripe"
    assert lines == [
        "memtool list typ:",
        "-S '' -- type:",
        "unambiguous",
        "memtool show stripe:",
        f"{closed} {SHORT_BILL}",
        bill,
        "unambiguous",
        "memtool show sem-:",
        f"{closed} {SHORT_BILL}",
        bill,
        "unambiguous",
        "memtool show 2026:",
        f"{closed} {SHORT_REDIS} {SHORT_BILL}",
        redis,
        bill,
        "menu",
        "memtool show nosuch:",
        "files",
        "unambiguous",
    ]
