"""Strict YAML: text stays text, and whatever YAML could be tricked with is refused with a line."""

from __future__ import annotations

import pytest
import yaml

from memtool.memory import strict

HOSTILE = {
    "alias": ("a: b\nid: *x\n", 3),
    "anchor": ("id: &x a\n", 2),
    "anchored list": ("a: b\ntags: &x [a]\n", 3),
    "tag": ("id: !!python/object/apply:os.system [ls]\n", 2),
    "plain tag": ("id: ! a\n", 2),
    "merge key": ("a: b\n<<: c\n", 3),
    "duplicate key": ("a: b\nc: d\na: e\n", 4),
    "duplicate inner key": ("a:\n  b: c\n  b: d\n", 4),
    "list in a list": ("a: [[b]]\n", 2),
    "table in a list": ("a: [{b: c}]\n", 2),
    "pair in a list": ("a: [b: c]\n", 2),
    "list in a table": ("a:\n  b: [c]\n", 3),
    "deep brackets": ("a: " + "[" * 200_000 + "\n", 2),
    "deep braces": ("a: b\nc: " + "{" * 200_000 + "\n", 3),
    "closed deep brackets": ("a: " + "[" * 5_000 + "]" * 5_000 + "\n", 2),
    "brackets over many lines": ("a:\n" + "[\n" * 5_000, 19),
    "deep block": ("a:\n" + "- " * 5_000 + "b\n", 3),
    "deep indent": ("".join(f"{' ' * n}a:\n" for n in range(150)), 4),
    "complex key": ("? [a]\n: b\n", 2),
    "key with a question mark": ("? a\n: b\n", 2),
    "two documents": ("a: b\n--- {c: d}\n", 3),
    "document start": ("--- {a: b}\n", 2),
    "document end": ("a: b\n...\n", 3),
    "directive": ("%YAML 1.1\na: b\n", 3),
    "flow mapping": ("{a: b}\n", 2),
    "flow mapping over lines": ("{\na: b,\nc: d}\n", 2),
    "indented keys": ("  a: b\n  c: d\n", 2),
    "list": ("- a\n", 2),
    "text": ("a\n", 2),
    "unclosed quote": ('a: "b\n', 3),
    "unclosed list": ("a: [b\n", 3),
    "tab": ("a:\n\tb: c\n", 3),
    "escape sequence": ("a: b\nc: \x1b[31m\n", 3),
    "wide control": ("é: é\nc: \x07\n", 3),
    "lone surrogate": ('a: b\nc: "\\ud800"\n', 3),
    "no such character": ('a: b\nc: "\\UFFFFFFFF"\n', 3),
    "long key": ("a" * 2_000 + ": b\n", 2),
    "old Mac line ends": ("a: b\rc: d\n", 2),
    "line separator": ("a: b # \u2028\n", 2),
    "next line": ("a: b\x85c: d\n", 2),
}
LENIENT = {"lone surrogate", "no such character", "long key"}
"""What the reader in Python takes, or tells without a line; `schema` refuses the rest."""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers_are_refused_at_their_line(name: str) -> None:
    """Each trick of YAML raises NotStrict with its line."""
    header, line = HOSTILE[name]
    with pytest.raises(strict.NotStrict) as caught:
        strict.read_header("\n" + header)
    assert (line, "\n" in str(caught.value)) == (caught.value.line, False), str(caught.value)


@pytest.mark.parametrize("name", sorted(set(HOSTILE) - LENIENT))
def test_the_reader_in_python_is_as_strict(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyYAML was built without libyaml the same headers are refused."""
    monkeypatch.setattr(strict, "LOADER", yaml.SafeLoader)
    with pytest.raises(strict.NotStrict):
        strict.read_header("\n" + HOSTILE[name][0])


def test_a_character_that_does_not_exist_is_refused_by_the_reader_in_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its OverflowError does not get out."""
    monkeypatch.setattr(strict, "LOADER", yaml.SafeLoader)
    with pytest.raises(strict.NotStrict):
        strict.read_header('\na: "\\UFFFFFFFF"\n')


@pytest.mark.parametrize("header", ["", "\n", "\n# only a comment\n", "\n\n\n"])
def test_an_empty_header_is_refused(header: str) -> None:
    """A header without keys is not read as no fields."""
    with pytest.raises(strict.NotStrict, match="empty"):
        strict.read_header(header)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("a: no\n", "no"),
        ("a: 1.10\n", "1.10"),
        ("a: 2026-02-22\n", "2026-02-22"),
        ("a:\n", ""),
        ("a: ~\n", "~"),
        ("a: 'it''s'\n", "it's"),
        ("a: >-\n  one\n  two\n", "one two"),
        ("a: |\n  one\n  two\n", "one\ntwo\n"),
        ("a: one\n  two\n", "one two"),
        ('a: "one\n  two"\n', "one two"),
        ("a: b # c\n", "b"),
        ("a: b\r\n", "b"),
        ("# c\na: b\n", "b"),
        ("a: [b,c , 'd']\n", ("b", "c", "d")),
        ("a: [b,\n  c]\n", ("b", "c")),
        ("a:\n- b\n- c\n", ("b", "c")),
        ("a: {b: c, d: 1}\n", {"b": "c", "d": "1"}),
        ("a:\n    b: c\n", {"b": "c"}),
        ("a: []\n", ()),
        ("a: {}\n", {}),
    ],
)
def test_values_by_hand_stay_the_text_that_was_written(header: str, expected: object) -> None:
    """Every form of YAML gives text, lists of text or tables of text, and no type is guessed."""
    assert {"a": expected} == strict.read_header("\n" + header).fields


def test_spans_cover_values_and_leave_comments_between_keys() -> None:
    """The span of a key ends with its value, before blank lines and comments."""
    header = (
        "\n# first\na: b\n\n# about c\nc:\n  - d\n  # inside\n  - e\n# after\nf: |\n  g\n\n"
        'h: "i\n# text, not a comment\n\n"\nj: [k,\nl]\n'
    )
    expected = {"a": (3, 3), "c": (6, 9), "f": (11, 13), "h": (14, 17), "j": (18, 19)}
    assert expected == strict.read_header(header).spans


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\na: b\n---\nbody", ("\na: b\n", "body")),
        ("---\na: b\n---", ("\na: b\n", "")),
        ("---\na: b\n---\n\n\nbody\n", ("\na: b\n", "\n\nbody\n")),
        ("---\na: b\n---  \n  body\n", ("\na: b\n", "  body\n")),
        ("---  \na: b\n-----\nbody\n---\n", ("  \na: b\n-----\nbody\n", "")),
        ("-----\na: b\n---\n", None),
        ("---\r\na: b\r\n---\r\n\r\nbody\r\n", ("\r\na: b\r\n", "\r\nbody\r\n")),
        ("---\na: b\n---\x0c\nbody\n", None),
        ("---\n---\nbody", ("\n", "body")),
        ("---\na: b\n", None),
        ("\n---\na: b\n---\n", None),
        ("--- a\n---\n---\n", None),
        ("a: b\n---\n", None),
        ("", None),
    ],
)
def test_the_body_begins_right_behind_the_line_of_the_fence(
    text: str, expected: tuple[str, str] | None
) -> None:
    """Splitting swallows nothing of the body, where python-frontmatter drops its blank lines."""
    assert expected == strict.split(text)
