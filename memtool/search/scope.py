"""The scope of a search: which memories, from when, with which settings."""

from __future__ import annotations

from memtool.memory import lifecycle, timestamps
from memtool.memory.memory import is_generated
from memtool.memory.trust import Origin
from memtool.memory.visibility import PRIVATE, STALE
from memtool.search import expansion, retrieve
from memtool.search.retrieve import Scope
from memtool.store.context import Context
from memtool.store.tree import Record, Tree, newest
from memtool.value import Value, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from memtool.index.reader import Catalog
    from memtool.memory.memory import Memory
    from memtool.search.drift import DriftWitness
    from memtool.search.features import Facts
    from memtool.search.query import Query
    from memtool.store.provenance import Witness

    SortKey = Callable[[Record], tuple[float | str, ...]]


DIGEST, MEMORY, SESSION, NONE = "digest", "memory", "session", "none"
"""The levels that may answer, the shortest first; `none` where nothing does."""


def is_digest(memory: Memory) -> bool:
    """Tell whether a memory sums up others: what derives from one alone is a memory of its own."""
    return len(memory.items("derived_from")) > 1 or is_generated(memory)


class MemoryRow(Value):
    """A memory as a list shows it. `commit` is the full id of the last one, None without one.

    `due` says that the time of its category is over since somebody confirmed it, `unproven` what
    it lacks to fulfil its trust rule, empty for nothing.
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


SORTS: dict[str, SortKey] = {
    "newest": lambda record: (-record.memory.timestamp, record.id, record.path),
    "oldest": lambda record: (record.memory.timestamp, record.id, record.path),
    "importance": lambda record: (-record.memory.importance, record.id, record.path),
    "title": lambda record: (record.memory.title.casefold(), record.id, record.path),
    "id": lambda record: (record.id, record.path),
}
"""Orders that need no score. Every key ends in the id, so that no two memories are equal."""


ACCESSED = "accessed"


def sort_key(scope: Scope, sort: str) -> SortKey:
    """Return the key of an order; that of accesses reads their counts once, for all memories."""
    if sort != ACCESSED:
        return SORTS[sort]
    counts = scope.accesses(scope.tree.ids) if scope.accesses else {}
    return lambda record: (-counts.get(record.id, 0), record.id, record.path)


def first(scope: Scope, query: Query, sort: str, most: int) -> tuple[list[Record], int]:
    """Return the first `most` records that satisfy a query, and how many do.

    Raises:
        MemtoolError: a filter cannot take its value.
    """
    facts = scope.facts()
    if not query.text and sort == "newest":
        return _newest(facts, most), facts.count_current()
    found = retrieve.select(scope, query) if query.text else facts.current_records()
    return sorted(found, key=sort_key(scope, sort))[:most], len(found)


def _newest(facts: Facts, most: int) -> list[Record]:
    """Return the newest living heads; no others are opened."""
    found: list[Record] = []
    for record in filter(facts.is_current, facts.tree.latest_of_kinds(lambda _kind: True)):
        if len(found) >= most and newest(record)[0] > newest(found[-1])[0]:
            break  # what was written in the same second goes by id
        found.append(record)
    return sorted(found, key=SORTS["newest"])[:most]


def row_of(context: Context, record: Record, origins: Mapping[str, Origin], now: int) -> MemoryRow:
    """Return the row of a memory, as seen at the second `now`."""
    return MemoryRow(**row_fields(context, record, origins[record.path], now))


def row_fields(context: Context, record: Record, origin: Origin, now: int) -> dict[str, Any]:
    """Return the fields of the row of a memory, as seen at the second `now`."""
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
        "unproven": unproven(context, record, origin),
    }


def unproven(context: Context, record: Record, origin: Origin) -> str:
    """Return what a memory lacks to fulfil its trust rule; empty where it has none, or does."""
    rules = context.project.trust_rules
    if not rules:
        return ""
    from memtool.store import trust_rules  # most projects have none

    return trust_rules.gap(rules, record.memory, record.path, origin)


def told_trust(trust: str, unproven: str) -> str:
    """Return a level of trust as it is shown, with what is lacking."""
    return f"{trust}, unproven" if unproven else trust


def scope_of(context: Context, tree: Catalog, now: int) -> Scope:
    """Return what a search of a tree needs to know, as seen at the second `now`."""
    from memtool.store.usage_counts import UsageCounts

    counts = UsageCounts(context.repository.cache_dir)
    return Scope(
        tree=tree,
        now=now,
        config=context.settings,
        aliases=expansion.parse(aliases_file(context), aliases_path(context)),
        origins=lambda: context.origins(tree, tree.records),
        accesses=counts.shown,
        settled_accesses=counts.settled,
        is_replay=now != context.clock.now or tree.location.kind != "worktree",
        companions=lambda files: _companions(context, tree, files),
        trust=trust_in(tree, lambda: context.witness(tree)),
        drift=drift_in(tree, lambda: context.witness(tree)),
    )


def drift_in(
    tree: Tree, witness: Callable[[], Witness], since: str = "", *, is_worktree: bool = False
) -> DriftWitness:
    """Return what tells what became of the files of memories; git is asked when it is.

    `since` is a commit to compare with, instead of the one at which each memory was confirmed;
    `is_worktree` looks at files as they lie there, instead of as HEAD has them.
    """
    from memtool.search.drift import DriftWitness

    return DriftWitness(tree, witness, since, is_worktree=is_worktree)


def trust_in(tree: Tree, witness: Callable[[], Witness]) -> Callable[[Record], str]:
    """Return what tells the trust of a record of a tree; `witness` is called when it is asked.

    Where nothing is cached git is asked about all of them at once, and only if about any.
    """
    asked: list[Witness] = []
    known: dict[str, Origin] = {}

    def trust(record: Record) -> str:
        if record.path not in known:
            asked.extend([] if asked else [witness()])
            known.update(asked[0].origins([record] if asked[0].is_cached else tree.records))
        return known[record.path].trust

    return trust


def _companions(context: Context, tree: Tree, files: tuple[str, ...]) -> tuple[str, ...]:
    basis = None if context.is_global else context.witness(tree).basis  # the files are a project's
    if basis is None:
        return ()
    from memtool.store import cochange  # most prompts come without files

    repository, directory = basis.repository, basis.directory
    return cochange.companions(
        repository, directory, basis.head, files, is_cached=context.is_cached
    )


def aliases_path(context: Context) -> str:
    """Return where the aliases stand, relative to the top."""
    return f"{context.directory}/{expansion.ALIASES_NAME}"


def aliases_file(context: Context) -> bytes | None:
    """Return the bytes of the aliases, of HEAD in a bare repository; None where there are none."""
    return context.project.file(aliases_path(context), "bad-alias")


def tell_rest(context: Context, shown: int, total: int, hint: str, offset: int = 0) -> None:
    """Note on stderr that there is more than was printed, or nothing so far from the first."""
    if offset and 0 < total <= offset:
        context.notes.append(f"nothing is left at --offset {offset}: {total} match")
    elif offset and offset + shown < total:
        first, last = offset + 1, offset + shown
        context.notes.append(f"{first} to {last} of {total} shown; --offset {last} goes on")
    elif not offset and shown < total:
        context.notes.append(f"{shown} of {total} shown; {hint}")


def tell_expired(context: Context, count: int) -> None:
    """Note on stderr that an answer would hold more memories, had they not expired."""
    if count:
        what = plural(count, "expired memory is", "expired memories are")
        context.notes.append(f"{what} left out; memtool list is:expired shows all that have")


def shown_to(context: Context, scope: Scope) -> Scope:
    """Return a scope without what its labels keep from whoever asks, and without stale digests.

    A person at a terminal sees all; what goes to a program may end up anywhere.
    """
    labels = () if context.caller.is_person else context.project.strict_settings.private_labels
    return scope.replace(withholds=labels)


def tell_withheld(context: Context, scope: Scope, query: Query) -> None:
    """Note how much satisfies a query and is left out for its labels, or as a stale digest."""
    facts = scope.facts()
    if not facts.withheld:
        return
    from memtool.search import filters  # few stores hold any

    test = filters.matcher(query, facts, is_hidden=True)
    ids = [path.rpartition("/")[2].removesuffix(".md") for path in facts.withheld]
    why = [
        facts.withheld[record.path]
        for record in map(scope.tree.__getitem__, ids)
        if len(facts.hidden(record)) == 1 and test(record)
    ]
    labels = sorted({reason for state, reason in why if state == PRIVATE})
    for state, one, many, hint in (
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
        count = sum(known == state for known, _reason in why)
        if count:
            context.notes.append(f"{count:,} {one if count == 1 else many} left out: {hint}")


def day(timestamp: str) -> str:
    """Return the UTC day of a moment as it stands in a memory."""
    return timestamps.date(timestamps.parse(timestamp))
