"""The category of a statement by its words."""

from __future__ import annotations

import pytest

from memtool.authoring.classification import PHRASES, CategoryPhrase, classify


@pytest.mark.parametrize("phrase", PHRASES, ids=lambda phrase: phrase.example[:30])
def test_each_phrase_has_an_example_that_it_decides(phrase: CategoryPhrase):
    """The table explains itself: no earlier row takes the example of a later one."""
    first = next(row for row in PHRASES if row.sign.search(phrase.example))
    assert first is phrase


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("Never edit gen/api.py by hand.", "warning"),
        ("The service is written in Go.", "architecture"),
        ("The provider has a limit of 20 calls.", "discovery"),
        ("Remember that we decided to keep carts in Postgres.", "decision"),
        ("FYI: turns out the CDN strips the header.", "discovery"),
        ("Merk dir, dass we decided to keep carts in Postgres.", "decision"),
        ("Recuerda que the service is written in Go.", "architecture"),
        ("short answers", "preference"),
        ("", "preference"),
    ],
)
def test_a_statement_has_a_category(text: str, category: str):
    """By its first decisive sentence; a prohibition about files is a warning to those who edit."""
    assert classify(text) == category


def test_a_prohibition_about_governed_files_is_a_warning():
    """Though the text does not name them."""
    assert classify("Do not edit these by hand.", ("gen/*.py",)) == "warning"
