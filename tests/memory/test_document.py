"""Documents: written and read without loss, edited without touching what was not asked for."""

from __future__ import annotations

import random

import pytest
from conftest import make_memory
from hypothesis import given
from hypothesis import strategies as st

from memtool.memory import document, schema
from memtool.memory.document import Unreadable
from memtool.memory.memory import Fields, FieldValue, Memory
from memtool.memory.schema import Problem

BASE = document.write(make_memory("dec-a", "One.\n\n---\n\nTwo.\n")).decode()

LINES = st.text(max_size=40).filter(lambda text: bool(text.strip()) and schema.is_line(text))
IDS = st.from_regex(r"[a-z0-9][a-z0-9._-]{2,20}", fullmatch=True)
EXTRA: dict[str, st.SearchStrategy[FieldValue]] = {
    "title": LINES,
    "status": st.sampled_from(["confirmed", "candidate", "pinned"]),
    "tags": st.lists(LINES, max_size=4).map(tuple),
    "aliases": st.lists(LINES, max_size=4).map(tuple),
    "source": st.lists(LINES.map("human:x{}".format), min_size=1, max_size=3).map(tuple),
    "supersedes": st.lists(IDS, max_size=3).map(tuple),
    "domain": LINES,
    "importance": st.sampled_from(["0", "0.25", "1"]),
    "valid_through": st.sampled_from(["2027-01-01", "2027-01-01T00:00:00Z"]),
    "checked": st.fixed_dictionaries({"at": st.just("2026-03-01T00:00:00Z"), "by": LINES}),
    "x-own": LINES,
    "x-b-c": LINES,
}
CHANGES = st.fixed_dictionaries({}, optional=EXTRA)
BODIES = (
    st.text()
    .map(lambda text: text.replace("\0", ""))
    .filter(
        lambda text: not any("\ud800" <= char < "\ue000" for char in text) and "<<<<<<<" not in text
    )
)


def unreadable(data: bytes) -> Unreadable:
    with pytest.raises(Unreadable) as caught:
        document.read(data, "dec-a.md")
    assert caught.value.problems
    assert all(problem.line >= 1 for problem in caught.value.problems)
    return caught.value


@given(CHANGES, BODIES)
def test_what_is_written_is_read_as_it_was(changes: Fields, body: str) -> None:
    """Reading what was written gives the same memory, and writing that the same bytes."""
    memory = make_memory("dec-a", body, **changes)
    data = document.write(memory)
    assert document.read(data) == memory
    assert document.write(document.read(data)) == data


