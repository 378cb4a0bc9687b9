"""The pages of what a team has: conflicts, comparisons, the timeline, sessions, findings, forms.

They are asked in process, over the demo, which has all of it.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from conftest import Sandbox
from scene import environment
from web.conftest import Reply, Web

from memtool.demo import build
from memtool.web.pages import PAGES

MAX_CRAWLED_PAGES = 90
HOSTILE = "<script>alert(1)</script>"


class Browser(Web):
    """A browser in front of the demo."""

    def __init__(self, base: Path) -> None:
        env = environment(base / "home")
        made = build(env, str(base / "harbor"), dry_run=False)
        self.box = Sandbox(base / "harbor", env | {"MEMTOOL_NOW": made.now})
        super().__init__(self.box, is_writing=True)

    def do(self, verb: str, *fields: tuple[str, str]) -> Reply:
        """Send a form of a page; a field may be there several times."""
        form = [("nonce", self.nonce), *fields]
        return self.ask(
            "POST",
            f"/do/{verb}",
            urlencode(form).encode(),
            origin=f"http://{self.guard.site}",
            content_type="application/x-www-form-urlencoded",
        )


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    """The demo, for tests that write nothing."""
    return Browser(tmp_path_factory.mktemp("team"))


@pytest.fixture
def writable(tmp_path: Path) -> Browser:
    """A demo that may be changed."""
    return Browser(tmp_path)


def words(reply: Reply) -> str:
    """Return the visible text of a page, on one line."""
    return " ".join(re.sub(r"<[^>]+>", " ", reply.text.partition("<main")[2]).split())


def sides(web: Browser, kind: str = "values") -> list[tuple[str, str]]:
    """The memories of a conflict as fields of a form."""
    rows = json.loads(web.box.run("conflicts", "--json").stdout)["conflicts"]
    return [("ids", id_) for id_ in next(row["ids"] for row in rows if row["kind"] == kind)]


@pytest.mark.slow
def test_every_link_of_every_page_leads_to_a_page(team: Browser):
    """From the first page on, whatever a page leads to is there, and none is heavy."""
    todo, seen = ["/"], set()
    while todo and len(seen) < MAX_CRAWLED_PAGES:
        path = todo.pop(0)
        if path in seen:
            continue
        seen.add(path)
        reply = team.get(path)
        assert reply.status == 200, path
        assert len(reply.text) < 60_000, path
        links = re.findall(r'href="(/[^"#]*)"', reply.text)
        todo += [html.unescape(link) for link in links if not link.startswith("/static")]
    assert {page.path for page in PAGES if "{" not in page.path and not page.feature} <= seen


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/timeline?kind=nothing", "unknown kind"),
        ("/timeline?offset=abc", "offset must be a number"),
        ("/changes?range=nope..HEAD", "no revision"),
        ("/sessions/ses-none", "no session is called"),
        ("/sessions?status=lost", "unknown status"),
        ("/findings?preset=lost", "unknown preset"),
        ("/findings?session=none", "no session is called"),
        ("/new?type=poem", "unknown type"),
        ("/m/zzz-absent", "no memory is called"),
        ("/m/zzz-absent/diff", "no memory is called"),
        ("/m/zzz-absent/graph", "no memory is called"),
        ("/digests/poems", "unknown category"),
        ("/review?range=nope..HEAD", "no revision"),
        ("/m/zzz-absent/supersede", "no memory is called"),
        ("/search?q=type:poem", "is not one of"),
        ("/conflicts?limit=-1", "limit must be a number"),
    ],
)
def test_what_is_not_there_is_said(team: Browser, path: str, says: str):
    """An unknown id, range, filter or revision is a page that says so, with what there is."""
    reply = team.get(path)
    assert reply.status in (400, 404, 422)
    assert says in words(reply).lower()


@pytest.mark.parametrize(
    ("path", "offer"),
    [
        ("/m/dec-2026-08-10-hold-a-seet/graph", "/m/dec-2026-08-10-hold-a-seat-for-20-minutes-"),
        ("/m/hold-a-seat", "/m/dec-2026-08-11-hold-a-seat-for-10-minutes-on-full-sailings-"),
        ("/sessions/s-refnds", "/sessions/s-refunds"),
        ("/findings?session=s-refnds", "/findings?session=s-refunds"),
        ("/timeline?kind=added&at=mian", "/timeline?kind=added&amp;at=main"),
        ("/changes?range=mian..HEAD", "/changes?range=main..HEAD"),
        ("/review?range=mian", "/review?range=main..HEAD"),
    ],
)
def test_what_is_near_is_offered(team: Browser, path: str, offer: str):
    """A page that is not there leads to what may be meant: the same page with the right words."""
    reply = team.get(path)
    assert reply.status in (404, 422)
    (near,) = (
        link
        for link in re.findall(r'href="([^"]+)"', reply.text.partition("<main")[2])
        if link.startswith(offer)
    )
    assert team.get(html.unescape(near)).status == 200


def test_conflicts_are_side_by_side_with_signs(team: Browser):
    """Each side has its words, source, time, confidence and trust; differences are marked."""
    reply = team.get("/conflicts")
    assert "3 conflicts among 6 memories" in words(reply)
    assert "<del>5 </del>" in reply.text
    assert "<ins>8 </ins>" in reply.text
    assert "≠" in words(reply)
    for fact in ("source", "written", "confidence", "trust"):
        assert f'<th scope="row">{fact}</th>' in reply.text


def test_settled_conflicts_have_their_reasons(team: Browser):
    """Replaced and accepted memories are listed with their reasons."""
    text = words(team.get("/conflicts?accepted=1"))
    assert "The law asks for money back" in text
    assert "one is for summer, the other for the rest of the year" in text


def test_a_lineage_is_compared_side_by_side(team: Browser):
    """Without another name a memory is compared with the one that it replaced."""
    id_ = next(iter(re.findall(r"dec-2026-09-07-[a-z0-9-]+", team.get("/timeline").text)))
    reply = team.get(f"/m/{id_}/diff")
    assert "dec-2026-07-13" in reply.text
    assert '<tr class="changed">' in reply.text
    assert "only on the right" in words(reply)


def test_two_revisions_of_a_memory_are_compared(team: Browser):
    """A pin is a key that was added since."""
    id_ = "sem-2026-07-20-logs-name-bookings-never-passengers"
    whole = re.findall(rf"{id_}-\w+", team.get("/search?q=passengers").text)[0]
    first = team.box.git("log", "--format=%H", "--diff-filter=A", "--", f"*{whole}.md").split()[-1]
    assert f"old={first}" in team.get(f"/m/{whole}/diff?versions=1").text
    reply = team.get(f"/m/{whole}/diff?old={first}")
    assert "<del>confirmed</del>" in reply.text
    assert "<ins>pinned</ins>" in reply.text


def test_the_timeline_has_commits_and_sessions_by_day(team: Browser):
    """Both lanes are there, and filters leave what fits."""
    reply = team.get("/timeline")
    assert 'aria-label="Commits"' in reply.text
    assert 'aria-label="Sessions"' in reply.text
    assert "Free seats take two seconds" in words(reply)
    fits = re.findall(
        r'<span class="mark \w+">(\w+)</span>', team.get("/timeline?kind=forgotten").text
    )
    assert fits == ["forgotten"]
    older = words(team.get("/timeline?offset=60"))
    assert "Keep bookings in PostgreSQL" in older


def test_a_session_shows_messages_and_findings(team: Browser):
    """Its messages, failures, and findings with their points."""
    text = words(team.get("/sessions/s-refunds"))
    assert "429 Too Many Requests" in text
    assert "✗ failed" in text
    assert "6 points" in text


def test_findings_have_points_and_candidates_their_time(team: Browser):
    """The best evidence comes first, and each candidate says how long it waits."""
    text = words(team.get("/findings"))
    assert text.index("6 points") < text.index("5 points")
    assert "days left to confirm it" in text


BAD = {
    "sem-yaml": b"---\nid: [sem\n---\nBad.\n",
    "sem-bytes": b"---\nid: sem-bytes\ntitle: \xff\xfe\n---\n",
    "sem-fields": b"---\nid: sem-fields\ntimestamp: yesterday\ntype: poem\n---\nBad.\n",
}


def test_bad_memories_are_problems_and_no_empty_pages(writable: Browser):
    """Each is listed with its problem, its own pages say it, and every other page is as before."""
    folder = writable.box.path / ".memory/semantic/2026-11"
    id_ = re.findall(r'href="/m/([^"/]+)"', writable.get("/search?q=seat").text)[0]
    parts = {"id": id_, "category": "warning"}
    before = {}
    for page in PAGES:
        at = {**parts, "id": "s-refunds"} if page.path.startswith("/sessions") else parts
        before[page.path.format(**at)] = len(words(writable.get(page.path.format(**at))))
    for name, data in BAD.items():
        (folder / f"{name}.md").write_bytes(data)
    (folder / "sem-link.md").symlink_to("/etc/passwd")
    for path, length in before.items():
        reply = writable.get(path)
        assert reply.status == 200, path
        assert len(words(reply)) >= length * 0.8, path
    listed = words(writable.get("/"))
    for name in (*BAD, "sem-link"):
        assert f"{name}.md:" in listed
        for page in PAGES:
            if page.path.startswith("/m/"):
                reply = writable.get(page.path.format(id=name))
                assert reply.status == 422, page.path
                assert "cannot be read" in words(reply)


def test_hostile_text_is_text_on_every_page(writable: Browser):
    """Whatever a memory, a session or an address holds, no page has a tag or a link of it."""
    hostile = f"{HOSTILE} <img src=x onerror=y> [a](javascript:b) ![c](http://evil.example/d)"
    for name, older in (("dec-hostile", ()), ("dec-hostile-two", ("dec-hostile",))):
        writable.box.memory(
            name,
            f"{hostile}\n\n## {HOSTILE}\n",
            title=f"Evil {HOSTILE} {name}",
            tags=(HOSTILE,),
            supersedes=older,
        )
    begun = writable.box.run("session", "start", "--title", f"Evil {HOSTILE}", "--agent", HOSTILE)
    session = begun.stdout.strip()
    statement = f"Remember: we keep {hostile} for all of the tickets."
    writable.box.run("session", "add", session, "--role", "user", statement)
    seen = 0
    for path in (
        "/",
        "/search?q=evil",
        "/timeline",
        "/m/dec-hostile",
        "/m/dec-hostile-two/diff",
        "/m/dec-hostile-two/graph",
        "/m/dec-hostile/supersede",
        "/changes",
        "/sessions",
        f"/sessions/{session}",
        "/findings",
        "/report",
        f"/search?q={HOSTILE}",
        f"/new?title={HOSTILE}",
        f"/timeline?author={HOSTILE}",
        f"/review?range={HOSTILE}",
    ):
        text = writable.get(path).text
        seen += "&lt;script&gt;" in text
        assert HOSTILE not in text, path
        assert "<img" not in text, path
        assert 'href="javascript' not in text, path
    assert seen > 10


def test_a_form_shows_first_and_writes_when_confirmed(writable: Browser):
    """A conflict is settled in two steps through the verb and its gate, and undone by undo."""
    fields = [*sides(writable), ("keep", "newer"), ("reason", "measured"), ("commit", "true")]
    head = writable.box.git("rev-parse", "HEAD")
    planned = writable.do("resolve", *fields, ("step", "show"))
    assert "This is what it would do" in words(planned)
    assert "measured" in words(planned)
    assert writable.box.git("rev-parse", "HEAD") == head
    done = writable.do("resolve", *fields, ("step", "do"), ("next", "/conflicts"))
    assert "Reason: measured" in words(done)
    assert writable.box.git("rev-parse", "HEAD^") == head
    assert "2 conflicts among 4 memories" in words(writable.get("/conflicts"))
    assert "measured" in words(writable.get("/conflicts?accepted=1"))


def test_several_conflicts_are_settled_at_once(writable: Browser):
    """Ticked conflicts are settled; without a tick none is."""
    same = [("all", "true"), ("keep", "both"), ("reason", "both are true"), ("step", "do")]
    assert writable.do("resolve", *same).status == 422
    first = sides(writable)[0]
    other = sides(writable, "opposition")[0][1]
    assert writable.do("resolve", first, ("ids", other), *same).status == 200
    assert "1 conflict among" in words(writable.get("/conflicts"))


def test_a_correction_supersedes(writable: Browser):
    """The form writes a new memory; the file of the old one keeps its bytes."""
    old = sides(writable)[0][1]
    place = next(writable.box.path.rglob(f"{old}.md"))
    before = place.read_bytes()
    assert "Boarding scanners" in words(writable.get(f"/m/{old}/supersede"))
    fields = (
        ("old", old),
        ("title", "Scanners wait 9 seconds"),
        ("body", "They wait 9 seconds."),
        ("commit", "true"),
    )
    assert "id: sem-" in words(writable.do("supersede", *fields, ("step", "show")))
    assert writable.do("supersede", *fields, ("step", "do")).status == 200
    assert place.read_bytes() == before
    assert "This is no longer what holds" in words(writable.get(f"/m/{old}"))


def test_the_gate_refuses_a_secret_in_a_form(writable: Browser):
    """A form goes through the same gate as the shell; only a field has what was typed into it."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    reply = writable.do("new", ("type", "semantic"), ("title", "The key"), ("body", secret))
    assert reply.status == 422
    assert secret in reply.text
    assert secret not in re.sub(r"(?s)<textarea.*?</textarea>|<input[^>]*>", "", reply.text)


