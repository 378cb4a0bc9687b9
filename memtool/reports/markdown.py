"""Markdown for the comment of a pull or merge request.

The first line is a hidden mark, by which the comment is found again and updated. Texts of others
are in code spans, in which no markup, HTML, link, mention, reference to an issue or command of a
forge counts; none of them begins a line. A comment of GitHub has at most 65,536 characters, and
those of `review` and `check` go into one.
"""

from __future__ import annotations

import re

from memtool.reports.report import LEVELS, to_line
from memtool.value import first_few, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.reports.report import Finding, Report, Task, TaskGroup

MAX_CHARS = 24_000
MAX_PLACES = 5
MAX_HINTS = 3
MAX_SPAN_CHARS = 240
MAX_GROUPS = 10
MAX_TASKS = 30
MAX_TITLES = 3
MAX_INDENTED = 3
"""Causes and tasks that are shown, titles of one cause, and levels of indented tasks."""
MAX_SETTLED = 10
_BACKTICKS = re.compile("`+")


def format_report(report: Report) -> str:
    """Return a report as a heading, its summary, and an item for each memory or problem."""
    mark = f"<!-- memtool {report.verb} -->"
    head = [mark, *_format_tasks(report), f"### {report.title}", "", report.summary]
    if report.settled:
        names = first_few([*map(format_span, report.settled)], MAX_SETTLED)
        head += ["", f"Settled by this change: {names}"]
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
    is_open = any(each.level != LEVELS[-1] and not each.is_task for each in report.findings)
    if report.advice and is_open:
        rows += ["", report.advice]
    return "\n".join(rows)


def _format_tasks(report: Report) -> list[str]:
    """Return a list of tasks for each cause, and what to do."""
    if not report.tasks:
        return []
    rows = [f"### {report.task_title}", ""]
    room = MAX_TASKS
    for group in report.tasks[:MAX_GROUPS]:
        rows += [_format_cause(group), "", *map(_format_task, group.tasks[:room])]
        hidden = len(group.tasks) - room
        rows += [f"- and {format_count(hidden, 'memory', 'memories')} not shown"] * (hidden > 0)
        room = max(room - len(group.tasks), 0)
        places = [*map(format_span, dict.fromkeys(group.places))]
        rows += [f"- named in {first_few(places, MAX_PLACES)}"] * bool(places)
        rows.append("")
    hidden = len(report.tasks) - MAX_GROUPS
    rows += [f"- and {format_count(hidden, 'cause')} not shown", ""] * (hidden > 0)
    command = f"First {format_span(report.task_command)}. " if report.task_command else ""
    return [*rows, command + report.task_advice, ""]


def _format_cause(group: TaskGroup) -> str:
    """Return what is no longer so, and what became of it: `**old** is now **new**`."""
    branch = f", on {format_span(group.branch)}" * bool(group.branch)
    titles = [f"**{format_span(title)}**" for title in group.titles[:MAX_TITLES]]
    colon = ":" * bool(branch and titles)
    ending = f" {' and '.join(titles)}" * bool(titles)
    return f"**{format_span(group.subject)}** {group.clause}{branch}{colon}{ending}"


def _format_task(task: Task) -> str:
    indent = "  " * min(task.depth - 1, MAX_INDENTED)
    return f"{indent}- [ ] {task.label}: {format_span(task.name)} {format_span(task.title)}"


def _group(report: Report) -> list[list[Finding]]:
    """Return the findings that differ in their place only, the worst first."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in report.findings:
        if finding.is_task:
            continue
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
