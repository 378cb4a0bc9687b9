"""Near-duplicates: does another memory of the tree say the same, in the same words or nearly so?

The same words (by `identity.fingerprint`) are an exact twin. A near twin shares so many terms that
one of the two says nothing new; the same sentence with another value, name or sign is none, that
is a conflict. A memory that names its twin in a relation was written knowing it, and may stay.

Candidates are found by their words: each memory has a set of bits, one for each of its words, and
two memories that share few bits are no candidates. Bits follow from the bytes of one file and cost
little, so that a tree that was never seen is taken in at once. The rows of a tree (path, blob,
status, what it replaces, bits) are kept in the cache under the id of the tree; git names the files
that differ from it by now, and only those are read. So the answer is that of reading everything,
with or without the cache.
"""

from __future__ import annotations

import os
from zlib import crc32

from memtool.gate.kin import Row
from memtool.memory.changes import stem
from memtool.memory.fields import DEFAULT_CATEGORIES, RELATIONS
from memtool.memory.problem import Problem
from memtool.store import cache
from memtool.store.snapshot import is_memory_path
from memtool.store.tree import Record
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from memtool.memory.fields import Category
    from memtool.memory.memory import Memory
    from memtool.store.git import RawChange
    from memtool.store.repository import Repository

THRESHOLD_KEY = "check.duplicate_threshold"
"""The setting: least `likeness` of a near twin."""
DEAD = frozenset({"deprecated", "archived", "deleted"})
"""Statuses of memories that are not in use: what they said may be said again."""

FOLDER = "twins"
"""Where the rows of trees are kept, in the cache directory."""
KIND = "twins 3"
KEPT = 4
"""Trees that stay: branches and worktrees share the cache."""
MOST_CHANGED = 200
"""With more memories changed since, the rows of the tree of HEAD are kept instead."""
_SECTIONS = {"rows": "B", "starts": "Q", "bits": "B"}

BITS = 1024
_BYTES = BITS // 8
MOST_KNOWN = 1 << 18
WORD_BYTES = 6
"""Words are compared by so many of their first bytes: `deploys` and `deployed` are one."""
SHORT = 3
"""Words of at most so many bytes are left out, unless they are numbers."""
LEAST_SHARED = 0.4
"""Share of the words of the shorter text that is in both, from which two are candidates."""
VERIFIED = 8
"""Candidates that are compared in full: those most alike, then by path."""
MOST_ALONE = 300
"""With more memories asked about at once, all are joined by their rare words."""
RARE_WORDS = 24
MOST_HOLDING = 500
"""A word that more texts hold joins none."""

_NUMBER_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve fifteen twenti thirti forti"
    " fifti sixti seventi eighti nineti hundr thousand million billion half doubl tripl"
)
NUMBER_WORDS = frozenset(_NUMBER_WORDS.split())
"""Stems of number words: they are values, like digits."""
_VALUE_CHARS = frozenset("0123456789_./:")
_PLAIN = bytes(
    code + 32 if 65 <= code <= 90 else code if chr(code).isalnum() and code < 128 else 32
    for code in range(256)
)
"""Lower case, and a space for what is in no word."""


class SimilarMemory(Value):
    """A memory that may say the same; `is_exact` where it does so in the same words."""

    record: Record
    is_exact: bool


class Twin(Value):
    """The memory that says it already. `likeness` is 1 for an exact one."""

    record: Record
    is_exact: bool
    likeness: float


# What two memories have in common.


def likeness(one: Memory, other: Memory) -> float:
    """Return how far two memories say the same, 0 to 1: the cosine of their sets of terms.

    0 where each names something that the other does not (the same sentence about another port,
    version, file or person is another claim), and where they oppose each other.
    """
    mine, theirs = content_of(one), content_of(other)
    return 0.0 if _differ(one, mine, other, theirs) else cosine(mine, theirs)


def _differ(one: Memory, mine: frozenset[str], other: Memory, theirs: frozenset[str]) -> bool:
    """Tell whether something sets two memories apart, however alike their words are."""
    from memtool.gate import contradictions

    if names_of(one) - theirs and names_of(other) - mine:
        return True
    return contradictions.between(one, other) is not None


