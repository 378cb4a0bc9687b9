"""Docstrings: their paragraphs, tables and sections."""

from __future__ import annotations

from memtool.calls.docstring import Rows, parse_arguments, parse_blocks, parse_docstring

TEXT = """Find the memories.

    A paragraph
    of two lines.

    What a query holds:
        words         any of them, and this
            goes on
        "a phrase"    as it is

        --flag    a table without a title

    Example:
        memtool search x

    Args:
        query: the question,
            in words
        limit: how many
    """


def test_a_description_is_split_into_paragraphs_and_tables():
    """A block of indented rows is a table, with the line before it as the title."""
    _summary, description, _sections = parse_docstring(TEXT)
    assert parse_blocks(description) == [
        "A paragraph of two lines.",
        Rows(
            "What a query holds",
            (("words", "any of them, and this goes on"), ('"a phrase"', "as it is")),
        ),
        Rows("", (("--flag", "a table without a title"),)),
    ]


def test_sections_are_not_part_of_the_description():
    """The first line, the example and the parameters are read apart."""
    summary, description, sections = parse_docstring(TEXT)
    assert summary == "Find the memories."
    assert "memtool search x" not in description
    assert sections["Example"] == ["memtool search x"]
    assert parse_arguments(sections["Args"]) == {
        "query": "the question, in words",
        "limit": "how many",
    }


def test_an_empty_description_has_no_blocks():
    """A verb may need no more than its first line."""
    assert parse_blocks("") == []
