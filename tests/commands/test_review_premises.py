"""Review of premises: what a change takes away, in real repositories."""

from __future__ import annotations

import json

import pytest
from conftest import Sandbox

from memtool.commands.review import render, review
from memtool.memory.memory import FieldValue

PREMISE = "sem-2026-02-01-towers-over-40-floors-k3f9"
NEWER = "sem-2026-02-02-towers-over-50-floors-b7x2"
CONCLUSION = "dec-2026-02-01-north-tower-gets-class-f-2g54"
ABOVE = "sem-2026-02-01-plan-allows-nine-weeks-r8d3"
TITLES = {
    PREMISE: "Towers over 40 floors need a class F review",
    NEWER: "Towers over 50 floors need a class F review",
    CONCLUSION: "The north tower gets a class F review",
    ABOVE: "The plan of the north tower allows nine weeks",
}
FAIL = '[review]\nunsettled = "fail"\n'


def put(sandbox: Sandbox, id: str, *premises: str, **fields: FieldValue) -> str:
    """Write a memory that rests on others; return its path."""
    source = ("human:Ada", *(f"memory:{premise}" for premise in premises))
    title = TITLES.get(id, f"Title of {id}")
    is_fact = id.startswith("sem")
    kind: dict[str, FieldValue] = {"type": "semantic"} if is_fact else {}
    return sandbox.memory(id, f"{title}.\n", title=title, source=source, **kind, **fields)


@pytest.fixture
def towers(sandbox: Sandbox) -> Sandbox:
    """A chain of three memories on main, and a branch pr to work on."""
    put(sandbox, PREMISE)
    put(sandbox, CONCLUSION, PREMISE)
    put(sandbox, ABOVE, CONCLUSION)
    sandbox.write("AGENTS.md", "# Rules\n\nClass F: see dec-2g54.\n")
    sandbox.write("app/tower.py", f"# {CONCLUSION}\n# dec-2g54x, xdec-2g54 and dec-2g54\n")
    sandbox.write(".memory/config.toml", FAIL)
    sandbox.commit("base")
    sandbox.git("switch", "-q", "-c", "pr")
    return sandbox


def show(sandbox: Sandbox, *args: str) -> tuple[int, list[str]]:
    """Return exit code and lines of a review, without the ends of the range."""
    done = sandbox.run("review", *args, COLUMNS="80")
    lines = done.stdout.splitlines()
    lines[0] = lines[0].partition(": ")[2]
    return done.returncode, lines


CHANGED = [
    "2 memories rest on what this change takes away",
    "Towers over 40 floors need a class F review  sem-k3f9",
    "  is now: Towers over 50 floors need a class F review  sem-b7x2",
    "  rests on it: The north tower gets a class F review  dec-2g54",
    "    rests on that: The plan of the north tower allows nine weeks  sem-r8d3",
    "  named in AGENTS.md  dec-2g54",
    "  named in app/tower.py:1  dec-2g54",
    "  named in app/tower.py:2  dec-2g54",
    "Settle in this change (if one still holds, so does what rests on it):",
    "  it still holds      memtool confirm dec-2g54 --still-holds",
    "  it has changed      memtool supersede dec-2g54 TITLE",
    "  it no longer holds  memtool forget dec-2g54 --reason TEXT",
]


