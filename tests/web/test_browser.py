"""Real Chromium on a real server: what a person sees, and what a hostile page or memory can do.

Chromium comes from the system, axe-core from npm; where one is missing the tests skip.
"""

from __future__ import annotations

import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from chromium import PAYLOADS, RULES, axe_source, chromium

if TYPE_CHECKING:
    from conftest import Sandbox

pytestmark = pytest.mark.browser

END = "2026-11-20T16:00:00Z"
"""When the story of the made-up team ends."""
PICTURES = Path(__file__).parents[2] / "docs/pictures"
SIZE = {"width": 1100, "height": 760}
STATUS = {
    "/no-such-page": 404,
    "/m/no-such-memory": 404,
    "/m/sem-hostile/diff": 422,  # it has no other version, which the page says
}


@pytest.fixture(scope="module")
def axe() -> str:
    """The source of axe-core."""
    return axe_source()


class Look:
    """A context of the browser that is logged in, with what its pages asked for and opened."""

    def __init__(self, browser: Any, link: str, **options: Any) -> None:
        self.requested: list[str] = []
        self.dialogs: list[str] = []
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.on("request", lambda request: self.requested.append(request.url))
        self.page.on("dialog", self._dialog)
        self.page.goto(link)
        self.origin = "/".join(self.page.url.split("/", 3)[:3])

    def _dialog(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def go(self, path: str) -> int:
        """Open a page, and return its status."""
        return int(self.page.goto(self.origin + path).status)

    def outside(self) -> list[str]:
        """Return the requests that went elsewhere."""
        return [url for url in self.requested if not url.startswith(self.origin)]


class Site:
    """A server over the made-up team with one hostile memory more, and a browser before it."""

    def __init__(self, browser: Any, process: subprocess.Popen[str], env: dict[str, str]) -> None:
        self.browser = browser
        self.process = process
        self.env = env

    def look(self, **options: Any) -> Look:
        """Log in by a link of its own: one is good once."""
        argv = [sys.executable, "-m", "memtool", "serve", "--port", self.port, "--no-open"]
        done = subprocess.run(
            argv, cwd=self.place, env=self.env, check=True, capture_output=True, text=True
        )
        return Look(self.browser, done.stderr.split(" at ")[1].strip(), **options)

    place: Path
    port: str


@pytest.fixture
def site(sandbox: Sandbox, tmp_path: Path) -> Iterator[Site]:
    """A real server that may write, and Chromium."""
    env = sandbox.env | {"MEMTOOL_NOW": END}
    place = tmp_path / "harbor"
    subprocess.run(
        [sys.executable, "-m", "memtool", "demo", str(place)],
        cwd=tmp_path,
        env=env,
        check=True,
        capture_output=True,
    )
    path = sandbox.memory(
        "sem-hostile",
        "\n\n".join(PAYLOADS) + "\n",
        title=PAYLOADS[0],
        tags=("x<img src=x>",),
        source=(f"human:{PAYLOADS[1]}",),
    )
    shutil.copy(sandbox.path / path, place / ".memory/semantic/sem-hostile.md")
    sandbox.commit()  # another repository that holds the same, for the page of the fleet
    sandbox.run("--global", "config", "fleet.repositories", str(sandbox.path))
    sandbox.run("--global", "config", "fleet.timeout_ms", "60000")
    sandbox.run("fleet", "sync")
    argv = [sys.executable, "-m", "memtool", "serve", "--port", "0", "--no-open", "--write"]
    with (
        chromium() as browser,
        subprocess.Popen(argv, cwd=place, env=env, stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stderr is not None
        line = process.stderr.readline()
        served = Site(browser, process, env)
        served.place, served.port = place, line.split("localhost:")[1].split("/")[0]
        yield served
        process.terminate()


def paths_of(look: Look) -> list[str]:
    """Return the pages of the menu, and one of each kind that they lead to."""
    paths = dict.fromkeys(_links(look, "/"))
    kinds = [path for path in paths if not path.startswith("/m/")]
    memory = next(path for path in _links(look, "/search?q=seat") if path.startswith("/m/"))
    session = next(path for path in _links(look, "/sessions") if path.startswith("/sessions/"))
    hostile = "/m/sem-hostile"
    each = [
        f"{base}{suffix}"
        for base in (memory, hostile)
        for suffix in ("", "/diff", "/graph", "/supersede")
    ]
    return [*kinds, *each, session, "/search?q=alert", "/no-such-page", "/m/no-such-memory"]


def _links(look: Look, path: str) -> list[str]:
    look.go(path)
    paths = look.page.eval_on_selector_all("a[href]", "all => all.map(a => a.getAttribute('href'))")
    return [link for link in paths if link.startswith("/")]


def violations(look: Look, axe: str) -> list[list[str]]:
    """Return what axe finds wrong on a page: each rule, and the first element that breaks it."""
    look.page.evaluate(axe)
    rows: list[list[str]] = look.page.evaluate(
        "tags => axe.run(document, {runOnly: tags}).then(all => all.violations"
        ".map(one => [one.id, one.nodes[0].html]))",
        list(RULES),
    )
    return rows


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_is_accessible(site: Site, axe: str, theme: str):
    """axe finds nothing to mend on any page, hostile memories and wrong addresses included."""
    look = site.look(color_scheme=theme, bypass_csp=True)
    wrong = {}
    for path in paths_of(look):
        status = look.go(path)
        assert (path, status) == (path, STATUS.get(path, 200))
        if rows := violations(look, axe):
            wrong[path] = rows
    assert wrong == {}


def test_nothing_hostile_runs_and_nothing_leaves_the_machine(site: Site):
    """No dialog opens, and no page sends a request elsewhere."""
    look = site.look()
    for path in paths_of(look):
        look.go(path)
    assert (look.dialogs, look.outside()) == ([], [])
    assert any("sem-hostile" in url for url in look.requested)


def test_it_works_by_keys_and_without_scripts(site: Site):
    """The slash leads to the search, j to the first row; a form works without a script."""
    look = site.look()
    look.go("/")
    look.page.keyboard.press("/")
    assert look.page.evaluate("document.activeElement.name") == "q"
    look.page.keyboard.type("seat")
    look.page.keyboard.press("Enter")
    look.page.wait_for_url("**/search?q=seat")
    look.page.keyboard.press("j")
    assert look.page.locator(".row.here").count() == 1
    plain = site.look(java_script_enabled=False)
    plain.go("/")
    plain.page.fill("header input[name=q]", "seat")
    plain.page.click("header button")
    assert plain.page.locator(".results li").count() > 0


def test_forms_are_sent_by_a_real_browser(site: Site):
    """A conflict is settled and opened again, and a finding dismissed, by clicks alone."""
    look = site.look()
    page = look.page
    look.go("/conflicts")
    for settled in ("3 conflicts", "2 conflicts"):
        assert settled in page.inner_text("main")
        form = page.locator("section.row form").first
        form.locator("input[value=newer]").check()
        form.locator("input[name=reason]").fill("measured")
        form.locator("button").click()
        page.get_by_text("Do it, and commit it").click()
        page.get_by_role("heading", name="The commit").wait_for()
        page.get_by_text("Go on").click()
        page.wait_for_url("**/conflicts")
    look.go("/conflicts?accepted=1")
    page.locator("section.row button").first.click()
    page.get_by_text("Do it, and commit it").click()
    page.get_by_text("Go on").click()
    page.wait_for_url("**/conflicts")
    assert "2 conflicts" in page.inner_text("main")
    look.go("/findings")
    page.locator("input[name=dismiss] ~ label input").last.fill("it held for a week")
    page.get_by_role("button", name="Dismiss").last.click()
    page.get_by_text("1 lesson dismissed").click()
    assert "it held for a week" in page.inner_text("main")


def test_a_refused_form_keeps_its_text_and_is_sent_again(site: Site, axe: str):
    """What was typed is there with the problem beside it, by keys alone; then it is accepted."""
    look = site.look(bypass_csp=True)
    page = look.page
    look.go("/new?type=semantic")
    page.fill("input[name=title]", "The key of the crew")
    page.fill("textarea[name=body]", f"The key of the crew is {TOKEN}.")
    page.fill("input[name=tag] >> nth=0", "crew")
    page.get_by_role("button", name="Show what the gate says").click()
    page.get_by_role("alert").wait_for()
    assert page.evaluate("document.activeElement.className") == "tone bad refused"
    assert TOKEN not in page.inner_text("main")
    assert violations(look, axe) == []
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    field = page.locator("textarea[name=body]")
    assert field.evaluate("one => one.getAttribute('aria-invalid')") == "true"
    assert page.url.endswith("#wrong")
    assert page.input_value("input[name=tag] >> nth=0") == "crew"
    field.fill("The key of the crew is in the safe.")
    page.get_by_role("button", name="Show what the gate says").click()
    page.get_by_text("Do it, and commit it").click()
    page.get_by_role("heading", name="The commit").wait_for()
    assert "in the safe" in page.inner_text("main")
    # An id-less form for a new memory has no undo; its page is a click away.
    assert page.get_by_role("button", name="Undo").count() == 0


def test_several_are_confirmed_from_a_list(site: Site, axe: str):
    """All are selected at once; the one that drifted is named, and the others are confirmed."""
    look = site.look(viewport={"width": 1920, "height": 1080}, bypass_csp=True)
    page = look.page
    look.go("/list?q=is:due")
    rows = page.locator(".memories tbody tr")
    heights = rows.evaluate_all("all => all.map(one => one.getBoundingClientRect().height)")
    assert max(heights) <= 36
    page.get_by_label("Select all on this page").check()
    assert page.locator("input[name=id]:checked").count() == rows.count()
    page.get_by_role("button", name="Confirm").click()
    assert "Expired holds blocked the last seats" in page.get_by_role("alert").inner_text()
    assert violations(look, axe) == []
    page.get_by_role("button", name="Do it for the other").click()
    page.get_by_text("Do it, and commit it").click()
    page.get_by_role("heading", name="The commit").wait_for()
    look.go("/list?q=is:due")
    assert rows.count() == 1


def test_undo_is_there_only_if_something_can_be_undone(site: Site):
    """A memory that nobody changed has no such button; once it is pinned, it names that."""
    look = site.look()
    page = look.page
    look.go("/list?q=the+captain")
    page.get_by_text("The captain may close boarding early").click()
    assert page.get_by_text("Undo").count() == 0
    page.get_by_role("button", name="Pin", exact=True).click()
    page.get_by_text("Do it, and commit it").click()
    page.get_by_text("Go on").click()
    page.locator("summary", has_text="Undo: pinned").click()
    page.get_by_role("button", name="Undo: pinned").click()
    page.get_by_text("Do it, and commit it").click()
    page.get_by_text("Go on").click()
    assert page.get_by_role("button", name="Pin", exact=True).count() == 1


TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
LINES = "The first line.\n\n## Rationale\n\n- one\n- two"


def test_several_lines_are_written_as_they_are_typed(site: Site):
    """New, Correct and Settle write the lines that were typed, in a file that the preview named."""
    look = site.look()
    page = look.page

    def do_it() -> str:
        page.get_by_role("button", name="Show what the gate says").click()
        shown = page.locator("main p code").first.inner_text()
        page.get_by_text("Do it, and commit it").click()
        page.get_by_role("heading", name="The commit").wait_for()
        assert page.locator("main p code").first.inner_text() == shown
        return (site.place / shown).read_bytes().decode().split("\n---\n", 1)[1]

    look.go("/new?type=semantic")
    page.fill("input[name=title]", "Several lines")
    page.fill("textarea[name=body]", LINES)
    assert do_it() == LINES + "\n"
    page.locator("main .rows a").first.click()
    look.go(page.url.removeprefix(look.origin) + "/supersede")
    assert page.input_value("textarea[name=body]") == LINES + "\n"
    page.fill("input[name=title]", "Several other lines")
    page.fill("textarea[name=body]", LINES.replace("one", "three"))
    assert do_it() == LINES.replace("one", "three") + "\n"
    look.go("/conflicts")
    form = page.locator("section.row form").first
    form.locator("input[value=newer]").check()
    form.locator("input[name=reason]").fill("measured")
    form.locator("button").click()
    page.get_by_text("Do it, and commit it").click()
    page.get_by_role("heading", name="The commit").wait_for()
    text = (site.place / page.locator("main p code").first.inner_text()).read_text()
    assert "\\r" not in text


SEAT = """---
id: {id}
timestamp: 2026-11-20T15:00:00Z
type: semantic
title: A seat that is {id}
source: [human:Ada]
confidence: medium
status: confirmed
---
A seat is free.
"""
OPEN_ROW = "document.querySelector('.results details[open]').closest('.row')"


def write(site: Site, id_: str) -> None:
    """Write a memory about seats, bypassing the server."""
    (site.place / f".memory/semantic/{id_}.md").write_text(SEAT.format(id=id_))


def test_what_changes_is_taken_over_in_its_place(site: Site):
    """The reader stays at the same row, with focus and open details; new rows are marked."""
    look = site.look(viewport={"width": 900, "height": 500})
    page = look.page
    look.go("/search?q=seat&limit=30")
    page.locator(".results summary").nth(3).click()
    page.locator(".results h2 a").nth(4).focus()
    page.evaluate("document.querySelectorAll('.results .row')[3].scrollIntoView()")
    place = f"{OPEN_ROW}.getBoundingClientRect().top"
    before = page.evaluate(place)
    focused = page.evaluate("document.activeElement.href")
    for name in ("sem-seat-one", "sem-seat-two"):
        write(site, name)
        page.wait_for_selector(f".row:has(a[href='/m/{name}']) .new")
        assert abs(page.evaluate(place) - before) < 2
        assert page.evaluate("document.activeElement.href") == focused
        assert page.locator(".results details[open]").count() == 1
    assert page.locator(".new").count() == 2
    page.locator(".news a").click()
    assert "sem-seat" in page.evaluate("document.activeElement.href")


def test_what_somebody_types_or_selects_is_left_alone(site: Site):
    """A form keeps its words, and a link says that something changed; it shows what is new."""
    look = site.look()
    page = look.page
    for number, (path, field) in enumerate(
        (("/findings", "input[name=reason]"), ("/search?q=seat", "input[name=q]"))
    ):
        look.go(path)
        page.locator(f"main {field}").first.fill("my words")
        write(site, f"sem-seat-{number}")
        session = [sys.executable, "-m", "memtool", "session", "start", "--title", "x"]
        begun = subprocess.run(
            session, cwd=site.place, env=site.env, check=True, capture_output=True, text=True
        )
        statement = "From now on always sell the seats at the window first."
        add = [*session[:4], "add", begun.stdout.strip(), "--role", "user", statement]
        subprocess.run(add, cwd=site.place, env=site.env, check=True, capture_output=True)
        subprocess.run(
            [*session[:3], "promote", "--list"],
            cwd=site.place,
            env=site.env,
            check=True,
            capture_output=True,
        )
        page.wait_for_selector(".news a")
        assert page.locator(f"main {field}").first.input_value() == "my words"
        assert page.locator(".new").count() == 0
    with page.expect_navigation():
        page.locator(".news a").click()
    assert page.locator(".row a[href='/m/sem-seat-1']").count() > 0


def test_other_origins_get_nothing(site: Site):
    """A rebound name, a form of another site and another port get no page, no write, no cookie."""
    look = site.look()
    assert look.page.goto(f"http://evil.test:{site.port}/").status == 421
    cookies: list[str] = []

    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            cookies.append(self.headers.get("Cookie") or "")
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            form = f"<form method=post action='{look.origin}/do/pin'><input name=id value=x></form>"
            self.wfile.write(form.encode())

        def log_message(self, *_args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        look.page.goto(f"http://127.0.0.1:{other.server_port}/")
        with look.page.expect_navigation() as answered:
            look.page.evaluate("document.forms[0].submit()")
        assert answered.value.status == 403
        other.shutdown()
    assert set(cookies) == {""}


def test_the_pictures_are_of_the_pages(site: Site):
    """Pictures of the README have the size of the pages; MEMTOOL_PICTURES=write makes them."""
    (site.place / ".memory/semantic/sem-hostile.md").unlink()
    look = site.look(viewport=SIZE)
    chain = next(path for path in _links(look, "/search?q=hold+a+seat") if path.startswith("/m/"))
    for name, path in (("status", "/"), ("memory", chain), ("conflicts", "/conflicts")):
        assert look.go(path) == 200
        picture = look.page.screenshot()
        if os.environ.get("MEMTOOL_PICTURES") == "write":
            PICTURES.mkdir(exist_ok=True)
            (PICTURES / f"{name}.png").write_bytes(picture)
        stored = (PICTURES / f"{name}.png").read_bytes()
        # Fonts differ between machines, so the pixels do.
        assert stored[:24] == picture[:24], "a picture of another size: MEMTOOL_PICTURES=write"
