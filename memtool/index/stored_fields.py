"""Stored fields: the memories of a set of files, each to be read without opening its file.

They are one file of sections (see `postings`), its memories numbered from 0 in the order of their
paths. The fields of a memory are stored between control characters, which no field may hold, then
its body, and in columns what is asked about thousands of memories: since when and until when each
is alive, from when it is due for review, and when it was written. The few lists that every start
needs (pinned memories, who supersedes whom, ids that occur twice, files that are no memories) are
apart. So are threads, the memories of one session, task or parent in their order; where there is
none, nothing is stored.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right

from memtool.index import postings, scoring
from memtool.memory import lifecycle, timestamps
from memtool.memory.memory import Memory
from memtool.store import cache
from memtool.store.cache import CorruptCache
from memtool.store.snapshot import Record
from memtool.value import cached_property, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any

    from memtool.memory.fields import Category
    from memtool.memory.memory import Fields, FieldValue


FILE = "memories.bin"

MOST_SAMPLED = 2_000
"""Bodies of which words are counted for the dictionary ..."""

LEAST_COMMON = 4
"""... and how often a word must occur in them to be in it."""

KIND = f"stored fields {postings.FORMAT}"

SECTIONS: dict[str, Any] = {
    "paths": "B",
    "path_ends": "I",
    "oids": "B",
    "fields": "B",
    "field_ends": "Q",
    "bodies": "B",
    "body_ends": "Q",
    "sums": "I",
    "timestamps": "q",
    "kinds": "B",
    "kind_of": "I",
    "begins": "q",
    "untils": "q",
    "dues": "q",
    "ending": "I",
    "ends": "q",
    "by_id": "I",
    "pinned": "I",
    "links": "B",
    "targets": "B",
    "twins": "B",
    "withheld": "B",
    "threads": "B",
    "thread_of": "I",
    "threaded": "I",
    "thread_ends": "I",
    "dictionary": "B",
}
"""Sections and the type of their items. `ends` begin with a 0; `sums` guard paths, object ids,
fields and bodies of one memory each, every other section has a checksum of its own."""


ROW, IS, ITEM, PAIR = "\x1d", "\x1e", "\x1f", "\x1c"
"""What parts fields, a key from its text, and what ends each item of a list and half of a pair."""

PROPOSED, KEPT = "?", "+"

KIND_KEYS = (
    "type", "category", "status", "confidence", "importance", "fade_rate", "action_required",
    "temporal_class", "privacy",
)  # fmt: skip
"""Fields of which memories of one kind have the same."""

HELD_KEYS = ("awaiting", "trigger_phrases", "question_types", "checked", "derived_from")
"""Fields that all or none of a kind have, whatever is in them."""


class StoredMemory(Memory):
    """A stored memory. Its fields and its body are unpacked when they are first asked for.

    Its id is had without them: its file is named by it.
    """

    place: tuple[StoredFields, int]
    id: str

    def __getattr__(self, name: str) -> Any:
        """Fill the slot of `fields`, `body` or `id`, which stands empty so far."""
        shelf, number = self.place
        if name not in ("fields", "body", "id"):
            raise AttributeError(name)
        value = getattr(shelf, name)(number)
        object.__setattr__(self, name, value)
        return value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Memory):
            return NotImplemented
        return self.fields == other.fields and self.body == other.body

    __hash__ = Memory.__hash__

    @property
    def withheld(self) -> tuple[str, ...]:
        """The kinds of secrets that are masked in it, sorted."""
        shelf, number = self.place
        return shelf.withheld.get(number, ())

    @property
    def timestamp(self) -> int:
        """The second at which it was written."""
        shelf, number = self.place
        return shelf.timestamps[number]

    def is_alive(self, now: int) -> bool:
        """Tell whether its state is `alive`, by the categories that the index was made with."""
        shelf, number = self.place
        return shelf.begins[number] <= now <= shelf.untils[number]

    def is_due(self, now: int) -> bool:
        """Tell whether it is due for review, by the categories that the index was made with."""
        shelf, number = self.place
        return shelf.dues[number] < now

    def replace(self, **changes: Any) -> Memory:  # type: ignore[override]  # it is stored no more
        """Return a copy with some fields changed."""
        return Memory(**({"fields": self.fields, "body": self.body} | changes))


StoredMemory.field_names = Memory.field_names  # where it is stored is no part of the value


def _column(name: str) -> Any:
    """Return the property that gives a section, which is checked when it is first asked for."""
    return property(lambda fields: fields._section[name])  # noqa: SLF001  # of the class below


class StoredFields:
    """The memories of one set of files, each with its path and the id of its bytes."""

    def __init__(self, raw: memoryview) -> None:
        """Take the bytes of stored fields. Raises CorruptCache."""
        try:
            self._section = cache.Sections(raw, KIND, SECTIONS)
            numbers = self._section.numbers
            self.count, self._oid_size, self.latest, self._most_begin = numbers
            self._raw = {
                name: self._section.unchecked(name)
                for name in ("paths", "path_ends", "oids", "fields", "field_ends", "bodies",
                             "body_ends", "sums")
            }  # fmt: skip
        except (ValueError, KeyError) as error:
            raise CorruptCache(str(error)) from None
        self._whole: dict[int, tuple[str, str]] = {}
        """Path and object id of the memories that were found to be whole."""

    begins: Sequence[int] = _column("begins")
    """The first second at which each memory is alive."""
    untils: Sequence[int] = _column("untils")
    """The last second at which each memory is alive."""
    dues: Sequence[int] = _column("dues")
    """The last second before each memory is due for review."""
    timestamps: Sequence[int] = _column("timestamps")
    """The second at which each memory was written."""
    kind_of: Sequence[int] = _column("kind_of")
    """The place of each memory's kind among `kinds`."""
    pinned: Sequence[int] = _column("pinned")
    """The pinned memories."""

    def ended(self, now: int) -> Sequence[int]:
        """Return the memories whose life is over; most have no end, so that this is no column."""
        ends = self._section["ends"]
        return self._section["ending"][: bisect_left(ends, now)]  # type: ignore[no-any-return]

    def later_than(self, second: int) -> set[int]:
        """Return the memories that were written after a second."""
        if self.latest <= second:
            return set()
        return {number for number, at in enumerate(self.timestamps) if at > second}

    def all_begun(self, now: int) -> bool:
        """Tell whether no memory begins its life later."""
        return self._most_begin <= now

    @cached_property
    def links(self) -> list[tuple[int, bool, tuple[str, ...]]]:
        """Who supersedes what: memory, whether it only proposes to, and the ids."""
        rows = [line.split(" ") for line in self._lines("links")]
        return [(int(row[0]), row[1] == PROPOSED, tuple(row[2:])) for row in rows]

    @cached_property
    def targets(self) -> dict[str, list[int]]:
        """The memories here that any here supersedes, by id."""
        rows = [line.split(" ") for line in self._lines("targets")]
        return {row[0]: [int(number) for number in row[1:]] for row in rows}

    @cached_property
    def twins(self) -> list[str]:
        """Ids that stand twice, sorted."""
        return self._lines("twins")

    @cached_property
    def withheld(self) -> dict[int, tuple[str, ...]]:
        """The memories in which secrets are masked, each with the kinds of these."""
        rows = [line.split(" ") for line in self._lines("withheld")]
        return {int(row[0]): tuple(row[1:]) for row in rows}

    @cached_property
    def threads(self) -> dict[str, int]:
        """The place of each thread by its name."""
        return {name: place for place, name in enumerate(self._lines("threads"))}

    @cached_property
    def _thread_names(self) -> list[str]:
        return ["", *self.threads]

    def thread_of(self, number: int) -> str:
        """Return the name of a memory's thread; empty where it is in none."""
        return self._thread_names[self._section["thread_of"][number]] if self.threads else ""

    def thread(self, name: str) -> Sequence[int]:
        """Return the memories of a thread in their order."""
        place = self.threads.get(name)
        if place is None:
            return ()
        ends = self._section["thread_ends"]
        return self._section["threaded"][ends[place] : ends[place + 1]]  # type: ignore[no-any-return]

    def _lines(self, name: str) -> list[str]:
        return bytes(self._section[name]).decode().split("\n")[:-1]

    def path(self, number: int) -> str:
        """Return the path of a memory. Raises CorruptCache."""
        return self._named(number)[0]

    def id(self, number: int) -> str:
        """Return the id of a memory, which its file is named by. Raises CorruptCache."""
        return self.path(number).rpartition("/")[2][:-3]

    def oid(self, number: int) -> str:
        """Return the id of a memory's bytes as a blob. Raises CorruptCache."""
        return self._named(number)[1]

    def fields(self, number: int) -> Fields:
        """Return the fields of a memory."""
        self._named(number)
        raw = self._part("fields", "field_ends", number)
        return _unpacked(raw.decode(errors="surrogatepass"))

    def body(self, number: int) -> str:
        """Return the body of a memory."""
        self._named(number)
        packed = self._part("bodies", "body_ends", number)
        raw = postings.inflated(packed, bytes(self._section["dictionary"]))
        return raw.decode(errors="surrogatepass")

    def record(self, number: int) -> Record:
        """Return a memory with its path. Raises CorruptCache."""
        path, oid = self._named(number)
        memory = object.__new__(StoredMemory)
        object.__setattr__(memory, "place", (self, number))
        return Record(memory, path, oid)

    @cached_property
    def kinds(self) -> list[Memory]:
        """The kinds of memories: of each one memory, with nothing but what all of it have."""
        rows = bytes(self._section["kinds"]).decode(errors="surrogatepass").split(PAIR)
        return [Memory(_unpacked(row), "") for row in rows]

    def number_at(self, path: str) -> int | None:
        """Return the number of the memory at a path. Raises CorruptCache."""
        numbers = self.numbers_of(path.rpartition("/")[2][:-3])
        return next((number for number in numbers if self.path(number) == path), None)

    def identity(self) -> str:
        """Return a hash that differs where a path, a blob or the order of the memories does."""
        return digest(bytes(self._raw["sums"]), 16)

    def stamps(self) -> tuple[Iterable[bytes], Iterable[bytes]]:
        """Return the object ids, in hexadecimal, and the paths of all memories, unchecked."""
        oids, size = bytes(self._raw["oids"]).hex().encode(), 2 * self._oid_size
        places = range(0, self.count * size + 1, size or 1)  # no memory has no id to measure
        paths, ends = bytes(self._raw["paths"]), self._raw["path_ends"].tolist()
        return (
            map(oids.__getitem__, map(slice, places, places[1:])),
            map(paths.__getitem__, map(slice, ends, ends[1:])),
        )

    def paths(self) -> frozenset[str]:
        """Return the paths of all memories. Raises CorruptCache."""
        return frozenset(map(self.path, range(self.count)))

    def blobs(self) -> list[tuple[str, str]]:
        """Return path and blob of every memory, by number. Raises CorruptCache."""
        return list(map(self._named, range(self.count)))

    def at(self, wanted: Mapping[str, str], dead: Collection[int]) -> dict[str, Record]:
        """Return by path the memories with some blobs, without some. Raises CorruptCache."""
        return {
            path: self.record(number)
            for number, (path, oid) in enumerate(self.blobs())
            if wanted.get(path) == oid and number not in dead
        }

    def clean(self) -> frozenset[str]:
        """Return the blobs of the memories in which nothing is masked. Raises CorruptCache."""
        oids, _paths = self.stamps()
        withheld = self.withheld
        return frozenset(oid.decode() for n, oid in enumerate(oids) if n not in withheld)

    def not_alive(self, now: int) -> list[int]:
        """Return the memories that are not alive at a second."""
        found = set(self.ended(now))
        if not self.all_begun(now):
            found.update(number for number, begin in enumerate(self.begins) if begin > now)
        return sorted(found)

    def numbers_of(self, id_: str) -> Sequence[int]:
        """Return the memories with an id, by path. Raises CorruptCache."""
        order = self._section["by_id"]
        first = bisect_left(order, id_, key=self.id)
        last = first
        while last < self.count and self.id(order[last]) == id_:
            last += 1
        return order[first:last]  # type: ignore[no-any-return]  # an array of them

    def by_id(self) -> list[int]:
        """Return all memories by id, and by path where an id stands twice."""
        return list(self._section["by_id"])

    def of_kinds(self, fits: Callable[[Memory], bool]) -> list[int]:
        """Return the memories whose kind fits, in order."""
        wanted = {place for place, kind in enumerate(self.kinds) if fits(kind)}
        if not wanted:
            return []
        return [number for number, kind in enumerate(self.kind_of) if kind in wanted]

    def naming(self, text: str) -> list[int]:
        """Return the memories in whose fields a text stands, in order."""
        raw = bytes(self._raw["fields"])
        ends = self._raw["field_ends"]
        needle = text.encode()
        found = set()
        at = raw.find(needle)
        while at >= 0:
            found.add(bisect_right(ends, at) - 1)
            at = raw.find(needle, at + 1)
        return sorted(found)

    def listing(self, key: str, fits: Callable[[bytes], bool]) -> list[int]:
        """Return the memories with a list in which an item fits, and perhaps a few more, in order.

        An item is looked at as it is stored, in UTF-8.
        """
        raw = bytes(self._raw["fields"])
        ends = self._raw["field_ends"]
        begin, row, mark = (text.encode() for text in (f"{key}{ITEM}", ROW, ITEM))
        known: dict[bytes, bool] = {}
        found = set()
        at = raw.find(begin)
        while at >= 0:
            end = raw.find(row, at)
            held = raw[at + len(begin) : end if end >= 0 else len(raw)]
            for item in held.split(mark)[:-1]:  # what follows the last mark is the next memory's
                if item not in known:
                    known[item] = fits(item)
                if known[item]:
                    found.add(bisect_right(ends, at) - 1)
            at = raw.find(begin, at + 1)
        return sorted(found)

    def _named(self, number: int) -> tuple[str, str]:
        """Return path and object id. Raises CorruptCache where a memory is not what was written."""
        known = self._whole.get(number)
        if known is not None:
            return known
        path = self._part("paths", "path_ends", number)
        oid = bytes(self._raw["oids"][number * self._oid_size : (number + 1) * self._oid_size])
        found = zlib.crc32(oid, zlib.crc32(path))
        found = zlib.crc32(self._part("fields", "field_ends", number), found)
        found = zlib.crc32(self._part("bodies", "body_ends", number), found)
        if found != self._raw["sums"][number]:
            raise CorruptCache(f"memory {number} is damaged")
        known = self._whole[number] = (path.decode(errors="surrogatepass"), oid.hex())
        return known

    def _part(self, name: str, ends: str, number: int) -> bytes:
        places = self._raw[ends]
        return bytes(self._raw[name][places[number] : places[number + 1]])


