"""Retrieval: what answers a question, in which order, what does not, and why."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memtool.index import index
from memtool.search.effort import Effort
from memtool.search.prose import search_prose
from memtool.search.query import parse, parse_leniently
from memtool.search.retrieve import SearchResult, find_records, search_query
from memtool.store.config import Config

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conftest import Sandbox


DATA = Path(__file__).parent / "data"


def ask(sandbox: Sandbox, text: str, limit: int = 10) -> list[str]:
    return ids(search_query(sandbox.scope(), parse(text), limit))


def prompt(sandbox: Sandbox, text: str, *files: str, limit: int = 10) -> list[str]:
    return ids(search_prose(sandbox.scope(), text, files, limit))


def ids(result: SearchResult) -> list[str]:
    return [hit.record.id for hit in result.hits]


@pytest.fixture
def filled(sandbox: Sandbox) -> Sandbox:
    """A repository with a few memories about different things."""
    sandbox.memory(
        "dec-redis", "Sessions live in Redis and expire.\n", title="Keep sessions in Redis"
    )
    sandbox.memory("dec-cache", "Redis is also the cache.\n", title="One cache for all")
    sandbox.memory(
        "sem-tests",
        "Run pytest before a commit.\n",
        title="How tests run",
        type="semantic",
        files=("tests/**",),
    )
    sandbox.memory(
        "sta-login",
        "The login form is half done.\n",
        title="Login",
        type="state",
        timestamp="2026-02-28T10:00:00Z",
    )
    return sandbox


def test_a_commit_title_finds_what_it_is_about(sandbox: Sandbox) -> None:
    """What a title has in parentheses, such as a pull request, adds words and requires none."""
    titles = (DATA / "commit_titles.txt").read_text().splitlines()
    for number, title in enumerate(titles):
        sandbox.memory(f"dec-{number:02}", title=title.partition("(#")[0].strip())
    scope = sandbox.scope()
    firsts = [ids(search_query(scope, parse_leniently(title)[0], 1)) for title in titles]
    assert firsts == [[f"dec-{number:02}"] for number in range(len(titles))]


def test_any_word_may_match_and_more_words_rank_higher(filled: Sandbox) -> None:
    """A question is not a conjunction: one word finds, two words find better."""
    assert ask(filled, "redis sessions unheard") == ["dec-redis", "dec-cache"]


def test_what_shares_no_word_is_not_found(filled: Sandbox) -> None:
    """Neither pinning nor importance nor youth makes an irrelevant memory relevant."""
    filled.memory("dec-pinned", "About billing.\n", status="pinned", importance="1")
    assert ask(filled, "kubernetes") == []
    assert "dec-pinned" not in ask(filled, "redis")


def test_stop_words_alone_find_nothing_but_say_so(filled: Sandbox) -> None:
    """Common words rank among others; alone they are answered by a note."""
    result = search_query(filled.scope(), parse("in the and"), 10)
    assert result.hits == ()
    assert result.notes
    assert prompt(filled, "is it in the?") == []


def test_a_query_of_filters_alone_finds_all_that_they_admit(filled: Sandbox) -> None:
    """Without words every memory that satisfies the filters is as relevant as the others."""
    result = search_query(filled.scope(), parse("type:decision OR type:state"), 10)
    assert sorted(ids(result)) == ["dec-cache", "dec-redis", "sta-login"]
    assert {hit.factors["relevance"] for hit in result.hits} == {1.0}


def test_an_alternative_without_words_stands_behind_what_words_found(filled: Sandbox) -> None:
    """Both sides of OR are found; words rank."""
    assert ask(filled, "type:state OR sessions") == ["dec-redis", "sta-login"]


def test_a_quoted_word_is_required(filled: Sandbox) -> None:
    """Quotes turn a ranked word into a condition, a hyphen into its opposite."""
    assert ask(filled, 'redis "sessions"') == ["dec-redis"]
    assert ask(filled, "redis -sessions") == ["dec-cache"]
    assert ask(filled, '"is also the"') == ["dec-cache"]


def test_the_limit_cuts_after_the_order_and_the_total_counts_all(filled: Sandbox) -> None:
    """A smaller limit gives the beginning of the same list, with the same scores."""
    scope = filled.scope()
    whole = search_query(scope, parse("redis login tests"), 100)
    for limit in (0, 1, 3, 10**6):
        result = search_query(scope, parse("redis login tests"), limit)
        assert result.hits == whole.hits[:limit]
        assert result.total == 4


def test_another_order_sorts_everything_before_the_limit(filled: Sandbox) -> None:
    """The newest of all matches is found, not the newest of the best."""
    query = parse("redis login")
    result = search_query(
        filled.scope(), query, 1, order=lambda hit: (-hit.record.memory.timestamp,)
    )
    assert ids(result) == ["sta-login"]


def test_a_score_is_the_product_of_its_factors(filled: Sandbox) -> None:
    """What `--explain` shows is all there is: relevance between 0 and 1 times the factors."""
    for hit in search_query(filled.scope(), parse("redis login tests"), 10).hits:
        product = 1.0
        for value in hit.factors.values():
            product *= value
        assert hit.score == product
        assert 0 < hit.factors["relevance"] <= 1


def test_equal_memories_are_ordered_by_id(sandbox: Sandbox) -> None:
    """Nothing but the id decides between the same words."""
    for name in ("dec-c", "dec-a", "dec-b"):
        sandbox.memory(name, "The same words.\n", title="Same")
    assert ask(sandbox, "words same") == ["dec-a", "dec-b", "dec-c"]


def test_a_correction_is_found_by_the_words_that_it_dropped(sandbox: Sandbox) -> None:
    """The head inherits the relevance of what it replaces; the old one itself is left out."""
    sandbox.memory("dec-old", "Sessions are kept in Memcached.\n", title="Memcached")
    sandbox.memory("dec-mid", "Both.\n", title="Mid", supersedes=("dec-old",))
    sandbox.memory("dec-new", "They live in Redis.\n", title="Redis", supersedes=("dec-mid",))
    (hit,) = search_query(sandbox.scope(), parse("memcached"), 10).hits
    assert (hit.record.id, hit.through, hit.terms) == ("dec-new", "dec-old", ())
    assert ask(sandbox, "memcached is:superseded") == ["dec-old"]
    assert ask(sandbox, "memcached is:superseded OR memcached") == ["dec-new", "dec-old"]
    assert prompt(sandbox, "why do we use memcached?") == ["dec-new"]


def test_a_filter_is_about_the_memory_that_is_shown(sandbox: Sandbox) -> None:
    """Inherited words do not bring a head past the filters, nor an old one's phrase its own."""
    sandbox.memory("dec-old", "Sessions are kept in Memcached.\n", type="semantic")
    sandbox.memory("dec-new", "They live in Redis.\n", supersedes=("dec-old",))
    assert ask(sandbox, "memcached type:semantic") == []
    assert ask(sandbox, '"kept in memcached"') == []


