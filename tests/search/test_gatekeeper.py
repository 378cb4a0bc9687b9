"""Tests of the gatekeeper: what holds enough of a text to answer it."""

from __future__ import annotations

import pytest

from memtool.index import scoring
from memtool.index.scoring import Document, searchable
from memtool.search.answer_gate import FOLLOWING, LEADERS, Gatekeeper, Strictness, which_pass

BALANCED = Strictness(0.5, 3.0)


def share(prompt: str, body: str, title: str = "", count: int = 20, **df: int) -> float:
    """Return the share that a memory holds, in a store where words stand in `df` memories."""
    asked = scoring.question(prompt)
    keeper = Gatekeeper(asked, asked, count, lambda term: df.get(term, 1), BALANCED)
    return keeper.share(searchable(Document("k", (("title", title), ("body", body))))[1])


def test_one_telling_word_is_enough_for_a_short_question() -> None:
    """Who asks for a thing by name gets what is about it."""
    assert share("redis?", "Sessions live in redis.") >= 1
    assert share("why do we use redis", "Sessions live in redis.") >= 1


def test_a_text_about_something_else_is_not_answered_by_its_small_talk() -> None:
    """However rare they are in a small store, everyday words make no answer."""
    prompt = "please fix the failing test of the payment service and commit the changes"
    assert share(prompt, "Run the tests, please, whenever a service changes.") < 1
    assert share(prompt, "Payment retries: the payment service queues them.") >= 1


def test_everyday_words_alone_answer_in_number_or_in_a_title() -> None:
    """A question of nothing else is answered by what holds most of it."""
    assert share("run the tests", "Nothing.", "How to run tests") >= 1
    assert share("run the tests", "We run things.") < 1
    assert share("thanks, go ahead", "Go on.") < 1


def test_what_only_shares_everyday_words_says_so() -> None:
    """The reason names what is missing."""
    asked = scoring.question("please commit the change to the frobnicator")
    keeper = Gatekeeper(asked, asked, 20, lambda _term: 1, BALANCED)
    text = searchable(Document("k", (("body", "Please commit a change to the change."),)))[1]
    assert "everyday" in keeper.objection(keeper.share(text), text)
    text = searchable(Document("k", (("body", "Nothing of it."),)))[1]
    assert "0.00 of what" in keeper.objection(keeper.share(text), text)


def test_words_next_to_each_other_and_in_the_title_count_more() -> None:
    """What says it the same way, or is about it, is likelier to be meant."""
    prompt = "alpha beta gamma delta epsilon zeta eta theta"
    apart = share(prompt, "alpha x beta y gamma")
    assert share(prompt, "alpha beta gamma") > apart
    assert share(prompt, "x", "alpha x beta y gamma") > apart


def test_a_long_text_asks_for_no_more_than_some_rare_words() -> None:
    """An answer to a page of text need not hold half of it."""
    words = [f"w{letter}{other}" for letter in "bcdfgh" for other in "klmnpqrst"]
    assert share(" ".join(words), " and ".join(words[:4])) >= 1
    assert share(" ".join(words), words[0]) < FOLLOWING


def test_stop_words_ask_for_nothing() -> None:
    """What is no question is answered by nobody."""
    assert share("is it in the?", "It is in the.") == 0


def test_one_of_the_best_must_answer_and_others_may_follow() -> None:
    """Where nothing among the best is an answer, nothing is; else a little less is enough."""
    assert which_pass([0.9, 0.8]) == [False, False]
    assert which_pass([0.9, 1.0, FOLLOWING, 0.1]) == [True, True, True, False]
    assert which_pass([0.9] * LEADERS + [5.0]) == [False] * (LEADERS + 1)
    assert which_pass([]) == []


@pytest.mark.parametrize("count", [0, 1, 99, 100])
def test_a_small_store_is_taken_to_be_a_hundred(count: int) -> None:
    """How rare a word is cannot be seen in a handful of memories."""
    assert share("redis alpha beta", "redis", count=count) == share(
        "redis alpha beta", "redis", count=100
    )
