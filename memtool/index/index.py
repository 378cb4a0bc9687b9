"""The index of a worktree: opened as it is stored, updated if files changed, or built.

    catalog = index.open(context)                       # the worktree
    catalog = index.open(context, "HEAD")               # a revision, or `:index`
    catalog = index.open(context, as_of="2026-02-22")   # without later memories
    catalog.freshness                                   # "exact" or "dir-exact"
    catalog.verify(records)                             # are these files unchanged

A worktree has one database (see `schema`) in its own git directory. If nothing changed, only the
status of each folder is read. Changed files are read, and their rows replaced. If very many files
changed, or there is no database, every file is read and the database built. A new worktree begins
with a copy of another worktree's database. The index of a revision is also a database, named by its
content and built when it is searched.

A missing or outdated database, or one that cannot be written, costs time, never the answer. A
damaged one raises `CorruptCache`: the caller drops it (`drop`) and tries again.
"""

from __future__ import annotations

import os

from memtool.index import keys, open_index, refresh, revision
from memtool.index.reader import (
    DIR_EXACT,
    EXACT,
    Catalog,
    IndexReader,
    ReadCatalog,
    StoredCatalog,
)
from memtool.index.schema import SCHEMA
from memtool.index.stamps import find_changes, is_ordinary
from memtool.index.writing import max_changes
from memtool.store import cache
from memtool.store.cache import CorruptCacheError
from memtool.store.snapshot import Location
from memtool.store.state import State
from memtool.store.tree import read_tree
from memtool.value import format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.config import Config
    from memtool.store.context import Context
    from memtool.store.repository import Repository
    from memtool.store.snapshot import Snapshot


def open(  # noqa: A001  # read as index.open
    context: Context, at: str | None = None, as_of: str | None = None, *, exact: bool = False
) -> Catalog:
    """Open the memories of the worktree or a revision; each is read when it is needed.

    `exact` checks every file for a change, however many there are. Notes for the user, such as
    files that are not memories, go to the notes of the context.

    Raises:
        MemtoolError: there is no memory directory, or it belongs to another tool.
    """
    second = context.clock.parse_moment(as_of) if as_of is not None else None
    opened = context.trees_by_commit if second is None else None
    opened_catalog = None if opened is None else opened.get(at or "")
    if isinstance(opened_catalog, Catalog) and (opened_catalog.freshness == EXACT or not exact):
        return opened_catalog
    if at is None and not context.repository.is_bare:
        context.project.refuse_absent()  # before anything is stored in the git directory
    catalog = open_catalog(context, at, second, exact=exact)
    if at is None and not catalog.count:
        context.project.refuse_foreign()
    return register(context, catalog, at)


def register(context: Context, catalog: Catalog, at: str | None = None) -> Catalog:
    """Make a catalog the context's own for the worktree or the revision `at`, and note problems.

    A context that does not cache opened catalogs only gets the notes.
    """
    context.note_problems(catalog)
    _note_withheld(context, catalog)
    context.notes.extend(note for note in catalog.notes if note not in context.notes)
    if context.trees_by_commit is not None:
        context.trees_by_commit[at or ""] = catalog
    return catalog


def _note_withheld(context: Context, catalog: Catalog) -> None:
    """Note once how many memories are shown masked."""
    paths = [*catalog.withheld()]
    if paths:
        count = format_count(len(paths), "memory holds", "memories hold")
        note = (
            f"{count} a secret or personal data, which is masked here; "
            f"memtool redact {paths[0]} takes it out of the file"
        )
        context.notes += [note] if note not in context.notes else []


def open_catalog(
    context: Context, at: str | None = None, as_of: int | None = None, *, exact: bool = False
) -> Catalog:
    """Open the memories of the worktree, or of a revision (`:index` is git's index).

    Memories written after the second `as_of` are left out. `exact` checks every file, however many
    there are. If the context is not cached, everything is read and nothing written, with the same
    answers.

    Raises:
        MemtoolError: the revision does not exist, or the repository is bare and has no worktree.
        CorruptCache: the index is damaged; methods of the catalog may raise it, too.
    """
    is_worktree = at is None and not context.repository.is_bare
    if is_worktree and context.is_cached and is_ordinary(context.repository, context.directory):
        return _open_worktree(context, as_of, exact=exact)
    return open_files(context, context.snapshot(at), as_of)


