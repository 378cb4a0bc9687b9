"""`memtool status`: counts of the memories, what waits for the user, and what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memtool.authoring.tree import with_way_back
from memtool.errors import MemtoolError
from memtool.gate.checks.lineage import PURGES, purged_by
from memtool.index import index
from memtool.inject import session_seen
from memtool.memory import lifecycle, timestamps
from memtool.memory.changes import stem
from memtool.memory.drift import BROKEN, CHANGED
from memtool.memory.fields import Category
from memtool.memory.schema import Problem
from memtool.search import conflicts, picks
from memtool.search.features import Facts
from memtool.search.scope import drift_in
from memtool.sessions import consent
from memtool.store import provenance
from memtool.store.context import Context
from memtool.store.nested import nested_directories, take_over
from memtool.store.tree import Record, Tree, lineage_problems
from memtool.value import Value, first_few, plural

EXPIRES_SOON_DAYS = 14
MOST_PROPOSALS = 5
"""Proposals that the report lists; `--json` has all."""


class Status(Value):
    """Counts of one tree, what waits for the user, and what is wrong.

    `alive` are heads that list and search show; the other counts are of all memories. `due` are
    those of them that somebody should confirm again, since their category's time is over.
    `needs_person` are candidates of low confidence, which no use confirms; `proposals` say which
    candidate proposes to replace which memory. `drifted`
    name a file that is gone, or a name or lines that are; `changed` counts those of which half is.
    `revision` is the commit that HEAD or --at names, empty before the first commit.
    `global_directory` is where the user's global memories are, empty where there are none; `auto`
    says whether sessions are captured unasked.
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
    """The periods of maintain.schedule whose upkeep is due."""
    curation: int = 0
    """How many steps the plan for candidates has that waits."""
    findings: int = 0
    """How many findings of sessions have the evidence to be promoted."""
    contradicting: tuple[str, ...] = ()
    """Memories that certainly contradict another one, forks aside."""
    suspected: int | None = 0
    """How many pairs may contradict each other, and are marked nowhere; None if a large tree was
    not compared since it changed."""
    nested: tuple[str, ...] = ()
    """Memory directories below other directories, which are not read."""

    @property
    def exit_code(self) -> int:
        """1 where something is wrong, for scripts; warnings do not count."""
        return int(any(problem.severity == "error" for problem in self.problems))

    def plain(self) -> dict[str, Any]:
        """Return the shape of `--json`: health in short, then all fields.

        It is healthy where nothing is wrong; what waits for somebody is an issue, too.
        """
        waiting = [(f"{name}: {len(ids)}", hint) for name, ids, hint in self.waiting() if ids]
        wrong = [(problem.text(), problem.hint) for problem in self.problems]
        wrong += [(f"{place} is not read", take_over(place)) for place in self.nested]
        hints = [hint for _issue, hint in (*wrong, *waiting) if hint]
        return {
            "healthy": not self.exit_code,
            "issues": [issue for issue, _hint in (*wrong, *waiting)],
            "recommendations": list(dict.fromkeys(hints)),
        } | super().plain()

    def waiting(self) -> tuple[tuple[str, tuple[str, ...], str], ...]:
        """Return what waits for somebody: its name, the ids, and what to do with them."""
        others = tuple(id_ for id_ in self.candidates if id_ not in self.needs_person)
        decide = "memtool confirm ID, or memtool archive ID"
        return (
            ("not committed", self.uncommitted, "git add and git commit them"),
            ("waiting to be confirmed", others, "memtool confirm ID"),
            ("waiting for a person, since their confidence is low", self.needs_person, decide),
            ("contradicting each other", self.contradicting, "memtool conflicts shows which"),
            ("drifted from the code", self.drifted, "memtool drift shows why"),
            ("due for review", self.due, decide),
            (f"expiring within {EXPIRES_SOON_DAYS} days", self.expiring, "memtool confirm ID"),
        )


