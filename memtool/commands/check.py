"""`memtool check`: the gate, on the worktree, the index, a range of commits or all of history."""

from __future__ import annotations

import os
import sys
import time

from memtool.commands._layout import Layout
from memtool.errors import MemtoolError
from memtool.reports import FORMATS, TEXT, format_report
from memtool.value import Value, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Annotated

    from memtool.gate.content import Content
    from memtool.memory.schema import Problem
    from memtool.reports.report import Report
    from memtool.store.context import Context
    from memtool.store.progress import Progress

ERROR, WARNING = "error", "warning"
SLOW_S = 0.4
"""Seconds of CPU above which a staged check has probably read a large tree without an index."""
_WITHOUT_WORK_TREE = "memtool check --range A..B, or memtool check --history"


class CheckReport(Value):
    """The number of checked files, and the problems, sorted by path and line.

    With `is_quiet` the text is empty if there are no problems.
    """

    json_fields = "checked problems"

    checked: int
    problems: tuple[Problem, ...]
    is_quiet: bool = False
    format: str = TEXT

    @property
    def exit_code(self) -> int:
        """1 if there is an error; warnings do not count."""
        return int(any(problem.severity == ERROR for problem in self.problems))


def check(
    context: Context,
    *path: str,
    staged: bool = False,
    range: str = "",
    history: bool = False,
    format: Annotated[str, FORMATS] = TEXT,
    from_: str = "",
) -> CheckReport:
    """Check that memories are valid, free of secrets, and changed only where allowed.

    What is checked:
        (nothing)       all files of the worktree, or the given paths
        --staged        what the next commit would contain; git's hook runs this
        --range A..B    the commits of a pull request, for CI; also who may decide what
        --history       secrets in all commits of all branches and tags

    Errors give exit code 1; warnings do not. Nothing is changed.

    Example:
        memtool check
        memtool check --range origin/main..HEAD
        memtool check --range origin/main..HEAD --format github

    Args:
        path: only these files and directories
        staged: check what is staged
        range: check the commits A..B, or A...B
        history: look for secrets in every commit
        format: text, markdown, github (annotations) or sarif (code scanning)
        from_: check nothing, and format the answer of --json in this file
    """
    sources = (staged, bool(range), history, bool(from_))
    if sum(sources) > 1 or (path and any(sources[1:])):
        raise MemtoolError(
            "--staged, --range, --history, --from and paths exclude each other",
            hint="leave out all but one",
        )
    report = (
        _read_report(context, from_)
        if from_
        else _check(context, path, staged=staged, range_=range, history=history)
    )
    return report.replace(format=format)


def _read_report(context: Context, path: str) -> CheckReport:
    """Read a report that --json wrote, perhaps in a workflow that anybody can change."""
    from memtool.memory.schema import Problem
    from memtool.reports.answers import is_word, read_answer, refuse_answer

    report = read_answer(path, CheckReport, (Problem,), directory=context.caller.cwd, verb="check")
    for problem in report.problems:
        if problem.severity not in (ERROR, WARNING) or not is_word(problem.code):
            raise refuse_answer(path, "check", "a problem has no valid code and severity")
    return report


def _check(
    context: Context, path: tuple[str, ...], *, staged: bool, range_: str, history: bool
) -> CheckReport:
    if staged:
        return _check_staged(context, path)
    from memtool.store.progress import Progress

    with Progress(sys.stderr) as progress:
        if history:
            from memtool.gate import sources

            progress.begin("looking for secrets in every commit")
            scan_result = sources.scan_history(context)
            return CheckReport(scan_result.checked, scan_result.problems)
        content = _load_content(context, path, range_)
        if content is None:
            return CheckReport(0, (), is_quiet=True)
        return _check_content(context, content, path, progress)


def _check_staged(context: Context, path: tuple[str, ...]) -> CheckReport:
    """Check the index; return at once if nothing is staged."""
    context.repository.refuse_bare(_WITHOUT_WORK_TREE)
    from memtool.store.repository import list_staged_changes

    sides, head = list_staged_changes(context.repository, context.directory, context.caller.env)
    if not any(sides):
        return CheckReport(0, (), is_quiet=True)
    from memtool.gate import sources
    from memtool.store.progress import Progress

    with Progress(sys.stderr) as progress, context.repository.git.open_objects():
        content = sources.read_staged(context, sides, head)
        report = _check_content(context, content, path, progress, is_quiet=True)
    _warm_index(context)
    return report


