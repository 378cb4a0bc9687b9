"""Every row of data has an example that is found, or is not where it is harmless."""

from __future__ import annotations

import random
import re
import string
from itertools import pairwise
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memtool import tables
from memtool.redaction import entropy, national_ids, personal, shapes, tokens
from memtool.redaction.find import KINDS, find, redact
from memtool.redaction.rows import read_patterns

ALPHABETS = {
    "alnum": string.ascii_letters + string.digits,
    "base32": string.ascii_uppercase + "234567",
    "base64": string.ascii_letters + string.digits + "+/",
    "digits": string.digits,
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "lower": string.ascii_lowercase + string.digits,
    "upper": string.ascii_uppercase + string.digits,
}
BLANK = re.compile(rf"\{{(?:(?P<name>{'|'.join(ALPHABETS)}):(?P<count>\d+)|uuid|password)\}}")
TEXT = {"type": "string", "minLength": 1}
ROW = {"pattern": TEXT, "example": TEXT}
SHAPE = ROW | {
    "kind": {"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$"},
    "needles": {"type": "array", "items": TEXT, "minItems": 1, "uniqueItems": True},
    "word": {"type": "integer", "minimum": 10},
    "near": TEXT,
    "harmless": TEXT,
}


def make_schema(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    row = {"type": "object", "properties": properties, "required": [*required]}
    return {"type": "array", "items": row | {"additionalProperties": False}, "minItems": 1}


SCHEMAS = {
    "shapes": {"shape": make_schema(SHAPE, "kind", "needles", "pattern", "example")},
    "harmless": {
        table: make_schema(ROW, "pattern", "example") for table in ("value", "public", "before")
    },
}
"""What the tables of each file are."""


def fill(example: str) -> tuple[str, list[str]]:
    """Return an example with its blanks filled, the same way every time, and what is in them."""
    draw = random.Random(example)
    values = []

    def choose(match: re.Match[str]) -> str:
        if match["name"]:
            value = "".join(draw.choices(ALPHABETS[match["name"]], k=int(match["count"])))
        elif match[0] == "{uuid}":
            digits = "".join(draw.choices(ALPHABETS["hex"], k=32))
            ends = (0, 8, 12, 16, 20, 32)
            value = "-".join(digits[a:b] for a, b in pairwise(ends))
        else:
            kinds = (string.ascii_uppercase, string.ascii_lowercase, string.digits)
            value = "".join(draw.choice(kind) for _part in range(4) for kind in kinds)
        values.append(value)
        return value

    return BLANK.sub(choose, example), values


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_table_of_patterns_is_as_its_first_lines_say(name: str) -> None:
    """Whoever adds a row is told which key is missing or misspelled."""
    rows_by_table = tables.read_toml(f"redaction/{name}")
    assert set(rows_by_table) == set(SCHEMAS[name])
    for table, rows in rows_by_table.items():
        jsonschema.validate(rows, SCHEMAS[name][table])


SHAPES = read_patterns("shapes")["shape"]


@pytest.mark.parametrize("row", SHAPES, ids=lambda row: f"{row['kind']} {row['needles'][0]}")
def test_the_example_of_a_shape_is_found(row: dict[str, Any]) -> None:
    """What a shape is for is found as its kind, and nothing of it is left."""
    text, _values = fill(row["example"])
    (match,) = re.finditer(row["pattern"], text)
    secret = match["secret"] if "secret" in match.re.groupindex else match[0]
    findings = find(text)
    assert row["kind"] in {finding.kind for finding in findings}
    assert secret.rstrip("\n") not in redact(text, findings)
    harmless = row.get("harmless", "")
    assert harmless == "" or not find(harmless)


@pytest.mark.parametrize(
    "row",
    [row for row in shapes.ROWS if row.word or row.near],
    ids=lambda row: f"{row.kind} {row.needles[0]}",
)
def test_a_shape_is_looked_for_wherever_it_is(row: shapes.Shape) -> None:
    """Whatever matches a pattern without rare needles has a word so long, or what is near."""

    def shorten(repeat: re.Match[str]) -> str:
        return f"{{{repeat[1]},{int(repeat[1]) + 3}}}"

    @settings(max_examples=10, deadline=None)
    @given(st.from_regex(re.sub(r"\{(\d+),\d{3,}\}", shorten, row.pattern.source)))
    def passes(secret: str) -> None:
        assert row in shapes.choose_rows(secret)
        assert re.search(row.near, secret)

    passes()


HARMLESS = [(table, row) for table, rows in read_patterns("harmless").items() for row in rows]
PLACES = {
    "value": ("the admin password is {}", "DB_PASSWORD={}"),
    "public": ("It is {} in the box.",),
    "before": ("{}",),
}


@pytest.mark.parametrize(("table", "row"), HARMLESS, ids=lambda row: str(row)[:40])
def test_what_is_harmless_is_not_found(table: str, row: dict[str, str]) -> None:
    """The example of each form is passed, and that of no other row stands for it."""
    value, _values = fill(row["example"])
    if table == "before":
        drawn = value.split()[-1].rpartition("=")[2]
        assert re.search(row["pattern"], value.lower().removesuffix(drawn.lower()))
        assert find(f"It is {drawn} in the box.")
    else:
        assert re.match(row["pattern"], value)
    if table == "value":
        assert entropy.is_placeholder(value)
    for place in PLACES[table]:
        assert not find(place.replace("{}", value))


@pytest.mark.parametrize("row", tokens.ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_a_token_of_each_prefix_is_found(row: tuple[str, str, str, int, int]) -> None:
    """A row with a prefix is its own example: the shortest token and a longer one."""
    kind, prefixes, alphabet, least, most = row
    letters = [
        char for char in map(chr, range(33, 127)) if re.match(tokens.ALPHABETS[alphabet], char)
    ]
    draw = random.Random(prefixes)
    for prefix in prefixes.split():
        for size in {least, min(most, least + 8)}:
            value = "".join(draw.choices([char for char in letters if char.isalnum()], k=size))
            text = f"it is {prefix}{value} now"
            findings = find(text)
            assert prefix + value not in redact(text, findings), kind
    assert kind in KINDS


@pytest.mark.parametrize(
    "row", tables.read_rows("redaction/announcing_words"), ids=lambda row: row[1]
)
def test_the_example_of_a_word_is_found(row: list[str]) -> None:
    """A value is found beside each word, in a sentence or a setting of its language."""
    group, pattern, parts, example = row
    assert group in ("person", "short", "machine", "foreign")
    assert re.search(pattern, example.lower())
    assert any(part in example.lower() for part in parts.split("|"))
    text, (value,) = fill(example)
    assert value not in redact(text, find(text))


STARTS = {
    "ch.ssn": "756",
    "cn.ric": "11010119900101",
    "fi.hetu": "0101",
    "fr.nir": "290012A",
    "mx.curp": "GOAA900101HDFRRR",
}
"""How numbers begin that are hardly drawn by chance: a country, a place, a day, consonants."""


def draw_number(shape: str, start: str, draw: random.Random) -> str:
    """Return a number of a shape; what must be a letter or a digit is drawn behind its start."""
    letters = iter(start)
    kinds = {"9": string.digits, "A": string.ascii_uppercase, "*": ALPHABETS["upper"]}

    def choose(sign: str) -> str:
        char = next(letters, "")
        return char if char and char in kinds[sign] else draw.choice(kinds[sign])

    return "".join(choose(sign) if sign in kinds else sign for sign in shape)


@pytest.mark.parametrize("row", national_ids.ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_a_national_id_of_each_row_is_found(row: list[str]) -> None:
    """A row is its own example: of numbers in its shapes, some pass the check and are found."""
    _country, shapes_text, names, check = row
    draw = random.Random("".join(row))
    for shape in shapes_text.split("|"):
        numbers = (draw_number(shape, STARTS.get(check, ""), draw) for _try in range(20_000))
        number = next(number for number in numbers if national_ids.is_valid(check, number))
        text = f"{names.split('|')[0].replace('?', '')} {number}"
        assert number not in redact(text, find(text))


@pytest.mark.parametrize(
    ("brand", "ranges", "lengths"), personal.CARDS, ids=[row[0] for row in personal.CARDS]
)
def test_a_card_of_each_brand_is_found(
    brand: str, ranges: tuple[tuple[int, int], ...], lengths: tuple[int, ...]
) -> None:
    """A row is its own example, too: each of its first digits and lengths."""
    for start in {end for ends in ranges for end in ends}:
        for length in lengths:
            body = f"{start}{'7305926418' * 2}"[: length - 1]
            number = next(
                f"{body}{digit}" for digit in range(10) if national_ids.is_luhn(f"{body}{digit}")
            )
            text = f"the card {number}"
            assert length not in (14, 15, 16) or number not in redact(text, find(text)), brand
