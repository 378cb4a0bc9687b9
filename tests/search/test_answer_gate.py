"""The answer gate: what holds enough of a text to answer it, and the presets that say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from memtool import tables
from memtool.errors import MemtoolError
from memtool.index import scoring
from memtool.index.analyzer import is_stop, terms
from memtool.index.scoring import Document, analyze_document
from memtool.search import answer_gate
from memtool.search.answer_gate import (
    FOLLOWER_SHARE,
    LEADING_HITS,
    PRESETS,
    Gatekeeper,
    choose_preset,
    choose_threshold,
    is_same_topic,
    select_passing,
)
from memtool.search.prose import search_prose
from memtool.search.reranking import RERANKERS
from memtool.search.retrieve import SearchResult
from memtool.store import config
from memtool.store.config import BY_KEY

if TYPE_CHECKING:
    from conftest import Sandbox


BALANCED = PRESETS["balanced"].strictness


def share(prompt: str, body: str, title: str = "", count: int = 20, **df: int) -> float:
    """Return a memory's coverage of a prompt, in a store with these document frequencies."""
    question = scoring.parse_question(prompt)
    keeper = Gatekeeper(question, question, count, lambda term: df.get(term, 1), BALANCED)
    return keeper.measure_text(
        analyze_document(Document("k", (("title", title), ("body", body))))[1]
    )


def test_one_telling_word_is_enough_for_a_short_question() -> None:
    """Who asks for a thing by name gets what is about it."""
    assert share("redis?", "Sessions live in redis.") >= 1
    assert share("why do we use redis", "Sessions.", "Sessions live in redis") >= 1


def test_a_text_about_something_else_is_not_answered_by_its_small_talk() -> None:
    """However rare they are in a small store, everyday words make no answer."""
    prompt = "please fix the failing test of the payment service and commit the changes"
    assert share(prompt, "Run the tests, please, whenever a service changes.") < 1
    assert share(prompt, "Payment retries: the payment service queues them.") >= 1


def test_everyday_words_alone_answer_in_number_or_in_a_title() -> None:
    """A question of nothing else is answered by what holds most of it."""
    assert share("run tests", "Nothing.", "How to run tests") >= 1
    assert share("run the tests", "We run things.") < 1
    assert share("thanks, go ahead", "Go on.") < 1


SMALL_TALK = (
    "please continue",
    "thanks, that looks good",
    "happy birthday!",
    "what is your name?",
    "can you try again please",
    "fix the bug",
    "run the tests and fix what fails",
    "write a unit test for this function",
    "explain what this code does",
)

RUNBOOKS = {
    "dec-a": ("Continue on error", "A failed job does not stop the run; please name it good.\n"),
    "dec-b": ("Date field", "Nobody is happy with a form that refuses leap years; a unit test.\n"),
    "dec-c": ("Function names", "What a function does is explained by its name and a test.\n"),
    "dec-d": ("Bug reports", "Whoever fixes a bug writes what failed and looks for others.\n"),
}


@pytest.mark.parametrize("text", SMALL_TALK)
def test_small_talk_gets_nothing(sandbox: Sandbox, text: str) -> None:
    """Everyday words of a prompt are not a question, however rare they are in memories."""
    for id_, (title, body) in RUNBOOKS.items():
        sandbox.memory(id_, body, title=title)
    assert ids(search_prose(sandbox.scope(), text, (), 5)) == []


def test_who_asks_about_one_of_them_gets_an_answer(sandbox: Sandbox) -> None:
    """The other words find the memories about them."""
    for id_, (title, body) in RUNBOOKS.items():
        sandbox.memory(id_, body, title=title)
    result = search_prose(sandbox.scope(), "which dates does the form take in leap years?", (), 5)
    assert ids(result) == ["dec-b"]


