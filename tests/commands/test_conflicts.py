from __future__ import annotations

import pytest
from conftest import PIPED, Sandbox

from memtool.commands.conflicts import conflicts, render
from memtool.errors import MemtoolError
from memtool.memory.trust import SHORT_ID_DIGITS

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
    """With an id, source, author, day, commit, confidence and trust are next to each other."""
    report = conflicts(filled.context(), "dec-a")
    assert report.exit_code == 1
    (conflict,) = report.conflicts
    assert [side.author for side in conflict.sides] == ["Ada", "Ada"]
    rows = [" ".join(row.split()) for row in render(report, PIPED).splitlines()]
    commit = filled.git("rev-parse", "HEAD").strip()[:SHORT_ID_DIGITS]
    assert rows == [
        (
            '1. They say the opposite: "Use Celery for background jobs" against '
            '"Do not use Celery for background jobs"'
        ),
        "dec-b dec-a",
        "title Do not use Celery Use Celery for jobs",
        "source human:Ada human:Ada",
        "author Ada Ada",
        "written 2026-02-22 2026-02-22",
        f"commit {commit} 2026-02-01 {commit} 2026-02-01",
        "confidence medium medium",
        "trust committed committed",
        "memtool resolve dec-b dec-a --keep newer --reason TEXT",
        "1 conflict, the newer side first. Or --keep ID, --keep both, --merge TITLE",
    ]


def test_a_conflict_is_a_line_per_side_and_the_next_command(sandbox: Sandbox):
    """Without an id: what is wrong, the newest side first, and a command to copy."""
    sandbox.memory("dec-old", "Old.\n", title="Old words")
    for number, name in enumerate(("dec-b", "dec-c", "dec-a"), 1):
        sandbox.memory(
            name,
            f"Words of {name}.\n",
            title=f"Title {number}",
            supersedes=("dec-old",),
            timestamp=f"2026-02-0{number}T00:00:00Z",
        )
    sandbox.commit()
    assert render(conflicts(sandbox.context()), sandbox.layout()).splitlines() == [
        "1. All supersede dec-old (Old words)",
        "  dec-a  Title 3  Ada  2026-02-03",
        "  dec-c  Title 2  Ada  2026-02-02",
        "  dec-b  Title 1  Ada  2026-02-01",
        "  memtool resolve dec-a dec-c dec-b --keep newer --reason TEXT",
        "1 conflict, the newer side first. Or --keep ID, --keep both, --merge TITLE",
    ]


def test_json_has_kind_ids_reason_and_accepted(filled: Sandbox):
    """The shape that programs rely on."""
    answer = filled.json("conflicts")
    assert (answer["total"], answer["kinds"], answer["memories"]) == (1, {"opposition": 1}, 2)
    (conflict,) = answer["conflicts"]
    assert (conflict["kind"], conflict["ids"], conflict["accepted"]) == (
        "opposition",
        ["dec-a", "dec-b"],
        False,
    )
    assert conflict["sides"][1]["path"] == ".memory/decision/2026-02/dec-b.md"
    assert filled.run("conflicts").returncode == 1


def test_accepted_conflicts_are_shown_only_when_asked_for(filled: Sandbox):
    """They are settled, and the exit code is 0."""
    filled.memory("dec-b", **NO, conflicts_accepted=("dec-a",))
    assert conflicts(filled.context()).conflicts == ()
    layout = filled.layout()
    assert render(conflicts(filled.context()), layout) == ""
    assert layout.reports == ["no open conflict"]
    shown = conflicts(filled.context(), all=True)
    assert [conflict.accepted for conflict in shown.conflicts] == [True]
    assert shown.exit_code == 0
    assert "1. They say the opposite, accepted\n" in render(shown, PIPED)
    assert "memtool resolve" not in render(shown, PIPED)


def test_ids_choose_and_unknown_ones_are_told(filled: Sandbox):
    """Only the conflicts of these memories."""
    filled.memory("dec-c", "Quite another thing.\n")
    assert len(conflicts(filled.context(), "dec-b").conflicts) == 1
    assert conflicts(filled.context(), "dec-c").conflicts == ()
    with pytest.raises(MemtoolError, match="no memory is called"):
        conflicts(filled.context(), "dec-unknown")


