from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.errors import MemtoolError
from memtool.search import evaluation
from memtool.search.evaluation import Golden

ROW = {"qid": "q1", "query": "where?", "expect": ["dec-a"]}


def line(**changes: object) -> bytes:
    row = {key: value for key, value in (ROW | changes).items() if value is not ...}
    return json.dumps(row).encode() + b"\n"


def test_a_line_is_a_golden_query() -> None:
    """All keys are read; those that may be left out are empty."""
    data = line() + b"\n  \n" + line(qid="q2", files=["a.py"], as_of="2026-02-22")
    assert evaluation.parse(data, "g") == (
        Golden("q1", "where?", ("dec-a",), (), "", 1),
        Golden("q2", "where?", ("dec-a",), ("a.py",), "2026-02-22", 4),
    )


def test_marks_and_line_ends_of_other_systems_are_fine() -> None:
    """A byte-order mark and carriage returns are no part of the query."""
    data = b"\xef\xbb\xbf" + line().replace(b"\n", b"\r\n")
    assert evaluation.parse(data, "g")[0].query == "where?"


def test_what_is_expected_twice_counts_once() -> None:
    """The order stays, the repetition goes."""
    (one,) = evaluation.parse(line(expect=["dec-b", "dec-a", "dec-b"]), "g")
    assert one.expect == ("dec-b", "dec-a")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "g:1: is not JSON: Expecting property name"),
        (line() + b"nonsense\n", "g:2: is not JSON: Expecting value"),
        (b"\xff\n", "g:1: is not JSON: it is not UTF-8"),
        (b"[" * 100_000, "g:1: is not JSON"),
        (b"[1]\n", "g:1: is not a JSON object"),
        (line(qid=...), "g:1: qid must be a text"),
        (line(qid=7), "g:1: qid must be a text"),
        (line(qid="a\tb"), "g:1: qid must not hold a tab"),
        (line(query=" "), "g:1: query must not be empty"),
        (line(expect="dec-a"), "g:1: expect must be a list of texts"),
        (line(expect=[]), "g:1: expect must not be empty"),
        (line(expect=[1]), "g:1: expect must be a list of texts"),
        (line(files="a.py"), "g:1: files must be a list of texts"),
        (line(as_of=3), "g:1: as_of must be a text"),
        (line(expects=["x"]), "g:1: 'expects' is not one of qid, query, expect, files, as_of"),
        (line() + b"\n" + line(), "g:3: qid 'q1' is that of line 1"),
        (b"", "there is no golden query in g"),
        (b"\n \n", "there is no golden query in g"),
    ],
)
def test_a_bad_line_is_named_with_its_number(data: bytes, message: str) -> None:
    """Whoever wrote it sees where it is and what is wrong."""
    with pytest.raises(MemtoolError) as caught:
        evaluation.parse(data, "g")
    assert caught.value.message.startswith(message)
    assert (caught.value.code, bool(caught.value.hint)) == ("bad-golden", True)


@given(st.binary(max_size=100))
def test_no_bytes_give_a_traceback(data: bytes) -> None:
    """Any file is golden queries or one clear error."""
    with suppress(MemtoolError):
        assert evaluation.parse(data, "g")
