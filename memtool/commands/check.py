"""`memtool check`: the gate, on the worktree, on what is staged, on commits, on all of history."""

from __future__ import annotations

import os
import sys
import time

from memtool.errors import MemtoolError
from memtool.value import Value, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.gate.content import Content
    from memtool.memory.schema import Problem
    from memtool.store.context import Context
    from memtool.store.progress import Progress

ERROR = "error"
SLOW_S = 0.4
"""Seconds of CPU from which a check before a commit has read a large tree without an index."""
_WITHOUT_WORK_TREE = "memtool check --range A..B, or memtool check --history"


class Checked(Value):
    """How many files were looked at, and what is wrong, sorted by path and line.

    `is_quiet` leaves out the line that says that nothing is.
    """

    json_fields = "checked problems"

    checked: int
    problems: tuple[Problem, ...]
    is_quiet: bool = False

    @property
    def exit_code(self) -> int:
        """1 where something must not be committed; warnings refuse nothing."""
        return int(any(problem.severity == ERROR for problem in self.problems))


def check(
    context: Context, *path: str, staged: bool = False, range: str = "", history: bool = False
) -> Checked:
    """Check memories: are they valid, free of secrets, unchanged where they must be, and linked.

    Without options every file of the worktree is checked and compared with HEAD; paths limit that.
    --staged checks exactly what the next commit would hold, and is what the hook calls: only what
    differs from HEAD, from all parents in a merge. Git does not tell a hook about --amend, so an
    amended commit is compared with the one that it replaces. --range is for CI, since hooks can be
    bypassed: secrets in every blob of the commits A..B, everything else in the tree of B, and
    whether an owner made each change that the trust rules of A protect.
    --history looks for secrets in all commits of all branches and tags.

    Errors refuse the commit, with exit code 1; warnings do not. Nothing is ever changed.

    Example:
        memtool check --range origin/main..HEAD

    Args:
        path: check only these files, or what is in these directories
        staged: check what is staged, as the hook does
        range: check the commits A..B, or with A...B those since both parted
        history: look for secrets in every commit
    """
    if sum((staged, bool(range), history)) > 1 or (path and (range or history)):
        raise MemtoolError(
            "--staged, --range, --history and paths are different things to check",
            hint="give one of them",
        )
    if staged:
        return _staged(context, path)
    from memtool.store.progress import Progress

    with Progress(sys.stderr) as progress:
        if history:
            from memtool.gate import sources

            progress.begin("looking for secrets in every commit")
            found = sources.scan(context)
            return Checked(found.checked, found.problems)
        content = _content(context, path, range)
        if content is None:
            return Checked(0, (), is_quiet=True)
        return _checked(context, content, path, progress)


def _staged(context: Context, path: tuple[str, ...]) -> Checked:
    """Check what is staged; that nothing is costs little."""
    context.repository.refuse_bare(_WITHOUT_WORK_TREE)
    from memtool.store.repository import staged_changes

    sides, head = staged_changes(context.repository, context.directory, context.caller.env)
    if not any(sides):
        return Checked(0, (), is_quiet=True)
    from memtool.gate import sources
    from memtool.store.progress import Progress

    with Progress(sys.stderr) as progress, context.repository.git.reading():
        content = sources.of_staged(context, sides, head)
        checked = _checked(context, content, path, progress, is_quiet=True)
    _hasten(context)
    return checked


def _hasten(context: Context) -> None:
    """Let another process build the index that a check lacked, so that the next one is fast."""
    if time.process_time() < SLOW_S or not context.is_cached:
        return
    from memtool.index import index
    from memtool.sessions import background

    repository = context.repository
    if index.last_reader(repository, context.directory, context.settings) is None:
        background.warm(repository.cache_dir, repository.top, context.caller.env, time.time())


def _checked(
    context: Context,
    content: Content,
    path: tuple[str, ...],
    progress: Progress,
    *,
    is_quiet: bool = False,
) -> Checked:
    from memtool.gate import gate

    problems = gate.problems(content, lambda name: progress.begin(f"checking: {name}"))
    if path:
        from memtool.gate.sources import is_chosen

        chosen = _inside(context, path)
        problems = tuple(p for p in problems if is_chosen(p.path, chosen))
    else:
        problems = (*problems, *_blocks(context, content))
    problems = (*problems, *_misplaced(context, content), *_unused(context, content, path))
    problems += tuple(_unfinished(context, content, path))
    problems = tuple(sorted(problems, key=lambda one: (one.path, one.line)))
    if any(one.severity == ERROR for one in problems):
        from memtool.authoring.tree import with_way_back

        problems = with_way_back(context, problems)
    return Checked(len(content.files), problems, is_quiet)


