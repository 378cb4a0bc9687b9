"""Ahead: shows an older branch what the trusted branch has added or changed since.

Memories that only the trusted branch has are shown next to those of the worktree, and memories that
it has replaced or withdrawn are marked. No memory of the branch is hidden: on a release branch the
old decision is right.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.index import revision
from memtool.index.reader import LeafReader, combine_parts
from memtool.memory import visibility
from memtool.memory.lineage import Lineage, LineageRow
from memtool.memory.trust import TRUST_LEVELS
from memtool.store import ahead, provenance
from memtool.store.tree import Overlay, Record
from memtool.value import Value, cached_property, first_few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memtool.index.reader import Catalog
    from memtool.memory.trust import Origin
    from memtool.store.ahead import Delta
    from memtool.store.context import Context

KEY = "inject.ahead"
MARK = "mark"
MAX_NAMED = 3
"""Memories that one notice lists."""
_ENDS = {"deleted": "FORGOTTEN", "deprecated": "DEPRECATED"}
"""The word for each status in a notice."""


def add_ahead(context: Context, tree: Catalog, now: int) -> Catalog:
    """Return a worktree's tree with the trusted branch as an overlay, often unchanged."""
    if context.settings.text(KEY) != MARK or tree.is_partial or tree.location.kind != "worktree":
        return tree
    try:
        basis = context.provenance_reader(tree).basis
    except MemtoolError as error:
        if error.code != "config":
            raise
        return tree  # the trusted ref does not exist: a verb that needs it reports it
    if basis is None or basis.trusted_head in ("", basis.head):
        return tree
    is_hurried = context.caller.deadline is not None
    delta = ahead.find_delta(basis, is_cached=context.is_cached, is_hurried=is_hurried)
    part = None
    if delta.changes:
        part = _open_versions(context, tree, delta, is_patient=not is_hurried)
    if part is None:
        is_possible = not context.repository.is_partial
        context.caller.is_unfinished |= is_possible and (delta.is_late or bool(delta.changes))
        return tree
    return _Comparison(context, tree, delta, part, basis.trusted_head, now).overlaid


class AheadCounts(Value):
    """The trusted branch's changes since this branch began, by ids, sorted.

    `changed` are memories of this branch that it has replaced or withdrawn, of `changed_types`;
    `added` are those that this branch lacks. `unknown` is the reason why git cannot tell, else
    empty.
    """

    changed: tuple[str, ...] = ()
    changed_types: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    unknown: str = ""


def count_ahead(context: Context, tree: Catalog, now: int) -> AheadCounts:
    """Count the changes on the trusted branch. Raises MemtoolError if there is no such ref."""
    if context.settings.text(KEY) != MARK or tree.location.kind != "worktree":
        return AheadCounts()
    basis = context.provenance_reader(tree).basis
    if basis is None:
        return AheadCounts()
    delta = ahead.find_delta(basis, is_cached=context.is_cached)
    part = _open_versions(context, tree, delta) if delta.changes else None
    if part is None:
        return AheadCounts(unknown=delta.unknown)
    return _Comparison(context, tree, delta, part, basis.trusted_head, now).counts


def _open_versions(
    context: Context, tree: Catalog, delta: Delta, *, is_patient: bool = True
) -> LeafReader | None:
    """Return the index of the trusted branch's versions, with numbers after those of a tree.

    Unless patient, it returns None if it takes long: many versions are not indexed yet, or the
    clone is partial, so that git has to list its objects.
    """
    first = max((part.first + part.memories.size for part in tree.index.parts), default=0)
    stamps = [(path, row.oid) for path, row in delta.changes.items() if row.oid]
    if context.repository.is_partial:
        if not is_patient:
            return None
        here = context.repository.git.list_objects()
        stamps = [stamp for stamp in stamps if stamp[1] in here]
    is_built = is_patient or len(stamps) <= ahead.MAX_HURRIED_FILES
    return revision.open_small(
        context, stamps, lambda: _read_versions(context, stamps), first, is_built=is_built
    )


