"""The list of memories: each filter has its heading, and several memories are changed at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from web.conftest import Web
from web.test_refused_forms import Form, fill, summary
from web.test_team_pages import Browser, words

from memtool.search.query import STATES
from memtool.web.pages.memories import HEADINGS

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Sandbox


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    """The demo, for tests that write nothing."""
    return Browser(tmp_path_factory.mktemp("team"))


@pytest.fixture
def writable(tmp_path: Path) -> Browser:
    """A demo that may be changed."""
    return Browser(tmp_path)


@pytest.mark.parametrize("query", sorted(HEADINGS))
def test_each_filter_has_a_heading_and_the_rows_of_the_verb(team: Browser, query: str):
    """The page lists what `memtool list` does, and says in plain words what they have in common."""
    page = team.get(f"/list?q={query}&limit=200")
    heading = HEADINGS[query]
    assert f"<h1>{heading.title}</h1>" in page.text
    ids = [row["id"] for row in team.box.json("list", *query.split(), "--limit", "0")["memories"]]
    assert re.findall(r'name="id" value="([^"]+)"', page.text) == ids
    assert heading.about in words(page)
    assert ids or heading.empty in words(page)
    assert query.removeprefix("is:") in {"", *STATES}


def test_what_expires_soon_is_what_status_counts(team: Browser):
    """The status and the list agree."""
    ids = re.findall(r'name="id" value="([^"]+)"', team.get("/list?q=is:expiring").text)
    assert sorted(ids) == sorted(team.box.json("status")["expiring"])
    assert len(ids) == 2


def test_a_broken_query_is_shown_with_its_form(team: Browser):
    """What was typed is there, with the place that is wrong."""
    page = team.get("/list?q=is:nothing")
    assert page.status == 422
    assert 'value="is:nothing"' in page.text
    assert "^" in page.text
    assert team.get("/list?sort=poem").status == 422


def test_pages_of_a_list_lead_on_and_back(team: Browser):
    """Every memory is on one of them, once."""
    address, ids = "/list?limit=20", []
    while address:
        page = team.get(address)
        ids += re.findall(r'name="id" value="([^"]+)"', page.text)
        following = re.findall(r'rel="next" href="([^"]+)"', page.text)
        address = following[0].replace("&amp;", "&") if following else ""
    listed = team.box.json("list", "--limit", "0")["memories"]
    assert ids == [row["id"] for row in listed]
    assert 'rel="prev"' in page.text
    assert "There are no more" in words(team.get("/list?offset=5000"))


def test_several_are_confirmed_in_one_commit(writable: Browser):
    """The preview counts and names them; the rest is one commit."""
    head = writable.box.git("rev-parse", "HEAD")
    ids = re.findall(r'name="id" value="([^"]+)"', writable.get("/list?q=is:candidate").text)
    sent = [*fill(writable, "/list?q=is:candidate", "several"), *(("id", id_) for id_ in ids)]
    shown = writable.form("/do/confirm", sent)
    assert f"<h1>Confirm {len(ids)} memories</h1>" in shown.text
    assert words(shown).count("candidate → confirmed") == len(ids)
    assert writable.box.git("rev-parse", "HEAD") == head
    done = writable.form("/do/confirm", Form(shown, "several").pairs)
    assert f"<h1>Confirmed {len(ids)} memories</h1>" in done.text
    assert writable.box.git("rev-parse", "HEAD^") == head
    assert writable.box.git("status", "--porcelain") == ""
    assert "There are no candidates" in words(writable.get("/list?q=is:candidate"))


def test_those_that_are_refused_are_named_and_the_others_done(writable: Browser):
    """One has drifted: the page says why by its title, and offers the others."""
    page = writable.get("/list?q=is:due")
    ids = re.findall(r'name="id" value="([^"]+)"', page.text)
    broken = writable.box.json("show", "epi-bg2z")["id"]
    sent = [*fill(writable, "/list?q=is:due", "several"), *(("id", id_) for id_ in ids)]
    refused = writable.form("/do/confirm", sent)
    assert refused.status == 422
    assert f"1 of {len(ids)} memories cannot be changed" in summary(refused)
    assert "Expired holds blocked the last seats" in summary(refused)
    assert [value for name, value in Form(refused, "several").pairs if name == "id"] == ids
    offer = Form(refused, "others").pairs
    assert [value for name, value in offer if name == "id"] == [x for x in ids if x != broken]
    shown = writable.form("/do/confirm", offer)
    assert writable.form("/do/confirm", Form(shown, "others").pairs).status == 200
    assert re.findall(r'name="id" value="([^"]+)"', writable.get("/list?q=is:due").text) == [broken]


@pytest.mark.parametrize(
    ("verb", "typed", "says"),
    [
        ("archive", {"archive.reason": "the season is over"}, "status: confirmed → archived"),
        ("tag", {"tag.add": "#ferry", "tag.remove": "holds"}, "tags: "),
    ],
)
def test_each_button_has_the_fields_of_its_verb(
    writable: Browser, verb: str, typed: dict[str, str], says: str
):
    """What was typed for another button does not disturb it."""
    ids = [writable.box.json("show", id_)["id"] for id_ in ("dec-2g54", "dec-6vnd")]
    every = {"archive.reason": "x", "tag.add": "y", **typed}
    sent = [*fill(writable, "/list", "several", **every), *(("id", id_) for id_ in ids)]
    shown = writable.form(f"/do/{verb}", sent)
    assert says in words(shown)
    done = writable.form(f"/do/{verb}", Form(shown, "several").pairs)
    assert done.status == 200
    assert ("Reason: the season is over" in done.text) == (verb == "archive")
    for id_ in ids:
        page = writable.get(f"/m/{id_}").text
        assert "Undo: " in page


def test_a_server_that_reads_lists_without_boxes(sandbox: Sandbox, web: Web):
    """No checkbox and no button is there where nothing can be written."""
    sandbox.memory("dec-a", title="<b>Bold</b>")
    sandbox.commit()
    page = web.get("/list")
    assert "&lt;b&gt;Bold&lt;/b&gt;" in page.text
    assert "checkbox" not in page.text
    assert "/do/" not in page.text
