from __future__ import annotations

import os
from pathlib import Path

import pytest

from memtool.inject.session_seen import WAITING, waiting
from memtool.sessions import model, promote
from memtool.sessions.model import Finding, Head
from memtool.sessions.promote import QUARANTINE_S, quarantine


def made(session: str, content: str, agent: str = "claude") -> Finding:
    return Finding(
        model.finding_id(session, content), session, content, content, "pattern", "high", 0.5, (1,),
        fields=(("agent", agent),),
    )  # fmt: skip


def counts(*all_: Finding, **parents: str) -> list[tuple[int, int]]:
    heads = [Head(one.session, 1, parent=parents.get(one.session, "")) for one in all_]
    found = promote.supports(all_, heads)
    return [(found[one.id].sessions, found[one.id].agents) for one in all_]


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
    """What differs in a path, a number or a no does not agree."""
    for other in (USES.replace("tests/api", "tests/web"), USES.replace("has", "never has")):
        assert counts(made("a", USES), made("b", other)) == [(1, 1)] * 2


def test_a_fork_is_no_second_witness():
    """It repeats what its parent heard; so does a fork of a fork, and a circle of forks ends."""
    assert counts(made("a", USES), made("b", USES), b="a") == [(1, 1)] * 2
    assert counts(made("a", USES), made("b", USES), made("c", USES), b="a", c="b") == [(1, 1)] * 3
    assert len(counts(made("a", USES), made("b", USES), b="a", a="b")) == 2


@pytest.mark.slow
def test_ten_thousand_findings_are_compared():
    """Each is compared with few others, and gets an answer."""
    all_ = [made(f"s{n % 50}", f"Part {n} of tool {n % 977} reads file src/m{n}.py at start.")
            for n in range(10_000)]  # fmt: skip
    assert len(promote.supports(all_, [])) == 10_000


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
    assert quarantine(status, 1_000_000, accesses, 1_000_000 + age) == state


def test_a_number_is_noted_until_another_one_is(tmp_path: Path) -> None:
    """Nothing noted is none."""
    (tmp_path / "sessions").mkdir()
    folder = str(tmp_path)
    assert waiting(folder) == 0
    for count in (3, 12, 0):
        promote.note_waiting(folder, count)
        assert waiting(folder) == count


@pytest.mark.parametrize("data", [b"", b"x\n", b"-1\n", b"\xb2\n"])
def test_another_hand_writes_nothing_that_counts(tmp_path: Path, data: bytes) -> None:
    """What is no small number is none."""
    (tmp_path / "sessions").mkdir()
    (tmp_path / WAITING).write_bytes(data)
    assert waiting(str(tmp_path)) == 0


def test_where_nothing_can_be_written_nothing_happens(tmp_path: Path) -> None:
    """A number that is lost is no reason to fail."""
    promote.note_waiting(str(tmp_path / "absent"), 3)
    (tmp_path / "sessions").mkdir()
    os.symlink("/dev/zero", tmp_path / WAITING)
    assert waiting(str(tmp_path)) == 0
    promote.note_waiting(str(tmp_path), 3)
    assert waiting(str(tmp_path)) == 3
