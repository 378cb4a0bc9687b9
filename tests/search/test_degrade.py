"""Degrading: an answer depends on the speed of this machine only if the settings allow it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from conftest import PIPED

from memtool.commands.stats import render, stats
from memtool.index import index
from memtool.search.effort import FULL, LIMIT_S, SLOW, Effort
from memtool.search.prose import search_prose
from memtool.search.scope import build_scope
from memtool.search.stages import with_general_stages
from memtool.store import ledger
from memtool.store.ledger import DEGRADED, HEALTHY, TOO_FEW, Health, compute_health
from memtool.store.usage_log import Note, append_note

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Sandbox

ON = '[search]\ndegrade = "on"\n'
QUESTION = "where do sessions live in redis?"


def past(directory: str, elapsed_ms: float, count: int = 100, verb: str = "inject") -> None:
    """Note answers that took so long."""
    for moment in range(count):
        append_note(directory, Note(moment, verb, elapsed_ms))


@pytest.fixture
def filled(sandbox: Sandbox) -> Sandbox:
    """Thirty memories about one subject, the best of them related to one about another."""
    for number in range(30):
        fields: dict[str, Any] = {"related_to": ("dec-other",)} if not number else {}
        fields["temporal_class"] = "eternal"  # the clock is the machine's here
        sandbox.memory(
            f"dec-{number:02}",
            f"Sessions live in Redis, says {number}.\n",
            title="Sessions live in Redis" if not number else f"Sessions {number}",
            **fields,
        )
    sandbox.memory(
        "dec-other",
        "Redis keeps sessions on disk.\n",
        title="Redis on disk",
        temporal_class="eternal",
    )
    sandbox.commit()
    return sandbox


def test_a_slow_past_changes_nothing_unless_it_was_asked_for(filled: Sandbox) -> None:
    """The setting is off by default: the same question gives the same bytes."""
    args = ("inject", "--prompt", QUESTION)
    before = filled.run(*args, MEMTOOL_NOW="").stdout
    assert before
    past(str(filled.path / ".git" / "memtool"), 5_000.0)
    assert stats(filled.context()).health.state == DEGRADED
    assert filled.run(*args, MEMTOOL_NOW="").stdout == before
    answer = filled.json(*args, MEMTOOL_NOW="")
    assert "degraded" not in answer


def test_a_degraded_answer_says_so(filled: Sandbox) -> None:
    """In --json and in a note, in the block of a prompt, a search and a hook."""
    filled.write(".memory/config.toml", ON)
    place = str(filled.path / ".git" / "memtool")
    assert "degraded" not in filled.json("search", QUESTION, MEMTOOL_NOW="")
    past(place, 5_000.0)
    for verb in (("inject", "--prompt", QUESTION), ("search", QUESTION)):
        done = filled.run(*verb, "--json", MEMTOOL_NOW="")
        assert json.loads(done.stdout)["degraded"] is True
        assert SLOW in done.stderr
    event = json.dumps({"cwd": str(filled.path), "session_id": "s", "prompt": QUESTION})
    hooked = filled.json("hook", "claude", "user-prompt-submit", "--input", event, MEMTOOL_NOW="")
    assert hooked["degraded"] is True
    assert hooked["ids"]


def test_a_fixed_moment_is_never_degraded(filled: Sandbox) -> None:
    """Who asks as of a moment or a revision asks for the same answer again."""
    filled.write(".memory/config.toml", ON)
    past(str(filled.path / ".git" / "memtool"), 5_000.0)
    assert "degraded" not in filled.json("search", QUESTION)
    assert "degraded" not in filled.json("search", QUESTION, "--at", "HEAD", MEMTOOL_NOW="")
    assert "degraded" not in filled.json(
        "search", QUESTION, "--as-of", "2026-02-28", MEMTOOL_NOW=""
    )


def test_no_clock_is_asked_unless_the_setting_is_on(filled: Sandbox) -> None:
    """A prompt gets all of its answer, however long that takes."""
    context = filled.context(MEMTOOL_NOW="")
    tree = index.open(context)
    off = with_general_stages(context, build_scope(context, tree, context.clock.now))
    assert off.effort == FULL
    filled.write(".memory/config.toml", ON)
    context = filled.context(MEMTOOL_NOW="")
    on = with_general_stages(context, build_scope(context, index.open(context), context.clock.now))
    assert on.effort.clock is not None
    seconds = iter([0.0, *[LIMIT_S] * 100])
    result = search_prose(on.replace(effort=Effort(clock=lambda: next(seconds))), QUESTION, (), 15)
    assert result.is_degraded
    assert result.hits
    assert any("stopped after 200 ms" in note for note in result.notes)


def test_health_is_that_of_the_last_hundred_questions(tmp_path: Path) -> None:
    """Other verbs and older answers do not count; below twenty it is unknown."""
    place = str(tmp_path)
    past(place, 1.0, 19)
    past(place, 9_000.0, 50, verb="check")
    assert compute_health(place) == Health(TOO_FEW, 19, None)
    past(place, 1.0, 81)
    assert compute_health(place) == Health(HEALTHY, 100, 1.0)
    past(place, 301.0, 6, verb="search")
    assert compute_health(place) == Health(DEGRADED, 100, 301.0)
    ledger.fold(place)
    assert compute_health(place) == Health(DEGRADED, 100, 301.0)
    past(place, 1.0, 1)
    assert compute_health(place) == Health(DEGRADED, 100, 301.0)
    past(place, 1.0, 94)
    assert compute_health(place) == Health(HEALTHY, 100, 1.0)


def test_a_damaged_ledger_costs_statistics_only(tmp_path: Path) -> None:
    """Its old counts are lost; later ones still count."""
    place = str(tmp_path)
    past(place, 1.0, 30)
    ledger.fold(place)
    (tmp_path / ledger.NAME).write_bytes(b"no database")
    past(place, 2.0, 20)
    assert compute_health(place) == Health(HEALTHY, 20, 2.0)


def test_stats_shows_the_health_of_the_search(sandbox: Sandbox) -> None:
    """Healthy, degraded or too few answers, in text and in --json."""
    sandbox.memory("dec-a")
    place = str(sandbox.path / ".git" / "memtool")
    past(place, 5.0, 3)
    assert "search: too few answers" in render(stats(sandbox.context()), PIPED)
    past(place, 5.0, 97)
    text = "search: healthy, p95 of the last 100 is 5.0 ms"
    assert text in render(stats(sandbox.context()), PIPED)
    past(place, 400.0, 10)
    assert sandbox.json("stats")["health"] == {"state": "degraded", "samples": 100, "p95_ms": 400.0}
