"""The maintenance plan: what expires, is renewed, merged, confirmed, archived or cleaned up.

Nothing is destroyed: an archived memory keeps its file and its content. A memory that a person
confirmed and that is due for review is not archived; people are asked to confirm or archive it. Its
time restarts if a commit of the trusted branch upholds it. Being shown never renews a memory,
however often, because no text may vouch for itself. For the same reason a candidate is not
confirmed by being injected, only by being opened or by such a commit. If this clone has counted no
accesses at all, as in CI, other candidates wait. Contradictions are left to people.

The same commit, ledger, settings and second give the same plan. Steps are planned on the tree as
the steps before them leave it, so that a plan that was carried out leaves nothing to plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress

from memtool.errors import MemtoolError
from memtool.gate import sources
from memtool.gate.checks import links
from memtool.gate.content import Content, index_files
from memtool.memory import ids, lifecycle, timestamps
from memtool.memory.fields import Category
from memtool.memory.memory import Memory
from memtool.memory.schema import Problem
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.memory.visibility import GONE, is_alive
from memtool.search import conflicts
from memtool.search.conflicts import Conflict
from memtool.sessions.promote import FADE, judge_quarantine
from memtool.sessions.store import Sessions
from memtool.store.config import Config
from memtool.store.history import UpholdingCommit, list_upholding_commits
from memtool.store.provenance import walk_changes
from memtool.store.repository import Repository
from memtool.store.tree import ReadTree, Record, Tree
from memtool.upkeep import cleanup, digest, importance, merge, renames
from memtool.upkeep.cleanup import Chore
from memtool.upkeep.inputs import PlanInputs
from memtool.upkeep.steps import KINDS, UpkeepStep, build_change
from memtool.value import Value

NIGHTLY, WEEKLY, MONTHLY = PERIODS = ("nightly", "weekly", "monthly")
AHEAD_S = 7 * timestamps.DAY_S
"""How long before its end an upheld memory is renewed: until the next weekly run."""
LATELY_S = timestamps.DAY_S
"""Memories used within this time are not archived, however many there are."""
_ORDER = {do: number for number, do in enumerate(KINDS)}
UNCOUNTED = "no access was counted in this clone: candidates wait unless a commit upholds them"


def read_added(
    repository: Repository, revision: str, paths: Iterable[str], directory: str
) -> dict[str, int]:
    """Return the committer's time of the last commit that added each path, in Unix seconds.

    If two branches added a path, the later commit counts. Paths unknown to git are left out, as in
    a partial clone without its trees. In a shallow clone, files count as added by its first commit.
    """
    wanted = set(paths)
    if not wanted:
        return {}
    seconds: dict[str, int] = {}
    for second, row in walk_changes(repository, [revision], wanted, [directory], "%ct"):
        if not any(mode.strip("0") for mode, _oid in row.olds):
            seconds[row.path] = max(seconds.get(row.path, 0), int(second))
    return seconds


def find_upheld_from(tree: Tree, inputs: PlanInputs) -> dict[str, int]:
    """Return the second after which a commit may uphold a memory, by id, for those it matters to.

    For a candidate it is when its file was added. For a confirmed memory whose time ends within a
    week or is over, it is the last confirmation.
    """
    upheld = {}
    for record in tree.records:
        memory, added = record.memory, inputs.added.get(record.path)
        if memory.status == "candidate" and added is not None:
            upheld[record.id] = added
        elif memory.status == "confirmed" and _is_ending(memory, inputs):
            upheld[record.id] = lifecycle.find_confirmed_at(memory)
    return upheld


def read_upheld(tree: Tree, revision: str, since: Mapping[str, int]) -> dict[str, UpholdingCommit]:
    """Return the newest commit that upholds each memory after its second, by id.

    Raises:
        MemtoolError: git cannot read the history.
    """
    if not since:
        return {}
    upholdings: dict[str, UpholdingCommit] = {}
    for entry in list_upholding_commits(
        tree.location.repository, f"--since=@{min(since.values())}", revision
    ):
        for name in entry.names:
            with suppress(MemtoolError):  # an unknown name upholds nothing
                id_ = tree.find(name, by_words=False).id
                if entry.second > since.get(id_, entry.second):
                    upholdings.setdefault(id_, entry)
    return upholdings


def project_tree(tree: Tree, steps: Iterable[UpkeepStep]) -> Tree:
    """Return the tree as it would be after some steps; changed memories have no blob yet."""
    by_path = {record.path: record for record in tree.records}
    for step in steps:
        memory = step.memory or by_path[step.path].memory.with_fields(**step.changes)
        by_path[step.path] = Record(memory, step.path, "")
    return ReadTree(tree.location, by_path.values(), tree.problems, tree.categories)


class Flag(Value):
    """Something that needs a person's attention: its kind, the memories or file, and what to do."""

    kind: str
    ids: tuple[str, ...]
    path: str
    message: str
    hint: str


