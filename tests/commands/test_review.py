from __future__ import annotations

import pytest
from conftest import PIPED, Sandbox, make_memory

from memtool.commands.review import Review, find_rules, render, review
from memtool.errors import MemtoolError
from memtool.memory.memory import FieldValue
from memtool.store.context import Context
from memtool.store.tree import Record


def states(report: Review) -> dict[str, str]:
    return {memory.id: memory.state for file in report.files for memory in file.memories}


@pytest.fixture
def base(sandbox: Sandbox) -> Sandbox:
    """A branch main with one decision about src/, and a branch side to work on."""
    sandbox.write("src/a.py", "a = 1\n" * 20)
    sandbox.write("docs/a.md", "docs\n")
    sandbox.memory("dec-a", files=("src/*.py",))
    sandbox.commit()
    sandbox.git("checkout", "-q", "-b", "side")
    return sandbox


def change(sandbox: Sandbox, message: str = "change") -> None:
    sandbox.write("src/a.py", "a = 1\n" * 20 + f"# {message}\n")
    sandbox.commit(message)


def test_an_unmentioned_decision_is_told(base: Sandbox) -> None:
    """Below the files that it governs, with what to do; other files are only counted."""
    base.write("docs/a.md", "more\n")
    change(base)
    report = review(base.context(), "main..HEAD")
    assert (report.touched, report.unmentioned, report.exit_code) == (2, 1, 0)
    assert [file.path for file in report.files] == ["src/a.py"]
    counts, *rows = render(report, PIPED).splitlines()
    assert counts.endswith(": 2 files changed, 1 of them governed by 1 memory")
    assert rows == [
        "src/a.py",
        "  not mentioned  dec-a  Title of dec-a",
        "1 is not mentioned. If your change keeps it, say so; if not, correct it:",
        '  git commit --amend --trailer "Upholds: dec-a"',
        "  memtool supersede dec-a TITLE",
    ]


def test_the_json_says_what_the_text_says(base: Sandbox) -> None:
    """Programs get ends, policy, files with memories, and the count."""
    change(base)
    answer = base.json("review", "main..HEAD")
    keys = (
        "from to policy touched files unmentioned target branch unsettled_policy premises "
        "unsettled vouched earlier settled needs_target"
    )
    assert " ".join(answer) == keys
    assert answer["from"] == base.git("rev-parse", "main").strip()
    assert answer["files"] == [
        {
            "path": "src/a.py",
            "old_path": "src/a.py",
            "memories": [
                {
                    "id": "dec-a",
                    "title": "Title of dec-a",
                    "path": ".memory/decision/2026-02/dec-a.md",
                    "by": "files",
                    "state": "unmentioned",
                    "reason": "",
                    "due": False,
                    "breaks": "",
                    "was": "",
                }
            ],
            "line": 21,
        }
    ]


@pytest.mark.parametrize(
    "message",
    [
        "x\n\nUpholds: dec-a",
        "x\n\nSigned-off-by: A <a@b>\nupholds: dec-a",
        "x\n\nUpholds: dec-none, dec-a",
        "x (#12)\n\n* one\n\nUpholds: dec-a\n\n* two\n\n---------\n\nCo-authored-by: Bo <b@x>\n",
        "Squashed commit of the following:\n\ncommit 1\n\n    x\n\n    Upholds: dec-a\n",
    ],
)
def test_a_trailer_upholds(base: Sandbox, message: str) -> None:
    """In any commit of the range, next to other trailers and ids."""
    change(base, message)
    commit = base.git("rev-parse", "HEAD").strip()
    change(base, "later")
    ws = base.context()
    (memory,) = review(ws, "main..HEAD").files[0].memories
    assert (memory.state, memory.reason) == ("upheld", commit)
    assert bool(ws.notes) is ("dec-none" in message)
    number = " (#12)" if "(#12)" in message else ""
    row = f"  upheld by {commit[:7]}{number}  dec-a  Title of dec-a"
    assert row in render(review(ws, "main..HEAD"), PIPED).splitlines()


def test_a_trailer_outside_of_the_range_or_in_the_subject_does_not_count(
    base: Sandbox,
) -> None:
    """A trailer about another change does not apply to this one."""
    change(base, "before\n\nUpholds: dec-a")
    base.git("branch", "-f", "main")
    change(base, "Upholds: dec-a\n\n> Upholds: dec-a\n\nUpholds: dec-a, I think")
    assert states(review(base.context(), "main..HEAD")) == {"dec-a": "unmentioned"}