def _warm_index(context: Context) -> None:
    """Let a background process build the missing search index, so that the next check is fast."""
    if time.process_time() < SLOW_S or not context.is_cached:
        return
    from memtool.index import index
    from memtool.sessions import background

    repository = context.repository
    if index.open_last_reader(repository, context.directory, context.settings) is None:
        background.warm(repository.cache_dir, repository.top, context.caller.env, time.time())


def _check_content(
    context: Context,
    content: Content,
    path: tuple[str, ...],
    progress: Progress,
    *,
    is_quiet: bool = False,
) -> CheckReport:
    from memtool.gate import gate

    problems = gate.find_problems(content, lambda name: progress.begin(f"checking: {name}"))
    if path:
        from memtool.gate.sources import is_chosen

        chosen = _to_repository_paths(context, path)
        problems = tuple(p for p in problems if is_chosen(p.path, chosen))
    else:
        problems = (*problems, *_find_block_problems(context, content))
    problems = (
        *problems,
        *_find_misplaced(context, content),
        *_find_unused_settings(context, content, path),
    )
    problems += tuple(_find_unfinished(context, content, path))
    problems = tuple(sorted(problems, key=lambda problem: (problem.path, problem.line)))
    if any(problem.severity == ERROR for problem in problems):
        from memtool.authoring.tree import with_way_back

        problems = with_way_back(context, problems)
    return CheckReport(len(content.files), problems, is_quiet)


def _find_unfinished(
    context: Context, content: Content, path: tuple[str, ...]
) -> Iterator[Problem]:
    """Yield memories that a killed commit left in git's index as intent-to-add."""
    if content.kind != "worktree":
        return
    from memtool.gate.sources import is_chosen
    from memtool.memory.schema import Problem as Found
    from memtool.store.commits import list_intent_to_add

    chosen = _to_repository_paths(context, path)
    for name in list_intent_to_add(context.repository, content.directory):
        if not path or is_chosen(name, chosen):
            yield Found(
                name,
                0,
                "unfinished-commit",
                "git's index only intends to hold it, so that git refuses to stash",
                "memtool doctor --fix takes that out",
                severity="warning",
            )


def _find_misplaced(context: Context, content: Content) -> list[Problem]:
    """Return a problem for each project memory with `scope: global`: an error if it is new."""
    from memtool.memory.schema import Problem as Found

    candidates = [file for file in content.files if "\nscope: global\n" in file.text]
    if not candidates or context.project.is_in_global:
        return []
    hint = "leave scope out; memtool --global new keeps a memory for all your projects"
    return [
        Found(
            file.path,
            file.find_line("scope"),
            "foreign-scope",
            "scope: global has no effect in the file of a project",
            hint,
            severity=ERROR if file.path in content.new else "warning",
        )
        for file in candidates
        if file.memory is not None and file.memory.text("scope") == "global"
    ]


def _find_unused_settings(
    context: Context, content: Content, path: tuple[str, ...]
) -> list[Problem]:
    """Return a problem for each project setting that counts only among a user's own settings."""
    # A repository that sets what its users run, or which servers they ask, is a mistake or an
    # attack.
    from memtool.gate.sources import is_chosen
    from memtool.memory.schema import Problem as Found
    from memtool.store.config import CONFIG_NAME, USER_ONLY

    file = f"{content.directory}/{CONFIG_NAME}"
    user_only_keys = sorted(USER_ONLY.keys() & content.settings.values.keys())
    if (
        not user_only_keys
        or context.project.is_in_global
        or (path and not is_chosen(file, _to_repository_paths(context, path)))
    ):
        return []
    return [
        Found(
            file,
            0,
            "user-setting",
            f"{key} of a project is {USER_ONLY[key]}",
            f"take {key} out; memtool --global config {key} VALUE",
            severity="warning",
        )
        for key in user_only_keys
    ]


def _find_block_problems(context: Context, content: Content) -> list[Problem]:
    """Return the problems of managed blocks in files such as AGENTS.md.

    Before a commit the files on disk are compared with the memories on disk.
    """
    from memtool.inject import agents_md

    at = content.head if content.kind == "commit" else None
    agent_files = agents_md.find_agent_files(
        lambda path: (
            context.project.read_stored_file(path, at)
            if at
            else agents_md.read_at(context.repository.top, path)
        )
    )
    if not agent_files:
        return []
    return agents_md.find_problems(context, agent_files, at)


