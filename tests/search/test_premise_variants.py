"""What rests on what, over thousands of variants: each answer is expected by construction.

A variant is an event that happens to a premise, a settling of the conclusion, the shape of what
rests on it, and the edges between them. The query of `premises_sql` must agree with all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import cycle
from typing import NamedTuple

import pytest
from conftest import NOW, Sandbox, make_memory, make_tree
from hypothesis import given
from hypothesis import strategies as st
from premises_sql import find_causes

from memtool.index import index
from memtool.memory import timestamps
from memtool.memory.drift import BROKEN, Drift
from memtool.memory.memory import FieldValue, Memory
from memtool.search.unsettled import Unsettled
from memtool.store.state import close_shared
from memtool.store.tree import Record, Tree

NOW_S = timestamps.parse(NOW)
TODAY = NOW[:10]
DELETED = {"at": "2026-02-23T00:00:00Z", "by": "ada", "reason": "wrong", "was": "confirmed"}
OLD = "2025-01-01T00:00:00Z"

Fields = dict[str, FieldValue]
SOURCE, DERIVED, BOTH = "source", "derived_from", "both"
EDGES = (SOURCE, DERIVED, BOTH)


def rest_on(*premises: str, edge: str = SOURCE) -> Fields:
    """Return the fields of a memory that rests on others by one kind of edge."""
    cited = tuple(f"memory:{premise}" for premise in premises) if edge != DERIVED else ()
    fields: Fields = {"source": ("human:Ada", *cited)}
    return fields if edge == SOURCE else fields | {"derived_from": premises}


def make(id_: str, **fields: FieldValue) -> Memory:
    body = fields.pop("body", f"What {id_} says.\n")
    if fields.get("status") == "deleted":
        fields["deleted"] = DELETED
    return make_memory(id_, str(body), **fields)


def replace(id_: str, *olds: str, **fields: FieldValue) -> Memory:
    return make(id_, supersedes=olds, **fields)


class Event(NamedTuple):
    """What became of `p`: the causes of what rests on it, and those after these are accepted."""

    memories: list[Memory]
    causes: AbstractSet[str] = frozenset()
    after: AbstractSet[str] = frozenset()


P = make("p")
WORDS = {"title": "Title of p", "body": "What p says.\n"}
EVENTS: dict[str, Event] = {
    "nothing": Event([P]),
    "superseded": Event([P, replace("n", "p")], {"memory:n"}),
    "superseded twice": Event([P, replace("n", "p"), replace("m", "n")], {"memory:m"}),
    "superseded by a candidate": Event([P, replace("n", "p", status="candidate")]),
    "superseded by a candidate that is superseded": Event(
        [P, replace("n", "p", status="candidate"), replace("m", "n")], {"memory:m"}
    ),
    "the superseding one is forgotten": Event([P, replace("n", "p", status="deleted")]),
    "the superseding one is deprecated": Event(
        [P, replace("n", "p", status="deprecated")], {"memory:n"}, {"without:n"}
    ),
    "the superseding one is archived": Event(
        [P, replace("n", "p", status="archived")], {"memory:n"}
    ),
    "the superseding one has ended": Event(
        [P, replace("n", "p", valid_through="2026-02-01")], {"memory:n"}, {"without:n"}
    ),
    "the superseding one rests on what is out": Event(
        [P, replace("n", "p", **rest_on("o")), make("o", status="deprecated")],
        {"memory:n"},
        {"without:o"},
    ),
    "undone in the old words": Event([P, replace("n", "p"), replace("m", "n", **WORDS)]),
    "the same words again": Event([P, replace("n", "p", **WORDS)]),
    "the same words, wrapped": Event(
        [P, replace("n", "p", title="Title of p", body="What\np says.\n")]
    ),
    "the same words, deprecated": Event(
        [P, replace("n", "p", status="deprecated", **WORDS)], {"without:n"}
    ),
    "two heads": Event([P, replace("n", "p"), replace("m", "p")], {"memory:m", "memory:n"}),
    "two heads, one forgotten": Event(
        [P, replace("n", "p"), replace("m", "p", status="deleted")], {"memory:n"}
    ),
    "two heads, one in the same words": Event(
        [P, replace("n", "p", **WORDS), replace("m", "p")], {"memory:m"}
    ),
    "two heads, resolved": Event(
        [P, replace("n", "p"), replace("m", "p"), replace("o", "m", "n")], {"memory:o"}
    ),
    "forgotten": Event([make("p", status="deleted")], {"without:p"}),
    "deprecated": Event([make("p", status="deprecated")], {"without:p"}),
    "archived": Event([make("p", status="archived")]),
    "ended": Event([make("p", valid_through="2026-02-25")], {"without:p"}),
    "ended, then archived": Event(
        [make("p", valid_through="2026-02-25", status="archived")], {"without:p"}
    ),
    "ends today": Event([make("p", valid_through=TODAY)]),
    "ends later": Event([make("p", valid_through="2026-03-25")]),
    "a state past its days": Event([make("p", type="state", timestamp=OLD)]),
    "progress past its days": Event([make("p", category="task_progress", timestamp=OLD)]),
    "a candidate past its days": Event([make("p", status="candidate", timestamp=OLD)]),
    "due for review": Event([make("p", timestamp=OLD)]),
    "pinned": Event([make("p", status="pinned", timestamp=OLD)]),
    "cites a commit that is gone": Event([make("p", source=("commit:0123456789abcdef",))]),
    "not in the tree": Event([], {"without:p"}),
    "not in the tree, and superseded": Event([replace("n", "p")], {"memory:n"}),
    "a circle of two": Event([replace("p", "n"), replace("n", "p")], {"without:p"}),
    "a circle of three": Event(
        [replace("p", "n"), replace("n", "m"), replace("m", "p")], {"without:p"}
    ),
    "supersedes itself": Event([replace("p", "p")], {"without:p"}),
    "a circle with a way out": Event(
        [replace("p", "n"), replace("n", "p"), replace("m", "p")], {"memory:m"}
    ),
    "rests on what is out": Event(
        [make("p", **rest_on("o")), make("o", status="deprecated")], {"without:o"}
    ),
    "rests on what is out, and is settled": Event(
        [make("p", settled_on=("without:o",), **rest_on("o")), make("o", status="deprecated")]
    ),
    "rests on what is out, and is superseded": Event(
        [make("p", **rest_on("o")), make("o", status="deprecated"), replace("n", "p")],
        {"memory:n"},
    ),
    "rests on what is out, and is deprecated": Event(
        [make("p", status="deprecated", **rest_on("o")), make("o", status="deprecated")],
        {"without:p"},
    ),
}


def swap(cause: str) -> str:
    """Return the cause of the other kind about the same memory."""
    kind, _colon, id_ = cause.partition(":")
    return f"{'without' if kind == 'memory' else 'memory'}:{id_}"


NOTHING, ACCEPTED = "not settled", "accepted"
SETTLINGS: dict[str, Callable[[Event], tuple[Fields, set[str]]]] = {
    NOTHING: lambda event: ({}, event.causes),
    ACCEPTED: lambda event: ({"settled_on": tuple(sorted(event.causes))}, event.after),
    "plainly confirmed later": lambda event: (
        {"checked": {"at": "2026-02-28T00:00:00Z", "by": "ada"}},
        event.causes,
    ),
    "accepted what is gone": lambda event: (
        {"settled_on": ("memory:gone", "without:gone")},
        event.causes,
    ),
    "accepted the other kind": lambda event: (
        {"settled_on": tuple(swap(cause) for cause in sorted(event.causes))},
        event.causes,
    ),
}
Answer = tuple[list[Memory], dict[str, AbstractSet[str]]]


def chain(length: int) -> Callable[[Fields, set[str], Event, str], Answer]:
    def build(settled: Fields, causes: set[str], _event: Event, edge: str) -> Answer:
        memories = [make("c", **rest_on("p", edge=edge), **settled)]
        for number in range(length):
            memories.append(make(f"r{number}", **rest_on(memories[-1].id, edge=edge)))
        return memories, {memory.id: causes for memory in memories}

    return build


def conclude(*above: tuple[str, tuple[str, ...]], **fields: FieldValue):
    """Return a shape: `c` with fields of its own, and what rests on it; all have its causes."""

    def build(settled: Fields, causes: set[str], _event: Event, edge: str) -> Answer:
        memories = [make("c", **rest_on("p", edge=edge), **(settled | fields))]
        memories += [make(id_, **rest_on(*premises, edge=edge)) for id_, premises in above]
        is_listed = fields.get("status") != "archived"
        ids = [memory.id for memory in memories]
        return memories, dict.fromkeys(ids if is_listed else ids[1:], causes)

    return build


def rest_on_both(settled: Fields, causes: set[str], event: Event, edge: str) -> Answer:
    """What rests on the conclusion and on its premise too has not settled the latter."""
    c = make("c", **rest_on("p", edge=edge), **settled)
    r = make("r", **rest_on("c", "p", edge=edge))
    return [c, r], {"c": causes, "r": causes | event.causes}


def settle_above(settled: Fields, causes: set[str], event: Event, edge: str) -> Answer:
    c = make("c", **rest_on("p", edge=edge), **settled)
    r = make("r", settled_on=tuple(sorted(event.causes)), **rest_on("c", edge=edge))
    return [c, r], {"c": causes, "r": causes - event.causes}


def have_sound_premise(settled: Fields, causes: set[str], _event: Event, edge: str) -> Answer:
    c = make("c", **rest_on("q", "p", edge=edge), **settled)
    return [make("q"), c], {"c": causes, "q": set()}


def end_in_circle(settled: Fields, causes: set[str], _event: Event, edge: str) -> Answer:
    c = make("c", **rest_on("r", "p", edge=edge), **settled)
    return [c, make("r", **rest_on("c", edge=edge))], {"c": causes, "r": causes}


def cite_itself(settled: Fields, causes: set[str], _event: Event, edge: str) -> Answer:
    return [make("c", **rest_on("c", "p", edge=edge), **settled)], {"c": causes}


def correct(settled: Fields, _causes: set[str], _event: Event, edge: str) -> Answer:
    """The correction cites what it corrects; what rests on that is told of the correction."""
    c = make("c", **rest_on("p", edge=edge), **settled)
    d = replace("d", "c", **rest_on("c", edge=edge))
    return [c, d, make("r", **rest_on("c", edge=edge))], {"d": set(), "r": {"memory:d"}}


def forget(_settled: Fields, _causes: set[str], _event: Event, edge: str) -> Answer:
    c = make("c", status="deleted", **rest_on("p", edge=edge))
    return [c, make("r", **rest_on("c", edge=edge))], {"r": {"without:c"}}


def digest(_settled: Fields, _causes: set[str], _event: Event, edge: str) -> Answer:
    c = make("c", source=("tool:digest/abc",), derived_from=("p",))
    return [c, make("r", **rest_on("c", edge=edge))], {"c": set(), "r": set()}


def relate(_settled: Fields, _causes: set[str], _event: Event, _edge: str) -> Answer:
    """These edges carry nothing, nor do links in the text."""
    relations = ("related_to", "parent", "blocked_by", "resolves")
    memories = [make(f"c{n}", **{key: ("p",)}) for n, key in enumerate(relations)]
    memories.append(make("c4", body="See [[p]].\n"))
    return memories, {memory.id: set() for memory in memories}


SHAPES: dict[str, Callable[[Fields, set[str], Event, str], Answer]] = {
    "direct": chain(0),
    "depth 2": chain(1),
    "depth 3": chain(2),
    "depth 8": chain(7),
    "archived": conclude(("r", ("c",)), status="archived"),
    "candidate": conclude(("r", ("c",)), status="candidate"),
    "pinned": conclude(status="pinned"),
    "diamond": conclude(("a", ("c",)), ("b", ("c",)), ("r", ("a", "b"))),
    "a sound premise too": have_sound_premise,
    "on both": rest_on_both,
    "settled above": settle_above,
    "circle": end_in_circle,
    "itself": cite_itself,
    "corrected": correct,
    "forgotten": forget,
    "digest": digest,
    "related": relate,
}


class Variant(NamedTuple):
    name: str
    memories: list[Memory]
    expected: dict[str, set[str]]
    """The causes of each memory that counts, perhaps none."""


def list_variants(event_name: str, event: Event) -> Iterator[Variant]:
    edges = cycle(EDGES)
    for settling, settle in SETTLINGS.items():
        settled, causes = settle(event)
        for shape, build in SHAPES.items():
            edge = next(edges)
            memories, expected = build(settled, causes, event, edge)
            name = f"{event_name}, {settling}, {shape}, {edge}"
            yield Variant(name, [*event.memories, *memories], expected)


def make_records(*memories: Memory) -> Tree:
    return make_tree(*(Record(each, f".memory/{each.id}.md", "") for each in memories))


class Witness:
    """Says that the code of some memories is gone."""

    def __init__(self, broken: AbstractSet[str]) -> None:
        self.broken = broken

    def __call__(self, record: Record) -> Drift | None:
        return Drift(BROKEN, "") if record.id in self.broken else None

    def find(self, records: Iterable[Record]) -> dict[str, Drift]:
        return {record.path: drift for record in records if (drift := self(record))}


def collect(unsettled: Unsettled) -> dict[str, set[str]]:
    return {id_: set(causes) for id_, causes in unsettled.all.items()}


@pytest.mark.parametrize("event", EVENTS)
def test_each_variant(event: str):
    """Asked alone, unsettled of all, and by the query of the oracle."""
    for variant in list_variants(event, EVENTS[event]):
        tree = make_records(*variant.memories)
        answer = collect(Unsettled(tree, NOW_S))
        for id_, causes in variant.expected.items():
            assert answer.get(id_, set()) == causes, variant.name
            assert set(Unsettled(tree, NOW_S).find([id_]).get(id_, ())) == causes, variant.name
        digests = {"c"} if ", digest," in variant.name else set()
        rows = [memory for memory in variant.memories if memory.id not in digests]
        if not digests:
            assert find_causes(rows, today=TODAY) == answer, variant.name


BROKEN_EVENTS: dict[str, tuple[Event, str]] = {
    "broken": (Event([P], {"without:p"}), "p"),
    "the superseding one is broken": (
        Event([P, replace("n", "p")], {"memory:n"}, {"without:n"}),
        "n",
    ),
    "broken, and rests on what is out": (
        Event(
            [make("p", **rest_on("o")), make("o", status="deprecated")],
            {"without:o", "without:p"},
        ),
        "p",
    ),
    "the same words, broken": (Event([P, replace("n", "p", **WORDS)], {"without:n"}), "n"),
    "accepted, broken, and rests on what is out": (
        Event(
            [P, replace("n", "p", **rest_on("o")), make("o", status="deprecated")],
            {"memory:n"},
            {"without:n", "without:o"},
        ),
        "n",
    ),
}


@pytest.mark.parametrize("name", BROKEN_EVENTS)
def test_each_variant_of_code_that_is_gone(name: str):
    event, broken = BROKEN_EVENTS[name]
    for variant in list_variants(name, event):
        unsettled = Unsettled(make_records(*variant.memories), NOW_S, Witness({broken}))  # type: ignore[arg-type]
        for id_, causes in variant.expected.items():
            assert set(unsettled.find([id_]).get(id_, ())) == causes, variant.name
            assert set(unsettled.all.get(id_, ())) == causes, variant.name


def test_there_are_enough_variants():
    assert sum(1 for item in EVENTS.items() for _variant in list_variants(*item)) >= 400


def rename(memory: Memory, prefix: str) -> Memory:
    """Return a memory whose id begins with a prefix, and all ids that it names."""
    fields: Fields = {}
    for key, value in memory.fields.items():
        if key in ("source", "settled_on"):
            parts = [item.partition(":") for item in value]
            names = ("memory", "without")
            value = tuple(  # noqa: PLW2901  # the same key
                f"{kind}:{prefix}{target}" if kind in names else f"{kind}:{target}"
                for kind, _colon, target in parts
            )
        elif isinstance(value, tuple):
            value = tuple(prefix + item for item in value)  # noqa: PLW2901
        elif key == "id":
            value = prefix + str(value)  # noqa: PLW2901
        fields[key] = value
    return Memory(fields, memory.body.replace("[[p]]", f"[[{prefix}p]]"))


REAL_SHAPES = ("depth 3", "archived", "on both", "corrected", "digest", "related")


@pytest.mark.slow
def test_variants_in_files(sandbox: Sandbox):
    """The index knows each of them by the files of one repository."""
    expected: set[str] = set()
    number = 0
    for name, event in EVENTS.items():
        for variant in list_variants(name, event):
            _event, settling, shape, _edge = variant.name.rsplit(", ", 3)
            if settling not in (NOTHING, ACCEPTED) or shape not in REAL_SHAPES:
                continue
            prefix = f"v{number:03}-"
            number += 1
            for memory in variant.memories:
                renamed = rename(memory, prefix)
                fields = {key: value for key, value in renamed.fields.items() if key != "id"}
                sandbox.memory(renamed.id, renamed.body, **fields)
            named = {memory.id for memory in variant.memories}
            expected |= {prefix + id_ for id_, causes in variant.expected.items() if causes}
            premises = {"p", "n", "m", "o"} & named
            answer = collect(Unsettled(make_records(*variant.memories), NOW_S))
            expected |= {prefix + id_ for id_ in premises if id_ in answer}
    sandbox.commit()
    assert number >= 400
    rows = sandbox.json("list", "is:unsettled", "--limit", "10000")["memories"]
    assert {row["id"] for row in rows} == expected


IDS = ("m0", "m1", "m2", "m3", "m4", "m5", "m6", "gone")
STATUSES = ("confirmed",) * 5 + ("candidate", "archived", "deprecated", "deleted", "pinned")
SOME_IDS = st.lists(st.sampled_from(IDS), max_size=2, unique=True).map(tuple)
CAUSES = st.builds("{}:{}".format, st.sampled_from(("memory", "without")), st.sampled_from(IDS))


@st.composite
def draw_memory(draw: st.DrawFn, id_: str) -> Memory:
    """A memory of a random graph, with circles of all kinds."""
    ends = draw(st.sampled_from(("", "", "", "2026-02-01", "2026-04-01")))
    lists = {
        "supersedes": draw(st.one_of(st.just(()), st.just(()), SOME_IDS)),
        "settled_on": draw(st.lists(CAUSES, max_size=3, unique=True).map(tuple)),
        "derived_from": draw(SOME_IDS),
    }
    words = draw(st.sampled_from((id_, id_, "the same")))
    fields: Fields = {key: value for key, value in lists.items() if value}
    fields |= {"valid_through": ends} if ends else {}
    cited = tuple(f"memory:{premise}" for premise in draw(SOME_IDS))
    return make(
        id_,
        title=f"Title of {words}",
        body=f"What {words} says.\n",
        status=draw(st.sampled_from(STATUSES)),
        source=("human:Ada", *cited),
        **fields,
    )


GRAPHS = st.tuples(*(draw_memory(id_) for id_ in IDS[:-1]))


@given(GRAPHS, st.lists(st.sampled_from(IDS), max_size=3), st.sets(st.sampled_from(IDS)))
def test_a_random_graph_is_as_the_oracle_says(
    graph: tuple[Memory, ...], ids: list[str], broken: set[str]
):
    tree, witness = make_records(*graph), Witness(broken)
    every = collect(Unsettled(tree, NOW_S, witness))  # type: ignore[arg-type]
    assert every == find_causes(graph, today=TODAY, broken=broken)
    unsettled = Unsettled(tree, NOW_S, witness)  # type: ignore[arg-type]
    answer = {
        id_: set(causes) for id_, causes in unsettled.find(ids).items() if unsettled.is_listed(id_)
    }
    assert answer == {id_: every[id_] for id_ in ids if id_ in every}
    for id_, causes in unsettled.find(IDS).items():
        for name in causes:
            lowest = unsettled.find_lowest(id_, name)
            assert name in unsettled.find([lowest])[lowest]


@pytest.mark.slow
@given(st.data())
def test_the_index_follows_each_change(sandbox: Sandbox, data: st.DataObject):
    """After memories came, changed and went, it answers as one that is built anew."""
    folder = ".memory/decision/2026-02"
    for id_ in IDS:
        (sandbox.path / folder / f"dec-{id_}.md").unlink(missing_ok=True)
    (sandbox.path / folder).mkdir(parents=True, exist_ok=True)
    present: dict[str, Memory] = {}
    for _step in range(2):
        for id_ in data.draw(st.lists(st.sampled_from(IDS[:-1]), min_size=1, unique=True)):
            if present and data.draw(st.booleans()):
                present.pop(id_, None)
                (sandbox.path / folder / f"dec-{id_}.md").unlink(missing_ok=True)
                continue
            memory = present[id_] = rename(data.draw(draw_memory(id_)), "dec-")
            fields = {key: value for key, value in memory.fields.items() if key != "id"}
            sandbox.memory(memory.id, memory.body, **fields)
        answers = []
        for is_built_anew in (False, True):
            context = sandbox.context()
            if is_built_anew:
                index.drop(context.repository)
            unsettled = Unsettled(index.open(context), NOW_S)
            some = unsettled.find(sorted(memory.id for memory in present.values()))
            listed = {i: set(causes) for i, causes in some.items() if unsettled.is_listed(i)}
            answers += [listed, collect(Unsettled(index.open(context), NOW_S))]
            close_shared()
        expected = find_causes(present.values(), today=TODAY)
        assert answers == [expected] * 4
