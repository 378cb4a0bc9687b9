"""Errors and their fixes: the same command first fails, then works.

The steps between the two are the fix. A command that works again without any is flaky, and an error
that the agent has just caused itself is work in progress: neither becomes a finding. A failure is
identified by the tool's message and the top frame of its stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memtool import tables
from memtool.authoring.classification import MAX_FILES
from memtool.memory.environment import (
    MARK,
    REDACTED,
    UNKNOWN,
    FailureEnvironment,
    parse_command_line,
    parse_exit_code,
    read_environment,
    write_environment,
)
from memtool.sessions.extract.scene import Scene, ToolRun
from memtool.sessions.model import CUT, RESOLVED, Finding, make_printable
from memtool.value import Value, digest

MAX_TEXT = 16_000
"""Maximum characters of output that are read: the end, and a little of the start."""
MAX_FAILURE = 160
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
"""Patterns of lines that name a failure, the clearest kind first."""
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
"""Failures that are normal while writing code; they are not worth a memory."""
_FOREIGN = ("site-packages/", "node_modules/", "/usr/lib/", "lib/python", "<frozen", "node:")


class Failure(Value):
    """A failure: its message line, and the frame as `path:function` or `path`."""

    what: str
    frame: str = ""

    @property
    def signature(self) -> str:
        """Exception type, message and top frame on one line."""
        return f"{self.what} at {self.frame}" if self.frame else self.what

    @property
    def is_typed(self) -> bool:
        """Whether it has an exception type or an error code."""
        return bool(_TYPE.match(self.what)) or "ERR" in self.what or ": " in self.what

    @property
    def is_planned(self) -> bool:
        """Whether it is a failure that tests and parsers report while code is being written."""
        return bool(_PLANNED.match(self.what))


def find_failure(text: str) -> Failure | None:
    """Find the failure in a command's output; None if there is none."""
    text = text if len(text) <= MAX_TEXT else text[:2_000] + "\n" + text[2_000 - MAX_TEXT :]
    lines = [_ANSI.sub("", line).rstrip()[:1_000] for line in text.splitlines()]
    for row in _ROWS:
        causes = [match["what"] for line in lines if (match := row.match(line))]
        if causes:
            return Failure(" ".join(causes[-1].split())[:MAX_FAILURE], _find_frame(lines))
    return None


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
    path = path.removeprefix("./")
    return "/".join(path.split("/")[-2:]) if path.startswith("/") else path


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
    """Return 16 hex digits of a signature, the same for all runs with the same failure."""
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


IMPORTANCE = 0.6
TYPED_IMPORTANCE = 0.7
MAX_BETWEEN = 60
"""Maximum runs between failure and success; a longer series has more than one cause."""
MAX_FIX = 600
MAX_NAMED = 3
"""Maximum commands and files that the statement names."""
MAX_COMMAND = 120

_BEFORE = re.compile(r"^(?:cd \S+ ?(?:&&|;) ?|sudo |time |(?:[A-Z_][A-Z0-9_]*=\S+ )+)+")
_SETTING = re.compile(r"(?:^|(?<=[ ;]))[A-Z_][A-Z0-9_]*=\S+")
_AFTER = re.compile(
    r"(?: 2>&1| ?\| ?(?:tail|head|cat|less|grep|tee)\b.*| ?\|\| ?true| > ?/dev/null)+$"
)
_HARMLESS = tables.group_rows("sessions/reading_commands")
_READING = frozenset(_HARMLESS["shell"])
_READING_GIT = frozenset(_HARMLESS["git"])
_PROBING = re.compile(
    r"^(?:docker|kubectl|podman|systemctl|docker compose) (?:ps|logs|get|describe|images|inspect"
    r"|status|top)\b|--version\b|--help\b|\s-h$|^(?:pip|uv pip|npm|cargo|go) (?:list|show|ls|view"
    r"|tree|why|version|env)\b(?! -w)"
)


def find(scene: Scene) -> Iterator[Finding]:
    """Yield the failures that were resolved, in the order of the resolution."""
    failing: dict[str, tuple[int, Failure]] = {}
    edited: set[str] = set()
    runs = scene.runs
    for at, run in enumerate(runs):
        if run.is_edit:
            edited.update(run.call.files or (run.call.call,))
        command = find_command_line(scene, run)
        if not command:
            continue
        if run.is_ok is False:
            failure = find_failure(run.answer.text)
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
                yield from _find_fix(scene, command, runs[began], failure, between, run)


