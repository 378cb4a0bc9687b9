"""Relations in the text of a record: a word, and the record right after it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.importing import record_words


def shorten(text: str) -> list[tuple[str, str]]:
    """Return each relation with the path, or the word and number, of the other record."""
    edges = record_words.find_edges(text)
    return [
        (edge.relation, edge.target.path or f"{edge.target.kind} {edge.target.number}".strip())
        for edge in edges
    ]


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("Superseded by ADR-092 (2026-08-01), which has role id=5", [("superseded_by", "adr 092")]),
        ("Supersedes ADR-1, ADR-2 and 3", [("supersedes", f"adr {n}") for n in (1, 2, 3)]),
        ("Supersedes [1](0001-two.md)", [("supersedes", "0001-two.md")]),
        ("superseded by [ADR-0005](./0005-x.md#top)", [("superseded_by", "0005-x.md")]),
        ("Superseded by [[0005-x]]", [("superseded_by", "0005-x")]),
        ("Superseded by `0007-y.md`", [("superseded_by", "0007-y.md")]),
        ("Superceded by 12", [("superseded_by", "12")]),
        ("Supersedes ADR-12a", [("supersedes", "adr 12a")]),
        ("Supersedes the decision in ADR 4", [("supersedes", "adr 4")]),
        ("Amends [3. Formats](0003-x.md)", [("premise", "0003-x.md")]),
        ("Amended by ADR 4", [("conclusion", "adr 4")]),
        ("Depends on ADR-1 (a), ADR-2 (b) and 3", [("premise", f"adr {n}") for n in (1, 2, 3)]),
        ("Required by ADR 4", [("conclusion", "adr 4")]),
        ("Extends ADR 4", [("related_to", "adr 4")]),
        ("H\u00e4ngt ab von ADR 7", [("premise", "adr 7")]),
        ("Se basa en ADR 7", [("premise", "adr 7")]),
        ("\u0417\u0430\u0432\u0438\u0441\u0438\u0442 \u043e\u0442 ADR 7", [("premise", "adr 7")]),
        ("ADR-0005 \u306b\u4f9d\u5b58\u3059\u308b", [("premise", "adr 0005")]),
        ("not based on ADR-9", []),
        ("Requires 3 approvals", []),
        ("Clarifies ADR 4.", [("related_to", "adr 4")]),
        ("partially supersedes ADR-4", [("related_to", "adr 4")]),
        ("Ersetzt durch ADR 7.", [("superseded_by", "adr 7")]),
        ("Remplac\u00e9e par l'ADR-7", []),
        ("Remplac\u00e9e par ADR-7", [("superseded_by", "adr 7")]),
        ("Reemplaza a: ADR-001", [("supersedes", "adr 001")]),
        ("Substitu\u00edda por ADR 7", [("superseded_by", "adr 7")]),
        ("Sostituito da ADR 7", [("superseded_by", "adr 7")]),
        ("Vervangen door ADR 7", [("superseded_by", "adr 7")]),
        ("Zast\u0105piona przez ADR 7", [("superseded_by", "adr 7")]),
        (
            "\u0417\u0430\u043c\u0435\u043d\u0435\u043d\u043e \u043d\u0430 ADR 7",
            [("superseded_by", "adr 7")],
        ),
        (
            "ADR-0005 \u306b\u7f6e\u304d\u63db\u3048\u3089\u308c\u305f",
            [("superseded_by", "adr 0005")],
        ),
        (
            "replaced by [5](https://example.org/a/0005-x.md)",
            [("superseded_by", "/0005-x.md")],
        ),
        ("Supersedes: None (extends ADR-0001)", [("related_to", "adr 0001")]),
        ("Supersedes: none", []),
        ("Supersedes: n/a", []),
        ("Supersedes: -", []),
        ("Supersedes 3 old scripts", []),
        ("Supersedes version 1.0.78-0", []),
        ("Updates 2024-05-06", []),
        ("Superseded by #123", []),
        ("Superseded by [RFC](https://example.org/5)", []),
        ("will be superseded by ADR-9", []),
        ("not superseded by ADR-9", []),
        ("may replace ADR-9", []),
    ],
)
def test_a_relation_is_a_word_with_a_record_right_after_it(text, edges):
    """Words of any language count, and no other number of a text does."""
    assert shorten(text) == edges


@pytest.mark.parametrize(
    ("name", "relation"),
    [
        ("superseded-by", "superseded_by"),
        ("supersededBy", "superseded_by"),
        ("Reemplaza a", "supersedes"),
        ("amends", "premise"),
        ("dependsOn", "premise"),
        ("title", ""),
    ],
)
def test_a_key_may_be_a_relation(name, relation):
    """The words of relations are names of keys, in any spelling."""
    assert record_words.find_relation(name) == relation


def test_a_key_of_another_language_says_how_its_dates_begin():
    """Only English and Japanese dates in numbers may begin with something else than the day."""
    for name, is_day_first in (("Fecha", True), ("Date", False), ("Data", True)):
        assert record_words.find_key(name, "date").is_day_first == is_day_first


@given(st.text(alphabet="ADR-0123 [](){}<>.,;/#|*_`abceprsuyd\n", max_size=300))
def test_any_text_has_relations_or_none(text):
    """Nothing that a record may hold raises."""
    for edge in record_words.find_edges(f"Superseded by {text}"):
        assert edge.target.path or edge.target.number
