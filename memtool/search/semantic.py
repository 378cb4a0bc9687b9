"""Search by meaning: finds memories even if they share no word with the question.

A sentence model turns each memory and the question into vectors (`encoder`); the similarity of two
texts is the cosine of theirs. The 30 memories nearest to the question are candidates, besides those
found by words, and what nearness adds to a score depends on what words have found:

    weight = 1.5 · (1 - q)        gain = weight · (cosine - mean) / (highest - mean)

q is the share of the question's worth that the best match by words contains, and the cosines are
those of all candidates. So a question whose words are answered keeps the order by words, and one
whose words nobody used is answered by meaning.

The vector of a memory is stored by its blob, a byte per number: 10,000 memories take 3.8 MB. A
search makes a few of the missing ones, the newest memories first, within a short time; `maintain`
and idle servers make the others. Until then the answer says that only some were compared.
"""

from __future__ import annotations

import math
import time
from threading import Thread

from memtool.index import index
from memtool.index.arrays import compute_cosines
from memtool.search.model import find_model
from memtool.search.retrieve import PARTIAL, WHOLE
from memtool.store import kept
from memtool.store.cache import CorruptCacheError
from memtool.value import Value, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from memtool.index.reader import Catalog, IndexReader
    from memtool.search.model import SentenceModel
    from memtool.store.context import Context

KIND = "vector"
"""The kind of a stored vector; its basis is the model, its key the blob."""

WEIGHT = 1.5
"""What the nearest memory gains if words have found nothing; the best by words has 1.0."""

MAX_NEAREST = 30
"""Nearest memories that are candidates, with or without a common word."""

MIN_COSINE = 0.3
"""Minimum for a candidate without a common word."""

MIN_ANSWER_COSINE = 0.5
"""From this cosine on a memory is an answer, whatever words it contains."""

WAIT_S = 1.0
"""Seconds that a search spends on vectors of memories that have none yet."""

BATCH = 64
"""Vectors that are stored together."""

Vectors = dict[bytes, bytes]
"""The vectors of memories by blob, in signed bytes."""

_vectors: dict[tuple[str, str], Vectors] = {}
"""The vectors that this process has read, by the cache directory and the model."""


class SemanticMatcher(Value):
    """Finds memories near to a question by meaning: number to cosine, -1 to 1.

    `is_whole` means that all memories have a vector.
    """

    cosines: Mapping[int, float]
    is_whole: bool

    @property
    def state(self) -> str:
        """PARTIAL or WHOLE: whether some or all memories were compared."""
        return WHOLE if self.is_whole else PARTIAL

    def weigh(self, coverage: float) -> float:
        """Return what the nearest memory gains, if the best by words has 1 and this coverage."""
        return WEIGHT * (1.0 - coverage)

    def matches(self, allowed: Callable[[int], bool]) -> list[int]:
        """Return the allowed documents that are nearest by meaning, nearest first."""
        nearest: list[int] = []
        for number in sorted(self.cosines, key=self.cosines.__getitem__, reverse=True):
            cosine = self.cosines[number]
            is_full = len(nearest) >= MAX_NEAREST and cosine < self.cosines[nearest[-1]]
            if cosine < MIN_COSINE or is_full:
                break
            if allowed(number):
                nearest.append(number)
        return nearest

    def add(
        self, scores: Mapping[int, float], matches: Sequence[int], coverage: float
    ) -> dict[int, float]:
        """Return scores plus the gain by meaning.

        `coverage` is the share of the question's worth that the best match by words contains.
        """
        candidates = {**dict.fromkeys(matches, 0.0), **scores}
        cosines = [self.cosines[number] for number in candidates if number in self.cosines]
        if not cosines:
            return candidates
        mean, highest = sum(cosines) / len(cosines), max(cosines)
        weight = self.weigh(coverage) / ((highest - mean) or 1.0)
        return {
            number: score + weight * max(0.0, self.cosines.get(number, mean) - mean)
            for number, score in candidates.items()
        }

    def measure(self, number: int) -> float:
        """Return the cosine of a document, 0 without one."""
        return self.cosines.get(number, 0.0)

    def is_answer(self, number: int) -> bool:
        """Return whether a document is near enough to answer by its meaning alone."""
        return self.measure(number) >= MIN_ANSWER_COSINE

    def details(self, number: int) -> dict[str, float]:
        """Return the cosine of a document, if it has one."""
        return {"cosine": self.cosines[number]} if number in self.cosines else {}


