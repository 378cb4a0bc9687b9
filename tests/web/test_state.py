"""The keys of a cached answer, and the index that a separate process builds."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from memtool.calls.run import ServedRepository
from memtool.index import index
from memtool.web import app, state
from memtool.web.security import Guard

if TYPE_CHECKING:
    from typing import Any

    from conftest import Sandbox

    Web = Any


@pytest.fixture
def many(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """A clone without an index and a low threshold for many memories; pages do not wait."""
    sandbox.memory("dec-a", "Redis keeps the sessions.\n", title="Sessions")
    sandbox.memory("dec-b", "Postgres keeps the rest.\n", title="Rest")
    sandbox.commit()
    monkeypatch.setattr(state, "FEW", 1)
    monkeypatch.setattr(app, "SOON_S", 0)
    return sandbox


def test_the_first_page_says_that_the_index_is_being_built(many: Sandbox, web: Web) -> None:
    """It is sent at once and leads on at its end, when the page that was asked for is ready."""
    assert index.count_files_to_build(many.context()) == 2
    waiting = web.get("/search?q=redis")
    assert waiting.status == 503
    assert waiting.headers["retry-after"]
    assert "The search index of 2 memories is being built" in waiting.text
    assert waiting.text.count(app.LATER) == 1
    assert index.count_files_to_build(many.context()) == 0
    page = web.get("/search?q=redis")
    assert page.status == 200
    assert "/m/dec-a" in page.text
    assert app.LATER not in page.text


def test_a_program_waits_for_the_index(many: Sandbox, web: Web) -> None:
    """It gets the final answer."""
    answer = web.post("/api/search", {"query": "redis"})
    assert answer.status == 200
    assert [result["id"] for result in answer.json()["value"]["results"]] == ["dec-a"]
    assert index.count_files_to_build(many.context()) == 0


def test_pages_are_there_where_no_process_can_build(many: Sandbox, web: Web) -> None:
    """A process that fails is not started again and again: the answer builds its own index."""
    web.env["PYTHONHOME"] = "/nowhere"  # no Python starts with it
    assert web.get("/search?q=redis").status == 503
    page = web.get("/search?q=redis")
    assert page.status == 200
    assert "/m/dec-a" in page.text


def test_a_change_of_many_files_is_counted_as_a_build(many: Sandbox) -> None:
    """A few changes are read next to the index; another tree is indexed anew."""
    many.run("list")
    for number in range(70):
        many.memory(f"dec-n{number}", f"The number {number} is told here.\n")
    assert index.count_files_to_build(many.context()) == 2
    many.run("list")
    many.memory("dec-c", "One more.\n")
    assert index.count_files_to_build(many.context()) == 0


def test_a_look_for_a_change_does_not_wait_for_a_report(sandbox: Sandbox) -> None:
    """So a kept page and a search are there while a slow page is made."""
    sandbox.memory("dec-a")
    sandbox.commit()
    place = ServedRepository(str(sandbox.path), sandbox.env)
    made = app.Application(app.ServedSite(place, Guard(8765), "project", is_writing=False))
    report = threading.Event()
    made.slow.pool.submit(report.wait, 60)
    stamp = asyncio.run(asyncio.wait_for(made._read_stamp(), 30))
    report.set()
    assert stamp == made.watch.last
