"""Named ids: what a text calls by name, and which memories that means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from memtool.search import named_ids
from memtool.search.explanation import explain_missing
from memtool.search.named_ids import (
    MAX_NAMES,
    MAX_SHARING,
    NAMED,
    Name,
    RecordNumber,
    find_mentions,
    find_named,
    read_number,
)
from memtool.search.prose import search_prose
from memtool.search.query import parse, parse_leniently
from memtool.search.retrieve import by_score, search_query

if TYPE_CHECKING:
    from conftest import Sandbox

OWN = "dec-2026-02-22-keep-sessions-k3f9"


def name(sandbox: Sandbox, text: str) -> list[str]:
    facts = sandbox.scope().facts()
    return [record.id for record in find_named(find_mentions(text), facts, facts.is_current)]


@pytest.fixture
def records(sandbox: Sandbox) -> Sandbox:
    """A repository with records of several kinds, none of which has the words of a prompt."""
    for id_ in (
        "adr-013-fraud-proofs",
        "adr-0024-square-size",
        "adr-108-exit-codes",
        "adr-2023-06-19-031-head",
        "adr-0075-results",
        "cip-7-fees",
        "decision-12-trains",
        "0042-gossip",
        OWN,
        "dec-2026-02-23-dr-7-seats-p4q4",
        "dec-2026-02-24-dr-8-trains-m3n4",
        "dec-2026-02-25-redis-7-is-out-x9y8",
        "dec-2026-02-26-30-seconds-are-enough-z7z7",
        "issue-13-crash",
        "line-13-of-the-file",
        "step-2-deploy",
        "v13-is-out",
    ):
        sandbox.memory(id_, "It is so.\n", title="It is so", type="decision")
    return sandbox


NAMING = [
    ("implement ADR-013", "adr-013-fraud-proofs"),
    ("speed up the build by implementing ADR013 (#1604)", "adr-013-fraud-proofs"),
    ("implement ADR 13", "adr-013-fraud-proofs"),
    ("implement ADR-0013", "adr-013-fraud-proofs"),
    ("implement adr_0013.", "adr-013-fraud-proofs"),
    ("implement adr#13", "adr-013-fraud-proofs"),
    ("implement ADR #13, then rest", "adr-013-fraud-proofs"),
    ("ADRs 0013 to 0020", "adr-013-fraud-proofs"),
    ("ADR-013: gossip", "adr-013-fraud-proofs"),
    ("**ADR** [13](https://example.org)", "adr-013-fraud-proofs"),
    ("ADR\u201113", "adr-013-fraud-proofs"),
    ("on branch feature/adr-13-proofs", "adr-013-fraud-proofs"),
    ("look at docs/adr/adr-013-fraud-proofs.md", "adr-013-fraud-proofs"),
    ("look at docs/adr/0013-proofs.md", "adr-013-fraud-proofs"),
    ("Implementation of ADR-108 (#930)", "adr-108-exit-codes"),
    ("[TEP-0075]Pipeline results support object", "adr-0075-results"),
    ("implement ADR 24", "adr-0024-square-size"),
    ("implement ADR 31", "adr-2023-06-19-031-head"),
    ("implement adr-2023-06-19-031", "adr-2023-06-19-031-head"),
    ("per [adr-2023@cf4ddb8]", "adr-2023-06-19-031-head"),
    ("CIP-007 says what", "cip-7-fees"),
    ("as of Decision 12", "decision-12-trains"),
    ("RFC 42", "0042-gossip"),
    ("as in 0042-gossip", "0042-gossip"),
    (f"why {OWN}?", OWN),
    (f"why .memory/decision/2026-02/{OWN}.md", OWN),
    (f"why [{OWN}@abc1234]", OWN),
    ("why dec-k3f9", OWN),
    ("why (dec-K3F9), then", OWN),
    ("why [dec-k3f9@abc1234]", OWN),
    ("why dec-2026-02-22-k3f9", OWN),
    ("why DR 7", "dec-2026-02-23-dr-7-seats-p4q4"),
]


@pytest.mark.parametrize(("text", "id_"), NAMING)
def test_a_name_means_a_memory(records: Sandbox, text: str, id_: str) -> None:
    """Case, zeros, brackets and joints do not count."""
    assert name(records, text) == [id_]


@pytest.mark.parametrize("text", ["ADRs 13, 24 and 108", "ADRs 13/24/108", "per ADRs 13, 24 & 108"])
def test_a_plural_names_each_number(records: Sandbox, text: str) -> None:
    """The word is not repeated."""
    ids = ["adr-013-fraud-proofs", "adr-0024-square-size", "adr-108-exit-codes"]
    assert name(records, text) == ids


@pytest.mark.parametrize(
    "text",
    [
        "",
        "all ADRs and 13 tests",
        "implement the decision",
        "fix issue 13",
        "see line 13",
        "do step 2",
        "upgrade to v13",
        "upgrade to version 13",
        "issue-13 line-13 step-2 v13",
        "#13 (#13) 13",
        "ADR 1300",
        "ADR 1.3",
        "ADR 13.5",
        "ADR 13,000",
        "we have no ADR. 13 people asked",
        "we have no ADR, 13 people asked",
        "ADR 13th",
        "ADR",
        "badr 13",
        "use Redis 7",
        "wait 30 seconds",
        "dec 22",
        "dec 2026",
        "adr-2024-06-19",
        "on 2023-06-19 we met",
        "PEP 24",
        "RFC 7231",
        "ADR 2023",
        "dec-zzz9",
        "utf-8 and sha-256",
    ],
)
def test_other_words_name_nothing(records: Sandbox, text: str) -> None:
    """A number after a word of everyday life, a version or a date is no name."""
    assert name(records, text) == []


def test_a_text_without_a_name_is_not_looked_up(
    records: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most prompts have no such pattern, and cost nothing."""
    monkeypatch.setattr(named_ids, "_find_ids", None)
    scope = records.scope()
    search_prose(scope, "why do sessions expire in redis after 30 days", (), 5)
    search_query(scope, parse("why do sessions expire in redis"), 5)


