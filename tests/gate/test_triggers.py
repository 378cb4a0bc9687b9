"""What spares compiling patterns: it says no only where the patterns say no."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from gate.corpus import benign_notes, personal_notes, secret_notes
from hypothesis import given, settings
from hypothesis import strategies as st

from memtool.gate import entropy, keywords, personal, prefixes, redaction, shapes
from memtool.gate.pattern import METHODS, Pattern


@contextmanager
def no_triggers() -> Iterator[None]:
    """Let every pattern look at every text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefixes, "may_hold", lambda _text: True)
        patch.setattr(entropy, "may_hold", lambda _text: True)
        patch.setattr(personal, "has_digits", lambda *_args: True)
        patch.setattr(keywords, "TRIGGERS", ("",))
        patch.setattr(shapes, "UNBROKEN", {})
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
    st.sampled_from([*keywords.TRIGGERS, "password", "api key", "passwort", "hasło", "path"]),
    st.sampled_from(sorted(prefixes._LEAST)),
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
