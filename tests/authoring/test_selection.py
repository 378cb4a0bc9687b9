"""Verbs about several memories: names, or one query; all or none, in one commit."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Sandbox, make_memory
from effort import count_calls

from memtool.api import Project
from memtool.commands.archive import archive, confirm, deprecate, pin, restore, unpin
from memtool.commands.forget import forget
from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.store import files

RECORDS = {
    "dec-2026-03-01-hold-a-seat-k3f9": ("docs/adr/0001-hold.md#L1-L9", "candidate"),
    "dec-2026-03-02-sell-a-seat-m4p2": ("docs/adr/0002-sell.md", "candidate"),
    "dec-2026-03-03-sort-the-list-q7x1": ("docs/notes/list.md@0123abcd", "candidate"),
    "dec-2026-03-04-keep-the-list-r8z5": ("docs/adr/0003-keep.md", "confirmed"),
}
HOLD, SELL, SORT, KEEP = RECORDS


@pytest.fixture
def records(sandbox: Sandbox) -> Sandbox:
    """Three candidates and a confirmed memory, from documents."""
    for id_, (path, status) in RECORDS.items():
        title = id_[15:-5].replace("-", " ").capitalize()
        sandbox.memory(id_, f"{title}.\n", title=title, source=(f"file:{path}",), status=status)
    sandbox.commit()
    return sandbox


def statuses(sandbox: Sandbox) -> dict[str, str]:
    """The status of each memory on disk."""
    tree = sandbox.context().tree()
    return {record.id: record.memory.status for record in tree.records}


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ([HOLD], [HOLD]),
        ([HOLD, SELL], [HOLD, SELL]),
        ([SELL, HOLD, SELL], [SELL, HOLD]),
        (["dec-k3f9", "sort-the-list"], [HOLD, SORT]),
        (["is:candidate"], [HOLD, SELL, SORT]),
        (["is:candidate", "seat"], [HOLD, SELL]),
        (["is:candidate", "source:file:docs/adr/*"], [HOLD, SELL]),
        (["is:candidate", "source:docs/adr"], [HOLD, SELL]),
        (["source:file:docs/*/*.md"], [HOLD, SELL, SORT, KEEP]),
        (["source:file:docs/*.md"], None),
        (["source:docs/??es/*"], None),
        (["source:docs/no??s/*", f"-id:{HOLD}"], [SORT]),
        (["source:human:*"], None),
        (["seat"], None),
        (["hold-a-seat", "seat"], None),
        (["hold-a-seat", "no-such-thing"], None),
        (["is:candidat"], None),
        (["typ:decision"], None),
        (["x:y"], None),
        ([""], None),
        ([], None),
    ],
)
def test_arguments_are_names_or_one_query(
    records: Sandbox, words: list[str], ids: list[str] | None
) -> None:
    """With a filter they are one query; else each names one memory, or all are refused."""
    before = statuses(records)
    if ids is None:
        with pytest.raises(MemtoolError):
            archive(records.context(), *words)
        assert statuses(records) == before
        return
    done = archive(records.context(), *words)
    assert [change.id for change in done.memories] == ids
    assert statuses(records) == before | dict.fromkeys(ids, "archived")


def test_words_for_several_are_refused_with_their_titles(records: Sandbox) -> None:
    """The user picks one by its id, or all of them by a filter."""
    done = records.run("confirm", "dec-q7x1", "seat")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        'memtool: cannot confirm: "seat" matches 2 active memories:',
        "  dec-k3f9  Hold a seat",
        "  dec-m4p2  Sell a seat",
        "hint: memtool confirm dec-q7x1 dec-k3f9",
    ]


def test_several_are_shown_and_committed_together(records: Sandbox) -> None:
    """The receipt names them; one commit has their ids, and can be reverted."""
    done = records.run("confirm", "is:candidate", "source:file:docs/adr/*", "--commit")
    head = records.git("rev-parse", "--short=7", "HEAD").strip()
    assert done.stderr.splitlines() == [
        "Confirmed 2 memories",
        "  dec-k3f9  Hold a seat",
        "  dec-m4p2  Sell a seat",
        f"  committed as {head}; to take all back: git revert {head}",
    ]
    assert [line.rpartition("/")[2] for line in done.stdout.splitlines()] == [
        f"{HOLD}.md",
        f"{SELL}.md",
    ]
    message = records.git("log", "-1", "--format=%B").strip()
    assert message == f"memory: confirm 2 memories\n\nMemory-Id: {HOLD}, {SELL}"
    records.git("revert", "--no-edit", "HEAD")
    assert statuses(records)[HOLD] == "candidate"


def test_a_dry_run_shows_what_is_meant(records: Sandbox) -> None:
    """Nothing is written."""
    before = records.git("status", "--porcelain")
    done = records.run("confirm", "dec-k3f9", "dec-r8z5", "--dry-run")
    assert done.stderr.splitlines() == [
        "Would change 2 memories",
        "  dec-k3f9  Hold a seat    candidate -> confirmed",
        "  dec-r8z5  Keep the list",
    ]
    assert records.git("status", "--porcelain") == before


def test_what_is_so_already_is_told_apart(records: Sandbox) -> None:
    """It changes nothing, and is in no commit."""
    done = records.run("archive", HOLD, SELL, "--commit")
    assert done.returncode == 0
    done = records.run("archive", HOLD, SORT, "--commit")
    assert done.stderr.splitlines()[:4] == [
        "Already so: 1 memory",
        "  dec-k3f9  Hold a seat",
        "Archived 1 memory",
        "  dec-q7x1  Sort the list",
    ]
    assert records.git("log", "-1", "--format=%s").strip() == "memory: archive Sort the list"
    assert records.git("log", "-1", "--format=%b").strip() == f"Memory-Id: {SORT}"


def test_the_answer_for_one_memory_has_the_keys_of_before(records: Sandbox) -> None:
    """Of several, the keys of a single one are empty, and `memories` has a row for each."""
    single = records.json("pin", HOLD, "--dry-run")
    assert list(single) == ["id", "path", "commit", "changes", "dry_run", "memories"]
    assert (single["id"], single["changes"]["status"]) == (HOLD, ["candidate", "pinned"])
    row = {key: single[key] for key in ("id", "path", "commit", "changes", "dry_run")}
    assert single["memories"] == [row]
    both = records.json("pin", HOLD, SELL, "--commit")
    assert (both["id"], both["path"], both["changes"]) == ("", "", {})
    head = records.git("rev-parse", "HEAD").strip()
    assert both["commit"] == head
    assert [(row["id"], row["commit"]) for row in both["memories"]] == [(HOLD, head), (SELL, head)]
    gone = records.json("forget", HOLD, "--reason", "it is over")
    assert gone["forgotten"] == gone["memories"]


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        (confirm, {}),
        (pin, {}),
        (unpin, {}),
        (deprecate, {"reason": "it is over"}),
        (archive, {}),
        (forget, {"reason": "it is over"}),
        (restore, {}),
    ],
)
def test_where_one_of_several_is_not_possible_none_is_changed(
    records: Sandbox, verb: Any, options: dict[str, str]
) -> None:
    """An unknown name stops all; so does the disk at the second, and the first is as before."""
    before = {path: path.read_bytes() for path in (records.path / ".memory").rglob("*.md")}
    with pytest.raises(MemtoolError):
        verb(records.context(), HOLD, SELL, "dec-none", **options)
    assert {path: path.read_bytes() for path in before} == before


def test_the_disk_refuses_the_second_of_three(
    records: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first has its old content again."""
    real = files.replace

    def full(root: str, path: str, data: bytes, **options: Any) -> None:
        if SELL in path:
            raise MemtoolError("no space; nothing was changed", code="disk")
        real(root, path, data, **options)

    monkeypatch.setattr(files, "replace", full)
    with pytest.raises(MemtoolError, match=r"^no space; nothing was changed$"):
        confirm(records.context(), "is:candidate")
    assert records.git("status", "--porcelain") == ""


