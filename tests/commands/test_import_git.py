from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.importing import history
from memtool.sessions import findings, promote, store
from memtool.sessions.model import PromotionPreset

DECISION = "Keep carts in Postgres\n\nDecision: carts stay in Postgres, as orders do"
CHOICE = (
    "Add the ledger\n\nAmounts are deliberately kept as whole cents, because no float adds them up "
    "exactly."
)
HARM = "Warming made the first request slower by two seconds on every deploy."


def change(sandbox: Sandbox, message: str, path: str = "shop.py") -> str:
    sandbox.write(path, message)
    return sandbox.commit(message)


def offered(sandbox: Sandbox, *args: str) -> list[str]:
    """Return what an import offers, in its order."""
    return [row["content"] for row in sandbox.json("import", "git", *args)["findings"]]


def test_commits_become_findings_that_wait(sandbox: Sandbox) -> None:
    """Each has title, statement, commit, date and files; none becomes a memory by itself."""
    sandbox.run("init")
    sandbox.commit("start")
    commit = change(sandbox, DECISION, "shop/carts.py")
    result = sandbox.json("import", "git")
    (row,) = result["findings"]
    assert row["kind"] == "decision"
    assert row["title"] == "Keep carts in Postgres"
    assert row["content"] == "carts stay in Postgres, as orders do."
    assert row["commit"] == commit
    assert row["date"].startswith("2026-02-01")
    assert row["files"] == ["shop/carts.py"]
    (waiting,) = sandbox.json("promote", "--list")["findings"]
    assert (waiting["id"], waiting["points"], waiting["why"]) == (
        row["id"],
        0,
        "waits for a user",
    )
    assert sandbox.json("list")["memories"] == []
    for preset in ("balanced", "aggressive"):
        assert sandbox.json("promote", "--preset", preset)["memories"] == []


def test_a_person_makes_a_candidate_of_one(sandbox: Sandbox) -> None:
    """It has the commit as its source and its date, and the files that are still there."""
    sandbox.run("init")
    sandbox.commit("start")
    sandbox.write("gone.py", "1")
    commit = change(sandbox, DECISION, "carts.py")
    (sandbox.path / "gone.py").unlink()
    sandbox.commit("remove")
    (row,) = sandbox.json("import", "git")["findings"]
    (made,) = sandbox.json("promote", "--finding", row["id"][:8], "--commit")["memories"]
    fields = sandbox.json("show", made["id"])
    assert fields["status"] == "candidate"
    assert fields["title"] == "Keep carts in Postgres"
    assert fields["source"] == [f"commit:{commit}"]
    assert fields["files"] == ["carts.py"]
    assert fields["timestamp"].startswith("2026-02-01")
    assert "session" not in fields or not fields["session"]
    assert commit[:7] in sandbox.run("why", made["id"]).stdout
    assert sandbox.run("promote", "--finding", row["id"]).returncode == 2
    assert sandbox.run("check").returncode == 0


def test_a_finding_is_offered_once(sandbox: Sandbox) -> None:
    """A second run adds nothing that was offered or dismissed, also of rewritten commits."""
    sandbox.run("init")
    change(sandbox, DECISION)
    change(sandbox, CHOICE)
    first = sandbox.json("import", "git")
    assert len(first["findings"]) == 2
    done = sandbox.run("promote", "--dismiss", first["findings"][0]["id"], "--reason", "old")
    assert done.returncode == 0, done.stderr
    again = sandbox.json("import", "git")
    assert (again["findings"], again["known"]) == ([], 2)
    sandbox.git("commit", "--amend", "--quiet", "--no-edit", "--reset-author")
    assert offered(sandbox) == []
    assert len(sandbox.json("promote", "git", "--list")["findings"]) == 1
    assert len(sandbox.json("promote", "git", "--dismissed")["findings"]) == 1
    sandbox.run("promote", "--reopen", first["findings"][0]["id"])
    assert len(sandbox.json("promote", "git", "--list")["findings"]) == 2


