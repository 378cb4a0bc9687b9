"""The lists of words by which detectors judge, from `data/words.tsv`, which says what each is."""

from __future__ import annotations

from memtool import tables

_LISTS = tables.group_rows("redaction/words")


def read_list(name: str) -> frozenset[str]:
    """Return the words of a list."""
    return frozenset(_LISTS[name])
