"""The canonical form: the quick reader agrees with YAML, and what is written is read again."""

from __future__ import annotations

import random

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from memtool.memory import frontmatter, strict

NASTY = st.sampled_from(
    [
        "",
        " ",
        "~",
        "=",
        "<<",
        "no",
        "Yes",
        "null",
        "1.10",
        "0x1F",
        "1e5",
        ".inf",
        "2026-02-22",
        "2026-02-22T19:33:00Z",
        "12:30:45",
        "a: b",
        "a:b",
        "a #b",
        "a#b",
        "a:",
        "- a",
        "-",
        "---",
        "...",
        "? a",
        ": a",
        "[a]",
        "{a}",
        "a, b",
        "a]",
        '"',
        "'",
        "\\",
        "\\n",
        "\n",
        "\t",
        "\r",
        "\0",
        "\x07",
        "\x1b",
        "\x7f",
        "\x85",
        "\xa0",
        "\xad",
        "\u2028",
        "\u202e",
        "\ufeff",
        "\ue000",
        "\uffff",
        "\U000e0041",
        "😀",
        "é",
        "ß",
        "²",
        "日本",
        "%a",
        "@a",
        "`a",
        "!a",
        "&a",
        "*a",
        "|",
        ">",
        "a  b",
        " a",
        "a ",
        "a" * 400,
        "commit:0123abcd",
        "file:docs/a.md#L1-L9",
        "(a)",
        "^a$",
    ]
)
SCALARS = NASTY | st.text(max_size=30) | st.tuples(NASTY, NASTY).map("".join)
KEYS = st.sampled_from(["id", "title", "source", "tags", "files", "x-a", "x-b_c", "y", "é", "n"])
FIELDS = st.dictionaries(
    KEYS,
    SCALARS
    | st.lists(SCALARS, max_size=5).map(tuple)
    | st.dictionaries(st.sampled_from(["at", "by", "reason"]), SCALARS, min_size=1),
    min_size=1,
)


def writable(text: str) -> bool:
    """Lone surrogates come from no UTF-8 file; `schema` refuses them."""
    return not any("\ud800" <= char < "\ue000" for char in text)


def is_writable(fields: frontmatter.Fields) -> bool:
    texts = [
        text
        for value in fields.values()
        for text in (
            [value] if isinstance(value, str) else [*value, *getattr(value, "values", tuple)()]
        )
    ]
    return all(map(writable, texts))


@given(FIELDS.filter(is_writable))
def test_what_is_written_is_read_by_yaml_as_it_was(fields: frontmatter.Fields) -> None:
    """Every header that memtool writes means the same to the strict YAML reader."""
    header = strict.read_header("\n" + frontmatter.write(fields))
    assert header.fields == fields


@given(FIELDS.filter(is_writable))
def test_what_is_written_is_read_by_the_quick_reader_or_not_at_all(
    fields: frontmatter.Fields,
) -> None:
    """The quick reader gives what was written, with its lines, or leaves it to YAML."""
    text = frontmatter.write(fields)
    read = frontmatter.read(text)
    if read is not None:
        assert read[0] == fields
        spans = strict.read_header("\n" + text).spans
        assert read[1] == {key: first for key, (first, _last) in spans.items()}


@given(FIELDS.filter(is_writable))
def test_the_quick_reader_knows_all_that_is_visible(fields: frontmatter.Fields) -> None:
    """A file with visible text only is never left to the slow reader."""
    texts = yaml.safe_dump(fields, allow_unicode=True)
    has_empty = any(value == {} for value in fields.values())
    if texts.replace("\n", "").isprintable() and not has_empty and "\\U" not in texts:
        assert frontmatter.read(frontmatter.write(fields)) is not None


@given(SCALARS.filter(writable), st.booleans())
def test_written_text_stays_text_for_readers_that_guess(text: str, flow: bool) -> None:  # noqa: FBT001
    """A reader that guesses types (PyYAML here) sees text where memtool wrote text."""
    written = frontmatter.write_scalar(text, flow=flow)
    document = f"a: [{written}]\n" if flow else f"a: {written}\n"
    expected = [text] if flow else text
    assert expected == yaml.safe_load(document)["a"]


FRAGMENTS = (
    "id",
    "title",
    "x-a",
    "a",
    "y",
    "é",
    "²",
    ": ",
    ":",
    " ",
    "  ",
    "\n",
    "\n  - ",
    "\n  ",
    "- ",
    "[",
    "]",
    ", ",
    ",",
    '"',
    '"',
    "'",
    "\\n",
    "\\t",
    "\\\\",
    '\\"',
    "\\u0041",
    "\\u0000",
    "\\x41",
    "\\ud800",
    "\\U0001f600",
    "#",
    " #",
    "---",
    "...",
    "true",
    "~",
    "=",
    "<<",
    "&a",
    "*a",
    "!t",
    "%",
    "@",
    "`",
    "|",
    ">",
    "?",
    "? ",
    "{",
    "}",
    "\u2028",
    "\x85",
    "\ufeff",
    "\r",
    "\t",
    "\x00",
    "\x7f",
    "\u00a0",
    "\u200d",
    "\ue000",
    "-",
    "_",
    "/",
    "(",
    "1.0",
    "0x1f",
    "k" * 1100,
)