def render(report: CheckReport, layout: Layout) -> str:
    """Return each problem with its hint, errors first, then the counts.

    A fork is a problem of each of its sides, and shown once.
    """
    if report.format != TEXT:
        return format_report(_build_report(report, layout), report.format)
    rows = []
    problems = _list_shown(report)
    for problem in problems:
        mark = "" if problem.severity == ERROR else "warning: "
        message = layout.shorten(problem.message)
        rows.append(f"{problem.path}:{problem.line}: {problem.code} {mark}{message}")
        hints = filter(None, problem.hint.split("\n"))
        rows += [f"  hint: {layout.hint(layout.shorten(line))}" for line in hints]
    if not rows and report.is_quiet:
        return ""
    return "\n".join([*rows, _format_counts(report, problems)])


def _list_shown(report: CheckReport) -> list[Problem]:
    """Return the problems, errors first, and each fork once."""
    forks = {problem.message: problem for problem in reversed(report.problems)}
    problems = [
        problem
        for problem in report.problems
        if problem.code != "fork" or problem is forks[problem.message]
    ]
    return sorted(problems, key=lambda problem: problem.severity != ERROR)


def _format_counts(report: CheckReport, problems: list[Problem]) -> str:
    errors = sum(problem.severity == ERROR for problem in problems)
    warnings = len(problems) - errors
    counts = [format_count(errors, "error") if errors else "no errors"]
    counts += [format_count(warnings, "warning")] * bool(warnings)
    return f"{format_count(report.checked, 'file')} checked: {', '.join(counts)}"


def _build_report(report: CheckReport, layout: Layout) -> Report:
    """Return the problems for a format of other programs."""
    from memtool.memory.schema import CODES
    from memtool.reports.report import Finding, Report

    problems = _list_shown(report)
    codes = {
        problem.code: "a problem that this version of memtool does not know" for problem in problems
    }
    return Report(
        verb="check",
        title="Problems in the memories" if problems else "The memories are valid",
        summary=_format_counts(report, problems),
        rules={**codes, **CODES},
        findings=tuple(
            Finding(
                code=problem.code,
                level=problem.severity,
                label=f"{problem.severity}: {problem.code}",
                message=layout.shorten(problem.message),
                path=problem.path,
                line=problem.line,
                id=problem.id,
                hint=layout.hint(layout.shorten(problem.hint)),
            )
            for problem in problems
        ),
    )


def _load_content(context: Context, path: tuple[str, ...], range_: str) -> Content | None:
    if range_:
        from memtool.gate import sources
        from memtool.store import config

        start, end = _parse_range(context, range_)
        stored = context.project.read_stored_file(context.project.config_path, end) or b""
        settings = config.parse(stored, context.project.config_path)
        return sources.read_range(context, settings, start, end)
    context.repository.refuse_bare(_WITHOUT_WORK_TREE)
    from memtool.gate import sources

    context.project.refuse_absent()
    return sources.read_worktree(context, _to_repository_paths(context, path))


def _to_repository_paths(context: Context, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return paths relative to the top; "" for the memory directory or a parent of it."""
    relative_paths = []
    for path in paths:
        full = os.path.normpath(os.path.join(os.path.realpath(context.caller.cwd), path))
        inside = os.path.relpath(full, os.path.realpath(context.repository.top)).replace(
            os.sep, "/"
        )
        inside = "" if inside == "." else inside
        above = not inside or f"{context.directory}/".startswith(f"{inside}/")
        if not above and not inside.startswith(f"{context.directory}/"):
            raise MemtoolError(
                f"{path} is not in {context.directory}",
                hint="every memory: memtool check",
            )
        relative_paths.append("" if above else inside)
    return tuple(relative_paths)


def _parse_range(context: Context, range_: str) -> tuple[str, str]:
    """Return the commits of a range A..B: A, which is excluded, and B.

    A is "" if it is all zeros, which forges send for a new branch.
    """
    git = context.repository.git
    start_name, dots, end_name = range_.partition("..")
    if not dots:
        raise MemtoolError(
            f"{range_!r} is not a range", hint=f"memtool check --range {range_}..HEAD"
        )
    is_merge_base = end_name.startswith(".")
    end = git.resolve(end_name.removeprefix(".") or "HEAD")
    if start_name and not start_name.strip("0"):
        return "", end
    start = git.resolve(start_name or "HEAD")
    if is_merge_base:
        start = git.line("merge-base", start, end, allowed=(0, 1))
    return start, end
