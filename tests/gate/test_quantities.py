from __future__ import annotations

import pytest

from memtool.gate.quantities import measure


@pytest.mark.parametrize(
    ("word", "after", "expected"),
    [
        ("8080", "", (("number", "8080"), 1)),
        ("8,080", "", (("number", "8080"), 1)),
        ("30", "s", (("time", "30"), 2)),
        ("30s", "", (("time", "30"), 1)),
        ("30", "seconds", (("time", "30"), 2)),
        ("1", "minute", (("time", "60"), 2)),
        ("one", "minute", (("time", "60"), 2)),
        ("10", "mb", (("size", "10000000"), 2)),
        ("10mb", "", (("size", "10000000"), 1)),
        ("60%", "", (("share", "0.6"), 1)),
        ("3.11", "", (("number", "3.11"), 1)),
        ("v3.11.2", "", (("number", "3.11.2"), 1)),
        (">=3.11", "", (("number", "3.11"), 1)),
        ("3", "apples", (("number", "3"), 1)),
        ("port", "8080", (None, 0)),
        ("http2", "", (None, 0)),
        ("3d", "", (None, 0)),
        ("1.2.3mb", "", (None, 0)),
        ("", "", (None, 0)),
        (".", "", (None, 0)),
        ("1..2", "", (None, 0)),
        ("9" * 25, "", (None, 0)),
        ("\u0663", "", (None, 0)),
        ("\u00b2", "", (None, 0)),
    ],
)
def test_numbers_units_and_versions_have_one_spelling(word: str, after: str, expected: tuple):
    """What means the same is written the same; other words are no quantity."""
    assert measure(word, after) == expected


def test_a_version_is_no_decimal_number():
    """3.1 and 3.10 are two versions."""
    assert measure("3.1") != measure("3.10")
