from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.sessions import lifecycle, store
from memtool.sessions.model import Message
from memtool.store import files

RULE = "Remember: always use uv in this repository, never pip."
CONTENT = "Always use uv in this repository, never pip."
FACT = "The webhook signature must only cover the raw body."
ANSWERING = str(Path(__file__).parents[1] / "sessions" / "model_program.py")


def session(sandbox: Sandbox, *texts: str, agent: str = "claude") -> str:
    """Start a session in which a person says some things, and return its id."""
    return heard(sandbox, *(Message(0, "user", text) for text in texts), agent=agent)


def heard(sandbox: Sandbox, *messages: Message, agent: str = "claude") -> str:
    ws = sandbox.context()
    sessions = store.open_sessions(ws)
    head = lifecycle.start(ws, sessions, lifecycle.begin_session(ws, sessions, agent=agent))
    if messages:
        store.add(sessions, head.id, list(messages), ws.clock.now)
    return head.id


def broken_and_fixed(sandbox: Sandbox) -> str:
    failure = "E   ModuleNotFoundError: No module named 'tomli_w'"
    return heard(
        sandbox,
        Message(0, "tool", failure, tool="Bash", call="pytest -q", is_ok=False),
        Message(0, "tool", "done", tool="Bash", call="uv sync", is_ok=True),
        Message(0, "tool", "4 passed", tool="Bash", call="pytest -q", is_ok=True),
    )


def listed(sandbox: Sandbox, *args: str) -> dict[str, dict]:
    """The findings of `promote --list`, by what they say."""
    return {row["content"]: row for row in sandbox.json("promote", "--list", *args)["findings"]}


def promote_traces(sandbox: Sandbox, *options: str) -> list[dict]:
    """Promote every trace that can be, as a person who names it does; return the memories."""
    sandbox.run("config", "capture.traces", "on")
    rows = sandbox.json("promote", "--list")["findings"]
    wanted = [row["id"] for row in rows if row["category"] == "error" and not row["promoted"]]
    named = [word for id_ in wanted for word in ("--finding", id_)]
    return sandbox.json("promote", *options, *named)["memories"]


def memories(sandbox: Sandbox) -> list[Path]:
    return sorted((sandbox.path / ".memory").rglob("*-*.md"))


def short(sandbox: Sandbox, id_: str) -> str:
    return sandbox.layout().short(id_)


def test_a_rule_of_a_person_becomes_a_candidate_with_its_source(sandbox: Sandbox):
    """Type, category, status, importance, tags, session and the message are in the file."""
    id_ = session(sandbox, "hello", RULE)
    done = sandbox.run("promote")
    (path,) = memories(sandbox)
    assert done.returncode == 0
    assert done.stderr == f"f-c8b2: new candidate {short(sandbox, path.stem)}  {CONTENT}\n"
    assert done.stdout.strip() == str(path.relative_to(sandbox.path))
    memory = document.read(path.read_bytes(), "")
    assert memory.items("source") == (f"session:{id_}#2",)
    assert (memory.type, memory.category, memory.status) == ("semantic", "preference", "candidate")
    assert (memory.text("session"), memory.text("agent")) == (id_, "claude")
    assert (memory.body, memory.items("tags")) == (f"{CONTENT}\n", ("pip", "uv"))
    assert sandbox.json("check")["problems"] == []


def test_an_error_with_its_fix_becomes_a_trace_with_every_section(sandbox: Sandbox):
    """A person names it, as one session alone does not suffice; the gate finds no fault."""
    broken_and_fixed(sandbox)
    assert sandbox.json("promote", "--commit")["memories"] == []
    (made,) = promote_traces(sandbox, "--commit")
    shown = sandbox.json("show", made["id"])
    titles = [part["title"] for part in shown["sections"] if part["title"]]
    assert titles == ["Command", "Failure", "Changes", "Environment", "Fix"]
    assert shown["error_signature"] == "ModuleNotFoundError: No module named 'tomli_w'"
    assert sandbox.run("confirm", made["id"]).returncode == 0
    assert sandbox.json("check")["problems"] == []
    (hit,) = sandbox.json("search", 'error:"No module named"')["results"]
    assert hit["id"] == made["id"]


def test_the_list_says_points_and_what_is_lacking(sandbox: Sandbox):
    """Nothing is promoted by listing; the fields of the contract are there."""
    id_ = session(sandbox, RULE, FACT)
    rows = listed(sandbox)
    assert memories(sandbox) == []
    fact = rows[FACT]
    assert (fact["points"], fact["signals"], fact["why"]) == (0, [], "worth keeping? 0 of 3 points")
    rule = rows[CONTENT]
    assert (rule["points"], rule["signals"]) == (6, ["user-intent", "important"])
    assert (rule["session"], rule["category"], rule["promoted"]) == (id_, "preference", False)
    sandbox.run("promote")
    assert listed(sandbox)[CONTENT]["promoted"] is True
    (path,) = memories(sandbox)
    lesson = sandbox.run("promote", "--list").stdout.partition("f-056c")[0]
    assert f"{id_}#1\n        promoted already: {short(sandbox, path.stem)}\n" in lesson


def test_a_question_is_quoted_with_what_the_message_says_around_it(sandbox: Sandbox):
    """On one line, of bounded length, as stored; not if the statement is the whole message."""
    key = "AK" + "IA" + "QWERTYUIOPASDFGH"
    around = "The hook of the shop fails " + "again and " * 40 + "again."
    text = f"{around}\n\n- Look:\x1b[31m the key is {key}.\n- {FACT}\n\n{around}"
    id_ = session(sandbox, RULE, text, "I prefer small pull requests to large ones.")
    rows = listed(sandbox)
    quote = rows[FACT]["quote"]
    assert (quote[0], quote[-5:]) == ("…", " and…")
    assert re.search(rf"Look: the key is \[REDACTED:[\w-]+\]\. {FACT} The hook", quote)
    assert (len(quote) <= len(FACT) + 2 * 142, quote.isprintable()) == (True, True)
    assert {content: row["quote"] for content, row in rows.items() if content != FACT} == {
        CONTENT: "",
        "I prefer small pull requests to large ones.": "",
    }
    shown = sandbox.run("promote", "--list").stdout
    assert f'        in the message: "{quote}"\n' in shown
    assert shown.count("in the message") == 1
    sandbox.json("session", "end", id_)
    sandbox.json("session", "prune", "--older-than", "2099-01-01")
    assert listed(sandbox)[FACT]["quote"] == ""


