"""The verbs that change the status of one memory: `memtool archive`, `restore` and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict, Unpack

from memtool.authoring import resolve, write
from memtool.authoring.write import Changed
from memtool.commands import _features
from memtool.commands._render import changed as render
from memtool.errors import MemtoolError
from memtool.inject import answer, block
from memtool.inject.gather import GatherRequest
from memtool.memory import lifecycle, timestamps
from memtool.memory.drift import BROKEN, clause
from memtool.memory.memory import Fields, FieldValue, Memory
from memtool.search.features import governed
from memtool.search.scope import drift_in
from memtool.store import usage_log
from memtool.store.context import Context
from memtool.store.files import governs
from memtool.store.provenance import SHORT
from memtool.value import first_few

Keys = dict[str, FieldValue | None]
"""New values of keys, None for one that goes away."""

MOST_NAMED = 3
"""Memories that one note names."""

VOUCHED = ("confirmed", "pinned")
"""Statuses of what a person vouched for."""

__all__ = ["archive", "confirm", "deprecate", "pin", "render", "restore", "unpin"]


class ChangeOptions(TypedDict, total=False):
    """How the status of a memory is written.

    Args:
        commit: commit just this file
        dry_run: say what would change, write nothing
    """

    commit: bool
    dry_run: bool


def confirm(
    context: Context, id: str, *, still_holds: bool = False, **options: Unpack[ChangeOptions]
) -> Changed:
    """Vouch for a memory as it stands: a candidate becomes confirmed, an old one lives again.

    The file records when, who, and at which commit the code was looked at. The time to live of the
    category counts from here. What became of the files that it names is told; where one is gone, or
    a name or cited lines of it are, --still-holds must say that somebody has looked. Files that
    differ from HEAD must be committed first, since that is the commit which is recorded.

    Example:
        memtool confirm sem-2026-02-22-deploys-need-the-vpn --commit

    Args:
        id: the memory, by its id or words of it
        still_holds: confirm it although memtool drift calls it broken
    """
    false_alarms = _look_at_files(
        context, id, still_holds=still_holds, dry_run=options.get("dry_run", False)
    )
    head = context.repository.git.head()
    checked = {"at": timestamps.render(context.clock.now), "by": write.author(context)}
    if head:
        checked["commit"] = head

    def confirmed(memory: Memory) -> Keys:
        write.refuse_deleted(memory)
        status = "pinned" if memory.status == "pinned" else "confirmed"
        return {"status": status, "checked": checked, "retired": None}

    done = _vouch(context, id, confirmed, "confirm", **options)
    if false_alarms and not options.get("dry_run"):
        usage_log.tell(context, "still-holds", [done.id], " ".join(false_alarms))
    return done


def pin(context: Context, id: str, **options: Unpack[ChangeOptions]) -> Changed:
    """Put a memory into the pinned tier, so that it is always injected first.

    A pinned memory does not expire by the time to live of its category. The tier holds few: where
    it is full, what agents are not shown any more is named.

    Example:
        memtool pin dec-2026-02-22-keep-sessions-in-redis --commit

    Args:
        id: the memory, by its id or words of it
    """
    changed = _vouch(context, id, _to("pinned"), "pin", needs_head=True, **options)
    if not options.get("dry_run"):
        _note_crowded_out(context)
    return changed


def unpin(context: Context, id: str, **options: Unpack[ChangeOptions]) -> Changed:
    """Take a memory out of the pinned tier; it is confirmed as before.

    Example:
        memtool unpin dec-2026-02-22-keep-sessions-in-redis

    Args:
        id: the memory, by its id or words of it
    """
    return write.change(context, id, _unpinned, "unpin", **options)


def deprecate(
    context: Context, id: str, *, why: str = "", **options: Unpack[ChangeOptions]
) -> Changed:
    """Keep a memory findable, but no longer inject it.

    Where something better is known, supersede says it in one step.

    Example:
        memtool deprecate dec-2026-02-22-keep-sessions-in-redis --why "we are moving off Redis"

    Args:
        id: the memory, by its id or words of it
        why: the reason, kept in the message of the commit
    """
    return _put_away(context, id, "deprecated", "deprecate", why, options)


def archive(
    context: Context, id: str, *, why: str = "", **options: Unpack[ChangeOptions]
) -> Changed:
    """Put a memory away: list, search and inject leave it out until they are asked for it.

    The file stays where it is. `memtool list status:archived` shows such memories.

    Example:
        memtool archive sta-2026-02-22-release-plan --commit

    Args:
        id: the memory, by its id or words of it
        why: the reason, kept in the message of the commit
    """
    return _put_away(context, id, "archived", "archive", why, options)


def restore(context: Context, id: str, **options: Unpack[ChangeOptions]) -> Changed:
    """Undo forget, archive or deprecate.

    A forgotten memory gets the status that it had before; any other is confirmed. What was
    superseded is no matter of its status: memtool undo takes that back.

    Example:
        memtool restore dec-2026-02-22-keep-sessions-in-redis --commit

    Args:
        id: the memory, by its id or words of it
    """
    done = _vouch(context, id, _restored, "restore", **options)
    tree = write.current(context, dry_run=options.get("dry_run", False))
    newer = tree.lineage.superseded_by.get(done.id, ())
    if newer and not (done.changes or done.commit):
        raise MemtoolError(
            f"{done.id} is not put away, but superseded by {', '.join(newer)}",
            hint=f"memtool undo {done.id}",
            code="not-a-head",
        )
    if newer:
        context.notes.append(
            f"{done.id} is superseded by {', '.join(newer)} all the same: memtool undo {done.id}"
        )
    return done


def _vouch(
    context: Context,
    id_: str,
    changes: Callable[[Memory], Keys],
    verb: str,
    *,
    commit: bool = False,
    dry_run: bool = False,
    needs_head: bool = False,
) -> Changed:
    """Change the status of a memory, and say what it replaces from now on if that was a proposal.

    Digests that quote what it replaces are rebuilt.
    """
    replaced: list[str] = []

    def noted(memory: Memory) -> Keys:
        new = changes(memory)
        was = (memory.table("retired").get("was") or memory.status) == "candidate"
        if context.caller.agent and (verb == "confirm" or (was and new.get("status") in VOUCHED)):
            raise MemtoolError(
                f"an agent vouches for no memory, and {verb} would for {memory.id}",
                hint=f"a person runs: memtool confirm {memory.id} --commit",
                code="agent",
            )
        replaced[:] = memory.with_fields(**new).replaces if memory.proposes else ()
        return new

    done = write.change(
        context, id_, noted, verb, commit=commit, dry_run=dry_run, needs_head=needs_head
    )
    if replaced:
        would = "would replace" if dry_run else "replaces"
        context.notes.append(f"{done.id} {would} {', '.join(replaced)} from now on")
        lineage = write.current(context, dry_run=dry_run).lineage
        context.notes += filter(None, [resolve.open_fork(lineage, done.id, replaced)])
        _features.follow_end(context, replaced, commit=commit, dry_run=dry_run)
    return done


def _look_at_files(
    context: Context, id_: str, *, still_holds: bool, dry_run: bool
) -> tuple[str, ...]:
    """Tell what became of the files of a memory, and refuse what nobody can have looked at.

    Returned are the rules that call it broken, sorted: gone, lines, name.
    """
    write.prepare(context, begins=False, dry_run=dry_run)
    tree = write.current(context, dry_run=dry_run)
    record = tree.find(id_)
    named = [path.rstrip("/") for path in governed(record)]
    git = context.repository.git
    if not named or record.memory.status == "deleted" or not git.head():
        return ()
    differing = [
        path
        for _state, path in git.status()
        if not path.startswith(f"{context.directory}/")
        and any(governs(pattern, path) for pattern in named)
    ]
    if differing:
        raise MemtoolError(
            f"{differing[0]} differs from HEAD, which is recorded as what was looked at",
            hint=f"git commit it, or git stash it, then memtool confirm {record.id}",
            code="not-committed",
        )
    drift = drift_in(tree, lambda: context.witness(tree))(record)
    if drift is None or not drift.since:  # nothing of it is committed
        return ()
    if drift.level == BROKEN and not still_holds:
        raise MemtoolError(
            f"{record.id} has drifted from the code: {'; '.join(map(clause, drift.files))}",
            hint=f"memtool supersede {record.id} TITLE corrects it; --still-holds confirms it",
            code="drifted",
        )
    context.notes += [f"since {drift.since[:SHORT]}: {clause(one)}" for one in drift.files]
    return tuple(sorted({one.why for one in drift.files if one.level == BROKEN}))


def _to(status: str) -> Callable[[Memory], Keys]:
    """Return the change to a status in use, which a deleted memory is refused."""

    def changes(memory: Memory) -> Keys:
        write.refuse_deleted(memory)
        return {"status": status, "retired": None}

    return changes


def _put_away(
    context: Context, id_: str, status: str, verb: str, why: str, options: ChangeOptions
) -> Changed:
    """Give a memory a status of what is not in use, which a deleted one is refused."""

    def changes(memory: Memory) -> Fields:
        write.refuse_deleted(memory)
        kept = lifecycle.retired(memory, context.clock.now, write.author(context))
        return {"status": status} | kept

    if why and not options.get("commit"):
        context.notes.append("the reason is kept in a commit only: add --commit")
    return write.change(context, id_, changes, verb, reason=why, **options)


def _note_crowded_out(context: Context) -> None:
    """Note which pinned memories agents are not shown for lack of room."""
    left_out = answer.crowded_out(GatherRequest(context), block.BY_NAME["text"])
    if left_out:
        named = first_few([f"{one.id} ({one.reason})" for one in left_out], MOST_NAMED)
        context.notes.append(
            f"the pinned tier is full, agents are not shown {named}; memtool unpin ID makes room"
        )


def _unpinned(memory: Memory) -> Fields:
    if memory.status not in ("pinned", "confirmed"):
        raise MemtoolError(
            f"{memory.id} is {memory.status}, not pinned",
            hint="memtool list is:pinned shows what is",
            code="not-pinned",
        )
    return {"status": "confirmed"}


def _restored(memory: Memory) -> Keys:
    if memory.status == "deleted":
        return {"status": memory.table("deleted").get("was", "confirmed"), "deleted": None}
    if memory.status in ("archived", "deprecated"):
        return {"status": "confirmed", "retired": None}
    return {}
