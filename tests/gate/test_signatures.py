from __future__ import annotations

import pytest
from conftest import make_memory

from memtool.gate import signatures
from memtool.gate.signatures import SAMPLED, SHARED, content_of, cosine, names_of, signature

LONG = " ".join(f"word{number}x rest" for number in range(120))


def test_the_same_claim_has_the_same_signature_whatever_its_id_and_status():
    """Only what is said counts."""
    one = make_memory("dec-a", "It is so.\n", title="T")
    other = make_memory("dec-b", "It  is\nso.\n", title="t", status="pinned", tags=("x",))
    assert signature(one) == signature(other)


def test_a_signature_is_small_and_sorted():
    """However long a text is, a few numbers of 32 bits stand for it."""
    numbers = signature(make_memory(body=LONG)).numbers
    assert len(numbers) <= 2 * SAMPLED
    assert list(numbers) == sorted(set(numbers))
    assert all(0 <= number < 1 << 32 for number in numbers)


@pytest.mark.parametrize("share", [20, 10, 5])
def test_edited_texts_share_numbers(share: int):
    """A text with a twentieth to a fifth of its words changed is still found."""
    words = LONG.split()
    words[::share] = ["changed"] * len(words[::share])
    one = signature(make_memory("dec-a", LONG, title="One title")).numbers
    other = signature(make_memory("dec-b", " ".join(words), title="Another name")).numbers
    assert len(set(one) & set(other)) >= SHARED


def test_short_texts_in_another_order_share_numbers():
    """Pairs of terms find what runs of three words do not."""
    one = make_memory("dec-a", "", title="Deploys run on Tuesdays only")
    other = make_memory("dec-b", "", title="Only on Tuesdays deploys run")
    assert len(set(signature(one).numbers) & set(signature(other).numbers)) >= SHARED


@pytest.mark.parametrize("body", ["", "\n", "## Options considered\n", "the of and\n"])
def test_every_text_has_a_signature(body: str):
    """Nothing is too empty or too odd."""
    assert signature(make_memory(body=body, title="?")).numbers


def test_headings_are_not_what_a_memory_says():
    """Two memories from one template share its headings, not their words."""
    body = "## Options considered\n\n## Chosen\n\n## Rationale\n"
    assert content_of(make_memory(body=body, title="Redis")) == {"redi"}


def test_names_are_values_paths_identifiers_and_capitals_inside_a_sentence():
    """What begins a sentence may be any word."""
    memory = make_memory(title="t", body="Sessions of Ada live in app/main.py for 30 s or ten.\n")
    names = names_of(memory)
    assert {"ada", "30", "ten", "app/main.pi"} <= names
    assert not {"session", "live"} & names


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("ab", "ab", 1.0), ("ab", "cd", 0.0), ("", "a", 0.0), ("abcd", "a", 0.5)],
)
def test_the_cosine_goes_from_0_to_1(one: str, other: str, expected: float):
    """Equal sets give 1, disjoint and empty ones 0."""
    assert cosine(frozenset(one), frozenset(other)) == expected
    assert cosine(frozenset(other), frozenset(one)) == expected


def test_values_are_numbers_and_compounds():
    """A plain word is none."""
    terms = ("8080", "a_b", "app/main.pi", "ten", "twelv", "port", "x9")
    assert [term for term in terms if signatures.is_value(term)] == [
        "8080", "a_b", "app/main.pi", "ten", "x9",
    ]  # fmt: skip