def cosine(one: frozenset[str], other: frozenset[str]) -> float:
    """Return how far two sets of terms are the same, 0 to 1 (Ochiai 1957)."""
    if not one or not other:
        return 0.0
    return float(len(one & other) / (len(one) * len(other)) ** 0.5)


def text_of(memory: Memory) -> str:
    """Return title and body without headings, which are the template's words, not the author's."""
    lines = [line for line in memory.body.splitlines() if not line.lstrip().startswith("#")]
    return "\n".join([memory.title, *lines])


def content_of(memory: Memory) -> frozenset[str]:
    """Return the terms of a memory without stop words."""
    from memtool.index.analyzer import is_stop, terms  # most memories are like no other

    return frozenset(term for term in set(terms(text_of(memory))) if not is_stop(term))


def names_of(memory: Memory) -> frozenset[str]:
    """Return the terms that name one thing.

    They are values, paths, identifiers, and words with a capital inside a sentence.
    """
    from memtool.index.analyzer import is_stop, terms

    text = text_of(memory)
    names = {term for term in terms(text) if is_value(term)}
    for line in text.splitlines():
        starts = True
        for word in line.split():
            bare = word.strip("`*_\"'()[],;:")
            if bare[:1].isupper() and not starts:
                names.update(terms(bare))
            starts = word.endswith((".", "!", "?", ":"))
    return frozenset(term for term in names if not is_stop(term))


def is_value(term: str) -> bool:
    """Tell whether a term is a number or a compound such as a path, a version or an identifier."""
    return term in NUMBER_WORDS or not _VALUE_CHARS.isdisjoint(term)


# Words and bits, by which candidates are found.


class _Numbers(dict[bytes, int]):
    """The number of each word that was seen, 0 for one that does not count."""

    def __missing__(self, word: bytes) -> int:
        counts = len(word) > SHORT or word.isdigit()
        number = self[word] = crc32(word[:WORD_BYTES]) if counts else 0
        return number


_numbers = _Numbers()


def words_of(text: bytes) -> set[int]:
    """Return a number for each word of a text: nearly the same text gives nearly the same."""
    if b"\n#" in text or text.startswith(b"#"):
        text = b"\n".join(line for line in text.split(b"\n") if not line.lstrip().startswith(b"#"))
    words: Iterable[bytes]
    if text.isascii():
        words = text.translate(_PLAIN).split()
    else:  # accents, and writing without spaces
        from memtool.index.analyzer import terms

        words = (term.encode(errors="replace") for term in terms(text.decode(errors="replace")))
    if len(_numbers) > MOST_KNOWN:
        _numbers.clear()
    found = set(map(_numbers.__getitem__, words))
    found.discard(0)
    return found


def words_in(memory: Memory) -> set[int]:
    """Return the words of title and body of a memory."""
    return words_of(f"{memory.title}\n{memory.body}".encode(errors="replace"))


def bits_of(words: Iterable[int]) -> int:
    """Return words as a set of `BITS` bits."""
    digits = bytearray(b"0" * BITS)
    for word in words:
        digits[word % BITS] = 49  # the digit 1: one number is read faster than a hundred are added
    return int(digits, 2)


def joined(texts: Sequence[set[int]], most: int = VERIFIED) -> list[list[int]]:
    """Return for each of many texts, given as words, the others that are most like it.

    They share rare words, and at least `LEAST_SHARED` of all words of the shorter one.
    """
    holding: dict[int, list[int]] = {}
    for at, words in enumerate(texts):
        for word in words:
            holding.setdefault(word, []).append(at)
    found = []
    for at, words in enumerate(texts):
        rare = sorted(words, key=lambda word: (len(holding[word]), word))[:RARE_WORDS]
        near = {other for word in rare if len(holding[word]) <= MOST_HOLDING
                for other in holding[word]} - {at}  # fmt: skip
        scores = []
        for other in near:
            shared, theirs = len(words & texts[other]), len(texts[other])
            if shared >= LEAST_SHARED * min(len(words), theirs):
                scores.append((-shared / (len(words) * theirs) ** 0.5, other))
        found.append([other for _score, other in sorted(scores)[:most]])
    return found


