"""Agent files, such as CLAUDE.md and AGENTS.md: each section becomes a memory.

Text that memtool itself injected into such a file is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memtool import tables
from memtool.importing import originals
from memtool.importing.originals import ForeignRecord, ImportRequest, Original
from memtool.memory import ids
from memtool.memory.memory import Fields, split_sections
from memtool.memory.schema import Problem
from memtool.value import Value

NAMES = frozenset({"CLAUDE.md", "AGENTS.md", "GEMINI.md"})
BEGIN_MARK, END_MARK = "<!-- memtool:begin", "<!-- memtool:end"
"""Lines between these were injected by memtool."""
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
MAX_SECTION_CHARS = 4_000
"""A section above this length is split at its inner headings."""
_PREFERENCE_WORDS = frozenset(tables.read_words("importing/preference_words"))


class HeadedSection(Value):
    """A section with the headings above it, none for the opening of a file.

    Lines count from 1 in the file.
    """

    headings: tuple[str, ...]
    first_line: int
    last_line: int
    text: str


def drafts(path: str, request: ImportRequest) -> Iterator[ForeignRecord | Problem]:
    """Yield the sections of a file, or of all agent files below a directory.

    A section that is in two files (AGENTS.md is often a copy of CLAUDE.md) is yielded once.
    """
    seen: set[tuple[tuple[str, ...], str]] = set()
    for item in originals.read_texts(path, request.top, NAMES.__contains__):
        if isinstance(item, Problem):
            yield item
            continue
        source, text = item
        key_counts: dict[str, int] = {}
        for part in split_agent_file(text, source.path.rpartition("/")[2]):
            if (part.headings, part.text) in seen:
                continue
            seen.add((part.headings, part.text))
            draft = _build_record(source, part)
            key_counts[draft.key] = key_counts.get(draft.key, 0) + 1
            if key_counts[draft.key] > 1:
                draft = draft.replace(key=f"{draft.key}#{key_counts[draft.key]}")
            yield draft


def split_agent_file(text: str, name: str) -> list[HeadedSection]:
    """Split a file at headings of the first two levels, and long sections at all headings.

    A single first-level heading is the title of the file. The titles of sections begin with it,
    unless it only repeats the file name.
    """
    text = _blank_injected(text)
    lines = text.split("\n")
    all_sections = split_sections(text)
    tops = [section.title for section in all_sections if section.level == 1]
    is_plain_title = len(tops) == 1 and ids.make_slug(tops[0]) in (
        ids.make_slug(name),
        ids.make_slug(name.rpartition(".")[0]),
    )
    result = []
    path: list[tuple[int, str]] = []
    number = 0
    while number < len(all_sections):
        section = all_sections[number]
        last = number
        while last + 1 < len(all_sections) and all_sections[last + 1].level > max(section.level, 2):
            last += 1
        whole = _section_text(
            lines, section.first_line, all_sections[last].last_line, has_heading=section.level > 0
        )
        if last > number and len(whole) > MAX_SECTION_CHARS:
            last = number
            whole = section.text
        path = [(level, title) for level, title in path if level < section.level]
        if section.level:
            path.append((section.level, originals.to_line(section.title, 80)))
        shown_headings = tuple(
            title for level, title in path if not (is_plain_title and level == 1)
        )
        if _has_text(whole):
            result.append(
                HeadedSection(
                    shown_headings, section.first_line, all_sections[last].last_line, whole
                )
            )
        number = last + 1
    return result


def _section_text(lines: Sequence[str], first: int, last: int, *, has_heading: bool) -> str:
    """Return the lines of a section without its heading, in either heading style."""
    body = lines[first - 1 : last]
    if has_heading:
        is_underlined = len(body) > 1 and not body[0].lstrip().startswith("#")
        body = body[2 if is_underlined else 1 :]
    return "\n".join(body).strip("\n")


def _blank_injected(text: str) -> str:
    """Blank the lines between memtool's marks, keeping line numbers."""
    blanked = []
    is_inside = False
    for line in text.split("\n"):
        is_inside = is_inside or line.strip().startswith(BEGIN_MARK)
        blanked.append("" if is_inside else line)
        if line.strip().startswith(END_MARK):
            is_inside = False
    return "\n".join(blanked)


def _has_text(text: str) -> bool:
    """Return whether there is text other than headings and comments."""
    shown = _COMMENT.sub("", text)
    return any(line.strip() and not line.lstrip().startswith("#") for line in shown.split("\n"))


def _build_record(source: Original, part: HeadedSection) -> ForeignRecord:
    place = source.name or source.shown
    heading = " > ".join(part.headings) or source.path.rpartition("/")[2]
    file_words = place.removesuffix(".md").replace("/", " ")
    words = {word.strip(".,:;'").lower() for word in heading.replace("'", "").split()}
    fields: Fields = {
        "type": "semantic",
        "title": heading,
        "category": "preference" if words & _PREFERENCE_WORDS else "pattern",
        "status": "confirmed",
    }
    return ForeignRecord(
        key=f"{place} {heading}",
        id=originals.to_id(ids.make_slug(f"{file_words} {heading}", 80), "sem"),
        fields=fields,
        body=part.text,
        original=source,
        lines=(part.first_line, part.last_line),
        part="" if source.name else heading,
    )
