"""The memories of an index, each read from its row when it is asked for.

What is asked about thousands of memories is a column: since when and until when each is alive, from
when it is due for review, when it was written, and its kind, which has the fields that many
memories share. Filters ask SQLite for numbers, and open only the memories that they show.
"""

from __future__ import annotations

import zlib

from memtool.index import threads
from memtool.memory import lifecycle, timestamps
from memtool.memory.memory import Memory
from memtool.store.cache import CorruptCache
from memtool.store.tree import Record
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from memtool.memory.fields import Category
    from memtool.memory.memory import Fields, FieldValue
    from memtool.store.state import Cell, Row, Rows


ROW, IS, ITEM, PAIR = "\x1d", "\x1e", "\x1f", "\x1c"
"""What parts fields, a key from its text, and what ends each item of a list and half of a pair.
No field may contain such a control character."""
KIND_KEYS = (
    "type",
    "category",
    "status",
    "confidence",
    "importance",
    "fade_rate",
    "action_required",
    "temporal_class",
    "privacy",
)
"""Fields of which memories of one kind have the same."""
HELD_KEYS = ("awaiting", "trigger_phrases", "question_types", "checked", "derived_from")
"""Fields that all or none of a kind have, whatever is in them."""
_PRESENT = "+"
LISTED_KEYS = ("files", "source", "tags")
"""Lists whose items are looked through for the memories that name a file or have a tag."""
_MOST_ROWS = 20_000
"""Rows that are kept as they were read, about 10 MB."""


class MemoryRow(Value):
    """A row of the table `memory`; the last cells are as they are stored.

    `begin` and `until` are the first and the last second of its life, `due` the last second before
    it is due for review, None for no limit. `written` is the second of its timestamp.
    """

    n: int
    id: str
    path: str
    oid: str
    kind: int
    begin: int | None
    until: int | None
    due: int | None
    written: int
    length: int
    head_length: int
    thread: str
    thread_place: str
    fields: Cell

    def is_alive(self, now: int) -> bool:
        """Tell whether it is alive at a second, by the categories that the index was made with."""
        is_begun = self.begin is None or self.begin <= now
        return is_begun and (self.until is None or now <= self.until)


class StoredMemory:
    """A memory of an index: its row, with the fields packed, and where its body is."""

    __slots__ = ("_memories", "_row")

    def __init__(self, memories: MemoryRows, row: MemoryRow) -> None:
        self._memories = memories
        self._row = row

    @property
    def known(self) -> Fields:
        return {"id": self._row.id}

    @property
    def timestamp(self) -> int:
        return self._row.written

    @property
    def withheld(self) -> tuple[str, ...]:
        return self._memories.withheld.get(self._row.n, ())

    def fields(self) -> Fields:
        return unpacked(text_of(self._row.fields))

    def body(self) -> str:
        return self._memories.body(self._row.n)


