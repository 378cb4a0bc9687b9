"""`memtool status`: counts of the memories, what needs attention, and problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from memtool.authoring.tree import with_way_back
from memtool.commands import _features
from memtool.commands._layout import MAX_ROWS, Layout, shorten_commit
from memtool.errors import MemtoolError
from memtool.gate.checks.secrets import make_masked_problems
from memtool.index import index
from memtool.inject import session_seen
from memtool.memory import lifecycle, timestamps
from memtool.memory.changes import id_from_path
from memtool.memory.drift import BROKEN, CHANGED
from memtool.memory.fields import Category
from memtool.memory.lifecycle import EXPIRES_SOON_DAYS
from memtool.memory.schema import Problem
from memtool.search import conflicts, picks
from memtool.search.ahead import AheadCounts, count_ahead
from memtool.search.conflicts import Conflict
from memtool.search.drift import DriftWitness
from memtool.search.features import PROPOSES_TO_REPLACE, Facts
from memtool.search.scope import build_drift_witness
from memtool.search.unsettled import CauseReport, Unsettled
from memtool.sessions import consent
from memtool.store import fetched, provenance
from memtool.store.context import Context
from memtool.store.messages import read_purged_ids
from memtool.store.nested import describe_takeover, find_nested_directories
from memtool.store.repository import read_head_ref
from memtool.store.tree import Record, Tree, find_lineage_problems
from memtool.value import Value, first_few, format_count


class StatusDetails(Value):
    """What only the text shows: the branch, the sides of each conflict, causes and days by id.

    Sides are ids, the newest first. `causes` is why each memory of `to_settle` is unsettled. `due`
    are the days since which reviews are due, `expiry` those on which memories expire.
    """

    branch: str = ""
    conflicts: tuple[tuple[str, ...], ...] = ()
    due: Mapping[str, str] = {}
    expiry: Mapping[str, str] = {}
    causes: Mapping[str, str] = {}
    has_all_rows: bool = False


class Status(Value):
    """Counts of one tree, what needs attention, and the problems.

    - `alive`: heads that list and search show; the other counts are of all memories
    - `due`: alive memories whose review is due
    - `needs_person`: candidates of low confidence, which use alone never confirms
    - `proposals`: sentences on which candidate proposes to replace which memory
    - `drifted`: memories with a missing file, name or cited lines
    - `unsettled`: memories that rest on what no longer holds
    - `to_settle`: the lowest of them; who settles these settles all
    - `changed`: number of memories with a file of which half has changed
    - `revision`: the commit of HEAD or --at, "" before the first commit
    - `trusted_ref`, `trusted_name`, `fetched_at`: commit and short name of the trusted branch, and
      when it was last fetched, None if unknown
    - `ahead`: what the trusted branch has changed since this branch began
    - `global_directory`: the user's global memories, "" if there are none
    - `auto`: whether sessions are captured automatically
    """

    directory: str
    revision: str
    trusted_ref: str
    total: int
    alive: int
    superseded: int
    types: dict[str, int]
    statuses: dict[str, int]
    states: dict[str, int]
    uncommitted: tuple[str, ...]
    candidates: tuple[str, ...]
    needs_person: tuple[str, ...]
    expiring: tuple[str, ...]
    due: tuple[str, ...]
    proposals: tuple[str, ...]
    drifted: tuple[str, ...]
    changed: int
    problems: tuple[Problem, ...]
    global_directory: str = ""
    auto: bool = True
    upkeep: tuple[str, ...] = ()
    """Periods of maintain.schedule whose upkeep is due."""
    curation: int = 0
    """Number of steps of the stored plan for candidates."""
    findings: int = 0
    """Number of session findings with enough evidence to be promoted."""
    contradicting: tuple[str, ...] = ()
    """Memories that certainly contradict another one, without forks."""
    suspected: int | None = 0
    """Number of pairs that may contradict each other, which are not marked anywhere; None if a
    large tree was not compared since it changed."""
    nested: tuple[str, ...] = ()
    """Memory directories below other directories, which are not read."""
    unsettled: tuple[str, ...] = ()
    to_settle: tuple[str, ...] = ()
    trusted_name: str = ""
    fetched_at: str | None = None
    ahead: AheadCounts = AheadCounts()
    details: StatusDetails = StatusDetails()

    @property
    def exit_code(self) -> int:
        """1 if there is an error, for scripts; warnings do not count."""
        return int(any(problem.severity == "error" for problem in self.problems))

    def plain(self) -> dict[str, Any]:
        """Return the shape of `--json`: a summary of health, then all fields.

        It is healthy without errors; `issues` also list what needs attention.
        """
        waiting = [(f"{name}: {len(ids)}", hint) for name, ids, hint in self.list_waiting() if ids]
        wrong = [(problem.text(), problem.hint) for problem in self.problems]
        wrong += [(f"{path} is not read", describe_takeover(path)) for path in self.nested]
        hints = [hint for _issue, hint in (*wrong, *waiting) if hint]
        return {
            "healthy": not self.exit_code,
            "issues": [issue for issue, _hint in (*wrong, *waiting)],
            "recommendations": list(dict.fromkeys(hints)),
        } | {name: value for name, value in super().plain().items() if name != "details"}

    def list_waiting(self) -> tuple[tuple[str, tuple[str, ...], str], ...]:
        """Return what needs attention, in sections: (heading, ids, what to do with them)."""
        confident_candidates = tuple(id_ for id_ in self.candidates if id_ not in self.needs_person)
        decide = "memtool confirm ID, or memtool archive ID"
        return (
            ("not committed", self.uncommitted, "git add and git commit them"),
            ("waiting to be confirmed", confident_candidates, "memtool confirm ID"),
            ("waiting for a person, since their confidence is low", self.needs_person, decide),
            ("contradicting each other", self.contradicting, "memtool conflicts shows which"),
            ("drifted from the code", self.drifted, "memtool drift shows why"),
            ("unsettled", self.unsettled, "memtool show ID shows why, and what settles it"),
            ("due for review", self.due, decide),
            (
                f"expiring within {EXPIRES_SOON_DAYS} days",
                self.expiring,
                "memtool confirm ID",
            ),
        )


def status(
    context: Context, *, all: bool = False, at: str | None = None, as_of: str | None = None
) -> Status:
    """Show what needs attention, and what is broken.

    Each section names the command that deals with it. Exit code 1 means that a file is not a valid
    memory or contains a secret, or that a relation leads nowhere.

    Example:
        memtool status
        memtool status --as-of 2026-06-30

    Args:
        all: show every row of each section
        at: a revision instead of the worktree
        as_of: a past time: a date, RFC 3339, or an age such as 30d
    """
    global_context = context if context.is_global else context.global_context
    before = [*context.notes]
    tree = index.open(context, at, as_of, exact=True)
    now = context.clock.parse_as_of(as_of)
    categories = context.settings.categories
    facts = Facts(tree, now, dict)
    ended_records = facts.not_alive()
    superseded = tree.with_ids(tree.lineage.superseded_by.keys())
    total = tree.count
    states = Counter(map(facts.state, ended_records))
    states[lifecycle.ALIVE] = total - len(ended_records)
    head = context.repository.git.head()
    context.notes[:] = before  # problems are reported in the result
    if context.settings.is_newer:
        context.note_problems(tree)
    named = facts.naming_files()
    witness = build_drift_witness(tree, lambda: context.provenance_reader(tree))
    drift = _find_drift_levels(witness, named)
    causes = _find_causes(tree, now, witness)
    for record in ended_records:  # an expired one needs no settling, and lists leave it out
        causes.pop(record.id, None)
    to_settle = {cause.lowest: cause.text for own in causes.values() for cause in reversed(own)}
    candidates = list(picks.pick(tree, ("status", "candidate")))
    clashes = conflicts.find_open_contradictions(tree, now, context.cache_dir)
    trusted = _find_trusted_commit(context)
    is_now = at is None and as_of is None
    return Status(
        directory=context.directory,
        revision=tree.location.name if at else head,
        trusted_ref=trusted,
        trusted_name=_find_trusted_name(context) if trusted else "",
        fetched_at=_find_fetch_time(context) if trusted else None,
        ahead=count_ahead(context, tree, now) if trusted and is_now else AheadCounts(),
        total=total,
        alive=total - len({record.path for record in (*ended_records, *superseded)}),
        superseded=len(superseded),
        types=tree.count_by("type"),
        statuses=tree.count_by("status"),
        states={state: count for state, count in sorted(states.items()) if count},
        uncommitted=_find_uncommitted(context, tree),
        candidates=_list_current_ids(facts, candidates),
        needs_person=_list_current_ids(
            facts, [r for r in candidates if r.memory.confidence == "low"]
        ),
        expiring=_list_current_ids(
            facts,
            _find_expiring(tree, now + EXPIRES_SOON_DAYS * timestamps.DAY_S, categories),
        ),
        due=_list_current_ids(facts, facts.due()),
        proposals=tuple(
            f"{new}{PROPOSES_TO_REPLACE}{old}"
            for new, olds in sorted(facts.proposed.items())
            for old in olds
        ),
        drifted=tuple(record.id for record in named if drift.get(record.path) == BROKEN),
        changed=sum(level == CHANGED for level in drift.values()),
        problems=with_way_back(
            context,
            (
                *tree.problems,
                *make_masked_problems(tree.withheld()),
                *_without_repeated_forks(
                    find_lineage_problems(tree, _find_purged(context, tree, head))
                ),
            ),
        ),
        contradicting=tuple(
            sorted({id_ for clash in clashes or () if clash.is_certain for id_ in clash.ids})
        ),
        suspected=None if clashes is None else sum(not clash.is_certain for clash in clashes),
        unsettled=tuple(causes),
        to_settle=tuple(sorted(to_settle)),
        nested=() if at else find_nested_directories(context.repository, context.directory),
        global_directory=global_context.repository.top if global_context is not None else "",
        auto=consent.is_capturing(context),
        upkeep=_features.list_due_periods(context) if is_now else (),
        curation=_count_curation_steps(context) if is_now else 0,
        findings=session_seen.count_waiting(context.repository.cache_dir) if is_now else 0,
        details=_find_details(context, tree, facts, clashes or [], all_=all).replace(
            causes=to_settle
        ),
    )


def _find_details(
    context: Context, tree: Tree, facts: Facts, clashes: list[Conflict], *, all_: bool
) -> StatusDetails:
    categories = context.settings.categories
    soon = facts.now + EXPIRES_SOON_DAYS * timestamps.DAY_S
    due = {record.id: lifecycle.find_due(record.memory, categories) for record in facts.due()}
    expiry = {
        record.id: lifecycle.find_expiry(record.memory, categories)
        for record in _find_expiring(tree, soon, categories)
    }
    return StatusDetails(
        branch=read_head_ref(context.repository).partition("refs/heads/")[2],
        conflicts=tuple(
            tuple(sorted(ids, key=lambda id_: (-tree[id_].memory.timestamp, id_)))
            for ids in conflicts.list_unsettled(tree, clashes)
        ),
        due={id_: timestamps.format_date(second) for id_, second in due.items() if second},
        expiry={id_: timestamps.format_date(second) for id_, second in expiry.items() if second},
        has_all_rows=all_,
    )


def _without_repeated_forks(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield problems; of a fork, which is a problem of each of its heads, only the first."""
    forks: set[str] = set()
    for problem in problems:
        if problem.code != "fork" or problem.message not in forks:
            yield problem
        if problem.code == "fork":
            forks.add(problem.message)