def test_deleted_words_count_for_nobody(sandbox: Sandbox) -> None:
    """What was forgotten leads nowhere any more."""
    deleted = {"at": "2026-02-25T00:00:00Z", "by": "Ada", "reason": "wrong"}
    sandbox.memory("dec-old", "Memcached.\n", status="deleted", deleted=deleted)
    sandbox.memory("dec-new", "Redis.\n", supersedes=("dec-old",))
    assert ask(sandbox, "memcached") == []


def test_a_circle_shows_none_of_its_members(sandbox: Sandbox) -> None:
    """Memories that replace each other are found only when they are asked for."""
    sandbox.memory("dec-a", "Redis.\n", supersedes=("dec-b",))
    sandbox.memory("dec-b", "Redis.\n", supersedes=("dec-a",))
    assert ask(sandbox, "redis") == []
    assert ask(sandbox, "redis is:conflicted") == ["dec-a", "dec-b"]


def test_another_lineage_may_be_given(sandbox: Sandbox) -> None:
    """Who does not grant a superseding still finds what it would replace."""
    from memtool.memory.lineage import Lineage

    sandbox.memory("dec-old", "Memcached.\n")
    sandbox.memory("dec-new", "Redis.\n", supersedes=("dec-old",))
    scope = sandbox.scope(lineage=Lineage([]))
    assert ids(search_prose(scope, "memcached", (), 10)) == ["dec-old"]


