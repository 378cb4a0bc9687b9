"""`memtool status`: how the memories stand."""

from __future__ import annotations

from collections import Counter

from memtool.errors import MemtoolError
from memtool.gate.checks.lineage import PURGES, purged_by
from memtool.index import index
from memtool.memory import lifecycle, timestamps
from memtool.memory.problem import Problem
from memtool.store import provenance
from memtool.store.context import Context
from memtool.store.tree import Tree, lineage_problems
from memtool.value import Value

EXPIRES_SOON_DAYS = 14


class Status(Value):
    """Counts of one tree, what waits for somebody, and what is wrong.

    `alive` are heads that list and search show; the other counts are of all memories. `revision`
    is the commit that HEAD or --at names, empty before the first commit. `global_directory` is
    where the user's global memories are, empty where there are none; `auto` says whether sessions
    are captured unasked.
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
    expiring: tuple[str, ...]
    problems: tuple[Problem, ...]
    global_directory: str = ""
    auto: bool = True

    @property
    def exit_code(self) -> int:
        """1 where something is wrong, for scripts; warnings do not count."""
        return int(any(problem.severity == "error" for problem in self.problems))


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
    said = [*context.notes]
    tree = index.open(context, at, as_of, exact=True)
    now = context.moment_of(as_of)
    categories = context.settings.categories
    memories = [record.memory for record in tree.records]
    states = {memory.id: lifecycle.state(memory, now, categories) for memory in memories}
    heads = [memory for memory in memories if tree.lineage.is_head(memory.id)]
    living = [memory for memory in heads if states[memory.id] == lifecycle.ALIVE]
    soon = now + EXPIRES_SOON_DAYS * timestamps.DAY_S
    head = context.repository.git.head()
    context.notes[:] = said  # the problems are the answer here
    trusted, witness = _trusted(context, tree)
    origins = witness.origins(tree.records)
    return Status(
        directory=context.directory,
        revision=tree.snapshot.name if at else head,
        trusted_ref=trusted,
        total=len(memories),
        alive=len(living),
        superseded=len(memories) - len(heads),
        types=dict(sorted(Counter(memory.type for memory in memories).items())),
        statuses=dict(sorted(Counter(memory.status for memory in memories).items())),
        states=dict(sorted(Counter(states.values()).items())),
        uncommitted=tuple(
            record.id for record in tree.records if origins[record.path].trust == "local"
        ),
        candidates=tuple(memory.id for memory in living if memory.status == "candidate"),
        expiring=tuple(
            memory.id
            for memory in living
            if (lifecycle.expires_at(memory, categories) or soon + 1) <= soon
        ),
        problems=(*tree.problems, *lineage_problems(tree, _purged(context, tree, head))),
        global_directory=beside.repository.top if beside is not None else "",
        auto=context.is_capturing,
    )


def _trusted(context: Context, tree: Tree) -> tuple[str, provenance.Witness]:
    """Return the commit of the trusted ref, and who tells what is committed.

    A ref of the settings that is not there is noted: a report on how things stand needs none.
    """
    try:
        ref = context.trust_settings.text("trust.ref")
        return provenance.resolve_trusted(context.repository, ref), context.witness(tree)
    except MemtoolError as error:
        context.notes.append(f"{error}; {error.hint}")
        return "", provenance.Witness(tree.snapshot, is_cached=context.is_cached)


def render(status: Status) -> str:
    """Return a short report: counts first, then what somebody should do."""
    rows = [
        f"{status.directory} at {status.revision[: provenance.SHORT] or 'no commit yet'}",
        f"{status.alive} alive of {status.total} memories, {status.superseded} superseded",
        f"types: {_listed(status.types)}",
        f"statuses: {_listed(status.statuses)}",
    ]
    for name, ids, hint in (
        ("not committed", status.uncommitted, "git add and git commit them"),
        ("waiting to be confirmed", status.candidates, "memtool confirm ID"),
        (f"expiring within {EXPIRES_SOON_DAYS} days", status.expiring, "memtool confirm ID"),
    ):
        if ids:
            more = f", and {len(ids) - 5} more" if len(ids) > 5 else ""
            rows.append(f"{name} ({hint}): {', '.join(ids[:5])}{more}")
    if status.global_directory:
        rows.append(f"global memories are in {status.global_directory}")
    if not status.auto:
        rows.append("sessions are not captured unasked (memtool auto says who switched that off)")
    for problem in status.problems:
        rows.append(problem.text())
        if problem.hint:
            rows.append(f"  hint: {problem.hint}")
    return "\n".join(rows)


def _purged(context: Context, tree: Tree, head: str) -> frozenset[str]:
    """Return the ids that commits have removed for good, where something is missing."""
    if not (head and tree.lineage.dangling()):
        return frozenset()
    said = context.repository.git.run(
        "log", f"--grep=^{PURGES}: ",
        f"--format=%(trailers:key={PURGES},valueonly,separator=%x20)", head, "--",
    )  # fmt: skip
    return purged_by(said.decode(errors="replace"))


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"
