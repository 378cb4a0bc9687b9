"""Ranking: factors and their bounds, and fading by the preset of the settings."""

from __future__ import annotations

import math
import os
import sqlite3
from random import Random
from typing import TYPE_CHECKING

import pytest
from conftest import Sandbox, make_memory, make_tree
from hypothesis import given
from hypothesis import strategies as st

from memtool.index import index
from memtool.index.reader import StoredCatalog
from memtool.memory import timestamps
from memtool.memory.fields import CONFIDENCES, DEFAULT_CATEGORIES, STATUSES
from memtool.memory.lifecycle import PRESETS
from memtool.memory.trust import TRUST_LEVELS
from memtool.search.features import Facts
from memtool.search.ranking import (
    FACTORS,
    STATUS,
    TRUST,
    RankingContext,
    Weigher,
    parse_context,
    weigh,
)
from memtool.store import ledger, usage_log
from memtool.store.tree import Record
from memtool.store.usage_log import Note, ShownItem

if TYPE_CHECKING:
    from memtool.memory.memory import FieldValue


NOW = timestamps.parse("2026-03-01T12:00:00Z")


def record(id: str = "dec-a", **fields: FieldValue) -> Record:
    return Record(make_memory(id, **fields), f".memory/{id}.md", "0" * 40)


def test_every_status_and_level_of_trust_has_its_weight() -> None:
    """The tables of the ranking name what the field table and provenance know, and nothing else."""
    assert set(STATUS) == set(STATUSES)
    assert set(TRUST) == set(TRUST_LEVELS)


def factors(*records: Record, now: int = NOW, **situation: object) -> dict[str, float]:
    """Return the factors of the first record."""
    facts = Facts(make_tree(*records), now, dict)
    return weigh(records[0], facts, RankingContext(**situation))


def test_recency_fades_with_the_category() -> None:
    """A decision of last month is still fresh, a state of last month is not."""
    month_ago = "2026-01-30T12:00:00Z"
    fresh = factors(record(timestamp="2026-03-01T12:00:00Z"))["recency"]
    decision = factors(record(timestamp=month_ago))["recency"]
    state = factors(record(timestamp=month_ago, type="state"))["recency"]
    assert fresh == 1.4
    assert 1.3 < decision < fresh
    assert 1 < state < 1.03


def test_a_confirmation_makes_a_memory_fresh_again() -> None:
    """Age counts from the last confirmation."""
    checked = {"at": "2026-03-01T00:00:00Z", "by": "Ada"}
    old = "2024-01-01T00:00:00Z"
    stale = factors(record(timestamp=old))["recency"]
    assert factors(record(timestamp=old, checked=checked))["recency"] > stale


def test_only_a_rate_of_zero_keeps_a_memory_fresh() -> None:
    """An eternal memory has no end but still ages; its own rate overrides all."""
    old = "2020-01-01T00:00:00Z"
    assert factors(record(timestamp=old, temporal_class="eternal"))["recency"] < 1.01
    assert factors(record(timestamp=old, fade_rate="0"))["recency"] == 1.4


def test_a_date_in_the_future_is_no_advantage() -> None:
    """A clock that runs ahead counts as now."""
    assert factors(record(timestamp="2030-01-01T00:00:00Z"))["recency"] == 1.4


def test_status_confidence_and_importance_order_alike() -> None:
    """Pinned before confirmed before candidate before deprecated, sure before unsure."""
    order = ("pinned", "confirmed", "candidate", "archived", "deprecated", "deleted")
    statuses = [factors(record(status=status))["status"] for status in order]
    assert statuses == sorted(statuses, reverse=True)
    sure = [factors(record(confidence=level))["confidence"] for level in CONFIDENCES]
    assert sure == sorted(sure)
    assert factors(record(importance="1"))["importance"] == 1.1
    assert factors(record())["importance"] == factors(record(importance="0.5"))["importance"] == 1


