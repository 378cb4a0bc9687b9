from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.authoring.resolve import Settlement
from memtool.commands.conflicts import conflicts
from memtool.commands.resolve import ResolveResult, render, resolve
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


def settled(sandbox: Sandbox, *ids: str, **options: object) -> Settlement:
    (resolution,) = resolve(
        sandbox.context(), *ids, **{"reason": "it lost tasks"} | options
    ).resolved  # type: ignore[arg-type]
    return resolution


def written(sandbox: Sandbox, path: str) -> Memory:
    return document.read((sandbox.path / path).read_bytes(), path)


def open_conflicts(sandbox: Sandbox) -> int:
    return len(conflicts(sandbox.context()).conflicts)


def test_keeping_one_side_says_it_again_and_replaces_both(filled: Sandbox):
    """The new memory has the winner's words and keys, and the reason; the old files stay."""
    before = filled.git("ls-files", "-s", ".memory")
    resolution = settled(filled, "dec-a", "dec-b", keep="dec-a")
    memory = written(filled, resolution.path)
    assert memory.body == YES["body"] + "\n## Rationale\n\nit lost tasks\n"
    assert memory.supersedes == ("dec-a", "dec-b")
    assert memory.items("source") == ("human:Eve", "human:Ada")
    assert (memory.title, memory.items("tags"), memory.items("files"), memory.status) == (
        YES["title"],
        ("jobs",),
        ("a.py",),
        "confirmed",
    )
    assert memory.text("timestamp") == "2026-03-01T12:00:00Z"
    assert open_conflicts(filled) == 0
    filled.git("add", "--all")
    assert before in filled.git("ls-files", "-s", ".memory")


def test_newer_is_the_one_written_last_and_stays_pinned(filled: Sandbox):
    """The new memory has the status of the winner."""
    resolution = settled(filled, "dec-b", "dec-a", keep="newer")
    assert resolution.kept_id == "dec-b"
    memory = written(filled, resolution.path)
    assert (memory.title, memory.status) == (NO["title"], "pinned")


def test_a_commit_has_trailers_with_the_reason(filled: Sandbox):
    """One commit, with who was replaced and why."""
    resolution = settled(filled, "dec-a", "dec-b", keep="newer", commit=True)
    assert resolution.commit == filled.git("rev-parse", "HEAD").strip()
    assert filled.git("log", "-1", "--format=%(trailers:unfold)").splitlines()[:3] == [
        f"Memory-Id: {resolution.id}",
        "Supersedes: dec-a, dec-b",
        "Reason: it lost tasks",
    ]
    assert filled.git("status", "--porcelain") == ""


def test_keeping_both_is_noted_on_both_sides_in_one_commit(filled: Sandbox):
    """Neither is superseded, and the conflict is settled."""
    resolution = settled(filled, "dec-a", "dec-b", keep="both", commit=True)
    assert (resolution.id, resolution.kept_id, len(resolution.paths)) == ("", "both", 2)
    assert written(filled, resolution.paths[0]).items("conflicts_accepted") == ("dec-b",)
    assert written(filled, resolution.paths[1]).items("conflicts_accepted") == ("dec-a",)
    assert open_conflicts(filled) == 0
    assert filled.git("log", "-1", "--format=%(trailers)").strip() == (
        "Memory-Id: dec-a, dec-b\nReason: it lost tasks"
    )
    assert filled.git("status", "--porcelain") == ""
    again = settled(filled, "dec-a", "dec-b", keep="both", commit=True)
    assert (again.commit, again.paths) == (None, ())


