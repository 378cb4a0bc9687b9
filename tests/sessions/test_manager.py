"""The manager: plans that wait after a session, and hosts that go on in a session of their own."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.sessions import consent, manager
from memtool.sessions.transcripts import markup

FACT = "Turns out the webhook signature is computed over the raw body, not the JSON."
SAID = "The webhook signature is computed over the raw body."
FOUND = {
    "content": SAID,
    "category": "discovery",
    "confidence": 0.92,
    "importance": 0.8,
    "messages": [1],
}
HOST = """\
#!{python}
import json, os, sys
given = sys.stdin.read()
def line(role, content, uuid):
    return json.dumps({{"type": role, "uuid": uuid, "sessionId": "s-1", "message":
                       {{"role": role, "content": content}}}}) + "\\n"
answer = json.dumps({{"findings": {found}}})
with open({transcript!r}, "a") as file:
    file.write(line("user", given, "u-asked") + line("assistant", answer, "a-asked"))
with open({asked!r}, "w") as file:
    json.dump([sys.argv[1:], os.getcwd(), os.environ["MEMTOOL_OFF"], given], file)
print(answer)
"""


def line(text: str, uuid: str, role: str = "user") -> str:
    message = {"role": role, "content": text}
    row = {"type": role, "uuid": uuid, "sessionId": "s-1", "message": message}
    return json.dumps(row) + "\n"


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "s-1.jsonl"
    path.write_text(line(FACT, "u1") + line("I see.", "a1", "assistant"))
    return path


@pytest.fixture
def opposed(sandbox: Sandbox) -> Sandbox:
    """A candidate that contradicts a memory, and a user with settings of their own."""
    sandbox.env["MEMTOOL_GLOBAL"] = str(sandbox.path.parent / "global")
    sandbox.memory("sem-yes", "Enable the query cache in production.\n", type="semantic")
    sandbox.memory(
        "sem-no", "Disable the query cache in production.\n", type="semantic", status="candidate"
    )
    sandbox.commit()
    return sandbox


def log_of(sandbox: Sandbox) -> str:
    path = Path(sandbox.context().repository.cache_dir) / manager.LOG
    return path.read_text() if path.exists() else ""


def wait_for_log(sandbox: Sandbox, lines: int = 1) -> None:
    """Wait until the processes in the background have said what they came to."""
    end = time.monotonic() + 30
    while log_of(sandbox).count("\n") < lines and time.monotonic() < end:
        time.sleep(0.05)


def test_after_a_session_a_plan_waits_until_somebody_applies_it(
    opposed: Sandbox, transcript: Path
) -> None:
    """It is made in the background, changes nothing, and is gone once it was carried out."""
    opposed.env["MEMTOOL_MANAGER"] = "on"
    assert opposed.run("capture", "--end", str(transcript)).returncode == 0
    wait_for_log(opposed)
    assert log_of(opposed).endswith(" s-1: 1 step by rules\n")
    assert opposed.git("status", "--porcelain") == ""
    notice = "Plan for candidates (1 step): memtool curate --waiting"
    assert notice in opposed.run("status").stdout.splitlines()
    shown = opposed.run("curate", "--waiting").stdout
    assert "sem-no  " in shown
    assert shown.endswith("To do it: memtool curate --waiting --apply\n")
    (step,) = opposed.json("curate", "--waiting", "--apply", "--commit")["steps"]
    assert (step["id"], step["to"], step["is_done"]) == ("sem-no", "sem-yes", True)
    assert "Proposes: sem-yes" in opposed.git("log", "-1", "--format=%B").splitlines()
    assert opposed.json("status")["curation"] == 0
    assert "no plan waits" in opposed.run("curate", "--waiting").stderr


def test_a_plan_that_waits_is_checked_again_and_can_be_dropped(opposed: Sandbox) -> None:
    """Steps that no longer fit are left out; a damaged plan is ignored."""
    path = Path(opposed.context().repository.cache_dir) / manager.PLAN
    for _time in range(2):
        opposed.run("curate", "--keep")
        assert opposed.json("status")["curation"] == 1
        assert "sem-no" in opposed.run("curate", "--drop").stdout
        assert not path.exists()
    opposed.run("curate", "--keep")
    for text in ("{", "[]", '{"actions": [5, {"do": 1}], "moment": 1, "by": "x"}', "\0"):
        path.write_text(text)
        assert opposed.json("status")["curation"] == 0
    opposed.run("curate", "--keep")
    done = opposed.run("forget", "sem-no", "--reason", "wrong")
    assert done.returncode == 0, done.stderr
    done = opposed.run("curate", "--waiting")
    assert done.stdout == ""
    assert "do not fit and were left out: supersedes" in done.stderr
    assert "nothing to propose\n" in done.stderr
    assert not path.exists()
    for words in (("--keep", "--apply"), ("--drop", "--apply"), ("--keep", "--waiting")):
        refused = opposed.run("curate", *words)
        assert (refused.returncode, "one of these" in refused.stderr) == (2, True)
    assert opposed.run("curate", "--keep", "--session", "ses-none").returncode == 0
    assert "ses-none is passed over" in log_of(opposed)


WISH = "Remember: always use the queue for e-mails, never send them from a request."


def test_a_session_that_ends_makes_candidates_where_the_user_wants_that(
    opposed: Sandbox, transcript: Path
) -> None:
    """They are new files and nothing else: not confirmed, not committed, nothing strengthened."""
    opposed.memory(
        "sem-same",
        "The build cache is emptied each night.\n",
        type="semantic",
        title="The build cache is emptied each night",
    )
    opposed.commit()
    transcript.write_text(
        line(WISH, "u1") + line("Remember: the build cache is emptied each night.", "u2")
    )
    opposed.write(".memory/config.toml", "[capture]\npromote = true\n")
    assert opposed.run("capture", "--end", str(transcript)).returncode == 0
    assert log_of(opposed) == ""  # no project switches it on
    (opposed.path / ".memory" / "config.toml").unlink()
    opposed.run("--global", "config", "capture.promote", "true")
    opposed.env["MEMTOOL_MANAGER"] = "on"
    head = opposed.git("rev-parse", "HEAD")
    transcript.write_text(transcript.read_text().replace("s-1", "s-2"))
    assert opposed.run("capture", "--end", str(transcript)).returncode == 0
    wait_for_log(opposed, 2)
    (made,) = [
        row for row in opposed.json("list", "status:candidate")["memories"] if row["id"] != "sem-no"
    ]
    first, second = log_of(opposed).splitlines()
    assert first.endswith(f" s-2: candidates to look at: {made['id']}")
    assert second.endswith(" s-2: 1 step by rules")  # the plan comes when they are there
    changed = opposed.git("status", "--porcelain", "--untracked-files=all").splitlines()
    assert [line[:2] for line in changed] == ["??"]
    assert changed[0].endswith(f"{made['id']}.md")
    assert opposed.git("rev-parse", "HEAD") == head


def test_a_session_ends_although_nothing_can_be_promoted(
    opposed: Sandbox, transcript: Path
) -> None:
    """The reason is in the log; the captured messages stay."""
    opposed.run("--global", "config", "capture.promote", "true")
    transcript.write_text(line(WISH, "u1"))
    folder = opposed.path / ".memory"
    (folder / "semantic").rename(folder / "kept")
    (folder / "semantic").write_text("in the way")
    done = opposed.run("capture", "--end", str(transcript))
    assert done.returncode == 0, done.stderr
    wait_for_log(opposed)
    assert " was not promoted: " in log_of(opposed)
    assert opposed.json("session", "show", "s-1")["status"] == "ended"


def test_only_the_user_switches_the_manager_on(opposed: Sandbox) -> None:
    """Neither the default nor a project does; the environment outdoes the user's settings."""
    assert not consent.is_managing(opposed.context())
    opposed.write(".memory/config.toml", "[manager]\nenabled = true\n")
    assert not consent.is_managing(opposed.context())
    opposed.run("--global", "config", "manager.enabled", "true")
    assert consent.is_managing(opposed.context())
    assert not consent.is_managing(opposed.context(MEMTOOL_MANAGER="off"))
    assert not consent.is_managing(opposed.context(MEMTOOL_OFF="1"))
    with pytest.raises(Exception, match="MEMTOOL_MANAGER is 'yes', which is not one of on, off"):
        _ = consent.is_managing(opposed.context(MEMTOOL_MANAGER="yes"))


