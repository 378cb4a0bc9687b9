"""Tests of aliases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.errors import MemtoolError
from memtool.index.analyzer import query_terms, stem, terms
from memtool.search.expansion import ALIAS_WEIGHT, DEFAULTS, expand, key, merged, parse


def expanded(text: str, **own: tuple[str, ...]) -> dict[str, float]:
    """Return the weights that aliases add to a question."""
    weights = query_terms(text)
    after = expand(weights, merged(own))
    assert {term: after[term] for term in weights} == weights
    return {term: weight for term, weight in after.items() if term not in weights}


def test_a_word_is_also_searched_by_what_it_stands_for() -> None:
    """An alias adds its terms at half the weight, and leaves those of the question alone."""
    assert expanded("db password") == {terms("database")[0]: ALIAS_WEIGHT}


def test_an_alias_works_both_ways() -> None:
    """Who writes the long form finds the short one, phrases included."""
    assert expanded("the kubernetes cluster") == {"k8s": ALIAS_WEIGHT}
    assert expanded("continuous integration is slow") == {"ci": ALIAS_WEIGHT}
    assert expanded("continuous rollout") == {}


def test_a_common_word_in_an_alias_stays_light() -> None:
    """Stop words of an expansion weigh less than its other words."""
    added = expanded("sot", sot=("source of truth",))
    assert added["of"] < added[terms("source")[0]] == ALIAS_WEIGHT


def test_the_file_replaces_and_switches_off_defaults() -> None:
    """A row of the file takes the place of the built-in row; an empty one takes it away."""
    own = parse(b'db = ["postgres"]\nci = []\nIDP = "keycloak"\n', "aliases.toml")
    assert own["db"] == ("postgres",)
    assert "ci" not in own
    assert own["idp"] == ("keycloak",)
    assert own["k8s"] == DEFAULTS["k8s"]
    assert list(own) == sorted(own)


def test_without_a_file_the_defaults_hold() -> None:
    """A repository that says nothing has the common aliases."""
    assert parse(None, "aliases.toml") == DEFAULTS


@pytest.mark.parametrize(
    "data", [b"db = 1", b"[db]\na = 1", b'db = ["x", 2]', b'"!" = ["x"]', b'db = [""]', b"db = "]
)
def test_a_bad_file_is_refused_by_name(data: bytes) -> None:
    """Every row that is no list of words is told with the file, not ignored."""
    with pytest.raises(MemtoolError, match=r"aliases\.toml"):
        parse(data, "aliases.toml")


def test_words_are_compared_without_case_and_spacing() -> None:
    """Spelling in the file does not matter."""
    assert key("  Identity \n Provider ") == "identity provider"
    with pytest.raises(MemtoolError):
        key("!!")
    with pytest.raises(MemtoolError):
        key("a" * 101)


def test_the_default_table_is_sorted_and_each_row_says_something() -> None:
    """The built-in table is what `parse` would make of a file."""
    assert list(DEFAULTS) == sorted(DEFAULTS)
    assert all(key(word) == word and others for word, others in DEFAULTS.items())


@given(st.text("abcdeghilmnorstuwy", min_size=1, max_size=9))
def test_a_stem_begins_as_its_word_does(word: str) -> None:
    """By its first letter an alias is passed over that no word of the question calls for."""
    assert stem(word)[:1] == word[:1]
