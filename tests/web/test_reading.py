"""What a person does first in real Chromium: look what is new, read a memory, review a change."""

from __future__ import annotations

import pytest
from web.test_browser import Site, site  # noqa: F401  # the fixture of the team

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("scripts", ["on", "off"])
def test_the_status_leads_on_and_is_marked_as_seen(site: Site, scripts: str):  # noqa: F811
    """A card leads to both sides of a conflict; after a click nothing is new any more."""
    look = site.look(java_script_enabled=scripts == "on")
    page = look.page
    card = page.locator(".waiting .card").first
    assert card.locator("h3").inner_text() == "3 Conflicts to settle"
    card.get_by_text("Settle them").click()
    assert page.url.endswith("/conflicts")
    look.go("/")
    assert page.get_by_text("The index on holds must cover the sailing").count() == 2
    page.get_by_text("Mark as seen").click()
    page.get_by_text("Nothing changed since just now.").wait_for()
    assert page.get_by_text("The index on holds must cover the sailing").count() == 1
    assert page.get_by_text("Mark as seen").count() == 0


def test_a_memory_reads_from_its_text_to_its_proof(site: Site):  # noqa: F811
    """Warnings, title and text come first, the facts beside them; ten answers are a click away."""
    look = site.look(viewport={"width": 1280, "height": 900})
    page = look.page
    look.go("/m/dec-2g54")
    tops = [
        page.locator(name).first.bounding_box()["y"]
        for name in (".warn", "h1", ".document > .body", ".proof h2")
    ]
    assert tops == sorted(tops)
    text, facts = (page.locator(name).bounding_box() for name in (".document > .body", ".side"))
    assert facts["x"] >= text["x"] + text["width"]
    rows = page.locator(".proof details").first.locator("tbody tr")
    assert not rows.first.is_visible()
    page.get_by_text("Given to agents").first.click()
    assert rows.count() == 10
    assert rows.first.is_visible()


def test_a_review_needs_no_typing(site: Site):  # noqa: F811
    """The menu, then a range that is proposed; a decision that is not mentioned can be opened."""
    look = site.look()
    page = look.page
    entry = page.locator(".top nav").get_by_text("Review")
    if not entry.is_visible():
        page.locator(".top nav").get_by_text("More").click()
    entry.click()
    page.get_by_role("link", name="The last 10 commits").click()
    assert page.locator("h1").inner_text() == "Review: the last 10 commits"
    assert page.get_by_text("not mentioned").first.is_visible()
    page.get_by_role("link", name="Never sell more seats than the ship has").first.click()
    assert "/m/dec-2026-08-19" in page.url
