"""Files that history ties to records: changed by commits that name a record, or naming it.

A file is tied to a record if MIN_COMMITS commits that name it changed the file, or if the text of
the file names it, such as `see ADR-024`. A file that commits for MAX_RECORDS records have changed,
or that names so many, is tied to none. Nothing is written into a memory.

The commits of HEAD are read once, and counts of names by file are cached for each worktree. Counts
only add up, so for another HEAD git lists only the commits that one of both lacks. A lost table is
made again. The table also has the names of the last commits that have any, in order.
"""

from __future__ import annotations

import os
from itertools import islice

from memtool.errors import MemtoolError
from memtool.memory.mentions import is_code
from memtool.search import named_ids
from memtool.search.named_ids import Name
from memtool.store import cache, kept
from memtool.store.cochange import MAX_COMMIT_FILES
from memtool.store.files import read_or_none
from memtool.store.git import TIMEOUT_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from memtool.search.features import Facts
    from memtool.store.context import Context
    from memtool.store.repository import Repository

    Counts = dict[bytes, dict[Name, int]]
    """How many commits that name a record changed a file, by path."""
    Recent = dict[Name, str]
    """The last commit of each name, the newest first."""

KIND = "named by commits 2"
MIN_COMMITS = 2
MAX_RECORDS = 5
MAX_NAMED = 3
"""Records that a commit may name; the message of a release names all of them."""
MAX_RECENT = 40
"""Names that are kept of the last commits: some mean no memory, or one that is shown already."""
MAX_CODE_BYTES = 1 << 20
HURRIED_TIMEOUT_S = 0.5
"""Time for git where an agent waits; a long history is then read in the background."""
_END = "\0"


def read_table(
    context: Context, ids: Collection[str], head: str, *, is_hurried: bool = False
) -> HistoryTable:
    """Return the table of a commit for the records with these ids, and cache it."""
    table = HistoryTable(context.repository, context.directory, ids, is_cached=context.is_cached)
    table.load(head, is_hurried=is_hurried)
    return table


