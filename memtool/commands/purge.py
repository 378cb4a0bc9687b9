"""`memtool purge`: remove forgotten memories for good, or plan to purge a leak from history."""

from __future__ import annotations

from memtool.authoring import write
from memtool.commands._layout import Layout, shorten_commit
from memtool.errors import MemtoolError
from memtool.memory import short_ids, timestamps
from memtool.redaction.mask import Mask
from memtool.store import files, usage_log
from memtool.store.context import Context
from memtool.upkeep import purge as purge_rules
from memtool.upkeep.purge import DUE, HELD, LATER, PurgeCandidate
from memtool.value import Value, first_few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from memtool.store.tree import Record, Tree
    from memtool.upkeep.rewrite_history import LeakReport, RewriteReport

MAX_NAMES = 5


class PurgeRow(Value):
    """A forgotten memory, whose `state` is `due`, `later` or `held`.

    `reason` says why it is held, else why it was forgotten. `deleted` and `due` are moments; from
    `due` on it may be removed.
    """

    id: str
    title: str
    path: str
    state: str
    deleted: str
    due: str
    reason: str


class PurgeResult(Value):
    """Memories that may be removed, and those that were.

    `along` has memories derived from them, by id, with the id of the original; they are removed
    with `is_cascade`. `removed` are ids. `sessions` are ids of private sessions whose messages
    still contain the text.
    """

    forgotten: tuple[PurgeRow, ...]
    along: dict[str, str]
    sessions: tuple[str, ...]
    removed: tuple[str, ...] = ()
    commit: str | None = None
    dry_run: bool = False
    is_cascade: bool = False


def purge(
    context: Context,
    *id: str,
    apply: bool = False,
    commit: bool = False,
    cascade: bool = False,
    history: bool = False,
    secret: str = "",
    into: str = "",
    dry_run: bool = False,
) -> PurgeResult | RewriteReport | LeakReport:
    """Remove forgotten memories for good, or take a leaked secret out of history.

        memtool purge               list what was forgotten 30 days ago or earlier
        --apply                     remove it; memtool restore no longer helps
        --cascade                   also remove what was derived from it only
        --history                   list the secrets in old versions of memories, by fingerprint
        --history ID, --secret FP   plan how to take it out of every commit, branch and remote
        ... --apply --into DIR      do that in a copy, check the copy, print the commands to
                                    replace the remote; this clone and the remote stay as they are

    Example:
        memtool purge --apply --commit
        memtool purge --secret 3f2a9c41b7d01122 --apply --into ../clean

    Args:
        id: only these memories, by id or words
        apply: do it, instead of showing what would be done
        commit: commit the removal
        cascade: also remove what was derived from them only
        history: take the memories out of every commit
        secret: take a secret out of every commit
        into: the directory for the copy; must be absent
        dry_run: show what would be done, even with --apply
    """
    apply = apply and not dry_run
    if history or secret:
        from memtool.upkeep import rewrite_history

        if not (id or secret or apply):
            return rewrite_history.list_leaks(context)
        return rewrite_history.rewrite(context, id, secret, into, apply=apply)
    if into:
        raise MemtoolError("--into needs --history", hint="memtool purge --history ID --into DIR")
    write.prepare(context, begins=False, dry_run=dry_run)
    with files.locked(context.repository.cache_dir, "write.lock", is_needed=apply):
        here = context.tree()
        head = context.tree("HEAD") if context.repository.git.head() else None
        days = context.settings.count("purge.after_days")
        candidates = _choose_candidates(
            here, purge_rules.plan(here, head, context.clock.now, days), id
        )
        due = [candidate for candidate in candidates if candidate.state == DUE]
        to_remove = {candidate.record.id: candidate.record for candidate in due}
        derived = _find_derived(here, head, to_remove.keys())
        uncommitted = _find_uncommitted(derived, here, head)
        findings = purge_rules.collect_findings(
            context, {*to_remove, *(record.id for record, _id in derived)}
        )
        if cascade:
            to_remove |= {record.id: record for record, _id in derived}
        _note_consequences(context, here, to_remove, derived, uncommitted, is_cascade=cascade)
        plan = PurgeResult(
            forgotten=tuple(
                _build_row(candidate, Mask(context.settings)) for candidate in candidates
            ),
            along={record.id: origin for record, origin in derived},
            sessions=tuple(findings),
            dry_run=not apply,
            is_cascade=cascade,
        )
        if not apply or not to_remove:
            return plan
        _refuse_unclean(to_remove, uncommitted if cascade else [], head, commit=commit)
        with usage_log.audit(context, "purge", *sorted(to_remove)):
            done = purge_rules.remove(context, to_remove, head)
            if cascade:
                purge_rules.withdraw(context, findings)
    return plan.replace(removed=tuple(sorted(to_remove)), commit=done)


def render(result: PurgeResult | RewriteReport | LeakReport, layout: Layout) -> str:
    """Return a line per memory, or the plan of a rewrite."""
    if not isinstance(result, PurgeResult):
        from memtool.upkeep import rewrite_history

        return rewrite_history.text(result)
    if result.removed:
        rows = [f"removed {id_}" for id_ in result.removed]
        commit = f"committed as {shorten_commit(result.commit)}"
        return "\n".join([*rows, commit] if result.commit else rows)
    rows = []
    for row in result.forgotten:
        when = {
            DUE: "due now",
            LATER: f"due on {row.due[:10]}",
            HELD: f"stays: {row.reason}",
        }
        why = f": {row.reason}" if row.state != HELD and row.reason else ""
        rows += layout.wrap(layout.name(row.id))
        rows += layout.wrap(f"{when[row.state]}, forgotten on {row.deleted[:10]}{why}", "  ")
    fate, cascade_option = ("goes with it", " --cascade") if result.is_cascade else ("stays", "")
    rows += [
        f"{layout.name(id_)} {fate}: derived from {layout.short(origin)}"
        for id_, origin in result.along.items()
    ]
    if any(row.state == DUE for row in result.forgotten):
        rows.append(
            f"To remove what is due: memtool purge --apply --commit{cascade_option}. "
            "To keep it: memtool restore ID"
        )
    if not rows:
        layout.report("no memory is forgotten")
    return "\n".join(rows)


