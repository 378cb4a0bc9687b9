"""The scope of a search: which memories, as of when, with which settings."""

from __future__ import annotations

from memtool.memory import lifecycle, timestamps
from memtool.memory.memory import is_generated
from memtool.memory.trust import Origin
from memtool.memory.visibility import PRIVATE, STALE
from memtool.search import expansion, retrieve
from memtool.search.retrieve import Scope
from memtool.store.context import Context
from memtool.store.provenance import TrustLevels
from memtool.store.tree import Record, Tree, newest_first_key
from memtool.value import Value, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from memtool.index.reader import Catalog
    from memtool.memory.memory import Memory
    from memtool.search.drift import DriftWitness
    from memtool.search.features import Facts
    from memtool.search.query import Query
    from memtool.store.commit_files import CommitFiles
    from memtool.store.provenance import ProvenanceReader

    SortKey = Callable[[Record], tuple[float | str, ...]]


DIGEST, MEMORY, SESSION, NONE = "digest", "memory", "session", "none"
"""The levels that may answer, shortest first; `none` if nothing does."""


def is_digest(memory: Memory) -> bool:
    """Return whether a memory summarizes others; one derived from a single memory does not."""
    return len(memory.items("derived_from")) > 1 or is_generated(memory)


class MemoryRow(Value):
    """A memory as a list shows it. `commit` is the full id of its last commit, None if uncommitted.

    `due` means that its category's time since confirmation is over. `unproven` is what it lacks to
    satisfy its trust rule, empty if nothing. `unsettled` is how what it rests on no longer holds,
    empty if it does.
    """

    id: str
    title: str
    type: str
    category: str
    status: str
    confidence: str
    path: str
    timestamp: str
    commit: str | None
    trust: str
    due: bool
    unproven: str
    unsettled: str


SORTS: dict[str, SortKey] = {
    "newest": lambda record: (-record.memory.timestamp, record.id, record.path),
    "oldest": lambda record: (record.memory.timestamp, record.id, record.path),
    "importance": lambda record: (-record.memory.importance, record.id, record.path),
    "title": lambda record: (record.memory.title.casefold(), record.id, record.path),
    "id": lambda record: (record.id, record.path),
}
"""Orders that need no score. Every key ends in the id, so that no two memories are equal."""


ACCESSED = "accessed"


def choose_sort_key(scope: Scope, sort: str) -> SortKey:
    """Return the key of an order; the order by accesses reads all counts at once."""
    if sort != ACCESSED:
        return SORTS[sort]
    counts = scope.accesses(scope.tree.ids) if scope.accesses else {}
    return lambda record: (-counts.get(record.id, 0), record.id, record.path)


def find_first(scope: Scope, query: Query, sort: str, limit: int) -> tuple[list[Record], int]:
    """Return the first `limit` records that satisfy a query, and the total.

    Raises:
        MemtoolError: a filter has a bad value.
    """
    facts = scope.facts()
    if not query.text and sort == "newest":
        return _find_newest(facts, limit), facts.count_current()
    records = retrieve.find_records(scope, query) if query.text else facts.find_current()
    return sorted(records, key=choose_sort_key(scope, sort))[:limit], len(records)


def _find_newest(facts: Facts, limit: int) -> list[Record]:
    """Return the newest living heads; no others are opened."""
    records: list[Record] = []
    for record in filter(facts.is_current, facts.tree.latest_of_kinds(lambda _kind: True)):
        if len(records) >= limit and newest_first_key(record)[0] > newest_first_key(records[-1])[0]:
            break  # what was written in the same second goes by id
        records.append(record)
    return sorted(records, key=SORTS["newest"])[:limit]


def collect_row_fields(
    context: Context, record: Record, origin: Origin, now: int, unsettled: str = ""
) -> dict[str, Any]:
    """Return the fields of a memory's row, as of the second `now`."""
    memory = record.memory
    return {
        "id": record.id,
        "title": memory.title,
        "type": memory.type,
        "category": memory.category,
        "status": memory.status,
        "confidence": memory.confidence,
        "path": record.path,
        "timestamp": memory.text("timestamp"),
        "commit": origin.commit or None,
        "trust": origin.trust,
        "due": lifecycle.is_due(memory, now, context.settings.categories),
        "unproven": find_trust_gap(context, record, origin),
        "unsettled": unsettled,
    }


def find_trust_gap(context: Context, record: Record, origin: Origin) -> str:
    """Return what a memory lacks to satisfy its trust rule; empty if nothing, or without a rule."""
    rules = context.project.trust_rules
    if not rules:
        return ""
    from memtool.store import trust_rules  # most projects have none

    return trust_rules.find_gap(rules, record.memory, record.path, origin)


