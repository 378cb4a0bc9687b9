"""The schema check: fields, dates, headings and hidden characters of every memory."""

from __future__ import annotations

import shlex
from itertools import islice

from memtool.gate.content import Content, File
from memtool.memory import timestamps
from memtool.memory.schema import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.memory.memory import Memory

SLACK_S = 300
"""Clocks of two machines differ; only what is later than this counts as the future."""
_STAMPED = ("checked", "deleted")
"""Keys that say who did something, and when."""


def check_dates(content: Content) -> Iterator[Problem]:
    """Yield moments of the past that lie in the future, and memories that ended before they began.

    A window that ends before it begins is no valid memory, which reading it reports.
    """
    limit = content.now + SLACK_S
    for file in content.files:
        memory = file.memory
        if memory is None or (file.known is not None and file.known.latest <= limit):
            continue
        if memory.timestamp > limit:
            message = f"it is dated {memory.text('timestamp')}, which is in the future"
            hint = "correct the timestamp before it is committed, or the clock"
            yield _warning(file, file.line_of("timestamp"), "future", message, hint)
        for key in _STAMPED:
            at = memory.table(key).get("at")
            if at and timestamps.parse(at) > limit:
                message = f"{key}.at is {at}, which is in the future"
                yield _warning(file, file.line_of(key), "future", message, f"correct {key}.at")
        end = memory.text("valid_through")
        if end and timestamps.end(end) < memory.timestamp:
            message = f"it is valid through {end}, before it was written"
            hint = "correct valid_through, or date the memory to when it held"
            yield _warning(file, file.line_of("valid_through"), "bad-window", message, hint)


def latest(memory: Memory) -> int:
    """Return the last second that a memory speaks of as past."""
    stamps = (memory.table(key).get("at") for key in _STAMPED)
    return max([memory.timestamp, *(timestamps.parse(at) for at in stamps if at)])


REQUIRED: dict[str, tuple[str, ...]] = {
    "decision": ("Options considered", "Chosen", "Constraints", "Rationale"),
    "episodic": ("Command", "Failure", "Changes", "Environment", "Fix"),
}
"""The sections of a type, as its template has them; other types are free."""


def outside_code(body: str) -> Iterator[tuple[int, str]]:
    """Yield each line outside of fenced code, with its number from 0."""
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


MOST_IN_LINE = 8_000
"""Characters of one line: what is longer is data, and no review shows it."""
MOST_TOLD = 5
"""Problems of one kind that are reported for one file."""
_UNSEEN = ("<!--", "<details")
_LITERAL_RETURN = r"\r"


def check(content: Content) -> Iterator[Problem]:
    """Yield what keeps files from being memories, and what in them a reviewer would not see."""
    yield from content.problems
    for file in content.files:
        if file.known is None:
            yield from file.problems
            for found in (_hidden(file), _long_lines(file), _unseen(file)):
                yield from islice(found, MOST_TOLD)
        if file.mode == "100755":
            message = "it is marked as a program"
            yield _warning(file, 0, "file-mode", message, f"chmod -x {file.path}")
        if file.known is None and _LITERAL_RETURN in file.text:
            yield from _literal_returns(content, file)
        if file.path in content.new:
            yield from _blank(file)
            if content.kind != "commit":  # what is committed can no longer be written better
                yield from _sections(file)


def _hidden(file: File) -> Iterator[Problem]:
    for line, name, is_error in hidden_characters(file.text):
        message = f"it holds {name}, which no reader sees"
        hint = f"take the character out of line {line}"
        severity = "error" if is_error else "warning"
        yield Problem(file.path, line, "hidden-character", message, hint, severity=severity)


def _long_lines(file: File) -> Iterator[Problem]:
    if len(file.text) <= MOST_IN_LINE:
        return
    hint = "break the line, or keep the data in a file that the memory names as its source"
    for number, line in enumerate(file.text.split("\n"), 1):
        if len(line) > MOST_IN_LINE:
            message = f"a line of {len(line):,} characters, {MOST_IN_LINE:,} are allowed"
            yield _warning(file, number, "long-line", message, hint)


def _unseen(file: File) -> Iterator[Problem]:
    body = file.memory.body if file.memory else ""
    if not any(mark in body for mark in _UNSEEN):
        return
    hint = "write it as plain text, or leave it out"
    for number, line in outside_code(body):
        for mark in _UNSEEN:
            _before, found, after = line.partition(mark)
            if found and not after.lstrip().startswith("memtool: allow"):
                message = f"{mark} hides text from people, but not from agents"
                yield _warning(file, file.body_line + number, "html-comment", message, hint)


