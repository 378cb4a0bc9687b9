"""The effective lineage: what supersedes what, weighed by trust.

Lineage alone would let a file that nobody committed silence a decision of the team. So a memory
supersedes another here only where it has the trust for it; otherwise both stand, disputed. What
nobody has confirmed replaces nothing either: it stands beside what it proposes to replace.
"""

from __future__ import annotations

from memtool.memory.fields import DEFAULT_CATEGORIES
from memtool.memory.trust import TRUST_LEVELS
from memtool.search.features import Facts
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from memtool.memory.fields import Category
    from memtool.memory.lineage import Lineage
    from memtool.store.provenance import Witness
    from memtool.store.tree import Record, Tree
    from memtool.store.trust_rules import TrustRule

    Gaps = Callable[[Record], str]

NAMED_MOST = 3
"""Ids in one warning; a fork of a hundred must not fill the block."""

RANK: dict[str, int] = {level: rank for rank, level in enumerate(TRUST_LEVELS)}


class EffectiveLineage(Value):
    """The lineage that trust leaves of a tree. The tables map an id to sorted ids.

    `forks` holds the heads of each fork that a memory is a head of, `disputes` both sides of each
    superseding that was not granted, `unproven` what a memory replaces although the trusted ref
    does not hold it yet. `gaps` says what a memory lacks to fulfil its trust rule: then it
    replaces nothing. `proposed` and `proposals` are those of `Facts`. All of it follows from the
    files and from git: what memories state is no part of it,
    see `search.conflicts`.
    """

    lineage: Lineage
    forks: dict[str, tuple[tuple[str, ...], ...]]
    disputes: dict[str, tuple[str, ...]]
    unproven: dict[str, tuple[str, ...]]
    gaps: Gaps | None = None
    below: frozenset[str] = frozenset()
    """What does not fulfil its rule, or that of what it would replace, and so replaces nothing."""
    proposed: Mapping[str, tuple[str, ...]] = {}
    proposals: Mapping[str, tuple[str, ...]] = {}

    def rivals(self, id_: str) -> tuple[str, ...]:
        """Return the other heads of the forks that a memory is in."""
        return tuple(sorted(set().union(*self.forks.get(id_, ())) - {id_}))

    def conflicts(self, id_: str) -> tuple[str, ...]:
        """Return all memories that conflict with one: both cannot hold for long."""
        return tuple(sorted(set().union(*self._against(id_))))

    def others(self, id_: str) -> tuple[str, ...]:
        """Return the memories that are shown beside one: those that its warnings name."""
        return tuple(other for ids in self._against(id_) for other in ids[:NAMED_MOST])

    def _against(self, id_: str) -> tuple[tuple[str, ...], ...]:
        tables = (self.disputes, self.proposed, self.proposals)
        return self.rivals(id_), *(table.get(id_, ()) for table in tables)

    def marks(self, id_: str) -> tuple[str, ...]:
        """Return the warnings that a memory is shown with."""
        disputed = self.disputes.get(id_)
        is_below = disputed is not None and not self.below.isdisjoint({id_, *disputed})
        why = "not proven as a rule wants it" if is_below else "less trusted"
        table = (
            ("[CONFLICT] with {}: they replace the same memory", self.rivals(id_)),
            (f"[DISPUTED] with {{}}: the newer one is {why}", disputed),
            ("[UNPROVEN] replaces {}, not yet in the trusted ref", self.unproven.get(id_)),
            ("[PROPOSED] to replace {}, until then both hold", self.proposed.get(id_)),
            ("[PROPOSED] {} would replace it; nobody has confirmed that", self.proposals.get(id_)),
        )
        return tuple(text.format(_named(ids)) for text, ids in table if ids)


def best_level(witness: Witness) -> str:
    """Return the most trust that an unsigned memory can have: more if there is a trusted ref."""
    has_trusted_ref = witness.basis is not None and bool(witness.basis.trusted_at)
    return TRUST_LEVELS[2 if has_trusted_ref else 1]


def compute_effective_lineage(
    tree: Tree,
    witness: Witness,
    least: str,
    now: int,
    categories: Mapping[str, Category] = DEFAULT_CATEGORIES,
    rules: Sequence[TrustRule] = (),
) -> EffectiveLineage:
    """Weigh every superseding of a tree by trust; `least` is what a memory needs to be injected.

    A memory that is only local, or below `least`, does not replace one that has more trust. What
    was committed with the same `supersedes` counts as committed, whatever else of the file was
    changed since, such as its status. By the `rules` of the trusted ref a memory replaces another
    only if it fulfils its own rule and that of the other.
    """
    gaps = _gaps(witness, rules) if rules else None
    edges = _edges(tree, witness, categories)
    below = _below_rules(tree, witness, edges, rules) if rules else frozenset()
    refused = dict.fromkeys(one for one in edges if one in below or _outranks(one, least))
    lineage = _without(tree.lineage, refused)
    forks = _forks({tree.lineage, lineage})
    disputes = _disputes(lineage, forks, refused)
    granted = [edge for edge in edges if edge not in refused]
    is_unproven = granted and best_level(witness) == TRUST_LEVELS[2]
    unproven = _unproven(granted) if is_unproven else {}
    facts = Facts(tree, now, dict, lineage)
    return EffectiveLineage(
        lineage,
        forks,
        disputes,
        unproven,
        gaps,
        frozenset(edge.new for edge in below),
        facts.proposed,
        facts.proposals,
    )


