from __future__ import annotations

import pytest

from memtool.sessions import model, promote
from memtool.sessions.model import Finding, Head


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