def status(context: Context, *, at: str | None = None, as_of: str | None = None) -> Status:
    """Show how many memories there are, what waits for somebody, and what is wrong.

    Where a file is no memory, or a relation leads nowhere, the exit code is 1.

    Example:
        memtool status

    Args:
        at: a revision instead of the worktree
        as_of: the moment to look from: a date, an RFC 3339 moment, or an age such as 30d
    """
    beside = context if context.is_global else context.beside
    before = [*context.notes]
    tree = index.open(context, at, as_of, exact=True)
    now = context.clock.moment_of(as_of)
    categories = context.settings.categories
    facts = Facts(tree, now, dict)
    past = facts.not_alive()
    superseded = tree.with_ids(tree.lineage.superseded_by.keys())
    total = tree.count
    states = Counter(map(facts.state, past))
    states[lifecycle.ALIVE] = total - len(past)
    head = context.repository.git.head()
    context.notes[:] = before  # the problems are the answer here
    if context.settings.is_newer:
        context.note_problems(tree)
    named = facts.naming_files()
    drift = _drift(context, tree, named)
    candidates = list(picks.picked(tree, ("status", "candidate")))
    cache_dir = context.repository.cache_dir if context.is_cached else ""
    clashes = conflicts.open_contradictions(tree, now, cache_dir)
    return Status(
        directory=context.directory,
        revision=tree.location.name if at else head,
        trusted_ref=_trusted(context),
        total=total,
        alive=total - len({record.path for record in (*past, *superseded)}),
        superseded=len(superseded),
        types=tree.count_by("type"),
        statuses=tree.count_by("status"),
        states={state: count for state, count in sorted(states.items()) if count},
        uncommitted=_uncommitted(context, tree),
        candidates=_living_ids(facts, candidates),
        needs_person=_living_ids(facts, [r for r in candidates if r.memory.confidence == "low"]),
        expiring=_living_ids(
            facts, _expiring(tree, now + EXPIRES_SOON_DAYS * timestamps.DAY_S, categories)
        ),
        due=_living_ids(facts, facts.due()),
        proposals=tuple(
            f"{new} proposes to replace {old}"
            for new, olds in sorted(facts.proposed.items())
            for old in olds
        ),
        drifted=tuple(one.id for one in named if drift.get(one.path) == BROKEN),
        changed=sum(level == CHANGED for level in drift.values()),
        problems=with_way_back(
            context,
            (
                *tree.problems,
                *_each_fork_once(lineage_problems(tree, _purged(context, tree, head))),
            ),
        ),
        contradicting=tuple(
            sorted({id_ for one in clashes or () if one.is_certain for id_ in one.ids})
        ),
        suspected=None if clashes is None else sum(not one.is_certain for one in clashes),
        nested=() if at else nested_directories(context.repository, context.directory),
        global_directory=beside.repository.top if beside is not None else "",
        auto=consent.is_capturing(context),
        upkeep=_upkeep(context) if at is None and as_of is None else (),
        curation=_curation(context) if at is None and as_of is None else 0,
        findings=session_seen.waiting(context.repository.cache_dir)
        if at is None and as_of is None
        else 0,
    )


