from __future__ import annotations

import gzip
import re
import shutil
import time
from html import unescape
from typing import TYPE_CHECKING

import pytest

from memtool.web import state
from memtool.web.markdown import is_link, to_html

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from conftest import Sandbox

    Web = Any

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html,x)",
    "[x](vbscript:x)",
    "[x](//evil.test)",
    "![x](http://evil.test/t.png)",
    "![x](javascript:alert(1))",
    "<svg onload=alert(1)>",
    '```x" onload="alert(1)\n<b>\n```',
    "<details open ontoggle=alert(1)>",
    "[x](file:///etc/passwd)",
    "# Big",
    "[[dec-a]]",
    '<http://evil.test/" onclick="x>',
    "[a](/m/../../x)",
    "&lt;script&gt;",
)


def test_a_hostile_body_does_nothing():
    """No tag but ours, no address outside of the allowlist, no image, no first heading."""
    page = to_html("\n\n".join(HOSTILE), str)
    tags = set(re.findall(r"<([a-z0-9]+)", page))
    assert tags <= {"p", "a", "span", "pre", "code", "h3", "em", "strong", "ul", "li"}
    for address in re.findall(r'href="([^"]*)"', page):
        assert is_link(address) or address == "/m/dec-a"
    assert not re.search(r"<[^>]*\son[a-z]+=", re.sub(r'"[^"]*"', '""', page))


@pytest.mark.parametrize("path", ["/", "/search", "/search?q=redis", "/m/dec-a"])
def test_hostile_memories_are_text_on_every_page(sandbox: Sandbox, web: Web, path: str):
    """A title, a tag and a body from others stay inside the page, and nothing invisible is sent."""
    sandbox.memory(
        "dec-a",
        "Redis. \n\n" + "\n\n".join(HOSTILE) + "\u202e\x1b[2J\n",
        title="Redis </title><script>alert(1)</script>",
        tags=('"><img src=x>',),
    )
    sandbox.commit()
    page = web.get(path)
    assert page.status == 200
    assert page.text.count("<script") == 1
    assert "<img" not in page.text
    assert "\u202e" not in page.text
    assert "\x1b" not in page.text


def words(page: str) -> str:
    """Return the visible text of a page, on one line."""
    text = unescape(re.sub(r"<[^>]+>", "", page.partition("<main")[2].partition(">")[2]))
    return " ".join(text.split())


def test_pages_say_what_is_proposed(sandbox: Sandbox, web: Web):
    """The page of a candidate and of what it would replace, the search and the status say so."""
    sandbox.memory("dec-old", "Sessions live in Redis.\n", title="Redis")
    sandbox.memory(
        "dec-new",
        "Sessions live in Postgres.\n",
        title="Postgres",
        supersedes=("dec-old",),
        status="candidate",
    )
    sandbox.commit()
    for path in ("/m/dec-old", "/m/dec-new"):
        assert "Postgres dec-new proposes to replace Redis dec-old" in words(web.get(path).text)
    assert "dec-new proposes to replace dec-old" in web.get("/search?q=sessions").text
    assert "1 Would replace another Postgres dec-new for dec-old" in words(web.get("/").text)


def test_a_secret_in_a_memory_is_on_no_page(sandbox: Sandbox, web: Web):
    """It got past the gate; whoever looks sees a mark."""
    token = "ghp_" + "k7Qm2Zx9Lw4Tn8Vb3Rj6Hd5Pf1Sg0Yc2AeUi"
    sandbox.memory("dec-a", f"Redis has the token {token} for us.\n")
    sandbox.commit("add", ".memory")
    for path in ("/", "/search?q=redis", "/search?q=redis&explain=1", "/m/dec-a"):
        assert token not in web.get(path).text


def test_a_memory_is_shown_with_its_proof(sandbox: Sandbox, web: Web):
    """Its text, author, sources and history are on one page."""
    sandbox.memory("dec-old", "Sessions live in Postgres.\n", title="Keep them in Postgres")
    sandbox.memory("dec-new", "Sessions live in Redis.\n", supersedes=("dec-old",))
    commit = sandbox.commit()
    page = web.get("/m/dec-old").text
    assert "Replaced. This is no longer what holds." in words(page)
    assert '<a href="/m/dec-new">' in page
    assert "a statement by Ada" in words(page)
    assert f"@{commit[:7]}" in page
    assert "<h2>History</h2>" in page


