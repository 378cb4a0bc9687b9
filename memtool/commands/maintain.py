"""`memtool maintain`: upkeep as one commit."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal

from memtool.authoring import write
from memtool.authoring.tree import bytes_of
from memtool.errors import MemtoolError
from memtool.memory.document import MAX_BYTES
from memtool.redaction.mask import Mask
from memtool.search.scope import drift_in
from memtool.sessions import store
from memtool.store import ledger, provenance, usage_log
from memtool.store.commits import message
from memtool.store.context import Context
from memtool.store.edits import (
    HEADS,
    Branch,
    base_of,
    commit_edits,
    commit_to_branch,
    find_branch,
    is_interrupted,
)
from memtool.store.history import Upholding
from memtool.store.provenance import SHORT
from memtool.store.repository import Repository
from memtool.store.tree import Tree
from memtool.upkeep import cleanup, steps
from memtool.upkeep import plan as upkeep_plan
from memtool.upkeep.cleanup import Chore
from memtool.upkeep.inputs import PlanInputs, Uses, read_uses
from memtool.upkeep.plan import MONTHLY, PERIODS, Flag, MaintenancePlan
from memtool.upkeep.steps import UpkeepStep
from memtool.value import Value, plural


def _is_here(repository: Repository, target: Branch | None) -> bool:
    """Return whether the commit goes to the branch of this worktree.

    Raises:
        MemtoolError: the branch is checked out in another worktree.
    """
    if target is None:
        return True
    if not target.worktree:
        return False
    if repository.is_bare or os.path.realpath(target.worktree) != repository.top:
        raise MemtoolError(
            f"{target.ref} is checked out in {target.worktree}",
            hint=f"memtool -C {target.worktree} maintain --apply",
            code="elsewhere",
        )
    return True


def _accesses(context: Context) -> Uses:
    """Return what the ledger has counted; nothing where it cannot be read."""
    directory = context.repository.cache_dir
    try:
        ledger.fold(directory)
        return read_uses(directory)
    except MemtoolError as error:
        context.notes.append(f"accesses are not counted: {error}")
        return Uses()


def _upheld(context: Context, tree: Tree, inputs: PlanInputs, base: str) -> dict[str, Upholding]:
    """Return what the commits of the trusted branch uphold, of `base` where there is none."""
    since = upkeep_plan.upheld_from(tree, inputs)
    ref = context.project.trust_settings.text("trust.ref")
    history = provenance.resolve_trusted(context.repository, ref) or base
    return upkeep_plan.read_upheld(tree, history, since)


def _dirty_memories(context: Context) -> tuple[str, ...]:
    """Return the memory files that are not as HEAD has them, or not in this checkout, by path."""
    git = context.repository.git
    found = {path for _letters, path in git.status(context.directory)}
    if os.path.exists(os.path.join(context.repository.git_dir, "info", "sparse-checkout")):
        found |= {entry.path for entry in git.ls_files(context.directory) if entry.is_skipped}
    return tuple(sorted(path for path in found if path.endswith(".md")))


SHOWN = 20
"""Rows of each kind that the text shows; `--json` has all."""


class Maintained(Value):
    """A plan, and with `applied` what was done.

    `base` is the commit that it was made of, empty where there is none yet. `left_out` are memory
    files with changes that are not committed: they stay as they are.
    """

    periods: tuple[str, ...]
    base: str
    branch: str
    steps: tuple[UpkeepStep, ...]
    chores: tuple[Chore, ...]
    flags: tuple[Flag, ...]
    left_out: tuple[str, ...]
    applied: bool = False
    commit: str | None = None
    dry_run: bool = False
    only: str = ""

    @property
    def what(self) -> str:
        """What was looked after, for the commit and the audit."""
        return self.only or ", ".join(self.periods)


def next_due(context: Context) -> int | None:
    """Return the second at which upkeep is due next; None without a schedule."""
    cache, now = context.repository.cache_dir, context.clock.now
    if not context.settings.texts(upkeep_plan.SCHEDULE):
        return None
    return min(upkeep_plan.due_moments(context.settings, cache, now).values())


def maintain(
    context: Context,
    *,
    nightly: bool = False,
    weekly: bool = False,
    monthly: bool = False,
    due: bool = False,
    only: Literal["", "decay", "sessions", "index", "digests"] = "",
    apply: bool = False,
    branch: str = "",
    dry_run: bool = False,
) -> Maintained:
    """Plan the upkeep of the memories, and with --apply do it, as one commit to be reviewed.

    Nightly: what says the same is merged, candidates whose first day is over are confirmed where
    somebody opened them or a commit upholds them and else count less, contradictions are told, and
    what was used and has a low confidence waits for a person. Weekly: what has expired
    is archived, so are the least important of more than 3,000, what is due for review is told, or
    renewed where a commit upholds it, digests are rebuilt, leftovers removed. Only commits of the
    trusted branch uphold, and no access renews anything. Monthly: names that
    lead nowhere are told, the index is made anew, sessions that have ended are pruned after
    maintain.prune_days. Without a period all of it is planned; with --due the periods
    of the setting maintain.schedule whose time has come since they were last carried out here.
    --only takes one thing out of all: what expires and fades, sessions, the index, or digests.

    With the setting importance.learn on, --weekly also plans another importance for confirmed
    memories that were used often in the last 90 days, or no longer are.

    The plan is made of the last commit, the ledger and the clock. Memory files with changes that
    are not committed are left out; what a confirmed memory claims is never edited; nothing is
    deleted. Done once, it leaves nothing to plan. An interrupted run is taken back by the next one.

    Example:
        memtool maintain
        memtool maintain --weekly --apply
        memtool maintain --weekly --apply --branch memtool/maintain
        memtool maintain --only decay

    Args:
        nightly: plan what is due every night
        weekly: plan what is due every week
        monthly: plan what is due every month
        due: plan the periods whose time has come, as the setting maintain.schedule says
        only: plan just this
        apply: do what is planned, and commit it
        branch: work on this branch, which need not be checked out; it begins at HEAD
        dry_run: say what would be done, even with --apply
    """
    chosen = tuple(p for p, is_on in zip(PERIODS, (nightly, weekly, monthly), strict=True) if is_on)
    if only and (chosen or due):
        raise MemtoolError(
            "--only says what, the others say when",
            hint=f"memtool maintain --only {only}",
            code="usage",
        )
    directory = context.repository.cache_dir
    if due:
        found_due = upkeep_plan.due_periods(context.settings, directory, context.clock.now)
        chosen = tuple(period for period in PERIODS if period in {*chosen, *found_due})
        if not chosen:
            context.notes.append("no upkeep is due yet")
    periods = chosen if due or chosen else () if only else PERIODS
    does = apply and not dry_run and context.repository.is_made
    if not context.repository.is_bare:
        if does:
            write.prepare(context, begins=False, dry_run=False)
        else:
            context.project.refuse_absent()
    elif does:
        context.project.refuse_newer()
    target = find_branch(context.repository, branch) if branch else None
    here = _is_here(context.repository, target)
    if not does:
        return _planned(context, periods, only, target, here=here)[0].replace(dry_run=dry_run)
    with steps.alone(context.repository):
        if here:
            steps.refuse_unready(context.repository)
            steps.recover_before(context)
        found, tree, plan = _planned(context, periods, only, target, here=here)
        ids = [step.id for step in plan.steps]
        with usage_log.act(context, "maintain", *ids, detail=found.what, dry_run=not ids):
            done = _committed(context, tree, plan, found, target, here=here) if plan.steps else None
        _do_chores(context, plan, found)
    return found.replace(applied=True, commit=done)


def _planned(
    context: Context, periods: tuple[str, ...], only: str, target: Branch | None, *, here: bool
) -> tuple[Maintained, Tree, MaintenancePlan]:
    repository = context.repository
    base, lacking = repository.git.head(), 0
    branch = ""
    if target is not None:
        branch = target.ref.removeprefix(HEADS)
        base, lacking = base_of(repository, target, base)
    if lacking:
        context.notes.append(
            f"{branch} is planned as it is: not merged, and {plural(lacking, 'commit')} behind"
        )
    if not base:
        context.notes.append("nothing is committed yet, so there is nothing to look after")
        nothing = Maintained(periods, "", branch, (), (), (), (), only=only)
        return nothing, context.tree(), MaintenancePlan()
    if here and is_interrupted(repository):
        context.notes.append("an earlier run was interrupted; --apply takes back what it wrote")
    tree = context.tree(base)
    dirty = _dirty_memories(context) if here and not repository.is_bare else ()
    odd = {record.path for record in tree.records if "\n" in record.path}  # git takes one a line
    frozen = odd.union(dirty)
    candidates = [one.path for one in tree.records if one.memory.status == "candidate"]
    added = upkeep_plan.read_added(repository, base, candidates, context.directory)
    grounds = PlanInputs(
        context.clock.now,
        context.settings,
        _accesses(context),
        context.directory,
        frozenset(frozen),
        drift_in(tree, lambda: context.witness(tree)).broken(tree.records),
        added,
    )
    grounds = grounds.replace(upheld=_upheld(context, tree, grounds, base))
    plan = upkeep_plan.plan(
        tree,
        grounds,
        store.opened(context),
        repository.cache_dir,
        periods,
        context.random_for,
        only,
    )
    context.notes.extend(plan.notes)
    if MONTHLY in periods and repository.is_shallow:
        context.notes.append("this clone is shallow: which commits are missing, nobody can tell")
    found = Maintained(
        periods,
        base,
        branch,
        _shown(context, plan.steps),
        plan.chores,
        plan.flags,
        dirty,
        only=only,
    )
    return found, tree, plan


def _shown(context: Context, steps: Iterable[UpkeepStep]) -> tuple[UpkeepStep, ...]:
    """Return steps as they may be told: what they write is made of the true bytes."""
    mask = Mask(context.settings)
    return tuple(
        step.replace(
            title=mask.line(step.title),
            memory=None if step.memory is None else mask.memory(step.memory),
        )
        for step in steps
    )


def _committed(
    context: Context,
    tree: Tree,
    plan: MaintenancePlan,
    found: Maintained,
    target: Branch | None,
    *,
    here: bool,
) -> str | None:
    repository, categories = context.repository, context.settings.categories
    subject, body = steps.subject(plan.steps), steps.body(plan.steps)
    trailers = {steps.TRAILER: found.what}
    if here:
        edits = steps.edits_of(plan.steps, lambda path: _read(context, path), categories)
        return commit_edits(context, edits, subject, body, trailers)
    entries = tree.location.list_files().entries
    oids = {entry.path: entry.oid for entry in entries}
    changed = sorted(oids.keys() & {step.path for step in plan.steps})
    blobs = repository.git.blobs([oids[path] for path in changed], MAX_BYTES)
    data = dict(zip(changed, blobs, strict=True))
    edits = steps.edits_of(plan.steps, data.__getitem__, categories)
    assert target is not None
    modes = {entry.path: entry.mode for entry in entries}
    text = message(subject, trailers, body)
    return commit_to_branch(repository, target, found.base, edits, modes, text)


def _read(context: Context, path: str) -> bytes:
    data = bytes_of(context.repository.top, path)
    if data is None:
        raise MemtoolError(f"{path} is gone", hint="run the same command again", code="changed")
    return data


def _do_chores(context: Context, plan: MaintenancePlan, found: Maintained) -> None:
    directory = context.repository.cache_dir
    cleanup.do(plan.chores, directory, store.opened(context))
    is_rebuilt = any(chore.do == "rebuild" for chore in plan.chores)
    if is_rebuilt and not context.repository.is_bare:
        from memtool.index import index

        index.open(context, exact=True)
    if is_rebuilt or MONTHLY in found.periods:
        cleanup.note_rebuilt(directory, context.clock.now)
    if found.periods:
        cleanup.note_runs(directory, found.periods, context.clock.now)


def render(done: Maintained) -> str:
    """Return the plan by kind of step, then what people should look at, then the commit."""
    rows = []
    if done.steps:
        rows += [
            f"{steps.counted(done.steps)}:",
            *_some([f"  {step.do} {step.id}: {step.why}" for step in done.steps]),
        ]
    if done.chores:
        rows += ["in this clone:", *_some([_chore(chore) for chore in done.chores])]
    if done.flags:
        rows += ["to be looked at:", *_some([_flag(flag) for flag in done.flags])]
    if done.left_out:
        rows += [
            "left out, since they are not committed:",
            *_some([f"  {path}" for path in done.left_out]),
        ]
    if not done.steps and not done.chores:
        rows.append("nothing to do")
    elif done.commit:
        rows.append(
            f"committed as {done.commit[:SHORT]}{f' on {done.branch}' if done.branch else ''}"
        )
    elif not done.applied:
        rows.append("nothing was changed; --apply does it")
    return "\n".join(rows)


def _some(rows: list[str]) -> list[str]:
    more = len(rows) - SHOWN
    return [*rows[:SHOWN], f"  and {more:,} more, which --json tells"] if more > 0 else rows


def _chore(chore: Chore) -> str:
    size = f" ({chore.bytes:,} bytes)" if chore.bytes else ""
    return f"  {chore.do} {chore.what}{size}: {chore.why}"


def _flag(flag: Flag) -> str:
    where = " ".join(flag.ids) or flag.path
    return f"  {flag.kind} {where}: {flag.message}; {flag.hint}"