def test_a_premise_changes(towers: Sandbox):
    """Staged and committed alike, until the lowest conclusion and what rests on it are settled."""
    put(towers, NEWER, supersedes=(PREMISE,))
    towers.git("add", "-A")
    refused = "Refused: 2 confirmed (review.unsettled = fail on {})"
    assert show(towers, "--staged") == (1, [*CHANGED, refused.format("HEAD")])
    towers.commit("newer")
    assert show(towers, "main..pr") == (1, [*CHANGED, refused.format("main")])
    assert show(towers, "main..pr", "--json")[0] == 1
    put(towers, "dec-south", NEWER, supersedes=(CONCLUSION,))
    towers.commit("corrected")
    status, lines = show(towers, "main..pr")
    assert (status, lines[1:4]) == (
        1,
        [
            "The north tower gets a class F review  dec-2g54",
            "  is now: Title of dec-south  dec-south",
            "  rests on it: The plan of the north tower allows nine weeks  sem-r8d3",
        ],
    )
    assert lines[-2:] == [
        "Settled by this change: dec-2g54",
        "Refused: 1 confirmed (review.unsettled = fail on main)",
    ]
    put(towers, ABOVE, CONCLUSION, settled_on=("memory:dec-south",))
    towers.commit("confirmed")
    assert show(towers, "main..pr") == (0, ["Settled by this change: dec-2g54, sem-r8d3"])


def test_the_layout_of_a_terminal(towers: Sandbox):
    """Ids are at the right edge; a title without room for its id has it on the next line."""
    put(towers, NEWER, supersedes=(PREMISE,))
    towers.git(
        "mv", "AGENTS.md", "a-file-of-rules-with-a-long-name-that-fills-the-line-by-itself.md"
    )
    towers.git("add", "-A")
    text = render(review(towers.context(), staged=True), towers.layout(80))
    assert text.splitlines()[1:7] == [
        "Towers over 40 floors need a class F review                             sem-k3f9",
        "  is now: Towers over 50 floors need a class F review                   sem-b7x2",
        "  rests on it: The north tower gets a class F review                    dec-2g54",
        "    rests on that: The plan of the north tower allows nine weeks        sem-r8d3",
        "  named in a-file-of-rules-with-a-long-name-that-fills-the-line-by-itself.md:3",
        " " * 72 + "dec-2g54",
    ]


def test_two_pull_requests(towers: Sandbox):
    """Each is fine by itself, and the second says what it rests on after the first was merged."""
    put(towers, NEWER, supersedes=(PREMISE,))
    put(towers, CONCLUSION, PREMISE, settled_on=(f"memory:{NEWER}",))
    towers.commit("first")
    towers.git("switch", "-q", "main")
    towers.git("switch", "-q", "-c", "second")
    put(towers, "dec-third", PREMISE)
    towers.commit("second")
    assert show(towers, "main..pr")[0] == show(towers, "main..second")[0] == 0
    towers.git("branch", "-q", "-f", "main", "pr")
    assert show(towers, "main..second") == (
        1,
        [
            "1 memory rests on what this change takes away",
            "Towers over 40 floors need a class F review  sem-k3f9",
            "  is now, on main: Towers over 50 floors need a class F review  sem-b7x2",
            "  new here, rests on it: Title of dec-third  dec-third",
            "Take main in first (git merge main), then settle:",
            "  it still holds      memtool confirm dec-third --still-holds",
            "  it has changed      memtool supersede dec-third TITLE",
            "  it no longer holds  memtool forget dec-third --reason TEXT",
            "Refused: 1 confirmed (review.unsettled = fail on main)",
        ],
    )
    (row,) = towers.run("review", "main..second", "--format", "github").stdout.splitlines()[:1]
    assert row.startswith(
        "::error file=.memory/decision/2026-02/dec-third.md,line=9,title=Rests on it%3A Title of "
    )
    comment = towers.run("review", "main..second", "--format", "markdown").stdout
    assert f"**`{TITLES[PREMISE]}`** is now, on `main`: **`{TITLES[NEWER]}`**\n" in comment
    towers.git("merge", "-q", "--no-edit", "main")
    status, lines = show(towers, "main..second")
    assert (status, lines[4]) == (
        1,
        "Settle in this change (if one still holds, so does what rests on it):",
    )
    put(towers, "dec-third", PREMISE, settled_on=(f"memory:{NEWER}",))
    towers.commit("settled")
    assert show(towers, "main..second") == (0, ["Settled by this change: dec-third"])
    comment = towers.run("review", "main..second", "--format", "markdown").stdout
    assert comment.endswith("\n\nSettled by this change: `dec-third`\n")