def test_the_project_s_own_word_comes_before_the_usual_ones(sandbox: Sandbox) -> None:
    """Of ADR 12 and RFC 12 each is called by its own word."""
    for id_ in ("adr-012-a", "rfc-012-b"):
        sandbox.memory(id_)
    assert name(sandbox, "RFC 12") == ["rfc-012-b"]
    assert name(sandbox, "ADR 12") == ["adr-012-a"]


def test_an_imported_record_answers_to_the_word_in_its_title_or_path(sandbox: Sandbox) -> None:
    """`import adr` calls each record an ADR, whatever its project calls it."""
    sandbox.memory("adr-0012-a", title="TEP-0012: Results")
    sandbox.memory("adr-0013-b", source=("file:keps/0013-b.md",))
    sandbox.memory("adr-0014-c")
    sandbox.memory("adr-106-d", source=("file:docs/adr-106-d.md",))
    sandbox.memory("adr-rfc-106-e", source=("file:docs/rfc-106-e.md",))
    assert name(sandbox, "TEP 12") == ["adr-0012-a"]
    assert name(sandbox, "KEP 13") == ["adr-0013-b"]
    assert name(sandbox, "PEP-0014") == ["adr-0014-c"]
    assert name(sandbox, "RFC 106") == ["adr-rfc-106-e"]
    assert name(sandbox, "ADR 106") == ["adr-106-d"]
    assert name(sandbox, "KEP-0012, TEP 13, TEP 14, PEP 14, TEP-106") == []


def test_a_word_in_titles_counts_as_part_of_a_series(sandbox: Sandbox) -> None:
    """One title with a number may be about anything; two, or one with zeros, are records."""
    sandbox.memory("dec-2026-02-23-redis-7-is-out-p4q4")
    sandbox.memory("dec-2026-02-23-dr-007-seats-x4q4")
    sandbox.memory("dec-2026-02-23-fee-1-seats-y4q4")
    sandbox.memory("dec-2026-02-23-fee-2-seats-z4q4")
    assert name(sandbox, "Redis 7") == []
    assert name(sandbox, "DR 7 and fee 1") == [
        "dec-2026-02-23-dr-007-seats-x4q4",
        "dec-2026-02-23-fee-1-seats-y4q4",
    ]


def test_a_word_of_ours_numbers_records_too(sandbox: Sandbox) -> None:
    """A project may have written `dec-012-seats.md` by hand; a day in December is not meant."""
    sandbox.memory("dec-012-seats")
    sandbox.memory(OWN)
    assert name(sandbox, "implement DEC-12") == ["dec-012-seats"]
    assert name(sandbox, "implement [dec-0012]") == ["dec-012-seats"]
    assert name(sandbox, "Dec 12, dec-2026 and dec-2027-02-22") == []


def test_a_number_that_many_share_names_none(sandbox: Sandbox) -> None:
    """Two folders may both have a record 13, but a name that means many tells nothing."""
    for letter in "abc"[:MAX_SHARING]:
        sandbox.memory(f"adr-013-{letter}")
    assert name(sandbox, "ADR 13") == ["adr-013-a", "adr-013-b", "adr-013-c"]
    sandbox.memory("adr-0013-d")
    assert name(sandbox, "ADR 13") == []


def test_a_text_names_only_a_few(sandbox: Sandbox) -> None:
    """A list of all records does not become a block of all records."""
    for number in range(1, 10):
        sandbox.memory(f"adr-{number:03}-a")
    text = " ".join(f"ADR {number}" for number in range(1, 10))
    assert name(sandbox, text) == [f"adr-{number:03}-a" for number in range(1, MAX_NAMES + 1)]


