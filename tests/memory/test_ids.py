"""Identity: slugs, ids and fingerprints are made from the words, and are always valid."""

from __future__ import annotations

import pytest
from conftest import make_memory
from hypothesis import given
from hypothesis import strategies as st

from memtool.memory import schema, timestamps
from memtool.memory.ids import (
    ALPHABET,
    TYPE_PREFIX,
    compute_fingerprint,
    find_nearest,
    make_id,
    make_path,
    make_slug,
)

NOON = timestamps.parse("2026-02-22T12:00:00Z")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Keep sessions in Redis", "keep-sessions-in-redis"),
        ("  Ünïcode — & C++/Rust! ", "unicode-c-rust"),
        ("日本語", "memory"),
        ("", "memory"),
        ("../../etc/passwd", "etc-passwd"),
        ("a" * 100, "a" * 48),
        ("word " * 20, "word-word-word-word-word-word-word-word-word"),
        ("x²", "x2"),
    ],
)
def test_slugs_are_whole_words(text: str, expected: str) -> None:
    """A slug has the words of a text in lower case, cut where a word ends."""
    assert make_slug(text) == expected


@given(st.text(), st.binary(min_size=3, max_size=8), st.sampled_from(sorted(TYPE_PREFIX)))
def test_every_title_gives_a_valid_id(title: str, random: bytes, type_: str) -> None:
    """Whatever the title is, the id is one, names type and day, and ends in four characters."""
    id_ = make_id(type_, NOON, title, random)
    assert schema.is_id(id_)
    assert id_.startswith(f"{TYPE_PREFIX[type_]}-2026-02-22-")
    assert len(id_.rpartition("-")[2]) == 4
    assert set(id_[-4:]) <= set(ALPHABET)


def test_a_suffix_has_a_digit_and_a_letter() -> None:
    """No suffix is a word or a year, and all 804,320 others are drawn: by most numbers directly."""
    numbers = range(0, 1 << 20, 37)
    suffixes = [make_id("state", NOON, "a", n.to_bytes(3, "big"))[-4:] for n in numbers]
    assert not any(suffix.isdigit() or suffix.isalpha() for suffix in suffixes)
    assert len(set(suffixes)) > 0.76 * len(numbers)


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Deploys run on Tuesdays only, never before a holiday", "deploys-run-on-tuesdays-only"),
        ("Turn it off and on", "turn-it-off-and-on"),
        ("The of a to " * 5, "the"),
        ("Keep sessions in Redis", "keep-sessions-in-redis"),
        (
            "Deploys run on Tuesdays only before a counterintelligence",
            "deploys-run-on-tuesdays-only",
        ),
    ],
)
def test_the_slug_of_a_cut_title_ends_in_a_word_that_says_something(title: str, slug: str) -> None:
    assert make_id("state", NOON, title, b"\0\0\1")[15:-5] == slug


def test_the_place_is_type_and_month() -> None:
    """A new file lies in the directory of its type and month, in UTC."""
    memory = make_memory("dec-a", timestamp="2026-03-01T01:00:00+02:00")
    assert make_path(memory) == "decision/2026-02/dec-a.md"


def test_fingerprints_see_words_only() -> None:
    """Case, white space, id and time do not count; type, title and words do."""
    base = make_memory("dec-a", "Keep It so.\n", title="Why")
    same = make_memory(
        "dec-b", "\n  keep\tit\r\nSO.", title="WHY ", timestamp="2020-01-01T00:00:00Z"
    )
    assert compute_fingerprint(base) == compute_fingerprint(same)
    variants = [
        base.with_fields(type="state"),
        base.with_fields(title="Who"),
        base.with_body("No."),
    ]
    assert len({compute_fingerprint(memory) for memory in [base, *variants]}) == 4
    assert len(compute_fingerprint(base)) == 16


def test_the_nearest_ids_hold_the_word_first() -> None:
    """Ids that contain what was typed come before those that resemble it, at most three."""
    ids = ["dec-a-redis", "dec-b-redis", "dec-c-redis", "dec-d-redis", "sem-x"]
    assert find_nearest("redis", ids) == ids[:3]
    assert find_nearest("sem-y", ids)[0] == "sem-x"
    assert find_nearest("qqqqqqqq", ids) == []