def test_a_conclusion_came_to_the_target_meanwhile(towers: Sandbox):
    """The change lacks what rests on its premise, and must take it in."""
    put(towers, NEWER, supersedes=(PREMISE,))
    put(towers, CONCLUSION, PREMISE, settled_on=(f"memory:{NEWER}",))
    towers.commit("newer")
    towers.git("switch", "-q", "main")
    put(towers, "dec-third", PREMISE)
    towers.commit("meanwhile")
    status, lines = show(towers, "main..pr")
    assert (status, lines[3:5]) == (
        1,
        [
            "  on main, rests on it: Title of dec-third  dec-third",
            "Take main in first (git merge main), then settle:",
        ],
    )


def test_a_file_is_deleted(towers: Sandbox):
    """What names it is broken, and to confirm that settles all that rests on it."""
    towers.git("switch", "-q", "main")
    towers.write("app/review.py", "def decide():\n    return 1\n")
    put(towers, "sem-names", files=("app/review.py",))
    put(towers, "dec-rests", "sem-names")
    towers.commit("names it")
    towers.git("switch", "-q", "-c", "gone")
    towers.git("rm", "-q", "app/review.py")
    lines = [
        "1 memory rests on what this change takes away",
        "app/review.py is gone",
        "  names it: Title of sem-names  sem-names",
        "    rests on that: Title of dec-rests  dec-rests",
        "Settle in this change (if one still holds, so does what rests on it):",
        "  it still holds      memtool confirm sem-names --still-holds",
        "  it has changed      memtool supersede sem-names TITLE",
        "  it no longer holds  memtool forget sem-names --reason TEXT",
    ]
    status, rows = show(towers, "--staged")
    assert (status, rows[: len(lines)]) == (1, lines)
    towers.commit("delete")
    assert show(towers, "main..gone")[1][: len(lines)] == lines
    out = towers.run("review", "main..gone", "--format", "github").stdout
    assert "::error file=.memory/semantic/2026-02/sem-names.md,line=9,title=Rests on it%3A" in out


def test_the_policy_is_that_of_the_target(towers: Sandbox):
    """A change cannot relax it, and what it sets holds for the next one."""
    towers.write(".memory/config.toml", '[review]\nunsettled = "warn"\n')
    put(towers, NEWER, supersedes=(PREMISE,))
    towers.commit("relaxed")
    assert show(towers, "main..pr")[0] == 1
    towers.git("switch", "-q", "-C", "main", "main~0")
    towers.write(".memory/config.toml", "")
    towers.commit("default")
    towers.git("switch", "-q", "-c", "other")
    towers.write(".memory/config.toml", FAIL)
    put(towers, NEWER, supersedes=(PREMISE,))
    towers.commit("stricter")
    status, lines = show(towers, "main..other")
    assert (status, lines[0]) == (0, CHANGED[0])
    assert "Refused" not in lines[-1]
    assert "::warning " in towers.run("review", "main..other", "--format", "github").stdout


@pytest.mark.parametrize(("status", "code"), [("candidate", 0), ("confirmed", 1), ("pinned", 1)])
def test_only_what_somebody_vouched_for_fails(sandbox: Sandbox, status: str, code: int):
    """A candidate is listed as well."""
    sandbox.write(".memory/config.toml", FAIL)
    put(sandbox, "dec-p")
    put(sandbox, "dec-c", "dec-p", status=status)
    sandbox.commit()
    put(sandbox, "dec-n", supersedes=("dec-p",))
    sandbox.git("add", "-A")
    assert show(sandbox, "--staged")[0] == code
    answer = sandbox.json("review", "--staged")
    assert (answer["unsettled"], answer["vouched"]) == (1, code)
    assert answer["premises"][0]["conclusions"][0]["status"] == status


