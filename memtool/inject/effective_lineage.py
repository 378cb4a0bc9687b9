"""The effective lineage: which memory supersedes which, weighed by trust.

With lineage alone an uncommitted file could silence a team decision. So a memory supersedes another
only if it has enough trust; otherwise both are kept, as disputed. An unconfirmed memory replaces
nothing either: it is shown next to the memory that it proposes to replace.
"""

from __future__ import annotations

from memtool.inject.remarks import MAX_NAMED_IDS, name_ids
from memtool.memory.fields import DEFAULT_CATEGORIES
from memtool.memory.trust import TRUST_LEVELS
from memtool.search.features import Facts
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from memtool.memory.fields import Category
    from memtool.memory.lineage import Lineage
    from memtool.store.provenance import ProvenanceReader
    from memtool.store.tree import Record, Tree
    from memtool.store.trust_rules import TrustRule

    Gaps = Callable[[Record], str]
    Shorten = Callable[[str], str]
    """Returns the short form of an id."""

RANK: dict[str, int] = {level: rank for rank, level in enumerate(TRUST_LEVELS)}


class EffectiveLineage(Value):
    """The supersessions of a tree that trust allows. The tables map an id to sorted ids.

    `forks` has the heads of each fork of a memory, `ancestors` what the heads of a fork supersede.
    `disputes` has both sides of each refused supersession, `challengers` the newer side alone.
    `unproven` has the ids that a memory replaces although the trusted ref does not have it yet.
    `gaps` is what a memory lacks to fulfil its trust rule; it then replaces nothing.
    `proposed` and `proposals` are those of `Facts`. All of it follows from the files and from git,
    not from the text of memories; for that see `search.conflicts`.
    """

    lineage: Lineage
    forks: dict[str, tuple[tuple[str, ...], ...]]
    disputes: dict[str, tuple[str, ...]]
    unproven: dict[str, tuple[str, ...]]
    gaps: Gaps | None = None
    below: frozenset[str] = frozenset()
    """Memories that break their own rule, or the rule of a memory that they would replace."""
    proposed: Mapping[str, tuple[str, ...]] = {}
    proposals: Mapping[str, tuple[str, ...]] = {}
    ancestors: Mapping[tuple[str, ...], str] = {}
    challengers: Mapping[str, tuple[str, ...]] = {}

    def find_rivals(self, id_: str) -> tuple[str, ...]:
        """Return the other heads of the forks that a memory is in."""
        return tuple(sorted(set().union(*self.forks.get(id_, ())) - {id_}))

    def find_conflicts(self, id_: str) -> tuple[str, ...]:
        """Return all memories that conflict with one: both cannot hold for long."""
        return tuple(sorted(set().union(*self._find_against(id_))))

    def find_shown_rivals(self, id_: str) -> tuple[str, ...]:
        """Return the memories shown next to one: those that its warnings name."""
        return tuple(other for ids in self._find_against(id_) for other in ids[:MAX_NAMED_IDS])

    def _find_against(self, id_: str) -> tuple[tuple[str, ...], ...]:
        tables = (self.disputes, self.proposed, self.proposals)
        return self.find_rivals(id_), *(table.get(id_, ()) for table in tables)

    def list_marks(self, id_: str, shorten: Shorten) -> tuple[str, ...]:
        """Return the lines about refused supersessions of a memory, in both directions."""
        disputed = self.disputes.get(id_, ())
        is_below = not self.below.isdisjoint({id_, *disputed})
        lacks = "not proven as its rule wants" if is_below else "not merged"
        newer = [other for other in disputed if other in self.challengers.get(id_, ())]
        older = [other for other in disputed if other not in newer]
        table = (
            ("CONFLICT: {} is newer but {}", newer),
            ("CONFLICT: it is newer than {} but {}", older),
        )
        return tuple(
            text.format(name_ids([*map(shorten, ids)]), lacks) for text, ids in table if ids
        )

    def list_notes(self, id_: str, shorten: Shorten) -> tuple[str, ...]:
        """Return the notes on supersessions of a memory that are not settled yet."""
        table = (
            ("supersedes {} on this branch, not merged yet", self.unproven.get(id_)),
            ("would supersede {}", self.proposed.get(id_)),
            ("would be superseded by {}, not confirmed", self.proposals.get(id_)),
        )
        return tuple(text.format(name_ids([*map(shorten, ids)])) for text, ids in table if ids)


