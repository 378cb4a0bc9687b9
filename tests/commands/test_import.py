from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.commands.import_ import import_

DATA = Path(__file__).parent.parent / "importing" / "data"


def test_the_answer_counts_and_lists(sandbox):
    """The JSON names what was written, with problems in the shape of `check`."""
    answer = sandbox.json("import", "jsonl", str(DATA / "records" / "records.jsonl"))
    assert (answer["found"], answer["written"], answer["unchanged"], answer["skipped"]) == (
        9,
        5,
        0,
        4,
    )
    assert {"path", "line", "code", "message", "hint", "severity"} <= set(answer["problems"][0])
    assert [memory["id"] for memory in answer["memories"]] == [
        "adr-1",
        "adr-1-c17b86",
        "adr-2",
        "sta-3",
        "without-an-id",
    ]
    assert all((sandbox.path / memory["path"]).is_file() for memory in answer["memories"])


def test_text_ends_with_the_counts(sandbox):
    """A line for each record that needs a person, refusals first, each hint once, then counts."""
    done = sandbox.run("import", "jsonl", str(DATA / "records" / "records.jsonl"))
    assert done.returncode == 1
    assert done.stdout.startswith("refused: records/")
    hints = [row for row in done.stdout.splitlines() if row.startswith("  hint: ")]
    assert len(hints) == len(set(hints)) > 0
    assert done.stdout.endswith("\n9 records: 5 written, 0 unchanged, 4 refused\n")


def test_dry_run_shows_what_each_record_becomes(sandbox):
    """Title, status, date and what it replaces, with the command that writes them; no file is."""
    place = str(DATA / "adr-nygard")
    done = sandbox.run("import", "adr", place, "--dry-run", "--commit")
    rows = done.stdout.splitlines()
    heads = [row.split("  ") for row in rows[:8:2]]
    assert [(row[0].strip(), row[-2].strip(), row[-1]) for row in heads] == [
        ("adr-0001", "confirmed", "2016-02-12"),
        ("adr-0002", "confirmed", "2016-03-01"),
        ("adr-0003", "confirmed", "2016-05-20"),
        ("adr-0004", "candidate", "2016-06-01"),
    ]
    assert "replaces adr-0002" in rows[5]
    assert rows[-2:] == [
        "4 records: 4 new, 0 unchanged, 0 refused",
        f"to write them: memtool import adr {place} --commit",
    ]
    assert list((sandbox.path / ".memory").iterdir()) == []


def test_the_json_of_a_dry_run_says_where_things_come_from(sandbox):
    """A program gets the same table: status and date with their origin, edges, files."""
    sandbox.write("docs/adr/0001-a.md", "# 1. A\n\nWithout a status.\n")
    sandbox.commit()
    answer = sandbox.json("import", "adr", "docs/adr", "--dry-run")
    (row,) = answer["memories"]
    assert (row["status"], row["date_from"]) == ("candidate", "first commit")
    assert (row["type"], row["supersedes"], row["files"]) == ("decision", [], [])


def test_a_path_alone_is_read_as_what_it_looks_like(sandbox):
    """The kind is guessed from folders and names, and said; what is unclear is refused."""
    sandbox.write("docs/adr/0001-a.md", "# 1. A\n\n## Status\n\nAccepted\n\nText.\n")
    sandbox.write("AGENTS.md", "# Agents\n\n## Build\n\nRun make.\n")
    sandbox.write("notes/a.md", "# A\n\nText.\n")
    done = sandbox.run("import", "docs/adr")
    assert (done.returncode, done.stderr) == (0, "memtool: read as: memtool import adr docs/adr\n")
    assert "read as: memtool import claude AGENTS.md" in sandbox.run("import", "AGENTS.md").stderr
    refused = sandbox.run("import", "notes")
    assert refused.returncode == 2
    assert "hint: memtool import adr notes\n" in refused.stderr
    assert "is neither a path here nor a kind" in sandbox.run("import", "nowhere").stderr


