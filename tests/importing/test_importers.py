"""Every importer over its folder in `data`: the memories in `data/expected` are what comes out."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from memtool.commands.import_ import import_

DATA = Path(__file__).parent / "data"
SETS: list[tuple[Literal["adr", "pep", "claude", "jsonl"], str, tuple[str, ...]]] = [
    ("adr", "adr-madr", ()),
    ("adr", "adr-nygard", ()),
    ("adr", "adr-log4brains", ()),
    ("pep", "peps", ()),
    ("claude", "agents", ()),
    ("jsonl", "records/records.jsonl", ("supersedes=supersedes",)),
]


@pytest.mark.parametrize(("kind", "place", "pairs"), SETS)
def test_each_form_becomes_the_expected_memories(sandbox, kind, place, pairs):
    """The files that an import writes equal those next to its input, byte for byte."""
    done = import_(sandbox.context(), kind, str(DATA / place), map=pairs)
    folder = DATA / "expected" / place.partition("/")[0]
    expected = {path.name: path.read_text() for path in folder.iterdir()}
    written = {
        Path(memory["path"]).name: (sandbox.path / memory["path"]).read_text()
        for memory in done.memories
    }
    assert written == expected


@pytest.mark.parametrize(("kind", "place", "pairs"), SETS)
def test_importing_again_changes_nothing(sandbox, kind, place, pairs):
    """A second import finds every memory unchanged, on another day too."""
    first = import_(sandbox.context(), kind, str(DATA / place), map=pairs)
    again = import_(
        sandbox.context(MEMTOOL_NOW="2027-01-01T00:00:00Z"), kind, str(DATA / place), map=pairs
    )
    assert (again.written, again.unchanged) == (0, first.written)
    assert again.skipped == first.skipped


@pytest.mark.parametrize(("kind", "place", "pairs"), SETS)
def test_what_was_imported_is_a_sound_tree(sandbox, kind, place, pairs):
    """Every written file reads back, and nothing dangles or turns in circles."""
    done = import_(sandbox.context(), kind, str(DATA / place), map=pairs)
    tree = sandbox.context().tree()
    assert len(tree.records) == done.written
    assert not tree.problems
    assert not tree.lineage.find_dangling()
    assert not tree.lineage.find_cycles()
