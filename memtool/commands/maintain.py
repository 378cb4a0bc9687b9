"""`memtool maintain`: upkeep as one commit."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from memtool.authoring import write
from memtool.authoring.tree import read_bytes
from memtool.commands._layout import MAX_ROWS, Layout, shorten_commit
from memtool.commands._render import format_size
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory.document import MAX_BYTES
from memtool.memory.drift import Drift
from memtool.redaction.mask import Mask
from memtool.search import stages
from memtool.search.conflicts import KINDS as CONFLICT_KINDS
from memtool.search.scope import build_drift_witness
from memtool.sessions import store
from memtool.store import ledger, messages, provenance, sightings, usage_log
from memtool.store.commits import build_message
from memtool.store.context import Context
from memtool.store.edits import (
    BRANCH_PREFIX,
    Branch,
    commit_edits,
    commit_to_branch,
    find_branch,
    find_parent,
    is_interrupted,
)
from memtool.store.history import UpholdingCommit
from memtool.store.repository import Repository
from memtool.store.tree import Tree
from memtool.upkeep import cleanup, steps
from memtool.upkeep import plan as upkeep_plan
from memtool.upkeep.cleanup import Chore
from memtool.upkeep.inputs import PlanInputs, Uses, read_uses
from memtool.upkeep.plan import MONTHLY, PERIODS, Flag, MaintenancePlan
from memtool.upkeep.steps import UpkeepStep
from memtool.value import Value, first_few, format_count


def _is_here(repository: Repository, target: Branch | None) -> bool:
    """Return whether the target branch is that of this worktree.

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


def _read_accesses(context: Context) -> Uses:
    """Return the counts of the ledger; empty if it cannot be read."""
    directory = context.repository.cache_dir
    try:
        ledger.fold(directory)
        return read_uses(directory)
    except MemtoolError as error:
        context.notes.append(f"accesses are not counted: {error}")
        return Uses()


def _read_seen(repository: Repository, tree: Tree, renamed: Mapping[str, Drift]) -> dict[str, str]:
    """Return the `checked.saw` of memories with renamed files, by path; recomputed if missing."""
    records = [record for record in tree.records if record.path in renamed]
    seen_lines = {record.path: record.memory.table("checked").get("saw", "") for record in records}
    lacking = [
        record for record in records if not seen_lines[record.path] and renamed[record.path].since
    ]
    wanted = [(renamed[record.path].since, record.memory) for record in lacking]
    lines = sightings.render_commit_sightings(repository, wanted)
    return seen_lines | {record.path: line for record, line in zip(lacking, lines, strict=True)}


def _read_upheld(
    context: Context, tree: Tree, inputs: PlanInputs, base: str
) -> dict[str, UpholdingCommit]:
    """Return what commits of the trusted branch uphold; those of `base` without such a branch."""
    since = upkeep_plan.find_upheld_from(tree, inputs)
    ref = context.project.trust_settings.text("trust.ref")
    history = provenance.resolve_trusted(context.repository, ref) or base
    return upkeep_plan.read_upheld(tree, history, since)


def _find_dirty_memories(context: Context) -> tuple[str, ...]:
    """Return the memory files that differ from HEAD or are not checked out, sorted."""
    git = context.repository.git
    paths = {path for _letters, path in git.status(context.directory)}
    if os.path.exists(os.path.join(context.repository.git_dir, "info", "sparse-checkout")):
        paths |= {entry.path for entry in git.ls_files(context.directory) if entry.is_skipped}
    return tuple(sorted(path for path in paths if path.endswith(".md")))


ENCODE = "make"
"""The chore of making vectors."""


class MaintenanceReport(Value):
    """A plan, and with `applied` its result.

    `base` is the commit that it was made from, empty before the first. `left_out` are memory files
    with uncommitted changes, which are not touched.
    """

    json_fields = "periods base branch steps chores flags left_out applied commit dry_run only"

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
    has_all_rows: bool = False

    @property
    def what(self) -> str:
        """The scope of the run, for the commit and the audit."""
        return self.only or ", ".join(self.periods)