def open_files(
    context: Context,
    snapshot: Snapshot,
    as_of: int | None = None,
    *,
    clean: frozenset[str] = frozenset(),
    is_stored: bool = True,
) -> Catalog:
    """Read all files of a snapshot; the index over them is built when it is first used.

    `clean` are blobs without secrets. `is_stored` stores the index for later.
    """
    from memtool.redaction.mask import Mask  # imports `re`: only if a whole tree is read

    settings = context.settings
    key = keys.settings_key(context.repository, context.directory, settings)
    last = open_index.open_last_written(context, key) if context.is_cached else None
    if not clean and last is not None:
        clean = refresh.find_blobs_without_secrets(last.memories)
    unchanged = revision.read_unchanged(last, snapshot) if last is not None else {}
    tree = read_tree(snapshot, settings.categories, as_of, Mask(settings, clean), unchanged)
    revision_key = f"{key} {keys.mask_key(settings)}" if is_stored and context.is_cached else ""
    return ReadCatalog(
        tree, lambda: revision.open_revision(context, revision_key, tree.records, last)
    )


def _open_worktree(context: Context, as_of: int | None, *, exact: bool) -> StoredCatalog:
    """Open the memories of a worktree that is on disk as a whole."""
    repository, settings = context.repository, context.settings
    key = keys.settings_key(repository, context.directory, settings)
    try:
        opened, update = refresh.refresh_index(context, key, exact=exact)
    except CorruptCacheError:
        drop(repository)
        opened, update = refresh.refresh_index(context, key, exact=exact)
    catalog = StoredCatalog(
        Location(repository, context.directory, "worktree", "worktree"),
        opened.make_reader(as_of),
        update.problems(),
        lambda path: update.is_unchanged(repository.top, path),
        settings.categories,
    )
    catalog.freshness = EXACT if update.changes.is_exact else DIR_EXACT
    if opened.state.note:
        catalog.notes.append(f"the search index is not stored: {opened.state.note}")
    return catalog


def open_last_reader(
    repository: Repository, directory: str, settings: Config
) -> IndexReader | None:
    """Open the index of a worktree as it was last refreshed, None if there is none.

    No file is checked, so the caller compares paths and blobs (see `IndexReader.read_stamps`).
    """
    try:
        key = keys.settings_key(repository, directory, settings)
        opened = open_index.open_stored(repository, key)
    except CorruptCacheError:
        return None
    return None if opened is None else opened.reader


def drop(repository: Repository) -> bool:
    """Remove all stored indexes; return whether they are gone."""
    open_index.forget(repository)
    shared = (os.path.join(repository.cache_dir, name) for name in revision.FOLDERS)
    places = open_index.index_folder(repository), *shared
    for place in places:
        cache.drop(place)
    return not any(map(os.path.lexists, places))


def is_built(context: Context) -> bool:
    """Return whether the worktree has an index, which may be out of date."""
    key = keys.settings_key(context.repository, context.directory, context.settings)
    return State.read_last_used(open_index.index_folder(context.repository), SCHEMA, key=key) > 0


def count_files_to_build(context: Context) -> int:
    """Return how many files the next call must read to build the index, 0 if it need not."""
    repository, directory = context.repository, context.directory
    if repository.is_bare or not context.is_cached or not is_ordinary(repository, directory):
        return 0
    key = keys.settings_key(repository, directory, context.settings)
    opened = open_index.open_last_written(context, key)
    if opened is None:
        return len(find_changes(repository.top, directory, None, exact=True).unread)
    try:
        changes = find_changes(repository.top, directory, opened.stamps, exact=False)
        return opened.stamps.files if changes.count() > max_changes(opened.memories.count) else 0
    except CorruptCacheError:
        return opened.stamps.files