@pytest.mark.parametrize("name", ["claude", "our-wrapper"])
def test_the_host_goes_on_in_its_session_and_is_no_witness_of_itself(
    opposed: Sandbox, transcript: Path, name: str
) -> None:
    """memtool's question and the answer are in the transcript and never in the session.

    A program that has the name of no host, such as a wrapper, goes on in it as well.
    """
    call_file = opposed.path.parent / "asked.json"
    program = opposed.path.parent / name
    program.write_text(
        HOST.format(
            python=sys.executable,
            transcript=str(transcript),
            asked=str(call_file),
            found=json.dumps([FOUND]),
        )
    )
    program.chmod(0o755)
    words = f"{program},--resume,{{session}},-p"
    assert opposed.run("--global", "config", "extraction.resume", words).returncode == 0
    opposed.run("capture", str(transcript))
    opposed.run("promote")
    assert not call_file.exists()  # somebody may be at work in it
    opposed.run("capture", "--end", str(transcript))
    opposed.run("promote")
    args, place, off, prompt = json.loads(call_file.read_text())
    assert (args, place, off) == (["--resume", "s-1", "-p"], str(opposed.path), "1")
    assert prompt.startswith(markup.ASKED)
    assert SAID in [row["content"] for row in opposed.json("promote", "--list")["findings"]]
    with transcript.open("a") as file:
        file.write(line("One more thing.", "u2"))
    done = opposed.json("capture", str(transcript))
    assert done["captured"] == 1
    messages = opposed.run("session", "show", "s-1", "--messages").stdout
    assert "One more thing." in messages
    assert "memtool asks" not in messages


def test_a_host_that_cannot_go_on_leaves_it_to_the_rules(
    opposed: Sandbox, transcript: Path
) -> None:
    """A session of another host is not for it, and without a place for the id it is not run."""
    opposed.run("capture", "--end", str(transcript))
    for words, message in (
        ("/nowhere/claude,--resume,{session}", "claude cannot be started"),
        ("claude,-p", "does not say where the id goes, as {session}"),
        ("codex,exec,resume,{session},-", ""),
    ):
        opposed.run("--global", "config", "extraction.resume", words)
        done = opposed.run("promote")
        assert (done.returncode, message in done.stderr) == (0, True), done.stderr


def test_what_was_asked_is_left_out_though_the_answer_comes_later(
    opposed: Sandbox, transcript: Path
) -> None:
    """The mark of a capture knows that memtool asked last; each host's form of a prompt counts."""
    with transcript.open("a") as file:
        file.write(line(f"{markup.ASKED}\nFind.", "u2"))
    opposed.run("capture", str(transcript))
    with transcript.open("a") as file:
        file.write(line("We decided to use Redis.", "a2", "assistant"))
    assert opposed.json("capture", str(transcript))["captured"] == 0
    assert markup.is_asked(f'"{markup.ASKED}\nFind."\n')
    assert not markup.is_asked(f"why does it say {markup.ASKED}?")
