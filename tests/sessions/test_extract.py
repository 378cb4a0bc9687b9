from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import make_memory

from memtool.inject.block import FORMATS, build_passage, write_block, write_passage
from memtool.sessions.extract.extraction import (
    MAX_FINDINGS,
    MAX_MESSAGES,
    MAX_STATEMENTS,
    extract,
)
from memtool.sessions.model import INTENT, Message
from memtool.sessions.suggestion import asks_to_keep

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "statements.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
"""Messages of real sessions, rewritten, with names changed: what a careful reader makes of them.

`keep` changes what an agent should do in another session, `weak` is defensible both ways, `oneoff`
is about the work of the moment, and `no` is everything else.
"""
MIN_PRECISION, MIN_RECALL = 0.85, 0.45
TRAPS = (
    "Here is how we always deploy.",
    "Here are the rules that you must only read today.",
    "This should make it easier to change in the future.",
    "Le bouton est toujours grisé quand la liste est vide.",
    "Rules for the helpers:\n- Merge the flow\n- Risk list and how to handle each",
    "```\nnever use eval\n```",
    "> From now on always squash.",
    "<ci-event>\nFrom now on always squash the commits.\n</ci-event>",
    "<note>From now on always squash the commits.</note> <br> <b>See above.",
    "Warning: 'selectedId' is assigned a value but never used.",
    "(node:12) DeprecationWarning: this must not be used in the future",
    "Should we never log the customer id?",
    "For now always use the old endpoint.",
    "When the page opens it should always be sorted by date.",
    "It still never loads the list.",
)


def make_messages(*texts: str) -> list[Message]:
    """Return messages of a person."""
    return [Message(number, "user", text) for number, text in enumerate(texts, 1)]


def contents(messages: list[Message]) -> list[str]:
    return [finding.content for finding in extract(messages, "ses-a")]


def test_real_messages_give_what_a_careful_reader_keeps():
    """Precision and recall stay above their floors; no message about the moment gives a finding."""
    hits = [row for row in ROWS if contents(make_messages(row["text"]))]
    labels = [row["label"] for row in hits]
    keeps = labels.count("keep")
    assert keeps >= MIN_PRECISION * len(hits)
    assert keeps >= MIN_RECALL * sum(row["label"] == "keep" for row in ROWS)
    assert {"oneoff", "no"}.isdisjoint(labels)


@pytest.mark.parametrize("text", TRAPS)
def test_what_only_looks_like_a_rule_gives_nothing(text: str):
    """The traps of real sessions: openings, reports, pasted text, warnings of tools, the moment."""
    assert contents(make_messages(text)) == []
    assert not asks_to_keep(text)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("Remember that the crons run in UTC.", "The crons run in UTC."),
        ("Bitte merk dir, dass wir nur Postgres benutzen.", "Wir nur Postgres benutzen."),
        ("请记住, 我们只用 PostgreSQL。", "我们只用 PostgreSQL。"),
        ("Lembre-se que o servidor reinicia à noite.", "O servidor reinicia à noite."),
        ("Запомни, что тесты идут в UTC.", "Тесты идут в UTC."),
    ],
)
def test_what_a_person_asks_to_remember_is_their_intent(text: str, content: str):
    """In any language of the table, and however long: the words after the introduction."""
    long = f"{text} {'It is so. ' * 300}" if text.isascii() else text
    (finding,) = extract(make_messages(long), "ses-a")
    assert (finding.content, finding.signals) == (content, (INTENT,))


def test_what_a_rule_recognises_is_no_intent_and_at_most_three_are_shown():
    """The best ones stay; what the person asked to remember is never left out."""
    texts = [f"Always put part {n} into its own folder." for n in range(6)]
    findings = extract(make_messages(*texts, "I prefer small changes to large ones."), "ses-a")
    assert len(findings) == MAX_STATEMENTS
    assert {finding.signals for finding in findings} == {()}
    wishes = [f"Remember that part {n} has a folder of its own." for n in range(5)]
    contents_ = contents(make_messages(*texts, *wishes))
    assert len(contents_) == 5
    assert all("of its own" in content for content in contents_)


def test_a_pasted_message_gives_nothing_but_what_it_asks_to_remember():
    """A specification of many sentences is full of musts that are no rules for an agent."""
    specification = " ".join(f"Part {n} must only read table {n}." for n in range(30))
    assert contents(make_messages(specification)) == []
    assert contents(make_messages(f"{specification} Remember that this is version two.")) == [
        "This is version two."
    ]


def test_only_people_are_listened_to():
    """The same words are a finding of a person's, and none of an assistant's or a tool's."""
    text = "From now on always use uv in this repository."
    for role in ("assistant", "tool", "system"):
        assert contents([Message(1, role, text)]) == []
    assert contents(make_messages(text)) == ["From now on always use uv in this repository."]


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_what_memtool_injected_is_never_learned(form):
    """A block in any format, even one that was cut off, gives no finding."""
    memory = make_memory("dec-a", "From now on always use uv, we decided so.\n")
    block = write_block([write_passage(build_passage(memory, "dec-a"), form)], form)
    assert contents(make_messages(f"{block}\nWhat now?")) == []
    assert contents(make_messages(block[: len(block) * 3 // 4])) == []


def test_the_same_messages_give_the_same_findings():
    """Neither the order of rules' inner tables nor repetition changes an answer."""
    messages = make_messages(*(row["text"] for row in ROWS))
    assert extract(messages, "ses-a") == extract(list(messages), "ses-a")


def test_a_statement_said_twice_is_one_finding_with_both_messages():
    """A repetition in a session adds evidence, not another finding."""
    findings = extract(
        make_messages("Never retry payments blindly.", "never retry payments blindly"), "ses-a"
    )
    assert [finding.messages for finding in findings] == [(1, 2)]


@pytest.mark.slow
def test_a_very_long_session_is_bounded():
    """Of more than ten thousand messages the last are read, and findings have a limit."""
    texts = [f"Remember that tool{n} is for part{n} of it." for n in range(12_000)]
    findings = extract(make_messages(*texts), "ses-a")
    assert len(findings) == MAX_FINDINGS
    assert min(finding.messages[0] for finding in findings) > 12_000 - MAX_MESSAGES


def test_hostile_texts_are_read_to_their_end():
    """Unclosed fences, tags and blocks, endless lines and odd characters give no error."""
    odd = [
        "<aa>" * 4_000 + "</b>",
        "```" * 999,
        "[memory 12345678] " * 900,
        "a/" * 9_000,
        "\0\ud800",
        "never " * 9_000,
        "- " * 5_000,
        "> " * 5_000,
        "1. " * 5_000,
        "We decided \u202e to go",
    ]
    for text in odd:
        for role in ("user", "assistant", "tool"):
            extract([Message(1, role, text, tool="Bash" if role == "tool" else "")], "ses-a")


def test_no_messages_no_findings():
    """An empty session has taught nothing."""
    assert extract([], "ses-a") == ()


def test_a_finding_names_who_worked_and_when():
    """The agent of its messages, else of the session, and the moment of the last message."""
    message = Message(1, "user", "Never retry payments blindly.", moment=1_772_000_000)
    (finding,) = extract([message], "ses-a", "claude")
    assert (finding.field("agent"), finding.field("said")) == ("claude", "2026-02-25T06:13:20Z")
