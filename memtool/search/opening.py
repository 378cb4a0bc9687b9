"""Opening: the memories of a worktree from its state and the segment that it names.

Where nothing changed, both are mapped, every folder is looked at, and that is all. What changed,
and a state that is missing, damaged or of another version, is for `renewal`.
"""

from __future__ import annotations

import os
import sys
import time

from memtool.search import layout, shelf, state
from memtool.search.catalog import DIR_EXACT, EXACT, StoredCatalog, Worktree
from memtool.search.freshness import check
from memtool.search.layout import Broken
from memtool.search.parts import Part, Parts
from memtool.search.segment import Segment
from memtool.search.shelf import Shelf
from memtool.search.terms import TOKENIZER
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from memtool.memory.categories import Category
    from memtool.memory.problem import Problem
    from memtool.search.freshness import Seen
    from memtool.search.renewal import Renewal
    from memtool.search.state import Stat, State
    from memtool.store.repository import Repository


class Wanted(Value):
    """What is to be opened, and the key that its state must have."""

    repository: Repository
    directory: str
    categories: Mapping[str, Category]
    exact: bool
    key: str


class Look(Value):
    """What a look at the worktree found: when it began, the state, and how it differs."""

    taken_ns: int
    kept: State | None
    seen: Seen | None


class Base:
    """The segment that holds most memories, and their shelf. Numbers are the same in both."""

    def __init__(self, name: str, index: Segment, memories: Shelf) -> None:
        """Take the two. Raises Broken where they are not of the same memories."""
        if index.count != memories.count:
            raise Broken("the index is not of these memories")
        self.name = name
        self.index = index
        self.memories = memories

    def number_at(self, path: str) -> int | None:
        """Return the number of the memory at a path. Raises Broken."""
        id_ = path.rpartition("/")[2][:-3]
        numbers = self.memories.numbers_of(id_)
        return next((n for n in numbers if self.memories.path(n) == path), None)


class Unchanged:
    """A worktree that is as its state says. Raises Broken, as all that reads it may."""

    note = ""

    def __init__(self, base: Base, kept: State, seen: Seen) -> None:
        self.base = base
        self.kept = kept
        self.seen = seen
        self.carried = Shelf(kept.shelf()) if kept.carrying or kept.renewed else None

    def parts(self, as_of: int | None) -> Parts:
        """Return what is to be searched, without what was written after a second."""
        base, carried = self.base, self.carried
        found = [Part(base.index, base.memories, 0, self.kept.dead)]
        if carried is not None and carried.count:
            from memtool.search import overlay  # only where files changed lately

            texts = overlay.unpack(self.kept.overlay())
            found.append(Part(overlay.Overlay(texts), carried, base.index.count, frozenset()))
        return Parts(without_later(found, as_of))

    def problems(self) -> list[Problem]:
        """Return what is wrong with single files and folders."""
        kept = self.kept
        known = self.base.memories.problems
        found = [problem for problem in known if problem.path not in kept.renewed]
        found += self.carried.problems if self.carried is not None else []
        for own in kept.problems.values():
            found += own
        return found

    def status(self, path: str) -> Stat | None:
        """Return the status that a file has."""
        return self.kept.status_of(path)


def open_worktree(
    repository: Repository,
    directory: str,
    categories: Mapping[str, Category],
    as_of: int | None,
    *,
    exact: bool,
) -> StoredCatalog:
    """Open the memories of a worktree that lies on disk as a whole."""
    key = key_of(repository, directory, categories)
    wanted = Wanted(repository, directory, categories, exact, key)
    try:
        view = _looked_at(wanted)
        parts, problems = view.parts(as_of), view.problems()
    except Broken:
        view = _renewed(wanted, None)
        parts, problems = view.parts(as_of), view.problems()

    def renew() -> Parts:
        return _renewed(wanted, None).parts(as_of)

    taken = Worktree(repository, directory)
    found = StoredCatalog(taken, parts, problems, view.status, renew, categories)
    found.freshness = EXACT if view.seen.is_exact else DIR_EXACT
    found.notes += filter(None, [view.note])
    return found


def _looked_at(wanted: Wanted) -> Unchanged | Renewal:
    """Return the worktree as its state says, or as it differs from that. Raises Broken."""
    taken_ns = time.time_ns()
    kept = state.load(wanted.repository.git_dir)
    if kept is not None and kept.key != wanted.key:
        kept = None
    if kept is None:
        return _renewed(wanted, Look(taken_ns, None, None))
    seen = check(wanted.repository.top, wanted.directory, kept, exact=wanted.exact)
    if seen.folders or seen.vanished:
        return _renewed(wanted, Look(taken_ns, kept, seen))
    return Unchanged(open_base(wanted.repository, kept.segment), kept, seen)


def _renewed(wanted: Wanted, look: Look | None) -> Renewal:
    from memtool.search import renewal

    return renewal.renewed(wanted, look)


def without_later(parts: list[Part], as_of: int | None) -> list[Part]:
    """Return the parts without what was written after a second."""
    if as_of is not None:
        for part in parts:
            part.dead |= part.shelf.later_than(as_of)
    return parts


def open_base(repository: Repository, name: str) -> Base:
    """Map a segment with its memories, and say that it is in use. Raises Broken."""
    place = os.path.join(repository.cache_dir, layout.FOLDER, name)
    try:
        memories = Shelf(layout.mapped(os.path.join(place, shelf.FILE)))
    except (OSError, ValueError) as error:
        raise Broken(str(error)) from None
    found = Base(name, Segment.open(place), memories)
    layout.touch(place)
    return found


def key_of(repository: Repository, directory: str, categories: Mapping[str, Category]) -> str:
    """Return what a state and a segment depend on beside the files: settings and versions."""
    from _blake2 import blake2b  # hashlib would import OpenSSL

    parts = [layout.FORMAT, TOKENIZER, sys.byteorder, directory]
    parts += [repository.object_format]
    parts += [f"{name} {categories[name].ttl_days}" for name in sorted(categories)]
    text = "\0".join(parts).encode(errors="surrogatepass")
    return str(blake2b(text, digest_size=16).hexdigest())
