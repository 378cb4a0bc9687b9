from __future__ import annotations

import pytest
from conftest import PIPED, Sandbox, make_memory

from memtool.commands.check import CheckReport, check, render
from memtool.commands.new import new
from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.redaction.find import compute_fingerprint

KEY = "AK" + "IA" + "QWERTYUIOPASDFGH"
BODIES = {
    "dec-a": "Sessions live in Redis, since web processes come and go.\n",
    "dec-b": "Invoices are rendered by a queue worker at night.\n",
    "dec-c": "Every migration of the schema can be run backwards.\n",
}


def add(sandbox: Sandbox, id: str, body: str = "", **fields: object) -> str:
    return sandbox.memory(id, body or BODIES.get(id, f"All about {id}.\n"), **fields)  # type: ignore[arg-type]


def codes(checked: CheckReport) -> list[tuple[str, str]]:
    return [(problem.id, problem.code) for problem in checked.problems]


def errors(checked: CheckReport) -> list[tuple[str, str]]:
    return [(p.id, p.code) for p in checked.problems if p.severity == "error"]


MESSAGE = (
    "it contains an aws access key, by the prefix 'AKIA': \"The key is [REDACTED:aws-access-key].\""
)
HARMLESS = f'harmless: memtool config redaction.allow.{compute_fingerprint(KEY)} "REASON"'


def test_the_shape_of_json_is_the_contract(sandbox: Sandbox) -> None:
    """Programs read checked and problems, each with seven fields."""
    path = add(sandbox, "dec-a", f"The key is {KEY}.\n")
    answer = sandbox.json("check")
    assert answer == {
        "checked": 1,
        "problems": [
            {
                "path": path,
                "line": 10,
                "code": "secret",
                "severity": "error",
                "id": "dec-a",
                "message": MESSAGE,
                "hint": f"memtool redact {path}, or move it out of the memory\n{HARMLESS}",
            }
        ],
    }


def test_text_tells_place_code_and_next_step(sandbox: Sandbox) -> None:
    """One line says what is wrong, the next what to do; the exit code is 1."""
    path = add(sandbox, "dec-a", f"The key is {KEY}.\n")
    done = sandbox.run("check")
    assert done.returncode == 1
    assert done.stdout == (
        f"{path}:10: secret {MESSAGE}\n"
        f"  hint: memtool redact {path}, or move it out of the memory\n"
        f"  hint: {HARMLESS}\n"
        "1 file checked: 1 error\n"
    )
    assert KEY not in done.stdout + done.stderr


def test_warnings_refuse_nothing(sandbox: Sandbox) -> None:
    """Oddities are reported, and the exit code is 0."""
    add(sandbox, "dec-a", files=("src/none/*.py",))
    report = check(sandbox.context())
    assert (codes(report), report.exit_code) == ([("dec-a", "no-such-file")], 0)
    assert "no-such-file warning: " in render(report, PIPED)


def test_a_fork_is_shown_and_counted_once(sandbox: Sandbox) -> None:
    """It is a problem of each of its sides, but only one conflict to settle."""
    for id_, olds in (("dec-a", ()), ("dec-b", ("dec-a",)), ("dec-c", ("dec-a",))):
        add(sandbox, id_, supersedes=olds)
    report = check(sandbox.context())
    assert codes(report) == [("dec-b", "fork"), ("dec-c", "fork")]
    rows = render(report, PIPED).splitlines()
    assert "fork warning: dec-b and dec-c both replace dec-a" in rows[0]
    assert (len(rows), rows[-1]) == (3, "3 files checked: no errors, 1 warning")


def test_a_good_tree_has_nothing_wrong(sandbox: Sandbox) -> None:
    """Plain memories give no problem, committed or not."""
    for name in BODIES:
        add(sandbox, name)
    assert render(check(sandbox.context()), PIPED) == "3 files checked: no errors"
    sandbox.commit()
    assert check(sandbox.context()).problems == ()


