"""Decisions of several repositories: the same, contrary, or replaced."""

from __future__ import annotations

import pytest
from conftest import make_memory

from memtool.fleet.similar import (
    CONTRARY,
    MAX_MEMBERS,
    REPLACED,
    SAME,
    LocatedMemory,
    SharedDecision,
    compare_memories,
)
from memtool.memory.memory import FieldValue
from memtool.redaction.mask import Mask
from memtool.store.config import DEFAULTS

KAFKA = (
    "Payment events go through kafka between the ledger and the invoices, so that a replay "
    "costs nobody a night. Topics are kept for nine days.\n"
)


def located(repository: str, id_: str, body: str = KAFKA, **fields: FieldValue) -> LocatedMemory:
    """A decision of a repository."""
    memory = make_memory(id_, body, **{"title": "Broker of payment events", **fields})
    return LocatedMemory(repository, "c" * 40, f".memory/decision/2026-02/{id_}.md", memory)


def summarize(group: SharedDecision) -> tuple[str, list[tuple[str, str]]]:
    return group.kind, [(decision.repository, decision.id) for decision in group.decisions]


def test_the_same_words_of_many_are_one_group() -> None:
    """However many repositories copied a decision, it is listed once, with each of them."""
    report = compare_memories([located(f"acme/r{n}", f"dec-{n}") for n in range(5)])
    assert [summarize(group) for group in report.shared] == [
        (SAME, [(f"acme/r{n}", f"dec-{n}") for n in range(5)])
    ]
    assert report.shared[0].reason == "the same words"
    assert (report.compared, report.repositories, report.left_out) == (5, 5, "")


def test_nearly_the_same_and_the_same_statement() -> None:
    """Other words around one decision make it no other; another subject does."""
    near = KAFKA.replace("costs nobody a night", "wakes nobody at night")
    states = "We use kafka for payment events.\n\nThe rest is told quite differently here.\n"
    other = "Use kafka for payment events.\n\nNobody wants to run another broker.\n"
    report = compare_memories(
        [
            located("acme/a", "dec-a"),
            located("acme/b", "dec-b", near),
            located("acme/c", "dec-c", states, title="Kafka"),
            located("acme/d", "dec-d", other, title="Use kafka for payment events"),
            located("acme/e", "dec-e", "Buttons are blue and square.\n", title="Buttons"),
        ]
    )
    assert [summarize(group) for group in report.shared] == [
        (SAME, [("acme/a", "dec-a"), ("acme/b", "dec-b")]),
        (SAME, [("acme/c", "dec-c"), ("acme/d", "dec-d")]),
    ]
    assert report.shared[0].reason.startswith("nearly the same words (0.")
    assert report.shared[1].reason == "they state the same"


def test_the_contrary_and_other_values() -> None:
    """Contradictions are reported with the values, or with both sentences."""
    report = compare_memories(
        [
            located("acme/a", "dec-a", "The request timeout is 30 seconds.\n", title="Timeout"),
            located("acme/b", "dec-b", "The request timeout is 60 seconds.\n", title="Timeout"),
            located(
                "acme/a", "dec-c", "Never push to the main branch directly.\n", title="Pushing"
            ),
            located("acme/c", "dec-d", "Push to the main branch directly.\n", title="Pushing"),
        ]
    )
    values, pushing = report.shared
    assert summarize(values) == (CONTRARY, [("acme/a", "dec-a"), ("acme/b", "dec-b")])
    assert values.reason == "30 seconds against 60 seconds"
    assert [decision.value for decision in values.decisions] == ["30 seconds", "60 seconds"]
    assert summarize(pushing) == (CONTRARY, [("acme/a", "dec-c"), ("acme/c", "dec-d")])
    assert '"Never push to the main branch directly"' in pushing.reason


def test_one_repository_has_its_own_conflicts() -> None:
    """Conflicts within one repository belong to `memtool conflicts`, not to a fleet."""
    assert compare_memories([located("acme/a", "dec-a"), located("acme/a", "dec-b")]).shared == ()


def test_what_one_replaced_and_another_holds() -> None:
    """A copy of a decision that its origin has given up is worth a look."""
    report = compare_memories(
        [
            located("acme/a", "dec-new", "NATS carries events.\n", supersedes=("dec-old",)),
            located("acme/b", "dec-old"),
        ]
    )
    assert [summarize(group) for group in report.shared] == [
        (REPLACED, [("acme/a", "dec-new"), ("acme/b", "dec-old")])
    ]
    assert report.shared[0].decisions[0].supersedes == ("dec-old",)


def test_only_what_it_is_about() -> None:
    """Asked about one memory, groups without it are left out."""
    rows = [located(f"acme/r{n}", f"dec-{n}") for n in range(2)]
    rows += [located(f"acme/r{n}", f"dec-b{n}", "Buttons are blue.\n") for n in range(2)]
    report = compare_memories(rows, is_relevant=lambda row: row.memory.id == "dec-b0")
    assert [summarize(group)[1] for group in report.shared] == [
        [("acme/r0", "dec-b0"), ("acme/r1", "dec-b1")]
    ]


