"""`memtool log --audit`: what was done in this clone, told from the ledger."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

import pytest
from conftest import Sandbox

from memtool.errors import MemtoolError
from memtool.store import usage_log


def acts(sandbox: Sandbox, *args: str) -> list[Any]:
    return list(sandbox.json("log", "--audit", *args)["audit"])


def test_deletions_and_returns_are_told_newest_first(sandbox: Sandbox) -> None:
    """Each with its moment, memory, outcome and reason."""
    sandbox.memory("dec-a")
    sandbox.run("forget", "dec-a", "--reason", "no longer so")
    sandbox.run("restore", "dec-a", MEMTOOL_NOW="2026-03-02T00:00:00Z")
    assert [(a["kind"], a["outcome"], a["subjects"], a["detail"]) for a in acts(sandbox)] == [
        ("restore", "done", ["dec-a"], ""),
        ("forget", "done", ["dec-a"], "no longer so"),
    ]


def test_filters_keep_one_kind_one_memory_or_the_latest(sandbox: Sandbox) -> None:
    """--kind, an id, and --since."""
    for id_ in ("dec-a", "dec-b"):
        sandbox.memory(id_)
        sandbox.run("forget", id_, "--reason", "gone")
    sandbox.run("restore", "dec-a", MEMTOOL_NOW="2026-03-05T00:00:00Z")
    assert len(acts(sandbox, "--kind", "forget")) == 2
    assert len(acts(sandbox, "dec-a")) == 2
    assert [a["kind"] for a in acts(sandbox, "--since", "2026-03-04")] == ["restore"]
    assert len(acts(sandbox, "--limit", "1")) == 1


def test_what_git_sees_alone_and_dry_runs_leave_nothing(sandbox: Sandbox) -> None:
    """A pin is in the log of git; a dry run was not done."""
    sandbox.memory("dec-a")
    sandbox.run("pin", "dec-a")
    sandbox.run("forget", "dec-a", "--reason", "x", "--dry-run")
    assert acts(sandbox) == []


def test_a_refused_act_says_why(sandbox: Sandbox) -> None:
    """The code of the refusal takes the place of the reason, and the error is still raised."""
    with (
        pytest.raises(MemtoolError, match="full"),
        usage_log.audit(sandbox.context(), "forget", "dec-a", detail="old"),
    ):
        raise MemtoolError("the disk is full", code="disk")
    assert [(a["outcome"], a["detail"]) for a in acts(sandbox)] == [("refused", "disk")]


def test_a_session_its_capture_and_its_end_are_told(sandbox: Sandbox) -> None:
    """Git sees nothing of them."""
    sandbox.run("capture", "-", "--end", stdin="User: we use Redis for sessions\n")
    sandbox.run("session", "start")
    name = sandbox.json("session", "list")["sessions"][0]["id"]
    sandbox.run("session", "end", name)
    kinds = {act["kind"]: act for act in acts(sandbox)}
    assert {"capture", "session-end"} <= kinds.keys()
    assert "messages: 1" in kinds["capture"]["detail"]


def test_a_redaction_names_the_file_and_never_the_secret(sandbox: Sandbox) -> None:
    """Of what was taken out nothing is kept."""
    secret = "AKIA" + "QYLPMN5HHHFPZAM2"
    path = sandbox.memory("dec-a", f"The key is {secret}.\n")
    sandbox.run("redact")
    (act,) = acts(sandbox)
    assert (act["kind"], act["subjects"]) == ("redact", [path])
    folder = sandbox.path / ".git" / "memtool"
    assert not any(secret.encode() in f.read_bytes() for f in folder.rglob("*") if f.is_file())


def test_a_killed_verb_is_told_by_the_next(sandbox: Sandbox) -> None:
    """The intent is on disk before the act, so that nothing is cut off in silence."""
    sandbox.memory("dec-a")
    code = (
        "import os, sys; from memtool.store import files;"
        f"files.replace = lambda *a, **k: os.kill(os.getpid(), {int(signal.SIGKILL)});"
        "from memtool.cli.main import main; main(['forget', 'dec-a', '--reason', 'x'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=sandbox.path, env=sandbox.env, check=False
    )
    assert done.returncode == -signal.SIGKILL
    outcome = sandbox.run("stats", "--all")
    assert "forget of dec-a was cut off on 2026-03-01" in outcome.stderr
    assert "1 interrupted" in outcome.stdout
    assert [act["outcome"] for act in acts(sandbox)] == ["interrupted"]


def test_without_a_ledger_nothing_is_kept(sandbox: Sandbox) -> None:
    """The switch that keeps notes out keeps the audit out."""
    sandbox.memory("dec-a")
    sandbox.run("forget", "dec-a", "--reason", "x", MEMTOOL_NO_LEDGER="1")
    assert acts(sandbox) == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--audit", "--kind", "forgt"), "did you mean forget?"),
        (("--audit", "--since", "soon"), "'soon' is not a time"),
        (("--since", "30d"), "are for --audit"),
        (("--audit", "--injected"), "exclude each other"),
        (("--audit", "--at", "HEAD"), "--at and --audit exclude each other"),
        (("--audit", "--limit", "-1"), "must be 0 or more"),
    ],
)
def test_a_wrong_question_gets_a_sentence(
    sandbox: Sandbox, args: tuple[str, ...], message: str
) -> None:
    """And exit code 2."""
    done = sandbox.run("log", *args)
    assert (done.returncode, message in done.stderr) == (2, True)


def test_a_broken_ledger_is_put_aside(sandbox: Sandbox) -> None:
    """Later acts are kept in a new one."""
    folder = sandbox.path / ".git" / "memtool"
    folder.mkdir(parents=True)
    (folder / "ledger.db").write_bytes(b"no database" * 100)
    sandbox.memory("dec-a")
    sandbox.run("forget", "dec-a", "--reason", "x")
    assert [act["kind"] for act in acts(sandbox)] == ["forget"]


@pytest.mark.parametrize("loss", ["deleted", "broken"])
def test_the_audit_of_deletions_outlives_the_ledger(sandbox: Sandbox, loss: str) -> None:
    """Statistics may be lost, but not that something was taken out."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b")
    sandbox.commit()
    sandbox.run("forget", "dec-a", "--reason", "wrong")
    sandbox.run("confirm", "dec-b")
    before = [(row["kind"], row["subjects"]) for row in acts(sandbox)]
    assert before == [("forget", ["dec-a"])]
    folder = sandbox.path / ".git/memtool"
    for path in folder.glob("ledger.db*"):
        if loss == "deleted":
            path.unlink()
        else:
            path.write_bytes(b"no database" * 400)
    after = [(row["kind"], row["subjects"]) for row in acts(sandbox)]
    assert after == before
    assert (folder / "audit.log").stat().st_mode & 0o777 == 0o600
    assert acts(sandbox) == acts(sandbox, "--kind", "forget")