@pytest.mark.parametrize(
    ("fields", "clause"),
    [
        ({"status": "deprecated"}, "it is deprecated"),
        (
            {
                "status": "deleted",
                "deleted": {"at": "2026-02-23T00:00:00Z", "by": "ada", "reason": "wrong"},
            },
            "it was forgotten",
        ),
        ({"valid_through": "2026-02-20"}, "it has expired"),
    ],
)
def test_a_premise_no_longer_holds(towers: Sandbox, fields: dict[str, FieldValue], clause: str):
    """The line of the diff is that of its status or its end."""
    path = put(towers, PREMISE, **fields)
    towers.commit("no longer")
    status, lines = show(towers, "main..pr")
    assert (status, lines[2]) == (1, f"  {clause}")
    (premise,) = towers.json("review", "main..pr")["premises"]
    text = (towers.path / path).read_text().splitlines()[premise["line"] - 1]
    assert (premise["path"], text.partition(":")[0]) == (path, next(iter(fields)))


def test_the_file_of_a_premise_is_removed(towers: Sandbox):
    """Its title is that of before."""
    (towers.path / f".memory/semantic/2026-02/{PREMISE}.md").unlink()
    towers.commit("removed")
    assert show(towers, "main..pr")[1][1:3] == [
        f"{TITLES[PREMISE]}  sem-k3f9",
        "  it is not here",
    ]


def test_what_was_unsettled_before_is_only_counted(towers: Sandbox):
    """But for what a new conclusion rests on: that is the lowest to settle."""
    put(towers, NEWER, supersedes=(PREMISE,))
    towers.commit("newer")
    towers.git("branch", "-q", "-f", "main", "pr")
    towers.write("app/tower.py", "")
    towers.commit("nothing")
    assert show(towers, "main..pr") == (
        0,
        ["1 file changed, governed by no decision or warning"],
    )
    put(towers, "dec-third", CONCLUSION)
    towers.commit("third")
    status, lines = show(towers, "main..pr")
    assert (status, lines[3:7]) == (
        1,
        [
            "  rests on it, as before: The north tower gets a class F review  dec-2g54",
            "    new here, rests on that: Title of dec-third  dec-third",
            "Settle in this change (if one still holds, so does what rests on it):",
            "  it still holds      memtool confirm dec-2g54 --still-holds",
        ],
    )
    assert "2 memories were unsettled before (memtool list is:unsettled)" in lines


def test_a_settling_of_older_causes_is_told(towers: Sandbox):
    """A change may settle what came with another one."""
    put(towers, NEWER, supersedes=(PREMISE,))
    towers.commit("newer")
    towers.git("branch", "-q", "-f", "main", "pr")
    put(towers, CONCLUSION, PREMISE, settled_on=(f"memory:{NEWER}",))
    towers.git("add", "-A")
    assert show(towers, "--staged") == (0, ["Settled by this change: dec-2g54, sem-r8d3"])


def test_circles_end(sandbox: Sandbox):
    """Memories that rest on each other, or on themselves, are each listed once."""
    put(sandbox, "dec-a", "dec-b", "dec-a")
    put(sandbox, "dec-b", "dec-a", "dec-p")
    put(sandbox, "dec-p")
    sandbox.commit()
    put(sandbox, "dec-n", supersedes=("dec-p",))
    sandbox.git("add", "-A")
    assert show(sandbox, "--staged")[1][1:5] == [
        "Title of dec-p  dec-p",
        "  is now: Title of dec-n  dec-n",
        "  rests on it: Title of dec-b  dec-b",
        "    rests on that: Title of dec-a  dec-a",
    ]


