"""Error signatures: what failed, in the words of the tool, and the top frame where it failed."""

from __future__ import annotations

import re

from memtool.value import Value

MOST_TEXT = 16_000
"""Characters of an output that are read: the last ones, and a few of the first."""
MOST_FAILURE = 160
_ANSI = re.compile(r"\x1b\[[0-9;?]{0,20}[a-zA-Z]")
_ROWS: tuple[re.Pattern[str], ...] = (
    re.compile(r"^(?:E +)?(?P<what>(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Fault)\b"
               r"(?:: ?\S.*)?)$"),
    re.compile(r"^(?:E +)?(?P<what>(?:[a-z_]\w*\.)+[A-Z]\w+: \S.*)$"),
    re.compile(r"^\s{0,8}(?P<what>(?:\w+\.)+\w+Exception ?: .+)$"),
    re.compile(r"^Exception in thread \S+ (?P<what>[\w.]+(?::.*)?)$"),
    re.compile(r"^(?:Uncaught )?(?P<what>[A-Z]\w*Error(?: \[\w+\])?: .+)$"),
    re.compile(r"^(?P<what>panic: .+)$"),
    re.compile(r"^(?P<what>thread '.*' panicked at .+)$"),
    re.compile(r"^\s+\S+_test\.go:\d+: (?P<what>.+)$"),
    re.compile(r"^.*?(?P<what>\berror(?: TS\d+|\[E\d+\]): .+)$"),
    re.compile(r"^(?P<what>npm (?:ERR!|error) code (?!ELIFECYCLE)\w+)$"),
    re.compile(r"^(?:==\d+==)?(?P<what>(?:WARNING: DATA RACE|ERROR: \w+Sanitizer: .+))$"),
    re.compile(r"^(?:#\d+ [\d.]+ +)?(?P<what>(?:fatal|FATAL)(?: error| ERROR)?: .+)$"),
    re.compile(r"^(?:remote: )?(?P<what>(?:error|ERROR|Error)(?: response from daemon)?: .+)$"),
    re.compile(r"^(?:\S+: )*(?P<what>.*\b(?:No such file|[Pp]ermission denied|command not found"
               r"|[Cc]onnection refused|[Nn]ot [Ff]ound|[Cc]annot|[Cc]ould not"
               r"|[Uu]nable to)\b.*)$"),
)  # fmt: skip
"""Lines that name a failure, the plainest kind first."""
_TYPE = re.compile(r"^(?:[\w.]*[A-Z]\w*(?:Error|Exception|Exit|Fault)|[\w.]+\.[A-Z]\w+)\b")
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
_PLANNED = re.compile(r"^(?:AssertionError|SyntaxError|IndentationError|TabError)\b|^assert ")
"""Failures of code at work: nobody needs to be told again."""
_FOREIGN = ("site-packages/", "node_modules/", "/usr/lib/", "lib/python", "<frozen", "node:")


class Failure(Value):
    """How a command failed: the line that says so, and the frame as `path:function` or `path`."""

    what: str
    frame: str = ""

    @property
    def signature(self) -> str:
        """Exception type, message and top frame, on one line."""
        return f"{self.what} at {self.frame}" if self.frame else self.what

    @property
    def is_typed(self) -> bool:
        """Whether an exception type or a code names it."""
        return bool(_TYPE.match(self.what)) or "ERR" in self.what or ": " in self.what

    @property
    def is_planned(self) -> bool:
        """Whether it is what tests and parsers say while code is being written."""
        return bool(_PLANNED.match(self.what))


def failure_of(text: str) -> Failure | None:
    """Return how a command failed by its output, None where nothing in it says so."""
    text = text if len(text) <= MOST_TEXT else text[:2_000] + "\n" + text[2_000 - MOST_TEXT :]
    lines = [_ANSI.sub("", line).rstrip()[:1_000] for line in text.splitlines()]
    for row in _ROWS:
        found = [match["what"] for line in lines if (match := row.match(line))]
        if found:
            return Failure(" ".join(found[-1].split())[:MOST_FAILURE], _frame(lines))
    return None


def _frame(lines: list[str]) -> str:
    """Return the frame nearest to the failure that is the project's own, else the nearest."""
    for row in _FRAMES:
        found = [match for line in lines if (match := row.match(line))]
        if not found:
            continue
        is_first = found[0][0].lstrip().startswith("at ")  # JavaScript and Java begin with it
        ordered = found if is_first else found[::-1]
        own = [match for match in ordered if not any(mark in match["path"] for mark in _FOREIGN)]
        match = (own or ordered)[0]
        path = short(match["path"])
        name = match.groupdict().get("name") or ""
        return f"{path}:{name}" if name and name != "<module>" else path
    return ""


def short(path: str) -> str:
    """Return a path without what differs between machines: the last parts of an absolute one."""
    path = path.removeprefix("./")
    return "/".join(path.split("/")[-2:]) if path.startswith("/") else path
