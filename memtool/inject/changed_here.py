"""Local changes: memories whose version in the worktree differs from the one at the trusted level.

A local edit of a status, a date or a body, or a deletion, must not silence a team memory without a
notice. For each memory of the trusted ref that differs in the worktree, three blobs are compared:
here, there, and at the common ancestor. A difference from the ancestor was made here; any other
change came to the trusted ref since. For memories added there, see `search/ahead.py`.

If the lowest allowed trust is `local`, a person's own change takes effect: a changed memory is
marked, and a notice names the silenced ones. A file that cannot be read does not count as a change;
the version of the trusted ref is used. If it is `committed` or more, the version of that level
replaces the local one, with the same mark. At any level this also holds for a memory that a trust
rule requires to be in the trusted ref: an unproven version replaces nothing.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.index import revision
from memtool.index.reader import Catalog, LeafReader, StoredCatalog, combine_parts
from memtool.memory.trust import TRUST_LEVELS
from memtool.store import ahead, cache, kept, provenance, versions
from memtool.store.snapshot import is_memory_path
from memtool.store.tree import Record
from memtool.value import Value, first_few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from memtool.store.config import Config
    from memtool.store.context import Context
    from memtool.store.provenance import Basis, ProvenanceReader

KIND = "changed 1"
MAX_NAMED_MEMORIES = 5
"""Memories that a sentence names, of those that the worktree took out of use."""
EDITED = "edited on this branch, not merged yet"
"""The note on a memory that is shown as it was changed here."""
_ABSENT = "-"


class Difference(Value):
    """A memory of a commit that differs in the worktree: its path and three blobs.

    `here` is empty if the worktree does not have it, `base` if the common ancestor does not.
    """

    path: str
    here: str
    there: str
    base: str

    @property
    def is_from_here(self) -> bool:
        """Return whether the worktree changed it, and not the commit alone."""
        return self.here != self.base


class LevelView(Value):
    """A tree at a level of trust, and the reader of its provenance.

    `marks` has notes on changed memories, by path. Memories that the worktree takes out of use
    are at the paths `silenced`; the tree `unsilenced` has them as in the trusted ref.
    """

    tree: Catalog
    witness: ProvenanceReader
    marks: Mapping[str, str] = {}
    silenced: Collection[str] = ()
    trusted: Catalog | None = None
    ref: str = ""


def build_view(
    context: Context, tree: Catalog, witness: ProvenanceReader, least: str, now: int
) -> LevelView:
    """Return the view of a worktree at the level `min_trust`; a revision is unchanged.

    So is a worktree at another moment, for which `min_trust` is empty.
    """
    basis = witness.basis
    if tree.location.kind != "worktree" or basis is None or not least or tree.is_partial:
        return LevelView(tree, witness)
    level = TRUST_LEVELS.index(least)
    ref = provenance.format_trusted_ref(context.repository, witness.trusted_ref)
    try:
        apart = (
            _compute_differences(context, tree, basis, basis.trusted_head)
            if basis.trusted_head
            else []
        )
        ruled = _find_ruled(context, apart) if level < 2 else {}
        apart = [difference for difference in apart if difference.path not in ruled]
        if level == 0:
            broken = _find_broken(tree)
            apart = [difference for difference in apart if difference.path not in broken]
            view = _view_as_is(context, tree, witness, apart, ref, now)
            view = _with_whole(context, view, tree, broken, basis, ref)
        elif level == 1:
            marks = {difference.path: EDITED for difference in apart if difference.is_from_here}
            apart = _compute_differences(context, tree, basis, basis.head)
            apart = [difference for difference in apart if difference.path not in ruled]
            view = _view_as_in(context, LevelView(tree, witness, marks), apart, basis.head, "HEAD")
        else:
            apart = _without_added(context, witness, apart)
            view = _view_as_in(context, LevelView(tree, witness), apart, basis.trusted_head, ref)
    except MemtoolError:
        if not context.repository.is_partial:
            raise
        return LevelView(tree, witness)  # a partial clone does not have the other commit
    marks = dict.fromkeys(ruled, _note_version(ref, is_from_here=True))
    return _with_versions(context, view, ruled, basis.trusted_head, marks)


def _without_added(
    context: Context, witness: ProvenanceReader, apart: list[Difference]
) -> list[Difference]:
    """Return differences without memories that were added to the trusted ref since both parted."""
    if not apart or witness.basis is None:
        return apart
    delta = ahead.find_delta(
        witness.basis, is_cached=context.is_cached, is_hurried=witness.is_hurried
    )
    return [
        difference
        for difference in apart
        if difference.here or difference.base or difference.path not in delta.changes
    ]


def _view_as_in(
    context: Context, view: LevelView, apart: Sequence[Difference], commit: str, name: str
) -> LevelView:
    """Return a view in which what differs is as a commit of some name has it."""
    records = _read(context, apart)
    marks = {
        difference.path: _note_version(name, is_from_here=difference.is_from_here)
        for difference in apart
        if difference.path in records
    }
    return _with_versions(context, view, records, commit, marks)


def _find_ruled(context: Context, apart: Iterable[Difference]) -> dict[str, Record]:
    """Return the trusted versions of memories that no local change may replace, by path.

    These are the memories for which a trust rule requires more than a commit.
    """
    rules = context.project.trust_rules
    if not rules:
        return {}
    from memtool.store import trust_rules  # most projects have none

    ruled_records = {}
    for path, record in _read(
        context, [difference for difference in apart if difference.is_from_here]
    ).items():
        rule = trust_rules.find_rule(rules, record.memory, path)
        if rule is not None and TRUST_LEVELS.index(rule.require) > 1:
            ruled_records[path] = record
    return ruled_records


def _with_versions(
    context: Context,
    view: LevelView,
    records: Mapping[str, Record],
    commit: str,
    marks: Mapping[str, str],
) -> LevelView:
    """Return a view in which the versions of a commit replace those at their paths, marked."""
    if not records:
        return view
    return view.replace(
        tree=with_versions(view.tree, records.values(), context.settings),
        witness=view.witness.with_commit(commit, records),
        marks={**view.marks, **marks},
    )


def with_versions(tree: Catalog, records: Iterable[Record], settings: Config) -> StoredCatalog:
    """Return a tree in which other versions replace those at their paths."""
    by_path = {record.path: record for record in records}
    parts = []
    for part in tree.index.parts:
        numbers = map(part.memories.find_by_path, by_path)
        dead = part.dead.union(number for number in numbers if number is not None)
        parts.append(LeafReader(part.postings, part.memories, part.first, dead))
    first = parts[-1].first + parts[-1].memories.size
    parts.append(
        revision.build_in_memory([by_path[path] for path in sorted(by_path)], settings, first)
    )
    return combine_parts(tree, parts, lambda path: path in by_path or tree.is_unchanged(path))


def _find_broken(tree: Catalog) -> frozenset[str]:
    """Return the paths of the worktree at which a memory should be and cannot be read."""
    paths = {problem.path for problem in tree.problems}
    return frozenset(path for path in paths if tree.index.find_by_path(path) is None)


def _with_whole(
    context: Context,
    view: LevelView,
    tree: Catalog,
    broken: frozenset[str],
    basis: Basis,
    ref: str,
) -> LevelView:
    """Return a view with unreadable files replaced by the version of the trusted ref, else of HEAD.

    An unfinished merge, or a typo in an editor, must not end a memory.
    """
    whole_paths = set(broken)
    for commit, name in ((basis.trusted_head, ref), (basis.head, "HEAD")):
        if whole_paths and commit:
            apart = _compute_differences(context, tree, basis, commit)
            records = _read(
                context, [difference for difference in apart if difference.path in whole_paths]
            )
            mark = f"as {name} has it, since its file here cannot be read"
            view = _with_versions(context, view, records, commit, dict.fromkeys(records, mark))
            whole_paths -= records.keys()
    return view


def _view_as_is(
    context: Context,
    tree: Catalog,
    witness: ProvenanceReader,
    apart: list[Difference],
    ref: str,
    now: int,
) -> LevelView:
    """Return the view in which every local change takes effect, with the memories it silences."""
    changed = [difference for difference in apart if difference.is_from_here]
    if not changed:
        return LevelView(tree, witness)
    marks = dict.fromkeys((difference.path for difference in changed), EDITED)
    from memtool.memory.visibility import is_alive  # most worktrees change nothing

    categories = context.settings.categories
    gone = []
    for difference in changed:
        number = tree.index.find_by_path(difference.path)
        memory = None if number is None else tree.record(number).memory
        if memory is None or memory.status == "deprecated" or not is_alive(memory, now, categories):
            gone.append(difference)
    ended = {
        path: record
        for path, record in _read(context, gone).items()
        if record.memory.status != "deprecated" and is_alive(record.memory, now, categories)
    }
    there = with_versions(tree, ended.values(), context.settings) if ended else None
    return LevelView(tree, witness, marks, ended.keys(), there, ref)


def find_silenced(view: LevelView, records: Iterable[Record]) -> tuple[str, ...]:
    """Return the ids of matching memories that the worktree took out of use."""
    return tuple(sorted({record.id for record in records if record.path in view.silenced}))


def override_notice(ids: Sequence[str], ref: str) -> str:
    """Return the notice about memories that the worktree took out of use."""
    return (
        f"not shown, since changed here and not yet in {ref}: {first_few(ids, MAX_NAMED_MEMORIES)}"
    )


def _note_version(ref: str, *, is_from_here: bool) -> str:
    """Return the note on a memory that is shown in the version of a commit."""
    return f"as {ref} has it, {'edited here' if is_from_here else 'not on this branch yet'}"


def _read(context: Context, apart: Iterable[Difference]) -> dict[str, Record]:
    """Return the versions of a commit as masked records, by path, without invalid files."""
    stamps = {(difference.path, difference.there) for difference in apart}
    if not stamps:
        return {}
    from memtool.redaction.mask import Mask  # imports `re`: only if the worktree differs

    mask = Mask(context.settings)
    records = versions.read_blobs(context.repository, stamps, context.settings.categories)
    return {
        path: Record(mask.memory(version.memory), path, oid)
        for (path, oid), version in sorted(records.items())
        if version.memory is not None
    }


def _compute_differences(
    context: Context, tree: Catalog, basis: Basis, commit: str
) -> list[Difference]:
    """Return the memories that differ between a commit and a tree, by path.

    The comparison of each pair of states is cached.
    """
    parts = [commit, basis.head, context.directory]
    for part in tree.index.parts:
        parts += [part.memories.version, ",".join(map(str, sorted(part.dead)))]
    compared, cache_dir = cache.digest(*parts).encode(), context.repository.cache_dir
    if context.is_cached:
        rows = kept.read(cache_dir, KIND, compared)
        if rows is not None:
            return [_unpack(row) for row in rows.split(b"\0")[:-1]]
    differences = _find_differences(context, tree, basis.head, commit)
    if context.is_cached:
        kept.write(
            cache_dir, KIND, compared, b"".join(_pack(difference) for difference in differences)
        )
    return differences


def _find_differences(context: Context, tree: Catalog, head: str, commit: str) -> list[Difference]:
    """Compute the differences between a commit and a tree; only differing rows are parsed.

    Most rows are, to the byte, as the index has stored them, so they are compared as sets.
    """
    repository, directory = context.repository, context.directory
    git = repository.git
    listing = git.run("ls-tree", "-r", "-z", "--full-tree", commit, "--", directory)
    rows = set(listing.split(b"\0")[:-1])
    rows.difference_update(
        b"100644 blob %b\t%b" % (oid.hex().encode(), path)
        for _number, path, oid in tree.index.read_stamps()
    )
    there: dict[str, str] = {}
    for row in sorted(rows):
        meta, _tab, path = os.fsdecode(row).partition("\t")
        if is_memory_path(path, directory):
            there[path] = meta.rpartition(" ")[2]
    here = {path: _find_blob(tree, path) for path in there}
    apart = [path for path in sorted(there) if here[path] != there[path]]
    base = there
    if apart and head != commit:
        parted = git.line("merge-base", head, commit, allowed=(0, 1))
        limit = apart if len(apart) <= provenance.MAX_LISTED_PATHS else [directory]
        base = provenance.list_blobs(repository, parted, *limit) if parted else {}
    return [Difference(path, here[path], there[path], base.get(path, "")) for path in apart]


def _find_blob(tree: Catalog, path: str) -> str:
    """Return the blob of the memory at a path; empty if there is none. Raises CorruptCache."""
    number = tree.index.find_by_path(path)
    if number is None:
        return ""
    part, local = tree.index.find_part(number)
    return part.memories.oid(local)


def _pack(difference: Difference) -> bytes:
    blobs = " ".join(
        blob or _ABSENT for blob in (difference.here, difference.there, difference.base)
    )
    return blobs.encode() + b" " + os.fsencode(difference.path) + b"\0"


def _unpack(row: bytes) -> Difference:
    *blobs, path = row.split(b" ", 3)
    here, there, base = (blob.decode().removeprefix(_ABSENT) for blob in blobs)
    return Difference(os.fsdecode(path), here, there, base)