def _count_curation_steps(context: Context) -> int:
    from memtool.sessions import manager  # rarely needed

    plan = manager.read_waiting(context)
    return len(plan.actions) if plan else 0


def _find_drift_levels(witness: DriftWitness, named: list[Record]) -> dict[str, str]:
    """Return the drift level of memories, by path; empty if the trusted ref is missing."""
    try:
        return witness.find_levels(named)
    except MemtoolError as error:
        if error.code != "config":
            raise
        return {}  # `_find_trusted_commit` notes it


def _find_causes(tree: Tree, now: int, witness: DriftWitness) -> dict[str, tuple[CauseReport, ...]]:
    """Return why memories are unsettled; not for drift if the trusted ref is missing."""
    unsettled = Unsettled(tree, now, witness)
    try:
        ids = [*unsettled.all]
    except MemtoolError as error:
        if error.code != "config":
            raise
        unsettled = Unsettled(tree, now)
        ids = [*unsettled.all]
    return {id_: unsettled.explain(id_) for id_ in ids}


def _find_trusted_commit(context: Context) -> str:
    """Return the commit of the trusted ref.

    A ref of the settings that is missing is only noted: the report does not need it.
    """
    try:
        ref = context.project.trust_settings.text("trust.ref")
        return provenance.resolve_trusted(context.repository, ref)
    except MemtoolError as error:
        context.notes.append(error.as_line)
        return ""


