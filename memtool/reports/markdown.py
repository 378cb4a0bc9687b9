"""Markdown for the comment of a pull or merge request.

The first line is a hidden mark, by which the comment is found again and updated. Texts of others
are in code spans, in which no markup, HTML, link, mention, reference to an issue or command of a
forge counts; none of them begins a line. A comment of GitHub has at most 65,536 characters, and
those of `review` and `check` go into one.
"""

from __future__ import annotations

import re

from memtool.reports.report import LEVELS, to_line
from memtool.value import format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.reports.report import Finding, Report

MAX_CHARS = 24_000
MAX_PLACES = 5
MAX_HINTS = 3
MAX_SPAN_CHARS = 240
_BACKTICKS = re.compile("`+")


def format_report(report: Report) -> str:
    """Return a report as a heading, its summary, and an item for each memory or problem."""
    head = [f"<!-- memtool {report.verb} -->", f"### {report.title}", "", report.summary]
    groups = _group(report)
    items = [*map(_format_item, groups)]
    size = sum(len(line) + 1 for line in (*head, report.advice)) + 200
    shown = 0
    for item in items:
        size += len(item) + 1
        if size > MAX_CHARS:
            break
        shown += 1
    tail = [f"- and {format_count(len(items) - shown, 'item')} not shown"]
    rows = [*head, *[""] * bool(items), *items[:shown], *tail * (shown < len(items))]
    if report.advice and any(finding.level != LEVELS[-1] for finding in report.findings):
        rows += ["", report.advice]
    return "\n".join(rows)


def _group(report: Report) -> list[list[Finding]]:
    """Return the findings that differ in their place only, the worst first."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in report.findings:
        key = (finding.level, finding.code, finding.id, finding.by, finding.message, finding.hint)
        groups.setdefault(key, []).append(finding)
    return sorted(groups.values(), key=lambda group: LEVELS.index(group[0].level))


def _format_item(group: list[Finding]) -> str:
    first = group[0]
    by = f" {format_span(first.by)}" * bool(first.by)
    name = f" {format_span(first.name)}" * bool(first.name)
    places = [*dict.fromkeys(_list_places(group))]
    hidden = len(places) - MAX_PLACES
    ending = f" and {hidden:,} more" * (hidden > 0)
    hints = [hint for hint in first.hint.split("\n") if hint.strip()]
    lines = [
        f"- **{first.label}**{by}:{name} {format_span(first.message)}",
        f"  in {', '.join(map(format_span, places[:MAX_PLACES]))}{ending}",
        *(f"  → {format_span(hint)}" for hint in hints[:MAX_HINTS]),
    ]
    return "  \n".join(lines)


def _list_places(group: list[Finding]) -> Iterator[str]:
    for finding in group:
        yield f"{finding.path}:{finding.line}" if finding.line else finding.path


def format_span(text: str) -> str:
    """Return a text as a code span, whatever backticks it holds; empty for an empty text."""
    line = to_line(text, MAX_SPAN_CHARS)
    if not line:
        return ""
    fence = "`" * (max(map(len, _BACKTICKS.findall(line)), default=0) + 1)
    pad = " " * (line[0] == "`" or line[-1] == "`")
    return f"{fence}{pad}{line}{pad}{fence}"
