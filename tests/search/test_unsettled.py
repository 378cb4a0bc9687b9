"""What rests on what: each situation, asked of one memory and of all."""

from __future__ import annotations

import pytest
from conftest import NOW, Sandbox, make_memory, make_tree

from memtool.index import index
from memtool.memory import timestamps
from memtool.memory.memory import Memory
from memtool.search.unsettled import MAX_READ, Unsettled
from memtool.store.state import close_shared
from memtool.store.tree import Record, Tree

NOW_S = timestamps.parse(NOW)
DELETED = {"at": "2026-02-23T00:00:00Z", "by": "ada", "reason": "wrong", "was": "confirmed"}


def memory(id_: str, *premises: str, **fields: object) -> Memory:
    """Return a memory that rests on others and says something of its own."""
    sources = ("human:Ada", *(f"memory:{premise}" for premise in premises))
    body = fields.pop("body", f"What {id_} says.\n")
    return make_memory(id_, body, **({"source": sources} | fields))  # type: ignore[arg-type]


def tree_of(*memories: Memory) -> Tree:
    return make_tree(*(Record(each, f".memory/{each.id}.md", "") for each in memories))


def find_names(tree: Tree, id_: str) -> set[str]:
    """Return the causes of a memory, which must be the same asked alone and among all."""
    alone = set(Unsettled(tree, NOW_S).find([id_]).get(id_, ()))
    every = Unsettled(tree, NOW_S)
    if every.is_listed(id_):
        assert set(every.all.get(id_, ())) == alone
    else:
        assert id_ not in every.all
    return alone


