"""Suggested files: what an imported decision probably governs, since its text names it.

Such a file exists, is source or configuration outside documentation, and is named by fewer than
MAX_NAMING records: what all records name is governed by none of them. A path from the top counts
before the end of a longer one, which must be unambiguous. A decision with `files`, even none, has
no suggestions. Nothing is written into a memory: `memtool confirm ID --accept-files` does that.
"""

from __future__ import annotations

from memtool.memory.mentions import find_mentions, is_code, list_endings
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from memtool.memory.memory import Memory
    from memtool.store.tree import Record, Tree

MAX_NAMING = 5
"""A file that this many records name is not suggested for any."""
KEY = "files"
ON, ACCEPT, OFF = CHOICES = ("on", "accept", "off")
"""What an import does with suggestions: derive them, write them, or write that there are none."""


def accepts_suggestions(memory: Memory) -> bool:
    """Return whether a memory is an imported decision that does not say what it governs."""
    return bool(memory.document) and KEY not in memory.fields


def suggest_files(
    tree: Tree, records: Iterable[Record], planned: Iterable[Record] = ()
) -> dict[str, tuple[str, ...]]:
    """Return the suggested files of memories by id, sorted; those without any are left out.

    `planned` are memories that an import will add to the tree; they are counted as well.
    """
    wanted = [record for record in records if accepts_suggestions(record.memory)]
    if not wanted:
        return {}
    listing = FileListing(tree)
    added: dict[str, set[str]] = {}
    for record in planned:
        for file in listing.find_files(record):
            added.setdefault(file, set()).add(record.id)
    counts: dict[str, int] = {}
    suggested = {}
    for record in wanted:
        files = listing.find_files(record)
        for file in files - counts.keys():
            named = _find_naming(tree, listing, file).keys()
            counts[file] = len(named | added.get(file, set()))
        suggested[record.id] = tuple(sorted(file for file in files if counts[file] < MAX_NAMING))
    return {id_: files for id_, files in suggested.items() if files}


def suggest_planned(
    read_tree: Callable[[], Tree], planned: Sequence[Record]
) -> dict[str, tuple[str, ...]]:
    """Return the suggested files of memories that an import will add, by id.

    The tree is read only if one of them may have suggestions.
    """
    if not any(accepts_suggestions(record.memory) for record in planned):
        return {}
    return suggest_files(read_tree(), planned, planned)


def settle_files(
    choice: str, placed: Iterable[Record], suggested: Mapping[str, tuple[str, ...]]
) -> tuple[Record, ...]:
    """Return the memories of an import with `files` as its user chose them, one of CHOICES.

    `accept` writes the suggested files by id, `off` that a decision governs none.
    """
    if choice == ON:
        return tuple(placed)
    files_by_id = suggested if choice == ACCEPT else {}
    return tuple(
        record.replace(memory=record.memory.with_fields(**{KEY: files_by_id.get(record.id, ())}))
        if accepts_suggestions(record.memory) and (choice == OFF or record.id in suggested)
        else record
        for record in placed
    )


def find_suggesting(tree: Tree, file: str) -> list[Record]:
    """Return the memories for which a file is suggested, in any order."""
    if not is_code(file):
        return []
    named = _find_naming(tree, FileListing(tree, file), file)
    if len(named) >= MAX_NAMING:
        return []
    return [record for record in named.values() if accepts_suggestions(record.memory)]


def _find_naming(tree: Tree, listing: FileListing, file: str) -> Mapping[str, Record]:
    """Return the imported decisions whose text names a file, by id."""
    return {
        record.id: record
        for name in list_endings(file)
        for record in tree.mentioning(name)
        if listing.resolve(name) == file
    }


class FileListing:
    """The files of a tree's commit or worktree, to which names are resolved.

    If `existing` is given, only names that may mean this file are resolved. It exists, also if git
    does not track it yet.
    """

    def __init__(self, tree: Tree, existing: str = "") -> None:
        self._location = tree.location
        self._existing = existing
        self._name = existing.rpartition("/")[2]

    @cached_property
    def _paths(self) -> frozenset[str]:
        git, location = self._location.repository.git, self._location
        is_commit = location.kind == "commit"
        names = (
            git.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", location.name)
            if is_commit
            else git.names("ls-files", "-z")
        )
        return frozenset(path for path in names if path.endswith(self._name) and is_code(path))

    @cached_property
    def _paths_by_name(self) -> dict[str, list[str]]:
        by_name: dict[str, list[str]] = {}
        for path in self._paths:
            by_name.setdefault(path.rpartition("/")[2], []).append(path)
        return by_name

    def resolve(self, name: str) -> str:
        """Return the file that a name means; empty if there is none, or more than one."""
        if name == self._existing or name in self._paths:
            return name
        same_name = self._paths_by_name.get(name.rpartition("/")[2], ())
        paths = [path for path in same_name if path.endswith(f"/{name}")]
        return paths[0] if len(paths) == 1 else ""

    def find_files(self, record: Record) -> set[str]:
        """Return the files that the text of an imported decision names."""
        return {self.resolve(name) for name in find_mentions(record.memory)} - {""}