@pytest.mark.parametrize(
    ("fields", "body", "state"),
    [
        ({"supersedes": ("dec-a",)}, "x", "superseded"),
        ({"related_to": ("dec-a",)}, "x", "referenced"),
        ({"derived_from": ("dec-a",)}, "x", "referenced"),
        ({"source": ("memory:dec-a",)}, "x", "referenced"),
        ({}, "as [[dec-a]] says", "referenced"),
        ({}, "dec-a", "unmentioned"),
        ({"supersedes": ("dec-a",), "status": "deleted"}, "x", "unmentioned"),
    ],
)
def test_a_memory_that_the_change_adds_mentions_the_decision(
    base: Sandbox, fields: dict[str, tuple[str, ...]], body: str, state: str
) -> None:
    """It supersedes it, or refers to it by a key, a source or a link."""
    base.memory("dec-new", body + "\n", **fields)
    change(base)
    assert states(review(base.context(), "main..HEAD")) == {"dec-a": state}


def test_a_changed_status_is_a_mention(base: Sandbox) -> None:
    """Whoever archives a decision in the change has thought of it."""
    base.memory("dec-a", files=("src/*.py",), status="archived")
    change(base)
    (memory,) = review(base.context(), "main..HEAD").files[0].memories
    assert (memory.state, memory.reason) == ("referenced", "its status, archived")


def test_a_removed_decision_is_still_asked_for(base: Sandbox) -> None:
    """Deleting the file of a decision does not excuse a change from it."""
    (base.path / ".memory/decision/2026-02/dec-a.md").unlink()
    change(base)
    assert states(review(base.context(), "main..HEAD")) == {"dec-a": "unmentioned"}


def test_only_living_decisions_and_warnings_govern(base: Sandbox) -> None:
    """Superseded, expired, candidate and other memories have no say; those of main do."""
    base.git("checkout", "-q", "main")
    files = ("src",)
    base.memory("dec-old", files=files)
    base.memory("dec-newer", supersedes=("dec-old",))
    base.memory("dec-past", files=files, valid_through="2026-02-25")
    base.memory("dec-maybe", files=files, status="candidate")
    base.memory("sem-fact", files=files, type="semantic")
    base.memory("sem-warning", files=files, type="semantic", category="warning")
    base.commit()
    base.git("checkout", "-q", "side")
    change(base)
    base.memory("dec-own", files=files)
    base.commit()
    assert list(states(review(base.context(), "main..HEAD"))) == ["dec-a", "sem-warning"]


def test_renamed_and_removed_files_are_governed_by_their_old_names(base: Sandbox) -> None:
    """Moving a file out of reach does not free it."""
    base.git("mv", "src/a.py", "moved.py")
    base.commit()
    report = review(base.context(), "main..HEAD")
    assert [(file.path, file.old_path) for file in report.files] == [("moved.py", "src/a.py")]
    assert "moved.py (was src/a.py)" in render(report, PIPED).splitlines()
    base.git("rm", "-q", "moved.py")
    base.commit()
    assert [file.path for file in review(base.context(), "main..").files] == ["src/a.py"]


def test_what_happened_on_the_base_branch_is_not_the_change(base: Sandbox) -> None:
    """The range starts at the merge base, with two dots or three."""
    base.git("checkout", "-q", "main")
    change(base, "main")
    base.git("checkout", "-q", "side")
    base.write("docs/a.md", "more\n")
    base.commit()
    for range_ in ("main..side", "main...side", "main"):
        report = review(base.context(), range_)
        assert (report.touched, report.files) == (1, ())
    assert render(report, PIPED).endswith(": 1 file changed, governed by no decision or warning")