def _choose_candidates(
    here: Tree, candidates: list[PurgeCandidate], wanted: Sequence[str]
) -> list[PurgeCandidate]:
    """Return the named candidates, all if none is named.

    Raises:
        MemtoolError: one is unknown, not forgotten, or not due yet.
    """
    chosen = []
    for name in wanted:
        meant = short_ids.find_meant(name, [candidate.record.id for candidate in candidates])
        matches = [candidate for candidate in candidates if candidate.record.id in meant]
        exact = [candidate for candidate in matches if candidate.record.id == name]
        if not matches:
            record = here.find(name)
            raise MemtoolError(
                f"cannot purge: {write.quote_memory(record.memory)} is not forgotten",
                hint=f'memtool forget {record.id} --reason "REASON"',
                code="not-due",
            )
        if len(matches) > 1 and not exact:
            raise MemtoolError(
                f'cannot purge: {len(matches)} forgotten memories match "{name}"',
                hint="memtool purge",
                code="ambiguous-id",
            )
        candidate = (exact or matches)[0]
        if candidate.state == LATER:
            raise MemtoolError(
                f"cannot purge: {write.quote_memory(candidate.record.memory)} is not due until "
                f"{timestamps.format_date(candidate.due)}",
                hint=f"to get it back: memtool restore {candidate.record.id}\n"
                "to see the period: memtool config purge.after_days",
                code="not-due",
            )
        if candidate.state == HELD:
            raise MemtoolError(
                f"cannot purge {candidate.record.id}: {candidate.reason}",
                hint=f"git commit -- {candidate.record.path}",
                code="dirty",
            )
        chosen.append(candidate)
    return chosen if wanted else candidates


def _find_derived(here: Tree, head: Tree | None, ids: Collection[str]) -> list[tuple[Record, str]]:
    """Return memories derived only from these, including any that only HEAD still has."""
    derived = (
        {record.id: (record, origin) for record, origin in purge_rules.find_derived(head, ids)}
        if head
        else {}
    )
    derived |= {
        record.id: (record, origin) for record, origin in purge_rules.find_derived(here, ids)
    }
    return [derived[id_] for id_ in sorted(derived)]


def _find_uncommitted(
    derived: Sequence[tuple[Record, str]], here: Tree, head: Tree | None
) -> list[str]:
    """Return the ids of derived memories with uncommitted changes."""
    return [
        record.id
        for record, _origin in derived
        if purge_rules.find_holder(
            here.get(record.id), None if head is None else head.get(record.id)
        )
    ]


def _note_consequences(
    context: Context,
    here: Tree,
    to_remove: Mapping[str, Record],
    derived: Sequence[tuple[Record, str]],
    uncommitted: Sequence[str],
    *,
    is_cascade: bool,
) -> None:
    """Note what else will be removed, and what must be done first."""
    if not to_remove:
        return
    if derived and not is_cascade:
        names = first_few([record.id for record, _origin in derived], MAX_NAMES, ", …")
        context.notes.append(f"--cascade also removes what was derived from them: {names}")
    for id_ in uncommitted:
        context.notes.append(f"{id_} has uncommitted changes")
    for record in purge_rules.find_mentions(here, to_remove.keys()):
        if record.id not in to_remove:
            context.notes.append(
                f"{record.id} still quotes them; memtool digest "
                f"{record.memory.category} --commit rewrites it"
            )
    rows = (
        context.repository.git.run(
            "for-each-ref",
            "--no-merged=HEAD",
            "--format=%(refname:short)",
            "refs/heads",
            "refs/remotes",
            allowed=(0, 128, 129),
        )
        .decode(errors="replace")
        .split()
    )
    if rows:
        context.notes.append(
            f"merge {first_few(rows, MAX_NAMES, ', …')} first: where a branch edited a similar "
            "memory, git may take the removed file for it"
        )
    context.notes.append(
        "git history still has them; to remove them there: memtool purge --history ID"
    )


def _refuse_unclean(
    to_remove: Mapping[str, Record], uncommitted: Sequence[str], head: Tree | None, *, commit: bool
) -> None:
    """Raise MemtoolError if the removal would not be one commit of its own."""
    if uncommitted:
        raise MemtoolError(
            f"cannot purge: {uncommitted[0]} has uncommitted changes",
            hint=f"git commit -- {to_remove[uncommitted[0]].path}",
            code="dirty",
        )
    if head is not None and not commit and any(id_ in head for id_ in to_remove):
        raise MemtoolError(
            "cannot purge: --apply needs --commit, since a purge is a commit of its own",
            hint="memtool purge --apply --commit",
        )


def _build_row(candidate: PurgeCandidate, mask: Mask) -> PurgeRow:
    return PurgeRow(
        id=candidate.record.id,
        title=mask.line(candidate.record.memory.title),
        path=candidate.record.path,
        state=candidate.state,
        deleted=timestamps.render(candidate.deleted),
        due=timestamps.render(candidate.due),
        reason=mask.line(candidate.reason),
    )
