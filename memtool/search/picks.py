"""Picks: memories that are found without words, by a field or by the files that they govern.

So it is asked when a session starts or a file was edited. The index finds the few that matter by
its columns; each is then asked itself.
"""

from __future__ import annotations

from memtool.search.features import governed
from memtool.store.files import governs
from memtool.store.tree import newest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from memtool.memory.memory import Memory
    from memtool.store.tree import Record, Tree


ANY = ""
"""Any value of a field, but one must be there."""

RULING = (("type", "decision"), ("category", "decision"), ("category", "warning"))
"""Keys and values of memories that govern files, where somebody vouches for them."""
RULING_STATUSES = frozenset(("confirmed", "pinned"))


def picked(tree: Tree, *wanted: tuple[str, str]) -> Iterator[Record]:
    """Yield the records that have one of some fields, each a key and its value, the newest first.

    Each is unpacked when it is asked for. The fields must be ones that make a kind.
    """
    found = tree.latest_of_kinds(lambda kind: _has(kind, wanted))
    return (record for record in found if _has(record.memory, wanted))


def ruling_over(tree: Tree, files: Collection[str], *, with_documents: bool = True) -> list[Record]:
    """Return the decisions and warnings about files that somebody vouches for, the newest first.

    A memory names a file, a directory above it, or a glob for it, in its `files` or its sources.
    Paths are from the top. `with_documents` false passes over a source that is a document: the
    memory was taken from it, and is about something else.
    """
    above = {"", *(part for path in files for part in ways_up(path))}

    def fits(entry: str) -> bool:
        return _names(entry, above, files)

    return [
        record
        for record in sorted(tree.naming_files(fits), key=newest)
        if is_ruling(record) and any(map(fits, governed(record, with_documents=with_documents)))
    ]


def paths_called(tree: Tree, names: Collection[str]) -> list[str]:
    """Return the paths that memories name and whose last part is one of some names, sorted."""

    def fits(entry: str) -> bool:
        return entry.rpartition("/")[2] in names

    named = tree.naming_files(fits)
    return sorted({one for record in named for one in governed(record) if fits(one)})


def _has(memory: Memory, wanted: Iterable[tuple[str, str]]) -> bool:
    return any(
        memory.text(key) == value if value != ANY else bool(memory.text(key))
        for key, value in wanted
    )


def _names(entry: str, above: Collection[str], files: Iterable[str]) -> bool:
    parts = [part for part in entry.split("/") if part not in ("", ".")]
    plain = next((at for at, part in enumerate(parts) if "*" in part or "?" in part), len(parts))
    if "/".join(parts[:plain]) not in above or not parts:
        return False
    glob = "/".join(parts)
    return plain == len(parts) or any(governs(glob, path) for path in files)


def ways_up(path: str) -> Iterator[str]:
    """Yield a path and the directories above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def is_ruling(record: Record) -> bool:
    """Tell whether a memory is a decision or a warning that somebody vouches for."""
    memory = record.memory
    return _has(memory, RULING) and memory.status in RULING_STATUSES
