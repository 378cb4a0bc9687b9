from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.commands import _record
from memtool.commands.show import show
from memtool.store import ledger, usage_log
from memtool.store.usage_log import Note

CONFIG = ".memory/config.toml"


def notes(sandbox: Sandbox) -> list[Note]:
    """Return the notes in the spool of a sandbox."""
    place = sandbox.path / ".git" / "memtool" / "spool" / "notes"
    return list(usage_log.read_notes(place.read_bytes())) if place.exists() else []


def test_what_was_shown_is_noted_with_verb_and_time(sandbox: Sandbox) -> None:
    """search, inject and show leave the ids that they showed, every verb how long it took."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n", title="Sessions")
    sandbox.commit()
    sandbox.run("search", "redis")
    sandbox.run("inject", "--prompt", "where do sessions live, redis?", "--session", "s1")
    sandbox.run("show", "dec-a")
    sandbox.run("list")
    answers = notes(sandbox)
    assert [(answer.verb, [item.id for item in answer.items]) for answer in answers] == [
        ("search", ["dec-a"]),
        ("inject", ["dec-a"]),
        ("show", ["dec-a"]),
        ("list", []),
    ]
    assert all(0 < answer.elapsed_ms < 60_000 for answer in answers)
    injection = answers[1]
    assert (injection.session, injection.items[0].tier) == ("s1", "retrieval")
    assert injection.prompt == _record.hash_prompt("where do sessions live, redis?")
    assert "recency" in injection.items[0].reason


def test_saying_a_memory_again_counts_as_an_access(sandbox: Sandbox) -> None:
    """A memory that is strengthened instead of written again was used."""
    statement = "Deploys run on Tuesdays only."
    assert sandbox.run("remember", statement).returncode == 0
    (twin,) = sandbox.json("list")["memories"]
    again = sandbox.run("remember", statement)
    assert (again.returncode, "says this already" in again.stderr) == (0, True)
    assert sandbox.json("stats")["most_accessed"][0]["id"] == twin["id"]


def test_the_prompt_is_noted_as_a_hash_only(sandbox: Sandbox) -> None:
    """No word of what was asked reaches the disk, from an argument or from stdin."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    sandbox.run("inject", "--prompt", "hunter2 redis sessions")
    sandbox.run("inject", "--prompt", "-", stdin="hunter2 redis sessions\n")
    sandbox.run("search", "hunter2", "redis")
    sandbox.run("stats")
    stored = [
        path.read_bytes()
        for path in (sandbox.path / ".git" / "memtool").rglob("*")
        if path.is_file()
    ]
    assert not any(b"hunter2" in data for data in stored)
    with ledger.open_ledger(str(sandbox.path / ".git" / "memtool")) as usage:
        first, other = usage.injections("dec-a", 0)
    assert first.prompt == other.prompt != ""


def stored_bytes(sandbox: Sandbox) -> bytes:
    """Return the bytes of all private files, without those of the search index."""
    folder = sandbox.path / ".git" / "memtool"
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_equal_searches_without_a_hit_count_as_one(sandbox: Sandbox) -> None:
    """By the hash of the query; a search with a hit leaves none."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    for query in ("zebra", "zebra", "quagga", "redis"):
        sandbox.run("search", query)
    rows = sandbox.json("stats")["missed"]
    assert [(row["words"], row["count"]) for row in rows] == [("", 2), ("", 1)]
    assert rows[0]["hash"] == _record.hash_prompt("zebra")


def test_words_of_searches_without_a_hit_are_kept_if_the_user_says_so(sandbox: Sandbox) -> None:
    """Redacted before they reach the disk, with how often and when; those with a hit are not."""
    token = "ghp_" + "k7Qm2Zx9Lw4Tn8Vb3Rj6Hd5Pf1Sg0Yc2AeUi"
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    assert sandbox.run("--global", "config", "ledger.words", "on").returncode == 0
    for query in ("zebra  crossing", "zebra crossing", f"quagga {token}", "redis sessions"):
        assert sandbox.run("search", query).returncode == 0
    assert token.encode() not in stored_bytes(sandbox)
    (first, other) = sandbox.json("stats")["missed"]
    assert (first["words"], first["count"]) == ("zebra crossing", 2)
    assert (first["hash"], first["last"]) == ("", "2026-03-01T12:00:00Z")
    assert other["words"].startswith("quagga [")
    assert token.encode() not in stored_bytes(sandbox)
    text = sandbox.run("stats").stdout
    assert "Searches without a hit:\n  zebra crossing" in text


def test_words_go_when_the_user_says_so(sandbox: Sandbox) -> None:
    """With the next look at the statistics, from the ledger and from the bytes of its files."""
    sandbox.memory("dec-a")
    sandbox.run("--global", "config", "ledger.words", "on")
    sandbox.run("search", "zebracrossing")
    sandbox.run("stats")
    sandbox.run("search", "zebracrossing")  # this one still waits in the spool
    assert b"zebracrossing" in stored_bytes(sandbox)
    sandbox.run("--global", "config", "ledger.words", "off")
    assert [row["words"] for row in sandbox.json("stats")["missed"]] == [""]
    assert b"zebracrossing" not in stored_bytes(sandbox)


def test_a_project_keeps_no_words_of_its_users(sandbox: Sandbox) -> None:
    """Only the user's own settings say so."""
    sandbox.memory("dec-a")
    sandbox.write(CONFIG, '[ledger]\nwords = "on"\n')
    sandbox.run("search", "zebracrossing")
    sandbox.run("stats")
    assert b"zebracrossing" not in stored_bytes(sandbox)


