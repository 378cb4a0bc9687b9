from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.commands.conflicts import conflicts, render
from memtool.errors import MemtoolError

YES = {"title": "Use Celery for jobs", "body": "Use Celery for background jobs.\n"}
NO = {"title": "Do not use Celery", "body": "Do not use Celery for background jobs.\n"}


@pytest.fixture
def filled(sandbox: Sandbox) -> Sandbox:
    """One committed contradiction."""
    sandbox.memory("dec-a", **YES)
    sandbox.memory("dec-b", **NO)
    sandbox.commit()
    return sandbox


def test_both_sides_are_shown_with_what_speaks_for_them(filled: Sandbox):
    """Source, author, day, commit, confidence and trust stand next to each other."""
    found = conflicts(filled.context())
    assert found.exit_code == 1
    (conflict,) = found.conflicts
    assert [side.author for side in conflict.sides] == ["Ada", "Ada"]
    rows = [" ".join(row.split()) for row in render(found).splitlines()]
    commit = filled.git("rev-parse", "HEAD").strip()[:10]
    assert rows == [
        (
            'opposition: "Use Celery for background jobs" against '
            '"Do not use Celery for background jobs"'
        ),
        "dec-a dec-b",
        "title Use Celery for jobs Do not use Celery",
        "source human:Ada human:Ada",
        "author Ada Ada",
        "written 2026-02-22 2026-02-22",
        f"commit {commit} 2026-02-01 {commit} 2026-02-01",
        "confidence medium medium",
        "trust committed committed",
        "hint: memtool resolve dec-a dec-b --keep newer --why REASON",
    ]


def test_json_has_kind_ids_reason_and_accepted(filled: Sandbox):
    """The shape that programs rely on."""
    answer = filled.json("conflicts")
    assert set(answer) == {"conflicts"}
    (conflict,) = answer["conflicts"]
    assert (conflict["kind"], conflict["ids"], conflict["accepted"]) == (
        "opposition", ["dec-a", "dec-b"], False,
    )  # fmt: skip
    assert conflict["sides"][1]["path"] == ".memory/decision/2026-02/dec-b.md"
    assert filled.run("conflicts").returncode == 1


def test_accepted_conflicts_are_shown_only_when_asked_for(filled: Sandbox):
    """They are settled, and the exit code is 0."""
    filled.memory("dec-b", **NO, conflicts_accepted=("dec-a",))
    assert conflicts(filled.context()).conflicts == ()
    assert render(conflicts(filled.context())) == "no open conflict"
    shown = conflicts(filled.context(), all=True)
    assert [one.accepted for one in shown.conflicts] == [True]
    assert shown.exit_code == 0
    assert "opposition, accepted:" in render(shown)
    assert "hint" not in render(shown)


def test_ids_choose_and_unknown_ones_are_told(filled: Sandbox):
    """Only the conflicts of these memories."""
    filled.memory("dec-c", "Quite another thing.\n")
    assert len(conflicts(filled.context(), "dec-b").conflicts) == 1
    assert conflicts(filled.context(), "dec-c").conflicts == ()
    with pytest.raises(MemtoolError, match="no memory has the id"):
        conflicts(filled.context(), "dec-unknown")


def test_a_revision_is_looked_at_as_it_was(filled: Sandbox):
    """What was settled since was open then."""
    first = filled.git("rev-parse", "HEAD").strip()
    filled.memory("dec-b", **NO, status="archived")
    assert conflicts(filled.context()).conflicts == ()
    assert len(conflicts(filled.context(), at=first).conflicts) == 1
    with pytest.raises(MemtoolError, match="there is no revision"):
        conflicts(filled.context(), since="nowhere")


def test_a_merge_tells_only_what_it_brought(filled: Sandbox):
    """Forks and doubles that neither branch had alone; nothing that was known before."""
    filled.memory("dec-old", "Old words of long ago.\n")
    filled.commit()
    filled.git("checkout", "--quiet", "-b", "side")
    filled.memory("dec-theirs", "Words of theirs.\n", supersedes=("dec-old",))
    filled.memory(
        "dec-same-2", "Cookies hold nothing but a name, and last a day.\n", title="Cookies"
    )
    filled.commit()
    filled.git("checkout", "--quiet", "main")
    filled.memory("dec-ours", "Ours is different.\n", supersedes=("dec-old",))
    filled.memory(
        "dec-same-1", "Cookies hold nothing but a name, and last a day.\n", title="Cookies"
    )
    filled.commit()
    filled.git("merge", "--quiet", "--no-edit", "side")
    for at in (None, "HEAD"):
        found = conflicts(filled.context(), since="ORIG_HEAD", at=at)
        assert [(one.kind, one.ids) for one in found.conflicts] == [
            ("fork", ("dec-ours", "dec-theirs")),
            ("duplicate", ("dec-same-1", "dec-same-2")),
        ]
    assert filled.run("conflicts", "--since", "ORIG_HEAD").returncode == 1
    none = conflicts(filled.context(), since="HEAD")
    assert (none.conflicts, none.exit_code) == ((), 0)
    assert render(none) == f"no new conflict since {none.since[:10]}"


def test_an_empty_repository_has_no_conflict(sandbox: Sandbox):
    """Nothing contradicts nothing."""
    assert conflicts(sandbox.context()).conflicts == ()


def test_a_broken_file_hides_no_conflict(filled: Sandbox):
    """It is told on stderr, and the others are compared."""
    filled.write(".memory/decision/dec-c.md", b"\xff\xfe")
    done = filled.run("conflicts")
    assert done.returncode == 1
    assert "1 file is not a memory" in done.stderr


def test_conflicts_that_were_found_before_are_those_of_looking_anew(sandbox: Sandbox) -> None:
    """Whatever comes, changes or goes between two runs, nothing stale is told."""
    use, avoid = "Always use the session cache.\n", "Never use the session cache.\n"
    steps = (
        [("dec-a", use), ("dec-b", "It is so.\n")],
        [("dec-b", avoid)],
        [],
        [("dec-c", avoid)],
        [("dec-a", None)],
        [("dec-d", use), ("dec-b", None)],
        [("dec-c", "It is so.\n")],
    )
    counts = []
    for step in steps:
        for name, body in step:
            path = sandbox.path / sandbox.memory(name, body or "It is so.\n")
            if body is None:
                path.unlink()
        mine = conflicts(sandbox.context()).conflicts
        assert mine == conflicts(sandbox.context()).conflicts
        assert mine == conflicts(sandbox.context(MEMTOOL_NO_CACHE="1")).conflicts
        counts.append(len(mine))
    assert counts == [0, 1, 1, 2, 0, 1, 0]