BY_HAND = {
    "comments": BASE.replace("type:", "# why\ntype:").replace("medium", "medium # for now"),
    "single quotes": BASE.replace("title: Title of dec-a", "title: 'Title of dec-a'"),
    "folded scalar": BASE.replace("title: Title of dec-a", "title: >-\n  Title\n  of dec-a"),
    "plain scalar over lines": BASE.replace("title: Title of", "title: Title\n  of"),
    "flow list": BASE.replace("source:\n  - human:Ada", 'source: ["human:Ada"]'),
    "list without indent": BASE.replace("  - human", "- human"),
    "other order": BASE.replace("id: dec-a\n", "").replace("source:", "id: dec-a\nsource:"),
    "blank lines": BASE.replace("\ntype:", "\n\n\ntype:"),
    "spaces after values": BASE.replace("type: decision", "type: decision   "),
    "CRLF": BASE.replace("\n", "\r\n"),
    "BOM": "\ufeff" + BASE,
    "BOM and CRLF": "\ufeff" + BASE.replace("\n", "\r\n"),
    "blank lines after the fence": BASE.replace("One.", "\n\n\nOne."),
    "spaces after the fence": BASE.replace("---\nOne.", "---  \n  \n One."),
    "no body": BASE[: BASE.index("One.")],
    "no line feed at the end": BASE.rstrip("\n"),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_files_by_hand_mean_the_same_and_keep_their_body(name: str) -> None:
    """However a person writes the header, the fields are the same and the body keeps each byte."""
    text = BY_HAND[name]
    memory = document.read(text.encode(), "a/dec-a.md")
    assert document.read(BASE.encode()).fields == memory.fields
    fence = next(f for f in ("\n----\n", "\n---  \n", "\r\n---\r\n", "\n---\n") if f in text)
    assert text.partition(fence)[2] == memory.body


@pytest.mark.parametrize("name", BY_HAND)
def test_an_edit_changes_only_the_lines_of_its_keys(name: str) -> None:
    """Setting, adding and dropping keys leaves every other line of a file by hand as it was."""
    data = BY_HAND[name].encode()
    changes: dict[str, FieldValue | None] = {
        "status": "pinned",
        "confidence": "high",
        "x-own": "yes",
    }
    edited = document.edit(data, changes)
    before, after = data.splitlines(keepends=True), edited.splitlines(keepends=True)
    ours = (b"status:", b"confidence:", b"x-own:")
    assert [row for row in before if not row.startswith(ours)] == [
        row for row in after if not row.startswith(ours)
    ]
    assert document.read(data).with_fields(**changes) == document.read(edited)
    end = b"\r\n" if b"\r\n" in data else b"\n"
    assert all(row.endswith(end) for row in after if row.startswith(ours))


@given(
    st.sampled_from(sorted(BY_HAND)),
    CHANGES,
    CHANGES,
    st.sets(st.sampled_from(sorted(set(EXTRA) - {"title", "source"}))),
    st.sampled_from(["", "# a remark\n", "\n", "\n# - not an item\n\n"]),
)
def test_any_edit_gives_the_fields_and_keeps_the_rest(
    name: str, there: Fields, changes: Fields, dropped: set[str], between: str
) -> None:
    """Whatever keys are set, added or dropped, and wherever comments are, all else is the same."""
    memory = make_memory("dec-a", **there)
    header = document.write(memory).decode().removeprefix("---\n").partition("\n---\n")[0]
    newline = "\r\n" if "CRLF" in name else "\n"
    rows = [row if row.startswith(" ") else between + row for row in header.split("\n")]
    body = BY_HAND[name].partition("---" + newline)[2]
    text = "---\n" + "\n".join(rows) + "\n---\n"
    data = (text.replace("\n", newline) + body).encode()
    assert document.read(data).fields == memory.fields
    wanted: dict[str, FieldValue | None] = {**dict.fromkeys(dropped), **changes}
    edited = document.edit(data, wanted)
    after = document.read(edited)
    assert memory.with_fields(**wanted).fields == after.fields
    assert body == after.body
    remark = b"# " in between.encode() and between.strip().encode()
    if remark:
        assert edited.count(remark) == data.count(remark) >= 6
    assert document.edit(data, {}) == data


def test_an_edit_keeps_comments_around_lists() -> None:
    """Remarks above and below a list stay, those between its items go with it."""
    text = "---\nid: dec-a\n# sources\nsource:\n  - human:Ada\n  # and\n  - tool:x\n# end\n\n---\nb"
    edited = document.edit(text.encode(), {"source": ("human:Bo",), "tags": ("t",)})
    assert edited.decode() == (
        "---\nid: dec-a\n# sources\nsource:\n  - human:Bo\ntags: [t]\n# end\n\n---\nb"
    )


@pytest.mark.parametrize(
    "data", [b"no header", b"---\na: [b\n---\n", b"---\na: *b\n---\n", b"\xff"]
)
def test_an_edit_refuses_what_cannot_be_read(data: bytes) -> None:
    """Bytes that could not be parsed are never rewritten."""
    with pytest.raises(Unreadable):
        document.edit(data, {"status": "pinned"})


def test_an_edit_that_leaves_no_key_is_refused() -> None:
    """A file does not lose its whole header."""
    with pytest.raises(Unreadable, match="empty"):
        document.edit(b"---\nid: dec-a\n---\n", {"id": None})


HOSTILE: dict[str, tuple[bytes, str, int]] = {
    "empty": (b"", "no-frontmatter", 1),
    "only a fence": (b"---\n", "no-frontmatter", 1),
    "never closed": (b"---\nid: a\n", "no-frontmatter", 1),
    "two fences": (b"---\n---\n", "bad-yaml", 1),
    "two BOMs": (b"\xef\xbb\xbf" * 2 + BASE.encode(), "no-frontmatter", 1),
    "NUL": (BASE.replace("One.", "O\0ne.").encode(), "not-utf8", 10),
    "UTF-16": (BASE.encode("utf-16"), "not-utf8", 1),
    "UTF-32": (BASE.encode("utf-32"), "not-utf8", 1),
    "Latin-1": (BASE.replace("One.", "\xe9.").encode("latin-1"), "not-utf8", 10),
    "lone surrogate": (BASE.encode() + b"\xed\xa0\x80", "not-utf8", 15),
    "overlong": (b"---\nid: \xc0\xaf\n---\n", "not-utf8", 2),
    "too large": (BASE.encode() + b"a" * document.MAX_BYTES, "too-large", 1),
    "header too large": (
        BASE.replace("type:", f"x-a: {'a' * document.MAX_HEADER}\ntype:").encode(),
        "too-large",
        1,
    ),
    "brackets": (b"---\nid: " + b"[" * 16_000 + b"\n---\n", "bad-yaml", 2),
    "200,000 brackets": (b"---\nid: " + b"[" * 200_000 + b"\n---\n", "too-large", 1),
    "block nesting": (b"---\nid: a\nb:\n" + b"- " * 8_000 + b"\n---\n", "bad-yaml", 4),
    "alias": (b"---\nid: *a\n---\n", "bad-yaml", 2),
    "tag": (b"---\nid: !!python/name:os.system\n---\n", "bad-yaml", 2),
    "two keys": (b"---\nid: a\nid: b\n---\n", "bad-yaml", 3),
    "hidden in an escape": (
        BASE.replace("Title of", '"\\u202e').replace("dec-a\nconf", 'dec-a"\nconf').encode(),
        "bad-value",
        5,
    ),
    "NUL in an escape": (
        BASE.replace("title: Title of dec-a", 'title: "a\\0"').encode(),
        "bad-value",
        5,
    ),
    "conflict": (
        BASE.replace("One.", "<<<<<<< HEAD\nOne.\n=======\n2\n>>>>>>> b").encode(),
        "conflict-markers",
        10,
    ),
    "conflict at the top": (
        f"<<<<<<< HEAD\n{BASE}=======\n{BASE}>>>>>>> b\n".encode(),
        "conflict-markers",
        1,
    ),
    "conflict in the header": (
        BASE.replace(
            "type: decision", "<<<<<<< a\ntype: state\n=======\ntype: semantic\n>>>>>>> b"
        ).encode(),
        "conflict-markers",
        4,
    ),
    "own key with a line feed": (
        BASE.replace("type:", '"x-a\\nb": c\ntype:').encode(),
        "unknown-key",
        4,
    ),
    "own key with a colon": (
        BASE.replace("type:", '"x-a: b": c\ntype:').encode(),
        "unknown-key",
        4,
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_give_a_problem_at_its_line(name: str) -> None:
    """Whatever a file holds, reading it ends with a problem that names a code and a line."""
    data, code, line = HOSTILE[name]
    problem = unreadable(data).problems[0]
    assert (code, line) == (problem.code, problem.line), problem.message


def read_or_problems(data: bytes) -> Memory | list[Problem]:
    try:
        return document.read(data, "x/dec-a.md")
    except Unreadable as error:
        return error.problems


def test_only_unreadable_escapes_from_mutated_files() -> None:
    """Twenty thousand damaged headers are read or refused, and nothing else is raised."""
    rng = random.Random(7)
    fragments = [
        b"[",
        b"]",
        b"{",
        b"}",
        b"&a ",
        b"*a",
        b"!!t ",
        b"<<: a\n",
        b"- ",
        b"? ",
        b": ",
        b"|",
        b">",
        b'"',
        b"'",
        b"\\",
        b"\\u",
        b"\\ud800",
        b"\\U00110000",
        b"#",
        b"---\n",
        b"...\n",
        b"%A\n",
        b"\r",
        b"\r\n",
        b"\t",
        b"\x00",
        b"\x1b",
        b"\x7f",
        b"\x80",
        b"\xff",
        b"\xc2\x85",
        b"\xe2\x80\xa8",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"~",
        b"=",
        b"\n",
        b"\n\n",
        b" ",
        b"  - a\n",
        b"e999",
        b"nan",
        b"-0",
        b"2026-02-30",
        b"T25:00:00Z",
        b"id: a\n",
        b"<<<<<<< a\n",
        b"9" * 5_000,
        b"file:../a",
        b"commit:zz",
        b"x-\xc3\xa9: 1\n",
        b"[" * 300,
    ]
    full = make_memory(
        "dec-a",
        importance="0.5",
        tags=("a", "b"),
        checked={"at": "2026-03-01T00:00:00Z"},
        valid_from="2026-01-01",
        valid_through="2027-01-01",
        iteration="2",
        fade_rate="0.1",
    )
    seeds = [document.write(full), *(text.encode() for text in BY_HAND.values())]
    read = 0
    for _ in range(20_000):
        data = bytearray(rng.choice(seeds))
        top = data.find(b"One.") if b"One." in data else len(data)
        for _change in range(rng.randint(1, 4)):
            place = rng.randrange(top)
            data[place : place + rng.choice((0, 0, 1, 3, 20))] = rng.choice(fragments)
        memory = read_or_problems(bytes(data))
        if isinstance(memory, Memory):
            read += 1
            again = document.write(memory)
            assert document.read(again, "x/dec-a.md") == memory
        else:
            assert min(problem.line for problem in memory) >= 1
    assert 300 < read < 15_000


HEADERS = st.lists(
    st.sampled_from(
        (
            "id: some-id",
            "id: other",
            "timestamp: 2026-02-22T19:33:00Z",
            "timestamp: soon",
            "type: decision",
            "type: poem",
            "title: A plain title",
            'title: "quoted: \\"one\\""',
            "confidence: high",
            "source:\n  - human:me",
            "source: [human:me]",
            "source: []",
            "tags: [one, two]",
            "tags: one",
            "files: [src/*.py]",
            "x-own: word",
            "unknown: word",
            "valid_from: 2026-01-01",
            "valid_through: 2025-01-01",
            "checked:\n  at: 2026-02-22",
            "  stray: row",
            "",
            "# comment",
            "domain: y\t",
            "<<<<<<< ours",
            ">>>>>>> theirs",
        )
    ),
    max_size=9,
    unique=True,
)
GOOD = (
    "id: some-id",
    "timestamp: 2026-02-22T19:33:00Z",
    "type: decision",
    "title: A plain title",
    "confidence: high",
    "source:\n  - human:me",
)
NAMES = st.sampled_from(("", "m/some-id.md", "m/other.md"))


@given(st.lists(st.tuples(HEADERS, st.booleans(), NAMES), min_size=1, max_size=4))
def test_a_reader_of_many_files_reads_each_as_if_alone(
    files: list[tuple[list[str], bool, str]],
) -> None:
    """Whatever it has seen before, a reader gives the memory or the problems that `read` gives."""
    reader = document.Reader()
    for rows, is_whole, path in files:
        lines = [*GOOD, *rows] if is_whole else rows
        data = ("---\n" + "".join(f"{line}\n" for line in lines) + "---\nbody\n").encode()
        expected: Memory | list[Problem]
        try:
            expected = document.read(data, path)
        except Unreadable as error:
            expected = error.problems
        try:
            result: Memory | list[Problem] = reader.read(data, path)
        except Unreadable as error:
            result = error.problems
        assert result == expected


@pytest.mark.parametrize("data", [b"", b"\xff", b"---\n\0", b"\xef\xbb\xbf---\n", b"---\n---\n"])
def test_a_reader_refuses_what_is_no_memory(data: bytes) -> None:
    """Bytes that are not a document have the same problems for both."""
    with pytest.raises(Unreadable) as alone:
        document.read(data, "m/a.md")
    with pytest.raises(Unreadable) as among_many:
        document.Reader().read(data, "m/a.md")
    assert alone.value.problems == among_many.value.problems
