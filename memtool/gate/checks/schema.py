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
"""Clocks of two machines differ; only times further ahead count as the future."""
_STAMPED = ("checked", "deleted")
"""Keys that record who did something, and when."""


def check_dates(content: Content) -> Iterator[Problem]:
    """Yield past moments in the future, and memories that expired before they were written.

    A validity window that ends before it begins is already reported when the memory is read.
    """
    limit = content.now + SLACK_S
    for file in content.files:
        memory = file.memory
        if memory is None or (file.cached is not None and file.cached.latest <= limit):
            continue
        if memory.timestamp > limit:
            message = f"it is dated {memory.text('timestamp')}, which is in the future"
            hint = "correct the timestamp or the clock before you commit"
            yield _make_warning(file, file.find_line("timestamp"), "future", message, hint)
        for key in _STAMPED:
            at = memory.table(key).get("at")
            if at and timestamps.parse(at) > limit:
                message = f"{key}.at is {at}, which is in the future"
                yield _make_warning(
                    file, file.find_line(key), "future", message, f"correct {key}.at"
                )
        end = memory.text("valid_through")
        if end and timestamps.end(end) < memory.timestamp:
            message = f"valid_through is {end}, before it was written"
            hint = "correct valid_through, or the timestamp"
            yield _make_warning(file, file.find_line("valid_through"), "bad-window", message, hint)


def find_latest(memory: Memory) -> int:
    """Return the latest second that a memory states as past."""
    stamps = (memory.table(key).get("at") for key in _STAMPED)
    return max([memory.timestamp, *(timestamps.parse(at) for at in stamps if at)])


REQUIRED: dict[str, tuple[str, ...]] = {
    "decision": ("Options considered", "Chosen", "Constraints", "Rationale"),
    "episodic": ("Command", "Failure", "Changes", "Environment", "Fix"),
}
"""The sections of a type, as in its template; other types have none."""


def lines_outside_code(body: str) -> Iterator[tuple[int, str]]:
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


def find_headings(body: str) -> list[str]:
    """Return the titles of the headings, in order: `# Title` or a line underlined by `---`."""
    titles = []
    before = ""
    for _number, line in lines_outside_code(body):
        text = line.strip()
        depth = len(text) - len(text.lstrip("#"))
        if 0 < depth <= 6 and text[depth : depth + 1] in (" ", "\t"):
            titles.append(text[depth:].strip().rstrip("#").strip())
        elif before and len(text) > 1 and set(text) in ({"="}, {"-"}):
            titles.append(before)
        before = text
    return titles


MAX_LINE_CHARS = 8_000
"""A longer line is data, which reviews do not show."""
MAX_PER_KIND = 5
"""Problems of one kind that are reported for each file."""
_UNSEEN = ("<!--", "<details")
_LITERAL_RETURN = r"\r"


def check(content: Content) -> Iterator[Problem]:
    """Yield the problems of files, and content of theirs that a reviewer would not see."""
    yield from content.problems
    for file in content.files:
        if file.cached is None:
            yield from file.problems
            for problems in (
                _find_hidden_characters(file),
                _find_long_lines(file),
                _find_unseen_text(file),
            ):
                yield from islice(problems, MAX_PER_KIND)
        if file.mode == "100755":
            message = "the file is executable"
            yield _make_warning(file, 0, "file-mode", message, f"chmod -x {file.path}")
        if file.cached is None and _LITERAL_RETURN in file.text:
            yield from _find_literal_returns(content, file)
        if file.path in content.new:
            yield from _find_blank(file)
            if content.kind != "commit":  # committed memories cannot be improved
                yield from _find_missing_sections(file)


def _find_hidden_characters(file: File) -> Iterator[Problem]:
    for line, name, is_error in find_hidden_characters(file.text):
        message = f"it contains an invisible character: {name}"
        hint = f"remove the character from line {line}"
        severity = "error" if is_error else "warning"
        yield Problem(file.path, line, "hidden-character", message, hint, severity=severity)


def _find_long_lines(file: File) -> Iterator[Problem]:
    if len(file.text) <= MAX_LINE_CHARS:
        return
    hint = "break the line, or put the data into a file and name it as the source"
    for number, line in enumerate(file.text.split("\n"), 1):
        if len(line) > MAX_LINE_CHARS:
            message = f"a line of {len(line):,} characters, the limit is {MAX_LINE_CHARS:,}"
            yield _make_warning(file, number, "long-line", message, hint)


def _find_unseen_text(file: File) -> Iterator[Problem]:
    body = file.memory.body if file.memory else ""
    if not any(mark in body for mark in _UNSEEN):
        return
    hint = "write it as plain text, or remove it"
    for number, line in lines_outside_code(body):
        for mark in _UNSEEN:
            _before, separator, after = line.partition(mark)
            if separator and not after.lstrip().startswith("memtool: allow"):
                message = f"{mark} hides text from users, but not from agents"
                yield _make_warning(file, file.body_line + number, "html-comment", message, hint)


