"""The parts of a docstring: first line, paragraphs, tables and sections.

A table in a description is a block of rows, four columns deeper than the text, each a term and its
meaning with two or more spaces between them. A line in front of it that ends with a colon is its
title. What is deeper still continues the meaning above it:

    What a query may hold:
        words         any of them may match
        "a phrase"    must occur as it is

`{TABLE}` stands for the names in a table of the module.
"""

from __future__ import annotations

import re
from textwrap import dedent

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_SECTIONS = ("Args", "Example", "Raises", "Returns")
_INDENT = "    "
_TABLE = re.compile(r"\{([A-Z_]+)\}")
_GAP = re.compile(r" {2,}")


class Rows(Value):
    """A table of terms and meanings."""

    title: str
    rows: tuple[tuple[str, str], ...]


def fill_in_names(text: str, tables: Mapping[str, Any]) -> str:
    """Replace each `{TABLE}` by the names in it: a list of choices is written nowhere twice."""
    return _TABLE.sub(lambda match: join_choices(tuple(tables[match[1]])), text)


def join_choices(names: Sequence[str]) -> str:
    """Return names as a list: `a, b or c`."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def parse_docstring(text: str) -> tuple[str, str, dict[str, list[str]]]:
    """Split a docstring into its first line, its description, and the lines of its sections."""
    summary, _newline, body = text.strip().partition("\n")
    description: list[str] = []
    sections: dict[str, list[str]] = {}
    current = description
    for line in dedent(body).split("\n"):
        if line.endswith(":") and line[:-1] in _SECTIONS:
            current = sections.setdefault(line[:-1], [])
        else:
            current.append(line)
    blocks = {
        name: dedent("\n".join(rows)).strip("\n").split("\n") for name, rows in sections.items()
    }
    return summary, "\n".join(description).strip("\n"), blocks


def parse_blocks(description: str) -> list[str | Rows]:
    """Split a description into its paragraphs, each as one line, and its tables."""
    blocks = [block for block in description.split("\n\n") if block.strip()]
    return [
        _parse_rows(block) if f"\n{_INDENT}" in f"\n{block}" else _join(block) for block in blocks
    ]


def _join(paragraph: str) -> str:
    return " ".join(paragraph.split())


def _parse_rows(block: str) -> Rows:
    title = ""
    rows: list[tuple[str, str]] = []
    for line in block.split("\n"):
        if not line.startswith(_INDENT):
            title = f"{title} {line.strip()}".strip()
        elif line.startswith(_INDENT + " "):
            term, meaning = rows[-1]
            rows[-1] = (term, f"{meaning} {line.strip()}")
        else:
            term, meaning = _GAP.split(line.strip(), maxsplit=1)
            rows.append((term, meaning))
    return Rows(title.removesuffix(":"), tuple(rows))


def parse_arguments(rows: list[str]) -> dict[str, str]:
    """Return the text of each parameter in the lines of the section `Args`."""
    descriptions: dict[str, str] = {}
    name = ""
    for row in rows:
        if row.startswith(" "):
            descriptions[name] += " " + row.strip()
        else:
            name, _colon, text = row.partition(": ")
            descriptions[name] = text
    return descriptions
