"""`memtool purge`: remove for good what was forgotten, or plan how a leak leaves history."""

from __future__ import annotations

from memtool.authoring import write
from memtool.errors import MemtoolError
from memtool.memory import ids, timestamps
from memtool.redaction.mask import Mask
from memtool.store import files, usage_log
from memtool.store.context import Context
from memtool.upkeep import purge as purge_rules
from memtool.upkeep.purge import DUE, HELD, LATER, Parting
from memtool.value import Value, first_few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from memtool.store.tree import Record, Tree
    from memtool.upkeep.rewrite_history import Leaked, Rewritten

_SHOWN = 5


class PurgeCandidate(Value):
    """A memory that was forgotten: `due`, `later` or `held`, for what `reason` then says.

    `deleted` and `due` are moments; from `due` on it may be removed.
    """

    id: str
    title: str
    path: str
    state: str
    deleted: str
    due: str
    reason: str


class Purged(Value):
    """What may go and what went. `along` is derived from it, each id with the one it came from.

    It goes too where `is_cascade`. `removed` are ids, `sessions` those of private sessions whose
    messages still hold the words.
    """

    forgotten: tuple[PurgeCandidate, ...]
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
) -> Purged | Rewritten | Leaked:
    """Remove for good what was forgotten 30 days ago, or take a leak out of history.

    Without --apply it shows what is due, and what will be. With it the files go in one commit of
    their own, whose trailer Purges: names them; the gate lets nothing else remove a memory. Until
    then memtool restore brings one back. --cascade also removes what was derived from them only,
    and the old digests that quote them; it withdraws the findings that they came from. History
    keeps what was removed.

    --history alone lists the secrets that some version of a memory holds, by fingerprint. With an
    id, or with --secret, it plans how that memory or secret leaves all of history: which commits,
    branches and remotes hold it, and what that costs everybody. With --apply --into DIR it runs
    git-filter-repo on a mirror of this clone in DIR, verifies that nothing holds it any more and
    that everything else is there, and prints the commands that replace the remote. It never pushes,
    and never rewrites this clone.

    Example:
        memtool purge
        memtool purge --apply --commit
        memtool purge --secret 3f2a9c41b7d01122 --apply --into ../cleansed

    Args:
        id: only these memories, by their ids or words of them
        apply: do it, instead of showing what would be done
        commit: commit the removal, which a purge of committed memories needs
        cascade: also remove what was derived from them only
        history: take the memories out of every commit, not only out of the next one
        secret: take a secret out of every commit, by its fingerprint from memtool purge --history
        into: the directory for the rewritten mirror, which must not be there yet
        dry_run: show what would be done, also with --apply
    """
    apply = apply and not dry_run
    if history or secret:
        from memtool.upkeep import rewrite_history

        if not (id or secret or apply):
            return rewrite_history.listed(context)
        return rewrite_history.rewrite(context, id, secret, into, apply=apply)
    if into:
        raise MemtoolError("--into is for --history", hint="memtool purge --history ID --into DIR")
    write.prepare(context, begins=False, dry_run=dry_run)
    with files.locked(context.repository.cache_dir, "write.lock", is_needed=apply):
        here = context.tree()
        head = context.tree("HEAD") if context.repository.git.head() else None
        days = context.settings.count("purge.after_days")
        partings = _chosen(here, purge_rules.plan(here, head, context.clock.now, days), id)
        due = [one for one in partings if one.state == DUE]
        going = {one.record.id: one.record for one in due}
        along = _along(here, head, going.keys())
        held = _held(along, here, head)
        findings = purge_rules.findings_of(context, {*going, *(one.id for one, _id in along)})
        if cascade:
            going |= {one.id: one for one, _id in along}
        _note_rest(context, here, going, along, held, is_cascade=cascade)
        plan = Purged(
            forgotten=tuple(_candidate(one, Mask(context.settings)) for one in partings),
            along={one.id: origin for one, origin in along},
            sessions=tuple(findings),
            dry_run=not apply,
            is_cascade=cascade,
        )
        if not apply or not going:
            return plan
        _refuse(going, held if cascade else [], head, commit=commit)
        with usage_log.act(context, "purge", *sorted(going)):
            done = purge_rules.remove(context, going, head)
            if cascade:
                purge_rules.withdraw(context, findings)
    return plan.replace(removed=tuple(sorted(going)), commit=done)