def test_a_revision_is_looked_at_as_it_was(filled: Sandbox):
    """A conflict that was settled later was open then."""
    first = filled.git("rev-parse", "HEAD").strip()
    filled.memory("dec-b", **NO, status="archived")
    assert conflicts(filled.context()).conflicts == ()
    assert len(conflicts(filled.context(), at=first).conflicts) == 1
    with pytest.raises(MemtoolError, match="no revision"):
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
        report = conflicts(filled.context(), since="ORIG_HEAD", at=at)
        assert [(conflict.kind, conflict.ids) for conflict in report.conflicts] == [
            ("fork", ("dec-ours", "dec-theirs")),
            ("duplicate", ("dec-same-1", "dec-same-2")),
        ]
    assert filled.run("conflicts", "--since", "ORIG_HEAD").returncode == 1
    none = conflicts(filled.context(), since="HEAD")
    assert (none.conflicts, none.exit_code) == ((), 0)
    layout = filled.layout()
    assert render(none, layout) == ""
    assert layout.reports == [f"no new conflict since {none.since[:SHORT_ID_DIGITS]}"]


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
        counts.append(sum(len(conflict.ids) for conflict in mine))
    assert counts == [0, 2, 2, 3, 0, 2, 0]


def ports(sandbox: Sandbox, *numbers: int, what: str = "Redis") -> list[str]:
    ids = []
    for day, number in enumerate(numbers, 1):
        id_ = f"sem-{what.lower()}-{number}"
        text = f"{what} listens on port {number}"
        moment = f"2026-02-{day:02}T00:00:00Z"
        sandbox.memory(id_, f"{text}.\n", title=text, type="semantic", timestamp=moment)
        ids.append(id_)
    return ids


def test_all_about_one_thing_are_one_conflict(sandbox: Sandbox) -> None:
    """What differs comes first, the newest first; with an id four are below each other."""
    ids = ports(sandbox, 6379, 6380, 6381, 6382)
    ports(sandbox, 5432, 5433, what="Postgres")
    report = conflicts(sandbox.context())
    assert [
        (conflict.kind, conflict.differs, len(conflict.ids)) for conflict in report.conflicts
    ] == [
        ("values", "5432 against 5433", 2),
        ("values", "6379 against 6380 against 6381 against 6382", 4),
    ]
    assert report.conflicts[1].ids == tuple(ids)
    assert report.conflicts[1].values == ("6379", "6380", "6381", "6382")
    rows = [" ".join(row.split()) for row in render(report, PIPED).splitlines()]
    assert rows[0] == "1. 5433 against 5432"
    assert rows[4] == "2. 6382 against 6381 against 6380 against 6379"
    assert rows[-1].startswith("2 conflicts, the newer side first.")
    text = render(conflicts(sandbox.context(), ids[0]), PIPED)
    rows = [" ".join(row.split()) for row in text.splitlines()]
    assert rows[0] == "1. 6382 against 6381 against 6380 against 6379"
    assert rows[1] == "value title source author written commit confidence trust"
    assert rows[2].startswith("sem-redis-6382 6382 Redis listens on port 6382 human:Ada")


def test_a_limit_shows_the_first_and_counts_all(sandbox: Sandbox) -> None:
    """The exit code is that of all of them."""
    for what in ("Redis", "Postgres", "Nginx"):
        ports(sandbox, 1001, 1002, what=what)
    done = sandbox.run("conflicts", "--limit", "1")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == (
        "3 conflicts, the newer side first. Or --keep ID, --keep both, --merge TITLE"
        " (2 not shown; --limit 0 shows all)"
    )
    assert len(sandbox.json("conflicts", "--limit", "0")["conflicts"]) == 3
    answer = sandbox.json("conflicts", "--limit", "2")
    assert (len(answer["conflicts"]), answer["total"], answer["memories"]) == (2, 3, 6)


def test_two_things_that_share_a_memory_are_two_conflicts(sandbox: Sandbox) -> None:
    """A memory that states two things contradicts one memory in each."""
    sandbox.memory(
        "dec-both",
        "Never cache the pages.\n",
        title="Always use the session store",
        type="decision",
    )
    sandbox.memory("dec-cache", "Always cache the pages.\n", title="Pages")
    sandbox.memory("dec-store", "Never use the session store.\n", title="Sessions")
    report = conflicts(sandbox.context())
    assert [conflict.ids for conflict in report.conflicts] == [
        ("dec-both", "dec-cache"),
        ("dec-both", "dec-store"),
    ]


def test_values_are_shown_as_they_are_spelled(sandbox: Sandbox) -> None:
    """With their units, as settings, and as paths."""
    for number, (first, other, shown) in enumerate(
        [
            ("The cache timeout is 30 s.", "The cache timeout is 2 min.", "30 s against 2 min"),
            ("pool.max_size = 10", "pool.max_size = 20", "10 against 20"),
            (
                "Logs are in var/log/app.",
                "Logs are in srv/log/app.",
                "var/log/app against srv/log/app",
            ),
        ]
    ):
        for side, text in (("a", first), ("b", other)):
            sandbox.memory(
                f"sem-{number}{side}",
                f"{text}\n",
                title=f"T{number}",
                type="semantic",
                tags=(f"n{number}",),
            )
        rows = conflicts(sandbox.context(), f"sem-{number}a").conflicts
        assert [conflict.differs for conflict in rows] == [shown]
