"""Errors and their fixes: a command fails, something changes, and the same command works.

Exit codes tell both, so this works in any language. What changed in between is the fix: a file,
another command, a setting, or the way the command is called. A command that works again without a
change is flaky, and an error that the agent has just caused itself is work in progress: neither
becomes a finding.
"""

from __future__ import annotations

import posixpath
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
from memtool.sessions.extract.commands import (
    can_fix,
    can_install,
    cut,
    find_settings,
    find_targets,
    find_wording,
    is_probe,
    is_same,
    is_script,
    list_written,
    normalize_command,
)
from memtool.sessions.extract.failures import (
    Failure,
    compute_failure_key,
    find_failure,
    find_last_words,
    is_refusal,
    shorten_path,
)
from memtool.sessions.extract.scene import Scene, ToolRun
from memtool.sessions.model import CUT, RESOLVED, Finding, make_printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memtool.memory.command_line import CommandTarget

IMPORTANCE = 0.6
MAX_BETWEEN = 60
"""Maximum runs between failure and success; a longer series has more than one cause."""
MAX_FIX = 600
MAX_NAMED = 3
"""Maximum commands and files that the statement names."""
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_CONFIG = tuple(tables.read_words("sessions/config_files"))


class Episode:
    """A failure of a command. `first`, `last`, `until` and `worked` are indexes of runs.

    `last` is the last run with this failure, `until` the next run of the command, which worked or
    failed in another way, and `worked` the one that worked; they are -1 if there is none. `failing`
    counts the failing runs of the command from the first one on, whatever the failure. `is_missing`
    is true if the command's own program was not installed.
    """

    def __init__(
        self, at: int, run: ToolRun, targets: Sequence[CommandTarget], failure: Failure
    ) -> None:
        self.first = self.last = at
        self.until = self.worked = -1
        self.failing = 1
        self.run = run
        self.line = normalize_command(run.call.call)
        self.targets = targets
        self.is_script = is_script(targets)
        self.failure = failure
        self.key = compute_failure_key(failure.signature)
        self.is_missing = any(target.program == failure.program for target in targets)

    def is_of(self, targets: Sequence[CommandTarget], line: str) -> bool:
        """Return whether a command is this one; if its program was missing, any call of it is."""
        if self.is_missing:
            return any(target.program == self.failure.program for target in targets)
        return is_same(self.targets, targets) and not is_probe(line)

    def can_end(self, line: str, installed: int) -> bool:
        """Return whether the episode ends if a command line works.

        A script that was typed in is another one: it takes an installation or another interpreter.
        """
        is_other = self.is_script and installed < self.last
        return not is_other or bool(find_wording(self.run.call.call, line))


def find_episodes(scene: Scene) -> list[Episode]:
    """Return the failures of a session's commands, resolved or not, in the order they began."""
    episodes: list[Episode] = []
    installed = -1
    for at, run in enumerate(scene.runs):
        is_foreign = run.is_command and run.answer.number not in scene.own
        targets = find_targets(run.call.call) if is_foreign else ()
        is_working = judge_run(run) if targets else None
        if is_working is None:
            continue
        line, text = run.call.call, run.answer.text
        failure = None if is_working else find_failure(text) or find_last_words(text)
        key = compute_failure_key(failure.signature) if failure else ""
        installed = at if is_working and can_install(targets) else installed
        going = [
            each
            for each in episodes
            if each.worked < 0
            and each.is_of(targets, line)
            and (not is_working or each.can_end(line, installed))
        ]
        for episode in going:
            if is_working:
                episode.worked = at
            else:
                episode.failing += 1
            if not is_working and key == episode.key:
                episode.last, episode.until = at, -1
            elif episode.until < 0:
                episode.until = at
        is_new = all(key != episode.key for episode in going)
        if failure and is_new and (failure.program or not is_probe(line)):
            episodes.append(Episode(at, run, targets, failure))
    return episodes


def judge_run(run: ToolRun) -> bool | None:
    """Return whether a command worked; None if it did not run to its end, or nothing tells.

    A pipe hides the exit code, and some hosts report none: then the output decides.
    """
    if is_refusal(run.answer.text):
        return None
    signs = _QUOTED.sub("", run.call.call)
    is_hidden = "|" in signs or ";" in signs
    if run.is_ok is False or (run.is_ok and not is_hidden):
        return run.is_ok
    if find_failure(run.answer.text, is_certain=True) is not None:
        return False
    is_proof = "||" not in signs and (run.is_ok or run.answer.text.strip())
    return True if is_proof else None


