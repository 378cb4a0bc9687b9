"""Steps of maintenance: what each does to which file, and when they may become a commit here."""

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
from memtool.value import Value, plural

KINDS: dict[str, str] = {
    "renew": "renewed",
    "archive": "archived",
    "merge": "merged",
    "deprecate": "deprecated",
    "strengthen": "strengthened",
    "confirm": "confirmed",
    "fade": "faded",
    "weigh": "weighed by their use",
    "digest": "summed up",
}
"""What a step does, in the order in which steps are shown, and the word for it when it is done."""


class UpkeepStep(Value):
    """One change of one file: new values of keys, or a new `memory`. `why` is one clause."""

    json_fields = "do id title path why changes is_new"

    do: str
    id: str
    title: str
    path: str
    why: str
    changes: Mapping[str, FieldValue | None] = {}
    memory: Memory | None = None

    @property
    def is_new(self) -> bool:
        """Whether it writes a memory that was not there."""
        return self.memory is not None


def changing(do: str, record: Record, why: str, **changes: FieldValue | None) -> UpkeepStep:
    """Return the step that gives keys of a memory new values, or drops them with None."""
    return UpkeepStep(do, record.id, record.memory.title, record.path, why, changes)


MOST_LINES = 200
"""Steps that a commit message lists one by one."""
MOST_LINE = 300
TRAILER = "Maintain"


def edits_of(
    steps: Iterable[UpkeepStep], read: Callable[[str], bytes], categories: Collection[str]
) -> list[FileEdit]:
    """Return the files that steps make, by path; `read` gives the bytes of one that is there.

    Raises:
        MemtoolError: a file cannot be read, or would not be a memory any more.
    """
    made: dict[str, UpkeepStep] = {}
    changes: dict[str, dict[str, FieldValue | None]] = {}
    for step in steps:
        if step.memory is not None:
            made[step.path] = step
        changes.setdefault(step.path, {}).update(step.changes)
    found = []
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
                f"{path} would be no memory any more: {error.problems[0].message}",
                hint=f"edit {path}, and commit it",
                code="changed",
            ) from None
        found.append(FileEdit(path, before, after))
    return found


def counted(steps: Iterable[UpkeepStep]) -> str:
    """Return how many steps of each kind there are, such as `3 archived, 1 merged`."""
    kinds = [step.do for step in steps]
    return ", ".join(f"{kinds.count(do):,} {done}" for do, done in KINDS.items() if do in kinds)


def subject(steps: Iterable[UpkeepStep]) -> str:
    """Return the first line of the commit."""
    return f"memory: maintain: {counted(steps)}"


def body(steps: Iterable[UpkeepStep]) -> str:
    """Return a line for each step: what is done, to what, and why."""
    lines = [f"{step.do} {step.id}: {step.why}" for step in steps]
    shown = [
        line if len(line) <= MOST_LINE else f"{line[: MOST_LINE - 1]}…"
        for line in lines[:MOST_LINES]
    ]
    if len(lines) > len(shown):
        shown.append(f"and {len(lines) - len(shown):,} more, which the diff shows")
    return "\n".join(shown) + "\n"


LOCK = "maintain.lock"


@contextmanager
def alone(repository: Repository) -> Iterator[None]:
    """Hold the lock of upkeep. Raises MemtoolError where another process does."""
    path = os.path.join(repository.cache_dir, LOCK)
    hint = "give yourself permission; without --apply or --commit only the plan is shown"
    with files.refusing(f"{path} cannot be written", hint):
        os.makedirs(repository.cache_dir, mode=0o700, exist_ok=True)
        handle = files.open_file(path, os.O_RDWR | os.O_CREAT)
    with open(handle, "wb"):
        try:
            files.lock(handle, waits=False)
        except BlockingIOError:
            raise MemtoolError(
                "another memtool maintain or migrate is at work in this repository",
                hint="run the same command again when it is done",
                code="busy",
            ) from None
        yield


def refuse_unready(repository: Repository, *, has_branches: bool = True) -> None:
    """Raise MemtoolError where a commit would be lost, or would get in the way of another one.

    `has_branches` says that the verb could also work on a branch of its own.
    """
    bare = "memtool maintain --apply --branch memtool/maintain"
    repository.refuse_bare(bare if has_branches else "run it in a clone")
    what = commits.operation(repository)
    if not what:
        return
    is_detached = what in (commits.DETACHED, commits.JUJUTSU)
    elsewhere = ", or memtool maintain --apply --branch NAME" if has_branches else ""
    raise MemtoolError(
        commits.reason_of(what),
        hint=f"{commits.finish(what)}{elsewhere}",
        code="detached" if is_detached else "merging",
    )


def recover_before(context: Context) -> None:
    """Take back what a run wrote that was killed, and say so."""
    found = recover(context.repository)
    if found.undone:
        shown = plural(len(found.undone), "file")
        context.notes.append(
            f"an earlier run was interrupted: {shown} that it wrote are taken back"
        )
    if found.left:
        context.notes.append(
            f"an earlier run was interrupted; changed since: {', '.join(found.left)}"
        )
