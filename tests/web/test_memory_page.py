"""The page of a memory: it reads like a document, and says only what is unusual."""

from __future__ import annotations

from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
from tower import NORTH, PLAN, write_tower
from web.test_pages import words

from memtool.commands._record import record_answer
from memtool.commands.search import search
from memtool.commands.show import show
from memtool.store.context import Context

if TYPE_CHECKING:
    from conftest import Sandbox

    Web = Any

CODE = "def release_expired():\n    return 1\n"


def drift_away(sandbox: Sandbox) -> str:
    """Commit a memory about a name, then remove the name; return the commit that did."""
    sandbox.write("holds.py", CODE)
    sandbox.memory("dec-holds", "`release_expired` frees seats.\n", files=("holds.py",))
    sandbox.commit("begin")
    sandbox.write("holds.py", "def free():\n    return 2\n")
    return sandbox.commit("holds: one query")


def test_drift_is_told_first_with_its_commit(sandbox: Sandbox, web: Web):
    """What broke it, by which commit, and when it was last checked stand above the title."""
    first = drift_away(sandbox)[:7]
    checked = sandbox.git("rev-parse", "--short=7", "HEAD^").strip()
    page = web.get("/m/dec-holds").text
    head = words(page).partition("Governs")[0]
    assert "The code has drifted. release_expired is no longer in holds.py" in head
    assert f"since {first} “holds: one query”" in head
    assert f"last checked against the code at {checked}" in head
    assert page.index("The code has drifted") < page.index("<h1>")
    assert page.index("</h1>") < page.index('<div class="body">') < page.index("<dl ")


def test_a_page_says_why_it_is_unsettled_and_what_to_do(sandbox: Sandbox, web: Web):
    """The lowest says how to settle it, what rests on it leads there; no page has a command."""
    write_tower(sandbox)
    page = web.get(f"/m/{NORTH}").text
    text = words(page)
    head, _title, facts = text.partition("Written")
    assert "Unsettled. Towers over 40 floors need a class F review sem-k3f9 is now Towers" in head
    assert "If it still holds, confirm that; if it has changed, correct it; else forget it." in head
    assert "Rests onTowers over 40 floors need a class F review sem-k3f9 replaced" in facts
    assert "Rests on thisThe plan of the north tower allows nine weeks sem-r8d3 unsett" in facts
    above = words(web.get(f"/m/{PLAN}").text)
    assert "Settle The north tower gets a class F review dec-2g54, and this is settled" in above
    assert "Comes from" not in above.partition("Who says so")[0]
    for address in (f"/m/{NORTH}", f"/m/{PLAN}", "/list?q=is:unsettled", "/map"):
        answer = web.get(address)
        assert answer.status == 200
        assert "memtool confirm" not in answer.text
    listed = words(web.get("/list?q=is:unsettled").text)
    assert "What these rest on was replaced, or no longer holds." in listed
    assert "2 unsettled" in words(web.get("/map").text)
    status = words(web.get("/").text)
    assert "2 Unsettled The north tower gets a class F review" in status
    assert "sem-k3f9 is now sem-b7x2" in status


def test_what_is_over_has_one_warning(sandbox: Sandbox, web: Web):
    """Of a memory that was replaced nobody asks whether the code still fits."""
    drift_away(sandbox)
    sandbox.memory("dec-free", "Seats are freed.\n", title="Free", supersedes=("dec-holds",))
    sandbox.commit()
    text = words(web.get("/m/dec-holds").text)
    assert "This is no longer what holds. Free dec-free replaces it." in text
    assert "drifted" not in text
    newer = words(web.get("/m/dec-free").text)
    assert newer.index("Replaces") < newer.index("History")