def test_the_list_says_who_found_what(sandbox: Sandbox):
    """Lessons of before that was noted were found by the rules; a damaged one is none."""
    id_ = session(sandbox, RULE, FACT)
    assert {row["reader"] for row in listed(sandbox).values()} == {"rules"}
    assert "preference, found by the rules, 6 points" in sandbox.run("promote", "--list").stdout
    place = sandbox.path / ".git/memtool/sessions" / id_ / "findings.jsonl"
    text = place.read_text()
    place.write_text(re.sub(r',"reader":"rules"', "", text))
    assert "reader" not in place.read_text()
    assert {row["reader"] for row in listed(sandbox).values()} == {"rules"}
    place.write_text(text.replace('"reader":"rules"', '"reader":"nobody"'))
    assert listed(sandbox) == {}


def test_nothing_is_promoted_twice(sandbox: Sandbox):
    """A second run writes nothing; neither does one after the journal was lost."""
    session(sandbox, RULE)
    sandbox.run("promote", "--commit")
    before = sandbox.git("rev-parse", "HEAD")
    sandbox.run("promote", "--commit")
    (sandbox.path / ".git/memtool/sessions/promotions.jsonl").unlink()
    done = sandbox.run("promote", "--commit")
    assert done.stderr.startswith("nothing to promote")
    assert sandbox.git("rev-parse", "HEAD") == before
    assert sandbox.git("status", "--porcelain") == ""


def test_a_commit_holds_the_memories_alone(sandbox: Sandbox):
    """Other staged files stay staged; the trailer names the memories."""
    sandbox.write("a.txt", "a")
    sandbox.git("add", "a.txt")
    session(sandbox, RULE, "Remember: we never mock the database.")
    done = sandbox.json("promote", "--commit")
    assert len(done["memories"]) == 2
    names = sandbox.git("show", "--name-only", "--format=%B", done["commit"])
    assert all(made["path"] in names and made["id"] in names for made in done["memories"])
    assert sandbox.git("diff", "--cached", "--name-only").strip() == "a.txt"


def test_what_was_promoted_before_the_disk_refused_is_named(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
):
    """The message does not claim that nothing was changed; the next run promotes the rest."""
    session(sandbox, RULE, "Remember: we never mock the database.")
    real = files.create

    def full(root: str, path: str, data: bytes) -> None:
        if memories(sandbox):
            raise MemtoolError("no space; nothing was changed", code="disk")
        real(root, path, data)

    with monkeypatch.context() as patch:
        patch.setattr(files, "create", full)
        done = sandbox.run("promote")
    (first,) = memories(sandbox)
    assert done.returncode == 2
    assert f"no space; written before that: {short(sandbox, first.stem)}\n" in done.stderr
    done = sandbox.run("promote", "--commit")
    assert f"promoted before, and committed now: {short(sandbox, first.stem)}\n" in done.stderr
    assert len(sandbox.git("ls-files", ".memory").split()) == len(memories(sandbox)) == 2
    assert sandbox.json("promote", "--commit")["commit"] is None


def test_a_dry_run_writes_nothing_at_all(sandbox: Sandbox):
    """Neither memories nor the private journals."""
    id_ = session(sandbox, RULE)
    place = sandbox.path / ".git/memtool/sessions" / id_
    before = sorted(path.name for path in place.iterdir())
    done = sandbox.run("promote", "--dry-run")
    assert (done.stdout, done.stderr) == ("", f"f-c8b2: would be a new candidate  {CONTENT}\n")
    assert memories(sandbox) == []
    assert sorted(path.name for path in place.iterdir()) == before


def test_two_sessions_and_two_agents_are_enough_for_what_nobody_asked_to_keep(sandbox: Sandbox):
    """Two points for each, and the balanced preset asks for three."""
    session(sandbox, FACT)
    assert sandbox.json("promote")["memories"] == []
    session(sandbox, f"{FACT} Good to know.", agent="codex")
    row = listed(sandbox)[FACT]
    assert (row["points"], row["signals"]) == (4, ["two-sessions", "two-agents"])
    first, second = sandbox.json("promote")["memories"]
    assert (first["is_new"], second["is_new"]) == (True, False)
    assert len(memories(sandbox)) == 1


def test_a_fork_is_no_second_witness(sandbox: Sandbox):
    """Its copies of the parent's findings count once, and are promoted once."""
    id_ = session(sandbox, FACT)
    sandbox.run("promote")
    sandbox.run("session", "fork", id_)
    (row,) = listed(sandbox).values()
    assert (row["points"], row["session"]) == (0, id_)


def test_presets_ask_for_more_or_less(sandbox: Sandbox):
    """By option and by setting; two sessions alone are enough for the aggressive one."""
    session(sandbox, FACT)
    session(sandbox, f"{FACT} Hm.")
    assert sandbox.json("promote", "--dry-run")["memories"] == []
    assert len(sandbox.json("promote", "--dry-run", "--preset", "aggressive")["memories"]) == 2
    sandbox.run("config", "promote.preset", "aggressive")
    assert len(sandbox.json("promote", "--dry-run")["memories"]) == 2
    done = sandbox.run("promote", "--preset", "generous")
    assert (done.returncode, "generous" in done.stderr) == (2, True)


