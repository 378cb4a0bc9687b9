"""Prefilters save compiling patterns: they reject a text only if no pattern matches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redaction.corpus import benign_notes, personal_notes, secret_notes

from memtool import tables
from memtool.pattern import METHODS, Pattern
from memtool.redaction import assignments, find, personal, shapes, tokens


@contextmanager
def no_prefilters() -> Iterator[None]:
    """Let every detector search every text."""
    every = tuple(row.replace(may_hold=lambda *_texts: True) for row in find.DETECTORS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(find, "DETECTORS", every)
        patch.setattr(assignments, "is_announced", lambda *_texts: True)
        patch.setattr(shapes, "ROWS", tuple(row.replace(word=0) for row in shapes.ROWS))
        patch.setattr(tokens, "SHORTEST", 0)
        yield


def both(text: str) -> tuple[object, object]:
    with no_prefilters():
        expected = find.find(text)
    return expected, find.find(text)


@pytest.mark.slow
@pytest.mark.parametrize("split", ["tuned", "held"])
@pytest.mark.parametrize("make", [secret_notes, personal_notes, benign_notes])
def test_prefilters_lose_nothing_of_the_corpus(make, split: str):
    """All of the labelled corpus gives the same spans with and without them."""
    for note in make(split, 11):
        expected, findings = both(note.text)
        assert findings == expected, note.name


PIECES = st.one_of(
    st.sampled_from([" ", "\n", "-", ".", "(", ") ", "+", "/", "\\n", "'", '"', ": ", " = ", "\0"]),
    st.sampled_from(
        ["call", "ssn", "Tel", "k3f9", "the", "É", "٣", "密码", "public key", "x" * 30]
    ),
    st.sampled_from([*assignments.ANNOUNCING, "password", "api key", "passwort", "hasło", "path"]),
    st.sampled_from(sorted({prefix for row in tokens.ROWS for prefix in row[1].split()})),
    st.from_regex(r"[0-9]{1,5}", fullmatch=True),
    st.from_regex(r"[A-Za-z0-9_+/-]{12,60}", fullmatch=True),
    st.from_regex(r"[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}", fullmatch=True),
    st.from_regex(r"4[0-9]{3}( [0-9]{4}){3}", fullmatch=True),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_prefilters_lose_nothing_of_any_text(text: str):
    """Neither do they in texts put together from all that they look at."""
    expected, findings = both(text)
    assert findings == expected


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.from_regex(source)
        for source in (
            assignments.PERSON_WORDS,
            assignments.SHORT_PERSON_WORDS,
            assignments.MACHINE_WORDS,
            assignments.FOREIGN_WORDS,
        )
    )
)
def test_every_announcing_word_passes(text: str):
    """A text that one of the tables of words matches is searched."""
    assert assignments.is_announced(text, text)


@pytest.mark.parametrize(
    "row", tables.read_rows("redaction/announcing_words"), ids=lambda row: row[1]
)
def test_every_announcing_word_has_one_of_its_parts(row: list[str]):
    """One of the parts of a row is in whatever its pattern matches; both are in lower case."""
    _group, pattern, parts, _example = row
    assert (pattern, parts) == (pattern.lower(), parts.lower())

    @settings(max_examples=20, deadline=None)
    @given(st.from_regex(pattern))
    def passes(text: str) -> None:
        assert any(part in text for part in parts.split("|"))

    passes()


@pytest.mark.parametrize("row", tokens.ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_every_token_passes(row: tuple[str, str, str, int, int]):
    """The shortest token of a row, at the start or inside of a text, is searched for."""
    _kind, prefixes, alphabet, least, _max_length = row
    letter = re.sub(r"[^\w]", "", tokens.ALPHABETS[alphabet])[0]
    for prefix, before in product(prefixes.split(), ("", "key=", "\\n", "(", "é")):
        assert tokens.has_prefix(f"{before}{prefix}{letter * least}")


def test_no_token_is_shorter_than_the_words_that_are_searched():
    """Words that are left out have no room for a prefix and what follows it."""
    shortest = min(len(p) + row[3] for row in tokens.ROWS for p in row[1].split())
    assert shortest == tokens.SHORTEST


def test_of_several_prefixes_the_longest_counts():
    """A token has the kind of its own vendor, not that of one with a shorter prefix."""
    value = "q7Rk2mVx9Tz4Lp8Wb3Nc6Yd1Hf5Jg0SaQeUi"
    for prefix, kind in (("sk-", "openai-token"), ("sk-ant-", "anthropic-token")):
        text = f"it is {prefix}{value}"
        assert list(tokens.find(text)) == [(kind, 6, len(text))]


@pytest.mark.parametrize(
    ("pattern", "is_long"),
    [
        (personal.CARD, personal.has_card),
        (personal.SSN, personal.has_social_number),
        (personal.NAMED_SSN, personal.has_social_number),
    ],
)
def test_every_number_is_long_enough(pattern: Pattern, is_long: Callable[[str, str], bool]):
    """Numbers are searched for in the digits of any script, between any text."""

    @settings(max_examples=100, deadline=None)
    @given(st.from_regex(pattern.source), st.text(max_size=8))
    def passes(number: str, around: str) -> None:
        assert is_long(around + number + around, "")

    passes()


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