class MemoryRows:
    """The memories of one index. What it returns raises CorruptCache where a row is damaged."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._known: dict[int, MemoryRow] = {}

    def meta(self, name: str) -> Cell:
        """Return a value of the table `meta`, None where it has none."""
        row = self._rows.one("meta", name)
        return None if row is None else row[1]

    @cached_property
    def count(self) -> int:
        """How many memories there are."""
        return self.number("count")

    @cached_property
    def size(self) -> int:
        """One more than the largest number that a memory has ever had."""
        return self.number("next")

    def number(self, name: str) -> int:
        """Return a number of the table `meta`. Raises CorruptCache."""
        return _number(self.meta(name))

    @property
    def basis(self) -> tuple[int, int]:
        """The number of memories, and of their terms, that bm25s's scores were made with."""
        return self.number("basis_count"), self.number("basis_length")

    @cached_property
    def version(self) -> str:
        """A text that differs from that of any other state of the memories."""
        return str(self.meta("version"))

    # The rows

    def row(self, number: int) -> MemoryRow:
        """Return the row of a memory. Raises CorruptCache."""
        known = self._known.get(number)
        if known is None:
            row = self._rows.one("memory", number)
            if row is None:
                raise CorruptCache(f"memory {number} is gone")
            known = self._keep(row)
        return known

    def load(self, numbers: Iterable[int]) -> None:
        """Read the rows of many memories at once, since each is asked for next."""
        wanted = [number for number in numbers if number not in self._known]
        if len(wanted) * 3 > self.count:
            for row in self._rows.some("memory", "1"):
                self._keep(row)
            return
        for row in self._rows.many("memory", (), wanted):
            self._keep(row)

    def _keep(self, row: Row) -> MemoryRow:
        if len(self._known) >= max(_MOST_ROWS, self.count):
            self._known.clear()
        found = _read(row)
        self._known[found.n] = found
        return found

    def record(self, number: int) -> Record:
        """Return a memory with its path. Raises CorruptCache."""
        row = self.row(number)
        return Record(Memory(stored=StoredMemory(self, row)), row.path, row.oid)

    def path(self, number: int) -> str:
        """Return the path of a memory."""
        return self.row(number).path

    def id(self, number: int) -> str:
        """Return the id of a memory."""
        return self.row(number).id

    def oid(self, number: int) -> str:
        """Return the blob of a memory."""
        return self.row(number).oid

    def written(self, number: int) -> int:
        """Return the second at which a memory was written."""
        return self.row(number).written

    def body(self, number: int) -> str:
        """Return the body of a memory."""
        row = self._content(number)
        return inflated(row[1], self.dictionaries.get("body", b"")).decode(errors="surrogatepass")

    def text(self, number: int) -> bytes:
        """Return a memory's text as terms; see `scoring.searchable`. Raises CorruptCache."""
        return inflated(self._content(number)[2], self.dictionaries.get("text", b""))

    def _content(self, number: int) -> Row:
        row = self._rows.one("content", number)
        if row is None:
            raise CorruptCache(f"the text of memory {number} is gone")
        return row

    @cached_property
    def dictionaries(self) -> dict[str, bytes]:
        """What bodies and texts are compressed by."""
        rows = self._rows.some("dictionary", "1")
        return {str(name): words for name, words in rows if isinstance(words, bytes)}

    # Numbers

    def numbers(self, where: str = "1", *values: Cell) -> list[int]:
        """Return the memories that a condition in SQL on the table `memory` holds for."""
        found = self._rows.select(f"SELECT number FROM memory WHERE {where}", *values)  # noqa: S608
        return [_number(row[0]) for row in found]

    def numbers_of(self, id_: str) -> list[int]:
        """Return the memories with an id, by path."""
        found = self.numbers("id = ?", cell(id_))
        return sorted(found, key=self.path) if len(found) > 1 else found

    def number_at(self, path: str) -> int | None:
        """Return the number of the memory at a path, None where there is none."""
        numbers = self.numbers_of(path.rpartition("/")[2][:-3])
        return next((number for number in numbers if self.path(number) == path), None)

    def by_id(self) -> list[tuple[str, str, int]]:
        """Return id, path and number of all memories, sorted."""
        found = self._rows.select("SELECT id, path, number FROM memory ORDER BY id")
        return sorted((text_of(row[0]), text_of(row[1]), _number(row[2])) for row in found)

    def blobs(self) -> list[tuple[int, str, str]]:
        """Return number, path and blob of every memory."""
        return [
            (number, path.decode(errors="surrogatepass"), oid.hex())
            for number, path, oid in self.stamps()
        ]

    def stamps(self) -> Iterator[tuple[int, bytes, bytes]]:
        """Return number, path and blob of every memory as they are stored, unchecked."""
        return self._rows.select("SELECT number, path, oid FROM memory")  # type: ignore[return-value]

    def later_than(self, second: int) -> set[int]:
        """Return the memories that were written after a second."""
        return set(self.numbers("written > ?", second))

    def not_alive(self, now: int) -> set[int]:
        """Return the memories that are not alive at a second."""
        return {*self.numbers("until < ?", now), *self.numbers("begin > ?", now)}

    def ended(self, now: int) -> list[tuple[int, int]]:
        """Return number and kind of the memories whose life is over at a second."""
        found = self._rows.select("SELECT number, kind FROM memory WHERE until < ?", now)
        return [(_number(row[0]), _number(row[1])) for row in found]

    def due(self, now: int) -> list[int]:
        """Return the memories that are due for review at a second."""
        return self.numbers("due < ?", now)

    def naming(self, text: str) -> list[int]:
        """Return the memories in whose fields a text stands."""
        return self.numbers("instr(fields, ?) > 0", cell(text))

    def listing(self, key: str, fits: Callable[[str], bool]) -> set[int]:
        """Return the memories that have an item which fits in a list; the key is a listed one."""
        found: set[int] = set()
        last, is_wanted = None, False
        for item, number in self._rows.select("SELECT item, number FROM named WHERE key = ?", key):
            if item != last:
                last, is_wanted = item, fits(text_of(item))
            if is_wanted:
                found.add(_number(number))
        return found

    # Kinds

    @cached_property
    def kinds(self) -> dict[int, Memory]:
        """Of each kind of memories one memory, with nothing but what all of it have."""
        rows = self._rows.some("kind", "1")
        return {_number(row[0]): Memory(unpacked(text_of(row[1])), "") for row in rows}

    def kind(self, number: int) -> Memory:
        """Return what all memories of the kind of a memory have."""
        try:
            return self.kinds[self.row(number).kind]
        except KeyError:
            raise CorruptCache(f"the kind of memory {number} is gone") from None

    def of_kinds(self, fits: Callable[[Memory], bool]) -> list[int]:
        """Return the memories whose kind fits."""
        wanted = [number for number, kind in self.kinds.items() if fits(kind)]
        return [n for kind in wanted for n in self.numbers("kind = ?", kind)]

    def count_by(self, key: str) -> dict[str, int]:
        """Return how many memories have each value of `type`, `category` or `status`."""
        found: dict[str, int] = {}
        for kind, count in self._rows.select("SELECT kind, count(*) FROM memory GROUP BY kind"):
            value = getattr(self.kinds[_number(kind)], key)
            found[value] = found.get(value, 0) + _number(count)
        return found

    # Relations

    @cached_property
    def links(self) -> list[tuple[int, str, bool, tuple[str, ...]]]:
        """Who supersedes what: number, id, whether it only proposes to, and the ids."""
        found: dict[tuple[int, str, bool], list[str]] = {}
        for number, _place, new, old, is_proposed in self._rows.some("link", "1"):
            key = _number(number), text_of(new), bool(is_proposed)
            found.setdefault(key, []).append(text_of(old))
        return [(*key, tuple(olds)) for key, olds in found.items()]

    @cached_property
    def targets(self) -> dict[str, list[int]]:
        """The memories here that others here supersede, by id."""
        found: dict[str, list[int]] = {}
        statement = "SELECT id, number FROM memory WHERE id IN (SELECT old FROM link)"
        for id_, number in self._rows.select(statement):
            found.setdefault(text_of(id_), []).append(_number(number))
        return found

    @cached_property
    def twins(self) -> list[str]:
        """Ids that stand twice."""
        return [text_of(row[0]) for row in self._rows.some("twin", "1")]

    @cached_property
    def withheld(self) -> dict[int, tuple[str, ...]]:
        """The memories in which secrets are masked, each with the kinds of these."""
        rows = self._rows.some("masked", "1")
        return {_number(row[0]): tuple(text_of(row[1]).split(" ")) for row in rows}

    def was_clean(self, oid: str) -> bool:
        """Tell whether a blob was a memory here before, and nothing had to be masked in it."""
        return self._rows.one("clean", bytes.fromhex(oid)) is not None

    @cached_property
    def has_threads(self) -> bool:
        """Whether any memory is in a thread."""
        return bool(self.numbers("thread IS NOT NULL LIMIT 1"))

    def thread_of(self, number: int) -> str:
        """Return the name of a memory's thread; empty where it is in none."""
        return self.row(number).thread if self.has_threads else ""

    def thread(self, name: str) -> list[int]:
        """Return the memories of a thread in their order."""
        found = self.numbers("thread = ?", cell(name))
        self.load(found)
        return sorted(found, key=lambda number: self.row(number).thread_place)


