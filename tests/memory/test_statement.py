"""The statement of an imported record is its decision, in whatever form the record is."""

from __future__ import annotations

import pytest
from conftest import make_memory

from memtool import tables
from memtool.memory.statement import MAX_STATEMENT, find_statement, has_text

NYGARD = """## Changelog

- 2025-03-01: First version

## Status

Accepted

## Context

Boats are booked by phone.

## Decision

We take bookings by web form only.

## Consequences

The phone is switched off.
"""
MADR = """**Owner:** Ada Lind
**Tickets:** 12, 14

Technical Story: #12

## Context and Problem Statement

Which store keeps the seats?

## Considered Options

* Redis
* PostgreSQL

## Decision Outcome

Chosen option: "PostgreSQL", because it is there already.

### Positive Consequences

* One store less.
"""
TEMPLATE_LEFT = """<!--
**Note:** fill this out.

Delete the comment afterwards.
-->

# KEP-7: Night boats

<!-- toc -->
- [Summary](#summary)
  - [Goals](#goals)
- [Proposal](#proposal)
<!-- /toc -->

## Release Signoff Checklist

- [ ] Agreed by the crew

## Summary

Fill out this file as best you can.

## Motivation

People wait on the pier at night.

## Proposal

### Goals

- Fewer people wait.

### The boats

Two boats run after midnight.
"""
RFC = """- Feature Name: `night_boats`
- Start Date: 2025-02-03
- RFC PR: [acme/rfcs#12](https://example.org/12)

# Summary
[summary]: #summary

Boats run after midnight if five people have booked.

# Motivation

Nobody likes to wait.
"""
PEP = """Abstract
========

Each boat gets a second horn.

Specification
=============

The horn is red.
"""
ASCIIDOC = """== Context

It was loud.

== Decision

Boats are driven by batteries.
"""
LABELS = """**Context**

It was loud.

**Decision:** Boats are driven by batteries.

**Consequences:** They are charged at night.
"""
LINES = """Context: It was loud.
Decision: Boats are driven by batteries.
Consequences: They are charged at night.
"""
Y_STATEMENT = """## Decision

In the context of *night boats*,
facing noise,

we decided for batteries,

to be quiet.
"""
GERMAN = """## Kontext

Es war laut.

## Entscheidung

Boote fahren mit Batterien.
"""
RUSSIAN = """## Контекст

Было шумно.

## Решение

Лодки плавают ночью, без шума.
"""
JAPANESE = "## 背景\n\n音が大きかった。\n\n## 決定\n\n船は電池で動く。\n"


@pytest.mark.parametrize(
    ("body", "statement"),
    [
        (NYGARD, "We take bookings by web form only."),
        (MADR, 'Chosen option: "PostgreSQL", because it is there already.'),
        (TEMPLATE_LEFT, "Two boats run after midnight."),
        (RFC, "Boats run after midnight if five people have booked."),
        (PEP, "Each boat gets a second horn."),
        (ASCIIDOC, "Boats are driven by batteries."),
        (LABELS, "**Decision:** Boats are driven by batteries."),
        (LINES, "Decision: Boats are driven by batteries."),
        (GERMAN, "Boote fahren mit Batterien."),
        (RUSSIAN, "Лодки плавают ночью, без шума."),
        (JAPANESE, "船は電池で動く。"),
    ],
)
def test_a_record_of_any_form_states_its_decision(body: str, statement: str) -> None:
    """Nygard, MADR, KEP, RFC, PEP, AsciiDoc, labels in place of headings, and other languages."""
    assert find_statement(body) == statement


@pytest.mark.parametrize(
    "text",
    [
        "- [Goals](#goals)\n- [Proposal](#proposal)",
        "* [Index](README.md)",
        "**Bead:** bead-12 (with bead-13)",
        "- **Name**: night boats",
        "Status: accepted by the crew",
        ":Owner: Ada Lind",
        "- 2025-03-03: Initial commit",
        "03-11-2025: first draft",
        "* {date}: {change}",
        "TODO(ada)",
        "TBD",
        "Approved",
        "Fill out this file as best you can.",
        "<!-- What was decided? -->",
        "What is the change that we propose?",
        "https://example.org/12",
        "Implemented in <https://example.org/12>",
        "[![build](a.svg)](b)",
        "<img src='a.png'>",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "> This section describes the forces.",
        "_This record is deferred._",
        "```\ncode\n```",
        ".. contents::\n   :local:",
        "---",
    ],
)
@pytest.mark.parametrize("heading", ["", "## Decision\n\n"])
def test_what_says_nothing_about_the_subject_is_passed_over(text: str, heading: str) -> None:
    """A table of contents, a label, a date, a template, an address or a picture is no statement."""
    body = f"{heading}{text}\n\n{heading.replace('Decision', 'Details')}Boats run at night.\n"
    assert find_statement(body) == "Boats run at night."


