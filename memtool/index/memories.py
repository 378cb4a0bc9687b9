"""The memories of an index, each read from its row when it is needed.

Properties that filters need of thousands of memories are columns: when the life of a memory begins
and ends, when it is due for review, when it was written, and its kind. A kind is the fields that
many memories share. Filters select numbers in SQL, and open only the memories that they show.
"""

from __future__ import annotations

import zlib

from memtool.index import threads
from memtool.memory import lifecycle, mentions, timestamps
from memtool.memory.memory import Memory
from memtool.memory.premises import find_premises
from memtool.store.cache import CorruptCacheError
from memtool.store.tree import Record
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from memtool.memory.fields import Category
    from memtool.memory.memory import Fields, FieldValue
    from memtool.store.state import Cell, Row, Rows


FIELD_SEPARATOR, KEY_SEPARATOR, ITEM_END, PAIR_END = "\x1d", "\x1e", "\x1f", "\x1c"
"""Separators of fields and of key and text; ends of list items and of halves of pairs.

No field may contain one of these control characters.
"""
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
"""Fields shared by all memories of a kind."""
PRESENCE_KEYS = (
    "awaiting",
    "trigger_phrases",
    "question_types",
    "checked",
    "derived_from",
    "settled_on",
    "valid_through",
)
"""Fields that all memories of a kind have, or none; their values may differ."""
_PRESENT = "+"
LISTED_KEYS = ("files", "source", "tags")
"""Lists that are indexed by item, to find the memories that name a file or have a tag."""
DOCUMENT, MENTION = "document", "mention"
"""Of an imported decision, its document and the paths that its text names, in the same table."""
PREMISE = "premise"
"""The ids that a memory rests on, in the same table."""
_MAX_CACHED_ROWS = 20_000
"""About 10 MB."""


class MemoryRow(Value):
    """A row of the table `memory`; `fields` is as it is stored.

    `begin` and `until` are the first and the last second of the memory's life, `due` the last
    second before its review is due; None for no limit. `written` is the second of its timestamp.
    """

    number: int
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
        """Return whether the memory is alive at a second, by the categories at indexing time."""
        is_begun = self.begin is None or self.begin <= now
        return is_begun and (self.until is None or now <= self.until)


class StoredMemory:
    """A memory of an index, whose fields and body are read when they are needed."""

    __slots__ = ("_memories", "_row")

    def __init__(self, memories: MemoryRows, row: MemoryRow) -> None:
        self._memories = memories
        self._row = row

    @property
    def parsed(self) -> Fields:
        return {"id": self._row.id}

    @property
    def timestamp(self) -> int:
        return self._row.written

    @property
    def withheld(self) -> tuple[str, ...]:
        return self._memories.withheld.get(self._row.number, ())

    def fields(self) -> Fields:
        return unpack(decode_cell(self._row.fields))

    def body(self) -> str:
        return self._memories.body(self._row.number)


