"""TOML: edits of settings that keep the comments."""

from __future__ import annotations

import tomllib

import pytest

from memtool.errors import MemtoolError
from memtool.store.config import BY_CATEGORY
from memtool.store.toml import rename_key, set_key

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
    """An empty table is removed, unless it has a comment."""
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


def test_a_number_becomes_the_default_of_a_table() -> None:
    """One category gets its own without another losing what was set, and back again."""
    text = "[inject]\nthreshold = 0.5\nbudget_tokens = 900\n"
    edited = set_key(text, "inject.threshold.decision", 0.2, BY_CATEGORY)
    assert tomllib.loads(edited)["inject"] == {
        "budget_tokens": 900,
        "threshold": {"default": 0.5, "decision": 0.2},
    }
    edited = set_key(edited, "inject.threshold", 0.7, BY_CATEGORY)
    assert tomllib.loads(edited)["inject"]["threshold"] == {"default": 0.7, "decision": 0.2}
    edited = set_key(edited, "inject.threshold", None, BY_CATEGORY)
    assert tomllib.loads(edited)["inject"]["threshold"] == {"decision": 0.2}
    assert "threshold" not in set_key(edited, "inject.threshold.decision", None, BY_CATEGORY)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[a]\nold = 1 # why\nx = 2\n", "[a]\nx = 2\nnew = 1 # why\n"),
        ("# c\n[a.old]\n# why\nk = 1\n", "# c\n\n[a.new]\n# why\nk = 1\n"),
        ("[a]\nold = 1\nnew = 2\n", "[a]\nnew = 2\n"),
        ("[a]\nx = 1\n", "[a]\nx = 1\n"),
    ],
)
def test_a_renamed_key_keeps_its_value_and_comment(before: str, after: str) -> None:
    """A value that the new name has already is kept instead."""
    assert rename_key(before, "a.old", "a.new") == after


def test_a_key_that_moves_takes_its_empty_table_along() -> None:
    """It goes into the other table, or makes it."""
    assert rename_key("[a]\nold = 1\n", "a.old", "b.new").strip() == "[b]\nnew = 1"
    assert rename_key("[b]\nx = 2\n[a]\nold = 1\n", "a.old", "b.new") == "[b]\nx = 2\nnew = 1\n"
