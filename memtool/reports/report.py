"""A report: the findings of a verb about files, before they have a format.

Labels, summaries, codes and rules are memtool's own words. All other texts may be those of a
memory, a path or a commit, which anybody can have written: a format shows them as text, whatever
they hold.
"""

from __future__ import annotations

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ERROR, WARNING, SETTLED = "error", "warning", "settled"
LEVELS = (ERROR, WARNING, SETTLED)
"""Levels, the worst first. A settled finding needs no action: only a comment lists it."""
MAX_TEXT_CHARS = 1_000
"""Characters of a message or hint that a report shows."""


class Finding(Value):
    """One finding about one file.

    `line` counts from 1, 0 for the whole file. `id` is the memory that the finding is about, and
    `name` its id as people read it. `by` is the commit or memory that a label ends with, as in
    `superseded by dec-2g54`. `is_task` marks one that is among the tasks of the report.
    """

    code: str
    level: str
    label: str
    message: str
    path: str
    line: int = 0
    id: str = ""
    name: str = ""
    by: str = ""
    hint: str = ""
    is_task: bool = False


class Task(Value):
    """A memory to look at. One of depth 2 is below the last one of depth 1."""

    depth: int
    label: str
    name: str
    title: str


class TaskGroup(Value):
    """Tasks with one cause: what is no longer so, what became of it, and its new titles.

    `branch` is where this is so already, empty if it is part of the change. `places` are files that
    name one of the memories, and commands that rebuild others. The clause and the labels of tasks
    are memtool's own words.
    """

    subject: str
    clause: str
    branch: str
    titles: tuple[str, ...]
    tasks: tuple[Task, ...]
    places: tuple[str, ...]


class Report(Value):
    """The findings of one verb, the most important first.

    `title` and `summary` are for people, `rules` has the meaning of each code that a finding may
    have, `advice` is what to do about open findings, and `command` shows all of them. `tasks` are
    under a heading of their own, `task_title`, with `task_advice` and the command `task_command` to
    begin with. `settled` are names of memories that need no action any more.
    """

    verb: str
    title: str
    summary: str
    rules: Mapping[str, str]
    findings: tuple[Finding, ...]
    advice: str = ""
    command: str = ""
    task_title: str = ""
    tasks: tuple[TaskGroup, ...] = ()
    task_advice: str = ""
    task_command: str = ""
    settled: tuple[str, ...] = ()


def list_open(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings that need action, errors first."""
    for level in (ERROR, WARNING):
        yield from (finding for finding in findings if finding.level == level)


def to_line(text: str, max_chars: int = MAX_TEXT_CHARS) -> str:
    r"""Return a text as one line of valid Unicode, cut if it is long.

    White space of any kind is one space, and what cannot be seen is escaped, as `\x1b`.
    """
    line = " ".join(text.split())
    if not line.isprintable():
        line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    return line if len(line) <= max_chars else line[: max_chars - 1] + "…"


def to_lines(text: str) -> str:
    """Return the lines of a text, each as `to_line` gives it, without empty ones."""
    return "\n".join(filter(None, map(to_line, text.split("\n"))))
