"""The picture of what a memory rests on, and of what rests on it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from conftest import Sandbox

    Web = Any

BOX = re.compile(r'class="node s-(\w+)( here)?">\s*<rect x="(\d+)" y="(\d+)"')


def test_premises_are_on_the_left_and_unsettled_ones_are_marked(sandbox: Sandbox, web: Web):
    """From any memory: what it rests on with what replaced that, and what rests on it."""
    sandbox.memory("dec-ground", "It is 40 floors.\n", title="Ground")
    sandbox.memory("dec-middle", "So.\n", title="Middle", source=("memory:dec-ground",))
    sandbox.memory("dec-top", "And so.\n", title="Top", derived_from=("dec-middle",))
    sandbox.memory("dec-aside", "Aside.\n", title="Aside", related_to=("dec-middle",))
    page = web.get("/m/dec-middle/premises").text
    assert [(state, here, int(x)) for state, here, x, _y in BOX.findall(page)] == [
        ("active", "", 0),
        ("active", " here", 280),
        ("active", "", 560),
    ]
    assert "Aside" not in page
    assert 'rests on <a href="/m/dec-ground">Ground</a>' in page
    sandbox.memory("dec-new", "It is 50 floors.\n", title="New", supersedes=("dec-ground",))
    for name in ("dec-ground", "dec-middle", "dec-top"):
        page = web.get(f"/m/{name}/premises").text
        states = sorted(state for state, _here, _x, _y in BOX.findall(page))
        assert states == ["active", "superseded", "unsettled", "unsettled"]
        assert page.count("△ unsettled") == 4
        assert f'href="/m/{name}/premises"' in web.get(f"/m/{name}").text


def test_a_memory_that_rests_on_nothing_has_a_sentence(sandbox: Sandbox, web: Web):
    sandbox.memory("dec-alone", title="Alone")
    page = web.get("/m/dec-alone/premises")
    assert (page.status, "<svg" in page.text) == (200, False)
    assert "It rests on no other memory" in page.text
    assert "/premises" not in web.get("/m/dec-alone").text
    assert web.get("/m/dec-nowhere/premises").status == 404


def test_circles_and_crowds_are_drawn(sandbox: Sandbox, web: Web):
    """A circle ends by itself; of two hundred conclusions the first sixty memories are drawn."""
    sandbox.memory("dec-a", source=("memory:dec-b",))
    sandbox.memory("dec-b", "B.\n", source=("memory:dec-a",))
    assert len(BOX.findall(web.get("/m/dec-a/premises").text)) == 2
    sandbox.memory("dec-many", "Many.\n", title="</svg><script>")
    for number in range(200):
        sandbox.memory(f"dec-{number:03}", f"{number}.\n", source=("memory:dec-many",))
    page = web.get("/m/dec-many/premises").text
    assert len(BOX.findall(page)) == 60
    assert "141 memories more" in page
    assert "</svg><script>" not in page