def test_a_purged_memory_takes_its_finding_along(sandbox: Sandbox) -> None:
    """Its words are listed no more, and are not offered again."""
    sandbox.run("init")
    change(sandbox, DECISION)
    (row,) = sandbox.json("import", "git")["findings"]
    (made,) = sandbox.json("promote", "--finding", row["id"], "--commit")["memories"]
    sandbox.run("forget", made["id"], "--reason", "It is too old.", "--commit")
    later = {"MEMTOOL_NOW": "2027-03-01T12:00:00Z"}
    done = sandbox.run("purge", "--apply", "--commit", "--cascade", **later)
    assert "still has the messages" not in done.stderr
    assert sandbox.json("promote", "--list", "--dismissed")["findings"] == []
    assert offered(sandbox) == []


def test_what_was_taken_back_is_not_offered(sandbox: Sandbox) -> None:
    """A revert hides what it reverts; a revert of a revert hides the revert, and brings it back."""
    change(sandbox, "start", "a")
    commit = change(sandbox, CHOICE)
    revert = change(
        sandbox, f'Revert "Add the ledger"\n\nThis reverts commit {commit}.\n\n{HARM}', "b"
    )
    assert offered(sandbox, "--dry-run") == [HARM]
    again = f'Revert "Revert "Add the ledger""\n\nThis reverts commit {revert}.'
    change(sandbox, again, "c")
    (content,) = offered(sandbox, "--dry-run")
    assert content.startswith("Amounts are deliberately")


def test_best_first_and_no_more_than_allowed(sandbox: Sandbox) -> None:
    """Decisions come before choices; what is beyond the limit is counted, and waits for room."""
    change(sandbox, DECISION)
    change(sandbox, CHOICE, "b")
    result = sandbox.json("import", "git", "--per-thousand", "1")
    assert [row["kind"] for row in result["findings"]] == ["decision"]
    assert result["further"] == 1
    assert sandbox.json("import", "git", "--per-thousand", "1")["findings"] == []
    assert [text[:7] for text in offered(sandbox)] == ["Amounts"]
    for number in ("0", "-1", "5000"):
        done = sandbox.run("import", "git", f"--per-thousand={number}")
        assert (done.returncode, "--per-thousand" in done.stderr) == (2, True)


def test_nothing_secret_is_stored(sandbox: Sandbox) -> None:
    """A statement with a secret is left out and counted; the journal has no word of it."""
    secret = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    change(sandbox, f"Deploy\n\nDecision: the deploy key is {secret} for all of us")
    change(sandbox, DECISION, "b")
    result = sandbox.json("import", "git")
    assert (len(result["findings"]), result["secret"]) == (1, 1)
    journal = findings.find_journal(store.open_sessions(sandbox.context()), findings.HISTORY)
    assert secret not in Path(journal).read_text()
    assert os.stat(journal).st_mode & 0o077 == 0


def test_commits_are_no_witnesses(sandbox: Sandbox) -> None:
    """The same words in a session and in a commit do not count as two sessions."""
    change(sandbox, "Carts\n\nDecision: From now on always use uv in this repository.")
    sandbox.run("session", "start", "--agent", "claude")
    sandbox.run(
        *("session", "add", "ses-", "--role", "user"),
        "From now on always use uv in this repository.",
    )
    sandbox.run("session", "end", "ses-")
    offered(sandbox)
    context = sandbox.context()
    sessions = store.open_sessions(context)
    learned = findings.read_all_learned(sessions, sessions.heads()[0])
    read = {finding.id: finding for finding in learned.findings}
    preset = PromotionPreset(2, 0.1, 1)
    judged = promote.judge(context, sessions, sessions.heads()[0], read, preset)
    assert all("two-sessions" not in row.signals for row in judged)
    assert sandbox.json("promote", "git", "--list")["findings"][0]["points"] == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nosuch",), 'no revision "nosuch"'),
        (("HEAD..HEAD",), "no commits in HEAD..HEAD"),
        (("HEAD..HEAD~1",), "no commits in HEAD..HEAD~1"),
        (("HEAD...HEAD~1",), "HEAD...HEAD~1 is no range"),
        (("--output=x",), "no option --output"),
        (("--", "--output=x"), 'no revision "--output=x"'),
        (("a", "b"), "b"),
    ],
)
def test_a_wrong_range_is_refused(sandbox: Sandbox, args: tuple[str, ...], message: str) -> None:
    """One sentence says what is wrong, and a hint what to do."""
    change(sandbox, "start")
    change(sandbox, DECISION)
    done = sandbox.run("import", "git", *args)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_empty_repository_has_no_commits(sandbox: Sandbox) -> None:
    """It is told so, and nothing is written."""
    done = sandbox.run("import", "git")
    assert done.returncode == 2
    assert "there is no commit yet" in done.stderr


