"""Opening: the memories of a worktree from its state and the segment that it names.

Where nothing changed, both are mapped, every folder is looked at, and that is all. What changed,
and a state that is missing, damaged or of another version, is for `renewal`. A process that asks
again finds both mapped still, as long as their files are the same.
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

    from memtool.memory.fields import Category
    from memtool.memory.problem import Problem
    from memtool.search.freshness import Seen
    from memtool.search.renewal import Renewal
    from memtool.search.state import Stat, State
    from memtool.store.repository import Repository


MOST_HELD = 4
"""Worktrees that one process keeps open."""
MOST_READ = 2_000
"""Memories that are kept as they were read, about 10 MB; then all of it is opened anew."""
_held: dict[str, Held] = {}
"""What is kept open, by git directory."""


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


class Held:
    """A state, the segment that it names, and both as one collection, to be searched again."""

    def __init__(self, kept: State, base: Base, stamp: tuple[Stat, ...]) -> None:
        """Take what was opened; `stamp` says which files it was. Raises Broken."""
        self.kept = kept
        self.base = base
        self.stamp = stamp
        self.carried = Shelf(kept.shelf()) if kept.carrying or kept.renewed else None
        self.parts = self.parts_as_of(None)

    def parts_as_of(self, second: int | None) -> Parts:
        """Return what is to be searched, without what was written after a second. Raises Broken."""
        base, carried = self.base, self.carried
        found = [Part(base.index, base.memories, 0, self.kept.dead)]
        if carried is not None and carried.count:
            from memtool.search import overlay  # only where files changed lately

            texts = overlay.unpack(self.kept.overlay())
            found.append(Part(overlay.Overlay(texts), carried, base.index.count, frozenset()))
        return Parts(without_later(found, second))


class Unchanged:
    """A worktree that is as its state says. Raises Broken, as all that reads it may."""

    note = ""

    def __init__(self, held: Held, seen: Seen) -> None:
        self.held = held
        self.seen = seen

    def parts(self, as_of: int | None) -> Parts:
        """Return what is to be searched, without what was written after a second."""
        return self.held.parts if as_of is None else self.held.parts_as_of(as_of)

    def problems(self) -> list[Problem]:
        """Return what is wrong with single files and folders."""
        kept, carried = self.held.kept, self.held.carried
        known = self.held.base.memories.problems
        found = [problem for problem in known if problem.path not in kept.renewed]
        found += carried.problems if carried is not None else []
        for own in kept.problems.values():
            found += own
        return found

    def status(self, path: str) -> Stat | None:
        """Return the status that a file has."""
        return self.held.kept.status_of(path)


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
    held = _still_held(wanted)
    kept = held.kept if held is not None else state.load(wanted.repository.git_dir)
    if kept is not None and kept.key != wanted.key:
        kept = None
    if kept is None:
        return _renewed(wanted, Look(taken_ns, None, None))
    seen = check(wanted.repository.top, wanted.directory, kept, exact=wanted.exact)
    if seen.folders or seen.vanished:
        return _renewed(wanted, Look(taken_ns, kept, seen))
    return Unchanged(held or _hold(wanted.repository, kept), seen)


def _still_held(wanted: Wanted) -> Held | None:
    """Return what an earlier call of this process opened, if these are the same files still."""
    held = _held.get(wanted.repository.git_dir)
    if held is None:
        return None
    place = _place(wanted.repository, held.kept.segment)
    if held.parts.read > MOST_READ or _stamp(wanted.repository, place) != held.stamp:
        return None
    layout.touch(place)
    return held


def _hold(repository: Repository, kept: State) -> Held:
    """Open the segment of a state, for this call and those after it. Raises Broken."""
    stamp = _stamp(repository, _place(repository, kept.segment))
    held = Held(kept, open_base(repository, kept.segment), stamp)
    while len(_held) >= MOST_HELD:
        _held.pop(next(iter(_held)), None)
    _held[repository.git_dir] = held
    return held


def _stamp(repository: Repository, place: str) -> tuple[Stat, ...]:
    """Return what the files of a state and its segment look like; nothing where one is missing."""
    files = [os.path.join(place, name) for name in (shelf.FILE, *layout.FILES)]
    try:
        return tuple(
            state.stat_of(os.stat(path))
            for path in (os.path.join(repository.git_dir, state.FILE), *files)
        )
    except OSError:
        return ()


def _renewed(wanted: Wanted, look: Look | None) -> Renewal:
    _held.pop(wanted.repository.git_dir, None)
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
    place = _place(repository, name)
    try:
        memories = Shelf(layout.mapped(os.path.join(place, shelf.FILE)))
    except (OSError, ValueError) as error:
        raise Broken(str(error)) from None
    found = Base(name, Segment.open(place), memories)
    layout.touch(place)
    return found


def _place(repository: Repository, name: str) -> str:
    return os.path.join(repository.cache_dir, layout.FOLDER, name)


def key_of(repository: Repository, directory: str, categories: Mapping[str, Category]) -> str:
    """Return what a state and a segment depend on beside the files: settings and versions."""
    from _blake2 import blake2b  # hashlib would import OpenSSL

    parts = [layout.FORMAT, TOKENIZER, sys.byteorder, directory]
    parts += [repository.object_format]
    parts += [f"{name} {categories[name].ttl_days}" for name in sorted(categories)]
    text = "\0".join(parts).encode(errors="surrogatepass")
    return str(blake2b(text, digest_size=16).hexdigest())