def test_a_form_leads_on_to_this_site_alone(writable: Browser):
    """No form sends the reader elsewhere."""
    id_ = sides(writable)[0][1]
    for place in ("//evil.test/", "http://evil.test/", "/\\evil.test"):
        assert (
            "evil.test"
            not in writable.do("pin", ("id", id_), ("next", place), ("step", "show")).text
        )


def test_health_shows_latencies_use_and_misses(team: Browser):
    """Latency by day, doctor's rows, unused memories, questions without results."""
    reply = team.get("/report")
    assert reply.text.count('class="p95"') == 4
    assert "trusted ref" not in words(reply)
    assert "trusted ref" in words(team.get("/report?doctor=1"))
    assert "found nothing" in words(reply)
    never = reply.text.partition("Never used here")[2]
    assert "A sailing is one departure" in never


def test_health_shows_the_words_of_misses_if_the_user_keeps_them(writable: Browser):
    """Each leads to the same search, and to a form with its words, not its filters, as title."""
    box = writable.box
    assert "ledger.words on" in writable.get("/report").text
    assert box.run("--global", "config", "ledger.words", "on").returncode == 0
    box.run("search", "zebra <quagga> & type:decision")
    box.run("search", "tag:zebra")
    reply = writable.get("/report").text.partition('id="missed"')[2]
    assert "<td>1</td>" in reply
    assert "zebra &lt;quagga&gt; &amp; type:decision" in reply
    links = [html.unescape(link) for link in re.findall(r'href="(/[^"]*zebra[^"]*)"', reply)]
    assert links == [
        "/search?q=tag%3Azebra",
        "/search?q=zebra%20%3Cquagga%3E%20%26%20type%3Adecision",
        "/new?title=zebra%20%3Cquagga%3E%20%26",
    ]
    assert 'value="zebra &lt;quagga&gt; &amp;"' in writable.get(links[-1]).text
    reader = Web(box)
    assert "Write a memory about it" not in reader.get("/report").text


