"""The picture of the timeline: lanes by category, and marks that lead to the rows below."""

from __future__ import annotations

import re
from html import unescape
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from memtool.memory.changes import KINDS
from memtool.memory.timestamps import DAY_S, format_date
from memtool.web.lanes import (
    GONE,
    MAX_ROWS,
    MAX_TICKS,
    SESSIONS,
    SIGNS,
    STEP,
    WIDTH,
    Event,
    draw_lanes,
)

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from conftest import Sandbox

    Web = Any

NOON = 20_000 * DAY_S + DAY_S // 2


def event(lane: str, days: float, kind: str = "added") -> Event:
    return Event(lane, kind, NOON + int(days * DAY_S), f"{kind} in {lane}", f"e-{lane}-{days}")


def test_every_kind_of_change_has_a_sign_of_its_own():
    """A kind that is added to the table of changes needs one here."""
    assert set(SIGNS) == {*KINDS, "session"}
    assert len(set(SIGNS.values())) == len(SIGNS)


def test_lanes_are_in_the_order_of_the_categories():
    """Those of the settings first, then unknown ones; what is gone and sessions come last."""
    events = [event(lane, 1) for lane in (SESSIONS, GONE, "odd", "error", "decision")]
    picture = draw_lanes([*events, event("decision", 9)], ("decision", "pattern", "error"))
    assert picture is not None
    assert [lane.name for lane in picture.lanes] == ["decision", "error", "odd", GONE, SESSIONS]
    ends = [(lane.y, lane.y + lane.height) for lane in picture.lanes]
    assert all(before[1] == after[0] for before, after in pairwise(ends))


def test_marks_are_in_order_of_time_and_never_on_each_other():
    """Those of one moment are one below the other, the last with the number of what follows."""
    events = [event("decision", 3) for _mark in range(9)] + [event("decision", 0)]
    events += [event("error", days / 10) for days in range(60)]
    picture = draw_lanes(events, ("decision", "error"))
    assert picture is not None
    decisions, errors = picture.lanes
    assert [mark.x for mark in decisions.marks] == sorted(mark.x for mark in decisions.marks)
    assert [mark.hidden for mark in decisions.marks] == [0, *[0] * (MAX_ROWS - 1), 9 - MAX_ROWS]
    marks = [*decisions.marks, *errors.marks]
    places = {(mark.x, mark.y) for mark in marks}
    assert len(places) == len(marks)
    assert all(STEP // 2 <= x <= WIDTH - STEP // 2 for x, _y in places)
    for lane in picture.lanes:
        assert all(lane.y < mark.y < lane.y + lane.height for mark in lane.marks)


def test_a_change_that_is_not_committed_is_the_newest():
    """It stands at the right end."""
    later = Event("decision", "added", None, "now", "e-now")
    picture = draw_lanes([event("decision", 0), event("decision", 5), later], ())
    assert picture is not None
    assert picture.lanes[0].marks[-1].name == "now"
    assert draw_lanes([event("decision", 0), later], ()) is None  # nothing to compare


@pytest.mark.parametrize("days", [0.001, 1, 3, 40, 400, 4_000, 40_000])
def test_dates_are_few_and_in_order(days: float):
    """Whatever the time between the first change and the last."""
    picture = draw_lanes([event("decision", 0), event("decision", days)], ())
    assert picture is not None
    assert 1 <= len(picture.ticks) <= MAX_TICKS
    assert [*picture.ticks] == sorted(picture.ticks)
    assert picture.ticks[0][1] == format_date(NOON)


def test_every_mark_leads_to_its_row(sandbox: Sandbox, web: Web):
    """Each mark has the title of its memory, and each row is there, by title and short id."""
    sandbox.memory("dec-a", title="Hold a <b>seat</b>", category="decision")
    sandbox.memory("epi-b", title="It burnt", type="episodic", category="error")
    sandbox.commit()
    sandbox.memory("dec-c", title="Hold two", category="decision", supersedes=("dec-a",))
    sandbox.commit()
    sandbox.memory("dec-d", title="Not committed")
    page = web.get("/timeline").text
    targets = [
        unquote(unescape(target))
        for target in re.findall(r'<a class="\w+" href="#(e-[^"]+)"', page)
    ]
    rows = re.findall(r'<li class="row" id="([^"]+)"', page)
    assert sorted(targets) == sorted(rows)
    assert len(rows) == 5
    assert 'aria-label="decision"' in page
    assert "superseded, Hold a &lt;b&gt;seat&lt;/b&gt;</title>" in page
    assert '<a href="/m/dec-c">Hold two</a> <span class="id">dec-c</span>' in page


def test_a_filter_narrows_the_picture_down_as_well(sandbox: Sandbox, web: Web):
    """The picture has what the page lists; without changes there is none."""
    assert "<svg" not in web.get("/timeline").text
    for number in range(3):
        sandbox.memory(f"dec-{number}", title=f"Part {number}")
        sandbox.commit()
    sandbox.memory("dec-3", title="Part 3", supersedes=("dec-1",))
    sandbox.commit()
    assert web.get("/timeline").text.count('<a class="superseded"') == 1
    assert web.get("/timeline?kind=added").text.count('<a class="superseded"') == 0
    assert web.get("/timeline?kind=added").text.count('<a class="added"') == 4


def test_sessions_have_the_last_lane(sandbox: Sandbox, web: Web):
    """Their marks lead to their rows."""
    sandbox.memory("dec-a")
    sandbox.commit()
    session = sandbox.run("session", "start", "--title", "Seats").stdout.strip()
    page = web.get("/timeline").text
    assert f'<a class="session" href="#s-{session}">' in page
    assert f'id="s-{session}"' in page


def test_a_shallow_clone_has_a_picture_of_what_it_knows(
    sandbox: Sandbox, tmp_path: Path, request: pytest.FixtureRequest
):
    """What is older than its history has no date, and is no reason to fail."""
    for number in range(3):
        sandbox.memory(f"dec-{number}", title=f"Part {number}")
        sandbox.commit()
    clone = tmp_path / "shallow"
    sandbox.git("clone", "--quiet", "--depth", "1", f"file://{sandbox.path}", str(clone))
    sandbox.path = clone
    shallow = request.getfixturevalue("web")
    for path in ("/timeline", "/map", "/m/dec-2/graph"):
        assert shallow.get(path).status == 200, path


def test_the_static_site_has_the_picture(sandbox: Sandbox):
    """Its marks lead to the rows of its page, and no session is there."""
    for number in range(3):
        sandbox.memory(f"dec-{number}", title=f"Part {number}")
        sandbox.commit()
    sandbox.run("session", "start", "--title", "Seats")
    assert sandbox.run("site", "public").returncode == 0
    page = (sandbox.path / "public/timeline.html").read_text()
    targets = re.findall(r'<a class="\w+" href="#(e-[^"]+)"', page)
    assert sorted(targets) == sorted(re.findall(r'<li class="row" id="([^"]+)"', page))
    assert len(targets) == 3
    assert 'class="session"' not in page
