"""Files tied by history: commits that name a record, and code that names it."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

import pytest
from conftest import Sandbox

from memtool.index import index
from memtool.search import history_files
from memtool.search.features import Facts
from memtool.search.history_files import HistoryTable
from memtool.sessions import background

if TYPE_CHECKING:
    from pathlib import Path

SHIP, CRANE = "src/ship.py", "src/crane.py"


@pytest.fixture
def harbor(sandbox: Sandbox) -> Sandbox:
    """Two imported records; two commits that name the first one changed a file."""
    for number in (7, 8):
        text = f"# Choice {number}\n\n## Status\n\nAccepted\n\nBecause of {number} reasons.\n"
        sandbox.write(f"docs/adr/000{number}-choice.md", text)
    sandbox.run("init")
    sandbox.commit()
    sandbox.run("import", "adr", "docs/adr", "--commit")
    for number, message in enumerate(
        ("ship: begin ADR-007", "Moor as adr 7 says\n\nIn two steps.")
    ):
        sandbox.write(SHIP, f"ship = {number}\n")
        sandbox.write(f"src/other-{number}.py", "x\n")
        sandbox.commit(message)
    return sandbox


def find_tied(harbor: Sandbox, path: str, **env: str) -> list[str]:
    """Return the records that commits tie to a file."""
    context = harbor.context(**env)
    tree = index.open(context)
    table = HistoryTable(
        context.repository, context.directory, tree.imported_ids, is_cached=context.is_cached
    )
    table.load(context.repository.git.head())
    return table.find_records(path, Facts(tree, context.clock.now, dict))


def test_two_commits_that_name_a_record_tie_their_files_to_it(harbor: Sandbox) -> None:
    """Zeros and joints in its name do not matter; one commit proves nothing."""
    assert find_tied(harbor, SHIP) == ["adr-0007-choice"]
    assert find_tied(harbor, "src/other-0.py") == []
    text = harbor.run("inject", "--files", SHIP).stdout
    assert "by history: commits that name it changed this file" in text
    assert "adr-0008" not in text


def test_code_that_names_a_record_is_tied_to_it(harbor: Sandbox) -> None:
    """Also before it is committed."""
    harbor.write(CRANE, "# lifts by hand, see ADR-0008\n")
    text = harbor.run("inject", "--files", CRANE).stdout
    assert "adr-0008" in text
    assert "by history: this file names it" in text


def test_a_file_of_many_records_is_tied_to_none(harbor: Sandbox) -> None:
    """Everybody changes it, or it is a list of them."""
    for number in range(1, 6):
        if number > 1:
            title = f"# Other {number}\n\n## Status\n\nAccepted\n\nFor {number} harbors.\n"
            harbor.write(f"docs/adr/000{number}-other.md", title)
            harbor.write(SHIP, f"ship = 'v{number}'\n")
            harbor.commit(f"ship: as in ADR {number}")
    harbor.run("import", "adr", "docs/adr", "--commit")
    assert find_tied(harbor, SHIP) == []
    harbor.write(CRANE, "# ADR 2, ADR 3, ADR 4, ADR 5, ADR 7\n")
    assert "by history" not in harbor.run("inject", "--files", CRANE).stdout


def test_commits_that_name_many_or_change_many_do_not_count(harbor: Sandbox) -> None:
    """A release names all records, and an import or a formatting changes all files."""
    for text in ("a\n", "b\n"):
        harbor.write(CRANE, text)
        harbor.commit("release: ADR 7, ADR 8, ADR 1, ADR 2")
    for number in range(60):
        harbor.write(f"src/many/{number}.py", "x\n")
    harbor.write(CRANE, "c\n")
    harbor.commit("format all for ADR 8")
    harbor.write(CRANE, "d\n")
    harbor.commit("once for ADR 8")
    assert find_tied(harbor, CRANE) == []


def test_the_table_follows_every_head(harbor: Sandbox) -> None:
    """Whatever was cached before, the answer is that of the history of this commit alone."""
    assert find_tied(harbor, SHIP) == ["adr-0007-choice"]
    harbor.git("checkout", "--quiet", "-b", "side", "HEAD~1")
    assert find_tied(harbor, SHIP) == []
    for number in range(2):
        harbor.write(CRANE, f"crane = {number}\n")
        harbor.commit("crane: ADR-8")
    assert find_tied(harbor, CRANE) == ["adr-0008-choice"]
    harbor.git("checkout", "--quiet", "main")
    assert (find_tied(harbor, SHIP), find_tied(harbor, CRANE)) == (["adr-0007-choice"], [])
    harbor.git("merge", "--quiet", "--no-edit", "side")
    assert (find_tied(harbor, SHIP), find_tied(harbor, CRANE)) == (
        ["adr-0007-choice"],
        ["adr-0008-choice"],
    )
    harbor.git("reset", "--quiet", "--hard", "HEAD~1")
    harbor.git("branch", "--quiet", "-D", "side")
    harbor.git("reflog", "expire", "--expire=now", "--all")
    harbor.git("gc", "--quiet", "--prune=now")
    assert (find_tied(harbor, SHIP), find_tied(harbor, CRANE)) == (["adr-0007-choice"], [])


def test_a_hook_leaves_a_long_history_to_the_background(
    harbor: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The edit is answered without it, and the process that is started derives it."""
    event = {"session_id": "", "cwd": str(harbor.path), "tool_name": "Edit"}
    edit = json.dumps(event | {"tool_input": {"file_path": str(harbor.path / SHIP)}})
    started: list[list[str]] = []
    monkeypatch.setattr(history_files, "HURRIED_TIMEOUT_S", 0.0)
    monkeypatch.setattr(background, "start", lambda args, _env: started.append(args) or 1)
    hook = ("hook", "claude", "post-tool-use", "--input", edit)
    harbor.run("list")  # builds the index
    assert "by history" not in harbor.run(*hook).stdout
    assert started[0][2:] == ["inject", f"--files={harbor.path / SHIP}"]
    assert harbor.run(*started[0]).returncode == 0
    assert "by history" in harbor.run(*hook).stdout


def list_databases(harbor: Sandbox) -> list[Path]:
    """Return the files of the facts about commits."""
    return sorted((harbor.path / ".git").glob("memtool/**/state/*.db"))


def test_damage_costs_time_and_no_answer(harbor: Sandbox) -> None:
    """A damaged row is made again."""
    assert find_tied(harbor, SHIP) == ["adr-0007-choice"]
    databases = list_databases(harbor)
    assert databases
    for place in databases:
        with sqlite3.connect(place) as connection:
            where = "kind LIKE 'named by commits%'"
            statement = f"UPDATE kept SET data = CAST('x' AS BLOB) WHERE {where}"
            assert connection.execute(statement).rowcount == 1
        connection.close()
    assert find_tied(harbor, SHIP) == ["adr-0007-choice"]


def test_without_an_import_no_history_is_read(sandbox: Sandbox) -> None:
    """An edit costs nothing more in a repository that has imported nothing."""
    sandbox.memory("dec-1", "Ships moor at night.\n")
    sandbox.write(SHIP, "# ADR 1\n")
    sandbox.commit("ADR 1")
    assert sandbox.run("inject", "--files", SHIP).stdout.count("by history") == 0
    for place in list_databases(sandbox):
        with sqlite3.connect(place) as connection:
            rows = connection.execute("SELECT 1 FROM kept WHERE kind LIKE 'named by%'").fetchall()
        connection.close()
        assert rows == []