def test_a_lineage_is_a_picture_and_a_list(team: Browser):
    """Four fares are four boxes from left to right, and the same four rows."""
    id_ = re.findall(r"dec-2026-09-07-[a-z0-9-]+", team.get("/timeline").text)[0]
    text = team.get(f"/m/{id_}/graph").text
    boxes = [int(x) for x in re.findall(r'<rect x="(\d+)"', text)]
    assert boxes == [0, 280, 560, 840]
    assert text.count('<li class="row">') == 4
    assert text.count('class="edge line"') == 3


def test_a_review_says_which_decisions_a_range_upholds(team: Browser):
    """The governed files of a range, with each decision's state."""
    head = team.box.git("log", "--format=%H", "--grep=the key is that of the hold").strip()
    text = words(team.get(f"/review?range={head}~1..{head}"))
    assert "kept Payments carry an idempotency key dec-b6n7" in text
    assert "Every decision that governs this change is mentioned" not in text


def test_digests_show_what_they_sum_up(team: Browser):
    """A digest is there with its text; of a category without one it is said what it would be."""
    assert "4 memories hold in the category warning" in words(team.get("/digests/warning"))
    empty = words(team.get("/digests/error"))
    assert "No digest of error yet." in empty
    assert "Sum up" in empty


def test_what_a_form_did_is_undone_from_its_page(writable: Browser):
    """The page of what was done has a form that takes it back, or the command that does."""
    old = sides(writable)[0][1]
    fields = (("old", old), ("title", "Scanners wait 9 seconds"), ("body", "They wait 9 seconds."))
    for verb, values in (("pin", (("id", old),)), ("supersede", fields)):
        done = writable.do(verb, *values, ("commit", "true"), ("step", "do"))
        (id_,) = re.findall(r'name="id" value="([^"]+)"', done.text)
        undo = (("id", id_), ("reason", "a slip"), ("commit", "true"))
        assert "This is what it would do" in words(writable.do("undo", *undo, ("step", "show")))
        assert writable.do("undo", *undo, ("step", "do")).status == 200
        assert "3 conflicts among" in words(writable.get("/conflicts"))
    assert writable.box.git("status", "--porcelain") == ""