@pytest.mark.slow
def test_long_chains_and_broad_ones_are_bounded(sandbox: Sandbox):
    """All are counted; the text has a few, the annotations the lowest, the JSON most of them."""
    put(sandbox, "dec-p")
    for number in range(600):
        put(sandbox, f"dec-b{number}", "dec-p")
    for number in range(300):
        put(sandbox, f"dec-c{number}", f"dec-c{number - 1}" if number else "dec-p")
    sandbox.commit()
    put(sandbox, "dec-n", supersedes=("dec-p",))
    sandbox.git("add", "-A")
    lines = show(sandbox, "--staged")[1]
    assert lines[0].startswith("900 memories rest")
    assert "  and 890 more (--json lists them)" in lines
    assert len(lines) == 19
    assert max(map(len, lines)) < 100
    (premise,) = sandbox.json("review", "--staged")["premises"]
    assert (premise["count"], len(premise["conclusions"])) == (900, 900)
    assert max(row["depth"] for row in premise["conclusions"]) == 300
    github = sandbox.run("review", "--staged", "--format", "github").stdout
    assert len(github.splitlines()) == 13
    markdown = sandbox.run("review", "--staged", "--format", "markdown").stdout
    assert "- and 870 memories not shown" in markdown
    assert len(markdown) < 24_000


@pytest.mark.parametrize("side", ["main", "pr"])
def test_a_memory_that_both_sides_changed_is_merged(towers: Sandbox, side: str):
    """Each settles one of two causes, or one adds a tag: neither change is lost."""
    put(towers, NEWER, supersedes=(PREMISE,))
    towers.commit("newer")
    towers.git("switch", "-q", "-C", "other", "main")
    put(towers, CONCLUSION, PREMISE, settled_on=(f"memory:{NEWER}",))
    towers.commit("settled before it came")
    target, change = ("other", "pr") if side == "main" else ("pr", "other")
    assert show(towers, f"{target}..{change}")[0] == 0
    towers.git("switch", "-q", "pr")
    put(towers, CONCLUSION, PREMISE, tags=("tower",))
    towers.commit("tagged")
    assert show(towers, f"{target}..{change}")[0] == 0
    assert towers.json("review", f"{target}..{change}")["unsettled"] == 0


def test_a_claim_that_both_sides_changed_is_told(towers: Sandbox):
    """It cannot be merged, and is read as the change has it."""
    path = put(towers, CONCLUSION, PREMISE)
    text = (towers.path / path).read_text()
    for branch in ("main", "pr"):
        towers.git("switch", "-q", branch)
        towers.write(path, text.replace("review.\n", f"review, on {branch}.\n"))
        towers.commit("claim")
    done = towers.run("review", "main..pr")
    assert (done.returncode, f"and not merged: {path}" in done.stderr) == (0, True)


def test_moved_files_of_memories(towers: Sandbox):
    """Whichever side moved one, it is there once, with the changes of both."""
    old = f".memory/decision/2026-02/{CONCLUSION}.md"
    new = f".memory/decision/2026-03/{CONCLUSION}.md"
    put(towers, NEWER, supersedes=(PREMISE,))
    towers.commit("newer")
    towers.git("switch", "-q", "main")
    (towers.path / new).parent.mkdir(parents=True)
    towers.git("mv", old, new)
    towers.commit("moved")
    towers.git("switch", "-q", "pr")
    put(towers, CONCLUSION, PREMISE, settled_on=(f"memory:{NEWER}",))
    towers.commit("settled")
    for range_ in ("main..pr", "pr..main"):
        done = towers.run("review", range_)
        assert (done.returncode, "duplicate" in done.stderr) == (0, False)
        assert towers.json("review", range_)["unsettled"] == 0


