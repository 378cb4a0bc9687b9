from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import make_memory

from memtool.gate.near_duplicates import (
    MAX_COMPARED,
    THRESHOLD_KEY,
    DuplicateIndex,
    find_duplicates,
    find_problems,
)
from memtool.memory import timestamps
from memtool.memory.likeness import compute_cosine
from memtool.memory.memory import Memory
from memtool.memory.schema import CODES
from memtool.search.comparison import compare_memories, content_terms, is_value, naming_terms
from memtool.store.config import find_option
from memtool.store.tree import Record

NOW = timestamps.parse("2026-03-01T12:00:00Z")
THRESHOLD = float(str(find_option(THRESHOLD_KEY).default))
PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "duplicates.jsonl").read_text().splitlines()
]
TEXT = "Sessions live in Redis because the cookie store grew past four kilobytes.\n"


def record(id_: str, body: str = TEXT, **fields: object) -> Record:
    memory = make_memory(id_, body, **({"title": "Sessions in Redis"} | fields))  # type: ignore[arg-type]
    return Record(memory, f".memory/{id_}.md", "")


def side(row: dict, name: str) -> Memory:
    title, body = row[name]
    return make_memory(f"sem-{name}", body + "\n", title=title, type="semantic")


@pytest.mark.parametrize(
    "row", [row for row in PAIRS if row["label"] == "different"], ids=lambda row: row["a"][0]
)
def test_other_claims_are_no_duplicates(row: dict):
    """Another value, name, sign or subject in the same sentence is another claim."""
    assert compare_memories(side(row, "a"), side(row, "b")) < THRESHOLD


def test_most_repetitions_are_found():
    """Of the labelled pairs all light edits and most paraphrases that keep the words."""
    same = [row for row in PAIRS if row["label"] == "duplicate"]
    caught = [row for row in same if compare_memories(side(row, "a"), side(row, "b")) >= THRESHOLD]
    assert len(caught) / len(same) >= 0.8
    missed = {row["kind"] for row in same if row not in caught}
    assert missed <= {"far paraphrase", "paraphrase", "extension"}


def test_likeness_is_symmetric():
    """It does not matter which of two came first."""
    for row in PAIRS[::7]:
        first, other = side(row, "a"), side(row, "b")
        assert compare_memories(first, other) == compare_memories(other, first)


def test_the_same_words_are_an_exact_twin():
    """Case and white space do not count, and no relation makes them another claim."""
    new = record("dec-b", TEXT.upper(), related_to=("dec-a",))
    (twin,) = find_duplicates([new], DuplicateIndex([record("dec-a")]), THRESHOLD, NOW)
    assert twin is not None
    assert (twin.record.id, twin.is_exact, twin.likeness) == ("dec-a", True, 1.0)


@pytest.mark.parametrize("key", ["related_to", "derived_from", "resolves", "supersedes"])
def test_a_relation_that_names_a_near_twin_makes_it_none(key: str):
    """Who names the other memory knows of it."""
    new = record("dec-b", TEXT + "Ask twice.\n", **{key: ("dec-a",)})
    assert find_duplicates([new], DuplicateIndex([record("dec-a")]), THRESHOLD, NOW) == [None]
    assert find_duplicates(
        [record("dec-b", TEXT + "Ask twice.\n")], DuplicateIndex([record("dec-a")]), THRESHOLD, NOW
    ) != [None]


@pytest.mark.parametrize(
    "fields",
    [
        {"valid_through": "2026-02-25"},
        {"valid_from": "2026-04-01"},
        {"timestamp": "2020-01-01T00:00:00Z", "status": "candidate"},
        {"status": "archived"},
    ],
)
def test_only_living_memories_count(fields: dict):
    """Expired or not yet valid memories may be repeated, and repeat nothing themselves."""
    assert find_duplicates(
        [record("dec-b")], DuplicateIndex([record("dec-a", **fields)]), THRESHOLD, NOW
    ) == [None]
    assert find_duplicates(
        [record("dec-b", **fields)], DuplicateIndex([record("dec-a")]), THRESHOLD, NOW
    ) == [None]


def test_of_several_twins_the_most_alike_is_named():
    """An exact one first, then by likeness, then by id."""
    records = [record("dec-c"), record("dec-a", TEXT + "More words here.\n"), record("dec-b")]
    (twin,) = find_duplicates([record("dec-x")], DuplicateIndex(records), THRESHOLD, NOW)
    assert twin is not None
    assert twin.record.id == "dec-b"


def test_of_two_new_memories_the_later_one_is_the_problem():
    """One of them may stay."""
    both = [record("dec-a", timestamp="2026-02-23T00:00:00Z"), record("dec-b")]
    (problem,) = find_problems(both, DuplicateIndex(both), THRESHOLD, NOW)
    assert (problem.id, problem.code, problem.severity) == ("dec-a", "duplicate", "error")
    assert problem.code in CODES


