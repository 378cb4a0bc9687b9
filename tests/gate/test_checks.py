"""The single checks, on small trees."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import Sandbox, make_memory

from memtool.commands.check import check
from memtool.gate.checks.schema import find_headings, find_hidden_characters
from memtool.memory import document
from memtool.memory.schema import CODES

SECTIONS = (
    "## Options considered\n\na\n\n## Chosen\n\nb\n\n## Constraints\n\nc\n\n## Rationale\n\nd\n"
)


def list_problems(sandbox: Sandbox) -> list[tuple[str, str, int, str]]:
    """Return the problems of the worktree; those of the index must be the same."""
    problems = check(sandbox.context()).problems
    sandbox.git("add", "--all")
    staged = check(sandbox.context(), staged=True).problems
    assert list(staged) == list(problems)
    assert all(problem.code in CODES for problem in problems)
    return [(p.id, p.code, p.line, p.severity) for p in problems]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("One sentence is enough.\n", []),
        (SECTIONS, []),
        (SECTIONS.upper(), []),
        ("Intro.\n\n" + SECTIONS.replace("## Chosen", "### Chosen ##"), []),
        ("## Context\n\na\n\n## Decision\n\nb\n", []),
        ("Chosen\n------\n\nb\n", ["missing-section"]),
        (SECTIONS.replace("## Rationale\n\nd\n", ""), ["missing-section"]),
        (SECTIONS.replace("## Rationale", "```\n## Rationale\n```"), ["missing-section"]),
    ],
)
def test_sections_of_a_decision(sandbox: Sandbox, body: str, expected: list[str]) -> None:
    """Who begins to write sections is reminded of those that are missing."""
    sandbox.memory("dec-a", body)
    assert [row[1] for row in list_problems(sandbox)] == expected


def test_sections_are_not_asked_of_candidates_and_other_types(sandbox: Sandbox) -> None:
    """A candidate may still grow, and facts have no form."""
    sandbox.memory("dec-a", "## Chosen\n\nRedis holds sessions.\n", status="candidate")
    sandbox.memory("sem-a", "## Evidence\n\nThe queue is drained at night.\n", type="semantic")
    assert list_problems(sandbox) == []


def test_sections_are_not_asked_of_what_is_committed(sandbox: Sandbox) -> None:
    """They can no longer be added, so there is no reminder, not even in CI."""
    sandbox.git("commit", "-q", "--allow-empty", "-m", "begin")
    sandbox.memory("dec-a", "## Chosen\n\nRedis holds sessions.\n")
    assert [row[1] for row in list_problems(sandbox)] == ["missing-section"]
    sandbox.commit()
    assert not sandbox.json("check", "--range", "HEAD~1..HEAD")["problems"]
    sandbox.memory("dec-a", "## Chosen\n\nRedis holds sessions.\n", status="pinned")
    assert list_problems(sandbox) == []


def test_headings_are_read_as_markdown_reads_them() -> None:
    """Fences hide headings, until a fence at least as long closes them."""
    body = (
        "# A\n````\n# no\n```\n# no\n````\n## B ##\nC\n===\n#D\n~~~\n# no\n~~~~\nE\n---\n- x\n---\n"
    )
    assert find_headings(body) == ["A", "B", "C", "E", "- x"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Text.\n\n<!-- do as I say -->\n", [("html-comment", 12)]),
        ("<details><summary>x</summary>\nhidden\n</details>\n", [("html-comment", 10)]),
        ("```html\n<!-- shown as code -->\n```\n", []),
        ("The mail is a@example.org. <!-- memtool: allow email -->\n", []),
    ],
)
def test_text_that_people_do_not_see(
    sandbox: Sandbox, body: str, expected: list[tuple[str, int]]
) -> None:
    """Comments are told as warnings, at their line of the file."""
    sandbox.memory("dec-a", body)
    rows = [
        (code, line)
        for _id, code, line, severity in list_problems(sandbox)
        if severity == "warning"
    ]
    assert rows == expected


def test_line_ends_that_an_older_form_wrote_out(sandbox: Sandbox) -> None:
    """A written-out carriage return at each line end is a warning, and its hint mends it."""
    sandbox.memory("dec-a", "Seats are held.\\r\n\\r\nFor 20 minutes.\\r\n", title="It's so")
    sandbox.memory("dec-b", "Windows ends lines with \\r and \\n.\nNever with \\r\nalone.\n")
    sandbox.commit()
    (problem,) = [
        problem for problem in check(sandbox.context()).problems if problem.code == "literal-return"
    ]
    assert (problem.id, problem.severity, problem.line) == ("dec-a", "warning", 10)
    program = f'memtool() {{ "{sys.executable}" -m memtool "$@"; }}; {problem.hint}'
    subprocess.run(["sh", "-ec", program], cwd=sandbox.path, env=sandbox.env, check=True)
    assert not [
        problem for problem in check(sandbox.context()).problems if problem.code == "literal-return"
    ]
    new = sandbox.json("search", "is:head seats")["results"][0]
    assert sandbox.json("show", new["id"])["body"] == "Seats are held.\n\nFor 20 minutes.\n"


def test_a_joiner_between_letters_is_a_warning() -> None:
    """Scripts and emoji need joiners; next to a Latin letter one splits a word in two."""
    assert list(find_hidden_characters("pass\u200dword\n")) == [
        (1, "a joiner (U+200D) that joins nothing", False)
    ]
    assert (
        list(find_hidden_characters("\U0001f468\u200d\U0001f469 \u0915\u094d\u200d\u0937\n")) == []
    )


def test_a_program_is_a_warning(sandbox: Sandbox) -> None:
    """Memories are not run."""
    path = sandbox.memory("dec-a")
    (sandbox.path / path).chmod(0o755)
    assert list_problems(sandbox) == [("dec-a", "file-mode", 0, "warning")]


def test_lineage_of_new_memories(sandbox: Sandbox) -> None:
    """Missing ids, circles and heads passed over are errors; a fork is a warning."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    sandbox.memory("dec-b", "Sessions live in signed cookies.\n", supersedes=("dec-a",))
    sandbox.commit()
    sandbox.memory("dec-c", "Queues are drained at night.\n", supersedes=("dec-a",))
    sandbox.memory("dec-d", "Each table has an owner.\n", supersedes=("dec-e", "dec-nowhere"))
    sandbox.memory("dec-e", "Releases are cut on Mondays.\n", supersedes=("dec-d",))
    problems = check(sandbox.context(), staged=False).problems
    assert {(p.id, p.code, p.severity) for p in problems} >= {
        ("dec-c", "not-a-head", "error"),
        ("dec-d", "cycle", "error"),
        ("dec-d", "dangling", "error"),
        ("dec-e", "cycle", "error"),
    }
    assert ("dec-c", "fork") not in {(p.id, p.code) for p in problems}


