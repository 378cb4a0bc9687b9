"""Tests of the ranking of candidates: the local order, own statistics, a share for each."""

from __future__ import annotations

import pytest
from conftest import Sandbox, make_memory

from memtool.errors import MemtoolError
from memtool.fleet import rank
from memtool.fleet.backend import (
    CANDIDATES,
    FleetCandidate,
    FleetQuery,
    compute_share,
    find_fleet_home,
    limit_shares,
    matches_any,
    read_settings,
    require_settings,
)
from memtool.index import index, scoring
from memtool.index.text import list_texts
from memtool.memory import document
from memtool.search.features import Facts
from memtool.store.config import USER_ONLY
from memtool.store.tree import Record

BODIES = {
    "dec-redis": "We keep sessions in redis, since postgres was too slow for sessions.\n",
    "dec-queue": "Jobs go through celery; redis is its broker.\n",
    "sem-retry": "A payment is tried again three times, then the job is parked.\n",
    "sem-login": "Sessions end after a day without a click.\n",
    "dec-cache": "The cache of pages is postgres, never redis: a page is not a session.\n",
}
QUESTIONS = ("where do sessions live", "redis or postgres", "payment job", "cache pages", "redi")


def candidate(id_: str, body: str, repository: str = "acme/shop") -> FleetCandidate:
    """A memory of a repository as a backend gives it."""
    memory = make_memory(id_, body)
    path = f".memory/decision/2026-02/{id_}.md"
    text = scoring.analyze_document(scoring.Document(path, list_texts(Record(memory, path, ""))))[1]
    return FleetCandidate(repository, "c" * 40, path, document.write(memory), text)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_order_is_that_of_the_local_search(sandbox: Sandbox, question: str) -> None:
    """The same memories with the same statistics rank in the same order, at the same scores."""
    for id_, body in BODIES.items():
        sandbox.memory(id_, body)
    own = index.open(sandbox.context()).index
    parsed = scoring.parse_question(question)
    local = own.rerank(parsed, own.find_best(parsed.weights, 30, lambda _number: True))
    hits = rank.rank_candidates(
        parsed,
        [candidate(id_, body) for id_, body in reversed(BODIES.items())],
        own.statistics(parsed.weights),
    )
    assert [hit.candidate.path for hit in hits] == [own.path(hit[0]) for hit in local]
    assert [hit.raw for hit in hits] == [hit[1] for hit in local]
    assert hits


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_is_hidden_locally_moves_no_order(sandbox: Sandbox, question: str) -> None:
    """Where the local store holds old versions as well, both orders are as if it did not."""
    for id_, body in BODIES.items():
        sandbox.memory(id_, body)
    parsed = scoring.parse_question(question)
    plain = index.open(sandbox.context()).index.statistics(parsed.weights)
    for number in range(9):
        older = (f"dec-old{number - 1}",) if number else ()
        sandbox.memory(f"dec-old{number}", "Old redis sessions, old jobs.\n", supersedes=older)
    sandbox.memory("dec-redis", BODIES["dec-redis"], supersedes=("dec-old8",))
    context = sandbox.context()
    tree = index.open(context)
    own = Facts(tree, context.clock.now, dict).index
    assert own.statistics(parsed.weights) == plain
    best = own.find_best(parsed.weights, 30, lambda number: "dec-old" not in own.path(number))
    local = own.rerank(parsed, best)
    hits = rank.rank_candidates(
        parsed,
        [candidate(id_, body) for id_, body in BODIES.items()],
        own.statistics(parsed.weights),
    )
    assert [hit.candidate.path for hit in hits] == [own.path(hit[0]) for hit in local]
    assert [hit.raw for hit in hits] == [hit[1] for hit in local]


def test_what_others_write_moves_no_statistics(sandbox: Sandbox) -> None:
    """A flood of memories about one word changes no score of the others."""
    for id_, body in BODIES.items():
        sandbox.memory(id_, body)
    own = index.open(sandbox.context()).index
    question = scoring.parse_question("redis sessions")
    statistics = own.statistics(question.weights)
    honest = [candidate(id_, body, f"acme/{id_}") for id_, body in BODIES.items()]
    flood = [candidate(f"dec-flood-{n}", "sessions\n", "evil/flood") for n in range(50)]
    alone = rank.rank_candidates(question, honest, statistics)
    flooded = rank.rank_candidates(question, [*flood, *honest], statistics)
    unflooded = [hit for hit in flooded if hit.candidate.repository != "evil/flood"]
    assert len(flooded) - len(unflooded) == compute_share(CANDIDATES, len(alone) + 1)
    assert [hit.candidate.path for hit in unflooded] == [hit.candidate.path for hit in alone]


