"""The rules of the field table: what each kind of key takes, and what it refuses."""

from __future__ import annotations

import jsonschema
import pytest
from conftest import Sandbox, make_memory

from memtool.commands import schema as schema_verb
from memtool.memory import schema
from memtool.memory.fields import BY_NAME, DEFAULT_CATEGORIES, FIELDS, KINDS, REQUIRED, Field
from memtool.memory.memory import Fields, FieldValue
from memtool.memory.schema import Source, parse_source
from memtool.value import plain

LONG = "a" * 501
HIDDEN = ("a\u202eb", "a\nb", "a\x1b[0m", "a\u200bb", "a\U000e0041", "a\ufeff", LONG)
GOOD: dict[str, tuple[FieldValue, ...]] = {
    "id": ("abc", "dec-2026-02-22-a-b-k3f9", "0.1_a", "a" * 120),
    "moment": ("2026-02-22T19:33:00Z", "2026-02-22 19:33:00.5+02:00", "2024-02-29t00:00:00z"),
    "when": ("2026-02-22", "2026-02-22T19:33:00-11:30"),
    "line": ("a", "été — 日本 😀", "👩\u200d💻", "a" * 500),
    "flag": ("true", "false"),
    "count": ("0", "12"),
    "number": ("0", "0.5", "1e3", "1000000"),
    "share": ("0", "1", "0.25", "1e-3"),
    "words": ((), ("a",), ("a b", "c"), ("a",) * 200),
    "paths": (("a/b.py",), ("*.md", "src/**", "a..b")),
    "ids": ((), ("abc", "dec-b")),
    "sources": (
        ("commit:0123abcd",),
        ("file:a/b.md#L1-L9@0123abcd",),
        ("url:https://example.org",),
        ("human:Ada",),
        ("session:s#2",),
        ("tool:ruff",),
        ("memory:dec-a",),
    ),
    "causes": ((), ("memory:dec-b", "without:dec-a"), ("memory:abc", "memory:abc")),
    "mapping": ({"at": "2026-02-22T19:33:00Z"}, {"at": "2026-02-22T19:33:00Z", "by": "Ada"}),
}
BAD: dict[str, tuple[FieldValue, ...]] = {
    "id": ("", "ab", "Abc", "-abc", ".abc", "a/b", "a b", "abc\n", "é-abc", "a" * 121, ("abc",)),
    "moment": (
        "",
        "2026-02-22",
        "2026-02-22T19:33:00",
        "2026-02-30T00:00:00Z",
        "now",
        "2026-02-22T24:00:00Z",
        "0001-01-01T00:00:00+10:00",
        {"at": "x"},
    ),
    "when": ("", "2026-02-30", "2026-13-01", "2026-2-3", "tomorrow", "30d"),
    "line": ("", " ", *HIDDEN, ("a",), {"a": "b"}),
    "flag": ("", "yes", "True", "1"),
    "count": ("", "-1", "1.5", "1_0", "²", "\u0661", " 1"),
    "number": ("", "-1", "nan", "inf", "infinity", "1_0", " 1", "\u0661", "1e7", "0x1"),
    "share": ("", "-0.1", "1.01", "nan", "half"),
    "words": ("a", ("",), (" ",), ("a",) * 201, *((text,) for text in HIDDEN), {"a": "b"}),
    "paths": (("",), ("/a",), ("~/a",), ("../a",), ("a/../b",), ("a\\b",), "a"),
    "ids": ("abc", ("AB-C",), ("",), ("abc", "a/b")),
    "sources": (
        ("abc",),
        ("commit:",),
        ("commit:xyz",),
        ("commit:abc",),
        ("file:/etc/passwd",),
        ("file:a/../../b",),
        ("file: ",),
        ("memory:A",),
        ("Human:Ada",),
        ("url: ",),
        "url:x",
    ),
    "causes": (
        "memory:dec-b",
        ("dec-b",),
        ("memory:",),
        ("memory:A",),
        ("without:a/b",),
        ("commit:0123abcd",),
        ("memory:dec-b", "Memory:dec-b"),
        ("memory:dec-b ",),
    ),
    "mapping": (
        "a",
        ("a",),
        {},
        {"by": "Ada"},
        {"at": "now"},
        {"at": "2026-02-22T19:33:00Z", "of": "a"},
        {"at": "2026-02-22T19:33:00Z", "by": "a\nb"},
    ),
}


def faults(field: Field, value: FieldValue) -> str:
    return schema.find_value_fault(field, value, DEFAULT_CATEGORIES)


def good(field: Field) -> tuple[FieldValue, ...]:
    if field.kind == "category":
        return tuple(DEFAULT_CATEGORIES)
    return field.choices if field.kind == "choice" else GOOD[field.kind]


def bad(field: Field) -> tuple[FieldValue, ...]:
    unknown = ("", "nonsense", "a\nb", LONG, ("decision",))
    return unknown if field.kind in ("choice", "category") else BAD[field.kind]