def test_an_open_file_helps_a_little() -> None:
    """A memory that governs an open file gains a tenth, by path, glob or directory, not by name."""
    for entry in ("src/a.py", "src/*.py", "src"):
        assert factors(record(files=(entry,)), files=("x.md", "src/a.py"))["files"] == 1.1
    assert factors(record(files=("lib/a.py",)), files=("src/a.py",))["files"] == 1
    assert factors(record(files=("src/b.py",)), files=("src/a.py",))["files"] == 1.03
    assert factors(record(files=("b.py",)), files=("a.py",))["files"] == 1
    source = ("file:src/a.py#L3-L4",)
    assert factors(record(source=source), files=("src/a.py",))["files"] == 1.1


def test_what_changes_together_with_an_open_file_helps_less() -> None:
    """Governing the open file counts more, and naming its neighbour counts less; never both."""
    situation = {"files": ("src/a.py",), "companions": ("tests/a.py", "etc/a.toml")}
    assert factors(record(files=("tests",)), **situation)["files"] == 1.05
    assert factors(record(files=("src/b.py", "etc/*")), **situation)["files"] == 1.05
    assert factors(record(files=("src", "tests")), **situation)["files"] == 1.1
    assert factors(record(files=("src/b.py",)), **situation)["files"] == 1.03
    assert factors(record(files=("tests/b.py",)), **situation)["files"] == 1


def test_a_superseded_memory_ranks_below_its_successor() -> None:
    """Where both are shown, the current one comes first."""
    newer = record("dec-b", supersedes=("dec-a",))
    assert factors(record("dec-a"), newer)["current"] < factors(newer, record("dec-a"))["current"]


def test_a_category_weighs_what_its_row_says() -> None:
    """Whole, not half of it."""
    for name, row in DEFAULT_CATEGORIES.items():
        assert factors(record(category=name))["category"] == row.weight


def test_a_strange_category_stays_in_bounds() -> None:
    """A configured weight is limited to near 1."""
    heavy = {"pattern": DEFAULT_CATEGORIES["pattern"].replace(weight=1000.0)}
    candidate = record(category="pattern")
    facts = Facts(make_tree(candidate, categories=heavy), NOW, dict)
    assert weigh(candidate, facts)["category"] == 2
    facts = Facts(make_tree(candidate, categories={}), NOW, dict)
    assert weigh(candidate, facts)["category"] == 1


def test_a_trigger_phrase_counts_where_it_is_said() -> None:
    """Case and punctuation aside, as whole words next to each other."""
    candidate = record(trigger_phrases=("flaky tests", "!"))
    spoken = parse_context("Why are there Flaky-Tests again?", ())
    assert factors(candidate, words=spoken.words)["trigger"] == 1.25
    assert factors(candidate, words=parse_context("flaky unit tests", ()).words)["trigger"] == 1
    assert factors(record(), words=spoken.words)["trigger"] == 1


def test_the_kind_of_a_question_is_one_of_its_first_words() -> None:
    """A memory may name the kinds it answers; if not, its type counts a little."""
    why = parse_context("so, why do we keep redis? " + "x " * 20 + "how", ()).kinds
    assert why == {"why"}
    assert factors(record(question_types=("why", "how-to")), kinds=why)["question"] == 1.1
    assert factors(record(question_types=("how-to",)), kinds=why)["question"] == 1
    assert factors(record(), kinds=why)["question"] == 1.03
    assert factors(record(type="semantic"), kinds=why)["question"] == 1
    assert factors(record())["question"] == 1


def test_open_work_gains_a_little() -> None:
    """It waits for action, by an agent or a person."""
    assert factors(record(action_required="true"))["action"] == 1.05
    assert factors(record(action_required="false"))["action"] == factors(record())["action"] == 1
    assert factors(record(awaiting="decision"))["awaiting"] == 1.05
    assert factors(record())["awaiting"] == 1


def test_accesses_count_only_where_it_is_wanted() -> None:
    """The ledger of one clone changes no answer unless the settings say so."""
    shown = {"dec-a": 10_000, "dec-b": 0, "dec-c": 2, "dec-d": 3}.__getitem__
    assert factors(record(), accesses=shown)["access"] == 1
    assert factors(record(), access=0.2)["access"] == 1
    assert factors(record(), accesses=shown, access=0.2)["access"] == 1.2
    boosts = [
        factors(record(f"dec-{letter}"), accesses=shown, access=0.2)["access"] for letter in "bcd"
    ]
    assert boosts[:2] == [1, 1]
    assert 1 < boosts[2] < 1.1


