"""Standing: which memories count as current when trust is weighed, and what disputes them.

Lineage alone would let a file that nobody committed silence a decision of the team. So a memory
supersedes another here only where it has the trust for it; otherwise both stand, disputed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

from memtool.errors import MemtoolError
from memtool.memory.lineage import Lineage
from memtool.store.provenance import TRUST_LEVELS, Origin, resolve_trusted
from memtool.store.snapshot import Snapshot, of_commit
from memtool.store.tree import Record, Tree
from memtool.value import Value

Origins = Callable[[Iterable[Record]], dict[str, Origin]]
"""Asks git where records come from; the answer is by path."""

NAMED_MOST = 3
"""Ids in one warning; a fork of a hundred must not fill the block."""

RANK: dict[str, int] = {level: rank for rank, level in enumerate(TRUST_LEVELS)}


class Standing(Value):
    """The lineage that trust leaves of a tree. The tables map an id to sorted ids.

    `forks` holds the heads of each fork that a memory is a head of, `disputes` both sides of each
    superseding that was not granted, `unproven` what a memory replaces although the trusted ref
    does not hold it yet.
    """

    lineage: Lineage
    forks: dict[str, tuple[tuple[str, ...], ...]]
    disputes: dict[str, tuple[str, ...]]
    unproven: dict[str, tuple[str, ...]]

    def rivals(self, id_: str) -> tuple[str, ...]:
        """Return the other heads of the forks that a memory is in."""
        return tuple(
            sorted({other for heads in self.forks.get(id_, ()) for other in heads} - {id_})
        )

    def conflicts(self, id_: str) -> tuple[str, ...]:
        """Return all memories that contradict one."""
        return tuple(sorted({*self.rivals(id_), *self.disputes.get(id_, ())}))

    def others(self, id_: str) -> tuple[str, ...]:
        """Return the memories that are shown beside one: those that its warnings name."""
        return (*self.rivals(id_)[:NAMED_MOST], *self.disputes.get(id_, ())[:NAMED_MOST])

    def marks(self, id_: str) -> tuple[str, ...]:
        """Return the warnings that a memory is shown with."""
        table = (
            ("[CONFLICT] with {}: they replace the same memory", self.rivals(id_)),
            ("[DISPUTED] with {}: the newer one is less trusted", self.disputes.get(id_)),
            ("[UNPROVEN] replaces {}, not yet in the trusted ref", self.unproven.get(id_)),
        )
        return tuple(text.format(_named(ids)) for text, ids in table if ids)


def standing(tree: Tree, trusted_ref: str, least: str, origins: Origins) -> Standing:
    """Weigh every superseding of a tree by trust; `least` is what a memory needs to be injected.

    A memory that is only local, or below `least`, does not replace one that has more trust.
    """
    newer = [record for record in tree.by_id.values() if tree.lineage.supersedes[record.id]]
    if not newer:
        return Standing(tree.lineage, {}, {}, {})
    trust, has_trusted_ref = _levels(tree, trusted_ref)
    if least == TRUST_LEVELS[-1]:
        trust |= {path: origin.trust for path, origin in origins(newer).items()}
    refused: dict[str, set[str]] = {}
    unproven: dict[str, tuple[str, ...]] = {}
    for record in newer:
        own = trust[record.path]
        olds = {old: trust[tree.by_id[old].path] for old in record.memory.supersedes
                if old in tree.by_id}  # fmt: skip
        lost = {old for old, level in olds.items() if _outranks(level, own, least)}
        if lost:
            refused[record.id] = lost
        if olds.keys() - lost and has_trusted_ref and own == "committed":
            unproven[record.id] = tuple(sorted(olds.keys() - lost))
    lineage = _without(tree, refused)
    forks = _forks({tree.lineage, lineage})
    return Standing(lineage, forks, _disputes(lineage, forks, refused), unproven)


def _outranks(old: str, new: str, least: str) -> bool:
    """Tell whether a memory keeps its place although another one, of less trust, supersedes it."""
    return RANK[old] > RANK[new] and (RANK[new] == 0 or RANK[new] < RANK[least])


def _forks(lineages: Iterable[Lineage]) -> dict[str, tuple[tuple[str, ...], ...]]:
    groups = {fork.heads for lineage in lineages for fork in lineage.forks()}
    found: dict[str, tuple[tuple[str, ...], ...]] = {}
    for heads in sorted(groups):
        for head in heads:
            found[head] = (*found.get(head, ()), heads)
    return found


def _disputes(
    lineage: Lineage,
    forks: dict[str, tuple[tuple[str, ...], ...]],
    refused: dict[str, set[str]],
) -> dict[str, tuple[str, ...]]:
    """Return who disputes whom: the heads on both sides of what was refused, forks aside."""
    sides: dict[str, set[str]] = {}
    edges = sorted((new, old) for new, olds in refused.items() for old in olds)
    for new, old in edges:
        for one, other in product(lineage.heads_of(new), lineage.heads_of(old)):
            if one != other and not any(other in heads for heads in forks.get(one, ())):
                sides.setdefault(one, set()).add(other)
                sides.setdefault(other, set()).add(one)
    return {one: tuple(sorted(others)) for one, others in sides.items()}


def _without(tree: Tree, refused: dict[str, set[str]]) -> Lineage:
    """Return the lineage of a tree without some of its edges."""
    if not refused:
        return tree.lineage
    memories = []
    for record in tree.by_id.values():
        memory = record.memory
        if record.id in refused:
            kept = tuple(old for old in memory.supersedes if old not in refused[record.id])
            memory = memory.with_fields(supersedes=kept)
        memories.append(memory)
    return Lineage(memories)


def _named(ids: tuple[str, ...]) -> str:
    more = f" and {len(ids) - NAMED_MOST} more" if len(ids) > NAMED_MOST else ""
    return ", ".join(ids[:NAMED_MOST]) + more


def _levels(tree: Tree, trusted_ref: str) -> tuple[dict[str, str], bool]:
    """Return the trust of every record by path, signatures aside, and whether a ref is trusted.

    Unlike `provenance.origins` it walks no history, so it costs the same in an old repository.
    """
    taken = tree.snapshot
    trusted_at = resolve_trusted(taken.repository, trusted_ref)
    head = taken if taken.kind == "commit" else _commit(taken, "HEAD")
    blobs = _blobs(head)
    trusted = _blobs(_commit(taken, trusted_at) if trusted_at else None)
    levels = {}
    for record in tree.records:
        level = "local"
        if blobs.get(record.path) == record.oid:
            level = "trusted" if trusted.get(record.path) == record.oid else "committed"
        levels[record.path] = level
    return levels, bool(trusted_at)


def _commit(taken: Snapshot, revision: str) -> Snapshot | None:
    """Return the memory files of a revision; None before the first commit."""
    try:
        return of_commit(taken.repository, taken.directory, revision)
    except MemtoolError as error:
        if error.code == "unknown-revision":
            return None
        raise


def _blobs(taken: Snapshot | None) -> dict[str, str]:
    return {entry.path: entry.oid for entry in taken.entries} if taken else {}