def test_the_policy_is_that_of_the_base(base: Sandbox) -> None:
    """A change cannot excuse itself, and what it sets holds for the next one."""
    change(base)
    base.write(".memory/config.toml", '[review]\npolicy = "fail"\n')
    base.commit()
    assert review(base.context(), "main..HEAD").policy == "warn"
    base.git("checkout", "-q", "-B", "main")
    base.git("checkout", "-q", "-b", "other")
    change(base, "other")
    base.write(".memory/config.toml", '[review]\npolicy = "warn"\n')
    base.commit()
    report = review(base.context(), "main..HEAD")
    assert (report.policy, report.exit_code) == ("fail", 1)
    assert base.run("review", "main..HEAD").returncode == 1
    change(base, "x\n\nUpholds: dec-a")
    assert review(base.context(), "main..HEAD").exit_code == 0


def test_a_bare_repository_can_be_asked(base: Sandbox) -> None:
    """A server has no worktree."""
    change(base)
    base.git("clone", "-q", "--bare", ".", "../bare.git")
    ws = Context.at(str(base.path.parent / "bare.git"), base.env)
    assert states(review(ws, "main..side")) == {"dec-a": "unmentioned"}


@pytest.mark.parametrize(
    ("range_", "message"),
    [
        ("main..nowhere", 'no revision "nowhere"'),
        ("--output=x..HEAD", 'no revision "--output=x"'),
        ("main..side..main", "no revision"),
        ("a\0b", "no revision"),
        ("main..lonely", "main and lonely have no commit in common"),
    ],
)
def test_a_range_that_is_none_is_refused(base: Sandbox, range_: str, message: str) -> None:
    """One sentence says which end is missing."""
    base.git("checkout", "-q", "--orphan", "lonely")
    base.commit()
    with pytest.raises(MemtoolError, match=message):
        review(base.context(), range_)


def test_before_the_first_commit_there_is_nothing_to_review(sandbox: Sandbox) -> None:
    """An empty repository has no HEAD."""
    with pytest.raises(MemtoolError, match='no revision "HEAD"'):
        review(sandbox.context(), "..")


def test_odd_names_are_told_as_they_are(base: Sandbox) -> None:
    """Names that no terminal likes are paths like others."""
    name = "src/a\nb\udcff.py"
    base.write(name, "x\n")
    base.commit()
    assert [file.path for file in review(base.context(), "main..HEAD").files] == [name]
    assert base.run("review", "main..HEAD", "--json").returncode == 0


def record(id: str = "dec-a", body: str = "It is so.\n", **fields: FieldValue) -> Record:
    return Record(make_memory(id, body, **fields), f".memory/decision/2026-02/{id}.md", "")


def how(decision: Record, *paths: str) -> str:
    return " ".join(rule.by for rule in find_rules([decision], {"key": paths})["key"])


@pytest.mark.parametrize(
    ("pattern", "path", "by"),
    [
        ("src/a.py", "src/a.py", "files"),
        ("src", "src/a/b.py", "files"),
        ("src/", "src/a/b.py", "files"),
        ("src", "srcs/a.py", ""),
        ("*.py", "a.py", "files"),
        ("*.py", "src/a.py", ""),
        ("**/*.py", "src/a.py", "files"),
        ("src/?.py", "src/a.py", "files"),
        ("app/[id]/page.tsx", "app/[id]/page.tsx", "files"),
        ("src/a.py", "src", ""),
    ],
)
def test_files_govern_as_globs_and_directories(pattern: str, path: str, by: str) -> None:
    """A name governs itself and all below it; stars and question marks are wildcards."""
    assert how(record(files=(pattern,)), path) == by


@pytest.mark.parametrize(
    ("source", "by"),
    [
        ("file:src/a.py", "source"),
        ("file:src/a.py#L3-L9@0123abcd", "source"),
        ("file:./src/../src/a.py", "source"),
        ("file:src/b.py", ""),
        ("url:src/a.py", ""),
    ],
)
def test_file_sources_govern(source: str, by: str) -> None:
    """A memory governs the files that it cites as sources."""
    assert how(record(source=(source,)), "src/a.py") == by


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("See [it](src/a.py).", "link"),
        ("See [it](/src/a.py#L3).", "link"),
        ("See [it](../../../src/a.py).", "link"),
        ("See [it][1].\n\n[1]: src/a.py", "link"),
        ("See [all](src/).", "link"),
        ("See [it](https://acme.dev/src/a.py).", ""),
        ("`[it](src/a.py)`", ""),
        ("See [it](../../../../src/a.py).", ""),
        ("See [me](#here) and [up](.).", ""),
        ("See [it](src/*.py).", ""),
    ],
)
def test_links_of_the_body_govern(text: str, by: str) -> None:
    """Links count from the top and from the memory's own place, and never outside."""
    assert how(record(body=text + "\n"), "src/a.py") == by


