from __future__ import annotations

from conftest import make_memory

from memtool.gate import neighbours
from memtool.gate.neighbours import among
from memtool.store.tree import Record

TEXT = "Sessions live in Redis because the cookie store grew past four kilobytes.\n"


def asked(title: str) -> list[Record]:
    return [Record(make_memory("dec-new", TEXT, title=title), "", "")]


def test_a_phrase_that_everybody_uses_leads_nowhere():
    """Numbers of more than a thousand memories are passed over; the exact twin is still found."""
    records = [
        Record(make_memory(f"dec-{at}", TEXT, title="Sessions in Redis"), f"{at}.md", f"{at}")
        for at in range(1_100)
    ]
    (near,) = among(records).of(asked("Sessions on Redis"))
    assert near == []
    (near,) = among(records).of(asked("Sessions in Redis"))
    assert [one.is_exact for one in near] == [True] * neighbours.VERIFIED


def test_only_the_most_alike_are_compared_in_full():
    """Those that share most numbers come first; the exact one leads the answer."""
    words = TEXT.split()
    records = []
    for at in range(8):
        text = " ".join(words[at:]) + "\n"
        records.append(Record(make_memory(f"dec-{at}", text, title="Sessions in Redis"),
                              f"{9 - at}.md", f"{at}"))  # fmt: skip
    (near,) = among(records).of(asked("Sessions in Redis"))
    assert len(near) == neighbours.VERIFIED
    assert [one.record.id for one in near if one.is_exact] == ["dec-0"]
    assert near[0].is_exact
    assert {one.record.id for one in near} == {f"dec-{at}" for at in range(neighbours.VERIFIED)}


def test_nothing_has_no_neighbours():
    """An empty tree answers every question with nothing."""
    assert among(()).of(asked("Sessions in Redis")) == [[]]
    assert among(()).of([]) == []
