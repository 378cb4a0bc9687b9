"""Headings of a body, read line by line: the hook is too short-lived to load a markdown parser."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

REQUIRED: dict[str, tuple[str, ...]] = {
    "decision": ("Options considered", "Chosen", "Constraints", "Rationale"),
    "episodic": ("Command", "Failure", "Changes", "Environment", "Fix"),
}
"""The sections of a type, as its template has them; other types are free."""


def outside_code(body: str) -> Iterator[tuple[int, str]]:
    """Yield each line that stands in no fenced code, with its number from 0."""
    fence = ""
    for number, line in enumerate(body.split("\n")):
        start = line.lstrip(" ")
        mark = start[:3]
        if fence:
            if start.startswith(fence) and not start.strip().strip(fence[0]):
                fence = ""
        elif mark in ("```", "~~~"):
            fence = mark[0] * (len(start) - len(start.lstrip(mark[0])))
        else:
            yield number, line


def headings(body: str) -> list[str]:
    """Return the titles of the headings, in order: `# Title` or a line underlined by `---`."""
    found = []
    before = ""
    for _number, line in outside_code(body):
        text = line.strip()
        depth = len(text) - len(text.lstrip("#"))
        if 0 < depth <= 6 and text[depth : depth + 1] in (" ", "\t"):
            found.append(text[depth:].strip().rstrip("#").strip())
        elif before and len(text) > 1 and set(text) in ({"="}, {"-"}):
            found.append(before)
        before = text
    return found