def test_all_that_cannot_be_changed_are_named(records: Sandbox) -> None:
    """The error says why, and how to leave them out of the query."""
    for name in (HOLD, SORT):
        path = f".memory/decision/2026-02/{name}.md"
        text = (records.path / path).read_text().replace("status: candidate", "status: deprecated")
        records.write(path, text)
    with pytest.raises(MemtoolError) as caught:
        unpin(records.context(), "is:candidate", "OR", "is:deprecated")
    error = caught.value
    assert error.message.splitlines()[0] == "cannot unpin 3 of 3 memories, so nothing was changed:"
    assert f'"Hold a seat" ({HOLD}) is deprecated, not pinned' in error.message
    with pytest.raises(MemtoolError) as caught:
        unpin(records.context(), "is:confirmed", "OR", "is:candidate")
    assert caught.value.hint.splitlines() == [
        "memtool list is:pinned",
        f"all others: memtool unpin is:confirmed OR is:candidate -id:{SELL}",
    ]
    assert caught.value.code == "not-pinned"


def test_code_with_open_work_keeps_its_memory_from_being_confirmed(records: Sandbox) -> None:
    """The others are not confirmed either; the hint leaves it out."""
    records.write("seats.py", "SEATS = 4\n")
    records.memory("dec-code", files=("seats.py",), status="candidate")
    records.commit()
    records.write("seats.py", "SEATS = 5\n")
    with pytest.raises(MemtoolError) as caught:
        confirm(records.context(), "is:candidate")
    assert "dec-code): seats.py has uncommitted changes" in caught.value.message
    command = caught.value.hint.rpartition("\n")[2]
    assert command == "all others: memtool confirm is:candidate -id:dec-code"
    records.json("confirm", "is:candidate", "-id:dec-code")
    assert statuses(records)["dec-code"] == "candidate"
    assert statuses(records)[HOLD] == "confirmed"


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (
            ["deprecate", "source:docs/notes"],
            'cannot deprecate: no memory matches "source:docs/notes", except for 1 archived one',
            "memtool deprecate source:docs/notes is:archived",
        ),
        (
            ["confirm", "tag:none"],
            'cannot confirm: no memory matches "tag:none"',
            "memtool list tag:none",
        ),
    ],
)
def test_a_query_without_a_match_is_refused(
    records: Sandbox, words: list[str], message: str, hint: str
) -> None:
    """If memories that are left out by default would match, the hint has their state."""
    records.json("archive", SORT)
    done = records.run(*words)
    assert done.stderr.splitlines() == [f"memtool: {message}", f"hint: {hint}"]
    if "archived" in hint:
        assert records.run(*hint.split()[1:]).returncode == 0


