from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.authoring.resolve import Settled
from memtool.commands.conflicts import conflicts
from memtool.commands.resolve import Resolved, render, resolve
from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.memory.memory import Memory

YES = {"title": "Use Celery for jobs", "body": "Use Celery for background jobs.\n"}
NO = {"title": "Do not use Celery", "body": "Do not use Celery for background jobs.\n"}


@pytest.fixture
def filled(sandbox: Sandbox) -> Sandbox:
    """Two committed memories that contradict each other; the second one is newer."""
    sandbox.memory("dec-a", **YES, tags=("jobs",), files=("a.py",), source=("human:Eve",))
    sandbox.memory("dec-b", **NO, timestamp="2026-02-23T00:00:00Z", status="pinned")
    sandbox.commit()
    return sandbox


def settled(sandbox: Sandbox, *ids: str, **options: object) -> Settled:
    (one,) = resolve(sandbox.context(), *ids, **{"why": "it lost tasks"} | options).resolved  # type: ignore[arg-type]
    return one


def written(sandbox: Sandbox, path: str) -> Memory:
    return document.read((sandbox.path / path).read_bytes(), path)


def open_conflicts(sandbox: Sandbox) -> int:
    return len(conflicts(sandbox.context()).conflicts)


def test_keeping_one_side_says_it_again_and_replaces_both(filled: Sandbox):
    """The new memory has the winner's words and keys, and the reason; the old files stay."""
    before = filled.git("ls-files", "-s", ".memory")
    one = settled(filled, "dec-a", "dec-b", keep="dec-a")
    memory = written(filled, one.path)
    assert memory.body == YES["body"] + "\n## Rationale\n\nit lost tasks\n"
    assert memory.supersedes == ("dec-a", "dec-b")
    assert memory.items("source") == ("human:Eve", "human:Ada")
    assert (memory.title, memory.items("tags"), memory.items("files"), memory.status) == (
        YES["title"], ("jobs",), ("a.py",), "confirmed",
    )  # fmt: skip
    assert memory.text("timestamp") == "2026-03-01T12:00:00Z"
    assert open_conflicts(filled) == 0
    filled.git("add", "--all")
    assert before in filled.git("ls-files", "-s", ".memory")


def test_newer_is_the_one_written_last_and_stays_pinned(filled: Sandbox):
    """What the winner was, the new memory is."""
    one = settled(filled, "dec-b", "dec-a", keep="newer")
    assert one.kept == "dec-b"
    memory = written(filled, one.path)
    assert (memory.title, memory.status) == (NO["title"], "pinned")


def test_a_commit_has_trailers_with_the_reason(filled: Sandbox):
    """One commit, with who was replaced and why."""
    one = settled(filled, "dec-a", "dec-b", keep="newer", commit=True)
    assert one.commit == filled.git("rev-parse", "HEAD").strip()
    assert filled.git("log", "-1", "--format=%(trailers:unfold)").splitlines()[:3] == [
        f"Memory-Id: {one.id}", "Supersedes: dec-a, dec-b",
        "Reason: it lost tasks",
    ]  # fmt: skip
    assert filled.git("status", "--porcelain") == ""


def test_keeping_both_is_noted_on_both_sides_in_one_commit(filled: Sandbox):
    """Nothing is superseded, and the conflict is no longer open."""
    one = settled(filled, "dec-a", "dec-b", keep="both", commit=True)
    assert (one.id, one.kept, len(one.paths)) == ("", "both", 2)
    assert written(filled, one.paths[0]).items("conflicts_accepted") == ("dec-b",)
    assert written(filled, one.paths[1]).items("conflicts_accepted") == ("dec-a",)
    assert open_conflicts(filled) == 0
    assert filled.git("log", "-1", "--format=%(trailers)").strip() == (
        "Memory-Id: dec-a, dec-b\nReason: it lost tasks"
    )
    assert filled.git("status", "--porcelain") == ""
    again = settled(filled, "dec-a", "dec-b", keep="both", commit=True)
    assert (again.commit, again.paths) == (None, ())


def test_a_merge_has_a_text_of_its_own(filled: Sandbox):
    """It is found by what either side was found by."""
    one = settled(filled, "dec-a", "dec-b", merge="Celery for mail only", body="Mail alone.")
    memory = written(filled, one.path)
    assert (memory.title, memory.body) == ("Celery for mail only", "Mail alone.\n")
    assert memory.supersedes == ("dec-a", "dec-b")
    assert memory.items("tags") == ("jobs",)
    assert memory.items("source") == ("human:Eve", "human:Ada")
    assert memory.status == "pinned"
    assert open_conflicts(filled) == 0


def test_a_fork_of_three_heads_is_joined(sandbox: Sandbox):
    """One new head takes the place of all."""
    sandbox.memory("dec-old", "Old words.\n")
    for name in ("x", "y", "z"):
        sandbox.memory(f"dec-{name}", f"Text of {name * 3}.\n", supersedes=("dec-old",))
    assert open_conflicts(sandbox) == 1
    settled(sandbox, "dec-x", "dec-y", "dec-z", keep="dec-y")
    assert open_conflicts(sandbox) == 0
    tree = sandbox.context().tree()
    assert len([r for r in tree.records if tree.lineage.is_head(r.id)]) == 1