def test_what_nobody_asked_to_keep_is_promoted_by_hand_only(sandbox: Sandbox):
    """What a rule recognises is a question; who names it promotes it."""
    session(sandbox, "This is a Django project with plain templates.")
    (row,) = listed(sandbox).values()
    assert row["why"] == "worth keeping? 0 of 3 points"
    (made,) = sandbox.json("promote", "--finding", row["id"])["memories"]
    assert made["is_new"]


@pytest.mark.parametrize("text", ["Use uv.", "Keep " + "this and that of " * 30 + "the order."])
def test_what_a_person_asks_to_pin_is_pinned_whatever_its_length(sandbox: Sandbox, text: str):
    """No model and no run of its own can do that: there it stays a candidate."""
    session(sandbox, f"Please pin this: {text}")
    assert sandbox.run("promote", "--auto", "--dry-run").stderr.count("would be a new") == 1
    done = sandbox.run("promote", "--preset", "conservative")
    assert (done.returncode, "memtool: " in done.stderr) == (0, False)
    (path,) = memories(sandbox)
    memory = document.read(path.read_bytes(), "")
    assert (memory.status, memory.body) == ("pinned", f"{text}\n")
    assert memory.statement in " ".join(sandbox.run("inject", "--primer").stdout.split())
    path.unlink()
    (sandbox.context().repository.cache_dir / Path("sessions/promotions.jsonl")).unlink()
    assert sandbox.run("promote", "--auto").returncode == 0
    (path,) = memories(sandbox)
    assert document.read(path.read_bytes(), "").status == "candidate"


def test_a_finding_chosen_by_hand_is_promoted(sandbox: Sandbox):
    """Choosing it is a person's intent; its id may be cut short."""
    session(sandbox, FACT, RULE)
    row = listed(sandbox)[FACT]
    done = sandbox.json("promote", "--finding", row["id"][:8])
    assert [made["finding"] for made in done["memories"]] == [row["id"]]
    (same,) = [finding for finding in done["findings"] if finding["id"] == row["id"]]
    assert (same["points"], same["signals"]) == (5, ["user-intent"])


def test_what_a_memory_says_already_strengthens_it(sandbox: Sandbox):
    """Its importance grows by 0.1, once for each finding, and no second memory is written."""
    sandbox.memory("sem-uv", f"{CONTENT}\n", type="semantic", title=CONTENT[:-1], importance="0.5")
    id_ = session(sandbox, RULE)
    (made,) = sandbox.json("promote")["memories"]
    assert (made["id"], made["is_new"]) == ("sem-uv", False)
    assert sandbox.json("show", "sem-uv")["importance"] == 0.6
    assert sandbox.json("promote", id_)["memories"] == []
    assert len(memories(sandbox)) == 1


def test_what_was_forgotten_is_not_promoted_again(sandbox: Sandbox):
    """Not this finding, nor the same words in another session, nor nearly the same."""
    session(sandbox, RULE)
    (made,) = sandbox.json("promote", "--commit")["memories"]
    sandbox.run("forget", made["id"], "--reason", "not so", "--commit")
    session(sandbox, RULE, "hm")
    session(sandbox, RULE.replace("this repository", "the repository"))
    rows = listed(sandbox).values()
    assert all(row["why"].startswith(f"denied: {made['id']} was forgotten") for row in rows)
    assert sandbox.json("promote")["memories"] == []
    done = sandbox.run("promote", "--finding", next(iter(rows))["id"])
    assert (done.returncode, "memtool restore sem-55nn" in done.stderr) == (2, True)
    sandbox.run("restore", made["id"])
    assert sandbox.json("promote")["memories"] != []


def test_what_was_superseded_since_is_not_brought_back(sandbox: Sandbox):
    """An older session does not undo a later decision; saying it anew does."""
    sandbox.memory("sem-uv", f"{CONTENT}\n", type="semantic", title=CONTENT[:-1])
    sandbox.memory(
        "sem-pixi",
        "Use pixi for packages.\n",
        type="semantic",
        supersedes=("sem-uv",),
        timestamp="2026-03-02T12:00:00Z",
    )
    session(sandbox, RULE)
    assert listed(sandbox)[CONTENT]["why"] == "denied: sem-pixi has replaced sem-uv, which said so"
    sandbox.env["MEMTOOL_NOW"] = "2026-03-03T12:00:00Z"
    session(sandbox, RULE, "yes")
    assert [row["why"] for row in sandbox.json("promote", "--list")["findings"]].count("") == 1


def test_an_automatic_run_does_nothing_while_it_is_switched_off(sandbox: Sandbox):
    """`capture.auto` stops --auto; a person's own call works on."""
    session(sandbox, RULE)
    sandbox.run("config", "capture.auto", "false")
    done = sandbox.run("promote", "--auto")
    assert "automatic promotion is off" in done.stderr
    assert memories(sandbox) == []
    assert sandbox.json("promote", "--auto", MEMTOOL_OFF="1")["memories"] == []
    sandbox.run("config", "capture.auto", "true")
    assert len(sandbox.json("promote", "--auto")["memories"]) == 1


def test_files_that_are_not_here_are_left_out(sandbox: Sandbox):
    """A memory governs what exists."""
    sandbox.write("app/models.py", "")
    session(
        sandbox,
        "Remember: database models live in app/models.py or lib/gone.py of the project.",
    )
    (made,) = sandbox.json("promote")["memories"]
    assert sandbox.json("show", made["id"])["files"] == ["app/models.py"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("ses-none",), "no session is called 'ses-none'"),
        (("../../etc",), "no session is called '../../etc'"),
        (("--finding", "f-none"), "no lesson begins with f-none"),
        (("--finding", ""), "no lesson begins with "),
        (("--finding", "f-"), "2 lessons begin with f-"),
    ],
)
def test_a_wrong_name_is_told_in_a_sentence(sandbox: Sandbox, args: tuple[str, ...], message: str):
    """Exit code 2, the error, and a command that shows more; nothing is written."""
    session(sandbox, RULE, FACT)
    done = sandbox.run("promote", *args)
    assert (done.returncode, message in done.stderr, "hint: " in done.stderr) == (2, True, True)
    assert memories(sandbox) == []