class MaintenancePlan(Value):
    """The plan: steps for memories, chores for this clone, and flags for people."""

    steps: tuple[UpkeepStep, ...] = ()
    chores: tuple[Chore, ...] = ()
    flags: tuple[Flag, ...] = ()
    notes: tuple[str, ...] = ()


PERIOD_DAYS = {NIGHTLY: 1, WEEKLY: 7, MONTHLY: 28}
SLACK_S = 3_600
"""How much earlier a period may be due: cron is not punctual."""
SCHEDULE = "maintain.schedule"
VECTORS = "vectors"
"""The part that makes the vectors of memories, for the search by meaning."""
PARTS: dict[str, tuple[str, ...]] = {
    NIGHTLY: ("merge", VECTORS),
    WEEKLY: ("expire", "review", "leftovers", "learn", "renames", "digest"),
    MONTHLY: ("links", "index", "sessions"),
}
"""The parts of the plan in each period."""
ONLY: dict[str, tuple[str, ...]] = {
    "decay": ("expire", "review", "fade"),
    "sessions": ("sessions",),
    "index": ("index", VECTORS),
    "digests": ("digest",),
    "renames": ("renames",),
}
"""The parts of the plan for each value of `--only`."""


def find_due_periods(config: Config, cache_dir: str, now: int) -> tuple[str, ...]:
    """Return the periods whose upkeep is due: those of the schedule, or all without one."""
    return tuple(
        name for name, due in find_due_moments(config, cache_dir, now).items() if due <= now
    )


def find_due_moments(config: Config, cache_dir: str, now: int) -> dict[str, int]:
    """Return when the upkeep of each scheduled period is due next, by period.

    It is now if it was never done, or done in the future by this clock. Without a schedule, all
    periods are included.
    """
    last = cleanup.read_last_runs(cache_dir)
    wanted = config.texts(SCHEDULE) or PERIODS
    moments = {}
    for period in filter(wanted.__contains__, PERIODS):
        done = last.get(period, now + 1)
        lasts_s = PERIOD_DAYS[period] * timestamps.DAY_S - SLACK_S
        moments[period] = done + lasts_s if done <= now else now
    return moments