def test_an_alias_finds_the_other_word(filled: Sandbox) -> None:
    """`auth` finds the memory that says login, but behind one that says auth."""
    assert ask(filled, "auth") == ["sta-login"]
    filled.memory("dec-auth", "Auth by token.\n", title="Auth")
    assert ask(filled, "auth") == ["dec-auth", "sta-login"]


def test_nothing_is_an_operator_in_prose(filled: Sandbox) -> None:
    """A prompt may hold quotes, parentheses, filters that do not exist and any other text."""
    text = 'why: "redis (OR -sessions is:nonsense'
    assert "dec-redis" in prompt(filled, text)


def test_prose_about_something_else_finds_nothing(filled: Sandbox) -> None:
    """One shared everyday word does not make an answer."""
    text = "write a poem about the sea, the wind, old ships and a commit of love to the moon"
    assert prompt(filled, text) == []
    assert prompt(filled, "") == []


def test_a_file_that_is_open_decides_between_equals(sandbox: Sandbox) -> None:
    """Affinity orders what is relevant, and finds nothing that is not."""
    sandbox.memory("dec-a", "Retries.\n", title="Same", files=("src/a.py",))
    sandbox.memory("dec-b", "Retries.\n", title="Same", files=("src/b.py",))
    sandbox.memory("dec-c", "Colours.\n", title="Other", files=("src/b.py",))
    assert prompt(sandbox, "retries", "src/b.py") == ["dec-b", "dec-a"]


def test_without_a_question_the_files_are_one(filled: Sandbox) -> None:
    """A prompt that asks for nothing is answered by what governs the open files."""
    assert prompt(filled, "", "tests/test_a.py") == ["sem-tests"]
    assert prompt(filled, "and so?", "src/a.py") == []


def test_prose_finds_only_living_heads(sandbox: Sandbox) -> None:
    """Nothing in a prompt can ask for what is archived, expired, pending or superseded."""
    sandbox.memory("dec-archived", "Redis.\n", status="archived")
    sandbox.memory("dec-expired", "Redis.\n", valid_through="2026-02-25")
    sandbox.memory("dec-pending", "Redis.\n", valid_from="2026-04-01")
    sandbox.memory("dec-old", "Redis.\n")
    sandbox.memory("dec-new", "Redis.\n", supersedes=("dec-old",))
    assert prompt(sandbox, "redis status:archived is:expired id:dec-old") == ["dec-new"]


def test_select_gives_all_that_satisfy_in_order_of_id(filled: Sandbox) -> None:
    """Listing uses the same language, without ranking."""
    chosen = find_records(filled.scope(), parse("redis OR type:state"))
    assert [record.id for record in chosen] == ["dec-cache", "dec-redis", "sta-login"]
    assert len(find_records(filled.scope(), parse(""))) == 4


def test_an_empty_tree_answers_everything_with_nothing(sandbox: Sandbox) -> None:
    """Before the first memory every question has an empty answer."""
    assert ask(sandbox, "redis") == []
    assert ask(sandbox, "type:decision") == []
    assert prompt(sandbox, "where is redis?", "a.py") == []
    assert find_records(sandbox.scope(), parse("")) == []