def test_without_sessions_and_with_an_empty_one(sandbox: Sandbox):
    """Nothing to promote is not an error."""
    done = sandbox.run("promote")
    assert (done.returncode, "memtool capture" in done.stderr) == (0, True)
    session(sandbox)
    assert sandbox.json("promote")["findings"] == []


def test_a_damaged_session_keeps_no_other_from_being_promoted(sandbox: Sandbox):
    """It is skipped with a note, and reported if it is asked for by name."""
    id_ = session(sandbox, RULE)
    session(sandbox, "Remember: we never mock the database.")
    (sandbox.path / ".git/memtool/sessions" / id_ / "head.json").write_text("{")
    done = sandbox.run("promote")
    assert (done.returncode, "is damaged" in done.stderr) == (0, True)
    assert len(memories(sandbox)) == 1
    assert sandbox.run("promote", id_).returncode == 2


def test_what_the_gate_refuses_keeps_no_other_from_being_promoted(sandbox: Sandbox):
    """A finding with personal data in a journal of another hand is told, without the data."""
    id_ = session(sandbox, RULE, "Remember: we never mock the database.")
    listed(sandbox)
    place = sandbox.path / ".git/memtool/sessions" / id_ / "findings.jsonl"
    place.write_text(place.read_text().replace("the database", "mia.wong@corp-mail.net"))
    done = sandbox.run("promote")
    assert (done.returncode, "an email address" in done.stderr) == (0, True)
    assert "mia.wong" not in done.stderr
    assert len(memories(sandbox)) == 1


@pytest.mark.slow
def test_runs_at_the_same_time_promote_once(sandbox: Sandbox):
    """One waits for the other, and finds nothing left to do."""
    session(sandbox, RULE, "Remember: we never mock the database.")
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "memtool", "promote"],
            cwd=sandbox.path,
            env=sandbox.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for _run in range(4)
    ]
    outcomes = sorted(run.communicate()[1].decode() for run in runs)
    nothing = "nothing to promote; memtool promote --list shows what is lacking\n"
    assert outcomes.count(nothing) == 3
    (made,) = (outcome for outcome in outcomes if outcome != nothing)
    assert made.count("new candidate") == 2
    assert len(memories(sandbox)) == 2
    # What a person asked to remember has this importance; a second run would have raised it.
    assert all("\nimportance: 0.8\n" in path.read_text() for path in memories(sandbox))


def test_why_leads_back_to_the_messages(sandbox: Sandbox):
    """Memory, finding, message; and in a clone, that the session is somewhere else."""
    id_ = session(sandbox, "hello", RULE)
    (made,) = sandbox.json("promote", "--commit")["memories"]
    (finding,) = sandbox.json("why", made["id"])["sources"]
    assert (finding["kind"], finding["detail"]) == ("finding", CONTENT)
    (message,) = finding["sources"]
    assert (message["source"], message["status"]) == (f"session:{id_}#2", "ok")
    assert RULE in message["detail"]
    clone = Sandbox(sandbox.path.parent / "clone", sandbox.env)
    sandbox.git("clone", "--quiet", ".", str(clone.path))
    (source,) = clone.json("why", made["id"])["sources"]
    assert (source["source"], source["status"]) == (f"session:{id_}#2", "unknown")


@pytest.fixture
def with_model(sandbox: Sandbox) -> Sandbox:
    """A user whose own settings name a model, which answers as `MODE` says."""
    sandbox.env["MEMTOOL_GLOBAL"] = str(sandbox.path.parent / "global")
    sandbox.env["ASKED"] = str(sandbox.path.parent / "asked.txt")
    return sandbox


def use(sandbox: Sandbox, mode: str) -> None:
    argv = f"{sys.executable},{ANSWERING},{mode}"
    done = sandbox.run("--global", "config", "extraction.command", argv)
    assert done.returncode == 0, done.stderr


def test_the_model_of_the_user_words_the_findings(with_model: Sandbox):
    """Its words are kept, so that listing and another run do not ask again."""
    use(with_model, "good")
    session(with_model, FACT.replace("body.", "body, not the JSON."))
    with_model.run("promote")
    prompts_file = Path(with_model.env["ASKED"])
    assert prompts_file.read_text(encoding="utf-8").count("\0") == 1
    (row,) = listed(with_model).values()
    assert (row["content"], row["tags"]) == (
        "The webhook signature is computed over the raw body.",
        ["api"],
    )
    with_model.run("promote")
    assert prompts_file.read_text(encoding="utf-8").count("\0") == 1


@pytest.mark.parametrize("mode", ["prose", "fails", "partial"])
def test_a_model_that_fails_gives_way_to_the_rules(with_model: Sandbox, mode: str):
    """It is told, and nothing is lost."""
    use(with_model, mode)
    session(with_model, RULE)
    done = with_model.run("promote")
    assert "the rules were used instead" in done.stderr
    assert len(memories(with_model)) == 1


def test_a_repository_chooses_no_program(with_model: Sandbox):
    """A command in the committed settings is not run, and that is told."""
    mark = with_model.path.parent / "ran"
    argv = json.dumps(["sh", "-c", f"touch {mark}"])
    with_model.write(".memory/config.toml", f"[extraction]\ncommand = {argv}\n")
    session(with_model, RULE)
    done = with_model.run("promote")
    assert "is not run" in done.stderr
    assert not mark.exists()
    assert len(memories(with_model)) == 1


