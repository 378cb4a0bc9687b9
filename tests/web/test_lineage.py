"""The lineage of a memory: whole titles in boxes, states with signs, no picture of one memory."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from typing import Any

    from conftest import Sandbox

    Web = Any

LONG = "Hold a seat for twenty minutes while the passenger types the number of a card " * 3
BOX = re.compile(r'<rect x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"')


def texts(page: str) -> list[str]:
    """Return the text of each box, its lines joined by a space, without the line of the state."""
    boxes = re.findall(r"<text>(.*?)<tspan class=\"by\"", page)
    return [unescape(" ".join(re.findall(r">([^<]*)</tspan>", box))) for box in boxes]


def test_titles_are_whole_and_boxes_have_room_for_them(sandbox: Sandbox, web: Web):
    """However long they are; a box below begins where the one above ends."""
    sandbox.memory("dec-old", title="Hold a seat")
    for name in ("dec-a", "dec-b"):
        sandbox.memory(name, f"{name} holds.\n", title=f"{LONG}{name}", supersedes=("dec-old",))
    page = web.get("/m/dec-old/graph").text
    assert sorted(texts(page)) == sorted(["Hold a seat", f"{LONG}dec-a", f"{LONG}dec-b"])
    boxes = [tuple(map(int, box)) for box in BOX.findall(page)]
    assert boxes[0][:2] == (0, 0)
    assert boxes[1][0] == boxes[2][0] > boxes[0][2]
    assert boxes[2][1] > boxes[1][1] + boxes[1][3]
    assert boxes[1][3] > 2 * boxes[0][3]


@pytest.mark.parametrize(
    "title", ["שמור מושב", "座席を十分間保持します", "x" * 300, "<b>&amp;</b>"]
)
def test_any_title_is_drawn(sandbox: Sandbox, web: Web, title: str):
    """Of right-to-left and wide scripts, without spaces, or with markup."""
    sandbox.memory("dec-a", title=title)
    sandbox.memory("dec-b", "So.\n", title="Other", supersedes=("dec-a",))
    page = web.get("/m/dec-a/graph").text
    assert texts(page)[0].replace(" ", "") == title.replace(" ", "")
    assert "<b>" not in page


def test_states_have_a_sign(sandbox: Sandbox, web: Web):
    """In the picture and in the list, with short ids and titles of what is named."""
    sandbox.memory("dec-old", title="Old")
    sandbox.memory("dec-new", "New.\n", title="New", supersedes=("dec-old",))
    sandbox.memory("dec-may", "May.\n", title="May", related_to=("dec-new",), status="candidate")
    page = web.get("/m/dec-new/graph").text
    for state in ("→ replaced", "✓ active", "? not confirmed yet"):
        assert page.count(state) == 2
    assert 'supersedes <a href="/m/dec-old">Old</a> <span class="id">dec-old</span>' in page


def test_a_memory_alone_has_a_sentence_and_no_link(sandbox: Sandbox, web: Web):
    """No page shows a single box; the page of a memory leads to a picture of two or more."""
    sandbox.memory("dec-alone", title="Alone", related_to=("dec-nowhere",))
    sandbox.memory("dec-a", title="One")
    sandbox.memory("dec-b", title="Another", related_to=("dec-a",))
    page = web.get("/m/dec-alone/graph")
    assert page.status == 200
    assert "<svg" not in page.text
    assert "It stands alone" in page.text
    assert "/graph" not in web.get("/m/dec-alone").text
    for name in ("dec-a", "dec-b"):
        assert f"/m/{name}/graph" in web.get(f"/m/{name}").text
        assert "<svg" in web.get(f"/m/{name}/graph").text
