"""The memories before and after a change, and whether the code that they name is still there.

Before is the commit that the change goes into, after is the same with the change (see
`store.change`). A memory that the change does not touch is read once.
"""

from __future__ import annotations

import posixpath
from functools import partial

from memtool.index import index
from memtool.memory import document
from memtool.memory.drift import BROKEN, summarize
from memtool.redaction.mask import Mask
from memtool.search import picks
from memtool.search.features import list_governed_paths
from memtool.search.scope import build_drift_witness
from memtool.store.commit_files import CommitFiles
from memtool.store.files import matches_or_contains
from memtool.store.tree import Record, read_tree
from memtool.value import cached_property, first_few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memtool.index.reader import Catalog
    from memtool.memory.drift import Drift
    from memtool.search.drift import DriftWitness
    from memtool.search.features import Moves
    from memtool.store.change import Change, Memories
    from memtool.store.context import Context
    from memtool.store.tree import ReadTree, Tree

MAX_NAMED_CONFLICTS = 3
"""Memories that both sides changed in what they say, and that the note names."""


class ChangeTrees:
    """The memories before and after a change, with witnesses of what happened to their files.

    Notes on files that cannot be read or merged go to the context.
    """

    def __init__(self, context: Context, change: Change) -> None:
        self._context = context
        self.change = change
        snapshot = context.snapshot(change.target)
        self.before: Catalog = index.open_files(context, snapshot)
        context.note_problems(self.before)
        is_newer = context.settings.is_newer
        self._memories = change.lay_over_memories(snapshot, knows_keys=not is_newer)
        self.after: ReadTree = self._read_after(self._memories)
        context.note_problems(self.after)
        if self._memories.conflicts:
            paths = first_few(self._memories.conflicts, MAX_NAMED_CONFLICTS)
            context.notes.append(f"changed on both sides in what it says, and not merged: {paths}")

    def _read_after(self, memories: Memories) -> ReadTree:
        mask, categories = Mask(self._context.settings), self._context.settings.categories
        records = {
            record.path: record
            for record in self.before.records
            if record.path not in memories.touched
        }
        oids = {entry.path: entry.oid for entry in memories.snapshot.entries}
        for path, data in memories.merged.items():
            try:
                memory = document.read(data, path, categories)
            except document.Unreadable:  # it is read as the change has it
                continue
            records[path] = Record(mask.read(memory, data), path, oids[path])
        return read_tree(memories.snapshot, categories, None, mask, records)

    def is_touched(self, record: Record) -> bool:
        """Return whether the change adds, edits or moves the file of a memory."""
        return record.path in self._memories.touched

    def read_text(self, record: Record) -> bytes:
        """Return the bytes of a memory's file, before or after the change."""
        merged = self._memories.merged.get(record.path)
        if merged is not None and self.after.get(record.id) == record:
            return merged
        (data,) = self.change.repository.git.blobs([record.oid], document.MAX_BYTES)
        return data

    # The code that memories name

    @cached_property
    def drift_before(self) -> DriftWitness:
        """What happened to the files of memories, as of the target."""
        reader = partial(self._context.provenance_reader, self.before)
        return build_drift_witness(self.before, reader)

    @cached_property
    def drift_after(self) -> DriftAfter:
        """What happened to the files of memories, as of the target with the change."""
        return DriftAfter(self._context, self)

    def find_breaks(self, ids: Iterable[str]) -> dict[str, str]:
        """Return what the change removes of the code that memories name, by their ids."""
        ids = list(ids)
        broken = self.drift_before.find_broken(
            self.before[id_] for id_ in ids if id_ in self.before
        )
        records = [self.after[id_] for id_ in ids if id_ in self.after and id_ not in broken]
        drifts = self.drift_after.find(records)
        return {
            record.id: summarize(drifts[record.path])
            for record in records
            if record.path in drifts and drifts[record.path].level == BROKEN
        }


class DriftAfter:
    """What happened to the files of memories, as of the target with the change.

    Only memories that name a file of the change, or that the change confirms, are judged anew.
    """

    def __init__(self, context: Context, trees: ChangeTrees) -> None:
        self._trees = trees
        self._context = context
        self._before = {record.path: record for record in trees.before.records}
        self._paths = trees.change.paths
        self._above = {above for path in self._paths for above in picks.find_parents(path)}

    @cached_property
    def _files(self) -> CommitFiles:
        change = self._trees.change
        return CommitFiles(change.repository, change.head, listing=change.lay_over_files())

    @cached_property
    def _witness_of_target(self) -> DriftWitness:
        return self._build_witness(self._trees.before)

    @cached_property
    def _witness_of_change(self) -> DriftWitness:
        return self._build_witness(self._trees.after)

    def _build_witness(self, tree: Tree) -> DriftWitness:
        """Return a witness that takes the commits of memories from the history of their tree."""
        reader = partial(self._context.provenance_reader, tree)
        return build_drift_witness(tree, reader, files=lambda: self._files)

    def __call__(self, record: Record) -> Drift | None:
        """Return what happened to the files of a memory, None if it names none."""
        return self.find((record,)).get(record.path)

    def find(self, records: Iterable[Record]) -> dict[str, Drift]:
        """Return what happened to the files of memories at once, by path."""
        own, same = [], []
        for record in records:
            if list_governed_paths(record):
                old = self._before.get(record.path)
                is_same = old is not None and _is_judged_alike(old, record)
                if old is not None and is_same:
                    same.append(old)
                else:
                    own.append(record)
        drifts = self._trees.drift_before.find(same)
        again = [record for record in same if self._names_touched(record, drifts)]
        drifts |= self._witness_of_target.find(again) if again else {}
        drifts |= self._witness_of_change.find(own) if own else {}
        return drifts

    def find_moves(self) -> Moves:
        """Return the renamed files, folders and globs that memories name."""
        return self._trees.drift_before.find_moves()

    def _names_touched(self, record: Record, drifts: Mapping[str, Drift]) -> bool:
        """Return whether a memory names a file of the change, by its old name or today's."""
        names = list_governed_paths(record)
        if (drift := drifts.get(record.path)) is not None:
            names += [file.now for file in drift.files] + [move.now for move in drift.moves]
        for name in names:
            path = posixpath.normpath(name)
            if path in self._above:
                return True
            if ("*" in path or "?" in path) and any(
                matches_or_contains(path, touched) for touched in self._paths
            ):
                return True
        return False


def _is_judged_alike(old: Record, new: Record) -> bool:
    """Return whether two versions of a memory have the same drift."""
    return old.oid == new.oid or (
        old.memory.table("checked") == new.memory.table("checked")
        and list_governed_paths(old) == list_governed_paths(new)
    )