def _number(value: object) -> int:
    """Return a cell that must be a number. Raises CorruptCache."""
    if not isinstance(value, int):
        raise CorruptCache("a number is damaged")
    return value


def cell(text: str) -> Cell:
    """Return a text as a cell: bytes where it has characters that UTF-8 cannot write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")
    return text


def text_of(value: object) -> str:
    """Return the text that `cell` made a cell of. Raises CorruptCache."""
    try:
        found = value.decode(errors="surrogatepass") if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        found = None
    if not isinstance(found, str):
        raise CorruptCache("a text is damaged")
    return found


def _read(row: Any) -> MemoryRow:
    """Return a row of the table `memory` that its checksum has vouched for."""
    number, id_, path, oid, kind, begin, until, due, written, length, heads, *others = row
    thread, place, fields = others
    return MemoryRow(
        number,
        text_of(id_),
        path.decode(errors="surrogatepass"),
        oid.hex(),
        kind,
        begin,
        until,
        due,
        written,
        length,
        heads,
        "" if thread is None else text_of(thread),
        "" if place is None else text_of(place),
        fields,
    )


def unpacked(text: str) -> Fields:
    """Return the fields that `_packed` made a text of."""
    found: Fields = {}
    for row in text.split(ROW):
        if ITEM in row:
            key, *items = row.split(ITEM)
            found[key] = tuple(items[:-1])
        elif PAIR in row:
            key, *pairs = row.split(PAIR)
            found[key] = dict(zip(pairs[:-1:2], pairs[1::2], strict=True))
        else:
            key, _mark, value = row.partition(IS)
            found[key] = value
    return found


def _packed(key: str, value: FieldValue) -> str:
    """Return a field as it is stored."""
    if isinstance(value, str):
        return f"{key}{IS}{value}"
    if isinstance(value, tuple):
        return ITEM.join((key, *value, ""))
    parts = (part for pair in value.items() for part in pair)
    return PAIR.join((key, *parts, ""))


def _fields(memory: Memory) -> str:
    return ROW.join(_packed(key, value) for key, value in memory.fields.items())


def kind_of(memory: Memory) -> str:
    """Return the fields in which memories of one kind are alike, as they are stored."""
    fields = memory.fields
    rows = [_packed(key, fields[key]) for key in KIND_KEYS if fields.get(key)]
    rows += [f"{key}{IS}{_PRESENT}" for key in HELD_KEYS if fields.get(key)]
    return ROW.join(rows)


class Entry(Value):
    """A memory that is to be stored: its number, its text as terms, and the lengths of that."""

    n: int
    record: Record
    text: bytes
    length: int
    head_length: int


def store(
    rows: Rows,
    entries: Sequence[Entry],
    categories: Mapping[str, Category],
    dictionaries: Mapping[str, bytes],
) -> None:
    """Write memories with all that is asked about them, but not where their words are."""
    kinds = {text_of(row[1]): _number(row[0]) for row in rows.some("kind", "1")}
    known = len(kinds)
    packers = {name: _compressor(dictionaries.get(name, b"")) for name in ("body", "text")}
    rows.put_all(
        "memory",
        (
            _memory_row(
                entry, kinds.setdefault(kind_of(entry.record.memory), len(kinds)), categories
            )
            for entry in entries
        ),
    )
    rows.put_all(
        "kind",
        ((number, cell(text)) for text, number in list(kinds.items())[known:]),
    )
    rows.put_all(
        "content",
        (
            (
                entry.n,
                packers["body"](entry.record.memory.body.encode(errors="surrogatepass")),
                packers["text"](entry.text),
            )
            for entry in entries
        ),
    )
    rows.put_all("link", (row for entry in entries for row in _links(entry.n, entry.record)))
    rows.put_all("named", (row for entry in entries for row in listed(entry.n, entry.record)))
    masked = ((entry.n, entry.record.memory.withheld) for entry in entries)
    rows.put_all("masked", ((n, " ".join(kinds_)) for n, kinds_ in masked if kinds_))


def remove(rows: Rows, number: int, record: Record) -> None:
    """Remove what `store` wrote of a memory; its kind stays."""
    for row in listed(number, record):
        rows.remove("named", *row)
    for table in ("memory", "content", "link", "masked"):
        rows.remove(table, number)


def mark_twins(rows: Rows, ids: Iterable[str]) -> None:
    """Write which of some ids stand twice."""
    for id_ in ids:
        key = cell(id_)
        if (
            sum(1 for _row in rows.select("SELECT number FROM memory WHERE id = ? LIMIT 2", key))
            > 1
        ):
            rows.put("twin", key)
        else:
            rows.remove("twin", key)


def _memory_row(entry: Entry, kind: int, categories: Mapping[str, Category]) -> Row:
    record = entry.record
    memory = record.memory
    begin, until = _life(memory, categories)
    name = threads.thread_name(memory)
    return (
        entry.n,
        cell(record.id),
        record.path.encode(errors="surrogatepass"),
        bytes.fromhex(record.oid),
        kind,
        begin,
        until,
        lifecycle.due_at(memory, categories),
        memory.timestamp,
        entry.length,
        entry.head_length,
        cell(name) if name else None,
        cell(threads.thread_place(record)) if name else None,
        cell(_fields(memory)),
    )


def _life(memory: Memory, categories: Mapping[str, Category]) -> tuple[int | None, int | None]:
    """Return the first and the last second of a memory's life, as `lifecycle.state` sees it."""
    begin = memory.text("valid_from")
    until = lifecycle.expires_at(memory, categories)
    if memory.status == "deleted":
        at = memory.table("deleted").get("at")
        ended = timestamps.parse(at) - 1 if at else LONG_AGO
        until = ended if until is None else min(until, ended)
    elif memory.status == "archived":
        until = LONG_AGO
    return timestamps.start(begin) if begin else None, until