def plan(
    tree: Tree,
    inputs: PlanInputs,
    sessions: Sessions,
    cache_dir: str,
    periods: Collection[str],
    random: Callable[[str], bytes],
    only: str = "",
) -> MaintenancePlan:
    """Plan the upkeep of periods, or only the part that `only` names.

    `random` draws the end of a digest's id.

    Raises:
        MemtoolError: git or a session cannot be read.
    """
    parts = choose_parts(periods, only)
    steps, flags = _build_memory_steps(tree, inputs, parts, random)
    notes: list[str] = []
    if "links" in parts:
        flags += [
            Flag(
                problem.code,
                (problem.id,) if problem.id else (),
                problem.path,
                problem.message,
                problem.hint,
            )
            for problem in find_dangling(tree, inputs)
            if problem.code != links.RENAMED or "renames" not in parts
        ]
    due: list[Chore] = []
    if "leftovers" in parts:
        due += cleanup.find_leftovers(cache_dir, inputs.now)
        due += cleanup.find_strays(tree.location.repository, inputs.now)
    if "index" in parts:
        days = 0 if only else cleanup.INDEX_DAYS
        due += cleanup.find_rebuild_due(cache_dir, inputs.now, days)
    if "sessions" in parts:
        prune_days = inputs.config.count("maintain.prune_days")
        due += cleanup.find_sessions_due(sessions, inputs.now, prune_days)
        notes += [f"passed over: {wrong}" for wrong in sessions.heads()[1]]
    if tree.count and {"merge", "expire"} & parts and not inputs.uses.is_known:
        notes.append(UNCOUNTED)
    return MaintenancePlan(tuple(steps), tuple(due), tuple(flags), tuple(notes))


def choose_parts(periods: Collection[str], only: str = "") -> set[str]:
    """Return the parts of some periods, or those that `only` names."""
    return {*ONLY[only]} if only else {part for period in periods for part in PARTS[period]}


def _build_memory_steps(
    tree: Tree, inputs: PlanInputs, parts: Collection[str], random: Callable[[str], bytes]
) -> tuple[list[UpkeepStep], list[Flag]]:
    """Return the steps for memories in display order, and the flags."""
    steps = build_expiry_steps(tree, inputs) if "expire" in parts else []
    reviews = find_due(project_tree(tree, steps), inputs) if "review" in parts else []
    reviews += find_faded(project_tree(tree, steps), inputs) if "review" in parts else []
    flags: list[Flag] = []
    if "merge" in parts:
        rows, flags = _plan_nightly(project_tree(tree, steps), inputs)
        steps += rows
    elif "fade" in parts:
        after = project_tree(tree, steps)
        rows = build_candidate_steps(after, inputs, _find_contradicted(after, inputs))
        steps += [step for step in rows if step.do == "fade"]
    if "renames" in parts:
        steps += renames.build_steps(project_tree(tree, steps), inputs)
    if "learn" in parts:
        steps += importance.build_steps(project_tree(tree, steps), inputs)
    if "digest" in parts:
        steps += _plan_digests(project_tree(tree, steps), inputs, random)
    steps.sort(key=lambda step: (_ORDER[step.do], step.id))
    return steps, flags + reviews


def build_expiry_steps(tree: Tree, inputs: PlanInputs) -> list[UpkeepStep]:
    """Return the steps for memories that have expired or soon will, then for the surplus."""
    steps = [step for record in tree.records if (step := _expire(record, tree, inputs)) is not None]
    if any(step.do == "renew" for step in steps):
        contradicted = _find_contradicted(tree, inputs)
        steps = [step for step in steps if step.do != "renew" or step.id not in contradicted]
    return steps + _archive_surplus(project_tree(tree, steps), inputs)


def _expire(record: Record, tree: Tree, inputs: PlanInputs) -> UpkeepStep | None:
    memory, categories = record.memory, inputs.config.categories
    if memory.status in GONE or record.path in inputs.frozen:
        return None
    end = _find_end(memory, categories)
    if end is None or not _is_ending(memory, inputs) or not tree.lineage.is_head(record.id):
        return None
    renewal = _build_renewal(record, inputs)
    if renewal is not None:
        return renewal
    if lifecycle.find_due(memory, categories) is not None and memory.status != "deprecated":
        return None  # a person confirmed it, so a person decides
    through = memory.text("valid_through")
    why = f"it was valid through {through}" if through else _describe_end(memory, categories, end)
    if end >= inputs.now:
        return None
    return _build_archiving(record, why, inputs).replace(since=timestamps.format_date(end))


def _find_end(memory: Memory, categories: Mapping[str, Category]) -> int | None:
    """Return the second at which a memory is due for review or expires, None if never."""
    due = lifecycle.find_due(memory, categories)
    return lifecycle.find_expiry(memory, categories) if due is None else due


