"""The words of the static site: an index that a page searches by loading a few small scripts.

A page that was opened from a disk may load scripts and nothing else, so that every part is a script
that calls `memtool(name, data)`:

- `index.js`: how many memories there are, their mean length, and which parts there are.
- `memories-N.js`: columns of memories from the oldest on: ids, titles, lengths, kinds, and the days
  that ids do not name. A kind is `[type, category, status, whether it holds]`. A memory is known by
  its number among all of them.
- `words-N.js`: the postings of the terms that begin with a prefix, and for words that were written
  otherwise the term that they stand for: `connections` stands for `connect`. So the page stems no
  word itself, and finds what `memtool search` would find by the same analysis.

Postings are gaps between numbers: `3` is the third memory from the one before, which holds the term
once, and `-3, 2` the same, which holds it twice. Words of titles, tags and aliases count twice.
"""

from __future__ import annotations

import json
from collections import Counter

from memtool.index.analyzer import AS_WRITTEN, is_stop, stem, terms
from memtool.index.scoring import HEAD_FIELDS, K1, B
from memtool.index.text import fields
from memtool.memory import timestamps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from memtool.store.tree import Record

FOLDER = "words"
MOST_PART = 12_000
"""Characters of one part, unless one term has more: about 6 kB compressed."""
MOST_ROWS = 1_000
"""Memories of one part."""


class _Terms(dict[str, str]):
    """The term of each word that was asked for; a stop word stands for nothing.

    It alone asks for nothing, and most memories hold it.
    """

    def __init__(self, language: str) -> None:
        self._language = language

    def __missing__(self, word: str) -> str:
        term = stem(word, self._language)
        found = self[word] = "" if is_stop(term) else term
        return found


def scripts(
    records: Sequence[Record], holds: Callable[[Record], bool], language: str
) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of every part; `holds` tells which memories hold today."""
    ordered = sorted(records, key=lambda one: (one.memory.timestamp, one.id))
    term_of = _Terms(language)
    postings: dict[str, list[tuple[int, int]]] = {}
    lengths = []
    for number, record in enumerate(ordered):
        found = _words(record)
        lengths.append(len(found))
        counts = Counter(map(term_of.__getitem__, found))
        counts.pop("", None)
        for term, count in counts.items():
            if term in postings:
                postings[term].append((number, count))
            else:
                postings[term] = [(number, count)]
    kinds: dict[tuple[str, str, str, int], int] = {}
    kind_of = {}
    for one in ordered:
        memory = one.memory
        own = memory.type, memory.category, memory.status, int(holds(one))
        kind_of[one.id] = kinds.setdefault(own, len(kinds))
    starts = range(0, len(ordered), MOST_ROWS)
    for number, start in enumerate(starts):
        some = ordered[start : start + MOST_ROWS]
        days = [(one.id, timestamps.date(one.memory.timestamp)) for one in some]
        yield _script(
            f"memories-{number}",
            {
                "ids": [one.id for one in some],
                "titles": [one.memory.title for one in some],
                "lengths": lengths[start : start + MOST_ROWS],
                "kinds": [kind_of[one.id] for one in some],
                "days": ["" if f"-{day}-" in id_ else day for id_, day in days],
            },
        )
    forms = {word: term for word, term in term_of.items() if word != term}
    parts = split(_entries(postings, forms), MOST_PART)
    for number, keys in enumerate(parts.values()):
        yield _script(
            f"words-{number}",
            {
                "terms": [(key, _gaps(postings[key])) for key in keys if key in postings],
                "forms": [(key, forms[key]) for key in keys if key in forms],
            },
        )
    yield _script(
        "index",
        {
            "count": len(ordered),
            "mean": round(sum(lengths) / max(1, len(ordered)), 3),
            "k1": K1,
            "b": B,
            "kinds": list(kinds),
            "memories": len(starts),
            "words": list(parts),
        },
    )


def _words(record: Record) -> list[str]:
    """Return the words of a memory as they are written, those of title, tags and aliases twice."""
    own = fields(record)
    head = "\n".join(text for name, text in own if name in HEAD_FIELDS)
    rest = "\n".join(text for name, text in own if name not in HEAD_FIELDS)
    twice = terms(head, AS_WRITTEN, is_indexed=True)
    return [*terms(rest, AS_WRITTEN, is_indexed=True), *twice, *twice]


def _gaps(found: Sequence[tuple[int, int]]) -> list[int]:
    """Return postings as they are written: gaps, and counts of more than one after a minus."""
    gaps: list[int] = []
    last = -1
    for number, count in found:
        gaps += (number - last,) if count == 1 else (last - number, count)
        last = number
    return gaps


def _entries(postings: Mapping[str, Sequence[object]], forms: Mapping[str, str]) -> dict[str, int]:
    """Return every word that is looked up with the characters that its entries take."""
    sizes = {term: len(term) + 6 + 3 * len(found) for term, found in postings.items()}
    for word, term in forms.items():
        sizes[word] = sizes.get(word, 0) + len(word) + len(term) + 6
    return sizes


def split(sizes: Mapping[str, int], most: int) -> dict[str, list[str]]:
    """Return words by a prefix that they share, with no more than `most` in sum of each prefix.

    Where a prefix has more, its largest branches get a prefix of their own, one letter longer,
    until the others fit. So a new word changes one part, and seldom moves others; and a word is in
    the part of the longest prefix that it begins with. A word alone may be larger.
    """
    found: dict[str, list[str]] = {}
    todo = [("", sorted(sizes))]
    while todo:
        prefix, words = todo.pop()
        deeper: dict[str, list[str]] = {}
        for word in words:
            deeper.setdefault(word[: len(prefix) + 1], []).append(word)
        branches = {key: sum(sizes[word] for word in some) for key, some in deeper.items()}
        left = sum(branches.values())
        for key in sorted(branches, key=lambda key: (-branches[key], key)):
            if left <= most:
                break
            if key != prefix:
                left -= branches[key]
                todo.append((key, deeper.pop(key)))
        found[prefix] = sorted(word for some in deeper.values() for word in some)
    return {prefix: words for prefix, words in sorted(found.items()) if words}


def _script(name: str, data: Any) -> tuple[str, bytes]:
    text = json.dumps(data, separators=(",", ":"))
    return f"{FOLDER}/{name}.js", f'memtool("{name}",{text});\n'.encode()