def row_of(path: str, oid: str, data: bytes, categories: Collection[str]) -> Row | None:
    """Return the row of a file, None where it is no memory; only what is needed is parsed."""
    head, end, body = data.partition(b"\n---\n")
    if not end or not head.startswith(b"---\n"):
        return row_of_memory(_parsed(data, categories), path, oid)
    if b"\nsupersedes:" in head or b"\nstatus:" in head:
        return row_of_memory(_parsed(data, categories), path, oid)
    start = head.find(b"\ntitle:")
    title = head[start + 7 :].partition(b"\n")[0] if start >= 0 else b""
    return Row(stem(path), path, "confirmed", (), oid, bits_of(words_of(title + b"\n" + body)))


def row_of_memory(memory: Memory | None, path: str, oid: str) -> Row | None:
    """Return the row of a memory that was read."""
    if memory is None:
        return None
    replaced = () if memory.status == "deleted" else memory.supersedes
    return Row(stem(path), path, memory.status, replaced, oid, bits_of(words_in(memory)))


def _parsed(data: bytes, categories: Collection[str]) -> Memory | None:
    from memtool.memory import document

    try:
        return document.read(data, "", categories)
    except document.Unreadable:
        return None


# The rows of a tree.


class Table:
    """The rows of one tree as they are kept, found in the bytes of the file."""

    def __init__(self, raw: memoryview) -> None:
        """Take the bytes of a file. Raises CorruptCache."""
        sections = cache.Sections(raw, KIND, _SECTIONS)
        (self.count,) = sections.numbers
        self._text = bytes(sections["rows"])
        self._starts = sections["starts"]
        self._bits = bytes(sections["bits"])

    @staticmethod
    def pack(rows: Sequence[Row]) -> bytes:
        """Return the bytes of the file."""
        from array import array

        texts = [_text(row) for row in rows]
        starts = [0]
        for text in texts:
            starts.append(starts[-1] + len(text))
        bits = b"".join([row.bits.to_bytes(_BYTES, "little") for row in rows])
        sections = {"rows": b"".join(texts), "starts": array("Q", starts).tobytes(), "bits": bits}
        return cache.pack(KIND, [len(rows)], sections)

    def holding(self, part: str) -> Iterator[int]:
        """Yield the numbers of the rows whose bytes hold some text."""
        from bisect import bisect_right

        wanted = os.fsencode(part)
        at = self._text.find(wanted)
        while at >= 0:
            number = bisect_right(self._starts, at) - 1
            yield number
            at = self._text.find(wanted, self._starts[number + 1])

    def row(self, number: int) -> Row:
        """Return a row by its number."""
        text = self._text[self._starts[number] : self._starts[number + 1]]
        _empty, path, oid, status, olds = os.fsdecode(text).split("\0")
        return Row(stem(path), path, status, tuple(olds.split()), oid, self._bits_of(number))

    def _bits_of(self, number: int) -> int:
        return int.from_bytes(self._bits[number * _BYTES : (number + 1) * _BYTES], "little")

    @cached_property
    def measured(self) -> list[tuple[int, float]]:
        """The bits of each row, and how many of them another text shares at least."""
        raw, made = self._bits, int.from_bytes
        bits = [made(raw[at : at + _BYTES], "little") for at in range(0, len(raw), _BYTES)]
        return [(one, LEAST_SHARED * one.bit_count()) for one in bits]


def _text(row: Row) -> bytes:
    return os.fsencode(f"\0{row.path}\0{row.oid}\0{row.status}\0 {' '.join(row.supersedes)} ")