def _find_trusted_name(context: Context) -> str:
    ref = context.project.trust_settings.text("trust.ref")
    return provenance.format_trusted_ref(context.repository, ref)


def _find_fetch_time(context: Context) -> str | None:
    ref = context.project.trust_settings.text("trust.ref")
    second = fetched.find_last_fetch(context.repository, ref)
    return timestamps.render(second) if second else None


def _find_uncommitted(context: Context, tree: Tree) -> tuple[str, ...]:
    """Return the sorted ids of memories that differ from HEAD, or from the revision."""
    location = tree.location
    commit = (
        location.name
        if location.kind == "commit"
        else provenance.find_head_commit(context.repository)
    )
    stored = context.repository.git.blobs_below(commit, context.directory) if commit else {}
    local = [path for path, oid in tree.blobs.items() if stored.get(path) != oid]
    return tuple(sorted(map(id_from_path, local)))


def _list_current_ids(facts: Facts, records: Iterable[Record]) -> tuple[str, ...]:
    return tuple(sorted(record.id for record in records if facts.is_current(record)))


def _find_expiring(tree: Tree, soon: int, categories: Mapping[str, Category]) -> Iterator[Record]:
    """Yield the memories that expire up to a moment, in Unix seconds."""
    for record in Facts(tree, soon + 1, dict).not_alive():
        end = lifecycle.find_expiry(record.memory, categories)
        if end is not None and end <= soon:
            yield record


