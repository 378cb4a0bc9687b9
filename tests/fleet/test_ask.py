"""Asking the fleet: `search --fleet`, the results of others, one clock, attacks."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from conftest import make_memory
from fleet_scene import Fleet

from memtool.fleet import ask, rank
from memtool.fleet.backend import FleetCandidate, FleetQuery, FleetUnavailable, build_terms
from memtool.fleet.rank import ResultFilter
from memtool.index import index, scoring
from memtool.memory import document
from memtool.memory.fields import DEFAULT_CATEGORIES
from memtool.memory.memory import Memory
from memtool.redaction.mask import Mask
from memtool.store.config import DEFAULTS
from memtool.store.git import Git
from memtool.store.repository import Repository

NOW = 1_772_366_400
HERE = Repository("/", "/.git", "/.git", lambda: Git("/", {}))


def test_what_others_say_follows_what_this_repository_does(acme: Fleet) -> None:
    """Each with its repository, commit and word of trust; local results stay what they were."""
    local = acme.project.json("search", "sessions")
    answer = acme.project.json("search", "--fleet", "sessions")
    count = len(local["results"])
    strip = [{**result, "drift": None} for result in answer["results"][:count]]
    assert strip == [{**result, "drift": None} for result in local["results"]]
    foreign = answer["results"][count:]
    assert {(result["trust"], result["repository"]) for result in foreign} == {
        ("fleet", "acme/shop"),
        ("fleet", "other/billing"),
    }
    assert {result["id"] for result in foreign} == {
        "dec-redis",
        "dec-new",
        "sem-login",
        "dec-ledger",
    }
    assert all(
        len(result["commit"]) == 40 and result["path"].startswith(".memory/") for result in foreign
    )
    assert answer["total"] == local["total"] + 4
    assert "repository" not in answer["results"][0]
    assert foreign[0]["score"] >= foreign[-1]["score"] > 0


def test_text_marks_what_others_say(acme: Fleet) -> None:
    """A person sees `org/repo id@commit`, that its trust holds there, and how many were asked."""
    done = acme.project.run("search", "--fleet", "ledger", "payments")
    assert done.returncode == 0, done.stderr
    shop = acme.folder / "src/other/billing-work/.git/refs/heads/main"
    assert f"  [other/billing dec-ledger@{shop.read_text()[:7]}]\n" in done.stdout
    assert " · fleet there" in done.stdout
    assert "memtool: 3 other repositories were asked" in done.stderr
    assert "no memory matches" not in done.stderr


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("sessions repo:acme/*", ["dec-new", "dec-redis", "sem-login"]),
        ("sessions repo:SHOP", ["dec-new", "dec-redis", "sem-login"]),
        ("sessions repo:other/billing,none/x", ["dec-ledger"]),
        ("sessions team:web type:semantic", ["sem-login"]),
        ("sessions repo:acme/* type:decision,state -cookies", ["dec-redis"]),
        ('"in redis" repo:acme/*', ["dec-redis"]),
        ("(cookies OR redis) team:web", ["dec-new", "dec-queue", "dec-redis"]),
        ("sessions repo:acme/* tag:auth is:head", ["sem-login"]),
        ("sessions team:none", []),
    ],
)
def test_whom_to_ask_stands_in_the_query(acme: Fleet, query: str, expected: list[str]) -> None:
    """With repo: or team: only others answer; the other filters keep their meaning."""
    answer = acme.project.json("search", "--fleet", query)
    assert sorted(result["id"] for result in answer["results"]) == expected
    assert answer["total"] == len(expected)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["search", "sessions repo:acme/*"], "repo: selects other repositories"),
        (["list", "team:web"], "team: selects other repositories"),
        (["search", "--fleet", "sessions -repo:acme/*"], "repo: selects other"),
        (["search", "--fleet", "(sessions repo:a/b) OR redis"], "repo: selects other"),
        (["search", "--fleet", "sessions author:ada"], "by author:ada"),
        (["search", "--fleet", "sessions is:trusted"], "by is:trusted"),
        (["search", "--fleet", "repo:acme/*"], "the query has no words"),
        (["search", "--fleet", "sessions", "--at", "HEAD"], "--at and --fleet exclude"),
        (["search", "--fleet", "sessions", "--as-of", "3d"], "--as-of and --fleet exclude"),
        (["search", "--fleet", "sessions type:nonsense"], "'nonsense' is not one of"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_hint(
    acme: Fleet, args: list[str], message: str
) -> None:
    """One sentence, a hint, exit code 2, and nothing on stdout."""
    done = acme.project.run(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "hint: " in done.stderr


def test_a_name_that_nobody_has_is_told(acme: Fleet) -> None:
    """An empty answer says how to list the names."""
    done = acme.project.run("search", "--fleet", "sessions repo:acme/none")
    assert (done.returncode, done.stdout.strip()) == (0, "")
    assert "no repository that is meant has memories: memtool fleet status" in done.stderr


def test_limits_offsets_and_orders_hold_for_others(acme: Fleet) -> None:
    """A page of others goes on where the last one ended; behind local pages they do not come."""
    query = ["search", "--fleet", "sessions repo:acme/*", "--limit", "2"]
    first, second = acme.project.json(*query), acme.project.json(*query, "--offset", "2")
    pages = [result["id"] for result in [*first["results"], *second["results"]]]
    assert sorted(pages) == ["dec-new", "dec-redis", "sem-login"]
    assert [(page["total"], page["others"]) for page in (first, second)] == [(3, 3), (3, 3)]
    limited = acme.project.json("search", "--fleet", "sessions", "--limit", "1")
    assert (len(limited["results"]), limited["others"]) == (2, 4)
    stderr = acme.project.run("search", "--fleet", "sessions", "--limit", "1").stderr
    assert "1 of 4 of other repositories shown (--limit N: more)" in stderr
    third = acme.project.json("search", "--fleet", "sessions", "--offset", "1")
    assert third["results"] == []
    by_title = acme.project.json("search", "--fleet", "sessions repo:acme/*", "--sort", "title")
    titles = [result["title"] for result in by_title["results"]]
    assert titles == sorted(titles)


def test_a_fleet_that_is_not_there_leaves_the_local_answer(fleet: Fleet) -> None:
    """Nobody set: a refusal with the way to set it. Nothing synced, damaged: a note."""
    fleet.project.memory("dec-own", "We keep sessions in memory.\n")
    fleet.project.commit()
    done = fleet.project.run("search", "--fleet", "sessions")
    assert done.returncode == 2
    assert "hint: memtool --global config fleet.repositories" in done.stderr
    fleet.set("SRC/*")
    done = fleet.project.run("search", "--fleet", "sessions")
    assert (done.returncode, "dec-own" in done.stdout) == (0, True)
    assert "no other repository answered: nothing of it is here: memtool fleet sync" in done.stderr
    done = fleet.project.run(
        "search", "--fleet", "sessions", MEMTOOL_FLEET_URL="https://user:pw@x.test/m"
    )
    assert (done.returncode, "dec-own" in done.stdout) == (0, True)
    assert "no other repository was asked: fleet.url contains a user or a password" in done.stderr
    done = fleet.project.run(
        "search", "--fleet", "sessions", MEMTOOL_FLEET_URL="http://127.0.0.1:9/m"
    )
    assert (done.returncode, "dec-own" in done.stdout) == (0, True)
    assert "no other repository answered: http://127.0.0.1:9/m cannot be reached" in done.stderr


def test_the_repository_at_hand_is_not_asked(acme: Fleet) -> None:
    """Its own clone in the fleet would say everything twice."""
    shop = acme.folder / "src/acme/shop"
    done = acme.project.run("search", "--fleet", "sessions", "--json", cwd=shop)
    assert '"repository": "other/billing"' in done.stdout
    assert '"repository": "acme/shop"' not in done.stdout


def test_who_has_no_memories_yet_asks_others(acme: Fleet) -> None:
    """A new repository hears its fleet before it has anything to say."""
    place = acme.repository("work/own/new").path
    done = acme.project.run("search", "--fleet", "payment tried again", cwd=place)
    assert (done.returncode, "dec-retry" in done.stdout) == (0, True), done.stderr
    assert acme.project.run("search", "payment", cwd=place).returncode == 2


def test_nobody_waits_longer_than_the_clock(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a backend does, there is an answer after the user's time, with a note."""

    class Sleeper:
        note = ""

        def find_candidates(self, _query: FleetQuery, _timeout_s: float) -> list[FleetCandidate]:
            time.sleep(30)
            return []

    fleet.project.memory("dec-own", "We keep sessions in memory.\n")
    fleet.set("SRC/*")
    fleet.project.run("--global", "config", "fleet.timeout_ms", "50")
    monkeypatch.setattr(ask, "choose_backend", lambda _context, _whom: Sleeper())
    done = fleet.project.run("search", "--fleet", "sessions")
    assert "dec-own" in done.stdout
    assert "no other repository answered: there was no answer within 50 ms" in done.stderr