def find_best_level(witness: ProvenanceReader) -> str:
    """Return the most trust that an unsigned memory can have: more if there is a trusted ref."""
    has_trusted_ref = witness.basis is not None and bool(witness.basis.trusted_head)
    return TRUST_LEVELS[2 if has_trusted_ref else 1]


def compute_effective_lineage(
    tree: Tree,
    witness: ProvenanceReader,
    least: str,
    now: int,
    categories: Mapping[str, Category] = DEFAULT_CATEGORIES,
    rules: Sequence[TrustRule] = (),
) -> EffectiveLineage:
    """Weigh every supersession of a tree by trust; `min_trust` is required for injection.

    A memory that is only local, or below `min_trust`, does not replace one with more trust. If the
    same `supersedes` was committed, it counts as committed, even if other keys, such as the status,
    have changed since. By the `rules` of the trusted ref a memory replaces another only if it
    fulfils its own rule and that of the other.
    """
    gaps = _build_gaps(witness, rules) if rules else None
    edges = _find_edges(tree, witness, categories)
    below = _find_refused(tree, witness, edges, rules) if rules else frozenset()
    refused = dict.fromkeys(edge for edge in edges if edge in below or _outranks(edge, least))
    lineage = _without(tree.lineage, refused)
    forks = _find_forks({tree.lineage, lineage})
    challenges = _find_challenges(lineage, forks, refused)
    granted = [edge for edge in edges if edge not in refused]
    is_unproven = granted and find_best_level(witness) == TRUST_LEVELS[2]
    unproven = _find_unproven(granted) if is_unproven else {}
    facts = Facts(tree, now, dict, lineage)
    return EffectiveLineage(
        lineage,
        forks,
        _group([*challenges, *((old, new) for new, old in challenges)]),
        unproven,
        gaps,
        frozenset(edge.new for edge in below),
        facts.proposed,
        facts.proposals,
        _find_ancestors({tree.lineage, lineage}),
        _group((old, new) for new, old in challenges),
    )


class _Edge(Value):
    """A supersession: both ids, and the trust ranks of both memories.

    `level` is the trust of the supersession itself, which may be higher than that of the file now.
    """

    new: str
    old: str
    level: str
    old_level: str


def _find_edges(tree: Tree, witness: ProvenanceReader, categories: Collection[str]) -> list[_Edge]:
    """Return what replaces what in a tree, with their trust, by id."""
    replacing = {new: olds for new, olds in tree.lineage.supersedes.items() if olds}
    if not replacing:  # most projects' first months: git need not be asked
        return []
    named = replacing.keys() | {old for olds in replacing.values() for old in olds}
    records = [tree[id_] for id_ in sorted(named) if id_ in tree]
    origins = witness.origins(records)
    trust = {record.id: origins[record.path].trust for record in records}
    best = RANK[find_best_level(witness)]
    weak = [
        record for record in records if record.id in replacing and RANK[trust[record.id]] < best
    ]
    committed = _committed_edge_trust(tree, witness, weak, categories)
    edges = []
    for new, olds in sorted(replacing.items()):
        for old in dict.fromkeys(old for old in olds if old in trust):
            levels = trust[new], committed.get((new, old), trust[new])
            edges.append(_Edge(new, old, max(levels, key=RANK.__getitem__), trust[old]))
    return edges


def _find_refused(
    tree: Tree, witness: ProvenanceReader, edges: Sequence[_Edge], rules: Sequence[TrustRule]
) -> frozenset[_Edge]:
    """Return the supersessions that a trust rule of the new or the old memory refuses."""
    from memtool.store.trust_rules import find_rule

    origins = witness.origins([tree[edge.new] for edge in edges])

    def is_refused(edge: _Edge) -> bool:
        new, old = tree[edge.new], tree[edge.old]
        wanted = (find_rule(rules, record.memory, record.path) for record in (new, old))
        return any(rule is not None and rule.find_gap(origins[new.path]) for rule in wanted)

    return frozenset(filter(is_refused, edges))