def find_upkeep_times(context: Context) -> tuple[dict[str, int], dict[str, int]]:
    """Return when upkeep was last done here, and when it is due next, in Unix seconds by period.

    Without a schedule none is due.
    """
    cache, now = context.repository.cache_dir, context.clock.now
    is_scheduled = context.settings.texts(upkeep_plan.SCHEDULE)
    due = upkeep_plan.find_due_moments(context.settings, cache, now) if is_scheduled else {}
    return cleanup.read_last_runs(cache), due


def find_next_due(context: Context) -> int | None:
    """Return when upkeep is due next, in Unix seconds; None without a schedule."""
    return min(find_upkeep_times(context)[1].values(), default=None)


def maintain(
    context: Context,
    *,
    nightly: bool = False,
    weekly: bool = False,
    monthly: bool = False,
    due: bool = False,
    only: Literal["", "decay", "sessions", "index", "digests", "renames"] = "",
    apply: bool = False,
    branch: str = "",
    all: bool = False,
    dry_run: bool = False,
) -> MaintenanceReport:
    """Plan the upkeep of the memories; with --apply do it, as one commit.

        nightly   merge duplicates; confirm candidates that are used, fade unused ones; report
                  contradictions; make vectors for the search by meaning
        weekly    archive what expired; report what is due; follow renamed files; renew digests
        monthly   report names that lead nowhere; rebuild the index; prune ended sessions

    Without a period all of it is planned. Nothing is deleted. Memories with uncommitted changes are
    left out, and the claim of a confirmed memory is never edited.

    Example:
        memtool maintain
        memtool maintain --weekly --apply --branch memtool/maintain

    Args:
        nightly: only the nightly part
        weekly: only the weekly part
        monthly: only the monthly part
        due: the parts whose time has come (setting maintain.schedule)
        only: only decay, sessions, index, digests or renames
        apply: do it, and commit
        branch: commit to this branch, for a pull request
        all: show every row of the plan
        dry_run: show the plan, even with --apply
    """
    chosen = tuple(p for p, is_on in zip(PERIODS, (nightly, weekly, monthly), strict=True) if is_on)
    if only and (chosen or due):
        raise MemtoolError(
            "--only excludes --nightly, --weekly, --monthly and --due",
            hint=f"memtool maintain --only {only}",
            code="usage",
        )
    directory = context.repository.cache_dir
    if due:
        due_periods = upkeep_plan.find_due_periods(context.settings, directory, context.clock.now)
        chosen = tuple(period for period in PERIODS if period in {*chosen, *due_periods})
        if not chosen:
            context.notes.append("no upkeep is due yet")
    periods = chosen if due or chosen else () if only else PERIODS
    is_applying = apply and not dry_run and context.repository.is_created
    if not context.repository.is_bare:
        if is_applying:
            write.prepare(context, begins=False, dry_run=False)
        else:
            context.project.refuse_absent()
    elif is_applying:
        context.project.refuse_newer()
    target = find_branch(context.repository, branch) if branch else None
    here = _is_here(context.repository, target)
    if not is_applying:
        return _plan_upkeep(context, periods, only, target, here=here)[0].replace(
            dry_run=dry_run, has_all_rows=all
        )
    with steps.hold_lock(context.repository):
        if here:
            steps.refuse_unready(context.repository)
            steps.recover_before(context)
        report, tree, plan = _plan_upkeep(context, periods, only, target, here=here)
        ids = [step.id for step in plan.steps]
        with usage_log.audit(context, "maintain", *ids, detail=report.what, dry_run=not ids):
            done = (
                _commit_plan(context, tree, plan, report, target, here=here) if plan.steps else None
            )
        _do_chores(context, plan, report)
    return report.replace(applied=True, commit=done, has_all_rows=all)