def test_a_statement_is_no_fault(sandbox: Sandbox, web: Web):
    """A person's word has no mark; a file that is gone has one, and a warning above."""
    sandbox.memory("dec-a", "Redis.\n", source=("human:Ada",))
    sandbox.memory("dec-b", "Redis, too.\n", source=("file:gone.py", "url:https://a.example/b"))
    sandbox.commit()
    spoken = web.get("/m/dec-a").text.partition("<h2>History")[0]
    assert "a statement by Ada" in words(spoken)
    assert 'class="mark' not in spoken
    assert '<p class="warn' not in spoken
    lost = web.get("/m/dec-b").text
    assert "A source does not hold. gone.py" in words(lost)
    assert '<span class="mark missing">missing</span>' in lost
    assert 'href="https://a.example/b" rel="noopener noreferrer nofollow"' in lost


def test_who_archived_it_did_not_write_it(sandbox: Sandbox, web: Web):
    """The writer is that of the text; another person's change of the file stands apart."""
    sandbox.memory("dec-a")
    first = sandbox.commit()[:7]
    sandbox.memory("dec-a", status="archived")
    sandbox.git("add", "--all")
    sandbox.git("commit", "--quiet", "--author=Bo <bo@example.org>", "--message=away")
    second = sandbox.git("rev-parse", "--short=7", "HEAD").strip()
    text = words(web.get("/m/dec-a").text)
    assert "Decision by Ada," in text
    assert f"Written by Ada, 2026-02-01, in {first}" in text.replace("Writtenby", "Written by")
    assert f"by Bo, 2026-02-01, in {second}" in text
    assert "Who wrote which part: Ada, Bo" in text


def test_use_is_one_line(sandbox: Sandbox, web: Web):
    """How often it was searched and opened; the answers to agents are behind the line."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n", title="Redis")
    sandbox.commit()
    assert "No search and no agent has met it yet." in words(web.get("/m/dec-a").text)
    context = Context.at(str(sandbox.path), sandbox.env)
    for _time in range(2):
        record_answer(context, "search", search(context, "redis"), 1.0)
    record_answer(context, "show", show(context, "dec-a"), 1.0)
    assert "No agent was given it; shown in 2 searches" in words(web.get("/m/dec-a").text)
    assert "opened once" in words(web.get("/m/dec-a").text)
    assert sandbox.run("inject", "--prompt", "where do sessions live").returncode == 0
    page = web.get("/m/dec-a").text
    assert "<summary>Given to agents once, " in page
    rows = page.partition("<summary>Given")[2].partition("<tbody>")[2].partition("</tbody>")[0]
    assert rows.count("<tr>") == 1


def test_links_in_a_text_have_titles(sandbox: Sandbox, web: Web):
    """`[[id]]` is shown as the title with the short id; an unknown id stays as it is."""
    sandbox.memory("dec-a", "As [[dec-b]] says, and [[dec-none]].\n")
    sandbox.memory("dec-b", title="Keep <b>sessions</b>")
    body = web.get("/m/dec-a").text.partition('<div class="body">')[2].partition("</div>")[0]
    link = '<a href="/m/dec-b">Keep &lt;b&gt;sessions&lt;/b&gt;</a> <span class="id">dec-b</span>'
    assert link in body
    assert '<a href="/m/dec-none">dec-none</a>' in body


@pytest.mark.parametrize("status", ["deprecated", "archived"])
def test_a_state_is_said_in_words(sandbox: Sandbox, web: Web, status: str):
    """Once, as a sentence above the title."""
    sandbox.memory("dec-a", status=status)
    sandbox.commit()
    page = unescape(web.get("/m/dec-a").text)
    assert f"<strong>{status.capitalize()}.</strong>" in page
    assert f'<span class="mark {status}">' not in page


def test_no_page_of_a_memory_speaks_shell(sandbox: Sandbox, writer: Web):
    """Not for drift, a conflict, a candidate or a review that is due."""
    drift_away(sandbox)
    for name in ("dec-one", "dec-two"):
        sandbox.memory(name, f"{name} says so.\n", supersedes=("dec-holds",), status="candidate")
    sandbox.memory("dec-old", "Old.\n", timestamp="2020-01-01T00:00:00Z")
    sandbox.commit()
    for name in ("dec-holds", "dec-one", "dec-old"):
        assert "memtool " not in words(writer.get(f"/m/{name}").text).partition("History")[0]