def render(status: Status, layout: Layout) -> str:
    """Return counts, then sections of what needs attention, then problems, like `git status`."""
    rows = [*_format_head(status, layout), _format_counts(status)]
    for heading, section_rows in _list_sections(status, layout):
        rows += [*layout.wrap(heading), *section_rows]
    rows += map(layout.hint, _format_notes(status))
    has_forks = bool(status.details.conflicts)
    for problem in status.problems:
        if problem.code == "fork" and has_forks:
            continue  # it is among the conflicts
        rows += layout.wrap(layout.shorten(problem.text()))
        hint = layout.hint(layout.shorten(problem.hint))
        rows += layout.wrap(f"hint: {hint}" * bool(hint), "  ")
    return "\n".join([*rows, _format_end(status)])


def _format_head(status: Status, layout: Layout) -> Iterator[str]:
    """Yield lines on the branch and the trusted branch."""
    on = f"On {status.details.branch} at" if status.details.branch else "At"
    line = f"{on} {shorten_commit(status.revision)}"
    if not status.revision:
        line = f"On {status.details.branch}, no commit yet"
    if status.trusted_ref:
        line += f"; trusted: {status.trusted_name} at {shorten_commit(status.trusted_ref)}"
    yield line
    if status.fetched_at:
        yield f"Last fetched {layout.when(status.fetched_at)}"
    if status.ahead.unknown:
        yield f"Changes of {status.trusted_name} are unknown: {status.ahead.unknown}"


def _format_counts(status: Status) -> str:
    """Return the number of memories in each state."""
    if not status.total:
        return f"No memories in {status.directory} yet"
    by_state = {"superseded": status.superseded} | status.states
    counts = [f"{status.alive:,} active"]
    counts += [
        f"{count:,} {name}" for name, count in by_state.items() if count and name != lifecycle.ALIVE
    ]
    return f"{', '.join(counts)} ({format_count(status.total, 'file')})"