def test_a_record_without_a_status_is_as_old_as_its_branch_says(sandbox):
    """Confirmed once the branch has it for 30 days, wherever it lay; --default-status decides."""
    text = "# 1. A\n\n## Decision\n\nOne record that says something that can be moved.\n"
    sandbox.write("old/0001-a.md", text)
    sandbox.commit("one")
    (sandbox.path / "docs").mkdir()
    sandbox.git("mv", "old/0001-a.md", "docs/0001-a.md")
    sandbox.commit("moved")
    sandbox.write("docs/0002-b.md", "# 2. B\n\nNot committed.\n")
    later = {"MEMTOOL_NOW": "2027-06-01T00:00:00Z"}
    dry = {"dry_run": True}
    rows = import_(sandbox.context(**later), "adr", str(sandbox.path / "docs"), **dry).memories
    assert [row["status"] for row in rows] == ["confirmed", "candidate"]
    first_day = sandbox.git("log", "--format=%as", "--reverse").split()[0]
    assert (rows[0]["date"], rows[0]["date_from"]) == (first_day, "first commit")
    assert f"on this branch since {first_day}" in rows[0]["status_from"]
    rows = import_(
        sandbox.context(), "adr", str(sandbox.path / "docs"), default_status="deprecated", **dry
    ).memories
    assert {row["status"] for row in rows} == {"deprecated"}


def test_commit_makes_one_commit_of_just_the_memories(sandbox):
    """Other staged files stay staged."""
    sandbox.write("other.txt", "staged\n")
    sandbox.git("add", "other.txt")
    answer = sandbox.json("import", "pep", str(DATA / "peps"), "--commit")
    assert sandbox.git("rev-list", "--count", "HEAD").strip() == "1"
    assert sandbox.git("rev-parse", "HEAD").strip() == answer["commit"]
    names = sandbox.git("show", "--name-only", "--format=", "HEAD").split()
    assert sorted(names) == sorted(memory["path"] for memory in answer["memories"])
    assert sandbox.git("diff", "--cached", "--name-only") == "other.txt\n"


@pytest.mark.slow
def test_commit_takes_more_files_than_an_argument_list(sandbox, tmp_path):
    """Paths go to git through a pipe, as an argument list has an end."""
    rows = [
        {"id": f"{'long-name-' * 10}{n:05}", "title": f"Word{n} and term{n * 7}", "type": "state"}
        for n in range(1200)
    ]
    place = tmp_path / "many.jsonl"
    place.write_text("".join(json.dumps(row) + "\n" for row in rows))
    answer = sandbox.json("import", "jsonl", str(place), "--commit")
    assert answer["written"] == 1200
    assert sandbox.git("status", "--porcelain") == ""


def test_a_hook_that_refuses_leaves_the_files_uncommitted(sandbox):
    """The files stay, the index is as it was, and the user hears why in one line."""
    hook = sandbox.write(".git/hooks/pre-commit", "#!/bin/sh\necho no >&2\nexit 1\n")
    os.chmod(hook, 0o755)
    done = sandbox.run("import", "adr", str(DATA / "adr-madr"), "--commit")
    assert done.returncode == 2
    assert "are written but not committed: no" in done.stderr
    assert len(list((sandbox.path / ".memory").rglob("*.md"))) == 4
    assert sandbox.git("diff", "--cached", "--name-only") == ""


@pytest.mark.parametrize(
    "args",
    [
        ("adr", "nowhere"),
        ("adr", "empty"),
        ("claude", "empty"),
        ("pep", "empty"),
        ("jsonl", "empty"),
        ("jsonl", "empty.jsonl"),
        ("jsonl", "bad\0name"),
        ("adr", "a.md", "--map", "status=x"),
        ("jsonl", "a.jsonl", "--map", "color=x"),
        ("jsonl", "a.jsonl", "--set", "id=x"),
        ("jsonl", "a.jsonl", "--set", "type=poem"),
        ("jsonl", "a.jsonl", "--set", "importance=high"),
        ("word", "a.docx"),
        ("jsonl", "pipe"),
    ],
)
def test_bad_calls_are_errors_with_a_hint(sandbox, args):
    """If nothing can be imported: exit code 2, one sentence, and the next step."""
    (sandbox.path / "empty").mkdir()
    sandbox.write("empty.jsonl", "")
    sandbox.write("a.md", "# 1. A\n")
    sandbox.write("a.jsonl", '{"id": "abc", "title": "T", "type": "state"}\n')
    os.mkfifo(sandbox.path / "pipe")
    if "\0" in args[1]:
        from memtool.commands.import_ import import_
        from memtool.errors import MemtoolError

        with pytest.raises(MemtoolError):
            import_(sandbox.context(), *args)
        return
    done = sandbox.run("import", *args)
    assert done.returncode == 2, done.stdout
    assert done.stderr.startswith("memtool: ")
    assert "\nhint: " in done.stderr