@pytest.mark.parametrize(
    ("body", "statement"),
    [
        ("## Decision\n\nUse:\n\n- Redis\n- a queue\n", "Use: - Redis - a queue"),
        ("## Decision\n\nUse:\n- Redis. It is fast.\n- a queue\n", "Use: - Redis. - a queue"),
        ("## Decision\n\nGone are:\n\n- [a](b)\n- [c](d)\n", "Gone are: - [a](b) - [c](d)"),
        ("## Decision\n\nWe use it. Like this:\n\n```\nx\n```\n", "We use it."),
        ("## Decision\n\n1. Use Redis.\n\n2. Use a queue.\n", "1. Use Redis. 2. Use a queue."),
        (
            Y_STATEMENT,
            "In the context of *night boats*, facing noise, we decided for batteries, to be quiet.",
        ),
        ("## Decision\n\nThese were decided:\n\n## Details\n\nBoats run.\n", "Boats run."),
        ("## Option B: Batteries\n\nQuiet.\n\n## Decision\n\nOption B\n", "Option B (Batteries)"),
        ("Boats run at night.\n\n## Summary\n\nMore.\n", "Boats run at night."),
        ("aka boats\n\n## Decision\n\nBoats run.\n", "Boats run."),
        ("```\n# Decision\n```\n\nBoats run.\n", "Boats run."),
        ("Use `<!-- x -->` to hide.\n", "Use `<!-- x -->` to hide."),
    ],
)
def test_a_statement_is_complete(body: str, statement: str) -> None:
    """A colon brings its list, an option its title; a sentence before any heading is the claim."""
    assert find_statement(body) == statement


def test_a_long_statement_ends_with_a_sentence() -> None:
    """What is shown of a long paragraph is sentences, not a part of one."""
    statement = find_statement("Boats run at night. " * 100)
    assert statement.endswith("Boats run at night. …")
    assert MAX_STATEMENT - 20 < len(statement) <= MAX_STATEMENT


@pytest.mark.parametrize(
    "body",
    ["<!--" * 20_000, "[" * 60_000, "{" * 60_000, "- " * 30_000, "**" * 30_000, "a:" * 30_000],
)
def test_a_body_of_signs_is_read_in_a_moment(body: str) -> None:
    """No body makes reading take longer than its length allows."""
    assert len(find_statement(f"## Decision\n\n{body}\n\nMore\n")) <= MAX_STATEMENT


def test_a_text_without_prose_is_still_a_text() -> None:
    """A memory that is only a table, an address or a command is shown as it is."""
    for body in ("| a |\n", "https://example.org\n", "```\nmake all\n```\n", "TBD\n"):
        assert has_text(body)
        assert find_statement(body) == " ".join(body.split())
    assert not has_text("# Title\n\n<!-- nothing\n\nhere -->\n\n---\n")


@pytest.mark.parametrize(
    "furniture",
    [
        "![a harbor](harbor.png)",
        "[![build](https://img.shields.io/build.svg)](https://example.org)",
        '<img src="harbor.png">',
        "- [Summary](#summary)\n- [Proposal](#proposal)",
        "**Status:** accepted",
        "- {date}: {changelog}",
        "# Heading\n\nTitle\n=====",
    ],
)
def test_furniture_is_no_statement(furniture: str) -> None:
    """Neither alone nor before a table, of which the rule says nothing either."""
    assert find_statement(f"{furniture}\n") == ""
    table = "| port | use |\n|---|---|\n| 80 | web |\n"
    assert find_statement(f"{furniture}\n\n{table}") == "| port | use | | 80 | web |"


def test_each_name_of_a_section_has_one_meaning() -> None:
    """A word that means two things in two languages has the better part in both."""
    rows = tables.read_rows("memory/section_names")
    assert {part for part, _language, _name in rows} == {
        "aside",
        "decision",
        "proposal",
        "reason",
        "summary",
    }
    parts: dict[str, set[str]] = {}
    for part, _language, name in rows:
        parts.setdefault(name, set()).add(part)
    assert [name for name, several in parts.items() if len(several) > 1] == []


def test_the_opening_of_a_memory_is_its_statement() -> None:
    """A memory of our own begins with its claim, whatever its sections say."""
    body = "Sessions live in Redis.\n\n## Chosen\n\nRedis, as they expire.\n"
    assert make_memory("dec-a", body).statement == "Sessions live in Redis."


def test_the_opening_of_a_record_is_not_its_decision() -> None:
    """It may be a note on its status; without a section on the decision it is the claim."""
    body = "Superseded by [12](0012-boats.md).\n\n## Chosen\n\nRedis, as they expire.\n"
    source = "file:docs/adr/0003-redis.md"
    record = make_memory("dec-a", body, source=(source,))
    assert record.statement == record.paragraph == "Redis, as they expire."
    body = "Sessions live in Redis.\n\n## Context\n\nThey expire.\n"
    assert make_memory("dec-a", body, source=(source,)).statement == "Sessions live in Redis."


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("**Use Redis.** Specifically:\n\n### Rules\n\nNone.", "**Use Redis.**"),
        ("Therefore, we should\n\n- use Redis.\n- drop files.", ""),
        ("Adopt **Option B**.", "Adopt **Option B**. (Redis)"),
    ],
)
def test_a_decision_is_a_whole_sentence(text: str, statement: str) -> None:
    """It is cut before what it only announces, or comes with it, and an option has its name."""
    options = "## Option A: files\n\nSlow.\n\n## Option B \u2014 Redis\n\nFast.\n"
    body = f"{options}\n## Decision\n\n{text}\n"
    whole = "Therefore, we should - use Redis. - drop files."
    assert find_statement(body) == (statement or whole)
