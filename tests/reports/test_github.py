from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.reports import format_report
from memtool.reports.github import MAX_ANNOTATIONS
from memtool.reports.report import Finding, Report

COMMAND = re.compile(r"::(error|warning) ([^:]*)::(.*)")
HOSTILE = (
    "::set-env name=PATH::/tmp",
    "##[error]gone",
    "one\n::error::two",
    "one\r::stop-commands::x",
    "one\u2028::error::two\x85::add-mask::three",
    "a,title=other::b",
    "100% %0A::error::x",
    "\x1b[2J\x00\ud800",
    "`x` <b> @team",
)


def make_report(*findings: Finding) -> Report:
    return Report("check", "Problems", "1 file checked", {"bad-value": "a value"}, findings)


def make_finding(text: str = "bad", **changes: str | int) -> Finding:
    made = Finding("bad-value", "error", "error: bad-value", text, "a.md", 3)
    return made.replace(**changes)


def parse(line: str) -> tuple[str, dict[str, str], str]:
    """Read a command as the runner does: the first `::` after the name ends the properties."""
    match = COMMAND.fullmatch(line)
    assert match, line
    rows = [pair.split("=", 1) for pair in match[2].split(",")]

    def unescape(text: str) -> str:
        for code, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
            text = text.replace(code, char)
        return text

    return match[1], {key: unescape(value) for key, value in rows}, unescape(match[3])


def test_a_finding_is_an_annotation_at_its_line() -> None:
    """File, line and title are properties, the message and its hint are the text."""
    finding = make_finding("it is 5 % off: x, y", path="a,b:c.md", hint="memtool fix\nor wait")
    first, last = format_report(make_report(finding), "github").split("\n")
    assert parse(first) == (
        "error",
        {"file": "a,b:c.md", "line": "3", "title": "error: bad-value"},
        "it is 5 % off: x, y\nmemtool fix\nor wait",
    )
    assert last == "1 file checked"


def test_a_finding_of_a_whole_file_is_at_its_first_line() -> None:
    """GitHub counts lines from 1."""
    line = format_report(make_report(make_finding(line=0)), "github").split("\n")[0]
    assert parse(line)[1]["line"] == "1"


@given(st.one_of(st.sampled_from(HOSTILE), st.text()), st.sampled_from(("message", "path", "hint")))
def test_no_text_is_another_command(text: str, place: str) -> None:
    """Whatever a memory or path holds, each line but the last is exactly the command of ours."""
    findings = make_finding(**{place: text}), make_finding("second", level="warning")
    lines = re.split(r"[\r\n]", format_report(make_report(*findings), "github"))
    assert [parse(line)[0] for line in lines[:-1]] == ["error", "warning"]
    assert lines[-1] == "1 file checked"
    if place == "path" and not re.search("[\ud800-\udfff]", text):
        assert parse(lines[0])[1]["file"] == text


def test_what_github_would_drop_is_counted() -> None:
    """Errors come first, and of each level as many as it shows."""
    warnings = [make_finding(str(n), level="warning") for n in range(MAX_ANNOTATIONS + 3)]
    rows = format_report(make_report(*warnings, make_finding("worst")), "github").split("\n")
    assert parse(rows[0])[0] == "error"
    assert rows[-2:] == ["3 warnings more", "1 file checked"]
    assert len(rows) == MAX_ANNOTATIONS + 3


@pytest.mark.parametrize("name", ["github", "sarif"])
def test_what_is_settled_is_not_annotated(name: str) -> None:
    """A decision that the change upholds needs nobody."""
    assert "settled text" not in format_report(
        make_report(make_finding("settled text", level="settled")), name
    )