def _unpacked(text: str) -> Fields:
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


EVER = (1 << 63) - 1

NEVER = -1 << 63


def pack(records: Iterable[Record], categories: Mapping[str, Category]) -> bytes:
    """Return the bytes of the stored fields of some memories."""
    from memtool.index import threads  # who only reads needs it where there are any

    kept = sorted(records, key=lambda record: record.path)
    memories = [record.memory for record in kept]
    paths = [record.path.encode(errors="surrogatepass") for record in kept]
    oids = [bytes.fromhex(record.oid) for record in kept]
    fields = [_fields(memory) for memory in memories]
    dictionary, bodies = _compressed([m.body.encode(errors="surrogatepass") for m in memories])
    sums = [zlib.crc32(d, zlib.crc32(c, zlib.crc32(b, zlib.crc32(a))))
            for a, b, c, d in zip(paths, oids, fields, bodies, strict=True)]  # fmt: skip
    written = [memory.timestamp for memory in memories]
    begins, untils = _lives(memories, categories)
    dues = [lifecycle.due_at(memory, categories) for memory in memories]
    kinds: dict[str, int] = {}
    kind_of = [kinds.setdefault(_kind(memory), len(kinds)) for memory in memories]
    ending = sorted((until, number) for number, until in enumerate(untils) if until != EVER)
    by_id = sorted(range(len(kept)), key=lambda number: (kept[number].id, number))
    pinned = [number for number, one in enumerate(memories) if one.status == "pinned"]
    sections = {
        "paths": b"".join(paths),
        "path_ends": postings.ends("I", paths),
        "oids": b"".join(oids),
        "fields": b"".join(fields),
        "field_ends": postings.ends("Q", fields),
        "bodies": b"".join(bodies),
        "body_ends": postings.ends("Q", bodies),
        "sums": postings.column("I", sums),
        "timestamps": postings.column("q", written),
        "kinds": PAIR.join(kinds).encode(errors="surrogatepass"),
        "kind_of": postings.column("I", kind_of),
        "begins": postings.column("q", begins),
        "untils": postings.column("q", untils),
        "dues": postings.column("q", [EVER if due is None else due for due in dues]),
        "ending": postings.column("I", [number for _until, number in ending]),
        "ends": postings.column("q", [until for until, _number in ending]),
        "by_id": postings.column("I", by_id),
        "pinned": postings.column("I", pinned),
        **_lineage(kept),
        "withheld": _withheld(memories),
        **threads.sections(kept),
        "dictionary": dictionary,
    }
    latest = max(written, default=NEVER)
    size = len(oids[0]) if oids else 0
    return cache.pack(KIND, [len(kept), size, latest, max(begins, default=NEVER)], sections)


