"""The plan of maintenance: what expires, is renewed, merged, confirmed, archived or cleaned up.

Nothing is destroyed: an archived memory keeps its file and all that it says. What a person
confirmed and is due for review is not archived: people are told to confirm or archive it. Its time
begins again where a commit of the trusted branch upholds it; no answer that showed it renews it,
however often, since no text may vouch for itself. Being injected confirms no candidate for the same
reason; that somebody opened it does, or such a commit. Where this clone counted nothing at all, as
in CI, other candidates wait. What contradicts another memory is left to people.

The same commit, ledger, settings and second give the same plan. Steps are planned on the tree as it
will be after the ones before, so that carrying out a plan leaves nothing to plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress

from memtool.errors import MemtoolError
from memtool.gate import sources
from memtool.gate.checks import links
from memtool.gate.content import Content, kin_of
from memtool.memory import ids, lifecycle, timestamps
from memtool.memory.fields import Category
from memtool.memory.memory import Memory
from memtool.memory.schema import Problem
from memtool.memory.visibility import GONE, is_alive
from memtool.search import conflicts, ranking
from memtool.search.conflicts import Conflict
from memtool.sessions.promote import FADE, quarantine
from memtool.sessions.store import Sessions
from memtool.store.config import Config
from memtool.store.history import Upholding, upholding
from memtool.store.provenance import SHORT, changes_of
from memtool.store.repository import Repository
from memtool.store.tree import ReadTree, Record, Tree
from memtool.upkeep import cleanup, digest, importance, merge
from memtool.upkeep.cleanup import Chore
from memtool.upkeep.inputs import PlanInputs
from memtool.upkeep.steps import KINDS, UpkeepStep, changing
from memtool.value import Value

NIGHTLY, WEEKLY, MONTHLY = PERIODS = ("nightly", "weekly", "monthly")
AHEAD_S = 7 * timestamps.DAY_S
"""So long before its end a memory that is upheld is renewed: until the next weekly run."""
LATELY_S = timestamps.DAY_S
"""What was looked at within this time is not archived, however many there are."""
_ORDER = {do: number for number, do in enumerate(KINDS)}
UNCOUNTED = "no access was counted in this clone: candidates wait unless a commit upholds them"


def read_added(
    repository: Repository, revision: str, paths: Iterable[str], directory: str
) -> dict[str, int]:
    """Return when the commit was made that added each path last, by the clock of its committer.

    Where two branches added it, the later one counts. What git cannot tell is left out, as in a
    partial clone without its trees; a shallow one has its files from its first commit on.
    """
    wanted = set(paths)
    if not wanted:
        return {}
    found: dict[str, int] = {}
    for second, row in changes_of(repository, [revision], wanted, [directory], "%ct"):
        if not any(mode.strip("0") for mode, _oid in row.olds):
            found[row.path] = max(found.get(row.path, 0), int(second))
    return found


def upheld_from(tree: Tree, inputs: PlanInputs) -> dict[str, int]:
    """Return by id the second after which a commit may uphold a memory, where that matters.

    Of a candidate it is that at which its file was added; of a confirmed memory whose time ends
    within a week or is over, that of the last confirmation.
    """
    found = {}
    for record in tree.records:
        memory, added = record.memory, inputs.added.get(record.path)
        if memory.status == "candidate" and added is not None:
            found[record.id] = added
        elif memory.status == "confirmed" and _is_ending(memory, inputs):
            found[record.id] = lifecycle.confirmed_at(memory)
    return found


def read_upheld(tree: Tree, revision: str, since: Mapping[str, int]) -> dict[str, Upholding]:
    """Return by id the newest commit of a history that upholds each memory after its second.

    Raises:
        MemtoolError: git cannot tell.
    """
    if not since:
        return {}
    found: dict[str, Upholding] = {}
    for one in upholding(tree.location.repository, f"--since=@{min(since.values())}", revision):
        for name in one.names:
            with suppress(MemtoolError):  # a name of nothing upholds nothing
                id_ = tree.find(name, by_words=False).id
                if one.second > since.get(id_, one.second):
                    found.setdefault(id_, one)
    return found


def tree_after(tree: Tree, steps: Iterable[UpkeepStep]) -> Tree:
    """Return a tree as it would be after some steps; what a step changed has no blob yet."""
    by_path = {record.path: record for record in tree.records}
    for step in steps:
        memory = step.memory or by_path[step.path].memory.with_fields(**step.changes)
        by_path[step.path] = Record(memory, step.path, "")
    return ReadTree(tree.location, by_path.values(), tree.problems, tree.categories)


class Flag(Value):
    """Something for a person to look at: its kind, the memories or the file, and what to do."""

    kind: str
    ids: tuple[str, ...]
    path: str
    message: str
    hint: str


class MaintenancePlan(Value):
    """What there is to do: steps for the memories, chores for this clone, flags for people."""

    steps: tuple[UpkeepStep, ...] = ()
    chores: tuple[Chore, ...] = ()
    flags: tuple[Flag, ...] = ()
    notes: tuple[str, ...] = ()


PERIOD_DAYS = {NIGHTLY: 1, WEEKLY: 7, MONTHLY: 28}
SLACK_S = 3_600
"""So much earlier a period may be due: no cron is punctual."""
SCHEDULE = "maintain.schedule"
PARTS: dict[str, tuple[str, ...]] = {
    NIGHTLY: ("merge",),
    WEEKLY: ("expire", "review", "leftovers", "learn", "digest"),
    MONTHLY: ("links", "index", "sessions"),
}
"""What is looked after in each period."""
ONLY: dict[str, tuple[str, ...]] = {
    "decay": ("expire", "review", "fade"),
    "sessions": ("sessions",),
    "index": ("index",),
    "digests": ("digest",),
}
"""What is looked after alone, by its name on the command line."""


def due_periods(config: Config, cache_dir: str, now: int) -> tuple[str, ...]:
    """Return the periods whose upkeep is due: of the schedule, of all where it names none."""
    return tuple(name for name, due in due_moments(config, cache_dir, now).items() if due <= now)


def due_moments(config: Config, cache_dir: str, now: int) -> dict[str, int]:
    """Return when the upkeep of each period of the schedule is due next, by the period.

    That is now where it was never done, or later by this clock. Without a schedule it is asked of
    all periods.
    """
    last = cleanup.last_runs(cache_dir)
    wanted = config.texts(SCHEDULE) or PERIODS
    found = {}
    for period in filter(wanted.__contains__, PERIODS):
        done = last.get(period, now + 1)
        lasts_s = PERIOD_DAYS[period] * timestamps.DAY_S - SLACK_S
        found[period] = done + lasts_s if done <= now else now
    return found


def plan(
    tree: Tree,
    inputs: PlanInputs,
    sessions: Sessions,
    cache_dir: str,
    periods: Collection[str],
    random: Callable[[str], bytes],
    only: str = "",
) -> MaintenancePlan:
    """Return what is due in periods, or what `only` names; `random` draws the end of a digest's id.

    Raises:
        MemtoolError: git or a session cannot be read.
    """
    parts = {*ONLY[only]} if only else {part for one in periods for part in PARTS[one]}
    steps, flags = _memory_steps(tree, inputs, parts, random)
    notes: list[str] = []
    if "links" in parts:
        flags += [
            Flag(one.code, (one.id,) if one.id else (), one.path, one.message, one.hint)
            for one in dangling(tree, inputs)
        ]
    due: list[Chore] = []
    if "leftovers" in parts:
        due += cleanup.left_over(cache_dir, inputs.now)
        due += cleanup.strays(tree.location.repository, inputs.now)
    if "index" in parts:
        days = 0 if only else inputs.config.count("maintain.index_days")
        due += cleanup.rebuilding(cache_dir, inputs.now, days)
    if "sessions" in parts:
        prune_days = inputs.config.count("maintain.prune_days")
        due += cleanup.sessions_due(sessions, inputs.now, prune_days)
        notes += [f"passed over: {wrong}" for wrong in sessions.heads()[1]]
    if tree.count and {"merge", "expire"} & parts and not inputs.uses.is_known:
        notes.append(UNCOUNTED)
    return MaintenancePlan(tuple(steps), tuple(due), tuple(flags), tuple(notes))


def _memory_steps(
    tree: Tree, inputs: PlanInputs, parts: Collection[str], random: Callable[[str], bytes]
) -> tuple[list[UpkeepStep], list[Flag]]:
    """Return the steps for the memories in the order in which they are shown, and the flags."""
    steps = expiry_steps(tree, inputs) if "expire" in parts else []
    reviews = due_flags(tree_after(tree, steps), inputs) if "review" in parts else []
    reviews += faded_flags(tree_after(tree, steps), inputs) if "review" in parts else []
    flags: list[Flag] = []
    if "merge" in parts:
        found, flags = _nightly(tree_after(tree, steps), inputs)
        steps += found
    elif "fade" in parts:
        after = tree_after(tree, steps)
        found = candidate_steps(after, inputs, _contradicted(after, inputs))
        steps += [step for step in found if step.do == "fade"]
    if "learn" in parts:
        steps += importance.steps(tree_after(tree, steps), inputs)
    if "digest" in parts:
        steps += _digests(tree_after(tree, steps), inputs, random)
    steps.sort(key=lambda step: (_ORDER[step.do], step.id))
    return steps, flags + reviews


def expiry_steps(tree: Tree, inputs: PlanInputs) -> list[UpkeepStep]:
    """Return the steps for what has expired or is about to, then for what is too much."""
    steps = [
        step for record in tree.records if (step := _expiry_of(record, tree, inputs)) is not None
    ]
    if any(step.do == "renew" for step in steps):
        contradicted = _contradicted(tree, inputs)
        steps = [step for step in steps if step.do != "renew" or step.id not in contradicted]
    return steps + _surplus(tree_after(tree, steps), inputs)


def _expiry_of(record: Record, tree: Tree, inputs: PlanInputs) -> UpkeepStep | None:
    memory, categories = record.memory, inputs.config.categories
    if memory.status in GONE or record.path in inputs.frozen:
        return None
    end = _end_of(memory, categories)
    if end is None or not _is_ending(memory, inputs) or not tree.lineage.is_head(record.id):
        return None
    renewal = _renewal(record, inputs)
    if renewal is not None:
        return renewal
    if lifecycle.due_at(memory, categories) is not None and memory.status != "deprecated":
        return None  # somebody confirmed it, so somebody decides
    through = memory.text("valid_through")
    why = f"it was valid through {through}" if through else _over(memory, categories, end)
    return _archiving(record, why, inputs) if end < inputs.now else None


def _end_of(memory: Memory, categories: Mapping[str, Category]) -> int | None:
    """Return the second at which a memory is due for review or expires, None for neither."""
    due = lifecycle.due_at(memory, categories)
    return lifecycle.expires_at(memory, categories) if due is None else due


def _is_ending(memory: Memory, inputs: PlanInputs) -> bool:
    """Tell whether the time of a memory is over, or will be within a week."""
    end = _end_of(memory, inputs.config.categories)
    return end is not None and end <= inputs.now + AHEAD_S


def _renewal(record: Record, inputs: PlanInputs) -> UpkeepStep | None:
    """Return the step by which the time of a memory begins again, None where it does not.

    Only what is confirmed, has neither expired nor drifted, and was upheld since. What says itself
    how long it is valid is not renewed, nor where its time would be over nevertheless.
    """
    memory, categories = record.memory, inputs.config.categories
    upheld, confirmed_at = inputs.upheld.get(record.id), lifecycle.confirmed_at(memory)
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
    term_s = lifecycle.term_days(memory, categories) * timestamps.DAY_S
    if at <= confirmed_at or at + term_s <= inputs.now:
        return None
    # The commit at which somebody looked at the code stays: the trailer does not say that.
    checked = memory.table("checked") | {
        "at": timestamps.render(at),
        "by": upheld.by or importance.BY,
    }
    return changing("renew", record, _upheld_by(upheld), checked=checked)


def _upheld_by(upheld: Upholding) -> str:
    return f"commit {upheld.commit[:SHORT]} upholds it"


def _archiving(record: Record, why: str, inputs: PlanInputs) -> UpkeepStep:
    kept = lifecycle.retired(record.memory, inputs.now, importance.BY)
    return changing("archive", record, why, status="archived", **kept)


def due_flags(tree: Tree, inputs: PlanInputs) -> list[Flag]:
    """Return a flag for each memory in use that is due for review or has drifted, by id."""
    categories = inputs.config.categories
    found = []
    for record in inputs.living(tree):
        due = lifecycle.due_at(record.memory, categories)
        if due is not None and due < inputs.now:
            over = _over(record.memory, categories, due)
            hint = f"memtool confirm {record.id}, or memtool archive {record.id} --why REASON"
            found.append(Flag("due", (record.id,), "", over, hint))
        if record.id in inputs.drifted:
            hint = f"memtool supersede {record.id} TITLE, or confirm {record.id} --still-holds"
            found.append(Flag("drifted", (record.id,), "", inputs.drifted[record.id], hint))
    return found


def faded_flags(tree: Tree, inputs: PlanInputs) -> list[Flag]:
    """Return a flag for each memory in use whose importance has decayed below the least, by id.

    Never for what is pinned or eternal, or of high confidence while it is not due for review; what
    is due is named as such already.
    """
    least = inputs.config.number("decay.minimum_importance")
    categories = inputs.config.categories
    found = []
    for record in inputs.living(tree):
        memory = record.memory
        left = memory.importance * _kept(memory, inputs)
        is_due = lifecycle.is_due(memory, inputs.now, categories)
        is_eternal = lifecycle.temporal_class(memory, categories) == "eternal"
        is_kept = memory.status == "pinned" or is_eternal
        if left < least and not (is_kept or is_due or memory.confidence == "high"):
            what = f"its importance {memory.importance:g} has decayed to {left:.2f}"
            hint = f"memtool archive {record.id} --why REASON, or memtool confirm {record.id}"
            found.append(Flag("faded", (record.id,), "", what, hint))
    return found


def _kept(memory: Memory, inputs: PlanInputs) -> float:
    """Return what decay leaves of a memory, 0 to 1, by the settings of `decay`."""
    fading, categories = ranking.fading_of(inputs.config), inputs.config.categories
    count = inputs.uses.count(memory) if inputs.uses.is_known else None
    return lifecycle.kept(memory, inputs.now, categories, fading, count)


def _over(memory: Memory, categories: Mapping[str, Category], end: int) -> str:
    return f"{lifecycle.term_text(memory, categories)} were over on {timestamps.date(end)}"


def _surplus(tree: Tree, inputs: PlanInputs) -> list[UpkeepStep]:
    """Return the steps that archive the least important memories where there are too many.

    Eternal ones go last, pinned ones and those that were looked at lately not at all.
    """
    living = inputs.living(tree)
    most = inputs.config.count("maintain.most_alive")
    if len(living) <= most:
        return []
    kept = min(most, inputs.config.count("maintain.kept_alive"))
    why = f"{len(living):,} memories are alive, and it is among the least important"
    free = [
        record
        for record in living
        if record.memory.status != "pinned"
        and record.path not in inputs.frozen
        and (inputs.uses.last(record.memory) or 0) <= inputs.now - LATELY_S
    ]
    ordered = _by_worth(free, inputs)
    return [_archiving(record, why, inputs) for record in ordered[: len(living) - kept]]


def _by_worth(records: Iterable[Record], inputs: PlanInputs) -> list[Record]:
    """Return records, those first of whose importance decay has left least."""

    def worth(record: Record) -> tuple[bool, float, int, str]:
        memory = record.memory
        left = memory.importance * _kept(memory, inputs)
        is_eternal = memory.text("temporal_class") == "eternal"
        return is_eternal, left, memory.timestamp, record.id

    return sorted(records, key=worth)


def _nightly(tree: Tree, inputs: PlanInputs) -> tuple[list[UpkeepStep], list[Flag]]:
    open_ones = _contradictions(tree, inputs)
    contradicted = {id_ for one in open_ones for id_ in one.ids}
    steps, parted = merge.plan(tree, inputs, contradicted)
    after = tree_after(tree, steps)
    steps += candidate_steps(after, inputs, contradicted)
    waiting = waiting_flags(after, inputs, contradicted)
    found = [(one.kind, one.ids, one.reason) for one in conflicts.clusters(open_ones)]
    found += [("duplicate", one.ids, f"they say the same, but {one.why}") for one in parted]
    flags = [
        Flag(kind, ids, "", message, f"memtool resolve {' '.join(ids)} --keep newer --why REASON")
        for kind, ids, message in found
    ]
    return steps, [*flags, *waiting]


def _contradictions(tree: Tree, inputs: PlanInputs) -> list[Conflict]:
    """Return the contradictions that nobody has accepted."""
    found = conflicts.contradictions(tree, inputs.now)
    return [one for one in found if not one.accepted]


def _contradicted(tree: Tree, inputs: PlanInputs) -> set[str]:
    """Return the ids of the memories that take part in such a contradiction."""
    return {id_ for one in _contradictions(tree, inputs) for id_ in one.ids}


def candidate_steps(
    tree: Tree, inputs: PlanInputs, contradicted: Collection[str]
) -> list[UpkeepStep]:
    """Return the step for each candidate that has one.

    Being listed or injected confirms nothing, however often: what is repeated is not more true.
    """
    found = [
        _candidate_of(record, inputs) for record in _free_candidates(tree, inputs, contradicted)
    ]
    return [step for step in found if step is not None]


def waiting_flags(tree: Tree, inputs: PlanInputs, contradicted: Collection[str]) -> Iterator[Flag]:
    """Yield a flag for each candidate that was used, but that a person has to decide about."""
    for record in _free_candidates(tree, inputs, contradicted):
        why = _use_of(record, inputs)
        added = inputs.added.get(record.path)
        state = quarantine(record.memory.status, added, inputs.now, is_used=bool(why))
        doubt = _doubt_of(record.memory, inputs)
        if state == "confirm" and doubt:
            hint = f"memtool confirm {record.id}, or memtool archive {record.id} --why REASON"
            yield Flag("waiting", (record.id,), "", f"{why}, but {doubt}", hint)


def _doubt_of(memory: Memory, inputs: PlanInputs) -> str:
    """Return why no use confirms a candidate, empty where one does.

    That it was opened says nothing of what it would replace; a commit that upholds it does.
    """
    if memory.confidence == "low":
        return "its confidence is low"
    if memory.proposes and memory.id not in inputs.upheld:
        return f"it would replace {', '.join(memory.proposes)}"
    return ""


def _free_candidates(
    tree: Tree, inputs: PlanInputs, contradicted: Collection[str]
) -> Iterator[Record]:
    for record in inputs.living(tree):
        is_free = record.path not in inputs.frozen and record.id not in contradicted
        if is_free and record.memory.status == "candidate":
            yield record


def _use_of(record: Record, inputs: PlanInputs) -> str:
    """Return how a candidate was used, empty where it was not."""
    upheld = inputs.upheld.get(record.id)
    if upheld is not None:
        return _upheld_by(upheld)
    count = inputs.uses.count_opened(record.memory)
    times = "once" if count == 1 else f"{count} times"
    return f"it was opened {times}" if count else ""


def _candidate_of(record: Record, inputs: PlanInputs) -> UpkeepStep | None:
    memory, use = record.memory, _use_of(record, inputs)
    state = quarantine(memory.status, inputs.added.get(record.path), inputs.now, is_used=bool(use))
    if state == "confirm":
        if _doubt_of(memory, inputs):
            return None  # a person decides
        return changing("confirm", record, use, status="confirmed")
    if state == "fade" and inputs.uses.is_known and not memory.table("faded"):
        now = timestamps.render(inputs.now)
        faded = {"at": now, "by": importance.BY, "was": f"{memory.importance:g}"}
        why = "nobody used it on its first day"
        left = round(memory.importance * FADE, 4)
        return changing("fade", record, why, importance=f"{left:g}", faded=faded)
    return None


def _digests(
    tree: Tree, inputs: PlanInputs, random: Callable[[str], bytes]
) -> Iterator[UpkeepStep]:
    """Yield the steps that bring the digests up to date that are there."""
    found = digest.plan_digests(
        tree,
        inputs.now,
        random,
        withholds=digest.unquoted_labels(inputs.config),
    )
    for one in found:
        if any(record.path in inputs.frozen for record in one.replaces):
            continue
        if one.memory is not None:
            path = f"{inputs.directory}/{ids.place(one.memory)}"
            why = f"what it sums up of {one.category} has changed"
            yield UpkeepStep("digest", one.memory.id, one.memory.title, path, why, {}, one.memory)
            continue
        why = f"there is nothing left to sum up of {one.category}"
        yield from (changing("archive", record, why, status="archived") for record in one.replaces)


def dangling(tree: Tree, inputs: PlanInputs) -> list[Problem]:
    """Return a problem for each name that leads nowhere in the commit of a tree."""
    snapshot = tree.location.list_files()
    files, _problems = sources.read_whole(snapshot, inputs.config.categories)
    content = Content(
        repository=snapshot.repository,
        directory=snapshot.directory,
        settings=inputs.config,
        now=inputs.now,
        files=files,
        kin=kin_of(files),
        head=snapshot.name,
        kind=snapshot.kind,
        is_whole=True,
    )
    return sorted(links.check(content), key=lambda one: (one.path, one.line, one.message))