def test_a_bug_of_a_backend_is_not_hidden() -> None:
    """An exception in the thread is raised in the caller."""

    def work() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ask._run_with_timeout(work, 5)  # the clock itself
    with pytest.raises(FleetUnavailable):
        ask._run_with_timeout(lambda: time.sleep(5), 0.01)


class Shelf:
    """Candidates of other repositories, and what is shown of them for a question."""

    def __init__(self, fleet: Fleet) -> None:
        fleet.project.memory("sem-own", "Payments are made on Tuesdays.\n", type="semantic")
        self.own = index.open(fleet.project.context()).index
        self.candidates: list[FleetCandidate] = []

    def add(
        self, repository: str, memory: Memory, text: bytes | None = None, data: bytes | None = None
    ) -> None:
        """Add a memory, with another text or other bytes if wanted."""
        path = f".memory/decision/2026-02/{memory.id}.md"
        data = document.write(memory) if data is None else data
        text = build_terms(memory) if text is None else text
        self.candidates.append(FleetCandidate(repository, "c" * 40, path, data, text))

    def shown(self, question: str, of_one: int = 0) -> list[str]:
        """The ids of what is shown, of one repository at most so many."""
        query = scoring.parse_question(question)
        by = ResultFilter(
            rank.build_facts(HERE, NOW, DEFAULTS),
            DEFAULTS,
            {"confidential"},
            Mask(DEFAULTS),
            text=question,
        )
        own = self.own.statistics(query.weights)
        hits, _total = rank.select_shown(query, self.candidates, own, by, 10, of_one)
        return [hit.record.id for hit in hits]