def test_a_long_text_is_answered_by_what_tells_most(filled: Sandbox) -> None:
    """A hundred kilobytes of log around a question do not drown it."""
    noise = " ".join(f"x{number}y" for number in range(12_000))
    assert (
        prompt(filled, f"{noise} do we keep sessions in redis, do they expire {noise}")[0]
        == "dec-redis"
    )
    assert ask(filled, f"{noise} sessions expire in redis")[0] == "dec-redis"


def test_a_long_text_is_about_what_it_says_first(sandbox: Sandbox) -> None:
    """Of two answers to it the one to its beginning is first, unless it is short."""
    sandbox.memory("dec-a", "Cranes carry the release.\n", title="Cranes")
    sandbox.memory("dec-b", "Tapes carry the release.\n", title="Tapes")
    noise = " ".join(f"word{letter}" for letter in "abcdefghijklmnopqrs")
    for text, expected in (
        (f"tapes {noise} cranes", ["dec-b", "dec-a"]),
        (f"cranes {noise} tapes", ["dec-a", "dec-b"]),
        ("tapes or cranes", ["dec-a", "dec-b"]),
    ):
        assert ids(search_prose(sandbox.scope(), text, (), 10, is_gated=False)) == expected


def test_what_is_said_late_may_still_be_the_question(filled: Sandbox) -> None:
    """The position of the question in the text does not matter."""
    chatter = "hello there, I am back, and before we go on with this, let me ask you " * 3
    assert prompt(filled, f"{chatter}: do sessions live in redis and expire")[0] == "dec-redis"


def test_answers_do_not_depend_on_the_cache(filled: Sandbox) -> None:
    """A cold, a warm and an impossible cache give the same hits with the same scores."""
    texts = ("redis login tests", "sessions", "one cache for all")
    answers = [
        [search_query(filled.scope(), parse(text), 10).hits for text in texts] for _each in "ab"
    ]
    shutil.rmtree(filled.path / ".git/memtool")
    answers.append([search_query(filled.scope(), parse(text), 10).hits for text in texts])
    assert all(first == other for first, other in itertools.pairwise(answers))


def test_an_unknown_word_finds_its_near_words(filled: Sandbox) -> None:
    """A typing error and the beginning of a word find; a word that is known stays as it is."""
    assert ask(filled, "reddis") == ask(filled, "redis")
    assert ask(filled, "sess") == ["dec-redis"]
    filled.memory("dec-reds", "Reds.\n", title="Reds")
    assert ask(filled, "reds") == ["dec-reds"]


def test_a_misspelled_word_finds_what_is_stemmed(filled: Sandbox) -> None:
    """An error in the ending hides no memory."""
    filled.memory("dec-page", "Every list has pagination.\n", title="Lists")
    assert ask(filled, "paginaton") == ["dec-page"]


def test_a_category_is_a_word_and_a_session_is_none(sandbox: Sandbox) -> None:
    """A memory is found by what it is about, never by the name of the log that it comes from."""
    sandbox.memory(
        "dec-a",
        "Never delete rows.\n",
        title="Rows",
        category="warning",
        source=("session:redis-talk#1",),
    )
    assert ask(sandbox, "warning") == ["dec-a"]
    assert ask(sandbox, "redis talk") == []


TURNS = (
    "Which wine goes with the trout tonight?",
    "A dry one, and no oak.",
    "And for the cheese plate?",
    "Port.",
    "Shall we invite the neighbours, too?",
)


def talk(sandbox: Sandbox, numbers: Iterable[int], session: str, **fields: str) -> None:
    """Write turns of a talk, a memory each, all of one second."""
    for number in numbers:
        sandbox.memory(
            f"epi-{session}-{number}",
            f"{TURNS[number]}\n",
            title="Turn",
            type="episodic",
            source=("human:ada",),
            **({"session": session} | fields),
        )