def _find_literal_returns(content: Content, file: File) -> Iterator[Problem]:
    r"""Warn of a body whose lines end in a literal `\r`, as forms of older versions wrote them.

    One line may be about carriage returns, but not half of all lines.
    """
    memory = file.memory
    lines = memory.body.splitlines() if memory is not None else []
    numbers = [number for number, line in enumerate(lines) if line.endswith(_LITERAL_RETURN)]
    if memory is None or len(numbers) < 2 or 2 * len(numbers) < len(lines):
        return
    if content.supersede_index.is_replaced(memory.id):
        return
    message = f"{len(numbers):,} lines end in the two characters '{_LITERAL_RETURN}'"
    hint = (
        rf"sed '1,/^---$/d; s/\\r$//' {shlex.quote(file.path)} | "
        f"memtool supersede {memory.id} {shlex.quote(memory.title)} --body - --commit"
    )
    yield _make_warning(file, file.body_line + numbers[0], "literal-return", message, hint)


def _find_blank(file: File) -> Iterator[Problem]:
    """Report a confirmed memory without text; a candidate may still be filled in."""
    memory = file.memory
    if memory is None or memory.has_text or memory.status == "candidate":
        return
    message = "it has no text, only headings" if memory.body.strip() else "it has no text"
    hint = f"add text{_format_sections(memory.type)}, or remove the file"
    yield Problem(file.path, file.body_line, "no-text", message, hint)


def _format_sections(type_: str) -> str:
    names = REQUIRED.get(type_, ())
    return f" below {' and '.join(f'## {name}' for name in names[:2])}" if names else ""


def _find_missing_sections(file: File) -> Iterator[Problem]:
    """Warn if a body has some sections of its type, but not all.

    A body without any is a memory of a few sentences, or has the form of other decision records:
    both are fine. So is a candidate, which may still be edited.
    """
    memory = file.memory
    wanted = REQUIRED.get(memory.type, ()) if memory is not None else ()
    if memory is None or memory.status == "candidate" or not wanted:
        return
    present = {title.casefold() for title in find_headings(memory.body)}
    missing = [title for title in wanted if title.casefold() not in present]
    if 0 < len(missing) < len(wanted):
        message = f"a memory of type {memory.type} lacks the section {', '.join(missing)}"
        hint = f"add ## {missing[0]} before you commit it"
        yield _make_warning(file, 0, "missing-section", message, hint)


def _make_warning(file: File, line: int, code: str, message: str, hint: str) -> Problem:
    return Problem(file.path, line, code, message, hint, severity="warning")


HIDDEN: tuple[tuple[int, int, str], ...] = (
    (0x00, 0x08, "a control character"),
    (0x0B, 0x0C, "a control character"),
    (0x0E, 0x1F, "a control character"),
    (0x7F, 0x9F, "a control character"),
    (0x61C, 0x61C, "a direction mark"),
    (0x180E, 0x180E, "a zero-width character"),
    (0x200B, 0x200B, "a zero-width character"),
    (0x200E, 0x200F, "a direction mark"),
    (0x2028, 0x2029, "a Unicode line separator"),
    (0x202A, 0x202E, "a direction mark"),
    (0x2060, 0x2064, "a zero-width character"),
    (0x2066, 0x2069, "a direction mark"),
    (0x206A, 0x206F, "a zero-width character"),
    (0xFEFF, 0xFEFF, "a byte-order mark inside the text"),
    (0xFFF9, 0xFFFB, "an annotation mark"),
    (0xE0000, 0xE007F, "a tag character"),
    (0xE0100, 0xE01EF, "a variation selector"),
)
"""First and last code point, and a name, of characters that no memory may contain."""
JOINERS = "\u200c\u200d"
"""Scripts and emoji need them; after a Latin letter they hide something, which is a warning."""

_VISIBLE = frozenset(map(chr, range(0x20, 0x7F))) | frozenset("\t\n\r")


def find_hidden_characters(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield line, name, and whether it is an error, for each hidden character in order.

    A byte-order mark may begin the text; a carriage return may only be before a line feed.
    """
    text = text.removeprefix("\ufeff")
    used = set(text)
    suspects = {char for char in used - _VISIBLE if _find_hidden_name(char) or char in JOINERS}
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
                yield (
                    number,
                    f"{_find_hidden_name(char) or 'a lone carriage return'} ({shown})",
                    True,
                )
            elif row[at - 1 : at].isascii():
                yield number, f"a joiner (U+{ord(char):04X}) that joins nothing", False


def _find_hidden_name(char: str) -> str:
    code = ord(char)
    return next((name for first, last, name in HIDDEN if first <= code <= last), "")
