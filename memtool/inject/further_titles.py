"""Further titles: what may help beyond the answers, one line each.

The answer gate is silent about most prompts that share only some words with a memory, and often
the right memory is the best of those. A title costs a dozen tokens, and an agent can tell from it
whether to read on. So up to `inject.titles` of them follow a block, or come alone.

They are the next ones in the order of the search that hold two rare words of the prompt: small talk
and generic tasks hold none, or one by chance (see `bench/silence.py`). A session is told each title
once, and none of a memory that it has seen.
"""

from __future__ import annotations

from memtool.inject.block import describe_trust
from memtool.inject.candidates import RETRIEVAL
from memtool.inject.effective_lineage import find_best_level
from memtool.inject.remarks import name_ids
from memtool.search.comparison import ComparedText, says_same
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from memtool.inject.candidates import Candidate
    from memtool.inject.gather import RepositoryCandidates
    from memtool.memory.trust import Origin
    from memtool.store.tree import Record

SETTING = "inject.titles"

MIN_WORDS = 2
"""Rare words of the prompt that such a memory holds."""

HEADING = "Perhaps also, titles only:"
LEAD = "Perhaps one of these helps; `memtool show ID` prints it. Titles only, of team memory:"
"""The first line of a block that has nothing else."""

SEEN = "title"
"""What a session has seen of a memory, in place of its version."""


class Title(Value):
    """A memory of which only the title is shown."""

    json_fields = "id title"

    id: str
    title: str


def choose(
    own: RepositoryCandidates, shown: Sequence[Candidate], max_titles: int
) -> list[tuple[Title, str]]:
    """Return titles for a block, each with its line, from the best hits that are not in it.

    `shown` are the candidates in the block.
    """
    seen_ids = {id_ for id_, _version in own.seen.seen}
    seen_ids.update(candidate.record.id for candidate in shown)
    texts = [ComparedText(candidate.record.memory) for candidate in shown]
    chosen: list[tuple[Title, str]] = []
    for record in _list_records(own):
        if len(chosen) >= max_titles:
            break
        is_hidden = own.grounds.find_refusal(record) or own.grounds.find_withholding(record)
        if record.id in seen_ids or is_hidden:
            continue
        text = ComparedText(record.memory)
        if any(says_same(text, other) for other in texts):
            continue
        texts.append(text)
        line = format_title(own, record, own.origins[record.path])
        chosen.append((Title(id=record.id, title=record.memory.title), line))
    return chosen


def _list_records(own: RepositoryCandidates) -> Iterator[Record]:
    """Yield the hits that hold enough words, best first."""
    for candidate in own.hits:
        if candidate.tier == RETRIEVAL and len(candidate.topic) >= MIN_WORDS:
            yield candidate.record
    for hit in own.search_result.further:
        if len(hit.topic) >= MIN_WORDS:
            yield hit.record


def format_title(own: RepositoryCandidates, record: Record, origin: Origin) -> str:
    """Return the line of a memory: its short id, title, and why it may not hold."""
    memory = record.memory
    marks = [memory.status] * (memory.status == "candidate")
    marks += describe_trust(origin, find_best_level(own.view.witness))
    shorten = own.grounds.tree.short_ids.shorten
    rivals = name_ids([*map(shorten, own.grounds.find_rivals(record.id))])
    marks += [f"conflicts with {rivals}"] if rivals else []
    marks += own.grounds.list_briefs(record)
    mark = f" ({', '.join(marks)})" if marks else ""
    return f"{shorten(record.id)} {memory.title}{mark}"


def list_versions(titles: Iterable[Title]) -> list[tuple[str, str]]:
    """Return what a session has seen by these titles."""
    return [(title.id, SEEN) for title in titles]