def test_a_search_shows_factors_and_what_was_held_back(sandbox: Sandbox, web: Web):
    """A reader sees why a memory is first, and which gate kept another one away."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    sandbox.memory("dec-b", "Sessions live in Redis, too.\n", status="archived")
    page = web.get("/search?q=redis&explain=1").text
    assert '<th scope="row">score</th>' in page
    assert "What was held back" in page
    assert "dec-b" in page


def test_a_broken_query_comes_back_with_a_caret_under_the_word(web: Web):
    """The form holds what was typed, and a monospaced block points at the mistake."""
    page = web.get("/search?q=seat+is:unsure&type=decision")
    assert page.status == 422
    assert 'value="seat is:unsure" aria-invalid="true"' in page.text
    assert "<pre>seat is:unsure type:decision\n     ^^^^^^^^^</pre>" in page.text
    assert '<option value="decision" selected>' in page.text
    assert '<details class="shell" open>' in page.text


def test_a_refusal_on_a_page_speaks_no_shell(writer: Web, web: Web, sandbox: Sandbox):
    """Where the server writes, a page has links; one that only reads hides commands in a detail."""
    sandbox.memory("dec-cache-keys")
    refused = writer.get("/m/dec-cache-kyes").text
    assert "No memory is called &#34;dec-cache-kyes&#34;" in refused
    assert 'href="/m/dec-cache-keys"' in refused
    assert "memtool " not in refused
    assert "<summary>On the command line</summary>" in web.get("/m/dec-cache-kyes").text


def test_the_menu_has_seven_entries(web: Web):
    """Pages beyond the row are under "More", which says that the page is one of them."""
    menu = web.get("/report").text.partition("<nav")[2].partition("</nav>")[0]
    row, _summary, folded = menu.partition("<summary>More</summary>")
    assert row.count("<a ") == 6
    assert 'class="more here"' in row
    assert 'href="/report" aria-current="page"' in folded


def test_the_words_of_a_question_are_marked_in_what_was_found(web: Web, sandbox: Sandbox):
    """Text of a memory stays text."""
    sandbox.memory("dec-a", "Each <i>session</i> lives in Redis.\n")
    page = web.get("/search?q=sessions+type:decision").text
    assert "Each <mark>&lt;i&gt;session&lt;/i&gt;</mark> lives in Redis." in page


def test_a_bad_memory_is_a_row(sandbox: Sandbox, web: Web):
    """A file that is not a memory is listed with its problem, next to the others."""
    sandbox.memory("dec-a")
    sandbox.write(".memory/decision/2026-02/dec-x.md", "no frontmatter\n")
    page = web.get("/").text
    assert "dec-x.md" in page
    assert web.get("/m/dec-a").status == 200


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/m/nothing", 404),
        ("/nothing", 404),
        ("/search?q=x&limit=abc", 400),
        ("/search?q=x&at=nope", 404),
        ("/m/..%2f..%2fetc%2fpasswd", 404),
        ("/static/x.py", 404),
        ("/search?q=since:soon", 422),
        ("/search?q=" + "x" * 3000, 400),
    ],
)
def test_what_is_not_there_is_said(sandbox: Sandbox, web: Web, address: str, status: int):
    """An unknown id, path, revision or a wrong number is a page with one sentence."""
    sandbox.memory("dec-a")
    sandbox.commit()
    page = web.get(address)
    assert page.status == status
    assert "<h1>" in page.text


def test_a_page_is_kept_until_something_changes(
    sandbox: Sandbox, web: Web, monkeypatch: pytest.MonkeyPatch
):
    """A browser that has it is told so; after a change it gets the new one."""
    monkeypatch.setattr(state, "MINUTE_S", 1 << 40)  # no minute ends meanwhile
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    sandbox.commit()
    first = web.get("/search?q=redis")
    assert web.get("/search?q=redis", if_none_match=first.headers["etag"]).status == 304
    sandbox.memory("dec-b", "Sessions live in Redis as well.\n")
    time.sleep(1.1)  # a stamp is good for a second at most
    assert "dec-b" in web.get("/search?q=redis").text


def test_pages_are_small(sandbox: Sandbox, web: Web):
    """Page, style and script weigh 30 kB at most, packed."""
    for number in range(30):
        sandbox.memory(f"dec-{number}", f"Sessions live in Redis, {number} says.\n")
    parts = [web.get(path).body for path in ("/static/style.css", "/static/script.js")]
    for path in ("/", "/search?q=redis", "/m/dec-1"):
        assert len(gzip.compress(b"".join([*parts, web.get(path).body]))) < 30_000


def test_a_repository_may_change_or_go_while_it_is_served(sandbox: Sandbox, web: Web):
    """Another branch shows its own memories; where all is gone a page says so, and none breaks."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "-b", "other")
    sandbox.memory("dec-b")
    sandbox.commit()
    assert web.get("/m/dec-b").status == 200
    sandbox.git("checkout", "--quiet", "main")
    gone = web.get("/m/dec-b?as_of=2026-03-01")
    assert gone.status == 404
    assert 'href="/m/dec-a?as_of=2026-03-01"' in gone.text
    shutil.rmtree(sandbox.path)
    time.sleep(0.3)
    lost = web.get("/search?q=another")
    assert lost.status == 422
    assert "No directory" in lost.text
    assert "Each request looks again" in lost.text


