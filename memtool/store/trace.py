"""Traces: under which names history knows a memory, what it replaced and what replaced it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

from memtool.errors import MemtoolError
from memtool.memory.changes import Change, Version, is_renamed, stem
from memtool.memory.lineage import Lineage
from memtool.store import versions
from memtool.store.tree import Tree
from memtool.store.versions import Stamp, stamps_of
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.history import Touch  # importing it costs nine interpreter starts

Walk: TypeAlias = "list[tuple[str, tuple[Touch, ...]]]"
"""Commits, newest first, with the memory files that each one changed."""


class Trace(Value):
    """A memory through history: its id, and every id of it and of its lineage, old names too."""

    id: str
    is_removed: bool
    names: frozenset[str]


class _Seen(Value):
    """What history knows of names: the newest version of those that are not in the tree."""

    stamps: dict[str, Stamp]
    suspects: tuple[Touch, ...]
    """Files that git found renamed to another id."""


def trace(
    tree: Tree, walk: Walk, pending: Iterable[Change], categories: Collection[str], wanted: str
) -> Trace:
    """Find a memory in a tree or in history, and all ids that belong to its story.

    `walk` is the whole history; `pending` what is not committed. Only files of removed and of
    renamed memories are read.

    Raises:
        MemtoolError: neither the tree nor history knows the id, or several ids begin so.
    """
    seen = _seen(tree, walk)
    id_ = _find(tree, seen.stamps, wanted)
    read = versions.of_blobs(
        tree.snapshot.repository,
        [*seen.stamps.values(), *stamps_of(seen.suspects)],
        categories,
    )
    renamed = _renamed(seen.suspects, read, pending)
    gone = [read[stamp].memory for name, stamp in seen.stamps.items() if name not in tree.by_id]
    lineages = (tree.lineage, Lineage(memory for memory in gone if memory is not None))
    own = _reach(id_, renamed)
    known = sorted(name for name in own if name in tree.by_id)
    return Trace(
        id=known[0] if known and id_ not in tree.by_id else id_,
        is_removed=not known and not _is_broken(tree, id_),
        names=frozenset(
            _reach(id_, renamed, *(lineage.supersedes for lineage in lineages))
            | _reach(id_, renamed, *(lineage.superseded_by for lineage in lineages))
        ),
    )


def _seen(tree: Tree, walk: Walk) -> _Seen:
    present = {stem(record.path) for record in tree.records}
    stamps: dict[str, Stamp] = {}
    suspects: list[Touch] = []
    for _commit, touches in walk:
        for touch in touches:
            new, old = stem(touch.path), stem(touch.old_path)
            if new not in present and (touch.oid or touch.old_oid):
                newest = (touch.path, touch.oid) if touch.oid else (touch.old_path, touch.old_oid)
                stamps.setdefault(new, newest)
            if new != old and touch.old_oid:
                suspects.append(touch)
                if old not in present:
                    stamps.setdefault(old, (touch.old_path, touch.old_oid))
    return _Seen(stamps, tuple(suspects))


def _find(tree: Tree, stamps: Mapping[str, Stamp], wanted: str) -> str:
    """Return the id of a memory of the tree, or of one that only history knows."""
    if wanted in stamps:
        return wanted
    try:
        return tree.find(wanted).id
    except MemtoolError as error:
        if error.code != "unknown-id" or not wanted:
            raise
        name = stem(wanted)
        matches = sorted(id_ for id_ in stamps if id_.startswith(name))
        if name not in matches and len(matches) != 1:
            raise
        return name if name in matches else matches[0]


def _is_broken(tree: Tree, id_: str) -> bool:
    return any(stem(problem.path) == id_ for problem in tree.problems)


def _renamed(
    suspects: Iterable[Touch], read: Mapping[Stamp, Version], pending: Iterable[Change]
) -> dict[str, set[str]]:
    """Return which ids are names of one memory, in both directions."""
    pairs: list[tuple[str, str]] = []
    for touch in suspects:
        old, new = read.get((touch.old_path, touch.old_oid)), read.get((touch.path, touch.oid))
        if old and new and is_renamed(old, new):
            pairs.append((old.id, new.id))
    for change in pending:
        old_id = change.details.get("from_id")
        if isinstance(old_id, str):
            pairs.append((old_id, change.id))
    names: dict[str, set[str]] = {}
    for one, other in pairs:
        names.setdefault(one, set()).add(other)
        names.setdefault(other, set()).add(one)
    return names


def _reach(start: str, *edges: Mapping[str, Iterable[str]]) -> set[str]:
    """Return all ids that edges lead to, from one on."""
    found = {start}
    todo = [start]
    while todo:
        id_ = todo.pop()
        near = {one for known in edges for one in known.get(id_, ())} - found
        found |= near
        todo += near
    return found