class Rows:
    """Every memory of one tree: the rows of an earlier tree, and those of changed files above."""

    def __init__(
        self, changed: Iterable[Row], table: Table | None = None, gone: Iterable[str] = ()
    ) -> None:
        """Take the rows of changed files and a table that knows nothing of them.

        `gone` are further paths at which the table no longer holds.
        """
        self.changed = sorted(changed, key=lambda row: row.path)
        self._table = table
        paths = {row.path for row in self.changed}.union(gone)
        self._hidden = frozenset(
            number for path in paths for number in (table.holding(f"\0{path}\0") if table else ())
        )

    @property
    def count(self) -> int:
        """How many memories the tree has."""
        stored = self._table.count - len(self._hidden) if self._table else 0
        return stored + len(self.changed)

    def called(self, id_: str) -> list[Row]:
        """Return the rows with an id."""
        found = [row for row in self.changed if row.id == id_]
        return found + [row for row in self._stored(f"/{id_}.md\0") if row.id == id_]

    def newer(self, id_: str) -> list[Row]:
        """Return the rows of what supersedes an id."""
        found = [row for row in self.changed if id_ in row.supersedes]
        return found + [row for row in self._stored(f" {id_} ") if id_ in row.supersedes]

    def _stored(self, part: str) -> list[Row]:
        table = self._table
        if table is None:
            return []
        return [table.row(n) for n in table.holding(part) if n not in self._hidden]

    def like(self, bits: int) -> list[Row]:
        """Return the rows that share most words with a text, the most alike first."""
        least = LEAST_SHARED * bits.bit_count()
        near = [row for row in self.changed if _is_like(bits, row.bits)]
        if self._table is not None:
            numbers = [
                number
                for number, (other, theirs) in enumerate(self._table.measured)
                if (shared := (bits & other).bit_count()) >= least or shared >= theirs
            ]
            near += [self._table.row(n) for n in numbers if n not in self._hidden]
        return sorted(near, key=lambda row: (-_alike(bits, row.bits), row.path))


def _is_like(one: int, other: int) -> bool:
    shared = (one & other).bit_count()
    return shared >= LEAST_SHARED * min(one.bit_count(), other.bit_count())


def _alike(one: int, other: int) -> float:
    both = one.bit_count() * other.bit_count()
    return float((one & other).bit_count() / both**0.5) if both else 1.0


class Neighbours:
    """The memories of one tree that a new one may repeat."""

    def __init__(
        self,
        rows: Rows,
        known: Iterable[Record] = (),
        read: Callable[[Sequence[str]], Mapping[str, Memory]] = lambda _oids: {},
    ) -> None:
        """Take the rows of the tree; memories that are not known are read by their blobs."""
        self.rows = rows
        self._known = {(record.path, record.oid): record for record in known}
        self._read = read
        self._told: dict[tuple[str, str], list[SimilarMemory]] = {}

    def of(self, judged: Sequence[Record]) -> list[list[SimilarMemory]]:
        """Return for each memory those that it may repeat, the exact ones first.

        They are heads in use. None is the memory itself, another file with its id, or what it
        replaces.
        """
        rest = [record for record in judged if (record.path, record.oid) not in self._told]
        for record, near in zip(rest, self._of(rest), strict=True):
            self._told[record.path, record.oid] = near
        found = [self._told[record.path, record.oid] for record in judged]
        self._told.pop(("", ""), None)  # a draft has no name yet
        return found

    def _of(self, judged: Sequence[Record]) -> list[list[SimilarMemory]]:
        likely = self._all_likely(judged) if len(judged) > MOST_ALONE else None
        if likely is None:
            likely = [self.rows.like(bits_of(words_in(record.memory))) for record in judged]
        chosen = []
        for record, rows in zip(judged, likely, strict=True):
            counting = (row for row in rows if self._counts(row, record))
            chosen.append([row for row, _place in zip(counting, range(VERIFIED), strict=False)])
        wanted = {row.oid for rows in chosen for row in rows
                  if (row.path, row.oid) not in self._known}  # fmt: skip
        read = self._read(sorted(wanted - {""})) if wanted else {}
        found = []
        for record, rows in zip(judged, chosen, strict=True):
            near = [self._found(record, row, read) for row in rows]
            found.append(sorted(filter(None, near), key=lambda f: (not f.is_exact, f.record.path)))
        return found

    def _all_likely(self, judged: Sequence[Record]) -> list[list[Row]] | None:
        """Return what is like each of many memories, None where not all of the tree are known."""
        records = list(self._known.values())
        place = {(record.path, record.oid): at for at, record in enumerate(records)}
        if len(records) < self.rows.count or not place.keys() >= {(r.path, r.oid) for r in judged}:
            return None
        rows = [self._row(record) for record in records]
        near = joined([words_in(record.memory) for record in records], 2 * VERIFIED)
        return [[rows[other] for other in near[place[one.path, one.oid]]] for one in judged]

    def _row(self, record: Record) -> Row:
        memory = record.memory
        return Row(memory.id, record.path, memory.status, memory.supersedes, record.oid)

    def _counts(self, row: Row, judged: Record) -> bool:
        return not (
            row.status in DEAD
            or row.path == judged.path
            or row.id == judged.id
            or row.id in judged.memory.supersedes
            or self.rows.newer(row.id)
        )

    def _found(self, judged: Record, row: Row, read: Mapping[str, Memory]) -> SimilarMemory | None:
        from memtool.memory import ids

        record = self._known.get((row.path, row.oid))
        if record is None:
            if row.oid not in read:
                return None
            record = Record(read[row.oid], row.path, row.oid)
        if record.memory.id == judged.memory.id:
            return None
        same = ids.fingerprint(judged.memory) == ids.fingerprint(record.memory)
        return SimilarMemory(record, same)