def _unfinished(context: Context, content: Content, path: tuple[str, ...]) -> Iterator[Problem]:
    """Yield the memories of a killed commit, which git's index only intends to hold."""
    if content.kind != "worktree":
        return
    from memtool.gate.sources import is_chosen
    from memtool.memory.schema import Problem as Found
    from memtool.store.commits import intended

    chosen = _inside(context, path)
    for name in intended(context.repository, content.directory):
        if not path or is_chosen(name, chosen):
            yield Found(
                name,
                0,
                "unfinished-commit",
                "git's index only intends to hold it, so that git refuses to stash",
                "memtool doctor --fix takes that out",
                severity="warning",
            )


def _misplaced(context: Context, content: Content) -> list[Problem]:
    """Return the memories of a project that say they hold in all: an error for new ones."""
    from memtool.memory.schema import Problem as Found

    found = [one for one in content.files if "\nscope: global\n" in one.text]
    if not found or context.project.is_in_global:
        return []
    hint = "leave scope out; memtool --global new keeps a memory for all your projects"
    return [
        Found(
            one.path,
            one.line_of("scope"),
            "foreign-scope",
            "scope: global has no effect in the file of a project",
            hint,
            severity=ERROR if one.path in content.new else "warning",
        )
        for one in found
        if one.memory is not None and one.memory.text("scope") == "global"
    ]


def _unused(context: Context, content: Content, path: tuple[str, ...]) -> list[Problem]:
    """Return the settings of a project that only its users' own settings decide: none is used.

    A repository that names whom its users ask, or what they run, is a mistake or an attack.
    """
    from memtool.gate.sources import is_chosen
    from memtool.memory.schema import Problem as Found
    from memtool.store.config import CONFIG_NAME, USER_ONLY

    file = f"{content.directory}/{CONFIG_NAME}"
    given = sorted(USER_ONLY.keys() & content.settings.given.keys())
    if (
        not given
        or context.project.is_in_global
        or (path and not is_chosen(file, _inside(context, path)))
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
        for key in given
    ]


def _blocks(context: Context, content: Content) -> list[Problem]:
    """Return what is wrong with the blocks of files such as AGENTS.md; where there are none, none.

    Before a commit the files on disk are compared with the memories on disk.
    """
    from memtool.inject import agents_md

    at = content.head if content.kind == "commit" else None
    found = agents_md.agent_files(
        lambda path: (
            context.project.stored_file(path, at)
            if at
            else agents_md.read_at(context.repository.top, path)
        )
    )
    if not found:
        return []
    return agents_md.problems(context, found, at)


def render(checked: Checked) -> str:
    """Return two lines per problem, errors first: where and what, then what to do; and a count."""
    rows = []
    for problem in sorted(checked.problems, key=lambda problem: problem.severity != ERROR):
        mark = "" if problem.severity == ERROR else "warning: "
        rows.append(f"{problem.path}:{problem.line}: {problem.code} {mark}{problem.message}")
        if problem.hint:
            rows.append(f"  hint: {problem.hint}")
    errors = sum(problem.severity == ERROR for problem in checked.problems)
    warnings = len(checked.problems) - errors
    if not rows and checked.is_quiet:
        return ""
    told = [plural(n, word) for n, word in ((errors, "error"), (warnings, "warning")) if n]
    files = plural(checked.checked, "file")
    return "\n".join([*rows, f"{files} checked: {', '.join(told) or 'nothing is wrong'}"])


def _content(context: Context, path: tuple[str, ...], range_: str) -> Content | None:
    if range_:
        from memtool.gate import sources
        from memtool.store import config

        start, end = _ends(context, range_)
        stored = context.project.stored_file(context.project.config_path, end) or b""
        settings = config.parse(stored, context.project.config_path)
        return sources.of_range(context, settings, start, end)
    context.repository.refuse_bare(_WITHOUT_WORK_TREE)
    from memtool.gate import sources

    context.project.refuse_absent()
    return sources.of_worktree(context, _inside(context, path))


def _inside(context: Context, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return paths from the top. Raises MemtoolError for one outside of the memory directory."""
    found = []
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
                hint="memtool check without a path checks every memory",
            )
        found.append("" if above else inside)
    return tuple(found)


def _ends(context: Context, range_: str) -> tuple[str, str]:
    """Return the commits that a range starts behind and ends with.

    A start of only zeros, which forges send for a new branch, means no commit.
    """
    git = context.repository.git
    left, dots, right = range_.partition("..")
    if not dots:
        raise MemtoolError(
            f"{range_!r} is not a range", hint=f"memtool check --range {range_}..HEAD"
        )
    is_merge_base = right.startswith(".")
    end = git.rev(right.removeprefix(".") or "HEAD")
    if left and not left.strip("0"):
        return "", end
    start = git.rev(left or "HEAD")
    if is_merge_base:
        start = git.line("merge-base", start, end, allowed=(0, 1))
    return start, end