def _lives(
    memories: Iterable[Memory], categories: Mapping[str, Category]
) -> tuple[list[int], list[int]]:
    """Return the first and the last second of each memory's life, as `lifecycle.state` sees it."""
    begins, untils = [], []
    for memory in memories:
        begin = memory.text("valid_from")
        until = lifecycle.expires_at(memory, categories)
        until = EVER if until is None else until
        if memory.status == "deleted":
            at = memory.table("deleted").get("at")
            until = min(until, timestamps.parse(at) - 1 if at else NEVER)
        elif memory.status == "archived":
            until = NEVER
        begins.append(timestamps.start(begin) if begin else NEVER)
        untils.append(until)
    return begins, untils


def _kind(memory: Memory) -> str:
    """Return the fields in which memories of one kind are alike."""
    fields = memory.fields
    rows = [_row(key, fields[key]) for key in KIND_KEYS if fields.get(key)]
    rows += [f"{key}{IS}{KEPT}" for key in HELD_KEYS if fields.get(key)]
    return ROW.join(rows)


def _fields(memory: Memory) -> bytes:
    rows = (_row(key, value) for key, value in memory.fields.items())
    return ROW.join(rows).encode(errors="surrogatepass")


def _row(key: str, value: FieldValue) -> str:
    """Return a field as it is stored."""
    if isinstance(value, str):
        return f"{key}{IS}{value}"
    if isinstance(value, tuple):
        return ITEM.join((key, *value, ""))
    parts = (part for pair in value.items() for part in pair)
    return PAIR.join((key, *parts, ""))