def _is_ending(memory: Memory, inputs: PlanInputs) -> bool:
    """Return whether a memory's time is over, or will be within a week."""
    end = _find_end(memory, inputs.config.categories)
    return end is not None and end <= inputs.now + AHEAD_S


def _build_renewal(record: Record, inputs: PlanInputs) -> UpkeepStep | None:
    """Build the step that restarts a memory's time; None if it does not restart.

    Only a confirmed memory qualifies that has neither expired nor drifted and was upheld since. A
    memory with an explicit `valid_through` is not renewed, and neither is one whose time would be
    over anyway.
    """
    memory, categories = record.memory, inputs.config.categories
    upheld, confirmed_at = inputs.upheld.get(record.id), lifecycle.find_confirmed_at(memory)
    is_sound = is_alive(memory, inputs.now, categories)
    if (
        upheld is None
        or memory.status != "confirmed"
        or memory.text("valid_through")
        or record.id in inputs.drifted
        or not is_sound
    ):
        return None
    at = min(upheld.second, inputs.now)
    term_s = lifecycle.find_term_days(memory, categories) * timestamps.DAY_S
    if at <= confirmed_at or at + term_s <= inputs.now:
        return None
    # Keep the commit at which the code was checked: the trailer does not confirm that.
    checked = memory.table("checked") | {
        "at": timestamps.render(at),
        "by": upheld.by or importance.BY,
    }
    return build_change("renew", record, _describe_upholding(upheld), checked=checked)


def _describe_upholding(upheld: UpholdingCommit) -> str:
    return f"commit {upheld.commit[:SHORT_ID_DIGITS]} upholds it"


def _build_archiving(record: Record, why: str, inputs: PlanInputs) -> UpkeepStep:
    fields = lifecycle.retire_fields(record.memory, inputs.now, importance.BY)
    return build_change("archive", record, why, status="archived", **fields)


def find_due(tree: Tree, inputs: PlanInputs) -> list[Flag]:
    """Return a flag for each active memory that is due for review or has drifted, by id."""
    categories = inputs.config.categories
    flags = []
    for record in inputs.find_living(tree):
        due = lifecycle.find_due(record.memory, categories)
        if due is not None and due < inputs.now:
            over = _describe_end(record.memory, categories, due)
            hint = f"memtool confirm {record.id}, or memtool archive {record.id} --reason REASON"
            flags.append(Flag("due", (record.id,), "", over, hint))
        if record.id in inputs.drifted:
            hint = (
                f"memtool supersede {record.id} TITLE, or memtool confirm {record.id} --still-holds"
            )
            flags.append(Flag("drifted", (record.id,), "", inputs.drifted[record.id], hint))
    return flags


def find_faded(tree: Tree, inputs: PlanInputs) -> list[Flag]:
    """Return a flag for each active memory whose importance has decayed below the minimum, by id.

    Memories that are pinned or eternal are never flagged, nor those of high confidence. Memories
    that are due have a flag already.
    """
    min_importance = inputs.config.number("decay.minimum_importance")
    categories = inputs.config.categories
    flags = []
    for record in inputs.find_living(tree):
        memory = record.memory
        remaining = memory.importance * _retention(memory, inputs)
        is_due = lifecycle.is_due(memory, inputs.now, categories)
        is_eternal = lifecycle.find_temporal_class(memory, categories) == "eternal"
        is_kept = memory.status == "pinned" or is_eternal
        if remaining < min_importance and not (is_kept or is_due or memory.confidence == "high"):
            what = f"its importance {memory.importance:g} has decayed to {remaining:.2f}"
            hint = f"memtool archive {record.id} --reason REASON, or memtool confirm {record.id}"
            flags.append(Flag("faded", (record.id,), "", what, hint))
    return flags