@pytest.fixture
def shelf(fleet: Fleet) -> Shelf:
    """One honest memory among what others may send."""
    made = Shelf(fleet)
    made.add("acme/pay", make_memory("dec-retry", "A payment is tried again three times.\n"))
    return made


def test_one_repository_is_not_all_that_a_block_is_chosen_from(shelf: Shelf) -> None:
    """However many of its memories answer best, other repositories are considered."""
    for n in range(20):
        shelf.add(
            "evil/flood",
            make_memory(
                f"dec-flood-{n}", "Payment tried again three times.\n", title=f"Payment tried {n}"
            ),
        )
    assert "dec-retry" not in shelf.shown("payment tried again three times")
    ids = shelf.shown("payment tried again three times", of_one=3)
    assert (len(ids), ids[-1]) == (4, "dec-retry")


def test_what_is_shown_is_what_was_ranked(shelf: Shelf) -> None:
    """A text that promises more than its bytes hold takes no part, nor sets the measure."""
    alone = shelf.shown("retry a payment")
    stuffed = build_terms(make_memory("dec-x", "payment retri retry again three times " * 40))
    for n in range(12):
        shelf.add("evil/stuffed", make_memory(f"dec-false-{n}", "Buy here.\n"), text=stuffed)
    assert shelf.shown("retry a payment") == alone == ["dec-retry"]


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "archived"},
        {"status": "candidate"},
        {
            "status": "deleted",
            "deleted": {"at": "2026-02-23T00:00:00Z", "by": "Ada", "reason": "x"},
        },
        {"privacy": ("Confidential",)},
        {"valid_through": "2026-02-25"},
        {"valid_from": "2027-01-01"},
    ],
)
def test_what_would_be_hidden_here_is_hidden(shelf: Shelf, fields: dict[str, object]) -> None:
    """Whatever a server sends: what is ended, private, expired or unconfirmed is dropped."""
    shelf.add("acme/x", make_memory("dec-hidden", "A payment is tried again.\n", **fields))
    assert shelf.shown("payment tried again") == ["dec-retry"]


