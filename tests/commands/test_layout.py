"""The layout of text: widths in cells, cut titles, ages, short ids, and what a pipe gets."""

from __future__ import annotations

import re

import pytest
import scene
from conftest import NOW, PIPED, Sandbox, make_memory, make_tree

from memtool.commands._layout import Layout, clip, format_age, measure, pad
from memtool.memory import timestamps
from memtool.store.tree import Record

SECOND = timestamps.parse(NOW)
LONG = "Passenger lists go to the coast guard from December on, by mail"
DAY_S = timestamps.DAY_S


def layout_of(width: int, *ids: str) -> Layout:
    """A layout for memories with these ids."""
    records = [Record(make_memory(id_, title=f"Title of {id_[-4:]}"), "", "") for id_ in ids]
    return Layout(lambda: make_tree(*records), SECOND, width)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "just now"),
        (60, "1 minute ago"),
        (3 * 3_600 + 59, "3 hours ago"),
        (DAY_S, "yesterday"),
        (2 * DAY_S, "2 days ago"),
        (14 * DAY_S - 1, "13 days ago"),
        (14 * DAY_S, "2 weeks ago"),
        (69 * DAY_S, "9 weeks ago"),
        (70 * DAY_S, "2 months ago"),
        (729 * DAY_S, "23 months ago"),
        (730 * DAY_S, "1 year ago"),
        (1_500 * DAY_S, "4 years ago"),
    ],
)
def test_ages_are_told_in_the_unit_that_fits(seconds: int, text: str) -> None:
    """The unit grows with the age."""
    assert format_age(seconds) == text


def test_a_terminal_gets_ages_and_a_pipe_days() -> None:
    """Equal input gives equal bytes in a pipe, whenever it is asked for."""
    assert layout_of(80).when("2026-02-27T12:00:00Z") == "2 days ago"
    assert PIPED.when("2026-02-27T12:00:00Z") == "2026-02-27"
    assert layout_of(80).when("2026-03-05T12:00:00Z") == "2026-03-05"
    assert PIPED.when("") == ""


@pytest.mark.parametrize(
    ("text", "cells"), [("Redis", 5), ("日本", 4), ("café", 4), ("cafe\u0301", 4), ("", 0)]
)
def test_widths_are_counted_in_cells(text: str, cells: int) -> None:
    """Wide characters take two cells, a combining accent none."""
    assert measure(text) == cells
    assert measure(pad(text, 10)) == 10


@pytest.mark.parametrize("text", [LONG, "日本語のタイトルはここで切れる", "café " * 20])
@pytest.mark.parametrize("width", [1, 2, 7, 12, 20])
def test_a_cut_text_fits_and_shows_that_it_is_cut(text: str, width: int) -> None:
    """Whatever is cut ends in one dot of three, within the width."""
    cut = clip(text, width)
    assert measure(cut) <= width
    assert cut.endswith("…")
    assert text.startswith(cut[:-1])
    assert clip("short", 20) == "short"


def test_columns_go_before_a_title_is_cut_below_44_cells() -> None:
    """The kind goes first, then the state, then the age; only then the title is cut more."""
    rows = [("dec-2g54", LONG, "candidate", "yesterday", "task progress")]
    assert layout_of(120).table(rows, drop=(4, 2, 3))[0].endswith("task progress")
    at_80 = layout_of(80).table(rows, drop=(4, 2, 3))[0]
    assert "task progress" not in at_80
    assert at_80.endswith("candidate  yesterday")
    at_60 = layout_of(60).table(rows, drop=(4, 2, 3))[0]
    assert (at_60[:10], at_60[-1]) == ("dec-2g54  ", "…")
    assert "yesterday" not in at_60
    for width in (40, 60, 80, 120):
        (line,) = layout_of(width).table(rows, drop=(4, 2, 3))
        assert measure(line) <= width


def test_a_pipe_cuts_nothing() -> None:
    """Programs that read lines get whole titles."""
    rows = [("dec-2g54", LONG * 3, "candidate"), ("dec-1", "Short", "due")]
    lines = PIPED.table(rows)
    assert lines[0] == f"dec-2g54  {LONG * 3}  candidate"
    assert lines[1].startswith("dec-1     Short   ")


def test_empty_columns_are_left_out() -> None:
    """Two spaces are enough between what is there."""
    assert PIPED.table([("a", "", "b"), ("c", "", "d")]) == ["a  b", "c  d"]
    assert PIPED.table([]) == []


def test_a_title_has_its_id_at_the_right_edge() -> None:
    """Below it if the line has no room for both; after two spaces in a pipe."""
    assert layout_of(40).title_line("Short", "[dec-2g54]") == ["Short" + " " * 25 + "[dec-2g54]"]
    *words, last = layout_of(40).title_line(LONG, "[dec-2g54]")
    assert (" ".join(words), last) == (LONG, " " * 30 + "[dec-2g54]")
    assert PIPED.title_line(LONG, "[dec-2g54]") == [f"{LONG}  [dec-2g54]"]
    assert layout_of(200).title_line("Short", "[x]")[0].index("[x]") == 97