AGED = "2025-12-22T12:00:00Z"
"""69 days before now."""


@pytest.mark.parametrize("preset", PRESETS)
def test_decay_scales_importance_itself_but_by_the_steady_preset(preset: str) -> None:
    """What was of importance 1 weighs as what is of so much importance as is left."""
    old = factors(record(importance="1", timestamp=AGED), fading=preset)
    freshness = (old["recency"] - 1) / 0.4
    assert 0 < freshness < 0.9
    weight = 1 if preset == "steady" else freshness
    assert old["importance"] == pytest.approx(0.9 + 0.2 * weight)
    fresh = factors(record(importance="1", timestamp="2026-03-01T12:00:00Z"), fading=preset)
    assert fresh["importance"] == pytest.approx(1.1)


def test_accesses_keep_importance_by_the_exponential_preset() -> None:
    """A twentieth each, so that what is used stays."""
    aged = record(importance="1", timestamp=AGED)
    seen = factors(aged, fading="exponential", accesses=lambda _id: 20)
    unseen = factors(aged, fading="exponential")
    assert (seen["importance"] - 0.9) / (unseen["importance"] - 0.9) == pytest.approx(2)


def test_trust_orders_where_it_is_known() -> None:
    """What git vouches for more comes before what it vouches for less."""
    levels = [
        factors(record(), trust=lambda _record, level=level: level)["trust"]
        for level in ("local", "committed", "trusted", "signed")
    ]
    assert levels == sorted(levels)
    assert factors(record())["trust"] == levels[1] == 1


@given(
    status=st.sampled_from(STATUSES),
    confidence=st.sampled_from(CONFIDENCES),
    importance=st.floats(0, 1).map(lambda share: f"{share:f}"),
    fade_rate=st.floats(0, 1e6).map(lambda rate: f"{rate:f}"),
    now=st.integers(0, 1 << 40),
)
def test_every_factor_keeps_its_bounds(
    status: str, confidence: str, importance: str, fade_rate: str, now: int
) -> None:
    """No memory at no time gets a factor outside of what the table says."""
    candidate = record(
        status=status, confidence=confidence, importance=importance, fade_rate=fade_rate
    )
    given_factors = factors(candidate, now=now)
    assert list(given_factors) == [factor.name for factor in FACTORS]
    for factor in FACTORS:
        assert factor.minimum <= given_factors[factor.name] <= factor.maximum


FIELDS: dict[str, list[FieldValue]] = {
    "status": list(STATUSES),
    "confidence": list(CONFIDENCES),
    "category": ["pattern", "warning", "unheard"],
    "type": ["decision", "episodic"],
    "importance": ["0", "0.5", "1"],
    "fade_rate": ["0", "0.01", "3"],
    "temporal_class": ["eternal", "long_term"],
    "timestamp": ["2026-02-01T12:00:00Z", "2026-04-01T12:00:00Z"],
    "checked": [{"at": "2026-02-20T12:00:00Z"}],
    "trigger_phrases": [("flaky tests",), ("redis",)],
    "question_types": [("why",), ("how",)],
    "files": [("src/*.py",)],
    "action_required": ["true", "false"],
    "awaiting": ["decision"],
    "supersedes": [("dec-00",)],
}
SITUATIONS = (
    parse_context("Why are there flaky tests?", ("src/a.py",)),
    parse_context("redis", ()),
    RankingContext(),
    RankingContext(accesses=lambda id_: 5 * int(id_[4:]), access=0.2),
    RankingContext(accesses=lambda id_: 2 * int(id_[4:]), access=0.05, fading="half-life"),
    RankingContext(accesses=lambda id_: int(id_[4:]), fading="exponential"),
    RankingContext(trust=lambda memory: "signed" if memory.id == "dec-00" else "local"),
    RankingContext(fading="exponential"),
    RankingContext(fading="weekly"),
)


