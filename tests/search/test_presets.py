"""Tests of presets: settings choose by name, and name no code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from memtool.errors import MemtoolError
from memtool.search.answer_gate import PRESETS, RERANKERS, preset, search_prose
from memtool.search.retrieve import Found
from memtool.store import config
from memtool.store.config import BY_KEY

if TYPE_CHECKING:
    from conftest import Sandbox


def ids(found: Found) -> list[str]:
    return [hit.record.id for hit in found.hits]


def settings(text: str) -> config.Config:
    return config.parse(text.encode(), "config.toml")


def test_the_settings_name_what_the_tables_hold() -> None:
    """Neither table has a row that cannot be chosen, or lacks one that can."""
    assert BY_KEY["search.preset"].choices == tuple(PRESETS)
    assert BY_KEY["search.rerank"].choices == tuple(RERANKERS)
    with pytest.raises(MemtoolError):
        settings('[search]\nrerank = "os:system"\n')


def test_a_threshold_of_ones_own_wins_over_the_preset() -> None:
    """A preset is sharper or not; what the file says counts."""
    assert preset(settings("")).threshold == BY_KEY["inject.threshold"].default
    assert preset(settings('[search]\npreset = "precision"\n')).threshold == 0.7
    own = '[search]\npreset = "precision"\n[inject]\nthreshold = 0.2\n'
    assert preset(settings(own)).threshold == 0.2
    assert preset(settings(own)).strictness == PRESETS["precision"].strictness


def test_precision_passes_less(sandbox: Sandbox) -> None:
    """What is half an answer passes in one preset and not in the other."""
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
    sandbox.memory("dec-best", "Redis sessions.\n", title="Redis sessions", status="deprecated",
                   timestamp=old, temporal_class="eternal")  # fmt: skip
    sandbox.memory("dec-mid", "Redis, other sessions, and more of that.\n", title="Mid",
                   timestamp=old, temporal_class="eternal", status="pinned")  # fmt: skip
    sandbox.memory("dec-new", "Redis or sessions, and others.\n", title="More",
                   temporal_class="eternal", status="candidate")  # fmt: skip
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