def test_the_hint_names_the_twin_and_the_next_command():
    """A refusal says what to do instead."""
    near = [record("dec-a")]
    (exact,) = find_problems([record("dec-b")], DuplicateIndex(near), THRESHOLD, NOW)
    (other,) = find_problems(
        [record("dec-b", TEXT + "Ask.\n")], DuplicateIndex(near), THRESHOLD, NOW
    )
    assert exact.message == "it says the same as dec-a, 'Sessions in Redis'"
    assert exact.hint == "remove this one, or: memtool supersede dec-a TITLE"
    assert other.message.startswith("it says nearly (0.9")
    assert other.hint == ("memtool supersede dec-a TITLE; to keep both, add related_to: [dec-a]")


def test_a_higher_threshold_lets_near_twins_pass():
    """The setting decides, and exact twins are refused whatever it says."""
    near = DuplicateIndex([record("dec-a")])
    other = make_memory("dec-b", TEXT + "Ask.\n", title="Sessions in Redis then")
    assert find_duplicates([Record(other, "b.md", "")], near, 1.0, NOW) == [None]
    assert find_duplicates([record("dec-b")], near, 1.0, NOW) != [None]


def test_headings_are_not_what_a_memory_says():
    """Two memories from one template share its headings, not their words."""
    body = "## Options considered\n\n## Chosen\n\n## Rationale\n"
    assert content_terms(make_memory(body=body, title="Redis")) == {"redi"}


def test_names_are_values_paths_identifiers_and_capitals_inside_a_sentence():
    """The first word of a sentence may be any word."""
    memory = make_memory(title="t", body="Sessions of Ada live in app/main.py for 30 s or ten.\n")
    names = naming_terms(memory)
    assert {"ada", "30", "ten", "app/main.pi"} <= names
    assert not {"session", "live"} & names


@pytest.mark.parametrize(
    ("first", "other", "expected"),
    [("ab", "ab", 1.0), ("ab", "cd", 0.0), ("", "a", 0.0), ("abcd", "a", 0.5)],
)
def test_the_cosine_goes_from_0_to_1(first: str, other: str, expected: float):
    """Equal sets give 1, disjoint and empty ones 0."""
    assert compute_cosine(frozenset(first), frozenset(other)) == expected
    assert compute_cosine(frozenset(other), frozenset(first)) == expected


def test_values_are_numbers_and_compounds():
    """A plain word is none."""
    terms = ("8080", "a_b", "app/main.pi", "ten", "twelv", "port", "x9")
    assert [term for term in terms if is_value(term)] == [
        "8080",
        "a_b",
        "app/main.pi",
        "ten",
        "x9",
    ]


LONG = " ".join(f"word{number}x rest" for number in range(120))


@pytest.mark.parametrize("share", [20, 10, 5])
def test_edited_texts_are_candidates(share: int):
    """A text with a twentieth to a fifth of its words changed is still found."""
    words = LONG.split()
    words[::share] = ["changed"] * len(words[::share])
    other = make_memory("dec-b", " ".join(words), title="Another name")
    (near,) = DuplicateIndex([Record(other, "b.md", "b")]).find_similar(
        [record("dec-a", LONG, title="One title")]
    )
    assert [candidate.record.id for candidate in near] == ["dec-b"]


def test_short_texts_in_another_order_are_candidates():
    """The order of words does not count."""
    other = make_memory("dec-b", "", title="Only on Tuesdays deploys run")
    query = record("dec-a", "", title="Deploys run on Tuesdays only")
    (near,) = DuplicateIndex([Record(other, "b.md", "b")]).find_similar([query])
    assert [candidate.record.id for candidate in near] == ["dec-b"]


@pytest.mark.parametrize("body", ["", "\n", "## Options considered\n", "the of and\n"])
def test_every_text_can_be_compared(body: str):
    """Nothing is too empty or too odd."""
    assert find_duplicates(
        [record("dec-b", body, title="?")],
        DuplicateIndex([record("dec-a", body, title="?")]),
        THRESHOLD,
        NOW,
    ) != [None]


def test_writing_without_spaces_is_compared_too():
    """A text in Japanese with one word changed is a candidate."""
    memory = make_memory("dec-a", "", title="セッションは必ずレディスに保存することにした")
    (near,) = DuplicateIndex([Record(memory, "a.md", "a")]).find_similar(
        [record("dec-b", "", title="セッションは必ずレディスに保存することになった")]
    )
    assert [candidate.record.id for candidate in near] == ["dec-a"]


def test_only_the_most_alike_are_compared_in_full():
    """Those that share most words come first; the exact one leads the answer."""
    words = TEXT.split()
    records = []
    for at in range(MAX_COMPARED + 3):
        text = " ".join(words[at:] if at < 9 else words[:2]) + "\n"
        memory = make_memory(f"dec-{at}", text, title="Sessions in Redis")
        records.append(Record(memory, f"{99 - at}.md", f"{at}"))
    (near,) = DuplicateIndex(records).find_similar([record("dec-new")])
    assert len(near) == MAX_COMPARED
    assert [candidate.record.id for candidate in near if candidate.is_exact] == ["dec-0"]
    assert near[0].is_exact


def test_nothing_has_no_neighbours():
    """An empty tree answers every question with nothing."""
    assert DuplicateIndex(()).find_similar([record("dec-a")]) == [[]]
    assert DuplicateIndex(()).find_similar([]) == []
