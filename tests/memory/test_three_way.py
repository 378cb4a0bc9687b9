"""Three-way merges of lifecycle keys: the same in any order, and of each side what it meant."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import make_memory
from hypothesis import given
from hypothesis import strategies as st

from memtool.memory import document, three_way
from memtool.memory.fields import DEFAULT_CATEGORIES
from memtool.memory.memory import Fields
from memtool.memory.three_way import Sides, prepare_sides, settle, split_sides

MONDAY = {"at": "2026-03-02T09:00:00Z", "by": "Ada"}
TUESDAY = {"at": "2026-03-03T09:00:00Z", "by": "Bob"}
SEEN = {"saw": "src/x.py=3f2a91c0de12"}


def deleted(at: dict[str, str], reason: str = "", was: str = "confirmed") -> dict[str, Any]:
    table = at | ({"reason": reason} if reason else {}) | {"was": was}
    return {"status": "deleted", "deleted": table}


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        pytest.param(
            {},
            {"status": "pinned"},
            {"status": "archived"},
            {"status": "archived"},
            id="the more restrictive status",
        ),
        pytest.param(
            {"status": "archived"},
            {},
            {"status": "archived", "tags": ("a",)},
            {"tags": ("a",)},
            id="what only one side changed, as a restoring",
        ),
        pytest.param(
            {"checked": SEEN},
            {"checked": MONDAY | SEEN},
            {"checked": TUESDAY | SEEN, "status": "pinned"},
            {"checked": TUESDAY | SEEN, "status": "pinned"},
            id="what its author saw and nobody had confirmed comes first",
        ),
        pytest.param(
            {},
            {"checked": SEEN},
            {"checked": MONDAY},
            {"checked": MONDAY},
            id="a confirmation without a record counts more than a record",
        ),
        pytest.param(
            {"status": "candidate"},
            {"status": "confirmed", "checked": MONDAY},
            {"status": "confirmed", "checked": TUESDAY},
            {"status": "confirmed", "checked": TUESDAY},
            id="the later confirmation",
        ),
        pytest.param(
            {},
            deleted(TUESDAY, "wrong"),
            deleted(MONDAY, "old"),
            deleted(MONDAY, "old | wrong"),
            id="the earlier deletion, both reasons",
        ),
        pytest.param(
            {},
            deleted(MONDAY, "old"),
            {"checked": TUESDAY},
            deleted(MONDAY, "old") | {"checked": TUESDAY},
            id="deleted and confirmed",
        ),
        pytest.param(deleted(MONDAY), {}, deleted(MONDAY), {}, id="restored on one side"),
        pytest.param(
            {"tags": ("a", "b")},
            {"tags": ("b", "z")},
            {"tags": ("a", "b", "c")},
            {"tags": ("b", "c", "z")},
            id="tags of both, without what one took away",
        ),
        pytest.param({"tags": ("a",)}, {}, {"tags": ()}, {}, id="no tag is left"),
        pytest.param(
            {},
            {"files": ("b.py", "c.py")},
            {"files": ("a.py", "b.py")},
            {"files": ("a.py", "b.py", "c.py")},
            id="files that both accepted",
        ),
        pytest.param(
            {"importance": "0.5"},
            {"importance": "0.6"},
            {"importance": "0.55"},
            {"importance": "0.6"},
            id="the larger importance",
        ),
        pytest.param(
            {},
            {"valid_through": "2026-05-01"},
            {"valid_through": "2026-04-30"},
            {"valid_through": "2026-04-30"},
            id="the earlier end",
        ),
        pytest.param(
            {"faded": TUESDAY},
            {},
            {"faded": MONDAY},
            {"faded": MONDAY},
            id="what one dropped and the other set",
        ),
        pytest.param(
            {"settled_on": ("memory:dec-m",)},
            {"settled_on": ("memory:dec-m", "without:dec-b"), "checked": MONDAY},
            {"settled_on": ("memory:dec-a", "memory:dec-m"), "checked": TUESDAY},
            {"settled_on": ("memory:dec-m", "memory:dec-a", "without:dec-b"), "checked": TUESDAY},
            id="the causes of both, in order",
        ),
        pytest.param(
            {"settled_on": ("memory:dec-m", "without:dec-b")},
            {"settled_on": ("without:dec-b",)},
            {"settled_on": ("memory:dec-m", "without:dec-b", "without:dec-b", "memory:dec-a")},
            {"settled_on": ("without:dec-b", "memory:dec-a")},
            id="without the cause that one took back, and each once",
        ),
        pytest.param(
            {"x-a": "1"},
            {"x-a": "2"},
            {"x-a": "1", "x-b": "3"},
            {"x-a": "2", "x-b": "3"},
            id="keys of the user's own, one side each",
        ),
    ],
)
def test_each_key_has_its_rule(base: Fields, ours: Fields, theirs: Fields, merged: Fields) -> None:
    """In both orders, and written into all three texts if it differs."""
    first = make_memory(**base)
    our_memory, their_memory = make_memory(**ours), make_memory(**theirs)
    for mine, other in ((our_memory, their_memory), (their_memory, our_memory)):
        sides = Sides(*(document.write(memory) for memory in (first, mine, other)))
        level = prepare_sides(sides)
        assert document.read(level.ours) == make_memory(**merged)
        assert level.base == level.ours == level.theirs


def test_an_own_key_that_both_changed_is_left_to_git() -> None:
    """Nobody knows what it means."""
    assert settle({"x-a": "1"}, {"x-a": "2"}, {"x-a": "3"}) == {}


def test_only_lines_of_keys_that_differ_change() -> None:
    """Comments, order, line ends and the byte-order mark of what people wrote stay."""
    text = (
        "\ufeff---\r\nid: dec-a\r\ntitle: 'A'  # why\r\ntags: [a]\r\n# mine\r\n"
        "timestamp: 2026-02-22T19:33:00Z\r\ntype: decision\r\nconfidence: low\r\n"
        "source: [human:Ada]\r\nstatus: candidate\r\n---\r\nbody\r\n"
    )
    ours = text.replace("candidate", "pinned")
    theirs = text.replace("candidate", "archived")
    level = prepare_sides(Sides(text.encode(), ours.encode(), theirs.encode()))
    without = text.replace("status: candidate\r\n", "")
    line = "confidence: low\r\n"
    assert level.ours.decode() == without.replace(line, f"status: archived\r\n{line}")


ONE = "---\nid: dec-a\n<<<<<<< HEAD\nstatus: pinned\n=======\nstatus: archived\n>>>>>>> two\n---\n"


@pytest.mark.parametrize(
    "text",
    [
        "no markers",
        "<<<<<<< a\nx\n",
        "<<<<<<< a\n=======\n",
        ">>>>>>> a\n",
        "<<<<<<< a\n<<<<<<< b\n=======\n>>>>>>> b\n",
        "<<<<<<< a\n=======\n=======\n>>>>>>> b\n",
        "<<<<<<< a\n||||||| o\n=======\n>>>>>>> b\n<<<<<<< a\n=======\n>>>>>>> b\n",
    ],
)
def test_markers_that_git_did_not_write_so_are_left_alone(text: str) -> None:
    """Half a conflict has no two sides."""
    assert split_sides(text.encode()) is None


def test_markers_are_taken_apart() -> None:
    """Into both sides, and the common text if git wrote it."""
    sides = split_sides(ONE.encode())
    assert sides is not None
    assert (sides.base, sides.ours) == (None, b"---\nid: dec-a\nstatus: pinned\n---\n")
    with_base = ONE.replace("=======", "||||||| 1234\nstatus: confirmed\n=======")
    sides = split_sides(with_base.encode())
    assert sides is not None
    assert sides.base == b"---\nid: dec-a\nstatus: confirmed\n---\n"


STATUSES = st.sampled_from(["", "candidate", "confirmed", "pinned", "deprecated", "archived"])
DAYS = st.integers(1, 9).map(lambda day: f"2026-03-0{day}T00:00:00Z")
TABLES = st.fixed_dictionaries(
    {"at": DAYS, "by": st.sampled_from(["Ada", "Bob"])}, optional={"reason": st.sampled_from("xyz")}
)
TAGS = st.lists(st.sampled_from("abcde"), unique=True).map(tuple)


@st.composite
def lifecycles(draw: st.DrawFn) -> Fields:
    fields: dict[str, Any] = {}
    if draw(st.booleans()):
        fields |= deleted(draw(TABLES))
    elif status := draw(STATUSES):
        fields["status"] = status
    if draw(st.booleans()):
        fields["checked"] = {k: v for k, v in draw(TABLES).items() if k != "reason"}
    if draw(st.booleans()):
        fields["importance"] = draw(st.sampled_from(["0.5", "0.50", "0.7", "1"]))
    for key in ("tags", "privacy"):
        if draw(st.booleans()):
            fields[key] = draw(TAGS)
    if draw(st.booleans()):
        fields["settled_on"] = tuple(f"memory:dec-{letter}" for letter in draw(TAGS))
    return fields


@pytest.mark.hypothesis
@given(lifecycles(), st.tuples(*[lifecycles()] * 3))
def test_order_makes_no_difference(base: Fields, branches: tuple[Fields, ...]) -> None:
    """Three branches, merged one after the other in any order, give the same bytes."""
    start = document.write(make_memory(**base))
    a, b, c = (document.write(make_memory(**fields)) for fields in branches)

    def merged(mine: bytes, other: bytes) -> bytes:
        level = prepare_sides(Sides(start, mine, other))
        assert level.base == level.ours == level.theirs
        document.read(level.ours)
        return level.ours

    results = {
        merged(merged(first, second), third)
        for first, second, third in (
            (a, b, c),
            (b, a, c),
            (c, a, b),
            (b, c, a),
        )
    }
    assert len(results) == 1


@given(lifecycles(), lifecycles())
def test_a_divided_file_is_read_as_both_sides_have_it(ours: Fields, theirs: Fields) -> None:
    """Whichever side is ours: the same memory, and every key in which they differ."""
    texts = [document.write(make_memory(**fields)).decode() for fields in (ours, theirs)]

    def marked(first: str, other: str) -> bytes:
        return f"<<<<<<< a\n{first}=======\n{other}>>>>>>> b\n".encode()

    read = [
        three_way.read_divided(marked(*pair), "", DEFAULT_CATEGORIES)
        for pair in (texts, texts[::-1])
    ]
    assert read[0] == read[1]
    assert read[0] is not None
    level = prepare_sides(Sides(None, texts[0].encode(), texts[1].encode()))
    assert document.read(level.ours) == read[0].memory


def test_a_divided_claim_is_not_read() -> None:
    """Nor is a custom key, a file that is not a memory, or half a conflict."""
    whole = document.write(make_memory()).decode()
    for ours, other in (("title: Title of dec-a", "title: Another"), ("It is so.", "It is not.")):
        text = f"<<<<<<< a\n{whole}=======\n{whole.replace(ours, other)}>>>>>>> b\n"
        assert three_way.read_divided(text.encode(), "", DEFAULT_CATEGORIES) is None
    assert three_way.read_divided(ONE.encode(), "", DEFAULT_CATEGORIES) is None
