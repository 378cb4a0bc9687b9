from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memtool.store.history import _matches

LINES = st.lists(st.sampled_from([b"a", b"b", b"c", b""]), max_size=12)


@given(LINES, LINES)
def test_matched_lines_are_equal_and_in_order(before: list[bytes], after: list[bytes]) -> None:
    """Every pair holds the same line, and no line is matched twice."""
    pairs = sorted(_matches(before, after))
    assert all(before[old] == after[new] for old, new in pairs)
    assert [new for _old, new in pairs] == sorted({new for _old, new in pairs})
    assert len({old for old, _new in pairs}) == len(pairs)


@given(LINES)
def test_an_unchanged_file_is_matched_whole(lines: list[bytes]) -> None:
    """Nothing of a file that did not change counts as new."""
    assert sorted(_matches(lines, lines)) == [(n, n) for n in range(len(lines))]
