"""The pages of a branch that is behind name what the trusted branch knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from behind import fall_behind

if TYPE_CHECKING:
    from conftest import Sandbox

    Web = Any

NEWER = "NEWER ON origin/main: dec-new &lt;b&gt;Longer"


@pytest.fixture
def behind(sandbox: Sandbox) -> Sandbox:
    """A branch that is behind; the title of what it lacks looks like a tag."""
    fall_behind(sandbox, title="<b>Longer")
    return sandbox


@pytest.mark.parametrize(
    ("path", "texts"),
    [
        (
            "/",
            [
                "<dt>Trusted</dt><dd>origin/main at",
                "Changed on origin/main",
                "New on origin/main",
                "&lt;b&gt;Longer",
                "/changes?range=HEAD..origin/main",
            ],
        ),
        ("/search?q=seat", [NEWER, "on origin/main, not in this branch yet; it replaces dec-old"]),
        (
            "/m/dec-old",
            ['Newer on origin/main: <a href="/m/dec-new">&lt;b&gt;Longer</a>', ">dec-new</span>"],
        ),
    ],
)
def test_a_page_has_the_notice(behind: Sandbox, web: Web, path: str, texts: list[str]):
    """Status, search and the memory, with a foreign title escaped."""
    reply = web.get(path)
    assert reply.status == 200
    assert [text for text in texts if text not in reply.text] == []
    assert "<b>Longer" not in reply.text


def test_a_memory_that_is_only_there_has_a_page(behind: Sandbox, writer: Web):
    """With its history there, and without the forms that would change it here."""
    assert "/m/dec-old/supersede" in writer.get("/m/dec-old").text
    text = writer.get("/m/dec-new").text
    assert "On origin/main, not in this branch yet; it replaces dec-old" in text
    assert "no memory is called" not in text
    assert behind.git("rev-parse", "--short=10", "origin/main").strip()[:7] in text
    assert "/m/dec-new/supersede" not in text
