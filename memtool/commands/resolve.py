"""`memtool resolve`: settle conflicts between memories, with a reason."""

from __future__ import annotations

from collections.abc import Sequence

from memtool.authoring import draft, write
from memtool.authoring import merge as unfinished
from memtool.authoring import resolve as settlement
from memtool.authoring.merge import FinishedMerge
from memtool.authoring.resolve import BOTH, MERGED, NEWER, Settlement
from memtool.commands import _filters
from memtool.commands._layout import Layout
from memtool.commands._render import format_where
from memtool.errors import MemtoolError
from memtool.memory.memory import Memory
from memtool.search.conflicts import Conflict, find_clusters, find_contradictions
from memtool.store.context import Context
from memtool.store.tree import Tree
from memtool.value import Value


class ResolveResult(Value):
    """The settled conflicts, in order; `finished` are files whose merge was completed."""

    json_fields = "resolved finished"
    json_optional = "finished"

    resolved: tuple[Settlement, ...]
    finished: tuple[FinishedMerge, ...] = ()
    dry_run: bool = False


def resolve(
    context: Context,
    *ids: str,
    keep: str = "",
    merge: str = "",
    body: str = "",
    reason: str = "",
    all: bool = False,
    commit: bool = False,
    dry_run: bool = False,
) -> ResolveResult:
    """Settle a conflict between memories, and keep the reason.

        --keep ID, --keep newer   a new memory with the text of this one replaces all sides
        --merge TITLE             a new memory with your own text replaces all sides
        --keep both               both hold; they are no longer listed as a conflict
        --all                     settle all open conflicts, or all those of these memories

    Without --reason it settles what only git divides: files that differ in status, tags and the
    like, and, with --keep both, an id that was made twice on two branches. The files are staged.

    Example:
        memtool resolve dec-6vnd dec-2g54 --keep newer --reason "measured in March" --commit
        memtool resolve

    Args:
        ids: the memories, by id or words; without --reason, files of a merge
        keep: the id to keep, newer, or both
        merge: the title of a new memory that replaces them all
        body: the text of the new memory, or - to read it from stdin
        reason: the reason, required to settle a conflict
        all: settle every open conflict, or those of the ids
        commit: commit these files only, one commit per conflict
        dry_run: show what would be done, write nothing
    """
    write.prepare(context, begins=False, dry_run=dry_run)
    is_alone = not (merge or body or all or reason)
    if keep == BOTH and is_alone and (len(ids) < 2 or settlement.are_made_twice(context, ids)):
        return ResolveResult(
            tuple(settlement.split_ids(context, ids, commit=commit, dry_run=dry_run))
        )
    if is_alone and not keep:
        finished = unfinished.finish(context, ids, commit=commit, dry_run=dry_run)
        if finished:
            return ResolveResult((), tuple(finished), dry_run)
    reason = write.to_one_line(context, reason)
    _refuse_unclear(ids, keep, merge, body, reason, all_=all)
    tree = context.tree()
    if all:
        conflicts = _find_open(context, tree, {tree.find(id_).id for id_ in ids})
        memories = {id_: tree[id_].memory for conflict in conflicts for id_ in conflict.ids}
        return ResolveResult(
            tuple(
                settlement.settle_all(
                    context, conflicts, memories, keep, reason, commit=commit, dry_run=dry_run
                )
            )
        )
    sides = write.find_replaceable(tree, ids)
    if len(sides) < 2:
        raise MemtoolError(
            "cannot resolve: name both sides of the conflict",
            hint=f"memtool conflicts {' '.join(sides)}".rstrip(),
            code="usage",
        )
    side_memories = [tree[id_].memory for id_ in sides]
    if merge:
        memory = _draft_merge(context, side_memories, merge, body)
        settled = settlement.write_settlement(
            context, memory, sides, MERGED, reason, commit=commit, dry_run=dry_run
        )
    elif keep == BOTH:
        settled = settlement.accept(context, side_memories, reason, commit=commit, dry_run=dry_run)
    else:
        winner = (
            settlement.find_newest(side_memories)
            if keep == NEWER
            else _find_winner(tree, keep, sides)
        )
        settled = settlement.keep(context, winner, sides, reason, commit=commit, dry_run=dry_run)
    return ResolveResult((settled,))


def _find_open(context: Context, tree: Tree, wanted: set[str]) -> list[Conflict]:
    """Return the open conflicts: all, or those in the clusters of the wanted memories.

    Raises:
        MemtoolError: one of these memories is not in an open conflict.
    """
    conflicts = [
        conflict
        for conflict in find_contradictions(tree, context.clock.now)
        if not conflict.accepted
    ]
    if not wanted:
        return conflicts
    chosen = [
        set(cluster.ids) for cluster in find_clusters(conflicts) if wanted.intersection(cluster.ids)
    ]
    alone = sorted(wanted.difference(*chosen))
    if alone:
        raise MemtoolError(
            f"cannot resolve: {alone[0]} is not in an open conflict",
            hint="memtool conflicts",
            code="no-conflict",
        )
    return [
        conflict for conflict in conflicts if any(ids.issuperset(conflict.ids) for ids in chosen)
    ]