class MemoryRows:
    """The memories of one index. Each method raises CorruptCache if a row is damaged."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._cached_rows: dict[int, MemoryRow] = {}

    def meta(self, name: str) -> Cell:
        """Return a value of the table `meta`, None if it is not there."""
        row = self._rows.get("meta", name)
        return None if row is None else row[1]

    @cached_property
    def count(self) -> int:
        """The number of memories."""
        return self.number("count")

    @cached_property
    def size(self) -> int:
        """The largest number that a memory has ever had, plus one."""
        return self.number("next")

    def number(self, name: str) -> int:
        """Return an integer of the table `meta`."""
        return _number(self.meta(name))

    @property
    def basis(self) -> tuple[int, int]:
        """The numbers of memories and of their terms when bm25s made the scores."""
        return self.number("basis_count"), self.number("basis_length")

    @cached_property
    def version(self) -> str:
        """A text that changes with every change of the memories."""
        return str(self.meta("version"))

    # The rows

    def row(self, number: int) -> MemoryRow:
        """Return the row of a memory."""
        memory_row = self._cached_rows.get(number)
        if memory_row is None:
            row = self._rows.get("memory", number)
            if row is None:
                raise CorruptCacheError(f"memory {number} is gone")
            memory_row = self._cache(row)
        return memory_row

    def load(self, numbers: Iterable[int]) -> None:
        """Read the rows of many memories at once; the caller needs each next."""
        wanted = [number for number in numbers if number not in self._cached_rows]
        if len(wanted) * 3 > self.count:
            for row in self._rows.find("memory", "1"):
                self._cache(row)
            return
        for row in self._rows.find_many("memory", (), wanted):
            self._cache(row)

    def _cache(self, row: Row) -> MemoryRow:
        if len(self._cached_rows) >= max(_MAX_CACHED_ROWS, self.count):
            self._cached_rows.clear()
        memory_row = _parse_row(row)
        self._cached_rows[memory_row.number] = memory_row
        return memory_row

    def record(self, number: int) -> Record:
        """Return a memory with its path and blob id."""
        row = self.row(number)
        return Record(Memory(stored=StoredMemory(self, row)), row.path, row.oid)

    def path(self, number: int) -> str:
        """Return the path of a memory."""
        return self.row(number).path

    def id(self, number: int) -> str:
        """Return the id of a memory."""
        return self.row(number).id

    def oid(self, number: int) -> str:
        """Return the blob id of a memory."""
        return self.row(number).oid

    def written(self, number: int) -> int:
        """Return the second at which a memory was written."""
        return self.row(number).written

    def body(self, number: int) -> str:
        """Return the body of a memory."""
        row = self._content(number)
        return inflate(row[1], self.dictionaries.get("body", b"")).decode(errors="surrogatepass")

    def text(self, number: int) -> bytes:
        """Return a memory's text as terms; see `scoring.analyze_document`."""
        return inflate(self._content(number)[2], self.dictionaries.get("text", b""))

    def _content(self, number: int) -> Row:
        row = self._rows.get("content", number)
        if row is None:
            raise CorruptCacheError(f"the text of memory {number} is gone")
        return row

    @cached_property
    def dictionaries(self) -> dict[str, bytes]:
        """The compression dictionaries of bodies and texts, by name."""
        rows = self._rows.find("dictionary", "1")
        return {str(name): words for name, words in rows if isinstance(words, bytes)}

    # Numbers

    def select_numbers(self, where: str = "1", *values: Cell) -> list[int]:
        """Return the memories that fulfil an SQL condition on the table `memory`."""
        rows = self._rows.select(f"SELECT number FROM memory WHERE {where}", *values)  # noqa: S608
        return [_number(row[0]) for row in rows]

    def find_by_id(self, id_: str) -> list[int]:
        """Return the memories with an id, by path."""
        numbers = self.select_numbers("id = ?", encode_cell(id_))
        return sorted(numbers, key=self.path) if len(numbers) > 1 else numbers

    def find_by_ids(self, ids: Iterable[str]) -> list[int]:
        """Return the memories with any of these ids."""
        import json  # few questions are about many memories

        where = "id IN (SELECT value FROM json_each(?))"
        return self.select_numbers(where, json.dumps([*ids]))

    def find_by_path(self, path: str) -> int | None:
        """Return the number of the memory at a path, None if there is none."""
        numbers = self.find_by_id(path.rpartition("/")[2][:-3])
        return next((number for number in numbers if self.path(number) == path), None)

    def match_ids(self, *patterns: str) -> list[tuple[str, int]]:
        """Return id and number of the memories whose id matches one of some SQL GLOB patterns."""
        where = " OR ".join(["id GLOB ?"] * len(patterns))
        rows = self._rows.select(f"SELECT id, number FROM memory WHERE {where}", *patterns)  # noqa: S608
        return [(decode_cell(row[0]), _number(row[1])) for row in rows]

    def list_ids(self) -> list[tuple[str, int]]:
        """Return id and number of all memories. All are asked for wherever one id is shortened."""
        rows = self._rows.select("SELECT id, number FROM memory ORDER BY id")  # the index of ids
        return [(decode_cell(row[0]), _number(row[1])) for row in rows]

    def list_by_id(self) -> list[tuple[str, str, int]]:
        """Return id, path and number of all memories, sorted."""
        rows = self._rows.select("SELECT id, path, number FROM memory ORDER BY id")
        return sorted((decode_cell(row[0]), decode_cell(row[1]), _number(row[2])) for row in rows)

    def list_blobs(self) -> list[tuple[int, str, str]]:
        """Return number, path and blob id of every memory."""
        return [
            (number, path.decode(errors="surrogatepass"), oid.hex())
            for number, path, oid in self.read_stamps()
        ]

    def read_stamps(self) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield number, path and blob id of every memory as stored, checksums not verified."""
        return self._rows.select("SELECT number, path, oid FROM memory")  # type: ignore[return-value]

    def find_written_after(self, second: int) -> set[int]:
        """Return the memories written after a second."""
        return set(self.select_numbers("written > ?", second))

    def find_not_alive(self, now: int) -> set[int]:
        """Return the memories that are not alive at a second."""
        return {*self.select_numbers("until < ?", now), *self.select_numbers("begin > ?", now)}

    def find_ended(self, now: int) -> list[tuple[int, int]]:
        """Return number and kind of the memories whose life ended before a second."""
        rows = self._rows.select("SELECT number, kind FROM memory WHERE until < ?", now)
        return [(_number(row[0]), _number(row[1])) for row in rows]

    def find_due(self, now: int) -> list[int]:
        """Return the memories that are due for review at a second."""
        return self.select_numbers("due < ?", now)

    def find_containing(self, text: str) -> list[int]:
        """Return the memories with a text in their fields."""
        return self.select_numbers("instr(fields, ?) > 0", encode_cell(text))

    def find_listing(self, key: str, fits: Callable[[str], bool]) -> set[int]:
        """Return the memories with an item that fits in the list `key`, one of `LISTED_KEYS`."""
        numbers: set[int] = set()
        last, is_wanted = None, False
        for item, number in self._rows.select("SELECT item, number FROM named WHERE key = ?", key):
            if item != last:
                last, is_wanted = item, fits(decode_cell(item))
            if is_wanted:
                numbers.add(_number(number))
        return numbers

    def find_mentioning(self, path: str) -> set[int]:
        """Return the imported decisions whose text names a path."""
        rows = self._rows.find("named", "key = ? AND item = ?", MENTION, encode_cell(path))
        return {_number(number) for _key, _item, number in rows}

    def list_imported(self) -> list[tuple[str, int]]:
        """Return id and number of the imported decisions."""
        statement = "SELECT id, number FROM named JOIN memory USING (number) WHERE key = ?"
        rows = self._rows.select(statement, DOCUMENT)
        return [(decode_cell(id_), _number(number)) for id_, number in rows]

    def find_absent(self, ids: Iterable[str]) -> set[str]:
        """Return those of these ids that no memory has."""
        import json  # few questions are about all memories

        is_there = "EXISTS (SELECT 1 FROM memory WHERE id = value)"
        statement = f"SELECT value FROM json_each(?) WHERE NOT {is_there}"  # noqa: S608
        return {decode_cell(row[0]) for row in self._rows.select(statement, json.dumps([*ids]))}

    def list_premises(self) -> list[tuple[int, str, str]]:
        """Return number and id of each memory that rests on others, and the id of each premise."""
        statement = "SELECT number, id, item FROM named JOIN memory USING (number) WHERE key = ?"
        rows = self._rows.select(statement, PREMISE)
        return [(_number(row[0]), decode_cell(row[1]), decode_cell(row[2])) for row in rows]

    def find_conclusions(self, id_: str) -> set[int]:
        """Return the memories that rest directly on an id."""
        rows = self._rows.find("named", "key = ? AND item = ?", PREMISE, encode_cell(id_))
        return {_number(number) for _key, _item, number in rows}

    # Kinds

    @cached_property
    def kinds(self) -> dict[int, Memory]:
        """For each kind one memory, with nothing but the fields of the kind."""
        rows = self._rows.find("kind", "1")
        return {_number(row[0]): Memory(unpack(decode_cell(row[1])), "") for row in rows}

    def kind(self, number: int) -> Memory:
        """Return the fields of the kind of a memory, as a memory."""
        try:
            return self.kinds[self.row(number).kind]
        except KeyError:
            raise CorruptCacheError(f"the kind of memory {number} is gone") from None

    def find_by_kind(self, fits: Callable[[Memory], bool]) -> list[int]:
        """Return the memories whose kind fits."""
        return [number for _written, number in self.find_dated_by_kind(fits)]

    def find_dated_by_kind(self, fits: Callable[[Memory], bool]) -> list[tuple[int, int]]:
        """Return timestamp and number of each memory whose kind fits."""
        kinds = [number for number, kind in self.kinds.items() if fits(kind)]
        statement = "SELECT written, number FROM memory WHERE kind = ?"
        rows = (row for kind in kinds for row in self._rows.select(statement, kind))
        return [(_number(written), _number(number)) for written, number in rows]

    def find_kinds(self, fits: Callable[[Memory], bool]) -> list[tuple[int, str, Memory]]:
        """Return number, id and kind of each memory whose kind fits."""
        kinds = [(number, kind) for number, kind in self.kinds.items() if fits(kind)]
        statement = "SELECT number, id FROM memory WHERE kind = ?"
        return [
            (_number(row[0]), decode_cell(row[1]), kind)
            for number, kind in kinds
            for row in self._rows.select(statement, number)
        ]

    def count_by(self, key: str) -> dict[str, int]:
        """Return how many memories have each value of `type`, `category` or `status`."""
        counts: dict[str, int] = {}
        for kind, count in self._rows.select("SELECT kind, count(*) FROM memory GROUP BY kind"):
            value = getattr(self.kinds[_number(kind)], key)
            counts[value] = counts.get(value, 0) + _number(count)
        return counts

    # Relations

    @cached_property
    def links(self) -> list[tuple[int, str, bool, tuple[str, ...]]]:
        """Each superseding memory: number, id, whether it is a proposal, and the superseded ids."""
        olds_by_link: dict[tuple[int, str, bool], list[str]] = {}
        for number, _place, new, old, is_proposed in self._rows.find("link", "1"):
            key = _number(number), decode_cell(new), bool(is_proposed)
            olds_by_link.setdefault(key, []).append(decode_cell(old))
        return [(*key, tuple(olds)) for key, olds in olds_by_link.items()]

    @cached_property
    def targets(self) -> dict[str, list[int]]:
        """The memories of this index that others of it supersede, by id."""
        numbers_by_id: dict[str, list[int]] = {}
        statement = "SELECT id, number FROM memory WHERE id IN (SELECT old FROM link)"
        for id_, number in self._rows.select(statement):
            numbers_by_id.setdefault(decode_cell(id_), []).append(_number(number))
        return numbers_by_id

    @cached_property
    def shared_ids(self) -> list[str]:
        """Ids that more than one memory has."""
        return [decode_cell(row[0]) for row in self._rows.find("twin", "1")]

    @cached_property
    def withheld(self) -> dict[int, tuple[str, ...]]:
        """The memories in which secrets are masked, with the kinds of secrets."""
        rows = self._rows.find("masked", "1")
        return {_number(row[0]): tuple(decode_cell(row[1]).split(" ")) for row in rows}

    def was_clean(self, oid: str) -> bool:
        """Return whether a blob was a memory of this index before, without secrets to mask."""
        return self._rows.get("clean", bytes.fromhex(oid)) is not None

    @cached_property
    def has_threads(self) -> bool:
        """Whether any memory is in a thread."""
        return bool(self.select_numbers("thread IS NOT NULL LIMIT 1"))

    def find_thread(self, number: int) -> str:
        """Return the name of a memory's thread, empty if it is not in one."""
        return self.row(number).thread if self.has_threads else ""

    def list_thread(self, name: str) -> list[int]:
        """Return the memories of a thread in their order."""
        numbers = self.select_numbers("thread = ?", encode_cell(name))
        self.load(numbers)
        return sorted(numbers, key=lambda number: self.row(number).thread_place)


