"""Promotion and curation: witnesses, quarantine, waiting findings, and plans that fit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import make_memory

from memtool.inject.session_seen import WAITING, count_waiting
from memtool.memory.lineage import Lineage
from memtool.sessions import model, promote
from memtool.sessions.extract import llm
from memtool.sessions.model import Finding, Session
from memtool.sessions.promote import QUARANTINE_S, Action, judge_quarantine
from memtool.store.tree import Record


def made(session: str, content: str, agent: str = "claude") -> Finding:
    return Finding(
        model.make_finding_id(session, content),
        session,
        content,
        content,
        "pattern",
        "high",
        0.5,
        (1,),
        fields=(("agent", agent),),
    )


def counts(*all_: Finding, **parents: str) -> list[tuple[int, int]]:
    heads = [
        Session(finding.session, 1, parent=parents.get(finding.session, "")) for finding in all_
    ]
    supports = promote.count_supports(all_, heads)
    return [supports[finding.id] for finding in all_]


USES = "Every endpoint has an integration test in tests/api of the shop."


def test_the_same_statement_in_two_sessions_is_two_witnesses():
    """Case and the last mark do not matter; agents are counted by name."""
    assert counts(made("a", USES), made("b", USES.lower().rstrip("."), "codex")) == [(2, 2)] * 2
    assert counts(made("a", USES), made("a", "We squash merge feature branches.")) == [(1, 1)] * 2


def test_nearly_the_same_words_count_as_well():
    """People do not repeat themselves word for word."""
    other = "Every endpoint needs an integration test in tests/api of the shop."
    assert counts(made("a", USES), made("b", other)) == [(2, 1)] * 2


def test_another_value_is_another_statement():
    """Another path, number or negation does not agree."""
    for other in (USES.replace("tests/api", "tests/web"), USES.replace("has", "never has")):
        assert counts(made("a", USES), made("b", other)) == [(1, 1)] * 2


def test_a_fork_is_no_second_witness():
    """It repeats what its parent found; so does a fork of a fork, and a circle of forks ends."""
    assert counts(made("a", USES), made("b", USES), b="a") == [(1, 1)] * 2
    assert counts(made("a", USES), made("b", USES), made("c", USES), b="a", c="b") == [(1, 1)] * 3
    assert len(counts(made("a", USES), made("b", USES), b="a", a="b")) == 2


@pytest.mark.slow
def test_ten_thousand_findings_are_compared():
    """Each is compared with few others, and gets an answer."""
    all_ = [
        made(f"s{n % 50}", f"Part {n} of tool {n % 977} reads file src/m{n}.py at start.")
        for n in range(10_000)
    ]
    assert len(promote.count_supports(all_, [])) == 10_000


@pytest.mark.parametrize(
    ("status", "age", "accesses", "state"),
    [
        ("candidate", QUARANTINE_S - 1, 9, "wait"),
        ("candidate", -QUARANTINE_S, 9, "wait"),
        ("candidate", QUARANTINE_S, 1, "confirm"),
        ("candidate", QUARANTINE_S, 0, "fade"),
        ("candidate", 100 * QUARANTINE_S, 0, "fade"),
        ("confirmed", QUARANTINE_S, 0, "none"),
        ("archived", QUARANTINE_S, 5, "none"),
    ],
)
def test_after_a_day_a_candidate_is_confirmed_or_fades(
    status: str, age: int, accesses: int, state: str
):
    """Accessed means confirmed, not accessed means faded, and both wait for a day."""
    is_used = bool(accesses)
    assert judge_quarantine(status, 1_000_000, 1_000_000 + age, is_used=is_used) == state
    assert judge_quarantine("candidate", None, 1_000_000 + age, is_used=is_used) == "wait"


def test_a_number_is_noted_until_another_one_is(tmp_path: Path) -> None:
    """Nothing noted is none."""
    (tmp_path / "sessions").mkdir()
    folder = str(tmp_path)
    assert count_waiting(folder) == 0
    for count in (3, 12, 0):
        promote.note_waiting(folder, count)
        assert count_waiting(folder) == count


@pytest.mark.parametrize("data", [b"", b"x\n", b"-1\n", b"\xb2\n"])
def test_another_hand_writes_nothing_that_counts(tmp_path: Path, data: bytes) -> None:
    """Only small numbers are read as counts."""
    (tmp_path / "sessions").mkdir()
    (tmp_path / WAITING).write_bytes(data)
    assert count_waiting(str(tmp_path)) == 0


def test_where_nothing_can_be_written_nothing_happens(tmp_path: Path) -> None:
    """A lost count does not cause a failure."""
    promote.note_waiting(str(tmp_path / "absent"), 3)
    (tmp_path / "sessions").mkdir()
    os.symlink("/dev/zero", tmp_path / WAITING)
    assert count_waiting(str(tmp_path)) == 0
    promote.note_waiting(str(tmp_path), 3)
    assert count_waiting(str(tmp_path)) == 3


def record(id: str, body: str, **fields) -> Record:
    return Record(make_memory(id, body, **fields), f".memory/{id}.md", id)


OLD = record("dec-old", "Sessions are kept in Redis.\n", title="Sessions in Redis")
NEW = record(
    "dec-new",
    "Sessions are kept in Postgres, not in Redis.\n",
    status="candidate",
    title="Sessions in Postgres",
)
MORE = record(
    "dec-more", "Sessions in Redis expire.\n", status="candidate", title="Sessions expire"
)
OTHER = record("dec-other", "The footer is blue.\n", title="Footer")


def fitting(*actions: Action, lineage: Lineage | None = None) -> list[Action]:
    memories = [record.memory for record in (OLD, NEW, MORE, OTHER)]
    return promote.select_fitting(actions, [NEW, MORE], [OLD, OTHER], lineage or Lineage(memories))


def test_an_action_that_fits_is_kept_once():
    """Repeats say nothing new; a pin has no other memory."""
    action = Action("supersedes", "dec-new", "dec-old", "changed")
    assert fitting(action, action) == [action]
    assert fitting(Action("pin", "dec-old", "x", "")) == [Action("pin", "dec-old", "", "")]


def test_what_does_not_fit_is_left_out():
    """Unknown ids, established memories, itself, strangers, other deeds, pinned candidates."""
    for do, id_, to in [
        ("supersedes", "dec-new", "dec-gone"),
        ("supersedes", "dec-old", "dec-new"),
        ("supersedes", "dec-new", "dec-new"),
        ("related_to", "dec-new", "dec-other"),
        ("delete", "dec-new", "dec-old"),
        ("pin", "dec-new", ""),
        ("pin", "dec-gone", ""),
    ]:
        assert fitting(Action(do, id_, to, "")) == []


def test_two_candidates_do_not_replace_the_same_nor_each_other():
    """A plan makes no fork and no circle."""
    selected = fitting(
        Action("supersedes", "dec-new", "dec-old", ""),
        Action("supersedes", "dec-more", "dec-old", ""),
        Action("supersedes", "dec-new", "dec-more", ""),
        Action("supersedes", "dec-more", "dec-new", ""),
    )
    assert [(action.id, action.to) for action in selected] == [
        ("dec-new", "dec-old"),
        ("dec-new", "dec-more"),
    ]


def test_a_circle_through_what_stands_is_seen_and_ends():
    """Relations that already form a circle are walked once."""
    circle = [
        make_memory("dec-old", supersedes=("dec-new",)),
        make_memory("dec-new", supersedes=("dec-x",)),
        make_memory("dec-x", supersedes=("dec-old",)),
    ]
    action = Action("supersedes", "dec-new", "dec-old", "")
    assert fitting(action, lineage=Lineage(circle)) == []


def test_an_older_remark_replaces_nothing_newer():
    """A remark from before a decision does not correct it."""
    newer = record(
        "dec-old",
        "Sessions are kept in Redis.\n",
        title="Sessions in Redis",
        timestamp="2026-02-23T00:00:00Z",
    )
    lineage = Lineage([newer.memory, NEW.memory])
    action = Action("supersedes", "dec-new", "dec-old", "")
    assert fitting(action) == [action]
    assert promote.select_fitting([action], [NEW], [newer], lineage) == []
    related = Action("related_to", "dec-new", "dec-old", "")
    assert promote.select_fitting([related], [NEW], [newer], lineage) == [related]


def test_rules_propose_what_contradicts():
    """Without a model a candidate takes the place of what it opposes."""
    yes = record("sem-yes", "Enable the query cache in production.\n", type="semantic")
    no = record(
        "sem-no", "Disable the query cache in production.\n", type="semantic", status="candidate"
    )
    assert [(a.do, a.id, a.to) for a in promote.propose_by_rules([no], [yes])] == [
        ("supersedes", "sem-no", "sem-yes")
    ]
    assert promote.propose_by_rules([no], [OTHER]) == []


def test_a_prompt_holds_the_candidates_and_what_is_near_to_them():
    """However many memories there are, the prompt is bounded and the nearest come first."""
    many = [record(f"dec-{n:04}", f"Memory {n}: " + "word " * 60) for n in range(2_000)]
    text = promote.build_curation_prompt([NEW], [*many, OLD])
    assert len(text) < llm.MAX_SENT + 5_000
    assert text.index("dec-new") < text.index("dec-old") < text.index("Memory 1")
