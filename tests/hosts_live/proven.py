"""The table of what was proven in which client, as it is in docs/agents.md."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "agents.md"
SCENARIOS = (
    "primer and block once",
    "warning at an edit once",
    "warning at a shell command once",
    "failure before the command runs",
    "block of AGENTS.md",
    "each once with hooks of user and project",
    "works in a subdirectory",
    "nothing again on resume",
    "primer after a compaction",
    "short primer for subagents",
    "block for the task of a subagent",
    "rule and fix are lessons",
    "secrets kept nowhere",
    "slash commands",
    "MCP",
    "works without memtool",
    "goes on in a session for memtool",
)
BEGIN, END = "<!-- proven: begin -->\n", "<!-- proven: end -->\n"
YES, NO = "yes", "-"


def table(passed: Collection[tuple[str, str]], versions: Mapping[str, str]) -> str:
    """Return the table: a row for each scenario, a column for each client in its version."""
    names = list(versions)
    rows = [["in a real session", *(f"{name} {versions[name]}" for name in names)]]
    rows.append(["---"] * len(rows[0]))
    rows += [
        [scenario, *(YES if (scenario, name) in passed else NO for name in names)]
        for scenario in SCENARIOS
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def write_table(passed: Collection[tuple[str, str]], versions: Mapping[str, str]) -> None:
    """Write the table into the documentation; a client that did not run keeps its column."""
    text = DOCS.read_text()
    head, _begin, after = text.partition(BEGIN)
    old, _end, tail = after.partition(END)
    names, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in old.strip().split("\n")
    ]
    before = {
        (row[0], name.split()[0])
        for row in rows
        for name, cell in zip(names[1:], row[1:], strict=True)
        if cell == YES
    }
    ran = {name for _scenario, name in passed}
    untouched = {pair for pair in before if pair[1] not in ran}
    versions = {**versions, **{n: v for n, v in versions_in_docs().items() if n not in ran}}
    DOCS.write_text(f"{head}{BEGIN}\n{table({*passed, *untouched}, versions)}\n{END}{tail}")


def versions_in_docs() -> dict[str, str]:
    """Return the version of each client that the table names."""
    head = DOCS.read_text().partition(BEGIN)[2].strip().partition("\n")[0]
    cells = [cell.strip() for cell in head.strip("|").split("|")][1:]
    return dict(cell.rsplit(" ", 1) for cell in cells)
