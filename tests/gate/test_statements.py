from __future__ import annotations

import pytest
from conftest import make_memory
from hypothesis import given
from hypothesis import strategies as st

from memtool.gate import statements as module
from memtool.gate.statements import MOST_STATEMENTS, Statement, statements


def read(sentence: str) -> Statement:
    """Return what one sentence states."""
    found = statements(make_memory(title=sentence, body=""))
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("sentence", "sign", "concept"),
    [
        ("Use Redis", 1, ""),
        ("Do not use Redis", -1, ""),
        ("Don't use Redis", -1, ""),
        ("Don\u2019t use Redis", -1, ""),
        ("Never use Redis", -1, ""),
        ("Avoid Redis", -1, ""),
        ("Stop using Redis", -1, ""),
        ("Redis must not be used", -1, ""),
        ("Redis shouldn't be used", -1, ""),
        ("Never avoid Redis", 1, ""),
        ("Enable Redis", 1, "enable"),
        ("Redis is disabled", -1, "enable"),
        ("Do not disable Redis", 1, "enable"),
        ("Turn Redis off", -1, "enable"),
        ("Redis is switched on", 1, "enable"),
        ("Forbid Redis", -1, "allow"),
        ("Redis is not allowed", -1, "allow"),
        ("Redis is optional", -1, "require"),
        ("Remove Redis", -1, "add"),
    ],
)
def test_signs_follow_the_tables(sentence: str, sign: int, concept: str):
    """Negations turn the sign, opposites share a concept, and only the subject is left."""
    found = read(sentence)
    assert (found.sign, found.concept, found.subject) == (sign, concept, {"redi"})


@pytest.mark.parametrize(
    ("sentence", "values"),
    [
        ("The API listens on port 8080", (("number", "8080"),)),
        ("The API waits for 30 seconds", (("time", "30"),)),
        ("The API reads from etc/api.toml", (("path", "etc/api.toml"),)),
        ("In version 2 the API reads everything", ()),
        ("The API failed in step 3", ()),
        ("The API began on 2026-01-12", ()),
        ("The API column users.name reads", ()),
        ("The API is at https://example.org/x.html", ()),
    ],
)
def test_values_are_taken_out_of_the_subject(sentence: str, values: tuple):
    """Numbers, measures and places of files are values; names, dates and addresses are not."""
    assert read(sentence).values == values


def test_a_key_with_a_word_is_a_statement():
    """Lines such as those of a settings file say a value."""
    body = "line_length: 88\n- `workers.max` = 16\ntimeout: 30 s\nname: two words\nTODO: x\n"
    found = [s for s in statements(make_memory(title="Limits", body=body)) if s.is_key]
    assert [s.values for s in found] == [
        (("number", "88"),), (("number", "16"),), (("time", "30"),),
    ]  # fmt: skip
    assert {"line", "length", "line_length"} == found[0].subject


def test_a_choice_says_yes_to_one_and_no_to_the_other():
    """`X instead of Y for Z` is two statements."""
    found = statements(make_memory(title="Use tabs instead of spaces for Makefiles", body=""))
    assert [(s.sign, sorted(s.subject)) for s in found] == [
        (1, ["makefil", "tab"]), (-1, ["makefil", "space"]),
    ]  # fmt: skip


def test_only_the_opening_and_the_chosen_option_state_something():
    """Options that were weighed are not what holds."""
    body = (
        "Opening one.\nIt goes on.\n\n- An item here.\n\n## Options considered\n\nPassed over.\n\n"
        "## Chosen\n\nChosen thing.\n\n## Rationale\n\nA reason.\n"
    )
    said = [s.text for s in statements(make_memory(title="Title words", body=body))]
    assert said == ["Title words", "Opening one.", "It goes on.", "An item here.", "Chosen thing."]


@pytest.mark.parametrize(
    ("sentence", "subject"),
    [
        ("Tests run often, never at night", {"test", "run", "often"}),
        ("In production, tests run", {"product", "test", "run"}),
        ("Tests run because nobody looks", {"test", "run"}),
    ],
)
def test_the_first_clause_counts(sentence: str, subject: set[str]):
    """What follows gives reasons; a short opening belongs to what it opens."""
    assert read(sentence).subject == subject


@pytest.mark.parametrize("sentence", ["Never push, except for docs", "Push unless it is red"])
def test_a_sentence_with_an_exception_is_left_out(sentence: str):
    """It states something finer than two words can oppose."""
    assert statements(make_memory(title=sentence, body="")) == ()


@given(st.text(max_size=200), st.text(max_size=400))
def test_any_text_can_be_read(title: str, body: str):
    """Nothing that a memory may hold is too odd, and no subject is empty."""
    for statement in statements(make_memory(title=title, body=body)):
        assert statement.subject
        assert statement.sign in (1, -1)


def test_a_long_text_is_read_in_bounded_time():
    """Only the first statements count, and one long line costs what it holds."""
    body = "".join(f"Thing {at} is {at} long.\n\n" for at in range(2_000))
    assert len(statements(make_memory(body=body))) == MOST_STATEMENTS
    assert statements(make_memory(body="never " * 10_000 + "=" * 10_000 + ": " * 5_000))


SPOKEN = (
    "use redis never not turn off on stop using enable disabled sync step version in for at"
    " 10 ms v2 3.10 two ten src/a.py don't instead of over prefer cache the we Cafés FileLock"
)


@given(st.lists(st.sampled_from(SPOKEN.split()) | st.text("abcnotv'1.", max_size=6), max_size=12))
def test_words_that_are_remembered_are_read_as_before(words: list[str]) -> None:
    """A word counts as simple only where nothing around it could change what it adds."""
    plain = [module._plain(word) for word in words]
    known = module._statement("x", plain, 1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "_simple", lambda _word: None)
        assert module._statement("x", plain, 1) == known