def _list_sections(status: Status, layout: Layout) -> Iterator[tuple[str, list[str]]]:
    """Yield heading and rows of each section that has any."""
    details, branch = status.details, status.trusted_name
    drift, due, soon = status.drifted, details.due, details.expiry
    newest_first = sorted(status.candidates, key=layout.moment, reverse=True)
    longest_due_first = sorted(status.due, key=lambda id_: (due.get(id_, ""), id_))

    def name(id_: str, note: str = "") -> tuple[str, ...]:
        return layout.short(id_), layout.title(id_), note

    sections: tuple[tuple[str, str, Sequence[Any], Callable[[Any], tuple[str, ...]], str], ...] = (
        ("Not committed", '"git add" and "git commit" keep them', status.uncommitted, name, ""),
        (
            "Conflicts to settle",
            '"memtool conflicts" shows both sides',
            details.conflicts,
            lambda sides: name(sides[0], _format_against(sides[1:], layout)),
            "",
        ),
        ("Drifted from the code", '"memtool drift" shows what changed', drift, name, "drift"),
        (
            "Unsettled",
            _advise_settling(status),
            status.to_settle,
            lambda id_: name(id_, layout.shorten(details.causes.get(id_, ""))),
            "list is:unsettled",
        ),
        (
            "Candidates",
            '"memtool confirm ID", or "memtool forget ID --reason TEXT"',
            newest_first,
            lambda id_: name(id_, _format_candidate(id_, status, layout)),
            "list is:candidate",
        ),
        (
            "Due for review",
            '"memtool confirm ID" if it still holds, else archive',
            longest_due_first,
            lambda id_: name(id_, f"since {due.get(id_, '')}"),
            "list is:due",
        ),
        (f"Changed on {branch}", '"memtool show ID" says how', status.ahead.changed, name, ""),
        (f"New on {branch}", '"memtool search" finds them', status.ahead.added, name, ""),
        (
            "Proposed replacements",
            "they hold once confirmed",
            status.proposals,
            lambda sentence: _split(sentence, layout),
            "",
        ),
    )
    for heading, advice, items, describe, command in sections:
        if items:
            yield (
                f"{heading} ({len(items):,}; {layout.hint(advice)}):",
                layout.section(
                    items,
                    describe,
                    f"memtool {command or 'status --all'}",
                    is_whole=details.has_all_rows,
                ),
            )
    if status.expiring:
        shown = [f"{layout.short(id_)} on {soon.get(id_, '')}" for id_ in status.expiring]
        heading = f"Expiring within {EXPIRES_SOON_DAYS} days ({len(shown):,}):"
        yield f"{heading} {first_few(shown, MAX_ROWS + 1, ', and {:,} more')}", []


def _advise_settling(status: Status) -> str:
    """Return what shows the acts, and how many memories rest on those to settle."""
    above = len(set(status.unsettled) - set(status.to_settle))
    verb = "rests" if above == 1 else "rest"
    count = f"{above:,} more {verb} on these; " if above else ""
    return f'{count}"memtool show ID" says what settles it'


def _format_against(older: list[str], layout: Layout) -> str:
    return f"against {', '.join(map(layout.short, older))}"


def _format_candidate(id_: str, status: Status, layout: Layout) -> str:
    low = ", low confidence" if id_ in status.needs_person else ""
    return layout.written(id_) + low


def _split(sentence: str, layout: Layout) -> tuple[str, ...]:
    """Return a proposal as a row: new id, its title, old id."""
    new, _middle, old = sentence.partition(PROPOSES_TO_REPLACE)
    return layout.short(new), layout.title(new), f"for {layout.short(old)}"


def _format_notes(status: Status) -> Iterator[str]:
    """Yield single lines: what waits and is only counted, and what is set up unusually."""
    if status.findings:
        yield f"Lessons of sessions ({status.findings:,}): memtool promote --list"
    if status.suspected:
        yield f"Suspected contradictions ({status.suspected:,}): memtool conflicts"
    if status.suspected is None:
        yield "Contradictions are not counted since memories changed: memtool conflicts"
    if status.upkeep:
        yield f"Upkeep is due ({', '.join(status.upkeep)}): memtool maintain --due"
    if status.curation:
        steps = format_count(status.curation, "step")
        yield f"Plan for candidates ({steps}): memtool curate --waiting"
    for path in status.nested:
        yield f"{path} is not read: {describe_takeover(path)}"
    if status.global_directory:
        yield f"Global memories are in {status.global_directory}"
    if not status.auto:
        yield "Sessions are not captured automatically: memtool auto says why"


def _format_end(status: Status) -> str:
    """Return the last line: errors, and how much needs attention."""
    errors = sum(problem.severity == "error" for problem in status.problems)
    waiting = sum(
        map(
            len,
            (
                status.uncommitted,
                status.details.conflicts,
                status.drifted,
                status.to_settle,
                status.candidates,
                status.due,
                status.expiring,
            ),
        )
    )
    warnings = sum(
        problem.severity != "error" and problem.code != "fork" for problem in status.problems
    )
    waiting += warnings + status.findings + len(status.nested) + bool(status.upkeep)
    start = f"{format_count(errors, 'error')}." if errors else "No errors."
    if not waiting:
        return start if errors else "No errors, nothing to do."
    needs = "1 thing needs" if waiting == 1 else f"{waiting:,} things need"
    return f"{start} {needs} attention."


def _find_purged(context: Context, tree: Tree, head: str) -> frozenset[str]:
    """Return the ids that were purged, if a relation leads nowhere."""
    if not (head and tree.lineage.find_dangling()):
        return frozenset()
    return read_purged_ids(context.repository.git, head, "--")
