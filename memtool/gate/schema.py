"""The schema check: is each file a memory, in text that shows a reader all that it holds."""

from __future__ import annotations

from memtool.gate.content import Content, File
from memtool.gate.headings import REQUIRED, headings, outside_code
from memtool.memory.problem import Problem
from memtool.redaction import disguises

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_IN_LINE = 8_000
"""Characters of one line: what is longer is data, and no review shows it."""
MOST_TOLD = 5
"""Problems of one kind that are told of one file."""
_UNSEEN = ("<!--", "<details")


def check(content: Content) -> Iterator[Problem]:
    """Yield what keeps files from being memories, and what in them a reviewer would not see."""
    yield from content.problems
    for file in content.files:
        if file.known is None:
            yield from file.problems
            yield from _hidden(file)
            yield from _long_lines(file)
            yield from _unseen(file)
        if file.mode == "100755":
            yield _warning(
                file, 0, "file-mode", "it is marked as a program", f"chmod -x {file.path}"
            )
        if content.is_new(file.path):  # what is committed can no longer be written better
            yield from _sections(file)


def _hidden(file: File) -> Iterator[Problem]:
    for number, (line, name, is_error) in enumerate(disguises.find(file.text)):
        if number == MOST_TOLD:
            return
        yield Problem(
            file.path,
            line,
            "hidden-character",
            f"it holds {name}, which no reader sees",
            f"take the character out of line {line}",
            severity="error" if is_error else "warning",
        )


def _long_lines(file: File) -> Iterator[Problem]:
    if len(file.text) <= MOST_IN_LINE:
        return
    found = 0
    for number, line in enumerate(file.text.split("\n"), 1):
        if len(line) > MOST_IN_LINE and found < MOST_TOLD:
            found += 1
            yield Problem(
                file.path,
                number,
                "long-line",
                f"a line of {len(line):,} characters, {MOST_IN_LINE:,} are allowed",
                "break the line, or keep the data in a file that the memory names as its source",
            )


def _unseen(file: File) -> Iterator[Problem]:
    body = file.memory.body if file.memory else ""
    if not any(mark in body for mark in _UNSEEN):
        return
    found = 0
    for number, line in outside_code(body):
        for mark in _UNSEEN:
            at = line.find(mark)
            if at < 0 or line[at + len(mark) :].lstrip().startswith("memtool: allow"):
                continue
            found += 1
            if found <= MOST_TOLD:
                yield _warning(
                    file,
                    file.body_line + number,
                    "html-comment",
                    f"{mark} hides text from people, but not from agents",
                    "write it as plain text, or leave it out",
                )


def _sections(file: File) -> Iterator[Problem]:
    """Warn where a body with headings leaves out sections of its type.

    A body without any heading is a memory in a few sentences, which is worth having as it is; so
    is a candidate, which may still be edited.
    """
    memory = file.memory
    wanted = REQUIRED.get(memory.type, ()) if memory is not None else ()
    if memory is None or memory.status == "candidate" or not wanted:
        return
    there = {title.casefold() for title in headings(memory.body)}
    missing = [title for title in wanted if title.casefold() not in there]
    if there and missing:
        yield _warning(
            file,
            0,
            "missing-section",
            f"a memory of type {memory.type} has no section {', '.join(missing)}",
            f"while it is not committed, add ## {missing[0]}; memtool new offers each section",
        )


def _warning(file: File, line: int, code: str, message: str, hint: str) -> Problem:
    return Problem(file.path, line, code, message, hint, severity="warning")
