"""Failures in the output of commands: the line that names one, and when two are the same.

The table `failure_lines` has the signs, so a shell or a language is a row. If none fits, the last
line that tells something names the failure.
"""

from __future__ import annotations

import posixpath
import re

from memtool import tables
from memtool.value import Value, digest

MAX_TEXT = 16_000
"""Maximum characters of output that are read: the end, and a little of the start."""
MAX_FAILURE = 160
MIN_LETTERS = 8
"""Letters of a line that may tell a failure of which nothing else is known."""
_ANSI = re.compile(r"\x1b\[[0-9;?]{0,20}[a-zA-Z]")
_ROWS = tables.read_rows("sessions/failure_lines")
_SIGNS = [
    (kind, sign, re.compile(sign if kind in ("line", "weak") else "", re.MULTILINE))
    for kind, sign in _ROWS
    if kind in ("line", "missing", "named", "weak")
]
"""Kind, text and pattern of the signs of a failure, the clearest first."""
_PLANNED, _NOISE = (
    re.compile("|".join(f"(?:{sign})" for kind, sign in _ROWS if kind == name))
    for name in ("planned", "noise")
)
_NOT_RUN = tuple(sign for kind, sign in _ROWS if kind == "host")
_QUOTED = re.compile(r"[\"'`«\u2018-\u201f]([\w.+@:/\\-]+)[\"'`»\u2018-\u201f]")
_LAST_WORD = re.compile(r"([\w.+@/\\-]+)\W*$")
_FIRST_WORD = re.compile(r"\W*([\w.+@-]+)")
_FRAMES: tuple[re.Pattern[str], ...] = (
    re.compile(r'^\s*File "(?P<path>[^"]+)", line \d+, in (?P<name>\S+)'),
    re.compile(r"^(?P<path>[\w./-]+\.py):\d+: in (?P<name>\S+)"),
    re.compile(r"^(?P<path>[\w./-]+\.\w{1,5}):\d+: \w"),
    re.compile(r"^\s*at (?P<name>[\w.$<>]+) \((?P<path>[^():]+):\d+(?::\d+)?\)"),
    re.compile(r"^\s*at (?P<path>[\w./@-]+\.\w{1,4}):\d+:\d+"),
    re.compile(r"^\s*at (?P<name>[\w.$<>]+)\([^()]*\) in (?P<path>[\w./\\:-]+):line \d+"),
    re.compile(r"^\s*--> (?P<path>[\w./-]+):\d+:\d+"),
    re.compile(r"^\s*(?P<path>[\w./-]+\.\w{1,5})[:(]\d+(?:[:,]\d+\)?)?:? "),
)
_FOREIGN = ("site-packages/", "node_modules/", "/usr/lib/", "lib/python", "<frozen", "node:")


class Failure(Value):
    """A failure: its message line, and the frame as `path:function` or `path`.

    `program` is the one that is not installed, empty if the failure is another.
    """

    what: str
    frame: str = ""
    program: str = ""

    @property
    def signature(self) -> str:
        """Exception type, message and top frame on one line."""
        return f"{self.what} at {self.frame}" if self.frame else self.what

    @property
    def is_planned(self) -> bool:
        """Whether it is a failure that tests and parsers report while code is being written."""
        return bool(_PLANNED.match(self.what))


def find_failure(text: str, *, is_certain: bool = False) -> Failure | None:
    """Find the failure in a command's output; None if there is none.

    With `is_certain`, only what tells a failure even if the command may have worked.
    """
    lines = _read_lines(text)
    plain = "\n".join(lines)
    for kind, sign, pattern in _SIGNS:
        if kind == "weak" and is_certain:
            continue
        what = program = ""
        if kind in ("missing", "named"):
            what = next((line.strip() for line in lines if sign in line), "")
            program = _find_program(what, kind, sign)
            what = what if program else ""
        else:
            for match in pattern.finditer(plain):
                what = match["what"]
        if what:
            frame = "" if program else _find_frame(lines)
            return Failure(" ".join(what.split())[:MAX_FAILURE], frame, program)
    return None