def test_nothing_staged_is_answered_at_once(sandbox: Sandbox) -> None:
    """A commit without memories is fine, whatever lies in the worktree, and prints nothing."""
    add(sandbox, "dec-a", f"The key is {KEY}.\n")
    sandbox.write("README.md", "hello\n")
    sandbox.git("add", "README.md")
    done = sandbox.run("check", "--staged")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_only_what_is_staged_counts(sandbox: Sandbox) -> None:
    """The hook reads git's index: mending or breaking the worktree changes nothing."""
    add(sandbox, "dec-a", f"The key is {KEY}.\n")
    sandbox.git("add", ".")
    add(sandbox, "dec-a")
    assert errors(check(sandbox.context(), staged=True)) == [("dec-a", "secret")]
    sandbox.git("add", ".")
    add(sandbox, "dec-a", f"The key is {KEY}.\n")
    assert check(sandbox.context(), staged=True).problems == ()


def test_what_was_bad_before_does_not_stop_a_commit(sandbox: Sandbox) -> None:
    """The hook is about this commit; CI and the worktree's check tell of the rest."""
    add(sandbox, "dec-a", f"The key is {KEY}.\n")
    sandbox.commit()
    add(sandbox, "dec-b")
    sandbox.git("add", ".")
    report = check(sandbox.context(), staged=True)
    assert (report.checked, report.problems) == (1, ())


def test_changed_settings_bring_every_memory_to_the_gate(sandbox: Sandbox) -> None:
    """A category that is taken away makes memories invalid that are not staged themselves."""
    sandbox.write(".memory/config.toml", "[categories.ritual]\nttl_days = 1\n")
    add(sandbox, "dec-a", category="ritual")
    sandbox.commit()
    sandbox.write(".memory/config.toml", "")
    sandbox.git("add", ".")
    assert errors(check(sandbox.context(), staged=True)) == [("", "bad-value")]


def test_the_staged_settings_decide(sandbox: Sandbox) -> None:
    """Settings of the worktree that are not staged have no say in the commit."""
    sandbox.write(".memory/config.toml", "")
    sandbox.commit()
    sandbox.write(".memory/config.toml", "[categories.ritual]\nttl_days = 1\n")
    add(sandbox, "dec-a", category="ritual")
    sandbox.git("add", ".memory/decision")
    assert errors(check(sandbox.context(), staged=True)) == [("", "bad-value")]


def test_secrets_in_settings_and_templates_are_found(sandbox: Sandbox) -> None:
    """Whatever lies in the memory directory is searched, memory or not."""
    sandbox.write(".memory/_decision.md", f"## Chosen\n\n{KEY}\n")
    assert [p.code for p in check(sandbox.context()).problems] == ["secret"]
    sandbox.git("add", ".")
    assert [p.code for p in check(sandbox.context(), staged=True).problems] == ["secret"]


def test_paths_limit_what_is_checked(sandbox: Sandbox) -> None:
    """Files and directories may be named from anywhere; paths outside are refused."""
    add(sandbox, "dec-a", f"The key is {KEY}.\n")
    path = add(sandbox, "dec-b")
    assert check(sandbox.context(), path).checked == 1
    assert check(sandbox.context(), path).problems == ()
    assert errors(check(sandbox.context(), ".memory/decision")) == [("dec-a", "secret")]
    assert errors(check(sandbox.context(), ".")) == [("dec-a", "secret")]
    done = sandbox.run("check", "2026-02", cwd=sandbox.path / ".memory" / "decision")
    assert (done.returncode, "2 files checked" in done.stdout) == (1, True)
    for outside in ("README.md", "..", "/etc", ".memoryx"):
        with pytest.raises(MemtoolError, match=r"is not in \.memory"):
            check(sandbox.context(), outside)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--staged", "--history"), "exclude each other"),
        (("--range", "A..B", "x"), "exclude each other"),
        (("--range", "HEAD"), "is not a range"),
        (("--range", "nowhere..HEAD"), 'no revision "nowhere"'),
        (("--range", "--output=x..HEAD"), "no revision"),
        (("--range", "HEAD..-rf"), "no revision"),
        (("--range", ".."), None),
        (("no/such/path",), "is not in .memory"),
        (("--range", "a\0b..HEAD"), None),
    ],
)
def test_wrong_calls_are_told(
    sandbox: Sandbox, words: tuple[str, ...], message: str | None
) -> None:
    """A wrong call ends with 2 and one sentence."""
    sandbox.git("commit", "--quiet", "--allow-empty", "--message", "m")
    if any("\0" in word for word in words):
        with pytest.raises(MemtoolError, match="no revision"):
            check(sandbox.context(), range=words[1])
        return
    done = sandbox.run("check", *words)
    assert "Traceback" not in done.stderr
    if message is None:
        assert done.returncode == 0
    else:
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_a_bare_repository_has_only_commits_to_check(sandbox: Sandbox) -> None:
    """Ranges and history work there; the rest is told."""
    add(sandbox, "dec-a", f"The key is {KEY}.\n")
    sandbox.commit()
    sandbox.git("clone", "--quiet", "--bare", ".", "../bare.git")
    bare = Sandbox(sandbox.path.parent / "bare.git", sandbox.env)
    with pytest.raises(MemtoolError, match="bare"):
        check(bare.context())
    with pytest.raises(MemtoolError, match="bare"):
        check(bare.context(), staged=True)
    assert errors(check(bare.context(), range=f"{'0' * 40}..HEAD")) == [("dec-a", "secret")]
    assert [p.code for p in check(bare.context(), history=True).problems] == ["secret"]