def test_a_word_that_no_own_memory_holds_counts(sandbox: Sandbox) -> None:
    """A word that only others have is still searched."""
    sandbox.memory("sem-other", "Nothing of that kind.\n")
    own = index.open(sandbox.context()).index
    question = scoring.parse_question("kubernetes ingress")
    (hit,) = rank.rank_candidates(
        question,
        [candidate("dec-k8s", "Kubernetes needs an ingress.\n"), candidate("dec-b", "No.\n")],
        own.statistics(question.weights),
    )
    assert hit.candidate.path.endswith("dec-k8s.md")


def test_only_terms_are_asked_for(sandbox: Sandbox) -> None:
    """The words that tell most come first; stop words and what tells least stay here."""
    sandbox.memory("dec-redis", "redis redis\n")
    sandbox.memory("dec-both", "redis sessions\n")
    own = index.open(sandbox.context()).index
    question = scoring.parse_question("what is the redis of sessions and ingress")
    query = rank.build_query(question, own.statistics(question.weights))
    assert list(query.weights) == ["ingress", "session", "redi"]
    long = scoring.parse_question(" ".join(f"word{n}x" for n in range(60)))
    asked_for = rank.build_query(long, own.statistics(long.weights)).weights
    assert len(asked_for) == rank.MAX_TERMS


@pytest.mark.parametrize(
    ("limit", "repositories", "expected"),
    [(100, 1, 100), (100, 3, 34), (100, 10, 10), (100, 1000, 10), (10, 50, 1), (100, 0, 100)],
)
def test_a_share_is_a_tenth_where_many_answer(limit: int, repositories: int, expected: int) -> None:
    """One repository fills the candidates only if no others have any."""
    assert compute_share(limit, repositories) == expected


def test_a_flood_leaves_room_for_others() -> None:
    """Of each repository the first ones are kept, in their order."""
    flood = [candidate(f"dec-{n}", "x\n", "evil/flood") for n in range(90)]
    honest = [candidate(f"dec-{n}", "x\n", f"acme/r{n}") for n in range(12)]
    limited = limit_shares([*flood, *honest], 100)
    assert limited == flood[:10] + honest


@pytest.mark.parametrize(
    ("globs", "expected"),
    [
        ((), ["acme/shop", "Acme/Shop", "evil/acme", "acme/shop-old"]),
        (("acme/*",), ["acme/shop", "Acme/Shop", "acme/shop-old"]),
        (("acme/shop",), ["acme/shop", "Acme/Shop"]),
        (("other/*", "*/shop"), ["acme/shop", "Acme/Shop"]),
    ],
)
def test_globs_name_repositories(globs: tuple[str, ...], expected: list[str]) -> None:
    """A star matches any characters; letters match in either case."""
    names = ["acme/shop", "Acme/Shop", "evil/acme", "acme/shop-old"]
    assert [name for name in names if matches_any(name, globs)] == expected


def test_a_team_is_asked_by_its_label() -> None:
    """A repository without a label belongs to no team, and all must fit."""
    query = FleetQuery({}, teams=("core*",), allow=("acme/*",))
    assert query.admits("acme/shop", "core-web")
    assert not query.admits("acme/shop", "")
    assert not query.admits("evil/shop", "core-web")
    assert FleetQuery({}).admits("any/one", "")


def test_no_repository_says_who_is_asked(sandbox: Sandbox) -> None:
    """Only the user's own settings and environment do; a project's are reported as unused."""
    sandbox.write(".memory/config.toml", '[fleet]\nurl = "https://evil.test/x"\ntimeout_ms = 9\n')
    context = sandbox.context()
    defaults = read_settings(context)
    assert (defaults.url, defaults.is_set, defaults.timeout_s) == ("", False, 0.3)
    assert any(USER_ONLY["fleet.url"] in note for note in context.notes)
    with pytest.raises(MemtoolError, match="cannot ask other repositories") as refused:
        require_settings(context)
    assert "memtool --global config fleet.repositories" in refused.value.hint
    done = sandbox.run("--global", "config", "fleet.allow", "acme/*,other/x")
    assert done.returncode == 0, done.stderr
    required = require_settings(sandbox.context(MEMTOOL_FLEET_URL="https://search.test/m"))
    assert (required.url, required.allow) == ("https://search.test/m", ("acme/*", "other/x"))


def test_the_fleet_is_kept_in_the_users_cache() -> None:
    """Or where the user puts all derived files; never in a repository."""
    assert find_fleet_home({"HOME": "/h"}) == "/h/.cache/memtool/fleet"
    assert find_fleet_home({"HOME": "/h", "XDG_CACHE_HOME": "/c"}) == "/c/memtool/fleet"
    assert find_fleet_home({"HOME": "/h", "MEMTOOL_STORAGE": "/s"}) == "/s/fleet"
    with pytest.raises(MemtoolError, match="HOME is not set"):
        find_fleet_home({"HOME": "relative"})