def among(records: Iterable[Record]) -> Neighbours:
    """Return the neighbours among some records alone."""
    known = list(records)
    rows = (row_of_memory(record.memory, record.path, record.oid) for record in known)
    return Neighbours(Rows(filter(None, rows)), known)


# Where neighbours are looked for.


class Place(Value):
    """A repository, its memory directory, and which categories are known.

    `is_kept` says whether rows may be left in the cache. `known` need not be read again.
    """

    repository: Repository
    directory: str
    categories: Collection[str]
    is_kept: bool = True
    known: Sequence[Record] = ()

    @property
    def folder(self) -> str:
        return os.path.join(self.repository.cache_dir, FOLDER)

    @property
    def prefix(self) -> str:
        """How the names of this place's files begin; the id of their tree follows."""
        return f"{cache.digest(self.directory, *sorted(self.categories))}-"

    def read(self, oids: Sequence[str]) -> dict[str, Memory]:
        """Return memories by the ids of their blobs; what is none is left out."""
        read = {oid: _parsed(data, self.categories) for oid, data in self.blobs(oids).items()}
        return {oid: memory for oid, memory in read.items() if memory is not None}

    def blobs(self, oids: Sequence[str]) -> dict[str, bytes]:
        """Return blobs by their ids."""
        from memtool.memory.document import MAX_BYTES

        if not oids:
            return {}
        return dict(zip(oids, self.repository.git.blobs(oids, MAX_BYTES), strict=True))


def of_index(
    repository: Repository,
    directory: str,
    categories: Collection[str],
    *,
    known: Sequence[Record] = (),
) -> Neighbours:
    """Return the neighbours in what git's index holds; `known` need not be read again."""
    place = Place(repository, directory, categories, known=known)
    return _opened(place, lambda base: _changes(place, "diff-index", "--cached", base))


def of_staged(
    repository: Repository,
    directory: str,
    categories: Collection[str],
    staged: Sequence[RawChange],
    known: Sequence[Record],
) -> Neighbours:
    """Return the neighbours in what git's index holds, given where it is not as HEAD.

    Reading the index once more would cost more than all else in a large tree, so the tree that is
    kept is compared with that of HEAD.
    """
    place = Place(repository, directory, categories, known=known)
    head = _head_tree(repository)
    ours = {
        row.path: row.oid if row.mode.startswith("100") and row.status not in ("D", "U") else ""
        for row in staged
        if is_memory_path(row.path, directory)
    }
    return _opened(place, lambda base: _between(place, base, head) | ours, head)


def of_worktree(
    repository: Repository,
    directory: str,
    categories: Collection[str],
    *,
    known: Sequence[Record] = (),
    is_kept: bool = True,
) -> Neighbours:
    """Return the neighbours among the files on disk."""
    place = Place(repository, directory, categories, is_kept, known)

    def changes(base: str) -> dict[str, str]:
        untracked = repository.git.names("ls-files", "--others", "-z", "--", directory)
        new = {path: "0" for path in untracked if is_memory_path(path, directory)}
        return _changes(place, "diff-index", base) | new

    return _opened(place, changes)


def of_commit(
    repository: Repository,
    directory: str,
    categories: Collection[str],
    revision: str,
    *,
    known: Sequence[Record] = (),
) -> Neighbours:
    """Return the neighbours in the tree of a commit. Raises MemtoolError where there is none."""
    place = Place(repository, directory, categories, known=known)
    commit = repository.git.rev(revision)
    return _opened(place, lambda base: _between(place, base, commit))