def test_no_memory_directory(sandbox: Sandbox) -> None:
    """The worktree's check says how to begin; a hook has nothing to say."""
    (sandbox.path / ".memory").rmdir()
    with pytest.raises(MemtoolError, match=r"no \.memory"):
        check(sandbox.context())
    assert check(sandbox.context(), staged=True) == CheckReport(0, (), is_quiet=True)


def test_a_read_only_git_directory_changes_no_answer(sandbox: Sandbox) -> None:
    """If results cannot be cached, they are computed again."""
    add(sandbox, "dec-a")
    sandbox.commit()
    add(sandbox, "dec-b", supersedes=("dec-nowhere",))
    sandbox.git("add", ".")
    sandbox.write(".git/memtool", "a file stands where the cache would be")
    for _again in range(2):
        assert errors(check(sandbox.context(), staged=True)) == [("dec-b", "dangling")]


def test_checking_writes_nothing_but_the_cache(sandbox: Sandbox) -> None:
    """No door of the gate changes the worktree, the index or a ref."""
    add(sandbox, "dec-a")
    sandbox.commit()
    add(sandbox, "dec-a", "Otherwise.\n")
    sandbox.git("add", ".")
    before = (sandbox.git("status", "--porcelain"), sandbox.git("for-each-ref"))
    for options in ({}, {"staged": True}, {"range": "HEAD..HEAD"}, {"history": True}):
        check(sandbox.context(), **options)  # type: ignore[arg-type]
    assert (sandbox.git("status", "--porcelain"), sandbox.git("for-each-ref")) == before
    assert {p.name for p in sandbox.path.iterdir()} == {".git", ".memory"}


def test_unmerged_files_are_told(sandbox: Sandbox) -> None:
    """A merge that is not finished cannot be committed, and the check says which file it is."""
    path = add(sandbox, "dec-a", status="candidate")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "-b", "side")
    add(sandbox, "dec-a", "One side.\n", status="candidate")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "main")
    add(sandbox, "dec-a", "Other side.\n", status="candidate")
    sandbox.commit()
    sandbox.git("merge", "side", check=False)
    report = check(sandbox.context(), staged=True)
    assert [(p.path, p.code) for p in report.problems] == [(path, "conflict-markers")]
    assert [p.code for p in check(sandbox.context()).problems] == ["conflict-markers"]


def test_intent_to_add_is_no_memory_yet(sandbox: Sandbox) -> None:
    """`git add --intent-to-add` stages nothing."""
    add(sandbox, "dec-a", f"The key is {KEY}.\n")
    sandbox.git("add", "--intent-to-add", ".")
    assert check(sandbox.context(), staged=True).checked == 0
    sandbox.write("README.md", "hello\n")
    sandbox.git("add", "README.md")
    sandbox.git("commit", "--quiet", "--message", "readme", "--", "README.md")
    assert check(sandbox.context(), staged=True).checked == 0


def test_sha256_repositories_are_checked_too(sandbox: Sandbox) -> None:
    """Ids of 64 digits make no difference."""
    sandbox.git("init", "--quiet", "--object-format=sha256", "../other")
    other = Sandbox(sandbox.path.parent / "other", sandbox.env)
    data = document.write(make_memory("dec-a", f"The key is {KEY}.\n"))
    other.write(".memory/dec-a.md", data)
    other.git("add", ".")
    assert errors(check(other.context(), staged=True)) == [("dec-a", "secret")]
    other.git("commit", "--quiet", "--message", "m")
    other.write(".memory/dec-b.md", document.write(make_memory("dec-b", supersedes=("dec-x",))))
    other.git("add", ".")
    assert errors(check(other.context(), staged=True)) == [("dec-b", "dangling")]
    assert errors(check(other.context(), range=f"{'0' * 64}..HEAD")) == [("dec-a", "secret")]
    assert [p.code for p in check(other.context(), history=True).problems] == ["secret"]


