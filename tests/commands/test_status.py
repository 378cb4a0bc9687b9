from __future__ import annotations

import pytest
from conftest import PIPED, Sandbox

from memtool.commands.status import render, status
from memtool.errors import MemtoolError
from memtool.store.context import Context


def test_an_empty_store_is_fine(sandbox: Sandbox):
    """Before the first memory and the first commit there is nothing to complain about."""
    report = status(sandbox.context())
    assert (report.total, report.revision, report.exit_code) == (0, "", 0)
    assert render(report, PIPED).splitlines() == [
        "On main, no commit yet",
        "No memories in .memory yet",
        "No errors, nothing to do.",
    ]


def test_a_memory_with_a_secret_is_an_error(sandbox: Sandbox):
    """What the gate would refuse is not called healthy, and doctor names it as well."""
    token = "ghp_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA2cD4"
    path = sandbox.memory("dec-key", f"The token is {token} for CI.\n")
    sandbox.commit("past the gate")
    done = sandbox.run("status")
    assert (done.returncode, token in done.stdout) == (1, False)
    assert f"{path}:1: secret it contains a github token" in done.stdout
    assert f"memtool redact {path}" in done.stdout
    assert "1 memory holds a secret" in sandbox.run("doctor").stdout


def test_memories_are_counted_by_type_status_and_state(sandbox: Sandbox):
    """Counts are of all memories, alive are heads that list shows."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b", supersedes=("dec-a",))
    sandbox.memory("dec-c", status="archived")
    sandbox.memory("sem-d", type="semantic", status="candidate")
    sandbox.memory("sta-e", type="state", valid_through="2026-02-23")
    report = status(sandbox.context())
    assert (report.total, report.alive, report.superseded) == (5, 2, 1)
    assert report.types == {"decision": 3, "semantic": 1, "state": 1}
    assert report.statuses == {"archived": 1, "candidate": 1, "confirmed": 3}
    assert report.states == {"alive": 3, "archived": 1, "expired": 1}
    assert report.candidates == ("sem-d",)


def test_what_waits_for_somebody_is_named_with_the_verb(sandbox: Sandbox):
    """A reader of the report knows what to do."""
    sandbox.memory("dec-old", valid_through="2026-03-05")
    sandbox.memory("dec-new", status="candidate", valid_through="2026-12-31")
    text = render(status(sandbox.context()), sandbox.layout())
    assert (
        'Not committed (2; "git add" and "git commit" keep them):\n'
        "  dec-new  Title of dec-new\n"
        "  dec-old  Title of dec-old\n"
        'Candidates (1; "memtool confirm ID", or "memtool forget ID --reason TEXT"):\n'
        "  dec-new  Title of dec-new  2026-02-22\n"
        "Expiring within 14 days (1): dec-old on 2026-03-05\n"
        "No errors. 4 things need attention."
    ) in text


def test_long_lists_are_cut_in_text_only(sandbox: Sandbox):
    """Text is for reading, JSON is for programs."""
    for number in range(7):
        sandbox.memory(f"dec-{number}")
    report = status(sandbox.context())
    assert len(report.uncommitted) == 7
    assert "  dec-2\n  and 4 more (memtool status --all)\n" in render(report, PIPED)
    everything = status(sandbox.context(), all=True)
    assert "  dec-6\n" in render(everything, PIPED)
    assert " more " not in render(everything, PIPED)


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({".memory/decision/x.md": "no memory"}, "no-frontmatter"),
        ({".memory/decision/x.md": b"\xff"}, "not-utf8"),
        ({".memory/decision/x.md": "---\n- a\n---\n"}, "bad-yaml"),
    ],
)
def test_a_file_that_is_no_memory_is_a_problem(
    sandbox: Sandbox, files: dict[str, str | bytes], code: str
):
    """Problems are told with path and line, and the exit code is 1; the rest is counted."""
    sandbox.memory("dec-a")
    for path, text in files.items():
        sandbox.write(path, text)
    ws = sandbox.context()
    report = status(ws)
    assert [problem.code for problem in report.problems] == [code]
    assert (report.total, report.exit_code, ws.notes) == (1, 1, [])


def test_a_dangling_relation_is_a_problem_and_a_fork_a_warning(sandbox: Sandbox):
    """A result of merging is shown once, but refuses nothing."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b", supersedes=("dec-a",))
    sandbox.memory("dec-c", supersedes=("dec-a",))
    report = status(sandbox.context())
    assert [(p.id, p.code, p.severity) for p in report.problems] == [("dec-b", "fork", "warning")]
    assert report.exit_code == 0
    sandbox.memory("dec-d", supersedes=("dec-gone",))
    report = status(sandbox.context())
    assert "dangling" in {p.code for p in report.problems}
    assert report.exit_code == 1


