"""`memtool maintain`: upkeep of the memories, as a plan and as one commit."""

from __future__ import annotations

from memtool.commands import auditing, tending
from memtool.commands import sessions as telling
from memtool.commands import writing as checking
from memtool.errors import MemtoolError
from memtool.memory.document import MAX_BYTES
from memtool.store.commits import message
from memtool.store.provenance import SHORT
from memtool.upkeep import applying, branching, chores, planning, writing
from memtool.upkeep.branching import Branch
from memtool.upkeep.chores import Chore
from memtool.upkeep.planning import MONTHLY, PERIODS, Flag, Plan
from memtool.upkeep.steps import Grounds, Step
from memtool.value import Value
from memtool.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.tree import Tree

SHOWN = 20
"""Rows of each kind that the text tells; `--json` has all."""


class Maintained(Value):
    """A plan, and with `applied` what was done.

    `base` is the commit that it was made of, empty where there is none yet. `left_out` are memory
    files with changes that are not committed: they stay as they are.
    """

    periods: tuple[str, ...]
    base: str
    branch: str
    steps: tuple[Step, ...]
    chores: tuple[Chore, ...]
    flags: tuple[Flag, ...]
    left_out: tuple[str, ...]
    applied: bool = False
    commit: str | None = None
    dry_run: bool = False


def maintain(
    ws: Workspace,
    *,
    nightly: bool = False,
    weekly: bool = False,
    monthly: bool = False,
    apply: bool = False,
    branch: str = "",
    dry_run: bool = False,
) -> Maintained:
    """Plan the upkeep of the memories, and with --apply do it, as one commit to be reviewed.

    Nightly: what says the same is merged, candidates whose first day is over are confirmed where
    somebody looked at them and else count less, contradictions are told. Weekly: what has expired
    is archived unless it was looked at three times, so are the least important of more than 3,000,
    digests are renewed, leftovers removed. Monthly: names that lead nowhere are told, the index is
    made anew, sessions that have ended are compressed. Without a period all of it is planned.

    The plan is made of the last commit, the ledger and the clock. Memory files with changes that
    are not committed are left out; what a confirmed memory claims is never edited; nothing is
    deleted. Done once, it leaves nothing to plan. An interrupted run is taken back by the next one.

    Example:
        memtool maintain
        memtool maintain --weekly --apply
        memtool maintain --weekly --apply --branch memtool/maintain

    Args:
        nightly: plan what is due every night
        weekly: plan what is due every week
        monthly: plan what is due every month
        apply: do what is planned, and commit it
        branch: work on this branch, which need not be checked out; it begins at HEAD
        dry_run: say what would be done, even with --apply
    """
    chosen = tuple(p for p, is_on in zip(PERIODS, (nightly, weekly, monthly), strict=True) if is_on)
    periods = chosen or PERIODS
    does = apply and not dry_run and ws.repository.is_made
    if not ws.repository.is_bare:
        checking.prepare(ws, begins=False) if does else ws.refuse_absent()
    target = branching.find(ws.repository, branch) if branch else None
    here = tending.is_here(ws.repository, target)
    if not does:
        return _planned(ws, periods, target, here=here)[0].replace(dry_run=dry_run)
    with tending.alone(ws.repository):
        if here:
            tending.refuse_unready(ws.repository)
            tending.recover(ws)
        found, tree, plan = _planned(ws, periods, target, here=here)
        ids = [step.id for step in plan.steps]
        with auditing.act(ws, "maintain", *ids, detail=" ".join(periods), dry_run=not ids):
            done = _committed(ws, tree, plan, found, target, here=here) if plan.steps else None
        _do_chores(ws, plan, periods)
    return found.replace(applied=True, commit=done)