def test_a_pasted_log_hides_no_name(records: Sandbox) -> None:
    """Usual words and our own ids are looked up first, and the end of a long text is read."""
    log = "\n".join(f"worker{number % 97}x{number} unit{number} of 7" for number in range(9_000))
    assert find_mentions(f"{log}\nimplement ADR 13")[0] == (Name("adr", "13"),)
    assert name(records, f"{log}\nimplement ADR 13") == ["adr-013-fraud-proofs"]


def test_a_long_text_is_cut_between_words(records: Sandbox) -> None:
    """Half of a number is not a number, and a text of one word is no name."""
    for before in range(named_ids.MAX_TEXT_CHARS // 2 - 8, named_ids.MAX_TEXT_CHARS // 2 + 2):
        text = "x" * (before - 1) + " ADR 1300 " + "x" * named_ids.MAX_TEXT_CHARS
        assert name(records, text) == []
    assert name(records, "7" * 3 * named_ids.MAX_TEXT_CHARS) == []


def test_the_head_of_a_superseded_memory_is_meant(sandbox: Sandbox) -> None:
    """Who names what was replaced gets what holds now; what was taken back is not shown."""
    sandbox.memory("adr-001-a")
    sandbox.memory("adr-002-b", supersedes=("adr-001-a",))
    sandbox.memory("adr-003-c", status="deleted")
    sandbox.memory("adr-004-d", status="archived")
    assert name(sandbox, "ADR 1 and ADR 3 and ADR 4") == ["adr-002-b"]


@pytest.mark.parametrize(
    ("id_", "word", "digits"),
    [
        ("adr-013-x", "adr", "013"),
        ("adr-13", "adr", "13"),
        ("adr013-x", "adr", "013"),
        ("tep_0075_x", "tep", "0075"),
        ("0013-x", "", "0013"),
        ("adr-2023-06-19-024-x", "adr", "024"),
        ("adr-2023-06-19-12-factors", None, None),
        ("adr-2023-06-19-x", None, None),
        ("adr-use-redis", None, None),
        ("adr-rfc-106-x", "rfc", "106"),
        ("dec-2026-02-23-dr-7-x-p4q4", "dr", "7"),
        ("dec-2026-02-23-0013-x-p4q4", "", "0013"),
        ("dec-2026-02-23-30-seconds-p4q4", None, None),
        ("issue-13-x", None, None),
        ("123456789-x", None, None),
    ],
)
def test_the_number_is_read_from_the_id(id_: str, word: str | None, digits: str | None) -> None:
    """No memory is opened to learn what it is called."""
    expected = None if word is None or digits is None else RecordNumber(word, digits)
    assert read_number(id_) == expected


def test_a_search_lists_what_it_names_first(records: Sandbox) -> None:
    """A named memory comes first, counts once, and passes filters as others do."""
    records.memory("dec-build", "Speed up the build by caching.\n", title="Speed up the build")
    scope = records.scope()
    words = "speed up the build by ADR013"
    result = search_query(scope, parse(words), 10)
    assert [hit.record.id for hit in result.hits] == ["adr-013-fraud-proofs", "dec-build"]
    assert result.total == 2
    assert result.hits[0].factors[NAMED] > 0
    assert result.hits[0].score == result.hits[1].score
    assert NAMED not in result.hits[1].factors
    filtered = search_query(scope, parse(f"{words} type:state"), 10)
    assert filtered.hits == ()
    newest = search_query(scope, parse(words), 10, lambda hit: (hit.record.id,))
    assert [hit.record.id for hit in newest.hits] == ["adr-013-fraud-proofs", "dec-build"]


def test_words_that_are_only_a_name_are_enough(records: Sandbox) -> None:
    """A search for an id alone finds the memory, with nothing to note."""
    result = search_query(records.scope(), parse_leniently("(dec-k3f9)")[0], 10)
    assert result.hits[0].record.id == OWN
    assert result.notes == ()


def test_a_prompt_gets_what_it_names_before_the_gate(records: Sandbox) -> None:
    """The gate weighs words; who names a memory has asked for it."""
    result = search_prose(records.scope(), "speed up the build by ADR013", (), 10, explain=True)
    assert [hit.record.id for hit in result.hits] == ["adr-013-fraud-proofs"]
    assert result.total == 1
    assert "adr-013-fraud-proofs" not in [miss.record.id for miss in result.missed]


def test_a_refused_memory_is_not_looked_up(records: Sandbox) -> None:
    """Naming a memory changes nothing about trust and privacy."""
    scope = records.scope(refuses=lambda record: "no" if record.id.startswith("adr") else "")
    assert search_prose(scope, "speed up the build by ADR013", (), 10).hits == ()


def test_the_reason_is_the_name(records: Sandbox) -> None:
    """`--why-not` says that the memory is named, and not what the gate would have said."""
    scope = records.scope()
    record = scope.tree["adr-013-fraud-proofs"]
    verdict = explain_missing(scope, parse("speed up the build by ADR013"), record, 5, by_score)
    assert verdict.gate == "none"
    assert verdict.reason.endswith("named in the prompt")