def test_a_merge_has_a_text_of_its_own(filled: Sandbox):
    """It is found by what either side was found by."""
    resolution = settled(filled, "dec-a", "dec-b", merge="Celery for mail only", body="Mail alone.")
    memory = written(filled, resolution.path)
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
    """Each cluster gives one memory with the newest text, which replaces all of it."""
    filled.memory(
        "dec-c",
        "Do not use Celery for background jobs, ever again.\n",
        title="No Celery any more",
        timestamp="2026-02-24T00:00:00Z",
    )
    filled.memory("dec-old", "Old words.\n")
    filled.memory("dec-x", "Text of xxx.\n", supersedes=("dec-old",))
    filled.memory("dec-y", "Text of yyy.\n", supersedes=("dec-old",))
    filled.commit()
    assert open_conflicts(filled) == 2
    done = resolve(filled.context(), all=True, keep="newer", reason="the later one", commit=True)
    assert [resolution.kept_id for resolution in done.resolved] == ["dec-y", "dec-c"]
    assert written(filled, done.resolved[1].path).supersedes == ("dec-a", "dec-b", "dec-c")
    assert written(filled, done.resolved[1].path).status == "pinned"  # as dec-b, which agrees
    assert open_conflicts(filled) == 0
    assert filled.git("log", "--format=%s", "-2").splitlines() == [
        "memory: supersede No Celery any more",
        "memory: supersede Title of dec-y",
    ]
    again = resolve(filled.context(), all=True, keep="newer", reason="the later one")
    layout = filled.layout()
    assert (again.resolved, render(again, layout)) == ((), "")
    assert layout.reports == ["no open conflict"]


def test_all_conflicts_may_be_accepted(filled: Sandbox):
    """Each is noted, none is superseded."""
    done = resolve(filled.context(), all=True, keep="both", reason="both hold")
    assert [resolution.kept_id for resolution in done.resolved] == ["both"]
    assert open_conflicts(filled) == 0


@pytest.mark.parametrize(
    "options",
    [
        {"keep": "newer"},
        {"keep": "both"},
        {"merge": "M", "body": "B"},
        {"keep": "newer", "all": True},
        {"keep": "both", "all": True},
    ],
)
def test_a_dry_run_writes_nothing(filled: Sandbox, options: dict):
    """It says what would be done."""
    ids = () if "all" in options else ("dec-a", "dec-b")
    resolution = settled(filled, *ids, **options, dry_run=True, commit=True)
    assert filled.git("status", "--porcelain") == ""
    assert (resolution.dry_run, resolution.commit, resolution.paths) == (True, None, ())
    layout = filled.layout()
    render(ResolveResult((resolution,)), layout)
    assert layout.reports[0].startswith("Would settle dec-")
    assert "committed" not in "".join(layout.reports)


@pytest.mark.parametrize(
    ("ids", "options", "message"),
    [
        (("dec-a", "dec-b"), {}, "add --keep or --merge"),
        (("dec-a", "dec-b"), {"keep": "both", "merge": "M"}, "exclude each other"),
        (("dec-a", "dec-b"), {"keep": "newer", "reason": " "}, "the reason is missing"),
        (("dec-a", "dec-b"), {"keep": "newer", "reason": "\x1b[31m"}, "invisible characters"),
        (("dec-a", "dec-b"), {"keep": "newer", "body": "x"}, "--body needs --merge"),
        (("dec-a", "dec-b"), {"merge": "M"}, "text of the new memory is missing"),
        (("dec-a", "dec-b"), {"keep": "dec-c"}, "dec-c is not one of dec-a, dec-b"),
        (("dec-a", "dec-b"), {"keep": "nobody"}, 'no memory is called "nobody"'),
        (("dec-a",), {"keep": "newer"}, "name both sides"),
        (("dec-a", "dec-a"), {"keep": "newer"}, "name both sides"),
        ((), {"keep": "newer"}, "name both sides"),
        ((), {"keep": "dec-a", "all": True}, "--all resolves every conflict in the same way"),
        (("dec-a", "../../x"), {"keep": "newer"}, "no memory is called"),
        (("dec-a", "dec-gone"), {"keep": "newer"}, "(dec-gone) is deleted"),
        (("dec-a", "dec-past"), {"keep": "newer"}, "is superseded by:\n  dec-c"),
        ((), {"keep": "both", "reason": ""}, "no id has two files"),
        (("dec-a",), {"keep": "both"}, "name both sides"),
        (("dec-a", "dec-b"), {"keep": "both", "reason": ""}, "the reason is missing"),
    ],
)
def test_what_is_unclear_is_refused(
    filled: Sandbox, ids: tuple[str, ...], options: dict, message: str
):
    """Nothing is written, and the message says what was expected."""
    filled.memory("dec-past", "Long ago.\n")
    filled.memory("dec-c", "Quite another thing.\n", supersedes=("dec-past",))
    filled.memory("dec-gone", "Gone.\n", status="deleted", deleted={"at": "2026-02-23T00:00:00Z"})
    filled.commit()
    with pytest.raises(MemtoolError) as caught:
        resolve(filled.context(), *ids, **{"reason": "so"} | options)
    assert message in caught.value.message
    assert caught.value.hint
    assert filled.git("status", "--porcelain") == ""


