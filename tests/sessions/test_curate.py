from __future__ import annotations

from conftest import make_memory

from memtool.memory.lineage import Lineage
from memtool.sessions import promote
from memtool.sessions.extract import llm
from memtool.sessions.promote import Action
from memtool.store.snapshot import Record


def record(id: str, body: str, **fields) -> Record:
    return Record(make_memory(id, body, **fields), f".memory/{id}.md", id)


OLD = record("dec-old", "Sessions are kept in Redis.\n", title="Sessions in Redis")
NEW = record("dec-new", "Sessions are kept in Postgres, not in Redis.\n", status="candidate",
             title="Sessions in Postgres")  # fmt: skip
MORE = record(
    "dec-more", "Sessions in Redis expire.\n", status="candidate", title="Sessions expire"
)
OTHER = record("dec-other", "The footer is blue.\n", title="Footer")


def fitting(*actions: Action, lineage: Lineage | None = None) -> list[Action]:
    known = [record.memory for record in (OLD, NEW, MORE, OTHER)]
    return promote.fitting(actions, [NEW, MORE], [OLD, OTHER], lineage or Lineage(known))


def test_an_action_that_fits_is_kept_once():
    """Repeats say nothing new; a pin has no other memory."""
    action = Action("supersedes", "dec-new", "dec-old", "changed")
    assert fitting(action, action) == [action]
    assert fitting(Action("pin", "dec-old", "x", "")) == [Action("pin", "dec-old", "", "")]


def test_what_does_not_fit_is_left_out():
    """Unknown ids, established memories, itself, strangers, other deeds, pinned candidates."""
    for do, id_, to in [
        ("supersedes", "dec-new", "dec-gone"), ("supersedes", "dec-old", "dec-new"),
        ("supersedes", "dec-new", "dec-new"), ("related_to", "dec-new", "dec-other"),
        ("delete", "dec-new", "dec-old"), ("pin", "dec-new", ""), ("pin", "dec-gone", ""),
    ]:  # fmt: skip
        assert fitting(Action(do, id_, to, "")) == []


def test_two_candidates_do_not_replace_the_same_nor_each_other():
    """A plan makes no fork and no circle."""
    found = fitting(
        Action("supersedes", "dec-new", "dec-old", ""),
        Action("supersedes", "dec-more", "dec-old", ""),
        Action("supersedes", "dec-new", "dec-more", ""),
        Action("supersedes", "dec-more", "dec-new", ""),
    )
    assert [(one.id, one.to) for one in found] == [("dec-new", "dec-old"), ("dec-new", "dec-more")]


def test_a_circle_through_what_stands_is_seen_and_ends():
    """Relations that already form a circle are walked once."""
    circle = [
        make_memory("dec-old", supersedes=("dec-new",)),
        make_memory("dec-new", supersedes=("dec-x",)),
        make_memory("dec-x", supersedes=("dec-old",)),
    ]
    action = Action("supersedes", "dec-new", "dec-old", "")
    assert fitting(action, lineage=Lineage(circle)) == []


def test_rules_propose_what_contradicts():
    """Without a model a candidate takes the place of what it opposes."""
    yes = record("sem-yes", "Enable the query cache in production.\n", type="semantic")
    no = record("sem-no", "Disable the query cache in production.\n", type="semantic",
                status="candidate")  # fmt: skip
    assert [(a.do, a.id, a.to) for a in promote.by_rules([no], [yes])] == [
        ("supersedes", "sem-no", "sem-yes")
    ]
    assert promote.by_rules([no], [OTHER]) == []


def test_a_prompt_holds_the_candidates_and_what_is_near_to_them():
    """However many memories stand, the prompt is bounded and the nearest come first."""
    many = [record(f"dec-{n:04}", f"Memory {n}: " + "word " * 60) for n in range(2_000)]
    text = promote.curation_prompt([NEW], [*many, OLD])
    assert len(text) < llm.MOST_SENT + 5_000
    assert text.index("dec-new") < text.index("dec-old") < text.index("Memory 1")
