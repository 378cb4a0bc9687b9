"""The cache of segments: one directory for each set of documents, named by its content.

`<cache>/index/<hash>/` never changes once it is there, so readers need no lock. Writers build
beside it and rename; the loser of a race uses what the winner wrote. A cache that is missing,
damaged, of another version or not writable costs time, never the answer.
"""

from __future__ import annotations

import os
import sys

from memtool.search import layout, scoring
from memtool.search.layout import Broken
from memtool.search.segment import Segment
from memtool.search.terms import TOKENIZER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeVar

    from memtool.search.scoring import Document, Hit, Question, Statistics

    Answer = TypeVar("Answer")

KEPT = 4
"""Segments that stay: those last used, since branches and worktrees share a cache."""
TEMP_PREFIX = ".tmp-"
STALE_S = 3600
"""Age at which what a killed writer left behind is swept away."""


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
        except Broken:
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
    except Broken:
        made, note = build(is_damaged=False)
        return Index(made, None, note)
    layout.touch(path)
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
    from _blake2 import blake2b  # hashlib would import OpenSSL

    settings = (layout.FORMAT, TOKENIZER, sys.byteorder, str(scoring.K1), str(scoring.B))
    parts = [*settings, *(part for pair in sorted(identity) for part in pair)]
    return blake2b("\0".join(parts).encode(errors="surrogatepass"), digest_size=16).hexdigest()


def store(folder: str, path: str, files: Mapping[str, bytes], *, is_damaged: bool) -> str:
    """Put the files of a segment in their place; return a note if that is impossible.

    `is_damaged` says that what stands there now must go, although it can be opened.
    """
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        temp = os.path.join(folder, f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(4).hex()}")
        os.mkdir(temp, 0o700)
        try:
            for name, data in files.items():
                with open(os.path.join(temp, name), "wb") as file:
                    file.write(data)
            _put_in_place(temp, path, is_damaged=is_damaged)
        finally:
            _remove(temp)  # nothing is there after a rename
        _sweep(folder, path)
    except OSError as error:
        return f"the search index is not kept: {folder}: {os.strerror(error.errno or 0)}"
    return ""


def _put_in_place(temp: str, path: str, *, is_damaged: bool) -> None:
    """Rename a new segment to its name. Who comes second leaves what is there, if it is whole."""
    from contextlib import suppress

    with suppress(OSError):  # a directory that is not empty stands there
        os.rename(temp, path)
        return
    if not is_damaged:
        with suppress(Broken):
            Segment.open(path)
            return
    aside = f"{temp}-damaged"
    try:
        os.rename(path, aside)
        os.rename(temp, path)
    finally:
        _remove(aside)


def _sweep(folder: str, newest: str) -> None:
    """Remove segments that were not used lately, and what killed writers left."""
    from contextlib import suppress

    ages = []
    now = os.stat(newest).st_mtime  # just made; another process may differ by a little
    for name in sorted(os.listdir(folder)):
        place = os.path.join(folder, name)
        with suppress(OSError):
            ages.append((os.stat(place).st_mtime, place))
    ages.sort(reverse=True)
    kept = 0
    for used, place in ages:
        if os.path.basename(place).startswith(TEMP_PREFIX):
            if used < now - STALE_S:
                _remove(place)
        elif place != newest:
            kept += 1
            if kept >= KEPT:
                _remove(place)


def _remove(place: str) -> None:
    """Remove a directory with its files, as far as possible; readers keep what they mapped."""
    from contextlib import suppress

    with suppress(OSError):
        if not os.path.isdir(place):
            os.unlink(place)
            return
        for name in os.listdir(place):
            os.unlink(os.path.join(place, name))
        os.rmdir(place)
