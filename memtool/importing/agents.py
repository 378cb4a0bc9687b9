"""Agent files, such as CLAUDE.md and AGENTS.md: each section becomes a memory.

What memtool itself injected into such a file is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memtool import tables
from memtool.importing import originals
from memtool.importing.originals import ForeignRecord, Original
from memtool.memory import ids
from memtool.memory.memory import Fields, sections
from memtool.memory.schema import Problem
from memtool.value import Value

NAMES = frozenset({"CLAUDE.md", "AGENTS.md", "GEMINI.md"})
BEGIN, END = "<!-- memtool:begin", "<!-- memtool:end"
"""Lines between these were injected by memtool."""
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
LONG_CHARACTERS = 4_000
"""A section above this length is split at its inner headings."""
_PREFERENCE_WORDS = frozenset(tables.words("importing/preference_words"))


class HeadedSection(Value):
    """A section with the headings above it, none for the opening of a file.

    Lines count from 1 in the file.
    """

    headings: tuple[str, ...]
    first_line: int
    last_line: int
    text: str


def drafts(path: str, top: str) -> Iterator[ForeignRecord | Problem]:
    """Yield the sections of a file, or of all agent files below a directory.

    The same section in two files (AGENTS.md is often a copy of CLAUDE.md) is yielded once.
    """
    seen: set[tuple[tuple[str, ...], str]] = set()
    for found in originals.texts(path, top, NAMES.__contains__):
        if isinstance(found, Problem):
            yield found
            continue
        source, text = found
        times: dict[str, int] = {}
        for part in parts(text, source.path.rpartition("/")[2]):
            if (part.headings, part.text) in seen:
                continue
            seen.add((part.headings, part.text))
            draft = _draft(source, part)
            times[draft.key] = times.get(draft.key, 0) + 1
            if times[draft.key] > 1:
                draft = draft.replace(key=f"{draft.key}#{times[draft.key]}")
            yield draft


def parts(text: str, name: str) -> list[HeadedSection]:
    """Split a file at headings of the first two levels, and long sections at all of theirs.

    An only heading of the first level is the title of the file; the other titles begin with it
    unless it only repeats the name of the file.
    """
    text = _without_injected(text)
    lines = text.split("\n")
    found = sections(text)
    tops = [section.title for section in found if section.level == 1]
    is_plain_title = len(tops) == 1 and ids.slug(tops[0]) in (
        ids.slug(name),
        ids.slug(name.rpartition(".")[0]),
    )
    result = []
    path: list[tuple[int, str]] = []
    number = 0
    while number < len(found):
        section = found[number]
        last = number
        while last + 1 < len(found) and found[last + 1].level > max(section.level, 2):
            last += 1
        whole = _text(
            lines, section.first_line, found[last].last_line, has_heading=section.level > 0
        )
        if last > number and len(whole) > LONG_CHARACTERS:
            last = number
            whole = section.text
        path = [(level, title) for level, title in path if level < section.level]
        if section.level:
            path.append((section.level, originals.line(section.title, 80)))
        shown = tuple(title for level, title in path if not (is_plain_title and level == 1))
        if _says_something(whole):
            result.append(HeadedSection(shown, section.first_line, found[last].last_line, whole))
        number = last + 1
    return result


def _text(lines: Sequence[str], first: int, last: int, *, has_heading: bool) -> str:
    """Return the lines of a section without its own heading, whichever way that is written."""
    body = lines[first - 1 : last]
    if has_heading:
        is_underlined = len(body) > 1 and not body[0].lstrip().startswith("#")
        body = body[2 if is_underlined else 1 :]
    return "\n".join(body).strip("\n")


def _without_injected(text: str) -> str:
    """Blank the lines between memtool's own marks; line numbers stay."""
    kept = []
    is_inside = False
    for line in text.split("\n"):
        is_inside = is_inside or line.strip().startswith(BEGIN)
        kept.append("" if is_inside else line)
        if line.strip().startswith(END):
            is_inside = False
    return "\n".join(kept)


def _says_something(text: str) -> bool:
    """Tell whether there is text other than headings and comments."""
    shown = _COMMENT.sub("", text)
    return any(line.strip() and not line.lstrip().startswith("#") for line in shown.split("\n"))


def _draft(source: Original, part: HeadedSection) -> ForeignRecord:
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
        id=originals.as_id(ids.slug(f"{file_words} {heading}", 80), "sem"),
        fields=fields,
        body=part.text,
        original=source,
        lines=(part.first_line, part.last_line),
        part="" if source.name else heading,
    )
