"""Blocks between markers: everything around them keeps its bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.errors import MemtoolError
from memtool.inject import agents_md
from memtool.inject.agents_md import (
    BEGIN,
    END,
    FORM,
    TREE_PREAMBLE,
    place_block,
    remove_block,
    split,
)
from memtool.inject.block import write_block

BLOCK = write_block(["| dec-a: Title\n"], FORM, TREE_PREAMBLE)
OTHER = write_block(["| dec-b: Title\n"], FORM, TREE_PREAMBLE)
lines = st.text(alphabet="ab <!->#\t\r\u2028\u00e9\n", max_size=60).filter(
    lambda text: not {BEGIN, END} & {line.strip() for line in text.splitlines()}
)


@given(lines, lines)
def test_what_stands_around_a_block_keeps_its_bytes(before: str, after: str) -> None:
    """Put in, refreshed and emptied: the rest of the file is the same to the byte."""
    if before and not before.endswith("\n"):
        before += "\n"
    file = f"{before}{BEGIN}\n{OTHER}{END}\n{after}".encode()
    made = place_block(file, "A.md", BLOCK)
    assert made == f"{before}{BEGIN}\n{BLOCK}{END}\n{after}".encode()
    assert place_block(made, "A.md", BLOCK) == made
    assert place_block(made, "A.md", "") == f"{before}{BEGIN}\n{END}\n{after}".encode()


@given(lines)
def test_a_file_without_a_block_gets_one_at_its_end(text: str) -> None:
    """The old text begins the new file; doing it again changes nothing."""
    made = place_block(text.encode(), "A.md", BLOCK)
    assert made.startswith(text.encode())
    assert place_block(made, "A.md", BLOCK) == made
    parts = split(made, "A.md")
    assert parts.block is not None
    assert not agents_md.is_edited(parts.block)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (None, f"{BEGIN}\nx\n{END}\n"),
        (b"", f"{BEGIN}\nx\n{END}\n"),
        (b"# Mine", f"# Mine\n\n{BEGIN}\nx\n{END}"),
        (b"# Mine\n", f"# Mine\n\n{BEGIN}\nx\n{END}\n"),
        (b"# Mine\r\n", f"# Mine\r\n\r\n{BEGIN}\r\nx\r\n{END}\r\n"),
    ],
)
def test_a_new_block_is_one_line_apart(data: bytes | None, expected: str) -> None:
    """In the line ends of the file."""
    assert place_block(data, "A.md", "x\n") == expected.encode()


@given(st.none() | lines, st.sampled_from(["", BLOCK]))
def test_a_block_that_is_taken_out_leaves_no_trace(text: str | None, block: str) -> None:
    """Also where the file has no final line feed, and after the block was renewed."""
    data = None if text is None else text.encode()
    made = place_block(data, "A.md", block, has_marks=True)
    for renewed in (made, place_block(made, "A.md", OTHER)):
        assert remove_block(renewed, "A.md") == (data or None)


def test_a_refreshed_block_ends_its_lines_as_its_markers_do() -> None:
    """A file from another system stays one of that system."""
    made = place_block(f"# Mine\r\n{BEGIN}\r\nold\r\n{END}\r\n".encode(), "A.md", "a\nb\n")
    assert made == f"# Mine\r\n{BEGIN}\r\na\r\nb\r\n{END}\r\n".encode()


def test_nothing_to_say_adds_nothing() -> None:
    """A file without a block is unchanged if there is no block to write."""
    assert place_block(b"# Mine\n", "A.md", "") == b"# Mine\n"
    assert place_block(None, "A.md", "") == b""


@pytest.mark.parametrize(
    "text",
    [
        BEGIN,
        END,
        f"{BEGIN}\n{BEGIN}\n{END}",
        f"{BEGIN}\n{END}\n{END}",
        f"{END}\n{BEGIN}",
        f"{BEGIN}\n{END}\n{BEGIN}\n{END}",
        f"  {BEGIN}\n",
    ],
)
def test_markers_that_make_no_pair_are_refused(text: str) -> None:
    """The block is ambiguous, so the lines are named."""
    with pytest.raises(MemtoolError) as caught:
        place_block(text.encode(), "A.md", BLOCK)
    assert caught.value.code == "broken-block"
    assert "line 1" in caught.value.message


def test_a_marker_inside_a_sentence_is_none() -> None:
    """Documentation may speak of the markers."""
    text = f"Between `{BEGIN}` and `{END}` stands the block.\n"
    assert split(text.encode(), "A.md").block is None


def test_bytes_that_are_no_text_are_refused() -> None:
    """Nothing is decoded and written back as something else."""
    with pytest.raises(MemtoolError, match="not UTF-8"):
        place_block(b"\xff", "A.md", BLOCK)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("Title", "Titel"),
        lambda text: text.replace("dec-a", "dec-b"),
        lambda text: text + "More.\n",
        lambda text: "More.\n" + text,
        lambda text: text.replace(") ", ")"),
        lambda text: text.replace("evidence", "instruction"),
        lambda text: text[:-30],
        lambda text: "anything",
    ],
)
def test_a_block_that_was_edited_is_known(change) -> None:
    """Any change by hand, since its name is made of its content."""
    assert not agents_md.is_edited(BLOCK)
    assert not agents_md.is_edited(BLOCK.replace("\n", "\r\n"))
    changed = change(BLOCK)
    assert agents_md.is_edited(changed) == (changed != BLOCK)
