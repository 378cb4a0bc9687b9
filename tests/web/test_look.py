"""How pages look in real Chromium: pictures of each, in both themes and at two widths.

The pictures are in the temporary directory of the test, or below MEMTOOL_SCREENSHOTS: look at them
after a change of the style.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from web.test_browser import Site, paths_of, site  # noqa: F401  # the fixture of the team

pytestmark = pytest.mark.browser

WIDTHS = {1280: 1080, 390: 844}
"""Width and height of the window of a desk and of a phone, in CSS pixels."""
NARROWEST = 320
MENU_WIDTH = 1100
LIST_ROWS = 20
SPILLS = """() => [...document.querySelectorAll("body *")].filter((one) => {
  const box = one.getBoundingClientRect();
  const scrolls = one.closest(".wide, pre, table, svg, .skip");
  return one.checkVisibility() && box.width && box.right > innerWidth + 1 && !scrolls;
}).map((one) => one.outerHTML.slice(0, 120))"""
"""Elements that reach beyond the right edge, but for those that scroll in a box of their own."""


def _shots(tmp_path: Path) -> Path:
    folder = Path(os.environ.get("MEMTOOL_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _file_name(path: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-")[:50] or "status"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_fits(site: Site, tmp_path: Path, theme: str, width: int):  # noqa: F811
    """No page is wider than its window, each has one first heading, and a picture is made of it."""
    look = site.look(color_scheme=theme, viewport={"width": width, "height": WIDTHS[width]})
    folder = _shots(tmp_path)
    wrong = {}
    for path in dict.fromkeys(paths_of(look)):
        look.go(path)
        look.page.screenshot(
            path=folder / f"{_file_name(path)}-{theme}-{width}.png", full_page=True
        )
        spills = look.page.evaluate(SPILLS)
        if spills or look.page.locator("h1").count() != 1:
            wrong[path] = spills
    assert wrong == {}


def test_pages_fit_the_narrowest_window_and_paper(site: Site):  # noqa: F811
    """At 320 px nothing spills over, and a page is printed without its menu."""
    look = site.look(viewport={"width": NARROWEST, "height": 568})
    wrong = {}
    for path in dict.fromkeys(paths_of(look)):
        look.go(path)
        if spills := look.page.evaluate(SPILLS):
            wrong[path] = spills
    assert wrong == {}
    look.page.emulate_media(media="print")
    assert not look.page.locator("header.top").is_visible()
    assert look.page.locator("main h1").is_visible()


def test_the_menu_is_one_row_and_a_list_shows_twenty(site: Site):  # noqa: F811
    """At 1100 px seven entries stand in one row; a list has twenty rows without scrolling."""
    look = site.look(viewport={"width": MENU_WIDTH, "height": 800})
    entries = look.page.locator(".top nav > *")
    tops = {round(entries.nth(at).bounding_box()["y"]) for at in range(entries.count())}
    assert entries.count() == 7
    assert len(tops) == 1
    look.page.set_viewport_size({"width": 1920, "height": 1080})
    look.go("/list")
    rows = look.page.locator("main .row")
    shown = [
        at
        for at in range(rows.count())
        if (box := rows.nth(at).bounding_box()) and box["y"] + box["height"] <= 1080
    ]
    assert len(shown) >= LIST_ROWS
