from __future__ import annotations

import json
import subprocess

import pytest


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
    sandbox.memory("sta-cc", "", type="state", status="deleted",
                   deleted={"at": "2026-02-22T19:33:00Z", "reason": "no: more"})  # fmt: skip
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


def test_no_body_leaves_the_text_out(filled):
    """Only the body is missing."""
    rows = filled.json("export", "--no-body")
    assert all("body" not in row and "path" in row for row in rows)


def test_filters_are_those_of_list(filled):
    """With filters the export has what list finds with them."""
    found = [row["id"] for row in filled.json("export", "type:decision")]
    assert found == ["dec-bb"]
    assert found == [row["id"] for row in filled.json("list", "type:decision")["memories"]]


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
