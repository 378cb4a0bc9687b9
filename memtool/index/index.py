"""The index of a worktree: opened as it is stored, updated where files changed, or built.

    catalog = index.open(context)                       # the worktree
    catalog = index.open(context, "HEAD")               # a revision, or `:index`
    catalog = index.open(context, as_of="2026-02-22")   # without what came later
    catalog.freshness                                   # "exact" or "dir-exact"
    catalog.verify(records)                             # are these files still the same

A worktree has one database (see `schema`) in its own git directory. Where nothing changed, every
folder is looked at, and that is all. Files that changed are read, and their rows replaced. Where
very many did, or there is no database, every file is read and the database built. A new worktree
begins with a copy of another one's. The index of a revision is a database, too, named by its
content and built when it is searched.

A database that is missing, of another version or not writable costs time, never the answer. One
that turns out to be damaged raises `CorruptCache`: who called drops it (`drop`) and asks again.
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
from memtool.index.stamps import check, is_ordinary
from memtool.index.writing import max_changes
from memtool.store import cache
from memtool.store.cache import CorruptCache
from memtool.store.snapshot import Location
from memtool.store.state import State
from memtool.store.tree import read_tree
from memtool.value import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.config import Config
    from memtool.store.context import Context
    from memtool.store.repository import Repository
    from memtool.store.snapshot import Snapshot


def open(  # noqa: A001  # read as index.open
    context: Context, at: str | None = None, as_of: str | None = None, *, exact: bool = False
) -> Catalog:
    """Open the memories of the worktree or a revision, to read only what is asked for.

    `exact` checks every file for a change, however many there are. What the user should hear,
    such as files that are no memories, goes to the notes of the context.

    Raises:
        MemtoolError: there is no memory directory, or it belongs to another tool.
    """
    second = context.clock.moment(as_of) if as_of is not None else None
    opened = context.opened if second is None else None
    kept = None if opened is None else opened.get(at or "")
    if isinstance(kept, Catalog) and (kept.freshness == EXACT or not exact):
        return kept
    if at is None and not context.repository.is_bare:
        context.project.refuse_absent()  # before anything is stored in the git directory
    found = open_catalog(context, at, second, exact=exact)
    if at is None and not found.count:
        context.project.refuse_foreign()
    return keep(context, found, at)


def keep(context: Context, found: Catalog, at: str | None = None) -> Catalog:
    """Note what the user should know of some memories; the context has them from now on.

    Where it keeps what it has opened, they stand for the worktree, or for the revision `at`.
    """
    context.note_problems(found)
    _note_withheld(context, found)
    context.notes.extend(note for note in found.notes if note not in context.notes)
    if context.opened is not None:
        context.opened[at or ""] = found
    return found


def _note_withheld(context: Context, found: Catalog) -> None:
    """Note how many memories are shown masked, once."""
    paths = found.withheld()
    if paths:
        count = plural(len(paths), "memory holds", "memories hold")
        note = (
            f"{count} a secret or personal data, which is masked here; "
            f"memtool redact {paths[0]} takes it out of the file"
        )
        context.notes += [note] if note not in context.notes else []


def open_catalog(
    context: Context, at: str | None = None, as_of: int | None = None, *, exact: bool = False
) -> Catalog:
    """Open the memories of the worktree, or of a revision (`:index` is git's index).

    What was written after the second `as_of` is left out. `exact` checks every file, however many
    there are. Where the context is not cached, everything is read and nothing written, which gives
    the same answers.

    Raises:
        MemtoolError: the revision does not exist, or a bare repository is asked for its worktree.
        CorruptCache: the index is damaged, as asking the catalog may raise, too.
    """
    is_worktree = at is None and not context.repository.is_bare
    if is_worktree and context.is_cached and is_ordinary(context.repository, context.directory):
        return _open_worktree(context, as_of, exact=exact)
    return open_files(context, context.snapshot(at), as_of)


def open_files(
    context: Context,
    taken: Snapshot,
    as_of: int | None = None,
    *,
    clean: frozenset[str] = frozenset(),
    is_stored: bool = True,
) -> Catalog:
    """Read all files of a snapshot; the index over them is built when it is first asked for.

    `clean` are blobs without secrets. The index is stored for later, if `is_stored`.
    """
    from memtool.redaction.mask import Mask  # `re`: only where a whole tree is read

    settings = context.settings
    key = keys.settings_key(context.repository, context.directory, settings)
    last = open_index.open_last_written(context, key) if context.is_cached else None
    if not clean and last is not None:
        clean = refresh.blobs_without_secrets(last.memories)
    known = revision.known_records(last, taken) if last is not None else {}
    tree = read_tree(taken, settings.categories, as_of, Mask(settings, clean), known)
    whole = f"{key} {keys.mask_key(settings)}" if is_stored and context.is_cached else ""
    return ReadCatalog(tree, lambda: revision.open_revision(context, whole, tree.records, last))


def _open_worktree(context: Context, as_of: int | None, *, exact: bool) -> StoredCatalog:
    """Open the memories of a worktree that is on disk as a whole."""
    repository, settings = context.repository, context.settings
    key = keys.settings_key(repository, context.directory, settings)
    try:
        found, changes = refresh.refresh_index(context, key, exact=exact)
    except CorruptCache:
        drop(repository)
        found, changes = refresh.refresh_index(context, key, exact=exact)
    catalog = StoredCatalog(
        Location(repository, context.directory, "worktree", "worktree"),
        found.reader_at(as_of),
        changes.problems(),
        lambda path: changes.is_unchanged(repository.top, path),
        settings.categories,
    )
    catalog.freshness = EXACT if changes.seen.is_exact else DIR_EXACT
    if found.state.note:
        catalog.notes.append(f"the search index is not kept: {found.state.note}")
    return catalog


def last_reader(repository: Repository, directory: str, settings: Config) -> IndexReader | None:
    """Return the index of a worktree as it was last refreshed; None where there is none.

    No file is looked at, so who asks compares paths and blobs (see `IndexReader.stamps`).
    """
    try:
        key = keys.settings_key(repository, directory, settings)
        found = open_index.open_stored(repository, key)
    except CorruptCache:
        return None
    return None if found is None else found.reader


def drop(repository: Repository) -> bool:
    """Remove what is stored of the index; tell whether it is gone."""
    open_index.forget(repository)
    revisions = os.path.join(repository.cache_dir, revision.FOLDER)
    places = open_index.index_folder(repository), revisions
    for place in places:
        cache.drop(place)
    return not any(map(os.path.lexists, places))


def is_built(context: Context) -> bool:
    """Tell whether there is an index of the worktree, which may be out of date."""
    key = keys.settings_key(context.repository, context.directory, context.settings)
    return State.last_used(open_index.index_folder(context.repository), SCHEMA, key=key) > 0


def count_to_build(context: Context) -> int:
    """Return how many files the next answer reads because it must build the index; else 0."""
    repository, directory = context.repository, context.directory
    if repository.is_bare or not context.is_cached or not is_ordinary(repository, directory):
        return 0
    key = keys.settings_key(repository, directory, context.settings)
    found = open_index.open_last_written(context, key)
    if found is None:
        return len(check(repository.top, directory, None, exact=True).unread)
    try:
        seen = check(repository.top, directory, found.stamps, exact=False)
        return found.stamps.files if seen.count() > max_changes(found.memories.count) else 0
    except CorruptCache:
        return found.stamps.files
