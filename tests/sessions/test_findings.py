from __future__ import annotations

import os
from pathlib import Path

import pytest

from memtool.errors import MemtoolError
from memtool.sessions import findings, journal, lifecycle, model, retention, store
from memtool.sessions.extract import extraction
from memtool.sessions.model import Message, Session
from memtool.sessions.store import FINDINGS, Sessions

RULE = "Remember: always use uv in this repository."
OTHER = "We decided that carts must only be in Postgres."


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    made = Sessions(str(tmp_path / "sessions"))
    made.create(Session("ses-a", 1, agent="claude"))
    return made


def say(sessions: Sessions, id: str, *texts: str) -> None:
    store.add(sessions, id, [Message(0, "user", text) for text in texts], 1)


def learned(sessions: Sessions, id: str = "ses-a") -> list[str]:
    return [finding.content for finding in findings.learn(sessions, id).findings]


def test_findings_are_kept_and_follow_the_messages(sessions: Sessions):
    """New messages give new findings; existing ones are not written again."""
    say(sessions, "ses-a", RULE)
    assert learned(sessions) == ["Always use uv in this repository."]
    size = os.path.getsize(sessions.path("ses-a", FINDINGS))
    assert learned(sessions) == ["Always use uv in this repository."]
    assert os.path.getsize(sessions.path("ses-a", FINDINGS)) == size
    say(sessions, "ses-a", OTHER)
    assert len(learned(sessions)) == 2
    assert (
        findings.read_learned(sessions, "ses-a").findings
        == findings.learn(sessions, "ses-a").findings
    )


def test_what_is_taken_back_later_is_withdrawn(sessions: Sessions):
    """A finding that the whole session no longer gives is gone, though once it was written."""
    say(sessions, "ses-a", RULE)
    (finding,) = findings.learn(sessions, "ses-a").findings
    say(sessions, "ses-a", "scratch that")
    assert learned(sessions) == []
    assert findings.read_learned(sessions, "ses-a").findings == ()
    assert set(findings.read_all_ever(sessions, "ses-a")) == {finding.id}


def test_nothing_is_written_unless_asked(sessions: Sessions):
    """A dry look answers the same and leaves no journal."""
    say(sessions, "ses-a", RULE)
    dry = findings.learn(sessions, "ses-a", is_kept=False).findings
    assert not os.path.exists(sessions.path("ses-a", FINDINGS))
    assert dry == findings.learn(sessions, "ses-a").findings


def test_a_fork_keeps_the_findings_of_its_parent_and_reads_its_own_messages(sessions: Sessions):
    """They stay the parent's, and what the fork says itself is added."""
    say(sessions, "ses-a", RULE, "fine", "fine")
    learned(sessions)
    head, rows = lifecycle.fork(sessions, "ses-a", Session("ses-b", 2))
    sessions.create(head, rows)
    say(sessions, "ses-b", OTHER)
    inherited = findings.learn(sessions, "ses-b").findings
    assert [finding.session for finding in inherited] == ["ses-a", "ses-b"]


def test_an_empty_and_an_unknown_session(sessions: Sessions):
    """An empty session gives no findings; an unknown one is an error."""
    assert learned(sessions) == []
    with pytest.raises(MemtoolError, match="no session is called"):
        findings.learn(sessions, "ses-z")


def test_findings_outlive_pruned_messages(sessions: Sessions):
    """Findings stay after their messages are removed."""
    say(sessions, "ses-a", RULE)
    before = learned(sessions)
    lifecycle.end(sessions, "ses-a", "", 2)
    retention.prune(Sessions(sessions.directory, most_total=1))
    assert learned(sessions) == before


def test_findings_on_messages_that_are_no_longer_read_stay(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
):
    """Of a very long session only the last messages are read; that takes nothing back."""
    say(sessions, "ses-a", RULE)
    learned(sessions)
    monkeypatch.setattr(extraction, "MAX_MESSAGES", 3)
    say(sessions, "ses-a", "fine", "fine", OTHER)
    expected = ["Always use uv in this repository.", OTHER]
    dry = findings.learn(sessions, "ses-a", is_kept=False)
    assert [finding.content for finding in dry.findings] == expected
    assert learned(sessions) == expected


def test_foreign_and_torn_rows_are_passed_over(sessions: Sessions):
    """A journal of another version or hand gives what can be read."""
    say(sessions, "ses-a", RULE)
    learned(sessions)
    journal.append(sessions.path("ses-a", FINDINGS), [{"id": "f-x"}, {"id": 3, "content": []}])
    with open(sessions.path("ses-a", FINDINGS), "ab") as file:
        file.write(b'{"id": "f-y", "cont')
    assert [finding.content for finding in findings.read_learned(sessions, "ses-a").findings] == [
        "Always use uv in this repository."
    ]


