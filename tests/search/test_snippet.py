"""Tests of snippets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memtool.index.analyzer import terms
from memtool.search.snippet import (
    MAX_CHARACTERS,
    _find_best_window,
    _find_head,
    _find_places,
    extract_snippet,
    mark_pieces,
)

FILLER = "It says many other things here that nobody has asked about at all. " * 10


def test_the_passage_with_most_of_what_was_asked_is_shown() -> None:
    """Two of the wanted words near each other beat one of them at the beginning."""
    body = f"Redis is nice. {FILLER} The session timeout in redis is short. {FILLER}"
    shown = extract_snippet(body, terms("redis session timeout"))
    assert "session timeout in redis is short" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown) <= MAX_CHARACTERS


def test_a_short_body_is_shown_whole_on_one_line() -> None:
    """Line breaks and marks go, the words stay; a heading ends in a colon."""
    assert (
        extract_snippet("## Chosen\n\n- Redis\n- for sessions\n", ["redi"])
        == "Chosen: Redis for sessions"
    )


def test_without_a_wanted_word_the_beginning_is_shown() -> None:
    """A memory found through other words still gets a snippet."""
    assert extract_snippet(f"First words. {FILLER}", []).startswith("First words. It says")
    assert extract_snippet("", ["a"]) == ""


def test_a_word_without_end_is_cut() -> None:
    """A body without spaces does not burst the line."""
    assert len(extract_snippet("x" * 5_000, ["y"])) <= MAX_CHARACTERS


@given(st.text(alphabet="ab \n#é"), st.sets(st.sampled_from(["a", "b", "ab"])))
def test_a_snippet_is_one_line_of_whole_words(body: str, wanted: set[str]) -> None:
    """Whatever the body, the snippet is within its length and made of the body's words."""
    shown = extract_snippet(body, wanted, 20)
    assert len(shown) <= 20
    assert "\n" not in shown
    if all(len(word) <= 18 for word in body.split()):
        assert set(shown.strip("…").replace(":", "").split()) <= set(body.split())  # of a heading


@given(st.lists(st.sampled_from(["a", "b", "cccc", "d" * 9, "and"]), max_size=25))
def test_no_other_passage_holds_more_of_what_was_asked(words: list[str]) -> None:
    """Of all windows that fit, the one that is looked for first is worth most."""
    worth = {"a": 10, "b": 10, "and": 1}
    text = " ".join(words)
    starts = [len(" ".join(words[:place])) + bool(place) for place in range(len(words))]
    matches = {
        start: {word: worth[word]}
        for start, word in zip(starts, words, strict=True)
        if word in worth
    }

    def value(passage: str) -> int:
        return sum(worth.get(word, 0) for word in set(passage.split()))

    room = 12
    fitting = [
        (value(" ".join(words[first:last])), -starts[first])
        for first in range(len(words))
        for last in range(first + 1, len(words) + 1)
        if len(" ".join(words[first:last])) <= room
    ]
    first, last = _find_best_window(text, matches, room)
    assert (value(text[first:last]), -first) == max(fitting, default=(0, 0))


ENDINGS = ("", "s", "es", "ed", "ing", "ies", "y", "ly", "er", "ation", "ness", "'s", "e", "ying")


@given(st.text("abcdehilnopstuyAK_.-/", max_size=12), st.sampled_from(ENDINGS))
def test_no_word_with_a_wanted_term_is_passed_over(stem: str, ending: str) -> None:
    """The first letters of every term are in the word that it was taken from."""
    word = stem + ending
    assert [term for term in terms(word) if _find_head(term) not in word.lower()] == []


@given(st.lists(st.text("abeginstyABG3_.-/(éİ", min_size=1, max_size=9), max_size=8), st.data())
def test_a_place_of_a_wanted_term_is_looked_at_wherever_it_begins(
    words: list[str], data: st.DataObject
) -> None:
    """Of `readGitFile` and `(git-dir` no part is passed over."""
    starts = [len(" ".join(words[:place])) + bool(place) for place in range(len(words))]
    terms_at = {start: set(terms(word)) for start, word in zip(starts, words, strict=True)}
    term = data.draw(st.sampled_from(sorted(set().union(*terms_at.values())) or ["git"]))
    wanted = {start for start, own in terms_at.items() if term in own}
    assert wanted <= _find_places(" ".join(words), [_find_head(term)])


def test_short_verbs_are_found_in_every_form() -> None:
    """The stemmer changes their second letter."""
    for word in ("dying", "lying", "tying", "skies", "using", "aging", "cries", "dies"):
        assert [term for term in terms(word) if _find_head(term) not in word] == []


def test_the_words_that_were_asked_for_are_marked() -> None:
    """In each of their forms, but for stop words; together the pieces are the snippet."""
    text = "Keep the <b>sessions</b> in Redis, one session a key."
    pieces = mark_pieces(text, ["session", "redi", "the"])
    assert "".join(piece for piece, _is_hit in pieces) == text
    assert [piece for piece, is_hit in pieces if is_hit] == [
        "<b>sessions</b>",
        "Redis,",
        "session",
    ]
    assert mark_pieces("", ["redi"]) == [("", False)]
