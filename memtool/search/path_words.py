"""Path words: the imported decision that the words of a file's path find, if one stands out.

Most decisions name no file that anybody edits, and no commit names them. Often the path says as
much as a title: `payments/refund_queue.py` is about refunds and queues. Every path has a best hit,
so this one has a gate of its own. The hit must hold a share of the words, each weighed by how rare
it is among the memories, and must lead the next one clearly.

The numbers were chosen on 48 commits that name a decision and 21 that name none, of the four
repositories for tuning in `bench/replay`: the right decision for 19 % of the former, and any for
10 % of the latter. Without the gate it is 48 % and all.
"""

from __future__ import annotations

from memtool.index import scoring
from memtool.index.scoring import content_terms
from memtool.pattern import Pattern
from memtool.search.suggested_files import accepts_suggestions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.index.reader import IndexReader
    from memtool.index.scoring import Question
    from memtool.search.features import Facts
    from memtool.search.retrieve import Refusal
    from memtool.store.tree import Record

MIN_WORTH = 0.3
"""Share of the path's words that a memory must hold; a word counts 1 if no memory has it."""
MIN_LEAD = 1.2
"""How much higher than the next best it must score."""
MIN_MEMORIES = 20
"""Fewer memories do not show how rare a word is, so this many are assumed."""
_MAX_HITS = 5
_MAX_PATH_CHARS = 500
_WORD = Pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def find_by_path(facts: Facts, path: str, refuses: Refusal) -> Record | None:
    """Return the decision that stands out for a path, None if none does.

    It is current, not refused, imported, and says of no file that it governs it.
    """
    question = scoring.parse_question(_split(path), facts.language)
    if not content_terms(question):
        return None
    catalog, index = facts.catalog, facts.catalog.index

    def is_shown(number: int) -> bool:
        record = catalog.record(number)
        return facts.is_current(record) and not refuses(record)

    # Fewer hits than a search scores closely: this is at each edit, and a record may be long.
    hits = index.find_best(question.weights, _MAX_HITS, is_shown)
    scores = index.rerank(question, hits)
    if not scores:
        return None
    (best, score), *behind = scores
    is_ahead = not behind or score >= MIN_LEAD * behind[0][1]
    if not is_ahead or _measure_worth(index, question, index.text(best)) < MIN_WORTH:
        return None
    record = catalog.record(best)
    return record if accepts_suggestions(record.memory) else None


def _split(path: str) -> str:
    """Return the words of a path without its extension, each once: `holdQueue` has two."""
    folder, slash, name = path[-_MAX_PATH_CHARS:].rpartition("/")
    stem = name.partition(".")[0] or name
    return " ".join(dict.fromkeys(_WORD.findall(f"{folder}{slash}{stem}")))


def _measure_worth(index: IndexReader, question: Question, text: bytes) -> float:
    """Return the share of the words that a text (as terms) has, by their rarity."""
    count = max(index.count, MIN_MEMORIES)
    rarest = scoring.idf(count, 0)
    words = content_terms(question)
    worth = sum(
        scoring.idf(count, index.df(word)) / rarest
        for word in words
        if b" %b " % word.encode() in text
    )
    return worth / len(words)