def test_superseding_both_heads_ends_a_fork(sandbox: Sandbox) -> None:
    """The old memory may be named as well as its heads."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    sandbox.memory("dec-b", "Queues are drained at night.\n", supersedes=("dec-a",))
    sandbox.memory("dec-c", "Each table has an owner.\n", supersedes=("dec-a",))
    assert [row[:2] for row in list_problems(sandbox)] == [("dec-b", "fork"), ("dec-c", "fork")]
    sandbox.commit()
    sandbox.memory(
        "dec-d", "Releases are cut on Mondays.\n", supersedes=("dec-a", "dec-b", "dec-c")
    )
    assert list_problems(sandbox) == []


def test_a_deleted_memory_supersedes_nothing(sandbox: Sandbox) -> None:
    """So what it replaced is a head again."""
    gone = {"at": "2026-02-23T00:00:00Z", "by": "Ada", "reason": "wrong"}
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    sandbox.memory(
        "dec-b",
        "Queues are drained at night.\n",
        supersedes=("dec-a",),
        status="deleted",
        deleted=gone,
    )
    sandbox.commit()
    sandbox.memory("dec-c", "Each table has an owner.\n", supersedes=("dec-a",))
    assert list_problems(sandbox) == []


def test_links_are_looked_up(sandbox: Sandbox) -> None:
    """A broken link is a warning at its line; a good one is not mentioned."""
    sandbox.write("src/app/main.py", "pass\n")
    sandbox.write("docs/a b.md", "x\n")
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    commit = sandbox.commit()
    sandbox.memory(
        "dec-b",
        "It follows [[dec-a]] and [[dec-nowhere]], not `[[code]]`.\n\nSee [[ dec-a ]].\n",
        source=(
            f"commit:{commit[:12]}",
            "commit:deadbeef",
            "file:docs/a b.md",
            "file:docs/none.md",
            "file:docs",
            f"file:src/app/main.py#L1@{commit[:12]}",
            f"file:none.py@{commit[:12]}",
            "memory:dec-a",
            "memory:dec-none",
            "human:Ada",
            "url:https://example.org",
        ),
        files=("src/app/*.py", "src/**", "src/app", "lib/**/*.py", "**/main.py", "main.py"),
        related_to=("dec-a", "dec-other"),
    )
    problems = [p for p in check(sandbox.context()).problems if p.id == "dec-b"]
    assert [(p.line, p.code, p.message.split()[0]) for p in problems] == [
        (7, "broken-link", "memory:dec-none"),
        (7, "broken-source", "file:docs/none.md"),
        (7, "broken-source", "source:"),
        (7, "broken-source", "source:"),
        (19, "no-such-file", "files:"),
        (19, "no-such-file", "files:"),
        (20, "broken-link", "related_to:"),
        (24, "broken-link", "[[dec-nowhere]]"),
    ]
    assert {p.severity for p in problems} == {"warning"}
    sandbox.git("add", "--all")
    assert list(check(sandbox.context(), staged=True).problems) == problems
    sandbox.write(".memory/decision/2026-02/dec-none.md", "no frontmatter\n")
    broken = {p.code for p in check(sandbox.context()).problems if "dec-none" in p.message}
    assert broken == set(), "it is there, and cannot be read"


def test_a_shallow_clone_cannot_tell_about_commits(sandbox: Sandbox) -> None:
    """A commit beyond the boundary is not called broken."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    first = sandbox.commit()
    sandbox.memory("dec-b", "Queues are drained at night.\n", source=(f"commit:{first}",))
    sandbox.commit()
    sandbox.git("clone", "--quiet", "--depth=1", f"file://{sandbox.path}", "../shallow")
    shallow = Sandbox(sandbox.path.parent / "shallow", sandbox.env)
    assert check(shallow.context()).problems == ()


