"""GitHub's workflow commands: an annotation for each finding, at its line.

A command is `::error file=a.py,line=1,title=text::message`. The runner takes a line for a command
if it begins with `::`, or else if `##[` occurs in it. So a line here is a command of ours, or has
only words of ours; line ends, `%`, and in properties `:` and `,`, are escaped, as `%0A`.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from memtool.reports.report import list_open, to_line, to_lines
from memtool.value import format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.reports.report import Finding, Report

MAX_ANNOTATIONS = 10
"""GitHub shows 10 errors and 10 warnings of a step, and drops the others."""
MAX_TITLE_CHARS = 200


def format_report(report: Report) -> str:
    """Return a line for each open finding, errors first, and one with the summary."""
    findings = [*list_open(report.findings)]
    rows: list[str] = []
    for level in dict.fromkeys(finding.level for finding in findings):
        same_level = [finding for finding in findings if finding.level == level]
        rows += [_format_command(row, report.advice) for row in same_level[:MAX_ANNOTATIONS]]
        hidden = len(same_level) - MAX_ANNOTATIONS
        if hidden > 0:
            rows.append(f"{format_count(hidden, level)} more")
    return "\n".join([*rows, report.summary])


def _format_command(finding: Finding, advice: str) -> str:
    properties = {
        "file": finding.path.encode(errors="backslashreplace").decode(),
        "line": str(max(finding.line, 1)),
        "title": to_line(f"{finding.label} {finding.by}", MAX_TITLE_CHARS),
    }
    named = ",".join(f"{key}={_escape_property(value)}" for key, value in properties.items())
    message = finding.message + f" ({finding.name})" * bool(finding.name)
    next_step = to_lines(finding.hint) if finding.is_task else advice
    hint = "" if finding.is_task else to_lines(finding.hint)
    data = "\n".join(filter(None, (to_line(message), hint, next_step)))
    return f"::{finding.level} {named}::{_escape_data(data)}"


def _escape_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")