P = memory("p")
C = memory("c", "p")
R = memory("r", "c")
SITUATIONS: dict[str, tuple[list[Memory], set[str]]] = {
    "sound": ([P, C], set()),
    "superseded": ([P, C, memory("n", supersedes=("p",))], {"memory:n"}),
    "superseded twice": (
        [P, C, memory("n", supersedes=("p",)), memory("m", supersedes=("n",))],
        {"memory:m"},
    ),
    "superseded by a candidate": (
        [P, C, memory("n", supersedes=("p",), status="candidate")],
        set(),
    ),
    "the superseding one is forgotten": (
        [P, C, memory("n", supersedes=("p",), status="deleted", deleted=DELETED)],
        set(),
    ),
    "undone in the old words": (
        [
            P,
            C,
            memory("n", supersedes=("p",)),
            memory("m", supersedes=("n",), title=P.title, body=P.body),
        ],
        set(),
    ),
    "the superseding one is deprecated": (
        [P, C, memory("n", supersedes=("p",), status="deprecated")],
        {"memory:n"},
    ),
    "accepted, and then deprecated": (
        [
            P,
            memory("c", "p", settled_on=("memory:n",)),
            memory("n", supersedes=("p",), status="deprecated"),
        ],
        {"without:n"},
    ),
    "two heads": (
        [P, C, memory("n", supersedes=("p",)), memory("m", supersedes=("p",))],
        {"memory:m", "memory:n"},
    ),
    "two heads, one accepted": (
        [
            P,
            memory("c", "p", settled_on=("memory:n",)),
            memory("n", supersedes=("p",)),
            memory("m", supersedes=("p",)),
        ],
        {"memory:m"},
    ),
    "two heads, both accepted, and resolved by a third": (
        [
            P,
            memory("c", "p", settled_on=("memory:m", "memory:n")),
            memory("n", supersedes=("p",)),
            memory("m", supersedes=("p",)),
            memory("o", supersedes=("m", "n")),
        ],
        {"memory:o"},
    ),
    "forgotten": ([memory("p", status="deleted", deleted=DELETED), C], {"without:p"}),
    "deprecated": ([memory("p", status="deprecated"), C], {"without:p"}),
    "archived": ([memory("p", status="archived"), C], set()),
    "past its category": (
        [memory("p", type="state", timestamp="2025-01-01T00:00:00Z"), C],
        set(),
    ),
    "past its end": ([memory("p", valid_through="2026-02-25"), C], {"without:p"}),
    "before its end": ([memory("p", valid_through="2026-03-25"), C], set()),
    "missing": ([C], {"without:p"}),
    "missing, and replaced": ([C, memory("n", supersedes=("p",))], {"memory:n"}),
    "settled": (
        [P, memory("c", "p", settled_on=("memory:n",)), memory("n", supersedes=("p",))],
        set(),
    ),
    "settled, and changed again": (
        [
            P,
            memory("c", "p", settled_on=("memory:n",)),
            memory("n", supersedes=("p",)),
            memory("m", supersedes=("n",)),
        ],
        {"memory:m"},
    ),
    "corrects what it cites": ([P, memory("c", "p", supersedes=("p",))], set()),
    "corrects what its premise became": (
        [P, memory("n", supersedes=("p",)), memory("c", "p", supersedes=("n",))],
        set(),
    ),
    "cites itself": ([memory("c", "c")], set()),
    "a circle": ([memory("c", "p"), memory("p", "c")], set()),
    "a circle with a cause": (
        [memory("c", "p"), memory("p", "c", "o"), memory("o", status="deprecated")],
        {"without:o"},
    ),
    "a circle of replacements": (
        [C, memory("p", supersedes=("n",)), memory("n", supersedes=("p",))],
        {"without:p"},
    ),
    "candidate": (
        [memory("p", status="deprecated"), memory("c", "p", status="candidate")],
        {"without:p"},
    ),
    "replaced itself": (
        [memory("p", status="deprecated"), C, memory("d", supersedes=("c",))],
        {"without:p"},
    ),
    "derived": (
        [memory("p", status="deprecated"), memory("c", derived_from=("p",))],
        {"without:p"},
    ),
    "related only": (
        [
            memory("p", status="deprecated"),
            memory("c", related_to=("p",), parent=("p",), blocked_by=("p",), resolves=("p",)),
        ],
        set(),
    ),
    "a digest": (
        [
            memory("p", status="deprecated"),
            memory("c", derived_from=("p",), source=("tool:digest/abc",)),
        ],
        set(),
    ),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_each_situation(situation: str):
    memories, causes = SITUATIONS[situation]
    assert find_names(tree_of(*memories), "c") == causes


@pytest.mark.parametrize("situation", SITUATIONS)
def test_causes_flow_up_unchanged(situation: str):
    """What rests on an unsettled memory has its causes, unless that is replaced itself."""
    memories, causes = SITUATIONS[situation]
    if situation == "replaced itself":
        causes = {"memory:d"}
    assert find_names(tree_of(*memories, R), "r") == causes
    deep = [memory(f"r{n + 1}", f"r{n}" if n else "r") for n in range(40)]
    assert find_names(tree_of(*memories, R, *deep), "r40") == causes


def test_to_settle_the_lowest_settles_what_rests_on_it():
    gone = memory("p", status="deprecated")
    settled = memory("c", "p", settled_on=("without:p",))
    assert find_names(tree_of(gone, C, R), "r") == {"without:p"}
    assert find_names(tree_of(gone, settled, R), "r") == set()
    only_above = memory("r", "c", settled_on=("without:p",))
    assert find_names(tree_of(gone, C, only_above), "r") == set()
    assert find_names(tree_of(gone, C, only_above), "c") == {"without:p"}


def test_an_archived_premise_passes_causes_on():
    archived = memory("c", "p", status="archived")
    tree = tree_of(memory("p", status="deprecated"), archived, R)
    assert find_names(tree, "r") == {"without:p"}
    assert list(Unsettled(tree, NOW_S).all) == ["r"]


def test_the_chain_leads_to_what_changed():
    tree = tree_of(P, memory("n", supersedes=("p",)), C, R, memory("s", "r"))
    unsettled = Unsettled(tree, NOW_S)
    causes = unsettled.find(["s"])["s"]
    assert unsettled.find_chain("s", "memory:n") == ["s", "r", "c", "p"]
    assert unsettled.find_lowest("s", "memory:n") == "c"
    assert (causes["memory:n"].reason, causes["memory:n"].id) == ("replaced", "n")
    assert unsettled.list_above(["p"]) == ["c", "r", "s"]


def test_only_the_nearest_causes_are_listed():
    """Twenty premises are out, one of them nearer than the others."""
    far = [memory(f"p{n:02}", status="deprecated") for n in range(20)]
    middle = memory("c", *(each.id for each in far))
    tree = tree_of(*far, middle, memory("z", status="deprecated"), memory("r", "c", "z"))
    causes = list(Unsettled(tree, NOW_S).find(["r"])["r"])
    assert causes == ["without:z", *(f"without:p{n:02}" for n in range(15))]


@pytest.mark.parametrize("count", [1_000, 10_000])
def test_long_chains_and_broad_ones_end(count: int):
    chain = [memory("m0", status="deprecated")]
    chain += [memory(f"m{n}", f"m{n - 1}") for n in range(1, count)]
    assert find_names(tree_of(*chain), f"m{count - 1}") == {"without:m0"}
    broad = [memory("m0", status="deprecated"), *(memory(f"m{n}", "m0") for n in range(1, count))]
    assert len(Unsettled(tree_of(*broad), NOW_S).all) == count - 1


def test_the_index_knows_the_edges(sandbox: Sandbox):
    """The filter asks the index, which follows each change of a file."""
    sandbox.memory("dec-p")
    sandbox.memory("dec-c", source=("memory:dec-p",))
    sandbox.memory("dec-r", derived_from=("dec-c",))
    sandbox.memory("dec-s", related_to=("dec-p",))
    sandbox.commit()
    assert sandbox.json("list", "is:unsettled")["memories"] == []
    sandbox.memory("dec-n", supersedes=("dec-p",))
    rows = sandbox.json("list", "is:unsettled")["memories"]
    assert [row["id"] for row in rows] == ["dec-c", "dec-r"]
    (sandbox.path / ".memory/decision/2026-02/dec-c.md").unlink()
    rows = sandbox.json("list", "is:unsettled")["memories"]
    assert [row["id"] for row in rows] == ["dec-r"]
    sandbox.memory("dec-r")
    assert sandbox.json("list", "is:unsettled")["memories"] == []


def test_a_missing_file_unsettles_what_rests_on_its_memory(sandbox: Sandbox):
    """The memory that names it is listed as well; it has a mark of its own."""
    sandbox.write("app.py", "def run():\n    return 1\n")
    sandbox.memory("dec-p", files=("app.py",))
    sandbox.memory("dec-c", source=("memory:dec-p",))
    sandbox.commit()
    (sandbox.path / "app.py").unlink()
    sandbox.commit()
    rows = sandbox.json("list", "is:unsettled")["memories"]
    assert [row["id"] for row in rows] == ["dec-c", "dec-p"]


def test_a_file_with_the_marks_of_a_conflict_is_not_missing(sandbox: Sandbox):
    path = sandbox.memory("dec-p")
    sandbox.memory("dec-c", source=("memory:dec-p",))
    sandbox.commit()
    text = (sandbox.path / path).read_text()
    sandbox.write(path, f"<<<<<<< ours\n{text}=======\n{text}>>>>>>> theirs\n")
    assert sandbox.json("list", "is:unsettled")["memories"] == []
    unsettled = Unsettled(index.open(sandbox.context()), NOW_S)
    assert unsettled.find(["dec-c"]) == {}
    (sandbox.path / path).unlink()
    rows = sandbox.json("list", "is:unsettled")["memories"]
    assert [row["id"] for row in rows] == ["dec-c"]


def test_a_file_that_names_another_repository_is_told_by_check(sandbox: Sandbox):
    """No id has a slash, so the source is refused by its line, and nothing rests on it."""
    path = sandbox.memory("dec-c", source=("memory:acme/billing/dec-p",))
    sandbox.memory("dec-r", source=("memory:dec-c",))
    sandbox.commit()
    done = sandbox.run("check")
    assert done.returncode == 1
    assert f"{path}:" in done.stdout
    assert "does not name a memory by its id" in done.stdout
    assert sandbox.json("list", "is:unsettled")["memories"] == []


def test_of_two_files_with_one_id_the_first_by_path_counts(sandbox: Sandbox):
    sandbox.memory("dec-p", status="deprecated")
    sandbox.memory("dec-c", source=("memory:dec-p",))
    text = (sandbox.path / ".memory/decision/2026-02/dec-c.md").read_text()
    first, second = ".memory/decision/2026-01/dec-c.md", ".memory/decision/2026-03/dec-c.md"
    for path, is_unsettled in ((second, True), (first, False)):
        sandbox.write(path, text.replace("memory:dec-p", "human:Ada"))
        catalog = index.open(sandbox.context())
        assert ("dec-c" in Unsettled(catalog, NOW_S).all) is is_unsettled
        assert ("dec-c" in Unsettled(catalog, NOW_S).find(["dec-c"])) is is_unsettled
        assert catalog.find_conclusions("dec-p") == (["dec-c"] if is_unsettled else [])
        close_shared()


def test_a_tree_of_a_few_memories_cannot_tell_what_is_missing():
    tree = tree_of(C)
    tree.is_partial = True
    assert find_names(tree, "c") == set()


def test_what_is_settled_on_junk_and_on_both_sides_of_a_merge():
    gone = memory("p", status="deprecated")
    both = ("memory:gone", "without:gone", "without:p", "without:p", "memory:c", "without:c")
    assert find_names(tree_of(gone, memory("c", "p", settled_on=both)), "c") == set()
    assert find_names(tree_of(gone, memory("c", "p", settled_on=both[:2])), "c") == {"without:p"}


def test_all_circles_at_once():
    """Premises, replacements and both mixed; a cause from outside reaches what rests on them."""
    mixed = [memory("a", "b", supersedes=("c",)), memory("b", "c"), memory("c", "a")]
    assert find_names(tree_of(*mixed), "b") == {"memory:a"}
    assert find_names(tree_of(*mixed, memory("o", supersedes=("a",))), "b") == {"memory:o"}
    twisted = [memory("a", "b", supersedes=("b",)), memory("b", "a", supersedes=("a",))]
    assert Unsettled(tree_of(*twisted), NOW_S).all == {}
    assert find_names(tree_of(*twisted, memory("r", "a")), "r") == {"without:a"}


def test_what_rests_on_an_archived_memory_is_above_its_premises():
    tree = tree_of(P, memory("c", "p", status="archived"), R)
    assert Unsettled(tree, NOW_S).list_above(["p"]) == ["r"]


def test_a_question_that_reads_many_memories_is_asked_of_all():
    chain = [memory("m0", status="deprecated")]
    chain += [memory(f"m{n}", f"m{n - 1}") for n in range(1, MAX_READ + 3)]
    unsettled = Unsettled(tree_of(*chain), NOW_S)
    assert set(unsettled.find([chain[-1].id])[chain[-1].id]) == {"without:m0"}
    assert "all" in vars(unsettled)
