"""What spares compiling patterns: it says no only where the patterns say no."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from gate.corpus import benign_notes, personal_notes, secret_notes
from hypothesis import given, settings
from hypothesis import strategies as st

from memtool.gate import (
    detectors,
    keywords,
    personal,
    prefixes,
    redaction,
    shapes,
    triggers,
)
from memtool.gate.detectors import DETECTORS
from memtool.gate.pattern import METHODS, Pattern


@contextmanager
def no_triggers() -> Iterator[None]:
    """Let every detector look at every text."""
    every = tuple((name, lambda *_texts: True, find) for name, _trigger, find in DETECTORS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(detectors, "DETECTORS", every)
        patch.setattr(keywords, "is_announced", lambda *_texts: True)
        patch.setattr(shapes, "MOLDS", {})
        yield


def both(text: str) -> tuple[object, object]:
    with no_triggers():
        expected = redaction.find(text)
    return expected, redaction.find(text)


@pytest.mark.parametrize("split", ["tuned", "held"])
@pytest.mark.parametrize("make", [secret_notes, personal_notes, benign_notes])
def test_triggers_change_no_finding_of_the_corpus(make, split: str):
    """All of the labelled corpus gives the same spans with and without them."""
    for note in make(split, 11):
        expected, found = both(note.text)
        assert found == expected, note.name


PIECES = st.one_of(
    st.sampled_from([" ", "\n", "-", ".", "(", ") ", "+", "/", "\\n", "'", '"', ": ", " = ", "\0"]),
    st.sampled_from(
        ["call", "ssn", "Tel", "k3f9", "the", "É", "٣", "密码", "public key", "x" * 30]
    ),
    st.sampled_from([*triggers.ANNOUNCING, "password", "api key", "passwort", "hasło", "path"]),
    st.sampled_from(sorted({row[1] for row in prefixes.ROWS})),
    st.from_regex(r"[0-9]{1,5}", fullmatch=True),
    st.from_regex(r"[A-Za-z0-9_+/-]{12,60}", fullmatch=True),
    st.from_regex(r"[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}", fullmatch=True),
    st.from_regex(r"4[0-9]{3}( [0-9]{4}){3}", fullmatch=True),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_triggers_change_no_finding_of_any_text(text: str):
    """Neither do they in texts put together from all that they look at."""
    expected, found = both(text)
    assert found == expected


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.from_regex(source)
        for source in (
            keywords.PERSON_WORDS, keywords.SHORT_PERSON_WORDS, keywords.MACHINE_WORDS,
            keywords.FOREIGN_WORDS,
        )
    )
)  # fmt: skip
def test_every_announcing_word_holds_a_trigger(text: str):
    """What one of the tables of words matches is looked at."""
    assert keywords.patterns(text)


@pytest.mark.parametrize("row", prefixes.ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_every_prefix_is_a_trigger(row: tuple[str, str, str, int, int]):
    """The shortest token of a row, at the start or inside of a text, is looked at."""
    _kind, prefix, alphabet, least, _most = row
    letter = re.sub(r"[^\w]", "", prefixes.ALPHABETS[alphabet])[0]
    for before in ("", "key=", "\\n", "(", "é"):
        assert prefixes.may_hold(f"{before}{prefix}{letter * least}")


def test_no_token_is_shorter_than_what_is_looked_at():
    """Words that are left out have no room for a prefix and what follows it."""
    assert min(len(row[1]) + row[3] for row in prefixes.ROWS) == prefixes.SHORTEST


@pytest.mark.parametrize("needle", shapes.MOLDS)
def test_every_shape_fits_its_mold(needle: str):
    """Whatever the pattern of a common needle matches is looked at, wherever it stands."""
    (source,) = [source for _kind, needles, source in shapes.ROWS if needles == (needle,)]

    @settings(max_examples=60, deadline=None)
    @given(st.from_regex(source), st.text(max_size=8))
    def is_looked_at(secret: str, around: str) -> None:
        assert needle not in secret or shapes.may_hold(around + secret + around)

    is_looked_at()


@pytest.mark.parametrize(
    ("pattern", "is_long"),
    [
        (personal.CARD, triggers.is_card_long),
        (personal.SSN, triggers.is_social_long),
        (personal.NAMED_SSN, triggers.is_social_long),
    ],
)
def test_every_number_is_long_enough(pattern: Pattern, is_long: Callable[[str, str], bool]):
    """Numbers are looked at in the digits of any script, between any text."""

    @settings(max_examples=100, deadline=None)
    @given(st.from_regex(pattern.source), st.text(max_size=8))
    def is_looked_at(number: str, around: str) -> None:
        assert is_long(around + number + around, "")

    is_looked_at()


def test_a_prefix_without_a_token_is_no_trigger():
    """A prefix at the end of a word, before a space, or with too little behind it."""
    for text in (
        "the token begins with sk-ant- and",
        "it is so. Yes",
        "ghp_short",
        "thisAC" + "a" * 40,
    ):
        assert not prefixes.may_hold(text)


def test_a_pattern_is_what_it_is_compiled_to():
    """Its methods are those of the compiled one, from the first call on."""
    pattern = Pattern(r"(?P<word>[a-z]+)-(\d)?")
    compiled = re.compile(pattern.source)
    for _time in range(2):
        assert pattern.search("1 ab-2", 1)["word"] == compiled.search("1 ab-2", 1)["word"]
        assert pattern.findall("ab-2 cd-") == compiled.findall("ab-2 cd-")
        assert pattern.split("x ab-2 y") == compiled.split("x ab-2 y")
    assert set(METHODS) <= set(dir(compiled))
    with pytest.raises(AttributeError):
        pattern.groups  # noqa: B018
