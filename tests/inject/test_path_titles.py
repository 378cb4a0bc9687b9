"""Path titles: the decision that the words of an edited file's path find."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Sandbox

RECORDS = {
    1: ("Refunds wait in a queue", "Refunds are paid by a job that reads the refund queue."),
    2: ("Scanners work offline", "Scanners keep a list of tickets."),
    3: ("Fares depend on the season", "Fares are quoted from a table."),
}
QUEUE = "src/payments/refundQueue.py"
TITLE = "adr-0001-refunds Refunds wait in a queue"


@pytest.fixture
def harbor(sandbox: Sandbox) -> Sandbox:
    """A few imported decisions; none names a file."""
    for number, (title, decision) in RECORDS.items():
        word = title.partition(" ")[0].lower()
        text = f"# {title}\n\n## Status\n\nAccepted\n\n## Decision\n\n{decision}\n"
        sandbox.write(f"docs/adr/000{number}-{word}.md", text)
    for path in (QUEUE, "src/main.py", "src/other.py"):
        sandbox.write(path, "x = 1\n")
    sandbox.run("init")
    sandbox.commit()
    sandbox.run("import", "adr", "docs/adr", "--commit")
    return sandbox


def edit(sandbox: Sandbox, path: str, session: str = "one", use: str = "1") -> str:
    """Return what the agent gets after an edit of a file."""
    sent = {
        "session_id": session,
        "cwd": str(sandbox.path),
        "tool_name": "Edit",
        "tool_use_id": use,
        "tool_input": {"file_path": str(sandbox.path / path)},
    }
    printed = sandbox.run("hook", "claude", "post-tool-use", stdin=json.dumps(sent)).stdout
    answer = json.loads(printed or "{}")
    return answer.get("hookSpecificOutput", {}).get("additionalContext", "")


def test_the_words_of_a_path_find_one_title(harbor: Sandbox) -> None:
    """Also in humps and with other endings; once in a session."""
    text = edit(harbor, QUEUE)
    assert f"{QUEUE}: by the words of the path" in text
    assert [line for line in text.splitlines() if line.startswith("| ")] == [f"| {TITLE}"]
    assert edit(harbor, QUEUE, use="2") == ""
    assert edit(harbor, QUEUE, session="two") == text


def test_a_path_about_nothing_is_not_answered(harbor: Sandbox) -> None:
    """Every path has a best hit; it must stand out."""
    assert edit(harbor, "src/main.py") == ""
    assert edit(harbor, "docs/adr/0001-refunds.md") == ""


def test_what_governs_a_file_comes_in_place_of_a_title(harbor: Sandbox) -> None:
    """The memory says so itself, and needs no guess."""
    harbor.memory("dec-rule", "Refunds need two signatures.\n", files=(QUEUE,))
    harbor.commit("rule")
    text = edit(harbor, QUEUE)
    assert "two signatures" in text
    assert TITLE not in text


def test_a_title_of_the_primer_is_not_repeated(harbor: Sandbox) -> None:
    """The session knows all titles of a small store."""
    start = json.dumps({"session_id": "one", "cwd": str(harbor.path), "source": "startup"})
    assert TITLE in harbor.run("hook", "claude", "session-start", stdin=start).stdout
    assert edit(harbor, QUEUE) == ""
