"""The cache of segments: one directory for each set of documents, named by its content.

`<cache>/index/<hash>/` never changes once it is there, so readers need no lock. Writers build
beside it and rename; the loser of a race uses what the winner wrote. A cache that is missing,
damaged, of another version or not writable costs time, never the answer.
"""

from __future__ import annotations

import os
import sys

from memtool.search import layout, scoring
from memtool.search.segment import Segment
from memtool.search.terms import TOKENIZER
from memtool.store import cache
from memtool.store.cache import CorruptCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeVar

    from memtool.search.scoring import Document, Hit, Question, Statistics

    Answer = TypeVar("Answer")

KEPT = 4
"""Segments that stay: those last used, since branches and worktrees share a cache."""


class Index:
    """A segment with the means to make it anew, should its files turn out to be damaged.

    `note` is what the user should hear about the cache, empty if there is nothing to say.
    """

    def __init__(
        self,
        held: Segment,
        rebuild: Callable[[], tuple[Segment, str]] | None,
        note: str = "",
    ) -> None:
        self.segment = held
        self.note = note
        self._rebuild = rebuild

    @property
    def count(self) -> int:
        return self.segment.count

    def search(
        self,
        asked: Question,
        limit: int,
        allowed: Callable[[int], bool] | None = None,
        statistics: Statistics | None = None,
    ) -> list[Hit]:
        """Return the best documents; see `Segment.search`."""
        return self.whole(lambda held: held.search(asked, limit, allowed, statistics))

    def key(self, number: int) -> str:
        """Return the key of a document."""
        return self.whole(lambda held: held.key(number))

    def df(self, term: str) -> int:
        """Return the number of documents that hold a term."""
        return self.whole(lambda held: held.df(term))

    def whole(self, ask: Callable[[Segment], Answer]) -> Answer:
        """Ask the segment; where it is damaged, build it anew and ask again."""
        try:
            return ask(self.segment)
        except CorruptCache:
            if self._rebuild is None:
                raise
            (self.segment, self.note), self._rebuild = self._rebuild(), None
        return ask(self.segment)


def open_index(
    cache_dir: str,
    documents: Callable[[], Iterable[Document]],
    identity: Sequence[tuple[str, str]],
) -> Index:
    """Return the index of a set of documents, from the cache or built now.

    `documents` is called only to build. `identity` says which ones they are: the key of each and
    an id of its content, in any order.
    """
    folder = os.path.join(cache_dir, layout.FOLDER)
    path = os.path.join(folder, name_of(identity))

    def build(*, is_damaged: bool) -> tuple[Segment, str]:
        from memtool.search import builder  # bm25s and numpy: 15 times an interpreter start

        files = builder.build(documents())
        note = store(folder, path, files, is_damaged=is_damaged)
        return Segment({name: memoryview(data) for name, data in files.items()}), note

    try:
        found = Segment.open(path)
    except CorruptCache:
        made, note = build(is_damaged=False)
        return Index(made, None, note)
    cache.touch(path)
    return Index(found, lambda: build(is_damaged=True))


def built_index(documents: Iterable[Document]) -> Index:
    """Return the index of documents, built now and kept nowhere."""
    from memtool.search import builder

    files = builder.build(documents)
    return Index(Segment({name: memoryview(data) for name, data in files.items()}), None)


def name_of(identity: Iterable[tuple[str, str]]) -> str:
    """Return the name of the segment of these documents, 32 hexadecimal digits.

    Keys and ids are paths and hashes: they hold no NUL, which parts them here.
    """
    settings = (layout.FORMAT, TOKENIZER, sys.byteorder, str(scoring.K1), str(scoring.B))
    parts = [*settings, *(part for pair in sorted(identity) for part in pair)]
    return cache.digest(*parts, size=16)


def store(folder: str, path: str, files: Mapping[str, bytes], *, is_damaged: bool) -> str:
    """Put the files of a segment in their place; return a note if that is impossible.

    `is_damaged` says that what stands there now must go, although it can be opened.
    """

    def is_whole(place: str) -> bool:
        try:
            Segment.open(place)
        except CorruptCache:
            return False
        return not is_damaged

    note = cache.write_folder(folder, os.path.basename(path), files, KEPT, is_whole)
    return f"the search index is not kept: {note}" if note else ""
