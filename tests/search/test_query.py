"""The query language, and saved queries."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.errors import MemtoolError
from memtool.search import query
from memtool.search.query import (
    MAX_NESTING,
    MAX_QUERY_CHARACTERS,
    Alternatives,
    Expression,
    Filter,
    Group,
    Not,
    Phrase,
    Query,
    Word,
    parse,
    parse_leniently,
)

DATA = Path(__file__).parent / "data"


def shape(node: Expression | Query) -> object:
    """Write an expression as nested tuples, without places."""
    match node:
        case Query():
            return shape(node.root)
        case Word():
            return node.text
        case Phrase():
            return ("phrase", node.text)
        case Filter():
            return (node.name, node.value)
        case Not():
            return ("not", shape(node.inner))
        case Group():
            return [shape(item) for item in node.items]
        case Alternatives():
            return ("or", *map(shape, node.groups))


READINGS = [
    ("", []),
    ("  \n\t ", []),
    ("redis session", ["redis", "session"]),
    ('"session store"', [("phrase", "session store")]),
    (r'"a \"quoted\" word"', [("phrase", 'a "quoted" word')]),
    ("-redis", [("not", ("phrase", "redis"))]),
    ('-"session store"', [("not", ("phrase", "session store"))]),
    ("-type:state", [("not", ("type", "state"))]),
    ("-(a OR b)", [("not", ("or", ["a"], ["b"]))]),
    ("a b OR c", ("or", ["a", "b"], ["c"])),
    ("a OR b OR c", ("or", ["a"], ["b"], ["c"])),
    ("a (b OR c)", ["a", ("or", ["b"], ["c"])]),
    ("redis (cache type:state)", ["redis", ["cache", ("type", "state")]]),
    ("redis (cache -session)", ["redis", ["cache", ("not", ("phrase", "session"))]]),
    ("(a (b OR c))", [["a", ("or", ["b"], ["c"])]]),
    ("-(a b)", [("not", ["a", "b"])]),
    # a parenthesis without an operator is text
    ("(a)", ["a"]),
    ("a (b c) d", ["a", "b", "c", "d"]),
    ("a ((b) c)", ["a", "b", "c"]),
    ('a ("b c" d)', ["a", ("phrase", "b c"), "d"]),
    ("a OR (b c)", ("or", ["a"], ["b", "c"])),
    ("type:decision", [("type", "decision")]),
    ("TYPE:decision", [("type", "decision")]),
    ('error:"KeyError: CONFIG" x', [("error", "KeyError: CONFIG"), "x"]),
    ("confidence:>=medium", [("confidence", ">=medium")]),
    ("source:commit:0123abcd", [("source", "commit:0123abcd")]),
    ("(tag:a)", [[("tag", "a")]]),
    # what looks like an operator and is none
    ("pre-commit - --no-verify", ["pre-commit", "-", "--no-verify"]),
    ("or and not", ["or", "and", "not"]),
    ("main() f(a,b)", ["main()", "f(a,b)"]),
    ("(main())", ["main()"]),
    ("src/a.py:12 10:30", ["src/a.py:12", "10:30"]),
    ("std::vector https://a.b/c", ["std::vector", "https://a.b/c"]),
    ("KeyError: CONFIG", ["KeyError:", "CONFIG"]),
    ("it's naïve 日本", ["it's", "naïve", "日本"]),
    ("(-)", ["-"]),
]


@pytest.mark.parametrize(("text", "expected"), READINGS)
def test_a_query_reads_as_documented(text: str, expected: object) -> None:
    """Every construct of the language, and every text that only looks like one, has one reading."""
    assert shape(parse(text)) == expected


COMMIT_TITLES = (DATA / "commit_titles.txt").read_text().splitlines()


@pytest.mark.parametrize("title", COMMIT_TITLES)
def test_a_commit_title_is_plain_words(title: str) -> None:
    """A pasted title asks for its words, whatever is in parentheses, without a note."""
    parsed, notes = parse_leniently(title)
    assert parsed.is_plain
    assert not notes


REFUSALS = [
    ('a "b c', "this quote is never closed", "  ^"),
    ('tag:"b c', "this quote is never closed", "    ^"),
    ('a ""', "this phrase has no words", "  ^^"),
    ("a (b", "this parenthesis is never closed", "  ^"),
    ("a b)", "this parenthesis was never opened", "   ^"),
    ("a ()", "this parenthesis is empty", "  ^^"),
    ("OR a", "OR needs something on both sides", "^^"),
    ("a OR", "OR needs something on both sides", "  ^^"),
    ("a typ:decision", "unknown filter 'typ'", "  ^^^"),
    ('say:"a b"', "unknown filter 'say'", "^^^"),
    ("a tag: b", "tag: needs a value", "  ^^^^"),
]


@pytest.mark.parametrize(("text", "message", "carets"), REFUSALS)
def test_an_error_shows_the_query_and_the_place(text: str, message: str, carets: str) -> None:
    """An invalid query is shown with carets under the error."""
    with pytest.raises(MemtoolError) as caught:
        parse(text)
    assert caught.value.message == f"{message}\n  {text}\n  {carets}"
    assert caught.value.code == "bad-query"
    assert caught.value.hint


READ_AS_TEXT = [
    ("error: it broke", ["error:", "it", "broke"], "error: needs a value"),
    ("tag: x", ["tag:", "x"], "tag: needs a value"),
    ("a (b", ["a", "b"], "this parenthesis is never closed"),
    ("a b)", ["a", "b"], "this parenthesis was never opened"),
    ("a (b (c) d", ["a", "b", "c", "d"], "this parenthesis is never closed"),
    ("a (b OR c", ("or", ["a", "b"], ["c"]), "this parenthesis is never closed"),
    ('a "b c', ["a", "b", "c"], "this quote is never closed"),
    ('tag:"b c', ["tag:", "b", "c"], "this quote is never closed"),
    ('-"" a', ["a"], "this phrase has no words"),
    ("-(a", ["a"], "this parenthesis is never closed"),
    ("-() a", ["a"], "this parenthesis is empty"),
    ("a OR", ["a"], "OR needs something on both sides"),
    ("OR a OR b", ("or", ["a"], ["b"]), "OR needs something on both sides"),
    ("localhost:8080 down", ["localhost:8080", "down"], "unknown filter 'localhost'"),
    ("-key:x", [("not", ("phrase", "key:x"))], "unknown filter 'key'"),
    ("(", ["("], "this parenthesis is never closed"),
    ('""', ['""'], "this phrase has no words"),
]


@pytest.mark.parametrize(("text", "expected", "note"), READ_AS_TEXT)
def test_a_slip_is_read_as_text_with_a_note(text: str, expected: object, note: str) -> None:
    """An invalid operator is searched as a word, and never drops or negates others."""
    parsed, notes = parse_leniently(text)
    assert shape(parsed) == expected
    assert notes[0].startswith(f"{note}, so it is read as text; ")


def test_a_text_without_slips_has_no_notes() -> None:
    """A query that is meant and written as one reads the same for everybody."""
    for text, _expected in READINGS:
        assert parse_leniently(text) == (parse(text), ())


def test_a_page_of_slips_gives_few_notes() -> None:
    """A pasted log is not answered with a note for each of its lines."""
    log = " ".join(f"key{chr(97 + n)}:1" for n in range(20)) + ' ( "'
    assert len(parse_leniently(log)[1]) == 4


@pytest.mark.parametrize("name", ["importance", "confidence"])
def test_a_comparison_that_the_shell_ate_gets_a_quoted_example(name: str) -> None:
    """Unquoted, a shell makes a file of `>0.5`; the hint shows the filter in quotes."""
    with pytest.raises(MemtoolError) as caught:
        parse(f"redis {name}:")
    assert f"quote it for the shell: '{name}:>" in caught.value.hint


def test_the_hint_names_the_nearest_filter() -> None:
    """A mistyped filter is answered with the intended one, and never searched as text."""
    for read in (parse, parse_leniently):
        with pytest.raises(MemtoolError) as caught:
            read("catgory:error")
        assert caught.value.hint.startswith("did you mean category:")


def test_an_error_in_a_long_query_shows_only_its_surroundings() -> None:
    """A pasted log with a stray parenthesis gives three short lines, with the caret in place."""
    text = "word " * 2_000 + ") " + "word " * 2_000
    with pytest.raises(MemtoolError) as caught:
        parse(text)
    _message, shown, carets = caught.value.message.split("\n")
    assert len(shown) < 80
    assert shown[carets.index("^")] == ")"


def test_line_breaks_and_controls_do_not_move_the_caret() -> None:
    """The excerpt is one line whatever the query holds."""
    with pytest.raises(MemtoolError) as caught:
        parse('a\nb\x1b[31m "c')
    _message, shown, carets = caught.value.message.split("\n")
    assert shown[carets.index("^")] == '"'


def test_parentheses_nest_only_so_deep() -> None:
    """Nesting is bounded, so that no query can exhaust the stack."""
    assert parse("(" * MAX_NESTING + "a" + ")" * MAX_NESTING).words == ("a",)
    with pytest.raises(MemtoolError, match="deep"):
        parse("(" * 50_000 + "a")


def test_a_query_has_a_greatest_length() -> None:
    """A long query is read, and one that is far too long is refused by its length."""
    assert len(parse("word " * 20_000).words) == 20_000
    with pytest.raises(MemtoolError, match="characters"):
        parse("a" * (MAX_QUERY_CHARACTERS + 1))


def test_words_are_those_that_rank() -> None:
    """Words and phrases rank wherever they are; filters and excluded words do not."""
    query = parse('a "b c" -d -"e" type:state (f OR -g)')
    assert query.words == ("a", "b c", "f")


@given(st.text(alphabet='ab"()-: OR\\\n\t日\x00typetag', max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes the parser fail otherwise than by telling the user what is wrong."""
    code = hint = ""
    try:
        assert parse(text) == parse(text)
    except MemtoolError as error:
        code, hint = error.code, error.hint
    assert code in ("", "bad-query")
    if "did you mean" in hint:
        return
    parsed, notes = parse_leniently(text)
    assert bool(notes) == bool(code)
    assert parsed.root != Group(()) or not text.strip()


@given(st.lists(st.sampled_from(["a", "or", "OR", "-", "b-c", "-d", "e:", "日", "\x1c", "f_g"])))
def test_plain_words_need_no_grammar(words: list[str]) -> None:
    """The fast path reads plain words as the grammar does."""
    text = " ".join(words)
    assert query.read_operators(text)[0] == parse_leniently(text)[0]


def test_a_hint_for_pasted_text_names_nothing_that_is_not_in_it() -> None:
    """A pasted error gets hints about itself: no example with words of another program."""
    _parsed, notes = parse_leniently("error: sessions (redis")
    hints = [note.split("; ")[1] for note in notes]
    quote = "put text that is not an operator in double quotes"
    assert hints == ["as a filter, error: takes words of an error", quote]
