"""Selection: few, none repeats another, and what forks is marked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import make_memory, make_tree

from memtool.inject.candidates import PINNED, RETRIEVAL, Candidate, Eligibility, Gates
from memtool.inject.digests import with_roles
from memtool.inject.effective_lineage import EffectiveLineage
from memtool.inject.select import choose, find_clashes, find_sources
from memtool.memory import timestamps
from memtool.memory.fields import DEFAULT_CATEGORIES
from memtool.memory.trust import Origin
from memtool.search import contradictions
from memtool.store.tree import Record

if TYPE_CHECKING:
    from conftest import Sandbox

    from memtool.inject.candidates import CandidateVerdict
    from memtool.memory.memory import FieldValue, Memory


LONG = "Sessions are kept in redis with a lifetime that every request renews, without exception"


def candidate(
    id: str,
    score: float | None = 1.0,
    body: str = "",
    related: str = "",
    topic: str = "",
    **fields: FieldValue,
) -> Candidate:
    made = make_memory(id, body or f"About {id}.\n", **fields)
    return Candidate(
        Record(made, f"{id}.md", "0" * 40),
        PINNED if score is None else RETRIEVAL,
        score,
        related=related,
        topic=frozenset(topic.encode().split()),
    )


def chosen(
    *candidates: Candidate,
    trust: dict[str, str] | None = None,
    threshold: float = 0.0,
    looked_at: int = 15,
    shown: tuple[Candidate, ...] = (),
) -> tuple[list[str], dict[str, str]]:
    """Return the ids that are kept, and the reason against each other one."""
    records = [hit.record for hit in candidates]
    tree = make_tree(*records)
    lineage = tree.lineage
    forks: dict[str, tuple[tuple[str, ...], ...]] = {}
    for fork in lineage.find_forks():
        for head in fork.heads:
            forks[head] = (fork.heads,)
    grounds = Eligibility(
        tree,
        EffectiveLineage(lineage, forks, {}, {}),
        timestamps.parse("2026-03-01T12:00:00Z"),
        DEFAULT_CATEGORIES,
        "local",
        gates=Gates(candidate_pool=looked_at),
    )
    levels = trust or {}
    origins = {
        record.path: Origin("", "", 0, levels.get(record.id, "committed")) for record in records
    }
    hits = with_roles(candidates, grounds, None, "")  # type: ignore[arg-type]
    winners, verdicts = choose(hits, grounds, origins, lambda _category: threshold, shown)
    return [winner.record.id for winner in winners], reasons(verdicts)


def reasons(verdicts: list[CandidateVerdict]) -> dict[str, str]:
    assert not any(verdict.is_taken for verdict in verdicts)
    return {verdict.id: verdict.reason for verdict in verdicts}


def test_what_scores_too_little_is_left_out() -> None:
    """The threshold is a share of the best score."""
    ids, why = chosen(candidate("dec-a", 0.8), candidate("dec-b", 0.3), threshold=0.5)
    assert ids == ["dec-a"]
    assert why["dec-b"].startswith("below the threshold 0.400")


def test_only_the_best_are_looked_at() -> None:
    """Memories beyond the candidate limit are not shown, however few of them are left."""
    some = [candidate(f"dec-{n}", 1 - n / 100) for n in range(4)]
    ids, why = chosen(*some, looked_at=2)
    assert ids == ["dec-0", "dec-1"]
    assert why["dec-2"] == "not among the best 2"


def test_near_duplicates_are_folded() -> None:
    """The better one represents both, as does one that is already shown."""
    ids, why = chosen(
        candidate("dec-a", 0.9, LONG, title="Redis"),
        candidate("dec-b", 0.8, LONG + ".", title="redis!"),
    )
    assert (ids, why) == (["dec-a"], {"dec-b": "says nearly the same as dec-a"})
    pinned = candidate("dec-p", None, LONG, title="Redis")
    ids, why = chosen(candidate("dec-a", 0.9, LONG + ".", title="REDIS"), shown=(pinned,))
    assert (ids, why) == ([], {"dec-a": "says nearly the same as dec-p"})


def test_the_same_words_are_the_same_claim_wherever_the_title_ends() -> None:
    """Case and space do not count; texts that only begin alike are other claims."""
    ids, why = chosen(
        candidate("dec-a", 0.9, "in redis, mostly\n", title="Sessions live"),
        candidate("dec-b", 0.8, "redis,\n\n  MOSTLY\n", title="Sessions live in"),
        candidate("dec-c", 0.7, "redis, never\n", title="Sessions live in"),
    )
    assert (ids, why) == (["dec-a", "dec-c"], {"dec-b": "says the same as dec-a"})


def test_contradictions_are_not_folded() -> None:
    """Heads of a fork stay side by side, however alike they are."""
    old = ("dec-old",)
    ids, _why = chosen(
        candidate("dec-a", 0.9, LONG, title="Redis", supersedes=old),
        candidate("dec-b", 0.8, LONG + " too", title="Redis", supersedes=old),
        candidate("dec-old", 0.1, "Old."),
        threshold=0.5,
    )
    assert ids == ["dec-a", "dec-b"]


def test_a_source_speaks_twice() -> None:
    """The third memory of one commit is left out; a person may say more."""
    from_one = [candidate(f"dec-{n}", 1 - n / 10, source=("commit:abc",)) for n in range(3)]
    other = candidate("dec-9", 0.5, source=("commit:abc", "commit:def"))
    ids, why = chosen(*from_one, other)
    assert ids == ["dec-0", "dec-1", "dec-9"]
    assert why == {"dec-2": "2 from commit:abc are shown already"}
    ids, _why = chosen(*(candidate(f"dec-{n}", 1 - n / 10) for n in range(4)))
    assert len(ids) == 4


def test_a_digest_stands_for_what_it_sums_up() -> None:
    """It comes first if it scores nearly as well as the best, and folds those below."""
    digest = candidate("sem-d", 0.9, derived_from=("dec-a", "dec-b"))
    best, less = candidate("dec-a", 1.0), candidate("dec-b", 0.8)
    ids, why = chosen(best, digest, less)
    assert ids == ["sem-d", "dec-a"]
    assert why == {"dec-b": "summed up by sem-d"}
    weak = candidate("sem-d", 0.6, derived_from=("dec-a",))
    assert chosen(best, weak)[0] == ["dec-a", "sem-d"]


def test_what_is_related_to_a_winner_may_score_less() -> None:
    """It passed the gatekeeper itself; the threshold and the number are for the others."""
    ids, why = chosen(
        candidate("dec-a", 1.0),
        candidate("dec-r", 0.1, related="dec-a"),
        candidate("dec-z", 0.1),
        threshold=0.5,
        looked_at=1,
    )
    assert ids == ["dec-a", "dec-r"]
    assert why.keys() == {"dec-z"}


def test_trust_decides_between_about_equals() -> None:
    """Of equally relevant memories the more trusted comes first; other orders stay."""
    levels = {"dec-a": "local", "dec-b": "trusted"}
    fits = {"relevance": 1.0}
    first, other = candidate("dec-a", 0.9), candidate("dec-b", 0.88)
    equal = first.replace(factors=fits), other.replace(factors=fits)
    assert chosen(*equal, trust=levels)[0] == ["dec-b", "dec-a"]
    better = first.replace(factors={"relevance": 1.1}), other.replace(factors=fits)
    assert chosen(*better, trust=levels)[0] == ["dec-a", "dec-b"]
    newest_first = (candidate("dec-a", 0.5), candidate("dec-b", 0.9))
    assert chosen(*newest_first, trust=levels)[0] == ["dec-a", "dec-b"]


def test_pinned_memories_keep_their_order() -> None:
    """Nobody asked for them, so neither score nor source counts."""
    some = [candidate(f"dec-{n}", None, source=("commit:abc",)) for n in (3, 1, 2)]
    assert chosen(*some)[0] == ["dec-3", "dec-1", "dec-2"]


@pytest.mark.parametrize("status", ["deprecated", "archived"])
def test_what_is_not_current_is_left_out(status: str) -> None:
    """Its state is the reason."""
    ids, why = chosen(candidate("dec-a", 1.0, status=status), candidate("dec-b", 0.9))
    assert (ids, why) == (["dec-b"], {"dec-a": status})


DIGEST: dict[str, FieldValue] = {
    "type": "semantic",
    "source": ("tool:digest/0",),
    "derived_from": ("dec-a",),
}


def test_a_generated_digest_leads_only_where_it_answers_as_well() -> None:
    """Below four fifths of the best its memories come first; above, it represents them."""
    for mine, score, expected in (
        (1.0, 0.7, ["dec-a"]),
        (1.0, 0.9, ["sem-sum", "dec-a"]),
        (0.9, 1.0, ["sem-sum"]),
    ):
        plain = candidate("dec-a", mine, title="Redis")
        digest = candidate("sem-sum", score, "All of it: Redis.\n", **DIGEST)
        ids, _dropped = chosen(*sorted((plain, digest), key=lambda c: -(c.score or 0)))
        assert ids == expected


def test_a_generated_digest_stands_only_for_what_its_lead_names() -> None:
    """Of a long one nothing else is shown, so what the lead leaves out is shown itself."""
    digest = candidate("sem-sum", 1.0, "All of it: Kafka.\n", **DIGEST)
    ids, _dropped = chosen(digest, candidate("dec-a", 0.9, title="Redis"))
    assert ids == ["sem-sum", "dec-a"]


def test_a_digest_that_tells_what_was_forgotten_is_not_shown() -> None:
    """It waits for the next digest; so do those with missing memories."""
    gone = {"at": "2026-02-28T00:00:00Z", "reason": "gone"}
    digest = candidate("sem-sum", 1.0, "All of it: Redis.\n", **DIGEST)
    forgotten = candidate("dec-a", 0.5, status="deleted", deleted=gone)
    ids, dropped = chosen(digest, forgotten)
    assert (ids, dropped["sem-sum"]) == ([], "out of date: dec-a no longer holds")
    assert chosen(digest)[0] == []


def test_a_source_is_a_thing_not_a_place_in_it() -> None:
    """Lines and versions of one file are one source; people and tools are none."""
    memory = make_memory(
        source=(
            "file:a.md#L1-L2",
            "file:a.md@abc",
            "human:Ada",
            "tool:pytest",
            "session:s#4",
            "url:https://example.org/#part",
        )
    )
    assert find_sources(memory) == ("file:a.md", "session:s", "url:https://example.org/#part")


PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "search" / "data" / "conflicts.jsonl")
    .read_text()
    .splitlines()
]


def memory(id: str, title: str, body: str = "", **fields: FieldValue) -> Memory:
    return make_memory(id, f"{body or title}\n", title=title, **{"type": "semantic", **fields})


@pytest.mark.parametrize("row", PAIRS, ids=lambda row: row["a"][0])
def test_the_block_marks_what_the_gate_finds(row: dict):
    """Whichever memory comes first."""
    first, other = (
        memory(
            f"sem-{name}",
            *row[name],
            type=row.get("type", "semantic"),
            tags=tuple(row.get("tags", ())),
        )
        for name in "ab"
    )
    expected = [(0, 1)] if contradictions.find_between(first, other) else []
    assert find_clashes([first, other]) == find_clashes([other, first]) == expected


def test_a_number_that_names_a_thing_contradicts_no_other():
    """Two versions have a schedule each; only what is said of a thing can be otherwise."""
    schedules = [
        memory(
            f"sem-{minor}",
            f"Python 3.{minor} Release Schedule",
            f"This is the schedule of Python 3.{minor}.",
        )
        for minor in (11, 12)
    ]
    assert find_clashes(schedules) == []
    limits = [
        memory(f"sem-{limit}", f"Lines are at most {limit} characters") for limit in (88, 100)
    ]
    assert find_clashes(limits) == [(0, 1)]


@pytest.mark.parametrize("side", [0, 1])
def test_what_is_accepted_is_no_conflict(side: int):
    """It is enough that one names the other in conflicts_accepted."""
    texts = ("Use tabs for indentation", "Never use tabs for indentation")
    both = [memory(f"sem-{number}", text) for number, text in enumerate(texts)]
    assert find_clashes(both) == [(0, 1)]
    both[side] = both[side].with_fields(conflicts_accepted=(both[1 - side].id,))
    assert find_clashes(both) == []


def test_only_rules_contradict():
    """Traces and states were true at their time."""
    texts = ("Use tabs for indentation", "Never use tabs for indentation")
    assert find_clashes([memory(f"epi-{text[0]}", text, type="episodic") for text in texts]) == []


def test_what_rules_suspect_is_marked_nowhere_in_a_block(sandbox: Sandbox):
    """Only lineage proves a conflict; a contradiction that words suggest is for `conflicts`."""
    sandbox.memory("dec-redis", "Sessions live in Redis for a day.\n", title="Sessions in Redis")
    sandbox.memory("dec-push", "Sessions never live in Redis.\n", title="P", status="pinned")
    sandbox.commit()
    answer = sandbox.json("inject", "--prompt", "do sessions live in redis for a day?")
    assert {item["id"]: item["conflicts"] for item in answer["items"]} == {
        "dec-push": [],
        "dec-redis": [],
    }
    assert "CONFLICT" not in answer["text"]
    assert "contradict" not in answer["text"]
    kinds = {conflict["kind"] for conflict in sandbox.json("conflicts")["conflicts"]}
    assert kinds == {"opposition"}


def test_a_fork_is_a_conflict(sandbox: Sandbox):
    """Two heads that replace the same memory are marked, whatever their words say."""
    sandbox.memory("dec-old", "Sessions live in files.\n")
    sandbox.memory("dec-a", "Sessions live in Redis.\n", supersedes=("dec-old",))
    sandbox.memory("dec-b", "Sessions live in Valkey.\n", supersedes=("dec-old",))
    sandbox.commit()
    answer = sandbox.json("inject", "--prompt", "where do sessions live?")
    assert {item["id"]: item["conflicts"] for item in answer["items"]} == {
        "dec-a": ["dec-b"],
        "dec-b": ["dec-a"],
    }
    assert answer["text"].count("CONFLICT, not settled: ") == 1
    assert "dec-a and dec-b both supersede dec-old. Ask the user which one holds" in answer["text"]
    assert answer["text"].count("conflicts with dec-") == 2


def test_each_topic_of_a_prompt_has_a_threshold_of_its_own() -> None:
    """The best answer to one part of a prompt does not drop the best one to another."""
    hits = (
        candidate("dec-a", 1.0, topic="redis session"),
        candidate("dec-b", 0.4, topic="invoice"),
        candidate("dec-c", 0.3, topic="session"),
    )
    ids, reasons = chosen(*hits, threshold=0.6)
    assert ids == ["dec-a", "dec-b"]
    assert reasons["dec-c"].startswith("below the threshold 0.600")


def test_what_the_block_has_already_sets_no_threshold() -> None:
    """A pin that is also the best hit takes no place twice, and drops nothing."""
    pin = candidate("dec-pin", 1.0)
    ids, reasons = chosen(pin, candidate("dec-b", 0.4), threshold=0.6, shown=(pin,))
    assert (ids, reasons["dec-pin"]) == (["dec-b"], "shown already")
