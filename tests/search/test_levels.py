"""Levels: digests answer first if they suffice, then memories, then private sessions."""

from __future__ import annotations

import pytest
from conftest import FieldValue, Sandbox

from memtool.commands.search import search
from memtool.memory import memory
from memtool.search.levels import find_names, split_passages
from memtool.store.config import USER_ONLY

DIGEST: dict[str, FieldValue] = {
    "type": "semantic",
    "title": "Digest: decision",
    "source": (f"{memory.SOURCE}0",),
    "derived_from": ("dec-sessions", "dec-events", "dec-logs"),
}
PAGE = """3 memories hold in the category decision: Sessions; Events; Logs.

- **Sessions.** Sessions of the shop live in Redis. (2026-02-22) [[dec-sessions]]
- **Events.** Billing events travel through Kafka 3.7 topics,
  as ops/kafka.toml says. (2026-02-22) [[dec-events]]
- **Logs.** Access logs rotate nightly. (2026-02-22) [[dec-logs]]
"""


@pytest.fixture
def summed(sandbox: Sandbox) -> Sandbox:
    """Three decisions, among others, and the digest of them."""
    sandbox.memory("dec-sessions", "Sessions of the shop live in Redis.\n", title="Sessions")
    events = "Billing events travel through Kafka 3.7 topics, as ops/kafka.toml says.\n"
    sandbox.memory("dec-events", f"{events}\nThe retention is six weeks.\n", title="Events")
    sandbox.memory("dec-logs", "Access logs rotate nightly.\n", title="Logs")
    sandbox.memory("sem-sum", PAGE, **DIGEST)
    for number in range(8):
        sandbox.memory(f"dec-other{number}", f"Page {number} is rendered by the server.\n")
    sandbox.commit()
    return sandbox


def let_digests_lead(summed: Sandbox) -> None:
    """Let a page of so few memories score enough for a block."""
    for key in ("inject.digest_threshold", "inject.threshold"):
        summed.run("config", key, "0.1")


@pytest.mark.parametrize(
    ("question", "depth", "first"),
    [
        ("where do sessions of the shop live", "digest", "sem-sum"),
        ("billing events kafka 3.7", "digest", "sem-sum"),
        ("billing events in ops/kafka.toml", "digest", "sem-sum"),
        ("billing events in deploy/ops/kafka.toml", "digest", "sem-sum"),
        ("billing events `kafka 3.7 topics`", "digest", "sem-sum"),
        ("retention of kafka billing events", "memory", "dec-events"),
        ("zebra falcon tundra kafka nightly", "memory", "dec-events"),
        ("billing events kafka 3.6", "memory", "dec-events"),
        ("billing events in ops/rabbit.toml", "memory", "dec-events"),
        ("billing events of dec-2026-01-01-other-abcd", "memory", "dec-events"),
        ("billing events `kafka topics`", "memory", "dec-events"),
    ],
)
def test_a_digest_answers_where_one_line_of_it_suffices(
    summed: Sandbox, question: str, depth: str, first: str
) -> None:
    """Words on several lines, or a name on none, leave the answer to the memories."""
    answer = search(summed.context(), question)
    assert answer.depth == depth
    ids = [result.id for result in answer.results]
    assert first in ids[: 1 if depth == "digest" else 2]
    assert len(ids) > 1  # the memories follow


def test_the_level_is_in_the_text(summed: Sandbox) -> None:
    """Whoever reads an answer sees which of it sums up others."""
    text = summed.run("search", "where do sessions of the shop live").stdout
    assert "\n   digest · 2026-02-22\n" in text
    assert text.count("digest · ") == 1
    let_digests_lead(summed)
    block = summed.run("inject", "--prompt", "where do sessions of the shop live?").stdout
    assert "] digest\n" in block


def test_another_order_is_left_as_it_is(summed: Sandbox) -> None:
    """Who sorts by id gets that."""
    answer = search(summed.context(), "where do sessions of the shop live", sort="id")
    ids = [result.id for result in answer.results]
    assert ids == sorted(ids)


def test_a_digest_that_tells_what_no_longer_holds_suffices_for_nothing(summed: Sandbox) -> None:
    """As soon as one of its memories is superseded the memories answer."""
    summed.memory("dec-newer", "Logs rotate weekly.\n", supersedes=("dec-logs",))
    answer = search(summed.context(), "where do sessions of the shop live")
    assert answer.depth == "memory"


