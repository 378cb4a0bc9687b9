"""Picking: the memories with a certain field, or that govern files, without unpacking all others.

What is asked when a session starts or a file was edited has no words to search for. A stored
catalog keeps the fields of all memories one behind the other, so a look for a few bytes finds the
few that matter; each is then asked itself.
"""

from __future__ import annotations

from memtool.search import globs
from memtool.search.catalog import StoredCatalog
from memtool.search.facts import governed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from memtool.memory.memory import Memory
    from memtool.search.parts import Parts
    from memtool.search.shelf import Shelf
    from memtool.store.tree import Record, Tree

ANY = ""
"""Any value of a field, but one must be there."""
RULING = (("type", "decision"), ("category", "decision"), ("category", "warning"))
RULING_STATUSES = frozenset(("confirmed", "pinned"))
_FILE = b"file:"
_FIRST, _GROWTH = 64, 16
"""Records that are opened before the first is given, and how many times more where all are taken.

A primer looks at forty; who wants all looks through the fields of 10,000 three times.
"""


def picked(tree: Tree, *wanted: tuple[str, str]) -> Iterator[Record]:
    """Yield the records that have one of some fields, each a key and its value, the newest first.

    Each is unpacked when it is asked for. The fields must be ones that make a kind.
    """
    found = _in_turn(tree, lambda shelf: shelf.of_kinds(lambda kind: _has(kind, wanted)))
    return (record for record in found if _has(record.memory, wanted))


def naming(tree: Tree, id_: str) -> list[Record]:
    """Return every record that names an id in one of its fields, and perhaps others."""
    return _stored(tree, lambda shelf: shelf.naming(id_))


def written_after(tree: Tree, second: int) -> Iterator[Record]:
    """Yield the records that were written after a second, the newest first."""
    found = _stored(tree, lambda shelf: shelf.later_than(second))
    return (record for record in found if record.memory.timestamp > second)


def ruling_over(tree: Tree, files: Collection[str]) -> list[Record]:
    """Return the decisions and warnings about files that somebody vouches for, the newest first.

    A memory names a file, a directory above it, or a glob for it, in its `files` or its sources.
    Paths are from the top.
    """
    above = {"", *(part for path in files for part in ways_up(path))}

    def fits(entry: str) -> bool:
        return _names(entry, above, files)

    def naming(shelf: Shelf) -> Iterable[int]:
        named = shelf.listing("files", lambda item: fits(item.decode(errors="replace")))
        sources = shelf.listing(
            "source",
            lambda item: item.startswith(_FILE) and fits(_place(item.decode(errors="replace"))),
        )
        return {*named, *sources}

    return [
        record
        for record in _stored(tree, naming)
        if _has(record.memory, RULING)
        and record.memory.status in RULING_STATUSES
        and any(map(fits, governed(record)))
    ]


def newest(record: Record) -> tuple[int, str]:
    """Return the key by which records stand in order, the newest first; it unpacks none."""
    return (-record.memory.timestamp, record.path)


def _in_turn(tree: Tree, look: Callable[[Shelf], Iterable[int]]) -> Iterator[Record]:
    """Yield what `_stored` returns; of thousands only as many are opened as are taken."""
    most = _FIRST
    given: set[str] = set()  # by path: a damaged catalog is made anew, with other numbers
    while True:
        found = _stored(tree, look, most)
        for record in found:
            if record.path not in given:
                given.add(record.path)
                yield record
        if len(found) < most or not isinstance(tree, StoredCatalog):
            return
        most *= _GROWTH


def _stored(
    tree: Tree, look: Callable[[Shelf], Iterable[int]], most: int | None = None
) -> list[Record]:
    """Return the records that a look at the stored fields finds, all where none are stored.

    The newest come first. With `most` these are enough, and those written in the same second as
    the last of them.
    """
    if not isinstance(tree, StoredCatalog):
        return sorted(tree.records, key=newest)
    catalog = tree

    def ask(parts: Parts) -> list[Record]:
        places: list[tuple[int, int]] = []
        for part in parts.parts:
            numbers = [local for local in look(part.shelf) if local not in part.dead]
            seconds = map(part.shelf.timestamps.__getitem__, numbers)
            places += zip(seconds, map(part.first.__add__, numbers), strict=True)
        if most is not None and len(places) > most:
            last = sorted([second for second, _number in places], reverse=True)[most - 1]
            places = [place for place in places if place[0] >= last]
        return [catalog.record(number) for _second, number in places]

    return sorted(catalog.whole(ask), key=newest)


def _has(memory: Memory, wanted: Iterable[tuple[str, str]]) -> bool:
    return any(
        memory.text(key) == value if value != ANY else bool(memory.text(key))
        for key, value in wanted
    )


def _place(source: str) -> str:
    """Return the path of a file source."""
    return source[len(_FILE) :].partition("#")[0].partition("@")[0]


def _names(entry: str, above: Collection[str], files: Iterable[str]) -> bool:
    parts = [part for part in entry.split("/") if part not in ("", ".")]
    plain = next((at for at, part in enumerate(parts) if "*" in part or "?" in part), len(parts))
    if "/".join(parts[:plain]) not in above or not parts:
        return False
    glob = "/".join(parts)
    return plain == len(parts) or any(globs.governs(glob, path) for path in files)


def ways_up(path: str) -> Iterator[str]:
    """Yield a path and the directories above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]