def test_set_holds_for_every_memory(sandbox):
    """--set wins over the records, and adds to the sources."""
    sandbox.write("a.jsonl", '{"id": "abc", "title": "T", "type": "poem"}\n')
    answer = sandbox.json(
        "import", "jsonl", "a.jsonl", "--set", "type=state", "--set", "source=human:Grace"
    )
    memory = sandbox.context().tree()[answer["memories"][0]["id"]].memory
    assert memory.type == "state"
    assert memory.items("source") == ("human:Grace", "file:a.jsonl#L1-L1")


def test_hidden_characters_stay_out_of_titles(sandbox):
    """Controls and direction marks of a title are dropped, and a long one is cut."""
    row = {"id": "abc", "title": "a\u202e\x1b[31m\nb " + "x" * 300, "type": "state"}
    sandbox.write("a.jsonl", json.dumps(row) + "\n")
    sandbox.json("import", "jsonl", "a.jsonl")
    title = sandbox.context().tree()["abc"].memory.title
    assert title.startswith("a[31m b xxx")
    assert len(title) == 200


def test_commit_takes_along_what_a_killed_import_left(sandbox):
    """Records that are memories already, and in no commit, are committed with the rest."""
    first = sandbox.json("import", "adr", str(DATA / "adr-madr"))
    (sandbox.path / first["memories"][0]["path"]).unlink()
    done = sandbox.run("import", "adr", str(DATA / "adr-madr"), "--commit")
    remaining = first["written"] - 1
    assert f"{remaining} of these were already written, and are now committed" in done.stderr
    assert sandbox.git("status", "--porcelain", "--", ".memory") == ""
    done = sandbox.run("import", "adr", str(DATA / "adr-madr"), "--commit")
    assert "committed" not in done.stderr


@pytest.fixture
def filled(sandbox):
    """A repository with memories of every shape of value."""
    sandbox.memory("dec-aa", "Old.\n", status="archived", tags=())
    sandbox.memory(
        "dec-bb",
        "Text \u00e9 \u2028 \U0001f600\r\n\r\n---\nno end",
        title='A "quoted": title # and \\ more',
        supersedes=("dec-aa", "dec-zz"),
        files=("a b.py", "src/**"),
        checked={"at": "2026-02-22T19:33:00Z", "by": "Ada"},
        importance="0.50",
        **{"x-own": "yes"},
    )
    sandbox.memory(
        "sta-cc",
        "",
        type="state",
        status="deleted",
        deleted={"at": "2026-02-22T19:33:00Z", "reason": "no: more"},
    )
    sandbox.memory("dec-zz", "It stands on its own.", temporal_class="short_term")
    return sandbox


def _other(sandbox):
    path = sandbox.path.parent / "other"
    (path / ".memory").mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet"], cwd=path, env=sandbox.env, check=True)
    return path


def test_an_import_of_the_export_is_the_same_tree(filled):
    """Every file comes out byte for byte."""
    other = _other(filled)
    lines = filled.run("export").stdout
    (other / "all.jsonl").write_text(lines)
    done = filled.run("import", "jsonl", "all.jsonl", cwd=other)
    assert done.returncode == 0, done.stdout
    own = {p.name: p.read_bytes() for p in (filled.path / ".memory").rglob("*.md")}
    theirs = {p.name: p.read_bytes() for p in (other / ".memory").rglob("*.md")}
    assert theirs == own
    assert filled.run("export", cwd=other).stdout.count("\n") == 4


def test_importing_an_export_into_its_own_tree_changes_nothing(filled):
    """Every memory is known."""
    filled.write("all.jsonl", filled.run("export").stdout)
    answer = filled.json("import", "jsonl", "all.jsonl")
    assert (answer["unchanged"], answer["written"], answer["problems"]) == (4, 0, [])