def find_last_words(text: str) -> Failure | None:
    """Return the last line of a failed command's output that tells something, in any language."""
    for line in reversed(_read_lines(text)):
        words = " ".join(line.split())
        is_garbled = "\N{REPLACEMENT CHARACTER}" in words
        if sum(map(str.isalpha, words)) >= MIN_LETTERS and not (is_garbled or _NOISE.match(line)):
            return Failure(words[:MAX_FAILURE])
    return None


def is_refusal(text: str) -> bool:
    """Return whether an answer is the host's, which did not run the command to its end."""
    return text.lstrip().startswith(_NOT_RUN)


def _read_lines(text: str) -> list[str]:
    """Return the lines of an output, without colours and what a progress bar wrote over."""
    text = text if len(text) <= MAX_TEXT else text[:2_000] + "\n" + text[2_000 - MAX_TEXT :]
    rows = (_ANSI.sub("", row).rstrip() for row in text.split("\n"))
    return [row[row.rfind("\r") + 1 :][:1_000] for row in rows]


def _find_program(line: str, kind: str, sign: str) -> str:
    """Return the program that a line says is not installed, empty if it names none."""
    before, _sign, behind = line.partition(sign)
    if kind == "named":
        word = _FIRST_WORD.match(behind)
        return word[1] if word else ""
    words = _QUOTED.findall(before) or _LAST_WORD.findall(before)
    program = words[-1].replace("\\", "/") if words else ""
    return posixpath.basename(program).removesuffix(".exe")


def _find_frame(lines: list[str]) -> str:
    """Return the frame nearest to the failure that is in the project, else the nearest one."""
    for row in _FRAMES:
        frames = [match for line in lines if (match := row.match(line))]
        if not frames:
            continue
        # JavaScript and Java print the nearest frame first.
        is_first = frames[0][0].lstrip().startswith("at ")
        ordered = frames if is_first else frames[::-1]
        own = [match for match in ordered if not any(mark in match["path"] for mark in _FOREIGN)]
        match = (own or ordered)[0]
        path = shorten_path(match["path"])
        name = match.groupdict().get("name") or ""
        return f"{path}:{name}" if name and name != "<module>" else path
    return ""


def shorten_path(path: str) -> str:
    """Remove the machine-specific part of a path: keep the last two parts of an absolute one."""
    path = path.removeprefix("./").replace("\\", "/")
    return "/".join(path.split("/")[-2:]) if path.startswith("/") or path[1:2] == ":" else path


_VARYING: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "0x"),
    (re.compile(r"(?<![\w.@+~/-])(?:[\w.@+~-]*/)+(?=[\w.@+~-])"), ""),
    (re.compile(r"\b(?=[0-9a-f-]{0,80}\d)[0-9a-f]{8,}(?:-[0-9a-f]{4,}){0,4}\b"), "0"),
    (re.compile(r"\b\d+(?:\.\d+)?(?= ?(?:ms|s|sec|secs|seconds)\b)"), "0"),
    (re.compile(r"(?<=\bline )\d+|(?<=\w:)\d+(?::\d+)?\b|\d{4,}"), "0"),
)
"""Text that differs between two runs with the same failure: addresses, directories, ids, times,
lines. Each pattern only starts at a word boundary, because an output may be one long word."""


MIN_SAID = 12
"""Minimum characters of a signature to recognise it inside an output."""


def compute_failure_key(signature: str) -> str:
    """Return 16 hex digits of a signature, the same for all runs with the same failure.

    A program that is not installed is the same failure in each shell and language.
    """
    failure = find_failure(signature)
    if failure is not None and failure.program:
        signature = f"command not found: {failure.program}"
    return digest(_normalize_text(signature).encode(errors="replace"))


def says(text: str, signature: str) -> bool:
    """Return whether an output contains a signature's message and the file of its frame.

    A run may fail in several ways and end with another one. A signature that was written by hand
    may also not be a line that `find_failure` recognises.
    """
    what, _at, frame = signature.rpartition(" at ")
    plain, what = _normalize_text(text), _normalize_text(what or signature)
    file = _normalize_text(frame.partition(":")[0]) if what != _normalize_text(signature) else ""
    return len(what) >= MIN_SAID and what in plain and file in plain


def _normalize_text(text: str) -> str:
    """Join a text to one line, and replace what differs between two runs with the same failure."""
    plain = " ".join(text.split())
    for pattern, constant in _VARYING:
        plain = pattern.sub(constant, plain)
    return plain
