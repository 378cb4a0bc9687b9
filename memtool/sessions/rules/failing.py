"""What failed and what resolved it: the same command, first failing, later working.

What lies between is the fix. A command that works again with nothing done is flaky, and what an
agent broke itself a moment before is its work in progress: neither is worth keeping.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memtool.memory.signs import word_set
from memtool.sessions.claim import MOST_FILES, Claim
from memtool.sessions.points import RESOLVED
from memtool.sessions.scene import Run, Scene
from memtool.sessions.signature import Failure, failure_of, short

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
_READING = word_set(
    "ls cat head tail grep rg egrep find fd which whereis type file stat wc tree pwd echo printf"
    " env printenv sed awk jq less more diff cmp ps top df du date whoami history man sleep true"
    " curl wget ping dig nslookup id uname test"
)
_READING_GIT = word_set(
    "status diff log show branch blame grep rev-parse ls-files describe remote reflog fetch"
)
_PROBING = re.compile(
    r"^(?:docker|kubectl|podman|systemctl|docker compose) (?:ps|logs|get|describe|images|inspect"
    r"|status|top)\b|--version\b|--help\b|\s-h$|^(?:pip|uv pip|npm|cargo|go) (?:list|show|ls|view"
    r"|tree|why|version|env)\b(?! -w)"
)


def find(scene: Scene) -> Iterator[Claim]:
    """Yield failures that were resolved, at the moment when they were."""
    failing: dict[str, tuple[int, Failure]] = {}
    edited: set[str] = set()
    runs = scene.runs
    for at, run in enumerate(runs):
        if run.is_edit:
            edited.update(run.call.files or (run.call.call,))
        if not run.is_command or run.answer.number in scene.own:
            continue
        command = normal(run.call.call)
        if not command or _is_reading(command):
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
            claim = _claim(command, runs[began], failure, runs[began + 1 : at], run)
            if claim is not None and not (
                edited_only(runs[began + 1 : at]) and _has_edits(runs[:began])
            ):
                yield claim


def normal(command: str) -> str:
    """Return a command line without what does not change what it does."""
    line = " ".join(command.split())
    return _AFTER.sub("", _BEFORE.sub("", line)).strip()


def edited_only(between: list[Run]) -> bool:
    """Tell whether nothing but files was changed."""
    return not any(run.is_command and run.is_ok and _changes(run) for run in between)


def _has_edits(before: list[Run]) -> bool:
    return any(run.is_edit for run in before)


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


def _changes(run: Run) -> bool:
    command = normal(run.call.call)
    return bool(command) and not _is_reading(command)


def _claim(
    command: str, failed: Run, failure: Failure, between: list[Run], worked: Run
) -> Claim | None:
    """Return the claim that a failure was resolved by what lies between, None for nothing."""
    edits = [run for run in between if run.is_edit]
    done = [run for run in between if run.is_command and run.is_ok and _changes(run)]
    commands = list(dict.fromkeys(normal(run.call.call) for run in done))
    commands = [line for line in commands if line != command]
    settings = _set_anew(failed.call.call, worked.call.call)
    if len(between) > MOST_BETWEEN or not (edits or commands or settings):
        return None
    touched = tuple(dict.fromkeys(path for run in edits for path in _files(run)))[:MOST_FILES]
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
        return None
    changes = "\n".join(filter(None, (run.call.text.strip()[:MOST_FIX] for run in edits)))[
        :MOST_FIX
    ]
    fields = {
        "command": cut(command),
        "failure": failure.what,
        "changes": changes or ", ".join(named) or settings,
        "fix": fix[0].upper() + fix[1:],
        "error_signature": failure.signature,
    }
    what = failure.what.replace("`", "'")
    return Claim(
        category="error",
        content=f"`{cut(command)}` failed with `{what}`; {fix} resolved it.",
        confidence="high" if len(edits) + len(commands) == 1 else "medium",
        importance=TYPED_IMPORTANCE if failure.is_typed else IMPORTANCE,
        messages=tuple(sorted({failed.answer.number, worked.answer.number})),
        signals=(RESOLVED,),
        files=files,
        fields=tuple((name, text) for name, text in fields.items() if text),
        is_said=False,
    )


def _set_anew(before: str, after: str) -> str:
    """Return the variables that a command line sets before its program and another one did not."""
    heads = [(_BEFORE.match(" ".join(line.split())) or [""])[0] for line in (before, after)]
    known, now = map(_SETTING.findall, heads)
    return " ".join(one for one in now if one not in known)


def _files(run: Run) -> tuple[str, ...]:
    path = run.call.call
    return run.call.files or ((path,) if path and " " not in path else ())


def cut(line: str) -> str:
    """Return a command line as a statement quotes it."""
    line = line.replace("`", "'")
    return line if len(line) <= MOST_COMMAND else line[: MOST_COMMAND - 1] + "…"
