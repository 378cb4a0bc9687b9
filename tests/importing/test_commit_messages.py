from __future__ import annotations

import pytest

from memtool.importing.commit_messages import (
    BREAK,
    CHOICE,
    MAX_TITLE_CHARS,
    REVERT,
    TRAILER,
    Undoing,
    find_undoing,
    read_statement,
)
from memtool.sessions.model import MAX_CONTENT_CHARS

SHA = "0123456789abcdef0123456789abcdef01234567"


def read(message: str) -> tuple[str, str, str] | None:
    statement = read_statement(message)
    return statement and (statement.kind, statement.title, statement.text)


@pytest.mark.parametrize(
    ("message", "kind", "text"),
    [
        (
            (
                "Keep carts in Postgres\n\nDecision: carts stay in Postgres\nRationale: one store "
                "to\nback up\nSigned-off-by: Ada <ada@example.org>"
            ),
            TRAILER,
            "carts stay in Postgres. one store to back up.",
        ),
        (
            (
                f'Revert "cache: warm at start"\n\nThis reverts commit {SHA}.\n\n'
                "Warming made the first request slower by two seconds on every deploy."
            ),
            REVERT,
            "Warming made the first request slower by two seconds on every deploy.",
        ),
        (
            (
                "queue: drop retries\n\nBREAKING CHANGE: a job that fails must be sent again by "
                "its\nsender, as no worker repeats it\n\nCloses #12"
            ),
            BREAK,
            "a job that fails must be sent again by its sender, as no worker repeats it",
        ),
        (
            (
                "Add the ledger\n\n## Why\n\nSlow. Amounts are deliberately kept as whole cents, "
                "because no float adds them up exactly.\n\n- [x] tests"
            ),
            CHOICE,
            "Amounts are deliberately kept as whole cents, because no float adds them up exactly.",
        ),
        (
            (
                "Buchungen\n\nBeträge werden absichtlich als ganze Cent gespeichert, weil keine "
                "Kommazahl sie genau addiert."
            ),
            CHOICE,
            (
                "Beträge werden absichtlich als ganze Cent gespeichert, weil keine Kommazahl sie "
                "genau addiert."
            ),
        ),
    ],
)
def test_what_a_message_states_is_found(message: str, kind: str, text: str) -> None:
    """A decision, a revert with its harm, a break and a choice with its reason are statements."""
    statement = read_statement(message)
    assert statement is not None
    assert (statement.kind, statement.text) == (kind, text)
    assert statement.title == message.partition("\n")[0]


@pytest.mark.parametrize(
    "message",
    [
        "",
        "\n\n",
        "fix typo",
        (
            "Use a set instead of a list\n\nA set is used instead of a list because it is much "
            "faster for the many lookups that we do here."
        ),
        f'Revert "cache: warm at start"\n\nThis reverts commit {SHA}.',
        (
            f'Revert "cache: warm at start"\n\nThis reverts commit {SHA}.\n\n'
            "It crashes at every start, but it was pushed accidentally, so nobody has to care."
        ),
        "queue: drop retries\n\nBREAKING CHANGE: the format changed",
        (
            "tests: more\n\nThe clock is deliberately kept as it was, because no one could say "
            "what else the sender may rely on here."
        ),
        (
            "Add the ledger\nAmounts are deliberately kept as whole cents, because no float adds "
            "them up exactly, and nobody wants that."
        ),
        (
            "Add the ledger\n\n```\nAmounts are deliberately kept as whole cents, because no float "
            "adds them up exactly, and nobody wants that.\n```"
        ),
        "memory: remember\n\nDecision: it stays so\n\nMemory-Id: dec-2026-03-01-so-ab12",
        "Decision log\n\nWe met on Monday. Decision: none was taken, since half of us were ill.",
    ],
)
def test_what_ends_with_the_change_is_no_statement(message: str) -> None:
    """Reasons of a change, bare reverts, accidents, tests, code and memtool's own commits."""
    assert read_statement(message) is None


def test_a_statement_is_one_printable_line() -> None:
    """Control characters and the direction of text do not reach a reader; long titles are cut."""
    subject = f"\x1b[31mRed\u202e {'word ' * 60}"
    message = f"{subject}\n\nDecision: stay\x1b]0;evil\x07 with\x00 one <b>store</b>"
    result = read(message)
    assert result is not None
    _kind, title, text = result
    assert title.isprintable()
    assert len(title) <= MAX_TITLE_CHARS
    assert text == "stay ]0;evil with one <b>store</b>."


def test_a_huge_message_is_read_in_part() -> None:
    """A megabyte costs no more than its beginning, and no statement is longer than one."""
    start = "Split\n\nDecision: carts stay in Postgres\n\n"
    for filler in ("<!-- ", "`. ", "a" * 50, "\n", '" (', "Revert: "):
        statement = read_statement(start + filler * (1_000_000 // len(filler)))
        assert statement is not None
        assert len(statement.text) <= MAX_CONTENT_CHARS


@pytest.mark.parametrize(
    ("message", "undoing"),
    [
        ("Add carts\n\nThis reverts nothing.", Undoing()),
        ("Add carts\n\nLater this reverts commit 0123456789.", None),
        (f'Revert "Add carts"\n\nThis reverts commit {SHA}.', Undoing((SHA,), "Add carts")),
        ('Revert "Add carts (#7)" (#9)\n\nReverts ada/shop#7', Undoing((), "Add carts (#7)")),
        (
            f'Revert "Revert "Add carts""\n\nThis reverts commit {SHA}.',
            Undoing((SHA,), 'Revert "Add carts"'),
        ),
        (
            (
                f"Revert \"Merge branch 'carts'\"\n\nThis reverts commit {SHA}, reversing\n"
                "changes made to fedcba9876543210."
            ),
            Undoing((SHA,), "Merge branch 'carts'"),
        ),
    ],
)
def test_what_a_revert_takes_back_is_found(message: str, undoing: Undoing | None) -> None:
    """By the ids that it names, and by the subject in quotes."""
    assert find_undoing(message) == undoing