@pytest.mark.parametrize("keep", ["both", "newer"])
def test_a_settled_conflict_is_undone_from_its_pages(writable: Browser, keep: str):
    """From the page of what was done, and later from the history of settlements."""
    settled = (*sides(writable), ("keep", keep), ("reason", "so"), ("commit", "true"))
    ids = [id_ for _name, id_ in settled[:2]]
    done = writable.do("resolve", *settled, ("step", "do"))
    (id_,) = re.findall(r'name="id" value="([^"]+)"', done.text)
    assert f'name="id" value="{id_}"' in writable.get("/conflicts?accepted=1").text
    assert "2 conflicts among" in words(writable.get("/conflicts"))
    planned = writable.do("undo", ("id", id_), ("commit", "true"), ("step", "show"))
    assert ("It would remove" if keep == "newer" else "So it would be for") in words(planned)
    assert all(f'value="{id_}"' in planned.text or f"/m/{id_}" in planned.text for id_ in ids)
    assert writable.do("undo", ("id", id_), ("commit", "true"), ("step", "do")).status == 200
    assert "3 conflicts among" in words(writable.get("/conflicts"))
    assert writable.box.git("status", "--porcelain") == ""
    assert writable.box.git("diff", "--stat", "HEAD~2", "HEAD") == ""