def test_equal_prompts_have_equal_hashes_and_none_has_none() -> None:
    """Space around a prompt does not make it another one."""
    assert _record.hash_prompt(" a\n") == _record.hash_prompt("a") != _record.hash_prompt("b")
    assert len(_record.hash_prompt("a\ud800")) == 2 * _record.HASH_BYTES
    assert _record.hash_prompt(" \n") == ""


def test_the_tree_stays_clean(sandbox: Sandbox) -> None:
    """Git sees nothing of it, in the worktree or in a linked one."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("worktree", "add", "--quiet", "../linked")
    sandbox.run("show", "dec-a")
    sandbox.run("show", "dec-a", cwd=sandbox.path.parent / "linked")
    sandbox.run("stats")
    assert sandbox.git("status", "--porcelain", "--ignored") == ""
    with ledger.open_ledger(str(sandbox.path / ".git" / "memtool")) as usage:
        assert [row.count for row in usage.most_shown("show", 1)] == [2]


@pytest.mark.parametrize("how", ["variable", "setting"])
def test_noting_can_be_switched_off(sandbox: Sandbox, how: str) -> None:
    """By a variable or a setting; then nothing is written at all."""
    sandbox.memory("dec-a")
    if how == "setting":
        sandbox.write(CONFIG, "[ledger]\nenabled = false\n")
    env = {"MEMTOOL_NO_LEDGER": "1"} if how == "variable" else {}
    assert sandbox.run("show", "dec-a", **env).returncode == 0
    assert not (sandbox.path / ".git" / "memtool" / "spool").exists()


@pytest.mark.parametrize("obstacle", ["file", "link", "folder"])
def test_where_no_note_can_be_kept_the_answer_is_the_same(sandbox: Sandbox, obstacle: str) -> None:
    """Whatever prevents the note, the answer is the same byte for byte, without a message."""
    sandbox.memory("dec-a")
    sandbox.commit()
    expected = sandbox.run("show", "dec-a", MEMTOOL_NO_LEDGER="1")
    place = sandbox.path / ".git" / "memtool" / "spool"
    place.parent.mkdir(exist_ok=True)
    if obstacle == "file":
        place.write_text("")
    elif obstacle == "link":
        place.symlink_to("/dev/null")
    else:
        (place / "notes").mkdir(parents=True)
    done = sandbox.run("show", "dec-a")
    assert (done.returncode, done.stdout, done.stderr) == (0, expected.stdout, "")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_git_directory_means_no_notes(sandbox: Sandbox) -> None:
    """Without permission to write, the verb answers as ever, and says what that costs."""
    sandbox.memory("dec-a")
    sandbox.commit()
    (sandbox.path / ".git").chmod(0o555)
    done = sandbox.run("show", "dec-a")
    (sandbox.path / ".git").chmod(0o755)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "Title of dec-a  dec-a@77e1be3")
    (note,) = done.stderr.splitlines()
    assert note.startswith("memtool: the search index is not stored: ")
    assert not (sandbox.path / ".git" / "memtool").exists()


def test_an_error_is_not_noted(sandbox: Sandbox) -> None:
    """Only answers count."""
    sandbox.memory("dec-a")
    assert sandbox.run("show", "dec-zzz").returncode == 2
    assert notes(sandbox) == []


def test_the_library_notes_nothing(sandbox: Sandbox) -> None:
    """A program that calls the verbs as functions leaves no trace of its questions."""
    sandbox.memory("dec-a")
    show(sandbox.context(), "dec-a")
    assert notes(sandbox) == []


def test_a_full_spool_is_taken_over(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to ask for statistics to keep the file of notes small; hot verbs leave it."""
    sandbox.memory("dec-a")
    workspace = sandbox.context()
    monkeypatch.setitem(_record.MAX_NOTES_BYTES, False, 1)
    _record.record_answer(workspace, "check", None, 1.0)
    assert len(notes(sandbox)) == 1
    _record.record_answer(workspace, "show", show(workspace, "dec-a"), 1.0)
    assert notes(sandbox) == []
    with ledger.open_ledger(workspace.repository.cache_dir) as usage:
        assert [row.id for row in usage.most_shown("", 1)] == ["dec-a"]


def test_a_ledger_that_cannot_be_written_leaves_the_notes(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that cannot be opened costs no answer and no note."""
    sandbox.memory("dec-a")
    workspace = sandbox.context()
    os.makedirs(os.path.join(workspace.repository.cache_dir, ledger.NAME))
    monkeypatch.setitem(_record.MAX_NOTES_BYTES, False, 1)
    _record.record_answer(workspace, "show", show(workspace, "dec-a"), 1.0)
    assert len(usage_log.list_sealed(workspace.repository.cache_dir)) == 1


@pytest.mark.slow
def test_many_processes_note_at_once(sandbox: Sandbox) -> None:
    """Answers that are given at the same time are all noted, once."""
    sandbox.memory("dec-a")
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "memtool", "show", "dec-a"],
            cwd=sandbox.path,
            env=sandbox.env,
            stdout=subprocess.DEVNULL,
        )
        for _number in range(16)
    ]
    assert {process.wait() for process in running} == {0}
    assert len(notes(sandbox)) == 16


def test_noting_imports_neither_a_database_nor_json(sandbox: Sandbox) -> None:
    """The cost at every prompt stays low."""
    sandbox.memory("dec-a")
    script = (
        "import sys; from memtool.commands import _record as noting; "
        "from memtool.store.context import Context; "
        "before = set(sys.modules); ws = Context.at('.'); "
        "noting.record_answer(ws, 'list', None, 1.0); "
        "heavy = {'sqlite3', '_sqlite3', 'json', 'hashlib', 're'}; "
        "print(sorted(heavy & set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=sandbox.path,
        env=sandbox.env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
    assert Path(sandbox.path, ".git", "memtool", "spool", "notes").exists()
