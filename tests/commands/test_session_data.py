"""Tests of `memtool session export`, `prune` and `delete`, and of what is shown of the room."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import PIPED, Sandbox

from memtool.commands.capture import capture
from memtool.commands.doctor import doctor
from memtool.commands.session import (
    session_add,
    session_end,
    session_fork,
    session_list,
    session_start,
)
from memtool.commands.session_data import (
    render,
    session_delete,
    session_diff,
    session_export,
    session_prune,
)
from memtool.commands.stats import render as stats_text
from memtool.commands.stats import stats
from memtool.errors import MemtoolError
from memtool.hosts.diagnostics import BROKEN, GOOD, WARNING, CheckResult

KEY = "AKIA" + "Q3EGRZXT5MPLHV2B"
RULE = "Remember: always use uv in this repository."


def session(sandbox: Sandbox, *texts: str, **env: str) -> str:
    context = sandbox.context(**env)
    id_ = session_start(context, agent="claude", title="Try it").id
    for text in texts:
        session_add(context, id_, text)
    session_end(context, id_)
    return id_


def place(sandbox: Sandbox) -> Path:
    return sandbox.path / ".git" / "memtool" / "sessions"


def sign(sandbox: Sandbox, *, fix: bool = False) -> CheckResult:
    report = doctor(sandbox.context(), fix=fix)
    return next(result for result in report.signs if result.name == "sessions")


def test_an_export_holds_all_that_is_stored_and_can_be_captured(sandbox: Sandbox) -> None:
    """Its head, messages and findings, redacted; as lines that capture reads."""
    id_ = session(sandbox, RULE, f"the key is {KEY}\n# not a heading")
    done = sandbox.run("session", "export", id_[:-1])
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["session"] for row in rows} == {id_}
    assert (rows[0]["status"], rows[0]["ended"]) == ("ended", "2026-03-01T12:00:00Z")
    assert next(row["content"] for row in rows if "message" in row) == RULE
    assert [row["content"] for row in rows if "finding" in row] == [
        "Always use uv in this repository."
    ]
    assert KEY not in done.stdout
    assert sandbox.json("session", "export", id_) == rows
    again = sandbox.run("capture", "-", "--session", "again", stdin=done.stdout)
    assert again.stdout.startswith("Captured 2 messages of chat into again ")
    text = render(session_export(sandbox.context(), id_, format="markdown"), PIPED)
    assert f"# {id_} Try it" in text
    assert "\n    # not a heading\n" in text
    assert "- found, preference: Always use uv in this repository." in text


def test_an_export_of_all_passes_over_what_is_damaged(sandbox: Sandbox) -> None:
    """All others are in it, the oldest first, and a note says which one is not."""
    first, second = session(sandbox, "one"), session(sandbox, "two")
    (place(sandbox) / second / "head.json").write_text("{")
    context = sandbox.context()
    assert {row["session"] for row in session_export(context, all=True).rows} == {first}
    assert "doctor --fix" in context.notes[0]
    with pytest.raises(MemtoolError, match="is damaged") as caught:
        session_export(context, second)
    assert caught.value.hint.endswith("memtool doctor --fix")


def test_a_deletion_is_audited_and_names_what_cites_it(sandbox: Sandbox) -> None:
    """The words go, the memory made of them stays, and the audit says that it was deleted."""
    sandbox.memory("sem-uv", "Use uv.\n", type="semantic", source=("session:ses-x#1",))
    id_ = session(sandbox, RULE)
    (place(sandbox) / id_).rename(place(sandbox) / "ses-x")
    text = (place(sandbox) / "ses-x" / "head.json").read_text()
    (place(sandbox) / "ses-x" / "head.json").write_text(text.replace(id_, "ses-x"))
    dry = session_delete(sandbox.context(), "ses-x", dry_run=True)
    assert render(dry, PIPED).startswith("would delete ses-x, ")
    assert [row.id for row in session_list(sandbox.context()).sessions] == ["ses-x"]
    done = sandbox.json("session", "delete", "ses-x")
    assert done["sessions"][0]["cited_by"] == ["sem-uv"]
    assert done["size"] == 0
    assert session_list(sandbox.context()).sessions == ()
    audit = sandbox.run("log", "--audit").stdout
    assert "session-purge  done  ses-x" in " ".join(audit.split(" "))
    assert sandbox.run("show", "sem-uv").returncode == 0


def test_old_sessions_are_deleted_together(sandbox: Sandbox) -> None:
    """By when something was last added: an age or a date; damaged ones too."""
    old = session(sandbox, "old", MEMTOOL_NOW="2025-01-05")
    broken = session(sandbox, "broken", MEMTOOL_NOW="2025-01-06")
    new = session(sandbox, "new")
    (place(sandbox) / broken / "head.json").unlink()
    for file in (place(sandbox) / broken).iterdir():
        Path(file).touch()
    gone = session_delete(sandbox.context(), older_than="30d", dry_run=True).sessions
    assert [memory.id for memory in gone] == [old]
    pruned = session_prune(sandbox.context(), older_than="2025-02-01", dry_run=True)
    assert pruned.ids == (old,)
    assert session_prune(sandbox.context()).ids == ()  # no act either
    assert "session-purge" not in sandbox.run("log", "--audit").stdout
    assert session_delete(sandbox.context(), older_than="2026-01-01").sessions[0].id == old
    assert [row.id for row in session_list(sandbox.context()).sessions] == [new]
    assert session_delete(sandbox.context(), broken).sessions[0].id == broken
    assert render(session_delete(sandbox.context(), older_than="9y"), PIPED).startswith(
        "nothing to"
    )


@pytest.mark.parametrize(
    ("ids", "older_than", "message"),
    [
        ((), "", "the session is missing"),
        (("x-y",), "30d", "exclude each other"),
        (("none",), "", "no session"),
        ((), "soon", "is not a time"),
        ((), "-3d", "is not a time"),
        (("../etc",), "", "no session"),
        (("",), "", "no session"),
    ],
)
def test_a_wrong_deletion_deletes_nothing(
    sandbox: Sandbox, ids: tuple[str, ...], older_than: str, message: str
) -> None:
    """One sentence, and every session is there."""
    session(sandbox, "one")
    with pytest.raises(MemtoolError, match=message):
        session_delete(sandbox.context(), *ids, older_than=older_than)
    assert len(session_list(sandbox.context()).sessions) == 1


def write_turn(text: str, moment: str) -> str:
    return json.dumps({"role": "user", "content": text, "timestamp": moment, "id": moment}) + "\n"


def test_a_capture_does_not_bring_back_what_was_deleted(sandbox: Sandbox) -> None:
    """Messages from before the deletion stay out, also of the title; later ones are new."""
    old, new = write_turn("the old secret plan", "2026-02-20T09:00:00Z"), "2026-03-02T09:00:00Z"
    transcript = sandbox.path.parent / "talk.jsonl"
    transcript.write_text(old)
    name = capture(sandbox.context(), str(transcript), session="talk").session
    session_delete(sandbox.context(), name)
    context = sandbox.context()
    again = capture(context, str(transcript), session="talk", end=True)
    assert (again.captured, again.new_session, again.ended) == (0, False, False)
    assert "was deleted on 2026-03-01" in context.notes[0]
    assert session_list(sandbox.context()).sessions == ()
    transcript.write_text(old + write_turn("a new plan", new))
    later = sandbox.context(MEMTOOL_NOW="2026-03-03")
    assert capture(later, str(transcript), session="talk", dry_run=True).captured == 1
    assert capture(later, str(transcript), session="talk").captured == 1
    assert capture(later, str(transcript), session="talk").captured == 0
    (row,) = session_list(sandbox.context()).sessions
    assert (row.title, row.messages) == ("a new plan", 1)
    assert capture(later, str(transcript), session="other").captured == 2


def test_a_capture_repairs_a_damaged_head(sandbox: Sandbox) -> None:
    """A host that goes on with its session does not wait for the doctor."""
    transcript = sandbox.path.parent / "talk.jsonl"
    transcript.write_text(write_turn("one", "2026-02-20T09:00:00Z"))
    capture(sandbox.context(), str(transcript), session="talk")
    (place(sandbox) / "talk" / "head.json").write_text("{")
    transcript.write_text(transcript.read_text() + write_turn("two", "2026-02-20T10:00:00Z"))
    context = sandbox.context()
    assert capture(context, str(transcript), session="talk").captured == 1
    assert "rebuilt from the messages" in context.notes[0]
    assert session_list(sandbox.context()).sessions[0].messages == 2


def test_doctor_and_stats_show_what_is_stored(sandbox: Sandbox) -> None:
    """How many, how large, which share of the limit; nearly full is a warning."""
    assert sign(sandbox).detail == "none are stored"
    id_ = session_start(sandbox.context()).id
    session_add(sandbox.context(), id_, "x" * 990_000)
    assert sign(sandbox).detail == "1 session, 0.9 of 1,000 MB (0.1%)"
    report = stats(sandbox.context())
    assert (report.sessions.sessions, report.sessions.open, report.sessions.damaged) == (1, 1, 0)
    assert report.sessions.limit_bytes == 1_000 << 20
    assert "1 session (1 open): " in stats_text(report, PIPED)
    sandbox.write(".memory/config.toml", "[sessions]\ntotal_mb = 1\n")
    full = sign(sandbox)
    assert (full.state, full.hint.startswith("memtool session prune")) == (WARNING, True)
    assert stats(sandbox.context()).sessions.share > 0.9


def test_the_doctor_names_damaged_sessions_and_repairs_them(sandbox: Sandbox) -> None:
    """A head that is lost is broken, a line a warning; after --fix all is well again."""
    first, second = session(sandbox, RULE), session(sandbox, "We keep carts in Postgres.")
    with (place(sandbox) / first / "findings.jsonl").open("ab") as file:
        file.write(b"broken\n")
    result = sign(sandbox)
    assert (result.state, f"{first}: 1 line of findings.jsonl is damaged" in result.detail) == (
        WARNING,
        True,
    )
    (place(sandbox) / second / "head.json").write_text("{")
    assert sign(sandbox).state == BROKEN
    assert stats(sandbox.context()).sessions.damaged == 1
    mended = doctor(sandbox.context(), fix=True).mended
    assert next(line for line in mended if first in line).startswith("rebuilt findings.jsonl of")
    assert next(line for line in mended if second in line).startswith("rebuilt head.json of")
    assert sign(sandbox).state == GOOD
    assert len(session_list(sandbox.context()).sessions) == 2


def test_a_diff_shows_what_both_have_and_what_each_has_alone(sandbox: Sandbox) -> None:
    """Findings by what they say, files, messages of the same lines, calls that still fail."""
    first = session(sandbox, RULE, "Carts must only be kept in Postgres.")
    context = sandbox.context()
    second = session_start(context, agent="codex").id
    session_add(context, second, RULE.upper().capitalize(), file=("a.py",))
    session_add(context, second, "E no", tool="Bash", call="make", result="failed")
    session_end(context, second)
    difference = session_diff(context, first, second)
    assert difference.findings == ("Always use uv in this repository.",)
    assert difference.a.findings == ("Carts must only be kept in Postgres.",)
    assert (difference.b.findings, difference.b.files, difference.b.failed) == (
        (),
        ("a.py",),
        ("make",),
    )
    assert (difference.messages, difference.a.messages, difference.b.messages) == (0, 2, 2)
    text = sandbox.run("session", "diff", first, second).stdout
    assert f"only {second}: 2 messages\n  files: a.py\n  failed: make\n" in text
    for wrong in ((first, first), (first, "none"), ("", second)):
        with pytest.raises(MemtoolError):
            session_diff(context, *wrong)
    lines = "".join(
        write_turn(word, f"2026-02-20T0{n}:00:00Z") for n, word in enumerate(("x", "y"))
    )
    for name in ("one", "two"):
        sandbox.run("capture", "-", "--session", name, stdin=lines)
    assert session_diff(sandbox.context(), "one", "two").messages == 2


def test_what_was_said_before_a_fork_is_in_both(sandbox: Sandbox) -> None:
    """The fork has its parent's messages up to there, and the parent goes on alone."""
    first = session(sandbox, RULE, "Carts must only be kept in Postgres.")
    fork = session_fork(sandbox.context(), first).id
    session_add(sandbox.context(), first, "One more.", reopen=True)
    difference = session_diff(sandbox.context(), fork, first)
    assert (difference.messages, difference.a.messages, difference.b.messages) == (2, 0, 1)