def test_curate_shows_a_plan_and_applies_it_when_asked(with_model: Sandbox):
    """Fitting steps are proposed; only --apply changes files, in one commit."""
    with_model.memory("sem-pip", "Use pip in this repository.\n", type="semantic", title="Use pip")
    with_model.memory("sem-ci", "All checks run in CI.\n", type="semantic", title="Checks")
    session(with_model, RULE)
    (made,) = with_model.json("promote", "--commit")["memories"]
    with_model.commit()
    use(with_model, "actions")
    with_model.env["ACTIONS"] = json.dumps(
        [
            {"do": "supersedes", "id": made["id"], "to": "sem-pip", "why": "pip was given up"},
            {"do": "supersedes", "id": made["id"], "to": "sem-none", "why": "a lie"},
            {"do": "pin", "id": "sem-pip", "why": "as before"},
            {"do": "pin", "id": "sem-ci", "why": "\x1b[31mred"},
            "prose",
            5,
        ]
    )
    done = with_model.run("curate")
    assert "supersedes sem-pip  Use pip\n  pip was given up" in done.stdout
    assert ("2 of 4 proposals do not fit" in done.stderr, "\x1b" in done.stdout) == (True, False)
    assert with_model.git("status", "--porcelain") == ""
    plan = with_model.json("curate", "--apply", "--commit")
    assert [step["do"] for step in plan["steps"]] == ["supersedes", "pin"]
    assert with_model.git("status", "--porcelain") == ""
    assert with_model.json("show", made["id"])["supersedes"] == ["sem-pip"]
    assert with_model.json("show", "sem-ci")["status"] == "pinned"


def test_curate_without_a_model_proposes_what_contradicts(sandbox: Sandbox):
    """Rules know one step: a candidate takes the place of what it opposes."""
    sandbox.memory("sem-yes", "Enable the query cache in production.\n", type="semantic")
    sandbox.memory(
        "sem-no", "Disable the query cache in production.\n", type="semantic", status="candidate"
    )
    plan = sandbox.json("curate")
    assert [(plan["by"], step["id"], step["to"]) for step in plan["steps"]] == [
        ("rules", "sem-no", "sem-yes")
    ]
    assert sandbox.run("curate", "--commit").returncode == 0
    assert "supersedes" not in sandbox.json("show", "sem-no")


def test_a_candidate_that_contradicts_what_stands_is_told(sandbox: Sandbox):
    """Both are kept, and the next step is named; agreeing candidates are not reported."""
    sandbox.run("remember", "We always retry payments after a timeout.")
    session(sandbox, "Remember: never retry payments after a timeout.", RULE)
    done = sandbox.run("promote")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2)
    (warning,) = [line for line in done.stderr.splitlines() if " may contradict " in line]
    new, _middle, old = warning.removeprefix("memtool: ").partition(" may contradict ")
    titles = {row["id"]: row["title"] for row in sandbox.json("list")["memories"]}
    by_short = {short(sandbox, id_): title for id_, title in titles.items()}
    assert by_short[new].startswith("Never retry")
    assert by_short[old.split(";")[0]].startswith("We always retry")
    assert warning.endswith("memtool curate proposes what to do")


def heard_at(sandbox: Sandbox, moment: str, *texts: str, **env: str) -> None:
    """Capture a transcript in which a person says some things at a moment."""
    rows = [
        {
            "type": "user",
            "uuid": f"{moment}-{number}",
            "sessionId": f"of-{moment[:10]}",
            "timestamp": moment,
            "message": {"role": "user", "content": text},
        }
        for number, text in enumerate(texts)
    ]
    stdin = "".join(json.dumps(row) + "\n" for row in rows)
    assert sandbox.run("capture", "-", stdin=stdin, **env).returncode == 0


def test_what_was_said_before_a_decision_does_not_replace_it(sandbox: Sandbox):
    """A remark of March that is promoted in November is dated in March.

    A day passes before it is confirmed, however old the word.
    """
    sandbox.env |= {"MEMTOOL_NOW": "2026-11-22T12:00:00Z"}
    sandbox.run("remember", "We always retry payments after a timeout.", "--commit")
    sandbox.env |= {"MEMTOOL_NOW": "2026-11-23T12:00:00Z"}
    heard_at(sandbox, "2026-03-05T09:00:00Z", "Remember: never retry payments after a timeout.")
    done = sandbox.run("promote", "--commit", GIT_COMMITTER_DATE="2026-11-23T12:00:00Z")
    (path,) = done.stdout.splitlines()
    memory = document.read((sandbox.path / path).read_bytes(), "")
    command = f"memtool archive {short(sandbox, memory.id)}"
    assert f"it was said before that; {command}" in done.stderr
    assert path.startswith(".memory/semantic/2026-03/sem-2026-03-05-never-retry")
    assert memory.text("timestamp") == "2026-03-05T09:00:00Z"
    assert sandbox.json("curate")["steps"] == []
    assert sandbox.json("check")["problems"] == []
    sandbox.run("show", memory.id)
    sandbox.run(
        "archive", "we-always-retry", "--reason", "a test of what opposes nothing", "--commit"
    )
    assert sandbox.json("maintain", "--nightly")["steps"] == []
    tomorrow = "2026-11-24T12:00:00Z"
    (step,) = sandbox.json("maintain", "--nightly", MEMTOOL_NOW=tomorrow)["steps"]
    assert (step["do"], step["id"]) == ("confirm", memory.id)


