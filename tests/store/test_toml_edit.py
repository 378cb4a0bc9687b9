"""Tests of editing TOML in place."""

from __future__ import annotations

import tomllib

import pytest

from memtool.errors import MemtoolError
from memtool.store.config import set_key

TEXT = """\
# settings
[inject] # the block
budget_tokens = 2000  # tokens

# the rest
[search]
limit = 5
"""


def test_a_changed_value_leaves_every_other_byte() -> None:
    """Comments, order and spacing are the user's."""
    expected = TEXT.replace("2000", "1200")
    assert expected == set_key(TEXT, "inject.budget_tokens", 1200)


def test_a_new_key_makes_its_table() -> None:
    """A key of a table that is not there yet is added with the table."""
    edited = set_key(TEXT, "trust.ref", "origin/main")
    assert edited.startswith(TEXT)
    assert tomllib.loads(edited)["trust"] == {"ref": "origin/main"}


def test_a_removed_key_takes_its_empty_table_along() -> None:
    """What nothing is left of goes; a comment is something."""
    assert "[search]" not in set_key(TEXT, "search.limit", None)
    assert "# the rest" in set_key(TEXT, "inject.budget_tokens", None)


def test_removing_what_is_not_there_changes_nothing() -> None:
    """An absent key is absent already, whatever level of it is missing."""
    assert set_key(TEXT, "search.sort", None) == TEXT
    assert set_key(TEXT, "nowhere.at.all", None) == TEXT


def test_a_part_may_hold_a_dot() -> None:
    """Parts given one by one are taken as they are."""
    edited = set_key("", ("node.js",), ["runtime", 'a "quote"'])
    assert tomllib.loads(edited) == {"node.js": ["runtime", 'a "quote"']}


@pytest.mark.parametrize("text", ["a = ", "a = 1\na = 2", "[a", "\x00"])
def test_broken_toml_is_refused(text: str) -> None:
    """A file that cannot be read is not written."""
    with pytest.raises(MemtoolError, match="not TOML"):
        set_key(text, "b", 1)


def test_a_value_is_not_made_a_table() -> None:
    """A key below a plain value is refused, and the value kept."""
    with pytest.raises(MemtoolError, match="not a table"):
        set_key("a = 1", "a.b", 2)
