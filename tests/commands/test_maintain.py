"""`memtool maintain`: one plan, one commit, nothing twice, nothing of the user's touched."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import NOW, Sandbox

from memtool import templates
from memtool.memory import timestamps
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.store import ledger, usage_log
from memtool.store.usage_log import Note, ShownItem

LATE = {"timestamp": "2025-02-22T19:33:00Z", "category": "task_progress"}
SAID = "Deploys to production need the company VPN to be connected first.\n"
VPN = {"type": "semantic", "title": "Deploys need the VPN"}


def looked_at(sandbox: Sandbox, id_: str, times: int, second: int) -> None:
    """Count that answers showed a memory."""
    directory = str(sandbox.path / ".git" / "memtool")
    for _time in range(times):
        usage_log.append_note(directory, Note(second, "show", 1.0, items=(ShownItem(id_),)))
    ledger.fold(directory)


@pytest.fixture
def store(sandbox: Sandbox) -> Sandbox:
    """A store with something to do of every kind, committed."""
    sandbox.memory("dec-new", "Sessions live in Postgres.\n", title="Sessions in Postgres")
    sandbox.memory("dec-old", "Builds run on one machine.\n", title="Builds on one machine", **LATE)
    sandbox.memory("sem-a", SAID, **VPN, tags=("net",))
    sandbox.memory("sem-b", SAID, **VPN, source=("human:Bob",))
    sandbox.memory("sem-seen", "Tests run with pytest.\n", type="semantic", status="candidate")
    sandbox.memory("sem-unseen", "Logs are JSON lines.\n", type="semantic", status="candidate")
    sandbox.commit()
    looked_at(sandbox, "sem-seen", 1, 1_772_000_000)
    return sandbox


def done(answer: object) -> list[tuple[str, str]]:
    """Return the steps of an answer, without the ends of ids."""
    assert isinstance(answer, dict)
    return [
        (step["do"], step["id"].rpartition("-")[0] if step["is_new"] else step["id"])
        for step in answer["steps"]
    ]


ALL = [
    ("archive", "dec-old"),
    ("merge", "sem-2026-02-22-deploys-need-the-vpn"),
    ("confirm", "sem-seen"),
    ("fade", "sem-unseen"),
]


def test_a_plan_changes_nothing(store: Sandbox):
    """Without --apply, and with --dry-run, everything stays as it is."""
    before = store.git("rev-parse", "HEAD")
    plan = store.json("maintain")
    assert done(plan) == ALL
    assert done(store.json("maintain", "--apply", "--dry-run")) == ALL
    assert (plan["applied"], plan["commit"]) == (False, None)
    assert store.git("rev-parse", "HEAD") == before
    assert store.git("status", "--porcelain") == ""


def test_each_period_has_its_own(store: Sandbox):
    """The steps of every night, week and month add up to all."""
    assert done(store.json("maintain", "--nightly")) == ALL[1:]
    assert done(store.json("maintain", "--weekly")) == ALL[:1]
    assert done(store.json("maintain", "--monthly")) == []


def test_one_thing_alone_can_be_looked_after(store: Sandbox):
    """Fading, digests, sessions, the index; the commit names it, and no period is over."""
    assert done(store.json("maintain", "--only", "decay")) == [ALL[0], ALL[3]]
    assert done(store.json("maintain", "--only", "digests")) == []
    store.run("search", "sessions")
    chores = store.json("maintain", "--only", "index")["chores"]
    assert [chore["do"] for chore in chores] == ["rebuild"]
    assert store.json("maintain", "--only", "sessions")["chores"] == []
    answer = store.json("maintain", "--only", "decay", "--apply")
    assert (answer["only"], answer["periods"]) == ("decay", [])
    trailer = store.git("log", "-1", "--format=%(trailers:key=Maintain,valueonly)")
    assert trailer.strip() == "decay"
    assert done(store.json("maintain", "--only", "decay")) == []
    assert store.json("maintain", "--due")["periods"] == ["nightly", "weekly", "monthly"]
    wrong = store.run("maintain", "--only", "index", "--weekly")
    assert (wrong.returncode, "--only excludes" in wrong.stderr) == (2, True)


def test_what_is_due_by_the_schedule_is_reported_and_done(store: Sandbox):
    """Each period after its time; without a schedule the status is silent."""
    assert store.json("status")["upkeep"] == []
    store.write(".memory/config.toml", '[maintain]\nschedule = ["weekly", "nightly"]\n')
    store.commit()
    assert store.json("status")["upkeep"] == ["nightly", "weekly"]
    assert "memtool maintain --due" in store.run("status").stdout
    assert store.json("maintain", "--due", "--apply")["periods"] == ["nightly", "weekly"]
    assert store.json("status")["upkeep"] == []
    again = store.run("maintain", "--due", "--apply")
    assert (again.returncode, "no upkeep is due yet" in again.stderr) == (0, True)
    assert again.stdout == "Nothing to do.\n"
    tomorrow = {"MEMTOOL_NOW": "2026-03-02T12:00:00Z"}
    assert store.json("maintain", "--due", **tomorrow)["periods"] == ["nightly"]
    store.write(".memory/config.toml", '[maintain]\nschedule = ["daily"]\n')
    assert "may contain only nightly, weekly" in store.run("status").stderr


def test_importance_is_learned_where_it_is_switched_on_and_shown_first(store: Sandbox):
    """The plan says what would become of it; the file has what it was, and the gate agrees."""
    looked_at(store, "dec-new", 10, 1_772_000_000)
    assert ("weigh", "dec-new") not in done(store.json("maintain"))
    store.write(".memory/config.toml", "[importance]\nlearn = true\n")
    store.commit()
    shown = store.run("maintain", "--weekly").stdout
    assert "\nWeigh (1), by how often they were used:\n  dec-new  Sessions in Postgres  " in shown
    assert "  it was used 10 times in 90 days, importance 0.5 becomes 0.65\n" in shown
    assert "importance" not in store.json("show", "dec-new")
    store.json("maintain", "--weekly", "--apply")
    text = next((store.path / ".memory").rglob("dec-new.md")).read_text()
    assert "importance: 0.65\n" in text
    row = "  at: 2026-03-01T12:00:00Z\n  by: memtool maintain\n  was: 0.5\n  to: 0.65\n"
    assert f"learned:\n{row}" in text
    assert store.json("check", "--range", "HEAD^..HEAD")["problems"] == []
    assert done(store.json("maintain", "--weekly")) == []


def test_it_is_one_commit_that_says_what_and_why(store: Sandbox):
    """The message has a line for each step; the gate finds nothing wrong; then nothing is left."""
    before = store.git("rev-parse", "HEAD").strip()
    answer = store.json("maintain", "--apply")
    assert answer["commit"] == store.git("rev-parse", "HEAD").strip()
    assert store.git("rev-parse", "HEAD^").strip() == before
    message = store.git("log", "-1", "--format=%B")
    assert message.startswith("memory: maintain: 1 archived, 1 merged, 1 confirmed, 1 faded\n\n")
    why = "the 14 days of the category task_progress were over on 2025-03-08"
    assert f"archive dec-old: {why}\n" in message
    assert store.git("log", "-1", "--format=%(trailers:key=Maintain,valueonly)").strip() == (
        "nightly, weekly, monthly"
    )
    assert store.git("status", "--porcelain") == ""
    assert store.json("check", "--range", "HEAD^..HEAD")["problems"] == []
    again = store.json("maintain", "--apply")
    assert (again["steps"], again["chores"], again["commit"]) == ([], [], None)


def test_the_merged_memory_holds_the_evidence_of_all(store: Sandbox):
    """Two confirmed memories that say the same are superseded by one with both their sources."""
    answer = store.json("maintain", "--nightly", "--apply")
    (made,) = [step["id"] for step in answer["steps"] if step["do"] == "merge"]
    shown = store.json("show", made)
    assert shown["supersedes"] == ["sem-a", "sem-b"]
    assert sorted(shown["source"]) == ["human:Ada", "human:Bob"]
    assert shown["tags"] == ["net"]
    assert store.json("show", "sem-a")["superseded_by"] == [made]


def test_two_clones_make_the_same_merge(store: Sandbox, tmp_path: Path):
    """Both branches merge without a conflict: the new file is the same to the byte."""
    store.git("clone", "--quiet", str(store.path), str(tmp_path / "other"))
    other = Sandbox(tmp_path / "other", store.env | {"MEMTOOL_SEED": "another"})
    for clone, now in ((store, NOW), (other, "2026-03-02T08:00:00Z")):
        assert clone.run("maintain", "--nightly", "--apply", MEMTOOL_NOW=now).returncode == 0
    store.git("fetch", "--quiet", str(other.path), "main")
    store.git("merge", "--quiet", "--no-edit", "FETCH_HEAD")
    assert store.json("conflicts")["conflicts"] == []


def test_a_candidate_fades_once(store: Sandbox):
    """Its importance is 0.8 of what it was, and a later night leaves it so."""
    store.run("maintain", "--nightly", "--apply")
    memory = store.context().tree()["sem-unseen"].memory
    assert (memory.importance, memory.table("faded")["was"]) == (0.4, "0.5")
    assert store.json("log", "sem-unseen")["events"][0]["kind"] == "faded"
    later = store.json("maintain", "--nightly", MEMTOOL_NOW="2026-03-04T12:00:00Z")
    assert later["steps"] == []


def test_work_of_the_user_stays(store: Sandbox):
    """Memories with changes, staged or not, are left out and told; other staged files too stay."""
    path = store.memory("dec-old", "Builds run on two machines.\n", title="Builds", **LATE)
    store.git("add", path)
    draft = store.memory("dec-draft", "Perhaps so.\n", **LATE)
    store.write("code.py", "x = 1\n")
    store.git("add", "code.py")
    before = store.git("status", "--porcelain")
    answer = store.json("maintain", "--apply")
    assert done(answer) == ALL[1:]
    assert answer["left_out"] == sorted([path, draft])
    assert store.git("status", "--porcelain") == before


def test_a_branch_is_made_without_touching_the_worktree(store: Sandbox):
    """The commit is on the branch alone; HEAD, index and files are as they were."""
    store.write("code.py", "x = 1\n")
    before = (store.git("rev-parse", "HEAD"), store.git("status", "--porcelain"))
    answer = store.json("maintain", "--apply", "--branch", "memtool/maintain")
    assert done(answer) == ALL
    assert (store.git("rev-parse", "HEAD"), store.git("status", "--porcelain")) == before
    tip = store.git("rev-parse", "memtool/maintain").strip()
    assert answer["commit"] == tip
    assert store.git("rev-parse", "memtool/maintain^") == before[0]
    assert store.json("maintain", "--branch", "memtool/maintain")["steps"] == []
    assert store.json("check", "--range", "HEAD..memtool/maintain")["problems"] == []
    store.git("fsck", "--strict")


def test_here_and_on_a_branch_the_files_are_the_same(store: Sandbox):
    """Both ways commit the same tree."""
    store.run("maintain", "--apply", "--branch", "side")
    store.run("maintain", "--apply")
    assert store.git("rev-parse", "side^{tree}") == store.git("rev-parse", "HEAD^{tree}")


def test_a_merged_branch_goes_on_from_head(store: Sandbox):
    """Steps that HEAD already has are not planned from the old branch."""
    store.run("maintain", "--weekly", "--apply", "--branch", "side")
    store.git("merge", "--quiet", "--no-ff", "-m", "take over", "side")
    head = store.git("rev-parse", "HEAD")
    store.run("maintain", "--nightly", "--apply", "--branch", "side")
    assert store.git("rev-parse", "side^") == head


def test_the_same_plan_is_the_same_bytes(store: Sandbox):
    """The same commit, ledger, settings and second give the same plan."""
    first, second = (store.run("maintain", "--json").stdout for _run in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("prepare", "args", "code", "message"),
    [
        ("detach", (), "detached", "HEAD is detached"),
        ("merge", (), "merging", "unfinished"),
        ("hook", (), "commit-refused", "nothing was changed"),
        ("", ("--branch", "a..b"), "usage", "not a valid branch name"),
        ("", ("--branch", "-x"), "usage", "not a valid branch name"),
        ("", ("--branch", "a\nb"), "usage", "not a valid branch name"),
        ("worktree", ("--branch", "side"), "elsewhere", "is checked out in"),
        ("nobody", (), "commit-refused", "nothing was changed"),
        ("nobody", ("--branch", "side"), "no-identity", "git has no author"),
        ("busy", (), "busy", "is running"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(
    store: Sandbox, tmp_path: Path, prepare: str, args: tuple[str, ...], code: str, message: str
):
    """Nothing is half done: files, index, branches are as they were, and a hint says what to do."""
    handle = -1
    if prepare == "detach":
        store.git("checkout", "--quiet", "--detach")
    elif prepare == "merge":
        store.write(".git/MERGE_HEAD", store.git("rev-parse", "HEAD"))
    elif prepare == "hook":
        hook = store.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
    elif prepare == "worktree":
        store.git("worktree", "add", "--quiet", str(tmp_path / "side"), "-b", "side")
    elif prepare == "nobody":
        for name in ("AUTHOR", "COMMITTER"):
            for what in ("NAME", "EMAIL"):
                store.env.pop(f"GIT_{name}_{what}")
        store.git("config", "user.useConfigOnly", "true")
    elif prepare == "busy":
        place = store.path / ".git" / "memtool" / "maintain.lock"
        handle = os.open(place, os.O_RDWR | os.O_CREAT)
        fcntl.flock(handle, fcntl.LOCK_EX)
    before = (store.git("status", "--porcelain"), store.git("for-each-ref"))
    answer = store.run("maintain", "--apply", *args)
    if handle >= 0:
        os.close(handle)
    assert answer.returncode == 2
    assert message in answer.stderr
    assert "hint: " in answer.stderr
    assert "Traceback" not in answer.stderr
    assert (store.git("status", "--porcelain"), store.git("for-each-ref")) == before
    assert not (store.path / ".git" / "memtool" / "maintain.intent").exists()


def test_nothing_committed_yet_is_told(sandbox: Sandbox):
    """Before the first commit there is nothing to do, and no error."""
    sandbox.memory("dec-a")
    answer = sandbox.run("maintain", "--apply")
    assert (answer.returncode, answer.stdout) == (0, "Nothing to do.\n")
    assert "nothing is committed yet" in answer.stderr


def test_a_bare_repository_gets_its_plan_and_a_branch(store: Sandbox, tmp_path: Path):
    """The plan needs no worktree; only --branch can apply it there."""
    bare = Sandbox(tmp_path / "bare.git", store.env)
    store.git("clone", "--quiet", "--bare", str(store.path), str(bare.path))
    assert done(bare.json("maintain", "--weekly")) == ALL[:1]
    assert bare.run("maintain", "--apply").returncode == 2
    assert bare.run("maintain", "--weekly", "--apply", "--branch", "side").returncode == 0
    assert bare.git("rev-parse", "side^") == bare.git("rev-parse", "main")


def test_a_shallow_clone_is_told_of(store: Sandbox, tmp_path: Path):
    """Everything works, and a note says that missing commits are unknown."""
    place = tmp_path / "shallow"
    store.memory("dec-z")
    store.commit()
    store.git("clone", "--quiet", "--depth", "1", f"file://{store.path}", str(place))
    answer = Sandbox(place, store.env).run("maintain", "--apply")
    assert answer.returncode == 0
    assert "shallow" in answer.stderr


def test_without_a_ledger_candidates_wait(store: Sandbox):
    """Without counts it is unknown whether they were used, which is reported."""
    for path in (store.path / ".git" / "memtool").glob("ledger*"):
        path.unlink()
    answer = store.run("maintain", "--nightly", MEMTOOL_NO_LEDGER="1")
    assert "no access was counted" in answer.stderr
    assert "confirm" not in answer.stdout.lower()
    assert "fade" not in answer.stdout.lower()


def test_a_broken_ledger_costs_only_the_counts(store: Sandbox):
    """The plan goes on as if nothing was counted."""
    for path in (store.path / ".git" / "memtool").glob("ledger*"):
        path.unlink()
    store.write(".git/memtool/ledger.db", b"no database" * 100)
    answer = store.run("maintain", "--weekly")
    assert answer.returncode == 0
    assert "\nArchive (1), their time is over:\n  dec-old  " in answer.stdout


def test_contradictions_are_told_and_never_merged(sandbox: Sandbox):
    """Opposed memories are left to people, candidates among them."""
    sandbox.memory("dec-yes", "Use Redis for sessions.\n", title="Use Redis for sessions")
    sandbox.memory(
        "dec-no",
        "Do not use Redis for sessions.\n",
        title="Do not use Redis for sessions",
        status="candidate",
    )
    sandbox.commit()
    looked_at(sandbox, "dec-no", 5, 1_772_000_000)
    answer = sandbox.json("maintain", "--nightly")
    assert answer["steps"] == []
    assert [flag["ids"] for flag in answer["flags"]] == [["dec-no", "dec-yes"]]
    assert "\nLeft to you: 1 conflict (" in sandbox.run("maintain", "--nightly").stdout
    sandbox.memory("dec-on", "Always cache pages.\n", title="Always cache pages")
    sandbox.memory("dec-off", "Never cache pages.\n", title="Never cache pages")
    sandbox.commit()
    assert "\nLeft to you: 2 conflicts (" in sandbox.run("maintain", "--nightly").stdout


def test_names_that_lead_nowhere_are_told_monthly(sandbox: Sandbox):
    """Missing memories and files are named, and nothing is changed for it."""
    sandbox.memory("dec-a", related_to=("dec-gone",), source=("file:gone.py",))
    sandbox.commit()
    answer = sandbox.json("maintain", "--monthly")
    assert sorted(flag["kind"] for flag in answer["flags"]) == ["broken-link", "broken-source"]
    assert answer["steps"] == []


def test_digests_are_renewed_when_what_they_sum_up_changed(store: Sandbox):
    """Weekly, once, and only existing ones; memories that expired in this run are not in them."""
    early = {"MEMTOOL_NOW": "2025-03-01"}
    store.memory("sta-new", "Half of the tests are moved.\n", type="state", title="Tests")
    store.commit()
    assert store.run("digest", "task_progress", "--commit", **early).returncode == 0
    assert store.json("maintain", "--weekly", **early)["steps"] == []
    answer = store.json("maintain", "--weekly", "--apply")
    assert [do for do, _id in done(answer)] == ["archive", "digest"]
    (made,) = [step["id"] for step in answer["steps"] if step["do"] == "digest"]
    assert store.json("show", made)["derived_from"] == ["sta-new"]
    assert store.json("maintain", "--weekly")["steps"] == []


def test_global_memories_are_looked_after_as_well(sandbox: Sandbox):
    """`--global` plans and commits in the repository of the user."""
    for args in ((), ("--apply",)):
        absent = sandbox.run("maintain", "--global", *args)
        assert (absent.returncode, absent.stdout) == (0, "Nothing to do.\n")
    sandbox.run(
        "new",
        "state",
        "Half of it is done",
        "--body",
        "Five files of ten are moved.",
        "--global",
        MEMTOOL_NOW="2024-01-01",
    )
    answer = sandbox.json("maintain", "--global", "--weekly", "--apply")
    assert [step["do"] for step in answer["steps"]] == ["archive"]
    assert answer["commit"]


@pytest.mark.parametrize("name", ["ci/memtool-maintain.yml", "cron/memtool-maintain"])
def test_the_calls_of_the_templates_are_right(store: Sandbox, name: str):
    """The commands for cron and CI work, as often as they run."""
    lines = [line.strip() for line in templates.read(name).splitlines()]
    calls = [
        line.partition("memtool ")[2].split()
        for line in lines
        if not line.startswith("#") and " maintain " in line
    ]
    assert calls
    for _time in range(2):
        for call in calls:
            args = [str(store.path) if arg == '"$REPOSITORY"' else arg for arg in call]
            done = store.run(*args)
            assert done.returncode == 0, done.stderr
    assert store.git("rev-list", "--count", "main..memtool/maintain").strip() in ("1", "2")
    assert store.json("maintain", "--branch", "memtool/maintain")["steps"] == []


DRIVER = """
import os, signal, sys
left = int(sys.argv[1])
WATCHED = {"open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.posix_spawn"}
def watch(event, args):
    global left
    if event in WATCHED and not (event == "open" and args[2] & os.O_ACCMODE == os.O_RDONLY):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
