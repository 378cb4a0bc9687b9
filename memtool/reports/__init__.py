"""Reports: findings about files as text for forges and code scanners.

A verb turns its result into a `Report`. A format is a module with a function `format_report` and a
row in `FORMATS`; it knows no verb.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.reports.report import Report

TEXT = "text"
"""The format for people at a terminal, which each verb makes itself."""
FORMATS: dict[str, str] = {
    TEXT: "",
    "markdown": "memtool.reports.markdown",
    "github": "memtool.reports.github",
    "sarif": "memtool.reports.sarif",
}
"""The module of each format."""


def format_report(report: Report, name: str) -> str:
    """Return a report in one of the formats."""
    module = __import__(FORMATS[name], fromlist=["format_report"])
    return str(module.format_report(report))
