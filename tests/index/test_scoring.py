"""Tests of scoring: what the words of a question weigh beside each other."""

from __future__ import annotations

from memtool.index import scoring

LEAD = " ".join(f"{letter}zx" for letter in "abcdefghijklmnopqrst")


def led(text: str, **more: float) -> scoring.Question:
    """The question that a text asks, in which other words stand in for some of it."""
    said = scoring.question(text)
    return scoring.led(said.replace(weights={**said.weights, **more}), said, text)


def test_what_a_long_text_says_only_later_weighs_less() -> None:
    """The first twenty words weigh 1, others 0.6, and so do pairs that hold one of them."""
    asked = led(f"{LEAD} redis sessions bzx")
    assert (asked.weights["azx"], asked.weights["tzx"]) == (1.0, 1.0)
    assert (asked.weights["redi"], asked.weights["session"]) == (0.6, 0.6)
    assert asked.pairs["azx", "bzx"] == 1.0
    assert asked.pairs["tzx", "redi"] == asked.pairs["redi", "session"] == 0.6


def test_what_is_said_twice_weighs_twice_wherever_it_is_said_again() -> None:
    """A word of the beginning loses nothing by being said later, too."""
    assert led(f"{LEAD} redis azx redis").weights == {
        **dict.fromkeys(scoring.question(LEAD).weights, 1.0),
        "azx": 2.0,
        "redi": 1.2,
    }


def test_a_text_of_twenty_words_has_no_later() -> None:
    """Every word of a short question weighs the same."""
    assert led(LEAD) == scoring.question(LEAD)
    assert led("") == scoring.question("")


def test_what_stands_in_for_a_word_keeps_its_weight() -> None:
    """Aliases and near words are not said anywhere in the text, so they are not said late."""
    assert led(f"{LEAD} redis", postgr=0.5).weights["postgr"] == 0.5
