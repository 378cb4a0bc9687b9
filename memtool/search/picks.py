"""Picks: memories found without words, by a field or by the files that they govern.

They are needed when a session starts or a file was edited. The columns of the index narrow them
down to a few records, and each of these is then checked.
"""

from __future__ import annotations

from memtool.search.features import NO_MOVES
from memtool.store.files import matches_or_contains
from memtool.store.tree import newest_first_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from memtool.index.reader import Catalog
    from memtool.memory.memory import Memory
    from memtool.search.features import Moves
    from memtool.store.tree import Record, Tree


ANY = ""
"""Any value of a field, which must be present."""

RULING_FIELDS = (("type", "decision"), ("category", "decision"), ("category", "warning"))
"""Keys and values of memories that govern files once they are confirmed."""
CONVENTION_FIELDS = (("category", "pattern"), ("category", "preference"))
"""Keys and values of memories that say how to work on the files that they list."""
RULING_STATUSES = frozenset(("confirmed", "pinned"))


def pick(tree: Tree, *wanted: tuple[str, str]) -> Iterator[Record]:
    """Yield the records with one of the wanted (key, value) fields, newest first.

    Each is unpacked on demand. The fields must be among those that define a kind.
    """
    records = tree.latest_of_kinds(lambda kind: _has(kind, wanted))
    return (record for record in records if _has(record.memory, wanted))


def pick_containing(
    tree: Catalog, terms: Iterable[str], fits: Callable[[Memory], bool], limit: int
) -> list[Record]:
    """Return the memories of a kind that contain all of these terms of the index, newest first.

    Of more than `limit`, those that the index has had for longest are left out.
    """
    numbers = {
        number
        for part in tree.index.parts
        for number in part.select_living(part.memories.find_by_kind(fits))
    }
    for term in terms:
        numbers &= tree.index.find_containing((term,)) if numbers else set()
    records = tree.read_records(sorted(numbers, reverse=True)[:limit])
    return sorted(records, key=newest_first_key)


def find_ruling(
    tree: Tree,
    files: Collection[str],
    moves: Moves = NO_MOVES,
    is_wanted: Callable[[Record], bool] | None = None,
) -> list[Record]:
    """Return the confirmed decisions and warnings about files, newest first.

    A memory names a file, a directory above it, or a glob for it, in its `files` or its sources.
    Paths are relative to the top; `moves` adds today's path of a renamed one. `is_wanted` selects
    other memories instead.
    """
    is_wanted = is_wanted or is_ruling
    above = {"", *(part for path in files for part in find_parents(path))}

    def fits(entry: str) -> bool:
        return _is_named(entry, above, files)

    return [
        record
        for record in sorted(moves.naming_files(tree, fits), key=newest_first_key)
        if is_wanted(record) and any(map(fits, moves.list_governed_paths(record)))
    ]


def find_paths_called(tree: Tree, names: Collection[str], moves: Moves = NO_MOVES) -> list[str]:
    """Return the paths in memories whose last part is one of the names, sorted."""

    def fits(entry: str) -> bool:
        return entry.rpartition("/")[2] in names

    named = moves.naming_files(tree, fits)
    return sorted(
        {path for record in named for path in moves.list_governed_paths(record) if fits(path)}
    )


def _has(memory: Memory, wanted: Iterable[tuple[str, str]]) -> bool:
    return any(
        memory.text(key) == value if value != ANY else bool(memory.text(key))
        for key, value in wanted
    )


def _is_named(entry: str, above: Collection[str], files: Iterable[str]) -> bool:
    parts = [part for part in entry.split("/") if part not in ("", ".")]
    plain = next((at for at, part in enumerate(parts) if "*" in part or "?" in part), len(parts))
    if "/".join(parts[:plain]) not in above or not parts:
        return False
    glob = "/".join(parts)
    return plain == len(parts) or any(matches_or_contains(glob, path) for path in files)


def find_parents(path: str) -> Iterator[str]:
    """Yield a path and the directories above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def is_ruling(record: Record) -> bool:
    """Return whether a memory is a confirmed decision or warning."""
    memory = record.memory
    return _has(memory, RULING_FIELDS) and memory.status in RULING_STATUSES


def is_governing(record: Record) -> bool:
    """Return whether a memory rules files, or is a confirmed convention for those that it lists."""
    memory = record.memory
    is_scoped = _has(memory, CONVENTION_FIELDS) and bool(memory.items("files"))
    return is_ruling(record) or (is_scoped and memory.status in RULING_STATUSES)