def test_all_conflicts_are_settled_one_after_the_other(filled: Sandbox):
    """A memory in two conflicts loses once; what was kept goes on as it stands then."""
    filled.memory("dec-c", "Do not use Celery for background jobs, ever again.\n",
                  title="No Celery any more", timestamp="2026-02-24T00:00:00Z")  # fmt: skip
    filled.memory("dec-old", "Old words.\n")
    filled.memory("dec-x", "Text of xxx.\n", supersedes=("dec-old",))
    filled.memory("dec-y", "Text of yyy.\n", supersedes=("dec-old",))
    filled.commit()
    assert open_conflicts(filled) == 3
    done = resolve(filled.context(), all=True, keep="newer", why="the later one", commit=True)
    assert [one.kept for one in done.resolved] == ["dec-y", "dec-b"]
    assert open_conflicts(filled) == 0
    assert filled.git("log", "--format=%s", "-2").splitlines() == [
        "memory: supersede Do not use Celery", "memory: supersede Title of dec-y",
    ]  # fmt: skip
    again = resolve(filled.context(), all=True, keep="newer", why="the later one")
    assert (again.resolved, render(again)) == ((), "no open conflict")


def test_all_conflicts_may_be_accepted(filled: Sandbox):
    """Each is noted, none is superseded."""
    done = resolve(filled.context(), all=True, keep="both", why="both hold")
    assert [one.kept for one in done.resolved] == ["both"]
    assert open_conflicts(filled) == 0


@pytest.mark.parametrize(
    "options",
    [
        {"keep": "newer"}, {"keep": "both"}, {"merge": "M", "body": "B"},
        {"keep": "newer", "all": True}, {"keep": "both", "all": True},
    ],
)  # fmt: skip
def test_a_dry_run_writes_nothing(filled: Sandbox, options: dict):
    """It says what would be done."""
    ids = () if "all" in options else ("dec-a", "dec-b")
    one = settled(filled, *ids, **options, dry_run=True, commit=True)
    assert filled.git("status", "--porcelain") == ""
    assert (one.dry_run, one.commit, one.paths) == (True, None, ())
    assert "would" in render(Resolved((one,))) or "merge" in options


@pytest.mark.parametrize(
    ("ids", "options", "message"),
    [
        (("dec-a", "dec-b"), {}, "say what holds: --keep or --merge"),
        (("dec-a", "dec-b"), {"keep": "both", "merge": "M"}, "exclude each other"),
        (("dec-a", "dec-b"), {"keep": "newer", "why": " "}, "needs a reason"),
        (("dec-a", "dec-b"), {"keep": "newer", "why": "\x1b[31m"}, "hidden characters"),
        (("dec-a", "dec-b"), {"keep": "newer", "body": "x"}, "--body is the text of --merge"),
        (("dec-a", "dec-b"), {"merge": "M"}, "needs a text"),
        (("dec-a", "dec-b"), {"keep": "dec-c"}, "dec-c is not one of dec-a, dec-b"),
        (("dec-a", "dec-b"), {"keep": "nobody"}, "no memory has the id 'nobody'"),
        (("dec-a",), {"keep": "newer"}, "two sides or more"),
        (("dec-a", "dec-a"), {"keep": "newer"}, "two sides or more"),
        ((), {"keep": "newer"}, "two sides or more"),
        (("dec-a", "dec-b"), {"keep": "newer", "all": True}, "takes no ids"),
        ((), {"keep": "dec-a", "all": True}, "takes no ids"),
        (("dec-a", "../../x"), {"keep": "newer"}, "no memory has the id"),
        (("dec-a", "dec-gone"), {"keep": "newer"}, "dec-gone is deleted"),
        (("dec-a", "dec-past"), {"keep": "newer"}, "superseded already, by dec-c"),
        ((), {"keep_both": True, "keep": "newer"}, "--keep-both stands alone"),
        ((), {"keep_both": True}, "no id was made twice"),
    ],
)  # fmt: skip
def test_what_is_unclear_is_refused(
    filled: Sandbox, ids: tuple[str, ...], options: dict, message: str
):
    """Nothing is written, and the message says what was expected."""
    filled.memory("dec-past", "Long ago.\n")
    filled.memory("dec-c", "Quite another thing.\n", supersedes=("dec-past",))
    filled.memory("dec-gone", "Gone.\n", status="deleted", deleted={"at": "2026-02-23T00:00:00Z"})
    filled.commit()
    with pytest.raises(MemtoolError) as caught:
        resolve(filled.context(), *ids, **{"why": "so"} | options)
    assert message in caught.value.message
    assert caught.value.hint
    assert filled.git("status", "--porcelain") == ""


def test_the_command_line_prints_the_path_last(filled: Sandbox):
    """As with every verb that writes a memory."""
    done = filled.run("resolve", "dec-a", "dec-b", "--keep", "dec-b", "--why", "so")
    lines = done.stdout.splitlines()
    assert lines[0] == "dec-a and dec-b: what dec-b says holds, in"
    assert (filled.path / lines[-1]).is_file()
    answer = filled.json("resolve", "--all", "--keep", "newer", "--why", "so")
    assert answer == {"resolved": []}