def test_each_kind_has_examples() -> None:
    """The tables of this file cover every kind of key."""
    assert set(GOOD) == set(BAD) == set(KINDS) - {"choice", "category"}


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_each_key_takes_the_values_of_its_kind(field: Field) -> None:
    """Every good value passes, alone and in a whole memory."""
    for value in good(field):
        assert faults(field, value) == "", value
        memory = make_memory(**{field.name: value})
        assert schema.find_problems(memory.fields, {}, "") == [] or (field.required and not value)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_each_key_refuses_other_values(field: Field) -> None:
    """Every bad value is one problem at the line of its key, in one sentence."""
    for value in bad(field):
        fault = faults(field, value)
        assert fault, value
        fields = make_memory(**{field.name: value}).fields
        problems = schema.find_problems(fields, {field.name: 7}, "")
        assert (problems[0].code, problems[0].line) == ("bad-value", 7)
        assert problems[0].message == f"{field.name}: {fault}"


def test_a_cause_names_its_forms() -> None:
    """Who writes one by hand reads what it takes."""
    assert faults(BY_NAME["settled_on"], ("memory:dec-b", "dec-c")) == (
        "'dec-c' is not a cause: write memory:ID or without:ID"
    )


@pytest.mark.parametrize("key", REQUIRED)
def test_required_keys_are_asked_for(key: str) -> None:
    """A memory without a required key is told which, and what belongs there."""
    fields = {k: v for k, v in make_memory("dec-a").fields.items() if k != key}
    problems = schema.find_problems(fields, {}, "a/dec-a.md")
    assert [("missing-key", f"the key {key} is required")] == [
        (p.code, p.message) for p in problems
    ]
    assert BY_NAME[key].doc in problems[0].hint


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("titel", "no memory has the key 'titel' (did you mean title?)"),
        ("superseded_by", "no memory has the key 'superseded_by' (did you mean supersedes?)"),
        ("zzzzzz", "no memory has the key 'zzzzzz'"),
        ("", "no memory has the key ''"),
    ],
)
def test_unknown_keys_are_refused_with_the_nearest(key: str, message: str) -> None:
    """A key that no memory has is an error that names what may have been meant."""
    problems = schema.find_problems(make_memory("dec-a", **{key: "a"}).fields, {}, "")
    assert [("unknown-key", message)] == [(p.code, p.message) for p in problems]


@pytest.mark.parametrize("key", ["x-", "x-a", "x-a_b-c", "x-é", "x-" + "a" * 100])
def test_own_keys_are_free(key: str) -> None:
    """A key that begins with x- holds any line."""
    assert schema.find_problems(make_memory("dec-a", **{key: "any text"}).fields, {}, "") == []


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("x-a", ("b",), "bad-value"),
        ("x-a", "b\nc", "bad-value"),
        ("x-a\nb", "c", "unknown-key"),
        ("x-a: b", "c", "unknown-key"),
        ("x- ", "c", "unknown-key"),
        ("x-" + "a" * 2_000, "c", "unknown-key"),
    ],
)
def test_own_keys_hold_one_line_under_a_plain_name(key: str, value: FieldValue, code: str) -> None:
    """A value that could not be written back as it was read is refused."""
    problems = schema.find_problems(make_memory("dec-a", **{key: value}).fields, {}, "")
    assert [code] == [problem.code for problem in problems]


@pytest.mark.parametrize(
    ("path", "id_", "codes"),
    [
        ("a/dec-a.md", "dec-a", []),
        ("dec-a.md", "dec-a", []),
        ("", "dec-a", []),
        ("a/dec-b.md", "dec-a", ["wrong-name"]),
        ("a/dec-a.MD", "dec-a", ["wrong-name"]),
        ("a/dec-a.md", "Dec A", ["bad-value"]),
        ("a/dec-a.md", ("dec-a",), ["bad-value"]),
        ("a/dec-a.md", None, ["missing-key"]),
    ],
)
def test_the_file_is_named_by_the_id(path: str, id_: FieldValue | None, codes: list[str]) -> None:
    """A name that is not the id is one problem; a bad or missing id is only that."""
    fields: Fields = {k: v for k, v in make_memory().fields.items() if k != "id"}
    if id_ is not None:
        fields["id"] = id_
    problems = schema.find_problems(fields, dict.fromkeys(fields, 3), path)
    assert codes == [problem.code for problem in problems]