def test_moments_of_the_future(sandbox: Sandbox) -> None:
    """A clock may be some minutes off; a day is a mistake. Windows must hold the writing."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n", timestamp="2026-03-01T12:04:00Z")
    sandbox.memory("dec-b", "Queues are drained at night.\n", timestamp="2026-03-02T12:00:00Z")
    sandbox.memory("dec-c", "Each table has an owner.\n", valid_through="2026-02-01")
    sandbox.memory(
        "dec-d", "Releases are cut on Mondays.\n", checked={"at": "2027-01-01T00:00:00Z"}
    )
    assert list_problems(sandbox) == [
        ("dec-b", "future", 3, "warning"),
        ("dec-c", "bad-window", 9, "warning"),
        ("dec-d", "future", 9, "warning"),
    ]


def test_a_secret_in_the_header_is_found(sandbox: Sandbox) -> None:
    """The whole file is searched, and the line is the file's."""
    key = "AK" + "IA" + "QWERTYUIOPASDFGH"
    sandbox.memory("dec-a", **{"x-note": f"key {key}"})
    assert list_problems(sandbox) == [("dec-a", "secret", 9, "error")]


def test_personal_data_has_its_own_code(sandbox: Sandbox) -> None:
    """It is refused like a secret."""
    sandbox.memory("dec-a", "Ask grace.hopper@navy-yard.io about it.\n")
    assert list_problems(sandbox) == [("dec-a", "personal-data", 10, "error")]


def test_settings_allow_what_is_harmless(sandbox: Sandbox) -> None:
    """The allow list of the settings is that of the gate; a verdict does not outlive it."""
    sandbox.write(".memory/config.toml", '[redaction]\nallow_emails = ["navy-yard.io"]\n')
    sandbox.memory("dec-a", "Ask grace.hopper@navy-yard.io about it.\n")
    assert list_problems(sandbox) == []
    sandbox.write(".memory/config.toml", "")
    assert list_problems(sandbox) == [("dec-a", "personal-data", 10, "error")]


def test_one_file_is_told_of_a_few_problems_of_a_kind(sandbox: Sandbox) -> None:
    """A file of nothing but hidden characters does not fill the screen."""
    sandbox.memory("dec-a", "a\u200bb\n" * 500)
    assert len(list_problems(sandbox)) == 5


def test_the_same_tree_gives_the_same_problems(sandbox: Sandbox) -> None:
    """Sorted by path and line, whatever the hash seed and the state of the cache."""
    for number in range(12):
        data = document.write(
            make_memory(f"dec-{number:03}", f"Number {number} \u200b.\n", supersedes=("dec-none",))
        )
        sandbox.write(f".memory/{'abc'[number % 3]}/dec-{number:03}.md", data)
    first = sandbox.run("check", "--json", PYTHONHASHSEED="1").stdout
    assert sandbox.run("check", "--json", PYTHONHASHSEED="2").stdout == first
    places = [(p.path, p.line) for p in check(sandbox.context()).problems]
    assert places == sorted(places)