def _plan_upkeep(
    context: Context, periods: tuple[str, ...], only: str, target: Branch | None, *, here: bool
) -> tuple[MaintenanceReport, Tree, MaintenancePlan]:
    repository = context.repository
    base, lacking = repository.git.head(), 0
    branch = ""
    if target is not None:
        branch = target.ref.removeprefix(BRANCH_PREFIX)
        base, lacking = find_parent(repository, target, base)
    if lacking:
        context.notes.append(
            f"{branch} is planned as it is, not merged: {format_count(lacking, 'commit')} behind"
        )
    if not base:
        context.notes.append("nothing is committed yet, so no upkeep is needed")
        nothing = MaintenanceReport(periods, "", branch, (), (), (), (), only=only)
        return nothing, context.tree(), MaintenancePlan()
    if here and is_interrupted(repository):
        context.notes.append("an earlier run was interrupted; --apply removes what it wrote")
    tree = context.tree(base)
    dirty = _find_dirty_memories(context) if here and not repository.is_bare else ()
    multiline_paths = {
        record.path for record in tree.records if "\n" in record.path
    }  # git reads one path per line
    frozen = multiline_paths.union(dirty)
    candidates = [record.path for record in tree.records if record.memory.status == "candidate"]
    added = upkeep_plan.read_added(repository, base, candidates, context.directory)
    drift = build_drift_witness(tree, lambda: context.provenance_reader(tree))
    renamed = {
        path: memory_drift
        for path, memory_drift in drift.find(tree.records).items()
        if memory_drift.renames
    }
    inputs = PlanInputs(
        context.clock.now,
        context.settings,
        _read_accesses(context),
        context.directory,
        frozenset(frozen),
        drift.find_broken(tree.records),
        added,
        renamed=renamed,
        seen=_read_seen(repository, tree, renamed),
    )
    inputs = inputs.replace(upheld=_read_upheld(context, tree, inputs, base))
    plan = upkeep_plan.plan(
        tree,
        inputs,
        store.open_sessions(context),
        repository.cache_dir,
        periods,
        context.random_id_bytes,
        only,
    )
    if upkeep_plan.VECTORS in upkeep_plan.choose_parts(periods, only):
        plan = plan.replace(chores=(*plan.chores, *_find_missing_vectors(context)))
    context.notes.extend(plan.notes)
    if MONTHLY in periods and repository.is_shallow:
        context.notes.append("this clone is shallow, so missing commits are unknown")
    report = MaintenanceReport(
        periods,
        base,
        branch,
        _mask_steps(context, plan.steps),
        plan.chores,
        plan.flags,
        dirty,
        only=only,
    )
    return report, tree, plan


def _find_missing_vectors(context: Context) -> list[Chore]:
    """Return the chores of making what searches other than by words have to prepare."""
    missing = [row.describe_missing(context) for row in stages.MATCHERS]
    return [Chore(ENCODE, *texts) for texts in missing if texts is not None]


def _mask_steps(context: Context, steps: Iterable[UpkeepStep]) -> tuple[UpkeepStep, ...]:
    """Mask secrets in steps for display; what is written uses the original bytes."""
    mask = Mask(context.settings)
    return tuple(
        step.replace(
            title=mask.line(step.title),
            memory=None if step.memory is None else mask.memory(step.memory),
        )
        for step in steps
    )


def _commit_plan(
    context: Context,
    tree: Tree,
    plan: MaintenancePlan,
    report: MaintenanceReport,
    target: Branch | None,
    *,
    here: bool,
) -> str | None:
    repository, categories = context.repository, context.settings.categories
    summary, body = steps.format_summary(plan.steps), steps.format_body(plan.steps)
    trailers = {messages.MAINTAIN: report.what}
    if here:
        edits = steps.build_edits(plan.steps, lambda path: _read_file(context, path), categories)
        return commit_edits(context, edits, summary, body, trailers)
    entries = tree.location.list_files().entries
    oids = {entry.path: entry.oid for entry in entries}
    changed = sorted(oids.keys() & {step.path for step in plan.steps})
    blobs = repository.git.blobs([oids[path] for path in changed], MAX_BYTES)
    data = dict(zip(changed, blobs, strict=True))
    edits = steps.build_edits(plan.steps, data.__getitem__, categories)
    assert target is not None
    modes = {entry.path: entry.mode for entry in entries}
    text = build_message(context, summary, trailers, body)
    return commit_to_branch(repository, target, report.base, edits, modes, text)


def _read_file(context: Context, path: str) -> bytes:
    data = read_bytes(context.repository.top, path)
    if data is None:
        raise MemtoolError(f"{path} is gone", hint="run the command again", code="changed")
    return data


def _do_chores(context: Context, plan: MaintenancePlan, report: MaintenanceReport) -> None:
    directory = context.repository.cache_dir
    kinds = {chore.do for chore in plan.chores}
    removals = [chore for chore in plan.chores if chore.do != ENCODE]
    cleanup.do(removals, directory, store.open_sessions(context))
    is_rebuilt = "rebuild" in kinds
    if is_rebuilt and not context.repository.is_bare:
        index.open(context, exact=True)
    if ENCODE in kinds:
        for row in stages.MATCHERS:
            row.make_missing(context)
    if is_rebuilt or MONTHLY in report.periods:
        cleanup.note_rebuilt(directory, context.clock.now)
    if report.periods:
        cleanup.note_runs(directory, report.periods, context.clock.now)


