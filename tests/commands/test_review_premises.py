"""Review of premises: what a change takes away, in real repositories."""

from __future__ import annotations

import pytest
from conftest import Sandbox

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
    "  it still holds  memtool confirm dec-2g54 --still-holds",
    "  it has changed  memtool supersede dec-2g54 TITLE",
    "  never true now  memtool forget dec-2g54 --reason TEXT",
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
            "  it still holds  memtool confirm dec-third --still-holds",
            "  it has changed  memtool supersede dec-third TITLE",
            "  never true now  memtool forget dec-third --reason TEXT",
            "Refused: 1 confirmed (review.unsettled = fail on main)",
        ],
    )
    (row,) = towers.run("review", "main..second", "--format", "github").stdout.splitlines()[:1]
    assert row.startswith(
        "::error file=.memory/decision/2026-02/dec-third.md,line=9,title=Rests on it%3A Title of "
    )
    towers.git("merge", "-q", "--no-edit", "main")
    status, lines = show(towers, "main..second")
    assert (status, lines[4]) == (
        1,
        "Settle in this change (if one still holds, so does what rests on it):",
    )
    put(towers, "dec-third", PREMISE, settled_on=(f"memory:{NEWER}",))
    towers.commit("settled")
    assert show(towers, "main..second")[0] == 0


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
        "  it still holds  memtool confirm sem-names --still-holds",
        "  it has changed  memtool supersede sem-names TITLE",
        "  never true now  memtool forget sem-names --reason TEXT",
    ]
    status, rows = show(towers, "--staged")
    assert (status, rows[: len(lines)]) == (1, lines)
    towers.commit("delete")
    assert show(towers, "main..gone")[1][: len(lines)] == lines
    out = towers.run("review", "main..gone", "--format", "github").stdout
    assert "::error file=.memory/semantic/2026-02/sem-names.md,line=9,title=Rests on it%3A" in out