class _Edge(Value):
    """One memory replaces another one: their ids, and how far the replacing and the old one count.

    `level` is the trust of the superseding, which may be more than that of the file as it is.
    """

    new: str
    old: str
    level: str
    old_level: str


def _edges(tree: Tree, witness: Witness, categories: Collection[str]) -> list[_Edge]:
    """Return what replaces what in a tree, with their trust, by id."""
    replacing = {new: olds for new, olds in tree.lineage.supersedes.items() if olds}
    if not replacing:  # most projects' first months: git need not be asked
        return []
    named = replacing.keys() | {old for olds in replacing.values() for old in olds}
    records = [tree[id_] for id_ in sorted(named) if id_ in tree]
    origins = witness.origins(records)
    trust = {record.id: origins[record.path].trust for record in records}
    best = RANK[best_level(witness)]
    weak = [one for one in records if one.id in replacing and RANK[trust[one.id]] < best]
    committed = _committed_edges(tree, witness, weak, categories)
    found = []
    for new, olds in sorted(replacing.items()):
        for old in dict.fromkeys(old for old in olds if old in trust):
            levels = trust[new], committed.get((new, old), trust[new])
            found.append(_Edge(new, old, max(levels, key=RANK.__getitem__), trust[old]))
    return found


def _below_rules(
    tree: Tree, witness: Witness, edges: Sequence[_Edge], rules: Sequence[TrustRule]
) -> frozenset[_Edge]:
    """Return what a trust rule refuses: that of the new memory, or that of what it replaces."""
    from memtool.store.trust_rules import rule_of

    origins = witness.origins([tree[edge.new] for edge in edges])

    def is_refused(edge: _Edge) -> bool:
        new, old = tree[edge.new], tree[edge.old]
        wanted = (rule_of(rules, one.memory, one.path) for one in (new, old))
        return any(rule is not None and rule.gap(origins[new.path]) for rule in wanted)

    return frozenset(filter(is_refused, edges))


def _outranks(edge: _Edge, least: str) -> bool:
    """Tell whether a memory keeps its place although another one, of less trust, supersedes it."""
    rank = RANK[edge.level]
    return RANK[edge.old_level] > rank and (rank == 0 or rank < RANK[least])


def _without(lineage: Lineage, refused: Iterable[_Edge]) -> Lineage:
    olds: dict[str, set[str]] = {}
    for edge in refused:
        olds.setdefault(edge.new, set()).add(edge.old)
    return lineage.without(olds) if olds else lineage


def _unproven(granted: Iterable[_Edge]) -> dict[str, tuple[str, ...]]:
    """Return what memories replace by a commit that the trusted ref does not hold yet."""
    found: dict[str, list[str]] = {}
    for edge in granted:
        if edge.level == "committed":
            found.setdefault(edge.new, []).append(edge.old)
    return {new: tuple(sorted(olds)) for new, olds in found.items()}


def _gaps(witness: Witness, rules: Sequence[TrustRule]) -> Gaps:
    """Return what says what a memory lacks to fulfil its trust rule."""
    from memtool.store import trust_rules  # most projects have none

    known: dict[str, str] = {}

    def gap(record: Record) -> str:
        if record.path not in known:
            rule = trust_rules.rule_of(rules, record.memory, record.path)
            origin = None if rule is None else witness.origins([record])[record.path]
            known[record.path] = "" if rule is None or origin is None else rule.gap(origin)
        return known[record.path]

    return gap


def structural(tree: Tree) -> EffectiveLineage:
    """Return the standing that lineage alone gives, which is the same in every clone of a tree."""
    return EffectiveLineage(tree.lineage, _forks({tree.lineage}), {}, {})


def _committed_edges(
    tree: Tree, witness: Witness, records: list[Record], categories: Collection[str]
) -> dict[tuple[str, str], str]:
    """Return the trust of each superseding that stands in a commit at the place of a record."""
    versions = witness.versions(records)
    levels: dict[str, dict[str, str]] = {}
    for record in records:
        for oid, level in versions.get(record.path, {}).items():
            if oid != record.oid:
                levels.setdefault(oid, {})[record.path] = level
    found: dict[tuple[str, str], str] = {}
    if not levels:
        return found
    from memtool.memory import document  # only edits that are not committed or published pay

    oids = sorted(levels)
    blobs = tree.location.repository.git.blobs(oids, document.MAX_BYTES)
    for oid, data in zip(oids, blobs, strict=True):
        for path, level in levels[oid].items():
            try:
                memory = document.read(data, path, categories)
            except document.Unreadable:
                continue
            for old in memory.replaces:
                before = found.get((memory.id, old), level)
                found[memory.id, old] = max(before, level, key=RANK.__getitem__)
    return found


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
    refused: Iterable[_Edge],
) -> dict[str, tuple[str, ...]]:
    """Return who disputes whom: the heads on both sides of what was refused, forks aside."""
    sides: dict[str, set[str]] = {}
    for edge in refused:
        pairs = [
            (one, other)
            for one in lineage.heads_of(edge.new)
            for other in lineage.heads_of(edge.old)
        ]
        for one, other in pairs:
            if one != other and not any(other in heads for heads in forks.get(one, ())):
                sides.setdefault(one, set()).add(other)
                sides.setdefault(other, set()).add(one)
    return {one: tuple(sorted(others)) for one, others in sides.items()}


def _named(ids: tuple[str, ...]) -> str:
    more = f" and {len(ids) - NAMED_MOST} more" if len(ids) > NAMED_MOST else ""
    return ", ".join(ids[:NAMED_MOST]) + more