def _outranks(edge: _Edge, least: str) -> bool:
    """Return whether a memory is kept although another one, of less trust, supersedes it."""
    rank = RANK[edge.level]
    return RANK[edge.old_level] > rank and (rank == 0 or rank < RANK[least])


def _without(lineage: Lineage, refused: Iterable[_Edge]) -> Lineage:
    olds: dict[str, set[str]] = {}
    for edge in refused:
        olds.setdefault(edge.new, set()).add(edge.old)
    return lineage.without(olds) if olds else lineage


def _find_unproven(granted: Iterable[_Edge]) -> dict[str, tuple[str, ...]]:
    """Return what memories replace by a commit that the trusted ref does not hold yet."""
    unproven: dict[str, list[str]] = {}
    for edge in granted:
        if edge.level == "committed":
            unproven.setdefault(edge.new, []).append(edge.old)
    return {new: tuple(sorted(olds)) for new, olds in unproven.items()}


def _build_gaps(witness: ProvenanceReader, rules: Sequence[TrustRule]) -> Gaps:
    """Return a function that finds what a memory lacks to fulfil its trust rule."""
    from memtool.store import trust_rules  # most projects have none

    origins: dict[str, str] = {}

    def find_gap(record: Record) -> str:
        if record.path not in origins:
            rule = trust_rules.find_rule(rules, record.memory, record.path)
            origin = None if rule is None else witness.origins([record])[record.path]
            origins[record.path] = "" if rule is None or origin is None else rule.find_gap(origin)
        return origins[record.path]

    return find_gap


def from_structure(tree: Tree) -> EffectiveLineage:
    """Return the lineage without trust, which is the same in every clone of a tree."""
    forks, ancestors = _find_forks({tree.lineage}), _find_ancestors({tree.lineage})
    return EffectiveLineage(tree.lineage, forks, {}, {}, ancestors=ancestors)


def _committed_edge_trust(
    tree: Tree, witness: ProvenanceReader, records: list[Record], categories: Collection[str]
) -> dict[tuple[str, str], str]:
    """Return the trust of each supersession that is committed at the path of a record."""
    versions = witness.versions(records)
    levels: dict[str, dict[str, str]] = {}
    for record in records:
        for oid, level in versions.get(record.path, {}).items():
            if oid != record.oid:
                levels.setdefault(oid, {})[record.path] = level
    commits: dict[tuple[str, str], str] = {}
    if not levels:
        return commits
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
                before = commits.get((memory.id, old), level)
                commits[memory.id, old] = max(before, level, key=RANK.__getitem__)
    return commits


def _find_forks(lineages: Iterable[Lineage]) -> dict[str, tuple[tuple[str, ...], ...]]:
    groups = {fork.heads for lineage in lineages for fork in lineage.find_forks()}
    forks: dict[str, tuple[tuple[str, ...], ...]] = {}
    for heads in sorted(groups):
        for head in heads:
            forks[head] = (*forks.get(head, ()), heads)
    return forks


def _find_ancestors(lineages: Iterable[Lineage]) -> dict[tuple[str, ...], str]:
    """Return what the heads of each fork supersede, the first by id."""
    forks = [fork for lineage in lineages for fork in lineage.find_forks()]
    forks.sort(key=lambda fork: fork.ancestor, reverse=True)
    return {fork.heads: fork.ancestor for fork in forks}


def _find_challenges(
    lineage: Lineage,
    forks: dict[str, tuple[tuple[str, ...], ...]],
    refused: Iterable[_Edge],
) -> list[tuple[str, str]]:
    """Return the heads on both sides of refused supersessions, the newer first, without forks."""
    pairs = [
        (head, other)
        for edge in refused
        for head in lineage.find_heads(edge.new)
        for other in lineage.find_heads(edge.old)
    ]
    return [
        (id_, other)
        for id_, other in pairs
        if id_ != other and not any(other in heads for heads in forks.get(id_, ()))
    ]


def _group(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the second values of pairs by the first, sorted."""
    groups: dict[str, set[str]] = {}
    for first, second in pairs:
        groups.setdefault(first, set()).add(second)
    return {first: tuple(sorted(seconds)) for first, seconds in groups.items()}