def test_other_repositories_are_asked_only_where_somebody_has_set_them(
    sandbox: Sandbox, web: Web, tmp_path: Path
):
    """With a fleet there is a box to tick; its results name their repository and have no page."""
    assert 'name="fleet"' not in web.get("/search?q=redis").text
    assert web.get("/search?q=redis&fleet=1").status == 200
    shop = type(sandbox)(tmp_path / "src/acme/shop", sandbox.env)
    shop.path.mkdir(parents=True)
    shop.git("init", "--quiet", "--initial-branch=main")
    shop.memory("dec-far", "Redis <b>is</b> far away.\n", title="Far <i>redis</i>")
    commit = shop.commit()
    place = f"{tmp_path}/src/acme/*"
    for key, value in (("fleet.repositories", place), ("fleet.timeout_ms", "60000")):
        assert sandbox.run("--global", "config", key, value).returncode == 0
    assert sandbox.run("fleet", "sync").returncode == 0
    assert 'name="fleet"' in web.get("/search?q=redis&limit=9").text
    page = web.get("/search?q=redis+far&fleet=1").text
    assert f"<code>acme/shop dec-far@{commit[:7]}</code>" in page
    assert "Far &lt;i&gt;redis&lt;/i&gt;" in page
    assert 'href="/m/dec-far"' not in page
    assert "1 other repository was asked" in page
    assert "dec-far" not in web.get("/search?q=redis+far&limit=8").text


def test_more_of_other_repositories(sandbox: Sandbox, web: Web, tmp_path: Path):
    """After the first foreign results a link leads to further ones, until the last."""
    shop = type(sandbox)(tmp_path / "src/acme/shop", sandbox.env)
    shop.path.mkdir(parents=True)
    shop.git("init", "--quiet", "--initial-branch=main")
    for number in range(3):
        shop.memory(f"dec-far-{number}", f"Far away {number}.\n", title=f"Far {number}")
    shop.commit()
    for key, value in (("repositories", f"{tmp_path}/src/acme/*"), ("timeout_ms", "60000")):
        assert sandbox.run("--global", "config", f"fleet.{key}", value).returncode == 0
    assert sandbox.run("fleet", "sync").returncode == 0
    shown = []
    place = "/search?q=far&fleet=1&limit=1"
    while place:
        page = web.get(place).text
        shown += re.findall(r"<code>acme/shop (dec-far-\d)@", page)
        assert "3 memories in" in page
        link = re.search(r'href="([^"]+)">More of other repositories', page)
        place = unescape(link[1]) if link else ""
    assert sorted(shown) == ["dec-far-0", "dec-far-1", "dec-far-2"]


def test_what_agents_were_given_is_shown_by_block(sandbox: Sandbox, web: Web):
    """The memories of one block are together, with the reason; without any the page says so."""
    assert "Nothing yet. When an agent starts" in web.get("/given").text
    sandbox.memory("dec-redis", "Redis holds sessions for a day.\n", title="<b>Redis</b> for a day")
    sandbox.commit()
    for _time in range(2):
        assert (
            "Redis" in sandbox.run("inject", "--prompt", "how long does redis hold sessions").stdout
        )
    page = web.get("/given").text
    assert "&lt;b&gt;Redis&lt;/b&gt; for a day" in page
    assert page.count('href="/m/dec-redis"') == 2
    assert 1 <= page.count('<section class="row card">') <= 2


def test_a_note_on_a_page_that_can_write_names_no_command(sandbox: Sandbox, web: Web, writer: Web):
    """The fact stays; who only reads gets the command, too."""
    sandbox.memory("dec-old", "Sessions live in Redis.\n", valid_through="2026-01-01")
    sandbox.memory("dec-new", "Sessions live in Postgres.\n")
    sandbox.commit()
    address = "/search?q=sessions"
    assert "memtool list is:expired" in web.get(address).text
    page = writer.get(address).text
    assert "expired" in page
    assert "memtool list" not in page
