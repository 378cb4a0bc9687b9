"""Renames: give memories the new paths of renamed files, in `files`.

The paths of a confirmed memory are part of its claim, so a new memory with the new paths replaces
it, as in `merge`: the same in every clone, and due for review when the old one was. It copies the
record of the code that the old one saw, so that drift is still detected. A candidate is changed in
place. Memories that have drifted, or whose files have only probably moved, are left to people, who
have to correct them anyway.
"""

from __future__ import annotations

import posixpath

from memtool.memory import ids, sighting
from memtool.memory.memory import Memory
from memtool.memory.schema import parse_source
from memtool.memory.sighting import COMMIT_DIGITS
from memtool.memory.subjects import find_names, find_subjects
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.upkeep import merge
from memtool.upkeep.steps import UpkeepStep, build_change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memtool.memory.drift import Drift, Move
    from memtool.store.tree import Record, Tree
    from memtool.upkeep.inputs import PlanInputs

_STATUSES = frozenset({"candidate", "confirmed", "pinned"})


def build_steps(tree: Tree, inputs: PlanInputs) -> Iterator[UpkeepStep]:
    """Yield a step for each active memory that names a path which git renamed, by id."""
    for record in inputs.find_living(tree):
        drift = inputs.renamed.get(record.path)
        moves = () if drift is None else drift.renames
        is_free = record.path not in inputs.frozen and record.id not in inputs.drifted
        if (
            drift is None
            or drift.renames != drift.moves
            or not is_free
            or record.memory.status not in _STATUSES
        ):
            continue
        paths = replace_paths(record.memory, moves)
        if paths == record.memory.items("files"):
            continue
        why = "; ".join(map(_describe, moves))
        if record.memory.status == "candidate":
            yield build_change("rename", record, why, files=paths)
            continue
        made = _build_successor(record, tree, paths, drift, inputs)
        if made.id not in tree:  # otherwise it was created before and taken back
            path = f"{inputs.directory}/{ids.make_path(made)}"
            yield UpkeepStep("rename", made.id, made.title, path, f"{record.id}: {why}", {}, made)


def replace_paths(memory: Memory, moves: Sequence[Move]) -> tuple[str, ...]:
    """Return `files` with the new paths, followed by those of renamed sources.

    An old path stays if files still exist there.
    """
    today = {move.path: move for move in moves}
    paths: list[str] = []
    for path in memory.items("files"):
        move = today.pop(posixpath.normpath(path), None)
        if move is None or move.is_taken:
            paths.append(path)
        if move is not None:
            paths.append(move.now)
    paths += [move.now for move in today.values()]
    return tuple(dict.fromkeys(paths))


def _describe(move: Move) -> str:
    where = f" (renamed in {move.commit[:SHORT_ID_DIGITS]})" if move.commit else ""
    also = ", and other files are at the old path" if move.is_taken else ""
    return f"{move.path} is now {move.now}{where}{also}"


def _build_successor(
    record: Record, tree: Tree, paths: tuple[str, ...], drift: Drift, inputs: PlanInputs
) -> Memory:
    """Build the memory with the new paths that replaces another."""
    old = record.memory
    sources = tuple(_pin_source(text, drift) for text in old.items("source"))
    made = merge.build_successor([old], tree, paths).with_fields(source=sources)
    table = old.table("checked")
    checked = {key: table[key] for key in ("at", "by") if key in table}
    saw = _rename_sighting(old, made, inputs.seen.get(record.path, ""), drift.renames)
    return made.with_fields(checked=checked | ({"saw": saw} if saw else {}) or None)


def _pin_source(text: str, drift: Drift) -> str:
    """Return a file source with the commit at which it was checked, if the file was renamed."""
    source = parse_source(text)
    is_renamed = source.kind == "file" and not source.commit
    names = {move.path for move in drift.renames}
    if is_renamed and posixpath.normpath(source.target) in names and drift.since:
        return f"{text}@{drift.since[:COMMIT_DIGITS]}"
    return text


def _rename_sighting(old: Memory, made: Memory, line: str, moves: Sequence[Move]) -> str:
    """Return the record of the code that was seen, with the new paths; empty if there is none."""
    try:
        seen = sighting.parse(line)
    except ValueError:
        return ""
    today = {move.path: move.now for move in moves}
    files = {today.get(path, path): file for path, file in seen.files.items()}
    is_named_alike = find_names(find_subjects(old)) == find_names(find_subjects(made))
    return sighting.render(
        seen.replace(files=files, names=seen.names if is_named_alike else None, files_digest="")
    )