def test_the_command_line_prints_the_path_alone(filled: Sandbox):
    """As every verb that writes a memory; the receipt is on stderr, and says where it is."""
    done = filled.run("resolve", "dec-a", "dec-b", "--keep", "dec-b", "--reason", "so")
    (path,) = done.stdout.splitlines()
    assert (filled.path / path).is_file()
    new = filled.layout().short(Path(path).stem)
    assert done.stderr == (
        f"Settled dec-a and dec-b by {new}  Do not use Celery\n"
        "  the text of dec-b holds; not committed (--commit does it)\n"
    )
    answer = filled.json("resolve", "--all", "--keep", "newer", "--reason", "so")
    assert answer == {"resolved": []}


def cluster(sandbox: Sandbox, *numbers: int) -> list[str]:
    """Memories that give one thing different values, each a day newer than the one before."""
    ids = []
    for day, number in enumerate(numbers, 1):
        text = f"Redis listens on port {number}"
        sandbox.memory(
            f"sem-{number}",
            f"{text}.\n",
            title=text,
            type="semantic",
            timestamp=f"2026-02-{day:02}T00:00:00Z",
        )
        ids.append(f"sem-{number}")
    sandbox.commit()
    return ids


def test_a_cluster_gives_one_memory_in_one_commit(sandbox: Sandbox) -> None:
    """It supersedes all of them, without inventing a verdict."""
    ids = cluster(sandbox, 6379, 6380, 6382, 6381)
    before = int(sandbox.git("rev-list", "--count", "HEAD"))
    done = resolve(sandbox.context(), all=True, keep="newer", reason="measured", commit=True)
    (resolution,) = done.resolved
    assert (resolution.kept_id, set(resolution.ids)) == ("sem-6381", set(ids))
    assert set(written(sandbox, resolution.path).supersedes) == set(ids)
    assert int(sandbox.git("rev-list", "--count", "HEAD")) == before + 1
    tree = sandbox.context().tree()
    assert [r.id for r in tree.records if tree.lineage.is_head(r.id)] == [resolution.id]
    assert open_conflicts(sandbox) == 0


def test_all_of_a_cluster_may_hold(sandbox: Sandbox) -> None:
    """Each names all others, in one commit."""
    ids = cluster(sandbox, 6379, 6380, 6381)
    (resolution,) = resolve(
        sandbox.context(), all=True, keep="both", reason="three servers", commit=True
    ).resolved
    assert resolution.ids == tuple(ids)
    assert open_conflicts(sandbox) == 0


def test_what_only_a_loser_opposed_stays(sandbox: Sandbox) -> None:
    """A memory is put away by the text that contradicts it, not by one about another thing."""
    sandbox.memory("dec-both", "Never cache the pages.\n", title="Always use the session store")
    sandbox.memory(
        "dec-cache", "Always cache the pages.\n", title="Pages", timestamp="2026-02-23T00:00:00Z"
    )
    sandbox.memory(
        "dec-store",
        "Never use the session store.\n",
        title="Sessions",
        timestamp="2026-02-24T00:00:00Z",
    )
    (resolution,) = resolve(sandbox.context(), all=True, keep="newer", reason="so it is").resolved
    assert set(resolution.ids) == {"dec-both", "dec-cache"}
    assert open_conflicts(sandbox) == 0


