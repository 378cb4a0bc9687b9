"""Visibility: one memory, asked about by each reader, is shown or has the reason of that reader."""

from __future__ import annotations

import pytest
from conftest import make_memory

from memtool.memory import lifecycle, timestamps, visibility
from memtool.memory.fields import DEFAULT_CATEGORIES
from memtool.memory.memory import FieldValue

NOW = timestamps.parse("2026-02-23T00:00:00Z")
LABELS = frozenset({"private"})


@pytest.mark.parametrize(
    ("fields", "newer", "searched", "injected", "shared"),
    [
        ({"status": "confirmed"}, (), "", "", ""),
        ({"status": "candidate"}, (), "", "", "nobody confirmed it"),
        ({"status": "deprecated"}, (), "", "deprecated", ""),
        ({"status": "archived"}, (), "archived", "archived", "it is archived"),
        (
            {"privacy": ("Private",)},
            (),
            "",
            "labelled Private (inject.exclude_privacy)",
            "it is labelled Private",
        ),
        (
            {"status": "confirmed"},
            ("dec-b", "dec-c"),
            "superseded by dec-b, dec-c",
            "superseded by dec-b, dec-c",
            "it is superseded",
        ),
        ({"valid_through": "2001-01-01"}, (), "expired on 2001-01-01", "expired", ""),
        ({"valid_from": "2999-01-01"}, (), "pending, valid from 2999-01-01", "pending", ""),
    ],
)
def test_each_reader_has_its_own_rule(
    fields: dict[str, FieldValue],
    newer: tuple[str, ...],
    searched: str,
    injected: str,
    shared: str,
) -> None:
    """A search for words, an agent's context and the fleet hide different things on purpose."""
    memory = make_memory(**fields)
    state = lifecycle.find_state(memory, NOW)
    assert (
        visibility.hidden_reason(memory, state, newer, DEFAULT_CATEGORIES),
        visibility.find_objection(memory, newer, LABELS, NOW, DEFAULT_CATEGORIES),
        visibility.explain_kept_back(memory, LABELS, is_head=not newer),
    ) == (searched, injected, shared)


def test_a_page_may_show_what_is_over_but_nothing_forgotten_or_private() -> None:
    """A site has the history too."""
    shown = [
        visibility.is_on_pages(make_memory(**fields), LABELS)
        for fields in ({"status": "archived"}, {"status": "deleted"}, {"privacy": ("PRIVATE",)})
    ]
    assert shown == [True, False, False]


def test_less_trust_than_wanted_is_told() -> None:
    """As much trust as wanted is enough."""
    assert visibility.find_distrust("trusted", "trusted") == ""
    assert visibility.find_distrust("local", "trusted") == "its trust is local, less than trusted"