def test_what_is_known_of_a_kind_bounds_its_memories(sandbox: Sandbox) -> None:
    """The maximum weight of an unopened memory is at least its weight when opened."""
    random = Random(7)  # the same memories each time
    for number in range(40):
        keys = random.sample(sorted(FIELDS), k=6)
        sandbox.memory(f"dec-{number:02}", **{key: random.choice(FIELDS[key]) for key in keys})
    sandbox.commit()
    context = sandbox.context()
    tree = index.open(context, None, None, exact=False)
    assert isinstance(tree, StoredCatalog)
    facts = Facts(tree, NOW, dict)
    for at in SITUATIONS:
        weigher = Weigher(tree.index, facts, at)
        for number in range(tree.index.count):
            candidate = tree.record(number)
            assert weigher.weigh(number, candidate) == pytest.approx(weigh(candidate, facts, at))
            assert math.prod(weigh(candidate, facts, at).values()) <= weigher.maximum(number)


@pytest.fixture
def store(sandbox: Sandbox) -> Sandbox:
    """A memory of sixty days that was looked at ten times, the last time days ago."""
    sandbox.memory("dec-a", "Sessions live in Postgres.\n", timestamp="2025-12-31T12:00:00Z")
    directory = str(sandbox.path / ".git" / "memtool")
    for moment in range(10):
        usage_log.append_note(directory, Note(moment, "search", 1.0, items=(ShownItem("dec-a"),)))
    ledger.fold(directory)
    end_day(directory)
    return sandbox


def end_day(directory: str) -> None:
    """Let what was taken over be of an earlier day."""
    with sqlite3.connect(os.path.join(directory, ledger.NAME)) as connection:
        connection.execute("UPDATE folded SET day = 0")
    connection.close()


def recency(store: Sandbox, settings: str) -> float:
    """The factor of recency with these settings."""
    store.write(".memory/config.toml", f"[decay]\n{settings}\n")
    (hit,) = store.json("search", "sessions", "--explain", MEMTOOL_NO_LEDGER="1")["results"]
    return float(hit["factors"]["recency"])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", 1 + 0.4 * 0.835270),
        ('preset = "half-life"', 1 + 0.4 / 3),
        ('preset = "weekly"', 1 + 0.4 * 0.644240),
        ('preset = "exponential"', 1 + 0.4 * 0.247948),
    ],
)
def test_the_settings_decide(store: Sandbox, settings: str, expected: float):
    """Each preset gives what it should after sixty days; it decides whether accesses count."""
    assert recency(store, settings) == pytest.approx(expected, abs=1e-4)


def test_what_was_used_often_gains_a_little_unless_a_question_is_asked_again(store: Sandbox):
    """Ten accesses count unasked; of another moment or revision the answer is the same anywhere."""
    store.commit()
    gains = {
        words: store.json("search", "sessions", "--explain", *words)["results"][0]["factors"][
            "access"
        ]
        for words in ((), ("--as-of", "2026-02-28"), ("--at", "HEAD"))
    }
    assert gains.pop(()) == pytest.approx(1 + 0.05 * math.log10(11) / 2, abs=1e-4)
    assert set(gains.values()) == {1}
    store.write(".memory/config.toml", "[search]\naccess = 0\n")
    (hit,) = store.json("search", "sessions", "--explain")["results"]
    assert hit["factors"]["access"] == 1


def test_asking_changes_no_answer_within_a_day(store: Sandbox):
    """However often it is asked; the counts of a day count from the next one on."""
    store.commit()
    directory = store.path / ".git" / "memtool"

    def gain() -> float:
        (hit,) = store.json("search", "sessions", "--explain")["results"]
        return float(hit["factors"]["access"])

    before = gain()
    for _time in range(3):
        for _answer in range(30):
            note = Note(1, "search", 1.0, items=(ShownItem("dec-a"),))
            usage_log.append_note(str(directory), note)
        ledger.fold(str(directory))
        assert gain() == before == pytest.approx(1 + 0.05 * math.log10(11) / 2, abs=1e-4)
    end_day(str(directory))
    assert gain() == pytest.approx(1.05, abs=1e-3)


def test_pinned_memories_stay_fresh(store: Sandbox):
    """Whatever the formula."""
    store.run("pin", "dec-a")
    assert recency(store, 'preset = "weekly"\naccesses = true') == 1.4