from memtool.cli.main import main
sys.addaudithook(watch)
sys.exit(main(sys.argv[2:]))
"""
"""Runs memtool and kills it before a certain file that it writes or process that it starts."""


def ended(store: Sandbox, *args: str) -> int:
    """Run a process in a group of its own; return what it ended with."""
    process = subprocess.Popen(
        [sys.executable, *args],
        cwd=store.path,
        env=store.env,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return process.wait()


def finish(store: Sandbox, start: str, *args: str) -> str:
    """Run an upkeep after one that was killed, expect one clean commit, and return its tree."""
    answer = store.run("maintain", "--apply", *args)
    assert answer.returncode == 0, answer.stderr
    branch = args[-1] if args else "HEAD"
    assert store.git("rev-list", "--count", f"{start}..{branch}").strip() == "1"
    assert store.git("status", "--porcelain") == ""
    assert not (store.path / ".git" / "memtool" / "maintain.intent").exists()
    return store.git("rev-parse", f"{branch}^{{tree}}")


@pytest.mark.slow
@pytest.mark.parametrize("args", [(), ("--branch", "side")], ids=["here", "branch"])
def test_a_killed_run_is_taken_back_or_finished(store: Sandbox, args: tuple[str, ...]):
    """Whenever it is killed, the next run ends at the same tree, and nothing lies about."""
    start = store.git("rev-parse", "HEAD").strip()
    expected = finish(store, start, *args)
    for place in range(1, 400, 4):
        store.git("reset", "--quiet", "--hard", start)
        store.git("branch", "--quiet", "-D", "side", check=False)
        status = ended(store, "-c", DRIVER, str(place), "maintain", "--apply", *args)
        if status == 0:
            break
        assert status == -signal.SIGKILL
        assert finish(store, start, *args) == expected
    assert place > 20


@pytest.mark.parametrize(
    ("hook", "when"),
    [
        ("pre-commit", ""),
        ("post-commit", ""),
        ("reference-transaction", "prepared"),
        ("reference-transaction", "committed"),
        ("post-index-change", ""),
    ],
)
def test_a_killed_commit_is_taken_back_or_finished(store: Sandbox, hook: str, when: str):
    """Git and memtool die together, before or after the branch moved: the next run mends both."""
    start = store.git("rev-parse", "HEAD").strip()
    expected = finish(store, start)
    store.git("reset", "--quiet", "--hard", start)
    place = store.write(
        f".git/hooks/{hook}",
        f'#!/bin/sh\n[ "$1" = "{when}" ] || [ -z "{when}" ] || exit 0\ncat >/dev/null\nkill -9 0\n',
    )
    place.chmod(0o755)
    assert ended(store, "-m", "memtool", "maintain", "--apply") == -signal.SIGKILL
    place.unlink()
    for lock in store.path.glob(".git/**/*.lock"):
        if lock.parent.name != "memtool":
            lock.unlink()  # as git asks for where it was killed
    assert finish(store, start) == expected


def test_what_was_changed_after_a_kill_is_left_to_the_user(store: Sandbox):
    """A file that was written by a killed run and edited since then is not taken back."""
    place = ".memory/decision/2026-02/dec-old.md"
    hook = store.write(".git/hooks/pre-commit", "#!/bin/sh\nkill -9 0\n")
    hook.chmod(0o755)
    ended(store, "-m", "memtool", "maintain", "--apply")
    hook.unlink()
    (store.path / ".git" / "index.lock").unlink(missing_ok=True)
    edited = (store.path / place).read_text() + "More.\n"
    store.write(place, edited)
    answer = store.run("maintain", "--apply")
    assert "changed since: " + place in answer.stderr
    assert (store.path / place).read_text() == edited
    assert store.git("status", "--porcelain") == f" M {place}\n"


def test_a_commit_that_upholds_a_candidate_confirms_it(sandbox: Sandbox):
    """Also where nothing was counted; not the commit that added it, nor before its day is over.

    A low confidence waits for a person, and is told. Names of nothing are passed over.
    """
    sandbox.memory("sem-tests", "Tests run with pytest.\n", type="semantic", status="candidate")
    sandbox.memory("sem-logs", "Logs are JSON lines.\n", type="semantic", status="candidate")
    sandbox.memory("sem-own", "Ports are odd.\n", type="semantic", status="candidate")
    sandbox.memory(
        "sem-low", "Queues are short.\n", type="semantic", status="candidate", confidence="low"
    )
    sandbox.commit("memories\n\nUpholds: sem-own")
    sandbox.write("a.txt", "a")
    sandbox.commit("tests\n\nUpholds: sem-test sem-none\n\n    upholds: sem-low\n\nend")
    at = sandbox.git("rev-parse", f"--short={SHORT_ID_DIGITS}", "HEAD").strip()
    early = "2026-02-02T06:00:00Z"
    assert sandbox.json("maintain", "--nightly", MEMTOOL_NOW="2026-02-01T20:00:00Z")["steps"] == []
    answer = sandbox.json("maintain", "--nightly", MEMTOOL_NOW=early)
    assert [(step["do"], step["id"], step["why"]) for step in answer["steps"]] == [
        ("confirm", "sem-tests", f"commit {at} upholds it")
    ]
    (flag,) = answer["flags"]
    assert (flag["kind"], flag["ids"]) == ("waiting", ["sem-low"])
    assert flag["message"] == f"commit {at} upholds it, but its confidence is low"
    text = sandbox.run("maintain", "--nightly", MEMTOOL_NOW=early).stdout
    assert "\nLeft to you: 1 waiting (memtool status, or --all)\n" in text
    text = sandbox.run("maintain", "--nightly", "--all", MEMTOOL_NOW=early).stdout
    assert f'  waiting: "Title of sem-low" (sem-low): {flag["message"]}\n' in text
    assert "\n    memtool confirm sem-low, or" in text
    output = sandbox.run("status", MEMTOOL_NOW=early).stdout
    assert "\n  sem-low    Title of sem-low    2026-02-22, low confidence\n" in output
    assert sandbox.json("status", MEMTOOL_NOW=early)["needs_person"] == ["sem-low"]


def test_only_the_trusted_branch_upholds(sandbox: Sandbox, tmp_path: Path):
    """An unpushed commit renews and confirms nothing; a fetched one does."""
    sandbox.memory("dec-old", "Builds run on one machine.\n", timestamp="2025-12-05T12:00:00Z")
    sandbox.memory("sem-tests", "Tests run with pytest.\n", type="semantic", status="candidate")
    sandbox.commit()
    sandbox.git("init", "--quiet", "--bare", str(tmp_path / "origin.git"))
    sandbox.git("remote", "add", "origin", str(tmp_path / "origin.git"))
    sandbox.git("push", "--quiet", "origin", "main")
    sandbox.write("a.txt", "a")
    at = sandbox.commit("builds\n\nUpholds: dec-old, sem-tests")
    late = {"MEMTOOL_NOW": "2026-03-06T12:00:00Z"}
    assert sandbox.json("maintain", **late)["steps"] == []
    sandbox.git("push", "--quiet", "origin", "main")
    answer = sandbox.json("maintain", "--apply", **late)
    assert done(answer) == [("renew", "dec-old"), ("confirm", "sem-tests")]
    checked = sandbox.json("show", "dec-old")["checked"]
    second = int(sandbox.git("log", "-1", "--format=%ct", at))
    assert checked == {"at": timestamps.render(second), "by": "Ada"}
    assert sandbox.json("check", "--range", "HEAD^..HEAD")["problems"] == []
    assert sandbox.json("maintain", **late)["steps"] == []
