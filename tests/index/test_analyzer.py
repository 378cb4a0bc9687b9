"""Terms of code, prose and other languages."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memtool.index import analyzer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("readHTTPFile", ["read", "http", "file", "readhttpfil"]),
        ("file_lock", ["file", "lock", "file_lock"]),
        ("store.FileLock", ["store", "file", "lock", "filelock", "store.filelock"]),
        ("src/a_b.py:42", ["src", "a", "b", "py", "42", "a_b", "a_b.pi", "src/a_b.py:42"]),
        ("v1.2.3", ["v1", "2", "3", "v1.2.3", "1.2.3"]),
        ("2026-02-22", ["2026", "02", "22", "2026-02-22"]),
        ("KeyError: 'CONFIG'", ["key", "error", "config", "keyerror"]),
        ("--force-with-lease", ["forc", "with", "leas", "force-with-leas"]),
        ("std::vector", ["std", "vector", "std::vector"]),
        ("APIs of utf8 ENOENT E0432", ["api", "of", "utf8", "enoent", "e0432"]),
        ("It's done. (Really!)", ["it", "s", "done", "realli"]),
        ("__init__ ... -- _ / :", ["init"]),
        ("", []),
    ],
)
def test_names_are_found_whole_and_by_their_parts(text: str, expected: list[str]) -> None:
    """A name gives its simple words in order, and behind all words each compound, small to big."""
    assert analyzer.terms(text) == expected


def test_inflected_words_have_one_stem() -> None:
    """Endings of English words make no other term."""
    assert set(analyzer.terms("connect connected connections Connecting")) == {"connect"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Café CAFÉ ＣＡＦＥ cafe\u0301", ["cafe"] * 4),  # noqa: RUF001  # wide on purpose
        ("Straße STRASSE", ["strass"] * 2),
        ("Привет, мир!", ["привет", "мир"]),
        ("東京都", ["東京", "京都"]),
        ("水", ["水"]),
        ("API東京v2", ["api", "東京", "v2"]),
        ("한국어", ["한국", "국어"]),
        ("“quoted”—dashed…", ["quot", "dash"]),
        ("a\ud800b", ["a", "b"]),
    ],
)
def test_other_languages_give_words_too(text: str, expected: list[str]) -> None:
    """Accents and width do not count, and writing without spaces gives pairs of characters."""
    assert analyzer.terms(text) == expected


@given(st.text(st.characters(max_codepoint=127), max_size=60))
def test_ascii_text_needs_no_other_path(text: str) -> None:
    """The terms of a text do not depend on a non-ASCII character next to it."""
    assert analyzer.terms(text + " \u2014 ") == analyzer.terms(text)


PLAIN = r"[-_.:/]{0,2}([A-Za-z]{1,2}[A-Za-z]?[a-z0-9]{0,80}|[A-Z0-9]{1,70}|[0-9]{1,70})[-_.:/]{0,2}"


@given(st.from_regex(PLAIN, fullmatch=True))
@example("AAa")
def test_a_plain_word_is_what_taking_it_apart_gives(word: str) -> None:
    """The short way for words without joiners and humps gives the same term as the long one."""
    words: list[str] = []
    compounds: list[str] = []
    inner: list[str] = []
    analyzer._add_terms(word, 0, words, compounds, inner, analyzer.ENGLISH)
    pairs = tuple(pair for pair in dict.fromkeys(inner) if pair not in compounds)
    expected = (tuple(words), tuple(dict.fromkeys(compounds)), pairs)
    assert analyzer._analyze(word, analyzer.ENGLISH) == expected


@given(st.text(max_size=60))
def test_terms_can_be_stored(text: str) -> None:
    """A term has no white space, is not empty, is short and can be encoded."""
    for term in analyzer.terms(text):
        assert term.split() == [term]
        assert len(term.encode()) <= 4 * 2 * analyzer.MAX_TERM_CHARS


def test_long_runs_are_cut() -> None:
    """A blob of letters is one short term, and a compound that is too long only its parts."""
    assert analyzer.terms("x" * 5000) == ["x" * analyzer.MAX_TERM_CHARS]
    assert analyzer.terms("-".join(["ab"] * 100)) == ["ab"] * 100


STOP_WORDS = (
    "a about am an and any are as at be been being but by can could d did do does doing for from"
    " had has have he her him his how i if in into is it its just ll m me my no not of on or our"
    " re s she should so some such t than that the their them then there these they this those to"
    " us ve was we were what when where which who whom whose why will with would you your"
)


def test_the_stop_terms_are_the_stems_of_stop_words() -> None:
    """The table needs no stemmer to be read, and agrees with it."""
    assert set(analyzer.terms(STOP_WORDS)) <= analyzer._STOP_TERMS
    assert [term for term in analyzer._STOP_TERMS if analyzer.stem(term) != term] == []


def test_stop_words_weigh_less_but_stay() -> None:
    """Question words weigh 0.3, and a question of nothing else keeps them all."""
    assert analyzer.query_terms("why is the lock not free") == {
        "whi": 0.3,
        "is": 0.3,
        "the": 0.3,
        "lock": 1.0,
        "not": 0.3,
        "free": 1.0,
    }
    only = analyzer.query_terms("What is this?")
    assert list(only) == ["what", "is", "this"]
    assert all(map(analyzer.is_stop, only))
    assert not analyzer.is_stop("lock")