def test_a_range_is_all_that_is_read(sandbox: Sandbox) -> None:
    """A alone means A..HEAD; merges are left out."""
    change(sandbox, DECISION)
    sandbox.git("checkout", "--quiet", "-b", "side")
    change(sandbox, CHOICE, "b")
    sandbox.git("checkout", "--quiet", "-")
    change(sandbox, "third", "c")
    sandbox.git("merge", "--quiet", "--no-ff", "-m", f"Merge\n\nDecision: {HARM}", "side")
    result = sandbox.json("import", "git", "HEAD~1", "--dry-run")
    assert (result["commits"], [row["kind"] for row in result["findings"]]) == (1, ["choice"])
    assert len(offered(sandbox, "--dry-run")) == 2


def test_a_shallow_clone_is_read_as_far_as_it_goes(sandbox: Sandbox, tmp_path: Path) -> None:
    """A note says so, and its first commit, which seems to add all files, names none."""
    change(sandbox, "start", "a.py")
    change(sandbox, DECISION, "b.py")
    clone = Sandbox(tmp_path / "clone", sandbox.env)
    subprocess.run(
        ["git", "clone", "--quiet", "--depth=1", f"file://{sandbox.path}", clone.path],
        check=True,
        env=sandbox.env,
    )
    done = clone.run("import", "git")
    assert "git fetch --unshallow" in done.stderr
    (row,) = clone.json("promote", "git", "--list")["findings"]
    assert row["files"] == []


def test_messages_of_any_encoding_are_read(sandbox: Sandbox) -> None:
    """Latin-1 with and without its header, and bytes that are no text."""
    sandbox.write("a", "1")
    sandbox.commit("start")
    tree = sandbox.git("rev-parse", "HEAD^{tree}").strip()
    parent = sandbox.git("rev-parse", "HEAD").strip()
    for header, number in (("", 1), ("encoding ISO-8859-1\n", 2), ("encoding nosuch\n", 3)):
        text = f"Größe\n\nDecision: die Größe {number} bleibt so".encode("latin-1")
        person = b"Ada <ada@example.org> 1770000000 +0000"
        data = b"tree %s\nparent %s\nauthor %s\ncommitter %s\n%s\n" % (
            *(part.encode() for part in (tree, parent)),
            person,
            person,
            header.encode(),
        )
        done = subprocess.run(
            ["git", "hash-object", "-t", "commit", "-w", "--stdin", "--literally"],
            input=data + text,
            cwd=sandbox.path,
            env=sandbox.env,
            capture_output=True,
            check=True,
        )
        parent = done.stdout.decode().strip()
    sandbox.git("update-ref", "HEAD", parent)
    assert sorted(offered(sandbox)) == [f"die Größe {number} bleibt so." for number in (1, 2, 3)]


def test_a_commit_that_is_too_long_is_left_out(sandbox: Sandbox) -> None:
    """The commits around it are read all the same."""
    change(sandbox, DECISION)
    sandbox.write("b", "1")
    sandbox.write("message", f"Squash\n\nDecision: many\n\n{'x ' * history.MAX_COMMIT_BYTES}")
    sandbox.git("add", "b")
    sandbox.git("commit", "--quiet", "--file", "message")
    change(sandbox, CHOICE, "c")
    assert len(offered(sandbox)) == 2


def test_a_large_commit_governs_no_file(sandbox: Sandbox) -> None:
    """A statement about a sweep over the tree names none of its files."""
    for number in range(history.MAX_FILES + 1):
        sandbox.write(f"part{number}.py", "1")
    sandbox.commit(DECISION)
    (row,) = sandbox.json("import", "git")["findings"]
    assert row["files"] == []


def test_the_text_shows_what_to_do_next(sandbox: Sandbox) -> None:
    """Each finding with its commit, the counts, and the two commands for a person."""
    commit = change(sandbox, DECISION)
    done = sandbox.run("import", "git")
    assert done.returncode == 0, done.stderr
    assert f"decision, {commit[:7]}, 2026-02-01" in done.stdout
    assert "1 commit: 1 offered" in done.stdout
    assert "memtool promote --finding f-" in done.stdout
    listed = sandbox.run("promote", "git", "--list").stdout
    assert f"decision, commit {commit[:7]}" in listed