def test_neighbours_of_a_thread_lend_their_score(sandbox: Sandbox) -> None:
    """A terse memory ranks next to the one it answers, before its equals."""
    talk(sandbox, range(5), "s1")
    sandbox.memory("epi-a", "A dry one, and no oak.\n", title="Turn", type="episodic")
    answer = ask(sandbox, "dry wine with trout")
    assert answer == ["epi-s1-0", "epi-s1-1", "epi-a"]


def test_nobody_borrows_from_a_session_of_the_more_trusted(sandbox: Sandbox) -> None:
    """A file that names another user's session gains nothing, and changes none of its scores."""
    talk(sandbox, (0, 1), "s1")
    sandbox.commit()
    (_first, alone) = search_query(sandbox.scope(), parse("dry wine with trout"), 10).hits
    sandbox.memory("epi-mine", f"{TURNS[1]}\n", title="Turn", type="episodic", session="s1")
    hits = search_query(sandbox.scope(), parse("dry wine with trout"), 10).hits
    assert [hit.record.id for hit in hits] == ["epi-s1-0", "epi-s1-1", "epi-mine"]
    relevance = {hit.record.id: hit.factors["relevance"] for hit in hits}
    assert relevance["epi-mine"] < 0.8 * relevance["epi-s1-1"]
    sandbox.memory("epi-mine", f"{TURNS[1]}\n", title="Turn", type="episodic", session="s2")
    apart = search_query(sandbox.scope(), parse("dry wine with trout"), 10).hits
    assert [hit.score for hit in apart] == pytest.approx([hit.score for hit in hits])
    assert alone.record.id == "epi-s1-1"


@pytest.mark.parametrize("field", ["task_id", "parent"])
def test_a_task_and_a_parent_are_threads(sandbox: Sandbox, field: str) -> None:
    """Memories of one piece of work belong together as those of one session do."""
    for number in range(2):
        value = ("dec-work",) if field == "parent" else "work"
        sandbox.memory(
            f"epi-s-{number}", f"{TURNS[number]}\n", title="Turn", type="episodic", **{field: value}
        )
    sandbox.memory("epi-a", f"{TURNS[1]}\n", title="Turn", type="episodic")
    assert ask(sandbox, "dry wine with trout") == ["epi-s-0", "epi-s-1", "epi-a"]


def test_what_shares_no_word_is_not_found_through_a_neighbour(sandbox: Sandbox) -> None:
    """A thread lifts what answers a little; it makes no answer of what says nothing to it."""
    talk(sandbox, range(5), "s1")
    assert ask(sandbox, "trout") == prompt(sandbox, "trout") == ["epi-s1-0"]


def test_threads_reach_over_what_changed_since(sandbox: Sandbox) -> None:
    """An answer is the same whether all memories are in the index or some are new."""
    talk(sandbox, (0, 2, 4), "s1")
    talk(sandbox, (0, 1), "s2")
    sandbox.commit()
    texts = ("dry wine with trout", "cheese and wine tonight", "neighbours too")
    search_query(sandbox.scope(), parse(texts[0]), 10)
    talk(sandbox, (1, 3), "s1")
    (sandbox.path / ".memory/episodic/2026-02/epi-s2-1.md").unlink()
    tree = index.open(sandbox.context(), None, None, exact=True)
    answers = [search_query(sandbox.scope(tree=tree), parse(text), 10).hits for text in texts]
    shutil.rmtree(sandbox.path / ".git/memtool")
    tree = index.open(sandbox.context(), None, None, exact=True)
    fresh = [search_query(sandbox.scope(tree=tree), parse(text), 10).hits for text in texts]
    assert [[(hit.record.id, hit.score) for hit in hits] for hits in answers] == [
        [(hit.record.id, hit.score) for hit in hits] for hits in fresh
    ]


