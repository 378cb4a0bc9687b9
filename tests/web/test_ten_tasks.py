"""Ten things that a newcomer wants, each in at most three clicks from the first page.

A search counts as one click, and so does each link, button and box. Previews do not count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from web.test_browser import Look, Site, site  # noqa: F401  # the fixture of the team

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.browser

MAX_CLICKS = 3


class Newcomer:
    """A person before the first page, who counts their clicks."""

    def __init__(self, look: Look) -> None:
        self.page = look.page
        self.clicks = 0
        look.go("/")

    def click(self, target: Any) -> None:
        """Click on a link, a button or a box, by its words or as a part of the page."""
        self.clicks += 1
        if isinstance(target, str):
            target = self.page.get_by_role("link", name=target).or_(
                self.page.get_by_role("button", name=target)
            )
        target.first.click()
        self.page.wait_for_load_state()

    def search(self, words: str) -> None:
        """Type words into the search of the page."""
        self.clicks += 1
        self.page.fill("header input[name=q]", words)
        self.page.press("header input[name=q]", "Enter")
        self.page.wait_for_url("**/search?**")

    @property
    def text(self) -> str:
        """The words of the page."""
        return str(self.page.inner_text("main"))


def find_why(person: Newcomer) -> None:
    person.search("why postgresql for bookings")
    person.click("Keep bookings in PostgreSQL")
    assert "Rationale" in person.text


def correct(person: Newcomer) -> None:
    person.search("bus partner polls")
    person.click("The bus partner polls every 2 minutes")
    person.click("Correct it")
    assert "2 minutes" in person.page.input_value("textarea[name=body]")


def settle_a_fork(person: Newcomer) -> None:
    person.click(person.page.get_by_role("link", name="Conflicts", exact=True))
    assert person.page.locator("main input[name=keep]").count()
    assert "Hold a seat for 20 minutes" in person.text


def confirm_several(person: Newcomer) -> None:
    person.click("Confirm or archive them")
    person.click(person.page.locator("main thead input[type=checkbox]"))
    person.click(person.page.get_by_role("button", name="Confirm", exact=True))
    assert person.page.get_by_role("button", name="Do it, and commit it").count() == 1


def see_what_an_agent_was_given(person: Newcomer) -> None:
    person.click(person.page.locator(".more summary"))
    person.click(person.page.get_by_role("link", name="Given", exact=True))
    assert "2026-11-19" in person.text
    assert "Hold a seat for 20 minutes" in person.text


def find_what_nobody_uses(person: Newcomer) -> None:
    person.click(person.page.get_by_role("link", name="never used"))
    assert "Lounge tickets are half done" in person.text


def undo(person: Newcomer) -> None:
    person.search("logs name bookings")
    person.click("Logs name bookings, never passengers")
    person.click(person.page.locator("summary", has_text="Undo: pinned"))
    assert person.page.get_by_role("button", name="Undo: pinned").is_visible()


def see_what_governs_a_file(person: Newcomer) -> None:
    person.search("file:harbor/holds.py")
    assert "Never sell more seats than the ship has" in person.text


def search_for_nothing(person: Newcomer) -> None:
    person.search("zeppelin mooring mast")
    assert "Nothing in the memories answers this" in person.text
    person.click("write it down")
    assert person.page.input_value("input[name=title]") == "zeppelin mooring mast"


def archive(person: Newcomer) -> None:
    person.search("captain boarding early")
    person.click("The captain may close boarding early")
    person.click(person.page.locator("summary", has_text="Archive"))
    assert person.page.get_by_role("button", name="Archive").is_visible()


TASKS: tuple[Callable[[Newcomer], None], ...] = (
    find_why,
    correct,
    settle_a_fork,
    confirm_several,
    see_what_an_agent_was_given,
    find_what_nobody_uses,
    undo,
    see_what_governs_a_file,
    search_for_nothing,
    archive,
)


def test_ten_tasks_take_three_clicks_each(site: Site, tmp_path: Path):  # noqa: F811
    """From the first page to the form or the answer; nothing is written on the way."""
    clicks = {}
    for task in TASKS:
        person = Newcomer(site.look(viewport={"width": 1280, "height": 900}))
        task(person)
        clicks[task.__name__] = person.clicks
    (tmp_path / "clicks.txt").write_text(str(clicks))
    assert {name: count for name, count in clicks.items() if count > MAX_CLICKS} == {}
