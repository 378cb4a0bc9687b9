"""The format of a memory tree, and the steps from each format to the next.

One number applies to the whole tree: `format = N` in its settings; if absent, it is 1. A step
changes mutable keys of memories, the settings, and file locations. It never touches a claim, so
confirmed memories stay confirmed. All steps together become one commit, which `git revert` takes
back. Earlier steps are repeated, for files that were merged from a branch without them.

A migration also records what older memories did not record of the code (`checked.saw`), if the
commits at which it was checked are still here: the next squash may remove them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from memtool import installation
from memtool.authoring.tree import read_bytes
from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.memory.fields import is_mutable
from memtool.memory.memory import Fields, FieldValue
from memtool.memory.schema import Problem
from memtool.search.drift_questions import find_bases
from memtool.store import config as config_file
from memtool.store import messages, sightings, toml
from memtool.store.context import Context
from memtool.store.edits import FileEdit, commit_edits
from memtool.store.sources import find_present_commits
from memtool.upkeep import steps
from memtool.value import Value, first_few, format_count

AGAIN = "memtool migrate --commit"
RECORDING = "record what was seen of the code"


class FormatStep(Value):
    """A step to the next format. It must not change files that already have this or a later format.

    `keys` returns new values for a memory's keys, None to drop one. `place` maps a path below the
    memory directory to a new one; the file name must stay. `settings` returns the new text of the
    settings file. Each is None if there is nothing of its kind to change.
    """

    name: str
    keys: Callable[[Fields], Mapping[str, FieldValue | None]] | None = None
    place: Callable[[Fields, str], str] | None = None
    settings: Callable[[str], str] | None = None


STEPS: tuple[FormatStep, ...] = ()
"""The steps in order: the first leads from format 1 to 2, so there is one less than formats."""


class StepDone(Value):
    """A step, and the files that it changes, under their earlier names."""

    name: str
    files: tuple[str, ...]


class MigrationPlan(Value):
    """The old and new format of a tree, the steps between them, and the edits of files.

    `edits` is empty if there is nothing to do.
    """

    old: int
    new: int
    steps: tuple[StepDone, ...] = ()
    edits: tuple[FileEdit, ...] = ()


class _MemoryFile:
    """A memory file during the steps of a migration."""

    def __init__(self, path: str, data: bytes) -> None:
        self.old_path = self.path = path
        self.old = self.data = data

    def take(self, step: FormatStep, directory: str) -> bool:
        """Apply a step, and return whether it changed the file."""
        before = self.path, self.data
        if step.keys or step.place:
            fields = document.read_fields(self.data, self.path)
            if step.keys:
                new_fields = step.keys(fields)
                new = {key: value for key, value in new_fields.items() if fields.get(key) != value}
                if not all(map(is_mutable, new)):
                    raise ValueError(f"the step {step.name} would change the claim: {sorted(new)}")
                self.data = document.edit(self.data, new, self.path) if new else self.data
            if step.place:
                moved = step.place(fields, self.path.removeprefix(f"{directory}/"))
                if moved.rpartition("/")[2] != self.path.rpartition("/")[2]:
                    raise ValueError(f"the step {step.name} would rename {self.path}")
                self.path = f"{directory}/{moved}"
        return (self.path, self.data) != before

    def build_edits(self) -> list[FileEdit]:
        if self.path != self.old_path:
            return [FileEdit(self.path, None, self.data), FileEdit(self.old_path, self.old, None)]
        return [] if self.data == self.old else [FileEdit(self.path, self.old, self.data)]


def parse_goal(context: Context, to: int) -> int:
    """Check the requested format and return it; 0 is the newest.

    Raises:
        MemtoolError: it is unknown or older than the tree's, or the tree is newer than this
            memtool.
    """
    context.project.refuse_newer()
    old = context.settings.format
    if not 0 <= to <= config_file.FORMAT:
        newest = config_file.FORMAT
        formats = "format 1" if newest == 1 else f"formats 1 to {newest}"
        raise MemtoolError(
            f"cannot migrate: unknown format {to}; this memtool has {formats}",
            hint=installation.upgrade_command() if to > newest else "memtool migrate",
            code="unknown-format",
        )
    if 0 < to < old:
        raise MemtoolError(
            f"cannot migrate: the tree has format {old}, and there is no way back to {to}",
            hint=f"find the commit to revert: git log --grep '{messages.FORMAT}:'",
            code="unknown-format",
        )
    return to or config_file.FORMAT


def plan(context: Context, to: int) -> MigrationPlan:
    """Plan the steps that bring the worktree's memories to a format, and their edits.

    Raises:
        MemtoolError: the format is unknown, or a file cannot be read and so not migrated.
    """
    old, new = context.settings.format, parse_goal(context, to)
    files = _read(context)
    path = context.project.config_path
    before = read_bytes(context.repository.top, path)
    text = (before or b"").decode()
    done = []
    for number, step in enumerate(STEPS[: new - 1], 1):
        names = [file.path for file in files]
        try:
            edited = [
                name
                for name, file in zip(names, files, strict=True)
                if file.take(step, context.directory)
            ]
        except document.Unreadable as error:
            raise _unreadable_error(error.problems[0]) from None
        if number >= old:
            text = toml.set_key(
                step.settings(text) if step.settings else text, "format", number + 1
            )
            edited = [path, *edited]
        if edited:  # earlier steps change files too if a branch without them was merged
            done.append(StepDone(step.name, tuple(edited)))
    recorded = _record(context, files)
    if recorded:
        done.append(StepDone(RECORDING, recorded))
    edits = [edit for file in files for edit in file.build_edits()]
    edits += [FileEdit(path, before, text.encode())] if new > old else []
    _refuse_broken(edits, config_file.parse(text.encode(), path).categories)
    # Create new files before removing old ones; write the format number last.
    edits.sort(key=lambda edit: (edit.path == path, edit.after is None, edit.path))
    return MigrationPlan(old, new, tuple(done), tuple(edits))


def _record(context: Context, files: Sequence[_MemoryFile]) -> tuple[str, ...]:
    """Record the code as it was checked, for memories whose commit is here; return their paths."""
    tree = context.tree()
    witness = context.provenance_reader(tree)
    if witness.basis is None:
        return ()
    by_path = {file.old_path: file for file in files}
    records = [
        record
        for record in tree.records
        if record.path in by_path and not record.memory.table("checked").get("saw")
    ]
    since = find_bases(records, witness, None)
    here = find_present_commits(context.repository, {base.commit for base in since.values()} - {""})
    wanted = [record for record in records if since[record.path].commit in here]
    lines = sightings.render_commit_sightings(
        context.repository, [(since[record.path].commit, record.memory) for record in wanted]
    )
    paths = []
    for record, line in zip(wanted, lines, strict=True):
        if line:
            file = by_path[record.path]
            checked = {**record.memory.table("checked"), "saw": line}
            file.data = document.edit(file.data, {"checked": checked}, file.path)
            paths.append(record.path)
    return tuple(paths)


def _read(context: Context) -> list[_MemoryFile]:
    memory_files = []
    for entry, data in context.snapshot().read():
        if isinstance(data, Problem):
            raise _unreadable_error(data)
        memory_files.append(_MemoryFile(entry.path, data))
    return sorted(memory_files, key=lambda file: file.path)


def _unreadable_error(problem: Problem) -> MemtoolError:
    return MemtoolError(
        f"cannot migrate: {problem.path} cannot be read: {problem.message}",
        hint="memtool check\nfix the file, and commit it",
        code="unreadable",
    )


def _refuse_broken(edits: Collection[FileEdit], categories: Collection[str]) -> None:
    """Raise MemtoolError if a memory could not be read after the edits."""
    for edit in edits:
        if edit.after is None or not edit.path.endswith(".md"):
            continue
        try:
            document.read(edit.after, edit.path, categories)
        except document.Unreadable as error:
            raise _unreadable_error(error.problems[0]) from None


def refuse_dirty(context: Context) -> None:
    """Raise MemtoolError if the memory directory differs from HEAD, or is not fully checked out."""
    git, directory = context.repository.git, context.directory
    changed = [path for _letters, path in git.status(directory)]
    if changed:
        raise MemtoolError(
            f"cannot migrate: {first_few(changed, 1)} has uncommitted changes",
            hint=f"git add {directory} && git commit\nthen {AGAIN}",
            code="dirty",
        )
    if any(entry.is_skipped for entry in git.ls_files(directory)):
        raise MemtoolError(
            f"cannot migrate: this sparse checkout lacks memories of {directory}",
            hint=f"git sparse-checkout add {directory}\nthen {AGAIN}",
            code="not-here",
        )


def migrate(context: Context, to: int) -> tuple[MigrationPlan, str | None]:
    """Migrate the memories to a format, in one commit; return the plan and the commit.

    Raises:
        MemtoolError: as `plan`; or something is not committed, a merge is unfinished, or git or the
            disk refuses. All files are then unchanged.
    """
    repository = context.repository
    steps.refuse_unready(repository, has_branches=False)
    with steps.hold_lock(repository):
        steps.recover_before(context)
        context.enter(repository)  # recovery may have changed the settings
        refuse_dirty(context)
        migration = plan(context, to)
        if not migration.edits:
            return migration, None
        summary = f"migrate to format {migration.new}"
        if migration.old == migration.new and {step.name for step in migration.steps} == {
            RECORDING
        }:
            summary = RECORDING
        body = "".join(
            f"{step.name}: {format_count(len(step.files), 'file')}\n" for step in migration.steps
        )
        trailers = {messages.FORMAT: str(migration.new)}
        done = commit_edits(context, migration.edits, summary, body, trailers, AGAIN)
    return migration, done