def _number(value: object) -> int:
    """Return a cell that must be an integer. Raises CorruptCache."""
    if not isinstance(value, int):
        raise CorruptCacheError("a number is damaged")
    return value


def encode_cell(text: str) -> Cell:
    """Return a text as a cell: as bytes if it has characters that UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")
    return text


def decode_cell(value: object) -> str:
    """Return the text that `encode_cell` made a cell of. Raises CorruptCache."""
    try:
        text = value.decode(errors="surrogatepass") if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        text = None
    if not isinstance(text, str):
        raise CorruptCacheError("a text is damaged")
    return text


def _parse_row(row: Any) -> MemoryRow:
    """Parse a row of the table `memory` whose checksum was verified."""
    number, id_, path, oid, kind, begin, until, due, written, length, heads, *last_cells = row
    thread, place, fields = last_cells
    return MemoryRow(
        number,
        decode_cell(id_),
        path.decode(errors="surrogatepass"),
        oid.hex(),
        kind,
        begin,
        until,
        due,
        written,
        length,
        heads,
        "" if thread is None else decode_cell(thread),
        "" if place is None else decode_cell(place),
        fields,
    )


def unpack(text: str) -> Fields:
    """Return the fields that `_pack` made a text of."""
    fields: Fields = {}
    for row in text.split(FIELD_SEPARATOR):
        if ITEM_END in row:
            key, *items = row.split(ITEM_END)
            fields[key] = tuple(items[:-1])
        elif PAIR_END in row:
            key, *pairs = row.split(PAIR_END)
            fields[key] = dict(zip(pairs[:-1:2], pairs[1::2], strict=True))
        else:
            key, _mark, value = row.partition(KEY_SEPARATOR)
            fields[key] = value
    return fields


def _pack(key: str, value: FieldValue) -> str:
    if isinstance(value, str):
        return f"{key}{KEY_SEPARATOR}{value}"
    if isinstance(value, tuple):
        return ITEM_END.join((key, *value, ""))
    parts = (part for pair in value.items() for part in pair)
    return PAIR_END.join((key, *parts, ""))


def _pack_fields(memory: Memory) -> str:
    return FIELD_SEPARATOR.join(_pack(key, value) for key, value in memory.fields.items())


def pack_kind(memory: Memory) -> str:
    """Return the fields of a memory's kind, packed."""
    fields = memory.fields
    rows = [_pack(key, fields[key]) for key in KIND_KEYS if fields.get(key)]
    is_confirmed = "at" in memory.table("checked")  # without it, only what the author saw
    rows += [
        f"{key}{KEY_SEPARATOR}{_PRESENT}"
        for key in PRESENCE_KEYS
        if fields.get(key) and (key != "checked" or is_confirmed)
    ]
    return FIELD_SEPARATOR.join(rows)