def build_matcher(
    context: Context, tree: Catalog, text: str, model: SentenceModel
) -> SemanticMatcher:
    """Return a matcher for memories of a tree by the meaning of a text.

    In a process that serves many calls another thread makes the vectors that are missing after
    this one's time is over.
    """
    blobs = list_blobs(tree.index)
    vectors = read_vectors(context, model, blobs.values())
    if not all(blob in vectors for blob in blobs.values()):
        make_vectors(context, tree.index, model, time.monotonic() + WAIT_S)
    numbers = [number for number, blob in blobs.items() if blob in vectors]
    is_whole = len(numbers) == len(blobs)
    if not is_whole and context.caller.is_resident and tree.location.kind == "worktree":
        _make_in_background(context, model)
    rows = b"".join(vectors[blobs[number]] for number in numbers)
    cosines = compute_cosines(rows, model.vectorize(text)).tolist()
    return SemanticMatcher(dict(zip(numbers, cosines, strict=True)), is_whole=is_whole)


def list_blobs(reader: IndexReader) -> dict[int, bytes]:
    """Return the blob of each memory, in hexadecimal, by its number."""
    return {number: oid.hex().encode() for number, _path, oid in reader.read_stamps()}


def describe_missing(context: Context) -> tuple[str, str] | None:
    """Return how many memories have no vector yet, and what for; None if there is nothing to do."""
    model = None if context.repository.is_bare else find_model(context)
    if model is None:
        return None
    blobs = set(list_blobs(index.open(context).index).values())
    count = len(blobs - read_vectors(context, model, blobs).keys())
    what = format_count(count, "vector of a memory", "vectors of memories")
    return (what, "search by meaning compares them") if count else None


def make_missing(context: Context) -> None:
    """Make the vectors of all memories of a worktree."""
    model = find_model(context)
    if model is not None:
        make_vectors(context, index.open(context).index, model)


def read_vectors(context: Context, model: SentenceModel, blobs: Iterable[bytes]) -> Vectors:
    """Return the known vectors of a repository, among them all that are stored of these blobs."""
    cache_dir = context.repository.cache_dir
    vectors = _vectors.setdefault((cache_dir, model.key), {})
    absent = [blob for blob in blobs if blob not in vectors]
    if absent and context.is_cached:
        vectors.update(kept.read_all(cache_dir, KIND, model.key.encode(), absent))
    return vectors


def make_vectors(
    context: Context,
    reader: IndexReader,
    model: SentenceModel,
    deadline: float = math.inf,
    *,
    is_gentle: bool = False,
) -> None:
    """Make and store the missing vectors of an index, the newest memories first.

    One is made in any case, the others until the `deadline` by the monotonic clock. `is_gentle`
    rests after each as long as it took.
    """
    blobs = list_blobs(reader)
    vectors = read_vectors(context, model, blobs.values())
    waiting = [number for number, blob in blobs.items() if blob not in vectors]
    fresh: Vectors = {}
    for number in _sort_newest_first(reader, waiting):
        began = time.monotonic()
        if fresh and began > deadline:
            break
        part, local = reader.find_part(number)
        memory = part.memories.record(local).memory  # read once, not kept open
        fresh[blobs[number]] = model.vectorize(f"{memory.title}\n{memory.body}")
        if len(fresh) >= BATCH:
            _store(context, model, fresh)
            fresh = {}
        if is_gentle:
            time.sleep(time.monotonic() - began)
    _store(context, model, fresh)


def _sort_newest_first(reader: IndexReader, numbers: Sequence[int]) -> list[int]:
    def written(number: int) -> int:
        part, local = reader.find_part(number)
        return part.memories.written(local)

    reader.load(numbers)
    return sorted(numbers, key=lambda number: (-written(number), number))


def _store(context: Context, model: SentenceModel, fresh: Vectors) -> None:
    cache_dir = context.repository.cache_dir
    _vectors.setdefault((cache_dir, model.key), {}).update(fresh)
    if fresh and context.is_cached:
        kept.write_all(cache_dir, KIND, model.key.encode(), fresh)


_busy: set[tuple[str, str]] = set()
"""Repositories whose vectors another thread is making, by cache directory and model."""


def _make_in_background(context: Context, model: SentenceModel) -> None:
    """Make the missing vectors of a worktree in another thread, unless one does so already."""
    place = context.repository.cache_dir, model.key
    if place in _busy or not context.is_cached:
        return
    _busy.add(place)
    top, env = context.repository.top, dict(context.caller.env)

    def run() -> None:
        from memtool.errors import MemtoolError
        from memtool.store.context import Context as ThreadContext

        try:
            own = ThreadContext.at(top, env)  # nothing of a context is safe in two threads
            make_vectors(own, index.open(own).index, model, is_gentle=True)
        except (MemtoolError, CorruptCacheError, OSError):
            pass  # the next question tries again
        finally:
            _busy.discard(place)

    Thread(target=run, daemon=True).start()
