"""Review and Changes propose ranges; pages without content say what would be there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from tower import NEW, NORTH, replace_premise, write_tower
from web.test_pages import words

if TYPE_CHECKING:
    from conftest import Sandbox

    Web = Any


def ranges(page: str) -> dict[str, str]:
    """Return the proposed ranges with their numbers of commits, by name."""
    rows = page.partition('<ul class="ranges">')[2].partition("</ul>")[0]
    return dict(re.findall(r'<a href="[^"]+"[^>]*>([^<]+)</a> <span class="by">([^<]+)<', rows))


def test_ranges_that_exist_are_proposed(sandbox: Sandbox, web: Web):
    """This branch, the last week and the last merge, each with its commits; none twice."""
    assert ranges(web.get("/review").text) == {}
    sandbox.env["MEMTOOL_NOW"] = "2026-02-20T00:00:00Z"
    for number in range(3):
        sandbox.memory(f"dec-{number}")
        sandbox.commit()
    sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD")
    sandbox.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    sandbox.git("checkout", "--quiet", "-b", "topic")
    sandbox.tick = 18 * 24
    for number in range(3, 5):
        sandbox.memory(f"dec-{number}")
        sandbox.commit()
    sandbox.git("checkout", "--quiet", "-b", "side")
    sandbox.memory("dec-side")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "topic")
    sandbox.git("merge", "--quiet", "--no-ff", "--no-edit", "side")
    page = type(web)(sandbox).get("/review").text
    assert ranges(page) == {"This branch": "4 commits", "The last merge": "2 commits"}
    for address in re.findall(r'href="(/review\?range=[^"]+)"', page):
        assert type(web)(sandbox).get(address).status == 200


def test_the_last_ten_commits_are_proposed(sandbox: Sandbox, web: Web):
    """Where there are more than ten; Changes proposes the same, and titles say it in words."""
    for number in range(12):
        sandbox.memory(f"dec-{number}")
        sandbox.commit()
    for path in ("/review", "/changes"):
        assert ranges(web.get(path).text)["The last 10 commits"] == "10 commits"
    assert "<h1>Review: the last 10 commits</h1>" in web.get("/review?range=HEAD~10..HEAD").text
    changes = web.get("/changes?range=HEAD~10..HEAD").text
    assert "<h1>Changes: the last 10 commits</h1>" in changes
    assert "10 memories changed from" in words(changes)


def test_a_review_says_in_words_what_to_do(sandbox: Sandbox, writer: Web):
    """Titles with short ids; a trailer keeps a decision, and a link corrects it."""
    sandbox.write("pay.py", "A = 1\n")
    sandbox.memory("dec-pay", title="Pay once", files=("pay.py",))
    sandbox.memory("dec-tea", title="Tea at four")
    sandbox.commit()
    sandbox.write("pay.py", "A = 2\n")
    commit = sandbox.commit()
    page = writer.get(f"/review?range={commit}~1..{commit}").text
    text = words(page)
    assert "1 decision is not mentioned." in text
    assert "in a line such as Upholds: dec-pay." in text
    assert "not mentioned Pay once dec-pay" in text
    assert 'href="/m/dec-pay/supersede">Correct it</a>' in page
    assert "memtool " not in text
    sandbox.write("pay.py", "A = 3\n")
    commit = sandbox.commit("pay: three\n\nUpholds: dec-pay")
    text = words(writer.get(f"/review?range={commit}~1..{commit}").text)
    assert "Every decision that governs this change is mentioned." in text
    sandbox.write("tea.py", "")
    commit = sandbox.commit()
    free = words(writer.get(f"/review?range={commit}~1..{commit}").text)
    assert "1 file changed, and no memory governs it." in free


def test_a_review_shows_what_rests_on_the_change(sandbox: Sandbox, writer: Web):
    """Each premise with what rests on it, what names it, how to settle, and what is settled."""
    write_tower(sandbox, is_replaced=False)
    sandbox.write("tower.py", f"# {NORTH}\n")
    sandbox.commit()
    replace_premise(sandbox)
    page = writer.get("/review?range=HEAD~1..HEAD").text
    text = words(page)
    assert "2 memories rest on what this change takes away. If one still holds, confirm" in text
    assert "It is now Towers over 50 floors need a class F review sem-b7x2." in text
    assert "unsettled The north tower gets a class F review dec-2g54 unsettled The plan" in text
    assert "allows nine weeks sem-r8d3 rests on The north tower gets a class F review" in text
    assert "Named in tower.py:1." in text
    assert f'href="/m/{NEW}"' in page
    assert "memtool " not in text
    assert sandbox.run("confirm", NORTH, "--still-holds", "--commit").returncode == 0
    settled = words(writer.get("/review?range=HEAD~1..HEAD").text)
    assert "Settled by this change: The north tower gets a class F review dec-2g54, The" in settled
    assert "takes away" not in settled
    assert sandbox.run("forget", NORTH, "--reason", "no tower", "--commit").returncode == 0
    forgotten = words(writer.get("/review?range=HEAD~1..HEAD").text)
    assert "1 memory rests on what this change takes away." in forgotten
    assert "The north tower gets a class F review dec-2g54 It was forgotten." in forgotten


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/", "No memory is here yet"),
        ("/changes", "Every memory is committed as it is here"),
        ("/conflicts", "No memory contradicts another"),
        ("/conflicts?accepted=1", "No conflict was settled yet"),
        ("/digests", "No digest was written yet"),
        ("/digests/warning", "No digest of warning yet"),
        ("/fleet", "A fleet is a number of repositories"),
        ("/review", "too few commits to propose a range"),
        ("/sessions", "No session was captured yet"),
        ("/sessions?status=ended", "No session is ended"),
    ],
)
def test_an_empty_page_says_what_would_be_there(writer: Web, path: str, says: str):
    """In a box of its own, in words, and without a command."""
    page = writer.get(path).text
    box = page.partition('<p class="empty">')[2].partition("</p>")[0]
    assert says in box
    assert "memtool " not in words(page)
