"""The field table: each key occurs once, has a known kind, and records when it may change."""

from __future__ import annotations

import itertools

import pytest
from conftest import make_memory

from memtool.memory import fields
from memtool.memory.fields import CATEGORIES, DEFAULT_BY_TYPE, DEFAULT_CATEGORIES, FIELDS, Field


def test_every_key_stands_once() -> None:
    """No two rows have the same name, and the look-ups hold every row."""
    names = [field.name for field in FIELDS]
    assert len(names) == len(set(names)) == len(fields.BY_NAME) == len(fields.ORDER)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_every_row_is_complete(field: Field) -> None:
    """A row has a known kind, a meaning, choices if it needs them, and a default among them."""
    assert field.kind in fields.KINDS
    assert field.doc
    assert bool(field.choices) == (field.kind in ("choice", "mapping"))
    assert not field.default or field.default in field.choices
    assert not field.block or field.kind in fields.LIST_KINDS


def test_required_keys_are_those_of_the_contract() -> None:
    """A memory needs an id, a moment, a type, a title, a confidence and a source."""
    assert set(fields.REQUIRED) == {"id", "timestamp", "type", "title", "source", "confidence"}


def test_what_may_change_is_lifecycle_governance_and_the_users_own() -> None:
    """Everything else is the claim, which a confirmed memory keeps."""
    mutable = {field.name for field in FIELDS if fields.is_mutable(field.name)}
    expected = {
        "status",
        "importance",
        "tags",
        "files",
        "valid_through",
        "privacy",
        "checked",
        "deleted",
        "retired",
        "faded",
        "learned",
        "settled_on",
        "conflicts_accepted",
    }
    assert expected == mutable
    assert fields.is_mutable("x-mine")
    assert not fields.is_mutable("xmine")
    assert not fields.is_mutable("unknown")


def test_relations_are_lists_of_ids() -> None:
    """Each relation is a key that holds ids."""
    assert {"ids"} == {fields.BY_NAME[name].kind for name in fields.RELATIONS}


def test_the_order_is_total() -> None:
    """Any two keys are ordered, the user's own after all of the table."""
    names = [*fields.BY_NAME, "x-a", "x-b"]
    for permutation in itertools.islice(itertools.permutations(names[-4:]), 24):
        assert sorted(permutation, key=fields.order) == names[-4:]
    assert sorted(set(names), key=fields.order) == names


def test_every_type_has_a_category_of_the_table() -> None:
    """A memory that is not a category gets one that exists."""
    assert set(DEFAULT_BY_TYPE) == set(fields.TYPES)
    for type_, category in DEFAULT_BY_TYPE.items():
        assert category in DEFAULT_CATEGORIES
        assert make_memory("a-b", type=type_).category == category


def test_categories_have_known_temporal_classes() -> None:
    """Each row of the category table says how long such knowledge lasts, in a known word."""
    assert all(row.temporal_class in fields.TEMPORAL_CLASSES for row in CATEGORIES)
    assert len(CATEGORIES) == len(DEFAULT_CATEGORIES)
