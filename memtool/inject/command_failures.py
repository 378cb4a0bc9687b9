"""Command failures: the memories of failures of the command that an agent is about to run.

A failure is one of a command if both have the same program and the same target, however they are
spelled: `uv run pytest -q tests/a.py` is `.venv/bin/pytest tests/a.py`. A confirmed memory names
its command in its section Command; its section Environment may add the directory.
"""

from __future__ import annotations

import os
import posixpath

from memtool.index import analyzer
from memtool.memory.command_line import SimpleCommand, find_target, split_commands
from memtool.memory.environment import parse_environment
from memtool.memory.memory import split_sections
from memtool.search import picks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from memtool.index.reader import Catalog
    from memtool.inject.block import BlockFormat, InjectedBlock
    from memtool.inject.candidates import Candidate
    from memtool.inject.gather import GatherRequest, RepositoryCandidates
    from memtool.memory.command_line import CommandTarget
    from memtool.memory.memory import Memory
    from memtool.store.context import Context
    from memtool.store.tree import Record

COMMAND = "Command"
"""The section of a trace that has the command line."""
MAX_FAILURES = 50
"""Failures of one program that are compared with a command."""
_TRIVIAL = frozenset(
    ("", "[", "cat", "echo", "false", "grep", "head", "set", "tail", "test", "true")
)
"""Programs beside the one that failed, in many recorded lines."""
LEAD = (
    "Not run yet: this command has failed before. Read this, then run it again, changed or as it "
    "is; memtool holds it only once."
)


def build_failure_warning(
    context: Context, session: str, line: str, folder: str, find_format: Callable[[], BlockFormat]
) -> InjectedBlock | None:
    """Build a block of the failures of a command line that is about to run; None without any.

    Raises:
        MemtoolError: the memory directory does not exist.
    """
    from memtool.index import index

    targets = find_targets(context, line, folder)
    language = context.settings.text("search.language")
    if not find_failures(index.open(context), targets, language):
        return None
    # Most commands have no failure, and a block loads three times as much as the index.
    from memtool.inject import gather
    from memtool.inject.candidates import GOVERNING, Candidate, trust_order
    from memtool.inject.file_rules import MAX_RULE_TOKENS
    from memtool.inject.file_warnings import build_warning

    def find(own: RepositoryCandidates, _request: GatherRequest) -> list[Candidate]:
        grounds = own.grounds
        failures = find_failures(grounds.tree, targets, language)
        shown = [record for record in failures if not grounds.find_refusal(record)]
        shown.sort(key=lambda record: trust_order(record, grounds))
        return [Candidate(record, GOVERNING, scope=grounds.scope) for record in shown]

    request = gather.GatherRequest(context, session=session)
    own = gather.with_rules(gather.collect_ungoverned(request), request, find)
    return build_warning(request, own, find_format(), MAX_RULE_TOKENS, LEAD)


def find_targets(context: Context, line: str, folder: str) -> list[CommandTarget]:
    """Return the programs of a command line and what they run on, with paths from the top."""
    top = os.path.realpath(context.repository.top)
    inside = os.path.relpath(os.path.realpath(folder), top)
    return list(_find_all(split_commands(line), "" if inside == "." else inside, top))


def find_failures(tree: Catalog, targets: Iterable[CommandTarget], language: str) -> list[Record]:
    """Return the confirmed memories of failures with one of these programs and targets."""
    failures = {}
    for target in targets:
        terms = analyzer.terms(f"{COMMAND} {target.program}", language)
        for record in picks.pick_containing(tree, terms, is_failure, MAX_FAILURES):
            if any(own.covers(target) for own in list_failed(record.memory)):
                failures[record.path] = record
    return list(failures.values())


def is_failure(kind: Memory) -> bool:
    """Return whether a memory of this kind may be of a failure, and is confirmed."""
    return kind.type == "episodic" and kind.status in picks.RULING_STATUSES


def list_failed(memory: Memory) -> list[CommandTarget]:
    """Return the programs and targets of the command that a memory records."""
    sections = {part.title: part.text for part in split_sections(memory.body)}
    rows = sections.get(COMMAND, "").splitlines()
    line = "\n".join(row.strip("`") for row in rows if not row.startswith("```"))
    targets = list(_find_all(split_commands(line), "", ""))
    try:
        environment = parse_environment(memory.body)
    except ValueError:  # it was edited by hand
        return targets
    if environment.argv:
        folder = environment.cwd if environment.cwd != "." else ""
        targets += _find_all([SimpleCommand(environment.argv, (), folder)], "", "")
    return targets


def _find_all(commands: Iterable[SimpleCommand], folder: str, top: str) -> Iterator[CommandTarget]:
    prefix = f"{top}/" if top else ""
    for command in commands:
        inside = posixpath.normpath(posixpath.join(folder, command.folder))
        target = find_target(command.replace(folder="" if inside == "." else inside))
        if target is not None and target.program not in _TRIVIAL:
            paths = (path.removeprefix(prefix) for path in target.targets)
            yield target.replace(targets=frozenset(paths))
