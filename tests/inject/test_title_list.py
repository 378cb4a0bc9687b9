"""The list of titles in a primer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from memtool.inject import title_list

if TYPE_CHECKING:
    from conftest import Sandbox


@pytest.fixture
def records(sandbox: Sandbox) -> Sandbox:
    """Three imported records: one is proposed, and one is superseded."""
    for number, status in ((1, "Superseded by ADR 2"), (2, "Accepted"), (3, "Proposed")):
        text = f"# Choice {number}\n\n## Status\n\n{status}\n\n## Decision\n\nDo {number} things.\n"
        sandbox.write(f"docs/adr/000{number}-choice.md", text)
    sandbox.run("init")
    sandbox.commit()
    sandbox.run("import", "adr", "docs/adr", "--commit")
    return sandbox


def find_list(text: str) -> list[str]:
    """Return the heading of the list of titles in a primer, and its lines."""
    lines = text.splitlines()
    start = next((n for n, line in enumerate(lines) if "titles only" in line), len(lines))
    rows = [line for line in lines[start + 1 :] if line]
    end = next((n for n, line in enumerate(rows) if not line.startswith("| ")), len(rows))
    return [*(line.strip("= ") for line in lines[start : start + 1]), *rows[:end]]


def grow(sandbox: Sandbox) -> None:
    """Add records until their titles do not fit into a list."""
    for number in range(10, 70):
        title = f"Choice {number} of a committee with a title of several words"
        text = f"# {title}\n\n## Status\n\nAccepted\n\n## Decision\n\nDo {number} things.\n"
        sandbox.write(f"docs/adr/00{number}-choice.md", text)
    sandbox.commit("records")
    sandbox.run("import", "adr", "docs/adr", "--commit")


def test_a_small_store_lists_all_its_decisions(records: Sandbox) -> None:
    """Proposed ones too, since people implement them; not what was superseded."""
    assert find_list(records.run("inject", "--primer").stdout) == [
        title_list.ALL,
        "| adr-0002-choice Choice 2",
        "| adr-0003-choice Choice 3 (candidate)",
    ]


def test_a_decision_in_the_primer_is_not_listed_again(records: Sandbox) -> None:
    """Its title stands above its text."""
    records.memory("dec-pinned", "Do all things.\n", status="pinned")
    text = records.run("inject", "--primer").stdout
    assert "Do all things." in text
    assert not [line for line in find_list(text) if "dec-pinned" in line]


def test_a_large_store_lists_what_commits_named_last(records: Sandbox) -> None:
    """The newest first, five at most, also if other commits or branches came in between."""
    grow(records)
    assert find_list(records.run("inject", "--primer").stdout) == []
    for number in (2, 11, 12, 13, 14, 15):
        records.write("src/ship.py", f"ship = {number}\n")
        records.commit(f"ship: begin ADR-00{number}")
    heading, *rows = find_list(records.run("inject", "--primer").stdout)
    assert heading == title_list.RECENT
    assert [row.split()[1] for row in rows] == [f"adr-00{n}-choice" for n in range(15, 10, -1)]
    records.git("checkout", "-q", "-b", "other", "HEAD~2")
    records.write("src/ship.py", "ship = 16\n")
    records.commit("ship: ADR 16")
    rows = find_list(records.run("inject", "--primer").stdout)[1:]
    assert [row.split()[1] for row in rows] == [
        "adr-0016-choice",
        *(f"adr-00{n}-choice" for n in (13, 12, 11)),
        "adr-0002-choice",
    ]
    cached, anew = (
        records.run("inject", "--primer", **env).stdout for env in ({}, {"MEMTOOL_NO_CACHE": "1"})
    )
    assert find_list(cached) == find_list(anew)


def test_a_title_is_told_once(records: Sandbox) -> None:
    """A block does not repeat the titles that the session has; a memory itself is shown."""
    records.run("inject", "--primer", "--session", "one")
    prompt = ("inject", "--prompt", "should we do 2 things, as ADR 2 says?", "--session")
    again = records.run(*prompt, "one").stdout
    assert "adr-0002-choice" in again
    assert "Perhaps" not in again


def test_the_list_has_a_budget_of_its_own(records: Sandbox) -> None:
    """It is reported by itself, and 0 tokens mean no list."""
    answer = records.json("inject", "--primer", "--format", "json")
    assert answer["further"][0] == {"id": "adr-0002-choice", "title": "Choice 2"}
    assert 0 < answer["budget"]["titles"] < 100
    records.run("config", "inject.title_tokens", "0")
    assert find_list(records.run("inject", "--primer").stdout) == []