def _planned(
    ws: Workspace, periods: tuple[str, ...], target: Branch | None, *, here: bool
) -> tuple[Maintained, Tree, Plan]:
    repository = ws.repository
    base, lacking = repository.git.head(), 0
    branch = ""
    if target is not None:
        branch = target.ref.removeprefix(branching.HEADS)
        base, lacking = branching.base(repository, target, base)
    if lacking:
        ws.notes.append(f"{branch} is planned as it is: not merged, and {lacking} commits behind")
    if not base:
        ws.notes.append("nothing is committed yet, so there is nothing to look after")
        nothing = Maintained(periods, "", branch, (), (), (), ())
        return nothing, ws.tree(), Plan()
    if here and applying.is_interrupted(repository):
        ws.notes.append("an earlier run was interrupted; --apply takes back what it wrote")
    tree = ws.tree(base)
    dirty = tending.dirty(ws) if here and not repository.is_bare else ()
    odd = {record.path for record in tree.records if "\n" in record.path}  # git takes one a line
    frozen = odd.union(dirty)
    grounds = Grounds(ws.now, ws.settings, tending.accesses(ws), ws.directory, frozenset(frozen))
    plan = planning.plan(
        tree, grounds, telling.opened(ws), repository.cache_dir, periods, ws.random
    )
    ws.notes.extend(plan.notes)
    if MONTHLY in periods and repository.is_shallow:
        ws.notes.append("this clone is shallow: which commits are missing, nobody can tell")
    found = Maintained(periods, base, branch, plan.steps, plan.chores, plan.flags, dirty)
    return found, tree, plan


def _committed(
    ws: Workspace, tree: Tree, plan: Plan, found: Maintained, target: Branch | None, *, here: bool
) -> str:
    repository, categories = ws.repository, ws.settings.categories
    subject, body = writing.subject(plan.steps), writing.body(plan.steps)
    trailers = {writing.TRAILER: ", ".join(found.periods)}
    if here:
        edits = writing.edits(plan.steps, lambda path: _read(ws, path), categories)
        return applying.apply(repository, edits, subject, body, trailers)
    oids = {entry.path: entry.oid for entry in tree.snapshot.entries}
    changed = sorted(oids.keys() & {step.path for step in plan.steps})
    blobs = repository.git.blobs([oids[path] for path in changed], MAX_BYTES)
    data = dict(zip(changed, blobs, strict=True))
    edits = writing.edits(plan.steps, data.__getitem__, categories)
    assert target is not None
    modes = {entry.path: entry.mode for entry in tree.snapshot.entries}
    said = message(subject, trailers, body)
    return branching.commit(repository, target, found.base, edits, modes, said)


def _read(ws: Workspace, path: str) -> bytes:
    data = checking.bytes_of(ws.repository.top, path)
    if data is None:
        raise MemtoolError(f"{path} is gone", hint="run the same command again", code="changed")
    return data


def _do_chores(ws: Workspace, plan: Plan, periods: tuple[str, ...]) -> None:
    directory = ws.repository.cache_dir
    chores.do(plan.chores, directory, telling.opened(ws), ws.now)
    if any(chore.do == "rebuild" for chore in plan.chores) and not ws.repository.is_bare:
        ws.catalog(exact=True)
    if MONTHLY in periods:
        chores.note_rebuilt(directory, ws.now)


def render(done: Maintained) -> str:
    """Return the plan by kind of step, then what people should look at, then the commit."""
    rows = []
    if done.steps:
        rows += [f"{writing.counted(done.steps)}:", *_some([_told(step) for step in done.steps])]
    if done.chores:
        rows += ["in this clone:", *_some([_chore(chore) for chore in done.chores])]
    if done.flags:
        rows += ["to be looked at:", *_some([_flag(flag) for flag in done.flags])]
    if done.left_out:
        rows += ["left out, since they are not committed:",
                 *_some([f"  {path}" for path in done.left_out])]  # fmt: skip
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


def _told(step: Step) -> str:
    return f"  {step.do} {step.id}: {step.why}"


def _chore(chore: Chore) -> str:
    size = f" ({chore.bytes:,} bytes)" if chore.bytes else ""
    return f"  {chore.do} {chore.what}{size}: {chore.why}"


def _flag(flag: Flag) -> str:
    where = " ".join(flag.ids) or flag.path
    return f"  {flag.kind} {where}: {flag.message}; {flag.hint}"