class Entry(Value):
    """A memory to store, with its text as terms and the lengths of text and head in terms."""

    number: int
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
    """Write memories with everything except their postings."""
    kinds = {decode_cell(row[1]): _number(row[0]) for row in rows.find("kind", "1")}
    stored_kinds = len(kinds)
    packers = {name: _make_compressor(dictionaries.get(name, b"")) for name in ("body", "text")}
    rows.put_all(
        "memory",
        (
            _build_memory_row(
                entry, kinds.setdefault(pack_kind(entry.record.memory), len(kinds)), categories
            )
            for entry in entries
        ),
    )
    rows.put_all(
        "kind",
        ((number, encode_cell(text)) for text, number in list(kinds.items())[stored_kinds:]),
    )
    rows.put_all(
        "content",
        (
            (
                entry.number,
                packers["body"](entry.record.memory.body.encode(errors="surrogatepass")),
                packers["text"](entry.text),
            )
            for entry in entries
        ),
    )
    rows.put_all(
        "link", (row for entry in entries for row in _build_links(entry.number, entry.record))
    )
    rows.put_all(
        "named", (row for entry in entries for row in build_named_rows(entry.number, entry.record))
    )
    masked = ((entry.number, entry.record.memory.withheld) for entry in entries)
    rows.put_all("masked", ((n, " ".join(kinds_)) for n, kinds_ in masked if kinds_))