class HistoryTable:
    """The names of records in the commits of HEAD, by the files that these commits changed.

    `is_missing` means that there was no time to read the history.
    """

    def __init__(
        self, repository: Repository, directory: str, ids: Collection[str], *, is_cached: bool
    ) -> None:
        """Take the memory directory, whose files do not count, and the ids of the records."""
        self._repository = repository
        self._directory = directory
        self._words = named_ids.list_words(ids)
        self._is_cached = is_cached
        self._text: bytes | None = None
        self._recent: Recent = {}
        self.is_missing = False

    def load(self, head: str, *, is_hurried: bool = False) -> None:
        """Load the table of a commit from the cache, or derive it from that of another commit."""
        repository = self._repository
        cut = ",".join(sorted(repository.shallow_commits()))
        basis = cache.digest(self._directory, cut, *sorted(self._words)).encode()
        key = os.fsencode(repository.git_dir)
        stored = kept.read(repository.cache_dir, KIND, basis, key) if self._is_cached else None
        old, _end, text = (stored or b"").partition(b"\n")
        first, _end, text = text.partition(b"\n")
        self._recent = _parse_recent(first.decode())
        if old.decode() == head:
            self._text = b"\n" + text
            return
        timeout_s = HURRIED_TIMEOUT_S if is_hurried else TIMEOUT_S
        try:
            counts = self._count(head, old.decode(), _parse(text), timeout_s)
        except MemtoolError:  # too slow, or a clone without the trees of old commits
            self.is_missing = is_hurried
            return
        text = _format(counts)
        self._text = b"\n" + text
        if self._is_cached:
            lines = (head.encode(), _format_recent(self._recent).encode(), text)
            kept.write(repository.cache_dir, KIND, basis, b"\n".join(lines), key)

    def _count(self, head: str, old: str, counts: Counts, timeout_s: float) -> Counts:
        """Return the counts at a commit from those at an older one, or else from none."""
        if old:
            try:
                return self._add(f"{old}...{head}", counts, timeout_s)
            except MemtoolError:  # the older commit is gone
                pass
        self._recent = {}
        return self._add(head, {}, timeout_s)

    def _add(self, commits: str, counts: Counts, timeout_s: float) -> Counts:
        """Add the commits of a range to some counts; subtract those that are only on its left."""
        logged = self._repository.git.log_names(
            "--no-merges",
            "--root",
            "--no-renames",
            "--encoding=UTF-8",
            "--format=%x00%m%H %B",
            "--regexp-ignore-case",
            "--fixed-strings",
            *(f"--grep={word}" for word in sorted(self._words)),
            "--end-of-options",
            commits,
            timeout_s=timeout_s,
        )
        cut = self._repository.shallow_commits()  # such a commit seems to add all its files
        recent: Recent = {}
        gone = set()
        for title, paths in logged:
            commit, _space, message = title[1:].partition(" ")
            names = named_ids.find_numbers(message, self._words)
            if len(names) > MAX_NAMED:
                continue
            is_gone = title[0] == "<"
            if is_gone:
                gone.add(commit)
            for name in () if is_gone else names:
                recent.setdefault(name, commit)
            if commit in cut or len(paths) > MAX_COMMIT_FILES:
                continue
            step = -1 if is_gone else 1
            for path in filter(self._is_counted, paths):
                own = counts.setdefault(os.fsencode(path), {})
                for name in names.values():
                    own[name] = own.get(name, 0) + step
        older = (item for item in self._recent.items() if item[1] not in gone)
        for name, commit in older:
            recent.setdefault(name, commit)
        self._recent = dict(islice(recent.items(), MAX_RECENT))
        return counts

    def _is_counted(self, path: str) -> bool:
        is_memory = path.startswith(f"{self._directory}/")
        return is_code(path) and not is_memory and "\n" not in path

    def find_recent(self, facts: Facts) -> Iterator[str]:
        """Yield the ids of the records that commits named last, the newest first."""
        for name in self._recent:
            yield from named_ids.find_by_number(name, facts)

    def find_records(self, path: str, facts: Facts) -> list[str]:
        """Return the ids of the records that history ties to a file, sorted."""
        commit_counts: dict[str, int] = {}
        for name, count in self._read(path).items():
            for id_ in named_ids.find_by_number(name, facts):
                commit_counts[id_] = commit_counts.get(id_, 0) + count
        if len(commit_counts) >= MAX_RECORDS:
            return []
        return sorted(id_ for id_, count in commit_counts.items() if count >= MIN_COMMITS)

    def _read(self, path: str) -> dict[Name, int]:
        """Return the names of a path and the commits of each."""
        wanted = b"\n%b\0" % os.fsencode(path)
        at = (self._text or b"").find(wanted)
        if self._text is None or at < 0:
            return {}
        return _parse_names(self._text[at + len(wanted) :].partition(b"\n")[0].decode())

    def find_named_by(self, path: str, facts: Facts) -> list[str]:
        """Return the ids of the records that the text of a file names, sorted."""
        if not is_code(path):
            return []
        data = read_or_none(os.path.join(self._repository.top, path), MAX_CODE_BYTES)
        if not data or b"\0" in data:
            return []
        names = named_ids.find_numbers(data.decode(errors="replace"), self._words)
        by_name = (named_ids.find_by_number(name, facts) for name in names.values())
        ids = sorted({id_ for ids in by_name for id_ in ids})
        return ids if len(ids) < MAX_RECORDS else []


def _format(counts: Counts) -> bytes:
    """Return a line for each path: the path, then word, digits and commits of each name."""
    lines = []
    for path in sorted(counts):
        names = {name: count for name, count in counts[path].items() if count > 0}
        cells = (f"{name.word} {name.digits} {count}" for name, count in _sort(names))
        if names:
            lines.append(b"%b\0%b\n" % (path, _END.join(cells).encode()))
    return b"".join(lines)


def _format_recent(recent: Recent) -> str:
    """Return a line with the word, digits and last commit of each name."""
    return _END.join(f"{name.word} {name.digits} {commit}" for name, commit in recent.items())


def _parse_recent(line: str) -> Recent:
    rows = (cell.split(" ") for cell in line.split(_END) if cell)
    return {Name(word, digits): commit for word, digits, commit in rows}


def _sort(names: dict[Name, int]) -> Iterable[tuple[Name, int]]:
    return sorted(names.items(), key=lambda item: (item[0].word, item[0].digits))


def _parse(text: bytes) -> Counts:
    counts = {}
    for line in text.split(b"\n")[:-1]:
        path, _end, cells = line.partition(b"\0")
        counts[path] = _parse_names(cells.decode())
    return counts


def _parse_names(text: str) -> dict[Name, int]:
    rows = (cell.split(" ") for cell in text.split(_END) if cell)
    return {Name(word, digits): int(count) for word, digits, count in rows}