def test_one_text_that_wins_twice_is_written_once(sandbox: Sandbox) -> None:
    """So is one that wins over another winner, which is not written at all."""
    sandbox.memory(
        "dec-both",
        "Never cache the pages.\n",
        title="Always use the session store",
        timestamp="2026-02-26T00:00:00Z",
    )
    sandbox.memory("dec-cache", "Always cache the pages.\n", title="Pages")
    sandbox.memory("dec-store", "Never use the session store.\n", title="Sessions")
    (resolution,) = resolve(
        sandbox.context(), all=True, keep="newer", reason="x", dry_run=True
    ).resolved
    assert (resolution.kept_id, len(resolution.ids)) == ("dec-both", 3)
    sandbox.memory(
        "dec-store",
        "Never use the session store.\n",
        title="Sessions",
        timestamp="2026-02-27T00:00:00Z",
    )
    (resolution,) = resolve(sandbox.context(), all=True, keep="newer", reason="x").resolved
    assert (resolution.kept_id, len(resolution.ids)) == ("dec-store", 3)
    assert open_conflicts(sandbox) == 0


@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_resolved_store_passes_its_own_gate_elsewhere(
    sandbox: Sandbox, *, one_by_one: bool
) -> None:
    """Exported and imported into an empty repository; also where copies replace copies."""
    ids = cluster(sandbox, 6379, 6380, 6381, 6382)
    if one_by_one:
        winner = ids[0]
        for id_ in ids[1:]:
            winner = settled(sandbox, winner, id_, keep=id_, commit=True).id
        text = written(sandbox, sandbox.context().tree()[winner].path)
        for number in range(3):  # the same words, over several steps
            sandbox.memory(
                f"sem-{9 - number}-copy",
                text.body,
                type="semantic",
                title=text.title,
                supersedes=(winner,),
                timestamp="2026-03-01T00:00:00Z",
            )
            winner = f"sem-{9 - number}-copy"
        sandbox.commit()
    else:
        resolve(sandbox.context(), all=True, keep="newer", reason="measured", commit=True)
    lines = sandbox.run("export").stdout
    other = Sandbox(sandbox.path.parent / "other", sandbox.env)
    other.path.mkdir()
    other.git("init", "--quiet")
    (other.path / ".memory").mkdir()
    other.write("store.jsonl", lines)
    assert other.run("import", "jsonl", "store.jsonl").returncode == 0
    other.git("add", "--all")
    for checked in (other.run("check", "--staged"), other.run("check")):
        assert "duplicate" not in checked.stdout
        assert checked.returncode == 0, checked.stdout


def test_each_settles_the_conflicts_of_the_memories_that_are_named(filled: Sandbox):
    """Several conflicts are settled at once in the same way, and no other is touched."""
    filled.memory(
        "dec-five",
        title="Scanners time out after 5 seconds",
        body="Scanners time out after 5 seconds.\n",
    )
    filled.memory(
        "dec-eight",
        title="Scanners time out after 8 seconds",
        body="Scanners time out after 8 seconds.\n",
    )
    filled.memory("dec-hot", title="Cache pages for 5 minutes", body="Cache pages for 5 minutes.\n")
    filled.memory(
        "dec-cold", title="Cache pages for 9 minutes", body="Cache pages for 9 minutes.\n"
    )
    assert open_conflicts(filled) == 3
    done = resolve(filled.context(), "dec-a", "dec-five", all=True, keep="both", reason="tried")
    assert {frozenset(resolution.ids) for resolution in done.resolved} == {
        frozenset({"dec-a", "dec-b"}),
        frozenset({"dec-five", "dec-eight"}),
    }
    assert open_conflicts(filled) == 1


@pytest.mark.parametrize(
    ("ids", "options", "code"),
    [
        ((), {"keep": "dec-a"}, "usage"),
        (("dec-a",), {"keep": "dec-a"}, "usage"),
        (("dec-alone",), {"keep": "newer"}, "no-conflict"),
    ],
)
def test_all_takes_what_is_in_conflict_and_one_way_to_settle(
    filled: Sandbox, ids: tuple[str, ...], options: dict[str, object], code: str
):
    """Otherwise nothing is settled."""
    filled.memory("dec-alone", title="Render pages on the server", body="On the server.\n")
    with pytest.raises(MemtoolError) as refused:
        resolve(filled.context(), *ids, all=True, reason="so", **options)  # type: ignore[arg-type]
    assert refused.value.code == code
    assert open_conflicts(filled) == 1