def _refuse_unclear(
    ids: Sequence[str], keep: str, merge: str, body: str, reason: str, *, all_: bool
) -> None:
    """Raise MemtoolError if options are missing or contradict each other."""
    named = " ".join(ids) or "A B"
    example = f'memtool resolve {named} --keep newer --reason "REASON"'
    if bool(keep) == bool(merge):
        what = (
            "cannot resolve: add --keep or --merge"
            if not keep
            else "--keep and --merge exclude each other"
        )
        raise MemtoolError(what, hint=example)
    if not reason:
        raise MemtoolError("cannot resolve: the reason is missing", hint=example)
    if merge and not body:
        raise MemtoolError(
            "cannot resolve: the text of the new memory is missing",
            hint=f'memtool resolve {named} --merge TITLE --body TEXT --reason "REASON"',
        )
    if body and not merge:
        raise MemtoolError(
            "--body needs --merge",
            hint=f'memtool resolve {named} --merge TITLE --body TEXT --reason "REASON"',
        )
    if all_ and keep not in (NEWER, BOTH):
        raise MemtoolError(
            "--all resolves every conflict in the same way, with --keep newer or both",
            hint=" ".join(["memtool resolve --all --keep newer --reason REASON", *ids]),
        )


def _find_winner(tree: Tree, wanted: str, sides: Sequence[str]) -> Memory:
    record = tree.find(wanted)
    if record.id not in sides:
        raise MemtoolError(
            f"{record.id} is not one of {', '.join(sides)}",
            hint=f"--keep {sides[0]}, --keep newer or --keep both",
        )
    return record.memory


def _draft_merge(context: Context, memories: Sequence[Memory], title: str, body: str) -> Memory:
    """Draft a memory with a text of its own, and the tags, files and sources of all sides."""
    first = settlement.find_newest(memories)
    merged_fields = {
        key: tuple(dict.fromkeys(item for memory in memories for item in memory.items(key)))
        for key in ("tags", "files", "source", "privacy")
    }
    return draft.build_draft(
        context,
        first.type,
        title,
        body=_filters.read_body(body),
        fields={
            "category": first.text("category"),
            "confidence": first.confidence,
            "status": "pinned" if any(m.status == "pinned" for m in memories) else "",
            "supersedes": tuple(memory.id for memory in memories),
            **merged_fields,
        },
    )


def render(result: ResolveResult, layout: Layout) -> str:
    """Return the paths of the written files, and report how each conflict was settled."""
    would = "would be " if result.dry_run else ""
    for file in result.finished:
        merged = "; ".join(f"{key} {what}" for key, what in file.keys.items())
        layout.report(f"{file.path}: {would}merged, {merged}")
    if not (result.finished or result.resolved):
        layout.report("no open conflict")
    for settled in result.resolved:
        layout.report(*_describe_settlement(settled, layout))
    paths = [path for settled in result.resolved for path in settled.paths or (settled.path,)]
    return "\n".join(paths or [file.path for file in result.finished])


def _describe_settlement(settled: Settlement, layout: Layout) -> list[str]:
    """Return the receipt of a settled conflict: its sides, which text holds, and where it is."""
    verb = "Would settle" if settled.dry_run else "Settled"
    sides = " and ".join(map(layout.short, settled.ids))
    hold = "would hold" if settled.dry_run else "hold"
    is_split = bool(settled.id) and settled.kept_id == BOTH
    if is_split:
        named = "would be named" if settled.dry_run else "is named"
        rows = [
            f"{verb} {layout.short(settled.ids[0])}",
            f"  it was made twice; one {named} {layout.short(settled.id)}",
        ]
    elif not settled.id:
        rows = [f"{verb} {sides}", f"  both {hold}, the conflict is accepted"]
    else:
        is_new = settled.kept_id == MERGED
        text = "a new text" if is_new else f"the text of {layout.short(settled.kept_id)}"
        by = "" if settled.dry_run else f" by {layout.name(settled.id)}"
        rows = [f"{verb} {sides}{by}", f"  {text} {'would hold' if settled.dry_run else 'holds'}"]
    # In an unfinished merge only `git commit` can commit the split; a note says so.
    if not settled.dry_run and (settled.commit or not is_split):
        rows[-1] += f"; {layout.hint(format_where(settled.commit))}"
    return rows
