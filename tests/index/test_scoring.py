"""Scoring: the weights of the words of a question."""

from __future__ import annotations

from memtool.index import scoring

LEAD = " ".join(f"{letter}zx" for letter in "abcdefghijklmnopqrst")


def led(text: str, **extra: float) -> scoring.Question:
    """Return the question of a text, with other words instead of some of its own."""
    question = scoring.parse_question(text)
    return scoring.downweight_tail(
        question.replace(weights={**question.weights, **extra}), question, text
    )


def test_what_a_long_text_says_only_later_weighs_less() -> None:
    """The first twenty words weigh 1, others 0.6, and so do pairs that hold one of them."""
    question = led(f"{LEAD} redis sessions bzx")
    assert (question.weights["azx"], question.weights["tzx"]) == (1.0, 1.0)
    assert (question.weights["redi"], question.weights["session"]) == (0.6, 0.6)
    assert question.pairs["azx", "bzx"] == 1.0
    assert question.pairs["tzx", "redi"] == question.pairs["redi", "session"] == 0.6


def test_what_is_said_twice_weighs_twice_wherever_it_is_said_again() -> None:
    """A word of the beginning loses nothing by being said later, too."""
    assert led(f"{LEAD} redis azx redis").weights == {
        **dict.fromkeys(scoring.parse_question(LEAD).weights, 1.0),
        "azx": 2.0,
        "redi": 1.2,
    }


def test_a_text_of_twenty_words_has_no_later() -> None:
    """Every word of a short question weighs the same."""
    assert led(LEAD) == scoring.parse_question(LEAD)
    assert led("") == scoring.parse_question("")


def test_what_stands_in_for_a_word_keeps_its_weight() -> None:
    """Aliases and near words are not said anywhere in the text, so they are not said late."""
    assert led(f"{LEAD} redis", postgr=0.5).weights["postgr"] == 0.5
