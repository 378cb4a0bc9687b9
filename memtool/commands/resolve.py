"""`memtool resolve`: settle what contradicts each other, with a record of why."""

from __future__ import annotations

from collections.abc import Sequence

from memtool.authoring import draft, write
from memtool.authoring import merge as unfinished
from memtool.authoring import resolve as settlement
from memtool.authoring.merge import Finished
from memtool.authoring.resolve import BOTH, MERGED, NEWER, Settled
from memtool.commands import _filters
from memtool.errors import MemtoolError
from memtool.memory.memory import Memory
from memtool.search.conflicts import Conflict, clusters, contradictions
from memtool.store.context import Context
from memtool.store.tree import Tree
from memtool.value import Value


class Resolved(Value):
    """What was settled, in order; `finished` are files whose merge was unfinished."""

    json_fields = "resolved finished"
    json_optional = "finished"

    resolved: tuple[Settled, ...]
    finished: tuple[Finished, ...] = ()
    dry_run: bool = False


def resolve(
    context: Context,
    *ids: str,
    keep: str = "",
    merge: str = "",
    body: str = "",
    why: str = "",
    all: bool = False,
    each: bool = False,
    keep_both: bool = False,
    commit: bool = False,
    dry_run: bool = False,
) -> Resolved:
    """Settle a conflict between memories, and keep the reason.

    What a memory claims is never edited: --keep ID or --keep newer writes a new memory with the
    text of that one, which replaces all sides and gives the reason under Rationale; --merge writes
    one with a text of your own. With --keep both each names the others in conflicts_accepted, and
    they are no longer listed as a conflict. The same for a fork and for contrary statements.

    --all leaves one memory of each cluster that memtool conflicts lists: the text of the newest,
    which replaces all the others, in one commit each. --each does so in those clusters alone in
    which one of the memories takes part.

    Without --keep, --merge and --keep-both it finishes merges of git: files that are divided in
    lifecycle keys only, such as status and tags, get what both sides did, all of them at once, and
    are staged.

    With --keep-both an id that was made twice, on two branches, becomes two: in an unfinished
    merge the side of the other branch gets a new id and file, and both are staged.

    Example:
        memtool resolve dec-a dec-b --keep newer --why "measured in March" --commit
        memtool resolve

    Args:
        ids: the memories, by id or words of it; for --keep-both the id, or all of them, and to
            finish merges the files, or none for all
        keep: one of the ids, newer, or both
        merge: title of a new memory that replaces them all
        body: the text of that new memory, or - to read it from stdin
        why: the reason, required
        all: settle every open conflict, with --keep newer or --keep both
        each: settle every open conflict of these memories, with --keep newer or --keep both
        keep_both: give one of two memories with the same id a new one
        commit: commit just these files, one commit for each conflict
        dry_run: say what would be done, write nothing
    """
    write.prepare(context, begins=False, dry_run=dry_run)
    if keep_both:
        if keep or merge or body or all or each:
            raise MemtoolError(
                "--keep-both stands alone", hint="memtool resolve ID --keep-both", code="usage"
            )
        return Resolved(tuple(settlement.split_ids(context, ids, commit=commit, dry_run=dry_run)))
    if not (keep or merge or body or all or each or why):
        finished = unfinished.finish(context, ids, commit=commit, dry_run=dry_run)
        if finished:
            return Resolved((), tuple(finished), dry_run)
    reason = write.one_line(context, why)
    _refuse_unclear(ids, keep, merge, body, reason, all_=all, each=each)
    tree = context.tree()
    if all or each:
        found = _open(context, tree, {tree.find(id_).id for id_ in ids} if each else None)
        memories = {id_: tree[id_].memory for one in found for id_ in one.ids}
        return Resolved(
            tuple(
                settlement.settle_all(
                    context, found, memories, keep, reason, commit=commit, dry_run=dry_run
                )
            )
        )
    sides = write.replaceable(tree, ids)
    if len(sides) < 2:
        raise MemtoolError(
            "a conflict has two sides or more",
            hint=f"memtool conflicts {' '.join(sides)}".rstrip(),
            code="usage",
        )
    there = [tree[id_].memory for id_ in sides]
    if merge:
        memory = _merged(context, there, merge, body)
        settled = settlement.write_settlement(
            context, memory, sides, MERGED, reason, commit=commit, dry_run=dry_run
        )
    elif keep == BOTH:
        settled = settlement.accept(context, there, reason, commit=commit, dry_run=dry_run)
    else:
        winner = settlement.newest(there) if keep == NEWER else _named(tree, keep, sides)
        settled = settlement.keep(context, winner, sides, reason, commit=commit, dry_run=dry_run)
    return Resolved((settled,))