def _lineage(records: Sequence[Record]) -> dict[str, bytes]:
    """Return the sections `links`, `targets` and `twins`."""
    links: list[str] = []
    named: set[str] = set()
    found: dict[str, list[int]] = {}
    for number, record in enumerate(records):
        found.setdefault(record.id, []).append(number)
        proposed = record.memory.proposes
        olds = proposed or record.memory.replaces
        if olds:
            mark = PROPOSED if proposed else KEPT
            links.append(f"{number} {mark} {' '.join(olds)}")
            named.update(olds)
    targets = [f"{id_} {' '.join(map(str, found[id_]))}" for id_ in sorted(named & found.keys())]
    twins = sorted(id_ for id_, numbers in found.items() if len(numbers) > 1)
    rows = {"links": links, "targets": targets, "twins": twins}
    return {name: "".join(f"{line}\n" for line in lines).encode() for name, lines in rows.items()}


def _withheld(memories: Iterable[Memory]) -> bytes:
    """Return the section `withheld`: a line for each memory in which secrets were masked."""
    kinds = ((number, getattr(one, "withheld", ())) for number, one in enumerate(memories))
    return "".join(f"{number} {' '.join(own)}\n" for number, own in kinds if own).encode()


TEXT_KEYS = (
    "title", "tags", "category", "id", "aliases", "trigger_phrases", "question_types", "domain",
    "feature",
    "error_signature", "environment", "task_id", "files", "source",
)  # fmt: skip
"""Keys whose words find a memory, as do its body and its day."""


