"""The notation of tables of phrases, and that each row of them can be found."""

from __future__ import annotations

import pytest

from memtool import tables
from memtool.authoring.phrases import MAX_GAP, PhraseRow, normalize, read_phrases
from memtool.sessions.extract.rules import IMPORTANCE, SUGGESTING

TABLES = (
    "authoring/introductions",
    "sessions/retractions",
    "sessions/statements",
    "sessions/vetoes",
)


@pytest.fixture
def row(monkeypatch: pytest.MonkeyPatch):
    """Make a row of phrases."""

    def make(phrases: str, language: str = "en") -> PhraseRow:
        monkeypatch.setattr(tables, "read_rows", lambda _name: [["rule", language, phrases]])
        return read_phrases("any")[0]

    return make


@pytest.mark.parametrize(
    ("phrases", "text", "is_there"),
    [
        ("never", "We never do.", True),
        ("never", "nevermind", False),
        ("^never", "Never do it.", True),
        ("^never", "We never do.", False),
        ("only$", "Chrome only!", True),
        ("only$", "only Chrome", False),
        ("you/we should", "We should.", True),
        ("you/we should", "They should.", False),
        ("this is … project", "This is a small Django project.", True),
        ("this is … project", "This is " + "very " * (MAX_GAP + 1) + "big project", False),
        ("dont", "Don\u2019t", True),
        ("dont; -dont worry", "don't worry", False),
        ("dont; -dont worry", "don't wait", True),
        ("à partir de maintenant", "À PARTIR DE MAINTENANT !", True),
    ],
)
def test_phrases_are_found_in_words(row, phrases: str, text: str, *, is_there: bool):
    """Without regard to case, apostrophes and punctuation, at the place that the notation says."""
    assert (row(phrases).find(normalize(text)) is not None) is is_there


def test_scripts_without_spaces_are_compared_by_characters(row):
    """A phrase may stand among other characters."""
    assert row("记住", "zh").find(normalize("请记住这件事")) is not None
    assert row("จำไว้", "th").find(normalize("ช่วยจำไว้ด้วย")) is not None


@pytest.mark.parametrize("name", TABLES)
def test_every_phrase_of_a_table_is_found_by_itself(name: str):
    """No row has a phrase that can never match, or that its own exceptions hide."""
    for entry in read_phrases(name):
        for phrase in entry.phrases:
            text = "x".join(phrase.parts) if phrase.is_spaced else "".join(phrase.parts)
            assert phrase.find(normalize(text)) is not None, (name, entry.name, phrase)


def test_the_rules_have_words_in_at_least_eight_languages():
    """Each rule that a person may state in any language; and no row of an unknown rule."""
    rows = tables.read_rows("sessions/statements") + tables.read_rows("authoring/introductions")
    languages: dict[str, set[str]] = {}
    for rule, language, _phrases in rows:
        languages.setdefault(rule, set()).add(language)
    assert set(languages) == {*IMPORTANCE, *SUGGESTING, "note"}
    for rule in ("remember", "lasting", "told", "must-only", "tell-agent"):
        assert len(languages[rule]) >= 8, rule