def _retention(memory: Memory, inputs: PlanInputs) -> float:
    """Return the share of importance that decay leaves, 0 to 1, by the settings of `decay`."""
    preset, categories = inputs.config.text("decay.preset"), inputs.config.categories
    count = inputs.uses.count(memory) if inputs.uses.is_known else None
    return lifecycle.compute_retention(memory, inputs.now, categories, preset, count)


def _describe_end(memory: Memory, categories: Mapping[str, Category], end: int) -> str:
    return (
        f"{lifecycle.describe_term(memory, categories)} were over on {timestamps.format_date(end)}"
    )


def _archive_surplus(tree: Tree, inputs: PlanInputs) -> list[UpkeepStep]:
    """Return the steps that archive the least important memories if there are too many.

    Eternal ones go last; pinned ones and recently used ones are never archived.
    """
    living = inputs.find_living(tree)
    max_active = inputs.config.count("maintain.max_active")
    if len(living) <= max_active:
        return []
    floor = -(-max_active * 9 // 10)
    why = f"{len(living):,} memories are alive, and it is among the least important"
    free = [
        record
        for record in living
        if record.memory.status != "pinned"
        and record.path not in inputs.frozen
        and (inputs.uses.find_last(record.memory) or 0) <= inputs.now - LATELY_S
    ]
    ordered = _sort_by_worth(free, inputs)
    return [_build_archiving(record, why, inputs) for record in ordered[: len(living) - floor]]


def _sort_by_worth(records: Iterable[Record], inputs: PlanInputs) -> list[Record]:
    """Sort records by their decayed importance, lowest first."""

    def worth(record: Record) -> tuple[bool, float, int, str]:
        memory = record.memory
        remaining = memory.importance * _retention(memory, inputs)
        is_eternal = memory.text("temporal_class") == "eternal"
        return is_eternal, remaining, memory.timestamp, record.id

    return sorted(records, key=worth)


def _plan_nightly(tree: Tree, inputs: PlanInputs) -> tuple[list[UpkeepStep], list[Flag]]:
    contradictions = _find_contradictions(tree, inputs)
    contradicted = {id_ for clash in contradictions for id_ in clash.ids}
    steps, unmerged_groups = merge.plan(tree, inputs, contradicted)
    after = project_tree(tree, steps)
    steps += build_candidate_steps(after, inputs, contradicted)
    waiting = find_waiting(after, inputs, contradicted)
    rows = [
        (cluster.kind, cluster.ids, cluster.reason)
        for cluster in conflicts.find_clusters(contradictions)
    ]
    rows += [
        ("duplicate", group.ids, f"they say the same, but {group.why}") for group in unmerged_groups
    ]
    flags = [
        Flag(
            kind, ids, "", message, f"memtool resolve {' '.join(ids)} --keep newer --reason REASON"
        )
        for kind, ids, message in rows
    ]
    return steps, [*flags, *waiting]


def _find_contradictions(tree: Tree, inputs: PlanInputs) -> list[Conflict]:
    """Return the contradictions that no user has accepted."""
    clashes = conflicts.find_contradictions(tree, inputs.now)
    return [clash for clash in clashes if not clash.accepted]


def _find_contradicted(tree: Tree, inputs: PlanInputs) -> set[str]:
    """Return the ids of the memories in such contradictions."""
    return {id_ for clash in _find_contradictions(tree, inputs) for id_ in clash.ids}


def build_candidate_steps(
    tree: Tree, inputs: PlanInputs, contradicted: Collection[str]
) -> list[UpkeepStep]:
    """Return the steps for candidates, if they have one.

    Being listed or injected does not confirm a candidate, however often: repetition does not make
    it true.
    """
    steps = [
        _candidate_step(record, inputs)
        for record in _find_free_candidates(tree, inputs, contradicted)
    ]
    return [step for step in steps if step is not None]


def find_waiting(tree: Tree, inputs: PlanInputs, contradicted: Collection[str]) -> Iterator[Flag]:
    """Yield a flag for each used candidate that a person has to decide about."""
    for record in _find_free_candidates(tree, inputs, contradicted):
        why = _describe_use(record, inputs)
        added = inputs.added.get(record.path)
        state = judge_quarantine(record.memory.status, added, inputs.now, is_used=bool(why))
        doubt = _find_doubt(record.memory, inputs)
        if state == "confirm" and doubt:
            hint = f"memtool confirm {record.id}, or memtool archive {record.id} --reason REASON"
            yield Flag("waiting", (record.id,), "", f"{why}, but {doubt}", hint)


def _find_doubt(memory: Memory, inputs: PlanInputs) -> str:
    """Return why use cannot confirm a candidate; empty if it can.

    Opening it does not show that it should replace another memory; a commit that upholds it does.
    """
    if memory.confidence == "low":
        return "its confidence is low"
    if memory.proposes and memory.id not in inputs.upheld:
        return f"it would replace {', '.join(memory.proposes)}"
    return ""


def _find_free_candidates(
    tree: Tree, inputs: PlanInputs, contradicted: Collection[str]
) -> Iterator[Record]:
    for record in inputs.find_living(tree):
        is_free = record.path not in inputs.frozen and record.id not in contradicted
        if is_free and record.memory.status == "candidate":
            yield record


def _describe_use(record: Record, inputs: PlanInputs) -> str:
    """Describe how a candidate was used; empty if it was not."""
    upheld = inputs.upheld.get(record.id)
    if upheld is not None:
        return _describe_upholding(upheld)
    count = inputs.uses.count_opened(record.memory)
    times = "once" if count == 1 else f"{count} times"
    return f"it was opened {times}" if count else ""


def _candidate_step(record: Record, inputs: PlanInputs) -> UpkeepStep | None:
    memory, use = record.memory, _describe_use(record, inputs)
    state = judge_quarantine(
        memory.status, inputs.added.get(record.path), inputs.now, is_used=bool(use)
    )
    if state == "confirm":
        if _find_doubt(memory, inputs):
            return None  # a person has to decide
        return build_change("confirm", record, use, status="confirmed")
    if state == "fade" and inputs.uses.is_known and not memory.table("faded"):
        now = timestamps.render(inputs.now)
        faded = {"at": now, "by": importance.BY, "was": f"{memory.importance:g}"}
        why = "nobody used it on its first day"
        remaining = round(memory.importance * FADE, 4)
        return build_change("fade", record, why, importance=f"{remaining:g}", faded=faded)
    return None


def _plan_digests(
    tree: Tree, inputs: PlanInputs, random: Callable[[str], bytes]
) -> Iterator[UpkeepStep]:
    """Yield the steps that update the existing digests."""
    changes = digest.plan_digests(
        tree,
        inputs.now,
        random,
        withholds=digest.unquoted_labels(inputs.config),
    )
    for change in changes:
        if any(record.path in inputs.frozen for record in change.replaces):
            continue
        if change.memory is not None:
            path = f"{inputs.directory}/{ids.make_path(change.memory)}"
            why = f"what it sums up of {change.category} has changed"
            yield UpkeepStep(
                "digest", change.memory.id, change.memory.title, path, why, {}, change.memory
            )
            continue
        why = f"there is nothing left to sum up of {change.category}"
        yield from (
            build_change("archive", record, why, status="archived") for record in change.replaces
        )


def find_dangling(tree: Tree, inputs: PlanInputs) -> list[Problem]:
    """Return a problem for each dangling name in the commit of a tree."""
    snapshot = tree.location.list_files()
    files, _problems = sources.read_whole(snapshot, inputs.config.categories)
    content = Content(
        repository=snapshot.repository,
        directory=snapshot.directory,
        settings=inputs.config,
        now=inputs.now,
        files=files,
        supersede_index=index_files(files),
        head=snapshot.name,
        kind=snapshot.kind,
        is_whole=True,
    )
    return sorted(
        links.check(content), key=lambda problem: (problem.path, problem.line, problem.message)
    )
