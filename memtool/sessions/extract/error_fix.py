"""What failed and what resolved it: the same command, first failing, later working.

What lies between is the fix. A command that works again with nothing done is flaky, and what an
agent broke itself a moment before is its work in progress: neither is worth keeping. How a command
failed is known by the words of the tool, and by the top frame where it failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memtool import tables
from memtool.memory.environment import (
    MARK,
    REDACTED,
    UNKNOWN,
    FailureEnvironment,
    environment_of_line,
    exit_code_of,
    read_environment,
    write_environment,
)
from memtool.sessions.extract.scene import Scene, ToolRun
from memtool.sessions.extract.sentences import MOST_FILES
from memtool.sessions.model import CUT, RESOLVED, Finding, printable
from memtool.value import Value, digest

MOST_TEXT = 16_000
"""Characters of an output that are read: the last ones, and a few of the first."""
MOST_FAILURE = 160
_ANSI = re.compile(r"\x1b\[[0-9;?]{0,20}[a-zA-Z]")
_ROWS: tuple[re.Pattern[str], ...] = (
    re.compile(
        r"^(?:E +)?(?P<what>(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Fault)\b"
        r"(?:: ?\S.*)?)$"
    ),
    re.compile(r"^(?:E +)?(?P<what>(?:[a-z_]\w*\.)+[A-Z]\w+: \S.*)$"),
    re.compile(r"^\s{0,8}(?P<what>(?:\w+\.)+\w+Exception ?: .+)$"),
    re.compile(r"^Exception in thread \S+ (?P<what>[\w.]+(?::.*)?)$"),
    re.compile(r"^(?:Uncaught )?(?P<what>[A-Z]\w*Error(?: \[\w+\])?: .+)$"),
    re.compile(r"^(?P<what>panic: .+)$"),
    re.compile(r"^(?P<what>thread '.*' panicked at .+)$"),
    re.compile(r"^\s+\S+_test\.go:\d+: (?P<what>.+)$"),
    re.compile(r"^E +(?P<what>Failed: .+)$"),
    re.compile(r"^[\w./+-]+:\d+(?::\d+)?: (?P<what>(?:fatal )?error: .+)$"),
    re.compile(r"^.*?(?P<what>\berror(?: TS\d+|\[E\d+\]): .+)$"),
    re.compile(r"^(?P<what>npm (?:ERR!|error) code (?!ELIFECYCLE)\w+)$"),
    re.compile(r"^(?:==\d+==)?(?P<what>(?:WARNING: DATA RACE|ERROR: \w+Sanitizer: .+))$"),
    re.compile(r"^(?:#\d+ [\d.]+ +)?(?P<what>(?:fatal|FATAL)(?: error| ERROR)?: .+)$"),
    re.compile(r"^(?:remote: )?(?P<what>(?:error|ERROR|Error)(?: response from daemon)?: .+)$"),
    re.compile(
        r"^(?:\S+: )*(?P<what>.*\b(?:No such file|[Pp]ermission denied|command not found"
        r"|[Cc]onnection refused|[Nn]ot [Ff]ound|[Cc]annot|[Cc]ould not"
        r"|[Uu]nable to)\b.*)$"
    ),
    re.compile(r"^(?:[\w./+-]+:\d+:\d+: )?(?P<what>[A-Z]{1,4}\d{3,4} (?:\[\*\] )?\S.*)$"),
)
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
_PLANNED = re.compile(
    r"^(?:AssertionError|SyntaxError|IndentationError|TabError|Failed)\b|^assert "
    r"|^[A-Z]{1,4}\d{3,4} "
)
"""Failures of code at work: nobody needs to hear of them again."""
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


_VARYING: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "0x"),
    (re.compile(r"(?<![\w.@+~/-])(?:[\w.@+~-]*/)+(?=[\w.@+~-])"), ""),
    (re.compile(r"\b(?=[0-9a-f-]{0,80}\d)[0-9a-f]{8,}(?:-[0-9a-f]{4,}){0,4}\b"), "0"),
    (re.compile(r"\b\d+(?:\.\d+)?(?= ?(?:ms|s|sec|secs|seconds)\b)"), "0"),
    (re.compile(r"(?<=\bline )\d+|(?<=\w:)\d+(?::\d+)?\b|\d{4,}"), "0"),
)
"""What differs between two runs that fail alike: addresses, directories, ids, times, lines. Each is
looked for from the beginning of a word only, as an output may be one long word."""


LEAST_SAID = 12
"""Characters of a signature from which on an output that holds them is of the same failure."""


def failure_key(signature: str) -> str:
    """Return 16 hexadecimal digits of a signature, the same for runs that fail alike."""
    return digest(_steady(signature).encode(errors="replace"))


def says(text: str, signature: str) -> bool:
    """Tell whether an output holds the words of a signature and the file of its frame.

    A run may fail in several ways, of which another one is the last; and a signature that somebody
    wrote by hand need not be a line that `failure_of` knows.
    """
    what, _at, frame = signature.rpartition(" at ")
    plain, what = _steady(text), _steady(what or signature)
    file = _steady(frame.partition(":")[0]) if what != _steady(signature) else ""
    return len(what) >= LEAST_SAID and what in plain and file in plain


def _steady(text: str) -> str:
    """Return a text in one line, without what differs between two runs that fail alike."""
    plain = " ".join(text.split())
    for pattern, constant in _VARYING:
        plain = pattern.sub(constant, plain)
    return plain


IMPORTANCE = 0.6
TYPED_IMPORTANCE = 0.7
MOST_BETWEEN = 60
"""Runs between failing and working; what took longer has more causes than one."""
MOST_FIX = 600
MOST_NAMED = 3
"""Commands and files that the statement names."""
MOST_COMMAND = 120

_BEFORE = re.compile(r"^(?:cd \S+ ?(?:&&|;) ?|sudo |time |(?:[A-Z_][A-Z0-9_]*=\S+ )+)+")
_SETTING = re.compile(r"(?:^|(?<=[ ;]))[A-Z_][A-Z0-9_]*=\S+")
_AFTER = re.compile(
    r"(?: 2>&1| ?\| ?(?:tail|head|cat|less|grep|tee)\b.*| ?\|\| ?true| > ?/dev/null)+$"
)
_HARMLESS = tables.grouped("sessions/reading_commands")
_READING = frozenset(_HARMLESS["shell"])
_READING_GIT = frozenset(_HARMLESS["git"])
_PROBING = re.compile(
    r"^(?:docker|kubectl|podman|systemctl|docker compose) (?:ps|logs|get|describe|images|inspect"
    r"|status|top)\b|--version\b|--help\b|\s-h$|^(?:pip|uv pip|npm|cargo|go) (?:list|show|ls|view"
    r"|tree|why|version|env)\b(?! -w)"
)


def find(scene: Scene) -> Iterator[Finding]:
    """Yield failures that were resolved, at the moment when they were."""
    failing: dict[str, tuple[int, Failure]] = {}
    edited: set[str] = set()
    runs = scene.runs
    for at, run in enumerate(runs):
        if run.is_edit:
            edited.update(run.call.files or (run.call.call,))
        command = command_of(scene, run)
        if not command:
            continue
        if run.is_ok is False:
            failure = failure_of(run.answer.text)
            is_own = failure is None or _is_own(failure, run.answer.text, edited)
            if failure is None or is_own:
                failing.pop(command, None)
            else:
                failing[command] = (at, failure)
        elif run.is_ok and command in failing:
            began, failure = failing.pop(command)
            between = runs[began + 1 : at]
            # Edits alone, after earlier edits, are work in progress.
            if any(map(_changes, between)) or not any(earlier.is_edit for earlier in runs[:began]):
                yield from _fixed(scene, command, runs[began], failure, between, run)


def command_of(scene: Scene, run: ToolRun) -> str:
    """Return the command line that a tool ran to do something, empty for anything else."""
    if not run.is_command or run.answer.number in scene.own:
        return ""
    command = normal(run.call.call)
    return "" if not command or _is_reading(command) else command


def normal(command: str) -> str:
    """Return a command line without what does not change what it does."""
    line = " ".join(command.split())
    return _AFTER.sub("", _BEFORE.sub("", line)).strip()


def _is_own(failure: Failure, text: str, edited: set[str]) -> bool:
    """Tell whether a failure is work in progress: planned, or in a file edited before."""
    if failure.is_planned:
        return True
    return any(
        path and (path in text or path.rpartition("/")[2] in failure.frame) for path in edited
    )


def _is_reading(command: str) -> bool:
    parts = command.split()
    if parts[0] == "git":
        return len(parts) > 1 and parts[1] in _READING_GIT
    return parts[0] in _READING or bool(_PROBING.search(command))


def _changes(run: ToolRun) -> bool:
    """Tell whether a command worked that does more than read."""
    if not (run.is_command and run.is_ok):
        return False
    command = normal(run.call.call)
    return bool(command) and not _is_reading(command)


def _fixed(
    scene: Scene,
    command: str,
    failed: ToolRun,
    failure: Failure,
    between: list[ToolRun],
    worked: ToolRun,
) -> Iterator[Finding]:
    """Yield the finding that a failure was resolved by what lies between, if something does."""
    edits = [run for run in between if run.is_edit]
    commands = list(dict.fromkeys(normal(run.call.call) for run in filter(_changes, between)))
    commands = [line for line in commands if line != command]
    settings = _newly_set(failed.call.call, worked.call.call)
    if len(between) > MOST_BETWEEN or not (edits or commands or settings):
        return
    touched = tuple(dict.fromkeys(path for run in edits for path in run.edited))[:MOST_FILES]
    files = tuple(path for path in touched if not path.startswith(("/", "~")))
    named = [short(path) for path in touched]
    steps = [f"`{cut(line)}`" for line in commands[-MOST_NAMED:]]
    if named:
        more = " and others" if len(named) > MOST_NAMED else ""
        steps.append(f"changing {', '.join(named[:MOST_NAMED])}{more}")
    if settings:
        steps.append(f"setting `{cut(settings)}`")
    fix = " and ".join(filter(None, (", ".join(steps[:-1]), steps[-1]))) if steps else ""
    if not fix:
        return
    changes = "\n".join(filter(None, (run.call.text.strip()[:MOST_FIX] for run in edits)))[
        :MOST_FIX
    ]
    fields = {
        "command": cut(command),
        "failure": failure.what,
        "changes": changes or ", ".join(named) or settings,
        "fix": fix[0].upper() + fix[1:],
        "error_signature": failure.signature,
        "environment": _environment(failed, failure),
    }
    what = failure.what.replace("`", "'")
    yield scene.finding(
        "error",
        f"`{cut(command)}` failed with `{what}`; {fix} resolved it.",
        TYPED_IMPORTANCE if failure.is_typed else IMPORTANCE,
        tuple(sorted({failed.answer.number, worked.answer.number})),
        confidence="high" if len(edits) + len(commands) == 1 else "medium",
        signals=(RESOLVED,),
        files=files,
        fields=fields,
    )


def _environment(failed: ToolRun, failure: Failure) -> str:
    """Return what is known of the run that failed, as lines: what nobody saw is unknown."""
    call, state = failed.call.call, failed.answer.state
    try:
        found = read_environment(state)
    except ValueError:  # the row was damaged
        state = ""
    if not state:
        found = environment_of_line(call)
        if MARK in call:
            found = FailureEnvironment(lack=REDACTED)
        elif call.endswith(CUT):
            found = FailureEnvironment(lack=UNKNOWN)
    status = exit_code_of(failed.answer.text) if found.exit is None else found.exit
    key = failure_key(printable(failure.signature))
    return write_environment(found.replace(exit=status, failure=key))


def _newly_set(before: str, after: str) -> str:
    """Return the variables that a command line sets before its program and another one did not."""
    heads = [(_BEFORE.match(" ".join(line.split())) or [""])[0] for line in (before, after)]
    known, now = map(_SETTING.findall, heads)
    return " ".join(one for one in now if one not in known)


def cut(line: str) -> str:
    """Return a command line as a statement quotes it."""
    line = line.replace("`", "'")
    return line if len(line) <= MOST_COMMAND else line[: MOST_COMMAND - 1] + "…"
