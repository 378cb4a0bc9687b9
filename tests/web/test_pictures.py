"""The pictures in real Chromium: the map, the timeline and a lineage, by keys and on a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from chromium import RULES
from web.test_browser import Look, Site, axe, site  # noqa: F401  # the fixtures

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}
MAX_TABS = 60
FOCUSED = "document.activeElement"


def pages(look: Look) -> list[str]:
    """Return the pages with a picture."""
    look.go("/search?q=hold+a+seat")
    link = look.page.locator(".results a").first.get_attribute("href")
    return ["/map", "/map?by=tag&past=1", "/map?by=file&in=harbor", "/timeline", f"{link}/graph"]


def middle(page: Page) -> tuple[float, float]:
    """Return the middle of what has the focus."""
    box: dict[str, Any] = page.evaluate(f"{FOCUSED}.getBoundingClientRect().toJSON()")
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_memory_of_the_map_is_reached_by_keys(site: Site):  # noqa: F811
    """Tab leads into the picture, arrows to the next box, Enter to the memory."""
    look = site.look()
    page = look.page
    look.go("/map")
    for _tab in range(MAX_TABS):
        page.keyboard.press("Tab")
        if page.evaluate(f"{FOCUSED}.matches('svg.screen a.memory')"):
            break
    stroke = "getComputedStyle(document.activeElement.querySelector('rect')).strokeWidth"
    assert page.evaluate(stroke) == "4px"
    seen = [middle(page)]
    for key, right, down in (("ArrowRight", 1, 0), ("ArrowDown", 0, 1), ("ArrowLeft", -1, 0)):
        page.keyboard.press(key)
        x, y = middle(page)
        assert (x - seen[-1][0]) * right + (y - seen[-1][1]) * down > 0, key
        seen.append((x, y))
    goal = page.evaluate(f"{FOCUSED}.getAttribute('href')")
    title = page.evaluate(f"{FOCUSED}.querySelector('title').textContent")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{goal}")
    assert title.startswith(page.inner_text("h1"))


def test_a_mark_of_the_timeline_leads_to_its_row(site: Site):  # noqa: F811
    """By keys, and without a script as well."""
    look = site.look()
    page = look.page
    look.go("/timeline")
    page.locator(".drawn a").first.focus()
    before = middle(page)
    page.keyboard.press("ArrowRight")
    assert middle(page)[0] > before[0]
    page.keyboard.press("Enter")
    assert page.locator(".row:target").count() == 1
    assert page.locator(".row:target a").first.is_visible()
    plain = site.look(java_script_enabled=False)
    plain.go("/timeline")
    plain.page.locator(".drawn a").last.click()
    assert plain.page.locator(".row:target").count() == 1


def test_pictures_have_room_on_a_phone(site: Site):  # noqa: F811
    """No page is wider than the phone; the map has its own layout, the others scroll in a box."""
    look = site.look(viewport=PHONE)
    page = look.page
    for path in pages(look):
        look.go(path)
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"], path
    look.go("/map")
    assert not page.locator("svg.screen").is_visible()
    picture = page.locator("svg.phone").bounding_box()
    assert picture is not None
    assert picture["width"] == pytest.approx(358, abs=2)  # so that 12 px are 12 px
    look.go("/timeline")
    box = page.locator(".drawn .wide")
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    edges = box.evaluate(
        "box => [box.getBoundingClientRect().right,"
        " box.querySelector('svg').getBoundingClientRect().right]"
    )
    assert edges[0] == pytest.approx(edges[1], abs=1)  # it begins with the newest


@pytest.mark.parametrize(
    "options", [{"color_scheme": "dark"}, {"viewport": PHONE}], ids=["dark", "phone"]
)
def test_pictures_are_accessible(site: Site, axe: str, options: dict[str, Any]):  # noqa: F811
    """axe finds nothing to mend."""
    look = site.look(bypass_csp=True, **options)
    for path in pages(look):
        look.go(path)
        look.page.evaluate(axe)
        violations = look.page.evaluate(
            "tags => axe.run(document, {runOnly: tags}).then(all => all.violations"
            ".map(one => [one.id, one.nodes[0].html]))",
            list(RULES),
        )
        assert (path, violations) == (path, [])