def test_a_category_may_ask_for_more_or_less(sandbox: Sandbox) -> None:
    """Each number of the gate is a setting, and one category may have another of it."""
    sandbox.memory("dec-a", "Redis keeps elephants.\n", title="Storage")
    scope = sandbox.scope()
    text = "test redis, elephants and giraffes"
    for written, expected in (
        ("[inject]\nshare = 1.0\nmost = 20\n", []),
        ("[inject]\nfloor = 9\n", []),
        ("[inject.min_rare_words]\ndefault = 9\ndecision = 1\n", ["dec-a"]),
        (
            "[inject]\nmin_coverage.decision = 1.0\nsufficient_rare_words.decision = 20\n",
            [],
        ),
        (
            "[inject]\nmin_coverage.error = 1.0\nsufficient_rare_words.error = 20\n",
            ["dec-a"],
        ),
    ):
        result = search_prose(scope.replace(config=settings(written)), text, (), 5)
        assert ids(result) == expected, written


def test_a_category_has_its_own_threshold() -> None:
    """The threshold of a category applies to it alone."""
    threshold = choose_threshold(settings("[inject.threshold]\ndecision = 0.2\n"))
    assert (threshold("decision"), threshold("error")) == (0.2, BY_KEY["inject.threshold"].default)


def test_words_next_to_each_other_and_in_the_title_count_more() -> None:
    """Adjacent words and title words are stronger evidence."""
    prompt = "alpha beta gamma delta epsilon zeta eta theta"
    apart = share(prompt, "alpha x beta y gamma")
    assert share(prompt, "alpha beta gamma") > apart
    assert share(prompt, "x", "alpha x beta y gamma") > apart


def test_a_title_with_the_rare_words_answers_however_common_they_are() -> None:
    """In a store about pipelines the word says little, but such a title is what was asked for."""
    common = {"pipelin": 90, "resourc": 80, "support": 60, "still": 70, "pipelineresourc": 20}
    prompt = "are PipelineResources still supported?"
    body = "Support of PipelineResources ends with the pipeline of a resource."
    assert share(prompt, body, "Deprecate tasks", 100, **common) < 1
    assert share(prompt, body, "Deprecate and support PipelineResources", 100, **common) == 1
    assert share("thanks, it works", "", "It works, thanks", 100, work=90, thank=90) < 1


def test_memories_answer_the_same_part_of_a_text_if_they_share_a_rare_word() -> None:
    """Everyday words join nothing; what has no rare word is compared with all."""
    question = scoring.parse_question("use redis for sessions and postgres for invoices")
    keeper = Gatekeeper(question, question, 20, lambda _term: 1, BALANCED)
    redis, postgres, both = (
        keeper.find_topic(analyze_document(Document("k", (("body", text),)))[1])
        for text in ("Use redis.", "Use postgres.", "Redis and postgres.")
    )
    assert not is_same_topic(redis, postgres)
    assert is_same_topic(redis, both)
    assert is_same_topic(postgres, both)
    assert is_same_topic(frozenset(), redis)


def test_a_long_text_asks_for_no_more_than_some_rare_words() -> None:
    """An answer to a page of text need not hold half of it."""
    words = [f"w{letter}{other}" for letter in "bcdfgh" for other in "klmnpqrst"]
    assert share(" ".join(words), " and ".join(words[:4])) >= 1
    assert share(" ".join(words), words[0]) < FOLLOWER_SHARE


def test_stop_words_ask_for_nothing() -> None:
    """Stop words alone are not answered."""
    assert share("is it in the?", "It is in the.") == 0


def test_a_tool_may_be_called_like_a_stop_word_of_another_language() -> None:
    """Jest is a test runner in an English question, and `is` in a Polish one."""
    assert share("jest?", "The tests run in jest.") >= 1
    assert share("jak to jest z tym", "Jest, the runner.") < 1


def test_one_of_the_best_must_answer_and_others_may_follow() -> None:
    """Where nothing among the best is an answer, nothing is; else a little less is enough."""
    assert select_passing([0.9, 0.8]) == [False, False]
    assert select_passing([0.9, 1.0, FOLLOWER_SHARE, 0.1]) == [True, True, True, False]
    assert select_passing([0.9] * LEADING_HITS + [5.0]) == [False] * (LEADING_HITS + 1)
    assert select_passing([]) == []


@pytest.mark.parametrize("count", [0, 1, 99, 100])
def test_a_small_store_is_taken_to_be_a_hundred(count: int) -> None:
    """How rare a word is cannot be seen in a handful of memories."""
    assert share("redis alpha beta", "redis", count=count) == share(
        "redis alpha beta", "redis", count=100
    )