def test_a_revision_and_a_moment_are_looked_back_at(sandbox: Sandbox):
    """The past is answered from git, in a bare repository too."""
    sandbox.memory("dec-a")
    first = sandbox.commit()
    sandbox.memory("dec-b", timestamp="2026-02-25T00:00:00Z")
    sandbox.commit()
    assert status(sandbox.context(), at=first).total == 1
    assert status(sandbox.context(), as_of="2026-02-24").total == 1
    assert status(sandbox.context()).total == 2
    sandbox.git("clone", "--quiet", "--bare", ".", "../bare.git")
    bare = Context.at(str(sandbox.path.parent / "bare.git"), sandbox.env)
    assert status(bare, at="HEAD").total == 2


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"at": "no-such-branch"}, "unknown-revision"),
        ({"at": "--output=x"}, "unknown-revision"),
        ({"as_of": "yesterday"}, "bad-time"),
        ({"as_of": "2026-13-01"}, "bad-time"),
    ],
)
def test_a_past_that_is_none_is_told(sandbox: Sandbox, options: dict[str, str], code: str):
    """Neither revisions nor moments are guessed."""
    sandbox.memory("dec-a")
    sandbox.commit()
    with pytest.raises(MemtoolError) as caught:
        status(sandbox.context(), **options)
    assert caught.value.code == code


def test_it_says_where_global_memories_are_and_what_is_off(sandbox: Sandbox):
    """A user sees what else reaches their agents, and what does not reach the disk."""
    assert sandbox.run("auto", "--global", "off").returncode == 0
    place = f"{sandbox.env['XDG_DATA_HOME']}/memtool"
    report = status(sandbox.context())
    assert (report.global_directory, report.auto) == (place, False)
    text = render(report, PIPED)
    assert f"Global memories are in {place}" in text
    assert "Sessions are not captured automatically" in text
    assert f"Global memories are in {place}" in sandbox.run("status", "--global").stdout


def test_global_memories_that_cannot_be_read_are_told(sandbox: Sandbox):
    """The note is separate from the problems of the project."""
    ws = sandbox.context(MEMTOOL_GLOBAL="somewhere")
    assert status(ws).exit_code == 0
    (note,) = ws.notes
    assert note.startswith(
        "global memories are passed over: MEMTOOL_GLOBAL must be an absolute path"
    )


def test_a_trusted_ref_that_is_not_there_is_one_note(sandbox: Sandbox):
    """The status is complete without it, and the note says how to get it."""
    sandbox.memory("dec-a")
    sandbox.write(".memory/config.toml", '[trust]\nref = "upstream/main"\n')
    sandbox.commit()
    sandbox.memory("dec-b")
    ws = sandbox.context()
    report = status(ws)
    assert (report.trusted_ref, report.total, report.uncommitted) == ("", 2, ("dec-b",))
    (note,) = ws.notes
    assert "'upstream/main' (trust.ref) does not exist here" in note


def test_memories_below_another_directory_are_named_with_the_import(sandbox: Sandbox):
    """A repository that was moved into a larger one brings a directory that is not read."""
    sandbox.memory("dec-a")
    sandbox.commit()
    assert status(sandbox.context()).nested == ()
    sandbox.memory("dec-moved", "Payments are idempotent.\n")
    place = "services/pay service/.memory"
    (sandbox.path / place).parent.mkdir(parents=True)
    (sandbox.path / ".memory").rename(sandbox.path / place)
    sandbox.memory("dec-a")
    sandbox.write("fixtures/.memory/README.md", "about memories\n")
    sandbox.commit()
    report = status(sandbox.context())
    assert (report.nested, report.total) == ((place,), 1)
    assert f"{place} is not read" in report.plain()["issues"]
    command = f"memtool import markdown '{place}' --commit"
    text = sandbox.run("status").stdout
    assert f"{place} is not read: {command} takes it over" in text
    assert text.endswith("No errors. 1 thing needs attention.\n")
    signs = sandbox.json("doctor")["signs"]
    (hint,) = (sign["hint"] for sign in signs if sign["name"] == "nested")
    assert hint.startswith(command)
    assert sandbox.run("import", "markdown", place, "--commit").returncode == 0
    sandbox.git("rm", "-r", "--quiet", place)
    after = status(sandbox.context())
    assert (after.nested, after.total) == ((), 2)