LONG_AGO = -1 << 62
"""The last second of the life of what ended at no known time."""


def _links(number: int, record: Record) -> Iterator[Row]:
    proposed = record.memory.proposes
    for place, old in enumerate(proposed or record.memory.replaces):
        yield number, place, cell(record.id), cell(old), int(bool(proposed))


def listed(number: int, record: Record) -> Iterator[Row]:
    """Yield the rows of the table `named` of a memory."""
    for key in LISTED_KEYS:
        for item in dict.fromkeys(record.memory.items(key)):
            yield key, cell(item), number


MOST_DICTIONARY = 8_192
"""Bytes of the words that texts are compressed by."""
MOST_SAMPLED = 2_000
"""Bodies of which words are counted for the dictionary ..."""
LEAST_COMMON = 4
"""... and how often a word must occur in them to be in it."""


def dictionary(words: Iterable[bytes]) -> bytes:
    """Return what texts are compressed by: some words, given with the commonest first."""
    common: list[bytes] = []
    room = MOST_DICTIONARY
    for word in words:
        room -= len(word) + 1
        if room < 0:
            break
        common.append(word)
    return b" ".join(reversed(common))  # what is near its end is cheapest to refer to


def common_words(records: Sequence[Record]) -> list[bytes]:
    """Return the words that are common in the bodies of some memories, the commonest first."""
    counts: dict[bytes, int] = {}
    for record in records[:: len(records) // MOST_SAMPLED + 1]:
        for word in record.memory.body.encode(errors="surrogatepass").split():
            counts[word] = counts.get(word, 0) + 1
    common = (word for word in counts if counts[word] >= LEAST_COMMON)
    return sorted(common, key=lambda word: (-counts[word], word))


def _compressor(words: bytes) -> Callable[[bytes], bytes]:
    """Return what compresses texts, each by itself, so that one is read without the others."""
    start = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=words)

    def packed(text: bytes) -> bytes:
        own = start.copy()
        return own.compress(text) + own.flush()

    return packed


def inflated(packed: object, words: bytes) -> bytes:
    """Return a text that was compressed by the help of some words. Raises CorruptCache."""
    assert isinstance(packed, bytes)
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS, words).decompress(packed)
    except zlib.error as error:
        raise CorruptCache(str(error)) from None