def _head_tree(repository: Repository) -> str:
    from memtool.gate.index_diff import EMPTY_TREE

    (info,) = repository.git.infos(["HEAD^{tree}"])
    return info[0] if info is not None else EMPTY_TREE[repository.object_format]


def _between(place: Place, base: str, other: str) -> dict[str, str]:
    """Return what differs between two trees."""
    from memtool.gate.index_diff import without_index

    if base == other:
        return {}
    return _changes(place, "diff-tree", "-r", base, other, env=without_index(place.repository))


def _changes(place: Place, *compare: str, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what differs: paths with a blob, zeros for a file to read, empty for none."""
    from memtool.gate.index_diff import by_path

    rows = place.repository.git.diff_raw(*compare, "--no-renames", "--", place.directory, env=env)
    return {
        row.path: row.oid if row.mode.startswith("100") and row.status not in ("D", "U") else ""
        for row in by_path(rows)
        if is_memory_path(row.path, place.directory)
    }


def _opened(place: Place, changes: Callable[[str], dict[str, str]], head: str = "") -> Neighbours:
    """Return the neighbours on the rows last used, or on new ones where much differs from them."""
    from memtool.store.git import GitError

    table, base = _last_used(place)
    changed: dict[str, str] = {}
    if table is not None:
        try:
            changed = changes(base)
        except GitError:  # its tree is gone, as after a rewritten history
            table = None
    if table is None or len(changed) > MOST_CHANGED:
        head = head or _head_tree(place.repository)
        if table is None or head != base:
            table = _table_of(place, head, table)
            changed = changes(head)
    is_loose = {path: bool(oid) and not oid.strip("0") for path, oid in changed.items()}
    blobs = place.blobs(
        sorted({oid for path, oid in changed.items() if oid and not is_loose[path]})
    )
    rows, known = [], list(place.known)
    for path, oid in changed.items():
        data = _file(place, path) if is_loose[path] else blobs.get(oid)
        if data is not None and is_loose[path]:
            memory = _parsed(data, place.categories)
            rows.append(row_of_memory(memory, path, ""))
            if memory is not None:
                known.append(Record(memory, path, ""))
        elif data is not None:
            rows.append(row_of(path, oid, data, place.categories))
    return Neighbours(Rows(filter(None, rows), table, changed), known, place.read)


def _file(place: Place, path: str) -> bytes | None:
    from memtool.memory.document import MAX_BYTES
    from memtool.store.files import read_regular

    try:
        return read_regular(os.path.join(place.repository.top, path), MAX_BYTES + 1)
    except OSError:
        return None


def _last_used(place: Place) -> tuple[Table | None, str]:
    try:
        found = [(-entry.stat().st_mtime_ns, entry.name) for entry in os.scandir(place.folder)
                 if entry.name.startswith(place.prefix)]  # fmt: skip
    except OSError:
        return None, ""
    for _age, name in sorted(found):
        try:
            return Table(cache.mapped(os.path.join(place.folder, name))), name[len(place.prefix) :]
        except cache.CorruptCache:
            continue
    return None, ""


def _table_of(place: Place, tree: str, old: Table | None) -> Table | None:
    """Return the rows of a tree: those that are kept, or new ones."""
    path = os.path.join(place.folder, place.prefix + tree)
    try:
        table = Table(cache.mapped(path))
    except cache.CorruptCache:
        data = Table.pack(_rows_of(place, tree, old))
        if place.is_kept:
            cache.write(place.folder, place.prefix + tree, data, KEPT, place.prefix)
        return Table(memoryview(data))
    if place.is_kept:
        cache.touch(path)
    return table


def _rows_of(place: Place, tree: str, old: Table | None) -> list[Row]:
    """Return the rows of a tree, by path; what is known already is not read again."""
    entries = [
        (entry.path, entry.oid)
        for entry in place.repository.git.ls_tree(tree, place.directory)
        if entry.mode.startswith("100") and is_memory_path(entry.path, place.directory)
    ]
    stored = map(old.row, range(old.count)) if old is not None else ()
    known = {(row.path, row.oid): row for row in stored}
    blobs = place.blobs(sorted({oid for path, oid in entries if (path, oid) not in known}))
    rows = (
        known.get((path, oid)) or row_of(path, oid, blobs[oid], place.categories)
        for path, oid in sorted(entries)
    )
    return [row for row in rows if row is not None]


# The verdict.


def twins(
    judged: Sequence[Record],
    neighbours: Neighbours,
    threshold: float,
    now: int,
    categories: Mapping[str, Category] = DEFAULT_CATEGORIES,
) -> list[Twin | None]:
    """Return for each memory the living one that says the same: the most alike, then by id.

    A memory that is itself deleted or archived repeats nothing. A relation that names the near
    twin makes it none.
    """
    terms: dict[tuple[str, str], frozenset[str]] = {}

    def content(record: Record) -> frozenset[str]:
        key = (record.path, record.oid)
        if not record.path:
            return content_of(record.memory)
        if key not in terms:
            terms[key] = content_of(record.memory)
        return terms[key]

    def alike(one: Record, other: Record) -> float:
        mine, theirs = content(one), content(other)
        near = cosine(mine, theirs)
        if near >= threshold and _differ(one.memory, mine, other.memory, theirs):
            return 0.0
        return near

    return [
        _best(record, near, alike, threshold, now, categories)
        if near and _lives(record.memory, now, categories)
        else None
        for record, near in zip(judged, neighbours.of(judged), strict=True)
    ]


def _best(
    record: Record,
    near: Sequence[SimilarMemory],
    alike: Callable[[Record, Record], float],
    threshold: float,
    now: int,
    categories: Mapping[str, Category],
) -> Twin | None:
    """Return which of some neighbours says what a memory says."""
    best: Twin | None = None
    for candidate in near:
        other = candidate.record.memory
        if not _lives(other, now, categories):
            continue
        is_related = any(other.id in record.memory.items(key) for key in RELATIONS)
        share = 1.0 if candidate.is_exact else alike(record, candidate.record)
        if candidate.is_exact or (share >= threshold and not is_related):
            twin = Twin(candidate.record, candidate.is_exact, share)
            best = twin if best is None else min(best, twin, key=_order)
    return best


def _lives(memory: Memory, now: int, categories: Mapping[str, Category]) -> bool:
    """Tell whether a memory is alive and says something itself, as no generated digest does."""
    from memtool.memory import lifecycle
    from memtool.memory.memory import is_generated  # most memories are like no other

    is_alive = lifecycle.state(memory, now, categories) == lifecycle.ALIVE
    return is_alive and not is_generated(memory)


def _order(twin: Twin) -> tuple[bool, float, str, str]:
    return not twin.is_exact, -twin.likeness, twin.record.id, twin.record.path


def problems(
    judged: Sequence[Record],
    neighbours: Neighbours,
    threshold: float,
    now: int,
    categories: Mapping[str, Category] = DEFAULT_CATEGORIES,
    *,
    among: Collection[str] = (),
) -> list[Problem]:
    """Return a problem for each memory that is said already, in their order.

    Of two judged memories that repeat each other only the later one is reported; the paths of
    `among` count as judged for that.
    """
    places = {record.path for record in judged}.union(among)
    found = []
    for record, twin in zip(
        judged, twins(judged, neighbours, threshold, now, categories), strict=True
    ):
        if twin is None or (twin.record.path in places and _age(record) < _age(twin.record)):
            continue
        other = twin.record
        how = (
            "says the same as"
            if twin.is_exact
            else f"says nearly ({twin.likeness:.2f}) the same as"
        )
        found.append(
            Problem(
                record.path,
                1,
                "duplicate",
                f"it {how} {other.id}, {other.memory.title!r}",
                hint(other.id, is_exact=twin.is_exact),
                id=record.id,
            )
        )
    return found


def hint(id_: str, *, is_exact: bool) -> str:
    """Return what to do about a twin."""
    instead = f"memtool supersede {id_} TITLE replaces it"
    if is_exact:
        return f"leave this one out, or {instead}"
    return f"{instead}; related_to: [{id_}] says that both are meant"


def _age(record: Record) -> tuple[int, str, str]:
    return record.memory.timestamp, record.id, record.path