def render(done: MaintenanceReport, layout: Layout) -> str:
    """Return a section for each kind of step, then what is left to the user."""
    rows = [_format_heading(done)]
    for kind, title in STEP_TITLES.items():
        steps_of_kind = [step for step in done.steps if step.do == kind]
        if steps_of_kind:
            rows += _format_steps(title, steps_of_kind, done, layout)
    if done.chores:
        chores = [_format_chore(chore, layout) for chore in done.chores]
        limit = len(chores) if done.has_all_rows else MAX_ROWS
        rows += layout.wrap(f"In this clone: {first_few(chores, limit)}")
    if done.left_out:
        shown = first_few(done.left_out, len(done.left_out) if done.has_all_rows else MAX_ROWS)
        rows += layout.wrap(f"Left out, since they have uncommitted changes: {shown}")
    rows += _format_flags(done, layout)
    return "\n".join(rows)


STEP_TITLES = {
    "renew": "Renew ({}), upheld in a commit since last checked",
    "archive": "Archive ({}), their time is over",
    "merge": "Merge ({}), they say the same",
    "rename": "Rename ({}), their files have new paths",
    "deprecate": "Deprecate ({})",
    "strengthen": "Strengthen ({}), they were stated again",
    "confirm": "Confirm ({}), candidates that proved useful",
    "fade": "Fade ({}), candidates that nobody used",
    "weigh": "Weigh ({}), by how often they were used",
    "digest": "Sum up ({})",
}
"""Headings of the steps, by kind in the order of `steps.KINDS`."""


def _format_heading(done: MaintenanceReport) -> str:
    plan = format_count(len(done.steps) + len(done.chores), "step")
    branch = f" on {done.branch}" if done.branch else ""
    if not done.steps and not done.chores:
        return "Nothing to do."
    if done.commit:
        return f"Committed {plan} as {shorten_commit(done.commit)}{branch}."
    if done.applied:
        return f"Done: {plan}."
    return f"Plan of {plan}; nothing was changed. To do it: memtool maintain --apply"


def _format_steps(
    title: str, chosen: list[UpkeepStep], done: MaintenanceReport, layout: Layout
) -> list[str]:
    """Return a heading, and a row for each step; a reason that all share is left to the heading."""
    has_one_reason = len({step.why for step in chosen}) == 1 and len(chosen) > 1

    def describe(step: UpkeepStep) -> tuple[str, ...]:
        reason = "" if has_one_reason else f"since {step.since}" if step.since else step.why
        return layout.short(step.id), step.title, reason

    heading = f"{title.format(f'{len(chosen):,}')}:"
    command, is_whole = "memtool maintain --all", done.has_all_rows
    return [heading, *layout.section(chosen, describe, command, is_whole=is_whole, drop=(2,))]


def _format_chore(chore: Chore, layout: Layout) -> str:
    size = f" ({format_size(chore.bytes)})" if chore.bytes else ""
    what = f"the {chore.what}" if chore.do == "rebuild" else layout.short(chore.what)
    return f"{chore.do} {what}{size}"


def _format_flags(done: MaintenanceReport, layout: Layout) -> Iterator[str]:
    """Yield what only the user can decide: counted, with --all one line each."""
    if not done.flags:
        return
    if done.has_all_rows:
        yield "Left to you:"
        for flag in done.flags:
            names = ", ".join(layout.quote(id_) for id_ in flag.ids) or flag.path
            yield from layout.wrap(f"{flag.kind}: {names}: {layout.shorten(flag.message)}", "  ")
            yield from layout.wrap(layout.shorten(flag.hint), "    ")
        return
    counts = Counter(
        "conflict" if flag.kind in CONFLICT_KINDS else flag.kind for flag in done.flags
    )
    shown = [
        format_count(count, kind) if kind == "conflict" else f"{count:,} {kind}"
        for kind, count in counts.items()
    ]
    yield from layout.wrap(f"Left to you: {', '.join(shown)} (memtool status, or --all)")
