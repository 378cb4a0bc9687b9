"""Changed here: where the worktree has another version of a memory than the level that is trusted.

A local edit of a status, a date or a body, or a deletion, must not silence a memory of the team
without a word. Of each memory that the trusted ref holds and the worktree has not so, three blobs
are known: here, there, and where both parted. What differs from that last one was changed here;
the rest came to the trusted ref since.

Where the least trust is `local`, a person's own change takes effect: what is shown is marked, and
what it silences is told beside the answer. A file that cannot be read is no such change: the
memory stands as the trusted ref has it. Where it is `committed` or more, the version of that
level replaces the one here, with the same mark. So it does at any level for a memory that a trust
rule wants in the trusted ref: what is not proven replaces nothing.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.index import revision
from memtool.index.reader import Catalog, IndexReader, LeafReader, StoredCatalog
from memtool.memory.trust import TRUST_LEVELS
from memtool.store import cache, kept, provenance, versions
from memtool.store.snapshot import is_memory_path
from memtool.store.tree import Record
from memtool.value import Value, first_few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from memtool.store.config import Config
    from memtool.store.context import Context
    from memtool.store.provenance import Basis, Witness

KIND = "changed 1"
MOST_TOLD = 5
"""Memories that a sentence names, of those that the worktree took out of use."""
_ABSENT = "-"


class Difference(Value):
    """A memory that a commit holds and the worktree has not so: its path and three blobs.

    `here` is empty where the worktree has no such memory, `base` where the common ancestor has
    none.
    """

    path: str
    here: str
    there: str
    base: str

    @property
    def is_from_here(self) -> bool:
        """Tell whether the worktree changed it, and not the commit alone."""
        return self.here != self.base


class LevelView(Value):
    """A tree as a level of trust sees it, and who knows its commits.

    `marks` says by path what is to be told of a memory that is shown. What the worktree no longer
    has in use is at the paths `silenced`, and in the tree `unsilenced` as the trusted ref has it.
    """

    tree: Catalog
    witness: Witness
    marks: Mapping[str, str] = {}
    silenced: Collection[str] = ()
    unsilenced: Catalog | None = None
    ref: str = ""


def view_of(context: Context, tree: Catalog, witness: Witness, least: str, now: int) -> LevelView:
    """Return a worktree as the level `least` sees it; a revision is seen as it is.

    So is a worktree of another moment, for which `least` is empty.
    """
    basis = witness.basis
    if tree.location.kind != "worktree" or basis is None or not least or tree.is_partial:
        return LevelView(tree, witness)
    level = TRUST_LEVELS.index(least)
    ref = provenance.trusted_name(context.repository, witness.trusted_ref)
    try:
        apart = _differences(context, tree, basis, basis.trusted_at) if basis.trusted_at else []
        ruled = _ruled(context, apart) if level < 2 else {}
        apart = [one for one in apart if one.path not in ruled]
        if level == 0:
            broken = _broken(tree)
            apart = [one for one in apart if one.path not in broken]
            view = _as_it_is(context, tree, witness, apart, ref, now)
            view = _with_whole(context, view, tree, broken, basis, ref)
        elif level == 1:
            marks = {one.path: _mark(ref, is_from_here=True) for one in apart if one.is_from_here}
            apart = _differences(context, tree, basis, basis.head)
            apart = [one for one in apart if one.path not in ruled]
            view = _as_in(context, LevelView(tree, witness, marks), apart, basis.head, "HEAD")
        else:
            view = _as_in(context, LevelView(tree, witness), apart, basis.trusted_at, ref)
    except MemtoolError:
        if not context.repository.is_partial:
            raise
        return LevelView(tree, witness)  # what the other commit holds, nobody can tell here
    marks = dict.fromkeys(ruled, _mark(ref, is_from_here=True))
    return _with_versions(context, view, ruled, basis.trusted_at, marks)


def _as_in(
    context: Context, view: LevelView, apart: Sequence[Difference], commit: str, name: str
) -> LevelView:
    """Return a view in which what differs is as a commit of some name has it."""
    records = _read(context, apart)
    marks = {
        one.path: _mark(name, is_from_here=one.is_from_here) for one in apart if one.path in records
    }
    return _with_versions(context, view, records, commit, marks)


def _ruled(context: Context, apart: Iterable[Difference]) -> dict[str, Record]:
    """Return the versions of the trusted ref that nothing may replace before it is there, by path.

    These are the memories of which a trust rule wants more than that they are committed.
    """
    rules = context.project.trust_rules
    if not rules:
        return {}
    from memtool.store import trust_rules  # most projects have none

    found = {}
    for path, record in _read(context, [one for one in apart if one.is_from_here]).items():
        rule = trust_rules.rule_of(rules, record.memory, path)
        if rule is not None and TRUST_LEVELS.index(rule.require) > 1:
            found[path] = record
    return found


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
        numbers = map(part.memories.number_at, by_path)
        dead = part.dead.union(number for number in numbers if number is not None)
        parts.append(LeafReader(part.postings, part.memories, part.first, dead))
    first = parts[-1].first + parts[-1].memories.size
    parts.append(revision.in_memory([by_path[path] for path in sorted(by_path)], settings, first))
    catalog = StoredCatalog(
        tree.location,
        IndexReader(parts, tree.index.note),
        (),
        lambda path: path in by_path or tree.is_unchanged(path),
        settings.categories,
    )
    catalog.freshness = tree.freshness
    return catalog


def _broken(tree: Catalog) -> frozenset[str]:
    """Return the paths of the worktree at which a memory should be and cannot be read."""
    paths = {problem.path for problem in tree.problems}
    return frozenset(path for path in paths if tree.index.number_at(path) is None)


def _with_whole(
    context: Context,
    view: LevelView,
    tree: Catalog,
    broken: frozenset[str],
    basis: Basis,
    ref: str,
) -> LevelView:
    """Return a view in which what cannot be read here stands as the trusted ref, else HEAD, has it.

    A merge that is unfinished or a slip of an editor is no act by which a memory ends.
    """
    left = set(broken)
    for commit, name in ((basis.trusted_at, ref), (basis.head, "HEAD")):
        if left and commit:
            apart = _differences(context, tree, basis, commit)
            records = _read(context, [one for one in apart if one.path in left])
            mark = f"[CHANGED] as {name} has it: its file cannot be read here"
            view = _with_versions(context, view, records, commit, dict.fromkeys(records, mark))
            left -= records.keys()
    return view


def _as_it_is(
    context: Context,
    tree: Catalog,
    witness: Witness,
    apart: list[Difference],
    ref: str,
    now: int,
) -> LevelView:
    """Return a worktree in which every change counts at once, with what these silence."""
    changed = [one for one in apart if one.is_from_here]
    if not changed:
        return LevelView(tree, witness)
    marks = {one.path: _mark(ref, is_from_here=True) for one in changed}
    from memtool.memory.visibility import is_alive  # most worktrees change nothing

    categories = context.settings.categories
    gone = []
    for one in changed:
        number = tree.index.number_at(one.path)
        memory = None if number is None else tree.record(number).memory
        if memory is None or memory.status == "deprecated" or not is_alive(memory, now, categories):
            gone.append(one)
    ended = {
        path: record
        for path, record in _read(context, gone).items()
        if record.memory.status != "deprecated" and is_alive(record.memory, now, categories)
    }
    there = with_versions(tree, ended.values(), context.settings) if ended else None
    return LevelView(tree, witness, marks, ended.keys(), there, ref)


def silenced(view: LevelView, found: Iterable[Record]) -> tuple[str, ...]:
    """Return the ids of what the worktree took out of use, of what its tree was asked for."""
    return tuple(sorted({one.id for one in found if one.path in view.silenced}))


def silence(ids: Sequence[str], ref: str) -> str:
    """Return what is to be told of memories that the worktree took out of use."""
    return f"not shown, since changed here and not yet in {ref}: {first_few(ids, MOST_TOLD)}"


def _mark(ref: str, *, is_from_here: bool) -> str:
    if is_from_here:
        return f"[CHANGED] changed here, not yet in {ref}"
    return f"[CHANGED] as {ref} has it, not yet here"


def _read(context: Context, apart: Iterable[Difference]) -> dict[str, Record]:
    """Return the versions of a commit as records, by path; what is no memory there is left out.

    They are masked, as those of the index are.
    """
    stamps = {(one.path, one.there) for one in apart}
    if not stamps:
        return {}
    from memtool.redaction.mask import Mask  # `re`: only where the worktree differs

    mask = Mask(context.settings)
    found = versions.of_blobs(context.repository, stamps, context.settings.categories)
    return {
        path: Record(mask.memory(version.memory), path, oid)
        for (path, oid), version in sorted(found.items())
        if version.memory is not None
    }


def _differences(context: Context, tree: Catalog, basis: Basis, commit: str) -> list[Difference]:
    """Return what a commit holds and a tree has not so, by path.

    It is compared once for each state of both, and kept.
    """
    parts = [commit, basis.head, context.directory]
    for part in tree.index.parts:
        parts += [part.memories.version, ",".join(map(str, sorted(part.dead)))]
    compared, cache_dir = cache.digest(*parts).encode(), context.repository.cache_dir
    if context.is_cached:
        rows = kept.read(cache_dir, KIND, compared)
        if rows is not None:
            return [_unpacked(row) for row in rows.split(b"\0")[:-1]]
    found = _compared(context, tree, basis.head, commit)
    if context.is_cached:
        kept.write(cache_dir, KIND, compared, b"".join(_packed(one) for one in found))
    return found


def _compared(context: Context, tree: Catalog, head: str, commit: str) -> list[Difference]:
    """Return the differences; of all files that git lists only those that differ are taken apart.

    Most rows are, to the byte, what the index has stored, so that sets of them are compared.
    """
    repository, directory = context.repository, context.directory
    git = repository.git
    listing = git.run("ls-tree", "-r", "-z", "--full-tree", commit, "--", directory)
    rows = set(listing.split(b"\0")[:-1])
    rows.difference_update(
        b"100644 blob %b\t%b" % (oid.hex().encode(), path)
        for _number, path, oid in tree.index.stamps()
    )
    there: dict[str, str] = {}
    for row in sorted(rows):
        meta, _tab, path = os.fsdecode(row).partition("\t")
        if is_memory_path(path, directory):
            there[path] = meta.rpartition(" ")[2]
    here = {path: _blob_at(tree, path) for path in there}
    apart = [path for path in sorted(there) if here[path] != there[path]]
    base = there
    if apart and head != commit:
        parted = git.line("merge-base", head, commit, allowed=(0, 1))
        limit = apart if len(apart) <= provenance.LISTED_MOST else [directory]
        base = provenance.blobs(repository, parted, *limit) if parted else {}
    return [Difference(path, here[path], there[path], base.get(path, "")) for path in apart]


def _blob_at(tree: Catalog, path: str) -> str:
    """Return the blob of the memory at a path, empty where there is none. Raises CorruptCache."""
    number = tree.index.number_at(path)
    if number is None:
        return ""
    part, local = tree.index.part(number)
    return part.memories.oid(local)


def _packed(one: Difference) -> bytes:
    blobs = " ".join(blob or _ABSENT for blob in (one.here, one.there, one.base))
    return blobs.encode() + b" " + os.fsencode(one.path) + b"\0"


def _unpacked(row: bytes) -> Difference:
    *blobs, path = row.split(b" ", 3)
    here, there, base = (blob.decode().removeprefix(_ABSENT) for blob in blobs)
    return Difference(os.fsdecode(path), here, there, base)