def test_a_secret_in_what_a_reader_makes_is_kept_nowhere(sessions: Sessions):
    """Messages are clean, and a finding that is not is left out."""
    secret = "ghp_" + "a8Kd93jfLq02mZxV7bNc61PtRwYs45HgUeJi"

    def leaking(messages, session, agent):
        made = extraction.extract(messages, session, agent)
        return tuple(finding.replace(content=f"The token is {secret}.") for finding in made)

    say(sessions, "ses-a", RULE)
    assert findings.learn(sessions, "ses-a", leaking, "leaking").findings == ()
    assert secret not in Path(sessions.path("ses-a", FINDINGS)).read_text(encoding="utf-8")


def test_rules_do_not_replace_what_a_model_has_read(sessions: Sessions):
    """Once a model has read all messages, the rules leave its words alone."""

    def model(messages, session, agent):
        made = extraction.extract(messages, session, agent)
        return tuple(finding.replace(title="reworded") for finding in made)

    say(sessions, "ses-a", RULE)
    findings.learn(sessions, "ses-a", model, "model")
    assert [finding.title for finding in findings.learn(sessions, "ses-a").findings] == ["reworded"]


def test_a_row_reads_back_as_the_finding():
    """Nothing of a finding is lost in its row."""
    (finding,) = extraction.extract([Message(1, "user", RULE, moment=9)], "ses-a", "claude")
    assert model.read_finding(finding.plain()) == finding


@pytest.mark.parametrize(
    "change",
    [
        {"id": ""},
        {"content": 1},
        {"importance": 2},
        {"importance": True},
        {"messages": ["1"]},
        {"confidence": "sure"},
        {"tags": "a"},
        {"fields": []},
        {"session": None},
    ],
    ids=str,
)
def test_a_row_that_is_no_finding_is_none(change: dict[str, object]):
    """Every field is checked; nothing odd comes in."""
    (finding,) = extraction.extract([Message(1, "user", RULE)], "ses-a")
    assert model.read_finding(finding.plain() | change) is None


def test_the_id_is_the_same_for_the_same_statement_of_a_session():
    """Case, white space and the last mark do not matter; the session does."""
    assert model.make_finding_id("s", "Use  UV.") == model.make_finding_id("s", "use uv")
    assert model.make_finding_id("s", "use uv") != model.make_finding_id("t", "use uv")
    assert model.compute_fingerprint("Use  UV.") == model.compute_fingerprint("use uv")


def test_a_session_is_read_again_when_a_twentieth_of_it_is_new(sessions: Sessions):
    """A short one with every message, a long one now and then."""
    assert not findings.is_due(sessions, "ses-a")
    say(sessions, "ses-a", RULE)
    assert findings.is_due(sessions, "ses-a")
    say(sessions, "ses-a", *(f"message {number}" for number in range(2, 61)))
    learned(sessions)
    say(sessions, "ses-a", "61", "62")
    assert not findings.is_due(sessions, "ses-a")
    say(sessions, "ses-a", "63")
    assert findings.is_due(sessions, "ses-a")


def test_a_session_that_was_opened_again_is_not_pruned(sessions: Sessions):
    """Another process may add to it between the choice and the lock."""
    say(sessions, "ses-a", RULE)
    assert retention._empty(sessions, "ses-a", sessions.folder("ses-a")) == 0
    assert len(sessions.messages("ses-a")[0]) == 1
    assert sessions.head("ses-a").status == "open"


def test_only_wanted_categories_are_kept(sessions: Sessions):
    """Another choice is another reading: what is not wanted is withdrawn, and may come back."""
    say(sessions, "ses-a", RULE, OTHER)
    assert len(learned(sessions)) == 2
    decisions = sessions.replace(categories=("decision",))
    assert [finding.category for finding in findings.learn(decisions, "ses-a").findings] == [
        "decision"
    ]
    size = os.path.getsize(sessions.path("ses-a", FINDINGS))
    assert [finding.category for finding in findings.learn(decisions, "ses-a").findings] == [
        "decision"
    ]
    assert os.path.getsize(sessions.path("ses-a", FINDINGS)) == size
    assert findings.learn(sessions.replace(categories=("error",)), "ses-a").findings == ()
    assert len(learned(sessions)) == 2


def test_a_models_words_are_kept_for_the_same_categories(sessions: Sessions):
    """Rules do not read again what a model has read, unless other categories are wanted."""
    say(sessions, "ses-a", RULE, OTHER)
    chosen = sessions.replace(categories=("decision", "error"))
    by_model = findings.learn(chosen, "ses-a", extraction.extract, "clever")
    assert findings.learn(chosen, "ses-a") == by_model
    assert findings.learn(sessions, "ses-a").by == findings.RULES


def test_nothing_is_extracted_where_nobody_wants_it(sessions: Sessions):
    """Messages are stored, earlier findings stay, and nothing is due."""
    say(sessions, "ses-a", RULE)
    off = sessions.replace(is_extracting=False)
    assert findings.learn(off, "ses-a").findings == ()
    assert not findings.is_due(off, "ses-a")
    assert len(learned(sessions)) == 1
    say(sessions, "ses-a", OTHER)
    assert len(findings.learn(off, "ses-a").findings) == 1