def render(purged: Purged | Rewritten | Leaked) -> str:
    """Return a line per memory, or the plan of a rewrite."""
    if not isinstance(purged, Purged):
        from memtool.upkeep import rewrite_history

        return rewrite_history.text(purged)
    if purged.removed:
        rows = [f"removed {id_}" for id_ in purged.removed]
        return "\n".join([*rows, f"commit {purged.commit}"] if purged.commit else rows)
    rows = []
    for one in purged.forgotten:
        when = {DUE: "is due", LATER: f"is due on {one.due[:10]}", HELD: f"stays: {one.reason}"}
        why = f" ({one.reason})" if one.state != HELD and one.reason else ""
        rows.append(f"{one.id} {when[one.state]}: forgotten on {one.deleted[:10]}{why}")
    lot, also = ("goes with it", " --cascade") if purged.is_cascade else ("stays", "")
    rows += [f"{id_} {lot}: derived from {origin}" for id_, origin in purged.along.items()]
    if any(one.state == DUE for one in purged.forgotten):
        rows.append(
            f"memtool purge --apply --commit{also} removes what is due; until then: "
            "memtool restore ID"
        )
    return "\n".join(rows) or "no memory is forgotten"


def _chosen(here: Tree, partings: list[Parting], wanted: Sequence[str]) -> list[Parting]:
    """Return those that are named, all without a name.

    Raises:
        MemtoolError: one is not known, not forgotten, or not due yet.
    """
    chosen = []
    for name in wanted:
        meant = ids.meant(name, [one.record.id for one in partings])
        found = [one for one in partings if one.record.id in meant]
        exact = [one for one in found if one.record.id == name]
        if not found:
            record = here.find(name)
            raise MemtoolError(
                f"{record.id} is not forgotten",
                hint=f'memtool forget {record.id} --why "REASON"; it may be purged later',
                code="not-deleted",
            )
        if len(found) > 1 and not exact:
            raise MemtoolError(
                f"{len(found)} forgotten memories fit {name!r}",
                hint="memtool purge lists them",
                code="ambiguous-id",
            )
        one = (exact or found)[0]
        if one.state == LATER:
            raise MemtoolError(
                f"{one.record.id} is due on {timestamps.date(one.due)}",
                hint=f"until then memtool restore {one.record.id} brings it back; "
                "memtool config purge.after_days says how long that is",
                code="not-due",
            )
        if one.state == HELD:
            raise MemtoolError(
                f"{one.record.id} stays: {one.reason}",
                hint=f"git commit -- {one.record.path}",
                code="dirty",
            )
        chosen.append(one)
    return chosen if wanted else partings


def _along(here: Tree, head: Tree | None, ids: Collection[str]) -> list[tuple[Record, str]]:
    """Return what was derived from memories only, also what is gone from the worktree alone."""
    found = {one.id: (one, origin) for one, origin in purge_rules.along(head, ids)} if head else {}
    found |= {one.id: (one, origin) for one, origin in purge_rules.along(here, ids)}
    return [found[id_] for id_ in sorted(found)]


def _held(along: Sequence[tuple[Record, str]], here: Tree, head: Tree | None) -> list[str]:
    """Return the ids of what would go along, but has changes that are not committed."""
    return [
        record.id
        for record, _origin in along
        if purge_rules.held_by(here.get(record.id), None if head is None else head.get(record.id))
    ]


def _note_rest(
    context: Context,
    here: Tree,
    going: Mapping[str, Record],
    along: Sequence[tuple[Record, str]],
    held: Sequence[str],
    *,
    is_cascade: bool,
) -> None:
    """Note what else goes, or is in the way, before the user goes on."""
    if not going:
        return
    if along and not is_cascade:
        derived = first_few([record.id for record, _origin in along], _SHOWN, ", …")
        context.notes.append(f"--cascade also removes what was derived from them: {derived}")
    for id_ in held:
        context.notes.append(f"{id_} has changes that are not committed")
    for record in purge_rules.mentions(here, going.keys()):
        if record.id not in going:
            context.notes.append(
                f"{record.id} still quotes them; memtool digest "
                f"{record.memory.category} --commit writes it anew"
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
            f"merge {first_few(rows, _SHOWN, ', …')} first: where a branch edited a similar "
            "memory, git may take the removed file for it"
        )
    context.notes.append("history keeps what is removed; memtool purge --history ID plans that")


def _refuse(
    going: Mapping[str, Record], held: Sequence[str], head: Tree | None, *, commit: bool
) -> None:
    """Raise MemtoolError where the removal would not be one commit of its own."""
    if held:
        raise MemtoolError(
            f"{held[0]} has changes that are not committed",
            hint=f"git commit -- {going[held[0]].path}",
            code="dirty",
        )
    if head is not None and not commit and any(id_ in head for id_ in going):
        raise MemtoolError(
            "a purge is a commit of its own, whose trailer names what it removes",
            hint="memtool purge --apply --commit",
        )


def _candidate(one: Parting, mask: Mask) -> PurgeCandidate:
    return PurgeCandidate(
        id=one.record.id,
        title=mask.line(one.record.memory.title),
        path=one.record.path,
        state=one.state,
        deleted=timestamps.render(one.deleted),
        due=timestamps.render(one.due),
        reason=mask.line(one.reason),
    )