def find_command_line(scene: Scene, run: ToolRun) -> str:
    """Return the command line of a run, empty if it only reads or is not a command."""
    if not run.is_command or run.answer.number in scene.own:
        return ""
    command = normalize_command(run.call.call)
    return "" if not command or _is_reading(command) else command


def normalize_command(command: str) -> str:
    """Remove parts of a command line that do not change what it does."""
    line = " ".join(command.split())
    return _AFTER.sub("", _BEFORE.sub("", line)).strip()


def _is_own(failure: Failure, text: str, edited: set[str]) -> bool:
    """Return whether a failure is work in progress: expected, or in a file edited before."""
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
    """Return whether a run is a successful command that does more than read."""
    if not (run.is_command and run.is_ok):
        return False
    command = normalize_command(run.call.call)
    return bool(command) and not _is_reading(command)


def _find_fix(
    scene: Scene,
    command: str,
    failed: ToolRun,
    failure: Failure,
    between: list[ToolRun],
    worked: ToolRun,
) -> Iterator[Finding]:
    """Yield the finding that the steps in between resolved a failure, if there are any."""
    edits = [run for run in between if run.is_edit]
    commands = list(
        dict.fromkeys(normalize_command(run.call.call) for run in filter(_changes, between))
    )
    commands = [line for line in commands if line != command]
    settings = _find_newly_set(failed.call.call, worked.call.call)
    if len(between) > MAX_BETWEEN or not (edits or commands or settings):
        return
    touched = tuple(dict.fromkeys(path for run in edits for path in run.edited))[:MAX_FILES]
    files = tuple(path for path in touched if not path.startswith(("/", "~")))
    named = [shorten_path(path) for path in touched]
    steps = [f"`{cut(line)}`" for line in commands[-MAX_NAMED:]]
    if named:
        suffix = " and others" if len(named) > MAX_NAMED else ""
        steps.append(f"changing {', '.join(named[:MAX_NAMED])}{suffix}")
    if settings:
        steps.append(f"setting `{cut(settings)}`")
    fix = " and ".join(filter(None, (", ".join(steps[:-1]), steps[-1]))) if steps else ""
    if not fix:
        return
    changes = "\n".join(filter(None, (run.call.text.strip()[:MAX_FIX] for run in edits)))[:MAX_FIX]
    fields = {
        "command": cut(command),
        "failure": failure.what,
        "changes": changes or ", ".join(named) or settings,
        "fix": fix[0].upper() + fix[1:],
        "error_signature": failure.signature,
        "environment": _describe_environment(failed, failure),
    }
    what = failure.what.replace("`", "'")
    yield scene.build_finding(
        "error",
        f"`{cut(command)}` failed with `{what}`; {fix} resolved it.",
        TYPED_IMPORTANCE if failure.is_typed else IMPORTANCE,
        tuple(sorted({failed.answer.number, worked.answer.number})),
        confidence="high" if len(edits) + len(commands) == 1 else "medium",
        signals=(RESOLVED,),
        files=files,
        fields=fields,
    )


def _describe_environment(failed: ToolRun, failure: Failure) -> str:
    """Describe the environment of the failed run as lines; unobserved facts are unknown."""
    call, state = failed.call.call, failed.answer.state
    try:
        environment = read_environment(state)
    except ValueError:  # the row was damaged
        state = ""
    if not state:
        environment = parse_command_line(call)
        if MARK in call:
            environment = FailureEnvironment(lack=REDACTED)
        elif call.endswith(CUT):
            environment = FailureEnvironment(lack=UNKNOWN)
    status = parse_exit_code(failed.answer.text) if environment.exit is None else environment.exit
    key = compute_failure_key(make_printable(failure.signature))
    return write_environment(environment.replace(exit=status, failure=key))


def _find_newly_set(before: str, after: str) -> str:
    """Return the variables that the second command line sets and the first did not."""
    heads = [(_BEFORE.match(" ".join(line.split())) or [""])[0] for line in (before, after)]
    earlier, now = map(_SETTING.findall, heads)
    return " ".join(setting for setting in now if setting not in earlier)


def cut(line: str) -> str:
    """Cut a command line for quoting in a statement."""
    line = line.replace("`", "'")
    return line if len(line) <= MAX_COMMAND else line[: MAX_COMMAND - 1] + "…"
