"""The format of a memory tree, and the steps that lead from each format to the next.

One number says it for the whole tree: `format = N` in its settings; none means 1. A step changes
keys of memories that may change, the settings, and where files lie; it never touches a claim, so
confirmed memories stay what they are. All steps together become one commit, and `git revert` takes
it back. Steps that were taken are taken again, for files that a merge brought from a branch that
had not taken them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from memtool import installation
from memtool.authoring.tree import bytes_of
from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.memory.fields import is_mutable
from memtool.memory.memory import Fields, FieldValue
from memtool.memory.schema import Problem
from memtool.store import config as config_file
from memtool.store import toml
from memtool.store.context import Context
from memtool.store.edits import FileEdit, commit_edits
from memtool.upkeep import steps
from memtool.value import Value, first_few, plural

TRAILER = "Memory-Format"
AGAIN = "memtool migrate --commit"


class FormatStep(Value):
    """What leads to the next format. On a file of that or any later format it changes nothing.

    `keys` returns new values for keys of a memory, None to drop one. `place` returns where its file
    lies below the memory directory, of the path where it is; its name stays. `settings` returns the
    text of the settings file. Each is left out where nothing of the kind changes.
    """

    name: str
    keys: Callable[[Fields], Mapping[str, FieldValue | None]] | None = None
    place: Callable[[Fields, str], str] | None = None
    settings: Callable[[str], str] | None = None


STEPS: tuple[FormatStep, ...] = ()
"""The steps in order: the first leads from format 1 to 2. There is one less than formats."""


class StepDone(Value):
    """A step, and the files that it changes, as they are called before it."""

    name: str
    files: tuple[str, ...]


class MigrationPlan(Value):
    """The formats that a tree has and gets, the steps between them, and the files as they become.

    `edits` is empty where there is nothing to do.
    """

    old: int
    new: int
    steps: tuple[StepDone, ...] = ()
    edits: tuple[FileEdit, ...] = ()


class _MemoryFile:
    """A memory file on its way through the steps."""

    def __init__(self, path: str, data: bytes) -> None:
        self.old_path = self.path = path
        self.old = self.data = data

    def take(self, step: FormatStep, directory: str) -> bool:
        """Do a step, and return whether it changed anything."""
        before = self.path, self.data
        if step.keys or step.place:
            fields = document.fields_of(self.data, self.path)
            if step.keys:
                found = step.keys(fields)
                new = {key: value for key, value in found.items() if fields.get(key) != value}
                if not all(map(is_mutable, new)):
                    raise ValueError(f"the step {step.name} would change the claim: {sorted(new)}")
                self.data = document.edit(self.data, new, self.path) if new else self.data
            if step.place:
                moved = step.place(fields, self.path.removeprefix(f"{directory}/"))
                if moved.rpartition("/")[2] != self.path.rpartition("/")[2]:
                    raise ValueError(f"the step {step.name} would rename {self.path}")
                self.path = f"{directory}/{moved}"
        return (self.path, self.data) != before

    def edits(self) -> list[FileEdit]:
        if self.path != self.old_path:
            return [FileEdit(self.path, None, self.data), FileEdit(self.old_path, self.old, None)]
        return [] if self.data == self.old else [FileEdit(self.path, self.old, self.data)]


def goal(context: Context, to: int) -> int:
    """Return the format that is asked for, of 0 the newest.

    Raises:
        MemtoolError: it is not known, or older than what the tree has; or the tree is newer.
    """
    context.project.refuse_newer()
    old = context.settings.format
    if not 0 <= to <= config_file.FORMAT:
        newest = config_file.FORMAT
        known = "format 1" if newest == 1 else f"formats 1 to {newest}"
        raise MemtoolError(
            f"there is no format {to} here: this memtool knows {known}",
            hint=installation.upgrade() if to > newest else "memtool migrate leads to the newest",
            code="unknown-format",
        )
    if 0 < to < old:
        raise MemtoolError(
            f"the tree has format {old}, and no step leads back to {to}",
            hint=f"git log --grep '^{TRAILER}:' names the commit that git revert takes back",
            code="unknown-format",
        )
    return to or config_file.FORMAT


def plan(context: Context, to: int) -> MigrationPlan:
    """Return the steps that lead the memories of the worktree to a format, and what they change.

    Raises:
        MemtoolError: the format is not known, or a file cannot be read and so not be migrated.
    """
    old, new = context.settings.format, goal(context, to)
    if new == 1:
        return MigrationPlan(old, new)
    files = _read(context)
    path = context.project.config_path
    before = bytes_of(context.repository.top, path)
    text = (before or b"").decode()
    done = []
    for number, step in enumerate(STEPS[: new - 1], 1):
        names = [one.path for one in files]
        try:
            taken = [
                name
                for name, one in zip(names, files, strict=True)
                if one.take(step, context.directory)
            ]
        except document.Unreadable as error:
            raise _unreadable(error.problems[0]) from None
        if number >= old:
            text = toml.set_key(
                step.settings(text) if step.settings else text, "format", number + 1
            )
            taken = [path, *taken]
        if taken:  # of earlier steps: a branch was merged that had not taken them
            done.append(StepDone(step.name, tuple(taken)))
    edits = [edit for one in files for edit in one.edits()]
    edits += [FileEdit(path, before, text.encode())] if new > old else []
    _refuse_broken(edits, config_file.parse(text.encode(), path).categories)
    # What is new is there before what is old goes away; the number comes last.
    edits.sort(key=lambda edit: (edit.path == path, edit.after is None, edit.path))
    return MigrationPlan(old, new, tuple(done), tuple(edits))


def _read(context: Context) -> list[_MemoryFile]:
    found = []
    for entry, data in context.snapshot().read():
        if isinstance(data, Problem):
            raise _unreadable(data)
        found.append(_MemoryFile(entry.path, data))
    return sorted(found, key=lambda one: one.path)


def _unreadable(problem: Problem) -> MemtoolError:
    return MemtoolError(
        f"{problem.path} cannot be read, and would be left behind: {problem.message}",
        hint="memtool check says what is wrong; correct it, and commit that first",
        code="unreadable",
    )


def _refuse_broken(edits: Collection[FileEdit], categories: Collection[str]) -> None:
    """Raise MemtoolError where a memory could not be read any more."""
    for edit in edits:
        if edit.after is None or not edit.path.endswith(".md"):
            continue
        try:
            document.read(edit.after, edit.path, categories)
        except document.Unreadable as error:
            raise _unreadable(error.problems[0]) from None


def refuse_dirty(context: Context) -> None:
    """Raise MemtoolError where the memory directory is not as HEAD has it, or not all here."""
    git, directory = context.repository.git, context.directory
    changed = [path for _letters, path in git.status(directory)]
    if changed:
        raise MemtoolError(
            f"{first_few(changed, 1)} is not committed, and a migration is one commit of its own",
            hint=f"git add {directory} && git commit, then {AGAIN}",
            code="dirty",
        )
    if any(entry.is_skipped for entry in git.ls_files(directory)):
        raise MemtoolError(
            f"some memories are left out of this sparse checkout of {directory}",
            hint=f"git sparse-checkout add {directory}, then {AGAIN}",
            code="not-here",
        )


def migrate(context: Context, to: int) -> tuple[MigrationPlan, str | None]:
    """Lead the memories to a format, in one commit; return what was done, and the commit.

    Raises:
        MemtoolError: as `plan`; or something is not committed, a merge is unfinished, or git or
            the disk refuse. All files are then as they were.
    """
    repository = context.repository
    steps.refuse_unready(repository, has_branches=False)
    with steps.alone(repository):
        steps.recover_before(context)
        context.enter(repository)  # the settings may have been taken back
        refuse_dirty(context)
        found = plan(context, to)
        if not found.edits:
            return found, None
        subject = f"memory: migrate to format {found.new}"
        body = "".join(f"{one.name}: {plural(len(one.files), 'file')}\n" for one in found.steps)
        trailers = {TRAILER: str(found.new)}
        done = commit_edits(context, found.edits, subject, body, trailers, AGAIN)
    return found, done