def _literal_returns(content: Content, file: File) -> Iterator[Problem]:
    r"""Warn of a body whose lines end in a written-out `\r`, as forms of older versions left it.

    One line may speak of carriage returns; half of them do not.
    """
    memory = file.memory
    lines = memory.body.splitlines() if memory is not None else []
    numbers = [number for number, line in enumerate(lines) if line.endswith(_LITERAL_RETURN)]
    if memory is None or len(numbers) < 2 or 2 * len(numbers) < len(lines):
        return
    if content.kin.is_replaced(memory.id):
        return
    message = f"{len(numbers):,} lines end in the two letters '{_LITERAL_RETURN}'"
    hint = (
        rf"sed '1,/^---$/d; s/\\r$//' {shlex.quote(file.path)} | "
        f"memtool supersede {memory.id} {shlex.quote(memory.title)} --body - --commit"
    )
    yield _warning(file, file.body_line + numbers[0], "literal-return", message, hint)


def _blank(file: File) -> Iterator[Problem]:
    """Report a confirmed memory that claims nothing; a candidate may still be filled in."""
    memory = file.memory
    if memory is None or memory.has_text or memory.status == "candidate":
        return
    message = "it has no text, only headings" if memory.body.strip() else "it has no text"
    hint = f"write what holds{_in_sections(memory.type)}, or leave the file out"
    yield Problem(file.path, file.body_line, "no-text", message, hint)


def _in_sections(type_: str) -> str:
    names = REQUIRED.get(type_, ())
    return f" below {' and '.join(f'## {name}' for name in names[:2])}" if names else ""


def _sections(file: File) -> Iterator[Problem]:
    """Warn where a body with sections of its type leaves out others.

    A body without any is a memory in a few sentences, or in the form of other decision records,
    which is worth having as it is; so is a candidate, which may still be edited.
    """
    memory = file.memory
    wanted = REQUIRED.get(memory.type, ()) if memory is not None else ()
    if memory is None or memory.status == "candidate" or not wanted:
        return
    there = {title.casefold() for title in headings(memory.body)}
    missing = [title for title in wanted if title.casefold() not in there]
    if 0 < len(missing) < len(wanted):
        message = f"a memory of type {memory.type} has no section {', '.join(missing)}"
        hint = f"while it is not committed, add ## {missing[0]}; memtool new offers each section"
        yield _warning(file, 0, "missing-section", message, hint)


def _warning(file: File, line: int, code: str, message: str, hint: str) -> Problem:
    return Problem(file.path, line, code, message, hint, severity="warning")


HIDDEN: tuple[tuple[int, int, str], ...] = (
    (0x00, 0x08, "a control character"),
    (0x0B, 0x0C, "a control character"),
    (0x0E, 0x1F, "a control character"),
    (0x7F, 0x9F, "a control character"),
    (0x61C, 0x61C, "a direction mark"),
    (0x180E, 0x180E, "a character of no width"),
    (0x200B, 0x200B, "a character of no width"),
    (0x200E, 0x200F, "a direction mark"),
    (0x2028, 0x2029, "a line break that is none to others"),
    (0x202A, 0x202E, "a direction mark"),
    (0x2060, 0x2064, "a character of no width"),
    (0x2066, 0x2069, "a direction mark"),
    (0x206A, 0x206F, "a character of no width"),
    (0xFEFF, 0xFEFF, "a byte-order mark inside the text"),
    (0xFFF9, 0xFFFB, "an annotation mark"),
    (0xE0000, 0xE007F, "a tag character"),
    (0xE0100, 0xE01EF, "a variation selector"),
)
"""First and last code point, and a name. No memory may hold these."""
JOINERS = "\u200c\u200d"
"""Scripts and emoji need them; beside a Latin letter they hide something: a warning."""

_VISIBLE = frozenset(map(chr, range(0x20, 0x7F))) | frozenset("\t\n\r")


def hidden_characters(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield line, name, and whether it is an error, of each hidden character, in order.

    A byte-order mark may begin the text; a carriage return may only be before a line feed.
    """
    text = text.removeprefix("\ufeff")
    used = set(text)
    suspects = {char for char in used - _VISIBLE if _hidden_name(char) or char in JOINERS}
    if "\r" in used and text.count("\r") != text.count("\r\n"):
        suspects.add("\r")
    if not suspects:
        return
    for number, line in enumerate(text.split("\n"), 1):
        row = line.removesuffix("\r")
        if suspects.isdisjoint(row):
            continue
        for at, char in enumerate(row):
            if char not in suspects:
                continue
            if char not in JOINERS:
                shown = f"U+{ord(char):04X}"
                yield number, f"{_hidden_name(char) or 'a lone carriage return'} ({shown})", True
            elif row[at - 1 : at].isascii():
                yield number, f"a joiner (U+{ord(char):04X}) where nothing is joined", False


def _hidden_name(char: str) -> str:
    code = ord(char)
    return next((name for first, last, name in HIDDEN if first <= code <= last), "")
