"""A corpus: many documents as rows of runs, each distinct run of characters looked at once.

A run is what stands between spaces (see `terms`). Ten thousand memories hold nearly two million,
of which one in forty is new, so what terms a run gives is a table beside them. Marks between the
runs say where a field begins, and where a head and a document end. `builder` makes an index of
the numbers of the runs, without a look at single words.
"""

from __future__ import annotations

from itertools import islice

from memtool.search import terms
from memtool.search.scoring import HEAD_FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from memtool.search.scoring import Document

FIELD, HEAD, END = 0, 1, 2
"""The numbers of the marks: a field begins, a head has ended, a document has ended."""
SPELLED = (" ", "\n", "")
"""How marks stand in a text as terms (see `scoring.searchable`), where a space ends each term."""
_MARKS = (b"\xff", b"\xfe", b"\xfd")
"""How they stand between runs: no text in UTF-8 holds one of these."""
_BATCH = 500
"""Documents that are split at once: with fewer, calls cost more; with more, memory does."""
_SPACED = bytes(ord(terms.spaced(chr(code))) if code < 128 else code for code in range(256))


class Runs(dict[bytes, int]):
    """The number of each run. One that is new is taken apart into its words and compounds.

    These stand in two lists by number. A mark is its own word.
    """

    def __init__(self) -> None:
        super().__init__({mark: number for number, mark in enumerate(_MARKS)})
        self.words: list[tuple[str, ...]] = [(spelled,) for spelled in SPELLED]
        self.compounds: list[tuple[str, ...]] = [() for _spelled in SPELLED]

    def __missing__(self, raw: bytes) -> int:
        words, compounds = terms.of_run(raw.decode())
        self.words.append(words)
        self.compounds.append(compounds)
        number = self[raw] = len(self)
        return number


def rows(documents: Iterable[Document]) -> Iterator[list[bytes]]:
    """Yield the runs of documents, with marks, some documents at a time.

    Of each the fields of the head come first, as in a text as terms.
    """
    found = iter(documents)
    while batch := list(islice(found, _BATCH)):
        parts: list[bytes] = []
        for document in batch:
            _spell(document, parts)
        yield b" ".join(parts).split()


def _spell(document: Document, parts: list[bytes]) -> None:
    """Append the bytes of a document, without what is in no word, each field behind its mark."""
    field, head, end = _MARKS
    rest: list[bytes] = []
    for name, text in document.fields:
        raw = text.encode().translate(_SPACED) if text.isascii() else terms.spaced(text).encode()
        (parts if name in HEAD_FIELDS else rest).extend((field, raw))
    parts.append(head)
    parts += rest
    parts.append(end)
