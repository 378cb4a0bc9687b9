"""`memtool fleet similar`: over real repositories, for one memory, this repository, and all."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from fleet_scene import Fleet

TIMEOUT = "The request timeout is {} seconds.\n"
EVENTS = (
    "Payment events go through kafka between the ledger and the invoices, so that a replay "
    "costs nobody a night. Topics are kept for nine days.\n"
)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """A project and two repositories that were synced; one moved on from what another holds."""
    made = Fleet(tmp_path_factory.mktemp("team"))
    made.project.memory("dec-timeout", TIMEOUT.format(30), title="Timeout")
    made.project.memory("dec-events", EVENTS, title="Events")
    made.project.memory("sta-now", "Work goes on.\n", type="state", title="State")
    made.project.commit()
    shop = made.repository("src/acme/shop")
    shop.memory("dec-slow", TIMEOUT.format(60), title="Timeout")
    shop.memory("dec-replay", EVENTS.replace("nobody a night", "us nothing"), title="Events")
    shop.memory("dec-evil", "Evil.\n", title="A `code` | @team <b>")
    shop.commit()
    pay = made.repository("src/acme/pay")
    pay.memory("dec-evil", "Evil.\n", title="A `code` | @team <b>")
    pay.memory("dec-old", EVENTS, title="Events")
    pay.memory(
        "dec-new", "Payment events go through nats.\n", title="NATS", supersedes=("dec-old",)
    )
    pay.commit()
    made.set("SRC/acme/*")
    made.sync()
    return made


def groups(report: dict[str, object]) -> list[tuple[str, list[str]]]:
    shared = report["shared"]
    assert isinstance(shared, list)
    return [(group["kind"], [row["id"] for row in group["decisions"]]) for group in shared]


def test_all_decisions_of_this_repository(team: Fleet) -> None:
    """Related decisions of others are listed, contrary ones first, with both values."""
    report = team.project.json("fleet", "similar")
    assert groups(report) == [
        ("contrary", ["dec-slow", "dec-timeout"]),
        ("same", ["dec-replay", "dec-events"]),
    ]
    contrary = report["shared"][0]
    assert contrary["reason"] == "60 seconds against 30 seconds"
    assert contrary["repositories"] == ["acme/shop", "own/project"]
    assert [row["value"] for row in contrary["decisions"]] == ["60 seconds", "30 seconds"]
    assert all(len(row["commit"]) == 40 for row in contrary["decisions"])
    assert (report["total"], report["kinds"]) == (2, {"contrary": 1, "same": 1})
    assert report["cut"] is False


def test_one_memory(team: Fleet) -> None:
    """Words of its title name it; a memory without a claim is refused with a hint."""
    report = team.project.json("fleet", "similar", "events")
    assert (report["about"], groups(report)) == (
        "dec-events",
        [("same", ["dec-replay", "dec-events"])],
    )
    done = team.project.run("fleet", "similar", "sta-now")
    assert (done.returncode, "only decisions and semantic" in done.stderr) == (2, True)
    assert "memtool fleet similar" in done.stderr


def test_everything_and_what_was_replaced(team: Fleet) -> None:
    """All decisions of all repositories are compared, each listed with those it replaced."""
    report = team.project.json("fleet", "similar", "--all")
    assert groups(report) == [("same", ["dec-evil", "dec-evil"])]
    assert report["repositories"] == 2
    text = team.project.run("fleet", "similar", "--all").stdout
    assert text.endswith("1 group (1 same) among 5 memories of 2 repositories\n")


def test_the_report_is_inert(team: Fleet) -> None:
    """In markdown a title is a code span: no table, link, mention or mark of it counts."""
    text = team.project.run("fleet", "similar", "--all", "--format", "markdown").stdout
    assert text.startswith("# Decisions that repositories share\n")
    assert "| `acme/pay` | `dec-evil@" in text
    assert "`A 'code' ¦ @team <b>`" in text


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("dec-events", "--all"), "an id and --all exclude each other"),
        (("--seconds", "0"), "--seconds must be between 1 and 3,600, not 0"),
        (("nothing-like-it",), "no memory"),
    ],
)
def test_what_is_refused(team: Fleet, args: tuple[str, ...], says: str) -> None:
    """Bad input gets one sentence."""
    done = team.project.run("fleet", "similar", *args)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr


def test_nobody_to_compare_with(fleet: Fleet) -> None:
    """Without a fleet it says how to set one; a server gives no list of all."""
    fleet.project.memory("dec-a", EVENTS)
    done = fleet.project.run("fleet", "similar")
    assert (done.returncode, "cannot ask other repositories" in done.stderr) == (2, True)
    fleet.set("SRC/acme/*")
    done = fleet.project.run("fleet", "similar")
    assert (done.returncode, "nothing of it is here" in done.stderr) == (2, True)
    down = "http://127.0.0.1:9/memories"
    done = fleet.project.run("fleet", "similar", "--all", MEMTOOL_FLEET_URL=down)
    assert (done.returncode, "a server is configured" in done.stderr) == (2, True)
    done = fleet.project.run("fleet", "similar", MEMTOOL_FLEET_URL=down)
    assert (done.returncode, "no other repository answered" in done.stderr) == (2, True)


def test_the_page_of_the_web_view(team: Fleet) -> None:
    """The repositories and what they share; the menu has it, and nothing of a title is a tag."""
    pytest.importorskip("starlette")
    from web.conftest import Web

    web = Web(team.project)
    page = web.get("/fleet")
    assert page.status == 200
    assert 'href="/fleet"' in web.get("/search").text
    assert "60 seconds against 30 seconds" in page.text
    assert "acme/shop" in page.text
    assert "dec-replay" in web.get("/fleet?id=dec-events").text
    everything = web.get("/fleet?all=1").text
    assert 'href="/fleet?id=dec-events"' in web.get("/m/dec-events").text
    assert "/fleet?id=" not in web.get("/m/sta-now").text
    assert "&lt;b&gt;" in everything
    assert "<b>" not in everything


@pytest.mark.slow
def test_a_memory_leads_to_what_others_decided_over_http(team: Fleet) -> None:
    """The link of the page of a memory is followed on a real server, and back again."""
    pytest.importorskip("starlette")
    from web.conftest import running

    with running(team.project, flags=()) as server:
        link = urlsplit(server.link)
        headers = {"Host": link.netloc, "Authorization": ""}
        login = server.ask(f"{link.path}?{link.query}", **headers)
        headers["Cookie"] = login.headers["set-cookie"].partition(";")[0]

        def page(path: str) -> str:
            answer = server.ask(path, **headers)
            assert answer.status == 200, answer.text
            return answer.text

        (leading,) = re.findall(r'href="(/fleet\?id=[^"]+)"', page("/m/dec-timeout"))
        shared = page(leading)
        assert "60 seconds against 30 seconds" in shared
        assert 'href="/m/dec-timeout"' in shared


def test_without_a_fleet_the_menu_has_no_page(fleet: Fleet) -> None:
    """The page itself says how to set a fleet."""
    pytest.importorskip("starlette")
    from web.conftest import Web

    fleet.project.memory("dec-a", EVENTS)
    web = Web(fleet.project)
    assert 'href="/fleet"' not in web.get("/search").text
    assert "/fleet?id=" not in web.get("/m/dec-a").text
    page = web.get("/fleet")
    assert (page.status, "A fleet is a number of repositories" in page.text) == (200, True)