def test_the_time_of_an_old_word_begins_with_its_promotion(sandbox: Sandbox):
    """Otherwise it would expire before a reviewer could confirm it."""
    heard_at(sandbox, "2025-10-05T09:00:00Z", "Remember: we decided to keep the carts in Postgres.")
    heard_at(sandbox, "2026-02-05T09:00:00Z", "Remember: we decided to keep the orders in SQLite.")
    sandbox.run("promote")
    old, new = (document.read(path.read_bytes(), "") for path in memories(sandbox))
    assert (old.text("timestamp"), new.text("timestamp")) == (
        "2025-10-05T09:00:00Z",
        "2026-02-05T09:00:00Z",
    )
    assert old.table("checked") == {"at": "2026-03-01T12:00:00Z", "by": "memtool promote"}
    assert new.table("checked") == {}
    assert sandbox.json("list", "is:alive")["total"] == 2


def test_what_is_said_again_has_the_date_of_the_last_time(sandbox: Sandbox):
    """Whichever finding is promoted first; a statement after a decision may replace it."""
    text = "Remember: never retry payments after a timeout."
    sandbox.run(
        "remember", "We always retry payments after a timeout.", MEMTOOL_NOW="2026-02-20T12:00:00Z"
    )
    for moment in ("2026-01-05T09:00:00Z", "2026-02-27T09:00:00Z", "2026-01-30T09:00:00Z"):
        heard_at(sandbox, moment, text)
    made = {memory["id"] for memory in sandbox.json("promote")["memories"]}
    (id_,) = made
    assert sandbox.json("show", id_)["timestamp"] == "2026-02-27T09:00:00Z"
    (step,) = sandbox.json("curate")["steps"]
    assert (step["do"], step["id"]) == ("supersedes", id_)


def resolved_at(sandbox: Sandbox, moment: str, *fixes: str, call: str = "pytest -q") -> str:
    """Capture a transcript in which a command failed, others ran, and it worked; its session."""
    outcomes = [(call, "E   ModuleNotFoundError: No module named 'tomli_w'", True)]
    outcomes += [(fix, "done", False) for fix in fixes]
    rows: list[dict] = []
    for number, (command, text, is_error) in enumerate([*outcomes, (call, "4 passed", False)]):
        use = {
            "type": "tool_use",
            "id": f"t{number}",
            "name": "Bash",
            "input": {"command": command},
        }
        answer = {
            "type": "tool_result",
            "tool_use_id": f"t{number}",
            "content": text,
            "is_error": is_error,
        }
        rows += [
            {"type": "assistant", "message": {"role": "assistant", "content": [use]}},
            {"type": "user", "message": {"role": "user", "content": [answer]}},
        ]
    common = {"sessionId": f"of-{moment[:10]}", "timestamp": moment}
    stdin = "".join(
        json.dumps(row | common | {"uuid": f"{moment}-{number}"}) + "\n"
        for number, row in enumerate(rows)
    )
    assert sandbox.run("capture", "-", stdin=stdin).returncode == 0
    return common["sessionId"]


def heads_of_failures(sandbox: Sandbox) -> list[dict]:
    """Return the memories that no other memory replaces, confirmed or not."""
    rows = sandbox.json("list", "type:episodic", "is:head")["memories"]
    named = {id_ for row in rows for id_ in sandbox.json("show", row["id"]).get("supersedes", ())}
    return [row for row in rows if row["id"] not in named]


def test_a_failure_of_three_sessions_is_one_memory_with_three_sources(sandbox: Sandbox):
    """Promoted at once or one by one, and with another command; dated by the last, once each."""
    names = [resolved_at(sandbox, f"2026-02-0{day}T09:00:00Z", "uv sync") for day in (3, 2)]
    sandbox.run("promote", "--commit")
    names.append(resolved_at(sandbox, "2026-02-05T09:00:00Z", "uv sync", call="pytest -q tests/a"))
    (made,) = sandbox.json("promote", "--commit")["memories"]
    assert made["is_new"] is False
    for _time in range(2):
        (row,) = heads_of_failures(sandbox)
        shown = sandbox.json("show", row["id"])
        assert sorted(shown["source"]) == sorted(
            f"session:{name}#{n}" for name in names for n in (2, 6)
        )
        assert (shown["timestamp"], shown["importance"]) == ("2026-02-05T09:00:00Z", 0.8)
        (sandbox.path / ".git/memtool/sessions/promotions.jsonl").unlink(missing_ok=True)
        sandbox.run("promote", "--commit")
    assert sandbox.json("check")["problems"] == []


def test_a_newer_fix_of_a_failure_is_to_supersede_the_older_one(sandbox: Sandbox):
    """In the order in which they were found, not read; an older one that comes late is denied."""
    for day, fix in ((4, "uv add tomli_w"), (2, "uv sync")):
        resolved_at(sandbox, f"2026-02-0{day}T09:00:00Z", fix)
    made = promote_traces(sandbox, "--commit")
    assert [len(memory["supersedes"]) for memory in made] == [0, 1]
    (head,) = heads_of_failures(sandbox)
    assert "uv add" in head["title"]
    assert f"Proposes: {made[0]['id']}" in sandbox.git("log", "-1", "--format=%B")
    resolved_at(sandbox, "2026-02-03T09:00:00Z", "pip install tomli_w")
    assert sandbox.json("promote")["memories"] == []
    (late,) = [row for content, row in listed(sandbox).items() if "pip" in content]
    refused = sandbox.run("promote", "--finding", late["id"])
    newer = short(sandbox, head["id"])
    assert f"denied: {newer} has a newer fix of this failure" in refused.stderr
    resolved_at(sandbox, "2026-02-06T09:00:00Z", "uv sync")  # the first one helped again
    old = short(sandbox, head["id"])
    assert f"would replace {old}, which has" in sandbox.run("promote", "--commit").stderr
    assert [("uv sync" in row["title"]) for row in heads_of_failures(sandbox)] == [True]
    assert sandbox.json("check")["problems"] == []


