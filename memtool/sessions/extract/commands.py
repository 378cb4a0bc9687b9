"""Commands of a session: which ones are the same, and what changed between two of them.

A command is its program and target, however it is spelled. Programs that only read are none.
"""

from __future__ import annotations

import posixpath
import re

from memtool import tables
from memtool.memory.command_line import (
    INTERPRETERS,
    SHELLS,
    CommandTarget,
    SimpleCommand,
    find_target,
    split_commands,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_PROGRAMS = tables.group_rows("sessions/reading_commands")
_READING = frozenset(_PROGRAMS["shell"])
_READING_GIT = frozenset(_PROGRAMS["git"])
_RECORDING_GIT = frozenset(_PROGRAMS["recording"])
_CHECKS = frozenset(_PROGRAMS["check"])
_INSTALLING = frozenset(_PROGRAMS["install"])
_FILING = frozenset(_PROGRAMS["files"])
_SCRIPT = frozenset("-")
"""The target of a script that is typed into an interpreter."""
_SCRIPT_OPTIONS = frozenset(("-", "-c", "-e", "-r", "--eval"))
_VALUE = r"(?:\$\([^()]*\)|\"[^\"]*\"|'[^']*'|[^\s;&|\"']+)"
_SETTING = re.compile(rf"(?:^|(?<=[\s;]))(?:\$env:)?([A-Z_][A-Z0-9_]*) ?= ?({_VALUE})")
_BEFORE = re.compile(
    rf"^(?:cd {_VALUE} ?(?:&&|;) ?|sudo |time |(?:export )?[A-Z_][A-Z0-9_]*={_VALUE} ?"
    r"(?:(?:&&|;) ?)?)+"
)
_AFTER = re.compile(
    r"(?: 2>&1| ?\| ?(?:tail|head|cat|less|grep|tee)\b.*| ?\|\| ?true| > ?/dev/null)+$"
)
_SUBSTITUTION = re.compile(r"\$\([^()]*\)|`[^`]*`")
_HEREDOC = re.compile(r"(<<-?\s*['\"]?\w+['\"]?(?:\s*(?:>>?|\|)\s*\S+)?).*", re.DOTALL)
_QUOTES = re.compile(r"['\"\\]")
_PROBE = re.compile(
    r"^(?:docker|kubectl|podman|systemctl|docker compose) (?:ps|logs|get|describe|images|inspect"
    r"|status|top)\b|--version\b|--help\b|\s-[hvV]$|^(?:pip|uv pip|npm|cargo|go) (?:list|show|ls"
    r"|view|tree|why|version|env)\b(?! -w)"
)
_DISPLAY = re.compile(
    r"-(?:[qsvx]+|[er]?A|n\d+)|--(?:bail|color|debug|info|maxfail|no-color|quiet|reporter|silent"
    r"|stacktrace|tb|verbose)(?:=.*)?"
)
"""Options that only change what is printed."""
MIN_SHARED, MIN_SHARE = 3, 0.6
"""Targets that a command must share with a failed one if it leaves out some, and their share."""
MAX_COMMAND = 120


def normalize_command(command: str) -> str:
    """Remove parts of a command line that do not change what it does."""
    line = " ".join(command.split())
    return _AFTER.sub("", _BEFORE.sub("", line)).strip()


def cut(line: str) -> str:
    """Cut a command line for quoting in a statement."""
    line = line.replace("`", "'")
    return line if len(line) <= MAX_COMMAND else line[: MAX_COMMAND - 1] + "…"


def is_probe(line: str) -> bool:
    """Return whether a command line only asks a program about itself or its state."""
    return bool(_PROBE.search(normalize_command(line)))


def find_targets(line: str) -> tuple[CommandTarget, ...]:
    """Return the programs of a command line with what they run on, without those that only read.

    All scripts that are typed into one interpreter have the same target.
    """
    rows = [target for _command, target in _find_commands(line)]
    return tuple(target for target in rows if target.program not in _FILING) or tuple(rows)


def _find_commands(line: str) -> list[tuple[SimpleCommand, CommandTarget]]:
    commands = []
    for command in _split(line):
        target = find_target(command.replace(folder=""))
        program = target.program if target else ""
        if target is None or program in SHELLS or program.lower() in _READING:
            continue
        is_named = target.targets or target.unsure
        if program in INTERPRETERS and not (is_named and _SCRIPT_OPTIONS.isdisjoint(command.words)):
            target = CommandTarget(program, _SCRIPT)
        if not (program == "git" and _READING_GIT & target.targets):
            commands.append((command, target))
    return commands


def is_script(targets: Sequence[CommandTarget]) -> bool:
    """Return whether a command line runs a script that was typed in, another one each time."""
    return all(target.targets == _SCRIPT for target in targets)


def _split(line: str) -> list[SimpleCommand]:
    return split_commands(_SUBSTITUTION.sub("$", _HEREDOC.sub(r"\1", line)))


def is_same(failed: Sequence[CommandTarget], targets: Sequence[CommandTarget]) -> bool:
    """Return whether a command line runs all of a failed one, perhaps on more."""
    return all(any(_covers(target, own) for target in targets) for own in failed)


def _covers(target: CommandTarget, failed: CommandTarget) -> bool:
    """Return whether a command runs on all targets of a failed one, or on most of many."""
    if target.program != failed.program or failed.covers(target):
        return target.program == failed.program
    words = target.targets | target.unsure
    if words <= _CHECKS:  # a tool that checks all if nothing is named
        return target.program in _CHECKS or bool(words & failed.targets)
    shared = len(failed.targets & target.targets)
    return shared >= MIN_SHARED and shared >= MIN_SHARE * len(failed.targets)


def can_fix(failed: Sequence[CommandTarget], targets: Sequence[CommandTarget]) -> bool:
    """Return whether a command line may fix a failed one: it does not only check or record."""
    is_git = any(target.program == "git" for target in failed)
    return bool(targets) and not any(
        target.program in _CHECKS
        or _CHECKS & target.targets
        or (target.program == "git" and not is_git and _RECORDING_GIT & target.targets)
        for target in targets
    )


def can_install(targets: Sequence[CommandTarget]) -> bool:
    """Return whether a command line installs something."""
    return any(target.program != "git" and _INSTALLING & target.targets for target in targets)


def list_written(line: str) -> tuple[str, ...]:
    """Return the files that a command line writes by redirection, or edits in place."""
    paths: list[str] = []
    for command in _split(line):
        words = command.words
        if words[:1] in (("perl",), ("sed",)):
            paths += words[-1:] if any(word.startswith(("-i", "-pi")) for word in words) else ()
        paths += words[1:] if words[:1] == ("tee",) else ()
        paths += (name for name in command.redirects if not name.isdigit())
    return tuple(path for path in paths if path.lower() not in ("/dev/null", "nul", "$null"))


def find_settings(before: str, after: str) -> str:
    """Return the variables that the second command line sets and the first did not."""
    earlier = _SETTING.findall(before)
    now = [pair for pair in _SETTING.findall(after) if pair not in earlier]
    return " ".join(f"{name}={text}" for name, text in now)


def find_wording(before: str, after: str) -> str:
    """Return the second command line if it calls the program in another way than the first."""
    old, new = ([_spell(*row) for row in _find_commands(line)] for line in (before, after))
    earlier, plain = normalize_command(before), normalize_command(after)
    is_quoted = plain != earlier and _QUOTES.sub("", plain) == _QUOTES.sub("", earlier)
    if plain == earlier and old != new:  # only the directory differs
        return _AFTER.sub("", " ".join(after.split()))
    return plain if old != new or is_quoted else ""


def _spell(command: SimpleCommand, target: CommandTarget) -> tuple[frozenset[str], str]:
    """Return what of a command is not its target: wrappers, program and options, and directory."""
    words = command.words
    names = [posixpath.basename(word.replace("\\", "/")) for word in words]
    place = next((at for at, name in enumerate(names) if name.startswith(target.program)), 0)
    head = [word for word in words[: place + 1] if not _SETTING.match(word)]
    if target.targets == _SCRIPT:
        return frozenset(head), ""
    options = [word for word in words[place + 1 :] if word.startswith("-")]
    shown = [word for word in options if not _DISPLAY.fullmatch(word)]
    is_absolute = command.folder[:1] in ("/", "~") or command.folder[1:2] == ":"
    return frozenset((*head, *shown)), "" if is_absolute else command.folder
