"""SARIF 2.1.0, the format of code scanners: a result for each open finding, a rule for each code.

The fingerprint of a result has its code, its memory or file, and its message, but no line and no
commit. So a scanner knows it again after lines were added above it.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from typing import Any
from urllib.parse import quote

from memtool.reports.report import list_open, to_line, to_lines
from memtool.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.reports.report import Finding, Report

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
VERSION = "2.1.0"
FINGERPRINT = "memtoolFinding/v1"
ROOT = "%SRCROOT%"
"""The name that scanners have for the top of the repository."""
MAX_RESULTS = 5_000
"""GitHub reads 25,000 results of a file, and shows 5,000."""
_LINES = re.compile(r"\blines? [\d,]+(?:(?:-| to | and )[\d,]+)?")


def format_report(report: Report) -> str:
    """Return a report as a SARIF log with one run."""
    codes = sorted(report.rules)
    findings = [*list_open(report.findings)][:MAX_RESULTS]
    seen: Counter[str] = Counter()
    results = []
    for finding in findings:
        fingerprint = _compute_fingerprint(finding)
        seen[fingerprint] += 1
        results.append(
            _build_result(finding, codes.index(finding.code), f"{fingerprint}:{seen[fingerprint]}")
        )
    driver = {
        "name": f"memtool {report.verb}",
        "version": __version__,
        "rules": [_build_rule(code, report) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"memtool/{report.verb}/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "the top of the repository"}}},
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": VERSION, "runs": [run]}, indent=2)


def _build_rule(code: str, report: Report) -> dict[str, Any]:
    meaning = report.rules[code]
    sentence = meaning[:1].upper() + meaning[1:] + "."
    words = "".join(word.capitalize() for word in code.split("-"))
    return {
        "id": code,
        "name": words,
        "shortDescription": {"text": sentence},
        "fullDescription": {"text": sentence},
        "help": {"text": " ".join(filter(None, (sentence, report.advice)))},
    }


def _build_result(finding: Finding, rule: int, fingerprint: str) -> dict[str, Any]:
    label = to_line(f"{finding.label} {finding.by}")
    message = to_line(finding.message) + f" ({finding.name})" * bool(finding.name)
    text = "\n".join(filter(None, (f"{label}: {message}", to_lines(finding.hint))))
    uri = quote(finding.path.encode(errors="surrogateescape"), safe="/")
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": finding.level,
        "message": {"text": text},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": uri, "uriBaseId": ROOT},
                    "region": {"startLine": max(finding.line, 1)},
                }
            }
        ],
        "partialFingerprints": {FINGERPRINT: fingerprint},
    }


def _compute_fingerprint(finding: Finding) -> str:
    message = _LINES.sub("line", finding.message)
    parts = (finding.code, finding.id, finding.path, message)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:32]