SELF_DESCRIBING = frozenset(
    {"tags", "aliases", "trigger_phrases", "question_types", "domain", "feature"}
)
"""Keys by which a memory says what it is about, in no words of its text: nobody reads them in a
block, so that they count for nothing across levels of trust."""


MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


def _is_session(key: str, text: str) -> bool:
    return key == "source" and text.startswith("session:")


_MOST_DAYS = 1 << 12

_days: dict[int, str] = {}


def fields(record: Record) -> tuple[tuple[str, str], ...]:
    """Return the texts of a memory in which words and phrases are looked for, each by its key.

    A list gives one text per item. The day is there in words, `22 February 2026`, as people ask
    for it. A session that is a source is not: its name says nothing about what was said in it.
    """
    memory = record.memory
    own = memory.fields
    found = []
    for key in TEXT_KEYS:
        value = own.get(key)
        if isinstance(value, tuple):
            found += [(key, item) for item in value if item and not _is_session(key, item)]
        elif value and isinstance(value, str):
            found.append((key, value))
    found.append(("day", _day(memory.timestamp // timestamps.DAY_S)))
    found.append(("body", memory.body))
    return tuple(found)


def plain_text(record: Record, language: str) -> bytes:
    """Return a memory as terms without what it says of itself (see `scoring.searchable`)."""
    kept = tuple(field for field in fields(record) if field[0] not in SELF_DESCRIBING)
    return scoring.searchable(scoring.Document(record.path, kept), language)[1]


def _day(number: int) -> str:
    """Return a day since 1970 in words."""
    found = _days.get(number)
    if found is None:
        if len(_days) >= _MOST_DAYS:
            _days.clear()
        year, month, day = timestamps.date(number * timestamps.DAY_S).split("-")
        found = _days[number] = f"{int(day)} {MONTHS[int(month) - 1]} {year}"
    return found


def _compressed(bodies: Sequence[bytes]) -> tuple[bytes, list[bytes]]:
    """Return a dictionary of the commonest words of bodies, and the bodies compressed by it."""
    counts: dict[bytes, int] = {}
    for body in bodies[:: len(bodies) // MOST_SAMPLED + 1]:
        for word in body.split():
            counts[word] = counts.get(word, 0) + 1
    common = (word for word in counts if counts[word] >= LEAST_COMMON)
    return postings.deflated(bodies, sorted(common, key=lambda word: (-counts[word], word)))
