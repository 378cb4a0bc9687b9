"""Shelving: records become the bytes of a shelf; what `shelf` reads."""

from __future__ import annotations

import zlib

from memtool.memory import lifecycle, timestamps
from memtool.memory.problem import Problem
from memtool.search import layout
from memtool.search.shelf import (
    DELETED,
    HELD_KEYS,
    IS,
    ITEM,
    KEPT,
    KIND_KEYS,
    MAGIC,
    PAIR,
    ROW,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memtool.memory.fields import Category
    from memtool.memory.memory import Memory
    from memtool.store.tree import Record

EVER = (1 << 63) - 1
NEVER = -1 << 63


def pack(
    records: Iterable[Record],
    categories: Mapping[str, Category],
    problems: Sequence[Problem] = (),
) -> bytes:
    """Return the bytes of a shelf; `problems` are those of files that are no memories."""
    kept = sorted(records, key=lambda record: record.path)
    memories = [record.memory for record in kept]
    paths = [record.path.encode(errors="surrogatepass") for record in kept]
    oids = [bytes.fromhex(record.oid) for record in kept]
    fields = [_fields(memory) for memory in memories]
    bodies = [memory.body.encode(errors="surrogatepass") for memory in memories]
    sums = [zlib.crc32(d, zlib.crc32(c, zlib.crc32(b, zlib.crc32(a))))
            for a, b, c, d in zip(paths, oids, fields, bodies, strict=True)]  # fmt: skip
    written = [memory.timestamp for memory in memories]
    begins, untils = _lives(memories, categories)
    kinds: dict[str, int] = {}
    kind_of = [kinds.setdefault(_kind(memory), len(kinds)) for memory in memories]
    ending = sorted((until, number) for number, until in enumerate(untils) if until != EVER)
    sections = {
        "paths": b"".join(paths),
        "path_ends": layout.ends("I", paths),
        "oids": b"".join(oids),
        "fields": b"".join(fields),
        "field_ends": layout.ends("Q", fields),
        "bodies": b"".join(bodies),
        "body_ends": layout.ends("Q", bodies),
        "sums": layout.column("I", sums),
        "timestamps": layout.column("q", written),
        "kinds": PAIR.join(kinds).encode(errors="surrogatepass"),
        "kind_of": layout.column("I", kind_of),
        "begins": layout.column("q", begins),
        "untils": layout.column("q", untils),
        "ending": layout.column("I", [number for _until, number in ending]),
        "ends": layout.column("q", [until for until, _number in ending]),
        "by_id": layout.column("I", _order(kept)),
        "pinned": layout.column(
            "I", [number for number, one in enumerate(memories) if one.status == "pinned"]
        ),
        **_lineage(kept),
        "problems": problem_bytes(problems),
    }
    latest = max(written, default=NEVER)
    size = len(oids[0]) if oids else 0
    return layout.bind(MAGIC, [len(kept), size, latest, max(begins, default=NEVER)], sections)


def _order(records: Sequence[Record]) -> list[int]:
    return sorted(range(len(records)), key=lambda number: (records[number].id, number))


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
    rows = [f"{key}{IS}{memory.text(key)}" for key in KIND_KEYS if memory.text(key)]
    rows += [f"{key}{IS}{KEPT}" for key in HELD_KEYS if fields.get(key)]
    return ROW.join(rows)


def _fields(memory: Memory) -> bytes:
    rows = []
    for key, value in memory.fields.items():
        if isinstance(value, str):
            rows.append(f"{key}{IS}{value}")
        elif isinstance(value, tuple):
            rows.append(ITEM.join((key, *value, "")))
        else:
            parts = (part for pair in value.items() for part in pair)
            rows.append(PAIR.join((key, *parts, "")))
    return ROW.join(rows).encode(errors="surrogatepass")


def _lineage(records: Sequence[Record]) -> dict[str, bytes]:
    """Return the sections `links`, `targets` and `twins`."""
    links: list[str] = []
    named: set[str] = set()
    found: dict[str, list[int]] = {}
    for number, record in enumerate(records):
        found.setdefault(record.id, []).append(number)
        olds = record.memory.supersedes
        if olds:
            mark = DELETED if record.memory.status == "deleted" else KEPT
            links.append(f"{number} {mark} {' '.join(olds)}")
            named.update(olds)
    targets = [f"{id_} {' '.join(map(str, found[id_]))}" for id_ in sorted(named & found.keys())]
    twins = sorted(id_ for id_, numbers in found.items() if len(numbers) > 1)
    rows = {"links": links, "targets": targets, "twins": twins}
    return {name: "".join(f"{line}\n" for line in lines).encode() for name, lines in rows.items()}


def problem_bytes(problems: Iterable[Problem]) -> bytes:
    """Return problems as bytes, each of their fields ended by a NUL."""
    parts = (str(getattr(one, name)) for one in problems for name in Problem.field_names)
    return "".join(f"{part.replace(chr(0), '')}\0" for part in parts).encode(errors="surrogatepass")
