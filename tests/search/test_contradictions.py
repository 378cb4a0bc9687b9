"""What two sentences must share before one is shown as the contrary of the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import make_memory
from hypothesis import given, settings
from hypothesis import strategies as st

from memtool.memory.memory import Memory
from memtool.search.contradictions import (
    Statement,
    find,
    find_between,
    parse_measure,
    parse_statements,
)

DATA = Path(__file__).parent / "data"
PAIRS = [json.loads(line) for line in (DATA / "conflicts.jsonl").read_text().splitlines()]
MISSED = ("far", "version of a thing", "sub-clause")
"""Kinds of conflicts that nobody finds by signs and values alone, or that cost false alarms."""
VALUED = ("port", "key", "version", "unit", "path")


def rows(name: str) -> list[list[str]]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.split("|")] for line in lines if line and line[0] != "#"]


def side(row: dict, name: str) -> Memory:
    title, body = row[name]
    return make_memory(
        f"sem-{name}",
        body + "\n",
        title=title,
        type=row.get("type", "semantic"),
        tags=tuple(row.get("tags", ())),
    )


def judge(first: Memory, other: Memory) -> str:
    """`certain` or `suspected` if two memories contradict each other, else an empty text."""
    clash = find_between(first, other)
    return "" if clash is None else clash.certainty


@pytest.mark.parametrize(
    "row", [row for row in PAIRS if row["label"] == "none"], ids=lambda row: row["a"][0]
)
def test_what_can_hold_together_is_no_conflict(row: dict):
    """Other qualifiers, scopes, keys, dates, numbered things and double negations are fine."""
    assert find_between(side(row, "a"), side(row, "b")) is None


@pytest.mark.parametrize(
    "row", [row for row in PAIRS if row["label"] == "conflict"], ids=lambda row: row["a"][0]
)
def test_contrary_statements_are_found_and_quoted(row: dict):
    """Every row of the tables, and values of every kind, whichever memory comes first."""
    clash, back = (
        find_between(side(row, "a"), side(row, "b")),
        find_between(side(row, "b"), side(row, "a")),
    )
    if row["kind"] in MISSED:
        assert clash is back is None
        return
    assert clash is not None
    assert back is not None
    assert clash.kind == back.kind == ("values" if row["kind"] in VALUED else "opposition")
    assert " against " in clash.reason


@pytest.mark.parametrize("row", rows("statements.txt"), ids=lambda row: row[0])
def test_a_sentence_is_taken_apart_by_the_tables(row: list[str]):
    """A sign, a concept, subject terms and values; nothing if it makes no claim."""
    sentence, sign, *expected = row
    statements = parse_statements(make_memory(title=sentence, body=""))
    if not sign:
        assert statements == ()
        return
    (statement,) = statements
    assert f"{'+' if statement.sign > 0 else '-'} {statement.concept}".strip() == sign
    assert " ".join(sorted(statement.subject)) == expected[0]
    assert ", ".join(" ".join(value) for value in statement.values) == "".join(expected[1:])


@pytest.mark.parametrize("row", rows("measures.txt"), ids=lambda row: row[0])
def test_numbers_units_and_versions_have_one_spelling(row: list[str]):
    """Equal quantities are written the same; other words are not quantities."""
    word, _space, after = row[0].partition(" ")
    measure, width = parse_measure(word, after)
    assert (f"{' '.join(measure)}, {width}" if measure else "") == row[1]


def test_a_choice_says_yes_to_one_and_no_to_the_other():
    """`X instead of Y for Z` is two statements."""
    statements = parse_statements(
        make_memory(title="Use tabs instead of spaces for Makefiles", body="")
    )
    assert [(s.sign, sorted(s.subject)) for s in statements] == [
        (1, ["makefil", "tab"]),
        (-1, ["makefil", "space"]),
    ]


def test_only_title_and_first_sentence_state_something():
    """Later sentences give reasons and alternatives."""
    body = "- Opening one. It goes on.\n\nMore.\n\n## Chosen\n\nChosen thing.\n"
    stated = [s.text for s in parse_statements(make_memory(title="Title words", body=body))]
    assert stated == ["Title words", "Opening one."]


def test_among_many_memories_only_the_contrary_ones_are_found():
    """Each pair once, in the order of the list."""
    memories = [
        make_memory(
            f"sem-{at}",
            f"Use tool{at}x for job{at}x.\n",
            type="semantic",
            title=f"Use tool{at}x for job{at}x",
        )
        for at in range(200)
    ]
    memories[150] = make_memory(
        "sem-no",
        "Do not use tool7x for job7x.\n",
        type="semantic",
        title="Do not use tool7x for job7x",
    )
    clashes = find(memories)
    assert [(clash.first, clash.other, clash.kind) for clash in clashes] == [(7, 150, "opposition")]
    assert clashes[0].reason == ('"Use tool7x for job7x" against "Do not use tool7x for job7x"')


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"tags": ("cache",)}, True),
        ({"files": ("a.py",)}, True),
        ({"tags": ("other",)}, False),
        ({}, False),
    ],
)
def test_a_subject_of_one_word_needs_something_in_common(fields: dict, *, expected: bool):
    """A shared tag or file, or a word of both titles, says that both mean the same thing."""
    base = {"tags": ("cache",), "files": ("a.py",)}
    first = make_memory("dec-a", "Use Redis.\n", title="Speed", **base)
    other = make_memory("dec-b", "Do not use Redis.\n", title="Costs", **fields)
    assert (find_between(first, other) is not None) == expected


def test_a_memory_does_not_contradict_itself():
    """Contrary sentences of one memory are its own matter."""
    memory = make_memory(title="Use Redis for sessions", body="Do not use Redis for sessions.\n")
    assert find([memory]) == find([]) == []


def test_only_rules_contradict_and_digests_state_nothing():
    """Traces and states were true at their time, and a digest repeats its sources."""
    for fields in ({"type": "episodic"}, {"source": ("tool:digest/0123",)}):
        yes, no = (
            make_memory(f"sem-{at}", "", title=title, **{"type": "semantic", **fields})
            for at, title in enumerate(("Use tabs in Makefiles", "Never use tabs in Makefiles"))
        )
        assert find_between(yes, no) is None


@pytest.mark.slow
def test_many_equal_memories_cost_no_more_than_few():
    """Equal memories are compared as one."""
    same = [
        make_memory(f"sem-{at}", "", title="Lines have 88 characters", type="semantic")
        for at in range(3_000)
    ]
    other = make_memory("sem-x", "", title="Lines have 100 characters", type="semantic")
    assert len(find([*same, other])) == 3_000


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200), st.text(max_size=400))
def test_any_text_can_be_read(title: str, body: str):
    """Nothing that a memory may hold is too odd, and no subject is empty."""
    for statement in parse_statements(make_memory(title=title, body=body)):
        assert isinstance(statement, Statement)
        assert statement.subject
        assert statement.sign in (1, -1)


def test_a_long_text_is_read_in_bounded_time():
    """One long line costs what it holds."""
    body = "never " * 10_000 + "=" * 10_000 + ": " * 5_000
    assert len(parse_statements(make_memory(body=body))) <= 2


CERTAIN_PAIRS = [
    ("Always paginate admin exports.", "Never paginate admin exports."),
    ("Use tabs in Makefiles.", "Do not use tabs in Makefiles."),
    ("Enable the query cache.", "Disable the query cache."),
    ("Handlers must catch errors.", "Handlers must not catch errors."),
    ("Sessions expire after 15 minutes.", "Sessions expire after 60 minutes."),
    ("cache.ttl = 300", "cache.ttl = 600"),
    ("Use Python 3.11.", "Use Python 3.12."),
    ("Boarding scanners time out after 5 seconds.", "Boarding scanners time out after 8 seconds."),
]


@pytest.mark.parametrize("pair", CERTAIN_PAIRS, ids=lambda pair: pair[0])
def test_equal_but_for_the_sign_or_one_value_is_certain(pair: tuple[str, str]):
    """Otherwise equal sentences that need no context cannot both hold."""
    first, other = (make_memory(f"sem-{n}", f"{text}\n", title=text) for n, text in enumerate(pair))
    assert judge(first, other) == judge(other, first) == "certain"


UNCERTAIN_PAIRS = [
    ("Add a license header to every file.", "Remove the license header from every file."),
    ("Avoid premature optimization.", "Premature optimization"),
    ("Can interrupt a paragraph.", "Cannot interrupt a paragraph."),
    ("Using TODO as final", "Never use TODO as final."),
    ("Keep under 72 lines", "Keep under 80 lines"),
    ("Users must log in.", "Users need not log in."),
    ("Redis was used for sessions.", "Redis is not used for sessions."),
    ("The build takes 4.42 s", "The build takes 4.73 s"),
    ("last_seen: 1552495139", "last_seen: 1635959379"),
    ("Plugins support Python 3.11", "Plugins support Python 3.12"),
    ("The range of the ratio is 0.40", "The range of the ratio is 0.4"),
    ("Fixtures are in tests/data", "Fixtures are in tests/unit"),
    ("Clearly state what it can do", "Clearly state what it cannot do"),
    ("Names of rules should not change", "Names of rules have changed"),
]


@pytest.mark.parametrize("pair", UNCERTAIN_PAIRS, ids=lambda pair: pair[0])
def test_what_depends_on_words_around_it_is_not_certain(pair: tuple[str, str]):
    """Actions, headings, sentences without a subject, measurements and paths may both hold."""
    first, other = (make_memory(f"sem-{n}", f"{text}\n", title=text) for n, text in enumerate(pair))
    assert judge(first, other) != "certain"


def test_other_files_places_and_limits_set_two_memories_apart():
    """The same words about another thing, or with a limit, are a suspicion only."""
    body = "Use tabs to indent.\n"

    def pair(mine: dict, theirs: dict, body: str = body) -> str:
        first = make_memory("sem-a", body, title="Use tabs to indent", **mine)
        no = "Do not use tabs to indent"
        return judge(first, make_memory("sem-b", f"{no}.\n", title=no, **theirs))

    assert pair({}, {}) == "certain"
    assert pair({"files": ("a/x.py",)}, {"files": ("a/*.py",)}) == "certain"
    assert pair({"files": ("a/x.py",)}, {"files": ("b/y.py",)}) == "suspected"
    assert pair({"environment": "ci"}, {"environment": "prod"}) == "suspected"
    assert pair({}, {}, "Use tabs to indent Makefiles.\n") == "suspected"
    assert pair({}, {}, "Use tabs to indent, except in Python.\n") == "suspected"


def test_every_labelled_pair_that_is_certain_is_a_conflict():
    """Among pairs that were labelled by hand none is marked that can hold together."""
    certain = [row for row in PAIRS if judge(side(row, "a"), side(row, "b")) == "certain"]
    assert {row["label"] for row in certain} == {"conflict"}
    assert len(certain) >= 15
