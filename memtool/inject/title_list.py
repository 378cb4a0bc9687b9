"""The list of titles in a primer: the decisions of a small store, or those that matter lately.

No search finds a decision that shares no word with the prompt, and a rule for all code is in no
prompt. All titles of some forty decisions cost less than one wrong step. In a larger store the five
that commits named last are worth most: what a team works on goes on for days. Proposed decisions
are in the list, since they are what people implement. `bench/replay` measures it.
"""

from __future__ import annotations

from itertools import islice

from memtool.inject.block import quote_line
from memtool.inject.budget import BYTES_PER_TOKEN, measure_bytes
from memtool.inject.file_ties import find_shown, read_history
from memtool.inject.further_titles import Title, format_title
from memtool.search import picks
from memtool.search.features import Facts
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from memtool.inject.gather import RepositoryCandidates
    from memtool.store.context import Context
    from memtool.store.tree import Record

SETTING = "inject.title_tokens"
MAX_RECENT = 5
ALL = "Decisions, titles only (`memtool show ID` prints one)"
RECENT = "Decisions that commits named last, titles only (`memtool show ID` prints one)"
_MAX_EXAMINED = 200
"""Decisions that may be read to find out that there are too many; a store may hold thousands."""
_DECISIONS = (("type", "decision"), ("category", "decision"))


class TitleList(Value):
    """Titles with their lines, and the heading above them; empty if there is no decision."""

    heading: str = ""
    rows: tuple[tuple[Title, str], ...] = ()


def build_list(
    context: Context, own: RepositoryCandidates, shown: Collection[str], *, is_hurried: bool
) -> TitleList:
    """Return the list for a primer, without the decisions whose ids are `shown` in it.

    It has all of them, if they fit into the tokens that the setting allows, else those named last.
    If `is_hurried`, a history that takes long to read is left to a background process.
    """
    max_tokens = context.project.strict_settings.count(SETTING)
    if not max_tokens:
        return TitleList()
    decisions = list(islice(picks.pick(own.grounds.tree, *_DECISIONS), _MAX_EXAMINED + 1))
    if len(decisions) <= _MAX_EXAMINED:
        rows = _format_rows(own, decisions, shown)
        size = sum(measure_bytes(quote_line(line)) for _title, line in rows)
        if size <= max_tokens * BYTES_PER_TOKEN:
            return TitleList(ALL, tuple(rows)) if rows else TitleList()
    recent = _find_recent(context, own, is_hurried=is_hurried)
    rows = _format_rows(own, recent, shown)[:MAX_RECENT]
    return TitleList(RECENT, tuple(rows)) if rows else TitleList()


def _format_rows(
    own: RepositoryCandidates, records: Iterable[Record], shown: Collection[str]
) -> list[tuple[Title, str]]:
    """Return the titles of the records that may be shown, each with its line."""
    others = [record for record in records if record.id not in shown]
    presentable = [record for record in others if not own.grounds.find_refusal(record)]
    origins = own.view.witness.origins(presentable)
    return [
        (
            Title(id=record.id, title=record.memory.title),
            format_title(own, record, origins[record.path]),
        )
        for record in presentable
    ]


def _find_recent(
    context: Context, own: RepositoryCandidates, *, is_hurried: bool
) -> Iterator[Record]:
    """Yield the records that commits named last, the newest first, or what replaces them."""
    grounds, basis = own.grounds, own.view.witness.basis
    if basis is None or not grounds.tree.imported_ids:
        return
    history = read_history(context, grounds, basis.head, is_hurried=is_hurried)
    if history is None:
        return
    facts = Facts(grounds.tree, grounds.now, dict, grounds.standing.lineage)
    records = find_shown(history.find_recent(facts), facts, grounds)
    yield from {record.id: record for record in records}.values()