def test_another_change_of_the_same_file_is_another_fix(sandbox: Sandbox):
    """Both are told in the same words: what was changed counts."""
    failure = "E   ModuleNotFoundError: No module named 'tomli_w'"
    for added in ("tomli_w", "tomli_w", "tomli_w>=1"):
        heard(
            sandbox,
            Message(0, "tool", failure, tool="Bash", call="pytest -q", is_ok=False),
            Message(
                0,
                "tool",
                f"+{added}",
                tool="Edit",
                call="setup.cfg",
                is_ok=True,
                files=("setup.cfg",),
            ),
            Message(0, "tool", "4 passed", tool="Bash", call="pytest -q", is_ok=True),
        )
        promote_traces(sandbox, "--commit")
    (head,) = heads_of_failures(sandbox)
    assert "+tomli_w>=1\n" in sandbox.json("show", head["id"])["body"]
    (old,) = sandbox.json("show", head["id"])["supersedes"]
    assert len(sandbox.json("show", old)["source"]) == 4
    assert old in {row["id"] for row in sandbox.json("list", "type:episodic")["memories"]}
    assert sandbox.json("check")["problems"] == []


def test_a_trace_is_listed_once_it_came_in_two_sessions(sandbox: Sandbox):
    """Or if its session is named, or the setting says so; the list counts those left out."""
    first = resolved_at(sandbox, "2026-02-02T09:00:00Z", "uv sync")
    resolved_at(sandbox, "2026-02-03T09:00:00Z", "make deps", call="tox -e lint")
    rows = sandbox.run("promote", "--list")
    assert listed(sandbox) != {}  # the same failure, in two commands
    assert "one session alone" not in rows.stderr
    failure = "bash: deploy: orden no encontrada"
    lone = heard(
        sandbox,
        Message(0, "tool", failure, tool="Bash", call="deploy now", is_ok=False),
        Message(0, "tool", "done", tool="Bash", call="npx deploy now", is_ok=True),
    )
    assert all("deploy" not in content for content in listed(sandbox))
    stderr = sandbox.run("promote", "--list").stderr
    hidden = "1 error was resolved in one session alone: memtool config capture.traces on"
    assert stderr == f"memtool: {hidden}\n"
    (row,) = listed(sandbox, lone).values()
    assert row["content"].endswith("running `npx deploy now` resolved it.")
    assert len(listed(sandbox, first)) == 1
    sandbox.run("config", "capture.traces", "on")
    assert row["id"] in [row["id"] for row in listed(sandbox).values()]
    assert "one session alone" not in sandbox.run("promote", "--list").stderr


def test_a_confirmed_fix_is_replaced_by_a_person_alone(sandbox: Sandbox):
    """A candidate with another fix stands beside it, and curation proposes it; once more, no news.

    The same failure of another command is another one.
    """
    resolved_at(sandbox, "2026-02-02T09:00:00Z", "uv sync")
    (old,) = promote_traces(sandbox, "--commit")
    sandbox.run("confirm", old["id"], "--commit")
    names = [
        resolved_at(sandbox, "2026-02-03T09:00:00Z", "uv add tomli_w"),
        resolved_at(sandbox, "2026-02-04T09:00:00Z", "make deps", call="tox"),
    ]
    rows = [sandbox.json("promote", "--list", name)["findings"][0]["id"] for name in names]
    named = [word for id_ in rows for word in ("--finding", id_)]
    done = sandbox.run("promote", "--commit", "--json", *named)
    new, other = json.loads(done.stdout)["memories"]
    assert (new["supersedes"], other["supersedes"]) == ([], [])
    assert f"{new['id']} may contradict {old['id']}" in done.stderr
    (step,) = sandbox.json("curate", "--apply", "--commit")["steps"]
    assert (step["id"], step["to"]) == (new["id"], old["id"])
    assert {row["id"] for row in heads_of_failures(sandbox)} == {new["id"], other["id"]}
    proposal = f"{new['id']} proposes to replace {old['id']}"
    proposed = sandbox.run("status").stdout.partition("Proposed replacements (1;")[2]
    new_short, old_short = (short(sandbox, memory["id"]) for memory in (new, old))
    assert re.search(rf"\n  {new_short}  .*  for {old_short}\n", proposed)
    assert sandbox.json("why", old["id"])["proposals"] == [proposal]


def test_the_settings_say_whether_and_what_is_extracted(sandbox: Sandbox):
    """Of project and user whoever says no; a category that does not exist is refused."""
    session(sandbox, RULE, "Remember: we decided to keep the carts in Postgres.")
    sandbox.env["MEMTOOL_GLOBAL"] = str(sandbox.path.parent / "global")
    sandbox.write(".memory/config.toml", "[extraction]\nenabled = false\n")
    assert listed(sandbox) == {}
    sandbox.write(".memory/config.toml", '[extraction]\ncategories = ["decision"]\n')
    assert [row["category"] for row in listed(sandbox).values()] == ["decision"]
    sandbox.write(".memory/config.toml", '[extraction]\ncategories = ["desicion"]\n')
    wrong = sandbox.run("promote", "--list")
    assert (wrong.returncode, "unknown categories: desicion" in wrong.stderr) == (2, True)
    sandbox.write(".memory/config.toml", "[extraction]\nenabled = true\n")
    assert sandbox.run("--global", "config", "extraction.enabled", "false").returncode == 0
    session(sandbox, "Remember: never use tabs in this repository, please.")
    assert len(listed(sandbox)) == 1


def test_a_candidate_has_the_tags_of_living_memories_that_it_names(sandbox: Sandbox):
    """Beside those that the extraction knows; the person who confirms it sees them in the file."""
    sandbox.memory("sem-a", "Wheels are built in CI.\n", type="semantic", tags=("uv", "ci"))
    session(sandbox, RULE)
    sandbox.run("promote")
    (path,) = [path for path in memories(sandbox) if path.stem != "sem-a"]
    assert set(document.read(path.read_bytes(), "").items("tags")) >= {"uv"}
    assert "ci" not in document.read(path.read_bytes(), "").items("tags")