@pytest.mark.parametrize(
    ("begin", "finish", "codes"),
    [
        ("2026-01-01", "2026-01-01", []),
        ("2026-01-01", "2026-01-01T00:00:00Z", []),
        ("2026-01-01T12:00:00Z", "2026-01-01", []),
        ("2026-01-02", "2026-01-01", ["bad-window"]),
        ("2026-01-01T00:00:01Z", "2026-01-01T00:00:00Z", ["bad-window"]),
        ("2026-01-01T00:00:00-01:00", "2026-01-01T00:30:00Z", ["bad-window"]),
        ("never", "2026-01-01", ["bad-value"]),
    ],
)
def test_a_memory_does_not_end_before_it_begins(begin: str, finish: str, codes: list[str]) -> None:
    """Days cover their whole length, zones count, and only valid ends are compared."""
    fields = make_memory("dec-a", valid_from=begin, valid_through=finish).fields
    assert codes == [problem.code for problem in schema.find_problems(fields, {}, "")]


def test_categories_of_the_settings_are_known() -> None:
    """A category is valid only if the settings have it."""
    fields = make_memory("dec-a", category="ritual").fields
    assert schema.find_problems(fields, {}, "", {"ritual", "error"}) == []
    assert [problem.code for problem in schema.find_problems(fields, {}, "")] == ["bad-value"]


def test_every_breach_is_told_in_the_order_of_the_file() -> None:
    """All problems of a file come at once, so that it is mended in one go."""
    fields: Fields = {"type": "x", "titel": "a", "id": "dec-a", "importance": "2"}
    problems = schema.find_problems(
        fields, {key: n for n, key in enumerate(fields, 2)}, "a/dec-a.md"
    )
    expected = ["bad-value", "unknown-key", "bad-value"] + ["missing-key"] * 4
    assert expected == [problem.code for problem in problems]
    assert [problem.line for problem in problems] == [2, 3, 5, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("commit:0123abcd", Source("commit", "0123abcd", None, "0123abcd")),
        ("file:a/b.py", Source("file", "a/b.py")),
        ("file:a/b.py#L10-L24", Source("file", "a/b.py", (10, 24))),
        ("file:a/b.py#L10", Source("file", "a/b.py", (10, 10))),
        ("file:a/b.py@0123abcd", Source("file", "a/b.py", None, "0123abcd")),
        ("file:a/b.py#L1-L2@0123abcd", Source("file", "a/b.py", (1, 2), "0123abcd")),
        ("file:a@b.py", Source("file", "a@b.py")),
        ("file:c#.md", Source("file", "c#.md")),
        ("file:a#L0", Source("file", "a#L0")),
        ("file:a#L9-L2", Source("file", "a#L9-L2")),
        ("file:a#L2-L\u00b2", Source("file", "a#L2-L\u00b2")),
        ("file:@0123abcd", Source("file", "@0123abcd")),
        ("url:https://x.y/a#L1", Source("url", "https://x.y/a#L1")),
        ("human:Ada", Source("human", "Ada")),
        ("memory:dec-a", Source("memory", "dec-a")),
    ],
)
def test_sources_are_taken_apart(text: str, expected: Source) -> None:
    """Text that does not look like lines or a commit belongs to the path."""
    assert parse_source(text) == expected


LEFT_TO_CHECK = {
    "id": ("abc\n",),
    "moment": ("2026-02-30T00:00:00Z", "2026-02-22T24:00:00Z", "0001-01-01T00:00:00+10:00"),
    "when": ("2026-02-30", "2026-13-01"),
    "line": ("a\u202eb", "a\nb", "a\x1b[0m", "a\u200bb", "a\U000e0041", "a\ufeff"),
    "number": ("-1", "1e7"),
    "share": ("-0.1", "1.01"),
    "sources": (
        ("commit:xyz",),
        ("commit:abc",),
        ("file:/etc/passwd",),
        ("file:a/../../b",),
        ("memory:A",),
    ),
    "words": tuple(
        (text,) for text in ("a\u202eb", "a\nb", "a\x1b[0m", "a\u200bb", "a\U000e0041", "a\ufeff")
    ),
    "mapping": ({"at": "2026-02-22T19:33:00Z", "by": "a\nb"},),
}
"""What a schema cannot say in a few words: calendars, hidden characters, numbers in quotes."""


def test_editors_take_what_memtool_takes(sandbox: Sandbox) -> None:
    """The JSON Schema judges the samples of every kind of key as the reader does."""
    whole = plain(schema_verb.schema(sandbox.context()))
    assert set(schema_verb.SHAPES) | {"mapping", "choice", "category"} == set(KINDS)
    for field in FIELDS:
        validator = jsonschema.Draft202012Validator(whole["properties"][field.name])
        good = [value for value in GOOD.get(field.kind, ()) if not (field.required and value == ())]
        wrong = [value for value in good if not validator.is_valid(plain(value))]
        unchecked = LEFT_TO_CHECK.get(field.kind, ())
        passed = [
            v
            for v in BAD.get(field.kind, ())
            if validator.is_valid(plain(v)) and v not in unchecked
        ]
        if field.kind != "mapping" or field.name == "checked":
            assert (field.name, wrong, passed) == (field.name, [], [])
        for value in field.choices if field.kind == "choice" else ():
            assert validator.is_valid(value)
            assert not validator.is_valid(value + "x")