def test_bytes_that_are_no_memory_are_dropped(shelf: Shelf) -> None:
    """Garbage, another file's name, a header that is not strict: nothing of it is shown."""
    memory = make_memory("dec-odd", "A payment is tried again.\n")
    good = document.write(memory)
    for n, data in enumerate(
        (b"", b"\xff\xfe", b"---\nid: x\n", good.replace(b"dec-odd", b"dec-no"))
    ):
        shelf.add(f"acme/x{n}", memory, data=data)
    assert shelf.shown("payment tried again") == ["dec-retry"]


def test_copies_are_shown_once(shelf: Shelf) -> None:
    """The same bytes in a fork are the same memory."""
    copy = make_memory("dec-retry", "A payment is tried again three times.\n")
    for name in ("acme/fork", "zoo/fork"):
        shelf.add(name, copy)
    assert shelf.shown("retry a payment") == ["dec-retry"]


def test_a_repository_has_one_voice_about_how_rare_words_are(shelf: Shelf) -> None:
    """Where the client has few memories, others are counted, but a flood as one of them."""
    for n in range(4):
        shelf.add(f"acme/r{n}", make_memory(f"dec-r{n}", "Queues are drained at night.\n"))
    alone = shelf.shown("payment queues tried")
    for n in range(60):
        shelf.add("evil/flood", make_memory(f"dec-flood-{n}", "Payment tried.\n" + "x " * n))
    shown = [id_ for id_ in shelf.shown("payment queues tried") if "flood" not in id_]
    assert alone[0] == "dec-retry"
    assert shown == [id_ for id_ in alone if id_ in shown]


def test_pinned_elsewhere_is_not_pinned_here(shelf: Shelf) -> None:
    """A foreign pin does not lift a memory over others with the same words."""
    shelf.candidates.clear()
    shelf.add("acme/a", make_memory("dec-plain", "A payment is tried again.\n"))
    pinned = {"status": "pinned", "trigger_phrases": ("payment",)}
    shelf.add("acme/b", make_memory("dec-pinned", "A payment is tried again.\n", **pinned))
    hits, _total = rank.select_shown(
        query := scoring.parse_question("payment"),
        shelf.candidates,
        shelf.own.statistics(query.weights),
        ResultFilter(
            rank.build_facts(HERE, NOW, DEFAULTS), DEFAULTS, (), Mask(DEFAULTS), text="payment"
        ),
        10,
    )
    factors = {hit.record.id: hit.factors for hit in hits}
    assert factors["dec-pinned"]["status"] == factors["dec-plain"]["status"] == 1.0
    assert "trigger" not in factors["dec-pinned"]
    assert "access" not in factors["dec-pinned"]


def test_secrets_of_others_are_masked(fleet: Fleet) -> None:
    """A secret in another repository is not shown."""
    secret = "AKIA" + "QYLPMN5HHHFPZAM2"
    fleet.near("acme/shop", dec_key=f"The deploy key is {secret} for uploads.\n")
    fleet.set("SRC/*/*")
    fleet.sync()
    done = fleet.project.run("search", "--fleet", "deploy key uploads")
    assert "dec-key" in done.stdout
    assert secret not in done.stdout
    assert "[REDACTED:" in done.stdout


def test_a_category_of_another_repository_is_read(fleet: Fleet) -> None:
    """Each repository may have categories of its own."""
    assert "ritual" not in DEFAULT_CATEGORIES
    shop = fleet.repository("src/acme/shop")
    shop.write(".memory/config.toml", "[categories.ritual]\nweight = 1.2\n")
    shop.memory("dec-tea", "Tea is at four.\n", category="ritual")
    shop.commit()
    fleet.set("SRC/*/*")
    fleet.sync()
    (hit,) = fleet.project.json("search", "--fleet", "tea at four")["results"]
    assert (hit["id"], hit["category"]) == ("dec-tea", "ritual")


def test_a_name_that_is_never_found_costs_no_more_than_the_clock(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system bounds no look-up of a name: whoever asks does not wait for it."""
    never = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_where, **_how: never.wait(60))
    fleet.project.memory("dec-own", "We keep sessions in memory.\n")
    fleet.project.run("--global", "config", "fleet.timeout_ms", "50")
    done = fleet.project.run(
        "search", "--fleet", "sessions", MEMTOOL_FLEET_URL="https://never.example.org/memories"
    )
    never.set()
    assert "dec-own" in done.stdout
    assert "there was no answer within 50 ms" in done.stderr
