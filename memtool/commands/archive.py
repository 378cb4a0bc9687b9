"""The verbs that change the status of one memory: `memtool archive`, `restore` and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict, Unpack

from memtool.authoring import resolve, write
from memtool.authoring.write import ChangeResult
from memtool.commands import _features
from memtool.commands._render import format_changed as render
from memtool.errors import MemtoolError
from memtool.inject import answer, block
from memtool.inject.gather import GatherRequest
from memtool.memory import lifecycle, timestamps
from memtool.memory.drift import BROKEN, describe_base, describe_file
from memtool.memory.memory import Fields, FieldValue, Memory
from memtool.search.features import list_governed_paths
from memtool.search.scope import build_drift_witness
from memtool.search.suggested_files import suggest_files
from memtool.store import sightings, usage_log
from memtool.store.context import Context
from memtool.store.files import matches_or_contains
from memtool.value import first_few

KeyChanges = dict[str, FieldValue | None]
"""New values of frontmatter keys; None removes a key."""

MAX_NAMED_MEMORIES = 3

VOUCHED_STATUSES = ("confirmed", "pinned")
"""Statuses of memories that a person vouched for."""

__all__ = ["archive", "confirm", "deprecate", "pin", "render", "restore", "unpin"]


class ChangeOptions(TypedDict, total=False):
    """How the status of a memory is written.

    Args:
        commit: commit this file only
        dry_run: show what would change, write nothing
    """

    commit: bool
    dry_run: bool


def confirm(
    context: Context,
    id: str,
    *,
    still_holds: bool = False,
    accept_files: bool = False,
    **options: Unpack[ChangeOptions],
) -> ChangeResult:
    """Vouch that a memory holds.

    A candidate becomes confirmed, and an old memory counts as new again. The file records when, by
    whom, and at which commit, so the code that it names must be committed. If drift reports the
    memory as broken, look at the code first, then use --still-holds.

    Example:
        memtool confirm sem-gnq8
        memtool confirm epi-bg2z --still-holds --commit

    Args:
        id: the memory, by id or words
        still_holds: confirm it although memtool drift reports it as broken
        accept_files: an imported decision also governs the files that its text names: those that
            memtool show lists as probable
    """
    is_dry = options.get("dry_run", False)
    accepted = _find_suggested(context, id, dry_run=is_dry) if accept_files else ()
    false_alarms = _check_files(
        context, id, accepted=accepted, still_holds=still_holds, dry_run=is_dry
    )
    head = context.repository.git.head()
    checked = {"at": timestamps.render(context.clock.now), "by": write.find_author(context)}

    def changes(memory: Memory) -> KeyChanges:
        write.refuse_deleted(memory)
        files: KeyChanges = {"files": accepted} if accepted else {}
        if head:
            checked["commit"] = head
            code = [(head, memory.with_fields(**files))]
            (line,) = sightings.render_commit_sightings(context.repository, code)
            if line:
                checked["saw"] = line
        status = "pinned" if memory.status == "pinned" else "confirmed"
        return {"status": status, "checked": checked, "retired": None, **files}

    done = _vouch(context, id, changes, "confirm", **options)
    if false_alarms and not options.get("dry_run"):
        usage_log.log_done(context, "still-holds", [done.id], " ".join(false_alarms))
    return done


def pin(context: Context, id: str, **options: Unpack[ChangeOptions]) -> ChangeResult:
    """Pin a memory, so that every session begins with it.

    A pinned memory does not expire. Only a few fit (inject.max_pinned); if there are more, the
    answer names those that agents no longer see.

    Example:
        memtool pin dec-8t7d --commit

    Args:
        id: the memory, by id or words
    """
    changed = _vouch(context, id, _build_status_change("pinned"), "pin", needs_head=True, **options)
    if not options.get("dry_run"):
        _note_crowded_out(context)
    return changed


def unpin(context: Context, id: str, **options: Unpack[ChangeOptions]) -> ChangeResult:
    """Unpin a memory; it stays confirmed.

    Example:
        memtool unpin dec-8t7d

    Args:
        id: the memory, by id or words
    """
    return write.change(context, id, _unpin_changes, "unpin", **options)


def deprecate(
    context: Context, id: str, *, reason: str = "", **options: Unpack[ChangeOptions]
) -> ChangeResult:
    """Stop showing a memory to agents, but keep it findable.

    If you know what holds instead, use memtool supersede.

    Example:
        memtool deprecate dec-2g54 --reason "we are moving off Redis"

    Args:
        id: the memory, by id or words
        reason: the reason, kept in the message of the commit
    """
    return _retire(context, id, "deprecated", "deprecate", reason, options)


def archive(
    context: Context, id: str, *, reason: str = "", **options: Unpack[ChangeOptions]
) -> ChangeResult:
    """Put a memory away: list, search and inject leave it out unless asked for it.

    The file stays where it is. memtool list is:archived shows what is archived.

    Example:
        memtool archive sta-ywmh --commit

    Args:
        id: the memory, by id or words
        reason: the reason, kept in the message of the commit
    """
    return _retire(context, id, "archived", "archive", reason, options)


def restore(context: Context, id: str, **options: Unpack[ChangeOptions]) -> ChangeResult:
    """Bring back a memory that was forgotten, archived or deprecated.

    A forgotten memory gets its former status; any other becomes confirmed. A superseded memory is
    brought back by memtool undo.

    Example:
        memtool restore dec-2g54 --commit

    Args:
        id: the memory, by id or words
    """
    done = _vouch(context, id, _restore_changes, "restore", **options)
    tree = write.open_current_tree(context, dry_run=options.get("dry_run", False))
    newer = tree.lineage.superseded_by.get(done.id, ())
    if newer and not (done.changes or done.commit):
        raise MemtoolError(
            f"cannot restore: {done.id} is superseded by {', '.join(newer)}",
            hint=f"memtool undo {done.id}",
            code="not-a-head",
        )
    if newer:
        context.notes.append(
            f"{done.id} is still superseded by {', '.join(newer)}: memtool undo {done.id}"
        )
    return done


def _vouch(
    context: Context,
    id_: str,
    changes: Callable[[Memory], KeyChanges],
    verb: str,
    *,
    commit: bool = False,
    dry_run: bool = False,
    needs_head: bool = False,
) -> ChangeResult:
    """Change the status of a memory, and note what it now replaces if it was only a proposal.

    Digests that quote replaced memories are rebuilt.
    """
    replaced: list[str] = []

    def checked_changes(memory: Memory) -> KeyChanges:
        new = changes(memory)
        was_candidate = (memory.table("retired").get("was") or memory.status) == "candidate"
        if context.caller.agent and (
            verb == "confirm" or (was_candidate and new.get("status") in VOUCHED_STATUSES)
        ):
            raise MemtoolError(
                f"cannot {verb} {write.quote_memory(memory)}: only the user can confirm a memory",
                hint=f"ask the user to run: memtool confirm {memory.id} --commit",
                code="agent",
            )
        replaced[:] = memory.with_fields(**new).replaces if memory.proposes else ()
        return new

    done = write.change(
        context, id_, checked_changes, verb, commit=commit, dry_run=dry_run, needs_head=needs_head
    )
    if replaced:
        would = "would replace" if dry_run else "replaces"
        context.notes.append(f"{done.id} {would} {', '.join(replaced)} from now on")
        lineage = write.open_current_tree(context, dry_run=dry_run).lineage
        context.notes += filter(None, [resolve.open_fork(lineage, done.id, replaced)])
        _features.follow_end(context, replaced, commit=commit, dry_run=dry_run)
    return done


def _find_suggested(context: Context, id_: str, *, dry_run: bool) -> tuple[str, ...]:
    """Return the files that a memory probably governs; note if there are none."""
    tree = write.open_current_tree(context, dry_run=dry_run)
    record = tree.find(id_)
    files = suggest_files(tree, [record]).get(record.id, ())
    if not files:
        context.notes.append(f"{record.id}: no files are suggested, so none are added")
    return files


def _check_files(
    context: Context, id_: str, *, accepted: tuple[str, ...], still_holds: bool, dry_run: bool
) -> tuple[str, ...]:
    """Note how the files of a memory have changed, and refuse those that differ from HEAD.

    `accepted` are files that are added to it. Return the drift rules that call it broken, sorted:
    gone, lines, name.
    """
    write.prepare(context, begins=False, dry_run=dry_run)
    tree = write.open_current_tree(context, dry_run=dry_run)
    record = tree.find(id_)
    witness = build_drift_witness(tree, lambda: context.provenance_reader(tree))
    git = context.repository.git
    own_paths = [*list_governed_paths(record), *accepted]
    if not own_paths or record.memory.status == "deleted" or not git.head():
        return ()
    drift = witness(record)
    moves = () if drift is None else drift.renames
    governed_paths = [path.rstrip("/") for path in (*own_paths, *(move.now for move in moves))]
    differing = [
        path
        for _state, path in git.status()
        if not path.startswith(f"{context.directory}/")
        and any(matches_or_contains(pattern, path) for pattern in governed_paths)
    ]
    if differing:
        raise MemtoolError(
            f"cannot confirm {write.quote_memory(record.memory)}: {differing[0]} has uncommitted "
            "changes",
            hint=f"git commit -- {differing[0]}\nmemtool confirm {record.id}",
            code="not-committed",
        )
    if drift is None or not drift.since:  # it is not committed
        return ()
    if drift.level == BROKEN and not still_holds:
        raise MemtoolError(
            f"cannot confirm {write.quote_memory(record.memory)}: "
            f"{'; '.join(map(describe_file, drift.files))}",
            hint=f"memtool supersede {record.id} TITLE\n"
            f"still true: memtool confirm {record.id} --still-holds",
            code="drifted",
        )
    context.notes += [
        f"since {describe_base(drift)}: {describe_file(file)}" for file in drift.files
    ]
    return tuple(sorted({file.why for file in drift.files if file.level == BROKEN}))


def _build_status_change(status: str) -> Callable[[Memory], KeyChanges]:
    """Return a function that sets a status in use; it refuses a deleted memory."""

    def changes(memory: Memory) -> KeyChanges:
        write.refuse_deleted(memory)
        return {"status": status, "retired": None}

    return changes


def _retire(
    context: Context, id_: str, status: str, verb: str, reason: str, options: ChangeOptions
) -> ChangeResult:
    """Set a status that takes a memory out of use; refuse a deleted memory."""

    def changes(memory: Memory) -> Fields:
        write.refuse_deleted(memory)
        fields = lifecycle.retire_fields(memory, context.clock.now, write.find_author(context))
        return {"status": status} | fields

    if reason and not options.get("commit"):
        context.notes.append("the reason is only stored in a commit: add --commit")
    return write.change(context, id_, changes, verb, reason=reason, **options)


def _note_crowded_out(context: Context) -> None:
    """Note which pinned memories exceed the budget of the tier, so that agents do not see them."""
    left_out = answer.find_crowded_out(GatherRequest(context), block.BY_NAME["text"])
    if left_out:
        names = first_few(
            [f"{omission.id} ({omission.reason})" for omission in left_out], MAX_NAMED_MEMORIES
        )
        context.notes.append(
            f"too many pinned memories: agents do not see {names}; to make room: memtool unpin ID"
        )


def _unpin_changes(memory: Memory) -> Fields:
    if memory.status not in ("pinned", "confirmed"):
        raise MemtoolError(
            f"cannot unpin: {write.quote_memory(memory)} is {memory.status}, not pinned",
            hint="memtool list is:pinned",
            code="not-pinned",
        )
    return {"status": "confirmed"}


def _restore_changes(memory: Memory) -> KeyChanges:
    if memory.status == "deleted":
        return {"status": memory.table("deleted").get("was", "confirmed"), "deleted": None}
    if memory.status in ("archived", "deprecated"):
        return {"status": "confirmed", "retired": None}
    return {}