def _open(context: Context, tree: Tree, wanted: set[str] | None) -> list[Conflict]:
    """Return the open conflicts: all, or those of the clusters of some memories.

    Raises:
        MemtoolError: one of these memories is in no open conflict.
    """
    found = [
        conflict for conflict in contradictions(tree, context.clock.now) if not conflict.accepted
    ]
    if wanted is None:
        return found
    chosen = [set(one.ids) for one in clusters(found) if wanted.intersection(one.ids)]
    alone = sorted(wanted.difference(*chosen))
    if alone:
        raise MemtoolError(
            f"{alone[0]} is in no open conflict",
            hint="memtool conflicts lists what contradicts each other",
            code="no-conflict",
        )
    return [one for one in found if any(ids.issuperset(one.ids) for ids in chosen)]


def _refuse_unclear(
    ids: Sequence[str], keep: str, merge: str, body: str, why: str, *, all_: bool, each: bool
) -> None:
    """Raise MemtoolError where the options do not say one thing."""
    named = " ".join(ids) or "A B"
    example = f'memtool resolve {named} --keep newer --why "REASON"'
    if bool(keep) == bool(merge):
        what = (
            "say what holds: --keep or --merge"
            if not keep
            else "--keep and --merge exclude each other"
        )
        raise MemtoolError(what, hint=example)
    if not why:
        raise MemtoolError("settling a conflict needs a reason", hint=example)
    if merge and not body:
        raise MemtoolError(
            "the new memory needs a text",
            hint=f'memtool resolve {named} --merge TITLE --body TEXT --why "REASON"',
        )
    if body and not merge:
        raise MemtoolError(
            "--body is the text of --merge",
            hint=f'memtool resolve {named} --merge TITLE --body TEXT --why "REASON"',
        )
    if each and (all_ or not ids or keep not in (NEWER, BOTH)):
        raise MemtoolError(
            "--each settles the conflicts of the memories that are named, all in the same way",
            hint=f'memtool resolve {named} --each --keep newer --why "REASON"',
        )
    if all_ and (ids or keep not in (NEWER, BOTH)):
        raise MemtoolError(
            "--all settles every conflict in the same way, and takes no ids",
            hint='memtool resolve --all --keep newer --why "REASON"',
        )


def _named(tree: Tree, wanted: str, sides: Sequence[str]) -> Memory:
    record = tree.find(wanted)
    if record.id not in sides:
        raise MemtoolError(
            f"{record.id} is not one of {', '.join(sides)}",
            hint=f"--keep {sides[0]}, --keep newer or --keep both",
        )
    return record.memory


def _merged(context: Context, there: Sequence[Memory], title: str, body: str) -> Memory:
    """Return a memory with a text of its own that is found by what either side was found by."""
    first = settlement.newest(there)
    both = {
        key: tuple(dict.fromkeys(item for memory in there for item in memory.items(key)))
        for key in ("tags", "files", "source", "privacy")
    }
    return draft.draft(
        context,
        first.type,
        title,
        body=_filters.body_text(body),
        fields={
            "category": first.text("category"),
            "confidence": first.confidence,
            "status": "pinned" if any(m.status == "pinned" for m in there) else "",
            "supersedes": tuple(memory.id for memory in there),
            **both,
        },
    )


def render(resolved: Resolved) -> str:
    """Return what holds now, and the files that were written."""
    if resolved.finished:
        would = "would be " if resolved.dry_run else ""
        return "\n".join(
            f"{one.path}: {would}merged, {'; '.join(f'{k} {v}' for k, v in one.keys.items())}"
            for one in resolved.finished
        )
    if not resolved.resolved:
        return "no open conflict"
    return "\n".join(row for settled in resolved.resolved for row in _rows(settled))


def _rows(settled: Settled) -> list[str]:
    would = "would be " if settled.dry_run else ""
    sides = " and ".join(settled.ids)
    if not settled.id:
        return [f"{sides}: both hold, {would}accepted", *settled.paths]
    if settled.kept == BOTH:
        return [f"{settled.ids[0]} was made twice, one {would}named {settled.id}", settled.path]
    text = "a new text" if settled.kept == MERGED else f"what {settled.kept} says"
    return [f"{sides}: {text} {'would hold' if settled.dry_run else 'holds'}, in", settled.path]