def test_lines_are_sorted_and_whole(filled):
    """One object a line by id, with keys, body and path."""
    rows = [json.loads(line) for line in filled.run("export").stdout.splitlines()]
    assert [row["id"] for row in rows] == ["dec-aa", "dec-bb", "dec-zz", "sta-cc"]
    assert rows[1]["checked"] == {"at": "2026-02-22T19:33:00Z", "by": "Ada"}
    assert rows[1]["body"].endswith("no end")
    assert rows[1]["path"] == ".memory/decision/2026-02/dec-bb.md"


def test_json_is_the_list_of_the_rows(filled):
    """--json gives the same rows as one list."""
    rows = [json.loads(line) for line in filled.run("export").stdout.splitlines()]
    assert filled.json("export") == rows


def test_filters_are_those_of_list(filled):
    """With filters the export has what list finds with them."""
    ids = [row["id"] for row in filled.json("export", "type:decision")]
    assert ids == ["dec-bb"]
    assert ids == [row["id"] for row in filled.json("list", "type:decision")["memories"]]


def test_a_revision_is_exported_as_it_was(filled):
    """--at reads a commit, whatever the worktree holds."""
    filled.commit()
    before = filled.run("export").stdout
    filled.memory("dec-new")
    assert filled.run("export", "--at", "HEAD").stdout == before


def test_an_empty_tree_has_no_lines(sandbox):
    """Nothing is exported from nothing, and that is fine."""
    done = sandbox.run("export")
    assert (done.returncode, done.stdout) == (0, "")


def test_a_record_with_a_title_alone_becomes_a_memory_that_the_gate_takes(sandbox: Sandbox) -> None:
    """Trackers are full of issues without a description."""
    sandbox.write("one.jsonl", '{"id": "abc", "title": "Deploys run on Tuesdays only"}\n')
    assert sandbox.run("import", "jsonl", "one.jsonl", "--set", "type=semantic").returncode == 0
    (path,) = sandbox.path.glob(".memory/*/*/*.md")
    assert path.read_text().endswith("---\nDeploys run on Tuesdays only\n")
    sandbox.git("add", "--all")
    assert sandbox.run("check", "--staged").returncode == 0


OWN = {
    "title": "Ports are fixed",
    "type": "semantic",
    "body": "The ports are fixed by contract.",
    "source": ["url:https://example.org/ports"],
    "confidence": "high",
    "importance": 0.9,
    "tags": ["net"],
    "temporal_class": "long_term",
    "x-team": "edge",
    "status": "open",
    "category": "Ports",
    "number": 7,
}


def test_lines_on_stdin_keep_the_keys_of_a_memory(sandbox: Sandbox) -> None:
    """Known keys are kept without --map; others are left out and named."""
    done = sandbox.run("import", "jsonl", "-", "--commit", "--json", stdin=json.dumps(OWN))
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["written"], answer["skipped"]) == (0, 1, 0)
    named = [problem["message"].partition(":")[0] for problem in answer["problems"]]
    assert named == ["category", "status"]
    memory = sandbox.json("show", answer["memories"][0]["id"])
    keys = ("confidence", "importance", "tags", "temporal_class", "x-team")
    assert {key: memory[key] for key in keys} == {key: OWN[key] for key in keys}
    assert memory["source"][0] == OWN["source"][0]
    assert memory["source"][1].startswith("tool:import-jsonl stdin record Ports are fixed")
    assert sandbox.git("log", "-1", "--format=%s") == "memory: import 1 from stdin\n"
    again = sandbox.run("import", "jsonl", "-", stdin=json.dumps(OWN))
    assert again.stdout.endswith("1 record: 0 written, 1 unchanged, 0 refused\n")


def test_only_json_lines_are_read_from_stdin(sandbox: Sandbox) -> None:
    """Directories of records have no stdin, and an empty one holds no record."""
    for from_, message in (("adr", "cannot be read from stdin"), ("jsonl", "stdin")):
        done = sandbox.run("import", from_, "-")
        assert (done.returncode, message in done.stderr, "hint: " in done.stderr) == (2, True, True)