def remove(rows: Rows, number: int, record: Record) -> None:
    """Remove everything that `store` wrote of a memory except its kind."""
    for row in build_named_rows(number, record):
        rows.remove("named", *row)
    for table in ("memory", "content", "link", "masked"):
        rows.remove(table, number)


def mark_shared_ids(rows: Rows, ids: Iterable[str]) -> None:
    """Update the table `twin` of ids that more than one memory has, for these ids."""
    for id_ in ids:
        key = encode_cell(id_)
        if (
            sum(1 for _row in rows.select("SELECT number FROM memory WHERE id = ? LIMIT 2", key))
            > 1
        ):
            rows.put("twin", key)
        else:
            rows.remove("twin", key)


def _build_memory_row(entry: Entry, kind: int, categories: Mapping[str, Category]) -> Row:
    record = entry.record
    memory = record.memory
    begin, until = _find_lifetime(memory, categories)
    name = threads.find_thread_name(memory)
    return (
        entry.number,
        encode_cell(record.id),
        record.path.encode(errors="surrogatepass"),
        bytes.fromhex(record.oid),
        kind,
        begin,
        until,
        lifecycle.find_due(memory, categories),
        memory.timestamp,
        entry.length,
        entry.head_length,
        encode_cell(name) if name else None,
        encode_cell(threads.format_sort_key(record)) if name else None,
        encode_cell(_pack_fields(memory)),
    )


