"""Maintenance steps: what each one changes in which file, and when they may be committed here."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.memory.memory import FieldValue, Memory
from memtool.store import commits, files
from memtool.store.context import Context
from memtool.store.edits import FileEdit, recover
from memtool.store.repository import Repository
from memtool.store.tree import Record
from memtool.value import Value, format_count

KINDS: dict[str, str] = {
    "renew": "renewed",
    "archive": "archived",
    "merge": "merged",
    "rename": "given new paths",
    "deprecate": "deprecated",
    "strengthen": "strengthened",
    "confirm": "confirmed",
    "fade": "faded",
    "weigh": "weighed by their use",
    "digest": "summed up",
}
"""Kinds of steps in display order, each with its past participle."""


class UpkeepStep(Value):
    """One change of one file: new values of keys, or a new `memory`. `why` is a single phrase."""

    json_fields = "do id title path why since changes is_new"
    json_optional = "since"

    do: str
    id: str
    title: str
    path: str
    why: str
    changes: Mapping[str, FieldValue | None] = {}
    memory: Memory | None = None
    since: str = ""
    """The day on which the time of an archived memory was over; empty for other reasons."""

    @property
    def is_new(self) -> bool:
        """Whether it creates a new memory."""
        return self.memory is not None


def build_change(do: str, record: Record, why: str, **changes: FieldValue | None) -> UpkeepStep:
    """Build the step that sets a memory's keys; None drops a key."""
    return UpkeepStep(do, record.id, record.memory.title, record.path, why, changes)


MAX_LINES = 200
"""Maximum steps that a commit message lists."""
MAX_LINE = 300


def build_edits(
    steps: Iterable[UpkeepStep], read: Callable[[str], bytes], categories: Collection[str]
) -> list[FileEdit]:
    """Return the edits that steps make, by path; `read` returns the bytes of an existing file.

    Raises:
        MemtoolError: a file cannot be read, or would not be a valid memory afterwards.
    """
    made: dict[str, UpkeepStep] = {}
    changes: dict[str, dict[str, FieldValue | None]] = {}
    for step in steps:
        if step.memory is not None:
            made[step.path] = step
        changes.setdefault(step.path, {}).update(step.changes)
    edits = []
    for path in sorted(changes):
        new = made[path].memory if path in made else None
        before = None if new is not None else read(path)
        after = document.write(new) if new is not None else before
        assert after is not None
        try:
            after = document.edit(after, changes[path], path) if changes[path] else after
            document.read(after, path, categories)
        except document.Unreadable as error:
            raise MemtoolError(
                f"cannot change {path}: {error.problems[0].message}",
                hint=f"fix {path} by hand, and commit it",
                code="changed",
            ) from None
        edits.append(FileEdit(path, before, after))
    return edits


def format_counts(steps: Iterable[UpkeepStep]) -> str:
    """Format the number of steps of each kind, such as `3 archived, 1 merged`."""
    kinds = [step.do for step in steps]
    return ", ".join(f"{kinds.count(do):,} {done}" for do, done in KINDS.items() if do in kinds)


def format_summary(steps: Iterable[UpkeepStep]) -> str:
    """Format the summary of the commit."""
    return f"maintain: {format_counts(steps)}"


def format_body(steps: Iterable[UpkeepStep]) -> str:
    """Format a line for each step: its kind, memory and reason."""
    lines = [f"{step.do} {step.id}: {step.why}" for step in steps]
    shown = [
        line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 1]}…" for line in lines[:MAX_LINES]
    ]
    if len(lines) > len(shown):
        shown.append(f"and {len(lines) - len(shown):,} more, which the diff shows")
    return "\n".join(shown) + "\n"


LOCK = "maintain.lock"


@contextmanager
def hold_lock(repository: Repository) -> Iterator[None]:
    """Hold the upkeep lock. Raises MemtoolError if another process holds it."""
    path = os.path.join(repository.cache_dir, LOCK)
    hint = "give yourself permission; without --apply or --commit only the plan is shown"
    with files.explaining_errors(f"{path} cannot be written", hint):
        os.makedirs(repository.cache_dir, mode=0o700, exist_ok=True)
        handle = files.open_file(path, os.O_RDWR | os.O_CREAT)
    with open(handle, "wb"):
        try:
            files.lock(handle, waits=False)
        except BlockingIOError:
            raise MemtoolError(
                "another memtool maintain or migrate is running in this repository",
                hint="run the command again when it is done",
                code="busy",
            ) from None
        yield


def refuse_unready(repository: Repository, *, has_branches: bool = True) -> None:
    """Raise MemtoolError if a commit would be lost or would interfere with another operation.

    `has_branches` means that the verb could also work on a branch of its own.
    """
    bare = "memtool maintain --apply --branch memtool/maintain"
    repository.refuse_bare(bare if has_branches else "run it in a clone")
    what = commits.find_obstacle(repository)
    if not what:
        return
    is_detached = what in (commits.DETACHED, commits.JUJUTSU)
    elsewhere = ", or memtool maintain --apply --branch NAME" if has_branches else ""
    raise MemtoolError(
        commits.explain_obstacle(what),
        hint=f"{commits.finish_command(what)}{elsewhere}",
        code="detached" if is_detached else "merging",
    )


def recover_before(context: Context) -> None:
    """Undo what a killed run wrote, and add a note."""
    recovered = recover(context.repository)
    if recovered.reverted:
        shown = format_count(len(recovered.reverted), "file")
        context.notes.append(f"an earlier run was interrupted: {shown} that it wrote are removed")
    if recovered.unchanged:
        context.notes.append(
            f"an earlier run was interrupted; changed since: {', '.join(recovered.unchanged)}"
        )