def test_a_code_file_of_a_memory_on_the_target_only(towers: Sandbox):
    """One pull request adds a memory about a file, the other one deletes the file."""
    towers.git("switch", "-q", "main")
    towers.write("app/review.py", "def decide():\n    return 1\n")
    towers.commit("file")
    towers.git("switch", "-q", "-C", "pr", "main")
    towers.git("rm", "-q", "app/review.py")
    towers.commit("delete")
    towers.git("switch", "-q", "main")
    put(towers, "sem-names", files=("app/review.py",))
    put(towers, "dec-rests", "sem-names")
    towers.commit("names it")
    status, lines = show(towers, "main..pr")
    assert (status, lines[1:5]) == (
        1,
        [
            "app/review.py is gone",
            "  names it: Title of sem-names  sem-names",
            "    on main, rests on that: Title of dec-rests  dec-rests",
            "Take main in first (git merge main), then settle:",
        ],
    )


def test_digests_have_the_command_that_rebuilds_them(towers: Sandbox):
    """And no other memory of the change is taken for one."""
    towers.git("switch", "-q", "main")
    put(towers, "sem-second")
    towers.commit("second")
    assert towers.run("digest", "pattern", "--commit").returncode == 0
    put(towers, NEWER, supersedes=(PREMISE,))
    towers.git("add", "-A")
    text = towers.run("review", "--staged").stdout
    assert "  in a digest (memtool digest pattern)  sem-k3f9\n" in text


def test_texts_of_others_do_nothing_in_any_format(sandbox: Sandbox):
    """No command of a runner, no markup and no control character."""
    bad = "x`**b** <img> @team #1 ::error file=a::b %0A ##[error] ,"
    source = ("human:Ada", "memory:dec-p")
    sandbox.memory("dec-p", title=bad)
    sandbox.memory("dec-c", title=bad, source=source)
    sandbox.commit()
    sandbox.memory("dec-n", "Else.\n", title=bad, supersedes=("dec-p",))
    sandbox.git("add", "-A")
    out = sandbox.run("review", "--staged", "--format", "github").stdout
    (command, *_rows) = out.splitlines()
    assert command.startswith("::warning file=.memory/decision/2026-02/dec-n.md,line=")
    assert "%3A%3Aerror file=a%3A%3Ab %250A ##[error] %2C::dec-p is now dec-n" in command
    assert [row for row in out.splitlines() if row.startswith("::")] == [command]
    markdown = sandbox.run("review", "--staged", "--format", "markdown").stdout
    task = next(row for row in markdown.splitlines() if row.startswith("- [ ] "))
    assert task.startswith("- [ ] rests on it: `dec-c` ``x`**b** <img> @team #1")
    assert task.endswith("``")
    answer = sandbox.run("review", "--staged", "--json").stdout
    (sandbox.path / "answer.json").write_text(answer.replace("#1", "\\u001b[31m\\u2028\\n::x::"))
    for name in ("text", "markdown", "github", "sarif"):
        done = sandbox.run("review", "--from", "answer.json", "--format", name)
        assert done.returncode == 0
        assert "\x1b" not in done.stdout
        assert "\n::x::" not in done.stdout
    assert json.loads(done.stdout)


def test_the_comment_has_tasks(towers: Sandbox):
    """A hidden mark, the old and the new premise, and a task for each conclusion."""
    put(towers, NEWER, supersedes=(PREMISE,))
    towers.commit("newer")
    (towers.path / "answer.json").write_text(towers.run("review", "main..pr", "--json").stdout)
    done = towers.run("review", "--from", "answer.json", "--format", "markdown")
    assert done.returncode == 1
    assert done.stdout == towers.run("review", "main..pr", "--format", "markdown").stdout
    assert done.stdout.splitlines()[:9] == [
        "<!-- memtool review -->",
        "### What rests on what this change takes away",
        "",
        f"**`{TITLES[PREMISE]}`** is now **`{TITLES[NEWER]}`**",
        "",
        f"- [ ] rests on it: `dec-2g54` `{TITLES[CONCLUSION]}`",
        f"  - [ ] rests on that: `sem-r8d3` `{TITLES[ABOVE]}`",
        "- named in `AGENTS.md:3`, `app/tower.py:1`, `app/tower.py:2`",
        "",
    ]
    (row,) = towers.run("review", "main..pr", "--format", "github").stdout.splitlines()[:1]
    assert row.startswith(
        f"::error file=.memory/semantic/2026-02/{NEWER}.md,line=10,title=Rests on it%3A The north "
    )
    assert "::sem-k3f9 is now sem-b7x2; dec-2g54 rests on it, and 1 memory on that%0A" in row
    assert row.endswith("%0Amemtool forget dec-2g54 --reason TEXT")