def test_what_new_has_looked_through_is_not_looked_through_again(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hook believes the gate of the verb that wrote the bytes, and no other bytes."""
    sandbox.memory("dec-a")
    sandbox.commit()
    written = new(
        sandbox.context(),
        "semantic",
        "Queues are drained at night",
        body="It is so, and this is why.",
    )
    sandbox.git("add", ".")

    def refuse(*_args: object) -> None:
        raise AssertionError

    monkeypatch.setattr("memtool.redaction.find.find", refuse)
    assert check(sandbox.context(), staged=True).exit_code == 0
    place = sandbox.path / written.path
    place.write_text(place.read_text() + "And by day.\n")
    sandbox.git("add", ".")
    with pytest.raises(AssertionError):
        check(sandbox.context(), staged=True)


def test_nothing_is_noted_without_a_cache(sandbox: Sandbox) -> None:
    """MEMTOOL_NO_CACHE keeps verdicts out of the git directory, too."""
    sandbox.memory("dec-a")
    new(
        sandbox.context(MEMTOOL_NO_CACHE="1"),
        "semantic",
        "Queues are drained at night",
        body="It is so, and this is why.",
    )
    assert not (sandbox.path / ".git/memtool/gate").exists()


def test_messages_of_commits_hold_no_secret(sandbox: Sandbox) -> None:
    """A range and all of history are asked; people in trailers are meant to be there."""
    sandbox.write("code.py", "one\n")
    base = sandbox.commit("begin")
    add(sandbox, "dec-a")
    people = "Signed-off-by: Ada <ada@corp.io>\nCo-authored-by: Bob <bob@corp.io>"
    sandbox.commit(f"add a memory\n\n{people}")
    assert sandbox.json("check", "--range", f"{base}..HEAD")["problems"] == []
    add(sandbox, "dec-b")
    bad = sandbox.commit(f"add another\n\nReason: it leaked {KEY}")
    for args in (("--range", f"{base}..HEAD"), ("--history",)):
        (problem,) = sandbox.json("check", *args)["problems"]
        assert (problem["path"], problem["line"], problem["code"]) == (
            f"commit {bad[:SHORT_ID_DIGITS]}",
            3,
            "secret",
        )
        assert "reword the commit" in problem["hint"]


def test_a_project_holds_no_memory_of_global_scope(sandbox: Sandbox) -> None:
    """It is refused when it is new, and a warning once it is there, but for the global one."""
    path = sandbox.memory("dec-a", scope="global")
    sandbox.git("add", path)
    (problem,) = sandbox.json("check", "--staged")["problems"]
    assert (problem["code"], problem["severity"]) == ("foreign-scope", "error")
    assert (problem["line"], "--global" in problem["hint"]) == (9, True)
    sandbox.git("commit", "-qm", "without the hook")
    assert sandbox.json("check")["problems"][0]["severity"] == "warning"
    assert sandbox.json("check", MEMTOOL_GLOBAL=str(sandbox.path))["problems"] == []


def test_a_project_sets_nothing_of_its_users(sandbox: Sandbox) -> None:
    """Settings of users alone are named if a project has them, staged or in CI."""
    base = sandbox.commit("begin", sandbox.memory("dec-a"))
    text = '[fleet]\nurl = "https://evil.test/x"\n[inject]\nfleet = true\n[search]\nlimit = 5\n'
    sandbox.write(".memory/config.toml", text)
    sandbox.git("add", ".memory/config.toml")
    staged = sandbox.json("check", "--staged")["problems"]
    sandbox.commit("settings")
    for problems in (staged, sandbox.json("check", "--range", f"{base}..HEAD")["problems"]):
        assert [(p["path"], p["code"], p["severity"]) for p in problems] == [
            (".memory/config.toml", "user-setting", "warning")
        ] * 2
        assert problems[0]["message"].startswith("fleet.url of a project is not used")
        assert "evil.test" not in str(problems)
    assert sandbox.json("check", ".memory/decision")["problems"] == []
    assert sandbox.json("check", MEMTOOL_GLOBAL=str(sandbox.path))["problems"] == []
