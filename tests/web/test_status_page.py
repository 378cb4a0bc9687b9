"""The first page: what needs attention, what changed since the reader was here, use and health."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from web.conftest import Web
from web.test_pages import words

from memtool.web import visits

if TYPE_CHECKING:
    from conftest import Sandbox


def show_at(sandbox: Sandbox, moment: str) -> str:
    """Log in at a moment, as another start of the server, and return the words of the page."""
    sandbox.env["MEMTOOL_NOW"] = moment
    return words(Web(sandbox).get("/").text)


def write(sandbox: Sandbox, name: str, day: str) -> str:
    """Commit a memory on a day of February 2026."""
    sandbox.tick = (int(day) - 1) * 24
    sandbox.memory(name, title=f"About {name[4:]}")
    return sandbox.commit(name)


def test_cards_lead_to_lists_the_most_urgent_first(sandbox: Sandbox, writer: Web):
    """Forks and contradictions are counted, then drift and candidates, each with its titles."""
    sandbox.memory("dec-old", title="Old")
    sandbox.memory("dec-one", title="One way", supersedes=("dec-old",))
    sandbox.memory("dec-two", title="Other way", supersedes=("dec-old",))
    sandbox.write("code.py", "def release_expired(): ...\n")
    sandbox.memory("sem-code", "`release_expired` runs.\n", title="Code", files=("code.py",))
    for number in range(4):
        sandbox.memory(f"sem-{number}", title=f"Guess {number}", status="candidate")
    sandbox.commit()
    sandbox.write("code.py", "")
    sandbox.commit()
    page = writer.get("/").text
    text = words(page)
    headings = ("1 Conflicts to settle", "1 Drifted from the code", "4 Candidates to confirm")
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places)
    assert "6 things need attention." in text
    assert "Code sem-code" in text
    assert "Guess 0" not in text  # the first three
    assert "Confirm or forget them (all 4)" in text
    for address in ("/conflicts", "/list?q=is:drifted", "/list?q=is:candidate"):
        assert f'href="{address}"' in page
    assert "memtool " not in text


def test_a_server_that_reads_shows_commands_behind_a_detail(sandbox: Sandbox, web: Web):
    """Nowhere else does the page speak shell."""
    sandbox.memory("sem-a", status="candidate")
    sandbox.commit()
    page = web.get("/").text.partition("<main")[2].partition("<footer")[0]
    open_text = "".join(part.partition("</details>")[2] for part in page.split("<details"))
    assert "<summary>On the command line</summary><p><code>memtool confirm ID" in page
    assert "memtool " not in open_text


def test_the_first_visit_is_told_about_two_weeks(sandbox: Sandbox):
    """What is older is not new to anybody."""
    write(sandbox, "dec-far", "01")
    write(sandbox, "dec-near", "20")
    text = show_at(sandbox, "2026-02-25T09:00:00Z")
    assert "The last two weeks" in text
    assert "About near" in text
    assert "About far" not in text.partition("Growth")[0].partition("The last two weeks")[2]


def test_a_later_visit_is_told_what_came_between(sandbox: Sandbox):
    """It counts from the beginning of the visit before; an hour belongs to one visit."""
    write(sandbox, "dec-one", "10")
    show_at(sandbox, "2026-02-11T09:00:00Z")
    write(sandbox, "dec-two", "12")
    for moment in ("2026-02-13T09:00:00Z", "2026-02-13T09:30:00Z"):
        news = show_at(sandbox, moment).partition("Since you were here")[2].partition("Growth")[0]
        assert "About two" in news
        assert "About one" not in news
    quiet = show_at(sandbox, "2026-02-14T09:00:00Z")
    assert "Nothing changed since yesterday." in quiet


def test_seen_is_a_click(sandbox: Sandbox):
    """After it nothing is new, in a server that only reads, too; a strange form is refused."""
    write(sandbox, "dec-one", "10")
    sandbox.env["MEMTOOL_NOW"] = "2026-02-11T09:00:00Z"
    web = Web(sandbox)
    assert "About one" in words(web.get("/").text)
    assert web.form("/seen", {"nonce": "strange"}).status == 403
    assert web.form("/seen", {"nonce": web.nonce}, origin="http://evil.example").status == 403
    done = web.form("/seen", {"nonce": web.nonce})
    assert (done.status, done.headers["location"]) == (303, "/")
    assert "Nothing changed since just now." in words(web.get("/").text)
    assert f'value="{web.nonce}"' not in web.get("/").text  # nothing to click


def test_a_commit_of_an_older_day_is_new_if_it_was_merged_since(sandbox: Sandbox):
    """Commits count, not their dates; where the mark is gone the date has to do."""
    write(sandbox, "dec-one", "10")
    sandbox.git("checkout", "--quiet", "-b", "side")
    write(sandbox, "dec-side", "11")
    sandbox.git("checkout", "--quiet", "main")
    show_at(sandbox, "2026-02-20T09:00:00Z")
    sandbox.git("merge", "--quiet", "--no-edit", "side")
    news = show_at(sandbox, "2026-02-21T09:00:00Z").partition("Since you were here")[2]
    assert "About side" in news.partition("Growth")[0]
    directory = str(sandbox.path / ".git/memtool")
    visits.begin(directory, "a" * 40, visits.read(directory).second + visits.VISIT_S)
    visits.begin(directory, "b" * 40, visits.read(directory).second + visits.VISIT_S)
    gone = words(Web(sandbox).get("/").text)
    assert "Nothing changed since" in gone


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"commit": 1}', '{"commit": "--all", "second": 1}', '{"other": ""}', "x" * 9],
)
def test_a_spoiled_mark_is_none(sandbox: Sandbox, web: Web, text: str):
    """Whatever the file holds, the page is that of a first visit."""
    write(sandbox, "dec-one", "10")
    directory = sandbox.path / ".git/memtool"
    directory.mkdir(exist_ok=True)
    (directory / visits.FILE).write_text(text)
    assert visits.read(str(directory)) == visits.Visit()
    assert "The last two weeks" in words(web.get("/").text)


def test_a_visit_is_private_and_survives_a_full_disk(sandbox: Sandbox):
    """Only its owner reads the mark; where it cannot be written, the login goes on."""
    write(sandbox, "dec-one", "10")
    show_at(sandbox, "2026-02-11T09:00:00Z")
    file = sandbox.path / ".git/memtool" / visits.FILE
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["commit"] == sandbox.git("rev-parse", "HEAD").strip()
    file.unlink()
    os.mkdir(file)
    assert "The last two weeks" in show_at(sandbox, "2026-02-12T09:00:00Z")


def test_use_and_health(sandbox: Sandbox, web: Web):
    """Answers by day, what is used most and never, and how upkeep stands."""
    sandbox.memory("dec-used", "Sessions live in Redis.\n", title="Redis")
    sandbox.memory("dec-idle", "Tea is at four.\n", title="Tea")
    sandbox.commit()
    text = words(web.get("/").text)
    assert "Nothing was searched here" in text
    assert "never done in this clone; none is scheduled" in text
    sandbox.run("search", "redis")
    assert sandbox.run("config", "maintain.schedule", "weekly").returncode == 0
    text = words(Web(sandbox).get("/").text)
    assert "2 answers in 60 days" in text
    assert "Redis dec-used 1 time" in text
    assert "1 was never used" in text
    assert "weekly is due now" in text


def test_an_empty_store_says_how_memories_come(web: Web):
    """And none of its sections is an empty box."""
    text = words(web.get("/").text)
    assert "No memory is here yet." in text
    assert "All is well" not in text
