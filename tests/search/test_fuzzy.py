"""Tests of near words: they stand in only for what the index does not know."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memtool.search import expansion
from memtool.search.expansion import distance, with_near_words

TERMS = {"cach": 3, "kubernet": 2, "kubectl": 1, "postgr": 4, "postgresql": 9, "redi": 5, "red": 1}


def beginning(prefix: str, most: int) -> list[str]:
    return [term for term in sorted(TERMS) if term.startswith(prefix)][:most]


def expanded(*terms: str) -> dict[str, float]:
    return with_near_words(dict.fromkeys(terms, 1.0), lambda term: TERMS.get(term, 0), beginning)


def test_a_known_word_stays_what_it_is() -> None:
    """A word that stands anywhere is never taken for another."""
    assert expanded("red", "redi", "cach") == {"red": 1, "redi": 1, "cach": 1}


def test_the_beginning_of_a_word_finds_it() -> None:
    """What begins with an unknown word stands in for it, at half its weight."""
    assert expanded("kube") == {"kube": 1, "kubernet": 0.5, "kubectl": 0.5}


def test_a_typing_error_finds_the_word() -> None:
    """A fifth of the letters may be wrong, missing, too many or swapped."""
    assert expanded("kuberent") == {"kuberent": 1, "kubernet": 0.5}
    assert expanded("postgersql")["postgresql"] == 0.5
    assert expanded("chache") == {"chache": 1}


def test_short_words_and_compounds_stay() -> None:
    """In few letters everything is near everything; a name with signs is no word."""
    assert expanded("rad", "ku", "kub.x", "a1b2c") == dict.fromkeys(
        ("rad", "ku", "kub.x", "a1b2c"), 1
    )


def test_only_the_first_unknown_words_are_looked_for() -> None:
    """A page full of names does not cost a page full of searches."""
    names = [f"zzzz{letter}" for letter in "abcdefgh"]
    assert expanded(*names, "kube") == dict.fromkeys([*names, "kube"], 1.0)
    assert "kubernet" in expanded(*names[: expansion.MOST_UNKNOWN - 1], "kube")


def slow(one: str, other: str) -> int:
    """Count as `distance` does, by the whole table (optimal string alignment)."""
    rows = [[a + b if not a * b else 0 for b in range(len(other) + 1)] for a in range(len(one) + 1)]
    for a in range(1, len(one) + 1):
        for b in range(1, len(other) + 1):
            best = min(rows[a - 1][b] + 1, rows[a][b - 1] + 1,
                       rows[a - 1][b - 1] + (one[a - 1] != other[b - 1]))  # fmt: skip
            if a > 1 and b > 1 and one[a - 2 : a] == other[b - 1] + other[b - 2]:
                best = min(best, rows[a - 2][b - 2] + 1)
            rows[a][b] = best
    return rows[-1][-1]


@given(st.text("abc", max_size=7), st.text("abc", max_size=7), st.integers(0, 3))
def test_distances_are_those_of_the_table(one: str, other: str, most: int) -> None:
    """The shortcut counts what the definition counts, up to its bound."""
    gap = slow(one, other)
    assert distance(one, other, most) == (gap if gap <= most else None)