def headers(seed: int, count: int) -> list[str]:
    """Headers that are nearly canonical: right lines with a few fragments put into them."""
    rng = random.Random(seed)
    lines = [
        "id: a",
        "title: b c",
        'x-a: "q"',
        "tags: [a, b]",
        "files: []",
        "source:\n  - a",
        "checked:\n  at: b",
        "y: n",
        'x-b: "\\u00e9"',
        'tags: ["a, b", c]',
    ]
    made = []
    for _ in range(count):
        text = "\n".join(rng.sample(lines, rng.randint(1, 4))) + "\n"
        for _change in range(rng.randint(0, 3)):
            place = rng.randrange(len(text))
            text = text[:place] + rng.choice(FRAGMENTS) + text[place + rng.randint(0, 2) :]
        made.append(text)
    return made


def test_whatever_the_quick_reader_accepts_means_the_same_in_yaml() -> None:
    """No text is read in two ways: thousands of mutated headers agree in fields and lines."""
    accepted = 0
    for header in headers(seed=20260222, count=15_000):
        quick = frontmatter.read(header)
        if quick is not None:
            accepted += 1
            slow = strict.read_header("\n" + header)
            assert slow.fields == quick[0], header
            assert {key: span[0] for key, span in slow.spans.items()} == quick[1], header
    assert accepted > 3_000


@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4), max_size=12).map("".join))
@example("k" * 1100 + ": v")
@example("x-a: =")
def test_no_made_up_header_is_read_in_two_ways(text: str) -> None:
    """Hypothesis finds no header that the quick reader understands differently than YAML."""
    quick = frontmatter.read(text + "\n") if writable(text) else None
    if quick is not None:
        assert strict.read_header("\n" + text + "\n").fields == quick[0]


@pytest.mark.parametrize(
    "header",
    [
        "",
        "\n",
        "id: a",
        "id : a\n",
        "id:a\n",
        "id:\n",
        "id: \n",
        "id:  a\n",
        " id: a\n",
        "id: a\nid: b\n",
        "id: 'a'\n",
        "id: |\n  a\n",
        "id: a # b\n",
        "# a\nid: a\n",
        "id: &a b\n",
        "id: *a\n",
        "id: !t a\n",
        "id: {a: b}\n",
        "tags: [a,b]\n",
        "tags: [ a ]\n",
        "tags: [a, ]\n",
        "tags: [[a]]\n",
        "tags:\n- a\n",
        "tags:\n  - [a]\n",
        "tags:\n  -  a\n",
        "a:\n  b: [c]\n",
        "a:\n  b: c\n  b: d\n",
        'id: "a\n',
        'id: "a" b\n',
        'id: "\\x41"\n',
        'id: "\\ud800"\n',
        "id: a\r\n",
        "id: a\tb\n",
        "id: a\n\ntitle: b\n",
        "? id\n: a\n",
        "<<: a\n",
    ],
)
def test_other_spellings_are_left_to_yaml(header: str) -> None:
    """The quick reader answers None for every form that memtool itself does not write."""
    assert frontmatter.read(header) is None


def test_the_fences_are_found_as_memtool_writes_them() -> None:
    """Splitting knows two fences of three hyphens, and nothing before the first."""
    assert frontmatter.split_plain("---\nid: a\n---\nbody\n---\nmore\n") == (
        "id: a\n",
        "body\n---\nmore\n",
    )
    assert frontmatter.split_plain("---\nid: a\n---") == ("id: a\n", "")
    assert frontmatter.split_plain("---\nid: a\n---\n") == ("id: a\n", "")
    assert frontmatter.split_plain("---\nid: a\n") is None
    assert frontmatter.split_plain("\n---\nid: a\n---\n") is None
    assert frontmatter.split_plain("--- \nid: a\n---\n") is None


def test_keys_are_written_in_the_order_of_the_table() -> None:
    """Fields come out in one order whatever their order was, the user's own keys last."""
    fields: frontmatter.Fields = {"x-b": "1", "tags": ("a",), "x-a": "2", "title": "t", "id": "i"}
    assert frontmatter.write(fields) == 'id: i\ntitle: t\ntags: [a]\nx-a: "2"\nx-b: "1"\n'