def test_a_limit_changes_nothing_in_a_thread(sandbox: Sandbox) -> None:
    """How much is lent does not depend on how many answers are wanted."""
    for number in range(90):
        sandbox.memory(
            f"epi-{number:02}",
            f"{'wine ' * (1 + number % 5)}{'trout ' * (number % 3)}\n",
            title="Turn",
            type="episodic",
            session=f"s{number // 9}",
        )
    scope = sandbox.scope(tree=index.open(sandbox.context(), None, None, exact=True))
    whole = search_query(scope, parse("wine trout"), 90).hits
    for limit in (1, 5, 30, 60):
        assert search_query(scope, parse("wine trout"), limit).hits == whole[:limit]


def test_a_date_in_words_finds_what_was_written_then(sandbox: Sandbox) -> None:
    """A month means the time of writing, not a word of the text."""
    for month in (7, 8, 9):
        at = f"2023-0{month}-03T10:00:00Z"
        sandbox.memory(
            f"dec-{month}",
            "The wine is chosen.\n",
            title="Wine",
            timestamp=at,
            temporal_class="eternal",
        )
    for text in ("wine in August 2023", "wine on Aug 3, 2023", "wine on 3 August"):
        assert ask(sandbox, text)[0] == "dec-8"


def test_old_words_help_a_head_by_no_more_than_they_scored(sandbox: Sandbox) -> None:
    """A head that answers by itself gains a little by what it replaces, others nothing."""
    sandbox.memory("dec-a", "Sessions are kept in redis.\n", title="Same")
    sandbox.memory("dec-b", "Sessions are kept in redis.\n", title="Same")
    sandbox.memory("dec-old", "Sessions were kept in redis before.\n", title="Same")
    assert ask(sandbox, "sessions redis") == ["dec-a", "dec-b", "dec-old"]
    sandbox.memory("dec-b", "Sessions are kept in redis.\n", title="Same", supersedes=("dec-old",))
    assert ask(sandbox, "sessions redis") == ["dec-b", "dec-a"]


def test_the_ranking_can_be_seen_without_the_gatekeeper(filled: Sandbox) -> None:
    """What is measured is the order; what is said is another question."""
    text = "redis " + " ".join(f"word{letter}" for letter in "abcdefghij")
    result = search_prose(filled.scope(), text, (), 10, is_gated=False)
    assert sorted(ids(result)) == ["dec-cache", "dec-redis"]
    assert prompt(filled, text) == []


def test_what_is_related_to_a_winner_must_answer_itself(sandbox: Sandbox) -> None:
    """It is looked for behind the candidates, and passes only by its own words."""
    for number in range(60):
        sandbox.memory(f"dec-{number:02}", "Redis redis redis.\n", title="Redis")
    related = ("dec-yes", "dec-no", "dec-gone", "dec-absent")
    sandbox.memory("dec-00", "Redis redis redis.\n", title="Redis", related_to=related)
    words = " ".join(f"filler{letter}{other}" for letter in "abcdefgh" for other in "klmnopqr")
    sandbox.memory("dec-yes", f"Redis. {words}\n", title="Long")
    sandbox.memory("dec-no", f"Nothing. {words}\n", title="Long")
    sandbox.memory("dec-gone", f"Redis. {words}\n", title="Long", status="archived")
    result = search_prose(sandbox.scope(), "redis", (), 100)
    assert {hit.record.id: hit.related for hit in result.hits if hit.related} == {}
    result = search_prose(sandbox.scope(), "redis", (), 5)
    assert result.total == 31
    scope = sandbox.scope()
    (hit,) = [hit for hit in search_prose(scope, "redis", (), 31).hits if hit.related]
    assert (hit.record.id, hit.related) == ("dec-yes", "dec-00")


def test_only_so_many_candidates_are_weighed(sandbox: Sandbox) -> None:
    """The most relevant are ordered by all factors, the others follow as relevant as they are."""
    for number in range(6):
        body = "Redis " * (6 - number)
        sandbox.memory(f"dec-{number}", f"{body}\n", title="T", importance="1" if number else "0")
    whole = ask(sandbox, "redis")
    assert len(whole) == 6
    narrow = sandbox.scope(effort=Effort(weighed=2))
    result = search_query(narrow, parse("redis"), 10)
    assert result.total == 6
    assert set(ids(result)[:2]) == {"dec-0", "dec-1"}
    assert ids(search_query(narrow, parse("redis"), 3)) == ids(result)[:3]