def _find_lifetime(
    memory: Memory, categories: Mapping[str, Category]
) -> tuple[int | None, int | None]:
    """Return first and last second of a memory's life, consistent with `lifecycle.state`."""
    begin = memory.text("valid_from")
    until = lifecycle.find_expiry(memory, categories)
    if memory.status == "deleted":
        at = memory.table("deleted").get("at")
        ended = timestamps.parse(at) - 1 if at else UNKNOWN_END
        until = ended if until is None else min(until, ended)
    elif memory.status == "archived":
        until = UNKNOWN_END
    return timestamps.start(begin) if begin else None, until


UNKNOWN_END = -1 << 62
"""The last second of a memory's life that ended at an unknown time."""


def _build_links(number: int, record: Record) -> Iterator[Row]:
    proposed = record.memory.proposes
    for place, old in enumerate(proposed or record.memory.replaces):
        yield number, place, encode_cell(record.id), encode_cell(old), int(bool(proposed))


def build_named_rows(number: int, record: Record) -> Iterator[Row]:
    """Yield the rows of a memory in the table `named`."""
    for key in LISTED_KEYS:
        for item in dict.fromkeys(record.memory.items(key)):
            yield key, encode_cell(item), number
    for premise in find_premises(record.memory):
        yield PREMISE, encode_cell(premise), number
    document = record.memory.document
    if document:
        yield DOCUMENT, encode_cell(document), number
        for path in mentions.find_mentions(record.memory):
            yield MENTION, encode_cell(path), number


MAX_DICTIONARY_BYTES = 8_192
MAX_SAMPLED_BODIES = 2_000
"""Bodies whose words are counted for the dictionary."""
MIN_OCCURRENCES = 4
"""Occurrences that a word needs in these bodies to be in the dictionary."""


def build_dictionary(words: Iterable[bytes]) -> bytes:
    """Return a compression dictionary of words that come with the commonest first."""
    common: list[bytes] = []
    free_bytes = MAX_DICTIONARY_BYTES
    for word in words:
        free_bytes -= len(word) + 1
        if free_bytes < 0:
            break
        common.append(word)
    return b" ".join(reversed(common))  # zlib refers to the end most cheaply


def find_common_words(records: Sequence[Record]) -> list[bytes]:
    """Return the common words of the bodies of memories, the commonest first."""
    counts: dict[bytes, int] = {}
    for record in records[:: len(records) // MAX_SAMPLED_BODIES + 1]:
        for word in record.memory.body.encode(errors="surrogatepass").split():
            counts[word] = counts.get(word, 0) + 1
    common = (word for word in counts if counts[word] >= MIN_OCCURRENCES)
    return sorted(common, key=lambda word: (-counts[word], word))


def _make_compressor(words: bytes) -> Callable[[bytes], bytes]:
    """Return a function that compresses each text by itself, to be read without the others."""
    start = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=words)

    def compress(text: bytes) -> bytes:
        compressor = start.copy()
        return compressor.compress(text) + compressor.flush()

    return compress


def inflate(packed: object, words: bytes) -> bytes:
    """Decompress a text with its compression dictionary. Raises CorruptCache."""
    assert isinstance(packed, bytes)
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS, words).decompress(packed)
    except zlib.error as error:
        raise CorruptCacheError(str(error)) from None