def find(scene: Scene) -> Iterator[Finding]:
    """Yield the failures that were resolved, in the order of the resolution."""
    edits = [(at, path) for at, run in enumerate(scene.runs) for path in _find_edited(run)]
    resolved = [episode for episode in find_episodes(scene) if episode.worked >= 0]
    for episode in sorted(resolved, key=lambda each: (each.worked, each.first)):
        earlier = {path for at, path in edits if at < episode.first}
        if episode.until - episode.last <= MAX_BETWEEN and not episode.failure.is_planned:
            yield from _find_fix(scene, episode, earlier)


def _find_edited(run: ToolRun) -> tuple[str, ...]:
    """Return the paths that a run changed, in an editor or by a redirection."""
    if run.is_edit:
        return run.edited or (run.call.call,)
    return list_written(run.call.call) if run.is_command and run.is_ok is not False else ()


def _is_own(episode: Episode, earlier: Iterable[str]) -> bool:
    """Return whether a failure is work in progress: in a file edited before."""
    failure, text = episode.failure, episode.run.answer.text.replace("\\", "/")
    programs = {target.program for target in episode.targets}
    for path in map(shorten_path, earlier):
        name = posixpath.basename(path)
        if name and (name in programs or name in failure.frame):
            return True
        printed = failure.what if path.endswith(_CONFIG) else text
        if path and path in printed and "git" not in programs:
            return True
    return False


def _find_fix(scene: Scene, episode: Episode, earlier: set[str]) -> Iterator[Finding]:
    """Yield the finding that the steps in between resolved a failure, if there are any.

    Edits of a program after earlier edits are work in progress; those of its configuration are not.
    A failure of the agent's own code, or of a script that it typed, needs something installed, or
    another way to call it.
    """
    failed, failure = episode.run, episode.failure
    between = scene.runs[episode.last + 1 : episode.until]
    touched = [(run, path) for run in between for path in _find_edited(run)]
    if earlier:
        before = tuple(map(posixpath.basename, earlier))
        fresh = [row for row in touched if not row[1].endswith(before)]
        touched = [row for row in fresh if row[1].endswith(_CONFIG)]
    done = [run.call.call for run in between if run.is_command and judge_run(run)]
    commands = list(
        dict.fromkeys(normalize_command(call) for call in done if _fixes(call, episode))
    )
    line, next_line = scene.runs[episode.last].call.call, scene.runs[episode.until].call.call
    exports = [call for call in done if not find_targets(call)]
    settings = find_settings(line, "\n".join((*exports, next_line)))
    wording = find_wording(line, next_line) if episode.until == episode.worked else ""
    is_strict = episode.is_script or _is_own(episode, earlier)
    if is_strict or (episode.is_missing and wording):
        commands = [command for command in commands if can_install(find_targets(command))]
    if is_strict:
        settings, wording = "", "" if commands or any(run.is_edit for run in between) else wording
    touched = [] if is_strict or (episode.is_missing and wording) else touched
    paths = tuple(dict.fromkeys(path for _run, path in touched))[:MAX_FILES]
    named = [shorten_path(path) for path in paths]
    steps = [f"`{cut(command)}`" for command in commands[-MAX_NAMED:]]
    if named:
        suffix = " and others" if len(named) > MAX_NAMED else ""
        steps.append(f"changing {', '.join(named[:MAX_NAMED])}{suffix}")
    steps += [f"setting `{cut(settings)}`"] if settings else []
    if wording and not (steps and wording.startswith("cd ")):
        steps.append(f"running `{cut(wording)}`")
    if not steps:
        return
    fix = " and ".join(filter(None, (", ".join(steps[:-1]), steps[-1])))
    texts = dict.fromkeys(run.call.text.strip()[:MAX_FIX] for run, _path in touched)
    changes = "\n".join(filter(None, texts))[:MAX_FIX]
    what = failure.what.replace("`", "'")
    yield scene.build_finding(
        "error",
        f"`{cut(episode.line)}` failed with `{what}`; {fix} resolved it.",
        IMPORTANCE,
        tuple(sorted({failed.answer.number, scene.runs[episode.worked].answer.number})),
        confidence="high" if len(touched) + len(commands) == 1 else "medium",
        signals=(RESOLVED,),
        files=tuple(path for path in paths if not path.startswith(("/", "~"))),
        fields={
            "command": cut(episode.line),
            "failure": failure.what,
            "changes": changes or ", ".join(named) or settings or wording,
            "fix": fix[0].upper() + fix[1:],
            "error_signature": failure.signature,
            "environment": _describe_environment(failed, failure),
        },
    )


def _fixes(call: str, episode: Episode) -> bool:
    """Return whether a command that worked may have resolved a failure of another one."""
    targets = find_targets(call)
    return (
        can_fix(episode.targets, targets)
        and not (is_probe(call) or list_written(call))
        and not is_same(episode.targets, targets)
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
