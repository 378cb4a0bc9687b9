from __future__ import annotations

from pathlib import Path

import pytest
from conftest import make_memory
from sessions.annotation import Score, half, matched

from memtool.inject.block import FORMATS, build_passage, write_block, write_passage
from memtool.sessions.extract import MAX_FINDINGS, MAX_MESSAGES, extract, user_rules
from memtool.sessions.extract.scene import Scene
from memtool.sessions.extract.sentences import split_sentences
from memtool.sessions.model import Message

FLOORS = {
    "tuning": (0.97, 0.85),
    "heldout": (0.9, 0.8),
    "strangers": (0.96, 0.75),
    "fresh": (0.96, 0.6),
}
"""Least precision and recall. The held-out half was looked at when the rules were done.

`strangers` and `fresh` were written before anything was changed for them. Rules that one sample
alone needed are gone (causes that an assistant names, options of a list, `let's`, `we use X`), and
with them 8 of 99 findings: recall on all sets was 0.87 and is 0.79, precision 0.99 before and now.
"""
EMPTY = {"tuning": 9, "heldout": 9, "strangers": 7, "fresh": 4}
"""Sessions of each set that hold nothing worth keeping."""
SCENE = Scene([Message(1, "user", "")])
ROWS = [
    line.split(" | ", 1)
    for line in (Path(__file__).parent / "sentences.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


def make_messages(*texts: str) -> list[Message]:
    """Return messages of a person."""
    return [Message(number, "user", text) for number, text in enumerate(texts, 1)]


def contents(messages: list[Message]) -> list[str]:
    return [finding.content for finding in extract(messages, "ses-a")]


@pytest.mark.parametrize("name", FLOORS)
def test_annotated_sessions_give_what_a_careful_reader_keeps(name: str):
    """Precision and recall on each half stay above their floors."""
    made = right = wanted = 0
    for session in half(name):
        findings = extract(session.messages, session.name)
        made += len(findings)
        right += len(matched(findings, session.expected))
        wanted += len(session.expected)
    score = Score(made, right, wanted)
    precision, recall = FLOORS[name]
    assert score.precision >= precision
    assert score.recall >= recall


@pytest.mark.parametrize("name", FLOORS)
def test_sessions_with_nothing_worth_keeping_give_nothing(name: str):
    """Of all annotated sessions that hold nothing, not one gives a finding."""
    empty = [session for session in half(name) if not session.expected]
    assert len(empty) >= EMPTY[name]
    assert {s.name: contents(s.messages) for s in empty} == {s.name: [] for s in empty}


@pytest.mark.parametrize(("category", "text"), ROWS, ids=[row[1][:40] for row in ROWS])
def test_a_sentence_is_what_it_is(category: str, text: str):
    """Each sentence of the table is the kind of claim that the table says, or none."""
    categories = [
        claim.category
        for sentence in split_sentences(1, text)
        if not sentence.reason and (claim := user_rules.build_finding(sentence, SCENE)) is not None
    ]
    assert categories == ([] if category == "-" else [category])


def test_only_people_are_listened_to():
    """The same words are a finding of a person's, and none of an assistant's or a tool's."""
    text = "From now on always use uv in this repository."
    for role in ("assistant", "tool", "system"):
        assert contents([Message(1, role, text)]) == []
    assert contents(make_messages(text)) == ["Always use uv in this repository."]


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_what_memtool_injected_is_never_learned(form):
    """A block in any format, even one that was cut off, gives no finding."""
    memory = make_memory("dec-a", "From now on always use uv, we decided so.\n")
    block = write_block([write_passage(build_passage(memory, "dec-a"), form)], form)
    assert contents(make_messages(f"{block}\nWhat now?")) == []
    assert contents(make_messages(block[: len(block) * 3 // 4])) == []


def test_the_same_messages_give_the_same_findings():
    """Neither the order of rules' inner tables nor repetition changes an answer."""
    messages = half("tuning")[0].messages
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
    texts = [f"We decided to use tool{n} for part{n} of it." for n in range(12_000)]
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
