from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from memtool.reports import format_report
from memtool.reports.markdown import MAX_CHARS
from memtool.reports.report import Finding, Report, to_line

HOSTILE = (
    "</code><img src=x onerror=alert(1)>",
    "` @everyone ` **bold**",
    "``` ```` `",
    "[click](javascript:alert(1)) ![x](http://example.org/x.png)",
    "one\n\n# two\n- three\n/close\n```\nfour",
    "--> <!-- memtool review -->",
    "\u2028/assign @ada\u2028",
    "#1 owner/repo#2 GH-3 https://example.org",
    "$`x`$ :tada: \\` \\",
    "   ",
)
OURS = {"heading", "paragraph", "bullet_list", "list_item", "inline", "html_block"}


def make_report(*findings: Finding, advice: str = "Say so.") -> Report:
    rules = {"bad-value": "a value"}
    return Report("check", "Problems", "1 file checked", rules, findings, advice)


def make_finding(text: str = "bad", **changes: str | int) -> Finding:
    return Finding("bad-value", "error", "error: bad-value", text, "a.md", 3).replace(**changes)


def test_a_comment_begins_with_its_mark() -> None:
    """The mark is a line of its own, by which the comment is found again."""
    lines = format_report(make_report(make_finding(hint="memtool fix")), "markdown").split("\n")
    assert lines == [
        "<!-- memtool check -->",
        "### Problems",
        "",
        "1 file checked",
        "",
        "- **error: bad-value**: `bad`  ",
        "  in `a.md:3`  ",
        "  → `memtool fix`",
        "",
        "Say so.",
    ]


def test_a_memory_is_named_once_with_its_files() -> None:
    """Findings that differ in their place only are one item; after five files they are counted."""
    text = format_report(
        make_report(*(make_finding(path=f"{n}.py", line=0) for n in range(7))), "markdown"
    )
    assert text.count("- **") == 1
    assert "in `0.py`, `1.py`, `2.py`, `3.py`, `4.py` and 2 more" in text


@given(
    st.one_of(st.sampled_from(HOSTILE), st.text(), st.text("`@<>[]()#/\\|\n ab")),
    st.sampled_from(("message", "path", "hint", "by", "name")),
)
def test_no_text_is_markup(text: str, place: str) -> None:
    """Texts of others are in code spans: no HTML, mention, link, block or command of a forge."""
    finding = make_finding(**{place: text})
    tokens = MarkdownIt("commonmark").parse(format_report(make_report(finding), "markdown"))
    assert {re.sub("_(open|close)", "", token.type) for token in tokens} <= OURS
    assert [token.content for token in tokens if token.type == "html_block"] == [
        "<!-- memtool check -->\n"
    ]
    inline = [part for token in tokens for part in token.children or ()]
    kinds = {re.sub("_(open|close)", "", part.type) for part in inline}
    assert kinds <= {"text", "code_inline", "softbreak", "hardbreak", "strong"}
    plain = "".join(part.content for part in inline if part.type == "text")
    assert not set("@<>[]#`") & set(plain.replace("### ", ""))
    if place == "message" and to_line(text) and len(to_line(text)) < 200:
        spans = [part.content for part in inline if part.type == "code_inline"]
        assert to_line(text) in spans


def test_a_comment_is_far_below_the_limit_of_a_forge() -> None:
    """Items that do not fit are counted, and the advice stays."""
    findings = [make_finding(f"{n} " + "`" * 900, hint="x" * 900) for n in range(500)]
    text = format_report(make_report(*findings), "markdown")
    assert len(text) <= MAX_CHARS < 65_536 // 2
    assert re.search(r"^- and \d+ items not shown$", text, re.MULTILINE)
    assert text.endswith("\nSay so.")


def test_without_findings_there_is_no_item() -> None:
    """Nor advice: a program knows by this that nobody needs the comment."""
    assert format_report(make_report(), "markdown").split("\n")[-1] == "1 file checked"