def test_a_block_begins_with_a_digest_that_suffices(summed: Sandbox) -> None:
    """It represents its memories; if no line answers, the memories do."""
    let_digests_lead(summed)
    answer = summed.json("inject", "--prompt", "where do sessions of the shop live?")
    assert (answer["depth"], answer["items"][0]["id"]) == ("digest", "sem-sum")
    prompt = "retention of kafka billing events of sessions, redis, access logs?"
    answer = summed.json("inject", "--prompt", prompt, "--explain")
    assert answer["depth"] == "memory"
    assert "sem-sum" not in [item["id"] for item in answer["items"]]
    reasons = {verdict["id"]: verdict["reason"] for verdict in answer["explain"]}
    assert reasons["sem-sum"] in (
        "no line of it answers by itself",
        "what it sums up answers better",
    )
    assert summed.json("inject", "--prompt", "happy birthday to you!")["depth"] == "none"
    assert summed.json("inject")["depth"] == ""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('why does "The Bus" wait?', ("the bus",)),
        ("see `a b` and src/auth/a.py:", ("a b", "src/auth/a.py")),
        ("Kafka 3.7, v2, v2.1.4 and .gitignore.", ("3.7", "v2", "v2.1.4", ".gitignore")),
        ("dec-2026-02-22-store-k3f9 or 2026-02-22", ("dec-2026-02-22-store-k3f9",)),
        ("e.g. read/write, i.e. up-to-date; and so on...", ()),
        ('an unpaired " or ` and https://example.org/a.html', ()),
        ('"" `` "  " .. / // -- 3', ()),
        ("", ()),
    ],
)
def test_names_of_a_question(text: str, names: tuple[str, ...]) -> None:
    """Quotations, files, versions and ids are names; other words with marks are not."""
    assert find_names(text) == names


def test_passages_of_a_digest() -> None:
    """Each item with what follows in its lines, and each title of the first paragraph."""
    assert [(title, " ".join(line.split())) for title, line in split_passages(PAGE)][2:] == [
        ("", "Logs."),
        ("Sessions.", "- Sessions of the shop live in Redis. (2026-02-22) [[dec-sessions]]"),
        (
            "Events.",
            (
                "- Billing events travel through Kafka 3.7 topics, as ops/kafka.toml says. "
                "(2026-02-22) [[dec-events]]"
            ),
        ),
        ("Logs.", "- Access logs rotate nightly. (2026-02-22) [[dec-logs]]"),
    ]


TALK = "User: Remember: we always rotate the staging certificate with certbot in March.\n"


def test_sessions_are_asked_by_themselves_only_with_the_consent_of_the_user(
    sandbox: Sandbox,
) -> None:
    """Where memories do not answer; a project cannot give the consent, nor is a past asked."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n", title="Keep sessions in Redis")
    sandbox.run("capture", "-", stdin=TALK)
    sandbox.commit()
    args = ("search", "staging certificate")
    sandbox.write(".memory/config.toml", "[search]\nsessions = true\n")
    assert "sessions" not in sandbox.json(*args)
    stderr = sandbox.run("config", "search.sessions").stderr
    assert USER_ONLY["search.sessions"] in stderr
    assert sandbox.run("--global", "config", "search.sessions", "true").returncode == 0
    answer = sandbox.json(*args)
    assert (answer["depth"], answer["results"]) == ("session", [])
    assert answer["sessions"][0]["source"].startswith("session:")
    done = sandbox.run(*args)
    assert "no memory matches: private sessions were searched (search.sessions)" in done.stderr
    assert "From private sessions of this clone, not reviewed:" in done.stdout
    assert "sessions" not in sandbox.json("search", "sessions redis")
    assert "sessions" in sandbox.json("search", "sessions in redis 6.2.1")  # not held
    assert "sessions" not in sandbox.json(*args, "--as-of", "2026-02-25")


def test_statistics_count_the_levels(summed: Sandbox) -> None:
    """The usage log knows how deep each question went; `stats --all` sums it up."""
    for question in ("where do sessions of the shop live", "server pages", "zebra"):
        summed.run("search", question)
    let_digests_lead(summed)
    summed.run("inject", "--prompt", "where do sessions of the shop live?")
    summed.run("inject")
    assert summed.json("stats")["depths"] == {"digest": 2, "memory": 1, "none": 1}
    output = summed.run("stats", "--all").stdout
    assert "questions answered by level: 2 digest, 1 memory, 1 none" in output
