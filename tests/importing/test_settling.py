"""What imported records rest on: sources, the changes that they accept, and later imports."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import Sandbox

SUBJECTS = {1: "Store files on disk", 2: "Store files in S3", 3: "Encrypt every file at night"}


def write_record(sandbox: Sandbox, number: int, date: str, *lines: str, status: str = "Accepted"):
    """Write a decision record with lines in its status section."""
    subject = SUBJECTS.get(number, f"Subject {number}")
    relations = "".join(f"{line}\n\n" for line in lines)
    sandbox.write(
        f"adr/000{number}-r.md",
        f"# {number}. {subject}\n\nDate: {date}\n\n## Status\n\n{status}\n\n{relations}"
        f"## Decision\n\n{subject}, as decision {number}.\n",
    )


def find(sandbox: Sandbox, id_: str) -> Any:
    return sandbox.context().tree()[id_].memory


def list_premises(sandbox: Sandbox, id_: str) -> list[str]:
    sources = find(sandbox, id_).items("source")
    return [source for source in sources if source.startswith("memory:")]


@pytest.mark.parametrize(
    ("date", "settled"),
    [("2021-01-01", ()), ("2022-01-01", ()), ("2023-01-01", ("memory:adr-0002-r",))],
)
def test_a_record_younger_than_the_change_of_its_premise_accepts_it(
    sandbox: Sandbox, date: str, settled: tuple[str, ...]
):
    """An older record, or one of the same day, is unsettled by what replaced its premise."""
    write_record(sandbox, 1, "2020-01-01")
    write_record(sandbox, 2, "2022-01-01", "Supersedes ADR-1")
    write_record(sandbox, 3, date, "Depends on ADR-1")
    sandbox.run("import", "adr", "adr")
    assert list_premises(sandbox, "adr-0003-r") == ["memory:adr-0001-r"]
    assert find(sandbox, "adr-0003-r").items("settled_on") == settled
    unsettled = sandbox.json("list", "is:unsettled")["memories"]
    assert [row["id"] for row in unsettled] == ([] if settled else ["adr-0003-r"])


def test_what_a_record_replaces_is_not_its_premise(sandbox: Sandbox):
    """A record may require the one that it replaces; that is one relation."""
    write_record(sandbox, 1, "2020-01-01")
    write_record(sandbox, 2, "2022-01-01", "Supersedes ADR-1", "Requires ADR-1")
    sandbox.run("import", "adr", "adr")
    assert list_premises(sandbox, "adr-0002-r") == []


@pytest.mark.parametrize(
    ("date", "accepted"), [("2021-01-01", ()), ("2025-06-01", ("without:adr-0001-r",))]
)
def test_a_rejected_premise_is_accepted_if_its_file_is_older(
    sandbox: Sandbox, date: str, accepted: tuple[str, ...]
):
    """Nobody says when a record was rejected, but it was so at the last commit of its file."""
    write_record(sandbox, 1, "2020-01-01", status="Rejected")
    sandbox.git("add", "adr")
    sandbox.git("commit", "-q", "--date=2024-01-01T00:00:00Z", "-m", "Reject")
    write_record(sandbox, 3, date, "Depends on ADR-1")
    sandbox.run("import", "adr", "adr")
    assert find(sandbox, "adr-0003-r").items("settled_on") == accepted


def test_a_second_import_changes_nothing(sandbox: Sandbox):
    """Neither premises nor what was accepted make a record a changed one."""
    write_record(sandbox, 1, "2020-01-01")
    write_record(sandbox, 2, "2022-01-01", "Supersedes ADR-1")
    write_record(sandbox, 3, "2023-01-01", "Depends on ADR-1", "Amends ADR-2")
    sandbox.run("import", "adr", "adr")
    done = sandbox.json("import", "adr", "adr")
    assert (done["written"], done["unchanged"], done["problems"]) == (0, 3, [])


def test_a_record_cites_the_latest_import_of_its_premise(sandbox: Sandbox):
    """A record that is written after its premise changed was written about the new text."""
    write_record(sandbox, 1, "2020-01-01")
    sandbox.run("import", "adr", "adr")
    path = sandbox.path / "adr/0001-r.md"
    path.write_text(path.read_text() + "\nAt most 40 GB.\n")
    sandbox.run("import", "adr", "adr")
    write_record(sandbox, 3, "2023-01-01", "Depends on ADR-1")
    sandbox.run("import", "adr", "adr")
    (head,) = sandbox.context().tree().lineage.find_heads("adr-0001-r")
    assert head != "adr-0001-r"
    assert list_premises(sandbox, "adr-0003-r") == [f"memory:{head}"]
    assert sandbox.json("list", "is:unsettled")["memories"] == []


def test_exported_memories_come_back_as_they_were(sandbox: Sandbox):
    """An export has premises and what was accepted, and an import of it adds nothing to them."""
    write_record(sandbox, 1, "2020-01-01")
    write_record(sandbox, 2, "2022-01-01", "Supersedes ADR-1")
    write_record(sandbox, 3, "2023-01-01", "Depends on ADR-1")
    sandbox.run("import", "adr", "adr")
    lines = sandbox.run("export").stdout
    before = {path: path.read_bytes() for path in (sandbox.path / ".memory").rglob("adr-*.md")}
    for path in before:
        path.unlink()
    rows = [json.loads(line) for line in lines.splitlines()]
    for row in rows:
        row.pop("settled_on", None)  # as one that nobody accepted anything for
    sandbox.write("all.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    sandbox.run("import", "jsonl", "all.jsonl")
    assert "settled_on" not in find(sandbox, "adr-0003-r").fields
    (sandbox.path / "all.jsonl").write_text(lines)
    for path in before:
        path.unlink()
    sandbox.run("import", "jsonl", "all.jsonl")
    assert {path: path.read_bytes() for path in before} == before


def store(sandbox: Sandbox, *rows: Any) -> Any:
    """Import rows as a JSON list."""
    sandbox.write("in.json", json.dumps(rows))
    return sandbox.json("import", "json", "in.json")


def test_a_decision_of_a_store_rests_on_what_it_depends_on(sandbox: Sandbox):
    """A task waits for it; what any entry is based on is its premise."""
    store(
        sandbox,
        {"id": "base-entry", "type": "decision", "content": "Store files on disk."},
        {"id": "dec-entry", "type": "decision", "content": "Encrypt.", "depends_on": "base-entry"},
        {"id": "task-entry", "type": "task", "content": "Do it.", "depends_on": ["base-entry"]},
        {"id": "note-entry", "type": "insight", "content": "Slow.", "based_on": ["base-entry"]},
        {
            "id": "find-entry",
            "type": "bug",
            "content": "It leaks.",
            "relations": [{"type": "discovered-from", "id": "task-entry"}],
        },
    )
    assert list_premises(sandbox, "dec-entry") == ["memory:base-entry"]
    assert list_premises(sandbox, "note-entry") == ["memory:base-entry"]
    assert find(sandbox, "task-entry").items("blocked_by") == ("base-entry",)
    assert list_premises(sandbox, "task-entry") == []
    assert find(sandbox, "find-entry").items("related_to") == ("task-entry",)


def test_a_store_of_an_earlier_version_stays(sandbox: Sandbox):
    """Another reading of the same words is no change of a record."""
    base = {"id": "base-entry", "type": "decision", "content": "Store files on disk."}
    other = {
        "id": "dec-entry",
        "type": "decision",
        "content": "Encrypt.",
        "blocked_by": "base-entry",
    }
    bug = {"id": "bug-entry", "type": "bug", "content": "It leaks.", "derived_from": "base-entry"}
    store(sandbox, base, other, bug)
    del other["blocked_by"], bug["derived_from"]
    bug["relations"] = [{"type": "discovered-from", "id": "base-entry"}]
    done = store(sandbox, base, other | {"depends_on": "base-entry"}, bug)
    assert (done["written"], done["unchanged"], done["problems"]) == (0, 3, [])
