"""Aliases, and near words, which replace only words that are not in the index."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.errors import MemtoolError
from memtool.index.analyzer import query_terms, stem, terms
from memtool.search import expansion
from memtool.search.expansion import (
    ALIAS_WEIGHT,
    DEFAULTS,
    expand,
    measure_distance,
    merge_with_defaults,
    normalize_key,
    parse,
    with_near_words,
)


def expanded(text: str, **own: tuple[str, ...]) -> dict[str, float]:
    """Return the weights that aliases add to a question."""
    weights = query_terms(text)
    after = expand(weights, merge_with_defaults(own))
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
    """Every row that is not a list of words is reported with the file, not ignored."""
    with pytest.raises(MemtoolError, match=r"aliases\.toml"):
        parse(data, "aliases.toml")


def test_words_are_compared_without_case_and_spacing() -> None:
    """Spelling in the file does not matter."""
    assert normalize_key("  Identity \n Provider ") == "identity provider"
    with pytest.raises(MemtoolError):
        normalize_key("!!")
    with pytest.raises(MemtoolError):
        normalize_key("a" * 101)


def test_the_default_table_is_sorted_and_each_row_says_something() -> None:
    """The built-in table is what `parse` would make of a file."""
    assert list(DEFAULTS) == sorted(DEFAULTS)
    assert all(normalize_key(word) == word and synonyms for word, synonyms in DEFAULTS.items())


@given(st.text("abcdeghilmnorstuwy", min_size=1, max_size=9))
def test_a_stem_begins_as_its_word_does(word: str) -> None:
    """By its first letter an alias is passed over that no word of the question calls for."""
    assert stem(word)[:1] == word[:1]


TERMS = {"cach": 3, "kubernet": 2, "kubectl": 1, "postgr": 4, "postgresql": 9, "redi": 5, "red": 1}


def beginning(prefix: str, limit: int) -> list[str]:
    return [term for term in sorted(TERMS) if term.startswith(prefix)][:limit]


def near(*terms: str) -> dict[str, float]:
    return with_near_words(dict.fromkeys(terms, 1.0), lambda term: TERMS.get(term, 0), beginning)


def test_a_known_word_stays_what_it_is() -> None:
    """A word of the index is never replaced by another."""
    assert near("red", "redi", "cach") == {"red": 1, "redi": 1, "cach": 1}


def test_the_beginning_of_a_word_finds_it() -> None:
    """Words that begin with an unknown word replace it, at half its weight."""
    assert near("kube") == {"kube": 1, "kubernet": 0.5, "kubectl": 0.5}


def test_a_typing_error_finds_the_word() -> None:
    """A fifth of the letters may be wrong, missing, too many or swapped."""
    assert near("kuberent") == {"kuberent": 1, "kubernet": 0.5}
    assert near("postgersql")["postgresql"] == 0.5
    assert near("chache") == {"chache": 1}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("postgress", "postgres"),
        ("paginaton", "pagination"),
        ("pagniation", "pagination"),
        ("securty", "security"),
        ("authorizaton", "authorization"),
        ("migratons", "migrations"),
        ("deploymnet", "deployment"),
    ],
)
def test_a_typing_error_in_an_ending_finds_the_stem(typed: str, meant: str) -> None:
    """The stemmer leaves a misspelled ending on; the word is found as if it were right."""
    frequencies = {stem(meant): 3, "paging": 1, "secret": 2, "auth": 1}
    weights = with_near_words(
        query_terms(typed),
        lambda term: frequencies.get(term, 0),
        lambda prefix, limit: sorted(term for term in frequencies if term.startswith(prefix))[
            :limit
        ],
    )
    assert weights == {stem(typed): 1.0, stem(meant): 0.5}


def test_a_word_that_only_begins_like_a_stem_is_another() -> None:
    """The letters after a stem must be nearly an ending of it."""
    assert near("cachalot", "postgraduate") == {"cachalot": 1, "postgraduate": 1}


def test_short_words_and_compounds_stay() -> None:
    """Short words are near too many others; a name with signs is not a word."""
    assert near("rad", "ku", "kub.x", "a1b2c") == dict.fromkeys(("rad", "ku", "kub.x", "a1b2c"), 1)


def test_only_the_first_unknown_words_are_looked_for() -> None:
    """A page full of names does not cost a page full of searches."""
    names = [f"zzzz{letter}" for letter in "abcdefgh"]
    assert near(*names, "kube") == dict.fromkeys([*names, "kube"], 1.0)
    assert "kubernet" in near(*names[: expansion.MAX_UNKNOWN - 1], "kube")


def slow(first: str, other: str) -> int:
    """Count as `distance` does, by the whole table (optimal string alignment)."""
    rows = [
        [a + b if not a * b else 0 for b in range(len(other) + 1)] for a in range(len(first) + 1)
    ]
    for a in range(1, len(first) + 1):
        for b in range(1, len(other) + 1):
            best = min(
                rows[a - 1][b] + 1,
                rows[a][b - 1] + 1,
                rows[a - 1][b - 1] + (first[a - 1] != other[b - 1]),
            )
            if a > 1 and b > 1 and first[a - 2 : a] == other[b - 1] + other[b - 2]:
                best = min(best, rows[a - 2][b - 2] + 1)
            rows[a][b] = best
    return rows[-1][-1]


@given(st.text("abc", max_size=7), st.text("abc", max_size=7), st.integers(0, 3))
def test_distances_are_those_of_the_table(first: str, other: str, limit: int) -> None:
    """The shortcut counts what the definition counts, up to its bound."""
    gap = slow(first, other)
    assert measure_distance(first, other, limit) == (gap if gap <= limit else None)