def _each_fork_once(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield problems; a fork, which is one of each of its heads, with the first."""
    forks: set[str] = set()
    for problem in problems:
        if problem.code != "fork" or problem.message not in forks:
            yield problem
        if problem.code == "fork":
            forks.add(problem.message)


def _curation(context: Context) -> int:
    from memtool.sessions import manager  # only here

    plan = manager.waiting(context)
    return len(plan.actions) if plan else 0


def _drift(context: Context, tree: Tree, named: list[Record]) -> dict[str, str]:
    """Return the level of drift of memories by path; nothing where the trusted ref is not there."""
    try:
        return drift_in(tree, lambda: context.witness(tree)).levels(named)
    except MemtoolError as error:
        if error.code != "config":
            raise
        return {}  # `_trusted` notes it


def _upkeep(context: Context) -> tuple[str, ...]:
    """Return the periods whose upkeep is due, none where the settings name no schedule."""
    if not context.settings.texts("maintain.schedule"):
        return ()
    from memtool.upkeep.plan import due_periods  # only where somebody asked for it

    return due_periods(context.settings, context.repository.cache_dir, context.clock.now)


def _trusted(context: Context) -> str:
    """Return the commit of the trusted ref.

    A ref of the settings that is not there is noted: a report on the memories needs none.
    """
    try:
        ref = context.project.trust_settings.text("trust.ref")
        return provenance.resolve_trusted(context.repository, ref)
    except MemtoolError as error:
        context.notes.append(f"{error}; {error.hint}")
        return ""


def _uncommitted(context: Context, tree: Tree) -> tuple[str, ...]:
    """Return the ids of the memories that HEAD, or the revision itself, does not hold as they are.

    They are sorted.
    """
    taken = tree.location
    commit = taken.name if taken.kind == "commit" else provenance.head_of(context.repository)
    stored = context.repository.git.blobs_below(commit, context.directory) if commit else {}
    local = [path for path, oid in tree.blobs.items() if stored.get(path) != oid]
    return tuple(sorted(map(stem, local)))


def _living_ids(facts: Facts, records: Iterable[Record]) -> tuple[str, ...]:
    return tuple(sorted(record.id for record in records if facts.is_current(record)))


def _expiring(tree: Tree, soon: int, categories: Mapping[str, Category]) -> Iterator[Record]:
    """Yield the memories whose life ends until a second."""
    for record in Facts(tree, soon + 1, dict).not_alive():
        end = lifecycle.expires_at(record.memory, categories)
        if end is not None and end <= soon:
            yield record


def render(status: Status) -> str:
    """Return a short report: counts first, then what the user should do."""
    expired = status.states.get(lifecycle.EXPIRED, 0)
    memories = plural(status.total, "memory", "memories")
    rows = [
        f"{status.directory} at {status.revision[: provenance.SHORT] or 'no commit yet'}",
        f"{status.alive} alive of {memories}, {status.superseded} superseded"
        + (f", {expired} expired" if expired else ""),
        f"types: {_listed(status.types)}",
        f"statuses: {_listed(status.statuses)}",
    ]
    for name, ids, hint in status.waiting():
        if ids:
            rows.append(f"{name} ({hint}): {first_few(ids, 5, ', and {:,} more')}")
    rows += status.proposals[:MOST_PROPOSALS]
    if len(status.proposals) > MOST_PROPOSALS:
        rows.append(
            f"and {len(status.proposals) - MOST_PROPOSALS:,} more propose to replace others"
        )
    rows += _counted(status)
    rows += [f"{place} is not read ({take_over(place)})" for place in status.nested]
    if status.global_directory:
        rows.append(f"global memories are in {status.global_directory}")
    if not status.auto:
        rows.append("sessions are not captured unasked (memtool auto says who switched that off)")
    for problem in status.problems:
        rows.append(problem.text())
        if problem.hint:
            rows.append(f"  hint: {problem.hint}")
    return "\n".join(rows)


def _counted(status: Status) -> Iterator[str]:
    """Yield what waits and is only counted."""
    if status.suspected is None:
        yield "contradictions are not counted since memories changed (memtool conflicts does)"
    if status.suspected:
        pairs = plural(status.suspected, "pair")
        yield f"suspected contradictions (memtool conflicts shows them): {pairs}"
    if status.upkeep:
        periods = ", ".join(status.upkeep)
        yield f"upkeep is due (memtool maintain --due, then --apply): {periods}"
    if status.curation:
        steps = plural(status.curation, "step")
        yield f"a plan for candidates waits (memtool curate --waiting shows it): {steps}"
    if status.findings:
        yield (
            "waiting for promotion (memtool promote --list shows them): "
            f"{plural(status.findings, 'finding')}"
        )


def _purged(context: Context, tree: Tree, head: str) -> frozenset[str]:
    """Return the ids that commits have removed for good, where something is missing."""
    if not (head and tree.lineage.dangling()):
        return frozenset()
    trailers = context.repository.git.run(
        "log",
        f"--grep=^{PURGES}: ",
        f"--format=%(trailers:key={PURGES},valueonly,separator=%x20)",
        head,
        "--",
    )
    return purged_by(trailers.decode(errors="replace"))


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"