def test_a_dismissed_finding_is_not_proposed_again(sandbox: Sandbox):
    """Nor are the same words in another session; it is listed on request."""
    first = session(sandbox, RULE)
    id_ = listed(sandbox)[CONTENT]["id"]
    done = sandbox.run("promote", "--dismiss", id_, "--reason", "for that day only")
    assert (done.returncode, done.stderr) == (0, "")
    assert "dismissed on" in done.stdout
    assert "for that day only" in done.stdout
    session(sandbox, RULE)
    assert listed(sandbox) == {}
    assert "2 lessons were dismissed" in sandbox.run("promote", "--list").stderr
    assert sandbox.run("promote").stderr.startswith("nothing to promote")
    rows = sandbox.json("promote", "--dismissed")["findings"]
    assert [(row["content"], row["dismissed"]) for row in rows] == [(CONTENT, True)] * 2
    assert len(listed(sandbox, "--dismissed")) == 1
    assert memories(sandbox) == []
    assert "for that day only" in sandbox.run("session", "export", first).stdout


def test_a_dismissal_is_taken_back(sandbox: Sandbox):
    """From whichever session it is named: then the finding is promoted as any other."""
    session(sandbox, RULE)
    sandbox.run("promote", "--dismiss", listed(sandbox)[CONTENT]["id"])
    session(sandbox, RULE)
    names = [row["id"] for row in sandbox.json("promote", "--dismissed")["findings"]]
    refused = sandbox.run("promote", "--finding", names[0])
    assert refused.returncode == 2
    assert f"memtool promote --reopen {names[0]}" in refused.stderr
    assert sandbox.run("promote", "--reopen", names[0]).returncode == 0
    assert "nothing was dismissed" in sandbox.run("promote", "--dismissed").stderr
    sandbox.run("promote")
    assert len(memories(sandbox)) == 1


SECRET = "ghp_" + "k7Qm2Zx9Lw4Tn8Vb3Rj6Hd5Pf1Sg0Yc2AeUi"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--dismiss", "f-none"), "no lesson begins with"),
        (("--reopen", "ID"), "is not dismissed"),
        (("--dismiss", "ID", "--finding", "ID"), "exclude each other"),
        (("--dismiss", "ID", "--reopen", "ID"), "exclude each other"),
        (("--reason", "so"), "--reason needs --dismiss"),
        (("--dismiss", "ID", "--reason", f"the key {SECRET}"), "[REDACTED:"),
    ],
)
def test_what_cannot_be_dismissed_is_said(sandbox: Sandbox, words: tuple[str, ...], says: str):
    """One sentence and exit code 2, and the finding waits as before."""
    session(sandbox, RULE)
    id_ = listed(sandbox)[CONTENT]["id"]
    done = sandbox.run("promote", *(id_ if word == "ID" else word for word in words))
    assert done.returncode == 2
    assert says in done.stderr
    assert listed(sandbox)[CONTENT]["dismissed"] is False


def test_a_dry_run_dismisses_nothing(sandbox: Sandbox):
    """It shows the finding; a promoted one must be forgotten, not dismissed."""
    session(sandbox, RULE)
    id_ = listed(sandbox)[CONTENT]["id"]
    assert CONTENT in sandbox.run("promote", "--dismiss", id_, "--dry-run").stdout
    assert listed(sandbox)[CONTENT]["dismissed"] is False
    sandbox.run("promote")
    assert "memtool forget" in sandbox.run("promote", "--dismiss", id_).stderr


def test_a_dismissal_goes_with_its_session(sandbox: Sandbox):
    """Nothing that was private stays behind; the words of another session are proposed then."""
    first = session(sandbox, RULE)
    sandbox.run("promote", "--dismiss", listed(sandbox)[CONTENT]["id"], "--reason", "ZEBRA")
    session(sandbox, RULE)
    sandbox.run("session", "delete", first)
    assert len(listed(sandbox)) == 1
    paths = (sandbox.path / ".git/memtool/sessions").rglob("*")
    assert not any(b"ZEBRA" in path.read_bytes() for path in paths if path.is_file())


def test_an_unknown_finding_is_refused_before_anything_is_read(sandbox: Sandbox):
    """No session is read or written to find out that it does not exist."""
    id_ = session(sandbox, RULE)
    assert sandbox.run("promote", "--finding", "f-none").returncode == 2
    assert not (sandbox.path / f".git/memtool/sessions/{id_}/findings.jsonl").exists()


@pytest.mark.parametrize("preset", ["conservative", "balanced", "aggressive"])
def test_what_a_person_asks_to_keep_waits_whatever_its_length(
    sandbox: Sandbox, preset: str
) -> None:
    """One word or a hundred: it qualifies by every preset, and status counts it."""
    long = " ".join(f"depot{number} ships on weekdays and" for number in range(20)) + " rests."
    text = (
        "User: Remember that the QA lead is Bo.\n\n"
        "Remember: sign webhooks with Ed25519.\n\n"
        "Keep in mind: tabs.\n\n"
        f"Remember that {long}\n\nAssistant: Noted.\n"
    )
    sandbox.run("capture", "-", "--end", stdin=text)
    rows = sandbox.json("promote", "--list", "--preset", preset)["findings"]
    assert {row["content"] for row in rows if not row["why"]} == {
        "The QA lead is Bo.",
        "Sign webhooks with Ed25519.",
        "tabs.",
        long,
    }
    if preset == "balanced":
        assert sandbox.json("status")["findings"] == 4
        assert "Lessons of sessions (4): memtool promote --list" in sandbox.run("status").stdout


def test_a_finding_in_the_place_of_a_session_is_told(sandbox: Sandbox) -> None:
    """The hint is the command that was meant."""
    done = sandbox.run("promote", "f-nosuch")
    assert (done.returncode, "no lesson begins with f-nosuch" in done.stderr) == (2, True)