def test_the_list_holds_stems_that_are_no_stop_words() -> None:
    """Each is what a text is asked for, once; stop words weigh little already."""
    stems = tables.read_words("search/everyday_words")
    assert [stem for stem in stems if is_stop(stem)] == []
    assert [stem for stem in stems if not stem.isalpha()] == []


@pytest.mark.parametrize("word", ["please", "tests", "changing", "README 42"])
def test_small_talk_and_numbers_tell_little(word: str) -> None:
    """They are rare in a small store, and still mean nothing by themselves."""
    assert answer_gate.weigh_everyday(terms(word)[-1]) == answer_gate.EVERYDAY_WORTH


@pytest.mark.parametrize("word", ["redis", "frontmatter", "kubernetes", "utf8", "poem"])
def test_what_something_is_about_tells_all(word: str) -> None:
    """A word that names a thing counts in full."""
    assert answer_gate.weigh_everyday(terms(word)[0]) == 1


def ids(result: SearchResult) -> list[str]:
    return [hit.record.id for hit in result.hits]


def settings(text: str) -> config.Config:
    return config.parse(text.encode(), "config.toml")


def test_the_settings_name_what_the_tables_hold() -> None:
    """Neither table has a row that cannot be chosen, or lacks one that can."""
    assert BY_KEY["search.preset"].choices == tuple(PRESETS)
    assert BY_KEY["search.rerank"].choices == tuple(RERANKERS)
    with pytest.raises(MemtoolError):
        settings('[search]\nrerank = "os:system"\n')


def test_a_threshold_of_ones_own_wins_over_the_preset() -> None:
    """The value of the file overrides the preset."""
    plain = choose_preset(settings(""))
    numbers = ("min_coverage", "sufficient_rare_words", "min_rare_words", "threshold")
    assert [*plain.strictness.plain().values(), plain.threshold] == [
        BY_KEY[f"inject.{name}"].default for name in numbers
    ]
    assert choose_preset(settings('[search]\npreset = "precision"\n')).threshold == 0.8
    own = '[search]\npreset = "precision"\n[inject]\nthreshold = 0.2\n'
    assert choose_preset(settings(own)).threshold == 0.2
    assert choose_preset(settings(own)).strictness == PRESETS["precision"].strictness


def test_precision_passes_less(sandbox: Sandbox) -> None:
    """Half an answer passes in one preset and not in the other."""
    sandbox.memory("dec-a", "Redis keeps elephants.\n", title="Storage")
    text = "test redis, elephants and giraffes"
    scope = sandbox.scope()
    sharp = scope.replace(config=settings('[search]\npreset = "precision"\n'))
    assert ids(search_prose(scope, text, (), 5)) == ["dec-a"]
    assert ids(search_prose(sharp, text, (), 5)) == []


@pytest.fixture
def three(sandbox: Sandbox) -> Sandbox:
    """The most relevant is pinned nowhere, the newest says least, the pinned one is in between."""
    old = "2024-01-01T00:00:00Z"
    sandbox.memory(
        "dec-best",
        "Redis sessions.\n",
        title="Redis sessions",
        status="deprecated",
        timestamp=old,
        temporal_class="eternal",
    )
    sandbox.memory(
        "dec-mid",
        "Redis, other sessions, and more of that.\n",
        title="Mid",
        timestamp=old,
        temporal_class="eternal",
        status="pinned",
    )
    sandbox.memory(
        "dec-new",
        "Redis or sessions, and others.\n",
        title="More",
        temporal_class="eternal",
        status="candidate",
    )
    return sandbox


def test_rerankers_order_what_was_found(three: Sandbox) -> None:
    """They change the order, never what is there; a function may be given in Python."""
    scope = three.scope()
    orders = {}
    for name in RERANKERS:
        chosen = scope.replace(config=settings(f'[search]\nrerank = "{name}"\n'))
        orders[name] = ids(search_prose(chosen, "redis sessions", (), 5))
    assert orders["relevance"][0] == "dec-best"
    assert orders["newest"][0] == "dec-new"
    assert orders["score"] != orders["newest"]
    assert len({tuple(sorted(order)) for order in orders.values()}) == 1
    backwards = scope.replace(rerank=lambda hits: hits[::-1])
    assert ids(search_prose(backwards, "redis sessions", (), 5)) == orders["score"][::-1]
