"""Tallies: what ranking may ask of the ledger, in two small files that need no database.

They are written anew whenever notes are taken over, and may be missing: then nothing was counted.
"""

from __future__ import annotations

import os

from memtool.store.reading import TEMP_PREFIX, read_regular
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from mmap import mmap

ACCESSES = "ledger.accesses"
LATENCIES = "ledger.latencies"
MOST_BYTES = 1 << 20
"""What a file of latencies may have at most: it has a line per verb."""


class Latency(Value):
    """How long a verb took, over its last answers: the median and the 95th percentile."""

    verb: str
    samples: int
    p50_ms: float
    p95_ms: float


def accesses(directory: str, ids: Iterable[str]) -> dict[str, int]:
    """Return how many answers showed each memory, 0 for those that none did.

    `directory` is the cache directory of the repository. The file is mapped and searched by
    halves, so that an id costs some 6 microseconds, however many memories were counted.
    """
    wanted = dict.fromkeys(ids, 0)
    try:
        handle = os.open(os.path.join(directory, ACCESSES), os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return wanted
    try:
        import mmap

        with mmap.mmap(handle, 0, access=mmap.ACCESS_READ) as table:
            return {id_: _count(table, id_.encode()) for id_ in wanted}
    except (OSError, ValueError):  # an empty file cannot be mapped
        return wanted
    finally:
        os.close(handle)


def latency(directory: str, verb: str) -> Latency:
    """Return how long a verb took; no samples where nobody knows."""
    found = (row for row in latencies(directory) if row.verb == verb)
    return next(found, Latency(verb, 0, 0.0, 0.0))


def p95(directory: str, verb: str) -> tuple[float, int]:
    """Return the 95th percentile of a verb's latency in milliseconds, and of how many samples."""
    found = latency(directory, verb)
    return found.p95_ms, found.samples


def latencies(directory: str) -> list[Latency]:
    """Return how long each verb took, by name."""
    try:
        data = read_regular(os.path.join(directory, LATENCIES), MOST_BYTES)
    except OSError:
        return []
    rows = []
    for line in data.decode(errors="replace").splitlines():
        verb, _tab, rest = line.partition("\t")
        try:
            samples, p50_ms, p95_ms = rest.split("\t")
            rows.append(Latency(verb, int(samples), float(p50_ms), float(p95_ms)))
        except ValueError:
            continue  # a broken line is no sample
    return rows


def write(directory: str, counts: Iterable[tuple[str, int]], rows: Iterable[Latency]) -> None:
    """Write both files, each in one step; the caller holds the lock of the ledger.

    Raises:
        OSError: they cannot be written there.
    """
    lines = sorted(b"%s\t%d\n" % (id_.encode(), count) for id_, count in counts)
    _put(directory, ACCESSES, b"".join(lines))
    text = "".join(
        f"{row.verb}\t{row.samples}\t{row.p50_ms:.3f}\t{row.p95_ms:.3f}\n" for row in rows
    )
    _put(directory, LATENCIES, text.encode())


def _put(directory: str, name: str, data: bytes) -> None:
    # Only one process at a time writes tallies, so the name may be the same each time.
    temp = os.path.join(directory, TEMP_PREFIX + name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(temp, flags, 0o600), "wb") as file:
        file.write(data)
    os.replace(temp, os.path.join(directory, name))


def _count(table: mmap, id_: bytes) -> int:
    """Find the line of an id in a sorted table of ids and counts, and return its count."""
    wanted = id_ + b"\t"  # no id holds a tab, and every character of one sorts behind it
    length = len(wanted)
    low, high = 0, len(table)
    while low < high:
        middle = (low + high) // 2
        start = table.rfind(b"\n", low, middle) + 1 or low
        found = table[start : start + length]
        if found == wanted:
            end = table.find(b"\n", start)
            count = table[start + length : end]
            return int(count) if end > 0 and count.isdigit() else 0
        if found < wanted:
            low = table.find(b"\n", middle) + 1 or high
        else:
            high = start
    return 0
