"""reStructuredText and AsciiDoc as markdown, as far as a decision record needs it.

Headings, fields, links and code become those of markdown; all other text stays as it is. Headings
and fields of reStructuredText are found by docutils, which reads no other file and runs nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docutils import nodes

MAX_HEADING_LEVEL = 6
MAX_RST_CHARS = 200_000
"""Characters of a text in which docutils looks for headings; its time grows with the square."""
_HEADING_LIKE = re.compile(r" {0,3}#{1,6}(?=\s|$)")


def to_markdown(text: str, ending: str) -> str:
    """Return the text of a file in markdown, by the ending of its name."""
    if ending == ".rst":
        return convert_rst(text)
    return convert_asciidoc(text) if ending in (".adoc", ".asciidoc") else text


_RST_LINK = re.compile(r"`([^`<>]*?)\s*<([^`<>\s]+)>`__?")
_RST_ROLE = re.compile(r":(?:doc|ref):`(?:([^`<>]*?)\s*<)?([^`<>]+)>?`")
_RST_LITERAL = re.compile(r"``([^`]+)``")
_RST_FIELD = re.compile(r":([^:`\n]{1,60}):(?:\s+(.*))?$")
_RST_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*\s*$")


def convert_rst(text: str) -> str:
    """Convert the headings, fields and links of reStructuredText."""
    lines = text.split("\n")
    headings = _find_rst_headings(text[:MAX_RST_CHARS])
    converted: list[str] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        level = headings.get(number)
        if level:
            is_overlined = bool(converted) and bool(_RST_ADORNMENT.match(lines[number - 1]))
            if is_overlined and converted[-1] == lines[number - 1]:
                converted.pop()
            converted.append(f"{'#' * min(level, MAX_HEADING_LEVEL)} {line.strip()}")
            number += 2
            continue
        field = _RST_FIELD.match(line)
        if field:
            line = f"- {field[1]}: {(field[2] or '').strip()}"
        elif _HEADING_LIKE.match(line):
            line = f"    {line}"
        converted.append(_convert_rst_links(line))
        number += 1
    return "\n".join(converted)


def _convert_rst_links(line: str) -> str:
    if "`" not in line:
        return line
    line = _RST_ROLE.sub(lambda match: f"[{match[1] or match[2]}]({match[2]}.rst)", line)
    line = _RST_LINK.sub(lambda match: f"[{match[1] or match[2]}]({match[2]})", line)
    return _RST_LITERAL.sub(r"`\1`", line)


def _find_rst_headings(text: str) -> dict[int, int]:
    """Return the level of each heading by the number of its line, from 0."""
    from docutils import nodes

    headings: dict[int, int] = {}
    lines = text.split("\n")

    def add(section: nodes.Element, level: int) -> None:
        for child in section.children:
            if isinstance(child, nodes.section):
                line = (child.line or 0) - 1  # that of the underline, from 1
                for place in (line - 1, line, line + 1):
                    if 0 <= place < len(lines) and child[0].rawsource == lines[place].strip():
                        headings[place] = level
                        break
                add(child, level + 1)

    document = _parse_rst(text)
    if document is not None:
        add(document, 1)
    return headings


def _parse_rst(text: str) -> nodes.document | None:
    """Return the tree of a text; None if it nests too deeply to be a record."""
    from docutils import frontend, utils
    from docutils.parsers.rst import Parser

    settings: Any = frontend.get_default_settings(Parser)
    settings.report_level = settings.halt_level = 5  # says nothing, and goes on
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.syntax_highlight = "none"
    document = utils.new_document("record", settings)
    try:
        Parser().parse(text, document)
    except RecursionError:
        return None
    return document


_ADOC_HEADING = re.compile(r"(={1,6})\s+(\S.*?)(?:\s+=+)?\s*$")
_ADOC_ATTRIBUTE = re.compile(r":([\w-]{1,60}):(?:\s+(.*))?$")
_ADOC_TERM = re.compile(r"(\w[\w ]{1,40})::(?:\s+(\S.*))?$")
_ADOC_FENCE = re.compile(r"(-{4,}|\.{4,}|`{3,})\s*$")
_ADOC_COMMENT = re.compile(r"/{4,}\s*$")
_ADOC_LINK = re.compile(r"(?:xref:|link:|(?=https?:))([^\s\[\]]+)\[([^\[\]]*)\]")
_ADOC_REFERENCE = re.compile(r"<<([^<>,]+)(?:,\s*([^<>]*))?>>")


def convert_asciidoc(text: str) -> str:
    """Convert the headings, attributes, links and listings of AsciiDoc; drop its comments."""
    converted: list[str] = []
    fence = ""
    is_comment = False
    level = 0
    for line in text.split("\n"):
        mark = _ADOC_FENCE.match(line)
        if not fence and _ADOC_COMMENT.match(line):
            is_comment = not is_comment
        elif is_comment or (not fence and line.startswith("//")):
            continue
        elif fence or mark:
            if mark and (not fence or mark[1] == fence):
                fence = "" if fence else mark[1]
                line = "```"  # noqa: PLW2901  # the same line in markdown
            converted.append(line)
        else:
            heading = _ADOC_HEADING.match(line)
            level = len(heading[1]) if heading else level
            converted += _convert_adoc_line(line, level)
    return "\n".join([*converted, "```"] if fence else converted)


def _convert_adoc_line(line: str, level: int) -> list[str]:
    """Return the line in markdown, below a heading of a level; nothing for a switch."""
    heading, attribute = _ADOC_HEADING.match(line), _ADOC_ATTRIBUTE.match(line)
    term = _ADOC_TERM.match(line)
    if heading:
        return [f"{'#' * level} {_convert_adoc_links(heading[2])}"]
    if attribute:
        return [f"- {attribute[1]}: {_convert_adoc_links(attribute[2])}"] if attribute[2] else []
    if term and term[2]:
        return [f"- {term[1]}: {_convert_adoc_links(term[2])}"]
    if term:  # a term with its paragraphs below is used as a section
        return [f"{'#' * min(level + 1, MAX_HEADING_LEVEL)} {term[1]}"]
    return [f"    {line}" if _HEADING_LIKE.match(line) else _convert_adoc_links(line)]


def _convert_adoc_links(line: str) -> str:
    if "[" in line:
        line = _ADOC_LINK.sub(lambda match: f"[{match[2] or match[1]}]({match[1]})", line)
    if "<<" in line:
        line = _ADOC_REFERENCE.sub(lambda match: f"[{match[2] or match[1]}]({match[1]})", line)
    return line
