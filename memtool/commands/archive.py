"""The verbs that change the status of memories: `memtool archive`, `restore` and the like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict, Unpack

from memtool.authoring import resolve, write
from memtool.authoring.selection import Selection, naming_exceptions, select_memories
from memtool.authoring.write import ChangedMemories
from memtool.commands import _features, _settling
from memtool.commands._render import format_changed as render
from memtool.errors import MemtoolError
from memtool.inject import answer, block
from memtool.inject.gather import GatherRequest
from memtool.memory import lifecycle, timestamps
from memtool.memory.drift import BROKEN, Drift, describe_base, describe_file
from memtool.memory.fields import SETTLED
from memtool.memory.memory import Fields, FieldValue, Memory
from memtool.memory.premises import accept
from memtool.search.features import list_governed_paths
from memtool.search.scope import build_drift_witness
from memtool.search.suggested_files import suggest_files
from memtool.store import sightings, usage_log
from memtool.store.context import Context
from memtool.store.files import matches_or_contains
from memtool.store.tree import Record
from memtool.value import Value, first_few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.search.drift import DriftWitness

KeyChanges = dict[str, FieldValue | None]
"""New values of frontmatter keys; None removes a key."""

MAX_NAMED_MEMORIES = 3
MAX_NOTES = 10
"""Notes on the memories of one call."""
NOTHING_TO_SETTLE = "nothing was settled: what is cited still holds here"

VOUCHED_STATUSES = ("confirmed", "pinned")
"""Statuses of memories that a person vouched for."""

__all__ = ["archive", "confirm", "deprecate", "pin", "render", "restore", "unpin"]


class ChangeOptions(TypedDict, total=False):
    """How the status of memories is written.

    Args:
        commit: commit these files only
        dry_run: show what would change, write nothing
    """

    commit: bool
    dry_run: bool


def confirm(
    context: Context,
    *id: str,
    still_holds: bool = False,
    accept_files: bool = False,
    **options: Unpack[ChangeOptions],
) -> ChangedMemories:
    """Vouch that memories hold.

    A candidate becomes confirmed, and an old memory counts as new again. The file records when, by
    whom, and at which commit, so the code that it names must be committed.

    If drift reports the memory as broken, or what it rests on has changed, look at that first, then
    use --still-holds. This settles what rests on the memory as well, until the next change.

    Example:
        memtool confirm sem-gnq8
        memtool confirm epi-bg2z --still-holds --commit
        memtool confirm is:candidate 'source:file:docs/adr/*' --commit

    Args:
        id: memories by id or words; with a filter such as is:candidate, all are one query
        still_holds: confirm it although its code, or what it rests on, changed
        accept_files: also write into files those that are shown as probable
    """
    dry_run = options.get("dry_run", False)
    selection = select_memories(context, id, "confirm", dry_run=dry_run)
    accepted = _find_suggested(context, selection) if accept_files else {}
    drift = _build_drift_witness(context, selection)
    code = _judge_code(context, selection, accepted, drift, still_holds=still_holds)
    settling = _settling.find_settling(context, selection, drift, code.false_alarms)
    head, author = context.repository.git.head(), write.find_author(context)
    lines: dict[str, str] = {}

    def added(memory: Memory) -> KeyChanges:
        return {"files": accepted[memory.id]} if memory.id in accepted else {}

    def look(memories: Sequence[Memory]) -> None:
        wanted = [(head, memory.with_fields(**added(memory))) for memory in memories]
        if head:
            saw = sightings.render_commit_sightings(context.repository, wanted)
            lines.update(zip((memory.id for memory in memories), saw, strict=True))

    def changes(memory: Memory) -> KeyChanges:
        if memory.id in code.errors:
            raise code.errors[memory.id]
        write.refuse_deleted(memory)
        names = settling.accepted.get(memory.id, ())
        if names and not still_holds:
            raise settling.refusal(memory)
        checked = {"at": timestamps.render(context.clock.now), "by": author}
        checked |= {"commit": head} if head else {}
        checked |= {"saw": lines[memory.id]} if lines.get(memory.id) else {}
        status = "pinned" if memory.status == "pinned" else "confirmed"
        own: KeyChanges = {SETTLED: accept(memory, names)} if names else {}
        return {"status": status, "checked": checked, "retired": None, **own, **added(memory)}

    done = _vouch(context, selection, changes, "confirm", look=look, **options)
    add_notes(context, code.notes)
    if still_holds:
        broken = code.false_alarms
        explained = (settling.explain(id_, is_broken=id_ in broken) for id_ in selection.ids)
        add_notes(context, [*filter(None, explained)] or [NOTHING_TO_SETTLE])
        context.notes += filter(None, [settling.describe_reach(selection.ids)])
    for change in done.memories if not dry_run else ():
        if change.id in code.false_alarms:
            alarms = " ".join(code.false_alarms[change.id])
            usage_log.log_done(context, "still-holds", [change.id], alarms)
    return done


def pin(context: Context, *id: str, **options: Unpack[ChangeOptions]) -> ChangedMemories:
    """Pin memories, so that every session begins with them.

    A pinned memory does not expire. Only a few fit (inject.max_pinned); if there are more, the
    answer names those that agents no longer see.

    Example:
        memtool pin dec-8t7d --commit

    Args:
        id: memories by id or words; with a filter such as tag:api, all are one query
    """
    selection = select_memories(context, id, "pin", dry_run=options.get("dry_run", False))
    changes = _build_status_change("pinned")
    changed = _vouch(context, selection, changes, "pin", needs_head=True, **options)
    if not options.get("dry_run"):
        _note_crowded_out(context)
    return changed


def unpin(context: Context, *id: str, **options: Unpack[ChangeOptions]) -> ChangedMemories:
    """Unpin memories; they stay confirmed.

    Example:
        memtool unpin dec-8t7d
        memtool unpin is:pinned tag:api

    Args:
        id: memories by id or words; with a filter such as is:pinned, all are one query
    """
    selection = select_memories(context, id, "unpin", dry_run=options.get("dry_run", False))
    with naming_exceptions(selection, "unpin"):
        return write.change_all(context, selection.ids, _unpin_changes, "unpin", **options)


def deprecate(
    context: Context, *id: str, reason: str = "", **options: Unpack[ChangeOptions]
) -> ChangedMemories:
    """Stop showing memories to agents, but keep them findable.

    If you know what holds instead, use memtool supersede.

    Example:
        memtool deprecate dec-2g54 --reason "we are moving off Redis"

    Args:
        id: memories by id or words; with a filter such as tag:redis, all are one query
        reason: the reason, kept in the message of the commit
    """
    return _retire(context, id, "deprecated", "deprecate", reason, options)


def archive(
    context: Context, *id: str, reason: str = "", **options: Unpack[ChangeOptions]
) -> ChangedMemories:
    """Put memories away: list, search and inject leave them out unless asked for them.

    The files stay where they are. memtool list is:archived shows what is archived.

    Example:
        memtool archive sta-ywmh --commit
        memtool archive is:due type:state --commit

    Args:
        id: memories by id or words; with a filter such as is:due, all are one query
        reason: the reason, kept in the message of the commit
    """
    return _retire(context, id, "archived", "archive", reason, options)


def restore(context: Context, *id: str, **options: Unpack[ChangeOptions]) -> ChangedMemories:
    """Bring back memories that were forgotten, archived or deprecated.

    A forgotten memory gets its former status; any other becomes confirmed. A superseded memory is
    brought back by memtool undo.

    Example:
        memtool restore dec-2g54 --commit
        memtool restore is:deleted tag:vpn

    Args:
        id: memories by id or words; with a filter such as is:deleted, all are one query
    """
    selection = select_memories(context, id, "restore", dry_run=options.get("dry_run", False))
    newer = {
        id_: ids
        for id_ in selection.ids
        if (ids := selection.tree.lineage.superseded_by.get(id_, ()))
    }

    def changes(memory: Memory) -> KeyChanges:
        new = _restore_changes(memory)
        if memory.id in newer and not new:
            raise MemtoolError(
                f"cannot restore: {memory.id} is superseded by {', '.join(newer[memory.id])}",
                hint=f"memtool undo {memory.id}",
                code="not-a-head",
            )
        return new

    done = _vouch(context, selection, changes, "restore", **options)
    add_notes(
        context,
        [
            f"{id_} is still superseded by {', '.join(ids)}: memtool undo {id_}"
            for id_, ids in newer.items()
        ],
    )
    return done


def add_notes(context: Context, notes: Sequence[str]) -> None:
    """Add notes on memories; of many, only the first and their number."""
    context.notes += notes[:MAX_NOTES]
    if len(notes) > MAX_NOTES:
        context.notes.append(f"and {len(notes) - MAX_NOTES:,} more notes of this kind")


def _vouch(
    context: Context,
    selection: Selection,
    changes: Callable[[Memory], KeyChanges],
    verb: str,
    *,
    commit: bool = False,
    dry_run: bool = False,
    needs_head: bool = False,
    look: Callable[[Sequence[Memory]], None] = lambda _memories: None,
) -> ChangedMemories:
    """Change the status of memories, and note what each now replaces if it was only a proposal.

    Digests that quote replaced memories are rebuilt.
    """
    replaced: dict[str, tuple[str, ...]] = {}

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
        if memory.proposes and (ids := memory.with_fields(**new).replaces):
            replaced[memory.id] = ids
        return new

    with naming_exceptions(selection, verb):
        done = write.change_all(
            context,
            selection.ids,
            checked_changes,
            verb,
            commit=commit,
            dry_run=dry_run,
            needs_head=needs_head,
            look=look,
        )
    if replaced:
        would = "would replace" if dry_run else "replaces"
        lineage = write.open_current_tree(context, dry_run=dry_run).lineage
        notes = []
        for id_, ids in replaced.items():
            notes.append(f"{id_} {would} {', '.join(ids)} from now on")
            notes += filter(None, [resolve.open_fork(lineage, id_, ids)])
        add_notes(context, notes)
        olds = [*dict.fromkeys(id_ for ids in replaced.values() for id_ in ids)]
        _features.follow_end(context, olds, commit=commit, dry_run=dry_run)
    return done


def _find_suggested(context: Context, selection: Selection) -> dict[str, tuple[str, ...]]:
    """Return the files that memories probably govern, by id; note those without any."""
    records = [selection.tree[id_] for id_ in selection.ids]
    accepted = suggest_files(selection.tree, records)
    lacking = [id_ for id_ in selection.ids if id_ not in accepted]
    if lacking:
        shown = first_few(lacking, MAX_NAMED_MEMORIES)
        context.notes.append(f"{shown}: no files are suggested, so none are added")
    return accepted


class CodeVerdicts(Value):
    """What the code says about memories: by id, why one cannot be confirmed, and false alarms.

    A false alarm is a drift rule that calls a memory broken which holds: gone, lines, name.
    """

    errors: dict[str, MemtoolError]
    false_alarms: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]


def _build_drift_witness(context: Context, selection: Selection) -> DriftWitness | None:
    """Return a witness of drift; None without a commit to compare with."""
    tree = selection.tree
    if not context.repository.git.head():
        return None
    return build_drift_witness(tree, lambda: context.provenance_reader(tree))


def _judge_code(
    context: Context,
    selection: Selection,
    accepted: Mapping[str, Sequence[str]],
    witness: DriftWitness | None,
    *,
    still_holds: bool,
) -> CodeVerdicts:
    """Find how the files of memories have changed, and which of them differ from HEAD.

    `accepted` are files that are added to memories, by id.
    """
    tree, git = selection.tree, context.repository.git
    records = [
        record
        for record in map(tree.__getitem__, selection.ids)
        if (list_governed_paths(record) or record.id in accepted)
        and record.memory.status != "deleted"
    ]
    if not records or witness is None:
        return CodeVerdicts({}, {}, ())
    witness.expect(records)
    differing = [
        path for _state, path in git.status() if not path.startswith(f"{context.directory}/")
    ]
    errors: dict[str, MemtoolError] = {}
    false_alarms: dict[str, tuple[str, ...]] = {}
    notes: list[str] = []
    for record in records:
        drift = witness(record)
        own_paths = [*list_governed_paths(record), *accepted.get(record.id, ())]
        error = _find_open_work(record, own_paths, drift, differing)
        if error is not None:
            errors[record.id] = error
            continue
        if drift is None or not drift.since:  # it is not committed
            continue
        if drift.level == BROKEN and not still_holds:
            errors[record.id] = MemtoolError(
                f"cannot confirm {write.quote_memory(record.memory)}: "
                f"{'; '.join(map(describe_file, drift.files))}",
                hint=f"memtool supersede {record.id} TITLE\n"
                f"still true: memtool confirm {record.id} --still-holds",
                code="drifted",
            )
        name = f"{record.id}: " if len(selection.ids) > 1 else ""
        notes += [
            f"{name}since {describe_base(drift)}: {describe_file(file)}" for file in drift.files
        ]
        alarms = {file.why for file in drift.files if file.level == BROKEN}
        if alarms:
            false_alarms[record.id] = tuple(sorted(alarms))
    return CodeVerdicts(errors, false_alarms, tuple(notes))


def _find_open_work(
    record: Record, own_paths: Sequence[str], drift: Drift | None, differing: Sequence[str]
) -> MemtoolError | None:
    """Return the error for a memory with a path of its own that differs from HEAD."""
    moves = () if drift is None else drift.renames
    governed_paths = [path.rstrip("/") for path in (*own_paths, *(move.now for move in moves))]
    for path in differing:
        if any(matches_or_contains(pattern, path) for pattern in governed_paths):
            return MemtoolError(
                f"cannot confirm {write.quote_memory(record.memory)}: {path} has uncommitted "
                "changes",
                hint=f"git commit -- {path}\nmemtool confirm {record.id}",
                code="not-committed",
            )
    return None


def _build_status_change(status: str) -> Callable[[Memory], KeyChanges]:
    """Return a function that sets a status in use; it refuses a deleted memory."""

    def changes(memory: Memory) -> KeyChanges:
        write.refuse_deleted(memory)
        return {"status": status, "retired": None}

    return changes


def _retire(
    context: Context,
    words: tuple[str, ...],
    status: str,
    verb: str,
    reason: str,
    options: ChangeOptions,
) -> ChangedMemories:
    """Set a status that takes memories out of use; refuse a deleted memory."""
    selection = select_memories(context, words, verb, dry_run=options.get("dry_run", False))
    author = write.find_author(context)

    def changes(memory: Memory) -> Fields:
        write.refuse_deleted(memory)
        fields = lifecycle.retire_fields(memory, context.clock.now, author)
        return {"status": status} | fields

    if reason and not options.get("commit"):
        context.notes.append("the reason is only stored in a commit: add --commit")
    with naming_exceptions(selection, verb):
        done = write.change_all(context, selection.ids, changes, verb, reason=reason, **options)
    _settling.note_unsettled(context, done)
    return done


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