def test_traces_and_digests_decide_nothing() -> None:
    """Traces and digests are not decisions."""
    traces = [located(f"acme/r{n}", f"epi-{n}", type="episodic") for n in range(2)]
    assert compare_memories(traces).compared == 0


def test_when_time_runs_out_what_was_found_is_told() -> None:
    """Identical texts are still found; the full comparison is cut, with a note."""
    rows = [located(f"acme/r{n}", f"dec-{n}") for n in range(3)]
    near = located("acme/x", "dec-x", KAFKA.replace("nine days", "some days or weeks"))
    report = compare_memories([*rows, near], is_late=lambda share: share == 1.0)
    assert report.left_out == (
        "what may be contrary was not compared to its end; "
        "what says nearly the same was looked for in the first 0 of 2 texts"
    )
    assert [summarize(group)[1] for group in report.shared] == [
        [(f"acme/r{n}", f"dec-{n}") for n in range(3)]
    ]


def test_what_is_not_read_in_time_is_left_out() -> None:
    """Reading ends before the time does, so that what was read is compared."""
    shares: list[float] = []

    def is_late(share: float) -> bool:
        shares.append(share)
        return share < 1.0 and len(shares) > 1

    rows = (located(f"acme/r{n % 3}", f"dec-{n}") for n in range(10**9))
    report = compare_memories(rows, is_late)
    assert (report.compared, report.kinds) == (512, {SAME: 1})
    assert report.left_out == "only the first 512 decisions were read"


@pytest.mark.slow
def test_a_large_group_is_counted_and_its_first_are_named() -> None:
    """A thousand memories against two are one group, and its first members are named."""
    thousand = "The request timeout is 30 seconds.\n"
    rows = [located(f"acme/r{n:04}", f"dec-{n:04}", thousand) for n in range(1_000)]
    rows += [
        located("acme/x", "dec-x", "The request timeout is 60 seconds.\n"),
        located("acme/y", "dec-y", "The request timeout is 90 seconds.\n"),
    ]
    contrary, same = compare_memories(rows).shared
    assert (contrary.kind, contrary.count, len(contrary.repositories)) == (CONTRARY, 1_002, 1_002)
    assert contrary.reason == "30 seconds against 60 seconds against 90 seconds"
    assert (same.kind, same.count, len(same.decisions)) == (SAME, 1_000, MAX_MEMBERS)


def test_no_secret_is_shown() -> None:
    """Where a sentence holds a secret no sentence is quoted, and titles are masked."""
    secret = "ghp_" + "n2MKju3qOFhTpV4LycRU" + "SSrpMX83mlxsLkJA"
    rows = [
        located("acme/a", "dec-a", f"Never push with {secret} to main.\n", title="Key"),
        located("acme/b", "dec-b", f"Push with {secret} to main.\n", title="Key"),
    ]
    rows += [located(f"acme/{name}", f"dec-{name}", title=f"Broker with {secret}") for name in "cd"]
    report = compare_memories(rows, mask=Mask(DEFAULTS))
    assert [group.kind for group in report.shared] == [CONTRARY, SAME]
    assert secret not in repr(report)
    assert report.shared[0].reason == "they cannot both hold"
    assert report.shared[1].decisions[0].title == "Broker with [REDACTED:github-token]"


def test_no_secret_of_one_that_is_not_shown_is_quoted() -> None:
    """The sentences of a reason are looked at, also where their decisions are beyond the first."""
    secret = "ghp_" + "n2MKju3qOFhTpV4LycRU" + "SSrpMX83mlxsLkJA"
    rows = [
        located(f"acme/r{n:03}", f"dec-{n:03}", "Push to the main branch directly.\n", title="P")
        for n in range(MAX_MEMBERS + 1)
    ]
    never = "Never push to the main branch directly"
    rows.append(located("zoo/z", "dec-z", f"{never} {secret}.\n", title=f"{never}"))
    report = compare_memories(rows, mask=Mask(DEFAULTS))
    assert [group.kind for group in report.shared] == [CONTRARY, SAME]
    assert report.shared[0].reason == "they cannot both hold"
    assert secret not in repr(report)


def test_a_template_that_hundreds_filled_in_is_one_group() -> None:
    """Where no word is rare, as in a decision that all copied and signed, it is still found."""
    words = [
        "alpha",
        "bravo",
        "charlie",
        "delta",
        "echo",
        "foxtrot",
        "golf",
        "hotel",
        "india",
        "juliet",
        "kilo",
        "lima",
        "mike",
    ]
    rows = [
        located(f"acme/r{n}", f"dec-{n}", f"{KAFKA}Agreed by {words[n % 13]} {words[n // 13]}.\n")
        for n in range(150)
    ]
    (group,) = compare_memories(rows).shared
    assert (group.kind, group.count) == (SAME, 150)
