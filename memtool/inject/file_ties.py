"""File ties: the records that probably govern a file, which no memory says for certain.

They come after the rules for the file and say where they are from: the text of the file names them,
their text names the file, or commits that name them changed it. Only imported decisions have ties,
so other repositories pay nothing.
"""

from __future__ import annotations

from memtool.inject.candidates import GOVERNING, Candidate, trust_order
from memtool.search.features import Facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from memtool.inject.candidates import Eligibility
    from memtool.search.history_files import HistoryTable
    from memtool.store.context import Context
    from memtool.store.tree import Record

BY_CODE = "by history: this file names it"
SUGGESTED = "probably: its text names this file"
BY_COMMITS = "by history: commits that name it changed this file"
MAX_FILES = 10
"""Files of one request that are looked at."""


def find_ties(
    context: Context,
    grounds: Eligibility,
    files: Iterable[str],
    rules: Collection[str],
    head: str,
    *,
    is_hurried: bool,
) -> list[Candidate]:
    """Return the records that are tied to files and may be shown, the surest tie first.

    `rules` are the ids of the memories that govern the files for certain, `head` is the commit
    whose history counts. If `is_hurried`, a history that takes long to read is left to a background
    process, and the caller is unfinished.
    """
    tree = grounds.tree
    paths = [path for path in files if not path.startswith(f"{context.directory}/")][:MAX_FILES]
    if not paths or not tree.imported_ids:
        return []
    from memtool.search import suggested_files  # most repositories have imported nothing

    history = read_history(context, grounds, head, is_hurried=is_hurried)
    facts = Facts(tree, grounds.now, dict, grounds.standing.lineage)
    named: list[Record] = []
    suggested: list[Record] = []
    changed: list[Record] = []
    for path in paths:
        suggested += suggested_files.find_suggesting(tree, path)
        if history is not None:
            named += find_shown(history.find_named_by(path, facts), facts, grounds)
            changed += find_shown(history.find_records(path, facts), facts, grounds)
    ties: dict[str, Candidate] = {}
    for records, tie in ((named, BY_CODE), (suggested, SUGGESTED), (changed, BY_COMMITS)):
        for record in sorted(records, key=lambda record: trust_order(record, grounds)):
            if record.id not in rules and not grounds.find_refusal(record):
                tied = Candidate(record, GOVERNING, scope=grounds.scope, tie=tie)
                ties.setdefault(record.id, tied)
    return list(ties.values())


def read_history(
    context: Context, grounds: Eligibility, head: str, *, is_hurried: bool
) -> HistoryTable | None:
    """Return the history of HEAD; None without a commit, and for a tree of the past."""
    if grounds.tree.location.kind != "worktree" or not head:
        return None
    from memtool.search import history_files

    ids = grounds.tree.imported_ids
    history = history_files.read_table(context, ids, head, is_hurried=is_hurried)
    context.caller.is_unfinished |= history.is_missing
    return history


def find_shown(ids: Iterable[str], facts: Facts, grounds: Eligibility) -> Iterator[Record]:
    """Yield the memories of ids that may be shown, or else the heads that replace them."""
    for record in filter(None, map(facts.tree.get, ids)):
        yield from [record] if not grounds.find_refusal(record) else facts.heads(record)