def test_a_verb_takes_memories_in_the_states_that_it_ends(records: Sandbox) -> None:
    """Imported candidates are old and so expired; what was put away is what restore is for."""
    records.memory("dec-old", status="candidate", timestamp="2020-01-01T00:00:00Z")
    records.commit()
    with pytest.raises(MemtoolError, match="except for 1 expired one"):
        archive(records.context(), "id:dec-o*")
    assert confirm(records.context(), "is:candidate", "until:2021-01-01").id == "dec-old"
    archive(records.context(), "is:candidate", "seat")
    forget(records.context(), "source:docs/notes", reason="it is over")
    restore(records.context(), "source:docs/*")
    assert set(statuses(records).values()) == {"confirmed", "candidate"}
    assert statuses(records)[SORT] == "candidate"


def test_one_of_several_can_be_undone_alone(records: Sandbox) -> None:
    """The others keep what the common commit gave them."""
    records.json("confirm", "is:candidate", "--commit")
    records.json("undo", SELL, "--commit")
    assert statuses(records) == {
        HOLD: "confirmed",
        SELL: "candidate",
        SORT: "confirmed",
        KEEP: "confirmed",
    }


def test_a_saved_query_is_a_query(records: Sandbox) -> None:
    """Words after it narrow it, as in list."""
    records.write(".memory/queries.toml", 'open = "is:candidate"\n')
    done = archive(records.context(), "@open", "seat")
    assert [change.id for change in done.memories] == [HOLD, SELL]


def test_python_and_http_take_one_name_or_a_list(records: Sandbox) -> None:
    """A program that passes a text goes on working."""
    project = Project.at(str(records.path), records.env)
    assert project.confirm(HOLD, dry_run=True).id == HOLD
    assert project.confirm(id=HOLD, dry_run=True).id == HOLD
    assert len(project.confirm(id=[HOLD, SELL], dry_run=True).memories) == 2
    assert len(project.confirm("is:candidate", dry_run=True).memories) == 3


def test_an_agent_forgets_by_name_only(records: Sandbox) -> None:
    """What a memory could talk it into stays small: a filter for several is refused."""
    context = records.context()
    context.caller.agent = "robot"
    with pytest.raises(MemtoolError, match="an agent must name 2 memories"):
        forget(context, "source:docs/adr", "is:candidate", reason="so it says")
    assert len(forget(context, HOLD, SELL, reason="they are twice here").memories) == 2
    assert forget(context, "source:docs/notes", reason="it is over").id == SORT


@pytest.mark.slow
def test_a_thousand_are_confirmed_in_one_commit_and_linear_work(sandbox: Sandbox) -> None:
    """Four times as many take some four times the work."""
    calls = {}
    for count in (250, 1_000):
        for number in range(count):
            memory = make_memory(
                f"dec-{count}-{number:05}",
                f"Word{number} of {count}.\n",
                title=f"Rule {number} of {count}",
                status="candidate",
                tags=(f"t{count}",),
            )
            path = f".memory/decision/2026-02/{memory.id}.md"
            sandbox.write(path, document.write(memory))
        sandbox.commit()
        sandbox.json("list", "is:candidate", "--limit", "1")
        calls[count] = count_calls(confirm, sandbox.context(), f"tag:t{count}", commit=True)
        assert sandbox.git("diff", "--name-only", "HEAD~1..HEAD").count("\n") == count
        assert sandbox.git("status", "--porcelain") == ""
    assert calls[1_000] < 5 * calls[250], calls