def test_prose_is_wrapped_for_a_terminal_alone() -> None:
    """No line is wider than the terminal, and never than 100 cells."""
    text = " ".join(["word"] * 80)
    assert PIPED.wrap(text, "  ") == [f"  {text}"]
    for width, limit in ((60, 60), (200, 100)):
        lines = layout_of(width).wrap(text, "  ")
        assert max(map(len, lines)) <= limit
        assert [word for line in lines for word in line.split()] == text.split()
    assert layout_of(60).wrap("") == []


ID = "dec-2026-08-10-hold-a-seat-for-20-minutes-2g54"
FOREIGN = "adr-0001-use-postgresql-for-bookings"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"memtool show {ID}", "memtool show dec-2g54"),
        (f"{ID}, and {FOREIGN}.", "dec-2g54, and adr-0001."),
        (f".memory/decision/2026-08/{ID}.md:3: fork", f".memory/decision/2026-08/{ID}.md:3: fork"),
        (f"git mv a {ID}.md", f"git mv a {ID}.md"),
        (f"[{ID}@abe7ae3]", "[dec-2g54@abe7ae3]"),
        ("dec-2026-08-10-not-in-this-tree-9x9x", "dec-2026-08-10-not-in-this-tree-9x9x"),
        ("a well-known state-of-the-art tool", "a well-known state-of-the-art tool"),
    ],
)
def test_sentences_get_short_ids(text: str, expected: str) -> None:
    """Ids of the tree alone, and never the name of a file."""
    assert layout_of(0, ID, FOREIGN).shorten(text) == expected


def test_a_memory_that_is_not_there_keeps_its_whole_id() -> None:
    """A short form that leads nowhere would be worse than a long one that log can follow."""
    layout = layout_of(0, ID)
    assert layout.name(ID) == "dec-2g54  Title of 2g54"
    assert layout.quote(ID) == '"Title of 2g54" (dec-2g54)'
    assert layout.cite(ID, "abe7ae3efc1234") == "dec-2g54@abe7ae3"
    assert layout.name(f"{ID[:-4]}9x9x") == f"{ID[:-4]}9x9x"
    assert PIPED.short(ID) == ID


READING = (
    ("list",),
    ("list", "is:superseded"),
    ("search", "where do sessions live"),
    ("show", "dec-redis"),
    ("show", "dec-redis", "--all"),
    ("status",),
    ("log",),
    ("why", "dec-redis"),
    ("conflicts",),
    ("conflicts", "dec-celery"),
    ("drift",),
    ("verify", "--all"),
    ("diff", "HEAD~2"),
    ("blame", "dec-redis"),
    ("review", "HEAD~1"),
    ("maintain",),
    ("promote", "--list"),
    ("stats", "--all"),
    ("digest",),
)
"""Verbs with text for people."""


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """A repository that has everything."""
    return scene.build(tmp_path_factory.mktemp("layout"))


def text_at(sandbox: Sandbox, width: int, *words: str) -> str:
    """Return the text of a verb on a terminal of a width, or in a pipe with 0."""
    from memtool.calls.verb import run_verb
    from memtool.cli.arguments import parse

    call = parse([*words])
    context = sandbox.context()
    _value, text = run_verb(
        context, call.face, call.positional, call.options, call.face.render, width=width
    )
    return text if isinstance(text, str) else "".join(text)


def is_free(line: str) -> bool:
    """Whether a line may be wider: it has a command, a path, an address or code in it."""
    return (
        any(mark in line for mark in ("memtool ", "git ", "/", "`", ".memory"))
        or " " not in line.strip()
    )


@pytest.mark.parametrize("words", READING, ids=" ".join)
@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(
    full: Sandbox, words: tuple[str, ...], width: int
) -> None:
    """Unless it is a command, a path or code, which are never cut."""
    wide = [
        line
        for line in text_at(full, width, *words).split("\n")
        if measure(line) > width and not is_free(line)
    ]
    assert wide == []


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_every_id_that_a_verb_prints_is_accepted(full: Sandbox, words: tuple[str, ...]) -> None:
    """Short or whole, with or without its commit."""
    context = full.context()
    tree = context.tree()
    printed = set(
        re.findall(
            r"(?<![\w/.-])((?:dec|sem|epi|sta)-[a-z0-9]+(?:-[a-z0-9]+)*(?:@[0-9a-f]{7})?)(?![\w/.-])",
            text_at(full, 0, *words),
        )
    )
    for name in printed - {"sem-broken", "sem-renamed"}:  # no memories
        assert tree.find(name).id
