"""Tests of cleaning."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memtool.redaction.find import Allowlist
from memtool.sessions import store
from memtool.sessions.model import Message

KEY = "AKIA" + "Q3EGRZXT5MPLHV2B"
PARTS = st.sampled_from(
    (
        "plain words",
        KEY,
        "\0",
        "\n",
        "password = hunter2-secret-9",
        "ada@kestrel-labs.io",
        "é\u2028",
        "",
    )
)


@given(st.sets(st.lists(PARTS, max_size=4).map(" ".join), max_size=6))
def test_texts_are_cleaned_each_for_itself(texts: set[str]) -> None:
    """Looking at all of them at once finds what looking at each one finds, and keeps the rest."""
    together = store.clean_texts(texts)
    assert set(together) == texts
    for text, clean in together.items():
        assert store.clean_texts({text}) == {text: clean}
        assert KEY not in clean
        assert clean.count("plain words") == text.count("plain words")


def test_no_finding_goes_missing_between_two_looks() -> None:
    """However much there is, every text is looked through."""
    filler = "word " * 60_000
    texts = {f"{number} {filler} {KEY}" for number in range(8)}
    assert not any(KEY in clean for clean in store.clean_texts(texts).values())


def test_what_the_settings_allow_stays() -> None:
    """An address that may stand in memories may stand in sessions."""
    message = Message(0, "user", "Ask ada@kestrel-labs.io or bob@kestrel-labs.io.")
    (kept,) = store.cleaned([message], Allowlist(emails=frozenset({"ada@kestrel-labs.io"})))
    assert kept.text == "Ask ada@kestrel-labs.io or [REDACTED:email]."


def test_a_clean_message_is_the_same_one() -> None:
    """Nothing is copied that need not be, and nothing but texts is looked at."""
    message = Message(3, "tool", "ok", moment=5, tool="Bash", call="ls", is_ok=True, files=("a",))
    assert store.cleaned([message]) == [message]
    assert store.cleaned([message])[0] is message
    assert store.cleaned([]) == []


def test_of_a_long_text_both_ends_are_kept() -> None:
    """It says how much is left out; a short one stays whole."""
    (kept,) = store.cleaned([Message(0, "tool", "a" * 50 + "b" * 50)], most=30)
    assert kept.text == f"{'a' * 10}\n[… 70 characters left out …]\n{'b' * 20}"
    (kept,) = store.cleaned([Message(0, "tool", "a" * 30)], most=30)
    assert kept.text == "a" * 30