def test_time_that_is_up_gives_the_best_so_far(sandbox: Sandbox) -> None:
    """The best candidates are judged in any case, the rest as far as the time allows."""
    for number in range(20):
        sandbox.memory(f"dec-{number:02}", "Redis.\n", title="Redis")
    seconds = itertools.count(step=10.0)
    result = search_prose(
        sandbox.scope(effort=Effort(clock=lambda: next(seconds))), "redis", (), 50
    )
    assert 0 < len(result.hits) < 20
    assert "stopped after 200 ms" in result.notes[0]
    patient = sandbox.scope(effort=Effort(clock=lambda: 0.0))
    assert search_prose(patient, "redis", (), 50) == search_prose(sandbox.scope(), "redis", (), 50)


def test_accesses_are_asked_only_where_they_count(filled: Sandbox) -> None:
    """With the setting at 0 the ledger is not even opened."""
    requested: list[str] = []

    def accesses(wanted: Iterable[str]) -> dict[str, int]:
        requested.extend(wanted)
        return dict.fromkeys(requested, 100)

    scope = filled.scope(settled_accesses=accesses)
    config = Config(values={"search.access_boost": 0.0}, categories=scope.config.categories)
    plain = search_prose(scope.replace(config=config), "redis", (), 10)
    assert requested == []
    result = search_prose(scope, "redis", (), 10)
    assert sorted(requested) == ["dec-cache", "dec-redis"]
    assert result.hits[0].score > plain.hits[0].score


def test_a_limit_cuts_the_end_off_and_changes_nothing_before_it(sandbox: Sandbox) -> None:
    """Memories that cannot be among the best are not opened, and the shown ones are the same."""
    for number in range(40):
        fields = {"status": "pinned"} if number % 7 == 0 else {"importance": str(number % 3 / 2)}
        words = " ".join(["redis"] * (1 + number % 4) + ["cache"] * (number % 3))
        sandbox.memory(
            f"dec-{number:02}",
            f"{words} {'and more ' * (number % 5)}\n",
            timestamp=f"2026-0{1 + number % 2}-{1 + number % 28:02}T10:00:00Z",
            **fields,
        )
    sandbox.commit()
    ws = sandbox.context()
    scope = sandbox.scope(tree=index.open(ws, None, None, exact=False))
    for text in ("redis", "redis cache", "cache more"):
        whole = search_query(scope, parse(text), 60).hits
        spoken = search_prose(scope, text, (), 60, is_gated=False).hits
        for limit in (0, 1, 5, 12, 30):
            assert search_query(scope, parse(text), limit).hits == whole[:limit]
            limited = search_prose(scope, text, (), limit, is_gated=False).hits
            assert limited == spoken[:limit]


@pytest.fixture
def hidden(sandbox: Sandbox) -> Sandbox:
    """One living memory about redis, and one in each hidden state."""
    deleted = {"at": "2026-02-25T00:00:00Z", "by": "Ada", "reason": "wrong"}
    sandbox.memory("dec-archived", "Redis.\n", status="archived")
    sandbox.memory("dec-deleted", "Redis.\n", status="deleted", deleted=deleted)
    sandbox.memory("dec-expired", "Redis.\n", valid_through="2026-02-25")
    sandbox.memory("dec-old-state", "Redis.\n", type="state", timestamp="2026-02-01T00:00:00Z")
    sandbox.memory("dec-pending", "Redis.\n", valid_from="2026-04-01")
    sandbox.memory("dec-old", "Redis.\n")
    sandbox.memory("dec-new", "Redis.\n", supersedes=("dec-old",))
    sandbox.memory("dec-other", "About the colour of walls.\n", status="archived")
    return sandbox