def test_a_finding_is_promoted_from_its_page(writable: Browser):
    """The form shows what the finding says, and then makes a committed candidate of it."""
    text = writable.get("/findings").text
    finding = ("finding", re.findall(r'name="finding" value="([^"]+)"', text)[0])
    planned = writable.do("promote", finding, ("commit", "true"), ("step", "show"))
    assert "Migrations that build an index run at night" in words(planned)
    assert writable.do("promote", finding, ("commit", "true"), ("step", "do")).status == 200
    assert "It is a memory now" in words(writable.get("/findings"))
    assert writable.box.git("status", "--porcelain") == ""


def test_a_finding_is_dismissed_from_its_page_and_proposed_again(writable: Browser):
    """With a reason, at once, and without a commit; dismissed findings have their own list."""
    text = writable.get("/findings").text
    id_ = re.findall(r'name="dismiss" value="([^"]+)"', text)[-1]
    head = writable.box.git("rev-parse", "HEAD")
    form = (("dismiss", id_), ("reason", "it held for a week"), ("next", "/findings"))
    assert writable.do("promote", *form).status == 303
    after = writable.get("/findings")
    assert "1 lesson dismissed" in words(after)
    assert "it held for a week" in words(after)
    assert f'name="dismiss" value="{id_}"' not in after.text
    assert writable.do("promote", ("reopen", id_)).status == 303
    assert f'name="dismiss" value="{id_}"' in writable.get("/findings").text
    assert writable.box.git("rev-parse", "HEAD") == head
    assert writable.do("promote", ("dismiss", id_), ("reason", " ")).status == 422
    refused = writable.do("promote", ("dismiss", "f-none"), ("reason", "it held for a week"))
    assert refused.status == 422
    assert "No lesson begins with f-none" in words(refused)
