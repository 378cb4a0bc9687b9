from __future__ import annotations

import json
import shlex

import pytest
from conftest import Sandbox, make_memory

from memtool import installation
from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.sessions import consent
from memtool.store import config

NEWER = """\
format = 9
colour = "blue"

[search]
limit = 3
flavour = "sweet"

[inject]
trust = "notarised"

[ledger]
enabled = "sometimes"

[categories.decision]
ttl_days = 30

[categories.ritual]
ttl_days = 40

[categories.other]
mood = "good"
"""
SAID = ".memory has format 9, and this memtool knows formats up to 1"
WRITING = (
    "new semantic Anything --body Something",
    "remember 'Money is kept in cents.'",
    "supersede dec-a Other --body Otherwise",
    "confirm dec-a",
    "pin dec-a",
    "unpin dec-a",
    "deprecate dec-a",
    "archive dec-a",
    "forget dec-a --reason gone",
    "restore dec-a",
    "undo dec-a",
    "purge",
    "redact .memory",
    "init",
    "config search.limit 5",
    "auto off",
    "alias add db database",
    "resolve",
    "digest pattern",
    "curate",
    "promote",
    "sign dec-a",
    "maintain --apply",
    "import adr .",
    "migrate",
    "new semantic Anything --body Something --dry-run",
)


@pytest.fixture
def newer(sandbox: Sandbox) -> Sandbox:
    """A tree of a format from the future, with a memory that we know and one that we do not."""
    sandbox.write(".memory/config.toml", NEWER)
    sandbox.memory("dec-a", "Sessions live in Redis.\n", title="Sessions live in Redis")
    strange = document.write(make_memory("dec-b")).replace(b"type:", b"mood: good\ntype:")
    sandbox.write(".memory/decision/2026-02/dec-b.md", strange)
    sandbox.commit("begin")
    return sandbox


def test_settings_are_read_as_far_as_they_are_known(newer: Sandbox):
    """Unknown settings are skipped; an unknown trust level is high."""
    settings = newer.context().settings
    assert (settings.format, settings.is_newer) == (9, True)
    assert settings.values == {"search.limit": 3, "inject.trust": "signed"}
    assert settings.categories["decision"].ttl_days == 30
    assert settings.categories["ritual"].ttl_days == 40
    assert "other" not in settings.categories


@pytest.mark.parametrize("number", ["0", "-1", "1.5", '"2"', "true", "[]"])
def test_a_format_is_a_whole_number_from_one(number: str):
    """Anything else is refused, with the name of the file."""
    with pytest.raises(MemtoolError, match="format must be a whole number from 1") as caught:
        config.parse(f"format = {number}\n".encode(), ".memory/config.toml")
    assert caught.value.code == "config"


def test_the_format_of_today_may_be_named():
    """A file that says what the absence means is read as any."""
    parsed = config.parse(b"format = 1\n[search]\nlimit = 3\n", "config.toml")
    assert (parsed.format, parsed.values) == (1, {"search.limit": 3})
    with pytest.raises(MemtoolError, match="colour"):
        config.parse(b'format = 1\ncolour = "blue"\n', "config.toml")


@pytest.mark.parametrize("call", ["list", "search redis", "show dec-a", "status", "log", "stats"])
def test_it_is_read_with_one_note(newer: Sandbox, call: str):
    """Readable memories are answered, and one line names the problem and the remedy."""
    done = newer.run(*call.split())
    assert done.returncode in (0, 1)
    assert "dec-a" in done.stdout or call in ("status", "stats")
    assert done.stderr == (
        f"memtool: {SAID}: it reads this tree, but for 1 file that it cannot read, and writes "
        f"nothing; {installation.upgrade_command()}\n"
    )


@pytest.mark.parametrize("call", WRITING)
def test_every_writing_verb_refuses_in_one_sentence(newer: Sandbox, call: str):
    """Not a byte changes, and the hint is the command that helps."""
    done = newer.run(*shlex.split(call))
    assert (done.returncode, done.stderr) == (
        2,
        f"memtool: cannot write: {SAID}\nhint: {installation.upgrade_command()}\n",
    )
    assert newer.git("status", "--porcelain") == ""


def test_check_warns_and_refuses_only_what_is_wrong_in_any_format(newer: Sandbox):
    """Rules may be others there, secrets are secrets, and a claim stays what it was."""
    newer.memory("dec-c", "It has a mood.\n", **{"x-a": "b"})
    newer.git("add", ".memory")
    answer = newer.json("check")
    assert {(problem["code"], problem["severity"]) for problem in answer["problems"]} == {
        ("newer-format", "warning"),
        ("unknown-key", "warning"),
    }
    assert newer.run("check", "--staged").returncode == 0
    newer.memory("dec-a", "Sessions live in Postgres.\n", title="Sessions live in Redis")
    newer.git("add", ".memory")
    done = newer.run("check", "--staged")
    assert done.returncode == 1
    assert "silent-edit" in done.stdout


def test_hooks_answer_as_always(newer: Sandbox):
    """An agent is given what can be read, and nothing is said of formats."""
    newer.write(".memory/config.toml", NEWER.replace('trust = "notarised"', ""))
    event = {
        "session_id": "",
        "cwd": str(newer.path),
        "hook_event_name": "UserPromptSubmit",
        "prompt": "where do sessions live, in redis?",
    }
    done = newer.run("hook", "claude", "user-prompt-submit", stdin=json.dumps(event))
    assert (done.returncode, done.stderr) == (0, "")
    assert "dec-a" in done.stdout
    assert "format" not in done.stdout


def test_no_candidates_are_made_there(newer: Sandbox):
    """Promotion after each session is not tried if it would be refused."""
    newer.env["MEMTOOL_MANAGER"] = "on"
    assert not consent.is_promoting(newer.context())
    assert not consent.is_managing(newer.context())
    newer.write(".memory/config.toml", "")
    assert consent.is_managing(newer.context())


def test_the_merge_driver_merges_as_git(newer: Sandbox):
    """Keys of a newer format may mean something else: both sides are kept with git's markers."""
    base = document.write(make_memory("dec-a"))
    ours, theirs = (
        base.replace(b"confidence", b"status: %s\nconfidence" % status)
        for status in (b"pinned", b"archived")
    )
    for name, data in (("base", base), ("ours", ours), ("theirs", theirs)):
        newer.write(name, data)
    done = newer.run("merge-file", "base", "ours", "theirs")
    assert done.returncode == 1
    assert b"<<<<<<<" in (newer.path / "ours").read_bytes()
    newer.write(".memory/config.toml", "")
    newer.write("ours", ours)
    assert newer.run("merge-file", "base", "ours", "theirs").returncode == 0


def test_global_memories_of_a_newer_format_are_read(sandbox: Sandbox):
    """A project is not held up by the user's own tree, and that one is not written."""
    sandbox.run("remember", "--global", "Commit messages are in English.")
    place = sandbox.path.parent / "home/.local/memtool"
    (place / ".memory/config.toml").write_text("format = 9\n")
    refused = sandbox.run("remember", "--global", "Answers are short.")
    assert refused.returncode == 2
    assert "cannot write: .memory has format 9" in refused.stderr
    assert "English" in sandbox.run("inject", "--prompt", "English commit messages?").stdout