REASONS = {
    "dec-archived": "archived",
    "dec-deleted": "deleted",
    "dec-expired": "expired on 2026-02-25",
    "dec-old-state": "expired on 2026-02-15",
    "dec-pending": "pending, valid from 2026-04-01",
    "dec-old": "superseded by dec-new",
}


def test_what_a_query_leaves_out_is_named(hidden: Sandbox) -> None:
    """Only memories that satisfy the rest of the query, and only on request."""
    result = search_query(hidden.scope(), parse("redis"), 10, explain=True)
    assert [hit.record.id for hit in result.hits] == ["dec-new"]
    assert {missed.record.id: missed.reason for missed in result.missed} == REASONS
    assert search_query(hidden.scope(), parse("redis"), 10).missed == ()
    result = search_query(hidden.scope(), parse("redis type:state"), 10, explain=True)
    assert [missed.record.id for missed in result.missed] == ["dec-old-state"]
    result = search_query(hidden.scope(), parse("redis is:archived"), 10, explain=True)
    assert "dec-archived" not in {missed.record.id for missed in result.missed}


def test_what_a_prompt_does_not_get_is_named(hidden: Sandbox) -> None:
    """Beside what is hidden, what holds too little of the prompt."""
    result = search_prose(hidden.scope(), "why redis?", (), 10, explain=True)
    assert [hit.record.id for hit in result.hits] == ["dec-new"]
    assert {missed.record.id: missed.reason for missed in result.missed} == REASONS
    text = "walls, ships, oceans and a redis of elephants in Amsterdam"
    result = search_prose(hidden.scope(), text, (), 10, explain=True)
    assert result.hits == ()
    (missed,) = result.missed
    assert missed.record.id == "dec-new"
    assert missed.reason.endswith("of what an answer must hold")


QUESTION = "where do user sessions live"


def stuff(sandbox: Sandbox, count: int) -> None:
    """Write uncommitted files that hold the words of a question, and say the best of themselves."""
    for number in range(count):
        sandbox.memory(
            f"sem-evil-{number:02}",
            f"Where do user sessions live? User sessions live at {number}. User sessions live.\n",
            title=f"Where user sessions live, {number}",
            importance="1",
            status="pinned",
            trigger_phrases=(QUESTION,),
        )


@pytest.mark.parametrize("count", [1, 3, 40])
def test_uncommitted_files_push_out_no_committed_one(sandbox: Sandbox, count: int) -> None:
    """Two of five may be files that nobody has committed, however well they fit."""
    for name in ("redis", "memcached", "files"):
        sandbox.memory(f"dec-{name}", f"Sessions of {name} are one kind.\n", title=f"A {name}")
    sandbox.memory("dec-live", "User sessions are kept in Redis.\n", title="Sessions in Redis")
    sandbox.commit()
    before = {row["id"] for row in sandbox.json("search", QUESTION, "--limit", "3")["results"]}
    assert "dec-live" in before
    stuff(sandbox, count)
    rows = [row["id"] for row in sandbox.json("search", QUESTION, "--limit", "5")["results"]]
    assert len(rows) == 5
    assert len([id_ for id_ in rows if "evil" in id_]) == min(count, 2)
    assert before <= set(rows)


def test_of_two_that_say_alike_the_committed_comes_first(sandbox: Sandbox) -> None:
    """A file that nobody committed is no fresher than its own word."""
    old = {"timestamp": "2025-12-10T00:00:00Z"}
    sandbox.memory("dec-old", "User sessions live in Redis.\n", title="Where sessions live", **old)
    sandbox.commit()
    sandbox.memory("dec-new", "User sessions live in files.\n", title="Where sessions live")
    rows = sandbox.json("search", QUESTION)["results"]
    assert [row["id"] for row in rows] == ["dec-old", "dec-new"]