def test_a_memory_is_there_once_with_its_strongest_way() -> None:
    """Both paths of a renamed file count, and memories come in the order of their ids."""
    decision = record(
        "dec-b", "[a](src/a.py)\n", files=("src/*.py", "src"), source=("file:src/a.py",)
    )
    other = record("dec-a", files=("old.py",))
    rules = find_rules([decision, other], {"new": ("src/a.py", "old.py"), "none": ("x",)})
    assert [(rule.record.id, rule.by) for rule in rules["new"]] == [
        ("dec-a", "files"),
        ("dec-b", "files"),
    ]
    assert rules["none"] == ()


def test_the_first_changed_line_is_that_of_the_new_file(base: Sandbox) -> None:
    """An annotation is at a line of the change, also in a renamed file; 0 in a removed one."""
    base.write("src/b.py", "b = 1\n" * 9)
    base.write("src/c d\u00fc.py", "c = 1\n" * 9)
    base.commit()
    base.git("branch", "start")
    base.write("src/a.py", "a = 1\n" * 12 + "++ b/src/b.py\n@@ -1 +1 @@\n" + "a = 1\n" * 8)
    base.git("mv", "src/c d\u00fc.py", "src/d d\u00fc.py")
    base.write("src/d d\u00fc.py", "c = 1\n" * 8 + "d = 1\n")
    base.git("rm", "-q", "src/b.py")
    base.write("src/new.py", "new = 1\n")
    base.commit()
    report = review(base.context(), "start..HEAD")
    assert {file.path: file.line for file in report.files} == {
        "src/a.py": 13,
        "src/b.py": 0,
        "src/d d\u00fc.py": 9,
        "src/new.py": 1,
    }


def test_without_a_range_the_change_is_what_the_default_branch_lacks(base: Sandbox) -> None:
    """The default branch is the one that the remote names, whatever its name."""
    with pytest.raises(MemtoolError, match="needs a range"):
        review(base.context(), "")
    base.git("update-ref", "refs/remotes/origin/trunk", "main")
    base.git("update-ref", "refs/remotes/origin/main", "HEAD")
    base.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    change(base)
    report = review(base.context())
    assert report.old == base.git("rev-parse", "main").strip()
    assert states(report) == {"dec-a": "unmentioned"}


def test_a_format_has_what_is_not_mentioned_and_what_is_broken(base: Sandbox) -> None:
    """Open findings come first; in annotations those that the change answers are left out."""
    base.write("src/gone.py", "def release():\n    return 1\n")
    base.memory("dec-b", files=("src/a.py",))
    base.memory("dec-c", source=("file:src/gone.py",), files=("src/gone.py",))
    base.commit()
    base.git("branch", "-f", "main")
    base.git("rm", "-q", "src/gone.py")
    change(base, "Change\n\nUpholds: dec-b\nUpholds: dec-c")
    text = base.run("review", "main..HEAD", "--format", "markdown").stdout
    items = [line.strip() for line in text.split("\n") if line.startswith("- ")]
    assert [item.partition("`")[0].strip() for item in items] == [
        "- **breaks it:**",
        "- **not mentioned**:",
        "- **upheld by**",
        "- **upheld by**",
    ]
    assert "`dec-a` `Title of dec-a`" in text
    assert text.startswith("<!-- memtool review -->\n### Decisions that govern this change\n")
    rows = base.run("review", "main..HEAD", "--format", "github").stdout.splitlines()
    assert len(rows) == 4
    assert rows[1].startswith("::warning file=src/a.py,line=21,title=not mentioned::Title of dec-a")
    assert "dec-b" not in "".join(rows)


def test_a_policy_of_failing_makes_an_annotation_an_error(base: Sandbox) -> None:
    """The level is that of the exit code."""
    base.write(".memory/config.toml", '[review]\npolicy = "fail"\n')
    base.commit()
    base.git("branch", "-f", "main")
    change(base)
    done = base.run("review", "main..HEAD", "--format", "github")
    assert done.returncode == 1
    assert done.stdout.startswith("::error file=src/a.py,line=21,")