def build_scope(context: Context, tree: Catalog, now: int) -> Scope:
    """Build the scope for searching a tree, as of the second `now`."""
    from memtool.store.usage_counts import UsageCounts

    counts = UsageCounts(context.repository.cache_dir)
    return Scope(
        tree=tree,
        now=now,
        config=context.settings,
        aliases=expansion.parse(read_aliases_file(context), aliases_path(context)),
        origins=lambda: context.origins(tree, tree.records),
        accesses=counts.count_shown,
        settled_accesses=counts.count_settled,
        is_replay=now != context.clock.now or tree.location.kind != "worktree",
        companions=lambda files: _find_companions(context, tree, files),
        trust=TrustLevels(tree, lambda: context.provenance_reader(tree)),
        drift=build_drift_witness(tree, lambda: context.provenance_reader(tree)),
    )


def build_drift_witness(
    tree: Tree,
    witness: Callable[[], ProvenanceReader],
    since: str = "",
    *,
    is_worktree: bool = False,
    files: Callable[[], CommitFiles] | None = None,
) -> DriftWitness:
    """Return a witness of what happened to the files of memories; it queries git on demand.

    `since` is a commit to compare with, instead of the one at which each memory was confirmed.
    `is_worktree` compares with the files on disk, instead of those in HEAD, and `files` with those
    that it returns.
    """
    from memtool.search.drift import DriftWitness

    return DriftWitness(tree, witness, since, is_worktree=is_worktree, files=files)


def _find_companions(context: Context, tree: Tree, files: tuple[str, ...]) -> tuple[str, ...]:
    # A global memory has no files of a project.
    basis = None if context.is_global else context.provenance_reader(tree).basis
    if basis is None:
        return ()
    from memtool.store import cochange  # most prompts come without files

    repository, directory = basis.repository, basis.directory
    return cochange.find_companions(
        repository, directory, basis.head, files, is_cached=context.is_cached
    )


def aliases_path(context: Context) -> str:
    """Return the path of the alias file, relative to the top."""
    return f"{context.directory}/{expansion.ALIASES_NAME}"


def read_aliases_file(context: Context) -> bytes | None:
    """Return the bytes of the alias file (of HEAD in a bare repository), None if there is none."""
    return context.project.read_file(aliases_path(context), "bad-alias")


def note_truncated(context: Context, shown: int, total: int, hint: str, offset: int = 0) -> None:
    """Note on stderr that more results exist, or that none are left at this offset."""
    if offset and 0 < total <= offset:
        context.notes.append(f"no more results at --offset {offset}: {total} match")
    elif offset and offset + shown < total:
        first, last = offset + 1, offset + shown
        context.notes.append(f"{first} to {last} of {total} shown (--offset {last}: the next ones)")
    elif not offset and shown < total:
        context.notes.append(f"{shown:,} of {total:,} shown; {hint}")


def note_expired(context: Context, count: int) -> None:
    """Note on stderr how many matching memories are left out because they expired."""
    if count:
        what = format_count(count, "expired memory matches", "expired memories match")
        context.notes.append(f"{what} as well: memtool list is:expired")


def restricted_for(context: Context, scope: Scope) -> Scope:
    """Return a scope that hides private memories and stale digests from programs.

    A person at a terminal sees private memories; what goes to a program may end up anywhere.
    """
    labels = () if context.caller.is_person else context.project.strict_settings.private_labels
    return scope.replace(withholds=labels)


def note_withheld(context: Context, scope: Scope, query: Query) -> None:
    """Note how many matching memories are left out for privacy or as stale digests."""
    facts = scope.facts()
    if not facts.withheld:
        return
    from memtool.search import filters  # few stores hold any

    test = filters.build_matcher(query, facts, is_hidden=True)
    ids = [path.rpartition("/")[2].removesuffix(".md") for path in facts.withheld]
    why = [
        facts.withheld[record.path]
        for record in map(scope.tree.__getitem__, ids)
        if len(facts.find_hiding_states(record)) == 1 and test(record)
    ]
    labels = sorted({reason for state, reason in why if state == PRIVATE})
    for state, singular, many, hint in (
        (
            PRIVATE,
            f"memory {' or '.join(labels)} is",
            f"memories {' or '.join(labels)} are",
            "at a terminal, or with privacy:LABEL in the query, they are shown",
        ),
        (
            STALE,
            "digest is",
            "digests are",
            "what they quote was forgotten or superseded; memtool digest --all rebuilds them",
        ),
    ):
        count = sum(other_state == state for other_state, _reason in why)
        if count:
            context.notes.append(f"{count:,} {singular if count == 1 else many} left out: {hint}")


def format_day(timestamp: str) -> str:
    """Return the UTC day of a timestamp as memories have it."""
    return timestamps.format_date(timestamps.parse(timestamp))