class _Comparison:
    """Compares one tree with the memories that the trusted branch has changed."""

    def __init__(
        self,
        context: Context,
        tree: Catalog,
        delta: Delta,
        part: LeafReader,
        trusted_at: str,
        now: int,
    ) -> None:
        self._context = context
        self._tree = tree
        self._delta = delta
        self._trusted_at = trusted_at
        self._now = now
        self._ref = provenance.format_trusted_ref(
            context.repository, context.project.trust_settings.text("trust.ref")
        )
        self._part = part
        self._rows = part.memories

    @cached_property
    def _ids(self) -> dict[int, str]:
        """The ids of these versions, by number."""
        numbers = self._rows.select_numbers()
        self._rows.load(numbers)
        return {number: self._rows.id(number) for number in numbers}

    @cached_property
    def _lineage(self) -> Lineage:
        """The lineage of these versions."""
        rows = []
        for _number, id_, is_proposed, olds in self._rows.links:
            rows.append(LineageRow(id_, *(((), olds) if is_proposed else (olds, ()))))
        return Lineage(rows, self._ids.values())

    @cached_property
    def _added(self) -> dict[str, int]:
        """Memories that only the trusted branch has, and has not replaced, by id."""
        is_head_here, is_head_there = self._tree.lineage.is_head, self._lineage.is_head
        return {
            id_: number
            for number, id_ in self._ids.items()
            if is_head_here(id_) and is_head_there(id_) and id_ not in self._tree
        }

    def _record(self, number: int) -> Record:
        return self._rows.record(number)

    @cached_property
    def _replaced(self) -> dict[str, tuple[str, ...]]:
        """Ids of the new heads of each memory that only the trusted branch replaced, by id."""
        replaced = {}
        for old in self._lineage.superseded_by:
            heads = tuple(id_ for id_ in self._lineage.find_heads(old) if id_ in self._added)
            if heads and old in self._tree:
                replaced[old] = heads
        return replaced

    @cached_property
    def _ended(self) -> dict[str, str]:
        """Notices on memories that the trusted branch has withdrawn, by the path here."""
        ended = {}
        for number, id_ in self._ids.items():
            status = self._rows.kind(number).status
            here = self._tree.get(id_) if status in _ENDS else None
            if here is not None and self._is_in_use(here):
                reason = self._record(number).memory.table("deleted").get("reason", "")
                why = f": {reason}" if reason else ""
                ended[here.path] = f"{_ENDS[status]} ON {self._ref}{why}"
        ids = frozenset(self._ids.values())
        for path in (path for path, row in self._delta.changes.items() if not row.oid):
            here = self._find(path)
            if here is not None and here.id not in ids and self._is_in_use(here):
                ended[path] = f"REMOVED ON {self._ref}"
        return ended

    def _find(self, path: str) -> Record | None:
        """Return the memory at a path of the tree."""
        number = self._tree.index.find_by_path(path)
        return None if number is None else self._tree.record(number)

    def _is_in_use(self, record: Record) -> bool:
        """Return whether a memory is in use here."""
        return record.memory.status not in visibility.OUT_OF_USE and visibility.is_alive(
            record.memory, self._now, self._tree.categories
        )

    @cached_property
    def overlaid(self) -> Catalog:
        """The tree with the memories and notices of the trusted branch."""
        if not self._added and not self._ended:
            return self._tree
        added = frozenset(self._added.values())
        part = LeafReader(
            self._part.postings,
            self._rows,
            self._part.first,
            frozenset(self._ids) - added,
            is_replacing=False,
        )
        paths = {self._rows.path(number) for number in added}
        parts = [*self._tree.index.parts, *([part] if added else [])]
        catalog = combine_parts(
            self._tree, parts, lambda path: path in paths or self._tree.is_unchanged(path)
        )
        catalog.overlay = Overlay(
            self._trusted_at,
            {path: self._delta.changes[path].cells for path in sorted(paths)},
        )
        newer, notices = self._collect_notices(catalog)
        catalog.overlay = catalog.overlay.replace(notices=notices, newer=newer)
        return catalog

    def _collect_notices(
        self, catalog: Catalog
    ) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
        """Return the newer ids of each memory, and the notices by path."""
        newer: dict[str, tuple[str, ...]] = {}
        notices = dict(self._ended)
        replaces: dict[str, list[str]] = {}
        for old, heads in sorted(self._replaced.items()):
            shown = tuple(id_ for id_ in heads if self._is_shown(self._record(self._added[id_])))
            for id_ in shown:
                replaces.setdefault(id_, []).append(old)
            # The head is another memory if this branch replaced it.
            for own in self._tree.lineage.find_heads(old):
                record = self._tree.get(own)
                if record is None or own in self._added:
                    continue
                named = self._name_all(catalog, heads)
                text = f"NEWER ON {self._ref}: {named}"
                if own != old:
                    text = f"ALSO REPLACED ON {self._ref}: {old} by {named}"
                notices[record.path] = text
                newer[own] = tuple(dict.fromkeys((*newer.get(own, ()), *shown)))
        for id_, number in self._added.items():
            olds = first_few(replaces.get(id_, ()), MAX_NAMED)
            note = f"on {self._ref}, not in this branch yet"
            notices[self._rows.path(number)] = f"{note}; it replaces {olds}" if olds else note
        return newer, notices

    def _is_shown(self, record: Record) -> bool:
        """Return whether a memory of the trusted branch is current knowledge for an agent."""
        labels = self._context.project.strict_settings.private_labels
        categories = self._tree.categories
        return not visibility.find_objection(record.memory, (), labels, self._now, categories)

    def _name_all(self, catalog: Catalog, ids: Sequence[str]) -> str:
        """List memories, with their titles if these may be shown."""
        records = [self._record(self._added[id_]) for id_ in ids[:MAX_NAMED]]
        min_trust = self._context.project.strict_settings.text("inject.trust")
        origins: Mapping[str, Origin] = {}
        if min_trust == TRUST_LEVELS[-1]:
            origins = self._context.provenance_reader(catalog).origins(records)
        texts = []
        for record in records:
            is_shown = self._is_shown(record) and (
                not origins or origins[record.path].trust == min_trust
            )
            texts.append(f"{record.id} {record.memory.title}" if is_shown else record.id)
        hidden = len(ids) - MAX_NAMED
        return "; ".join(texts) + (f"; and {hidden} more" if hidden > 0 else "")

    @property
    def counts(self) -> AheadCounts:
        """The ids of memories in use on only one of the two branches."""
        records = filter(
            None, [*map(self._find, self._ended), *map(self._tree.get, self._replaced)]
        )
        is_head = self._tree.lineage.is_head
        changed = {
            record.id: record
            for record in records
            if is_head(record.id) and self._is_in_use(record)
        }
        added = (id_ for id_, n in self._added.items() if self._is_shown(self._record(n)))
        types = {record.memory.type for record in changed.values()}
        return AheadCounts(tuple(sorted(changed)), tuple(sorted(types)), tuple(sorted(added)))


def _read_versions(context: Context, stamps: Sequence[tuple[str, str]]) -> list[Record]:
    """Read versions of memory files, masked like those of the index; invalid ones are left out."""
    from memtool.redaction.mask import Mask  # `re`: only what the trusted branch has just changed
    from memtool.store import versions

    mask = Mask(context.settings)
    read = versions.read_blobs(context.repository, stamps, context.settings.categories)
    return [
        Record(mask.memory(version.memory), path, oid)
        for (path, oid), version in sorted(read.items())
        if version.memory is not None
    ]