def test_a_reason_of_somebody_is_refused(towers: Sandbox):
    """An answer comes from a workflow that anybody can change."""
    put(towers, NEWER, supersedes=(PREMISE,))
    towers.commit("newer")
    answer = towers.json("review", "main..pr")
    answer["premises"][0]["reason"] = "`x`"
    (towers.path / "answer.json").write_text(json.dumps(answer))
    done = towers.run("review", "--from", "answer.json")
    assert (done.returncode, "a reason is none of" in done.stderr) == (2, True)


def test_ranges_without_a_common_commit(towers: Sandbox):
    """One sentence, with what to do; in a shallow clone of a CI too."""
    put(towers, NEWER, supersedes=(PREMISE,))
    towers.commit("newer")
    towers.git("switch", "-q", "main")
    towers.write("app/tower.py", "")
    towers.commit("moves on")
    url = f"file://{towers.path}"
    towers.git("clone", "-q", "--depth=1", "--no-single-branch", url, "../cut")
    cut = Sandbox(towers.path.parent / "cut", towers.env)
    done = cut.run("review", "origin/main..origin/pr")
    assert done.returncode == 2
    assert "no commit in common in this shallow clone" in done.stderr
    assert "git fetch --unshallow" in done.stderr
    assert "fetch-depth: 0" in done.stderr
    cut.git("fetch", "-q", "--unshallow")
    assert show(cut, "origin/main..origin/pr")[0] == 1
    towers.git("switch", "-q", "--orphan", "lonely")
    towers.write("a", "a\n")
    towers.commit("lonely")
    done = towers.run("review", "main..lonely")
    assert (done.returncode, "have no commit in common" in done.stderr) == (2, True)


def test_options_that_exclude_each_other(towers: Sandbox):
    """Also before the first commit there is nothing to review."""
    done = towers.run("review", "main..pr", "--staged")
    assert (done.returncode, "exclude each other" in done.stderr) == (2, True)


def test_staged_is_for_all_that_a_review_says(towers: Sandbox):
    """Governed files, what is broken of their memories, and how to say that it is kept."""
    put(towers, "dec-rule", files=("app/tower.py",))
    towers.commit("rule")
    towers.git("rm", "-q", "app/tower.py")
    assert show(towers, "--staged") == (
        0,
        [
            "1 file changed, governed by 1 memory",
            "app/tower.py",
            "  not mentioned  dec-rule  Title of dec-rule",
            "    BREAKS IT: app/tower.py is no longer there",
            "1 is not mentioned. If your change keeps it, say so; if not, correct it:",
            '  git commit --trailer "Upholds: dec-rule"',
            "  memtool supersede dec-rule TITLE",
        ],
    )
    (file,) = towers.json("review", "--staged")["files"]
    assert file["path"] == "app/tower.py"


def test_an_unfinished_merge_is_passed_over(towers: Sandbox):
    """A file that git has not merged yet is as in HEAD."""
    path = put(towers, CONCLUSION, PREMISE)
    text = (towers.path / path).read_text()
    for branch in ("main", "pr"):
        towers.git("switch", "-q", branch)
        towers.write(path, text.replace("review.\n", f"review, on {branch}.\n"))
        put(towers, f"dec-{branch}", PREMISE)
        towers.commit("claim")
    towers.git("merge", "-q", "main", check=False)
    assert towers.run("review", "--staged").returncode == 0
