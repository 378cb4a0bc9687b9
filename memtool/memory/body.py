"""The body of a memory as markdown: its sections and its links, as markdown-it-py sees them."""

from __future__ import annotations

from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from memtool.value import Value


class Section(Value):
    """A heading and what stands below it. Lines count from 1 within the body, both inclusive.

    The text before the first heading is the section with level 0 and an empty title.
    """

    title: str
    level: int
    first_line: int
    last_line: int
    text: str


class Link(Value):
    """A reference out of the body: `[[id]]` has kind `memory`, a markdown link kind `url`."""

    kind: str
    target: str
    line: int


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": True}).enable(["table"])


def sections(body: str) -> tuple[Section, ...]:
    """Split a body at its top-level headings; headings inside code or quotes do not count."""
    lines = body.replace("\r\n", "\n").replace("\r", "\n").split("\n")  # as markdown-it does
    lines = lines[:-1] if lines[-1] == "" else lines
    starts: list[tuple[str, int, int, int]] = []  # title, level, first line, first line of text
    tokens = _parser().parse(body)
    for number, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            title = tokens[number + 1].content
            starts.append((title, int(token.tag[1:]), token.map[0] + 1, token.map[1]))
    found = []
    first_heading = starts[0][2] if starts else len(lines) + 1
    opening = "\n".join(lines[: first_heading - 1]).strip()
    if opening:
        found.append(Section("", 0, 1, first_heading - 1, opening))
    for number, (title, level, first, text_start) in enumerate(starts):
        last = starts[number + 1][2] - 1 if number + 1 < len(starts) else len(lines)
        text = "\n".join(lines[text_start:last]).strip()
        found.append(Section(title, level, first, last, text))
    return tuple(found)


def links(body: str) -> tuple[Link, ...]:
    """Return every `[[id]]` and markdown link of the text, not of code, in reading order."""
    found = []
    for token in _parser().parse(body):
        if token.type == "inline" and token.children:
            line = token.map[0] + 1 if token.map else 1
            found.extend(_inline_links(token.children, line))
    return tuple(found)


def _inline_links(children: list[Token], line: int) -> list[Link]:
    found = []
    for child in children:
        if child.type in ("softbreak", "hardbreak"):
            line += 1
        elif child.type == "link_open":
            found.append(Link("url", str(child.attrGet("href") or ""), line))
        elif child.type == "text":
            for part in child.content.split("[[")[1:]:
                target, closed, _rest = part.partition("]]")
                if closed:
                    found.append(Link("memory", target.strip(), line))
    return found
