"""The words of the static site: an index that a page searches by loading a few small scripts.

A page opened from a disk may load scripts and nothing else, so every part is a script that calls
`memtool(name, data)`:

- `index.js`: the number of memories, their mean length, and the list of parts.
- `memories-N.js`: columns of memories from the oldest on: ids, titles, lengths, kinds, and days
  that the ids do not contain. A kind is `[type, category, status, is current]`. A memory is
  identified by its number among all of them.
- `words-N.js`: the postings of the terms with a prefix, and for other forms of words their term:
  `connections` leads to `connect`. So the page needs no stemmer, and finds what `memtool search`
  finds by the same analysis.

Postings are gaps between numbers: `3` is the third memory after the previous one, with the term
once, and `-3, 2` the same with the term twice. Words of titles, tags and aliases count twice.
"""

from __future__ import annotations

import json
from collections import Counter

from memtool.index.analyzer import AS_WRITTEN, is_stop, stem, terms
from memtool.index.scoring import HEAD_FIELDS, K1, B
from memtool.index.text import list_texts
from memtool.memory import timestamps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from memtool.store.tree import Record

FOLDER = "words"
MAX_PART = 12_000
"""Characters of one part, unless one term has more: about 6 kB compressed."""
MAX_ROWS = 1_000
"""Memories of one part."""


class _Terms(dict[str, str]):
    """The term of each word; a stop word has none.

    A query of stop words alone finds nothing, since most memories contain them.
    """

    def __init__(self, language: str) -> None:
        self._language = language

    def __missing__(self, word: str) -> str:
        term = stem(word, self._language)
        term_stem = self[word] = "" if is_stop(term) else term
        return term_stem


def build_scripts(
    records: Sequence[Record], holds: Callable[[Record], bool], language: str
) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of every part; `holds` returns whether a memory is current."""
    ordered = sorted(records, key=lambda entry: (entry.memory.timestamp, entry.id))
    term_of = _Terms(language)
    postings: dict[str, list[tuple[int, int]]] = {}
    lengths = []
    for number, record in enumerate(ordered):
        words = _split_words(record)
        lengths.append(len(words))
        counts = Counter(map(term_of.__getitem__, words))
        counts.pop("", None)
        for term, count in counts.items():
            if term in postings:
                postings[term].append((number, count))
            else:
                postings[term] = [(number, count)]
    kinds: dict[tuple[str, str, str, int], int] = {}
    kind_of = {}
    for record in ordered:
        memory = record.memory
        own = memory.type, memory.category, memory.status, int(holds(record))
        kind_of[record.id] = kinds.setdefault(own, len(kinds))
    starts = range(0, len(ordered), MAX_ROWS)
    for number, start in enumerate(starts):
        some = ordered[start : start + MAX_ROWS]
        days = [(record.id, timestamps.format_date(record.memory.timestamp)) for record in some]
        yield _build_script(
            f"memories-{number}",
            {
                "ids": [record.id for record in some],
                "titles": [record.memory.title for record in some],
                "lengths": lengths[start : start + MAX_ROWS],
                "kinds": [kind_of[record.id] for record in some],
                "days": ["" if f"-{day}-" in id_ else day for id_, day in days],
            },
        )
    forms = {word: term for word, term in term_of.items() if word != term}
    parts = split(_measure_entries(postings, forms), MAX_PART)
    for number, keys in enumerate(parts.values()):
        yield _build_script(
            f"words-{number}",
            {
                "terms": [(key, _encode_gaps(postings[key])) for key in keys if key in postings],
                "forms": [(key, forms[key]) for key in keys if key in forms],
            },
        )
    yield _build_script(
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


def _split_words(record: Record) -> list[str]:
    """Return the words of a memory as they are written, those of title, tags and aliases twice."""
    own = list_texts(record)
    head = "\n".join(text for name, text in own if name in HEAD_FIELDS)
    body = "\n".join(text for name, text in own if name not in HEAD_FIELDS)
    twice = terms(head, AS_WRITTEN, is_indexed=True)
    return [*terms(body, AS_WRITTEN, is_indexed=True), *twice, *twice]


def _encode_gaps(places: Sequence[tuple[int, int]]) -> list[int]:
    """Return postings as they are written: gaps, and counts of more than one after a minus."""
    gaps: list[int] = []
    last = -1
    for number, count in places:
        gaps += (number - last,) if count == 1 else (last - number, count)
        last = number
    return gaps


def _measure_entries(
    postings: Mapping[str, Sequence[object]], forms: Mapping[str, str]
) -> dict[str, int]:
    """Return every word that is looked up with the characters that its entries take."""
    sizes = {term: len(term) + 6 + 3 * len(places) for term, places in postings.items()}
    for word, term in forms.items():
        sizes[word] = sizes.get(word, 0) + len(word) + len(term) + 6
    return sizes


def split(sizes: Mapping[str, int], max_size: int) -> dict[str, list[str]]:
    """Return words by a shared prefix; the sizes of one prefix sum up to at most `max_size`.

    The largest branches of a prefix with more get a prefix of their own, one letter longer, until
    the others fit. So a new word changes one part, and seldom moves others; and a word is in the
    part of the longest prefix that it begins with. A single word may be larger.
    """
    parts: dict[str, list[str]] = {}
    todo = [("", sorted(sizes))]
    while todo:
        prefix, words = todo.pop()
        deeper: dict[str, list[str]] = {}
        for word in words:
            deeper.setdefault(word[: len(prefix) + 1], []).append(word)
        branches = {key: sum(sizes[word] for word in some) for key, some in deeper.items()}
        remaining = sum(branches.values())
        for key in sorted(branches, key=lambda key: (-branches[key], key)):
            if remaining <= max_size:
                break
            if key != prefix:
                remaining -= branches[key]
                todo.append((key, deeper.pop(key)))
        parts[prefix] = sorted(word for some in deeper.values() for word in some)
    return {prefix: words for prefix, words in sorted(parts.items()) if words}


def _build_script(name: str, data: Any) -> tuple[str, bytes]:
    text = json.dumps(data, separators=(",", ":"))
    return f"{FOLDER}/{name}.js", f'memtool("{name}",{text});\n'.encode()
